//! Initial value problems.

use wengert_autograd::prelude::*;
use wengert_solvers::{Error, Method, Odeint, odeint};
use wengert_tensor::Float;

use crate::{assert_near, cases, name, numbers, parts, vector};

/// Returns the right-hand side dy/dt of the equation with this name.
fn slope<'t, T: Float>(name: &str, t: Var<'t, T>, y: Var<'t, T>) -> Var<'t, T> {
    match name {
        "lotka_volterra" => {
            let [x, y] = parts(y);
            stack(&[x * 1.5 - x * y, x * y - y * 3.0], 0)
        }
        "lorenz" => {
            let [x, y, z] = parts(y);
            stack(&[(y - x) * 10.0, x * (28.0 - z) - y, x * y - z * (8.0 / 3.0)], 0)
        }
        "pendulum" => {
            let [angle, speed] = parts(y);
            stack(&[speed, speed * -0.25 - angle.sin() * 5.0 + (t * 2.0).cos()], 0)
        }
        "backward" => {
            let [x, v] = parts(y);
            stack(&[v, t * 0.1 - x], 0)
        }
        "van_der_pol" => {
            let [x, v] = parts(y);
            stack(&[v, (1.0 - x.square()) * v * 1e3 - x], 0)
        }
        "robertson" => {
            let [x, y, z] = parts(y);
            let (slow, fast, square) = (x * 0.04, y * z * 1e4, y.square() * 3e7);
            stack(&[fast - slow, slow - fast - square, square], 0)
        }
        other => panic!("no equation {other}"),
    }
}

const STIFF: [&str; 2] = ["van_der_pol", "robertson"];

/// Compares solutions with SciPy's. The errors of single steps may grow with time, most of all for Lorenz's equations. So the error of the
/// solution may exceed the tolerance of a step.
#[test]
fn adaptive_solutions_are_scipys() {
    for case in cases("equations") {
        let (name, expected) =
            (name(&case), case["y"].as_array().unwrap().iter().flat_map(numbers).collect::<Vec<_>>());
        let methods: &[(Method, f64, f64)] = if STIFF.contains(&name) {
            &[(Method::Rodas4, 1e-8, 1e-6)]
        } else {
            &[(Method::Dopri5, 1e-10, 1e-7), (Method::Bosh3, 1e-8, 3e-5), (Method::Rodas4, 1e-9, 1e-6)]
        };
        for &(method, tolerance, bound) in methods {
            let solver = Odeint::new().method(method).rtol(tolerance).atol(tolerance * 1e-4);
            let solved = solver.call(|t, y| slope(name, t, y), &vector(&case["y0"]), &vector(&case["times"]));
            assert_near(&solved.values.to_vec(), &expected, bound, bound * 1e-3, &format!("{name}, {method:?}"));
        }
    }
}

#[test]
fn the_work_is_close_to_scipys() {
    for case in cases("equations") {
        let name = name(&case);
        for (scipys, method) in [("RK23", Method::Bosh3), ("RK45", Method::Dopri5), ("Radau", Method::Rodas4)] {
            let counts = &case["counts"][scipys];
            if counts.is_null() {
                continue;
            }
            let solver = Odeint::new().method(method).rtol(1e-6).atol(1e-9);
            let solved = solver.call(|t, y| slope(name, t, y), &vector(&case["y0"]), &vector(&case["times"]));
            let evaluations = counts[1].as_f64().unwrap();
            assert!(
                solved.evaluations as f64 <= 1.3 * evaluations,
                "{name}, {method:?}: {} accepted, {} rejected, {} evaluations, SciPy {counts}",
                solved.accepted,
                solved.rejected,
                solved.evaluations
            );
        }
    }
}

#[test]
fn solutions_in_f32_have_the_accuracy_of_f32() {
    for case in cases("equations").iter().filter(|case| !["lorenz"].contains(&name(case))) {
        let name = name(case);
        let method = if STIFF.contains(&name) { Method::Rodas4 } else { Method::Dopri5 };
        let expected: Vec<f64> = case["y"].as_array().unwrap().iter().flat_map(numbers).collect();
        let (y0, times) = (vector(&case["y0"]).cast::<f32>(), vector(&case["times"]).cast::<f32>());
        let solved = Odeint::new().method(method).rtol(1e-5).atol(1e-7).call(|t, y| slope(name, t, y), &y0, &times);
        let got: Vec<f64> = solved.values.iter().map(f64::from).collect();
        assert_near(&got, &expected, 2e-3, 2e-4, name);
    }
}

