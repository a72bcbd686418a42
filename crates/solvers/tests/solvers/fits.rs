//! Least squares and minimisation.

use wengert_autograd::GradCheck;
use wengert_autograd::prelude::*;
use wengert_autograd::transforms::grad;
use wengert_solvers::{Error, FitEnd, LeastSquares, Minimize, MinimizeEnd, MinimizeMethod, least_squares, minimize};
use wengert_tensor::Float;

use crate::{assert_near, cases, name, numbers, parts, vector};

const KOWALIK_Y: [f64; 11] = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246];
const KOWALIK_U: [f64; 11] = [4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625];
const DECAY_T: [f64; 9] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
const DECAY_Y: [f64; 9] = [5.1, 3.72, 2.9, 2.18, 1.81, 1.2, 0.93, 0.62, 0.56];
const MEYER_Y: [f64; 16] = [
    34780.0, 28610.0, 23650.0, 19630.0, 16370.0, 13720.0, 11540.0, 9744.0, 8261.0, 7030.0, 6005.0, 5147.0, 4427.0,
    3820.0, 3307.0, 2872.0,
];

fn data<'t, T: Float>(x: Var<'t, T>, numbers: &[f64]) -> Var<'t, T> {
    x.tape().constant(Tensor::from(numbers.iter().map(|&y| T::from_f64(y)).collect::<Vec<_>>()))
}

/// Returns the residuals at `x` of the problem with this name.
fn residuals<'t, T: Float>(name: &str, x: Var<'t, T>) -> Var<'t, T> {
    match name {
        "rosenbrock" => {
            let [x, y] = parts(x);
            stack(&[(y - x.square()) * 10.0, 1.0 - x], 0)
        }
        "kowalik_osborne" => {
            let (y, u, [a, b, c, d]) = (data(x, &KOWALIK_Y), data(x, &KOWALIK_U), parts(x));
            y - (u.square() + u * b) * a / (u.square() + u * c + d)
        }
        "decay" => {
            let (t, y, [a, b, c]) = (data(x, &DECAY_T), data(x, &DECAY_Y), parts(x));
            (-(t * b)).exp() * a + c - y
        }
        "meyer" => {
            let times: Vec<f64> = (1..=16).map(|i| 45.0 + 5.0 * f64::from(i)).collect();
            let (t, y, [a, b, c]) = (data(x, &times), data(x, &MEYER_Y), parts(x));
            (b / (t + c)).exp() * a - y
        }
        "powell_singular" => {
            let [a, b, c, d] = parts(x);
            let (root5, root10) = (5f64.sqrt(), 10f64.sqrt());
            stack(&[a + b * 10.0, (c - d) * root5, (b - c * 2.0).square(), (a - d).square() * root10], 0)
        }
        other => panic!("no problem {other}"),
    }
}

#[test]
fn fits_are_scipys() {
    for case in cases("fits") {
        let (name, expected) = (name(&case), numbers(&case["x"]));
        let solver = LeastSquares::new().ftol(1e-15).xtol(1e-15).gtol(1e-15).max_nfev(5000);
        let fit = solver.call(|x| residuals(name, x), &vector(&case["x0"]));
        // The singular problem converges linearly, so both solvers end somewhere near 0.
        let (rtol, atol) = if name == "powell_singular" { (0.0, 1e-7) } else { (1e-6, 1e-10) };
        assert_near(&fit.x.to_vec(), &expected, rtol, atol, name);
        assert_near(&[fit.cost], &[case["cost"].as_f64().unwrap()], 1e-10, 1e-25, name);
        assert!(fit.end != FitEnd::MaxEvaluations, "{name}");
        if name != "powell_singular" {
            let covariance = fit.covariance();
            assert_eq!(covariance.shape(), &[expected.len(), expected.len()]);
            let scale = covariance.abs().amax(..).item();
            assert_near(&covariance.to_vec(), &numbers(&case["covariance"]), 1e-4, 1e-9 * scale, name);
        }
    }
}

