//! Divides a large matrix into parts for several threads. The number of parts follows from the size alone, so any number of threads gives
//! the same bits.

use wengert_tensor::{Float, each_part};

use super::arithmetic::add_scaled;
use crate::simd::vectorized;

/// The minimum number of elements in a part of a matrix: a group of rows that is one task. For a much smaller part, the start of the task
/// would take longer than the work.
const MIN_PART_ELEMENTS: usize = 1 << 14;

/// The maximum number of parts of a matrix. Each part needs memory for a row of sums.
const MAX_PARTS: usize = 16;

/// Returns the number of parts into which a pass over `elements` elements is divided. It does not depend on the number of threads, and
/// neither do sums over the parts.
pub(crate) fn part_count(elements: usize) -> usize {
    (elements / MIN_PART_ELEMENTS).clamp(1, MAX_PARTS)
}

/// Divides rows of `width` elements into parts, calls `run` for each part on several threads, and adds up the sums that `run` writes. `sums`
/// has `width` elements for each part, and the first `width` elements become the total. `end(k)` is the row at which the first k parts end.
/// `run` gets the index of the first row of a part, the rows of the part, and its elements of `sums`.
#[inline(never)]
pub(crate) fn sum_in_parts<T: Float>(
    rows: &mut [T],
    width: usize,
    sums: &mut [T],
    end: impl Fn(usize) -> usize,
    run: impl Fn(usize, &mut [T], &mut [T]) + Sync,
) {
    let (mut tasks, mut rest) = (Vec::with_capacity(sums.len() / width), rows);
    for (part, sums) in sums.chunks_exact_mut(width).enumerate() {
        let rows = rest.split_off_mut(..(end(part + 1) - end(part)) * width).unwrap_or_default();
        tasks.push((end(part), rows, sums));
    }
    each_part(tasks, true, |_, (first, rows, sums)| {
        vectorized(
            #[inline(always)]
            || run(first, rows, sums),
        );
    });
    let (first, others) = sums.split_at_mut(width);
    for other in others.chunks_exact(width) {
        add_scaled(first, T::ONE, other);
    }
}
