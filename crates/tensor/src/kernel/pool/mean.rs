//! The mean of every window of every plane `[h, w]`, and its adjoint.
//!
//! A window is a rectangle. First the rows of the plane that a row of windows covers are summed elementwise. Then each window sums its
//! elements of this row of sums. The adjoint works in reverse. It spreads each window's gradient over one row, and then spreads that row
//! over all rows of the windows. Windows of equal size and distance inside the plane are computed together. Windows at the edges, and
//! adaptive windows of different sizes, are computed separately.

use crate::memory::available::AllocationError;
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::pool::PART;
use crate::{Float, Number};

/// The positions of the windows along one dimension. From one window to the next, neither the start nor the end decreases.
#[derive(Clone, Copy, Debug)]
enum Placement {
    /// Windows of `kernel` elements that are `stride` apart. `padding` elements come before and after the dimension.
    Moving { kernel: usize, stride: usize, padding: usize },
    /// PyTorch's adaptive windows. Window `i` of `m` windows over `n` elements has the half-open range from ⌊i n / m⌋ to ⌈(i + 1) n / m⌉.
    ToSize,
}

/// One dimension's factor of the divisor of a window's mean. The divisor is the product of the factors of both dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Divisor {
    /// The number of the window's elements inside the dimension, at least 1.
    Inside,
    /// The number of the window's elements inside the dimension and its padding, at least 1.
    Padded,
    /// This number, for all windows.
    Is(f64),
}

/// The windows along one dimension. Their positions are computed when they are needed, because a list of positions could be larger than the
/// result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSpans {
    size: usize,
    count: usize,
    placement: Placement,
    divisor: Divisor,
    /// The half-open range of the regular windows, which have `len` elements each and are `stride` apart.
    regular: (usize, usize),
    len: usize,
    stride: usize,
}

impl WindowSpans {
    /// Returns `count` windows of `kernel` elements, `stride` apart, within a dimension of `size` elements. `padding` elements come
    /// before and after the dimension. The size of the padded dimension is at most `isize::MAX`.
    pub(crate) fn moving(
        size: usize,
        count: usize,
        [kernel, stride, padding]: [usize; 3],
        divisor: Divisor,
    ) -> WindowSpans {
        let placement = Placement::Moving { kernel, stride, padding };
        // The regular windows are the windows that lie inside the dimension.
        let first = padding.div_ceil(stride).min(count);
        let end = (size + padding).checked_sub(kernel).map_or(0, |last| last / stride + 1).min(count);
        WindowSpans { size, count, placement, divisor, regular: (first, end.max(first)), len: kernel, stride }
    }

    /// Returns `count` adaptive windows within a dimension of `size` elements. The divisors are the sizes of the windows.
    pub(crate) fn to_size(size: usize, count: usize) -> WindowSpans {
        let is_regular = size > 0 && count > 0 && size.is_multiple_of(count);
        let (end, len) = if is_regular { (count, size / count) } else { (0, 1) };
        let (placement, divisor) = (Placement::ToSize, Divisor::Inside);
        WindowSpans { size, count, placement, divisor, regular: (0, end), len, stride: len }
    }

    /// Returns a single window over a dimension of size 1. A pooling over one dimension uses it as its other dimension.
    pub(crate) fn none() -> Self {
        WindowSpans::to_size(1, 1)
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns this dimension's factor of the mean's divisor if a single window covers the whole dimension. Otherwise returns `None`.
    pub(crate) fn whole(&self) -> Option<f64> {
        (self.count == 1 && self.span(0) == (0, self.size)).then(|| self.divisor(0))
    }

    /// Returns the half-open range of the elements that the window with index `number` covers.
    #[inline(always)]
    pub(crate) fn span(&self, number: usize) -> (usize, usize) {
        match self.placement {
            Placement::Moving { kernel, stride, padding } => {
                let start = number * stride;
                let inside = |place: usize| place.saturating_sub(padding).min(self.size);
                (inside(start), inside(start.saturating_add(kernel)))
            }
            Placement::ToSize => {
                let (number, count, size) = (number as u128, self.count as u128, self.size as u128);
                ((number * size / count) as usize, ((number + 1) * size).div_ceil(count) as usize)
            }
        }
    }

    /// Returns this dimension's factor of the divisor of the mean of the window with index `number`.
    #[inline(always)]
    pub(crate) fn divisor(&self, number: usize) -> f64 {
        let count = match (self.divisor, self.placement) {
            (Divisor::Is(divisor), _) => return divisor,
            (Divisor::Padded, Placement::Moving { kernel, stride, padding }) => {
                let start = number * stride;
                start.saturating_add(kernel).min(self.size + 2 * padding).saturating_sub(start)
            }
            _ => {
                let (start, end) = self.span(number);
                end - start
            }
        };
        count.max(1) as f64
    }

    /// Returns the index of each window outside the range of regular windows, with the half-open range of its elements.
    #[inline(always)]
    fn irregular(&self) -> impl Iterator<Item = (usize, (usize, usize))> {
        let numbers = (0..self.regular.0).chain(self.regular.1..self.count);
        // If adaptive windows differ in size, all of them are visited in order. The quotients of their bounds are updated by additions,
        // which cost less than two divisions for each window.
        let (whole, part) = (self.size / self.count.max(1), self.size % self.count.max(1));
        let (mut start, mut rest) = (0, 0);
        numbers.map(move |number| match self.placement {
            Placement::Moving { .. } => (number, self.span(number)),
            Placement::ToSize => {
                let first = start;
                (start, rest) = (start + whole, rest + part);
                if rest >= self.count {
                    (start, rest) = (start + 1, rest - self.count);
                }
                (number, (first, start + usize::from(rest > 0)))
            }
        })
    }
}

/// The windows of a mean pooling over planes `[h, w]`, along each dimension.
#[derive(Clone, Copy, Debug)]
pub struct MeanPool {
    pub(crate) rows: WindowSpans,
    pub(crate) columns: WindowSpans,
}

impl MeanPool {
    fn plane(&self) -> usize {
        self.rows.size * self.columns.size
    }

