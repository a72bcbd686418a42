//! Decodes one step at a time. A cache keeps the keys and values of earlier steps.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Attention as _, AttentionMask, try_cat};
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::layers::attention::masks::not_padding;
use crate::layers::attention::multihead::MultiheadAttention;
use crate::layers::forward::{in_layer, output_of, refused};

/// A cache of the keys and values of the steps that a layer has decoded. A clone shares the memory.
#[derive(Clone, Debug)]
pub struct AttentionCache<T: Float = f32> {
    /// Keys and values, each `[n, heads, s, e / heads]`.
    keys_values: Option<[Tensor<T>; 2]>,
}

impl<T: Float> AttentionCache<T> {
    /// Returns an empty cache.
    pub fn new() -> Self {
        AttentionCache { keys_values: None }
    }

    /// Returns the number of decoded steps.
    pub fn len(&self) -> usize {
        self.keys_values.as_ref().map_or(0, |[keys, _]| keys.shape()[2])
    }

    /// Returns true if no step was decoded.
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
    /// Computes causal self-attention for the next positions, one or several. The new positions attend to the positions in `cache`, to
    /// themselves and to the new positions before them. Their keys and values are added to the cache.
    ///
    /// The output is the same as the output of [`self_attend`](Self::self_attend) over the whole sequence with
    /// [`AttentionMasks::causal`](crate::AttentionMasks::causal), at the cost of only the new positions. The values are computed
    /// immediately: the call has no gradient and no dropout.
    ///
    /// # Errors
    ///
    /// As for [`try_self_attend`](Self::try_self_attend). Also if the cache belongs to another batch.
    pub fn try_decode<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>> {
        output_of(self, self.decode_next(x, cache), self.out_proj.weight.made(), || self.describe(&[x]))
    }

    /// Returns the keys and values of `memory`, which any number of calls of [`attend_cached`](Self::attend_cached) can use. The values are
    /// computed immediately.
    ///
    /// # Errors
    ///
    /// If the shape of `memory` does not fit.
    pub fn try_memory(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>> {
        in_layer(self.project_memory(memory), self.out_proj.weight.made(), || self.describe(&[memory]))
    }

    /// Computes attention to a [`memory`](Self::memory). Each position of `query` attends to all positions except those where `is_padding`,
    /// `[n, s]`, is true. The output equals the output of [`attend`](Self::attend), which would project the memory again. The values are
    /// computed immediately: the call has no gradient and no dropout.
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
        output_of(self, self.attend_memory(query, memory, is_padding), made, || self.describe(&[query]))
    }

    /// Decodes the next positions; see [`try_decode`](Self::try_decode).
    #[track_caller]
    fn decode_next<'t>(&self, x: Var<'t, T>, cache: &mut AttentionCache<T>) -> Result<Var<'t, T>, TapeError> {
        let [q, mut k, mut v] = self.split_in_three(&self.projected(x, 0, 3)?.try_value()?)?;
        let (cached, new) = (cache.len(), q.shape()[2]);
        if let Some([keys, values]) = &cache.keys_values {
            k = try_cat(&[keys.clone(), k], 2)?;
            v = try_cat(&[values.clone(), v], 2)?;
        }
        let keep = (0..new).flat_map(|query| (0..cached + new).map(move |key| key <= cached + query)).collect();
        let keep = Tensor::try_from_vec(keep, [new, cached + new])?;
        let mask = if new == 1 { AttentionMask::None } else { AttentionMask::Keep(&keep) };
        let y = q.try_scaled_dot_product_attention(&k, &v, mask, None)?;
        cache.keys_values = Some([k, v]);
        self.output(x.tape().constant(&self.join(&y, x.shape().rank())?))
    }

    /// Projects `memory` to keys and values.
    #[track_caller]
    fn project_memory(&self, memory: Var<'_, T>) -> Result<AttentionCache<T>, TapeError> {
        let [keys, values] = [self.projected(memory, 1, 1)?, self.projected(memory, 2, 1)?];
        Ok(AttentionCache { keys_values: Some([self.split(&keys.try_value()?)?, self.split(&values.try_value()?)?]) })
    }

    /// Computes attention to a memory; see [`try_attend_cached`](Self::try_attend_cached).
    #[track_caller]
    fn attend_memory<'t>(
        &self,
        query: Var<'t, T>,
        memory: &AttentionCache<T>,
        is_padding: Option<&Tensor<bool>>,
    ) -> Result<Var<'t, T>, TapeError> {
        let q = self.split(&self.projected(query, 0, 1)?.try_value()?)?;
        let Some([keys, values]) = &memory.keys_values else {
            let message = "the memory is empty: fill it by `memory` before `attend_cached`".to_owned();
            return Err(refused("attend_cached", message));
        };
        let keep = is_padding.map(|is_padding| not_padding(is_padding, q.shape()[0], keys.shape()[2])).transpose()?;
        let mask = keep.as_ref().map_or(AttentionMask::None, AttentionMask::Keep);
        let y = q.try_scaled_dot_product_attention(keys, values, mask, None)?;
        self.output(query.tape().constant(&self.join(&y, query.shape().rank())?))
    }
}
