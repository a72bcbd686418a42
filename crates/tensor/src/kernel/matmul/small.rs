//! Computes products for which `gemm` is slow: little work, few rows, or few columns.

use std::ops::Range;

use smallvec::SmallVec;

use crate::Scalar;
use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::kernel::matmul::micro::{DotProducts, HasMicroKernels, MicroKernel, MicroKernels, SmallProduct};
use crate::kernel::transpose;
use crate::memory::available::AllocationError;
use crate::memory::partition::Tile;
use crate::memory::scratch::Scratch;
use crate::scalar::cpu::dispatched;
use crate::scalar::element::Semiring;
use crate::thresholds::matmul::{
    DOT_COLUMNS, MAX_COPIED_BYTES, MAX_COPIED_ROW_BYTES, MAX_DOT_ROWS, MIN_THIN_TERMS, ROW_PRODUCT_COLUMNS, SEGMENT,
};
pub(crate) use crate::thresholds::matmul::{FEW_COLUMNS, THIN_COLUMNS};
use crate::thresholds::transpose::SIDE;

/// Computes a matrix product by its definition, row by row. If the product is added to `out` and has at most [`FEW_COLUMNS`] columns, each
/// row is computed completely and then added. With more columns, each term is added to `out` directly. Callers pass more columns only for
/// integers and truth values, because for them the order of additions makes no difference.
pub(crate) fn multiply_by_definition<T: Semiring>(sizes: Sizes, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
    let Sizes { m, n, k, add } = sizes;
    if add && n <= FEW_COLUMNS {
        let mut row = [T::ZERO; FEW_COLUMNS];
        for (i, out) in out.chunks_exact_mut(n).enumerate().take(m) {
            multiply_by_definition(Sizes { m: 1, add: false, ..sizes }, x.submatrix(i, 0), y, &mut row[..n]);
            out.iter_mut().zip(&row).for_each(|(out, &product)| *out = out.plus(product));
        }
        return;
    }
    for (i, out) in out.chunks_exact_mut(n).enumerate().take(m) {
        for l in 0..k {
            let factor = x.at(i, l);
            let first = l == 0 && !add;
            let accumulate = |out: &mut T, value: T| {
                let term = factor.times(value);
                *out = if first { term } else { out.plus(term) };
            };
            if y.column_stride == 1 {
                out.iter_mut().zip(&y.row(l)[..n]).for_each(|(out, &value)| accumulate(out, value));
            } else {
                out.iter_mut().enumerate().for_each(|(j, out)| accumulate(out, y.at(l, j)));
            }
        }
    }
}

/// Returns whether [`transpose::materialize`] can copy a matrix in strips of columns. The matrix must be the transpose of a row-major
/// matrix, and its strips must not be too small.
pub(crate) fn is_written_by_squares<T>(matrix: Matrix<T>, rows: usize, columns: usize) -> bool {
    matrix.row_stride == 1
        && matrix.column_stride > 0
        && strips(columns).all(|it| transpose::has_squares(it.len(), rows))
}

/// Splits the columns of a matrix into strips, the ranges of columns that are copied at once. If there are several strips, each has more
/// than 100 columns. No strip has more than [`transpose::PITCH`] columns.
pub(crate) fn strips(columns: usize) -> impl Iterator<Item = Range<usize>> {
    let number = if columns <= transpose::PITCH { 1 } else { columns.div_ceil(transpose::WIDE) };
    let start = move |strip: usize| if strip < number { strip * (columns / SIDE) / number * SIDE } else { columns };
    (0..number).map(move |strip| start(strip)..start(strip + 1))
}

/// Copies the elements of a matrix, or of a strip of it (a range of columns), in row-major order. Returns the copy and the distance between
/// its rows.
pub(crate) fn contiguous_rows<T: Semiring>(
    matrix: Matrix<T>,
    rows: usize,
    columns: usize,
) -> Result<(Scratch<T>, usize), AllocationError> {
    if columns <= transpose::PITCH && is_written_by_squares(matrix, rows, columns) {
        let mut written = Scratch::new(rows * transpose::PITCH)?;
        let from = &matrix.data[matrix.offset..];
        transpose::materialize(from, matrix.column_stride as usize, columns, rows, &mut written);
        return Ok((written, transpose::PITCH));
    }
    let mut written = Scratch::new(rows * columns)?;
    for (i, row) in written.chunks_exact_mut(columns).enumerate() {
        row.iter_mut().enumerate().for_each(|(j, to)| *to = matrix.at(i, j));
    }
    Ok((written, columns))
}

