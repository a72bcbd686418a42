//! Reverse mode as a transformation of the tape: it records adjoints from the outputs down to the requested inputs.
//!
//! Recording a derivative computes no values and changes no node. It appends nodes to the same tape, where the derivative can be
//! differentiated again. Only `backward`, `value_and_gradients` and their variants then evaluate the tape.

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Binary, Float, Site, Tensor};

use super::gradients::Gradients;
use super::path::{Path, Sources, Traversal};
use super::replay::{self, CallLog, InputGradients, Replay, Request, RuleCall};
use crate::parameter::BufferChange;
use crate::rules::{self, LinearFactor};
use crate::{Error, Tape, Var};

/// The value of a loss, its gradients, and the values of `N` other variables.
pub type LossWith<T, const N: usize> = (T, Gradients<T>, [Tensor<T>; N]);

#[twins]
impl<T: Float> Tape<T> {
    /// Records a loss on this tape, and returns its value and its gradients. The tape is dropped before this function returns, so that an
    /// optimiser can update the parameters in place. JAX: `value_and_grad`.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let w = Parameter::new(Tensor::from([3.0, 4.0]));
    /// let (loss, gradients) = Tape::<f64>::new().value_and_gradients(|tape| tape.parameter(&w).square().sum(..));
    /// assert_eq!(loss, 25.0);
    /// assert_eq!(gradients.of(&w).to_vec(), [6.0, 8.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`backward`](Var::backward).
    pub fn try_value_and_gradients(
        self,
        loss: impl for<'a> FnOnce(&'a Tape<T>) -> Var<'a, T>,
    ) -> Result<(T, Gradients<T>), Error> {
        let (value, gradients, []) =
            self.value_gradients_with(|tape| (loss(tape), []), Site::here("value_and_gradients"))?;
        Ok((value, gradients))
    }

    /// Does the same as [`value_and_gradients`](Self::value_and_gradients) for a function that returns the loss and other variables, for
    /// example the model's outputs for a metric. The same evaluation computes their values. JAX: `value_and_grad(…, has_aux=True)`.
    ///
    /// # Errors
    ///
    /// As for [`backward_with`](Var::backward_with).
    pub fn try_value_and_gradients_with<const N: usize>(
        self,
        loss: impl for<'a> FnOnce(&'a Tape<T>) -> (Var<'a, T>, [Var<'a, T>; N]),
    ) -> Result<LossWith<T, N>, Error> {
        self.value_gradients_with(loss, Site::here("value_and_gradients_with"))
    }

    fn value_gradients_with<const N: usize>(
        self,
        loss: impl for<'a> FnOnce(&'a Tape<T>) -> (Var<'a, T>, [Var<'a, T>; N]),
        at: Site,
    ) -> Result<LossWith<T, N>, Error> {
        let (loss, others) = loss(&self);
        loss.gradients_with(others, at)
    }
}

