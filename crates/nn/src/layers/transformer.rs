//! Layers of a transformer and stacks of them (Vaswani et al. 2017, "Attention Is All You Need"; with the norms first: Xiong et al.
//! 2020, "On Layer Normalization in the Transformer Architecture").

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::ops::{Activations as _, Arithmetic as _};
use wengert_tensor::{Float, Tensor};

use crate::layers::attention::{AttentionBuilder, AttentionCache, AttentionMasks, MultiheadAttention};
use crate::layers::layer::{Layer, dropout, refused};
use crate::layers::linear::Linear;
use crate::layers::normalization::LayerNorm;
use crate::module::Module;
use crate::{Generator, Result};

/// The settings of a transformer's layers. PyTorch: the arguments of `torch.nn.TransformerEncoderLayer`, with the same defaults.
#[derive(Clone, Debug)]
pub struct TransformerOptions {
    d_model: usize,
    nhead: usize,
    dim_feedforward: usize,
    dropout: f64,
    gelu: bool,
    norm_first: bool,
    batch_first: bool,
    bias: bool,
    layer_norm_eps: f64,
    final_norm: bool,
}

impl TransformerOptions {
    /// Layers over vectors of `d_model` numbers with `nhead` heads, over `[t, n, d_model]`.
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

    /// With this many numbers between the two dense layers; 2048 by default.
    #[must_use]
    pub fn dim_feedforward(self, dim_feedforward: usize) -> Self {
        TransformerOptions { dim_feedforward, ..self }
    }

    /// With dropout of this probability, 0 to 1, on tapes that train; 0.1 by default.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        TransformerOptions { dropout: p, ..self }
    }

    /// With GELU between the dense layers instead of ReLU. PyTorch: `activation="gelu"`.
    #[must_use]
    pub fn gelu(self) -> Self {
        TransformerOptions { gelu: true, ..self }
    }

    /// With the norms before attention and dense layers instead of after them.
    #[must_use]
    pub fn norm_first(self) -> Self {
        TransformerOptions { norm_first: true, ..self }
    }

    /// Over `[n, t, d_model]`.
    #[must_use]
    pub fn batch_first(self) -> Self {
        TransformerOptions { batch_first: true, ..self }
    }

    /// With or without biases, those of the norms included; with by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        TransformerOptions { bias, ..self }
    }

    /// With another number that the norms add to the variance; 1e-5 by default.
    #[must_use]
    pub fn layer_norm_eps(self, eps: f64) -> Self {
        TransformerOptions { layer_norm_eps: eps, ..self }
    }

    /// With a norm after the last layer of a stack, as stacks with the norms first need it. PyTorch: `norm`.
    #[must_use]
    pub fn final_norm(self) -> Self {
        TransformerOptions { final_norm: true, ..self }
    }

    #[track_caller]
    fn attention<T: Float>(&self, generator: &mut Generator) -> MultiheadAttention<T> {
        let builder: AttentionBuilder = MultiheadAttention::builder(self.d_model, self.nhead);
        let builder = builder.dropout(self.dropout).bias(self.bias);
        if self.batch_first { builder.batch_first().build(generator) } else { builder.build(generator) }
    }

    #[track_caller]
    fn dense<T: Float>(&self, inputs: usize, outputs: usize, generator: &mut Generator) -> Linear<T> {
        match self.bias {
            true => Linear::new(inputs, outputs, generator),
            false => Linear::without_bias(inputs, outputs, generator),
        }
    }

    #[track_caller]
    fn norm<T: Float>(&self) -> LayerNorm<T> {
        let norm = LayerNorm::new([self.d_model]).eps(self.layer_norm_eps);
        if self.bias { norm } else { norm.without_bias() }
    }

    /// What attention or the dense layers get.
    #[track_caller]
    fn before<'t, T: Float>(&self, norm: &LayerNorm<T>, x: Var<'t, T>) -> Result<Var<'t, T>> {
        if self.norm_first { norm.try_forward(x) } else { Ok(x) }
    }

    /// What goes on: `x` and `y`, which attention or the dense layers gave.
    #[track_caller]
    fn after<'t, T: Float>(&self, norm: &LayerNorm<T>, x: Var<'t, T>, y: Var<'t, T>) -> Result<Var<'t, T>> {
        let sum = x.try_add(dropout(y, self.dropout)?)?;
        if self.norm_first { Ok(sum) } else { norm.try_forward(sum) }
    }

    /// The dense layers with their norm and the connection around them.
    #[track_caller]
    fn feed_forward<'t, T: Float>(
        &self,
        dense: [&Linear<T>; 2],
        norm: &LayerNorm<T>,
        x: Var<'t, T>,
    ) -> Result<Var<'t, T>> {
        let hidden = dense[0].try_forward(self.before(norm, x)?)?;
        let hidden = if self.gelu { hidden.try_gelu()? } else { hidden.try_relu()? };
        self.after(norm, x, dense[1].try_forward(dropout(hidden, self.dropout)?)?)
    }
}

