//! Decoding of a sequence step by step. A cache keeps the keys and values of earlier steps.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Attention as _, AttentionMask, try_cat};
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::layers::attention::masks::{causal_mask, visible_keys};
use crate::layers::attention::multihead::MultiheadAttention;
use crate::layers::forward::{add_layer_context, layer_error, output_of};

/// A cache of the keys and values of all steps that an attention layer has decoded, or of all positions of a memory (a sequence to attend
/// to). A clone of the cache shares these tensors with the original.
#[derive(Clone, Debug)]
pub struct AttentionCache<T: Float = f32> {
    /// The keys and the values, each `[n, heads, s, e / heads]`, for n sequences of s steps and e features. `None` if the cache is empty.
    keys_values: Option<[Tensor<T>; 2]>,
}

impl<T: Float> AttentionCache<T> {
    /// Returns an empty cache.
    pub fn new() -> Self {
        AttentionCache { keys_values: None }
    }

    /// Returns the number of decoded steps, or positions of a memory, whose keys and values are in the cache.
    pub fn len(&self) -> usize {
        self.keys_values.as_ref().map_or(0, |[keys, _]| keys.shape()[2])
    }

    /// Returns true if the cache has no keys and values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Float> Default for AttentionCache<T> {
    fn default() -> Self {
        AttentionCache::new()
    }
}

#[twins]
impl<T: Float> MultiheadAttention<T> {
    /// Computes causal self-attention for `x`, the next position or positions of a sequence. Each new position attends to the positions in
    /// `cache`, to itself and to the new positions before it. The keys and values of the new positions are added to the cache.
    ///
    /// The output is the same as the output of [`self_attend`](Self::self_attend) over the whole sequence with
    /// [`AttentionMasks::causal`](crate::AttentionMasks::causal), but only the new positions are computed. The outputs of the heads are
    /// computed immediately. So only the parameters of the output layer get a gradient, and there is no dropout of attention weights.
    ///
    /// # Errors
    ///
    /// As for [`try_self_attend`](Self::try_self_attend). Also if the cache was filled with another number of
    /// sequences, or there is not enough memory.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        output_of(self, self.decode_next(x, cache), self.out_proj.weight.created_at(), || self.describe(&[x]))
    }

    /// Returns a cache with the keys and values of `memory`, the sequences to attend to. Any number of calls of
    /// [`attend_cached`](Self::attend_cached) can use the cache. Its tensors are computed immediately, without a gradient.
    ///
    /// # Errors
    ///
    /// If the shape of `memory` does not fit, or there is not enough memory for the cache.
    pub fn try_memory(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>> {
        add_layer_context(self.project_memory(memory), self.out_proj.weight.created_at(), || self.describe(&[memory]))
    }

    /// Computes attention to `memory`, a cache that [`memory`](Self::memory) returned. Each position of `query` attends to all positions of
    /// the memory except the positions where `is_padding` is true. `is_padding` has the shape `[n, s]` for n sequences of s positions. The
    /// output equals the output of [`attend`](Self::attend), which computes the keys and values of the memory again. The outputs of the
    /// heads are computed immediately. So only the parameters of the output layer get a gradient, and there is no dropout of attention
    /// weights.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, `memory` is empty, or there is not enough memory.
    pub fn try_attend_cached<'t>(
        &self,
        query: Var<'t, T>,
        memory: &AttentionCache<T>,
        is_padding: Option<&Tensor<bool>>,
    ) -> Result<Var<'t, T>> {
        let created_at = self.out_proj.weight.created_at();
        output_of(self, self.attend_memory(query, memory, is_padding), created_at, || self.describe(&[query]))
    }

    /// Returns the output at the next positions `x`; see [`try_decode`](Self::try_decode).
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>, TapeError> {
        let [q, mut k, mut v] = self.split_in_three(&self.project(x, 0, 3)?.try_value()?)?;
        let (cached, new) = (cache.len(), q.shape()[2]);
        if let Some([keys, values]) = &cache.keys_values {
            k = try_cat(&[keys.clone(), k], 2)?;
            v = try_cat(&[values.clone(), v], 2)?;
        }
        let keep = causal_mask([new, cached + new], cached)?;
        let mask = if new == 1 { AttentionMask::None } else { AttentionMask::Keep(&keep) };
        let y = q.try_scaled_dot_product_attention(&k, &v, mask, None)?;
        let output = self.project_output(x.tape().try_constant(&self.join_heads(&y, x.shape().rank())?)?)?;
        cache.keys_values = Some([k, v]);
        Ok(output)
    }

    /// Returns a cache with the keys and values of `memory`, split into heads.
    #[track_caller]
    fn project_memory(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>, TapeError> {
        let [keys, values] = [self.project(memory, 1, 1)?, self.project(memory, 2, 1)?];
        Ok(AttentionCache {
            keys_values: Some([self.split_heads(&keys.try_value()?)?, self.split_heads(&values.try_value()?)?]),
        })
    }

    /// Returns the output of attention to a memory; see [`try_attend_cached`](Self::try_attend_cached).
    #[track_caller]
    fn attend_memory<'t>(
        &self,
        query: Var<'t, T>,
        memory: &AttentionCache<T>,
        is_padding: Option<&Tensor<bool>>,
    ) -> Result<Var<'t, T>, TapeError> {
        let q = self.split_heads(&self.project(query, 0, 1)?.try_value()?)?;
        let Some([keys, values]) = &memory.keys_values else {
            let message = "the memory is empty: fill it by `memory` before `attend_cached`".to_owned();
            return Err(layer_error("attend_cached", message));
        };
        let keep = is_padding.map(|is_padding| visible_keys(is_padding, q.shape()[0], keys.shape()[2])).transpose()?;
        let mask = keep.as_ref().map_or(AttentionMask::None, AttentionMask::Keep);
        let y = q.try_scaled_dot_product_attention(keys, values, mask, None)?;
        self.project_output(query.tape().try_constant(&self.join_heads(&y, query.shape().rank())?)?)
    }
}
