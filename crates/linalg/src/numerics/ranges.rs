//! The work on a range (a part) of the matrices of a batch. Small matrices are computed together, one in each lane of vector registers.
//! Each larger matrix is computed alone.

use wengert_macros::precompiled;
use wengert_tensor::{Error, Float};

use super::arithmetic::with_scratch;
use super::failure::RangeFailure;
use super::lanes::{self, LANE_COUNT, Lanes, MAX_ORDER};
use super::triangular::{Triangular, TriangularPart};
use super::{cholesky, lu};
use crate::simd::vectorized;

/// The minimum number of matrices in a range that are computed together, one in each vector lane. In a shorter range, each matrix is
/// computed alone.
const MIN_LANE_MATRICES: usize = 4;

/// Returns true if `count` matrices with at most `n` rows and columns are computed together, one in each vector lane.
fn uses_lanes(n: usize, count: usize) -> bool {
    n <= MAX_ORDER && count >= MIN_LANE_MATRICES
}

/// Returns zeros for the `size` elements of each matrix of a group.
fn lane_buffer<T: Float>(size: usize) -> Vec<Lanes<T>> {
    vec![[T::ZERO; LANE_COUNT]; size]
}

/// Returns the first failure of a group of matrices. `orders` has the `order` of each matrix's [`RangeFailure::Pivot`], or 0 if it has not
/// failed. `first_matrix` is the index of the first matrix in the batch.
fn first_failure(orders: &[usize], first_matrix: usize) -> Result<(), RangeFailure> {
    match orders.iter().position(|&order| order > 0) {
        Some(lane) => Err(RangeFailure::Pivot { matrix: first_matrix + lane, order: orders[lane] }),
        None => Ok(()),
    }
}

/// Replaces each matrix of a range by its Cholesky factor. Returns an error if a matrix is not positive-definite. `first_matrix` is the
/// index of the range's first matrix in the batch.
#[precompiled]
pub(crate) fn cholesky_all<T: Float>(data: &mut [T], n: usize, first_matrix: usize) -> Result<(), RangeFailure> {
    let size = n * n;
    if !uses_lanes(n, data.len() / size) {
        for (matrix, a) in (first_matrix..).zip(data.chunks_exact_mut(size)) {
            if let Some(order) = cholesky::cholesky(a, n)? {
                return Err(RangeFailure::Pivot { matrix, order });
            }
        }
        return Ok(());
    }
    let mut group_lanes = lane_buffer(size);
    vectorized(
        #[inline(always)]
        || {
            for (group, data) in data.chunks_mut(size * LANE_COUNT).enumerate() {
                lanes::gather(data, size, &mut group_lanes);
                let failed_orders = lanes::cholesky(&mut group_lanes, n);
                lanes::scatter(&group_lanes, data, size);
                first_failure(&failed_orders[..data.len() / size], first_matrix + group * LANE_COUNT)?;
            }
            Ok(())
        },
    )
}

/// Replaces each matrix of a range by its factors L and U, and writes the row exchanges to `pivots`. `first_matrix` is the index of the range's
/// first matrix in the batch. If `refuse_singular` is true, returns an error for a zero on the diagonal of U.
#[precompiled]
pub(crate) fn lu_factor_all<T: Float>(
    data: &mut [T],
    sizes: (usize, usize),
    pivots: &mut [T],
    options: (usize, bool),
) -> Result<(), RangeFailure> {
    let ((rows, columns), (first_matrix, refuse_singular)) = (sizes, options);
    let size = rows * columns;
    if rows == columns && uses_lanes(rows, data.len() / size) {
        let (mut a, mut p) = (lane_buffer(size), lane_buffer(rows));
        return vectorized(
            #[inline(always)]
            || {
                let groups = data.chunks_mut(size * LANE_COUNT).zip(pivots.chunks_mut(rows * LANE_COUNT));
                for (group, (data, pivots)) in groups.enumerate() {
                    lanes::gather(data, size, &mut a);
                    let zero_pivots = lanes::lu_factor(&mut a, rows, &mut p);
                    lanes::scatter(&a, data, size);
                    lanes::scatter(&p, pivots, rows);
                    if refuse_singular {
                        first_failure(&zero_pivots[..data.len() / size], first_matrix + group * LANE_COUNT)?;
                    }
                }
                Ok(())
            },
        );
    }
    let parts = data.chunks_exact_mut(size).zip(pivots.chunks_exact_mut(rows.min(columns)));
    for (matrix, (a, pivots)) in (first_matrix..).zip(parts) {
        if let Some(order) = lu::lu_factor(a, (rows, columns), pivots)?
            && refuse_singular
        {
            return Err(RangeFailure::Pivot { matrix, order });
        }
    }
    Ok(())
}

