//! Collective operations on tensors.

use std::sync::Arc;

use wengert_tensor::{Element, Float, Shape, Tensor};

use crate::group::Group;
use crate::payload::Payload;
use crate::transport::Exchange;
use crate::tree::{Node, PartialSums, part_range};
use crate::{Error, Result};

/// The operation that combines the tensors of all ranks: it reduces the elements that have the same index in the ranks' tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The sum, added in a fixed order: pairs of neighbouring ranks, then pairs of pairs.
    Sum,
    /// The sum divided by the number of ranks.
    Mean,
    /// The largest element. NaN if one element is NaN.
    Max,
    /// The smallest element. NaN if one element is NaN.
    Min,
}

impl Reduce {
    fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Mean => "mean",
            Reduce::Max => "max",
            Reduce::Min => "min",
        }
    }

    /// Reduces `left` and `right` elementwise into `left`. For `Mean`, this function only adds, and the caller divides the sum later.
    fn combine<T: Float>(self, left: &mut [T], right: &[T]) {
        for (left, &right) in left.iter_mut().zip(right) {
            *left = match self {
                Reduce::Sum | Reduce::Mean => *left + right,
                Reduce::Max if right > *left || right.to_f64().is_nan() => right,
                Reduce::Min if right < *left || right.to_f64().is_nan() => right,
                Reduce::Max | Reduce::Min => *left,
            };
        }
    }
}

/// Adds `right` to `left`, element by element.
#[expect(clippy::ptr_arg, reason = "the tree's values are vectors")]
pub(crate) fn add<T: Float>(left: &mut Vec<T>, right: Vec<T>) {
    Reduce::Sum.combine(left, &right);
}

fn describe<E: Element>(tensor: &Tensor<E>) -> String {
    format!("{} {}", E::DTYPE, tensor.shape())
}

impl Group {
    /// Replaces the tensor of every rank by the tensor of rank `root`. The tensors of all ranks have the same shape. MPI: `MPI_Bcast`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`]; [`Error::Mismatch`], on every rank, if shapes, types or `root` differ; [`Error::Lost`];
    /// [`Error::Tensor`] if there is not enough memory.
    pub fn broadcast<E: Element>(&self, tensor: &mut Tensor<E>, root: usize) -> Result<()> {
        if root >= self.size() {
            return Err(Error::NoSuchRank { rank: root, size: self.size() });
        }
        self.check_agreement("broadcast", &format!("{} from rank {root}", describe(tensor)))?;
        if self.size() > 1 {
            let own = if self.rank() == root { tensor.try_to_vec()? } else { Vec::new() };
            let elements = self.broadcast_elements("broadcast", own, tensor.numel(), root)?;
            if self.rank() != root {
                *tensor = Tensor::try_from_vec(elements, tensor.shape())?;
            }
        }
        Ok(())
    }

    /// Returns the `count` elements of rank `root` on every rank. The elements are sent in rounds. The ranks are counted from the root. In
    /// round k, each of the first 2ᵏ ranks sends the elements to one of the next 2ᵏ ranks. Only rank `root` reads `elements`. Returns an
    /// error only if a rank was lost.
    pub(crate) fn broadcast_elements<E: Element>(
        &self,
        operation: &'static str,
        elements: Vec<E>,
        count: usize,
        root: usize,
    ) -> Result<Vec<E>> {
        let (size, position) = (self.size(), (self.rank() + self.size() - root) % self.size());
        let rank_at = |position: usize| (position + root) % size;
        let mut payload = if position == 0 { Some(Arc::new(Payload::from_elements(elements))) } else { None };
        let mut n_reached = 1;
        while n_reached < size {
            let mut exchange = Exchange::default();
            match &payload {
                Some(payload) if position + n_reached < size => {
                    exchange.sends.push((rank_at(position + n_reached), Arc::clone(payload)));
                }
                None if position < 2 * n_reached => {
                    exchange.receives.push((rank_at(position - n_reached), Payload::zeros::<E>(count)));
                }
                _ => {}
            }
            let started = self.start_exchange(operation, exchange);
            let mut received = self.finish_exchange(started)?.receives;
            payload = payload.or_else(|| received.pop().map(|(_, payload)| Arc::new(payload)));
            n_reached *= 2;
        }
        Ok(payload.map_or_else(Vec::new, |payload| Arc::unwrap_or_clone(payload).into_elements()))
    }

