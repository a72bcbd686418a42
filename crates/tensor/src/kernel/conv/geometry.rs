//! The sizes of a convolution and the positions of its windows. This file reads no elements.

use crate::memory::threads::Schedule;
use crate::thresholds::conv::MIN_PARALLEL;

/// The windows along one spatial dimension of a convolution or pooling.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// The size of the input `x` along the dimension.
    pub input: usize,
    /// The size of the weights `w`, or of a pooling's window, along the dimension.
    pub kernel: usize,
    /// The size of the result `z` along the dimension.
    pub output: usize,
    /// The distance between adjacent windows, in elements of the input.
    pub stride: usize,
    /// The distance between adjacent elements of a window, in elements of the input.
    pub dilation: usize,
    /// The number of padding elements before the input.
    pub padding_before: usize,
}

impl WindowAxis {
    /// A spatial dimension of size 1, for convolutions with fewer than three dimensions.
    pub(crate) const NONE: WindowAxis =
        WindowAxis { input: 1, kernel: 1, output: 1, stride: 1, dilation: 1, padding_before: 0 };

    /// Returns the position of element `tap` of the window with index `window` in the input, or `None` if the element is in the padding.
    #[inline(always)]
    pub(crate) fn input_position(&self, window: usize, tap: usize) -> Option<usize> {
        (window * self.stride + tap * self.dilation)
            .checked_sub(self.padding_before)
            .filter(|&place| place < self.input)
    }

    /// Returns the half-open range of the windows whose element at position `tap` is inside the input, not in the padding.
    #[inline(always)]
    pub(crate) fn windows_inside(&self, tap: usize) -> (usize, usize) {
        let shift = tap * self.dilation;
        let (first, end) =
            (self.padding_before.saturating_sub(shift), (self.input + self.padding_before).saturating_sub(shift));
        let windows = |places: usize| if self.stride == 1 { places } else { places.div_ceil(self.stride) };
        let end = windows(end).min(self.output);
        (windows(first).min(end), end)
    }
}

/// The sizes of a convolution. All of them are positive, except that the padding of an axis may be 0. `batch` is the number of images.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// The number of input channels in a group.
    pub(crate) channels: usize,
    /// The number of output channels in a group.
    pub(crate) out: usize,
    pub(crate) axes: [WindowAxis; 3],
}

impl Geometry {
    pub(crate) fn tap_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Returns the number of rows of the matrix whose columns are the windows. It has one row for each channel and tap (a position in the
    /// window).
    pub(crate) fn column_rows(&self) -> usize {
        self.channels * self.tap_count()
    }

    /// Returns the number of windows in an image.
    pub(crate) fn window_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Returns the number of elements in one channel of an image of `x`.
    pub(crate) fn input_plane_len(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    pub(crate) fn group_weight_count(&self) -> usize {
        self.out * self.column_rows()
    }

    /// Returns the schedule for a convolution or one of its adjoints. Small ones run on one thread.
    pub(crate) fn schedule(&self) -> Schedule {
        let factors = [self.batch, self.groups, self.group_weight_count(), self.window_count()];
        Schedule::parallel_from(MIN_PARALLEL, factors.into_iter().fold(1, usize::saturating_mul))
    }
}
