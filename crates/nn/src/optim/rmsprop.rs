//! The optimiser RMSprop.
//!
//! Tieleman and Hinton, "Lecture 6.5: rmsprop" (2012). The centered form is from Graves, "Generating sequences with recurrent neural networks"
//! (2013). The update follows PyTorch, including the order of operations (<https://pytorch.org/docs/stable/generated/torch.optim.RMSprop.html>).
//! Here p is the parameter, v the running mean of its squared gradient, and m the running mean of its gradient. The settings are α (`alpha`) and
//! ε (`eps`):
//!
//! ```text
//! g ← gradient + weight_decay · p
//! v ← α v + (1 - α) g²
//! m ← m + (1 - α) (g - m)                        (centered)
//! d ← g / (√v + ε), or g / (√(v - m²) + ε)       (centered)
//! b ← momentum · b + d,  d ← b                   (with momentum)
//! p ← p - lr · d
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors, lerp};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// Gradient descent whose steps are divided by the running root mean square of the gradient. PyTorch:
/// `torch.optim.RMSprop`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{RMSprop, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), RMSprop::new(0.05));
/// for _ in 0..300 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct RMSprop<T: Float = f32> {
    alpha: f64,
    eps: f64,
    momentum: f64,
    centered: bool,
    common: Common<Self, T>,
}

impl<T: Float> RMSprop<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.01), alpha 0.99, epsilon 1e-8 and no
    /// momentum. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        RMSprop { alpha: 0.99, eps: 1e-8, momentum: 0.0, centered: false, common: Common::new(lr) }
    }

    /// Sets the decay rate of the gradient's mean square and, if [centered](Self::centered), of its mean. It must not be negative. Each
    /// step multiplies the old values by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: f64) -> Self {
        RMSprop { alpha, ..self }
    }

    /// Sets the constant that is added to the divisor of a step, so that the divisor is not 0. It must not be negative.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        RMSprop { eps, ..self }
    }

    /// Sets the factor by which each step multiplies the old momentum. It must not be negative; 0 by default.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        RMSprop { momentum, ..self }
    }

    /// Divides a step by the root of the gradient's variance instead of the root of the gradient's mean square. PyTorch: `centered=True`.
    #[must_use]
    pub fn centered(self) -> Self {
        RMSprop { centered: true, ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for RMSprop<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        match (self.momentum != 0.0, self.centered) {
            (false, false) => &["square_avg"],
            (true, false) => &["square_avg", "momentum_buffer"],
            (false, true) => &["square_avg", "grad_avg"],
            (true, true) => &["square_avg", "momentum_buffer", "grad_avg"],
        }
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("alpha", Setting::Number(&mut self.alpha, Range::NotNegative));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
        each("momentum", Setting::Number(&mut self.momentum, Range::NotNegative));
        each("centered", Setting::Flag(&mut self.centered));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let (lr, gradient_of, eps) = (number(self.common.lr), self.common.penalized_gradient(), number(self.eps));
        let (alpha, share, momentum) = (number(self.alpha), number(1.0 - self.alpha), number(self.momentum));
        let square = move |v: T, g: T| v * alpha + share * g * g;
        let mean = move |m: T, g: T| lerp(m, g, share);
        Ok(match (self.momentum != 0.0, self.centered) {
            (false, false) => value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [v]| {
                let g = gradient_of.compute(p, g);
                let v = square(v, g);
                (p - lr * g / (v.sqrt() + eps), [v])
            }),
            (true, false) => value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [v, b]| {
                let g = gradient_of.compute(p, g);
                let v = square(v, g);
                let b = b * momentum + g / (v.sqrt() + eps);
                (p - lr * b, [v, b])
            }),
            (false, true) => value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [v, m]| {
                let g = gradient_of.compute(p, g);
                let (v, m) = (square(v, g), mean(m, g));
                (p - lr * g / ((v - m * m).sqrt() + eps), [v, m])
            }),
            (true, true) => value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [v, b, m]| {
                let g = gradient_of.compute(p, g);
                let (v, m) = (square(v, g), mean(m, g));
                let b = b * momentum + g / ((v - m * m).sqrt() + eps);
                (p - lr * b, [v, b, m])
            }),
        }?)
    }
}
