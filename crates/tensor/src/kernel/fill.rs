//! Broadcast fill: writes the elements of an operand, such as a bias that is expanded over rows of logits, to a contiguous block.
//! [`scatter`] writes a contiguous block to the elements of an operand.
//!
//! If rows are short, most of the time goes into starting each row. The loops in this file start rows quickly.
#![allow(clippy::needless_range_loop)]

use crate::Scalar;
use crate::scalar::cpu;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::rows::{MAX_LOOP_COPY, MAX_SHORT_ROW};

/// Calls a function with the length of a short row as a const parameter. So the compiler writes a row with a few stores. Evaluates `$other`
/// for other lengths.
macro_rules! of_constant {
    ($row:expr, $call:ident $arguments:tt, $($length:literal)*, $other:expr) => {
        match $row {
            $($length => $call::<_, $length> $arguments,)*
            _ => $other,
        }
    };
}

/// Fills `out` with consecutive elements of an expanded operand, in row-major order. `start` is the row-major index of the element that
/// goes to `out[0]`.
pub(crate) fn spread<T: Copy>(space: &IterationSpace<1>, data: &[T], start: usize, out: &mut [T]) {
    let (row, [inner]) = space.loop_of(space.depth() - 1);
    let whole = start.is_multiple_of(row) && out.len().is_multiple_of(row);
    if space.depth() == 2 {
        let (_, [next]) = space.loop_of(0);
        if next == 0 && out.len() > row {
            fill_by_segments(space, data, start, &mut out[..row]);
            return repeat_prefix(out, row);
        }
        if inner == 0 && whole {
            let (first, rows) = (space.position(0, start), out.len() / row);
            if next == 1 {
                return by_rows(row, data[first..first + rows].iter().copied(), out);
            }
            let values = (0..rows).map(|row| data[(first as isize + row as isize * next) as usize]);
            return by_rows(row, values, out);
        }
    }
    if let (Some(times), true) = (space.row_repeats(), whole) {
        let (mut number, mut rest) = (start / row, out);
        while !rest.is_empty() {
            let rows = (times - number % times).min(rest.len() / row);
            let (now, later) = rest.split_at_mut(rows * row);
            repeat_row(&data[space.position(0, number * row)..][..row], now);
            (number, rest) = (number + rows, later);
        }
        return;
    }
    if whole && row > 1 && space.depth() > 1 && (inner == 1 || inner != 0 && row <= MAX_SHORT_ROW) {
        return gather_rows(space, data, start, out);
    }
    fill_by_segments(space, data, start, out);
}

/// Does the same as [`spread`], for whole rows of at least 2 elements. Rows of more than [`MAX_SHORT_ROW`] elements must have adjacent
/// elements. Runs one loop for all rows of the second innermost loop.
fn gather_rows<T: Copy>(space: &IterationSpace<1>, data: &[T], start: usize, out: &mut [T]) {
    let outer = space.depth() - 2;
    let ((height, [down]), (row, [across])) = (space.loop_of(outer), space.loop_of(outer + 1));
    let (mut number, mut rest) = (start / row, out);
    while !rest.is_empty() {
        let rows = (height - number % height).min(rest.len() / row);
        let (now, later) = rest.split_at_mut(rows * row);
        let position = space.position(0, number * row);
        match row {
            ..=MAX_SHORT_ROW => rows_of_constant(data, position, (down, across), row, now),
            _ => copy_matrix(data, now, [position, 0], [down, row as isize], [rows, row]),
        }
        (number, rest) = (number + rows, later);
    }
}

crate::scalar::cpu::dispatched! {
    /// Fills `out` with rows of `row` elements of `data`. `steps` has the distance between the starts of rows, and the distance between the
    /// elements of a row. The first element is at `position`.
    fn rows_of_constant<T: Copy>(
        data: &[T],
        position: usize,
        steps: (isize, isize),
        row: usize,
        out: &mut [T],
    ) {
        of_constant!(row, strided_rows(data, position, steps, out), 2 3 4 5 6 7 8, unreachable!("rows of {row}"));
    }
}

