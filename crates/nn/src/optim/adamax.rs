//! The optimiser Adamax.
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section 7.1. The update follows PyTorch, including the order of
//! operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adamax.html>). At a parameter's t-th step, with the parameter p, the
//! running mean m of its gradient, and the decaying maximum u of the gradient's absolute value:
//!
//! ```text
//! g ← gradient + weight_decay · p
//! m ← m + (1 - β₁) (g - m)
//! u ← max(β₂ u, |g| + ε)
//! p ← p - lr / (1 - β₁ᵗ) · m / u
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::moments::{Moments, moment_settings};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::Setting;

/// [`Adam`](crate::Adam) that divides a step by a decaying maximum of the gradient's absolute value. Adam divides by the root of the gradient's
/// mean square. PyTorch: `torch.optim.Adamax`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Adamax, Optimizer};
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
    moments: Moments,
    common: Common<Self, T>,
}

impl<T: Float> Adamax<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.002), betas 0.9 and 0.999 and epsilon 1e-8. The second beta is the
    /// decay rate of the maximum: each step multiplies the old maximum by it. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        Adamax { moments: Moments::DEFAULT, common: Common::new(lr) }
    }

    moment_settings!();
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Adamax<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_inf"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        self.moments.settings(each);
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let rate = T::from_f64(-self.common.lr / (1.0 - libm::pow(self.moments.betas[0], states.steps as f64)));
        let (moments, gradient_of) = (self.moments.moment_update::<T>(), self.common.penalized_gradient());
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [m, u]| {
            let g = gradient_of.compute(p, g);
            let m = moments.first_moment(m, g);
            let (old, new) = (u * moments.beta2, if g < T::ZERO { -g } else { g } + moments.eps);
            // The new `u` is NaN if `old` or `new` is NaN, as with PyTorch's `maximum`.
            let u = if new > old || new.to_f64().is_nan() { new } else { old };
            (p + rate * m / u, [m, u])
        })?)
    }
}
