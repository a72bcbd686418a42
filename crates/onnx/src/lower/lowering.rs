//! The graph under construction, and the nodes that all translations share.

use rustc_hash::FxHashMap;
use wengert_autograd::Step;
use wengert_tensor::broadcast::join;
use wengert_tensor::{Float, Shape};

use crate::error::Error;
use crate::graph::{Attribute, ElementKind, Graph, Origin, Source, ValueId};

/// The state of the translation of one recorded program into a graph of ONNX operators.
pub(super) struct Lowering<T: Float> {
    pub(super) graph: Graph<T>,
    /// The value of each translated step of the program.
    pub(super) values: Vec<Option<ValueId>>,
    /// For each mask of zeros and ones, the truth values from which it was made.
    pub(super) bool_of_mask: FxHashMap<ValueId, ValueId>,
    /// The operation and the source line of the step that is being translated.
    pub(super) origin: Origin,
}

impl<T: Float> Lowering<T> {
    /// Returns the error that the current step has no form in ONNX.
    pub(super) fn unsupported(&self) -> Error {
        Error::Unsupported { operation: self.origin.operation, recorded: self.origin.recorded }
    }

    /// Returns the value of the input of `step` with index `position`.
    ///
    /// # Errors
    ///
    /// If the step has no such input.
    pub(super) fn input(&self, step: &Step<T>, position: usize) -> Result<ValueId, Error> {
        let value = step.inputs.get(position).and_then(|&input| self.values[input]);
        value.ok_or_else(|| self.unsupported())
    }

    /// Returns the shape of a value.
    pub(super) fn shape(&self, value: ValueId) -> Shape {
        self.graph.values[value].shape.clone()
    }

    /// Appends a node whose elements are floating-point numbers.
    pub(super) fn node(&mut self, operator: &'static str, inputs: &[ValueId], shape: Shape) -> ValueId {
        self.node_with(operator, inputs, Vec::new(), shape)
    }

