//! Singular values and vectors of large bidiagonal matrices by division into halves (Gu and Eisenstat, "A divide-and-conquer algorithm for the
//! bidiagonal SVD", 1995).
//!
//! A row in the middle divides the matrix into two blocks with one more column than rows. The singular vectors of the blocks turn the matrix
//! into a diagonal with one full row, and the secular equation gives the rest. Most of the work is in products of matrices.
//!
//! A singular value has an error of a few ε times the largest one, so the smallest ones are less accurate than with `implicit_qr`.

use wengert_tensor::Float;

use super::arithmetic::{abs, larger, length, with_sign, zeros};
use super::failure::Failure;
use super::halves::{self, Block, Halves, scale_to_one};
use super::joined_rows::{JoinedRows, Places};
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// Singular values in ascending order, and the vectors as rows.
pub(super) struct Triplets<T> {
    pub(super) values: Vec<T>,
    pub(super) left: Vec<T>,
    /// A matrix with one more column than rows has one more right vector, for the value 0.
    pub(super) right: Vec<T>,
}

/// An upper bidiagonal matrix, with the function for undivided blocks.
struct Divided<F>(F);

/// The row between two blocks.
struct Middle<T> {
    /// The elements on the diagonal and beside it.
    elements: (T, T),
    /// The number of columns of both blocks and the row, beyond the number of rows.
    wider: usize,
}

impl<T: Float, F: Fn(&mut [T], &mut [T]) -> Result<Triplets<T>, Failure> + Sync> Halves<T> for Divided<F> {
    type Solution = Triplets<T>;
    type Between = Middle<T>;

    fn split<'a>(&self, (d, e): Block<'a, T>) -> ([Block<'a, T>; 2], Middle<T>) {
        let half = d.len() / 2;
        let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
        let middle = Middle { elements: (second[0], after[0]), wider: usize::from(after.len() == second.len()) };
        ([(first, before), (&mut second[1..], &mut after[1..])], middle)
    }

    fn solve(&self, (d, e): Block<'_, T>) -> Result<Triplets<T>, Failure> {
        self.0(d, e)
    }

    fn join(&self, [first, second]: [Triplets<T>; 2], middle: Middle<T>) -> Result<Triplets<T>, Failure> {
        join(&first, &second, middle)
    }
}

/// Computes the singular values and vectors of a square upper bidiagonal matrix, whose elements are overwritten. `small` computes both
/// for undivided matrices, which may have one more column than rows.
pub(super) fn divide<T: Float>(
    diagonal: &mut [T],
    above: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<Triplets<T>, Failure> + Sync,
) -> Result<Triplets<T>, Failure> {
    let scale = scale_to_one((&mut *diagonal, &mut *above));
    let mut triplets = halves::divide(&Divided(small), (diagonal, above))?;
    triplets.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(triplets)
}