/// Computes a product with little work or few rows. Reads the right matrix row by row, several columns at once. Copies the right matrix
/// only if its rows are not contiguous. Copies the left matrix only if it has several rows, and neither its rows nor its columns are
/// contiguous.
pub(crate) fn multiply_compact<T: Semiring + HasMicroKernels>(
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let (left_rows, left_step);
    let left = if x.column_stride == 1 || x.row_stride == 1 || m == 1 {
        x
    } else {
        (left_rows, left_step) = contiguous_rows(x, m, k)?;
        Matrix::row_major(&left_rows, 0, left_step)
    };
    let kernels = T::kernels();
    if y.column_stride == 1 {
        multiply_compact_in_place(kernels, Sizes { m, n, k, add }, left, y, out, n);
        return Ok(());
    }
    for strip in strips(n) {
        let (rows, step) = contiguous_rows(y.submatrix(0, strip.start), k, strip.len())?;
        let rows = Matrix::row_major(&rows, 0, step);
        multiply_compact_in_place(kernels, Sizes { m, n: strip.len(), k, add }, left, rows, &mut out[strip.start..], n);
    }
    Ok(())
}

/// Computes [`multiply_compact`] for a right matrix with contiguous rows. The rows of `out` are `pitch` elements apart.
pub(super) fn multiply_compact_in_place<T: Scalar>(
    kernels: &dyn MicroKernels<T>,
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    out: &mut [T],
    pitch: usize,
) {
    let mut i = 0;
    while i < m {
        let mut rows = 0;
        let mut from = 0;
        while from < n {
            let vectors;
            (rows, vectors) = kernels.small_tile(m - i, (n - from).div_ceil(kernels.lanes()));
            let columns = (vectors * kernels.lanes()).min(n - from);
            let (x, y, out) = (x.submatrix(i, 0), y.submatrix(0, from), &mut out[i * pitch + from..]);
            kernels.run(MicroKernel::SmallProduct(SmallProduct { rows, vectors, columns, k, x, y, out, pitch, add }));
            from += columns;
        }
        i += rows;
    }
}

/// Computes a product with few columns. Each sum runs along a row of `x`. The rows of `x` must be contiguous and in ascending order in
/// memory.
pub(crate) fn multiply_thin<T: Semiring + HasMicroKernels>(
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    out: &mut [T],
) -> Result<(), AllocationError> {
    assert!(x.column_stride == 1 && (m == 1 || x.row_stride >= 0), "rows are contiguous and in order");
    let kernels = T::kernels();
    if !add {
        out.fill(T::ZERO);
    }
    let packed: Scratch<T>;
    let (right, column) = if y.row_stride == 1 && (n == 1 || y.column_stride >= 0) {
        (y.row(0), y.column_stride.max(0) as usize)
    } else {
        let mut columns = Scratch::new(n * k)?;
        for (j, column) in columns.chunks_exact_mut(k).enumerate() {
            column.iter_mut().enumerate().for_each(|(l, to)| *to = y.at(l, j));
        }
        packed = columns;
        (&*packed, k)
    };
    let run_starts: SmallVec<[usize; THIN_COLUMNS]> = (0..n).map(|j| j * column).collect();
    let pitch = if m == 1 { 0 } else { x.row_stride as usize };
    for from in (0..k).step_by(SEGMENT) {
        let count = SEGMENT.min(k - from);
        let (left, right) = (&x.row(0)[from..], &right[from..]);
        let sums = &mut *out;
        kernels.run(MicroKernel::DotProducts(DotProducts {
            rows: m,
            left,
            pitch,
            right,
            run_starts: &run_starts,
            count,
            sums,
        }));
    }
    Ok(())
}

/// Returns whether [`multiply_few_rows`] computes a product. The columns of the right matrix must be contiguous and not in descending order
/// in memory, and the sums must not be short. The product has at most [`MAX_DOT_ROWS`] rows, or a quarter of this number if the right matrix
/// is small. For a small right matrix and more rows, it is faster to copy the columns.
pub(crate) fn has_few_rows<T>(Sizes { m, n, k, .. }: Sizes, y: Matrix<T>) -> bool {
    let contiguous = y.row_stride == 1 && y.column_stride >= 0;
    let is_large = n.saturating_mul(k).saturating_mul(size_of::<T>()) > MAX_COPIED_BYTES;
    contiguous && k >= MIN_THIN_TERMS && m <= if is_large { MAX_DOT_ROWS } else { MAX_DOT_ROWS / 4 }
}

