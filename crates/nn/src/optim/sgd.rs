//! Stochastic gradient descent.
//!
//! The update follows PyTorch, including the order of operations (<https://pytorch.org/docs/stable/generated/torch.optim.SGD.html>). Here p is
//! the parameter, and v its momentum:
//!
//! ```text
//! g ← gradient + weight_decay · p
//! v ← g at a parameter's first step, momentum · v + (1 - dampening) · g later      (with momentum)
//! g ← g + momentum · v (nesterov), or v                                            (with momentum)
//! p ← p - lr · g
//! ```

use wengert_tensor::{Float, Tensor};

use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};
use crate::{Error, Result};

/// Stochastic gradient descent, with momentum if [`momentum`](Self::momentum) is set. PyTorch: `torch.optim.SGD`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Optimizer, Sgd};
///
/// let mut w = Parameter::new(Tensor::from([4.0f32]));
/// let mut sgd = Sgd::new(0.25);
/// let (_, gradients) = Tape::new().value_and_gradients(|tape| tape.parameter(&w).square().sum(..)); // 2w = 8
/// sgd.step(&mut w, &gradients);
/// assert_eq!(w.value.to_vec(), [2.0]);
/// ```
#[doc(alias = "SGD")]
#[derive(Clone, Debug)]
pub struct Sgd<T: Float = f32> {
    momentum: f64,
    dampening: f64,
    nesterov: bool,
    common: Common<Self, T>,
}

