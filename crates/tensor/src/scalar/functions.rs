//! The names of the elementwise operations, each with its cost. Comparisons have names only: their cost is in
//! [`Instruction::cost`](crate::scalar::instruction::Instruction::cost). [`kernel::elementwise`](crate::kernel::elementwise) computes the
//! operations, and [`ops`](crate::ops) has their documentation for users. This crate does not define derivatives.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        // The enum is stored as a `u32`, like the other parameters of a recorded operation. The compiler can then compare two operations
        // without a branch.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $($(#[$variant_doc])* $variant),*
        }

        impl $kind {
            /// All variants.
            pub const ALL: &[$kind] = &[$($kind::$variant),*];

            /// Returns PyTorch's name. Functions that PyTorch lacks, for example `sqrt_flat`, have a name of this crate.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name),*
                }
            }
        }
    };
}

pub(crate) use names;

/// The cost of a function that takes a few processor instructions. All costs are relative to one addition per element, with operands in the
/// first-level cache. Measured on Cascade Lake (AVX-512).
const CHEAP: usize = 1;

/// The cost of a division, in additions.
const DIVISION: usize = 2;

/// The cost, in additions, of an exponential, and of the normal distribution function. An exponential is computed as a polynomial of a
/// reduced argument.
const EXPONENTIAL: usize = 4;

/// The cost of every other function, in additions. Most of these functions take longer than an exponential.
const EXPENSIVE: usize = 8;

