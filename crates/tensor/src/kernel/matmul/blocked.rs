//! Large products in the mode of equal bits. The crate `gemm` chooses blocks and instructions by the processor, so the order of its
//! additions differs between processors. Here the order is fixed. The terms of each sum are divided into panels. For each element of the
//! result, the terms of a panel are added to a partial sum. The partial sums of the panels are added in order.
//!
//! The right side is copied to strips (ranges of columns), which the loops of [`micro`](crate::kernel::matmul::micro) read in order. The
//! division into blocks follows K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008).

use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::kernel::matmul::micro::{HasMicroKernels, MicroKernel, MicroKernels, SmallProduct};
use crate::memory::available::AllocationError;
use crate::memory::partition::Tile;
use crate::memory::scratch::Scratch;
use crate::scalar::element::Semiring;
use crate::thresholds::matmul::{PANEL_COLUMNS, PANEL_ROWS, PANEL_TERMS};

/// A part of the right side of a product: `terms` rows, copied strip by strip. A strip has `width` adjacent columns, and its rows follow
/// each other in memory.
struct Panel<T> {
    elements: Scratch<T>,
    width: usize,
    terms: usize,
    columns: usize,
}

impl<T: Semiring> Panel<T> {
    /// Copies the first `terms` rows and `columns` columns of `y`, in strips of `width` columns. The last strip is padded with zeros.
    fn new(y: Matrix<T>, terms: usize, columns: usize, width: usize) -> Result<Self, AllocationError> {
        let mut elements = Scratch::new(terms * columns.next_multiple_of(width))?;
        for (number, strip) in elements.chunks_exact_mut(terms * width).enumerate() {
            let first = number * width;
            let count = width.min(columns - first);
            for (l, row) in strip.chunks_exact_mut(width).enumerate() {
                if y.column_stride == 1 {
                    row[..count].copy_from_slice(&y.row(l)[first..][..count]);
                } else {
                    row[..count].iter_mut().enumerate().for_each(|(j, to)| *to = y.at(l, first + j));
                }
                row[count..].fill(T::ZERO);
            }
        }
        Ok(Panel { elements, width, terms, columns })
    }

    /// Returns the strip (a range of copied columns) that begins at column `first`, which must be a multiple of the strip's width.
    fn strip(&self, first: usize) -> Matrix<'_, T> {
        Matrix::row_major(&self.elements, first * self.terms, self.width)
    }
}

/// Computes the product of the first `rows` rows of `left` and a panel (a part of the right side). Calls `visit` with a row, a column, and
/// a slice of results. The slice has the results of this row from this column on.
fn multiply<T: Semiring>(
    kernels: &dyn MicroKernels<T>,
    (left, rows): (Matrix<T>, usize),
    panel: &Panel<T>,
    mut visit: impl FnMut(usize, usize, &[T]),
) {
    let (lanes, mut results) = (kernels.lanes(), [T::ZERO; 256]);
    let mut row = 0;
    while row < rows {
        let mut height = 0;
        for strip in (0..panel.columns).step_by(panel.width) {
            let end = panel.columns.min(strip + panel.width);
            let mut first = strip;
            while first < end {
                let vectors;
                (height, vectors) = kernels.small_tile(rows - row, (end - first).div_ceil(lanes));
                let columns = (vectors * lanes).min(end - first);
                kernels.run(MicroKernel::SmallProduct(SmallProduct {
                    rows: height,
                    vectors,
                    columns,
                    k: panel.terms,
                    x: left.submatrix(row, 0),
                    y: panel.strip(strip).submatrix(0, first - strip),
                    out: &mut results,
                    pitch: columns,
                    add: false,
                }));
                let computed = results.chunks_exact(columns).take(height).enumerate();
                computed.for_each(|(r, results)| visit(row + r, first, results));
                first += columns;
            }
        }
        row += height;
    }
}

