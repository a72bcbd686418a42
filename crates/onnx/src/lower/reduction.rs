//! Translates reductions, variances, norms and cumulative sums.

use wengert_tensor::{Float, Reduction, Shape};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::{Attribute, ValueId};

impl<T: Float> Lowering<T> {
    /// Translates a reduction to `shape`, over the dimensions in which the shapes differ. Returns an error if the
    /// reduction has no form in ONNX.
    pub(super) fn reduction(&mut self, op: Reduction, x: ValueId, shape: &Shape) -> Result<ValueId, Error> {
        let operator = match op {
            Reduction::Sum => "ReduceSum",
            Reduction::Prod => "ReduceProd",
            Reduction::Amax | Reduction::Max => "ReduceMax",
            Reduction::Amin | Reduction::Min => "ReduceMin",
            _ => return Err(self.unsupported()),
        };
        let x_shape = self.shape(x);
        let axes: Vec<usize> = (0..x_shape.rank()).filter(|&axis| x_shape[axis] != shape[axis]).collect();
        Ok(self.reduce(operator, x, &axes))
    }

    /// Reduces over `axes`, which the result keeps with size 1.
    fn reduce(&mut self, operator: &'static str, x: ValueId, axes: &[usize]) -> ValueId {
        // With an empty list of axes, the operator would reduce all dimensions.
        if axes.is_empty() {
            return x;
        }
        let shape = self.shape(x).with_ones(axes);
        let axes = self.integers(axes.iter().map(|&axis| axis as i64));
        self.node_with(operator, &[x, axes], vec![("keepdims", Attribute::Integer(1))], shape)
    }

    /// Returns the variance over `axes`. The divisor is the number of elements minus `correction`, but not below 0.
    pub(super) fn variance(&mut self, x: ValueId, axes: &[usize], correction: f64) -> ValueId {
        let divisor = (self.shape(x).numel_over(axes) as f64 - correction).max(0.0);
        let mean = self.reduce("ReduceMean", x, axes);
        let deviation = self.elementwise("Sub", &[x, mean]);
        let square = self.elementwise("Mul", &[deviation, deviation]);
        let (sum, divisor) = (self.reduce("ReduceSum", square, axes), self.number(divisor));
        self.elementwise("Div", &[sum, divisor])
    }

    /// Returns the `ord`-norm over `axes`.
    pub(super) fn norm(&mut self, x: ValueId, ord: f64, axes: &[usize]) -> ValueId {
        let size = self.elementwise("Abs", &[x]);
        if ord == f64::INFINITY {
            return self.reduce("ReduceMax", size, axes);
        }
        if ord == f64::NEG_INFINITY {
            return self.reduce("ReduceMin", size, axes);
        }
        if ord == 0.0 {
            let zero = self.number(0.0);
            let is_zero = self.predicate("Equal", &[x, zero]);
            let truth = self.predicate("Not", &[is_zero]);
            let mask = self.mask_of_bool(truth);
            return self.reduce("ReduceSum", mask, axes);
        }
        if axes.is_empty() {
            return size;
        }
        if ord == 1.0 || ord == 2.0 {
            return self.reduce(if ord == 1.0 { "ReduceL1" } else { "ReduceL2" }, x, axes);
        }
        let [exponent, inverse] = [ord, 1.0 / ord].map(|number| self.number(number));
        let powers = self.elementwise("Pow", &[size, exponent]);
        let sum = self.reduce("ReduceSum", powers, axes);
        self.elementwise("Pow", &[sum, inverse])
    }

    /// Returns the cumulative sum along `axis`.
    pub(super) fn cumulative_sum(&mut self, x: ValueId, axis: usize) -> ValueId {
        if self.shape(x).rank() == 0 {
            return x;
        }
        let axis = self.integer(axis as i64);
        self.node("CumSum", &[x, axis], self.shape(x))
    }
}
