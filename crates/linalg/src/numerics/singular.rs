//! The singular value decomposition A = U diag(σ) Vᵀ.
//!
//! The matrix becomes bidiagonal by reflections, and diagonal by implicit QR steps.

use wengert_tensor::Float;

use super::arithmetic::{Failure, abs, largest, scale, zeros};
use super::bidiagonal::bidiagonal;
use super::implicit_qr::{Sides, diagonalize};
use super::rotations::Panels;

/// Where the singular vectors are written.
pub(crate) struct Vectors<'a, T> {
    /// The left vectors as columns: `[rows, k]` for the smaller size k, or `[rows, rows]`.
    pub(crate) u: &'a mut [T],
    /// The right vectors as rows: `[k, columns]`, or `[columns, columns]`.
    pub(crate) vh: &'a mut [T],
    /// True if U and V are square.
    pub(crate) full: bool,
}

/// Writes the singular values of a matrix `[rows, columns]` in descending order, and the vectors if wanted.
///
/// # Errors
///
/// If an element is NaN or infinite, the iteration does not converge, or there is not enough memory.
pub(crate) fn singular<T: Float>(
    a: &[T],
    [rows, columns]: [usize; 2],
    values: &mut [T],
    vectors: Option<Vectors<'_, T>>,
) -> Result<(), Failure> {
    let wide = rows < columns;
    let (height, width) = if wide { (columns, rows) } else { (rows, columns) };
    let mut tall = zeros(height, width)?;
    if wide {
        for (i, row) in tall.chunks_exact_mut(width.max(1)).enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x = a[j * columns + i];
            }
        }
    } else {
        tall.copy_from_slice(a);
    }
    let scale = scale(largest(&tall)?);
    if scale != T::ONE {
        tall.iter_mut().for_each(|x| *x = *x * scale);
    }
    let mut reduced = bidiagonal(&mut tall, height, width)?;
    drop(tall);
    let mut sides = vectors.is_some().then(Sides::default);
    diagonalize(&mut reduced.diagonal, &mut reduced.above, sides.as_mut())?;
    let diagonal = &reduced.diagonal;
    let mut places: Vec<(usize, T)> = (0..width).map(|i| (i, T::ONE)).collect();
    let order = |x: T, y: T| abs(y).partial_cmp(&abs(x)).unwrap_or(std::cmp::Ordering::Equal);
    places.sort_by(|x, y| order(diagonal[x.0], diagonal[y.0]));
    for (value, place) in values.iter_mut().zip(&places) {
        *value = abs(diagonal[place.0]) / scale;
    }
    let (Some(out), Some(sides)) = (vectors, sides) else { return Ok(()) };
    let count = if out.full { height } else { width };
    let mut left = Panels::of_columns(&reduced.left.product(count)?, height, count)?;
    left.rotate(&sides.left);
    let mut right = Panels::of_columns(&reduced.right.product(width)?, width, width)?;
    right.rotate(&sides.right);
    // A negative value becomes positive, and its right vector changes its sign.
    let signed: Vec<(usize, T)> =
        places.iter().map(|&(i, _)| (i, if diagonal[i] < T::ZERO { -T::ONE } else { T::ONE })).collect();
    if wide {
        left.write_rows(&places, out.vh);
        right.write_columns(&signed, out.u);
    } else {
        left.write_columns(&places, out.u);
        right.write_rows(&signed, out.vh);
    }
    Ok(())
}
