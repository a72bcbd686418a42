//! Direct convolutions of floating-point numbers. A matrix product needs a copy of every window, and a direct convolution does not.
//!
//! Each plane of the input is copied with its padding ([`planes`](crate::kernel::conv::planes)). A *tap* is one position in the window. In
//! a copied plane, the elements that a tap multiplies over all windows form a contiguous *run*. The runs of different taps differ only in
//! their first element. A run continues past the ends of rows. Results computed there are discarded; for the weights, the elements there
//! are multiplied by zeros. The direct kernels use the runs as follows:
//! - A convolution sums weights times runs, for several rows of the result and several vectors of windows at once.
//! - The adjoint for the input is the same kind of sum over the result's gradient. If the stride is above 1, it is computed once for each
//!   residue (position in the input modulo the stride).
//! - The adjoint for the weights consists of dot products of runs.
//!
//! Each call of a kernel keeps its sums in registers. The division of the work into tasks depends only on shapes. [`efficiency`] estimates
//! whether a direct convolution may be faster than a matrix product. [`convolution`](crate::kernel::conv::convolution) decides.

use crate::kernel::conv::geometry::{Geometry, WindowAxis};
use crate::kernel::conv::planes::{PackedAxis, PackedPlanes, WindowRun, copy_row, reach, row_major_strides};
use crate::kernel::matmul::micro::{DotProducts, HasMicroKernels, MicroKernel, MicroKernels, TileSums};
use crate::kernel::matmul::product::Products;
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid, Tile};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::thresholds::conv::{
    CHUNK_WINDOWS, MAX_PARTIAL_SUMS, MIN_PARALLEL, READ_SLACK, RUN_ELEMENTS, SEGMENT, WINDOWS_AT_ONCE,
};

/// The weights of a convolution, in the order in which the kernels read them. The rows of the result (its channels) are divided into groups.
/// For each input plane and tap (a position in the window), a group stores the weights of all its rows.
struct Weights<T: Products> {
    data: Scratch<T>,
    row_groups: Vec<RowGroup>,
    /// The number of weights of a block (a group of channels), with the padding of its last group of rows.
    block_len: usize,
}

/// A group of rows (channels of the result) that the kernel computes at once.
#[derive(Clone, Copy)]
struct RowGroup {
    first_row: usize,
    /// The number of rows of the group.
    row_count: usize,
    /// The number of rows that the kernel computes. It is larger than `row_count` if the last rows are padding.
    computed_rows: usize,
    /// The position of the group's first weight among the weights of a block.
    start: usize,
}

impl<T: Products> Weights<T> {
    /// Copies the weights of `blocks` blocks (groups of channels) of `w`. A block has `rows` rows, whose weights begin `strides[0]`
    /// elements apart. A row has the weights of `input_planes` planes, `strides[1]` elements apart. `tap_weights` has the positions of the
    /// weights of a plane that are copied.
    fn new(
        kernels: &dyn MicroKernels<T>,
        w: &[T],
        blocks: usize,
        rows: usize,
        input_planes: usize,
        strides: [usize; 2],
        tap_weights: &[usize],
    ) -> Result<Self, AllocationError> {
        let (mut row_groups, mut block_len, mut first_row) = (Vec::new(), 0, 0);
        while first_row < rows {
            let computed_rows = kernels.tile_rows(rows - first_row);
            let row_count = computed_rows.min(rows - first_row);
            row_groups.push(RowGroup { first_row, row_count, computed_rows, start: block_len });
            first_row += computed_rows;
            block_len += computed_rows * input_planes * tap_weights.len();
        }
        let mut data = Scratch::new((blocks * block_len).max(1))?;
        let each = w.len() / blocks;
        for (block, w) in w.chunks_exact(each).enumerate() {
            for &RowGroup { first_row, row_count, computed_rows, start } in &row_groups {
                let factors = data[block * block_len + start..].chunks_exact_mut(computed_rows);
                let positions =
                    (0..input_planes).flat_map(|input| tap_weights.iter().map(move |tap| input * strides[1] + tap));
                for (factors, position) in factors.zip(positions) {
                    factors[row_count..].fill(T::ZERO);
                    for (r, factor) in factors[..row_count].iter_mut().enumerate() {
                        *factor = w[position + (first_row + r) * strides[0]];
                    }
                }
            }
        }
        Ok(Weights { data, row_groups, block_len })
    }
}

