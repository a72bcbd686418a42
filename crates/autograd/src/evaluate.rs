//! Computes the values of variables. The engine plans and runs the tape's expression.
//!
//! An evaluation computes only the nodes that the requested nodes and their groups depend on. [`Tape::evaluate`] keeps the requested values,
//! the values of the groups, and some values that later evaluations may read. The evaluation of recorded gradients keeps no values.

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::Evaluate;
use wengert_tensor::plan::{ByNode, Expression, NodeIndex, Op, ResultOrigin, Subgraph, plan_for};
use wengert_tensor::{self as tensor, Float, Site, Tensor};

use crate::record::Evaluations;
use crate::tape::Record;
use crate::{Error, Tape, Var};

/// The maximum number of values that one evaluation keeps for later evaluations, in addition to the values of the requested nodes and their
/// groups. An evaluation that would have to keep more keeps none of them, except after [`MANY_EVALUATIONS`] evaluations. Keeping values costs
/// memory; computing them again costs time.
const MAX_FRONTIER: usize = 16;

/// The number of evaluations of a tape after which [`MAX_FRONTIER`] no longer limits the number of kept values. After this number of
/// evaluations, later ones are likely to read the values again. [`MAX_KEPT_BYTES`] still limits the size of the values.
const MANY_EVALUATIONS: usize = 3;

/// The maximum size, in bytes, of the values that one evaluation keeps in addition to the values of the requested nodes and their groups.
const MAX_KEPT_BYTES: usize = 256 << 20;

