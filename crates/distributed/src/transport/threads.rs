//! Ranks that are threads of one process, for tests, and the group of one rank.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Exchange, Pending, Stalled, Transport};
use crate::payload::Payload;

type Inbox = Arc<Mutex<Receiver<Arc<Payload>>>>;

/// The channels of one rank to and from all ranks.
pub(crate) struct Threads {
    to: Vec<Sender<Arc<Payload>>>,
    from: Vec<Inbox>,
}

impl Threads {
    /// Returns the channels of each rank of a group of `size` ranks.
    pub(crate) fn of_size(size: usize) -> Vec<Threads> {
        let mut all: Vec<Threads> = (0..size).map(|_| Threads { to: Vec::new(), from: Vec::new() }).collect();
        for receiver in 0..size {
            for sender in 0..size {
                let (to, from) = mpsc::channel();
                all[sender].to.push(to);
                all[receiver].from.push(Arc::new(Mutex::new(from)));
            }
        }
        all
    }
}

impl Transport for Threads {
    fn start(&self, exchange: Exchange) -> Box<dyn Pending> {
        for (rank, payload) in &exchange.sends {
            // The send fails if the other rank has ended. A rank that waits for a message of that rank gets an error.
            let _ = self.to[*rank].send(Arc::clone(payload));
        }
        let from = exchange.receives.iter().map(|(rank, _)| Arc::clone(&self.from[*rank])).collect();
        Box::new(Waiting { exchange, from })
    }
}

struct Waiting {
    exchange: Exchange,
    from: Vec<Inbox>,
}

impl Pending for Waiting {
    fn wait(self: Box<Self>, deadline: Duration) -> Result<Exchange, Stalled> {
        let Waiting { mut exchange, from } = *self;
        let end = Instant::now() + deadline;
        let mut stalled = Stalled::default();
        for ((rank, payload), from) in exchange.receives.iter_mut().zip(from) {
            let from = from.lock().unwrap_or_else(PoisonError::into_inner);
            match from.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(received) => *payload = Arc::unwrap_or_clone(received),
                Err(RecvTimeoutError::Disconnected) => stalled.silent.push(*rank),
                Err(RecvTimeoutError::Timeout) => stalled.late.push(*rank),
            }
        }
        if stalled == Stalled::default() { Ok(exchange) } else { Err(stalled) }
    }
}