/// Attention of a sequence to itself, then two dense layers, each beside a connection around it. PyTorch:
/// `torch.nn.TransformerEncoderLayer`. With a causal mask it is the layer of a language model, which
/// [`decode`](Self::decode) runs step by step.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{AttentionMasks, Generator, TransformerEncoderLayer, TransformerOptions};
///
/// let options = TransformerOptions::new(16, 4).dim_feedforward(32).batch_first().norm_first();
/// let layer = TransformerEncoderLayer::<f32>::new(&options, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([2, 5, 16]));
/// assert_eq!(layer.forward_masked(x, AttentionMasks::causal()).shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoderLayer<T: Float = f32> {
    /// Attention.
    pub self_attn: MultiheadAttention<T>,
    /// The first dense layer.
    pub linear1: Linear<T>,
    /// The second.
    pub linear2: Linear<T>,
    /// The norm of the attention.
    pub norm1: LayerNorm<T>,
    /// The norm of the dense layers.
    pub norm2: LayerNorm<T>,
    #[module(skip)]
    options: TransformerOptions,
}

#[twins]
impl<T: Float> TransformerEncoderLayer<T> {
    /// A layer with these settings.
    ///
    /// # Panics
    ///
    /// If the number of heads does not divide the width, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, generator: &mut Generator) -> Self {
        TransformerEncoderLayer {
            self_attn: options.attention(generator),
            linear1: options.dense(options.d_model, options.dim_feedforward, generator),
            linear2: options.dense(options.dim_feedforward, options.d_model, generator),
            norm1: options.norm(),
            norm2: options.norm(),
            options: options.clone(),
        }
    }

    /// The result where each position sees what `masks` let it see.
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
    pub fn try_forward_masked<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_self_attend(self.options.before(&self.norm1, x)?, masks)?;
        self.rest(x, y)
    }

    /// The result at the next positions, which see all that `cache` has, and those before themselves; they are added to the cache.
    /// The same as [`forward_masked`](Self::forward_masked) with [`AttentionMasks::causal`]. No gradient flows through attention.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or the cache is of another batch.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        let y = self.self_attn.try_decode(self.options.before(&self.norm1, x)?, cache)?;
        self.rest(x, y)
    }

    /// What comes after the attention, which gave `y`.
    #[track_caller]
    fn rest<'t>(&self, x: Var<'t, T>, y: Var<'t, T>) -> Result<Var<'t, T>> {
        let x = self.options.after(&self.norm1, x, y)?;
        self.options.feed_forward([&self.linear1, &self.linear2], &self.norm2, x)
    }
}

/// Each position sees all of them.
impl<T: Float> Layer<T> for TransformerEncoderLayer<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_masked(x, AttentionMasks::new())
    }
}

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

/// Refuses caches of another stack.
#[track_caller]
fn check_caches(layers: usize, caches: usize) -> Result<()> {
    if layers == caches {
        return Ok(());
    }
    Err(refused("decode", format!("{caches} caches for a stack of {layers} layers: expected one for each")).into())
}

/// Encoder layers one after the other. PyTorch: `torch.nn.TransformerEncoder`, but that each layer has initial values of its own.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, Layer, Module, TransformerEncoder, TransformerOptions};
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
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer<T>>,
    /// The norm at the end.
    pub norm: Option<LayerNorm<T>>,
}

#[twins]
impl<T: Float> TransformerEncoder<T> {
    /// As many layers with these settings.
    ///
    /// # Panics
    ///
    /// If the number of heads does not divide the width, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(options: &TransformerOptions, num_layers: usize, generator: &mut Generator) -> Self {
        let mut layers = Vec::with_capacity(num_layers);
        for _ in 0..num_layers {
            layers.push(TransformerEncoderLayer::new(options, generator));
        }
        TransformerEncoder { layers, norm: if options.final_norm { Some(options.norm()) } else { None } }
    }

    /// The result where each position sees what `masks` let it see, in every layer.
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
    pub fn try_forward_masked<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        let mut x = x;
        for layer in &self.layers {
            x = layer.try_forward_masked(x, masks.clone())?;
        }
        self.norm.try_forward(x)
    }

    /// A cache for each layer, before the first step.
    pub fn caches(&self) -> Vec<AttentionCache<T>> {
        vec![AttentionCache::new(); self.layers.len()]
    }

    /// The result at the next positions; see [`TransformerEncoderLayer::decode`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, the caches are of another batch, or there is not one for each layer.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, caches: &mut [AttentionCache<T>]) -> Result<Var<'t, T>> {
        check_caches(self.layers.len(), caches.len())?;
        let mut x = x;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.try_decode(x, cache)?;
        }
        self.norm.try_forward(x)
    }
}

