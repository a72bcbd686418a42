//! Products of batches of matrices, `[m, k] x [k, n]`, each operand with any strides.
//!
//! A batch is divided among threads by matrices. A single product with few rows, or with many columns in relation to its rows, may be divided
//! by columns. Otherwise, a product with a single row, or with few results and long sums, is divided by the terms of the sums. The remaining
//! products are divided by rows if they have few rows or few columns, and by tiles of the result if not.

use std::ops::Range;

use smallvec::SmallVec;

use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::kernel::matmul::small::{has_few_rows, is_written_by_squares, strips};
use crate::kernel::source::Source;
use crate::kernel::{fill, transpose};
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid, Partition};
use crate::memory::scratch::Scratch;
use crate::memory::threads::{Schedule, max_part_count, range_starts};
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::matmul::{
    COLUMN_UNIT, MANY_ROWS, MANY_THREADS, MAX_COLUMN_PARTS, MAX_SHORT_ROW_BYTES, MIN_PARALLEL, MIN_PARALLEL_COLUMN,
    MIN_READ_PER_TASK, MIN_SPLIT_SUM, MIN_TILE_COLUMNS, MIN_TRANSPOSED_ROWS, MIN_WIDE, NARROW_COLUMN_UNIT, ROW_UNIT,
    THIN_COLUMNS,
};
use crate::thresholds::transpose::PITCH;
use crate::{Element, Layout, Reduction};

/// The values to which a product is added.
#[derive(Clone, Copy)]
pub(crate) enum Addend<'a, T> {
    Nothing,
    /// The current elements of `out`.
    Out,
    /// The elements of a tensor with the shape of the result.
    Elements(Source<'a, T>),
}

/// A batch of matrix products. The product with index `b` is `x[b] y[b] + addend[b]`.
struct Batch<'a, T> {
    x: Source<'a, T>,
    y: Source<'a, T>,
    addend: Addend<'a, T>,
    /// The iteration space of the elements of [`Addend::Elements`].
    addend_space: Option<IterationSpace<1>>,
    /// For each product of the batch, the positions of the first elements of its two matrices.
    matrices: IterationSpace<2>,
    sizes: Sizes,
}

impl<'a, T: Element> Batch<'a, T> {
    fn new(x: Source<'a, T>, y: Source<'a, T>, addend: Addend<'a, T>) -> Self {
        let rank = x.layout.shape().rank();
        let outer = |layout: &Layout| layout.keep_axes(|axis| axis < rank - 2);
        let (outer_x, outer_y) = (outer(x.layout), outer(y.layout));
        let addend_space = match addend {
            Addend::Elements(Source { layout, .. }) => Some(IterationSpace::new(layout.shape(), [layout])),
            Addend::Nothing | Addend::Out => None,
        };
        let sizes = Sizes {
            m: x.layout.shape()[rank - 2],
            n: y.layout.shape()[rank - 1],
            k: x.layout.shape()[rank - 1],
            add: !matches!(addend, Addend::Nothing),
        };
        let matrices = IterationSpace::new(outer_x.shape(), [&outer_x, &outer_y]);
        Batch { x, y, addend, addend_space, matrices, sizes }
    }

    /// Fills `out` with consecutive elements of [`Addend::Elements`]. The first of them has index `start`. Does nothing for the other
    /// variants.
    fn write_addend(&self, start: usize, out: &mut [T]) {
        if let (Addend::Elements(Source { data, .. }), Some(space)) = (self.addend, &self.addend_space) {
            fill::spread(space, data, start, out);
        }
    }

