//! The arena: nodes in the order in which they were recorded, and what they refer to.
//!
//! A node is small: the operation's number, its inputs, the number of its shape. Operations with parameters (a permutation,
//! index positions, a custom operation) are kept beside, and so are shapes (each once), leaf data, and the lines of code.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;

use wengert_tensor::{Float, Shape, Tensor, View};

use crate::record::node::{Index, Inputs, Node, Op};

/// Positions of nodes are spread well enough as they are.
#[derive(Default)]
pub(crate) struct IndexHasher(u64);

impl Hasher for IndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Tensors by node.
pub(crate) type ByNode<T> = HashMap<Index, Tensor<T>, BuildHasherDefault<IndexHasher>>;

/// Everything that a tape holds; `O` is the type of operations with parameters, of which it knows the name alone.
pub(crate) struct Record<T: Float, O> {
    nodes: Vec<Node>,
    /// The line that recorded each node. An operation's own constant (the number of `x + 2.0`) has none until the operation is
    /// recorded.
    locations: Vec<Option<&'static Location<'static>>>,
    shapes: Vec<Shape>,
    /// Numbers of shapes, where they are many.
    shape_numbers: HashMap<Shape, u32>,
    operations: Vec<(O, &'static str)>,
    /// Inputs of the operations kept beside the nodes.
    pub(crate) inputs: Vec<Index>,
    data: Vec<Tensor<T>>,
    /// Permutations, flips, slices, diagonals and windows.
    pub(crate) views: Vec<View>,
    pub(crate) numbers: Vec<T>,
    names: Vec<&'static str>,
    /// Values that were asked for.
    pub(crate) values: ByNode<T>,
    /// The node of each parameter on this tape.
    pub(crate) parameters: Vec<(u64, Index)>,
    /// While a derivative is being recorded: the line of the operation that it is the derivative of.
    pub(crate) on_behalf_of: Option<&'static Location<'static>>,
}

/// So many shapes are looked through one by one; more are looked up.
const FEW_SHAPES: usize = 16;

impl<T: Float, O> Record<T, O> {
    pub(crate) fn new() -> Self {
        Record {
            nodes: Vec::new(),
            locations: Vec::new(),
            shapes: Vec::new(),
            shape_numbers: HashMap::new(),
            operations: Vec::new(),
            inputs: Vec::new(),
            data: Vec::new(),
            views: Vec::new(),
            numbers: Vec::new(),
            names: Vec::new(),
            values: ByNode::default(),
            parameters: Vec::new(),
            on_behalf_of: None,
        }
    }

    /// Forgets everything but the memory it was in.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.locations.clear();
        self.shapes.clear();
        self.shape_numbers.clear();
        self.operations.clear();
        self.inputs.clear();
        self.data.clear();
        self.views.clear();
        self.numbers.clear();
        self.names.clear();
        self.values.clear();
        self.parameters.clear();
        self.on_behalf_of = None;
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub(crate) fn op(&self, index: Index) -> Op {
        self.nodes[index as usize].op
    }

