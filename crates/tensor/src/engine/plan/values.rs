//! Turns the nodes of an expression into the values that must be computed, each once and over the dimensions along which it varies.
//!
//! An expansion has no value of its own: it is the same numbers over more dimensions. An operation on expanded operands is computed at
//! their size before the expansion. A sum over an expanded dimension is a multiplication by its size. The gradient of a sum, however
//! large, is one number.
//!
//! With simplification on ([`set_simplification`](super::simplification::set_simplification)), equal values are computed once,
//! operations on numbers are computed while planning, and identities (a factor of 1) are removed. These are exact: no infinity or NaN
//! appears or vanishes. Sums of gradients are rewritten by [`sums`], which reorders them.

use std::collections::HashMap;
use std::mem::take;

use smallvec::SmallVec;

use crate::engine::plan::expression::{Expression, Index, KnownNodes, Op};
use crate::engine::plan::sums;
use crate::engine::program::AxisSet;
use crate::kernel::elementwise::operand::Operand;
use crate::scalar::instruction::Instruction;
use crate::shape::broadcast;
use crate::{Axes, Binary, Compare, Float, Reduction, Shape, Unary, View};

/// The number of a value. Values come after their operands.
pub(super) type Id = u32;

/// The number of a shape in [`Values::shapes`].
pub(super) type ShapeId = u32;

/// The way in which a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Definition {
    /// The data of a leaf, or a known value of a node.
    Known(Index),
    /// A number, by its index in [`Values::numbers`].
    Number(u32),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Compare(Compare, Id, Id),
    Select(Id, Id, Id),
    Reduce(Reduction, Id, AxisSet),
    /// A view, by its index in [`Values::views`], of an operand of this shape, leading sizes of 1 included.
    View(u32, ShapeId, Id),
    /// The adjoint of a view, by the view's index in [`Values::views`]: from an operand to the last shape.
    Embed(u32, Shaped, ShapeId),
    /// The matrix product of two operands.
    Product(Shaped, Shaped),
    /// A concatenation, by its index in [`Values::concatenations`].
    Cat(u32),
    /// The operation of this node, applied to whole operands: an operation of the host.
    Node(Index),
}

/// An operand with its shape, leading sizes of 1 included.
pub(super) type Shaped = (Id, ShapeId);

/// A concatenation of parts along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Concatenation {
    pub(super) axis: usize,
    pub(super) parts: Vec<Shaped>,
}

impl Definition {
    /// Returns the operands, except those of a node and of a concatenation.
    pub(super) fn operands(&self) -> SmallVec<[Id; 3]> {
        let mut operands = SmallVec::new();
        let mut copy = *self;
        copy.map(|id| {
            operands.push(id);
            id
        });
        operands
    }

    /// Replaces each operand, except those of a node and of a concatenation.
    pub(super) fn map(&mut self, mut of: impl FnMut(Id) -> Id) {
        match self {
            Definition::Known(_) | Definition::Number(_) | Definition::Cat(_) | Definition::Node(_) => {}
            Definition::Unary(_, x)
            | Definition::Reduce(_, x, _)
            | Definition::View(_, _, x)
            | Definition::Embed(_, (x, _), _) => *x = of(*x),
            Definition::Binary(_, x, y) | Definition::Compare(_, x, y) | Definition::Product((x, _), (y, _)) => {
                (*x, *y) = (of(*x), of(*y));
            }
            Definition::Select(mask, x, y) => (*mask, *x, *y) = (of(*mask), of(*x), of(*y)),
        }
    }

    pub(super) fn is_elementwise(&self) -> bool {
        self.cost().is_some()
    }

    /// Returns the additions per element that an elementwise value costs.
    pub(super) fn cost(&self) -> Option<usize> {
        match *self {
            Definition::Unary(op, x) => Some(Instruction::Unary(op, x).cost()),
            Definition::Binary(op, x, y) => Some(Instruction::Binary(op, x, y).cost()),
            Definition::Compare(op, x, y) => Some(Instruction::Compare(op, x, y).cost()),
            Definition::Select(mask, x, y) => Some(Instruction::Select(mask, x, y).cost()),
            _ => None,
        }
    }
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) definition: Definition,
    /// The sizes along which it varies, without leading sizes of 1.
    pub(super) shape: ShapeId,
    /// The first node that has this value.
    pub(super) node: Index,
}

