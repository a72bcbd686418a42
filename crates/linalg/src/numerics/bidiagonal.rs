//! The reduction of matrices to bidiagonal form by Householder reflections (Golub and Van Loan, "Matrix Computations", section 5.4).

use wengert_tensor::{Float, each_part};

use super::arithmetic::{dot, four_dots, zeros};
use super::failure::Failure;
use super::parts::{part_count, sum_in_parts};
use super::reflectors::{Reflectors, reflector};
use crate::simd::vectorized;

/// An upper bidiagonal matrix B with A = U B Vᵀ, where U and V are products of reflections.
pub(crate) struct Bidiagonal<T> {
    pub(crate) diagonal: Vec<T>,
    /// The elements above the diagonal. Their number is one less than the number of elements on the diagonal.
    pub(crate) superdiagonal: Vec<T>,
    /// The reflections whose product is U.
    pub(crate) left: Reflectors<T>,
    /// The reflections whose product is V.
    pub(crate) right: Reflectors<T>,
}

/// Returns the bidiagonal form of a matrix `[rows, columns]`, and the reflections that lead to this form. The matrix
/// has at least as many rows as columns, and is overwritten.
pub(crate) fn bidiagonal<T: Float>(a: &mut [T], rows: usize, columns: usize) -> Result<Bidiagonal<T>, Failure> {
    let superdiagonal_len = columns.saturating_sub(1);
    let mut out = Bidiagonal {
        diagonal: zeros(columns, 1)?,
        superdiagonal: zeros(superdiagonal_len, 1)?,
        left: Reflectors::new(rows, columns)?,
        right: Reflectors::new(columns, superdiagonal_len)?,
    };
    vectorized(
        #[inline(always)]
        || reduce(a, rows, columns, &mut out),
    );
    Ok(out)
}

/// Makes the matrix `a` bidiagonal, step by step. Each step reflects rows by a vector u and columns by a vector v.
///
/// These reflections change the remaining matrix by -u wᵀ - y vᵀ, where w and y are products of the matrix with u and v. The next step
/// makes this change and computes its own w in a single pass over the matrix. A second pass computes its y.
#[inline(always)]
fn reduce<T: Float>(a: &mut [T], rows: usize, columns: usize, out: &mut Bidiagonal<T>) {
    let mut row_memory = vec![T::ZERO; 3 * rows];
    let (u, rest) = row_memory.split_at_mut(rows);
    let (y, next) = rest.split_at_mut(rows);
    let mut column_memory = vec![T::ZERO; (2 + part_count(rows * columns)) * columns];
    let (w, rest) = column_memory.split_at_mut(columns);
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
        let part_count = part_count((rows - k) * right.len());
        let step = Step { u, y, w: &w[right.clone()], v: &v[right.clone()], next, factor };
        match part_count {
            1 => update_and_multiply(&mut a[k * columns..], columns, k, step, &mut sums[..columns]),
            _ => {
                update_and_multiply_in_parts(&mut a[k * columns..], columns, k, step, &mut sums[..part_count * columns])
            }
        }
        u[k..].copy_from_slice(&next[k..]);
        let (w, v) = (&mut w[right.clone()], &mut v[right.clone()]);
        w.copy_from_slice(&sums[right.clone()]);
        for ((v, &x), &w) in v.iter_mut().zip(&a[k * columns + k + 1..]).zip(&*w) {
            *v = x - w;
        }
        let (factor, image) = reflector(v, 0);
        out.superdiagonal[k] = image;
        out.right.push(k + 1, v, factor);
        let product = dot(w, v);
        let (below, products) = (&a[(k + 1) * columns..], &mut y[k + 1..]);
        match part_count {
            1 => multiply(below, columns, v, products),
            _ => multiply_in_parts(below, columns, v, products, part_count),
        }
        for (y, &u) in products.iter_mut().zip(&u[k + 1..]) {
            *y = factor * (*y - u * product);
        }
    }
}

/// One step of the reduction, which changes the remaining matrix by -u wᵀ - y vᵀ. `next` and `factor` are the vector and the factor of the
/// reflection of rows in the next step.
#[derive(Clone, Copy)]
struct Step<'a, T> {
    u: &'a [T],
    y: &'a [T],
    w: &'a [T],
    v: &'a [T],
    next: &'a [T],
    factor: T,
}

/// Subtracts u wᵀ + y vᵀ from rows of the remaining matrix, beginning with the row of index `first`. Writes the next reflection's factor,
/// times the product of its vector and these rows, to `sums`.
#[inline(always)]
fn update_and_multiply<T: Float>(rows: &mut [T], columns: usize, first: usize, step: Step<'_, T>, sums: &mut [T]) {
    let Step { u, y, w, v, next, factor } = step;
    let start = columns - w.len();
    let sums = &mut sums[start..];
    sums.fill(T::ZERO);
    for (i, row) in (first..).zip(rows.chunks_exact_mut(columns)) {
        let (first, second, factor) = (u[i], y[i], factor * next[i]);
        for (((x, sum), &w), &v) in row[start..].iter_mut().zip(&mut *sums).zip(w).zip(v) {
            *x = *x - (first * w + second * v);
            *sum = *sum + factor * *x;
        }
    }
}

/// Subtracts u wᵀ + y vᵀ from the rows, as [`update_and_multiply`] does, in parts on several threads. `sums` has a vector for each part,
/// for the product that [`update_and_multiply`] computes from the rows of this part. At the end, all these vectors are added to the first
/// one.
fn update_and_multiply_in_parts<T: Float>(
    rows: &mut [T],
    columns: usize,
    first: usize,
    step: Step<'_, T>,
    sums: &mut [T],
) {
    let (len, part_count) = (rows.len() / columns, sums.len() / columns);
    sum_in_parts(
        rows,
        columns,
        sums,
        |part| part * len / part_count,
        #[inline(always)]
        |row, rows, sums| update_and_multiply(rows, columns, first + row, step, sums),
    );
}

/// Writes the dot product of the vector v and the last elements of each row to `products`.
#[inline(always)]
fn multiply<T: Float>(rows: &[T], columns: usize, v: &[T], products: &mut [T]) {
    let row = |i: usize| &rows[i * columns..][columns - v.len()..columns];
    let mut i = 0;
    while i + 4 <= products.len() {
        products[i..i + 4].copy_from_slice(&four_dots([row(i), row(i + 1), row(i + 2), row(i + 3)], v));
        i += 4;
    }
    for (i, product) in products.iter_mut().enumerate().skip(i) {
        *product = dot(row(i), v);
    }
}

/// Does the same as [`multiply`], in `part_count` parts on several threads.
#[inline(never)]
fn multiply_in_parts<T: Float>(rows: &[T], columns: usize, v: &[T], products: &mut [T], part_count: usize) {
    let size = products.len().div_ceil(part_count).max(1);
    let tasks = rows.chunks(size * columns).zip(products.chunks_mut(size)).collect();
    each_part(tasks, true, |_, (rows, products): (&[T], &mut [T])| {
        vectorized(
            #[inline(always)]
            || multiply(rows, columns, v, products),
        );
    });
}