/// Joins two blocks by the row between them.
///
/// The row gets the number of the right vector with the value 0 of the first block, so left and right vectors have the same numbers.
fn join<T: Float>(first: &Triplets<T>, second: &Triplets<T>, middle: Middle<T>) -> Result<Triplets<T>, Failure> {
    let Middle { elements: middle, wider } = middle;
    let (own, split) = (first.values.len(), first.values.len() + 1);
    let count = split + second.values.len();
    let mut left = JoinedRows::new(&with_unit(&first.left, own)?, &second.left, split, count)?;
    let mut right = JoinedRows::new(&first.right, &second.right, split, count + wider)?;
    let mut d: Vec<T> = first.values.iter().chain(&[T::ZERO]).chain(&second.values).copied().collect();
    let element =
        |row: usize| if row < split { middle.0 * right.row(row)[own] } else { middle.1 * right.row(row)[split] };
    let mut z: Vec<T> = (0..count + wider).map(element).collect();
    if wider == 1 {
        let sum = length(&[z[own], z[count]]);
        if sum > T::ZERO {
            right.rotate(own, count, (z[own] / sum, z[count] / sum));
        }
        z[own] = sum;
    }
    // Smaller blocks in a matrix near 1 need no smaller error.
    let start = larger(larger(abs(middle.0), abs(middle.1)), T::EPSILON.sqrt());
    let tolerance = T::from_f64(8.0) * T::EPSILON * d.iter().fold(start, |all, &d| larger(all, d));
    let (kept, deflated) = deflate(&d, &mut z, (own, count), tolerance, [&mut left, &mut right]);
    for &row in &kept[1..] {
        d[row] = larger(d[row], tolerance / (T::ONE + T::ONE));
    }
    let poles: Vec<T> = kept.iter().map(|&row| d[row]).collect();
    let chosen: Vec<T> = kept.iter().map(|&row| z[row]).collect();
    let mut found = roots::<T, true>(RankOne { poles: &poles, z: &chosen, factor: T::ONE })?;
    let mut weights = zeros(kept.len(), kept.len())?;
    vectorized(
        #[inline(always)]
        || fill_weights(&poles, &found.z, &mut found.differences, &mut weights),
    );
    let all: Vec<T> = found.roots.iter().copied().chain(deflated.iter().map(|&row| d[row])).collect();
    let places = Places::ascending(&all);
    Ok(Triplets {
        values: places.sorted(&all),
        left: left.assemble(&weights, [&kept, &deflated], &places)?,
        right: right.assemble(&found.differences, [&kept, &deflated], &places)?,
    })
}

/// Returns a square matrix with one more row and column, which the identity has too.
fn with_unit<T: Float>(rows: &[T], order: usize) -> Result<Vec<T>, Failure> {
    let mut out = zeros(order + 1, order + 1)?;
    for (out, row) in out.chunks_exact_mut(order + 1).zip(rows.chunks_exact(order)) {
        out[..order].copy_from_slice(row);
    }
    out[(order + 1) * (order + 1) - 1] = T::ONE;
    Ok(out)
}

/// Writes the left vectors to `left`, and replaces the differences by the right vectors.
#[inline(always)]
fn fill_weights<T: Float>(poles: &[T], z: &[T], differences: &mut [T], left: &mut [T]) {
    let count = poles.len();
    for (right, left) in differences.chunks_exact_mut(count).zip(left.chunks_exact_mut(count)) {
        for (x, &z) in right.iter_mut().zip(z) {
            *x = z / *x;
        }
        for ((x, &y), &pole) in left.iter_mut().zip(&*right).zip(poles) {
            *x = pole * y;
        }
        left[0] = -T::ONE;
        normalize(right);
        normalize(left);
    }
}

/// Finds the rows whose singular value does not change beyond rounding errors. Rotates rows with nearly equal elements of `d`, so that one of
/// them does not change. Returns the other rows, first `own` and then in ascending order of `d`, and the unchanged rows.
fn deflate<T: Float>(
    d: &[T],
    z: &mut [T],
    (own, count): (usize, usize),
    tolerance: T,
    [left, right]: [&mut JoinedRows<T>; 2],
) -> (Vec<usize>, Vec<usize>) {
    if abs(z[own]) <= tolerance {
        z[own] = with_sign(tolerance, z[own]);
    }
    let mut order: Vec<usize> = (0..count).filter(|&row| row != own).collect();
    order.sort_by(|&x, &y| d[x].partial_cmp(&d[y]).unwrap_or(std::cmp::Ordering::Equal));
    let (mut kept, mut deflated) = (vec![own], Vec::new());
    let mut waiting: Option<usize> = None;
    for row in order {
        if abs(z[row]) <= tolerance {
            deflated.push(row);
            continue;
        }
        if let Some(before) = waiting {
            if d[row] - d[before] <= tolerance {
                let sum = length(&[z[row], z[before]]);
                let turn = (z[row] / sum, -z[before] / sum);
                (z[row], z[before]) = (sum, T::ZERO);
                left.rotate(before, row, turn);
                right.rotate(before, row, turn);
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
