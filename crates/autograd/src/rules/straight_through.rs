//! The value of one, the derivative of another: for conventions in which they differ (Y. Bengio, N. Léonard and A. Courville,
//! "Estimating or propagating gradients through stochastic neurons", 2013, name it a straight-through estimator).

use wengert_tensor::{Float, Shape, Tensor};

use crate::{Call, Error, Operation, Var};

/// The derivative of the first input, the value of the second.
pub(crate) struct StraightThrough;

impl<T: Float> Operation<T> for StraightThrough {
    fn name(&self) -> &'static str {
        "straight_through"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[1].clone())
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        (input == 0).then_some(g)
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        (input == 0).then_some(v)
    }
}
