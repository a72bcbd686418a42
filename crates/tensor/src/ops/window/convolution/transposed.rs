//! A transposed convolution: the derivative of a convolution with respect to its input, as an operation.

use crate::ops::shape::padding::PadMode;
use crate::ops::window::convolution::check::{check_bias, check_channels, prepared, with_bias};
use crate::ops::window::convolution::options::ConvOptions;
use crate::ops::window::windowed::{ConvolutionForm, Slot, Windowed};
use crate::ops::window::windows::{Window, at_least, unbatched};
use crate::{Error, Number, Shape, Site};

pub(crate) fn transposed<A: Windowed<Elem: Number>>(
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
    if options.padding_mode != PadMode::Constant(0.0) {
        let message = format!("Only \"zeros\" padding mode is supported for {}", at.operation);
        return Err(Error::argument(at, message).into());
    }
    let more = at_least(&options.output_padding, rank, ("output_padding", 0), at)?;
    check_channels(&own, &kernel, kernel[0], "transposed=1", at)?;
    let out = kernel[1] * groups;
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
    let mut result: Shape = [own[0], out].into();
    (0..rank).for_each(|k| result.push(windows[k].extent(own[2 + k]).saturating_add(more[k]) - 2 * sides[k]));
    let form = ConvolutionForm::new([result, kernel, own], &windows, &sides, groups);
    let z = weight.apply_convolution(&x, &form, Slot::Input, at)?;
    unbatched(with_bias(z, bias, at)?, added, at)
}