    /// Returns the two matrices of the product with index `b`.
    fn operands(&self, b: usize) -> (Matrix<'a, T>, Matrix<'a, T>) {
        let matrix = |operand: usize, Source { data, layout }: Source<'a, T>| {
            let [.., row_stride, column_stride] = layout.strides()[..] else {
                unreachable!("matrices have two dimensions")
            };
            Matrix { data, offset: self.matrices.position(operand, b), row_stride, column_stride }
        };
        (matrix(0, self.x), matrix(1, self.y))
    }

    /// Computes as many products of the batch as `out` has room for, beginning with the product with index `first`.
    fn compute_products(&self, first: usize, out: &mut [T]) -> Result<(), AllocationError> {
        let each = self.sizes.m * self.sizes.n;
        for (b, out) in (first..).zip(out.chunks_mut(each)) {
            let (left, right) = self.operands(b);
            self.write_addend(b * each, out);
            T::standalone_product(self.sizes, left, right, out)?;
        }
        Ok(())
    }

    /// Computes a single product in several tasks, each for `columns` columns of the result.
    fn compute_by_columns(&self, columns: usize, out: &mut [T]) -> Result<(), AllocationError> {
        let (Sizes { m, n, .. }, (left, right)) = (self.sizes, self.operands(0));
        let grid = Grid::equal(out, n, (m, columns));
        partition::try_run(n.div_ceil(columns), Schedule::Parallel, grid, |_, mut out| {
            let (_, first) = out.origin();
            (0..m).for_each(|row| self.write_addend(row * n + first, out.row(row)));
            T::product_into(Sizes { n: out.width(), ..self.sizes }, left, right.submatrix(0, first), out)
        })
    }

    /// Writes the products of matrices without elements, whose sums have no terms.
    fn write_empty_sums(&self, out: &mut [T]) {
        if !self.sizes.add {
            out.fill(T::ZERO);
        }
        self.write_addend(0, out);
    }

    /// Computes a single product in several tasks. Each task computes a tile of the result, a range of rows and a range of columns. A tile
    /// has at least `min_units` units of [`ROW_UNIT`] rows.
    ///
    /// If the columns of the right matrix are contiguous and do not overlap, and there are several tasks, all threads together transpose it
    /// first. Without this copy, `gemm` would rearrange the same columns in several tasks.
    fn compute_by_tiles(&self, min_units: usize, out: &mut [T]) -> Result<(), AllocationError> {
        let (Sizes { m, n, k, .. }, (left, right)) = (self.sizes, self.operands(0));
        let units = m.div_ceil(ROW_UNIT);
        let parts = max_part_count(units, min_units);
        // Overlapping columns, as in a view of windows, are not copied. A copy could need much more memory than the view.
        let is_copied = parts > 1 && is_written_by_squares(right, k, n) && right.column_stride.unsigned_abs() >= k;
        let transposed = if is_copied { Some(TransposedStrips::new(right, k, n)?) } else { None };
        let tiles_per_row = tiles_across(self.sizes, parts);
        let columns: SmallVec<[usize; 16]> = match transposed {
            Some(_) => strips(n).map(|strip| strip.end).collect(),
            None => {
                let starts = range_starts(n / COLUMN_UNIT, tiles_per_row);
                starts.iter().skip(1).map(|&unit| unit * COLUMN_UNIT).chain([n]).collect()
            }
        };
        let starts = range_starts(units, parts / tiles_per_row);
        let rows: SmallVec<[usize; 16]> = starts.iter().skip(1).map(|&unit| unit * ROW_UNIT).chain([m]).collect();
        let grid = Grid::ends(out, n, &rows, &columns);
        partition::try_run(rows.len() * columns.len(), Schedule::Parallel, grid, |number, mut out| {
            let (top, first) = out.origin();
            (0..out.height()).for_each(|row| self.write_addend((top + row) * n + first, out.row(row)));
            let right = transposed.as_ref().map_or(right.submatrix(0, first), |all| all.strip(number % columns.len()));
            let sizes = Sizes { m: out.height(), n: out.width(), ..self.sizes };
            T::product_into(sizes, left.submatrix(top, 0), right, out)
        })
    }

    /// Computes a single product in several tasks, each for a range of the terms of every sum. Then adds the partial sums.
    fn compute_by_terms(&self, out: &mut [T]) -> Result<(), AllocationError> {
        let (Sizes { m, n, k, add }, (left, right)) = (self.sizes, self.operands(0));
        let (terms_per_part, parts) = (k.div_ceil(4), k.div_ceil(k.div_ceil(4)));
        let mut sums = Scratch::new(parts * m * n)?;
        partition::try_chunks(&mut sums, m * n, Schedule::Parallel, |part, out| {
            let first = part * terms_per_part;
            let sizes = Sizes { m, n, k: terms_per_part.min(k - first), add: false };
            T::product(sizes, left.submatrix(0, first), right.submatrix(first, 0), out)
        })?;
        let (first, others) = sums.split_at_mut(m * n);
        others.chunks_exact(m * n).for_each(|other| T::accumulate(Reduction::Sum, first, other));
        if add {
            self.write_addend(0, out);
            T::accumulate(Reduction::Sum, out, first);
        } else {
            out.copy_from_slice(first);
        }
        Ok(())
    }
}

