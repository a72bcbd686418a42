//! Padding along dimensions.
//!
//! The result for tensors is written in one pass. The recorded padding with zeros is the adjoint of a slice. Other recorded padding is a
//! concatenation of the input with constants, or with slices of the input, which are flipped (reflection) or expanded (replication). So the
//! derivative follows from the derivatives of views and concatenation.

use wengert_macros::{precompiled, twins};

use crate::kernel::pad::{self, PaddedAxis};
use crate::ops::primitive::pair::{check_fits, expand_number, wrap_f64};
use crate::ops::{Compose, Result, TensorLike};
use crate::{Element, Error, Shape, Site, Tensor, View, ensure};

/// The values of the padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// Pads with this number.
    Constant(f64),
    /// Pads with the elements mirrored at the border. The border element is not repeated.
    Reflect,
    /// Pads with the border element.
    Replicate,
    /// Pads with the elements at the opposite end of the dimension.
    Circular,
}

/// Padding and cropping of dimensions.
#[twins(blanket)]
pub trait Padding: TensorLike {
    /// Pads by `sizes`, two values per dimension starting with the last dimension: `[left, right, top, bottom]` for `[…, h, w]`. A negative
    /// size crops. All modes but `Constant` require `[n, c, w]`, `[n, c, h, w]` or `[n, c, d, h, w]`, with or without `n`. These modes pad
    /// all dimensions after `c`. PyTorch: `nn.functional.pad`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0]]);
    /// assert_eq!(x.pad(&[1, -1], PadMode::Constant(0.0)), Tensor::from([[0.0, 1.0, 2.0]]));
    /// assert_eq!(x.pad(&[2, 1], PadMode::Reflect), Tensor::from([[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the number of `sizes` is odd or too large, or a size crops more elements than there are. If `Reflect` adds at least as many
    /// elements on one side as the dimension has, or `Circular` wraps around more than once. If `Replicate` extends an empty dimension,
    /// `Reflect` or `Replicate` leaves no elements of a dimension, or a mode does not allow this number of dimensions. If the element
    /// type cannot hold the number of `Constant`, or memory cannot hold the result.
    fn try_pad(&self, sizes: &[isize], mode: PadMode) -> Result<Self> {
        pad(self, sizes, mode, Site::here("pad"))
    }
}

/// Pads `x` like [`Padding::try_pad`]. `at` is the operation that the errors name.
pub(crate) fn pad<A: TensorLike>(x: &A, sizes: &[isize], mode: PadMode, at: Site) -> Result<A> {
    let shape = x.shape();
    let (rank, length) = (shape.rank(), sizes.len());
    ensure!(length.is_multiple_of(2), at, "Padding length must be divisible by 2");
    ensure!(
        length <= 2 * rank,
        at,
        "Padding length should be less than or equal to two times the input dimension but got padding length {length} and \
         input of dimension {rank}"
    );
    let dimensions = length / 2;
    let fits = (1..=3).contains(&dimensions) && (dimensions + 1..=dimensions + 2).contains(&rank);
    if !matches!(mode, PadMode::Constant(_)) && !fits {
        let message = format!("Padding size {length} is not supported for {rank}D input tensor.");
        let hint =
            "a list of 2 numbers pads a 2D or 3D input, 4 numbers a 3D or 4D input, and 6 numbers a 4D or 5D input";
        return Err(Error::argument(at, message).with_hint(hint).into());
    }
    if let PadMode::Constant(number) = mode {
        check_fits::<A>(Some(number), at)?;
    }
    let axis_padding = |(k, pair): (usize, &[isize])| AxisPadding { axis: rank - 1 - k, left: pair[0], right: pair[1] };
    let paddings: Vec<AxisPadding> = sizes.chunks(2).enumerate().map(axis_padding).collect();
    for &padding in &paddings {
        check_padding(&shape, padding, mode, at)?;
    }
    if matches!(mode, PadMode::Reflect | PadMode::Replicate) {
        check_output(&shape, &paddings, at)?;
    }
    if let Some(padded) = pad_plain(x, &paddings, mode, at)? {
        return Ok(padded);
    }
    let mut x = x.clone();
    for padding in paddings {
        x = match mode {
            // `Circular` crops first, so that elements cropped at one end do not reappear at the other. The other modes crop last.
            PadMode::Circular => extend(&crop(&x, padding, at)?, padding, mode, at)?,
            _ => crop(&extend(&x, padding, mode, at)?, padding, at)?,
        };
    }
    Ok(x)
}

