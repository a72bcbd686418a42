//! Checks every operation in a table: derivatives of orders 1 and 2, in forward and in reverse mode, and `vmap`.

use wengert_autograd::transforms::Vmap;
use wengert_autograd::{GradCheck, Var};
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

use crate::{diagonally_dominant, difference, positive_definite, random, triangular_system};

type Operation = for<'t> fn(&[Var<'t, f64>]) -> Var<'t, f64>;

/// An operation as a function of its inputs, and the inputs.
struct Case {
    name: &'static str,
    f: Operation,
    inputs: Vec<Tensor<f64>>,
}

/// Returns the symmetric part of a square matrix.
fn symmetric<'t>(x: Var<'t, f64>) -> Var<'t, f64> {
    (x + x.transpose(-2, -1)) * 0.5
}

fn cases() -> Vec<Case> {
    let case = |name, f: Operation, inputs: Vec<Tensor<f64>>| Case { name, f, inputs };
    let (a, batch) = (diagonally_dominant(&[3, 3], 1), diagonally_dominant(&[2, 3, 3], 2));
    let (b, vector) = (random(&[3, 2], 3), random(&[3], 4));
    let definite = positive_definite(&[2, 3, 3], 5);
    let l = definite.cholesky();
    let [lu, pivots] = batch.lu_factor();
    let mut cases = vec![
        case("cholesky", |x| symmetric(x[0]).cholesky(), vec![definite.clone()]),
        case("cholesky, upper", |x| symmetric(x[0]).transpose(-2, -1).cholesky().transpose(-2, -1), vec![definite]),
        case("cholesky, empty", |x| x[0].cholesky().sum(..) + 1.0, vec![Tensor::zeros([2, 0, 0])]),
        case("solve", |x| x[0].solve(x[1]), vec![a.clone(), b.clone()]),
        case("solve, vector", |x| x[0].solve(x[1]), vec![a.clone(), vector.clone()]),
        case("solve, broadcast", |x| x[0].solve(x[1]), vec![batch.clone(), b.clone()]),
        case("solve, broadcast matrix", |x| x[0].solve(x[1]), vec![a.clone(), random(&[2, 3, 1], 6)]),
        case("inv", |x| x[0].inv(), vec![batch.clone()]),
        case("det", |x| x[0].det(), vec![random(&[2, 3, 3], 7)]),
        case("det, 1", |x| x[0].det(), vec![random(&[1, 1], 7)]),
        case("slogdet", |x| x[0].slogdet()[1], vec![random(&[2, 3, 3], 8)]),
        case("logdet", |x| x[0].matmul(x[0].transpose(-2, -1)).logdet(), vec![random(&[2, 3, 3], 8)]),
        case("matrix_power, 3", |x| x[0].matrix_power(3), vec![random(&[2, 3, 3], 9)]),
        case("matrix_power, -2", |x| x[0].matrix_power(-2), vec![batch.clone()]),
        case("lu_factor", |x| x[0].lu_factor()[0], vec![random(&[2, 3, 3], 10)]),
        case(
            "lu, square",
            |x| {
                let [_, l, u] = x[0].lu();
                l.sin() + u
            },
            vec![random(&[3, 3], 10)],
        ),
        case(
            "lu, wide",
            |x| {
                let [_, l, u] = x[0].lu();
                l.matmul(u.sin())
            },
            vec![random(&[2, 2, 4], 11)],
        ),
        case(
            "lu, tall",
            |x| {
                let [_, l, u] = x[0].lu();
                l.sin().matmul(u)
            },
            vec![random(&[2, 4, 2], 12)],
        ),
        case(
            "lu_solve",
            |x| x[0].lu_solve(x[0].tape().constant(x[1].detach().value()), x[2]),
            vec![lu, pivots, b.clone()],
        ),
        case("cholesky_solve", |x| x[0].cholesky_solve(x[1], Triangle::Lower), vec![b.clone(), l.clone()]),
        case(
            "cholesky_solve, upper",
            |x| x[0].cholesky_solve(x[1], Triangle::Upper),
            vec![b.clone(), l.transpose(-2, -1)],
        ),
    ];
    macro_rules! triangular {
        ($($name:literal $upper:literal $left:literal $unit:literal;)*) => {
            $(cases.push(case($name, |x| {
                let b = if $left { x[1] } else { x[1].transpose(-2, -1) };
                x[0].solve_triangular(b, triangular_system($upper, $left, $unit))
            }, vec![batch.clone(), b.clone()]));)*
        };
    }
    triangular! {
        "triangular, lower" false true false;
        "triangular, upper" true true false;
        "triangular, lower, right" false false false;
        "triangular, upper, right" true false false;
        "triangular, lower, unit" false true true;
        "triangular, upper, unit" true true true;
        "triangular, lower, right, unit" false false true;
        "triangular, upper, right, unit" true false true;
    }
    cases
}

