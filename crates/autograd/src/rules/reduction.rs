//! Derivatives of reductions. Reduced dimensions have size 1 in the result's shape, so that the result expands to the input's shape.

use std::rc::Rc;

use wengert_tensor::ops::{Comparison, TensorLike, Views, where_};
use wengert_tensor::{Axes, Binary, Float, Reduction, Site, Tensor, View};

use super::shared::{JacobianProduct, elementwise};
use crate::{BatchedCall, Call, Error, Operation, Var};

/// Records the derivative of the reduction z of x, applied to `v`: an incoming gradient, or a tangent of x.
pub(super) fn derivative<'t, T: Float>(
    op: Reduction,
    x: Var<'t, T>,
    z: Var<'t, T>,
    v: Var<'t, T>,
    product: JacobianProduct,
) -> Var<'t, T> {
    let (from, to) = (x.shape(), z.shape());
    match (op, product) {
        (Reduction::Sum, JacobianProduct::Vjp) => v.expand(&from),
        (Reduction::Sum, JacobianProduct::Jvp) => v.sum_to(&to),
        (Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min, _) => {
            // Equal extremes share the gradient equally. If an element is NaN, the result is NaN, which equals no element. Then 0/0 makes
            // the whole gradient of `amax` NaN, but the gradient of `max` goes to the NaN elements. As in PyTorch, the gradient of `max` is 0
            // at the other elements even if `v` is NaN or infinite.
            let equal = x.eq(z.expand(&from));
            let is_nan_a_tie = matches!(op, Reduction::Max | Reduction::Min);
            let chosen = if is_nan_a_tie { equal.logical_or(x.isnan()) } else { equal };
            let share = chosen / chosen.sum_to(&to).expand(&from);
            match product {
                JacobianProduct::Vjp if is_nan_a_tie => where_(&chosen, v.expand(&from) * share, 0.0),
                JacobianProduct::Vjp => v.expand(&from) * share,
                JacobianProduct::Jvp => (v * share).sum_to(&to),
            }
        }
        // A product is recorded as a tree of multiplications, which have derivative rules of their own.
        _ => unreachable!("{} is not recorded", op.name()),
    }
}

/// Records the product of the elements over the dimensions `axes`, which are kept with size 1, as a balanced tree of products. Its
/// derivatives of any order are exact even if factors are zero. A rule that divides the product by each factor would fail for these
/// factors.
pub(crate) fn product_over<'t, T: Float>(x: Var<'t, T>, axes: &[usize], at: Site) -> Result<Var<'t, T>, Error> {
    let mut x = x.tape.record_operation(Rc::new(Factors { n_batch_dims: 0 }), &[x], at)?;
    for &axis in axes {
        let mut size = x.shape()[axis];
        if size == 0 {
            // The product of no factors is one. It is recorded as a function of `x`, so that the gradient of `x` is an empty tensor and not
            // missing.
            let zeros = x.apply_reduce(Reduction::Sum, &[axis], at)?;
            x = zeros.apply_binary(Binary::Add, &zeros.filled(&zeros.shape(), T::ONE), at)?;
            continue;
        }
        while size > 1 {
            let half = size / 2;
            let part = |start: usize, len: usize| x.apply_view(View::Slice { axis, start, len, step: 1 }, at);
            let product = part(0, half)?.apply_binary(Binary::Mul, &part(half, half)?, at)?;
            x = match size % 2 {
                0 => product,
                _ => TensorLike::apply_cat(&[product, part(2 * half, 1)?], axis, at)?,
            };
            size = x.shape()[axis];
        }
    }
    Ok(x)
}

/// The operation that returns the factors of a product unchanged. Its derivative follows PyTorch's convention for infinite and NaN factors.
/// If no element of the whole input is zero, the derivative with respect to an infinite or NaN factor is NaN. The reason is that PyTorch
/// then divides the product by the factor.
pub(crate) struct Factors {
    /// The number of batch dimensions, which come first. Each example is an input of its own.
    n_batch_dims: usize,
}

impl Factors {
    fn times_slope<'t, T: Float>(&self, call: &Call<'t, T>, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let x = call.input(0);
        let axes: Axes = (self.n_batch_dims..x.shape().rank()).collect();
        let zeros = call.value_of(x.eq(0.0).apply_reduce(Reduction::Sum, &axes, call.site("factors")))?;
        let is_divided = zeros.eq(0.0).expand(x.shape());
        let is_odd = x.isfinite().logical_not().logical_and(is_divided);
        Some(where_(&is_odd, &x.filled(&x.shape(), T::NAN), v))
    }
}

impl<T: Float> Operation<T> for Factors {
    fn name(&self) -> &'static str {
        "factors"
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        self.times_slope(call, g)
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        self.times_slope(call, v)
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        elementwise(Factors { n_batch_dims: self.n_batch_dims + 1 }, call)
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    /// The gradients are PyTorch's. `amax` spreads an incoming gradient that is not finite, as in PyTorch.
    #[test]
    fn an_infinite_gradient_reaches_only_the_extremes() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, 5.0, 3.0, 5.0]));
        for incoming in [f64::INFINITY, f64::NAN] {
            let [largest] = (x.max_all() * incoming).grad([x]);
            let [smallest] = (x.min_all() * incoming).grad([x]);
            let text = |numbers: [f64; 4]| format!("{numbers:?}");
            assert_eq!(format!("{:?}", largest.value().to_vec()), text([0.0, incoming, 0.0, incoming]));
            assert_eq!(format!("{:?}", smallest.value().to_vec()), text([incoming, 0.0, 0.0, 0.0]));
            let [spread] = (x.amax(..) * incoming).grad([x]);
            assert!(spread.value().to_vec()[0].is_nan());
        }
    }

    #[test]
    fn a_product_is_divided_by_factors_that_are_not_finite() {
        let tape = Tape::<f64>::new();
        let slopes = |factors: [f64; 3]| {
            let x = tape.var(&Tensor::from(factors));
            x.prod(0).grad([x])[0].value().to_vec()
        };
        assert_eq!(slopes([2.0, 0.0, 5.0]), [0.0, 10.0, 0.0]);
        let divided = slopes([2.0, f64::INFINITY, 5.0]);
        assert!(divided[0] == f64::INFINITY && divided[1].is_nan() && divided[2] == f64::INFINITY);
        assert_eq!(slopes([0.0, f64::INFINITY, 5.0])[1], 0.0);
    }
}
