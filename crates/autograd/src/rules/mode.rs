//! The two modes of differentiation, and helpers of all rules.

use std::rc::Rc;

use wengert_tensor::{Float, Site};

use crate::error::or_raise;
use crate::{BatchedCall, Error, Operation, Var};

/// The mode for which a rule is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reverse: from the output to an input.
    Vjp,
    /// Forward: from an input to the output.
    Jvp,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Vjp => "vjp",
            Mode::Jvp => "jvp",
        }
    }
}

/// A placeholder site for a rule, which does not know the line of its operation: the tape replaces it.
#[track_caller]
pub(super) fn site(name: &'static str) -> Site {
    Site::here(name)
}

/// An operation on each element by itself, of one shape: the same for a batch.
pub(super) fn elementwise<'t, T: Float>(operation: impl Operation<T>, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
    let inputs: Vec<Var<'t, T>> = (0..call.arity()).map(|position| call.batched(position)).collect();
    recorded(inputs[0].tape.record_operation(Rc::new(operation), &inputs, &call.shape(), call.at))
}

pub(super) fn recorded<T: Float>(result: Result<Var<'_, T>, Error>) -> Option<Var<'_, T>> {
    Some(or_raise(result))
}
