//! Expressions: lists of nodes. A node is a primitive operation with the shape of its result. Each node comes after its inputs.
//!
//! A node is small: its operation, the indices of its inputs, and the index of its shape. Shapes, views and numbers are in lists of the
//! expression, and each shape is stored once. The expression contains no data. The host (the tape or the eager operation that made the
//! expression) stores the data, and nodes refer to data by index.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::thresholds::plan::MAX_SCANNED;
use crate::{Binary, Compare, Layout, Reduction, Shape, Unary, View};

/// The index of a node in its expression.
pub type NodeIndex = u32;

/// The indices of a node's inputs.
pub type Inputs = SmallVec<[NodeIndex; 3]>;

/// The operation of a node. Together with the shapes of the inputs and the result, it defines the computation. Most fields of type `u32`
/// are indices into lists of the expression, or of the host that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Data that the host (the tape) stores, and through which no derivative flows. The field is the index of the data.
    Constant(u32),
    /// Data that the host (the tape) stores, and with respect to which derivatives are taken. The field is the index of the data.
    Variable(u32),
    /// A number. The field is its index for [`Expression::number`].
    Number(u32),
    /// The input, unchanged. The field has a meaning only for the host (the tape).
    Alias(u32),
    /// A function of each element.
    Unary(Unary),
    /// A function of each pair of elements.
    Binary(Binary),
    /// A comparison of each pair of elements, as 0 and 1.
    Compare(Compare),
    /// The elements of x where the mask is not 0, and of y elsewhere. The inputs are mask, x, y.
    Select,
    /// The input broadcast to the node's shape.
    Expand,
    /// The elements of the input in row-major order, in the node's shape.
    Reshape,
    /// A reduction over the dimensions in which the input's shape and the node's shape differ.
    Reduce(Reduction),
    /// The matrix product.
    Matmul,
    /// A view of the input. The field is its index for [`Expression::view`].
    View(u32),
    /// The adjoint of a view: zeros of the node's shape, to which the input is added at the positions that the view reads. The field is the
    /// view's index for [`Expression::view`].
    Embed(u32),
    /// The concatenation of any number of inputs. The field is the dimension.
    Cat(u32),
    /// An operation that the host (the tape) defines, with any number of inputs. The field is the index of the operation.
    Other(u32),
}

/// The origin of the result of an [`Op::Other`]: the operation or its first input. The number of each variant (0, 1 or 2) is stored in the
/// third of the node's `operands`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOrigin {
    /// The host computes the result, which need not equal an input.
    Computed = 0,
    /// The result equals the first input. The value does not depend on the other inputs. Only the derivative uses them.
    FirstInput = 1,
    /// The result equals the only input, but the host checks its elements first, and refuses some. The check runs on the input's value
    /// before an expansion.
    CheckedInput = 2,
}

/// One node of an [`Expression`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Up to three inputs. An [`Op::Cat`] or [`Op::Other`] has its inputs in the expression's list of inputs instead. Then this array has
    /// three numbers: the position of the first input in that list, the number of inputs, and the [`ResultOrigin`] of the result.
    operands: [NodeIndex; 3],
    arity: u8,
    /// The index of the result's shape.
    pub shape: u32,
}

impl Node {
    /// Returns the two inputs of a node. Returns `None` if the node does not have exactly two inputs, or is an [`Op::Cat`] or
    /// [`Op::Other`].
    #[inline]
    pub fn pair(&self) -> Option<[NodeIndex; 2]> {
        let [x, y, _] = self.operands;
        (self.arity == 2).then_some([x, y])
    }
}

/// The lengths of an expression's lists at some time. Nodes that are appended later make the lists longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListLengths {
    /// The number of nodes.
    pub nodes: usize,
    inputs: usize,
    shapes: usize,
    views: usize,
    numbers: usize,
}

/// A list of nodes, with the shapes, views and numbers to which the nodes refer.
#[derive(Clone, Debug, Default)]
pub struct Expression {
    nodes: Vec<Node>,
    /// The inputs of all nodes of the operations [`Op::Cat`] and [`Op::Other`], which may have any number of inputs.
    inputs: Vec<NodeIndex>,
    shapes: Vec<Shape>,
    /// The indices of the shapes that come after the first [`MAX_SCANNED`] ones. A new shape is compared with each of the first ones.
    shape_numbers: FxHashMap<Shape, u32>,
    views: Vec<View>,
    /// Numbers of any floating-point type. Their conversion to `f64` is exact.
    numbers: Vec<f64>,
    /// For each node whose data is expanded, the index of its shape before the expansion.
    unexpanded: ByNode<u32>,
    /// The identity that was given to the lists most recently. Nodes may have been appended since then.
    identity: Option<Identity>,
}

