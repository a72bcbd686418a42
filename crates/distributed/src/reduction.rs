//! The sum of vectors over shards and ranks, in one order, sent in buckets while others are still computed.
//!
//! Each rank owns a slice of the vector. It gets what the others have added up of that slice, finishes the sum, and, where all want
//! all of it, sends its slice to the others. A rank sends each element once for each of its nodes of the tree, and once more to
//! gather: with one node for each rank, 2 (N - 1) / N vectors in all, as the best all-reduce does.

use std::ops::Range;
use std::sync::Arc;

use wengert_tensor::Float;

use crate::Result;
use crate::collective::add;
use crate::group::{Group, Started};
use crate::payload::Payload;
use crate::transport::Exchange;
use crate::tree::{Plan, Sums, part, slice};

/// Slices begin at multiples of so many elements: each such block lies with one rank, on any number of ranks.
pub(crate) const BLOCK: usize = 1024;

/// How a vector is divided among the ranks, and into buckets.
#[derive(Clone, Copy)]
pub(crate) struct Division<'g> {
    pub(crate) group: &'g Group,
    /// Elements that are divided.
    pub(crate) length: usize,
    /// Elements after them, which all belong to the last rank.
    pub(crate) tail: usize,
    /// Elements in a bucket.
    pub(crate) bucket: usize,
}

