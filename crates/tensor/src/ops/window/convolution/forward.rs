//! A convolution.

use crate::ops::shape::padding::{PadMode, padded};
use crate::ops::window::convolution::check::{check_bias, check_channels, prepared, with_bias};
use crate::ops::window::convolution::options::ConvOptions;
use crate::ops::window::windowed::{ConvolutionForm, Slot, Windowed};
use crate::ops::window::windows::{Window, at_least, per_dimension, unbatched};
use crate::{Error, Number, Shape, Site};

pub(crate) fn convolved<A: Windowed<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A, A::Error> {
    let (mut x, added, windows) = prepared(x, weight, options, rank, at)?;
    let mut sides = sides(options, &windows, rank, at)?;
    if options.padding_mode != PadMode::Constant(0.0) {
        let sizes: Vec<isize> = sides.iter().rev().flat_map(|side| [side.0 as isize, side.1 as isize]).collect();
        x = padded(&x, &sizes, options.padding_mode, at)?;
        sides.fill((0, 0));
    }
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    check_channels(&own, &kernel, kernel[1] * groups, &format!("groups={groups}"), at)?;
    let out = kernel[0];
    check_bias(bias, &kernel, out, at)?;
    let extents: Vec<usize> =
        (0..rank).map(|k| own[2 + k].saturating_add(sides[k].0).saturating_add(sides[k].1)).collect();
    if (0..rank).any(|k| windows[k].count(extents[k]) == 0) {
        let list =
            |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(" x ");
        let message = format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
             input size",
            list(&mut extents.iter().copied()),
            list(&mut windows.iter().map(|window| window.span()))
        );
        return Err(Error::argument(at, message).into());
    }
    let mut result: Shape = [own[0], out].into();
    (0..rank).for_each(|k| result.push(windows[k].count(extents[k])));
    let before: Vec<usize> = sides.iter().map(|side| side.0).collect();
    let form = ConvolutionForm::new([own, kernel, result], &windows, &before, groups);
    let z = x.apply_convolution(weight, &form, Slot::Output, at)?;
    unbatched(with_bias(z, bias, at)?, added, at)
}

/// How much is added before and after each dimension.
fn sides(options: &ConvOptions, windows: &[Window], rank: usize, at: Site) -> Result<Vec<(usize, usize)>, Error> {
    match &options.padding {
        Some(padding) => {
            Ok(at_least(padding, rank, ("padding", 0), at)?.into_iter().map(|size| (size, size)).collect())
        }
        None if per_dimension(&options.stride, rank, "stride", at)?.iter().any(|&stride| stride != 1) => {
            Err(Error::argument(at, "padding='same' is not supported for strided convolutions"))
        }
        None => Ok(windows
            .iter()
            .map(|window| {
                let total = window.span() - 1;
                (total / 2, total - total / 2)
            })
            .collect()),
    }
}
