//! The nodes of a tape between the inputs and outputs of a transformation, and the source lines of the nodes that it records.

use std::panic::Location;

use wengert_tensor::plan::{Index, Inputs, Op};
use wengert_tensor::{Float, Site, compat};

use crate::rules::Primitive;
use crate::{Tape, Var};

/// A function that returns the position of an operation's first input through which a transformation passes. The transformation passes
/// through all later inputs too. `None` means that it passes through no input.
pub(crate) type Through = fn(Op) -> Option<usize>;

/// The nodes through which a transformation passes.
pub(crate) struct Path {
    /// The first node, which has slot 0.
    pub(crate) first: Index,
    /// For each slot, whether the transformation passes through its node.
    pub(crate) marks: Vec<bool>,
    through: Through,
}

impl Path {
    /// Returns the slot of a node. `None` if it is not on the path.
    #[inline]
    pub(crate) fn position(&self, index: Index) -> Option<usize> {
        let slot = index.checked_sub(self.first)? as usize;
        self.marks.get(slot).copied().unwrap_or(false).then_some(slot)
    }
}

#[wengert_macros::precompiled]
impl<'t, T: Float> Tape<T> {
    /// Returns the nodes up to `last` that depend on one of `sources` through the inputs that `through` allows. The result includes
    /// `sources`.
    pub(crate) fn dependents(&self, sources: &[Index], last: Index, through: Through) -> Path {
        let first = sources.iter().copied().min().unwrap_or(last).min(last);
        let mut marks = vec![false; (last - first + 1) as usize];
        for &source in sources {
            if source <= last {
                marks[(source - first) as usize] = true;
            }
        }
        let record = self.record.borrow();
        for slot in 0..marks.len() {
            let index = first + slot as Index;
            let Some(from) = through(record.op(index)) else { continue };
            let marked = |&input: &Index| input.checked_sub(first).is_some_and(|input| marks[input as usize]);
            marks[slot] |= record.operands(index)[from..].iter().any(marked);
        }
        Path { first, marks, through }
    }

    /// Returns, for each slot of `path`, whether an output depends on the slot's node.
    pub(crate) fn reaching(&self, path: &Path, outputs: impl Iterator<Item = Var<'t, T>>) -> Vec<bool> {
        let mut reaching = vec![false; path.marks.len()];
        for slot in outputs.filter_map(|output| path.position(output.index)) {
            reaching[slot] = true;
        }
        let record = self.record.borrow();
        for slot in (0..reaching.len()).rev() {
            let index = path.first + slot as Index;
            let from = (path.through)(record.op(index)).filter(|_| path.marks[slot] && reaching[slot]);
            for &input in from.map_or(&[][..], |from| &record.operands(index)[from..]) {
                if let Some(below) = path.position(input) {
                    reaching[below] = true;
                }
            }
        }
        reaching
    }

    /// Starts the recording of a derivative or a batch.
    pub(crate) fn derive(&'t self) -> Deriving<'t, T> {
        Deriving {
            tape: self,
            before: self.record.borrow().on_behalf_of,
            _rules: (!compat::zero_dim_allowed()).then(|| compat::Rules::current().zero_dim(true).scope()),
        }
    }
}

/// A guard for the recording of derivatives. While it exists, new nodes get the line of the operation that they differentiate or batch. The
/// compatibility rules are not applied, because they were applied to that operation.
///
/// Dropping it restores the previous state. Guards can be nested, because a rule may take derivatives itself.
pub(crate) struct Deriving<'t, T: Float> {
    tape: &'t Tape<T>,
    before: Option<&'static Location<'static>>,
    _rules: Option<compat::Guard>,
}

impl<'t, T: Float> Deriving<'t, T> {
    /// Sets the line of all nodes that are recorded from now on to the line of node `index`. Returns the operation and the inputs of node
    /// `index`.
    #[inline(always)]
    pub(crate) fn on_behalf_of(&self, index: Index) -> (Op, Inputs) {
        let mut record = self.tape.record.borrow_mut();
        record.on_behalf_of = Some(record.location(index));
        (record.node(index).op, record.inputs(index))
    }

    /// Sets the line of all nodes that are recorded from now on to the line of node `index`. Returns its operation, which is differentiated
    /// for the caller at `at`.
    #[inline(always)]
    pub(crate) fn primitive(&self, index: Index, at: Site) -> Primitive<'t, T> {
        let (op, inputs) = self.on_behalf_of(index);
        Primitive { tape: self.tape, index, op, inputs, at }
    }
}

impl<T: Float> Drop for Deriving<'_, T> {
    fn drop(&mut self) {
        self.tape.record.borrow_mut().on_behalf_of = self.before;
    }
}
