//! Samples of images at the points of a grid.
//!
//! A coordinate in [-1, 1] becomes a position among the pixels. A sample is the nearest pixel, or a mean of the four neighbouring pixels.
//! The weight of a pixel is the area of the rectangle between the point and the diagonally opposite pixel (M. Jaderberg and others,
//! "Spatial transformer networks", 2015).

use wengert_macros::{precompiled, twins};

use crate::kernel::gather::{self, GridPoint, Planes};
use crate::memory::reserve::check_list;
use crate::ops::{ArrayOperand, Compose, Composite, Result, TensorLike};
use crate::{Binary, Compare, Error, Float, Scalar, Shape, Site, Sizes, Tensor, Unary, ensure};

/// The formula by which a sample at a point between pixels is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridMode {
    /// The weighted mean of the four neighbours. A nearer neighbour has a larger weight. PyTorch: `bilinear`.
    #[default]
    Bilinear,
    /// The nearest pixel. If two pixels are equally near, the pixel with the even index. PyTorch: `nearest`.
    Nearest,
}

/// The values outside of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridPadding {
    /// Pixels of 0. PyTorch: `zeros`.
    #[default]
    Zeros,
    /// The nearest pixel of the border. PyTorch: `border`.
    Border,
    /// The image, reflected at its borders. PyTorch: `reflection`.
    Reflection,
}

/// Sampling at the points of a grid, and grids of affine maps.
#[twins(blanket)]
pub trait GridSampling: TensorLike<Elem: Float> {
    /// Returns samples `[n, c, a, b]` of images `[n, c, h, w]` at the points `grid`, `[n, a, b, 2]`. A point is a pair (x, y): -1 and 1 are
    /// the centres of the first and the last pixel with `align_corners`, otherwise their outer edges. A NaN among the coordinates gives NaN
    /// with `Bilinear` and `Zeros`, and 0 with `Nearest` and `Zeros`. With other padding, the coordinate counts as the first pixel. An
    /// infinite coordinate gives the same results, except with `Border`. The gradient to the grid is 0 for `Nearest`. With `Border` and
    /// `Reflection`, it is also 0 for positions at or beyond the first or last pixel, after the reflection. Refuses images without pixels.
    /// PyTorch: `nn.functional.grid_sample`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::{GridMode, GridPadding};
    /// use wengert::prelude::*;
    ///
    /// let image = Tensor::from([[[[0.0, 10.0], [20.0, 30.0]]]]);
    /// let grid = Tensor::from([[[[0.0, 0.0], [-1.0, 1.0]]]]); // the middle, and the corner at the lower left
    /// let samples = image.grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, true);
    /// assert_eq!(samples.to_vec(), [15.0, 20.0]);
    /// ```
    fn try_grid_sample(
        &self,
        grid: impl ArrayOperand<Self>,
        mode: GridMode,
        padding: GridPadding,
        align_corners: bool,
    ) -> Result<Self> {
        let grid = &grid.into_array(self)?;
        let at = Site::here("grid_sample");
        check(&self.shape(), &grid.shape(), at)?;
        let shape = self.shape();
        let position = |k: usize| {
            let coordinate = grid.slice_axis(3, k, 1, at)?;
            let flat = coordinate.shape();
            let coordinate = coordinate.reshape_to([flat[0], 1, flat[1], flat[2]], at)?;
            Self::apply_composite([&coordinate], &PixelPositions { size: shape[3 - k], padding, align_corners }, at)
        };
        let (x, y) = (position(0)?, position(1)?);
        if self.is_plain() {
            return self.try_constant(&self.to_tensor(at)?.sample_tensor(
                &x.to_tensor(at)?,
                &y.to_tensor(at)?,
                mode,
                at,
            )?);
        }
        match mode {
            GridMode::Nearest => {
                let column = PixelIndices::new(&x.apply_unary(Unary::Round, at)?, shape[3], 0, at)?;
                let row = PixelIndices::new(&y.apply_unary(Unary::Round, at)?, shape[2], 0, at)?;
                // The nearest pixel stays the same if the grid changes slightly, so the gradient of the grid is zero.
                pixels(self, &row, &column, at)?.with_zero_gradients(&[grid], at)
            }
            GridMode::Bilinear => bilinear(self, &x, &y, at),
        }
    }