/// Each position sees all of them.
impl<T: Float> Layer<T> for TransformerEncoder<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_masked(x, AttentionMasks::new())
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

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;
    use wengert_tensor::ops::AttentionMask;

    use super::*;

    fn options() -> TransformerOptions {
        TransformerOptions::new(4, 2).dim_feedforward(6).batch_first()
    }

    fn random(shape: &[usize]) -> Tensor<f64> {
        Tensor::uniform(-1.0, 1.0, shape, &mut Generator::new(shape.iter().sum::<usize>() as u64))
    }

    #[track_caller]
    fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
        assert_eq!(got.shape(), want.shape());
        // Sums of at most a hundred terms; the norms divide by deviations of about 1.
        let off = (got - want).abs().iter().fold(0.0, f64::max);
        assert!(off < 1e-12, "{off}");
    }

    #[test]
    fn decoding_is_the_causal_pass() {
        let generator = &mut Generator::new(0);
        for options in [options(), options().norm_first().gelu().final_norm()] {
            let tape = Tape::new();
            let (x, memory) = (tape.constant(&random(&[2, 5, 4])), tape.constant(&random(&[2, 3, 4])));
            let is_padding = Tensor::<bool>::from([[false, false, true], [false; 3]]);
            let encoder = TransformerEncoder::new(&options, 2, generator);
            let decoder = TransformerDecoder::new(&options, 2, generator);
            let encoded = encoder.forward_masked(x, AttentionMasks::causal()).value();
            let memory_masks = AttentionMasks::new().key_padding_mask(&is_padding);
            let decoded = decoder.forward(x, memory, AttentionMasks::causal(), memory_masks).value();
            let (mut own, mut others) = (encoder.caches(), decoder.caches(memory, Some(&is_padding)));
            for step in 0..5 {
                let now = x.narrow(1, step, 1);
                assert_close(&encoder.decode(now, &mut own).value(), &encoded.narrow(1, step, 1));
                assert_close(&decoder.decode(now, &mut others).value(), &decoded.narrow(1, step, 1));
            }
            assert_eq!(others[1].len(), 5);
        }
    }

    #[test]
    fn dropout_is_in_training_only() {
        let layer = TransformerEncoderLayer::new(&options(), &mut Generator::new(0));
        let evaluated = |tape: Tape<f64>| layer.forward(tape.constant(&random(&[2, 5, 4]))).value();
        assert_eq!(evaluated(Tape::new()), evaluated(Tape::new()));
        assert_ne!(evaluated(Tape::training(&mut Generator::new(1))), evaluated(Tape::new()));
    }

    #[test]
    fn gradients_are_those_of_the_values() {
        let mut layer = TransformerDecoderLayer::new(&options().gelu().dropout(0.0), &mut Generator::new(0));
        crate::layers::check::gradients(&mut layer, |layer, tape| {
            let (x, memory) = (tape.constant(&random(&[1, 3, 4])), tape.constant(&random(&[1, 2, 4])));
            layer.forward(x, memory, AttentionMasks::causal(), AttentionMasks::new())
        });
    }

    #[test]
    fn paths_are_pytorchs() {
        let paths = |module: &dyn Module<f64>| module.leaves().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        let stack = TransformerDecoder::new(&options().final_norm(), 1, &mut Generator::new(0));
        let attention = |name: &str| {
            ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
                .map(|p| format!("layers.0.{name}.{p}"))
        };
        let rest = ["linear1", "linear2", "norm1", "norm2", "norm3"]
            .map(|name| [format!("layers.0.{name}.weight"), format!("layers.0.{name}.bias")]);
        let mut expected = [attention("self_attn"), attention("multihead_attn")].concat();
        expected.extend(rest.into_iter().flatten());
        expected.extend(["norm.weight".to_owned(), "norm.bias".to_owned()]);
        assert_eq!(paths(&stack), expected);
        let layer = TransformerEncoderLayer::new(&options().bias(false), &mut Generator::new(0));
        let expected = ["self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight", "linear2.weight"];
        assert_eq!(paths(&layer)[..4], expected);
        assert_eq!(paths(&layer)[4..], ["norm1.weight", "norm2.weight"]);
    }

    #[test]
    fn a_mask_reaches_every_layer() {
        let encoder = TransformerEncoder::new(&options(), 2, &mut Generator::new(0));
        let tape = Tape::new();
        let x = random(&[1, 3, 4]);
        let keep = Tensor::<bool>::from([[true, false, false], [false, true, false], [false, false, true]]);
        let own = AttentionMasks::new().mask(AttentionMask::Keep(&keep));
        let y = encoder.forward_masked(tape.constant(&x), own).value();
        // Each position sees itself only, so each alone gives the same.
        let alone = encoder.forward(tape.constant(&x.narrow(1, 1, 1))).value();
        assert_close(&y.narrow(1, 1, 1), &alone);
    }

    #[test]
    fn caches_of_another_stack_are_refused() {
        let generator = &mut Generator::new(0);
        let (two, three) = (
            TransformerEncoder::<f64>::new(&options(), 2, generator),
            TransformerEncoder::new(&options(), 3, generator),
        );
        let tape = Tape::new();
        let error = three.try_decode(tape.constant(&Tensor::ones([1, 1, 4])), &mut two.caches()).unwrap_err();
        assert!(error.to_string().contains("2 caches for a stack of 3 layers"), "{error}");
    }
}
