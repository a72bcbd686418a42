//! The optimiser ASGD, averaged stochastic gradient descent.
//!
//! Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992). The update follows PyTorch, including the order of
//! operations (<https://pytorch.org/docs/stable/generated/torch.optim.ASGD.html>). At a parameter's t-th step, with the parameter p, the
//! mean a of its values, and the settings λ (`lambd`), α (`alpha`) and t₀ (`t0`):
//!
//! ```text
//! g ← gradient + weight_decay · p
//! p ← p (1 - λ η) - η g
//! a ← p if μ = 1, otherwise a + μ (p - a)
//! η ← lr / (1 + λ · lr · t)^α,  μ ← 1 / max(1, t - t₀)      (for the next step; η begins as lr, μ as 1)
//! ```

use wengert_autograd::Parameter;
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// Gradient descent with a falling learning rate. It also keeps the mean of each parameter's values after step `t0` + 2 and later steps.
///
/// The model has the last values of its parameters; [`average`](Self::average) returns the mean. PyTorch: `torch.optim.ASGD`, where the mean is
/// the state `ax`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Asgd, Optimizer};
///
/// let mut w = Parameter::new(Tensor::from([4.0f64]));
/// let mut optimizer = Asgd::new(0.9).t0(10.0);
/// for step in 0..200 {
///     // The gradient of (w - 1)² with noise whose mean is 0.
///     let noise = if step % 2 == 0 { 1.0 } else { -1.0 };
///     let (_, gradients) = Tape::new().value_and_gradients(|tape| {
///         let w = tape.parameter(&w);
///         ((w - 1.0).square() + w * noise).sum(..)
///     });
///     optimizer.step(&mut w, &gradients);
/// }
/// let average = optimizer.average(&w).unwrap();
/// assert!((average.item() - 1.0).abs() < 0.05 && (w.value.item() - 1.0).abs() > 0.2);
/// ```
#[doc(alias = "ASGD")]
#[derive(Clone, Debug)]
pub struct Asgd<T: Float = f32> {
    lambd: f64,
    alpha: f64,
    t0: f64,
    common: Common<Self, T>,
}

impl<T: Float> Asgd<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 0.01), lambda 1e-4, alpha 0.75, and a `t0` of 1,000,000 steps. Each
    /// step checks the settings.
    pub fn new(lr: f64) -> Self {
        Asgd { lambd: 1e-4, alpha: 0.75, t0: 1e6, common: Common::new(lr) }
    }

    /// Sets λ, which sets how fast the parameters decay and how fast the learning rate falls. It must not be negative.
    #[must_use]
    pub fn lambd(self, lambd: f64) -> Self {
        Asgd { lambd, ..self }
    }

    /// Sets α, the exponent of the learning rate's decay: step t + 1 has the rate lr / (1 + λ · lr · t)^α, where λ is
    /// [`lambd`](Self::lambd).
    #[must_use]
    pub fn alpha(self, alpha: f64) -> Self {
        Asgd { alpha, ..self }
    }

    /// Sets t₀, which determines when the averaging begins. The mean covers the values after step t₀ + 2 and after later steps, as in
    /// PyTorch. Before, the mean is the parameter itself. `t0` must not be negative.
    #[must_use]
    pub fn t0(self, t0: f64) -> Self {
        Asgd { t0, ..self }
    }

    /// Returns the mean of the parameter's values after step `t0` + 2 and later steps, element by element. Before step
    /// `t0` + 2, the mean is the parameter's value after its last step. Returns `None` if no step has updated the
    /// parameter.
    pub fn average(&self, parameter: &Parameter<T>) -> Option<&Tensor<T>> {
        self.common.states(parameter)?.tensors.first()
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Asgd<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["ax", "eta", "mu"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("lambd", Setting::Number(&mut self.lambd, Range::NotNegative));
        each("alpha", Setting::Number(&mut self.alpha, Range::Finite));
        each("t0", Setting::Number(&mut self.t0, Range::NotNegative));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let (number, lr, steps) = (T::from_f64, self.common.lr, states.steps as f64);
        if states.tensors.is_empty() {
            let ax = Tensor::try_full(value.shape(), T::ZERO)?;
            states.tensors = vec![ax, Tensor::scalar(number(lr)), Tensor::scalar(T::ONE)];
        }
        let [average, eta, mu] = states.try_tensors_mut::<3>(value)?;
        let (rate, share, gradient_of) = (eta.try_item()?, mu.try_item()?, self.common.penalized_gradient());
        let decay = T::ONE - number(self.lambd) * rate;
        value.try_update_with(gradient, [average], |p, g, [a]| {
            let p = p * decay - rate * gradient_of.compute(p, g);
            (p, [if share == T::ONE { p } else { a + share * (p - a) }])
        })?;
        *eta = Tensor::scalar(number(lr / libm::pow(1.0 + self.lambd * lr * steps, self.alpha)));
        *mu = Tensor::scalar(number(1.0 / (steps - self.t0).max(1.0)));
        Ok(())
    }
}
