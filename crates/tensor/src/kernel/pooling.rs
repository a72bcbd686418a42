//! The largest element of every window of every plane `[h, w]`: its value, its place, and a gradient's way back to it.
//!
//! Of several that are equal the first one counts, of NaNs the last (ATen: `max_pool2d`). A row of windows goes through the
//! elements of the window one after the other, all windows side by side.

use super::convolution::Axis;
use super::simd::dispatched;
use crate::threads;
use crate::{Float, Number};

/// Elements of the planes that one part goes through, about.
const PART: usize = 1 << 14;

/// In place of an offset: no element of the window is inside.
const NOTHING: u32 = u32::MAX;

/// Planes `[h, w]` and the windows on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
}

impl Plan {
    fn plane(&self) -> usize {
        self.rows.input * self.columns.input
    }

    fn windows(&self) -> usize {
        self.rows.output * self.columns.output
    }

    /// Planes that go together.
    fn together(&self) -> usize {
        (PART / self.plane().max(1)).max(1)
    }

    /// Where the element at `offset` from the corner of window `(i, j)` is; the corner may lie outside, the element does not.
    fn place(&self, i: usize, j: usize, offset: u32) -> usize {
        let corner = i * self.rows.stride * self.columns.input + j * self.columns.stride;
        corner + offset as usize - (self.rows.before * self.columns.input + self.columns.before)
    }
}

/// `out` = the element of `values` where the one of `x` is the largest of the window; `nothing` where the window is empty.
pub(crate) fn choose<T: Float>(plan: &Plan, x: &[T], values: &[T], nothing: T, out: &mut [T]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    threads::for_chunks(out, together * windows, |part, out| {
        let mut line = Line::new(plan);
        for (number, out) in out.chunks_exact_mut(windows).enumerate() {
            let from = (part * together + number) * plane;
            choose_plane(plan, &x[from..from + plane], &values[from..from + plane], nothing, out, &mut line);
        }
    });
}

/// The adjoint of [`choose`] as a function of `values`: `out`, all of it, of `g`.
pub(crate) fn give_back<T: Float>(plan: &Plan, x: &[T], g: &[T], out: &mut [T]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    threads::for_chunks(out, together * plane, |part, out| {
        let mut line = Line::new(plan);
        for (number, out) in out.chunks_exact_mut(plane).enumerate() {
            let number = part * together + number;
            let (x, g) = (&x[number * plane..][..plane], &g[number * windows..][..windows]);
            give_back_plane(plan, x, g, out, &mut line);
        }
    });
}

/// The place in its plane, in row-major order, of the largest of every window; 0 where the window is empty.
pub(crate) fn places<T: Float>(plan: &Plan, x: &[T], out: &mut [i64]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    threads::for_chunks(out, together * windows, |part, out| {
        let mut line = Line::new(plan);
        for (number, out) in out.chunks_exact_mut(windows).enumerate() {
            let x = &x[(part * together + number) * plane..][..plane];
            for (i, out) in out.chunks_exact_mut(plan.columns.output).enumerate() {
                look(plan, x, i, &mut line);
                for (j, (out, &offset)) in out.iter_mut().zip(&line.offsets).enumerate() {
                    *out = if offset == NOTHING { 0 } else { plan.place(i, j, offset) as i64 };
                }
            }
        }
    });
}

/// The largest element so far of each window of a row, and its offset from the window's corner.
struct Line<T> {
    best: Vec<T>,
    offsets: Vec<u32>,
}

impl<T: Number> Line<T> {
    fn new(plan: &Plan) -> Self {
        let count = plan.columns.output;
        Line { best: vec![T::ZERO; count], offsets: vec![NOTHING; count] }
    }
}

dispatched! {
    fn choose_plane<T: Float>(plan: &Plan, x: &[T], values: &[T], nothing: T, out: &mut [T], line: &mut Line<T>) {
        let is_its_own = std::ptr::eq(x, values);
        for (i, out) in out.chunks_exact_mut(plan.columns.output).enumerate() {
            look(plan, x, i, line);
            if is_its_own && !line.offsets.contains(&NOTHING) {
                out.copy_from_slice(&line.best);
                continue;
            }
            for (j, (out, &offset)) in out.iter_mut().zip(&line.offsets).enumerate() {
                *out = if offset == NOTHING { nothing } else { values[plan.place(i, j, offset)] };
            }
        }
    }
}

dispatched! {
    fn give_back_plane<T: Float>(plan: &Plan, x: &[T], g: &[T], out: &mut [T], line: &mut Line<T>) {
        out.fill(T::ZERO);
        for (i, g) in g.chunks_exact(plan.columns.output).enumerate() {
            look(plan, x, i, line);
            for (j, (&g, &offset)) in g.iter().zip(&line.offsets).enumerate() {
                if offset != NOTHING {
                    let out = &mut out[plan.place(i, j, offset)];
                    *out = *out + g;
                }
            }
        }
    }
}

/// Finds the largest element of each window of row `i` of windows.
#[inline(always)]
fn look<T: Float>(plan: &Plan, x: &[T], i: usize, line: &mut Line<T>) {
    let (rows, columns) = (&plan.rows, &plan.columns);
    line.offsets.fill(NOTHING);
    for kh in 0..rows.kernel {
        let Some(row) = rows.place(i, kh) else { continue };
        for kw in 0..columns.kernel {
            let (low, high) = columns.inside(kw);
            if low == high {
                continue;
            }
            let first = row * columns.input + low * columns.stride + kw * columns.dilation - columns.before;
            let offset = (kh * rows.dilation * columns.input + kw * columns.dilation) as u32;
            let (best, offsets) = (&mut line.best[low..high], &mut line.offsets[low..high]);
            let from = &x[first..=first + (high - low - 1) * columns.stride];
            match columns.stride {
                1 => consider(from.iter().copied(), offset, best, offsets),
                2 => {
                    let (pairs, last) = from.as_chunks::<2>();
                    let count = pairs.len();
                    consider(pairs.iter().map(|pair| pair[0]), offset, &mut best[..count], &mut offsets[..count]);
                    consider(last.iter().copied(), offset, &mut best[count..], &mut offsets[count..]);
                }
                stride => consider(from.iter().step_by(stride).copied(), offset, best, offsets),
            }
        }
    }
}

#[inline(always)]
fn consider<T: Float>(values: impl Iterator<Item = T>, offset: u32, best: &mut [T], offsets: &mut [u32]) {
    for ((value, best), taken) in values.zip(best).zip(offsets) {
        // Not a short cut in sight: all three are computed, so that windows go side by side.
        let wins = (value > *best) | value.is_nan() | (*taken == NOTHING);
        *best = if wins { value } else { *best };
        *taken = if wins { offset } else { *taken };
    }
}
