//! Eigenvalues and eigenvectors of symmetric matrices.
//!
//! The matrix becomes tridiagonal by reflections. If it is large and its eigenvectors are wanted, `symmetric_halves` solves it. Otherwise
//! it becomes diagonal by implicit QL steps with Wilkinson's shift (Dubrulle, Martin and Wilkinson, "The implicit QL algorithm", 1968;
//! Golub and Van Loan, "Matrix Computations", section 8.3).

use wengert_macros::precompiled;
use wengert_tensor::Float;

use super::arithmetic::{abs, largest_magnitude, rotation, scale, smallest_normal, with_sign, zeros};
use super::failure::Failure;
use super::halves::LEAF_ROWS;
use super::rotations::{Panels, Sweeps};
use super::symmetric_halves::{Eigenpairs, solve_by_halves};
use super::tiles::{Rows, copy_transposed};
use super::tridiagonal::tridiagonal;

/// The iteration for a block counts as failed after this number of steps, times the number of rows. Usually, two or three steps for each
/// eigenvalue are enough.
const MAX_STEPS: usize = 50;

/// Writes the eigenvalues of a symmetric matrix in ascending order to `values`, and the eigenvectors as columns to `vectors`, if given. The
/// matrix has as many rows as `values` has elements. Reads only the lower triangle of `a`, or only the upper one if `upper` is true.
///
/// # Errors
///
/// If an element of the triangle is NaN or infinite, the iteration does not converge, or there is not enough memory.
#[precompiled]
pub(crate) fn eigh<T: Float>(a: &[T], upper: bool, values: &mut [T], vectors: Option<&mut [T]>) -> Result<(), Failure> {
    let order = values.len();
    if order == 0 {
        return Ok(());
    }
    let mut lower = zeros(order, order)?;
    for i in 0..order {
        for j in 0..=i {
            lower[i * order + j] = if upper { a[j * order + i] } else { a[i * order + j] };
        }
    }
    let scale = scale(largest_magnitude(&lower)?);
    lower.iter_mut().for_each(|x| *x = *x * scale);
    let mut reduced = tridiagonal(&mut lower, order)?;
    drop(lower);
    let vectors = match vectors {
        Some(out) if order > LEAF_ROWS => {
            let eigenpairs = solve_by_halves(&mut reduced.diagonal, &mut reduced.off_diagonal, small_eigenpairs)?;
            for (value, &found) in values.iter_mut().zip(&eigenpairs.values) {
                *value = found / scale;
            }
            let mut columns = zeros(order, order)?;
            copy_transposed(Rows { data: &eigenpairs.vectors, stride: order }, (order, order), &mut columns, order);
            out.copy_from_slice(reduced.reflectors.multiply(columns, order)?.as_slice().unwrap_or_default());
            return Ok(());
        }
        vectors => vectors,
    };
    let mut sweeps = vectors.is_some().then(Sweeps::default);
    diagonalize(&mut reduced.diagonal, &mut reduced.off_diagonal, sweeps.as_mut())?;
    let (diagonal, sources) = (&reduced.diagonal, ascending(&reduced.diagonal));
    for (value, source) in values.iter_mut().zip(&sources) {
        *value = diagonal[source.0] / scale;
    }
    if let (Some(out), Some(sweeps)) = (vectors, sweeps) {
        let mut panels = Panels::of_columns(&reduced.reflectors.product(order)?, order, order)?;
        panels.rotate(&sweeps);
        panels.write_columns(&sources, out);
    }
    Ok(())
}

/// Returns the indices of the elements of `diagonal` in ascending order of the elements. Each index is paired with the factor 1, because
/// [`Panels`] multiplies vectors by a factor.
fn ascending<T: Float>(diagonal: &[T]) -> Vec<(usize, T)> {
    let mut sources: Vec<(usize, T)> = (0..diagonal.len()).map(|i| (i, T::ONE)).collect();
    sources.sort_by(|x, y| diagonal[x.0].partial_cmp(&diagonal[y.0]).unwrap_or(std::cmp::Ordering::Equal));
    sources
}

