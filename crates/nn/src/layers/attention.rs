//! Attention with several heads (Vaswani et al. 2017, "Attention Is All You Need", 3.2.2), and its decoding one step at a time.
//!
//! What a head computes is the operation `scaled_dot_product_attention` of the tensor crate; this file projects and splits into
//! heads. PyTorch's `add_bias_kv` and `add_zero_attn` are left out.

use wengert_autograd::{Error as TapeError, Parameter, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{
    Attention as _, AttentionMask, LinearMaps as _, Products as _, TensorLike, Views as _, try_cat,
};
use wengert_tensor::{Error as TensorError, Float, Shape, Site, Tensor};

use crate::layers::attention_masks::{AttentionMasks, Merged, seen};
use crate::layers::layer::{Layer, dropout, in_layer, optional, output_of};
use crate::layers::linear::Linear;
use crate::module::Module;
use crate::{Generator, Result, init};

/// Attention with several heads. PyTorch: `torch.nn.MultiheadAttention`, with the same layout of the weights and the same initial
/// distribution.
///
/// Inputs are `[l, n, e]`, or `[n, l, e]` with [`batch_first`](AttentionBuilder::batch_first), or `[l, e]`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{AttentionMasks, Generator, MultiheadAttention};
///
/// let generator = &mut Generator::new(0);
/// let attention: MultiheadAttention = MultiheadAttention::builder(16, 4).batch_first().build(generator);
/// let tape = Tape::new();
/// let (x, memory) = (tape.constant(&Tensor::ones([2, 5, 16])), tape.constant(&Tensor::ones([2, 7, 16])));
/// let y = attention.self_attend(x, AttentionMasks::causal());
/// let z = attention.attend(y, memory, memory, AttentionMasks::new());
/// assert_eq!(z.shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct MultiheadAttention<T: Float = f32> {
    /// Of queries, keys and values, `[3 e, e]`; `None` where keys or values have a width of their own.
    pub in_proj_weight: Option<Parameter<T>>,
    /// Of queries, `[e, e]`, where keys or values have a width of their own.
    pub q_proj_weight: Option<Parameter<T>>,
    /// Of keys, `[e, kdim]`.
    pub k_proj_weight: Option<Parameter<T>>,
    /// Of values, `[e, vdim]`.
    pub v_proj_weight: Option<Parameter<T>>,
    /// Of queries, keys and values, `[3 e]`.
    pub in_proj_bias: Option<Parameter<T>>,
    /// Of what the heads give, joined.
    pub out_proj: Linear<T>,
    #[module(skip)]
    num_heads: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    batch_first: bool,
}

/// The settings of an attention layer before it is built.
#[derive(Clone, Debug)]
pub struct AttentionBuilder {
    embed_dim: usize,
    num_heads: usize,
    dropout: f64,
    bias: bool,
    kdim: usize,
    vdim: usize,
    batch_first: bool,
}

/// The keys and values that a layer has seen, for decoding one step at a time. A clone shares the memory.
#[derive(Clone, Debug)]
pub struct AttentionCache<T: Float = f32> {
    /// Each `[n, heads, s, e / heads]`.
    keys_values: Option<[Tensor<T>; 2]>,
}

impl<T: Float> AttentionCache<T> {
    /// Nothing seen.
    pub fn new() -> Self {
        AttentionCache { keys_values: None }
    }