    fn windows(&self) -> usize {
        self.rows.count * self.columns.count
    }

    /// Returns the number of planes that a task of a thread computes.
    fn per_part(&self) -> usize {
        (PART / self.plane().max(self.windows()).max(1)).max(1)
    }

    /// Returns, for each column of windows, the factor of the mean's divisor that belongs to the dimension of the columns.
    fn divisors<T: Number>(&self) -> Result<Scratch<T>, AllocationError> {
        let mut divisors = Scratch::new(self.columns.count)?;
        divisors.iter_mut().enumerate().for_each(|(number, to)| *to = T::from_f64(self.columns.divisor(number)));
        Ok(divisors)
    }
}

/// Writes the mean of every window to `out`. A window without elements inside the plane has mean 0.
///
/// # Errors
///
/// If there is not enough memory for rows of sums or divisors.
pub(crate) fn mean<T: Float>(pool: &MeanPool, x: &[T], out: &mut [T]) -> Result<(), AllocationError> {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    if windows == 0 {
        return Ok(());
    }
    let divisors = pool.divisors()?;
    partition::try_chunks(out, per_part * windows, Schedule::Parallel, |part, out| {
        let x = &x[part * per_part * plane..];
        let mut row = Scratch::new(pool.columns.size)?;
        for (x, out) in x.chunks_exact(plane).zip(out.chunks_exact_mut(windows)) {
            mean_of_plane(pool, &divisors, x, out, &mut row);
        }
        Ok(())
    })
}

/// Overwrites `out` with the adjoint of [`mean`], applied to the gradient `g` of the means.
///
/// # Errors
///
/// If there is not enough memory for rows of gradients or divisors.
pub(crate) fn spread<T: Float>(pool: &MeanPool, g: &[T], out: &mut [T]) -> Result<(), AllocationError> {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    if windows == 0 {
        out.fill(T::ZERO);
        return Ok(());
    }
    let divisors = pool.divisors()?;
    partition::try_chunks(out, per_part * plane, Schedule::Parallel, |part, out| {
        let g = &g[part * per_part * windows..];
        let (mut shares, mut row) = (Scratch::new(divisors.len())?, Scratch::new(pool.columns.size)?);
        for (g, out) in g.chunks_exact(windows).zip(out.chunks_exact_mut(plane)) {
            spread_over_plane(pool, &divisors, g, out, &mut shares, &mut row);
        }
        Ok(())
    })
}

dispatched! {
    fn mean_of_plane<T: Float>(pool: &MeanPool, divisors: &[T], x: &[T], out: &mut [T], row: &mut [T]) {
        let width = pool.columns.size;
        for (i, out) in out.chunks_exact_mut(divisors.len()).enumerate() {
            let (start, end) = pool.rows.span(i);
            let rows = &x[start * width..end * width];
            if end == start + 1 {
                sum_windows(&pool.columns, rows, out);
            } else {
                sum_rows(rows, row);
                sum_windows(&pool.columns, row, out);
            }
            let by = T::from_f64(pool.rows.divisor(i));
            for (out, &divisor) in out.iter_mut().zip(divisors) {
                *out = *out / (by * divisor);
            }
        }
    }
}

dispatched! {
    fn spread_over_plane<T: Float>(
        pool: &MeanPool, divisors: &[T], g: &[T], out: &mut [T], shares: &mut [T], row: &mut [T],
    ) {
        let width = pool.columns.size;
        // All rows of the plane before row `next` have been written by now.
        let mut next = 0;
        for (i, g) in g.chunks_exact(divisors.len()).enumerate() {
            let (start, end) = pool.rows.span(i);
            if start == end {
                continue;
            }
            let by = T::from_f64(pool.rows.divisor(i));
            for ((share, &g), &divisor) in shares.iter_mut().zip(g).zip(divisors) {
                *share = g / (by * divisor);
            }
            spread_windows(&pool.columns, shares, row);
            out[(next * width).min(start * width)..start * width].fill(T::ZERO);
            let rows = &mut out[start * width..end * width];
            let (written, rest) = rows.split_at_mut((next.clamp(start, end) - start) * width);
            for out in written.chunks_exact_mut(width) {
                add(out, row);
            }
            for out in rest.chunks_exact_mut(width) {
                out.copy_from_slice(row);
            }
            next = next.max(end);
        }
        out[next * width..].fill(T::ZERO);
    }
}

#[inline(always)]
fn add<T: Float>(to: &mut [T], x: &[T]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = *to + x;
    }
}

