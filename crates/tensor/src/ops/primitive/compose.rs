//! Short methods from which composed operations are written: `x.minus(&mean, at)?.times(&scale, at)?`.
//!
//! The settings of [`compat`](crate::shape::compat) do not apply to these methods, because no user calls them. If one fails, its error
//! names the [`Site`] of the whole operation.

use crate::ops::primitive::pair::{aligned, combined, expanded, number};
use crate::ops::{Argument, Operand, TensorLike};
use crate::shape::broadcast;
use crate::shape::compat::BroadcastRule;
use crate::{Binary, Compare, Error, Reduction, Scalar, Shape, Site, Tensor, Unary, View};

/// The methods from which composed operations are written.
pub(crate) trait Compose: TensorLike {
    fn plus(&self, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        self.combined(Binary::Add, y, at)
    }

    fn minus(&self, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        self.combined(Binary::Sub, y, at)
    }

    fn times(&self, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        self.combined(Binary::Mul, y, at)
    }

    fn divided(&self, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        self.combined(Binary::Div, y, at)
    }

    fn combined(&self, op: Binary, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        combined(self, op, y, BroadcastRule::Step, at)
    }

    fn compared(&self, op: Compare, y: impl Operand<Self>, at: Site) -> Result<Self::Mask, Self::Error> {
        let (x, y) = aligned(self, y, BroadcastRule::Step, at)?;
        x.apply_compare(op, &y, at)
    }

    /// Returns `self` where `mask` is true and `y` elsewhere, in the shape of `mask`.
    fn chosen(&self, mask: &Self::Mask, y: impl Operand<Self>, at: Site) -> Result<Self, Self::Error> {
        let shape = mask.shape();
        let y = match y.into_argument(self) {
            Argument::Array(y) => expanded(&y, &shape, at)?,
            Argument::Number(value) => number(self, value, &shape, at)?,
        };
        Self::apply_select(mask, &expanded(self, &shape, at)?, &y, at)
    }

    /// Returns `value` where `mask` is true and `self` elsewhere. The shapes are equal.
    fn replaced(&self, mask: &Self::Mask, value: f64, at: Site) -> Result<Self, Self::Error> {
        Self::apply_select(mask, &self.filled(value, &self.shape(), at)?, self, at)
    }

    /// Returns a mask of plain data, expanded to `shape`.
    fn mask_over(&self, mask: &Tensor<bool>, shape: &Shape, at: Site) -> Result<Self::Mask, Self::Error> {
        expanded(&self.mask(mask), shape, at)
    }

    /// Returns `value`, expanded to `shape`.
    fn filled(&self, value: f64, shape: &Shape, at: Site) -> Result<Self, Self::Error> {
        number(self, Self::Elem::from_f64(value), shape, at)
    }

    fn mapped(&self, op: Unary, at: Site) -> Result<Self, Self::Error> {
        self.apply_unary(op, at)
    }

    /// Returns the sum over `axes`, which stay with size 1.
    fn summed(&self, axes: &[usize], at: Site) -> Result<Self, Self::Error> {
        if axes.is_empty() { Ok(self.clone()) } else { self.apply_reduce(Reduction::Sum, axes, at) }
    }

    /// Returns the mean over `axes`, which stay with size 1.
    fn averaged(&self, axes: &[usize], at: Site) -> Result<Self, Self::Error> {
        let shape = self.shape();
        let count = axes.iter().map(|&axis| shape[axis]).collect::<Shape>().numel();
        self.summed(axes, at)?.divided(count as f64, at)
    }

    fn reshaped(&self, shape: impl Into<Shape>, at: Site) -> Result<Self, Self::Error> {
        let shape = shape.into();
        if self.shape() == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(shape), at) }
    }

    fn permuted(&self, order: &[usize], at: Site) -> Result<Self, Self::Error> {
        if order.iter().enumerate().all(|(position, &axis)| position == axis) {
            return Ok(self.clone());
        }
        self.apply_view(View::Permute(order.into()), at)
    }

    /// Returns `len` elements of dimension `axis`, starting at `start`.
    fn sliced(&self, axis: usize, start: usize, len: usize, at: Site) -> Result<Self, Self::Error> {
        if start == 0 && len == self.shape()[axis] {
            return Ok(self.clone());
        }
        self.apply_view(View::Slice { axis, start, len, step: 1 }, at)
    }

    fn over(&self, shape: &Shape, at: Site) -> Result<Self, Self::Error> {
        expanded(self, shape, at)
    }
}

impl<A: TensorLike> Compose for A {}

/// Returns the broadcast shape of two shapes.
pub(crate) fn join(x: &Shape, y: &Shape, at: Site) -> Result<Shape, Error> {
    broadcast::join(&[x, y]).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Returns the product of `sizes`. It is 0 if a size is 0, even if the product of the others overflows.
pub(crate) fn count(sizes: &[usize]) -> usize {
    Shape::from(sizes).numel()
}
