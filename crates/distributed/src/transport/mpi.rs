//! Messages by MPI.
//!
//! One thread of the process makes all calls of MPI, so that messages travel while the program computes, and a call that never
//! returns does not keep the program from noticing its deadline. It makes one exchange after the other, by requests that do not
//! block and are asked until they are complete. What an exchange lends to MPI lives in that thread for as long as the exchange does,
//! which may be until the end of the process.
//!
//! A rank that has waited for long asks those it waits for whether they are alive; their threads answer whatever their programs do.

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

/// Tags of exchanges begin again after so many.
const TAGS: u64 = 16_384;
/// "Are you alive?"
const QUESTION: Tag = 20_000;
/// "I am."
const ANSWER: Tag = 20_001;
/// Of both, there is nothing in them.
static NOTHING: [u8; 0] = [];

/// After so long without an end of its exchange a rank asks whether the others are alive, and asks again.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often an idle thread looks for questions.
const LOOK: Duration = Duration::from_millis(50);

/// The program's end of the thread that calls MPI.
pub(crate) struct Mpi {
    orders: Option<Sender<Order>>,
    ended: Receiver<()>,
    state: Arc<Mutex<State>>,
    grace: Duration,
}

/// An exchange, and where it goes when it is complete.
struct Order {
    exchange: Exchange,
    done: Sender<Exchange>,
}

/// What the thread last knew of the exchange that it makes.
#[derive(Debug, Default)]
struct State {
    /// The ranks that it waits for.
    awaited: BTreeSet<usize>,
    /// When ranks last answered.
    answered: BTreeMap<usize, Instant>,
    /// The program gave up.
    lost: bool,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mpi {
    /// Starts MPI; gives this rank and the number of ranks too.
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
            // Nobody may be left to hear it.
            let _ = at_end.send(());
        };
        let thread = thread::Builder::new().name("mpi".to_owned());
        thread.spawn(serve).map_err(|_| Error::Start { reason: "the system gives no thread for it" })?;
        let twice = Error::Start { reason: "it was started in this process before; a group is made once" };
        let (rank, size) = here.recv().map_err(|_| twice)?;
        Ok((Mpi { orders: Some(orders), ended, state, grace }, rank, size))
    }
}

/// Leaves MPI in order, which waits for all ranks.
fn end(universe: Universe) {
    drop(universe);
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.orders = None;
        if !thread::panicking() && !locked(&self.state).lost {
            // A rank that is gone would be waited for; the process ends without it.
            let _ = self.ended.recv_timeout(self.grace);
        }
    }
}

impl Transport for Mpi {
    fn start(&self, exchange: Exchange) -> Box<dyn Pending> {
        let (done, result) = mpsc::channel();
        if let Some(orders) = &self.orders {
            // Where the thread is gone, `result` says so.
            let _ = orders.send(Order { exchange, done });
        }
        Box::new(Waiting { result, state: Arc::clone(&self.state) })
    }

    fn sums(&self) -> bool {
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
            let mut state = locked(&self.state);
            state.lost = true;
            let alive = |rank: &usize| state.answered.get(rank).is_some_and(|at| at.elapsed() < 4 * PATIENCE);
            let (late, silent) = state.awaited.iter().partition(|rank| alive(rank));
            Stalled { silent, late }
        })
    }
}

/// What the thread has.
struct Server {
    world: SimpleCommunicator,
    state: Arc<Mutex<State>>,
    /// Questions and answers that are on their way.
    questions: Vec<Request<'static, [u8; 0], StaticScope>>,
    /// How many exchanges there were.
    count: u64,
}

impl Server {
    /// Makes the exchanges until the program wants no more.
    fn serve(&mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order { exchange, done }) => {
                    // The program may have given it up.
                    let _ = done.send(self.make(exchange));
                }
                Err(RecvTimeoutError::Timeout) => self.answer(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // What was asked or answered and never heard stays with MPI.
        self.questions.drain(..).for_each(std::mem::forget);
    }

