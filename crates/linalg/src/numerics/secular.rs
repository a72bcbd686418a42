//! The secular equation: the eigenvalues and eigenvectors of a diagonal matrix plus a matrix of rank one.
//!
//! The eigenvalues of D + ρ z zᵀ are the roots of 1/ρ + Σ zᵢ² / (dᵢ - λ). Each is computed as the distance from the nearest dᵢ, by rational
//! interpolation (Li, "Solving secular equations stably and efficiently", 1993). The z for which the computed roots are the exact
//! eigenvalues gives orthogonal vectors (Gu and Eisenstat, "A stable and efficient algorithm for the rank-one modification of the symmetric
//! eigenproblem", 1994).
//!
//! With `SQUARES`, the matrix is D² + z zᵀ. The roots and differences are then computed from d and σ = √λ. The numbers σ are the singular
//! values of a matrix that consists of the row z and diag(d). The source is Gu and Eisenstat, "A divide-and-conquer algorithm for the
//! bidiagonal SVD", 1995.

use wengert_tensor::{Float, each_part};

use super::arithmetic::{LANES, abs, dot, norm, total, with_sign, zeros};
use super::failure::Failure;
use crate::simd::vectorized;

/// The number of steps after which the search for a root counts as failed. Usually, three to six steps are enough.
const MAX_STEPS: usize = 200;

/// The number of roots in a task of the thread pool.
const TASK: usize = 16;

/// The smallest number of roots that several threads compute.
const MIN_PARALLEL: usize = 128;

/// A matrix diag(d) + ρ z zᵀ. With `SQUARES`, it is diag(d)² + z zᵀ.
#[derive(Clone, Copy)]
pub(super) struct RankOne<'a, T> {
    /// The diagonal d, in ascending order and without equal elements. With `SQUARES`, no element is negative.
    pub(super) poles: &'a [T],
    /// The vector z. It has no zeros.
    pub(super) z: &'a [T],
    /// The factor ρ > 0. With `SQUARES` it is 1.
    pub(super) factor: T,
}

/// The roots of a secular equation, and their differences from the poles d (the elements of the diagonal). With `SQUARES`, the roots are
/// the numbers σ.
pub(super) struct Roots<T> {
    pub(super) roots: Vec<T>,
    /// Row j has the differences dᵢ - λⱼ of the poles d and the root λⱼ, with a small relative error. With `SQUARES`, it has dᵢ² - σⱼ².
    pub(super) differences: Vec<T>,
    /// The vector z of the matrix whose exact eigenvalues are the computed roots. It gives orthogonal eigenvectors.
    pub(super) z: Vec<T>,
}

/// Computes all roots of the secular equation of `matrix`, in ascending order, with the differences of poles and roots
/// and the corrected vector z. Returns an error if an iteration does not converge, or there is not enough memory.
pub(super) fn roots<T: Float, const SQUARES: bool>(matrix: RankOne<'_, T>) -> Result<Roots<T>, Failure> {
    let count = matrix.poles.len();
    let (mut roots, mut differences) = (zeros(count, 1)?, zeros(count, count)?);
    let mut converged = vec![true; count.div_ceil(TASK)];
    let rows = differences.chunks_mut((TASK * count).max(1));
    let tasks = rows.zip(roots.chunks_mut(TASK)).zip(&mut converged).collect();
    each_part(tasks, count >= MIN_PARALLEL, |task, ((rows, roots), converged)| {
        vectorized(
            #[inline(always)]
            || {
                for (k, (row, root)) in rows.chunks_exact_mut(count).zip(roots).enumerate() {
                    match find_root::<T, SQUARES>(matrix, task * TASK + k, row) {
                        Some(found) => *root = found,
                        None => *converged = false,
                    }
                }
            },
        );
    });
    if converged.contains(&false) {
        return Err(Failure::NoConvergence);
    }
    let mut z = zeros(count, 1)?;
    vectorized(
        #[inline(always)]
        || fill_exact::<T, SQUARES>(matrix, &differences, &mut z),
    );
    Ok(Roots { roots, differences, z })
}

