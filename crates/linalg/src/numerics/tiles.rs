//! The inner loop of all eliminations: computes C - Pᵀ B for matrices P and B of at most [`DEPTH`] rows, tile by tile in registers.
//!
//! The products are subtracted from each element of C in the order of the rows of P and B. So a blocked elimination has the same bits as
//! the plain loops.

use wengert_tensor::Float;

/// The maximum number of rows of P and B in the difference C - Pᵀ B. With more rows, C is loaded and stored less often. But P and B come from
/// slower loops, which then have more work. Measured at sizes of 32 to 512 with AVX2.
pub(crate) const DEPTH: usize = 16;

/// The number of rows of C in a tile. 4 rows of 64 bytes are 8 vectors with AVX2, so the sums and their factors fit 16 registers.
const TILE_ROWS: usize = 4;

/// Rows of elements that start `stride` elements apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) stride: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Returns `count` elements of a row, beginning with element `first`.
    #[inline(always)]
    pub(crate) fn part(self, row: usize, first: usize, count: usize) -> &'a [T] {
        &self.data[row * self.stride + first..][..count]
    }
}

/// Returns the first `N` elements of a slice as an array, so that the compiler keeps them in registers.
#[inline(always)]
pub(crate) fn first_elements<T: Float, const N: usize>(x: &[T]) -> [T; N] {
    let mut copy = [T::ZERO; N];
    copy.copy_from_slice(&x[..N]);
    copy
}

/// Writes the transpose of a matrix of `rows` rows and `columns` columns to `to`. The rows of the transpose begin `stride` elements apart.
#[inline(always)]
pub(crate) fn copy_transposed<T: Float>(from: Rows<T>, (rows, columns): (usize, usize), to: &mut [T], stride: usize) {
    /// The size of the squares that are transposed without a check of each index.
    const SQUARE: usize = 8;
    for row in (0..rows).step_by(SQUARE) {
        let height = SQUARE.min(rows - row);
        for column in (0..columns).step_by(SQUARE) {
            let width = SQUARE.min(columns - column);
            if height < SQUARE || width < SQUARE {
                for row in row..row + height {
                    for (column, &x) in (column..).zip(from.part(row, column, width)) {
                        to[column * stride + row] = x;
                    }
                }
                continue;
            }
            let mut square = [[T::ZERO; SQUARE]; SQUARE];
            for (i, line) in square.iter_mut().enumerate() {
                *line = first_elements(from.part(row + i, column, SQUARE));
            }
            for j in 0..SQUARE {
                let mut column_elements = [T::ZERO; SQUARE];
                for (x, line) in column_elements.iter_mut().zip(&square) {
                    *x = line[j];
                }
                to[(column + j) * stride + row..][..SQUARE].copy_from_slice(&column_elements);
            }
        }
    }
}

/// Subtracts Pᵀ B from C. `size` has the numbers of rows and columns of C. The rows of C begin `stride` elements apart. P and B have `depth`
/// rows.
#[inline(always)]
pub(crate) fn subtract_outer<T: Float>(
    c: &mut [T],
    stride: usize,
    size: (usize, usize),
    p: Rows<T>,
    b: Rows<T>,
    depth: usize,
) {
    match size_of::<T>() {
        8 => subtract_tiles::<T, 8>(c, stride, size, p, b, depth),
        _ => subtract_tiles::<T, 16>(c, stride, size, p, b, depth),
    }
}

/// Does the same as [`subtract_outer`], by tiles of `COLUMNS` columns.
#[inline(always)]
fn subtract_tiles<T: Float, const COLUMNS: usize>(
    c: &mut [T],
    stride: usize,
    (rows, columns): (usize, usize),
    p: Rows<T>,
    b: Rows<T>,
    depth: usize,
) {
    let mut packed = [[T::ZERO; COLUMNS]; DEPTH];
    let packed = &mut packed[..depth];
    for column in (0..columns).step_by(COLUMNS) {
        let width = COLUMNS.min(columns - column);
        for (row, packed) in packed.iter_mut().enumerate() {
            if width == COLUMNS {
                *packed = first_elements(b.part(row, column, COLUMNS));
            } else {
                copy_short(b.part(row, column, width), packed);
            }
        }
        let mut row = 0;
        while row + TILE_ROWS <= rows {
            subtract_tile::<T, TILE_ROWS, COLUMNS>(&mut c[row * stride + column..], stride, width, (p, row), packed);
            row += TILE_ROWS;
        }
        for row in row..rows {
            subtract_tile::<T, 1, COLUMNS>(&mut c[row * stride + column..], stride, width, (p, row), packed);
        }
    }
}

