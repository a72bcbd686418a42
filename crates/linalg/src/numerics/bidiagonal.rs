//! Matrices made bidiagonal by Householder reflections (Golub and Van Loan, "Matrix Computations", section 5.4).

use wengert_tensor::Float;

use super::arithmetic::{add_scaled, dot, zeros};
use super::failure::Failure;
use super::reflectors::{Reflectors, reflector};
use crate::simd::vectorized;

/// An upper bidiagonal matrix B with A = U B Vᵀ.
pub(crate) struct Bidiagonal<T> {
    pub(crate) diagonal: Vec<T>,
    /// The elements above the diagonal. There is one less than on the diagonal.
    pub(crate) above: Vec<T>,
    /// The reflections with the product U.
    pub(crate) left: Reflectors<T>,
    /// The reflections with the product V.
    pub(crate) right: Reflectors<T>,
}

/// Makes a matrix `[rows, columns]` bidiagonal. It has at least as many rows as columns, and is overwritten.
pub(crate) fn bidiagonal<T: Float>(a: &mut [T], rows: usize, columns: usize) -> Result<Bidiagonal<T>, Failure> {
    let above = columns.saturating_sub(1);
    let mut out = Bidiagonal {
        diagonal: zeros(columns, 1)?,
        above: zeros(above, 1)?,
        left: Reflectors::new(rows, columns)?,
        right: Reflectors::new(columns, above)?,
    };
    vectorized(
        #[inline(always)]
        || reduce(a, rows, columns, &mut out),
    );
    Ok(out)
}

/// Makes the matrix bidiagonal.
///
/// A step with the vectors u and v changes the remaining matrix by -u wᵀ - y vᵀ. The next step makes this change and computes its own w in a
/// single pass over the matrix. A second pass computes its y.
#[inline(always)]
fn reduce<T: Float>(a: &mut [T], rows: usize, columns: usize, out: &mut Bidiagonal<T>) {
    let mut long = vec![T::ZERO; 3 * rows];
    let (u, rest) = long.split_at_mut(rows);
    let (y, next) = rest.split_at_mut(rows);
    let mut short = vec![T::ZERO; 3 * columns];
    let (w, rest) = short.split_at_mut(columns);
    let (v, sums) = rest.split_at_mut(columns);
    for k in 0..columns {
        for (i, row) in a.chunks_exact(columns).enumerate().skip(k) {
            next[i] = row[k] - (u[i] * w[k] + y[i] * v[k]);
        }
        let (factor, image) = reflector(&mut next[k..], 0);
        out.diagonal[k] = image;
        out.left.push(k, &next[k..], factor);
        if k + 1 == columns {
            return;
        }
        let right = k + 1..columns;
        sums[right.clone()].fill(T::ZERO);
        for (i, row) in a.chunks_exact_mut(columns).enumerate().skip(k) {
            let row = &mut row[right.clone()];
            let (first, second) = (u[i], y[i]);
            for ((x, &w), &v) in row.iter_mut().zip(&w[right.clone()]).zip(&v[right.clone()]) {
                *x = *x - (first * w + second * v);
            }
            add_scaled(&mut sums[right.clone()], factor * next[i], row);
        }
        u[k..].copy_from_slice(&next[k..]);
        w[right.clone()].copy_from_slice(&sums[right.clone()]);
        for ((v, &x), &w) in v[right.clone()].iter_mut().zip(&a[k * columns + k + 1..]).zip(&w[right.clone()]) {
            *v = x - w;
        }
        let v = &mut v[right.clone()];
        let (factor, image) = reflector(v, 0);
        out.above[k] = image;
        out.right.push(k + 1, v, factor);
        let change = dot(&w[right.clone()], v);
        for (i, row) in a.chunks_exact(columns).enumerate().skip(k + 1) {
            y[i] = factor * (dot(&row[right.clone()], v) - u[i] * change);
        }
    }
}
