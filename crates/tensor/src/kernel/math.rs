//! Exponentials and their kin in plain arithmetic, without a branch or a call, so that a loop over a block becomes vector
//! instructions.
//!
//! The method is Cody and Waite's ("Software Manual for the Elementary Functions", 1980): reduce the argument, evaluate a
//! polynomial, put the exponent back. The polynomials are those of S. Moshier's Cephes library. The worst error against
//! the correctly rounded result, in units in the last place, is stated with each function and measured by the tests.

/// Functions of `f32`. With `FMA`, a product and a sum are rounded once, where the processor does that in one instruction; the
/// last bit may differ from what it is without.
// Coefficients are written with the digits that tell them apart from their neighbours.
#[allow(clippy::excessive_precision)]
pub(crate) mod single {
    /// Adding and taking off this number rounds to an integer, which is then in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

    /// ln 2 in two parts: with an integer of up to 9 bits the first gives an exact product.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;

    /// x y + z.
    #[inline(always)]
    fn fma<const FMA: bool>(x: f32, y: f32, z: f32) -> f32 {
        if FMA { x.mul_add(y, z) } else { x * y + z }
    }

    /// The polynomial with these coefficients, that of the highest power first.
    #[inline(always)]
    fn polynomial<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
        let mut sum = coefficients[0];
        let mut k = 1;
        while k < N {
            sum = fma::<FMA>(sum, x, coefficients[k]);
            k += 1;
        }
        sum
    }

    /// 2ⁿ for an integer n in -126 ..= 127, given as `n + ROUND`.
    #[inline(always)]
    fn power_of_two(shifted: f32) -> f32 {
        f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
    }

    /// e^(x - rest) - 1 = q of the reduced argument, and the two powers of two that 1 + q is to be multiplied by: one of them
    /// alone may be out of range where the result is not. For x in -104 ..= 89 and a `rest` below an ulp of x.
    #[inline(always)]
    fn exp_parts<const FMA: bool>(x: f32, rest: f32) -> (f32, f32, f32) {
        let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        let r = fma::<FMA>(-n, LN_2_LOW, fma::<FMA>(-n, LN_2_HIGH, x)) - rest;
        let p = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5];
        let q = fma::<FMA>(polynomial::<FMA, 6>(r, p), r * r, r);
        let half = fma::<FMA>(n, 0.5, ROUND) - ROUND;
        (q, power_of_two(half + ROUND), power_of_two((n - half) + ROUND))
    }

    /// eˣ; 1 unit in the last place, subnormal results included.
    #[inline(always)]
    pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
        // Beyond these the result is ∞ and 0 whatever the argument. A NaN is neither above nor below.
        let x = if x > 89.0 { 89.0 } else { x };
        let x = if x < -104.0 { -104.0 } else { x };
        let (q, first, second) = exp_parts::<FMA>(x, 0.0);
        (q + 1.0) * first * second
    }

    /// ln x; 1 unit in the last place. -∞ at 0, NaN below.
    #[inline(always)]
    pub(crate) fn log<const FMA: bool>(x: f32) -> f32 {
        // Subnormals are brought into range first.
        let small = x < f32::MIN_POSITIVE;
        let scaled = if small { x * 8_388_608.0 } else { x };
        let bits = scaled.to_bits();
        // x = m 2ⁿ with m in √½ .. √2.
        let offset = bits.wrapping_sub(0x3f35_04f3);
        let n = ((offset as i32) >> 23) as f32 - if small { 23.0 } else { 0.0 };
        let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
        let p = [
            7.037_683_6e-2,
            -0.115_146_1,
            0.116_769_984,
            -0.124_201_41,
            0.142_493_23,
            -0.166_680_57,
            0.200_007_14,
            -0.249_999_94,
            0.333_333_31,
        ];
        let square = m * m;
        let y = fma::<FMA>(-0.5, square, fma::<FMA>(n, LN_2_LOW, polynomial::<FMA, 9>(m, p) * m * square));
        let y = fma::<FMA>(n, LN_2_HIGH, m + y);
        let y = if x == f32::INFINITY { x } else { y };
        let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
        if x >= 0.0 { y } else { f32::NAN }
    }

    /// 1/(1 + e⁻ˣ); 2 units in the last place.
    #[inline(always)]
    pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
        // e⁻ˣ of a large negative argument would overflow where the result is a small number still.
        let e = exp::<FMA>(-x.abs());
        let over = if x >= 0.0 { 1.0 } else { e };
        over / (1.0 + e)
    }

    /// tanh x; 2 units in the last place.
    #[inline(always)]
    pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
        let magnitude = x.abs();
        // Near 0 the difference below would cancel: an odd polynomial instead.
        let square = x * x;
        let p = [-5.704_988_7e-3, 2.063_908_9e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8];
        let near = fma::<FMA>(polynomial::<FMA, 5>(square, p) * square, x, x);
        let far = 1.0 - 2.0 / (exp::<FMA>(2.0 * magnitude) + 1.0);
        let y = if magnitude < 0.625 { near } else { far };
        y.copysign(x)
    }

    /// (erf x)/x - 1 as a polynomial in x², below 0.93.
    const ERF_NEAR: [f32; 7] =
        [8.316_766_6e-5, -8.130_010_7e-4, 5.199_906_4e-3, -2.685_894_1e-2, 0.112_836_88, -0.376_126_32, 0.128_379_17];

    /// Error function; 2 units in the last place. Both parts are polynomials fitted with weights of the relative error: of
    /// (erf x)/x - 1 over x² below 0.93, and of -ln(1 - erf x) above.
    #[inline(always)]
    pub(crate) fn erf<const FMA: bool>(x: f32) -> f32 {
        let square = x * x;
        let near = fma::<FMA>(polynomial::<FMA, 7>(square, ERF_NEAR), x, x);
        // From 4 on the result is 1.
        let magnitude = x.abs();
        let t = if magnitude > 4.0 { 4.0 } else { magnitude };
        let q = [
            2.121_810_8e-5,
            -4.358_867_8e-4,
            4.177_971_7e-3,
            -2.513_764_4e-2,
            0.108_308_31,
            0.633_321_2,
            1.129_527_7,
            -1.773_374_8e-4,
        ];
        let (q, first, second) = exp_parts::<FMA>(-polynomial::<FMA, 8>(t, q), 0.0);
        let far = (1.0 - (q + 1.0) * first * second).copysign(x);
        if magnitude < 0.93 { near } else { far }
    }

    /// 1 - erf x, to the last digits of the tail too; 3 units in the last place: e^(-x²) g(t)/(1 + 2x) with
    /// t = (x - 2)/(x + 2), after M. Shepherd and J. Laframboise ("Chebyshev approximation of (1 + 2x) exp(x²) erfc x", 1981),
    /// g a polynomial of our own fit.
    #[inline(always)]
    pub(crate) fn erfc<const FMA: bool>(x: f32) -> f32 {
        let magnitude = x.abs();
        // From 10.06 on the result is 0.
        let y = if magnitude > 10.1 { 10.1 } else { magnitude };
        let t = (y - 2.0) / (y + 2.0);
        let g = [
            -3.994_508_6e-4,
            -1.228_004_1e-3,
            1.313_311e-3,
            8.630_1e-3,
            -8.060_143e-3,
            -5.420_388_3e-2,
            0.164_055_42,
            -0.166_031_46,
            -9.276_398e-2,
            1.276_978_4,
        ];
        // The square in two parts, or its rounding would be multiplied by itself.
        let square = y * y;
        let rest = if FMA {
            y.mul_add(y, -square)
        } else {
            let high = f32::from_bits(y.to_bits() & 0xffff_f000);
            let low = y - high;
            ((high * high - square) + 2.0 * high * low) + low * low
        };
        let (q, first, second) = exp_parts::<FMA>(-square, rest);
        let ratio = polynomial::<FMA, 10>(t, g) / fma::<FMA>(2.0, y, 1.0);
        let tail = fma::<FMA>(ratio, q, ratio) * first * second;
        let far = if x < 0.0 { 2.0 - tail } else { tail };
        let near = 1.0 - fma::<FMA>(polynomial::<FMA, 7>(square, ERF_NEAR), x, x);
        let result = if magnitude < 0.4 { near } else { far };
        if x.is_nan() { x } else { result }
    }
}

