//! Writing and adding by index tensors. These operations return a new array. The in-place forms are in
//! [`ScatterInPlace`](crate::ops::ScatterInPlace).
//!
//! If several writes go to the same element, the last write wins, and every written value gets the gradient of the element. If several
//! additions go to the same element, all are added.

use wengert_macros::twins;

use crate::ops::index::indexing::one_dim;
use crate::ops::index::items::{is_view, positions_of};
use crate::ops::index::positions::{check_index, check_range, gathered_positions, slice_positions, wrap};
use crate::ops::index::replace::{add_at, mask_without, overwrite, overwrite_with_number};
use crate::ops::primitive::compose::{Compose, join};
use crate::ops::primitive::pair::one_value;
use crate::ops::shape::views::Views;
use crate::ops::{Argument, ArrayOperand, IndexItem, Operand, Result, TensorLike};
use crate::shape::broadcast::expands;
use crate::shape::dims;
use crate::{Error, Number, Position, Shape, Site, Tensor, ensure};

/// Writes or adds to elements that index tensors select.
#[twins]
pub trait Scatter: TensorLike {
    /// Returns `self` with `source` written to the positions `index` along dimension `dim`: the inverse of
    /// [`gather`](crate::ops::Indexing::gather). If `index` has smaller sizes than `source`, only the first elements along each dimension
    /// of `source` are read. PyTorch: `scatter`.
    ///
    /// ```
    /// # use wengert_tensor as wengert;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::<f64>::zeros([2, 3]);
    /// let index = Tensor::from([[2i64], [0]]);
    /// let y = x.scatter(1, &index, &Tensor::from([[5.0], [7.0]]));
    /// assert_eq!(y, Tensor::from([[0.0, 0.0, 5.0], [7.0, 0.0, 0.0]]));
    /// ```
    #[in_place(reads(source))]
    fn try_scatter(&self, dim: impl Position, index: &Tensor<i64>, source: impl ArrayOperand<Self>) -> Result<Self> {
        let source = &source.into_array(self);
        let at = Site::here("scatter");
        match target_positions(self, dim, index, Some(&source.shape()), at)? {
            None => Ok(self.clone()),
            Some(positions) => overwrite(self, &positions, &leading_part(source, index.shape(), at)?, at),
        }
    }

    /// Returns `self` with one value written to the positions `index` along dimension `dim`. PyTorch: `scatter` with a value.
    #[in_place(reads())]
    fn try_scatter_value(&self, dim: impl Position, index: &Tensor<i64>, value: Self::Elem) -> Result<Self> {
        let at = Site::here("scatter_value");
        match target_positions(self, dim, index, None, at)? {
            None => Ok(self.clone()),
            Some(positions) => overwrite_with_number(self, &positions, value, at),
        }
    }

    /// Returns `self` with `source` added at the positions `index` along dimension `dim`: the adjoint of
    /// [`gather`](crate::ops::Indexing::gather). PyTorch: `scatter_add`.
    ///
    /// ```
    /// # use wengert_tensor as wengert;
    /// use wengert::prelude::*;
    ///
    /// let (points, team) = (Tensor::from([1.0, 2.0, 4.0]), Tensor::from([0, 1, 0]));
    /// assert_eq!(Tensor::<f64>::zeros([2]).scatter_add(0, &team, &points).to_vec(), [5.0, 2.0]);
    /// ```
    #[in_place(reads(source))]
    fn try_scatter_add(&self, dim: impl Position, index: &Tensor<i64>, source: impl ArrayOperand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let source = &source.into_array(self);
        let at = Site::here("scatter_add");
        match target_positions(self, dim, index, Some(&source.shape()), at)? {
            None => Ok(self.clone()),
            Some(positions) => add_at(self, &positions, &leading_part(source, index.shape(), at)?, at),
        }
    }

