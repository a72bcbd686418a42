//! Sends messages over MPI.
//!
//! One thread of the process makes all calls of MPI. So messages are sent while the program computes, and a call that never returns cannot
//! keep the program from noticing its deadline. The thread runs one exchange after the other, with non-blocking requests that it tests
//! until they have completed. The thread owns the buffers of an exchange until the exchange completes, which may never happen.
//!
//! A rank that has waited for long asks the awaited ranks whether they are alive. Their MPI threads answer even if their programs are busy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::request::{LocalScope, Request, StaticScope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpi::{Tag, Threading, initialize_with_threading};

use super::{Exchange, Pending, Stalled, Transport};
use crate::payload::Payload;
use crate::{Error, Result};

/// The number of message tags for exchanges. After the last tag, the tags start again from 0.
const TAGS: u64 = 16_384;
/// The tag of the question "Are you alive?".
const QUESTION: Tag = 20_000;
/// The tag of the answer "I am alive."
const ANSWER: Tag = 20_001;
/// The contents of questions and answers, which are empty.
static NOTHING: [u8; 0] = [];

/// The time after which a waiting rank asks the awaited ranks whether they are alive. It repeats the question at this
/// interval.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The interval at which the MPI thread checks for questions while it has no exchange.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The program's connection to the thread that calls MPI.
pub(crate) struct Mpi {
    orders: Option<Sender<Order>>,
    ended: Receiver<()>,
    state: Arc<Mutex<State>>,
    grace: Duration,
}

/// An exchange that the program requested, and the channel to which its result is sent.
struct Order {
    exchange: Exchange,
    done: Sender<Exchange>,
}

/// The state of the exchange in progress. The thread that calls MPI updates `awaited` and `answered`. If a wait exceeds its deadline, the
/// program reads both and sets `lost`.
#[derive(Debug, Default)]
struct State {
    /// The ranks for which the exchange still waits: senders, receivers, and all other ranks for a sum.
    awaited: BTreeSet<usize>,
    /// For each rank, the time of its latest answer to the question whether it is alive.
    answered: BTreeMap<usize, Instant>,
    /// True after an exchange has exceeded its deadline.
    lost: bool,
}

fn lock_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mpi {
    /// Starts MPI. Returns the connection, this rank, and the number of ranks. `grace` limits the time that the
    /// shutdown of MPI may take. Returns an error if MPI was started before, or the system cannot create a thread.
    pub(crate) fn start(grace: Duration) -> Result<(Mpi, usize, usize)> {
        let (orders, to_do) = mpsc::channel();
        let (at_end, ended) = mpsc::channel();
        let (started, here) = mpsc::channel();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let serve = move || {
            let Some((universe, _)) = initialize_with_threading(Threading::Funneled) else {
                return;
            };
            let world = universe.world();
            if started.send((world.rank() as usize, world.size() as usize)).is_ok() {
                Server { world, state: shared, questions: Vec::new(), count: 0 }.serve(&to_do);
            }
            end(universe);
            // The send fails if the receiver no longer exists.
            let _ = at_end.send(());
        };
        let thread = thread::Builder::new().name("mpi".to_owned());
        thread.spawn(serve).map_err(|_| Error::Start { reason: "the system cannot create a thread" })?;
        let twice = Error::Start { reason: "it was already started in this process; make the group once" };
        let (rank, size) = here.recv().map_err(|_| twice)?;
        Ok((Mpi { orders: Some(orders), ended, state, grace }, rank, size))
    }
}

/// Shuts MPI down in the regular way (`MPI_Finalize`), which waits for all ranks.
fn end(universe: Universe) {
    drop(universe);
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.orders = None;
        if !thread::panicking() && !lock_state(&self.state).lost {
            // The shutdown may wait for ranks that have ended, so the time for it is limited.
            let _ = self.ended.recv_timeout(self.grace);
        }
    }
}

impl Transport for Mpi {
    fn start(&self, exchange: Exchange) -> Box<dyn Pending> {
        let (done, result) = mpsc::channel();
        if let Some(orders) = &self.orders {
            // The send fails if the thread that calls MPI has ended. The wait for the result then fails too.
            let _ = orders.send(Order { exchange, done });
        }
        Box::new(Waiting { result, state: Arc::clone(&self.state) })
    }

    fn can_sum(&self) -> bool {
        true
    }
}

struct Waiting {
    result: Receiver<Exchange>,
    state: Arc<Mutex<State>>,
}

impl Pending for Waiting {
    fn wait(self: Box<Self>, deadline: Duration) -> std::result::Result<Exchange, Stalled> {
        self.result.recv_timeout(deadline).map_err(|_| {
            let mut state = lock_state(&self.state);
            state.lost = true;
            let alive = |rank: &usize| state.answered.get(rank).is_some_and(|at| at.elapsed() < 4 * PROBE_INTERVAL);
            let (late, silent) = state.awaited.iter().partition(|rank| alive(rank));
            Stalled { silent, late }
        })
    }
}

/// The data of the thread that calls MPI.
struct Server {
    world: SimpleCommunicator,
    state: Arc<Mutex<State>>,
    /// Questions and answers that are not yet completely sent.
    questions: Vec<Request<'static, [u8; 0], StaticScope>>,
    /// The number of exchanges so far.
    count: u64,
}

