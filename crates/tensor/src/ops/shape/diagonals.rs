//! Triangles of matrices, and operations that read or write diagonals. For triangles, dimensions before the last two are batches.

use wengert_macros::twins;

use crate::memory::reserve::{addressable, check_fits};
use crate::ops::shape::views::diagonal_axes;
use crate::ops::{Compose, Result, TensorLike};
use crate::{Error, Position, Scalar, Shape, Site, Tensor, View, ensure};

/// Triangles and diagonals.
#[twins(blanket)]
pub trait Diagonals: TensorLike {
    /// Returns each matrix `[…, m, n]` with 0 above the diagonal that lies `diagonal` places above the main diagonal (or below it, if
    /// `diagonal` is negative). NaN and ∞ there become 0 too. Refuses fewer than two dimensions. PyTorch: `tril`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::<f64>::ones([2, 3]);
    /// assert_eq!(x.tril(0), Tensor::from([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]));
    /// ```
    #[in_place]
    fn try_tril(&self, diagonal: isize) -> Result<Self> {
        triangle(self, diagonal, true, Site::here("tril"))
    }

    /// Returns each matrix `[…, m, n]` with 0 below the diagonal that lies `diagonal` places above the main diagonal (or below it, if
    /// `diagonal` is negative). NaN and ∞ there become 0 too. Refuses fewer than two dimensions. PyTorch: `triu`.
    #[in_place]
    fn try_triu(&self, diagonal: isize) -> Result<Self> {
        triangle(self, diagonal, false, Site::here("triu"))
    }

    /// Returns a matrix with the vector `self` on a diagonal, or a diagonal of the matrix `self`. This diagonal lies `diagonal` places above
    /// the main diagonal (or below it, if `diagonal` is negative). Refuses other ranks than 1 and 2. PyTorch: `diag`.
    fn try_diag(&self, diagonal: isize) -> Result<Self> {
        let at = Site::here("diag");
        match self.shape().rank() {
            1 => embed_diagonal(self, diagonal, 0, 1, at),
            2 => self.apply_view(View::Diagonal { offset: diagonal, first: 0, second: 1 }, at),
            rank => Err(Error::argument(at, format_args!("diag(): Supports 1D or 2D tensors. Got {rank}D")).into()),
        }
    }

    /// Returns matrices with the last dimension of `self` on a diagonal, which lies `offset` places above the main diagonal (or below it, if
    /// `offset` is negative). Dimensions `first` and `second` of the result are the rows and columns. This is the adjoint of
    /// [`diagonal`](crate::ops::Views::diagonal) for square matrices. Refuses rank 0, and equal dimensions. PyTorch: `diag_embed`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).diag_embed(0, -2, -1), Tensor::from([[1.0, 0.0], [0.0, 2.0]]));
    /// ```
    fn try_diag_embed(&self, offset: isize, first: impl Position, second: impl Position) -> Result<Self> {
        embed_diagonal(self, offset, first.position(), second.position(), Site::here("diag_embed"))
    }

    /// Returns a matrix with the elements of `self`, in row-major order, on the diagonal that lies `offset` places above the main diagonal.
    /// PyTorch: `diagflat`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([[1.0], [2.0]]).diagflat(0), Tensor::from([[1.0, 0.0], [0.0, 2.0]]));
    /// ```
    fn try_diagflat(&self, offset: isize) -> Result<Self> {
        let at = Site::here("diagflat");
        embed_diagonal(&self.reshape_to([self.shape().numel()], at)?, offset, 0, 1, at)
    }
}

#[twins]
impl Tensor<i64> {
    /// Returns the indices of the elements in the lower triangle of a matrix `[rows, columns]`, in row-major order. The result `[2, count]`
    /// has the row indices of the `count` elements, then their column indices. The triangle includes the diagonal that lies `offset` places
    /// above the main diagonal. PyTorch: `tril_indices`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::tril_indices(2, 3, 0), Tensor::from([[0i64, 1, 1], [0, 0, 1]]));
    /// ```
    pub fn try_tril_indices(rows: usize, columns: usize, offset: isize) -> Result<Self, Error> {
        triangle_indices(rows, columns, offset, true, Site::here("tril_indices"))
    }

    /// Returns the indices of the elements in the upper triangle of a matrix `[rows, columns]`, in row-major order. The result `[2, count]`
    /// has the row indices of the `count` elements, then their column indices. The triangle includes the diagonal that lies `offset` places
    /// above the main diagonal. PyTorch: `triu_indices`.
    pub fn try_triu_indices(rows: usize, columns: usize, offset: isize) -> Result<Self, Error> {
        triangle_indices(rows, columns, offset, false, Site::here("triu_indices"))
    }
}

