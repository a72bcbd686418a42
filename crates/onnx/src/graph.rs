//! A graph of ONNX operators, before it has names. Each operator has one result.
//!
//! This file knows the structure of a graph, and not the meaning of an operator.

use std::panic::Location;

use wengert_tensor::{DType, Float, Shape, Tensor};

/// The position of a value in its graph.
pub(crate) type ValueId = usize;

/// The type of the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementKind {
    /// The floating-point type of the tape.
    Float,
    /// i64.
    Integer,
    Bool,
}

impl ElementKind {
    /// Returns the number of the element type in ONNX (`TensorProto.DataType`), for a tape of `T`.
    pub(crate) fn onnx_type<T: Float>(self) -> i64 {
        match self {
            ElementKind::Float if T::DTYPE == DType::F64 => 11,
            ElementKind::Float => 1,
            ElementKind::Integer => 7,
            ElementKind::Bool => 9,
        }
    }
}

/// The way in which a value gets its elements: as an input, as a constant, or from a node.
#[derive(Clone, Debug)]
pub(crate) enum Source<T: Float> {
    Input,
    Floats(Tensor<T>),
    /// Integers that `lower` or `unify` has computed from shapes and arguments: a vector, or a number of rank 0.
    Sizes(Vec<i64>),
    /// Indices or positions that the model has given, or that the lowering has computed for a view.
    Indices(Tensor<i64>),
    /// The result of a node.
    Node,
}

/// A value: an input, a constant or the result of a node.
#[derive(Clone, Debug)]
pub(crate) struct Value<T: Float> {
    pub(crate) source: Source<T>,
    pub(crate) kind: ElementKind,
    pub(crate) shape: Shape,
    pub(crate) origin: Origin,
    /// If this value is an expansion (a broadcast), the value that is expanded.
    pub(crate) unexpanded: Option<ValueId>,
    /// If this value is a parameter of the model, the parameter's id.
    pub(crate) parameter: Option<u64>,
}

/// The recorded operation to which a value or a node belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) operation: &'static str,
    pub(crate) recorded: &'static Location<'static>,
}

/// An attribute of an operator: an argument whose value the file stores with the node. Inputs, in contrast, are values of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Integer(i64),
    Integers(Vec<i64>),
    Text(&'static str),
}

/// One application of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) operator: &'static str,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) output: ValueId,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    pub(crate) origin: Origin,
}

/// A list of nodes. Each comes after the nodes whose results it reads.
#[derive(Clone, Debug)]
pub(crate) struct Graph<T: Float> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) values: Vec<Value<T>>,
    /// The value of each input.
    pub(crate) inputs: Vec<ValueId>,
    /// The value of each output.
    pub(crate) outputs: Vec<ValueId>,
}

impl<T: Float> Graph<T> {
    pub(crate) fn new() -> Self {
        Graph { nodes: Vec::new(), values: Vec::new(), inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Appends a value, and returns its id.
    pub(crate) fn add_value(&mut self, source: Source<T>, kind: ElementKind, shape: Shape, origin: Origin) -> ValueId {
        self.values.push(Value { source, kind, shape, origin, unexpanded: None, parameter: None });
        self.values.len() - 1
    }

    /// Appends a node, and returns the id of its result.
    pub(crate) fn add_node(
        &mut self,
        operator: &'static str,
        inputs: &[ValueId],
        attributes: Vec<(&'static str, Attribute)>,
        (kind, shape): (ElementKind, Shape),
        origin: Origin,
    ) -> ValueId {
        let output = self.add_value(Source::Node, kind, shape, origin);
        self.nodes.push(Node { operator, inputs: inputs.to_vec(), output, attributes, origin });
        output
    }

    /// Returns the graph without the nodes and constants on which no output depends. The other values get new positions.
    pub(crate) fn prune(self) -> Self {
        let mut is_needed = vec![false; self.values.len()];
        self.inputs.iter().chain(&self.outputs).for_each(|&value| is_needed[value] = true);
        let mut nodes: Vec<Node> = Vec::new();
        for node in self.nodes.into_iter().rev() {
            if is_needed[node.output] {
                node.inputs.iter().for_each(|&input| is_needed[input] = true);
                nodes.push(node);
            }
        }
        nodes.reverse();
        let mut new_id = vec![ValueId::MAX; is_needed.len()];
        let mut values = Vec::new();
        for (old, value) in self.values.into_iter().enumerate() {
            if is_needed[old] {
                new_id[old] = values.len();
                values.push(Value { unexpanded: None, ..value });
            }
        }
        let renumber = |list: Vec<ValueId>| -> Vec<ValueId> { list.into_iter().map(|value| new_id[value]).collect() };
        let nodes = nodes.into_iter();
        let nodes =
            nodes.map(|node| Node { inputs: renumber(node.inputs), output: new_id[node.output], ..node }).collect();
        Graph { nodes, values, inputs: renumber(self.inputs), outputs: renumber(self.outputs) }
    }
}
