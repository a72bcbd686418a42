//! Checks the derivatives of the functions, except for the slopes of draws, by central differences: orders 1 and 2, reverse and forward
//! mode.

use wengert_autograd::prelude::*;
use wengert_autograd::{GradCheck, assert_gradcheck};
use wengert_special::prelude::*;

/// The values are PyTorch's.
#[test]
fn the_second_derivative_of_i0e_at_its_kink() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([0.0, -0.0, 0.5, -0.5]));
    let [first] = x.i0e().sum(..).grad([x]);
    let [second] = first.sum(..).grad([x]);
    for (got, want) in [
        (first, [0.0, 0.0, -0.4886144672642784, 0.4886144672642784]),
        (second, [0.5, 0.5, 0.6643873281588133, 0.6643873281588133]),
    ] {
        assert!((got.value() - Tensor::from(want)).abs().amax(..).item() < 1e-15, "{}", got.value());
    }
}

/// For the parameter 0 the functions are constants, so their derivatives with respect to x are 0.
#[test]
fn derivatives_of_incomplete_gamma_functions_for_the_parameter_0() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([0.5, 3.0, 1e10]));
    let a = tape.constant(0.0);
    for y in [a.gammaincc(x), a.gammainc(x)] {
        let [first] = y.sum(..).grad([x]);
        let [second] = first.sum(..).grad([x]);
        assert!([first, second].iter().all(|slope| slope.value().iter().all(|slope| slope == 0.0)));
    }
}

#[test]
fn derivatives_of_functions_of_one_operand_agree_with_differences() {
    let x = Tensor::from([-3.5, -0.75, 0.25, 1.5, 4.0]);
    assert_gradcheck!(|x| x.ndtr(), &x);
    assert_gradcheck!(|x| x.log_ndtr(), &x);
    assert_gradcheck!(|x| x.log_ndtr(), &Tensor::from([0.0, -0.0]));
    assert_gradcheck!(|x| x.erfcx(), &Tensor::from([-1.5, -0.25, 0.5, 3.0]));
    assert_gradcheck!(|x| x.i0(), &x);
    assert_gradcheck!(|x| x.i0e(), &x);
    assert_gradcheck!(|x| x.i1(), &x);
    assert_gradcheck!(|x| x.i1e(), &x);
    assert_gradcheck!(|x| x.ndtri(), &Tensor::from([0.01, 0.3, 0.5, 0.9]));
    assert_gradcheck!(|x| x.log1mexp(), &Tensor::from([-3.0, -0.9, -0.2]));
    assert_gradcheck!(|x| x.bessel_j0(), &x);
    assert_gradcheck!(|x| x.bessel_j1(), &x);
    assert_gradcheck!(|x| x.bessel_y0(), &Tensor::from([0.5, 1.5, 4.0]));
    assert_gradcheck!(|x| x.bessel_y1(), &Tensor::from([0.5, 1.5, 4.0]));
    let moderate = Tensor::from([-1.25, -1.0, 0.25, 1.0, 1.5]);
    assert_gradcheck!(|x| x.chebyshev_polynomial_t(5) + x.chebyshev_polynomial_u(4), &moderate);
    assert_gradcheck!(|x| x.chebyshev_polynomial_v(3) * x.chebyshev_polynomial_w(4), &moderate);
    assert_gradcheck!(|x| x.hermite_polynomial_h(4) * x.hermite_polynomial_he(3), &moderate);
    assert_gradcheck!(|x| x.laguerre_polynomial_l(5) * x.legendre_polynomial_p(6), &moderate);
    assert_gradcheck!(|x| x.legendre_polynomial_p(1) + x.hermite_polynomial_h(0), &moderate);
    let positive = Tensor::from([0.6, 1.5, 4.0]);
    assert_gradcheck!(|x| x.entr(), &positive);
    // The trigamma function of tensors has only nine correct digits.
    assert_gradcheck!(GradCheck::new().accuracy(1e-9), |x| x.gammaln(), &positive);
    assert_gradcheck!(|x| x.polygamma(1), &positive);
    assert_gradcheck!(|x| x.polygamma(3), &positive);
    assert_gradcheck!(GradCheck::new().accuracy(1e-9), |x| x.multigammaln(2), &positive);
}