/// Writes the inverses of the matrices in `a` to `inverses`. `first_matrix` is the index of the first of these matrices in the batch. If
/// `refuse_singular` is true, returns an error for a singular matrix.
#[precompiled]
pub(crate) fn invert_all<T: Float>(
    a: &[T],
    inverses: &mut [T],
    n: usize,
    options: (usize, bool),
) -> Result<(), RangeFailure> {
    let (first_matrix, refuse_singular) = options;
    let size = n * n;
    if uses_lanes(n, a.len() / size) {
        let (mut lu, mut x, mut pivots) = (lane_buffer(size), lane_buffer(size), lane_buffer(n));
        return vectorized(
            #[inline(always)]
            || {
                let groups = a.chunks(size * LANE_COUNT).zip(inverses.chunks_mut(size * LANE_COUNT));
                for (group, (a, inverses)) in groups.enumerate() {
                    lanes::gather(a, size, &mut lu);
                    let zero_pivots = lanes::lu_factor(&mut lu, n, &mut pivots);
                    if refuse_singular {
                        first_failure(&zero_pivots[..a.len() / size], first_matrix + group * LANE_COUNT)?;
                    }
                    x.fill([T::ZERO; LANE_COUNT]);
                    for row in 0..n {
                        x[row * n + row] = [T::ONE; LANE_COUNT];
                    }
                    lanes::lu_solve(&lu, &pivots, &mut x, (n, n));
                    lanes::scatter(&x, inverses, size);
                }
                Ok(())
            },
        );
    }
    inverses.fill(T::ZERO);
    for row in 0..inverses.len() / n {
        inverses[row * n + row % n] = T::ONE;
    }
    solve_each(a, inverses, (n, n), (first_matrix, refuse_singular))
}

/// Replaces each matrix B in `b` (`n` rows of `width` elements) by the solution X of A X = B. `first_matrix` is the index of the first of these
/// matrices in the batch. Returns an error if a matrix A is singular.
#[precompiled]
pub(crate) fn solve_all<T: Float>(
    a: &[T],
    b: &mut [T],
    sizes: (usize, usize),
    first_matrix: usize,
) -> Result<(), RangeFailure> {
    let (n, width) = sizes;
    let size = n * n;
    if !uses_lanes(n.max(width), a.len() / size) {
        return solve_each(a, b, (n, width), (first_matrix, true));
    }
    let (mut lu, mut pivots, mut x) = (lane_buffer(size), lane_buffer(n), lane_buffer(n * width));
    vectorized(
        #[inline(always)]
        || {
            let group_len = (n * width * LANE_COUNT).max(1);
            for (group, a) in a.chunks(size * LANE_COUNT).enumerate() {
                lanes::gather(a, size, &mut lu);
                let zero_pivots = lanes::lu_factor(&mut lu, n, &mut pivots);
                first_failure(&zero_pivots[..a.len() / size], first_matrix + group * LANE_COUNT)?;
                let Some(b) = b.chunks_mut(group_len).nth(group) else { continue };
                lanes::gather(b, n * width, &mut x);
                lanes::lu_solve(&lu, &pivots, &mut x, (n, width));
                lanes::scatter(&x, b, n * width);
            }
            Ok(())
        },
    )
}

/// Replaces each matrix B in `b` by the solution X of A X = B, one after the other. If `refuse_singular` is true, returns an error for a
/// singular matrix A.
fn solve_each<T: Float>(
    a: &[T],
    b: &mut [T],
    (n, width): (usize, usize),
    (first_matrix, refuse_singular): (usize, bool),
) -> Result<(), RangeFailure> {
    let size = n * n;
    let mut solve_range = |scratch: &mut [T]| {
        let (lu, pivots) = scratch.split_at_mut(size);
        for (index, a) in a.chunks_exact(size).enumerate() {
            lu.copy_from_slice(a);
            if let Some(order) = lu::lu_factor(lu, (n, n), pivots)?
                && refuse_singular
            {
                return Err(RangeFailure::Pivot { matrix: first_matrix + index, order });
            }
            lu::lu_solve(lu, pivots, &mut b[index * n * width..][..n * width], (n, width))?;
        }
        Ok(())
    };
    with_scratch(size + n, &mut solve_range)
}

