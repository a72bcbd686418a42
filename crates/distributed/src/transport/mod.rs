//! How messages travel. What they mean is not known here.

#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod threads;

use std::sync::Arc;
use std::time::Duration;

use crate::payload::Payload;

/// Messages that one rank sends and receives together, each with the other rank's number. Between two ranks they arrive in the
/// order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) sends: Vec<(usize, Arc<Payload>)>,
    /// Room of the right type and size; afterwards what was received.
    pub(crate) receives: Vec<(usize, Payload)>,
    /// What is to be summed over all ranks by the transport itself; afterwards the sum. Only where
    /// [`sums`](Transport::sums) says that it can.
    pub(crate) summed: Option<Payload>,
}

/// The ranks that were waited for in vain.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stalled {
    /// Those that gave no sign of life.
    pub(crate) silent: Vec<usize>,
    /// Those that are alive, but have not come to the exchange.
    pub(crate) late: Vec<usize>,
}

/// Carries messages between the ranks of a group. All ranks start the same exchanges in the same order, and wait for each in that
/// order.
pub(crate) trait Transport: Send {
    /// Starts an exchange and returns at once.
    fn start(&self, exchange: Exchange) -> Box<dyn Pending>;

    /// Whether it can sum over all ranks by itself.
    fn sums(&self) -> bool {
        false
    }
}

/// An exchange that was started.
pub(crate) trait Pending {
    /// Waits until all is sent and received, but no longer than `deadline`.
    fn wait(self: Box<Self>, deadline: Duration) -> Result<Exchange, Stalled>;
}
