//! A trained table whose rows are read by index.

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Embedding as _, EmbeddingOptions};
use wengert_tensor::{Float, Generator, Tensor};

use crate::Result;
use crate::layers::embedding::row_limit::RowLimit;
use crate::layers::forward::{add_layer_context, output_of};
use crate::module::Module;

/// A trained table whose rows are read by index: from indices `[…]` to `[…, embedding_dim]`. PyTorch: `torch.nn.Embedding`, but without its
/// option `sparse`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Embedding, Generator};
///
/// let generator = &mut Generator::new(0);
/// let words: Embedding = Embedding::builder(1000, 64).padding_idx(0).build(generator);
/// let tape = Tape::new();
/// let y = words.forward(&tape, &Tensor::from([[5, 17, 3], [8, 0, 0]]));
/// assert_eq!(y.shape(), [2, 3, 64]);
/// assert_eq!(y.value().select(0, 1).select(0, 2), Tensor::zeros([64])); // padding
/// ```
#[derive(Clone, Debug, Module)]
pub struct Embedding<T: Float = f32> {
    /// The table, `[num_embeddings, embedding_dim]`.
    pub weight: Parameter<T>,
    /// The index of the padding row, which gets no gradient, and whether gradients are divided by the frequency of an index.
    #[module(skip)]
    pub options: EmbeddingOptions,
    /// The upper bound on the norm of a row of the table, if there is one.
    #[module(skip)]
    pub limit: Option<RowLimit>,
}

/// The settings of an [`Embedding`] before it is built.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingBuilder {
    sizes: [usize; 2],
    options: EmbeddingOptions,
    max_norm: Option<f64>,
    norm_type: f64,
}

impl<T: Float> Embedding<T> {
    /// Returns a table of `num_embeddings` rows of `embedding_dim` elements, drawn from the standard normal distribution as in PyTorch.
    /// [`builder`](Embedding::builder) gives a builder for other settings.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the table.
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize, generator: &mut Generator) -> Self {
        Embedding::<f32>::builder(num_embeddings, embedding_dim).build(generator)
    }

    /// Returns a layer with an existing table, `[num_embeddings, embedding_dim]`. The table is frozen, so it is not trained. PyTorch:
    /// `from_pretrained`.
    ///
    /// The public fields hold PyTorch's other arguments. `layer.weight.set_frozen(false)` is `freeze=False`.
    /// `layer.options.padding_idx = Some(row)` stops the gradient of a row, and `layer.limit` is the bound on the norm of rows.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Embedding, RowLimit};
    ///
    /// let mut layer = Embedding::from_pretrained(Tensor::from([[0.0f32, 0.0], [3.0, 4.0]]));
    /// layer.weight.set_frozen(false);
    /// layer.options.padding_idx = Some(0);
    /// layer.limit = Some(RowLimit { max_norm: 10.0, norm_type: 2.0 });
    /// assert_eq!(layer.forward(&Tape::new(), &Tensor::from([1])).value(), Tensor::from([[3.0, 4.0]]));
    /// ```
    ///
    /// # Panics
    ///
    /// If the table does not have two dimensions.
    #[track_caller]
    pub fn from_pretrained(table: Tensor<T>) -> Self {
        let shape = table.shape();
        assert!(shape.rank() == 2, "Embeddings parameter is expected to be 2-dimensional, but got shape {shape}");
        let mut weight = Parameter::new(table);
        weight.set_frozen(true);
        Embedding { weight, options: EmbeddingOptions::default(), limit: None }
    }
}

impl Embedding<f32> {
    /// Returns the settings of a table of `num_embeddings` rows of `embedding_dim` elements. [`EmbeddingBuilder::build`] chooses the
    /// element type.
    pub fn builder(num_embeddings: usize, embedding_dim: usize) -> EmbeddingBuilder {
        let (sizes, options) = ([num_embeddings, embedding_dim], EmbeddingOptions::default());
        EmbeddingBuilder { sizes, options, max_norm: None, norm_type: 2.0 }
    }
}

impl EmbeddingBuilder {
    /// Sets the index of the padding row. All elements of this row are 0 and stay 0, because the row gets no gradient.
    #[must_use]
    pub fn padding_idx(mut self, row: usize) -> Self {
        self.options.padding_idx = Some(row as isize);
        self
    }

    /// Sets whether the gradient of each row is divided by the number of times that the row's index occurs in a call; false by default.
    #[must_use]
    pub fn scale_grad_by_freq(mut self, scale: bool) -> Self {
        self.options.scale_grad_by_freq = scale;
        self
    }

    /// Sets an upper bound on the norm of rows. A row with a larger norm is scaled down to this norm when it is read. The forward pass does not
    /// change the table; [`Embedding::renormalize`] scales the table itself.
    #[must_use]
    pub fn max_norm(mut self, max_norm: f64) -> Self {
        self.max_norm = Some(max_norm);
        self
    }

    /// Sets p of the p-norm for [`max_norm`](Self::max_norm); 2, the Euclidean norm, by default.
    #[must_use]
    pub fn norm_type(mut self, norm_type: f64) -> Self {
        self.norm_type = norm_type;
        self
    }

