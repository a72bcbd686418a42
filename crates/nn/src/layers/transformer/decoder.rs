//! Decoder layers, which attend to their own sequence and to the output of an encoder, and a stack of decoder layers.

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::{Float, Tensor};

use crate::layers::attention::{AttentionCache, AttentionMasks, MultiheadAttention};
use crate::layers::forward::pass_output;
use crate::layers::layer::Layer;
use crate::layers::linear::Linear;
use crate::layers::normalization::LayerNorm;
use crate::layers::transformer::options::{TransformerOptions, check_caches};
use crate::module::Module;
use crate::{Generator, Result};

/// A decoder layer: self-attention, then attention to another sequence (the memory), then two linear layers. Each of the three parts has a
/// residual connection. PyTorch: `torch.nn.TransformerDecoderLayer`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AttentionMasks, Generator, TransformerDecoderLayer, TransformerOptions};
///
/// let options = TransformerOptions::new(16, 4).dim_feedforward(32).batch_first();
/// let layer = TransformerDecoderLayer::<f32>::new(&options, &mut Generator::new(0));
/// let tape = Tape::new();
/// let (x, memory) = (tape.constant(&Tensor::ones([2, 5, 16])), tape.constant(&Tensor::ones([2, 7, 16])));
/// let y = layer.forward(x, memory, AttentionMasks::causal(), AttentionMasks::new());
/// assert_eq!(y.shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoderLayer<T: Float = f32> {
    /// The self-attention.
    pub self_attn: MultiheadAttention<T>,
    /// The attention to the memory.
    pub multihead_attn: MultiheadAttention<T>,
    /// The first linear layer.
    pub linear1: Linear<T>,
    /// The second linear layer.
    pub linear2: Linear<T>,
    /// The normalization before or after the self-attention.
    pub norm1: LayerNorm<T>,
    /// The normalization before or after the attention to the memory.
    pub norm2: LayerNorm<T>,
    /// The normalization before or after the linear layers.
    pub norm3: LayerNorm<T>,
    #[module(skip)]
    options: TransformerOptions,
}

/// A cache for one decoder layer: the keys and values of the decoded steps and of the memory.
#[derive(Clone, Debug)]
pub struct DecoderCache<T: Float = f32> {
    self_attention: AttentionCache<T>,
    memory: AttentionCache<T>,
    memory_padding: Option<Tensor<bool>>,
}

impl<T: Float> DecoderCache<T> {
    /// Returns the number of decoded steps in the cache.
    pub fn len(&self) -> usize {
        self.self_attention.len()
    }

    /// Returns true if no decoded step is in the cache.
    pub fn is_empty(&self) -> bool {
        self.self_attention.is_empty()
    }
}

