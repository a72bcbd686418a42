//! Functions that look up numbers in registers, on processors with AVX-512: several of `f32`, and eˣ of `f64`. A register holds 16 numbers
//! of `f32`, or 8 of `f64`. One instruction selects the elements of a register out of the numbers in one register, or out of the numbers in
//! two registers. The tables are computed in `f64` when a function is first used.
//!
//! - tanh and Φ are piecewise polynomials: the magnitude of the argument selects one of 32 segments, each with its own polynomial. The
//!   polynomial interpolates the function at the Chebyshev points of the segment. Looking up a coefficient costs no more than a
//!   multiplication by it. Within the table, no exponential or division is needed.
//! - eˣ is a power of two from a table times a short polynomial. ln x is a logarithm from a table plus a short polynomial. The methods are
//!   from P. Tang ("Table-driven implementation of the exponential function", 1989, and "Table-driven implementation of the logarithm
//!   function", 1990). Instructions of the processor split numbers into exponent and fraction and scale them by powers of two. These
//!   instructions also handle special values.
//! - √x starts from the processor's approximation of 1/√x, which is a table too.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512, __m512d, _CMP_EQ_OQ, _CMP_GE_OQ, _CMP_GT_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_NLT_UQ, _MM_MANT_NORM_P75_1P5,
    _MM_MANT_SIGN_NAN, _mm512_abs_ps, _mm512_add_ps, _mm512_and_ps, _mm512_castps_si512, _mm512_cmp_ps_mask,
    _mm512_fmadd_ps, _mm512_fmsub_ps, _mm512_fnmadd_ps, _mm512_getexp_ps, _mm512_getmant_ps, _mm512_loadu_ps,
    _mm512_mask_sub_ps, _mm512_maskz_rsqrt14_ps, _mm512_maskz_scalef_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_ps,
    _mm512_permutex2var_ps, _mm512_permutexvar_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_sqrt_ps,
    _mm512_srli_epi32, _mm512_storeu_ps, _mm512_sub_ps,
};
use std::arch::x86_64::{
    _mm512_add_pd, _mm512_castpd_si512, _mm512_cmp_pd_mask, _mm512_fmadd_pd, _mm512_fnmadd_pd, _mm512_loadu_pd,
    _mm512_maskz_scalef_pd, _mm512_min_pd, _mm512_mul_pd, _mm512_permutex2var_pd, _mm512_set1_pd, _mm512_storeu_pd,
    _mm512_sub_pd,
};
use std::array::from_fn;
use std::f64::consts::PI;
use std::sync::LazyLock;

use crate::scalar::cpu::instruction_set;
use crate::scalar::math::FloatMath;
use crate::{InstructionSet, Unary};

/// The number of f32 elements in an AVX-512 register.
const LANES: usize = 16;

/// The number of f64 elements in an AVX-512 register.
const DOUBLE_LANES: usize = 8;

/// The number of powers in a table of 2^(k/16). They fill one register of f32, or two registers of f64.
const POWER_COUNT: usize = 16;

const SEGMENTS: usize = 2 * LANES;

/// The number of coefficients of a polynomial.
const TERMS: usize = 6;

/// A table for a function f of t from 0 to `end`. Beyond `end`, f(t) rounds to 1.
struct Table {
    /// True if f(-t) is -f(t). Otherwise f(-t) is 1 - f(t), and the table has f(-t) with full relative accuracy.
    is_odd: bool,
    end: f32,
    /// The coefficients of the formula for the index of the segment that contains t. The index is t · (`curve` · t + `slope`), rounded.
    curve: f32,
    slope: f32,
    /// The origin of each segment, which is subtracted from t before its polynomial is evaluated.
    origins: [f32; SEGMENTS],
    /// The coefficients of each segment's polynomial. The coefficient of the highest power comes first.
    coefficients: [[f32; SEGMENTS]; TERMS],
}

/// The table of Φ, the normal distribution function; error at most 2 units in the last place.
static NDTR: LazyLock<Table> = LazyLock::new(|| Table::new(false, 6.0, (0.6, 1.6), |t| f64::ndtr::<false>(-t)));

/// The table of tanh; error at most 2 units in the last place.
static TANH: LazyLock<Table> = LazyLock::new(|| Table::new(true, 10.0, (-0.2, 5.1), f64::tanh));

