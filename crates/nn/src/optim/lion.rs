//! The optimiser Lion.
//!
//! Chen et al., "Symbolic discovery of optimization algorithms" (2023), program 1. Here p is the parameter, g its gradient, m the momentum, and
//! β₁ and β₂ are the `betas`:
//!
//! ```text
//! c ← β₁ m + (1 - β₁) g
//! p ← p - lr · weight_decay · p - lr · sign(c)
//! m ← β₂ m + (1 - β₂) g
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};

/// Lion: an optimiser that moves each element by the learning rate, against the sign of a mix of the element's momentum
/// and gradient. An element whose mix is 0 or NaN does not move. Weight decay is subtracted in addition.
///
/// Compared with [`Adam`](crate::Adam), use a learning rate that is 3 to 10 times smaller, and a weight decay that is larger by the same
/// factor. The decay is always decoupled. PyTorch does not have Lion; the paper's implementation is in `google/automl`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Lion, Optimizer};
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
    /// Returns an optimiser with learning rate `lr` (the paper's default: 1e-4), betas 0.9 and 0.99 and no weight
    /// decay. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        let mut common = Common::new(lr);
        common.decoupled = true;
        Lion { betas: [0.9, 0.99], common }
    }

    /// Sets the weight of the momentum in the direction of a step (`first`), and the decay rate of the momentum (`second`). Each is from 0 to 1,
    /// 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        Lion { betas: [first, second], ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Lion<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let [(beta1, share1), (beta2, share2)] = self.betas.map(|beta| (number(beta), number(1.0 - beta)));
        let lr = number(self.common.lr);
        let (gradient_of, decayed) = (self.common.penalized_gradient(), self.common.decayed_parameter());
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [m]| {
            let g = gradient_of.compute(p, g);
            let c = m * beta1 + g * share1;
            // Without weight decay, the element does not move if c, the mix of the element's momentum and gradient, is
            // 0 or NaN.
            let step = if c > T::ZERO { lr } else { T::ZERO };
            let step = if c < T::ZERO { -lr } else { step };
            (decayed.compute(p) - step, [m * beta2 + g * share2])
        })?)
    }
}
