//! Computes the expected result of each operation on single elements. Uses the standard library, `libm` and textbook formulas in f64, or
//! integers of 128 bits. These results are the specification of the kernels, and this file calls no kernel.

use std::f64::consts::{PI, SQRT_2};

use crate::kernel::testing::accuracy::bounds;
use crate::kernel::testing::layouts::Sample;
use crate::{Binary, Compare, DType, Reduction, Unary};

/// The result that a kernel must give for an element, and the error that the kernel's result may have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected<T> {
    /// The result must have exactly these bits. If the value is NaN, any NaN is allowed.
    Exact(T),
    /// The result must have exactly these bits, except that the sign of a zero may differ.
    Unsigned(T),
    /// The result must be near `exact`: within `ulps` units in the last place or within `absolute`, whichever allows more.
    Near { exact: f64, ulps: f64, absolute: f64 },
}

impl<T: Oracle> Expected<T> {
    /// Returns whether `got`, a kernel's result, is allowed.
    pub(crate) fn allows(self, got: T) -> bool {
        match self {
            Expected::Exact(exact) => got.bits() == exact.bits(),
            Expected::Unsigned(exact) => got.bits() == exact.bits() || got == exact,
            Expected::Near { exact, ulps, absolute } => {
                let (rounded, got) = (T::from_f64(exact).to_f64(), got.to_f64());
                // For f32, infinity counts as the power of two after the largest number, so that the distance is finite. For f64, it counts
                // as the largest number.
                let beyond = if T::DTYPE == DType::F32 { 2f64.powi(128) } else { f64::MAX };
                let clamped = |x: f64| x.clamp(-beyond, beyond);
                let off = (clamped(got) - clamped(exact)).abs();
                got == rounded || got.is_nan() && exact.is_nan() || off <= (ulps * T::unit(exact)).max(absolute)
            }
        }
    }

    /// Returns the expected result, in which the sign of a zero may be unspecified. Panics if the kernel may round the result.
    #[track_caller]
    pub(crate) fn exact(self) -> T {
        match self {
            Expected::Exact(exact) | Expected::Unsigned(exact) => exact,
            Expected::Near { .. } => panic!("{self:?} may be rounded"),
        }
    }
}

/// The expected results of operations on one or two elements. A result is `None` if the type does not have the operation.
pub(crate) trait Oracle: Sample {
    /// Returns the distance from the number |`size`| to the next larger number of this type. Returns 0 for integers and truth values.
    fn unit(size: f64) -> f64;
    fn of_one(op: Unary, x: Self) -> Option<Expected<Self>>;
    fn of_two(op: Binary, x: Self, y: Self) -> Option<Expected<Self>>;
}

pub(crate) fn compare<T: Sample>(op: Compare, x: T, y: T) -> bool {
    match op {
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
    }
}

/// Combines two elements in the way in which the reduction `op` does.
pub(crate) fn combine<T: Oracle>(op: Reduction, x: T, y: T) -> T {
    T::of_two(op.function(), x, y).expect("every type has it").exact()
}

/// Computes the operation `op` on a real number, in f64.
fn real_unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        Unary::Reciprocal => 1.0 / x,
        Unary::Square => x * x,
        Unary::Sqrt | Unary::SqrtFlat | Unary::PowHalf => x.sqrt(),
        Unary::PowMinusHalf => 1.0 / x.sqrt(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => libm::rint(x),
        Unary::Trunc => x.trunc(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => libm::asinh(x),
        Unary::Acosh if x < 1.0 => f64::NAN,
        Unary::Acosh => libm::acosh(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Relu if x < 0.0 => 0.0,
        Unary::Relu => x,
        Unary::Hardsigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Unary::Sinc if x == 0.0 => 1.0,
        Unary::Sinc => libm::sin(PI * (x % 2.0)) / (PI * x),
        Unary::Logit => (x / (1.0 - x)).ln(),
        Unary::Erf => libm::erf(x),
        Unary::Erfc => libm::erfc(x),
        Unary::Ndtr => 0.5 * libm::erfc(-x / SQRT_2),
        Unary::Erfinv => erfinv(x),
        Unary::Lgamma => libm::lgamma(x),
        Unary::Digamma => digamma(x),
        Unary::Trigamma => trigamma(x),
        Unary::Not => unreachable!("of integers and truth values"),
    }
}

/// Computes the inverse of the error function by bisection.
fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    if size > 1.0 || x.is_nan() {
        return f64::NAN;
    }
    if size == 1.0 || size == 0.0 {
        return if size == 1.0 { f64::INFINITY.copysign(x) } else { x };
    }
    // For small `size`, `erf` is nearly linear, and two terms of the series suffice.
    if size < 1e-4 {
        return (x + PI * x * x * x / 12.0) * PI.sqrt() / 2.0;
    }
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let below = if size < 0.5 { libm::erf(middle) < size } else { libm::erfc(middle) > 1.0 - size };
        (low, high) = if below { (middle, high) } else { (low, middle) };
    }
    high.copysign(x)
}

