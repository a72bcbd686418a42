//! Eigenvalues and eigenvectors of square matrices that need not be symmetric. They are complex numbers, pairs of a real and an imaginary
//! part. The computation is in f64, also for matrices of f32.

use num_complex::Complex;
use wengert_macros::precompiled;
use wengert_tensor::Float;

use super::arithmetic::{largest_magnitude, scale, zeros};
use super::failure::Failure;
use super::schur::Schur;

/// A vector is divided by its largest element when this element exceeds the limit, so that no sum of products overflows.
const MAX_MAGNITUDE: f64 = 1e100;

/// The smallest divisor. A quotient of complex numbers needs the square of the divisor, which must not underflow.
const MIN_DIVISOR: f64 = 1e-150;

/// Writes the eigenvalues of a square matrix to `values`, as `[n, 2]`, and the eigenvectors as columns to `vectors`, `[n, n, 2]`, if given.
/// Eigenvalues of a conjugate pair are adjacent, the positive imaginary part first. An eigenvector has the length 1, and the largest element
/// of a complex one is real and positive.
///
/// # Errors
///
/// If an element is NaN or infinite, the iteration does not converge, or there is not enough memory.
#[precompiled]
pub(crate) fn eig<T: Float>(a: &[T], values: &mut [T], vectors: Option<&mut [T]>) -> Result<(), Failure> {
    let n = values.len() / 2;
    let scale = scale(largest_magnitude(a)?).to_f64();
    let (mut t, mut row) = (zeros(n, n)?, zeros(1, n)?);
    t.iter_mut().zip(a).for_each(|(t, a)| *t = a.to_f64() * scale);
    let mut q = if vectors.is_some() { zeros(n, n)? } else { Vec::new() };
    q.iter_mut().step_by(n + 1).for_each(|q| *q = 1.0);
    let mut schur = Schur { order: n, t: &mut t, q: &mut q, row: &mut row };
    schur.reduce()?;
    let found = eigenvalues(&schur)?;
    for (out, value) in values.as_chunks_mut::<2>().0.iter_mut().zip(&found) {
        *out = [value.re, value.im].map(|x| T::from_f64(x / scale));
    }
    if let Some(out) = vectors {
        let mut x = complex_zeros(n)?;
        let mut first = 0;
        while first < n {
            let is_pair = found[first].im != 0.0;
            eigenvector(&schur, found[first], first, &mut x);
            write_vector(&schur, &x, is_pair, first, out);
            first += 1 + usize::from(is_pair);
        }
    }
    Ok(())
}

/// Returns `n` complex zeros, or an error if there is not enough memory.
fn complex_zeros(n: usize) -> Result<Vec<Complex<f64>>, Failure> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(n).map_err(|_| Failure::Memory)?;
    zeros.resize(n, Complex::ZERO);
    Ok(zeros)
}

/// Returns the eigenvalues of a Schur form, in the order of its diagonal.
fn eigenvalues(schur: &Schur<'_>) -> Result<Vec<Complex<f64>>, Failure> {
    let mut values = complex_zeros(schur.order)?;
    let mut row = 0;
    while row < schur.order {
        if begins_block(schur, row) {
            let [a, b, c, d] = schur.block(row);
            let half = (a - d) / 2.0;
            let value = Complex::new(d + half, (-(half * half + b * c)).sqrt());
            (values[row], values[row + 1]) = (value, value.conj());
            row += 2;
        } else {
            values[row] = Complex::new(schur.t[row * (schur.order + 1)], 0.0);
            row += 1;
        }
    }
    Ok(values)
}

/// Returns true if a block of two rows begins with the row `row`.
fn begins_block(schur: &Schur<'_>, row: usize) -> bool {
    row + 1 < schur.order && schur.block(row)[2] != 0.0
}

/// An equation with two unknowns: the two coefficients, and the right side.
type Equation = (Complex<f64>, Complex<f64>, Complex<f64>);

