//! Operations on whole lanes along one dimension: cumulative sums, running extremes, sorting, selection by rank, medians and modes.
//!
//! A lane is a line of elements along the dimension, at one index of the other dimensions. Most functions take a lane as a slice. [`each`]
//! splits a tensor of any layout into lanes for them, and stores the results. Cumulative sums, products, extremes and logarithms of sums take
//! a whole tensor. Lanes are independent, so the bits do not depend on the number of threads. [`order`] puts the earlier of two equal
//! elements first. NaN is larger than all numbers, as in PyTorch's `sort`.
use std::error::Error as _;
use std::sync::OnceLock;

use rayon::slice::ParallelSliceMut;
use smallvec::SmallVec;

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::scan::select;
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid, Tile};
use crate::memory::reserve;
use crate::memory::threads::{Schedule, num_threads};
use crate::scalar::cpu::dispatched;
use crate::scalar::math::{is_nan, larger, smaller};
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::scan::{
    ADJACENT, LOG_BLOCK, MIN_CHECKED_LANE, MIN_PARALLEL, MIN_SHARED_LANE, SCANNED_COLUMNS as COLUMNS, TASK,
};
use crate::{DType, Element, Float, Reduction, Shape, Unary};

/// The number of elements that [`next_beyond`] compares with the bound at once.
const PART: usize = 16;

/// A function that reads a lane and writes its results. It is a trait object, so that the loops over lanes are compiled once for all
/// functions.
pub(crate) type LaneFn<'f, T, U> = dyn Fn(&[T], &mut [U]) + Sync + 'f;

/// Calls `f` with every lane (a line of elements) of `x` along dimension `axis`, and with a slice for the lane's `len` results. `out` is
/// row-major and has the shape of `x`, except for size `len` along `axis`.
pub(crate) fn each<T: Element, U: Element>(
    x: Source<T>,
    axis: usize,
    len: usize,
    out: &mut [U],
    f: &LaneFn<T, U>,
) -> Result<(), AllocationError> {
    if out.is_empty() {
        return Ok(());
    }
    let shape = x.layout.shape();
    let size = shape[axis];
    let inner = Shape::from(&shape[axis + 1..]).numel();
    let order: Vec<usize> = (0..shape.rank()).filter(|&other| other != axis).chain([axis]).collect();
    let lanes = x.layout.permute(&order);
    let space = IterationSpace::new(lanes.shape(), [&lanes]);
    let count = out.len() / len;
    let schedule = Schedule::parallel_from(MIN_PARALLEL, size * count);
    check_room(size, count.min(num_threads()) * inner.min(ADJACENT))?;
    if inner == 1 {
        let per_task = (TASK / size.max(1)).max(1);
        partition::chunks(out, per_task * len, schedule, |task, out: &mut [U]| {
            let mut lane = Vec::new();
            for (number, out) in (task * per_task..).zip(out.chunks_exact_mut(len)) {
                if let Segment::Slice(position) = space.segment(0, number * size, size) {
                    f(&x.data[position..][..size], out);
                    continue;
                }
                lane.clear();
                space.walk(0, number * size, size, |position, stride, count| {
                    lane.extend((0..count as isize).map(|k| x.data[(position as isize + k * stride) as usize]));
                });
                f(&lane, out);
            }
        });
        return Ok(());
    }
    let stride = x.layout.strides()[axis];
    // Adjacent lanes are processed together, because each cache line has elements of several lanes.
    let groups = inner.div_ceil(ADJACENT);
    let grid = Grid::equal(out, inner, (len, ADJACENT));
    partition::run(count / inner * groups, schedule, grid, |number, out: Tile<U>| {
        let (outer, first) = (number / groups, number % groups * ADJACENT);
        let starts: SmallVec<[usize; ADJACENT]> =
            (first..inner.min(first + ADJACENT)).map(|lane| space.position(0, (outer * inner + lane) * size)).collect();
        adjacent(x.data, &starts, stride, size, out, f);
    });
    Ok(())
}

/// Returns an error if there is too little memory for copies of `count` lanes of `size` elements, with a key and a position per element.
/// Functions of lanes allocate this memory without a check. Lanes of fewer than [`MIN_CHECKED_LANE`] elements are not checked.
pub(crate) fn check_room(size: usize, count: usize) -> Result<(), AllocationError> {
    if size >= MIN_CHECKED_LANE {
        drop(reserve::with_capacity::<i64>(size.saturating_mul(3 * count.max(1)))?);
    }
    Ok(())
}

