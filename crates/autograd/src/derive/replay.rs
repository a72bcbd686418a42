//! Records a derivative by copying its nodes, if this thread has recorded the same derivative of the same nodes before.
//!
//! A training step usually records the same operations as the previous step, with other data, so its derivative has the same nodes too.
//! Copying them takes less time than deriving them. Some rules may record different nodes each time: the rules of `Operation` objects, and
//! rules that read data. The parts of the derivative that these rules record are recorded anew, by [`RuleCall`]s. If one of
//! these parts then has other nodes than before, the derivative is derived as usual, with the parts that were already recorded. So each
//! rule runs once.
//!
//! A tape may have several derivatives. A kept derivative stores only the nodes after the previous derivative of its tape. An [`Identity`]
//! stands for all earlier nodes. It tells, without a comparison, whether another tape has the same earlier nodes.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

use wengert_tensor::plan::{ByNode, ExpressionTail, Identity, ListLengths, NodeIndex, Op};
use wengert_tensor::{DType, Float, Site};

use crate::record::Mark;
use crate::rules::{self, Primitive};
use crate::tape::Record;
use crate::{Error, Tape};

/// The maximum total [size](RecordedDerivative::size), in nodes, of the derivatives that a thread keeps. These nodes take about 5 MB.
const MAX_CACHED_NODES: usize = 1 << 17;

/// The number of nodes that is added to the size of each derivative, so that a thread keeps at most 2,048 derivatives. A program whose
/// derivatives never repeat would otherwise keep many small ones without any use.
const DERIVATIVE_OVERHEAD: usize = 64;

thread_local! {
    static CACHE: RefCell<DerivativeCache> = RefCell::default();
}

/// The derivatives that a thread keeps.
#[derive(Default)]
struct DerivativeCache {
    /// The derivatives, by the number of nodes that the tape had before the derivative was recorded. A request is compared only with the
    /// derivatives for the number of nodes of its tape.
    by_start: ByNode<Vec<CacheEntry>>,
    /// The total [size](RecordedDerivative::size) of all derivatives, in nodes.
    size: usize,
    /// The number of uses of all derivatives so far. It numbers the uses, so that the least recently used derivatives can be found.
    n_uses: u64,
}

/// A kept derivative, with the value of [`DerivativeCache::n_uses`] at its last use.
struct CacheEntry {
    derivative: Rc<RecordedDerivative>,
    last_use: u64,
}

impl DerivativeCache {
    /// Returns the derivative that was recorded on a tape of `start` nodes and for which `matches` returns true, if there is one.
    fn find(&mut self, start: usize, matches: impl Fn(&RecordedDerivative) -> bool) -> Option<Rc<RecordedDerivative>> {
        let found = self.by_start.get_mut(&(start as NodeIndex))?.iter_mut().find(|kept| matches(&kept.derivative))?;
        self.n_uses += 1;
        found.last_use = self.n_uses;
        Some(Rc::clone(&found.derivative))
    }

    /// Adds a derivative. While the size is then too large, removes at least half of the derivatives, namely those whose last use is longest
    /// ago.
    fn insert(&mut self, derivative: RecordedDerivative) {
        self.n_uses += 1;
        self.size += derivative.size();
        let kept = CacheEntry { derivative: Rc::new(derivative), last_use: self.n_uses };
        self.by_start.entry(kept.derivative.start.nodes as NodeIndex).or_default().push(kept);
        while self.size > MAX_CACHED_NODES {
            let mut last_uses: Vec<u64> = self.by_start.values().flatten().map(|kept| kept.last_use).collect();
            let middle = last_uses.len() / 2;
            let (_, &mut middle, _) = last_uses.select_nth_unstable(middle);
            self.retain(|kept| kept.last_use > middle);
        }
    }

    fn remove(&mut self, derivative: &Rc<RecordedDerivative>) {
        let Some(kept) = self.by_start.get_mut(&(derivative.start.nodes as NodeIndex)) else { return };
        if let Some(position) = kept.iter().position(|kept| Rc::ptr_eq(&kept.derivative, derivative)) {
            kept.swap_remove(position);
            self.size -= derivative.size();
        }
    }

