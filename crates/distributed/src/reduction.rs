//! Sums vectors over shards and ranks in a fixed order. The vector is sent in buckets (parts). Some buckets are sent while others are still
//! computed.
//!
//! Each rank owns a slice of the vector. It receives the other ranks' partial sums of that slice and finishes the sum. If all ranks need
//! the whole vector, it then sends its slice to the others. For each of its nodes of the summation tree, a rank sends each element outside
//! of its slice once. It also sends its slice of the result to each other rank. With one node for each of N ranks, this is 2 (N - 1) / N
//! times the vector, as in the best all-reduce.

use std::ops::Range;
use std::sync::Arc;

use wengert_tensor::Float;

use crate::Result;
use crate::collective::add;
use crate::group::{Group, PendingExchange};
use crate::payload::Payload;
use crate::transport::Exchange;
use crate::tree::{PartialSums, ShardPlan, part_range, rank_slice};

/// The number of elements of a block. Each rank's slice of a vector consists of whole blocks, so that a block belongs to one rank for any
/// number of ranks.
pub(crate) const BLOCK: usize = 1024;

/// The division of a vector among the ranks, and into buckets.
#[derive(Clone, Copy)]
pub(crate) struct Division<'g> {
    pub(crate) group: &'g Group,
    /// The number of elements that are divided among the ranks.
    pub(crate) length: usize,
    /// The number of elements of the vector after the divided ones. With [`Partitioning::Slices`], all of these belong to the last rank.
    pub(crate) tail_length: usize,
    /// The number of elements in a bucket, which is a part of the vector that is sent at once.
    pub(crate) bucket_length: usize,
    /// The way in which the vector is cut.
    pub(crate) partitioning: Partitioning,
}

/// The way in which a vector is cut into ranks' slices and buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partitioning {
    /// Each rank has one slice, and a bucket is a part of each slice.
    Slices,
    /// A bucket is a part of the vector, and each rank has a slice of each bucket. Buckets are sent in the order in which a step computes
    /// them. The buckets of the divided elements are sent first, from the last bucket to the first. The bucket of the elements after them is
    /// sent last. If the divided elements fit into one bucket, this bucket has all elements.
    Buckets,
}

