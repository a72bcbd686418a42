//! Maximum pooling over planes `[h, w]`: the value of each window's largest element, its position, and the adjoint.
//!
//! Of equal elements the first is taken, of NaNs the last (ATen: `max_pool2d`). For a row of windows, the window elements are
//! visited one by one, each for all windows at once.

use crate::kernel::conv::geometry::WindowAxis;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::{Float, Number};

/// Approximate number of plane elements per part.
const PART: usize = 1 << 14;

/// In place of an offset: the window has no element inside the plane.
const NOTHING: u32 = u32::MAX;

/// Planes `[h, w]` and their windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: WindowAxis,
    pub(crate) columns: WindowAxis,
}

impl Plan {
    fn plane(&self) -> usize {
        self.rows.input * self.columns.input
    }

    fn windows(&self) -> usize {
        self.rows.output * self.columns.output
    }

    /// Whether the windows are adjacent 2 x 2 squares, the most usual case.
    fn is_quartering(&self) -> bool {
        let plain = |axis: &WindowAxis| {
            axis.kernel == 2
                && axis.stride == 2
                && axis.dilation == 1
                && axis.before == 0
                && 2 * axis.output <= axis.input
        };
        plain(&self.rows) && plain(&self.columns)
    }

    /// Planes per part.
    fn together(&self) -> usize {
        (PART / self.plane().max(1)).max(1)
    }

    /// The position of the element at `offset` from the corner of window `(i, j)`. The corner may be outside the plane, the element
    /// is not.
    fn place(&self, i: usize, j: usize, offset: u32) -> usize {
        let corner = i * self.rows.stride * self.columns.input + j * self.columns.stride;
        corner + offset as usize - (self.rows.before * self.columns.input + self.columns.before)
    }
}

/// `out` = the element of `values` at the position of the window's largest element of `x`; `nothing` if the window is empty.
pub(crate) fn choose<T: Float>(plan: &Plan, x: &[T], values: &[T], nothing: T, out: &mut [T]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    partition::chunks(out, together * windows, Schedule::Parallel, |part, out| {
        let mut line = Line::new(plan);
        for (number, out) in out.chunks_exact_mut(windows).enumerate() {
            let from = (part * together + number) * plane;
            let (x, values) = (&x[from..from + plane], &values[from..from + plane]);
            if std::ptr::eq(x, values) && plan.is_quartering() {
                choose_quarters(plan, x, out);
            } else {
                choose_plane(plan, x, values, nothing, out, &mut line);
            }
        }
    });
}

/// The adjoint of [`choose`] with respect to `values`: overwrites `out` with what `g` gives.
pub(crate) fn give_back<T: Float>(plan: &Plan, x: &[T], g: &[T], out: &mut [T]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    partition::chunks(out, together * plane, Schedule::Parallel, |part, out| {
        let mut line = Line::new(plan);
        for (number, out) in out.chunks_exact_mut(plane).enumerate() {
            let number = part * together + number;
            let (x, g) = (&x[number * plane..][..plane], &g[number * windows..][..windows]);
            if plan.is_quartering() {
                give_back_quarters(plan, x, g, out);
            } else {
                give_back_plane(plan, x, g, out, &mut line);
            }
        }
    });
}

