//! Several data sets, one after the other.

use std::sync::Arc;

use wengert_tensor::ops::{Indexing, try_cat};
use wengert_tensor::{Element, Tensor};

use crate::data::dataset::Dataset;
use crate::{Error, Result};

/// The samples of several data sets of one type: the samples of the first data set, then the samples of the second, and so on. A batch may
/// have samples of several data sets. PyTorch: `torch.utils.data.ConcatDataset`.
///
/// A subset refers to the same data sets and copies no samples.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{ConcatDataset, DataLoader, Dataset, Samples};
/// use wengert::prelude::*;
///
/// let first = Samples::new(Tensor::from([[1.0f32], [2.0]]), Tensor::from([0i64, 1]))?;
/// let second = Samples::new(Tensor::from([[3.0f32], [4.0], [5.0]]), Tensor::from([1i64, 0, 1]))?;
/// let both = ConcatDataset::new(vec![first, second])?;
/// assert_eq!(both.len(), 5);
/// let (x, classes) = DataLoader::new(both, 4).epoch(0).next().unwrap()?;
/// assert_eq!((x.to_vec(), classes.to_vec()), (vec![1.0, 2.0, 3.0, 4.0], vec![0, 1, 1, 0]));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConcatDataset<D> {
    parts: Arc<[D]>,
    /// For each data set, the number of its samples and of the samples of all data sets before it.
    ends: Arc<[usize]>,
    /// The indices of the samples of a subset, in the order of the subset. `None` means all samples.
    subset_positions: Option<Arc<[usize]>>,
}

/// A batch that can be joined with other batches of the same type, for [`ConcatDataset`]. Tensors and tuples of two to four batches have this
/// trait.
pub trait JoinBatches: Sized {
    /// Returns one batch with the samples of `batches`. Sample i of the result is sample `order[i]` of the samples of all batches, counted from
    /// the first sample of the first batch.
    ///
    /// # Errors
    ///
    /// If the samples of two batches have different shapes, an index is out of range, or there is not enough memory.
    fn join_batches(batches: Vec<Self>, order: &[usize]) -> Result<Self>;
}

impl<E: Element> JoinBatches for Tensor<E> {
    fn join_batches(batches: Vec<Self>, order: &[usize]) -> Result<Self> {
        let joined = try_cat(&batches, 0)?;
        let is_in_order =
            order.len() == Dataset::len(&joined) && order.iter().enumerate().all(|(i, &position)| i == position);
        if is_in_order {
            return Ok(joined);
        }
        let positions: Vec<i64> = order.iter().map(|&position| position as i64).collect();
        Ok(joined.try_index_select(0, &Tensor::from(positions))?)
    }
}

/// Implements [`JoinBatches`] for a tuple.
macro_rules! tuple {
    ($($part:ident $batches:ident: $position:tt),*) => {
        impl<$($part: JoinBatches),*> JoinBatches for ($($part,)*) {
            fn join_batches(batches: Vec<Self>, order: &[usize]) -> Result<Self> {
                let ($(mut $batches,)*) = ($(Vec::<$part>::with_capacity(batches.len()),)*);
                for batch in batches {
                    $($batches.push(batch.$position);)*
                }
                Ok(($($part::join_batches($batches, order)?,)*))
            }
        }
    };
}

tuple!(A a: 0, B b: 1);
tuple!(A a: 0, B b: 1, C c: 2);
tuple!(A a: 0, B b: 1, C c: 2, D d: 3);

impl<D: Dataset<Batch: JoinBatches>> ConcatDataset<D> {
    /// Joins data sets of one type, at least one.
    ///
    /// # Errors
    ///
    /// If there are no data sets, or the parts of a tuple have different lengths. Also if the total number of samples is too large for a
    /// `usize`.
    pub fn new(parts: Vec<D>) -> Result<Self> {
        if parts.is_empty() {
            return Err(Error::Dataset("datasets should not be an empty iterable".to_owned()));
        }
        let mut end = 0usize;
        let mut next = |part: &D| {
            end = end
                .checked_add(part.try_len()?)
                .ok_or_else(|| Error::Dataset("the data sets have too many samples to count".to_owned()))?;
            Ok(end)
        };
        let ends: Vec<usize> = parts.iter().map(&mut next).collect::<Result<_>>()?;
        Ok(ConcatDataset { parts: parts.into(), ends: ends.into(), subset_positions: None })
    }