#[twins]
#[precompiled]
impl<T: Float> Tape<T> {
    /// Returns the values of `vars`. One evaluation computes them all, so they share the computation of common operands.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let y = x.exp();
    /// let [sum, product] = tape.values([y.sum(..), y.prod(..)]);
    /// assert_eq!(product.item().ln().round(), 3.0);
    /// # let _ = sum;
    /// ```
    ///
    /// # Errors
    ///
    /// If a variable belongs to another tape, there is not enough memory, a custom operation fails, or an operation refuses its operands'
    /// values.
    pub fn try_values<const N: usize>(&self, vars: [Var<'_, T>; N]) -> Result<[Tensor<T>; N], Error> {
        let at = Site::here("values");
        self.check_owns(vars.iter().copied(), at)?;
        let mut values = self.evaluate(&vars.map(|var| var.index), at)?.into_iter();
        Ok(vars.map(|_| values.next().unwrap_or_else(|| unreachable!("a value for each variable"))))
    }

    /// Returns the values of any number of variables, as [`values`](Self::values) does.
    ///
    /// # Errors
    ///
    /// As for [`values`](Self::values).
    pub fn try_values_slice(&self, vars: &[Var<'_, T>]) -> Result<Vec<Tensor<T>>, Error> {
        let at = Site::here("values_slice");
        self.check_owns(vars.iter().copied(), at)?;
        self.evaluate(&vars.iter().map(|var| var.index).collect::<Vec<_>>(), at)
    }

    /// Returns the values of the nodes `roots`, in order. If the tape does not have all these values yet, also computes the other nodes of
    /// their groups. Then stores the values of all these nodes on the tape, except for leaves, and some values that later evaluations may
    /// read.
    pub(crate) fn evaluate(&self, roots: &[NodeIndex], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        if self.record.borrow().n_observers > 0 {
            self.record.borrow_mut().observed_nodes.extend_from_slice(roots);
        }
        let NodeValues { nodes, values } = {
            let record = self.record.borrow();
            let value = |&root: &NodeIndex| record.leaf(root).or_else(|| record.values.get(&root).cloned());
            if let Some(known) = roots.iter().map(value).collect() {
                return Ok(known);
            }
            let wanted = record.with_groups(roots);
            match record.evaluations {
                None => {
                    debug_assert!(record.values.is_empty(), "values are kept only after an evaluation");
                    let values = record.run(&plan_for(&record, &wanted, T::DTYPE), at)?;
                    NodeValues { nodes: wanted, values }
                }
                Some(evaluations) => record.evaluate_again(wanted, evaluations, at)?,
            }
        };
        let mut record = self.record.borrow_mut();
        let Evaluations { last_node, count } = record.evaluations.unwrap_or_default();
        let last_node = nodes.iter().fold(last_node, |last, &node| last.max(node));
        record.evaluations = Some(Evaluations { last_node, count: count + 1 });
        for (&root, value) in nodes.iter().zip(&values) {
            if record.leaf(root).is_none() {
                record.values.insert(root, value.clone());
                record.note_expansion(root, value);
            }
        }
        Ok(values.into_iter().take(roots.len()).collect())
    }

    /// Returns the values of the nodes `roots` in order, and drops the tape. If this is the first evaluation of the tape, no value is
    /// stored for later evaluations.
    pub(crate) fn into_values(self, roots: &[NodeIndex], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let record = self.record.borrow();
        if record.evaluations.is_some() {
            drop(record);
            return self.evaluate(roots, at);
        }
        debug_assert!(record.values.is_empty(), "values are kept only after an evaluation");
        record.run(&plan_for(&record, roots, T::DTYPE), at)
    }
}

/// Nodes with their values.
struct NodeValues<T: Float> {
    nodes: Vec<NodeIndex>,
    values: Vec<Tensor<T>>,
}

#[precompiled]
impl<T: Float> Record<T> {
    /// Returns the values of the nodes `wanted` on a tape that was evaluated before. `evaluations` summarizes the earlier evaluations.
    ///
    /// Nodes after `last_node` may read a node up to `last_node` whose value is not stored. That node is computed again. Within the limits
    /// of [`MAX_FRONTIER`], [`MANY_EVALUATIONS`] and [`MAX_KEPT_BYTES`], its value is then kept. The kept values follow the values of
    /// `wanted`.
    fn evaluate_again(
        &self,
        mut wanted: Vec<NodeIndex>,
        Evaluations { last_node, count }: Evaluations,
        at: Site,
    ) -> Result<NodeValues<T>, Error> {
        let part = Subgraph::new(self, &|node| self.values.contains_key(&node), &wanted);
        let frontier = part.frontier(last_node);
        if frontier.len() <= MAX_FRONTIER || count >= MANY_EVALUATIONS {
            let mut bytes = 0;
            wanted.extend(frontier.into_iter().filter(|&node| {
                bytes = self.shape(node).numel().saturating_mul(size_of::<T>()).saturating_add(bytes);
                bytes <= MAX_KEPT_BYTES
            }));
        }
        let roots: Vec<NodeIndex> = wanted.iter().map(|&node| part.index_of(node)).collect();
        #[cfg(test)]
        self.n_recomputed.set(self.n_recomputed.get() + part.work());
        let plan = plan_for(&part.expression, &roots, T::DTYPE);
        let values = TapePart { record: self, part, remote: None }.run(&plan, at)?;
        Ok(NodeValues { nodes: wanted, values })
    }
}

/// The part of a tape that an evaluation computes.
pub(crate) struct TapePart<'r, T: Float> {
    record: &'r Record<T>,
    part: Subgraph,
    /// The parameters whose values are not in the model's memory, or `None` for an evaluation that reads all parameters from the tape.
    remote: Option<RemoteParameters<'r, T>>,
}

/// Parameters whose values are not in the model's memory.
pub(crate) struct RemoteParameters<'r, T: Float> {
    /// The id of each parameter, by its node.
    pub(crate) ids: ByNode<u64>,
    /// The function that returns the values of the parameter with the given id.
    pub(crate) fetch: &'r dyn Fn(u64) -> Result<Tensor<T>, Error>,
}

