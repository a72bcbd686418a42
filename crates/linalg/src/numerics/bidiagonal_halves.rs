//! Singular values and vectors of large bidiagonal matrices by division into halves (Gu and Eisenstat, "A divide-and-conquer algorithm for
//! the bidiagonal SVD", 1995).
//!
//! A row in the middle divides the matrix into two blocks. The first block has one more column than rows. The second block has one more
//! column than rows if the whole matrix has. The singular vectors of the blocks transform the matrix into a diagonal with one full row. The
//! secular equation gives the singular values of this matrix. Most of the work is in products of matrices.
//!
//! The error of each singular value is a few ε times the largest one. So the smallest values are less accurate than with `implicit_qr`.

use wengert_tensor::Float;

use super::arithmetic::{abs, maximum, norm, with_sign, zeros};
use super::failure::Failure;
use super::halves::{self, Block, DivideAndConquer, scale_to_one};
use super::joined_rows::{AscendingOrder, JoinedRows};
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// Singular values in ascending order, and the left and right singular vectors as rows.
pub(super) struct SingularTriplets<T> {
    pub(super) values: Vec<T>,
    pub(super) left: Vec<T>,
    /// The right vectors. If the matrix has one more column than rows, there is one more right vector, which belongs to the value 0.
    pub(super) right: Vec<T>,
}

/// The division of an upper bidiagonal matrix into halves. The field is the function that solves blocks that are not divided.
struct BidiagonalHalves<F>(F);

/// The row between the two blocks into which a matrix is divided.
struct Middle<T> {
    /// The two nonzero elements of the row: on the diagonal and to the right of it.
    elements: (T, T),
    /// The number of columns of the divided matrix minus its number of rows: 0 or 1.
    extra_columns: usize,
}

impl<T: Float, F: Fn(&mut [T], &mut [T]) -> Result<SingularTriplets<T>, Failure> + Sync> DivideAndConquer<T>
    for BidiagonalHalves<F>
{
    type Solution = SingularTriplets<T>;
    type Coupling = Middle<T>;

    fn split<'a>(&self, (d, e): Block<'a, T>) -> ([Block<'a, T>; 2], Middle<T>) {
        let half = d.len() / 2;
        let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
        let middle =
            Middle { elements: (second[0], after[0]), extra_columns: usize::from(after.len() == second.len()) };
        ([(first, before), (&mut second[1..], &mut after[1..])], middle)
    }

    fn solve(&self, (d, e): Block<'_, T>) -> Result<SingularTriplets<T>, Failure> {
        self.0(d, e)
    }

    fn join(
        &self,
        [first, second]: [SingularTriplets<T>; 2],
        middle: Middle<T>,
    ) -> Result<SingularTriplets<T>, Failure> {
        join(&first, &second, middle)
    }
}

/// Computes the singular values and vectors of a square upper bidiagonal matrix, whose elements are overwritten. The function `small`
/// solves blocks that are not divided, which may have one more column than rows.
pub(super) fn solve_by_halves<T: Float>(
    diagonal: &mut [T],
    superdiagonal: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<SingularTriplets<T>, Failure> + Sync,
) -> Result<SingularTriplets<T>, Failure> {
    let scale = scale_to_one((&mut *diagonal, &mut *superdiagonal));
    let mut triplets = halves::divide_and_conquer(&BidiagonalHalves(small), (diagonal, superdiagonal))?;
    triplets.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(triplets)
}