/// Defines an enum of names, each with a cost.
macro_rules! functions {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal, $cost:ident);* $(;)? }) => {
        names! {
            $(#[$doc])*
            $kind { $($(#[$variant_doc])* $variant = $name),* }
        }

        impl $kind {
            /// Returns the cost per element, in additions.
            pub(crate) fn cost(self) -> usize {
                match self {
                    $($kind::$variant => $cost),*
                }
            }
        }
    };
}

functions! {
    /// Elementwise functions of one operand.
    Unary {
        /// -x
        Neg = "neg", CHEAP;
        /// |x|
        Abs = "abs", CHEAP;
        /// -1, 0 or 1; 0 at NaN.
        Sign = "sign", CHEAP;
        /// 1/x
        Reciprocal = "reciprocal", CHEAP;
        /// x²
        Square = "square", CHEAP;
        /// √x
        Sqrt = "sqrt", CHEAP;
        /// √x with derivative 0 at 0, where [`Sqrt`](Unary::Sqrt) has an infinite derivative. PyTorch uses this convention for `std`.
        SqrtFlat = "sqrt_flat", CHEAP;
        /// √x with the derivative of the power x^(1/2), which at -0 differs from the derivative of [`Sqrt`](Unary::Sqrt). PyTorch
        /// computes a power as a root if its exponent is the plain number 1/2 or -1/2. At -0 and -∞, the root and the power differ.
        PowHalf = "pow_half", CHEAP;
        /// 1/√x with the derivative of the power x^(-1/2); see [`PowHalf`](Unary::PowHalf).
        PowMinusHalf = "pow_minus_half", CHEAP;
        /// Largest integer not above x.
        Floor = "floor", CHEAP;
        /// Smallest integer not below x.
        Ceil = "ceil", CHEAP;
        /// Nearest integer, ties to even.
        Round = "round", CHEAP;
        /// Integer part.
        Trunc = "trunc", CHEAP;
        /// eˣ
        Exp = "exp", EXPONENTIAL;
        /// 2ˣ
        Exp2 = "exp2", EXPONENTIAL;
        /// eˣ - 1
        Expm1 = "expm1", EXPENSIVE;
        /// ln x
        Log = "log", EXPENSIVE;
        /// log₂ x
        Log2 = "log2", EXPENSIVE;
        /// log₁₀ x
        Log10 = "log10", EXPENSIVE;
        /// ln(1 + x)
        Log1p = "log1p", EXPENSIVE;
        /// sin x
        Sin = "sin", EXPENSIVE;
        /// cos x
        Cos = "cos", EXPENSIVE;
        /// tan x
        Tan = "tan", EXPENSIVE;
        /// Inverse sine.
        Asin = "asin", EXPENSIVE;
        /// Inverse cosine.
        Acos = "acos", EXPENSIVE;
        /// Inverse tangent.
        Atan = "atan", EXPENSIVE;
        /// Hyperbolic sine.
        Sinh = "sinh", EXPENSIVE;
        /// Hyperbolic cosine.
        Cosh = "cosh", EXPENSIVE;
        /// Hyperbolic tangent.
        Tanh = "tanh", EXPENSIVE;
        /// Inverse hyperbolic sine.
        Asinh = "asinh", EXPENSIVE;
        /// Inverse hyperbolic cosine.
        Acosh = "acosh", EXPENSIVE;
        /// Inverse hyperbolic tangent.
        Atanh = "atanh", EXPENSIVE;
        /// 1/(1 + e⁻ˣ)
        Sigmoid = "sigmoid", EXPENSIVE;
        /// max(x, 0)
        Relu = "relu", CHEAP;
        /// min(max(x + 3, 0), 6) / 6. This is a primitive because PyTorch defines only its first derivative.
        Hardsigmoid = "hardsigmoid", CHEAP;
        /// sin(πx) / (πx), and 1 at 0. This is a primitive because the quotient's formula gives no derivative at 0.
        Sinc = "sinc", EXPENSIVE;
        /// ln(x / (1 - x)). This is a primitive because its derivative must be NaN outside [0, 1]. The formula's derivative is not NaN
        /// there.
        Logit = "logit", EXPENSIVE;
        /// Error function.
        Erf = "erf", EXPENSIVE;
        /// 1 - erf x
        Erfc = "erfc", EXPENSIVE;
        /// Φ(x), the normal distribution function. This is a primitive because its exponential uses x²/2. A formula with erfc would use the
        /// square of the rounded x/√2, whose error grows with x.
        Ndtr = "ndtr", EXPONENTIAL;
        /// Inverse of erf.
        Erfinv = "erfinv", EXPENSIVE;
        /// ln |Γ(x)|
        Lgamma = "lgamma", EXPENSIVE;
        /// Derivative of ln Γ.
        Digamma = "digamma", EXPENSIVE;
        /// Derivative of digamma.
        Trigamma = "trigamma", EXPENSIVE;
        /// The complement: logical for bool, bitwise for integers.
        Not = "bitwise_not", CHEAP;
    }
}

functions! {
    /// Elementwise functions of two operands x and y of the same shape.
    Binary {
        /// x + y; "or" for bool.
        Add = "add", CHEAP;
        /// x - y
        Sub = "sub", CHEAP;
        /// x y; "and" for bool.
        Mul = "mul", CHEAP;
        /// x / y
        Div = "div", DIVISION;
        /// xʸ
        Pow = "pow", EXPENSIVE;
        /// The larger operand; NaN if either is NaN.
        Maximum = "maximum", CHEAP;
        /// The smaller operand; NaN if either is NaN.
        Minimum = "minimum", CHEAP;
        /// The larger operand. If only one operand is NaN, the other operand.
        Fmax = "fmax", CHEAP;
        /// The smaller operand. If only one operand is NaN, the other operand.
        Fmin = "fmin", CHEAP;
        /// The angle of the point (y, x): the first operand is the ordinate.
        Atan2 = "atan2", EXPENSIVE;
        /// √(x² + y²)
        Hypot = "hypot", EXPENSIVE;
        /// |x| with the sign of y.
        Copysign = "copysign", CHEAP;
        /// Remainder of x / y with the sign of x.
        Fmod = "fmod", EXPENSIVE;
        /// Remainder of x / y with the sign of y.
        Remainder = "remainder", EXPENSIVE;
        /// ⌊x / y⌋
        FloorDivide = "floor_divide", EXPENSIVE;
        /// x where x > 0, and x y elsewhere. This is a primitive because no formula gives PyTorch's second derivatives at 0.
        Prelu = "prelu", CHEAP;
        /// ln(x / (1 - x)), after x is clamped to [y, 1 - y].
        LogitWithin = "logit", EXPENSIVE;
        /// x ln y, and 0 at x = 0 unless y is NaN. This is a primitive because 0 · ∞ is NaN in arithmetic.
        Xlogy = "xlogy", EXPENSIVE;
        /// x ln(1 + y), and 0 at x = 0 unless y is NaN.
        Xlog1py = "xlog1py", EXPENSIVE;
        /// The next number after x toward y.
        Nextafter = "nextafter", EXPENSIVE;
        /// Hurwitz zeta function ζ(x, y).
        Zeta = "zeta", EXPENSIVE;
        /// And: logical for bool, bitwise for integers.
        And = "bitwise_and", CHEAP;
        /// Or: logical for bool, bitwise for integers.
        Or = "bitwise_or", CHEAP;
        /// Exclusive or: logical for bool, bitwise for integers.
        Xor = "bitwise_xor", CHEAP;
        /// x 2ʸ for integers, wrapping. If y is negative, all bits are shifted out.
        ShiftLeft = "bitwise_left_shift", EXPENSIVE;
        /// ⌊x / 2ʸ⌋ for integers. If y is negative, all bits but the sign are shifted out.
        ShiftRight = "bitwise_right_shift", EXPENSIVE;
        /// Greatest common divisor.
        Gcd = "gcd", EXPENSIVE;
        /// Least common multiple.
        Lcm = "lcm", EXPENSIVE;
    }
}

names! {
    /// Comparisons of two operands x and y of the same shape. A NaN compares unequal to everything.
    Compare {
        /// x = y
        Eq = "eq",
        /// x ≠ y
        Ne = "ne",
        /// x < y
        Lt = "lt",
        /// x ≤ y
        Le = "le",
        /// x > y
        Gt = "gt",
        /// x ≥ y
        Ge = "ge",
    }
}
