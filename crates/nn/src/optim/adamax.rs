//! Adamax.
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section 7.1. The update is PyTorch's, with its order of
//! operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adamax.html>), for a parameter's t-th step:
//!
//! ```text
//! g ← gradient + weight_decay · p
//! m ← m + (1 - β₁) (g - m)
//! u ← max(β₂ u, |g| + ε)
//! p ← p - lr / (1 - β₁ᵗ) · m / u
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::optimizer::{Common, Optimizer, Range, Setting, States};

/// [`Adam`](crate::Adam) with a decaying maximum of the gradient in place of its mean square. PyTorch: `torch.optim.Adamax`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::grad};
/// use wengert_nn::{Adamax, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), Adamax::new(0.2));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct Adamax<T: Float = f32> {
    betas: [f64; 2],
    eps: f64,
    common: Common<Self, T>,
}

impl<T: Float> Adamax<T> {
    /// With learning rate `lr` (PyTorch's default: 0.002), betas 0.9 and 0.999 and epsilon 1e-8. Settings are checked by the first step.
    pub fn new(lr: f64) -> Self {
        Adamax { betas: [0.9, 0.999], eps: 1e-8, common: Common::new(lr) }
    }

    /// With memories of the gradient (`first`) and of its largest size (`second`), from 0 to 1, 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        Adamax { betas: [first, second], ..self }
    }

    /// With `eps`, not negative, added to the size of the gradient.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Adamax { eps, ..self }
    }
}

impl<T: Float> Optimizer<T> for Adamax<T> {
    fn common(&self) -> &Common<Self, T> {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common<Self, T> {
        &mut self.common
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_inf"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let [beta1, beta2] = self.betas;
        let rate = number(-self.common.lr / (1.0 - beta1.powf(states.steps as f64)));
        let (fresh, kept, eps, along) = (number(1.0 - beta1), number(beta2), number(self.eps), self.common.along());
        Ok(value.try_update_with(gradient, states.tensors_mut(value), |p, g, [m, u]| {
            let g = along.of(p, g);
            let m = m + fresh * (g - m);
            let (old, new) = (u * kept, if g < T::ZERO { -g } else { g } + eps);
            // NaN stays, as in PyTorch's `maximum`.
            let u = if new > old || new.to_f64().is_nan() { new } else { old };
            (p + rate * m / u, [m, u])
        })?)
    }
}
