//! A cache of the most recently used plans. Each thread has its own cache. A lookup compares the expressions themselves and not their hashes,
//! because different expressions can have equal hashes. Only expressions with the same identity count as equal without a comparison of their
//! nodes.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::plan::emission::Plan;
use crate::engine::plan::expression::{Expression, NodeIndex};
use crate::engine::plan::planner;
use crate::engine::plan::simplification::simplification;
use crate::thresholds::plan::{MAX_PLANNED_NODES, MAX_PLANS};
use crate::{DType, InstructionSet, instruction_set};

/// A cached plan, with the expression, the roots and the options from which the plan was made.
struct Entry {
    expression: Expression,
    roots: Vec<NodeIndex>,
    dtype: DType,
    /// The instruction set for which the plan was made. Planning computes functions of numbers, whose last bits depend on the set.
    instruction_set: InstructionSet,
    simplify: bool,
    plan: Rc<Plan>,
}

thread_local! {
    /// The cached plans. The most recently used plan comes first.
    static CACHE: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Returns the plan that computes the values of `roots` from the data of leaves, in arithmetic of the type `dtype`. If this thread has a
/// cached plan for an equal expression with the same roots, type, instruction set and setting of simplification, returns that plan.
/// Otherwise makes a plan, and caches it unless the expression is very large.
pub fn plan_for(expression: &Expression, roots: &[NodeIndex], dtype: DType) -> Rc<Plan> {
    let (instruction_set, simplify) = (instruction_set(), simplification());
    let matches = |entry: &Entry| {
        entry.roots == roots
            && (entry.dtype, entry.instruction_set, entry.simplify) == (dtype, instruction_set, simplify)
            && entry.expression.is_equal_to(expression)
    };
    // `try_with` fails while the thread ends, for example if a destructor evaluates a tape. The plan is then not cached.
    let found = CACHE.try_with(|cache| {
        let cache = &mut *cache.borrow_mut();
        let position = cache.iter().position(matches)?;
        cache[..=position].rotate_right(1);
        Some(Rc::clone(&cache[0].plan))
    });
    found.ok().flatten().unwrap_or_else(|| {
        let plan = Rc::new(planner::plan(expression, roots, dtype, simplify));
        if expression.len() <= MAX_PLANNED_NODES {
            let (expression, roots) = (expression.clone(), roots.to_vec());
            insert(Entry { expression, roots, dtype, instruction_set, simplify, plan: Rc::clone(&plan) });
        }
        plan
    })
}

/// Adds a plan to the cache, and then removes the least recently used plans until the cache is within its limits.
fn insert(new: Entry) {
    let _ = CACHE.try_with(|cache| {
        let cache = &mut *cache.borrow_mut();
        cache.insert(0, new);
        let mut nodes = 0;
        let fits = |entry: &Entry| {
            nodes += entry.expression.len();
            nodes <= MAX_PLANNED_NODES
        };
        let count = cache.iter().take(MAX_PLANS).map(fits).take_while(|&fits| fits).count();
        cache.truncate(count.max(1));
    });
}
