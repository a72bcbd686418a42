//! Operations that split a tensor into views along a dimension.

use wengert_macros::twins;

use crate::memory::reserve;
use crate::ops::shape::views::squeeze;
use crate::ops::{Compose, TensorLike};
use crate::shape::dims;
use crate::{Position, Site, ensure};

/// Splitting along a dimension. All parts are views. The methods refuse rank 0.
#[twins(blanket)]
pub trait Splitting: TensorLike {
    /// Splits dimension `dim` into parts of `size` elements. The last part may be smaller. Refuses size 0 unless the dimension is empty.
    /// PyTorch: `split`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let parts = Tensor::from([1.0, 2.0, 3.0]).split(2, 0);
    /// assert_eq!(parts[1].to_vec(), [3.0]);
    /// ```
    fn try_split(&self, size: usize, dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("split");
        let (axis, whole) = dimension(self, "split expects at least a 1-dimensional tensor", dim, at)?;
        ensure!(
            size > 0 || whole == 0,
            at,
            "split_size can only be 0 if dimension size is 0, but got dimension size of {whole}"
        );
        let count = if size == 0 { 1 } else { whole.div_ceil(size).max(1) };
        let bounds = (0..count).map(|part| (part * size, ((part + 1) * size).min(whole)));
        split_at_bounds(self, axis, bounds, at)
    }

    /// Splits dimension `dim` into parts of the given sizes, which add up to its size. PyTorch: `split` with a list.
    #[doc(alias("split_with_sizes"))]
    fn try_split_sizes(&self, sizes: &[usize], dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("split_sizes");
        let (axis, whole) = dimension(self, "split expects at least a 1-dimensional tensor", dim, at)?;
        // A wrapping sum could equal the size although a part reaches past the end.
        let total = sizes.iter().try_fold(0usize, |total, &size| total.checked_add(size));
        ensure!(
            total == Some(whole),
            at,
            "split_with_sizes expects split_sizes to sum exactly to {whole} (input tensor's size at dimension \
                 {axis}), but got split_sizes={sizes:?}"
        );
        let bounds = sizes.iter().scan(0, |start, size| {
            *start += size;
            Some((*start - size, *start))
        });
        split_at_bounds(self, axis, bounds, at)
    }

    /// Splits dimension `dim` into at most `count` parts of the same size. The last part may be smaller. Refuses `count` 0. PyTorch: `chunk`.
    #[doc(alias("array_split"))]
    fn try_chunk(&self, count: usize, dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("chunk");
        let (axis, whole) = dimension(self, "chunk expects at least a 1-dimensional tensor", dim, at)?;
        ensure!(count > 0, at, "chunk expects `chunks` to be greater than 0, got: 0");
        if whole == 0 {
            return split_at_bounds(self, axis, std::iter::repeat_n((0, 0), count), at);
        }
        let size = whole.div_ceil(count);
        let bounds = (0..whole.div_ceil(size)).map(|part| (part * size, ((part + 1) * size).min(whole)));
        split_at_bounds(self, axis, bounds, at)
    }

    /// Splits dimension `dim`, whose size is a multiple of `N`, into `N` parts of the same size. PyTorch: `chunk`, unpacked into `N`
    /// variables.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let [a, b] = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).chunk_into(1);
    /// assert_eq!((a.shape().to_vec(), b.to_vec()), (vec![2, 1], vec![2.0, 4.0]));
    /// ```
    fn try_chunk_into<const N: usize>(&self, dim: impl Position) -> Result<[Self; N], Self::Error> {
        let at = Site::here("chunk_into");
        let (axis, whole) = dimension(self, "chunk expects at least a 1-dimensional tensor", dim, at)?;
        ensure!(
            N > 0 && whole.is_multiple_of(N),
            at,
            "chunk_into(): dimension {axis} of size {whole} is not made of {N} equal parts"
        );
        let size = whole / N;
        Ok(into_array(split_at_bounds(self, axis, (0..N).map(|part| (part * size, (part + 1) * size)), at)?))
    }

    /// Splits dimension `dim` into `N` parts of the given sizes, which add up to its size. PyTorch: `split` with a list, unpacked into `N`
    /// variables.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let [head, tail] = Tensor::from([1.0, 2.0, 3.0]).split_into([1, 2], 0);
    /// assert_eq!((head.item(), tail.to_vec()), (1.0, vec![2.0, 3.0]));
    /// ```
    fn try_split_into<const N: usize>(&self, sizes: [usize; N], dim: impl Position) -> Result<[Self; N], Self::Error> {
        Ok(into_array(self.try_split_sizes(&sizes, dim)?))
    }

    /// Splits dimension `dim` into `count` parts. If the sizes cannot be equal, the first parts have one element more. Refuses `count` 0.
    /// PyTorch: `tensor_split`.
    fn try_tensor_split(&self, count: usize, dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("tensor_split");
        let (axis, whole) = dimension(self, TENSOR_SPLIT, dim, at)?;
        ensure!(count > 0, at, "number of sections must be larger than 0, got 0");
        let start = |part: usize| part * (whole / count) + part.min(whole % count);
        split_at_bounds(self, axis, (0..count).map(|part| (start(part), start(part + 1))), at)
    }