    /// How many steps were seen.
    pub fn len(&self) -> usize {
        self.keys_values.as_ref().map_or(0, |[keys, _]| keys.shape()[2])
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Float> Default for AttentionCache<T> {
    fn default() -> Self {
        AttentionCache::new()
    }
}

impl<T: Float> MultiheadAttention<T> {
    /// A layer of `num_heads` heads over vectors of `embed_dim` numbers; [`builder`](MultiheadAttention::builder) has the rest. The
    /// weights are drawn as in PyTorch: those of the inputs by Xavier's uniform distribution, that of the output from
    /// U(-1/√e, 1/√e); biases are 0.
    ///
    /// # Panics
    ///
    /// If `num_heads` does not divide `embed_dim`, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(embed_dim: usize, num_heads: usize, generator: &mut Generator) -> Self {
        MultiheadAttention::builder(embed_dim, num_heads).build(generator)
    }
}

impl MultiheadAttention<f32> {
    /// The settings of a layer of `num_heads` heads over vectors of `embed_dim` numbers, of any element type:
    /// [`AttentionBuilder::build`] decides.
    pub fn builder(embed_dim: usize, num_heads: usize) -> AttentionBuilder {
        let (kdim, vdim) = (embed_dim, embed_dim);
        AttentionBuilder { embed_dim, num_heads, dropout: 0.0, bias: true, kdim, vdim, batch_first: false }
    }
}

impl AttentionBuilder {
    /// With dropout of this probability, 0 to 1, on the weights of the values; 0 by default. Only on tapes that train.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        AttentionBuilder { dropout: p, ..self }
    }

    /// With or without biases; with by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        AttentionBuilder { bias, ..self }
    }

    /// With keys of another width than queries.
    #[must_use]
    pub fn kdim(self, kdim: usize) -> Self {
        AttentionBuilder { kdim, ..self }
    }

    /// With values of another width than queries.
    #[must_use]
    pub fn vdim(self, vdim: usize) -> Self {
        AttentionBuilder { vdim, ..self }
    }

    /// Over `[n, l, e]` instead of `[l, n, e]`.
    #[must_use]
    pub fn batch_first(self) -> Self {
        AttentionBuilder { batch_first: true, ..self }
    }

    /// The layer.
    ///
    /// # Panics
    ///
    /// If the number of heads does not divide the width, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> MultiheadAttention<T> {
        let AttentionBuilder { embed_dim: e, num_heads, dropout, bias, kdim, vdim, batch_first } = self;
        assert!(
            num_heads > 0 && e.is_multiple_of(num_heads),
            "embed_dim must be divisible by num_heads, but they are {e} and {num_heads}"
        );
        let [mut joint, mut q_proj_weight, mut k_proj_weight, mut v_proj_weight] = [None, None, None, None];
        if [kdim, vdim] == [e, e] {
            joint = Some(Parameter::new(init::xavier_uniform([3 * e, e], 1.0, generator)));
        } else {
            q_proj_weight = Some(Parameter::new(init::xavier_uniform([e, e], 1.0, generator)));
            k_proj_weight = Some(Parameter::new(init::xavier_uniform([e, kdim], 1.0, generator)));
            v_proj_weight = Some(Parameter::new(init::xavier_uniform([e, vdim], 1.0, generator)));
        }
        let mut out_proj = Linear::without_bias(e, e, generator);
        let mut in_proj_bias = None;
        if bias {
            in_proj_bias = Some(Parameter::new(Tensor::zeros([3 * e])));
            out_proj.bias = Some(Parameter::new(Tensor::zeros([e])));
        }
        MultiheadAttention {
            in_proj_weight: joint,
            q_proj_weight,
            k_proj_weight,
            v_proj_weight,
            in_proj_bias,
            out_proj,
            num_heads,
            dropout,
            batch_first,
        }
    }
}

/// Each position attends to all of them.
impl<T: Float> Layer<T> for MultiheadAttention<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_self_attend(x, AttentionMasks::new())
    }
}

