//! Functions of `f32`. With `FMA`, a product and a sum are rounded once, where the processor does that in one instruction; the
//! last bit may differ from what it is without.
// Coefficients are written with the digits that tell them apart from their neighbours.
#![allow(clippy::excessive_precision)]

use std::f32::consts::{LN_2, LOG2_E, LOG10_E};

pub(crate) use crate::scalar::math::wide::*;

/// Adding and taking off this number rounds to an integer, which is then in the low bits of the sum.
pub(crate) const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

/// As [`ROUND`], with the exponents of 2⁰ and 2⁶⁴ put on top: what the sum is shifted by is the exponent field of a number.
const ROUND_0: f32 = ROUND + BIAS;
const ROUND_64: f32 = ROUND + 191.0;

/// What takes 64 off an exponent again: its product is rounded once where it is subnormal.
const DROP: f32 = 1.0 / 18_446_744_073_709_551_616.0; // 2⁻⁶⁴

/// ln 2 in two parts: with an integer of up to 9 bits the first gives an exact product.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

const LOG2_E_LOW: f32 = 1.925_963e-8;
const LOG10_E_LOW: f32 = -1.010_305e-8;

/// log₁₀ 2, the first part short.
const LOG10_2_HIGH: f32 = 0.301_025_4;
const LOG10_2_LOW: f32 = 4.605_039e-6;

/// Where eˣ is 0, and where it is ∞.
const EXP_RANGE: (f32, f32) = (-104.0, 89.0);

crate::scalar::math::polynomials!(f32);

/// e^r - 1 for r in -½ ln 2 ..= ½ ln 2.
#[inline(always)]
fn expm1_reduced<const FMA: bool>(r: f32) -> f32 {
    let p = [0.001_388_209_4, 0.008_366_577, 0.041_667_208, 0.166_665_43, 0.499_999_97];
    fma::<FMA>(polynomial::<FMA, 5>(r, p), r * r, r)
}

/// e^(x - rest) as (1 + q) · power · [`DROP`], for x in -104 ..= 0 and a `rest` below an ulp of x.
#[inline(always)]
fn falling<const FMA: bool>(x: f32, rest: Option<f32>) -> (f32, f32) {
    let shifted = fma::<FMA>(x, LOG2_E, ROUND_64);
    let n = shifted - ROUND_64;
    let r = match rest {
        None => reduced::<FMA>(x, n),
        // What is small is added to what is exact.
        Some(rest) => fma::<FMA>(-n, LN_2_HIGH, x) + fma::<FMA>(-n, LN_2_LOW, -rest),
    };
    (expm1_reduced::<FMA>(r), power_of_two(shifted))
}

/// (ln(1 + m) - m + m²/2)/m³ for 1 + m in √½ .. √2.
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

/// ln(m 2ⁿ) of the bits of m 2ⁿ less those of √½, and of n less the exponent in those bits.
#[inline(always)]
fn log_of<const FMA: bool>(offset: u32, shift: f32) -> f32 {
    // m in √½ .. √2.
    let n = ((offset as i32) >> 23) as f32 - shift;
    let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let square = m * m;
    let y = fma::<FMA>(-0.5, square, fma::<FMA>(n, LN_2_LOW, polynomial::<FMA, 9>(m, LOG) * m * square));
    fma::<FMA>(n, LN_2_HIGH, m + y)
}

/// ln x of what [`is_ordinary`]; 1 unit in the last place.
#[inline(always)]
pub(crate) fn log_ordinary<const FMA: bool>(x: f32) -> f32 {
    log_of::<FMA>(x.to_bits().wrapping_sub(0x3f35_04f3), 0.0)
}

/// ln x; the same bits as [`log_ordinary`] has. -∞ at 0, NaN below.
#[inline(always)]
pub(crate) fn log<const FMA: bool>(x: f32) -> f32 {
    // Subnormals are brought into range first.
    let small = x < f32::MIN_POSITIVE;
    let scaled = if small { x * 8_388_608.0 } else { x };
    let y = log_of::<FMA>(scaled.to_bits().wrapping_sub(0x3f35_04f3), if small { 23.0 } else { 0.0 });
    // By the bits: ∞ and NaN stay what they are, and what has a sign becomes NaN.
    let bits = x.to_bits();
    let y = if bits < 0x7f80_0000 { y } else { f32::from_bits(bits | ((bits as i32) >> 31) as u32) };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// n and m - 1 of x = m 2ⁿ with m in √½ .. √2.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let offset = x.to_bits().wrapping_sub(0x3f35_04f3);
    let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    (((offset as i32) >> 23) as f32, m)
}

/// ln(1 + m) - m.
#[inline(always)]
fn log1p_rest<const FMA: bool>(m: f32) -> f32 {
    let square = m * m;
    fma::<FMA>(-0.5, square, polynomial::<FMA, 9>(m, LOG) * m * square)
}

/// 1/(1 + e⁻ˣ); 2 units in the last place.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    // e⁻ˣ of a large negative argument would overflow where the result is a small number still.
    let magnitude = -x.abs();
    let (q, power) = falling::<FMA>(if magnitude < -104.0 { -104.0 } else { magnitude }, None);
    let e = (q + 1.0) * power * DROP;
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
    // From 10 on the result is 1.
    let z = if magnitude > 10.0 { 10.0 } else { magnitude };
    let shifted = fma::<FMA>(z, 2.0 * LOG2_E, ROUND_0);
    let r = reduced::<FMA>(2.0 * z, shifted - ROUND_0);
    let power = power_of_two(shifted);
    let above = fma::<FMA>(expm1_reduced::<FMA>(r), power, power + 1.0);
    let far = 1.0 - 2.0 / above;
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
    let (q, power) = falling::<FMA>(-polynomial::<FMA, 8>(t, q), None);
    let far = (1.0 - (q + 1.0) * power * DROP).copysign(x);
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
    erfc_of::<FMA, _>(x, y, t, g)
}

/// Φ(x), the normal distribution function; 5 units in the last place in the left tail, 3 from 0 on: e^(-x²/2) times a
/// quotient of polynomials of our own fit, without near and far parts. All coefficients are positive, so that nothing cancels;
/// even and odd powers are added apart, so that fewer roundings follow each other.
#[inline(always)]
pub(crate) fn ndtr<const FMA: bool>(x: f32) -> f32 {
    let magnitude = x.abs();
    // From 14.3 on the tail is 0.
    let y = if magnitude > 14.4 { 14.4 } else { magnitude };
    let (square, rest) = square::<FMA>(y);
    let even = polynomial::<FMA, 3>(square, [4.109_363_5e-3, 0.183_096_29, 0.5]);
    let above = fma::<FMA>(y, fma::<FMA>(square, 4.058_643e-2, 0.438_107_34), even);
    let even = polynomial::<FMA, 3>(square, [0.101_741_61, 1.201_926_1, 1.0]);
    let below = fma::<FMA>(y, polynomial::<FMA, 3>(square, [1.030_052_5e-2, 0.469_104_02, 1.674_099_7]), even);
    let ratio = above / below;
    let (q, power) = falling::<FMA>(-0.5 * square, Some(0.5 * rest));
    let tail = fma::<FMA>(ratio, q, ratio) * power * DROP;
    if x > 0.0 { 1.0 - tail } else { tail }
}