impl Table {
    fn new(is_odd: bool, end: f32, (curve, slope): (f32, f32), function: fn(f64) -> f64) -> Self {
        let (a, b) = (f64::from(curve), f64::from(slope));
        // Solves a t² + b t = `number` for t.
        let border = |number: f64| 2.0 * number / (b + (b * b + 4.0 * a * number).sqrt());
        let mut table =
            Table { is_odd, end, curve, slope, origins: [0.0; SEGMENTS], coefficients: [[0.0; SEGMENTS]; TERMS] };
        for segment in 0..SEGMENTS {
            let right = border(segment as f64 + 0.5);
            let left = match segment {
                // In the segment at 0, the polynomial of an odd function must be odd, so the segment includes negative arguments.
                0 if is_odd => -right,
                0 => 0.0,
                _ => border(segment as f64 - 0.5),
            };
            // The origin is the end of the segment at which the function is smaller, so that no term is much larger than the sum. For an odd
            // function, the origin of the segment around 0 is 0.
            let origin = (if is_odd { left.max(0.0) } else { right }) as f32;
            table.origins[segment] = origin;
            let coefficients = interpolation(function, (left, right), f64::from(origin));
            for (power, coefficient) in coefficients.into_iter().rev().enumerate() {
                table.coefficients[power][segment] = coefficient as f32;
            }
        }
        if is_odd {
            // The constant term of the segment at 0 is exactly 0, so that values near 0 keep full relative accuracy.
            table.coefficients[TERMS - 1][0] = 0.0;
        }
        table
    }
}

/// Returns the coefficients, lowest power first, of a polynomial in x - `origin`. The polynomial interpolates a function at the Chebyshev
/// points between `left` and `right`, by Newton's divided differences.
fn interpolation(function: fn(f64) -> f64, (left, right): (f64, f64), origin: f64) -> [f64; TERMS] {
    let (middle, radius) = (0.5 * (left + right), 0.5 * (right - left));
    let points: [f64; TERMS] = from_fn(|k| middle - origin + radius * (PI * (k as f64 + 0.5) / TERMS as f64).cos());
    let mut sums = points.map(|x| function(origin + x));
    for level in 1..TERMS {
        for k in (level..TERMS).rev() {
            sums[k] = (sums[k] - sums[k - 1]) / (points[k] - points[k - level]);
        }
    }
    // Converts the sum of products of factors x - point to a sum of powers of x.
    for level in (0..TERMS - 1).rev() {
        for k in level..TERMS - 1 {
            sums[k] -= points[level] * sums[k + 1];
        }
    }
    sums
}

/// Computes a function over a block. Returns `false` and writes nothing if the instruction set in use is not AVX-512, or if this file has no
/// method for the function.
pub(crate) fn unary(op: Unary, x: &[f32], out: &mut [f32]) -> bool {
    if instruction_set() < InstructionSet::Avx512 {
        return false;
    }
    // SAFETY: the set in use is supported by the processor.
    unsafe {
        match op {
            Unary::Exp => exponentials(x, out),
            Unary::Log => logarithms(x, out),
            Unary::Ndtr => evaluate_table(&NDTR, x, out),
            Unary::Sqrt => square_roots(x, out),
            Unary::Tanh => evaluate_table(&TANH, x, out),
            _ => return false,
        }
    }
    true
}

