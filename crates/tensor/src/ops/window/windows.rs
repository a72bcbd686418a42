//! Sliding windows along dimensions: the arithmetic that convolution and pooling share.

use crate::memory::reserve::addressable;
use crate::ops::shape::views::{squeeze, unsqueeze};
use crate::ops::{Result, TensorLike};
use crate::{Error, Shape, Site, Sizes, View, ensure};

/// The windows along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The number of elements of a window.
    pub(crate) kernel: usize,
    /// The distance between the first elements of neighbouring windows.
    pub(crate) stride: usize,
    /// The distance between neighbouring elements of a window.
    pub(crate) dilation: usize,
}

impl Window {
    /// Returns the number of elements from the first to the last element of a window, both included.
    pub(crate) fn span(self) -> usize {
        self.dilation.saturating_mul(self.kernel - 1).saturating_add(1)
    }

    /// Returns the number of elements that `count` windows cover, from the first to the last.
    pub(crate) fn extent(self, count: usize) -> usize {
        (count - 1).saturating_mul(self.stride).saturating_add(self.span())
    }

    /// Returns the number of windows in `size` elements; 0 if the first window does not fit.
    pub(crate) fn count(self, size: usize) -> usize {
        size.checked_sub(self.span()).map_or(0, |rest| rest / self.stride + 1)
    }

    /// Returns a view of the windows along `axis`. The elements of a window become the last dimension.
    pub(crate) fn view<A: TensorLike>(self, x: &A, axis: usize, at: Site) -> Result<A> {
        let spans = x.apply_view(View::Unfold { axis, size: self.span(), step: self.stride }, at)?;
        if self.dilation == 1 { Ok(spans) } else { spans.apply_view(self.dilation_view(&spans.shape()), at) }
    }

    /// Applies the adjoint of [`view`](Self::view): adds the windows `x`, whose elements are the last dimension, to zeros. In the result,
    /// dimension `axis` has `size` elements.
    pub(crate) fn embed<A: TensorLike>(self, x: &A, axis: usize, size: usize, at: Site) -> Result<A> {
        let last = x.shape().rank() - 1;
        let spans = x.shape().with_size(last, self.span());
        let target = spans.without(&[last]).with_size(axis, size);
        addressable::<A::Elem>(&target, at)?;
        let unfold = View::Unfold { axis, size: self.span(), step: self.stride };
        if self.dilation == 1 {
            return x.apply_embed(unfold, &target, at);
        }
        addressable::<A::Elem>(&spans, at)?;
        x.apply_embed(self.dilation_view(&spans), &spans, at)?.apply_embed(unfold, &target, at)
    }

    /// Returns the view of every `dilation`-th element of the last dimension.
    fn dilation_view(self, spans: &Shape) -> View {
        View::Slice { axis: spans.rank() - 1, start: 0, len: self.kernel, step: self.dilation as isize }
    }
}

/// Returns one value per dimension. `sizes` is a single value for all `rank` dimensions, or a list.
pub(crate) fn per_dimension(sizes: &Sizes, rank: usize, name: &str, at: Site) -> Result<Vec<isize>, Error> {
    ensure!(!sizes.as_slice().contains(&isize::MIN), at, "{name} should be at most {}", isize::MAX);
    match sizes.as_slice() {
        [one] => Ok(vec![*one; rank]),
        each if each.len() == rank => Ok(each.to_vec()),
        each => {
            let message = format!(
                "expected {name} to be a single integer value or a list of {rank} values to match the {} dimensions, but got \
                 {name}={each:?}",
                at.operation
            );
            Err(Error::argument(at, message))
        }
    }
}

/// Returns one value per dimension, like [`per_dimension`]. Refuses values below `least`.
pub(crate) fn per_dimension_at_least(
    sizes: &Sizes,
    rank: usize,
    (name, least): (&str, isize),
    at: Site,
) -> Result<Vec<usize>, Error> {
    let sizes = per_dimension(sizes, rank, name, at)?;
    let is_valid = sizes.iter().all(|&size| size >= least);
    match name {
        "padding" => ensure!(is_valid, at, "negative padding is not supported"),
        "stride" => ensure!(is_valid, at, "non-positive stride is not supported"),
        _ => ensure!(is_valid, at, "{name} should be at least {least}, but got {sizes:?}"),
    }
    Ok(sizes.into_iter().map(|size| size as usize).collect())
}

/// Inserts a batch dimension if `x` has one dimension fewer than `rank`. The second result is true if the dimension was inserted.
pub(crate) fn add_batch<A: TensorLike>(x: &A, rank: usize, at: Site) -> Result<(A, bool), A::Error> {
    let missing = x.shape().rank() + 1 == rank;
    Ok((if missing { unsqueeze(x, 0, at)? } else { x.clone() }, missing))
}

/// Removes the batch dimension if [`add_batch`] has inserted it.
pub(crate) fn remove_batch<A: TensorLike>(x: A, added: bool, at: Site) -> Result<A> {
    if added { squeeze(&x, 0, at) } else { Ok(x) }
}
