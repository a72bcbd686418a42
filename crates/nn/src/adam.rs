//! Adam, and AdamW.
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization" (2015); with decoupled weight decay, Loshchilov and Hutter (2019).
//! The update is PyTorch's, with its order of operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adam.html>), for
//! a parameter's t-th step:
//!
//! ```text
//! g ← gradient + weight_decay · p, or p ← p - lr · weight_decay · p                 (decoupled)
//! m ← m + (1 - β₁) (g - m)
//! v ← β₂ v + (1 - β₂) g²
//! p ← p - lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)
//! ```

use std::collections::HashMap;

use wengert_autograd::{Gradients, Parameter};
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::sgd::reached;
use crate::{Error, Result};

/// Adam: steps as long as the gradient is steady. PyTorch: `torch.optim.Adam`, and with [`decoupled`](Self::decoupled)
/// `torch.optim.AdamW`.
///
/// Like [`Sgd`](crate::Sgd) it holds no parameters; the moments are kept by parameter.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::Adam;
///
/// let mut w = Parameter::new("w", Tensor::from([4.0]));
/// let mut adam = Adam::new(0.25);
/// let gradients = {
///     let tape = Tape::<f64>::new();
///     tape.parameter(&w).square().sum(.., false).backward()
/// };
/// adam.step([&mut w], &gradients);
/// assert!((w.value.item() - 3.75).abs() < 1e-8); // the first step is lr long, whatever the gradient
/// ```
#[derive(Clone, Debug)]
pub struct Adam<T: Float> {
    /// Learning rate, not negative. May change between steps: that is all there is to a schedule.
    pub lr: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    decoupled: bool,
    /// What is kept of each parameter that was stepped, by its id.
    moments: HashMap<u64, Moments<T>>,
}

/// m and v of one parameter after so many steps.
#[derive(Clone, Debug)]
struct Moments<T: Float> {
    steps: i32,
    first: Tensor<T>,
    second: Tensor<T>,
}

impl<T: Float> Adam<T> {
    /// With learning rate `lr`, betas 0.9 and 0.999, epsilon 1e-8 and no weight decay: PyTorch's defaults. Settings are
    /// checked by the first step.
    pub fn new(lr: f64) -> Self {
        let (betas, eps) = ((0.9, 0.999), 1e-8);
        Adam { lr, betas, eps, weight_decay: 0.0, decoupled: false, moments: HashMap::new() }
    }

    /// With memories of the gradient (`first`) and of its square (`second`), from 0 to 1, 1 excluded.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Self {
        Adam { betas: (first, second), ..self }
    }

    /// With `eps`, not negative, added to the divisor.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Adam { eps, ..self }
    }

    /// With an L2 penalty: `weight_decay` (not negative) times the parameter is added to its gradient. See
    /// [`decoupled`](Self::decoupled).
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Adam { weight_decay, ..self }
    }

    /// With weight decay that does not go through the moments: `lr · weight_decay` times the parameter is taken from it.
    /// PyTorch: `torch.optim.AdamW`, whose default weight decay is 0.01.
    #[must_use]
    pub fn decoupled(self) -> Self {
        Adam { decoupled: true, ..self }
    }

    /// One step along `gradients`. The parameters are changed in place where nothing else holds their values: drop the
    /// step's tape first.
    ///
    /// # Panics
    ///
    /// Where [`try_step`](Self::try_step) returns an error.
    #[track_caller]
    pub fn step<'p>(&mut self, parameters: impl IntoIterator<Item = &'p mut Parameter<T>>, gradients: &Gradients<T>) {
        if let Err(error) = self.try_step(parameters, gradients) {
            raise(error);
        }
    }

    /// [`step`](Self::step), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where a setting is outside its range, or the loss does not depend on a parameter. Then nothing has changed.
    pub fn try_step<'p>(
        &mut self,
        parameters: impl IntoIterator<Item = &'p mut Parameter<T>>,
        gradients: &Gradients<T>,
    ) -> Result<()> {
        self.check_settings()?;
        for (parameter, gradient) in reached(parameters, gradients)? {
            self.update(parameter, gradient)?;
        }
        Ok(())
    }

    fn update(&mut self, parameter: &mut Parameter<T>, gradient: &Tensor<T>) -> Result<()> {
        let moments = self.moments.entry(parameter.id()).or_insert_with(|| Moments {
            steps: 0,
            first: Tensor::zeros(gradient.shape()),
            second: Tensor::zeros(gradient.shape()),
        });
        moments.steps = moments.steps.saturating_add(1);
        let (beta1, beta2) = self.betas;
        let number = |value: f64| T::from_f64(value);
        let rate = number(-self.lr / (1.0 - beta1.powi(moments.steps)));
        let correction = number((1.0 - beta2.powi(moments.steps)).sqrt());
        let (fresh1, kept2, fresh2) = (number(1.0 - beta1), number(beta2), number(1.0 - beta2));
        let (eps, penalty) = (number(self.eps), number(self.weight_decay));
        let shrunk = number(1.0 - self.lr * self.weight_decay);
        // Nothing is added where there is no decay: 0 · p is NaN where p is infinite.
        let (penal, decoupled) = (self.weight_decay != 0.0 && !self.decoupled, self.decoupled);
        let states = [&mut moments.first, &mut moments.second];
        Ok(parameter.value.try_update_with(gradient, states, |p, g, [m, v]| {
            let g = if penal { g + penalty * p } else { g };
            let p = if decoupled { p * shrunk } else { p };
            let m = m + fresh1 * (g - m);
            let v = v * kept2 + fresh2 * g * g;
            (p + rate * m / (v.sqrt() / correction + eps), [m, v])
        })?)
    }

    fn check_settings(&self) -> Result<()> {
        let not_negative = "a finite number, not negative";
        for (name, value) in [("learning rate", self.lr), ("epsilon", self.eps), ("weight_decay", self.weight_decay)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::Setting { name, value, expected: not_negative });
            }
        }
        for (name, value) in [("beta parameter at index 0", self.betas.0), ("beta parameter at index 1", self.betas.1)]
        {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::Setting { name, value, expected: "a number from 0 to 1, 1 excluded" });
            }
        }
        Ok(())
    }
}
