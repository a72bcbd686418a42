//! Attention (Vaswani et al. 2017, "Attention Is All You Need", 3.2.1).

use wengert_macros::twins;

use crate::ops::compose::{Compose, join};
use crate::ops::linalg::products::product;
use crate::ops::{ArrayOperand, TensorLike};
use crate::{Axes, Compare, Error, Float, Reduction, Scalar, Shape, Site, Tensor, Unary, View};

/// Which keys a query sees.
#[derive(Clone, Debug, Default)]
pub enum AttentionMask<'m, A> {
    /// All of them.
    #[default]
    None,
    /// Those up to its own position, counted from the first: a lower triangle aligned at the top left.
    Causal,
    /// Those where it holds; broadcasts to `[…, l, s]`.
    Keep(&'m Tensor<bool>),
    /// All, with this added to their scores; broadcasts to `[…, l, s]`. -∞ hides a key.
    Add(&'m A),
}

/// Attention.
///
/// ```
/// use wengert_tensor::prelude::*;
/// use wengert_tensor::ops::AttentionMask;
///
/// let generator = &mut Generator::new(0);
/// let [query, key, value] = [(); 3].map(|()| Tensor::<f32>::randn([2, 4, 10, 8], generator)); // [batch, heads, time, width]
/// let y = query.scaled_dot_product_attention(&key, &value, AttentionMask::Causal, None);
/// assert_eq!(y.shape(), &[2, 4, 10, 8]);
/// // The first place sees itself only.
/// assert!((y.select(2, 0) - value.select(2, 0)).abs().amax(..).item() < 1e-6);
/// ```
#[twins]
pub trait Attention: TensorLike<Elem: Float> {
    /// softmax(q kᵀ · scale) v of queries `[…, l, e]` (`self`), keys `[…, s, e]` and values `[…, s, ev]`, whose batch
    /// dimensions broadcast; `scale` is 1/√e where not given. A query that sees no key gives 0, with gradient 0. PyTorch:
    /// `nn.functional.scaled_dot_product_attention`.
    ///
    /// ```
    /// use wengert_tensor::ops::{Attention, AttentionMask};
    /// use wengert_tensor::prelude::*;
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
    ) -> Result<Self, Self::Error> {
        let (key, value) = (&key.into_array(self), &value.into_array(self));
        attend(self, key, value, mask, scale, Site::here("scaled_dot_product_attention"))
    }

    /// The weights by which [`scaled_dot_product_attention`](Self::scaled_dot_product_attention) adds up the values:
    /// softmax(q kᵀ · scale), `[…, l, s]`. To look at them, or to drop some of them in training.
    ///
    /// ```
    /// use wengert_tensor::ops::{Attention, AttentionMask};
    /// use wengert_tensor::prelude::*;
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
    ) -> Result<Self, Self::Error> {
        let (at, key) = (Site::here("attention_weights"), &key.into_array(self));
        refuse_vectors(&[(self, "query"), (key, "key")], at)?;
        looked_up(self, key, mask, scale, 0, at)
    }

    /// [`scaled_dot_product_attention`](Self::scaled_dot_product_attention) with fewer heads of keys and values than of queries: head `i` of `[…, hk, s, e]` serves `h / hk` heads of
    /// `[…, h, l, e]`. PyTorch: `scaled_dot_product_attention` with `enable_gqa=True`.
    fn try_grouped_query_attention(
        &self,
        key: impl ArrayOperand<Self>,
        value: impl ArrayOperand<Self>,
        mask: AttentionMask<'_, Self>,
        scale: Option<f64>,
    ) -> Result<Self, Self::Error> {
        let (key, value) = (&key.into_array(self), &value.into_array(self));
        let at = Site::here("grouped_query_attention");
        let shape = self.shape();
        let Some(heads) = shape.rank().checked_sub(3).map(|axis| shape[axis]) else {
            return Err(Error::argument(at, format_args!("queries of shape {shape} have no heads")).into());
        };
        attend(self, &shared(key, heads, at)?, &shared(value, heads, at)?, mask, scale, at)
    }
}

impl<A: TensorLike<Elem: Float>> Attention for A {}

