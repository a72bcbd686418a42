//! Makes the batches of one epoch, on request or in advance on other threads.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use crate::Result;

/// An iterator over the batches of one epoch; see [`DataLoader::epoch`](crate::DataLoader::epoch). For a batch that cannot be made, `next` returns
/// an error, or panics if the data set panics. The next call continues with the following batch. This holds for any number of threads.
pub struct Batches<B> {
    pub(super) make_batch: Arc<dyn Fn(usize) -> Result<B> + Send + Sync>,
    pub(super) next: usize,
    pub(super) n_batches: usize,
    pub(super) prefetch: usize,
    pub(super) workers: usize,
    /// The threads that make batches in advance, in the order of their next batches.
    pub(super) prefetchers: VecDeque<Prefetcher>,
}

/// A batch of any type. Because the type is hidden behind `dyn Any`, the code of a [`Prefetcher`] thread is compiled only once for all types
/// of batches.
type AnyBatch = Box<dyn Any + Send>;

/// A function that makes the batch with the given index.
type MakeBatch = Box<dyn Fn(usize) -> Result<AnyBatch> + Send>;

/// A thread that makes batches in advance. The thread ends after its last batch, or if the data set panics, or when it cannot send a batch
/// because `receiver` was dropped.
pub(super) struct Prefetcher {
    receiver: Receiver<Result<AnyBatch>>,
    thread: JoinHandle<()>,
}

impl Prefetcher {
    /// Starts a thread that makes the batches with the indices `numbers`, at most `count` of them in advance. Returns `None` if the system
    /// refuses to start a thread, as WebAssembly does.
    fn start(
        make_batch: MakeBatch,
        numbers: impl Iterator<Item = usize> + Send + 'static,
        count: usize,
    ) -> Option<Self> {
        // The channel holds `count - 1` batches, because the thread itself holds one while it waits to send.
        let (sender, receiver) = sync_channel(count - 1);
        let run = move || {
            for number in numbers {
                if sender.send(make_batch(number)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().spawn(run).ok()?;
        Some(Prefetcher { receiver, thread })
    }

    /// Waits for the next batch. Returns the batch, or the error of its computation, or `None` if the thread has ended
    /// without sending a batch.
    fn receive(&self) -> Option<Result<AnyBatch>> {
        self.receiver.recv().ok()
    }
}

impl<B: Send + 'static> Batches<B> {
    /// Skips the batches before the batch with index `batch`, to resume a training run.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::DataLoader;
    /// use wengert::prelude::*;
    ///
    /// let loader = DataLoader::new(Tensor::<i64>::arange(10), 4).shuffle();
    /// let all: Vec<_> = loader.epoch(3).collect::<Result<_, _>>()?;
    /// assert_eq!(loader.epoch(3).starting_at(2).next().unwrap()?, all[2]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    #[must_use]
    pub fn starting_at(self, batch: usize) -> Self {
        Batches { next: batch.min(self.n_batches), prefetchers: VecDeque::new(), ..self }
    }

    /// Returns the index of the next batch, for [`starting_at`](Self::starting_at).
    pub fn number(&self) -> usize {
        self.next
    }

    /// Starts the threads. Each thread makes every `workers`-th batch. Returns `None` if the system cannot start one of the threads.
    fn start_prefetchers(&self) -> Option<VecDeque<Prefetcher>> {
        let left = self.n_batches - self.next;
        let (workers, prefetch) = (self.workers.clamp(1, left), self.prefetch.min(left));
        let start = |first| {
            let make_batch = Arc::clone(&self.make_batch);
            let make_batch = move |number| make_batch(number).map(|batch| Box::new(batch) as AnyBatch);
            let numbers = (first..self.n_batches).step_by(workers);
            Prefetcher::start(Box::new(make_batch), numbers, prefetch.div_ceil(workers))
        };
        (self.next..self.next + workers).map(start).collect()
    }
}

impl<B: Send + 'static> Iterator for Batches<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.n_batches {
            return None;
        }
        if self.prefetch > 0 && self.prefetchers.is_empty() {
            match self.start_prefetchers() {
                Some(prefetchers) => self.prefetchers = prefetchers,
                None => self.prefetch = 0, // Without threads, the caller makes the batches.
            }
        }
        let Some(prefetcher) = self.prefetchers.pop_front() else {
            self.next += 1;
            return Some((self.make_batch)(self.next - 1));
        };
        self.next += 1;
        match prefetcher.receive() {
            Some(batch) => {
                self.prefetchers.push_back(prefetcher);
                Some(batch.map(downcast_batch::<B>))
            }
            // The thread ended before its last batch, so it panicked. The caller's thread panics with the same message. If the caller
            // catches the panic, new threads make the batches after this one, so the other threads are not needed any more.
            None => {
                self.prefetchers.clear();
                match prefetcher.thread.join() {
                    Err(panic) => resume_unwind(panic),
                    Ok(()) => None,
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.n_batches - self.next;
        (left, Some(left))
    }
}

/// Converts a batch behind `dyn Any` back to its own type.
fn downcast_batch<B: 'static>(batch: AnyBatch) -> B {
    *batch.downcast().unwrap_or_else(|_| unreachable!("the threads make batches of one type"))
}

impl<B: Send + 'static> ExactSizeIterator for Batches<B> {}

impl<B> fmt::Debug for Batches<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("next", &self.next).field("n_batches", &self.n_batches).finish_non_exhaustive()
    }
}