#[twins]
#[precompiled]
impl<'t, T: Float> Tape<T> {
    /// Records the gradients of Σ ⟨output, seed⟩ with respect to each of `inputs`. The sum runs over the pairs (output,
    /// seed) in `outputs`. A seed is the incoming gradient of its output. The gradients are variables on the same tape.
    /// Returns `None` for an input on which no output depends. Dependence through comparisons, masks and `detach` does
    /// not count. PyTorch: `torch.autograd.grad` with `grad_outputs`.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let seed = tape.constant(&Tensor::from([10.0, 1.0]));
    /// let dx = tape.vjp(&[(x * x, seed)], &[x])[0].unwrap();
    /// assert_eq!(dx.value().to_vec(), [20.0, 4.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If a seed has another shape than its output, or a variable belongs to another tape. If an operation between inputs and outputs has
    /// no derivative, even if the gradient at its result is zero. Also if a derivative rule returns an error, or the tape is full.
    pub fn try_vjp(
        &'t self,
        outputs: &[(Var<'t, T>, Var<'t, T>)],
        inputs: &[Var<'t, T>],
    ) -> Result<Vec<Option<Var<'t, T>>>, Error> {
        self.reverse(outputs, inputs, Site::here("vjp"))
    }

    /// Does the same as [`try_vjp`](Self::try_vjp), but returns zeros for an input on which no output depends.
    pub(crate) fn reverse_or_zeros(
        &'t self,
        outputs: &[(Var<'t, T>, Var<'t, T>)],
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let gradients = self.reverse(outputs, inputs, at)?;
        gradients.into_iter().zip(inputs).map(|(g, x)| g.map_or_else(|| x.try_zeros_like_at(at), Ok)).collect()
    }

    pub(crate) fn reverse(
        &'t self,
        outputs: &[(Var<'t, T>, Var<'t, T>)],
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Option<Var<'t, T>>>, Error> {
        for (position, (output, seed)) in outputs.iter().enumerate() {
            self.check_owns([*output, *seed], at)?;
            if !output.same_shape(seed) {
                let (expected, got) = (Box::new(output.shape()), Box::new(seed.shape()));
                return Err(Error::SeedShape { position, expected, got, at });
            }
        }
        self.check_owns(inputs.iter().copied(), at)?;
        let request = Request {
            outputs: outputs.iter().map(|(output, seed)| [output.index, seed.index]).collect(),
            inputs: Some(inputs.iter().map(|input| input.index).collect()),
            at,
        };
        let gradients = self.record_gradients(request)?;
        Ok(gradients.into_iter().map(|(_, gradient)| gradient.map(|index| self.var_of(index))).collect())
    }

    /// Records the gradients of `request`. Returns each input with the node of its gradient.
    fn record_gradients(&self, request: Request) -> Result<InputGradients, Error> {
        match replay::replay(self, &request)? {
            Replay::Recorded(gradients) => Ok(gradients),
            Replay::Unrecorded(log) => self.derive(request, log),
        }
    }

    /// Records the gradients of `request` for which no kept derivative could be copied completely. If `log` already has the result of a rule,
    /// copies the rule's nodes instead of calling the rule again.
    fn derive(&self, request: Request, log: CallLog) -> Result<InputGradients, Error> {
        let (start, at) = (self.record.borrow().mark(), request.at);
        let outputs = || request.outputs.iter().map(|&[output, _]| output);
        let sources = request.inputs.as_deref().map_or(Sources::Variables, Sources::Nodes);
        let path = self.path(sources, outputs(), Traversal::Differentiable);
        self.check_differentiable(&path, outputs(), at)?;
        let mut adjoints = Adjoints { nodes: vec![NO_NODE; path.nodes.len()], log };
        for &[output, seed] in &request.outputs {
            if let Some(slot) = path.position(output) {
                adjoints.add(self, slot, self.var_of(seed), at)?;
            }
        }
        self.propagate(&path, &mut adjoints, at)?;
        let gradient = |input: NodeIndex| {
            let Some(slot) = path.position(input) else { return Ok((input, None)) };
            // If an output depends on the input only through derivatives that are zero, the gradient is zero, not `None`.
            let gradient = adjoints.get(self, slot).map_or_else(|| self.var_of(input).try_zeros_like_at(at), Ok)?;
            Ok((input, Some(gradient.index)))
        };
        let inputs = match &request.inputs {
            Some(inputs) => inputs.clone(),
            None => {
                let record = self.record.borrow();
                path.nodes.iter().copied().filter(|&node| record.is_variable(node)).collect()
            }
        };
        let gradients = inputs.into_iter().map(gradient).collect::<Result<InputGradients, Error>>()?;
        if !path.may_refuse {
            replay::cache_derivative(self, start, request, adjoints.log, &gradients);
        }
        Ok(gradients)
    }

    /// Records the adjoints of all nodes on `path`, from the last node to the first. Multiplies each node's adjoint by the derivative with
    /// respect to each of its inputs, and adds the product to the input's adjoint. HIPS/autograd: `backward_pass`.
    fn propagate(&'t self, path: &Path, adjoints: &mut Adjoints, at: Site) -> Result<(), Error> {
        let derivation = self.start_derivation();
        let mut end = path.nodes.len();
        while let Some(slot) = self.propagate_linear(path, adjoints, end, at)? {
            end = slot;
            let Some(g) = adjoints.get(self, slot) else { continue };
            let primitive = derivation.primitive(path.nodes[slot], at);
            let Some(first) = rules::first_differentiable_input(primitive.op) else { continue };
            for position in first..primitive.inputs.len() {
                let Some(below) = path.position(primitive.inputs[position]) else { continue };
                let term = if primitive.rule_may_vary(position) {
                    let call = RuleCall::Vjp { node: primitive.index, input: position, g: g.index };
                    adjoints.log.record(call, self, at)?.map(|index| self.var_of(index))
                } else {
                    primitive.vjp(position, g)?
                };
                if let Some(term) = term {
                    adjoints.add(self, below, term, at)?;
                }
            }
        }
        Ok(())
    }

    /// Propagates adjoints through the additions, subtractions and multiplications of `path` before slot `end`, from the last node to the
    /// first. Stops at the first node of another operation that has an adjoint, and returns its slot, or `None` if there is no such node.
    /// These three operations are frequent, so the tape is borrowed only once for several of them in a row.
    fn propagate_linear(
        &self,
        path: &Path,
        adjoints: &mut Adjoints,
        end: usize,
        at: Site,
    ) -> Result<Option<usize>, Error> {
        let mut guard = self.record.borrow_mut();
        let record = &mut *guard;
        for slot in (0..end).rev() {
            let g = adjoints.nodes[slot];
            if g == NO_NODE {
                continue;
            }
            let index = path.nodes[slot];
            let node = record.node(index);
            let factors = [0, 1].map(|input| LinearFactor::for_input(node.op, input));
            let (Some([x, y]), [Some(first), Some(second)]) = (node.pair(), factors) else { return Ok(Some(slot)) };
            let line = record.location(index);
            record.on_behalf_of = Some(line);
            for (factor, input, other) in [(first, x, y), (second, y, x)] {
                let Some(below) = path.position(input) else { continue };
                let term = factor.multiply(record, [g, other], node.shape, line);
                let sum = match (adjoints.nodes[below], term) {
                    (NO_NODE, term) => term,
                    (total, Some(term)) => record.push(Op::Binary(Binary::Add), [total, term], node.shape, Some(line)),
                    (_, None) => None,
                };
                let Some(sum) = sum else { return Err(Error::TapeFull { at }) };
                adjoints.nodes[below] = sum;
            }
        }
        Ok(None)
    }
}

