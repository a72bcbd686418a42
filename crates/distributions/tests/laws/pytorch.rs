//! Compares values and derivatives of orders 1 and 2 with results that `tools/derivative_cases.py` computed with PyTorch. Also compares
//! `vmap` with loops for the same cases.

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_autograd::transforms::Vmap;
use wengert_distributions::kl_divergence;
use wengert_distributions::prelude::*;

type V<'t> = Var<'t, f64>;

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

/// Returns true if the method `function` of a distribution has an argument, such as the x of `log_prob`. A case has it as its first input.
fn takes_value(function: &str) -> bool {
    matches!(function, "log_prob" | "cdf" | "icdf")
}

/// Calls the method `$function` of a distribution. If the method has an argument, it is the first input. The other inputs are the parameters
/// of the distribution.
macro_rules! call {
    ($function:expr, $x:expr, |$p:ident| { $($name:literal => $make:expr,)* }, $family:expr) => {{
        let (value, $p) = if takes_value($function) { (Some($x[0]), &$x[1..]) } else { (None, &$x[..]) };
        match ($family, value) {
            $(($name, value) => {
                let distribution = $make;
                match ($function, value) {
                    ("log_prob", Some(value)) => distribution.log_prob(value),
                    ("cdf", Some(value)) => distribution.cdf(value),
                    ("icdf", Some(value)) => distribution.icdf(value),
                    ("entropy", _) => distribution.entropy(),
                    ("mean", _) => distribution.mean(),
                    ("variance", _) => distribution.variance(),
                    (other, _) => panic!("no function {other}"),
                }
            })*
            (other, _) => panic!("no distribution {other}"),
        }
    }};
}

/// Returns the divergence of two distributions of one family. The second half of `p` has the parameters of the second distribution.
fn divergence<'t>(family: &str, p: &[V<'t>]) -> V<'t> {
    macro_rules! of_one_family {
        ($($name:ident: $($first:literal)+, $($second:literal)+;)*) => {
            match family {
                $(stringify!($name) => kl_divergence(&$name::new($(p[$first]),+), &$name::new($(p[$second]),+)),)*
                other => panic!("no divergence of {other}"),
            }
        };
    }
    of_one_family! {
        Normal: 0 1, 2 3; HalfNormal: 0, 1; LogNormal: 0 1, 2 3; Laplace: 0 1, 2 3; Cauchy: 0 1, 2 3; Gumbel: 0 1, 2 3;
        Exponential: 0, 1; Gamma: 0 1, 2 3; Beta: 0 1, 2 3; Dirichlet: 0, 1; Poisson: 0, 1; Bernoulli: 0, 1; Geometric: 0, 1;
    }
}

/// Returns the result of the case `name`, which consists of a family and a function, for the inputs `x`.
fn result<'t>(name: &str, x: &[V<'t>]) -> V<'t> {
    let (family, function) = name.split_once(' ').unwrap();
    if function == "kl" {
        return divergence(family, x);
    }
    call!(
        function,
        x,
        |p| {
            "Normal" => Normal::new(p[0], p[1]),
            "HalfNormal" => HalfNormal::new(p[0]),
            "LogNormal" => LogNormal::new(p[0], p[1]),
            "StudentT" => StudentT::new(p[0], p[1], p[2]),
            "Cauchy" => Cauchy::new(p[0], p[1]),
            "HalfCauchy" => HalfCauchy::new(p[0]),
            "Laplace" => Laplace::new(p[0], p[1]),
            "Gumbel" => Gumbel::new(p[0], p[1]),
            "Exponential" => Exponential::new(p[0]),
            "Weibull" => Weibull::new(p[0], p[1]),
            "Uniform" => Uniform::new(p[0], p[1]),
            "Gamma" => Gamma::new(p[0], p[1]),
            "InverseGamma" => InverseGamma::new(p[0], p[1]),
            "Beta" => Beta::new(p[0], p[1]),
            "Dirichlet" => Dirichlet::new(p[0]),
            "Poisson" => Poisson::new(p[0]),
            "Bernoulli" => Bernoulli::new(p[0]),
            "Geometric" => Geometric::new(p[0]),
            "Binomial" => Binomial::new(5.0, p[0]),
            "NegativeBinomial" => NegativeBinomial::new(p[0], p[1]),
            "Categorical" => Categorical::new(p[0]),
            "MultivariateNormal" => MultivariateNormal::new(p[0], (p[1] + p[1].transpose(-2, -1)) * 0.5),
        },
        family
    )
}

