//! The singular value decomposition A = U diag(σ) Vᵀ.
//!
//! The matrix becomes bidiagonal by reflections. If it is large and its singular vectors are wanted, `bidiagonal_halves` solves it.
//! Otherwise it becomes diagonal by implicit QR steps.

use std::borrow::Cow;

use wengert_macros::precompiled;
use wengert_tensor::{Float, Tensor};

use super::arithmetic::{abs, largest_magnitude, scale, zeros};
use super::bidiagonal::{Bidiagonal, bidiagonal};
use super::bidiagonal_halves::{SingularTriplets, solve_by_halves};
use super::failure::Failure;
use super::halves::LEAF_ROWS;
use super::implicit_qr::{SideSweeps, diagonalize};
use super::products::product;
use super::qr::{qr_factor, write_triangle};
use super::reflectors::Reflectors;
use super::rotations::Panels;
use super::tiles::{Rows, copy_transposed};

/// A matrix with at least this number of rows per column is made triangular (QR) before it is made bidiagonal. This takes fewer operations
/// (Chan, "An improved algorithm for computing the singular value decomposition", 1982).
const MIN_TALL_RATIO: usize = 2;

/// The memory to which the singular vectors are written.
pub(crate) struct Vectors<'a, T> {
    /// The left vectors as columns of U: `[rows, k]` with k = min(rows, columns), or `[rows, rows]` if `full` is true.
    pub(crate) u: &'a mut [T],
    /// The right vectors as rows of Vᵀ: `[k, columns]`, or `[columns, columns]` if `full` is true.
    pub(crate) vh: &'a mut [T],
    /// True if U and V are square.
    pub(crate) full: bool,
}

/// Writes the singular values of a matrix `[rows, columns]` in descending order, and the singular vectors if `vectors` is given.
///
/// # Errors
///
/// If an element is NaN or infinite, the iteration does not converge, or there is not enough memory.
#[precompiled]
pub(crate) fn svd<T: Float>(
    a: &[T],
    sizes: [usize; 2],
    values: &mut [T],
    vectors: Option<Vectors<'_, T>>,
) -> Result<(), Failure> {
    let [rows, columns] = sizes;
    let wide = rows < columns;
    let (height, width) = if wide { (columns, rows) } else { (rows, columns) };
    let mut tall = if wide { transposed(a, [rows, columns])? } else { a.to_vec() };
    let scale = scale(largest_magnitude(&tall)?);
    tall.iter_mut().for_each(|x| *x = *x * scale);
    let q_reflectors = make_triangular(&mut tall, height, width)?;
    let reduced_rows = if q_reflectors.is_some() { width } else { height };
    let mut reduced = bidiagonal(&mut tall, reduced_rows, width)?;
    drop(tall);
    if width > LEAF_ROWS
        && !is_zero(&reduced)
        && let Some(out) = vectors
    {
        let found = solve_by_halves(&mut reduced.diagonal, &mut reduced.superdiagonal, small_triplets)?;
        for (value, &found) in values.iter_mut().zip(found.values.iter().rev()) {
            *value = found / scale;
        }
        return write_vectors_of_halves(&reduced, &found, q_reflectors, [height, width], wide, out);
    }
    let mut sides = vectors.is_some().then(SideSweeps::default);
    diagonalize(&mut reduced.diagonal, &mut reduced.superdiagonal, sides.as_mut())?;
    let (diagonal, sources) = (&reduced.diagonal, descending(&reduced.diagonal));
    values.iter_mut().zip(&sources).for_each(|(value, source)| *value = abs(diagonal[source.0]) / scale);
    let (Some(out), Some(sides)) = (vectors, sides) else { return Ok(()) };
    // If a singular value is negative, it becomes positive, and its right vector is multiplied by -1.
    let signed: Vec<(usize, T)> =
        sources.iter().map(|&(i, _)| (i, if diagonal[i] < T::ZERO { -T::ONE } else { T::ONE })).collect();
    let mut right = Panels::of_columns(&reduced.right.product(width)?, width, width)?;
    right.rotate(&sides.right);
    if wide {
        right.write_columns(&signed, out.u)
    } else {
        right.write_rows(&signed, out.vh)
    }
    let count = if out.full { height } else { width };
    let size = if q_reflectors.is_some() { width } else { count };
    let mut left = Panels::of_columns(&reduced.left.product(size)?, reduced_rows, size)?;
    left.rotate(&sides.left);
    match q_reflectors {
        None if wide => left.write_rows(&sources, out.vh),
        None => left.write_columns(&sources, out.u),
        Some(q) => {
            let mut small = zeros(width, width)?;
            left.write_columns(&sources, &mut small);
            let long = multiply_leading_columns(&q.product(count)?, &small, [height, count, width])?;
            if wide {
                out.vh.copy_from_slice(&transposed(&long, [height, count])?);
            } else {
                out.u.copy_from_slice(&long);
            }
        }
    }
    Ok(())
}

/// Returns true if all elements are zeros. The division into halves would give values of 8 ε √ε instead of zeros for this matrix.
fn is_zero<T: Float>(reduced: &Bidiagonal<T>) -> bool {
    reduced.diagonal.iter().chain(&reduced.superdiagonal).all(|&x| x == T::ZERO)
}

