//! The settings of a pooling window that moves over an input: its size, stride, padding, dilation and `ceil_mode`.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::PoolOptions;
use wengert_tensor::{Float, Sizes};

/// The settings of a pooling window that moves over an input, and the line of code that made the layer.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) kernel: Sizes,
    pub(super) stride: Option<Sizes>,
    pub(super) padding: Sizes,
    pub(super) dilation: Sizes,
    pub(super) ceil_mode: bool,
    pub(super) created_at: &'static Location<'static>,
}

impl Window {
    /// Returns a window of size `kernel` with the default settings.
    #[track_caller]
    pub(super) fn new(kernel: Sizes) -> Self {
        let created_at = Location::caller();
        Window { kernel, stride: None, padding: 0.into(), dilation: 1.into(), ceil_mode: false, created_at }
    }

    /// Returns the size and the options of a window, for the pooling operations.
    pub(super) fn size_and_options(&self) -> (Sizes, PoolOptions) {
        let options = PoolOptions::default().padding(self.padding.clone()).dilation(self.dilation.clone());
        let stride = self.stride.as_ref().unwrap_or(&self.kernel);
        (self.kernel.clone(), options.stride(stride.clone()).ceil_mode(self.ceil_mode))
    }

    /// Returns the description of the layer `name` and of its input `x`, for an error.
    pub(super) fn describe<T: Float>(&self, name: &str, x: Var<'_, T>) -> String {
        format!("{name}({:?}) on an input of shape {}", self.kernel.as_slice(), x.shape())
    }
}

/// Defines the builder methods `stride` and `ceil_mode` of [`MaxPool`](crate::MaxPool), [`AvgPool`](crate::AvgPool) and
/// [`LPPool`](crate::LPPool).
macro_rules! window_settings {
    () => {
        /// Sets the distance from one window to the next, one number for all dimensions or one for each. By default it is the size of a window,
        /// so that windows touch and do not overlap.
        #[must_use]
        pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
            self.window.stride = Some(stride.into());
            self
        }

        /// Chooses whether to add a last window that begins in the input or in the padding before it, but ends after the padding. The
        /// default is false.
        #[must_use]
        pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
            self.window.ceil_mode = ceil_mode;
            self
        }
    };
}

/// Defines the builder method `padding` of [`MaxPool`](crate::MaxPool), [`AvgPool`](crate::AvgPool) and [`MaxUnpool`](crate::MaxUnpool).
macro_rules! padding_setting {
    () => {
        /// Sets the number of elements that the pooling adds on each side of its input, one number for all dimensions or one for each. It
        /// must be at most half of the window's size; 0 by default.
        #[must_use]
        pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
            self.window.padding = padding.into();
            self
        }
    };
}

pub(super) use {padding_setting, window_settings};
