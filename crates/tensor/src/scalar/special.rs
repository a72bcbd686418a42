//! Functions of real numbers that the standard library lacks, in f64, and the greatest common divisor of integers. For f32, the functions are
//! computed in f64 and rounded, unless [`wide`](crate::scalar::math::wide) has a faster form. The rounded f64 result is almost always the f32
//! number nearest to the exact result.
//!
//! Logarithms and similar functions come from the crate `libm`, which computes the same bits on every platform. The standard library calls
//! the C library of the platform instead.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use libm::{erf, erfc};

/// Computes sin(πx) / (πx), 1 at 0, and NaN at ±∞. The distance of x from the nearest integer is exact, so the zeros of the sine are exact.
pub(crate) fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let nearest = x.round_ties_even();
    let sine = libm::sin(PI * (x - nearest));
    // sin(πx) equals this sine if `nearest` is even, and its negative if `nearest` is odd. From 2⁵³ on, all numbers are even integers.
    let sine = if nearest % 2.0 == 0.0 { sine } else { -sine };
    sine / (x * PI)
}

/// Returns the mantissa m and the exponent e of x = m 2ᵉ, where ½ ≤ |m| < 1. Zeros, infinities and NaN are their own mantissas, with
/// exponent 0. Has no branches, so that a loop over numbers uses vector instructions.
#[inline(always)]
pub(crate) fn frexp(x: f64) -> (f64, i64) {
    let is_normal = x.abs() >= f64::MIN_POSITIVE;
    // A subnormal number has its leading bit in the mantissa. The product with 2⁵⁴ is exact and normal.
    let bits = (if is_normal { x } else { x * (1u64 << 54) as f64 }).to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - if is_normal { 1022 } else { 1022 + 54 };
    let mantissa = f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52);
    let keeps = (x == 0.0) | !x.is_finite();
    (if keeps { x } else { mantissa }, if keeps { 0 } else { exponent })
}

/// Computes ln(x / (1 - x)). Around 1/2 it uses the inverse hyperbolic tangent, whose argument is exact there.
pub(crate) fn logit(x: f64) -> f64 {
    if (0.25..0.75).contains(&x) { 2.0 * libm::atanh(2.0 * x - 1.0) } else { libm::log(x) - libm::log1p(-x) }
}

/// The coefficients of (erfinv x)/x as a polynomial in -ln(1 - x²) - 2.5, where this is below 2.5. They are from M. B. Giles, "Approximating
/// the erfinv function" (2011). The error is about 4e-7 of the result.
pub(crate) const ERFINV_CENTRAL: [f64; 9] = [
    2.810_226_36e-08,
    3.432_739_39e-07,
    -3.523_387_7e-06,
    -4.391_506_54e-06,
    2.185_808_7e-04,
    -1.253_725_03e-03,
    -4.177_681_640e-03,
    2.466_407_27e-01,
    1.501_409_41,
];

/// Computes the inverse of erf: ±∞ at ±1, NaN outside [-1, 1].
///
/// The initial value is from M. B. Giles, "Approximating the erfinv function" (2011), except near ±1. For |x| below 1/2, Newton steps on
/// erf follow. For larger |x|, Newton steps use the logarithm of erfc instead: the logarithm is nearly a parabola there, and its relative
/// error stays small.
pub(crate) fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    let size = x.abs();
    let w = -libm::log((1.0 - size) * (1.0 + size));
    let mut y = if w < 5.0 {
        size * polynomial(w - 2.5, &ERFINV_CENTRAL)
    } else {
        // Near ±1, the initial value of y is from erfc y ≈ e^(-y²) / (y √π).
        (w - 0.5 * libm::log(PI * w)).sqrt()
    };
    for _ in 0..6 {
        let density = FRAC_2_SQRT_PI * libm::exp(-y * y);
        let step = if size < 0.5 {
            (size - erf(y)) / density
        } else {
            // `size` is |x|, and the difference 1 - `size` is exact.
            let tail = erfc(y);
            libm::log(tail / (1.0 - size)) * tail / density
        };
        y += step;
        if step.abs() <= f64::EPSILON * y.abs() {
            break;
        }
    }
    y.copysign(x)
}

