//! The optimiser Muon.
//!
//! Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), in PyTorch's form
//! (<https://pytorch.org/docs/stable/generated/torch.optim.Muon.html>). `orthogonal` of a matrix with the singular
//! value decomposition U S Vᵀ is an approximation of U Vᵀ. The approximation is computed by an iteration of Newton and
//! Schulz, with five steps by default. Here p is the parameter, g its gradient and m its momentum:
//!
//! ```text
//! m ← m + (1 - momentum) (g - m)
//! u ← orthogonal(g + momentum (m - g)), or orthogonal(m) without Nesterov's momentum
//! p ← (1 - lr · weight_decay) p - lr √max(1, rows / columns) u
//! ```

use wengert_tensor::ops::{Arithmetic as _, Products as _, Reductions as _, Views as _};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::optim::common::{Common, States, common_accessors, lerp};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};
use crate::{Error, Result};

/// The coefficients a, b and c of the polynomial a x + b x³ + c x⁵. Each step of the iteration applies it to each singular value x. The
/// polynomial is steep at 0, so small values grow fast. In return, the singular values do not end at 1: after 5 steps, values that began
/// above 0.002 are between about 0.7 and 1.2.
const COEFFICIENTS: [f64; 3] = [3.4445, -4.775, 2.0315];

/// Muon: an optimiser for parameters that are matrices. Each step is a matrix with nearly equal singular values. A parameter that is not a
/// matrix is an error, and nothing changes. PyTorch: `torch.optim.Muon`.
///
/// This optimiser is for the weights of hidden linear layers. The other parameters (biases, embeddings, the last layer) need another optimiser,
/// for example [`AdamW`](crate::AdamW). Each optimiser steps its own part of the model, and both take the same gradients. The weight decay is
/// always decoupled. PyTorch computes the orthogonalization in bfloat16; this optimiser computes it in the type of the parameter. The optimiser
/// cannot be sharded: a step depends on whole matrices.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AdamW, Generator, Layer, Linear, Muon, Optimizer};
///
/// let generator = &mut Generator::new(0);
/// let (mut body, mut head) = (Linear::without_bias(8, 16, generator), Linear::new(16, 1, generator));
/// let (mut muon, mut adam) = (Muon::new(0.02), AdamW::new(1e-3));
/// let x: Tensor = Tensor::randn([32, 8], generator);
/// let (_, gradients) = Tape::training(generator)
///     .value_and_gradients(|tape| head.forward(body.forward(tape.constant(&x)).relu()).square().mean(..));
/// muon.step(&mut body, &gradients);
/// adam.step(&mut head, &gradients);
/// ```
#[derive(Clone, Debug)]
pub struct Muon<T: Float = f32> {
    momentum: f64,
    nesterov: bool,
    iterations: f64,
    eps: f64,
    match_adamw: bool,
    common: Common<Self, T>,
}

impl<T: Float> Muon<T> {
    /// Returns an optimiser with the learning rate `lr` (PyTorch's default: 1e-3) and PyTorch's defaults: Nesterov's momentum of 0.95, a weight
    /// decay of 0.1 and 5 iterations. Each step checks the settings.
    pub fn new(lr: f64) -> Self {
        let mut common = Common::new(lr);
        (common.decoupled, common.weight_decay) = (true, 0.1);
        Muon { momentum: 0.95, nesterov: true, iterations: 5.0, eps: 1e-7, match_adamw: false, common }
    }

