//! The singular value decomposition A = U diag(σ) Vᵀ.
//!
//! The matrix becomes bidiagonal by reflections, and diagonal by implicit QR steps.

use wengert_tensor::Float;

use super::arithmetic::{abs, largest, scale, zeros};
use super::bidiagonal::bidiagonal;
use super::failure::Failure;
use super::implicit_qr::{Sides, diagonalize};
use super::products::product;
use super::qr::{factor, write_triangle};
use super::rotations::Panels;

/// The number of rows for each column from which a matrix becomes triangular first. This takes fewer operations (Chan, "An improved algorithm
/// for computing the singular value decomposition", 1982).
const TALL: usize = 2;

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
    let mut tall = if wide { transposed(a, [rows, columns])? } else { a.to_vec() };
    let scale = scale(largest(&tall)?);
    if scale != T::ONE {
        tall.iter_mut().for_each(|x| *x = *x * scale);
    }
    let (mut inner, mut tall_q) = (height, None);
    if width > 0 && height >= TALL.saturating_mul(width) {
        tall_q = Some(factor(&mut tall, height, width)?);
        let mut triangle = zeros(width, width)?;
        write_triangle(&tall, width, width, &mut triangle);
        (inner, tall) = (width, triangle);
    }
    let mut reduced = bidiagonal(&mut tall, inner, width)?;
    drop(tall);
    let mut sides = vectors.is_some().then(Sides::default);
    diagonalize(&mut reduced.diagonal, &mut reduced.above, sides.as_mut())?;
    let diagonal = &reduced.diagonal;
    let places = descending(diagonal);
    for (value, place) in values.iter_mut().zip(&places) {
        *value = abs(diagonal[place.0]) / scale;
    }
    let (Some(out), Some(sides)) = (vectors, sides) else { return Ok(()) };
    // A negative value becomes positive, and its right vector changes its sign.
    let signed: Vec<(usize, T)> =
        places.iter().map(|&(i, _)| (i, if diagonal[i] < T::ZERO { -T::ONE } else { T::ONE })).collect();
    let mut right = Panels::of_columns(&reduced.right.product(width)?, width, width)?;
    right.rotate(&sides.right);
    if wide {
        right.write_columns(&signed, out.u)
    } else {
        right.write_rows(&signed, out.vh)
    }
    let count = if out.full { height } else { width };
    let size = if tall_q.is_some() { width } else { count };
    let mut left = Panels::of_columns(&reduced.left.product(size)?, inner, size)?;
    left.rotate(&sides.left);
    match tall_q {
        None if wide => left.write_rows(&places, out.vh),
        None => left.write_columns(&places, out.u),
        Some(q) => {
            let mut small = zeros(width, width)?;
            left.write_columns(&places, &mut small);
            let long = long_vectors(&q.product(count)?, &small, [height, count, width])?;
            if wide {
                out.vh.copy_from_slice(&transposed(&long, [height, count])?);
            } else {
                out.u.copy_from_slice(&long);
            }
        }
    }
    Ok(())
}

/// Returns the indices of the elements from the largest to the smallest magnitude, each with the factor 1.
fn descending<T: Float>(diagonal: &[T]) -> Vec<(usize, T)> {
    let mut places: Vec<(usize, T)> = (0..diagonal.len()).map(|i| (i, T::ONE)).collect();
    let order = |x: T, y: T| abs(y).partial_cmp(&abs(x)).unwrap_or(std::cmp::Ordering::Equal);
    places.sort_by(|x, y| order(diagonal[x.0], diagonal[y.0]));
    places
}

/// Returns Q, a matrix `[height, count]`, with its first `width` columns multiplied by the matrix `small`, `[width, width]`. The other
/// columns stay the same.
fn long_vectors<T: Float>(q: &[T], small: &[T], [height, count, width]: [usize; 3]) -> Result<Vec<T>, Failure> {
    if count == width {
        return product(q, small, [height, width, width]);
    }
    let first: Vec<T> = q.chunks_exact(count).flat_map(|row| &row[..width]).copied().collect();
    let mut out = q.to_vec();
    for (out, row) in
        out.chunks_exact_mut(count).zip(product(&first, small, [height, width, width])?.chunks_exact(width))
    {
        out[..width].copy_from_slice(row);
    }
    Ok(out)
}

/// Returns the matrix with rows and columns exchanged.
fn transposed<T: Float>(x: &[T], [rows, columns]: [usize; 2]) -> Result<Vec<T>, Failure> {
    let mut out = zeros(columns, rows)?;
    for (i, row) in x.chunks_exact(columns.max(1)).enumerate() {
        for (j, &x) in row.iter().enumerate() {
            out[j * rows + i] = x;
        }
    }
    Ok(out)
}