/// Copies the elements of `from` to the beginning of `to`, up to the end of the shorter slice. For short slices, this loop is faster than
/// `copy_from_slice`.
#[inline(always)]
pub(crate) fn copy_short<T: Float>(from: &[T], to: &mut [T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from;
    }
}

/// Subtracts a product from `ROWS` rows and `width` columns of C: the columns `first..first + ROWS` of P, transposed, times the rows of
/// `b`.
#[inline(always)]
fn subtract_tile<T: Float, const ROWS: usize, const COLUMNS: usize>(
    c: &mut [T],
    stride: usize,
    width: usize,
    p: (Rows<T>, usize),
    b: &[[T; COLUMNS]],
) {
    if width == COLUMNS {
        return subtract_whole_tile::<T, ROWS, COLUMNS>(c, stride, p, b);
    }
    // If `b` has more columns than C, the additional columns are zeros or columns of an earlier tile. Their results are not used.
    let mut tile = [[T::ZERO; COLUMNS]; ROWS];
    for (row, tile) in tile.iter_mut().enumerate() {
        copy_short(&c[row * stride..][..width], tile);
    }
    subtract_whole_tile::<T, ROWS, COLUMNS>(tile.as_flattened_mut(), COLUMNS, p, b);
    for (row, tile) in tile.iter().enumerate() {
        copy_short(tile, &mut c[row * stride..][..width]);
    }
}

/// Does the same as [`subtract_tile`], for a tile with all `COLUMNS` columns. Its sums stay in registers.
#[inline(always)]
fn subtract_whole_tile<T: Float, const ROWS: usize, const COLUMNS: usize>(
    c: &mut [T],
    stride: usize,
    (p, first): (Rows<T>, usize),
    b: &[[T; COLUMNS]],
) {
    let mut sums = [[T::ZERO; COLUMNS]; ROWS];
    for (row, sums) in sums.iter_mut().enumerate() {
        *sums = first_elements(&c[row * stride..]);
    }
    for (k, b) in b.iter().enumerate() {
        let factors: [T; ROWS] = first_elements(p.part(k, first, ROWS));
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum = *sum - factor * b;
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        c[row * stride..][..COLUMNS].copy_from_slice(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_equal_the_plain_loops() {
        let numbers = |count: usize, factor: f64| (0..count).map(|i| (i as f64 * factor).sin()).collect::<Vec<f64>>();
        for (rows, columns, depth) in [(1, 1, 1), (4, 8, 16), (5, 9, 3), (23, 37, 16), (8, 3, 7)] {
            let (stride, mut c) = (columns + 2, numbers(rows * (columns + 2), 0.7));
            let (p, b) = (numbers(depth * (rows + 1), 1.3), numbers(depth * columns, 2.1));
            let mut expected = c.clone();
            for row in 0..rows {
                for column in 0..columns {
                    for k in 0..depth {
                        expected[row * stride + column] -= p[k * (rows + 1) + row] * b[k * columns + column];
                    }
                }
            }
            let (p, b) = (Rows { data: &p, stride: rows + 1 }, Rows { data: &b, stride: columns });
            subtract_outer(&mut c, stride, (rows, columns), p, b, depth);
            assert_eq!(c, expected, "{rows} {columns} {depth}");
        }
    }

    #[test]
    fn transposes_of_every_size() {
        for (rows, columns) in [(0, 3), (1, 1), (8, 8), (7, 9), (16, 8), (23, 17), (8, 5)] {
            let from: Vec<f64> = (0..rows * (columns + 3)).map(|i| i as f64).collect();
            let stride = rows + 2;
            let mut to = vec![-1.0; columns * stride];
            copy_transposed(Rows { data: &from, stride: columns + 3 }, (rows, columns), &mut to, stride);
            for column in 0..columns {
                for row in 0..stride {
                    let expected = if row < rows { from[row * (columns + 3) + column] } else { -1.0 };
                    assert_eq!(to[column * stride + row], expected, "{rows} {columns}");
                }
            }
        }
    }
}
