//! The tape, its variables, and the interface of operations: three types that depend on each other.
//!
//! This file records; it computes nothing and knows no derivative.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use wengert_macros::{precompiled, twins};
use wengert_tensor::plan::{Index, Inputs, Op};
use wengert_tensor::{Float, Generator, Shape, Site, Tensor};

use crate::Error;
use crate::error::{or_raise, raise};
use crate::parameter::{Buffer, Change, Parameter, Share};
use crate::record::{self, RecycledRecord};

/// The contents of a tape.
pub(crate) type Record<T> = record::Record<T, Rc<dyn Operation<T>>>;

/// A recorded program: Wengert's list of elementary operations.
///
/// Recording computes nothing. A tape lives for one step: create it, record, take values and gradients, drop it. It has one
/// floating-point type and belongs to one thread.
///
/// ```
/// use wengert_autograd::prelude::*;
///
/// let tape = Tape::<f32>::new();
/// let maps = tape.var(&Tensor::ones([4, 32, 14, 14]));
/// let bias = tape.var(&Tensor::zeros([32, 1, 1]));
/// let loss = (maps + bias).sum(..);
/// let gradients = loss.backward();
/// assert_eq!(gradients.of(bias), &Tensor::full([32, 1, 1], 4.0 * 14.0 * 14.0));
/// ```
pub struct Tape<T: Float = f32> {
    pub(crate) record: RecycledRecord<T, Rc<dyn Operation<T>>>,
    /// The tape's unique number in this process.
    pub(crate) id: u64,
    /// On a training tape.
    training: Option<RefCell<Training>>,
}

/// What only a training tape has.
struct Training {
    generator: Generator,
    /// Changes of buffers, by the buffer's number, in the order of recording.
    changes: Vec<(u64, Change<Index>)>,
}

