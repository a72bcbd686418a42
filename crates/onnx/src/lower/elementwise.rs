//! Translates elementwise functions of two operands, comparisons and selection.

use wengert_tensor::{Binary, Compare, Float};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::{Attribute, ValueId};

impl<T: Float> Lowering<T> {
    /// Translates a function of two operands, or returns an error if the function has no form in ONNX.
    pub(super) fn binary(&mut self, op: Binary, x: ValueId, y: ValueId) -> Result<ValueId, Error> {
        if let Some(operator) = operator(op) {
            return Ok(self.elementwise(operator, &[x, y]));
        }
        Ok(match op {
            Binary::Fmax => self.extremum_ignoring_nan("Max", x, y),
            Binary::Fmin => self.extremum_ignoring_nan("Min", x, y),
            Binary::Fmod => self.fmod(x, y),
            Binary::Remainder => self.remainder(x, y),
            Binary::FloorDivide => self.floor_divide(x, y),
            Binary::Prelu => {
                let (zero, product) = (self.number(0.0), self.elementwise("Mul", &[x, y]));
                let is_positive = self.predicate("Greater", &[x, zero]);
                self.elementwise("Where", &[is_positive, x, product])
            }
            Binary::LogitWithin => {
                let one = self.number(1.0);
                let largest = self.elementwise("Sub", &[one, y]);
                let (is_below, smaller) = (self.predicate("Less", &[x, y]), self.elementwise("Min", &[x, largest]));
                // Clamps x to the bounds y and 1 - y. The lower bound is tested first: an x below y becomes y, even if y is above 1 - y.
                let inside = self.elementwise("Where", &[is_below, y, smaller]);
                self.log_odds(inside)
            }
            Binary::Xlogy => {
                let log = self.elementwise("Log", &[y]);
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
        let truth = self.predicate(operator, &[x, y]);
        let truth = if op == Compare::Ne { self.predicate("Not", &[truth]) } else { truth };
        Ok(self.mask_of_bool(truth))
    }

    /// Returns x where `mask` is not 0, and y elsewhere.
    pub(super) fn select(&mut self, mask: ValueId, x: ValueId, y: ValueId) -> ValueId {
        let truth = self.bool_of_mask(mask);
        self.elementwise("Where", &[truth, x, y])
    }

    /// Returns the larger (`Max`) or smaller (`Min`) operand. If one operand is NaN, returns the other one.
    fn extremum_ignoring_nan(&mut self, operator: &'static str, x: ValueId, y: ValueId) -> ValueId {
        let [x_is_nan, y_is_nan] = [x, y].map(|operand| self.predicate("IsNaN", &[operand]));
        let chosen = self.elementwise(operator, &[x, y]);
        let unless_y = self.elementwise("Where", &[y_is_nan, x, chosen]);
        self.elementwise("Where", &[x_is_nan, y, unless_y])
    }

    /// Returns the remainder of x / y that has the sign of x.
    fn fmod(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.elementwise_with("Mod", &[x, y], vec![("fmod", Attribute::Integer(1))])
    }

    /// Returns the remainder of x / y that has the sign of y.
    fn remainder(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let remainder = self.fmod(x, y);
        let adjusted = self.elementwise("Add", &[remainder, y]);
        let differs = self.signs_differ(remainder, y);
        self.elementwise("Where", &[differs, adjusted, remainder])
    }

    /// Returns the largest integer up to x / y, or x / y where y is 0.
    fn floor_divide(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let remainder = self.fmod(x, y);
        let multiple = self.elementwise("Sub", &[x, remainder]);
        let quotient = self.elementwise("Div", &[multiple, y]);
        // x - `remainder` is a multiple of y up to rounding, so the integer nearest to the quotient is x / y rounded
        // towards 0.
        let towards_zero = self.elementwise("Round", &[quotient]);
        let (one, differs) = (self.number(1.0), self.signs_differ(remainder, y));
        let below = self.elementwise("Sub", &[towards_zero, one]);
        let floor = self.elementwise("Where", &[differs, below, towards_zero]);
        let (zero, ratio) = (self.number(0.0), self.elementwise("Div", &[x, y]));
        let is_zero = self.predicate("Equal", &[y, zero]);
        self.elementwise("Where", &[is_zero, ratio, floor])
    }

    /// Returns truth values: true where one operand is above 0 and the other below 0.
    fn signs_differ(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let [sign, other] = [x, y].map(|operand| self.elementwise("Sign", &[operand]));
        let (product, zero) = (self.elementwise("Mul", &[sign, other]), self.number(0.0));
        self.predicate("Less", &[product, zero])
    }

    /// Returns x times `log`, and 0 where x is 0 and y is not NaN.
    fn times_log(&mut self, x: ValueId, y: ValueId, log: ValueId) -> ValueId {
        let (zero, product) = (self.number(0.0), self.elementwise("Mul", &[x, log]));
        let (is_zero, is_nan) = (self.predicate("Equal", &[x, zero]), self.predicate("IsNaN", &[y]));
        let is_number = self.predicate("Not", &[is_nan]);
        let vanishes = self.predicate("And", &[is_zero, is_number]);
        self.elementwise("Where", &[vanishes, zero, product])
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