    /// Removes the derivatives for which `keeps` returns false.
    fn retain(&mut self, keeps: impl Fn(&CacheEntry) -> bool) {
        self.by_start.retain(|_, kept| {
            kept.retain(&keeps);
            !kept.is_empty()
        });
        self.size = self.by_start.values().flatten().map(|kept| kept.derivative.size()).sum();
    }
}

/// The variables of a request for a derivative.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    /// The outputs, each with its seed (incoming gradient).
    pub(super) outputs: Vec<[NodeIndex; 2]>,
    /// The inputs, or `None` for all variables on which the outputs depend.
    pub(super) inputs: Option<Vec<NodeIndex>>,
    pub(super) at: Site,
}

/// Inputs, each with the node of its gradient, or `None` if the outputs do not depend on the input.
pub(super) type InputGradients = Vec<(NodeIndex, Option<NodeIndex>)>;

/// A recorded derivative, which can be recorded again on a tape with the same nodes.
struct RecordedDerivative {
    request: Request,
    dtype: DType,
    /// The number that identifies the tape's nodes up to the end of the derivative before this one. `None` for a tape's first derivative.
    base: Option<Identity>,
    /// The nodes after the derivative before this one, up to the end of this derivative, with their lines of code.
    part: ExpressionTail,
    locations: Vec<Option<&'static Location<'static>>>,
    /// The end of the tape before this derivative was recorded.
    start: ListLengths,
    /// The number that identifies the tape's nodes up to the end of this derivative.
    identity: Identity,
    calls: Vec<LoggedCall>,
    gradients: InputGradients,
}

/// A call of a rule that may record other nodes each time, such as a rule of an `Operation` object. So a replay calls the rule again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RuleCall {
    /// The gradient `g` at the operation `node`, times the derivative with respect to the input with index `input`.
    Vjp { node: NodeIndex, input: usize, g: NodeIndex },
    /// The sum of two terms of a gradient. The first one is the result of an `Operation` object.
    Sum { total: NodeIndex, term: NodeIndex },
}

impl RuleCall {
    /// Calls the rule, which records nodes. Returns the node of the result, or `None` if the derivative is zero.
    fn record<T: Float>(self, tape: &Tape<T>, at: Site) -> Result<Option<NodeIndex>, Error> {
        Ok(match self {
            RuleCall::Vjp { node, input, g } => {
                let (op, inputs) = {
                    let record = tape.record.borrow();
                    (record.op(node), record.inputs(node))
                };
                let primitive = Primitive { tape, index: node, op, inputs, at, part_starts: Default::default() };
                primitive.vjp(input, tape.var_of(g))?.map(|term| term.index)
            }
            RuleCall::Sum { total, term } => {
                Some(rules::accumulate(Some(tape.var_of(total)), tape.var_of(term), at)?.index)
            }
        })
    }
}

/// A [`RuleCall`], with the nodes that it recorded.
#[derive(Clone)]
struct LoggedCall {
    call: RuleCall,
    on_behalf_of: Option<&'static Location<'static>>,
    start: ListLengths,
    end: ListLengths,
    result: Option<NodeIndex>,
}

/// The [`RuleCall`]s of a derivative, in order.
#[derive(Default)]
pub(super) struct CallLog {
    calls: Vec<LoggedCall>,
    /// The number of operations, data and names that the calls stored in the tape's record.
    n_stored: usize,
    /// The calls of a replay that could not be finished, or `None` if there was no such replay. The nodes of these calls are copied instead
    /// of calling the rules again.
    unfinished: Option<Box<UnfinishedReplay>>,
}

/// The calls of a replay that could not be finished, with all nodes that the replay recorded. These nodes are no longer on the tape, but
/// everything to which they refer is in its record.
struct UnfinishedReplay {
    calls: std::vec::IntoIter<LoggedCall>,
    part: ExpressionTail,
    locations: Vec<Option<&'static Location<'static>>>,
    /// The number of nodes before `part`.
    first: usize,
}

