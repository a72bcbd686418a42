//! Compares the solvers with SciPy, by the cases that `tools/solver_cases.py` wrote, and checks the derivatives of their solutions.

mod equation_derivatives;
mod equations;
mod fits;
mod integrals;
mod roots;

use serde_json::Value;
use wengert_autograd::prelude::*;

/// Returns the cases of the table `table` in `cases.json`.
fn cases(table: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../cases.json")).unwrap();
    let cases = all[table].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{table} has no cases");
    cases
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn vector(value: &Value) -> Tensor<f64> {
    Tensor::from(numbers(value))
}

/// Returns the elements of a vector as variables.
fn parts<'t, T: wengert_tensor::Float, const N: usize>(x: Var<'t, T>) -> [Var<'t, T>; N] {
    std::array::from_fn(|i| x.select(0, i))
}

fn assert_near(got: &[f64], expected: &[f64], rtol: f64, atol: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (x, y) in got.iter().zip(expected) {
        assert!((x - y).abs() <= atol + rtol * y.abs(), "{what}: {got:?}, expected {expected:?}");
    }
}
