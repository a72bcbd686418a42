//! The optimisers Adam and AdamW.
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization" (2015). Loshchilov and Hutter (2019) added the decoupled weight decay. The update
//! follows PyTorch, including the order of operations (<https://pytorch.org/docs/stable/generated/torch.optim.Adam.html>). At a parameter's t-th
//! step, with the parameter p, the running mean m of its gradient, and the running mean v of its squared gradient:
//!
//! ```text
//! g ← gradient + weight_decay · p, or p ← p - lr · weight_decay · p                 (decoupled)
//! m ← m + (1 - β₁) (g - m)
//! v ← β₂ v + (1 - β₂) g²
//! p ← p - lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)
//! ```

use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::optim::common::{Common, States, common_accessors};
use crate::optim::moments::{Moments, decoupled_setting, moment_settings};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::Setting;

/// Adam: an optimiser whose step for an element is the learning rate times the mean gradient, divided by the root of the mean squared gradient.
/// PyTorch: `torch.optim.Adam`, and with [`decoupled`](Self::decoupled) `torch.optim.AdamW`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Adam, Optimizer};
///
/// let mut w = Parameter::new(Tensor::from([4.0f64]));
/// let mut adam = Adam::new(0.25);
/// let (_, gradients) = Tape::new().value_and_gradients(|tape| tape.parameter(&w).square().sum(..));
/// adam.step(&mut w, &gradients);
/// assert!((w.value.item() - 3.75).abs() < 1e-8); // the first step has nearly the length lr
/// ```
#[derive(Clone, Debug)]
pub struct Adam<T: Float = f32> {
    moments: Moments,
    amsgrad: bool,
    common: Common<Self, T>,
}

impl<T: Float> Adam<T> {
    /// Returns an optimiser with learning rate `lr` and PyTorch's defaults: betas 0.9 and 0.999, epsilon 1e-8 and no
    /// weight decay. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        Adam { moments: Moments::DEFAULT, amsgrad: false, common: Common::new(lr) }
    }

    moment_settings!();
    decoupled_setting!();

    /// Divides a step by the root of the largest mean squared gradient so far, and not of the current one (Reddi, Kale and Kumar 2018). PyTorch:
    /// `amsgrad=True`.
    #[must_use]
    pub fn amsgrad(self) -> Self {
        Adam { amsgrad: true, ..self }
    }
}

/// The constructor of [`Adam`] with decoupled weight decay. PyTorch: `torch.optim.AdamW`.
///
/// The optimiser that it returns is an [`Adam`]. So the type of a field or an argument is `Adam`:
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Adam, AdamW};
///
/// struct Training {
///     optimizer: Adam,
/// }
///
/// let training = Training { optimizer: AdamW::new(1e-3) };
/// ```
pub struct AdamW;