impl CallLog {
    /// Records the nodes of `call`, and logs them. If a replay has already recorded this call, appends the same nodes. Returns the node of
    /// the result, or `None` if the derivative is zero.
    pub(super) fn record<T: Float>(
        &mut self,
        call: RuleCall,
        tape: &Tape<T>,
        at: Site,
    ) -> Result<Option<NodeIndex>, Error> {
        if let Some(logged) = self.unfinished.as_mut().and_then(|unfinished| unfinished.next(call, tape)) {
            let result = logged.result;
            self.calls.push(logged);
            return Ok(result);
        }
        let (before, on_behalf_of) = {
            let record = tape.record.borrow();
            (record.mark(), record.on_behalf_of)
        };
        let result = call.record(tape, at)?;
        let after = tape.record.borrow().mark();
        self.n_stored += after.n_stored - before.n_stored;
        self.calls.push(LoggedCall { call, on_behalf_of, start: before.lengths, end: after.lengths, result });
        Ok(result)
    }
}

impl UnfinishedReplay {
    /// Appends the nodes of the next call, which must be `call`, and returns this call. Returns `None` after the last call.
    fn next<T: Float>(&mut self, call: RuleCall, tape: &Tape<T>) -> Option<LoggedCall> {
        let logged = self.calls.next()?;
        debug_assert_eq!(logged.call, call);
        let nodes = logged.start.nodes - self.first..logged.end.nodes - self.first;
        tape.record.borrow_mut().append(&self.part, &self.locations[nodes], logged.start, logged.end);
        Some(logged)
    }
}

/// The result of [`replay`].
pub(super) enum Replay {
    Recorded(InputGradients),
    /// The derivative must be derived as usual. The log has the calls of rules that need not be made again.
    Unrecorded(CallLog),
}

/// Looks for a kept derivative with the same request whose original nodes are all on the tape, and records it on the tape. Returns
/// [`Replay::Unrecorded`] if there is none, or if an `Operation` object of the tape has no derivative. If a rule now records other nodes than
/// before, forgets the kept derivative, and returns [`Replay::Unrecorded`] too. Returns the errors of the rules, and an error if the tape is
/// full.
pub(super) fn replay<T: Float>(tape: &Tape<T>, request: &Request) -> Result<Replay, Error> {
    let found = {
        let record = tape.record.borrow();
        let find = |kept: &RefCell<DerivativeCache>| {
            kept.borrow_mut().find(record.len(), |derivative| derivative.matches(&record, request))
        };
        // `try_with` fails while the thread ends.
        if all_differentiable(&record) { CACHE.try_with(find).ok().flatten() } else { None }
    };
    let Some(derivative) = found else { return Ok(Replay::Unrecorded(CallLog::default())) };
    let replay = derivative.record(tape, request.at)?;
    if let Replay::Unrecorded(_) = replay {
        let _ = CACHE.try_with(|kept| kept.borrow_mut().remove(&derivative));
    }
    Ok(replay)
}

/// Keeps the derivative that was recorded on `tape` after `start`, if a later tape can copy its nodes. Keeps no derivative that is larger
/// than the limit [`MAX_CACHED_NODES`].
pub(super) fn cache_derivative<T: Float>(
    tape: &Tape<T>,
    start: Mark,
    request: Request,
    log: CallLog,
    gradients: &InputGradients,
) {
    let mut record = tape.record.borrow_mut();
    let known = start.identity.map_or_else(ListLengths::default, |base| base.lengths);
    // A replay copies nodes, but not the data and operations to which nodes refer. So only the logged calls, which run again, may have
    // stored any.
    let is_copyable = record.mark().n_stored - start.n_stored == log.n_stored;
    if !is_copyable
        || record.len() - known.nodes > MAX_CACHED_NODES - DERIVATIVE_OVERHEAD
        || !all_differentiable(&record)
    {
        return;
    }
    let derivative = RecordedDerivative {
        request,
        dtype: T::DTYPE,
        base: start.identity,
        part: record.tail(known),
        locations: record.locations()[known.nodes..].to_vec(),
        start: start.lengths,
        identity: record.expression.identify(),
        calls: log.calls,
        gradients: gradients.clone(),
    };
    let _ = CACHE.try_with(|kept| kept.borrow_mut().insert(derivative));
}

