//! Activation functions as layers, for [`Sequential`](crate::Sequential). Each layer applies an operation of a similar name, which other code
//! can call on a variable. Here x is an element of the input.
//!
//! The page `docs/operations.md` states the derivatives of the operations at kinks and their values at infinities.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::{Activations as _, Arithmetic as _, Functions as _, Softmax as _};

use crate::Result;
use crate::layers::forward::{output_of, pass_output};
use crate::layers::layer::Layer;
use crate::layers::operation_layer::{functions, functions_with_settings};
use crate::module::Module;

functions! {
    /// The layer that computes max(x, 0). PyTorch: `torch.nn.ReLU`.
    ReLU = try_relu;
    /// The layer that computes min(max(x, 0), 6). PyTorch: `torch.nn.ReLU6`.
    ReLU6 = try_relu6;
    /// The layer that computes 1 / (1 + e⁻ˣ). PyTorch: `torch.nn.Sigmoid`.
    Sigmoid = try_sigmoid;
    /// The layer that computes ln(1 / (1 + e⁻ˣ)). PyTorch: `torch.nn.LogSigmoid`.
    LogSigmoid = try_logsigmoid;
    /// The layer that computes the hyperbolic tangent of x. PyTorch: `torch.nn.Tanh`.
    Tanh = try_tanh;
    /// The layer that computes x - tanh x. PyTorch: `torch.nn.Tanhshrink`.
    Tanhshrink = try_tanhshrink;
    /// The layer that computes λ x where x is above 0, and λ α (eˣ - 1) elsewhere, with α ≈ 1.6733 and λ ≈ 1.0507. PyTorch: `torch.nn.SELU`.
    SELU = try_selu;
    /// The layer that computes x Φ(x), where Φ is the standard normal distribution function. PyTorch: `torch.nn.GELU`.
    GELU = try_gelu;
    /// The layer that approximates [`GELU`] by a formula with tanh. PyTorch: `torch.nn.GELU(approximate='tanh')`.
    GELUTanh = try_gelu_tanh;
    /// The layer that computes x σ(x), where σ is the sigmoid. PyTorch: `torch.nn.SiLU`.
    SiLU = try_silu;
    /// The layer that computes x tanh(ln(1 + eˣ)). PyTorch: `torch.nn.Mish`.
    Mish = try_mish;
    /// The layer that computes x / (1 + |x|). PyTorch: `torch.nn.Softsign`.
    Softsign = try_softsign;
    /// The layer that computes x · min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardswish`.
    Hardswish = try_hardswish;
    /// The layer that computes min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardsigmoid`.
    Hardsigmoid = try_hardsigmoid;
}

functions_with_settings! {
    /// The layer that computes x where x is above 0, and `negative_slope`·x elsewhere. PyTorch: `torch.nn.LeakyReLU`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Layer, LeakyReLU};
    ///
    /// let tape = Tape::new();
    /// let y = LeakyReLU::new(0.1).forward(tape.constant(&Tensor::from([-2.0, 3.0])));
    /// assert_eq!(y.value().to_vec(), [-0.2, 3.0]);
    /// ```
    LeakyReLU {
        /// The slope of the function below 0.
        negative_slope: f64
    } = try_leaky_relu, default(0.01);
    /// The layer that computes x where x is above 0, and α(eˣ - 1) elsewhere. PyTorch: `torch.nn.ELU`.
    ELU {
        /// The value of α.
        alpha: f64
    } = try_elu, default(1.0);
    /// The layer that computes x where x is above 0, and α(e^(x/α) - 1) elsewhere. PyTorch: `torch.nn.CELU`.
    CELU {
        /// The value of α, which must not be 0.
        alpha: f64
    } = try_celu, default(1.0);
    /// The layer that computes ln(1 + e^(βx)) / β, but x itself where βx is above `threshold`. PyTorch: `torch.nn.Softplus`.
    Softplus {
        /// The value of β.
        beta: f64,
        /// The value of βx above which the result is x.
        threshold: f64
    } = try_softplus, default(1.0, 20.0);
    /// The layer that computes min(max(x, `min_val`), `max_val`). A `min_val` above `max_val` is an error of the forward pass. PyTorch:
    /// `torch.nn.Hardtanh`.
    Hardtanh {
        /// The smallest value of the result.
        min_val: f64,
        /// The largest value of the result.
        max_val: f64
    } = try_hardtanh, default(-1.0, 1.0);
    /// The layer that replaces values from -λ to λ by 0 and keeps all other values. PyTorch: `torch.nn.Hardshrink`.
    Hardshrink {
        /// The value of λ.
        lambd: f64
    } = try_hardshrink, default(0.5);
    /// The layer that replaces values from -λ to λ by 0, subtracts λ from values above λ, and adds λ to values below -λ. PyTorch:
    /// `torch.nn.Softshrink`.
    Softshrink {
        /// The value of λ, which must not be negative.
        lambd: f64
    } = try_softshrink, default(0.5);
    /// The layer that computes x where x is above `threshold`, and `value` elsewhere. PyTorch: `torch.nn.Threshold`.
    Threshold {
        /// The value of x above which the result is x.
        threshold: f64,
        /// The result where x is at or below the threshold.
        value: f64
    } = try_threshold;
    /// The layer that divides eˣ by the sum of eˣ along the dimension `dim`. PyTorch: `torch.nn.Softmax`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Layer, Softmax};
    ///
    /// let tape = Tape::new();
    /// let y = Softmax::new(-1).forward(tape.constant(&Tensor::from([[5.0, 5.0]])));
    /// assert_eq!(y.value().to_vec(), [0.5, 0.5]);
    /// ```
    #[doc(alias("Softmax2d"))]
    Softmax {
        /// The dimension of the sum; negative values count from the end.
        dim: isize
    } = try_softmax;
    /// The layer that divides e⁻ˣ by the sum of e⁻ˣ along the dimension `dim`. PyTorch: `torch.nn.Softmin`.
    Softmin {
        /// The dimension of the sum; negative values count from the end.
        dim: isize
    } = try_softmin;
    /// The layer that computes the logarithm of [`Softmax`]. PyTorch: `torch.nn.LogSoftmax`.
    LogSoftmax {
        /// The dimension of the sum; negative values count from the end.
        dim: isize
    } = try_log_softmax;
    /// The layer that splits the dimension `dim` into two halves, and multiplies the first half by the sigmoid of the second. PyTorch:
    /// `torch.nn.GLU`.
    GLU {
        /// The dimension that is split, which has an even size; negative values count from the end.
        dim: isize
    } = try_glu, default(-1);
}