#[twins]
#[precompiled]
impl<T: Float> Tape<T> {
    /// An empty tape.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Tape { record: RecycledRecord::take(), id: NEXT.fetch_add(1, Ordering::Relaxed), training: None }
    }

    /// An empty tape for a training step: on it dropout drops, and batch normalisation uses the batch and changes its running
    /// statistics. What is random draws from a stream that is forked from `generator` here. On a tape from [`new`](Self::new)
    /// the same layers evaluate. PyTorch: `model.train()`, `model.eval()`, said of the step instead of the model.
    ///
    /// ```
    /// use wengert_autograd::{Generator, prelude::*};
    ///
    /// let mut generator = Generator::new(0);
    /// assert!(Tape::<f32>::training(&mut generator).is_training());
    /// assert!(!Tape::<f32>::new().is_training());
    /// ```
    pub fn training(generator: &mut Generator) -> Self {
        let training = Training { generator: generator.fork(), changes: Vec::new() };
        Tape { training: Some(RefCell::new(training)), ..Tape::new() }
    }

    /// Whether this is the tape of a training step.
    #[inline]
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    /// What `draw` draws from the generator of a training tape; `None` on any other.
    pub fn draw<R>(&self, draw: impl FnOnce(&mut Generator) -> R) -> Option<R> {
        self.training.as_ref().map(|training| draw(&mut training.borrow_mut().generator))
    }

    /// Records that the step moves `buffer` towards `new`, a statistic of the batch of the same shape, by `share`. The statistic is
    /// computed with the gradients. Nothing happens on a tape that does not train.
    ///
    /// # Errors
    ///
    /// If the statistic has another shape than the buffer, or belongs to another tape.
    pub fn try_blend(&self, buffer: &Buffer<T>, new: Var<'_, T>, share: Share) -> Result<(), Error> {
        self.check_fit("buffer", buffer.value.shape(), new, Site::here("blend"))?;
        self.change(buffer.id(), Change::Blend { new: new.index, share });
        Ok(())
    }

    /// Records that the step adds one to `buffer`. Nothing happens on a tape that does not train.
    pub fn count(&self, buffer: &Buffer<i64>) {
        self.change(buffer.id(), Change::Count);
    }

    /// The state of a training tape's generator.
    pub(crate) fn generator(&self) -> Option<Generator> {
        self.draw(|generator| generator.clone())
    }

    /// Goes back to a state from [`generator`](Self::generator).
    pub(crate) fn set_generator(&self, state: Option<Generator>) {
        if let Some(state) = state {
            self.draw(|generator| *generator = state);
        }
    }

    fn change(&self, buffer: u64, change: Change<Index>) {
        if let Some(training) = &self.training {
            training.borrow_mut().changes.push((buffer, change));
        }
    }

    /// The recorded changes of buffers.
    pub(crate) fn changes(&self) -> Vec<(u64, Change<Index>)> {
        self.training.as_ref().map_or_else(Vec::new, |training| training.borrow().changes.clone())
    }

    /// Number of operations recorded, leaves included.
    pub fn len(&self) -> usize {
        self.record.borrow().len()
    }

    /// Whether nothing is recorded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A variable with the values of `data`, with respect to which gradients can be taken. Nothing is copied.
    #[track_caller]
    pub fn var(&self, data: &Tensor<T>) -> Var<'_, T> {
        self.leaf(data, Op::Variable, Some(Site::here("var")))
    }

    /// A variable with the values of `data` that stops gradients: inputs, targets, masks. Nothing is copied.
    #[track_caller]
    pub fn constant(&self, data: &Tensor<T>) -> Var<'_, T> {
        self.leaf(data, Op::Constant, Some(Site::here("constant")))
    }

    /// The variable of a parameter, or the constant if it is frozen; repeated calls return the same one.
    ///
    /// # Errors
    ///
    /// If its values changed since this tape recorded it: each step needs a tape of its own.
    pub fn try_parameter(&self, parameter: &Parameter<T>) -> Result<Var<'_, T>, Error> {
        let at = Site::here("parameter");
        let id = parameter.id();
        if let Some(&(_, index)) = self.record.borrow().bound.iter().rev().find(|(bound, _)| *bound == id) {
            return Ok(Var::new(self, index));
        }
        let known = self.record.borrow().parameters.iter().find(|(known, _)| *known == id).map(|&(_, index)| index);
        if let Some(index) = known {
            // The tape holds the values that it recorded, so changed ones are in other memory.
            let recorded = self.record.borrow().leaf(index);
            if recorded.is_some_and(|recorded| !recorded.shares_storage(&parameter.value)) {
                return Err(Error::ParameterChanged { made: parameter.made(), at });
            }
            return Ok(Var::new(self, index));
        }
        let op = if parameter.is_frozen() { Op::Constant } else { Op::Variable };
        let var = self.leaf(&parameter.value, op, Some(at));
        self.record.borrow_mut().parameters.push((id, var.index));
        Ok(var)
    }

    /// Makes `value` stand for a parameter on this tape: what a model computes is then a function of variables, to be differentiated
    /// like any other. The last one that was bound counts. PyTorch: `torch.func.functional_call`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    ///
    /// let w = Parameter::new(Tensor::from([1.0f32, 2.0]));
    /// let tape = Tape::new();
    /// let scale = tape.var(&Tensor::scalar(3.0));
    /// tape.bind(&w, tape.constant(&w.value) * scale);
    /// let y = tape.parameter(&w).sum(..);
    /// assert_eq!(y.item(), 9.0);
    /// assert_eq!(y.grad([scale])[0].item(), 3.0);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variable has another shape than the parameter, or belongs to another tape.
    pub fn try_bind(&self, parameter: &Parameter<T>, value: Var<'_, T>) -> Result<(), Error> {
        self.check_fit("parameter", parameter.value.shape(), value, Site::here("bind"))?;
        self.record.borrow_mut().bound.push((parameter.id(), value.index));
        Ok(())
    }

    /// Refuses a variable that is of another tape, or of another shape than what it is to stand for.
    fn check_fit(&self, what: &str, shape: &Shape, value: Var<'_, T>, at: Site) -> Result<(), Error> {
        if value.tape.id != self.id {
            return Err(Error::OtherTape { at });
        }
        let got = value.shape();
        if got != *shape {
            let message = format!("expected a variable of the {what}'s shape {shape}, got one of shape {got}");
            return Err(Error::Refused { message, at });
        }
        Ok(())
    }

    /// A variable with the source line of `at`.
    pub(crate) fn leaf_at(&self, data: &Tensor<T>, at: Site) -> Var<'_, T> {
        self.leaf(data, Op::Variable, Some(Site { operation: "var", ..at }))
    }

    /// Data as a variable. Without a site, it is the constant of an operation and gets the line of that operation.
    pub(crate) fn leaf(&self, data: &Tensor<T>, op: fn(u32) -> Op, at: Option<Site>) -> Var<'_, T> {
        self.leaf_of(at, |record| (op(record.add_data(data.clone())), record.intern(data.shape())))
    }

    /// A number as a variable that stops gradients; without a site as in [`leaf`](Self::leaf).
    pub(crate) fn number(&self, value: T, at: Option<Site>) -> Var<'_, T> {
        self.leaf_of(at, |record| (record.add_number(value), record.intern(&Shape::scalar())))
    }

    /// Records the leaf that `add` adds to the record.
    fn leaf_of(&self, at: Option<Site>, add: impl FnOnce(&mut Record<T>) -> (Op, u32)) -> Var<'_, T> {
        let pushed = {
            let mut record = self.record.borrow_mut();
            let (op, shape) = add(&mut record);
            record.push(op, [], shape, at.map(|at| at.location))
        };
        match pushed {
            Some(index) => Var::new(self, index),
            None => raise(Error::TapeFull { at: at.unwrap_or(Site::here("constant")) }),
        }
    }

    /// Records a custom operation.
    ///
    /// # Errors
    ///
    /// If the operation refuses the inputs' shapes, or an input belongs to another tape.
    pub fn try_apply<'t>(&'t self, operation: impl Operation<T>, inputs: &[Var<'t, T>]) -> Result<Var<'t, T>, Error> {
        let at = Site::here(operation.name());
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape()).collect();
        let shape = operation.shape(&shapes).map_err(|message| Error::Refused { message, at })?;
        self.record_operation(Rc::new(operation), inputs, &shape, at)
    }

    /// The inputs and results of the custom operations of this name, in the order of recording.
    pub fn calls(&self, name: &str) -> Vec<(Vec<Var<'_, T>>, Var<'_, T>)> {
        let record = self.record.borrow();
        let named = |&index: &Index| matches!(record.op(index), Op::Other(_)) && record.name(index) == name;
        let call = |index| (record.operands(index).iter().map(|&input| self.at(input)).collect(), self.at(index));
        (0..record.len() as Index).filter(named).map(call).collect()
    }

    /// Records an operation with parameters, which is stored beside the nodes; its shape is known.
    pub(crate) fn record_operation<'t>(
        &'t self,
        operation: Rc<dyn Operation<T>>,
        inputs: &[Var<'t, T>],
        shape: &Shape,
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let indices = self.indices(inputs, at)?;
        let mut record = self.record.borrow_mut();
        let shape = record.intern(shape);
        let (name, is_alias) = (operation.name(), operation.is_alias());
        let Some(index) = record.push_operation((operation, name), &indices, shape, at.location) else {
            return Err(Error::TapeFull { at });
        };
        if is_alias {
            record.set_alias(index);
        }
        Ok(Var::new(self, index))
    }

    /// Records the concatenation of `parts` along `axis`.
    pub(crate) fn record_cat<'t>(
        &'t self,
        parts: &[Var<'t, T>],
        axis: usize,
        shape: &Shape,
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let indices = self.indices(parts, at)?;
        let mut record = self.record.borrow_mut();
        let shape = record.intern(shape);
        let index = record.push_cat(axis, &indices, shape, at.location).ok_or(Error::TapeFull { at })?;
        Ok(Var::new(self, index))
    }

    /// Records an operation on inputs of this tape whose result has shape number `shape`.
    #[inline]
    pub(crate) fn push<const N: usize>(
        &self,
        op: Op,
        inputs: [Index; N],
        shape: impl FnOnce(&mut Record<T>) -> u32,
        at: Site,
    ) -> Result<Var<'_, T>, Error> {
        let mut record = self.record.borrow_mut();
        let shape = shape(&mut record);
        match record.push(op, inputs, shape, Some(at.location)) {
            Some(index) => Ok(Var::new(self, index)),
            None => Err(Error::TapeFull { at }),
        }
    }

    fn indices(&self, inputs: &[Var<'_, T>], at: Site) -> Result<Inputs, Error> {
        inputs
            .iter()
            .map(|input| if input.tape.id == self.id { Ok(input.index) } else { Err(Error::OtherTape { at }) })
            .collect()
    }

    /// The variable of node `index`.
    #[inline]
    pub(crate) fn at(&self, index: Index) -> Var<'_, T> {
        Var::new(self, index)
    }
}