/// A sum of weights times elements of the input's planes (copied with their padding), computed for each window.
struct WindowSum<'a, T: Products> {
    kernels: &'a dyn MicroKernels<T>,
    /// The number of elements in a copied plane.
    plane_len: usize,
    /// The number of planes that are summed for each result.
    input_planes: usize,
    /// For each tap, the position of the first element of its run: the contiguous elements that the tap (a position in the window)
    /// multiplies.
    tap_starts: Vec<usize>,
    weights: Weights<T>,
    windows: WindowRun,
    result_plane_len: usize,
}

impl<T: Products> WindowSum<'_, T> {
    /// Returns the number of chunks in a run. A run has the elements of a copied plane from the first window to the last. A chunk is the part
    /// of a run that is computed at once.
    fn chunk_count(&self) -> usize {
        self.windows.len().div_ceil(CHUNK_WINDOWS)
    }

    /// Computes a tile `out` of the result of the block (one group of one image) with index `block`. The tile has the windows in the chunks
    /// `chunks` of a run, and the rows in the groups `groups`. The result has one plane per row. `source` has the copied planes, and
    /// `results` is scratch memory.
    fn compute(
        &self,
        block: usize,
        source: &[T],
        (chunks, groups): (std::ops::Range<usize>, std::ops::Range<usize>),
        results: &mut [T],
        out: &mut Tile<T>,
    ) {
        let run = self.windows.len();
        let (top, left) = out.origin();
        for chunk in chunks {
            let (first, end) = (chunk * CHUNK_WINDOWS, run.min((chunk + 1) * CHUNK_WINDOWS));
            for &RowGroup { first_row, row_count, computed_rows, start } in &self.weights.row_groups[groups.clone()] {
                self.kernels.run(MicroKernel::TileSums(TileSums {
                    rows: computed_rows,
                    source: &source[first..],
                    input_planes: self.input_planes,
                    plane_len: self.plane_len,
                    tap_starts: &self.tap_starts,
                    factors: &self.weights.data[block * self.weights.block_len + start..]
                        [..computed_rows * self.input_planes * self.tap_starts.len()],
                    results,
                    pitch: CHUNK_WINDOWS,
                    count: end - first,
                }));
                for (r, results) in results.chunks_exact(CHUNK_WINDOWS).take(row_count).enumerate() {
                    let out = out.row(first_row + r - top);
                    self.windows.segments(first, end, |from, place, count| {
                        let (from, out) = (&results[from - first..][..count], &mut out[place - left..]);
                        match self.windows.result_strides[2] {
                            1 => copy_row(from, &mut out[..count]),
                            step => out.iter_mut().step_by(step).zip(from).for_each(|(out, &value)| *out = value),
                        }
                    });
                }
            }
        }
    }

    /// Computes one block (one group of one image). The tiles of its result are tasks of `schedule`.
    fn compute_tiles(
        &self,
        block: usize,
        source: &[T],
        schedule: Schedule,
        out: &mut [T],
    ) -> Result<(), AllocationError> {
        let (chunks, all) = (self.chunk_count(), self.weights.row_groups.len());
        let slices = if chunks >= 4 { 1 } else { all.min(4) };
        let groups_per_slice = all.div_ceil(slices);
        let slices = all.div_ceil(groups_per_slice);
        let groups = |slice: usize| slice * groups_per_slice..all.min((slice + 1) * groups_per_slice);
        let last_row = |slice: usize| self.weights.row_groups[groups(slice).end - 1];
        let rows: Vec<usize> = (0..slices).map(last_row).map(|group| group.first_row + group.row_count).collect();
        let place =
            |chunk: usize| self.windows.result_position_from(chunk * CHUNK_WINDOWS).unwrap_or(self.result_plane_len);
        let places: Vec<usize> = (1..=chunks).map(place).collect();
        let grid = Grid::ends(out, self.result_plane_len, &rows, &places);
        partition::try_run(chunks * slices, schedule, grid, |unit, mut out| {
            let (slice, chunk) = (unit / chunks, unit % chunks);
            let mut results = Scratch::new(8 * CHUNK_WINDOWS)?;
            self.compute(block, source, (chunk..chunk + 1, groups(slice)), &mut results, &mut out);
            Ok(())
        })
    }
}

