//! Exponentials and their kin in plain arithmetic, without a branch or a call, so that a loop over a block becomes vector
//! instructions.
//!
//! The method is Cody and Waite's ("Software Manual for the Elementary Functions", 1980): reduce the argument, evaluate a
//! polynomial, put the exponent back. The polynomials are those of S. Moshier's Cephes library. The worst error against
//! the correctly rounded result, in units in the last place, is stated with each function and measured by the tests.

/// Functions of `f32`.
pub(crate) mod single {
    /// Adding and taking off this number rounds to an integer, which is then in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

    /// ln 2 in two parts: with an integer of up to 9 bits the first gives an exact product.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;

    /// 2ⁿ for an integer n in -126 ..= 127, given as `n + ROUND`.
    #[inline(always)]
    fn power_of_two(shifted: f32) -> f32 {
        f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
    }

    /// eˣ; 1 unit in the last place, subnormal results included.
    #[inline(always)]
    pub(crate) fn exp(x: f32) -> f32 {
        // Beyond these the result is ∞ and 0 whatever the argument. A NaN is neither above nor below.
        let x = if x > 89.0 { 89.0 } else { x };
        let x = if x < -104.0 { -104.0 } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
        let p = 1.987_569_1e-4;
        let p = p * r + 1.398_199_9e-3;
        let p = p * r + 8.333_452e-3;
        let p = p * r + 4.166_579_6e-2;
        let p = p * r + 0.166_666_66;
        let p = p * r + 0.5;
        let p = p * (r * r) + r + 1.0;
        // In two steps: 2ⁿ itself may be out of range where the result is not.
        let half = (n * 0.5 + ROUND) - ROUND;
        p * power_of_two(half + ROUND) * power_of_two((n - half) + ROUND)
    }

    /// ln x; 1 unit in the last place. -∞ at 0, NaN below.
    #[inline(always)]
    pub(crate) fn log(x: f32) -> f32 {
        // Subnormals are brought into range first.
        let small = x < f32::MIN_POSITIVE;
        let scaled = if small { x * 8_388_608.0 } else { x };
        let bits = scaled.to_bits();
        // x = m 2ⁿ with m in √½ .. √2.
        let offset = bits.wrapping_sub(0x3f35_04f3);
        let n = ((offset as i32) >> 23) as f32 - if small { 23.0 } else { 0.0 };
        let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
        let p = 7.037_683_6e-2;
        let p = p * m - 0.115_146_1;
        let p = p * m + 0.116_769_984;
        let p = p * m - 0.124_201_41;
        let p = p * m + 0.142_493_23;
        let p = p * m - 0.166_680_57;
        let p = p * m + 0.200_007_14;
        let p = p * m - 0.249_999_94;
        let p = p * m + 0.333_333_31;
        let square = m * m;
        let y = p * m * square + n * LN_2_LOW - 0.5 * square;
        let y = (m + y) + n * LN_2_HIGH;
        let y = if x == f32::INFINITY { x } else { y };
        let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
        if x >= 0.0 { y } else { f32::NAN }
    }

    /// 1/(1 + e⁻ˣ); 2 units in the last place.
    #[inline(always)]
    pub(crate) fn sigmoid(x: f32) -> f32 {
        // e⁻ˣ of a large negative argument would overflow where the result is a small number still.
        let e = exp(-x.abs());
        let over = if x >= 0.0 { 1.0 } else { e };
        over / (1.0 + e)
    }

    /// tanh x; 2 units in the last place.
    #[inline(always)]
    pub(crate) fn tanh(x: f32) -> f32 {
        let magnitude = x.abs();
        // Near 0 the difference below would cancel: an odd polynomial instead.
        let square = x * x;
        let p = -5.704_988_7e-3;
        let p = p * square + 2.063_908_9e-2;
        let p = p * square - 5.373_971_5e-2;
        let p = p * square + 0.133_314_42;
        let p = p * square - 0.333_332_8;
        let near = p * square * x + x;
        let far = 1.0 - 2.0 / (exp(2.0 * magnitude) + 1.0);
        let y = if magnitude < 0.625 { near } else { far };
        y.copysign(x)
    }