    /// Builds the layer.
    ///
    /// # Panics
    ///
    /// If the padding row is outside of the table, or there is not enough memory for the table.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> Embedding<T> {
        let padding = self.options.padding_idx.map(|row| row as usize);
        let weight = Parameter::new(initial_table(self.sizes, padding, generator));
        let limit = self.max_norm.map(|max_norm| RowLimit { max_norm, norm_type: self.norm_type });
        Embedding { weight, options: self.options, limit }
    }
}

#[twins]
impl<T: Float> Embedding<T> {
    /// Returns the rows of the table with these `indices`, as a variable `[…, embedding_dim]` on `tape`.
    ///
    /// # Errors
    ///
    /// If an index is out of range, the [`max_norm`](EmbeddingBuilder::max_norm) is negative or NaN, the
    /// [`norm_type`](EmbeddingBuilder::norm_type) is NaN, or there is not enough memory.
    pub fn try_forward<'t>(&self, tape: &'t Tape<T>, indices: &Tensor<i64>) -> Result<Var<'t, T>> {
        let table = tape.try_parameter(&self.weight)?;
        output_of(self, self.embed(table, indices), self.weight.created_at(), || self.describe(indices))
    }

    /// Scales the rows of the table with these `indices` down to [`max_norm`](EmbeddingBuilder::max_norm) if their norm is larger. The other
    /// rows do not change. Without a `max_norm`, nothing changes.
    ///
    /// PyTorch scales these rows of the table in each forward pass. For the same training as in PyTorch, call this function before each forward
    /// pass, with the same indices.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Embedding, Generator};
    ///
    /// let mut words: Embedding<f64> = Embedding::builder(2, 2).max_norm(1.0).build(&mut Generator::new(0));
    /// words.weight.value = Tensor::from([[3.0, 4.0], [6.0, 8.0]]);
    /// let indices = Tensor::from([0]);
    /// let read = words.forward(&Tape::new(), &indices).value();
    /// assert!((read - Tensor::from([[0.6, 0.8]])).abs().amax(..).item() < 1e-7);
    /// assert_eq!(words.weight.value.to_vec(), [3.0, 4.0, 6.0, 8.0]);
    /// words.renormalize(&indices);
    /// assert!((words.weight.value - Tensor::from([[0.6, 0.8], [6.0, 8.0]])).abs().amax(..).item() < 1e-7);
    /// ```
    ///
    /// # Errors
    ///
    /// With a `max_norm`: if an index is out of range, the `max_norm` is negative or NaN, the `norm_type` is NaN, or
    /// there is not enough memory.
    pub fn try_renormalize(&mut self, indices: &Tensor<i64>) -> Result<()> {
        if let Some(limit) = self.limit {
            let table = limit.renormalize_rows(&self.weight.value, indices);
            self.weight.value = add_layer_context(table, self.weight.created_at(), || self.describe(indices))?;
        }
        Ok(())
    }

    /// Returns the rows of `table` with these `indices`. Rows that exceed the limit of their norm are scaled down.
    #[track_caller]
    fn embed<'t>(&self, table: Var<'t, T>, indices: &Tensor<i64>) -> Result<Var<'t, T>, TapeError> {
        let rows = table.try_embedding(indices, self.options)?;
        match self.limit {
            Some(limit) => limit.limit_rows(rows),
            None => Ok(rows),
        }
    }

    /// Returns the description of the layer and its indices for an error.
    fn describe(&self, indices: &Tensor<i64>) -> String {
        let sizes = self.weight.value.shape();
        format!("Embedding({}, {}) on indices of shape {}", sizes[0], sizes[1], indices.shape())
    }
}

