//! Maximum pooling over planes `[h, w]`: the largest element of each window, its position, and the adjoint.
//!
//! If several elements of a window are equally large, its maximum is the first of them. If elements are NaN, the maximum is the last NaN
//! (ATen: `max_pool2d`). The outer loop is over the elements of a window, and the inner loop over the windows of a row. Adjacent windows of
//! 2 x 2 elements have loops of their own.

use crate::kernel::conv::geometry::WindowAxis;
use crate::kernel::fill::copy_strided;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::pool::{PART, WINDOWS_AT_ONCE};
use crate::{Float, Number, Reduction};

/// The value that marks a window without elements inside the plane. Other values are offsets of a window's largest element.
const NO_ELEMENT: u32 = u32::MAX;

/// The sizes of planes `[h, w]` and of the windows of a maximum pooling.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool {
    pub(crate) rows: WindowAxis,
    pub(crate) columns: WindowAxis,
}

impl MaxPool {
    fn plane(&self) -> usize {
        self.rows.input * self.columns.input
    }

    fn windows(&self) -> usize {
        self.rows.output * self.columns.output
    }

    /// Returns whether the windows are adjacent squares of 2 x 2 elements, the most frequent case.
    fn is_quartering(&self) -> bool {
        let plain = |axis: &WindowAxis| {
            axis.kernel == 2
                && axis.stride == 2
                && axis.dilation == 1
                && axis.padding_before == 0
                && 2 * axis.output <= axis.input
        };
        plain(&self.rows) && plain(&self.columns)
    }

    /// Returns the number of planes that a task of a thread computes.
    fn per_part(&self) -> usize {
        (PART / self.plane().max(1)).max(1)
    }

    /// Returns the position of an element of window `(i, j)` in the plane. `offset` is the row-major distance of the element from the
    /// window's corner. The corner may be outside the plane, but the element must be inside.
    fn place(&self, i: usize, j: usize, offset: u32) -> usize {
        let corner = i * self.rows.stride * self.columns.input + j * self.columns.stride;
        corner + offset as usize - (self.rows.padding_before * self.columns.input + self.columns.padding_before)
    }
}

/// For each window, finds the position of the largest element of `x`, and writes the element of `values` at this position to `out`. For a
/// window without elements inside the plane, writes `nothing`.
pub(crate) fn choose<T: Float>(pool: &MaxPool, x: &[T], values: &[T], nothing: T, out: &mut [T]) {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    partition::chunks(out, per_part * windows, Schedule::Parallel, |part, out| {
        let mut maxima = RowMaxima::new(pool);
        for (number, out) in out.chunks_exact_mut(windows).enumerate() {
            let from = (part * per_part + number) * plane;
            let (x, values) = (&x[from..from + plane], &values[from..from + plane]);
            if std::ptr::eq(x, values) && pool.is_quartering() {
                choose_quarters(pool, x, out);
            } else if std::ptr::eq(x, values) && nothing == T::start(Reduction::Amax) {
                choose_own(pool, x, out, &mut maxima.row);
            } else {
                choose_plane(pool, x, values, nothing, out, &mut maxima);
            }
        }
    });
}

/// Overwrites `out` with the gradient of the argument `values` of [`choose`], for the gradient `g` of its result. Each window's gradient is
/// added at the position of the window's largest element of `x`.
pub(crate) fn scatter<T: Float>(pool: &MaxPool, x: &[T], g: &[T], out: &mut [T]) {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    partition::chunks(out, per_part * plane, Schedule::Parallel, |part, out| {
        let mut maxima = RowMaxima::new(pool);
        for (number, out) in out.chunks_exact_mut(plane).enumerate() {
            let number = part * per_part + number;
            let (x, g) = (&x[number * plane..][..plane], &g[number * windows..][..windows]);
            if pool.is_quartering() {
                scatter_quarters(pool, x, g, out);
            } else {
                scatter_plane(pool, x, g, out, &mut maxima);
            }
        }
    });
}

/// Writes the position of each window's largest element to `out`, as a row-major position in its plane. For a window without elements
/// inside the plane, writes 0.
pub(crate) fn places<T: Float>(pool: &MaxPool, x: &[T], out: &mut [i64]) {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    partition::chunks(out, per_part * windows, Schedule::Parallel, |part, out| {
        let mut maxima = RowMaxima::new(pool);
        for (number, out) in out.chunks_exact_mut(windows).enumerate() {
            let x = &x[(part * per_part + number) * plane..][..plane];
            for (i, out) in out.chunks_exact_mut(pool.columns.output).enumerate() {
                find_maxima(pool, x, i, &mut maxima);
                for (j, (out, &offset)) in out.iter_mut().zip(&maxima.offsets).enumerate() {
                    *out = if offset == NO_ELEMENT { 0 } else { pool.place(i, j, offset) as i64 };
                }
            }
        }
    });
}