impl Division<'_> {
    /// Returns the range of the vector that `rank` owns, if each rank has one slice ([`Partitioning::Slices`]).
    pub(crate) fn slice(&self, rank: usize) -> Range<usize> {
        let own = rank_slice(self.length, BLOCK, self.group.size(), rank);
        let more = if rank + 1 == self.group.size() { self.tail_length } else { 0 };
        own.start..own.end + more
    }

    fn n_buckets(&self) -> usize {
        match self.partitioning {
            Partitioning::Slices => (self.length + self.tail_length).div_ceil(self.bucket_length).max(1),
            Partitioning::Buckets if self.length <= self.bucket_length => 1,
            Partitioning::Buckets => self.length.div_ceil(self.bucket_length) + 1,
        }
    }

    /// Returns the index of the bucket that is sent as number `position`, counted from 0.
    fn bucket_at(&self, position: usize) -> usize {
        match (self.partitioning, self.n_buckets()) {
            (Partitioning::Buckets, buckets @ 2..) if position + 1 < buckets => buckets - 2 - position,
            _ => position,
        }
    }

    /// Returns the range of a bucket in the vector, if the vector is cut by [`Partitioning::Buckets`].
    fn bucket_range(&self, bucket: usize) -> Range<usize> {
        let (length, buckets) = (self.length, self.n_buckets());
        match bucket + 1 {
            _ if buckets == 1 => 0..length + self.tail_length,
            last if last == buckets => length..length + self.tail_length,
            next => bucket * self.bucket_length..(next * self.bucket_length).min(length),
        }
    }

    /// Returns the part of the vector that `rank` owns and that is in `bucket`.
    fn chunk(&self, rank: usize, bucket: usize) -> Range<usize> {
        if self.partitioning == Partitioning::Buckets {
            let range = self.bucket_range(bucket);
            let own = rank_slice(range.len(), BLOCK, self.group.size(), rank);
            return range.start + own.start..range.start + own.end;
        }
        let own = self.slice(rank);
        let within = part_range(own.len(), self.n_buckets(), bucket);
        own.start + within.start..own.start + within.end
    }

    /// Starts an exchange for the bucket (part) with index `bucket` of this round's vectors. Each rank that has a node
    /// of the summation tree in `round` has a vector, `flat`. It sends each other rank the elements of the bucket that
    /// the other rank owns. Every rank receives the elements that it owns.
    fn start_scatter<T: Float>(
        &self,
        plan: &ShardPlan,
        round: usize,
        flat: Option<&[T]>,
        bucket: usize,
    ) -> PendingExchange {
        let mut exchange = Exchange::default();
        if let Some(flat) = flat {
            for rank in self.group.other_ranks().filter(|&rank| !self.chunk(rank, bucket).is_empty()) {
                exchange.sends.push((rank, Arc::new(Payload::from_floats(flat[self.chunk(rank, bucket)].to_vec()))));
            }
        }
        let own = self.chunk(self.group.rank(), bucket).len();
        for rank in self.group.other_ranks().filter(|&rank| own > 0 && plan.node(rank, round).is_some()) {
            exchange.receives.push((rank, Payload::zeros::<T>(own)));
        }
        self.group.start_exchange("average", exchange)
    }

    /// Starts an exchange that sends this rank's part of a bucket to all other ranks, and receives their parts.
    fn start_gather<T: Float>(&self, own: Vec<T>, bucket: usize) -> PendingExchange {
        let mut exchange = Exchange::default();
        if !own.is_empty() {
            let own = Arc::new(Payload::from_floats(own));
            exchange.sends.extend(self.group.other_ranks().map(|rank| (rank, Arc::clone(&own))));
        }
        for rank in self.group.other_ranks() {
            let count = self.chunk(rank, bucket).len();
            if count > 0 {
                exchange.receives.push((rank, Payload::zeros::<T>(count)));
            }
        }
        self.group.start_exchange("average", exchange)
    }

    /// Waits for the exchanges that [`start_gather`](Self::start_gather) started, and writes the received slices to `flat`. Returns
    /// an error if a rank was lost.
    fn finish_gathers<T: Float>(&self, gathered: Vec<(usize, PendingExchange)>, flat: &mut [T]) -> Result<()> {
        for (bucket, started) in gathered {
            for (rank, payload) in self.group.finish_exchange(started)?.receives {
                flat[self.chunk(rank, bucket)].copy_from_slice(&payload.into_elements());
            }
        }
        Ok(())
    }

    /// Returns the sum of the vectors of all shards of `plan`: the whole sum if `to_all` is true, otherwise this rank's
    /// slice. `node(round)` returns the partial sum for the node of the summation tree that this rank sends in `round`.
    /// It is called in order, for the rounds in which this rank has a node, while earlier partial sums are sent.
    pub(crate) fn sum<T: Float>(
        &self,
        plan: &ShardPlan,
        mut node: impl FnMut(usize) -> Result<Vec<T>>,
        to_all: bool,
    ) -> Result<Vec<T>> {
        if self.group.size() == 1 && plan.rounds() == 1 {
            return node(0);
        }
        let mut sum = PendingSum::new(self, plan, false);
        for round in 0..plan.rounds() {
            let flat = if plan.node(self.group.rank(), round).is_some() { Some(node(round)?) } else { None };
            sum.send(flat.as_deref(), None);
        }
        sum.finish(to_all)
    }

    /// Returns the vector that consists of all ranks' slices, on every rank. `own` is the slice of this rank.
    pub(crate) fn all_gather<T: Float>(&self, own: Vec<T>) -> Result<Vec<T>> {
        let (rank, start) = (self.group.rank(), self.slice(self.group.rank()).start);
        let chunk = |bucket| self.chunk(rank, bucket).start - start..self.chunk(rank, bucket).end - start;
        let gather = |bucket| (bucket, self.start_gather(own[chunk(bucket)].to_vec(), bucket));
        let gathered = (0..self.n_buckets()).map(gather).collect();
        let mut flat = vec![T::ZERO; self.length + self.tail_length];
        flat[self.slice(rank)].copy_from_slice(&own);
        self.finish_gathers(gathered, &mut flat)?;
        Ok(flat)
    }

    /// Returns the vector of all ranks' slices on rank 0, and an empty vector on the other ranks.
    pub(crate) fn gather_to_first<T: Float>(&self, own: Vec<T>) -> Result<Vec<T>> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let mut exchange = Exchange::default();
        let mut flat = Vec::new();
        if rank == 0 {
            flat = own;
            flat.resize(self.length + self.tail_length, T::ZERO);
            exchange.receives.extend((1..size).map(|rank| (rank, Payload::zeros::<T>(self.slice(rank).len()))));
        } else {
            exchange.sends.push((0, Arc::new(Payload::from_floats(own))));
        }
        let started = self.group.start_exchange("checkpoint", exchange);
        for (rank, payload) in self.group.finish_exchange(started)?.receives {
            flat[self.slice(rank)].copy_from_slice(&payload.into_elements());
        }
        Ok(flat)
    }
}