/// Returns the nodes of the new statistics in `changes`, the recorded changes of buffers.
pub(super) fn statistic_nodes(changes: &[(u64, BufferChange<NodeIndex>)]) -> impl Iterator<Item = NodeIndex> {
    changes.iter().filter_map(|(_, change)| change.statistic())
}

/// Replaces the nodes of the new statistics in `changes` by their values. Each call of `value` returns the next value, in the order of
/// [`statistic_nodes`].
pub(super) fn fill_in_values<T: Float>(
    changes: Vec<(u64, BufferChange<NodeIndex>)>,
    value: &mut dyn FnMut() -> Tensor<T>,
) -> Vec<(u64, BufferChange<Tensor<T>>)> {
    changes.into_iter().map(|(id, change)| (id, change.map(|_| value()))).collect()
}

/// The index that stands for "no node".
const NO_NODE: NodeIndex = NodeIndex::MAX;

/// The adjoint of each slot of a path: the node that is the sum of the adjoint's terms so far, or [`NO_NODE`].
struct Adjoints {
    nodes: Vec<NodeIndex>,
    /// The calls of rules that may record other nodes each time.
    log: CallLog,
}

impl Adjoints {
    fn get<'t, T: Float>(&self, tape: &'t Tape<T>, slot: usize) -> Option<Var<'t, T>> {
        Some(self.nodes[slot]).filter(|&index| index != NO_NODE).map(|index| tape.var_of(index))
    }

    #[inline]
    fn add<'t, T: Float>(&mut self, tape: &'t Tape<T>, slot: usize, term: Var<'t, T>, at: Site) -> Result<(), Error> {
        let total = self.nodes[slot];
        self.nodes[slot] = match total {
            NO_NODE => term.index,
            total if replay::is_custom(&tape.record.borrow(), total) => {
                let sum = self.log.record(RuleCall::Sum { total, term: term.index }, tape, at)?;
                sum.unwrap_or_else(|| unreachable!("a sum has a result"))
            }
            total => rules::accumulate(Some(tape.var_of(total)), term, at)?.index,
        };
        Ok(())
    }
}

/// The value of a loss, its gradients, and the values of any number of other variables, as a list.
type LossAndValues<T> = (T, Gradients<T>, Vec<Tensor<T>>);