    /// Makes one exchange, however long it takes.
    fn make(&mut self, mut exchange: Exchange) -> Exchange {
        let tag = (self.count % TAGS) as Tag;
        self.count += 1;
        let summed = exchange.summed.take();
        let mut total = summed.clone();
        let world = SimpleCommunicator::world();
        let Exchange { sends, receives, .. } = &mut exchange;
        scope(|scope| {
            let mut open: Vec<Flight> = Vec::with_capacity(sends.len() + receives.len() + 1);
            for (rank, payload) in receives {
                let (process, rank) = (world.process_at_rank(*rank as i32), *rank);
                let complete = match payload {
                    Payload::Bytes(room) => flying(process.immediate_receive_into_with_tag(scope, &mut room[..], tag)),
                    Payload::F32(room) => flying(process.immediate_receive_into_with_tag(scope, &mut room[..], tag)),
                    Payload::F64(room) => flying(process.immediate_receive_into_with_tag(scope, &mut room[..], tag)),
                    Payload::I64(room) => flying(process.immediate_receive_into_with_tag(scope, &mut room[..], tag)),
                };
                open.push(Flight { from: vec![rank], complete });
            }
            for (rank, payload) in &*sends {
                let (process, rank) = (world.process_at_rank(*rank as i32), *rank);
                let complete = match &**payload {
                    Payload::Bytes(own) => flying(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::F32(own) => flying(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::F64(own) => flying(process.immediate_send_with_tag(scope, &own[..], tag)),
                    Payload::I64(own) => flying(process.immediate_send_with_tag(scope, &own[..], tag)),
                };
                open.push(Flight { from: vec![rank], complete });
            }
            let operation = SystemOperation::sum();
            let complete = match (&summed, &mut total) {
                (Some(Payload::F32(own)), Some(Payload::F32(room))) => {
                    Some(flying(world.immediate_all_reduce_into(scope, &own[..], &mut room[..], operation)))
                }
                (Some(Payload::F64(own)), Some(Payload::F64(room))) => {
                    Some(flying(world.immediate_all_reduce_into(scope, &own[..], &mut room[..], operation)))
                }
                _ => None,
            };
            if let Some(complete) = complete {
                let others = (0..world.size() as usize).filter(|&rank| rank != world.rank() as usize);
                open.push(Flight { from: others.collect(), complete });
            }
            self.watch(open);
        });
        exchange.summed = total;
        exchange
    }

    /// Asks the requests until all are complete.
    fn watch(&mut self, mut open: Vec<Flight>) {
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
                locked(&self.state).awaited = open.iter().flat_map(|flight| flight.from.iter().copied()).collect();
            }
            if now - asked > PATIENCE {
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
        locked(&self.state).awaited.clear();
    }

    /// Asks those that are waited for whether they are alive.
    fn ask(&mut self) {
        let awaited: Vec<usize> = locked(&self.state).awaited.iter().copied().collect();
        for rank in awaited {
            self.tell(rank, QUESTION);
        }
    }

    fn tell(&mut self, rank: usize, what: Tag) {
        let process = self.world.process_at_rank(rank as i32);
        self.questions.push(process.immediate_send_with_tag(StaticScope, &NOTHING, what));
        let complete = |request: Request<'static, [u8; 0], StaticScope>| request.test().err();
        self.questions = self.questions.drain(..).filter_map(complete).collect();
    }

    /// Hears questions and answers, and answers the questions.
    fn answer(&mut self) {
        let any = self.world.any_process();
        let mut heard = Vec::new();
        for what in [QUESTION, ANSWER] {
            while let Some((message, status)) = any.immediate_matched_probe_with_tag(what) {
                // It has arrived and is empty, so that this does not wait.
                let mut room: [u8; 0] = [];
                message.matched_receive_into(&mut room);
                heard.push((status.source_rank() as usize, what));
            }
        }
        for (rank, what) in heard {
            if what == QUESTION {
                self.tell(rank, ANSWER);
            } else {
                locked(&self.state).answered.insert(rank, Instant::now());
            }
        }
    }
}

/// A request with the ranks that it needs.
struct Flight<'f> {
    from: Vec<usize>,
    /// Whether it is complete.
    complete: Box<dyn FnMut() -> bool + 'f>,
}

fn flying<'f, 'a: 'f, D: ?Sized>(request: Request<'a, D, &'f LocalScope<'a>>) -> Box<dyn FnMut() -> bool + 'f> {
    let mut request = Some(request);
    Box::new(move || {
        request = request.take().and_then(|open| open.test().err());
        request.is_none()
    })
}
