//! Padding along dimensions: what lies beyond the border, and how much of it.
//!
//! A padded tensor is pieces of the old one, joined: flipped ones to reflect, expanded ones to replicate. The derivative
//! follows: what was read twice adds up.

use wengert_macros::twins;

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::{Error, Scalar, Site, View};

/// What lies beyond the border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// One number.
    Constant(f64),
    /// The tensor mirrored at its border element, which is not repeated.
    Reflect,
    /// The border element.
    Replicate,
    /// The other end of the tensor.
    Circular,
}

/// Padding.
///
/// ```
/// use wengert_tensor::prelude::*;
/// use wengert_tensor::ops::PadMode;
///
/// let x = Tensor::from([1.0, 2.0, 3.0]);
/// assert_eq!(x.pad(&[1, 2], PadMode::Constant(0.0)).to_vec(), [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
/// let row = x.unsqueeze(0);
/// assert_eq!(row.pad(&[1, 1], PadMode::Reflect).to_vec(), [2.0, 1.0, 2.0, 3.0, 2.0]);
/// ```
#[twins]
pub trait Padding: TensorLike {
    /// Padded by `sizes`, two numbers per dimension beginning with the last one: `[left, right, top, bottom]` for
    /// `[…, h, w]`. A negative size crops. Other modes than a constant pad dimensions after the first one or two, as many
    /// as PyTorch allows: `[n, c, w]`, `[n, c, h, w]`, `[n, c, d, h, w]`, with or without `n`. PyTorch:
    /// `nn.functional.pad`.
    ///
    /// ```
    /// use wengert_tensor::ops::PadMode;
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0]]);
    /// assert_eq!(x.pad(&[1, -1], PadMode::Constant(0.0)), Tensor::from([[0.0, 1.0, 2.0]]));
    /// assert_eq!(x.pad(&[2, 1], PadMode::Reflect), Tensor::from([[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// Where `sizes` are odd in number or too many, crop more than there is, reflect as much as the size or more, or wrap
    /// around more than once.
    fn try_pad(&self, sizes: &[isize], mode: PadMode) -> Result<Self, Self::Error> {
        padded(self, sizes, mode, Site::here("pad"))
    }
}

impl<A: TensorLike> Padding for A {}

/// [`Padding::try_pad`] for the operation at `at`.
pub(crate) fn padded<A: TensorLike>(x: &A, sizes: &[isize], mode: PadMode, at: Site) -> Result<A, A::Error> {
    let shape = x.shape();
    let rank = shape.rank();
    let refuse = |message: String| Err(A::Error::from(Error::argument(at, message)));
    if !sizes.len().is_multiple_of(2) {
        return refuse("Padding length must be divisible by 2".into());
    }
    if sizes.len() > 2 * rank {
        return refuse(format!(
            "Padding length should be less than or equal to two times the input dimension but got padding length {} \
             and input of dimension {rank}",
            sizes.len()
        ));
    }
    let padded = sizes.len() / 2;
    let constant = matches!(mode, PadMode::Constant(_));
    let fits = (1..=3).contains(&padded) && (padded + 1..=padded + 2).contains(&rank);
    if !(constant || fits) {
        return refuse("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now".into());
    }
    let sides: Vec<(usize, isize, isize)> =
        sizes.chunks(2).enumerate().map(|(k, pair)| (rank - 1 - k, pair[0], pair[1])).collect();
    for &(axis, left, right) in &sides {
        let size = shape[axis] as isize;
        match mode {
            PadMode::Reflect if left >= size || right >= size => {
                return refuse(format!(
                    "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding \
                 ({left}, {right}) at dimension {axis} of input {shape}",
                    2 * (rank - axis) + 2
                ));
            }
            PadMode::Circular if left.max(right) > size.saturating_add(left.min(0)).saturating_add(right.min(0)) => {
                return refuse("Padding value causes wrapping around more than once.".into());
            }
            PadMode::Replicate if size == 0 && left.max(right) > 0 => {
                return refuse(format!("Expected a non-zero size at dimension {axis} of input {shape}"));
            }
            _ => {}
        }
        let kept = i128::from(left.min(0) as i64) + i128::from(right.min(0) as i64) + i128::from(size as i64);
        if kept < 0 {
            return refuse("narrow(): length must be non-negative.".into());
        }
    }
    let mut x = x.clone();
    for (axis, left, right) in sides {
        x = match mode {
            // Elements that are cropped at one end are not repeated at the other.
            PadMode::Circular => extended(&cropped(&x, axis, left, right, at)?, axis, left, right, mode, at)?,
            _ => cropped(&extended(&x, axis, left, right, mode, at)?, axis, left, right, at)?,
        };
    }
    Ok(x)
}

