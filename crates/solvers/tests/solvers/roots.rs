//! Roots and fixed points.

use std::f64::consts::TAU;

use wengert_autograd::prelude::*;
use wengert_autograd::transforms::{grad, infer};
use wengert_autograd::{GradCheck, gradcheck};
use wengert_linalg::prelude::*;
use wengert_solvers::{Brentq, Error, FixedPoint, Root, brentq, fixed_point, root};
use wengert_tensor::Float;

use crate::{assert_near, cases, name, numbers, parts, vector};

/// Returns the value at `x` of the system with this name.
fn system<'t, T: Float>(name: &str, x: Var<'t, T>) -> Var<'t, T> {
    match name {
        "freudenstein_roth" => {
            let [x, y] = parts(x);
            stack(&[((5.0 - y) * y - 2.0) * y - 13.0 + x, ((y + 1.0) * y - 14.0) * y - 29.0 + x], 0)
        }
        "powell_badly_scaled" => {
            let [x, y] = parts(x);
            stack(&[x * y * 1e4 - 1.0, (-x).exp() + (-y).exp() - 1.0001], 0)
        }
        "broyden_tridiagonal" => {
            let zero = x.tape().constant(0.0).expand([1]);
            let (before, after) = (cat(&[zero, x.narrow(0, 0, 9)], 0), cat(&[x.narrow(0, 1, 9), zero], 0));
            (3.0 - x * 2.0) * x - before - after * 2.0 + 1.0
        }
        "helical_valley" => {
            let [x, y, z] = parts(x);
            let radius = (x.square() + y.square()).sqrt();
            stack(&[(z - y.atan2(x) * (10.0 / TAU)) * 10.0, (radius - 1.0) * 10.0, z], 0)
        }
        "chandrasekhar" => {
            let matrix = Tensor::from_fn([8, 8], |index| {
                T::from_f64(0.45 / 8.0 * (index[0] as f64 + 0.5) / (index[0] + index[1] + 1) as f64)
            });
            x - (1.0 - x.tape().constant(&matrix).matmul(x)).reciprocal()
        }
        other => panic!("no system {other}"),
    }
}

#[test]
fn roots_of_systems_are_scipys() {
    for case in cases("systems") {
        let (name, expected) = (name(&case), numbers(&case["x"]));
        let found = Root::new().call(|x| system(name, x), &vector(&case["x0"]));
        assert_near(&found.x.to_vec(), &expected, 1e-9, 1e-13, name);
        let evaluations = case["evaluations"].as_u64().unwrap() as usize;
        assert!(found.evaluations <= evaluations + 2, "{name}: {} evaluations, SciPy {evaluations}", found.evaluations);
        assert!(found.residual < 1e-11, "{name}: {}", found.residual);
    }
}

#[test]
fn roots_in_f32_have_the_accuracy_of_f32() {
    for case in cases("systems").iter().filter(|case| name(case) != "powell_badly_scaled") {
        let found = Root::new().call(|x| system(name(case), x), &vector(&case["x0"]).cast::<f32>());
        let got: Vec<f64> = found.x.iter().map(f64::from).collect();
        assert_near(&got, &numbers(&case["x"]), 1e-5, 1e-6, name(case));
    }
}

#[test]
fn roots_in_intervals_are_scipys() {
    for case in cases("scalar") {
        let name = name(&case);
        let f = formula!(|x| match name {
            "cubic" => x.pow(3.0) - x * 2.0 - 5.0,
            "cosine" => x.cos() - x,
            "flat" => (x - 1.0).pow(9.0),
            "exponential" => x.exp() - 1e6,
            "step" => ((x - 0.123) * 1e3).tanh(),
            other => panic!("no function {other}"),
        });
        let end = |key: &str| case[key].as_f64().unwrap();
        let found = Brentq::new().call(f, end("a"), end("b"));
        let expected = end("x");
        assert!((found.x - expected).abs() <= 4e-12 + 1e-15 * expected.abs(), "{name}: {} for {expected}", found.x);
        assert!(found.evaluations as f64 <= end("evaluations") + 2.0, "{name}: {} evaluations", found.evaluations);
    }
}

