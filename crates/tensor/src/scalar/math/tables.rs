//! Functions of `f32` by tables of piecewise polynomials, for processors with AVX-512: the magnitude of the argument selects one of
//! 32 segments, each with its own polynomial. One instruction selects 16 numbers out of the 32 in two registers, so a coefficient
//! costs no more than its product, and no exponential or division is needed.
//!
//! A polynomial interpolates its function at the Chebyshev points of its segment. The tables are computed in `f64` when a function
//! is first used.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512, _CMP_GT_OQ, _CMP_LT_OQ, _mm512_abs_ps, _mm512_and_ps, _mm512_castps_si512, _mm512_cmp_ps_mask,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_sub_ps, _mm512_min_ps, _mm512_or_ps, _mm512_permutex2var_ps,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps, _mm512_sub_ps,
};
use std::array::from_fn;
use std::f64::consts::PI;
use std::sync::LazyLock;

use crate::scalar::cpu::instruction_set;
use crate::scalar::math::FloatMath;
use crate::{InstructionSet, Unary};

/// Numbers in a register, and in a table.
const LANES: usize = 16;
const SEGMENTS: usize = 2 * LANES;

/// Coefficients of a polynomial.
const TERMS: usize = 6;

/// A function f of t in 0 ..= `end`. Beyond that, f(t) rounds to 1.
struct Table {
    /// Whether f(-t) is -f(t). Otherwise f(-t) is 1 - f(t), and the table holds f(-t) with full relative accuracy.
    odd: bool,
    end: f32,
    /// The segment of t is t (`curve` t + `slope`), rounded.
    curve: f32,
    slope: f32,
    /// The origin of each segment, which is subtracted from t before its polynomial is evaluated.
    origins: [f32; SEGMENTS],
    /// Coefficients, the highest power first.
    coefficients: [[f32; SEGMENTS]; TERMS],
}

/// Φ: 2 units in the last place.
static NDTR: LazyLock<Table> = LazyLock::new(|| Table::new(false, 6.0, (0.6, 1.6), |t| f64::ndtr::<false>(-t)));

/// tanh: 2 units in the last place.
static TANH: LazyLock<Table> = LazyLock::new(|| Table::new(true, 10.0, (-0.2, 5.1), f64::tanh));

impl Table {
    fn new(odd: bool, end: f32, (curve, slope): (f32, f32), function: fn(f64) -> f64) -> Self {
        let (a, b) = (f64::from(curve), f64::from(slope));
        // The t at which a t² + b t has this value.
        let border = |number: f64| 2.0 * number / (b + (b * b + 4.0 * a * number).sqrt());
        let mut table =
            Table { odd, end, curve, slope, origins: [0.0; SEGMENTS], coefficients: [[0.0; SEGMENTS]; TERMS] };
        for segment in 0..SEGMENTS {
            let right = border(segment as f64 + 0.5);
            let left = match segment {
                // Near 0, the polynomial of an odd function is odd.
                0 if odd => -right,
                0 => 0.0,
                _ => border(segment as f64 - 0.5),
            };
            // At the end where the function is smallest, so that no term is much larger than the sum.
            let origin = (if odd { left.max(0.0) } else { right }) as f32;
            table.origins[segment] = origin;
            let coefficients = interpolation(function, (left, right), f64::from(origin));
            for (power, coefficient) in coefficients.into_iter().rev().enumerate() {
                table.coefficients[power][segment] = coefficient as f32;
            }
        }
        if odd {
            // Exact, so that values near 0 keep full relative accuracy.
            table.coefficients[TERMS - 1][0] = 0.0;
        }
        table
    }
}

/// The coefficients, lowest power first, of the polynomial in x - `origin` that interpolates a function at the Chebyshev points
/// between two numbers, by Newton's divided differences.
fn interpolation(function: fn(f64) -> f64, (left, right): (f64, f64), origin: f64) -> [f64; TERMS] {
    let (middle, radius) = (0.5 * (left + right), 0.5 * (right - left));
    let points: [f64; TERMS] = from_fn(|k| middle - origin + radius * (PI * (k as f64 + 0.5) / TERMS as f64).cos());
    let mut sums = points.map(|x| function(origin + x));
    for level in 1..TERMS {
        for k in (level..TERMS).rev() {
            sums[k] = (sums[k] - sums[k - 1]) / (points[k] - points[k - level]);
        }
    }
    // Converts from factors x - points to powers of x.
    for level in (0..TERMS - 1).rev() {
        for k in level..TERMS - 1 {
            sums[k] -= points[level] * sums[k + 1];
        }
    }
    sums
}