/// Computes a product of any size. The order of the additions depends only on the number of terms.
pub(crate) fn multiply_blocked<T: Semiring + HasMicroKernels>(
    Sizes { m, n, k, add }: Sizes,
    x: Matrix<T>,
    y: Matrix<T>,
    mut out: Tile<T>,
) -> Result<(), AllocationError> {
    let kernels = T::kernels();
    let (_, vectors) = kernels.small_tile(usize::MAX, usize::MAX);
    let width = vectors * kernels.lanes();
    let mut copied = Scratch::new(if x.column_stride == 1 { 0 } else { PANEL_ROWS * PANEL_TERMS.min(k) })?;
    for term in (0..k).step_by(PANEL_TERMS) {
        let terms = PANEL_TERMS.min(k - term);
        let is_first_panel = term == 0 && !add;
        for column in (0..n).step_by(PANEL_COLUMNS) {
            let panel = Panel::new(y.submatrix(term, column), terms, PANEL_COLUMNS.min(n - column), width)?;
            for first in (0..m).step_by(PANEL_ROWS) {
                let rows = PANEL_ROWS.min(m - first);
                let left = x.submatrix(first, term);
                let left = if x.column_stride == 1 {
                    left
                } else {
                    for (r, row) in copied.chunks_exact_mut(terms).enumerate().take(rows) {
                        row.iter_mut().enumerate().for_each(|(l, to)| *to = left.at(r, l));
                    }
                    Matrix::row_major(&copied, 0, terms)
                };
                multiply(kernels, (left, rows), &panel, |row, from, results| {
                    let out = &mut out.row(first + row)[column + from..][..results.len()];
                    if is_first_panel {
                        out.copy_from_slice(results);
                    } else {
                        out.iter_mut().zip(results).for_each(|(out, &result)| *out = out.plus(result));
                    }
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the element in row `i` and column `j` of a matrix of small integers, so that all sums are exact.
    fn element(i: usize, j: usize, seed: usize) -> f64 {
        ((i * 7919 + j * 104_729 + seed) % 13) as f64 - 6.0
    }

    /// Checks sizes that fill some panels, strips and tiles only in part, for operands in row-major and column-major order.
    #[test]
    fn every_element_is_the_sum_of_its_terms() {
        for [m, n, k] in [[1, 1, 1], [5, 17, 9], [33, 300, 40], [70, 9, 515], [4, 257, 256], [35, 31, 257]] {
            for turned in [false, true] {
                let order = |rows: usize, columns: usize, seed: usize| -> Vec<f64> {
                    let outer = if turned { columns } else { rows };
                    let inner = rows * columns / outer;
                    let place = |at: usize| if turned { (at % inner, at / inner) } else { (at / inner, at % inner) };
                    (0..rows * columns).map(place).map(|(i, j)| element(i, j, seed)).collect()
                };
                let (left, right) = (order(m, k, 1), order(k, n, 5));
                let matrix = |data, rows, columns| {
                    if turned {
                        Matrix::row_major(data, 0, rows).transposed()
                    } else {
                        Matrix::row_major(data, 0, columns)
                    }
                };
                let (x, y) = (matrix(&left, m, k), matrix(&right, k, n));
                for add in [false, true] {
                    let mut out: Vec<f64> = (0..m * n).map(|at| if add { at as f64 } else { f64::NAN }).collect();
                    multiply_blocked(Sizes { m, n, k, add }, x, y, Tile::whole(&mut out, n)).unwrap();
                    for (at, got) in out.into_iter().enumerate() {
                        let (i, j) = (at / n, at % n);
                        let sum: f64 = (0..k).map(|l| element(i, l, 1) * element(l, j, 5)).sum();
                        assert_eq!(
                            got,
                            sum + if add { at as f64 } else { 0.0 },
                            "{m} {n} {k} {turned} {add}: {i}, {j}"
                        );
                    }
                }
            }
        }
    }
}
