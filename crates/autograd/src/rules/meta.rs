//! Operations that return their first input unchanged. They give the result another derivative, or check a condition.

use wengert_tensor::ops::{Functions, Reductions, TensorLike};
use wengert_tensor::plan::ResultOrigin;
use wengert_tensor::{Float, Site, Tensor};

use super::shared::{JacobianProduct, elementwise};
use crate::{BatchedCall, Call, Error, Operation, Var};

/// An operation that returns its first input unchanged. Except for `ZeroGradients`, its derivative with respect to this input is 0. Its
/// derivative with respect to another input is a formula over the inputs and the result.
#[derive(Clone)]
pub(crate) enum WithDerivative {
    /// The derivative Σ slope · d input. Each input of the operation after the first is either an input or a slope of this sum.
    Slopes(Vec<Role>),
    /// The derivative of softmax along a dimension, or of its logarithm if `log` is true, computed from the output.
    Softmax { axis: usize, log: bool },
    /// The derivative 1 with respect to the first input, and 0 with respect to the others. The others may have any shape.
    ZeroGradients,
}

/// The role of an input of [`WithDerivative::Slopes`], after the first input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// An input with a derivative. Another input has the values of this derivative (the slope), and the field is the position of that other
    /// input. If the field is `None`, the slope is 1.
    Input(Option<usize>),
    /// The slope of another input. It counts as a constant in the derivative.
    Slope,
}

impl WithDerivative {
    /// Returns the operation with the derivative Σ slope · d input over the pairs (input, slope) in `terms`. Also returns the list of the
    /// operation's inputs after the first one.
    pub(crate) fn slopes<'t, T: Float>(terms: Vec<(Var<'t, T>, Option<Var<'t, T>>)>) -> (Self, Vec<Var<'t, T>>) {
        let (mut roles, mut inputs) = (Vec::new(), Vec::new());
        for (input, slope) in terms {
            inputs.push(input);
            roles.push(Role::Input(slope.map(|_| inputs.len() + 1)));
            if let Some(slope) = slope {
                inputs.push(slope);
                roles.push(Role::Slope);
            }
        }
        (WithDerivative::Slopes(roles), inputs)
    }

    /// Records the derivative with respect to the input with index `input`, applied to `v`. Returns `None` if it is 0.
    fn derivative<'t, T: Float>(
        &self,
        product: JacobianProduct,
        call: &Call<'t, T>,
        input: usize,
        v: Var<'t, T>,
    ) -> Option<Var<'t, T>> {
        if matches!(self, WithDerivative::ZeroGradients) {
            return (input == 0).then_some(v);
        }
        let (z, role) = (call.output(), input.checked_sub(1)?);
        match *self {
            WithDerivative::ZeroGradients => None,
            // This derivative is elementwise, so the formula is the same in reverse and forward mode.
            WithDerivative::Slopes(ref roles) => match roles[role] {
                Role::Input(Some(slope)) => Some(v * call.input(slope)),
                Role::Input(None) => Some(v),
                Role::Slope => None,
            },
            WithDerivative::Softmax { axis, log } => {
                let sum = |x: Var<'t, T>| x.sum_keepdim(axis as isize);
                Some(match (log, product) {
                    (false, _) => z * (v - sum(v * z)),
                    (true, JacobianProduct::Vjp) => v - z.exp() * sum(v),
                    (true, JacobianProduct::Jvp) => v - sum(z.exp() * v),
                })
            }
        }
    }
}

impl<T: Float> Operation<T> for WithDerivative {
    fn name(&self) -> &'static str {
        match self {
            WithDerivative::Slopes(_) => "with_derivative",
            WithDerivative::ZeroGradients => "with_zero_gradients",
            WithDerivative::Softmax { log: false, .. } => "softmax",
            WithDerivative::Softmax { log: true, .. } => "log_softmax",
        }
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn result_origin(&self) -> ResultOrigin {
        ResultOrigin::FirstInput
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        self.derivative(JacobianProduct::Vjp, call, input, g)
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        self.derivative(JacobianProduct::Jvp, call, input, v)
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let mut batched = self.clone();
        if let WithDerivative::Softmax { axis, .. } = &mut batched {
            *axis += 1;
        }
        elementwise(batched, call)
    }

    fn is_constant_in(&self, input: usize) -> bool {
        match self {
            WithDerivative::Slopes(roles) if input > 0 => matches!(roles[input - 1], Role::Slope),
            WithDerivative::ZeroGradients => false,
            _ => input == 0,
        }
    }
}

/// An operation that returns its input unchanged. Its evaluation fails if the condition `holds` is false for an element.
pub(crate) struct Guard<T> {
    pub(crate) holds: fn(T) -> bool,
    pub(crate) message: &'static str,
    pub(crate) at: Site,
}

impl<T: Float> Operation<T> for Guard<T> {
    fn name(&self) -> &'static str {
        "guarded"
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].check_elements(self.holds, self.message, self.at)?)
    }

    fn result_origin(&self) -> ResultOrigin {
        ResultOrigin::CheckedInput
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
        // For a = 2 and a = 3, the slopes are x e⁻ˣ / Γ(2) and x² e⁻ˣ / Γ(3). The second check is for the derivatives of the slopes.
        let [slope] = a.igamma(x).sum(..).grad([x]);
        assert!(near(&slope.value(), [3.0 * (-3f64).exp(), 0.125 * (-0.5f64).exp()]));
        let [second] = slope.sum(..).grad([x]);
        assert!(near(&second.value(), [-2.0 * (-3f64).exp(), 0.375 * (-0.5f64).exp()]));
        let [upper] = a.igammac(x).sum(..).grad([x]);
        assert_eq!(upper.value(), -slope.value());
        assert!(a.igamma(x).sum(..).try_grad([a]).is_err());
    }
}
