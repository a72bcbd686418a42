//! The work on a range (a part) of the matrices of a batch. Small matrices are computed together, one in each lane of vector registers.
//! Each larger matrix is computed alone.

use wengert_tensor::{Error, Float};

use super::arithmetic::with_scratch;
use super::failure::RangeFailure;
use super::lanes::{self, LARGEST, Lanes, WIDTH};
use super::triangular::{Coefficients, Triangular};
use super::{cholesky, lu};
use crate::simd::vectorized;

/// The minimum number of matrices in a range that are computed together, one in each vector lane. In a shorter range, each matrix is
/// computed alone.
const LEAST_COUNT: usize = 4;

/// Returns true if `count` matrices with at most `n` rows and columns are computed together, one in each vector lane.
fn in_lanes(n: usize, count: usize) -> bool {
    n <= LARGEST && count >= LEAST_COUNT
}

fn buffer<T: Float>(size: usize) -> Vec<Lanes<T>> {
    vec![[T::ZERO; WIDTH]; size]
}

/// Returns the first failure of a group of matrices. `orders` has the `order` of each matrix's [`RangeFailure::Pivot`], or 0 if it has not
/// failed. `first` is the index of the first matrix in the batch.
fn first_failure(orders: &[usize], first: usize) -> Result<(), RangeFailure> {
    match orders.iter().position(|&order| order > 0) {
        Some(lane) => Err(RangeFailure::Pivot { matrix: first + lane, order: orders[lane] }),
        None => Ok(()),
    }
}

/// Replaces each matrix of a range by its Cholesky factor. Returns an error if a matrix is not positive-definite. `first` is the index of the
/// range's first matrix in the batch.
pub(crate) fn cholesky_all<T: Float>(data: &mut [T], n: usize, first: usize) -> Result<(), RangeFailure> {
    let size = n * n;
    if !in_lanes(n, data.len() / size) {
        for (matrix, a) in (first..).zip(data.chunks_exact_mut(size)) {
            if let Some(order) = cholesky::cholesky(a, n)? {
                return Err(RangeFailure::Pivot { matrix, order });
            }
        }
        return Ok(());
    }
    let mut a = buffer(size);
    vectorized(
        #[inline(always)]
        || {
            for (group, data) in data.chunks_mut(size * WIDTH).enumerate() {
                lanes::gather(data, size, &mut a);
                let failed = lanes::cholesky(&mut a, n);
                lanes::scatter(&a, data, size);
                first_failure(&failed[..data.len() / size], first + group * WIDTH)?;
            }
            Ok(())
        },
    )
}

/// Replaces each matrix of a range by its factors L and U, and writes the row exchanges to `pivots`. `first` is the index of the range's
/// first matrix in the batch. If `refuse` is true, returns an error for a zero on the diagonal of U.
pub(crate) fn factor_all<T: Float>(
    data: &mut [T],
    (rows, columns): (usize, usize),
    pivots: &mut [T],
    (first, refuse): (usize, bool),
) -> Result<(), RangeFailure> {
    let size = rows * columns;
    if rows == columns && in_lanes(rows, data.len() / size) {
        let (mut a, mut p) = (buffer(size), buffer(rows));
        return vectorized(
            #[inline(always)]
            || {
                let groups = data.chunks_mut(size * WIDTH).zip(pivots.chunks_mut(rows * WIDTH));
                for (group, (data, pivots)) in groups.enumerate() {
                    lanes::gather(data, size, &mut a);
                    let zeros = lanes::factor(&mut a, rows, &mut p);
                    lanes::scatter(&a, data, size);
                    lanes::scatter(&p, pivots, rows);
                    if refuse {
                        first_failure(&zeros[..data.len() / size], first + group * WIDTH)?;
                    }
                }
                Ok(())
            },
        );
    }
    let parts = data.chunks_exact_mut(size).zip(pivots.chunks_exact_mut(rows.min(columns)));
    for (matrix, (a, pivots)) in (first..).zip(parts) {
        if let Some(order) = lu::factor(a, (rows, columns), pivots)?
            && refuse
        {
            return Err(RangeFailure::Pivot { matrix, order });
        }
    }
    Ok(())
}

