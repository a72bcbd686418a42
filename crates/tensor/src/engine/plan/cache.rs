//! Plans of the last expressions on this thread, found by comparing the expressions node by node: no hash, no mistake.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use crate::Float;
use crate::engine::plan::expression::{ByNode, Expression, Index};
use crate::engine::plan::schedule;
use crate::engine::plan::simplification::simplification;
use crate::engine::plan::steps::Plan;

/// Plans kept for a thread, at most: a step that reads many values has a plan for each.
const PLANS: usize = 1024;

/// Nodes of all plans kept for a thread, at most. A larger expression's planning is small beside its run.
const NODES: usize = 1 << 20;

/// A plan, and all that it was made from.
struct Entry<T> {
    expression: Expression<T>,
    roots: Vec<Index>,
    /// Nodes whose values were there before.
    known: Vec<Index>,
    simplify: bool,
    plan: Rc<Plan<T>>,
}

/// An entry of either element type.
struct Cached {
    entry: Box<dyn Any>,
    nodes: usize,
}

thread_local! {
    /// The last one used first.
    static CACHE: RefCell<Vec<Cached>> = const { RefCell::new(Vec::new()) };
}

/// The plan for the values of `roots`, where those of the nodes in `known` are there already: one that was made before for an
/// equal expression, or a new one.
pub fn plan_for<T: Float, V>(expression: &Expression<T>, known: &ByNode<V>, roots: &[Index]) -> Rc<Plan<T>> {
    let simplify = simplification();
    let serves = |entry: &Entry<T>| {
        entry.roots == roots
            && entry.simplify == simplify
            && entry.known.len() == known.len()
            && entry.expression.same(expression)
            && entry.known.iter().all(|node| known.contains_key(node))
    };
    let found = CACHE.with_borrow_mut(|cache| {
        let position = cache.iter().position(|cached| cached.entry.downcast_ref().is_some_and(serves))?;
        cache[..=position].rotate_right(1);
        cache[0].entry.downcast_ref::<Entry<T>>().map(|entry| Rc::clone(&entry.plan))
    });
    found.unwrap_or_else(|| {
        let plan = Rc::new(schedule::plan(expression, known, roots, simplify));
        let nodes = expression.len();
        if nodes <= NODES {
            let (roots, known) = (roots.to_vec(), known.keys().copied().collect());
            let entry = Entry { expression: expression.clone(), roots, known, simplify, plan: Rc::clone(&plan) };
            keep(Cached { entry: Box::new(entry), nodes });
        }
        plan
    })
}

fn keep(new: Cached) {
    CACHE.with_borrow_mut(|cache| {
        cache.insert(0, new);
        let mut nodes = 0;
        let fits = |cached: &Cached| {
            nodes += cached.nodes;
            nodes <= NODES
        };
        let count = cache.iter().take(PLANS).map(fits).take_while(|&fits| fits).count();
        cache.truncate(count.max(1));
    });
}
