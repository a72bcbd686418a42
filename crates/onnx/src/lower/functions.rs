//! Translates elementwise functions of one operand. Where ONNX has no operator, a formula of several operators takes its
//! place. The formulas of `expm1` and `log1p` are accurate near 0.

use std::f64::consts::{LN_2, LN_10, PI, SQRT_2};

use wengert_tensor::{Float, Unary};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::ValueId;

impl<T: Float> Lowering<T> {
    /// Translates a function of one operand, or returns an error if the function has no form in ONNX.
    pub(super) fn unary(&mut self, op: Unary, x: ValueId) -> Result<ValueId, Error> {
        if let Some(operator) = operator(op) {
            return Ok(self.elementwise(operator, &[x]));
        }
        Ok(match op {
            Unary::Square => self.elementwise("Mul", &[x, x]),
            Unary::PowMinusHalf => {
                let root = self.elementwise("Sqrt", &[x]);
                self.elementwise("Reciprocal", &[root])
            }
            Unary::Trunc => {
                let size = self.elementwise("Abs", &[x]);
                let (floor, sign) = (self.elementwise("Floor", &[size]), self.elementwise("Sign", &[x]));
                self.elementwise("Mul", &[sign, floor])
            }
            Unary::Exp2 => {
                let two = self.number(2.0);
                self.elementwise("Pow", &[two, x])
            }
            Unary::Expm1 => self.expm1(x),
            Unary::Log2 => self.log_to_base(x, LN_2),
            Unary::Log10 => self.log_to_base(x, LN_10),
            Unary::Log1p => self.log1p(x),
            // The attributes of `HardSigmoid` have 32 bits, so it would be less accurate in f64.
            Unary::Hardsigmoid => {
                let [zero, three, six] = [0.0, 3.0, 6.0].map(|number| self.number(number));
                let shifted = self.elementwise("Add", &[x, three]);
                let clamped = self.elementwise("Clip", &[shifted, zero, six]);
                self.elementwise("Div", &[clamped, six])
            }
            Unary::Sinc => {
                let [zero, one, pi] = [0.0, 1.0, PI].map(|number| self.number(number));
                let angle = self.elementwise("Mul", &[x, pi]);
                let sine = self.elementwise("Sin", &[angle]);
                let (quotient, is_zero) =
                    (self.elementwise("Div", &[sine, angle]), self.predicate("Equal", &[x, zero]));
                self.elementwise("Where", &[is_zero, one, quotient])
            }
            Unary::Logit => self.log_odds(x),
            Unary::Erfc => {
                let (one, erf) = (self.number(1.0), self.elementwise("Erf", &[x]));
                self.elementwise("Sub", &[one, erf])
            }
            Unary::Ndtr => {
                let [half, one, scale] = [0.5, 1.0, SQRT_2].map(|number| self.number(number));
                let scaled = self.elementwise("Div", &[x, scale]);
                let erf = self.elementwise("Erf", &[scaled]);
                let sum = self.elementwise("Add", &[erf, one]);
                self.elementwise("Mul", &[sum, half])
            }
            _ => return Err(self.unsupported()),
        })
    }

    /// Returns ln(x / (1 - x)).
    pub(super) fn log_odds(&mut self, x: ValueId) -> ValueId {
        let one = self.number(1.0);
        let complement = self.elementwise("Sub", &[one, x]);
        let odds = self.elementwise("Div", &[x, complement]);
        self.elementwise("Log", &[odds])
    }

    /// Returns the logarithm of x to a base b, which is ln x / ln b. The argument `ln_base` is ln b.
    fn log_to_base(&mut self, x: ValueId, ln_base: f64) -> ValueId {
        let (log, ln_base) = (self.elementwise("Log", &[x]), self.number(ln_base));
        self.elementwise("Div", &[log, ln_base])
    }

    /// Returns eˣ - 1 = tanh(x/2) (eˣ + 1), which loses no digits near 0.
    fn expm1(&mut self, x: ValueId) -> ValueId {
        let [half, one] = [0.5, 1.0].map(|number| self.number(number));
        let halved = self.elementwise("Mul", &[x, half]);
        let (tanh, exp) = (self.elementwise("Tanh", &[halved]), self.elementwise("Exp", &[x]));
        let sum = self.elementwise("Add", &[exp, one]);
        self.elementwise("Mul", &[tanh, sum])
    }

    /// Returns ln(1 + x). With u = 1 + x rounded, this is x if u = 1, ln u if u is exact, and otherwise x ln u / (u - 1). (D. Goldberg,
    /// "What every computer scientist should know about floating-point arithmetic", 1991, theorem 4.)
    pub(super) fn log1p(&mut self, x: ValueId) -> ValueId {
        let one = self.number(1.0);
        let u = self.elementwise("Add", &[x, one]);
        let (log, rounded_x) = (self.elementwise("Log", &[u]), self.elementwise("Sub", &[u, one]));
        let ratio = self.elementwise("Div", &[x, rounded_x]);
        let corrected = self.elementwise("Mul", &[log, ratio]);
        let (is_exact, is_tiny) = (self.predicate("Equal", &[rounded_x, x]), self.predicate("Equal", &[u, one]));
        let inner = self.elementwise("Where", &[is_exact, log, corrected]);
        self.elementwise("Where", &[is_tiny, x, inner])
    }
}

/// Returns the operator that computes exactly this function, if there is one.
fn operator(op: Unary) -> Option<&'static str> {
    Some(match op {
        Unary::Neg => "Neg",
        Unary::Abs => "Abs",
        Unary::Sign => "Sign",
        Unary::Reciprocal => "Reciprocal",
        Unary::Sqrt | Unary::SqrtFlat | Unary::PowHalf => "Sqrt",
        Unary::Floor => "Floor",
        Unary::Ceil => "Ceil",
        Unary::Round => "Round",
        Unary::Exp => "Exp",
        Unary::Log => "Log",
        Unary::Sin => "Sin",
        Unary::Cos => "Cos",
        Unary::Tan => "Tan",
        Unary::Asin => "Asin",
        Unary::Acos => "Acos",
        Unary::Atan => "Atan",
        Unary::Sinh => "Sinh",
        Unary::Cosh => "Cosh",
        Unary::Tanh => "Tanh",
        Unary::Asinh => "Asinh",
        Unary::Acosh => "Acosh",
        Unary::Atanh => "Atanh",
        Unary::Sigmoid => "Sigmoid",
        Unary::Relu => "Relu",
        Unary::Erf => "Erf",
        _ => return None,
    })
}
