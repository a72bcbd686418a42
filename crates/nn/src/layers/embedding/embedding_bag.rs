//! A layer that returns sums, means or maxima of rows of a trained table.

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Embedding as _, EmbeddingOptions, Indexing as _, Scatter as _, Views as _};
use wengert_tensor::{Float, Generator, Tensor};

use crate::Result;
use crate::layers::embedding::bags::Bags;
use crate::layers::embedding::embedding::initial_table;
use crate::layers::embedding::row_limit::RowLimit;
use crate::layers::forward::{add_layer_context, layer_error, output_of};
use crate::module::Module;

/// The reduction of a bag of rows to one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BagMode {
    /// The sum of the rows; 0 for an empty bag.
    Sum,
    /// The mean of the rows; 0 for an empty bag.
    #[default]
    Mean,
    /// The maximum of each column of the rows; 0 for an empty bag.
    Max,
}

/// A layer that returns one row for each bag of indices: the sum, mean or maximum of the table's rows with these indices. PyTorch:
/// `torch.nn.EmbeddingBag`, but without its option `sparse`.
///
/// If the indices are `[bags, n]`, each row is a bag. If the indices are `[n]`, the bags are adjacent ranges of the indices, and `offsets` has the
/// position where each bag begins.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{BagMode, EmbeddingBag, Generator};
///
/// let mut words: EmbeddingBag<f64> = EmbeddingBag::builder(3, 1).mode(BagMode::Sum).build(&mut Generator::new(0));
/// words.weight.value = Tensor::from([[1.0], [10.0], [100.0]]);
/// let tape = Tape::new();
/// let y = words.forward(&tape, &Tensor::from([[0, 1], [2, 2]]), None, None);
/// assert_eq!(y.value().to_vec(), [11.0, 200.0]);
/// let y = words.forward(&tape, &Tensor::from([0, 1, 2]), Some(&Tensor::from([0, 1, 1])), None);
/// assert_eq!(y.value().to_vec(), [1.0, 0.0, 110.0]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct EmbeddingBag<T: Float = f32> {
    /// The table, `[num_embeddings, embedding_dim]`.
    pub weight: Parameter<T>,
    #[module(skip)]
    settings: EmbeddingBagBuilder,
}

/// The settings of an [`EmbeddingBag`] before it is built.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingBagBuilder {
    sizes: [usize; 2],
    mode: BagMode,
    padding_idx: Option<usize>,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    max_norm: Option<f64>,
    norm_type: f64,
}

impl<T: Float> EmbeddingBag<T> {
    /// Returns a layer that computes means, with a table of `num_embeddings` rows of `embedding_dim` elements, drawn from the standard normal
    /// distribution as in PyTorch. [`builder`](EmbeddingBag::builder) gives a builder for other settings.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the table.
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize, generator: &mut Generator) -> Self {
        EmbeddingBag::<f32>::builder(num_embeddings, embedding_dim).build(generator)
    }
}

impl EmbeddingBag<f32> {
    /// Returns the settings of a table of `num_embeddings` rows of `embedding_dim` elements. [`EmbeddingBagBuilder::build`] chooses the
    /// element type.
    pub fn builder(num_embeddings: usize, embedding_dim: usize) -> EmbeddingBagBuilder {
        EmbeddingBagBuilder {
            sizes: [num_embeddings, embedding_dim],
            mode: BagMode::Mean,
            padding_idx: None,
            scale_grad_by_freq: false,
            include_last_offset: false,
            max_norm: None,
            norm_type: 2.0,
        }
    }
}

impl EmbeddingBagBuilder {
    /// Chooses whether the layer returns sums, means or maxima of the rows of each bag; means by default.
    #[must_use]
    pub fn mode(self, mode: BagMode) -> Self {
        EmbeddingBagBuilder { mode, ..self }
    }

    /// Sets the index of the padding row, which is left out of every bag. All elements of this row are 0, and the row gets no gradient.
    #[must_use]
    pub fn padding_idx(self, row: usize) -> Self {
        EmbeddingBagBuilder { padding_idx: Some(row), ..self }
    }

