//! The tape, its variables, and the trait of operations. These types depend on each other, so they share a file.
//!
//! Most of their methods are in other files of this folder, and in the modules `derive`, `evaluate` and `variable`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use wengert_macros::precompiled;
use wengert_tensor::plan::{NodeIndex, ResultOrigin};
use wengert_tensor::{Float, Generator, Shape, Site, Tensor};

use crate::Error;
use crate::parameter::BufferChange;
use crate::record::{self, RecycledRecord};

/// The contents of a tape whose operations are [`Operation`]s.
pub(crate) type Record<T> = record::Record<T, Rc<dyn Operation<T>>>;

/// A recorded program: a list of elementary operations, as R. E. Wengert introduced it (1964).
///
/// Recording computes nothing. A tape lives for one step: create it, record, take values and gradients, and drop it. It
/// has one floating-point type and belongs to one thread.
///
/// ```
/// # use wengert_autograd as wengert;
/// use wengert::prelude::*;
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
    /// The tape's number, which is unique in this process.
    pub(crate) id: u64,
    /// The state of a training tape. It is `None` on other tapes.
    pub(super) training: Option<RefCell<Training>>,
    /// The kind of the last layer that [noted](Self::note_evaluation) that it ran in evaluation mode on this tape.
    pub(crate) evaluated_layer: Cell<Option<&'static str>>,
}

/// The state of a training tape.
pub(super) struct Training {
    pub(super) generator: Generator,
    /// The changes of buffers in the order of recording, each with the buffer's id.
    pub(super) changes: Vec<(u64, BufferChange<NodeIndex>)>,
}

#[precompiled]
impl<T: Float> Tape<T> {
    /// Returns an empty tape.
    #[doc(alias("eval"))]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (record, id) = (RecycledRecord::take(), NEXT.fetch_add(1, Ordering::Relaxed));
        Tape { record, id, training: None, evaluated_layer: Cell::new(None) }
    }

    /// Returns an empty tape for a training step. On this tape dropout drops elements, and batch normalisation uses the batch and updates
    /// its running statistics. On a tape from [`new`](Self::new) the same layers are in evaluation mode. Random operations draw from a
    /// stream that this function forks from `generator`. PyTorch sets the model instead of the step: `model.train()`, `model.eval()`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd as autograd; }
    /// use wengert::autograd::{Generator, prelude::*};
    ///
    /// let mut generator = Generator::new(0);
    /// assert!(Tape::<f32>::training(&mut generator).is_training());
    /// assert!(!Tape::<f32>::new().is_training());
    /// ```
    #[doc(alias("train"))]
    pub fn training(generator: &mut Generator) -> Self {
        let training = Training { generator: generator.fork(), changes: Vec::new() };
        Tape { training: Some(RefCell::new(training)), ..Tape::new() }
    }

    /// Returns true if this is the tape of a training step.
    #[inline]
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    /// Returns the number of recorded nodes: operations and leaves.
    #[inline]
    pub fn len(&self) -> usize {
        self.record.borrow().len()
    }

    /// Returns true if nothing is recorded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn var_of(&self, index: NodeIndex) -> Var<'_, T> {
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

/// A handle to a value on a [`Tape`]. The value is recorded now, and computed when it is requested.
///
/// A variable has the operations of a tensor, from the traits in the prelude, and `+ - * / %` with variables, tensors and numbers. If two
/// shapes differ, an `expand` is recorded before the operation. No other recorded operation broadcasts.
///
/// ```
/// # use wengert_autograd as wengert;
/// use wengert::prelude::*;
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
/// The operations are methods of the traits of [`wengert_tensor::ops`], and functions there. `use wengert::prelude::*` imports them.
/// Without the crate `wengert`, import `wengert_autograd::prelude`. An example without a `use` line has this import too.
///
#[doc = include_str!("operations.md")]
pub struct Var<'t, T: Float = f32> {
    pub(crate) tape: &'t Tape<T>,
    pub(crate) index: NodeIndex,
}

impl<T: Float> Clone for Var<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Float> Copy for Var<'_, T> {}

impl<'t, T: Float> Var<'t, T> {
    #[inline]
    pub(crate) fn new(tape: &'t Tape<T>, index: NodeIndex) -> Self {
        Var { tape, index }
    }

    /// Returns the tape of this variable.
    #[inline]
    pub fn tape(self) -> &'t Tape<T> {
        self.tape
    }
}