/// Copies the planes of each block (one group of one image) of `x`, and writes the weighted sums of the planes to `out`. Elements of `out`
/// that no sum computes keep their values.
fn compute_sums<T: Products>(
    blocks: usize,
    groups: usize,
    planes: &PackedPlanes,
    x: &[T],
    sums: &[WindowSum<T>],
    out: &mut [T],
) -> Result<(), AllocationError> {
    if sums.is_empty() {
        return Ok(());
    }
    let (inputs, plane, block_len) = (sums[0].input_planes, planes.plane_len(), out.len() / blocks);
    let from = x.len() / blocks / inputs;
    let fill = |x: &[T], source: &mut [T]| {
        x.chunks_exact(from)
            .zip(source.chunks_exact_mut(plane))
            .for_each(|(x, to)| planes.copy(x, to, planes.part_len()));
    };
    let work =
        sums.iter().map(|sum| sum.windows.len().saturating_mul(sum.weights.block_len)).fold(0, usize::saturating_add);
    let schedule = Schedule::parallel_from(MIN_PARALLEL, work.saturating_mul(blocks));
    if blocks >= 4 {
        // If the convolution of one block (one group of one image) is little work, a task computes several blocks.
        let blocks_per_part = ((1 << 18) / work.max(1)).clamp(1, blocks.div_ceil(4));
        return partition::try_chunks(out, blocks_per_part * block_len, schedule, |part, out| {
            let mut source = Scratch::zeroed(inputs * plane + READ_SLACK)?;
            let mut results = Scratch::new(8 * CHUNK_WINDOWS)?;
            for (block, out) in (part * blocks_per_part..).zip(out.chunks_exact_mut(block_len)) {
                fill(&x[block * inputs * from..][..inputs * from], &mut source);
                for sum in sums {
                    let all = (0..sum.chunk_count(), 0..sum.weights.row_groups.len());
                    sum.compute(
                        block % groups,
                        &source,
                        all,
                        &mut results,
                        &mut Tile::whole(out, sum.result_plane_len),
                    );
                }
            }
            Ok(())
        });
    }
    let mut source = Scratch::zeroed(inputs * plane + READ_SLACK)?;
    for (block, out) in out.chunks_exact_mut(block_len).enumerate() {
        let x = &x[block * inputs * from..][..inputs * from];
        let blocks_per_part = inputs.div_ceil(8);
        partition::chunks(&mut source[..inputs * plane], blocks_per_part * plane, schedule, |part, source| {
            fill(&x[part * blocks_per_part * from..], source);
        });
        sums.iter().try_for_each(|sum| sum.compute_tiles(block % groups, &source, schedule, out))?;
    }
    Ok(())
}

