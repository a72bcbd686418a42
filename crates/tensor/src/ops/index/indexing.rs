//! Reading by tensors of indices.
//!
//! Indices are plain data: no gradient flows to them. Every reading is a list of positions and one `take`, whose adjoint
//! adds to those positions, so where one element is read several times its gradients add up. Lists of mixed items, as in
//! `x[1, :, index]`, are in [`ItemIndexing`](crate::ops::ItemIndexing).

use wengert_macros::twins;

use crate::ops::TensorLike;
use crate::ops::compose::{Compose, join};
use crate::ops::index::positions::{along, check_range, check_within, from_the_end, of_mask};
use crate::shape::dims;
use crate::{Error, Position, Shape, Site, Tensor};

/// Reading by index tensors. Where one position is read several times, its gradients add up.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// assert_eq!(x.index_select(1, &Tensor::from([2, 0])), Tensor::from([[3.0, 1.0], [6.0, 4.0]]));
/// assert_eq!(x.gather(1, &Tensor::from([[0], [2]])), Tensor::from([[1.0], [6.0]]));
/// assert_eq!(x.masked_select(&x.gt(3.0)).to_vec(), [4.0, 5.0, 6.0]);
/// ```
#[twins]
pub trait Indexing: TensorLike {
    /// Along dimension `dim`, the elements at the positions `index`, a vector; negative ones are refused. PyTorch:
    /// `index_select`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.index_select(0, &Tensor::from([1i64, 1])), Tensor::from([[3.0, 4.0], [3.0, 4.0]]));
    /// ```
    fn try_index_select(&self, dim: impl Position, index: &Tensor<i64>) -> Result<Self, Self::Error> {
        let at = Site::here("index_select");
        let shape = self.shape();
        let axis = dims::axis(dim.position(), shape.rank(), at)?;
        if index.rank() > 1 {
            return Err(Error::argument(at, "index_select(): Index is supposed to be a vector").into());
        }
        let whole = one_dim(&shape);
        let line = index.elements(at)?;
        let sentence = |id| format!("INDICES element is out of DATA bounds, id={id} axis_dim={}", whole[axis]);
        check_within(&line, whole[axis], axis, sentence, at)?;
        if shape.rank() == 0 && line.len() != 1 {
            let message = "index_select(): Index to scalar can have only 1 value, got 0 value(s)";
            return Err(Error::argument(at, message).into());
        }
        let line = Tensor::try_from_vec(line, [index.numel()])?;
        let taken = self.reshaped(whole, at)?.apply_index_select(axis, &line, at)?;
        if shape.rank() == 0 { taken.reshaped(shape, at) } else { Ok(taken) }
    }

    /// Along dimension `dim`, the element at the position that `index` gives, for every place of `index`, whose other
    /// sizes are at most those of `self`. PyTorch: `gather`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let scores = Tensor::from([[0.1, 0.9], [0.8, 0.2]]);
    /// let classes = Tensor::from([[1i64], [0]]);
    /// assert_eq!(scores.gather(1, &classes), Tensor::from([[0.9], [0.8]]));
    /// ```
    fn try_gather(&self, dim: impl Position, index: &Tensor<i64>) -> Result<Self, Self::Error> {
        let at = Site::here("gather");
        let shape = self.shape();
        let axis = dims::axis(dim.position(), shape.rank(), at)?;
        if index.numel() == 0 {
            return self.apply_take(index, at);
        }
        let (from, place) = (one_dim(&shape), one_dim(index.shape()));
        if from.rank() != place.rank() {
            let message = "Index tensor must have the same number of dimensions as input tensor";
            return Err(Error::argument(at, message).into());
        }
        if (0..from.rank()).any(|other| other != axis && place[other] > from[other]) {
            let message = format!(
                "Size does not match at dimension {axis} expected index {place} to be no larger than self {from} apart \
                 from dimension {axis}"
            );
            return Err(Error::argument(at, message).into());
        }
        // An index expanded over the other dimensions, all of which are whole, reads whole slices.
        let whole = from.rank() > 1 && from.replaced(axis..axis + 1, &[place[axis]]) == place;
        let line = index.distinct();
        if whole && line.numel() == place[axis] && line.shape()[axis] == place[axis] {
            let line = line.elements(at)?;
            if line.iter().all(|&position| (0..from[axis] as i64).contains(&position)) {
                return self.apply_index_select(axis, &Tensor::try_from_vec(line, [place[axis]])?, at);
            }
        }
        check_range(&index.elements(at)?, from[axis], axis, at)?;
        let positions = along(&from, axis, &index.reshaped(place, at)?, at)?;
        self.apply_take(&positions.reshaped(index.shape().clone(), at)?, at)
    }