#[twins]
impl<T: Float> MultiheadAttention<T> {
    /// Each position of `x` attends to those that `masks` let it see. Queries, keys and values come of one product.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, keys or values have a width of their own, or variables belong to two tapes.
    pub fn try_self_attend<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        Ok(self.try_self_attend_with_weights(x, masks)?.0)
    }

    /// [`try_self_attend`](Self::try_self_attend), and the weights by which values were added up, `[n, heads, l, s]`; PyTorch
    /// returns their mean over the heads, `weights.mean(1)`. What dropout dropped is 0.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_self_attend_with_weights<'t>(
        &self,
        x: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>)> {
        let result = self.own_heads(x);
        let heads = in_layer(result, self.out_proj.weight.made(), || self.describe(&[x]))?;
        output_of(self, self.joined(x, heads, masks), self.out_proj.weight.made(), || self.describe(&[x]))
    }

    /// Each position of `query` attends to those of `key` that `masks` let it see, and gets what `value` has there. Lengths of
    /// `key` and `value` are the same. A query that sees no key gets 0 from the heads (in PyTorch NaN).
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to two tapes.
    pub fn try_attend<'t>(
        &self,
        query: Var<'t, T>,
        key: Var<'t, T>,
        value: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        Ok(self.try_attend_with_weights(query, key, value, masks)?.0)
    }

    /// [`try_attend`](Self::try_attend), and the weights by which values were added up, `[n, heads, l, s]`; PyTorch returns their
    /// mean over the heads, `weights.mean(1)`. What dropout dropped is 0.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_attend_with_weights<'t>(
        &self,
        query: Var<'t, T>,
        key: Var<'t, T>,
        value: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>)> {
        let made = self.out_proj.weight.made();
        let heads = in_layer(self.heads_of([query, key, value]), made, || self.describe(&[query, key, value]))?;
        output_of(self, self.joined(query, heads, masks), made, || self.describe(&[query, key, value]))
    }

    /// Causal attention of the next positions, one or several, which see all that `cache` has, and those before themselves. They
    /// are added to the cache. The same as [`self_attend`](Self::self_attend) with [`AttentionMasks::causal`] of the whole
    /// sequence, at the cost of the new positions. Computes at once; no gradient flows, nothing is dropped.
    ///
    /// # Errors
    ///
    /// As [`try_self_attend`](Self::try_self_attend), and if the cache is of another batch.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        output_of(self, self.next(x, cache), self.out_proj.weight.made(), || self.describe(&[x]))
    }

    /// Keys and values of `memory`, for many calls of [`attend_cached`](Self::attend_cached). Computes at once.
    ///
    /// # Errors
    ///
    /// If its shape does not fit.
    pub fn try_memory(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>> {
        in_layer(self.remember(memory), self.out_proj.weight.made(), || self.describe(&[memory]))
    }

    /// Each position of `query` attends to all of a [`memory`](Self::memory), except where `is_padding`, `[n, s]`, holds. The same
    /// as [`attend`](Self::attend), without the projections of the memory. Computes at once; no gradient flows, nothing is dropped.
    ///
    /// # Errors
    ///
    /// If shapes do not fit.
    pub fn try_attend_cached<'t>(
        &self,
        query: Var<'t, T>,
        memory: &AttentionCache<T>,
        is_padding: Option<&Tensor<bool>>,
    ) -> Result<Var<'t, T>> {
        let made = self.out_proj.weight.made();
        output_of(self, self.look_up(query, memory, is_padding), made, || self.describe(&[query]))
    }

    fn describe(&self, inputs: &[Var<'_, T>]) -> String {
        let shapes: Vec<String> = inputs.iter().map(|x| x.shape().to_string()).collect();
        format!("MultiheadAttention({}, {}) on inputs of shapes {}", self.width(), self.num_heads, shapes.join(", "))
    }

    fn width(&self) -> usize {
        self.out_proj.weight.value.shape()[0]
    }

    /// Queries, keys and values of one input, by one product.
    #[track_caller]
    fn own_heads<'t>(&self, x: Var<'t, T>) -> Result<[Var<'t, T>; 3], TapeError> {
        let Some(weight) = &self.in_proj_weight else { return self.heads_of([x, x, x]) };
        let weight = x.tape().try_parameter(weight)?;
        let bias = optional(x.tape(), self.in_proj_bias.as_ref())?;
        let all = x.try_linear(&weight, bias.as_ref())?;
        self.split_in_three(&all)
    }

    /// Queries, keys and values, `[n, heads, l, e / heads]` each, from their products side by side.
    #[track_caller]
    fn split_in_three<A: TensorLike>(&self, all: &A) -> Result<[A; 3], A::Error> {
        let (last, width) = (all.shape().rank() as isize - 1, self.width() as isize);
        Ok([
            self.split(&all.try_narrow(last, 0, width)?)?,
            self.split(&all.try_narrow(last, width, width)?)?,
            self.split(&all.try_narrow(last, 2 * width, width)?)?,
        ])
    }

    /// Queries, keys and values of three inputs.
    #[track_caller]
    fn heads_of<'t>(&self, inputs: [Var<'t, T>; 3]) -> Result<[Var<'t, T>; 3], TapeError> {
        let [query, key, value] = inputs;
        let shapes = inputs.map(Var::shape);
        let batch = |shape: &Shape| match **shape {
            [_, _] => Some(1),
            [n, _, _] if self.batch_first => Some(n),
            [_, n, _] => Some(n),
            _ => None,
        };
        let lengths = [&shapes[1], &shapes[2]].map(|shape| Shape::from(&shape[..shape.rank().saturating_sub(1)]));
        let ranks = shapes.each_ref().map(|shape| shape.rank());
        if ranks != [ranks[0]; 3] || batch(&shapes[0]) != batch(&shapes[1]) || lengths[0] != lengths[1] {
            let message = format!(
                "query, key and value of shapes {}, {} and {} do not belong together: expected equal numbers of examples, and \
                 as many values as keys",
                shapes[0], shapes[1], shapes[2]
            );
            return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
        }
        Ok([
            self.split(&self.projected(query, 0, 1)?)?,
            self.split(&self.projected(key, 1, 1)?)?,
            self.split(&self.projected(value, 2, 1)?)?,
        ])
    }

    /// The product with `count` of the three projections, from number `first` on.
    #[track_caller]
    fn projected<'t>(&self, x: Var<'t, T>, first: usize, count: usize) -> Result<Var<'t, T>, TapeError> {
        let (tape, width) = (x.tape(), self.width());
        let (start, length) = ((first * width) as isize, (count * width) as isize);
        let own = [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight][first].as_ref();
        let weight = match (own, &self.in_proj_weight) {
            (Some(own), _) => tape.try_parameter(own)?,
            (None, Some(joint)) => tape.try_parameter(joint)?.try_narrow(0, start, length)?,
            (None, None) => {
                let message = "the layer has neither in_proj_weight nor one for each input".to_owned();
                return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
            }
        };
        let bias = match &self.in_proj_bias {
            Some(bias) => Some(tape.try_parameter(bias)?.try_narrow(0, start, length)?),
            None => None,
        };
        x.try_linear(&weight, bias.as_ref())
    }

    /// From `[l, n, e]` or what the layer takes instead to `[n, heads, l, e / heads]`.
    #[track_caller]
    fn split<A: TensorLike>(&self, x: &A) -> Result<A, A::Error> {
        let shape = x.shape();
        let (heads, width) = (self.num_heads, self.width() / self.num_heads);
        match *shape {
            [l, _] => x.try_reshape([l, 1, heads, width])?.try_permute([1, 2, 0, 3]),
            [n, l, _] if self.batch_first => x.try_reshape([n, l, heads, width])?.try_permute([0, 2, 1, 3]),
            [l, n, _] => x.try_reshape([l, n, heads, width])?.try_permute([1, 2, 0, 3]),
            _ => {
                let message = format!("Expected inputs of 2 or 3 dimensions, got one of shape {shape}");
                Err(TensorError::Argument { message, at: Site::here("attend") }.into())
            }
        }
    }

    /// What the heads gave, `[n, heads, l, e / heads]`, in the order of the layer's inputs: the inverse of `split`.
    #[track_caller]
    fn join<A: TensorLike>(&self, heads: &A, rank: usize) -> Result<A, A::Error> {
        let shape = heads.shape();
        let (n, l, width) = (shape[0], shape[2], self.width());
        match rank {
            2 => heads.try_permute([2, 0, 1, 3])?.try_reshape([l, width]),
            _ if self.batch_first => heads.try_permute([0, 2, 1, 3])?.try_reshape([n, l, width]),
            _ => heads.try_permute([2, 0, 1, 3])?.try_reshape([l, n, width]),
        }
    }

    /// The layer's result, and the weights.
    #[track_caller]
    fn joined<'t>(
        &self,
        query: Var<'t, T>,
        [q, k, v]: [Var<'t, T>; 3],
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>), TapeError> {
        let rank = query.shape().rank();
        let sizes = [q.shape()[0], self.num_heads, q.shape()[2], k.shape()[2]];
        let merged = Merged::of(&masks, sizes)?;
        let weights = dropout(q.try_attention_weights(&k, merged.borrowed(), None)?, self.dropout)?;
        let y = self.join(&weights.try_matmul(&v)?, rank)?;
        Ok((self.output(y)?, weights))
    }

    #[track_caller]
    fn output<'t>(&self, y: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let weight = y.tape().try_parameter(&self.out_proj.weight)?;
        let bias = optional(y.tape(), self.out_proj.bias.as_ref())?;
        y.try_linear(&weight, bias.as_ref())
    }

    #[track_caller]
    fn next<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>, TapeError> {
        let [q, mut k, mut v] = self.split_in_three(&self.projected(x, 0, 3)?.try_value()?)?;
        let (seen, new) = (cache.len(), q.shape()[2]);
        if let Some([keys, values]) = &cache.keys_values {
            k = try_cat(&[keys.clone(), k], 2)?;
            v = try_cat(&[values.clone(), v], 2)?;
        }
        let keep = (0..new).flat_map(|query| (0..seen + new).map(move |key| key <= seen + query)).collect();
        let keep = Tensor::try_from_vec(keep, [new, seen + new])?;
        let mask = if new == 1 { AttentionMask::None } else { AttentionMask::Keep(&keep) };
        let y = q.try_scaled_dot_product_attention(&k, &v, mask, None)?;
        cache.keys_values = Some([k, v]);
        self.output(x.tape().constant(&self.join(&y, x.shape().rank())?))
    }

    #[track_caller]
    fn remember(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>, TapeError> {
        let [keys, values] = [self.projected(memory, 1, 1)?, self.projected(memory, 2, 1)?];
        Ok(AttentionCache { keys_values: Some([self.split(&keys.try_value()?)?, self.split(&values.try_value()?)?]) })
    }

    #[track_caller]
    fn look_up<'t>(
        &self,
        query: Var<'t, T>,
        memory: &AttentionCache<T>,
        is_padding: Option<&Tensor<bool>>,
    ) -> Result<Var<'t, T>, TapeError> {
        let q = self.split(&self.projected(query, 0, 1)?.try_value()?)?;
        let Some([keys, values]) = &memory.keys_values else {
            let message = "the memory is empty".to_owned();
            return Err(TensorError::Argument { message, at: Site::here("attend_cached") }.into());
        };
        let keep = is_padding.map(|is_padding| seen(is_padding, q.shape()[0], keys.shape()[2])).transpose()?;
        let mask = keep.as_ref().map_or(AttentionMask::None, AttentionMask::Keep);
        let y = q.try_scaled_dot_product_attention(keys, values, mask, None)?;
        self.output(query.tape().constant(&self.join(&y, query.shape().rank())?))
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::gradcheck;
    use wengert_autograd::prelude::*;

    use super::*;

    fn layer(builder: AttentionBuilder) -> MultiheadAttention<f64> {
        let mut layer: MultiheadAttention<f64> = builder.build(&mut Generator::new(4));
        // Biases of 0 would hide mistakes.
        if let Some(bias) = &mut layer.in_proj_bias {
            bias.value = random(bias.value.shape());
        }
        layer
    }

    fn random(shape: &[usize]) -> Tensor<f64> {
        Tensor::uniform(-1.0, 1.0, shape, &mut Generator::new(shape.iter().sum::<usize>() as u64))
    }

    #[track_caller]
    fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
        assert_eq!(got.shape(), want.shape());
        // Sums of at most a hundred terms of size 1.
        let off = (got - want).abs().iter().fold(0.0, f64::max);
        assert!(off < 1e-13, "{off}");
    }

    #[test]
    fn heads_are_attention_on_parts_of_the_projections() {
        let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
        let (tape, weight) = (Tape::new(), &layer.in_proj_weight.as_ref().unwrap().value);
        let x = random(&[3, 5, 4]);
        let all = x.linear(weight, Some(&layer.in_proj_bias.as_ref().unwrap().value));
        let head = |number: isize| {
            let part = |of: isize| all.narrow(2, 4 * of + 2 * number, 2);
            part(0).scaled_dot_product_attention(part(1), part(2), AttentionMask::Causal, None)
        };
        let out = &layer.out_proj;
        let expected = cat(&[head(0), head(1)], 2).linear(&out.weight.value, Some(&out.bias.as_ref().unwrap().value));
        let x = tape.constant(&x);
        assert_close(&layer.self_attend(x, AttentionMasks::causal()).value(), &expected);
        assert_close(&layer.attend(x, x, x, AttentionMasks::causal()).value(), &expected);
        let other = MultiheadAttention { batch_first: false, ..layer.clone() };
        let y = other.self_attend(x.transpose(0, 1), AttentionMasks::causal());
        assert_close(&y.transpose(0, 1).value(), &expected);
        let alone = layer.self_attend(x.select(0, 1), AttentionMasks::causal());
        assert_close(&alone.value(), &expected.select(0, 1));
    }

    #[test]
    fn masks_hide_what_they_say() {
        let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
        let tape = Tape::new();
        let x = tape.constant(&random(&[2, 3, 4]));
        let is_padding = Tensor::from([[false, false, true], [false, false, false]]);
        let weights = |masks| layer.self_attend_with_weights(x, masks).1.value();
        let causal = weights(AttentionMasks::causal().key_padding_mask(&is_padding));
        assert_eq!(causal.shape(), &[2, 2, 3, 3]);
        for (position, weight) in causal.iter().enumerate() {
            let (example, query, key) = (position / 18, position / 3 % 3, position % 3);
            assert_eq!(weight == 0.0, key > query || example == 0 && key == 2, "{position}");
        }
        assert_close(&causal.sum(3), &Tensor::ones([2, 2, 3]));
        // The same in other words.
        let keep = Tensor::<bool>::from([[true, false, false], [true, true, false], [true, true, true]]);
        let masks = AttentionMasks::new().mask(AttentionMask::Keep(&keep)).key_padding_mask(&is_padding);
        assert_close(&weights(masks), &causal);
        let bias = tape.constant(&Tensor::full([3, 3], f64::NEG_INFINITY).triu(1));
        let masks = AttentionMasks::new().mask(AttentionMask::Add(&bias)).key_padding_mask(&is_padding);
        assert_close(&weights(masks), &causal);
        let by_example = keep.expand([2, 3, 3]);
        let masks = AttentionMasks::new().mask(AttentionMask::Keep(&by_example)).key_padding_mask(&is_padding);
        assert_close(&weights(masks), &causal);
        let by_head = keep.expand([4, 3, 3]);
        let masks = AttentionMasks::new().mask(AttentionMask::Keep(&by_head)).key_padding_mask(&is_padding);
        assert_close(&weights(masks), &causal);
    }

    #[test]
    fn decoding_is_the_causal_pass() {
        for layer in [
            layer(MultiheadAttention::builder(4, 2).batch_first()),
            layer(MultiheadAttention::builder(4, 2)),
            layer(MultiheadAttention::builder(4, 2).bias(false)),
        ] {
            let (tape, axis) = (Tape::new(), if layer.batch_first { 1 } else { 0 });
            let x = tape.constant(&random(if layer.batch_first { &[2, 6, 4] } else { &[6, 2, 4] }));
            let whole = layer.self_attend(x, AttentionMasks::causal()).value();
            let mut cache = AttentionCache::new();
            let mut start = 0;
            for length in [2, 1, 2, 1] {
                let y = layer.decode(x.narrow(axis, start, length), &mut cache);
                assert_close(&y.value(), &whole.narrow(axis, start, length));
                start += length;
            }
            assert_eq!(cache.len(), 6);
        }
    }

    #[test]
    fn a_memory_is_attended_to_from_the_cache() {
        let layer = layer(MultiheadAttention::builder(4, 2).kdim(3).vdim(3).batch_first());
        let tape = Tape::new();
        let (x, memory) = (tape.constant(&random(&[2, 3, 4])), tape.constant(&random(&[2, 5, 3])));
        let is_padding = Tensor::<bool>::from([[false, true, true, true, false], [false; 5]]);
        let masks = AttentionMasks::new().key_padding_mask(&is_padding);
        let expected = layer.attend(x, memory, memory, masks).value();
        assert_close(&layer.attend_cached(x, &layer.memory(memory), Some(&is_padding)).value(), &expected);
    }

    #[test]
    fn derivatives_are_those_of_the_values() {
        let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
        gradcheck(|[x]| layer.self_attend(x, AttentionMasks::causal()), [&random(&[2, 3, 4])]).unwrap();
        let mut model = layer.clone();
        crate::layers::check::gradients(&mut model, |layer, tape| {
            let (x, memory) = (tape.constant(&random(&[2, 3, 4])), tape.constant(&random(&[2, 5, 4])));
            layer.attend(x, memory, memory, AttentionMasks::new())
        });
    }

    #[test]
    fn dropout_drops_weights_in_training() {
        let layer = layer(MultiheadAttention::builder(4, 2).dropout(0.5));
        let weights = |tape: Tape<f64>| {
            let x = tape.constant(&random(&[6, 2, 4]));
            layer.self_attend_with_weights(x, AttentionMasks::new()).1.value()
        };
        assert!(weights(Tape::new()).iter().all(|weight| weight > 0.0));
        assert!(weights(Tape::training(&mut Generator::new(0))).iter().any(|weight| weight == 0.0));
    }

    #[test]
    fn paths_bounds_and_refusals() {
        let paths = |layer: &MultiheadAttention| layer.leaves().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        let generator = &mut Generator::new(0);
        let own: MultiheadAttention = MultiheadAttention::new(8, 2, generator);
        assert_eq!(paths(&own), ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]);
        let bound = 6f32.sqrt() / 32f32.sqrt();
        let weight = || own.in_proj_weight.as_ref().unwrap().value.iter();
        assert!(weight().all(|w| w.abs() <= bound) && weight().any(|w| w.abs() > 0.9 * bound));
        let others: MultiheadAttention = MultiheadAttention::builder(8, 2).kdim(3).bias(false).build(generator);
        assert_eq!(paths(&others), ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]);

        let tape = Tape::new();
        let zeros = |shape: &[usize]| tape.constant(&Tensor::zeros(shape));
        let padding = Tensor::<f64>::zeros([2, 4]).gt(0.0);
        let masks = AttentionMasks::new().key_padding_mask(&padding);
        for (result, expected) in [
            (own.try_forward(zeros(&[8])), "Expected inputs of 2 or 3 dimensions"),
            (own.try_forward(zeros(&[5, 2, 7])), "MultiheadAttention(8, 2) on inputs of shapes [5, 2, 7]"),
            (
                own.try_self_attend(zeros(&[5, 2, 8]), masks),
                "Expected key_padding_mask of shape [2, 5], but got [2, 4]",
            ),
            (
                own.try_attend(zeros(&[5, 2, 8]), zeros(&[3, 1, 8]), zeros(&[3, 1, 8]), AttentionMasks::new()),
                "expected equal numbers of examples",
            ),
            (others.try_forward(zeros(&[5, 2, 8])), "cannot be multiplied"),
        ] {
            let text = result.unwrap_err().to_string();
            assert!(text.contains(expected) && text.contains("attention.rs"), "{text}");
        }
    }
}
