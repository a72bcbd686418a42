//! Poolings: the largest element or the mean of every window.
//!
//! Both go through the dimensions one after the other, from the last: the largest of a rectangle is the largest of its rows'
//! largest, a sum of sums. A maximum is a chain of choices between views of the input, so that its gradient goes where
//! PyTorch sends it: to the first of several that are equal, to the last NaN.

use super::formula::Formula;
use super::padding::constant_padded;
use super::windows::{Window, at_least, batched, unbatched};
use super::{TensorLike, twin};
use crate::dims::Sizes;
use crate::error::{Error, Site};
use crate::kernel::instruction::{Binary, Compare};
use crate::view::View;
use crate::{Element, Float, Shape, Tensor};

/// How the window moves. Sizes are one number for all dimensions or one for each.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    stride: Option<Sizes>,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<usize>,
}

impl Default for PoolOptions {
    /// Windows side by side (stride = kernel), no padding, dilation 1.
    fn default() -> Self {
        PoolOptions {
            stride: None,
            padding: Sizes::from(0),
            dilation: Sizes::from(1),
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

impl PoolOptions {
    /// From one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// Elements put on both sides, at most half a kernel: zeros for means, -∞ for maxima.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
        self.padding = padding.into();
        self
    }

    /// From one element of a window to the next; maxima only.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// Whether a last window that begins inside counts though it ends outside.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    /// Whether a mean divides by the padded elements of its window too (what lies beyond the padding never counts).
    #[must_use]
    pub fn count_include_pad(mut self, count_include_pad: bool) -> Self {
        self.count_include_pad = count_include_pad;
        self
    }

    /// What a mean divides by instead of the number of elements.
    #[must_use]
    pub fn divisor_override(mut self, divisor: usize) -> Self {
        self.divisor_override = Some(divisor);
        self
    }
}

/// Poolings.
pub trait Pooling: TensorLike<Elem: Float> {
    twin! { trait
        /// The largest of every window of `[n, c, l]` (or `[c, l]`). PyTorch: `nn.functional.max_pool1d`.
        fn max_pool1d | try_max_pool1d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Self = at {
            largest(self, &Plan::new(self, 1, &kernel.into(), options, true, at)?, at)
        }

        /// The largest of every window of `[n, c, h, w]` (or `[c, h, w]`). The gradient goes to the first of several that are
        /// equal, or to the last NaN. PyTorch: `nn.functional.max_pool2d`.
        ///
        /// ```
        /// use wengert_tensor::ops::{PoolOptions, Pooling};
        /// use wengert_tensor::prelude::*;
        ///
        /// let image = Tensor::<f64>::arange(16).reshape([1, 4, 4]);
        /// assert_eq!(image.max_pool2d(2, &PoolOptions::default()), Tensor::from([[[5.0, 7.0], [13.0, 15.0]]]));
        /// ```
        fn max_pool2d | try_max_pool2d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Self = at {
            largest(self, &Plan::new(self, 2, &kernel.into(), options, true, at)?, at)
        }

        /// [`max_pool1d`](Self::max_pool1d), and where in its line each one was. A recorded variable is evaluated. PyTorch:
        /// `max_pool1d` with `return_indices`.
        fn max_pool1d_with_indices | try_max_pool1d_with_indices(&self, kernel: impl Into<Sizes>, options: &PoolOptions)
            -> (Self, Tensor<i64>) = at {
            chosen(self, &Plan::new(self, 1, &kernel.into(), options, true, at)?, at)
        }

        /// [`max_pool2d`](Self::max_pool2d), and where in its plane `[h, w]`, in row-major order, each one was. A recorded
        /// variable is evaluated. PyTorch: `max_pool2d` with `return_indices`.
        fn max_pool2d_with_indices | try_max_pool2d_with_indices(&self, kernel: impl Into<Sizes>, options: &PoolOptions)
            -> (Self, Tensor<i64>) = at {
            chosen(self, &Plan::new(self, 2, &kernel.into(), options, true, at)?, at)
        }

        /// The mean of every window of `[n, c, l]` (or `[c, l]`). PyTorch: `nn.functional.avg_pool1d`.
        fn avg_pool1d | try_avg_pool1d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Self = at {
            mean(self, &Plan::new(self, 1, &kernel.into(), options, false, at)?, options, at)
        }

        /// The mean of every window of `[n, c, h, w]` (or `[c, h, w]`). PyTorch: `nn.functional.avg_pool2d`.
        ///
        /// ```
        /// use wengert_tensor::ops::{PoolOptions, Pooling};
        /// use wengert_tensor::prelude::*;
        ///
        /// let image = Tensor::<f64>::arange(16).reshape([1, 4, 4]);
        /// assert_eq!(image.avg_pool2d([2, 4], &PoolOptions::default()), Tensor::from([[[3.5], [11.5]]]));
        /// ```
        fn avg_pool2d | try_avg_pool2d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Self = at {
            mean(self, &Plan::new(self, 2, &kernel.into(), options, false, at)?, options, at)
        }
    }
}

impl<A: TensorLike<Elem: Float>> Pooling for A {}

/// The windows along one dimension.
#[derive(Clone, Copy, Debug)]
struct Axis {
    axis: usize,
    size: usize,
    window: Window,
    padding: usize,
    /// Number of windows.
    count: usize,
}

impl Axis {
    /// Elements before, and after (not all of them seen where negative).
    fn side(&self) -> (usize, isize, isize) {
        let needed = self.window.extent(self.count) as isize;
        (self.axis, self.padding as isize, needed - (self.padding + self.size) as isize)
    }

    /// Position of element `tap` of window `number`, where it is inside.
    fn place(&self, number: usize, tap: usize) -> Option<usize> {
        let place = (number * self.window.stride + tap * self.window.dilation).checked_sub(self.padding)?;
        (place < self.size).then_some(place)
    }
}

/// What a pooling does, checked.
struct Plan {
    /// Whether the input has no batch dimension.
    unbatched: bool,
    axes: Vec<Axis>,
}

impl Plan {
    fn new<A: TensorLike>(
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
            let (size, axis) = (shape[inner + 1 + k], 2 + k);
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
            axes.push((Axis { axis, size, window, padding: padding[k], count: count.max(0) as usize }, count));
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
fn count(size: usize, padding: usize, window: Window, ceil_mode: bool) -> isize {
    let stride = window.stride as isize;
    let room = (size + 2 * padding) as isize - window.span() as isize;
    let count = (room + if ceil_mode { stride - 1 } else { 0 }).div_euclid(stride) + 1;
    // The last window must begin inside the input or the padding before it.
    let beyond = ceil_mode && (count - 1) * stride >= (size + padding) as isize;
    if beyond { count - 1 } else { count }
}

fn largest<A: TensorLike<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<A, A::Error> {
    let rank = plan.axes.len() + 2;
    let (mut x, added) = batched(x, rank, at)?;
    debug_assert_eq!(added, plan.unbatched);
    for axis in plan.axes.iter().rev() {
        let padded = constant_padded(&x, &[axis.side()], f64::NEG_INFINITY, at)?;
        let tap = |number: usize| {
            let step = axis.window.stride as isize;
            let view = View::Slice { axis: axis.axis, start: number * axis.window.dilation, len: axis.count, step };
            padded.apply_view(view, at)
        };
        let mut best = tap(0)?;
        // Whether the window has met an element yet: the first one wins over padding though it be -∞ too.
        let mut met: Vec<bool> = (0..axis.count).map(|number| axis.place(number, 0).is_some()).collect();
        for number in 1..axis.window.kernel {
            let next = tap(number)?;
            let first: Vec<bool> =
                (0..axis.count).map(|window| !met[window] && axis.place(window, number).is_some()).collect();
            let mut wins = later_wins(&best, &next, at)?;
            if first.contains(&true) {
                met.iter_mut().zip(&first).for_each(|(met, first)| *met |= first);
                let mut shape = Shape::ones(rank);
                shape[axis.axis] = axis.count;
                let first = next.mask_over(&Tensor::try_from_vec(first, shape)?, &next.shape(), at)?;
                wins = wins.apply_binary(Binary::Maximum, &first, at)?;
            }
            best = A::apply_select(&wins, &next, &best, at)?;
        }
        x = best;
    }
    unbatched(x, added, at)
}

/// Where the later of two is taken: where it is larger or NaN. (The larger of two masks is "or".)
pub(super) fn later_wins<A: TensorLike>(first: &A, second: &A, at: Site) -> Result<A::Mask, A::Error> {
    let larger = second.apply_compare(Compare::Gt, first, at)?;
    larger.apply_binary(Binary::Maximum, &second.apply_compare(Compare::Ne, second, at)?, at)
}

/// The largest of every window and where they were, by going through the windows one after the other.
fn chosen<A: TensorLike<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<(A, Tensor<i64>), A::Error> {
    let (batch, added) = batched(x, plan.axes.len() + 2, at)?;
    let shape = batch.shape();
    let values = batch.to_tensor(at)?.to_vec();
    let plane: usize = shape[2..].iter().product();
    // A single line is a plane of one row.
    let whole = Window { kernel: 1, stride: 1, dilation: 1 };
    let row = Axis { axis: 2, size: 1, window: whole, padding: 0, count: 1 };
    let (rows, columns) = match plan.axes[..] {
        [columns] => (row, columns),
        [rows, columns] => (rows, columns),
        _ => unreachable!("poolings have one or two dimensions"),
    };
    let mut result: Shape = shape[..2].into();
    plan.axes.iter().for_each(|axis| result.push(axis.count));
    let mut places = Vec::with_capacity(result.numel());
    for values in values.chunks_exact(plane.max(1)) {
        for number in 0..rows.count * columns.count {
            let (i, j) = (number / columns.count, number % columns.count);
            let taps = (0..rows.window.kernel).filter_map(|tap| rows.place(i, tap));
            let mut best: Option<usize> = None;
            for h in taps {
                for w in (0..columns.window.kernel).filter_map(|tap| columns.place(j, tap)) {
                    let place = h * columns.size + w;
                    let wins = |best: usize| values[place] > values[best] || values[place].is_nan();
                    if best.is_none_or(wins) {
                        best = Some(place);
                    }
                }
            }
            places.push(best.unwrap_or(0) as i64);
        }
    }
    let indices = Tensor::try_from_vec(places, &result)?;
    let mut start = Shape::ones(result.rank());
    start[..2].copy_from_slice(&shape[..2]);
    let starts: Vec<i64> = (0..shape[0] * shape[1]).map(|line| (line * plane) as i64).collect();
    let positions = indices.plus(&Tensor::try_from_vec(starts, start)?, at)?;
    let values = batch.apply_take(&positions, at)?;
    Ok((unbatched(values, added, at)?, unbatched(indices, added, at)?))
}

fn mean<A: TensorLike<Elem: Float>>(x: &A, plan: &Plan, options: &PoolOptions, at: Site) -> Result<A, A::Error> {
    let rank = plan.axes.len() + 2;
    let (mut x, added) = batched(x, rank, at)?;
    let mut counts = Tensor::<A::Elem>::scalar(A::Elem::ONE);
    for axis in plan.axes.iter().rev() {
        let padded = constant_padded(&x, &[axis.side()], 0.0, at)?;
        let windows = axis.window.view(&padded, axis.axis, at)?;
        let mut shape = windows.shape();
        shape.remove(rank);
        x = windows.summed(&[rank], at)?.reshaped(shape, at)?;
        let mut along = Shape::ones(rank);
        along[axis.axis] = axis.count;
        let sizes = (0..axis.count).map(|number| A::Elem::from_f64(elements(axis, number, options) as f64));
        counts = Tensor::try_from_vec(sizes.collect(), along)?.times(&counts, at)?;
    }
    let result = match options.divisor_override {
        Some(divisor) => x.divided(divisor as f64, at)?,
        None => x.divided(&x.constant(&counts), at)?,
    };
    unbatched(result, added, at)
}

/// Elements of a window that its mean counts; at least one, as a sum of nothing is 0 whatever it is divided by.
fn elements(axis: &Axis, number: usize, options: &PoolOptions) -> usize {
    let start = number * axis.window.stride;
    let end = start + axis.window.kernel;
    let (first, last) = if options.count_include_pad {
        (start, end.min(axis.size + 2 * axis.padding))
    } else {
        (start.max(axis.padding), end.min(axis.size + axis.padding))
    };
    last.saturating_sub(first).max(1)
}

#[cfg(test)]
mod tests {
    use super::{PoolOptions, Pooling};
    use crate::prelude::*;

    #[test]
    fn both_ways_to_a_maximum_agree_and_the_first_of_ties_is_named() {
        let x = Tensor::from_fn([2, 2, 5, 4], |i| ((i[0] * 7 + i[1] * 5 + i[2] * 3 + i[3] * 2) % 4) as f64);
        for options in [
            PoolOptions::default(),
            PoolOptions::default().stride([1, 2]).padding(1),
            PoolOptions::default().stride(2).padding([1, 0]).ceil_mode(true),
            PoolOptions::default().stride(1).dilation(2),
        ] {
            let (values, indices) = x.max_pool2d_with_indices([3, 2], &options);
            assert_eq!(values, x.max_pool2d([3, 2], &options));
            let (outer, plane) = (values.flatten(0, 1).flatten(1, -1), x.flatten(0, 1).flatten(1, -1));
            assert_eq!(plane.gather(1, &indices.flatten(0, 1).flatten(1, -1)), outer);
        }
        let (_, first) = Tensor::from([[1.0, 1.0, 0.0]]).max_pool1d_with_indices(3, &PoolOptions::default());
        assert_eq!(first.to_vec(), [0]);
    }

    #[test]
    fn padding_is_less_than_anything_and_nan_more() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Tensor::from([[-inf, -inf, nan, 1.0]]);
        let y = x.max_pool1d(2, &PoolOptions::default().padding(1)).to_vec();
        assert_eq!(y[0], -inf);
        assert!(y[1].is_nan());
        assert_eq!(y[2], 1.0);
    }

    #[test]
    fn what_lies_beyond_the_padding_never_counts() {
        let x = Tensor::<f64>::ones([1, 4]);
        let mean = |options: PoolOptions| x.avg_pool1d(3, &options.ceil_mode(true).padding(1)).to_vec();
        assert_eq!(mean(PoolOptions::default()), [2.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(mean(PoolOptions::default().stride(2)), [2.0 / 3.0, 1.0, 0.5]);
        assert_eq!(mean(PoolOptions::default().count_include_pad(false)), [1.0, 1.0]);
        assert_eq!(mean(PoolOptions::default().divisor_override(1)), [2.0, 2.0]);
    }

    #[test]
    fn the_sentences_of_what_is_refused() {
        let x = Tensor::<f64>::zeros([1, 2, 2]);
        let error = x.try_max_pool2d(4, &PoolOptions::default()).unwrap_err();
        assert_eq!(
            error.sentence(),
            "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small"
        );
        let error = x.try_max_pool1d(3, &PoolOptions::default().padding(2)).unwrap_err();
        assert_eq!(
            error.sentence(),
            "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=3"
        );
    }
}