#[inline(always)]
fn strided_rows<T: Copy, const N: usize>(data: &[T], position: usize, (down, across): (isize, isize), out: &mut [T]) {
    let rows = out.as_chunks_mut::<N>().0;
    let at = |row: usize, i: usize| (position as isize + row as isize * down + i as isize * across) as usize;
    if down == 1 && across >= 0 {
        let columns: [&[T]; N] = std::array::from_fn(|i| &data[at(0, i)..][..rows.len()]);
        for row in 0..rows.len() {
            rows[row] = std::array::from_fn(
                #[inline(always)]
                |i| columns[i][row],
            );
        }
        return;
    }
    for row in 0..rows.len() {
        match data[at(row, 0)..].first_chunk() {
            Some(elements) if across == 1 => rows[row] = *elements,
            _ => (0..N).for_each(|i| rows[row][i] = data[at(row, i)]),
        }
    }
}

/// Returns true if the operand repeats rows, or if it has two loops and each row repeats one element. One loop of [`spread`] then writes
/// several rows, if `spread` is called for whole rows.
pub(crate) fn writes_by_rows(space: &IterationSpace<1>) -> bool {
    let (_, inner) = space.loop_of(space.depth() - 1);
    space.row_repeats().is_some() || space.depth() == 2 && (inner == [0] || space.loop_of(0).1 == [0])
}

/// Fills `out` with elements of an infinite repetition of `row`. `start` is the index, in the repetition, of the element that goes to
/// `out[0]`.
pub(crate) fn repeat<T: Copy>(row: &[T], start: usize, out: &mut [T]) {
    let (before, after) = row.split_at(start % row.len());
    let first = after.len().min(out.len());
    copy_strided(after, 0, 1, &mut out[..first]);
    let second = before.len().min(out.len() - first);
    copy_strided(before, 0, 1, &mut out[first..first + second]);
    repeat_prefix(out, row.len());
}

/// Splits `out` into rows of `row` elements, and fills each row with copies of one value: row `i` with value `i` of `values`.
pub(crate) fn by_rows<T: Copy>(row: usize, values: impl Iterator<Item = T>, out: &mut [T]) {
    fn rows<T: Copy, const N: usize>(values: impl Iterator<Item = T>, out: &mut [T]) {
        out.as_chunks_mut::<N>().0.iter_mut().zip(values).for_each(|(out, value)| *out = [value; N]);
    }
    of_constant!(row, rows(values, out), 2 3 4 5 6 7 8, {
        for (out, value) in out.chunks_exact_mut(row).zip(values) {
            match row {
                // Two stores of eight elements fill a row of 9 to 16 elements. They overlap if the row has fewer than 16.
                9..=16 => {
                    if let Some(first) = out.first_chunk_mut() {
                        *first = [value; 8];
                    }
                    if let Some(last) = out.last_chunk_mut() {
                        *last = [value; 8];
                    }
                }
                _ => out.iter_mut().for_each(|out| *out = value),
            }
        }
    });
}

/// Fills `out`, whose length is a multiple of the length of `row`, with repetitions of `row`.
fn repeat_row<T: Copy>(row: &[T], out: &mut [T]) {
    fn rows<T: Copy, const N: usize>(row: &[T], out: &mut [T]) {
        if let Some(row) = row.first_chunk::<N>() {
            out.as_chunks_mut().0.fill(*row);
        }
    }
    of_constant!(row.len(), rows(row, out), 2 3 4 5 6 7 8, {
        copy_strided(row, 0, 1, &mut out[..row.len()]);
        repeat_prefix(out, row.len());
    });
}

/// Fills the rest of `out` with repetitions of its first `row` elements. Each step copies all elements written so far to the elements after
/// them.
fn repeat_prefix<T: Copy>(out: &mut [T], row: usize) {
    let mut done = row;
    while done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
}

/// Does the same as [`spread`] for an operand of any layout. Copies one segment at a time: the elements of the innermost loop, which have a
/// constant stride.
fn fill_by_segments<T: Copy>(space: &IterationSpace<1>, data: &[T], start: usize, out: &mut [T]) {
    let mut done = 0;
    space.walk(0, start, out.len(), |position, stride, count| {
        copy_strided(data, position, stride, &mut out[done..done + count]);
        done += count;
    });
}

/// Writes `values` to consecutive elements of an operand, in row-major order. `start` is the row-major index of the operand's element that
/// gets `values[0]`. No two of the elements may share a position in `data`.
pub(crate) fn scatter<T: Copy>(space: &IterationSpace<1>, values: &[T], start: usize, data: &mut [T]) {
    let mut left = values;
    space.walk(0, start, values.len(), |position, stride, count| {
        let (now, later) = left.split_at(count);
        write_strided(now, position, stride, data);
        left = later;
    });
}

/// Returns true if the innermost loop of both operands visits adjacent elements.
pub(crate) fn has_adjacent_elements(space: &IterationSpace<2>) -> bool {
    space.loop_of(space.depth() - 1).1 == [1, 1]
}

