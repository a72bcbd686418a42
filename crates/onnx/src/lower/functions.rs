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
            return Ok(self.map(operator, &[x]));
        }
        Ok(match op {
            Unary::Square => self.map("Mul", &[x, x]),
            Unary::PowMinusHalf => {
                let root = self.map("Sqrt", &[x]);
                self.map("Reciprocal", &[root])
            }
            Unary::Trunc => {
                let size = self.map("Abs", &[x]);
                let (floor, sign) = (self.map("Floor", &[size]), self.map("Sign", &[x]));
                self.map("Mul", &[sign, floor])
            }
            Unary::Exp2 => {
                let two = self.number(2.0);
                self.map("Pow", &[two, x])
            }
            Unary::Expm1 => self.expm1(x),
            Unary::Log2 => self.log_over(x, LN_2),
            Unary::Log10 => self.log_over(x, LN_10),
            Unary::Log1p => self.log1p(x),
            // The attributes of `HardSigmoid` have 32 bits, so it would be less accurate in f64.
            Unary::Hardsigmoid => {
                let [zero, three, six] = [0.0, 3.0, 6.0].map(|number| self.number(number));
                let shifted = self.map("Add", &[x, three]);
                let clamped = self.map("Clip", &[shifted, zero, six]);
                self.map("Div", &[clamped, six])
            }
            Unary::Sinc => {
                let [zero, one, pi] = [0.0, 1.0, PI].map(|number| self.number(number));
                let angle = self.map("Mul", &[x, pi]);
                let sine = self.map("Sin", &[angle]);
                let (quotient, is_zero) = (self.map("Div", &[sine, angle]), self.test("Equal", &[x, zero]));
                self.map("Where", &[is_zero, one, quotient])
            }
            Unary::Logit => self.log_odds(x),
            Unary::Erfc => {
                let (one, erf) = (self.number(1.0), self.map("Erf", &[x]));
                self.map("Sub", &[one, erf])
            }
            Unary::Ndtr => {
                let [half, one, scale] = [0.5, 1.0, SQRT_2].map(|number| self.number(number));
                let scaled = self.map("Div", &[x, scale]);
                let erf = self.map("Erf", &[scaled]);
                let sum = self.map("Add", &[erf, one]);
                self.map("Mul", &[sum, half])
            }
            _ => return Err(self.unsupported()),
        })
    }

    /// Returns ln(x / (1 - x)).
    pub(super) fn log_odds(&mut self, x: ValueId) -> ValueId {
        let one = self.number(1.0);
        let rest = self.map("Sub", &[one, x]);
        let odds = self.map("Div", &[x, rest]);
        self.map("Log", &[odds])
    }

    /// Returns the logarithm of x to a base b, which is ln x / ln b. The argument `base` is ln b.
    fn log_over(&mut self, x: ValueId, base: f64) -> ValueId {
        let (log, base) = (self.map("Log", &[x]), self.number(base));
        self.map("Div", &[log, base])
    }

    /// Returns eˣ - 1 = tanh(x/2) (eˣ + 1), which loses no digits near 0.
    fn expm1(&mut self, x: ValueId) -> ValueId {
        let [half, one] = [0.5, 1.0].map(|number| self.number(number));
        let halved = self.map("Mul", &[x, half]);
        let (tanh, exp) = (self.map("Tanh", &[halved]), self.map("Exp", &[x]));
        let sum = self.map("Add", &[exp, one]);
        self.map("Mul", &[tanh, sum])
    }

    /// Returns ln(1 + x). With u = 1 + x rounded, this is x if u = 1, ln u if u is exact, and otherwise x ln u / (u - 1). (D. Goldberg,
    /// "What every computer scientist should know about floating-point arithmetic", 1991, theorem 4.)
    pub(super) fn log1p(&mut self, x: ValueId) -> ValueId {
        let one = self.number(1.0);
        let u = self.map("Add", &[x, one]);
        let (log, back) = (self.map("Log", &[u]), self.map("Sub", &[u, one]));
        let ratio = self.map("Div", &[x, back]);
        let corrected = self.map("Mul", &[log, ratio]);
        let (is_exact, is_tiny) = (self.test("Equal", &[back, x]), self.test("Equal", &[u, one]));
        let inner = self.map("Where", &[is_exact, log, corrected]);
        self.map("Where", &[is_tiny, x, inner])
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
