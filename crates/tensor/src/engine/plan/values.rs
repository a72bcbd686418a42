//! Turns the nodes of an expression into the values that must be computed. An elementwise value is computed only over the dimensions along
//! which it varies.
//!
//! An expansion has the same value as its input. The host (such as the tape) can mark data as expanded: then the plan reads the smaller
//! data from before the expansion. An elementwise operation on expanded operands is computed on the operands before the expansion. A sum over
//! an expanded dimension is a multiplication by the dimension's size. So the gradient of a sum of any size is a single number.
//!
//! With simplification on ([`set_simplification`](super::simplification::set_simplification)), equal values are computed once, except results
//! of operations that the host runs. Functions of one or two numbers are computed while planning. Operations that change nothing, such as a
//! multiplication by 1, are removed. These simplifications are exact: they neither add nor remove an infinity or a NaN.

use std::mem::take;

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use crate::engine::plan::definition::{Concatenation, Definition, Id, ShapeId, ShapedValue, Value};
use crate::engine::plan::expression::{Expression, NodeIndex, Op, ResultOrigin};
use crate::engine::plan::interner::Interner;
use crate::engine::program::AxisSet;
use crate::kernel::elementwise::block::BlockKernels;
use crate::{DType, Reduction, Shape, View};

/// The values of an expression that its roots (the requested nodes) need.
pub(super) struct Values {
    pub(super) list: Vec<Value>,
    pub(super) shapes: Interner<Shape>,
    /// The numbers, as the bits of an `f64`.
    numbers: Interner<u64>,
    pub(super) views: Interner<View>,
    pub(super) concatenations: Interner<Concatenation>,
    /// For each definition, the index of the value that it defines. This map is used only if plans are simplified.
    ids: FxHashMap<Definition, Id>,
    /// For each node, the index of its value, or [`NONE`] if the roots do not need the node.
    pub(super) ids_by_node: Vec<Id>,
    /// The element type of the arithmetic.
    pub(super) dtype: DType,
    pub(super) simplify: bool,
}

/// The number of bits of an [`AxisSet`]. The host computes reductions of values with this number of dimensions or more.
const AXES: usize = AxisSet::BITS as usize;

/// The index that stands for "no value".
pub(super) const NONE: Id = Id::MAX;

/// The index of the shape without dimensions.
pub(super) const SCALAR: ShapeId = 0;

impl Values {
    /// Returns the values of the nodes that `roots` need.
    pub(super) fn new(expression: &Expression, roots: &[NodeIndex], dtype: DType, simplify: bool) -> Self {
        let order = needed_nodes(expression, roots);
        let last = order.iter().chain(roots).copied().max().map_or(0, |last| last as usize + 1);
        let mut values = Values {
            list: Vec::with_capacity(order.len() + 8),
            shapes: Interner::default(),
            numbers: Interner::default(),
            views: Interner::default(),
            concatenations: Interner::default(),
            ids: FxHashMap::default(),
            ids_by_node: vec![NONE; last],
            dtype,
            simplify,
        };
        let scalar = values.intern_shape(&[]);
        debug_assert_eq!(scalar, SCALAR);
        for &index in &order {
            for &input in expression.value_inputs(index) {
                values.define_input(expression, input);
            }
            let id = values.define(expression, index);
            values.ids_by_node[index as usize] = id;
        }
        for &root in roots {
            values.define_input(expression, root);
        }
        values
    }

    /// Moves the lists of shapes, numbers and views to new `Values`, which do not contain a value yet, and returns the new `Values`.
    pub(super) fn take_tables(&mut self) -> Self {
        Values {
            list: Vec::with_capacity(self.list.len()),
            shapes: take(&mut self.shapes),
            numbers: take(&mut self.numbers),
            views: take(&mut self.views),
            concatenations: Interner::default(),
            ids: FxHashMap::with_capacity_and_hasher(self.ids.len(), FxBuildHasher),
            ids_by_node: Vec::new(),
            dtype: self.dtype,
            simplify: self.simplify,
        }
    }

    /// Returns the operands of a value, including the operands of a concatenation or of an operation of the host (such as the tape).
    pub(super) fn reads(&self, expression: &Expression, id: Id) -> SmallVec<[Id; 3]> {
        match self.list[id as usize].definition {
            Definition::Node(node) => expression.operands(node).iter().map(|&input| self.value_of(input)).collect(),
            Definition::Cat(number) => self.concatenations[number].parts.iter().map(|&(id, _)| id).collect(),
            definition => definition.operands(),
        }
    }

