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
///     tape.parameter(&w).square().sum(..).backward()
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
    /// The moments of each parameter that a step has updated, by its id.
    moments: HashMap<u64, Moments<T>>,
}

/// m and v of one parameter, and the number of its steps so far.
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

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    /// Gradients of ½ p², that is p itself.
    fn gradients(p: &Parameter<f64>) -> Gradients<f64> {
        let tape = Tape::new();
        (tape.parameter(p).square() * 0.5).sum(..).backward()
    }

    #[test]
    fn three_steps_are_pytorchs() {
        // (settings, p after each of three steps from p = [1, -2] along the gradient p): torch.optim.Adam and AdamW, in f64.
        let table: [(Adam<f64>, [[f64; 2]; 3]); 5] = [
            (
                Adam::new(0.5),
                [
                    [0.500000005, -1.5000000025],
                    [0.03391019075912488, -1.0087124644728944],
                    [-0.33590461566384094, -0.5369748327971432],
                ],
            ),
            (
                Adam::new(0.5).betas(0.5, 0.75).eps(0.25),
                [
                    [0.6, -1.5555555555555556],
                    [0.2495991388301314, -1.1317128247659685],
                    [-0.012379089098851326, -0.7428587841148004],
                ],
            ),
            (
                Adam::new(0.5).weight_decay(0.5),
                [
                    [0.5000000033333333, -1.5000000016666666],
                    [0.03391018737084944, -1.0087124627388575],
                    [-0.33590461984512576, -0.5369748301522567],
                ],
            ),
            (
                Adam::new(0.5).weight_decay(0.5).decoupled(),
                [
                    [0.2500000049999999, -1.0000000025],
                    [-0.22779875870523664, -0.28391018523463196],
                    [-0.4153097385396628, 0.18474884506628347],
                ],
            ),
            (
                Adam::new(0.5).betas(0.0, 0.0),
                [
                    [0.500000005, -1.5000000025],
                    [1.4999999742304482e-08, -1.0000000058333334],
                    [-0.2999999829384361, -0.5000000108333333],
                ],
            ),
        ];
        for (mut adam, expected) in table {
            let mut p = Parameter::new("p", Tensor::from([1.0, -2.0]));
            for expected in expected {
                let gradients = gradients(&p);
                adam.step([&mut p], &gradients);
                // A step has ten roundings of numbers of at most 2, of which the order may differ.
                let close = |(p, expected): (f64, f64)| (p - expected).abs() <= 20.0 * f64::EPSILON;
                assert!(p.value.iter().zip(expected).all(close), "{adam:?}");
            }
        }
    }

    #[test]
    fn each_parameter_counts_its_own_steps() {
        let (mut early, mut late) =
            (Parameter::new("a", Tensor::from([1.0])), Parameter::new("b", Tensor::from([1.0])));
        let mut adam = Adam::new(0.5);
        let step = |adam: &mut Adam<f64>, p: &mut Parameter<f64>| {
            let gradients = gradients(p);
            adam.step([p], &gradients);
        };
        step(&mut adam, &mut early);
        step(&mut adam, &mut early);
        step(&mut adam, &mut late);
        assert_eq!(late.value.to_vec(), [1.0 - 0.5 * 1.0 / (1.0 + 1e-8)]);
    }

    #[test]
    fn values_change_in_place_and_copies_of_them_do_not() {
        let mut p = Parameter::new("p", Tensor::from([1.0, 2.0]));
        let place = p.value.as_slice().unwrap().as_ptr();
        let gradients = gradients(&p);
        let mut adam = Adam::new(0.5);
        adam.step([&mut p], &gradients);
        assert_eq!(p.value.as_slice().unwrap().as_ptr(), place);
        let kept = p.value.clone();
        let before = kept.to_vec();
        adam.step([&mut p], &gradients);
        assert_eq!(kept.to_vec(), before);
        assert_ne!(p.value.to_vec(), before);
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let (mut used, mut unused) =
            (Parameter::new("used", Tensor::from([1.0])), Parameter::new("b", Tensor::from([1.0])));
        let gradients = gradients(&used);
        let error = Adam::new(0.5).try_step([&mut used, &mut unused], &gradients).unwrap_err();
        assert!(matches!(&error, Error::Unreached { names } if names == &["b"]), "{error}");
        for (mut adam, name) in [
            (Adam::new(-0.1), "learning rate"),
            (Adam::new(0.1).betas(1.0, 0.9), "beta parameter at index 0"),
            (Adam::new(0.1).betas(0.9, f64::NAN), "beta parameter at index 1"),
            (Adam::new(0.1).eps(-1.0), "epsilon"),
            (Adam::new(0.1).weight_decay(f64::INFINITY), "weight_decay"),
        ] {
            let error = adam.try_step([&mut used], &gradients).unwrap_err();
            assert!(matches!(error, Error::Setting { name: told, .. } if told == name), "{error}");
        }
        assert_eq!(used.value.to_vec(), [1.0]);
    }
}