/// The values of an expression that its roots need.
pub(super) struct Values<T> {
    pub(super) list: Vec<Value>,
    pub(super) shapes: Vec<Shape>,
    pub(super) numbers: Vec<T>,
    pub(super) views: Vec<View>,
    pub(super) concatenations: Vec<Concatenation>,
    shape_ids: HashMap<Shape, ShapeId>,
    known: HashMap<Definition, Id>,
    known_concatenations: HashMap<Concatenation, u32>,
    /// For each node, its value.
    pub(super) of: Vec<Id>,
    simplify: bool,
}

/// The dimensions of an [`AxisSet`]. A reduction over an array of more dimensions is a step of its own.
const AXES: usize = AxisSet::BITS as usize;

/// No value.
pub(super) const NONE: Id = Id::MAX;

/// The shape of a number.
const SCALAR: ShapeId = 0;

impl<T: Float> Values<T> {
    /// Returns the values of the nodes that `roots` need, given the values of the nodes in `known`.
    pub(super) fn new(expression: &Expression<T>, known: &dyn KnownNodes, roots: &[Index], simplify: bool) -> Self {
        let order = needed(expression, known, roots);
        let last = order.iter().chain(roots).copied().max().map_or(0, |last| last as usize + 1);
        let mut values = Values {
            list: Vec::with_capacity(order.len() + 8),
            shapes: vec![Shape::scalar()],
            numbers: Vec::new(),
            views: Vec::new(),
            concatenations: Vec::new(),
            shape_ids: HashMap::from([(Shape::scalar(), SCALAR)]),
            known: HashMap::new(),
            known_concatenations: HashMap::new(),
            of: vec![NONE; last],
            simplify,
        };
        for &index in &order {
            for &input in expression.read(index) {
                values.define_input(expression, input);
            }
            let id = values.define(expression, index);
            values.of[index as usize] = id;
        }
        for &root in roots {
            values.define_input(expression, root);
        }
        if simplify { sums::rewritten(values, expression, roots) } else { values }
    }

    /// Moves shapes, numbers and views into an empty list of values.
    pub(super) fn emptied(&mut self) -> Self {
        Values {
            list: Vec::with_capacity(self.list.len()),
            shapes: take(&mut self.shapes),
            numbers: take(&mut self.numbers),
            views: take(&mut self.views),
            concatenations: Vec::new(),
            shape_ids: take(&mut self.shape_ids),
            known: HashMap::with_capacity(self.known.len()),
            known_concatenations: HashMap::new(),
            of: Vec::new(),
            simplify: self.simplify,
        }
    }

    /// Returns the operands of a value.
    pub(super) fn reads(&self, expression: &Expression<T>, id: Id) -> SmallVec<[Id; 3]> {
        match self.list[id as usize].definition {
            Definition::Node(node) => expression.operands(node).iter().map(|&input| self.of(input)).collect(),
            Definition::Cat(number) => self.concatenations[number as usize].parts.iter().map(|&(id, _)| id).collect(),
            definition => definition.operands(),
        }
    }

    /// Returns the value of a node.
    pub(super) fn of(&self, node: Index) -> Id {
        self.of[node as usize]
    }

    pub(super) fn shape(&self, id: Id) -> &Shape {
        &self.shapes[self.list[id as usize].shape as usize]
    }

    /// Defines the value of a node that is known, unless it is defined.
    fn define_input(&mut self, expression: &Expression<T>, node: Index) {
        if self.of[node as usize] == NONE {
            let id = match expression.node(node).op {
                Op::Number(number) => self.number(expression.number(number), node),
                _ => {
                    let shape = self.intern_trimmed(expression.shape(node));
                    self.push(Definition::Known(node), shape, node)
                }
            };
            self.of[node as usize] = id;
        }
    }