    /// Returns the grid of each affine map of `self`, for [`grid_sample`](Self::grid_sample). Maps `[n, 2, 3]` and images of `size`
    /// `[n, c, h, w]` give `[n, h, w, 2]`. Maps `[n, 3, 4]` and volumes of `size` `[n, c, d, h, w]` give `[n, d, h, w, 3]`. The point of a
    /// pixel is the map's matrix times (x, y, 1), or times (x, y, z, 1) for volumes. Here -1 and 1 are the centres of the first and the
    /// last pixel with `align_corners`, otherwise their outer edges. A single pixel along a dimension has the coordinate 0. Refuses sizes
    /// that are not positive. PyTorch: `nn.functional.affine_grid`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::{GridMode, GridPadding};
    /// use wengert::prelude::*;
    ///
    /// let image = Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]]);
    /// let mirror = Tensor::from([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]);
    /// let grid = mirror.affine_grid(image.shape(), true);
    /// let mirrored = image.grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, true);
    /// assert_eq!(mirrored, Tensor::from([[[[2.0, 1.0], [4.0, 3.0]]]]));
    /// ```
    fn try_affine_grid(&self, size: impl Into<Sizes>, align_corners: bool) -> Result<Self> {
        let (size, own, at) = (size.into(), self.shape(), Site::here("affine_grid"));
        let sizes = size.as_slice();
        let dims = match sizes.len() {
            rank @ (4 | 5) => rank - 2,
            _ => {
                let message = format!(
                    "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size \
                     {sizes:?}."
                );
                return Err(Error::argument(at, message).into());
            }
        };
        ensure!(
            own.rank() == 3 && own[1..] == [dims, dims + 1],
            at,
            "Expected a batch of {dims}D affine matrices of shape Nx{dims}x{} for size {sizes:?}. Got {own}.",
            dims + 1
        );
        ensure!(sizes.iter().all(|&size| size > 0), at, "Expected non-zero, positive output size. Got {sizes:?}");
        let size = size.resolve_plain(at)?;
        ensure!(size[0] == own[0], at, "expected {} affine matrices for size {size}, but got {}", size[0], own[0]);
        let pixels = Shape::from(&size[2..]);
        let count = pixels.checked_numel().unwrap_or(usize::MAX);
        let coordinate = |size: usize, index: usize| {
            let (offset, width) = if align_corners { (0.0, size as f64 - 1.0) } else { (1.0, size as f64) };
            if size == 1 { 0.0 } else { (2.0 * index as f64 + offset) / width - 1.0 }
        };
        let base = Tensor::build(&Shape::from([1, count, dims + 1]), at, |out| {
            for (position, point) in out.chunks_exact_mut(dims + 1).enumerate() {
                let mut rest = position;
                // x is the coordinate along the last dimension, y along the one before.
                for (out, &size) in point.iter_mut().zip(pixels.iter().rev()) {
                    *out = Self::Elem::from_f64(coordinate(size, rest % size));
                    rest /= size;
                }
                point[dims] = Self::Elem::ONE;
            }
        })?;
        let base = self.try_constant(&base)?.expand_to(&Shape::from([own[0], count, dims + 1]), at)?;
        let mut shape = pixels;
        shape.insert(0, own[0]);
        shape.push(dims);
        base.apply_matmul(&self.permute_to(&[0, 2, 1], at)?, at)?.reshape_to(shape, at)
    }
}

fn check(image: &Shape, grid: &Shape, at: Site) -> Result<(), Error> {
    let sizes = || format!("got input with sizes {image} and grid with sizes {grid}");
    ensure!(
        image.first() == grid.first(),
        at,
        "grid_sampler(): expected grid and input to have same batch size, but {}",
        sizes()
    );
    ensure!(
        image.rank() == 4 && grid.rank() == 4,
        at,
        "grid_sampler(): expected 4D input and grid with same number of dimensions, but {}",
        sizes()
    );
    ensure!(
        grid[3] == 2,
        at,
        "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes {grid}"
    );
    for axis in 2..4 {
        ensure!(
            image[axis] > 0,
            at,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {image} with \
             dimension {axis} being empty"
        );
    }
    Ok(())
}

/// A composite operation: the positions of coordinates among `size` pixels. `Border` and `Reflection` move positions outside of the image
/// into it.
struct PixelPositions {
    size: usize,
    padding: GridPadding,
    align_corners: bool,
}

impl Composite for PixelPositions {
    fn apply<A: TensorLike<Elem: Float>>(&self, [coordinate]: [&A; 1], at: Site) -> Result<A> {
        let PixelPositions { size, padding, align_corners } = *self;
        let last = size as f64 - 1.0;
        let shifted = coordinate.plus(1.0, at)?;
        let position = match align_corners {
            true => shifted.divide_by(2.0, at)?.times(last, at)?,
            false => shifted.times(size as f64, at)?.minus(1.0, at)?.divide_by(2.0, at)?,
        };
        match padding {
            GridPadding::Zeros => Ok(position),
            GridPadding::Border => clamp_to_pixels(&position, last, at),
            GridPadding::Reflection if align_corners => clamp_to_pixels(&reflect(&position, 0.0, last, at)?, last, at),
            GridPadding::Reflection => clamp_to_pixels(&reflect(&position, -0.5, size as f64, at)?, last, at),
        }
    }
}