/// Evaluates a polynomial. The coefficient of the highest power is first.
#[inline(always)]
fn polynomial<const N: usize>(t: f64, coefficients: &[f64; N]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * t + c)
}

/// Computes the `p`-quantile of the standard normal distribution, 0 < `p` < 1, with a relative error below 1e-15.
///
/// The method is from M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988), PPND16. It uses quotients
/// of polynomials. In the tails, their argument is √(-ln t) minus a constant, where t is the smaller of p and 1 - p. The coefficient of the
/// highest power comes first.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= MAX_CENTRAL {
        return rational_function(q, 0.180625 - q * q, &CENTRAL_COEFFICIENTS);
    }
    let r = (-libm::log(if q < 0.0 { p } else { 1.0 - p })).sqrt();
    let z = if r <= 5.0 {
        rational_function(1.0, r - 1.6, &TAIL_COEFFICIENTS)
    } else {
        rational_function(1.0, r - 5.0, &FAR_TAIL_COEFFICIENTS)
    };
    z.copysign(q)
}

crate::scalar::cpu::dispatched! {
    /// Writes the [`normal_quantile`] of each number of `p` to `out`, with the same bits. The loops can be vectorized.
    pub(crate) fn normal_quantiles(p: &[f64; QUANTILES], out: &mut [f64; QUANTILES]) {
        // `places` has the positions of the numbers in the tails of the distribution. `tails` has the distance of each of these numbers from
        // 0 or 1. Its unused elements keep the value 0.01.
        let (mut places, mut tails, mut count) = ([0; QUANTILES], [0.01; QUANTILES], 0);
        for i in 0..QUANTILES {
            let q = p[i] - 0.5;
            out[i] = rational_function(q, 0.180625 - q * q, &CENTRAL_COEFFICIENTS);
        }
        for (i, p) in p.iter().enumerate() {
            places[count] = i;
            count += usize::from((p - 0.5).abs() > MAX_CENTRAL);
        }
        for (tail, &i) in tails.iter_mut().zip(&places[..count]) {
            *tail = p[i].min(1.0 - p[i]);
        }
        let mut quantiles = [0.0; QUANTILES];
        for (out, tails) in quantiles.as_chunks_mut::<8>().0.iter_mut().zip(tails.as_chunks::<8>().0).take(count.div_ceil(8)) {
            for i in 0..8 {
                out[i] = rational_function(1.0, (-log_of_normal_number(tails[i])).sqrt() - 1.6, &TAIL_COEFFICIENTS);
            }
        }
        for (k, &i) in places[..count].iter().enumerate() {
            out[i] = if tails[k] > MIN_TAIL { quantiles[k].copysign(p[i] - 0.5) } else { normal_quantile(p[i]) };
        }
    }
}

/// The number of quantiles that one call of [`normal_quantiles`] computes.
pub(crate) const QUANTILES: usize = 64;

/// The largest distance from 1/2 of a probability whose quantile is computed by the quotient [`CENTRAL_COEFFICIENTS`].
const MAX_CENTRAL: f64 = 0.425;

/// A number above e⁻²⁵ = 1.39e-11. The quantile of a probability between this number and 0.075 is computed by the quotient
/// [`TAIL_COEFFICIENTS`].
const MIN_TAIL: f64 = 2e-11;

/// Returns `x` times the quotient of two polynomials at `t`.
#[inline(always)]
fn rational_function(x: f64, t: f64, [numerator, denominator]: &[[f64; 8]; 2]) -> f64 {
    x * polynomial(t, numerator) / polynomial(t, denominator)
}