/// Computes the digamma function ψ(x) = ψ(x + n) - Σ 1/(x + k) for k < n. Uses the asymptotic series for arguments of 20 and above, and the
/// reflection formula for negative arguments.
fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        return if x == x.floor() { f64::NAN } else { digamma(1.0 - x) - PI / (PI * (x - libm::rint(x))).tan() };
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 20.0 {
        sum += 1.0 / y;
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    y.ln() - 0.5 / y - z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z / 132.0)))) - sum
}

/// Computes the trigamma function ψ'(x) = Σ 1/(x + k)² over all k ≥ 0. Uses the asymptotic series for arguments of 20 and above, and the
/// reflection formula for arguments below 1/2.
fn trigamma(x: f64) -> f64 {
    if x < 0.5 {
        return (PI / (PI * x).sin()).powi(2) - trigamma(1.0 - x);
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 20.0 {
        sum += 1.0 / (y * y);
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    sum + (1.0 + 0.5 / y + z * (1.0 / 6.0 - z * (1.0 / 30.0 - z / 42.0))) / y
}

/// Computes the Hurwitz zeta function ζ(s, q) = Σ (q + k)⁻ˢ over all k ≥ 0. Adds the terms with negative q + k and forty more, or fewer
/// terms if the later ones are negligible. Approximates the sum of the other terms by the first terms of the Euler-Maclaurin formula.
fn zeta(s: f64, q: f64) -> f64 {
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return f64::NAN;
    }
    if s == 1.0 || q <= 0.0 && q == q.floor() {
        return f64::INFINITY;
    }
    if q < 0.0 && s != s.floor() {
        return f64::NAN;
    }
    assert!(q > -1e4, "a sum of {q:e} terms");
    let (mut sum, mut w) = (0.0f64, q);
    for _ in 0..40 + q.min(0.0).abs() as usize {
        let term = w.powf(-s);
        sum += term;
        w += 1.0;
        if w > 1.0 && term <= 1e-18 * sum {
            return sum;
        }
    }
    let rising = |n: i32| (0..n).fold(1.0, |product, k| product * (s + f64::from(k)) / w);
    let power = w.powf(-s);
    sum + power * w / (s - 1.0) + power * (0.5 + rising(1) / 12.0 - rising(3) / 720.0 + rising(5) / 30240.0)
}

/// Computes the operation `op` on two real numbers, in f64. If the kernel computes it by several steps in the element type, `round` is
/// applied after the steps whose rounding can change the result considerably.
fn real_binary(op: Binary, x: f64, y: f64, round: impl Fn(f64) -> f64) -> f64 {
    let opposite = |rest: f64| rest != 0.0 && (rest < 0.0) != (y < 0.0);
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Pow => x.powf(y),
        Binary::Maximum | Binary::Minimum if x.is_nan() || y.is_nan() => f64::NAN,
        Binary::Fmax | Binary::Fmin if x.is_nan() => y,
        Binary::Maximum | Binary::Fmax => {
            if y > x {
                y
            } else {
                x
            }
        }
        Binary::Minimum | Binary::Fmin => {
            if y < x {
                y
            } else {
                x
            }
        }
        Binary::Atan2 => x.atan2(y),
        Binary::Hypot => libm::hypot(x, y),
        Binary::Copysign => {
            if y.is_sign_negative() {
                -x.abs()
            } else {
                x.abs()
            }
        }
        Binary::Fmod => libm::fmod(x, y),
        Binary::Remainder => {
            let rest = libm::fmod(x, y);
            if opposite(rest) { rest + y } else { rest }
        }
        Binary::FloorDivide if y == 0.0 => x / y,
        Binary::FloorDivide => {
            let rest = libm::fmod(x, y);
            let quotient = round(round(x - rest) / y).round();
            let quotient = if opposite(rest) { quotient - 1.0 } else { quotient };
            if quotient == 0.0 { 0f64.copysign(x / y) } else { quotient }
        }
        Binary::Prelu => {
            if x > 0.0 {
                x
            } else {
                x * y
            }
        }
        Binary::LogitWithin => {
            let above = round(1.0 - y);
            let x = if x < y {
                y
            } else if x > above {
                above
            } else {
                x
            };
            (x / (1.0 - x)).ln()
        }
        Binary::Xlogy | Binary::Xlog1py if x == 0.0 && !y.is_nan() => 0.0,
        Binary::Xlogy => x * y.ln(),
        Binary::Xlog1py => x * y.ln_1p(),
        Binary::Zeta => zeta(x, y),
        Binary::Nextafter => unreachable!("of the bits of a type"),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight | Binary::Gcd | Binary::Lcm => {
            unreachable!("of integers and truth values")
        }
    }
}

