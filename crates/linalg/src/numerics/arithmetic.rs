//! Arithmetic of vectors: sums of products, norms and plane rotations. Norms and rotations are safe from overflow and underflow.
//!
//! A sum of 16 or more products runs over 16 partial sums, in an order that does not depend on the machine. So every instruction set gives
//! the same bits of these sums.

use wengert_tensor::Float;

use super::failure::Failure;

/// The number of partial sums of [`dot`].
pub(crate) const LANES: usize = 16;

/// Returns `rows` times `columns` zeros, or an error if there is not enough memory.
pub(crate) fn zeros<T: Float>(rows: usize, columns: usize) -> Result<Vec<T>, Failure> {
    let len = rows.checked_mul(columns).ok_or(Failure::Memory)?;
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| Failure::Memory)?;
    data.resize(len, T::ZERO);
    Ok(data)
}

/// The largest number of elements that [`with_scratch`] takes from the stack. Each call clears this memory, so it must be small.
const MAX_STACK_ELEMENTS: usize = 64;

/// Calls `work` with `len` zeros. Up to [`MAX_STACK_ELEMENTS`] zeros are on the stack, because an allocation would take as long as the work
/// on a small matrix.
#[inline(always)]
pub(crate) fn with_scratch<T: Float, R>(len: usize, work: &mut dyn FnMut(&mut [T]) -> R) -> R {
    if len <= MAX_STACK_ELEMENTS {
        work(&mut [T::ZERO; MAX_STACK_ELEMENTS][..len])
    } else {
        work(&mut vec![T::ZERO; len])
    }
}

/// Returns |x|.
#[inline(always)]
pub(crate) fn abs<T: Float>(x: T) -> T {
    if x < T::ZERO { -x } else { x }
}

/// Returns |x| with the sign of `sign`. Zero counts as positive.
#[inline(always)]
pub(crate) fn with_sign<T: Float>(x: T, sign: T) -> T {
    if sign < T::ZERO { -abs(x) } else { abs(x) }
}

/// Returns the larger of two numbers, or `x` if one of them is NaN.
#[inline(always)]
pub(crate) fn maximum<T: Float>(x: T, y: T) -> T {
    if x < y { y } else { x }
}

/// Returns the smaller of two numbers, or `x` if one of them is NaN.
#[inline(always)]
pub(crate) fn minimum<T: Float>(x: T, y: T) -> T {
    if y < x { y } else { x }
}

/// Returns the smallest positive normal number: 2⁻¹⁰²² in f64, 2⁻¹²⁶ in f32.
pub(crate) fn smallest_normal<T: Float>() -> T {
    T::from_f64(if size_of::<T>() == 8 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) })
}

/// Returns the dot product: the sum of the products of the elements of `x` and `y`.
#[inline(always)]
pub(crate) fn dot<T: Float>(x: &[T], y: &[T]) -> T {
    let len = x.len().min(y.len());
    let (x, y) = (&x[..len], &y[..len]);
    let mut sums = [T::ZERO; LANES];
    let (mut x_chunks, mut y_chunks) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    for (x, y) in x_chunks.by_ref().zip(y_chunks.by_ref()) {
        add_products(&mut sums, x, y);
    }
    let mut rest = T::ZERO;
    for (&x, &y) in x_chunks.remainder().iter().zip(y_chunks.remainder()) {
        rest = rest + x * y;
    }
    if len < LANES { rest } else { total(sums) + rest }
}

