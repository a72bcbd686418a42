//! Operands that are transposed matrices beside a result in row-major order: read by squares.
//!
//! An element of such an operand and the next one of its row are far apart in memory; those of a column lie together. So a
//! tile, some rows by some columns, is read column by column, each of its cache lines once, and transposed into the first-level
//! cache, where its rows lie in order for an operation, a copy or whatever follows.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use crate::Element;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::strided::{BLOCK, TASK, gather};
use crate::memory::partition::{self, Partition};
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::shape::iteration_space::Nest;

/// Side of the squares that are transposed at once. A matrix with a shorter one is not worth it.
const SIDE: usize = 16;

/// Rows and columns of a tile: of each column two cache lines, and rows that other operands and the result are read and written
/// in without many jumps. The last ones take what is left and is less than a square.
const TALL: usize = 32;
const WIDE: usize = 256;

/// Elements from one row of a tile to the next, and in all.
const PITCH: usize = WIDE + SIDE;
const TILE: usize = (TALL + SIDE) * PITCH;

/// Stretches of about `each` that cover `0 .. len`: how many, and where one ends.
fn stretches(len: usize, each: usize) -> (usize, impl Fn(usize) -> usize) {
    let count = ((len + each - SIDE) / each).max(1);
    (count, move |number| if number + 1 == count { len } else { (number + 1) * each })
}

/// A nest with an operand that is a transposed matrix, or a batch of them: the innermost loop jumps where the one around it
/// goes on one by one.
pub(crate) struct Turned<'a, const N: usize> {
    nest: &'a Nest<N>,
    operand: usize,
}

impl<'a, const N: usize> Turned<'a, N> {
    /// `None` where no operand is one, or the matrices are small.
    pub(crate) fn new(nest: &'a Nest<N>) -> Option<Self> {
        let rows = nest.depth().checked_sub(2)?;
        let ((height, down), (width, across)) = (nest.loop_of(rows), nest.loop_of(rows + 1));
        if height < SIDE || width < SIDE || nest.numel() < 4 * BLOCK {
            return None;
        }
        let operand = (0..N).find(|&k| down[k] == 1 && across[k] > 1)?;
        Some(Turned { nest, operand })
    }

    /// Number of the transposed operand.
    pub(crate) fn operand(&self) -> usize {
        self.operand
    }

    /// Whether the matrices of the batch are all the same one.
    pub(crate) fn repeats(&self) -> bool {
        (0..self.nest.depth() - 2).any(|axis| self.nest.loop_of(axis).1[self.operand] == 0)
    }

    /// `len` elements of a row of operand `k` from `position` on; `scratch` holds them where they must be gathered.
    pub(crate) fn part<'b, T: Element>(
        &self,
        k: usize,
        data: &'b [T],
        position: usize,
        len: usize,
        scratch: &'b mut Vec<T>,
    ) -> Operand<'b, T> {
        match self.nest.loop_of(self.nest.depth() - 1).1[k] {
            0 => Operand::Splat(data[position]),
            1 => Operand::Slice(&data[position..position + len]),
            stride => {
                gather(data, position, stride, len, scratch);
                Operand::Slice(scratch)
            }
        }
    }

    /// Fills `out`, in row-major order, by parts of rows: `f(part of a row of the transposed operand, where each operand's
    /// part begins, out)`. `data` is the transposed operand's.
    pub(crate) fn fill<T: Element, U: Element>(
        &self,
        data: &[T],
        out: &mut [U],
        f: impl Fn(&[T], [usize; N], &mut [U]) + Sync,
    ) {
        let Turned { nest, operand } = *self;
        let rows = nest.depth() - 2;
        let ((height, down), (width, across)) = (nest.loop_of(rows), nest.loop_of(rows + 1));
        let (bands, bottom) = stretches(height, TALL);
        let (pieces, right) = stretches(width, WIDE);
        let number = out.len() / (height * width) * bands;
        let each = (TASK / (TALL * width)).max(1);
        let start = |band: usize| (band / bands * height + band % bands * TALL) * width;
        let ends: Vec<usize> = (1..=number.div_ceil(each)).map(|task| start(number.min(task * each))).collect();
        partition::run(ends.len(), Schedule::Parallel, Partition::ends(out, &ends), |task, out| {
            let mut rest = out;
            let mut tile = [const { MaybeUninit::uninit() }; TILE];
            for band in task * each..number.min((task + 1) * each) {
                let (matrix, band) = (band / bands, band % bands);
                let tall = bottom(band) - band * TALL;
                let first = (matrix * height + band * TALL) * width;
                let from: [usize; N] = std::array::from_fn(|k| nest.position(k, first));
                let (out, later) = rest.split_at_mut(tall * width);
                rest = later;
                for piece in 0..pieces {
                    let left = piece * WIDE;
                    let wide = right(piece) - left;
                    let step = across[operand] as usize;
                    let tile = transposed(&data[from[operand] + left * step..], step, wide, tall, &mut tile);
                    for row in 0..tall {
                        let at = |k: usize| from[k] as isize + row as isize * down[k] + left as isize * across[k];
                        let at: [usize; N] = std::array::from_fn(|k| at(k) as usize);
                        // SAFETY: so many elements of each row of the tile were written.
                        let x = unsafe { std::slice::from_raw_parts(tile.add(row * PITCH), wide) };
                        f(x, at, &mut out[row * width + left..][..wide]);
                    }
                }
            }
        });
    }
}