/// For each window in a row of windows: the largest element found so far, and its row-major offset from the window's corner.
struct RowMaxima<T> {
    best: Vec<T>,
    offsets: Vec<u32>,
    /// A buffer for one element of each window: the elements at the same offset in all windows, copied so that they are contiguous.
    row: Vec<T>,
}

impl<T: Number> RowMaxima<T> {
    fn new(pool: &MaxPool) -> Self {
        let count = pool.columns.output;
        RowMaxima { best: vec![T::ZERO; count], offsets: vec![NO_ELEMENT; count], row: vec![T::ZERO; count] }
    }
}

/// Returns the largest element of each of eight 2 x 2 windows, and its index in the window.
#[inline(always)]
fn eight<T: Float>(
    top: &[T; 2 * WINDOWS_AT_ONCE],
    bottom: &[T; 2 * WINDOWS_AT_ONCE],
) -> ([T; WINDOWS_AT_ONCE], [u32; WINDOWS_AT_ONCE]) {
    let (mut best, mut which) = ([T::ZERO; WINDOWS_AT_ONCE], [0; WINDOWS_AT_ONCE]);
    for j in 0..WINDOWS_AT_ONCE {
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

/// Splits a row of `count` windows into groups of eight. Returns the start and the length of each group. If the last group would be
/// shorter, it starts earlier if possible, and overlaps the group before it.
fn groups(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count)
        .step_by(WINDOWS_AT_ONCE)
        .map(move |first| (first.min(count.saturating_sub(WINDOWS_AT_ONCE)), count.min(WINDOWS_AT_ONCE)))
}

/// Returns the elements of a row of the plane that the first `count` windows cover: two for each window.
#[inline(always)]
fn pairs<T: Float>(row: &[T], count: usize) -> [T; 2 * WINDOWS_AT_ONCE] {
    let mut all = [T::ZERO; 2 * WINDOWS_AT_ONCE];
    all[..2 * count].copy_from_slice(&row[..2 * count]);
    all
}

#[inline(always)]
fn choose_group<T: Float>(top: &[T], bottom: &[T], out: &mut [T], count: usize) {
    let (best, _) = eight(&pairs(top, count), &pairs(bottom, count));
    out[..count].copy_from_slice(&best[..count]);
}

#[inline(always)]
fn scatter_group<T: Float>(x: [&[T]; 2], g: &[T], out: &mut [T], width: usize, count: usize) {
    let (_, which) = eight(&pairs(x[0], count), &pairs(x[1], count));
    let mut given = [T::ZERO; WINDOWS_AT_ONCE];
    given[..count].copy_from_slice(&g[..count]);
    let mut quarters = [[T::ZERO; WINDOWS_AT_ONCE]; 4];
    for (number, quarter) in quarters.iter_mut().enumerate() {
        for j in 0..WINDOWS_AT_ONCE {
            quarter[j] = if which[j] == number as u32 { given[j] } else { T::ZERO };
        }
    }
    for row in 0..2 {
        let mut pairs = [T::ZERO; 2 * WINDOWS_AT_ONCE];
        for j in 0..WINDOWS_AT_ONCE {
            pairs[2 * j] = quarters[2 * row][j];
            pairs[2 * j + 1] = quarters[2 * row + 1][j];
        }
        out[row * width..][..2 * count].copy_from_slice(&pairs[..2 * count]);
    }
}

// The arms of `match count` let the compiler make separate code for each constant count.
dispatched! {
    fn choose_quarters<T: Float>(pool: &MaxPool, x: &[T], out: &mut [T]) {
        let width = pool.columns.input;
        for (out, x) in out.chunks_exact_mut(pool.columns.output).zip(x.chunks(2 * width)) {
            for (first, count) in groups(out.len()) {
                let (top, bottom, out) = (&x[2 * first..], &x[width + 2 * first..], &mut out[first..]);
                match count {
                    WINDOWS_AT_ONCE => choose_group(top, bottom, out, WINDOWS_AT_ONCE),
                    4 => choose_group(top, bottom, out, 4),
                    count => choose_group(top, bottom, out, count),
                }
            }
        }
    }
}

dispatched! {
    fn scatter_quarters<T: Float>(pool: &MaxPool, x: &[T], g: &[T], out: &mut [T]) {
        let width = pool.columns.input;
        // Sets the elements that no window covers to 0.
        for (i, row) in out.chunks_exact_mut(width).enumerate() {
            let covered = if i < 2 * pool.rows.output { 2 * pool.columns.output } else { 0 };
            row[covered..].fill(T::ZERO);
        }
        for ((out, x), g) in out.chunks_mut(2 * width).zip(x.chunks(2 * width)).zip(g.chunks_exact(pool.columns.output)) {
            for (first, count) in groups(g.len()) {
                let (x, g, out) = ([&x[2 * first..], &x[width + 2 * first..]], &g[first..], &mut out[2 * first..]);
                match count {
                    WINDOWS_AT_ONCE => scatter_group(x, g, out, width, WINDOWS_AT_ONCE),
                    4 => scatter_group(x, g, out, width, 4),
                    count => scatter_group(x, g, out, width, count),
                }
            }
        }
    }
}

dispatched! {
    fn choose_plane<T: Float>(pool: &MaxPool, x: &[T], values: &[T], nothing: T, out: &mut [T], maxima: &mut RowMaxima<T>) {
        for (i, out) in out.chunks_exact_mut(pool.columns.output).enumerate() {
            find_maxima(pool, x, i, maxima);
            for (j, (out, &offset)) in out.iter_mut().zip(&maxima.offsets).enumerate() {
                *out = if offset == NO_ELEMENT { nothing } else { values[pool.place(i, j, offset)] };
            }
        }
    }

    /// Writes the largest element of each window to `out`, and -∞ for a window without elements inside the plane.
    fn choose_own<T: Float>(pool: &MaxPool, x: &[T], out: &mut [T], row: &mut [T]) {
        for (i, out) in out.chunks_exact_mut(pool.columns.output).enumerate() {
            out.fill(T::start(Reduction::Amax));
            for_each_tap(pool, i, #[inline(always)] |first, _, (low, high)| {
                let best = &mut out[low..high];
                // With a constant stride, the compiler uses vector instructions.
                match pool.columns.stride {
                    1 => keep_larger::<T, 1>(best, &x[first..]),
                    2 => keep_larger::<T, 2>(best, &x[first..]),
                    3 => keep_larger::<T, 3>(best, &x[first..]),
                    stride => keep_larger::<T, 1>(best, adjacent(x, first, stride, &mut row[low..high])),
                }
            });
        }
    }
}