    /// Splits dimension `dim` before each index in `positions`. Negative indices count from the end, and indices beyond the dimension are
    /// clamped, as in a slice. PyTorch: `tensor_split` with a list.
    fn try_tensor_split_at(&self, positions: &[isize], dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("tensor_split_at");
        let (axis, whole) = dimension(self, TENSOR_SPLIT, dim, at)?;
        let size = whole as isize;
        let clamp = |position: isize| (if position < 0 { position + size } else { position }).clamp(0, size) as usize;
        let mut ends: Vec<usize> = positions.iter().map(|&position| clamp(position)).collect();
        ends.push(whole);
        let bounds = ends.iter().scan(0, |start, &end| Some((std::mem::replace(start, end), end)));
        split_at_bounds(self, axis, bounds.map(|(start, end)| (start, end.max(start))), at)
    }

    /// Splits dimension 1, or dimension 0 of a vector, into `count` parts of the same size. Refuses rank 0, and a size that is no multiple of
    /// `count`. PyTorch: `hsplit`. For PyTorch's form with a list of indices, use [`tensor_split_at`](Self::tensor_split_at).
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let parts = Tensor::from([[1i64, 2], [3, 4]]).hsplit(2);
    /// assert_eq!(parts, [Tensor::from([[1i64], [3]]), Tensor::from([[2i64], [4]])]);
    /// ```
    fn try_hsplit(&self, count: usize) -> Result<Vec<Self>, Self::Error> {
        equal_parts(self, count, 1, usize::from(self.shape().rank() > 1), Site::here("hsplit"))
    }

    /// Splits dimension 0 into `count` parts of the same size. Refuses fewer than two dimensions, and a size that is no multiple of `count`.
    /// PyTorch: `vsplit`. For PyTorch's form with a list of indices, use [`tensor_split_at`](Self::tensor_split_at).
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let rows = Tensor::from([[1i64, 2], [3, 4]]).vsplit(2);
    /// assert_eq!(rows, [Tensor::from([[1i64, 2]]), Tensor::from([[3i64, 4]])]);
    /// ```
    fn try_vsplit(&self, count: usize) -> Result<Vec<Self>, Self::Error> {
        equal_parts(self, count, 2, 0, Site::here("vsplit"))
    }

    /// Splits dimension 2 into `count` parts of the same size. Refuses fewer than three dimensions, and a size that is no multiple of
    /// `count`. PyTorch: `dsplit`. For PyTorch's form with a list of indices, use [`tensor_split_at`](Self::tensor_split_at).
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let layers = Tensor::from([[[1i64, 2], [3, 4]]]).dsplit(2);
    /// assert_eq!(layers, [Tensor::from([[[1i64], [3]]]), Tensor::from([[[2i64], [4]]])]);
    /// ```
    fn try_dsplit(&self, count: usize) -> Result<Vec<Self>, Self::Error> {
        equal_parts(self, count, 3, 2, Site::here("dsplit"))
    }

    /// Returns the slices along dimension `dim`, without that dimension. PyTorch: `unbind`.
    #[doc(alias("unstack"))]
    fn try_unbind(&self, dim: impl Position) -> Result<Vec<Self>, Self::Error> {
        let at = Site::here("unbind");
        let (axis, whole) = dimension(self, "Dimension specified as 0 but tensor has no dimensions", dim, at)?;
        let slices = split_at_bounds(self, axis, (0..whole).map(|position| (position, position + 1)), at)?;
        slices.iter().map(|slice| squeeze(slice, axis, at)).collect()
    }
}

const TENSOR_SPLIT: &str = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims";

/// Splits `x`, which has at least `least` dimensions, along `axis` into `count` parts of the same size.
fn equal_parts<A: TensorLike>(x: &A, count: usize, least: usize, axis: usize, at: Site) -> Result<Vec<A>, A::Error> {
    let (shape, name) = (x.shape(), at.operation);
    let rank = shape.rank();
    ensure!(
        rank >= least,
        at,
        "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {rank} dimensions!"
    );
    let whole = shape[axis];
    ensure!(
        count > 0 && whole.is_multiple_of(count),
        at,
        "torch.{name} attempted to split along dimension {axis}, but the size of the dimension {whole} is not divisible by \
         the split_size {count}!"
    );
    let size = whole / count;
    split_at_bounds(x, axis, (0..count).map(|part| (part * size, (part + 1) * size)), at)
}

/// Returns the position of dimension `dim` and its size. For rank 0, returns an error with the message `none`.
fn dimension<A: TensorLike>(x: &A, none: &str, dim: impl Position, at: Site) -> Result<(usize, usize), A::Error> {
    let shape = x.shape();
    ensure!(shape.rank() > 0, at, "{none}");
    let axis = dims::axis(dim, shape.rank(), at)?;
    Ok((axis, shape[axis]))
}

fn into_array<A, const N: usize>(parts: Vec<A>) -> [A; N] {
    match parts.try_into() {
        Ok(parts) => parts,
        Err(_) => unreachable!("there are N parts"),
    }
}

