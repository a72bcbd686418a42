//! Compares values and derivatives of orders 1 and 2 with figures that `tools/derivative_cases.py` computed with PyTorch. Also compares
//! [`Vmap`] over a batch of two examples with a loop over the examples.

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_autograd::transforms::Vmap;
use wengert_special::prelude::*;

/// Returns the tensors of a JSON list. A null becomes `None`.
fn tensors(list: &Value) -> Vec<Option<Tensor<f64>>> {
    let numbers = |list: &Value| list.as_array().unwrap().clone();
    let one = |value: &Value| {
        let shape: Vec<usize> = numbers(value.get(0)?).iter().map(|size| size.as_u64().unwrap() as usize).collect();
        let data: Vec<f64> = numbers(&value[1]).iter().map(|x| x.as_f64().unwrap()).collect();
        Some(Tensor::from_vec(data, &shape[..]))
    };
    list.as_array().unwrap().iter().map(one).collect()
}

fn apply_named<'t>(name: &str, x: &[Var<'t, f64>]) -> Var<'t, f64> {
    let shape = Tensor::from([[0.7], [2.5]]);
    match name {
        "ndtr" => x[0].ndtr(),
        "log_ndtr" => x[0].log_ndtr(),
        "ndtri" => x[0].ndtri(),
        "erfcx" => x[0].erfcx(),
        "i0" => x[0].i0(),
        "i0e" => x[0].i0e(),
        "i1" => x[0].i1(),
        "i1e" => x[0].i1e(),
        "gammaln" => x[0].gammaln(),
        "multigammaln" => x[0].multigammaln(3),
        "polygamma1" => x[0].polygamma(1),
        "polygamma3" => x[0].polygamma(3),
        "betaln" => x[0].betaln(x[1]),
        "gammainc" => x[0].tape().constant(shape).gammainc(x[0]),
        "gammaincc" => x[0].tape().constant(shape).gammaincc(x[0]),
        other => panic!("the case {other} has no function"),
    }
}

/// Returns the sum of all elements of the arrays in `list`, times weight(1), weight(2), …, in row-major order.
fn weighted<'t>(tape: &'t Tape<f64>, list: &[Var<'t, f64>], weight: fn(f64) -> f64) -> Var<'t, f64> {
    let (mut sum, mut count) = (tape.constant(0.0), 0.0);
    for x in list {
        let weights = Tensor::from_fn(x.shape(), |_| {
            count += 1.0;
            weight(count)
        });
        sum += (*x * weights).sum(..);
    }
    sum
}

/// Asserts that `got` equals `expected`. The error is relative to the largest element of `expected`, or to 1 if that is larger. `None`
/// stands for zeros.
fn assert_close(name: &str, got: &Var<'_, f64>, expected: Option<&Tensor<f64>>, tolerance: f64) {
    let got = got.value();
    let expected = expected.cloned().unwrap_or_else(|| Tensor::zeros(got.shape()));
    assert_eq!(got.shape(), expected.shape(), "{name}");
    let scale = expected.iter().fold(1.0, |all: f64, x| all.max(x.abs()));
    for (got, expected) in got.iter().zip(expected.iter()) {
        assert!((got - expected).abs() <= tolerance * scale, "{name}: {got:e}, but PyTorch gives {expected:e}");
    }
}

#[test]
fn values_and_derivatives_are_pytorchs() {
    let cases: Value = serde_json::from_str(include_str!("../pytorch.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let tape = Tape::<f64>::new();
        let inputs: Vec<Var<'_, f64>> = tensors(&case["inputs"]).into_iter().flatten().map(|x| tape.var(&x)).collect();
        let value = apply_named(name, &inputs);
        // PyTorch's trigamma function has nine correct digits. PyTorch's second derivatives of the other functions have about ten.
        let tolerance_for = |tolerance: f64| if name == "polygamma1" { 1e-9 } else { tolerance };
        assert_close(name, &value, tensors(&case["outputs"])[0].as_ref(), tolerance_for(1e-13));
        let total = weighted(&tape, &[value], f64::cos);
        let first: Vec<Var<'_, f64>> = inputs.iter().map(|&x| total.grad_or_zeros([x])[0]).collect();
        let sum = weighted(&tape, &first, f64::sin);
        let expected = tensors(&case["first"]).into_iter().zip(tensors(&case["second"]));
        for ((&x, slope), (first, second)) in inputs.iter().zip(&first).zip(expected) {
            assert_close(&format!("{name}, first derivative"), slope, first.as_ref(), tolerance_for(1e-12));
            let slope = sum.grad_or_zeros([x])[0];
            assert_close(&format!("{name}, second derivative"), &slope, second.as_ref(), 1e-9);
        }
    }
}

/// Returns the value of a function, and the gradient of the square of the value with respect to the first input.
fn with_gradient<'t>(name: &str, x: &[Var<'t, f64>]) -> [Var<'t, f64>; 2] {
    let y = apply_named(name, x);
    [y, (y * y).sum(..).grad_or_zeros([x[0]])[0]]
}

#[test]
fn vmap_equals_a_loop() {
    let cases: Value = serde_json::from_str(include_str!("../pytorch.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let inputs: Vec<Tensor<f64>> = tensors(&case["inputs"]).into_iter().flatten().collect();
        // The second example has arguments a little nearer to 0.
        let examples = [1.0, 0.9].map(|factor| inputs.iter().map(|x| x * factor).collect::<Vec<_>>());
        let stacked: Vec<Tensor<f64>> =
            (0..inputs.len()).map(|k| stack(&[examples[0][k].clone(), examples[1][k].clone()], 0)).collect();
        let batched = match &stacked[..] {
            [x] => Vmap::new().call(|[x]| with_gradient(name, &[x]), [x]),
            [x, y] => Vmap::new().call(|[x, y]| with_gradient(name, &[x, y]), [x, y]),
            _ => unreachable!(),
        };
        for (k, example) in examples.iter().enumerate() {
            let tape = Tape::<f64>::new();
            let expected = with_gradient(name, &example.iter().map(|x| tape.var(x)).collect::<Vec<_>>());
            for (batched, expected) in batched.iter().zip(expected) {
                assert_eq!(batched.select(0, k as isize), expected.value(), "{name}");
            }
        }
    }
}
