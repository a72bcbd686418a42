//! Eigenvalues and eigenvectors of large tridiagonal matrices by division into halves (Cuppen, "A divide and conquer method for the
//! symmetric tridiagonal eigenproblem", 1981).
//!
//! A tridiagonal matrix is the sum of a matrix with two blocks on its diagonal and a matrix of rank one. The eigenvectors of the blocks
//! transform the first matrix into a diagonal matrix. The secular equation gives the eigenvalues of the sum. Most of the work is in
//! products of matrices.

use wengert_tensor::Float;

use super::arithmetic::{abs, maximum, norm};
use super::failure::Failure;
use super::halves::{self, Block, DivideAndConquer, LEAF_ROWS, scale_to_one};
use super::joined_rows::{AscendingOrder, JoinedRows};
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// Eigenvalues in ascending order, and eigenvectors as rows.
pub(super) struct Eigenpairs<T> {
    pub(super) values: Vec<T>,
    pub(super) vectors: Vec<T>,
}

/// The division of a tridiagonal matrix into halves. The field is the function that solves blocks that are not divided.
struct TridiagonalHalves<F>(F);

impl<T: Float, F: Fn(&mut [T], &mut [T]) -> Result<Eigenpairs<T>, Failure> + Sync> DivideAndConquer<T>
    for TridiagonalHalves<F>
{
    type Solution = Eigenpairs<T>;
    /// The off-diagonal element that couples the two halves.
    type Coupling = T;

    fn split<'a>(&self, (d, e): Block<'a, T>) -> ([Block<'a, T>; 2], T) {
        let half = d.len() / 2;
        let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
        let (before, coupling) = before.split_at_mut(half - 1);
        ([(first, before), (second, after)], coupling[0])
    }

    fn solve(&self, (d, e): Block<'_, T>) -> Result<Eigenpairs<T>, Failure> {
        self.0(d, e)
    }

    fn join(&self, [first, second]: [Eigenpairs<T>; 2], coupling: T) -> Result<Eigenpairs<T>, Failure> {
        join(&first, &second, coupling)
    }
}

/// Computes the eigenvalues and eigenvectors of a tridiagonal matrix, whose elements are overwritten. The function `small` solves blocks
/// that are not divided.
pub(super) fn solve_by_halves<T: Float>(
    diagonal: &mut [T],
    off_diagonal: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<Eigenpairs<T>, Failure> + Sync,
) -> Result<Eigenpairs<T>, Failure> {
    let scale = scale_to_one((&mut *diagonal, &mut *off_diagonal));
    tear(diagonal, off_diagonal);
    let mut pairs = halves::divide_and_conquer(&TridiagonalHalves(small), (diagonal, off_diagonal))?;
    pairs.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(pairs)
}

/// Divides the matrix into blocks of at most [`LEAF_ROWS`] rows. At each division, subtracts a matrix of rank one, so that the off-diagonal
/// element between the two halves becomes 0. Only the diagonal is overwritten.
fn tear<T: Float>(diagonal: &mut [T], off_diagonal: &[T]) {
    let order = diagonal.len();
    if order <= LEAF_ROWS {
        return;
    }
    let half = order / 2;
    let factor = abs(off_diagonal[half - 1]);
    diagonal[half - 1] = diagonal[half - 1] - factor;
    diagonal[half] = diagonal[half] - factor;
    let (first, second) = diagonal.split_at_mut(half);
    tear(first, &off_diagonal[..half - 1]);
    tear(second, &off_diagonal[half..]);
}

/// Joins the solutions of two halves. `coupling` is the off-diagonal element that couples the halves.
fn join<T: Float>(first: &Eigenpairs<T>, second: &Eigenpairs<T>, coupling: T) -> Result<Eigenpairs<T>, Failure> {
    let (split, order) = (first.values.len(), first.values.len() + second.values.len());
    let mut rows = JoinedRows::new(&first.vectors, &second.vectors, split, order)?;
    let mut d: Vec<T> = first.values.iter().chain(&second.values).copied().collect();
    // The vector z of the matrix of rank one has the length √2. It is scaled to a unit vector.
    let inverse_sqrt_2 = T::from_f64(std::f64::consts::FRAC_1_SQRT_2);
    let factor = abs(coupling) + abs(coupling);
    let sign = if coupling < T::ZERO { -inverse_sqrt_2 } else { inverse_sqrt_2 };
    let mut z: Vec<T> = (0..order)
        .map(|row| if row < split { rows.row(row)[split - 1] * inverse_sqrt_2 } else { rows.row(row)[split] * sign })
        .collect();
    let (kept, deflated) = deflate(&mut d, &mut z, factor, &mut rows);
    let poles: Vec<T> = kept.iter().map(|&row| d[row]).collect();
    let kept_z: Vec<T> = kept.iter().map(|&row| z[row]).collect();
    let mut roots = roots::<T, false>(RankOne { poles: &poles, z: &kept_z, factor })?;
    let count = kept.len();
    vectorized(
        #[inline(always)]
        || {
            for row in roots.differences.chunks_exact_mut(count.max(1)) {
                for (x, &z) in row.iter_mut().zip(&roots.z) {
                    *x = z / *x;
                }
                normalize(row);
            }
        },
    );
    // The computed eigenvalues come first, and then the unchanged ones.
    let values: Vec<T> = roots.roots.iter().copied().chain(deflated.iter().map(|&row| d[row])).collect();
    let order = AscendingOrder::new(&values);
    let vectors = rows.assemble(&roots.differences, [&kept, &deflated], &order)?;
    Ok(Eigenpairs { values: order.sorted(&values), vectors })
}

/// Finds the rows (eigenvectors of the halves) whose eigenvalue, up to rounding errors, does not change when the halves are joined. If two
/// rows have nearly equal elements of `d`, rotates them so that one of them does not change. Returns two lists: the rows that change, in
/// ascending order of `d`, and the unchanged rows.
fn deflate<T: Float>(d: &mut [T], z: &mut [T], factor: T, rows: &mut JoinedRows<T>) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&x, &y| d[x].partial_cmp(&d[y]).unwrap_or(std::cmp::Ordering::Equal));
    // The matrix is scaled so that its largest magnitude is near 1. Errors of 8 ε √ε are negligible compared with 1. So the tolerance is at
    // least 8 ε √ε, even in a block of small elements.
    let floor = maximum(factor, T::EPSILON.sqrt());
    let tolerance = T::from_f64(8.0) * T::EPSILON * d.iter().fold(floor, |largest, &d| maximum(largest, abs(d)));
    let (mut kept, mut deflated) = (Vec::new(), Vec::new());
    let mut candidate: Option<usize> = None;
    for row in order {
        if factor * abs(z[row]) <= tolerance {
            deflated.push(row);
            continue;
        }
        if let Some(candidate) = candidate {
            let combined = norm(&[z[row], z[candidate]]);
            let (c, s) = (z[row] / combined, -z[candidate] / combined);
            if abs((d[row] - d[candidate]) * c * s) <= tolerance {
                (z[row], z[candidate]) = (combined, T::ZERO);
                rows.rotate(candidate, row, (c, s));
                let (low, high) = (d[candidate], d[row]);
                d[candidate] = low * (c * c) + high * (s * s);
                d[row] = low * (s * s) + high * (c * c);
                deflated.push(candidate);
            } else {
                kept.push(candidate);
            }
        }
        candidate = Some(row);
    }
    kept.extend(candidate);
    (kept, deflated)
}
