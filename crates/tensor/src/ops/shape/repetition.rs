//! Operations that repeat, roll or combine elements. A repetition is an expansion and a reshape, so its derivative is a sum. If the slices
//! have different counts, they are selected by index.

use wengert_macros::twins;

use crate::memory::reserve;
use crate::ops::shape::views::unsqueeze;
use crate::ops::{Compose, Result, TensorLike};
use crate::shape::dims::{self, Dims, Sizes, UNREPRESENTABLE};
use crate::{DType, Error, Shape, Site, Tensor, ensure};

/// Repeating, rolling, and combinations.
#[twins(blanket)]
pub trait Repetition: TensorLike {
    /// Repeats the whole tensor `repeats[k]` times along each dimension `k` of the result. If there are more repeats than dimensions, the
    /// result gets new leading dimensions. Refuses fewer repeats than dimensions, and negative repeats. PyTorch: `repeat`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).repeat([2, 2]), Tensor::from([[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]));
    /// ```
    fn try_repeat(&self, repeats: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("repeat");
        repeat(self, &repeat_counts(&repeats.into(), at)?, at)
    }

    /// Applies [`repeat`](Self::repeat). If there are fewer repeats than dimensions, the repeats are for the last dimensions. PyTorch:
    /// `tile`.
    fn try_tile(&self, repeats: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("tile");
        let repeats = repeat_counts(&repeats.into(), at)?;
        let mut whole = vec![1; self.shape().rank().saturating_sub(repeats.len())];
        whole.extend(repeats);
        repeat(self, &whole, at)
    }

    /// Repeats each element `count` times in succession along dimension `dim`, or in the flattened tensor if `dim` is `None`. PyTorch:
    /// `repeat_interleave`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).repeat_interleave(2, None).to_vec(), [1.0, 1.0, 2.0, 2.0]);
    /// ```
    fn try_repeat_interleave(&self, count: usize, dim: Option<isize>) -> Result<Self> {
        let at = Site::here("repeat_interleave");
        let (x, axis) = axis_or_flat(self, dim, at)?;
        let shape = x.shape();
        let size = shape[axis];
        let repeated = shape.replaced(axis..axis + 1, &[size, count]);
        let merged = shape.with_size(axis, size.saturating_mul(count));
        unsqueeze(&x, axis + 1, at)?.expand_to(&repeated, at)?.reshape_to(merged, at)
    }

    /// Repeats slice `k` of dimension `dim` `counts[k]` times. If `dim` is `None`, repeats element `k` of the flattened tensor. `counts` has
    /// one entry per slice, or one entry for all slices. Refuses other numbers of entries, and negative counts. PyTorch: `repeat_interleave`
    /// with a tensor.
    fn try_repeat_interleave_each(&self, counts: &Tensor<i64>, dim: Option<isize>) -> Result<Self> {
        let at = Site::here("repeat_interleave_each");
        let (x, axis) = axis_or_flat(self, dim, at)?;
        let shape = x.shape();
        ensure!(counts.rank() <= 1, at, "repeats must be 0-dim or 1-dim tensor");
        ensure!(
            counts.numel() == 1 || counts.numel() == shape[axis],
            at,
            "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({axis}) \
                 = {}",
            counts.numel(),
            shape[axis]
        );
        let counts =
            counts.reshape_to([counts.numel()], at)?.expand_to(&Shape::from([shape[axis]]), at)?.elements(at)?;
        ensure!(counts.iter().all(|&count| count >= 0), at, "repeats can not be negative");
        let total = counts.iter().fold(0usize, |total, &count| total.saturating_add(count as usize));
        let refused = |_| Error::out_of_memory([total], DType::I64, at);
        let mut index = reserve::with_capacity::<i64>(total).map_err(refused)?;
        for (position, &count) in counts.iter().enumerate() {
            index.extend(std::iter::repeat_n(position as i64, count as usize));
        }
        x.apply_index_select(axis, &Tensor::from(index), at)
    }

    /// Shifts the elements by `shifts[k]` along dimension `dims[k]`. Elements shifted beyond the end reappear at the start. With `..` as
    /// `dims`, the flattened tensor is shifted, like in PyTorch without `dims`. (Elsewhere `..` stands for all dimensions.) Refuses a
    /// number of shifts other than the number of dimensions. Also refuses dimensions of a tensor of rank 0, and shifts that do not fit into
    /// `isize`. PyTorch: `roll`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).roll(1, 0).to_vec(), [3.0, 1.0, 2.0]);
    /// assert_eq!(Tensor::from([[1.0, 2.0], [3.0, 4.0]]).roll(1, ..), Tensor::from([[4.0, 1.0], [2.0, 3.0]]));
    /// ```
    fn try_roll(&self, shifts: impl Into<Sizes>, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("roll");
        let (shifts, dims) = (shifts.into(), dims.into());
        let (shifts, dims) = (shifts.as_slice(), dims.as_slice());
        let shape = self.shape();
        ensure!(!shifts.is_empty(), at, "`shifts` required");
        ensure!(!shifts.contains(&UNREPRESENTABLE), at, "a shift must be at most {}", isize::MAX);
        let exists = shape.rank() > 0 || dims.is_empty();
        ensure!(exists, at, IndexRange, "Dimension specified as {} but tensor has no dimensions", dims[0]);
        let axes: Vec<usize> = dims.iter().map(|&dim| dims::axis(dim, shape.rank(), at)).collect::<Result<_, _>>()?;
        if axes.is_empty() && shifts.len() == 1 {
            let line = self.reshape_to([shape.numel()], at)?;
            return roll(&line, 0, shifts[0], at)?.reshape_to(shape, at);
        }
        ensure!(
            shifts.len() == axes.len(),
            at,
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            axes.len()
        );
        axes.iter().zip(shifts).try_fold(self.clone(), |x, (&axis, &shift)| roll(&x, axis, shift, at))
    }

