//! The trait of data sets.

use wengert_tensor::ops::{Indexing, Views};
use wengert_tensor::{Element, Generator, Tensor};

use crate::data::split::{self, HeldOut};
use crate::{Error, Result};

/// A data set. Its samples are numbered from 0. PyTorch: `torch.utils.data.Dataset`, which returns one sample at a time.
///
/// A [`Tensor`] is a data set; dimension 0 counts the samples. [`Samples`](crate::Samples) pairs two data sets, inputs
/// and targets. [`Sequences`](crate::Sequences) have different lengths. A [`DataLoader`](crate::DataLoader) makes
/// batches.
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
    /// share is neither 0 nor 1 and one part would be empty.
    fn random_split(&self, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::random(self.len(), held_out, generator)?;
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