/// Copies the elements of the first operand, which are in `from`, to the elements of the second operand in `to`. The innermost loop of both
/// operands must visit [adjacent elements](has_adjacent_elements).
pub(crate) fn copy_rows<T: Copy>(space: &IterationSpace<2>, from: &[T], to: &mut [T]) {
    let depth = space.depth();
    let (row, _) = space.loop_of(depth - 1);
    let (rows, steps) = if depth > 1 { space.loop_of(depth - 2) } else { (1, [0, 0]) };
    let count = rows * row;
    for start in (0..space.numel()).step_by(count.max(1)) {
        let starts = [0, 1].map(|operand| space.position(operand, start));
        match row {
            2..=MAX_SHORT_ROW => copy_short_rows(from, to, starts, steps, [rows, row]),
            _ => copy_matrix(from, to, starts, steps, [rows, row]),
        }
    }
}

const _: () = assert!(MAX_SHORT_ROW == 8, "loops of constant length exist for rows of up to 8 elements");

crate::scalar::cpu::dispatched! {
    /// Does the same as [`copy_matrix`] for rows of 2 to [`MAX_SHORT_ROW`] elements.
    fn copy_short_rows<T: Copy>(from: &[T], to: &mut [T], starts: [usize; 2], steps: [isize; 2], sizes: [usize; 2]) {
        let [rows, row] = sizes;
        of_constant!(
            row,
            matrix_of_constant(from, to, starts, steps, rows),
            2 3 4 5 6 7 8,
            unreachable!("rows of {row}")
        );
    }
}

#[inline(always)]
fn matrix_of_constant<T: Copy, const N: usize>(
    from: &[T],
    to: &mut [T],
    starts: [usize; 2],
    steps: [isize; 2],
    rows: usize,
) {
    if steps[1] == N as isize {
        return strided_rows::<T, N>(from, starts[0], (steps[0], 1), &mut to[starts[1]..][..rows * N]);
    }
    for_each_row(starts, steps, rows, |[from_start, to_start]| {
        to[to_start..][..N].copy_from_slice(&from[from_start..][..N]);
    });
}

/// Calls `visit` with the positions of the first elements of each row, in two matrices. `starts` has the positions of the first rows, and
/// `steps` the distances between rows.
#[inline(always)]
fn for_each_row(starts: [usize; 2], steps: [isize; 2], rows: usize, mut visit: impl FnMut([usize; 2])) {
    for row in 0..rows as isize {
        visit([0, 1].map(|operand| (starts[operand] as isize + row * steps[operand]) as usize));
    }
}

crate::scalar::cpu::dispatched! {
    /// Copies a matrix whose rows have adjacent elements in `from` and in `to`. `starts` has the positions of the first elements, `steps` the
    /// distances between rows, and `sizes` the number of rows and of columns.
    fn copy_matrix<T: Copy>(from: &[T], to: &mut [T], starts: [usize; 2], steps: [isize; 2], sizes: [usize; 2]) {
        let [rows, row] = sizes;
        for_each_row(starts, steps, rows, |[from_start, to_start]| {
            let (from, to) = (&from[from_start..from_start + row], &mut to[to_start..to_start + row]);
            // Two copies of a fixed size cover a row of up to twice this size.
            let copied = match row {
                _ if row <= MAX_LOOP_COPY => {
                    copy_short(from, to);
                    true
                }
                _ if row <= 32 => copy_ends::<T, 16>(from, to),
                _ if row <= 64 => copy_ends::<T, 32>(from, to),
                _ if row <= 128 => copy_ends::<T, 64>(from, to),
                _ => false,
            };
            if !copied {
                cpu::copy(from, to);
            }
        });
    }
}

/// Writes `values` to elements of `data` that are `stride` apart. `position` is the index of the first of them.
#[inline]
pub(crate) fn write_strided<T: Copy>(values: &[T], position: usize, stride: isize, data: &mut [T]) {
    match stride {
        1 => data[position..position + values.len()].copy_from_slice(values),
        2.. => {
            let places = data[position..].iter_mut().step_by(stride as usize);
            places.zip(values).for_each(|(place, &value)| *place = value);
        }
        _ => {
            let at = |i: usize| (position as isize + i as isize * stride) as usize;
            values.iter().enumerate().for_each(|(i, &value)| data[at(i)] = value);
        }
    }
}