/// Returns the dot products of four vectors with `y`. The bits are the same as in four calls of [`dot`]. Four products at once are faster,
/// because each addition of a single dot product waits for the addition before it.
#[inline(always)]
pub(crate) fn four_dots<T: Float>([a, b, c, d]: [&[T]; 4], y: &[T]) -> [T; 4] {
    let len = y.len();
    let (a, b, c, d) = (&a[..len], &b[..len], &c[..len], &d[..len]);
    let whole = len - len % LANES;
    let (mut sums_a, mut sums_b, mut sums_c, mut sums_d) =
        ([T::ZERO; LANES], [T::ZERO; LANES], [T::ZERO; LANES], [T::ZERO; LANES]);
    let ab_chunks = a[..whole].chunks_exact(LANES).zip(b[..whole].chunks_exact(LANES));
    let cd_chunks = c[..whole].chunks_exact(LANES).zip(d[..whole].chunks_exact(LANES));
    for (((a, b), (c, d)), y) in ab_chunks.zip(cd_chunks).zip(y[..whole].chunks_exact(LANES)) {
        add_products(&mut sums_a, a, y);
        add_products(&mut sums_b, b, y);
        add_products(&mut sums_c, c, y);
        add_products(&mut sums_d, d, y);
    }
    let mut rest = [T::ZERO; 4];
    for (rest, x) in rest.iter_mut().zip([a, b, c, d]) {
        for (&x, &y) in x[whole..].iter().zip(&y[whole..]) {
            *rest = *rest + x * y;
        }
    }
    if whole == 0 {
        return rest;
    }
    [total(sums_a) + rest[0], total(sums_b) + rest[1], total(sums_c) + rest[2], total(sums_d) + rest[3]]
}

/// Adds the products of the elements of `x` and `y` to the partial sums.
#[inline(always)]
fn add_products<T: Float>(sums: &mut [T; LANES], x: &[T], y: &[T]) {
    for lane in 0..LANES {
        sums[lane] = sums[lane] + x[lane] * y[lane];
    }
}

/// Returns the sum of the partial sums. Adds the second half of the sums to the first half, until a single sum remains.
#[inline(always)]
pub(crate) fn total<T: Float>(mut sums: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] = sums[lane] + sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// Adds `factor` times `x` to `y`.
#[inline(always)]
pub(crate) fn add_scaled<T: Float>(y: &mut [T], factor: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y + factor * x;
    }
}

/// Subtracts `factor` times `x` from `y`.
#[inline(always)]
pub(crate) fn subtract_scaled<T: Float>(y: &mut [T], factor: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y - factor * x;
    }
}

/// Returns the largest magnitude, or an error if an element is NaN or infinite.
pub(crate) fn largest_magnitude<T: Float>(x: &[T]) -> Result<T, Failure> {
    // 0 · x is NaN if x is infinite or NaN, and NaN stays NaN in a sum.
    let (mut maxima, mut zero_products) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for part in x.chunks(LANES) {
        for (lane, &x) in part.iter().enumerate() {
            maxima[lane] = maximum(maxima[lane], abs(x));
            zero_products[lane] = zero_products[lane] + x * T::ZERO;
        }
    }
    if zero_products.iter().any(|sum| sum.is_nan()) {
        return Err(Failure::NonFinite);
    }
    Ok(maxima.iter().fold(T::ZERO, |all, &lane| maximum(all, lane)))
}

/// Returns a power of two that brings a very large or very small magnitude `largest` near 1. A subnormal number may stay far below 1.
/// Returns 1 for 0, and for binary exponents between -200 and 200 in f64, and between -30 and 30 in f32. Products of four such numbers do not
/// overflow or underflow.
pub(crate) fn scale<T: Float>(largest: T) -> T {
    let magnitude = largest.to_f64();
    let bound = if size_of::<T>() == 8 { 200.0 } else { 30.0 };
    if magnitude == 0.0 || magnitude.log2().abs() < bound { T::ONE } else { inverse_power_of_two(magnitude) }
}

/// Returns a power of two that brings the largest magnitude in `x` near 1, or 1 if all elements are 0. A subnormal magnitude may stay far
/// below 1. The inverse of this power is finite too.
pub(crate) fn scale_near_one<'a, T: Float>(x: impl Iterator<Item = &'a T>) -> T {
    let magnitude = x.fold(T::ZERO, |all, &x| maximum(all, abs(x))).to_f64();
    if magnitude > 0.0 { inverse_power_of_two(magnitude) } else { T::ONE }
}

/// Returns the power of two whose product with the positive number `magnitude` is in [1, 2). The power and its inverse are normal numbers, so
/// the product is smaller for a subnormal number, and up to 16 for a number near the largest one.
fn inverse_power_of_two<T: Float>(magnitude: f64) -> T {
    let max_exponent = if size_of::<T>() == 8 { 1020.0 } else { 125.0 };
    T::from_f64((-magnitude.log2().floor()).clamp(-max_exponent, max_exponent).exp2())
}