/// Computes ln x for a positive normal x other than 1, with the bits of [`libm::log`]. The formula is from FreeBSD's `e_log.c`.
#[inline(always)]
fn log_of_normal_number(x: f64) -> f64 {
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    const ODD: [f64; 4] =
        [6.666_666_666_666_735e-1, 2.857_142_874_366_239e-1, 1.818_357_216_161_805e-1, 1.479_819_860_511_658_6e-1];
    const EVEN: [f64; 3] = [3.999_999_999_940_942e-1, 2.222_219_843_214_978_4e-1, 1.531_383_769_920_937_3e-1];
    // x is m 2ᵏ with m in √½ .. √2. `ROOT` has the exponent and the first digits of √½.
    const ROOT: u64 = 0x3fe6_a09e << 32;
    const ONE: u64 = 0x3ff0_0000 << 32;
    const FRACTION: u64 = (1 << 52) - 1;
    let raised = x.to_bits() + (ONE - ROOT);
    let k = (raised >> 52) as i64 - 1023;
    let f = f64::from_bits((raised & FRACTION) + ROOT) - 1.0;
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (EVEN[0] + w * (EVEN[1] + w * EVEN[2]));
    let odd = z * (ODD[0] + w * (ODD[1] + w * (ODD[2] + w * ODD[3])));
    let k = k as f64;
    s * (half + (odd + even)) + k * LN_2[1] - half + f + k * LN_2[0]
}

#[rustfmt::skip]
const CENTRAL_COEFFICIENTS: [[f64; 8]; 2] = [
    [
        2_509.080_928_730_122_7, 33_430.575_583_588_13, 67_265.770_927_008_7, 45_921.953_931_549_87,
        13_731.693_765_509_46, 1_971.590_950_306_551_3, 133.141_667_891_784_38, 3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854, 28_729.085_735_721_943, 39_307.895_800_092_71, 21_213.794_301_586_597,
        5_394.196_021_424_751, 687.187_007_492_057_9, 42.313_330_701_600_91, 1.0,
    ],
];

#[rustfmt::skip]
const TAIL_COEFFICIENTS: [[f64; 8]; 2] = [
    [
        0.000_774_545_014_278_341_4, 0.022_723_844_989_269_184, 0.241_780_725_177_450_6, 1.270_458_252_452_368_4,
        3.647_848_324_763_204_5, 5.769_497_221_460_691, 4.630_337_846_156_546, 1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-09, 0.000_547_593_808_499_534_5, 0.015_198_666_563_616_457, 0.148_103_976_427_480_08,
        0.689_767_334_985_1, 1.676_384_830_183_803_8, 2.053_191_626_637_759, 1.0,
    ],
];

#[rustfmt::skip]
const FAR_TAIL_COEFFICIENTS: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288_1e-07, 2.711_555_568_743_487_6e-05, 0.001_242_660_947_388_078_4, 0.026_532_189_526_576_124,
        0.296_560_571_828_504_87, 1.784_826_539_917_291_3, 5.463_784_911_164_114, 6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_7e-15, 1.421_511_758_316_446e-07, 1.846_318_317_510_054_8e-05, 0.000_786_869_131_145_613_3,
        0.014_875_361_290_850_615, 0.136_929_880_922_735_8, 0.599_832_206_555_888, 1.0,
    ],
];