/// Copies elements of `data` that are `stride` apart to `out`. `position` is the index of the first of them in `data`.
#[inline]
pub(crate) fn copy_strided<T: Copy>(data: &[T], position: usize, stride: isize, out: &mut [T]) {
    let count = out.len();
    match stride {
        0 => out.fill(data[position]),
        1 if count > MAX_LOOP_COPY => cpu::copy(&data[position..position + count], out),
        1 => copy_short(&data[position..position + count], out),
        -1 | 2..=4 if count > MAX_LOOP_COPY => copy_by_vectors(data, position, stride, out),
        2.. => {
            let values = data[position..].iter().step_by(stride as usize);
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = value);
        }
        _ => {
            let at = |i: usize| (position as isize + i as isize * stride) as usize;
            out.iter_mut().enumerate().for_each(|(i, out)| *out = data[at(i)]);
        }
    }
}

/// Copies at most [`MAX_LOOP_COPY`] elements. Two copies of a fixed size, which may overlap, take less time than a loop.
#[inline(always)]
fn copy_short<T: Copy>(from: &[T], to: &mut [T]) {
    if !copy_ends::<T, 8>(from, to) && !copy_ends::<T, 4>(from, to) {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    }
}

/// Copies the first `N` and the last `N` elements, and returns true. If there are fewer than `N` elements, returns false.
#[inline(always)]
fn copy_ends<T: Copy, const N: usize>(from: &[T], to: &mut [T]) -> bool {
    let (Some(first), Some(last), count) = (from.first_chunk::<N>(), from.last_chunk::<N>(), from.len()) else {
        return false;
    };
    to[..N].copy_from_slice(first);
    to[count - N..].copy_from_slice(last);
    true
}

// Every copy of this length is covered by its first 8 and its last 8 elements.
const _: () = assert!(MAX_LOOP_COPY <= 16);

crate::scalar::cpu::dispatched! {
    /// Does the same as [`copy_strided`] for the strides -1, 2, 3 and 4. The compiler vectorizes these loops.
    fn copy_by_vectors<T: Copy>(data: &[T], position: usize, stride: isize, out: &mut [T]) {
        match stride {
            2 => copy_every::<T, 2>(&data[position..], out),
            3 => copy_every::<T, 3>(&data[position..], out),
            4 => copy_every::<T, 4>(&data[position..], out),
            _ => {
                let from = &data[position + 1 - out.len()..=position];
                for i in 0..out.len() {
                    out[i] = from[from.len() - 1 - i];
                }
            }
        }
    }
}

crate::scalar::cpu::dispatched! {
    /// Fills `out` with the integers `start`, `start + step`, `start + 2 step` and so on. Sums wrap around.
    pub(crate) fn integers<T: Scalar>(start: i64, step: i64, out: &mut [T]) {
        let mut number = start;
        for i in 0..out.len() {
            out[i] = T::from_i64(number);
            number = number.wrapping_add(step);
        }
    }

    /// Fills `out` with the numbers `start + k step` for k = 0, 1, 2 and so on, computed in f64.
    pub(crate) fn numbers<T: Scalar>(start: f64, step: f64, out: &mut [T]) {
        for i in 0..out.len() {
            out[i] = T::from_f64(start + i as f64 * step);
        }
    }
}

