//! Checks the arguments that a convolution and its transpose share, and adds the bias.

use crate::ops::window::windows::{Window, add_batch, per_dimension_at_least};
use crate::ops::{Compose, ConvOptions, Result, TensorLike};
use crate::{Error, Shape, Site, ensure};

/// Checks the ranks, the kernel, the stride, the dilation and the groups of a convolution. Returns the input with a batch dimension, true
/// if this dimension was added, and the windows along each convolved dimension.
pub(crate) fn prepare<A: TensorLike>(
    x: &A,
    weight: &A,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<(A, bool, Vec<Window>), A::Error> {
    let (own, kernel, groups, name) = (x.shape(), weight.shape(), options.groups, at.operation);
    let (unbatched, batched) = (rank + 1, rank + 2);
    ensure!(
        own.rank() == unbatched || own.rank() == batched,
        at,
        "Expected {unbatched}D (unbatched) or {batched}D (batched) input to {name}, but got input of size: {own}"
    );
    let stride = per_dimension_at_least(&options.stride, rank, ("stride", 1), at)?;
    let dilation = per_dimension_at_least(&options.dilation, rank, ("dilation", 1), at)?;
    ensure!(
        kernel.rank() == batched && !kernel[2..].contains(&0),
        at,
        "Expected {batched}-dimensional weight with a kernel that is not empty for {name}, but got weight of size {kernel}"
    );
    ensure!(groups > 0, at, "non-positive groups is not supported");
    // In PyTorch's error messages, the size has two pairs of brackets only after "divisible by".
    let (requirement, size) =
        if kernel[0] < groups { ("at least", kernel.to_string()) } else { ("divisible by", format!("[{kernel}]")) };
    ensure!(
        kernel[0] >= groups && kernel[0].is_multiple_of(groups),
        at,
        "Given groups={groups}, expected weight to be {requirement} {groups} at dimension 0, but got weight of size {size} \
         instead"
    );
    let (x, added) = add_batch(x, batched, at)?;
    let window = |k: usize| Window { kernel: kernel[2 + k], stride: stride[k], dilation: dilation[k] };
    Ok((x, added, (0..rank).map(window).collect()))
}

/// Refuses an input whose number of channels is not `expected`.
pub(crate) fn check_channels(x: &Shape, weight: &Shape, expected: usize, prefix: &str, at: Site) -> Result<(), Error> {
    let channels = x[1];
    if channels == expected {
        return Ok(());
    }
    let message = format!(
        "Given {prefix}, weight of size {weight}, expected input{x} to have {expected} channels, but got {channels} \
         channels instead"
    );
    let last = x.rank() - 1;
    let moved = || format!("if the channels are the last dimension, `x.movedim(-1, -{last})` moves them");
    Err(Error::argument(at, message).with_hint_if_any((x[last] == expected).then(moved)))
}

/// Refuses a bias that is not a vector of `out` elements.
pub(crate) fn check_bias<A: TensorLike>(bias: Option<&A>, weight: &Shape, out: usize, at: Site) -> Result<(), Error> {
    if let Some(shape) = bias.map(A::shape) {
        ensure!(
            shape == [out],
            at,
            "Given weight of size {weight}, expected bias to be 1-dimensional with {out} elements, but got bias of size \
             {shape} instead"
        );
    }
    Ok(())
}

/// Adds a bias `[c]` to `[n, c, …]`.
pub(crate) fn add_bias<A: TensorLike>(z: A, bias: Option<&A>, at: Site) -> Result<A> {
    let Some(bias) = bias else { return Ok(z) };
    let shape = Shape::ones(z.shape().rank()).with_size(1, bias.shape()[0]);
    z.plus(&bias.reshape_to(shape, at)?, at)
}
