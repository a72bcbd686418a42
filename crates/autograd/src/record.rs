//! The arena: nodes in the order in which they were recorded, and what they refer to.
//!
//! A node is small: the operation's number, its inputs, the number of its shape. Operations with parameters (a permutation,
//! index positions, a custom operation) are kept beside, and so are shapes (each once), leaf data, and the lines of code.

use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;

use smallvec::SmallVec;
use wengert_tensor::{Binary, Compare, Float, Reduction, Shape, Tensor, Unary};

use crate::operation::Operation;

/// Position of a node on its tape.
pub(crate) type Index = u32;

/// The line of a constant that an operation has made for its own use (the number of `x + 2.0`): it will be the line of that
/// operation.
pub(crate) const UNPLACED: &Location<'static> = Location::caller();

/// Positions of a node's inputs.
pub(crate) type Inputs = SmallVec<[Index; 3]>;

/// What a node does. The inputs' and the result's shapes say the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Plain data, through which no gradient flows.
    Constant(u32),
    /// Data that gradients are taken with respect to.
    Variable(u32),
    /// The input, through which no gradient flows.
    Detach,
    /// The input, through which a gradient must not be asked for.
    Opaque(&'static str),
    Unary(Unary),
    Binary(Binary),
    Compare(Compare),
    /// Inputs: mask, x, y.
    Select,
    /// To the node's shape.
    Expand,
    /// To the node's shape.
    Reshape,
    /// Over the dimensions in which the input's shape and the node's differ.
    Reduce(Reduction),
    Matmul,
    /// An operation with parameters, or a custom one, kept beside the nodes.
    Other(u32),
}

/// One recorded operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) op: Op,
    /// Up to three inputs; of an [`Op::Other`], where its inputs start in [`Record::inputs`] and how many they are.
    operands: [Index; 3],
    arity: u8,
    pub(crate) shape: u32,
}

/// Everything that a tape holds.
pub(crate) struct Record<T: Float> {
    nodes: Vec<Node>,
    locations: Vec<&'static Location<'static>>,
    shapes: Vec<Shape>,
    shape_numbers: HashMap<Shape, u32>,
    operations: Vec<Rc<dyn Operation<T>>>,
    inputs: Vec<Index>,
    data: Vec<Tensor<T>>,
    /// Values that were asked for.
    pub(crate) values: HashMap<Index, Tensor<T>>,
    /// The node of each parameter on this tape.
    pub(crate) parameters: Vec<(u64, Index)>,
    /// While a derivative is being recorded: the line of the operation that it is the derivative of.
    pub(crate) on_behalf_of: Option<&'static Location<'static>>,
}

impl<T: Float> Record<T> {
    pub(crate) fn new() -> Self {
        Record {
            nodes: Vec::new(),
            locations: Vec::new(),
            shapes: Vec::new(),
            shape_numbers: HashMap::new(),
            operations: Vec::new(),
            inputs: Vec::new(),
            data: Vec::new(),
            values: HashMap::new(),
            parameters: Vec::new(),
            on_behalf_of: None,
        }
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, index: Index) -> Node {
        self.nodes[index as usize]
    }

    pub(crate) fn shape(&self, index: Index) -> &Shape {
        &self.shapes[self.node(index).shape as usize]
    }

    pub(crate) fn location(&self, index: Index) -> &'static Location<'static> {
        self.locations[index as usize]
    }

    pub(crate) fn leaf_data(&self, number: u32) -> &Tensor<T> {
        &self.data[number as usize]
    }

    pub(crate) fn operation(&self, number: u32) -> &Rc<dyn Operation<T>> {
        &self.operations[number as usize]
    }

    pub(crate) fn inputs(&self, index: Index) -> Inputs {
        let node = &self.nodes[index as usize];
        match node.op {
            Op::Other(_) => {
                let (start, count) = (node.operands[0] as usize, node.operands[1] as usize);
                Inputs::from_slice(&self.inputs[start..start + count])
            }
            _ => Inputs::from_slice(&node.operands[..usize::from(node.arity)]),
        }
    }

    /// The number of `shape`, which is kept once.
    pub(crate) fn intern(&mut self, shape: &Shape) -> u32 {
        if let Some(&number) = self.shape_numbers.get(shape) {
            return number;
        }
        let number = self.shapes.len() as u32;
        self.shapes.push(shape.clone());
        self.shape_numbers.insert(shape.clone(), number);
        number
    }

    pub(crate) fn add_data(&mut self, data: Tensor<T>) -> u32 {
        self.data.push(data);
        (self.data.len() - 1) as u32
    }

    /// Appends a node; `None` where the tape cannot number it.
    pub(crate) fn push(
        &mut self,
        op: Op,
        inputs: &[Index],
        shape: u32,
        location: &'static Location<'static>,
    ) -> Option<Index> {
        let index = Index::try_from(self.nodes.len()).ok().filter(|&index| index < Index::MAX)?;
        let mut operands = [0; 3];
        operands[..inputs.len()].copy_from_slice(inputs);
        self.nodes.push(Node { op, operands, arity: inputs.len() as u8, shape });
        self.locations.push(self.on_behalf_of.unwrap_or(location));
        self.place(index);
        Some(index)
    }

    /// Gives the line of node `index` to those of its inputs that have none.
    fn place(&mut self, index: Index) {
        for input in self.inputs(index) {
            if self.locations[input as usize] == UNPLACED {
                self.locations[input as usize] = self.locations[index as usize];
            }
        }
    }

    /// Appends a node of an operation that is kept beside the nodes.
    pub(crate) fn push_operation(
        &mut self,
        operation: Rc<dyn Operation<T>>,
        inputs: &[Index],
        shape: u32,
        location: &'static Location<'static>,
    ) -> Option<Index> {
        let start = Index::try_from(self.inputs.len()).ok()?;
        self.operations.push(operation);
        self.inputs.extend_from_slice(inputs);
        let op = Op::Other((self.operations.len() - 1) as u32);
        self.push(op, &[start, inputs.len() as u32], shape, location)
    }

    /// PyTorch's name of what a node does.
    pub(crate) fn name(&self, index: Index) -> &'static str {
        match self.node(index).op {
            Op::Constant(_) => "constant",
            Op::Variable(_) => "variable",
            Op::Detach => "detach",
            Op::Opaque(name) => name,
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(op) => op.name(),
            Op::Select => "where",
            Op::Expand => "expand",
            Op::Reshape => "reshape",
            Op::Reduce(op) => op.name(),
            Op::Matmul => "matmul",
            Op::Other(number) => self.operation(number).name(),
        }
    }
}