#[test]
fn derivatives_of_functions_of_several_operands_agree_with_differences() {
    let check = || GradCheck::new().accuracy(1e-9);
    let (a, x) = (Tensor::from([0.5, 2.0, 7.0]), Tensor::from([[0.4, 1.0, 6.0], [1.7, 4.0, 11.0]]));
    assert_gradcheck!(check(), |a, x| a.betaln(x), &a, &x);
    assert_gradcheck!(check(), |a, x| a.gammainc(x), &a, &x);
    assert_gradcheck!(check(), |a, x| a.gammaincc(x), &a, &x);
    assert_gradcheck!(check(), |a, x| a.gamma_density(x), &a, &x);
    let p = Tensor::from([0.15, 0.5, 0.8]);
    assert_gradcheck!(check(), |a, p| a.gammaincinv(p), &a, &p);
    assert_gradcheck!(check(), |a, p| a.gammainccinv(p), &a, &p);
    let b = Tensor::from([[1.5], [4.0]]);
    assert_gradcheck!(check(), |a, b, x| a.betainc(b, x), &a, &b, &p);
    assert_gradcheck!(check(), |a, b, x| a.beta_density(b, x), &a, &b, &p);
    assert_gradcheck!(check(), |a, b, p| a.betaincinv(b, p), &a, &b, &p);
}

/// Compares the third derivative of the incomplete gamma function with respect to its first argument with central differences of the second derivative.
#[test]
fn third_derivatives_agree_with_differences() {
    let second = |a: f64| {
        let tape = Tape::new();
        let a = tape.var(&Tensor::scalar(a));
        let [first] = a.gammainc(2.0).grad([a]);
        let [second] = first.grad([a]);
        let [third] = second.grad([a]);
        (second.item(), third.item())
    };
    let step = 1e-4;
    let difference = (second(1.5 + step).0 - second(1.5 - step).0) / (2.0 * step);
    assert!((second(1.5).1 / difference - 1.0).abs() < 1e-6);
}

/// Tests derivatives far from 0. There, the logarithm of the normal distribution function is nearly -x²/2 for negative x and nearly 0 for
/// positive x.
#[test]
fn derivatives_of_log_ndtr_in_the_tails() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([-100.0, 10.0, 100.0]));
    let [first] = x.log_ndtr().sum(..).grad([x]);
    let [second] = first.sum(..).grad([x]);
    let (first, second) = (first.value().to_vec(), second.value().to_vec());
    // The expected values are sums of the first terms of the derivatives' asymptotic series.
    assert!((first[0] / (100.0 + 0.01 - 2e-6 + 1e-9) - 1.0).abs() < 1e-11, "{first:?}");
    assert!((second[0] / (-1.0 + 1e-4 - 6e-8) - 1.0).abs() < 1e-9, "{second:?}");
    let density = (-50f64).exp() / (2.0 * std::f64::consts::PI).sqrt();
    assert!(
        (first[1] / density - 1.0).abs() < 1e-13 && (second[1] / density + 10.0).abs() < 1e-12,
        "{first:?} {second:?}"
    );
    assert_eq!((first[2], second[2]), (0.0, -0.0));
}

/// Tests that the check of derivatives finds a wrong derivative.
#[test]
#[should_panic(expected = "derivative")]
fn a_wrong_derivative_is_found() {
    assert_gradcheck!(|x| x.gammainc(2.0) + x.detach(), &Tensor::from([1.5]));
}

/// Checks slopes that are constant, where a product of the recurrence would be infinity times 0.
#[test]
fn constant_slopes_of_polynomials_are_exact_at_infinity() {
    let slope = |f: fn(Var<'_, f64>) -> Var<'_, f64>, at: f64| {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::scalar(at));
        f(x).grad([x])[0].item()
    };
    for at in [f64::INFINITY, f64::NEG_INFINITY, 1e308] {
        assert_eq!(slope(|x| x.chebyshev_polynomial_t(1), at), 1.0);
        assert_eq!(slope(|x| x.hermite_polynomial_h(1), at), 2.0);
        assert_eq!(slope(|x| x.laguerre_polynomial_l(1), at), -1.0);
    }
    assert!(slope(|x| x.legendre_polynomial_p(3), f64::NAN).is_nan());
}