#[twins]
impl<T: Float> TransformerDecoderLayer<T> {
    /// Returns a layer with the settings `options`.
    ///
    /// # Panics
    ///
    /// If `nhead` of `options` does not divide `d_model`, the probability of dropout is not from 0 to 1, or there is not enough memory for the
    /// parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, generator: &mut Generator) -> Self {
        TransformerDecoderLayer {
            self_attn: options.attention(generator),
            multihead_attn: options.attention(generator),
            linear1: options.linear(options.d_model, options.dim_feedforward, generator),
            linear2: options.linear(options.dim_feedforward, options.d_model, generator),
            norm1: options.norm(),
            norm2: options.norm(),
            norm3: options.norm(),
            options: options.clone(),
        }
    }

    /// Returns the output for `x`. Each position attends to the positions of `x` that `masks` allow, and to the
    /// positions of `memory` that `memory_masks` allow.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_forward<'t>(
        &self,
        x: Var<'t, T>,
        memory: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
        memory_masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_self_attend(self.options.normalize_before(&self.norm1, x)?, masks)?;
        let x = self.options.add_and_normalize(&self.norm1, x, y)?;
        let query = self.options.normalize_before(&self.norm2, x)?;
        let y = self.multihead_attn.try_attend(query, memory, memory, memory_masks)?;
        self.finish_layer(x, y)
    }

    /// Returns the cache for the first step of decoding, with the keys and values of `memory`. `memory_padding` is true at the positions of
    /// the memory that are hidden. Its shape is `[n, s]` for n sequences of s positions. [`decode`](Self::decode) checks this shape.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or there is not enough memory for the cache.
    pub fn try_cache(&self, memory: Var<'_, T>, memory_padding: Option<&Tensor<bool>>) -> Result<DecoderCache<T>> {
        let memory = self.multihead_attn.try_memory(memory)?;
        Ok(DecoderCache { self_attention: AttentionCache::new(), memory, memory_padding: memory_padding.cloned() })
    }

    /// Returns the output at `x`, the next position or positions of the sequence. Each new position attends to the positions in `cache`, to
    /// itself and to the new positions before it. The keys and values of the new positions are added to the cache. The output equals the
    /// output of [`forward`](Self::forward) over the whole sequence with [`AttentionMasks::causal`], apart from dropout on a training tape.
    /// No gradient flows from the output layer of an attention to the attention's input.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, the cache was filled with another number of sequences, or there is not enough memory. The
    /// cache is then unchanged.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut DecoderCache<T>) -> Result<Var<'t, T>> {
        let before = cache.clone();
        self.decode_next(x, cache).inspect_err(|_| *cache = before)
    }

    /// Returns the output at the next positions `x`; see [`try_decode`](Self::try_decode). After an error, the cache may have the new positions.
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, cache: &mut DecoderCache<T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_decode(self.options.normalize_before(&self.norm1, x)?, &mut cache.self_attention)?;
        let x = self.options.add_and_normalize(&self.norm1, x, y)?;
        let query = self.options.normalize_before(&self.norm2, x)?;
        let y = self.multihead_attn.try_attend_cached(query, &cache.memory, cache.memory_padding.as_ref())?;
        self.finish_layer(x, y)
    }

    /// Returns the output of the layer from the output `y` of the attention to the memory and the input `x` of this attention.
    #[track_caller]
    fn finish_layer<'t>(&self, x: Var<'t, T>, y: Var<'t, T>) -> Result<Var<'t, T>> {
        let x = self.options.add_and_normalize(&self.norm2, x, y)?;
        Ok(pass_output(self, self.options.feed_forward([&self.linear1, &self.linear2], &self.norm3, x)?))
    }
}

/// A stack of decoder layers. PyTorch: `torch.nn.TransformerDecoder`. In this type each layer draws its own initial parameters; in PyTorch all
/// layers begin with equal parameters.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoder<T: Float = f32> {
    /// The decoder layers, in the order in which they are applied.
    pub layers: Vec<TransformerDecoderLayer<T>>,
    /// The normalization after the last layer, if the settings have one.
    pub norm: Option<LayerNorm<T>>,
}

#[twins]
impl<T: Float> TransformerDecoder<T> {
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
            layers.push(TransformerDecoderLayer::new(options, generator));
        }
        TransformerDecoder { layers, norm: if options.final_norm { Some(options.norm()) } else { None } }
    }

    /// Returns the output for `x`; see [`TransformerDecoderLayer::forward`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_forward<'t>(
        &self,
        x: Var<'t, T>,
        memory: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
        memory_masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        let mut x = x;
        for layer in &self.layers {
            x = layer.try_forward(x, memory, masks.clone(), memory_masks.clone())?;
        }
        Ok(pass_output(self, self.norm.try_forward(x)?))
    }

    /// Returns a cache for each layer for the first step of decoding; see [`TransformerDecoderLayer::cache`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or there is not enough memory for the caches.
    pub fn try_caches(
        &self,
        memory: Var<'_, T>,
        memory_padding: Option<&Tensor<bool>>,
    ) -> Result<Vec<DecoderCache<T>>> {
        let mut caches = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            caches.push(layer.try_cache(memory, memory_padding)?);
        }
        Ok(caches)
    }

    /// Returns the output at `x`, the next position or positions; see [`TransformerDecoderLayer::decode`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or the caches were filled with another number of sequences. Also if there is not one cache
    /// for each layer, or not enough memory. The caches are then unchanged.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, caches: &mut [DecoderCache<T>]) -> Result<Var<'t, T>> {
        check_caches(self.layers.len(), caches.len())?;
        let before = caches.to_vec();
        self.decode_next(x, caches).inspect_err(|_| caches.clone_from_slice(&before))
    }

    /// Returns the output at the next positions `x`; see [`try_decode`](Self::try_decode). After an error, some caches may have the new positions.
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, caches: &mut [DecoderCache<T>]) -> Result<Var<'t, T>> {
        let mut x = x;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.try_decode(x, cache)?;
        }
        Ok(pass_output(self, self.norm.try_forward(x)?))
    }
}