/// Calls `f` with several adjacent lanes (lines of elements along the dimension), which have `size` elements each. Writes the results of
/// each lane to a column of `out`.
fn adjacent<T: Element, U: Element>(
    data: &[T],
    starts: &[usize],
    stride: isize,
    size: usize,
    mut out: Tile<U>,
    f: &LaneFn<T, U>,
) {
    let (len, width) = (out.height(), starts.len());
    // The copies of lanes are 16 elements longer than the lanes. Without these elements, lanes whose size is a power of two would map to the
    // same cache sets and evict each other.
    let (pitch, apart) = (size + 16, len + 16);
    let (mut lanes, mut results) = (vec![T::ZERO; pitch * width], vec![U::ZERO; apart * width]);
    for j in 0..size {
        for (k, &start) in starts.iter().enumerate() {
            lanes[k * pitch + j] = data[(start as isize + j as isize * stride) as usize];
        }
    }
    for (lane, result) in lanes.chunks(pitch).zip(results.chunks_mut(apart)) {
        f(&lane[..size], &mut result[..len]);
    }
    for j in 0..len {
        for (out, result) in out.row(j).iter_mut().zip(results[j..].iter().step_by(apart)) {
            *out = *result;
        }
    }
}

/// Writes the running sums of `x` along dimension `axis` to `out`. Floating-point numbers are summed in f64, and sums of integers wrap
/// around. A sum of truth values is true from the first `true` on.
pub(crate) fn running_sums<T: Element>(x: Source<T>, axis: usize, out: &mut [T]) -> Result<(), AllocationError> {
    if T::DTYPE.is_float() {
        scan(x, axis, out, 0.0, |total, _, x| total + x.to_f64(), T::from_f64)
    } else {
        scan(x, axis, out, 0i64, |total, _, x| total.wrapping_add(x.to_i64()), T::from_i64)
    }
}

/// Writes the running products of `x` along dimension `axis` to `out`. Floating-point numbers are multiplied in f64, and products of integers
/// wrap around. A product of truth values is true before the first `false`, and false from there on.
pub(crate) fn running_products<T: Element>(x: Source<T>, axis: usize, out: &mut [T]) -> Result<(), AllocationError> {
    if T::DTYPE.is_float() {
        scan(x, axis, out, 1.0, |total, _, x| total * x.to_f64(), T::from_f64)
    } else {
        scan(x, axis, out, 1i64, |total, _, x| total.wrapping_mul(x.to_i64()), T::from_i64)
    }
}

/// Scans each lane of `x` along dimension `axis`. A total begins as `start`, and each element replaces it by `step(total, position,
/// element)`. Writes `value(total)` for each element to `out`, which is row-major. Each step of a lane depends on the step before it. So if
/// `x` is contiguous, the loop alternates between several lanes.
fn scan<T: Element, U: Element, A: Copy + Sync>(
    x: Source<T>,
    axis: usize,
    out: &mut [U],
    start: A,
    step: impl Fn(A, usize, T) -> A + Sync,
    value: impl Fn(A) -> U + Sync,
) -> Result<(), AllocationError> {
    let shape = x.layout.shape();
    let (size, inner) = (shape[axis], Shape::from(&shape[axis + 1..]).numel());
    let one = |lane: &[T], out: &mut [U]| {
        let mut total = start;
        for (i, (out, &x)) in out.iter_mut().zip(lane).enumerate() {
            total = step(total, i, x);
            *out = value(total);
        }
    };
    if !x.layout.is_contiguous() || out.is_empty() {
        return each(x, axis, size, out, &one);
    }
    let data = &x.data[x.layout.offset()..][..out.len()];
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    if inner == 1 {
        let elements = (TASK / (4 * size)).max(1) * 4 * size;
        partition::chunks(out, elements, schedule, |task, out| {
            let x = &data[task * elements..][..out.len()];
            let mut groups = out.chunks_exact_mut(4 * size);
            for (out, x) in groups.by_ref().zip(x.chunks_exact(4 * size)) {
                let mut totals = [start; 4];
                for i in 0..size {
                    for (lane, total) in totals.iter_mut().enumerate() {
                        *total = step(*total, i, x[lane * size + i]);
                        out[lane * size + i] = value(*total);
                    }
                }
            }
            let rest = groups.into_remainder();
            let x = &x[x.len() - rest.len()..];
            rest.chunks_exact_mut(size).zip(x.chunks_exact(size)).for_each(|(out, x)| one(x, out));
        });
        return Ok(());
    }
    let columns = inner.div_ceil(COLUMNS);
    let count = out.len() / (size * inner) * columns;
    partition::run(count, schedule, Grid::equal(out, inner, (size, COLUMNS)), |number, mut out: Tile<U>| {
        let (outer, first) = (number / columns, number % columns * COLUMNS);
        let (mut totals, width) = ([start; COLUMNS], out.width());
        for row in 0..size {
            let x = &data[(outer * size + row) * inner + first..][..width];
            for ((total, &x), out) in totals.iter_mut().zip(x).zip(out.row(row)) {
                *total = step(*total, row, x);
                *out = value(*total);
            }
        }
    });
    Ok(())
}