    /// Returns the reduction of all ranks' tensors, element by element, on every rank: sum, mean, largest or smallest. MPI:
    /// `MPI_Allreduce`.
    ///
    /// The order of additions depends only on the number of ranks. The result has the same bits in every run and on
    /// every rank.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if shapes, types or `reduction` differ; [`Error::Lost`]; [`Error::Tensor`] if
    /// there is not enough memory.
    pub fn all_reduce<T: Float>(&self, tensor: &Tensor<T>, reduction: Reduce) -> Result<Tensor<T>> {
        self.check_agreement("all_reduce", &format!("{} by {}", describe(tensor), reduction.name()))?;
        let count = tensor.numel();
        let own = self
            .reduce_parts("all_reduce", tensor.try_to_vec()?, reduction, |rank| part_range(count, self.size(), rank))?;
        let elements = self.gather_parts("all_reduce", own, |rank| part_range(count, self.size(), rank).len())?;
        Ok(Tensor::try_from_vec(elements.concat(), tensor.shape())?)
    }

    /// Returns the sum of all ranks' tensors, element by element, computed by MPI's own all-reduce (`MPI_Iallreduce`).
    /// This method guarantees less than [`all_reduce`](Self::all_reduce): MPI chooses the order of additions, which may
    /// depend on the number of ranks, on sizes and on the network. Without MPI, and in a group of one, this is the same
    /// as `all_reduce`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if shapes or types differ; [`Error::Lost`]; [`Error::Tensor`] if there is not
    /// enough memory.
    pub fn all_reduce_fast<T: Float>(&self, tensor: &Tensor<T>) -> Result<Tensor<T>> {
        if !self.can_sum() || self.size() == 1 {
            return self.all_reduce(tensor, Reduce::Sum);
        }
        self.check_agreement("all_reduce_fast", &describe(tensor))?;
        let summed = Some(Payload::from_floats(tensor.try_to_vec()?));
        let started = self.start_exchange("all_reduce_fast", Exchange { summed, ..Exchange::default() });
        let summed = self.finish_exchange(started)?.summed.map_or_else(Vec::new, Payload::into_elements);
        Ok(Tensor::try_from_vec(summed, tensor.shape())?)
    }

    /// Returns this rank's part of the reduction (sum, mean, largest or smallest) of all ranks' tensors: `[n, …]` becomes `[n / size, …]`
    /// for `size` ranks. The order of additions is the same as in [`all_reduce`](Self::all_reduce). MPI: `MPI_Reduce_scatter`.
    ///
    /// # Errors
    ///
    /// [`Error::Indivisible`] if the first dimension is not a multiple of the number of ranks; [`Error::Mismatch`], on
    /// every rank, if shapes, types or `reduction` differ; [`Error::Lost`]; [`Error::Tensor`] if there is not enough memory.
    pub fn reduce_scatter<T: Float>(&self, tensor: &Tensor<T>, reduction: Reduce) -> Result<Tensor<T>> {
        let operation = "reduce_scatter";
        self.check_agreement(operation, &format!("{} by {}", describe(tensor), reduction.name()))?;
        let (size, rows) = (self.size(), tensor.shape().first().copied().unwrap_or(1));
        if rows % size != 0 {
            return Err(Error::Indivisible { operation, rows, size });
        }
        let each = tensor.numel() / size;
        let own =
            self.reduce_parts(operation, tensor.try_to_vec()?, reduction, |rank| rank * each..(rank + 1) * each)?;
        let mut sizes = tensor.shape().to_vec();
        if let Some(first) = sizes.first_mut() {
            *first = rows / size;
        }
        Ok(Tensor::try_from_vec(own, Shape::from(&sizes[..]))?)
    }