    /// Returns, for each value, the number of times that it is read by `roots` (the requested nodes) and by the values that `roots` need.
    pub(super) fn count_readers(&self, expression: &Expression, roots: &[NodeIndex]) -> Vec<u32> {
        let mut reader_counts = vec![0; self.list.len()];
        roots.iter().for_each(|&root| reader_counts[self.value_of(root) as usize] += 1);
        for id in (0..reader_counts.len()).rev() {
            if reader_counts[id] > 0 {
                self.reads(expression, id as Id).iter().for_each(|&read| reader_counts[read as usize] += 1);
            }
        }
        reader_counts
    }

    pub(super) fn value_of(&self, node: NodeIndex) -> Id {
        self.ids_by_node[node as usize]
    }

    pub(super) fn shape(&self, id: Id) -> &Shape {
        &self.shapes[self.list[id as usize].shape]
    }

    /// Defines the value of an input node: a number or a leaf. Does nothing if the node already has a value.
    fn define_input(&mut self, expression: &Expression, node: NodeIndex) {
        if self.ids_by_node[node as usize] == NONE {
            let id = match expression.node(node).op {
                Op::Number(number) => self.number(expression.number(number), node),
                _ => {
                    let shape = self.intern_trimmed(expression.data_shape(node));
                    self.push(Definition::Known(node), shape, node)
                }
            };
            self.ids_by_node[node as usize] = id;
        }
    }

    /// Defines the value of a node whose inputs have values, and returns this value.
    fn define(&mut self, expression: &Expression, index: NodeIndex) -> Id {
        let node = expression.node(index);
        let operands = expression.operands(index);
        let id = |values: &Self, position: usize| values.ids_by_node[operands[position] as usize];
        match node.op {
            Op::Alias(_) | Op::Expand => id(self, 0),
            Op::Other(_) if expression.result_origin(index) == ResultOrigin::FirstInput => id(self, 0),
            Op::Other(_) if expression.result_origin(index) == ResultOrigin::CheckedInput => {
                self.push(Definition::Node(index), self.list[id(self, 0) as usize].shape, index)
            }
            Op::Reshape if self.list[id(self, 0) as usize].shape == SCALAR => id(self, 0),
            Op::Reshape => {
                let (x, to) = (id(self, 0), expression.shape(index));
                self.view(View::Reshape(to.clone()), x, expression.shape(operands[0]), to, index)
            }
            Op::View(number) => {
                let (x, view) = (id(self, 0), expression.view(number).clone());
                self.view(view, x, expression.shape(operands[0]), expression.shape(index), index)
            }
            // All floating-point types support the same operations, so it does not matter which of them is asked.
            Op::Unary(op) if f64::supports_unary(op) => {
                let x = id(self, 0);
                self.elementwise(Definition::Unary(op, x), index)
            }
            Op::Binary(op) if f64::supports_binary(op) => {
                let (x, y) = (id(self, 0), id(self, 1));
                self.elementwise(Definition::Binary(op, x, y), index)
            }
            Op::Compare(op) => {
                let (x, y) = (id(self, 0), id(self, 1));
                self.elementwise(Definition::Compare(op, x, y), index)
            }
            Op::Select => {
                let (mask, x, y) = (id(self, 0), id(self, 1), id(self, 2));
                self.elementwise(Definition::Select(mask, x, y), index)
            }
            Op::Reduce(op) if op != Reduction::Prod && self.shape(id(self, 0)).len() < AXES => {
                self.reduce(op, id(self, 0), expression.shape(operands[0]), expression.shape(index), index)
            }
            Op::Matmul => {
                let [x, y] = [0, 1].map(|position| self.shaped_value(expression, operands[position]));
                self.product(x, y, index)
            }
            Op::Embed(number) => {
                let x = self.shaped_value(expression, operands[0]);
                self.embed(expression.view(number).clone(), x, expression.shape(index), index)
            }
            Op::Cat(axis) => {
                let parts = operands.iter().map(|&part| self.shaped_value(expression, part)).collect();
                self.concatenation(Concatenation { axis: axis as usize, parts }, index)
            }
            _ => {
                let shape = self.intern_trimmed(expression.shape(index));
                self.push(Definition::Node(index), shape, index)
            }
        }
    }

    /// Returns the value of a node, and the index of the node's shape.
    fn shaped_value(&mut self, expression: &Expression, node: NodeIndex) -> ShapedValue {
        (self.value_of(node), self.intern_shape(expression.shape(node)))
    }

