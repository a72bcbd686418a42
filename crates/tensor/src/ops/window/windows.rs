//! Windows along dimensions: the geometry that convolutions and poolings share.

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::{Error, Shape, Site, Sizes, View};

/// Windows along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Elements in a window.
    pub(crate) kernel: usize,
    /// The distance from one window to the next.
    pub(crate) stride: usize,
    /// The distance from one element of a window to the next.
    pub(crate) dilation: usize,
}

impl Window {
    /// Elements from the first to the last of a window, both included.
    pub(crate) fn span(self) -> usize {
        self.dilation.saturating_mul(self.kernel - 1).saturating_add(1)
    }

    /// Elements that `count` windows lie in.
    pub(crate) fn extent(self, count: usize) -> usize {
        (count - 1).saturating_mul(self.stride).saturating_add(self.span())
    }

    /// Windows in `size` elements: none where the first does not fit.
    pub(crate) fn count(self, size: usize) -> usize {
        size.checked_sub(self.span()).map_or(0, |rest| rest / self.stride + 1)
    }

    /// The windows along `axis`, without a copy; the window becomes a last dimension.
    pub(crate) fn view<A: TensorLike>(self, x: &A, axis: usize, at: Site) -> Result<A, A::Error> {
        let spans = x.apply_view(View::Unfold { axis, size: self.span(), step: self.stride }, at)?;
        if self.dilation == 1 { Ok(spans) } else { spans.apply_view(self.taps(&spans.shape()), at) }
    }

    /// Every `dilation`-th element of the last dimension.
    fn taps(self, spans: &Shape) -> View {
        View::Slice { axis: spans.rank() - 1, start: 0, len: self.kernel, step: self.dilation as isize }
    }
}

/// One number for all `rank` dimensions, or one for each.
pub(crate) fn per_dimension(sizes: &Sizes, rank: usize, name: &str, at: Site) -> Result<Vec<isize>, Error> {
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

/// [`per_dimension`], where every number is at least `least`.
pub(crate) fn at_least(
    sizes: &Sizes,
    rank: usize,
    (name, least): (&str, isize),
    at: Site,
) -> Result<Vec<usize>, Error> {
    let sizes = per_dimension(sizes, rank, name, at)?;
    if sizes.iter().any(|&size| size < least) {
        let message = match (name, least) {
            ("padding", _) => "negative padding is not supported".to_owned(),
            ("stride", _) => "non-positive stride is not supported".to_owned(),
            _ => format!("{name} should be at least {least}, but got {sizes:?}"),
        };
        return Err(Error::argument(at, message));
    }
    Ok(sizes.into_iter().map(|size| size as usize).collect())
}

/// With a batch dimension in front, and whether it was put there.
pub(crate) fn batched<A: TensorLike>(x: &A, rank: usize, at: Site) -> Result<(A, bool), A::Error> {
    let mut shape = x.shape();
    if shape.rank() + 1 != rank {
        return Ok((x.clone(), false));
    }
    shape.insert(0, 1);
    Ok((x.reshaped(shape, at)?, true))
}

/// Without the batch dimension, if it was put there.
pub(crate) fn unbatched<A: TensorLike>(x: A, added: bool, at: Site) -> Result<A, A::Error> {
    if !added {
        return Ok(x);
    }
    let mut shape = x.shape();
    shape.remove(0);
    x.reshaped(shape, at)
}