    /// Returns all combinations of `r` elements of a vector as rows `[count, r]`, in the order of the positions. `with_replacement` allows
    /// each element several times. Without elements to choose (`r` = 0), the result is an empty vector. Refuses other ranks than 1.
    /// PyTorch: `combinations`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([1i64, 2, 3]);
    /// assert_eq!(x.combinations(2, false), Tensor::from([[1i64, 2], [1, 3], [2, 3]]));
    /// assert_eq!(Tensor::from([1i64, 2]).combinations(2, true), Tensor::from([[1i64, 1], [1, 2], [2, 2]]));
    /// ```
    fn try_combinations(&self, r: usize, with_replacement: bool) -> Result<Self> {
        let at = Site::here("combinations");
        let shape = self.shape();
        ensure!(shape.rank() == 1, at, "Expect a 1D vector, but got shape {shape}");
        if r == 0 {
            return self.slice_axis(0, 0, 0, at);
        }
        let n = shape[0];
        let count = match with_replacement {
            false => count_combinations(n, r),
            true if n == 0 => 0,
            true => count_combinations(n.saturating_add(r - 1), r),
        };
        let positions =
            Tensor::build(&Shape::from([count, r]), at, |out| write_combinations(n, r, with_replacement, out))?;
        self.apply_index_select(0, &positions, at)
    }
}

/// Returns the number of combinations of `r` of `n` elements. Returns `usize::MAX` for numbers that do not fit.
fn count_combinations(n: usize, r: usize) -> usize {
    if r > n {
        return 0;
    }
    // After factor k, the product is the number of combinations of k + 1 elements, so every division is exact.
    (0..r.min(n - r))
        .try_fold(1u128, |count, k| (count.checked_mul((n - k) as u128)).map(|all| all / (k as u128 + 1)))
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(usize::MAX)
}

/// Writes the positions of all combinations of `r` of `n` elements to `out`, one row of `r` positions for each combination.
fn write_combinations(n: usize, r: usize, with_replacement: bool, out: &mut [i64]) {
    if out.is_empty() {
        // If there are no combinations, `r` may be so large that memory cannot hold a row of `r` positions.
        return;
    }
    let step = i64::from(!with_replacement);
    let mut row: Vec<i64> = (0..r as i64).map(|k| k * step).collect();
    for out in out.chunks_exact_mut(r) {
        out.copy_from_slice(&row);
        // Makes the next combination: the last position below its maximum grows by 1, and the positions after it become as small as
        // possible.
        let largest = |k: usize| n as i64 - 1 - (r - 1 - k) as i64 * step;
        if let Some(k) = (0..r).rev().find(|&k| row[k] < largest(k)) {
            let first = row[k] + 1;
            row[k..].iter_mut().zip(0..).for_each(|(position, j)| *position = first + j * step);
        }
    }
}

/// Repeats `x` `repeats[k]` times along each dimension `k` of the result.
fn repeat<A: TensorLike>(x: &A, repeats: &[usize], at: Site) -> Result<A> {
    let shape = x.shape();
    let Some(lead) = repeats.len().checked_sub(shape.rank()) else {
        let message = "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor";
        return Err(Error::argument(at, message).into());
    };
    let (mut spaced, mut expanded, mut merged) = (Shape::scalar(), Shape::scalar(), Shape::scalar());
    for (position, &count) in repeats.iter().enumerate() {
        let size = position.checked_sub(lead).map_or(1, |axis| shape[axis]);
        spaced.push(1);
        spaced.push(size);
        expanded.push(count);
        expanded.push(size);
        merged.push(count.saturating_mul(size));
    }
    x.reshape_to(spaced, at)?.expand_to(&expanded, at)?.reshape_to(merged, at)
}

/// Converts `repeats` to counts. Refuses negative numbers.
fn repeat_counts(repeats: &Sizes, at: Site) -> Result<Vec<usize>, Error> {
    let count = |&count: &isize| usize::try_from(count).ok();
    let counts: Option<Vec<usize>> = repeats.as_slice().iter().map(count).collect();
    counts.ok_or_else(|| Error::argument(at, format!("repeats must not be negative, got {:?}", repeats.as_slice())))
}