    /// Returns the value of the adjoint of a view, which has the shape `to`. The value is added if it is new.
    pub(super) fn embed(&mut self, view: View, x: ShapedValue, to: &Shape, node: NodeIndex) -> Id {
        let view = self.views.intern(view);
        let (to, shape) = (self.intern_shape(to), self.intern_trimmed(to));
        self.intern(Definition::Embed(view, x, to), shape, node)
    }

    /// Returns the value of the matrix product of `x` and `y`, which is added if it is new.
    pub(super) fn product(&mut self, x: ShapedValue, y: ShapedValue, node: NodeIndex) -> Id {
        let (left, right) = (&self.shapes[x.1], &self.shapes[y.1]);
        let result = Shape::of_product(left, right);
        let shape = self.intern_trimmed(&result);
        self.intern(Definition::Product(x, y), shape, node)
    }

    /// Returns the shape of a concatenation, including leading dimensions of size 1.
    pub(super) fn concatenated_shape(&self, Concatenation { axis, parts }: &Concatenation) -> Shape {
        let mut shape = self.shapes[parts[0].1].clone();
        shape[*axis] = parts.iter().map(|&(_, part)| self.shapes[part][*axis]).sum();
        shape
    }

    /// Returns the value of a concatenation, which is added if it is new.
    pub(super) fn concatenation(&mut self, concatenation: Concatenation, node: NodeIndex) -> Id {
        let shape = self.concatenated_shape(&concatenation);
        let shape = self.intern_trimmed(&shape);
        let number = self.concatenations.intern(concatenation);
        self.intern(Definition::Cat(number), shape, node)
    }

    fn push(&mut self, definition: Definition, shape: ShapeId, node: NodeIndex) -> Id {
        self.list.push(Value { definition, shape, node });
        (self.list.len() - 1) as Id
    }

    /// Removes the leading dimensions of size 1 from a shape. Returns the index of the resulting shape, and adds this shape to the list if
    /// it is new.
    pub(super) fn intern_trimmed(&mut self, shape: &[usize]) -> ShapeId {
        let leading = shape.iter().take_while(|&&size| size == 1).count();
        self.intern_shape(&shape[leading..])
    }

    /// Returns the index of a shape in the list of shapes. Adds the shape to the list if it is new.
    pub(super) fn intern_shape(&mut self, shape: &[usize]) -> ShapeId {
        self.shapes.intern(shape.into())
    }

    /// Returns the value that is the number `value`, which is added if it is new.
    pub(super) fn number(&mut self, value: f64, node: NodeIndex) -> Id {
        let number = self.numbers.intern(value.to_bits());
        self.intern(Definition::Number(number), SCALAR, node)
    }

    /// Adds the value that is computed by `definition`, and returns it. If plans are simplified and an equal definition exists, returns its
    /// value instead.
    pub(super) fn intern(&mut self, definition: Definition, shape: ShapeId, node: NodeIndex) -> Id {
        if !self.simplify {
            return self.push(definition, shape, node);
        }
        if let Some(&id) = self.ids.get(&definition) {
            return id;
        }
        let id = self.push(definition, shape, node);
        self.ids.insert(definition, id);
        id
    }

    /// If the value with index `id` is a number, returns this number. Otherwise returns `None`.
    pub(super) fn as_number(&self, id: Id) -> Option<f64> {
        match self.list[id as usize].definition {
            Definition::Number(number) => Some(f64::from_bits(self.numbers[number])),
            _ => None,
        }
    }

    /// Returns the value of an elementwise definition, simplified if simplification is on. The value is added if it is new.
    pub(super) fn elementwise(&mut self, definition: Definition, node: NodeIndex) -> Id {
        if self.simplify {
            if let Some(id) = self.find_identity(definition) {
                return id;
            }
            if let Some(value) = self.fold_constants(definition) {
                return self.number(value, node);
            }
        }
        let shape = definition.operands().iter().fold(SCALAR, |shape, &operand| {
            let other = self.list[operand as usize].shape;
            self.broadcast_shape(shape, other)
        });
        self.intern(definition, shape, node)
    }
}

/// Returns the nodes that must be computed for `roots`, in ascending order.
fn needed_nodes(expression: &Expression, roots: &[NodeIndex]) -> Vec<NodeIndex> {
    let mut seen = vec![false; roots.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut order = Vec::new();
    let mut open: Vec<NodeIndex> = roots.to_vec();
    while let Some(index) = open.pop() {
        let is_leaf = matches!(expression.node(index).op, Op::Constant(_) | Op::Variable(_) | Op::Number(_));
        if !seen[index as usize] && !is_leaf {
            seen[index as usize] = true;
            order.push(index);
            open.extend(expression.value_inputs(index));
        }
    }
    order.sort_unstable();
    order
}
