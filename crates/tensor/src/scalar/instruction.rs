//! The elementwise operations by name. What they compute is in [`block`](crate::kernel::elementwise::block), what they mean to a user in
//! [`ops`](crate::ops), what their derivatives are is none of this crate's business.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $($(#[$variant_doc])* $variant),*
        }

        impl $kind {
            /// Every one of them.
            pub const ALL: &[$kind] = &[$($kind::$variant),*];

            /// PyTorch's name.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name),*
                }
            }
        }
    };
}

names! {
    /// Elementwise functions of one operand.
    Unary {
        /// -x
        Neg = "neg",
        /// |x|
        Abs = "abs",
        /// -1, 0 or 1; 0 at NaN.
        Sign = "sign",
        /// 1/x
        Reciprocal = "reciprocal",
        /// x²
        Square = "square",
        /// √x
        Sqrt = "sqrt",
        /// √x with derivative 0 at 0, where that of [`Sqrt`](Unary::Sqrt) is infinite: PyTorch's convention for `std`.
        SqrtFlat = "sqrt_flat",
        /// Largest integer not above x.
        Floor = "floor",
        /// Smallest integer not below x.
        Ceil = "ceil",
        /// Nearest integer, ties to even.
        Round = "round",
        /// Integer part.
        Trunc = "trunc",
        /// eˣ
        Exp = "exp",
        /// 2ˣ
        Exp2 = "exp2",
        /// eˣ - 1
        Expm1 = "expm1",
        /// ln x
        Log = "log",
        /// log₂ x
        Log2 = "log2",
        /// log₁₀ x
        Log10 = "log10",
        /// ln(1 + x)
        Log1p = "log1p",
        /// sin x
        Sin = "sin",
        /// cos x
        Cos = "cos",
        /// tan x
        Tan = "tan",
        /// Inverse sine.
        Asin = "asin",
        /// Inverse cosine.
        Acos = "acos",
        /// Inverse tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Inverse hyperbolic sine.
        Asinh = "asinh",
        /// Inverse hyperbolic cosine.
        Acosh = "acosh",
        /// Inverse hyperbolic tangent.
        Atanh = "atanh",
        /// 1/(1 + e⁻ˣ)
        Sigmoid = "sigmoid",
        /// max(x, 0)
        Relu = "relu",
        /// min(max(x + 3, 0), 6) / 6. A primitive because PyTorch's has one derivative and no second.
        Hardsigmoid = "hardsigmoid",
        /// sin(πx) / (πx), 1 at 0. A primitive because its derivative at 0 is no limit of the quotient's formula.
        Sinc = "sinc",
        /// ln(x / (1 - x)). A primitive because its derivative is NaN outside [0, 1], where the quotient's is not.
        Logit = "logit",
        /// Error function.
        Erf = "erf",
        /// 1 - erf x
        Erfc = "erfc",
        /// Φ(x), the normal distribution function. A primitive because its exponential takes x²/2: erfc would take the square
        /// of x/√2, whose rounding grows with it.
        Ndtr = "ndtr",
        /// Inverse of erf.
        Erfinv = "erfinv",
        /// ln |Γ(x)|
        Lgamma = "lgamma",
        /// Derivative of ln Γ.
        Digamma = "digamma",
        /// Derivative of digamma.
        Trigamma = "trigamma",
        /// Not: logical for bool, bitwise for integers.
        Not = "bitwise_not",
    }
}

/// What a function that is no operation of the processor costs, in additions.
const EXPENSIVE: usize = 4;

impl Unary {
    /// What it costs for an element, in additions.
    pub(crate) fn cost(self) -> usize {
        if self.is_cheap() { 1 } else { EXPENSIVE }
    }

    /// Whether it is an operation of the processor, or a few: as quick as an addition, or nearly. The others are polynomials or
    /// longer.
    pub fn is_cheap(self) -> bool {
        use Unary::{
            Abs, Ceil, Floor, Hardsigmoid, Neg, Not, Reciprocal, Relu, Round, Sign, Sqrt, SqrtFlat, Square, Trunc,
        };
        matches!(
            self,
            Abs | Ceil
                | Floor
                | Hardsigmoid
                | Neg
                | Not
                | Reciprocal
                | Relu
                | Round
                | Sign
                | Sqrt
                | SqrtFlat
                | Square
                | Trunc
        )
    }
}