/// Returns the tensor and the position of dimension `dim`, or the flattened tensor and 0 if `dim` is `None` or the tensor has rank 0.
fn axis_or_flat<A: TensorLike>(x: &A, dim: Option<isize>, at: Site) -> Result<(A, usize), A::Error> {
    let shape = x.shape();
    let axis = dim.map(|dim| dims::axis(dim, shape.rank(), at)).transpose()?;
    match axis {
        Some(axis) if shape.rank() > 0 => Ok((x.clone(), axis)),
        _ => Ok((x.reshape_to([shape.numel()], at)?, 0)),
    }
}

fn roll<A: TensorLike>(x: &A, axis: usize, shift: isize, at: Site) -> Result<A> {
    let size = x.shape()[axis];
    if size == 0 || shift.rem_euclid(size as isize) == 0 {
        return Ok(x.clone());
    }
    let shift = shift.rem_euclid(size as isize) as usize;
    let parts = [x.slice_axis(axis, size - shift, shift, at)?, x.slice_axis(axis, 0, size - shift, at)?];
    A::apply_cat(&parts, axis, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn combinations_of_any_number() {
        let x = Tensor::from([1i64, 2, 3]);
        assert_eq!(x.combinations(1, false), Tensor::from([[1i64], [2], [3]]));
        assert_eq!(x.combinations(3, false), Tensor::from([[1i64, 2, 3]]));
        assert_eq!(x.combinations(4, false).shape(), &[0, 4]);
        assert_eq!(x.combinations(0, false).shape(), &[0]);
        assert_eq!(x.combinations(2, true), Tensor::from([[1i64, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]]));
        assert_eq!(Tensor::<f64>::zeros([0]).combinations(2, true).shape(), &[0, 2]);
        let all = Tensor::<i64>::arange(7).combinations(3, true);
        assert_eq!(all.shape(), &[84, 3]);
        assert_eq!(all.slice(0, 82..), Tensor::from([[5i64, 6, 6], [6, 6, 6]]));
        let error = Tensor::from([[1i64, 2]]).try_combinations(2, false).unwrap_err();
        assert_eq!(error.sentence(), "Expect a 1D vector, but got shape [1, 2]");
        assert!(Tensor::scalar(1.0).expand([1usize << 40]).try_combinations(1 << 20, false).is_err());
        assert!(x.try_combinations(usize::MAX, true).is_err());
        assert_eq!(x.combinations(1 << 60, false).shape(), &[0, 1 << 60]);
        assert_eq!(Tensor::<f64>::zeros([0]).combinations(1 << 60, true).shape(), &[0, 1 << 60]);
    }

    #[test]
    fn repeats() {
        let x = Tensor::from([[1.0, 2.0]]);
        assert_eq!(x.tile(2).to_vec(), [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(x.tile([0usize; 0]), x);
        assert_eq!(x.repeat([0, 1, 3]).shape(), &[0, 1, 6]);
        assert!(x.try_repeat(2).is_err());
        assert_eq!(Tensor::scalar(1.0).repeat(3).to_vec(), [1.0; 3]);
        assert_eq!(x.repeat_interleave_each(&Tensor::from([0i64, 2]), Some(1)), Tensor::from([[2.0, 2.0]]));
        assert_eq!(x.repeat_interleave_each(&Tensor::from([2i64]), None).to_vec(), [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(x.repeat_interleave(2, Some(0)), Tensor::from([[1.0, 2.0], [1.0, 2.0]]));
        let number = Tensor::scalar(1.0);
        assert_eq!(number.repeat_interleave(2, Some(-1)).to_vec(), [1.0; 2]);
        assert!(number.try_repeat_interleave(2, Some(1)).is_err());
        assert!(number.try_repeat_interleave_each(&Tensor::from([2i64]), Some(5)).is_err());
    }

    #[test]
    fn rolls() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(x.roll(1, ..), Tensor::from([[4.0, 1.0], [2.0, 3.0]]));
        assert_eq!(x.roll([-3, 1], [0, 1]), Tensor::from([[4.0, 3.0], [2.0, 1.0]]));
        assert!(x.try_roll([1, 2], 0).is_err());
        let error = Tensor::scalar(1.0).try_roll(1, -1).unwrap_err();
        assert!(matches!(error, crate::Error::IndexRange { .. }));
        assert_eq!(error.sentence(), "Dimension specified as -1 but tensor has no dimensions");
        assert_eq!(Tensor::scalar(1.0).roll(3, ..), Tensor::scalar(1.0));
        assert_eq!(Tensor::<f64>::zeros([0]).roll(2, 0).shape(), &[0]);
    }

    #[test]
    fn shifts_that_do_not_fit_are_refused() {
        let x = Tensor::from([1.0, 2.0, 3.0]);
        let error = x.try_roll(usize::MAX, 0).unwrap_err();
        assert_eq!(error.sentence(), format!("a shift must be at most {}", isize::MAX));
        assert!(x.try_roll(usize::MAX, ..).is_err());
        assert_eq!(x.roll(isize::MAX, 0), x.roll(isize::MAX % 3, 0));
        assert_eq!(x.roll(-isize::MAX, 0), x.roll(-(isize::MAX % 3), 0));
    }
}