/// The row-major position, within its plane, of the largest element of every window; 0 if the window is empty.
pub(crate) fn places<T: Float>(plan: &Plan, x: &[T], out: &mut [i64]) {
    let (plane, windows, together) = (plan.plane(), plan.windows(), plan.together());
    partition::chunks(out, together * windows, Schedule::Parallel, |part, out| {
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

/// For each window of a row, the largest element so far and its offset from the window's corner.
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

/// Windows that are computed at once.
const EIGHT: usize = 8;

/// The largest element of eight 2 x 2 windows, and its index in the window.
#[inline(always)]
fn eight<T: Float>(top: &[T; 2 * EIGHT], bottom: &[T; 2 * EIGHT]) -> ([T; EIGHT], [u32; EIGHT]) {
    let (mut best, mut which) = ([T::ZERO; EIGHT], [0; EIGHT]);
    for j in 0..EIGHT {
        let (mut largest, mut at) = (top[2 * j], 0);
        for (number, value) in [(1, top[2 * j + 1]), (2, bottom[2 * j]), (3, bottom[2 * j + 1])] {
            let wins = (value > largest) | value.is_nan();
            largest = if wins { value } else { largest };
            at = if wins { number } else { at };
        }
        (best[j], which[j]) = (largest, at);
    }
    (best, which)
}

/// The start and length of each group of eight windows of a row. The last group starts earlier if possible, overlapping the group
/// before it.
fn groups(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).step_by(EIGHT).map(move |first| (first.min(count.saturating_sub(EIGHT)), count.min(EIGHT)))
}

/// Two elements for each of the `count` windows at the start of `row`.
#[inline(always)]
fn pairs<T: Float>(line: &[T], count: usize) -> [T; 2 * EIGHT] {
    let mut all = [T::ZERO; 2 * EIGHT];
    all[..2 * count].copy_from_slice(&line[..2 * count]);
    all
}

#[inline(always)]
fn choose_group<T: Float>(top: &[T], bottom: &[T], out: &mut [T], count: usize) {
    let (best, _) = eight(&pairs(top, count), &pairs(bottom, count));
    out[..count].copy_from_slice(&best[..count]);
}

#[inline(always)]
fn give_back_group<T: Float>(x: [&[T]; 2], g: &[T], out: &mut [T], width: usize, count: usize) {
    let (_, which) = eight(&pairs(x[0], count), &pairs(x[1], count));
    let mut given = [T::ZERO; EIGHT];
    given[..count].copy_from_slice(&g[..count]);
    let mut quarters = [[T::ZERO; EIGHT]; 4];
    for (number, quarter) in quarters.iter_mut().enumerate() {
        for j in 0..EIGHT {
            quarter[j] = if which[j] == number as u32 { given[j] } else { T::ZERO };
        }
    }
    for row in 0..2 {
        let mut line = [T::ZERO; 2 * EIGHT];
        for j in 0..EIGHT {
            line[2 * j] = quarters[2 * row][j];
            line[2 * j + 1] = quarters[2 * row + 1][j];
        }
        out[row * width..][..2 * count].copy_from_slice(&line[..2 * count]);
    }
}

// Constant values of `count` are compiled separately.
dispatched! {
    fn choose_quarters<T: Float>(plan: &Plan, x: &[T], out: &mut [T]) {
        let width = plan.columns.input;
        for (out, x) in out.chunks_exact_mut(plan.columns.output).zip(x.chunks(2 * width)) {
            for (first, count) in groups(out.len()) {
                let (top, bottom, out) = (&x[2 * first..], &x[width + 2 * first..], &mut out[first..]);
                match count {
                    EIGHT => choose_group(top, bottom, out, EIGHT),
                    4 => choose_group(top, bottom, out, 4),
                    count => choose_group(top, bottom, out, count),
                }
            }
        }
    }
}

dispatched! {
    fn give_back_quarters<T: Float>(plan: &Plan, x: &[T], g: &[T], out: &mut [T]) {
        let width = plan.columns.input;
        // Elements that no window covers.
        for (row, line) in out.chunks_exact_mut(width).enumerate() {
            let covered = if row < 2 * plan.rows.output { 2 * plan.columns.output } else { 0 };
            line[covered..].fill(T::ZERO);
        }
        for ((out, x), g) in out.chunks_mut(2 * width).zip(x.chunks(2 * width)).zip(g.chunks_exact(plan.columns.output)) {
            for (first, count) in groups(g.len()) {
                let (x, g, out) = ([&x[2 * first..], &x[width + 2 * first..]], &g[first..], &mut out[2 * first..]);
                match count {
                    EIGHT => give_back_group(x, g, out, width, EIGHT),
                    4 => give_back_group(x, g, out, width, 4),
                    count => give_back_group(x, g, out, width, count),
                }
            }
        }
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
        // Without branches, so that windows are processed in vectors.
        let wins = (value > *best) | value.is_nan() | (*taken == NOTHING);
        *best = if wins { value } else { *best };
        *taken = if wins { offset } else { *taken };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The position of the largest element of each window, by the definition.
    fn by_definition(plan: &Plan, x: &[f64]) -> Vec<Option<usize>> {
        let mut places = Vec::new();
        for window in 0..x.len() / plan.plane() * plan.windows() {
            let start = window / plan.windows() * plan.plane();
            let (i, j) = (window % plan.windows() / plan.columns.output, window % plan.columns.output);
            let mut best: Option<usize> = None;
            for (kh, kw) in (0..plan.rows.kernel).flat_map(|kh| (0..plan.columns.kernel).map(move |kw| (kh, kw))) {
                if let (Some(h), Some(w)) = (plan.rows.place(i, kh), plan.columns.place(j, kw)) {
                    let place = h * plan.columns.input + w;
                    if best.is_none_or(|best| x[start + place] > x[start + best] || x[start + place].is_nan()) {
                        best = Some(place);
                    }
                }
            }
            places.push(best);
        }
        places
    }

    fn axis() -> impl Strategy<Value = WindowAxis> {
        let sizes = (1..4usize, 1..4usize, 1..3usize, 0..3usize, 0..30usize, prop::bool::ANY);
        sizes.prop_map(|(kernel, stride, dilation, before, more, halves)| {
            let input = 2 + more;
            if halves {
                return WindowAxis { input, kernel: 2, output: input / 2, stride: 2, dilation: 1, before: 0 };
            }
            let span = (kernel - 1) * dilation + 1;
            let output = (2 * before + input).saturating_sub(span) / stride + 1;
            WindowAxis { input, kernel, output, stride, dilation, before }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        #[test]
        fn poolings_equal_their_twins(rows in axis(), columns in axis(), planes in 1..4usize, seed in 0..1000usize) {
            let plan = Plan { rows, columns };
            // Few distinct numbers, so that many are equal; infinities and NaN among them.
            let numbers = [0.0, 1.0, 2.0, -1.0, 1.0, f64::NEG_INFINITY, 2.0, f64::INFINITY, -3.0, f64::NAN, 0.5];
            let x: Vec<f64> = (0..planes * plan.plane()).map(|i| numbers[(i * i + seed * i / 3) % 11]).collect();
            let places_expected = by_definition(&plan, &x);
            let values: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
            let count = planes * plan.windows();
            let place = |window: usize| places_expected[window].map(|place| window / plan.windows() * plan.plane() + place);

            let mut got = vec![7; count];
            places(&plan, &x, &mut got);
            prop_assert!((0..count).all(|window| got[window] == places_expected[window].unwrap_or(0) as i64));

            let mut got = vec![7.0; count];
            choose(&plan, &x, &x, -1.5, &mut got);
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!((0..count).all(|window| same(got[window], place(window).map_or(-1.5, |place| x[place]))));
            choose(&plan, &x, &values, -1.5, &mut got);
            prop_assert!((0..count).all(|window| got[window] == place(window).map_or(-1.5, |place| values[place])));

            let g: Vec<f64> = (0..count).map(|i| (i % 17) as f64 + 1.0).collect();
            let (mut got, mut expected) = (vec![7.0; x.len()], vec![0.0; x.len()]);
            give_back(&plan, &x, &g, &mut got);
            (0..count).for_each(|window| if let Some(place) = place(window) { expected[place] += g[window] });
            prop_assert_eq!(got, expected);
        }
    }
}
