//! Encoder layers and a stack of encoder layers. With a causal mask, the stack is a language model.

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::Float;

use crate::layers::attention::{AttentionCache, AttentionMasks, MultiheadAttention};
use crate::layers::forward::pass_output;
use crate::layers::layer::Layer;
use crate::layers::linear::Linear;
use crate::layers::normalization::LayerNorm;
use crate::layers::transformer::options::{TransformerOptions, check_caches};
use crate::module::Module;
use crate::{Generator, Result};

/// An encoder layer: self-attention, then two linear layers. Both parts have a residual connection. PyTorch:
/// `torch.nn.TransformerEncoderLayer`. With a causal mask this is the layer of a language model, which [`decode`](Self::decode) runs step
/// by step.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AttentionMasks, Generator, TransformerEncoderLayer, TransformerOptions};
///
/// let options = TransformerOptions::new(16, 4).dim_feedforward(32).batch_first().norm_first();
/// let layer = TransformerEncoderLayer::<f32>::new(&options, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([2, 5, 16]));
/// assert_eq!(layer.forward_masked(x, AttentionMasks::causal()).shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoderLayer<T: Float = f32> {
    /// The self-attention.
    pub self_attn: MultiheadAttention<T>,
    /// The first linear layer.
    pub linear1: Linear<T>,
    /// The second linear layer.
    pub linear2: Linear<T>,
    /// The normalization before or after the attention.
    pub norm1: LayerNorm<T>,
    /// The normalization before or after the linear layers.
    pub norm2: LayerNorm<T>,
    #[module(skip)]
    options: TransformerOptions,
}

#[twins]
impl<T: Float> TransformerEncoderLayer<T> {
    /// Returns a layer with the settings `options`.
    ///
    /// # Panics
    ///
    /// If `nhead` of `options` does not divide `d_model`, the probability of dropout is not from 0 to 1, or there is not enough memory for the
    /// parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, generator: &mut Generator) -> Self {
        TransformerEncoderLayer {
            self_attn: options.attention(generator),
            linear1: options.linear(options.d_model, options.dim_feedforward, generator),
            linear2: options.linear(options.dim_feedforward, options.d_model, generator),
            norm1: options.norm(),
            norm2: options.norm(),
            options: options.clone(),
        }
    }

    /// Returns the output for `x`, where each position of `x` attends to the positions of `x` that `masks` allow.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_forward_masked<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_self_attend(self.options.normalize_before(&self.norm1, x)?, masks)?;
        self.finish_layer(x, y)
    }

    /// Returns the output at `x`, the next position or positions of the sequence. Each new position attends to the positions in `cache`, to
    /// itself and to the new positions before it. The keys and values of the new positions are added to the cache. The output equals the
    /// output of [`forward_masked`](Self::forward_masked) over the whole sequence with [`AttentionMasks::causal`], apart from dropout on a
    /// training tape. No gradient flows from the output layer of the attention to the attention's input and the projections of this input.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, the cache was filled with another number of sequences, or there is not enough memory. The
    /// cache is then unchanged.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        let before = cache.clone();
        self.decode_next(x, cache).inspect_err(|_| *cache = before)
    }

    /// Returns the output at the next positions `x`; see [`try_decode`](Self::try_decode). After an error, the cache may have the new positions.
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_decode(self.options.normalize_before(&self.norm1, x)?, cache)?;
        self.finish_layer(x, y)
    }

    /// Returns the output of the layer from its input `x` and the output `y` of the attention.
    #[track_caller]
    fn finish_layer<'t>(&self, x: Var<'t, T>, y: Var<'t, T>) -> Result<Var<'t, T>> {
        let x = self.options.add_and_normalize(&self.norm1, x, y)?;
        Ok(pass_output(self, self.options.feed_forward([&self.linear1, &self.linear2], &self.norm2, x)?))
    }
}

/// Applies the layer without masks, so that each position attends to all positions.
impl<T: Float> Layer<T> for TransformerEncoderLayer<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_masked(x, AttentionMasks::new())
    }
}

/// A stack of encoder layers. PyTorch: `torch.nn.TransformerEncoder`. In this type each layer draws its own initial parameters; in PyTorch all
/// layers begin with equal parameters.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Module, TransformerEncoder, TransformerOptions};
///
/// let options = TransformerOptions::new(8, 2).dim_feedforward(16).norm_first().final_norm().batch_first();
/// let model = TransformerEncoder::<f32>::new(&options, 2, &mut Generator::new(0));
/// assert_eq!(model.named_parameters()[0].0, "layers.0.self_attn.in_proj_weight");
///
/// let tape = Tape::new();
/// let mut caches = model.caches();
/// for _ in 0..3 {
///     let next = model.decode(tape.constant(&Tensor::ones([1, 1, 8])), &mut caches);
///     assert_eq!(next.shape(), [1, 1, 8]);
/// }
/// assert_eq!(caches[0].len(), 3);
/// ```
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoder<T: Float = f32> {
    /// The encoder layers, in the order in which they are applied.
    pub layers: Vec<TransformerEncoderLayer<T>>,
    /// The normalization after the last layer, if the settings have one.
    pub norm: Option<LayerNorm<T>>,
}

#[twins]
impl<T: Float> TransformerEncoder<T> {
    /// Returns a stack of `num_layers` layers with the settings `options`.
    ///
    /// # Panics
    ///
    /// If `nhead` of `options` does not divide `d_model`, the probability of dropout is not from 0 to 1, or there is not enough memory for the
    /// parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, num_layers: usize, generator: &mut Generator) -> Self {
        let mut layers = Vec::with_capacity(num_layers);
        for _ in 0..num_layers {
            layers.push(TransformerEncoderLayer::new(options, generator));
        }
        TransformerEncoder { layers, norm: if options.final_norm { Some(options.norm()) } else { None } }
    }

    /// Returns the output for `x`. In every layer, each position attends to the positions that `masks` allow.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_forward_masked<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        let mut x = x;
        for layer in &self.layers {
            x = layer.try_forward_masked(x, masks.clone())?;
        }
        Ok(pass_output(self, self.norm.try_forward(x)?))
    }

    /// Returns an empty cache for each layer.
    pub fn caches(&self) -> Vec<AttentionCache<T>> {
        vec![AttentionCache::new(); self.layers.len()]
    }

    /// Returns the output at `x`, the next position or positions; see [`TransformerEncoderLayer::decode`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or the caches were filled with another number of sequences. Also if there is not one cache
    /// for each layer, or not enough memory. The caches are then unchanged.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, caches: &mut [AttentionCache<T>]) -> Result<Var<'t, T>> {
        check_caches(self.layers.len(), caches.len())?;
        let before = caches.to_vec();
        self.decode_next(x, caches).inspect_err(|_| caches.clone_from_slice(&before))
    }

    /// Returns the output at the next positions `x`; see [`try_decode`](Self::try_decode). After an error, some caches may have the new positions.
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, caches: &mut [AttentionCache<T>]) -> Result<Var<'t, T>> {
        let mut x = x;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.try_decode(x, cache)?;
        }
        Ok(pass_output(self, self.norm.try_forward(x)?))
    }
}

/// Applies the stack without masks, so that each position attends to all positions.
impl<T: Float> Layer<T> for TransformerEncoder<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_masked(x, AttentionMasks::new())
    }
}