/// The function over a block; returns `false` and writes nothing if the processor lacks the instructions or the function has no
/// table.
pub(crate) fn unary(op: Unary, x: &[f32], out: &mut [f32]) -> bool {
    if instruction_set() < InstructionSet::Avx512 {
        return false;
    }
    let table: &Table = match op {
        Unary::Ndtr => &NDTR,
        Unary::Tanh => &TANH,
        _ => return false,
    };
    // SAFETY: the set in use is supported by the processor.
    unsafe { if table.odd { run::<true>(table, x, out) } else { run::<false>(table, x, out) } }
    true
}

#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run<const ODD: bool>(table: &Table, x: &[f32], out: &mut [f32]) {
    let registers = Registers::new(table);
    let (chunks, rest) = x.as_chunks();
    let (out_chunks, out_rest) = out.as_chunks_mut();
    let mut beyond = 0;
    for (x, out) in chunks.iter().zip(out_chunks) {
        beyond |= registers.apply::<ODD>(x, out);
    }
    if !rest.is_empty() {
        let (mut x, mut out) = ([0.0; LANES], [0.0; LANES]);
        x[..rest.len()].copy_from_slice(rest);
        beyond |= registers.apply::<ODD>(&x, &mut out);
        out_rest.copy_from_slice(&out[..rest.len()]);
    }
    if beyond != 0 {
        left_tail(table.end, x, out);
    }
}

/// A [`Table`] in registers, for a whole block.
struct Registers {
    end: __m512,
    curve: __m512,
    slope: __m512,
    origins: [__m512; 2],
    coefficients: [[__m512; 2]; TERMS],
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn load(x: &[f32; LANES]) -> __m512 {
    // SAFETY: the array has as many numbers as the register.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn halves(row: &[f32; SEGMENTS]) -> [__m512; 2] {
    let (halves, _) = row.as_chunks();
    [load(&halves[0]), load(&halves[1])]
}

impl Registers {
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn new(table: &Table) -> Self {
        let mut coefficients = [[_mm512_setzero_ps(); 2]; TERMS];
        for (register, row) in coefficients.iter_mut().zip(&table.coefficients) {
            *register = halves(row);
        }
        Registers {
            end: _mm512_set1_ps(table.end),
            curve: _mm512_set1_ps(table.curve),
            slope: _mm512_set1_ps(table.slope),
            origins: halves(&table.origins),
            coefficients,
        }
    }

    /// The result has a bit set for each lane whose argument is outside the table.
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn apply<const ODD: bool>(&self, from: &[f32; LANES], out: &mut [f32; LANES]) -> u16 {
        let x = load(from);
        // If one of the two operands is NaN, the instruction returns the second.
        let t = _mm512_min_ps(self.end, _mm512_abs_ps(x));
        let shifted = _mm512_fmadd_ps(t, _mm512_fmadd_ps(t, self.curve, self.slope), _mm512_set1_ps(f32::ROUND));
        // Only the lowest bits are used.
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
        // SAFETY: the array has as many numbers as the register.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), result) };
        if ODD { 0 } else { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, _mm512_sub_ps(zero, self.end)) }
    }
}

/// The left tail of Φ beyond the table, by the general function.
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

    /// The same computation, one number after the other.
    fn naive(table: &Table, general: fn(f32) -> f32, x: f32) -> f32 {
        if !table.odd && x < -table.end {
            return general(x);
        }
        let t = if x.abs() > table.end { table.end } else { x.abs() };
        let segment = t.mul_add(t.mul_add(table.curve, table.slope), f32::ROUND).to_bits() as usize % SEGMENTS;
        let d = t - table.origins[segment];
        let [first, rest @ ..] = table.coefficients.map(|row| row[segment]);
        let sum = rest.into_iter().fold(first, |sum, coefficient| sum.mul_add(d, coefficient));
        match table.odd {
            true => sum.copysign(x),
            false if x > 0.0 => 1.0 - sum,
            false => sum,
        }
    }

    type Row = (Unary, &'static LazyLock<Table>, fn(f32) -> f32, fn(f64) -> f64, f64);

    /// Each with its general function, an exact one, and the stated bound.
    const TABLES: [Row; 2] = [
        (Unary::Ndtr, &NDTR, f32::ndtr::<true>, f64::ndtr::<false>, 2.0),
        (Unary::Tanh, &TANH, <f32 as FloatMath>::tanh::<true>, f64::tanh, 2.0),
    ];

    /// A dense sample of all arguments, and of those near 0.
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
            // Remainders of a block, and lanes of which only some are outside the table.
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
            for &x in x.iter().filter(|x| table.odd || **x >= -table.end) {
                let (got, exact) = (f64::from(naive(table, general, x)), exact(f64::from(x)));
                let rounded = (exact as f32).abs();
                let off = (got - exact).abs() / f64::from(rounded.next_up() - rounded);
                assert!(off <= bound || x.is_nan(), "{op:?} {x:e}: {got:e} is {off} units off");
            }
            assert_eq!(naive(table, general, f32::INFINITY), 1.0);
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
