//! The order in which shards are summed, and the rank that computes each sum. This file sends nothing.
//!
//! The shards of a batch are the leaves of one binary tree, whatever the number of ranks. Node `i` of level `l` is the sum of the 2ˡ leaves
//! from leaf `i · 2ˡ` on. It is computed as its left half plus its right half. The last node of a level may have fewer leaves, which are
//! summed in the same way. Each rank has a range of neighbouring leaves and adds up the largest nodes in the range. (If parameters are
//! sharded, the leaves of a rank are not neighbours: see [`ShardPlan::by_rounds`].) The rank that owns a slice of the vector adds up the
//! remaining nodes.

use std::ops::Range;

/// Divides `count` items into `parts` consecutive parts and returns part `index`. The first parts may be longer by one item.
pub(crate) fn part_range(count: usize, parts: usize, index: usize) -> Range<usize> {
    let (each, more) = (count / parts, count % parts);
    let start = index * each + index.min(more);
    start..start + each + usize::from(index < more)
}

/// Returns the slice of a vector of `length` elements that the rank `rank` of `size` ranks owns. It consists of whole
/// blocks of `block` elements. Only the last block of the vector may be shorter.
pub(crate) fn rank_slice(length: usize, block: usize, size: usize, rank: usize) -> Range<usize> {
    let blocks = part_range(length.div_ceil(block), size, rank);
    (blocks.start * block).min(length)..(blocks.end * block).min(length)
}

/// A node of the summation tree: its level, and its index within the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    level: u32,
    index: usize,
}

impl Node {
    /// Returns the leaf for the shard with the index `index`.
    pub(crate) fn leaf(index: usize) -> Self {
        Node { level: 0, index }
    }

    /// Returns the leaves under this node, if the tree has `leaves` leaves.
    pub(crate) fn leaf_range(self, leaves: usize) -> Range<usize> {
        (self.index << self.level).min(leaves)..((self.index + 1) << self.level).min(leaves)
    }

    /// Returns the node whose halves are `left` and `right`, or `None` if there is no such node.
    fn parent_of_halves(left: Node, right: Node) -> Option<Node> {
        let halves = left.level == right.level && left.index.is_multiple_of(2) && right.index == left.index + 1;
        halves.then_some(Node { level: left.level + 1, index: left.index / 2 })
    }
}

/// Returns the largest nodes that cover `range` in a tree of `leaves` leaves. The level of a node is at most log₂ `largest`, so it has at
/// most `largest` leaves.
pub(crate) fn covering_nodes(range: Range<usize>, leaves: usize, largest: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let mut node = Node::leaf(at);
        loop {
            let parent = Node { level: node.level + 1, index: node.index / 2 };
            let covered = parent.leaf_range(leaves);
            let grows = covered != node.leaf_range(leaves);
            let fits = node.index.is_multiple_of(2) && covered.start == at && covered.end <= range.end;
            // If a node already covers the whole tree, it is not replaced by its parent.
            if !fits || (1usize << parent.level) > largest || (!grows && at == 0) {
                break;
            }
            node = parent;
        }
        at = node.leaf_range(leaves).end;
        nodes.push(node);
    }
    nodes
}

/// Partial sums of neighbouring nodes of the summation tree. Two sums are combined as soon as both halves of a node are complete.
#[derive(Debug)]
pub(crate) struct PartialSums<V> {
    unfinished: Vec<(Node, V)>,
}

impl<V> PartialSums<V> {
    pub(crate) fn new() -> Self {
        PartialSums { unfinished: Vec::new() }
    }

    /// Appends a node to the right of the earlier ones. While the last two nodes are the halves of one node, replaces
    /// them by this node and their sum. `add` adds its second argument to its first.
    pub(crate) fn push(&mut self, mut node: Node, mut value: V, add: &mut impl FnMut(&mut V, V)) {
        while let Some(parent) = self.unfinished.last().and_then(|(left, _)| Node::parent_of_halves(*left, node))
            && let Some((_, mut left)) = self.unfinished.pop()
        {
            add(&mut left, value);
            (node, value) = (parent, left);
        }
        self.unfinished.push((node, value));
    }

    /// Returns the sums of left halves whose right halves are not complete, the last one first. If only the last shard of a node is missing,
    /// the node's sum is the shard's vector plus these sums, added in this order. So the caller can add each range of the vector as soon as
    /// the shard has computed it.
    pub(crate) fn left_halves(&self) -> impl Iterator<Item = &V> {
        self.unfinished.iter().rev().map(|(_, value)| value)
    }