/// Returns the views of the ranges `bounds` along `axis`.
fn split_at_bounds<A: TensorLike>(
    x: &A,
    axis: usize,
    bounds: impl Iterator<Item = (usize, usize)>,
    at: Site,
) -> Result<Vec<A>, A::Error> {
    // Checks that memory can hold the list of parts before the first part is made. The lower bound of `bounds.size_hint()` is the number of
    // parts, or 0 for lists of sizes or positions, which are already in memory.
    reserve::check_list::<A>(bounds.size_hint().0, at)?;
    bounds.map(|(start, end)| x.slice_axis(axis, start, end - start, at)).collect()
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    fn sizes(parts: &[Tensor<i64>]) -> Vec<usize> {
        parts.iter().map(Tensor::numel).collect()
    }

    #[test]
    fn sizes_of_the_parts() {
        let x = Tensor::<i64>::arange(7);
        assert_eq!(sizes(&x.split(3, 0)), [3, 3, 1]);
        assert_eq!(sizes(&x.chunk(4, -1)), [2, 2, 2, 1]);
        assert_eq!(sizes(&x.chunk(5, 0)), [2, 2, 2, 1]);
        assert_eq!(sizes(&x.tensor_split(3, 0)), [3, 2, 2]);
        assert_eq!(sizes(&x.tensor_split_at(&[2, -3, 9], 0)), [2, 2, 3, 0]);
        assert_eq!(sizes(&x.tensor_split_at(&[5, 2], 0)), [5, 0, 5]);
        assert_eq!(sizes(&x.split_sizes(&[0, 7], 0)), [0, 7]);
        assert_eq!(x.tensor_split(3, 0)[1].to_vec(), [3, 4]);
        assert_eq!(x.unbind(0)[6].item(), 6);
        let [a, b, c] = x.split_into([2, 0, 5], 0);
        assert_eq!(sizes(&[a, b, c]), [2, 0, 5]);
        let [a, b] = x.narrow(0, 0, 6).chunk_into(-1);
        assert_eq!((a.to_vec(), b.to_vec()), (vec![0, 1, 2], vec![3, 4, 5]));
        assert!(x.try_chunk_into::<2>(0).is_err());
        assert!(x.try_split_into([3, 3], 0).is_err());
        let [] = Tensor::<i64>::zeros([0]).split_into([], 0);
    }

    /// The error messages are PyTorch's.
    #[test]
    fn equal_parts_of_the_first_dimensions() {
        let x = Tensor::<i64>::arange(24).reshape([2, 3, 4]);
        let shapes = |parts: Vec<Tensor<i64>>| parts.iter().map(|part| part.shape().to_vec()).collect::<Vec<_>>();
        assert_eq!(shapes(x.hsplit(3)), vec![vec![2, 1, 4]; 3]);
        assert_eq!(shapes(x.vsplit(2)), vec![vec![1, 3, 4]; 2]);
        assert_eq!(shapes(x.dsplit(2)), vec![vec![2, 3, 2]; 2]);
        assert_eq!(x.dsplit(4)[1], x.narrow(2, 1, 1));
        assert_eq!(sizes(&Tensor::<i64>::arange(6).hsplit(2)), [3, 3]);
        assert_eq!(shapes(Tensor::zeros([2, 0]).hsplit(3)), vec![vec![2, 0]; 3]);
        let sentence = |result: Result<Vec<Tensor<i64>>, crate::Error>| result.unwrap_err().sentence();
        assert_eq!(
            sentence(x.try_hsplit(2)),
            "torch.hsplit attempted to split along dimension 1, but the size of the dimension 3 is not divisible by the \
             split_size 2!"
        );
        assert_eq!(
            sentence(Tensor::scalar(1i64).try_hsplit(1)),
            "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!"
        );
        assert_eq!(
            sentence(Tensor::from([1i64]).try_vsplit(1)),
            "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with 1 dimensions!"
        );
        assert_eq!(
            sentence(Tensor::from([1i64]).try_dsplit(1)),
            "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with 1 dimensions!"
        );
        assert!(x.try_vsplit(0).is_err());
    }

    #[test]
    fn sizes_whose_sum_overflows_are_refused() {
        let x = Tensor::<i64>::arange(100).narrow(0, 10, 3);
        for sizes in [[40, usize::MAX - 36], [4, usize::MAX], [usize::MAX, 4]] {
            assert!(x.try_split_sizes(&sizes, 0).is_err(), "{sizes:?}");
            assert!(x.try_split_into(sizes, 0).is_err(), "{sizes:?}");
        }
    }

    #[test]
    fn empty_tensors_split_into_empty_parts() {
        let x = Tensor::<i64>::zeros([0]);
        assert_eq!(sizes(&x.split(3, 0)), [0]);
        assert_eq!(sizes(&x.split(0, 0)), [0]);
        assert_eq!(sizes(&x.chunk(3, 0)), [0, 0, 0]);
        assert!(x.unbind(0).is_empty());
        assert!(Tensor::scalar(1.0).try_unbind(0).is_err());
        assert!(Tensor::from([1.0]).try_split(0, 0).is_err());
    }
}