macro_rules! floats {
    ($($type:ident $signed:ident),*) => {$(
        impl Oracle for $type {
            fn unit(size: f64) -> f64 {
                let size = (size.abs() as $type).min($type::MAX.next_down());
                f64::from(size.next_up()) - f64::from(size)
            }

            fn of_one(op: Unary, x: $type) -> Option<Expected<$type>> {
                if op == Unary::Not {
                    return None;
                }
                let exact = real_unary(op, x.into());
                if matches!(op, Unary::Neg | Unary::Abs) {
                    return Some(Expected::Exact(exact as $type));
                }
                Some(expected(op.name(), exact, match op {
                    // The kernel rounds the argument of the sine or the logarithm, which matters near the zeros of these functions.
                    Unary::Sinc | Unary::Logit => 1e-15,
                    // Near the zeros at negative arguments, these functions are sums whose terms cancel.
                    Unary::Lgamma | Unary::Digamma => 20.0 * f64::from($type::EPSILON) * f64::from(x.abs().clamp(1.0, 10.0)),
                    // The oracle rounds x/√2. The exponential of its square amplifies the rounding error.
                    Unary::Ndtr => exact * f64::from(x).powi(2) * 1e-15,
                    _ => 0.0,
                }))
            }

            fn of_two(op: Binary, x: $type, y: $type) -> Option<Expected<$type>> {
                Some(match op {
                    Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight | Binary::Gcd
                    | Binary::Lcm => return None,
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Maximum | Binary::Minimum => {
                        Expected::Exact(real_binary(op, x.into(), y.into(), |x| x) as $type)
                    }
                    Binary::Nextafter => Expected::Exact(match (x.partial_cmp(&y), x.to_bits().cast_signed()) {
                        (None, _) => $type::NAN,
                        (Some(std::cmp::Ordering::Equal), _) => y,
                        (Some(_), 0 | $signed::MIN) => $type::from_bits(1).copysign(y),
                        // For numbers of one sign, the number with the larger bit pattern is farther from 0.
                        (Some(order), bits) => {
                            let away = (order == std::cmp::Ordering::Less) == (x > 0.0);
                            $type::from_bits(if away { bits + 1 } else { bits - 1 }.cast_unsigned())
                        }
                    }),
                    // The bounds that are listed for `logit` are not for this function. Its kernel subtracts two logarithms in the element
                    // type, which may be nearly equal.
                    Binary::LogitWithin => {
                        let exact = real_binary(op, x.into(), y.into(), |x| f64::from(x as $type));
                        Expected::Near { exact, ulps: 4.0, absolute: 4.0 * f64::from($type::EPSILON) }
                    }
                    // Two large terms, with q + k just below and just above 0, may cancel. The oracle itself adds forty rounded terms.
                    Binary::Zeta => {
                        let (s, q) = (f64::from(x), f64::from(y));
                        let exact = real_binary(op, s, q, |x| x);
                        let largest = if q < 0.0 { (q - q.round()).abs().powf(-s) } else { exact };
                        expected(op.name(), exact, 16.0 * f64::EPSILON * largest)
                    }
                    // It is unspecified which of 0 and -0 counts as larger.
                    Binary::Fmax | Binary::Fmin => {
                        Expected::Unsigned(real_binary(op, x.into(), y.into(), |x| x) as $type)
                    }
                    _ => expected(op.name(), real_binary(op, x.into(), y.into(), |x| f64::from(x as $type)), 0.0),
                })
            }
        }
    )*};
}