#[test]
fn failures_of_roots_are_errors() {
    let one = Tensor::scalar(1.0f64);
    let error = Root::new().try_call(|x| x.square() + 1.0, &one).unwrap_err();
    assert!(matches!(error, Error::NoProgress { .. } | Error::Singular { .. } | Error::Limit { .. }), "{error}");
    let error = Root::new().try_call(|x| x.square() + 1.0, &Tensor::scalar(0.0f64)).unwrap_err();
    assert!(matches!(error, Error::Singular { iteration: 0, .. }), "{error}");
    let error = Root::new().try_call(|x| (x - 2.0).sqrt(), &one).unwrap_err();
    assert!(error.to_string().starts_with("the function in iteration 0 is not finite"), "{error}");
    let error = Root::new().try_call(|x| 1.0 / x, &Tensor::scalar(f64::INFINITY)).unwrap_err();
    assert_eq!(error.sentence(), "root: x0 must be finite");
    let error = Root::new().try_call(|x| stack(&[x, x], 0), &one).unwrap_err();
    assert!(error.to_string().starts_with("root: 1 unknowns need 1 equations, got 2"), "{error}");
    let error = Root::new().max_iter(2).try_call(|x| x.exp() - 1e5, &one).unwrap_err();
    assert!(matches!(error, Error::Limit { count: 2, unit: "iterations", .. }), "{error}");
    let error = Root::new().try_call(|x| x.floor_divide(2.0), &one).unwrap_err();
    assert!(matches!(error, Error::Autograd(_)), "{error}");
    assert_eq!(root(|x| x, &Tensor::<f64>::zeros([0])).shape(), &[0]);
}

#[test]
fn failures_in_intervals_are_errors() {
    let brent = Brentq::new();
    let error = brent.try_call(|x| x.square() + 1.0, -1.0f64, 1.0).unwrap_err();
    assert!(
        error.to_string().starts_with("f(a) and f(b) must have different signs: f(-1.0) = 2.0, f(1.0) = 2.0"),
        "{error}"
    );
    assert!(matches!(brent.try_call(|x| x, f64::NAN, 1.0), Err(Error::Argument { .. })));
    assert!(matches!(brent.try_call(|x| x.sqrt(), -1.0f64, 1.0), Err(Error::NotFinite { .. })));
    assert!(matches!(Brentq::new().max_iter(2).try_call(|x| x.cos(), 0.0f64, 3.0), Err(Error::Limit { .. })));
    assert_eq!((brentq(|x| x, 0.0f64, 1.0), brentq(|x| x - 1.0, 0.0f64, 1.0)), (0.0, 1.0));
    assert!((brentq(|x| x.cos() - x, 0.0f32, 1.0) - 0.739_085_1).abs() < 1e-6);
}