    /// Appends a node like [`node`](Self::node), with attributes.
    pub(super) fn node_with(
        &mut self,
        operator: &'static str,
        inputs: &[ValueId],
        attributes: Vec<(&'static str, Attribute)>,
        shape: Shape,
    ) -> ValueId {
        self.graph.add_node(operator, inputs, attributes, (ElementKind::Float, shape), self.origin)
    }

    /// Appends an elementwise node whose elements are floating-point numbers. The inputs broadcast.
    pub(super) fn elementwise(&mut self, operator: &'static str, inputs: &[ValueId]) -> ValueId {
        self.elementwise_with(operator, inputs, Vec::new())
    }

    /// Appends a node like [`elementwise`](Self::elementwise), with attributes.
    pub(super) fn elementwise_with(
        &mut self,
        operator: &'static str,
        inputs: &[ValueId],
        attributes: Vec<(&'static str, Attribute)>,
    ) -> ValueId {
        self.elementwise_of_kind(ElementKind::Float, operator, inputs, attributes)
    }

    /// Appends an elementwise node whose elements are truth values. The inputs broadcast.
    pub(super) fn predicate(&mut self, operator: &'static str, inputs: &[ValueId]) -> ValueId {
        self.elementwise_of_kind(ElementKind::Bool, operator, inputs, Vec::new())
    }

    /// Appends an elementwise node whose elements are of the type `kind`. The inputs broadcast.
    fn elementwise_of_kind(
        &mut self,
        kind: ElementKind,
        operator: &'static str,
        inputs: &[ValueId],
        attributes: Vec<(&'static str, Attribute)>,
    ) -> ValueId {
        let shape = self.broadcast_shape(inputs).unwrap_or_else(|| self.shape(inputs[0]));
        self.graph.add_node(operator, inputs, attributes, (kind, shape), self.origin)
    }

    /// Returns the shape to which the values broadcast, if they do.
    fn broadcast_shape(&self, values: &[ValueId]) -> Option<Shape> {
        let shapes: Vec<&Shape> = values.iter().map(|&value| &self.graph.values[value].shape).collect();
        join(&shapes).ok()
    }

    /// Appends a constant number of rank 0.
    pub(super) fn number(&mut self, number: f64) -> ValueId {
        let number = Source::Floats(wengert_tensor::Tensor::scalar(T::from_f64(number)));
        self.graph.add_value(number, ElementKind::Float, Shape::scalar(), self.origin)
    }

    /// Appends a constant vector of integers.
    pub(super) fn integers(&mut self, integers: impl IntoIterator<Item = i64>) -> ValueId {
        let integers: Vec<i64> = integers.into_iter().collect();
        let shape = Shape::from([integers.len()]);
        self.graph.add_value(Source::Sizes(integers), ElementKind::Integer, shape, self.origin)
    }

    /// Appends a constant integer of rank 0.
    pub(super) fn integer(&mut self, integer: i64) -> ValueId {
        self.graph.add_value(Source::Sizes(vec![integer]), ElementKind::Integer, Shape::scalar(), self.origin)
    }

    /// Returns the truth values of a mask: true where it is not 0.
    pub(super) fn bool_of_mask(&mut self, mask: ValueId) -> ValueId {
        match self.bool_of_mask.get(&mask) {
            Some(&truth) => truth,
            None => {
                let to = vec![("to", Attribute::Integer(ElementKind::Bool.onnx_type::<T>()))];
                let shape = self.shape(mask);
                self.graph.add_node("Cast", &[mask], to, (ElementKind::Bool, shape), self.origin)
            }
        }
    }

    /// Returns a mask of zeros and ones that is 1 where `truth` is true.
    pub(super) fn mask_of_bool(&mut self, truth: ValueId) -> ValueId {
        let to = vec![("to", Attribute::Integer(ElementKind::Float.onnx_type::<T>()))];
        let mask = self.node_with("Cast", &[truth], to, self.shape(truth));
        self.bool_of_mask.insert(mask, truth);
        mask
    }

    /// Returns `operands` without expansions, if they still broadcast to `shape`. Otherwise keeps the first operand's expansion.
    pub(super) fn operands_before_expansion<const N: usize>(
        &self,
        operands: [ValueId; N],
        shape: &Shape,
    ) -> [ValueId; N] {
        let mut before = operands.map(|operand| self.before_expansion(operand));
        if self.broadcast_shape(&before).as_ref() != Some(shape) {
            before[0] = operands[0];
        }
        before
    }

    /// Returns the value that one or more expansions turn into `value`, or `value` itself if it is no expansion.
    pub(super) fn before_expansion(&self, mut value: ValueId) -> ValueId {
        while let Some(before) = self.graph.values[value].unexpanded {
            value = before;
        }
        value
    }

    /// Returns `x` with the shape `shape`.
    pub(super) fn reshape(&mut self, x: ValueId, shape: &Shape) -> ValueId {
        if self.graph.values[x].shape == *shape {
            return x;
        }
        let sizes = self.integers(shape.iter().map(|&size| size as i64));
        // Without this attribute, a size of 0 would stand for the size of the input in this dimension.
        let attributes = if shape.contains(&0) { vec![("allowzero", Attribute::Integer(1))] } else { Vec::new() };
        self.node_with("Reshape", &[x, sizes], attributes, shape.clone())
    }

    /// Returns `x`, expanded to `shape`.
    pub(super) fn expand(&mut self, x: ValueId, shape: &Shape) -> ValueId {
        let x_shape = self.shape(x);
        if x_shape == *shape {
            return x;
        }
        // `Expand` broadcasts, so a size that does not change is written as 1. The file then does not need this size, which may
        // be dynamic.
        let added = shape.rank() - x_shape.rank();
        let is_unchanged = |axis: usize| axis >= added && x_shape[axis - added] == shape[axis];
        let sizes: Vec<i64> =
            (0..shape.rank()).map(|axis| if is_unchanged(axis) { 1 } else { shape[axis] as i64 }).collect();
        let sizes = self.integers(sizes);
        let expanded = self.node("Expand", &[x, sizes], shape.clone());
        self.graph.values[expanded].unexpanded = Some(x);
        expanded
    }

    /// Returns `x` with its dimensions in the order `order`.
    pub(super) fn transpose(&mut self, x: ValueId, order: &[usize]) -> ValueId {
        if order.iter().enumerate().all(|(place, &axis)| place == axis) {
            return x;
        }
        let x_shape = self.shape(x);
        let shape = order.iter().map(|&axis| x_shape[axis]).collect();
        self.node_with("Transpose", &[x], vec![("perm", integers_attribute(order.iter().copied()))], shape)
    }
}

/// Returns an attribute with a list of sizes.
pub(super) fn integers_attribute(sizes: impl IntoIterator<Item = usize>) -> Attribute {
    Attribute::Integers(sizes.into_iter().map(|size| size as i64).collect())
}
