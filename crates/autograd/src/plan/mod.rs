//! What is run to get the values that were asked for: made from the recorded nodes, kept for the next tape that is the same.
//!
//! [`values`] says what must be computed, [`kernels`] in which steps. Neither looks at data; so a plan serves every tape with
//! the same nodes, shapes and numbers, and a training loop makes its plans in the first step only.

mod cache;
mod kernels;
#[cfg(test)]
mod tests;
mod values;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering};

use smallvec::SmallVec;
use wengert_tensor::program::{AxisSet, Binding, Program};
use wengert_tensor::{Float, Reduction, Shape, View};

pub(crate) use cache::{Spare, planned};

use crate::record::{Index, Record};

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<T> {
    /// A step before.
    Slot(u32),
    /// It is data, or was computed before.
    Known(Index),
    /// A number.
    Number(T),
}

#[derive(Debug)]
pub(crate) enum Work {
    /// A fused program over a shape, and how it was bound to its operands the last time.
    Fused(Box<Program>, Shape, RefCell<Option<Box<Binding>>>),
    /// A reduction of a value of this shape.
    Reduce(Reduction, AxisSet, Shape),
    /// A view of a value of this shape.
    View(View, Shape),
    /// The operation of a node, whose operands have these shapes.
    Node(Index, SmallVec<[Shape; 2]>),
}

#[derive(Debug)]
pub(crate) struct Step<T> {
    pub(crate) work: Work,
    pub(crate) reads: SmallVec<[Source<T>; 4]>,
    /// The slots of its results.
    pub(crate) writes: SmallVec<[u32; 4]>,
    /// Slots that nobody reads any more.
    pub(crate) drops: SmallVec<[u32; 4]>,
    /// The node whose line is to blame where memory fails.
    pub(crate) node: Index,
}

/// Steps, in order.
#[derive(Debug)]
pub(crate) struct Plan<T> {
    pub(crate) steps: Vec<Step<T>>,
    pub(crate) slots: usize,
    /// What was asked for, each with the shape it has for those who ask.
    pub(crate) roots: Vec<(Source<T>, Shape)>,
}

/// 0 until it is known; 1 off, 2 on.
static SIMPLIFY: AtomicU8 = AtomicU8::new(0);

/// Whether evaluation leaves out what changes nothing (a factor of 1) and computes equal values once. On, unless the
/// environment variable `WENGERT_SIMPLIFY` is `0` or [`set_simplification`] has switched it off.
pub fn simplification() -> bool {
    match SIMPLIFY.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var("WENGERT_SIMPLIFY").map_or(true, |value| value != "0");
            set_simplification(on);
            on
        }
        state => state == 2,
    }
}

/// Switches simplification on or off, for all threads. It changes no value but the sign of a NaN; this is for those who want
/// to see every recorded operation run.
pub fn set_simplification(on: bool) {
    SIMPLIFY.store(1 + u8::from(on), Ordering::Relaxed);
}

impl<T: Float> Plan<T> {
    /// The plan for `roots`; `order` are the nodes that must be computed for them, ascending.
    pub(crate) fn new(record: &Record<T>, order: &[Index], roots: &[Index], simplify: bool) -> Self {
        kernels::plan(record, values::Values::new(record, order, roots, simplify), roots)
    }
}
