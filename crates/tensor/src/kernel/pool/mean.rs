//! The mean of every window of every plane `[h, w]`, and its adjoint.
//!
//! A window is a rectangle. First the rows of the plane that a row of windows covers are summed elementwise. Then this sum is summed within
//! each window. The adjoint spreads each window's gradient over one row, and then spreads that row over all rows of the windows. Windows of
//! equal size and distance are computed together. The other windows, at the edges, are computed separately.

use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::pool::PART;
use crate::{Element, Float};

/// The windows along one dimension, in order: neither their starts nor their ends decrease.
#[derive(Clone, Debug)]
pub(crate) struct WindowSpans {
    size: usize,
    /// The half-open range of each window.
    spans: Vec<(usize, usize)>,
    /// The factor of each window's divisor that belongs to this dimension.
    divisors: Vec<f64>,
    /// The half-open range of windows that have `len` elements each and are `stride` apart.
    regular: (usize, usize),
    len: usize,
    stride: usize,
}

impl WindowSpans {
    /// Returns windows within a dimension of `size` elements.
    pub(crate) fn new(size: usize, spans: Vec<(usize, usize)>, divisors: Vec<f64>) -> Self {
        let len = spans.iter().map(|span| span.1 - span.0).max().unwrap_or(0);
        let is_full = |span: &(usize, usize)| span.1 - span.0 == len;
        let first = spans.iter().position(is_full).unwrap_or(0);
        let stride = match &spans[first..] {
            [one, two, ..] if is_full(two) => two.0 - one.0,
            _ => 1,
        };
        let apart = |pair: &[(usize, usize)]| is_full(&pair[1]) && pair[1].0 - pair[0].0 == stride;
        let after = spans[first..].windows(2).take_while(|pair| apart(pair)).count();
        WindowSpans { size, regular: (first, (first + 1 + after).min(spans.len())), len, stride, spans, divisors }
    }

    /// Returns a single window over a dimension of size 1.
    pub(crate) fn none() -> Self {
        WindowSpans::new(1, vec![(0, 1)], vec![1.0])
    }

    /// Returns the number of windows.
    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// Returns the divisor if a single window covers the whole dimension. The factor of the other dimension is not included.
    pub(crate) fn whole(&self) -> Option<f64> {
        (self.spans[..] == [(0, self.size)]).then(|| self.divisors[0])
    }

    /// Returns the windows before and after the regular ones.
    fn irregular(&self) -> impl Iterator<Item = usize> {
        (0..self.regular.0).chain(self.regular.1..self.spans.len())
    }
}

/// Planes `[h, w]` and their windows.
#[derive(Clone, Debug)]
pub struct MeanPool {
    pub(crate) rows: WindowSpans,
    pub(crate) columns: WindowSpans,
}

impl MeanPool {
    fn plane(&self) -> usize {
        self.rows.size * self.columns.size
    }

    fn windows(&self) -> usize {
        self.rows.spans.len() * self.columns.spans.len()
    }

    /// Returns the number of planes in a task.
    fn per_part(&self) -> usize {
        (PART / self.plane().max(self.windows()).max(1)).max(1)
    }

    fn divisors<T: Element>(&self) -> Vec<T> {
        self.columns.divisors.iter().map(|&divisor| T::from_f64(divisor)).collect()
    }
}

/// Writes the mean of every window to `out`. An empty window has mean 0.
pub(crate) fn mean<T: Float>(pool: &MeanPool, x: &[T], out: &mut [T]) {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    if windows == 0 {
        return;
    }
    let divisors = pool.divisors();
    partition::chunks(out, per_part * windows, Schedule::Parallel, |part, out| {
        let x = &x[part * per_part * plane..];
        let mut row = vec![T::ZERO; pool.columns.size];
        for (x, out) in x.chunks_exact(plane).zip(out.chunks_exact_mut(windows)) {
            mean_of_plane(pool, &divisors, x, out, &mut row);
        }
    });
}

/// Overwrites `out` with the adjoint of [`mean`], applied to the gradient `g`.
pub(crate) fn spread<T: Float>(pool: &MeanPool, g: &[T], out: &mut [T]) {
    let (plane, windows, per_part) = (pool.plane(), pool.windows(), pool.per_part());
    if windows == 0 {
        return out.fill(T::ZERO);
    }
    let divisors = pool.divisors();
    partition::chunks(out, per_part * plane, Schedule::Parallel, |part, out| {
        let g = &g[part * per_part * windows..];
        let (mut shares, mut row) = (vec![T::ZERO; divisors.len()], vec![T::ZERO; pool.columns.size]);
        for (g, out) in g.chunks_exact(windows).zip(out.chunks_exact_mut(plane)) {
            spread_over_plane(pool, &divisors, g, out, &mut shares, &mut row);
        }
    });
}

