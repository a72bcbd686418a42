//! Derivatives of the solutions of initial value problems.

use wengert_autograd::transforms::{grad, hessian, vmap};
use wengert_autograd::{GradCheck, gradcheck, prelude::*};
use wengert_solvers::{Method, Odeint};

/// Returns dy/dt for a damped oscillator with a periodic force. The arguments are the stiffness of the oscillator and
/// the frequency of the force.
fn oscillator<'t>(t: Var<'t, f64>, y: Var<'t, f64>, args: &[Var<'t, f64>]) -> Var<'t, f64> {
    let (x, v) = (y.select(0, 0), y.select(0, 1));
    stack(&[v, (t * args[1]).sin() - x.pow(3.0) * args[0] - v * 0.2], 0)
}

fn inputs() -> [Tensor<f64>; 4] {
    [Tensor::from([1.0, -0.5]), Tensor::from([0.0, 0.4, 1.0]), Tensor::scalar(0.7), Tensor::scalar(1.3)]
}

#[test]
fn recorded_steps_have_derivatives_of_both_modes_and_orders() {
    let [y0, times, stiffness, frequency] = inputs();
    for method in [Method::Euler, Method::Midpoint, Method::Rk4] {
        let solver = Odeint::new().method(method).step_size(0.2);
        gradcheck(
            |[y0, a, b]| solver.record(|t, y| oscillator(t, y, &[a, b]), y0, &times),
            [&y0, &stiffness, &frequency],
        )
        .unwrap();
    }
}

/// The solutions have errors of about the tolerance, which limits the accuracy of the differences.
#[test]
fn the_adjoint_has_first_derivatives_of_both_modes() {
    let [y0, times, stiffness, frequency] = inputs();
    for method in [Method::Dopri5, Method::Bosh3, Method::Rodas4] {
        let tolerance = if method == Method::Dopri5 { 1e-10 } else { 1e-8 };
        let solver = Odeint::new().method(method).rtol(tolerance).atol(tolerance);
        let check = GradCheck::new().order(1).accuracy(tolerance * 1e3).step(1e-2);
        let check = if method == Method::Dopri5 { check } else { check.skip_forward() };
        check
            .check(
                |[y0, times, a, b]| solver.record_adjoint(oscillator, y0, times, &[a, b]),
                [&y0, &times, &stiffness, &frequency],
            )
            .unwrap();
    }
}

#[test]
fn the_adjoint_has_second_derivatives_of_both_modes() {
    let solver = Odeint::new().rtol(1e-9).atol(1e-9);
    GradCheck::new()
        .accuracy(1e-6)
        .step(1e-2)
        .check(
            |[y0, times, a]| solver.record_adjoint(|t, y, args| t.cos() - y.square() * args[0], y0, times, &[a]),
            [&Tensor::scalar(0.5), &Tensor::from([0.1, 0.4]), &Tensor::scalar(0.8)],
        )
        .unwrap();
}

#[test]
fn wrong_arguments_of_the_adjoint_are_errors() {
    let (tape, other) = (Tape::<f64>::new(), Tape::new());
    let number = Tensor::scalar(0.5);
    let (y0, rate, times) = (tape.var(&number), tape.var(&number), tape.constant(Tensor::from([0.0, 1.0])));
    let record =
        |solver: Odeint, times, rate| solver.try_record_adjoint(|_, y, args| -(y * args[0]), y0, times, &[rate]);
    assert!(record(Odeint::new(), times, rate).is_ok());
    for solver in [Odeint::new().rtol(-1e-6), Odeint::new().atol(f64::NAN), Odeint::new().rtol(0.0).atol(0.0)] {
        assert!(record(solver, times, rate).is_err());
    }
    for wrong in [tape.constant(1.0), tape.constant(Tensor::zeros([0])), tape.constant(Tensor::zeros([1, 2]))] {
        let text = record(Odeint::new(), wrong, rate).unwrap_err().to_string();
        assert!(text.contains("the times must be a vector with at least one time"), "{text}");
    }
    assert!(record(Odeint::new(), times, other.var(&number)).is_err());
    assert!(record(Odeint::new(), other.constant(Tensor::from([0.0, 1.0])), rate).is_err());
    // Equal times are an error, but only when the value is requested.
    assert!(record(Odeint::new(), tape.constant(Tensor::from([1.0, 1.0])), rate).unwrap().try_value().is_err());
}

