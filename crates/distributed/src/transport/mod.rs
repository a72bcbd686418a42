//! Transports of messages between ranks. A transport does not know the meaning of a message.

#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod threads;

use std::sync::Arc;
use std::time::Duration;

use crate::payload::Payload;

/// The messages that one rank sends and receives together, each with the index of the other rank. Messages between two ranks arrive in the
/// order of sending.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) sends: Vec<(usize, Arc<Payload>)>,
    /// Buffers of the right type and size, which the received elements overwrite.
    pub(crate) receives: Vec<(usize, Payload)>,
    /// The elements that the transport itself sums over all ranks. After the exchange, this field has the sums. It is only used if
    /// [`can_sum`](Transport::can_sum) returns true.
    pub(crate) summed: Option<Payload>,
}

/// The ranks for which this rank waited without success.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stalled {
    /// The ranks that gave no sign of life.
    pub(crate) silent: Vec<usize>,
    /// The ranks that are alive but have not started the exchange.
    pub(crate) late: Vec<usize>,
}

/// A carrier of messages between the ranks of a group. All ranks start the same exchanges in the same order, and wait
/// for them in that order.
pub(crate) trait Transport: Send {
    /// Starts an exchange and returns at once.
    fn start(&self, exchange: Exchange) -> Box<dyn Pending>;

    /// Returns true if the transport can sum over all ranks.
    fn can_sum(&self) -> bool {
        false
    }
}

/// A started exchange.
pub(crate) trait Pending {
    /// Waits until all messages are sent and received, but not longer than `deadline`.
    fn wait(self: Box<Self>, deadline: Duration) -> Result<Exchange, Stalled>;
}