/// Copies every element of `from` whose index is a multiple of `N` to `out`.
#[inline(always)]
fn copy_every<T: Copy, const N: usize>(from: &[T], out: &mut [T]) {
    let Some((last, out)) = out.split_last_mut() else { return };
    *last = from[out.len() * N];
    let groups = &from.as_chunks::<N>().0[..out.len()];
    for i in 0..out.len() {
        out[i] = groups[i][0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Shape};

    #[test]
    fn progressions_are_sums_and_products() {
        for len in [0, 1, 7, 50] {
            let (mut bytes, mut floats) = (vec![0u8; len], vec![0f32; len]);
            integers(250, 3, &mut bytes);
            assert!(bytes.iter().enumerate().all(|(k, &x)| x == (250 + 3 * k) as u8));
            integers(i64::MAX - 40, 2, &mut floats);
            let sum = |k: usize| (i64::MAX - 40).wrapping_add(2 * k as i64);
            assert!(floats.iter().enumerate().all(|(k, &x)| x == sum(k) as f32));
            numbers(0.1, -0.3, &mut floats);
            assert!(floats.iter().enumerate().all(|(k, &x)| x == (0.1 + k as f64 * -0.3) as f32));
        }
    }

    #[test]
    fn strided_elements_are_picked() {
        for (stride, count) in (-2..7).flat_map(|stride| (1..=17).chain([63]).map(move |count| (stride, count))) {
            for more in [0, 1, 9] {
                let last = (count as isize - 1) * stride;
                let x: Vec<isize> = (0..last.abs() + 1 + more).collect();
                let (first, mut got) = (last.min(0).unsigned_abs(), vec![-1; count]);
                copy_strided(&x, first, stride, &mut got);
                let expected = (0..count as isize).map(|i| first as isize + i * stride);
                assert!(expected.eq(got.iter().copied()), "{stride} {count} {more}: {got:?}");
            }
        }
    }

    /// Copies windows of `[2, 3, row]` elements between arrays with longer rows, and compares each element. The planes or the rows of the
    /// operand may be in reverse order, or the operand may repeat its first row.
    #[test]
    fn rows_of_any_length_are_copied() {
        for row in [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 300] {
            let window = |more: usize| {
                let whole = Layout::contiguous(Shape::from([4, 5, row + more]));
                whole.slice(0, 1, 2, 1).slice(1, 1, 3, 1).slice(2, more / 2, row, 1)
            };
            let data: Vec<usize> = (0..4 * 5 * (row + 5)).collect();
            for (from, to) in [(5, 0), (0, 3), (2, 2), (0, 0)] {
                let (to, mut out) = (window(to), vec![usize::MAX; 4 * 5 * (row + to)]);
                let from = window(from);
                let repeated = from.slice(1, 0, 1, 1).expand(to.shape()).unwrap();
                for from in [from.flip(&[0]), from.flip(&[1]), repeated, from] {
                    let space = IterationSpace::new(to.shape(), [&from, &to]);
                    if row > 1 {
                        assert!(has_adjacent_elements(&space));
                    } else if !has_adjacent_elements(&space) {
                        continue;
                    }
                    let mut expected = vec![usize::MAX; out.len()];
                    (0..space.numel()).for_each(|i| expected[space.position(1, i)] = data[space.position(0, i)]);
                    out.fill(usize::MAX);
                    copy_rows(&space, &data, &mut out);
                    assert_eq!(out, expected, "rows of {row}");
                    // The same elements in row-major order, from different rows on.
                    let space = IterationSpace::new(to.shape(), [&from]);
                    for start in [0, 1, 2, 4].map(|rows| rows * row) {
                        let mut block = vec![usize::MAX; 6 * row - start];
                        spread(&space, &data, start, &mut block);
                        let expected = (start..6 * row).map(|i| data[space.position(0, i)]);
                        assert!(expected.eq(block), "rows of {row} from {start}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_repeated() {
        let row: Vec<usize> = (0..7).collect();
        for (start, len) in (0..20).flat_map(|start| (0..40).map(move |len| (start, len))) {
            let mut out = vec![usize::MAX; len];
            repeat(&row, start, &mut out);
            let expected: Vec<usize> = (start..start + len).map(|i| i % 7).collect();
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn every_range_of_every_operand() {
        let row = Layout::contiguous(Shape::from([5]));
        let column = Layout::contiguous(Shape::from([6, 1]));
        let transposed = Layout::contiguous(Shape::from([5, 6])).permute(&[1, 0]);
        let flipped = Layout::contiguous(Shape::from([6, 5])).flip(&[1]);
        let shape = Shape::from([6, 5]);
        let data: Vec<usize> = (0..30).collect();
        // The layout repeats each of the two rows three times.
        let rows = Layout::contiguous(Shape::from([2, 1, 5])).expand(&Shape::from([2, 3, 5])).unwrap();
        let space = IterationSpace::new(rows.shape(), [&rows]);
        for (start, len) in [(0, 30), (5, 25), (10, 15), (3, 20), (25, 5)] {
            let mut out = vec![usize::MAX; len];
            spread(&space, &data, start, &mut out);
            assert_eq!(out, (start..start + len).map(|i| i / 15 * 5 + i % 5).collect::<Vec<_>>());
        }
        for layout in [row, column, transposed, flipped] {
            let space = IterationSpace::new(&shape, [&layout.expand(&shape).unwrap()]);
            for start in 0..30 {
                for len in 1..=30 - start {
                    let mut out = vec![usize::MAX; len];
                    spread(&space, &data, start, &mut out);
                    let expected: Vec<usize> = (start..start + len).map(|i| data[space.position(0, i)]).collect();
                    assert_eq!(out, expected, "{layout:?} from {start}");
                }
            }
        }
    }
}
