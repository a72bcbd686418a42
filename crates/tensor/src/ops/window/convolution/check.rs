//! Checks of the arguments of a convolution and its transpose, and the bias that both add.

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::ops::window::convolution::options::ConvOptions;
use crate::ops::window::windows::{Window, at_least, batched};
use crate::{Error, Shape, Site};

/// Input with a batch dimension, whether the dimension was added, and the windows; shapes are checked.
pub(crate) fn prepared<A: TensorLike>(
    x: &A,
    weight: &A,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<(A, bool, Vec<Window>), A::Error> {
    let own = x.shape();
    let kernel = weight.shape();
    let refuse = |message: String| Err(A::Error::from(Error::argument(at, message)));
    if own.rank() != rank + 1 && own.rank() != rank + 2 {
        return refuse(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {own}",
            rank + 1,
            rank + 2,
            at.operation
        ));
    }
    let stride = at_least(&options.stride, rank, ("stride", 1), at)?;
    let dilation = at_least(&options.dilation, rank, ("dilation", 1), at)?;
    if kernel.rank() != rank + 2 || kernel[2..].contains(&0) {
        return refuse(format!(
            "Expected {}-dimensional weight with a kernel that is not empty for {}, but got weight of size {kernel}",
            rank + 2,
            at.operation
        ));
    }
    let groups = options.groups;
    if groups == 0 {
        return refuse("non-positive groups is not supported".into());
    }
    if kernel[0] < groups || !kernel[0].is_multiple_of(groups) {
        let what = if kernel[0] < groups { "at least" } else { "divisible by" };
        return refuse(format!(
            "Given groups={groups}, expected weight to be {what} {groups} at dimension 0, but got weight of size [{kernel}] \
             instead"
        ));
    }
    let (x, added) = batched(x, rank + 2, at)?;
    let windows =
        (0..rank).map(|k| Window { kernel: kernel[2 + k], stride: stride[k], dilation: dilation[k] }).collect();
    Ok((x, added, windows))
}

pub(crate) fn check_channels(x: &Shape, weight: &Shape, expected: usize, prefix: &str, at: Site) -> Result<(), Error> {
    if x[1] == expected {
        return Ok(());
    }
    let message = format!(
        "Given {prefix}, weight of size {weight}, expected input{x} to have {expected} channels, but got {} channels instead",
        x[1]
    );
    Err(Error::argument(at, message))
}

pub(crate) fn check_bias<A: TensorLike>(bias: Option<&A>, weight: &Shape, out: usize, at: Site) -> Result<(), Error> {
    match bias.map(A::shape) {
        Some(shape) if shape != [out] => {
            let message = format!(
                "Given weight of size {weight}, expected bias to be 1-dimensional with {out} elements, but got bias of size \
                 {shape} instead"
            );
            Err(Error::argument(at, message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn with_bias<A: TensorLike>(z: A, bias: Option<&A>, at: Site) -> Result<A, A::Error> {
    let Some(bias) = bias else { return Ok(z) };
    let mut shape = Shape::ones(z.shape().rank());
    shape[1] = bias.shape()[0];
    z.plus(&bias.reshaped(shape, at)?, at)
}