/// Sets `sum` to the elementwise sum of `rows`, which follow each other in memory and are as long as `sum`. There must not be exactly one
/// row: callers then read the row itself.
#[inline(always)]
fn sum_rows<T: Float>(rows: &[T], sum: &mut [T]) {
    let width = sum.len();
    if rows.len() < 2 * width {
        return sum.fill(T::ZERO);
    }
    let (two, rest) = rows.split_at(2 * width);
    let (first, second) = two.split_at(width);
    for ((sum, &first), &second) in sum.iter_mut().zip(first).zip(second) {
        *sum = first + second;
    }
    rest.chunks_exact(width).for_each(|next| add(sum, next));
}

/// Sets each element of `out` to the sum of the elements of `row` in one window.
#[inline(always)]
fn sum_windows<T: Float>(windows: &WindowSpans, row: &[T], out: &mut [T]) {
    let sum = |(start, end): (usize, usize)| row[start..end].iter().fold(T::ZERO, |sum, &x| sum + x);
    for (number, span) in windows.irregular() {
        out[number] = sum(span);
    }
    let (first, end) = windows.regular;
    if first == end {
        return;
    }
    let (from, regular) = (&row[windows.span(first).0..], &mut out[first..end]);
    match (windows.stride, windows.len) {
        (2, 2) => {
            for (out, pair) in regular.iter_mut().zip(from.as_chunks::<2>().0) {
                *out = pair[0] + pair[1];
            }
        }
        (1, 1..) => taps::<T, 1>(from, windows.len, regular),
        (2, 1..=8) => taps::<T, 2>(from, windows.len, regular),
        (3, 1..=8) => taps::<T, 3>(from, windows.len, regular),
        _ => {
            for (out, number) in regular.iter_mut().zip(first..) {
                let start = windows.span(first).0 + (number - first) * windows.stride;
                *out = sum((start, start + windows.len));
            }
        }
    }
}

/// Sets `out[j]` to the sum of `from[S j + k]` over `k < len`: the sum of window `j`. The windows have `len` elements and are `S` elements
/// apart. The outer loop is over `k`.
#[inline(always)]
fn taps<T: Float, const S: usize>(from: &[T], len: usize, out: &mut [T]) {
    out.fill(T::ZERO);
    for k in 0..len {
        let (chunks, last) = from[k..=k + (out.len() - 1) * S].as_chunks::<S>();
        let (out, out_last) = out.split_at_mut(chunks.len());
        for (out, chunk) in out.iter_mut().zip(chunks) {
            *out = *out + chunk[0];
        }
        for (out, &x) in out_last.iter_mut().zip(last) {
            *out = *out + x;
        }
    }
}

/// Overwrites `row` with the adjoint of [`sum_windows`], applied to `shares`. `shares` has each window's contribution to its elements.
#[inline(always)]
fn spread_windows<T: Float>(windows: &WindowSpans, shares: &[T], row: &mut [T]) {
    row.fill(T::ZERO);
    let (first, end) = windows.regular;
    if first < end {
        back_regular(windows, &shares[first..end], &mut row[windows.span(first).0..]);
    }
    for (number, (start, end)) in windows.irregular() {
        row[start..end].iter_mut().for_each(|to| *to = *to + shares[number]);
    }
}

/// Adds the share of each regular window (its contribution to its elements) to `to`. `to` begins with the first element of the first
/// regular window, and its elements must be 0.
#[inline(always)]
fn back_regular<T: Float>(windows: &WindowSpans, shares: &[T], to: &mut [T]) {
    match (windows.stride, windows.len) {
        (2, 2) => {
            for (pair, &share) in to.as_chunks_mut::<2>().0.iter_mut().zip(shares) {
                *pair = [share; 2];
            }
        }
        (1, 1..) => back_taps::<T, 1>(shares, windows.len, to),
        (2, 1..=8) => back_taps::<T, 2>(shares, windows.len, to),
        (3, 1..=8) => back_taps::<T, 3>(shares, windows.len, to),
        _ => {
            for (number, &share) in shares.iter().enumerate() {
                to[number * windows.stride..][..windows.len].iter_mut().for_each(|to| *to = *to + share);
            }
        }
    }
}

