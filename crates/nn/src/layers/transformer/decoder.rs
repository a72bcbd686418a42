//! The layers of a decoder, which attends to itself and to what an encoder gave, and a stack of them.

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::{Float, Tensor};

use crate::layers::attention::{AttentionCache, AttentionMasks, MultiheadAttention};
use crate::layers::layer::Layer;
use crate::layers::linear::Linear;
use crate::layers::normalization::LayerNorm;
use crate::layers::transformer::options::{TransformerOptions, check_caches};
use crate::module::Module;
use crate::{Generator, Result};

/// Attention of a sequence to itself, then to another one, the memory, then two dense layers, each beside a connection around it.
/// PyTorch: `torch.nn.TransformerDecoderLayer`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{AttentionMasks, Generator, TransformerDecoderLayer, TransformerOptions};
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
    /// Attention to itself.
    pub self_attn: MultiheadAttention<T>,
    /// Attention to the memory.
    pub multihead_attn: MultiheadAttention<T>,
    /// The first dense layer.
    pub linear1: Linear<T>,
    /// The second.
    pub linear2: Linear<T>,
    /// The norm of the attention to itself.
    pub norm1: LayerNorm<T>,
    /// The norm of the attention to the memory.
    pub norm2: LayerNorm<T>,
    /// The norm of the dense layers.
    pub norm3: LayerNorm<T>,
    #[module(skip)]
    options: TransformerOptions,
}

/// What a decoder layer has seen, for decoding one step at a time.
#[derive(Clone, Debug)]
pub struct DecoderCache<T: Float = f32> {
    own: AttentionCache<T>,
    memory: AttentionCache<T>,
    memory_padding: Option<Tensor<bool>>,
}

impl<T: Float> DecoderCache<T> {
    /// How many steps were seen.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether no step was seen.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }
}

#[twins]
impl<T: Float> TransformerDecoderLayer<T> {
    /// A layer with these settings.
    ///
    /// # Panics
    ///
    /// If the number of heads does not divide the width, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, generator: &mut Generator) -> Self {
        TransformerDecoderLayer {
            self_attn: options.attention(generator),
            multihead_attn: options.attention(generator),
            linear1: options.dense(options.d_model, options.dim_feedforward, generator),
            linear2: options.dense(options.dim_feedforward, options.d_model, generator),
            norm1: options.norm(),
            norm2: options.norm(),
            norm3: options.norm(),
            options: options.clone(),
        }
    }

    /// The result for `x` where each position sees what `masks` let it see of `x`, and `memory_masks` of the memory.
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
    pub fn try_forward<'t>(
        &self,
        x: Var<'t, T>,
        memory: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
        memory_masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_self_attend(self.options.before(&self.norm1, x)?, masks)?;
        let x = self.options.after(&self.norm1, x, y)?;
        let query = self.options.before(&self.norm2, x)?;
        let y = self.multihead_attn.try_attend(query, memory, memory, memory_masks)?;
        self.rest(x, y)
    }

    /// The cache before the first step, with the keys and values of the memory; they are hidden where `memory_padding`, `[n, s]`,
    /// holds.
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
    pub fn try_cache(&self, memory: Var<'_, T>, memory_padding: Option<&Tensor<bool>>) -> Result<DecoderCache<T>> {
        let memory = self.multihead_attn.try_memory(memory)?;
        Ok(DecoderCache { own: AttentionCache::new(), memory, memory_padding: memory_padding.cloned() })
    }

    /// The result at the next positions, which see all that `cache` has, and those before themselves; they are added to the cache.
    /// The same as [`forward`](Self::forward) with [`AttentionMasks::causal`]. No gradient flows through attention.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or the cache is of another batch.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut DecoderCache<T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_decode(self.options.before(&self.norm1, x)?, &mut cache.own)?;
        let x = self.options.after(&self.norm1, x, y)?;
        let query = self.options.before(&self.norm2, x)?;
        let y = self.multihead_attn.try_attend_cached(query, &cache.memory, cache.memory_padding.as_ref())?;
        self.rest(x, y)
    }

    /// What comes after the attention to the memory, which gave `y`.
    #[track_caller]
    fn rest<'t>(&self, x: Var<'t, T>, y: Var<'t, T>) -> Result<Var<'t, T>> {
        let x = self.options.after(&self.norm2, x, y)?;
        self.options.feed_forward([&self.linear1, &self.linear2], &self.norm3, x)
    }
}

/// Decoder layers one after the other. PyTorch: `torch.nn.TransformerDecoder`, but that each layer has initial values of its own.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoder<T: Float = f32> {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer<T>>,
    /// The norm at the end.
    pub norm: Option<LayerNorm<T>>,
}

#[twins]
impl<T: Float> TransformerDecoder<T> {
    /// As many layers with these settings.
    ///
    /// # Panics
    ///
    /// If the number of heads does not divide the width, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, num_layers: usize, generator: &mut Generator) -> Self {
        let mut layers = Vec::with_capacity(num_layers);
        for _ in 0..num_layers {
            layers.push(TransformerDecoderLayer::new(options, generator));
        }
        TransformerDecoder { layers, norm: if options.final_norm { Some(options.norm()) } else { None } }
    }

    /// The result for `x`; see [`TransformerDecoderLayer::forward`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
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
        self.norm.try_forward(x)
    }

    /// A cache for each layer, before the first step; see [`TransformerDecoderLayer::cache`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
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

    /// The result at the next positions; see [`TransformerDecoderLayer::decode`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, the caches are of another batch, or there is not one for each layer.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, caches: &mut [DecoderCache<T>]) -> Result<Var<'t, T>> {
        check_caches(self.layers.len(), caches.len())?;
        let mut x = x;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.try_decode(x, cache)?;
        }
        self.norm.try_forward(x)
    }
}
