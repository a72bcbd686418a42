//! Copies the sliding windows of images into the columns of a matrix, and adds the columns of a matrix to the windows of images.

use wengert_macros::twins;

use crate::ops::shape::padding::{AxisPadding, pad_constant};
use crate::ops::window::windows::{Window, add_batch, per_dimension_at_least, remove_batch};
use crate::ops::{Compose, Result, TensorLike};
use crate::{Error, Number, Site, Sizes, ensure};

/// Sliding windows as columns of a matrix.
#[twins(blanket)]
pub trait Columns: TensorLike {
    /// Returns the windows of `[n, c, h, w]` as columns `[n, c · kh · kw, windows]`. For `[c, h, w]`, the result has no dimension `n`. The
    /// windows, and the elements of each window, are in row-major order. A window has `kh` rows and `kw` columns. Adds `padding` zeros at both ends of `h` and `w`. Refuses sizes of 0 except the batch size, and a window that
    /// is larger than the padded image. PyTorch: `nn.functional.unfold`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
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
        let padding = per_dimension_at_least(&padding.into(), 2, ("padding", 0), at)?;
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
        let paddings =
            [0, 1].map(|k| AxisPadding { axis: 2 + k, left: padding[k] as isize, right: padding[k] as isize });
        let padded = pad_constant(&x, &paddings, 0.0, at)?;
        let view = windows[1].view(&windows[0].view(&padded, 2, at)?, 3, at)?;
        // Permutes [n, c, oh, ow, kh, kw] to [n, c, kh, kw, oh, ow], for oh · ow windows of kh · kw elements.
        let rows = shape[1] * windows[0].kernel * windows[1].kernel;
        let columns =
            view.permute_to(&[0, 1, 4, 5, 2, 3], at)?.reshape_to([shape[0], rows, counts[0] * counts[1]], at)?;
        remove_batch(columns, added, at)
    }

    /// Adds the columns `[n, c · kh · kw, windows]` as windows to images `[n, c, h, w]` of zeros: the adjoint of [`im2col`](Self::im2col).
    /// `output_size` is h and w. The batch dimension may be absent. Elements in the padding are dropped. Refuses columns with sizes of 0
    /// except the batch size, and a number of columns other than the number of windows. Also refuses a number of rows that is no multiple of
    /// `kh · kw`. PyTorch: `nn.functional.fold`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let columns = Tensor::<f64>::ones([4, 4]);
    /// let image = columns.col2im([3, 3], 2, 1, 0, 1);
    /// assert_eq!(image, Tensor::from([[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]));
    /// ```
    #[doc(alias("fold"))]
    fn try_col2im(
        &self,
        output_size: impl Into<Sizes>,
        kernel: impl Into<Sizes>,
        dilation: impl Into<Sizes>,
        padding: impl Into<Sizes>,
        stride: impl Into<Sizes>,
    ) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("col2im");
        let shape = self.shape();
        ensure!(
            matches!(shape.rank(), 2 | 3) && !shape[shape.rank() - 2..].contains(&0),
            at,
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, \
             but got: {shape}"
        );
        let windows = windows(&kernel.into(), &dilation.into(), &stride.into(), at)?;
        let size = per_dimension_at_least(&output_size.into(), 2, ("output_size", 0), at)?;
        let padding = per_dimension_at_least(&padding.into(), 2, ("padding", 0), at)?;
        let padded = [0, 1].map(|k| size[k].saturating_add(padding[k].saturating_mul(2)));
        let counts = [0, 1].map(|k| windows[k].count(padded[k]));
        let (x, added) = add_batch(self, 3, at)?;
        let (n, rows, columns) = (x.shape()[0], x.shape()[1], x.shape()[2]);
        let [kh, kw] = windows.map(|window| window.kernel);
        let cells = kh.saturating_mul(kw);
        let (first, last) = (shape.rank() - 2, shape.rank() - 1);
        ensure!(
            rows.is_multiple_of(cells),
            at,
            "Expected size of input's dimension {first} to be divisible by the product of kernel_size, but got \
             input.size({first})={rows} and kernel_size=({kh}, {kw})."
        );
        let [oh, ow] = counts;
        let pair = |pair: [usize; 2]| format!("({}, {})", pair[0], pair[1]);
        ensure!(
            oh.saturating_mul(ow) == columns,
            at,
            "Given output_size={}, kernel_size=({kh}, {kw}), dilation={}, padding={}, stride={}, expected size of input's \
             dimension {last} to match the calculated number of sliding blocks {oh} * {ow} = {}, but got \
             input.size({last})={columns}.",
            pair([size[0], size[1]]),
            pair(windows.map(|window| window.dilation)),
            pair([padding[0], padding[1]]),
            pair(windows.map(|window| window.stride)),
            oh.saturating_mul(ow)
        );
        // Permutes [n, c, kh, kw, oh, ow] to [n, c, kh, oh, ow, kw], so that the last two dimensions are the windows of one row of an
        // image.
        let split = x.reshape_to([n, rows / cells, kh, kw, oh, ow], at)?.permute_to(&[0, 1, 2, 4, 5, 3], at)?;
        let lines = windows[1].embed(&split, 4, padded[1], at)?.permute_to(&[0, 1, 3, 4, 2], at)?;
        let mut image = windows[0].embed(&lines, 2, padded[0], at)?;
        for k in 0..2 {
            image = image.slice_axis(2 + k, padding[k], size[k], at)?;
        }
        remove_batch(image, added, at)
    }
}