/// Computes the derivative of ln Γ(x). As in PyTorch, it is ∓∞ at ±0 and NaN at negative integers.
///
/// From 1 to 2, it uses the rational function of the Boost libraries (`digamma.hpp`, J. Maddock), which has the zero at 1.46 as a factor.
/// From 0 to 1 and from 2 to 10 it uses a recurrence (Abramowitz and Stegun 6.3.5). Above 10 it uses the asymptotic series (6.3.18), and
/// below 0 the reflection formula (6.3.7).
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        let angle = PI * (x - x.round_ties_even());
        return digamma(1.0 - x) - PI / libm::tan(angle);
    }
    if x >= 10.0 || x.is_nan() {
        if x > 1e17 {
            return libm::log(x);
        }
        let z = 1.0 / (x * x);
        let series = z
            * (1.0 / 12.0
                - z * (1.0 / 120.0
                    - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
        return libm::log(x) - 0.5 / x - series;
    }
    let (mut x, mut shift) = (x, 0.0);
    while x > 2.0 {
        x -= 1.0;
        shift += 1.0 / x;
    }
    if x < 1.0 {
        shift = -1.0 / x;
        x += 1.0;
    }
    shift + digamma_from_1_to_2(x)
}

fn digamma_from_1_to_2(x: f64) -> f64 {
    // The positive zero of digamma as a sum of three numbers. The first two have few digits, so that differences from x are exact.
    const ZERO: [f64; 3] = [
        1_569_415_565.0 / 1_073_741_824.0,
        381_566_830.0 / 1_073_741_824.0 / 1_073_741_824.0,
        0.901_631_209_325_869_6e-19,
    ];
    const Y: f64 = 0.995_581_626_892_089_8;
    const P: [f64; 6] = [
        -0.002_071_332_116_774_595,
        -0.045_251_321_448_739_06,
        -0.289_191_264_447_747_84,
        -0.650_318_537_708_965_1,
        -0.325_550_311_868_044_9,
        0.254_798_510_611_315_53,
    ];
    const Q: [f64; 7] = [
        -5.578_984_132_167_551e-7,
        0.002_128_498_701_782_114_6,
        0.054_151_797_245_674_226,
        0.435_935_296_926_659_67,
        1.460_624_290_976_351_6,
        2.076_711_702_373_047,
        1.0,
    ];
    let polynomial = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * (x - 1.0) + c);
    let distance = ZERO.iter().fold(x, |distance, part| distance - part);
    distance * Y + distance * (polynomial(&P) / polynomial(&Q))
}

fn square(x: f64) -> f64 {
    x * x
}

/// Computes the derivative of digamma to nine digits, with as many terms of the asymptotic series (Abramowitz and Stegun 6.4.12) as
/// PyTorch. Below 1/2 it uses the reflection formula (6.4.7).
pub(crate) fn trigamma(x: f64) -> f64 {
    let (mut sum, sign, mut x) = match x < 0.5 {
        true => (-square(PI / libm::sin(PI * x)), -1.0, 1.0 - x),
        false => (0.0, 1.0, x),
    };
    for _ in 0..6 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    sum += (1.0 + 0.5 / x + z * (1.0 / 6.0 - z * (1.0 / 30.0 - z / 42.0))) / x;
    sign * sum
}

/// Computes the Hurwitz zeta function ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0. As in PyTorch, it is ∞ at s = 1 and NaN for s < 1. It is ∞ if q is
/// 0 or a negative integer, and NaN at other negative q if s is not an integer.
///
/// The first few terms are added, and the Euler-Maclaurin formula gives the others (NIST Digital Library of Mathematical Functions,
/// 25.11.5).
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return f64::NAN;
    }
    if s == 1.0 {
        return f64::INFINITY;
    }
    if q > 0.0 {
        return zeta_of_positive(s, q);
    }
    if q == q.trunc() {
        return f64::INFINITY;
    }
    if s != s.trunc() {
        return f64::NAN;
    }
    // Terms (q + k)⁻ˢ with negative q + k are summed separately. The magnitudes of their q + k run from `below` to |q|. The positive q + k
    // begin at 1 - `below`.
    let below = q.trunc() - q;
    // An infinite s counts as even: then all terms are 0, 1 or ∞.
    let sign = if s % 2.0 == 1.0 { -1.0 } else { 1.0 };
    sign * (zeta_of_positive(s, below) - zeta_of_positive(s, 1.0 - q)) + zeta_of_positive(s, 1.0 - below)
}