/// A number for the contents of an expression's lists up to `lengths`. If two expressions have the same identity, their lists are equal up
/// to these lengths, and a comparison can leave out this part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    number: u64,
    /// The number stands for the contents of the lists up to these lengths.
    pub lengths: ListLengths,
}

impl Expression {
    /// Removes all nodes. The allocated memory is kept for new nodes.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.inputs.clear();
        self.shapes.clear();
        self.shape_numbers.clear();
        self.views.clear();
        self.numbers.clear();
        self.unexpanded.clear();
        self.identity = None;
    }

    /// Returns the number of nodes.
    #[inline]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the present lengths of the lists.
    #[inline]
    pub fn list_lengths(&self) -> ListLengths {
        ListLengths {
            nodes: self.nodes.len(),
            inputs: self.inputs.len(),
            shapes: self.shapes.len(),
            views: self.views.len(),
            numbers: self.numbers.len(),
        }
    }

    /// Returns a copy of the elements of all lists from `start` on.
    pub fn tail(&self, start: ListLengths) -> ExpressionTail {
        ExpressionTail {
            start,
            nodes: self.nodes[start.nodes..].to_vec(),
            inputs: self.inputs[start.inputs..].to_vec(),
            shapes: self.shapes[start.shapes..].to_vec(),
            views: self.views[start.views..].to_vec(),
            numbers: self.numbers[start.numbers..].to_vec(),
        }
    }

    /// Returns true if the lists have the same elements as `tail` from `from` to `to`. The marks of nodes with [expanded
    /// data](Self::set_unexpanded) are not compared.
    pub fn contains(&self, tail: &ExpressionTail, from: ListLengths, to: ListLengths) -> bool {
        fn same<V>(own: &[V], tail: &[V], start: usize, range: Range<usize>, equal: impl Fn(&V, &V) -> bool) -> bool {
            let theirs = tail.get(range.start.wrapping_sub(start)..range.end.wrapping_sub(start));
            let (Some(own), Some(theirs)) = (own.get(range), theirs) else { return false };
            own.iter().zip(theirs).all(|(x, y)| equal(x, y))
        }
        let start = tail.start;
        same(&self.shapes, &tail.shapes, start.shapes, from.shapes..to.shapes, Shape::eq)
            && same(&self.numbers, &tail.numbers, start.numbers, from.numbers..to.numbers, same_bits)
            && same(&self.views, &tail.views, start.views, from.views..to.views, View::eq)
            && same(&self.inputs, &tail.inputs, start.inputs, from.inputs..to.inputs, NodeIndex::eq)
            && same(&self.nodes, &tail.nodes, start.nodes, from.nodes..to.nodes, Node::eq)
    }

    /// Appends the elements of `tail` from `from` to `to`. The lists of this expression must end at `from`. Up to this end, they must equal
    /// the lists of the expression from which `tail` was copied.
    pub fn append(&mut self, tail: &ExpressionTail, from: ListLengths, to: ListLengths) {
        debug_assert_eq!(self.list_lengths(), from);
        let start = tail.start;
        self.nodes.extend_from_slice(&tail.nodes[from.nodes - start.nodes..to.nodes - start.nodes]);
        self.inputs.extend_from_slice(&tail.inputs[from.inputs - start.inputs..to.inputs - start.inputs]);
        self.views.extend_from_slice(&tail.views[from.views - start.views..to.views - start.views]);
        self.numbers.extend_from_slice(&tail.numbers[from.numbers - start.numbers..to.numbers - start.numbers]);
        for shape in &tail.shapes[from.shapes - start.shapes..to.shapes - start.shapes] {
            self.intern(shape);
        }
    }

    /// Returns the identity that was given to the lists most recently.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Gives the present lists a new identity, and returns it.
    pub fn identify(&mut self) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let identity = Identity { number: NEXT.fetch_add(1, Ordering::Relaxed), lengths: self.list_lengths() };
        self.identity = Some(identity);
        identity
    }

    /// Gives the lists an identity of another expression, whose lists are equal up to the lengths of this identity.
    pub fn share_identity(&mut self, identity: Option<Identity>) {
        self.identity = identity;
    }

    /// Removes everything that was appended after the lists had the lengths `end`, except for the marks of nodes with [expanded
    /// data](Self::set_unexpanded). The caller must then append nodes with the indices and shapes of the removed nodes.
    pub fn truncate(&mut self, end: ListLengths) {
        self.identity = None;
        self.nodes.truncate(end.nodes);
        self.inputs.truncate(end.inputs);
        self.shapes.truncate(end.shapes);
        self.shape_numbers.retain(|_, number| (*number as usize) < end.shapes);
        self.views.truncate(end.views);
        self.numbers.truncate(end.numbers);
    }

    /// Returns the operation of a node.
    #[inline]
    pub fn op(&self, index: NodeIndex) -> Op {
        self.nodes[index as usize].op
    }

    /// Returns the node with index `index`.
    #[inline]
    pub fn node(&self, index: NodeIndex) -> Node {
        self.nodes[index as usize]
    }

    /// Returns the shape of a node's value.
    #[inline]
    pub fn shape(&self, index: NodeIndex) -> &Shape {
        &self.shapes[self.node(index).shape as usize]
    }

    /// Returns the number to which an [`Op::Number`] refers.
    pub fn number(&self, number: u32) -> f64 {
        self.numbers[number as usize]
    }

    /// Returns the view to which an [`Op::View`] or [`Op::Embed`] refers.
    pub fn view(&self, number: u32) -> &View {
        &self.views[number as usize]
    }

    /// Returns true if several elements of a node's value share one position in memory, because the value is a view of an expanded array.
    /// An expanded number does not count, because a number has no position. The data of leaves counts as contiguous.
    pub fn has_internal_overlap(&self, node: NodeIndex) -> bool {
        let (mut root, mut views) = (node, SmallVec::<[NodeIndex; 8]>::new());
        while let Op::Expand | Op::Reshape | Op::View(_) | Op::Alias(_) = self.op(root) {
            views.push(root);
            root = self.operands(root)[0];
        }
        let is_expanded = views.iter().any(|&view| self.op(view) == Op::Expand);
        if !is_expanded || matches!(self.op(root), Op::Number(_)) {
            return false;
        }
        let layout = Layout::contiguous(self.shape(root).clone());
        let layout = views.iter().rev().fold(layout, |layout, &view| {
            let shape = self.shape(view);
            let viewed = match self.op(view) {
                Op::Expand => layout.expand(shape),
                Op::Reshape => layout.reshape(shape),
                Op::View(number) => self.view(number).apply(&layout),
                _ => return layout,
            };
            // A reshape that cannot be a view copies the elements.
            viewed.unwrap_or_else(|| Layout::contiguous(shape.clone()))
        });
        layout.has_internal_overlap()
    }

    /// Returns the indices of a node's inputs.
    #[inline]
    pub fn operands(&self, index: NodeIndex) -> &[NodeIndex] {
        let node = &self.nodes[index as usize];
        match node.op {
            Op::Cat(_) | Op::Other(_) => &self.inputs[node.operands[0] as usize..][..node.operands[1] as usize],
            _ => &node.operands[..usize::from(node.arity)],
        }
    }

    /// Returns a copy of the list of a node's inputs.
    #[inline]
    pub fn inputs(&self, index: NodeIndex) -> Inputs {
        let node = &self.nodes[index as usize];
        match node.op {
            Op::Cat(_) | Op::Other(_) => Inputs::from_slice(self.operands(index)),
            _ => Inputs::from_buf_and_len(node.operands, usize::from(node.arity)),
        }
    }

    /// Returns the index of `shape` in the list of shapes. Adds the shape to the list if it is new.
    pub fn intern(&mut self, shape: &Shape) -> u32 {
        let scanned = &self.shapes[..self.shapes.len().min(MAX_SCANNED)];
        // A loop compares the sizes, because a call of `memcmp` takes longer for a few sizes.
        let same = |known: &Shape| known.len() == shape.len() && known.iter().zip(shape.iter()).all(|(x, y)| x == y);
        if let Some(number) = scanned.iter().position(same) {
            return number as u32;
        }
        if let Some(&number) = self.shape_numbers.get(shape) {
            return number;
        }
        let number = self.shapes.len() as u32;
        self.shapes.push(shape.clone());
        if number as usize >= MAX_SCANNED {
            self.shape_numbers.insert(shape.clone(), number);
        }
        number
    }

    /// Stores a number and returns the operation that refers to it.
    pub fn add_number(&mut self, number: f64) -> Op {
        self.numbers.push(number);
        Op::Number((self.numbers.len() - 1) as u32)
    }

    /// Stores a view and returns the operation that refers to it. If the view equals one of the first few views, it is not stored again.
    pub fn add_view(&mut self, view: View) -> Op {
        Op::View(self.view_number(view))
    }

    /// Stores a view and returns the operation that is the view's adjoint. The view is stored like in [`add_view`](Self::add_view).
    pub fn add_embed(&mut self, view: View) -> Op {
        Op::Embed(self.view_number(view))
    }

    fn view_number(&mut self, view: View) -> u32 {
        // Comparing two slices field by field takes less time than the derived comparison, and most views are slices.
        let is_same = |known: &View| match (known, &view) {
            (
                View::Slice { axis: known_axis, start: known_start, len: known_len, step: known_step },
                View::Slice { axis, start, len, step },
            ) => (known_axis, known_start, known_len, known_step) == (axis, start, len, step),
            (known, view) => known == view,
        };
        let known = self.views.iter().take(MAX_SCANNED).position(is_same);
        let number = known.unwrap_or_else(|| {
            self.views.push(view);
            self.views.len() - 1
        });
        number as u32
    }

    /// Appends a node and returns its index. Returns `None` if the index would not fit into [`NodeIndex`].
    #[inline(always)]
    pub fn push<const N: usize>(&mut self, op: Op, inputs: [NodeIndex; N], shape: u32) -> Option<NodeIndex> {
        self.push_slice(op, &inputs, shape)
    }

    /// Does the same as [`push`](Self::push), for at most three inputs in a slice.
    #[inline(always)]
    fn push_slice(&mut self, op: Op, inputs: &[NodeIndex], shape: u32) -> Option<NodeIndex> {
        let index = self.nodes.len();
        if index >= NodeIndex::MAX as usize {
            return None;
        }
        let mut operands = [0; 3];
        operands[..inputs.len()].copy_from_slice(inputs);
        self.nodes.push(Node { op, operands, arity: inputs.len() as u8, shape });
        Some(index as NodeIndex)
    }

    /// Appends a node with any number of inputs: an [`Op::Cat`] or [`Op::Other`]. Returns the node's index, or `None` if an index would not
    /// fit into [`NodeIndex`]. For an [`Op::Cat`], `result_origin` must be [`ResultOrigin::Computed`].
    pub fn push_list(
        &mut self,
        op: Op,
        inputs: &[NodeIndex],
        shape: u32,
        result_origin: ResultOrigin,
    ) -> Option<NodeIndex> {
        let start = NodeIndex::try_from(self.inputs.len()).ok()?;
        self.inputs.extend_from_slice(inputs);
        self.push(op, [start, inputs.len() as u32, result_origin as u32], shape)
    }

    /// Notes that the host stores the data of a node before its expansion: with the shape `before`, which has size 1 along each expanded
    /// dimension. The node is a leaf, or its value is already known.
    pub fn set_unexpanded(&mut self, index: NodeIndex, before: &Shape) {
        let before = self.intern(before);
        self.unexpanded.insert(index, before);
    }

    /// Returns the shape of the host's data for a node: the node's shape, or the shape before an expansion.
    pub(super) fn data_shape(&self, index: NodeIndex) -> &Shape {
        match self.unexpanded.get(&index) {
            Some(&before) => &self.shapes[before as usize],
            None => self.shape(index),
        }
    }

    /// Returns the origin of the result of a node.
    #[inline]
    pub fn result_origin(&self, index: NodeIndex) -> ResultOrigin {
        let node = &self.nodes[index as usize];
        match (node.op, node.operands[2]) {
            (Op::Other(_), 1) => ResultOrigin::FirstInput,
            (Op::Other(_), 2) => ResultOrigin::CheckedInput,
            _ => ResultOrigin::Computed,
        }
    }

    /// Returns the inputs from which a node's value is computed. If the node's result equals its first input, returns only the first input.
    #[inline]
    pub(super) fn value_inputs(&self, index: NodeIndex) -> &[NodeIndex] {
        let operands = self.operands(index);
        if self.result_origin(index) == ResultOrigin::FirstInput { &operands[..1] } else { operands }
    }

    /// Appends a node of any operation, by [`push`](Self::push) or [`push_list`](Self::push_list). `result_origin` counts only for an
    /// [`Op::Other`].
    pub(super) fn push_any(
        &mut self,
        op: Op,
        inputs: &[NodeIndex],
        shape: u32,
        result_origin: ResultOrigin,
    ) -> Option<NodeIndex> {
        match op {
            Op::Cat(_) | Op::Other(_) => self.push_list(op, inputs, shape, result_origin),
            _ => self.push_slice(op, inputs, shape),
        }
    }

    /// Returns true if both expressions have the same nodes, shapes, views and numbers, and if [expanded data](Self::set_unexpanded) is
    /// marked at the same nodes. The nodes are compared last. Expressions that the same code records often differ only in a shape, a number
    /// or a view, and these lists are short.
    pub(super) fn is_equal_to(&self, other: &Self) -> bool {
        let end = self.list_lengths();
        let is_known =
            || self.identity == other.identity && self.identity.is_some_and(|identity| identity.lengths == end);
        let is_equal = || {
            self.shapes == other.shapes
                && self.numbers.iter().zip(&other.numbers).all(|(x, y)| same_bits(x, y))
                && self.views == other.views
                && self.inputs == other.inputs
                && self.nodes == other.nodes
        };
        end == other.list_lengths() && self.unexpanded == other.unexpanded && (is_known() || is_equal())
    }
}

