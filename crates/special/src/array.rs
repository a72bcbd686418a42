//! The trait of the two types of arrays, tensors and variables. A tensor computes an elementwise function immediately, but a variable records the
//! function on its tape.

use wengert_autograd::{BatchedCall, Call, Error, Operation, Var};
use wengert_tensor::ops::{Arithmetic, TensorLike};
use wengert_tensor::{Error as TensorError, Float, Shape, Site, Tensor};

/// A [`Tensor`] or a [`Var`] of floating-point numbers. Operations over this trait are written once for both types.
pub trait Array: TensorLike<Elem: Float> {
    /// Applies `function` to inputs of equal shapes, at least one.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the result, or the inputs belong to different tapes.
    #[doc(hidden)]
    fn apply_elementwise(function: impl Elementwise, inputs: &[Self], at: Site) -> Result<Self, Self::Error>;
}

/// An elementwise function of one or more arrays of equal shapes. Each element of the result depends only on the inputs' elements at the
/// same position.
#[doc(hidden)]
pub trait Elementwise: Clone + 'static {
    /// Returns the name that error messages and drawings of the tape show.
    fn name(&self) -> &'static str;

    /// Computes the values of the function for each element of `inputs`.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the result.
    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Tensor<T>, TensorError>;

    /// Returns the elementwise derivative with respect to the input with index `input`. Returns `None` if the derivative is zero everywhere,
    /// or if it cannot be recorded. In the latter case `call` keeps the error.
    fn slope<'t, T: Float>(&self, call: &Call<'t, T>, input: usize) -> Option<Var<'t, T>>;

    /// Returns true if the function has a derivative.
    fn is_differentiable(&self) -> bool {
        true
    }
}

impl<T: Float> Array for Tensor<T> {
    fn apply_elementwise(function: impl Elementwise, inputs: &[Self], at: Site) -> Result<Self, TensorError> {
        function.run(inputs, at)
    }
}

impl<T: Float> Array for Var<'_, T> {
    #[track_caller]
    fn apply_elementwise(function: impl Elementwise, inputs: &[Self], at: Site) -> Result<Self, Error> {
        inputs[0].tape().try_apply(Recorded { function, at }, inputs)
    }
}

/// An elementwise function that is recorded on a tape, with the source line of the call.
struct Recorded<F> {
    function: F,
    at: Site,
}

impl<T: Float, F: Elementwise> Operation<T> for Recorded<F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(self.function.run(inputs, self.at)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        self.function.slope(call, input).and_then(|slope| call.value_of(g.try_mul(slope)))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        self.function.slope(call, input).and_then(|slope| call.value_of(v.try_mul(slope)))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let inputs = call.value_of(call.try_all_batched())?;
        let operation = Recorded { function: self.function.clone(), at: self.at };
        call.value_of(inputs[0].tape().try_apply(operation, &inputs))
    }

    fn is_differentiable(&self) -> bool {
        self.function.is_differentiable()
    }
}
