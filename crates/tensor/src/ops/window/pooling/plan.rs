//! Checks the arguments of a pooling, and computes the positions of its windows.

use crate::kernel::conv::geometry::WindowAxis;
use crate::ops::TensorLike;
use crate::ops::window::pooling::options::PoolOptions;
use crate::ops::window::windows::{Window, per_dimension_at_least};
use crate::{Error, Scalar as _, Shape, Site, Sizes, ensure};

/// Checks the arguments of a pooling. Returns the windows along each of the `rank` pooled dimensions, which are the last dimensions of `x`.
pub(crate) fn window_axes<A: TensorLike>(
    x: &A,
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    is_maximum: bool,
    at: Site,
) -> Result<Vec<WindowAxis>, Error> {
    let (shape, name, is_max_pool1d) = (x.shape(), at.operation, at.operation.starts_with("max_pool1d"));
    let (unbatched, batched) = (rank + 1, rank + 2);
    let planes = usize::from(shape.rank() == batched);
    if rank == 3 {
        check_volumes(&shape, at)?;
    }
    ensure!(
        (shape.rank() == batched || shape.rank() == unbatched) && !shape[planes..].contains(&0),
        at,
        "{name}: Expected {unbatched}D or {batched}D (batch mode) tensor with optional 0 dim batch size for input, but \
         got:{shape}"
    );
    let windows = windows(rank, kernel, options, is_maximum, at)?;
    if rank == 3 && !is_maximum {
        check_kernel(&shape[planes + 1..], &windows, at)?;
    }
    let padding = per_dimension_at_least(&options.padding, rank, ("padding", 0), at)?;
    let (mut axes, mut counts) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
    for (k, (&window, &padding)) in windows.iter().zip(&padding).enumerate() {
        let Window { kernel, stride, dilation } = window;
        let limit = if rank == 1 { kernel } else { window.span() } / 2;
        if is_max_pool1d {
            ensure!(
                padding <= limit,
                at,
                "max_pool1d() padding should be at most half of kernel size, but got padding={padding} and \
                 kernel_size={kernel}"
            );
        }
        ensure!(
            padding <= limit,
            at,
            "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
             dilation={dilation}"
        );
        let size = shape[planes + 1 + k];
        let padded = size.saturating_add(padding.saturating_mul(2));
        if padded.max(window.span()) > isize::MAX as usize {
            return Err(Error::TooLarge { shape: [padded, window.span()].into(), dtype: A::Elem::DTYPE, at });
        }
        let count = count_windows(size, padding, window, options.ceil_mode);
        let output = count.max(0) as usize;
        axes.push(WindowAxis { input: size, kernel, output, stride, dilation, padding_before: padding });
        counts.push(count);
    }
    let all_fit = counts.iter().all(|&count| count >= 1);
    if is_max_pool1d {
        ensure!(all_fit, at, "max_pool1d() Invalid computed output size: {}", counts[0]);
    }
    ensure!(all_fit, at, "{}", too_small(shape[planes], &axes, &counts));
    Ok(axes)
}

/// Returns an error unless `shape` is `[n, c, d, h, w]` or `[c, d, h, w]`, where only n may be 0. The error messages are PyTorch's.
fn check_volumes(shape: &Shape, at: Site) -> Result<(), Error> {
    if !matches!(shape.rank(), 4 | 5) {
        let message = "non-empty 4D or 5D (batch mode) tensor expected for input";
        return Err(Error::argument(at, message).with_hint(format!("the shape of the input is {shape}")));
    }
    check_nonempty(shape, shape.rank() - 4, at)
}

/// Returns an error if one of the dimensions from `first` to the last has size 0.
pub(super) fn check_nonempty(shape: &Shape, first: usize, at: Site) -> Result<(), Error> {
    let empty = (first..shape.rank()).find(|&axis| shape[axis] == 0);
    ensure!(
        empty.is_none(),
        at,
        "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} with dimension {} \
         being empty",
        at.operation,
        empty.unwrap_or_default()
    );
    Ok(())
}

/// Returns an error if the kernel of a mean over volumes is larger than the volume in one of the three dimensions. `sizes` has the sizes of the
/// volume without padding. As in PyTorch, means over planes and lines have no such limit.
fn check_kernel(sizes: &[usize], windows: &[Window], at: Site) -> Result<(), Error> {
    let named = |names: [&str; 3], sizes: &[usize]| {
        names.iter().zip(sizes).map(|(name, size)| format!("{name}: {size}")).collect::<Vec<_>>().join(" ")
    };
    let kernel: Vec<usize> = windows.iter().map(|window| window.kernel).collect();
    ensure!(
        sizes.iter().zip(&kernel).all(|(size, kernel)| size >= kernel),
        at,
        "input image ({}) smaller than kernel size ({})",
        named(["T", "H", "W"], sizes),
        named(["kT", "kH", "kW"], &kernel)
    );
    Ok(())
}

/// Returns the windows along each pooled dimension. Only maximum pooling has dilations.
pub(super) fn windows(
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    is_maximum: bool,
    at: Site,
) -> Result<Vec<Window>, Error> {
    let kernel = per_dimension_at_least(kernel, rank, ("kernel_size", 1), at)?;
    let stride = match &options.stride {
        Some(stride) if !stride.as_slice().is_empty() => per_dimension_at_least(stride, rank, ("stride", 1), at)?,
        _ => kernel.clone(),
    };
    let dilation =
        if is_maximum { per_dimension_at_least(&options.dilation, rank, ("dilation", 1), at)? } else { vec![1; rank] };
    Ok((0..rank).map(|k| Window { kernel: kernel[k], stride: stride[k], dilation: dilation[k] }).collect())
}

/// Returns PyTorch's error message for a result without elements.
fn too_small(planes: usize, axes: &[WindowAxis], counts: &[i128]) -> String {
    let sizes: Vec<String> = axes.iter().map(|axis| axis.input.to_string()).collect();
    let counts: Vec<String> = counts.iter().map(i128::to_string).collect();
    let (sizes, counts) = (sizes.join("x"), counts.join("x"));
    format!(
        "Given input size: ({planes}x{sizes}). Calculated output size: ({planes}x{counts}). Output size is too small"
    )
}

/// Returns the number of windows along a dimension of `size` elements. The number is 0 or less if no window fits (ATen:
/// `pooling_output_shape`).
fn count_windows(size: usize, padding: usize, window: Window, ceil_mode: bool) -> i128 {
    let [size, padding, span, stride] = [size, padding, window.span(), window.stride].map(|length| length as i128);
    let room = size + 2 * padding - span + if ceil_mode { stride - 1 } else { 0 };
    let count = room.div_euclid(stride) + 1;
    // With `ceil_mode`, the last window must start inside the input or the padding before it.
    if ceil_mode && (count - 1) * stride >= size + padding { count - 1 } else { count }
}