    /// Returns `self` with `alpha` times the slices of `source` added to the slices with the indices `index`, a vector, along dimension
    /// `dim`: the adjoint of [`index_select`](crate::ops::Indexing::index_select). PyTorch: `index_add`.
    #[in_place(reads(source))]
    fn try_index_add(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
        alpha: f64,
    ) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let source = &source.into_array(self);
        let at = Site::here("index_add");
        let (whole, from, axis) = slices("index_add_()", self, dim, index, source, at)?;
        let line = check_index(index, whole[axis], axis, |_| "index out of range in self".into(), at)?;
        if from.numel() == 0 {
            return Ok(self.clone());
        }
        let values = if alpha == 1.0 { source.clone() } else { source.times(alpha, at)? };
        let terms = [(&values.reshape_to(from, at)?, &line.reshape_to([line.numel()], at)?)];
        let added = Self::apply_index_add(&terms, axis, whole[axis], at)?;
        self.plus(&added.reshape_to(self.shape(), at)?, at)
    }

    /// Returns `self` with the slices of `source` written to the slices with the indices `index`, a vector, along dimension `dim`. PyTorch:
    /// `index_copy`.
    #[in_place(reads(source))]
    fn try_index_copy(&self, dim: impl Position, index: &Tensor<i64>, source: impl ArrayOperand<Self>) -> Result<Self> {
        let source = &source.into_array(self);
        let at = Site::here("index_copy");
        let (whole, from, axis) = slices("index_copy_()", self, dim, index, source, at)?;
        let line = index.elements(at)?;
        check_range(&line, whole[axis], axis, at)?;
        overwrite(self, &slice_positions(&whole, axis, &line, at)?, &source.reshape_to(from, at)?, at)
    }

    /// Returns `self` with `value` written to the slices with the indices `index` along dimension `dim`. `value` is a number or an array
    /// of rank 0, and `index` is a vector. Negative indices count from the end. PyTorch: `index_fill`.
    #[in_place(reads())]
    fn try_index_fill(&self, dim: impl Position, index: &Tensor<i64>, value: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("index_fill");
        let (whole, axis) = (one_dim(&self.shape()), dims::axis(dim, self.shape().rank(), at)?);
        ensure!(index.rank() <= 1, at, "Index has to be a vector/scalar");
        let line = wrap(index, whole[axis], axis, at)?.elements(at)?;
        let positions = slice_positions(&whole, axis, &line, at)?;
        let value = one_value(self, value, &self.shape(), at, |rank| {
            format!("index_fill_ only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s).")
        })?;
        self.choose(&self.mask(&mask_without(&self.shape(), &positions, at)?, at)?, &value, at)
    }

    /// Returns `self` with `values`, which broadcast, written to the elements that `items` select. If `accumulate` is true, adds `values`
    /// instead. PyTorch: `index_put`.
    fn try_index_put(&self, items: &[IndexItem], values: impl ArrayOperand<Self>, accumulate: bool) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let values = &values.into_array(self);
        let at = Site::here("index_put");
        let positions = positions_of(&self.shape(), items, at)?;
        let values = expand_values(values, positions.shape(), at)?;
        if accumulate { add_at(self, &positions, &values, at) } else { overwrite(self, &positions, &values, at) }
    }

    /// Returns `self` with `value` written to the elements that `items` select. If `value` is an array, its leading dimensions of size 1
    /// are dropped. The array is then expanded to the shape of the selected elements. PyTorch: `x[items] = value`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; }
    /// use wengert::tensor::{index_items, prelude::*};
    ///
    /// let x = Tensor::<f64>::zeros([2, 3]);
    /// assert_eq!(x.index_set(&index_items![.., 1..], 5.0), Tensor::from([[0.0, 5.0, 5.0], [0.0, 5.0, 5.0]]));
    /// ```
    fn try_index_set(&self, items: &[IndexItem], value: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("index_set");
        let positions = positions_of(&self.shape(), items, at)?;
        match value.into_argument(self) {
            Argument::Number(value) => overwrite_with_number(self, &positions, value, at),
            Argument::Array(value) => {
                let value = match is_view(items) {
                    true => drop_leading_ones(&value, at)?.try_expand(positions.shape())?,
                    false => expand_values(&value, positions.shape(), at)?,
                };
                overwrite(self, &positions, &value, at)
            }
        }
    }

    /// Returns `self` with elements of `source`, in row-major order, written where `mask` is true. `self` and `mask` broadcast.
    /// Elements of `source` beyond the number of true elements are not read. PyTorch: `masked_scatter`.
    fn try_masked_scatter(&self, mask: &Tensor<bool>, source: impl ArrayOperand<Self>) -> Result<Self> {
        let source = &source.into_array(self);
        let at = Site::here("masked_scatter");
        let shape = join(&self.shape(), mask.shape(), at)?;
        let mask = mask.expand_to(&shape, at)?;
        let mut last = -1;
        let numbers = Tensor::build(&shape, at, |numbers| {
            for (number, selected) in numbers.iter_mut().zip(mask.iter()) {
                last += i64::from(selected);
                *number = last.max(0);
            }
        })?;
        ensure!(last < source.shape().numel() as i64, at, "Number of elements of source < number of ones in mask");
        let x = self.expand_to(&shape, at)?;
        if last < 0 {
            return Ok(x);
        }
        let values = source.apply_take(&numbers, at)?;
        Self::apply_select(&self.mask(&mask, at)?, &values, &x, at)
    }
}

