//! Eigenvalues and eigenvectors of large tridiagonal matrices by division into halves (Cuppen, "A divide and conquer method for the
//! symmetric tridiagonal eigenproblem", 1981).
//!
//! A tridiagonal matrix is the sum of a matrix with two blocks on its diagonal and a matrix of rank one. The eigenvectors of the blocks
//! transform the first matrix into a diagonal matrix. The secular equation gives the eigenvalues of the sum. Most of the work is in
//! products of matrices.

use wengert_tensor::Float;

use super::arithmetic::{abs, larger, length};
use super::failure::Failure;
use super::halves::{self, Block, Halves, LEAF, scale_to_one};
use super::joined_rows::{JoinedRows, Places};
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// Eigenvalues in ascending order, and eigenvectors as rows.
pub(super) struct Pairs<T> {
    pub(super) values: Vec<T>,
    pub(super) vectors: Vec<T>,
}

/// The division of a tridiagonal matrix into halves. The field is the function that solves blocks that are not divided.
struct Torn<F>(F);

impl<T: Float, F: Fn(&mut [T], &mut [T]) -> Result<Pairs<T>, Failure> + Sync> Halves<T> for Torn<F> {
    type Solution = Pairs<T>;
    /// The off-diagonal element that couples the two halves.
    type Between = T;

    fn split<'a>(&self, (d, e): Block<'a, T>) -> ([Block<'a, T>; 2], T) {
        let half = d.len() / 2;
        let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
        let (before, between) = before.split_at_mut(half - 1);
        ([(first, before), (second, after)], between[0])
    }

    fn solve(&self, (d, e): Block<'_, T>) -> Result<Pairs<T>, Failure> {
        self.0(d, e)
    }

    fn join(&self, [first, second]: [Pairs<T>; 2], between: T) -> Result<Pairs<T>, Failure> {
        join(&first, &second, between)
    }
}

/// Computes the eigenvalues and eigenvectors of a tridiagonal matrix, whose elements are overwritten. The function `small` solves blocks
/// that are not divided.
pub(super) fn divide<T: Float>(
    diagonal: &mut [T],
    beside: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<Pairs<T>, Failure> + Sync,
) -> Result<Pairs<T>, Failure> {
    let scale = scale_to_one((&mut *diagonal, &mut *beside));
    tear(diagonal, beside);
    let mut pairs = halves::divide(&Torn(small), (diagonal, beside))?;
    pairs.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(pairs)
}

/// Divides the matrix into blocks of at most [`LEAF`] rows. At each division, subtracts a matrix of rank one, so that the off-diagonal
/// element between the two halves becomes 0. Only the diagonal is overwritten.
fn tear<T: Float>(diagonal: &mut [T], beside: &[T]) {
    let order = diagonal.len();
    if order <= LEAF {
        return;
    }
    let half = order / 2;
    let factor = abs(beside[half - 1]);
    diagonal[half - 1] = diagonal[half - 1] - factor;
    diagonal[half] = diagonal[half] - factor;
    let (first, second) = diagonal.split_at_mut(half);
    tear(first, &beside[..half - 1]);
    tear(second, &beside[half..]);
}

/// Joins the solutions of two halves. `between` is the off-diagonal element that couples the halves.
fn join<T: Float>(first: &Pairs<T>, second: &Pairs<T>, between: T) -> Result<Pairs<T>, Failure> {
    let (split, order) = (first.values.len(), first.values.len() + second.values.len());
    let mut rows = JoinedRows::new(&first.vectors, &second.vectors, split, order)?;
    let mut d: Vec<T> = first.values.iter().chain(&second.values).copied().collect();
    // The vector z of the matrix of rank one has the length √2. It is scaled to a unit vector.
    let root = T::from_f64(std::f64::consts::FRAC_1_SQRT_2);
    let factor = abs(between) + abs(between);
    let sign = if between < T::ZERO { -root } else { root };
    let mut z: Vec<T> = (0..order)
        .map(|row| if row < split { rows.row(row)[split - 1] * root } else { rows.row(row)[split] * sign })
        .collect();
    let (kept, deflated) = deflate(&mut d, &mut z, factor, &mut rows);
    let poles: Vec<T> = kept.iter().map(|&row| d[row]).collect();
    let chosen: Vec<T> = kept.iter().map(|&row| z[row]).collect();
    let mut found = roots::<T, false>(RankOne { poles: &poles, z: &chosen, factor })?;
    let count = kept.len();
    vectorized(
        #[inline(always)]
        || {
            for row in found.differences.chunks_exact_mut(count.max(1)) {
                for (x, &z) in row.iter_mut().zip(&found.z) {
                    *x = z / *x;
                }
                normalize(row);
            }
        },
    );
    // The computed eigenvalues come first, and then the unchanged ones.
    let all: Vec<T> = found.roots.iter().copied().chain(deflated.iter().map(|&row| d[row])).collect();
    let places = Places::ascending(&all);
    let vectors = rows.assemble(&found.differences, [&kept, &deflated], &places)?;
    Ok(Pairs { values: places.sorted(&all), vectors })
}

/// Finds the rows (eigenvectors of the halves) whose eigenvalue, up to rounding errors, does not change when the halves are joined. If two
/// rows have nearly equal elements of `d`, rotates them so that one of them does not change. Returns two lists: the rows that change, in
/// ascending order of `d`, and the unchanged rows.
fn deflate<T: Float>(d: &mut [T], z: &mut [T], factor: T, rows: &mut JoinedRows<T>) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&x, &y| d[x].partial_cmp(&d[y]).unwrap_or(std::cmp::Ordering::Equal));
    // The matrix is scaled so that its largest magnitude is near 1. Errors of 8 ε √ε are negligible compared with 1. So the tolerance is at
    // least 8 ε √ε, even in a block of small elements.
    let start = larger(factor, T::EPSILON.sqrt());
    let tolerance = T::from_f64(8.0) * T::EPSILON * d.iter().fold(start, |all, &d| larger(all, abs(d)));
    let (mut kept, mut deflated) = (Vec::new(), Vec::new());
    let mut waiting: Option<usize> = None;
    for row in order {
        if factor * abs(z[row]) <= tolerance {
            deflated.push(row);
            continue;
        }
        if let Some(before) = waiting {
            let sum = length(&[z[row], z[before]]);
            let (c, s) = (z[row] / sum, -z[before] / sum);
            if abs((d[row] - d[before]) * c * s) <= tolerance {
                (z[row], z[before]) = (sum, T::ZERO);
                rows.rotate(before, row, (c, s));
                let (low, high) = (d[before], d[row]);
                d[before] = low * (c * c) + high * (s * s);
                d[row] = low * (s * s) + high * (c * c);
                deflated.push(before);
            } else {
                kept.push(before);
            }
        }
        waiting = Some(row);
    }
    kept.extend(waiting);
    (kept, deflated)
}