/// Computes a product that satisfies [`has_few_rows`]. Each sum runs along a column of `y` and a row of `x`. The columns of `y` are read in
/// place, which takes less time than copying them. If the rows of `x` are not contiguous, or are in descending order in memory, they are
/// copied.
pub(crate) fn multiply_few_rows<T: Semiring + HasMicroKernels>(
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    mut out: Tile<T>,
) -> Result<(), AllocationError> {
    let (copied, step);
    let x = if x.column_stride == 1 && x.row_stride >= 0 {
        x
    } else {
        (copied, step) = contiguous_rows(x, m, k)?;
        Matrix::row_major(&copied, 0, step)
    };
    let mut run_starts = [0; MAX_DOT_ROWS];
    run_starts.iter_mut().enumerate().take(m).for_each(|(i, run)| *run = i * x.row_stride.unsigned_abs());
    let kernels = T::kernels();
    for first in (0..n).step_by(DOT_COLUMNS) {
        let width = DOT_COLUMNS.min(n - first);
        // The results, column by column: the sums of one column are contiguous.
        let mut sums = [T::ZERO; MAX_DOT_ROWS * DOT_COLUMNS];
        for from in (0..k).step_by(SEGMENT) {
            kernels.run(MicroKernel::DotProducts(DotProducts {
                rows: width,
                left: &y.column(first)[from..],
                pitch: y.column_stride.unsigned_abs(),
                right: &x.row(0)[from..],
                run_starts: &run_starts[..m],
                count: SEGMENT.min(k - from),
                sums: &mut sums[..width * m],
            }));
        }
        for i in 0..m {
            let out = &mut out.row(i)[first..][..width];
            let sums = sums[i..].iter().step_by(m);
            out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = if add { out.plus(sum) } else { sum });
        }
    }
    Ok(())
}

/// Returns whether [`multiply_few_columns`] computes a product. The product has few columns, at least two, and more rows. The columns of the
/// left matrix are contiguous, and the sums are not short. The rows or the columns of the right matrix are contiguous.
pub(crate) fn has_few_columns<T>(Sizes { m, n, k, .. }: Sizes, x: Matrix<T>, y: Matrix<T>) -> bool {
    let contiguous = x.row_stride == 1 && x.column_stride != 1 && (y.row_stride == 1 || y.column_stride == 1);
    (2..=MAX_COPIED_ROW_BYTES / size_of::<T>()).contains(&n) && m > n && k >= MIN_THIN_TERMS && contiguous
}

/// Computes a product that satisfies [`has_few_columns`], as the transpose of a product with few rows. That product reads the columns of
/// `x` as rows, several elements at once.
pub(crate) fn multiply_few_columns<T: Semiring + HasMicroKernels>(
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let mut rows = Scratch::new(n * m)?;
    multiply_compact(Sizes { m: n, n: m, k, add: false }, y.transposed(), x.transposed(), &mut rows)?;
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        let sums = rows[i..].iter().step_by(m);
        out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = if add { out.plus(sum) } else { sum });
    }
    Ok(())
}