#[test]
fn derivatives_agree_with_differences() {
    for Case { name, f, inputs } in cases() {
        let inputs: Vec<&Tensor<f64>> = inputs.iter().collect();
        if let Err(failure) = GradCheck::new().check_slice(f, &inputs) {
            panic!("{name}: {failure}");
        }
    }
}

/// Checks that `vmap` of each operation equals a loop over the examples, for values and for gradients.
#[test]
fn batches_equal_loops() {
    for Case { name, f, inputs } in cases() {
        let size = 3;
        let examples: Vec<Vec<Tensor<f64>>> =
            (0..size).map(|k| inputs.iter().map(|x| x * (1.0 + 0.25 * k as f64)).collect()).collect();
        // This test scales the inputs of each example, but row exchanges must stay whole numbers. So `lu_solve` is left out.
        if name == "lu_solve" {
            continue;
        }
        let stacked: Vec<Tensor<f64>> = (0..inputs.len())
            .map(|position| stack(&examples.iter().map(|x| x[position].clone()).collect::<Vec<_>>(), 0))
            .collect();
        let values = |x: &[Var<'_, f64>]| f(x).value();
        let gradient = |x: Var<'_, f64>, y: Var<'_, f64>| (y * y.sin()).sum(..).grad_or_zeros([x])[0].value();
        let expected: Vec<(Tensor<f64>, Tensor<f64>)> = examples
            .iter()
            .map(|example| {
                let tape = wengert_autograd::Tape::<f64>::new();
                let x: Vec<Var<'_, f64>> = example.iter().map(|x| tape.var(x)).collect();
                (values(&x), gradient(x[0], f(&x)))
            })
            .collect();
        let got = match &stacked[..] {
            [x] => Vmap::new().call(|[x]| with_gradient(f, &[x]), [x]),
            [x, y] => Vmap::new().call(|[x, y]| with_gradient(f, &[x, y]), [x, y]),
            _ => unreachable!(),
        };
        for (example, (value, gradient)) in expected.iter().enumerate() {
            let scale = 1.0
                + [value, gradient]
                    .map(|x| if x.numel() == 0 { 0.0 } else { x.abs().amax(..).item() })
                    .iter()
                    .sum::<f64>();
            assert!(difference(&got[0].select(0, example), value) <= 1e-13 * scale, "{name}");
            assert!(difference(&got[1].select(0, example), gradient) <= 1e-12 * scale, "{name}");
        }
    }
}

/// Returns the value y of `f`, and the gradient of the sum of y sin y with respect to the first input.
fn with_gradient<'t>(f: Operation, x: &[Var<'t, f64>]) -> [Var<'t, f64>; 2] {
    let y = f(x);
    [y, (y * y.sin()).sum(..).grad_or_zeros([x[0]])[0]]
}

#[test]
fn vmap_records_one_call() {
    let tape = wengert_autograd::Tape::<f64>::new();
    let (a, b) = (tape.var(&diagonally_dominant(&[5, 3, 3], 1)), tape.var(&random(&[5, 3], 2)));
    let [x] = Vmap::new().record(|[a, b]| [a.solve(b)], [a, b]);
    assert_eq!(tape.calls("solve").len(), 2, "one for the example and one for the batch");
    assert!(difference(&x.value(), &a.value().solve(b.value())) <= 1e-15);
}

/// Checks that the derivative check refuses a function whose derivative does not belong to its values.
#[test]
fn the_check_finds_a_wrong_derivative() {
    let a = diagonally_dominant(&[3, 3], 1);
    // This function has the value of A⁻¹, and the derivative of 2 A⁻¹.
    let wrong = GradCheck::new().order(1).check(|[x]| x.inv() * 2.0 - x.detach().inv(), [&a]);
    assert!(wrong.is_err());
}