    /// Returns the data sets that were joined. For a subset, these are all data sets with all of their samples.
    pub fn parts(&self) -> &[D] {
        &self.parts
    }

    /// Returns the indices, among all joined samples, of the samples at the positions `indices` of this data set. This data set may be a subset.
    /// Returns an error if an index is out of range.
    fn dataset_positions(&self, indices: &[usize]) -> Result<Vec<usize>> {
        let n = self.len();
        let position = |&index: &usize| match &self.subset_positions {
            _ if index >= n => Err(Error::Dataset(format!("there is no sample {index} in a data set of {n} samples"))),
            None => Ok(index),
            Some(subset_positions) => Ok(subset_positions[index]),
        };
        indices.iter().map(position).collect()
    }
}

impl<D: Dataset<Batch: JoinBatches>> Dataset for ConcatDataset<D> {
    type Batch = D::Batch;

    fn len(&self) -> usize {
        self.subset_positions
            .as_ref()
            .map_or(self.ends.last().copied().unwrap_or(0), |subset_positions| subset_positions.len())
    }

    fn batch(&self, indices: &[usize]) -> Result<D::Batch> {
        let positions = self.dataset_positions(indices)?;
        // Sorts the samples by their data set. Samples of one data set keep the order of the batch, so that consecutive indices stay
        // consecutive.
        let part_of = |position: usize| self.ends.partition_point(|&end| end <= position);
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by_key(|&i| part_of(positions[i]));
        let mut batches = Vec::new();
        for samples in order.chunk_by(|&i, &j| part_of(positions[i]) == part_of(positions[j])) {
            let part = part_of(positions[samples[0]]);
            let start = if part == 0 { 0 } else { self.ends[part - 1] };
            let indices: Vec<usize> = samples.iter().map(|&i| positions[i] - start).collect();
            batches.push(self.parts[part].batch(&indices)?);
        }
        match batches.len() {
            0 => self.parts[0].batch(&[]),
            1 => Ok(batches.remove(0)),
            _ => {
                // `order[k]` is the index, in the requested batch, of the sample at position k of the joined batches. `inverse` is the
                // inverse permutation.
                let mut inverse = vec![0; order.len()];
                order.iter().enumerate().for_each(|(position, &i)| inverse[i] = position);
                JoinBatches::join_batches(batches, &inverse)
            }
        }
    }