fn zeta_of_positive(s: f64, q: f64) -> f64 {
    // The factors (2k)! / B₂ₖ, where B₂ₖ are the Bernoulli numbers.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1.892_437_580_318_379_4e9,
        7.472_424_96e10,
        -2.950_130_727_918_164e12,
        1.164_678_281_435_006_7e14,
        -4.597_978_722_407_473e15,
        1.815_210_540_194_354_7e17,
        -7.166_165_256_175_667e18,
    ];
    let (mut sum, mut w) = (0.0, q);
    for _ in 0..9 {
        let term = libm::pow(w, -s);
        sum += term;
        w += 1.0;
        // The sum of the remaining terms is about `term` · w / (s - 1).
        if term <= f64::EPSILON / 4.0 * sum / (w / (s - 1.0)).max(1.0) {
            return sum;
        }
    }
    let power = libm::pow(w, -s);
    sum += power * w / (s - 1.0) + 0.5 * power;
    let (mut rising, mut power) = (s, power / w);
    for (k, factor) in FACTORS.into_iter().enumerate() {
        let term = rising * power / factor;
        sum += term;
        if term.abs() <= f64::EPSILON / 4.0 * sum {
            break;
        }
        let k = 2.0 * k as f64;
        rising *= (s + k + 1.0) * (s + k + 2.0);
        power /= w * w;
    }
    sum
}

/// Computes the regularized incomplete gamma function: the part of Γ(a) = ∫ tᵃ⁻¹ e⁻ᵗ dt from t below x, divided by Γ(a). If `is_upper` is
/// true, computes the part from t above x. The result is NaN if an argument is negative or NaN, and if both are 0 or both are infinite.
///
/// For x < a + 1, the lower part is computed by a series (Abramowitz and Stegun 6.5.29). Otherwise the upper part is computed by a
/// continued fraction (6.5.31, by W. J. Lentz's method). If x is near a, both need a small multiple of √a terms, so [`uniform_part`]
/// computes both parts for large a. Elsewhere the other part is 1 minus the computed part. For a below [`MAX_NEAR_ZERO`], this difference
/// would have few correct digits, so [`upper_near_zero`] computes it.
pub(crate) fn incomplete_gamma(a: f64, x: f64, is_upper: bool) -> f64 {
    if !(a >= 0.0 && x >= 0.0) || a == 0.0 && x == 0.0 || a.is_infinite() && x.is_infinite() {
        return f64::NAN;
    }
    let is_none = x == 0.0 || a.is_infinite();
    if is_none || a == 0.0 || x.is_infinite() {
        return if is_none == is_upper { 1.0 } else { 0.0 };
    }
    if a >= MIN_UNIFORM && (x - a).abs() < 0.3 * a {
        return uniform_part(a, x, is_upper);
    }
    let is_series = x < a + 1.0;
    if is_upper && is_series && a < MAX_NEAR_ZERO {
        return upper_near_zero(a, x);
    }
    let share = if is_series { lower_series(a, x) } else { upper_fraction(a, x) };
    if is_series == is_upper { 1.0 - share } else { share }
}

/// The number below which a must be so that [`upper_near_zero`] computes the upper part. The first omitted term of its series of ln Γ(1 + a)
/// is below 1e-18.
const MAX_NEAR_ZERO: f64 = 1e-3;

/// Computes the upper part for a small a and x < a + 1. The result is about a times the exponential integral E₁(x). With w = xᵃ / Γ(a + 1),
/// the upper part is 1 - w - w Σ (-x)ᵏ a / (k! (a + k)) over k ≥ 1 (NIST Digital Library of Mathematical Functions, 8.7.3).
fn upper_near_zero(a: f64, x: f64) -> f64 {
    let (mut power, mut sum) = (1.0, 0.0);
    for k in 1..30 {
        let k = f64::from(k);
        power *= -x / k;
        sum += power * a / (a + k);
    }
    // The coefficients of ln Γ(1 + a) are Euler's constant and ζ(n) / n (5.7.3).
    let series = [
        0.577_215_664_901_532_9,
        -0.822_467_033_424_113_2,
        0.400_685_634_386_531_43,
        -0.270_580_808_427_784_54,
        0.207_385_551_028_673_98,
    ];
    let lgamma1p = -a * series.iter().rev().fold(0.0, |sum, c| sum * a + c);
    let logarithm = a * libm::log(x) - lgamma1p;
    -libm::expm1(logarithm) - libm::exp(logarithm) * sum
}