impl<T: Float> Sgd<T> {
    /// Returns plain gradient descent with learning rate `lr`. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        Sgd { momentum: 0.0, dampening: 0.0, nesterov: false, common: Common::new(lr) }
    }

    /// Sets the factor by which each step multiplies the old momentum. It must not be negative; 0 by default, and often 0.9.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Sgd { momentum, ..self }
    }

    /// Multiplies the gradient by `1 - dampening` before the gradient is added to the momentum, except at a parameter's first step;
    /// `dampening` is 0 by default.
    #[must_use]
    pub fn dampening(self, dampening: f64) -> Self {
        Sgd { dampening, ..self }
    }

    /// Uses Nesterov's momentum. It needs a [`momentum`](Self::momentum) above 0 and no [`dampening`](Self::dampening).
    #[must_use]
    pub fn nesterov(self) -> Self {
        Sgd { nesterov: true, ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Sgd<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("momentum", Setting::Number(&mut self.momentum, Range::NotNegative));
        each("dampening", Setting::Number(&mut self.dampening, Range::Finite));
        each("nesterov", Setting::Flag(&mut self.nesterov));
    }

    fn check(&self) -> Result<()> {
        if self.nesterov && self.momentum == 0.0 {
            let expected = "more than 0: Nesterov momentum requires a momentum and zero dampening";
            return Err(Error::Setting { name: "momentum", value: self.momentum, expected });
        }
        if self.nesterov && self.dampening != 0.0 {
            let expected = "0: Nesterov momentum requires a momentum and zero dampening";
            return Err(Error::Setting { name: "dampening", value: self.dampening, expected });
        }
        Ok(())
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = |value: f64| T::from_f64(value);
        let (lr, gradient_of) = (number(self.common.lr), self.common.penalized_gradient());
        if self.momentum == 0.0 {
            return Ok(value.try_update_with(gradient, [], |p, g, []| (p - lr * gradient_of.compute(p, g), []))?);
        }
        let (momentum, share, nesterov) = (number(self.momentum), number(1.0 - self.dampening), self.nesterov);
        let is_first = states.tensors.is_empty();
        Ok(value.try_update_with(gradient, states.try_tensors_mut::<1>(value)?, |p, g, [v]| {
            let g = gradient_of.compute(p, g);
            let v = if is_first { g } else { momentum * v + share * g };
            (p - lr * if nesterov { g + momentum * v } else { v }, [v])
        })?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    /// Returns the gradient of ½ p² with respect to the parameter p. It is equal to p.
    fn gradients(p: &Parameter<f64>) -> Gradients<f64> {
        let tape = Tape::new();
        (tape.parameter(p).square() * 0.5).sum(..).backward()
    }

    #[test]
    fn three_steps_follow_the_formula() {
        // Each row has an optimiser, and the parameter p after each of three steps from p = 1, where the gradient is p. All values are exact
        // binary fractions.
        let table: [(Sgd<f64>, [f64; 3]); 5] = [
            (Sgd::new(0.5), [0.5, 0.25, 0.125]),
            // In this row the momentum v is 1, then 0.5 + 0.5 = 1, then 0.5 + 0 = 0.5.
            (Sgd::new(0.5).momentum(0.5), [0.5, 0.0, -0.25]),
            // In this row the momentum v is 1, then 0.5 + 0.5·0.5 = 0.75, then 0.375 + 0.5·0.125 = 0.4375.
            (Sgd::new(0.5).momentum(0.5).dampening(0.5), [0.5, 0.125, -0.09375]),
            // In this row the gradient with the weight decay is p + 0.5 p.
            (Sgd::new(0.5).weight_decay(0.5), [0.25, 0.0625, 0.015625]),
            // In this row the momentum v is 1, then 0.5 + 0.25 = 0.75, then 0.375 - 0.0625 = 0.3125. The step is half of p + v/2.
            (Sgd::new(0.5).momentum(0.5).nesterov(), [0.25, -0.0625, -0.109375]),
        ];
        for (mut sgd, expected) in table {
            let mut p = Parameter::new(Tensor::from([1.0]));
            for expected in expected {
                let gradients = gradients(&p);
                sgd.step(&mut p, &gradients);
                assert_eq!(p.value.to_vec(), [expected], "{sgd:?}");
            }
        }
    }

    #[test]
    fn values_change_in_place_and_their_clones_do_not() {
        let mut p = Parameter::new(Tensor::from([1.0, 2.0]));
        let place = p.value.as_slice().unwrap().as_ptr();
        let gradients = gradients(&p);
        let mut sgd = Sgd::new(0.5).momentum(0.9);
        sgd.step(&mut p, &gradients);
        assert_eq!(p.value.as_slice().unwrap().as_ptr(), place);
        let kept = p.value.clone();
        sgd.step(&mut p, &gradients);
        assert_eq!(kept.to_vec(), [0.5, 1.0]);
        assert_eq!(gradients.of(&p).to_vec(), [1.0, 2.0]);
    }

    #[test]
    fn a_parameter_without_a_gradient_is_an_error_that_changes_nothing() {
        let (mut used, mut unused) = (Parameter::new(Tensor::from([1.0])), Parameter::new(Tensor::from([1.0])));
        let gradients = gradients(&used);
        let error = Sgd::new(0.5).try_step(&mut [&mut used, &mut unused], &gradients).unwrap_err();
        assert!(matches!(&error, Error::Unreached { names } if names == &["1"]), "{error}");
        assert_eq!(used.value.to_vec(), [1.0]);
    }

    #[test]
    fn settings_outside_their_range_are_errors() {
        let mut p = Parameter::new(Tensor::from([1.0]));
        let gradients = gradients(&p);
        for (sgd, name) in [
            (Sgd::new(-0.1), "learning rate"),
            (Sgd::new(f64::NAN), "learning rate"),
            (Sgd::new(0.1).momentum(-1.0), "momentum"),
            (Sgd::new(0.1).weight_decay(f64::INFINITY), "weight_decay"),
            (Sgd::new(0.1).nesterov(), "momentum"),
            (Sgd::new(0.1).momentum(0.9).dampening(0.1).nesterov(), "dampening"),
        ] {
            let error = sgd.clone().try_step(&mut p, &gradients).unwrap_err();
            assert!(matches!(error, Error::Setting { name: told, .. } if told == name), "{error}");
        }
        assert_eq!(p.value.to_vec(), [1.0]);
    }
}
