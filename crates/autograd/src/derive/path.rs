//! The nodes of a tape between the inputs and outputs of a differentiation or batching. This file also sets the lines of code of the nodes
//! that a differentiation or batching records.

use std::panic::Location;

use wengert_tensor::plan::{Inputs, NodeIndex, Op};
use wengert_tensor::{Float, Site, compat};

use super::slots::Slots;
use crate::rules::{self, Primitive};
use crate::{Error, Tape};

/// The inputs of an operation through which a path from a source to an output may pass.
#[derive(Clone, Copy)]
pub(crate) enum Traversal {
    /// Only the inputs through which a gradient may flow, or whose derivative is an error. Inputs of comparisons, of `detach` and masks of
    /// selections are left out.
    Differentiable,
    /// All inputs of the operation.
    All,
}

impl Traversal {
    /// Returns the position of the first input of `op` through which a path may pass. The path may pass through all later inputs too.
    /// Returns `None` if the path may pass through no input.
    #[inline]
    fn first_input(self, op: Op) -> Option<usize> {
        match self {
            Traversal::Differentiable => rules::first_differentiable_input(op),
            Traversal::All => Some(0),
        }
    }
}

/// The nodes at which paths start.
#[derive(Clone, Copy)]
pub(crate) enum Sources<'a> {
    /// These nodes.
    Nodes(&'a [NodeIndex]),
    /// All variables: leaves whose gradient `backward` computes.
    Variables,
}

/// The nodes through which derivatives (or batching) must pass. Each node is a source or depends on one. Each node is also an output, or an
/// output depends on it.
pub(crate) struct Path {
    /// The nodes in the order of the tape. The slot of a node is its position in this list.
    pub(crate) nodes: Vec<NodeIndex>,
    slots: Slots,
    traversal: Traversal,
    /// True if an operation on the path may refuse derivatives.
    pub(crate) may_refuse: bool,
}

impl Path {
    /// Returns the slot of a node, or `None` if the node is not on the path.
    #[inline]
    pub(crate) fn position(&self, index: NodeIndex) -> Option<usize> {
        self.slots.get(index)
    }
}

#[wengert_macros::precompiled]
impl<'t, T: Float> Tape<T> {
    /// Returns the path from `sources` to `outputs` through the inputs that `traversal` allows. The time for this does not depend on the size
    /// of the tape. It depends on the number of sources, and on the number of nodes on which the outputs depend. Nodes before the first
    /// source do not count.
    pub(crate) fn path(
        &self,
        sources: Sources<'_>,
        outputs: impl Iterator<Item = NodeIndex>,
        traversal: Traversal,
    ) -> Path {
        let record = self.record.borrow();
        let mut slots = Slots::take(record.len());
        let first = match sources {
            Sources::Nodes(list) => {
                list.iter().for_each(|&source| slots.mark_source(source));
                list.iter().copied().min().unwrap_or(NodeIndex::MAX)
            }
            Sources::Variables => 0,
        };
        let read = |node: NodeIndex| {
            let from = traversal.first_input(record.op(node));
            from.map_or(&[][..], |from| &record.operands(node)[from..])
        };
        let mut nodes: Vec<NodeIndex> = outputs.filter(|&output| output >= first && slots.visit(output)).collect();
        let mut visited = 0;
        while let Some(&node) = nodes.get(visited) {
            visited += 1;
            for &input in read(node) {
                if input >= first && slots.visit(input) {
                    nodes.push(input);
                }
            }
        }
        slots.sort(&mut nodes);
        let mut may_refuse = false;
        nodes.retain(|&node| {
            let is_source = match sources {
                Sources::Nodes(_) => slots.is_visited_source(node),
                Sources::Variables => record.is_variable(node),
            };
            let is_on_path = is_source || read(node).iter().any(|&input| slots.get(input).is_some());
            if is_on_path {
                slots.push(node);
                may_refuse |= rules::refuses_derivative(&record, record.op(node), 0);
            }
            is_on_path
        });
        Path { nodes, slots, traversal, may_refuse }
    }

    /// Returns an error if a derivative of one of `outputs` along `path` must pass through an operation that has no derivative. As in
    /// PyTorch, this is an error even if the derivative of another operation on the way is 0.
    pub(crate) fn check_differentiable(
        &self,
        path: &Path,
        outputs: impl Iterator<Item = NodeIndex>,
        at: Site,
    ) -> Result<(), Error> {
        if !path.may_refuse {
            return Ok(());
        }
        let mut reaching = vec![false; path.nodes.len()];
        for slot in outputs.filter_map(|output| path.position(output)) {
            reaching[slot] = true;
        }
        let record = self.record.borrow();
        for (slot, &index) in path.nodes.iter().enumerate().rev() {
            let op = record.op(index);
            let from = path.traversal.first_input(op).filter(|_| reaching[slot]).unwrap_or(usize::MAX);
            for (position, &input) in record.operands(index).iter().enumerate().skip(from) {
                let Some(below) = path.position(input) else { continue };
                if rules::refuses_derivative(&record, op, position) {
                    let (operation, recorded) = (record.name(index), record.location(index));
                    return Err(Error::NotDifferentiable { operation, recorded, at });
                }
                reaching[below] |= !rules::is_constant_in(&record, op, position);
            }
        }
        Ok(())
    }

    /// Starts the recording of a derivative or a batch, which ends when the returned guard is dropped.
    pub(crate) fn start_derivation(&'t self) -> DerivationGuard<'t, T> {
        DerivationGuard {
            tape: self,
            before: self.record.borrow().on_behalf_of,
            _rules: (!compat::zero_dim_allowed()).then(|| compat::Rules::current().zero_dim(true).scope()),
        }
    }
}