/// Computes xᵃ e⁻ˣ / Γ(a + 1).
fn gamma_weight(a: f64, x: f64) -> f64 {
    if a < 20.0 {
        return libm::exp(a * libm::log(x) - x - libm::lgamma(a + 1.0));
    }
    // Stirling's series gives Γ(a + 1), and `distance` gives ln(x / a). So no large numbers cancel.
    let distance = (x - a) / a;
    let exponent = if distance.abs() < 0.3 { log1p_minus_x(distance) } else { libm::log(x / a) - distance };
    let z = 1.0 / (a * a);
    let stirling = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / a;
    libm::exp(a * exponent - stirling) / (2.0 * PI * a).sqrt()
}

/// Computes ln(1 + d) - d for |d| below 0.3, by its series.
fn log1p_minus_x(d: f64) -> f64 {
    let (mut power, mut sum) = (-d, 0.0);
    for k in 2..60 {
        power *= -d;
        let term = power / f64::from(k);
        sum -= term;
        if term.abs() <= f64::EPSILON / 4.0 * f64::abs(sum) {
            break;
        }
    }
    sum
}

/// The smallest a for which [`uniform_part`] computes the incomplete gamma function. The terms that [`uniform_part`] leaves out
/// change the result by less than one part in 10¹⁶, so the rounding hides them.
const MIN_UNIFORM: f64 = 1e6;

/// Computes the incomplete gamma function for large a, and x near a (N. M. Temme, "The asymptotic expansion of the incomplete gamma
/// functions", 1979). With μ = (x - a) / a, η has the sign of μ, and η² / 2 is μ - ln(1 + μ). The upper part is erfc(η √(a/2)) / 2 + R.
/// R is e^(-a η² / 2) / √(2π a) times the sum of c_k(η) / aᵏ. The series of c_k are from A. R. DiDonato and A. H. Morris, "Computation of
/// the incomplete gamma function ratios and their inverse" (1986).
fn uniform_part(a: f64, x: f64, is_upper: bool) -> f64 {
    const C: [&[f64]; 3] = [
        &[
            -1.854_062_210_715_16e-6,
            -2.185_448_510_679_999e-6,
            3.919_263_178_522_438e-5,
            -1.787_551_440_329_218e-4,
            3.527_336_860_670_194e-4,
            1.157_407_407_407_407_4e-3,
            -1.481_481_481_481_481_5e-2,
            8.333_333_333_333_333e-2,
            -1.0 / 3.0,
        ],
        &[-9.902_263_374_485_596e-4, 2.645_502_645_502_645_5e-3, -3.472_222_222_222_222e-3, -1.851_851_851_851_852e-3],
        &[4.133_597_883_597_883e-3],
    ];
    let mu = (x - a) / a;
    let half_square = -log1p_minus_x(mu);
    let eta = (2.0 * half_square).sqrt().copysign(mu);
    let sum = C.iter().rev().fold(0.0, |sum, c| sum / a + c.iter().fold(0.0, |value, c| value * eta + c));
    let rest = libm::exp(-a * half_square) / (2.0 * PI * a).sqrt() * sum;
    let tail = |eta: f64| erfc(eta * (0.5 * a).sqrt()) / 2.0;
    if is_upper { tail(eta) + rest } else { tail(-eta) - rest }
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    // The terms decrease, because n is above x. If x is near a, the number of terms is a small multiple of √a.
    for _ in 0..1_000_000 {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= f64::EPSILON / 4.0 * sum {
            break;
        }
    }
    gamma_weight(a, x) * sum
}

