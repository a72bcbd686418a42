//! Exponentials and their kin in plain arithmetic, without a branch or a call, so that a loop over a block becomes vector
//! instructions.
//!
//! The method is Cody and Waite's ("Software Manual for the Elementary Functions", 1980): reduce the argument, evaluate a
//! polynomial, put the exponent back. Polynomials are those of S. Moshier's Cephes library, or our own fits. The worst error against
//! the correctly rounded result, in units in the last place, is stated with each function and measured by the tests.
//!
//! Where vectors can look up numbers in registers, some functions of `f32` are polynomials piece by piece instead: `pieces`.

/// What the functions of one type are made of, and those that are the same lines in both types. The module has the constants,
/// `expm1_reduced`, `split`, `log1p_rest`, `falling` and `sine`.
macro_rules! polynomials {
    ($type:ident) => {
        /// x y + z.
        #[inline(always)]
        pub(crate) fn fma<const FMA: bool>(x: $type, y: $type, z: $type) -> $type {
            if FMA { x.mul_add(y, z) } else { x * y + z }
        }

        /// The polynomial with these coefficients, that of the highest power first.
        #[inline(always)]
        pub(crate) fn polynomial<const FMA: bool, const N: usize>(x: $type, coefficients: [$type; N]) -> $type {
            let mut sum = coefficients[0];
            let mut k = 1;
            while k < N {
                sum = fma::<FMA>(sum, x, coefficients[k]);
                k += 1;
            }
            sum
        }

        /// The number that has the low bits of `shifted` in its exponent field.
        #[inline(always)]
        fn power_of_two(shifted: $type) -> $type {
            $type::from_bits(shifted.to_bits() << ($type::MANTISSA_DIGITS - 1))
        }

        /// What the exponent field of 2⁰ adds to [`ROUND`].
        const BIAS: $type = ($type::MAX_EXP - 1) as $type;

        /// y 2ⁿ where [`ROUND`] + 2 [`BIAS`] + n is `shifted`. In two factors: 2ⁿ alone may be out of range where the
        /// result is not.
        #[inline(always)]
        fn scaled(y: $type, shifted: $type) -> $type {
            const DIGITS: u32 = $type::MANTISSA_DIGITS - 1;
            let exponent = shifted.to_bits();
            let half = exponent >> 1;
            y * $type::from_bits(half << DIGITS) * $type::from_bits(exponent.wrapping_sub(half) << DIGITS)
        }

        /// x - n ln 2.
        #[inline(always)]
        fn reduced<const FMA: bool>(x: $type, n: $type) -> $type {
            fma::<FMA>(-n, LN_2_LOW, fma::<FMA>(-n, LN_2_HIGH, x))
        }

        /// y² in two parts: the rounding of the first would be multiplied by the exponent where it is one.
        #[inline(always)]
        fn square<const FMA: bool>(y: $type) -> ($type, $type) {
            const HALF: u32 = $type::MANTISSA_DIGITS.div_ceil(2);
            let square = y * y;
            let rest = if FMA {
                y.mul_add(y, -square)
            } else {
                let high = $type::from_bits(y.to_bits() >> HALF << HALF);
                let low = y - high;
                ((high * high - square) + 2.0 * high * low) + low * low
            };
            (square, rest)
        }

        /// eˣ; 1 unit in the last place, subnormal results included.
        #[inline(always)]
        pub(crate) fn exp<const FMA: bool>(x: $type) -> $type {
            // Beyond these the result is ∞ and 0 whatever the argument. A NaN is neither above nor below.
            let x = if x > EXP_RANGE.1 { EXP_RANGE.1 } else { x };
            let x = if x < EXP_RANGE.0 { EXP_RANGE.0 } else { x };
            const BASE: $type = ROUND + 2.0 * BIAS;
            let shifted = fma::<FMA>(x, LOG2_E, BASE);
            scaled(expm1_reduced::<FMA>(reduced::<FMA>(x, shifted - BASE)) + 1.0, shifted)
        }

        /// 2ˣ; exact at integers. 2 units in the last place in f32, 1 in f64.
        #[inline(always)]
        pub(crate) fn exp2<const FMA: bool>(x: $type) -> $type {
            const ABOVE: $type = ($type::MAX_EXP + 1) as $type;
            const BELOW: $type = ($type::MIN_EXP - $type::MANTISSA_DIGITS as i32 - 2) as $type;
            let x = if x > ABOVE { ABOVE } else { x };
            let x = if x < BELOW { BELOW } else { x };
            const BASE: $type = ROUND + 2.0 * BIAS;
            let shifted = x + BASE;
            scaled(expm1_reduced::<FMA>((x - (shifted - BASE)) * LN_2) + 1.0, shifted)
        }

        /// eˣ - 1; 2 units in the last place.
        #[inline(always)]
        pub(crate) fn expm1<const FMA: bool>(x: $type) -> $type {
            const BELOW: $type = -($type::MANTISSA_DIGITS as $type);
            let bounded = if x > EXP_RANGE.1 { EXP_RANGE.1 } else { x };
            let bounded = if bounded < BELOW { BELOW } else { bounded };
            // Half the power, since the whole may be out of range where the result is not.
            const BASE: $type = ROUND + (BIAS - 1.0);
            let shifted = fma::<FMA>(bounded, LOG2_E, BASE);
            let half = power_of_two(shifted);
            let q = expm1_reduced::<FMA>(reduced::<FMA>(bounded, shifted - BASE));
            let y = 2.0 * fma::<FMA>(q, half, half - 0.5);
            // The sign of 0, and the last bit of subnormal numbers.
            if x.abs() < 0.125 * $type::EPSILON { x } else { y }
        }

        /// Whether x is a positive number that is neither subnormal nor infinite.
        #[inline(always)]
        pub(crate) fn is_ordinary(x: $type) -> bool {
            const FIRST: $type = $type::MIN_POSITIVE;
            x.to_bits().wrapping_sub(FIRST.to_bits()) < $type::INFINITY.to_bits() - FIRST.to_bits()
        }

        /// sin x of what [`is_moderate`].
        #[inline(always)]
        pub(crate) fn sin_moderate<const FMA: bool>(x: $type) -> $type {
            sine::<FMA>(x, 0)
        }

        /// cos x of what [`is_moderate`].
        #[inline(always)]
        pub(crate) fn cos_moderate<const FMA: bool>(x: $type) -> $type {
            sine::<FMA>(x, 1)
        }

        /// 1 - erf x, of magnitude y: e^(-y²) g(t)/(1 + 2y), and near 0 without it.
        #[inline(always)]
        fn erfc_of<const FMA: bool, const N: usize>(x: $type, y: $type, t: $type, g: [$type; N]) -> $type {
            let (square, rest) = square::<FMA>(y);
            let (q, power) = falling::<FMA>(-square, Some(rest));
            let ratio = polynomial::<FMA, N>(t, g) / fma::<FMA>(2.0, y, 1.0);
            let tail = fma::<FMA>(ratio, q, ratio) * power * DROP;
            let far = if x < 0.0 { 2.0 - tail } else { tail };
            let near = 1.0 - fma::<FMA>(polynomial::<FMA, _>(square, ERF_NEAR), x, x);
            if y < 0.4 { near } else { far }
        }

        /// log₂ x of what [`is_ordinary`]; 2 units in the last place, exact at powers of two.
        #[inline(always)]
        pub(crate) fn log2_ordinary<const FMA: bool>(x: $type) -> $type {
            let (n, m) = split(x);
            let rest = fma::<FMA>(log1p_rest::<FMA>(m), LOG2_E, m * LOG2_E_LOW);
            n + fma::<FMA>(m, LOG2_E, rest)
        }

        /// log₁₀ x of what [`is_ordinary`]; 2 units in the last place.
        #[inline(always)]
        pub(crate) fn log10_ordinary<const FMA: bool>(x: $type) -> $type {
            let (n, m) = split(x);
            let rest = fma::<FMA>(log1p_rest::<FMA>(m), LOG10_E, m * LOG10_E_LOW);
            fma::<FMA>(n, LOG10_2_HIGH, fma::<FMA>(m, LOG10_E, fma::<FMA>(n, LOG10_2_LOW, rest)))
        }

        /// Whether x is above -1, and 1/x is not subnormal.
        #[inline(always)]
        pub(crate) fn is_above_minus_one(x: $type) -> bool {
            (x > -1.0) & (x < $type::MAX / 4.0)
        }

        /// ln(1 + x) of what [`is_above_minus_one`]; 2 units in the last place.
        #[inline(always)]
        pub(crate) fn log1p_ordinary<const FMA: bool>(x: $type) -> $type {
            // The exponent of 1 + x, but the fraction of x itself: 1 + x = (1 + m) 2ⁿ, m = 2⁻ⁿ x + (2⁻ⁿ - 1).
            let (n, _) = split(1.0 + x);
            let scale = power_of_two(ROUND + BIAS - n);
            let m = fma::<FMA>(x, scale, scale - 1.0);
            let y = fma::<FMA>(n, LN_2_LOW, log1p_rest::<FMA>(m));
            let y = fma::<FMA>(n, LN_2_HIGH, m + y);
            // The sign of 0, and the last bit of subnormal numbers.
            if x.abs() < 0.125 * $type::EPSILON { x } else { y }
        }
    };
}