fn windows(kernel: &Sizes, dilation: &Sizes, stride: &Sizes, at: Site) -> Result<[Window; 2], Error> {
    let kernel = per_dimension_at_least(kernel, 2, ("kernel_size", 1), at)?;
    let dilation = per_dimension_at_least(dilation, 2, ("dilation", 1), at)?;
    let stride = per_dimension_at_least(stride, 2, ("stride", 1), at)?;
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

    /// The images are PyTorch's.
    #[test]
    fn columns_are_added_to_images() {
        let columns = Tensor::<f64>::arange(16).reshape([1, 4, 4]);
        let image = Tensor::from([[[[0.0, 5.0, 5.0], [10.0, 30.0, 20.0], [10.0, 25.0, 15.0]]]]);
        assert_eq!(columns.col2im([3, 3], 2, 1, 0, 1), image);
        assert_eq!(columns.col2im(2, 2, 1, 1, 2), Tensor::from([[[[12.0, 9.0], [6.0, 3.0]]]]));
        let wide = Tensor::<i64>::arange(24).reshape([4, 6]).col2im([3, 4], 2, 1, 0, 1);
        assert_eq!(wide, Tensor::from([[[0i64, 7, 9, 8], [15, 44, 48, 31], [15, 37, 39, 23]]]));
        let apart = Tensor::<f64>::arange(4).reshape([1, 4, 1]).col2im(3, 2, 2, 0, 1);
        assert_eq!(apart, Tensor::from([[[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]]]]));
        assert_eq!(Tensor::<f64>::zeros([0, 4, 4]).col2im(3, 2, 1, 0, 1).shape(), &[0, 1, 3, 3]);
    }

    /// The columns of an image, added as windows again, give each element times the number of its windows. For long rows, the loops are
    /// nested in another order than for short rows.
    #[test]
    fn columns_of_every_width_are_added() {
        for (width, stride, kernel, dilation) in
            [(4, 1, 3, 1), (40, 1, 3, 1), (41, 2, 3, 1), (50, 3, 2, 1), (60, 1, 5, 3), (9, 1, 8, 1)]
        {
            let x =
                Tensor::<f64>::from_fn([2, 3, 17, width], |i| ((i[0] * 7 + i[1] * 31 + i[2] * 5 + i[3]) % 13) as f64);
            let columns = x.im2col([2, kernel], [1, dilation], [0, 1], [1, stride]);
            let ones = Tensor::<f64>::ones([2, 3, 17, width]).im2col([2, kernel], [1, dilation], [0, 1], [1, stride]);
            let size = [17, width as isize];
            let [image, counts] =
                [columns, ones].map(|it| it.col2im(size, [2, kernel], [1, dilation], [0, 1], [1, stride]));
            assert_eq!(image, &x * &counts, "{width} {stride} {kernel} {dilation}");
            assert!(counts.amax(..).item() > 1.0);
        }
    }

    /// The error messages are PyTorch's.
    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let sentence = |shape: &[usize], stride: isize| {
            Tensor::<f64>::zeros(shape).try_col2im(3, 2, 1, 0, stride).unwrap_err().sentence()
        };
        assert_eq!(
            sentence(&[4], 1),
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for \
             input, but got: [4]"
        );
        assert_eq!(
            sentence(&[1, 3, 4], 1),
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=3 \
             and kernel_size=(2, 2)."
        );
        assert_eq!(
            sentence(&[1, 4, 5], 1),
            "Given output_size=(3, 3), kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1), expected size of \
             input's dimension 2 to match the calculated number of sliding blocks 2 * 2 = 4, but got input.size(2)=5."
        );
        assert_eq!(sentence(&[1, 4, 4], 0), "non-positive stride is not supported");
    }
}