/// Checks that the check refuses gradients with a relative error of 1e-3.
#[test]
fn the_check_of_the_adjoint_finds_wrong_derivatives() {
    let [y0, times, stiffness, frequency] = inputs();
    let solver = Odeint::new().rtol(1e-11).atol(1e-11);
    let checked = GradCheck::new().order(1).accuracy(1e-8).step(1e-3).check(
        |[y0, times, a, b]| {
            let y = solver.record_adjoint(oscillator, y0, times, &[a, b]);
            y.map_gradient(|gradient| gradient * 1.001)
        },
        [&y0, &times, &stiffness, &frequency],
    );
    assert!(checked.is_err());
}

/// Compares the gradients of the adjoint, which solves the equation backward in time, with the derivatives of many small recorded steps.
#[test]
fn the_adjoint_agrees_with_recorded_steps() {
    let [y0, times, stiffness, frequency] = inputs();
    let fine = Odeint::new().method(Method::Rk4).step_size(0.005);
    let adaptive = Odeint::new().rtol(1e-10).atol(1e-10);
    let recorded = grad(
        |[y0, a, b]| fine.record(|t, y| oscillator(t, y, &[a, b]), y0, &times).square().sum(..),
        [&y0, &stiffness, &frequency],
    );
    let adjoint = grad(
        |[y0, a, b]| adaptive.record_adjoint(oscillator, y0, y0.tape().constant(&times), &[a, b]).square().sum(..),
        [&y0, &stiffness, &frequency],
    );
    for (x, y) in recorded.iter().zip(&adjoint) {
        assert!((x - y).abs().amax(..).item() < 1e-8, "{x:?} {y:?}");
    }
}

#[test]
fn a_hessian_of_the_adjoint_is_exact() {
    // y(1) = exp(-k²), so the second derivative with respect to k is (4 k² - 2) exp(-k²).
    let solver = Odeint::new().rtol(1e-11).atol(1e-11);
    let (y0, times) = (Tensor::scalar(1.0), Tensor::from([0.0, 1.0]));
    let second = hessian(
        |k| {
            let tape = k.tape();
            let (y0, times) = (tape.constant(&y0), tape.constant(&times));
            solver.record_adjoint(|_, y, args| -(y * args[0].square()), y0, times, &[k]).select(0, 1)
        },
        &Tensor::scalar(0.8),
    );
    let expected = (4.0 * 0.64 - 2.0) * (-0.64f64).exp();
    assert!((second.item() - expected).abs() < 1e-8, "{} against {expected}", second.item());
}

#[test]
fn a_batch_is_a_loop() {
    let (times, y0s) = (Tensor::from([0.0, 0.5]), Tensor::from([[1.0, -0.5], [0.2, 0.3]]));
    let adaptive = Odeint::new().rtol(1e-9).atol(1e-9);
    let (a, b) = (Tensor::scalar(0.7), Tensor::scalar(1.3));
    let batch = vmap(
        |y0| {
            let tape = y0.tape();
            let times = tape.constant(&times);
            adaptive.record_adjoint(oscillator, y0, times, &[tape.constant(&a), tape.constant(&b)])
        },
        &y0s,
    );
    for row in 0..2 {
        let single = adaptive.call(
            |t, y| oscillator(t, y, &[t.tape().constant(&a), t.tape().constant(&b)]),
            &y0s.select(0, row),
            &times,
        );
        assert_eq!(batch.select(0, row), single.values);
    }
}