floats!(f32 i32, f64 i64);

/// Returns the allowed results of the operation `name`: `exact` with the operation's bounds on the error, in ulp. An operation without
/// bounds must be exact, unless its kernel rounds twice. In f64, the error of the oracle is added to the bounds.
fn expected<T: Oracle>(name: &str, exact: f64, absolute: f64) -> Expected<T> {
    let single = T::DTYPE == DType::F32;
    let ulps = match bounds(name) {
        Some((f32, f64)) => {
            if single {
                f32
            } else {
                f64 + 4.0
            }
        }
        // The kernels of these operations round twice.
        None if matches!(name, "hardsigmoid" | "floor_divide" | "pow_minus_half") => 2.0,
        None => return Expected::Exact(T::from_f64(exact)),
    };
    Expected::Near { exact, ulps, absolute }
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Oracle for $type {
            fn unit(_: f64) -> f64 {
                0.0
            }

            fn of_one(op: Unary, x: $type) -> Option<Expected<$type>> {
                whole_unary(op, x.into()).map(|exact| Expected::Exact(exact as $type))
            }

            fn of_two(op: Binary, x: $type, y: $type) -> Option<Expected<$type>> {
                whole_binary(op, x.into(), y.into(), $type::BITS.into()).map(|exact| Expected::Exact(exact as $type))
            }
        }
    )*};
}

integers!(i64, u8);

/// Computes an operation on one integer in 128 bits, where no result overflows. Returns `None` if integers do not have the operation.
fn whole_unary(op: Unary, x: i128) -> Option<i128> {
    Some(match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => x.signum(),
        Unary::Square => x * x,
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => x,
        Unary::Relu => x.max(0),
        Unary::Not => -1 - x,
        _ => return None,
    })
}

/// Computes an operation on two integers of `bits` bits, in 128 bits. If the result overflows the type of `bits` bits, callers use only the
/// low `bits` bits. Returns `None` if integers do not have the operation.
fn whole_binary(op: Binary, x: i128, y: i128, bits: i128) -> Option<i128> {
    // Divides and rounds down.
    let floor = |x: i128, y: i128| if y < 0 { (-x).div_euclid(-y) } else { x.div_euclid(y) };
    Some(match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Pow if y < 0 => match x {
            1 => 1,
            -1 => {
                if y % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        },
        Binary::Pow => (0..i128::BITS).rev().fold(1i128, |power, bit| {
            let square = power.wrapping_mul(power);
            if y >> bit & 1 == 1 { square.wrapping_mul(x) } else { square }
        }),
        Binary::Maximum | Binary::Fmax => x.max(y),
        Binary::Minimum | Binary::Fmin => x.min(y),
        Binary::Fmod => x - x / y * y,
        Binary::Remainder => x - floor(x, y) * y,
        Binary::FloorDivide => floor(x, y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::ShiftLeft => {
            if (0..bits).contains(&y) {
                x << y
            } else {
                0
            }
        }
        Binary::ShiftRight => {
            if (0..bits).contains(&y) {
                x >> y
            } else {
                -i128::from(x < 0)
            }
        }
        Binary::Gcd => gcd(x, y),
        Binary::Lcm => {
            if x == 0 && y == 0 {
                0
            } else {
                lcm(x, y)
            }
        }
        _ => return None,
    })
}

fn gcd(x: i128, y: i128) -> i128 {
    if y == 0 { x.abs() } else { gcd(y, x % y) }
}

/// Returns the least common multiple. If it wraps around in 64 bits and becomes negative, its sign is removed.
fn lcm(x: i128, y: i128) -> i128 {
    let product = (x / gcd(x, y) * y) as i64;
    product.wrapping_abs().into()
}

impl Oracle for bool {
    fn unit(_: f64) -> f64 {
        0.0
    }

    fn of_one(op: Unary, x: bool) -> Option<Expected<bool>> {
        (op == Unary::Not).then_some(Expected::Exact(!x))
    }

    fn of_two(op: Binary, x: bool, y: bool) -> Option<Expected<bool>> {
        Some(Expected::Exact(match op {
            Binary::Add | Binary::Or | Binary::Maximum | Binary::Fmax => x || y,
            Binary::Mul | Binary::And | Binary::Minimum | Binary::Fmin => x && y,
            Binary::Xor => x != y,
            _ => return None,
        }))
    }
}
