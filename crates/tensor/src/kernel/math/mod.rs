//! Exponentials and their kin in plain arithmetic, without a branch or a call, so that a loop over a block becomes vector
//! instructions.
//!
//! The method is Cody and Waite's ("Software Manual for the Elementary Functions", 1980): reduce the argument, evaluate a
//! polynomial, put the exponent back. Polynomials are those of S. Moshier's Cephes library, or our own fits. The worst error against
//! the correctly rounded result, in units in the last place, is stated with each function and measured by the tests.
//!
//! Where vectors can look up numbers in registers, some functions of `f32` are polynomials piece by piece instead: `pieces`.

/// What the functions of one type are made of.
macro_rules! polynomials {
    ($type:ident) => {
        /// x y + z.
        #[inline(always)]
        pub(super) fn fma<const FMA: bool>(x: $type, y: $type, z: $type) -> $type {
            if FMA { x.mul_add(y, z) } else { x * y + z }
        }

        /// The polynomial with these coefficients, that of the highest power first.
        #[inline(always)]
        pub(super) fn polynomial<const FMA: bool, const N: usize>(x: $type, coefficients: [$type; N]) -> $type {
            let mut sum = coefficients[0];
            let mut k = 1;
            while k < N {
                sum = fma::<FMA>(sum, x, coefficients[k]);
                k += 1;
            }
            sum
        }
    };
}

use polynomials;

pub(crate) mod double;
#[cfg(target_arch = "x86_64")]
pub(crate) mod pieces;
pub(crate) mod single;
mod wide;

#[cfg(test)]
mod tests {
    use super::{double, single};
    use crate::kernel::block::{Blocks, Operand};
    use crate::kernel::instruction::{Binary, Unary};

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

    fn sigmoid(x: f64) -> f64 {
        if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
    }

    fn ndtr(x: f64) -> f64 {
        0.5 * libm::erfc(-x / 2f64.sqrt())
    }