/// Returns d - λ for the pole d and λ = `origin` + `shift`. With `SQUARES`, returns d² - λ².
#[inline(always)]
fn difference<T: Float, const SQUARES: bool>(pole: T, (origin, shift): (T, T)) -> T {
    let difference = (pole - origin) - shift;
    if SQUARES { difference * ((pole + origin) + shift) } else { difference }
}

/// Returns the sums of z² / (d - λ) and of z² / (d - λ)² over all poles d. `at` is λ as an origin and a shift.
#[inline(always)]
fn sums<T: Float, const SQUARES: bool>(poles: &[T], z: &[T], at: (T, T)) -> (T, T) {
    let (mut values, mut slopes) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    let (mut pole_chunks, mut z_chunks) = (poles.chunks_exact(LANES), z.chunks_exact(LANES));
    for (poles, z) in pole_chunks.by_ref().zip(z_chunks.by_ref()) {
        for lane in 0..LANES {
            let quotient = z[lane] / difference::<T, SQUARES>(poles[lane], at);
            values[lane] = values[lane] + z[lane] * quotient;
            slopes[lane] = slopes[lane] + quotient * quotient;
        }
    }
    let (mut value, mut slope) = (T::ZERO, T::ZERO);
    for (&pole, &z) in pole_chunks.remainder().iter().zip(z_chunks.remainder()) {
        let quotient = z / difference::<T, SQUARES>(pole, at);
        value = value + z * quotient;
        slope = slope + quotient * quotient;
    }
    if poles.len() < LANES {
        return (value, slope);
    }
    (total(values) + value, total(slopes) + slope)
}

/// Computes the root between the poles `index` and `index + 1`, or above the last pole. Writes [`difference`], for each pole and this
/// root, to `differences`. Returns `None` if the iteration does not converge.
#[inline(always)]
fn find_root<T: Float, const SQUARES: bool>(matrix: RankOne<'_, T>, index: usize, differences: &mut [T]) -> Option<T> {
    let RankOne { poles, z, factor } = matrix;
    let (half, last) = (T::from_f64(0.5), index + 1 == poles.len());
    let mut origin = poles[index];
    let gap = if last { reach::<T, SQUARES>(matrix) } else { poles[index + 1] - origin };
    let (mut low, mut high) = (T::ZERO, gap);
    let mut shift = if poles.len() == 1 { gap } else { gap * half };
    // The function that interpolates the secular function has poles at the indices `split - 1` and `split`.
    let split = if last { index } else { index + 1 };
    let (mut previous, mut separate) = (T::MAX, last);
    let mut steps = if poles.len() == 1 { 0 } else { MAX_STEPS };
    while steps > 0 {
        let below = sums::<T, SQUARES>(&poles[..split], &z[..split], (origin, shift));
        let above = sums::<T, SQUARES>(&poles[split..], &z[split..], (origin, shift));
        let (value, slope) = (T::ONE / factor + below.0 + above.0, below.1 + above.1);
        let root = origin + shift;
        let slack = abs(shift) * slope * if SQUARES { root + root } else { T::ONE };
        let size = T::from_f64(8.0) * (abs(below.0) + abs(above.0)) + T::ONE / factor + slack;
        if abs(value) <= T::EPSILON * size {
            break;
        }
        if value < T::ZERO {
            low = shift;
        } else {
            high = shift;
        }
        if steps == MAX_STEPS && !last && value < T::ZERO {
            // The root is nearer to the pole above it, so this pole becomes the origin.
            (origin, shift, low, high) = (poles[index + 1], shift - gap, shift - gap, T::ZERO);
        }
        let mut change = change::<T, SQUARES>(matrix, split, (origin, shift), [below, above], (separate, last));
        if SQUARES {
            change = change / (root + (root * root + change).sqrt());
        }
        let mut next = shift + change;
        if !(next > low && next < high) {
            next = low + (high - low) * half;
        }
        if next == shift || next == low || next == high {
            break;
        }
        if !last && abs(value) > previous * T::from_f64(0.1) {
            separate = !separate;
        }
        (previous, shift) = (abs(value), next);
        steps -= 1;
        if steps == 0 {
            return None;
        }
    }
    for (out, &pole) in differences.iter_mut().zip(poles) {
        *out = difference::<T, SQUARES>(pole, (origin, shift));
    }
    Some(origin + shift)
}

