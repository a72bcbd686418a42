//! Plans an expression: lists the values to compute, places them in kernels (fused programs), and makes the steps.

use crate::DType;
use crate::engine::plan::definition::Id;
use crate::engine::plan::emission::Plan;
use crate::engine::plan::expression::{Expression, NodeIndex};
use crate::engine::plan::placements::Placements;
use crate::engine::plan::slices;
use crate::engine::plan::sums;
use crate::engine::plan::values::Values;

/// Returns the steps that compute the values of `roots` from the data of leaves, in arithmetic of the type `dtype`. If `simplify` is true,
/// simplifies the values and rewrites sums first.
pub fn plan(expression: &Expression, roots: &[NodeIndex], dtype: DType, simplify: bool) -> Plan {
    let mut values = Values::new(expression, roots, dtype, simplify);
    if simplify {
        values = slices::slice_terms(values, expression, roots);
        values = sums::rewrite_sums(values, expression, roots);
    }
    let live = live_values(expression, &values, roots);
    let mut placements = Placements::new(expression, &values, &live);
    let stored = placements.recompute(roots, &live);
    placements.into_plan(roots, &stored)
}

/// Returns, for each value, true if the values of `roots` depend on it.
fn live_values(expression: &Expression, values: &Values, roots: &[NodeIndex]) -> Vec<bool> {
    let mut live = vec![false; values.list.len()];
    for &root in roots {
        live[values.value_of(root) as usize] = true;
    }
    for id in (0..live.len()).rev() {
        if live[id] {
            values.reads(expression, id as Id).iter().for_each(|&read| live[read as usize] = true);
        }
    }
    live
}