/// Computes `out = f(x)`, one register of elements at a time.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn for_each_vector(x: &[f32], out: &mut [f32], mut f: impl FnMut(__m512) -> __m512) {
    let (chunks, rest) = x.as_chunks();
    let (out_chunks, out_rest) = out.as_chunks_mut();
    for (x, out) in chunks.iter().zip(out_chunks) {
        store(f(load(x)), out);
    }
    if !rest.is_empty() {
        let (mut x, mut out) = ([0.0; LANES], [0.0; LANES]);
        x[..rest.len()].copy_from_slice(rest);
        store(f(load(&x)), &mut out);
        out_rest.copy_from_slice(&out[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn load(x: &[f32; LANES]) -> __m512 {
    // SAFETY: the array has as many elements as the register.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn store(x: __m512, out: &mut [f32; LANES]) {
    // SAFETY: the array has as many elements as the register.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), x) };
}

/// The bounds of the arguments for which [`square_roots`] needs no square root instruction. Between them, no intermediate result is
/// subnormal or infinite.
const ROOT_RANGE: [f32; 2] = [1.0 / 18_446_744_073_709_551_616.0, 18_446_744_073_709_551_616.0];

/// Computes √x, correctly rounded. The processor's instruction for square roots takes half as long again. Two steps of Newton's
/// method refine an approximation of 1/√x with a relative error below 2⁻¹⁴. The last step computes x - s² without rounding, where s is the
/// approximation of √x. For each fraction of x and each approximation within this error, the result was compared with the correctly rounded
/// root.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn square_roots(x: &[f32], out: &mut [f32]) {
    let ([low, high], half) = (ROOT_RANGE.map(|bound| _mm512_set1_ps(bound)), _mm512_set1_ps(0.5));
    for_each_vector(x, out, |x| {
        let is_usual = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, low) & _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, high);
        let is_zero = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x, _mm512_setzero_ps());
        if is_usual | is_zero != u16::MAX {
            return _mm512_sqrt_ps(x);
        }
        // Zeros are common. With an approximation of 0 instead of ∞, the steps below keep them.
        let inverse = _mm512_maskz_rsqrt14_ps(is_usual, x);
        // `root` is √x and `scale` is 1 / (2 √x).
        let (root, scale) = (_mm512_mul_ps(x, inverse), _mm512_mul_ps(inverse, half));
        let error = _mm512_fnmadd_ps(root, scale, half);
        let (root, scale) = (_mm512_fmadd_ps(root, error, root), _mm512_fmadd_ps(scale, error, scale));
        _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, x), scale, root)
    });
}

/// The powers 2^(k/16) for k from 0 to 15.
static POWERS: LazyLock<[f32; POWER_COUNT]> =
    LazyLock::new(|| from_fn(|k| (k as f64 / POWER_COUNT as f64).exp2() as f32));

/// The coefficients of (eʳ - 1 - r)/r² for |r| up to (ln 2)/32.
const EXP: [f32; 2] = [0.166_670_09, 0.500_016_32];

/// Computes eˣ as 2ⁿ eʳ, where n is a multiple of 1/16 and r is small; error at most 1 unit in the last place.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn exponentials(x: &[f32], out: &mut [f32]) {
    let powers = load(&POWERS);
    let ((below, above), splat) = (f32::EXP_RANGE, |number: f32| _mm512_set1_ps(number));
    let round = splat(f32::ROUND / POWER_COUNT as f32);
    for_each_vector(x, out, |x| {
        // Results of 0 are masked out, because Intel's processors take a hundred cycles for a product that is rounded to 0. Results of 0
        // are common: a masked softmax has arguments of -∞.
        let is_nonzero = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, splat(below));
        // This order of the operands keeps a NaN of `x`: if an operand is NaN, the instruction returns the second operand.
        let x = _mm512_min_ps(splat(above), x);
        let shifted = _mm512_fmadd_ps(x, splat(f32::LOG2_E), round);
        let n = _mm512_sub_ps(shifted, round);
        let r = _mm512_fnmadd_ps(n, splat(f32::LN_2_LOW), _mm512_fnmadd_ps(n, splat(f32::LN_2_HIGH), x));
        let q = _mm512_fmadd_ps(_mm512_fmadd_ps(splat(EXP[0]), r, splat(EXP[1])), _mm512_mul_ps(r, r), r);
        // The lowest bits of `shifted` are the fraction of n, which selects the power in the table. The integer part of n scales the
        // result.
        let power = _mm512_permutexvar_ps(_mm512_castps_si512(shifted), powers);
        _mm512_maskz_scalef_ps(is_nonzero, _mm512_fmadd_ps(power, q, power), n)
    });
}

/// The powers 2^(k/16) in f64, for k from 0 to 15, each as a sum of two numbers. The second table has the rounding errors of the first.
static DOUBLE_POWERS: LazyLock<[[f64; POWER_COUNT]; 2]> = LazyLock::new(|| {
    let powers: [f64; POWER_COUNT] = from_fn(|k| (k as f64 / POWER_COUNT as f64).exp2());
    let errors = from_fn(|k| {
        // `square + rest` is the 16th power of the rounded number, with twice the digits of f64. The exact 16th power is 2^k.
        let (mut square, mut rest) = (powers[k], 0.0);
        for _ in 0..4 {
            let product: f64 = square * square;
            rest = square.mul_add(square, -product) + 2.0 * square * rest;
            square = product;
        }
        let exact = (k as f64).exp2();
        powers[k] * ((exact - square) - rest) / (16.0 * exact)
    });
    [powers, errors]
});