/// Writes, for each element, the position of the largest (or smallest) element among this element and the elements before it in its lane. Of
/// several equal elements, the last one is chosen. A NaN is always chosen, and stays until another NaN replaces it.
pub(crate) fn running_extremes<T: Element>(
    largest: bool,
    x: Source<T>,
    axis: usize,
    out: &mut [i64],
) -> Result<(), AllocationError> {
    // The running total of a lane is its best element so far and the position of this element. A comparison with NaN is false, so only
    // another NaN replaces a NaN.
    let update = |(best, place): (T, i64), i: usize, x: T, wins: bool| {
        let wins = wins | is_nan(x);
        (if wins { x } else { best }, if wins { i as i64 } else { place })
    };
    let place = |(_, place): (T, i64)| place;
    // In long lanes, few elements change the extreme. A branch that skips the others is faster than two selections. On an AMD Zen 4, it takes
    // 189 µs instead of 262 µs for 700 lanes of 300 elements.
    let largest_so_far = |total: (T, i64), i, x| if x < total.0 { total } else { update(total, i, x, x >= total.0) };
    let smallest_so_far = |total: (T, i64), i, x| if x > total.0 { total } else { update(total, i, x, x <= total.0) };
    match largest {
        true => scan(x, axis, out, (T::start(Reduction::Amax), 0), largest_so_far, place),
        false => scan(x, axis, out, (T::start(Reduction::Amin), 0), smallest_so_far, place),
    }
}

/// Writes, for each element, ln Σ eˣ over this element and all elements before it in its lane along dimension `axis`. To avoid overflow, the
/// largest element so far is subtracted from the exponents. When a larger element follows, the sum so far is multiplied by e^(old - new),
/// where `old` and `new` are the largest elements before and after.
#[wengert_macros::precompiled]
pub(crate) fn running_log_sums<T: Float>(x: Source<T>, axis: usize, out: &mut [T]) -> Result<(), AllocationError> {
    let size = x.layout.shape()[axis];
    each(x, axis, size, out, &|lane, out| {
        let [mut shifts, mut terms, mut scales, mut sums] = [[T::ZERO; LOG_BLOCK]; 4];
        // An infinite shift would give NaN, because ∞ - ∞ is NaN.
        let finite = |x: T| larger(smaller(x, T::MAX), -T::MAX);
        let (mut largest, mut shift, mut sum) = (T::start(Reduction::Amax), -T::MAX, 0.0);
        for (x, out) in lane.chunks(LOG_BLOCK).zip(out.chunks_mut(LOG_BLOCK)) {
            for (i, &x) in x.iter().enumerate() {
                largest = larger(largest, x);
                let before = shift;
                shift = finite(largest);
                (shifts[i], sums[i], out[i]) = (shift, before - shift, x - shift);
            }
            T::unary(Unary::Exp, Operand::Slice(&sums[..x.len()]), &mut scales[..x.len()]);
            T::unary(Unary::Exp, Operand::Slice(out), &mut terms[..x.len()]);
            for (i, total) in sums[..x.len()].iter_mut().enumerate() {
                sum = sum * scales[i].to_f64() + terms[i].to_f64();
                *total = T::from_f64(sum);
            }
            T::unary(Unary::Log, Operand::Slice(&sums[..x.len()]), out);
            out.iter_mut().zip(&shifts).for_each(|(out, &shift)| *out = *out + shift);
        }
    })
}

/// Returns true if Rayon's threads could be started. Rayon panics at its first use if the system refuses a thread.
fn has_rayon() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    *STARTED.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
        Ok(()) => true,
        // The error has a source if the system refused a thread. It has none if the program has already started Rayon's threads.
        Err(error) => error.source().is_none(),
    })
}

/// The highest bit of a key.
const SIGN: u64 = 1 << 63;