/// Queries under a causal mask are computed in blocks of multiples of so many, at most [`MOST_BLOCKS`].
const QUERIES: usize = 32;
const MOST_BLOCKS: usize = 8;

/// Of `n²` times so many scores, `n` blocks are fastest.
const SCORES: usize = 1 << 14;

fn attend<A: TensorLike<Elem: Float>>(
    query: &A,
    key: &A,
    value: &A,
    mask: AttentionMask<'_, A>,
    scale: Option<f64>,
    at: Site,
) -> Result<A, A::Error> {
    refuse_vectors(&[(query, "query"), (key, "key"), (value, "value")], at)?;
    if [query, key, value].iter().all(|x| x.shape().rank() == 3) {
        // Heads without a batch: errors name the dimensions of what has one.
        let [query, key, value] = [batched(query, at)?, batched(key, at)?, batched(value, at)?];
        let z = attend(&query, &key, &value, mask, scale, at)?;
        let shape = Shape::from(&z.shape()[1..]);
        return z.reshaped(shape, at);
    }
    let (shape, of_keys, of_values) = (query.shape(), key.shape(), value.shape());
    let (axis, queries, keys) = (shape.rank() - 2, shape[shape.rank() - 2], of_keys[of_keys.rank() - 2]);
    let rows = if matches!(mask, AttentionMask::Causal) { rows_of_causal(&shape, keys) } else { queries };
    // Others broadcast, or are refused.
    let alike = shape[..axis] == of_keys[..of_keys.rank() - 2]
        && of_keys[..of_keys.rank() - 1] == of_values[..of_values.rank() - 1]
        && shape[axis + 1] == of_keys[of_keys.rank() - 1];
    if rows >= queries || !alike {
        return product(&looked_up(query, key, mask, scale, 0, at)?, value, at);
    }
    let mut parts = Vec::with_capacity(queries.div_ceil(rows));
    for first in (0..queries).step_by(rows) {
        let part = query.sliced(axis, first, rows.min(queries - first), at)?;
        let seen = |x: &A| x.sliced(axis, 0, keys.min(first + rows), at);
        let (key, value) = (seen(key)?, seen(value)?);
        parts.push(product(&looked_up(&part, &key, AttentionMask::Causal, scale, first, at)?, &value, at)?);
    }
    A::apply_cat(&parts, axis, at)
}

/// Queries, of `shape`, that a causal mask lets be computed together: the keys after the last of them are not looked at, which
/// saves up to half of the scores. So many that the scores of a block are worth its steps.
fn rows_of_causal(shape: &Shape, keys: usize) -> usize {
    let queries = shape[shape.rank() - 2];
    let scores = shape[..shape.rank() - 1].iter().product::<usize>().saturating_mul(keys);
    let blocks = (scores / SCORES).isqrt().clamp(1, MOST_BLOCKS);
    queries.div_ceil(blocks).next_multiple_of(QUERIES)
}

fn refuse_vectors<A: TensorLike>(operands: &[(&A, &str)], at: Site) -> Result<(), A::Error> {
    for (x, name) in operands {
        if x.shape().rank() < 2 {
            let message = format!(
                "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got \
                 {name} of shape {}",
                x.shape()
            );
            return Err(Error::argument(at, message).into());
        }
    }
    Ok(())
}

/// How much of each value each query gets. The first query is number `first` of those that a causal mask counts.
fn looked_up<A: TensorLike<Elem: Float>>(
    query: &A,
    key: &A,
    mask: AttentionMask<'_, A>,
    scale: Option<f64>,
    first: usize,
    at: Site,
) -> Result<A, A::Error> {
    let width = query.shape()[query.shape().rank() - 1];
    let scale = scale.unwrap_or(1.0 / (width as f64).sqrt());
    let query = query.times(scale, at)?;
    let scores = product(&query, &swapped(key, at)?, at)?;
    let scores = match mask {
        AttentionMask::None => scores,
        AttentionMask::Causal => {
            let shape = scores.shape();
            let (l, s) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
            let seen = Tensor::build(&[l, s].into(), at, |seen| {
                for (position, seen) in seen.iter_mut().enumerate() {
                    *seen = position % s <= first + position / s;
                }
            })?;
            hidden(&scores, &seen, at)?
        }
        AttentionMask::Keep(keep) => hidden(&scores, keep, at)?,
        AttentionMask::Add(bias) => scores.plus(bias, at)?,
    };
    weights(&scores, at)
}

