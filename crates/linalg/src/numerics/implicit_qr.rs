//! Singular values of bidiagonal matrices by implicit QR steps, with high relative accuracy.
//!
//! A step without a shift computes every singular value, even the smallest, with a small relative error. A shift is used where it does
//! not harm this accuracy (Demmel and Kahan, "Accurate singular values of bidiagonal matrices", 1990).

use wengert_tensor::Float;

use super::arithmetic::{abs, maximum, minimum, rotation, smallest_normal, with_sign};
use super::failure::Failure;
use super::rotations::Sweeps;

/// The iteration counts as failed after this number of steps, times the number of singular values. Usually, two or three steps for each
/// value are enough.
const MAX_STEPS: usize = 100;

/// The rotations of the left and of the right singular vectors.
#[derive(Default)]
pub(crate) struct SideSweeps<T> {
    pub(crate) left: Sweeps<T>,
    pub(crate) right: Sweeps<T>,
}

/// Replaces the diagonal of an upper bidiagonal matrix by the singular values, which may be negative and are not
/// sorted. Overwrites `superdiagonal`. Records the rotations that give the singular vectors in `sides`, if given. Returns an
/// error if the iteration does not converge.
pub(crate) fn diagonalize<T: Float>(
    diagonal: &mut [T],
    superdiagonal: &mut [T],
    mut sides: Option<&mut SideSweeps<T>>,
) -> Result<(), Failure> {
    let Some(mut end) = diagonal.len().checked_sub(1) else { return Ok(()) };
    let tolerance = tolerance();
    let threshold = threshold(diagonal, superdiagonal, tolerance);
    let mut steps = MAX_STEPS * diagonal.len();
    let (mut block, mut reversed) = ((usize::MAX, 0), false);
    while end > 0 {
        let start = (0..end).rev().find(|&i| abs(superdiagonal[i]) <= threshold).map_or(0, |i| i + 1);
        if start > 0 {
            superdiagonal[start - 1] = T::ZERO;
        }
        if start == end {
            end -= 1;
            continue;
        }
        steps = steps.checked_sub(1).ok_or(Failure::NoConvergence)?;
        // A step moves small values to the end. So steps run towards the end of the block at which the diagonal element is smaller.
        if start > block.1 || end < block.0 || block.0 == usize::MAX {
            reversed = abs(diagonal[start]) < abs(diagonal[end]);
        }
        block = (start, end);
        let (d, e) = (&mut diagonal[start..=end], &mut superdiagonal[start..end]);
        if reversed {
            d.reverse();
            e.reverse();
        }
        if let Some(smallest) = smallest_estimate(d, e, tolerance) {
            let shift = shift(d, e, smallest, tolerance);
            if let Some(sides) = sides.as_deref_mut() {
                let first = if reversed { end } else { start };
                sides.left.begin(first, reversed);
                sides.right.begin(first, reversed);
            }
            let recorded = sides.as_deref_mut().map(|sides| match reversed {
                // The reversed block is the transposed block with its rows and columns in reverse order. So left and right are exchanged.
                true => (&mut sides.right, &mut sides.left),
                false => (&mut sides.left, &mut sides.right),
            });
            if shift == T::ZERO { step_without_shift(d, e, recorded) } else { step_with_shift(d, e, shift, recorded) }
        }
        if reversed {
            d.reverse();
            e.reverse();
        }
    }
    Ok(())
}

/// Returns the relative error that the iteration allows for the singular values.
fn tolerance<T: Float>() -> T {
    let epsilon = T::EPSILON.to_f64();
    T::from_f64(epsilon.powf(-0.125).clamp(10.0, 100.0) * epsilon)
}

/// Returns the magnitude up to which elements `e` above the diagonal `d` are set to zero. It is much smaller than a lower bound of the
/// smallest singular value, unless this bound is near the smallest normal number.
fn threshold<T: Float>(d: &[T], e: &[T], tolerance: T) -> T {
    let mut estimate = abs(d[0]);
    let mut smallest = estimate;
    for (d, e) in d[1..].iter().zip(e) {
        if estimate == T::ZERO {
            break;
        }
        estimate = abs(*d) * (estimate / (estimate + abs(*e)));
        smallest = minimum(smallest, estimate);
    }
    let count = T::from_f64(d.len() as f64);
    maximum(tolerance * smallest / count.sqrt(), count * T::from_f64(MAX_STEPS as f64) * smallest_normal())
}