    /// Returns the tensors of all ranks, in the order of the ranks. All tensors have the same shape. MPI:
    /// `MPI_Allgather`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if shapes or types differ; [`Error::Lost`]; [`Error::Tensor`] if there is not
    /// enough memory.
    pub fn all_gather<E: Element>(&self, tensor: &Tensor<E>) -> Result<Vec<Tensor<E>>> {
        self.check_agreement("all_gather", &describe(tensor))?;
        let parts = self.gather_parts("all_gather", tensor.try_to_vec()?, |_| tensor.numel())?;
        let tensors = parts.into_iter().map(|part| Tensor::try_from_vec(part, tensor.shape()));
        Ok(tensors.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the sum over all ranks of each of the values `numbers`, such as the counts and totals of a metric. The values are added in
    /// f64, in the same order as in [`all_reduce`](Self::all_reduce).
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if the ranks pass different numbers of values; [`Error::Lost`]; [`Error::Tensor`] if there is
    /// not enough memory.
    pub fn sum<const N: usize>(&self, numbers: [f64; N]) -> Result<[f64; N]> {
        let sums = self.all_reduce(&Tensor::from(numbers), Reduce::Sum)?;
        let mut sums = sums.iter();
        Ok(std::array::from_fn(|_| sums.next().unwrap_or_default()))
    }

    /// Reduces the vectors `elements` of all ranks elementwise, and returns this rank's part of the result. `range_of(rank)` is
    /// the range of elements that a rank owns. Returns an error only if a rank was lost.
    fn reduce_parts<T: Float>(
        &self,
        operation: &'static str,
        elements: Vec<T>,
        reduction: Reduce,
        range_of: impl Fn(usize) -> std::ops::Range<usize>,
    ) -> Result<Vec<T>> {
        let count = range_of(self.rank()).len();
        let sends = self
            .other_ranks()
            .map(|rank| (rank, Arc::new(Payload::from_floats(elements[range_of(rank)].to_vec()))))
            .collect();
        let receives = self.other_ranks().map(|rank| (rank, Payload::zeros::<T>(count))).collect();
        let started = self.start_exchange(operation, Exchange { sends, receives, summed: None });
        let mut parts: Vec<Vec<T>> = vec![Vec::new(); self.size()];
        for (rank, payload) in self.finish_exchange(started)?.receives {
            parts[rank] = payload.into_elements();
        }
        parts[self.rank()] = elements[range_of(self.rank())].to_vec();
        let mut combine = |left: &mut Vec<T>, right: Vec<T>| reduction.combine(left, &right);
        let mut sums = PartialSums::new();
        for (rank, part) in parts.into_iter().enumerate() {
            sums.push(Node::leaf(rank), part, &mut combine);
        }
        let mut total = sums.into_total(&mut combine).unwrap_or_default();
        if reduction == Reduce::Mean {
            let size = T::from_f64(self.size() as f64);
            total.iter_mut().for_each(|sum| *sum = *sum / size);
        }
        Ok(total)
    }

    /// Returns the parts of all ranks, in the order of the ranks. `elements` is this rank's part, and `count(rank)` is the
    /// number of elements of a rank's part. Returns an error only if a rank was lost.
    pub(crate) fn gather_parts<E: Element>(
        &self,
        operation: &'static str,
        elements: Vec<E>,
        count: impl Fn(usize) -> usize,
    ) -> Result<Vec<Vec<E>>> {
        let own = Arc::new(Payload::from_elements(elements));
        let sends = self.other_ranks().map(|rank| (rank, Arc::clone(&own))).collect();
        let receives = self.other_ranks().map(|rank| (rank, Payload::zeros::<E>(count(rank)))).collect();
        let started = self.start_exchange(operation, Exchange { sends, receives, summed: None });
        let mut parts: Vec<Vec<E>> = vec![Vec::new(); self.size()];
        for (rank, payload) in self.finish_exchange(started)?.receives {
            parts[rank] = payload.into_elements();
        }
        parts[self.rank()] = Arc::unwrap_or_clone(own).into_elements();
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use wengert_tensor::Generator;

    use super::*;

    /// Calls the function `rank` on each of `N` ranks, with the rank's group.
    fn on_all<const N: usize>(rank: impl Fn(Group) + Sync) {
        thread::scope(|scope| {
            for group in Group::in_process::<N>() {
                scope.spawn(|| rank(group));
            }
        });
    }

    fn every_operation(group: &Group) {
        let (rank, size) = (group.rank() as f64, group.size() as f64);
        let own = Tensor::from([[rank, 1.0], [-rank, 2.0]]);
        let last = size - 1.0;
        let total = size * last / 2.0;
        let reduced = |how| group.all_reduce(&own, how).unwrap().to_vec();
        assert_eq!(reduced(Reduce::Sum), [total, size, -total, 2.0 * size]);
        assert_eq!(reduced(Reduce::Mean), [total / size, 1.0, -total / size, 2.0]);
        assert_eq!(reduced(Reduce::Max), [last, 1.0, 0.0, 2.0]);
        assert_eq!(reduced(Reduce::Min), [0.0, 1.0, -last, 2.0]);
        let rows: Vec<f64> = (0..group.size()).map(|row| row as f64).collect();
        let scattered = group.reduce_scatter(&Tensor::from(rows), Reduce::Sum).unwrap();
        assert_eq!(scattered.to_vec(), [rank * size]);
        for root in 0..group.size() {
            let mut tensor = Tensor::from([root as i64 * i64::from(group.rank() == root), 7]);
            group.broadcast(&mut tensor, root).unwrap();
            assert_eq!(tensor.to_vec(), [root as i64, 7]);
        }
        let gathered = group.all_gather(&Tensor::from([group.rank() == 1, true])).unwrap();
        for (rank, tensor) in gathered.iter().enumerate() {
            assert_eq!(tensor.to_vec(), [rank == 1, true]);
        }
        assert_eq!(group.sum([rank, 1.0]).unwrap(), [total, size]);
        group.barrier().unwrap();
    }

    #[test]
    fn operations_return_documented_results() {
        every_operation(&Group::alone());
        on_all::<2>(|group| every_operation(&group));
        on_all::<3>(|group| every_operation(&group));
        on_all::<5>(|group| every_operation(&group));
    }

    #[test]
    fn mistakes_are_errors_on_every_rank_and_the_group_still_works() {
        on_all::<3>(|group| {
            let (rows, odd) = (3 + usize::from(group.rank() == 2), group.rank() == 1);
            let error = group.all_reduce(&Tensor::<f32>::zeros([rows]), Reduce::Sum).unwrap_err().to_string();
            assert!(error.contains("rank 2 called all_reduce of f32 [4] by sum"), "{error}");
            let how = if odd { Reduce::Max } else { Reduce::Sum };
            assert!(matches!(group.all_reduce(&Tensor::<f32>::zeros([2]), how), Err(Error::Mismatch { .. })));
            let error = if odd { group.barrier() } else { group.broadcast(&mut Tensor::scalar(0i64), 0) };
            let error = error.unwrap_err().to_string();
            assert!(error.contains("rank 1 called barrier of nothing"), "{error}");
            let error = group.reduce_scatter(&Tensor::<f32>::zeros([4]), Reduce::Sum).unwrap_err();
            assert!(matches!(error, Error::Indivisible { rows: 4, size: 3, .. }));
            assert!(matches!(group.broadcast(&mut Tensor::scalar(0i64), 3), Err(Error::NoSuchRank { .. })));
            group.barrier().unwrap();
        });
    }

    #[test]
    fn nan_is_largest_and_smallest_and_empty_tensors_travel() {
        on_all::<2>(|group| {
            let own = if group.rank() == 0 { [f32::NAN, 1.0] } else { [1.0, f32::NAN] };
            for how in [Reduce::Max, Reduce::Min] {
                assert!(group.all_reduce(&Tensor::from(own), how).unwrap().iter().all(f32::is_nan));
            }
            assert_eq!(*group.all_reduce(&Tensor::<f64>::zeros([0, 3]), Reduce::Sum).unwrap().shape(), [0, 3]);
        });
    }

    #[test]
    fn all_ranks_get_the_same_bits() {
        on_all::<3>(|group| {
            let own = Tensor::<f32>::randn([1001], &mut Generator::new(group.rank() as u64));
            let sum = group.all_reduce(&own, Reduce::Sum).unwrap();
            for other in group.all_gather(&sum).unwrap() {
                assert_eq!(other, sum);
            }
            let all = group.all_gather(&own).unwrap();
            let expected: Vec<f32> =
                (0..1001).map(|at| (all[0].to_vec()[at] + all[1].to_vec()[at]) + all[2].to_vec()[at]).collect();
            assert_eq!(sum.to_vec(), expected);
        });
    }
}