dispatched! {
    fn mean_of_plane<T: Float>(pool: &MeanPool, divisors: &[T], x: &[T], out: &mut [T], row: &mut [T]) {
        let width = pool.columns.size;
        for (i, out) in out.chunks_exact_mut(divisors.len()).enumerate() {
            let (start, end) = pool.rows.spans[i];
            let rows = &x[start * width..end * width];
            if end == start + 1 {
                along(&pool.columns, rows, out);
            } else {
                sum_rows(rows, row);
                along(&pool.columns, row, out);
            }
            let by = T::from_f64(pool.rows.divisors[i]);
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
        // All rows before row `next` have been written by now.
        let mut next = 0;
        for (i, g) in g.chunks_exact(divisors.len()).enumerate() {
            let (start, end) = pool.rows.spans[i];
            if start == end {
                continue;
            }
            let by = T::from_f64(pool.rows.divisors[i]);
            for ((share, &g), &divisor) in shares.iter_mut().zip(g).zip(divisors) {
                *share = g / (by * divisor);
            }
            back_along(&pool.columns, shares, row);
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

/// Sets `sum` to the elementwise sum of rows that are adjacent in memory.
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

/// Sets `out` to the sum of each window of `row`.
#[inline(always)]
fn along<T: Float>(windows: &WindowSpans, row: &[T], out: &mut [T]) {
    let sum = |(start, end): (usize, usize)| row[start..end].iter().fold(T::ZERO, |sum, &x| sum + x);
    for number in windows.irregular() {
        out[number] = sum(windows.spans[number]);
    }
    let (first, end) = windows.regular;
    let (from, regular) = (&row[windows.spans[first].0..], &mut out[first..end]);
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
            for (out, &span) in regular.iter_mut().zip(&windows.spans[first..]) {
                *out = sum(span);
            }
        }
    }
}

/// Sets `out[j]` to the sum of `from[S j + k]` over `k < len`. The outer loop is over `k`.
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

/// Overwrites `row` with the adjoint of [`along`], applied to `shares`.
#[inline(always)]
fn back_along<T: Float>(windows: &WindowSpans, shares: &[T], row: &mut [T]) {
    row.fill(T::ZERO);
    let (first, end) = windows.regular;
    let (regular, corner) = (&shares[first..end], windows.spans[first].0);
    match (windows.stride, windows.len) {
        (2, 2) => {
            for (pair, &share) in row[corner..].as_chunks_mut::<2>().0.iter_mut().zip(regular) {
                *pair = [share; 2];
            }
        }
        (1, 1..) => back_taps::<T, 1>(regular, windows.len, &mut row[corner..]),
        (2, 1..=8) => back_taps::<T, 2>(regular, windows.len, &mut row[corner..]),
        (3, 1..=8) => back_taps::<T, 3>(regular, windows.len, &mut row[corner..]),
        _ => {
            for (&(start, end), &share) in windows.spans[first..].iter().zip(regular) {
                row[start..end].iter_mut().for_each(|to| *to = *to + share);
            }
        }
    }
    for number in windows.irregular() {
        let (start, end) = windows.spans[number];
        row[start..end].iter_mut().for_each(|to| *to = *to + shares[number]);
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

    /// Generates the windows of poolings, by stride or by output size, and some irregular windows.
    fn windows() -> impl Strategy<Value = WindowSpans> {
        let moving = (1..12usize, 1..5usize, 0..3usize, 1..40usize).prop_map(|(kernel, stride, before, size)| {
            let count = (size + 2 * before).saturating_sub(kernel) / stride + 1;
            let span = |number: usize| {
                let start = number * stride;
                let clip = |place: usize| place.saturating_sub(before).min(size);
                (clip(start), clip(start + kernel))
            };
            (size, (0..count).map(span).collect::<Vec<_>>())
        });
        let to_size = (1..12usize, 1..40usize).prop_map(|(count, size)| {
            let span = |number: usize| (number * size / count, ((number + 1) * size).div_ceil(count));
            (size, (0..count).map(span).collect::<Vec<_>>())
        });
        prop_oneof![moving, to_size].prop_map(|(size, spans)| {
            let divisors = (0..spans.len()).map(|number| (1 + number % 3) as f64).collect();
            WindowSpans::new(size, spans, divisors)
        })
    }

    /// Calls `visit` with the window, the element and the divisor, for each element of each window, by the definition.
    fn by_definition(pool: &MeanPool, planes: usize, mut visit: impl FnMut(usize, usize, f64)) {
        let mut window = 0;
        for plane in 0..planes {
            for (&(top, bottom), down) in pool.rows.spans.iter().zip(&pool.rows.divisors) {
                for (&(left, right), across) in pool.columns.spans.iter().zip(&pool.columns.divisors) {
                    for (h, w) in (top..bottom).flat_map(|h| (left..right).map(move |w| (h, w))) {
                        visit(window, plane * pool.plane() + h * pool.columns.size + w, down * across);
                    }
                    window += 1;
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 512 }))]

        #[test]
        fn means_equal_their_definition(rows in windows(), columns in windows(), planes in 0..4usize, seed in 0..100usize) {
            let pool = MeanPool { rows, columns };
            // The values are multiples of 36 up to 36 · 2⁹, so sums and quotients are exact here.
            let numbers = |count: usize| (0..count).map(|i| 36.0 * ((i * 37 + seed) % 513) as f64).collect::<Vec<f64>>();
            let (x, g) = (numbers(planes * pool.plane()), numbers(planes * pool.windows()));

            let (mut got, mut expected) = (vec![7.0; g.len()], vec![0.0; g.len()]);
            mean(&pool, &x, &mut got);
            by_definition(&pool, planes, |window, place, divisor| expected[window] += x[place] / divisor);
            prop_assert_eq!(got, expected);

            let (mut got, mut expected) = (vec![7.0; x.len()], vec![0.0; x.len()]);
            spread(&pool, &g, &mut got);
            by_definition(&pool, planes, |window, place, divisor| expected[place] += g[window] / divisor);
            prop_assert_eq!(got, expected);
        }
    }
}