/// A sum of vectors over all ranks that is in progress.
pub(crate) struct PendingSum<'d, 'g, T> {
    division: &'d Division<'g>,
    plan: &'d ShardPlan,
    /// True if MPI adds the vectors, in its own order.
    is_by_mpi: bool,
    /// The number of the round. In round k, each rank sends the sum of the node with index k in its list of nodes of the summation tree. The
    /// field `n_sent` is the number of this sum's buckets that are already sent.
    round: usize,
    n_sent: usize,
    /// The started exchanges, each with its round and bucket.
    started: Vec<(usize, usize, PendingExchange)>,
    /// For each bucket: the elements that this rank owns, from each vector that this rank computed. Each entry has the round in which the
    /// vector was sent.
    own_chunks: Vec<Vec<(usize, Vec<T>)>>,
}

impl<'d, 'g, T: Float> PendingSum<'d, 'g, T> {
    pub(crate) fn new(division: &'d Division<'g>, plan: &'d ShardPlan, is_by_mpi: bool) -> Self {
        let own_chunks = vec![Vec::new(); division.n_buckets()];
        PendingSum { division, plan, is_by_mpi, round: 0, n_sent: 0, started: Vec::new(), own_chunks }
    }

    /// Starts the exchange of each bucket (part) of this round's vectors that is complete and not yet sent. `flat` is
    /// the vector of the node of the summation tree that this rank has in this round, or `None` without a node. If
    /// `complete_from` is `None`, all of `flat` is complete. Otherwise only the divided elements from position `complete_from` on are
    /// complete, and with [`Partitioning::Slices`] nothing is sent. After the last bucket, the next round begins.
    pub(crate) fn send(&mut self, flat: Option<&[T]>, complete_from: Option<usize>) {
        let (rank, division) = (self.division.group.rank(), self.division);
        while self.n_sent < self.own_chunks.len() {
            let bucket = division.bucket_at(self.n_sent);
            let complete = |from| {
                division.bucket_range(bucket).start >= from && division.bucket_range(bucket).end <= division.length
            };
            if complete_from.is_some_and(|from| division.partitioning == Partitioning::Slices || !complete(from)) {
                return;
            }
            let started = match flat {
                Some(flat) if self.is_by_mpi => {
                    let summed = Some(Payload::from_floats(flat[division.bucket_range(bucket)].to_vec()));
                    division.group.start_exchange("average", Exchange { summed, ..Exchange::default() })
                }
                flat => division.start_scatter(self.plan, self.round, flat, bucket),
            };
            self.started.push((self.round, bucket, started));
            if let Some(flat) = flat.filter(|_| !self.is_by_mpi) {
                self.own_chunks[bucket].push((self.round, flat[division.chunk(rank, bucket)].to_vec()));
            }
            self.n_sent += 1;
        }
        (self.round, self.n_sent) = (self.round + 1, 0);
    }

