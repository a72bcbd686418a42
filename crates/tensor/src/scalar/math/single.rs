//! Functions of `f32`.
// This lint is off because coefficients have enough digits to identify their source.
#![allow(clippy::excessive_precision)]

use crate::scalar::math::{FloatMath, fma, from_std, polynomial, wide};

/// The coefficients of (ln(1 + m) - m + m²/2)/m³ for 1 + m in √½ .. √2.
const LOG: [f32; 9] = [
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

/// The coefficients of (erf x)/x - 1 as a polynomial in x², for |x| below 0.93.
const ERF_NEAR: [f32; 7] =
    [8.316_766_6e-5, -8.130_010_7e-4, 5.199_906_4e-3, -2.685_894_1e-2, 0.112_836_88, -0.376_126_32, 0.128_379_17];

/// Computes ln x. `offset` has the bits of x · 2^`shift` minus the bits of √½.
#[inline(always)]
fn log_from_bits<const FMA: bool>(offset: u32, shift: f32) -> f32 {
    // The number x is (1 + m) 2ⁿ, with 1 + m in √½ .. √2.
    let n = ((offset as i32) >> 23) as f32 - shift;
    let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let square = m * m;
    let y = fma::<FMA, _>(-0.5, square, fma::<FMA, _>(n, f32::LN_2_LOW, polynomial::<FMA, 9, _>(m, LOG) * m * square));
    fma::<FMA, _>(n, f32::LN_2_HIGH, m + y)
}

impl FloatMath for f32 {
    from_std!(f32 u32);

    const ROUND: f32 = 12_582_912.0;
    const EXP_RANGE: (f32, f32) = (-104.0, 89.0);
    // The first part of ln 2 has 15 trailing zero bits, so its product with an integer exponent is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOG2_E_LOW: f32 = 1.925_963e-8;
    const LOG10_E_LOW: f32 = -1.010_305e-8;
    const LOG10_2_HIGH: f32 = 0.301_025_4;
    const LOG10_2_LOW: f32 = 4.605_039e-6;
    const GUARD_EXPONENT: f32 = 64.0;
    const INVERSE_GUARD: f32 = 1.0 / 18_446_744_073_709_551_616.0; // 2⁻⁶⁴
    const TANH_RANGE: (f32, f32) = (0.625, 10.0);
    const POW_NEEDS_FMA: bool = false;

    #[inline(always)]
    fn expm1_reduced<const FMA: bool>(r: f32) -> f32 {
        let p = [0.001_388_209_4, 0.008_366_577, 0.041_667_208, 0.166_665_43, 0.499_999_97];
        fma::<FMA, _>(polynomial::<FMA, 5, _>(r, p), r * r, r)
    }

    #[inline(always)]
    fn split_exponent(x: f32) -> (f32, f32) {
        let offset = x.to_bits().wrapping_sub(0x3f35_04f3);
        let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
        (((offset as i32) >> 23) as f32, m)
    }

    #[inline(always)]
    fn log1p_minus_x<const FMA: bool>(m: f32) -> f32 {
        let square = m * m;
        fma::<FMA, _>(-0.5, square, polynomial::<FMA, 9, _>(m, LOG) * m * square)
    }

    #[inline(always)]
    fn tanh_series<const FMA: bool>(square: f32) -> f32 {
        let p = [-5.704_988_7e-3, 2.063_908_9e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8];
        polynomial::<FMA, 5, _>(square, p)
    }

    #[inline(always)]
    fn log_ordinary<const FMA: bool>(x: f32) -> f32 {
        log_from_bits::<FMA>(x.to_bits().wrapping_sub(0x3f35_04f3), 0.0)
    }

    #[inline(always)]
    fn log<const FMA: bool>(x: f32) -> f32 {
        // Subnormal numbers are first scaled into the normal range.
        let small = x < f32::MIN_POSITIVE;
        let scaled = if small { x * 8_388_608.0 } else { x };
        let y = log_from_bits::<FMA>(scaled.to_bits().wrapping_sub(0x3f35_04f3), if small { 23.0 } else { 0.0 });
        // ∞ and NaN are returned unchanged, and negative numbers become NaN. A comparison of the bits finds both cases.
        let bits = x.to_bits();
        let y = if bits < 0x7f80_0000 { y } else { f32::from_bits(bits | ((bits as i32) >> 31) as u32) };
        if x == 0.0 { f32::NEG_INFINITY } else { y }
    }

    /// Computes the error function; error at most 2 units in the last place. For |x| below 0.93, evaluates a polynomial for (erf x)/x - 1
    /// in x². For larger |x|, evaluates a polynomial for -ln(1 - erf |x|). Both were fitted for relative error.
    #[inline(always)]
    fn erf<const FMA: bool>(x: f32) -> f32 {
        let square = x * x;
        let near = fma::<FMA, _>(polynomial::<FMA, 7, _>(square, ERF_NEAR), x, x);
        // For |x| of 4 and above, the result is ±1.
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
        let (q, power) = Self::exp_nonpositive::<FMA>(-polynomial::<FMA, 8, _>(t, q), None);
        let far = (1.0 - (q + 1.0) * power * Self::INVERSE_GUARD).copysign(x);
        if magnitude < 0.93 { near } else { far }
    }

    /// Computes 1 - erf x with full relative accuracy for large x; error at most 4 units in the last place. The formula for x of 0.4 and
    /// above is e^(-x²) g(t)/(1 + 2x) with t = (x - 2)/(x + 2), after M. Shepherd and J. Laframboise ("Chebyshev approximation of (1 + 2x)
    /// exp(x²) erfc x", 1981). The polynomial g was fitted for this project. See [`combine_erfc`](FloatMath::combine_erfc) for other x.
    #[inline(always)]
    fn erfc<const FMA: bool>(x: f32) -> f32 {
        let magnitude = x.abs();
        // For |x| of 10.06 and above, erfc |x| is 0.
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
        let near = 1.0 - fma::<FMA, _>(polynomial::<FMA, _, _>(y * y, ERF_NEAR), x, x);
        Self::combine_erfc::<FMA, _>(x, y, t, g, near)
    }

    /// Computes Φ(x), the normal distribution function. The error is at most 5 units in the last place in the left tail, and 3 for x of 0
    /// and above. The tail Φ(-|x|) is e^(-x²/2) times one rational function that was fitted for this project. All coefficients are positive,
    /// so no terms cancel. Even and odd powers are summed separately, so that fewer roundings follow each other.
    #[inline(always)]
    fn ndtr<const FMA: bool>(x: f32) -> f32 {
        let magnitude = x.abs();
        // For |x| of 14.3 and above, the tail Φ(-|x|) is 0.
        let y = if magnitude > 14.4 { 14.4 } else { magnitude };
        let (square, rest) = Self::square::<FMA>(y);
        let even = polynomial::<FMA, 3, _>(square, [4.109_363_5e-3, 0.183_096_29, 0.5]);
        let above = fma::<FMA, _>(y, fma::<FMA, _>(square, 4.058_643e-2, 0.438_107_34), even);
        let even = polynomial::<FMA, 3, _>(square, [0.101_741_61, 1.201_926_1, 1.0]);
        let below =
            fma::<FMA, _>(y, polynomial::<FMA, 3, _>(square, [1.030_052_5e-2, 0.469_104_02, 1.674_099_7]), even);
        let ratio = above / below;
        let (q, power) = Self::exp_nonpositive::<FMA>(-0.5 * square, Some(0.5 * rest));
        let tail = fma::<FMA, _>(ratio, q, ratio) * power * Self::INVERSE_GUARD;
        if x > 0.0 { 1.0 - tail } else { tail }
    }

    #[inline(always)]
    fn is_moderate_angle(x: f32) -> bool {
        wide::is_moderate_angle(x)
    }

    #[inline(always)]
    fn sine<const FMA: bool>(x: f32, quarters: u64) -> f32 {
        wide::sine::<FMA>(x, quarters)
    }

    #[inline(always)]
    fn is_ordinary_pow(x: f32, y: f32) -> bool {
        wide::is_ordinary_pow(x, y)
    }

    #[inline(always)]
    fn pow_ordinary<const FMA: bool>(x: f32, y: f32) -> f32 {
        wide::pow_ordinary::<FMA>(x, y)
    }

    #[cfg(target_arch = "x86_64")]
    fn by_table(op: crate::Unary, x: &[f32], out: &mut [f32]) -> bool {
        crate::scalar::math::tables::unary(op, x, out)
    }
}