/// The coefficients of (eʳ - 1 - r)/r² for |r| up to (ln 2)/32, for f64.
const DOUBLE_EXP: [f64; 5] =
    [0.001_388_903_437_769_301_2, 0.008_333_449_724_528_355, 0.041_666_666_664_959_766, 0.166_666_666_653_011_44, 0.5];

/// Computes a function of f64 over a block. Returns `false` and writes nothing if the instruction set in use is not AVX-512, or if the
/// function has no table.
pub(crate) fn double_unary(op: Unary, x: &[f64], out: &mut [f64]) -> bool {
    let is_computed = op == Unary::Exp && instruction_set() >= InstructionSet::Avx512;
    if is_computed {
        // SAFETY: the set in use is supported by the processor.
        unsafe { double_exponentials(x, out) };
    }
    is_computed
}

/// Computes eˣ of f64 like [`exponentials`]; error at most 1 unit in the last place.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn double_exponentials(x: &[f64], out: &mut [f64]) {
    let [powers, errors] = DOUBLE_POWERS.each_ref().map(|row| load_double_table(row));
    let (chunks, rest) = x.as_chunks();
    let (out_chunks, out_rest) = out.as_chunks_mut();
    for (x, out) in chunks.iter().zip(out_chunks) {
        store_double(double_exponential(load_double(x), powers, errors), out);
    }
    if !rest.is_empty() {
        let (mut x, mut out) = ([0.0; DOUBLE_LANES], [0.0; DOUBLE_LANES]);
        x[..rest.len()].copy_from_slice(rest);
        store_double(double_exponential(load_double(&x), powers, errors), &mut out);
        out_rest.copy_from_slice(&out[..rest.len()]);
    }
}

