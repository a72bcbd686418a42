//! The reduction of symmetric matrices to tridiagonal form by Householder reflections (Golub and Van Loan, "Matrix Computations", section
//! 8.3).

use wengert_tensor::Float;

use super::arithmetic::dot;
use super::failure::Failure;
use super::parts::{part_count, sum_in_parts};
use super::reflectors::{Reflectors, reflector};
use crate::simd::vectorized;

/// A tridiagonal matrix T with A = Q T Qᵀ, where Q is a product of reflections.
pub(crate) struct Tridiagonal<T> {
    pub(crate) diagonal: Vec<T>,
    /// The off-diagonal elements T[i, i + 1]. Their number is one less than the number of elements on the diagonal.
    pub(crate) off_diagonal: Vec<T>,
    /// The reflections whose product is Q.
    pub(crate) reflectors: Reflectors<T>,
}

/// Returns the tridiagonal form of a symmetric matrix with `order` rows, and the reflections that lead to this form.
/// Reads and overwrites only the lower triangle of `a`.
pub(crate) fn tridiagonal<T: Float>(a: &mut [T], order: usize) -> Result<Tridiagonal<T>, Failure> {
    let reflectors = Reflectors::new(order, order.saturating_sub(1))?;
    let mut out = Tridiagonal {
        diagonal: vec![T::ZERO; order],
        off_diagonal: vec![T::ZERO; order.saturating_sub(1)],
        reflectors,
    };
    vectorized(
        #[inline(always)]
        || reduce(a, order, &mut out),
    );
    Ok(out)
}

/// Makes the matrix `a` tridiagonal, from the last row to the first.
///
/// A step with the reflection vector v changes the remaining matrix B by -v wᵀ - w vᵀ, where w is computed from B v. The next step makes
/// this change and computes the product of its own vector and B in a single pass over B.
#[inline(always)]
fn reduce<T: Float>(a: &mut [T], order: usize, out: &mut Tridiagonal<T>) {
    let mut vectors = vec![T::ZERO; (3 + part_count(order * order / 2)) * order];
    let (v, rest) = vectors.split_at_mut(order);
    let (w, rest) = rest.split_at_mut(order);
    let (next, products) = rest.split_at_mut(order);
    for i in (0..order).rev() {
        let (rows, last) = a.split_at_mut(i * order);
        let last = &mut last[..=i];
        update_row(last, v, w, i);
        out.diagonal[i] = last[i];
        if i == 0 {
            return;
        }
        next[..i].copy_from_slice(&last[..i]);
        let (factor, image) = reflector(&mut next[..i], i - 1);
        out.off_diagonal[i - 1] = image;
        out.reflectors.push(0, &next[..i], factor);
        match part_count(i * i / 2) {
            1 => update_and_multiply(rows, order, 0, [v, w, next], &mut products[..i]),
            count => update_and_multiply_in_parts(rows, order, [v, w, next], &mut products[..count * order]),
        }
        let product = &mut products[..i];
        v[..i].copy_from_slice(&next[..i]);
        let half = factor * factor * dot(product, &v[..i]) / (T::ONE + T::ONE);
        for ((w, &mut product), &v) in w[..i].iter_mut().zip(product).zip(&v[..i]) {
            *w = factor * product - half * v;
        }
    }
}

/// Subtracts v wᵀ + w vᵀ from rows of the remaining matrix, beginning with the row of index `first`. Writes the contribution of these rows to
/// the product of the matrix and the next reflection vector `next`.
#[inline(always)]
fn update_and_multiply<T: Float>(
    rows: &mut [T],
    order: usize,
    first: usize,
    [v, w, next]: [&[T]; 3],
    product: &mut [T],
) {
    product.fill(T::ZERO);
    for (r, row) in (first..).zip(rows.chunks_exact_mut(order)) {
        update_row_and_add(&mut row[..r], [v, w], &mut product[..r], [v[r], w[r], next[r]]);
        row[r] = row[r] - (v[r] * w[r] + w[r] * v[r]);
        product[r] = product[r] + (dot(&row[..r], &next[..r]) + row[r] * next[r]);
    }
}

/// Does the same as [`update_and_multiply`], on several threads, in parts with about the same number of elements. `products` has a vector
/// for each part. The first vector becomes the sum of all.
fn update_and_multiply_in_parts<T: Float>(rows: &mut [T], order: usize, vectors: [&[T]; 3], products: &mut [T]) {
    let (len, count) = (rows.len() / order, products.len() / order);
    let end = |part: usize| (len as f64 * (part as f64 / count as f64).sqrt()).round() as usize;
    sum_in_parts(
        rows,
        order,
        products,
        end,
        #[inline(always)]
        |first, rows, product| update_and_multiply(rows, order, first, vectors, &mut product[..len]),
    );
}

/// Subtracts `v w[r] + w v[r]` from row r of the remaining matrix, and then adds `next[r]` times the row to `product`. `elements` has `v[r]`,
/// `w[r]` and `next[r]`.
#[inline(always)]
fn update_row_and_add<T: Float>(row: &mut [T], [v, w]: [&[T]; 2], product: &mut [T], elements: [T; 3]) {
    for (((x, product), &v), &w) in row.iter_mut().zip(product).zip(v).zip(w) {
        *x = *x - (elements[0] * w + elements[1] * v);
        *product = *product + elements[2] * *x;
    }
}

/// Subtracts row `i` of the matrix v wᵀ + w vᵀ from `row`.
#[inline(always)]
fn update_row<T: Float>(row: &mut [T], v: &[T], w: &[T], i: usize) {
    let (first, second) = (v[i], w[i]);
    for ((x, &v), &w) in row.iter_mut().zip(v).zip(w) {
        *x = *x - (first * w + second * v);
    }
}
