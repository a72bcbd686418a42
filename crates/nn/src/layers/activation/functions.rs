//! Activation functions as layers, for [`Sequential`](crate::Sequential). Plain code calls the operation of the same
//! name.
//!
//! The operation's documentation has the values at kinks and infinities.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::{Activations as _, Arithmetic as _, Functions as _, Softmax as _};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::layers::operation_layer::{functions, functions_with_settings};
use crate::module::Module;

functions! {
    /// max(x, 0). PyTorch: `torch.nn.ReLU`.
    ReLU = try_relu;
    /// min(max(x, 0), 6). PyTorch: `torch.nn.ReLU6`.
    ReLU6 = try_relu6;
    /// 1 / (1 + e⁻ˣ). PyTorch: `torch.nn.Sigmoid`.
    Sigmoid = try_sigmoid;
    /// ln(1 / (1 + e⁻ˣ)). PyTorch: `torch.nn.LogSigmoid`.
    LogSigmoid = try_logsigmoid;
    /// The hyperbolic tangent. PyTorch: `torch.nn.Tanh`.
    Tanh = try_tanh;
    /// x - tanh x. PyTorch: `torch.nn.Tanhshrink`.
    Tanhshrink = try_tanhshrink;
    /// λ x above 0, λ α (eˣ - 1) elsewhere, with α ≈ 1.6733 and λ ≈ 1.0507. PyTorch: `torch.nn.SELU`.
    SELU = try_selu;
    /// x Φ(x), where Φ is the standard normal distribution function. PyTorch: `torch.nn.GELU`.
    GELU = try_gelu;
    /// The approximation of [`GELU`] by a tanh. PyTorch: `torch.nn.GELU(approximate='tanh')`.
    GELUTanh = try_gelu_tanh;
    /// x σ(x), where σ is the sigmoid. PyTorch: `torch.nn.SiLU`.
    SiLU = try_silu;
    /// x tanh(ln(1 + eˣ)). PyTorch: `torch.nn.Mish`.
    Mish = try_mish;
    /// x / (1 + |x|). PyTorch: `torch.nn.Softsign`.
    Softsign = try_softsign;
    /// x · min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardswish`.
    Hardswish = try_hardswish;
    /// min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardsigmoid`.
    Hardsigmoid = try_hardsigmoid;
}

functions_with_settings! {
    /// x above 0, `negative_slope`·x elsewhere. PyTorch: `torch.nn.LeakyReLU`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Layer, LeakyReLU};
    ///
    /// let tape = Tape::new();
    /// let y = LeakyReLU::new(0.1).forward(tape.constant(&Tensor::from([-2.0, 3.0])));
    /// assert_eq!(y.value().to_vec(), [-0.2, 3.0]);
    /// ```
    LeakyReLU {
        /// The slope below 0.
        negative_slope: f64
    } = try_leaky_relu, default(0.01);
    /// x above 0, α(eˣ - 1) elsewhere. PyTorch: `torch.nn.ELU`.
    ELU {
        /// α.
        alpha: f64
    } = try_elu, default(1.0);
    /// x above 0, α(e^(x/α) - 1) elsewhere. PyTorch: `torch.nn.CELU`.
    CELU {
        /// α, not 0.
        alpha: f64
    } = try_celu, default(1.0);
    /// ln(1 + e^(βx)) / β, and x itself where βx is above `threshold`. PyTorch: `torch.nn.Softplus`.
    Softplus {
        /// β.
        beta: f64,
        /// The value of βx above which the function is x.
        threshold: f64
    } = try_softplus, default(1.0, 20.0);
    /// min(max(x, `min_val`), `max_val`). PyTorch: `torch.nn.Hardtanh`.
    Hardtanh {
        /// The least value.
        min_val: f64,
        /// The largest value.
        max_val: f64
    } = try_hardtanh, default(-1.0, 1.0);
    /// 0 from -λ to λ, x elsewhere. PyTorch: `torch.nn.Hardshrink`.
    Hardshrink {
        /// λ.
        lambd: f64
    } = try_hardshrink, default(0.5);
    /// 0 from -λ to λ, x - λ above, x + λ below. PyTorch: `torch.nn.Softshrink`.
    Softshrink {
        /// λ, not negative.
        lambd: f64
    } = try_softshrink, default(0.5);
    /// x above `threshold`, `value` elsewhere. PyTorch: `torch.nn.Threshold`.
    Threshold {
        /// The bound above which the function is x.
        threshold: f64,
        /// The value at or below the bound.
        value: f64
    } = try_threshold;
    /// eˣ divided by its sum along `dim`. PyTorch: `torch.nn.Softmax`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Layer, Softmax};
    ///
    /// let tape = Tape::new();
    /// let y = Softmax::new(-1).forward(tape.constant(&Tensor::from([[5.0, 5.0]])));
    /// assert_eq!(y.value().to_vec(), [0.5, 0.5]);
    /// ```
    Softmax {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_softmax;
    /// e⁻ˣ divided by its sum along `dim`. PyTorch: `torch.nn.Softmin`.
    Softmin {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_softmin;
    /// The logarithm of [`Softmax`]. PyTorch: `torch.nn.LogSoftmax`.
    LogSoftmax {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_log_softmax;
    /// The first half of `dim` times the sigmoid of the second half. PyTorch: `torch.nn.GLU`.
    GLU {
        /// The dimension, of even size; negative numbers count from the end.
        dim: isize
    } = try_glu, default(-1);
}
