//! Data sets of inputs and targets.

use std::path::Path;

use wengert_tensor::{Float, Generator, Tensor};

use crate::data::dataset::Dataset;
use crate::data::rows::for_each_row;
use crate::data::split::{self, HeldOut};
use crate::normalize::Normalize;
use crate::{Error, Result};

/// Inputs and targets: two data sets of the same length, such as tensors of any element type, sequences, or tuples of data sets. PyTorch:
/// `TensorDataset`, `StackDataset`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{DataLoader, Dataset, Generator, Samples};
/// use wengert::prelude::*;
///
/// // The targets are numbers; classes would be a `Tensor<i64>`.
/// let x = Tensor::<f32>::randn([100, 3], &mut Generator::new(0));
/// let y = x.sum(1);
/// let (train, test) = Samples::new(x, y)?.random_split(0.2, &mut Generator::new(1))?;
/// assert_eq!(train.inputs().shape(), &[80, 3]);
/// for batch in DataLoader::new(test, 8).epoch(0) {
///     let (inputs, targets) = batch?;
///     assert_eq!(inputs.sum(1), targets);
/// }
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// A model with several inputs or several targets gets them as tuples:
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{DataLoader, Samples};
/// use wengert::prelude::*;
///
/// let (users, films) = (Tensor::from([7, 7, 2]), Tensor::from([30, 12, 30]));
/// let stars = Tensor::from([4.0f32, 1.0, 5.0]);
/// let data = Samples::new((users, films), stars)?;
/// let ((users, films), stars) = DataLoader::new(data, 2).epoch(0).next().unwrap()?;
/// assert_eq!((users, films, stars), (Tensor::from([7, 7]), Tensor::from([30, 12]), Tensor::from([4.0, 1.0])));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[doc(alias("TensorDataset", "StackDataset"))]
#[derive(Clone, Debug, PartialEq)]
pub struct Samples<X = Tensor<f32>, Y = Tensor<i64>> {
    inputs: X,
    targets: Y,
}

impl<X: Dataset, Y: Dataset> Samples<X, Y> {
    /// Pairs each input with the target at the same index.
    ///
    /// # Errors
    ///
    /// If there are not as many targets as inputs, or the parts of a tuple have different lengths.
    pub fn new(inputs: X, targets: Y) -> Result<Self> {
        let (found, expected) = (targets.try_len()?, inputs.try_len()?);
        if found != expected {
            return Err(Error::Dataset(format!(
                "expected one target for each of {expected} inputs, but got {found} targets"
            )));
        }
        Ok(Samples { inputs, targets })
    }

    /// Returns the inputs.
    pub fn inputs(&self) -> &X {
        &self.inputs
    }

    /// Returns the targets.
    pub fn targets(&self) -> &Y {
        &self.targets
    }

    /// Returns samples with the same targets and the inputs that `change` returns, for example reshaped or scaled. `change` is called once,
    /// with all inputs. For a change of each batch see [`DataLoader::map`](crate::DataLoader::map). PyTorch: `transform`, which changes one
    /// sample.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Samples;
    /// use wengert::prelude::*;
    ///
    /// let rows = Samples::new(Tensor::<f32>::full([10, 64], 16.0), Tensor::<i64>::zeros([10]))?;
    /// let images = rows.map_inputs(|x| x.view([-1, 1, 8, 8]) / 16.0)?;
    /// assert_eq!(images.inputs(), &Tensor::ones([10, 1, 8, 8]));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `change` returns another number of inputs.
    pub fn map_inputs<Z: Dataset>(self, change: impl FnOnce(X) -> Z) -> Result<Samples<Z, Y>> {
        Samples::new(change(self.inputs), self.targets)
    }
}

impl<X: Dataset, Y: Dataset> Dataset for Samples<X, Y> {
    type Batch = (X::Batch, Y::Batch);

    fn len(&self) -> usize {
        self.targets.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
        Ok((self.inputs.batch(indices)?, self.targets.batch(indices)?))
    }

    fn subset(&self, indices: &[usize]) -> Result<Self> {
        Ok(Samples { inputs: self.inputs.subset(indices)?, targets: self.targets.subset(indices)? })
    }
}