    /// Returns the value of a node whose inputs have values.
    fn define(&mut self, expression: &Expression<T>, index: Index) -> Id {
        let node = expression.node(index);
        let operands = expression.operands(index);
        let id = |values: &Self, position: usize| values.of[operands[position] as usize];
        match node.op {
            Op::Alias(_) | Op::Expand => id(self, 0),
            Op::Other(_) if expression.is_alias(index) => id(self, 0),
            Op::Reshape if self.list[id(self, 0) as usize].shape == SCALAR => id(self, 0),
            Op::Reshape => {
                let (x, to) = (id(self, 0), expression.shape(index));
                self.view(View::Reshape(to.clone()), x, expression.shape(operands[0]), to, index)
            }
            Op::View(number) => {
                let (x, view) = (id(self, 0), expression.view(number).clone());
                self.view(view, x, expression.shape(operands[0]), expression.shape(index), index)
            }
            Op::Unary(op) if op != Unary::Not => {
                let x = id(self, 0);
                self.elementwise(Definition::Unary(op, x), index)
            }
            Op::Binary(op) if !is_of_integers(op) => {
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
                let x = id(self, 0);
                self.reduce(op, x, expression.shape(operands[0]), expression.shape(index), index)
            }
            Op::Matmul => {
                let [x, y] = [0, 1].map(|position| self.shaped(expression, operands[position]));
                self.product(x, y, index)
            }
            Op::Embed(number) => {
                let x = self.shaped(expression, operands[0]);
                let view = self.view_number(expression.view(number).clone());
                let to = self.intern_shape(expression.shape(index));
                let shape = self.intern_trimmed(expression.shape(index));
                self.intern(Definition::Embed(view, x, to), shape, index)
            }
            Op::Cat(axis) => {
                let parts = operands.iter().map(|&part| self.shaped(expression, part)).collect();
                self.concatenation(Concatenation { axis: axis as usize, parts }, index)
            }
            _ => {
                let shape = self.intern_trimmed(expression.shape(index));
                self.push(Definition::Node(index), shape, index)
            }
        }
    }

    /// Returns the value of a node with the node's shape.
    fn shaped(&mut self, expression: &Expression<T>, node: Index) -> Shaped {
        (self.of(node), self.intern_shape(expression.shape(node)))
    }

    /// Returns the value of the matrix product of `x` and `y`.
    pub(super) fn product(&mut self, x: Shaped, y: Shaped, node: Index) -> Id {
        let (left, right) = (&self.shapes[x.1 as usize], &self.shapes[y.1 as usize]);
        let mut result = left.clone();
        result[left.rank() - 1] = right[right.rank() - 1];
        let shape = self.intern_trimmed(&result);
        self.intern(Definition::Product(x, y), shape, node)
    }

    /// Returns the shape of a concatenation, leading sizes of 1 included.
    pub(super) fn concatenated_shape(&self, Concatenation { axis, parts }: &Concatenation) -> Shape {
        let mut shape = self.shapes[parts[0].1 as usize].clone();
        shape[*axis] = parts.iter().map(|&(_, part)| self.shapes[part as usize][*axis]).sum();
        shape
    }

    /// Returns the value of a concatenation.
    pub(super) fn concatenation(&mut self, concatenation: Concatenation, node: Index) -> Id {
        let shape = self.concatenated_shape(&concatenation);
        let shape = self.intern_trimmed(&shape);
        let known = self.known_concatenations.get(&concatenation).filter(|_| self.simplify);
        let number = known.copied().unwrap_or_else(|| {
            let number = self.concatenations.len() as u32;
            self.concatenations.push(concatenation.clone());
            self.known_concatenations.insert(concatenation, number);
            number
        });
        self.intern(Definition::Cat(number), shape, node)
    }

    fn push(&mut self, definition: Definition, shape: ShapeId, node: Index) -> Id {
        self.list.push(Value { definition, shape, node });
        (self.list.len() - 1) as Id
    }

    /// Returns the number of a shape without its leading sizes of 1.
    pub(super) fn intern_trimmed(&mut self, shape: &[usize]) -> ShapeId {
        let leading = shape.iter().take_while(|&&size| size == 1).count();
        self.intern_shape(&shape[leading..])
    }

