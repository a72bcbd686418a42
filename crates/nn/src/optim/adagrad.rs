//! The optimiser Adagrad.
//!
//! Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (2011). The update follows PyTorch,
//! including the order of operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adagrad.html>). At a parameter's t-th step, with
//! the parameter p, the sum s of its squared gradients, and the setting ε (`eps`):
//!
//! ```text
//! g ← gradient + weight_decay · p
//! s ← s + g²
//! p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√s + ε)
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// Gradient descent whose steps are divided by the root of the sum of all squared gradients so far. PyTorch:
/// `torch.optim.Adagrad`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Adagrad, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), Adagrad::new(1.0));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct Adagrad<T: Float = f32> {
    lr_decay: f64,
    eps: f64,
    initial_accumulator_value: f64,
    common: Common<Self, T>,
}

impl<T: Float> Adagrad<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.01) without decay, epsilon 1e-10, and sums of squared gradients that
    /// begin at 0. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        Adagrad { lr_decay: 0.0, eps: 1e-10, initial_accumulator_value: 0.0, common: Common::new(lr) }
    }

    /// Sets the decay of the learning rate. It must not be negative. A parameter's t-th step divides the rate by `1 + (t - 1) · lr_decay`.
    #[must_use]
    pub fn lr_decay(self, lr_decay: f64) -> Self {
        Adagrad { lr_decay, ..self }
    }

    /// Sets the constant that is added to the divisor of a step, so that the divisor is not 0. It must not be negative.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Adagrad { eps, ..self }
    }

    /// Sets the value at which each sum of squared gradients begins. It must not be negative.
    #[must_use]
    pub fn initial_accumulator_value(self, value: f64) -> Self {
        Adagrad { initial_accumulator_value: value, ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Adagrad<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("lr_decay", Setting::Number(&mut self.lr_decay, Range::NotNegative));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
        let initial = &mut self.initial_accumulator_value;
        each("initial_accumulator_value", Setting::Number(initial, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let decay = 1.0 + (states.steps as f64 - 1.0) * self.lr_decay;
        let rate = number(-self.common.lr / decay);
        let (gradient_of, eps) = (self.common.penalized_gradient(), number(self.eps));
        if states.tensors.is_empty() {
            states.tensors.push(Tensor::try_full(value.shape(), number(self.initial_accumulator_value))?);
        }
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [sum]| {
            let g = gradient_of.compute(p, g);
            let sum = sum + g * g;
            (p + rate * g / (sum.sqrt() + eps), [sum])
        })?)
    }
}
