//! From recorded nodes to the values that must be computed: every value once, over the dimensions along which it varies.
//!
//! An expansion is no value of its own: it is the same numbers over more dimensions. So what is computed of expanded
//! operands is computed at the size they had, a sum over an expanded dimension is a multiplication by its size, and the
//! gradient of a sum, however large, is one number.
//!
//! With simplification on ([`set_simplification`](super::set_simplification)), equal values are computed once, what is known
//! now is not left for later, and what changes nothing is left out. All of these are exact: no sum is reordered, and no
//! infinity or NaN appears or vanishes.

use std::collections::HashMap;

use smallvec::SmallVec;
use wengert_tensor::program::AxisSet;
use wengert_tensor::{Axes, Binary, Compare, Float, Reduction, Shape, Tensor, Unary, View};

use crate::record::{Index, Op};
use crate::tape::Record;

/// Number of a value. Values come after those they are made of.
pub(super) type Id = u32;

/// Number of a shape among those of values.
pub(super) type ShapeId = u32;

/// How a value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Make {
    /// It is there: data of a leaf, or computed before.
    Known(Index),
    /// A number, among [`Values::numbers`].
    Number(u32),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Compare(Compare, Id, Id),
    Select(Id, Id, Id),
    Reduce(Reduction, Id, AxisSet),
    /// A view, among [`Values::views`], of an operand of this shape, its leading ones included.
    View(u32, ShapeId, Id),
    /// By the operation of this node, of whole operands: a product, a custom one.
    Node(Index),
}

impl Make {
    /// The values it is made of, but for nodes.
    pub(super) fn operands(&self) -> SmallVec<[Id; 3]> {
        match *self {
            Make::Known(_) | Make::Number(_) | Make::Node(_) => SmallVec::new(),
            Make::Unary(_, x) | Make::Reduce(_, x, _) | Make::View(_, _, x) => SmallVec::from_slice(&[x]),
            Make::Binary(_, x, y) | Make::Compare(_, x, y) => SmallVec::from_slice(&[x, y]),
            Make::Select(mask, x, y) => SmallVec::from_slice(&[mask, x, y]),
        }
    }

    pub(super) fn is_elementwise(&self) -> bool {
        matches!(self, Make::Unary(..) | Make::Binary(..) | Make::Compare(..) | Make::Select(..))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) make: Make,
    /// The sizes along which it varies, without leading ones.
    pub(super) shape: ShapeId,
    /// The first node that it is the value of.
    pub(super) node: Index,
}

/// The values of a part of a tape.
pub(super) struct Values<T> {
    pub(super) list: Vec<Value>,
    pub(super) shapes: Vec<Shape>,
    pub(super) numbers: Vec<T>,
    pub(super) views: Vec<View>,
    shape_ids: HashMap<Shape, ShapeId>,
    known: HashMap<Make, Id>,
    /// By node.
    of: Vec<Id>,
    simplify: bool,
}

/// Dimensions that a program can tell apart; what has as many or more is reduced by a step of its own.
const AXES: usize = AxisSet::BITS as usize;

/// No value.
const NONE: Id = Id::MAX;

/// A number: of no dimensions.
const SCALAR: ShapeId = 0;

impl<T: Float> Values<T> {
    /// The values of the nodes that must be computed for `roots`, and of those that they read.
    pub(super) fn new(record: &Record<T>, roots: &[Index], simplify: bool) -> Self {
        let order = needed(record, roots);
        let last = order.iter().chain(roots).copied().max().map_or(0, |last| last as usize + 1);
        let mut values = Values {
            list: Vec::with_capacity(order.len() + 8),
            shapes: vec![Shape::scalar()],
            numbers: Vec::new(),
            views: Vec::new(),
            shape_ids: HashMap::from([(Shape::scalar(), SCALAR)]),
            known: HashMap::new(),
            of: vec![NONE; last],
            simplify,
        };
        for &index in &order {
            for &input in record.operands(index) {
                values.settle(record, input);
            }
            let id = values.node(record, index);
            values.of[index as usize] = id;
        }
        for &root in roots {
            values.settle(record, root);
        }
        values
    }

    /// The value of a node.
    pub(super) fn of(&self, node: Index) -> Id {
        self.of[node as usize]
    }

    pub(super) fn shape(&self, id: Id) -> &Shape {
        &self.shapes[self.list[id as usize].shape as usize]
    }