/// An elementary operation on variables, with its derivatives.
///
/// The derivatives are formulas over recorded variables, so they can be differentiated again. Higher derivatives and forward over
/// reverse mode need no other code.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{BatchedCall, Call, Error, Operation, prelude::*};
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
    /// Returns the operation's name, for errors and graphs.
    fn name(&self) -> &'static str;

    /// Returns the result's shape, or a sentence that says why the operation refuses inputs of these shapes. By
    /// default, returns the shape of the first input, or an error if there is no input.
    ///
    /// # Errors
    ///
    /// If the operation refuses inputs of these shapes.
    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        inputs.first().cloned().ok_or_else(|| "an operation without inputs must define 'shape'".to_string())
    }

    /// Computes the result for inputs with the given values.
    ///
    /// # Errors
    ///
    /// If the operation refuses these values, or memory cannot hold the result.
    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error>;

    /// Returns the origin of the result. Evaluations do not call [`run`](Self::run) of a [`ResultOrigin::FirstInput`]; only
    /// [`Tape::first_non_finite`] calls it.
    #[doc(hidden)]
    fn result_origin(&self) -> ResultOrigin {
        ResultOrigin::Computed
    }

    /// Returns, in reverse mode, the upstream gradient `g` times the derivative with respect to the input with index `input`. `g` has the
    /// result's shape, and the returned product has the input's shape. `None` means that the derivative is zero everywhere.
    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>>;

    /// Returns, in forward mode, the derivative with respect to the input with index `input`, times the tangent `v`. `v` has the input's
    /// shape, and the returned product has the result's shape. `None` means that the derivative is zero everywhere.
    ///
    /// By default, forward mode differentiates [`vjp`](Self::vjp) with respect to its upstream gradient, in which `vjp` is linear. The
    /// result is the same, but the program is longer.
    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let _ = (input, v);
        call.lacks_jvp.set(true);
        None
    }

    /// Returns the results for all examples, with the batch dimension first. A batched input has the batch dimension first too.
    ///
    /// By default (`None`), the operation is recorded once for each example, and the results are stacked. That gives the same values, but
    /// takes as long as a loop. PyTorch: the static method `vmap` of `torch.autograd.Function`.
    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let _ = call;
        None
    }

    /// Returns true if the operation has a derivative. Otherwise a request for its derivative is an error, which names the operation and
    /// the line of code that recorded it. As in PyTorch, this is an error in both modes even if the derivative would be multiplied by 0. An
    /// example is an operation with a `floor` before or after it.
    fn is_differentiable(&self) -> bool {
        true
    }

    /// Returns true if the operation counts the input with index `input` as a constant. A derivative then does not pass to this input, so
    /// operations before it may refuse derivatives.
    #[doc(hidden)]
    fn is_constant_in(&self, input: usize) -> bool {
        let _ = input;
        false
    }
}

/// One call of an operation: its inputs and its result, as variables.
#[derive(Clone, Debug)]
pub struct Call<'t, T: Float = f32> {
    pub(crate) inputs: SmallVec<[Var<'t, T>; 3]>,
    pub(crate) output: Var<'t, T>,
    /// The operation that requested the derivative, and the line of code that called it.
    pub(crate) at: Site,
    /// True after the default of [`Operation::jvp`] was called: the operation has no rule for forward mode.
    pub(crate) lacks_jvp: Cell<bool>,
    pub(crate) failure: RuleFailure,
}

/// One call of an operation for all examples of a batch. Inputs that differ between examples have the batch dimension first.
#[derive(Clone, Debug)]
pub struct BatchedCall<'t, T: Float = f32> {
    /// Each input, with a flag that is true if the input has a batch dimension.
    pub(crate) inputs: SmallVec<[(Var<'t, T>, bool); 3]>,
    pub(crate) size: usize,
    /// The shape of the result for one example.
    pub(crate) shape: Shape,
    pub(crate) at: Site,
    pub(crate) failure: RuleFailure,
}

/// The error of a derivative rule or batching rule. A rule cannot return errors, so it stores its error here and returns `None`. Recording
/// the derivative or the batch then returns the error.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleFailure(RefCell<Option<Box<Error>>>);

impl RuleFailure {
    /// Returns the value of `result`. If `result` is an error, stores the error and returns `None`.
    pub(crate) fn value_of<V>(&self, result: Result<V, Error>) -> Option<V> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.replace(Some(Box::new(error)));
                None
            }
        }
    }

    /// Removes the stored error and returns it as `Err`. Returns `Ok` if there is none.
    #[inline]
    pub(crate) fn take(&self) -> Result<(), Error> {
        self.0.take().map_or(Ok(()), |error| Err(*error))
    }
}
