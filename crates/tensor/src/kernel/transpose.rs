//! Reads transposed matrices tile by tile, for operations whose results are row-major, and for matrix products.
//!
//! In a transposed operand, neighbours in a column are adjacent in memory, and neighbours in a row are far apart. So each tile is read
//! column by column, and each of its cache lines is loaded once. Its transpose is written to a small buffer, in which the elements of each
//! row are contiguous. The buffer stays in the second-level cache.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::Scalar;
use crate::memory::partition::{self, Partition};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::blocks::{BLOCK, MIN_PARALLEL, TASK};
pub(crate) use crate::thresholds::transpose::{PITCH, WIDE};
use crate::thresholds::transpose::{SIDE, TALL, TILE};

/// Splits `0 .. len` into ranges of about `each` elements, and returns the range with index `number`. If `len` is at least [`SIDE`] (the
/// side of the squares that are transposed at once), each range has at least this length. The last range includes the remainder.
fn part(len: usize, each: usize, number: usize) -> Range<usize> {
    let last = parts(len, each) - 1;
    let start = number.min(last) * each;
    start..if number < last { start + each } else { len }
}

/// Returns the number of ranges into which [`part`] splits `0 .. len`.
fn parts(len: usize, each: usize) -> usize {
    ((len + each - SIDE) / each).max(1)
}

/// The two innermost loops of an iteration space, `height` rows of `width` elements, which are split into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiles {
    height: usize,
    width: usize,
}

impl Tiles {
    /// Returns the tiles of a transposed matrix or of a batch of transposed matrices. The second innermost loop of such an operand has
    /// stride 1 or -1, and the innermost loop has a longer stride of either sign. Returns `None` for other operands, for matrices with a
    /// side shorter than [`SIDE`], and for fewer than two blocks of elements.
    pub(crate) fn new(space: &IterationSpace<1>) -> Option<Self> {
        let rows = space.depth().checked_sub(2)?;
        let ((height, [down]), (width, [across])) = (space.loop_of(rows), space.loop_of(rows + 1));
        let large = height >= SIDE && width >= SIDE && space.numel() >= 2 * BLOCK;
        (large && down.abs() == 1 && across.abs() > 1).then_some(Tiles { height, width })
    }

    /// Returns the number of bands (rows of tiles) in `count` elements, and the number of bands in a task of a thread.
    pub(crate) fn bands(&self, count: usize) -> (usize, usize) {
        (count / (self.height * self.width) * parts(self.height, TALL), (TASK / (TALL * self.width)).max(1))
    }

    /// Returns the rows of the band (a row of tiles) with index `band`. Rows are counted over all matrices of the batch.
    pub(crate) fn rows(&self, band: usize) -> Range<usize> {
        let bands = parts(self.height, TALL);
        let (first, rows) = (band / bands * self.height, part(self.height, TALL, band % bands));
        first + rows.start..first + rows.end
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns the column range of each tile of a band (a row of tiles).
    pub(crate) fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        let width = self.width;
        (0..parts(width, WIDE)).map(move |number| part(width, WIDE, number))
    }
}

/// The tile of a transposed operand that was read last, and a buffer in which the elements of each row of the tile are contiguous.
pub(crate) struct TransposedTile<'a, T: Scalar> {
    data: &'a [T],
    space: &'a IterationSpace<1>,
    tiles: Tiles,
    /// The rows of the tile that is in the buffer, counted over all matrices of the batch.
    rows: Range<usize>,
    /// The columns of the tile that is in the buffer.
    columns: Range<usize>,
    elements: Scratch<T>,
}

impl<'a, T: Scalar> TransposedTile<'a, T> {
    /// Returns an empty tile, or `None` if there is no memory for it.
    pub(crate) fn new(data: &'a [T], space: &'a IterationSpace<1>, tiles: Tiles) -> Option<Self> {
        Some(TransposedTile { data, space, tiles, rows: 0..0, columns: 0..0, elements: Scratch::new(TILE).ok()? })
    }