impl<X: Dataset> Samples<X, Tensor<i64>> {
    /// Holds out as many samples as [`random_split`](Dataset::random_split), with the classes in nearly the same proportion in both parts.
    /// Both parts keep the order of the samples; see [`split::stratified`].
    ///
    /// # Errors
    ///
    /// As for `random_split`. Also if a class has a single sample.
    pub fn stratified_split(&self, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::stratified(&self.targets, held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }
}

impl<T: Float, Y: Dataset> Samples<Tensor<T>, Y> {
    /// Returns the same samples with normalized inputs.
    ///
    /// # Errors
    ///
    /// If the shape of the inputs does not fit `normalize`, or there is not enough memory.
    #[track_caller]
    pub fn normalized(self, normalize: &Normalize<T>) -> Result<Self> {
        Ok(Samples { inputs: normalize.apply(&self.inputs)?, targets: self.targets })
    }
}

impl<T: Float> Samples<Tensor<T>, Tensor<i64>> {
    /// Reads a table of comma-separated numbers (see [`read_table`](crate::read_table)). Each row is a sample. Its last
    /// column is the class, from 0 to `classes` - 1. For a table with a header see [`Table`](crate::Table).
    ///
    /// # Errors
    ///
    /// As for [`read_table`](crate::read_table). Also for a table of one column ([`Error::Table`]), and for a class
    /// that is not an integer from 0 to `classes` - 1 ([`Error::Class`], with the line).
    pub fn read_csv(path: impl AsRef<Path>, classes: usize) -> Result<Self> {
        read_csv(path.as_ref(), classes)
    }
}

/// Reads samples from a table, as [`Samples::read_csv`] documents.
#[wengert_macros::precompiled]
fn read_csv<T: Float>(path: &Path, classes: usize) -> Result<Samples<Tensor<T>, Tensor<i64>>> {
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    let (rows, columns) = for_each_row::<T>(path, &mut |line, row| {
        let (found, features) = match row {
            [features @ .., class] if !features.is_empty() => (*class, features),
            _ => return Err(Error::Table { path: path.to_owned(), problem: "needs at least two columns" }),
        };
        if found.fract() != 0.0 || !(0.0..classes as f64).contains(&found) {
            return Err(Error::Class { path: path.to_owned(), line, classes, found });
        }
        inputs.extend(features.iter().map(|&value| T::from_f64(value)));
        targets.push(found as i64);
        Ok(())
    })?;
    Samples::new(Tensor::try_from_vec(inputs, [rows, columns - 1])?, Tensor::from(targets))
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::Views;

    use super::*;

    /// Returns `n` samples; sample i is [2i, 2i + 1] with the class i.
    fn numbered(n: usize) -> Samples<Tensor<f64>> {
        Samples::new(Tensor::arange(2 * n).reshape([n, 2]), Tensor::arange(n)).unwrap()
    }

    #[test]
    fn a_split_has_every_sample_once() {
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
    fn wrong_counts_and_classes_are_errors() {
        let error = Samples::new(Tensor::<f32>::zeros([3, 2]), Tensor::<i64>::zeros([4])).unwrap_err();
        assert_eq!(error.to_string(), "expected one target for each of 3 inputs, but got 4 targets");
        let error = numbered(4).map_inputs(|x| x.flatten(0, 1)).unwrap_err();
        assert_eq!(error.to_string(), "expected one target for each of 8 inputs, but got 4 targets");
        assert!(Tensor::scalar(1.0).subset(&[]).is_err());
        assert!(numbered(3).batch(&[3]).is_err());
        assert!(numbered(3).subset(&[2, 3]).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        for (contents, expected) in [
            ("1,2\n3,10\n", ", line 2: expected a class from 0 to 9 in the last column, found 10"),
            ("1,0.5\n", ", line 1: expected a class from 0 to 9 in the last column, found 0.5"),
            ("1,-1\n", ", line 1: expected a class from 0 to 9 in the last column, found -1"),
            ("1\n2\n", " needs at least two columns"),
        ] {
            std::fs::write(&file, contents).unwrap();
            let error = Samples::<Tensor<f32>>::read_csv(&file, 10).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
        std::fs::write(&file, "1,2,0\n3,4,9\n").unwrap();
        let expected = Samples::new(Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([0, 9])).unwrap();
        assert_eq!(Samples::<Tensor<f32>>::read_csv(&file, 10).unwrap(), expected);
    }
}
