//! Eigenvalues and eigenvectors of large tridiagonal matrices by division into halves (Cuppen, "A divide and conquer method for the symmetric
//! tridiagonal eigenproblem", 1981).
//!
//! A tridiagonal matrix is a matrix with two blocks on its diagonal, plus a matrix of rank one. The eigenvectors of the blocks turn the blocks
//! into a diagonal matrix, and the secular equation gives the rest. Most of the work is in products of matrices.

use wengert_tensor::{Float, each_part};

use super::arithmetic::{abs, larger, length, near_one, zeros};
use super::failure::Failure;
use super::joined_rows::JoinedRows;
use super::secular::{RankOne, normalize, roots};
use crate::simd::vectorized;

/// The largest order that is not divided. QL steps are slower from here on.
pub(super) const LEAF: usize = 32;

/// The largest order that is one task of the thread pool.
const TASK: usize = 128;

/// Eigenvalues in ascending order, and eigenvectors as rows.
pub(super) struct Pairs<T> {
    pub(super) values: Vec<T>,
    pub(super) vectors: Vec<T>,
}

/// A block that is computed in one task, and its result.
type Task<'a, T> = (&'a mut [T], &'a mut [T], Result<Pairs<T>, Failure>);

/// The results of the tasks.
type Done<'a, T> = &'a mut dyn Iterator<Item = Result<Pairs<T>, Failure>>;

/// Computes the eigenvalues and eigenvectors of a tridiagonal matrix, whose elements are overwritten. `small` computes both for undivided
/// matrices.
pub(super) fn divide<T: Float>(
    diagonal: &mut [T],
    beside: &mut [T],
    small: impl Fn(&mut [T], &mut [T]) -> Result<Pairs<T>, Failure> + Sync,
) -> Result<Pairs<T>, Failure> {
    // The secular equation has products of four elements, so the largest one is scaled to near 1.
    let scale = near_one(diagonal.iter().chain(beside.iter()));
    diagonal.iter_mut().chain(beside.iter_mut()).for_each(|x| *x = *x * scale);
    tear(diagonal, beside);
    let mut tasks = Vec::new();
    add_tasks(diagonal, beside, &mut tasks);
    let parallel = tasks.len() > 1;
    each_part(tasks.iter_mut().collect(), parallel, |_, (d, e, done)| *done = conquer(d, e, &small, None));
    let done: Vec<_> = tasks.into_iter().map(|task| task.2).collect();
    let mut pairs = conquer(diagonal, beside, &small, Some(&mut done.into_iter()))?;
    pairs.values.iter_mut().for_each(|value| *value = *value / scale);
    Ok(pairs)
}

/// Appends the blocks of at most `TASK` rows.
fn add_tasks<'a, T: Float>(d: &'a mut [T], e: &'a mut [T], tasks: &mut Vec<Task<'a, T>>) {
    if d.len() <= TASK {
        tasks.push((d, e, Err(Failure::NoConvergence)));
        return;
    }
    let half = d.len() / 2;
    let ((first, second), (before, after)) = (d.split_at_mut(half), e.split_at_mut(half));
    add_tasks(first, &mut before[..half - 1], tasks);
    add_tasks(second, after, tasks);
}

/// Subtracts the matrices of rank one at all divisions.
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

/// Computes the eigenvalues and eigenvectors of a torn matrix. `done` has the results of the tasks.
fn conquer<T: Float>(
    d: &mut [T],
    e: &mut [T],
    small: &impl Fn(&mut [T], &mut [T]) -> Result<Pairs<T>, Failure>,
    mut done: Option<Done<'_, T>>,
) -> Result<Pairs<T>, Failure> {
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
    let (before, between) = before.split_at_mut(half - 1);
    let first = conquer(first, before, small, done.as_mut().map(|done| &mut **done as Done<'_, T>))?;
    let second = conquer(second, after, small, done)?;
    join(&first, &second, between[0])
}

/// Joins two halves with the element `between` beside the diagonal.
fn join<T: Float>(first: &Pairs<T>, second: &Pairs<T>, between: T) -> Result<Pairs<T>, Failure> {
    let (split, order) = (first.values.len(), first.values.len() + second.values.len());
    let mut rows = JoinedRows::new(&first.vectors, &second.vectors, split, order)?;
    let mut d: Vec<T> = first.values.iter().chain(&second.values).copied().collect();
    // The vector z has the length √2. It becomes a unit vector.
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
    // The sources of the values in ascending order: first the new ones, then the deflated ones.
    let all: Vec<T> = found.roots.iter().copied().chain(deflated.iter().map(|&row| d[row])).collect();
    let mut sources: Vec<usize> = (0..order).collect();
    sources.sort_by(|&x, &y| all[x].partial_cmp(&all[y]).unwrap_or(std::cmp::Ordering::Equal));
    let mut places = vec![0; order];
    sources.iter().enumerate().for_each(|(place, &source)| places[source] = place);
    let mut vectors = zeros(order, order)?;
    rows.combine(&found.differences, &kept, &places[..count], &mut vectors)?;
    for (&row, &place) in deflated.iter().zip(&places[count..]) {
        vectors[place * order..][..order].copy_from_slice(rows.row(row));
    }
    Ok(Pairs { values: sources.iter().map(|&source| all[source]).collect(), vectors })
}

/// Finds the rows whose eigenvalue does not change beyond rounding errors. Rotates rows with nearly equal elements of `d`, so that one of them
/// does not change. Returns the other rows in ascending order of `d`, and the unchanged rows.
fn deflate<T: Float>(d: &mut [T], z: &mut [T], factor: T, rows: &mut JoinedRows<T>) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&x, &y| d[x].partial_cmp(&d[y]).unwrap_or(std::cmp::Ordering::Equal));
    // Smaller blocks in a matrix near 1 need no smaller error.
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