    /// Returns the `len` elements of the operand that begin with the row-major index `start`. They must be the first elements of a row of a
    /// tile. First reads this tile into the buffer, unless it is there already.
    pub(crate) fn row(&mut self, start: usize, len: usize) -> &[T] {
        let Tiles { height, width } = self.tiles;
        let (row, column) = (start / width, start % width);
        if !self.rows.contains(&row) || self.columns.start != column {
            let (matrix, own) = (row / height * height, part(height, TALL, row % height / TALL));
            self.rows = matrix + own.start..matrix + own.end;
            self.columns = part(width, WIDE, column / WIDE);
            let (rows, columns) = (self.rows.clone(), self.columns.clone());
            read_tile(self.data, self.space, (rows, columns, width), PITCH, &mut self.elements);
        }
        &self.elements[(row - self.rows.start) * PITCH..][..len]
    }
}

/// Copies a tile of the transposed operand `data` into `to`. The tile consists of the given rows and columns of a matrix with `width`
/// columns. Successive rows of `to` begin `pitch` elements apart.
fn read_tile<T: Scalar>(
    data: &[T],
    space: &IterationSpace<1>,
    (rows, columns, width): (Range<usize>, Range<usize>, usize),
    pitch: usize,
    to: &mut [T],
) {
    let (_, [down]) = space.loop_of(space.depth() - 2);
    let (_, [step]) = space.loop_of(space.depth() - 1);
    let row = if down < 0 { rows.end - 1 } else { rows.start };
    let column = if step < 0 { columns.end - 1 } else { columns.start };
    let first = space.position(0, row * width + column);
    // If the elements of a column are in descending order in memory, the rows of the tile are written in descending order.
    let pitch = pitch as isize * down.signum();
    transposed(&data[first..], step, columns.len(), rows.len(), pitch, to);
}

/// Copies a transposed operand to `out`, in row-major order. Transposes each tile directly into `out`, without a buffer.
pub(crate) fn copy<T: Scalar>(data: &[T], space: &IterationSpace<1>, tiles: Tiles, out: &mut [T]) {
    let ((bands, each), width) = (tiles.bands(out.len()), tiles.width());
    let first_row = |band: usize| if band < bands { tiles.rows(band).start } else { out.len() / width };
    let tasks = bands.div_ceil(each);
    let ends: Vec<usize> = (1..=tasks).map(|task| first_row(bands.min(task * each)) * width).collect();
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::run(tasks, schedule, Partition::ends(out, &ends), |task, out: &mut [T]| {
        let start = tiles.rows(task * each).start;
        for rows in (task * each..bands.min((task + 1) * each)).map(|band| tiles.rows(band)) {
            for columns in tiles.columns() {
                let to = &mut out[(rows.start - start) * width + columns.start..];
                read_tile(data, space, (rows.clone(), columns, width), width, to);
            }
        }
    });
}

/// Returns true if [`materialize`] can transpose a matrix of `segments` columns of `len` elements.
pub(crate) fn has_squares(segments: usize, len: usize) -> bool {
    (SIDE..=PITCH).contains(&segments) && len >= SIDE
}

/// Computes `out[j, i] = x[i, j]`, where `x[i, j]` is element `j` of segment `i`. The `segments` segments have `len` contiguous elements
/// each, and begin `step` elements apart. The sizes must satisfy [`has_squares`]. Rows of `out` are [`PITCH`] apart.
pub(crate) fn materialize<T: Scalar>(x: &[T], step: usize, segments: usize, len: usize, out: &mut [T]) {
    for Range { start, end } in (0..parts(len, TALL)).map(|number| part(len, TALL, number)) {
        transposed(&x[start..], step as isize, segments, end - start, PITCH as isize, &mut out[start * PITCH..]);
    }
}

