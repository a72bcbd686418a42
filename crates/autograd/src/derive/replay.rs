//! Records a derivative by copying its nodes, if this thread has recorded the same derivative of the same nodes before.
//!
//! A training step records the operations of the step before with other data, so its derivative has the same nodes too. Copying them takes
//! a tenth of the time of deriving them. A custom operation may record other nodes each time, so its part is recorded anew. If this part
//! then has other nodes than before, the whole derivative is recorded anew.
//!
//! A tape may have several derivatives. Each kept derivative has only the nodes after the one before. An [`Identity`] of the nodes up to
//! there tells whether the tape has the same nodes, without a comparison.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

use wengert_tensor::plan::{Extent, Identity, Index, Op, Part};
use wengert_tensor::{DType, Float, Site};

use crate::record::Mark;
use crate::rules::{self, Primitive};
use crate::tape::Record;
use crate::{Error, Tape};

/// The largest number of derivatives that a thread keeps.
const MAX_KEPT: usize = 256;

/// The largest number of nodes in all derivatives that a thread keeps. They take about 5 MB.
const MAX_KEPT_NODES: usize = 1 << 17;

thread_local! {
    /// The kept derivatives. The most recently used one comes first.
    static KEPT: RefCell<Vec<Rc<Derivative>>> = const { RefCell::new(Vec::new()) };
}

/// The variables of a request for a derivative.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    /// The outputs, each with its seed (incoming gradient).
    pub(super) outputs: Vec<[Index; 2]>,
    pub(super) inputs: Vec<Index>,
    pub(super) at: Site,
}

/// A recorded derivative, which can be recorded again on a tape with the same nodes.
struct Derivative {
    request: Request,
    dtype: DType,
    /// The identity of the tape's nodes up to the end of the derivative before this one. It is `None` for the first derivative of a tape.
    base: Option<Identity>,
    /// The nodes from the end of `base` to the end of this derivative, with their lines of code.
    part: Part,
    locations: Vec<Option<&'static Location<'static>>>,
    /// The end of the tape before this derivative was recorded.
    start: Extent,
    /// The identity of the tape's nodes up to the end of this derivative.
    identity: Identity,
    calls: Vec<LoggedCall>,
    gradients: Vec<Option<Index>>,
}

/// A part of a derivative that a custom operation may record differently each time.
#[derive(Clone, Copy)]
pub(super) enum CustomCall {
    /// The gradient `g` at the custom operation `node`, times the derivative with respect to the input with index `input`.
    Vjp { node: Index, input: usize, g: Index },
    /// The sum of two terms of a gradient. The first one is the result of a custom operation.
    Sum { total: Index, term: Index },
}

impl CustomCall {
    /// Records the nodes of this part. Returns the node of its result, or `None` if the derivative is zero.
    fn record<T: Float>(self, tape: &Tape<T>, at: Site) -> Result<Option<Index>, Error> {
        Ok(match self {
            CustomCall::Vjp { node, input, g } => {
                let (op, inputs) = {
                    let record = tape.record.borrow();
                    (record.op(node), record.inputs(node))
                };
                let primitive = Primitive { tape, index: node, op, inputs, at, starts: Default::default() };
                primitive.vjp(input, tape.at(g))?.map(|term| term.index)
            }
            CustomCall::Sum { total, term } => Some(rules::accumulate(Some(tape.at(total)), tape.at(term), at)?.index),
        })
    }
}

/// A [`CustomCall`], with the nodes that it recorded.
struct LoggedCall {
    call: CustomCall,
    on_behalf_of: Option<&'static Location<'static>>,
    start: Extent,
    end: Extent,
    result: Option<Index>,
}

/// The [`CustomCall`]s of a derivative, in order.
#[derive(Default)]
pub(super) struct CallLog {
    calls: Vec<LoggedCall>,
    /// The number of operations, data and names that the calls stored in the tape's record.
    stored: usize,
}

impl CallLog {
    /// Records the nodes of `call`, and logs them. Returns the node of the result, or `None` if the derivative is zero.
    pub(super) fn record<T: Float>(
        &mut self,
        call: CustomCall,
        tape: &Tape<T>,
        at: Site,
    ) -> Result<Option<Index>, Error> {
        let (before, on_behalf_of) = {
            let record = tape.record.borrow();
            (record.mark(), record.on_behalf_of)
        };
        let result = call.record(tape, at)?;
        let after = tape.record.borrow().mark();
        self.stored += after.stored() - before.stored();
        self.calls.push(LoggedCall { call, on_behalf_of, start: before.extent, end: after.extent, result });
        Ok(result)
    }
}