fn batched<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let mut shape = x.shape();
    shape.insert(0, 1);
    x.reshaped(shape, at)
}

/// -∞ where `keep` does not hold.
fn hidden<A: TensorLike<Elem: Float>>(scores: &A, keep: &Tensor<bool>, at: Site) -> Result<A, A::Error> {
    let shape = join(&scores.shape(), keep.shape(), at)?;
    scores.chosen(&scores.mask_over(keep, &shape, at)?, f64::NEG_INFINITY, at)
}

/// The softmax along the last dimension, but 0 where all scores are -∞.
fn weights<A: TensorLike<Elem: Float>>(scores: &A, at: Site) -> Result<A, A::Error> {
    let shape = scores.shape();
    if shape.numel() == 0 {
        return Ok(scores.clone());
    }
    let axes = [shape.rank() - 1];
    let largest = scores.apply_detach(at)?.apply_reduce(Reduction::Amax, &axes, at)?;
    // Where all scores are -∞ nothing is subtracted: their exponentials are 0 already.
    let shift = largest.chosen(&largest.compared(Compare::Ne, f64::NEG_INFINITY, at)?, 0.0, at)?;
    let exponentials = scores.minus(&shift, at)?.mapped(Unary::Exp, at)?;
    let total = exponentials.summed(&axes, at)?;
    let total = total.chosen(&total.compared(Compare::Ne, 0.0, at)?, crate::ops::Argument::Number(A::Elem::ONE), at)?;
    exponentials.divided(&total, at)?.as_softmax(scores, axes[0], false, at)
}

fn swapped<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let rank = x.shape().rank();
    let mut order: Axes = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    x.apply_view(View::Permute(order), at)
}

/// Each head of `[…, hk, s, e]` repeated, so that there are `heads`.
fn shared<A: TensorLike>(x: &A, heads: usize, at: Site) -> Result<A, A::Error> {
    let shape = x.shape();
    let Some(axis) = shape.rank().checked_sub(3) else {
        return Err(Error::argument(at, format_args!("keys and values of shape {shape} have no heads")).into());
    };
    if shape[axis] == 0 || !heads.is_multiple_of(shape[axis]) {
        let message = format!(
            "Number of heads in key and value must divide the number of heads in query, but got {} and {heads}",
            shape[axis]
        );
        return Err(Error::argument(at, message).into());
    }
    let mut apart: Shape = shape.clone();
    apart.insert(axis + 1, 1);
    let mut wide = apart.clone();
    wide[axis + 1] = heads / shape[axis];
    let mut joined = shape;
    joined[axis] = heads;
    x.reshaped(apart, at)?.over(&wide, at)?.reshaped(joined, at)
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
    }

    /// In blocks, of which the last is smaller; with fewer keys than queries, and with more.
    #[test]
    fn causal_blocks_are_as_the_mask() {
        for (shape, keys) in
            [(vec![300, 4], 300), (vec![2, 2, 130, 3], 130), (vec![3, 150, 3], 70), (vec![150, 3], 400)]
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
    fn infinite_scores_are_not_hidden() {
        let (q, k) = (Tensor::from([[1.0]]), Tensor::from([[f64::INFINITY], [0.0]]));
        let y = q.scaled_dot_product_attention(&k, Tensor::ones([2, 1]), AttentionMask::None, None);
        assert!(y.item().is_nan());
    }

    #[test]
    fn heads_are_shared_in_runs() {
        let (q, k) = (Tensor::<f64>::zeros([4, 1, 1]), Tensor::<f64>::zeros([2, 1, 1]));
        let v = Tensor::from([[[1.0]], [[2.0]]]);
        let y = q.grouped_query_attention(&k, &v, AttentionMask::None, None);
        assert_eq!(y.to_vec(), [1.0, 1.0, 2.0, 2.0]);
        assert!(q.narrow(0, 0, 3).try_grouped_query_attention(&k, &v, AttentionMask::None, None).is_err());
    }
}