/// Checks that the error is proportional to hᵖ, where h is the step length and p is the order of the method.
#[test]
fn fixed_steps_have_their_order() {
    let error = |method, steps: usize| {
        let times = Tensor::from([0.0, 1.0]);
        let solver = Odeint::new().method(method).step_size(1.0 / steps as f64);
        let y = solver.call(|t, y| (y * t).cos() * y, &Tensor::scalar(1.0f64), &times);
        assert_eq!(y.accepted, steps);
        let exact =
            Odeint::new().rtol(1e-13).atol(1e-13).call(|t, y| (y * t).cos() * y, &Tensor::scalar(1.0f64), &times);
        (y.values - exact.values).abs().amax(..).item()
    };
    for (method, order) in [(Method::Euler, 1), (Method::Midpoint, 2), (Method::Rk4, 4)] {
        let ratio = error(method, 20) / error(method, 40);
        assert!((ratio.log2() - f64::from(order)).abs() < 0.35, "{method:?}: the order is {}", ratio.log2());
    }
}

/// The states within a step are interpolated. Their error is close to the error at the end of the step.
#[test]
fn interpolated_states_are_accurate() {
    let times = Tensor::linspace(0.0, 3.0, 200);
    for method in [Method::Bosh3, Method::Dopri5, Method::Rodas4] {
        let solver = Odeint::new().method(method).rtol(1e-6).atol(1e-6);
        let solved = solver.call(|t, y| y * t.cos(), &Tensor::scalar(1.0f64), &times);
        assert!(solved.accepted < 100, "{method:?}: {} steps", solved.accepted);
        let error = (solved.values / times.sin().exp() - 1.0).abs().amax(..).item();
        assert!(error < 2e-5, "{method:?}: {error}");
    }
}

