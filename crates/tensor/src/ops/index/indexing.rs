//! Reads elements that index tensors select.
//!
//! Indices are plain data, so no gradient flows to them. Every operation reads a list of positions, and its adjoint adds to
//! these positions: if an element is read several times, its gradients add up. Indexing with a list of items, as in
//! `x[1, :, index]`, is in [`ItemIndexing`](crate::ops::ItemIndexing).

use wengert_macros::twins;

use crate::ops::index::positions::{check_index, check_range, one_dim, positions_in, wrap, wrap_negative};
use crate::ops::index::replace::gather_along;
use crate::ops::primitive::pair::broadcast_shape;
use crate::ops::{Compose, Result, TensorLike};
use crate::shape::dims;
use crate::{Error, Position, Shape, Site, Tensor, ensure};

/// Reading of elements that index tensors select. If an element is read several times, its gradients add up.
#[twins(blanket)]
pub trait Indexing: TensorLike {
    /// Returns the slices at the positions `index`, a vector, along dimension `dim`. Refuses positions out of range; negative positions do
    /// not count from the end. PyTorch: `index_select`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.index_select(0, &Tensor::from([1i64, 1])), Tensor::from([[3.0, 4.0], [3.0, 4.0]]));
    /// ```
    #[doc(alias("take"))]
    fn try_index_select(&self, dim: impl Position, index: &Tensor<i64>) -> Result<Self> {
        let at = Site::here("index_select");
        let shape = self.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        ensure!(index.rank() <= 1, at, "index_select(): Index is supposed to be a vector");
        let whole = one_dim(&shape);
        let sentence = |id| format!("INDICES element is out of DATA bounds, id={id} axis_dim={}", whole[axis]);
        let line = check_index(index, whole[axis], axis, sentence, at)?.reshape_to([index.numel()], at)?;
        ensure!(
            shape.rank() > 0 || line.numel() == 1,
            at,
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            line.numel()
        );
        let slices = self.reshape_to(whole, at)?.apply_index_select(axis, &line, at)?;
        if shape.rank() == 0 { slices.reshape_to(shape, at) } else { Ok(slices) }
    }

    /// Returns one element of `self` for each element of `index`. With `dim` 1, for example, `result[i, j]` is `self[i, index[i, j]]`.
    /// `index` has the rank of `self`. Along the dimensions other than `dim`, the sizes of `index` are at most the sizes of `self`. An
    /// empty `index` may have any shape. Refuses negative positions and positions out of range. PyTorch: `gather`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let scores = Tensor::from([[0.1, 0.9], [0.8, 0.2]]);
    /// let classes = Tensor::from([[1i64], [0]]);
    /// assert_eq!(scores.gather(1, &classes), Tensor::from([[0.9], [0.8]]));
    /// ```
    #[doc(alias("take_along_axis", "take_along_dim"))]
    fn try_gather(&self, dim: impl Position, index: &Tensor<i64>) -> Result<Self> {
        let at = Site::here("gather");
        let shape = self.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        if index.numel() == 0 {
            return self.apply_take(index, at);
        }
        let (from, target) = (one_dim(&shape), one_dim(index.shape()));
        ensure!(
            from.rank() == target.rank(),
            at,
            "Index tensor must have the same number of dimensions as input tensor"
        );
        ensure!(
            (0..from.rank()).all(|other| other == axis || target[other] <= from[other]),
            at,
            "Size does not match at dimension {axis} expected index {target} to be no larger than self {from} apart \
                 from dimension {axis}"
        );
        // If `index` was expanded over all dimensions but `axis`, it selects whole slices, as `index_select` does.
        let whole = from.rank() > 1 && from.with_size(axis, target[axis]) == target;
        let line = index.distinct();
        if whole && line.numel() == target[axis] && line.shape()[axis] == target[axis] {
            let line = line.elements(at)?;
            if line.iter().all(|&position| (0..from[axis] as i64).contains(&position)) {
                return self.apply_index_select(axis, &Tensor::from(line), at);
            }
        }
        check_range(&index.row_major_elements(at)?, from[axis], axis, at)?;
        let taken = gather_along(self, &from, axis, &index.reshape_to(target, at)?, at)?;
        taken.reshape_to(index.shape().clone(), at)
    }

    /// Applies [`gather`](Self::gather) after broadcasting all dimensions but `dim`, for `self` and `index` of the same rank. If `dim` is
    /// `None`, both arrays are flattened instead, and may have different ranks. Accepts the results of `argsort` and of `argmax_keepdim`.
    /// Negative indices count from the end, as in NumPy. Refuses indices out of range, which PyTorch takes modulo the size of `dim`. NumPy:
    /// `take_along_axis`. PyTorch: `take_along_dim`.
    fn try_take_along_dim(&self, index: &Tensor<i64>, dim: Option<isize>) -> Result<Self> {
        let at = Site::here("take_along_dim");
        let Some(dim) = dim else {
            let line = self.reshape_to([self.shape().numel()], at)?;
            let index = wrap_indices(index, line.shape()[0], 0, at)?;
            return line.try_gather(0, &index.reshape_to([index.numel()], at)?);
        };
        let shape = self.shape();
        ensure!(
            shape.rank() == index.rank(),
            at,
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
                 dimensions for input, and {} dimensions for indices",
            shape.rank(),
            index.rank()
        );
        let axis = dims::axis(dim, shape.rank(), at)?;
        let with = |shape: &Shape, size: usize| {
            let mut shape = shape.clone();
            if let Some(own) = shape.get_mut(axis) {
                *own = size;
            }
            shape
        };
        let (own, count) = (shape.get(axis).copied().unwrap_or(1), index.shape().get(axis).copied().unwrap_or(1));
        let index = wrap_indices(index, own, axis, at)?;
        let wide = broadcast_shape(&with(&shape, count), index.shape(), at)?;
        self.expand_to(&with(&wide, own), at)?.try_gather(dim, &index.expand_to(&wide, at)?)
    }

