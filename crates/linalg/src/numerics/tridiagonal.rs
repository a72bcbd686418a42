//! Symmetric matrices made tridiagonal by Householder reflections (Golub and Van Loan, "Matrix Computations", section 8.3).

use wengert_tensor::Float;

use super::arithmetic::{add_scaled, dot};
use super::failure::Failure;
use super::reflectors::{Reflectors, reflector};
use crate::simd::vectorized;

/// A tridiagonal matrix T with A = Q T Qᵀ.
pub(crate) struct Tridiagonal<T> {
    pub(crate) diagonal: Vec<T>,
    /// The elements beside the diagonal. There is one less than on the diagonal.
    pub(crate) beside: Vec<T>,
    /// The reflections with the product Q.
    pub(crate) reflectors: Reflectors<T>,
}

/// Makes a symmetric matrix of this order tridiagonal. Reads and overwrites only the lower triangle of `a`.
pub(crate) fn tridiagonal<T: Float>(a: &mut [T], order: usize) -> Result<Tridiagonal<T>, Failure> {
    let reflectors = Reflectors::new(order, order.saturating_sub(1))?;
    let mut out =
        Tridiagonal { diagonal: vec![T::ZERO; order], beside: vec![T::ZERO; order.saturating_sub(1)], reflectors };
    vectorized(
        #[inline(always)]
        || reduce(a, order, &mut out),
    );
    Ok(out)
}

/// Makes the matrix tridiagonal, from the last row to the first.
///
/// A step with the vector v changes the remaining matrix B by -v wᵀ - w vᵀ. The next step makes this change and computes its product with B
/// in a single pass over B.
#[inline(always)]
fn reduce<T: Float>(a: &mut [T], order: usize, out: &mut Tridiagonal<T>) {
    let mut vectors = vec![T::ZERO; 4 * order];
    let (v, rest) = vectors.split_at_mut(order);
    let (w, rest) = rest.split_at_mut(order);
    let (next, product) = rest.split_at_mut(order);
    for i in (0..order).rev() {
        let (rows, last) = a.split_at_mut(i * order);
        let last = &mut last[..=i];
        change(last, v, w, i);
        out.diagonal[i] = last[i];
        if i == 0 {
            return;
        }
        next[..i].copy_from_slice(&last[..i]);
        let (factor, image) = reflector(&mut next[..i], i - 1);
        out.beside[i - 1] = image;
        out.reflectors.push(0, &next[..i], factor);
        product[..i].fill(T::ZERO);
        for (r, row) in rows.chunks_exact_mut(order).enumerate() {
            change(&mut row[..=r], v, w, r);
            let own = dot(&row[..r], &next[..r]) + row[r] * next[r];
            add_scaled(&mut product[..r], next[r], &row[..r]);
            product[r] = product[r] + own;
        }
        v[..i].copy_from_slice(&next[..i]);
        let half = factor * factor * dot(&product[..i], &v[..i]) / (T::ONE + T::ONE);
        for ((w, &product), &v) in w[..i].iter_mut().zip(&product[..i]).zip(&v[..i]) {
            *w = factor * product - half * v;
        }
    }
}

/// Subtracts row `i` of v wᵀ + w vᵀ.
#[inline(always)]
fn change<T: Float>(row: &mut [T], v: &[T], w: &[T], i: usize) {
    let (first, second) = (v[i], w[i]);
    for ((x, &v), &w) in row.iter_mut().zip(v).zip(w) {
        *x = *x - (first * w + second * v);
    }
}