names! {
    /// Elementwise functions of two operands of one shape.
    Binary {
        /// x + y; "or" for bool.
        Add = "add",
        /// x - y
        Sub = "sub",
        /// x y; "and" for bool.
        Mul = "mul",
        /// x / y
        Div = "div",
        /// xʸ
        Pow = "pow",
        /// The larger; NaN if either is NaN.
        Maximum = "maximum",
        /// The smaller; NaN if either is NaN.
        Minimum = "minimum",
        /// The larger; ignores one NaN.
        Fmax = "fmax",
        /// The smaller; ignores one NaN.
        Fmin = "fmin",
        /// Angle of the point (y, x), first operand y.
        Atan2 = "atan2",
        /// √(x² + y²)
        Hypot = "hypot",
        /// |x| with the sign of y.
        Copysign = "copysign",
        /// Remainder with the sign of x.
        Fmod = "fmod",
        /// Remainder with the sign of y.
        Remainder = "remainder",
        /// ⌊x / y⌋
        FloorDivide = "floor_divide",
        /// x above 0, x y elsewhere. A primitive because PyTorch's second derivatives at 0 follow from no formula.
        Prelu = "prelu",
        /// ln(x / (1 - x)) of x brought into [y, 1 - y].
        LogitWithin = "logit",
        /// x ln y, 0 at x = 0. A primitive because 0 · ∞ is not 0.
        Xlogy = "xlogy",
        /// x ln(1 + y), 0 at x = 0.
        Xlog1py = "xlog1py",
        /// The next number after x toward y.
        Nextafter = "nextafter",
        /// Hurwitz zeta function ζ(x, y).
        Zeta = "zeta",
        /// And: logical for bool, bitwise for integers.
        And = "bitwise_and",
        /// Or: logical for bool, bitwise for integers.
        Or = "bitwise_or",
        /// Exclusive or: logical for bool, bitwise for integers.
        Xor = "bitwise_xor",
        /// x 2ʸ for integers.
        ShiftLeft = "bitwise_left_shift",
        /// ⌊x / 2ʸ⌋ for integers.
        ShiftRight = "bitwise_right_shift",
        /// Greatest common divisor.
        Gcd = "gcd",
        /// Least common multiple.
        Lcm = "lcm",
    }
}

impl Binary {
    /// As [`Unary::cost`].
    pub(crate) fn cost(self) -> usize {
        if self.is_cheap() { 1 } else { EXPENSIVE }
    }

    /// As [`Unary::is_cheap`].
    pub fn is_cheap(self) -> bool {
        use Binary::{Add, And, Copysign, Div, Fmax, Fmin, Maximum, Minimum, Mul, Or, Prelu, Sub, Xor};
        matches!(self, Add | And | Copysign | Div | Fmax | Fmin | Maximum | Minimum | Mul | Or | Prelu | Sub | Xor)
    }
}

names! {
    /// Comparisons of two operands of one shape. A NaN compares unequal to everything.
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

names! {
    /// Reductions over some dimensions.
    Reduction {
        /// The sum; 0 of nothing.
        Sum = "sum",
        /// The product; 1 of nothing.
        Prod = "prod",
        /// The largest; NaN if any is NaN, and then the derivative is NaN everywhere.
        Amax = "amax",
        /// The smallest; NaN if any is NaN, and then the derivative is NaN everywhere.
        Amin = "amin",
        /// As [`Amax`](Reduction::Amax), but a NaN ties with other NaNs in the derivative.
        Max = "max",
        /// As [`Amin`](Reduction::Amin), but a NaN ties with other NaNs in the derivative.
        Min = "min",
    }
}

/// Number of a value within a program: inputs first, then the results of the instructions.
pub type Value = u32;

/// One instruction of a [`Program`](crate::program::Program). A comparison gives 0 and 1; a selection takes what is not 0 as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A function of one value.
    Unary(Unary, Value),
    /// A function of two.
    Binary(Binary, Value, Value),
    /// A comparison, as 0 and 1.
    Compare(Compare, Value, Value),
    /// The second where the first is not 0, the third elsewhere.
    Select(Value, Value, Value),
    /// The reduction of each row: one number for a row, which instructions after it read as if repeated over the row.
    Reduce(Reduction, Value),
}

impl Instruction {
    /// The values it reads.
    pub fn operands(&self) -> impl Iterator<Item = Value> + use<> {
        let (count, operands) = match *self {
            Instruction::Unary(_, x) | Instruction::Reduce(_, x) => (1, [x, 0, 0]),
            Instruction::Binary(_, x, y) | Instruction::Compare(_, x, y) => (2, [x, y, 0]),
            Instruction::Select(mask, x, y) => (3, [mask, x, y]),
        };
        operands.into_iter().take(count)
    }

    /// What it costs for an element, in additions.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Instruction::Unary(op, _) => op.cost(),
            Instruction::Binary(op, ..) => op.cost(),
            Instruction::Compare(..) | Instruction::Select(..) | Instruction::Reduce(..) => 1,
        }
    }
}
