//! Functions of `f64`, most of them computed by the same methods as for `f32`. The polynomials were fitted for this project, with the
//! smallest relative error.
#![allow(clippy::excessive_precision)]

use std::f64::consts::{FRAC_2_PI, LN_2, SQRT_2};

use crate::scalar::math::{FloatMath, fma, from_std, polynomial};

/// 1.5 · 2⁵²: see [`FloatMath::ROUND`].
const ROUND: f64 = 6_755_399_441_055_744.0;

/// 2²⁵⁶, the square root of 1 / [`FloatMath::INVERSE_GUARD`].
const ROOT: f64 =
    115_792_089_237_316_195_423_570_985_008_687_907_853_269_984_665_640_564_039_457_584_007_913_129_639_936.0;

/// The coefficients of (erf x)/x - 1 as a polynomial in x², for |x| below 0.85.
const ERF_NEAR: [f64; 12] = [
    -8.826_992_785_907_63e-10,
    1.418_551_345_353_920_5e-8,
    -1.629_979_521_408_722e-7,
    1.645_760_829_932_906_7e-6,
    -1.492_544_596_839_391_6e-5,
    1.205_532_677_189_400_7e-4,
    -8.548_326_898_888_225e-4,
    5.223_977_623_854_518e-3,
    -2.686_617_064_501_159_4e-2,
    0.112_837_916_709_546_58,
    -0.376_126_389_031_837_4,
    0.128_379_167_095_512_6,
];

/// π/2 as a sum of four numbers. The product of each of the first three with an integer of up to 20 bits is exact.
const HALF_PI: [f64; 4] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_711_166_5e-21, 8.478_427_660_368_9e-32];

/// Computes (e^r - 1 - r)/r² for r from -½ ln 2 to ½ ln 2.
#[inline(always)]
fn expm1_rest<const FMA: bool>(r: f64) -> f64 {
    let p = [
        2.511_004_995_254_455e-8,
        2.763_265_584_438_081e-7,
        2.755_724_245_557_839_7e-6,
        2.480_148_748_059_335_6e-5,
        1.984_126_988_630_508_4e-4,
        1.388_888_894_744_912_3e-3,
        8.333_333_333_322_404e-3,
        4.166_666_666_652_466e-2,
        0.166_666_666_666_666_74,
        0.500_000_000_000_001,
    ];
    polynomial::<FMA, 10, _>(r, p)
}

/// Computes Φ(-y) / e^(-y²/2) for y from 0 to 38.6, where Φ is the normal distribution function. `square` is y².
#[inline(always)]
fn scaled_tail<const FMA: bool>(y: f64, square: f64) -> f64 {
    let even = [
        2.234_236_600_903_953_7e-7,
        1.063_114_454_598_147_1e-4,
        7.110_507_285_784_258_5e-3,
        0.131_896_251_098_541_8,
        0.679_210_430_996_292_6,
        0.5,
    ];
    let odd = [
        6.955_877_107_991_309e-6,
        1.037_558_004_261_552e-3,
        3.561_694_522_710_314e-2,
        0.357_038_227_858_395_9,
        0.827_668_526_173_822_8,
    ];
    let above = fma::<FMA, _>(y, polynomial::<FMA, 5, _>(square, odd), polynomial::<FMA, 6, _>(square, even));
    let even = [
        1.743_579_823_378_046_4e-5,
        2.618_208_028_495_265e-3,
        9.184_434_289_385_919e-2,
        0.979_213_515_193_099,
        2.815_808_511_353_27,
        1.0,
    ];
    let odd = [
        5.600_400_636_039_971e-7,
        2.670_433_151_668_019_6e-4,
        1.808_876_179_525_563_7e-2,
        0.347_910_897_434_393,
        2.000_117_306_795_344,
        2.453_221_613_150_511_3,
    ];
    let below = fma::<FMA, _>(y, polynomial::<FMA, 6, _>(square, odd), polynomial::<FMA, 6, _>(square, even));
    above / below
}