impl Server {
    /// Runs the exchanges that the program requests, until the program closes the channel. Answers questions in the
    /// meantime.
    fn serve(&mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(POLL_INTERVAL) {
                Ok(Order { exchange, done }) => {
                    // The send fails if the program no longer waits for the result.
                    let _ = done.send(self.run_exchange(exchange));
                }
                Err(RecvTimeoutError::Timeout) => self.answer(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // MPI requests for messages that were never received must not be dropped, so they are leaked.
        self.questions.drain(..).for_each(std::mem::forget);
    }

    /// Runs one exchange, however long it takes. Returns the exchange with the received elements and the sum over the
    /// ranks.
    fn run_exchange(&mut self, mut exchange: Exchange) -> Exchange {
        let tag = (self.count % TAGS) as Tag;
        self.count += 1;
        let summed = exchange.summed.take();
        let mut total = summed.clone();
        let world = SimpleCommunicator::world();
        let Exchange { sends, receives, .. } = &mut exchange;
        scope(|scope| {
            let mut open: Vec<OpenRequest> = Vec::with_capacity(sends.len() + receives.len() + 1);
            for (rank, payload) in receives {
                let (process, rank) = (world.process_at_rank(*rank as i32), *rank);
                let complete = match payload {
                    Payload::Bytes(room) => {
                        completion_test(process.immediate_receive_into_with_tag(scope, &mut room[..], tag))
                    }
                    Payload::F32(room) => {
                        completion_test(process.immediate_receive_into_with_tag(scope, &mut room[..], tag))
                    }
                    Payload::F64(room) => {
                        completion_test(process.immediate_receive_into_with_tag(scope, &mut room[..], tag))
                    }
                    Payload::I64(room) => {
                        completion_test(process.immediate_receive_into_with_tag(scope, &mut room[..], tag))
                    }
                };
                open.push(OpenRequest { from: vec![rank], complete });
            }
            for (rank, payload) in &*sends {
                let (process, rank) = (world.process_at_rank(*rank as i32), *rank);
                let complete = match &**payload {
                    Payload::Bytes(own) => completion_test(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::F32(own) => completion_test(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::F64(own) => completion_test(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::I64(own) => completion_test(process.immediate_send_with_tag(scope, &own[..], tag)),
                };
                open.push(OpenRequest { from: vec![rank], complete });
            }
            let operation = SystemOperation::sum();
            let complete = match (&summed, &mut total) {
                (Some(Payload::F32(own)), Some(Payload::F32(room))) => {
                    Some(completion_test(world.immediate_all_reduce_into(scope, &own[..], &mut room[..], operation)))
                }
                (Some(Payload::F64(own)), Some(Payload::F64(room))) => {
                    Some(completion_test(world.immediate_all_reduce_into(scope, &own[..], &mut room[..], operation)))
                }
                _ => None,
            };
            if let Some(complete) = complete {
                let others = (0..world.size() as usize).filter(|&rank| rank != world.rank() as usize);
                open.push(OpenRequest { from: others.collect(), complete });
            }
            self.wait_for_requests(open);
        });
        exchange.summed = total;
        exchange
    }

    /// Tests the requests in `open` until all have completed. Meanwhile asks the awaited ranks at intervals whether
    /// they are alive, and answers the questions of other ranks.
    fn wait_for_requests(&mut self, mut open: Vec<OpenRequest>) {
        let began = Instant::now();
        let (mut asked, mut known) = (began, usize::MAX);
        loop {
            open.retain_mut(|flight| !(flight.complete)());
            if open.is_empty() {
                break;
            }
            let now = Instant::now();
            if known != open.len() {
                known = open.len();
                lock_state(&self.state).awaited = open.iter().flat_map(|flight| flight.from.iter().copied()).collect();
            }
            if now - asked > PROBE_INTERVAL {
                asked = now;
                self.answer();
                self.ask();
            }
            match now - began {
                short if short < Duration::from_millis(2) => thread::yield_now(),
                long if long < Duration::from_millis(50) => thread::sleep(Duration::from_micros(50)),
                _ => thread::sleep(Duration::from_micros(500)),
            }
        }
        lock_state(&self.state).awaited.clear();
    }

    /// Asks the awaited ranks whether they are alive.
    fn ask(&mut self) {
        let awaited: Vec<usize> = lock_state(&self.state).awaited.iter().copied().collect();
        for rank in awaited {
            self.send_empty(rank, QUESTION);
        }
    }

    fn send_empty(&mut self, rank: usize, tag: Tag) {
        let process = self.world.process_at_rank(rank as i32);
        self.questions.push(process.immediate_send_with_tag(StaticScope, &NOTHING, tag));
        let complete = |request: Request<'static, [u8; 0], StaticScope>| request.test().err();
        self.questions = self.questions.drain(..).filter_map(complete).collect();
    }

    /// Receives questions and answers. Answers the questions, and stores the times of the answers.
    fn answer(&mut self) {
        let any = self.world.any_process();
        let mut heard = Vec::new();
        for what in [QUESTION, ANSWER] {
            while let Some((message, status)) = any.immediate_matched_probe_with_tag(what) {
                // The message has arrived and is empty, so this does not block.
                let mut room: [u8; 0] = [];
                message.matched_receive_into(&mut room);
                heard.push((status.source_rank() as usize, what));
            }
        }
        for (rank, what) in heard {
            if what == QUESTION {
                self.send_empty(rank, ANSWER);
            } else {
                lock_state(&self.state).answered.insert(rank, Instant::now());
            }
        }
    }
}

/// A non-blocking request that is in progress, and the ranks for which it waits.
struct OpenRequest<'f> {
    from: Vec<usize>,
    /// The function that tests the request and returns true if it has completed.
    complete: Box<dyn FnMut() -> bool + 'f>,
}

fn completion_test<'f, 'a: 'f, D: ?Sized>(
    request: Request<'a, D, &'f LocalScope<'a>>,
) -> Box<dyn FnMut() -> bool + 'f> {
    let mut request = Some(request);
    Box::new(move || {
        request = request.take().and_then(|open| open.test().err());
        request.is_none()
    })
}