    /// Sets whether the gradient of each row is divided by the number of times that the row's index occurs in a call; false by default. PyTorch
    /// does not allow it with maxima.
    #[must_use]
    pub fn scale_grad_by_freq(self, scale: bool) -> Self {
        EmbeddingBagBuilder { scale_grad_by_freq: scale, ..self }
    }

    /// Sets whether `offsets` has one more offset at the end, which is the end of the last bag; false by default. Indices after it are not
    /// read.
    #[must_use]
    pub fn include_last_offset(self, include: bool) -> Self {
        EmbeddingBagBuilder { include_last_offset: include, ..self }
    }

    /// Sets an upper bound on the norm of rows. A row with a larger norm is scaled down to this norm when it is read. The forward pass does not
    /// change the table; [`EmbeddingBag::renormalize`] scales the table itself.
    #[must_use]
    pub fn max_norm(self, max_norm: f64) -> Self {
        EmbeddingBagBuilder { max_norm: Some(max_norm), ..self }
    }

    /// Sets p of the p-norm for [`max_norm`](Self::max_norm); 2, the Euclidean norm, by default.
    #[must_use]
    pub fn norm_type(self, norm_type: f64) -> Self {
        EmbeddingBagBuilder { norm_type, ..self }
    }

    /// Returns the upper bound on the norm of a row, if there is one.
    fn limit(&self) -> Option<RowLimit> {
        Some(RowLimit { max_norm: self.max_norm?, norm_type: self.norm_type })
    }

    /// Builds the layer.
    ///
    /// # Panics
    ///
    /// If the padding row is outside of the table, or there is not enough memory for the table.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> EmbeddingBag<T> {
        let weight = Parameter::new(initial_table(self.sizes, self.padding_idx, generator));
        EmbeddingBag { weight, settings: self }
    }
}

