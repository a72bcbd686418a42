//! Decides what an operation does with two shapes under the compatibility rules: accept equal shapes, broadcast, view as one-dimensional,
//! or refuse.

use crate::shape::broadcast;
use crate::shape::compat::rules::{self, BroadcastWarning, Rules, has_same_numel};
use crate::shape::compat::warning::{self, Warning};
use crate::{Error, ExpandMismatch, Shape, Site};

/// The kind of operation that joins two shapes. The kind decides whether the user's compatibility rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastRule {
    /// An operation that the user calls. The compatibility rules may warn, refuse, or view both operands as one-dimensional.
    Operation,
    /// An operation that the user calls, and that writes its result to the first operand, whose shape may not change. The compatibility
    /// rules apply.
    InPlace,
    /// A step inside of an operation that the user calls. The compatibility rules do not apply.
    Step,
}

/// The way in which two operands get a common shape.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The shapes are equal.
    Equal,
    /// Expand both operands to this shape.
    Broadcast(Shape),
    /// View the second operand in the shape of the first, which is the shape of the result.
    Flat,
}

/// Returns true if the current compatibility rules accept all pairs of equal shapes. Then the caller need not check equal shapes further.
#[inline]
pub fn accepts_equal(rule: BroadcastRule) -> bool {
    rule == BroadcastRule::Step || zero_dim_allowed()
}

/// Returns the compatibility rules for an operation of this kind: the current rules, or rules that accept all shapes for
/// [`BroadcastRule::Step`]. The first lookup of the current rules may call the user's handler of warnings.
#[inline]
pub fn rules_for(rule: BroadcastRule) -> Rules {
    if rule == BroadcastRule::Step { Rules::pytorch() } else { Rules::current() }
}

/// Returns true if an operation only expands the array of shape `smaller` to the shape `larger`, and `rules` neither refuse the operation nor
/// warn. If the result is false, the caller must call `resolve`. `rules` are the result of `rules_for`.
#[inline]
pub fn only_expands(smaller: &Shape, larger: &Shape, rules: Rules) -> bool {
    broadcast::expands(smaller, larger)
        && rules.zero_dim
        && (rules.broadcast_warning == BroadcastWarning::Off || !rules.when.holds(smaller, larger, larger))
}

/// Decides how two operands of shapes `x` and `y` get a common shape, and reports a warning if the compatibility rules ask for one.
/// Operations that combine two arrays element by element call this function, unless the shapes are equal and [`accepts_equal`] is true.
///
/// Returns an error if the compatibility rules refuse the shapes. Also returns an error if the shapes do not broadcast, or if an operation
/// in place would need an output of another shape, unless the rules view the operands as one-dimensional.
pub(crate) fn resolve(x: &Shape, y: &Shape, rule: BroadcastRule, at: Site) -> Result<Resolved, Error> {
    let refused = |mismatch| Error::Broadcast(mismatch, at);
    if rule == BroadcastRule::Step {
        return broadcast::join_two(x, y, 1).map(Resolved::Broadcast).map_err(refused);
    }
    let rules = Rules::current();
    refuse_zero_dim(rules, &[x, y], at)?;
    let in_place = rule == BroadcastRule::InPlace;
    // A fast path: usually one operand already has the shape of the result.
    let joined = match (broadcast::expands(y, x), broadcast::expands(x, y)) {
        (true, _) => Ok(x.clone()),
        (_, true) => Ok(y.clone()),
        _ => broadcast::join_two(x, y, 1),
    };
    match joined {
        Ok(joined) if !in_place || joined == *x => {
            warn_or_deny(rules, x, y, &joined, at)?;
            Ok(Resolved::Broadcast(joined))
        }
        _ if rules.legacy_pointwise && has_same_numel(x, y) => {
            warning::emit(Warning::Pointwise { shapes: (x.clone(), y.clone()), in_place, at });
            Ok(Resolved::Flat)
        }
        Ok(joined) => Err(in_place_error(x, y, &joined, at)),
        Err(mismatch) => Err(refused(mismatch)),
    }
}

/// Returns the error for an operation in place on `output` whose broadcast shape `result` differs from the shape of `output`.
pub(crate) fn in_place_error(output: &Shape, other: &Shape, result: &Shape, at: Site) -> Error {
    let Some(source) = ExpandMismatch::between(other, output) else {
        unreachable!("if {other} expanded to {output}, the result would have that shape")
    };
    let (output, broadcast) = (Box::new(output.clone()), Box::new(result.clone()));
    Error::InPlaceShape { output, broadcast, source: Box::new(source), at }
}

/// Returns true if the current compatibility rules allow tensors without dimensions as operands.
#[inline]
pub fn zero_dim_allowed() -> bool {
    rules::never_strict() || Rules::current().zero_dim
}

/// Returns an error if one of `shapes` has no dimensions and the current compatibility rules refuse tensors without dimensions.
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