#[twins]
#[precompiled]
impl<'t, T: Float> Var<'t, T> {
    /// Records the gradient of this variable, a single number, with respect to each of `inputs`. The gradients are variables on the same
    /// tape and can be differentiated again. PyTorch: `torch.autograd.grad` with `create_graph=True`.
    ///
    /// # Errors
    ///
    /// If this variable is not a single number, does not depend on one of the inputs, or belongs to another tape than an input. Also if an
    /// operation between them has no derivative, a derivative rule returns an error, or the tape is full.
    pub fn try_grad<const N: usize>(self, inputs: [Var<'t, T>; N]) -> Result<[Var<'t, T>; N], Error> {
        let gradients = self.gradients(&inputs, Site::here("grad"))?;
        Ok(std::array::from_fn(|position| gradients[position]))
    }

    /// Does the same as [`grad`](Self::grad) for a list of any length.
    ///
    /// # Errors
    ///
    /// As for [`grad`](Self::grad).
    pub fn try_grad_slice(self, inputs: &[Var<'t, T>]) -> Result<Vec<Var<'t, T>>, Error> {
        self.gradients(inputs, Site::here("grad_slice"))
    }

    /// Does the same as [`grad`](Self::grad), but the gradient is zero for an input that this variable does not depend on. PyTorch:
    /// `materialize_grads=True`.
    ///
    /// # Errors
    ///
    /// If this variable is not a single number, or belongs to another tape than an input. Also if an operation between the inputs and this
    /// variable has no derivative, a derivative rule returns an error, or the tape is full.
    pub fn try_grad_or_zeros<const N: usize>(self, inputs: [Var<'t, T>; N]) -> Result<[Var<'t, T>; N], Error> {
        let gradients = self.gradients_or_zeros(&inputs, Site::here("grad_or_zeros"))?;
        Ok(std::array::from_fn(|position| gradients[position]))
    }

    /// Does the same as [`grad_or_zeros`](Self::grad_or_zeros) for a list of any length.
    ///
    /// # Errors
    ///
    /// As for [`grad_or_zeros`](Self::grad_or_zeros).
    pub fn try_grad_or_zeros_slice(self, inputs: &[Var<'t, T>]) -> Result<Vec<Var<'t, T>>, Error> {
        self.gradients_or_zeros(inputs, Site::here("grad_or_zeros_slice"))
    }

    /// Records the gradients with respect to `inputs`. Returns an error if this variable does not depend on one of them.
    fn gradients(self, inputs: &[Var<'t, T>], at: Site) -> Result<Vec<Var<'t, T>>, Error> {
        let gradients = self.tape.reverse(&[(self, self.unit_seed(at)?)], inputs, at)?;
        let reached = |(gradient, input): (Option<Var<'t, T>>, &Var<'t, T>)| {
            gradient.ok_or_else(|| Error::Unreached { what: input.describe(), at })
        };
        let gradients: Vec<Var<'t, T>> = gradients.into_iter().zip(inputs).map(reached).collect::<Result<_, _>>()?;
        self.group(&gradients);
        Ok(gradients)
    }

    /// Records the gradients with respect to `inputs`. Returns zeros for an input that this variable does not depend on.
    fn gradients_or_zeros(self, inputs: &[Var<'t, T>], at: Site) -> Result<Vec<Var<'t, T>>, Error> {
        let gradients = self.tape.reverse_or_zeros(&[(self, self.unit_seed(at)?)], inputs, at)?;
        self.group(&gradients);
        Ok(gradients)
    }

    /// Makes the gradients a group: when the value of one gradient is requested, the values of all are computed together.
    fn group(self, gradients: &[Var<'t, T>]) {
        self.tape.record.borrow_mut().group(gradients.iter().map(|gradient| gradient.index));
    }

    /// Computes the gradients of this variable, a single number, with respect to every variable made by [`Tape::var`] and every parameter
    /// that it depends on. One evaluation computes them all. The gradients outlive the tape. PyTorch: `backward`, with the gradients
    /// returned instead of stored.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let weight = Parameter::new(Tensor::from([2.0, 3.0]));
    /// let gradients = {
    ///     let tape = Tape::<f64>::new();
    ///     let w = tape.parameter(&weight);
    ///     (w * w).sum(..).backward()
    /// };
    /// assert_eq!(gradients.of(&weight).to_vec(), [4.0, 6.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If this variable is not a single number or depends on no variable and no parameter, or if an operation between them has no
    /// derivative. Also if a derivative rule returns an error, or the tape is full. Also returns the errors of [`value`](Self::value).
    pub fn try_backward(self) -> Result<Gradients<T>, Error> {
        let (_, gradients, []) = self.gradients_with([], Site::here("backward"))?;
        Ok(gradients)
    }

    /// Does the same as [`backward`](Self::backward), and returns the values of `others` from the same evaluation. Examples are the model's
    /// outputs for a metric, or statistics of the batch.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let squares = x.square();
    /// let (gradients, [values]) = squares.sum(..).backward_with([squares]);
    /// assert_eq!(gradients.of(x).to_vec(), [2.0, 4.0]);
    /// assert_eq!(values.to_vec(), [1.0, 4.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`backward`](Self::backward). Also if one of `others` belongs to another tape.
    pub fn try_backward_with<const N: usize>(
        self,
        others: [Var<'t, T>; N],
    ) -> Result<(Gradients<T>, [Tensor<T>; N]), Error> {
        let (_, gradients, others) = self.gradients_with(others, Site::here("backward_with"))?;
        Ok((gradients, others))
    }

    /// Computes the value of this loss, its gradients, and the values of `others`.
    fn gradients_with<const N: usize>(self, others: [Var<'t, T>; N], at: Site) -> Result<LossWith<T, N>, Error> {
        let (loss, gradients, values) = self.gradients_and_values(&others, at)?;
        let mut values = values.into_iter();
        let others = others.map(|_| values.next().unwrap_or_else(|| unreachable!("a value for each variable")));
        Ok((loss, gradients, others))
    }

    fn gradients_and_values(self, others: &[Var<'t, T>], at: Site) -> Result<LossAndValues<T>, Error> {
        self.tape.check_owns(others.iter().copied(), at)?;
        let reached = self.reverse_to_leaves(at)?;
        let changes = self.tape.changes();
        let mut roots: Vec<NodeIndex> = reached.iter().map(|&(_, gradient)| gradient).collect();
        roots.extend(others.iter().map(|other| other.index).chain(statistic_nodes(&changes)));
        // The loss is computed too. Some callers return its value, and users of the other callers usually request it next.
        roots.push(self.index);
        let mut values = self.tape.evaluate(&roots, at)?.into_iter();
        let entries = reached.iter().map(|&(leaf, _)| leaf).zip(values.by_ref()).collect();
        let mut next = || values.next().unwrap_or_else(|| unreachable!("a value for each root"));
        let others = others.iter().map(|_| next()).collect();
        let changes = fill_in_values(changes, &mut next);
        let loss = next().try_item()?;
        Ok((loss, Gradients::new(self.tape, entries, changes), others))
    }

    /// Records the gradients of this variable, a single number, with respect to all leaf variables (including parameters) that it depends
    /// on. Returns the node of each leaf with the node of its gradient.
    pub(super) fn reverse_to_leaves(self, at: Site) -> Result<Vec<(NodeIndex, NodeIndex)>, Error> {
        let seed = self.unit_seed(at)?;
        let request = Request { outputs: vec![[self.index, seed.index]], inputs: None, at };
        let gradients = self.tape.record_gradients(request)?;
        let reached: Vec<(NodeIndex, NodeIndex)> =
            gradients.into_iter().filter_map(|(leaf, gradient)| Some((leaf, gradient?))).collect();
        if reached.is_empty() { Err(Error::NothingReached { at }) } else { Ok(reached) }
    }

    /// Records the number one as the seed (the incoming gradient) of this variable. Returns an error if this variable is not a single
    /// number.
    pub(crate) fn unit_seed(self, at: Site) -> Result<Var<'t, T>, Error> {
        let shape = self.shape();
        if shape.numel() != 1 {
            return Err(Error::NotScalar { shape, at });
        }
        self.try_filled_at(&shape, T::ONE, at)
    }

    fn describe(self) -> String {
        let record = self.tape.record.borrow();
        format!(
            "the {} {} recorded at {}",
            record.name(self.index),
            record.shape(self.index),
            record.location(self.index)
        )
    }
}
