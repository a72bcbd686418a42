//! RAdam.
//!
//! Liu et al., "On the variance of the adaptive learning rate and beyond" (2020). The update is PyTorch's, with its order of
//! operations (<https://pytorch.org/docs/stable/generated/torch.optim.RAdam.html>), for a parameter's t-th step:
//!
//! ```text
//! g ← gradient + weight_decay · p, or p ← p - lr · weight_decay · p                  (decoupled)
//! m ← m + (1 - β₁) (g - m)
//! v ← β₂ v + (1 - β₂) g²
//! ρ∞ = 2 / (1 - β₂) - 1,  ρ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
//! r = √((ρ - 4) (ρ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρ)) · √(1 - β₂ᵗ) / (√v + ε) where ρ > 5, 1 otherwise
//! p ← p - lr · m / (1 - β₁ᵗ) · r
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::optimizer::{Common, Optimizer, Range, Setting, States};

/// [`Adam`](crate::Adam) that begins with plain momentum, while there are too few gradients for their variance. PyTorch:
/// `torch.optim.RAdam`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::grad};
/// use wengert_nn::{RAdam, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), RAdam::new(0.2));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct RAdam<T: Float = f32> {
    betas: [f64; 2],
    eps: f64,
    common: Common<Self, T>,
}

impl<T: Float> RAdam<T> {
    /// With learning rate `lr` (PyTorch's default: 0.001), betas 0.9 and 0.999 and epsilon 1e-8. Settings are checked by the first step.
    pub fn new(lr: f64) -> Self {
        RAdam { betas: [0.9, 0.999], eps: 1e-8, common: Common::new(lr) }
    }

    /// With memories of the gradient (`first`) and of its square (`second`), from 0 to 1, 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        RAdam { betas: [first, second], ..self }
    }

    /// With `eps`, not negative, added to the divisor.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        RAdam { eps, ..self }
    }

    /// With weight decay that does not go through the moments: `lr · weight_decay` times the parameter is taken from it.
    #[must_use]
    pub fn decoupled(mut self) -> Self {
        self.common.decoupled = true;
        self
    }
}

impl<T: Float> Optimizer<T> for RAdam<T> {
    fn common(&self) -> &Common<Self, T> {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common<Self, T> {
        &mut self.common
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (steps, [beta1, beta2]) = (states.steps as f64, self.betas);
        let correction = 1.0 - beta2.powf(steps);
        let longest = 2.0 / (1.0 - beta2) - 1.0;
        let length = longest - 2.0 * steps * beta2.powf(steps) / correction;
        let rectified = length > 5.0;
        let share = (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length);
        let (root, share) = (number(correction.sqrt()), number(share.sqrt()));
        let (lr, unbiased, eps) = (number(self.common.lr), number(1.0 - beta1.powf(steps)), number(self.eps));
        let (fresh1, kept2, fresh2) = (number(1.0 - beta1), number(beta2), number(1.0 - beta2));
        let (along, decayed) = (self.common.along(), self.common.decayed());
        Ok(value.try_update_with(gradient, states.tensors_mut(value), |p, g, [m, v]| {
            let g = along.of(p, g);
            let (m, v) = (m + fresh1 * (g - m), v * kept2 + fresh2 * g * g);
            let step = m / unbiased * lr;
            let step = if rectified { step * (root / (v.sqrt() + eps)) * share } else { step };
            (decayed.of(p) - step, [m, v])
        })?)
    }
}
