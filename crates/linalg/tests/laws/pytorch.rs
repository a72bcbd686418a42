//! Compares values and derivatives of orders 1 and 2 with results of PyTorch, which `tools/linalg_cases.py` computed.

use serde_json::Value;
use wengert_autograd::{Tape, Var};
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

use crate::triangular_system;

/// Returns the tensors of a JSON list. A null in the list becomes `None`.
fn tensors(list: &Value) -> Vec<Option<Tensor<f64>>> {
    let numbers = |list: &Value| list.as_array().unwrap().clone();
    let one = |value: &Value| {
        let shape: Vec<usize> = numbers(value.get(0)?).iter().map(|size| size.as_u64().unwrap() as usize).collect();
        let data: Vec<f64> = numbers(&value[1]).iter().map(|x| x.as_f64().unwrap()).collect();
        Some(Tensor::from_vec(data, &shape[..]))
    };
    list.as_array().unwrap().iter().map(one).collect()
}

/// Returns the results of an operation on `x`. `name` is the name of the operation, a space, and its options, each 0 or 1.
fn outputs<'t>(name: &str, x: &[Var<'t, f64>]) -> Vec<Var<'t, f64>> {
    let (name, options) = name.split_once(' ').unwrap_or((name, ""));
    let option = |position: usize| options.as_bytes()[position] == b'1';
    match name {
        "cholesky" if option(0) => vec![x[0].transpose(-2, -1).cholesky().transpose(-2, -1)],
        "cholesky" => vec![x[0].cholesky()],
        "cholesky_solve" => {
            vec![x[0].cholesky_solve(x[1], if option(0) { Triangle::Upper } else { Triangle::Lower })]
        }
        "solve_triangular" => vec![x[0].solve_triangular(x[1], triangular_system(option(0), option(1), option(2)))],
        "solve" => vec![x[0].solve(x[1])],
        "inv" => vec![x[0].inv()],
        "det" => vec![x[0].det()],
        "slogdet" => x[0].slogdet().to_vec(),
        "matrix_power" => vec![x[0].matrix_power(options.parse().unwrap())],
        "lu" => x[0].lu().to_vec(),
        "lu_factor" => x[0].lu_factor().to_vec(),
        "lu_solve" => vec![x[0].lu_solve(x[1], x[2])],
        other => panic!("the case {other} has no operation"),
    }
}

/// Returns a weighted sum of the elements of all variables in `list`, in row-major order. The first element is multiplied by weight(1), the
/// second by weight(2), and so on.
fn weighted<'t>(tape: &'t Tape<f64>, list: &[Var<'t, f64>], weight: fn(f64) -> f64) -> Var<'t, f64> {
    let (mut sum, mut start) = (tape.constant(0.0), 0);
    for x in list {
        let shape = x.shape();
        let count = shape.numel();
        let weights: Vec<f64> = (start..start + count).map(|k| weight((k + 1) as f64)).collect();
        sum += (*x * tape.constant(Tensor::from_vec(weights, &shape))).sum(..);
        start += count;
    }
    sum
}

/// Returns the gradients of the number `sum` with respect to `inputs`. The gradient is zero if the number does not depend on an input.
fn gradients<'t>(sum: Var<'t, f64>, inputs: &[Var<'t, f64>]) -> Vec<Var<'t, f64>> {
    inputs.iter().map(|&x| sum.grad_or_zeros([x])[0]).collect()
}

/// Checks the values `got` against the expected ones. `None` stands for zeros.
fn assert_close(case: &str, got: &[Var<'_, f64>], expected: &[Option<Tensor<f64>>]) {
    assert_eq!(got.len(), expected.len(), "{case}");
    for (got, expected) in got.iter().zip(expected) {
        let got = got.value();
        let expected = expected.clone().unwrap_or_else(|| Tensor::zeros(got.shape()));
        assert_eq!(got.shape(), expected.shape(), "{case}");
        if got.numel() > 0 {
            // One matrix is nearly singular, with the condition number 2.5e8. The relative error of its second derivatives grows with the
            // square of this number.
            let relative = if expected.abs().amax(..).item() > 1e6 { 1e-6 } else { 1e-11 };
            let scale = expected.abs().amax(..).item().max(1.0);
            let error = (&got - &expected).abs().amax(..).item();
            assert!(error <= relative * scale, "{case}: {error:e} of {scale}\n{got}\n{expected}");
        }
    }
}

#[test]
fn values_and_derivatives_are_pytorchs() {
    let cases: Value = serde_json::from_str(include_str!("pytorch.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() >= 70);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let tape = Tape::<f64>::new();
        let inputs: Vec<Var<'_, f64>> =
            tensors(&case["inputs"]).iter().map(|x| tape.var(x.as_ref().unwrap())).collect();
        let results = outputs(name, &inputs);
        assert_close(&format!("{name} {:?}", inputs[0].shape()), &results, &tensors(&case["outputs"]));
        let first = gradients(weighted(&tape, &results, f64::cos), &inputs);
        let expected = tensors(&case["first"]);
        assert_close(&format!("{name}, first derivative"), &first, &expected);
        // A gradient that is null in PyTorch takes no part in the sum.
        let present: Vec<Var<'_, f64>> =
            first.iter().zip(&expected).filter(|(_, expected)| expected.is_some()).map(|(&x, _)| x).collect();
        let second = gradients(weighted(&tape, &present, f64::sin), &inputs);
        assert_close(&format!("{name}, second derivative"), &second, &tensors(&case["second"]));
    }
}