/// Joins the solutions of two blocks by the row between them.
///
/// The first block has one more right vector than left vectors. The row between the blocks takes the index of this additional vector, so
/// that left and right vectors have the same indices.
fn join<T: Float>(
    first: &SingularTriplets<T>,
    second: &SingularTriplets<T>,
    middle: Middle<T>,
) -> Result<SingularTriplets<T>, Failure> {
    let Middle { elements, extra_columns } = middle;
    let (middle_row, split) = (first.values.len(), first.values.len() + 1);
    let count = split + second.values.len();
    let mut left = JoinedRows::new(&append_unit(&first.left, middle_row)?, &second.left, split, count)?;
    let mut right = JoinedRows::new(&first.right, &second.right, split, count + extra_columns)?;
    let mut d: Vec<T> = first.values.iter().chain(&[T::ZERO]).chain(&second.values).copied().collect();
    let element = |row: usize| {
        if row < split { elements.0 * right.row(row)[middle_row] } else { elements.1 * right.row(row)[split] }
    };
    let mut z: Vec<T> = (0..count + extra_columns).map(element).collect();
    if extra_columns == 1 {
        let combined = norm(&[z[middle_row], z[count]]);
        if combined > T::ZERO {
            right.rotate(middle_row, count, (z[middle_row] / combined, z[count] / combined));
        }
        z[middle_row] = combined;
    }
    // The matrix is scaled so that its largest magnitude is near 1. Errors of 8 ε √ε are negligible compared with 1. So the tolerance is at
    // least 8 ε √ε, even in a block of small elements.
    let floor = maximum(maximum(abs(elements.0), abs(elements.1)), T::EPSILON.sqrt());
    let tolerance = T::from_f64(8.0) * T::EPSILON * d.iter().fold(floor, |largest, &d| maximum(largest, d));
    let (kept, deflated) = deflate(&d, &mut z, (middle_row, count), tolerance, [&mut left, &mut right]);
    for &row in &kept[1..] {
        d[row] = maximum(d[row], tolerance / (T::ONE + T::ONE));
    }
    let poles: Vec<T> = kept.iter().map(|&row| d[row]).collect();
    let kept_z: Vec<T> = kept.iter().map(|&row| z[row]).collect();
    let mut roots = roots::<T, true>(RankOne { poles: &poles, z: &kept_z, factor: T::ONE })?;
    let mut weights = zeros(kept.len(), kept.len())?;
    vectorized(
        #[inline(always)]
        || fill_weights(&poles, &roots.z, &mut roots.differences, &mut weights),
    );
    let values: Vec<T> = roots.roots.iter().copied().chain(deflated.iter().map(|&row| d[row])).collect();
    let order = AscendingOrder::new(&values);
    Ok(SingularTriplets {
        values: order.sorted(&values),
        left: left.assemble(&weights, [&kept, &deflated], &order)?,
        right: right.assemble(&roots.differences, [&kept, &deflated], &order)?,
    })
}

/// Returns the block-diagonal matrix of two blocks: the square matrix `rows`, with `order` rows, and the number 1.
fn append_unit<T: Float>(rows: &[T], order: usize) -> Result<Vec<T>, Failure> {
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
/// (first `middle_row`, the row between the blocks, then in ascending order of `d`), and the unchanged rows. The element
/// `z[middle_row]` must not vanish: if its magnitude is below `tolerance`, it becomes `tolerance` with the same sign.
fn deflate<T: Float>(
    d: &[T],
    z: &mut [T],
    (middle_row, count): (usize, usize),
    tolerance: T,
    [left, right]: [&mut JoinedRows<T>; 2],
) -> (Vec<usize>, Vec<usize>) {
    if abs(z[middle_row]) <= tolerance {
        z[middle_row] = with_sign(tolerance, z[middle_row]);
    }
    let mut order: Vec<usize> = (0..count).filter(|&row| row != middle_row).collect();
    order.sort_by(|&x, &y| d[x].partial_cmp(&d[y]).unwrap_or(std::cmp::Ordering::Equal));
    let (mut kept, mut deflated) = (vec![middle_row], Vec::new());
    let mut candidate: Option<usize> = None;
    for row in order {
        if abs(z[row]) <= tolerance {
            deflated.push(row);
            continue;
        }
        if let Some(candidate) = candidate {
            if d[row] - d[candidate] <= tolerance {
                let combined = norm(&[z[row], z[candidate]]);
                let rotation = (z[row] / combined, -z[candidate] / combined);
                (z[row], z[candidate]) = (combined, T::ZERO);
                left.rotate(candidate, row, rotation);
                right.rotate(candidate, row, rotation);
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