impl RecordedDerivative {
    /// Returns a measure of the memory of this derivative, in nodes.
    fn size(&self) -> usize {
        let inputs = self.gradients.len() + self.request.outputs.len();
        self.part.nodes() + inputs / 2 + 6 * self.calls.len() + DERIVATIVE_OVERHEAD
    }

    /// Returns the end of the nodes that `base` identifies. The nodes of `part` begin there.
    fn base_end(&self) -> ListLengths {
        self.base.map_or_else(ListLengths::default, |base| base.lengths)
    }

    /// Returns true if the request is the same, and the tape has the nodes on which this derivative was recorded. The nodes must have the
    /// same lines of code.
    fn matches<T: Float>(&self, record: &Record<T>, request: &Request) -> bool {
        let known = self.base_end();
        let same_line = |(x, y): (&Option<&Location<'_>>, &Option<&Location<'_>>)| match (x, y) {
            (Some(x), Some(y)) => std::ptr::eq(*x, *y),
            (x, y) => x.is_none() && y.is_none(),
        };
        self.start == record.list_lengths()
            && self.dtype == T::DTYPE
            && self.request == *request
            && (self.base.is_none() || self.base == record.identity())
            && record.contains(&self.part, known, self.start)
            && record.locations()[known.nodes..].iter().zip(&self.locations).all(same_line)
    }

    /// Records this derivative on a tape that it [matches](Self::matches). If a rule records other nodes than before, removes the recorded
    /// nodes, and returns a log with the calls so far.
    fn record<T: Float>(&self, tape: &Tape<T>, at: Site) -> Result<Replay, Error> {
        let before = tape.record.borrow().mark();
        let _derivation = tape.start_derivation();
        let mut copied = self.start;
        for (number, logged) in self.calls.iter().enumerate() {
            {
                let mut record = tape.record.borrow_mut();
                self.copy(&mut record, copied, logged.start);
                record.on_behalf_of = logged.on_behalf_of;
            }
            let result = logged.call.record(tape, at)?;
            let mut record = tape.record.borrow_mut();
            let end = record.list_lengths();
            let is_same =
                result == logged.result && end == logged.end && record.contains(&self.part, logged.start, logged.end);
            if !is_same {
                let mut calls = self.calls[..=number].to_vec();
                calls[number] = LoggedCall { result, end, ..calls[number].clone() };
                let (part, locations) = record.remove_nodes(before);
                let first = before.lengths.nodes;
                let unfinished = Box::new(UnfinishedReplay { calls: calls.into_iter(), part, locations, first });
                return Ok(Replay::Unrecorded(CallLog { unfinished: Some(unfinished), ..CallLog::default() }));
            }
            copied = logged.end;
        }
        let mut record = tape.record.borrow_mut();
        self.copy(&mut record, copied, self.part.end());
        record.expression.share_identity(Some(self.identity));
        Ok(Replay::Recorded(self.gradients.clone()))
    }

    /// Appends the nodes from `from` to `to` to a tape that ends at `from`.
    fn copy<T: Float>(&self, record: &mut Record<T>, from: ListLengths, to: ListLengths) {
        let first = self.base_end().nodes;
        record.append(&self.part, &self.locations[from.nodes - first..to.nodes - first], from, to);
    }
}

/// Returns true if each `Operation` object of a tape has a derivative. An object that has one is asked only once.
fn all_differentiable<T: Float>(record: &Record<T>) -> bool {
    let known = record.n_differentiable.get();
    let unknown = record.operations_from(known);
    let count = unknown.len();
    let more = unknown.take_while(|operation| operation.is_differentiable()).count();
    record.n_differentiable.set(known + more);
    more == count
}

/// Returns true if `node` is the result of an `Operation` object.
pub(super) fn is_custom<T: Float>(record: &Record<T>, node: NodeIndex) -> bool {
    matches!(record.op(node), Op::Other(_))
}

#[cfg(test)]
mod tests;
