//! The pseudoinverse, and the solution of least-squares problems that has the smallest norm.

use wengert_macros::precompiled;
use wengert_tensor::Float;

use super::arithmetic::{abs, add_scaled, maximum, zeros};
use super::eigen::eigh;
use super::failure::Failure;
use super::products::product;
use super::reflectors::reflector;
use super::singular::{Vectors, svd};

/// The bound up to which singular values count as zeros: the larger of an absolute bound and a relative one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cutoff {
    pub(crate) absolute: f64,
    /// The bound divided by the largest singular value.
    pub(crate) relative: f64,
}

impl Cutoff {
    /// Returns the bound for a matrix whose largest singular value is `largest`.
    fn bound<T: Float>(self, largest: T) -> T {
        T::from_f64(self.absolute.max(self.relative * largest.to_f64()))
    }
}

/// Writes the pseudoinverse `[columns, rows]` of a matrix `[rows, columns]`, and returns the rank: the number of singular values above the
/// bound of `cutoff`. Returns an error where [`svd`] does.
#[precompiled]
pub(crate) fn pseudoinverse<T: Float>(
    a: &[T],
    sizes: [usize; 2],
    cutoff: Cutoff,
    out: &mut [T],
) -> Result<usize, Failure> {
    let [rows, columns] = sizes;
    let count = rows.min(columns);
    let (mut u, mut vh) = (zeros(rows, count)?, zeros(count, columns)?);
    let mut values = zeros(count, 1)?;
    svd(a, [rows, columns], &mut values, Some(Vectors { u: &mut u, vh: &mut vh, full: false }))?;
    let bound = cutoff.bound(values.first().copied().unwrap_or(T::ZERO));
    let rank = values.iter().filter(|&&value| value > bound).count();
    let mut v = zeros(columns, rank)?;
    for (k, row) in vh.chunks_exact(columns.max(1)).take(rank).enumerate() {
        for (j, &x) in row.iter().enumerate() {
            v[j * rank + k] = x / values[k];
        }
    }
    let mut transposed = zeros(rank, rows)?;
    for (i, row) in u.chunks_exact(count.max(1)).enumerate() {
        for (k, &x) in row.iter().take(rank).enumerate() {
            transposed[k * rows + i] = x;
        }
    }
    out.copy_from_slice(&product(&v, &transposed, [columns, rank, rows])?);
    Ok(rank)
}

/// Writes the pseudoinverse of a symmetric matrix. Only the matrix's lower triangle is read. Eigenvalues with a magnitude up to the bound of
/// `cutoff` count as zeros. Returns an error where [`eigh`] does.
#[precompiled]
pub(crate) fn symmetric_pseudoinverse<T: Float>(
    a: &[T],
    order: usize,
    cutoff: Cutoff,
    out: &mut [T],
) -> Result<(), Failure> {
    let (mut values, mut vectors) = (zeros(order, 1)?, zeros(order, order)?);
    eigh(a, false, &mut values, Some(&mut vectors))?;
    let bound = cutoff.bound(values.iter().fold(T::ZERO, |all, &value| maximum(all, abs(value))));
    let inverses: Vec<T> = values.iter().map(|&x| if abs(x) > bound { T::ONE / x } else { T::ZERO }).collect();
    let mut transposed = zeros(order, order)?;
    for (i, row) in vectors.chunks_exact(order.max(1)).enumerate() {
        for (k, &x) in row.iter().enumerate() {
            transposed[k * order + i] = x * inverses[k];
        }
    }
    out.copy_from_slice(&product(&vectors, &transposed, [order, order, order])?);
    Ok(())
}

/// Writes the X that minimizes |A X - B|. If several X minimize it, writes the one with the smallest norm. Returns the rank of A. The shapes
/// are A `[m, n]`, B `[m, k]` and X `[n, k]`.
///
/// If m ≥ n > 0, and the rank of A is full by a safe margin, computes X by QR with column pivoting. Otherwise computes X by singular values.
/// Returns an error where [`svd`] does.
#[precompiled]
pub(crate) fn least_squares<T: Float>(
    a: &[T],
    b: &[T],
    sizes: [usize; 3],
    cutoff: Cutoff,
    out: &mut [T],
) -> Result<usize, Failure> {
    let [m, n, k] = sizes;
    if m >= n && n > 0 && solve_by_pivoted_qr(a, b, [m, n, k], cutoff, out)? {
        return Ok(n);
    }
    let mut inverse = zeros(n, m)?;
    let rank = pseudoinverse(a, [m, n], cutoff, &mut inverse)?;
    out.copy_from_slice(&product(&inverse, b, [n, m, k])?);
    Ok(rank)
}

/// Writes the solution of the least-squares problem to `out`, by QR with column pivoting. Returns false if A may have
/// less than full rank. Then `out` is not the solution. Returns an error if an element of A is NaN or infinite, or
/// there is not enough memory.
fn solve_by_pivoted_qr<T: Float>(
    a: &[T],
    b: &[T],
    [m, n, k]: [usize; 3],
    cutoff: Cutoff,
    out: &mut [T],
) -> Result<bool, Failure> {
    // Only the check for NaN and infinity matters here.
    super::arithmetic::largest_magnitude(a)?;
    let width = n.checked_add(k).ok_or(Failure::Memory)?;
    let mut augmented = zeros(m, width)?;
    for (i, row) in augmented.chunks_exact_mut(width).enumerate() {
        row[..n].copy_from_slice(&a[i * n..][..n]);
        row[n..].copy_from_slice(&b[i * k..][..k]);
    }
    let mut permutation: Vec<usize> = (0..n).collect();
    let (mut v, mut sums) = (zeros(m, 1)?, zeros(width, 1)?);
    for j in 0..n {
        sums.fill(T::ZERO);
        for row in augmented[j * width..].chunks_exact(width) {
            sums[j..n].iter_mut().zip(&row[j..n]).for_each(|(sum, &x)| *sum = *sum + x * x);
        }
        let pivot = (j..n).fold(j, |best, column| if sums[column] > sums[best] { column } else { best });
        if pivot != j {
            permutation.swap(j, pivot);
            augmented.chunks_exact_mut(width).for_each(|row| row.swap(j, pivot));
        }
        let v = &mut v[j..];
        v.iter_mut().zip(augmented[j * width..].chunks_exact(width)).for_each(|(v, row)| *v = row[j]);
        let (factor, image) = reflector(v, 0);
        // Elements on the diagonal of R may be larger than the singular values. Except in contrived cases, the factor n covers this
        // difference.
        let bound = cutoff.bound(abs(augmented[0])).to_f64() * n as f64;
        if abs(image).to_f64() <= bound {
            return Ok(false);
        }
        sums.fill(T::ZERO);
        for (&v, row) in v.iter().zip(augmented[j * width..].chunks_exact(width)) {
            add_scaled(&mut sums[j + 1..], factor * v, &row[j + 1..]);
        }
        for (&v, row) in v.iter().zip(augmented[j * width..].chunks_exact_mut(width)) {
            add_scaled(&mut row[j + 1..], -v, &sums[j + 1..]);
        }
        augmented[j * width + j] = image;
    }
    for j in (0..n).rev() {
        let (above, row) = augmented.split_at_mut(j * width);
        let row = &mut row[..width];
        let divisor = row[j];
        row[n..].iter_mut().for_each(|x| *x = *x / divisor);
        for above in above.chunks_exact_mut(width) {
            let factor = -above[j];
            add_scaled(&mut above[n..], factor, &row[n..]);
        }
        out[permutation[j] * k..][..k].copy_from_slice(&row[n..]);
    }
    Ok(true)
}
