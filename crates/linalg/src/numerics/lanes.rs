//! Small matrices, one in each lane (element) of vector registers. So every instruction works on several matrices of a batch.
//!
//! For each algorithm here, another file has a function that computes a single matrix. Both do the same arithmetic in the same order. So a
//! matrix has the same result in a batch and alone.

use wengert_tensor::Float;

use super::arithmetic::abs;
use super::triangular::TriangularPart;

/// The number of matrices in a group, which are computed together. The elements at one position of 16 matrices fill two AVX-512 registers
/// for f64, or one for f32.
pub(crate) const LANE_COUNT: usize = 16;

/// The largest number of rows of matrices that are computed in lanes, one matrix in each lane of vector registers. A group of f64 matrices
/// of this size takes 32 KiB, the size of a first-level cache.
pub(crate) const MAX_ORDER: usize = 16;

/// The elements at one position of all matrices of a group.
pub(crate) type Lanes<T> = [T; LANE_COUNT];

/// Copies the matrices of `data`, which have `size` elements each, to one lane each. If there are fewer matrices than lanes, the last
/// matrix fills the other lanes.
#[inline(always)]
pub(crate) fn gather<T: Float>(data: &[T], size: usize, lanes: &mut [Lanes<T>]) {
    let count = data.len() / size;
    for lane in 0..LANE_COUNT {
        let matrix = &data[lane.min(count - 1) * size..][..size];
        for (element, &value) in lanes.iter_mut().zip(matrix) {
            element[lane] = value;
        }
    }
}

/// Copies one lane to each matrix of `data`, which has `size` elements.
#[inline(always)]
pub(crate) fn scatter<T: Float>(lanes: &[Lanes<T>], data: &mut [T], size: usize) {
    for (lane, matrix) in data.chunks_exact_mut(size).enumerate() {
        for (value, element) in matrix.iter_mut().zip(lanes) {
            *value = element[lane];
        }
    }
}

/// Returns `f(lane)` for each lane.
#[inline(always)]
fn map_lanes<T: Float>(f: impl Fn(usize) -> T) -> Lanes<T> {
    let mut result = [T::ZERO; LANE_COUNT];
    for (lane, value) in result.iter_mut().enumerate() {
        *value = f(lane);
    }
    result
}

/// Subtracts `factor` times `x` from `y`.
#[inline(always)]
fn subtract_scaled<T: Float>(y: &mut Lanes<T>, factor: &Lanes<T>, x: &Lanes<T>) {
    for lane in 0..LANE_COUNT {
        y[lane] = y[lane] - factor[lane] * x[lane];
    }
}

/// Replaces the lower triangles of the matrices of a group by their Cholesky factors, and the other elements by zeros.
/// Returns, for each matrix, the order of the first leading minor that is not positive, or 0 if there is none.
#[inline(always)]
pub(crate) fn cholesky<T: Float>(a: &mut [Lanes<T>], n: usize) -> [usize; LANE_COUNT] {
    let mut failed_orders = [0; LANE_COUNT];
    for row in 0..n {
        let (before, current) = a.split_at_mut(row * n);
        for column in 0..row {
            let earlier = &before[column * n..][..n];
            let mut remainder = current[column];
            for (x, y) in current[..column].iter().zip(earlier) {
                subtract_scaled(&mut remainder, x, y);
            }
            current[column] = map_lanes(|lane| remainder[lane] / earlier[column][lane]);
        }
        let mut square = current[row];
        for x in &current[..row] {
            subtract_scaled(&mut square, x, x);
        }
        for lane in 0..LANE_COUNT {
            if (square[lane] <= T::ZERO || square[lane].is_nan()) && failed_orders[lane] == 0 {
                failed_orders[lane] = row + 1;
            }
        }
        current[row] = map_lanes(|lane| square[lane].sqrt());
        current[row + 1..n].fill([T::ZERO; LANE_COUNT]);
    }
    failed_orders
}

/// Exchanges two rows of each matrix: the row with index `row`, and the row whose number, counted from 1, is in `pivot`.
#[inline(always)]
fn exchange_rows<T: Float>(a: &mut [Lanes<T>], (rows, width): (usize, usize), row: usize, pivot: &Lanes<T>) {
    for other in row + 1..rows {
        let row_number = T::from_f64((other + 1) as f64);
        let (before, after) = a.split_at_mut(other * width);
        for (x, y) in before[row * width..][..width].iter_mut().zip(after) {
            for lane in 0..LANE_COUNT {
                let (first, second, is_pivot) = (x[lane], y[lane], pivot[lane] == row_number);
                x[lane] = if is_pivot { second } else { first };
                y[lane] = if is_pivot { first } else { second };
            }
        }
    }
}