/// A guard for the recording of derivatives and batches. While the guard exists, a new node gets the line of code of the operation that is
/// differentiated or batched. Tensors without dimensions are allowed, whatever the compatibility rules say, because the rules were already
/// applied to that operation.
///
/// Dropping the guard restores the previous state. Guards can be nested, because a rule may take derivatives itself.
pub(crate) struct DerivationGuard<'t, T: Float> {
    tape: &'t Tape<T>,
    before: Option<&'static Location<'static>>,
    _rules: Option<compat::Guard>,
}

impl<'t, T: Float> DerivationGuard<'t, T> {
    /// Gives the line of code of node `index` to all nodes that are recorded from now on. Returns the operation and the inputs of node
    /// `index`.
    #[inline(always)]
    pub(crate) fn on_behalf_of(&self, index: NodeIndex) -> (Op, Inputs) {
        let mut record = self.tape.record.borrow_mut();
        record.on_behalf_of = Some(record.location(index));
        (record.node(index).op, record.inputs(index))
    }

    /// Gives the line of code of node `index` to all nodes that are recorded from now on. Returns the operation of the node, which is
    /// differentiated for the caller at `at`.
    #[inline(always)]
    pub(crate) fn primitive(&self, index: NodeIndex, at: Site) -> Primitive<'t, T> {
        let (op, inputs) = self.on_behalf_of(index);
        Primitive { tape: self.tape, index, op, inputs, at, part_starts: Default::default() }
    }
}