/// Records the requested derivative if the tape has the nodes of a kept derivative. Returns the gradients, or `None` if the derivative
/// must be recorded as usual. A kept derivative with other nodes of a custom operation is no longer kept.
///
/// # Errors
///
/// The errors of the custom operations, and an error if the tape is full.
pub(super) fn replay<T: Float>(tape: &Tape<T>, request: &Request) -> Result<Option<Vec<Option<Index>>>, Error> {
    let found = {
        let record = tape.record.borrow();
        // `try_with` fails while the thread ends.
        let found = KEPT.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            let position = kept.iter().position(|derivative| derivative.serves(&record, request))?;
            kept[..=position].rotate_right(1);
            Some(Rc::clone(&kept[0]))
        });
        found.ok().flatten()
    };
    let Some(derivative) = found else { return Ok(None) };
    let gradients = derivative.record(tape, request.at)?;
    if gradients.is_none() {
        let _ = KEPT.try_with(|kept| kept.borrow_mut().retain(|other| !Rc::ptr_eq(other, &derivative)));
    }
    Ok(gradients)
}

/// Keeps the derivative that was recorded on `tape` after `start`, if a later tape can copy its nodes.
pub(super) fn keep<T: Float>(tape: &Tape<T>, start: Mark, request: Request, log: CallLog, gradients: &[Option<Index>]) {
    let mut record = tape.record.borrow_mut();
    let known = start.identity.map_or_else(Extent::default, |base| base.extent);
    // Only custom operations may store data or other operations, because the other nodes are copied without them.
    let is_copyable = record.mark().stored() - start.stored() == log.stored;
    if !is_copyable || record.len() - known.nodes > MAX_KEPT_NODES {
        return;
    }
    let derivative = Rc::new(Derivative {
        request,
        dtype: T::DTYPE,
        base: start.identity,
        part: record.part(known),
        locations: record.locations()[known.nodes..].to_vec(),
        start: start.extent,
        identity: record.expression.identify(),
        calls: log.calls,
        gradients: gradients.to_vec(),
    });
    let _ = KEPT.try_with(|kept| {
        let kept = &mut *kept.borrow_mut();
        kept.insert(0, derivative);
        let mut total = 0;
        kept.retain(|derivative| {
            total += derivative.part.nodes();
            total <= MAX_KEPT_NODES
        });
        kept.truncate(MAX_KEPT);
    });
}

impl Derivative {
    /// Returns the end of the nodes that `base` identifies, where `part` begins.
    fn known(&self) -> Extent {
        self.base.map_or_else(Extent::default, |base| base.extent)
    }

    /// Returns true if the tape has the nodes on which this derivative was recorded, and the request is the same.
    fn serves<T: Float>(&self, record: &Record<T>, request: &Request) -> bool {
        let (known, end) = (self.known(), record.extent());
        let same_line = |(x, y): (&Option<&Location<'_>>, &Option<&Location<'_>>)| match (x, y) {
            (Some(x), Some(y)) => std::ptr::eq(*x, *y),
            (x, y) => x.is_none() && y.is_none(),
        };
        self.start == end
            && self.dtype == T::DTYPE
            && self.request == *request
            && (self.base.is_none() || self.base == record.identity())
            && record.has(&self.part, known, end)
            && record.locations()[known.nodes..].iter().zip(&self.locations).all(same_line)
            && record.operations().all(|operation| operation.is_differentiable())
    }