    /// [`gather`](Self::gather) with all dimensions but `dim` broadcast; both have as many dimensions. Without `dim`, both
    /// are flattened first. What `argsort` and `argmax` give fits. PyTorch: `take_along_dim`.
    fn try_take_along_dim(&self, index: &Tensor<i64>, dim: Option<isize>) -> Result<Self, Self::Error> {
        let at = Site::here("take_along_dim");
        let Some(dim) = dim else {
            let line = self.reshaped([self.shape().numel()], at)?;
            return line.try_gather(0, &index.reshaped([index.numel()], at)?);
        };
        let shape = self.shape();
        if shape.rank() != index.rank() {
            let message = format!(
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
                 dimensions for input, and {} dimensions for indices",
                shape.rank(),
                index.rank()
            );
            return Err(Error::argument(at, message).into());
        }
        let axis = dims::axis(dim, shape.rank(), at)?;
        let with = |shape: &Shape, size: usize| {
            let mut shape = shape.clone();
            if let Some(place) = shape.get_mut(axis) {
                *place = size;
            }
            shape
        };
        let (own, count) = (shape.get(axis).copied().unwrap_or(1), index.shape().get(axis).copied().unwrap_or(1));
        let wide = join(&with(&shape, count), index.shape(), at)?;
        self.over(&with(&wide, own), at)?.try_gather(dim, &index.over(&wide, at)?)
    }

    /// Elements at the positions `index` in row-major order, in the shape of `index`; negative ones count from the end.
    /// PyTorch: `take`.
    fn try_take(&self, index: &Tensor<i64>) -> Result<Self, Self::Error> {
        let at = Site::here("take");
        let count = self.shape().numel();
        if count == 0 && index.numel() > 0 {
            let message = "take(): tried to take from an empty tensor".into();
            return Err(Error::IndexRange { message, at }.into());
        }
        let mut line = index.elements(at)?;
        if let Some(position) = from_the_end(&mut line, count) {
            let message = format!("out of range: tried to access index {position} on a tensor of {count} elements.");
            return Err(Error::IndexRange { message, at }.into());
        }
        self.apply_take(&Tensor::try_from_vec(line, index.shape())?, at)
    }

    /// The elements where `mask` holds, in row-major order, as a vector; the two broadcast. PyTorch: `masked_select`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
    /// assert_eq!(x.masked_select(&x.gt(0.0)).to_vec(), [1.0, 4.0]);
    /// ```
    fn try_masked_select(&self, mask: &Tensor<bool>) -> Result<Self, Self::Error> {
        let at = Site::here("masked_select");
        let shape = join(mask.shape(), &self.shape(), at)?;
        let chosen = of_mask(&mask.over(&shape, at)?, at)?;
        let count = chosen.len();
        self.over(&shape, at)?.apply_take(&Tensor::try_from_vec(chosen, [count])?, at)
    }
}

impl<A: TensorLike> Indexing for A {}

/// A tensor of rank 0 as a vector of one element, which index operations take it for.
pub(crate) fn one_dim(shape: &Shape) -> Shape {
    if shape.rank() == 0 { Shape::from([1]) } else { shape.clone() }
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
    fn what_lies_outside_is_refused() {
        let x = Tensor::from([1.0, 2.0]);
        assert!(x.try_take(&Tensor::from([2i64])).is_err());
        assert!(x.try_gather(0, &Tensor::from([-1i64])).is_err());
        assert!(Tensor::<f64>::zeros([0]).try_take(&Tensor::from([0i64])).is_err());
        assert_eq!(Tensor::<f64>::zeros([0]).take(&Tensor::zeros([0, 2])).shape(), &[0, 2]);
    }
}
