//! Convolutions and their two derivatives, over contiguous arrays with up to three spatial dimensions. The input `x` has the shape
//! `[n, c, …]`, the weights `w` have `[out, c / groups, …]`, and the result `z` has `[n, out, …]`.
//!
//! The [`direct`] kernels serve the shapes for which they are faster: they multiply and add copied planes. All other convolutions, and all
//! convolutions of integers, are matrix products. The gradient of the weights is also a matrix product if `x` has infinite elements or
//! NaNs. An operand or the result of the product is a matrix whose columns are the windows of `x`
//! ([`im2col`](crate::kernel::conv::im2col)). This matrix is computed in tiles that stay in the second-level cache. If windows have one
//! element, this matrix can be `x` itself. The partition depends only on shapes, and partial sums are added in order, so the bits do not
//! depend on the number of threads.
//!
//! The caller checks the arguments and resolves padding modes and defaults.

use crate::Element;
use crate::kernel::conv::direct::{self, DirectCall};
use crate::kernel::conv::geometry::{Geometry, WindowAxis};
use crate::kernel::conv::im2col::{gather, scatter};
use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid};
use crate::memory::scratch::Scratch;
use crate::thresholds::conv::{MAX_PARTIAL_SUMS, TILE};

impl Geometry {
    /// Returns the number of windows in a tile: a range of columns of the matrix of columns that is computed at once.
    fn tile_windows(&self) -> usize {
        (TILE / self.column_rows()).max(1).next_multiple_of(64).min(self.window_count())
    }

    fn tile_count(&self) -> usize {
        self.window_count().div_ceil(self.tile_windows())
    }

    /// Returns whether the convolution is depthwise with few outputs per channel. A matrix product would then have only a few rows.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.channels == 1 && self.out <= 4
    }

    /// Returns whether the direct kernels compute the convolution faster than a matrix product does. The thresholds here, in
    /// `is_direct_faster_for_input` and in `is_direct_faster_for_weight` were measured. Matrix products are faster for windows of one
    /// element. They are also faster if direct kernels need as much time for copying results as for computing them.
    fn is_direct_faster(&self) -> bool {
        let taps = self.tap_count();
        let efficiency = direct::efficiency(self);
        taps > 1 && (self.is_depthwise() && efficiency > 0.0 || self.column_rows() >= 27 && efficiency >= 0.7)
    }

    fn is_direct_faster_for_input(&self) -> bool {
        let taps = self.tap_count();
        let efficiency = direct::input_efficiency(self);
        taps > 1 && (self.is_depthwise() && efficiency > 0.0 || self.channels >= 4 && efficiency >= 0.7)
    }

    fn is_direct_faster_for_weight(&self) -> bool {
        let taps = self.tap_count();
        let steps = self.axes.iter().any(|axis| axis.stride > 1);
        let efficiency = direct::efficiency(self);
        let small = self.channels >= 8 && self.out <= 32 && !steps && efficiency >= 0.7;
        taps > 1 && (self.is_depthwise() && taps >= 5 && efficiency > 0.0 || small)
    }

    /// Returns whether the input itself is the matrix of columns: each window is one element, without padding and strides.
    fn is_pointwise(&self) -> bool {
        let plain = |axis: &WindowAxis| {
            axis.kernel == 1 && axis.stride == 1 && axis.padding_before == 0 && axis.input == axis.output
        };
        self.axes.iter().all(plain)
    }

    /// Returns the sizes of the matrix product of the weights and a matrix with one column for each of `windows` windows.
    fn product_sizes(&self, windows: usize) -> Sizes {
        Sizes { m: self.out, n: windows, k: self.column_rows(), add: false }
    }
}

