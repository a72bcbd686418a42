//! The derivative of the p-norm z = (Σ |x|ᵖ)^(1/p) with respect to an element x: ∂z/∂x = sign(x) |x|ᵖ⁻¹ / zᵖ⁻¹.
//!
//! At singular points the first and second derivatives match PyTorch's `norm_backward`. The derivative is 0 at the zero
//! vector for every p, and 0 at zero elements for p < 1. For p = ±∞, the elements whose magnitude equals the norm share
//! the derivative equally. The second derivative at the zero vector is NaN for some p, for example for p = 2.

use wengert_tensor::ops::{Arithmetic, Comparison, TensorLike, Views, where_};
use wengert_tensor::{Axes, Float, Shape, Tensor};

use super::shared::site;
use crate::{BatchedCall, Call, Error, Operation, Var};

/// The operation that computes the `ord`-norm over the dimensions `axes`, which are kept with size 1.
pub(crate) struct Norm {
    pub(crate) ord: f64,
    pub(crate) axes: Axes,
}

impl Norm {
    /// Records the factor of the derivative ∂z/∂x that differs between the elements x of one norm z.
    fn element_factor<'t, T: Float>(&self, x: Var<'t, T>, z: Var<'t, T>) -> Var<'t, T> {
        let over = z.expand(x.shape());
        let p = self.ord;
        if p == 1.0 {
            x.sign()
        } else if p == 2.0 {
            where_(&over.eq(0.0), &x.zeros_like(), x / over)
        } else if p.is_infinite() {
            x.sign() * selected_mask(x, over)
        } else if p < 1.0 {
            x.sign() * where_(&x.eq(0.0), &x.zeros_like(), x.abs().pow(p - 1.0))
        } else if p < 2.0 {
            x.sign() * x.abs().pow(p - 1.0)
        } else {
            x * x.abs().pow(p - 2.0)
        }
    }

    /// Records `v` times the factor of the derivative ∂z/∂x that is the same for all elements x of one norm z.
    fn multiply_norm_factor<'t, T: Float>(&self, x: Var<'t, T>, z: Var<'t, T>, v: Var<'t, T>) -> Var<'t, T> {
        let p = self.ord;
        if p == 1.0 || p == 2.0 {
            v
        } else if p.is_infinite() {
            v / selected_mask(x, z.expand(x.shape())).sum_to(z.shape())
        } else if p < 1.0 {
            v * z.pow(1.0 - p)
        } else {
            where_(&z.eq(0.0), &v.zeros_like(), v / z.pow(p - 1.0))
        }
    }
}

/// Records a mask of the elements that the norm selects: 1 where the magnitude equals the norm or is NaN, and 0 elsewhere.
fn selected_mask<'t, T: Float>(x: Var<'t, T>, z: Var<'t, T>) -> Var<'t, T> {
    let size = x.abs();
    size.eq(z).logical_or(size.isnan())
}

impl<T: Float> Operation<T> for Norm {
    fn name(&self) -> &'static str {
        "vector_norm"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].with_ones(&self.axes))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_norm(self.ord, &self.axes, site("vector_norm"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let (x, z) = (call.input(0), call.output());
        // The 0-norm counts the nonzero elements, so its derivative is zero.
        (self.ord != 0.0).then(|| self.element_factor(x, z) * self.multiply_norm_factor(x, z, g).expand(x.shape()))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let (x, z) = (call.input(0), call.output());
        (self.ord != 0.0).then(|| self.multiply_norm_factor(x, z, (v * self.element_factor(x, z)).sum_to(z.shape())))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let axes: Axes = self.axes.iter().map(|axis| axis + 1).collect();
        call.value_of(call.batched(0).apply_norm(self.ord, &axes, call.at))
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    const INF: f64 = f64::INFINITY;

    /// Returns the gradient of half the norm of `x`, and the gradient of the dot product of this gradient and a vector v. Here v is (3/2,
    /// 1, 3/4), cut to the length of `x`.
    fn derivatives(x: &[f64], ord: f64) -> (Vec<f64>, Vec<f64>) {
        let tape = Tape::<f64>::new();
        let v = Tensor::from(&[1.5, 1.0, 0.75][..x.len()]);
        let x = tape.var(&Tensor::from(x));
        let [first] = (x.norm(ord) * 0.5).grad([x]);
        let second = (first * &v).sum(..).try_grad_or_zeros([x]).unwrap();
        (first.value().to_vec(), second[0].value().to_vec())
    }

    #[test]
    fn the_gradient_at_the_zero_vector_is_zero_for_every_order() {
        for ord in [-INF, 0.5, 1.0, 1.5, 2.0, 3.0, INF] {
            let (first, second) = derivatives(&[0.0, 0.0], ord);
            assert_eq!(first, [0.0, 0.0], "{ord}");
            // The second derivative is NaN for the same orders as in PyTorch.
            let is_nan = matches!(ord, 0.5 | 1.5 | 2.0);
            assert!(second.iter().all(|x| x.is_nan() == is_nan && (is_nan || *x == 0.0)), "{ord}: {second:?}");
        }
    }

    #[test]
    fn infinite_orders_share_between_ties() {
        assert_eq!(derivatives(&[0.0, 3.0, -3.0], INF).0, [0.0, 0.25, -0.25]);
        assert_eq!(derivatives(&[1.0, 3.0, -1.0], -INF).0, [0.25, 0.0, -0.25]);
    }

    #[test]
    fn zero_entries_get_nothing() {
        let (first, second) = derivatives(&[0.0, 3.0, -3.0], 0.5);
        assert_eq!((first[0], second[0].is_nan()), (0.0, true));
        assert!((first[1] - 1.0).abs() < 1e-14 && (second[1] + 0.145_833_333_333_333_3).abs() < 1e-14);
    }

    #[test]
    fn forward_mode_agrees_with_reverse() {
        for ord in [-INF, 0.5, 1.0, 1.5, 2.0, 3.0, INF] {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::from([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]));
            let v = tape.constant(Tensor::from([[0.5, 1.0, -1.0], [2.0, 0.0, 1.0]]));
            let z = x.vector_norm(ord, 1).sum(..);
            let [dx] = z.grad([x]);
            let difference = z.jvp(&[(x, v)]) - (dx * v).sum(..);
            assert!(difference.item().abs() < 1e-14, "{ord}");
        }
    }
}