    /// Returns the elements at the row-major positions `index`, in the shape of `index`. Negative positions count from the end. Refuses
    /// positions out of range. PyTorch: `take`.
    fn try_take(&self, index: &Tensor<i64>) -> Result<Self> {
        let at = Site::here("take");
        let count = self.shape().numel();
        ensure!(count > 0 || index.numel() == 0, at, IndexRange, "take(): tried to take from an empty tensor");
        let mut line = index.elements(at)?;
        if let Some(position) = wrap_negative(&mut line, count) {
            let message = format!("out of range: tried to access index {position} on a tensor of {count} elements.");
            return Err(Error::IndexRange { message, at }.into());
        }
        self.apply_take(&Tensor::try_from_vec(line, index.shape())?, at)
    }

    /// Returns the elements where `mask` is true, in row-major order, as a vector. `self` and `mask` broadcast. PyTorch:
    /// `masked_select`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
    /// assert_eq!(x.masked_select(&x.gt(0.0)).to_vec(), [1.0, 4.0]);
    /// ```
    fn try_masked_select(&self, mask: &Tensor<bool>) -> Result<Self> {
        let at = Site::here("masked_select");
        let shape = broadcast_shape(mask.shape(), &self.shape(), at)?;
        let positions = positions_in(&mask.expand_to(&shape, at)?, at)?;
        self.expand_to(&shape, at)?.apply_take(&positions, at)
    }
}

/// Returns `index` with negative indices replaced by indices that count from the start of a dimension of size `size`.
fn wrap_indices(index: &Tensor<i64>, size: usize, axis: usize, at: Site) -> Result<Tensor<i64>, Error> {
    if index.row_major_elements(at)?.iter().all(|&position| position >= 0) {
        Ok(index.clone())
    } else {
        wrap(index, size, axis, at)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn a_number_is_a_vector_of_one() {
        let x = Tensor::scalar(5.0);
        assert_eq!(x.index_select(0, &Tensor::from([0i64])), x);
        assert_eq!(x.gather(0, &Tensor::scalar(0)).item(), 5.0);
        assert_eq!(x.take(&Tensor::from([[-1i64]])), Tensor::from([[5.0]]));
        assert_eq!(x.take_along_dim(&Tensor::from([0i64, 0]), None).to_vec(), [5.0, 5.0]);
        assert_eq!(x.masked_select(&Tensor::from([true, false])).to_vec(), [5.0]);
    }

    #[test]
    fn take_along_dim_counts_negative_indices_from_the_end() {
        let x = Tensor::from([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
        let y = x.take_along_dim(&Tensor::from([[-1i64, -3], [0, 1]]), Some(0));
        assert_eq!(y, Tensor::from([[4.0, 1.0], [0.0, 3.0]]));
        assert_eq!(x.take_along_dim(&Tensor::from([-1i64, -6]), None).to_vec(), [5.0, 0.0]);
        for index in [-4, 3] {
            let error = x.try_take_along_dim(&Tensor::from([[index, 0]]), Some(0)).unwrap_err();
            assert_eq!(error.sentence(), format!("index {index} is out of bounds for dimension 0 with size 3"));
        }
    }

    #[test]
    fn take_along_dim_broadcasts_all_other_dimensions() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let index = Tensor::from([[2i64], [0]]);
        assert_eq!(x.take_along_dim(&index, Some(1)), Tensor::from([[3.0], [1.0]]));
        let error = Tensor::<f64>::ones([2, 3]).try_take_along_dim(&Tensor::zeros([3, 1]), Some(1)).unwrap_err();
        assert_eq!(
            error.sentence(),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
        );
    }

    #[test]
    fn a_scalar_has_one_position() {
        let several = Tensor::scalar(1.0).try_index_select(0, &Tensor::from([0i64, 0])).unwrap_err();
        assert_eq!(several.sentence(), "index_select(): Index to scalar can have only 1 value, got 2 value(s)");
    }

    #[test]
    fn positions_out_of_range_are_refused() {
        let x = Tensor::from([1.0, 2.0]);
        assert!(x.try_take(&Tensor::from([2i64])).is_err());
        assert!(x.try_gather(0, &Tensor::from([-1i64])).is_err());
        assert!(Tensor::<f64>::zeros([0]).try_take(&Tensor::from([0i64])).is_err());
        assert_eq!(Tensor::<f64>::zeros([0]).take(&Tensor::zeros([0, 2])).shape(), &[0, 2]);
    }
}
