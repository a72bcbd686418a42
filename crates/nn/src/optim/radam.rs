//! The optimiser RAdam.
//!
//! Liu et al., "On the variance of the adaptive learning rate and beyond" (2020). The update follows PyTorch, including the order of operations
//! (<https://pytorch.org/docs/stable/generated/torch.optim.RAdam.html>). At a parameter's t-th step, with the parameter p, the running mean m of
//! its gradient, and the running mean v of its squared gradient:
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
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::moments::{Moments, decoupled_setting, moment_settings};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::Setting;

/// [`Adam`](crate::Adam) whose first steps are plain momentum, because few gradients do not give a good estimate of the gradient's variance.
/// PyTorch: `torch.optim.RAdam`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{RAdam, Optimizer};
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
    moments: Moments,
    common: Common<Self, T>,
}

impl<T: Float> RAdam<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.001), betas 0.9 and 0.999 and epsilon 1e-8.
    /// Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        RAdam { moments: Moments::DEFAULT, common: Common::new(lr) }
    }

    moment_settings!();
    decoupled_setting!();
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for RAdam<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        self.moments.settings(each);
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (steps, [beta1, beta2]) = (states.steps as f64, self.moments.betas);
        let correction = 1.0 - libm::pow(beta2, steps);
        let longest = 2.0 / (1.0 - beta2) - 1.0;
        let length = longest - 2.0 * steps * libm::pow(beta2, steps) / correction;
        let rectified = length > 5.0;
        let share = (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length);
        let (root, share) = (number(correction.sqrt()), number(share.sqrt()));
        let (lr, unbiased, moments) =
            (number(self.common.lr), number(1.0 - libm::pow(beta1, steps)), self.moments.moment_update::<T>());
        let (gradient_of, decayed) = (self.common.penalized_gradient(), self.common.decayed_parameter());
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [m, v]| {
            let g = gradient_of.compute(p, g);
            let (m, v) = (moments.first_moment(m, g), moments.second_moment(v, g));
            let step = m / unbiased * lr;
            let step = if rectified { step * (root / (v.sqrt() + moments.eps)) * share } else { step };
            (decayed.compute(p) - step, [m, v])
        })?)
    }
}