#[test]
fn default_tolerances_converge() {
    for case in cases("fits") {
        let name = name(&case);
        let fit = least_squares(|x| residuals(name, x), &vector(&case["x0"]));
        assert!(fit.converged(), "{name}: {:?} after {} evaluations", fit.end, fit.evaluations);
        let expected = case["cost"].as_f64().unwrap();
        assert!(fit.cost <= expected * (1.0 + 1e-6) + 1e-12, "{name}: {} for {expected}", fit.cost);
    }
}

#[test]
fn fits_in_f32_have_the_accuracy_of_f32() {
    for case in cases("fits").iter().filter(|case| ["rosenbrock", "decay"].contains(&name(case))) {
        let fit = LeastSquares::new()
            .ftol(1e-6)
            .xtol(1e-6)
            .call(|x| residuals(name(case), x), &vector(&case["x0"]).cast::<f32>());
        let got: Vec<f64> = fit.x.iter().map(f64::from).collect();
        assert_near(&got, &numbers(&case["x"]), 2e-3, 1e-4, name(case));
    }
}

#[test]
fn the_ends_of_fits() {
    let start = Tensor::from([1.0f64, 2.0]);
    // The residuals are 0 at the start.
    let fit = least_squares(|x| x - Tensor::from([1.0, 2.0]), &start);
    assert_eq!((fit.end, fit.evaluations, fit.iterations), (FitEnd::Gtol, 1, 0));
    // No residual depends on the second unknown, and there are fewer residuals than unknowns.
    let fit = least_squares(|x| x.narrow(0, 0, 1) - 5.0, &start);
    assert!(fit.converged());
    assert_near(&fit.x.to_vec(), &[5.0, 2.0], 1e-8, 0.0, "one residual");
    assert_eq!(least_squares(|x| x, &Tensor::<f64>::zeros([0])).end, FitEnd::Gtol);
    // The square root is NaN below 0, so steps are shortened.
    let fit = least_squares(|x| x.sqrt() - 0.1, &Tensor::scalar(9.0f64));
    assert!(fit.converged() && (fit.x.item() - 0.01).abs() < 1e-6, "{:?}", fit.x);
    let error = LeastSquares::new().try_call(|x| x.log(), &Tensor::scalar(-1.0f64)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    let far = Tensor::scalar(f64::INFINITY);
    let fit = LeastSquares::new().try_call(|x| 1.0 / x, &far).unwrap_err();
    let minimum = Minimize::new().try_call(|x| 1.0 / x, &far).unwrap_err();
    assert_eq!(fit.sentence(), "least_squares: x0 must be finite");
    assert_eq!(minimum.sentence(), "minimize: x0 must be finite");
}

/// Returns the value at `x` of the function with this name.
fn function<'t, T: Float>(name: &str, x: Var<'t, T>) -> Var<'t, T> {
    match name {
        "rosenbrock" | "rosenbrock_10" => {
            let n = x.numel();
            let (head, tail) = (x.narrow(0, 0, n - 1), x.narrow(0, 1, n - 1));
            ((tail - head.square()).square() * 100.0 + (1.0 - head).square()).sum(..)
        }
        "beale" => {
            let [x, y] = parts(x);
            let term = |constant: f64, power: Var<'t, T>| (constant - x + x * power).square();
            term(1.5, y) + term(2.25, y.square()) + term(2.625, y.pow(3.0))
        }
        "wood" => {
            let [a, b, c, d] = parts(x);
            (a.square() - b).square() * 100.0
                + (a - 1.0).square()
                + (c - 1.0).square()
                + (c.square() - d).square() * 90.0
                + ((b - 1.0).square() + (d - 1.0).square()) * 10.1
                + (b - 1.0) * (d - 1.0) * 19.8
        }
        "log_sum_exp" => {
            let [a, b] = parts(x);
            stack(&[a + b * 3.0, a - b * 3.0, -a], 0).logsumexp(0) + x.square().sum(..) * 0.1
        }
        other => panic!("no function {other}"),
    }
}

