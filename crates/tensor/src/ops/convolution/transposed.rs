//! A transposed convolution: the products of the weights, as columns, put back where windows lie, and added up.

use super::check::{check_bias, check_channels, prepared, with_bias};
use super::options::ConvOptions;
use crate::error::{Error, Site};
use crate::ops::TensorLike;
use crate::ops::formula::{Formula, count};
use crate::ops::padding::constant_padded;
use crate::ops::windows::{Window, at_least, unbatched};
use crate::{Number, Shape};

pub(super) fn transposed<A: TensorLike<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A, A::Error> {
    let (x, added, windows) = prepared(x, weight, options, rank, at)?;
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    let sides = match &options.padding {
        Some(padding) => at_least(padding, rank, ("padding", 0), at)?,
        None => return Err(Error::argument(at, "padding='same' is not supported for transposed convolutions").into()),
    };
    let more = at_least(&options.output_padding, rank, ("output_padding", 0), at)?;
    check_channels(&own, &kernel, kernel[0], "transposed=1", at)?;
    let (batch, channels, out) = (own[0], own[1], kernel[1] * groups);
    check_bias(bias, &kernel, out, at)?;
    for k in 0..rank {
        let Window { stride, dilation, .. } = windows[k];
        if more[k] >= stride.max(dilation) {
            let message = format!(
                "output padding must be smaller than either stride or dilation, but got output_padding: {more:?}, stride: \
                 {stride}, dilation: {dilation}"
            );
            return Err(Error::argument(at, message).into());
        }
        if own[2 + k] == 0 || windows[k].extent(own[2 + k]).saturating_add(more[k]) <= sides[k].saturating_mul(2) {
            let message = format!(
                "Given input size per channel: {:?}. The output would be empty at dimension {k}: padding {} is too large",
                &own[2..],
                sides[k]
            );
            return Err(Error::argument(at, message).into());
        }
    }
    let taps = count(&kernel[2..]);
    let positions = count(&[batch, count(&own[2..])]);
    let order: Vec<usize> = [1, 0].into_iter().chain(2..2 + rank).collect();
    let columns = x.permuted(&order, at)?.reshaped([groups, channels / groups, positions], at)?;
    let rows = weight.reshaped([groups, channels / groups, out / groups * taps], at)?.permuted(&[0, 2, 1], at)?;
    let product = rows.apply_matmul(&columns, at)?;
    // [out, …kernel, n, …in] to [n, out, …in, …kernel], whose windows overlap and add up.
    let mut apart: Shape = [out].into();
    kernel[2..].iter().for_each(|&size| apart.push(size));
    apart.push(batch);
    own[2..].iter().for_each(|&size| apart.push(size));
    let order: Vec<usize> = [1 + rank, 0].into_iter().chain(2 + rank..2 + 2 * rank).chain(1..1 + rank).collect();
    let mut z = product.reshaped(apart, at)?.permuted(&order, at)?;
    for (k, window) in windows.iter().enumerate().rev() {
        let mut shape = z.shape();
        shape.remove(shape.rank() - 1);
        shape[2 + k] = window.extent(own[2 + k]);
        z = window.embed(&z, 2 + k, &shape, at)?;
    }
    let cut: Vec<_> = (0..rank).map(|k| (2 + k, -(sides[k] as isize), more[k] as isize - sides[k] as isize)).collect();
    unbatched(with_bias(constant_padded(&z, &cut, 0.0, at)?, bias, at)?, added, at)
}