/// The same functions of `f64`: the standard library's, and `libm`'s.
pub(crate) mod double {
    use crate::kernel::scalar;

    #[inline(always)]
    pub(crate) fn erf<const FMA: bool>(x: f64) -> f64 {
        scalar::erf(x)
    }

    #[inline(always)]
    pub(crate) fn erfc<const FMA: bool>(x: f64) -> f64 {
        scalar::erfc(x)
    }

    #[inline(always)]
    pub(crate) fn sigmoid<const FMA: bool>(x: f64) -> f64 {
        scalar::sigmoid(x)
    }

    #[inline(always)]
    pub(crate) fn exp<const FMA: bool>(x: f64) -> f64 {
        x.exp()
    }

    #[inline(always)]
    pub(crate) fn log<const FMA: bool>(x: f64) -> f64 {
        x.ln()
    }

    #[inline(always)]
    pub(crate) fn tanh<const FMA: bool>(x: f64) -> f64 {
        x.tanh()
    }
}

#[cfg(test)]
mod tests {
    use super::single;

    /// Distance from `got` to the correctly rounded `exact`, in units in the last place of the latter.
    fn ulps(got: f32, exact: f64) -> f64 {
        let rounded = exact as f32;
        if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) || got == rounded {
            return 0.0;
        }
        if !got.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let unit = f64::from((rounded.abs().next_up() - rounded.abs()).max(f32::from_bits(1)));
        (f64::from(got) - f64::from(rounded)).abs() / unit
    }

    /// The worst over a dense sample of all f32, both signs, every exponent, and the special values.
    fn worst(ours: fn(f32) -> f32, exact: fn(f64) -> f64) -> (f64, f32) {
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, 1.0, -1.0];
        let sample = (0..=u32::MAX).step_by(2053).map(f32::from_bits);
        let fine = (-12_000_000..12_000_000i32).step_by(7).map(|k| k as f32 * 1e-5);
        special.into_iter().chain(sample).chain(fine).fold((0.0, 0.0), |worst, x| {
            let error = ulps(ours(x), exact(f64::from(x)));
            if error > worst.0 { (error, x) } else { worst }
        })
    }

    #[test]
    fn errors_are_as_stated() {
        type Row = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f64);
        let table: [Row; 12] = [
            ("exp", single::exp::<false>, f64::exp, 1.0),
            ("exp", single::exp::<true>, f64::exp, 1.0),
            ("log", single::log::<false>, f64::ln, 1.0),
            ("log", single::log::<true>, f64::ln, 1.0),
            ("sigmoid", single::sigmoid::<false>, crate::kernel::scalar::sigmoid, 2.0),
            ("sigmoid", single::sigmoid::<true>, crate::kernel::scalar::sigmoid, 2.0),
            ("erf", single::erf::<false>, crate::kernel::scalar::erf, 2.0),
            ("erf", single::erf::<true>, crate::kernel::scalar::erf, 2.0),
            ("erfc", single::erfc::<false>, crate::kernel::scalar::erfc, 3.0),
            ("erfc", single::erfc::<true>, crate::kernel::scalar::erfc, 3.0),
            ("tanh", single::tanh::<false>, f64::tanh, 2.0),
            ("tanh", single::tanh::<true>, f64::tanh, 2.0),
        ];
        for (name, ours, exact, bound) in table {
            let (error, at) = worst(ours, exact);
            assert!(error <= bound, "{name}: {error} units in the last place at {at:e}");
        }
    }

    #[test]
    fn the_sign_of_zero_is_kept() {
        assert_eq!(single::tanh::<false>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(single::exp::<true>(-0.0), 1.0);
    }
}