/// Returns the step from λ to the zero of a function that approximates the secular function. It has only the poles with the indices
/// `split - 1` and `split`, and the same value and slope at λ. `below` and `above` are pairs of a value and a slope at λ: the sums of the
/// terms of the poles before index `split`, and of the other poles. If `separate` is true, the terms of the two poles have these slopes at
/// λ. Otherwise the term of the pole at the origin is the same as in the secular function.
#[inline(always)]
fn change<T: Float, const SQUARES: bool>(
    matrix: RankOne<'_, T>,
    split: usize,
    at: (T, T),
    [below, above]: [(T, T); 2],
    (separate, last): (bool, bool),
) -> T {
    let RankOne { poles, z, factor } = matrix;
    let (value, slope) = (T::ONE / factor + below.0 + above.0, below.1 + above.1);
    let ends = [split - 1, split].map(|pole| difference::<T, SQUARES>(poles[pole], at));
    let square = if separate {
        value - ends[0] * below.1 - ends[1] * above.1
    } else {
        let (at_origin, other) = if at.0 == poles[split - 1] { (0, 1) } else { (1, 0) };
        let quotient = z[split - 1 + at_origin] / ends[at_origin];
        value - ends[other] * slope - (ends[at_origin] - ends[other]) * quotient * quotient
    };
    interpolated(ends, (value, slope), square, last)
}

/// Returns the distance from the last pole to an upper bound of the last root. If there is a single pole, the bound is the root.
#[inline(always)]
fn reach<T: Float, const SQUARES: bool>(matrix: RankOne<'_, T>) -> T {
    let square = dot(matrix.z, matrix.z) * matrix.factor;
    let pole = matrix.poles[matrix.poles.len() - 1];
    if SQUARES { square / (pole + (pole * pole + square).sqrt()) } else { square }
}

/// Returns the step from λ to the zero of a function with two poles. The function has the value and the slope of the secular function at λ.
/// `ends` has the differences of the poles and λ, and `square` is the function's value far from the poles. `last` is true if λ is above both
/// poles.
#[inline(always)]
fn interpolated<T: Float>(ends: [T; 2], (value, slope): (T, T), square: T, last: bool) -> T {
    let two = T::ONE + T::ONE;
    let product = ends[0] * ends[1];
    let (linear, constant) = ((ends[0] + ends[1]) * value - product * slope, product * value);
    let root = abs(linear * linear - two * two * constant * square).sqrt();
    let change = match (last, linear > T::ZERO) {
        (false, true) => two * constant / (linear + root),
        (false, false) => (linear - root) / (two * square),
        (true, true) => (linear + root) / (two * abs(square)),
        (true, false) => two * constant / (linear - root),
    };
    // If the change has the wrong direction or is NaN, a Newton step replaces it.
    if value * change < T::ZERO { change } else { -value / slope }
}

/// Writes the vector z for which the computed roots are the exact eigenvalues. zᵢ² is a product of quotients of differences (Löwner's formula).
#[inline(always)]
fn fill_exact<T: Float, const SQUARES: bool>(matrix: RankOne<'_, T>, differences: &[T], z: &mut [T]) {
    let poles = matrix.poles;
    let count = poles.len();
    z.fill(T::ONE);
    for (j, row) in differences.chunks_exact(count.max(1)).enumerate() {
        let current = poles[j];
        for part in [0..j, j + 1..count] {
            for ((z, &x), &pole) in z[part.clone()].iter_mut().zip(&row[part.clone()]).zip(&poles[part]) {
                *z = *z * (x / difference::<T, SQUARES>(pole, (current, T::ZERO)));
            }
        }
        z[j] = z[j] * row[j];
    }
    for (z, &given) in z.iter_mut().zip(matrix.z) {
        *z = with_sign(abs(*z).sqrt(), given);
    }
}

/// Divides the elements by their Euclidean length.
#[inline(always)]
pub(super) fn normalize<T: Float>(x: &mut [T]) {
    let factor = T::ONE / norm(x);
    for x in x {
        *x = *x * factor;
    }
}
