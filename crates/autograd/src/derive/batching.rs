//! Batching as a transformation of the tape: it records the operations of one example again, for a whole batch.
//!
//! The recorded operations of the single example are not changed. They are computed only if their values are requested.

use wengert_tensor::plan::NodeIndex;
use wengert_tensor::{Float, Site};

use super::path::{Sources, Traversal};
use crate::tape::{BatchedCall, RuleFailure};
use crate::{Error, Tape, Var, rules};

#[wengert_macros::precompiled]
impl<'t, T: Float> Tape<T> {
    /// Records each of `outputs` for a batch of `size` examples, with the batch dimension first. In each pair of `inputs`, the second
    /// variable replaces the first one and has the batch dimension first. An output that depends on no input is repeated. Returns an error
    /// if no memory can hold a result, a batching rule fails or returns a wrong result, or the tape is full.
    pub(crate) fn batch(
        &'t self,
        outputs: &[Var<'t, T>],
        inputs: &[(Var<'t, T>, Var<'t, T>)],
        size: usize,
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let sources: Vec<NodeIndex> = inputs.iter().map(|(input, _)| input.index).collect();
        let path = self.path(Sources::Nodes(&sources), outputs.iter().map(|output| output.index), Traversal::All);
        let mut batched: Vec<Option<Var<'t, T>>> = vec![None; path.nodes.len()];
        for &(input, batch) in inputs {
            if let Some(slot) = path.position(input.index) {
                batched[slot] = Some(batch);
            }
        }
        let derivation = self.start_derivation();
        for (slot, &index) in path.nodes.iter().enumerate() {
            if batched[slot].is_some() {
                continue;
            }
            let (op, operands) = derivation.on_behalf_of(index);
            let operand = |&operand: &NodeIndex| match path.position(operand).and_then(|slot| batched[slot]) {
                Some(batch) => (batch, true),
                None => (self.var_of(operand), false),
            };
            let inputs = operands.iter().map(operand).collect();
            let shape = self.record.borrow().shape(index).clone();
            let call = BatchedCall { inputs, size, shape, at, failure: RuleFailure::default() };
            batched[slot] = Some(rules::record_batched(self, index, op, &call)?);
        }
        drop(derivation);
        let batch = |output: &Var<'t, T>| path.position(output.index).and_then(|slot| batched[slot]);
        outputs.iter().map(|output| batch(output).map_or_else(|| output.repeat_for_batch(size, at), Ok)).collect()
    }

    /// Returns true if one of `nodes` depends on one of `sources`. This includes dependence through inputs that have no derivative.
    pub(crate) fn any_depends_on(&self, nodes: &[NodeIndex], sources: &[NodeIndex]) -> bool {
        !self.path(Sources::Nodes(sources), nodes.iter().copied(), Traversal::All).nodes.is_empty()
    }
}