impl<'r, T: Float> TapePart<'r, T> {
    /// Returns the part of a tape that the nodes `roots` need, and the positions of these nodes in the part.
    pub(crate) fn new(
        record: &'r Record<T>,
        roots: &[NodeIndex],
        remote: Option<RemoteParameters<'r, T>>,
    ) -> (Self, Vec<NodeIndex>) {
        let part = Subgraph::new(record, &|node| record.values.contains_key(&node), roots);
        let positions = roots.iter().map(|&node| part.index_of(node)).collect();
        (TapePart { record, part, remote }, positions)
    }

    /// Returns the index on the tape of a node that has the index `node` in the part.
    fn node(&self, node: NodeIndex) -> NodeIndex {
        self.part.nodes[node as usize]
    }
}

impl<T: Float> Evaluate<T> for TapePart<'_, T> {
    type Error = Error;

    fn expression(&self) -> &Expression {
        &self.part.expression
    }

    fn known(&self, node: NodeIndex) -> Option<&Tensor<T>> {
        self.record.known(self.node(node))
    }

    fn site(&self, node: NodeIndex) -> Site {
        self.record.site(self.node(node))
    }

    fn run_other(&self, node: NodeIndex, operands: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        self.record.run_other(self.node(node), operands)
    }

    fn is_remote(&self, node: NodeIndex) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.ids.contains_key(&self.node(node)))
    }

    fn fetch(&self, node: NodeIndex) -> Result<Tensor<T>, Error> {
        match &self.remote {
            Some(remote) => (remote.fetch)(remote.ids[&self.node(node)]),
            None => unreachable!("all parameters are in the model's memory"),
        }
    }
}

#[twins]
impl<T: Float> Var<'_, T> {
    /// Returns the value of this variable. Computes the value if the tape has not kept it from an earlier evaluation.
    ///
    /// # Errors
    ///
    /// If there is not enough memory, a custom operation fails, or an operation refuses its operands' values.
    pub fn try_value(self) -> Result<Tensor<T>, Error> {
        let mut values = self.tape.evaluate(&[self.index], Site::here("value"))?;
        Ok(values.swap_remove(0))
    }

    /// Returns the value of a variable that has exactly one element. PyTorch: `item`.
    ///
    /// # Errors
    ///
    /// If the number of elements is not one, there is not enough memory, a custom operation fails, or an operation refuses its operands'
    /// values.
    pub fn try_item(self) -> Result<T, Error> {
        let at = Site::here("item");
        let shape = self.shape();
        if shape.numel() != 1 {
            return Err(Error::NotOneNumber { shape, at });
        }
        Ok(self.tape.evaluate(&[self.index], at)?[0].try_item()?)
    }
}

impl<T: Float> Evaluate<T> for Record<T> {
    type Error = Error;

    fn expression(&self) -> &Expression {
        self
    }

    fn known(&self, node: NodeIndex) -> Option<&Tensor<T>> {
        if let Some(before) = self.unexpanded(node) {
            return Some(before);
        }
        match self.op(node) {
            Op::Constant(number) | Op::Variable(number) => Some(self.leaf_data(number)),
            _ => self.values.get(&node),
        }
    }

    fn site(&self, node: NodeIndex) -> Site {
        Site { operation: self.name(node), location: self.location(node) }
    }

    fn run_other(&self, node: NodeIndex, operands: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        let Op::Other(number) = self.op(node) else { unreachable!("node %{node} is a primitive") };
        let value = self.operation(number).run(operands).map_err(|mut error| {
            // An operation does not know which line of code recorded it.
            if let Error::Tensor(tensor::Error::OutOfMemory { at, .. }) = &mut error {
                at.location = self.location(node);
            }
            error
        })?;
        let shape =
            if self.result_origin(node) == ResultOrigin::CheckedInput { operands[0].shape() } else { self.shape(node) };
        if value.shape() != shape {
            let message = format!(
                "'{}' gave a result of shape {}, but said {shape}\n  hint: `run` returns a result of the shape that `shape` returns",
                self.name(node),
                value.shape()
            );
            return Err(Error::Refused { message, at: self.site(node) });
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