/// The padding of one dimension. A negative number of elements crops the dimension.
#[derive(Clone, Copy)]
pub(crate) struct AxisPadding {
    pub(crate) axis: usize,
    /// The number of elements to add at the start of the dimension.
    pub(crate) left: isize,
    /// The number of elements to add at the end of the dimension.
    pub(crate) right: isize,
}

/// Returns an error if `mode` cannot add or crop as many elements as `padding` says.
fn check_padding(
    shape: &Shape,
    AxisPadding { axis, left, right }: AxisPadding,
    mode: PadMode,
    at: Site,
) -> Result<(), Error> {
    let size = shape[axis] as isize;
    let is_negative = (size as i128 + left as i128 + right as i128).is_negative();
    match mode {
        PadMode::Reflect => ensure!(
            left < size && right < size,
            at,
            "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding ({left}, \
             {right}) at dimension {axis} of input {shape}",
            2 * (shape.rank() - axis) + 2
        ),
        PadMode::Circular => ensure!(
            is_negative || left.max(right) <= size.saturating_add(left.min(0)).saturating_add(right.min(0)),
            at,
            "Padding value causes wrapping around more than once."
        ),
        PadMode::Replicate => ensure!(
            size > 0 || left.max(right) <= 0,
            at,
            "Expected a non-zero size at dimension {axis} of input {shape}"
        ),
        PadMode::Constant(_) => {}
    }
    ensure!(mode != PadMode::Circular || !is_negative, at, "Negative padding value is resulting in an empty dimension");
    let kept = size as i128 + left.min(0) as i128 + right.min(0) as i128;
    // For these modes, `check_output` refuses a negative size with another error message.
    let is_refused_later = is_negative && matches!(mode, PadMode::Reflect | PadMode::Replicate);
    ensure!(kept >= 0 || is_refused_later, at, "narrow(): length must be non-negative.");
    Ok(())
}

/// Returns an error if a padded dimension of the result would have no elements, which the modes `Reflect` and `Replicate` refuse. The sentences
/// are PyTorch's.
fn check_output(shape: &Shape, paddings: &[AxisPadding], at: Site) -> Result<(), Error> {
    let output = |&AxisPadding { axis, left, right }: &AxisPadding| shape[axis] as i128 + left as i128 + right as i128;
    if paddings.iter().all(|padding| output(padding) >= 1) {
        return Ok(());
    }
    // `paddings` begins with the last dimension.
    let named = |separator: &str, size: &dyn Fn(&AxisPadding) -> i128| {
        let sizes = paddings.iter().zip(["W", "H", "D"]).rev();
        sizes.map(|(padding, name)| format!("{name}: {}", size(padding))).collect::<Vec<_>>().join(separator)
    };
    let (input, results) = (named(", ", &|padding| shape[padding.axis] as i128), named(" ", &output));
    let message = match paddings.len() {
        1 => format!("input ({input}) is too small. Calculated output {results}"),
        _ => format!("Calculated output {results} must be >= 1 in every dimension (input {input})"),
    };
    Err(Error::argument(at, message))
}

/// Removes elements at the ends of a dimension: `-left` at the start if `left` is negative, and `-right` at the end if `right` is negative.
fn crop<A: TensorLike>(x: &A, AxisPadding { axis, left, right }: AxisPadding, at: Site) -> Result<A> {
    let (start, end) = (left.min(0).unsigned_abs(), right.min(0).unsigned_abs());
    x.slice_axis(axis, start, x.shape()[axis] - start - end, at)
}

/// Adds `left` elements at the start of a dimension, and `right` elements at its end. A negative number counts as 0.
fn extend<A: TensorLike>(x: &A, AxisPadding { axis, left, right }: AxisPadding, mode: PadMode, at: Site) -> Result<A> {
    let shape = x.shape();
    let size = shape[axis];
    let (left, right) = (left.max(0) as usize, right.max(0) as usize);
    if left + right > 0 && matches!(mode, PadMode::Constant(value) if value == 0.0 && value.is_sign_positive()) {
        let padded = shape.with_size(axis, left + size + right);
        return x.apply_embed(View::Slice { axis, start: left, len: size, step: 1 }, &padded, at);
    }
    // Returns `len` new elements. Depending on the mode, the elements are a constant, or come from slices of `x` that start at `mirrored`,
    // `border` or `wrapped`.
    let added = |len: usize, mirrored: usize, border: usize, wrapped: usize| match mode {
        PadMode::Constant(value) => expand_number(x, wrap_f64(value), &shape.with_size(axis, len), at),
        PadMode::Reflect => x.slice_axis(axis, mirrored, len, at)?.apply_view(View::Flip([axis].as_slice().into()), at),
        PadMode::Replicate => x.slice_axis(axis, border, 1, at)?.expand_to(&shape.with_size(axis, len), at),
        PadMode::Circular => x.slice_axis(axis, wrapped, len, at),
    };
    let mut parts = Vec::with_capacity(3);
    if left > 0 {
        parts.push(added(left, 1, 0, size.wrapping_sub(left))?);
    }
    parts.push(x.clone());
    if right > 0 {
        parts.push(added(right, size.wrapping_sub(1 + right), size.wrapping_sub(1), 0)?);
    }
    if parts.len() == 1 { Ok(parts.swap_remove(0)) } else { A::apply_cat(&parts, axis, at) }
}