impl<T: Float> Drop for DerivationGuard<'_, T> {
    fn drop(&mut self) {
        self.tape.record.borrow_mut().on_behalf_of = self.before;
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Site;
    use wengert_tensor::ops::TensorLike;
    use wengert_tensor::prelude::*;

    use super::{Sources, Traversal};
    use crate::{Call, Error, Operation, Tape, Var};

    /// An operation that returns its input and has no derivative.
    struct Opaque;

    impl<T: Float> Operation<T> for Opaque {
        fn name(&self) -> &'static str {
            "opaque"
        }

        fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
            Ok(inputs[0].clone())
        }

        fn vjp<'t>(&self, _: &Call<'t, T>, _: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
            Some(g)
        }

        fn is_differentiable(&self) -> bool {
            false
        }
    }

    /// A path has only the nodes between its sources and its outputs, so that the time of a derivative does not grow with the tape.
    #[test]
    fn a_path_has_no_nodes_beside_it() {
        let tape = Tape::<f64>::new();
        let [x, y] = [1.0, 2.0].map(|value| tape.var(&Tensor::scalar(value)));
        let others: Vec<Var<'_, f64>> = (0..100).map(|k| (x + f64::from(k)).sin()).collect();
        let product = x * y;
        let (first, last) = (product.exp(), (product + others[50].detach()).exp());
        let path = |sources: Sources<'_>, outputs: &[Var<'_, f64>], traversal| {
            let path = tape.path(sources, outputs.iter().map(|output| output.index), traversal);
            assert!(
                (0..tape.len() as u32).all(|node| path.position(node) == path.nodes.iter().position(|&n| n == node))
            );
            path.nodes
        };
        let [source, other] = [x, y].map(|x| x.index);
        let of_x = Sources::Nodes(&[source]);
        let expected = [source, product.index, first.index];
        assert_eq!(path(of_x, &[first], Traversal::Differentiable), expected);
        assert_eq!(path(of_x, &[first, x], Traversal::All), expected);
        let both = path(Sources::Variables, &[last, first], Traversal::Differentiable);
        assert_eq!(both, [source, other, product.index, first.index, last.index - 1, last.index]);
        // `last` also depends on `others[50]`, but through `detach`, which only `Traversal::All` follows.
        assert_eq!(path(of_x, &[last], Traversal::All).len(), both.len() - 1 + 2);
        assert_eq!(path(of_x, &[y], Traversal::All), [0; 0]);
        assert_eq!(path(Sources::Nodes(&[last.index]), &[first], Traversal::All), [0; 0]);
        assert_eq!(path(Sources::Nodes(&[]), &[first], Traversal::All), [0; 0]);
    }

    #[test]
    fn both_modes_refuse_the_same_paths() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.5, 2.5]));
        fn custom(x: Var<'_, f64>) -> Var<'_, f64> {
            x.tape().apply(Opaque, &[x]).sum(..)
        }
        let three = || tape.constant(3.0);
        let refused = [
            ("floor_divide", x.floor_divide(2.0).sum(..)),
            // This is an error even if the derivative is multiplied by 0, the derivative of a `floor` before or after the operation.
            ("floor_divide", x.floor_divide(2.0).floor().sum(..)),
            ("floor_divide", x.floor().floor_divide(2.0).sum(..)),
            ("floor_divide", (x.floor_divide(2.0).floor() + x).sum(..)),
            ("opaque", custom(x)),
            ("opaque", custom(x.floor())),
            ("opaque", custom(x).floor()),
            ("opaque", custom(x).floor() + x.sum(..)),
            ("zeta", x.zeta(three()).sum(..)),
            ("zeta", x.floor().zeta(three()).sum(..)),
            ("zeta", x.zeta(three()).floor().sum(..)),
        ];
        for (k, (name, y)) in refused.into_iter().enumerate() {
            for (mode, error) in [
                ("reverse", y.try_grad([x]).map(|_| ())),
                ("backward", y.try_backward().map(|_| ())),
                ("forward", y.try_jvp(&[(x, x)]).map(|_| ())),
            ] {
                let error = error.expect_err(&format!("{k} {mode}"));
                assert!(
                    matches!(error, Error::NotDifferentiable { operation, .. } if operation == name),
                    "{k} {mode}: {error}"
                );
            }
        }
        // The derivatives of these sums with respect to x use none of the missing derivatives.
        let accepted = [
            x.detach().floor_divide(2.0).sum(..) + x.sum(..),
            custom(three()) + x.sum(..),
            three().zeta(x + 1.0).floor().sum(..) + x.sum(..),
            x.with_value(&x.floor_divide(2.0), Site::here("straight")).unwrap().sum(..),
        ];
        for (k, y) in accepted.into_iter().enumerate() {
            assert_eq!(y.try_grad([x]).unwrap()[0].value().to_vec(), [1.0, 1.0], "{k}");
            assert_eq!(y.try_jvp(&[(x, x)]).unwrap().item(), 4.0, "{k}");
        }
    }
}