/// Computes `out[b] = x[b] y[b]` for every index `b` of the batch dimensions, and adds the values of `addend`. The batch dimensions of both
/// operands have the same sizes.
pub(crate) fn matmul<T: Element>(
    x: Source<T>,
    y: Source<T>,
    addend: Addend<T>,
    out: &mut [T],
) -> Result<(), AllocationError> {
    if out.is_empty() {
        return Ok(());
    }
    let batch = Batch::new(x, y, addend);
    let Sizes { m, n, k, .. } = batch.sizes;
    if k == 0 {
        batch.write_empty_sums(out);
        return Ok(());
    }
    let count = out.len() / (m * n);
    let work = [m, n, k].iter().fold(count, |work, &size| work.saturating_mul(size));
    let min_parallel_work = if n == 1 && k.saturating_mul(size_of::<T>()) <= MAX_SHORT_ROW_BYTES {
        MIN_PARALLEL_COLUMN
    } else {
        MIN_PARALLEL
    };
    if work < min_parallel_work {
        return batch.compute_products(0, out);
    }
    if count > 1 {
        let per_part = (MIN_PARALLEL / 4 / (m * n * k)).max(1);
        return partition::try_chunks(out, per_part * m * n, Schedule::Parallel, |part, out| {
            batch.compute_products(part * per_part, out)
        });
    }
    let (left, right) = batch.operands(0);
    if n > THIN_COLUMNS && has_few_rows(batch.sizes, right) {
        let parts = (n / COLUMN_UNIT).min(n.saturating_mul(k) / MIN_READ_PER_TASK).clamp(1, MAX_COLUMN_PARTS);
        return batch.compute_by_columns(n.div_ceil(parts).next_multiple_of(COLUMN_UNIT), out);
    }
    let min_units = least_units(m, n, work / min_parallel_work);
    let has_few_units = m.div_ceil(ROW_UNIT) < 2 * min_units;
    let parts = (n / COLUMN_UNIT).min(work / (2 * MIN_PARALLEL)).min(MAX_COLUMN_PARTS);
    // The width of each part except the last is a multiple of a unit. With few columns and an odd number of units of [`COLUMN_UNIT`]
    // columns, the parts would differ too much in width. Such products use the smaller unit, except for sums of at least [`MIN_SPLIT_SUM`]
    // terms.
    let in_units = n >= MIN_WIDE || n >= 4 * COLUMN_UNIT && n.is_multiple_of(2 * COLUMN_UNIT);
    let (parts, unit) =
        if in_units || k >= MIN_SPLIT_SUM { (parts, COLUMN_UNIT) } else { (parts.min(2), NARROW_COLUMN_UNIT) };
    // In a division by rows, each part rearranges the whole right matrix. In a division by columns, each part reads the left matrix in
    // place if its rows are contiguous. So wide products with such a left matrix are divided by columns.
    let wide = in_units && n >= if m < MANY_ROWS { m } else { 2 * m };
    let by_columns = has_few_units || wide && left.column_stride == 1;
    if m > 1 && by_columns && (parts >= 4 || parts >= 2 && k < MIN_SPLIT_SUM) {
        return batch.compute_by_columns(n.div_ceil(parts).next_multiple_of(unit), out);
    }
    if m == 1 || has_few_units && k >= MIN_SPLIT_SUM && m * n <= k * (m + n) / 8 {
        return batch.compute_by_terms(out);
    }
    if !has_few_units && n > THIN_COLUMNS {
        return batch.compute_by_tiles(min_units, out);
    }
    partition::try_ranges(out, ROW_UNIT * n, min_units, |first, out| {
        batch.write_addend(first * ROW_UNIT * n, out);
        T::product(Sizes { m: out.len() / n, ..batch.sizes }, left.submatrix(first * ROW_UNIT, 0), right, out)
    })
}

/// A row-major copy of a right matrix with contiguous columns, in strips (ranges of columns).
struct TransposedStrips<T> {
    elements: Scratch<T>,
    /// The number of rows of the matrix.
    rows: usize,
}