/// Pads or crops `x` as `paddings` say. The new elements have the value `value`.
pub(crate) fn pad_constant<A: TensorLike>(x: &A, paddings: &[AxisPadding], value: f64, at: Site) -> Result<A> {
    if let Some(padded) = pad_plain(x, paddings, PadMode::Constant(value), at)? {
        return Ok(padded);
    }
    let mut x = x.clone();
    for &padding in paddings {
        x = crop(&extend(&x, padding, PadMode::Constant(value), at)?, padding, at)?;
    }
    Ok(x)
}

/// Returns the padded `x` if `x` is a plain tensor and `paddings` add elements. Returns `None` otherwise.
fn pad_plain<A: TensorLike>(x: &A, paddings: &[AxisPadding], mode: PadMode, at: Site) -> Result<Option<A>, A::Error> {
    if !x.is_plain() || paddings.iter().all(|&AxisPadding { left, right, .. }| left <= 0 && right <= 0) {
        return Ok(None);
    }
    Ok(Some(x.try_constant(&x.to_tensor(at)?.pad_tensor(paddings, mode, at)?)?))
}

#[precompiled]
impl<T: Element> Tensor<T> {
    /// Pads and crops like [`pad`]. `paddings` were checked.
    fn pad_tensor(&self, paddings: &[AxisPadding], mode: PadMode, at: Site) -> Result<Self, Error> {
        let mut shape = self.shape().clone();
        for &AxisPadding { axis, left, right } in paddings {
            let padded = shape[axis].saturating_add_signed(left).saturating_add_signed(right);
            shape[axis] = padded;
        }
        crate::memory::reserve::addressable::<T>(&shape, at)?;
        let mut axes: Vec<Option<PaddedAxis>> = shape.iter().map(|_| None).collect();
        for &AxisPadding { axis, left, right } in paddings {
            if (left, right) != (0, 0) && !shape.contains(&0) {
                axes[axis] = Some(padded_axis(self.shape()[axis], left, right, mode));
            }
        }
        let value = if let PadMode::Constant(value) = mode { wrap_f64(value) } else { T::ZERO };
        let (storage, layout) = self.parts();
        Tensor::build(&shape, at, |out| pad::pad(storage.as_slice(), layout, &axes, value, out))
    }
}

/// Describes the result of padding a dimension of `size` elements by `left` elements at the start and `right` elements at the end. Negative
/// numbers crop.
fn padded_axis(size: usize, left: isize, right: isize, mode: PadMode) -> PaddedAxis {
    let (first, start) = (left.min(0).unsigned_abs(), left.max(0) as usize);
    let kept = size - first - right.min(0).unsigned_abs();
    // The index of the first element to copy may be any number if nothing is copied.
    let (before, after) = match mode {
        PadMode::Constant(_) => (None, None),
        PadMode::Reflect => (Some((start, -1)), Some((size.wrapping_sub(2), -1))),
        PadMode::Replicate => (Some((0, 0)), Some((size.wrapping_sub(1), 0))),
        PadMode::Circular => (Some((kept.wrapping_sub(start), 1)), Some((first, 1))),
    };
    let (size, end) = ((left + size as isize + right) as usize, start + kept);
    PaddedAxis { size, parts: [(0..start, before), (start..end, Some((first, 1))), (end..size, after)] }
}

#[cfg(test)]
mod tests {
    use super::{AxisPadding, PadMode, crop, extend};
    use crate::Site;
    use crate::prelude::*;

