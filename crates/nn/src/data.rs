//! Labelled samples: splitting, shuffling, batches.
//!
//! All samples are in memory, as one tensor. What they mean (pixels, words) is not known here.

use std::path::Path;

use wengert_tensor::ops::{Indexing, Views};
use wengert_tensor::{Float, Generator, Tensor};

use crate::table::for_each_row;
use crate::{Error, Normalize, Result};

/// Samples with their classes. PyTorch: `torch.utils.data.TensorDataset` of two tensors.
///
/// ```
/// use wengert_nn::{Dataset, Generator};
/// use wengert_tensor::prelude::*;
///
/// let data = Dataset::new(Tensor::<f32>::zeros([100, 64]), Tensor::zeros([100]))?;
/// let (train, test) = data.random_split(0.25, &mut Generator::new(0))?;
/// assert_eq!((train.len(), test.len()), (75, 25));
/// let sizes: Vec<usize> = train.shuffled(&mut Generator::new(1))?.batches(32).map(|(x, _)| x.shape()[0]).collect();
/// assert_eq!(sizes, [32, 32, 11]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<T: Float> {
    inputs: Tensor<T>,
    targets: Tensor<i64>,
}

impl<T: Float> Dataset<T> {
    /// Samples `[n, …]` with their classes `[n]`.
    ///
    /// # Errors
    ///
    /// Where there is not one class for each sample.
    pub fn new(inputs: Tensor<T>, targets: Tensor<i64>) -> Result<Self> {
        match inputs.shape().first() {
            Some(&n) if targets.shape().sizes() == [n] => Ok(Dataset { inputs, targets }),
            _ => {
                let (inputs, targets) = (inputs.shape(), targets.shape());
                Err(Error::Dataset(format!("inputs of shape {inputs} need one target for each sample, got {targets}")))
            }
        }
    }

    /// A table of comma-separated numbers (see [`read_table`](crate::read_table)), a sample in each row, whose last
    /// column is its class, from 0 to `classes` - 1.
    ///
    /// # Errors
    ///
    /// What [`read_table`](crate::read_table) refuses; a table of one column ([`Error::Table`]); a class that is not an integer
    /// from 0 to `classes` - 1 ([`Error::Class`], with the line).
    pub fn read_csv(path: impl AsRef<Path>, classes: usize) -> Result<Self> {
        let path = path.as_ref();
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        let (rows, columns) = for_each_row::<T>(path, |line, row| {
            let (found, features) = match row {
                [features @ .., class] if !features.is_empty() => (*class, features),
                _ => return Err(Error::Table { path: path.to_owned(), problem: "needs two columns or more" }),
            };
            if found.fract() != 0.0 || !(0.0..classes as f64).contains(&found) {
                return Err(Error::Class { path: path.to_owned(), line, classes, found });
            }
            inputs.extend(features.iter().map(|&value| T::from_f64(value)));
            targets.push(found as i64);
            Ok(())
        })?;
        Dataset::new(Tensor::try_from_vec(inputs, [rows, columns - 1])?, Tensor::from(targets))
    }

    /// The samples, `[n, …]`.
    pub fn inputs(&self) -> &Tensor<T> {
        &self.inputs
    }

    /// Their classes, `[n]`.
    pub fn targets(&self) -> &Tensor<i64> {
        &self.targets
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.targets.numel()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same samples, normalised.
    ///
    /// # Errors
    ///
    /// Where the features are not those that `normalize` was found on.
    pub fn normalized(&self, normalize: &Normalize<T>) -> Result<Self> {
        Ok(Dataset { inputs: normalize.apply(&self.inputs)?, targets: self.targets.clone() })
    }

    /// Two parts without a sample in common: the rest, and the share `held_out` (from 0 to 1; rounded up to whole
    /// samples), drawn at random. PyTorch: `torch.utils.data.random_split`.
    ///
    /// # Errors
    ///
    /// Where `held_out` is not between 0 and 1, or lies strictly between them and one part would still be empty.
    pub fn random_split(&self, held_out: f64, generator: &mut Generator) -> Result<(Self, Self)> {
        if !(0.0..=1.0).contains(&held_out) {
            return Err(Error::Dataset(format!("random_split(): expected a share from 0 to 1, got {held_out}")));
        }
        let order = self.order(generator);
        let rest = self.len() - (self.len() as f64 * held_out).ceil() as usize;
        if held_out > 0.0 && held_out < 1.0 && (rest == 0 || rest == self.len()) {
            let n = self.len();
            return Err(Error::Dataset(format!(
                "too few samples: {n} cannot be divided into a share of {held_out} and the rest"
            )));
        }
        Ok((self.select(&order[..rest])?, self.select(&order[rest..])?))
    }

    /// The same samples in random order. They are copied once, so that [`batches`](Self::batches) are views.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold them.
    pub fn shuffled(&self, generator: &mut Generator) -> Result<Self> {
        self.select(&self.order(generator))
    }

    /// The samples in order, `size` at a time; the last batch may be smaller. Nothing is copied. PyTorch:
    /// `torch.utils.data.DataLoader`.
    ///
    /// # Panics
    ///
    /// Where `size` is 0.
    #[track_caller]
    pub fn batches(&self, size: usize) -> Batches<T> {
        assert!(size > 0, "batch_size should be a positive integer value, but got batch_size={size}");
        Batches { data: self.clone(), size, start: 0 }
    }

    fn order(&self, generator: &mut Generator) -> Vec<i64> {
        let mut order: Vec<i64> = (0..self.len() as i64).collect();
        generator.shuffle(&mut order);
        order
    }

    fn select(&self, positions: &[i64]) -> Result<Self> {
        let positions = Tensor::from(positions);
        let inputs = self.inputs.try_index_select(0, &positions)?;
        Ok(Dataset { inputs, targets: self.targets.try_index_select(0, &positions)? })
    }
}

/// The batches of a [`Dataset`], each as inputs `[b, …]` and targets `[b]`. Made by [`Dataset::batches`].
#[derive(Clone, Debug)]
pub struct Batches<T: Float> {
    data: Dataset<T>,
    size: usize,
    start: usize,
}

impl<T: Float> Iterator for Batches<T> {
    type Item = (Tensor<T>, Tensor<i64>);

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.size.min(self.data.len() - self.start);
        if count == 0 {
            return None;
        }
        let (start, len) = (self.start as isize, count as isize);
        self.start += count;
        Some((self.data.inputs.narrow(0, start, len), self.data.targets.narrow(0, start, len)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.data.len() - self.start).div_ceil(self.size);
        (left, Some(left))
    }
}

impl<T: Float> ExactSizeIterator for Batches<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample i is [2i, 2i + 1], its class i.
    fn numbered(n: usize) -> Dataset<f64> {
        Dataset::new(Tensor::arange(2 * n).reshape([n, 2]), Tensor::arange(n)).unwrap()
    }