/// Returns the exact remainder of the division of `x` by `y`, with the sign of `x`. Call it only if the processor has FMA instructions.
/// Returns NaN if the integer part of the quotient has 53 bits or more. Also returns NaN if `x` is infinite or NaN, or if `y` is 0,
/// infinite or NaN.
///
/// Only the quotient is rounded, so it can be an integer that is larger than the exact quotient. If |x| >= |y|, the remainder for this
/// integer, and the remainder itself, are multiples of the last place of `y`, and their magnitudes are at most |y|. Otherwise the integer
/// part is 0, and the remainder is `x`.
#[inline(always)]
pub(crate) fn fmod_of_short_quotient(x: f64, y: f64) -> f64 {
    const LIMIT: f64 = (1u64 << 52) as f64;
    let quotient = x / y;
    let rest = (-quotient.trunc()).mul_add(y, x);
    let is_beyond = if x < 0.0 { rest > 0.0 } else { rest < 0.0 };
    let rest = if is_beyond { rest + y.abs().copysign(x) } else { rest };
    let short = (quotient.abs() < LIMIT) & (y.abs() < f64::INFINITY);
    if short { rest.copysign(x) } else { f64::NAN }
}

/// Computes √(x² + y²) if both numbers are 0, or if the larger magnitude is between 2⁻⁴⁵⁰ and 2⁵⁰⁰; error at most 1 unit in the last place.
/// Returns NaN for other arguments. Call it only if the processor has FMA instructions. One step of Newton's method corrects the root by
/// the rounding errors of the squares.
#[inline(always)]
pub(crate) fn hypot(x: f64, y: f64) -> f64 {
    const LOW: f64 = f64::from_bits((1023 - 450) << 52);
    const HIGH: f64 = f64::from_bits((1023 + 500) << 52);
    let (x, y) = (x.abs(), y.abs());
    let (larger, smaller) = (if y > x { y } else { x }, if y > x { x } else { y });
    let (large, small) = (larger * larger, smaller * smaller);
    let root = (large + small).sqrt();
    let product = root * root;
    let low = larger.mul_add(larger, -large) + smaller.mul_add(smaller, -small) - root.mul_add(root, -product);
    let error = ((large - product) + small) + low;
    let supported = (larger > LOW) & (larger < HIGH) & (smaller < HIGH);
    let result = if supported { root + error / (root + root) } else { f64::NAN };
    // If `larger` is 0, `smaller` is 0 or NaN.
    if larger == 0.0 { smaller } else { result }
}

impl FloatMath for f64 {
    from_std!(f64 u64);

    const ROUND: f64 = ROUND;
    const EXP_RANGE: (f64, f64) = (-746.0, 710.0);
    // The first part of ln 2 has 21 trailing zero bits, so its product with an integer exponent is exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238_164_90e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;
    const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
    const LOG10_E_LOW: f64 = 1.098_319_650_216_765e-17;
    const LOG10_2_HIGH: f64 = 0.301_029_995_664_066_5;
    const LOG10_2_LOW: f64 = -8.532_344_317_057_107e-14;
    const GUARD_EXPONENT: f64 = 512.0;
    const INVERSE_GUARD: f64 = 1.0 / (ROOT * ROOT); // 2⁻⁵¹²
    const TANH_RANGE: (f64, f64) = (0.55, 20.0);
    const POW_NEEDS_FMA: bool = true;

    #[inline(always)]
    fn expm1_reduced<const FMA: bool>(r: f64) -> f64 {
        fma::<FMA, _>(expm1_rest::<FMA>(r), r * r, r)
    }

