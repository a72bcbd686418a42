//! The convolution of an input by a weight.

use crate::ops::shape::padding::{PadMode, pad};
use crate::ops::window::convolution::check::{add_bias, check_bias, check_channels, prepare};
use crate::ops::window::windows::{Window, per_dimension, per_dimension_at_least, remove_batch};
use crate::ops::{ConvOptions, ConvolutionForm, Result, Slot, Windowed};
use crate::{Error, Number, Scalar as _, Shape, Site, ensure};

/// Computes a convolution over the last `rank` dimensions of `x`.
pub(crate) fn convolve<A: Windowed<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A> {
    let (mut x, added, windows) = prepare(x, weight, options, rank, at)?;
    let mut sides = padding_sides(options, &windows, rank, at)?;
    if options.padding_mode != PadMode::Constant(0.0) {
        let sizes: Vec<isize> = sides.iter().rev().flat_map(|side| [side.0 as isize, side.1 as isize]).collect();
        x = pad(&x, &sizes, options.padding_mode, at)?;
        sides.fill((0, 0));
    }
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    check_channels(&own, &kernel, kernel[1] * groups, &format!("groups={groups}"), at)?;
    check_bias(bias, &kernel, kernel[0], at)?;
    let extents: Vec<usize> =
        (0..rank).map(|k| own[2 + k].saturating_add(sides[k].0).saturating_add(sides[k].1)).collect();
    if extents.iter().any(|&extent| extent > isize::MAX as usize) {
        return Err(Error::TooLarge { shape: extents.into(), dtype: A::Elem::DTYPE, at }.into());
    }
    let list =
        |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(" x ");
    ensure!(
        (0..rank).all(|k| windows[k].count(extents[k]) > 0),
        at,
        "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
         input size",
        list(&mut extents.iter().copied()),
        list(&mut windows.iter().map(|window| window.span()))
    );
    let mut result: Shape = [own[0], kernel[0]].into();
    (0..rank).for_each(|k| result.push(windows[k].count(extents[k])));
    let padding_before: Vec<usize> = sides.iter().map(|side| side.0).collect();
    let form = ConvolutionForm::new([own, kernel, result], &windows, &padding_before, groups);
    let z = x.apply_convolution(weight, &form, Slot::Output, at)?;
    remove_batch(add_bias(z, bias, at)?, added, at)
}

/// Returns the number of elements to pad at the start of each dimension, and the number to pad at its end.
fn padding_sides(
    options: &ConvOptions,
    windows: &[Window],
    rank: usize,
    at: Site,
) -> Result<Vec<(usize, usize)>, Error> {
    if let Some(padding) = &options.padding {
        return Ok(per_dimension_at_least(padding, rank, ("padding", 0), at)?
            .into_iter()
            .map(|size| (size, size))
            .collect());
    }
    let stride = per_dimension(&options.stride, rank, "stride", at)?;
    ensure!(stride.iter().all(|&stride| stride == 1), at, "padding='same' is not supported for strided convolutions");
    let totals = windows.iter().map(|window| window.span() - 1);
    Ok(totals.map(|total| (total / 2, total - total / 2)).collect())
}
