//! The QR decomposition by Householder reflections (Golub and Van Loan, "Matrix Computations", section 5.2).

use wengert_macros::precompiled;
use wengert_tensor::Float;

use super::arithmetic::{add_scaled, zeros};
use super::failure::Failure;
use super::reflectors::{BLOCK, MIN_BLOCKED, Reflectors, matrix_from_vec, reflector, subtract_matrix};
use crate::simd::vectorized;

/// The number of matrix elements from which columns are factored in blocks, if there are more than [`BLOCK`] rows and columns.
const MIN_BLOCKED_ELEMENTS: usize = MIN_BLOCKED * MIN_BLOCKED;

/// Writes the factors Q `[rows, width]` and R `[width, columns]` of a matrix to `q` and `r`. `sizes` is `[rows, columns, width]`.
///
/// # Errors
///
/// The errors of [`qr_factor`].
#[precompiled]
pub(crate) fn qr<T: Float>(a: &[T], sizes: [usize; 3], q: &mut [T], r: &mut [T]) -> Result<(), Failure> {
    let [rows, columns, width] = sizes;
    let mut a = a.to_vec();
    q.copy_from_slice(&qr_factor(&mut a, rows, columns)?.product(width)?);
    write_triangle(&a, columns, width, r);
    Ok(())
}

/// Replaces the upper triangle of `a`, a matrix `[rows, columns]`, by R, and returns the reflections whose product is Q. The elements below
/// the diagonal are arbitrary afterwards.
///
/// The diagonal of R has the signs of LAPACK's `geqrf`.
pub(crate) fn qr_factor<T: Float>(a: &mut [T], rows: usize, columns: usize) -> Result<Reflectors<T>, Failure> {
    let mut reflectors = Reflectors::new(rows, rows.min(columns))?;
    if rows.saturating_mul(columns) >= MIN_BLOCKED_ELEMENTS && rows.min(columns) > BLOCK {
        factor_blocks(a, rows, columns, &mut reflectors)?;
    } else {
        vectorized(
            #[inline(always)]
            || factor_columns(a, rows, columns, 0, &mut reflectors),
        );
    }
    Ok(reflectors)
}

/// Factors panels of columns, and appends the reflections to `reflectors`. Each panel's reflections are applied to the
/// remaining columns by matrix products.
fn factor_blocks<T: Float>(
    a: &mut [T],
    rows: usize,
    columns: usize,
    reflectors: &mut Reflectors<T>,
) -> Result<(), Failure> {
    let steps = rows.min(columns);
    for start in (0..steps).step_by(BLOCK) {
        let (width, height) = (BLOCK.min(steps - start), rows - start);
        let end = start + width;
        let mut panel = zeros(height, width)?;
        for (panel, a) in panel.chunks_exact_mut(width).zip(a[start * columns..].chunks_exact(columns)) {
            panel.copy_from_slice(&a[start..end]);
        }
        vectorized(
            #[inline(always)]
            || factor_columns(&mut panel, height, width, start, reflectors),
        );
        for (panel, a) in panel.chunks_exact(width).zip(a[start * columns..].chunks_exact_mut(columns)) {
            a[start..end].copy_from_slice(panel);
        }
        if end == columns {
            break;
        }
        let mut rest = zeros(height, columns - end)?;
        for (rest, a) in rest.chunks_exact_mut(columns - end).zip(a[start * columns..].chunks_exact(columns)) {
            rest.copy_from_slice(&a[end..]);
        }
        let block = reflectors.block(start..end, start..rows)?;
        let change = block.apply(&matrix_from_vec(rest, height, columns - end)?, true)?;
        subtract_matrix(&mut a[start * columns + end..], columns, &change);
    }
    Ok(())
}

/// Factors the columns in order, and appends the reflections to `reflectors`. The vector of the reflection for column
/// `j` is zero before element `first + j`.
#[inline(always)]
fn factor_columns<T: Float>(a: &mut [T], rows: usize, columns: usize, first: usize, reflectors: &mut Reflectors<T>) {
    let mut v = vec![T::ZERO; rows];
    let mut sums = vec![T::ZERO; columns];
    for j in 0..rows.min(columns) {
        let v = &mut v[j..];
        for (v, row) in v.iter_mut().zip(a[j * columns..].chunks_exact(columns)) {
            *v = row[j];
        }
        let (factor, image) = reflector(v, 0);
        a[j * columns + j] = image;
        reflectors.push(first + j, v, factor);
        if factor == T::ZERO || j + 1 == columns {
            continue;
        }
        let sums = &mut sums[j + 1..];
        sums.fill(T::ZERO);
        for (&v, row) in v.iter().zip(a[j * columns..].chunks_exact(columns)) {
            add_scaled(sums, factor * v, &row[j + 1..]);
        }
        for (&v, row) in v.iter().zip(a[j * columns..].chunks_exact_mut(columns)) {
            add_scaled(&mut row[j + 1..], -v, sums);
        }
    }
}

/// Writes the first `height` rows of the triangle R in `a` to `out`, with zeros below the diagonal.
pub(crate) fn write_triangle<T: Float>(a: &[T], columns: usize, height: usize, out: &mut [T]) {
    if columns == 0 {
        return;
    }
    for (i, (out, a)) in out.chunks_exact_mut(columns).zip(a.chunks_exact(columns)).take(height).enumerate() {
        let diagonal = i.min(columns);
        out[..diagonal].fill(T::ZERO);
        out[diagonal..].copy_from_slice(&a[diagonal..]);
    }
}
