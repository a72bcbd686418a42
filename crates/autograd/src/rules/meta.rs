//! Operations that change no value, only what is known of it: another derivative, a condition.

use wengert_tensor::ops::TensorLike;
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::{Call, Error, Operation, Var};

/// The values of the first input with the derivative of the second.
pub(crate) struct DerivativeOf;

impl<T: Float> Operation<T> for DerivativeOf {
    fn name(&self) -> &'static str {
        "with_derivative_of"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        (input == 1).then_some(g)
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        (input == 1).then_some(v)
    }
}

/// The input, refused where it is computed if an element is not as it must be.
pub(crate) struct Guard<T> {
    pub(crate) holds: fn(T) -> bool,
    pub(crate) message: &'static str,
    pub(crate) at: Site,
}

impl<T: Float> Operation<T> for Guard<T> {
    fn name(&self) -> &'static str {
        "guarded"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].guarded(self.holds, self.message, self.at)?)
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        Some(g)
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        Some(v)
    }
}
