//! The Cholesky factor by recursion on halves: Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra
//! algorithms" (1997).

use wengert_tensor::{Error, Float};

use super::differences::{Block, copied_transposed, subtract_product};
use super::triangular::{Coefficients, Triangular};
use crate::simd::vectorized;

/// The largest matrix that is factored without recursion.
const LARGEST_LEAF: usize = 32;

/// The largest matrix that is factored in a short buffer. Each update has the length of the buffer, and the buffer is filled with zeros.
const SMALL_LEAF: usize = 8;

/// Replaces the lower triangle of an `n` by `n` matrix by its Cholesky factor, and the rest by zeros. Returns the order of the first
/// leading minor that is not positive, or `None` if all are positive.
pub(crate) fn cholesky<T: Float>(a: &mut [T], n: usize) -> Result<Option<usize>, Error> {
    let failed = factor(a, n, 0, n)?;
    for row in 0..n {
        a[row * n + row + 1..(row + 1) * n].fill(T::ZERO);
    }
    Ok(failed)
}

/// Factors the square of size `count` on the diagonal that begins at `first`.
fn factor<T: Float>(a: &mut [T], n: usize, first: usize, count: usize) -> Result<Option<usize>, Error> {
    if count <= LARGEST_LEAF {
        return Ok(vectorized(
            #[inline(always)]
            || match count {
                ..=SMALL_LEAF => factor_leaf::<T, SMALL_LEAF>(a, n, first, count),
                _ => factor_leaf::<T, LARGEST_LEAF>(a, n, first, count),
            },
        ));
    }
    let half = count / 2;
    if let Some(order) = factor(a, n, first, half)? {
        return Ok(Some(order));
    }
    solve_right(a, n, (first, half), Block { row: first + half, column: first, rows: count - half, columns: half })?;
    subtract_square(a, n, (first + half, count - half), (first, half))?;
    factor(a, n, first + half, count - half)
}

/// Factors a square of at most `SIZE` rows. The transposed factor is computed row by row, so that each update is a vector operation of fixed
/// length.
#[inline(always)]
fn factor_leaf<T: Float, const SIZE: usize>(a: &mut [T], n: usize, first: usize, count: usize) -> Option<usize> {
    let mut u = [[T::ZERO; SIZE]; SIZE];
    for row in 0..count {
        for (column, u) in u.iter_mut().enumerate().take(row + 1) {
            u[row] = a[(first + row) * n + first + column];
        }
    }
    let mut failed = None;
    for row in 0..count {
        let square = u[row][row];
        if square <= T::ZERO || square.is_nan() {
            failed = Some(first + row + 1);
            break;
        }
        let root = square.sqrt();
        u[row][row] = root;
        for x in &mut u[row][row + 1..count] {
            *x = *x / root;
        }
        let own = u[row];
        for (other, u) in u.iter_mut().enumerate().take(count).skip(row + 1) {
            for (x, &y) in u.iter_mut().zip(&own) {
                *x = *x - own[other] * y;
            }
        }
    }
    for row in 0..count {
        for (column, u) in u.iter().enumerate().take(row + 1) {
            a[(first + row) * n + first + column] = u[row];
        }
    }
    failed
}

/// Replaces the part `b` by the solution X of X Lᵀ = B, where L is the square of size `count` on the diagonal that begins at `first`.
fn solve_right<T: Float>(a: &mut [T], n: usize, (first, count): (usize, usize), b: Block) -> Result<(), Error> {
    if count <= LARGEST_LEAF {
        // X Lᵀ = B if and only if L Xᵀ = Bᵀ. The rows of Bᵀ are long, which suits the vectors.
        let mut across = copied_transposed(a, n, b);
        let l = Triangular { coefficients: Coefficients::LOWER, data: &a[first * n + first..], stride: n };
        l.solve(&mut across, (count, b.rows))?;
        for row in 0..b.rows {
            let to = &mut a[(b.row + row) * n + b.column..][..count];
            for (column, to) in to.iter_mut().enumerate() {
                *to = across[column * b.rows + row];
            }
        }
        return Ok(());
    }
    let half = count / 2;
    let (left, right) = (Block { columns: half, ..b }, Block { column: b.column + half, columns: count - half, ..b });
    solve_right(a, n, (first, half), left)?;
    let below = Block { row: first + half, column: first, rows: count - half, columns: half };
    subtract_product(a, n, right, left, (below, true))?;
    solve_right(a, n, (first + half, count - half), right)
}

/// Subtracts X Xᵀ from the lower triangle of a square on the diagonal. X is the part of the square's rows in the columns `x`.
fn subtract_square<T: Float>(
    a: &mut [T],
    n: usize,
    (first, count): (usize, usize),
    x: (usize, usize),
) -> Result<(), Error> {
    let rows = |row, rows| Block { row, column: x.0, rows, columns: x.1 };
    if count <= 2 * LARGEST_LEAF {
        let square = Block { row: first, column: first, rows: count, columns: count };
        return subtract_product(a, n, square, rows(first, count), (rows(first, count), true));
    }
    let half = count / 2;
    subtract_square(a, n, (first, half), x)?;
    let corner = Block { row: first + half, column: first, rows: count - half, columns: half };
    subtract_product(a, n, corner, rows(first + half, count - half), (rows(first, half), true))?;
    subtract_square(a, n, (first + half, count - half), x)
}
