//! The optimiser Rprop.
//!
//! Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm" (1993). The update of each element
//! p of a parameter follows PyTorch (<https://pytorch.org/docs/stable/generated/torch.optim.Rprop.html>). The state s is the length of the
//! element's step, `previous` its gradient at the last step, and η⁺ and η⁻ are the two factors `etas`:
//!
//! ```text
//! g ← gradient + weight_decay · p
//! s ← s · η⁺ where g · previous > 0, s · η⁻ where g · previous < 0; then limited to the smallest and largest step
//! g ← 0 where g · previous < 0
//! p ← p - sign(g) · s,  previous ← g
//! ```

use wengert_tensor::{Float, Tensor};

use crate::optim::common::{Common, States, common_accessors};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};
use crate::{Error, Result};

/// Rprop: an optimiser that moves each element against its gradient's sign. An element's step grows while its gradient
/// keeps its sign. When the sign changes, the step shrinks, and the element does not move in this update.
///
/// Use this optimiser with the gradient over all samples, not over batches. An element whose gradient is NaN does not move. PyTorch:
/// `torch.optim.Rprop`, which has no weight decay.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Optimizer, Rprop};
///
/// let (mut w, mut optimizer) = (Tensor::from([4.0f64, -2.0]), Rprop::new(0.1));
/// for _ in 0..100 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 1e-5));
/// ```
#[derive(Clone, Debug)]
pub struct Rprop<T: Float = f32> {
    etas: [f64; 2],
    step_sizes: [f64; 2],
    common: Common<Self, T>,
}

impl<T: Float> Rprop<T> {
    /// Returns an optimiser whose first steps have the length `lr` (PyTorch's default: 0.01). After a parameter's first step, changes of
    /// the learning rate have no effect on it. By default, the factors of the length are 0.5 and 1.2, and the length stays between 1e-6 and 50.
    /// Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        Rprop { etas: [0.5, 1.2], step_sizes: [1e-6, 50.0], common: Common::new(lr) }
    }

    /// Sets the factors of a step's length. The factor is `minus`, above 0 and below 1, if the gradient's sign has
    /// changed since the last step, and `plus`, above 1, if it is the same. In a step with a gradient of 0 or NaN, and in the
    /// step after it or after a change of sign, the length stays.
    #[must_use]
    pub fn etas(self, minus: f64, plus: f64) -> Self {
        Rprop { etas: [minus, plus], ..self }
    }

    /// Sets the smallest and the largest length of a step. Neither may be negative, and the smallest may not be above the
    /// largest.
    #[must_use]
    pub fn step_sizes(self, min: f64, max: f64) -> Self {
        Rprop { step_sizes: [min, max], ..self }
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Rprop<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["prev", "step_size"]
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("etaminus", Setting::Number(&mut self.etas[0], Range::BelowOne));
        each("etaplus", Setting::Number(&mut self.etas[1], Range::NotNegative));
        each("step_size_min", Setting::Number(&mut self.step_sizes[0], Range::NotNegative));
        each("step_size_max", Setting::Number(&mut self.step_sizes[1], Range::NotNegative));
    }

    fn check(&self) -> Result<()> {
        let ([minus, plus], [min, max]) = (self.etas, self.step_sizes);
        if min > max {
            return Err(Error::Setting { name: "step_size_min", value: min, expected: "at most step_size_max" });
        }
        if minus > 0.0 && plus > 1.0 {
            return Ok(());
        }
        let (name, value, expected) = match minus > 0.0 {
            true => ("etaplus", plus, "a finite number above 1"),
            false => ("etaminus", minus, "a number between 0 and 1"),
        };
        Err(Error::Setting { name, value, expected })
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        let number = T::from_f64;
        let ([minus, plus], [min, max]) = (self.etas.map(number), self.step_sizes.map(number));
        let gradient_of = self.common.penalized_gradient();
        if states.tensors.is_empty() {
            let full = |number: T| Tensor::try_full(value.shape(), number);
            states.tensors = vec![full(T::ZERO)?, full(number(self.common.lr))?];
        }
        Ok(value.try_update_with(gradient, states.try_tensors_mut(value)?, |p, g, [previous, length]| {
            let g = gradient_of.compute(p, g);
            let agreement = g * previous;
            let (factor, g) = match (agreement > T::ZERO, agreement < T::ZERO) {
                (true, _) => (plus, g),
                (_, true) => (minus, T::ZERO),
                _ => (T::ONE, g),
            };
            let length = length * factor;
            let length = if length < min { min } else { length };
            let length = if length > max { max } else { length };
            let moved = match (g > T::ZERO, g < T::ZERO) {
                (true, _) => p - length,
                (_, true) => p + length,
                _ => p,
            };
            (moved, [g, length])
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_grows_shrinks_and_stays_within_its_limits() {
        let mut w = Tensor::from([0.0f64, 0.0, 0.0]);
        let mut rprop = Rprop::new(1.0).step_sizes(0.7, 1.1);
        // In the second step, the gradient of the first element keeps its sign. The gradient of the second element changes its sign, so
        // this element takes no step. The gradient of the third element is NaN in the first two steps.
        rprop.step_tensors([&mut w], &[Tensor::from([3.0, 3.0, f64::NAN])]);
        assert_eq!(w.to_vec(), [-1.0, -1.0, 0.0]);
        rprop.step_tensors([&mut w], &[Tensor::from([1e-9, -3.0, f64::NAN])]);
        assert_eq!(w.to_vec(), [-2.1, -1.0, 0.0]);
        rprop.step_tensors([&mut w], &[Tensor::from([0.0, -3.0, 1.0])]);
        assert_eq!(w.to_vec(), [-2.1, -1.0 + 0.7, -1.0]);
    }

    #[test]
    fn factors_on_the_wrong_side_of_1_are_errors() {
        let mut w = Tensor::from([0.0f64]);
        for (rprop, expected) in
            [(Rprop::new(0.1).etas(0.0, 1.2), "etaminus"), (Rprop::new(0.1).etas(0.5, 1.0), "etaplus")]
        {
            let error = rprop.clone().try_step_tensors([&mut w], &[Tensor::from([1.0])]).unwrap_err();
            assert!(matches!(error, Error::Setting { name, .. } if name == expected), "{error}");
        }
    }

    #[test]
    fn a_smallest_step_above_the_largest_is_an_error() {
        let mut w = Tensor::from([1.0f64]);
        let error = Rprop::new(0.1).step_sizes(10.0, 1.0).try_step_tensors([&mut w], &[Tensor::from([1.0])]);
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "Invalid step_size_min value: 10; expected at most step_size_max");
    }
}