/// `tile[j, i] = x[i, j]` of `lines` lines of `len` elements, `step` apart, a square at least; where the tile begins, of which
/// a row has [`PITCH`].
fn transposed<T: Element>(
    x: &[T],
    step: usize,
    lines: usize,
    len: usize,
    tile: &mut [MaybeUninit<T>; TILE],
) -> *const T {
    assert!(lines >= SIDE && len >= SIDE && (lines - 1) * step + len <= x.len());
    assert!(lines <= PITCH && len <= TALL + SIDE);
    // The last square of a line, or of lines, begins where it ends with them.
    let places = |len: usize| (0..len.div_ceil(SIDE)).map(move |number| (number * SIDE).min(len - SIDE));
    let start = tile.as_mut_ptr().cast::<T>();
    for line in places(lines) {
        for first in places(len) {
            // SAFETY: each line of the square lies within `x`, and each row of it within the tile, as asserted above.
            unsafe { square(x.as_ptr().add(line * step + first), step, start.add(first * PITCH + line)) };
        }
    }
    start
}

/// `to[j, i] = x[i, j]` of a square: lines of `x` are `step` apart, those of `to` [`PITCH`].
///
/// # Safety
///
/// The lines must be readable and writable, and not overlap.
#[inline]
unsafe fn square<T: Element>(x: *const T, step: usize, to: *mut T) {
    #[cfg(target_arch = "x86_64")]
    if crate::scalar::cpu::instruction_set() == crate::scalar::cpu::InstructionSet::Avx512 {
        match size_of::<T>() {
            // SAFETY: the processor has AVX-512; elements have this size; the rest is the caller's promise.
            4 => return unsafe { x86::square_of_4(x.cast(), step, to.cast()) },
            // SAFETY: as above.
            8 => return unsafe { x86::square_of_8(x.cast(), step, to.cast()) },
            _ => {}
        }
    }
    let mut lines = [[T::ZERO; SIDE]; SIDE];
    for (i, line) in lines.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(x.add(i * step), line.as_mut_ptr(), SIDE) };
    }
    transpose(&mut lines);
    for (j, line) in lines.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), to.add(j * PITCH), SIDE) };
    }
}

dispatched! {
    fn transpose<T: Element>(square: &mut [[T; SIDE]; SIDE]) {
        let mut other = [[T::ZERO; SIDE]; SIDE];
        rotate(square, &mut other);
        rotate(&other, square);
        rotate(square, &mut other);
        rotate(&other, square);
    }
}