impl Division<'_> {
    /// What `rank` owns.
    pub(crate) fn slice(&self, rank: usize) -> Range<usize> {
        let own = slice(self.length, BLOCK, self.group.size(), rank);
        let more = if rank + 1 == self.group.size() { self.tail } else { 0 };
        own.start..own.end + more
    }

    fn buckets(&self) -> usize {
        (self.length + self.tail).div_ceil(self.bucket).max(1)
    }

    /// The part of what `rank` owns that is in a bucket.
    fn chunk(&self, rank: usize, bucket: usize) -> Range<usize> {
        let own = self.slice(rank);
        let within = part(own.len(), self.buckets(), bucket);
        own.start + within.start..own.start + within.end
    }

    /// Sends each rank its part of what this one has added up, and receives the same from those that have a node in `round`.
    fn scatter<T: Float>(&self, plan: &Plan, round: usize, flat: Option<&[T]>, bucket: usize) -> Started {
        let mut exchange = Exchange::default();
        if let Some(flat) = flat {
            for rank in self.group.others().filter(|&rank| !self.chunk(rank, bucket).is_empty()) {
                exchange.sends.push((rank, Arc::new(Payload::of(flat[self.chunk(rank, bucket)].to_vec()))));
            }
        }
        let own = self.chunk(self.group.rank(), bucket).len();
        for rank in self.group.others().filter(|&rank| own > 0 && plan.node(rank, round).is_some()) {
            exchange.receives.push((rank, Payload::room::<T>(own)));
        }
        self.group.start("average", exchange)
    }

    /// Sends this rank's part of a bucket to all others, and receives theirs.
    fn gather<T: Float>(&self, own: Vec<T>, bucket: usize) -> Started {
        let mut exchange = Exchange::default();
        if !own.is_empty() {
            let own = Arc::new(Payload::of(own));
            exchange.sends.extend(self.group.others().map(|rank| (rank, Arc::clone(&own))));
        }
        for rank in self.group.others() {
            let count = self.chunk(rank, bucket).len();
            if count > 0 {
                exchange.receives.push((rank, Payload::room::<T>(count)));
            }
        }
        self.group.start("average", exchange)
    }

    /// Waits for what [`gather`](Self::gather) started, and puts it into `flat`.
    fn put<T: Float>(&self, gathered: Vec<Started>, flat: &mut [T]) -> Result<()> {
        for (bucket, started) in gathered.into_iter().enumerate() {
            for (rank, payload) in self.group.finish(started)?.receives {
                flat[self.chunk(rank, bucket)].copy_from_slice(&payload.into_elements());
            }
        }
        Ok(())
    }

    /// The sum of the leaves of `plan`. `node` gives what this rank adds up for each of its nodes, one after the other, while what
    /// was given before is on its way. With `all` the whole sum, otherwise this rank's slice of it.
    pub(crate) fn sum<T: Float>(
        &self,
        plan: &Plan,
        mut node: impl FnMut(usize) -> Result<Vec<T>>,
        all: bool,
    ) -> Result<Vec<T>> {
        let (rank, size) = (self.group.rank(), self.group.size());
        if size == 1 && plan.rounds() == 1 {
            return node(0);
        }
        let (rounds, buckets) = (plan.rounds(), self.buckets());
        let (mut scattered, mut kept) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let flat = if plan.node(rank, round).is_some() { Some(node(round)?) } else { None };
            for bucket in 0..buckets {
                scattered.push((round, bucket, self.scatter(plan, round, flat.as_deref(), bucket)));
            }
            kept.push(flat.map(|flat| flat[self.slice(rank)].to_vec()));
        }
        // By bucket, what arrived: the sender, the round, the elements.
        let mut arrived: Vec<Vec<(usize, usize, Vec<T>)>> = vec![Vec::new(); buckets];
        let (mut own, mut gathered) = (Vec::new(), Vec::new());
        for (round, bucket, started) in scattered {
            let received = self.group.finish(started)?.receives;
            let elements = |(from, payload): (usize, Payload)| (from, round, payload.into_elements());
            arrived[bucket].extend(received.into_iter().map(elements));
            if round + 1 < rounds {
                continue;
            }
            let mut parts = std::mem::take(&mut arrived[bucket]);
            let (start, chunk) = (self.slice(rank).start, self.chunk(rank, bucket));
            for (round, slice) in kept.iter().enumerate() {
                let own = slice.as_ref().map(|slice| slice[chunk.start - start..chunk.end - start].to_vec());
                parts.extend(own.map(|own| (rank, round, own)));
            }
            parts.sort_unstable_by_key(|&(from, round, _)| (from, round));
            let mut sums = Sums::new();
            for (from, round, elements) in parts {
                if let Some(node) = plan.node(from, round) {
                    sums.push(node, elements, &mut add);
                }
            }
            let total: Vec<T> = sums.total(&mut add).unwrap_or_default();
            if all {
                gathered.push(self.gather(total.clone(), bucket));
            }
            own.extend(total);
        }
        if all { self.filled(own, gathered) } else { Ok(own) }
    }

    /// All slices, of which this rank has `own`.
    pub(crate) fn all<T: Float>(&self, own: Vec<T>) -> Result<Vec<T>> {
        let (rank, start) = (self.group.rank(), self.slice(self.group.rank()).start);
        let chunk = |bucket| self.chunk(rank, bucket).start - start..self.chunk(rank, bucket).end - start;
        let gathered = (0..self.buckets()).map(|bucket| self.gather(own[chunk(bucket)].to_vec(), bucket)).collect();
        self.filled(own, gathered)
    }

    /// All slices on rank 0; nothing on the others.
    pub(crate) fn at_first<T: Float>(&self, own: Vec<T>) -> Result<Vec<T>> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let mut exchange = Exchange::default();
        let mut flat = Vec::new();
        if rank == 0 {
            flat = own;
            flat.resize(self.length + self.tail, T::ZERO);
            exchange.receives.extend((1..size).map(|rank| (rank, Payload::room::<T>(self.slice(rank).len()))));
        } else {
            exchange.sends.push((0, Arc::new(Payload::of(own))));
        }
        let started = self.group.start("checkpoint", exchange);
        for (rank, payload) in self.group.finish(started)?.receives {
            flat[self.slice(rank)].copy_from_slice(&payload.into_elements());
        }
        Ok(flat)
    }

    fn filled<T: Float>(&self, own: Vec<T>, gathered: Vec<Started>) -> Result<Vec<T>> {
        let mut flat = vec![T::ZERO; self.length + self.tail];
        flat[self.slice(self.group.rank())].copy_from_slice(&own);
        self.put(gathered, &mut flat)?;
        Ok(flat)
    }

    /// The sum of every rank's `own` by MPI's own reduction, whose order of additions is MPI's.
    pub(crate) fn sum_by_mpi<T: Float>(&self, own: &[T]) -> Result<Vec<T>> {
        let bucket = |part: &[T]| {
            let summed = Some(Payload::of(part.to_vec()));
            self.group.start("average", Exchange { summed, ..Exchange::default() })
        };
        let started: Vec<Started> = own.chunks(self.bucket).map(bucket).collect();
        let mut flat = Vec::with_capacity(own.len());
        for started in started {
            let summed = self.group.finish(started)?.summed;
            flat.extend(summed.map_or_else(Vec::new, Payload::into_elements::<T>));
        }
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

    /// The sum on `N` ranks, which must be the same on all.
    fn on_ranks<const N: usize>(leaves: usize, largest: usize, bucket: usize, in_two: bool) -> Vec<f32> {
        let one = |group: Group| {
            let division = Division { group: &group, length: LENGTH, tail: 7, bucket };
            let plan = Plan::new(leaves, N, largest);
            let node = |round: usize| {
                let mut sums = Sums::new();
                let node = plan.node(group.rank(), round).unwrap();
                for number in node.range(leaves) {
                    sums.push(Node::leaf(number), leaf(number), &mut add);
                }
                Ok(sums.total(&mut add).unwrap())
            };
            if in_two {
                let own = division.sum(&plan, node, false).unwrap();
                division.all(own).unwrap()
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
            for (largest, bucket, in_two) in [(usize::MAX, 1 << 20, false), (1, 900, false), (2, 64, true)] {
                assert_eq!(on_ranks::<1>(leaves, largest, bucket, in_two), expected);
                assert_eq!(on_ranks::<2>(leaves, largest, bucket, in_two), expected);
                assert_eq!(on_ranks::<3>(leaves, largest, bucket, in_two), expected);
                assert_eq!(on_ranks::<4>(leaves, largest, bucket, in_two), expected);
                assert_eq!(on_ranks::<8>(leaves, largest, bucket, in_two), expected);
            }
        }
    }
}
