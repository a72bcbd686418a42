//! A map from the nodes of a path to their slots. A node is found without hashing. If the memory of an earlier map is large enough, the time
//! to make a map does not depend on the size of the tape.
//!
//! The memory has a number for each node of the tape. A map writes larger numbers than all earlier maps in the same memory. So it recognizes
//! the numbers of earlier maps, and the memory need not be cleared.

use std::cell::RefCell;

use wengert_tensor::plan::NodeIndex;

/// The maximum number of maps whose memory a thread keeps. More than one map exists at a time only if a derivative is taken while another one
/// is recorded, for example by a rule.
const MAX_SPARE: usize = 4;

/// The largest number of nodes of a map whose memory a thread keeps (4 MB). The memory of a larger map comes from the system each time, as
/// pages of zeros that take no time until they are read.
const MAX_SPARE_NODES: usize = 1 << 20;

/// A node with the slot k has the number `base` + `FIRST_SLOT` + k. The numbers from `base` to `base` + 2 are marks.
const FIRST_SLOT: u32 = 3;
/// The mark of a source that no output is known to depend on.
const SOURCE: u32 = 0;
/// The mark of a node on which an output depends.
const VISITED: u32 = 1;
/// The mark of a source on which an output depends.
const VISITED_SOURCE: u32 = 2;

thread_local! {
    /// The memory of dropped maps. Each has a `base` for the next map, which is larger than all numbers in this memory.
    static SPARE: RefCell<Vec<(Vec<u32>, u32)>> = const { RefCell::new(Vec::new()) };
}

/// The slots of nodes. The first pushed node has the slot 0, the next one the slot 1, and so on.
pub(super) struct Slots {
    /// For each node of the tape, the sum of `base` and the node's mark, or of `base`, [`FIRST_SLOT`] and the node's slot. Smaller numbers
    /// are from earlier maps, or are the zeros of new memory.
    numbers: Vec<u32>,
    base: u32,
    /// The number of nodes that have slots.
    len: u32,
}

impl Slots {
    /// Returns an empty map for a tape of `nodes` nodes.
    pub(super) fn take(nodes: usize) -> Self {
        // `try_with` fails while the thread ends.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        // The numbers of this map must be larger than all numbers of earlier maps in this memory.
        let fits = |base: u32| base.checked_add(FIRST_SLOT).and_then(|first| first.checked_add(nodes as u32)).is_some();
        let (numbers, base) = spare
            .filter(|&(ref numbers, base)| numbers.len() >= nodes && fits(base))
            .unwrap_or_else(|| (vec![0; nodes.checked_next_power_of_two().unwrap_or(nodes)], 1));
        Slots { numbers, base, len: 0 }
    }

    pub(super) fn mark_source(&mut self, node: NodeIndex) {
        self.numbers[node as usize] = self.base + SOURCE;
    }

    /// Marks a node on which an output depends. Returns false if this function marked the node before.
    #[inline]
    pub(super) fn visit(&mut self, node: NodeIndex) -> bool {
        let number = &mut self.numbers[node as usize];
        if *number > self.base + SOURCE {
            return false;
        }
        *number = self.base + if *number == self.base + SOURCE { VISITED_SOURCE } else { VISITED };
        true
    }

    /// Returns true if a node is a source on which an output depends, and has no slot yet.
    #[inline]
    pub(super) fn is_visited_source(&self, node: NodeIndex) -> bool {
        self.numbers[node as usize] == self.base + VISITED_SOURCE
    }

    /// Sorts the list of all visited nodes.
    pub(super) fn sort(&self, visited: &mut [NodeIndex]) {
        let (Some(&first), Some(&last)) = (visited.iter().min(), visited.iter().max()) else { return };
        if visited.len() < (last - first) as usize / NUMBERS_PER_SORTED_NODE {
            visited.sort_unstable();
            return;
        }
        let numbers = self.numbers[first as usize..=last as usize].iter();
        let places = (first..).zip(numbers).filter(|&(_, &number)| number > self.base + SOURCE);
        visited.iter_mut().zip(places).for_each(|(visited, (node, _))| *visited = node);
    }

    /// Gives the next slot to a node.
    #[inline]
    pub(super) fn push(&mut self, node: NodeIndex) {
        self.numbers[node as usize] = self.base + FIRST_SLOT + self.len;
        self.len += 1;
    }

    /// Returns the slot of a node, or `None` if it has none.
    #[inline]
    pub(super) fn get(&self, node: NodeIndex) -> Option<usize> {
        // For a number of an earlier map or a mark, the difference wraps to a number that is larger than all slots.
        let slot = self.numbers.get(node as usize)?.wrapping_sub(self.base + FIRST_SLOT);
        (slot < self.len).then_some(slot as usize)
    }
}

