//! Translates elementwise functions of two operands, comparisons and selection.

use wengert_tensor::{Binary, Compare, Float};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::{Attribute, ValueId};

impl<T: Float> Lowering<T> {
    /// Translates a function of two operands, or returns an error if the function has no form in ONNX.
    pub(super) fn binary(&mut self, op: Binary, x: ValueId, y: ValueId) -> Result<ValueId, Error> {
        if let Some(operator) = operator(op) {
            return Ok(self.map(operator, &[x, y]));
        }
        Ok(match op {
            Binary::Fmax => self.ignoring_nan("Max", x, y),
            Binary::Fmin => self.ignoring_nan("Min", x, y),
            Binary::Fmod => self.fmod(x, y),
            Binary::Remainder => self.remainder(x, y),
            Binary::FloorDivide => self.floor_divide(x, y),
            Binary::Prelu => {
                let (zero, product) = (self.number(0.0), self.map("Mul", &[x, y]));
                let is_positive = self.test("Greater", &[x, zero]);
                self.map("Where", &[is_positive, x, product])
            }
            Binary::LogitWithin => {
                let one = self.number(1.0);
                let largest = self.map("Sub", &[one, y]);
                let (is_below, smaller) = (self.test("Less", &[x, y]), self.map("Min", &[x, largest]));
                // Clamps x to the bounds y and 1 - y. The lower bound is tested first: an x below y becomes y, even if y is above 1 - y.
                let inside = self.map("Where", &[is_below, y, smaller]);
                self.log_odds(inside)
            }
            Binary::Xlogy => {
                let log = self.map("Log", &[y]);
                self.times_log(x, y, log)
            }
            Binary::Xlog1py => {
                let log = self.log1p(y);
                self.times_log(x, y, log)
            }
            _ => return Err(self.unsupported()),
        })
    }

    /// Translates a comparison to a mask of zeros and ones, or returns an error if the comparison has no form in ONNX.
    pub(super) fn compare(&mut self, op: Compare, x: ValueId, y: ValueId) -> Result<ValueId, Error> {
        let operator = match op {
            Compare::Eq | Compare::Ne => "Equal",
            Compare::Lt => "Less",
            Compare::Le => "LessOrEqual",
            Compare::Gt => "Greater",
            Compare::Ge => "GreaterOrEqual",
            _ => return Err(self.unsupported()),
        };
        let truth = self.test(operator, &[x, y]);
        let truth = if op == Compare::Ne { self.test("Not", &[truth]) } else { truth };
        Ok(self.mask(truth))
    }

    /// Returns x where `mask` is not 0, and y elsewhere.
    pub(super) fn select(&mut self, mask: ValueId, x: ValueId, y: ValueId) -> ValueId {
        let truth = self.truth(mask);
        self.map("Where", &[truth, x, y])
    }

    /// Returns the larger (`Max`) or smaller (`Min`) operand. If one operand is NaN, returns the other one.
    fn ignoring_nan(&mut self, operator: &'static str, x: ValueId, y: ValueId) -> ValueId {
        let [x_is_nan, y_is_nan] = [x, y].map(|operand| self.test("IsNaN", &[operand]));
        let chosen = self.map(operator, &[x, y]);
        let unless_y = self.map("Where", &[y_is_nan, x, chosen]);
        self.map("Where", &[x_is_nan, y, unless_y])
    }

    /// Returns the remainder of x / y that has the sign of x.
    fn fmod(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.map_with("Mod", &[x, y], vec![("fmod", Attribute::Integer(1))])
    }

    /// Returns the remainder of x / y that has the sign of y.
    fn remainder(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let remainder = self.fmod(x, y);
        let moved = self.map("Add", &[remainder, y]);
        let differs = self.signs_differ(remainder, y);
        self.map("Where", &[differs, moved, remainder])
    }

    /// Returns the largest integer up to x / y, or x / y where y is 0.
    fn floor_divide(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let remainder = self.fmod(x, y);
        let multiple = self.map("Sub", &[x, remainder]);
        let quotient = self.map("Div", &[multiple, y]);
        // x - `remainder` is a multiple of y up to rounding, so the integer nearest to the quotient is x / y rounded
        // towards 0.
        let towards_zero = self.map("Round", &[quotient]);
        let (one, differs) = (self.number(1.0), self.signs_differ(remainder, y));
        let below = self.map("Sub", &[towards_zero, one]);
        let floor = self.map("Where", &[differs, below, towards_zero]);
        let (zero, ratio) = (self.number(0.0), self.map("Div", &[x, y]));
        let is_zero = self.test("Equal", &[y, zero]);
        self.map("Where", &[is_zero, ratio, floor])
    }

    /// Returns truth values: true where one operand is above 0 and the other below 0.
    fn signs_differ(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let [sign, other] = [x, y].map(|operand| self.map("Sign", &[operand]));
        let (product, zero) = (self.map("Mul", &[sign, other]), self.number(0.0));
        self.test("Less", &[product, zero])
    }

    /// Returns x times `log`, and 0 where x is 0 and y is not NaN.
    fn times_log(&mut self, x: ValueId, y: ValueId, log: ValueId) -> ValueId {
        let (zero, product) = (self.number(0.0), self.map("Mul", &[x, log]));
        let (is_zero, is_nan) = (self.test("Equal", &[x, zero]), self.test("IsNaN", &[y]));
        let is_number = self.test("Not", &[is_nan]);
        let vanishes = self.test("And", &[is_zero, is_number]);
        self.map("Where", &[vanishes, zero, product])
    }
}

/// Returns the operator that computes exactly this function, if there is one.
fn operator(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => "Add",
        Binary::Sub => "Sub",
        Binary::Mul => "Mul",
        Binary::Div => "Div",
        Binary::Pow => "Pow",
        Binary::Maximum => "Max",
        Binary::Minimum => "Min",
        _ => return None,
    })
}
