//! The tape, its variables, and the interface of operations: types that depend on each other.
//!
//! Most of their methods are in the files beside: `recording`, `parameters`, `training`, `var`, `call`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use wengert_macros::precompiled;
use wengert_tensor::plan::Index;
use wengert_tensor::{Float, Generator, Shape, Site, Tensor};

use crate::Error;
use crate::parameter::Change;
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
    pub(super) training: Option<RefCell<Training>>,
}

/// What only a training tape has.
pub(super) struct Training {
    pub(super) generator: Generator,
    /// Changes of buffers, by the buffer's number, in the order of recording.
    pub(super) changes: Vec<(u64, Change<Index>)>,
}

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

    /// Number of operations recorded, leaves included.
    pub fn len(&self) -> usize {
        self.record.borrow().len()
    }

    /// Whether nothing is recorded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