#[test]
fn mistakes_are_errors() {
    let (y0, times) = (Tensor::from([1.0f64, 2.0]), Tensor::from([0.0, 1.0]));
    let refused = |solved: Result<_, Error>| match solved {
        Err(Error::Argument { message, at }) => {
            assert!(at.location.file().ends_with("equations.rs"));
            message
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    };
    let solver = Odeint::new();
    for wrong in [vec![0.0, 0.0], vec![0.0, 1.0, 0.5], vec![0.0, f64::NAN], vec![]] {
        assert!(refused(solver.try_call(|_, y| y, &y0, &Tensor::from(wrong))).contains("times"));
    }
    assert!(
        refused(solver.try_call(|_, y| y.sum(..), &y0, &times)).contains("the slope must have the shape [2], got []")
    );
    assert!(refused(solver.clone().rtol(-1.0).try_call(|_, y| y, &y0, &times)).contains("tolerance"));
    assert!(refused(solver.clone().step_size(0.0).try_call(|_, y| y, &y0, &times)).contains("step size"));
    let tape = Tape::new();
    let y = tape.var(&y0);
    assert!(matches!(solver.try_record(|_, y| y, y, &times), Err(Error::Argument { .. })));
}

#[test]
fn failures_are_errors() {
    let times = Tensor::from([0.0, 2.0]);
    let one = Tensor::scalar(1.0f64);
    // The solution 1 / (1 - t) has a pole at 1.
    let pole = Odeint::new().try_call(|_, y| y.square(), &one, &times).unwrap_err();
    assert!(matches!(pole, Error::StepTooSmall { time, .. } if (time - 1.0).abs() < 1e-3), "{pole}");
    let limit = Odeint::new().max_steps(3).rtol(1e-10).try_call(|t, y| y * t.cos(), &one, &times).unwrap_err();
    assert!(matches!(limit, Error::Limit { count: 3, unit: "steps", .. }), "{limit}");
    // The slope is NaN after time 1.
    let undefined = Odeint::new().try_call(|t, y| y * (1.0 - t).sqrt(), &one, &times).unwrap_err();
    assert!(matches!(undefined, Error::NotFinite { .. } | Error::StepTooSmall { .. }), "{undefined}");
    for y0 in [f64::NAN, f64::INFINITY] {
        let error = Odeint::new().try_call(|_, y| y, &Tensor::scalar(y0), &times).unwrap_err();
        assert!(error.to_string().starts_with("the initial state is not finite"), "{error}");
    }
    let error =
        Odeint::new().method(Method::Rk4).try_call(|_, y| y.log() * 1e3, &Tensor::scalar(0.5), &times).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    // The slope is 0, but its derivative is NaN.
    let error = Odeint::new()
        .method(Method::Rodas4)
        .try_call(|_, y| y.abs().sqrt(), &Tensor::scalar(0.0f64), &times)
        .unwrap_err();
    assert!(error.to_string().starts_with("a derivative of the slope at time 0.0 is not finite"), "{error}");
    // The slope is infinite at time 0. A time near 0 is written with an exponent.
    let error = Odeint::new().try_call(|t, y| t.rsqrt() + y * 0.0, &one, &Tensor::from([1.0, 0.0])).unwrap_err();
    assert!(error.sentence().contains("e-") && error.sentence().len() < 150, "{error}");
    // This method needs the derivative of the slope, which `floor_divide` does not have.
    let error = Odeint::new().method(Method::Rodas4).try_call(|_, y| y.floor_divide(2.0), &one, &times).unwrap_err();
    assert!(matches!(error, Error::Autograd(_)), "{error}");
}

#[test]
fn states_may_be_empty_or_have_any_shape() {
    let times = Tensor::from([0.0, 1.0]);
    for method in [Method::Euler, Method::Dopri5, Method::Rodas4] {
        let solver = Odeint::new().method(method);
        assert_eq!(solver.call(|_, y| y, &Tensor::<f64>::zeros([0, 3]), &times).values.shape(), &[2, 0, 3]);
    }
    let y = odeint(|_, y| y, &Tensor::<f64>::ones([2, 3, 1]), &times);
    assert_eq!(y.shape(), &[2, 2, 3, 1]);
    assert!((y.select(0, 1) - 1f64.exp()).abs().amax(..).item() < 1e-3);
    let single = odeint(|_, y| y, &Tensor::<f64>::ones([2]), &Tensor::from([0.5]));
    assert_eq!(single, Tensor::ones([1, 2]));
}

/// Tests problems in which the slopes are so large, or the tolerances so small, that the square of a slope divided by a tolerance overflows.
#[test]
fn overflow_in_the_first_step_does_not_end_in_nan() {
    let times = Tensor::from([0.0, 0.5, 1.0]);
    // The solution has a pole at exp(-400).
    let pole = Odeint::new().try_call(|_, y| y.exp(), &Tensor::scalar(400.0f64), &times).map(|solved| solved.values);
    assert!(matches!(pole, Err(Error::StepTooSmall { .. } | Error::NotFinite { .. })), "{pole:?}");
    // With an absolute tolerance of 0, the permitted error is 0 where the state is 0.
    for atol in [1e-200, 0.0] {
        for method in [Method::Bosh3, Method::Dopri5, Method::Rodas4] {
            let solver = Odeint::new().method(method).rtol(1e-6).atol(atol);
            let solved =
                solver.call(|_, y| stack(&[y.select(0, 1), -y.select(0, 0)], 0), &Tensor::from([1.0, 0.0]), &times);
            let error = (solved.values.select(1, 0) - times.cos()).abs().amax(..).item();
            assert!(error < 1e-4, "{method:?}, {atol:e}: {error}");
            // The second element and its error are always 0.
            let decay = solver.call(|_, y| -y, &Tensor::from([1.0, 0.0]), &times).values;
            let error = (decay - stack(&[(-&times).exp(), Tensor::zeros([3])], 1)).abs().amax(..).item();
            assert!(error < 1e-4, "{method:?}, {atol:e}: {error}");
        }
    }
}

/// The time is rounded in each step, so the state must advance by the rounded length.
#[test]
fn steps_at_large_times_have_the_length_of_the_rounded_times() {
    let times = Tensor::from([1e12, 1e12 + 1.0]);
    for method in [Method::Bosh3, Method::Dopri5, Method::Rodas4] {
        let y = Odeint::new().method(method).call(|_, y| y * 0.0 + 1.0, &Tensor::scalar(0.0f64), &times).values;
        assert!((y.get(&[1]).unwrap() - 1.0).abs() < 1e-12, "{method:?}: {y:?}");
    }
}

/// Checks that an interval of 3 steps takes 3 steps, although its length has a rounding error. A clearly longer interval takes 4.
#[test]
fn rounded_times_take_no_additional_fixed_step() {
    let solver = Odeint::new().method(Method::Rk4).step_size(0.1);
    let solved = solver.call(|_, y| y, &Tensor::scalar(1.0f64), &Tensor::from([1e6, 1e6 + 0.3]));
    assert_eq!(solved.accepted, 3);
    let solved = solver.call(|_, y| y, &Tensor::scalar(1.0f32), &Tensor::from([0.0, 0.3]));
    assert_eq!(solved.accepted, 3);
    let solved = solver.call(|_, y| y, &Tensor::scalar(1.0f64), &Tensor::from([0.0, 0.3 + 1e-9]));
    assert_eq!(solved.accepted, 4);
}

#[test]
fn recorded_steps_are_limited() {
    let tape = Tape::new();
    let y0 = tape.var(&Tensor::scalar(1.0f64));
    let solver = Odeint::new().method(Method::Rk4).step_size(0.5).max_steps(4);
    assert!(solver.try_record(|_, y| y, y0, &Tensor::from([0.0, 1.0, 2.0])).is_ok());
    for times in [vec![0.0, 1.0, 3.0], vec![0.0, 2.6]] {
        let error = solver.try_record(|_, y| y, y0, &Tensor::from(times)).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Limit { count: 4, unit: "steps", .. }), "{error}");
    }
}
