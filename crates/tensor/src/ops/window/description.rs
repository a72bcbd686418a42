//! Describes the windows of recorded poolings, for code that exports a recorded program, for example to ONNX.

pub use crate::kernel::conv::geometry::WindowAxis;
use crate::ops::window::windowed::{MaxPoolForm, MeanPoolForm, PoolForm};

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

impl<P> PoolForm<P> {
    /// Returns only `columns` for a pooling over one dimension, and otherwise `rows` and `columns`.
    fn pooled<W>(&self, [rows, columns]: [W; 2]) -> Vec<W> {
        if self.input.rank() == 3 { vec![columns] } else { vec![rows, columns] }
    }
}

impl MaxPoolForm {
    /// Returns the windows along each dimension after the first two.
    pub fn moving_windows(&self) -> Vec<WindowAxis> {
        self.pooled([self.windows.rows, self.windows.columns])
    }
}

impl MeanPoolForm {
    /// Returns a list of windows for each dimension after the first two.
    pub fn mean_windows(&self) -> Vec<Vec<MeanWindow>> {
        let list = self.pooled([&self.windows.rows, &self.windows.columns]).into_iter().map(|spans| {
            let window = |number: usize| {
                let (start, end) = spans.span(number);
                MeanWindow { start, end, divisor: spans.divisor(number) }
            };
            (0..spans.count()).map(window).collect()
        });
        list.collect()
    }
}
