//! Writing and adding by tensors of indices, as functions: `self` stays as it is. The forms that change it are in
//! [`ScatterInPlace`](crate::ops::ScatterInPlace).
//!
//! Where an element is written several times, the last one wins and every source gets its gradient; what is added adds up.

use wengert_macros::twins;

use crate::ops::compose::{Compose, join};
use crate::ops::index::indexing::one_dim;
use crate::ops::index::items::positions_of;
use crate::ops::index::positions::{along, check_range, check_within, slices, wrapped};
use crate::ops::index::replace::{add_at, overwrite, overwrite_with_number, without};
use crate::ops::shape::views::Views;
use crate::ops::{Argument, ArrayOperand, IndexItem, Operand, TensorLike};
use crate::shape::broadcast::Expansion;
use crate::shape::dims;
use crate::{Error, Number, Position, Shape, Site, Tensor};

/// Writing by index tensors.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let points = Tensor::from([1.0, 2.0, 4.0]);
/// let team = Tensor::from([0, 1, 0]);
/// assert_eq!(Tensor::<f64>::zeros([2]).scatter_add(0, &team, &points).to_vec(), [5.0, 2.0]);
/// ```
#[twins]
pub trait Scatter: TensorLike {
    /// `self` with `source` written, along dimension `dim`, to the positions that `index` gives: the inverse of
    /// [`gather`](crate::ops::Indexing::gather). `index` may be smaller than `source`, of which a part is read then. PyTorch:
    /// `scatter`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::<f64>::zeros([2, 3]);
    /// let index = Tensor::from([[2i64], [0]]);
    /// let y = x.scatter(1, &index, &Tensor::from([[5.0], [7.0]]));
    /// assert_eq!(y, Tensor::from([[0.0, 0.0, 5.0], [7.0, 0.0, 0.0]]));
    /// ```
    #[in_place(reads(source))]
    fn try_scatter(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
    ) -> Result<Self, Self::Error> {
        let source = &source.into_array(self);
        let at = Site::here("scatter");
        let Some(positions) = places(self, dim.position(), index, Some(&source.shape()), at)? else {
            return Ok(self.clone());
        };
        overwrite(self, &positions, &leading(source, index.shape(), at)?, at)
    }

    /// `self` with one number written, along dimension `dim`, to the positions that `index` gives. PyTorch: `scatter`
    /// with a value.
    #[in_place(reads())]
    fn try_scatter_value(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        value: Self::Elem,
    ) -> Result<Self, Self::Error> {
        let at = Site::here("scatter_value");
        let Some(positions) = places(self, dim.position(), index, None, at)? else { return Ok(self.clone()) };
        overwrite_with_number(self, &positions, value, at)
    }

