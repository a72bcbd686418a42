//! The methods of a call of an operation, for one example and for a batch. The derivative rules and batching rules of operations use them.

use wengert_macros::twins;
use wengert_tensor::{Float, Shape, Site};

use crate::tape::{BatchedCall, Call};
use crate::{Error, Var};

impl<'t, T: Float> Call<'t, T> {
    /// Returns the input with index `position`.
    ///
    /// # Panics
    ///
    /// If the operation has fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position]
    }

    /// Returns all inputs.
    #[inline]
    pub fn inputs(&self) -> &[Var<'t, T>] {
        &self.inputs
    }

    /// Returns the result of the call.
    #[inline]
    pub fn output(&self) -> Var<'t, T> {
        self.output
    }

    /// Returns the value of `result`. If `result` is an error, returns `None`, and recording the derivative returns the error. A rule returns
    /// errors in this way, because its own result is an `Option`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_autograd as autograd; }
    /// use wengert::autograd::{Call, Error, Operation};
    /// use wengert::prelude::*;
    ///
    /// struct Double;
    ///
    /// impl Operation<f64> for Double {
    ///     fn name(&self) -> &'static str {
    ///         "double"
    ///     }
    ///
    ///     fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
    ///         Ok(inputs[0].try_mul(2.0)?)
    ///     }
    ///
    ///     fn vjp<'t>(&self, call: &Call<'t, f64>, _: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
    ///         call.value_of(g.try_mul(2.0))
    ///     }
    /// }
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::scalar(3.0));
    /// assert_eq!(tape.apply(Double, &[x]).grad([x])[0].item(), 2.0);
    /// ```
    pub fn value_of<V>(&self, result: Result<V, Error>) -> Option<V> {
        self.failure.value_of(result)
    }

    /// Returns a site with the name `operation` and the line of code that requested the derivative.
    #[inline]
    pub(crate) fn site(&self, operation: &'static str) -> Site {
        Site { operation, ..self.at }
    }
}

impl<'t, T: Float> BatchedCall<'t, T> {
    /// Returns the number of examples in the batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of inputs of the operation.
    pub fn arity(&self) -> usize {
        self.inputs.len()
    }

    /// Returns true if the input with index `position` has a batch dimension. Otherwise it is the same for all examples.
    ///
    /// # Panics
    ///
    /// If the operation has fewer inputs.
    #[track_caller]
    pub fn is_batched(&self, position: usize) -> bool {
        self.inputs[position].1
    }

    /// Returns the input with index `position`. It has a batch dimension only if [`is_batched`](Self::is_batched) returns true.
    ///
    /// # Panics
    ///
    /// If the operation has fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position].0
    }

    /// Returns the input with index `position`, with the batch dimension first. An input that is the same for all examples is expanded,
    /// which copies nothing. Panics if the operation has fewer inputs.
    ///
    /// # Errors
    ///
    /// If the expanded input has more elements than can be addressed, or the tape is full.
    #[twins]
    pub fn try_batched(&self, position: usize) -> Result<Var<'t, T>, Error> {
        let (var, is_batched) = self.inputs[position];
        if is_batched { Ok(var) } else { var.repeat_for_batch(self.size, self.at) }
    }

    /// Returns all inputs as [`batched`](Self::batched) does.
    ///
    /// # Errors
    ///
    /// If an expanded input has more elements than can be addressed, or the tape is full.
    pub fn try_all_batched(&self) -> Result<Vec<Var<'t, T>>, Error> {
        (0..self.arity()).map(|position| self.try_batched(position)).collect()
    }

    /// Returns the value of `result`. If `result` is an error, returns `None`, and recording the batch returns the error. A batching rule
    /// returns errors in this way, because its own result is an `Option`.
    pub fn value_of<V>(&self, result: Result<V, Error>) -> Option<V> {
        self.failure.value_of(result)
    }

    /// Returns the shape of the result for all examples, with the batch dimension first.
    pub fn shape(&self) -> Shape {
        self.with_batch(&self.shape)
    }

    /// Returns `shape` with the batch dimension first.
    pub(crate) fn with_batch(&self, shape: &[usize]) -> Shape {
        std::iter::once(self.size).chain(shape.iter().copied()).collect()
    }
}
