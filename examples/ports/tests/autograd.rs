//! Checks that the ports compute the same numbers as the original programs. `tools/autograd_cases.py` writes the expected numbers with NumPy and
//! autograd.

#![allow(dead_code)] // The functions of the ports that only draw pictures are not called here.

use std::sync::LazyLock;

use gplvm::gaussian_process;
use serde_json::Value;
use wengert::autograd::transforms::{hvp, ravel, value_and_grad};
use wengert::nn::Lbfgs;
use wengert::prelude::*;
use wengert_ports::{RandomState, pinwheel};

#[path = "../gmm.rs"]
mod gmm;
#[path = "../gplvm.rs"]
mod gplvm;
#[path = "../ica.rs"]
mod ica;
#[path = "../mixture_variational_inference.rs"]
mod mixture_variational_inference;

/// The largest permitted difference, relative to the largest element. Ports and originals round differently: SciPy solves with LU
/// factors, and sums have other orders.
const TOLERANCE: f64 = 1e-10;

static CASES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("cases.json")).expect("cases.json is JSON"));

/// Returns the numbers of a JSON list.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Checks that two vectors are equal up to [`TOLERANCE`].
#[track_caller]
fn assert_close(found: &Tensor<f64>, expected: &Value) {
    let expected = Tensor::from(numbers(expected));
    let error = (found - &expected).abs().amax(..).item() / expected.abs().amax(..).item();
    assert!(error < TOLERANCE, "{error:e}");
}

/// Returns the second point for which `cases.json` has a value and a gradient. It is near the first point `start`.
fn near(start: &Tensor<f64>) -> Tensor<f64> {
    start + Tensor::<f64>::arange(start.numel()).sin() * 0.1
}

/// Compares value and gradient at two points with `cases.json`. If this file has a learning rate for the port, also compares the point
/// after 20 steps of gradient descent.
fn compare(name: &str, start: &Tensor<f64>, objective: impl for<'t> Fn(Var<'t, f64>) -> Var<'t, f64>) {
    let case = &CASES[name];
    for (at, point) in [start.clone(), near(start)].iter().enumerate() {
        let (value, gradient) = value_and_grad(&objective, point);
        let expected = case["at"][at]["value"].as_f64().expect("a number");
        assert!((value - expected).abs() < TOLERANCE * expected.abs(), "{name}: {value} instead of {expected}");
        assert_close(&gradient, &case["at"][at]["gradient"]);
    }
    if let Some(rate) = case["rate"].as_f64() {
        let mut theta = start.clone();
        for _ in 0..20 {
            theta -= value_and_grad(&objective, &theta).1 * rate;
        }
        assert_close(&theta, &case["after_20_steps"]);
    }
}

#[test]
fn random_numbers_are_numpys() {
    let numbers = RandomState::new(0).randn([20400]);
    assert_close(&numbers.slice(0, ..5), &CASES["randn"]);
    assert_close(&numbers.slice(0, 20395..), &CASES["late_randn"]);
}

#[test]
fn gaussian_process_is_autograds() {
    let [x, y] = gaussian_process::data();
    let objective =
        formula!(|theta| { gaussian_process::objective(theta, theta.tape().constant(&x), theta.tape().constant(&y)) });
    compare("gaussian_process", &gaussian_process::start(4), objective);
}

#[test]
fn gmm_is_autograds() {
    let points = pinwheel(100);
    let (start, layout) = ravel(&gmm::start());
    let objective = formula!(|theta| gmm::objective(layout.unravel(&theta), &points));
    compare("gmm", &start, objective);
    let direction = Tensor::<f64>::arange(start.numel()).cos();
    assert_close(&hvp(objective, &near(&start), &direction), &CASES["gmm"]["hessian_times_cosines"]);
}

#[test]
fn ica_is_autograds() {
    let [_, _, observed] = ica::data();
    let (start, layout) = ravel(&ica::start());
    compare("ica", &start, |theta| ica::objective(layout.unravel(&theta), &observed));
}

#[test]
fn gplvm_is_autograds() {
    let data = pinwheel(30);
    let (start, layout) = ravel(&gplvm::start());
    compare("gplvm", &start, |theta| gplvm::objective(layout.unravel(&theta), &data));
}

#[test]
fn mixture_variational_inference_is_autograds() {
    use mixture_variational_inference::{Fit, objective, start};
    let name = "mixture_variational_inference";
    let (start, layout) = ravel(&start());
    let noise = RandomState::new(0).randn([10, 40, 2]);
    compare(name, &start, |theta| objective(layout.unravel(&theta), &noise));
    let mut fit = Fit::at_start();
    for (steps, key) in [(20, "after_20_steps"), (80, "after_100_steps")] {
        for _ in 0..steps {
            fit.step();
        }
        assert_close(&fit.theta.value, &CASES[name][key]);
    }
}

/// The optimisers take other paths than SciPy's conjugate gradients, to the same minimum.
#[test]
fn the_minima_are_scipys() {
    let lowest = |name: &str| CASES[name]["lowest"].as_f64().expect("a number");
    let [x, y] = gaussian_process::data();
    let (_, loss) = gaussian_process::fit(&x, &y);
    assert!((loss - lowest("gaussian_process")).abs() < 1e-8, "{loss}");
    let (_, loss) = ica::fit(&ica::data()[2], 1000);
    assert!((loss - lowest("ica")).abs() < 1e-6, "{loss}");
}

/// The likelihood of a mixture has many maxima, and the paths of the optimisers end at different ones. So this test starts near SciPy's
/// maximum.
#[test]
fn the_maximum_of_the_mixture_is_scipys() {
    let points = pinwheel(100);
    let (_, layout) = ravel(&gmm::start());
    let lowest = Tensor::from(numbers(&CASES["gmm"]["lowest_at"]));
    let start = &lowest + Tensor::<f64>::arange(lowest.numel()).sin() * 0.01;
    let mut lbfgs = Lbfgs::new(1.0).strong_wolfe().max_iter(500);
    let (_, loss) = lbfgs.minimize(|theta| gmm::objective(layout.unravel(&theta), &points), &start);
    assert!((loss - CASES["gmm"]["lowest"].as_f64().expect("a number")).abs() < 1e-6, "{loss}");
}
