//! Singular values and vectors of large bidiagonal matrices by division into halves (Gu and Eisenstat, "A divide-and-conquer algorithm for
//! the bidiagonal SVD", 1995).
//!
//! A row in the middle divides the matrix into two blocks. The first block has one more column than rows. The second block has one more
//! column than rows if the whole matrix has. The singular vectors of the blocks transform the matrix into a diagonal with one full row. The
//! secular equation gives the singular values of this matrix. Most of the work is in products of matrices.
//!
//! The error of each singular value is a few ε times the largest one. So the smallest values are less accurate than with `implicit_qr`.

use wengert_tensor::Float;

use super::arithmetic::{abs, larger, length, with_sign, zeros};
use super::failure::Failure;
use super::halves::{self, Block, Halves, scale_to_one};
use super::joined_rows::{JoinedRows, Places};
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// Singular values in ascending order, and the left and right singular vectors as rows.
pub(super) struct Triplets<T> {
    pub(super) values: Vec<T>,
    pub(super) left: Vec<T>,
    /// The right vectors. If the matrix has one more column than rows, there is one more right vector, which belongs to the value 0.
    pub(super) right: Vec<T>,
}

/// The division of an upper bidiagonal matrix into halves. The field is the function that solves blocks that are not divided.
struct Divided<F>(F);

/// The row between the two blocks into which a matrix is divided.
struct Middle<T> {
    /// The two nonzero elements of the row: on the diagonal and to the right of it.
    elements: (T, T),
    /// The number of columns of the divided matrix minus its number of rows: 0 or 1.
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

/// Computes the singular values and vectors of a square upper bidiagonal matrix, whose elements are overwritten. The function `small`
/// solves blocks that are not divided, which may have one more column than rows.
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

/// Joins the solutions of two blocks by the row between them.
///
/// The first block has one more right vector than left vectors. The row between the blocks takes the index of this additional vector, so
/// that left and right vectors have the same indices.
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
    // The matrix is scaled so that its largest magnitude is near 1. Errors of 8 ε √ε are negligible compared with 1. So the tolerance is at
    // least 8 ε √ε, even in a block of small elements.
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

/// Returns the block-diagonal matrix of two blocks: the square matrix `rows`, with `order` rows, and the number 1.
fn with_unit<T: Float>(rows: &[T], order: usize) -> Result<Vec<T>, Failure> {
    let mut out = zeros(order + 1, order + 1)?;
    for (out, row) in out.chunks_exact_mut(order + 1).zip(rows.chunks_exact(order)) {
        out[..order].copy_from_slice(row);
    }
    out[(order + 1) * (order + 1) - 1] = T::ONE;
    Ok(out)
}

/// Computes the weights of the rows in the joined singular vectors from `differences`, which has dᵢ² - σⱼ² for poles d and roots σ. Writes
/// the weights of the left vectors to `left`, and replaces the differences by the weights of the right vectors.
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

/// Finds the rows (singular vectors of the blocks) whose singular value, up to rounding errors, does not change when the blocks are joined.
/// If two rows have nearly equal elements of `d`, rotates them so that one of them does not change. Returns two lists: the rows that change
/// (first `own`, the row between the blocks, then in ascending order of `d`), and the unchanged rows. The element `z[own]` must not vanish:
/// if its magnitude is below `tolerance`, it becomes `tolerance` with the same sign.
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