/// Returns true if two numbers have the same bits.
fn same_bits(x: &f64, y: &f64) -> bool {
    x.to_bits() == y.to_bits()
}

/// A copy of the last elements of an expression's lists.
#[derive(Debug)]
pub struct ExpressionTail {
    /// The index of the first copied element of each list.
    start: ListLengths,
    nodes: Vec<Node>,
    inputs: Vec<NodeIndex>,
    shapes: Vec<Shape>,
    views: Vec<View>,
    numbers: Vec<f64>,
}

impl ExpressionTail {
    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the lengths that the expression's lists had when this part was copied.
    pub fn end(&self) -> ListLengths {
        ListLengths {
            nodes: self.start.nodes + self.nodes.len(),
            inputs: self.start.inputs + self.inputs.len(),
            shapes: self.start.shapes + self.shapes.len(),
            views: self.start.views + self.views.len(),
            numbers: self.start.numbers + self.numbers.len(),
        }
    }
}

/// A map with the indices of nodes as keys.
pub type ByNode<V> = FxHashMap<NodeIndex, V>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an expression of `count` leaves of different shapes, each with a view and a number.
    fn leaves(count: usize) -> Expression {
        let mut expression = Expression::default();
        append(&mut expression, 0..count);
        expression
    }

    fn append(expression: &mut Expression, sizes: Range<usize>) {
        for size in sizes {
            let shape = expression.intern(&Shape::from([size, 2]));
            let leaf = expression.push(Op::Variable(size as u32), [], shape).unwrap();
            let view = expression.add_view(View::Permute([1, 0].into_iter().collect()));
            let transposed = expression.intern(&Shape::from([2, size]));
            let number = expression.add_number(size as f64);
            expression.push(view, [leaf], transposed).unwrap();
            expression.push(number, [], transposed).unwrap();
            expression.push_list(Op::Cat(0), &[leaf, leaf], shape, ResultOrigin::Computed).unwrap();
        }
    }

    #[test]
    fn a_copied_part_equals_a_recorded_one() {
        let whole = leaves(3 * MAX_SCANNED);
        for count in [0, 1, MAX_SCANNED, 2 * MAX_SCANNED] {
            let mut copy = leaves(count);
            let (start, middle) = (copy.list_lengths(), leaves(count + 1).list_lengths());
            let tail = whole.tail(start);
            assert_eq!(tail.end(), whole.list_lengths());
            assert!(copy.contains(&tail, start, start) && !copy.contains(&tail, start, middle));
            copy.append(&tail, start, middle);
            assert!(copy.contains(&tail, start, middle) && !copy.is_equal_to(&whole));
            copy.append(&tail, middle, tail.end());
            assert!(copy.is_equal_to(&whole));
            // The copy has the shapes of the copied part, so `intern` adds none.
            let end = copy.list_lengths();
            assert_eq!(copy.intern(&Shape::from([2, 3 * MAX_SCANNED - 1])), end.shapes as u32 - 1);
            assert_eq!(copy.list_lengths(), end);
        }
    }

    #[test]
    fn a_shortened_expression_forgets_what_came_later() {
        for count in [0, 1, MAX_SCANNED] {
            let (mut shortened, expected) = (leaves(3 * MAX_SCANNED), leaves(count));
            shortened.truncate(expected.list_lengths());
            assert!(shortened.is_equal_to(&expected), "{count}");
            append(&mut shortened, count..2 * MAX_SCANNED);
            assert!(shortened.is_equal_to(&leaves(2 * MAX_SCANNED)), "{count}");
        }
    }

    #[test]
    fn an_identity_ends_with_the_next_node() {
        let mut first = leaves(2);
        let identity = first.identify();
        let mut second = leaves(2);
        assert!(first.is_equal_to(&second) && second.identity().is_none());
        second.share_identity(Some(identity));
        assert!(first.is_equal_to(&second));
        append(&mut first, 2..3);
        append(&mut second, 3..4);
        assert!(!first.is_equal_to(&second));
    }
}
