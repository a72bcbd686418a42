//! The trait of data sets.

use wengert_tensor::ops::{Indexing, Views};
use wengert_tensor::{Element, Generator, Tensor};

use crate::data::split::{self, HeldOut};
use crate::{Error, Result};

/// A data set. Its samples are numbered from 0. PyTorch: `torch.utils.data.Dataset`, which returns one sample at a time.
///
/// A [`Tensor`] is a data set; dimension 0 counts the samples. A tuple of two to four data sets of the same length is a data set, whose
/// batches are tuples. [`Samples`](crate::Samples) pairs two data sets, inputs and targets. [`Sequences`](crate::Sequences) is a data set of
/// sequences of different lengths. [`ConcatDataset`](crate::ConcatDataset) joins data sets whose batches are tensors or tuples of tensors. A
/// [`DataLoader`](crate::DataLoader) makes batches.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{DataLoader, Dataset, Result};
/// use wengert::prelude::*;
///
/// /// Points of a parabola, computed for each batch.
/// struct Parabola(Vec<usize>);
///
/// impl Dataset for Parabola {
///     type Batch = (Tensor<f32>, Tensor<f32>);
///
///     fn len(&self) -> usize {
///         self.0.len()
///     }
///
///     fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
///         let x = Tensor::from_fn([indices.len()], |i| self.0[indices[i[0]]] as f32);
///         let y = x.square();
///         Ok((x, y))
///     }
///
///     fn subset(&self, indices: &[usize]) -> Result<Self> {
///         Ok(Parabola(indices.iter().map(|&index| self.0[index]).collect()))
///     }
/// }
///
/// let loader = DataLoader::new(Parabola((0..5).collect()), 2);
/// let (x, y) = loader.epoch(0).last().unwrap()?;
/// assert_eq!((x.to_vec(), y.to_vec()), (vec![4.0], vec![16.0]));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data set",
    label = "neither a tensor, nor a tuple of data sets, nor another data set",
    note = "a type of your own needs `impl Dataset for …` with the type `Batch` and the functions `len`, `batch` and `subset`",
    note = "a data set owns its tensors: write `x.clone()` instead of `&x`, which copies no elements",
    note = "a tuple has two to four data sets; for more of them, make a tuple of tuples"
)]
pub trait Dataset: Sized + Send + Sync + 'static {
    /// The type of a batch, for example a tensor, or inputs and targets.
    type Batch: Send + 'static;

    /// Returns the number of samples.
    fn len(&self) -> usize;

    /// Returns the samples with the indices `indices` as a batch, in this order. PyTorch: `__getitems__` and `collate_fn`.
    ///
    /// # Errors
    ///
    /// If an index is out of range, the samples cannot be read or do not fit into one batch, or there is not enough
    /// memory.
    fn batch(&self, indices: &[usize]) -> Result<Self::Batch>;

    /// Returns the samples with the indices `indices` as a data set, in this order. PyTorch: `torch.utils.data.Subset`.
    ///
    /// # Errors
    ///
    /// If an index is out of range, or there is not enough memory.
    fn subset(&self, indices: &[usize]) -> Result<Self>;

    /// Returns the number of samples, or an error if the parts of the data set have different lengths. By default, returns [`len`](Self::len),
    /// which is right for a data set that has no parts or checks them earlier.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Dataset;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::<f32>::zeros([3, 2]);
    /// assert_eq!((x.clone(), Tensor::from([1, 0, 1])).try_len()?, 3);
    /// assert!((x, Tensor::from([1, 0])).try_len().is_err());
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the parts of a tuple have different lengths.
    fn try_len(&self) -> Result<usize> {
        Ok(self.len())
    }

    /// Returns true if there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Splits the samples at random. The second part is the share `held_out` of the samples, from 0 to 1, rounded up to whole samples, or
    /// `held_out` samples if it is an integer. The first part is the rest. PyTorch: `torch.utils.data.random_split`. For other splits see
    /// [`split`](mod@crate::split).
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{Dataset, Generator, Samples};
    /// use wengert::prelude::*;
    ///
    /// let data = Samples::new(Tensor::<f32>::zeros([100, 64]), Tensor::<i64>::zeros([100]))?;
    /// let (train, test) = data.random_split(0.25, &mut Generator::new(0))?;
    /// assert_eq!((train.len(), test.len()), (75, 25));
    /// let (train, validation) = train.random_split(15, &mut Generator::new(0))?;
    /// assert_eq!((train.len(), validation.len()), (60, 15));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a share is not from 0 to 1, a number of samples is larger than the data set or negative, or there is not enough memory. Also if a
    /// share is neither 0 nor 1 and one part would be empty, or if the parts of a tuple have different lengths.
    fn random_split(&self, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::random(self.try_len()?, held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }

    /// Holds out as many samples as [`random_split`](Self::random_split), with the classes in nearly the same proportion in both parts. Both
    /// parts keep the order of the samples; see [`split::stratified`]. `classes` has one class for each sample. This method is for data sets
    /// whose targets are not a single tensor of classes, but for example a tuple of tensors. scikit-learn:
    /// `train_test_split(stratify=classes)`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{Dataset, Generator, Samples};
    /// use wengert::prelude::*;
    ///
    /// // The targets are two classes. The split keeps the proportion of each pair of classes.
    /// let (colors, sizes) = (Tensor::from([0, 1, 0, 1, 0, 1, 0, 1]), Tensor::from([0, 0, 1, 1, 0, 0, 1, 1]));
    /// let pairs = stack(&[&colors, &sizes], 1).unique_dim(0).1;
    /// let data = Samples::new(Tensor::<f32>::zeros([8, 3]), (colors, sizes))?;
    /// let (train, test) = data.stratified_split_by(&pairs, 0.5, &mut Generator::new(0))?;
    /// assert_eq!((train.len(), test.len()), (4, 4));
    /// let (colors, sizes) = test.targets();
    /// assert_eq!(stack(&[colors, sizes], 1).unique_dim(0).2.to_vec(), [1, 1, 1, 1]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for `random_split`. Also if `classes` does not have one class for each sample, or a class has a single sample.
    fn stratified_split_by(
        &self,
        classes: &Tensor<i64>,
        held_out: impl Into<HeldOut>,
        generator: &mut Generator,
    ) -> Result<(Self, Self)> {
        let (found, expected) = (classes.numel(), self.try_len()?);
        if found != expected {
            return Err(Error::Dataset(format!(
                "expected one class for each of {expected} samples, but got {found} classes"
            )));
        }
        let (rest, part) = split::stratified(classes, held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }
}

/// A tensor is a data set whose samples are counted by dimension 0. A batch of consecutive samples is a view. A tensor of rank 0 has no
/// samples.
#[wengert_macros::precompiled]
impl<E: Element> Dataset for Tensor<E> {
    type Batch = Tensor<E>;

    fn len(&self) -> usize {
        self.shape().first().copied().unwrap_or(0)
    }

    fn batch(&self, indices: &[usize]) -> Result<Tensor<E>> {
        let consecutive = indices.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match (indices.first(), indices.last()) {
            (Some(&first), Some(&last)) if consecutive && last < Dataset::len(self) => {
                Ok(self.try_narrow(0, first, indices.len())?)
            }
            _ => self.subset(indices),
        }
    }

    fn subset(&self, indices: &[usize]) -> Result<Tensor<E>> {
        if self.rank() == 0 {
            return Err(Error::Dataset(
                "a tensor of rank 0 has no samples: a data set needs a dimension that counts them".to_owned(),
            ));
        }
        let positions: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
        Ok(self.try_index_select(0, &Tensor::from(positions))?)
    }
}

/// Implements [`Dataset`] for a tuple of data sets.
macro_rules! tuple {
    ($($part:ident: $position:tt),*) => {
        /// A tuple is a data set. Each of its samples is a tuple of one sample of each part. A batch is a tuple of the batches of the parts. PyTorch:
        /// `StackDataset`, `TensorDataset`.
        ///
        /// [`batch`](Dataset::batch), [`subset`](Dataset::subset) and [`try_len`](Dataset::try_len) return an error if the parts have
        /// different lengths. `len` is then the smallest length.
        impl<$($part: Dataset),*> Dataset for ($($part,)*) {
            type Batch = ($($part::Batch,)*);

            fn len(&self) -> usize {
                [$(self.$position.len()),*].into_iter().fold(usize::MAX, usize::min)
            }

            fn try_len(&self) -> Result<usize> {
                common_length(&[$(self.$position.try_len()?),*])
            }

            fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
                self.try_len()?;
                Ok(($(self.$position.batch(indices)?,)*))
            }

            fn subset(&self, indices: &[usize]) -> Result<Self> {
                self.try_len()?;
                Ok(($(self.$position.subset(indices)?,)*))
            }
        }
    };
}

