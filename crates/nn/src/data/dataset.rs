//! What a data set is: numbered samples, given together as a batch.

use wengert_tensor::ops::{Indexing, Views};
use wengert_tensor::{Element, Generator, Tensor};

use crate::data::split;
use crate::{Error, Result};

/// Samples with numbers from 0. PyTorch: `torch.utils.data.Dataset`, whose samples are given one at a time.
///
/// A [`Tensor`] is a data set, whose samples lie along dimension 0; [`Samples`](crate::Samples) pairs two data sets, inputs and
/// targets; [`Sequences`](crate::Sequences) are of different lengths. A [`DataLoader`](crate::DataLoader) puts them in order and makes
/// batches.
///
/// ```
/// use wengert_nn::{DataLoader, Dataset, Result};
/// use wengert_tensor::prelude::*;
///
/// /// Points of a parabola, computed when they are asked for.
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
pub trait Dataset: Sized + Send + Sync + 'static {
    /// Several samples together: a tensor, or inputs and targets.
    type Batch: Send + 'static;

    /// Number of samples.
    fn len(&self) -> usize;

    /// The samples `indices` together, in that order. PyTorch: `__getitems__` and `collate_fn`.
    ///
    /// # Errors
    ///
    /// If there is no such sample, or it cannot be read.
    fn batch(&self, indices: &[usize]) -> Result<Self::Batch>;

    /// The samples `indices` as a data set, in that order. PyTorch: `torch.utils.data.Subset`.
    ///
    /// # Errors
    ///
    /// If there is no such sample, or memory cannot hold them.
    fn subset(&self, indices: &[usize]) -> Result<Self>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Two parts without a sample in common: the rest, and the share `held_out` (from 0 to 1; rounded up to whole
    /// samples), drawn at random. PyTorch: `torch.utils.data.random_split`. For other splits see [`split`](mod@crate::split).
    ///
    /// ```
    /// use wengert_nn::{Dataset, Generator, Samples};
    /// use wengert_tensor::prelude::*;
    ///
    /// let data = Samples::new(Tensor::<f32>::zeros([100, 64]), Tensor::<i64>::zeros([100]))?;
    /// let (train, test) = data.random_split(0.25, &mut Generator::new(0))?;
    /// assert_eq!((train.len(), test.len()), (75, 25));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `held_out` is not between 0 and 1, or lies strictly between them and one part would still be empty.
    fn random_split(&self, held_out: f64, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::random(self.len(), held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }
}

/// The samples lie along dimension 0. A batch of samples that follow each other is a view. A tensor of rank 0 has none.
impl<E: Element> Dataset for Tensor<E> {
    type Batch = Tensor<E>;

    fn len(&self) -> usize {
        self.shape().first().copied().unwrap_or(0)
    }

    fn batch(&self, indices: &[usize]) -> Result<Tensor<E>> {
        let follow = indices.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match (indices.first(), indices.last()) {
            (Some(&first), Some(&last)) if follow && last < Dataset::len(self) => {
                Ok(self.try_narrow(0, first, indices.len())?)
            }
            _ => self.subset(indices),
        }
    }

    fn subset(&self, indices: &[usize]) -> Result<Tensor<E>> {
        if self.rank() == 0 {
            return Err(Error::Dataset("a tensor of rank 0 has no samples".to_owned()));
        }
        let positions: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
        Ok(self.try_index_select(0, &Tensor::from(positions))?)
    }
}