impl<T: Float> Default for Tape<T> {
    fn default() -> Self {
        Tape::new()
    }
}

impl<T: Float> fmt::Debug for Tape<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape<{}> of {} operations", T::DTYPE, self.len())
    }
}

/// A value on a [`Tape`], recorded now and computed when requested.
///
/// The operations are the same as a tensor's, from the traits in the prelude, and `+ - * / %` with variables, tensors and numbers.
/// If two shapes differ, an `expand` is recorded before the operation: it is the only operation that broadcasts.
///
/// ```
/// use wengert_autograd::prelude::*;
///
/// let tape = Tape::<f64>::new();
/// let x = tape.var(&Tensor::from([1.0, 2.0]));
/// let y = (x.square() + 1.0).log().sum(..); // recorded, not computed
/// let [slope] = y.grad([x]); // recorded too: 2x / (x² + 1)
/// assert_eq!(slope.value().to_vec(), [1.0, 0.8]); // computed here
/// ```
///
/// # Operations
///
/// They are methods of the traits of [`wengert_tensor::ops`], which `use wengert::prelude::*` brings along (in this crate the
/// [`prelude`](crate::prelude)), and functions there.
///
#[doc = include_str!("operations.md")]
pub struct Var<'t, T: Float = f32> {
    pub(crate) tape: &'t Tape<T>,
    pub(crate) index: Index,
}