/// Returns an estimate of the smallest singular value of a block with diagonal `d` and elements `e` above it. For n rows, it is at most √n
/// times too large. If an element of `e` is negligible, sets it to zero and returns `None`.
fn smallest_estimate<T: Float>(d: &[T], e: &mut [T], tolerance: T) -> Option<T> {
    let last = e.len() - 1;
    if abs(e[last]) <= tolerance * abs(d[last + 1]) {
        e[last] = T::ZERO;
        return None;
    }
    let mut estimate = abs(d[0]);
    let mut smallest = estimate;
    for (e, &d) in e.iter_mut().zip(&d[1..]) {
        if abs(*e) <= tolerance * estimate {
            *e = T::ZERO;
            return None;
        }
        estimate = abs(d) * (estimate / (estimate + abs(*e)));
        smallest = minimum(smallest, estimate);
    }
    Some(smallest)
}

/// Returns the shift of the next QR step. It is 0 if another shift would make small singular values inaccurate, or if the shift is
/// negligible.
fn shift<T: Float>(d: &[T], e: &[T], smallest: T, tolerance: T) -> T {
    let largest = d.iter().chain(e).fold(T::ZERO, |all, &x| maximum(all, abs(x)));
    let bound = maximum(T::EPSILON, tolerance / T::from_f64(100.0));
    if T::from_f64(d.len() as f64) * tolerance * (smallest / largest) <= bound {
        return T::ZERO;
    }
    let last = e.len() - 1;
    let shift = smaller_singular_value(d[last], e[last], d[last + 1]);
    let first = abs(d[0]);
    if first > T::ZERO && (shift / first) * (shift / first) < T::EPSILON { T::ZERO } else { shift }
}

/// Returns the smaller singular value of the matrix [[f, g], [0, h]], without overflow and cancellation.
fn smaller_singular_value<T: Float>(f: T, g: T, h: T) -> T {
    let (f, g, h) = (abs(f), abs(g), abs(h));
    let (small, large) = (minimum(f, h), maximum(f, h));
    if small == T::ZERO {
        return T::ZERO;
    }
    let (sum, difference) = (T::ONE + small / large, (large - small) / large);
    if g < large {
        let square = (g / large) * (g / large);
        return small * ((T::ONE + T::ONE) / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt()));
    }
    let ratio = large / g;
    if ratio == T::ZERO {
        return (small * large) / g;
    }
    let (sum, difference) = (sum * ratio, difference * ratio);
    let denominator = (T::ONE + sum * sum).sqrt() + (T::ONE + difference * difference).sqrt();
    (small / denominator) * ratio * (T::ONE + T::ONE)
}

/// The sweeps that record the rotations of the left and of the right singular vectors, if the vectors are wanted.
type Recorded<'a, T> = Option<(&'a mut Sweeps<T>, &'a mut Sweeps<T>)>;

/// Makes an implicit QR step without a shift. Records the rotations, if `recorded` is given. The step has no
/// subtractions, so it keeps the relative accuracy of the singular values.
fn step_without_shift<T: Float>(d: &mut [T], e: &mut [T], mut recorded: Recorded<'_, T>) {
    let count = e.len();
    let (mut c, mut last_c, mut last_s) = (T::ONE, T::ONE, T::ZERO);
    for i in 0..count {
        let (s, r);
        (c, s, r) = rotation(d[i] * c, e[i]);
        if i > 0 {
            e[i - 1] = last_s * r;
        }
        (last_c, last_s, d[i]) = rotation(last_c * r, d[i + 1] * s);
        if let Some((left, right)) = recorded.as_mut() {
            left.push(last_c, last_s);
            right.push(c, s);
        }
    }
    let rest = d[count] * c;
    d[count] = rest * last_c;
    e[count - 1] = rest * last_s;
}

/// Makes an implicit QR step with a shift, on the block with diagonal `d` and elements `e` above it. Records the
/// rotations, if `recorded` is given.
fn step_with_shift<T: Float>(d: &mut [T], e: &mut [T], shift: T, mut recorded: Recorded<'_, T>) {
    let count = e.len();
    let mut x = (abs(d[0]) - shift) * (with_sign(T::ONE, d[0]) + shift / d[0]);
    let mut bulge = e[0];
    for i in 0..count {
        let (c, s, r) = rotation(x, bulge);
        if i > 0 {
            e[i - 1] = r;
        }
        x = c * d[i] + s * e[i];
        e[i] = c * e[i] - s * d[i];
        bulge = s * d[i + 1];
        d[i + 1] = c * d[i + 1];
        let (left_c, left_s, r) = rotation(x, bulge);
        d[i] = r;
        x = left_c * e[i] + left_s * d[i + 1];
        d[i + 1] = left_c * d[i + 1] - left_s * e[i];
        if i + 1 < count {
            bulge = left_s * e[i + 1];
            e[i + 1] = left_c * e[i + 1];
        }
        if let Some((left, right)) = recorded.as_mut() {
            left.push(left_c, left_s);
            right.push(c, s);
        }
    }
    e[count - 1] = x;
}