#[twins]
impl<T: Float> EmbeddingBag<T> {
    /// Returns one row for each bag, as a variable `[bags, embedding_dim]` on `tape`. The indices are `[bags, n]` without `offsets`, and `[n]`
    /// with `offsets`. `per_sample_weights` has the shape of the indices. If it is given, the table's row for an index is multiplied by the index's
    /// weight before the sum.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit or an index is out of range. If offsets descend, do not begin with 0, or are larger
    /// than the number of indices. Also if `per_sample_weights` are given and the mode is not [`BagMode::Sum`], the
    /// [`max_norm`](EmbeddingBagBuilder::max_norm) is negative or NaN, the
    /// [`norm_type`](EmbeddingBagBuilder::norm_type) is NaN, or there is not enough memory.
    pub fn try_forward<'t>(
        &self,
        tape: &'t Tape<T>,
        indices: &Tensor<i64>,
        offsets: Option<&Tensor<i64>>,
        per_sample_weights: Option<Var<'t, T>>,
    ) -> Result<Var<'t, T>> {
        let table = tape.try_parameter(&self.weight)?;
        let created_at = self.weight.created_at();
        output_of(self, self.reduce_bags(table, indices, offsets, per_sample_weights), created_at, || {
            self.describe(indices)
        })
    }

    /// Scales the rows of the table with these `indices` down to the limit of their norm, as
    /// [`Embedding::renormalize`](crate::Embedding::renormalize) does.
    ///
    /// # Errors
    ///
    /// With a `max_norm`: if an index is out of range, the `max_norm` is negative or NaN, the `norm_type` is NaN, or
    /// there is not enough memory.
    pub fn try_renormalize(&mut self, indices: &Tensor<i64>) -> Result<()> {
        if let Some(limit) = self.settings.limit() {
            let table = limit.renormalize_rows(&self.weight.value, indices);
            self.weight.value = add_layer_context(table, self.weight.created_at(), || self.describe(indices))?;
        }
        Ok(())
    }

    /// Returns the description of the layer and its indices for an error.
    fn describe(&self, indices: &Tensor<i64>) -> String {
        let [rows, width] = self.settings.sizes;
        format!("EmbeddingBag({rows}, {width}) on indices of shape {}", indices.shape())
    }

    /// Reads the rows with these `indices` from `table`, and returns the sum, mean or maximum of each bag.
    #[track_caller]
    fn reduce_bags<'t>(
        &self,
        table: Var<'t, T>,
        indices: &Tensor<i64>,
        offsets: Option<&Tensor<i64>>,
        weights: Option<Var<'t, T>>,
    ) -> Result<Var<'t, T>, TapeError> {
        let settings = self.settings;
        let bags = Bags::new(indices, offsets, settings.include_last_offset, settings.padding_idx)?;
        let options = EmbeddingOptions { scale_grad_by_freq: settings.scale_grad_by_freq, ..Default::default() };
        let mut rows = table.try_embedding(&Tensor::from(&bags.indices[..]), options)?;
        if let Some(limit) = settings.limit() {
            rows = limit.limit_rows(rows)?;
        }
        if let Some(weights) = weights {
            if settings.mode != BagMode::Sum || weights.shape() != *indices.shape() {
                let message = format!(
                    "per_sample_weights need the mode Sum and the shape of the indices, {}, but got {} with {:?}",
                    indices.shape(),
                    weights.shape(),
                    settings.mode
                );
                return Err(layer_error("embedding_bag", message));
            }
            let kept = weights.try_reshape([-1])?.try_index_select(0, &Tensor::from(&bags.positions[..]))?;
            rows = rows.try_mul(kept.try_unsqueeze(1)?)?;
        }
        if settings.mode == BagMode::Max {
            return bags.maxima(rows);
        }
        let zeros = table.tape().try_constant(&Tensor::try_full([bags.counts.len(), rows.shape()[1]], T::ZERO)?)?;
        let sums = zeros.try_index_add(0, &Tensor::from(&bags.bag_numbers[..]), rows, 1.0)?;
        if settings.mode == BagMode::Sum {
            return Ok(sums);
        }
        let counts = bags.counts.iter().map(|&count| T::from_f64(count.max(1) as f64)).collect();
        sums.try_div(&Tensor::try_from_vec(counts, [bags.counts.len(), 1])?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, gradients};

    fn bag(builder: EmbeddingBagBuilder) -> EmbeddingBag<f64> {
        let mut bag = builder.build(&mut Generator::new(1));
        bag.weight.value = Tensor::from([[1.0, -2.0], [3.0, 4.0], [5.0, -6.0]]);
        bag
    }

    #[test]
    fn sums_means_and_maxima() {
        let (tape, indices, offsets) = (Tape::new(), Tensor::from([0, 1, 1, 2]), Tensor::from([0, 1, 1]));
        let value = |mode: BagMode| {
            bag(EmbeddingBag::builder(3, 2).mode(mode)).forward(&tape, &indices, Some(&offsets), None).value()
        };
        close(&value(BagMode::Sum), &[1.0, -2.0, 0.0, 0.0, 11.0, 2.0], 0.0);
        close(&value(BagMode::Mean), &[1.0, -2.0, 0.0, 0.0, 11.0 / 3.0, 2.0 / 3.0], 1e-15);
        close(&value(BagMode::Max), &[1.0, -2.0, 0.0, 0.0, 5.0, 4.0], 0.0);
        let rows = Tensor::from([[0, 2], [1, 1]]);
        let means = bag(EmbeddingBag::builder(3, 2)).forward(&tape, &rows, None, None).value();
        close(&means, &[3.0, -4.0, 3.0, 4.0], 0.0);
    }

    #[test]
    fn padding_weights_and_the_last_offset() {
        let tape = Tape::new();
        let padded = EmbeddingBag::builder(3, 2).padding_idx(1);
        assert_eq!(padded.build::<f64>(&mut Generator::new(1)).weight.value.select(0, 1).to_vec(), [0.0, 0.0]);
        let padded = bag(padded);
        let y = padded.forward(&tape, &Tensor::from([[0, 1], [1, 1]]), None, None);
        close(&y.value(), &[1.0, -2.0, 0.0, 0.0], 0.0);
        assert_eq!(y.sum(..).backward().of(&padded.weight).to_vec(), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);

        let sums = bag(EmbeddingBag::builder(3, 2).mode(BagMode::Sum).padding_idx(1).include_last_offset(true));
        let weights = tape.var(&Tensor::from([10.0, 7.0, 100.0]));
        let offsets = Tensor::from([0, 2, 3]);
        let y = sums.forward(&tape, &Tensor::from([0, 1, 2]), Some(&offsets), Some(weights));
        close(&y.value(), &[10.0, -20.0, 500.0, -600.0], 0.0);
        assert_eq!(y.sum(..).backward().of(weights).to_vec(), [-1.0, 0.0, -1.0]);
    }

    /// As in PyTorch, a batch without indices has a gradient of zeros, so that an optimiser can make its step.
    #[test]
    fn a_batch_of_empty_bags_has_zeros_as_gradient() {
        for mode in [BagMode::Sum, BagMode::Mean, BagMode::Max] {
            let bag = bag(EmbeddingBag::builder(3, 2).mode(mode).padding_idx(1));
            for (indices, offsets) in [
                (Tensor::from([[1, 1]]), None),
                (Tensor::from(Vec::<i64>::new()), Some(Tensor::from([0]))),
                (Tensor::zeros([0, 2]), None),
            ] {
                let tape = Tape::new();
                let y = bag.forward(&tape, &indices, offsets.as_ref(), None);
                assert_eq!(y.value(), Tensor::zeros([usize::from(indices.shape()[0] > 0 || offsets.is_some()), 2]));
                assert_eq!(*y.sum(..).backward().of(&bag.weight), Tensor::zeros([3, 2]), "{mode:?}");
            }
        }
    }

    /// The expected values come from PyTorch 2.15.
    #[test]
    fn rows_with_a_larger_norm_are_scaled() {
        let mut bag = bag(EmbeddingBag::builder(3, 2).mode(BagMode::Sum).padding_idx(2).max_norm(1.0));
        bag.weight.value = Tensor::from([[3.0, 4.0], [0.3, 0.4], [-6.0, 8.0]]);
        let indices = Tensor::from([[0, 2], [1, 0]]);
        let y = bag.forward(&Tape::new(), &indices, None, None).value();
        close(&y, &[0.5999999880000002, 0.7999999840000003, 0.8999999880000003, 1.1999999840000002], 1e-15);
        bag.renormalize(&indices);
        let table = [0.5999999880000002, 0.7999999840000003, 0.3, 0.4, -0.5999999940000001, 0.7999999920000002];
        close(&bag.weight.value, &table, 1e-15);
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for mode in [BagMode::Sum, BagMode::Mean, BagMode::Max] {
            gradients(&mut bag(EmbeddingBag::builder(3, 2).mode(mode)), |bag, tape| {
                bag.forward(tape, &Tensor::from([2, 0, 1, 1]), Some(&Tensor::from([0, 3])), None)
            });
        }
    }

    #[test]
    fn wrong_shapes_offsets_and_weights_are_errors() {
        let (bag, tape) = (bag(EmbeddingBag::builder(3, 2)), Tape::new());
        let text = |indices: Tensor<i64>, offsets: Option<Tensor<i64>>, weights: Option<Var<'_, f64>>| {
            bag.try_forward(&tape, &indices, offsets.as_ref(), weights).unwrap_err().to_string()
        };
        let flat = || Tensor::from([0, 1, 2]);
        let shape = text(flat(), None, None);
        assert!(shape.contains("[n] with offsets [bags], but got indices [3] and offsets None"), "{shape}");
        assert!(shape.contains("in the layer EmbeddingBag(3, 2) on indices of shape [3], made at"), "{shape}");
        assert!(text(flat(), Some(Tensor::from([1])), None).contains("offsets must ascend from 0 to at most 3"));
        assert!(text(flat(), Some(Tensor::from([0, 4])), None).contains("offsets must ascend"));
        let weights = tape.var(&Tensor::ones([3]));
        assert!(text(flat(), Some(Tensor::from([0])), Some(weights)).contains("per_sample_weights need the mode Sum"));
        assert!(text(Tensor::from([[0, 3]]), None, None).contains("index out of range in self"));
    }

    #[test]
    fn more_indices_than_memory_holds_are_an_error() {
        let (mut bag, tape) = (bag(EmbeddingBag::builder(3, 2).max_norm(1.0)), Tape::new());
        let many = Tensor::scalar(1i64).expand([1usize << 50]);
        let rows = many.unsqueeze(0);
        assert!(bag.try_forward(&tape, &rows, None, None).is_err());
        assert!(bag.try_forward(&tape, &Tensor::from([0, 1]), Some(&many), None).is_err());
        assert!(bag.try_renormalize(&rows).is_err());
    }
}