/// Computes `tile[j, i] = x[i, j]`, where `x[i, j]` is element `j` of segment `i`. The `segments` segments have `len` contiguous elements
/// each, and begin `step` elements apart. If `step` is negative, `x` begins with the last segment. Both sizes are at least [`SIDE`].
/// Rows of the tile are `pitch` apart, which is at least `segments`. If `pitch` is negative, `tile` begins with the last row.
fn transposed<T: Scalar>(x: &[T], step: isize, segments: usize, len: usize, pitch: isize, tile: &mut [T]) {
    assert!(segments >= SIDE && len >= SIDE && segments <= pitch.unsigned_abs());
    // If a size is not a multiple of [`SIDE`], the last square is moved back so that it ends with the last element. It then overlaps the
    // square before it.
    let places = |len: usize| (0..len.div_ceil(SIDE)).map(move |number| (number * SIDE).min(len - SIDE));
    for segment in places(segments) {
        let lowest = if step < 0 { segments - SIDE - segment } else { segment };
        for first in places(len) {
            let row = if pitch < 0 { len - SIDE - first } else { first };
            let to = &mut tile[row * pitch.unsigned_abs() + segment..];
            square(&x[lowest * step.unsigned_abs() + first..], step, pitch, to);
        }
    }
}

/// Returns the distance of row `i` of a square from the start of a slice, in elements. Rows are `step` apart. If `step` is negative, the
/// slice begins with the last row.
#[inline(always)]
fn start_of_row(i: usize, step: isize) -> usize {
    (if step < 0 { SIDE - 1 - i } else { i }) * step.unsigned_abs()
}

/// Returns true if `slice` contains the [`SIDE`] elements of every row of a square whose rows are `step` apart.
#[inline(always)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn contains_square<T>(slice: &[T], step: isize) -> bool {
    slice.len().checked_sub(SIDE).is_some_and(|rest| step.unsigned_abs() <= rest / (SIDE - 1))
}

/// Computes `to[j, i] = x[i, j]` for a square of [`SIDE`] rows `i` and columns `j`. Rows of `x` are `step` apart, and rows of `to` are
/// `pitch` apart. If `step` is negative, `x` begins with its last row. If `pitch` is negative, `to` begins with its last row.
#[inline]
fn square<T: Scalar>(x: &[T], step: isize, pitch: isize, to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if crate::scalar::cpu::instruction_set() == crate::scalar::cpu::InstructionSet::Avx512 && size_of::<T>() >= 4 {
        // SAFETY: the processor has AVX-512, which was just checked.
        return unsafe { x86::square(x, step, pitch, to) };
    }
    #[cfg(target_arch = "aarch64")]
    if crate::scalar::cpu::instruction_set() == crate::scalar::cpu::InstructionSet::Neon && size_of::<T>() >= 4 {
        return neon::square(x, step, pitch, to);
    }
    let segment = |i: usize| {
        x[start_of_row(i, step)..].first_chunk::<SIDE>().expect("a segment of the square lies within the operand")
    };
    let mut segments: [[T; SIDE]; SIDE] = std::array::from_fn(|i| *segment(i));
    transpose(&mut segments);
    for (j, segment) in segments.iter().enumerate() {
        to[start_of_row(j, pitch)..][..SIDE].copy_from_slice(segment);
    }
}

dispatched! {
    fn transpose<T: Scalar>(square: &mut [[T; SIDE]; SIDE]) {
        let mut other = [[T::ZERO; SIDE]; SIDE];
        rotate(square, &mut other);
        rotate(&other, square);
        rotate(square, &mut other);
        rotate(&other, square);
    }
}

/// Interleaves pairs of rows, in vector registers. This rotates the bits of each element's row-major index in the square by one. Four of
/// these steps transpose a square of 16 rows.
#[inline(always)]
fn rotate<T: Scalar>(square: &[[T; SIDE]; SIDE], out: &mut [[T; SIDE]; SIDE]) {
    const HALF: usize = SIDE / 2;
    for i in 0..HALF {
        let (a, b) = (&square[i], &square[i + HALF]);
        for j in 0..HALF {
            out[2 * i][2 * j] = a[j];
            out[2 * i][2 * j + 1] = b[j];
            out[2 * i + 1][2 * j] = a[j + HALF];
            out[2 * i + 1][2 * j + 1] = b[j + HALF];
        }
    }
}