    /// The value of a node that is there already, unless it has one.
    fn settle(&mut self, record: &Record<T>, node: Index) {
        if self.of[node as usize] == NONE {
            let id = match record.node(node).op {
                Op::Number(number) => self.number(record.number(number), node),
                _ => {
                    let shape = self.varying(record.shape(node));
                    self.push(Make::Known(node), shape, node)
                }
            };
            self.of[node as usize] = id;
        }
    }

    fn node(&mut self, record: &Record<T>, index: Index) -> Id {
        let node = record.node(index);
        let operands = record.operands(index);
        let id = |values: &Self, position: usize| values.of[operands[position] as usize];
        match node.op {
            Op::Detach | Op::Opaque(_) | Op::Expand => id(self, 0),
            Op::Reshape if self.list[id(self, 0) as usize].shape == SCALAR => id(self, 0),
            Op::Reshape => {
                let (x, to) = (id(self, 0), record.shape(index));
                self.view(View::Reshape(to.clone()), x, record.shape(operands[0]), to, index)
            }
            Op::View(number) => {
                let (x, view) = (id(self, 0), record.view(number).clone());
                self.view(view, x, record.shape(operands[0]), record.shape(index), index)
            }
            Op::Unary(op) if op != Unary::Not => {
                let x = id(self, 0);
                self.elementwise(Make::Unary(op, x), index)
            }
            Op::Binary(op) if !is_of_integers(op) => {
                let (x, y) = (id(self, 0), id(self, 1));
                self.elementwise(Make::Binary(op, x, y), index)
            }
            Op::Compare(op) => {
                let (x, y) = (id(self, 0), id(self, 1));
                self.elementwise(Make::Compare(op, x, y), index)
            }
            Op::Select => {
                let (mask, x, y) = (id(self, 0), id(self, 1), id(self, 2));
                self.elementwise(Make::Select(mask, x, y), index)
            }
            Op::Reduce(op) if op != Reduction::Prod && self.shape(id(self, 0)).len() < AXES => {
                let x = id(self, 0);
                self.reduce(op, x, record.shape(operands[0]), record.shape(index), index)
            }
            _ => {
                let shape = self.varying(record.shape(index));
                self.push(Make::Node(index), shape, index)
            }
        }
    }

    fn push(&mut self, make: Make, shape: ShapeId, node: Index) -> Id {
        self.list.push(Value { make, shape, node });
        (self.list.len() - 1) as Id
    }

    /// The number of a shape, its leading ones left out.
    fn varying(&mut self, shape: &[usize]) -> ShapeId {
        let leading = shape.iter().take_while(|&&size| size == 1).count();
        self.intern(&shape[leading..])
    }

    fn intern(&mut self, shape: &[usize]) -> ShapeId {
        let shape = Shape::from(shape);
        if let Some(&id) = self.shape_ids.get(&shape) {
            return id;
        }
        let id = self.shapes.len() as ShapeId;
        self.shapes.push(shape.clone());
        self.shape_ids.insert(shape, id);
        id
    }

    fn number(&mut self, value: T, node: Index) -> Id {
        let bits = value.to_f64().to_bits();
        let position = self.numbers.iter().position(|known| known.to_f64().to_bits() == bits).unwrap_or_else(|| {
            self.numbers.push(value);
            self.numbers.len() - 1
        });
        self.once(Make::Number(position as u32), SCALAR, node)
    }

    fn once(&mut self, make: Make, shape: ShapeId, node: Index) -> Id {
        if !self.simplify {
            return self.push(make, shape, node);
        }
        if let Some(&id) = self.known.get(&make) {
            return id;
        }
        let id = self.push(make, shape, node);
        self.known.insert(make, id);
        id
    }

    fn as_number(&self, id: Id) -> Option<T> {
        match self.list[id as usize].make {
            Make::Number(number) => Some(self.numbers[number as usize]),
            _ => None,
        }
    }

    fn elementwise(&mut self, make: Make, node: Index) -> Id {
        if self.simplify {
            if let Some(id) = self.trivial(make) {
                return id;
            }
            if let Some(value) = self.folded(make) {
                return self.number(value, node);
            }
        }
        let shape = make.operands().iter().fold(SCALAR, |shape, &operand| {
            let other = self.list[operand as usize].shape;
            self.together(shape, other)
        });
        self.once(make, shape, node)
    }

