//! Types and functions that several rules share: the two products with a Jacobian matrix, results of rules, and helpers.

use std::rc::Rc;

use wengert_tensor::{Float, Site};

use crate::{BatchedCall, Error, Operation, Tape, Var};

/// The product with the Jacobian matrix that a rule computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JacobianProduct {
    /// The vector-Jacobian product of reverse mode.
    Vjp,
    /// The Jacobian-vector product of forward mode.
    Jvp,
}

impl JacobianProduct {
    pub(super) fn name(self) -> &'static str {
        match self {
            JacobianProduct::Vjp => "vjp",
            JacobianProduct::Jvp => "jvp",
        }
    }
}

/// The derivative of one operation with respect to one input, applied to an incoming gradient or a tangent.
pub(crate) enum RuleResult<'t, T: Float> {
    Value(Var<'t, T>),
    Zero,
    /// The operation has no derivative with respect to this input.
    Undefined,
    /// The operation has a reverse rule but no forward rule. This is returned only in forward mode.
    FromReverse,
}

/// Returns the error of a full tape if the nodes of a rule might not fit on the tape.
pub(super) fn ensure_room<T: Float>(tape: &Tape<T>, at: Site) -> Result<(), Error> {
    if tape.record.borrow().has_room_for_rule() { Ok(()) } else { Err(Error::TapeFull { at }) }
}

/// Returns a placeholder for the site of a recorded operation. When the operation runs, it does not know the line of code that recorded it.
/// If memory is too small, the tape puts that line into the error.
#[track_caller]
pub(super) fn site(name: &'static str) -> Site {
    Site::here(name)
}

/// Records `operation` on the batched inputs. Returns `None` if the recording fails, and stores the error in `call`. An elementwise
/// operation is the same for a batch. Any other operation must already count its dimensions with the batch dimension first.
pub(super) fn elementwise<'t, T: Float>(operation: impl Operation<T>, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
    let inputs = call.value_of(call.try_all_batched())?;
    call.value_of(inputs[0].tape.record_operation(Rc::new(operation), &inputs, call.at))
}