/// The transposition of square blocks of a matrix in AVX-512 registers.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_setr_epi32,
        _mm512_setr_epi64, _mm512_storeu_si512,
    };

    use super::{SIDE, contains_square, start_of_row};
    use crate::Scalar;

    /// Does the same as [`square`](super::square), for elements of 4 or 8 bytes. Checks the bounds of each slice once, for all rows of the
    /// square. With a check for each row, the processor would load fewer rows at the same time.
    #[target_feature(enable = "avx512f")]
    pub(super) fn square<T: Scalar>(x: &[T], step: isize, pitch: isize, to: &mut [T]) {
        assert!(size_of::<T>() >= 4 && contains_square(to, pitch) && contains_square(x, step));
        let (x, to) = (x.as_ptr(), to.as_mut_ptr());
        // SAFETY: `i` is less than `SIDE`, and the 64 bytes from element `first` on are within the segment, which is within `x`.
        let load = |i: usize, first: usize| unsafe { _mm512_loadu_si512(x.add(start_of_row(i, step) + first).cast()) };
        // SAFETY: as for `load`, with row `j` of the square. Every bit pattern is a valid number of the element types that have 4 or 8
        // bytes.
        let store = |v: __m512i, j: usize, first: usize| unsafe {
            _mm512_storeu_si512(to.add(start_of_row(j, pitch) + first).cast(), v)
        };
        if size_of::<T>() == 4 {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            let mut segments: [__m512i; SIDE] = std::array::from_fn(|i| load(i, 0));
            for _ in 0..4 {
                let before = segments;
                for i in 0..8 {
                    segments[2 * i] = _mm512_permutex2var_epi32(before[i], low, before[i + 8]);
                    segments[2 * i + 1] = _mm512_permutex2var_epi32(before[i], high, before[i + 8]);
                }
            }
            segments.into_iter().enumerate().for_each(|(j, vector)| store(vector, j, 0));
            return;
        }
        // A register has eight elements of 8 bytes. So the quarters of the square, of eight rows and columns, are transposed separately.
        const HALF: usize = SIDE / 2;
        let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        for (top, left) in [(0, 0), (0, HALF), (HALF, 0), (HALF, HALF)] {
            let mut segments: [__m512i; HALF] = std::array::from_fn(|i| load(top + i, left));
            for _ in 0..3 {
                let before = segments;
                for i in 0..4 {
                    segments[2 * i] = _mm512_permutex2var_epi64(before[i], low, before[i + 4]);
                    segments[2 * i + 1] = _mm512_permutex2var_epi64(before[i], high, before[i + 4]);
                }
            }
            segments.into_iter().enumerate().for_each(|(j, vector)| store(vector, left + j, top));
        }
    }
}

