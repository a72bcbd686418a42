//! Finds the position of the largest or smallest element along a dimension. If there are NaNs, the position of the first one is the result.
//! If several elements are equal, the position of the first one is the result.
//!
//! A *lane* is a line of elements along the dimension. Contiguous lanes of at least [`MIN_CONTIGUOUS_LANE`] elements, few long lanes, and a
//! single lane are searched one after the other. The extreme value is computed first, and then its first position is searched. Other lanes
//! are scanned together, row by row. Long lanes may be split into segments. The best elements of the segments are compared in order, so the
//! positions do not depend on the number of threads.
use crate::kernel::reduce::accumulator::{MAX_RUN, slice_total};
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid, Tile};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::scalar::math::is_nan;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::blocks::{MAX_TASKS, TASK};
use crate::{Element, Layout, Reduction};

/// The length, in elements, of the runs (ranges) into which a lane is divided if it is searched by itself. A lane is a line along the
/// dimension. The extreme value of each run is computed before the position is searched in the best run. A segment of the lane has whole
/// runs.
const RUN_LEN: usize = MAX_RUN;

/// The smallest number of elements of a segment if a lane (a line along the dimension) is divided among several tasks.
const MIN_SEGMENT: usize = 128;

/// The maximum number of adjacent lanes (lines of elements along the dimension) that are scanned together.
const MAX_LANES_TOGETHER: usize = 1024;

/// The length, in elements, below which even contiguous lanes (lines along the dimension) are scanned together. It is also the number of
/// lanes below which long lanes are searched one after the other.
const MIN_CONTIGUOUS_LANE: usize = 16;

/// The approximate number of elements in a task that searches segments of lanes. Also the smallest number of elements that several threads
/// search.
const ELEMENTS_PER_TASK: usize = 1 << 16;

/// Returns true if the element `new` replaces `old`, the best element so far. `old` comes before `new` along the dimension.
fn is_better<T: Element>(largest: bool, old: T, new: T) -> bool {
    !is_nan(old) && (is_nan(new) || if largest { new > old } else { new < old })
}

dispatched! {
    /// Compares `row` with the best elements of earlier rows. Where the element of `row` is larger (or smaller), or is the first NaN, stores
    /// it in `best`. Also stores `number`, the index of the row, in `at`.
    #[allow(clippy::eq_op)] // Only a NaN is not equal to itself.
    fn update_best<T: Element>(largest: bool, row: &[T], number: u32, best: &mut [T], at: &mut [u32]) {
        let len = row.len();
        let (best, at) = (&mut best[..len], &mut at[..len]);
        for i in 0..len {
            let (old, new) = (best[i], row[i]);
            // This comparison is false if `new` is NaN, so that a NaN replaces a number.
            let stays = if largest { new <= old } else { new >= old };
            let wins = !stays & (old == old);
            best[i] = if wins { new } else { old };
            at[i] = if wins { number } else { at[i] };
        }
    }

    /// Returns the position of the first element that equals `value`, or of the first NaN if `value` is NaN. At least one element must
    /// match.
    #[allow(clippy::eq_op)]
    fn find_first<T: Element>(x: &[T], value: T) -> usize {
        let nan = value != value;
        let mut from = 0;
        for chunk in x.as_chunks::<64>().0 {
            let mut found = false;
            for &x in chunk {
                found |= (x == value) | (nan & (x != x));
            }
            if found {
                break;
            }
            from += 64;
        }
        while from + 1 < x.len() && x[from] != value && !(nan && x[from] != x[from]) {
            from += 1;
        }
        from
    }
}

/// Returns the position of the largest element of a slice, or of the smallest element if `largest` is false.
fn arg_of_lane<T: Element>(largest: bool, x: &[T]) -> usize {
    let op = if largest { Reduction::Amax } else { Reduction::Amin };
    let (mut best, mut start) = (None, 0);
    for (number, run) in x.chunks(RUN_LEN).enumerate() {
        let extreme = slice_total(op, run);
        if best.is_none_or(|best| is_better(largest, best, extreme)) {
            (best, start) = (Some(extreme), number * RUN_LEN);
        }
    }
    best.map_or(0, |best| start + find_first(&x[start..x.len().min(start + RUN_LEN)], best))
}