/// Returns the weighted sum of all elements of the arrays in `list`. The elements in row-major order have the weights weight(1), weight(2),
/// ….
fn weighted<'t>(tape: &'t Tape<f64>, list: &[V<'t>], weight: fn(f64) -> f64) -> V<'t> {
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

/// Asserts that `got` differs from `expected` by at most `tolerance` times the largest magnitude in `expected`, or times 1 if this magnitude
/// is below 1. `None` stands for zeros.
fn assert_close(name: &str, got: V<'_>, expected: Option<&Tensor<f64>>, tolerance: f64) {
    let got = got.value();
    let expected = expected.cloned().unwrap_or_else(|| Tensor::zeros(got.shape()));
    assert_eq!(got.shape(), expected.shape(), "{name}");
    let scale = expected.iter().fold(1.0, |all: f64, x| all.max(x.abs()));
    for (got, expected) in got.iter().zip(expected.iter()) {
        assert!((got - expected).abs() <= tolerance * scale, "{name}: {got:e}, but PyTorch gives {expected:e}");
    }
}

const DISCRETE: [&str; 6] = ["Poisson", "Bernoulli", "Geometric", "Binomial", "NegativeBinomial", "Categorical"];

/// Returns the number of inputs of the case `name` that are counts, which have no derivatives.
fn counts(name: &str) -> usize {
    let (family, function) = name.split_once(' ').unwrap();
    usize::from(DISCRETE.contains(&family) && function == "log_prob")
}

#[test]
fn values_and_derivatives_are_pytorchs() {
    let cases: Value = serde_json::from_str(include_str!("../pytorch.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() >= 100);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let tape = Tape::<f64>::new();
        let inputs: Vec<V<'_>> = tensors(&case["inputs"]).into_iter().flatten().map(|x| tape.var(&x)).collect();
        let value = result(name, &inputs);
        assert_close(name, value, tensors(&case["outputs"])[0].as_ref(), 1e-12);
        let variables = &inputs[counts(name)..];
        let total = weighted(&tape, &[value], f64::cos);
        let first: Vec<V<'_>> = variables.iter().map(|&x| total.grad_or_zeros([x])[0]).collect();
        let [expected, seconds] = ["first", "second"].map(|key| tensors(&case[key])[counts(name)..].to_vec());
        // Gradients that are null in PyTorch's results are left out of the sum.
        let present: Vec<V<'_>> =
            first.iter().zip(&expected).filter(|(_, expected)| expected.is_some()).map(|(&x, _)| x).collect();
        let sum = weighted(&tape, &present, f64::sin);
        for (k, &x) in variables.iter().enumerate() {
            assert_close(&format!("{name}, first derivative {k}"), first[k], expected[k].as_ref(), 1e-11);
            let second = sum.grad_or_zeros([x])[0];
            assert_close(&format!("{name}, second derivative {k}"), second, seconds[k].as_ref(), 1e-8);
        }
    }
}

/// Returns the result y of a case, and the gradient of the sum of y sin y. The gradient is with respect to the first input that is not a
/// count.
fn with_gradient<'t>(name: &str, x: &[V<'t>]) -> [V<'t>; 2] {
    let (y, variable) = (result(name, x), x[counts(name).min(x.len() - 1)]);
    [y, (y * y.sin()).sum(..).grad_or_zeros([variable])[0]]
}

/// Checks that `vmap` over three examples gives the same values and gradients as a loop over the examples.
#[test]
fn vmap_equals_a_loop() {
    let cases: Value = serde_json::from_str(include_str!("../pytorch.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let inputs: Vec<Tensor<f64>> = tensors(&case["inputs"]).into_iter().flatten().collect();
        let counts = counts(name);
        // The factors are so near to 1 that parameters and values stay in their ranges. Counts are not multiplied, so they stay whole
        // numbers.
        let example = |factor: f64| -> Vec<Tensor<f64>> {
            let scaled = |(k, x): (usize, &Tensor<f64>)| if k < counts { x.clone() } else { x * factor };
            inputs.iter().enumerate().map(scaled).collect()
        };
        if name.starts_with("Dirichlet log_prob") || name.starts_with("Categorical") {
            continue; // The scaled shares would not add up to 1.
        }
        let examples = [example(1.0), example(0.97), example(0.94)];
        let stacked: Vec<Tensor<f64>> =
            (0..inputs.len()).map(|k| stack(&examples.iter().map(|x| x[k].clone()).collect::<Vec<_>>(), 0)).collect();
        let batched = match &stacked[..] {
            [x] => Vmap::new().call(|[x]| with_gradient(name, &[x]), [x]),
            [x, y] => Vmap::new().call(|[x, y]| with_gradient(name, &[x, y]), [x, y]),
            [x, y, z] => Vmap::new().call(|[x, y, z]| with_gradient(name, &[x, y, z]), [x, y, z]),
            [x, y, z, w] => Vmap::new().call(|[x, y, z, w]| with_gradient(name, &[x, y, z, w]), [x, y, z, w]),
            _ => unreachable!(),
        };
        for (k, example) in examples.iter().enumerate() {
            let tape = Tape::<f64>::new();
            let expected = with_gradient(name, &example.iter().map(|x| tape.var(x)).collect::<Vec<_>>());
            for (batched, expected) in batched.iter().zip(expected) {
                let (got, expected) = (batched.select(0, k as isize), expected.value());
                assert_eq!(got.shape(), expected.shape(), "{name}");
                for (got, expected) in got.iter().zip(expected.iter()) {
                    assert!((got - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{name}: {got} {expected}");
                }
            }
        }
    }
}