    /// Records this derivative on a tape that it [serves](Self::serves). Returns the gradients. If a custom operation records other nodes
    /// than before, removes the recorded nodes and returns `None`.
    fn record<T: Float>(&self, tape: &Tape<T>, at: Site) -> Result<Option<Vec<Option<Index>>>, Error> {
        let before = tape.record.borrow().mark();
        let _derivation = tape.start_derivation();
        let mut copied = self.start;
        for logged in &self.calls {
            {
                let mut record = tape.record.borrow_mut();
                self.copy(&mut record, copied, logged.start);
                record.on_behalf_of = logged.on_behalf_of;
            }
            let result = logged.call.record(tape, at)?;
            let mut record = tape.record.borrow_mut();
            let is_same = result == logged.result
                && record.extent() == logged.end
                && record.has(&self.part, logged.start, logged.end);
            if !is_same {
                record.truncate(before);
                return Ok(None);
            }
            copied = logged.end;
        }
        let mut record = tape.record.borrow_mut();
        self.copy(&mut record, copied, self.part.end());
        record.expression.share_identity(Some(self.identity));
        Ok(Some(self.gradients.clone()))
    }

    /// Appends the nodes from `from` to `to` to a tape that ends at `from`.
    fn copy<T: Float>(&self, record: &mut Record<T>, from: Extent, to: Extent) {
        let first = self.known().nodes;
        record.append(&self.part, &self.locations[from.nodes - first..to.nodes - first], from, to);
    }
}