/// Computes the convolution `z` of the input `x` with the weights `w`.
pub(crate) fn forward<T: Element>(geometry: &Geometry, x: &[T], w: &[T], z: &mut [T]) -> Result<(), AllocationError> {
    if T::HAS_DIRECT && geometry.is_direct_faster() {
        return T::convolve(DirectCall::Forward { geometry, x, w, z });
    }
    let (plane, windows, tiles, out) =
        (geometry.channels * geometry.input_plane_len(), geometry.window_count(), geometry.tile_count(), geometry.out);
    // Computes the results `z` of a tile: the `count` windows of block `block` that begin with window `first`. A block is one group of one
    // image.
    let product = |block: usize, first: usize, count: usize, columns: &mut [T], z: &mut [T]| {
        let weights =
            Matrix::row_major(w, block % geometry.groups * geometry.group_weight_count(), geometry.column_rows());
        let right = if geometry.is_pointwise() {
            Matrix::row_major(x, block * plane + first, windows)
        } else {
            gather(geometry, &x[block * plane..][..plane], first, count, columns)?;
            Matrix::row_major(&*columns, 0, count)
        };
        T::product(geometry.product_sizes(count), weights, right, z)
    };
    let columns_len = if geometry.is_pointwise() { 0 } else { geometry.column_rows() * geometry.tile_windows() };
    if tiles == 1 {
        // If the convolution of one block (one group of one image) is little work, a task computes several blocks.
        let blocks_per_part = (TILE / (4 * geometry.column_rows() * windows)).max(1);
        return partition::try_chunks(z, blocks_per_part * out * windows, geometry.schedule(), |part, z| {
            let mut columns = Scratch::new(columns_len)?;
            for (block, z) in (part * blocks_per_part..).zip(z.chunks_exact_mut(out * windows)) {
                product(block, 0, windows, &mut columns, z)?;
            }
            Ok(())
        });
    }
    let units = geometry.batch * geometry.groups * tiles;
    let grid = Grid::equal(z, windows, (out, geometry.tile_windows()));
    partition::try_run(units, geometry.schedule(), grid, |unit, mut z| {
        let (block, first) = (unit / tiles, unit % tiles * geometry.tile_windows());
        let count = geometry.tile_windows().min(windows - first);
        let (mut columns, mut results) = (Scratch::new(columns_len)?, Scratch::new(out * count)?);
        product(block, first, count, &mut columns, &mut results)?;
        for (row, values) in results.chunks_exact(count).enumerate() {
            z.row(row).copy_from_slice(values);
        }
        Ok(())
    })
}

/// Sets `x` to the gradient of the convolution's input. This is the adjoint of [`forward`] with respect to its input, applied to `z`, the
/// gradient of the result. `w` has the weights.
pub(crate) fn input_gradient<T: Element>(
    geometry: &Geometry,
    w: &[T],
    z: &[T],
    x: &mut [T],
) -> Result<(), AllocationError> {
    if T::HAS_DIRECT && geometry.is_direct_faster_for_input() {
        return T::convolve(DirectCall::Input { geometry, w, z, x });
    }
    let (windows, plane) = (geometry.window_count(), geometry.input_plane_len());
    // A block is one group of one image. If there are fewer than 4 blocks, their channels are divided into up to 4 slices, so that more
    // threads have work.
    let slices = if geometry.batch * geometry.groups >= 4 { 1 } else { geometry.channels.min(4) };
    let channels_per_slice = geometry.channels.div_ceil(slices);
    let slices = geometry.channels.div_ceil(channels_per_slice);
    let grid = Grid::equal(x, geometry.channels * plane, (1, channels_per_slice * plane));
    partition::try_run(geometry.batch * geometry.groups * slices, geometry.schedule(), grid, |unit, mut x| {
        let (block, first, x) = (unit / slices, unit % slices * channels_per_slice, x.row(0));
        let part = Geometry { channels: channels_per_slice.min(geometry.channels - first), ..*geometry };
        let at = block % geometry.groups * geometry.group_weight_count() + first * geometry.tap_count();
        let weights = Matrix::row_major(w, at, geometry.column_rows()).transposed();
        let sizes = |count| Sizes { m: part.column_rows(), n: count, k: geometry.out, add: false };
        if geometry.is_pointwise() {
            return T::product(
                sizes(windows),
                weights,
                Matrix::row_major(z, block * geometry.out * windows, windows),
                x,
            );
        }
        x.fill(T::ZERO);
        let mut columns = Scratch::new(part.column_rows() * part.tile_windows())?;
        for from in (0..windows).step_by(part.tile_windows()) {
            let count = part.tile_windows().min(windows - from);
            let columns = &mut columns[..part.column_rows() * count];
            let right = Matrix::row_major(z, block * geometry.out * windows + from, windows);
            T::product(sizes(count), weights, right, columns)?;
            scatter(&part, columns, from, count, x)?;
        }
        Ok(())
    })
}

