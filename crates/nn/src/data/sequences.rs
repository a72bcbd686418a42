//! Sequences of different lengths, padded to the longest sequence of a batch.

use wengert_tensor::{Element, Shape, Tensor};

use crate::data::dataset::Dataset;
use crate::{Error, Result};

/// A data set of sequences `[length, …]` of different lengths. Batches are padded to their longest sequence. PyTorch: a
/// list of tensors with `pad_sequence` as `collate_fn`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{DataLoader, Samples, Sequences};
/// use wengert::prelude::*;
///
/// let words = vec![Tensor::from([5i64, 3, 7]), Tensor::from([4]), Tensor::from([9, 9])];
/// let data = Samples::new(Sequences::new(words, 0)?, Tensor::from([1, 0, 1]))?;
/// let (x, classes) = DataLoader::new(data, 3).epoch(0).next().unwrap()?;
/// assert_eq!(x.values, Tensor::from([[5i64, 3, 7], [4, 0, 0], [9, 9, 0]]));
/// assert_eq!(x.lengths, [3, 1, 2]);
/// # let _ = classes;
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sequences<E: Element> {
    sequences: Vec<Tensor<E>>,
    padding: E,
}

/// Sequences of different lengths in one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Padded<E: Element> {
    /// The sequences, `[n, longest, …]`, with padding after the end of each.
    pub values: Tensor<E>,
    /// The length of each sequence.
    pub lengths: Vec<usize>,
}

impl<E: Element> Sequences<E> {
    /// Returns a data set of sequences `[length, …]`. Batches pad shorter sequences with `padding`.
    ///
    /// # Errors
    ///
    /// If two sequences differ in a size other than the length, or a sequence has no dimension.
    pub fn new(sequences: Vec<Tensor<E>>, padding: E) -> Result<Self> {
        common_sizes(&sequences)?;
        Ok(Sequences { sequences, padding })
    }

    /// Returns the sequences.
    pub fn sequences(&self) -> &[Tensor<E>] {
        &self.sequences
    }

    /// Returns the sequences with the indices `indices`, or an error if an index is out of range.
    fn select(&self, indices: &[usize]) -> Result<Vec<Tensor<E>>> {
        let n = self.sequences.len();
        let one = |&index: &usize| {
            let sequence = self.sequences.get(index).cloned();
            sequence.ok_or_else(|| Error::Dataset(format!("there is no sample {index} in a data set of {n} samples")))
        };
        indices.iter().map(one).collect()
    }
}

impl<E: Element> Dataset for Sequences<E> {
    type Batch = Padded<E>;

    fn len(&self) -> usize {
        self.sequences.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Padded<E>> {
        pad_sequence(&self.select(indices)?, self.padding)
    }

    fn subset(&self, indices: &[usize]) -> Result<Self> {
        Ok(Sequences { sequences: self.select(indices)?, padding: self.padding })
    }
}

impl<E: Element> Padded<E> {
    /// Returns a mask that is true at the padding, `[n, longest]`. PyTorch: `key_padding_mask`.
    pub fn padding_mask(&self) -> Tensor<bool> {
        let longest = self.values.shape().get(1).copied().unwrap_or(0);
        Tensor::from_fn([self.lengths.len(), longest], |i| i[1] >= self.lengths[i[0]])
    }
}

/// Pads sequences `[length, …]` to one tensor `[n, longest, …]`, with `padding` after the end of each sequence. Without sequences the
/// tensor is `[0, 0]`. PyTorch: `torch.nn.utils.rnn.pad_sequence(batch_first=True)`.
///
/// # Errors
///
/// If two sequences differ in a size other than the length, a sequence has no dimension, or there is not enough memory.
pub fn pad_sequence<E: Element>(sequences: &[Tensor<E>], padding: E) -> Result<Padded<E>> {
    let rest = common_sizes(sequences)?;
    let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.shape()[0]).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut values = Tensor::try_full([&[lengths.len(), longest], &rest[..]].concat(), padding)?;
    let step: usize = rest.iter().product();
    let elements = values.make_mut();
    for (position, sequence) in sequences.iter().enumerate() {
        let start = position * longest * step;
        for (to, from) in elements[start..].iter_mut().zip(sequence.iter()) {
            *to = from;
        }
    }
    Ok(Padded { values, lengths })
}

/// Returns the sizes of all dimensions after the length, or an error if they are not equal for all sequences. Without
/// sequences, there are no sizes.
fn common_sizes<E: Element>(sequences: &[Tensor<E>]) -> Result<Vec<usize>> {
    let Some(first) = sequences.first() else { return Ok(Vec::new()) };
    let rest = |shape: &Shape| shape.get(1..).map(<[usize]>::to_vec);
    match sequences.iter().find(|other| other.rank() == 0 || rest(other.shape()) != rest(first.shape())) {
        None => Ok(rest(first.shape()).unwrap_or_default()),
        Some(other) => {
            let (first, other) = (first.shape(), other.shape());
            Err(Error::Dataset(format!(
                "expected sequences that differ in their first size only, but got {first} and {other}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_padded_after_their_end() {
        let sequences = [Tensor::from([[1.0, 2.0]]), Tensor::zeros([0, 2]), Tensor::from([[3.0, 4.0], [5.0, 6.0]])];
        let padded = pad_sequence(&sequences, -1.0).unwrap();
        let expected = [[[1.0, 2.0], [-1.0, -1.0]], [[-1.0, -1.0], [-1.0, -1.0]], [[3.0, 4.0], [5.0, 6.0]]];
        assert_eq!((&padded.values, &padded.lengths[..]), (&Tensor::from(expected), &[1, 0, 2][..]));
        assert_eq!(padded.padding_mask(), Tensor::from([[false, true], [true, true], [false, false]]));
        assert_eq!(pad_sequence::<i64>(&[], 0).unwrap().values.shape().sizes(), [0, 0]);
    }

    #[test]
    fn a_subset_has_the_same_sequences_and_wrong_shapes_are_errors() {
        let data = Sequences::new(vec![Tensor::from([1i64]), Tensor::from([2, 3])], 9).unwrap();
        assert_eq!(data.subset(&[1, 0]).unwrap().batch(&[0]).unwrap().values, Tensor::from([[2i64, 3]]));
        let text = data.batch(&[2]).unwrap_err().to_string();
        assert_eq!(text, "there is no sample 2 in a data set of 2 samples");
        let text =
            Sequences::new(vec![Tensor::<f32>::zeros([1, 2]), Tensor::zeros([1, 3])], 0.0).unwrap_err().to_string();
        assert_eq!(text, "expected sequences that differ in their first size only, but got [1, 2] and [1, 3]");
        assert!(Sequences::new(vec![Tensor::scalar(1.0)], 0.0).is_err());
    }
}
