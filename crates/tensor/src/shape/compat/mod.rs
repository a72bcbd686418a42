//! PyTorch's compatibility with the time before broadcasting.
//!
//! Before version 0.2, PyTorch ran pointwise operations on tensors of different shapes but equal element count by
//! viewing both as one-dimensional. Broadcasting changed `add(ones(4, 1), randn(4))` from `[4, 1]` to `[4, 4]` without
//! a word, and that is still the commonest silent mistake of a training script: predictions `[n, 1]` against targets
//! `[n]`, whose difference is `[n, n]`, whose mean is a number like any other.
//!
//! | | what | default here | PyTorch today |
//! |---|---|---|---|
//! | [`broadcast_warning`] | say so, or refuse, where both readings exist | warn | off: a switch that does nothing |
//! | [`when`] | which broadcasts are meant | [`Suspicious`] | [`Backward`] |
//! | [`legacy_pointwise`] | the 1-D view where shapes do not broadcast | off | removed |
//! | [`zero_dim`] | whether a tensor may have no dimension | yes | yes |
//!
//! [`broadcast_warning`]: Rules::broadcast_warning
//! [`when`]: Rules::when
//! [`legacy_pointwise`]: Rules::legacy_pointwise
//! [`zero_dim`]: Rules::zero_dim
//! [`Suspicious`]: Condition::Suspicious
//! [`Backward`]: Condition::Backward
//!
//! [`Rules`] hold for a scope of one thread ([`Rules::scope`]), or for the process ([`set_process`]), or come from the
//! environment variable `WENGERT_BROADCAST_WARNING`: `off`, `warn` or `deny`, alone or with the condition, as in
//! `warn:backward`. The nearest wins. A warning is given once per line of code, to a [`Collector`] of the thread, or
//! else to the handler of the process ([`set_handler`]), which prints to standard error unless told otherwise.
//!
//! ```
//! use wengert_tensor::compat::{self, Rules};
//! use wengert_tensor::prelude::*;
//!
//! let prediction = Tensor::<f32>::ones([4, 1]);
//! let target = Tensor::<f32>::ones([4]);
//!
//! let warnings = compat::collect();
//! let difference = &prediction - &target;
//! assert_eq!(difference.shape(), &[4, 4]); // not the [4] that was meant
//! assert!(warnings.warnings()[0].to_string().contains("UserWarning: self and other do not have the same shape"));
//!
//! let _rules = Rules::default().deny().scope();
//! assert!(prediction.try_sub(&target).is_err());
//! assert!(prediction.try_sub(&target.unsqueeze(1)).is_ok());
//! ```
//!
//! This module knows shapes and where they met. It does not know elements, and what comes of a decision (expand both,
//! view one under the other's shape, refuse) is done by the operations, eager and recorded alike.

mod rules;
mod warning;

pub use rules::{BroadcastWarning, Condition, Guard, Rules, VARIABLE, set_process};
pub use warning::{Collector, Warning, collect, log_handler, set_handler, stderr_handler};

use crate::Shape;
use crate::shape::broadcast;
use crate::shape::error::{Error, Site};

/// How two shapes come together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// By broadcasting to this shape.
    Broadcast(Shape),
    /// Both viewed as one-dimensional; the result has the first operand's shape.
    Flat,
}

/// How shapes `a` and `b` come together under the rules in force.
pub(crate) fn meet(a: &Shape, b: &Shape, at: Site) -> Result<Meeting, Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[a, b], at)?;
    match broadcast::join_two(a, b, 1) {
        Ok(joined) => {
            judge(rules, a, b, &joined, at)?;
            Ok(Meeting::Broadcast(joined))
        }
        Err(_) if rules.legacy_pointwise && same_count(a, b) => {
            warning::emit(Warning::Pointwise { shapes: (a.clone(), b.clone()), in_place: false, at });
            Ok(Meeting::Flat)
        }
        Err(mismatch) => Err(Error::Broadcast(mismatch, at)),
    }
}

/// [`meet`], where it is known that `a` and `b` broadcast, to `joined`.
pub(crate) fn meet_at(joined: &Shape, a: &Shape, b: &Shape, at: Site) -> Result<(), Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[a, b], at)?;
    judge(rules, a, b, joined, at)
}

/// [`meet`], where the result is written to `output` and so must have its shape.
///
/// A broadcast to any other shape comes back without a warning, for the caller to refuse.
pub(crate) fn meet_in_place(output: &Shape, other: &Shape, at: Site) -> Result<Meeting, Error> {
    let rules = Rules::current();
    refuse_zero_dim(rules, &[output, other], at)?;
    let joined = broadcast::join(&[output, other]);
    if joined.as_ref() == Ok(output) {
        judge(rules, output, other, output, at)?;
    } else if rules.legacy_pointwise && same_count(output, other) {
        warning::emit(Warning::Pointwise { shapes: (output.clone(), other.clone()), in_place: true, at });
        return Ok(Meeting::Flat);
    }
    joined.map(Meeting::Broadcast).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Whether the rules in force let a tensor have no dimension.
#[inline]
pub fn zero_dim_allowed() -> bool {
    rules::never_strict() || Rules::current().zero_dim
}

/// Refuses tensors without a dimension under the strict rule.
pub(crate) fn check_ranks(shapes: &[&Shape], at: Site) -> Result<(), Error> {
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

/// Warns of, or refuses, a broadcast that `rules` say something about.
fn judge(rules: Rules, a: &Shape, b: &Shape, joined: &Shape, at: Site) -> Result<(), Error> {
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

/// Whether both have the same number of elements, as far as it can be counted.
fn same_count(a: &Shape, b: &Shape) -> bool {
    matches!((a.checked_numel(), b.checked_numel()), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
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
    fn legacy_falls_back_only_where_counts_are_equal_and_shapes_do_not_meet() {
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let warnings = collect();
        let at = Site::here("add");
        assert_eq!(meet(&shape(&[4, 2]), &shape(&[8]), at), Ok(Meeting::Flat));
        assert_eq!(meet(&shape(&[4, 1]), &shape(&[4]), at), Ok(Meeting::Broadcast(shape(&[4, 4]))));
        assert!(meet(&shape(&[4, 2]), &shape(&[7]), at).is_err());
        let at = Site::here("add_");
        assert_eq!(meet_in_place(&shape(&[4, 1]), &shape(&[4]), at), Ok(Meeting::Flat));
        assert_eq!(meet_in_place(&shape(&[1, 4]), &shape(&[4]), at), Ok(Meeting::Broadcast(shape(&[1, 4]))));
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
        assert_eq!(meet_in_place(&shape(&[4, 1]), &shape(&[4]), at), Ok(Meeting::Broadcast(shape(&[4, 4]))));
        assert!(matches!(meet_in_place(&shape(&[1, 4]), &shape(&[4]), at), Err(Error::Denied { .. })));
    }

    #[test]
    fn counts_that_overflow_are_not_equal() {
        let huge = shape(&[usize::MAX, 2]);
        assert!(!same_count(&huge, &shape(&[2, usize::MAX])));
    }
}