    /// Returns the sum of all nodes, or `None` if no node was pushed.
    pub(crate) fn into_total(self, add: &mut impl FnMut(&mut V, V)) -> Option<V> {
        let mut unfinished = self.unfinished.into_iter().rev();
        let (_, mut total) = unfinished.next()?;
        for (_, mut left) in unfinished {
            add(&mut left, total);
            total = left;
        }
        Some(total)
    }
}

/// The shards of the batch that each rank computes in a step, grouped into the nodes of the tree of sums.
#[derive(Clone, Debug)]
pub(crate) struct ShardPlan {
    /// For each rank, the nodes of the tree whose sums it computes and sends, in order.
    pub(crate) nodes: Vec<Vec<Node>>,
}

impl ShardPlan {
    /// Divides `leaves` shards among `size` ranks. Each rank gets consecutive shards, grouped into nodes of the summation tree with at most
    /// `largest` shards each.
    pub(crate) fn new(leaves: usize, size: usize, largest: usize) -> Self {
        let nodes = (0..size).map(|rank| covering_nodes(part_range(leaves, size, rank), leaves, largest)).collect();
        ShardPlan { nodes }
    }

    /// Plans `leaves` shards on `size` ranks, so that the ranks compute neighbouring shards in each round and can add them up at once.
    pub(crate) fn by_rounds(leaves: usize, size: usize) -> Self {
        ShardPlan { nodes: (0..size).map(|rank| (rank..leaves).step_by(size).map(Node::leaf).collect()).collect() }
    }

    /// Returns the number of rounds. A rank sends the sum of at most one node in each round, so this is the largest number of nodes of a
    /// rank.
    pub(crate) fn rounds(&self) -> usize {
        self.nodes.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Returns the node whose sum `rank` sends in `round`, or `None` if the rank has sent the sums of all its nodes.
    pub(crate) fn node(&self, rank: usize, round: usize) -> Option<Node> {
        self.nodes[rank].get(round).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sum of the leaves in `range` as text with brackets, by the recursive definition of the tree.
    fn definition(range: Range<usize>) -> String {
        let count = range.len();
        if count == 1 {
            return range.start.to_string();
        }
        let half = count.next_power_of_two() / 2;
        let middle = range.start + half;
        format!("({}+{})", definition(range.start..middle), definition(middle..range.end))
    }

    fn add(left: &mut String, right: String) {
        *left = format!("({left}+{right})");
    }

    #[test]
    fn every_number_of_ranks_sums_in_the_same_order() {
        for leaves in 1..=17 {
            let expected = definition(0..leaves);
            for size in 1..=19 {
                for largest in [1, 2, 4, usize::MAX] {
                    let plan = ShardPlan::new(leaves, size, largest);
                    let mut all = PartialSums::new();
                    for rank in 0..size {
                        for &node in &plan.nodes[rank] {
                            let mut own = PartialSums::new();
                            for leaf in node.leaf_range(leaves) {
                                own.push(Node::leaf(leaf), leaf.to_string(), &mut add);
                            }
                            all.push(node, own.into_total(&mut add).unwrap(), &mut add);
                        }
                    }
                    assert_eq!(all.into_total(&mut add).unwrap(), expected, "{leaves} leaves, {size} ranks, {largest}");
                }
            }
        }
    }

    #[test]
    fn each_rank_sends_few_nodes() {
        // Each rank sends at most 2 log₂ S partial sums, where S is the number of shards.
        for size in 1..=16 {
            assert!(ShardPlan::new(16, size, usize::MAX).rounds() <= 8);
        }
        assert_eq!(ShardPlan::new(8, 2, usize::MAX).rounds(), 1);
        assert_eq!(ShardPlan::new(8, 3, usize::MAX).rounds(), 2);
        assert_eq!(ShardPlan::new(8, 2, 1).rounds(), 4);
    }

    #[test]
    fn slices_cover_the_vector() {
        for (length, size) in [(0, 3), (1, 3), (5000, 3), (4096, 4), (100, 1)] {
            let mut at = 0;
            for rank in 0..size {
                let slice = rank_slice(length, 1024, size, rank);
                assert_eq!(slice.start, at);
                at = slice.end;
            }
            assert_eq!(at, length);
        }
        assert_eq!((0..3).map(|index| part_range(8, 3, index)).collect::<Vec<_>>(), [0..3, 3..6, 6..8]);
    }
}
