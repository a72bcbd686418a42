//! Selection and sorting with the choices of the GNU C++ library among equal elements. PyTorch's `topk` uses this library, so the choice
//! decides which of several equal elements gets a gradient.
//!
//! Each function orders a list of items by `before`, which returns true if its first argument comes before its second. Equal items have no
//! order, as in C++.

/// The length of the shortest list that [`sort`] partitions. Shorter lists are sorted by insertion.
const MIN_PARTITIONED: usize = 17;

/// Moves the `count` items that come first in the order to the start of `items`, and sorts them. The other items follow in an unspecified
/// order. C++: `std::partial_sort`.
pub(super) fn partial_sort<T: Copy>(items: &mut [T], count: usize, before: &impl Fn(&T, &T) -> bool) {
    heap_select(items, count, before);
    sort_heap(&mut items[..count], before);
}

/// Makes a heap of the items. The item that comes last in the order is at the top. C++: `std::make_heap`.
pub(super) fn make_heap<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for parent in (0..items.len() / 2).rev() {
        let value = items[parent];
        sift(items, parent, value, before);
    }
}

pub(super) fn replace_top<T: Copy>(heap: &mut [T], value: T, before: &impl Fn(&T, &T) -> bool) {
    sift(heap, 0, value, before);
}

/// Sorts the items of a heap. C++: `std::sort_heap`.
pub(super) fn sort_heap<T: Copy>(heap: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for last in (1..heap.len()).rev() {
        let value = heap[last];
        heap[last] = heap[0];
        sift(&mut heap[..last], 0, value, before);
    }
}

/// Moves the item of rank `nth` to index `nth`, the items before it to smaller indices, and the items after it to larger indices. C++:
/// `std::nth_element`.
pub(super) fn nth_element<T: Copy>(items: &mut [T], nth: usize, before: &impl Fn(&T, &T) -> bool) {
    if nth >= items.len() {
        return;
    }
    let (mut start, mut end) = (0, items.len());
    let mut steps = 2 * items.len().ilog2();
    while end - start > 3 {
        if steps == 0 {
            // Many partitions were uneven. A heap selects the rest, because its worst case is faster.
            heap_select(&mut items[start..end], nth + 1 - start, before);
            items.swap(start, nth);
            return;
        }
        steps -= 1;
        let cut = start + partition(&mut items[start..end], before);
        if cut <= nth {
            start = cut;
        } else {
            end = cut;
        }
    }
    insertion_sort(&mut items[start..end], before);
}

/// Sorts the items. C++: `std::sort`.
pub(super) fn sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    if let Some(log) = items.len().checked_ilog2() {
        sort_roughly(items, 2 * log, before);
        insertion_sort(items, before);
    }
}

/// Partitions the items, as quicksort does, until each part has fewer than [`MIN_PARTITIONED`] items. Sorts a part by a heap if `steps`
/// nested partitions were not enough.
fn sort_roughly<T: Copy>(mut items: &mut [T], mut steps: u32, before: &impl Fn(&T, &T) -> bool) {
    while items.len() >= MIN_PARTITIONED {
        if steps == 0 {
            return partial_sort(items, items.len(), before);
        }
        steps -= 1;
        let cut = partition(items, before);
        let (low, high) = items.split_at_mut(cut);
        sort_roughly(high, steps, before);
        items = low;
    }
}

/// Sorts the items by insertion, which keeps the order of equal items. Callers pass few items, or items that are near their places.
fn insertion_sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && before(&items[place], &items[place - 1]) {
            items.swap(place, place - 1);
            place -= 1;
        }
    }
}