dispatched! {
    /// Sets `out` to the sum of `x[l]` times row l of `y`, over all `l < k`. The rows of `y` are contiguous. `y` is read once, in strips of
    /// [`ROW_PRODUCT_COLUMNS`] columns, four rows at a time.
    pub(crate) fn row_times_matrix<T: Semiring>(k: usize, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
        out.fill(T::ZERO);
        for (strip, out) in out.chunks_mut(ROW_PRODUCT_COLUMNS).enumerate() {
            let width = out.len();
            let row = |l: usize| &y.row(l)[strip * ROW_PRODUCT_COLUMNS..][..width];
            let mut l = 0;
            while l + 4 <= k {
                let (f, g, h, e) = (x.at(0, l), x.at(0, l + 1), x.at(0, l + 2), x.at(0, l + 3));
                let (a, b, c, d) = (row(l), row(l + 1), row(l + 2), row(l + 3));
                for i in 0..width {
                    let low = f.times(a[i]).plus(g.times(b[i]));
                    out[i] = out[i].plus(low.plus(h.times(c[i]).plus(e.times(d[i]))));
                }
                l += 4;
            }
            while l < k {
                let (factor, values) = (x.at(0, l), row(l));
                out.iter_mut().zip(values).for_each(|(sum, &value)| *sum = sum.plus(factor.times(value)));
                l += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks products of small integers, whose sums are exact, against the definition. There are unused elements between the columns of
    /// the right matrix.
    #[test]
    fn products_of_few_rows_are_exact() {
        for (m, n, k) in [(1, 17, 64), (2, 64, 100), (3, 65, 1024), (4, 130, 1025), (7, 20, 2100), (16, 70, 129)] {
            let numbers = |len: usize, seed: usize| -> Vec<f64> {
                (0..len).map(|i| ((i * 7919 + seed) % 13) as f64 - 6.0).collect()
            };
            let (left, right) = (numbers((m + 1) * (k + 3), 1), numbers(n * (k + 5), 2));
            let (x, y) = (Matrix::row_major(&left, 0, k + 3), Matrix::row_major(&right, 0, k + 5).transposed());
            let transposed = Matrix::row_major(&left, 0, m + 1).transposed();
            for (x, add) in [(x, false), (x, true), (transposed, true)] {
                let sizes = Sizes { m, n, k, add };
                let mut out = numbers(m * n, 3);
                multiply_few_rows(sizes, x, y, Tile::whole(&mut out, n)).unwrap();
                assert_eq!(out, expected(sizes, x, y, numbers(m * n, 3)), "{sizes:?}");
            }
        }
    }

    /// Returns the product of two matrices by its definition, plus `out` if `sizes.add` is true.
    fn expected(sizes: Sizes, x: Matrix<f64>, y: Matrix<f64>, mut out: Vec<f64>) -> Vec<f64> {
        let mut product = vec![0.0; out.len()];
        multiply_by_definition(Sizes { add: false, ..sizes }, x, y, &mut product);
        out.iter_mut()
            .zip(&product)
            .for_each(|(out, product)| *out = if sizes.add { *out + product } else { *product });
        out
    }

    #[test]
    fn products_of_few_columns_are_exact() {
        let numbers: Vec<f64> = (0..300 * 300).map(|i| ((i * 7919 + 1) % 13) as f64 - 6.0).collect();
        for (m, n, k) in [(3, 2, 65), (40, 4, 64), (100, 3, 250), (17, 3, 71)] {
            let (x, y) = (Matrix::row_major(&numbers, 2, 101).transposed(), Matrix::row_major(&numbers, 1, 251));
            for (y, add) in [(y, false), (y, true), (y.transposed(), true)] {
                let sizes = Sizes { m, n, k, add };
                assert!(has_few_columns(sizes, x, y));
                let mut out = numbers[..m * n].to_vec();
                multiply_few_columns(sizes, x, y, &mut out).unwrap();
                assert_eq!(out, expected(sizes, x, y, numbers[..m * n].to_vec()), "{sizes:?}");
            }
        }
    }

    #[test]
    fn few_rows_need_contiguous_columns_and_long_sums() {
        let data = vec![0.0f64; 100 * 100];
        let y = Matrix::row_major(&data, 0, 100).transposed();
        let few = |m, n, k, y| has_few_rows(Sizes { m, n, k, add: false }, y);
        assert!(few(4, 20, 64, y) && few(16, 100, 100, y));
        assert!(!few(5, 20, 64, y) && !few(17, 100, 100, y) && !few(4, 20, 63, y) && !few(4, 20, 64, y.transposed()));
    }

    #[test]
    fn few_columns_need_a_transposed_left_matrix_and_long_sums() {
        let data = vec![0.0f64; 100 * 100];
        let (y, x) = (Matrix::row_major(&data, 0, 100), Matrix::row_major(&data, 0, 100).transposed());
        let few = |m, n, k, x| has_few_columns(Sizes { m, n, k, add: false }, x, y);
        assert!(few(5, 4, 64, x) && few(3, 2, 100, x));
        assert!(!few(50, 5, 64, x) && !few(4, 4, 64, x) && !few(5, 4, 63, x) && !few(5, 1, 64, x));
        assert!(!few(5, 4, 64, x.transposed()));
    }

    #[test]
    fn strips_cover_all_columns_and_none_is_short() {
        for columns in 1..3000 {
            let mut next = 0;
            for strip in strips(columns) {
                assert_eq!(strip.start, next);
                assert!(strip.len() <= transpose::PITCH && (strip.len() == columns || strip.len() > 100), "{strip:?}");
                next = strip.end;
            }
            assert_eq!(next, columns);
        }
    }
}