    /// `self` with `source` added, along dimension `dim`, at the positions that `index` gives: the adjoint of
    /// [`gather`](crate::ops::Indexing::gather). PyTorch: `scatter_add`.
    #[in_place(reads(source))]
    fn try_scatter_add(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
    ) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let source = &source.into_array(self);
        let at = Site::here("scatter_add");
        let Some(positions) = places(self, dim.position(), index, Some(&source.shape()), at)? else {
            return Ok(self.clone());
        };
        add_at(self, &positions, &leading(source, index.shape(), at)?, at)
    }

    /// `self` with `alpha` times the slices of `source` added to its slices at `index`, a vector, along dimension `dim`:
    /// the adjoint of [`index_select`](crate::ops::Indexing::index_select). PyTorch: `index_add`.
    #[in_place(reads(source))]
    fn try_index_add(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
        alpha: f64,
    ) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let source = &source.into_array(self);
        let at = Site::here("index_add");
        let (whole, axis) = (one_dim(&self.shape()), dims::axis(dim.position(), self.shape().rank(), at)?);
        let from = one_dim(&source.shape());
        check_slices("index_add_()", &whole, axis, index, &from, at)?;
        let line = index.elements(at)?;
        check_within(&line, whole[axis], axis, |_| "index out of range in self".into(), at)?;
        if from.numel() == 0 {
            return Ok(self.clone());
        }
        let line = Tensor::try_from_vec(line, [from[axis]])?;
        let values = if alpha == 1.0 { source.clone() } else { source.times(alpha, at)? };
        let added = Self::apply_index_add(&[(&values.reshaped(from, at)?, &line)], axis, whole[axis], at)?;
        self.plus(&added.reshaped(self.shape(), at)?, at)
    }

    /// `self` with the slices of `source` written to its slices at `index`, a vector, along dimension `dim`. PyTorch:
    /// `index_copy`.
    #[in_place(reads(source))]
    fn try_index_copy(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
    ) -> Result<Self, Self::Error> {
        let source = &source.into_array(self);
        let at = Site::here("index_copy");
        let (whole, axis) = (one_dim(&self.shape()), dims::axis(dim.position(), self.shape().rank(), at)?);
        let from = one_dim(&source.shape());
        check_slices("index_copy_()", &whole, axis, index, &from, at)?;
        let line = index.elements(at)?;
        check_range(&line, whole[axis], axis, at)?;
        overwrite(self, &slices(&whole, axis, &line, at)?, &source.reshaped(from, at)?, at)
    }

    /// `self` with `value`, a number or a tensor of rank 0, written to its slices at `index`, a vector, along dimension
    /// `dim`; negative positions count from the end. PyTorch: `index_fill`.
    #[in_place(reads())]
    fn try_index_fill(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        value: impl Operand<Self>,
    ) -> Result<Self, Self::Error> {
        let at = Site::here("index_fill");
        let (whole, axis) = (one_dim(&self.shape()), dims::axis(dim.position(), self.shape().rank(), at)?);
        if index.rank() > 1 {
            return Err(Error::argument(at, "Index has to be a vector/scalar").into());
        }
        let line = wrapped(index, whole[axis], axis, at)?.elements(at)?;
        let positions = slices(&whole, axis, &line, at)?;
        match value.into_argument(self) {
            Argument::Number(value) => overwrite_with_number(self, &positions, value, at),
            Argument::Array(value) if value.shape().rank() == 0 => {
                let kept = without(&self.shape(), &positions, at)?;
                self.chosen(&self.mask(&kept), &value, at)
            }
            Argument::Array(value) => {
                let message = format!(
                    "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                    value.shape().rank()
                );
                Err(Error::argument(at, message).into())
            }
        }
    }

    /// `self` with `values`, which broadcast, written to the elements that `items` choose, or added to them where
    /// `accumulate` is set. PyTorch: `index_put`.
    fn try_index_put(
        &self,
        items: &[IndexItem],
        values: impl ArrayOperand<Self>,
        accumulate: bool,
    ) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let values = &values.into_array(self);
        let at = Site::here("index_put");
        let positions = positions_of(&self.shape(), items, at)?;
        let values = fitted(values, positions.shape(), at)?;
        if accumulate { add_at(self, &positions, &values, at) } else { overwrite(self, &positions, &values, at) }
    }

    /// `self` with `value` written to the elements that `items` choose. A tensor is expanded to their shape, after
    /// dropping leading dimensions of size 1. PyTorch: `x[items] = value`.
    ///
    /// ```
    /// use wengert_tensor::{index_items, prelude::*};
    ///
    /// let x = Tensor::<f64>::zeros([2, 3]);
    /// assert_eq!(x.index_set(&index_items![.., 1..], 5.0), Tensor::from([[0.0, 5.0, 5.0], [0.0, 5.0, 5.0]]));
    /// ```
    fn try_index_set(&self, items: &[IndexItem], value: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("index_set");
        let positions = positions_of(&self.shape(), items, at)?;
        match value.into_argument(self) {
            Argument::Number(value) => overwrite_with_number(self, &positions, value, at),
            Argument::Array(value) => {
                let value = if crate::ops::index::items::is_view(items) {
                    without_leading_ones(&value, at)?.try_expand(positions.shape())?
                } else {
                    fitted(&value, positions.shape(), at)?
                };
                overwrite(self, &positions, &value, at)
            }
        }
    }

    /// `self` with the elements of `source`, in row-major order, written where `mask` holds; `self` and `mask` broadcast.
    /// The other elements of `source` are not read. PyTorch: `masked_scatter`.
    fn try_masked_scatter(&self, mask: &Tensor<bool>, source: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let source = &source.into_array(self);
        let at = Site::here("masked_scatter");
        let shape = join(&self.shape(), mask.shape(), at)?;
        let mask = mask.over(&shape, at)?;
        let mut taken = -1;
        let numbers = Tensor::build(&shape, at, |numbers| {
            for (number, chosen) in numbers.iter_mut().zip(mask.iter()) {
                taken += i64::from(chosen);
                *number = taken.max(0);
            }
        })?;
        if taken >= source.shape().numel() as i64 {
            return Err(Error::argument(at, "Number of elements of source < number of ones in mask").into());
        }
        let x = self.over(&shape, at)?;
        if taken < 0 {
            return Ok(x);
        }
        let values = source.apply_take(&numbers, at)?;
        Self::apply_select(&self.mask(&mask), &values, &x, at)
    }
}