/// Checks a broadcast of `a` and `b` to `joined`. If the broadcast meets the condition `rules.when`, reports a warning or returns an error,
/// as `rules.broadcast_warning` says.
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
            // The columns: the left shape, the right shape, and whether the conditions `Backward` and `Suspicious` hold.
            (&[4, 1], &[4], true, true),
            (&[4], &[4, 1], true, true),
            (&[3, 3, 1], &[3, 3], true, true),
            (&[2, 2, 1], &[4], true, true),
            (&[4, 1], &[1, 4], true, false), // `Suspicious` is false: such shapes are written on purpose.
            (&[1, 4], &[4], true, false),    // `Suspicious` is false: the 1-D view gives the same elements.
            (&[1], &[], true, false),
            (&[1, 1], &[1], true, false),
            (&[0, 1], &[0], true, false), // `Suspicious` is false: the result is not larger than the operands.
            (&[4, 1], &[3], false, false), // The shapes have different numbers of elements.
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
    fn the_1d_view_needs_equal_counts_and_shapes_that_do_not_broadcast() {
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let warnings = collect();
        let (at, rule) = (Site::here("add"), BroadcastRule::Operation);
        assert_eq!(resolve(&shape(&[4, 2]), &shape(&[8]), rule, at), Ok(Resolved::Flat));
        assert_eq!(resolve(&shape(&[4, 1]), &shape(&[4]), rule, at), Ok(Resolved::Broadcast(shape(&[4, 4]))));
        assert!(resolve(&shape(&[4, 2]), &shape(&[7]), rule, at).is_err());
        assert!(resolve(&shape(&[4, 2]), &shape(&[8]), BroadcastRule::Step, at).is_err());
        let (at, rule) = (Site::here("add_"), BroadcastRule::InPlace);
        assert_eq!(resolve(&shape(&[4, 1]), &shape(&[4]), rule, at), Ok(Resolved::Flat));
        assert_eq!(resolve(&shape(&[1, 4]), &shape(&[4]), rule, at), Ok(Resolved::Broadcast(shape(&[1, 4]))));
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
    fn refused_in_place_operations_do_not_warn() {
        let _rules = Rules::pytorch().deny().when(Condition::Backward).scope();
        let (at, rule) = (Site::here("add_"), BroadcastRule::InPlace);
        assert!(matches!(resolve(&shape(&[4, 1]), &shape(&[4]), rule, at), Err(Error::InPlaceShape { .. })));
        assert!(matches!(resolve(&shape(&[1, 4]), &shape(&[4]), rule, at), Err(Error::Denied { .. })));
    }

    /// Checks that `only_expands` is true only where `resolve` expands one operand without a warning.
    #[test]
    fn silent_expansions_need_no_resolution() {
        let shapes = [&[][..], &[1], &[4], &[4, 1], &[1, 4], &[4, 4], &[1, 1], &[3, 4]].map(shape);
        let deny = Rules::pytorch().deny();
        // The columns: the rules, and the number of pairs of different shapes in which one shape expands to the other without a warning.
        for (rules, expected) in [
            (Rules::pytorch(), 23),
            (deny.when(Condition::Backward), 19),
            (deny, 23),
            (Rules::pytorch().zero_dim(false), 0),
        ] {
            let _rules = rules.scope();
            assert_eq!(rules_for(BroadcastRule::Operation), rules);
            assert_eq!(rules_for(BroadcastRule::Step), Rules::pytorch());
            let mut count = 0;
            for (x, y) in shapes.iter().flat_map(|x| shapes.iter().map(move |y| (x, y))) {
                let silent = only_expands(y, x, rules);
                for rule in [BroadcastRule::Operation, BroadcastRule::InPlace, BroadcastRule::Step] {
                    let resolved = resolve(x, y, rule, Site::here("add"));
                    assert!(!silent || resolved == Ok(Resolved::Broadcast(x.clone())), "{x} {y} {rule:?}");
                }
                count += usize::from(silent && x != y);
            }
            assert_eq!(count, expected, "{rules:?}");
        }
    }

    #[test]
    fn counts_that_overflow_are_not_equal() {
        let huge = shape(&[usize::MAX, 2]);
        assert!(!has_same_numel(&huge, &shape(&[2, usize::MAX])));
    }

    #[test]
    fn strict_rules_refuse_tensors_without_dimensions() {
        let (at, none, one) = (Site::here("add"), shape(&[]), shape(&[1]));
        {
            let _rules = Rules::pytorch().scope();
            assert!(zero_dim_allowed() && accepts_equal(BroadcastRule::Operation));
            assert!(check_zero_dim(&[&none], at).is_ok());
            assert!(resolve(&none, &none, BroadcastRule::Operation, at).is_ok());
        }
        let _rules = Rules::strict().scope();
        {
            let _inner = Rules::pytorch().scope();
            assert!(zero_dim_allowed());
        }
        assert!(!zero_dim_allowed() && !accepts_equal(BroadcastRule::Operation) && accepts_equal(BroadcastRule::Step));
        assert!(check_zero_dim(&[&one, &one], at).is_ok());
        let refused = check_zero_dim(&[&one, &none], at).unwrap_err();
        assert_eq!(refused, Error::ZeroDim { operand: 1, shapes: vec![one.clone(), none.clone()], at });
        assert!(resolve(&none, &one, BroadcastRule::Operation, at).is_err());
        assert!(resolve(&none, &one, BroadcastRule::Step, at).is_ok());
    }
}