use polynomials;

pub(crate) mod double;
pub(crate) mod single;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tables;
mod wide;

#[cfg(test)]
mod tests {
    use crate::kernel::elementwise::block::Blocks;
    use crate::kernel::elementwise::operand::Operand;
    use crate::scalar::instruction::{Binary, Unary};
    use crate::scalar::math::{double, single};

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

    /// As blocks compute a function: by the library what is not for our own.
    macro_rules! mended {
        ($own:expr, $ordinary:expr, $library:expr) => {
            |x| if $ordinary(x) { $own(x) } else { $library(x) }
        };
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
            ("log2", mended!(single::log2_ordinary::<false>, single::is_ordinary, f32::log2), f64::log2, 2.0),
            ("log2", mended!(single::log2_ordinary::<true>, single::is_ordinary, f32::log2), f64::log2, 2.0),
            ("log10", mended!(single::log10_ordinary::<false>, single::is_ordinary, f32::log10), f64::log10, 2.0),
            ("log10", mended!(single::log10_ordinary::<true>, single::is_ordinary, f32::log10), f64::log10, 2.0),
            (
                "log1p",
                mended!(single::log1p_ordinary::<false>, single::is_above_minus_one, f32::ln_1p),
                f64::ln_1p,
                2.0,
            ),
            ("log1p", mended!(single::log1p_ordinary::<true>, single::is_above_minus_one, f32::ln_1p), f64::ln_1p, 2.0),
            ("sin", mended!(single::sin_moderate::<false>, single::is_moderate, f32::sin), f64::sin, 2.0),
            ("sin", mended!(single::sin_moderate::<true>, single::is_moderate, f32::sin), f64::sin, 2.0),
            ("cos", mended!(single::cos_moderate::<false>, single::is_moderate, f32::cos), f64::cos, 2.0),
            ("cos", mended!(single::cos_moderate::<true>, single::is_moderate, f32::cos), f64::cos, 2.0),
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
        let table: [Row; 26] = [
            ("exp", double::exp::<false>, f64::exp, 2.0),
            ("exp", double::exp::<true>, f64::exp, 2.0),
            ("log", double::log::<false>, f64::ln, 2.0),
            ("log", double::log::<true>, f64::ln, 2.0),
            ("sigmoid", double::sigmoid::<false>, sigmoid, 4.0),
            ("sigmoid", double::sigmoid::<true>, sigmoid, 4.0),
            ("erf", double::erf::<false>, libm::erf, 2.0),
            ("erf", double::erf::<true>, libm::erf, 2.0),
            ("erfc", double::erfc::<false>, libm::erfc, 4.0),
            ("erfc", double::erfc::<true>, libm::erfc, 4.0),
            ("tanh", double::tanh::<false>, f64::tanh, 3.0),
            ("tanh", double::tanh::<true>, f64::tanh, 3.0),
            ("exp2", double::exp2::<false>, f64::exp2, 2.0),
            ("exp2", double::exp2::<true>, f64::exp2, 2.0),
            ("expm1", double::expm1::<false>, f64::exp_m1, 3.0),
            ("expm1", double::expm1::<true>, f64::exp_m1, 3.0),
            ("log2", mended!(double::log2_ordinary::<false>, double::is_ordinary, f64::log2), f64::log2, 3.0),
            ("log2", mended!(double::log2_ordinary::<true>, double::is_ordinary, f64::log2), f64::log2, 3.0),
            ("log10", mended!(double::log10_ordinary::<false>, double::is_ordinary, f64::log10), f64::log10, 3.0),
            ("log10", mended!(double::log10_ordinary::<true>, double::is_ordinary, f64::log10), f64::log10, 3.0),
            (
                "log1p",
                mended!(double::log1p_ordinary::<false>, double::is_above_minus_one, f64::ln_1p),
                f64::ln_1p,
                3.0,
            ),
            ("log1p", mended!(double::log1p_ordinary::<true>, double::is_above_minus_one, f64::ln_1p), f64::ln_1p, 3.0),
            ("sin", mended!(double::sin_moderate::<false>, double::is_moderate, f64::sin), f64::sin, 2.0),
            ("sin", mended!(double::sin_moderate::<true>, double::is_moderate, f64::sin), f64::sin, 2.0),
            ("cos", mended!(double::cos_moderate::<false>, double::is_moderate, f64::cos), f64::cos, 2.0),
            ("cos", mended!(double::cos_moderate::<true>, double::is_moderate, f64::cos), f64::cos, 2.0),
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

    /// Where the exact result is a number of the type, it is that number.
    #[test]
    fn doubles_are_exact_where_results_are() {
        fn check<const FMA: bool>() {
            for n in -1022..=1023 {
                let x = 2f64.powi(n);
                assert_eq!((double::exp2::<FMA>(f64::from(n)), double::log2_ordinary::<FMA>(x)), (x, f64::from(n)));
            }
            for n in 0..=22 {
                assert_eq!(double::log10_ordinary::<FMA>(10f64.powi(n)), f64::from(n));
            }
        }
        check::<false>();
        check::<true>();
        for base in 1..=200u32 {
            let mut power = 1u64;
            for n in 0.. {
                assert_eq!(double::pow_ordinary::<true>(base.into(), n.into()), power as f64, "{base}, {n}");
                power *= u64::from(base);
                if power > 1 << 53 || n == 40u32 {
                    break;
                }
            }
        }
        for (x, y) in [(0.25, 0.5), (1e300, 1.0), (0.1, 1.0), (2.0, -1074.0), (1.5, -0.0), (1.0, 1e19)] {
            assert_eq!(double::pow_ordinary::<true>(x, y), x.powf(y), "{x}, {y}");
        }
    }

    /// At the argument nearest to a multiple of π/2, among those that are reduced here, and at π.
    #[test]
    fn sines_keep_their_digits_near_zeros() {
        use double::{cos_moderate, sin_moderate};
        let (x, cosine) = (45.553_093_477_052, -6.189_806_365_883_577e-19);
        assert_eq!([cos_moderate::<false>(x), cos_moderate::<true>(x)], [cosine; 2]);
        let (x, sine) = (std::f64::consts::PI, 1.224_646_799_147_353_2e-16);
        assert_eq!([sin_moderate::<false>(x), sin_moderate::<true>(x)], [sine; 2]);
    }

    #[test]
    fn the_sign_of_zero_is_kept() {
        assert_eq!(single::tanh::<false>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(single::exp::<true>(-0.0), 1.0);
        let odd = [double::expm1::<true>, double::log1p_ordinary::<true>, double::sin_moderate::<true>];
        assert_eq!(odd.map(|f| f(-0.0).to_bits()), [(-0.0f64).to_bits(); 3]);
    }
}