tuple!(A: 0, B: 1);
tuple!(A: 0, B: 1, C: 2);
tuple!(A: 0, B: 1, C: 2, D: 3);

/// Returns the length of all parts of a tuple, or an error if the lengths are not equal.
fn common_length(lengths: &[usize]) -> Result<usize> {
    let first = lengths.first().copied().unwrap_or(0);
    match lengths.iter().position(|&length| length != first) {
        None => Ok(first),
        Some(position) => Err(Error::Dataset(format!(
            "expected a tuple of data sets of the same length, but part 0 has {first} samples and part {position} has {}",
            lengths[position]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Arithmetic as _, Comparison as _, Views as _};

    use super::*;
    use crate::{DataLoader, Samples, Sequences};

    #[test]
    fn a_tuple_keeps_its_parts_together() {
        let numbers = Tensor::<i64>::arange(10);
        let rows = Tensor::<f64>::arange(20).reshape([10, 2]);
        let data = (numbers.clone(), rows.clone(), (numbers.gt(4), numbers.clone()));
        let (rest, part) = data.random_split(3, &mut Generator::new(0)).unwrap();
        assert_eq!((rest.len(), part.len()), (7, 3));
        let loader = DataLoader::new(rest, 2).shuffle().prefetch(2).workers(2);
        let mut seen = part.0.to_vec();
        for batch in loader.epoch(1) {
            let (number, row, (large, same)) = batch.unwrap();
            assert_eq!(row.select(1, 0), number.cast::<f64>() * 2.0);
            assert_eq!((large, &same), (number.gt(4), &number));
            seen.extend(number.iter());
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..10));
    }

    #[test]
    fn a_split_by_classes_of_any_data_set() {
        let numbers = Tensor::<i64>::arange(12);
        let classes = numbers.remainder(3);
        let data = (numbers.clone(), (numbers.clone(), numbers.cast::<f32>()));
        let (rest, part) = data.stratified_split_by(&classes, 0.25, &mut Generator::new(4)).unwrap();
        let mut held_out: Vec<i64> = part.0.iter().map(|number| number % 3).collect();
        held_out.sort_unstable();
        assert_eq!((rest.len(), held_out), (9, vec![0, 1, 2]));
        assert_eq!((&part.0, part.0.cast::<f32>()), (&part.1.0, part.1.1.clone()));
        let error = data.stratified_split_by(&classes.narrow(0, 0, 11), 0.25, &mut Generator::new(4)).unwrap_err();
        assert_eq!(error.to_string(), "expected one class for each of 12 samples, but got 11 classes");
        let single = Tensor::from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(data.stratified_split_by(&single, 0.25, &mut Generator::new(4)).is_err());
    }

    #[test]
    fn a_tuple_may_have_sequences_and_samples() {
        let words = Sequences::new(vec![Tensor::from([5i64, 3]), Tensor::from([4])], 0).unwrap();
        let scores = Samples::new(Tensor::from([0.5f32, 1.0]), Tensor::from([1, 0])).unwrap();
        let (words, (scores, classes), weights, flags) =
            (words, scores, Tensor::from([1u8, 2]), Tensor::from([true, false])).batch(&[1, 0]).unwrap();
        assert_eq!((words.values, words.lengths), (Tensor::from([[4i64, 0], [5, 3]]), vec![1, 2]));
        assert_eq!((scores, classes), (Tensor::from([1.0, 0.5]), Tensor::from([0, 1])));
        assert_eq!((weights, flags), (Tensor::from([2u8, 1]), Tensor::from([false, true])));
    }

    #[test]
    fn parts_of_different_lengths_are_errors() {
        let data = (Tensor::<i64>::arange(3), Tensor::<f32>::zeros([3, 2]), Tensor::<i64>::arange(4));
        let expected = "expected a tuple of data sets of the same length, but part 0 has 3 samples and part 2 has 4";
        assert_eq!(data.len(), 3);
        assert_eq!(data.try_len().unwrap_err().to_string(), expected);
        assert_eq!(data.batch(&[0]).unwrap_err().to_string(), expected);
        assert_eq!(data.subset(&[0]).unwrap_err().to_string(), expected);
        assert_eq!(data.random_split(1, &mut Generator::new(0)).unwrap_err().to_string(), expected);
        let loader = DataLoader::new(data.clone(), 2);
        assert_eq!(loader.epoch(0).next().unwrap().unwrap_err().to_string(), expected);
        assert_eq!(Samples::new(data.clone(), Tensor::<i64>::arange(3)).unwrap_err().to_string(), expected);
        assert_eq!(Samples::new(Tensor::<i64>::arange(3), data).unwrap_err().to_string(), expected);
    }
}