    /// Waits for the sums. Returns the whole vector if `to_all` is true, otherwise this rank's slice.
    pub(crate) fn finish(self, to_all: bool) -> Result<Vec<T>> {
        let PendingSum { division, plan, is_by_mpi, started, mut own_chunks, .. } = self;
        let rank = division.group.rank();
        let mut flat = vec![T::ZERO; if to_all { division.length + division.tail_length } else { 0 }];
        // For each bucket, the messages that were received: the sender, the round and the elements.
        let mut received: Vec<Vec<(usize, usize, Vec<T>)>> = vec![Vec::new(); own_chunks.len()];
        let (mut own, mut gathered) = (Vec::new(), Vec::new());
        for (round, bucket, started) in started {
            let Exchange { receives, summed, .. } = division.group.finish_exchange(started)?;
            if is_by_mpi {
                flat[division.bucket_range(bucket)]
                    .copy_from_slice(&summed.map_or_else(Vec::new, Payload::into_elements));
                continue;
            }
            let elements = |(from, payload): (usize, Payload)| (from, round, payload.into_elements());
            received[bucket].extend(receives.into_iter().map(elements));
            if round + 1 < plan.rounds() {
                continue;
            }
            let mut parts = std::mem::take(&mut received[bucket]);
            parts.extend(own_chunks[bucket].drain(..).map(|(round, own)| (rank, round, own)));
            parts.sort_unstable_by_key(|&(from, round, _)| (from, round));
            let mut sums = PartialSums::new();
            for (from, round, elements) in parts {
                if let Some(node) = plan.node(from, round) {
                    sums.push(node, elements, &mut add);
                }
            }
            let total: Vec<T> = sums.into_total(&mut add).unwrap_or_default();
            if to_all {
                flat[division.chunk(rank, bucket)].copy_from_slice(&total);
                gathered.push((bucket, division.start_gather(total, bucket)));
            } else {
                own.extend(total);
            }
        }
        if !to_all {
            return Ok(own);
        }
        division.finish_gathers(gathered, &mut flat)?;
        Ok(flat)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use wengert_tensor::Generator;

    use super::*;
    use crate::tree::Node;

    const LENGTH: usize = 5000;

    fn leaf(number: usize) -> Vec<f32> {
        let generator = &mut Generator::new(number as u64);
        (0..LENGTH + 7).map(|_| generator.normal() as f32).collect()
    }

    /// Sums `leaves` vectors on `N` ranks, checks that all ranks get the same bits, and returns the sum.
    fn on_ranks<const N: usize>(leaves: usize, largest: usize, bucket_length: usize, in_two: bool) -> Vec<f32> {
        let one = |group: Group| {
            let partitioning = if in_two { Partitioning::Slices } else { Partitioning::Buckets };
            let division = Division { group: &group, length: LENGTH, tail_length: 7, bucket_length, partitioning };
            let plan = ShardPlan::new(leaves, N, largest);
            let node = |round: usize| {
                let mut sums = PartialSums::new();
                let node = plan.node(group.rank(), round).unwrap();
                for number in node.leaf_range(leaves) {
                    sums.push(Node::leaf(number), leaf(number), &mut add);
                }
                Ok(sums.into_total(&mut add).unwrap())
            };
            if in_two {
                let own = division.sum(&plan, node, false).unwrap();
                division.all_gather(own).unwrap()
            } else {
                division.sum(&plan, node, true).unwrap()
            }
        };
        let results: Vec<Vec<f32>> = thread::scope(|scope| {
            let threads = Group::in_process::<N>().map(|group| scope.spawn(|| one(group)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results.iter().all(|result| result == &results[0]));
        results.into_iter().next().unwrap()
    }

    #[test]
    fn the_sum_has_the_same_bits_on_any_number_of_ranks() {
        for leaves in [1, 3, 8] {
            let expected = on_ranks::<1>(leaves, usize::MAX, 1 << 20, false);
            for (largest, bucket_length, in_two) in [(usize::MAX, 1 << 20, false), (1, 900, false), (2, 64, true)] {
                assert_eq!(on_ranks::<1>(leaves, largest, bucket_length, in_two), expected);
                assert_eq!(on_ranks::<2>(leaves, largest, bucket_length, in_two), expected);
                assert_eq!(on_ranks::<3>(leaves, largest, bucket_length, in_two), expected);
                assert_eq!(on_ranks::<4>(leaves, largest, bucket_length, in_two), expected);
                assert_eq!(on_ranks::<8>(leaves, largest, bucket_length, in_two), expected);
            }
        }
    }
}
