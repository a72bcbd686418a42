//! The nodes of a tape between the inputs and outputs of a differentiation or batching. This file also sets the lines of code of the nodes
//! that a differentiation or batching records.

use std::panic::Location;

use wengert_tensor::plan::{Index, Inputs, Op};
use wengert_tensor::{Float, Site, compat};

use crate::rules::{self, Primitive};
use crate::{Error, Tape, Var};

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

/// The nodes through which derivatives (or batching) must pass. Each node of the tape from `first` to the last output has a slot, whether
/// it is on the path or not.
pub(crate) struct Path {
    /// The node that has the slot 0. The nodes after it have the following slots.
    pub(crate) first: Index,
    /// For each slot, true if its node is on the path.
    pub(crate) marks: Vec<bool>,
    traversal: Traversal,
    /// True if an operation on the path may refuse derivatives.
    pub(crate) may_refuse: bool,
}

impl Path {
    /// Returns the slot of a node, or `None` if the node is not on the path.
    #[inline]
    pub(crate) fn position(&self, index: Index) -> Option<usize> {
        // For a node before `first`, the difference wraps to a number that is larger than all slots.
        let slot = index.wrapping_sub(self.first) as usize;
        (self.marks.get(slot) == Some(&true)).then_some(slot)
    }
}

#[wengert_macros::precompiled]
impl<'t, T: Float> Tape<T> {
    /// Returns the path of the nodes up to `last` that depend on one of `sources` through the inputs that `traversal` allows. The path
    /// includes the `sources` up to `last`.
    pub(crate) fn dependents(&self, sources: &[Index], last: Index, traversal: Traversal) -> Path {
        let first = sources.iter().copied().min().unwrap_or(last).min(last);
        let mut marks = vec![false; (last - first + 1) as usize];
        for &source in sources {
            if source <= last {
                marks[(source - first) as usize] = true;
            }
        }
        let (record, mut may_refuse) = (self.record.borrow(), false);
        for slot in 0..marks.len() {
            let index = first + slot as Index;
            let op = record.op(index);
            let Some(from) = traversal.first_input(op) else { continue };
            // For an input before `first`, the difference wraps to a number that is larger than all slots.
            let marked = |&input: &Index| marks.get(input.wrapping_sub(first) as usize) == Some(&true);
            marks[slot] |= record.operands(index)[from..].iter().any(marked);
            may_refuse |= marks[slot] && rules::refuses_derivative(&record, op, 0);
        }
        Path { first, marks, traversal, may_refuse }
    }

    /// Returns an error if a derivative of one of `outputs` along `path` must pass through an operation that has no derivative. As in
    /// PyTorch, this is an error even if the derivative of another operation on the way is 0.
    pub(crate) fn check_differentiable(
        &self,
        path: &Path,
        outputs: impl Iterator<Item = Var<'t, T>>,
        at: Site,
    ) -> Result<(), Error> {
        if !path.may_refuse {
            return Ok(());
        }
        let mut reaching = vec![false; path.marks.len()];
        for slot in outputs.filter_map(|output| path.position(output.index)) {
            reaching[slot] = true;
        }
        let record = self.record.borrow();
        for slot in (0..reaching.len()).rev().filter(|&slot| path.marks[slot]) {
            let index = path.first + slot as Index;
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

    /// Returns, for each slot of `path`, true if its node is on the path and one of `outputs` is this node or depends on it.
    pub(crate) fn needed_for(&self, path: &Path, outputs: impl Iterator<Item = Var<'t, T>>) -> Vec<bool> {
        let mut reaching = vec![false; path.marks.len()];
        for slot in outputs.filter_map(|output| path.position(output.index)) {
            reaching[slot] = true;
        }
        let record = self.record.borrow();
        for slot in (0..reaching.len()).rev() {
            let index = path.first + slot as Index;
            let from = path.traversal.first_input(record.op(index)).filter(|_| path.marks[slot] && reaching[slot]);
            for &input in from.map_or(&[][..], |from| &record.operands(index)[from..]) {
                if let Some(below) = path.position(input) {
                    reaching[below] = true;
                }
            }
        }
        reaching
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
    pub(crate) fn on_behalf_of(&self, index: Index) -> (Op, Inputs) {
        let mut record = self.tape.record.borrow_mut();
        record.on_behalf_of = Some(record.location(index));
        (record.node(index).op, record.inputs(index))
    }

    /// Gives the line of code of node `index` to all nodes that are recorded from now on. Returns the operation of the node, which is
    /// differentiated for the caller at `at`.
    #[inline(always)]
    pub(crate) fn primitive(&self, index: Index, at: Site) -> Primitive<'t, T> {
        let (op, inputs) = self.on_behalf_of(index);
        Primitive { tape: self.tape, index, op, inputs, at, starts: Default::default() }
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
            // The derivative of `floor` is 0, before or after the other operation.
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
        // No derivative with respect to x passes through the operation.
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