/// Returns the row and column indices `[2, count]` of the elements in a lower triangle, or in an upper triangle if `lower` is false.
fn triangle_indices(rows: usize, columns: usize, offset: isize, lower: bool, at: Site) -> Result<Tensor<i64>, Error> {
    // In i128, no sum or product below overflows.
    let [rows, columns] = [rows, columns].map(|size| size.min(isize::MAX as usize) as i128);
    let offset = offset as i128;
    let end = |row: i128| (row + offset + i128::from(lower)).clamp(0, columns);
    // The sum of min(k, columns) for k from 1 to n.
    let sum = |n: i128| match n.max(0) {
        n if n <= columns => n * (n + 1) / 2,
        n => columns * (columns + 1) / 2 + (n - columns) * columns,
    };
    // Row r has r + 1 + offset cells of a lower triangle, but at least 0 and at most `columns`.
    let below = |offset: i128| sum(rows + offset) - sum(offset);
    let count = if lower { below(offset) } else { rows * columns - below(offset - 1) };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // The rows that have cells of the triangle. If no row has a cell, nothing is written.
    let rows = if lower { (-offset).max(0)..rows } else { 0..(columns - offset).clamp(0, rows) };
    Tensor::build(&Shape::from([2, count]), at, |out| {
        let (first, second) = out.split_at_mut(count);
        let of_row = |row: i128| if lower { 0..end(row) } else { end(row)..columns };
        let cells = rows.clone().flat_map(|row| of_row(row).map(move |column| (row as i64, column as i64)));
        first.iter_mut().zip(second).zip(cells).for_each(|((row, column), cell)| (*row, *column) = cell);
    })
}

/// Returns matrices with the last dimension of `x` on a diagonal; see [`Diagonals::try_diag_embed`].
fn embed_diagonal<A: TensorLike>(x: &A, offset: isize, first: isize, second: isize, at: Site) -> Result<A> {
    let own = x.shape();
    let [first, second] = diagonal_axes(own.rank() + 1, first, second, at)?;
    // If `x` has rank 0, the result would have a single dimension, and `diagonal_axes` has returned an error.
    let len = own.last().copied().unwrap_or(1);
    let size = len.saturating_add(offset.unsigned_abs());
    let mut shape = Shape::from(&own[..own.rank() - 1]);
    for axis in [first.min(second), first.max(second)] {
        shape.insert(axis, size);
    }
    addressable::<A::Elem>(&shape, at)?;
    x.apply_embed(View::Diagonal { offset, first, second }, &shape, at)
}