/// A convolution or one of its adjoints, with its operands and its output.
pub enum DirectCall<'a, T> {
    /// Computes the result `z` from the input `x` and the weights `w`.
    Forward { geometry: &'a Geometry, x: &'a [T], w: &'a [T], z: &'a mut [T] },
    /// Computes the gradient of the input, `x`, from the weights `w` and the gradient of the result, `z`.
    Input { geometry: &'a Geometry, w: &'a [T], z: &'a [T], x: &'a mut [T] },
    /// Computes the gradient of the weights, `w`, from the input `x` and the gradient of the result, `z`.
    Weight { geometry: &'a Geometry, x: &'a [T], z: &'a [T], w: &'a mut [T] },
}

/// Direct convolutions for the element types that have them. Sealed like
/// [`BlockKernels`](crate::kernel::elementwise::block::BlockKernels).
#[doc(hidden)]
pub trait DirectConvolutions: Products {
    /// True for types that have direct convolutions. Otherwise [`convolve`](Self::convolve) must not be called.
    const HAS_DIRECT: bool = false;

    /// Returns whether all elements are finite.
    fn are_finite(_x: &[Self]) -> bool {
        true
    }

    /// Runs the convolution. The function is compiled in this crate, once for each element type.
    fn convolve(_call: DirectCall<Self>) -> Result<(), AllocationError> {
        unreachable!("only floating-point numbers have it")
    }
}

impl DirectConvolutions for i64 {}
impl DirectConvolutions for u8 {}
impl DirectConvolutions for bool {}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl DirectConvolutions for $type {
            const HAS_DIRECT: bool = true;

            fn are_finite(x: &[Self]) -> bool {
                // The fold has no branch per element, so that the compiler vectorizes it.
                x.chunks(1024).all(|x| !x.iter().fold(false, |bad, x| bad | !x.is_finite()))
            }

            fn convolve(call: DirectCall<Self>) -> Result<(), AllocationError> {
                run(Self::kernels(), call)
            }
        }
    )*};
}

floats!(f32, f64);

pub(crate) fn run<T: Products>(kernels: &dyn MicroKernels<T>, call: DirectCall<T>) -> Result<(), AllocationError> {
    match call {
        DirectCall::Forward { geometry, x, w, z } => forward(kernels, geometry, x, w, z),
        DirectCall::Input { geometry, w, z, x } => input_gradient(kernels, geometry, w, z, x),
        DirectCall::Weight { geometry, x, z, w } => weight_gradient(kernels, geometry, x, z, w),
    }
}

/// Computes the convolution `z` of the input `x` with the weights `w`.
fn forward<T: Products>(
    kernels: &dyn MicroKernels<T>,
    geometry: &Geometry,
    x: &[T],
    w: &[T],
    z: &mut [T],
) -> Result<(), AllocationError> {
    let planes = PackedPlanes(geometry.axes.each_ref().map(PackedAxis::of_input));
    let &Geometry { batch, groups, channels, out, .. } = geometry;
    let (all, strides): (Vec<usize>, _) =
        ((0..geometry.tap_count()).collect(), [geometry.column_rows(), geometry.tap_count()]);
    let sum = WindowSum {
        kernels,
        plane_len: planes.plane_len(),
        input_planes: channels,
        tap_starts: input_taps(geometry, &planes, planes.part_len()),
        weights: Weights::new(kernels, w, groups, out, channels, strides, &all)?,
        windows: WindowRun::of_all_windows(geometry, &planes),
        result_plane_len: geometry.window_count(),
    };
    compute_sums(batch * groups, groups, &planes, x, &[sum], z)
}

/// Returns the position of the first element that each tap (a position in the window) reads, within a copied plane of the input. A plane may
/// have several parts if the stride is greater than 1. The parts begin `pitch` elements apart.
fn input_taps(geometry: &Geometry, planes: &PackedPlanes, pitch: usize) -> Vec<usize> {
    let strides = planes.strides();
    let taps = |k: usize| {
        let (axis, packed) = (&geometry.axes[k], &planes.0[k]);
        (0..axis.kernel).map(move |tap| {
            let part = tap * axis.dilation % axis.stride;
            let number = packed.parts.iter().position(|&other| other == part).unwrap_or(0);
            (number, tap * axis.dilation / axis.stride * strides[k])
        })
    };
    let counts = [1, 2].map(|k| planes.0[k].parts.len());
    let mut all = Vec::with_capacity(geometry.tap_count());
    for (d, i) in taps(0) {
        for (h, j) in taps(1) {
            for (w, k) in taps(2) {
                all.push(((d * counts[0] + h) * counts[1] + w) * pitch + i + j + k);
            }
        }
    }
    all
}