/// Clamps `position` to the range from 0 to `last`. The derivative is 0 at both ends and outside. NaN becomes 0.
fn clamp_to_pixels<A: TensorLike<Elem: Float>>(position: &A, last: f64, at: Site) -> Result<A> {
    let above = position.compare(Compare::Gt, 0.0, at)?;
    let position = position.choose(&above, 0.0, at)?;
    let inside = position.compare(Compare::Lt, last, at)?;
    position.choose(&inside, last, at)
}

/// Returns `position`, reflected at the ends of the range from `low` to `low + span` until it is in the range. Returns 0 if `span` is 0.
fn reflect<A: TensorLike<Elem: Float>>(position: &A, low: f64, span: f64, at: Site) -> Result<A> {
    if span == 0.0 {
        return position.fill_shape(0.0, &position.shape(), at)?.with_zero_gradients(&[position], at);
    }
    let distance = position.minus(low, at)?.apply_unary(Unary::Abs, at)?;
    let extra = distance.combine(Binary::Fmod, span, at)?;
    let flips = distance.apply_detach(at)?.divide_by(span, at)?.apply_unary(Unary::Floor, at)?;
    let is_even = flips.combine(Binary::Fmod, 2.0, at)?.compare(Compare::Eq, 0.0, at)?;
    let forth = extra.plus(low, at)?;
    let back = extra.times(-1.0, at)?.plus(span + low, at)?;
    A::apply_select(&is_even, &forth, &back, at)
}

/// The pixels that the samples read along one dimension, one per sample.
struct PixelIndices {
    /// The index of each pixel. A position outside of the image becomes the first or the last pixel; NaN becomes the first.
    index: Tensor<i64>,
    /// True if the position is inside of the image.
    inside: Tensor<bool>,
}

impl PixelIndices {
    /// Returns the pixels at the positions `places` plus `step`. The positions are whole numbers, infinite or NaN. The dimension has `size`
    /// pixels.
    fn new<A: TensorLike<Elem: Float>>(places: &A, size: usize, step: i64, at: Site) -> Result<Self, A::Error> {
        let places = places.to_tensor(at)?;
        let shape = places.shape().clone();
        let last = size as f64 - 1.0;
        let moved = |place: A::Elem| place.to_f64() + step as f64;
        let places = places.row_major_elements(at)?;
        let index = Tensor::build(&shape, at, |out| {
            for (out, &place) in out.iter_mut().zip(&*places) {
                *out = moved(place).clamp(0.0, last) as i64;
            }
        })?;
        let inside = Tensor::build(&shape, at, |out| {
            for (out, &place) in out.iter_mut().zip(&*places) {
                *out = (0.0..=last).contains(&moved(place));
            }
        })?;
        Ok(PixelIndices { index, inside })
    }
}

#[precompiled]
impl<T: Float> Tensor<T> {
    /// Returns samples `[n, c, a, b]` at the columns `x` and the rows `y`, both `[n, 1, a, b]`. Pixels outside of the image are 0.
    fn sample_tensor(&self, x: &Self, y: &Self, mode: GridMode, at: Site) -> Result<Self, Error> {
        let (image, shape) = (self.row_major_elements(at)?, self.shape());
        let points_per_plane = x.shape()[2] * x.shape()[3];
        let planes = Planes::new([shape[1], shape[2], shape[3]], points_per_plane, mode == GridMode::Bilinear);
        let target = x.shape().with_size(1, shape[1]);
        check_list::<GridPoint<T>>(x.numel(), at)?;
        let whole = if mode == GridMode::Bilinear { Unary::Floor } else { Unary::Round };
        let (left, top) = (x.apply_unary(whole, at)?, y.apply_unary(whole, at)?);
        let (lefts, tops) = (left.row_major_elements(at)?, top.row_major_elements(at)?);
        let corners = lefts.iter().zip(&*tops);
        match mode {
            GridMode::Bilinear => {
                let (columns, rows) = (x.row_major_elements(at)?, y.row_major_elements(at)?);
                let places = columns.iter().zip(&*rows).zip(corners);
                let point =
                    |((&x, &y), (&left, &top)): ((&T, &T), (&T, &T))| GridPoint::new([x, y], [left, top], &planes);
                let points: Vec<_> = places.map(point).collect();
                Tensor::build(&target, at, |out| gather::sample(&image, &planes, &points, out))
            }
            GridMode::Nearest => {
                let positions: Vec<usize> = corners.map(|(&left, &top)| planes.nearest(top, left)).collect();
                Tensor::build(&target, at, |out| gather::sample_nearest(&image, &planes, &positions, out))
            }
        }
    }
}

