//! The optimiser Adadelta.
//!
//! Zeiler, "ADADELTA: an adaptive learning rate method" (2012). The update follows PyTorch, including the order of
//! operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adadelta.html>). Here p is the parameter, v the
//! running mean of its squared gradient, and u the running mean of d². The letter d stands for a step before it is multiplied by lr.
//! The settings are ρ (`rho`) and ε (`eps`):
//!
//! ```text
//! g ← gradient + weight_decay · p
//! v ← ρ v + (1 - ρ) g²
//! d ← √(u + ε) / √(v + ε) · g
//! u ← ρ u + (1 - ρ) d²
//! p ← p - lr · d
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// Gradient descent whose steps are scaled by the root mean square of earlier steps, divided by the root mean square of the gradient. So a step
/// has the same unit as the parameter. PyTorch: `torch.optim.Adadelta`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Adadelta, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), Adadelta::new(10.0));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct Adadelta<T: Float = f32> {
    rho: f64,
    eps: f64,
    common: Common<Self, T>,
}

impl<T: Float> Adadelta<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 1), rho 0.9 and epsilon 1e-6. The first step
    /// checks the settings.
    pub fn new(lr: f64) -> Self {
        Adadelta { rho: 0.9, eps: 1e-6, common: Common::new(lr) }
    }

    /// Sets the decay rate of the running mean squares of gradients and steps, from 0 to 1. Each step multiplies the old means by `rho`.
    #[must_use]
    pub fn rho(self, rho: f64) -> Self {
        Adadelta { rho, ..self }
    }

    /// Sets the constant that is added to both mean squares before their square roots are taken. It must not be negative.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Adadelta { eps, ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Adadelta<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["square_avg", "acc_delta"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("rho", Setting::Number(&mut self.rho, Range::UpToOne));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (lr, gradient_of, eps) = (number(self.common.lr), self.common.penalized_gradient(), number(self.eps));
        let (rho, share) = (number(self.rho), number(1.0 - self.rho));
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [v, u]| {
            let g = gradient_of.compute(p, g);
            let v = v * rho + share * g * g;
            let d = (u + eps).sqrt() / (v + eps).sqrt() * g;
            (p - lr * d, [v, u * rho + share * d * d])
        })?)
    }
}