impl<T: Float> Clone for Var<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Float> Copy for Var<'_, T> {}

#[precompiled]
impl<'t, T: Float> Var<'t, T> {
    #[inline]
    pub(crate) fn new(tape: &'t Tape<T>, index: Index) -> Self {
        Var { tape, index }
    }

    /// The tape it is recorded on.
    #[inline]
    pub fn tape(self) -> &'t Tape<T> {
        self.tape
    }

    /// The sizes, known without computing.
    pub fn shape(self) -> Shape {
        self.tape.record.borrow().shape(self.index).clone()
    }

    /// Records a function of this variable with the same shape.
    #[inline]
    pub(crate) fn record(self, op: Op, at: Site) -> Result<Self, Error> {
        self.tape.push(op, [self.index], |record| record.node(self.index).shape, at)
    }

    /// Records a function of this variable with the shape `shape`.
    pub(crate) fn record_over(self, op: Op, shape: &Shape, at: Site) -> Result<Self, Error> {
        self.tape.push(op, [self.index], |record| record.intern(shape), at)
    }

    /// Refuses variables of another tape.
    #[inline]
    pub(crate) fn check_tape(self, other: Self, at: Site) -> Result<(), Error> {
        if std::ptr::eq(self.tape, other.tape) { Ok(()) } else { Err(Error::OtherTape { at }) }
    }

    /// Repeated `size` times along a new first dimension.
    pub(crate) fn repeated(self, size: usize, at: Site) -> Self {
        let shape = self.shape().replaced(0..0, &[size]);
        or_raise(self.record_over(Op::Expand, &shape, at))
    }

    /// Zeros of the same shape, stored as one element.
    #[track_caller]
    pub(crate) fn zeros_like(self) -> Self {
        self.filled(&self.shape(), T::ZERO)
    }

    /// [`zeros_like`](Self::zeros_like) with the source line of `at`.
    pub(crate) fn zeros_like_at(self, at: Site) -> Self {
        self.filled_at(&self.shape(), T::ZERO, at)
    }

    /// One number expanded to a shape, on the same tape.
    #[track_caller]
    pub(crate) fn filled(self, shape: &Shape, value: T) -> Self {
        self.filled_at(shape, value, Site::here("full"))
    }

    /// [`filled`](Self::filled) with the source line of `at`.
    pub(crate) fn filled_at(self, shape: &Shape, value: T, at: Site) -> Self {
        let number = self.tape.number(value, Some(at));
        if shape.rank() == 0 {
            return number;
        }
        or_raise(number.record_over(Op::Expand, shape, at))
    }
}

#[precompiled]
impl<T: Float> fmt::Debug for Var<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.tape.record.borrow();
        let (name, shape, location) = (record.name(self.index), record.shape(self.index), record.location(self.index));
        write!(f, "Var<{}> %{} = {name} {shape}, recorded at {location}", T::DTYPE, self.index)
    }
}

/// An operation on variables.
///
/// The derivative is given as formulas over recorded variables, so it can be differentiated again: higher derivatives and forward
/// over reverse need nothing else.
///
/// ```
/// use wengert_autograd::{BatchedCall, Call, Error, Operation, prelude::*};
///
/// /// x³, with a derivative of its own.
/// struct Cube;
///
/// impl<T: Float> Operation<T> for Cube {
///     fn name(&self) -> &'static str {
///         "cube"
///     }
///
///     fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
///         Ok(inputs[0].clone())
///     }
///
///     fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
///         let x = &inputs[0];
///         Ok(x.try_mul(x)?.try_mul(x)?)
///     }
///
///     fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
///         let x = call.input(0);
///         Some(g * x * x * 3.0)
///     }
///
///     // Elementwise, so the same for a batch. Without this, `vmap` would loop over the examples.
///     fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
///         let x = call.batched(0);
///         Some(x.tape().apply(Cube, &[x]))
///     }
/// }
///
/// let tape = Tape::<f64>::new();
/// let x = tape.var(&Tensor::from([2.0]));
/// let y = tape.apply(Cube, &[x]);
/// assert_eq!(y.value().to_vec(), [8.0]);
/// assert_eq!(y.grad([x])[0].value().to_vec(), [12.0]);
/// ```
pub trait Operation<T: Float>: Any {
    /// The name shown in errors and graphs.
    fn name(&self) -> &'static str;

