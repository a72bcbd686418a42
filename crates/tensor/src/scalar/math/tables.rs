//! Functions of `f32` by tables, for processors with AVX-512: the magnitude of the argument falls into one of 32 pieces, and
//! each piece has a polynomial. One instruction picks the numbers of 16 pieces out of the 32 that two registers hold, so that
//! a coefficient costs no more than the product it is for, and neither exponentials nor divisions are left.
//!
//! A polynomial meets its function at Chebyshev's points of its piece. The tables are computed in `f64`, when a function is
//! first asked for.
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
const PIECES: usize = 2 * LANES;

/// Coefficients of a polynomial.
const TERMS: usize = 6;

/// A function f of t in 0 ..= `end`. From there on, f(t) is rounded to 1.
struct Table {
    /// Whether f(-t) is -f(t). If not, it is 1 - f(t), and the table has f(-t), with all its digits.
    odd: bool,
    end: f32,
    /// t is in piece number t (`curve` t + `slope`), rounded.
    curve: f32,
    slope: f32,
    /// Of the pieces; what the polynomials are of is t less this.
    origins: [f32; PIECES],
    /// That of the highest power first.
    coefficients: [[f32; PIECES]; TERMS],
}

/// Φ: 2 units in the last place.
static NDTR: LazyLock<Table> = LazyLock::new(|| Table::new(false, 6.0, (0.6, 1.6), |t| f64::ndtr::<false>(-t)));

/// tanh: 2 units in the last place.
static TANH: LazyLock<Table> = LazyLock::new(|| Table::new(true, 10.0, (-0.2, 5.1), f64::tanh));

impl Table {
    fn new(odd: bool, end: f32, (curve, slope): (f32, f32), function: fn(f64) -> f64) -> Self {
        let (a, b) = (f64::from(curve), f64::from(slope));
        // Where a t² + b t is this.
        let border = |number: f64| 2.0 * number / (b + (b * b + 4.0 * a * number).sqrt());
        let mut table = Table { odd, end, curve, slope, origins: [0.0; PIECES], coefficients: [[0.0; PIECES]; TERMS] };
        for piece in 0..PIECES {
            let right = border(piece as f64 + 0.5);
            let left = match piece {
                // The polynomial of an odd function is odd there.
                0 if odd => -right,
                0 => 0.0,
                _ => border(piece as f64 - 0.5),
            };
            // Where the function is least, so that its sums have no terms much larger than they are.
            let origin = (if odd { left.max(0.0) } else { right }) as f32;
            table.origins[piece] = origin;
            let coefficients = interpolation(function, (left, right), f64::from(origin));
            for (power, coefficient) in coefficients.into_iter().rev().enumerate() {
                table.coefficients[power][piece] = coefficient as f32;
            }
        }
        if odd {
            // Exactly: what is near 0 keeps all its digits.
            table.coefficients[TERMS - 1][0] = 0.0;
        }
        table
    }
}

/// The coefficients of the polynomial of x - `origin` that meets a function at Chebyshev's points between two numbers, by
/// Newton's divided differences; that of the lowest power first.
fn interpolation(function: fn(f64) -> f64, (left, right): (f64, f64), origin: f64) -> [f64; TERMS] {
    let (middle, radius) = (0.5 * (left + right), 0.5 * (right - left));
    let points: [f64; TERMS] = from_fn(|k| middle - origin + radius * (PI * (k as f64 + 0.5) / TERMS as f64).cos());
    let mut sums = points.map(|x| function(origin + x));
    for level in 1..TERMS {
        for k in (level..TERMS).rev() {
            sums[k] = (sums[k] - sums[k - 1]) / (points[k] - points[k - level]);
        }
    }
    // From factors x - points to powers of x.
    for level in (0..TERMS - 1).rev() {
        for k in level..TERMS - 1 {
            sums[k] -= points[level] * sums[k + 1];
        }
    }
    sums
}

/// The function over a block, where the processor has the instructions and the function a table; else `false`, and nothing
/// done.
pub(crate) fn unary(op: Unary, x: &[f32], out: &mut [f32]) -> bool {
    if instruction_set() < InstructionSet::Avx512 {
        return false;
    }
    let table: &Table = match op {
        Unary::Ndtr => &NDTR,
        Unary::Tanh => &TANH,
        _ => return false,
    };
    // SAFETY: the set in use is one that the processor has.
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
        far_left(table.end, x, out);
    }
}

/// A [`Table`], to stay in registers over a block.
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
    // SAFETY: as many numbers lie there.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn halves(row: &[f32; PIECES]) -> [__m512; 2] {
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

    /// A bit is set for each lane that the table does not reach.
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn apply<const ODD: bool>(&self, from: &[f32; LANES], out: &mut [f32; LANES]) -> u16 {
        let x = load(from);
        // Of two numbers of which one is NaN, the second is taken.
        let t = _mm512_min_ps(self.end, _mm512_abs_ps(x));
        let shifted = _mm512_fmadd_ps(t, _mm512_fmadd_ps(t, self.curve, self.slope), _mm512_set1_ps(f32::ROUND));
        // Only the lowest bits are looked at.
        let piece = _mm512_castps_si512(shifted);
        let d = _mm512_sub_ps(t, _mm512_permutex2var_ps(self.origins[0], piece, self.origins[1]));
        let mut sum = _mm512_setzero_ps();
        for (power, row) in self.coefficients.iter().enumerate() {
            let coefficient = _mm512_permutex2var_ps(row[0], piece, row[1]);
            sum = if power == 0 { coefficient } else { _mm512_fmadd_ps(sum, d, coefficient) };
        }
        let zero = _mm512_setzero_ps();
        let result = if ODD {
            _mm512_or_ps(sum, _mm512_and_ps(x, _mm512_set1_ps(-0.0)))
        } else {
            _mm512_mask_sub_ps(sum, _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, zero), _mm512_set1_ps(1.0), sum)
        };
        // SAFETY: as many numbers have room there.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), result) };
        if ODD { 0 } else { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, _mm512_sub_ps(zero, self.end)) }
    }
}

/// The left tail of Φ from where the table ends, by the function for all arguments.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn far_left(end: f32, x: &[f32], out: &mut [f32]) {
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

    /// The same, one number after the other.
    fn naive(table: &Table, general: fn(f32) -> f32, x: f32) -> f32 {
        if !table.odd && x < -table.end {
            return general(x);
        }
        let t = if x.abs() > table.end { table.end } else { x.abs() };
        let piece = t.mul_add(t.mul_add(table.curve, table.slope), f32::ROUND).to_bits() as usize % PIECES;
        let d = t - table.origins[piece];
        let [first, rest @ ..] = table.coefficients.map(|row| row[piece]);
        let sum = rest.into_iter().fold(first, |sum, coefficient| sum.mul_add(d, coefficient));
        match table.odd {
            true => sum.copysign(x),
            false if x > 0.0 => 1.0 - sum,
            false => sum,
        }
    }

    type Row = (Unary, &'static LazyLock<Table>, fn(f32) -> f32, fn(f64) -> f64, f64);

    /// With the function for all arguments, an exact one, and the bound that is stated.
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
    fn vectors_are_as_numbers_one_after_the_other() {
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
            // What is left over of a block, and lanes of which only some are beyond the table.
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
    fn pieces_fill_the_table() {
        for (op, table, ..) in TABLES {
            let last = table.end.mul_add(table.end.mul_add(table.curve, table.slope), f32::ROUND) - f32::ROUND;
            assert_eq!(last, (PIECES - 1) as f32, "{op:?}");
            assert!(table.origins.is_sorted());
        }
    }
}