/// Returns an estimate of the fraction of the sums computed by [`forward`] that are elements of the result. The other sums lie between rows
/// of windows, and are discarded. Returns 0 if the copied planes would be much larger than the arrays.
pub(crate) fn efficiency(geometry: &Geometry) -> f64 {
    let lens = geometry.axes.map(|axis| (axis.output + reach(&axis)) as f64);
    let planes = lens.iter().zip(&geometry.axes).map(|(len, axis)| len * axis.kernel.min(axis.stride) as f64).product();
    estimate_efficiency(geometry, lens, planes, geometry.axes.map(|axis| axis.output))
}

/// Returns an estimate of the fraction of the sums computed by [`input_gradient`] that are elements of the gradient, as [`efficiency`] does
/// for [`forward`].
pub(crate) fn input_efficiency(geometry: &Geometry) -> f64 {
    let lens = geometry.axes.map(|axis| PackedAxis::of_output(&axis).part_len as f64);
    estimate_efficiency(
        geometry,
        lens,
        lens.iter().product(),
        geometry.axes.map(|axis| axis.input.div_ceil(axis.stride)),
    )
}

/// Returns the estimate of [`efficiency`]: the number of windows, divided by the number of computed sums. Sums are computed for all
/// elements of a copied plane from the first needed sum to the last, rounded up to a multiple of [`WINDOWS_AT_ONCE`]. `counts` has the
/// number of needed sums along each axis, and `lens` the sizes of a copied plane. `planes` is the number of elements of all parts of a
/// copied plane. Returns 0 if `planes` is much larger than a plane of the input and a plane of the result together.
fn estimate_efficiency(geometry: &Geometry, lens: [f64; 3], planes: f64, counts: [usize; 3]) -> f64 {
    if planes > (16 * (geometry.input_plane_len() + geometry.window_count()) + (1 << 16)) as f64 {
        return 0.0;
    }
    let strides = [lens[1] * lens[2], lens[2], 1.0];
    let run = (0..3).map(|k| (counts[k] - 1) as f64 * strides[k]).sum::<f64>() + 1.0;
    geometry.window_count() as f64 / ((run / WINDOWS_AT_ONCE as f64).ceil() * WINDOWS_AT_ONCE as f64)
}

/// The input elements along one axis whose position, counted from the start of the padding, has the same remainder modulo the stride. The
/// same taps (positions in the window) read all of them.
struct Residue {
    remainder: usize,
    /// The first element is at position `first` times the stride plus `remainder`, counted from the start of the padding.
    first: usize,
    /// The number of elements.
    count: usize,
}

/// Returns the residues (classes of input elements with the same remainder modulo the stride) along an axis. Leaves out residues whose
/// elements no tap reads. So there are at most as many residues as taps, even if the stride is large.
fn residues(axis: &WindowAxis) -> Vec<Residue> {
    let residue = |remainder: usize| {
        let first = axis.padding_before.saturating_sub(remainder).div_ceil(axis.stride);
        let end = (axis.input + axis.padding_before).saturating_sub(remainder).div_ceil(axis.stride);
        (end > first).then(|| Residue { remainder, first, count: end - first })
    };
    PackedAxis::of_input(axis).parts.into_iter().filter_map(residue).collect()
}

