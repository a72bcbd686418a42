//! Where the windows of a pooling lie, and what is refused.

use crate::ops::TensorLike;
use crate::ops::window::pooling::options::PoolOptions;
use crate::ops::window::windows::{Window, at_least};
use crate::{Error, Site, Sizes};

/// The windows along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) size: usize,
    pub(crate) window: Window,
    pub(crate) padding: usize,
    /// Number of windows.
    pub(crate) count: usize,
}

/// The checked arguments of a pooling.
pub(crate) struct Plan {
    /// Whether the input has no batch dimension.
    pub(crate) unbatched: bool,
    pub(crate) axes: Vec<Axis>,
}

impl Plan {
    pub(crate) fn new<A: TensorLike>(
        x: &A,
        rank: usize,
        kernel: &Sizes,
        options: &PoolOptions,
        maximum: bool,
        at: Site,
    ) -> Result<Self, Error> {
        let shape = x.shape();
        let name = at.operation;
        let refuse = |message: String| Err(Error::argument(at, message));
        let batched = shape.rank() == rank + 2;
        let inner = usize::from(batched);
        if !batched && shape.rank() != rank + 1 || shape[inner..].contains(&0) {
            return refuse(format!(
                "{name}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}",
                rank + 1,
                rank + 2
            ));
        }
        let kernel = at_least(kernel, rank, ("kernel_size", 1), at)?;
        let stride = match &options.stride {
            Some(stride) if !stride.as_slice().is_empty() => at_least(stride, rank, ("stride", 1), at)?,
            _ => kernel.clone(),
        };
        let padding = at_least(&options.padding, rank, ("padding", 0), at)?;
        let dilation = if maximum { at_least(&options.dilation, rank, ("dilation", 1), at)? } else { vec![1; rank] };
        let mut axes = Vec::with_capacity(rank);
        for k in 0..rank {
            let window = Window { kernel: kernel[k], stride: stride[k], dilation: dilation[k] };
            let size = shape[inner + 1 + k];
            if padding[k] > if rank == 1 { kernel[k] } else { window.span() } / 2 {
                return refuse(if name.starts_with("max_pool1d") {
                    format!(
                        "max_pool1d() padding should be at most half of kernel size, but got padding={} and kernel_size={}",
                        padding[k], kernel[k]
                    )
                } else {
                    format!(
                        "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
                        padding[k], kernel[k], dilation[k]
                    )
                });
            }
            let count = count(size, padding[k], window, options.ceil_mode);
            axes.push((Axis { size, window, padding: padding[k], count: count.max(0) as usize }, count));
        }
        if axes.iter().any(|&(_, count)| count < 1) {
            return refuse(if name.starts_with("max_pool1d") {
                format!("max_pool1d() Invalid computed output size: {}", axes[0].1)
            } else {
                let planes = shape[inner];
                let list = |sizes: Vec<String>| sizes.join("x");
                format!(
                    "Given input size: ({planes}x{}). Calculated output size: ({planes}x{}). Output size is too small",
                    list(axes.iter().map(|(axis, _)| axis.size.to_string()).collect()),
                    list(axes.iter().map(|(_, count)| count.to_string()).collect())
                )
            });
        }
        Ok(Plan { unbatched: !batched, axes: axes.into_iter().map(|(axis, _)| axis).collect() })
    }
}

/// Number of windows, not positive where none fits (ATen: `pooling_output_shape`).
fn count(size: usize, padding: usize, window: Window, ceil_mode: bool) -> i128 {
    let wide = |size: usize| size as i128;
    let stride = wide(window.stride);
    let room = wide(size) + 2 * wide(padding) - wide(window.span());
    let count = (room + if ceil_mode { stride - 1 } else { 0 }).div_euclid(stride) + 1;
    // The last window must begin inside the input or the padding before it.
    let beyond = ceil_mode && (count - 1) * stride >= wide(size) + wide(padding);
    if beyond { count - 1 } else { count }
}