impl AdamW {
    /// Returns [`Adam`] with learning rate `lr` and a decoupled weight decay of 0.01, PyTorch's default.
    #[allow(clippy::new_ret_no_self)]
    pub fn new<T: Float>(lr: f64) -> Adam<T> {
        Adam::new(lr).decoupled().weight_decay(0.01)
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Adam<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"][..if self.amsgrad { 3 } else { 2 }]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        self.moments.settings(each);
        each("amsgrad", Setting::Flag(&mut self.amsgrad));
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = |value: f64| T::from_f64(value);
        let steps = states.steps as f64;
        let [beta1, beta2] = self.moments.betas;
        let rate = number(-self.common.lr / (1.0 - libm::pow(beta1, steps)));
        let correction = number((1.0 - libm::pow(beta2, steps)).sqrt());
        let moments = self.moments.moment_update::<T>();
        let (gradient_of, decayed) = (self.common.penalized_gradient(), self.common.decayed_parameter());
        if self.amsgrad {
            let states = states.try_tensors_mut::<3>(value)?;
            return Ok(value.try_update_with(gradient, states, |p, g, [m, v, largest]| {
                let g = gradient_of.compute(p, g);
                let (m, v) = (moments.first_moment(m, g), moments.second_moment(v, g));
                // The new `largest` is NaN if the old one or `v` is NaN, as with PyTorch's `maximum`.
                let largest = if v > largest || v.to_f64().is_nan() { v } else { largest };
                (decayed.compute(p) + rate * m / (largest.sqrt() / correction + moments.eps), [m, v, largest])
            })?);
        }
        Ok(value.try_update_with(gradient, states.try_tensors_mut::<2>(value)?, |p, g, [m, v]| {
            let g = gradient_of.compute(p, g);
            let (m, v) = (moments.first_moment(m, g), moments.second_moment(v, g));
            (decayed.compute(p) + rate * m / (v.sqrt() / correction + moments.eps), [m, v])
        })?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::Error;

    /// Returns the gradient of ½ p² with respect to the parameter p. It is equal to p.
    fn gradients(p: &Parameter<f64>) -> Gradients<f64> {
        let tape = Tape::new();
        (tape.parameter(p).square() * 0.5).sum(..).backward()
    }

    #[test]
    fn three_steps_are_pytorchs() {
        // Each row has an optimiser, and the parameter p after each of three steps from p = [1, -2], where the gradient is p. The values come
        // from `torch.optim` in float64.
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
            let mut p = Parameter::new(Tensor::from([1.0, -2.0]));
            for expected in expected {
                let gradients = gradients(&p);
                adam.step(&mut p, &gradients);
                // The bound is the same after each of the three steps. It is ten times the distance 2 ε between
                // neighbouring numbers from 2 to 4.
                let close = |(p, expected): (f64, f64)| (p - expected).abs() <= 20.0 * f64::EPSILON;
                assert!(p.value.iter().zip(expected).all(close), "{adam:?}");
            }
        }
    }

    #[test]
    fn each_parameter_counts_its_own_steps() {
        let (mut early, mut late) = (Parameter::new(Tensor::from([1.0])), Parameter::new(Tensor::from([1.0])));
        let mut adam = Adam::new(0.5);
        let step = |adam: &mut Adam<f64>, p: &mut Parameter<f64>| {
            let gradients = gradients(p);
            adam.step(p, &gradients);
        };
        step(&mut adam, &mut early);
        step(&mut adam, &mut early);
        step(&mut adam, &mut late);
        assert_eq!(late.value.to_vec(), [1.0 - 0.5 * 1.0 / (1.0 + 1e-8)]);
    }

    /// Without momentum, the mean gradient is the current gradient, however large the last one was.
    #[test]
    fn a_huge_gradient_is_forgotten() {
        let mut w = Tensor::from([1.0f64]);
        let mut adam = Adam::new(0.5).betas(0.0, 0.0).eps(0.0);
        adam.step_tensors([&mut w], &[Tensor::from([1e30])]);
        assert_eq!(w.to_vec(), [0.5]);
        adam.step_tensors([&mut w], &[Tensor::from([-2.0])]);
        assert_eq!(w.to_vec(), [1.0]);
    }

    #[test]
    fn values_change_in_place_and_their_clones_do_not() {
        let mut p = Parameter::new(Tensor::from([1.0, 2.0]));
        let place = p.value.as_slice().unwrap().as_ptr();
        let gradients = gradients(&p);
        let mut adam = Adam::new(0.5);
        adam.step(&mut p, &gradients);
        assert_eq!(p.value.as_slice().unwrap().as_ptr(), place);
        let kept = p.value.clone();
        let before = kept.to_vec();
        adam.step(&mut p, &gradients);
        assert_eq!(kept.to_vec(), before);
        assert_ne!(p.value.to_vec(), before);
    }

    #[test]
    fn an_error_changes_nothing() {
        let (mut used, mut unused) = (Parameter::new(Tensor::from([1.0])), Parameter::new(Tensor::from([1.0])));
        let gradients = gradients(&used);
        let error = Adam::new(0.5).try_step(&mut [&mut used, &mut unused], &gradients).unwrap_err();
        assert!(matches!(&error, Error::Unreached { names } if names == &["1"]), "{error}");
        for (mut adam, name) in [
            (Adam::new(-0.1), "learning rate"),
            (Adam::new(0.1).betas(1.0, 0.9), "beta parameter at index 0"),
            (Adam::new(0.1).betas(0.9, f64::NAN), "beta parameter at index 1"),
            (Adam::new(0.1).eps(-1.0), "epsilon"),
            (Adam::new(0.1).weight_decay(f64::INFINITY), "weight_decay"),
        ] {
            let error = adam.try_step(&mut used, &gradients).unwrap_err();
            assert!(matches!(error, Error::Setting { name: told, .. } if told == name), "{error}");
        }
        assert_eq!(used.value.to_vec(), [1.0]);
    }

    #[test]
    fn a_setting_that_needs_a_state_which_earlier_steps_did_not_make_is_an_error() {
        let (mut w, gradient) = (Tensor::from([1.0]), [Tensor::from([1.0])]);
        let mut adam = Adam::<f64>::new(0.1);
        adam.step_tensors([&mut w], &gradient);
        let before = w.clone();
        let text = adam.clone().amsgrad().try_step_tensors([&mut w], &gradient).unwrap_err().to_string();
        assert!(text.contains("needs 3 states") && text.contains("it has 2"), "{text}");
        assert_eq!(w, before);
        adam.step_tensors([&mut w], &gradient);
    }
}