/// Sets `w` to the gradient of the convolution's weights. This is the adjoint of [`forward`] with respect to its weights, applied to `z`,
/// the gradient of the result. `x` has the input.
pub(crate) fn weight_gradient<T: Element>(
    geometry: &Geometry,
    x: &[T],
    z: &[T],
    w: &mut [T],
) -> Result<(), AllocationError> {
    // The direct kernel multiplies some elements of `x` by padding zeros. For an infinite element or a NaN, the product would be NaN.
    if T::HAS_DIRECT && geometry.is_direct_faster_for_weight() && T::are_finite(x) {
        return T::convolve(DirectCall::Weight { geometry, x, z, w });
    }
    let (windows, plane, tiles) =
        (geometry.window_count(), geometry.channels * geometry.input_plane_len(), geometry.tile_count());
    let units = geometry.batch * tiles;
    let most = if w.len() <= TILE { MAX_PARTIAL_SUMS } else { 2 };
    let parts = units.min(most);
    let (each, len) = (units.div_ceil(parts), w.len());
    let parts = units.div_ceil(each);
    let part = |number: usize, w: &mut [T]| {
        let mut columns =
            Scratch::new(if geometry.is_pointwise() { 0 } else { geometry.column_rows() * geometry.tile_windows() })?;
        for unit in number * each..units.min((number + 1) * each) {
            let (image, tile) = (unit / tiles, unit % tiles);
            let (first, count) =
                (tile * geometry.tile_windows(), geometry.tile_windows().min(windows - tile * geometry.tile_windows()));
            for (group, w) in w.chunks_exact_mut(geometry.group_weight_count()).enumerate() {
                let block = image * geometry.groups + group;
                let columns = if geometry.is_pointwise() {
                    Matrix::row_major(x, block * plane + first, windows)
                } else {
                    gather(geometry, &x[block * plane..][..plane], first, count, &mut columns)?;
                    Matrix::row_major(&columns, 0, count)
                };
                let left = Matrix::row_major(z, block * geometry.out * windows + first, windows);
                let sizes = Sizes { m: geometry.out, n: geometry.column_rows(), k: count, add: unit > number * each };
                T::product(sizes, left, columns.transposed(), w)?;
            }
        }
        Ok(())
    };
    if parts == 1 {
        return part(0, w);
    }
    let mut sums = Scratch::new(parts * len)?;
    partition::try_chunks(&mut sums, len, geometry.schedule(), part)?;
    direct::sum_arrays(&sums, w);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::InstructionSet;
    use crate::kernel::matmul::micro::HasMicroKernels;
    use crate::kernel::matmul::product::Products;
    use crate::kernel::testing::support::cases;

    /// Calls `each` for every product x · w that the definition of a convolution adds to an element of the result z. The arguments are the
    /// positions of the elements of x, w and z.
    fn by_definition(geometry: &Geometry, each: &mut dyn FnMut(usize, usize, usize)) {
        let [d, h, w] = &geometry.axes;
        for block in 0..geometry.batch * geometry.groups {
            for (out, channel) in
                (0..geometry.out).flat_map(|out| (0..geometry.channels).map(move |channel| (out, channel)))
            {
                for (window, tap) in
                    (0..geometry.window_count()).flat_map(|i| (0..geometry.tap_count()).map(move |tap| (i, tap)))
                {
                    let place = |axis: &WindowAxis, window: usize, tap: usize| {
                        let place =
                            (window * axis.stride + tap * axis.dilation) as isize - axis.padding_before as isize;
                        (place >= 0 && place < axis.input as isize).then_some(place as usize)
                    };
                    let places = (
                        place(d, window / (h.output * w.output), tap / (h.kernel * w.kernel)),
                        place(h, window / w.output % h.output, tap / w.kernel % h.kernel),
                        place(w, window % w.output, tap % w.kernel),
                    );
                    if let (Some(i), Some(j), Some(k)) = places {
                        let x = (block * geometry.channels + channel) * geometry.input_plane_len()
                            + (i * h.input + j) * w.input
                            + k;
                        let weights = (block % geometry.groups * geometry.out + out) * geometry.column_rows()
                            + channel * geometry.tap_count()
                            + tap;
                        each(x, weights, (block * geometry.out + out) * geometry.window_count() + window);
                    }
                }
            }
        }
    }

    /// Returns small integers. Their sums and products are exact.
    fn integers<T: Products>(len: usize, seed: usize) -> Vec<T> {
        (0..len).map(|i| T::from_i64(((i + seed) * 7919 / 13 % 9) as i64 - 4)).collect()
    }

    /// Computes `len` sums by the definition of a convolution. Calls `term` for each product of an element of x and an element of w, with the
    /// positions of the elements of x, w and z. `term` returns the index of a sum and the value to add to this sum.
    fn reference<T: Products>(
        geometry: &Geometry,
        len: usize,
        term: impl Fn(usize, usize, usize) -> (usize, T),
    ) -> Vec<T> {
        let mut sums = vec![T::ZERO; len];
        by_definition(geometry, &mut |x, w, z| {
            let (place, term) = term(x, w, z);
            sums[place] = sums[place].plus(term);
        });
        sums
    }

    /// Computes the result, the gradient of x and the gradient of w by the definition, in one pass.
    fn references<T: Products>(geometry: &Geometry, [x, w, z]: [&[T]; 3]) -> [Vec<T>; 3] {
        let [mut results, mut input, mut weights] = [z, x, w].map(|like| vec![T::ZERO; like.len()]);
        by_definition(geometry, &mut |i, j, k| {
            results[k] = results[k].plus(x[i].times(w[j]));
            input[i] = input[i].plus(w[j].times(z[k]));
            weights[j] = weights[j].plus(x[i].times(z[k]));
        });
        [results, input, weights]
    }

    /// Checks the results of the direct kernels, even for convolutions for which [`forward`] would not choose them.
    fn check_directly<T: Products + HasMicroKernels>(geometry: &Geometry) {
        let blocks = geometry.batch * geometry.groups;
        let x = integers::<T>(blocks * geometry.channels * geometry.input_plane_len(), 1);
        let w = integers::<T>(geometry.groups * geometry.group_weight_count(), 5);
        let z = integers::<T>(blocks * geometry.out * geometry.window_count(), 11);
        let [results, input, weights] = references(geometry, [&x, &w, &z]);
        for kernels in InstructionSet::ALL.map(T::kernels_for).into_iter().chain([T::array_kernels()]) {
            let mut out = integers::<T>(z.len(), 3);
            direct::run(kernels, DirectCall::Forward { geometry, x: &x, w: &w, z: &mut out }).unwrap();
            assert_eq!(out, results, "{geometry:?}");
            let mut out = integers::<T>(x.len(), 3);
            direct::run(kernels, DirectCall::Input { geometry, w: &w, z: &z, x: &mut out }).unwrap();
            assert_eq!(out, input, "{geometry:?}");
            let mut out = integers::<T>(w.len(), 3);
            direct::run(kernels, DirectCall::Weight { geometry, x: &x, z: &z, w: &mut out }).unwrap();
            assert_eq!(out, weights, "{geometry:?}");
        }
    }

    fn check<T: Element>(geometry: &Geometry) {
        let blocks = geometry.batch * geometry.groups;
        let x = integers::<T>(blocks * geometry.channels * geometry.input_plane_len(), 1);
        let w = integers::<T>(geometry.groups * geometry.group_weight_count(), 5);
        let z = integers::<T>(blocks * geometry.out * geometry.window_count(), 11);
        let [results, input, weights] = references(geometry, [&x, &w, &z]);
        let mut out = integers::<T>(z.len(), 3);
        forward(geometry, &x, &w, &mut out).unwrap();
        assert_eq!(out, results, "{geometry:?}");
        let mut out = integers::<T>(x.len(), 3);
        input_gradient(geometry, &w, &z, &mut out).unwrap();
        assert_eq!(out, input, "{geometry:?}");
        let mut out = integers::<T>(w.len(), 3);
        weight_gradient(geometry, &x, &z, &mut out).unwrap();
        assert_eq!(out, weights, "{geometry:?}");
    }

    #[test]
    fn values_outside_of_the_windows_do_not_change_the_weights() {
        let axis = |input: usize, kernel: usize| WindowAxis {
            input,
            kernel,
            output: input - kernel + 1,
            stride: 1,
            dilation: 1,
            padding_before: 0,
        };
        let axes = [axis(1, 1), axis(12, 3), axis(40, 3)];
        let geometry = Geometry { batch: 1, groups: 1, channels: 8, out: 8, axes };
        assert!(geometry.is_direct_faster_for_weight());
        let z = integers::<f32>(geometry.out * geometry.window_count(), 11);
        for bad in [f32::INFINITY, f32::NAN] {
            let mut x = integers::<f32>(geometry.channels * geometry.input_plane_len(), 1);
            x[40] = bad;
            let mut w = vec![0.0; geometry.group_weight_count()];
            weight_gradient(&geometry, &x, &z, &mut w).unwrap();
            let expected = reference(&geometry, w.len(), |i, j, k| (j, x[i] * z[k]));
            assert!(w.iter().filter(|w| w.is_finite()).count() > w.len() / 2);
            assert!(w.iter().zip(&expected).all(|(w, e)| w == e || (w.is_nan() && e.is_nan())), "{bad}");
        }
    }

    /// Tests a padding of 2³⁹ elements and a dilation of 2⁴⁰. If planes were copied with this padding, the copies would not fit in memory.
    #[test]
    fn wide_padding_takes_no_memory() {
        let axis = WindowAxis { input: 4, kernel: 2, output: 4, stride: 1, dilation: 1 << 40, padding_before: 1 << 39 };
        for geometry in [
            Geometry { batch: 1, groups: 2, channels: 1, out: 1, axes: [WindowAxis::NONE, WindowAxis::NONE, axis] },
            Geometry { batch: 1, groups: 1, channels: 30, out: 3, axes: [axis, axis, axis] },
            Geometry {
                batch: 5,
                groups: 1,
                channels: 30,
                out: 3,
                axes: [WindowAxis::NONE, axis, WindowAxis { stride: 3, output: 2, ..axis }],
            },
        ] {
            check::<f64>(&geometry);
            check::<i64>(&geometry);
        }
    }

    /// Tests strides that are much larger than the input. A loop over the positions between two windows would not end.
    #[test]
    fn positions_between_windows_are_skipped() {
        // `two` has a window that begins far before the input and a window that begins far after it. `first` has its first window near the
        // input.
        let two = WindowAxis { input: 4, kernel: 4, output: 2, stride: 1 << 40, dilation: 1, padding_before: 1 << 39 };
        let first = WindowAxis { input: 4, kernel: 3, output: 2, stride: 1 << 32, dilation: 1, padding_before: 1 };
        let dilated =
            WindowAxis { input: 5, kernel: 2, output: 2, stride: 1 << 32, dilation: 1 << 33, padding_before: 1 << 33 };
        for axes in [[WindowAxis::NONE, WindowAxis::NONE, two], [WindowAxis::NONE, first, two], [first, dilated, two]] {
            for (groups, channels, out) in [(2, 1, 1), (1, 5, 3)] {
                let geometry = Geometry { batch: 2, groups, channels, out, axes };
                check::<f64>(&geometry);
                check_directly::<f64>(&geometry);
                check_directly::<f32>(&geometry);
            }
        }
    }

    fn axis() -> impl Strategy<Value = WindowAxis> {
        let sizes = (1..5usize, 1..4usize, 1..4usize, 0..4usize, 0..14usize);
        sizes.prop_map(|(kernel, stride, dilation, padding_before, more)| {
            let span = (kernel - 1) * dilation + 1;
            let (input, after) = (1 + more, padding_before / 2);
            let room = (padding_before + input + after).max(span) - span;
            WindowAxis { input, kernel, output: room / stride + 1, stride, dilation, padding_before }
        })
    }

    proptest! {
        #![proptest_config(cases(64))]

        #[test]
        fn convolutions_equal_their_reference(
            counts in [1..4usize, 1..4usize, 1..4usize, 1..4usize],
            axes in [axis(), axis(), axis()],
            rank in 1..4usize,
        ) {
            let [batch, groups, channels, out] = counts;
            let axes = std::array::from_fn(|k| if k + rank < 3 { WindowAxis::NONE } else { axes[k] });
            let geometry = Geometry { batch, groups, channels, out, axes };
            check::<f64>(&geometry);
            check::<f32>(&geometry);
            check::<i64>(&geometry);
            check_directly::<f64>(&geometry);
            check_directly::<f32>(&geometry);
        }
    }

    #[test]
    fn several_tiles_and_parts() {
        let axis = |input, kernel, padding_before| WindowAxis {
            input,
            kernel,
            output: input + 2 * padding_before + 1 - kernel,
            stride: 1,
            dilation: 1,
            padding_before,
        };
        let geometry = |batch, channels, out, size, kernel, padding_before| {
            let axes = [WindowAxis::NONE, axis(size, kernel, padding_before), axis(size, kernel, padding_before)];
            Geometry { batch, groups: 1, channels, out, axes }
        };
        // In this order: many windows, several images, many output channels, many images, windows of one element, and many rows in the
        // matrix of columns.
        for geometry in [
            geometry(1, 16, 5, 40, 3, 1),
            geometry(9, 2, 13, 6, 3, 1),
            geometry(1, 3, 40, 12, 3, 1),
            geometry(70, 2, 3, 9, 3, 0),
            geometry(3, 5, 4, 17, 1, 0),
            geometry(2, 90, 2, 8, 4, 2),
        ] {
            check::<f64>(&geometry);
            check_directly::<f64>(&geometry);
            check_directly::<f32>(&geometry);
        }
        let axis = WindowAxis { input: 5000, kernel: 40, output: 2490, stride: 2, dilation: 1, padding_before: 10 };
        let geometry =
            Geometry { batch: 1, groups: 1, channels: 4, out: 2, axes: [WindowAxis::NONE, WindowAxis::NONE, axis] };
        assert!(geometry.tile_count() > 1);
        check::<f64>(&geometry);
        check_directly::<f64>(&geometry);
    }
}
