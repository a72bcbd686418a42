//! A convolution: the windows as columns, multiplied by the weights.

use super::check::{check_bias, check_channels, prepared, with_bias};
use super::options::ConvOptions;
use crate::error::{Error, Site};
use crate::ops::TensorLike;
use crate::ops::formula::{Formula, count};
use crate::ops::padding::constant_padded;
use crate::ops::windows::{Window, at_least, per_dimension, unbatched};
use crate::{Number, Shape};

pub(super) fn convolved<A: TensorLike<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A, A::Error> {
    let (x, added, windows) = prepared(x, weight, options, rank, at)?;
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    let sides = sides(options, &windows, rank, at)?;
    check_channels(&own, &kernel, kernel[1] * groups, &format!("groups={groups}"), at)?;
    let (batch, channels, out) = (own[0], own[1], kernel[0]);
    check_bias(bias, &kernel, out, at)?;
    let padded: Vec<usize> =
        (0..rank).map(|k| own[2 + k].saturating_add(sides[k].0).saturating_add(sides[k].1)).collect();
    if (0..rank).any(|k| windows[k].count(padded[k]) == 0) {
        let list =
            |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(" x ");
        let message = format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
             input size",
            list(&mut padded.iter().copied()),
            list(&mut windows.iter().map(|window| window.span()))
        );
        return Err(Error::argument(at, message).into());
    }
    let mut view = zero_padded(&x, &sides, at)?;
    for (k, window) in windows.iter().enumerate() {
        view = window.view(&view, 2 + k, at)?;
    }
    // [n, c, …out, …kernel] to [c, …kernel, n, …out]: a column for every window.
    let counts: Vec<usize> = (0..rank).map(|k| windows[k].count(padded[k])).collect();
    let taps = count(&kernel[2..]);
    let positions = count(&[batch, count(&counts)]);
    let order: Vec<usize> = std::iter::once(1).chain(2 + rank..2 + 2 * rank).chain([0]).chain(2..2 + rank).collect();
    let columns = view.permuted(&order, at)?.reshaped([groups, channels / groups * taps, positions], at)?;
    let rows = weight.reshaped([groups, out / groups, channels / groups * taps], at)?;
    let product = rows.apply_matmul(&columns, at)?;
    let mut result: Shape = [out, batch].into();
    counts.iter().for_each(|&count| result.push(count));
    let order: Vec<usize> = [1, 0].into_iter().chain(2..2 + rank).collect();
    let z = product.reshaped(result, at)?.permuted(&order, at)?;
    unbatched(with_bias(z, bias, at)?, added, at)
}

/// Zeros before and after each dimension.
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

fn zero_padded<A: TensorLike>(x: &A, sides: &[(usize, usize)], at: Site) -> Result<A, A::Error> {
    let sides: Vec<_> = (2..).zip(sides).map(|(axis, side)| (axis, side.0 as isize, side.1 as isize)).collect();
    constant_padded(x, &sides, 0.0, at)
}