    /// Returns the number of a shape.
    pub(super) fn intern_shape(&mut self, shape: &[usize]) -> ShapeId {
        let shape = Shape::from(shape);
        if let Some(&id) = self.shape_ids.get(&shape) {
            return id;
        }
        let id = self.shapes.len() as ShapeId;
        self.shapes.push(shape.clone());
        self.shape_ids.insert(shape, id);
        id
    }

    /// Returns the value of a number.
    pub(super) fn number(&mut self, value: T, node: Index) -> Id {
        let bits = value.to_f64().to_bits();
        let position = self.numbers.iter().position(|known| known.to_f64().to_bits() == bits).unwrap_or_else(|| {
            self.numbers.push(value);
            self.numbers.len() - 1
        });
        self.intern(Definition::Number(position as u32), SCALAR, node)
    }

    /// Returns the value of a definition. If plans are simplified, equal definitions have one value.
    pub(super) fn intern(&mut self, definition: Definition, shape: ShapeId, node: Index) -> Id {
        if !self.simplify {
            return self.push(definition, shape, node);
        }
        if let Some(&id) = self.known.get(&definition) {
            return id;
        }
        let id = self.push(definition, shape, node);
        self.known.insert(definition, id);
        id
    }

    /// Returns the number that a value is.
    fn as_number(&self, id: Id) -> Option<T> {
        match self.list[id as usize].definition {
            Definition::Number(number) => Some(self.numbers[number as usize]),
            _ => None,
        }
    }

    /// Returns the value of an elementwise definition, simplified.
    pub(super) fn elementwise(&mut self, definition: Definition, node: Index) -> Id {
        if self.simplify {
            if let Some(id) = self.trivial(definition) {
                return id;
            }
            if let Some(value) = self.folded(definition) {
                return self.number(value, node);
            }
        }
        let shape = definition.operands().iter().fold(SCALAR, |shape, &operand| {
            let other = self.list[operand as usize].shape;
            self.broadcast_shape(shape, other)
        });
        self.intern(definition, shape, node)
    }