/// Applies an affine map with a spectral radius of 0.95, in 30 dimensions.
fn contraction(x: Var<'_, f64>) -> Var<'_, f64> {
    let matrix = Tensor::from_fn([30, 30], |i| if i[0] == i[1] { 0.95 - 0.05 * i[0] as f64 } else { 0.0 });
    x.tape().constant(&matrix).matmul(x) + 1.0
}

#[test]
fn acceleration_finds_fixed_points_in_fewer_iterations() {
    let start = Tensor::zeros([30]);
    let plain = FixedPoint::new().history(0).call(contraction, &start);
    let fast = FixedPoint::new().call(contraction, &start);
    let error = |x: &Tensor<f64>| (infer(contraction, x) - x).abs().amax(..).item();
    assert!(error(&plain.x) < 1e-5 && error(&fast.x) < 1e-6);
    assert!(3 * fast.iterations < plain.iterations, "{} and {} iterations", fast.iterations, plain.iterations);
    let x = fixed_point(|x| (x + 2.0 / x) * 0.5, &Tensor::scalar(1.0f32));
    assert!((x.item() - 2f32.sqrt()).abs() < 1e-6);
}

#[test]
fn failures_of_fixed_points_are_errors() {
    let start = Tensor::scalar(1.0f64);
    let error = FixedPoint::new().history(0).max_iter(5).try_call(|x| x * -1.5 + 1.0, &start).unwrap_err();
    assert!(matches!(error, Error::Limit { count: 5, .. }), "{error}");
    let error = FixedPoint::new().try_call(|x| (x - 2.0).log(), &start).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    let error = FixedPoint::new().try_call(|x| 1.0 / x, &Tensor::scalar(f64::INFINITY)).unwrap_err();
    assert_eq!(error.sentence(), "fixed_point: x0 must be finite");
    let error = FixedPoint::new().try_call(|x| stack(&[x, x], 0), &start).unwrap_err();
    assert!(error.to_string().starts_with("the result of g must have the shape [], got [2]"), "{error}");
}

/// Returns the equations of a circle and a hyperbola with two parameters.
fn curves<'t>(x: Var<'t, f64>, args: &[Var<'t, f64>]) -> Var<'t, f64> {
    let [x, y] = parts(x);
    stack(&[x.square() + y.square() - args[0], x * y * args[1] - 1.0], 0)
}

#[test]
fn roots_have_derivatives_of_both_modes_and_orders() {
    let start = Tensor::from([2.0, 0.5]);
    gradcheck(
        |[a, b]| Root::new().record(curves, a.tape().constant(&start), &[a, b]),
        [&Tensor::scalar(4.0), &Tensor::scalar(1.2)],
    )
    .unwrap();
    // The errors of the roots limit the accuracy of the differences.
    GradCheck::new()
        .accuracy(1e-9)
        .step(1e-3)
        .check(
            |[a]| Brentq::new().xtol(1e-15).record(|x, args| x.exp() * x - args[0], 0.0, 5.0, &[a]),
            [&Tensor::scalar(2.0)],
        )
        .unwrap();
}

#[test]
fn a_fourth_derivative_of_a_root_is_exact() {
    // The root of x² - a is x = √a.
    let half = formula!(|a| {
        Root::new().record(|x, args| x.square() - args[0], a.tape().constant(Tensor::scalar(1.0)), &[a])
    });
    let fourth = grad(|a| grad(|a| grad(|a| grad(half, a), a), a), &Tensor::scalar(2.0));
    // The fourth derivative of √a is -15/16 a^(-7/2).
    assert!((fourth.item() + 15.0 / 16.0 * 2f64.powf(-3.5)).abs() < 1e-14, "{}", fourth.item());
}

#[test]
fn fixed_points_have_derivatives_of_both_modes_and_orders() {
    let (w, b) = (Tensor::from([[0.3, -0.2], [0.1, 0.4]]), Tensor::from([0.5, -1.0]));
    let solver = FixedPoint::new().rtol(1e-14).atol(1e-15);
    GradCheck::new()
        .accuracy(1e-10)
        .step(1e-4)
        .check(
            |[w, b]| {
                let start = w.tape().constant(Tensor::zeros([2]));
                solver.record(|x, args| (args[0].matmul(x) + args[1]).tanh(), start, &[w, b])
            },
            [&w, &b],
        )
        .unwrap();
}

/// The root of the linear system A x - b is A⁻¹ b, so its derivative with respect to b is A⁻¹.
#[test]
fn the_derivative_of_a_linear_root_is_the_inverse() {
    let matrix = Tensor::from([[3.0, 1.0], [-1.0, 2.0]]);
    let known = matrix.clone();
    let slopes = wengert_autograd::transforms::jacobian(
        |b| {
            let known = known.clone();
            let start = b.tape().constant(Tensor::zeros([2]));
            Root::new().record(move |x, args| x.tape().constant(&known).matmul(x) - args[0], start, &[b])
        },
        &Tensor::from([1.0, 2.0]),
    );
    assert!((slopes - matrix.inv()).abs().amax(..).item() < 1e-15);
}

#[test]
fn a_failure_of_a_recorded_root_is_an_error_with_its_line() {
    let tape = Tape::new();
    let a = tape.var(&Tensor::scalar(-1.0f64));
    let x = Root::new().record(|x, args| x.square() - args[0], a.tape().constant(Tensor::scalar(1.0)), &[a]);
    let text = x.try_value().unwrap_err().to_string();
    assert!(text.contains("iterations") && text.contains(file!()) || text.contains("singular"), "{text}");
}

#[test]
fn products_of_small_values_are_no_change_of_sign() {
    let error = Brentq::new().try_call(|x| (-x.square()).exp(), 20.0f64, 21.0).unwrap_err();
    assert!(matches!(error, Error::NoBracket { .. }), "{error}");
    // The ends may be equal if the function is 0 there.
    assert_eq!(brentq(|x| x, 0.0f64, 0.0), 0.0);
    let error = Brentq::new().try_call(|x| x, 1.0f64, 1.0).unwrap_err();
    assert!(matches!(error, Error::NoBracket { .. }), "{error}");
}

/// Tests an interval whose length overflows.
#[test]
fn intervals_may_have_any_finite_ends() {
    let x = brentq(|x| (x * 1e-307).exp() - 10.0, -1.5e308f64, 1.2e308);
    assert!((x / (10f64.ln() * 1e307) - 1.0).abs() < 1e-14, "{x:e}");
}

/// Tests equations whose derivatives are so large or small that their squares overflow or are rounded to 0.
#[test]
fn roots_do_not_depend_on_the_scale_of_the_equations() {
    let start = Tensor::scalar(400.0f64);
    let error = Root::new().try_call(|x| x.exp() - 1.0, &start).unwrap_err();
    assert!(matches!(error, Error::Limit { count: 100, .. }), "{error}");
    let found = Root::new().max_iter(500).call(|x| x.exp() - 1.0, &start);
    assert!(found.x.item().abs() < 1e-15, "{found:?}");
    for scale in [1e-170, 1.0, 1e170] {
        let x = root(|x| (x.square() - 2.0) * scale, &Tensor::scalar(1.0f64));
        assert!((x.item() - 2f64.sqrt()).abs() < 1e-15, "{scale:e}: {}", x.item());
    }
}

#[test]
fn small_roots_are_accurate() {
    let x = root(|x| x.square() - 1e-24, &Tensor::scalar(1e-11f64));
    assert!((x.item() * 1e12 - 1.0).abs() < 1e-4, "{:e}", x.item());
}

/// The equation for the gradient is linear. So a small weight of the loss must give an equally accurate derivative.
#[test]
fn small_gradients_of_fixed_points_are_accurate() {
    let tape = Tape::<f64>::new();
    let (a, x0) = (tape.var(&Tensor::scalar(1.0)), tape.constant(Tensor::scalar(0.0)));
    let x = FixedPoint::new().record(|x, args| x * 0.9 + args[0], x0, &[a]);
    for weight in [1.0, 1e-14, 1e-200, 0.0] {
        let [slope] = (x * weight).grad([a]);
        assert!((slope.item() - 10.0 * weight).abs() <= 1e-6 * weight, "{weight:e}: {:e}", slope.item());
    }
    let [slope] = (x * f64::INFINITY).grad([a]);
    let error = slope.try_value().unwrap_err().to_string();
    assert!(error.contains("a gradient of the fixed point is not finite"), "{error}");
}

#[test]
fn a_tolerance_must_not_be_negative() {
    let start = Tensor::from([1.0f64]);
    for wrong in [f64::NAN, -1e-8] {
        let roots = [Root::new().rtol(wrong), Root::new().atol(wrong)]
            .map(|solver| solver.try_call(|x| x.square() - 2.0, &start).map(drop));
        let points = [FixedPoint::new().rtol(wrong), FixedPoint::new().atol(wrong)]
            .map(|solver| solver.try_call(|x| x.cos(), &start).map(drop));
        let brackets = [Brentq::new().rtol(wrong), Brentq::new().xtol(wrong)]
            .map(|solver| solver.try_call(|x| x.cos() - x, 0.0f64, 1.0).map(drop));
        for result in roots.into_iter().chain(points).chain(brackets) {
            let error = result.unwrap_err();
            assert!(
                error.sentence().ends_with(&format!("tol must be a number that is not negative, got {wrong:?}")),
                "{error}"
            );
        }
    }
}