impl<A: TensorLike> Scatter for A {}

/// The positions that `index` gives along dimension `dim` of `x`, in the shape of `index`; `None` where there are none.
fn places<A: TensorLike>(
    x: &A,
    dim: isize,
    index: &Tensor<i64>,
    source: Option<&Shape>,
    at: Site,
) -> Result<Option<Tensor<i64>>, A::Error> {
    let axis = dims::axis(dim, x.shape().rank(), at)?;
    if index.numel() == 0 {
        return Ok(None);
    }
    let (own, place) = (one_dim(&x.shape()), one_dim(index.shape()));
    let source = source.map(one_dim);
    for (other, name) in [(Some(&own), "self"), (source.as_ref(), "src")] {
        if other.is_some_and(|other| other.rank() != place.rank()) {
            let message = format!("Index tensor must have the same number of dimensions as {name} tensor");
            return Err(Error::argument(at, message).into());
        }
    }
    let larger = |limit: &Shape, free: Option<usize>| {
        (0..place.rank()).any(|other| Some(other) != free && place[other] > limit[other])
    };
    if larger(&own, Some(axis)) || source.as_ref().is_some_and(|source| larger(source, None)) {
        let mut message = format!("Expected index {place} to be no larger than self {own} apart from dimension {axis}");
        if let Some(source) = &source {
            message += &format!(" and to be no larger size than src {source}");
        }
        return Err(Error::argument(at, message).into());
    }
    check_range(&index.elements(at)?, own[axis], axis, at)?;
    let positions = along(&own, axis, &index.reshaped(place, at)?, at)?;
    Ok(Some(positions.reshaped(index.shape().clone(), at)?))
}

/// The first elements of `source` along every dimension, in the shape `shape`.
fn leading<A: TensorLike>(source: &A, shape: &Shape, at: Site) -> Result<A, A::Error> {
    let mut part = source.clone();
    if source.shape().rank() == shape.rank() {
        for axis in 0..shape.rank() {
            part = part.sliced(axis, 0, shape[axis], at)?;
        }
    }
    // One of the two may be of rank 0 and the other a vector of one element.
    part.reshaped(shape.clone(), at)
}

/// Refuses slices that do not fit the slices of a tensor of shape `whole` that they are written to.
fn check_slices(
    name: &str,
    whole: &Shape,
    axis: usize,
    index: &Tensor<i64>,
    from: &Shape,
    at: Site,
) -> Result<(), Error> {
    if index.rank() > 1 {
        let message = format!("{name}: Index is supposed to be a vector, but got dim: {}", index.rank());
        return Err(Error::argument(at, message));
    }
    let differ = |other: usize| other != axis && whole[other] != from[other];
    if from.rank() != whole.rank() || (0..whole.rank()).any(differ) {
        let message = format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {whole} \
             source.shape = {from}"
        );
        return Err(Error::argument(at, message));
    }
    if from[axis] != index.numel() {
        let message = format!(
            "{name}: Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {axis}",
            index.numel(),
            from[axis]
        );
        return Err(Error::argument(at, message));
    }
    Ok(())
}

