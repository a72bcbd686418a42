//! Describes the windows of recorded convolutions and poolings, for code that writes a recorded program in another form.

use crate::kernel::conv::geometry::WindowAxis;
use crate::ops::window::windowed::{ConvolutionForm, MeanForm, PoolingForm, Slot};

/// The windows along one dimension of a convolution or a maximum pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct MovingWindow {
    /// The size of the input.
    pub input: usize,
    /// The number of elements of a window.
    pub kernel: usize,
    /// The number of windows.
    pub output: usize,
    /// The distance between the first elements of neighbouring windows.
    pub stride: usize,
    /// The distance between neighbouring elements of a window.
    pub dilation: usize,
    /// The number of padding elements before the input.
    pub before: usize,
}

/// One window along a dimension of a mean pooling.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(hidden)]
pub struct MeanWindow {
    /// The index of the window's first element in the input.
    pub start: usize,
    /// The index after the window's last element in the input.
    pub end: usize,
    /// The factor of the mean's divisor that belongs to this dimension.
    pub divisor: f64,
}

impl ConvolutionForm {
    /// Returns the windows along each dimension after the first two.
    pub fn windows(&self) -> Vec<MovingWindow> {
        let [input, kernel, output] = [Slot::Input, Slot::Weight, Slot::Output].map(|slot| self.shape(slot));
        let window = |k: usize| MovingWindow {
            input: input[2 + k],
            kernel: kernel[2 + k],
            output: output[2 + k],
            stride: self.stride[k],
            dilation: self.dilation[k],
            before: self.before[k],
        };
        (0..self.stride.len()).map(window).collect()
    }

    /// Returns the number of groups of channels.
    pub fn groups(&self) -> usize {
        self.groups
    }
}

impl PoolingForm {
    /// Returns the windows along each dimension after the first two.
    pub fn moving_windows(&self) -> Vec<MovingWindow> {
        let planes = [self.windows.rows, self.windows.columns];
        // A pooling over one dimension has no rows.
        let pooled = &planes[4usize.saturating_sub(self.input.rank()).min(1)..];
        let window = |&WindowAxis { input, kernel, output, stride, dilation, before }: &WindowAxis| MovingWindow {
            input,
            kernel,
            output,
            stride,
            dilation,
            before,
        };
        pooled.iter().map(window).collect()
    }
}

impl MeanForm {
    /// Returns a list of windows for each dimension after the first two.
    pub fn mean_windows(&self) -> Vec<Vec<MeanWindow>> {
        let planes = [self.windows.rows, self.windows.columns];
        // A pooling over one dimension has no rows.
        let pooled = &planes[4usize.saturating_sub(self.input.rank()).min(1)..];
        let list = pooled.iter().map(|spans| {
            let window = |number: usize| {
                let (start, end) = spans.span(number);
                MeanWindow { start, end, divisor: spans.divisor(number) }
            };
            (0..spans.count()).map(window).collect()
        });
        list.collect()
    }
}