/// The elements' numbers, of eight bits, rotated by one; by four, that is the transposed square. Two lines become two others,
/// in vector registers.
#[inline(always)]
fn rotate<T: Element>(square: &[[T; SIDE]; SIDE], out: &mut [[T; SIDE]; SIDE]) {
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

/// As [`rotate`], all in registers.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_setr_epi32,
        _mm512_setr_epi64, _mm512_storeu_si512,
    };

    use super::{PITCH, SIDE};

    /// # Safety
    ///
    /// As for [`square`](crate::kernel::square), of elements of 4 bytes.
    #[target_feature(enable = "avx512f")]
    pub(crate) unsafe fn square_of_4(x: *const u32, step: usize, to: *mut u32) {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        // SAFETY: the caller's promise.
        let mut lines: [__m512i; 16] = std::array::from_fn(|i| unsafe { _mm512_loadu_si512(x.add(i * step).cast()) });
        for _ in 0..4 {
            let before = lines;
            for i in 0..8 {
                lines[2 * i] = _mm512_permutex2var_epi32(before[i], low, before[i + 8]);
                lines[2 * i + 1] = _mm512_permutex2var_epi32(before[i], high, before[i + 8]);
            }
        }
        for (j, line) in lines.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_si512(to.add(j * PITCH).cast(), line) };
        }
    }

    /// # Safety
    ///
    /// As for [`square`](crate::kernel::square), of elements of 8 bytes.
    #[target_feature(enable = "avx512f")]
    pub(crate) unsafe fn square_of_8(x: *const u64, step: usize, to: *mut u64) {
        let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        for (line, first) in [(0, 0), (0, SIDE / 2), (SIDE / 2, 0), (SIDE / 2, SIDE / 2)] {
            // SAFETY: a quarter of the square: the caller's promise.
            let load = |i: usize| unsafe { _mm512_loadu_si512(x.add((line + i) * step + first).cast()) };
            let mut lines: [__m512i; 8] = std::array::from_fn(load);
            for _ in 0..3 {
                let before = lines;
                for i in 0..4 {
                    lines[2 * i] = _mm512_permutex2var_epi64(before[i], low, before[i + 4]);
                    lines[2 * i + 1] = _mm512_permutex2var_epi64(before[i], high, before[i + 4]);
                }
            }
            for (j, line_of) in lines.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(to.add((first + j) * PITCH + line).cast(), line_of) };
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
    fn stretches_cover_everything_in_squares_or_more() {
        for each in [TALL, WIDE] {
            for len in SIDE..5 * WIDE {
                let (count, end) = stretches(len, each);
                assert_eq!(end(count - 1), len);
                for number in 0..count {
                    let size = end(number) - number * each;
                    assert!((SIDE..each + SIDE).contains(&size), "{size} of {len}");
                }
            }
        }
    }

    /// Of every size of element, beside index arithmetic; the loop too that stands in where a processor has no better one.
    #[test]
    fn tiles_are_transposed() {
        fn check<T: Element>(of: fn(usize) -> T) {
            for (lines, len, step) in [(16, 16, 16), (17, 31, 40), (WIDE + 15, TALL + 15, 50), (100, 32, 33)] {
                let x: Vec<T> = (0..lines * step).map(of).collect();
                let mut tile = [const { MaybeUninit::uninit() }; TILE];
                transposed(&x, step, lines, len, &mut tile);
                let mut square = std::array::from_fn(|i| std::array::from_fn(|j| x[i * step + j]));
                transpose(&mut square);
                for j in 0..len {
                    for i in 0..lines {
                        // SAFETY: written just now.
                        let got = unsafe { tile[j * PITCH + i].assume_init() };
                        assert_eq!(got, x[i * step + j], "{lines}x{len}, {i}, {j}");
                        assert!(i >= SIDE || j >= SIDE || square[j][i] == got, "{i}, {j}");
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
            let nest = Nest::new(layout.shape(), [&layout]);
            assert_eq!(Turned::new(&nest).is_some(), expected, "{rows}x{columns}");
            let plain = Layout::contiguous(layout.shape().clone());
            assert!(Turned::new(&Nest::new(plain.shape(), [&plain])).is_none());
        }
    }

    /// Beside operands of every kind, on either side: the same bits as of operands that lie in order.
    #[test]
    fn operations_equal_those_of_copies() {
        let number = |i: usize, j: usize, k: usize| ((i * 131 + j) * 137 + k) as f64 % 1009.0 - 500.0;
        for [batch, rows, columns] in
            [[1, 64, 64], [3, 70, 131], [2, 17, 300], [1, 1000, 16], [5, 16, 1001], [2, 47, 271]]
        {
            let shape = [batch, rows, columns];
            let turned = Tensor::<f64>::from_fn([batch, columns, rows], |i| number(i[0], i[1], i[2])).transpose(1, 2);
            let copy = Tensor::from_fn(shape, |i| number(i[0], i[2], i[1]));
            assert!(!turned.is_contiguous());
            assert_eq!(turned.contiguous(), copy);
            let plain = Tensor::<f64>::from_fn(shape, |i| number(i[1], i[0], i[2]) * 0.5);
            let wide = Tensor::from_fn([batch, rows, 2 * columns], |i| number(i[2], i[0], i[1]));
            let others = [
                plain.clone(),
                // Steps of two, and backwards.
                wide.slice(2, Some(0), None, 2),
                plain.flip([1, 2]),
                // Repeated along one dimension, beside what is not, so that the result lies in order.
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
            // One after the other in memory, and so is the result.
            assert_eq!((&turned + &turned).strides(), turned.strides());
            // The same matrix for each of a batch.
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
