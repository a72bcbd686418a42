//! Which keys a query sees: the masks of a call of attention, and all of them as one.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::ops::{AttentionMask, Comparison as _, TensorLike, Views as _, try_where_};
use wengert_tensor::{Error as TensorError, Float, Site, Tensor};

/// Which keys the queries of one call see. All of them by default.
#[derive(Clone, Debug)]
pub struct AttentionMasks<'m, 't, T: Float = f32> {
    mask: AttentionMask<'m, Var<'t, T>>,
    key_padding: Option<&'m Tensor<bool>>,
}

impl<'m, 't, T: Float> AttentionMasks<'m, 't, T> {
    /// All keys are seen.
    pub fn new() -> Self {
        AttentionMasks { mask: AttentionMask::None, key_padding: None }
    }

    /// Keys up to the query's own position are seen. PyTorch: `is_causal=True`, with the mask that belongs to it.
    pub fn causal() -> Self {
        AttentionMasks::new().mask(AttentionMask::Causal)
    }

    /// Keys as `mask` says: `[l, s]`, for each example `[n, l, s]`, for each head `[n · heads, l, s]`, or what broadcasts to
    /// `[n, heads, l, s]`. Where [`AttentionMask::Keep`] holds a key is seen; PyTorch's boolean `attn_mask` is the opposite.
    #[must_use]
    pub fn mask(self, mask: AttentionMask<'m, Var<'t, T>>) -> Self {
        AttentionMasks { mask, ..self }
    }

    /// Keys are hidden where this holds: `[n, s]`, or `[s]` without a batch. PyTorch: `key_padding_mask`.
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

/// The masks of a call as one, which broadcasts to `[n, heads, l, s]`.
pub(super) enum Merged<'t, T: Float> {
    None,
    Causal,
    Keep(Tensor<bool>),
    Add(Var<'t, T>),
}

impl<'t, T: Float> Merged<'t, T> {
    #[track_caller]
    pub(super) fn of(masks: &AttentionMasks<'_, 't, T>, sizes: [usize; 4]) -> Result<Self, TapeError> {
        let [n, _, l, s] = sizes;
        let seen = masks.key_padding.map(|is_padding| seen(is_padding, n, s)).transpose()?;
        Ok(match (&masks.mask, seen) {
            (AttentionMask::None, None) => Merged::None,
            (AttentionMask::None, Some(seen)) => Merged::Keep(seen),
            (AttentionMask::Causal, None) => Merged::Causal,
            (AttentionMask::Causal, Some(seen)) => {
                let keep = (0..l).flat_map(|query| (0..s).map(move |key| key <= query)).collect();
                Merged::Keep(Tensor::try_from_vec(keep, [l, s])?.try_logical_and(&seen)?)
            }
            (AttentionMask::Keep(keep), seen) => {
                let keep = by_head(*keep, sizes)?;
                Merged::Keep(if let Some(seen) = seen { keep.try_logical_and(&seen)? } else { keep })
            }
            (AttentionMask::Add(bias), seen) => {
                let bias = by_head(*bias, sizes)?;
                Merged::Add(match seen {
                    Some(seen) => try_where_(&bias.mask(&seen), &bias, f64::NEG_INFINITY)?,
                    None => bias,
                })
            }
        })
    }

    pub(super) fn borrowed(&self) -> AttentionMask<'_, Var<'t, T>> {
        match self {
            Merged::None => AttentionMask::None,
            Merged::Causal => AttentionMask::Causal,
            Merged::Keep(keep) => AttentionMask::Keep(keep),
            Merged::Add(bias) => AttentionMask::Add(bias),
        }
    }
}

/// Where `is_padding` does not hold, `[n, 1, 1, s]`.
#[track_caller]
pub(super) fn seen(is_padding: &Tensor<bool>, n: usize, s: usize) -> Result<Tensor<bool>, TapeError> {
    let shape = is_padding.shape();
    if shape != &[n, s] && (n, shape.sizes()) != (1, &[s]) {
        let message = format!("Expected key_padding_mask of shape [{n}, {s}], but got {shape}");
        return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
    }
    Ok(is_padding.try_logical_not()?.try_reshape([n, 1, 1, s])?)
}

/// A mask with a dimension for the heads, if it has one for the examples.
#[track_caller]
fn by_head<A: TensorLike>(mask: &A, [n, heads, l, s]: [usize; 4]) -> Result<A, A::Error> {
    match *mask.shape() {
        [examples, _, _] if examples == n => mask.try_unsqueeze(1),
        [all, _, _] if all == n * heads => mask.try_reshape([n, heads, l, s]),
        _ => Ok(mask.clone()),
    }
}
