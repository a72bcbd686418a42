//! The variance of n elements x with the mean m and the correction c is z = Σ (x - m)² / (n - c). Its derivative is
//! ∂z/∂x = 2 (x - m) / (n - c). The term for the mean is omitted, because the deviations x - m sum to zero.
//!
//! If n - c is not positive, the results match PyTorch's `var_backward`. If the caller passed a list of dimensions, the formula above is
//! used, and its divisor may be negative. If the caller passed `..`, or x has no dimensions, the derivative is NaN at elements equal to the
//! mean and ∞ at other elements.

use wengert_tensor::ops::{Reductions, TensorLike, Views, where_};
use wengert_tensor::{Axes, Float, Shape, Tensor};

use super::shared::site;
use crate::{BatchedCall, Call, Error, Operation, Var};

/// The operation that computes the variance over the dimensions `axes`, which are kept with size 1.
pub(crate) struct Variance {
    pub(crate) axes: Axes,
    pub(crate) correction: f64,
    /// True if the caller passed `..` as the dimensions, so that the variance is over all of them. Under `vmap`, also true if each example is
    /// a single number. If the divisor is not positive, this selects PyTorch's derivative (see the top of this file).
    pub(crate) is_total: bool,
}

impl Variance {
    /// Returns ∂z/∂x, the derivative of the variance z with respect to every element x, as two factors: a number, and a recorded formula.
    fn slope<'t, T: Float>(&self, x: Var<'t, T>) -> (f64, Var<'t, T>) {
        let shape = x.shape();
        let divisor = shape.numel_over(&self.axes) as f64 - self.correction;
        // Without dimensions, each element is its own mean. `mean_keepdim` would interpret an empty list as all dimensions.
        let mean = if self.axes.is_empty() { x } else { x.mean_keepdim(&self.axes[..]).expand(&shape) };
        if divisor <= 0.0 && (self.is_total || shape.rank() == 0) {
            let infinity = x.filled(&shape, T::INFINITY);
            return (1.0, where_(&x.eq(mean), &x.filled(&shape, T::NAN), infinity));
        }
        (2.0 / divisor, x - mean)
    }
}

impl<T: Float> Operation<T> for Variance {
    fn name(&self) -> &'static str {
        "var"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].with_ones(&self.axes))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_variance(&self.axes, self.correction, self.is_total, site("var"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let x = call.input(0);
        let (factor, slope) = self.slope(x);
        // The factor may be infinite. It is applied before the expansion, so that the adjoint of the expansion does not sum infinities.
        Some((g * factor).expand(x.shape()) * slope)
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let (factor, slope) = self.slope(call.input(0));
        Some((v * factor * slope).sum_to(call.output().shape()))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let axes: Axes = self.axes.iter().map(|axis| axis + 1).collect();
        // If the batch has rank 1, each example is a single number. Its variance is then over all of its dimensions.
        let is_total = self.is_total || call.shape().rank() == 1;
        call.value_of(call.batched(0).apply_variance(&axes, self.correction, is_total, call.at))
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    #[test]
    fn first_and_second_derivatives() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, 2.0, 6.0]));
        let [dx] = x.var(0, 1).grad([x]);
        assert_eq!(dx.value().to_vec(), [-2.0, -1.0, 3.0]);
        // The second derivative is 2/(n - 1) (I - J/n), where I is the identity, and J is a matrix of ones. The term J/n comes from the mean.
        let weight = Tensor::from([3.0, 0.0, 0.0]);
        let [ddx] = (dx * &weight).sum(..).grad([x]);
        assert_eq!(ddx.value().to_vec(), [2.0, -1.0, -1.0]);
    }

    #[test]
    fn the_standard_deviation_of_equal_numbers_is_flat() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0, 3.0]));
        let [dx] = x.std(0, 0).grad([x]);
        assert_eq!(dx.value().to_vec(), [0.0, 0.0]);
    }

    #[test]
    fn divisors_of_zero_and_less() {
        let gradient = |x: &[f64], correction: f64, named: bool| {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::from(x));
            let z = if named { x.var(0, correction) } else { x.var(.., correction) };
            z.grad([x])[0].value().to_vec()
        };
        let inf = f64::INFINITY;
        assert_eq!(gradient(&[1.0, 2.0], 2.0, true), [-inf, inf]);
        assert_eq!(gradient(&[1.0, 2.0], 2.0, false), [inf, inf]);
        assert_eq!(gradient(&[3.0], 2.0, true), [0.0]);
        assert!(gradient(&[3.0], 2.0, false)[0].is_nan());
    }

    #[test]
    fn the_second_derivative_to_the_incoming_gradient_is_infinite_where_the_divisor_is_zero() {
        let tape = Tape::<f64>::new();
        let (x, g) = (tape.var(&Tensor::from([1.0, 2.0])), tape.var(&Tensor::scalar(1.0)));
        let Some(dx) = tape.vjp(&[(x.var(0, 2), g)], &[x])[0] else { unreachable!("it depends on x") };
        // The derivative is 2/0 · Σ w (x - m), with the weights w = (3, 1) and the mean m = 3/2.
        let [dg] = (dx * &Tensor::from([3.0, 1.0])).sum(..).grad([g]);
        assert_eq!(dg.item(), -f64::INFINITY);
    }
}
