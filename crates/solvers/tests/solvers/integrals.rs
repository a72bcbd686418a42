//! Integrals.

use wengert_autograd::prelude::*;
use wengert_autograd::{GradCheck, gradcheck};
use wengert_solvers::{Error, Quad, quad};
use wengert_tensor::Float;

use crate::{cases, name};

/// Returns the value at `x` of the function with this name.
fn function<'t, T: Float>(name: &str, x: Var<'t, T>) -> Var<'t, T> {
    match name {
        "gauss" => (-x.square()).exp(),
        "runge" => (x.square() * 25.0 + 1.0).reciprocal(),
        "root" => x.sqrt(),
        "logarithm" => x.log(),
        "waves" => (x * 50.0).cos() * x,
        "kink" => (x - 0.3).abs(),
        "lorentz" => (x.square() + 1.0).reciprocal(),
        "gamma" => x.pow(3.0) * (-x).exp(),
        "tail" | "reversed" => x.exp(),
        other => panic!("no function {other}"),
    }
}

fn limits(case: &serde_json::Value) -> [f64; 2] {
    [0, 1].map(|i| case["limits"][i].as_str().unwrap().parse().unwrap())
}

#[test]
fn integrals_are_scipys() {
    for case in cases("integrals") {
        let (name, [a, b], expected) = (name(&case), limits(&case), case["value"].as_f64().unwrap());
        let found = Quad::new().epsabs(1e-12).epsrel(1e-12).call(|x: Var<'_, f64>| function(name, x), a, b);
        let error = (found.value.item() - expected).abs();
        assert!(error <= 2e-12 * expected.abs().max(1.0), "{name}: {} for {expected}", found.value.item());
        // The estimate bounds the error, up to the last digits of SciPy's value.
        assert!(error <= found.error + 1e-14, "{name}: {error}, estimate {}", found.error);
        assert_eq!(found.evaluations, 21 * (2 * found.intervals - 1), "{name}");
        // Without extrapolation, a singularity takes more evaluations than SciPy's.
        let factor = if ["logarithm", "root", "kink"].contains(&name) { 12.0 } else { 2.0 };
        let evaluations = case["evaluations"].as_f64().unwrap();
        assert!(
            found.evaluations as f64 <= factor * evaluations + 42.0,
            "{name}: {} for {evaluations}",
            found.evaluations
        );
    }
}

#[test]
fn integrals_in_f32_have_the_accuracy_of_f32() {
    for case in cases("integrals") {
        let (name, [a, b], expected) = (name(&case), limits(&case), case["value"].as_f64().unwrap());
        let found = Quad::new().epsabs(1e-5).epsrel(1e-5).call(|x: Var<'_, f32>| function(name, x), a, b);
        let error = (f64::from(found.value.item()) - expected).abs();
        assert!(error <= 3e-5 * expected.abs().max(1.0), "{name}: {} for {expected}", found.value.item());
    }
}

#[test]
fn functions_may_return_arrays() {
    let value = quad(|x: Var<'_, f64>| stack(&[x.sin(), x.cos(), x, x * 0.0], 0).reshape([2, 2]), 0.0, 1.0);
    let expected = Tensor::from([[1.0 - 1f64.cos(), 1f64.sin()], [0.5, 0.0]]);
    assert!((value - expected).abs().amax(..).item() < 1e-15);
    assert_eq!(quad(|x: Var<'_, f64>| x.expand([0]), 0.0, 1.0).shape(), &[0]);
    assert_eq!(quad(|x: Var<'_, f64>| x, 2.0, 2.0).item(), 0.0);
    // Tests a function that does not depend on its argument.
    assert!((quad(|x: Var<'_, f64>| x.tape().constant(2.0), 0.0, 3.0).item() - 6.0).abs() < 1e-14);
}

#[test]
fn failures_are_errors() {
    let solver = Quad::new();
    let error = solver.try_call(|x: Var<'_, f64>| x.sqrt(), -1.0, 1.0).unwrap_err();
    assert!(error.to_string().starts_with("the function at -"), "{error}");
    assert!(matches!(solver.try_call(|x: Var<'_, f64>| x, f64::NAN, 1.0), Err(Error::Argument { .. })));
    let error = solver.try_call(|x: Var<'_, f64>| x.reciprocal(), 0.0, 1.0).unwrap_err();
    assert!(matches!(error, Error::Limit { unit: "intervals", .. }), "{error}");
    let error = Quad::new().limit(3).try_call(|x: Var<'_, f64>| (x * 1e3).sin(), 0.0, 1.0).unwrap_err();
    assert!(matches!(error, Error::Limit { count: 3, .. }) && error.to_string().contains("`limit`"), "{error}");
    let tape = Tape::new();
    let (end, arg) = (tape.var(&Tensor::scalar(f64::INFINITY)), tape.var(&Tensor::from([1.0, 2.0])));
    let infinite = solver.record(|x, _| (-x).exp(), 0.0, end, &[]);
    assert!(
        infinite.try_value().unwrap_err().to_string().starts_with("quad: a limit that is a variable must be finite")
    );
    assert!(matches!(solver.try_record(|x, _| x, 0.0, arg, &[]), Err(Error::Argument { .. })));
    assert!(matches!(solver.try_record::<f64>(|x, _| x, 0.0, 1.0, &[]), Err(Error::Argument { .. })));
}

#[test]
fn integrals_have_derivatives_of_both_modes_and_orders() {
    let solver = Quad::new().epsabs(1e-14).epsrel(1e-14);
    gradcheck(
        |[a, b, p]| solver.record(|x, args| (x * args[0]).sin().exp(), a, b, &[p]),
        [&Tensor::scalar(0.2), &Tensor::scalar(1.1), &Tensor::from([0.7, -1.2])],
    )
    .unwrap();
    GradCheck::new()
        .accuracy(1e-10)
        .step(1e-4)
        .check(
            |[p]| solver.record(|x, args| (-(x.square() * args[0])).exp(), f64::NEG_INFINITY, f64::INFINITY, &[p]),
            [&Tensor::scalar(1.3)],
        )
        .unwrap();
}

#[test]
fn integrals_that_overflow_are_errors() {
    let wide = |f: fn(Var<'_, f64>) -> Var<'_, f64>, a, b| Quad::new().try_call(f, a, b).map(|found| found.value);
    for (found, what) in [
        (wide(|x| x * 0.0 + 1e308, 0.0, 10.0), "a large function"),
        (wide(|x| x * 0.0 + 1.5e308, 0.0, 1.0), "a large sum"),
        (wide(|x| (x * 0.0).exp() * 0.0, -1.5e308, 1.5e308), "a wide interval"),
    ] {
        assert!(matches!(found, Err(Error::NotFinite { .. })), "{what}: {found:?}");
    }
    let found = Quad::new().try_call(|x: Var<'_, f32>| x * 0.0 + 1e38, 0.0, 10.0).map(|found| found.value);
    assert!(matches!(found, Err(Error::NotFinite { .. })), "{found:?}");
}

/// At an end that is not 0, the parts become too narrow before a node is rounded to the end.
#[test]
fn a_singularity_at_the_upper_end_is_an_error_of_the_limit() {
    let error = Quad::new().try_call(|x: Var<'_, f64>| (1.0 - x).sqrt().reciprocal(), 0.0, 1.0).unwrap_err();
    assert!(matches!(error, Error::Limit { unit: "intervals", .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("the part is too narrow") && !text.contains("`limit`"), "{text}");
    // The substitution x = 1 - u moves the singularity to the end 0.
    let value = quad(|u: Var<'_, f64>| u.sqrt().reciprocal(), 0.0, 1.0).item();
    assert!((value - 2.0).abs() < 1e-7, "{value}");
    // An infinite interval is mapped to (0, 1], so the singularity at the finite end moves from 0 to 1. The sum of an integral over (0, 1)
    // and an integral over (1, ∞) avoids this.
    fn f(x: Var<'_, f64>) -> Var<'_, f64> {
        (-x).exp() / x.sqrt()
    }
    let error = Quad::new().try_call(f, 0.0, f64::INFINITY).unwrap_err();
    assert!(matches!(error, Error::Limit { unit: "intervals", .. }), "{error}");
    let value = quad(f, 0.0, 1.0).item() + quad(f, 1.0, f64::INFINITY).item();
    assert!((value - std::f64::consts::PI.sqrt()).abs() < 1e-7, "{value}");
}

#[test]
fn gradients_of_small_and_large_losses_are_accurate() {
    for factor in [1e-12, 1.0, 1e12] {
        let tape = Tape::<f64>::new();
        let (a, end) = (tape.var(&Tensor::scalar(50.0)), tape.var(&Tensor::scalar(10.0)));
        let integral = Quad::new().record(|x, args| (x * args[0]).sin(), 0.0, end, &[a]); // (1 - cos(a end)) / a
        let [by_a, by_end] = (integral * factor).grad([a, end]);
        let expected = (500f64.sin() * 500.0 + 500f64.cos() - 1.0) / 2500.0;
        assert!((by_a.item() / factor - expected).abs() < 1e-8, "{factor:e}: {}", by_a.item() / factor);
        assert!((by_end.item() / factor - 500f64.sin()).abs() < 1e-12);
    }
}

#[test]
fn a_tolerance_must_not_be_negative() {
    for wrong in [f64::NAN, -1e-8] {
        for solver in [Quad::new().epsabs(wrong), Quad::new().epsrel(wrong)] {
            let error = solver.try_call(|x: Var<'_, f64>| x.exp(), 0.0, 1.0).unwrap_err();
            assert!(
                error.sentence().ends_with(&format!("must be a number that is not negative, got {wrong:?}")),
                "{error}"
            );
        }
    }
}