/// Replaces a matrix with at least [`MIN_TALL_RATIO`] times as many rows as columns by the square triangle R of its QR decomposition.
/// Returns the reflections whose product is Q, or `None` if the matrix stays unchanged.
fn make_triangular<T: Float>(tall: &mut Vec<T>, height: usize, width: usize) -> Result<Option<Reflectors<T>>, Failure> {
    if width == 0 || height < MIN_TALL_RATIO.saturating_mul(width) {
        return Ok(None);
    }
    let reflectors = qr_factor(tall, height, width)?;
    let mut triangle = zeros(width, width)?;
    write_triangle(tall, width, width, &mut triangle);
    *tall = triangle;
    Ok(Some(reflectors))
}

/// Writes the singular vectors of a matrix `[height, width]`, or of its transpose if `wide` is true. `found` has the vectors of the
/// bidiagonal matrix. If the matrix was first made triangular, `q_reflectors` has the reflections that did this.
fn write_vectors_of_halves<T: Float>(
    reduced: &Bidiagonal<T>,
    found: &SingularTriplets<T>,
    q_reflectors: Option<Reflectors<T>>,
    [height, width]: [usize; 2],
    wide: bool,
    out: Vectors<'_, T>,
) -> Result<(), Failure> {
    let count = if out.full { height } else { width };
    let [reduced_rows, size] = if q_reflectors.is_some() { [width; 2] } else { [height, count] };
    let right = multiply_by_vectors(&reduced.right, &found.right, [width; 3])?;
    let left = multiply_by_vectors(&reduced.left, &found.left, [width, reduced_rows, size])?;
    let (left, right) = (left.as_slice().unwrap_or_default(), right.as_slice().unwrap_or_default());
    let long = match q_reflectors {
        Some(q) => Cow::Owned(multiply_leading_columns(&q.product(count)?, left, [height, count, width])?),
        None => Cow::Borrowed(left),
    };
    let (u, v, rows, columns) = if wide { (right, &*long, height, count) } else { (&*long, right, width, width) };
    out.u.copy_from_slice(u);
    copy_transposed(Rows { data: v, stride: columns }, (rows, columns), out.vh, rows);
    Ok(())
}

/// Returns the product of the reflections and a matrix `[rows, columns]`. The first `count` columns of this matrix are the vectors in
/// `vectors`, in reverse order. Its other columns are columns of the identity.
fn multiply_by_vectors<T: Float>(
    reflectors: &Reflectors<T>,
    vectors: &[T],
    [count, rows, columns]: [usize; 3],
) -> Result<Tensor<T>, Failure> {
    let mut out = zeros(rows, columns)?;
    for i in count..columns {
        out[i * columns + i] = T::ONE;
    }
    let descending: Vec<T> = vectors.chunks_exact(count).rev().flatten().copied().collect();
    copy_transposed(Rows { data: &descending, stride: count }, (count, count), &mut out, columns);
    reflectors.multiply(out, columns)
}

/// Computes the singular values and vectors of an upper bidiagonal matrix by implicit QR steps. If the matrix has one more column than
/// rows, a row of zeros is appended. The steps do not mix this row with other rows.
fn small_triplets<T: Float>(diagonal: &mut [T], superdiagonal: &mut [T]) -> Result<SingularTriplets<T>, Failure> {
    let (count, order) = (diagonal.len(), superdiagonal.len() + 1);
    let mut square = zeros(order, 1)?;
    square[..count].copy_from_slice(diagonal);
    let mut sides = SideSweeps::default();
    diagonalize(&mut square, superdiagonal, Some(&mut sides))?;
    let mut sources = descending(&square[..count]);
    sources.reverse();
    let values = sources.iter().map(|source| abs(square[source.0])).collect();
    let mut rows = zeros(order, order)?;
    for i in 0..order {
        rows[i * order + i] = T::ONE;
    }
    let mut left = Panels::of_columns(&rows, order, order)?;
    let mut right = Panels::of_columns(&rows, order, order)?;
    left.rotate(&sides.left);
    right.rotate(&sides.right);
    left.write_rows(&sources, &mut rows);
    let left = rows.chunks_exact(order).take(count).flat_map(|row| &row[..count]).copied().collect();
    for (i, sign) in &mut sources {
        *sign = if square[*i] < T::ZERO { -T::ONE } else { T::ONE };
    }
    right.write_rows(&sources, &mut rows);
    Ok(SingularTriplets { values, left, right: rows })
}

/// Returns the indices of the elements of `diagonal` in descending order of their magnitudes. Each index is paired with the factor 1,
/// because [`Panels`] multiplies vectors by a factor.
fn descending<T: Float>(diagonal: &[T]) -> Vec<(usize, T)> {
    let mut sources: Vec<(usize, T)> = (0..diagonal.len()).map(|i| (i, T::ONE)).collect();
    let compare = |x: T, y: T| abs(y).partial_cmp(&abs(x)).unwrap_or(std::cmp::Ordering::Equal);
    sources.sort_by(|x, y| compare(diagonal[x.0], diagonal[y.0]));
    sources
}

/// Multiplies the first `width` columns of Q, a matrix `[height, count]`, by the matrix `small`, `[width, width]`. Returns the result, with
/// the other columns of Q unchanged.
fn multiply_leading_columns<T: Float>(
    q: &[T],
    small: &[T],
    [height, count, width]: [usize; 3],
) -> Result<Vec<T>, Failure> {
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

/// Returns the transposed matrix.
fn transposed<T: Float>(x: &[T], [rows, columns]: [usize; 2]) -> Result<Vec<T>, Failure> {
    let mut out = zeros(columns, rows)?;
    for (i, row) in x.chunks_exact(columns.max(1)).enumerate() {
        for (j, &x) in row.iter().enumerate() {
            out[j * rows + i] = x;
        }
    }
    Ok(out)
}