    /// Returns the existing value that `definition` equals.
    fn trivial(&self, definition: Definition) -> Option<Id> {
        let is = |id: Id, number: f64| self.as_number(id).is_some_and(|value| value.to_f64() == number);
        match definition {
            Definition::Binary(Binary::Mul, x, y) if is(y, 1.0) => Some(x),
            Definition::Binary(Binary::Mul, x, y) if is(x, 1.0) => Some(y),
            Definition::Binary(Binary::Div, x, y) if is(y, 1.0) => Some(x),
            // x - 0 is x, and so is x + -0; but -0 + 0 is 0.
            Definition::Binary(Binary::Sub, x, y) if is(y, 0.0) && !self.is_negative_zero(y) => Some(x),
            Definition::Unary(Unary::Neg, x) => match self.list[x as usize].definition {
                Definition::Unary(Unary::Neg, y) => Some(y),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_negative_zero(&self, id: Id) -> bool {
        self.as_number(id).is_some_and(|value| value.to_f64().to_bits() == (-0.0f64).to_bits())
    }

    /// Returns the result of `definition` if its operands are numbers.
    fn folded(&self, definition: Definition) -> Option<T> {
        let splat = |id: Id| self.as_number(id).map(Operand::Splat);
        let mut result = [T::ZERO];
        match definition {
            Definition::Unary(op, x) if T::supports_unary(op) => T::unary(op, splat(x)?, &mut result),
            Definition::Binary(op, x, y) if T::supports_binary(op) => T::binary(op, splat(x)?, splat(y)?, &mut result),
            _ => return None,
        }
        Some(result[0])
    }

    /// Returns the shape to which two shapes broadcast.
    fn broadcast_shape(&mut self, x: ShapeId, y: ShapeId) -> ShapeId {
        if x == y || y == SCALAR {
            return x;
        }
        if x == SCALAR {
            return y;
        }
        match broadcast::join(&[&self.shapes[x as usize], &self.shapes[y as usize]]) {
            Ok(joined) => self.intern_trimmed(&joined),
            Err(mismatch) => unreachable!("the operands of a node broadcast: {mismatch:?}"),
        }
    }

    /// Returns the value of a view of `x` from the shape `from` to the shape `to`. Two permutations or reshapes in a row are one.
    pub(super) fn view(&mut self, mut view: View, mut x: Id, from: &Shape, to: &Shape, node: Index) -> Id {
        let mut source = self.intern_shape(from);
        let result = self.intern_trimmed(to);
        if self.simplify {
            let own = self.list[x as usize];
            // The shapes differ in leading sizes of 1 alone.
            let is_same = |values: &Self, x: Id| values.list[x as usize].shape == result;
            if matches!(view, View::Reshape(_)) && is_same(self, x) {
                return x;
            }
            if let Definition::View(inner, base, y) = own.definition
                && self.views[inner as usize].shape(&self.shapes[base as usize]) == *from
            {
                let joined = match (&self.views[inner as usize], &view) {
                    (View::Permute(first), View::Permute(second)) => {
                        let axes: Axes = second.iter().map(|&axis| first[axis]).collect();
                        if axes.iter().copied().eq(0..axes.len()) {
                            return y;
                        }
                        Some(View::Permute(axes))
                    }
                    (View::Reshape(_), View::Reshape(_)) => Some(view.clone()),
                    _ => None,
                };
                if let Some(joined) = joined {
                    (view, source, x) = (joined, base, y);
                }
            }
            if matches!(view, View::Reshape(_)) && is_same(self, x) {
                return x;
            }
        }
        let number = self.view_number(view);
        self.intern(Definition::View(number, source, x), result, node)
    }

    fn view_number(&mut self, view: View) -> u32 {
        let number = self.views.iter().position(|known| *known == view).unwrap_or_else(|| {
            self.views.push(view);
            self.views.len() - 1
        });
        number as u32
    }

    /// Returns the value of the reduction of `x`, expanded to `from`, over the dimensions in which `from` and `to` differ.
    fn reduce(&mut self, op: Reduction, x: Id, from: &Shape, to: &Shape, node: Index) -> Id {
        let core = self.shape(x).clone();
        let missing = from.len() - core.len();
        let mut axes: AxisSet = 0;
        let mut times = 1usize;
        for axis in (0..from.len()).filter(|&axis| from[axis] != to[axis]) {
            match axis.checked_sub(missing).filter(|&own| core[own] != 1) {
                Some(own) => axes |= 1 << own,
                None => times = times.saturating_mul(from[axis]),
            }
        }
        if op == Reduction::Sum && times == 0 {
            return self.number(T::ZERO, node);
        }
        let mut result = x;
        if axes != 0 {
            let reduced: SmallVec<[usize; 6]> =
                core.iter().enumerate().map(|(axis, &size)| if axes >> axis & 1 == 1 { 1 } else { size }).collect();
            let shape = self.intern_trimmed(&reduced);
            result = self.intern(Definition::Reduce(op, x, axes), shape, node);
        }
        if op == Reduction::Sum && times > 1 {
            let times = self.number(T::from_f64(times as f64), node);
            result = self.elementwise(Definition::Binary(Binary::Mul, result, times), node);
        }
        result
    }
}

/// Returns true if the operation is defined for integers alone. The evaluation of such a node returns an error.
fn is_of_integers(op: Binary) -> bool {
    use Binary::{And, Gcd, Lcm, Or, ShiftLeft, ShiftRight, Xor};
    matches!(op, And | Or | Xor | ShiftLeft | ShiftRight | Gcd | Lcm)
}

/// Returns the nodes that must be computed for `roots`, ascending.
fn needed<T: Float>(expression: &Expression<T>, known: &dyn KnownNodes, roots: &[Index]) -> Vec<Index> {
    let mut seen = vec![false; roots.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut order = Vec::new();
    let mut open: Vec<Index> = roots.to_vec();
    while let Some(index) = open.pop() {
        let is_leaf = matches!(expression.node(index).op, Op::Constant(_) | Op::Variable(_) | Op::Number(_));
        if !seen[index as usize] && !is_leaf && !known.has(index) {
            seen[index as usize] = true;
            order.push(index);
            open.extend(expression.read(index));
        }
    }
    order.sort_unstable();
    order
}
