//! Two shapes under the rules in force: broadcast, viewed as one-dimensional, or refused.

use crate::shape::broadcast;
use crate::shape::compat::rules::{self, BroadcastWarning, Rules, same_count};
use crate::shape::compat::warning::{self, Warning};
use crate::{Error, Shape, Site};

/// The decision for two operands of different shapes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// Both are expanded to this shape.
    Broadcast(Shape),
    /// The second is viewed in the shape of the first, which is the result's shape.
    Flat,
}

/// Resolves the broadcast of `a` and `b` under the rules in force, which may warn or refuse.
pub(crate) fn resolve(a: &Shape, b: &Shape, at: Site) -> Result<Resolved, Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[a, b], at)?;
    match broadcast::join_two(a, b, 1) {
        Ok(joined) => {
            warn_or_deny(rules, a, b, &joined, at)?;
            Ok(Resolved::Broadcast(joined))
        }
        Err(_) if rules.legacy_pointwise && same_count(a, b) => {
            warning::emit(Warning::Pointwise { shapes: (a.clone(), b.clone()), in_place: false, at });
            Ok(Resolved::Flat)
        }
        Err(mismatch) => Err(Error::Broadcast(mismatch, at)),
    }
}

/// [`resolve`] for `a` and `b` that are known to broadcast to `joined`.
pub(crate) fn check_resolved(joined: &Shape, a: &Shape, b: &Shape, at: Site) -> Result<(), Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[a, b], at)?;
    warn_or_deny(rules, a, b, joined, at)
}

/// [`resolve`] for a result that is written to `output` and so must have its shape.
///
/// A broadcast to another shape returns without a warning; the caller refuses it.
pub(crate) fn resolve_in_place(output: &Shape, other: &Shape, at: Site) -> Result<Resolved, Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[output, other], at)?;
    let joined = broadcast::join(&[output, other]);
    if joined.as_ref() == Ok(output) {
        warn_or_deny(rules, output, other, output, at)?;
    } else if rules.legacy_pointwise && same_count(output, other) {
        warning::emit(Warning::Pointwise { shapes: (output.clone(), other.clone()), in_place: true, at });
        return Ok(Resolved::Flat);
    }
    joined.map(Resolved::Broadcast).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Whether the rules in force allow tensors without dimensions.
#[inline]
pub fn zero_dim_allowed() -> bool {
    rules::never_strict() || Rules::current().zero_dim
}

/// Refuses tensors without dimensions under the strict rule.
pub(crate) fn check_zero_dim(shapes: &[&Shape], at: Site) -> Result<(), Error> {
    refuse_zero_dim(Rules::current(), shapes, at)
}

fn refuse_zero_dim(rules: Rules, shapes: &[&Shape], at: Site) -> Result<(), Error> {
    if rules.zero_dim {
        return Ok(());
    }
    match shapes.iter().position(|shape| shape.rank() == 0) {
        Some(operand) => {
            let shapes = shapes.iter().map(|&shape| shape.clone()).collect();
            Err(Error::ZeroDim { operand, shapes, at })
        }
        None => Ok(()),
    }
}

/// Warns of or refuses a broadcast that meets the condition of `rules`.
fn warn_or_deny(rules: Rules, a: &Shape, b: &Shape, joined: &Shape, at: Site) -> Result<(), Error> {
    if rules.broadcast_warning == BroadcastWarning::Off || !rules.when.holds(a, b, joined) {
        return Ok(());
    }
    let warning = Warning::Broadcast { shapes: (a.clone(), b.clone()), at };
    if rules.broadcast_warning == BroadcastWarning::Deny {
        let message = warning.message();
        return Err(Error::Denied { message, shapes: Box::new((a.clone(), b.clone())), at });
    }
    warning::emit(warning);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::shape::compat::{Condition, collect};

    use super::*;

    fn shape(sizes: &[usize]) -> Shape {
        Shape::from(sizes)
    }

    #[test]
    fn both_conditions_as_a_table() {
        type Row = (&'static [usize], &'static [usize], bool, bool);
        let table: &[Row] = &[
            // left, right, backward, suspicious
            (&[4, 1], &[4], true, true),
            (&[4], &[4, 1], true, true),
            (&[3, 3, 1], &[3, 3], true, true),
            (&[2, 2, 1], &[4], true, true),
            (&[4, 1], &[1, 4], true, false), // written on purpose
            (&[1, 4], &[4], true, false),    // the 1-D view gives the same elements
            (&[1], &[], true, false),
            (&[1, 1], &[1], true, false),
            (&[0, 1], &[0], true, false),  // nothing to go wrong
            (&[4, 1], &[3], false, false), // counts differ
            (&[4, 4], &[4], false, false),
            (&[4, 4], &[4, 4], false, false), // equal shapes
        ];
        for &(left, right, backward, suspicious) in table {
            let (a, b) = (shape(left), shape(right));
            let joined = broadcast::join(&[&a, &b]).unwrap();
            assert_eq!(Condition::Backward.holds(&a, &b, &joined), backward, "{a} {b} backward");
            assert_eq!(Condition::Suspicious.holds(&a, &b, &joined), suspicious, "{a} {b} suspicious");
        }
    }

    #[test]
    fn legacy_falls_back_only_where_counts_are_equal_and_shapes_do_not_broadcast() {
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let warnings = collect();
        let at = Site::here("add");
        assert_eq!(resolve(&shape(&[4, 2]), &shape(&[8]), at), Ok(Resolved::Flat));
        assert_eq!(resolve(&shape(&[4, 1]), &shape(&[4]), at), Ok(Resolved::Broadcast(shape(&[4, 4]))));
        assert!(resolve(&shape(&[4, 2]), &shape(&[7]), at).is_err());
        let at = Site::here("add_");
        assert_eq!(resolve_in_place(&shape(&[4, 1]), &shape(&[4]), at), Ok(Resolved::Flat));
        assert_eq!(resolve_in_place(&shape(&[1, 4]), &shape(&[4]), at), Ok(Resolved::Broadcast(shape(&[1, 4]))));
        let texts: Vec<String> = warnings.warnings().iter().map(Warning::message).collect();
        assert_eq!(
            texts,
            [
                "self and other not broadcastable, but have the same number of elements.  \
                 Falling back to deprecated pointwise behavior.",
                "other is not broadcastable to self, but they have the same number of elements.  \
                 Falling back to deprecated pointwise behavior.",
            ]
        );
    }

    #[test]
    fn in_place_warns_of_nothing_that_is_refused() {
        let _rules = Rules::pytorch().deny().when(Condition::Backward).scope();
        let at = Site::here("add_");
        assert_eq!(resolve_in_place(&shape(&[4, 1]), &shape(&[4]), at), Ok(Resolved::Broadcast(shape(&[4, 4]))));
        assert!(matches!(resolve_in_place(&shape(&[1, 4]), &shape(&[4]), at), Err(Error::Denied { .. })));
    }

    #[test]
    fn counts_that_overflow_are_not_equal() {
        let huge = shape(&[usize::MAX, 2]);
        assert!(!same_count(&huge, &shape(&[2, usize::MAX])));
    }
}
