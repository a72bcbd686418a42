//! The contents of a tape: an expression, the data of its leaves, and the line of code of each node. Also the operations that [`Op::Other`]
//! refers to. They are objects that may store arguments, such as positions.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::Location;

use wengert_tensor::plan::{ByNode, Expression, ExpressionTail, Identity, ListLengths, NodeIndex, Op, ResultOrigin};
use wengert_tensor::{Float, Shape, Site, Tensor};

/// The operation that returns its input and stops gradients. Every other [`Op::Alias`] refuses to be differentiated,
/// and its field is the index of its name in `Record::opaque_names`.
pub(crate) const DETACH: Op = Op::Alias(u32::MAX);

/// The contents of a tape. `O` is the type of the operations that [`Op::Other`] refers to: objects that may store arguments, such as
/// positions. This file stores these operations with their names, but calls none of their methods.
pub(crate) struct Record<T: Float, O> {
    /// The nodes. Only the methods of the record append nodes, because each node needs a line of code.
    pub(crate) expression: Expression,
    /// The line of code that recorded each node. A constant that is written in an operation (the 2.0 in `where_(&mask, x, 2.0)`) has no line until the
    /// operation is recorded.
    locations: Vec<Option<&'static Location<'static>>>,
    /// The number of nodes that have no line of code yet.
    n_unlocated: usize,
    /// The operations that [`Op::Other`] refers to by index, each with its name.
    operations: Vec<(O, &'static str)>,
    /// The number of `operations`, from the first one on, that are known to have derivatives.
    pub(crate) n_differentiable: Cell<usize>,
    /// The data of leaves that are tensors.
    data: Vec<Tensor<T>>,
    /// The names of the [`Op::Alias`] operations that refuse to be differentiated.
    opaque_names: Vec<&'static str>,
    /// The values that evaluations have kept, by node: requested values, values of the same groups, and values that later nodes may read.
    pub(crate) values: ByNode<Tensor<T>>,
    /// The data before the expansion, for leaves and nodes in `values` whose data is large and expanded. The engine
    /// reads this data instead. Leaves of parameters are left out.
    unexpanded: ByNode<Tensor<T>>,
    /// For each node that is evaluated together with others, the index of its group of nodes in `groups`.
    group_of: ByNode<usize>,
    groups: Vec<Vec<NodeIndex>>,
    /// A summary of the evaluations that computed and stored values. It is `None` before the first of these evaluations.
    pub(crate) evaluations: Option<Evaluations>,
    /// The number of nodes after which the tape counts as full, for tests of its errors.
    #[cfg(test)]
    pub(crate) max_nodes: Cell<usize>,
    /// The number of nodes that all evaluations of this tape after the first one have computed.
    #[cfg(test)]
    pub(crate) n_recomputed: Cell<usize>,
    /// The id of each parameter on this tape, and its node.
    pub(crate) parameters: Vec<(u64, NodeIndex)>,
    /// The id of each parameter that a variable replaces on this tape, and the variable's node. The last entry of a
    /// parameter counts.
    pub(crate) bound_parameters: Vec<(u64, NodeIndex)>,
    /// The nodes that were recorded as identity matrices.
    pub(crate) identity_matrices: Vec<NodeIndex>,
    /// The number of active observers, which ask for the nodes whose values are requested. While there is an observer, these nodes are
    /// collected in `observed_nodes`.
    pub(crate) n_observers: usize,
    /// The nodes whose values were requested while there was an observer.
    pub(crate) observed_nodes: Vec<NodeIndex>,
    /// The line of code of the operation that is being differentiated or batched. It is `None` at other times.
    pub(crate) on_behalf_of: Option<&'static Location<'static>>,
}

/// A summary of the evaluations of a tape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evaluations {
    /// The largest index of a node whose value was requested, directly or because another node of its group was
    /// requested.
    pub(crate) last_node: NodeIndex,
    pub(crate) count: usize,
}

/// The number of nodes that must be free on the tape before a derivative rule or batching rule starts. Rules record nodes with operators,
/// which panic on a full tape. The rules of this library record far fewer nodes than this.
const RULE_NODES: usize = 1 << 16;