/// Sets `x` to the adjoint of [`forward`] with respect to its input, applied to `z`, the gradient of the result. `w` has the weights.
fn input_gradient<T: Products>(
    kernels: &dyn MicroKernels<T>,
    geometry: &Geometry,
    w: &[T],
    z: &[T],
    x: &mut [T],
) -> Result<(), AllocationError> {
    let planes = PackedPlanes(geometry.axes.each_ref().map(PackedAxis::of_output));
    let [depth, height, width] = geometry.axes.map(|axis| residues(&axis));
    let read = |residues: &[Residue]| residues.iter().map(|residue| residue.count).sum::<usize>();
    if read(&depth) * read(&height) * read(&width) < geometry.input_plane_len() {
        // Some input elements are not read by any window, so their gradient is zero.
        x.fill(T::ZERO);
    }
    let mut sums = Vec::with_capacity(depth.len() * height.len() * width.len());
    for d in &depth {
        for h in &height {
            for w_residue in &width {
                sums.push(residue_sum(kernels, geometry, &planes, w, [d, h, w_residue])?);
            }
        }
    }
    compute_sums(geometry.batch * geometry.groups, geometry.groups, &planes, z, &sums, x)
}

/// Returns the [`WindowSum`] that computes the gradient of some elements of the input: the elements of one residue along each axis. A
/// residue has the elements whose positions in the padded input leave the same remainder after division by the stride.
fn residue_sum<'k, T: Products>(
    kernels: &'k dyn MicroKernels<T>,
    geometry: &Geometry,
    planes: &PackedPlanes,
    w: &[T],
    residues: [&Residue; 3],
) -> Result<WindowSum<'k, T>, AllocationError> {
    let strides = planes.strides();
    let step = row_major_strides(geometry.axes.map(|axis| axis.input));
    let seen = |k: usize| {
        let (axis, residue) = (geometry.axes[k], residues[k]);
        let taps = (0..axis.kernel).filter(move |tap| tap * axis.dilation % axis.stride == residue.remainder);
        taps.map(move |tap| (tap, (reach(&axis) + residue.first - tap * axis.dilation / axis.stride) * strides[k]))
    };
    let (mut numbers, mut taps) = (Vec::new(), Vec::new());
    for (d, i) in seen(0) {
        for (h, j) in seen(1) {
            for (w, k) in seen(2) {
                numbers.push((d * geometry.axes[1].kernel + h) * geometry.axes[2].kernel + w);
                taps.push(i + j + k);
            }
        }
    }
    let place = |k: usize| {
        let (axis, residue) = (&geometry.axes[k], residues[k]);
        (residue.first * axis.stride + residue.remainder - axis.padding_before) * step[k]
    };
    // If a residue has a single element, the distance to the next element does not matter, and the product in the `else` branch could
    // overflow.
    let distance = |k: usize| if residues[k].count == 1 { 1 } else { geometry.axes[k].stride * step[k] };
    let windows = WindowRun {
        counts: residues.map(|residue| residue.count),
        run_strides: strides,
        result_start: (0..3).map(place).sum(),
        result_strides: std::array::from_fn(distance),
    };
    let rows = [geometry.tap_count(), geometry.column_rows()];
    let weights = Weights::new(kernels, w, geometry.groups, geometry.channels, geometry.out, rows, &numbers)?;
    let (plane_len, result_plane_len) = (planes.plane_len(), geometry.input_plane_len());
    Ok(WindowSum {
        kernels,
        plane_len,
        input_planes: geometry.out,
        tap_starts: taps,
        weights,
        windows,
        result_plane_len,
    })
}