fn cropped<A: TensorLike>(x: &A, axis: usize, left: isize, right: isize, at: Site) -> Result<A, A::Error> {
    let (start, end) = (left.min(0).unsigned_abs(), right.min(0).unsigned_abs());
    x.sliced(axis, start, x.shape()[axis] - start - end, at)
}

fn extended<A: TensorLike>(
    x: &A,
    axis: usize,
    left: isize,
    right: isize,
    mode: PadMode,
    at: Site,
) -> Result<A, A::Error> {
    let size = x.shape()[axis];
    let (left, right) = (left.max(0) as usize, right.max(0) as usize);
    let piece = |start: usize, len: usize| x.sliced(axis, start, len, at);
    let repeated = |x: A, len: usize| {
        let mut shape = x.shape();
        shape[axis] = len;
        x.over(&shape, at)
    };
    let mirrored = |x: A| x.apply_view(View::Flip([axis].as_slice().into()), at);
    let mut parts = Vec::with_capacity(3);
    if left > 0 {
        parts.push(match mode {
            PadMode::Constant(value) => constant(x, axis, left, value, at)?,
            PadMode::Reflect => mirrored(piece(1, left)?)?,
            PadMode::Replicate => repeated(piece(0, 1)?, left)?,
            PadMode::Circular => piece(size - left, left)?,
        });
    }
    parts.push(x.clone());
    if right > 0 {
        parts.push(match mode {
            PadMode::Constant(value) => constant(x, axis, right, value, at)?,
            PadMode::Reflect => mirrored(piece(size - 1 - right, right)?)?,
            PadMode::Replicate => repeated(piece(size - 1, 1)?, right)?,
            PadMode::Circular => piece(0, right)?,
        });
    }
    if parts.len() == 1 { Ok(parts.swap_remove(0)) } else { A::apply_cat(&parts, axis, at) }
}

/// Padded by one number (cropped where negative) along each `(axis, before, after)`.
pub(crate) fn constant_padded<A: TensorLike>(
    x: &A,
    sides: &[(usize, isize, isize)],
    value: f64,
    at: Site,
) -> Result<A, A::Error> {
    let mut x = x.clone();
    for &(axis, before, after) in sides {
        let mode = PadMode::Constant(value);
        x = cropped(&extended(&x, axis, before, after, mode, at)?, axis, before, after, at)?;
    }
    Ok(x)
}

fn constant<A: TensorLike>(x: &A, axis: usize, len: usize, value: f64, at: Site) -> Result<A, A::Error> {
    let mut shape = x.shape();
    shape[axis] = len;
    crate::ops::pair::number(x, A::Elem::from_f64(value), &shape, at)
}

#[cfg(test)]
mod tests {
    use crate::ops::shape::padding::PadMode;
    use crate::prelude::*;

    #[test]
    fn every_mode_pads_and_crops() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let padded = |sizes: [isize; 2], mode| x.pad(&sizes, mode).to_vec();
        assert_eq!(padded([0, 2], PadMode::Constant(9.0)), [1.0, 2.0, 3.0, 9.0, 9.0]);
        assert_eq!(padded([2, 0], PadMode::Replicate), [1.0, 1.0, 1.0, 2.0, 3.0]);
        assert_eq!(padded([1, 2], PadMode::Circular), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]);
        // The border that mirrors is the old one; what wraps around is what is left.
        assert_eq!(padded([-1, 2], PadMode::Reflect), [2.0, 3.0, 2.0, 1.0]);
        assert_eq!(padded([-1, 2], PadMode::Circular), [2.0, 3.0, 2.0, 3.0]);
        assert_eq!(padded([-1, -2], PadMode::Constant(0.0)), [0.0; 0]);
    }

    #[test]
    fn dimensions_count_from_the_last() {
        let x = Tensor::from([[1i64]]);
        assert_eq!(x.pad(&[1, 0, 0, 1], PadMode::Constant(7.0)), Tensor::from([[7i64, 1], [7, 7]]));
    }

    #[test]
    fn what_is_refused() {
        let x = Tensor::<f64>::zeros([1, 1, 3]);
        assert_eq!(
            x.try_pad(&[3, 0], PadMode::Reflect).unwrap_err().sentence(),
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (3, 0) at \
             dimension 2 of input [1, 1, 3]"
        );
        for (sizes, mode) in [
            (&[1][..], PadMode::Constant(0.0)),
            (&[-4, 0], PadMode::Constant(0.0)),
            (&[4, 0], PadMode::Circular),
            (&[0; 8], PadMode::Constant(0.0)),
            (&[0; 6], PadMode::Replicate),
        ] {
            assert!(x.try_pad(sizes, mode).is_err(), "{sizes:?}");
        }
    }
}