/// The end of a record at some time. Later nodes come after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) lengths: ListLengths,
    /// The most recent identity of the expression at that time. It stands for the expression's nodes up to the identity's lengths.
    pub(crate) identity: Option<Identity>,
    /// The number of stored operations, data and names.
    pub(crate) n_stored: usize,
}

/// Gives read access to the expression of a record.
impl<T: Float, O> Deref for Record<T, O> {
    type Target = Expression;

    #[inline]
    fn deref(&self) -> &Expression {
        &self.expression
    }
}

impl<T: Float, O> Record<T, O> {
    pub(super) fn new() -> Self {
        Record {
            expression: Expression::default(),
            locations: Vec::new(),
            n_unlocated: 0,
            operations: Vec::new(),
            n_differentiable: Cell::default(),
            data: Vec::new(),
            opaque_names: Vec::new(),
            values: ByNode::default(),
            unexpanded: ByNode::default(),
            group_of: ByNode::default(),
            groups: Vec::new(),
            evaluations: None,
            #[cfg(test)]
            max_nodes: Cell::new(usize::MAX),
            #[cfg(test)]
            n_recomputed: Cell::default(),
            parameters: Vec::new(),
            bound_parameters: Vec::new(),
            identity_matrices: Vec::new(),
            n_observers: 0,
            observed_nodes: Vec::new(),
            on_behalf_of: None,
        }
    }