/// The lanes whose extreme elements are searched. A lane is a line of elements along the dimension.
struct Lanes<'a, T> {
    largest: bool,
    data: &'a [T],
    /// The positions of the lanes' first elements.
    space: IterationSpace<1>,
    /// The distance between successive elements of a lane, in elements.
    step: isize,
}

/// Writes to `out`, for every lane (a line of elements along the dimension), the position of the first largest or smallest element. A NaN
/// counts as larger (or smaller) than all other elements. `reduced` is the layout along the lanes, with one dimension. If the lanes are
/// empty, `out` is not changed. `kept` is the layout of the other dimensions.
pub(crate) fn arg<T: Element>(
    largest: bool,
    data: &[T],
    kept: &Layout,
    reduced: &Layout,
    out: &mut [i64],
) -> Result<(), AllocationError> {
    let (lane_len, lane_count) = (reduced.numel(), out.len());
    if lane_count == 0 || lane_len == 0 {
        return Ok(());
    }
    if reduced.shape().iter().zip(reduced.strides()).all(|(&size, &stride)| size == 1 || stride == 0) {
        // Each lane repeats one element, so the first position is the result. Copies of the lanes could take more memory than there is.
        out.fill(0);
        return Ok(());
    }
    let step = reduced.strides().first().map_or(1, |&stride| stride);
    let lanes = Lanes { largest, data, space: IterationSpace::new(kept.shape(), [kept]), step };
    let each_lane = step == 1 && lane_len >= MIN_CONTIGUOUS_LANE
        || lane_count < MIN_CONTIGUOUS_LANE && lane_len >= RUN_LEN
        || lane_count == 1;
    // A task computes a range of lanes. If there are few such ranges, the lanes are divided into segments, and a task searches one segment
    // of each lane in its range.
    let strip_len = if each_lane {
        (TASK / lane_len).max(lane_count.div_ceil(MAX_TASKS)).max(1)
    } else {
        lanes_per_strip(&lanes.space, lane_count)
    };
    let strips = lane_count.div_ceil(strip_len);
    let most = if strips < MAX_TASKS / 4 { lane_count.saturating_mul(lane_len) / ELEMENTS_PER_TASK } else { 1 };
    let segments = most.min(MAX_TASKS / strips).min(lane_len / MIN_SEGMENT).max(lane_len.div_ceil(1 << 31)).max(1);
    let segment = lane_len.div_ceil(segments).next_multiple_of(if each_lane { RUN_LEN } else { 64 });
    let segments = lane_len.div_ceil(segment);

    // If lanes are split into segments, the best positions of each segment are stored in a row of their own.
    let mut positions = Scratch::new(if segments > 1 { segments * lane_count } else { 0 })?;
    let grid = Grid::equal(if segments > 1 { &mut positions } else { &mut *out }, lane_count, (1, strip_len));
    let schedule = Schedule::parallel_from(ELEMENTS_PER_TASK, lane_count.saturating_mul(lane_len));
    partition::run(strips * segments, schedule, grid, |part, mut out: Tile<i64>| {
        let (from, first) = (part / strips * segment, part % strips * strip_len);
        let size = segment.min(lane_len - from);
        match each_lane {
            true => lanes.search_one_by_one(first, from, size, out.row(0)),
            false => lanes.search_together(first, from, size, out.row(0)),
        }
    });
    for (lane, out) in out.iter_mut().enumerate().take(if segments > 1 { lane_count } else { 0 }) {
        *out = positions[lane];
        for position in positions[lane..].iter().step_by(lane_count) {
            if is_better(largest, lanes.value(lane, *out), lanes.value(lane, *position)) {
                *out = *position;
            }
        }
    }
    Ok(())
}