#[inline(always)]
fn back_taps<T: Float, const S: usize>(shares: &[T], len: usize, to: &mut [T]) {
    for k in 0..len {
        let (chunks, last) = to[k..=k + (shares.len() - 1) * S].as_chunks_mut::<S>();
        let (shares, shares_last) = shares.split_at(chunks.len());
        for (chunk, &share) in chunks.iter_mut().zip(shares) {
            chunk[0] = chunk[0] + share;
        }
        for (to, &share) in last.iter_mut().zip(shares_last) {
            *to = *to + share;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::testing::support::cases;

    /// Generates windows of poolings, given by a stride or by a number of windows.
    fn windows() -> impl Strategy<Value = WindowSpans> {
        let divisors = prop_oneof![Just(Divisor::Inside), Just(Divisor::Padded), Just(Divisor::Is(3.0))];
        let moving = (1..12usize, 1..5usize, 0..3usize, 1..40usize, divisors).prop_map(
            |(kernel, stride, before, size, divisor)| {
                let count = (size + 2 * before).saturating_sub(kernel) / stride + 1;
                WindowSpans::moving(size, count, [kernel, stride, before], divisor)
            },
        );
        let to_size = (1..12usize, 1..40usize).prop_map(|(count, size)| WindowSpans::to_size(size, count));
        prop_oneof![moving, to_size]
    }

    #[test]
    fn adaptive_windows_equal_their_definition() {
        for (size, count) in (0..40).flat_map(|size| (1..50).map(move |count| (size, count))) {
            let windows = WindowSpans::to_size(size, count);
            let expected = |number: usize| (number * size / count, ((number + 1) * size).div_ceil(count));
            assert!((0..count).all(|number| windows.span(number) == expected(number)), "{size}, {count}");
            assert!(windows.irregular().all(|(number, span)| span == expected(number)), "{size}, {count}");
            assert!(
                (windows.regular.0..windows.regular.1)
                    .all(|number| expected(number) == (number * windows.stride, number * windows.stride + windows.len))
            );
        }
    }

    /// Calls `visit` for each element of each window, found by the definition. The arguments are the index of the window, the position of
    /// the element, and the divisor of the window's mean.
    fn by_definition(pool: &MeanPool, planes: usize, visit: &mut dyn FnMut(usize, usize, f64)) {
        let mut window = 0;
        for plane in 0..planes {
            for ((top, bottom), down) in (0..pool.rows.count).map(|i| (pool.rows.span(i), pool.rows.divisor(i))) {
                for ((left, right), across) in
                    (0..pool.columns.count).map(|j| (pool.columns.span(j), pool.columns.divisor(j)))
                {
                    for (h, w) in (top..bottom).flat_map(|h| (left..right).map(move |w| (h, w))) {
                        visit(window, plane * pool.plane() + h * pool.columns.size + w, down * across);
                    }
                    window += 1;
                }
            }
        }
    }

    proptest! {
        #![proptest_config(cases(512))]

        #[test]
        fn means_equal_their_definition(rows in windows(), columns in windows(), planes in 0..4usize, seed in 0..100usize) {
            let pool = MeanPool { rows, columns };
            // The elements are small integers, whose sums are exact.
            let numbers = |count: usize| (0..count).map(|i| ((i * 37 + seed) % 513) as f64).collect::<Vec<f64>>();
            let (x, g) = (numbers(planes * pool.plane()), numbers(planes * pool.windows()));

            let (mut got, mut expected) = (vec![7.0; g.len()], vec![(0.0, 1.0); g.len()]);
            mean(&pool, &x, &mut got).unwrap();
            by_definition(&pool, planes, &mut |window, place, divisor| {
                expected[window] = (expected[window].0 + x[place], divisor);
            });
            prop_assert_eq!(got, expected.iter().map(|(sum, divisor)| sum / divisor).collect::<Vec<f64>>());

            let (mut got, mut expected) = (vec![7.0; x.len()], vec![0.0; x.len()]);
            spread(&pool, &g, &mut got).unwrap();
            by_definition(&pool, planes, &mut |window, place, divisor| expected[place] += g[window] / divisor);
            // The terms are not negative, so no digits cancel. Each of at most 11 * 11 terms, and each sum of them, is rounded once.
            let near = |(got, expected): (&f64, &f64)| (got - expected).abs() <= 1000.0 * f64::EPSILON * expected;
            prop_assert!(got.iter().zip(&expected).all(near));
        }
    }
}