impl<T: Element> TransposedStrips<T> {
    /// Copies a matrix of `rows` rows on several threads. The matrix must satisfy [`is_written_by_squares`].
    fn new(matrix: Matrix<T>, rows: usize, columns: usize) -> Result<Self, AllocationError> {
        let strips: SmallVec<[Range<usize>; 16]> = strips(columns).collect();
        let parts = (rows / MIN_TRANSPOSED_ROWS).max(1);
        let start = |task: usize| task / parts * rows + task % parts * rows / parts;
        let ends: Vec<usize> = (1..=strips.len() * parts).map(|task| start(task) * PITCH).collect();
        let mut elements = Scratch::new(strips.len() * rows * PITCH)?;
        partition::run(ends.len(), Schedule::Parallel, Partition::ends(&mut elements, &ends), |task, out| {
            let (strip, row) = (&strips[task / parts], start(task) % rows);
            let from = matrix.submatrix(row, strip.start);
            let step = matrix.column_stride.unsigned_abs();
            transpose::materialize(&matrix.data[from.offset..], step, strip.len(), out.len() / PITCH, out);
        });
        Ok(TransposedStrips { elements, rows })
    }

    /// Returns the columns of the strip with index `number`.
    fn strip(&self, number: usize) -> Matrix<'_, T> {
        Matrix::row_major(&self.elements, number * self.rows * PITCH, PITCH)
    }
}

/// Returns the number of tiles in each row of tiles, if the result of a product is divided among `parts` threads. The number divides
/// `parts`.
///
/// A thread with whole rows writes contiguous elements, which it usually reads in the next operation too. But it also reads the whole right
/// matrix. So the columns are divided only if there are many threads and the sums are long. The tiles are then nearly square, so that a
/// thread reads few rows and columns. A tile has at least [`MIN_TILE_COLUMNS`] columns.
fn tiles_across(Sizes { m, n, k, .. }: Sizes, parts: usize) -> usize {
    if parts < MANY_THREADS || k < m.min(n) {
        return 1;
    }
    let tiles_per_row = (1..=n / MIN_TILE_COLUMNS).filter(|&tiles_per_row| parts.is_multiple_of(tiles_per_row));
    tiles_per_row.min_by_key(|&tiles_per_row| m * tiles_per_row / parts + n / tiles_per_row).unwrap_or(1)
}