    /// Error function; 2 units in the last place. Both parts are polynomials fitted with weights of the relative error: of
    /// (erf x)/x - 1 over x² below 0.93, and of -ln(1 - erf x) above.
    #[inline(always)]
    pub(crate) fn erf(x: f32) -> f32 {
        let square = x * x;
        let p = 8.316_766_6e-5;
        let p = p * square - 8.130_010_7e-4;
        let p = p * square + 5.199_906_4e-3;
        let p = p * square - 2.685_894_1e-2;
        let p = p * square + 0.112_836_88;
        let p = p * square - 0.376_126_32;
        let p = p * square + 0.128_379_17;
        let near = p * x + x;
        // From 4 on the result is 1.
        let magnitude = x.abs();
        let t = if magnitude > 4.0 { 4.0 } else { magnitude };
        let q = 2.121_810_8e-5;
        let q = q * t - 4.358_867_8e-4;
        let q = q * t + 4.177_971_7e-3;
        let q = q * t - 2.513_764_4e-2;
        let q = q * t + 0.108_308_31;
        let q = q * t + 0.633_321_2;
        let q = q * t + 1.129_527_7;
        let q = q * t - 1.773_374_8e-4;
        let far = (1.0 - exp(-q)).copysign(x);
        if magnitude < 0.93 { near } else { far }
    }

    /// 1 - erf x, to the last digits of the tail too; 2 units in the last place. Above 0.4: e^(-x²) g(t)/(1 + 2x) with
    /// t = (x - 2)/(x + 2), after M. Shepherd and J. Laframboise ("Chebyshev approximation of (1 + 2x) exp(x²) erfc x", 1981),
    /// with a polynomial of our own fit, in double precision: the square's rounding would be multiplied by the square.
    #[inline(always)]
    pub(crate) fn erfc(x: f32) -> f32 {
        let magnitude = x.abs();
        let near = 1.0 - erf(x);
        // From 10.06 on the result is 0.
        let y = f64::from(if magnitude > 10.2 { 10.2 } else { magnitude });
        let t = (y - 2.0) / (y + 2.0);
        let p = 1.932_455_530_92e-4;
        let p = p * t - 3.015_942_513_08e-4;
        let p = p * t - 1.448_760_363_75e-3;
        let p = p * t + 1.207_803_933_58e-3;
        let p = p * t + 8.720_646_798_56e-3;
        let p = p * t - 8.022_048_542_59e-3;
        let p = p * t - 5.421_978_295_5e-2;
        let p = p * t + 0.164_050_346_882;
        let p = p * t - 0.166_030_406_097;
        let p = p * t - 9.276_380_606_37e-2;
        let p = p * t + 1.276_978_381_6;
        let tail = (decay(-y * y) * p / (1.0 + 2.0 * y)) as f32;
        let far = if x < 0.0 { 2.0 - tail } else { tail };
        let y = if magnitude < 0.4 { near } else { far };
        if x.is_nan() { x } else { y }
    }

    /// eˣ for x in -105 ..= 0, to 9 digits.
    #[inline(always)]
    fn decay(x: f64) -> f64 {
        const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
        let shifted = x * std::f64::consts::LOG2_E + ROUND;
        let r = x - (shifted - ROUND) * std::f64::consts::LN_2;
        let p = 1.0 / 40_320.0;
        let p = p * r + 1.0 / 5_040.0;
        let p = p * r + 1.0 / 720.0;
        let p = p * r + 1.0 / 120.0;
        let p = p * r + 1.0 / 24.0;
        let p = p * r + 1.0 / 6.0;
        let p = p * r + 0.5;
        let p = p * r + 1.0;
        let p = p * r + 1.0;
        p * f64::from_bits((shifted.to_bits() << 52).wrapping_add(0x3ff0_0000_0000_0000))
    }
}

/// The same functions of `f64`: the standard library's, and `libm`'s.
pub(crate) mod double {
    use crate::kernel::scalar;

    pub(crate) use scalar::{erf, erfc, sigmoid};

    #[inline(always)]
    pub(crate) fn exp(x: f64) -> f64 {
        x.exp()
    }

    #[inline(always)]
    pub(crate) fn log(x: f64) -> f64 {
        x.ln()
    }

    #[inline(always)]
    pub(crate) fn tanh(x: f64) -> f64 {
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
        let table: [Row; 6] = [
            ("exp", single::exp, f64::exp, 1.0),
            ("log", single::log, f64::ln, 1.0),
            ("sigmoid", single::sigmoid, crate::kernel::scalar::sigmoid, 2.0),
            ("erf", single::erf, crate::kernel::scalar::erf, 2.0),
            ("erfc", single::erfc, crate::kernel::scalar::erfc, 2.0),
            ("tanh", single::tanh, f64::tanh, 2.0),
        ];
        for (name, ours, exact, bound) in table {
            let (error, at) = worst(ours, exact);
            assert!(error <= bound, "{name}: {error} units in the last place at {at:e}");
        }
    }

    #[test]
    fn the_sign_of_zero_is_kept() {
        assert_eq!(single::tanh(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(single::exp(-0.0), 1.0);
    }
}
