//! NAdam.
//!
//! Dozat, "Incorporating Nesterov momentum into Adam" (2016). The update is PyTorch's, with its order of operations
//! (<https://pytorch.org/docs/stable/generated/torch.optim.NAdam.html>), for a parameter's t-th step:
//!
//! ```text
//! g ← gradient + weight_decay · p, or p ← p - lr · weight_decay · p                  (decoupled)
//! μₜ = β₁ (1 - ½ · 0.96^(t · momentum_decay)),  Π ← Π μₜ
//! m ← m + (1 - β₁) (g - m)
//! v ← β₂ v + (1 - β₂) g²
//! d = √(v / (1 - β₂ᵗ)) + ε
//! p ← p - lr (1 - μₜ) / (1 - Π) · g / d - lr μₜ₊₁ / (1 - Π μₜ₊₁) · m / d
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::optimizer::{Common, Optimizer, Range, Setting, States};

/// [`Adam`](crate::Adam) with Nesterov's momentum. PyTorch: `torch.optim.NAdam`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::grad};
/// use wengert_nn::{NAdam, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), NAdam::new(0.2));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct NAdam<T: Float = f32> {
    betas: [f64; 2],
    eps: f64,
    momentum_decay: f64,
    common: Common<Self, T>,
}

impl<T: Float> NAdam<T> {
    /// With learning rate `lr` (PyTorch's default: 0.002), betas 0.9 and 0.999, epsilon 1e-8 and a momentum decay of 0.004. Settings are checked by the first step.
    pub fn new(lr: f64) -> Self {
        NAdam { betas: [0.9, 0.999], eps: 1e-8, momentum_decay: 4e-3, common: Common::new(lr) }
    }

    /// With memories of the gradient (`first`) and of its square (`second`), from 0 to 1, 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        NAdam { betas: [first, second], ..self }
    }

    /// With `eps`, not negative, added to the divisor.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        NAdam { eps, ..self }
    }

    /// With another decay of the momentum, not negative.
    #[must_use]
    pub fn momentum_decay(self, momentum_decay: f64) -> Self {
        NAdam { momentum_decay, ..self }
    }

    /// With weight decay that does not go through the moments: `lr · weight_decay` times the parameter is taken from it.
    #[must_use]
    pub fn decoupled(mut self) -> Self {
        self.common.decoupled = true;
        self
    }
}

impl<T: Float> Optimizer<T> for NAdam<T> {
    fn common(&self) -> &Common<Self, T> {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common<Self, T> {
        &mut self.common
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq", "mu_product"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
        each("momentum_decay", Setting::Number(&mut self.momentum_decay, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (steps, lr, [beta1, beta2]) = (states.steps as f64, self.common.lr, self.betas);
        let mu = |step: f64| beta1 * (1.0 - 0.5 * 0.96f64.powf(step * self.momentum_decay));
        if states.tensors.is_empty() {
            let zeros = || Tensor::try_full(value.shape(), T::ZERO);
            states.tensors = vec![zeros()?, zeros()?, Tensor::scalar(T::ONE)];
        }
        let [first, second, product] = states.tensors_mut::<3>(value);
        *product = Tensor::scalar(product.item() * number(mu(steps)));
        let product = product.item().to_f64();
        let of_gradient = number(-lr * (1.0 - mu(steps)) / (1.0 - product));
        let of_moment = number(-lr * mu(steps + 1.0) / (1.0 - product * mu(steps + 1.0)));
        let (fresh1, kept2, fresh2, eps) = (number(1.0 - beta1), number(beta2), number(1.0 - beta2), number(self.eps));
        let (along, decayed) = (self.common.along(), self.common.decayed());
        let correction = number(1.0 - beta2.powf(steps));
        Ok(value.try_update_with(gradient, [first, second], |p, g, [m, v]| {
            let g = along.of(p, g);
            let (m, v) = (m + fresh1 * (g - m), v * kept2 + fresh2 * g * g);
            let divisor = (v / correction).sqrt() + eps;
            (decayed.of(p) + of_gradient * g / divisor + of_moment * m / divisor, [m, v])
        })?)
    }
}