/// Returns the Euclidean norm of a vector. The norm is NaN if an element is NaN or infinite.
#[inline(always)]
pub(crate) fn norm<T: Float>(x: &[T]) -> T {
    let sum = dot(x, x);
    // If the sum of the squares is below this bound, squares that underflow could matter.
    if sum > smallest_normal::<T>() / (T::EPSILON * T::EPSILON) && sum <= T::MAX { sum.sqrt() } else { scaled_norm(x) }
}

/// Returns the Euclidean norm of a vector with elements that are NaN, or whose squares overflow or underflow.
#[inline(never)]
fn scaled_norm<T: Float>(x: &[T]) -> T {
    let largest = x.iter().fold(T::ZERO, |all, &x| maximum(all, abs(x)));
    if largest == T::ZERO {
        // All elements are 0 or NaN. The maximum ignores NaN, but the sum does not.
        return x.iter().fold(T::ZERO, |sum, &x| sum + x);
    }
    let sum = x.iter().fold(T::ZERO, |sum, &x| sum + (x / largest) * (x / largest));
    largest * sum.sqrt()
}

/// Returns the plane rotation (c, s, r) with c² + s² = 1, c x + s y = r and c y - s x = 0.
#[inline(always)]
pub(crate) fn rotation<T: Float>(x: T, y: T) -> (T, T, T) {
    if y == T::ZERO {
        return (T::ONE, T::ZERO, x);
    }
    if x == T::ZERO {
        return (T::ZERO, T::ONE, y);
    }
    let r = norm(&[x, y]);
    if r >= subnormal_bound() {
        return (x / r, y / r, r);
    }
    // A norm as small as `r` is rounded to few digits. So the quotients are computed from larger numbers.
    let (x, y) = (x / smallest_normal(), y / smallest_normal());
    let norm = norm(&[x, y]);
    (x / norm, y / norm, r)
}

/// Returns the magnitude below which rounding errors of a number may be subnormal. Operations on smaller numbers lose digits.
pub(crate) fn subnormal_bound<T: Float>() -> T {
    smallest_normal::<T>() / T::EPSILON
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_every_length() {
        for len in 0..70 {
            let x: Vec<f64> = (0..len).map(|i| i as f64 - 7.0).collect();
            let y: Vec<f64> = (0..len).map(|i| (i * i % 11) as f64).collect();
            // The numbers are small whole numbers, so their products can be summed in every order without rounding.
            let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            assert_eq!(dot(&x, &y), expected, "{len}");
        }
    }

    #[test]
    fn norms_beyond_the_range_of_squares() {
        for factor in [1e-300f64, 1e-160, 1e-140, 1.0, 1e160, 1e300] {
            let norm = norm(&[3.0 * factor, 4.0 * factor]);
            assert!((norm / factor - 5.0).abs() < 1e-14, "{factor}");
        }
        assert_eq!(norm(&[0.0f32; 3]), 0.0);
        for vector in [[0.0, f64::NAN], [f64::NAN, 0.0], [1.0, f64::NAN], [1e-300, f64::NAN], [1e300, f64::NAN]] {
            assert!(norm(&vector).is_nan(), "{vector:?}");
        }
        let (c, s, r) = rotation(3e-310, -4e-310);
        assert!((c - 0.6f64).abs() < 1e-13 && (s + 0.8).abs() < 1e-13 && (r - 5e-310).abs() < 1e-320);
        assert!((c * c + s * s - 1.0).abs() < 1e-15);
    }

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!(scale(3.0f64), 1.0);
        assert_eq!(scale(0.0f32), 1.0);
        for magnitude in [1e-310f64, 1e-200, 1e200, 1.7e308] {
            let scale = scale(magnitude);
            assert_eq!(scale.log2().fract(), 0.0);
            assert!(magnitude * scale >= 1e-4 && magnitude * scale < 16.0, "{magnitude}");
        }
        assert_eq!(largest_magnitude(&[1.0, -3.0, 2.0]), Ok(3.0));
        assert_eq!(largest_magnitude(&[1.0, f64::INFINITY]), Err(Failure::NonFinite));
        assert_eq!(largest_magnitude(&[f32::NAN]), Err(Failure::NonFinite));
    }
}