/// The number of tape nodes that a scan reads in the time that a sort needs for one visited node. [`Slots::sort`] uses it to choose the
/// faster method: a scan of all nodes in the range, or a sort of the visited nodes.
const NUMBERS_PER_SORTED_NODE: usize = 16;

impl Drop for Slots {
    fn drop(&mut self) {
        if self.numbers.len() > MAX_SPARE_NODES {
            return;
        }
        let spare = (std::mem::take(&mut self.numbers), self.base + FIRST_SLOT + self.len);
        // `try_with` fails while the thread ends.
        let _ = SPARE.try_with(|all| {
            let mut all = all.borrow_mut();
            if all.len() < MAX_SPARE {
                all.push(spare);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_no_slots_of_the_map_before() {
        for nodes in [4, 100, 20, 1000] {
            let mut slots = Slots::take(nodes as usize);
            assert!((0..2 * nodes).all(|node| slots.get(node).is_none()));
            slots.mark_source(1);
            assert!(!slots.is_visited_source(1));
            let mut visited: Vec<NodeIndex> =
                [3, 1, 2, nodes - 1].into_iter().filter(|&node| slots.visit(node)).collect();
            assert!(!slots.visit(3) && !slots.visit(1));
            assert!(slots.is_visited_source(1) && !slots.is_visited_source(2));
            slots.sort(&mut visited);
            assert!(visited.is_sorted() && visited.starts_with(&[1, 2, 3]));
            for (slot, &node) in visited.iter().enumerate() {
                assert_eq!(slots.get(node), None);
                slots.push(node);
                assert_eq!(slots.get(node), Some(slot));
            }
            // A second map has memory of its own while this map exists.
            assert!((0..nodes).all(|node| Slots::take(nodes as usize).get(node).is_none()));
            assert_eq!(slots.get(0), None);
        }
    }

    /// After about 2³² slots, the numbers of a map cannot be larger than the numbers of the earlier maps. The map then gets new memory.
    #[test]
    fn numbers_do_not_overflow() {
        const NODES: u32 = 4;
        for room in 0..3 * (FIRST_SLOT + NODES) {
            let base = u32::MAX - room;
            SPARE.set(vec![(vec![base - 1; NODES as usize], base)]);
            let mut slots = Slots::take(NODES as usize);
            assert_eq!(slots.base == base, room >= FIRST_SLOT + NODES);
            assert!((0..NODES).all(|node| slots.get(node).is_none()));
            slots.mark_source(0);
            assert!((0..NODES).all(|node| slots.visit(node)));
            assert!(slots.is_visited_source(0) && !slots.is_visited_source(1));
            (0..NODES).for_each(|node| slots.push(node));
            assert!((0..NODES).all(|node| slots.get(node) == Some(node as usize)));
        }
    }

    /// A thread keeps the memory of a few maps that are not too large. A map of the same size or a smaller one uses it.
    #[test]
    fn a_thread_keeps_the_memory_of_a_few_maps() {
        let lengths = || SPARE.with_borrow(|all| all.iter().map(|(numbers, _)| numbers.len()).collect::<Vec<_>>());
        drop(Slots::take(MAX_SPARE_NODES + 1));
        assert_eq!(lengths(), [0; 0]);
        drop(Slots::take(MAX_SPARE_NODES));
        assert_eq!(lengths(), [MAX_SPARE_NODES]);
        let maps: Vec<Slots> = (0..MAX_SPARE + 1).map(|_| Slots::take(5)).collect();
        assert_eq!(lengths(), [0; 0]);
        assert_eq!(maps.iter().filter(|map| map.numbers.len() == 8).count(), MAX_SPARE);
        drop(maps);
        assert_eq!(lengths().len(), MAX_SPARE);
    }

    /// Sorting gives the same list whether the visited nodes are close together or far apart.
    #[test]
    fn visited_nodes_are_sorted() {
        for step in [1, 3, 5 * NUMBERS_PER_SORTED_NODE as NodeIndex] {
            let mut slots = Slots::take(10_000);
            let nodes: Vec<NodeIndex> = (7..107).map(|k| k * step).rev().collect();
            // Sources that are not visited stay out of the list.
            nodes.iter().for_each(|&node| slots.mark_source(node + 1));
            let mut visited: Vec<NodeIndex> = nodes.iter().copied().filter(|&node| slots.visit(node)).collect();
            slots.sort(&mut visited);
            assert!(visited.is_sorted() && visited.iter().eq(nodes.iter().rev()), "{step}");
        }
    }
}