/// Returns a table of `sizes` drawn from the standard normal distribution, with zeros in the row `padding`.
#[track_caller]
pub(crate) fn initial_table<T: Float>(
    sizes: [usize; 2],
    padding: Option<usize>,
    generator: &mut Generator,
) -> Tensor<T> {
    let table = Tensor::randn(sizes, generator);
    let Some(padding) = padding else { return table };
    assert!(padding < sizes[0], "padding_idx {padding} must be within the {} rows of the embedding", sizes[0]);
    let mut values = table.to_vec();
    values[padding * sizes[1]..(padding + 1) * sizes[1]].fill(T::ZERO);
    Tensor::from_vec(values, sizes)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use crate::layers::embedding::{Embedding, EmbeddingBuilder};
    use crate::layers::testing::{close, gradients};

    #[test]
    fn rows_and_their_gradients() {
        let mut layer: Embedding<f64> = Embedding::builder(3, 2).padding_idx(2).build(&mut Generator::new(1));
        assert_eq!(layer.weight.value.select(0, 2).to_vec(), [0.0, 0.0]);
        layer.weight.value = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        let tape = Tape::new();
        let y = layer.forward(&tape, &Tensor::from([[1, 1], [2, 0]]));
        assert_eq!(y.value(), Tensor::from([[[3.0, 4.0], [3.0, 4.0]], [[5.0, 6.0], [1.0, 2.0]]]));
        assert_eq!(y.sum(..).backward().of(&layer.weight).to_vec(), [1.0, 1.0, 2.0, 2.0, 0.0, 0.0]);
        layer.options.scale_grad_by_freq = true;
        let y = layer.forward(&tape, &Tensor::from([1, 1, 0]));
        assert_eq!(y.sum(..).backward().of(&layer.weight).to_vec(), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
        gradients(&mut Embedding::new(3, 2, &mut Generator::new(1)), |layer, tape| {
            layer.forward(tape, &Tensor::from([2, 0, 2]))
        });
    }

    /// The expected values come from PyTorch 2.15, which adds 1e-7 to the norm.
    #[test]
    fn rows_with_a_larger_norm_are_scaled() {
        let table = Tensor::from([[3.0, 4.0], [0.3, 0.4], [-6.0, 8.0]]);
        let indices = Tensor::from([0, 1, 0]);
        let layer = |builder: EmbeddingBuilder| {
            let mut layer: Embedding<f64> = builder.build(&mut Generator::new(1));
            layer.weight.value = table.clone();
            layer
        };
        let mut euclidean = layer(Embedding::builder(3, 2).max_norm(1.0));
        let tape = Tape::new();
        let y = euclidean.forward(&tape, &indices);
        let [x0, x1] = [0.5999999880000002, 0.7999999840000003];
        close(&y.value(), &[x0, x1, 0.3, 0.4, x0, x1], 1e-15);
        // The gradient with respect to a scaled row goes to the row of the table unchanged, without the factor of the scaling.
        let gradients = (y * &Tensor::<f64>::arange(6).reshape([3, 2])).sum(..).backward();
        assert_eq!(gradients.of(&euclidean.weight).to_vec(), [4.0, 6.0, 2.0, 3.0, 0.0, 0.0]);
        drop(gradients);
        euclidean.renormalize(&indices);
        close(&euclidean.weight.value, &[x0, x1, 0.3, 0.4, -6.0, 8.0], 1e-15);
        let once = euclidean.weight.value.clone();
        euclidean.renormalize(&indices);
        assert_eq!(euclidean.weight.value, once);
        assert!(euclidean.try_renormalize(&Tensor::from([3])).unwrap_err().to_string().contains("Embedding(3, 2)"));

        let sums = layer(Embedding::builder(3, 2).max_norm(1.0).norm_type(1.0)).forward(&tape, &indices);
        let [x0, x1] = [0.42857142244897967, 0.5714285632653062];
        close(&sums.value(), &[x0, x1, 0.3, 0.4, x0, x1], 1e-15);
        let mut none = layer(Embedding::builder(3, 2));
        none.renormalize(&indices);
        assert_eq!(none.weight.value, table);
    }

    #[test]
    fn tables_are_random_or_given() {
        let table = Embedding::<f64>::new(100, 100, &mut Generator::new(1)).weight.value;
        // The bounds are four standard deviations over 10,000 elements: 4 / 100 for the mean, and 4 · √2 / 100 for the variance, rounded up.
        assert!(table.mean(..).item().abs() < 0.04 && (table.var(.., 1.0).item() - 1.0).abs() < 0.06);
        let given = Embedding::from_pretrained(table.clone());
        assert!(given.weight.is_frozen() && given.weight.value == table);
    }

    #[test]
    #[should_panic(expected = "Embeddings parameter is expected to be 2-dimensional, but got shape [4]")]
    fn a_table_that_is_not_a_matrix_is_refused() {
        Embedding::from_pretrained(Tensor::<f64>::zeros([4]));
    }

    #[test]
    fn errors_name_the_layer() {
        let layer = Embedding::<f64>::new(3, 2, &mut Generator::new(1));
        let text = layer.try_forward(&Tape::new(), &Tensor::from([3])).unwrap_err().to_string();
        assert!(text.contains("in the layer Embedding(3, 2) on indices of shape [1], made at"), "{text}");
    }

    #[test]
    #[should_panic(expected = "padding_idx 3 must be within the 3 rows of the embedding")]
    fn a_padding_row_outside_of_the_table_panics() {
        let _: Embedding = Embedding::builder(3, 2).padding_idx(3).build(&mut Generator::new(1));
    }

    #[test]
    fn a_limit_that_is_no_norm_is_an_error() {
        for (max_norm, norm_type, expected) in [
            (-1.0, 2.0, "max_norm must be 0 or more, but got -1"),
            (f64::NAN, 2.0, "max_norm must be 0 or more, but got NaN"),
            (1.0, f64::NAN, "norm_type must be a number, but got NaN"),
        ] {
            let builder = Embedding::builder(3, 2).max_norm(max_norm).norm_type(norm_type);
            let mut layer: Embedding<f64> = builder.build(&mut Generator::new(1));
            let indices = Tensor::from([1]);
            let text = layer.try_forward(&Tape::new(), &indices).unwrap_err().to_string();
            assert!(text.contains(expected) && text.contains("Embedding(3, 2)"), "{text}");
            assert!(layer.try_renormalize(&indices).is_err());
        }
    }
}