/// Returns the minimum number of units of [`ROW_UNIT`] rows in a part of a product that is divided by rows. The product has enough work for
/// `parts` threads. Parts are large, because each part reads the whole right side.
///
/// A product in parts has the bits of the undivided product only if `gemm` takes the same code path for every part. `gemm` takes other
/// paths for products with little work, and for results of at most 64 x 64 or of at most 256 elements.
fn least_units(m: usize, n: usize, parts: usize) -> usize {
    let rows = if m > 64 && n <= 64 { 65 } else { 16 }.max(256 / n + 1);
    // The last unit of a part may have fewer than [`ROW_UNIT`] rows.
    let units = rows.div_ceil(ROW_UNIT) + 1;
    units.max(m.div_ceil(ROW_UNIT).div_ceil((2 * parts).max(1)))
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::tiles_across;
    use crate::kernel::matmul::matrix::Sizes;
    use crate::prelude::*;
    use crate::{Site, num_threads, set_num_threads};

    /// Sizes `[m, n, k]` around the thresholds between the code paths of `gemm` and of this crate.
    const SIZES: [[usize; 3]; 53] = [
        [128, 128, 64],
        [130, 64, 700],
        [131, 64, 1100],
        [65, 65, 1300],
        [65, 64, 1300],
        [64, 64, 1300],
        [300, 33, 600],
        [4096, 8, 32],
        [4097, 5, 48],
        [2000, 17, 40],
        [900, 16, 300],
        [3000, 1, 200],
        [5000, 1, 70],
        [120, 1, 3000],
        [1000, 1, 100],
        [2000, 1, 32],
        [1, 100, 4000],
        [9000, 7, 10],
        [4000, 16, 50],
        [2100, 2, 160],
        [520, 300, 2],
        [1000, 300, 1],
        [257, 511, 513],
        [1, 1200, 900],
        [10, 200, 2000],
        [20, 33, 1025],
        [16, 300, 1024],
        [2, 3000, 300],
        [8, 128, 512],
        [32, 512, 128],
        [32, 128, 512],
        [17, 700, 1100],
        [40, 191, 200],
        [41, 64, 100],
        [41, 100, 64],
        [256, 300, 70],
        [2000, 4, 70],
        [600, 8, 300],
        [1100, 3, 90],
        [900, 2, 300],
        [200, 512, 130],
        [300, 257, 256],
        [500, 790, 17],
        [64, 128, 1024],
        [1, 700, 1100],
        [2, 300, 500],
        [5, 130, 64],
        [7, 2000, 129],
        [16, 257, 1025],
        [4, 17, 100],
        [1500, 3, 600],
        [700, 1, 512],
        [300, 8, 1000],
    ];

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let before = num_threads();
        for [m, n, k] in SIZES {
            let element =
                |seed: usize| move |i: &[usize]| ((i[0] * 7919 + i[1] * 104_729 + seed) % 1009) as f32 / 1009.0;
            let (x, y) = (Tensor::from_fn([m, k], element(1)), Tensor::from_fn([k, n], element(2)));
            let turned = (x.t().contiguous().t(), y.t().contiguous().t());
            for (x, y) in [(&x, &y), (&turned.0, &y), (&x, &turned.1), (&turned.0, &turned.1)] {
                let added_to = Tensor::from_fn([1, n], element(3)).expand([m as isize, -1]);
                let (wide_x, wide_y) = (x.cast::<f64>(), y.cast::<f64>());
                let product = |threads: usize| {
                    set_num_threads(threads);
                    let added = added_to.clone().add_product(x, y, Site::here("test")).unwrap();
                    let again = added.clone().contiguous().add_product(x, y, Site::here("test")).unwrap();
                    (x.matmul(y), wide_x.matmul(&wide_y), added, again)
                };
                let expected = product(1);
                let (plain, _, added, again) = &expected;
                assert_relative_eq!(*added, plain + &added_to, max_relative = 1e-4);
                assert_relative_eq!(*again, added + plain, max_relative = 1e-4);
                for threads in [2, 3, 7, 16] {
                    assert_eq!(product(threads), expected, "[{m}, {k}] x [{k}, {n}] with {threads} threads");
                }
            }
        }
        set_num_threads(before);
    }

    /// Checks that a right matrix with contiguous columns gives the same bits as its row-major copy, at several distances of the columns.
    #[test]
    fn a_right_matrix_with_contiguous_columns_gives_the_bits_of_its_copy() {
        // Products with few rows or columns are left out, because other kernels compute them if the columns are contiguous. These kernels
        // add in another order.
        for [m, n, k] in SIZES.into_iter().filter(|&[m, n, _]| m > 16 && n > 16) {
            for distance in [k, k.next_multiple_of(128), k + 3] {
                let element =
                    |seed: usize| move |i: &[usize]| ((i[0] * 7919 + i[1] * 104_729 + seed) % 1009) as f32 / 1009.0;
                let (x, wide) = (Tensor::from_fn([m, k], element(1)), Tensor::from_fn([n, distance], element(2)));
                let y = wide.narrow(1, 0, k).t();
                assert_eq!(x.matmul(&y), x.matmul(y.contiguous()), "[{m}, {k}] x [{k}, {n}] at distance {distance}");
            }
        }
    }

    #[test]
    fn many_threads_share_rows_if_the_sums_are_long() {
        for ([m, n, k, parts], expected) in [
            ([1024, 1024, 1024, 16], 4),
            ([1024, 1024, 1000, 16], 1),
            ([1024, 1024, 1024, 7], 1),
            ([1024, 500, 1024, 16], 1),
            ([512, 2048, 600, 8], 4),
            ([600, 600, 2000, 9], 1),
        ] {
            assert_eq!(tiles_across(Sizes { m, n, k, add: false }, parts), expected, "{m} {n} {k} {parts}");
        }
    }

    /// Checks that operands with negative strides give the products of contiguous copies, for matrices of several sizes.
    #[test]
    fn flipped_operands_give_the_products_of_their_copies() {
        for [m, n, k] in [[2, 2, 2], [4, 8, 4], [5, 17, 9], [1, 9, 70], [20, 3, 100], [40, 50, 60], [300, 40, 70]] {
            let element = |i: &[usize]| ((i[0] * 31 + i[1] * 17) % 13) as f32 - 6.0;
            let (x, y) = (Tensor::from_fn([m, k], element), Tensor::from_fn([k, n], element));
            for (flip_x, flip_y) in
                [(vec![0], vec![0]), (vec![1], vec![1]), (vec![0, 1], vec![0, 1]), (vec![0], vec![])]
            {
                let (x, y) = (x.flip(flip_x.clone()), y.flip(flip_y.clone()));
                assert_eq!(x.matmul(&y), x.contiguous().matmul(y.contiguous()), "{m} {n} {k} {flip_x:?} {flip_y:?}");
            }
        }
    }
}