    /// The value that `make` is, where it is one that there is already.
    fn trivial(&self, make: Make) -> Option<Id> {
        let is = |id: Id, number: f64| self.as_number(id).is_some_and(|value| value.to_f64() == number);
        match make {
            Make::Binary(Binary::Mul, x, y) if is(y, 1.0) => Some(x),
            Make::Binary(Binary::Mul, x, y) if is(x, 1.0) => Some(y),
            Make::Binary(Binary::Div, x, y) if is(y, 1.0) => Some(x),
            // x - 0 is x, and so is x + -0; but -0 + 0 is 0.
            Make::Binary(Binary::Sub, x, y) if is(y, 0.0) && !self.is_negative_zero(y) => Some(x),
            Make::Unary(Unary::Neg, x) => match self.list[x as usize].make {
                Make::Unary(Unary::Neg, y) => Some(y),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_negative_zero(&self, id: Id) -> bool {
        self.as_number(id).is_some_and(|value| value.to_f64().to_bits() == (-0.0f64).to_bits())
    }

    /// What `make` gives, where its operands are numbers.
    fn folded(&self, make: Make) -> Option<T> {
        use wengert_tensor::ops::TensorLike;
        let at = wengert_tensor::Site::here("fold");
        let tensor = |id: Id| self.as_number(id).map(Tensor::scalar);
        let result = match make {
            Make::Unary(op, x) => tensor(x)?.apply_unary(op, at).ok()?,
            Make::Binary(op, x, y) => tensor(x)?.apply_binary(op, &tensor(y)?, at).ok()?,
            _ => return None,
        };
        Some(result.item())
    }

    /// The shape that two have together.
    fn together(&mut self, x: ShapeId, y: ShapeId) -> ShapeId {
        if x == y || y == SCALAR {
            return x;
        }
        if x == SCALAR {
            return y;
        }
        let (x, y) = (&self.shapes[x as usize], &self.shapes[y as usize]);
        let rank = x.len().max(y.len());
        let size = |shape: &Shape, axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
        let joined: SmallVec<[usize; 6]> =
            (0..rank).map(|axis| if size(x, axis) == 1 { size(y, axis) } else { size(x, axis) }).collect();
        self.varying(&joined)
    }

    /// `view`, from the shape `from` to the shape `to`, of `x`. A view of a view is one view, where that is one.
    fn view(&mut self, mut view: View, mut x: Id, from: &Shape, to: &Shape, node: Index) -> Id {
        let mut source = self.intern(from);
        let result = self.varying(to);
        if self.simplify {
            let own = self.list[x as usize];
            // Leading ones come and go.
            if matches!(view, View::Reshape(_)) && own.shape == result {
                return x;
            }
            if let Make::View(inner, base, y) = own.make
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
        }
        let number = self.views.iter().position(|known| *known == view).unwrap_or_else(|| {
            self.views.push(view);
            self.views.len() - 1
        });
        self.once(Make::View(number as u32, source, x), result, node)
    }

    /// `op` of `x`, which stands for `from`, over the dimensions in which `from` and `to` differ.
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
            let shape = self.varying(&reduced);
            result = self.once(Make::Reduce(op, x, axes), shape, node);
        }
        if op == Reduction::Sum && times > 1 {
            let times = self.number(T::from_f64(times as f64), node);
            result = self.elementwise(Make::Binary(Binary::Mul, result, times), node);
        }
        result
    }
}

/// Operations that floating-point numbers do not have: asking for one is an error, which evaluation will give.
fn is_of_integers(op: Binary) -> bool {
    use Binary::{And, Gcd, Lcm, Or, ShiftLeft, ShiftRight, Xor};
    matches!(op, And | Or | Xor | ShiftLeft | ShiftRight | Gcd | Lcm)
}

/// The nodes that must be computed for `roots`, ascending.
fn needed<T: Float>(record: &Record<T>, roots: &[Index]) -> Vec<Index> {
    let mut seen = vec![false; roots.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut order = Vec::new();
    let mut open: Vec<Index> = roots.to_vec();
    while let Some(index) = open.pop() {
        let is_leaf = matches!(record.node(index).op, Op::Constant(_) | Op::Variable(_) | Op::Number(_));
        if !seen[index as usize] && !is_leaf && !record.values.contains_key(&index) {
            seen[index as usize] = true;
            order.push(index);
            open.extend(record.operands(index));
        }
    }
    order.sort_unstable();
    order
}