/// Factors `count` matrices of a range. Calls `visit` with the index of a matrix, the diagonal of its factor U, and the sign of its row
/// exchanges.
#[precompiled]
pub(crate) fn lu_diagonals_all<T: Float>(
    a: &[T],
    count: usize,
    n: usize,
    visit: &mut dyn FnMut(usize, &[T], T),
) -> Result<(), RangeFailure> {
    let size = n * n;
    if n == 0 {
        (0..count).for_each(|matrix| visit(matrix, &[], T::ONE));
        return Ok(());
    }
    if uses_lanes(n, count) {
        let (mut lu, mut pivots, mut diagonal) = (lane_buffer(size), lane_buffer(n), [T::ZERO; MAX_ORDER]);
        vectorized(
            #[inline(always)]
            || {
                for (group, a) in a.chunks(size * LANE_COUNT).enumerate() {
                    lanes::gather(a, size, &mut lu);
                    lanes::lu_factor(&mut lu, n, &mut pivots);
                    let permutation_signs = lanes::permutation_signs(&pivots);
                    for (lane, &sign) in permutation_signs.iter().enumerate().take(a.len() / size) {
                        for (row, x) in diagonal.iter_mut().enumerate().take(n) {
                            *x = lu[row * n + row][lane];
                        }
                        visit(group * LANE_COUNT + lane, &diagonal[..n], sign);
                    }
                }
            },
        );
        return Ok(());
    }
    with_scratch(size + 2 * n, &mut |scratch: &mut [T]| {
        let (lu, rest) = scratch.split_at_mut(size);
        let (pivots, diagonal) = rest.split_at_mut(n);
        for (matrix, a) in a.chunks(size).enumerate() {
            lu.copy_from_slice(a);
            lu::lu_factor(lu, (n, n), pivots)?;
            let mut sign = T::ONE;
            for row in 0..n {
                diagonal[row] = lu[row * n + row];
                sign = if pivots[row].to_f64() as usize == row + 1 { sign } else { -sign };
            }
            visit(matrix, diagonal, sign);
        }
        Ok(())
    })
}

/// Replaces each matrix B in `b` (`n` rows of `width` elements) by the solution X of A X = B. `a` has the triangular matrices A, one for each
/// B.
#[precompiled]
pub(crate) fn solve_triangular_all<T: Float>(
    part: TriangularPart,
    a: &[T],
    b: &mut [T],
    sizes: (usize, usize),
) -> Result<(), Error> {
    let (n, width) = sizes;
    let size = n * n;
    if uses_lanes(n.max(width), b.len() / (n * width)) {
        let (mut matrices, mut x) = (lane_buffer(size), lane_buffer(n * width));
        vectorized(
            #[inline(always)]
            || {
                for (a, b) in a.chunks(size * LANE_COUNT).zip(b.chunks_mut(n * width * LANE_COUNT)) {
                    lanes::gather(a, size, &mut matrices);
                    lanes::gather(b, n * width, &mut x);
                    lanes::solve_triangular(part, &matrices, &mut x, (n, width));
                    lanes::scatter(&x, b, n * width);
                }
            },
        );
        return Ok(());
    }
    for (a, b) in a.chunks_exact(size).zip(b.chunks_exact_mut(n * width)) {
        Triangular { part, data: a, stride: n }.solve(b, (n, width))?;
    }
    Ok(())
}

/// Replaces each matrix B `[n, width]` in `b` by the solution X of A X = B. `lu` and `pivots` are the factors of the matrices A, one for each
/// B.
#[precompiled]
pub(crate) fn lu_solve_all<T: Float>(lu: &[T], pivots: &[T], b: &mut [T], sizes: (usize, usize)) -> Result<(), Error> {
    let (n, width) = sizes;
    let size = n * n;
    if uses_lanes(n.max(width), b.len() / (n * width)) {
        let (mut matrices, mut p, mut x) = (lane_buffer(size), lane_buffer(n), lane_buffer(n * width));
        vectorized(
            #[inline(always)]
            || {
                let factors = lu.chunks(size * LANE_COUNT).zip(pivots.chunks(n * LANE_COUNT));
                for ((lu, pivots), b) in factors.zip(b.chunks_mut(n * width * LANE_COUNT)) {
                    lanes::gather(lu, size, &mut matrices);
                    lanes::gather(pivots, n, &mut p);
                    lanes::gather(b, n * width, &mut x);
                    lanes::lu_solve(&matrices, &p, &mut x, (n, width));
                    lanes::scatter(&x, b, n * width);
                }
            },
        );
        return Ok(());
    }
    let factors = lu.chunks_exact(size).zip(pivots.chunks_exact(n));
    for ((lu, pivots), b) in factors.zip(b.chunks_exact_mut(n * width)) {
        lu::lu_solve(lu, pivots, b, (n, width))?;
    }
    Ok(())
}
