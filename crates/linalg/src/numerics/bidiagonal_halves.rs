//! Singular values and vectors of large bidiagonal matrices by division into halves (Gu and Eisenstat, "A divide-and-conquer algorithm for the
//! bidiagonal SVD", 1995).
//!
//! A row in the middle divides the matrix into two blocks with one more column than rows. The singular vectors of the blocks turn the matrix
//! into a diagonal with one full row, and the secular equation gives the rest. Most of the work is in products of matrices.
//!
//! A singular value has an error of a few ε times the largest one, so the smallest ones are less accurate than with `implicit_qr`.

use wengert_tensor::{Float, each_part};

use super::arithmetic::{abs, larger, length, near_one, with_sign, zeros};
use super::failure::Failure;
use super::joined_rows::JoinedRows;
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// The largest number of rows that is not divided. QR steps are slower from here on.
pub(super) const LEAF: usize = 32;

/// The largest number of rows that is one task of the thread pool.
const TASK: usize = 128;

/// Singular values in ascending order, and the vectors as rows.
pub(super) struct Triplets<T> {
    pub(super) values: Vec<T>,
    pub(super) left: Vec<T>,
    /// A matrix with one more column than rows has one more right vector, for the value 0.
    pub(super) right: Vec<T>,
}

/// A block that is computed in one task, and its result.
type Task<'a, T> = (&'a mut [T], &'a mut [T], Result<Triplets<T>, Failure>);

/// The results of the tasks.
type Done<'a, T> = &'a mut dyn Iterator<Item = Result<Triplets<T>, Failure>>;

/// Computes the singular values and vectors of a square upper bidiagonal matrix, whose elements are overwritten. `small` computes both
/// for undivided matrices, which may have one more column than rows.
pub(super) fn divide<T: Float>(
    diagonal: &mut [T],
    above: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<Triplets<T>, Failure> + Sync,
) -> Result<Triplets<T>, Failure> {
    // The secular equation has products of four elements, so the largest one is scaled to near 1.
    let scale = near_one(diagonal.iter().chain(above.iter()));
    diagonal.iter_mut().chain(above.iter_mut()).for_each(|x| *x = *x * scale);
    let mut tasks = Vec::new();
    add_tasks(diagonal, above, &mut tasks);
    let parallel = tasks.len() > 1;
    each_part(tasks.iter_mut().collect(), parallel, |_, (d, e, done)| *done = conquer(d, e, &small, None));
    let done: Vec<_> = tasks.into_iter().map(|task| task.2).collect();
    let mut triplets = conquer(diagonal, above, &small, Some(&mut done.into_iter()))?;
    triplets.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(triplets)
}

/// Appends the blocks of at most `TASK` rows.
fn add_tasks<'a, T: Float>(d: &'a mut [T], e: &'a mut [T], tasks: &mut Vec<Task<'a, T>>) {
    if d.len() <= TASK {
        tasks.push((d, e, Err(Failure::NoConvergence)));
        return;
    }
    let half = d.len() / 2;
    let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
    add_tasks(first, before, tasks);
    add_tasks(&mut second[1..], &mut after[1..], tasks);
}

/// Computes the singular values and vectors of a block. `done` has the results of the tasks.
fn conquer<T: Float>(
    d: &mut [T],
    e: &mut [T],
    small: &impl Fn(&mut [T], &mut [T]) -> Result<Triplets<T>, Failure>,
    mut done: Option<Done<'_, T>>,
) -> Result<Triplets<T>, Failure> {
    if d.len() <= TASK
        && let Some(done) = done.as_mut().and_then(|done| done.next())
    {
        return done;
    }
    if d.len() <= LEAF {
        return small(d, e);
    }
    let half = d.len() / 2;
    let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
    let middle = (second[0], after[0]);
    let wider = usize::from(after.len() == second.len());
    let first = conquer(first, before, small, done.as_mut().map(|done| &mut **done as Done<'_, T>))?;
    let second = conquer(&mut second[1..], &mut after[1..], small, done)?;
    join(&first, &second, middle, wider)
}

/// Joins two blocks by the row between them, which has the elements `middle`. `wider` is the number of columns beyond the number of rows.
///
/// The row gets the number of the right vector with the value 0 of the first block, so left and right vectors have the same numbers.
fn join<T: Float>(
    first: &Triplets<T>,
    second: &Triplets<T>,
    middle: (T, T),
    wider: usize,
) -> Result<Triplets<T>, Failure> {
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
    let mut sources: Vec<usize> = (0..count).collect();
    sources.sort_by(|&x, &y| all[x].partial_cmp(&all[y]).unwrap_or(std::cmp::Ordering::Equal));
    let mut places = vec![0; count];
    sources.iter().enumerate().for_each(|(place, &source)| places[source] = place);
    let write = |rows: &JoinedRows<T>, weights: &[T], width: usize| {
        let mut out = zeros(width, width)?;
        rows.combine(weights, &kept, &places[..kept.len()], &mut out)?;
        for (&row, &place) in deflated.iter().zip(&places[kept.len()..]) {
            out[place * width..][..width].copy_from_slice(rows.row(row));
        }
        for row in count..width {
            out[row * width..][..width].copy_from_slice(rows.row(row));
        }
        Ok(out)
    };
    Ok(Triplets {
        values: sources.iter().map(|&source| all[source]).collect(),
        left: write(&left, &weights, count)?,
        right: write(&right, &found.differences, count + wider)?,
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
