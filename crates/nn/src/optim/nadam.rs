//! The optimiser NAdam.
//!
//! Dozat, "Incorporating Nesterov momentum into Adam" (2016). The update follows PyTorch, including the order of operations
//! (<https://pytorch.org/docs/stable/generated/torch.optim.NAdam.html>). Here p is the parameter at its t-th step. Its states are the mean
//! gradient m, the mean squared gradient v, and the product Π of all momenta μ so far:
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
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::moments::{Moments, decoupled_setting, moment_settings};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// [`Adam`](crate::Adam) with Nesterov's momentum. PyTorch: `torch.optim.NAdam`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{NAdam, Optimizer};
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
    moments: Moments,
    momentum_decay: f64,
    common: Common<Self, T>,
}

impl<T: Float> NAdam<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.002), betas 0.9 and 0.999, epsilon 1e-8 and a
    /// momentum decay of 0.004. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        NAdam { moments: Moments::DEFAULT, momentum_decay: 4e-3, common: Common::new(lr) }
    }

    moment_settings!();
    decoupled_setting!();

    /// Sets how fast the factor μ of the momentum approaches β₁, the first of the betas. It must not be negative. PyTorch:
    /// `momentum_decay`.
    #[must_use]
    pub fn momentum_decay(self, momentum_decay: f64) -> Self {
        NAdam { momentum_decay, ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for NAdam<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq", "mu_product"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        self.moments.settings(each);
        each("momentum_decay", Setting::Number(&mut self.momentum_decay, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (steps, lr, [beta1, beta2]) = (states.steps as f64, self.common.lr, self.moments.betas);
        let mu = |step: f64| beta1 * (1.0 - 0.5 * libm::pow(0.96, step * self.momentum_decay));
        if states.tensors.is_empty() {
            let zeros = || Tensor::try_full(value.shape(), T::ZERO);
            states.tensors = vec![zeros()?, zeros()?, Tensor::scalar(T::ONE)];
        }
        let [first, second, product] = states.try_tensors_mut::<3>(value)?;
        *product = Tensor::scalar(product.try_item()? * number(mu(steps)));
        let product = product.try_item()?.to_f64();
        let gradient_rate = number(-lr * (1.0 - mu(steps)) / (1.0 - product));
        let moment_rate = number(-lr * mu(steps + 1.0) / (1.0 - product * mu(steps + 1.0)));
        let moments = self.moments.moment_update::<T>();
        let (gradient_of, decayed) = (self.common.penalized_gradient(), self.common.decayed_parameter());
        let correction = number(1.0 - libm::pow(beta2, steps));
        Ok(value.try_update_with(gradient, [first, second], |p, g, [m, v]| {
            let g = gradient_of.compute(p, g);
            let (m, v) = (moments.first_moment(m, g), moments.second_moment(v, g));
            let divisor = (v / correction).sqrt() + moments.eps;
            (decayed.compute(p) + gradient_rate * g / divisor + moment_rate * m / divisor, [m, v])
        })?)
    }
}
