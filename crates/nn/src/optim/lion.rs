//! Lion.
//!
//! Chen et al., "Symbolic discovery of optimization algorithms" (2023), program 1:
//!
//! ```text
//! c ← β₁ m + (1 - β₁) g
//! p ← p - lr · weight_decay · p - lr · sign(c)
//! m ← β₂ m + (1 - β₂) g
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::optimizer::{Common, Optimizer, Range, Setting, States};

/// Steps of one length, by the sign of the momentum. It needs a smaller learning rate than [`Adam`](crate::Adam), by 3 to 10, and
/// more weight decay by as much; decay is always decoupled. PyTorch has none; the paper's own is in `google/automl`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::grad};
/// use wengert_nn::{Lion, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), Lion::new(0.02));
/// for _ in 0..1000 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct Lion<T: Float = f32> {
    betas: [f64; 2],
    common: Common<Self, T>,
}

impl<T: Float> Lion<T> {
    /// With learning rate `lr` (the paper's default: 1e-4), betas 0.9 and 0.99 and no weight decay. Settings are checked by the first step.
    pub fn new(lr: f64) -> Self {
        let mut common = Common::new(lr);
        common.decoupled = true;
        Lion { betas: [0.9, 0.99], common }
    }

    /// With the momentum's share in a step's direction (`first`) and its memory (`second`), from 0 to 1, 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        Lion { betas: [first, second], ..self }
    }
}

impl<T: Float> Optimizer<T> for Lion<T> {
    fn common(&self) -> &Common<Self, T> {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common<Self, T> {
        &mut self.common
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let [(kept1, fresh1), (kept2, fresh2)] = self.betas.map(|beta| (number(beta), number(1.0 - beta)));
        let (lr, along, decayed) = (number(self.common.lr), self.common.along(), self.common.decayed());
        Ok(value.try_update_with(gradient, states.tensors_mut(value), |p, g, [m]| {
            let g = along.of(p, g);
            let c = m * kept1 + g * fresh1;
            // 0 where c is 0 or NaN.
            let step = if c > T::ZERO { lr } else { T::ZERO };
            let step = if c < T::ZERO { -lr } else { step };
            (decayed.of(p) - step, [m * kept2 + g * fresh2])
        })?)
    }
}
