//! Writing into a view of an array. The operations return a new array, and are the counterparts of assignments such as `x[:, 0] = y` in
//! PyTorch.

use wengert_macros::twins;

use crate::ops::shape::views::{diagonal_view, select_view, slice_view};
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::{Position, Site, Span, Tensor, View, ensure};

/// Writing into a view. The written array has exactly the shape of the view. The gradient of a replaced element is 0.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::<f64>::zeros([2, 2]);
/// let line = Tensor::from([1.0, 2.0]);
/// assert_eq!(x.select_scatter(&line, 0, -1), Tensor::from([[0.0, 0.0], [1.0, 2.0]]));
/// assert_eq!(x.slice_scatter(line.reshape([1, 2]), 0, ..1), Tensor::from([[1.0, 2.0], [0.0, 0.0]]));
/// assert_eq!(x.diagonal_scatter(&line, 0, 0, 1), Tensor::from([[1.0, 0.0], [0.0, 2.0]]));
/// ```
#[twins(blanket)]
pub trait ViewScatter: TensorLike {
    /// Returns `self` with `source` in place of `self.select(dim, index)`. PyTorch: `select_scatter`.
    fn try_select_scatter(
        &self,
        source: impl ArrayOperand<Self>,
        dim: impl Position,
        index: impl Position,
    ) -> Result<Self> {
        let at = Site::here("select_scatter");
        let (view, axis) = select_view(&self.shape(), dim.position(), index.position(), at)?;
        write(self, view, Some(axis), &source.into_array(self)?, at)
    }

    /// Returns `self` with `source` in place of `self.slice(dim, span)`. PyTorch: `slice_scatter`.
    fn try_slice_scatter(
        &self,
        source: impl ArrayOperand<Self>,
        dim: impl Position,
        span: impl Into<Span>,
    ) -> Result<Self> {
        let at = Site::here("slice_scatter");
        let view = slice_view(&self.shape(), dim.position(), span.into(), at)?;
        write(self, view, None, &source.into_array(self)?, at)
    }

    /// Returns `self` with `source` in place of `self.diagonal(offset, first, second)`. Refuses equal dimensions. PyTorch:
    /// `diagonal_scatter`.
    fn try_diagonal_scatter(
        &self,
        source: impl ArrayOperand<Self>,
        offset: isize,
        first: impl Position,
        second: impl Position,
    ) -> Result<Self> {
        let at = Site::here("diagonal_scatter");
        let view = diagonal_view(self.shape().rank(), offset, first.position(), second.position(), at)?;
        write(self, view, None, &source.into_array(self)?, at)
    }
}

/// Returns `x` with `source` in place of `view`. `source` lacks dimension `removed` of the view, which has size 1.
fn write<A: TensorLike>(x: &A, view: View, removed: Option<usize>, source: &A, at: Site) -> Result<A> {
    let shape = x.shape();
    let whole = x.apply_view(view.clone(), at)?.shape();
    let (slice, size) = (removed.map_or(whole.clone(), |axis| whole.without(&[axis])), source.shape());
    ensure!(
        size == slice,
        at,
        "expected src to have a size equal to the slice of self. src size = {size}, slice size = {slice}"
    );
    let source = source.reshape_to(whole.clone(), at)?.apply_embed(view.clone(), &shape, at)?;
    let mask = Tensor::splat(true, &whole, at)?.apply_embed(view, &shape, at)?;
    A::apply_select(&x.constant_mask(&mask, at)?, &source, x, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn only_the_view_is_written() {
        let x = Tensor::from([[1.0, f64::NAN], [f64::INFINITY, 4.0], [5.0, 6.0], [7.0, 8.0]]);
        let y = x.select_scatter(Tensor::from([9.0, -0.0, 7.0, 6.0]), 1, 0);
        assert_eq!(y.select(1, 0).to_vec(), [9.0, -0.0, 7.0, 6.0]);
        assert!(y.get(&[1, 0]).unwrap().is_sign_negative());
        assert!(y.select(1, 1).to_vec()[0].is_nan() && y.select(1, 1).to_vec()[1..] == [4.0, 6.0, 8.0]);
        let y = x.slice_scatter(Tensor::zeros([2, 2]), 0, (.., 2));
        assert_eq!(y.slice(0, (1.., 2)), x.slice(0, (1.., 2)));
        assert_eq!(y.slice(0, (.., 2)), Tensor::zeros([2, 2]));
        let y = Tensor::<i64>::zeros([3, 3]).diagonal_scatter(Tensor::from([5i64, 6]), 1, 0, 1);
        assert_eq!(y, Tensor::from([[0i64, 5, 0], [0, 0, 6], [0, 0, 0]]));
        let flags = Tensor::from([true, true]).slice_scatter(Tensor::from([false]), 0, 1..);
        assert_eq!(flags.to_vec(), [true, false]);
        assert_eq!(x.slice_scatter(Tensor::zeros([0, 2]), 0, 2..2).slice(0, 2..), x.slice(0, 2..));
    }
}