/// Writes the eigenvector x of the Schur form T for the eigenvalue λ of the block that begins with the row `first`: (T - λ) x = 0. The
/// elements after the block are 0. The elements before it are computed by back substitution, from the last row to the first.
fn eigenvector(schur: &Schur<'_>, value: Complex<f64>, first: usize, x: &mut [Complex<f64>]) {
    let n = schur.order;
    x.fill(Complex::ZERO);
    x[first] = Complex::ONE;
    if value.im != 0.0 {
        let [a, b, c, d] = schur.block(first);
        // Either row of (block - λ) x = 0 determines x up to a factor. The row with the larger off-diagonal element loses fewer digits.
        (x[first], x[first + 1]) = if b.abs() >= c.abs() { (b.into(), value - a) } else { (value - d, c.into()) };
    }
    let size = schur.t.iter().fold(0.0, |size: f64, t| size.max(t.abs()));
    // Divisors of 0, or near 0, occur if the eigenvalue repeats. LAPACK also replaces them by a small number.
    let least = (f64::EPSILON * size).max(MIN_DIVISOR);
    let divisor = |z: Complex<f64>| if z.l1_norm() < least { Complex::from(least) } else { z };
    // Solves two equations, each with two coefficients and a right side. The first coefficient of the first equation must be at least as
    // large as the first coefficient of the second equation.
    let solve_pair = |(a, b, upper): Equation, (c, d, lower): Equation| {
        let factor = c / divisor(a);
        let y = (lower - factor * upper) / divisor(d - factor * b);
        ((upper - b * y) / divisor(a), y)
    };
    let sum_of_known = |row: usize, from: usize, x: &[Complex<f64>]| -> Complex<f64> {
        schur.t[row * n..][from..n].iter().zip(&x[from..]).map(|(&t, x)| x * t).sum()
    };
    let mut row = first;
    while row > 0 {
        let solved_from = row;
        row -= 1;
        if row > 0 && begins_block(schur, row - 1) {
            let (upper, lower) = (-sum_of_known(row - 1, row + 1, x), -sum_of_known(row, row + 1, x));
            let [a, b, c, d] = schur.block(row - 1);
            let (first, second) = ((a - value, b.into(), upper), (c.into(), d - value, lower));
            (x[row - 1], x[row]) =
                if first.0.l1_norm() >= c.abs() { solve_pair(first, second) } else { solve_pair(second, first) };
            row -= 1;
        } else {
            x[row] = -sum_of_known(row, row + 1, x) / divisor(schur.t[row * (n + 1)] - value);
        }
        let largest = x[row..solved_from].iter().fold(0.0, |largest: f64, x| largest.max(x.l1_norm()));
        if largest > MAX_MAGNITUDE {
            x[row..].iter_mut().for_each(|x| *x /= largest);
        }
    }
}

/// Writes the vector Q x, divided by its length, to the column `column`. For a pair, the next column gets the conjugate vector.
fn write_vector<T: Float>(schur: &Schur<'_>, x: &[Complex<f64>], is_pair: bool, column: usize, out: &mut [T]) {
    let n = schur.order;
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.l1_norm()));
    let product = |row: &[f64]| row.iter().zip(x).map(|(&q, x)| x / largest * q).sum::<Complex<f64>>();
    let elements = || schur.q.chunks_exact(n).map(product);
    let length = elements().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let largest_element = elements()
        .enumerate()
        .fold((0, Complex::ZERO), |top, (row, z)| if z.norm_sqr() > top.1.norm_sqr() { (row, z) } else { top });
    let phase = if is_pair { largest_element.1.conj() / largest_element.1.norm() } else { Complex::ONE };
    let rows = out.chunks_exact_mut(2 * n).map(|row| row.as_chunks_mut::<2>().0);
    for ((row, out), z) in rows.enumerate().zip(elements()) {
        let mut z = z * phase / length;
        if is_pair && row == largest_element.0 {
            z.im = 0.0;
        }
        out[column] = [z.re, z.im].map(T::from_f64);
        if is_pair {
            out[column + 1] = [z.re, -z.im].map(T::from_f64);
        }
    }
}
