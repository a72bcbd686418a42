//! Initial values of parameters. Each function except `fans` returns a tensor of a given shape. Except for `dirac`,
//! its elements are random numbers from a generator.
//!
//! | here | PyTorch, `torch.nn.init` |
//! |---|---|
//! | [`uniform`], [`normal`], [`truncated_normal`] | `uniform_`, `normal_`, `trunc_normal_` |
//! | [`xavier_uniform`], [`xavier_normal`] | `xavier_uniform_`, `xavier_normal_` |
//! | [`kaiming_uniform`], [`kaiming_normal`] | `kaiming_uniform_`, `kaiming_normal_` |
//! | [`orthogonal`], [`dirac`], [`sparse`] | `orthogonal_`, `dirac_`, `sparse_` |
//! | [`Nonlinearity::gain`], [`fans`] | `calculate_gain`, `_calculate_fan_in_and_fan_out` |
//! | `Tensor::zeros`, `Tensor::ones`, `Tensor::full`, `Tensor::eye` | `zeros_`, `ones_`, `constant_`, `eye_` |
//!
//! A weight has the shape `[out, in, …]`: `[out, in]` for a linear layer, `[out, in / groups, …kernel]` for a convolution. Its *fan in* is
//! the number of inputs on which an output depends. Its *fan out* is the number of outputs that depend on an input. For a convolution with several
//! groups or a stride above 1, [`fans`] returns a larger number than this fan out, as PyTorch does.
//!
//! The elements are drawn in row-major order, each from one number of the generator. Each is computed in f64 and rounded once. Exceptions:
//! [`orthogonal`] computes each vector from all vectors before it, and [`sparse`] draws the positions of the zeros after the elements.

mod fan;
mod orthogonal;
mod random;
mod scaled;
mod structured;
#[cfg(test)]
mod tests;

pub use fan::{Fan, Nonlinearity, fans, try_fans};
pub use orthogonal::{orthogonal, try_orthogonal};
pub use random::{normal, truncated_normal, try_normal, try_truncated_normal, try_uniform, uniform};
pub use scaled::{
    kaiming_normal, kaiming_uniform, try_kaiming_normal, try_kaiming_uniform, try_xavier_normal, try_xavier_uniform,
    xavier_normal, xavier_uniform,
};
pub use structured::{dirac, sparse, try_dirac, try_sparse};