/// Returns the pixels `[n, c, a, b]` at rows and columns `[n, 1, a, b]`, and 0 outside of the images.
fn pixels<A: TensorLike<Elem: Float>>(image: &A, row: &PixelIndices, column: &PixelIndices, at: Site) -> Result<A> {
    let shape = image.shape();
    let target: Shape = [shape[0], shape[1], row.index.shape()[2], row.index.shape()[3]].into();
    let plane = row.index.times(shape[3] as i64, at)?.plus(&column.index, at)?;
    let numbers = crate::ops::index::positions::all_positions(&[shape[0], shape[1], 1, 1].into(), at)?;
    let positions = numbers.times(shape[2].wrapping_mul(shape[3]) as i64, at)?.plus(&plane, at)?;
    let taken = image.apply_take(&positions, at)?;
    let inside = Tensor::<bool>::apply_select(&row.inside, &column.inside, &row.inside, at)?;
    taken.choose(&image.expand_mask(&inside, &target, at)?, 0.0, at)
}

fn bilinear<A: TensorLike<Elem: Float>>(image: &A, x: &A, y: &A, at: Site) -> Result<A> {
    let shape = image.shape();
    let (left, top) = (x.apply_unary(Unary::Floor, at)?, y.apply_unary(Unary::Floor, at)?);
    let (right, bottom) = (x.minus(&left, at)?, y.minus(&top, at)?);
    let rest = |weight: &A| weight.times(-1.0, at)?.plus(1.0, at);
    let beside = |places: &A, axis: usize, step: i64| PixelIndices::new(places, shape[axis], step, at);
    let columns = [(rest(&right)?, beside(&left, 3, 0)?), (right, beside(&left, 3, 1)?)];
    let rows = [(rest(&bottom)?, beside(&top, 2, 0)?), (bottom, beside(&top, 2, 1)?)];
    let mut total: Option<A> = None;
    for (height, row) in &rows {
        for (width, column) in &columns {
            let term = pixels(image, row, column, at)?.times(&height.times(width, at)?, at)?;
            total = Some(match total {
                None => term,
                Some(total) => total.plus(&term, at)?,
            });
        }
    }
    Ok(total.unwrap_or_else(|| unreachable!("there are four terms")))
}

#[cfg(test)]
mod tests {
    use super::{GridMode, GridPadding, PixelIndices, PixelPositions, bilinear, pixels};
    use crate::ops::{Composite, GridSampling, TensorLike};
    use crate::prelude::*;
    use crate::{Site, Unary};

    const PADDINGS: [GridPadding; 3] = [GridPadding::Zeros, GridPadding::Border, GridPadding::Reflection];

    fn image() -> Tensor<f64> {
        Tensor::arange(12).reshape([1, 1, 3, 4])
    }

    /// The expected values were computed by PyTorch.
    #[test]
    fn coordinates_that_are_no_numbers_or_far_away() {
        let nan = f64::NAN;
        let grid = Tensor::from([[[[nan, 0.0], [f64::INFINITY, 0.1], [-1e30, 0.2], [5.0, 0.3]]]]);
        let table = [
            (GridMode::Bilinear, [[nan, nan, 0.0, 0.0], [4.0, 7.6, 5.2, 8.8], [4.0, 4.6, 5.2, 8.8]]),
            (GridMode::Nearest, [[0.0, 0.0, 0.0, 0.0], [4.0, 7.0, 4.0, 7.0], [4.0, 4.0, 4.0, 7.0]]),
        ];
        for (mode, rows) in table {
            for (padding, expected) in PADDINGS.into_iter().zip(rows) {
                let got: Vec<f64> = image().grid_sample(&grid, mode, padding, false).to_vec();
                let equal =
                    |(got, expected): (&f64, &f64)| (got - expected).abs() < 1e-12 || got.is_nan() && expected.is_nan();
                assert!(got.iter().zip(&expected).all(equal), "{mode:?} {padding:?}: {got:?}");
            }
        }
    }

