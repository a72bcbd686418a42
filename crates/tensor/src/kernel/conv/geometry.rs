//! The sizes of convolutions and the positions of their windows' elements: pure arithmetic without data.

/// One spatial dimension of a convolution or pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// Sizes of `x`, `w` and `z`.
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) output: usize,
    /// Distance between windows: the stride.
    pub(crate) stride: usize,
    /// Distance between elements of a window: the dilation.
    pub(crate) dilation: usize,
    /// Padding before the input.
    pub(crate) before: usize,
}

impl WindowAxis {
    /// A dimension of size 1.
    pub(crate) const NONE: WindowAxis =
        WindowAxis { input: 1, kernel: 1, output: 1, stride: 1, dilation: 1, before: 0 };

    /// The position of element `tap` of window `number`; `None` in the padding.
    #[inline(always)]
    pub(crate) fn place(&self, number: usize, tap: usize) -> Option<usize> {
        (number * self.stride + tap * self.dilation).checked_sub(self.before).filter(|&place| place < self.input)
    }

    /// The half-open range of windows whose element `tap` is inside the input.
    #[inline(always)]
    pub(crate) fn inside(&self, tap: usize) -> (usize, usize) {
        let shift = tap * self.dilation;
        let (first, end) = (self.before.saturating_sub(shift), (self.input + self.before).saturating_sub(shift));
        let windows = |places: usize| if self.stride == 1 { places } else { places.div_ceil(self.stride) };
        let end = windows(end).min(self.output);
        (windows(first).min(end), end)
    }
}

/// The sizes of a convolution. Only `batch` may be 0.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// Input channels of a group.
    pub(crate) channels: usize,
    /// Output channels of a group.
    pub(crate) out: usize,
    pub(crate) axes: [WindowAxis; 3],
}

impl Geometry {
    pub(crate) fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Rows of the matrix of columns.
    pub(crate) fn rows(&self) -> usize {
        self.channels * self.taps()
    }

    /// Windows of one image.
    pub(crate) fn windows(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Elements of one channel of `x`.
    pub(crate) fn plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Elements of the weights of a group.
    pub(crate) fn weights(&self) -> usize {
        self.out * self.rows()
    }
}
