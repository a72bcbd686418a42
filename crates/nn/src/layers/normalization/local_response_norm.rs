//! The layer of local response normalization.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::Normalization as _;

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::layers::operation_layer::functions_with_settings;
use crate::module::Module;

functions_with_settings! {
    /// Local response normalization: divides each element of `[n, c, …]` by (k + alpha · m)^beta, where m is the mean square over
    /// neighbouring channels; see [`local_response_norm`](wengert_tensor::ops::Normalization::local_response_norm). PyTorch:
    /// `torch.nn.LocalResponseNorm`, with the default settings `alpha` = 0.0001, `beta` = 0.75 and `k` = 1.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Layer, LocalResponseNorm};
    ///
    /// let x = Tensor::from([[[1.0], [2.0], [3.0]]]);
    /// let y = LocalResponseNorm::new(2, 2.0, 1.0, 1.0).forward(Tape::new().constant(&x)).value();
    /// assert_eq!(y.to_vec(), [0.5, 2.0 / 6.0, 3.0 / 14.0]);
    /// ```
    LocalResponseNorm {
        /// The number of channels in a mean square.
        size: usize,
        /// The factor of the mean square in the divisor, (k + alpha · mean square)^beta.
        alpha: f64,
        /// The exponent in the divisor, (k + alpha · mean square)^beta.
        beta: f64,
        /// The number that is added in the divisor, (k + alpha · mean square)^beta.
        k: f64
    } = try_local_response_norm;
}