/// Values expanded to the shape of the elements that index tensors chose.
fn fitted<A: TensorLike>(values: &A, shape: &Shape, at: Site) -> Result<A, A::Error> {
    let bare = without_leading_ones(values, at)?;
    if Expansion::new(&bare.shape(), shape).is_none() {
        let message = format!(
            "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {shape}",
            values.shape()
        );
        return Err(Error::ShapeMismatch { message, at }.into());
    }
    bare.over(shape, at)
}

fn without_leading_ones<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let shape = x.shape();
    let ones = shape.iter().take_while(|&&size| size == 1).count();
    x.reshaped(&shape[ones..], at)
}

#[cfg(test)]
mod tests {
    use crate::index_items;
    use crate::prelude::*;

    #[test]
    fn the_last_of_several_writes_wins_and_additions_add_up() {
        let x = Tensor::from([1.0, 2.0, 3.0]);
        let index = Tensor::from([0i64, 2, 0]);
        let source = Tensor::from([10.0, 20.0, 30.0]);
        assert_eq!(x.scatter(0, &index, &source).to_vec(), [30.0, 2.0, 20.0]);
        assert_eq!(x.scatter_add(0, &index, &source).to_vec(), [41.0, 2.0, 23.0]);
        assert_eq!(x.index_copy(0, &index, &source).to_vec(), [30.0, 2.0, 20.0]);
        assert_eq!(x.index_add(0, &index, &source, 0.5).to_vec(), [21.0, 2.0, 13.0]);
        assert_eq!(x.index_fill(0, &Tensor::from([-1i64]), 0.0).to_vec(), [1.0, 2.0, 0.0]);
        assert_eq!(x.index_fill(0, &Tensor::from([1i64]), Tensor::scalar(7.0)).to_vec(), [1.0, 7.0, 3.0]);
        assert_eq!(x.scatter_value(0, &index, 9.0).to_vec(), [9.0, 2.0, 9.0]);
    }

    #[test]
    fn a_part_of_a_larger_source_is_read() {
        let index = Tensor::from([[1i64], [0]]);
        let source = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(Tensor::zeros([2, 2]).scatter(1, &index, &source), Tensor::from([[0.0, 1.0], [3.0, 0.0]]));
        let error = Tensor::<f64>::zeros([2, 3]).try_scatter(1, &Tensor::zeros([3, 3]), Tensor::zeros([3, 3]));
        assert_eq!(
            error.unwrap_err().sentence(),
            "Expected index [3, 3] to be no larger than self [2, 3] apart from dimension 1 and to be no larger size than \
             src [3, 3]"
        );
    }

    #[test]
    fn assignment_drops_leading_ones_and_names_what_does_not_fit() {
        let x = Tensor::<f64>::zeros([3]);
        assert_eq!(x.index_set(&index_items![..], Tensor::ones([1, 1, 3])).to_vec(), [1.0; 3]);
        let positions = Tensor::from([0i64, 0]);
        assert_eq!(x.index_put(&index_items![&positions], Tensor::scalar(2.0), true).to_vec(), [4.0, 0.0, 0.0]);
        let error = x.try_index_put(&index_items![&positions], Tensor::ones([3]), false).unwrap_err();
        assert_eq!(
            error.sentence(),
            "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]"
        );
        let error = Tensor::<f64>::zeros([3, 2]).try_index_set(&index_items![..], Tensor::ones([3])).unwrap_err();
        assert!(error.sentence().starts_with("The expanded size of the tensor (2) must match the existing size (3)"));
    }

    #[test]
    fn masked_scatter_reads_the_source_in_order() {
        let mask = Tensor::from([true, false, true]);
        let source = Tensor::from([[5.0, 6.0], [7.0, 8.0]]);
        let y = Tensor::<f64>::zeros([2, 1]).masked_scatter(&mask, &source);
        assert_eq!(y, Tensor::from([[5.0, 0.0, 6.0], [7.0, 0.0, 8.0]]));
        assert!(Tensor::<f64>::zeros([3]).try_masked_scatter(&mask, Tensor::ones([1])).is_err());
    }
}