    /// Compares the padding of tensors with the concatenation that is recorded for variables.
    #[test]
    fn one_pass_equals_the_concatenation() {
        let at = Site::here("test");
        let table: [&[isize]; 6] =
            [&[2, 1], &[0, 0, 1, 3], &[-1, 2, 2, -2], &[3, -1, 0, 2, 1, 0], &[0, -3, 2, 0], &[1, 1, 1, 1]];
        let mut refused = 0;
        for shape in [[2, 3, 5, 6], [1, 1, 4, 4], [3, 2, 4, 700], [2, 40, 30, 40]] {
            let whole = Tensor::<f64>::from_fn(shape, |i| i.iter().fold(1, |h, &i| (h * 31 + i) % 1009) as f64);
            let layouts =
                [whole.clone(), whole.permute([2, 3, 1, 0]).contiguous().permute([3, 2, 0, 1]), whole.flip([1, 3])];
            for x in layouts {
                for sizes in table {
                    for mode in [PadMode::Constant(7.0), PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
                        let Ok(padded) = x.try_pad(sizes, mode) else {
                            refused += 1;
                            continue;
                        };
                        let mut expected = x.clone();
                        for (k, pair) in sizes.chunks(2).enumerate() {
                            let padding = AxisPadding { axis: 3 - k, left: pair[0], right: pair[1] };
                            expected = match mode {
                                PadMode::Circular => extend(&crop(&expected, padding, at).unwrap(), padding, mode, at),
                                _ => crop(&extend(&expected, padding, mode, at).unwrap(), padding, at),
                            }
                            .unwrap();
                        }
                        assert_eq!(padded, expected, "{shape:?} {sizes:?} {mode:?}");
                    }
                }
            }
        }
        // All modes but `Constant` refuse to pad only one dimension of an array of rank 4. `Reflect` refuses to add an element to a
        // dimension of size 1.
        assert_eq!(refused, 4 * 3 * 3 + 3);
        assert_eq!(Tensor::<f64>::zeros([0, 3]).pad(&[1, 1], PadMode::Constant(1.0)).shape(), &[0, 5]);
        assert_eq!(Tensor::<f64>::zeros([2, 0]).pad(&[1, 1], PadMode::Constant(1.0)), Tensor::ones([2, 2]));
        // The first stride of this view is the sum of the second dimension's stride and size, and not their product.
        let view = Tensor::<f64>::from_fn([3, 5, 1], |i| (5 * i[0] + i[1]) as f64).narrow(1, 0, 4);
        let expected = view.contiguous().pad(&[1, 1], PadMode::Constant(0.5));
        assert_eq!(view.pad(&[1, 1], PadMode::Constant(0.5)), expected);
    }

    #[test]
    fn every_mode_pads_and_crops() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let padded = |sizes: [isize; 2], mode| x.pad(&sizes, mode).to_vec();
        assert_eq!(padded([0, 2], PadMode::Constant(9.0)), [1.0, 2.0, 3.0, 9.0, 9.0]);
        assert_eq!(padded([2, 0], PadMode::Replicate), [1.0, 1.0, 1.0, 2.0, 3.0]);
        assert_eq!(padded([1, 2], PadMode::Circular), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]);
        // `Reflect` mirrors at the border before cropping. `Circular` crops first, so that the cropped elements do not wrap around.
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
    fn refusals() {
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

    /// The error messages are PyTorch's.
    #[test]
    fn refused_dimensions_and_crops() {
        let sentence = |rank: usize, sizes: &[isize], mode| {
            let shape = [1, 2, 4, 4, 4, 4];
            Tensor::<f64>::ones(&shape[..rank])
                .try_pad(sizes, mode)
                .map(|x| x.shape().clone())
                .map_err(|e| e.sentence())
        };
        let small = |sizes: &str, input: &str| {
            Err(format!("Calculated output {sizes} must be >= 1 in every dimension (input {input})"))
        };
        let circular = "Negative padding value is resulting in an empty dimension";
        for mode in [PadMode::Reflect, PadMode::Replicate] {
            let line = Err("input (W: 4) is too small. Calculated output W: 0".to_owned());
            assert_eq!(sentence(3, &[-2, -2], mode), line);
            assert_eq!(sentence(4, &[0, 0, -3, -2], mode), small("H: -1 W: 4", "H: 4, W: 4"));
            assert_eq!(sentence(5, &[-5, 0, 1, 1, 0, 0], mode), small("D: 4 H: 6 W: -1", "D: 4, H: 4, W: 4"));
        }
        assert_eq!(sentence(3, &[-3, -2], PadMode::Circular), Err(circular.to_owned()));
        assert_eq!(sentence(3, &[-2, -2], PadMode::Circular), Ok([1, 2, 0].into()));
        for (rank, sizes) in [(5, 2), (6, 6), (3, 0)] {
            let expected = format!("Padding size {sizes} is not supported for {rank}D input tensor.");
            for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
                assert_eq!(sentence(rank, &[1; 6][..sizes], mode), Err(expected.clone()));
            }
        }
    }
}