/// Returns each matrix with 0 above a diagonal, or below this diagonal if `lower` is false. The diagonal lies `diagonal` places above the
/// main diagonal.
fn triangle<A: TensorLike>(x: &A, diagonal: isize, lower: bool, at: Site) -> Result<A> {
    let (shape, operation) = (x.shape(), at.operation);
    let rank = shape.rank();
    ensure!(rank >= 2, at, "{operation}: input tensor must have at least 2 dimensions");
    let columns = shape[rank - 1];
    let size = Shape::from([shape[rank - 2], columns]);
    if shape.numel() == 0 {
        return Ok(x.clone());
    }
    // Refuses matrices that memory cannot hold before the mask is made. The result has at least as many elements as the mask.
    check_fits::<A::Elem>(&size, at)?;
    let mask = Tensor::build(&size, at, |out| {
        for (row, out) in out.chunks_exact_mut(columns).enumerate() {
            let end = (row as isize).saturating_add(diagonal).saturating_add(isize::from(lower));
            let (left, right) = out.split_at_mut(end.clamp(0, columns as isize) as usize);
            left.fill(lower);
            right.fill(!lower);
        }
    })?;
    x.choose(&x.expand_mask(&mask, &shape, at)?, crate::ops::Argument::Number(A::Elem::ZERO), at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn elements_outside_the_triangle_are_zero_even_if_nan() {
        let x = Tensor::from([[f64::NAN, f64::INFINITY], [1.0, 2.0]]);
        assert_eq!(x.tril(-1), Tensor::from([[0.0, 0.0], [1.0, 0.0]]));
        assert_eq!(Tensor::from([[1i64, 2], [3, 4]]).triu(1), Tensor::from([[0i64, 2], [0, 0]]));
        assert!(Tensor::from([1.0]).try_tril(0).is_err());
        // An empty batch of large matrices needs no mask.
        assert_eq!(Tensor::<f64>::zeros([0, 1 << 20, 1 << 20]).tril(0).shape(), &[0, 1 << 20, 1 << 20]);
    }

    /// The error messages are PyTorch's.
    #[test]
    fn diagonals_need_two_dimensions() {
        let number = Tensor::scalar(1.0);
        let range = "Dimension out of range (expected to be in range of [-1, 0], but got -2)";
        assert_eq!(number.try_diag_embed(0, -2, -1).unwrap_err().sentence(), range);
        let identical = "diagonal dimensions cannot be identical -1, 0";
        assert_eq!(number.try_diag_embed(0, -1, 0).unwrap_err().sentence(), identical);
        let identical = "diagonal dimensions cannot be identical 0, -2";
        assert_eq!(Tensor::from([1.0, 2.0]).try_diag_embed(0, 0, -2).unwrap_err().sentence(), identical);
    }

    /// The indices are PyTorch's.
    #[test]
    fn indices_of_triangles() {
        let table = [
            ((3, 3, 0), vec![0, 1, 1, 2, 2, 2, 0, 0, 1, 0, 1, 2], vec![0, 0, 0, 1, 1, 2, 0, 1, 2, 1, 2, 2]),
            ((2, 3, 1), vec![0, 0, 1, 1, 1, 0, 1, 0, 1, 2], vec![0, 0, 1, 1, 2, 2]),
            ((3, 2, -1), vec![1, 2, 2, 0, 0, 1], vec![0, 0, 1, 1, 2, 0, 1, 0, 1, 1]),
            ((2, 2, -5), vec![], vec![0, 0, 1, 1, 0, 1, 0, 1]),
            ((2, 3, 9), vec![0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2], vec![]),
            ((0, 3, 0), vec![], vec![]),
            ((usize::MAX, 0, 0), vec![], vec![]),
            ((usize::MAX, 2, isize::MIN), vec![], vec![0; 0]),
        ];
        for ((rows, columns, offset), lower, upper) in table {
            let indices = Tensor::tril_indices(rows, columns, offset);
            assert_eq!(
                (indices.shape(), indices.to_vec()),
                (&[2, lower.len() / 2][..].into(), lower),
                "{rows} {columns}"
            );
            if let Ok(indices) = Tensor::try_triu_indices(rows, columns, offset) {
                assert_eq!(indices.to_vec(), upper, "{rows} {columns} {offset}");
            } else {
                assert_eq!(rows, usize::MAX);
            }
        }
        assert!(Tensor::try_tril_indices(usize::MAX, usize::MAX, isize::MAX).is_err());
        // `tril` and `triu` keep the elements at these indices.
        let x = Tensor::<i64>::arange(1..21).reshape([4, 5]);
        for offset in -5..6 {
            for (indices, triangle) in [
                (Tensor::tril_indices(4, 5, offset), x.tril(offset)),
                (Tensor::triu_indices(4, 5, offset), x.triu(offset)),
            ] {
                assert_eq!(indices.t(), triangle.nonzero(), "{offset}");
            }
        }
    }

    #[test]
    fn flattened_diagonals() {
        let x = Tensor::from([[1i64, 2], [3, 4]]);
        assert_eq!(x.diagflat(1), Tensor::from([1i64, 2, 3, 4]).diag(1));
        assert_eq!(Tensor::scalar(5i64).diagflat(1), Tensor::from([[0i64, 5], [0, 0]]));
        assert_eq!(Tensor::<f64>::zeros([0]).diagflat(0).shape(), &[0, 0]);
    }

    #[test]
    fn reading_a_written_diagonal_returns_it() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        for (offset, first, second) in [(0, -2, -1), (1, 0, 2), (-2, 2, 0), (1, 1, 0)] {
            let matrices = x.diag_embed(offset, first, second);
            assert_eq!(matrices.numel(), 2 * (2 + offset.unsigned_abs()).pow(2));
            assert_eq!(matrices.diagonal(offset, first, second), x);
        }
        assert_eq!(Tensor::from([5.0]).diag(-1), Tensor::from([[0.0, 0.0], [5.0, 0.0]]));
        assert_eq!(x.diag(1).to_vec(), [2.0]);
        let error = Tensor::from([5.0]).try_diag(isize::MAX).unwrap_err();
        assert_eq!(error.site().operation, "diag");
    }
}
