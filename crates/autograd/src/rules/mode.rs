//! The two modes of differentiation, and helpers of all rules.

use wengert_tensor::{Float, Site};

use crate::error::or_raise;
use crate::{Error, Var};

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

pub(super) fn recorded<T: Float>(result: Result<Var<'_, T>, Error>) -> Option<Var<'_, T>> {
    Some(or_raise(result))
}