/// Returns the gradient of `f` at `x`.
fn gradient(x: &Tensor<f32>, f: impl for<'t> Fn(Var<'t, f32>) -> Var<'t, f32>) -> Tensor<f32> {
    let tape = wengert_autograd::Tape::new();
    let x = tape.var(x);
    f(x).grad([x])[0].value()
}

#[test]
fn gradients_do_not_depend_on_the_scale() {
    let a = Tensor::from([[0.3f32, -1.0, 0.5], [0.9, 0.1, -0.4], [-0.2, 0.7, 0.6]]);
    let weights = Tensor::from([[1.0f32, 2.0, -1.0], [0.5, 0.3, 0.2], [0.0, 1.0, 1.0]]);
    let is_near = |got: &Tensor<f32>, want: &Tensor<f32>| (got - want).abs().amax(..).item() < 1e-5;
    // Returns the gradient of a loss times `factor`, divided by `factor`. The result must not depend on `factor`.
    let exponential = |factor: f32| gradient(&a, |x| (x.matrix_exp() * &weights).sum(..) * factor) / factor;
    for factor in [1e-30, 1e-3, 1e8, 1e20, 1e30] {
        assert!(is_near(&exponential(factor), &exponential(1.0)), "{factor:e}: {}", exponential(factor));
    }
    assert_eq!(gradient(&a, |x| (x.matrix_exp() * 0.0).sum(..)), Tensor::zeros([3, 3]));
    // The gradient of the polar factor U Vᵀ of the matrix `a * factor`. The squares of its singular values overflow or underflow, so the
    // derivative rule must not compute them.
    let polar = |factor: f32| {
        let slope = gradient(&(&a * factor), |x| {
            let (u, _, vh) = x.svd(false);
            (u.matmul(vh) * &weights).sum(..)
        });
        slope * factor
    };
    for factor in [1e-24, 1e-10, 1e20] {
        assert!(is_near(&polar(factor), &polar(1.0)), "{factor:e}: {}", polar(factor));
    }
}

/// The loss is a smooth function of the matrix, so its gradient stays small although two eigenvalues differ by only 1e-12.
#[test]
fn the_gradient_of_near_eigenvalues_is_symmetric_and_bounded() {
    let (reflected, _) = random(&[3, 3], 21).qr(QrMode::Complete);
    let spectrum = Tensor::from([[1.0], [1.0 + 1e-12], [2.0]]);
    let a = reflected.matmul(spectrum * reflected.t());
    let weights = random(&[3, 3], 22);
    let tape = wengert_autograd::Tape::new();
    let x = tape.var(&((&a + a.t()) * 0.5));
    let (values, vectors) = x.eigh(Triangle::Lower);
    let sine = (vectors * values.sin()).matmul(vectors.transpose(-2, -1));
    let slope = (sine * &weights).sum(..).grad([x])[0].value();
    assert!((&slope - slope.t()).abs().amax(..).item() < 1e-12, "{slope}");
    assert!(slope.abs().amax(..).item() <= weights.norm(2).item(), "{slope}");
}

#[test]
fn determinants_are_exact_if_partial_products_overflow() {
    let large = Tensor::from([1e30f32, 1e30, 1e-30, 2e-30]).diag_embed(0, -2, -1);
    assert!((large.det().item() - 2.0).abs() < 1e-5);
    let slopes = gradient(&large, |x| x.det());
    assert!((slopes.get(&[3, 3]).unwrap() / 1e30 - 1.0).abs() < 1e-5);
    let small = Tensor::from([1e-200f64, -1e-200, 1e200, 1e199]).diag_embed(0, -2, -1);
    assert!((small.det().item() + 0.1).abs() < 1e-14);
    assert_eq!((Tensor::<f64>::eye(3) * 1e200).det().item(), f64::INFINITY);
    assert_eq!((Tensor::<f64>::eye(3) * 1e-200).det().item(), 0.0);
    assert!(Tensor::from([[f64::NAN, 0.0], [0.0, 1.0]]).det().item().is_nan());
}