/// The adjoint of [`forward`] with respect to the weights, as partial sums over the batch. Each partial sum consists of dot products of
/// runs (contiguous ranges) of the input and of the result's gradient. Past the end of a row of windows, input elements are multiplied by
/// zeros.
struct WeightSums<'a, T: Products> {
    kernels: &'a dyn MicroKernels<T>,
    geometry: &'a Geometry,
    planes: PackedPlanes,
    windows: WindowRun,
    /// The number of partial sums.
    sum_count: usize,
    /// The number of images in each partial sum. The last sum may have fewer.
    images_per_sum: usize,
    /// The number of images in a run (a contiguous range of elements). A run contains several images if they are small.
    images_per_run: usize,
    /// For each weight, the start of its run: the position of the first of the contiguous input elements that the weight multiplies.
    run_starts: Vec<usize>,
    /// The number of slices into which the rows (the output channels of a group) are divided. Each slice is computed separately.
    slice_count: usize,
    /// The number of rows in each slice. The last slice may have fewer.
    rows_per_slice: usize,
}

impl<'a, T: Products> WeightSums<'a, T> {
    fn new(kernels: &'a dyn MicroKernels<T>, geometry: &'a Geometry) -> Self {
        let planes = PackedPlanes(geometry.axes.each_ref().map(PackedAxis::of_input));
        let windows = WindowRun::of_all_windows(geometry, &planes);
        let most = match geometry.groups * geometry.group_weight_count() {
            _ if geometry.groups >= 8 => 1,
            ..=0x1_0000 => MAX_PARTIAL_SUMS,
            _ => 4,
        };
        let images = geometry.batch.div_ceil(geometry.batch.min(most));
        let parts = geometry.batch.div_ceil(images);
        let images_per_run = (RUN_ELEMENTS / (geometry.channels * planes.plane_len())).clamp(1, images);
        let taps = input_taps(geometry, &planes, images_per_run * planes.part_len());
        let plane = images_per_run * planes.plane_len();
        let runs = (0..geometry.channels).flat_map(|c| taps.iter().map(move |tap| c * plane + tap)).collect();
        let slices = if parts * geometry.groups >= 4 { 1 } else { geometry.out.min(4) };
        let height = geometry.out.div_ceil(slices);
        let slices = geometry.out.div_ceil(height);
        WeightSums {
            kernels,
            geometry,
            planes,
            windows,
            sum_count: parts,
            images_per_sum: images,
            images_per_run,
            run_starts: runs,
            slice_count: slices,
            rows_per_slice: height,
        }
    }

    /// Returns the length of the contiguous range (the run) with the windows of `images` images. The range is padded with zeros, so that
    /// its length is a multiple of the length of a vector.
    fn run_len(&self, images: usize) -> usize {
        ((images - 1) * self.planes.part_len() + self.windows.len()).next_multiple_of(self.kernels.dot_lanes())
    }

    /// Sets `sums` to one partial sum of the weights' gradient, for one slice of the rows of one group. `unit` is the index of the slice
    /// among all slices of all groups of all partial sums.
    fn compute(&self, unit: usize, x: &[T], z: &[T], sums: &mut [T]) -> Result<(), AllocationError> {
        let Geometry { batch, groups, channels, out, .. } = *self.geometry;
        let (part, group, slice) =
            (unit / self.slice_count / groups, unit / self.slice_count % groups, unit % self.slice_count);
        let rows = slice * self.rows_per_slice..out.min((slice + 1) * self.rows_per_slice);
        sums.fill(T::ZERO);
        let mut source = Scratch::zeroed(channels * self.images_per_run * self.planes.plane_len() + READ_SLACK)?;
        let length = self.run_len(self.images_per_run);
        let mut results = Scratch::zeroed(rows.len() * length)?;
        let end = batch.min((part + 1) * self.images_per_sum);
        for first in (part * self.images_per_sum..end).step_by(self.images_per_run) {
            let images = self.images_per_run.min(end - first);
            if images < self.images_per_run {
                results.fill(T::ZERO);
            }
            for image in 0..images {
                let block = (first + image) * groups + group;
                self.copy_input(x, block, image, &mut source);
                self.copy_results(z, (block, image), rows.clone(), &mut results);
            }
            let whole = self.run_len(images);
            for from in (0..whole).step_by(SEGMENT) {
                let segment = (from, SEGMENT.min(whole - from));
                add_dot_products(self.kernels, (&source, &self.run_starts), (&results, length), segment, sums);
            }
        }
        Ok(())
    }

