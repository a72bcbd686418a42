//! Strided matrices, the operands of matrix products.

/// An operand of a matrix product: its first element and its strides.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) offset: usize,
    pub(crate) row_stride: isize,
    pub(crate) column_stride: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// Returns a row-major matrix that starts at `offset` in `data`. Its rows are `row_stride` elements apart.
    pub(crate) fn row_major(data: &'a [T], offset: usize, row_stride: usize) -> Self {
        Matrix { data, offset, row_stride: row_stride as isize, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Matrix { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    /// Returns the submatrix whose first element is in row `row` and column `column`, and which ends with the last element of this matrix.
    pub(crate) fn submatrix(self, row: usize, column: usize) -> Self {
        Matrix { offset: self.position(row, column), ..self }
    }

    #[inline(always)]
    fn position(&self, row: usize, column: usize) -> usize {
        let moved = row as isize * self.row_stride + column as isize * self.column_stride;
        (self.offset as isize + moved) as usize
    }

    /// Returns the elements of `data` from the first element of row `row` on.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        &self.data[self.position(row, 0)..]
    }

    /// Returns the elements of `data` from the first element of column `column` on.
    #[inline(always)]
    pub(crate) fn column(&self, column: usize) -> &'a [T] {
        &self.data[self.position(0, column)..]
    }

    /// Returns whether all elements of this matrix are inside `data`, if it has `rows` rows and `columns` columns. Both must be positive.
    pub(crate) fn fits(&self, rows: usize, columns: usize) -> bool {
        let reach = |size: usize, stride: isize| (size as isize - 1) * stride;
        let (down, right) = (reach(rows, self.row_stride), reach(columns, self.column_stride));
        let first = self.offset as isize + down.min(0) + right.min(0);
        let last = self.offset as isize + down.max(0) + right.max(0);
        first >= 0 && (last as usize) < self.data.len()
    }
}

impl<T: Copy> Matrix<'_, T> {
    #[inline(always)]
    pub(crate) fn at(&self, row: usize, column: usize) -> T {
        self.data[self.position(row, column)]
    }
}

/// The sizes of a product of `[m, k]` and `[k, n]`, and whether the product is added to the output.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) add: bool,
}