/// Returns the number of adjacent lanes (lines along the dimension) that are scanned together. If the rows of `space` are short, this number
/// is [`MAX_LANES_TOGETHER`]. Otherwise it is the length of a row, or of a part of a long row. It is never more than `lanes`.
fn lanes_per_strip(space: &IterationSpace<1>, lanes: usize) -> usize {
    let row = space.run_length();
    if row < MIN_CONTIGUOUS_LANE {
        MAX_LANES_TOGETHER.min(lanes)
    } else {
        row.div_ceil(row.div_ceil(MAX_LANES_TOGETHER)).min(lanes)
    }
}

impl<T: Element> Lanes<'_, T> {
    fn value(&self, lane: usize, position: i64) -> T {
        self.data[(self.space.position(0, lane) as isize + position as isize * self.step) as usize]
    }

    /// Finds the position of the extreme element of each lane, one lane after the other. The first lane has index `first`. Searches only
    /// the `size` elements of each lane that begin with element `from`.
    fn search_one_by_one(&self, first: usize, from: usize, size: usize, out: &mut [i64]) {
        let (data, step, mut lane) = (self.data, self.step, Vec::new());
        for (i, out) in out.iter_mut().enumerate() {
            let at = self.space.position(0, first + i) as isize + from as isize * step;
            let x = if step == 1 {
                &data[at as usize..][..size]
            } else {
                lane.clear();
                match step {
                    1.. => lane.extend(data[at as usize..].iter().step_by(step as usize).take(size)),
                    _ => lane.extend((0..size as isize).map(|k| data[(at + k * step) as usize])),
                }
                &lane
            };
            *out = (from + arg_of_lane(self.largest, x)) as i64;
        }
    }

    /// Does the same as [`search_one_by_one`](Self::search_one_by_one), but scans adjacent lanes together. A row has one element of each
    /// lane.
    fn search_together(&self, first: usize, from: usize, size: usize, out: &mut [i64]) {
        let width = out.len();
        let (mut best, mut at, mut lane) = (Vec::with_capacity(width), vec![0u32; width], Vec::new());
        let slice = self.space.segment(0, first, width);
        for number in 0..size {
            let moved = (from + number) as isize * self.step;
            let row = match slice {
                Segment::Slice(position) => &self.data[(position as isize + moved) as usize..][..width],
                _ => {
                    lane.clear();
                    self.space.walk(0, first, width, |position, stride, count| {
                        let position = position as isize + moved;
                        lane.extend((0..count as isize).map(|k| self.data[(position + k * stride) as usize]));
                    });
                    &lane
                }
            };
            if number == 0 {
                best.extend_from_slice(row);
            } else {
                update_best(self.largest, row, number as u32, &mut best, &mut at);
            }
        }
        for (out, &at) in out.iter_mut().zip(&at) {
            *out = (from + at as usize) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Tests long and short lanes (lines of elements), contiguous and strided. The kernel searches them alone, together, or in segments.
    /// The largest elements of long lanes, up to three equal numbers or NaNs, are far apart.
    #[test]
    fn the_first_of_equal_elements_is_found_in_every_lane() {
        for [rows, columns] in
            [[1, 300_000], [300_000, 1], [3, 100_000], [100_000, 3], [700, 700], [5000, 40], [40, 5000]]
        {
            for (peaks, nan) in [(1, false), (3, false), (3, true)] {
                let peak = |lane: usize, size: usize| (0..peaks).map(move |k| (lane * 7919 + k * 4001 + 17) % size);
                let value = |lane: usize, position: usize, size: usize| {
                    let top = if nan { f64::NAN } else { 9.0 };
                    if peak(lane, size).any(|peak| peak == position) { top } else { (position % 7) as f64 }
                };
                let first = |lane: usize, size: usize| peak(lane, size).min().unwrap_or(0) as i64;
                let x = Tensor::from_fn([rows, columns], |i| value(i[0], i[1], columns));
                assert_eq!(x.argmax(1).to_vec(), (0..rows).map(|i| first(i, columns)).collect::<Vec<_>>());
                let x = Tensor::from_fn([rows, columns], |i| -value(i[1], i[0], rows));
                assert_eq!(x.argmin(0).to_vec(), (0..columns).map(|i| first(i, rows)).collect::<Vec<_>>());
                let single = x.cast::<f32>();
                assert_eq!(single.t().argmin(1), x.argmin(0));
            }
        }
    }
}