    /// Compares the kernels for tensors with the primitive operations that are recorded for variables.
    #[test]
    fn samples_have_the_bits_of_separate_operations() {
        let at = Site::here("test");
        // The planes of the last two images are too large to be copied for their few points.
        for [n, c, h, w, a, b] in [
            [2, 3, 5, 4, 6, 7],
            [1, 1, 1, 1, 3, 2],
            [2, 4, 1, 9, 40, 50],
            [1, 2, 9, 1, 5, 5],
            [2, 3, 20, 30, 3, 5],
            [1, 2, 300, 1, 2, 4],
        ] {
            let (image, grid) = (
                Tensor::<f32>::randn([n, c, h, w], &mut Generator::new(1)),
                Tensor::<f32>::randn([n, a, b, 2], &mut Generator::new(2)),
            );
            let edges = [f32::NAN, f32::INFINITY, -f32::INFINITY, -1.0, 1.0, 1e30, -1e30, 0.0];
            let grid = Tensor::from_fn([n, a, b, 2], |i| match (i[1] * b + i[2]) * 2 + i[3] {
                k if k < 8 => edges[(k * 3 + k / 4) % 8],
                _ => grid.get(i).unwrap(),
            });
            for (padding, align_corners) in PADDINGS.into_iter().flat_map(|padding| [(padding, true), (padding, false)])
            {
                let position = |k: usize, size: usize| {
                    let coordinate = grid.select(3, k as isize).unsqueeze(1);
                    PixelPositions { size, padding, align_corners }.apply([&coordinate], at).unwrap()
                };
                let (x, y) = (position(0, w), position(1, h));
                let whole = |x: &Tensor<f32>, size: usize| {
                    PixelIndices::new(&x.apply_unary(Unary::Round, at).unwrap(), size, 0, at).unwrap()
                };
                let nearest = pixels(&image, &whole(&y, h), &whole(&x, w), at).unwrap();
                for (mode, expected) in
                    [(GridMode::Bilinear, bilinear(&image, &x, &y, at).unwrap()), (GridMode::Nearest, nearest)]
                {
                    let got = image.grid_sample(&grid, mode, padding, align_corners);
                    let equal = |(got, expected): (f32, f32)| {
                        got.to_bits() == expected.to_bits()
                            || got == 0.0 && expected == 0.0
                            || got.is_nan() && expected.is_nan()
                    };
                    assert!(got.iter().zip(expected.iter()).all(equal), "{mode:?} {padding:?} {align_corners} {h} {w}");
                }
            }
        }
    }

    #[test]
    fn the_grid_of_the_pixels_gives_the_image() {
        let points =
            Tensor::<f64>::from_fn(
                [1, 3, 4, 2],
                |i| {
                    if i[3] == 0 { i[2] as f64 / 1.5 - 1.0 } else { i[1] as f64 - 1.0 }
                },
            );
        for mode in [GridMode::Bilinear, GridMode::Nearest] {
            for padding in PADDINGS {
                let samples = image().grid_sample(&points, mode, padding, true);
                assert!((samples - image()).abs().amax(..).item() < 1e-14, "{mode:?} {padding:?}");
            }
        }
    }

    #[test]
    fn shapes_and_mistakes() {
        let sample = |image: [usize; 4], grid: &[usize]| {
            let (image, grid) = (Tensor::<f64>::zeros(image), Tensor::zeros(grid));
            image.try_grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, false).map(|z| z.shape().to_vec())
        };
        assert_eq!(sample([1, 2, 3, 4], &[1, 0, 2, 2]).unwrap(), [1, 2, 0, 2]);
        assert_eq!(sample([0, 2, 3, 4], &[0, 2, 2, 2]).unwrap(), [0, 2, 2, 2]);
        assert_eq!(sample([1, 0, 3, 4], &[1, 2, 2, 2]).unwrap(), [1, 0, 2, 2]);
        let table = [
            (
                sample([1, 2, 3, 4], &[2, 2, 2, 2]),
                "grid_sampler(): expected grid and input to have same batch size, but got input with sizes [1, 2, 3, 4] and \
                 grid with sizes [2, 2, 2, 2]",
            ),
            (
                sample([1, 2, 3, 4], &[1, 2, 2]),
                "grid_sampler(): expected 4D input and grid with same number of dimensions, but got input with sizes [1, 2, \
                 3, 4] and grid with sizes [1, 2, 2]",
            ),
            (
                sample([1, 2, 3, 4], &[1, 2, 2, 3]),
                "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]",
            ),
            (
                sample([1, 2, 0, 4], &[1, 2, 2, 2]),
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes [1, 2, 0, 4] with \
                 dimension 2 being empty",
            ),
        ];
        for (result, sentence) in table {
            assert_eq!(result.unwrap_err().sentence(), sentence);
        }
    }
}