    /// Sets the factor by which each step multiplies the old momentum, from 0 to 1, 1 excluded.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Muon { momentum, ..self }
    }

    /// Uses the plain momentum and not Nesterov's. PyTorch: `nesterov=False`.
    #[must_use]
    pub fn without_nesterov(self) -> Self {
        Muon { nesterov: false, ..self }
    }

    /// Sets the number of iterations that make a matrix nearly orthogonal; 5 by default. As in PyTorch, it must be below 100. PyTorch:
    /// `ns_steps`.
    #[must_use]
    pub fn iterations(self, iterations: u32) -> Self {
        Muon { iterations: iterations.into(), ..self }
    }

    /// Sets a lower bound of the norm by which a matrix is divided before the first iteration; 1e-7 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Muon { eps, ..self }
    }

    /// Multiplies steps by 0.2 √max(rows, columns) instead of √max(1, rows / columns). Then a learning rate and a weight decay that suit
    /// [`AdamW`](crate::AdamW) suit this optimiser too. PyTorch: `adjust_lr_fn="match_rms_adamw"`.
    #[must_use]
    pub fn match_adamw(self) -> Self {
        Muon { match_adamw: true, ..self }
    }

    /// Returns a matrix that has the same singular vectors as `x`, and singular values near 1. Singular values of 0 stay 0, and tiny ones
    /// stay below 1.
    fn orthogonal(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let is_tall = x.shape()[0] > x.shape()[1];
        let x = if is_tall { x.try_t()? } else { x.clone() };
        let norm = x.try_square()?.try_sum(..)?.item().to_f64().sqrt();
        let mut x = x.try_div(norm.max(self.eps))?;
        let [a, b, c] = COEFFICIENTS;
        for _ in 0..self.iterations as u64 {
            let gram = x.try_matmul(&x.try_t()?)?;
            let update = gram.try_mul(b)?.try_add(&gram.try_matmul(&gram)?.try_mul(c)?)?;
            x = x.try_mul(a)?.try_add(&update.try_matmul(&x)?)?;
        }
        Ok(if is_tall { x.try_t()? } else { x })
    }
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Muon<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["momentum_buffer"]
    }

    fn is_elementwise(&self) -> bool {
        false
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("momentum", Setting::Number(&mut self.momentum, Range::BelowOne));
        each("nesterov", Setting::Flag(&mut self.nesterov));
        each("ns_steps", Setting::Number(&mut self.iterations, Range::NotNegative));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
        each("match_rms_adamw", Setting::Flag(&mut self.match_adamw));
    }

    fn check(&self) -> Result<()> {
        if self.iterations < 100.0 && self.iterations.fract() == 0.0 {
            return Ok(());
        }
        Err(Error::Setting { name: "ns_steps", value: self.iterations, expected: "an integer from 0 to 99" })
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        if shape.rank() == 2 {
            return Ok(());
        }
        let message = format!(
            "Muon only supports 2D parameters whereas we found a parameter with size: {shape}; step the matrices of the \
             model with Muon and the rest with AdamW"
        );
        Err(wengert_tensor::Error::Argument { message, at: Site::here("step") }.into())
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        self.check_shape(value.shape())?;
        let [buffer] = states.try_tensors_mut(value)?;
        if value.numel() == 0 {
            return Ok(());
        }
        let number = T::from_f64;
        let (momentum, share) = (number(self.momentum), number(1.0 - self.momentum));
        let gradient = if self.common.maximize { &gradient.try_neg()? } else { gradient };
        buffer.try_update_with(gradient, [], |m, g, []| (lerp(m, g, share), []))?;
        let mut direction = buffer.clone();
        if self.nesterov {
            direction.try_update_with(gradient, [], |m, g, []| (lerp(g, m, momentum), []))?;
        }
        let update = self.orthogonal(&direction)?;
        let [rows, columns] = [0, 1].map(|axis| value.shape()[axis] as f64);
        let ratio = if self.match_adamw { 0.2 * rows.max(columns).sqrt() } else { (rows / columns).max(1.0).sqrt() };
        let (rate, decayed) = (number(self.common.lr * ratio), self.common.decayed_parameter());
        Ok(value.try_update_with(&update, [], |p, u, []| (decayed.compute(p) - rate * u, []))?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;

    use super::*;
    use crate::optim::adafactor::tests::{after_three_steps, assert_close};
    use crate::{Generator, Layer as _, Linear, Module as _};

    /// The expected values were computed by `torch.optim.Muon` (PyTorch 2.15) with the same gradients. PyTorch's iteration was changed from
    /// bfloat16 to float64, as in `tools/matrix_cases.py`.
    #[test]
    fn three_steps_are_pytorchs() {
        let new = Muon::<f64>::new;
        let wide = [
            -0.558261601192142,
            -0.2220309774539255,
            -0.07582506738997545,
            0.1272601739542034,
            0.3424820754990264,
            0.701671488533731,
        ];
        assert_close(&after_three_steps(new(0.1), &[2, 3]), &wide);
        let tall = [
            -0.5336927681000394,
            -0.21369843576984274,
            -0.08620274167432423,
            0.1342975356795368,
            0.2673085863610695,
            0.7655477344968393,
        ];
        let settings = new(0.1).without_nesterov().momentum(0.8).weight_decay(0.0);
        assert_close(&after_three_steps(settings, &[3, 2]), &tall);
        let matched = [
            -0.4952794365381942,
            -0.2504931683626889,
            -0.037021847781589734,
            0.22912619068511098,
            0.42075362636135977,
            0.7390754086948096,
            0.9659937043101422,
            1.1252688937757493,
        ];
        assert_close(&after_three_steps(new(0.1).match_adamw().iterations(3), &[4, 2]), &matched);
    }

    #[test]
    fn singular_values_are_near_one() {
        let x = Tensor::<f64>::randn([5, 3], &mut Generator::new(0));
        let u = Muon::new(0.1).orthogonal(&x).unwrap();
        // The sum of the squared elements of u is the sum of its squared singular values. Each singular value of u is from 0.5 to 1.5 if
        // the smallest singular value of x is not tiny.
        let trace = u.square().sum(..).item();
        assert!((3.0 * 0.25..3.0 * 2.25).contains(&trace), "{trace}");
        let no_steps = Muon::new(0.1).iterations(0).orthogonal(&x).unwrap();
        assert!((no_steps.square().sum(..).item() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn only_matrices_are_accepted() {
        let mut bias = Tensor::<f64>::zeros([3]);
        let error = Muon::new(0.1).try_step_tensors([&mut bias], &[Tensor::zeros([3])]).unwrap_err().to_string();
        assert!(
            error.contains("Muon only supports 2D parameters whereas we found a parameter with size: [3]"),
            "{error}"
        );
        let mut zero = Tensor::<f64>::zeros([2, 2]);
        Muon::new(0.1).step_tensors([&mut zero], &[Tensor::zeros([2, 2])]);
        assert_eq!(zero.to_vec(), [0.0; 4]);
        Muon::new(0.1).step_tensors([&mut Tensor::<f64>::zeros([0, 3])], &[Tensor::zeros([0, 3])]);
    }

    #[test]
    fn a_model_with_a_bias_is_refused_before_the_first_update() {
        let generator = &mut Generator::new(0);
        let mut model = Linear::<f64>::new(3, 2, generator);
        let before = model.to_vector();
        let (_, gradients) = Tape::training(generator)
            .value_and_gradients(|tape| model.forward(tape.constant(Tensor::ones([4, 3]))).square().sum(..));
        let mut muon = Muon::new(0.1);
        let text = muon.try_step(&mut model, &gradients).unwrap_err().to_string();
        assert!(text.contains("found a parameter with size: [2]"), "{text}");
        assert_eq!(model.to_vector(), before);
        assert!(muon.common().states(&model.weight).is_none());
        let (mut matrix, mut vector) = (Tensor::<f64>::ones([2, 2]), Tensor::ones([2]));
        let gradients = [Tensor::ones([2, 2]), Tensor::ones([2])];
        assert!(muon.try_step_tensors([&mut matrix, &mut vector], &gradients).is_err());
        assert_eq!(matrix, Tensor::ones([2, 2]));
    }

    #[test]
    fn a_number_of_iterations_that_is_no_small_integer_is_an_error_as_in_pytorch() {
        let mut w = Tensor::<f64>::eye(2);
        for iterations in [2.5, 100.0, 1e300] {
            let mut muon = Muon { iterations, ..Muon::new(0.1) };
            let text = muon.try_step_tensors([&mut w], &[Tensor::eye(2)]).unwrap_err().to_string();
            assert_eq!(text, format!("Invalid ns_steps value: {iterations}; expected an integer from 0 to 99"));
        }
        Muon::new(0.1).iterations(99).step_tensors([&mut w], &[Tensor::eye(2)]);
    }
}