    #[inline(always)]
    fn split_exponent(x: f64) -> (f64, f64) {
        const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
        let bits = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF);
        // The exponent is converted from an integer of 32 bits, because not every instruction set converts integers of 64 bits.
        let n = f64::from((bits >> 52) as i32 - 1023);
        (n, f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF)) - 1.0)
    }

    /// Uses the method of FreeBSD's `e_log.c`: with s = m/(2 + m) and a polynomial R, ln(1 + m) = m - (m²/2 - s (m²/2 + R(s²))).
    #[inline(always)]
    fn log1p_minus_x<const FMA: bool>(m: f64) -> f64 {
        let s = m / (2.0 + m);
        let z = s * s;
        let p = [
            0.148_119_844_948_728_73,
            0.153_130_783_414_772_3,
            0.181_835_719_334_450_83,
            0.222_221_991_525_931_6,
            0.285_714_287_279_410_84,
            0.399_999_999_995_286_3,
            0.666_666_666_666_670_8,
        ];
        let half = 0.5 * m * m;
        fma::<FMA, _>(s, fma::<FMA, _>(polynomial::<FMA, 7, _>(z, p), z, half), -half)
    }

    #[inline(always)]
    fn tanh_series<const FMA: bool>(square: f64) -> f64 {
        let p = [
            -1.944_523_797_315_158_5e-5,
            8.327_230_849_381_269e-5,
            -2.333_799_083_248_639_5e-4,
            5.884_572_370_345_408e-4,
            -1.455_549_787_069_505_7e-3,
            3.592_093_819_564_811e-3,
            -8.863_232_863_394_245e-3,
            2.186_948_840_816_437_7e-2,
            -5.396_825_396_481_378_5e-2,
            0.133_333_333_333_290_3,
            -0.333_333_333_333_333_15,
        ];
        polynomial::<FMA, 11, _>(square, p)
    }

    #[inline(always)]
    fn log_ordinary<const FMA: bool>(x: f64) -> f64 {
        let (n, m) = Self::split_exponent(x);
        fma::<FMA, _>(n, Self::LN_2_HIGH, m + fma::<FMA, _>(n, Self::LN_2_LOW, Self::log1p_minus_x::<FMA>(m)))
    }

    #[inline(always)]
    fn log<const FMA: bool>(x: f64) -> f64 {
        if Self::is_ordinary(x) { Self::log_ordinary::<FMA>(x) } else { FloatMath::ln(x) }
    }

    /// Computes the error function; error at most 2 units in the last place. Uses [`ERF_NEAR`] for |x| below 0.85. For larger |x|, the
    /// result is 1 - 2 Φ(-√2 |x|) with the sign of x.
    #[inline(always)]
    fn erf<const FMA: bool>(x: f64) -> f64 {
        let square = x * x;
        let near = fma::<FMA, _>(polynomial::<FMA, 12, _>(square, ERF_NEAR), x, x);
        // For |x| of 6 and above, the result is ±1.
        let magnitude = x.abs();
        let y = if magnitude > 6.0 { 6.0 } else { magnitude };
        let ratio = 2.0 * scaled_tail::<FMA>(SQRT_2 * y, 2.0 * (y * y));
        let (q, power) = Self::exp_nonpositive::<FMA>(-(y * y), None);
        let far = (1.0 - fma::<FMA, _>(ratio, q, ratio) * power * Self::INVERSE_GUARD).copysign(x);
        if magnitude < 0.85 { near } else { far }
    }

    /// Computes 1 - erf x with full relative accuracy for large x; error at most 3 units in the last place. The formula for x of 0.4 and
    /// above is e^(-x²) g(t)/(1 + 2x) with a polynomial g and t = (x - 3.75)/(x + 3.75). See [`combine_erfc`](FloatMath::combine_erfc) for
    /// other x.
    #[inline(always)]
    fn erfc<const FMA: bool>(x: f64) -> f64 {
        let magnitude = x.abs();
        // For |x| of 27.3 and above, erfc |x| is 0.
        let y = if magnitude > 27.3 { 27.3 } else { magnitude };
        let t = (y - 3.75) / (y + 3.75);
        let g = [
            -5.884_154_218_862_068e-10,
            2.456_365_580_803_182_5e-8,
            1.539_470_940_975_115_2e-8,
            -2.402_343_555_384_105e-7,
            -4.780_819_136_130_958_5e-8,
            1.737_610_093_224_648_1e-6,
            -9.800_435_398_802_44e-7,
            -1.143_742_878_553_647e-5,
            2.238_700_139_241_149_3e-5,
            5.164_701_780_100_150_6e-5,
            -0.000_290_154_823_425_917_93,
            0.000_293_714_081_244_530_9,
            0.001_755_625_977_391_959_3,
            -0.009_746_579_609_874_994,
            0.028_362_277_406_552_04,
            -0.058_693_398_585_863_99,
            0.092_304_321_161_045_34,
            -0.108_803_930_141_889_44,
            0.082_276_738_490_129_13,
            0.003_585_415_485_466_466_3,
            -0.140_240_598_585_546_86,
            1.237_512_630_837_827_5,
        ];
        let near = 1.0 - fma::<FMA, _>(polynomial::<FMA, _, _>(y * y, ERF_NEAR), x, x);
        Self::combine_erfc::<FMA, _>(x, y, t, g, near)
    }

    /// Computes Φ(x), the normal distribution function; error at most 7 units in the last place in the left tail.
    #[inline(always)]
    fn ndtr<const FMA: bool>(x: f64) -> f64 {
        let magnitude = x.abs();
        // For |x| of 38.5 and above, the tail Φ(-|x|) is 0.
        let y = if magnitude > 38.6 { 38.6 } else { magnitude };
        let (square, rest) = Self::square::<FMA>(y);
        let ratio = scaled_tail::<FMA>(y, square);
        let (q, power) = Self::exp_nonpositive::<FMA>(-0.5 * square, Some(0.5 * rest));
        let tail = fma::<FMA, _>(ratio, q, ratio) * power * Self::INVERSE_GUARD;
        if x > 0.0 { 1.0 - tail } else { tail }
    }

    #[inline(always)]
    fn is_moderate_angle(x: f64) -> bool {
        x.abs() < 1e6
    }

    #[inline(always)]
    fn sine<const FMA: bool>(x: f64, quarters: u64) -> f64 {
        let shifted = fma::<FMA, _>(x, FRAC_2_PI, ROUND);
        let n = shifted - ROUND;
        // The difference `first` is exact. `rest` is the product of -n and the fourth part of π/2, plus the rounding errors of the
        // differences `second` and `r`.
        let first = fma::<FMA, _>(-n, HALF_PI[0], x);
        let second = fma::<FMA, _>(-n, HALF_PI[1], first);
        let r = fma::<FMA, _>(-n, HALF_PI[2], second);
        let lost = fma::<FMA, _>(-n, HALF_PI[1], first - second) + fma::<FMA, _>(-n, HALF_PI[2], second - r);
        let rest = fma::<FMA, _>(-n, HALF_PI[3], lost);
        let z = r * r;
        // `parabola + below` is 1 - z/2 without rounding.
        let parabola = fma::<FMA, _>(-0.5, z, 1.0);
        let below = fma::<FMA, _>(-0.5, z, 1.0 - parabola);
        let p = [
            1.589_619_962_222_758e-10,
            -2.505_074_725_489_672_7e-8,
            2.755_731_361_826_670_6e-6,
            -0.000_198_412_698_295_809_25,
            0.008_333_333_333_322_108,
            -0.166_666_666_666_666_3,
        ];
        let sine = r + fma::<FMA, _>(polynomial::<FMA, 6, _>(z, p), r * z, rest * parabola);
        // A result of 0 has the sign of the argument.
        let sine = if r == 0.0 { r } else { sine };
        let p = [
            -1.135_851_452_252_395_6e-11,
            2.087_570_042_670_713_3e-9,
            -2.755_731_417_631_68e-7,
            2.480_158_728_884_167_5e-5,
            -0.001_388_888_888_887_304,
            0.041_666_666_666_666_595,
        ];
        let cosine = parabola + fma::<FMA, _>(polynomial::<FMA, 6, _>(z, p), z * z, below - r * rest);
        let quadrant = shifted.to_bits().wrapping_add(quarters);
        let y = if quadrant & 1 == 0 { sine } else { cosine };
        f64::from_bits(y.to_bits() ^ ((quadrant & 2) << 62))
    }

    #[inline(always)]
    fn is_ordinary_pow(x: f64, y: f64) -> bool {
        Self::is_ordinary(x) & (y.abs() < 1e20)
    }

    /// Computes xʸ = 2^(y log₂ x) for arguments that satisfy [`is_ordinary_pow`](Self::is_ordinary_pow), if the processor has FMA
    /// instructions; error at most 1 unit in the last place. The logarithm and its product with y are sums of two numbers. For x = m 2ⁿ, it
    /// computes log₂ m = s (A + s² (B + s² Q(s²))) with s = (m - 1)/(m + 1). Here A and B are constants, and Q is a polynomial.
    #[inline(always)]
    fn pow_ordinary<const FMA: bool>(x: f64, y: f64) -> f64 {
        const A: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
        const B: [f64; 2] = [0.961_796_693_925_975_6, 5.057_761_664_812_590_7e-17];
        let (n, f) = Self::split_exponent(x);
        let m = f + 1.0;
        let below = m + 1.0;
        let inverse = 1.0 / below;
        let s = f * inverse;
        let s_low = (-s).mul_add(m - (below - 1.0), (-s).mul_add(below, f)) * inverse;
        let z = s * s;
        let z_low = (2.0 * s).mul_add(s_low, s.mul_add(s, -z));
        let p = [
            0.172_964_767_652_055_15,
            0.168_432_044_941_079_38,
            0.192_402_389_085_952_92,
            0.221_952_239_069_034_36,
            0.262_308_199_184_955_6,
            0.320_598_897_907_728_8,
            0.412_198_583_111_371,
            0.577_078_016_355_585_1,
        ];
        let q = polynomial::<true, 8, _>(z, p) * z;
        let u = B[0] + q;
        let u_low = (q - (u - B[0])) + B[1];
        let v = z * u;
        let v_low = z.mul_add(u, -v) + z.mul_add(u_low, z_low * u);
        let w = A[0] + v;
        let w_low = (v - (w - A[0])) + (A[1] + v_low);
        let l = s * w;
        let l_low = s.mul_add(w, -l) + s.mul_add(w_low, s_low * w);
        let log = n + l;
        let log_low = (l - (log - n)) + l_low;
        let high = y * log;
        let low = y.mul_add(log_low, y.mul_add(log, -high));
        // If log₂ of the power is beyond ±1100, the power is ∞ or 0.
        let (high, low) = if high > 1100.0 { (1100.0, 0.0) } else { (high, low) };
        let (high, low) = if high < -1100.0 { (-1100.0, 0.0) } else { (high, low) };
        const BASE: f64 = ROUND + 2.0 * f64::BIAS;
        const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
        let shifted = high + BASE;
        let fraction = high - (shifted - BASE);
        let t = fraction + low;
        let t_low = (fraction - t) + low;
        let r = t * LN_2;
        let r_low = t_low.mul_add(LN_2, t.mul_add(LN_2_REST, t.mul_add(LN_2, -r)));
        // `sum + rest` is 1 + r exactly, and the small terms are added last. So powers that can be represented exactly are exact.
        let sum = 1.0 + r;
        let rest = (1.0 - sum) + r;
        let y = sum + expm1_rest::<true>(r).mul_add(r * r, rest + r_low);
        Self::scale_by_power(y, shifted)
    }

    #[cfg(target_arch = "x86_64")]
    fn by_table(op: crate::Unary, x: &[f64], out: &mut [f64]) -> bool {
        crate::scalar::math::tables::double_unary(op, x, out)
    }
}