#[test]
fn minima_are_scipys() {
    for case in cases("minima") {
        let (name, expected) = (name(&case), numbers(&case["x"]));
        for method in [MinimizeMethod::Bfgs, MinimizeMethod::NewtonCg] {
            let found = Minimize::new().method(method).gtol(1e-8).call(|x| function(name, x), &vector(&case["x0"]));
            let what = format!("{name}, {method:?}: {:?}, {} iterations", found.end, found.iterations);
            assert!(found.converged(), "{what}");
            assert!(found.gradient.abs().amax(..).item() <= 1e-8, "{what}");
            // Rosenbrock's function of 10 numbers has two minima, and a method may find the one that SciPy does not find.
            if name == "rosenbrock_10" && found.value < 1.0 {
                assert_near(&found.x.to_vec(), &[1.0; 10], 1e-6, 0.0, &what);
            } else {
                assert_near(&found.x.to_vec(), &expected, 1e-6, 1e-8, &what);
            }
            let iterations = case["iterations"].as_u64().unwrap() as usize;
            // The case has the number of iterations of SciPy's BFGS, so the bound for Newton's method is wider.
            // Newton's method stays near a saddle of Wood's function for many iterations.
            let factor = match (method, name) {
                (MinimizeMethod::Bfgs, _) => 1.5,
                (_, "wood") => 10.0,
                _ => 4.0,
            };
            assert!(found.iterations as f64 <= factor * iterations as f64 + 5.0, "{what}, SciPy {iterations}");
        }
    }
}