/// Computes the eigenvalues and eigenvectors of a tridiagonal matrix by QL steps. `off_diagonal` has the off-diagonal elements.
fn small_eigenpairs<T: Float>(diagonal: &mut [T], off_diagonal: &mut [T]) -> Result<Eigenpairs<T>, Failure> {
    let (order, mut sweeps) = (diagonal.len(), Sweeps::default());
    diagonalize(diagonal, off_diagonal, Some(&mut sweeps))?;
    let sources = ascending(diagonal);
    let mut vectors = zeros(order, order)?;
    for i in 0..order {
        vectors[i * order + i] = T::ONE;
    }
    let mut panels = Panels::of_columns(&vectors, order, order)?;
    panels.rotate(&sweeps);
    panels.write_rows(&sources, &mut vectors);
    Ok(Eigenpairs { values: sources.iter().map(|source| diagonal[source.0]).collect(), vectors })
}

/// Replaces the diagonal of a tridiagonal matrix by the matrix's eigenvalues, which are not sorted. Overwrites
/// `off_diagonal`. Records the rotations that give the eigenvectors in `sweeps`, if given. Returns an error if the iteration
/// does not converge.
fn diagonalize<T: Float>(
    diagonal: &mut [T],
    off_diagonal: &mut [T],
    mut sweeps: Option<&mut Sweeps<T>>,
) -> Result<(), Failure> {
    let mut start = 0;
    while start < diagonal.len() {
        let end = end_of_block(diagonal, off_diagonal, start);
        // A QL step moves small eigenvalues to the start. So the iteration converges faster if the end with the small elements is the start.
        // Otherwise the block is reversed.
        let reversed = abs(diagonal[end]) < abs(diagonal[start]);
        let (d, e) = (&mut diagonal[start..=end], &mut off_diagonal[start..end]);
        if reversed {
            d.reverse();
            e.reverse();
        }
        let mut steps = MAX_STEPS * d.len();
        for first in 0..d.len() {
            loop {
                let last = end_of_block(d, e, first);
                if last == first {
                    break;
                }
                steps = steps.checked_sub(1).ok_or(Failure::NoConvergence)?;
                if let Some(sweeps) = sweeps.as_deref_mut() {
                    sweeps.begin(if reversed { end - last } else { start + last }, !reversed);
                }
                ql_step(d, e, first, last, sweeps.as_deref_mut());
            }
        }
        if reversed {
            d.reverse();
        }
        e.fill(T::ZERO);
        start = end + 1;
    }
    Ok(())
}

/// Returns the last index of the block that begins at `start`. A block ends before a negligible element of `e`, the off-diagonal
/// elements of the tridiagonal matrix with diagonal `d`.
fn end_of_block<T: Float>(d: &[T], e: &[T], start: usize) -> usize {
    let square = T::EPSILON * T::EPSILON;
    let negligible = |i: usize| e[i] * e[i] <= (square * abs(d[i])) * abs(d[i + 1]) + smallest_normal();
    (start..e.len()).find(|&i| negligible(i)).unwrap_or(e.len())
}

/// Makes an implicit QL step on the block `first..=last` of the matrix with diagonal `d` and off-diagonal elements `e`.
/// Records the rotations in `sweeps`, if given.
fn ql_step<T: Float>(d: &mut [T], e: &mut [T], first: usize, last: usize, mut sweeps: Option<&mut Sweeps<T>>) {
    let two = T::ONE + T::ONE;
    // Wilkinson's shift: the eigenvalue of the first two rows and columns that is nearer to the first diagonal element.
    let ratio = (d[first + 1] - d[first]) / (two * e[first]);
    let root = if abs(ratio) < T::ONE {
        (ratio * ratio + T::ONE).sqrt()
    } else {
        abs(ratio) * (T::ONE + (T::ONE / ratio) * (T::ONE / ratio)).sqrt()
    };
    let shift = d[first] - e[first] / (ratio + with_sign(root, ratio));
    let (mut c, mut s, mut correction) = (T::ONE, T::ONE, T::ZERO);
    let mut bulge = d[last] - shift;
    for i in (first..last).rev() {
        let (outside, inside) = (s * e[i], c * e[i]);
        let length;
        (c, s, length) = rotation(bulge, outside);
        if i + 1 < last {
            e[i + 1] = length;
        }
        bulge = d[i + 1] - correction;
        let sum = (d[i] - bulge) * s + two * c * inside;
        correction = s * sum;
        d[i + 1] = bulge + correction;
        bulge = c * sum - inside;
        if let Some(sweeps) = sweeps.as_deref_mut() {
            sweeps.push(c, s);
        }
    }
    d[first] = d[first] - correction;
    e[first] = bulge;
}