impl<A: TensorLike> Scatter for A {}

/// Converts the positions `index` along dimension `dim` of `x` to row-major positions. Returns `None` if `index` is empty.
pub(crate) fn target_positions<A: TensorLike>(
    x: &A,
    dim: impl Position,
    index: &Tensor<i64>,
    source: Option<&Shape>,
    at: Site,
) -> Result<Option<Tensor<i64>>, A::Error> {
    let axis = dims::axis(dim, x.shape().rank(), at)?;
    if index.numel() == 0 {
        return Ok(None);
    }
    let (own, shape) = (one_dim(&x.shape()), one_dim(index.shape()));
    let source = source.map(one_dim);
    for (other, name) in [(Some(&own), "self"), (source.as_ref(), "src")] {
        ensure!(
            other.is_none_or(|other| other.rank() == shape.rank()),
            at,
            "Index tensor must have the same number of dimensions as {name} tensor"
        );
    }
    let fits = |limit: &Shape, free: Option<usize>| {
        (0..shape.rank()).all(|other| Some(other) == free || shape[other] <= limit[other])
    };
    let and_source =
        source.as_ref().map_or(String::new(), |source| format!(" and to be no larger size than src {source}"));
    ensure!(
        fits(&own, Some(axis)) && source.is_none_or(|source| fits(&source, None)),
        at,
        "Expected index {shape} to be no larger than self {own} apart from dimension {axis}{and_source}"
    );
    check_range(&index.elements(at)?, own[axis], axis, at)?;
    let positions = gathered_positions(&own, axis, &index.reshape_to(shape, at)?, at)?;
    Ok(Some(positions.reshape_to(index.shape().clone(), at)?))
}

/// Returns the part of `source` that has the shape `shape` and starts at index 0 of every dimension.
pub(crate) fn leading_part<A: TensorLike>(source: &A, shape: &Shape, at: Site) -> Result<A> {
    let mut part = source.clone();
    if source.shape().rank() == shape.rank() {
        for axis in 0..shape.rank() {
            part = part.slice_axis(axis, 0, shape[axis], at)?;
        }
    }
    // The ranks differ only if one of them is 0 and the other tensor has the shape `[1]`.
    part.reshape_to(shape.clone(), at)
}

/// Returns the shapes of `x` and `source`, with rank 0 counted as rank 1, and the position of dimension `dim`. Refuses a `source` that does
/// not have one slice of fitting shape for each element of `index`. `name` is the operation's name in PyTorch's error messages.
fn slices<A: TensorLike>(
    name: &str,
    x: &A,
    dim: impl Position,
    index: &Tensor<i64>,
    source: &A,
    at: Site,
) -> Result<(Shape, Shape, usize), Error> {
    let axis = dims::axis(dim, x.shape().rank(), at)?;
    let (whole, from) = (one_dim(&x.shape()), one_dim(&source.shape()));
    ensure!(index.rank() <= 1, at, "{name}: Index is supposed to be a vector, but got dim: {}", index.rank());
    ensure!(
        from.rank() == whole.rank() && (0..whole.rank()).all(|other| other == axis || whole[other] == from[other]),
        at,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {whole} \
         source.shape = {from}"
    );
    let (count, size) = (index.numel(), from[axis]);
    ensure!(
        size == count,
        at,
        "{name}: Number of indices ({count}) should be equal to source.size(dim): ({size}), for dim: {axis}"
    );
    Ok((whole, from, axis))
}

/// Expands `values` to `shape`, the shape of the elements that index tensors select. First drops leading dimensions of size 1.
fn expand_values<A: TensorLike>(values: &A, shape: &Shape, at: Site) -> Result<A> {
    let bare = drop_leading_ones(values, at)?;
    ensure!(
        expands(&bare.shape(), shape),
        at,
        ShapeMismatch,
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {shape}",
        values.shape()
    );
    bare.expand_to(shape, at)
}

fn drop_leading_ones<A: TensorLike>(x: &A, at: Site) -> Result<A> {
    let shape = x.shape();
    let ones = shape.iter().take_while(|&&size| size == 1).count();
    x.reshape_to(&shape[ones..], at)
}

#[cfg(test)]
mod tests {
    use crate::index_items;
    use crate::prelude::*;

    #[test]
    fn the_last_write_to_an_element_wins_and_additions_add_up() {
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
    fn the_leading_part_of_a_larger_source_is_read() {
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
    fn assignment_drops_leading_dimensions_of_size_1_and_names_mismatches() {
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