/// Splits at least four items by a pivot, the median of three items. Returns the number of items in the first part. No item of the second
/// part comes before an item of the first part.
fn partition<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let less = |i: usize, j: usize| before(&items[i], &items[j]);
    let median = match (less(a, b), less(b, c), less(a, c)) {
        (true, true, _) | (false, false, false) => b,
        (true, false, true) | (false, true, false) => c,
        (true, false, false) | (false, _, true) => a,
    };
    items.swap(0, median);
    let pivot = items[0];
    let (mut low, mut high) = (1, items.len());
    loop {
        while before(&items[low], &pivot) {
            low += 1;
        }
        high -= 1;
        while before(&pivot, &items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

/// Moves the `count` items that come first in the order to the start of `items`, and makes them a heap. The item at the top of the heap comes
/// last in the order.
fn heap_select<T: Copy>(items: &mut [T], count: usize, before: &impl Fn(&T, &T) -> bool) {
    if count == 0 {
        return;
    }
    let (heap, others) = items.split_at_mut(count);
    make_heap(heap, before);
    for other in others {
        if before(other, &heap[0]) {
            let value = std::mem::replace(other, heap[0]);
            replace_top(heap, value, before);
        }
    }
}

/// Puts `value` into a heap whose place `hole` is free. The hole first moves down to a leaf, and then up to the place of `value`.
fn sift<T: Copy>(heap: &mut [T], mut hole: usize, value: T, before: &impl Fn(&T, &T) -> bool) {
    let top = hole;
    while 2 * hole + 2 < heap.len() {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let child = if before(&heap[right], &heap[left]) { left } else { right };
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 2 == heap.len() {
        heap[hole] = heap[2 * hole + 1];
        hole = 2 * hole + 1;
    }
    while hole > top && before(&heap[(hole - 1) / 2], &value) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sequence for which the medians of three are bad pivots: D. R. Musser, "Introspective Sorting and Selection Algorithms"
    /// (1997).
    fn killer(half: i64) -> Vec<i64> {
        let first = (1..=half).map(|i| if i % 2 == 1 { i } else { half + i - 1 });
        first.chain((1..=half).map(|i| 2 * i)).collect()
    }

    #[test]
    fn all_lists_are_ordered() {
        let mixed: Vec<i64> = (0..1000).map(|i| i * 7919 % 1000 / 3).collect();
        let lists = [vec![], vec![1], mixed, killer(500), (0..300).collect(), (0..300).rev().collect(), vec![4; 200]];
        for list in lists {
            let mut expected = list.clone();
            expected.sort_unstable();
            let less = |x: &i64, y: &i64| x < y;
            let mut sorted = list.clone();
            sort(&mut sorted, &less);
            assert_eq!(sorted, expected);
            for count in [0, 1, 2, 7, 100, list.len()].into_iter().filter(|&count| count <= list.len()) {
                let mut part = list.clone();
                partial_sort(&mut part, count, &less);
                assert_eq!(part[..count], expected[..count]);
                part[count..].sort_unstable();
                assert_eq!(part, expected);
                let mut selected = list.clone();
                nth_element(&mut selected, count, &less);
                if let Some(&nth) = selected.get(count) {
                    assert_eq!(nth, expected[count]);
                    assert!(selected[..count].iter().all(|x| *x <= nth) && selected[count..].iter().all(|x| *x >= nth));
                }
            }
        }
    }

    /// Checks that equal items get the same positions as in the GNU C++ library, whose `std::sort` and `std::nth_element` gave the expected
    /// numbers. The pivots of this list are so bad that both functions change to a heap after some partitions.
    #[test]
    fn equal_items_of_bad_pivots_have_the_places_of_cpp() {
        let items: Vec<(i64, u64)> = killer(64).into_iter().map(|key| key / 2).zip(0..).collect();
        let before = |x: &(i64, u64), y: &(i64, u64)| x.0 < y.0;
        let hash = |items: &[(i64, u64)]| items.iter().fold(0u64, |h, item| h.wrapping_mul(31).wrapping_add(item.1));
        let (mut sorted, mut selected) = (items.clone(), items);
        sort(&mut sorted, &before);
        nth_element(&mut selected, 16, &before);
        assert_eq!([hash(&sorted), hash(&selected)], [0x182c_18dd_77ff_60e2, 0xcc37_0aa6_156a_1270]);
    }
}
