//! The part of a tape between the inputs and outputs of a transformation, and the source lines under which its nodes are recorded.

use std::panic::Location;

use wengert_tensor::plan::{Index, Inputs, Op};
use wengert_tensor::{Float, Site, compat};

use crate::rules::Primitive;
use crate::{Tape, Var};

/// The first input of an operation that a transformation passes through, with all later ones; `None` if there is none.
pub(crate) type Through = fn(Op) -> Option<usize>;

/// For the nodes starting at `first`, whether a transformation passes through them.
pub(crate) struct Path {
    pub(crate) first: Index,
    pub(crate) marks: Vec<bool>,
    through: Through,
}

impl Path {
    /// The position of a node on the path.
    pub(crate) fn position(&self, index: Index) -> Option<usize> {
        let slot = index.checked_sub(self.first)? as usize;
        self.marks.get(slot).copied().unwrap_or(false).then_some(slot)
    }
}

impl<'t, T: Float> Tape<T> {
    /// The nodes up to `last` that depend on one of `sources` (which are included) through the inputs that `through` says.
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

    /// Which nodes of `path` an output depends on.
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

    /// Starts to record a derivative, or a batch.
    pub(crate) fn derive(&'t self) -> Deriving<'t, T> {
        Deriving {
            tape: self,
            before: self.record.borrow().on_behalf_of,
            _rules: (!compat::zero_dim_allowed()).then(|| compat::Rules::current().zero_dim(true).scope()),
        }
    }
}

/// While this exists, recorded nodes get the line of the operation that they differentiate or batch, and the compatibility rules are not
/// applied: they were when that operation was recorded.
///
/// Dropping it restores the previous state, because a rule may take derivatives itself.
pub(crate) struct Deriving<'t, T: Float> {
    tape: &'t Tape<T>,
    before: Option<&'static Location<'static>>,
    _rules: Option<compat::Guard>,
}

impl<'t, T: Float> Deriving<'t, T> {
    /// Gives the nodes that are recorded from now on the line of node `index`. Returns its operation and its inputs.
    #[inline(always)]
    pub(crate) fn on_behalf_of(&self, index: Index) -> (Op, Inputs) {
        let mut record = self.tape.record.borrow_mut();
        record.on_behalf_of = Some(record.location(index));
        (record.node(index).op, record.inputs(index))
    }

    /// Gives the nodes that are recorded from now on the line of node `index`. Returns its operation, to be differentiated for `at`.
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
