//! Rotary positions: queries and keys are rotated by angles that grow with their position (Su et al. 2021, "RoFormer", 3.2).

use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, TensorLike, Views as _, try_cat};
use wengert_tensor::{Error as TensorError, Float, Scalar as _, Site, Tensor};

use crate::layers::embedding::positions::angular_frequency;

/// The rule that divides the elements of a vector into pairs, which are rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RotaryPairs {
    /// Elements 2i and 2i + 1 of a vector form pair i, as in the paper "RoFormer".
    #[default]
    Interleaved,
    /// Elements i and d/2 + i of a vector of d elements form pair i, as in GPT-NeoX and Llama.
    Halves,
}

/// Encodes positions in `x`, the queries or keys `[…, t, d]` at t positions with d elements. The pair i of elements at position p is
/// rotated by the angle p / 10000^(2i / d). The product of a query and a key then depends on their positions only through the difference of both
/// positions.
///
/// The first vector is at position `offset`. In decoding, `offset` is the number of earlier positions. The function takes tensors and variables.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{RotaryPairs, rotary};
///
/// let x = Tensor::from([[1.0, 0.0], [1.0, 0.0]]);
/// let y = rotary(&x, 5, RotaryPairs::Interleaved);
/// assert_eq!(y.to_vec(), [5f64.cos(), 5f64.sin(), 6f64.cos(), 6f64.sin()]);
/// ```
///
/// # Errors
///
/// If `x` has fewer than two dimensions, its last size is odd, or there is not enough memory.
#[twins]
pub fn try_rotary<A: TensorLike<Elem: Float>>(x: &A, offset: usize, pairs: RotaryPairs) -> Result<A, A::Error> {
    let (shape, at) = (x.shape(), Site::here("rotary"));
    let (length, width) = match shape[..] {
        [.., length, width] if width.is_multiple_of(2) => (length, width),
        _ => {
            let message = format!("rotary expects […, t, d] with an even d, but got {shape}");
            return Err(TensorError::Argument { message, at }.into());
        }
    };
    let half = width / 2;
    // Positions above `usize::MAX` are replaced by `usize::MAX`, so that the sum does not overflow. In f64, neighbouring positions of this size are
    // the same number anyway.
    let angle = |index: &[usize]| offset.saturating_add(index[0]) as f64 * angular_frequency(index[1], width);
    let angles = Tensor::<f64>::try_from_fn([length, half], angle)?;
    let table = |of: fn(f64) -> f64, columns: &[usize]| {
        let mut angles = angles.iter();
        Tensor::try_from_fn(columns, |_| A::Elem::from_f64(of(angles.next().unwrap_or_default())))
    };
    let columns: &[usize] = match pairs {
        RotaryPairs::Interleaved => &[length, half, 1],
        RotaryPairs::Halves => &[length, half],
    };
    let cos = x.try_constant(&table(libm::cos, columns)?)?;
    let sin = x.try_constant(&table(libm::sin, columns)?)?;
    // The first elements of all pairs are one slice of the last dimension, and the second elements are another slice.
    let last = -1;
    let (pairs, size) = match pairs {
        RotaryPairs::Interleaved => (x.try_unflatten(last, [half, 2])?, 1),
        RotaryPairs::Halves => (x.clone(), half as isize),
    };
    let (a, b) = (pairs.try_narrow(last, 0, size)?, pairs.try_narrow(last, size, size)?);
    let rotated = [a.try_mul(&cos)?.try_sub(&b.try_mul(&sin)?)?, a.try_mul(&sin)?.try_add(&b.try_mul(&cos)?)?];
    try_cat(&rotated, last)?.try_reshape(&shape)
}