    fn subset(&self, indices: &[usize]) -> Result<Self> {
        let subset_positions = Some(self.dataset_positions(indices)?.into());
        Ok(ConcatDataset { parts: Arc::clone(&self.parts), ends: Arc::clone(&self.ends), subset_positions })
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Generator;
    use wengert_tensor::ops::Views as _;

    use super::*;
    use crate::DataLoader;

    /// Returns the numbers from `start` to `end` - 1. Also returns ten times each number, as a row of one element.
    fn numbered(start: i64, end: i64) -> (Tensor<i64>, Tensor<f64>) {
        let numbers = Tensor::<i64>::arange(start..end);
        let rows = Tensor::<f64>::arange(start..end).try_unsqueeze(1).unwrap() * 10.0;
        (numbers, rows)
    }

    /// Returns a data set of four parts, which have 3, 0, 4 and 1 samples.
    fn joined() -> ConcatDataset<(Tensor<i64>, Tensor<f64>)> {
        ConcatDataset::new(vec![numbered(0, 3), numbered(3, 3), numbered(3, 7), numbered(7, 8)]).unwrap()
    }

    #[test]
    fn a_batch_has_the_samples_in_the_order_of_the_indices() {
        let data = joined();
        assert_eq!((data.len(), data.parts().len()), (8, 4));
        for indices in [&[0usize, 1, 2, 3, 4, 5, 6, 7][..], &[7, 0, 3, 2, 6, 1], &[4, 4, 0, 4], &[5], &[1, 2], &[]] {
            let (numbers, rows) = data.batch(indices).unwrap();
            let expected: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
            assert_eq!(numbers.to_vec(), expected);
            assert_eq!(rows.shape().sizes(), [indices.len(), 1]);
            assert!(rows.iter().zip(expected).all(|(row, number)| row == 10.0 * number as f64));
        }
        let error = data.batch(&[1, 8]).unwrap_err();
        assert_eq!(error.to_string(), "there is no sample 8 in a data set of 8 samples");
    }

    #[test]
    fn subsets_of_subsets_and_epochs() {
        let data = joined().subset(&[7, 2, 3, 5, 0]).unwrap();
        assert_eq!(data.len(), 5);
        let part = data.subset(&[4, 0, 2]).unwrap();
        assert_eq!(part.batch(&[0, 1, 2]).unwrap().0.to_vec(), [0, 7, 3]);
        assert!(data.subset(&[5]).is_err() && part.batch(&[3]).is_err());
        let (rest, held_out) = joined().random_split(3, &mut Generator::new(2)).unwrap();
        let mut seen = Vec::new();
        for data in [rest, held_out] {
            for batch in DataLoader::new(data, 2).shuffle().workers(2).epoch(1) {
                seen.extend(batch.unwrap().0.to_vec());
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..8));
    }

    #[test]
    fn samples_of_different_shapes_are_errors() {
        let data = ConcatDataset::new(vec![Tensor::<f32>::zeros([2, 3]), Tensor::zeros([2, 4])]).unwrap();
        assert!(data.batch(&[0, 1]).is_ok() && data.batch(&[1, 2]).is_err());
        let error = ConcatDataset::<Tensor<f32>>::new(Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "datasets should not be an empty iterable");
        let unequal = (Tensor::<i64>::arange(3), Tensor::<i64>::arange(4));
        assert!(ConcatDataset::new(vec![unequal]).is_err());
    }

    #[test]
    fn empty_parts_and_a_single_part() {
        let empty = ConcatDataset::new(vec![numbered(0, 0), numbered(0, 0)]).unwrap();
        assert!(empty.is_empty());
        assert_eq!(empty.batch(&[]).unwrap().1.shape().sizes(), [0, 1]);
        assert_eq!(DataLoader::new(empty.clone(), 4).epoch(0).count(), 0);
        assert_eq!(empty.batch(&[0]).unwrap_err().to_string(), "there is no sample 0 in a data set of 0 samples");
        // Empty parts at both ends, and two in the middle.
        let parts = [(0, 0), (0, 2), (2, 2), (2, 2), (2, 3), (3, 3)].map(|(start, end)| numbered(start, end));
        let data = ConcatDataset::new(parts.to_vec()).unwrap();
        assert_eq!(data.batch(&[2, 0, 1]).unwrap().0.to_vec(), [2, 0, 1]);
        assert_eq!(data.subset(&[]).unwrap().len(), 0);
        let one = ConcatDataset::new(vec![numbered(4, 7)]).unwrap();
        assert_eq!(one.batch(&[2, 0]).unwrap().0.to_vec(), [6, 4]);
        for index in [3, usize::MAX] {
            let expected = format!("there is no sample {index} in a data set of 3 samples");
            assert_eq!(one.batch(&[0, index]).unwrap_err().to_string(), expected);
            assert_eq!(one.subset(&[index]).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn batches_are_joined_in_any_order() {
        let (a, b) = (Tensor::from([1i64, 2]), Tensor::from([3i64]));
        let join = |order: &[usize]| JoinBatches::join_batches(vec![a.clone(), b.clone()], order);
        assert_eq!(join(&[0, 1, 2]).unwrap().to_vec(), [1, 2, 3]);
        assert_eq!(join(&[2, 0, 0, 1, 2]).unwrap().to_vec(), [3, 1, 1, 2, 3]);
        assert_eq!(join(&[0, 1]).unwrap().to_vec(), [1, 2]);
        assert_eq!(join(&[]).unwrap().shape().sizes(), [0]);
        // `usize::MAX` becomes the index -1, which must not count from the end.
        for order in [[3], [usize::MAX], [usize::MAX - 2]] {
            assert!(join(&order).is_err(), "{order:?}");
        }
        assert!(Tensor::<i64>::join_batches(Vec::new(), &[]).is_err());
        // The parts of a tuple may have different types and numbers of dimensions.
        let batch = |start: i64, end| {
            let (numbers, rows) = numbered(start, end);
            (numbers.clone(), rows.clone(), numbers.clone(), rows)
        };
        let (numbers, rows, _, _) =
            JoinBatches::join_batches(vec![batch(0, 2), batch(5, 5), batch(7, 8)], &[2, 0]).unwrap();
        assert_eq!((numbers.to_vec(), rows.to_vec()), (vec![7, 0], vec![70.0, 0.0]));
        assert!(JoinBatches::join_batches(vec![batch(0, 2)], &[2]).is_err());
    }
}
