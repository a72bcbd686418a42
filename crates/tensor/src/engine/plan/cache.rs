//! A cache of the most recently used plans. Each thread has its own cache. A lookup compares all nodes of the expressions and not their
//! hashes, because different expressions can have equal hashes.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use crate::Float;
use crate::engine::plan::emission::Plan;
use crate::engine::plan::expression::{Expression, Index};
use crate::engine::plan::planner;
use crate::engine::plan::simplification::simplification;
use crate::thresholds::plan::{MAX_PLANNED_NODES, MAX_PLANS};

/// A cached plan, with the expression, the roots and the options from which the plan was made.
struct Entry<T> {
    expression: Expression<T>,
    roots: Vec<Index>,
    simplify: bool,
    plan: Rc<Plan<T>>,
}

/// A cached plan, stored as an [`Entry`] of any element type.
struct Cached {
    entry: Box<dyn Any>,
    nodes: usize,
}

thread_local! {
    /// The cached plans. The most recently used plan comes first.
    static CACHE: RefCell<Vec<Cached>> = const { RefCell::new(Vec::new()) };
}

/// Returns the plan that computes the values of `roots` from the data of leaves. If this thread has a cached plan for an equal expression
/// with the same roots and setting of simplification, returns that plan.
#[wengert_macros::precompiled]
pub fn plan_for<T: Float>(expression: &Expression<T>, roots: &[Index]) -> Rc<Plan<T>> {
    let simplify = simplification();
    let serves =
        |entry: &Entry<T>| entry.roots == roots && entry.simplify == simplify && entry.expression.same(expression);
    // `try_with` fails while the thread ends, for example if a destructor evaluates a tape. The plan is then not cached.
    let found = CACHE.try_with(|cache| {
        let cache = &mut *cache.borrow_mut();
        let position = cache.iter().position(|cached| cached.entry.downcast_ref().is_some_and(serves))?;
        cache[..=position].rotate_right(1);
        cache[0].entry.downcast_ref::<Entry<T>>().map(|entry| Rc::clone(&entry.plan))
    });
    found.ok().flatten().unwrap_or_else(|| {
        let plan = Rc::new(planner::plan(expression, roots, simplify));
        let nodes = expression.len();
        if nodes <= MAX_PLANNED_NODES {
            let (expression, roots) = (expression.clone(), roots.to_vec());
            let entry = Entry { expression, roots, simplify, plan: Rc::clone(&plan) };
            keep(Cached { entry: Box::new(entry), nodes });
        }
        plan
    })
}

/// Adds a plan to the cache, and then removes the least recently used plans until the cache is within its limits.
fn keep(new: Cached) {
    let _ = CACHE.try_with(|cache| {
        let cache = &mut *cache.borrow_mut();
        cache.insert(0, new);
        let mut nodes = 0;
        let fits = |cached: &Cached| {
            nodes += cached.nodes;
            nodes <= MAX_PLANNED_NODES
        };
        let count = cache.iter().take(MAX_PLANS).map(fits).take_while(|&fits| fits).count();
        cache.truncate(count.max(1));
    });
}
