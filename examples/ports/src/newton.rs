//! Newton's method that computes products of the Hessian and a vector, but never the Hessian itself.

use wengert::autograd::transforms::{hvp, infer, value_and_grad};
use wengert::prelude::*;

/// Makes at most `steps` steps of Newton's method from `start`. Returns the last point, and the value of the function
/// at this point. The method ends early if the magnitudes of a step's elements are below 1e-5 on average. SciPy:
/// `minimize(method="Newton-CG")`, with another line search.
///
/// ```
/// use wengert::prelude::*;
///
/// let (point, value) = wengert_ports::newton_cg(|x| (x.exp() - x).sum(..), &Tensor::from([1.0, -2.0]), 20);
/// assert!(point.abs().amax(..).item() < 1e-8 && value == 2.0);
/// ```
pub fn newton_cg(
    f: impl for<'t> Fn(Var<'t, f64>) -> Var<'t, f64>,
    start: &Tensor<f64>,
    steps: usize,
) -> (Tensor<f64>, f64) {
    let mut point = start.clone();
    let (mut value, mut gradient) = value_and_grad(&f, &point);
    for _ in 0..steps {
        let mut step = direction(&gradient, |p| hvp(&f, &point, p));
        let slope = gradient.dot(&step).item();
        let mut share = 1.0;
        // Halves the step until the value falls by at least 1e-4 times the decrease that the slope predicts, or the step is nearly 0.
        while infer(&f, &(&point + &step)).item() > value + 1e-4 * share * slope && share > 1e-12 {
            step *= 0.5;
            share *= 0.5;
        }
        point += &step;
        (value, gradient) = value_and_grad(&f, &point);
        if step.abs().mean(..).item() < 1e-5 {
            break;
        }
    }
    (point, value)
}

/// Returns d with H d ≈ -g for the Hessian H and the gradient g, by conjugate gradients that end at negative curvature (R. S. Dembo and T.
/// Steihaug, "Truncated-Newton algorithms for large-scale unconstrained optimization", 1983).
fn direction(gradient: &Tensor<f64>, hessian_times: impl Fn(&Tensor<f64>) -> Tensor<f64>) -> Tensor<f64> {
    let (mut d, mut rest, mut p) = (gradient * 0.0, gradient.clone(), -gradient);
    let size = gradient.abs().sum(..).item();
    for _ in 0..20 * gradient.numel() {
        if rest.abs().sum(..).item() <= size * size.sqrt().min(0.5) {
            break;
        }
        let hp = hessian_times(&p);
        let (curvature, square) = (p.dot(&hp).item(), rest.dot(&rest).item());
        if curvature <= 0.0 {
            let is_first = d.abs().amax(..).item() == 0.0;
            return if is_first && curvature < 0.0 { p * (square / -curvature) } else { d };
        }
        d += &p * (square / curvature);
        rest += hp * (square / curvature);
        p = p * (rest.dot(&rest).item() / square) - &rest;
    }
    d
}