    #[test]
    fn a_split_holds_every_sample_once() {
        let (train, test) = numbered(10).random_split(0.25, &mut Generator::new(5)).unwrap();
        assert_eq!((train.len(), test.len()), (7, 3));
        let mut classes: Vec<i64> = train.targets().iter().chain(test.targets().iter()).collect();
        assert_ne!(classes, Vec::from_iter(0..10));
        classes.sort_unstable();
        assert_eq!(classes, Vec::from_iter(0..10));
        assert_eq!(
            test.inputs().select(1, 0).to_vec(),
            test.targets().iter().map(|t| 2.0 * t as f64).collect::<Vec<_>>()
        );
        assert_eq!(numbered(10).random_split(0.25, &mut Generator::new(5)).unwrap().0, train);
        assert_eq!(numbered(10).random_split(1.0, &mut Generator::new(5)).unwrap().0.len(), 0);
        assert!(numbered(1).random_split(0.25, &mut Generator::new(5)).is_err());
        assert!(numbered(10).random_split(f64::NAN, &mut Generator::new(5)).is_err());
    }

    #[test]
    fn batches_are_views_in_order_and_the_last_is_shorter() {
        let data = numbered(5);
        let batches = data.batches(2);
        assert_eq!(batches.len(), 3);
        let batches: Vec<_> = batches.collect();
        assert!(batches.iter().all(|(x, _)| x.shares_storage(data.inputs())));
        assert_eq!(batches[1], (Tensor::from([[4.0, 5.0], [6.0, 7.0]]), Tensor::from([2, 3])));
        assert_eq!(batches[2], (Tensor::from([[8.0, 9.0]]), Tensor::from([4])));
        assert_eq!(numbered(0).batches(2).count(), 0);
    }

    #[test]
    fn every_shuffling_has_an_order_of_its_own_that_its_seed_tells() {
        let (data, mut generator) = (numbered(50), Generator::new(1));
        let (first, second) = (data.shuffled(&mut generator).unwrap(), data.shuffled(&mut generator).unwrap());
        assert_ne!(first, second);
        assert_eq!(data.shuffled(&mut Generator::from_state(1, 49)).unwrap(), second);
    }

    #[test]
    fn wrong_counts_and_classes_are_refused() {
        let error = Dataset::new(Tensor::<f32>::zeros([3, 2]), Tensor::zeros([4])).unwrap_err();
        assert_eq!(error.to_string(), "inputs of shape [3, 2] need one target for each sample, got [4]");
        let file = tempfile::NamedTempFile::new().unwrap();
        for (contents, expected) in [
            ("1,2\n3,10\n", ", line 2: the last column is to be a class from 0 to 9, found 10"),
            ("1,0.5\n", ", line 1: the last column is to be a class from 0 to 9, found 0.5"),
            ("1,-1\n", ", line 1: the last column is to be a class from 0 to 9, found -1"),
            ("1\n2\n", " needs two columns or more"),
        ] {
            std::fs::write(&file, contents).unwrap();
            let error = Dataset::<f32>::read_csv(&file, 10).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
        std::fs::write(&file, "1,2,0\n3,4,9\n").unwrap();
        let expected = Dataset::new(Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([0, 9])).unwrap();
        assert_eq!(Dataset::<f32>::read_csv(&file, 10).unwrap(), expected);
    }
}
