//! The matrix exponential by scaling and squaring.
//!
//! exp(A) = p(A / 2ˢ)^(2ˢ), where p is the Taylor polynomial. Paterson and Stockmeyer's scheme computes a polynomial of degree q² with
//! 2 (q - 1) products. The scaling s follows from norms of powers of A. An s that follows from ‖A‖ alone can be much too large. Sources:
//! Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential", 2009; Higham, "Functions of Matrices", section
//! 10.3.

use wengert_macros::precompiled;
use wengert_tensor::Float;

use super::arithmetic::{abs, maximum};
use super::failure::Failure;
use super::products::product;

/// The largest q. The Taylor polynomial has the degree q², which is at most 16.
const MAX_Q: usize = 4;

/// Writes exp(A) for a matrix `[n, n]`. All elements are NaN if an element of A is NaN or infinite, or if the 1-norm of A overflows.
///
/// # Errors
///
/// If there is not enough memory.
#[precompiled]
pub(crate) fn exponential<T: Float>(a: &[T], n: usize, out: &mut [T]) -> Result<(), Failure> {
    let norm = one_norm(a, n).to_f64();
    if !norm.is_finite() {
        out.fill(T::NAN);
        return Ok(());
    }
    let accurate = |q: usize, norm: f64| remainder_bound(q * q, norm) <= T::EPSILON.to_f64() / 2.0;
    let q = (1..MAX_Q).find(|&q| accurate(q, norm)).unwrap_or(MAX_Q);
    // A first scaling of A keeps its powers finite.
    let first_scaling = if norm > 1.0 { norm.log2().ceil() } else { 0.0 };
    let mut powers = vec![a.iter().map(|&x| scaled(x, -first_scaling)).collect::<Vec<T>>()];
    while powers.len() < q {
        powers.push(product(&powers[powers.len() - 1], &powers[0], [n, n, n])?);
    }
    let mut squarings = 0.0f64;
    if q == MAX_Q {
        let root_of_norm = |k: usize| one_norm(&powers[k - 1], n).to_f64().powf(1.0 / k as f64);
        // The norms of the 3rd and 4th powers bound all powers from the 6th on (Al-Mohy and Higham, theorem 4.2 with p = 3).
        let size = root_of_norm(1).min(root_of_norm(3).max(root_of_norm(4))) * first_scaling.exp2();
        while !accurate(q, size * (-squarings).exp2()) {
            squarings += 1.0;
        }
    }
    for (k, power) in powers.iter_mut().enumerate() {
        power.iter_mut().for_each(|x| *x = scaled(*x, (first_scaling - squarings) * (k + 1) as f64));
    }
    let mut result = polynomial(&powers, n)?;
    for _ in 0..squarings as usize {
        result = product(&result, &result, [n, n, n])?;
    }
    out.copy_from_slice(&result);
    Ok(())
}

/// Returns x times two to the power `exponent`. The exponent may be too large or too small for a floating-point number.
fn scaled<T: Float>(x: T, exponent: f64) -> T {
    let half = (exponent / 2.0).floor();
    T::from_f64(x.to_f64() * half.exp2() * (exponent - half).exp2())
}

/// Returns the 1-norm of a matrix with `n` columns: the largest sum of the magnitudes of a column.
fn one_norm<T: Float>(a: &[T], n: usize) -> T {
    let mut sums = vec![T::ZERO; n];
    for row in a.chunks_exact(n.max(1)) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = *sum + abs(x);
        }
    }
    sums.iter().fold(T::ZERO, |all, &sum| if sum.is_nan() { sum } else { maximum(all, sum) })
}

/// Returns a bound of the error of the Taylor polynomial of degree m for a matrix of norm θ: θ^(m+1) / (m+1)! e^(2θ). The error is relative
/// to e^(-θ), the smallest norm that the exponential can have.
fn remainder_bound(degree: usize, norm: f64) -> f64 {
    let term = (1..=degree + 1).fold(1.0, |term, k| term * norm / k as f64);
    term * (2.0 * norm).exp()
}

/// Returns the Taylor polynomial of degree q². `powers` has the powers A, …, A^q.
fn polynomial<T: Float>(powers: &[Vec<T>], n: usize) -> Result<Vec<T>, Failure> {
    let q = powers.len();
    let mut factorials = vec![1.0f64];
    for k in 1..=q * q {
        factorials.push(factorials[k - 1] / k as f64);
    }
    // Horner's scheme in A^q. Its coefficients are polynomials in A of degree below q, except for the first one, which is a number.
    let mut result: Vec<T> = powers[q - 1].iter().map(|&x| x * T::from_f64(factorials[q * q])).collect();
    for block in (0..q).rev() {
        if block + 1 < q {
            result = product(&result, &powers[q - 1], [n, n, n])?;
        }
        for (k, power) in powers[..q - 1].iter().enumerate() {
            let factor = T::from_f64(factorials[block * q + k + 1]);
            result.iter_mut().zip(power).for_each(|(sum, &x)| *sum = *sum + factor * x);
        }
        for i in 0..n {
            result[i * n + i] = result[i * n + i] + T::from_f64(factorials[block * q]);
        }
    }
    Ok(result)
}