#[cfg(test)]
mod tests {
    use super::{fmod_of_short_quotient, hypot};

    /// Tests dividends at and next to multiples of the divisor, where a rounded quotient may be a wrong integer.
    #[test]
    fn remainders_are_exact_or_nan() {
        for divisor in [1.0f64, 3.0, -0.1, 7.7e-12, 1.999_999_999_999_999_8, 5.5e300, 5e-324, 3e-308] {
            for factor in [0.0f64, 0.7, 1.0, 2.0, 3.0, 1e3, 8_388_609.0, 3e15, 1e17, f64::INFINITY, f64::NAN] {
                let x = divisor * factor;
                for x in [x, -x, x.next_up(), x.next_down(), -x.next_up()] {
                    let got = fmod_of_short_quotient(x, divisor);
                    if got.is_nan() {
                        assert!(!(x / divisor).is_finite() || (x / divisor).abs() > 4e15, "{x} by {divisor}");
                    } else {
                        assert_eq!(got.to_bits(), (x % divisor).to_bits(), "{x} by {divisor}");
                    }
                }
            }
        }
        assert!(fmod_of_short_quotient(1.0, f64::INFINITY).is_nan() && fmod_of_short_quotient(1.0, 0.0).is_nan());
    }

    #[test]
    fn hypotenuses() {
        for k in 1..20_000 {
            let x = f64::from(k) * 0.731;
            for y in [x, 1.0 / x, x * x, -x.sqrt(), 1e-200, 0.0] {
                let (got, expected) = (hypot(x, y), libm::hypot(x, y));
                assert!((got - expected).abs() <= expected.next_up() - expected, "{x} {y}: {got} {expected}");
                assert_eq!(got.to_bits(), hypot(y, -x).to_bits());
            }
        }
        for (x, y) in
            [(f64::NAN, 1.0), (0.0, f64::NAN), (f64::INFINITY, 0.0), (1e-200, 0.0), (1e-200, 1e-200), (1e200, 1.0)]
        {
            assert!(hypot(x, y).is_nan() && hypot(y, x).is_nan(), "{x} {y}");
        }
        assert!([hypot(0.0, -0.0), hypot(-0.0, 0.0), hypot(-0.0, -0.0)].iter().all(|zero| zero.to_bits() == 0));
    }

    /// Near the bounds of the range, no intermediate result is subnormal or infinite, so scaling the numbers scales the result.
    #[test]
    fn hypotenuses_of_small_and_large_numbers() {
        for power in [-440, 470] {
            let scale = 2f64.powi(power);
            for k in 1..20_000 {
                let x = f64::from(k) * 0.731;
                for y in [x, 1.0 / x, x * x, -x.sqrt(), 0.0] {
                    let (got, expected) = (hypot(x * scale, y * scale), hypot(x, y) * scale);
                    assert_eq!(got.to_bits(), expected.to_bits(), "{x} {y}, scaled by 2^{power}");
                }
            }
        }
    }
}
