//! The settings of a transformer's layers, and the parts that encoder and decoder layers share.

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::{Activations as _, Arithmetic as _};

use crate::layers::attention::{AttentionBuilder, MultiheadAttention};
use crate::layers::forward::layer_error;
use crate::layers::layer::Layer;
use crate::layers::linear::Linear;
use crate::layers::normalization::LayerNorm;
use crate::layers::regularization::dropout;
use crate::{Generator, Result};

/// The settings of a transformer's layers. Names and defaults are the same as in PyTorch's
/// `torch.nn.TransformerEncoderLayer`, except for the names `gelu` and `final_norm`.
#[derive(Clone, Debug)]
pub struct TransformerOptions {
    pub(super) d_model: usize,
    nhead: usize,
    pub(super) dim_feedforward: usize,
    dropout: f64,
    gelu: bool,
    norm_first: bool,
    batch_first: bool,
    bias: bool,
    layer_norm_eps: f64,
    pub(super) final_norm: bool,
}

impl TransformerOptions {
    /// Returns the settings of layers with `nhead` heads over inputs `[t, n, d_model]`: n sequences of t positions with `d_model` features.
    pub fn new(d_model: usize, nhead: usize) -> Self {
        TransformerOptions {
            d_model,
            nhead,
            dim_feedforward: 2048,
            dropout: 0.1,
            gelu: false,
            norm_first: false,
            batch_first: false,
            bias: true,
            layer_norm_eps: 1e-5,
            final_norm: false,
        }
    }

    /// Sets the number of outputs of the first of the two linear layers; 2048 by default.
    #[must_use]
    pub fn dim_feedforward(self, dim_feedforward: usize) -> Self {
        TransformerOptions { dim_feedforward, ..self }
    }

    /// Sets the probability of all dropout in the layers, from 0 to 1; 0.1 by default. Dropout happens on training tapes only. The layers check
    /// the range when they are made.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        TransformerOptions { dropout: p, ..self }
    }

    /// Uses GELU between the linear layers instead of ReLU. PyTorch: `activation="gelu"`.
    #[must_use]
    pub fn gelu(self) -> Self {
        TransformerOptions { gelu: true, ..self }
    }

    /// Normalizes the inputs of attention and of the linear layers, and not the sums after them. PyTorch: `norm_first=True`.
    #[must_use]
    pub fn norm_first(self) -> Self {
        TransformerOptions { norm_first: true, ..self }
    }

    /// Makes the layers take inputs `[n, t, d_model]` instead of `[t, n, d_model]`, for n sequences of t positions.
    #[must_use]
    pub fn batch_first(self) -> Self {
        TransformerOptions { batch_first: true, ..self }
    }

    /// Chooses whether the layers, including the normalizations, have biases; true by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        TransformerOptions { bias, ..self }
    }

    /// Sets the number that each normalization adds to the variance before the root is taken; 1e-5 by default.
    #[must_use]
    pub fn layer_norm_eps(self, eps: f64) -> Self {
        TransformerOptions { layer_norm_eps: eps, ..self }
    }

    /// Adds a normalization after the last layer of a stack. A stack with [`norm_first`](Self::norm_first) needs it, because the output of its
    /// last layer is not normalized. PyTorch: `norm`.
    #[must_use]
    pub fn final_norm(self) -> Self {
        TransformerOptions { final_norm: true, ..self }
    }

    /// Returns an attention layer with these settings.
    #[track_caller]
    pub(super) fn attention<T: Float>(&self, generator: &mut Generator) -> MultiheadAttention<T> {
        let builder: AttentionBuilder = MultiheadAttention::builder(self.d_model, self.nhead);
        let builder = builder.dropout(self.dropout).bias(self.bias);
        if self.batch_first { builder.batch_first().build(generator) } else { builder.build(generator) }
    }

    /// Returns a linear layer from `inputs` to `outputs` features, with a bias if the settings have one.
    #[track_caller]
    pub(super) fn linear<T: Float>(&self, inputs: usize, outputs: usize, generator: &mut Generator) -> Linear<T> {
        match self.bias {
            true => Linear::new(inputs, outputs, generator),
            false => Linear::without_bias(inputs, outputs, generator),
        }
    }

    /// Returns a layer normalization with these settings.
    #[track_caller]
    pub(super) fn norm<T: Float>(&self) -> LayerNorm<T> {
        let norm = LayerNorm::new([self.d_model]).eps(self.layer_norm_eps);
        if self.bias { norm } else { norm.without_bias() }
    }

    /// Returns the input of attention or of the linear layers. It is `x`, normalized by `norm` if [`norm_first`](Self::norm_first) is set.
    #[track_caller]
    pub(super) fn normalize_before<'t, T: Float>(&self, norm: &LayerNorm<T>, x: Var<'t, T>) -> Result<Var<'t, T>> {
        if self.norm_first { norm.try_forward(x) } else { Ok(x) }
    }

    /// Returns the residual sum of `x` and, after dropout, the output `y` of attention or of the linear layers. The sum is normalized by `norm`
    /// unless [`norm_first`](Self::norm_first) is set.
    #[track_caller]
    pub(super) fn add_and_normalize<'t, T: Float>(
        &self,
        norm: &LayerNorm<T>,
        x: Var<'t, T>,
        y: Var<'t, T>,
    ) -> Result<Var<'t, T>> {
        let sum = x.try_add(dropout(y, self.dropout)?)?;
        if self.norm_first { Ok(sum) } else { norm.try_forward(sum) }
    }

    /// Applies the two linear layers to `x`, with their normalization `norm`, dropout and the residual connection.
    #[track_caller]
    pub(super) fn feed_forward<'t, T: Float>(
        &self,
        linear: [&Linear<T>; 2],
        norm: &LayerNorm<T>,
        x: Var<'t, T>,
    ) -> Result<Var<'t, T>> {
        let hidden = linear[0].try_forward(self.normalize_before(norm, x)?)?;
        let hidden = if self.gelu { hidden.try_gelu()? } else { hidden.try_relu()? };
        self.add_and_normalize(norm, x, linear[1].try_forward(dropout(hidden, self.dropout)?)?)
    }
}

/// Returns an error unless the number of caches is the number of layers of a stack.
#[track_caller]
pub(super) fn check_caches(layers: usize, caches: usize) -> Result<()> {
    if layers == caches {
        return Ok(());
    }
    Err(layer_error("decode", format!("{caches} caches for a stack of {layers} layers: expected one for each")).into())
}