/// Writes the inverses of the matrices in `a` to `inverses`. `first` is the index of the first of these matrices in the batch. If `refuse` is
/// true, returns an error for a singular matrix.
pub(crate) fn invert_all<T: Float>(
    a: &[T],
    inverses: &mut [T],
    n: usize,
    (first, refuse): (usize, bool),
) -> Result<(), RangeFailure> {
    let size = n * n;
    if in_lanes(n, a.len() / size) {
        let (mut lu, mut x, mut pivots) = (buffer(size), buffer(size), buffer(n));
        return vectorized(
            #[inline(always)]
            || {
                let groups = a.chunks(size * WIDTH).zip(inverses.chunks_mut(size * WIDTH));
                for (group, (a, inverses)) in groups.enumerate() {
                    lanes::gather(a, size, &mut lu);
                    let zeros = lanes::factor(&mut lu, n, &mut pivots);
                    if refuse {
                        first_failure(&zeros[..a.len() / size], first + group * WIDTH)?;
                    }
                    x.fill([T::ZERO; WIDTH]);
                    for row in 0..n {
                        x[row * n + row] = [T::ONE; WIDTH];
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
    solve_each(a, inverses, (n, n), (first, refuse))
}

/// Replaces each matrix B in `b` (`n` rows of `width` elements) by the solution X of A X = B. `first` is the index of the first of these
/// matrices in the batch. Returns an error if a matrix A is singular.
pub(crate) fn solve_all<T: Float>(
    a: &[T],
    b: &mut [T],
    (n, width): (usize, usize),
    first: usize,
) -> Result<(), RangeFailure> {
    let size = n * n;
    if !in_lanes(n.max(width), a.len() / size) {
        return solve_each(a, b, (n, width), (first, true));
    }
    let (mut lu, mut pivots, mut x) = (buffer(size), buffer(n), buffer(n * width));
    vectorized(
        #[inline(always)]
        || {
            let chunks = (n * width * WIDTH).max(1);
            for (group, a) in a.chunks(size * WIDTH).enumerate() {
                lanes::gather(a, size, &mut lu);
                let zeros = lanes::factor(&mut lu, n, &mut pivots);
                first_failure(&zeros[..a.len() / size], first + group * WIDTH)?;
                let Some(b) = b.chunks_mut(chunks).nth(group) else { continue };
                lanes::gather(b, n * width, &mut x);
                lanes::lu_solve(&lu, &pivots, &mut x, (n, width));
                lanes::scatter(&x, b, n * width);
            }
            Ok(())
        },
    )
}

/// Replaces each matrix B in `b` by the solution X of A X = B, one after the other. If `refuse` is true, returns an error for a singular
/// matrix A.
fn solve_each<T: Float>(
    a: &[T],
    b: &mut [T],
    (n, width): (usize, usize),
    (first, refuse): (usize, bool),
) -> Result<(), RangeFailure> {
    let size = n * n;
    let mut range = |scratch: &mut [T]| {
        let (lu, pivots) = scratch.split_at_mut(size);
        for (index, a) in a.chunks_exact(size).enumerate() {
            lu.copy_from_slice(a);
            if let Some(order) = lu::factor(lu, (n, n), pivots)?
                && refuse
            {
                return Err(RangeFailure::Pivot { matrix: first + index, order });
            }
            lu::lu_solve(lu, pivots, &mut b[index * n * width..][..n * width], (n, width))?;
        }
        Ok(())
    };
    with_scratch(size + n, &mut range)
}

/// Factors `count` matrices of a range. Calls `each` with the index of a matrix, the diagonal of its factor U, and the sign of its row
/// exchanges.
pub(crate) fn diagonals_all<T: Float>(
    a: &[T],
    count: usize,
    n: usize,
    mut each: impl FnMut(usize, &[T], T),
) -> Result<(), RangeFailure> {
    let size = n * n;
    if n == 0 {
        (0..count).for_each(|matrix| each(matrix, &[], T::ONE));
        return Ok(());
    }
    if in_lanes(n, count) {
        let (mut lu, mut pivots, mut diagonal) = (buffer(size), buffer(n), [T::ZERO; LARGEST]);
        vectorized(
            #[inline(always)]
            || {
                for (group, a) in a.chunks(size * WIDTH).enumerate() {
                    lanes::gather(a, size, &mut lu);
                    lanes::factor(&mut lu, n, &mut pivots);
                    let signs = lanes::signs(&pivots);
                    for (lane, &sign) in signs.iter().enumerate().take(a.len() / size) {
                        for (row, x) in diagonal.iter_mut().enumerate().take(n) {
                            *x = lu[row * n + row][lane];
                        }
                        each(group * WIDTH + lane, &diagonal[..n], sign);
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
            lu::factor(lu, (n, n), pivots)?;
            let mut sign = T::ONE;
            for row in 0..n {
                diagonal[row] = lu[row * n + row];
                sign = if pivots[row].to_f64() as usize == row + 1 { sign } else { -sign };
            }
            each(matrix, diagonal, sign);
        }
        Ok(())
    })
}

/// Replaces each matrix B in `b` (`n` rows of `width` elements) by the solution X of A X = B. `a` has the triangular matrices A, one for each
/// B.
pub(crate) fn solve_triangular_all<T: Float>(
    coefficients: Coefficients,
    a: &[T],
    b: &mut [T],
    (n, width): (usize, usize),
) -> Result<(), Error> {
    let size = n * n;
    if in_lanes(n.max(width), b.len() / (n * width)) {
        let (mut matrices, mut x) = (buffer(size), buffer(n * width));
        vectorized(
            #[inline(always)]
            || {
                for (a, b) in a.chunks(size * WIDTH).zip(b.chunks_mut(n * width * WIDTH)) {
                    lanes::gather(a, size, &mut matrices);
                    lanes::gather(b, n * width, &mut x);
                    lanes::solve_triangular(coefficients, &matrices, &mut x, (n, width));
                    lanes::scatter(&x, b, n * width);
                }
            },
        );
        return Ok(());
    }
    for (a, b) in a.chunks_exact(size).zip(b.chunks_exact_mut(n * width)) {
        Triangular { coefficients, data: a, stride: n }.solve(b, (n, width))?;
    }
    Ok(())
}

/// Replaces each matrix B `[n, width]` in `b` by the solution X of A X = B. `lu` and `pivots` are the factors of the matrices A, one for each
/// B.
pub(crate) fn lu_solve_all<T: Float>(
    lu: &[T],
    pivots: &[T],
    b: &mut [T],
    (n, width): (usize, usize),
) -> Result<(), Error> {
    let size = n * n;
    if in_lanes(n.max(width), b.len() / (n * width)) {
        let (mut matrices, mut p, mut x) = (buffer(size), buffer(n), buffer(n * width));
        vectorized(
            #[inline(always)]
            || {
                let factors = lu.chunks(size * WIDTH).zip(pivots.chunks(n * WIDTH));
                for ((lu, pivots), b) in factors.zip(b.chunks_mut(n * width * WIDTH)) {
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
