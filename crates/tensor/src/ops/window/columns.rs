//! Copies the sliding windows of images into the columns of a matrix.

use wengert_macros::twins;

use crate::ops::primitive::compose::Compose;
use crate::ops::shape::padding::pad_constant;
use crate::ops::window::windows::{Window, add_batch, at_least, remove_batch};
use crate::ops::{Result, TensorLike};
use crate::{Error, Site, Sizes, ensure};

/// Sliding windows as columns of a matrix.
#[twins]
pub trait Columns: TensorLike {
    /// Returns the windows of `[n, c, h, w]` (or `[c, h, w]`) as columns `[n, c · kh · kw, windows]`, in row-major order. A window has `kh`
    /// rows and `kw` columns. Adds `padding` zeros on both sides of `h` and `w`. PyTorch: `nn.functional.unfold`.
    ///
    /// ```
    /// # use wengert_tensor as wengert;
    /// use wengert::prelude::*;
    ///
    /// let image = Tensor::<f64>::arange(6).reshape([1, 2, 3]);
    /// let columns = image.im2col([2, 2], 1, 0, 1);
    /// assert_eq!(columns, Tensor::from([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [4.0, 5.0]]));
    /// ```
    fn try_im2col(
        &self,
        kernel: impl Into<Sizes>,
        dilation: impl Into<Sizes>,
        padding: impl Into<Sizes>,
        stride: impl Into<Sizes>,
    ) -> Result<Self> {
        let at = Site::here("im2col");
        let own = self.shape();
        let inner = own.rank().saturating_sub(3);
        ensure!(
            inner <= 1 && own.rank() >= 3 && !own[inner..].contains(&0),
            at,
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
                 input, but got: {own}"
        );
        let windows = windows(&kernel.into(), &dilation.into(), &stride.into(), at)?;
        let padding = at_least(&padding.into(), 2, ("padding", 0), at)?;
        let (x, added) = add_batch(self, 4, at)?;
        let shape = x.shape();
        let counts = [0, 1].map(|k| windows[k].count(shape[2 + k].saturating_add(padding[k].saturating_mul(2))));
        let pair = |pair: [usize; 2]| format!("({}, {})", pair[0], pair[1]);
        ensure!(
            !counts.contains(&0),
            at,
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of \
             sliding blocks as {}, but its components must be at least one.",
            pair([shape[2], shape[3]]),
            pair(windows.map(|window| window.kernel)),
            pair(windows.map(|window| window.dilation)),
            pair([padding[0], padding[1]]),
            pair(counts)
        );
        let sides = [0, 1].map(|k| (2 + k, padding[k] as isize, padding[k] as isize));
        let padded = pad_constant(&x, &sides, 0.0, at)?;
        let view = windows[1].view(&windows[0].view(&padded, 2, at)?, 3, at)?;
        // Permutes [n, c, oh, ow, kh, kw] to [n, c, kh, kw, oh, ow], for oh · ow windows of kh · kw elements.
        let rows = shape[1] * windows[0].kernel * windows[1].kernel;
        let columns =
            view.permute_to(&[0, 1, 4, 5, 2, 3], at)?.reshape_to([shape[0], rows, counts[0] * counts[1]], at)?;
        remove_batch(columns, added, at)
    }
}

impl<A: TensorLike> Columns for A {}

fn windows(kernel: &Sizes, dilation: &Sizes, stride: &Sizes, at: Site) -> Result<[Window; 2], Error> {
    let kernel = at_least(kernel, 2, ("kernel_size", 1), at)?;
    let dilation = at_least(dilation, 2, ("dilation", 1), at)?;
    let stride = at_least(stride, 2, ("stride", 1), at)?;
    Ok([0, 1].map(|k| Window { kernel: kernel[k], stride: stride[k], dilation: dilation[k] }))
}

#[cfg(test)]
mod tests {
    use crate::ops::window::columns::Columns;
    use crate::prelude::*;

    #[test]
    fn channels_come_first_and_padding_is_zero() {
        let x = Tensor::from([[[[1.0]], [[2.0]]]]);
        let columns = x.im2col([2, 1], 1, [1, 0], 1);
        assert_eq!(columns, Tensor::from([[[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]]));
        assert!(x.try_im2col(2, 1, 0, 1).is_err());
    }
}
