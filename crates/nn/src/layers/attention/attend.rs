//! The forward passes of attention over whole sequences.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::{Attention as _, Products as _};

use crate::Result;
use crate::layers::attention::masks::{AttentionMasks, Merged};
use crate::layers::attention::multihead::MultiheadAttention;
use crate::layers::forward::{in_layer, output_of};
use crate::layers::layer::Layer;
use crate::layers::regularization::dropout;

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
}