/// The low bits of a [`key`], which [`order`] replaces by positions. Different elements of the types f32, u8 and bool have keys that also
/// differ in the other bits.
const LOW: u64 = (1 << 29) - 1;

/// Returns a number that orders an element among the elements of its type. Equal elements have equal keys, and NaN has the largest key. If
/// `descending` is true, the order is reversed.
fn key<T: Element>(x: T, descending: bool) -> u64 {
    let key = match T::DTYPE {
        DType::U8 | DType::Bool => (x.to_i64() as u64) << 56,
        DType::I64 => x.to_i64() as u64 ^ SIGN,
        _ if is_nan(x) => u64::MAX,
        _ => {
            // The sum with 0 turns -0 into 0. Positive numbers are ordered like their bits, and negative numbers in the opposite order.
            let bits = (x.to_f64() + 0.0).to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
    };
    if descending { !key } else { key }
}

/// The [`key`] of an element and its position in the lane, for selections. Items are ordered by their keys, and then by their positions.
trait Item: Copy + Ord {
    fn new(key: u64, position: usize) -> Self;
    fn key(self) -> u64;
    fn position(self) -> usize;
}

impl Item for (u64, usize) {
    fn new(key: u64, position: usize) -> Self {
        (key, position)
    }

    fn key(self) -> u64 {
        self.0
    }

    fn position(self) -> usize {
        self.1
    }
}

/// An item of half the size: the position replaces the low bits of the key. See [`packs`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PackedItem(u64);

impl Item for PackedItem {
    fn new(key: u64, position: usize) -> Self {
        PackedItem(key & !LOW | position as u64)
    }

    fn key(self) -> u64 {
        self.0 & !LOW
    }

    fn position(self) -> usize {
        (self.0 & LOW) as usize
    }
}

/// Returns whether a key can be packed with a position into one number, for a lane of `len` elements. The key without its [`LOW`] bits must
/// still order the elements, and every position must fit into these bits.
fn packs<T: Element>(len: usize) -> bool {
    !matches!(T::DTYPE, DType::F64 | DType::I64) && len as u64 <= LOW
}

/// Returns an item (a sort key and a position) for each element of a lane, in the order of the elements.
fn items<T: Element, I: Item>(lane: &[T]) -> Vec<I> {
    lane.iter().enumerate().map(|(position, &x)| I::new(key(x, false), position)).collect()
}

/// Returns true if `x` has the smaller key.
fn before<I: Item>(x: &I, y: &I) -> bool {
    x.key() < y.key()
}

/// Writes the positions of a lane's elements to `out`, in ascending or descending order of the elements. Equal elements keep their order.
pub(crate) fn order<T: Element>(descending: bool, lane: &[T], out: &mut [i64]) {
    if order_by_counts(descending, lane, out) {
        return;
    }
    let keys = lane.iter().map(|&x| key(x, descending)).zip(0..);
    // Numbers that consist of key and position are all different, so an unstable sort gives the stable order.
    if packs::<T>(lane.len()) {
        let mut numbers: Vec<u64> = keys.map(|(key, position)| key & !LOW | position).collect();
        sort_numbers(&mut numbers);
        return out.iter_mut().zip(numbers).for_each(|(out, number)| *out = (number & LOW) as i64);
    }
    let (least, largest) =
        keys.clone().fold((u64::MAX, 0), |(least, largest), (key, _)| (key.min(least), key.max(largest)));
    // The differences from the least key are shifted left, as far as the largest difference allows. This makes room for the positions in
    // the lowest bits.
    let bits = u64::BITS - (lane.len() as u64).leading_zeros();
    let (positions, free) = ((1 << bits) - 1, largest.saturating_sub(least).leading_zeros().min(bits));
    let number = |(key, position): (u64, u64)| (key - least) << free & !positions | position;
    let mut numbers: Vec<u64> = keys.map(number).collect();
    sort_numbers(&mut numbers);
    let position = |number: u64| (number & positions) as i64;
    if free < bits {
        // Different keys may have become equal, because the positions replaced their lowest bits. So each run of equal keys is sorted again
        // by the whole keys. Few runs are long, except runs of equal elements.
        let mut items: Vec<(u64, u64)> = Vec::new();
        for run in numbers.chunk_by_mut(|&x, &y| x >> bits == y >> bits).filter(|run| run.len() > 1) {
            items.clear();
            items.extend(run.iter().map(|&number| (key(lane[position(number) as usize], descending), number)));
            items.sort_unstable();
            run.iter_mut().zip(&items).for_each(|(number, item)| *number = item.1);
        }
    }
    out.iter_mut().zip(numbers).for_each(|(out, number)| *out = position(number));
}

/// Does the same as [`order`] for integers and truth values, by counting sort: counts the elements of each value first. The range of the
/// values must have at most as many values as the lane has elements. Returns false, without writing to `out`, for all other lanes.
fn order_by_counts<T: Element>(descending: bool, lane: &[T], out: &mut [i64]) -> bool {
    // The keys of bytes and truth values differ only in their highest 8 bits.
    let shift = match T::DTYPE {
        DType::I64 => 0,
        DType::U8 | DType::Bool => 56,
        _ => return false,
    };
    let keys = lane.iter().map(|&x| key(x, descending) >> shift);
    let (least, largest) = keys.clone().fold((u64::MAX, 0), |(least, largest), key| (key.min(least), key.max(largest)));
    if largest.wrapping_sub(least) >= lane.len() as u64 {
        return false;
    }
    let mut places = vec![0; (largest - least) as usize + 1];
    keys.clone().for_each(|key| places[(key - least) as usize] += 1);
    let mut place = 0;
    for count in &mut places {
        (*count, place) = (place, place + *count);
    }
    for (position, key) in (0..).zip(keys) {
        let place = &mut places[(key - least) as usize];
        out[*place] = position;
        *place += 1;
    }
    true
}

/// Sorts numbers that consist of the keys and the positions of a lane's elements.
fn sort_numbers(numbers: &mut [u64]) {
    if numbers.len() >= MIN_SHARED_LANE && num_threads() > 1 && has_rayon() {
        // Rayon sorts in parallel by divide and conquer.
        numbers.par_sort_unstable();
    } else {
        numbers.sort_unstable();
    }
}

/// Writes the positions of the largest elements to `out`, in descending order of the elements. If `largest` is false, writes the positions
/// of the smallest elements, in ascending order. The length of `out` is the number of selected elements.
///
/// Among equal elements, the choice is PyTorch's, so that gradients reach the same elements. PyTorch calls the C++ library's
/// `partial_sort` if few elements of a long lane are selected. Otherwise it calls `nth_element` for the last selected element, and `sort`
/// for the elements before it.
pub(crate) fn top<T: Element>(largest: bool, lane: &[T], out: &mut [i64]) {
    match packs::<T>(lane.len()) {
        true => top_items::<T, PackedItem>(largest, lane, out),
        false => top_items::<T, (u64, usize)>(largest, lane, out),
    }
}

fn top_items<T: Element, I: Item>(largest: bool, lane: &[T], out: &mut [i64]) {
    let wanted = out.len();
    if wanted == 0 {
        return;
    }
    let item = |position: usize| I::new(key(lane[position], largest), position);
    let items: Vec<I> = if wanted * 64 <= lane.len() {
        // Most elements do not come before the top of the heap, the last of the selected elements. They need no key.
        let mut heap: Vec<I> = (0..wanted).map(item).collect();
        select::make_heap(&mut heap, &before);
        let mut next = wanted;
        while let Some(position) = next_beyond(largest, lane, next, lane[heap[0].position()]) {
            let item = item(position);
            if before(&item, &heap[0]) {
                select::replace_top(&mut heap, item, &before);
            }
            next = position + 1;
        }
        select::sort_heap(&mut heap, &before);
        heap
    } else {
        let mut items: Vec<I> = (0..lane.len()).map(item).collect();
        select::nth_element(&mut items, wanted - 1, &before);
        select::sort(&mut items[..wanted - 1], &before);
        items
    };
    out.iter_mut().zip(items).for_each(|(out, item)| *out = item.position() as i64);
}

dispatched! {
    /// Returns the position of the next element of a lane, from `start` on, that is larger than `bound`, or smaller if `largest` is false. An
    /// element also counts if it is NaN, or if the bound is NaN.
    fn next_beyond<T: Element>(largest: bool, lane: &[T], start: usize, bound: T) -> Option<usize> {
        let rest = &lane[start..];
        let stays = |&x: &T| if largest { x <= bound } else { x >= bound };
        // In most parts of [`PART`] elements, no element is beyond the bound. A loop without branches skips these parts.
        let all_stay = |part: &&[T; PART]| part.iter().fold(true, |all, x| all & stays(x));
        let skipped = PART * rest.as_chunks().0.iter().take_while(all_stay).count();
        rest[skipped..].iter().position(|x| !stays(x)).map(|position| start + skipped + position)
    }
}

/// Returns the position of the element with rank `rank`: the number of elements before it in ascending order. The lane is not empty. Among
/// equal elements, selects the one that PyTorch's quickselect finds.
pub(crate) fn nth<T: Element>(rank: usize, lane: &[T]) -> usize {
    match packs::<T>(lane.len()) {
        true => nth_item(rank, items::<T, PackedItem>(lane)),
        false => nth_item(rank, items::<T, (u64, usize)>(lane)),
    }
}

fn nth_item<I: Item>(rank: usize, mut items: Vec<I>) -> usize {
    let above = |x: I, y: I| x.key() > y.key();
    let (mut low, mut high) = (0, items.len() - 1);
    loop {
        if high <= low {
            return items[rank].position();
        }
        if high == low + 1 {
            if above(items[low], items[high]) {
                items.swap(low, high);
            }
            return items[rank].position();
        }
        // The median of three elements becomes the pivot, at position `low`. The other two elements are at `low + 1` and `high`, where they
        // stop the search loops.
        let middle = low + (high - low) / 2;
        items.swap(middle, low + 1);
        for (i, j) in [(low + 1, high), (low, high), (low + 1, low)] {
            if above(items[i], items[j]) {
                items.swap(i, j);
            }
        }
        let pivot = items[low];
        let (mut up, mut down) = (low + 1, high);
        loop {
            up += 1;
            while above(pivot, items[up]) {
                up += 1;
            }
            down -= 1;
            while above(items[down], pivot) {
                down -= 1;
            }
            if down < up {
                break;
            }
            items.swap(up, down);
        }
        items.swap(low, down);
        if down <= rank {
            low = up;
        }
        if down >= rank {
            high = down - 1;
        }
    }
}

/// Returns the position of the first NaN, if there is one. Otherwise returns the position of the median, or of the lower of two medians.
pub(crate) fn median<T: Element>(lane: &[T]) -> usize {
    lane.iter().position(|&x| is_nan(x)).unwrap_or_else(|| nanmedian(lane))
}

/// Returns the position of the median, or of the lower of two medians, of the elements that are not NaN. If all elements are NaN, the
/// position is PyTorch's, which is the choice of `nth_element` among items without an order.
pub(crate) fn nanmedian<T: Element>(lane: &[T]) -> usize {
    let count = lane.iter().filter(|&&x| !is_nan(x)).count();
    match packs::<T>(lane.len()) {
        true => median_item(count, items::<T, PackedItem>(lane)),
        false => median_item(count, items::<T, (u64, usize)>(lane)),
    }
}

/// Returns the result of [`nanmedian`]: the position of the median of the `count` elements that are not NaN. `items` has all elements.
fn median_item<I: Item>(count: usize, mut items: Vec<I>) -> usize {
    if count == 0 {
        select::nth_element(&mut items, 0, &|_: &_, _: &_| false);
        return items[0].position();
    }
    // NaN has the largest key, so the other `count` elements come before all NaNs.
    items.select_nth_unstable((count - 1) / 2).1.position()
}

/// Returns a position of the most frequent element. If several elements are equally frequent, chooses the smallest of them. Each NaN counts
/// as a different element. The position is PyTorch's: the last of the equal elements after `std::sort`, which keeps their order in lanes of
/// up to 16 elements.
pub(crate) fn mode<T: Element>(lane: &[T]) -> usize {
    match packs::<T>(lane.len()) {
        true => mode_item(lane, items::<T, PackedItem>(lane)),
        false => mode_item(lane, items::<T, (u64, usize)>(lane)),
    }
}

fn mode_item<T: Element, I: Item>(lane: &[T], mut items: Vec<I>) -> usize {
    select::sort(&mut items, &before);
    let same = |x: &I, y: &I| x.key() == y.key() && !is_nan(lane[x.position()]);
    // The runs of equal elements are in ascending order, and the smallest element wins. So a later run must be longer.
    let mut longest: &[I] = &[];
    for run in items.chunk_by(same) {
        if run.len() > longest.len() {
            longest = run;
        }
    }
    longest.last().map_or(0, |last| last.position())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    const NAN: f64 = f64::NAN;

    fn ordered(descending: bool, lane: &[f64]) -> Vec<i64> {
        let mut out = vec![0; lane.len()];
        order(descending, lane, &mut out);
        out
    }

    #[test]
    fn order_is_stable_and_nan_is_largest() {
        let lane = [2.0, 1.0, NAN, 2.0, 1.0];
        assert_eq!(ordered(false, &lane), [1, 4, 0, 3, 2]);
        assert_eq!(ordered(true, &lane), [2, 0, 3, 1, 4]);
        assert_eq!(ordered(false, &[]), [0i64; 0]);
    }

    /// Compares the order with a stable sort. The keys of the elements differ in high bits only, in low bits only, or in both.
    #[test]
    fn order_is_the_stable_order_of_keys_of_any_spread() {
        for scale in [1, 1 << 20, i64::MAX / 60] {
            for size in [1, 2, 30, 63, 64, 65, 1000] {
                let integers: Vec<i64> = (0..size).map(|i| (i * 7919 % 101 - 50) * scale + i % 3).collect();
                let close: Vec<f64> =
                    integers.iter().map(|&i| f64::from_bits((1 << 62) + i.rem_euclid(7) as u64)).collect();
                let numbers: Vec<f64> = integers.iter().map(|&i| i as f64 * 0.1).collect();
                fn stable_order(keys: &[u64]) -> Vec<i64> {
                    let mut order: Vec<i64> = (0..keys.len() as i64).collect();
                    order.sort_by_key(|&i| keys[i as usize]);
                    order
                }
                fn check<T: Element>(lane: &[T]) {
                    for descending in [false, true] {
                        let keys: Vec<u64> = lane.iter().map(|&x| key(x, descending)).collect();
                        let mut out = vec![0; lane.len()];
                        order(descending, lane, &mut out);
                        assert_eq!(out, stable_order(&keys));
                    }
                }
                check(&integers);
                check(&integers.iter().map(|&i| (i & 255) as u8).collect::<Vec<_>>());
                check(&integers.iter().map(|&i| i & 1 == 1).collect::<Vec<_>>());
                check(&close);
                check(&numbers);
            }
        }
    }

    #[test]
    fn extremes_take_the_later_tie_and_keep_a_nan() {
        let running = |largest: bool, lane: [f64; 5]| {
            let (mut out, layout) = ([0; 5], Layout::contiguous(Shape::from([5])));
            running_extremes(largest, Source { data: &lane, layout: &layout }, 0, &mut out).unwrap();
            out
        };
        assert_eq!(running(true, [1.0, 3.0, 3.0, NAN, 9.0]), [0, 1, 2, 3, 3]);
        assert_eq!(running(false, [1.0, 1.0, 3.0, 0.0, 0.0]), [0, 1, 1, 3, 4]);
        assert_eq!(running(true, [-f64::INFINITY, NAN, NAN, -1.0, 0.0]), [0, 1, 2, 2, 2]);
    }

    /// Compares the selected positions with PyTorch's results.
    #[test]
    fn equal_elements_are_selected_as_in_pytorch() {
        let top = |size: usize, wanted: usize| {
            let mut out = vec![0; wanted];
            top(true, &vec![0.5; size], &mut out);
            out
        };
        assert_eq!((top(4, 2), top(5, 1), top(2, 2)), (vec![2, 3], vec![2], vec![0, 1]));
        assert_eq!(
            (top(5, 3), top(6, 3), top(7, 4), top(8, 4)),
            (vec![2, 4, 3], vec![3, 5, 4], vec![5, 4, 3, 6], vec![6, 5, 4, 7])
        );
        assert_eq!(top(256, 4), [1, 3, 0, 2]);
        let top = |largest: bool, size: i64, distinct: i64, wanted: usize| {
            let lane: Vec<i64> = (0..size).map(|i| i * 7 % distinct).collect();
            let mut out = vec![0; wanted];
            super::top(largest, &lane, &mut out);
            out
        };
        assert_eq!(top(true, 300, 3, 4), [8, 5, 11, 2]);
        assert_eq!(top(false, 500, 10, 7), [40, 0, 50, 60, 10, 30, 20]);
        assert_eq!(
            top(false, 64, 4, 33),
            [
                0, 24, 28, 32, 20, 36, 16, 40, 44, 12, 8, 52, 56, 4, 48, 60, 59, 23, 7, 19, 3, 15, 11, 27, 63, 31, 35,
                39, 55, 43, 51, 47, 54
            ]
        );
        assert_eq!(
            top(true, 100, 5, 40),
            [
                42, 27, 72, 77, 22, 32, 47, 67, 82, 17, 52, 87, 37, 62, 92, 7, 2, 57, 12, 97, 4, 29, 94, 9, 49, 89, 24,
                54, 74, 19, 99, 14, 79, 69, 59, 39, 34, 44, 64, 84
            ]
        );
        assert_eq!((nth(1, &[0.5; 6]), nth(1, &[0.5; 3]), nth(3, &[0.5; 4])), (2, 0, 3));
        for size in 1..9 {
            let lane = vec![0.5; size];
            assert_eq!((median(&lane), nth((size - 1) / 2, &lane)), ((size - 1) / 2, 0), "{size}");
        }
    }

    /// Compares the positions that [`top`] selects with the first positions of a partial sort of all elements by their keys.
    #[test]
    fn few_selected_elements_are_those_of_a_partial_sort() {
        fn first_items(keys: Vec<u64>, wanted: usize) -> Vec<(u64, i64)> {
            let mut items: Vec<(u64, i64)> = keys.into_iter().zip(0..).collect();
            select::partial_sort(&mut items, wanted, &|x, y| x.0 < y.0);
            items
        }
        fn check<T: Element>(lane: &[T]) {
            for (largest, wanted) in [(true, 1), (false, 1), (true, 7), (false, 15)] {
                let items = first_items(lane.iter().map(|&x| key(x, largest)).collect(), wanted);
                let mut out = vec![0; wanted];
                top(largest, lane, &mut out);
                assert!(out.iter().zip(&items).all(|(position, item)| *position == item.1), "{largest} {wanted}");
            }
        }
        let integers: Vec<i64> = (0..1003).map(|i| i * i * 7919 % 701 - 300).collect();
        let mut numbers: Vec<f32> = integers.iter().map(|&i| i as f32 * 0.5).collect();
        check(&integers);
        check(&numbers);
        check(&integers.iter().map(|&i| i & 1 == 1).collect::<Vec<_>>());
        (0..1003).step_by(97).for_each(|i| numbers[i] = [f32::NAN, f32::INFINITY, -f32::INFINITY, -0.0][i % 4]);
        check(&numbers);
        check(&vec![f64::NAN; 1000]);
    }

    #[test]
    fn order_statistics() {
        assert_eq!(nth(2, &[5.0, 1.0, 4.0]), 0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 3);
        assert_eq!(median(&[4.0, NAN, 3.0]), 1);
        assert_eq!((nanmedian(&[4.0, NAN, 3.0]), nanmedian(&[NAN, 5.0])), (2, 1));
        // The expected positions are PyTorch's.
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(|size| nanmedian(&vec![NAN; size])), [0, 0, 0, 2, 2, 3, 5, 6]);
        let lane: Vec<i64> = (0..1000).map(|i| i * 7919 % 1000).collect();
        for rank in [0, 1, 17, 499, 998, 999] {
            assert_eq!(lane[nth(rank, &lane)], rank as i64);
            let mut best = vec![0; rank + 1];
            top(true, &lane, &mut best);
            let best: Vec<i64> = best.iter().map(|&i| lane[i as usize]).collect();
            assert_eq!(best, (999 - rank as i64..1000).rev().collect::<Vec<i64>>());
        }
        assert_eq!(lane[median(&lane)], 499);
        assert_eq!(mode(&[3, 1, 3, 1, 2i64]), 3);
        assert_eq!(mode(&[7i64]), 0);
        assert_eq!(mode(&[2, 1, 1i64]), 2);
    }

    /// Compares positions of modes with PyTorch's results.
    #[test]
    fn modes_of_ties_and_nan() {
        let ties = |size: i64, distinct: i64| {
            let modulus = if size % 2 == 1 { size - 1 } else { size + 1 };
            mode(&(0..size).map(|i| i * 7919 % modulus % distinct).collect::<Vec<i64>>())
        };
        assert_eq!([ties(17, 1), ties(17, 2), ties(17, 3), ties(17, 10)], [1, 2, 0, 16]);
        assert_eq!([ties(40, 1), ties(40, 3), ties(100, 3), ties(300, 10), ties(1000, 10)], [19, 24, 38, 297, 615]);
        assert_eq!((mode(&[NAN, 1.0, NAN, 1.0, NAN]), mode(&[0.0, -0.0, 1.0])), (3, 1));
        assert_eq!([1, 2, 16, 17, 40, 100].map(|size| mode(&vec![NAN; size])), [0, 0, 0, 8, 30, 62]);
        // Here PyTorch returns position 0, because its comparison does not order NaN.
        assert_eq!(mode(&[NAN, 2.0, 1.0]), 2);
    }
}