    #[inline]
    pub(crate) fn node(&self, index: Index) -> Node {
        self.nodes[index as usize]
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    pub(crate) fn shape(&self, index: Index) -> &Shape {
        &self.shapes[self.node(index).shape as usize]
    }

    /// The line that recorded a node. Of a constant whose operation was refused, this one.
    pub(crate) fn location(&self, index: Index) -> &'static Location<'static> {
        self.locations[index as usize].unwrap_or(Location::caller())
    }

    pub(crate) fn leaf_data(&self, number: u32) -> &Tensor<T> {
        &self.data[number as usize]
    }

    pub(crate) fn number(&self, number: u32) -> T {
        self.numbers[number as usize]
    }

    pub(crate) fn operation(&self, number: u32) -> &O {
        &self.operations[number as usize].0
    }

    /// The positions of a node's inputs.
    #[inline]
    pub(crate) fn operands(&self, index: Index) -> &[Index] {
        let node = &self.nodes[index as usize];
        match node.op {
            Op::Other(_) => &self.inputs[node.operands[0] as usize..][..node.operands[1] as usize],
            _ => &node.operands[..usize::from(node.arity)],
        }
    }

    /// [`operands`](Self::operands), to be kept.
    pub(crate) fn inputs(&self, index: Index) -> Inputs {
        Inputs::from_slice(self.operands(index))
    }

    /// The number of `shape`, which is kept once.
    pub(crate) fn intern(&mut self, shape: &Shape) -> u32 {
        let few = &self.shapes[..self.shapes.len().min(FEW_SHAPES)];
        // Counted through, not handed to `memcmp`: they are short.
        let same = |known: &Shape| known.len() == shape.len() && known.iter().zip(shape.iter()).all(|(x, y)| x == y);
        if let Some(number) = few.iter().position(same) {
            return number as u32;
        }
        if let Some(&number) = self.shape_numbers.get(shape) {
            return number;
        }
        let number = self.shapes.len() as u32;
        self.shapes.push(shape.clone());
        if number as usize >= FEW_SHAPES {
            self.shape_numbers.insert(shape.clone(), number);
        }
        number
    }

    pub(crate) fn add_data(&mut self, data: Tensor<T>) -> u32 {
        self.data.push(data);
        (self.data.len() - 1) as u32
    }

    pub(crate) fn add_number(&mut self, number: T) -> u32 {
        self.numbers.push(number);
        (self.numbers.len() - 1) as u32
    }

    /// The operation that is `view`. The first few views are kept once.
    pub(crate) fn viewing(&mut self, view: View) -> Op {
        let known = self.views.iter().take(FEW_SHAPES).position(|known| *known == view);
        Op::View(known.unwrap_or_else(|| {
            self.views.push(view);
            self.views.len() - 1
        }) as u32)
    }

    pub(crate) fn view(&self, number: u32) -> &View {
        &self.views[number as usize]
    }

    /// The operation that passes its input on but no gradient, on behalf of `name`.
    pub(crate) fn opaque(&mut self, name: &'static str) -> Op {
        self.names.push(name);
        Op::Opaque((self.names.len() - 1) as u32)
    }

    /// The data of a leaf, where that is what a node is.
    pub(crate) fn leaf(&self, index: Index) -> Option<Tensor<T>> {
        match self.node(index).op {
            Op::Constant(number) | Op::Variable(number) => Some(self.leaf_data(number).clone()),
            Op::Number(number) => Some(Tensor::scalar(self.number(number))),
            _ => None,
        }
    }

    /// Appends a node; `None` where the tape cannot number it.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(
        &mut self,
        op: Op,
        inputs: [Index; N],
        shape: u32,
        location: Option<&'static Location<'static>>,
    ) -> Option<Index> {
        let location = self.on_behalf_of.or(location);
        if N > 0 && !matches!(op, Op::Other(_)) {
            self.locate(&inputs, location);
        }
        self.push_located(op, inputs, shape, location)
    }

    /// [`push`](Self::push) of inputs that have a line each.
    #[inline(always)]
    pub(crate) fn push_located<const N: usize>(
        &mut self,
        op: Op,
        inputs: [Index; N],
        shape: u32,
        location: Option<&'static Location<'static>>,
    ) -> Option<Index> {
        let index = self.nodes.len();
        if index >= Index::MAX as usize {
            return None;
        }
        let mut operands = [0; 3];
        operands[..N].copy_from_slice(&inputs);
        self.nodes.push(Node { op, operands, arity: N as u8, shape });
        self.locations.push(location);
        Some(index as Index)
    }

    /// Gives the line to those inputs that have none.
    #[inline]
    fn locate(&mut self, inputs: &[Index], location: Option<&'static Location<'static>>) {
        for &input in inputs {
            let own = &mut self.locations[input as usize];
            *own = own.or(location);
        }
    }

    /// Appends a node of an operation that is kept beside the nodes.
    pub(crate) fn push_operation(
        &mut self,
        operation: (O, &'static str),
        inputs: &[Index],
        shape: u32,
        location: &'static Location<'static>,
    ) -> Option<Index> {
        let start = Index::try_from(self.inputs.len()).ok()?;
        self.operations.push(operation);
        self.inputs.extend_from_slice(inputs);
        let op = Op::Other((self.operations.len() - 1) as u32);
        self.locate(inputs, self.on_behalf_of.or(Some(location)));
        self.push(op, [start, inputs.len() as u32], shape, Some(location))
    }

    /// PyTorch's name of what a node does.
    pub(crate) fn name(&self, index: Index) -> &'static str {
        match self.node(index).op {
            Op::Constant(_) => "constant",
            Op::Variable(_) => "variable",
            Op::Detach => "detach",
            Op::Number(_) => "constant",
            Op::Opaque(number) => self.names[number as usize],
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(op) => op.name(),
            Op::Select => "where",
            Op::Expand => "expand",
            Op::Reshape => "reshape",
            Op::Reduce(op) => op.name(),
            Op::Matmul => "matmul",
            Op::View(number) => self.view(number).name(),
            Op::Other(number) => self.operations[number as usize].1,
        }
    }
}