    /// Copies the planes of the block of `x` with index `block` to `source`. A block is one group of channels of one image. Several images
    /// lie side by side in `source`. The image of this block has the index `image` among them.
    fn copy_input(&self, x: &[T], block: usize, image: usize, source: &mut [T]) {
        let (plane, part) = (self.geometry.input_plane_len(), self.planes.part_len());
        let x = &x[block * self.geometry.channels * plane..][..self.geometry.channels * plane];
        let pairs = x.chunks_exact(plane).zip(source.chunks_exact_mut(self.images_per_run * self.planes.plane_len()));
        pairs.for_each(|(x, to)| self.planes.copy(x, &mut to[image * part..], self.images_per_run * part));
    }

    /// Copies the rows `rows` of the block (one group of one image) of `z` with index `block` to `results`. A row of `results` has the
    /// values of several images. The image of this block has the index `image` among them.
    fn copy_results(&self, z: &[T], (block, image): (usize, usize), rows: std::ops::Range<usize>, results: &mut [T]) {
        let windows = self.geometry.window_count();
        for (row, to) in rows.zip(results.chunks_exact_mut(self.run_len(self.images_per_run))) {
            let z = &z[(block * self.geometry.out + row) * windows..][..windows];
            let to = &mut to[image * self.planes.part_len()..];
            self.windows.segments(0, self.windows.len(), |at, place, count| {
                copy_row(&z[place..][..count], &mut to[at..][..count])
            });
        }
    }
}

/// Sets `w` to the adjoint of [`forward`] with respect to its weights, applied to `z`, the gradient of the result. `x` has the input.
fn weight_gradient<T: Products>(
    kernels: &dyn MicroKernels<T>,
    geometry: &Geometry,
    x: &[T],
    z: &[T],
    w: &mut [T],
) -> Result<(), AllocationError> {
    let sums = WeightSums::new(kernels, geometry);
    let (units, len) = (sums.sum_count * geometry.groups * sums.slice_count, w.len());
    let cut = (1, sums.rows_per_slice * geometry.column_rows());
    let compute = |unit: usize, mut out: Tile<T>| sums.compute(unit, x, z, out.row(0));
    if sums.sum_count == 1 {
        return partition::try_run(
            units,
            geometry.schedule(),
            Grid::equal(w, geometry.group_weight_count(), cut),
            compute,
        );
    }
    let mut partial = Scratch::new(sums.sum_count * len)?;
    let grid = Grid::equal(&mut partial, geometry.group_weight_count(), cut);
    partition::try_run(units, geometry.schedule(), grid, compute)?;
    sum_arrays(&partial, w);
    Ok(())
}

/// Sets `w` to the sum of several arrays of the same length, which `sums` stores one after the other. The arrays are added in this order.
pub(crate) fn sum_arrays<T: Products>(sums: &[T], w: &mut [T]) {
    let (first, others) = sums.split_at(w.len());
    w.copy_from_slice(first);
    for sum in others.chunks_exact(w.len()) {
        w.iter_mut().zip(sum).for_each(|(w, &sum)| *w = w.plus(sum));
    }
}

/// Adds the dot product of each row of `z` with each run (a contiguous range) of `x` to `sums`. A dot product covers `count` elements,
/// beginning with element `first` of the row and of the run.
fn add_dot_products<T: Products>(
    kernels: &dyn MicroKernels<T>,
    (x, run_starts): (&[T], &[usize]),
    (z, pitch): (&[T], usize),
    (first, count): (usize, usize),
    sums: &mut [T],
) {
    let (rows, left, right) = (z.len() / pitch, &z[first..], &x[first..]);
    kernels.run(MicroKernel::DotProducts(DotProducts { rows, left, pitch, right, run_starts, count, sums }));
}