dispatched! {
    fn scatter_plane<T: Float>(pool: &MaxPool, x: &[T], g: &[T], out: &mut [T], maxima: &mut RowMaxima<T>) {
        out.fill(T::ZERO);
        for (i, g) in g.chunks_exact(pool.columns.output).enumerate() {
            find_maxima(pool, x, i, maxima);
            for (j, (&g, &offset)) in g.iter().zip(&maxima.offsets).enumerate() {
                if offset != NO_ELEMENT {
                    let out = &mut out[pool.place(i, j, offset)];
                    *out = *out + g;
                }
            }
        }
    }
}

/// Replaces each element of `best` by the corresponding element of `x` if that element is larger or NaN. The elements of `x` are `STRIDE`
/// apart.
#[inline(always)]
fn keep_larger<T: Float, const STRIDE: usize>(best: &mut [T], x: &[T]) {
    let larger = |best: T, x: T| if (x > best) | x.is_nan() { x } else { best };
    // The last element is handled separately, because `x` may end before its group of `STRIDE` elements is complete.
    let Some((last, best)) = best.split_last_mut() else { return };
    let groups = &x.as_chunks::<STRIDE>().0[..best.len()];
    for j in 0..best.len() {
        best[j] = larger(best[j], groups[j][0]);
    }
    *last = larger(*last, x[STRIDE * best.len()]);
}

/// Stores in `maxima` the largest element of each window in the row of windows with index `i`.
#[inline(always)]
fn find_maxima<T: Float>(pool: &MaxPool, x: &[T], i: usize, maxima: &mut RowMaxima<T>) {
    maxima.offsets.fill(NO_ELEMENT);
    for_each_tap(
        pool,
        i,
        #[inline(always)]
        |first, offset, (low, high)| {
            let (best, offsets) = (&mut maxima.best[low..high], &mut maxima.offsets[low..high]);
            let from = adjacent(x, first, pool.columns.stride, &mut maxima.row[low..high]);
            for j in 0..best.len() {
                // The update has no branches, so that the compiler vectorizes the loop over windows.
                let wins = (from[j] > best[j]) | from[j].is_nan() | (offsets[j] == NO_ELEMENT);
                best[j] = if wins { from[j] } else { best[j] };
                offsets[j] = if wins { offset } else { offsets[j] };
            }
        },
    );
}

