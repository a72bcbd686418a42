//! Plans of the last evaluations on this thread, found by comparing what was recorded, node by node: no hash, no mistake.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use wengert_tensor::{Float, Shape, View};

use super::steps::Plan;
use super::{kernels, simplification};
use crate::record::{Index, Node};
use crate::tape::Record;

/// Plans kept for a thread, at most.
const PLANS: usize = 16;

/// Nodes of all plans kept for a thread, at most. A larger program's planning is small beside its run.
const NODES: usize = 1 << 20;

/// A plan, and all that it was made from.
struct Entry<T: Float> {
    nodes: Vec<Node>,
    inputs: Vec<Index>,
    shapes: Vec<Shape>,
    views: Vec<View>,
    numbers: Vec<T>,
    roots: Vec<Index>,
    /// Nodes that had been computed before, ascending.
    known: Vec<Index>,
    simplify: bool,
    plan: Plan<T>,
}

thread_local! {
    /// The last one used first.
    static PLANS_OF_THREAD: RefCell<Vec<Rc<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

impl<T: Float> Entry<T> {
    fn serves(&self, record: &Record<T>, roots: &[Index], simplify: bool) -> bool {
        self.nodes.len() == record.len()
            && self.roots.iter().eq(roots)
            && self.simplify == simplify
            && self.known.len() == record.values.len()
            && self.inputs.iter().eq(&record.inputs)
            && self.numbers.len() == record.numbers.len()
            && self.nodes == record.nodes()
            && self.shapes == record.shapes()
            && self.views == record.views
            && std::iter::zip(&self.numbers, &record.numbers).all(|(x, y)| x.to_f64().to_bits() == y.to_f64().to_bits())
            && self.known.iter().all(|node| record.values.contains_key(node))
    }
}

/// Calls `run` with the plan for `roots`: one that was made before for the same program, or a new one.
pub(crate) fn planned<T: Float, R>(record: &Record<T>, roots: &[Index], run: impl FnOnce(&Plan<T>) -> R) -> R {
    let simplify = simplification::simplification();
    let found = PLANS_OF_THREAD.with_borrow_mut(|plans| {
        let serves = |plan: &Rc<dyn Any>| {
            plan.downcast_ref::<Entry<T>>().is_some_and(|entry| entry.serves(record, roots, simplify))
        };
        let position = plans.iter().position(serves)?;
        plans[..=position].rotate_right(1);
        Some(Rc::clone(&plans[0]))
    });
    if let Some(entry) = found.as_ref().and_then(|found| found.downcast_ref::<Entry<T>>()) {
        return run(&entry.plan);
    }
    let plan = kernels::plan(record, roots, simplify);
    if record.len() > NODES {
        return run(&plan);
    }
    let mut known: Vec<Index> = record.values.keys().copied().collect();
    known.sort_unstable();
    let entry = Rc::new(Entry {
        nodes: record.nodes().to_vec(),
        inputs: record.inputs.clone(),
        shapes: record.shapes().to_vec(),
        views: record.views.clone(),
        numbers: record.numbers.clone(),
        roots: roots.to_vec(),
        known,
        simplify,
        plan,
    });
    let kept: Rc<dyn Any> = Rc::clone(&entry) as Rc<dyn Any>;
    PLANS_OF_THREAD.with_borrow_mut(|plans| {
        plans.insert(0, kept);
        let size = |plan: &Rc<dyn Any>| match (plan.downcast_ref::<Entry<f32>>(), plan.downcast_ref::<Entry<f64>>()) {
            (Some(entry), _) => entry.nodes.len(),
            (_, Some(entry)) => entry.nodes.len(),
            _ => 0,
        };
        let mut nodes = 0;
        let fits = |plan: &Rc<dyn Any>| {
            nodes += size(plan);
            nodes <= NODES
        };
        let keep = plans.iter().take(PLANS).map(fits).take_while(|&fits| fits).count();
        plans.truncate(keep.max(1));
    });
    run(&entry.plan)
}
