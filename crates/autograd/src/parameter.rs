//! Parameters and buffers: tensors that belong to a model.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use wengert_tensor::{Element, Float, Tensor};

/// A trained tensor. It belongs to the model, not to a tape. [`Tape::parameter`](crate::Tape::parameter) records it as
/// a variable for one step, and it is the key of its gradient in the step's [`Gradients`](crate::Gradients). PyTorch:
/// `torch.nn.Parameter`.
///
/// A parameter that is frozen when a tape records it is a constant on that tape: [`backward`](crate::Var::backward) computes no gradient
/// for it. A clone is a separate parameter with the same values.
///
/// ```
/// # use wengert_autograd::prelude::*;
/// let mut weight = Parameter::new(Tensor::from([2.0f32, 3.0]));
/// weight.set_frozen(true);
/// let tape = Tape::new();
/// let x = tape.var(&Tensor::from([1.0, 1.0]));
/// let gradients = (x * tape.parameter(&weight)).sum(..).backward();
/// assert!(gradients.get(&weight).is_none());
/// ```
#[derive(Debug)]
pub struct Parameter<T: Float = f32> {
    id: u64,
    frozen: bool,
    created_at: &'static Location<'static>,
    /// The current values.
    pub value: Tensor<T>,
}

impl<T: Float> Parameter<T> {
    /// Returns a parameter with the given values. Error messages name the line of code that calls this function.
    #[track_caller]
    pub fn new(value: Tensor<T>) -> Self {
        Parameter { id: next_id(), frozen: false, created_at: Location::caller(), value }
    }

    /// Returns the parameter's id, which is unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the line of code that made the parameter. For the parameter of a layer, it is the line that made the layer. For a clone, it
    /// is the line that made the original.
    pub fn created_at(&self) -> &'static Location<'static> {
        self.created_at
    }

    /// Returns true if the parameter is frozen: it is a constant on tapes. PyTorch: `not requires_grad`.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Makes the parameter a constant on later tapes, or a variable again. PyTorch: `requires_grad_`.
    #[doc(alias("requires_grad_", "requires_grad"))]
    pub fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }
}

impl<T: Float> Clone for Parameter<T> {
    fn clone(&self) -> Self {
        Parameter { id: next_id(), frozen: self.frozen, created_at: self.created_at, value: self.value.clone() }
    }
}

/// A tensor of a model that no gradient changes, such as a running statistic or a count. Training updates it, and checkpoints save it
/// with the model. PyTorch: `register_buffer`.
///
/// On a training tape, layers record how a step changes the buffer ([`Tape::blend`](crate::Tape::blend),
/// [`Tape::count`](crate::Tape::count)). The new statistic is computed with the gradients, and the optimiser's step applies the change. A
/// clone is a separate buffer with the same values.
#[doc(alias("register_buffer"))]
#[derive(Debug)]
pub struct Buffer<E: Element = f32> {
    id: u64,
    /// The current values.
    pub value: Tensor<E>,
}

impl<E: Element> Buffer<E> {
    /// Returns a buffer with the given values.
    pub fn new(value: Tensor<E>) -> Self {
        Buffer { id: next_id(), value }
    }

    /// Returns the buffer's id, which is unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<E: Element> Clone for Buffer<E> {
    fn clone(&self) -> Self {
        Buffer::new(self.value.clone())
    }
}

/// The weight of a batch in a running statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlendWeight {
    /// The statistic of the batch has this weight w, and the previous value has the weight 1 - w. PyTorch: `momentum`.
    Fixed(f64),
    /// The result is the plain average of the statistics of all batches. The field is the number of batches so far,
    /// including this one. The caller of [`Tape::blend`](crate::Tape::blend) does not count earlier batches on the same
    /// tape: the tape adds them. PyTorch: `momentum=None`.
    CumulativeAverage(u64),
}

impl BlendWeight {
    /// Returns the weight of the batch in the new value of the statistic. The weight of `CumulativeAverage(0)` is 1.
    pub fn value(self) -> f64 {
        match self {
            BlendWeight::Fixed(weight) => weight,
            BlendWeight::CumulativeAverage(number) => 1.0 / number.max(1) as f64,
        }
    }
}

/// The change of a buffer in a training step. `V` is the type of the batch's statistic.
#[derive(Clone, Debug)]
pub enum BufferChange<V> {
    /// The statistic in the buffer moves towards `new` by `weight`: it becomes `value + weight · (new - value)`.
    Blend {
        /// The batch's statistic.
        new: V,
        /// The weight of the batch.
        weight: BlendWeight,
    },
    /// The buffer is a count, which grows by one.
    Count,
}

impl<V: Copy> BufferChange<V> {
    /// Returns the batch's statistic, or `None` for a count.
    pub(crate) fn statistic(&self) -> Option<V> {
        match self {
            BufferChange::Blend { new, .. } => Some(*new),
            BufferChange::Count => None,
        }
    }
}

impl<V> BufferChange<V> {
    /// Returns the change as it is after `earlier` changes of the same buffer. In a plain average, these count as
    /// earlier batches. Every other kind of change stays the same.
    pub(crate) fn count_earlier_batches(self, earlier: u64) -> Self {
        match self {
            BufferChange::Blend { new, weight: BlendWeight::CumulativeAverage(number) } => {
                BufferChange::Blend { new, weight: BlendWeight::CumulativeAverage(number.saturating_add(earlier)) }
            }
            other => other,
        }
    }

    /// Returns the same change, with its statistic converted by `convert`.
    pub(crate) fn map<W>(self, convert: impl FnOnce(V) -> W) -> BufferChange<W> {
        match self {
            BufferChange::Blend { new, weight } => BufferChange::Blend { new: convert(new), weight },
            BufferChange::Count => BufferChange::Count,
        }
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
