//! The forward passes of an attention layer over whole sequences.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::{Attention as _, Products as _};

use crate::Result;
use crate::layers::attention::masks::{AttentionMasks, CombinedMask};
use crate::layers::attention::multihead::MultiheadAttention;
use crate::layers::forward::{add_layer_context, output_of};
use crate::layers::layer::Layer;
use crate::layers::regularization::dropout;

/// Computes self-attention without masks: each position of the input attends to all positions of the input.
impl<T: Float> Layer<T> for MultiheadAttention<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_self_attend(x, AttentionMasks::new())
    }
}

#[twins]
impl<T: Float> MultiheadAttention<T> {
    /// Computes self-attention: each position of `x` attends to the positions that `masks` allow. A single matrix product computes the queries,
    /// keys and values of all positions.
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes. Also if the layer's keys or values have another number of features than its
    /// queries.
    pub fn try_self_attend<'t>(&self, x: Var<'t, T>, masks: AttentionMasks<'_, 't, T>) -> Result<Var<'t, T>> {
        Ok(self.try_self_attend_with_weights(x, masks)?.0)
    }

    /// Returns the output of [`try_self_attend`](Self::try_self_attend) and the attention weights. The weights have the shape `[n, heads,
    /// l, s]`, for n examples, l queries and s keys. Weights that dropout dropped are 0. PyTorch returns the mean over the heads,
    /// `weights.mean(1)`.
    ///
    /// # Errors
    ///
    /// As for [`try_self_attend`](Self::try_self_attend).
    pub fn try_self_attend_with_weights<'t>(
        &self,
        x: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>)> {
        let result = self.self_attention_heads(x);
        let heads = add_layer_context(result, self.out_proj.weight.created_at(), || self.describe(&[x]))?;
        output_of(self, self.attend_heads(x, heads, masks), self.out_proj.weight.created_at(), || self.describe(&[x]))
    }

    /// Computes attention: each position of `query` attends to the positions of `key` that `masks` allow. Each head returns a weighted mean
    /// of the projected `value` at these positions, and the output layer combines the heads. `key` and `value` have the same length. If the
    /// masks hide all keys from a query, all heads return 0 for this query (in PyTorch NaN).
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_attend<'t>(
        &self,
        query: Var<'t, T>,
        key: Var<'t, T>,
        value: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        Ok(self.try_attend_with_weights(query, key, value, masks)?.0)
    }

    /// Returns the output of [`try_attend`](Self::try_attend) and the attention weights. The weights have the shape `[n, heads, l, s]`, for
    /// n examples, l queries and s keys. Weights that dropout dropped are 0. PyTorch returns the mean over the heads, `weights.mean(1)`.
    ///
    /// # Errors
    ///
    /// As for [`try_attend`](Self::try_attend).
    pub fn try_attend_with_weights<'t>(
        &self,
        query: Var<'t, T>,
        key: Var<'t, T>,
        value: Var<'t, T>,
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>)> {
        let created_at = self.out_proj.weight.created_at();
        let heads = add_layer_context(self.attention_heads([query, key, value]), created_at, || {
            self.describe(&[query, key, value])
        })?;
        output_of(self, self.attend_heads(query, heads, masks), created_at, || self.describe(&[query, key, value]))
    }

    /// Computes the attention of all heads from the queries `q`, keys `k` and values `v`, and joins the results. Returns the layer's output and
    /// the attention weights.
    #[track_caller]
    fn attend_heads<'t>(
        &self,
        query: Var<'t, T>,
        [q, k, v]: [Var<'t, T>; 3],
        masks: AttentionMasks<'_, 't, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>), TapeError> {
        let rank = query.shape().rank();
        let sizes = [q.shape()[0], self.num_heads, q.shape()[2], k.shape()[2]];
        let mask = CombinedMask::new(&masks, sizes)?;
        let weights = dropout(q.try_attention_weights(&k, mask.as_attention_mask(), None)?, self.dropout)?;
        let y = self.join_heads(&weights.try_matmul(&v)?, rank)?;
        Ok((self.project_output(y)?, weights))
    }
}