#[test]
fn the_ends_of_minimisations() {
    let start = Tensor::from([1.0f64, 2.0]);
    assert_eq!(minimize(|x| x.square().sum(..) * 0.0, &start).end, MinimizeEnd::Gtol);
    assert_eq!(Minimize::new().max_iter(3).call(|x| function("rosenbrock", x), &start).end, MinimizeEnd::MaxIterations);
    // Rounding errors prevent a gradient that is exactly 0.
    let found = Minimize::new().gtol(0.0).call(|x| function("log_sum_exp", x) + (x - 0.3).exp().sum(..), &start);
    assert!(matches!(found.end, MinimizeEnd::NoProgress | MinimizeEnd::MaxIterations), "{:?}", found.end);
    assert!(found.gradient.abs().amax(..).item() < 1e-14);
    let found = minimize(|x| x.exp().sum(..) * -1.0, &start);
    assert_eq!(found.end, MinimizeEnd::Unbounded);
    // The logarithm is NaN below 0, so steps are shortened.
    let found = minimize(|x| (x - x.log()).sum(..), &Tensor::from([30.0f64, 0.1]));
    assert!(found.converged());
    assert_near(&found.x.to_vec(), &[1.0, 1.0], 1e-5, 0.0, "logarithm");
    assert_eq!(minimize(|x| x.sum(..), &Tensor::<f64>::zeros([0])).end, MinimizeEnd::Gtol);
    // The squares of the larger gradients are infinite. The scales are powers of 2, so nothing is rounded.
    for scale in [1.0, 2f64.powi(500), 2f64.powi(600)] {
        let newton = Minimize::new().method(MinimizeMethod::NewtonCg).gtol(0.0);
        let found = newton.call(|x| (x - 3.0).square().sum(..) * scale, &Tensor::from([1.0f64, 7.0]));
        assert_eq!((found.end, found.x.to_vec()), (MinimizeEnd::Gtol, vec![3.0, 3.0]), "{scale:e}");
    }
    let newton = Minimize::new().method(MinimizeMethod::NewtonCg).gtol(0.0);
    let found = newton.call(|x| (x - 3.0).square().sum(..) * 2f64.powi(100), &Tensor::from([1.0f32, 7.0]));
    assert_eq!((found.end, found.x.to_vec()), (MinimizeEnd::Gtol, vec![3.0, 3.0]));
    let error = Minimize::new().try_call(|x| x.log().sum(..), &Tensor::scalar(-1.0f64)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    assert!(matches!(Minimize::new().try_call(|x| x, &start), Err(Error::Autograd(_))));
}

#[test]
fn minima_and_fits_have_derivatives_of_both_modes_and_orders() {
    let (a, b) = (Tensor::scalar(1.5), Tensor::from([0.3, -0.4]));
    let start = Tensor::zeros([2]);
    for method in [MinimizeMethod::Bfgs, MinimizeMethod::NewtonCg] {
        let solver = Minimize::new().method(method).gtol(1e-11);
        GradCheck::new()
            .accuracy(1e-8)
            .step(1e-3)
            .check(
                |[a, b]| {
                    solver.record(
                        |x, args| (x.cosh() * args[0] - x * args[1]).sum(..) + x.prod(..),
                        a.tape().constant(&start),
                        &[a, b],
                    )
                },
                [&a, &b],
            )
            .unwrap();
    }
    let fit = LeastSquares::new().ftol(1e-15).xtol(1e-15).gtol(1e-14);
    GradCheck::new()
        .accuracy(1e-8)
        .step(1e-3)
        .check(
            |[y]| {
                let start = y.tape().constant(Tensor::from([4.5, 0.66, 0.56]));
                fit.record(|x, args| residuals("decay", x) + data(x, &DECAY_Y) - args[0], start, &[y])
            },
            [&Tensor::from(DECAY_Y.to_vec())],
        )
        .unwrap();
}

/// Checks the derivative of b / 4, the point where 2 x² - b x is smallest, with respect to b.
#[test]
fn the_derivative_of_a_quadratic_minimum_is_exact() {
    let slope = grad(
        |b| {
            let start = b.tape().constant(Tensor::scalar(0.0));
            Minimize::new().record(|x, args| x.square() * 2.0 - x * args[0], start, &[b])
        },
        &Tensor::scalar(3.0f64),
    );
    assert_eq!(slope.item(), 0.25);
    let tape = Tape::new();
    let b = tape.var(&Tensor::scalar(1.0f64));
    let x =
        Minimize::new().max_iter(2).record(|x, args| (x - args[0]).pow(4.0), tape.constant(Tensor::scalar(9.0)), &[b]);
    assert!(x.try_value().unwrap_err().to_string().starts_with("no progress after 2 iterations"));
}

/// Tests problems where the squares of the residuals or derivatives overflow or are rounded to 0.
#[test]
fn fits_do_not_depend_on_the_scale_of_the_residuals() {
    for (scale, target) in [(1e-170, 3.0), (1.0, 3.0), (1e150, 1e7), (1e160, 3.0)] {
        let fit = least_squares(|x| (x - target) * scale, &Tensor::scalar(0.1 * target));
        assert!(fit.converged() && (fit.x.item() / target - 1.0f64).abs() < 1e-8, "{scale:e}: {:?}", fit.x);
    }
    let error = LeastSquares::new().try_call(|x| x.expand([9]) * 1e308, &Tensor::scalar(1.0f64)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
}

/// The columns of the Jacobian differ only by a factor and by the roundings of f32. So its rank must count as 1. With rank 2, the roundings
/// would make the covariance very large.
#[test]
fn the_covariance_in_f32_has_the_rank_of_f32() {
    let t = Tensor::from([0.1f32, 0.7, 1.3, 2.9]);
    let fit = least_squares(|p| p.select(0, 0) * &t + p.select(0, 1) * (&t * 1.1) - 1.0, &Tensor::from([0.1f32, 0.2]));
    let largest = fit.covariance().abs().amax(..).item();
    assert!(largest < 1.0, "{largest}");
}

#[test]
fn a_tolerance_must_not_be_negative() {
    let start = Tensor::from([1.0f64]);
    for wrong in [f64::NAN, -1e-8] {
        let fits = [LeastSquares::new().ftol(wrong), LeastSquares::new().xtol(wrong), LeastSquares::new().gtol(wrong)]
            .map(|solver| solver.try_call(|x| x - 3.0, &start).map(drop));
        let minimum = Minimize::new().gtol(wrong).try_call(|x| x.square().sum(..), &start).map(drop);
        for result in fits.into_iter().chain([minimum]) {
            let error = result.unwrap_err();
            assert!(
                error.sentence().ends_with(&format!("tol must be a number that is not negative, got {wrong:?}")),
                "{error}"
            );
        }
    }
}

#[test]
fn the_cost_of_no_residuals_is_positive_zero() {
    let cost = LeastSquares::new().call(|x| x - 1.0, &Tensor::<f64>::zeros([0])).cost;
    assert!(cost == 0.0 && cost.is_sign_positive());
}