    #[test]
    fn errors_are_as_stated() {
        type Row = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f64);
        let table: [Row; 28] = [
            ("exp", single::exp::<false>, f64::exp, 1.0),
            ("exp", single::exp::<true>, f64::exp, 1.0),
            ("log", single::log::<false>, f64::ln, 1.0),
            ("log", single::log::<true>, f64::ln, 1.0),
            ("sigmoid", single::sigmoid::<false>, sigmoid, 2.0),
            ("sigmoid", single::sigmoid::<true>, sigmoid, 2.0),
            ("erf", single::erf::<false>, libm::erf, 2.0),
            ("erf", single::erf::<true>, libm::erf, 2.0),
            ("erfc", single::erfc::<false>, libm::erfc, 3.0),
            ("erfc", single::erfc::<true>, libm::erfc, 3.0),
            ("tanh", single::tanh::<false>, f64::tanh, 2.0),
            ("tanh", single::tanh::<true>, f64::tanh, 2.0),
            ("exp2", single::exp2::<false>, f64::exp2, 2.0),
            ("exp2", single::exp2::<true>, f64::exp2, 2.0),
            ("expm1", single::expm1::<false>, f64::exp_m1, 2.0),
            ("expm1", single::expm1::<true>, f64::exp_m1, 2.0),
            ("log2", single::log2::<false>, f64::log2, 2.0),
            ("log2", single::log2::<true>, f64::log2, 2.0),
            ("log10", single::log10::<false>, f64::log10, 2.0),
            ("log10", single::log10::<true>, f64::log10, 2.0),
            ("log1p", single::log1p::<false>, f64::ln_1p, 2.0),
            ("log1p", single::log1p::<true>, f64::ln_1p, 2.0),
            ("sin", single::sin::<false>, f64::sin, 2.0),
            ("sin", single::sin::<true>, f64::sin, 2.0),
            ("cos", single::cos::<false>, f64::cos, 2.0),
            ("cos", single::cos::<true>, f64::cos, 2.0),
            ("ndtr", single::ndtr::<false>, ndtr, 5.0),
            ("ndtr", single::ndtr::<true>, ndtr, 5.0),
        ];
        for (name, ours, exact, bound) in table {
            let (error, at) = worst(ours, exact);
            assert!(error <= bound, "{name}: {error} units in the last place at {at:e}");
        }
    }

    /// Against functions that are themselves within a unit: a gross error anywhere would be seen. What f64 keeps to the last
    /// digit is in `accuracy.rs`.
    #[test]
    fn doubles_are_near_the_library() {
        type Row = (&'static str, fn(f64) -> f64, fn(f64) -> f64, f64);
        let table: [Row; 10] = [
            ("exp", double::exp::<false>, f64::exp, 2.0),
            ("exp", double::exp::<true>, f64::exp, 2.0),
            ("log", double::log::<false>, f64::ln, 2.0),
            ("log", double::log::<true>, f64::ln, 2.0),
            ("sigmoid", double::sigmoid::<false>, sigmoid, 4.0),
            ("sigmoid", double::sigmoid::<true>, sigmoid, 4.0),
            ("erf", double::erf::<false>, libm::erf, 2.0),
            ("erf", double::erf::<true>, libm::erf, 2.0),
            ("tanh", double::tanh::<false>, f64::tanh, 3.0),
            ("tanh", double::tanh::<true>, f64::tanh, 3.0),
        ];
        let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX, 1.0, -1.0];
        let sample = (0..=u64::MAX).step_by(900_719_925_474_099).map(f64::from_bits);
        let fine = (-8_000_000..8_000_000i32).step_by(37).map(|k| f64::from(k) * 1.01e-4);
        let points: Vec<f64> = special.into_iter().chain(sample).chain(fine).collect();
        for (name, ours, library, bound) in table {
            for &x in &points {
                let (got, exact) = (ours(x), library(x));
                let unit = exact.abs().next_up() - exact.abs();
                let same = got == exact || (got.is_nan() && exact.is_nan());
                assert!(same || (got - exact).abs() <= bound * unit, "{name} at {x:e}: {got:e}, not {exact:e}");
            }
        }
    }

    /// Of chunks and of what is left over, beside special values or not, in a block or alone.
    #[test]
    fn a_value_does_not_depend_on_those_beside_it() {
        fn check<T: Blocks + Copy + PartialEq + std::fmt::Debug>(of: fn(f32) -> T, bits: fn(T) -> u64) {
            let plain: Vec<T> = (0..200u8).map(|i| of(0.01 + f32::from(i) * 0.037)).collect();
            let mut mixed = plain.clone();
            for (place, special) in [(3, 0.0), (70, -1.5), (71, f32::INFINITY), (140, f32::NAN), (195, 1e30)] {
                mixed[place] = of(special);
            }
            let ops = Unary::ALL.iter().map(|&op| (Some(op), None));
            let ops = ops.chain([(None, Some(Binary::Pow))]);
            for (first, second) in ops {
                let block = |x: Operand<T>, out: &mut [T]| match (first, second) {
                    (Some(op), _) => T::unary(op, x, out),
                    (_, Some(op)) => T::binary(op, x, x, out),
                    _ => false,
                };
                let (mut together, mut among) = (plain.clone(), plain.clone());
                if !block(Operand::Slice(&plain), &mut together) || !block(Operand::Slice(&mixed), &mut among) {
                    continue;
                }
                for (i, &x) in mixed.iter().enumerate() {
                    let (mut alone, mut splat) = ([x], [x; 3]);
                    block(Operand::Slice(&[x]), &mut alone);
                    block(Operand::Splat(x), &mut splat);
                    let name = (first, second, i);
                    assert_eq!([bits(among[i]); 2], [bits(alone[0]), bits(splat[2])], "{name:?} {x:?}");
                    assert!(bits(plain[i]) != bits(x) || bits(together[i]) == bits(among[i]), "{name:?} {x:?}");
                }
            }
        }
        check::<f32>(|x| x, |x| if x.is_nan() { u64::MAX } else { u64::from(x.to_bits()) });
        check::<f64>(f64::from, |x| if x.is_nan() { u64::MAX } else { x.to_bits() });
    }

    #[test]
    fn the_sign_of_zero_is_kept() {
        assert_eq!(single::tanh::<false>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(single::exp::<true>(-0.0), 1.0);
    }
}