/// Replaces the square matrices of a group by their factors L and U, and writes the row exchanges to `pivots`. Returns, for each matrix,
/// the number of the first zero on the diagonal of U, counted from 1, or 0 if there is none.
#[inline(always)]
pub(crate) fn lu_factor<T: Float>(a: &mut [Lanes<T>], n: usize, pivots: &mut [Lanes<T>]) -> [usize; LANE_COUNT] {
    let mut zero_pivots = [0; LANE_COUNT];
    for column in 0..n {
        let mut largest = map_lanes(|lane| abs(a[column * n + column][lane]));
        let mut pivot = [T::from_f64((column + 1) as f64); LANE_COUNT];
        for row in column + 1..n {
            let (row_number, element) = (T::from_f64((row + 1) as f64), &a[row * n + column]);
            for lane in 0..LANE_COUNT {
                let candidate = abs(element[lane]);
                let is_larger = candidate > largest[lane];
                pivot[lane] = if is_larger { row_number } else { pivot[lane] };
                largest[lane] = if is_larger { candidate } else { largest[lane] };
            }
        }
        pivots[column] = pivot;
        exchange_rows(a, (n, n), column, &pivot);
        let (before, after) = a.split_at_mut((column + 1) * n);
        let pivot_row = &before[column * n..][..n];
        let diagonal = pivot_row[column];
        for lane in 0..LANE_COUNT {
            if diagonal[lane] == T::ZERO && zero_pivots[lane] == 0 {
                zero_pivots[lane] = column + 1;
            }
        }
        for other in after.chunks_exact_mut(n) {
            let element = other[column];
            // Below a zero pivot, all elements are 0 or NaN. They become factors without a division, so that a NaN spreads in its row.
            let factor =
                map_lanes(
                    |lane| if diagonal[lane] == T::ZERO { element[lane] } else { element[lane] / diagonal[lane] },
                );
            other[column] = factor;
            for (y, x) in other[column + 1..].iter_mut().zip(&pivot_row[column + 1..]) {
                subtract_scaled(y, &factor, x);
            }
        }
    }
    zero_pivots
}

/// Returns the sign of the permutation of rows for each matrix of a group.
#[inline(always)]
pub(crate) fn permutation_signs<T: Float>(pivots: &[Lanes<T>]) -> Lanes<T> {
    let mut permutation_signs = [T::ONE; LANE_COUNT];
    for (row, pivot) in pivots.iter().enumerate() {
        let row_number = T::from_f64((row + 1) as f64);
        for lane in 0..LANE_COUNT {
            permutation_signs[lane] =
                if pivot[lane] == row_number { permutation_signs[lane] } else { -permutation_signs[lane] };
        }
    }
    permutation_signs
}

/// Replaces `b`, which has `n` rows of `width` elements, by the solution X of A X = B, for each matrix A of a group.
#[inline(always)]
pub(crate) fn solve_triangular<T: Float>(
    part: TriangularPart,
    a: &[Lanes<T>],
    b: &mut [Lanes<T>],
    (n, width): (usize, usize),
) {
    for step in 0..n {
        let (row, solved) = part.row((0, n), step);
        let factors = &a[row * n..][..n];
        let (before, rest) = b.split_at_mut(row * width);
        let (current, after) = rest.split_at_mut(width);
        let solved_row =
            |other: usize| if other > row { &after[(other - row - 1) * width..] } else { &before[other * width..] };
        let count = solved.len();
        for step in 0..count {
            // For a single column, `Triangular::solve` subtracts the products with the solved elements in the order of solution. The order
            // here is the same, so that both give the same bits.
            let other = if width == 1 && part.upper { solved.end - 1 - step } else { solved.start + step };
            for (y, x) in current.iter_mut().zip(solved_row(other)) {
                subtract_scaled(y, &factors[other], x);
            }
        }
        if !part.unit_diagonal {
            for x in current {
                *x = map_lanes(|lane| x[lane] / factors[row][lane]);
            }
        }
    }
}

/// Replaces `b`, which has `n` rows of `width` elements, by the solution X of A X = B. `lu` and `pivots` are the factors of A. Does this
/// for each matrix of a group.
#[inline(always)]
pub(crate) fn lu_solve<T: Float>(lu: &[Lanes<T>], pivots: &[Lanes<T>], b: &mut [Lanes<T>], (n, width): (usize, usize)) {
    for (row, pivot) in pivots.iter().enumerate() {
        exchange_rows(b, (n, width), row, pivot);
    }
    solve_triangular(TriangularPart::UNIT_LOWER, lu, b, (n, width));
    solve_triangular(TriangularPart::UPPER, lu, b, (n, width));
}