/// The transposition of square blocks of a matrix in NEON registers.
#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{
        uint32x4_t, uint64x2_t, vld1q_u32, vld1q_u64, vreinterpretq_u64_u32, vst1q_u64, vtrn1q_u32, vtrn1q_u64,
        vtrn2q_u32, vtrn2q_u64,
    };

    use super::{SIDE, contains_square, start_of_row};
    use crate::Scalar;

    /// Does the same as [`square`](super::square), for elements of 4 or 8 bytes. Transposes small blocks, which have as many rows as a
    /// register has elements.
    pub(super) fn square<T: Scalar>(x: &[T], step: isize, pitch: isize, to: &mut [T]) {
        assert!(size_of::<T>() >= 4 && contains_square(to, pitch) && contains_square(x, step));
        let (x, to) = (x.as_ptr(), to.as_mut_ptr());
        let side = 16 / size_of::<T>();
        for (i, j) in (0..SIDE * SIDE).step_by(side).map(|at| (at / SIDE, at % SIDE)).filter(|(i, _)| i % side == 0) {
            // SAFETY: row `i + row` of `x` and row `j + row` of `to` are rows of the squares. A register holds one row of the block. The
            // squares are within the slices (asserted above). Every bit pattern is a valid number of the element types that have 4 or 8
            // bytes. Every processor of AArch64 has NEON.
            unsafe {
                let from = |row: usize| x.add(start_of_row(i + row, step) + j);
                let store = |row: usize, v: uint64x2_t| vst1q_u64(to.add(start_of_row(j + row, pitch) + i).cast(), v);
                if size_of::<T>() == 4 {
                    let rows: [uint32x4_t; 4] = std::array::from_fn(|row| vld1q_u32(from(row).cast()));
                    let even = [0, 2].map(|row| vreinterpretq_u64_u32(vtrn1q_u32(rows[row], rows[row + 1])));
                    let odd = [0, 2].map(|row| vreinterpretq_u64_u32(vtrn2q_u32(rows[row], rows[row + 1])));
                    store(0, vtrn1q_u64(even[0], even[1]));
                    store(1, vtrn1q_u64(odd[0], odd[1]));
                    store(2, vtrn2q_u64(even[0], even[1]));
                    store(3, vtrn2q_u64(odd[0], odd[1]));
                } else {
                    let (a, b) = (vld1q_u64(from(0).cast()), vld1q_u64(from(1).cast()));
                    store(0, vtrn1q_u64(a, b));
                    store(1, vtrn2q_u64(a, b));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::{Layout, Shape, num_threads, set_num_threads};

    #[test]
    fn parts_cover_everything_in_squares_or_more() {
        for each in [TALL, WIDE] {
            for len in SIDE..5 * WIDE {
                let mut next = 0;
                for number in 0..parts(len, each) {
                    let Range { start, end } = part(len, each, number);
                    assert!(start == next && (SIDE..each + SIDE).contains(&(end - start)), "{start}..{end} of {len}");
                    next = end;
                }
                assert_eq!(next, len);
            }
        }
    }

    #[test]
    fn a_matrix_is_materialized() {
        let (step, x) = (140, (0..300 * 140).map(|i| i as f32).collect::<Vec<_>>());
        for (segments, len) in [(16, 16), (50, 64), (PITCH, 131), (17, 47)] {
            assert!(has_squares(segments, len));
            let mut out = vec![0.0; len * PITCH];
            materialize(&x, step, segments, len, &mut out);
            assert!((0..segments * len).all(|at| out[at % len * PITCH + at / len] == x[at / len * step + at % len]));
        }
        assert!(!has_squares(15, 16) && !has_squares(16, 15) && !has_squares(PITCH + 1, 16));
    }

    /// Checks transposed tiles of every element size against index arithmetic. Also checks [`transpose`], the code without explicit vector
    /// instructions.
    #[test]
    fn tiles_are_transposed() {
        fn check<T: Scalar>(of: fn(usize) -> T) {
            for (segments, len, step) in [(16, 16, 16), (17, 31, 40), (WIDE + 15, TALL + 15, 50), (100, 32, 33)] {
                let x: Vec<T> = (0..segments * step).map(of).collect();
                let (mut tile, mut descending) = (vec![of(0); TILE], vec![of(0); TILE]);
                transposed(&x, step as isize, segments, len, PITCH as isize, &mut tile);
                transposed(&x, -(step as isize), segments, len, PITCH as isize, &mut descending);
                let (mut dense, mut upward) = (vec![of(0); segments * len], vec![of(0); segments * len]);
                transposed(&x, step as isize, segments, len, segments as isize, &mut dense);
                transposed(&x, step as isize, segments, len, -(segments as isize), &mut upward);
                let mut square = std::array::from_fn(|i| std::array::from_fn(|j| x[i * step + j]));
                transpose(&mut square);
                for j in 0..len {
                    for i in 0..segments {
                        let got = [
                            tile[j * PITCH + i],
                            dense[j * segments + i],
                            upward[(len - 1 - j) * segments + i],
                            descending[j * PITCH + segments - 1 - i],
                            if i < SIDE && j < SIDE { square[j][i] } else { tile[j * PITCH + i] },
                        ];
                        assert_eq!(got, [x[i * step + j]; 5], "{segments}x{len}, {i}, {j}");
                    }
                }
            }
        }
        check::<f32>(|i| i as f32);
        check::<f64>(|i| i as f64);
        check::<i64>(|i| i as i64);
        check::<u8>(|i| (i * 37 % 251) as u8);
        check::<bool>(|i| i * i % 7 < 3);
    }

    #[test]
    fn small_matrices_and_plain_ones_are_left_alone() {
        let turned = |rows: usize, columns: usize| Layout::contiguous(Shape::from([columns, rows])).permute(&[1, 0]);
        for (rows, columns, expected) in [(64, 64, true), (16, 256, true), (15, 1000, false), (32, 32, false)] {
            let layout = turned(rows, columns);
            let space = IterationSpace::new(layout.shape(), [&layout]);
            assert_eq!(Tiles::new(&space).is_some(), expected, "{rows}x{columns}");
            let plain = Layout::contiguous(layout.shape().clone());
            assert!(Tiles::new(&IterationSpace::new(plain.shape(), [&plain])).is_none());
        }
    }

    /// Checks that operations on transposed operands give results equal to those on contiguous copies. The other operand has various
    /// layouts, and is on the left or on the right.
    #[test]
    fn transposed_operands_give_the_results_of_their_copies() {
        let number = |i: usize, j: usize, k: usize| ((i * 131 + j) * 137 + k) as f64 % 1009.0 - 500.0;
        let rotations: [&[isize]; 4] = [&[], &[1], &[2], &[1, 2]];
        for (k, [batch, rows, columns]) in
            [[1, 64, 64], [3, 70, 131], [2, 17, 300], [1, 1000, 16], [5, 16, 1001], [2, 47, 271]]
                .into_iter()
                .enumerate()
        {
            let shape = [batch, rows, columns];
            let turned = Tensor::<f64>::from_fn([batch, columns, rows], |i| number(i[0], i[1], i[2])).transpose(1, 2);
            let copy = Tensor::from_fn(shape, |i| number(i[0], i[2], i[1]));
            // Flipped dimensions have negative strides.
            let (turned, copy) = (turned.flip(rotations[k % 4]), copy.flip(rotations[k % 4]).contiguous());
            assert!(!turned.is_contiguous());
            assert_eq!(turned.contiguous(), copy);
            let plain = Tensor::<f64>::from_fn(shape, |i| number(i[1], i[0], i[2]) * 0.5);
            let wide = Tensor::from_fn([batch, rows, 2 * columns], |i| number(i[2], i[0], i[1]));
            let others = [
                plain.clone(),
                // The layout of one operand has strides of two, and the other layout has negative strides.
                wide.slice(2, (0.., 2)),
                plain.flip([1, 2]),
                // This operand is expanded along one dimension.
                plain.select(1, 3).unsqueeze(1).expand(shape.map(|size| size as isize)),
            ];
            for other in &others {
                let lying = other.contiguous();
                for (x, y, first, second) in [(&turned, other, &copy, &lying), (other, &turned, &lying, &copy)] {
                    assert_eq!(x - y, first - second);
                    assert_eq!(x.maximum(y), first.maximum(second));
                    assert_eq!(x.lt(y), first.lt(second));
                    let mask = plain.gt(0.0);
                    assert_eq!(where_(&mask, x, y), where_(&mask, first, second));
                    assert_eq!(where_(&turned.gt(1.0), other, other), where_(&copy.gt(1.0), &lying, &lying));
                }
            }
            let (mut got, mut expected) = (plain.clone(), plain.clone());
            got.sub_(&turned);
            expected.sub_(&copy);
            assert_eq!(got, expected);
            // If both operands are column-major, the result is column-major too.
            assert_eq!((&turned + &turned).strides(), turned.strides().iter().map(|x| x.abs()).collect::<Vec<_>>());
            // This operand is a batch that repeats one matrix.
            let one = turned.narrow(0, 0, 1).expand([4, rows as isize, columns as isize]);
            assert_eq!(
                one.contiguous(),
                copy.narrow(0, 0, 1).expand([4, rows as isize, columns as isize]).contiguous()
            );
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same() {
        let turned = Tensor::<f32>::from_fn([600, 301], |i| (i[0] * 7 + i[1]) as f32).t();
        let plain = Tensor::<f32>::from_fn([301, 600], |i| (i[0] * 3 + i[1]) as f32 * 0.1);
        let before = num_threads();
        let results = [1, 2, 5].map(|threads| {
            set_num_threads(threads);
            &turned / &plain
        });
        set_num_threads(before);
        let bits = |x: &Tensor<f32>| x.iter().map(f32::to_bits).collect::<Vec<_>>();
        assert!(results.iter().all(|result| bits(result) == bits(&results[0])));
    }
}
