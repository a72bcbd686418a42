//! Short methods from which operations of several primitives are written: `x.minus(&mean, at)?.times(&scale, at)?`.
//!
//! The settings of [`compat`](crate::shape::compat) do not apply to these methods, because no user calls them. If a method fails, its error
//! names the [`Site`] of the whole operation.

use crate::ops::primitive::pair::{broadcast_two_under, combine, expand, expand_number};
use crate::ops::{Argument, Operand, Result, TensorLike};
use crate::shape::compat::BroadcastRule;
use crate::{Binary, Compare, Reduction, Scalar, Shape, Site, Tensor, View};

/// Short methods for the code of operations that are made of several primitives.
pub(crate) trait Compose: TensorLike {
    fn plus(&self, y: impl Operand<Self>, at: Site) -> Result<Self> {
        self.combine(Binary::Add, y, at)
    }

    fn minus(&self, y: impl Operand<Self>, at: Site) -> Result<Self> {
        self.combine(Binary::Sub, y, at)
    }

    fn times(&self, y: impl Operand<Self>, at: Site) -> Result<Self> {
        self.combine(Binary::Mul, y, at)
    }

    fn divide_by(&self, y: impl Operand<Self>, at: Site) -> Result<Self> {
        self.combine(Binary::Div, y, at)
    }

    fn combine(&self, op: Binary, y: impl Operand<Self>, at: Site) -> Result<Self> {
        combine(self, op, y, BroadcastRule::Step, at)
    }

    fn compare(&self, op: Compare, y: impl Operand<Self>, at: Site) -> Result<Self::Mask> {
        let (x, y) = broadcast_two_under(self, y, BroadcastRule::Step, at)?;
        x.apply_compare(op, &y, at)
    }

    /// Returns `self` where `mask` is true and `y` elsewhere. `self` and `y` are expanded to the shape of `mask`.
    fn choose(&self, mask: &Self::Mask, y: impl Operand<Self>, at: Site) -> Result<Self> {
        let shape = mask.shape();
        let y = match y.into_argument(self)? {
            Argument::Array(y) => expand(&y, &shape, at)?,
            Argument::Number(value) => expand_number(self, value, &shape, at)?,
        };
        Self::apply_select(mask, &expand(self, &shape, at)?, &y, at)
    }

    /// Returns `value` where `mask` is true and `self` elsewhere. `mask` and `self` have the same shape.
    fn replace_where(&self, mask: &Self::Mask, value: f64, at: Site) -> Result<Self> {
        Self::apply_select(mask, &self.fill_shape(value, &self.shape(), at)?, self, at)
    }

    /// Returns `mask`, which is plain data, as a mask for `self`, expanded to `shape`.
    fn expand_mask(&self, mask: &Tensor<bool>, shape: &Shape, at: Site) -> Result<Self::Mask> {
        expand(&self.constant_mask(mask, at)?, shape, at)
    }

    /// Returns `value`, expanded to `shape`.
    fn fill_shape(&self, value: f64, shape: &Shape, at: Site) -> Result<Self> {
        expand_number(self, Self::Elem::from_f64(value), shape, at)
    }

    /// Returns the sum over `axes`, which the result keeps with size 1.
    fn sum_over(&self, axes: &[usize], at: Site) -> Result<Self> {
        if axes.is_empty() { Ok(self.clone()) } else { self.apply_reduce(Reduction::Sum, axes, at) }
    }

    /// Returns the mean over `axes`, which the result keeps with size 1.
    fn mean_over(&self, axes: &[usize], at: Site) -> Result<Self> {
        self.sum_over(axes, at)?.divide_by_count(self.shape().numel_over(axes), at)
    }

    /// Returns the mean of `count` elements, whose sum is `self`. The mean of no elements is computed by adding NaN, so that its second
    /// derivative is 0, as in PyTorch. A division by 0 would have an infinite slope and the second derivative NaN.
    fn divide_by_count(&self, count: usize, at: Site) -> Result<Self> {
        let (op, y) = if count == 0 { (Binary::Add, f64::NAN) } else { (Binary::Div, count as f64) };
        self.apply_binary(op, &self.fill_shape(y, &self.shape(), at)?, at)
    }

    fn reshape_to(&self, shape: impl Into<Shape>, at: Site) -> Result<Self> {
        let shape = shape.into();
        if self.shape() == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(shape), at) }
    }

    fn permute_to(&self, order: &[usize], at: Site) -> Result<Self> {
        if order.iter().enumerate().all(|(position, &axis)| position == axis) {
            return Ok(self.clone());
        }
        self.apply_view(View::Permute(order.into()), at)
    }

    /// Returns `len` elements of dimension `axis`, starting at `start`.
    fn slice_axis(&self, axis: usize, start: usize, len: usize, at: Site) -> Result<Self> {
        if start == 0 && len == self.shape()[axis] {
            return Ok(self.clone());
        }
        self.apply_view(View::Slice { axis, start, len, step: 1 }, at)
    }

    fn expand_to(&self, shape: &Shape, at: Site) -> Result<Self> {
        expand(self, shape, at)
    }
}

impl<A: TensorLike> Compose for A {}