/// Calls `visit` for each element of a window, for the row of windows with index `i`. The last argument is the range of the windows whose
/// element is inside the plane. The others are the element's position in the plane for the first of these windows, and its offset from the
/// corner of its window.
#[inline(always)]
fn for_each_tap(pool: &MaxPool, i: usize, mut visit: impl FnMut(usize, u32, (usize, usize))) {
    let (rows, columns) = (&pool.rows, &pool.columns);
    for kh in 0..rows.kernel {
        let Some(row) = rows.input_position(i, kh) else { continue };
        for kw in 0..columns.kernel {
            let (low, high) = columns.windows_inside(kw);
            if low < high {
                let first = row * columns.input + low * columns.stride + kw * columns.dilation - columns.padding_before;
                visit(first, (kh * rows.dilation * columns.input + kw * columns.dilation) as u32, (low, high));
            }
        }
    }
}

/// Returns as many elements of `x` as `row` has. They begin at position `first` and are `stride` apart. If `stride` is not 1, they are
/// copied to `row`, so that they are adjacent.
#[inline(always)]
fn adjacent<'a, T: Float>(x: &'a [T], first: usize, stride: usize, row: &'a mut [T]) -> &'a [T] {
    if stride == 1 {
        return &x[first..first + row.len()];
    }
    copy_strided(x, first, stride as isize, row);
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::testing::support::cases;

    /// Returns the position of the largest element of each window, found by the definition, or `None` for a window without elements.
    fn by_definition(pool: &MaxPool, x: &[f64]) -> Vec<Option<usize>> {
        let mut places = Vec::new();
        for window in 0..x.len() / pool.plane() * pool.windows() {
            let start = window / pool.windows() * pool.plane();
            let (i, j) = (window % pool.windows() / pool.columns.output, window % pool.columns.output);
            let mut best: Option<usize> = None;
            for (kh, kw) in (0..pool.rows.kernel).flat_map(|kh| (0..pool.columns.kernel).map(move |kw| (kh, kw))) {
                if let (Some(h), Some(w)) = (pool.rows.input_position(i, kh), pool.columns.input_position(j, kw)) {
                    let place = h * pool.columns.input + w;
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
        let sizes = (1..4usize, 1..6usize, 1..3usize, 0..3usize, 0..30usize, prop::bool::ANY);
        sizes.prop_map(|(kernel, stride, dilation, padding_before, more, halves)| {
            let input = 2 + more;
            if halves {
                return WindowAxis { input, kernel: 2, output: input / 2, stride: 2, dilation: 1, padding_before: 0 };
            }
            let span = (kernel - 1) * dilation + 1;
            let output = (2 * padding_before + input).saturating_sub(span) / stride + 1;
            WindowAxis { input, kernel, output, stride, dilation, padding_before }
        })
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn poolings_equal_their_definition(rows in axis(), columns in axis(), planes in 1..4usize, seed in 0..1000usize) {
            let pool = MaxPool { rows, columns };
            // There are few distinct values, so that many elements are equal. Some are infinite or NaN.
            let numbers = [0.0, 1.0, 2.0, -1.0, 1.0, f64::NEG_INFINITY, 2.0, f64::INFINITY, -3.0, f64::NAN, 0.5];
            let x: Vec<f64> = (0..planes * pool.plane()).map(|i| numbers[(i * i + seed * i / 3) % 11]).collect();
            let places_expected = by_definition(&pool, &x);
            let values: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
            let count = planes * pool.windows();
            let place = |window: usize| places_expected[window].map(|place| window / pool.windows() * pool.plane() + place);

            let mut got = vec![7; count];
            places(&pool, &x, &mut got);
            prop_assert!((0..count).all(|window| got[window] == places_expected[window].unwrap_or(0) as i64));

            let mut got = vec![7.0; count];
            choose(&pool, &x, &x, -1.5, &mut got);
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!((0..count).all(|window| same(got[window], place(window).map_or(-1.5, |place| x[place]))));
            choose(&pool, &x, &x, f64::NEG_INFINITY, &mut got);
            let element = |window: usize| place(window).map_or(f64::NEG_INFINITY, |place| x[place]);
            prop_assert!((0..count).all(|window| same(got[window], element(window))));
            choose(&pool, &x, &values, -1.5, &mut got);
            prop_assert!((0..count).all(|window| got[window] == place(window).map_or(-1.5, |place| values[place])));

            let g: Vec<f64> = (0..count).map(|i| (i % 17) as f64 + 1.0).collect();
            let (mut got, mut expected) = (vec![7.0; x.len()], vec![0.0; x.len()]);
            scatter(&pool, &x, &g, &mut got);
            (0..count).for_each(|window| if let Some(place) = place(window) { expected[place] += g[window] });
            prop_assert_eq!(got, expected);
        }
    }
}