/// Returns true if the result of `node` belongs to a custom operation.
pub(super) fn is_custom<T: Float>(record: &Record<T>, node: Index) -> bool {
    matches!(record.op(node), Op::Other(_))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::Location;
    use std::rc::Rc;

    use wengert_tensor::Site;
    use wengert_tensor::prelude::*;

    use super::{KEPT, MAX_KEPT, Request, replay};
    use crate::{Call, Error, Operation, Tape, Var};

    /// Doubles its input. Its derivative is recorded as `g + g` or as `g * 2`.
    struct Double {
        adds: bool,
        is_differentiable: bool,
    }

    impl Operation<f64> for Double {
        fn name(&self) -> &'static str {
            "double"
        }

        fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
            Ok(&inputs[0] * 2.0)
        }

        fn vjp<'t>(&self, _: &Call<'t, f64>, _: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
            Some(if self.adds { g + g } else { g * 2.0 })
        }

        fn is_differentiable(&self) -> bool {
            self.is_differentiable
        }
    }

    const ADDS: Double = Double { adds: true, is_differentiable: true };

    /// Records a loss with custom and other operations, and returns it with the variable on which it depends. The lookups read the rows
    /// `rows`.
    fn loss<'t>(tape: &'t Tape<f64>, rows: &[i64], double: Double) -> (Var<'t, f64>, Var<'t, f64>) {
        let x = tape.var(&Tensor::from([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]));
        let rows = Tensor::from(rows.to_vec());
        let looked_up = x.index_select(0, &rows) + x.index_select(0, &rows);
        let doubled = tape.apply(double, &[looked_up.softmax(-1).matmul(x.t())]);
        let y = (doubled.exp() + x.cumsum(0).sum(..)).sum(..) + (x * x).amax(..) + x.detach().floor().sum(..);
        (y, x)
    }

    /// Returns the nodes of a tape as text, with their lines of code.
    fn nodes(tape: &Tape<f64>) -> (String, Vec<Option<&'static Location<'static>>>) {
        let record = tape.record.borrow();
        let text = format!("{:?}", record.expression);
        (text.split(", identity").next().unwrap_or_default().to_string(), record.locations().to_vec())
    }

    /// Returns the nodes and the gradient of [`loss`], and whether the derivative was recorded again.
    fn derive(rows: &[i64], double: Double) -> (impl Eq + Send + std::fmt::Debug, Vec<f64>, bool) {
        let tape = Tape::new();
        let (y, x) = loss(&tape, rows, double);
        let at = Site::here("test");
        let seed = y.unit_seed(at).unwrap();
        let before = KEPT.with_borrow(Vec::clone);
        let gradient = tape.reverse(&[(y, seed)], &[x], at).unwrap()[0].unwrap();
        let is_replayed = KEPT.with_borrow(|kept| before.iter().any(|known| Rc::ptr_eq(known, &kept[0])));
        (nodes(&tape), gradient.value().to_vec(), is_replayed)
    }

    #[test]
    fn a_replayed_derivative_has_the_nodes_of_a_recorded_one() {
        let (nodes, gradient, is_replayed) = derive(&[0, 1, 1], ADDS);
        assert!(!is_replayed);
        assert_eq!(derive(&[0, 1, 1], ADDS), (nodes, gradient.clone(), true));
        // The custom operations of a replayed derivative have the data of their own tape.
        let (_, other, is_replayed) = derive(&[0, 0, 1], ADDS);
        assert!(is_replayed && other != gradient);
        let recorded = std::thread::spawn(|| derive(&[0, 0, 1], ADDS).1).join().unwrap();
        assert_eq!(other, recorded);
    }

    #[test]
    fn a_custom_operation_that_records_other_nodes_is_recorded_anew() {
        let (nodes, gradient, _) = derive(&[0, 1], ADDS);
        let (other_nodes, other, is_replayed) = derive(&[0, 1], Double { adds: false, is_differentiable: true });
        assert!(!is_replayed && nodes != other_nodes);
        assert_eq!(gradient, other);
        let recorded = std::thread::spawn(|| {
            let (nodes, gradient, _) = derive(&[0, 1], Double { adds: false, is_differentiable: true });
            (format!("{nodes:?}"), gradient)
        });
        assert_eq!((format!("{other_nodes:?}"), other), recorded.join().unwrap());
    }

    #[test]
    fn an_operation_without_a_derivative_is_refused_after_one_with_a_derivative() {
        derive(&[1, 0], ADDS);
        let tape = Tape::new();
        let (y, x) = loss(&tape, &[1, 0], Double { adds: true, is_differentiable: false });
        assert!(matches!(y.try_grad([x]), Err(Error::NotDifferentiable { operation: "double", .. })));
    }

    #[test]
    fn equal_nodes_of_other_lines_keep_their_lines() {
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([1.0, 2.0]));
        let first = x.exp().sum(..).grad([x])[0];
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([1.0, 2.0]));
        let second = x.exp().sum(..).grad([x])[0];
        let line = |var: Var<'_, f64>| var.tape().record.borrow().location(var.index).line();
        assert_eq!(line(second), line(first) + 3);
    }

    /// Takes derivatives of derivatives, so that each one is compared only with the nodes after the one before.
    #[test]
    fn nodes_between_derivatives_are_compared() {
        let third = |scale: f64| {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::scalar(2.0));
            let first = (x * x * x * x).grad([x])[0];
            let second = (first * 3.0).grad([x])[0];
            (second * scale).grad([x])[0].item()
        };
        // The third derivative of 3 x⁴ is 72 x.
        for scale in [1.0, 1.0, -0.5, 1.0, -0.5] {
            assert_eq!(third(scale), 144.0 * scale);
        }
    }

    #[test]
    fn a_request_for_other_gradients_is_no_replay() {
        let tape = Tape::<f64>::new();
        let [x, y] = [1.0, 2.0].map(|value| tape.var(&Tensor::scalar(value)));
        let (z, at) = (x * y, Site::here("test"));
        let seed = z.unit_seed(at).unwrap();
        let request =
            |input: Var<'_, f64>| Request { outputs: vec![[z.index, seed.index]], inputs: vec![input.index], at };
        let end = tape.record.borrow().mark();
        assert!(replay(&tape, &request(x)).unwrap().is_none());
        tape.reverse(&[(z, seed)], &[x], at).unwrap();
        tape.record.borrow_mut().truncate(end);
        assert!(replay(&tape, &request(y)).unwrap().is_none());
        assert!(replay(&tape, &request(x)).unwrap().is_some());
    }

    #[test]
    fn the_kept_derivatives_are_few() {
        for count in 1..MAX_KEPT + 8 {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::from([1.0]));
            assert_eq!((x * count as f64).sum(..).grad([x])[0].item(), count as f64);
        }
        assert_eq!(KEPT.with_borrow(Vec::len), MAX_KEPT);
    }

    #[test]
    fn a_derivative_within_a_derivative_is_recorded_again() {
        let calls = Rc::new(Cell::new(0));
        for _ in 0..3 {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::from([3.0]));
            let counted = Rc::clone(&calls);
            let scaled = x.map_gradient(move |g| {
                counted.set(counted.get() + 1);
                g * (g * g).sum(..).grad([g])[0]
            });
            // The gradient at `scaled` is 6, which the function replaces by 6 · 12.
            assert_eq!((scaled * scaled).sum(..).grad([x])[0].item(), 72.0);
        }
        assert_eq!(calls.get(), 3);
    }
}