fn upper_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (f64::MAX, 1.0 / b);
    let mut fraction = d;
    for k in 1..1_000_000 {
        let k = f64::from(k);
        let factor = k * (a - k);
        b += 2.0;
        d = 1.0 / (factor * d + b);
        c = b + factor / c;
        let change = c * d;
        fraction *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    gamma_weight(a, x) * a * fraction
}

/// Returns the greatest common divisor, which is not negative, except that 2⁶³ wraps to `i64::MIN`. gcd(0, 0) is 0.
pub(crate) fn gcd(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x.unsigned_abs(), y.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mantissas_and_exponents() {
        let sizes = [0.0, 5e-324, 3e-310, f64::MIN_POSITIVE, 1e-40, 0.3, 0.5, 1.0, 6.0, 1e300, f64::MAX, f64::INFINITY];
        for x in sizes.into_iter().flat_map(|size| [size, -size]) {
            let (mantissa, exponent) = frexp(x);
            assert_eq!((mantissa.to_bits(), exponent), (libm::frexp(x).0.to_bits(), libm::frexp(x).1.into()), "{x}");
        }
        assert!(frexp(f64::NAN).0.is_nan() && frexp(f64::NAN).1 == 0);
    }

    #[test]
    fn erfinv_undoes_erf() {
        for x in [-0.999_999, -0.9, -0.5, -1e-8, 0.0, 1e-300, 0.3, 0.7, 0.99, 1.0 - 1e-12] {
            let back = erf(erfinv(x));
            assert!((back - x).abs() <= 4.0 * f64::EPSILON * x.abs(), "{x}: {back}");
        }
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
    }

    #[test]
    fn normal_quantiles_at_known_points() {
        // The expected values are roots of the distribution function, computed to 60 digits.
        for (p, expected) in [
            (0.5, 0.0),
            (0.25, -0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_6),
            (0.075, -1.439_531_470_938_456),
            (0.925, 1.439_531_470_938_456_1),
            (0.99, 2.326_347_874_040_840_8),
            (0.001, -3.090_232_306_167_813_6),
            (1e-09, -5.997_807_015_007_686_5),
            (f64::EPSILON / 2.0, -8.209_536_151_601_387),
            (1e-300, -37.047_096_299_361_2),
        ] {
            let z = normal_quantile(p);
            assert!((z - expected).abs() <= 4.0 * f64::EPSILON * f64::abs(expected), "{p}: {z}");
        }
        assert_eq!(normal_quantile(0.75), -normal_quantile(0.25));
    }

    #[test]
    fn quantiles_of_a_block_have_the_bits_of_single_ones() {
        let mut generator = crate::Generator::new(5);
        for scale in [1.0, 1.0, 0.1, 1e-3, 1e-8, 1e-11, 1e-15, 1e-300] {
            let mut p = [0.5; QUANTILES];
            p.iter_mut().for_each(|p| *p = generator.uniform().max(f64::EPSILON) * scale);
            for p in [p, p.map(|p| (1.0 - p).min(1.0 - f64::EPSILON))] {
                let mut z = [0.0; QUANTILES];
                normal_quantiles(&p, &mut z);
                for (p, z) in p.into_iter().zip(z) {
                    assert_eq!(
                        (z.to_bits(), log_of_normal_number(p).to_bits()),
                        (normal_quantile(p).to_bits(), libm::log(p).to_bits()),
                        "{p}"
                    );
                }
            }
        }
    }

    #[test]
    fn digamma_at_known_points() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-15);
        assert!((digamma(0.5) + euler + 2.0 * 2f64.ln()).abs() < 1e-14);
        assert!((digamma(-0.5) - 0.036_489_973_978_576_52).abs() < 1e-14);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert!(digamma(-2.0).is_nan());
    }

    /// Tests large a, where x differs from a by a multiple of √a. The expected value is the smaller one of the lower and the upper function,
    /// integrated with 40 digits.
    #[test]
    fn incomplete_gamma_functions_of_large_numbers() {
        for (a, multiple, expected) in [
            (1e6, -10.0, 5.446_644_693_010_809e-24),
            (1e6, 3.0, 1.361_740_646_217_591_5e-3),
            (1e8, -3.0, 1.348_716_449_161_550_6e-3),
            (1e12, -10.0, 7.617_314_210_603_466e-24),
            (1e12, 0.0, 0.499_999_867_019_239_9),
            (1e15, 3.0, 1.349_898_413_071_698_1e-3),
        ] {
            let (x, is_upper) = (a + multiple * f64::sqrt(a), multiple >= 0.0);
            let (part, rest) = (incomplete_gamma(a, x, is_upper), incomplete_gamma(a, x, !is_upper));
            assert!((part / expected - 1.0).abs() < 1e-13, "{a} {multiple} {part}");
            assert!((part + rest - 1.0).abs() < 1e-15, "{a} {multiple}");
        }
        // At the smallest a for which `uniform_part` is used, its results agree with the series and with the continued fraction.
        for multiple in [-20.0, -4.0, -0.5, 0.0, 0.5, 4.0, 20.0] {
            let (a, x) = (MIN_UNIFORM, MIN_UNIFORM + multiple * 1e3);
            let is_upper = x >= a + 1.0;
            let expected = if is_upper { upper_fraction(a, x) } else { lower_series(a, x) };
            assert!((uniform_part(a, x, is_upper) / expected - 1.0).abs() < 1e-12, "{multiple}");
        }
    }

    #[test]
    fn trigamma_is_a_zeta_function() {
        for x in [-3.7, -0.25, 0.1, 0.5, 1.0, 2.75, 40.0] {
            assert!((trigamma(x) / zeta(2.0, x) - 1.0).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn zeta_at_known_points() {
        let pi = std::f64::consts::PI;
        let near = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-14, "{got} is not {expected}");
        near(zeta(2.0, 1.0), pi * pi / 6.0);
        near(zeta(4.0, 1.0), pi.powi(4) / 90.0);
        near(zeta(2.0, 0.5), pi * pi / 2.0);
        near(zeta(3.0, 1.0), 1.202_056_903_159_594_2);
        near(zeta(1.5, 1.0), 2.612_375_348_685_488);
        near(zeta(2.0, -0.5), pi * pi / 2.0 + 4.0);
        near(zeta(3.0, -1.25), zeta(3.0, 0.75) - 64.0 - 0.512);
        near(zeta(2.0, 1e9), 1e-9 + 0.5e-18);
        near(zeta(2.0, -1e9 - 0.5), pi * pi - 1e-9);
        assert_eq!((zeta(1.0, 2.0), zeta(2.0, 0.0), zeta(2.0, -3.0)), (f64::INFINITY, f64::INFINITY, f64::INFINITY));
        assert_eq!((zeta(2.0, f64::INFINITY), zeta(f64::INFINITY, 2.0)), (0.0, 0.0));
        assert_eq!(zeta(f64::INFINITY, -0.5), f64::INFINITY);
        // This zeta function is the sum of one large term, which is subtracted here, and of many terms that decrease slowly. Their sum is
        // 1/(s - 1) + 0.577 = 128.6. The large term is 6e15, so each of ten additions rounds to a whole number.
        let rest = zeta(1.0078125, f64::EPSILON) - f64::EPSILON.powf(-1.0078125);
        assert!((rest - 128.6).abs() <= 5.0, "{rest}");
        assert!(zeta(0.5, 1.0).is_nan() && zeta(1.5, -0.5).is_nan());
    }

    #[test]
    fn the_greatest_common_divisor_is_not_negative() {
        assert_eq!((gcd(-12, 18), gcd(0, -5), gcd(0, 0)), (6, 5, 0));
    }
}
