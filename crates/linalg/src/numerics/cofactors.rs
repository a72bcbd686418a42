//! The matrix of cofactors, also of singular matrices.

use wengert_macros::precompiled;
use wengert_tensor::{Error, Float};

use super::arithmetic::{abs, smallest_normal};
use super::lu::{lu_factor, lu_solve};

/// Writes the cofactors of the `n` by `n` matrix `a` to `result`, whose elements must be zero. For a nonsingular matrix, they are |A| A⁻ᵀ. If
/// an element of a matrix with two or more rows is NaN, all cofactors are NaN.
///
/// The adjugate of a product is the product of the adjugates in reverse order. With P A Q = L U and complete pivoting, U has zeros only at
/// the end of its diagonal. If there are two or more, all cofactors are zero. If there is one, the adjugate of U has one column that is not
/// zero.
#[precompiled]
pub(crate) fn cofactors<T: Float>(a: &[T], result: &mut [T], n: usize) -> Result<(), Error> {
    if n == 1 {
        result[0] = T::ONE;
        return Ok(());
    }
    let (mut lu, mut pivots) = (a.to_vec(), vec![T::ZERO; n]);
    if lu_factor(&mut lu, (n, n), &mut pivots)?.is_some() {
        // A NaN is never selected as pivot. So a matrix with a NaN may seem to be singular.
        if a.iter().any(|x| x.is_nan()) {
            result.fill(T::NAN);
            return Ok(());
        }
        write_singular_cofactors(a, result, n);
        return Ok(());
    }
    let exchanged = |row: usize| pivots[row].to_f64() as usize != row + 1;
    let determinant = product((0..n).map(|row| if exchanged(row) { -lu[row * n + row] } else { lu[row * n + row] }));
    let mut inverse = vec![T::ZERO; n * n];
    for row in 0..n {
        inverse[row * n + row] = T::ONE;
    }
    lu_solve(&lu, &pivots, &mut inverse, (n, n))?;
    for row in 0..n {
        for column in 0..n {
            result[row * n + column] = determinant * inverse[column * n + row];
        }
    }
    Ok(())
}

/// Returns the product of numbers. If only partial products overflow or underflow, the result is still accurate.
pub(crate) fn product<T: Float>(numbers: impl Iterator<Item = T> + Clone) -> T {
    let plain = numbers.clone().fold(T::ONE, |product, x| product * x);
    let is_regular = plain.is_finite() && abs(plain) >= smallest_normal();
    if is_regular || numbers.clone().any(|x| x == T::ZERO || !x.is_finite()) {
        return plain;
    }
    // Keeps the magnitude of the product between 1 and 2, and sums up the exponents of the powers of two separately.
    let (mut product, mut exponent) = (1.0, 0.0);
    for x in numbers {
        product *= x.to_f64();
        let power = product.abs().log2().floor();
        (product, exponent) = (product / power.exp2(), exponent + power);
    }
    let half = (0.5 * exponent).floor();
    T::from_f64(product * half.exp2() * (exponent - half).exp2())
}

/// Writes the cofactors of a matrix with determinant zero. If its rank is n - 1, they are a multiple of the product y xᵀ, with A x = 0 and
/// Aᵀ y = 0. If its rank is lower, they are zero.
fn write_singular_cofactors<T: Float>(a: &[T], result: &mut [T], n: usize) {
    let mut u = a.to_vec();
    let (mut rows, mut columns): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    let mut product = T::ONE;
    for step in 0..n - 1 {
        let (mut best, mut largest) = ((step, step), T::ZERO);
        for row in step..n {
            for column in step..n {
                let element = u[row * n + column];
                if abs(element) > largest {
                    (best, largest) = ((row, column), abs(element));
                }
            }
        }
        if largest == T::ZERO {
            return;
        }
        for (list, other) in [(&mut rows, best.0), (&mut columns, best.1)] {
            if other != step {
                list.swap(step, other);
                product = -product;
            }
        }
        for column in 0..n {
            u.swap(step * n + column, best.0 * n + column);
        }
        for row in 0..n {
            u.swap(row * n + step, row * n + best.1);
        }
        let pivot = u[step * n + step];
        product = product * pivot;
        for row in step + 1..n {
            let factor = u[row * n + step] / pivot;
            u[row * n + step] = factor;
            for column in step + 1..n {
                u[row * n + column] = u[row * n + column] - factor * u[step * n + column];
            }
        }
    }
    // x solves U x = 0, and y solves Lᵀ y = e, where e is the last unit vector. The last elements of x and y are 1. The last diagonal
    // element of U is zero or a rounding error.
    let (mut x, mut y) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    (x[n - 1], y[n - 1]) = (T::ONE, T::ONE);
    for row in (0..n - 1).rev() {
        let (mut right, mut left) = (T::ZERO, T::ZERO);
        for other in row + 1..n {
            right = right + u[row * n + other] * x[other];
            left = left + u[other * n + row] * y[other];
        }
        x[row] = -right / u[row * n + row];
        y[row] = -left;
    }
    for (row, &left) in rows.iter().zip(&y) {
        for (column, &right) in columns.iter().zip(&x) {
            result[row * n + column] = product * left * right;
        }
    }
}
