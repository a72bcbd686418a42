//! Operations that return their input unchanged, with another derivative or subject to a condition.

use wengert_tensor::ops::{Functions, Reductions, TensorLike};
use wengert_tensor::plan::Form;
use wengert_tensor::{Float, Shape, Site, Tensor};

use super::mode::elementwise;
use crate::{BatchedCall, Call, Error, Operation, Var};

/// The values of the first input with the derivative Σ slope · d input over the others.
pub(crate) struct WithDerivative {
    /// For each input after the first: the position of its slope (`None` for 1), or that it is a slope itself.
    roles: Vec<Role>,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    /// Has a derivative: the slope at this position, or 1.
    Input(Option<usize>),
    /// The slope of another input; a constant for this derivative.
    Slope,
}

impl WithDerivative {
    /// The operation and its inputs after the first.
    pub(crate) fn new<'t, T: Float>(terms: Vec<(Var<'t, T>, Option<Var<'t, T>>)>) -> (Self, Vec<Var<'t, T>>) {
        let (mut roles, mut inputs) = (Vec::new(), Vec::new());
        for (input, slope) in terms {
            inputs.push(input);
            roles.push(Role::Input(slope.map(|_| inputs.len() + 1)));
            if let Some(slope) = slope {
                inputs.push(slope);
                roles.push(Role::Slope);
            }
        }
        (WithDerivative { roles }, inputs)
    }

    /// Elementwise, so the same in both modes.
    fn scaled<'t, T: Float>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        match *self.roles.get(input.checked_sub(1)?)? {
            Role::Input(Some(slope)) => Some(v * call.input(slope)),
            Role::Input(None) => Some(v),
            Role::Slope => None,
        }
    }
}

impl<T: Float> Operation<T> for WithDerivative {
    fn name(&self) -> &'static str {
        "with_derivative"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn form(&self) -> Option<Form> {
        Some(Form::First)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        self.scaled(call, input, g)
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        self.scaled(call, input, v)
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        elementwise(WithDerivative { roles: self.roles.clone() }, call)
    }
}

/// The values of the first input, which are the softmax of the second along a dimension, or its logarithm, with the derivative of it.
pub(crate) struct Softmax {
    pub(crate) axis: usize,
    pub(crate) log: bool,
}

impl Softmax {
    fn sum<'t, T: Float>(&self, x: Var<'t, T>) -> Var<'t, T> {
        x.sum_keepdim(self.axis as isize)
    }
}

impl<T: Float> Operation<T> for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn form(&self) -> Option<Form> {
        Some(Form::First)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let z = call.output();
        (input == 1).then(|| if self.log { g - z.exp() * self.sum(g) } else { z * (g - self.sum(g * z)) })
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let z = call.output();
        (input == 1).then(|| if self.log { v - self.sum(z.exp() * v) } else { z * (v - self.sum(v * z)) })
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        elementwise(Softmax { axis: self.axis + 1, log: self.log }, call)
    }
}

/// The input unchanged; evaluation fails if an element violates a condition.
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

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        elementwise(Guard { ..*self }, call)
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    #[test]
    fn incomplete_gamma_functions_have_a_derivative_to_their_bound_alone() {
        let tape = Tape::<f64>::new();
        let (a, x) = (tape.var(&Tensor::from([2.0, 3.0])), tape.var(&Tensor::from([3.0, 0.5])));
        let near =
            |got: &Tensor<f64>, want: [f64; 2]| got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-15);
        // x e⁻ˣ / Γ(2) and x² e⁻ˣ / Γ(3), and their derivatives.
        let [slope] = a.igamma(x).sum(..).grad([x]);
        assert!(near(&slope.value(), [3.0 * (-3f64).exp(), 0.125 * (-0.5f64).exp()]));
        let [second] = slope.sum(..).grad([x]);
        assert!(near(&second.value(), [-2.0 * (-3f64).exp(), 0.375 * (-0.5f64).exp()]));
        let [upper] = a.igammac(x).sum(..).grad([x]);
        assert_eq!(upper.value(), -slope.value());
        assert!(a.igamma(x).sum(..).try_grad(&[a]).is_err());
    }
}