    /// The result's shape, or a sentence that says why these inputs are refused.
    ///
    /// # Errors
    ///
    /// If the operation refuses inputs of these shapes.
    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String>;

    /// The result.
    ///
    /// # Errors
    ///
    /// If the operation refuses these values, or memory cannot hold the result.
    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error>;

    /// Returns true if the result is the first input. The engine then does not call [`run`](Self::run).
    #[doc(hidden)]
    fn is_alias(&self) -> bool {
        false
    }

    /// Reverse mode: the upstream gradient `g`, of the result's shape, times the derivative with respect to input number
    /// `input`, of that input's shape. `None` if the derivative is zero everywhere.
    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>>;

    /// Forward mode: the derivative with respect to input number `input` times the tangent `v`, of that input's shape; of
    /// the result's shape. `None` if the derivative is zero everywhere.
    ///
    /// Without it, forward mode is the derivative of [`vjp`](Self::vjp) with respect to its upstream gradient, in which it is linear:
    /// right, but a longer program.
    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let _ = (input, v);
        call.lacks_jvp.set(true);
        None
    }

    /// Batching: the results for all examples, the batch dimension first, from inputs of which some have the batch dimension first.
    ///
    /// Without it (`None`), the operation is recorded once for each example, and the results are stacked: right, but as slow as a
    /// loop. PyTorch: the static method `vmap` of `torch.autograd.Function`.
    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let _ = call;
        None
    }

    /// Whether a derivative exists. If not, requesting one is an error that names this operation and the line that recorded it.
    fn is_differentiable(&self) -> bool {
        true
    }
}

/// One call of an operation: its inputs and its result, as variables.
#[derive(Clone, Debug)]
pub struct Call<'t, T: Float = f32> {
    pub(crate) inputs: SmallVec<[Var<'t, T>; 3]>,
    pub(crate) output: Var<'t, T>,
    /// Set where forward mode finds that the operation has no rule for it.
    pub(crate) lacks_jvp: Cell<bool>,
}

#[precompiled]
impl<'t, T: Float> Call<'t, T> {
    /// Input number `position`.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position]
    }

    /// All inputs.
    #[inline]
    pub fn inputs(&self) -> &[Var<'t, T>] {
        &self.inputs
    }

    /// The result.
    #[inline]
    pub fn output(&self) -> Var<'t, T> {
        self.output
    }
}

/// One call of an operation for all examples of a batch: inputs that differ from example to example have the batch dimension first.
#[derive(Clone, Debug)]
pub struct BatchedCall<'t, T: Float = f32> {
    /// Each with whether it has a batch dimension.
    pub(crate) inputs: SmallVec<[(Var<'t, T>, bool); 3]>,
    pub(crate) size: usize,
    /// The shape of the result for one example.
    pub(crate) shape: Shape,
    pub(crate) at: Site,
}

impl<'t, T: Float> BatchedCall<'t, T> {
    /// Number of examples.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of inputs.
    pub fn arity(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input number `position` has a batch dimension; if not, it is the same for all examples.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn is_batched(&self, position: usize) -> bool {
        self.inputs[position].1
    }

    /// Input number `position`, with or without a batch dimension.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position].0
    }

    /// Input number `position` with the batch dimension first: expanded, which copies nothing, if it is the same for all examples.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn batched(&self, position: usize) -> Var<'t, T> {
        let (var, is_batched) = self.inputs[position];
        if is_batched { var } else { var.repeated(self.size, self.at) }
    }

    /// The result's shape, the batch dimension included.
    pub fn shape(&self) -> Shape {
        self.with_batch(&self.shape)
    }

    /// `shape` with the batch dimension first.
    pub(crate) fn with_batch(&self, shape: &[usize]) -> Shape {
        std::iter::once(self.size).chain(shape.iter().copied()).collect()
    }
}