/// Passes a parameter of a model to the solver as an argument. The right-hand side binds the parameter to this argument.
#[test]
fn a_model_is_differentiated_by_binding_its_parameters() {
    let weight = Parameter::new(Tensor::from([[-0.5, 1.0], [-1.0, -0.2]]));
    let (y0, times) = (Tensor::from([1.0, 0.0]), Tensor::from([0.0, 1.0]));
    let own = weight.clone();
    let solver = Odeint::new().rtol(1e-10).atol(1e-10);
    let tape = Tape::new();
    let y = solver.record_adjoint(
        move |t, y, args| {
            t.tape().bind(&own, args[0]);
            t.tape().parameter(&own).matmul(y).tanh()
        },
        tape.constant(&y0),
        tape.constant(&times),
        &[tape.parameter(&weight)],
    );
    let gradients = y.square().sum(..).backward();
    let fine = Odeint::new().method(Method::Rk4).step_size(0.01);
    let expected = grad(
        |w| fine.record(|_, y| w.matmul(y).tanh(), w.tape().constant(&y0), &times).square().sum(..),
        &weight.value,
    );
    assert!((gradients.of(&weight) - expected).abs().amax(..).item() < 1e-8);
}

#[test]
fn a_failure_while_a_value_is_computed_is_an_error() {
    let tape = Tape::new();
    let (y0, times) = (tape.var(&Tensor::scalar(1.0f64)), tape.constant(Tensor::from([0.0, 2.0])));
    let y = Odeint::new().record_adjoint(|_, y, _| y.square(), y0, times, &[]);
    let text = y.try_value().unwrap_err().to_string();
    assert!(text.starts_with("the step at time ") && text.contains(file!()), "{text}");
    let times = tape.constant(Tensor::from([0.0, 0.5]));
    let y = Odeint::new().record_adjoint(|_, y, _| -y, y0, times, &[]);
    let text = (y.sum(..) * f64::NAN).grad([y0])[0].try_value().unwrap_err().to_string();
    assert!(text.starts_with("a gradient of the solution is not finite"), "{text}");
}

/// Checks the derivative with respect to the first time for a loss with a much larger gradient at the first state than at the last one. The
/// first state does not depend on the first time, so the large gradient must not cause rounding errors.
#[test]
fn the_derivative_of_the_first_time_does_not_cancel() {
    let solver = Odeint::new().rtol(1e-9).atol(1e-9);
    let tape = Tape::<f64>::new();
    let (y0, times) = (tape.constant(Tensor::scalar(1.0)), tape.var(&Tensor::from([0.0, 1.0])));
    let y = solver.record_adjoint(|_, y, _| -y, y0, times, &[]);
    let [slopes] = (y.select(0, 0) * 1e17 + y.select(0, 1)).grad([times]);
    assert!((slopes.select(0, 0).item() - (-1f64).exp()).abs() < 1e-7, "{}", slopes.select(0, 0).item());
    let single = tape.var(&Tensor::from([0.5]));
    let [slope] = solver.record_adjoint(|_, y, _| -y, y0, single, &[]).sum(..).grad([single]);
    assert_eq!(slope.value(), Tensor::from([0.0]));
}

#[test]
fn gradients_of_small_and_large_losses_are_accurate() {
    // y'' = -a y from y = 0. The state stays 0, so only the adjoint has an error.
    let gradients = |factor: f64| {
        let tape = Tape::<f64>::new();
        let (a, y0) = (tape.var(&Tensor::scalar(3.0)), tape.var(&Tensor::from([0.0, 0.0])));
        let times = tape.constant(Tensor::from([0.0, 5.0, 10.0]));
        let solver = Odeint::new().rtol(1e-6);
        let y = solver.record_adjoint(
            |_, y, args| stack(&[y.select(0, 1), -(y.select(0, 0) * args[0])], 0),
            y0,
            times,
            &[a],
        );
        let [by_start] = (y.select(0, 2).select(0, 0) * factor).grad([y0]);
        by_start.value() / factor
    };
    let root = 3f64.sqrt();
    let expected = Tensor::from([(root * 10.0).cos(), (root * 10.0).sin() / root]);
    for factor in [1e-12, 1e-6, 1.0, 1e6] {
        let got = gradients(factor);
        assert!((&got - &expected).abs().amax(..).item() < 1e-3, "{factor:e}: {got}, not {expected}");
    }
}
