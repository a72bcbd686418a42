//! Attention (Vaswani et al. 2017, "Attention Is All You Need", 3.2.1).

use wengert_macros::twins;

use crate::ops::primitive::pair::broadcast_shape;
use crate::ops::shape::views::{squeeze, swap, unsqueeze};
use crate::ops::{ArrayOperand, Compose, Result, TensorLike, product};
use crate::thresholds::ops::{MAX_QUERY_BLOCKS, QUERY_UNIT, SCORES_PER_BLOCK};
use crate::{Compare, Float, Reduction, Scalar, Shape, Site, Tensor, Unary, ensure};

/// The keys that each query sees.
#[derive(Clone, Debug, Default)]
pub enum AttentionMask<'m, A> {
    /// All keys.
    #[default]
    None,
    /// The keys up to the query's own position. Keys and queries are both numbered from the first: the mask is a lower triangle aligned at
    /// the top left.
    Causal,
    /// The keys where the mask is true. Broadcasts with the scores, `[…, l, s]` for l queries and s keys.
    Keep(&'m Tensor<bool>),
    /// All keys, after this array is added to the scores; -∞ hides a key. Broadcasts with the scores, `[…, l, s]` for l queries and s keys.
    Add(&'m A),
}

/// Scaled dot-product attention.
#[twins(blanket)]
pub trait Attention: TensorLike<Elem: Float> {
    /// Returns softmax(q kᵀ · scale) v for queries `self` `[…, l, e]`, keys `[…, s, e]` and values `[…, s, ev]`. The batch dimensions
    /// broadcast. `scale` is 1/√e if not given. The weights of a query that sees no key are 0, with gradient 0, so its result is 0 for finite
    /// values. Refuses operands with fewer than two dimensions. NaN or ∞ in a value that a mask hides can make results NaN, because hidden
    /// values may be multiplied by 0. PyTorch: `nn.functional.scaled_dot_product_attention`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::AttentionMask;
    /// use wengert::prelude::*;
    ///
    /// let (q, k) = (Tensor::from([[0.0], [0.0]]), Tensor::from([[1.0], [2.0]]));
    /// let v = Tensor::from([[10.0], [20.0]]);
    /// let y = q.scaled_dot_product_attention(&k, &v, AttentionMask::Causal, None);
    /// assert_eq!(y.to_vec(), [10.0, 15.0]);
    /// ```
    fn try_scaled_dot_product_attention(
        &self,
        key: impl ArrayOperand<Self>,
        value: impl ArrayOperand<Self>,
        mask: AttentionMask<'_, Self>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let at = Site::here("scaled_dot_product_attention");
        attend(self, &key.into_array(self)?, &value.into_array(self)?, mask, scale, at)
    }

    /// Returns the weights softmax(q kᵀ · scale) of [`scaled_dot_product_attention`](Self::scaled_dot_product_attention),
    /// `[…, l, s]`: for inspection, or for dropout in training.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::AttentionMask;
    /// use wengert::prelude::*;
    ///
    /// let (q, k) = (Tensor::from([[0.0], [0.0]]), Tensor::from([[1.0], [2.0]]));
    /// let weights = q.attention_weights(&k, AttentionMask::Causal, None);
    /// assert_eq!(weights, Tensor::from([[1.0, 0.0], [0.5, 0.5]]));
    /// ```
    fn try_attention_weights(
        &self,
        key: impl ArrayOperand<Self>,
        mask: AttentionMask<'_, Self>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let (at, key) = (Site::here("attention_weights"), &key.into_array(self)?);
        refuse_vectors(&[(self, "query"), (key, "key")], at)?;
        attention_weights(self, key, mask, scale, 0, at)
    }

    /// Computes [`scaled_dot_product_attention`](Self::scaled_dot_product_attention) with fewer heads of keys and values than of queries.
    /// Queries `[…, h, l, e]` have h heads. Keys `[…, hk, s, e]` and values `[…, hk, s, ev]` have hk heads. Each head of keys and values
    /// serves `h / hk` consecutive heads of queries. Refuses an hk that does not divide h, and operands with fewer than three dimensions.
    /// PyTorch: `scaled_dot_product_attention` with `enable_gqa=True`.
    fn try_grouped_query_attention(
        &self,
        key: impl ArrayOperand<Self>,
        value: impl ArrayOperand<Self>,
        mask: AttentionMask<'_, Self>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let at = Site::here("grouped_query_attention");
        let shape = self.shape();
        ensure!(shape.rank() >= 3, at, "queries of shape {shape} have no heads");
        let heads = shape[shape.rank() - 3];
        let [key, value] = [key.into_array(self)?, value.into_array(self)?].map(|x| repeat_heads(&x, heads, at));
        attend(self, &key?, &value?, mask, scale, at)
    }
}

fn attend<A: TensorLike<Elem: Float>>(
    query: &A,
    key: &A,
    value: &A,
    mask: AttentionMask<'_, A>,
    scale: Option<f64>,
    at: Site,
) -> Result<A> {
    refuse_vectors(&[(query, "query"), (key, "key"), (value, "value")], at)?;
    if [query, key, value].iter().all(|x| x.shape().rank() == 3) {
        // The error messages of the checks name the dimensions of a batch. So three-dimensional arrays become a batch of one.
        let [query, key, value] = [query, key, value].map(|x| unsqueeze(x, 0, at));
        return squeeze(&attend(&query?, &key?, &value?, mask, scale, at)?, 0, at);
    }
    let (shape, of_keys, of_values) = (query.shape(), key.shape(), value.shape());
    let (axis, queries, keys) = (shape.rank() - 2, shape[shape.rank() - 2], of_keys[of_keys.rank() - 2]);
    let rows = if matches!(mask, AttentionMask::Causal) { causal_block(&shape, keys) } else { queries };
    // Several blocks of queries are computed only under a causal mask, and only if the shapes of queries, keys and values fit. Their batch
    // dimensions must also be equal. Other operands are computed, or refused, as one block.
    let equal = shape[..axis] == of_keys[..of_keys.rank() - 2]
        && of_keys[..of_keys.rank() - 1] == of_values[..of_values.rank() - 1]
        && shape[axis + 1] == of_keys[of_keys.rank() - 1];
    if rows >= queries || !equal {
        return product(&attention_weights(query, key, mask, scale, 0, at)?, value, at);
    }
    let mut parts = Vec::with_capacity(queries.div_ceil(rows));
    for first in (0..queries).step_by(rows) {
        let part = query.slice_axis(axis, first, rows.min(queries - first), at)?;
        // The causal mask hides all keys after the last query of the block, so the block does not read them.
        let visible = |x: &A| x.slice_axis(axis, 0, keys.min(first + rows), at);
        let (key, value) = (visible(key)?, visible(value)?);
        let weights = attention_weights(&part, &key, AttentionMask::Causal, scale, first, at)?;
        parts.push(product(&weights, &value, at)?);
    }
    A::apply_cat(&parts, axis, at)
}

/// Returns the number of queries per block under a causal mask, for queries of shape `shape`. A block skips the keys after its last query.
/// With as many keys as queries, skipping saves up to half of the scores.
fn causal_block(shape: &Shape, keys: usize) -> usize {
    let queries = shape[shape.rank() - 2];
    let scores = Shape::from(&shape[..shape.rank() - 1]).numel().saturating_mul(keys);
    let blocks = (scores / SCORES_PER_BLOCK).isqrt().clamp(1, MAX_QUERY_BLOCKS);
    queries.div_ceil(blocks).next_multiple_of(QUERY_UNIT)
}

fn refuse_vectors<A: TensorLike>(operands: &[(&A, &str)], at: Site) -> Result<(), A::Error> {
    for (x, name) in operands {
        ensure!(
            x.shape().rank() >= 2,
            at,
            "{}: Expected query, key, and value to all be at least 2 dimensional, but got {name} of shape {}",
            at.operation,
            x.shape()
        );
    }
    Ok(())
}

/// Returns the weight of each value for each query. For a causal mask, `first_query` is the position of the first of these queries in the
/// sequence.
fn attention_weights<A: TensorLike<Elem: Float>>(
    query: &A,
    key: &A,
    mask: AttentionMask<'_, A>,
    scale: Option<f64>,
    first_query: usize,
    at: Site,
) -> Result<A> {
    let width = query.shape()[query.shape().rank() - 1];
    let scale = scale.unwrap_or(1.0 / (width as f64).sqrt());
    let query = query.times(scale, at)?;
    let rank = key.shape().rank();
    let scores = product(&query, &swap(key, rank - 2, rank - 1, at)?, at)?;
    let scores = match mask {
        AttentionMask::None => scores,
        AttentionMask::Causal => {
            let shape = scores.shape();
            let (l, s) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
            let seen = Tensor::build(&[l, s].into(), at, |seen| {
                for (position, seen) in seen.iter_mut().enumerate() {
                    *seen = position % s <= first_query + position / s;
                }
            })?;
            mask_scores(&scores, &seen, at)?
        }
        AttentionMask::Keep(keep) => mask_scores(&scores, keep, at)?,
        AttentionMask::Add(bias) => scores.plus(bias, at)?,
    };
    softmax(&scores, at)
}

/// Returns the scores, with -∞ where `keep` is false.
fn mask_scores<A: TensorLike<Elem: Float>>(scores: &A, keep: &Tensor<bool>, at: Site) -> Result<A> {
    let shape = broadcast_shape(&scores.shape(), keep.shape(), at)?;
    scores.choose(&scores.expand_mask(keep, &shape, at)?, f64::NEG_INFINITY, at)
}

/// Returns the softmax along the last dimension, and 0 where all scores are -∞.
fn softmax<A: TensorLike<Elem: Float>>(scores: &A, at: Site) -> Result<A> {
    let shape = scores.shape();
    if shape.numel() == 0 {
        return Ok(scores.clone());
    }
    let axes = [shape.rank() - 1];
    let largest = scores.apply_detach(at)?.apply_reduce(Reduction::Amax, &axes, at)?;
    // A row whose scores are all -∞ is not shifted, because -∞ - (-∞) would be NaN. Its exponentials are 0.
    let shift = largest.choose(&largest.compare(Compare::Ne, f64::NEG_INFINITY, at)?, 0.0, at)?;
    let exponentials = scores.minus(&shift, at)?.apply_unary(Unary::Exp, at)?;
    let total = exponentials.sum_over(&axes, at)?;
    let total = total.choose(&total.compare(Compare::Ne, 0.0, at)?, crate::ops::Argument::Number(A::Elem::ONE), at)?;
    exponentials.divide_by(&total, at)?.as_softmax(scores, axes[0], false, at)
}

/// Repeats each head of `[…, hk, s, e]`, which has hk heads, so that the result has `heads` heads.
fn repeat_heads<A: TensorLike>(x: &A, heads: usize, at: Site) -> Result<A> {
    let shape = x.shape();
    ensure!(shape.rank() >= 3, at, "keys and values of shape {shape} have no heads");
    let axis = shape.rank() - 3;
    let own = shape[axis];
    ensure!(
        own > 0 && heads.is_multiple_of(own),
        at,
        "Number of heads in key and value must divide the number of heads in query, but got {own} and {heads}"
    );
    let repeated = shape.replaced(axis..axis + 1, &[own, heads / own]);
    unsqueeze(x, axis + 1, at)?.expand_to(&repeated, at)?.reshape_to(shape.with_size(axis, heads), at)
}

#[cfg(test)]
mod tests {
    use crate::ops::network::attention::{Attention, AttentionMask};
    use crate::prelude::*;

    #[test]
    fn a_query_that_sees_nothing_gives_zero() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let keep = Tensor::from([[false, false], [true, false]]);
        let y = x.scaled_dot_product_attention(&x, &x, AttentionMask::Keep(&keep), None);
        assert_eq!(y, Tensor::from([[0.0, 0.0], [1.0, 2.0]]));
        let bias = Tensor::from([[f64::NEG_INFINITY], [0.0]]);
        let y = x.scaled_dot_product_attention(&x, Tensor::ones([2, 2]), AttentionMask::Add(&bias), Some(0.0));
        assert_eq!(y, Tensor::from([[0.0, 0.0], [1.0, 1.0]]));
        let y = x.scaled_dot_product_attention(&x, &(&x / 0.0), AttentionMask::Causal, None);
        assert!(y.select(0, 0).isnan().all(..).item());
    }

    /// All shapes have two blocks of queries. There are as many keys as queries, or fewer, or more.
    #[test]
    fn causal_blocks_equal_the_mask() {
        for (shape, keys) in
            [(vec![300, 4], 300), (vec![2, 2, 130, 3], 130), (vec![3, 700, 3], 70), (vec![150, 3], 600)]
        {
            let sizes = |count: usize| {
                let mut sizes = shape.clone();
                sizes[shape.len() - 2] = count;
                sizes
            };
            let wave = |count: usize, seed: f64| {
                let mut number = seed;
                Tensor::from_fn(sizes(count), |_| {
                    number += 0.7;
                    number.sin()
                })
            };
            let queries = shape[shape.len() - 2];
            let (q, k, v) = (wave(queries, 0.1), wave(keys, 0.2), wave(keys, 0.3));
            let keep = Tensor::from_fn([queries, keys], |at| at[1] <= at[0]);
            let got = q.scaled_dot_product_attention(&k, &v, AttentionMask::Causal, None);
            let want = q.scaled_dot_product_attention(&k, &v, AttentionMask::Keep(&keep), None);
            assert!((got - want).abs().amax(..).item() < 1e-14, "{shape:?} {keys}");
        }
        let (q, k) = (Tensor::<f64>::zeros([300, 4]), Tensor::<f64>::zeros([300, 5]));
        let error = q.try_scaled_dot_product_attention(&k, &k, AttentionMask::Causal, None).unwrap_err();
        assert!(error.sentence().contains("300"), "{error}");
    }

    #[test]
    fn infinite_scores_give_nan() {
        let (q, k) = (Tensor::from([[1.0]]), Tensor::from([[f64::INFINITY], [0.0]]));
        let y = q.scaled_dot_product_attention(&k, Tensor::ones([2, 1]), AttentionMask::None, None);
        assert!(y.item().is_nan());
    }

    #[test]
    fn a_head_of_keys_serves_consecutive_heads() {
        let (q, k) = (Tensor::<f64>::zeros([4, 1, 1]), Tensor::<f64>::zeros([2, 1, 1]));
        let v = Tensor::from([[[1.0]], [[2.0]]]);
        let y = q.grouped_query_attention(&k, &v, AttentionMask::None, None);
        assert_eq!(y.to_vec(), [1.0, 1.0, 2.0, 2.0]);
        assert!(q.narrow(0, 0, 3).try_grouped_query_attention(&k, &v, AttentionMask::None, None).is_err());
    }

    /// The product of the first sizes overflows before it is multiplied by the size 0. The function must not panic.
    #[test]
    fn causal_attention_over_nothing_of_huge_sizes() {
        let x = Tensor::<f64>::zeros([0, 4]).expand([1usize << 40, 1 << 40, 0, 4]);
        let y = x.try_scaled_dot_product_attention(&x, &x, AttentionMask::Causal, None);
        assert!(y.is_err() || y.is_ok_and(|y| y.numel() == 0));
    }
}
