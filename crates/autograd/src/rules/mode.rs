//! The two modes of differentiation, and what all rules say.

use wengert_tensor::{Float, Site};

use crate::error::or_raise;
use crate::{Error, Var};

/// Which of the two modes a rule is asked for.
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

/// A site for a rule, which does not know the line of the operation: the tape replaces it by that.
#[track_caller]
pub(super) fn site(name: &'static str) -> Site {
    Site::here(name)
}

pub(super) fn recorded<T: Float>(result: Result<Var<'_, T>, Error>) -> Option<Var<'_, T>> {
    Some(or_raise(result))
}