    /// Removes all contents of the record, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.expression.clear();
        self.locations.clear();
        self.n_unlocated = 0;
        self.operations.clear();
        self.n_differentiable.set(0);
        self.data.clear();
        self.opaque_names.clear();
        self.values.clear();
        self.unexpanded.clear();
        self.group_of.clear();
        self.groups.clear();
        self.evaluations = None;
        #[cfg(test)]
        self.max_nodes.set(usize::MAX);
        #[cfg(test)]
        self.n_recomputed.set(0);
        self.parameters.clear();
        self.bound_parameters.clear();
        self.identity_matrices.clear();
        self.n_observers = 0;
        self.observed_nodes.clear();
        self.on_behalf_of = None;
    }

    /// Returns the present end of the record.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            lengths: self.expression.list_lengths(),
            identity: self.expression.identity(),
            n_stored: self.operations.len() + self.data.len() + self.opaque_names.len(),
        }
    }

    /// Removes all nodes after `end`, and returns them with their lines of code. The caller must record these nodes again before all
    /// others. So the record keeps everything that belongs to them: data, operations, values, groups and parameters.
    pub(crate) fn remove_nodes(&mut self, end: Mark) -> (ExpressionTail, Vec<Option<&'static Location<'static>>>) {
        let part = self.expression.tail(end.lengths);
        let locations = self.locations.split_off(end.lengths.nodes);
        self.n_unlocated -= locations.iter().filter(|location| location.is_none()).count();
        self.expression.truncate(end.lengths);
        self.expression.share_identity(end.identity);
        (part, locations)
    }

    /// Appends the nodes of `part` from `from` to `to`, with their lines of code `locations`. Does not copy data and operations: if the
    /// nodes refer to any, this record must have them already. `from` must be the end of this record. The nodes before it must equal the
    /// nodes before the part.
    pub(crate) fn append(
        &mut self,
        part: &ExpressionTail,
        locations: &[Option<&'static Location<'static>>],
        from: ListLengths,
        to: ListLengths,
    ) {
        self.expression.append(part, from, to);
        self.n_unlocated += locations.iter().filter(|location| location.is_none()).count();
        self.locations.extend_from_slice(locations);
    }

    /// Returns the line of code of each node, or `None` for a constant whose operation is not recorded yet.
    pub(crate) fn locations(&self) -> &[Option<&'static Location<'static>>] {
        &self.locations
    }

    /// Returns the operations that [`Op::Other`] refers to, in the order of recording, from index `start` on.
    pub(crate) fn operations_from(&self, start: usize) -> impl ExactSizeIterator<Item = &O> {
        self.operations[start..].iter().map(|(operation, _)| operation)
    }

    /// Registers a group of nodes. When the value of one node is requested, the values of all nodes of the group are computed.
    pub(crate) fn group(&mut self, nodes: impl Iterator<Item = NodeIndex>) {
        let nodes: Vec<NodeIndex> = nodes.collect();
        if nodes.len() > 1 {
            self.group_of.extend(nodes.iter().map(|&node| (node, self.groups.len())));
            self.groups.push(nodes);
        }
    }

    /// Returns the nodes `roots`, followed by the nodes that must be evaluated together with them: the other nodes of their groups. Those
    /// other nodes whose values are kept are left out.
    pub(crate) fn with_groups(&self, roots: &[NodeIndex]) -> Vec<NodeIndex> {
        let mut wanted = roots.to_vec();
        let mut groups: Vec<usize> = roots.iter().filter_map(|root| self.group_of.get(root).copied()).collect();
        if groups.is_empty() {
            return wanted;
        }
        groups.sort_unstable();
        groups.dedup();
        let mut known: ByNode<()> = roots.iter().map(|&root| (root, ())).collect();
        let others = groups.iter().flat_map(|&group| &self.groups[group]).copied();
        wanted.extend(others.filter(|node| !self.values.contains_key(node) && known.insert(*node, ()).is_none()));
        wanted
    }

    /// Returns the line of code that recorded a node. For a constant that was written in an operation whose recording failed, returns a
    /// line of this file.
    pub(crate) fn location(&self, index: NodeIndex) -> &'static Location<'static> {
        self.locations[index as usize].unwrap_or(Location::caller())
    }

    /// Returns the data of a leaf, which has the index `number` in the list of data.
    pub(crate) fn leaf_data(&self, number: u32) -> &Tensor<T> {
        &self.data[number as usize]
    }

    /// Notes that the node is the expansion of smaller data, if `data` is large and expanded. Then elementwise operations compute each
    /// distinct element once. `data` is the data of a leaf, or the known value of another node.
    pub(crate) fn note_expansion(&mut self, node: NodeIndex, data: &Tensor<T>) {
        if let Some(before) = data.unexpanded() {
            self.expression.set_unexpanded(node, before.shape());
            self.unexpanded.insert(node, before);
        }
    }

    /// Returns the data of a leaf, or the known value of a node, before its expansion. Returns `None` if no expansion was noted.
    pub(crate) fn unexpanded(&self, node: NodeIndex) -> Option<&Tensor<T>> {
        self.unexpanded.get(&node)
    }

    /// Returns the operation that an [`Op::Other`] with the field `number` refers to.
    pub(crate) fn operation(&self, number: u32) -> &O {
        &self.operations[number as usize].0
    }

    /// Returns true if a node is a leaf whose gradient `backward` computes: a variable or a parameter that is not frozen.
    pub(crate) fn is_variable(&self, index: NodeIndex) -> bool {
        matches!(self.op(index), Op::Variable(_))
    }

    /// Stores the data of a leaf and returns its index.
    pub(crate) fn add_data(&mut self, data: Tensor<T>) -> u32 {
        self.data.push(data);
        (self.data.len() - 1) as u32
    }

    /// Returns an operation that returns its input and refuses to be differentiated, with an error that names `name`.
    pub(crate) fn add_opaque(&mut self, name: &'static str) -> Op {
        self.opaque_names.push(name);
        Op::Alias((self.opaque_names.len() - 1) as u32)
    }

    /// Returns the data of a node, if it is a leaf.
    pub(crate) fn leaf(&self, index: NodeIndex) -> Option<Tensor<T>> {
        match self.op(index) {
            Op::Constant(number) | Op::Variable(number) => Some(self.leaf_data(number).clone()),
            Op::Number(number) => Some(Tensor::scalar(T::from_f64(self.number(number)))),
            _ => None,
        }
    }

    /// Returns true if the tape has at least [`RULE_NODES`] free nodes.
    #[inline]
    pub(crate) fn has_room_for_rule(&self) -> bool {
        let limit = NodeIndex::MAX as usize;
        #[cfg(test)]
        let limit = self.max_nodes.get().min(limit);
        limit.saturating_sub(self.len()) >= RULE_NODES
    }

    /// Appends a node and returns its index, or `None` if the tape is full.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(
        &mut self,
        op: Op,
        inputs: [NodeIndex; N],
        shape: u32,
        location: Option<&'static Location<'static>>,
    ) -> Option<NodeIndex> {
        #[cfg(test)]
        if self.len() >= self.max_nodes.get() {
            return None;
        }
        let location = self.on_behalf_of.or(location);
        self.set_locations(&inputs, location);
        let index = self.expression.push(op, inputs, shape)?;
        self.locations.push(location);
        Some(index)
    }

    /// Appends the number `value` as a leaf that stops gradients. If the shape with index `shape` has dimensions, also appends the expansion to
    /// this shape. Returns the index of the last appended node, or `None` if the tape is full.
    pub(crate) fn push_filled(&mut self, value: T, shape: u32, at: Site) -> Option<NodeIndex> {
        let (leaf, scalar) = (self.expression.add_number(value.to_f64()), self.expression.intern(&Shape::scalar()));
        let number = self.push(leaf, [], scalar, Some(at.location))?;
        if shape == scalar { Some(number) } else { self.push(Op::Expand, [number], shape, Some(at.location)) }
    }

    /// Appends a node with an [`Op::Other`], and stores the operation that it refers to, with the operation's name.
    pub(crate) fn push_operation(
        &mut self,
        operation: (O, &'static str),
        inputs: &[NodeIndex],
        shape: u32,
        result_origin: ResultOrigin,
        location: &'static Location<'static>,
    ) -> Option<NodeIndex> {
        let index = self.push_list(Op::Other(self.operations.len() as u32), inputs, shape, result_origin, location)?;
        self.operations.push(operation);
        Some(index)
    }

    /// Appends a node with any number of inputs.
    pub(crate) fn push_list(
        &mut self,
        op: Op,
        inputs: &[NodeIndex],
        shape: u32,
        result_origin: ResultOrigin,
        location: &'static Location<'static>,
    ) -> Option<NodeIndex> {
        #[cfg(test)]
        if self.len() >= self.max_nodes.get() {
            return None;
        }
        let location = self.on_behalf_of.or(Some(location));
        self.set_locations(inputs, location);
        let index = self.expression.push_list(op, inputs, shape, result_origin)?;
        self.locations.push(location);
        Some(index)
    }

    /// Gives the line of code of a new node to each of its inputs that has no line of code yet. If the new node has
    /// none either, counts the node in `n_unlocated`.
    #[inline]
    fn set_locations(&mut self, inputs: &[NodeIndex], location: Option<&'static Location<'static>>) {
        if location.is_none() {
            self.n_unlocated += 1;
        } else if self.n_unlocated > 0 {
            self.set_input_locations(inputs, location);
        }
    }

    // This is a separate function, because few operations have a constant as an input, and `push` is inlined.
    #[inline(never)]
    fn set_input_locations(&mut self, inputs: &[NodeIndex], location: Option<&'static Location<'static>>) {
        for &input in inputs {
            let own = &mut self.locations[input as usize];
            self.n_unlocated -= usize::from(own.is_none());
            *own = own.or(location);
        }
    }

    /// Returns the name of the operation of a node: PyTorch's name, if there is one.
    pub(crate) fn name(&self, index: NodeIndex) -> &'static str {
        match self.op(index) {
            Op::Constant(_) | Op::Number(_) => "constant",
            Op::Variable(_) => "variable",
            DETACH => "detach",
            Op::Alias(number) => self.opaque_names[number as usize],
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(op) => op.name(),
            Op::Select => "where",
            Op::Expand => "expand",
            Op::Reshape => "reshape",
            Op::Reduce(op) => op.name(),
            Op::Matmul => "matmul",
            Op::View(number) => self.view(number).name(),
            Op::Embed(_) => "embed",
            Op::Cat(_) => "cat",
            Op::Other(number) => self.operations[number as usize].1,
        }
    }
}