/// Computes eˣ for one register. The error of the power is not multiplied by `q`, because this product is below 2⁻⁵⁸ of the result.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn double_exponential(x: __m512d, powers: [__m512d; 2], errors: [__m512d; 2]) -> __m512d {
    let ((below, above), splat) = (f64::EXP_RANGE, |number: f64| _mm512_set1_pd(number));
    let round = splat(f64::ROUND / POWER_COUNT as f64);
    // Results of 0 are masked out, because products that are rounded to 0 are slow (see `exponentials`).
    let is_nonzero = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x, splat(below));
    // This order of the operands keeps a NaN of `x`: if an operand is NaN, the instruction returns the second operand.
    let x = _mm512_min_pd(splat(above), x);
    let shifted = _mm512_fmadd_pd(x, splat(f64::LOG2_E), round);
    let n = _mm512_sub_pd(shifted, round);
    let r = _mm512_fnmadd_pd(n, splat(f64::LN_2_LOW), _mm512_fnmadd_pd(n, splat(f64::LN_2_HIGH), x));
    let mut sum = splat(DOUBLE_EXP[0]);
    for coefficient in &DOUBLE_EXP[1..] {
        sum = _mm512_fmadd_pd(sum, r, splat(*coefficient));
    }
    let q = _mm512_fmadd_pd(sum, _mm512_mul_pd(r, r), r);
    let fraction = _mm512_castpd_si512(shifted);
    let power = _mm512_permutex2var_pd(powers[0], fraction, powers[1]);
    let error = _mm512_permutex2var_pd(errors[0], fraction, errors[1]);
    _mm512_maskz_scalef_pd(is_nonzero, _mm512_add_pd(power, _mm512_fmadd_pd(power, q, error)), n)
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn load_double(x: &[f64; DOUBLE_LANES]) -> __m512d {
    // SAFETY: the array has as many elements as the register.
    unsafe { _mm512_loadu_pd(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn load_double_table(row: &[f64; POWER_COUNT]) -> [__m512d; 2] {
    let (halves, _) = row.as_chunks();
    [load_double(&halves[0]), load_double(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn store_double(x: __m512d, out: &mut [f64; DOUBLE_LANES]) {
    // SAFETY: the array has as many elements as the register.
    unsafe { _mm512_storeu_pd(out.as_mut_ptr(), x) };
}

/// Two tables over 16 pieces of 0.75 .. 1.5. The highest four bits of a fraction select the piece. The first table has approximately the
/// reciprocal of a piece's middle, and the second has minus the logarithm of that reciprocal. For the two pieces around 1, the tables have
/// 1 and 0, so that small logarithms keep full relative accuracy.
static LOGARITHMS: LazyLock<[[f32; LANES]; 2]> = LazyLock::new(|| {
    let logarithm = |reciprocal: f32| -f64::from(reciprocal).ln();
    // Of the numbers near the reciprocal, the table has the one whose logarithm is nearest to an f32. So rounding the logarithm adds almost
    // no error.
    let error = |reciprocal: &f32| (f64::from(logarithm(*reciprocal) as f32) - logarithm(*reciprocal)).abs();
    let reciprocals = from_fn(|piece| {
        if piece == 0 || piece == LANES - 1 {
            return 1.0;
        }
        let middle = (1.0 + (piece as f32 + 0.5) / LANES as f32) * if piece < LANES / 2 { 1.0 } else { 0.5 };
        let bits = (1.0 / middle).to_bits();
        let near = (bits - 1000..bits + 1000).map(f32::from_bits);
        near.min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(1.0)
    });
    [reciprocals, reciprocals.map(|reciprocal| logarithm(reciprocal) as f32)]
});

/// The coefficients of (ln(1 + r) - r)/r² for r from -1/32 to 1/16.
const LOG: [f32; 4] = [0.188_664_72, -0.250_081_93, 0.333_344_88, -0.5];

/// Computes ln x; error at most 2 units in the last place. For x = m 2ⁿ, the result is n ln 2 + ln(1/c) + ln(1 + r), with c from the table
/// and 1 + r = c m.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn logarithms(x: &[f32], out: &mut [f32]) {
    let [reciprocals, logarithms] = LOGARITHMS.each_ref().map(|row| load(row));
    let splat = |number: f32| _mm512_set1_ps(number);
    for_each_vector(x, out, |x| {
        // For a negative x, `m` is NaN. The exponent is -∞ for x = 0 and ∞ for x = ∞.
        let m = _mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_NAN>(x);
        let n = _mm512_sub_ps(_mm512_getexp_ps(x), _mm512_getexp_ps(m));
        // The table lookup reads only the lowest bits of `piece`.
        let piece = _mm512_srli_epi32::<19>(_mm512_castps_si512(m));
        let r = _mm512_fmsub_ps(m, _mm512_permutexvar_ps(piece, reciprocals), splat(1.0));
        let mut sum = splat(LOG[0]);
        for coefficient in &LOG[1..] {
            sum = _mm512_fmadd_ps(sum, r, splat(*coefficient));
        }
        let near = _mm512_fmadd_ps(sum, _mm512_mul_ps(r, r), r);
        _mm512_fmadd_ps(n, splat(f32::LN_2), _mm512_add_ps(_mm512_permutexvar_ps(piece, logarithms), near))
    });
}

#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn evaluate_table(table: &Table, x: &[f32], out: &mut [f32]) {
    let registers = Registers::new(table);
    if table.is_odd {
        return for_each_vector(x, out, |x| registers.apply::<true>(x).0);
    }
    let mut beyond = 0;
    for_each_vector(x, out, |x| {
        let (result, outside) = registers.apply::<false>(x);
        beyond |= outside;
        result
    });
    if beyond != 0 {
        left_tail(table.end, x, out);
    }
}

/// A [`Table`] in registers, loaded once for a whole block.
struct Registers {
    end: __m512,
    curve: __m512,
    slope: __m512,
    origins: [__m512; 2],
    coefficients: [[__m512; 2]; TERMS],
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn load_segments(row: &[f32; SEGMENTS]) -> [__m512; 2] {
    let (halves, _) = row.as_chunks();
    [load(&halves[0]), load(&halves[1])]
}

impl Registers {
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn new(table: &Table) -> Self {
        let mut coefficients = [[_mm512_setzero_ps(); 2]; TERMS];
        for (register, row) in coefficients.iter_mut().zip(&table.coefficients) {
            *register = load_segments(row);
        }
        Registers {
            end: _mm512_set1_ps(table.end),
            curve: _mm512_set1_ps(table.curve),
            slope: _mm512_set1_ps(table.slope),
            origins: load_segments(&table.origins),
            coefficients,
        }
    }

    /// Returns the results, and a mask of the elements whose arguments are below -`end`. For an odd function, the mask is 0.
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn apply<const ODD: bool>(&self, x: __m512) -> (__m512, u16) {
        // This order of the operands keeps a NaN of `x`: if an operand is NaN, the instruction returns the second operand.
        let t = _mm512_min_ps(self.end, _mm512_abs_ps(x));
        let shifted = _mm512_fmadd_ps(t, _mm512_fmadd_ps(t, self.curve, self.slope), _mm512_set1_ps(f32::ROUND));
        // The table lookup reads only the lowest bits of `segment`.
        let segment = _mm512_castps_si512(shifted);
        let d = _mm512_sub_ps(t, _mm512_permutex2var_ps(self.origins[0], segment, self.origins[1]));
        let mut sum = _mm512_setzero_ps();
        for (power, row) in self.coefficients.iter().enumerate() {
            let coefficient = _mm512_permutex2var_ps(row[0], segment, row[1]);
            sum = if power == 0 { coefficient } else { _mm512_fmadd_ps(sum, d, coefficient) };
        }
        let zero = _mm512_setzero_ps();
        let result = if ODD {
            _mm512_or_ps(sum, _mm512_and_ps(x, _mm512_set1_ps(-0.0)))
        } else {
            _mm512_mask_sub_ps(sum, _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, zero), _mm512_set1_ps(1.0), sum)
        };
        let outside = if ODD { 0 } else { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, _mm512_sub_ps(zero, self.end)) };
        (result, outside)
    }
}

/// Replaces the results whose arguments are outside the table of Φ, in the left tail. Computes the new results without a table.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn left_tail(end: f32, x: &[f32], out: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (out_chunks, out_rest) = out.as_chunks_mut::<LANES>();
    for (x, out) in chunks.iter().zip(out_chunks) {
        let mut any = false;
        for &x in x {
            any |= x < -end;
        }
        if any {
            for lane in 0..LANES {
                let result = f32::ndtr::<true>(x[lane]);
                out[lane] = if x[lane] < -end { result } else { out[lane] };
            }
        }
    }
    for lane in 0..rest.len() {
        if rest[lane] < -end {
            out_rest[lane] = f32::ndtr::<true>(rest[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the function of `table` like [`Registers`], but for a single number. Calls `general` for arguments outside the table.
    fn naive(table: &Table, general: fn(f32) -> f32, x: f32) -> f32 {
        if !table.is_odd && x < -table.end {
            return general(x);
        }
        let t = if x.abs() > table.end { table.end } else { x.abs() };
        let segment = t.mul_add(t.mul_add(table.curve, table.slope), f32::ROUND).to_bits() as usize % SEGMENTS;
        let d = t - table.origins[segment];
        let [first, rest @ ..] = table.coefficients.map(|row| row[segment]);
        let sum = rest.into_iter().fold(first, |sum, coefficient| sum.mul_add(d, coefficient));
        match table.is_odd {
            true => sum.copysign(x),
            false if x > 0.0 => 1.0 - sum,
            false => sum,
        }
    }

    type Row = (Unary, &'static LazyLock<Table>, fn(f32) -> f32, fn(f64) -> f64, f64);

    /// For each function: its table, its version without a table, an exact version, and the stated error bound.
    const TABLES: [Row; 2] = [
        (Unary::Ndtr, &NDTR, f32::ndtr::<true>, f64::ndtr::<false>, 2.0),
        (Unary::Tanh, &TANH, <f32 as FloatMath>::tanh::<true>, f64::tanh, 2.0),
    ];

    /// Returns a dense sample of all arguments, and of arguments near 0.
    fn sample() -> Vec<f32> {
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX];
        let all = (0..=u32::MAX).step_by(20_047).map(f32::from_bits);
        let near = (-3_000_000..3_000_000i32).map(|k| k as f32 * 1.003e-5);
        special.into_iter().chain(all).chain(near).collect()
    }

    #[test]
    fn vectors_equal_scalar_evaluation() {
        if instruction_set() < InstructionSet::Avx512 {
            return;
        }
        let x = sample();
        for (op, table, general, ..) in TABLES {
            let mut out = vec![0.0; x.len()];
            assert!(unary(op, &x, &mut out));
            for (&x, out) in x.iter().zip(&out) {
                let expected = naive(table, general, x);
                assert!(out.to_bits() == expected.to_bits() || x.is_nan() && out.is_nan(), "{op:?} {x:e}: {out:e}");
            }
            // Tests blocks that do not fill whole registers, and registers in which only some arguments are outside the table.
            for len in 0..40 {
                let x: Vec<f32> =
                    (0..len).map(|k| if k % 3 == 0 { -8.0 - k as f32 } else { k as f32 * 0.37 - 5.0 }).collect();
                let mut out = vec![0.0; len];
                assert!(unary(op, &x, &mut out));
                let expected: Vec<f32> = x.iter().map(|&x| naive(table, general, x)).collect();
                assert_eq!(out, expected, "{op:?}");
            }
        }
    }

    #[test]
    fn errors_are_as_stated() {
        let x = sample();
        for (op, table, general, exact, bound) in TABLES {
            for &x in x.iter().filter(|x| table.is_odd || **x >= -table.end) {
                let (got, exact) = (f64::from(naive(table, general, x)), exact(f64::from(x)));
                let rounded = (exact as f32).abs();
                let off = (got - exact).abs() / f64::from(rounded.next_up() - rounded);
                assert!(off <= bound || x.is_nan(), "{op:?} {x:e}: {got:e} is {off} units off");
            }
            assert_eq!(naive(table, general, f32::INFINITY), 1.0);
        }
    }

    /// Computes eˣ like `exponentials`, but for a single number. `naive_log` is the same for `logarithms`.
    fn naive_exp(x: f32) -> f32 {
        let x = if x > f32::EXP_RANGE.1 { f32::EXP_RANGE.1 } else { x };
        let x = if x < f32::EXP_RANGE.0 { f32::EXP_RANGE.0 } else { x };
        let round = f32::ROUND / POWER_COUNT as f32;
        let shifted = x.mul_add(f32::LOG2_E, round);
        let n = shifted - round;
        let r = (-n).mul_add(f32::LN_2_LOW, (-n).mul_add(f32::LN_2_HIGH, x));
        let q = EXP[0].mul_add(r, EXP[1]).mul_add(r * r, r);
        let power = POWERS[shifted.to_bits() as usize % POWER_COUNT];
        (f64::from(power.mul_add(q, power)) * f64::from(n.floor()).exp2()) as f32
    }

    /// Computes eˣ like `double_exponentials`, but for a single number.
    fn naive_double_exp(x: f64) -> f64 {
        let x = if x > f64::EXP_RANGE.1 { f64::EXP_RANGE.1 } else { x };
        let round = f64::ROUND / POWER_COUNT as f64;
        let shifted = x.mul_add(f64::LOG2_E, round);
        let n = shifted - round;
        let r = (-n).mul_add(f64::LN_2_LOW, (-n).mul_add(f64::LN_2_HIGH, x));
        let sum = DOUBLE_EXP.into_iter().reduce(|sum, coefficient| sum.mul_add(r, coefficient)).unwrap();
        let [power, error] = DOUBLE_POWERS.map(|row| row[shifted.to_bits() as usize % POWER_COUNT]);
        let y = power + power.mul_add(sum.mul_add(r * r, r), error);
        // Two exact factors, because 2ⁿ alone may be out of range. Only the second product is rounded.
        let half = (0.5 * n).floor();
        if x < f64::EXP_RANGE.0 { 0.0 } else { y * half.exp2() * (n.floor() - half).exp2() }
    }

    fn naive_log(x: f32) -> f32 {
        if !(x > 0.0 && x < f32::INFINITY) {
            return x.ln();
        }
        let (mut m, mut n) = (f64::from(x), 0.0);
        while m >= 1.5 {
            (m, n) = (m / 2.0, n + 1.0);
        }
        while m < 0.75 {
            (m, n) = (m * 2.0, n - 1.0);
        }
        let (m, piece) = (m as f32, (m as f32).to_bits() as usize >> 19 & 15);
        let r = m.mul_add(LOGARITHMS[0][piece], -1.0);
        let sum = LOG.into_iter().reduce(|sum, coefficient| sum.mul_add(r, coefficient)).unwrap();
        f32::mul_add(n, f32::LN_2, LOGARITHMS[1][piece] + sum.mul_add(r * r, r))
    }

    #[test]
    fn exponentials_and_logarithms() {
        let x = sample();
        type Row = (Unary, fn(f32) -> f32, fn(f64) -> f64, f64);
        let functions: [Row; 2] = [(Unary::Exp, naive_exp, f64::exp, 1.0), (Unary::Log, naive_log, f64::ln, 1.1)];
        for (op, naive, exact, bound) in functions {
            let mut out = vec![0.0; x.len()];
            if !unary(op, &x, &mut out) {
                return;
            }
            for (&x, &out) in x.iter().zip(&out) {
                let (expected, exact) = (naive(x), exact(f64::from(x)));
                let same = out.to_bits() == expected.to_bits() || out.is_nan() && expected.is_nan();
                assert!(same, "{op:?} {x:e}: {out:e}, not {expected:e}");
                let rounded = exact as f32;
                let unit = f64::from(rounded.abs().next_up() - rounded.abs());
                let near = (f64::from(out) - exact).abs() <= bound * unit;
                assert!(
                    near || out == rounded || out.is_nan() && exact.is_nan(),
                    "{op:?} {x:e}: {out:e}, not {exact:e}"
                );
            }
            for len in 0..40 {
                let mut rest = vec![0.0; len];
                assert!(unary(op, &x[..len], &mut rest));
                assert!(rest.iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits()));
            }
        }
    }

    #[test]
    fn exponentials_of_f64() {
        let exponents = (0..200_000).map(|k| f64::from(k) * 7.513e-3 - 751.3);
        let all = (0..200_000u64).map(|k| f64::from_bits(k.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let edges =
            [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 709.782_712_893_384, -745.133_219_101_941_2];
        let x: Vec<f64> = edges.into_iter().chain(exponents).chain(all).collect();
        let mut out = vec![0.0; x.len()];
        if !double_unary(Unary::Exp, &x, &mut out) {
            return;
        }
        for (&x, &out) in x.iter().zip(&out) {
            let (expected, near) = (naive_double_exp(x), x.exp());
            assert!(
                out.to_bits() == expected.to_bits() || out.is_nan() && x.is_nan(),
                "{x:e}: {out:e}, not {expected:e}"
            );
            // The standard library's result may have an error of 1 unit too.
            assert!(out == near || (out - near).abs() <= 2.0 * (near.next_up() - near) || x.is_nan(), "{x:e}: {out:e}");
        }
        for len in 0..20 {
            let mut rest = vec![0.0; len];
            assert!(double_unary(Unary::Exp, &x[..len], &mut rest));
            assert!(rest.iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan()));
        }
    }

    /// Checks the rounding errors of the powers in `DOUBLE_POWERS` by the equation 2^(j/16) · 2^(k/16) = 2^((j + k)/16). The bound is far
    /// below the rounding errors of f64, which are about 1e-16. It allows for a few roundings of terms of this size.
    #[test]
    fn powers_have_rounding_errors() {
        let [powers, errors] = *DOUBLE_POWERS;
        for j in 0..POWER_COUNT {
            for k in 0..POWER_COUNT - j {
                let product = powers[j] * powers[k];
                let rest = powers[j].mul_add(powers[k], -product) + powers[j] * errors[k] + powers[k] * errors[j];
                let difference = (product - powers[j + k]) + (rest - errors[j + k]);
                assert!(difference.abs() < 1e-30, "{j} {k}: {difference:e}");
            }
        }
    }

    /// Compares with the standard library, whose square roots are correctly rounded. The numbers 1 to 4 have every 101st fraction, with an
    /// even or an odd exponent.
    #[test]
    fn square_roots_are_correctly_rounded() {
        let fractions = (0..1u32 << 24).step_by(101).map(|k| f32::from_bits(1f32.to_bits() + k));
        let bounds = ROOT_RANGE.into_iter().flat_map(|x| [x, x.next_up(), x.next_down()]);
        let with_zeros =
            (0..1000).map(|k| if k % 3 == 0 { 0.0f32.copysign(k as f32 % 2.0 - 0.5) } else { k as f32 * 0.37 });
        let x: Vec<f32> = fractions.chain(with_zeros).chain(sample()).chain(bounds).collect();
        let mut out = vec![0.0; x.len()];
        if !unary(Unary::Sqrt, &x, &mut out) {
            return;
        }
        for (x, out) in x.into_iter().zip(out) {
            assert!(out.to_bits() == x.sqrt().to_bits() || out.is_nan() && x.sqrt().is_nan(), "{x:e}: {out:e}");
        }
    }

    #[test]
    fn segments_fill_the_table() {
        for (op, table, ..) in TABLES {
            let last = table.end.mul_add(table.end.mul_add(table.curve, table.slope), f32::ROUND) - f32::ROUND;
            assert_eq!(last, (SEGMENTS - 1) as f32, "{op:?}");
            assert!(table.origins.is_sorted());
        }
    }
}
