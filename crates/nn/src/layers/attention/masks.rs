//! Attention masks, which say which keys a query may attend to.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::ops::{AttentionMask, Comparison as _, TensorLike, Views as _, try_where_};
use wengert_tensor::{Error as TensorError, Float, Site, Tensor};

/// The masks of one call of attention: they say which keys each query may attend to. By default all keys are visible.
#[derive(Clone, Debug)]
pub struct AttentionMasks<'m, 't, T: Float = f32> {
    mask: AttentionMask<'m, Var<'t, T>>,
    key_padding: Option<&'m Tensor<bool>>,
}

impl<'m, 't, T: Float> AttentionMasks<'m, 't, T> {
    /// Returns masks that hide no key.
    pub fn new() -> Self {
        AttentionMasks { mask: AttentionMask::None, key_padding: None }
    }

    /// Returns masks that hide from each query the keys after the query's own position. PyTorch: `is_causal=True` with a causal `attn_mask`.
    pub fn causal() -> Self {
        AttentionMasks::new().mask(AttentionMask::Causal)
    }

    /// Sets the mask of l queries and s keys, `[l, s]`. A tensor `[n, l, s]` has one mask for each of n examples. A tensor `[n · heads, l, s]` has
    /// one mask for each head of each example. A tensor with one mask for each head has four dimensions, `[1, heads, l, s]`. Any other shape of one,
    /// two or four dimensions that broadcasts to `[n, heads, l, s]` is allowed too. In three dimensions, each size may also be 1.
    ///
    /// With [`AttentionMask::Keep`], a key is visible where the mask is true. PyTorch's boolean `attn_mask` is the
    /// opposite: true hides a key.
    #[must_use]
    pub fn mask(self, mask: AttentionMask<'m, Var<'t, T>>) -> Self {
        AttentionMasks { mask, ..self }
    }

    /// Hides the keys where `is_padding` is true. `is_padding` has the shape `[n, s]` for n examples and s keys, or `[s]` without a batch.
    /// PyTorch: `key_padding_mask`.
    #[must_use]
    pub fn key_padding_mask(self, is_padding: &'m Tensor<bool>) -> Self {
        AttentionMasks { key_padding: Some(is_padding), ..self }
    }
}

impl<T: Float> Default for AttentionMasks<'_, '_, T> {
    fn default() -> Self {
        AttentionMasks::new()
    }
}

/// All masks of one call of attention, combined into one mask that broadcasts to `[n, heads, l, s]`, for n examples, l queries and s keys.
pub(super) enum CombinedMask<'t, T: Float> {
    None,
    Causal,
    Keep(Tensor<bool>),
    Add(Var<'t, T>),
}

impl<'t, T: Float> CombinedMask<'t, T> {
    /// Returns the combined masks of a call. `sizes` are the numbers of examples, heads, queries and keys, `[n, heads, l, s]`.
    #[track_caller]
    pub(super) fn new(masks: &AttentionMasks<'_, 't, T>, sizes: [usize; 4]) -> Result<Self, TapeError> {
        let [n, _, l, s] = sizes;
        let visible = masks.key_padding.map(|is_padding| visible_keys(is_padding, n, s)).transpose()?;
        Ok(match (&masks.mask, visible) {
            (AttentionMask::None, None) => CombinedMask::None,
            (AttentionMask::None, Some(visible)) => CombinedMask::Keep(visible),
            (AttentionMask::Causal, None) => CombinedMask::Causal,
            (AttentionMask::Causal, Some(visible)) => {
                CombinedMask::Keep(causal_mask([l, s], 0)?.try_logical_and(&visible)?)
            }
            (AttentionMask::Keep(keep), visible) => {
                let keep = broadcast_over_heads(*keep, sizes)?;
                CombinedMask::Keep(if let Some(visible) = visible { keep.try_logical_and(&visible)? } else { keep })
            }
            (AttentionMask::Add(bias), visible) => {
                let bias = broadcast_over_heads(*bias, sizes)?;
                CombinedMask::Add(match visible {
                    Some(visible) => {
                        try_where_(&bias.constant_mask(&visible, Site::here("attend"))?, &bias, f64::NEG_INFINITY)?
                    }
                    None => bias,
                })
            }
        })
    }

    /// Returns a reference to the combined mask, in the type that the attention operations take.
    pub(super) fn as_attention_mask(&self) -> AttentionMask<'_, Var<'t, T>> {
        match self {
            CombinedMask::None => AttentionMask::None,
            CombinedMask::Causal => AttentionMask::Causal,
            CombinedMask::Keep(keep) => AttentionMask::Keep(keep),
            CombinedMask::Add(bias) => AttentionMask::Add(bias),
        }
    }
}

/// Returns a mask of the given numbers of queries and keys that is true where a query may attend to a key. The position of the first query is
/// `start`, and a query attends to the keys up to its own position.
#[track_caller]
pub(super) fn causal_mask([queries, keys]: [usize; 2], start: usize) -> Result<Tensor<bool>, TapeError> {
    Ok(Tensor::try_from_fn([queries, keys], |index| index[1] <= start + index[0])?)
}

/// Returns a mask `[n, 1, 1, s]` for n examples and s keys that is true for the keys that are not padding. Returns an
/// error if `is_padding` does not have the shape `[n, s]`, or `[s]` for a single example.
#[track_caller]
pub(super) fn visible_keys(is_padding: &Tensor<bool>, n: usize, s: usize) -> Result<Tensor<bool>, TapeError> {
    let shape = is_padding.shape();
    if shape != &[n, s] && (n, shape.sizes()) != (1, &[s]) {
        let message = format!("Expected key_padding_mask of shape [{n}, {s}], but got {shape}");
        return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
    }
    Ok(is_padding.try_logical_not()?.try_reshape([n, 1, 1, s])?)
}

/// Inserts the dimension of the heads into a mask `[n, l, s]`, `[1, l, s]` or `[n · heads, l, s]`. There are n examples, l queries and s
/// keys. Returns a mask of another rank unchanged.
///
/// # Errors
///
/// If a mask of three dimensions has a first size other than 1, n and n · heads, for example the number of heads.
#[track_caller]
fn broadcast_over_heads<A: TensorLike>(mask: &A, [n, heads, l, s]: [usize; 4]) -> Result<A, A::Error> {
    let shape = mask.shape();
    match *shape {
        [examples, _, _] if examples == n || examples == 1 => mask.try_unsqueeze(1),
        [all, queries, keys] if all == n * heads => mask.try_reshape([n, heads, queries, keys]),
        [_, _, _] => {
            let message = format!(
                "The shape of the 3D attn_mask is {shape}, but should be [{n}, {l}, {s}] or [{}, {l}, {s}]; a mask for each head has \
                 the shape [1, {heads}, {l}, {s}]",
                n * heads
            );
            Err(TensorError::Argument { message, at: Site::here("attend") }.into())
        }
        _ => Ok(mask.clone()),
    }
}
