//! Embeddings: rows of a table, looked up by index.

use std::collections::HashMap;

use wengert_macros::twins;

use crate::ops::index::positions::check_index;
use crate::ops::{Compose, Result, TensorLike};
use crate::{Error, Float, Scalar, Site, Tensor, ensure};

/// Options for the gradient of [`embedding`](Embedding::embedding).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingOptions {
    /// The index of a row that gets no gradient. Negative indices count from the end.
    pub padding_idx: Option<isize>,
    /// True if the gradient of a row is divided by the number of times that the row's index occurs.
    pub scale_grad_by_freq: bool,
}

/// The lookup of rows in an embedding table.
#[twins(blanket)]
pub trait Embedding: TensorLike<Elem: Float> {
    /// Returns the rows `index` of `self`, a table `[rows, width]`. The result has the shape of `index` followed by `width`. Refuses a `self`
    /// of another rank, and indices or a `padding_idx` out of range. Negative indices do not count from the end. PyTorch's option `max_norm`,
    /// which renormalizes rows, does not exist here. PyTorch: `nn.functional.embedding`, with the arguments swapped.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let table = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let rows = table.embedding(&Tensor::from([1i64, 1, 0]), Default::default());
    /// assert_eq!(rows, Tensor::from([[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]));
    /// ```
    fn try_embedding(&self, index: &Tensor<i64>, options: EmbeddingOptions) -> Result<Self> {
        let at = Site::here("embedding");
        let table = self.shape();
        ensure!(table.rank() == 2, at, "'weight' must be 2-D");
        let rows = table[0] as i64;
        let padding = match options.padding_idx.map(|row| row as i64) {
            Some(row) if !(-rows..rows).contains(&row) => {
                return Err(Error::argument(at, "Padding_idx must be within num_embeddings").into());
            }
            row => row.map(|row| if row < 0 { row + rows } else { row }),
        };
        let index = check_index(index, table[0], 0, |_| "index out of range in self".into(), at)?;
        let mut read = self.apply_index_select(0, &index, at)?;
        let column = || index.shape().replaced(index.rank()..index.rank(), &[1]);
        if options.scale_grad_by_freq {
            let mut counts: HashMap<i64, u32> = HashMap::new();
            index.iter().for_each(|row| *counts.entry(row).or_default() += 1);
            let share = index.iter().map(|row| Self::Elem::from_f64(1.0 / f64::from(counts[&row])));
            let share = Tensor::try_from_vec(share.collect(), column())?;
            let terms = || Ok(vec![(read.clone(), Some(self.try_constant(&share)?.expand_to(&read.shape(), at)?))]);
            read = read.with_derivative(terms, at)?;
        }
        if let Some(padding) = padding.filter(|&padding| index.iter().any(|row| row == padding)) {
            let is_word = index.iter().map(|row| row != padding).collect();
            let mask = self.expand_mask(&Tensor::try_from_vec(is_word, column())?, &read.shape(), at)?;
            read = read.choose(&mask, &read.apply_detach(at)?, at)?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::index::embedding::{Embedding, EmbeddingOptions};
    use crate::prelude::*;

    #[test]
    fn shapes_and_refusals() {
        let table = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let options = EmbeddingOptions { padding_idx: Some(-1), scale_grad_by_freq: true };
        assert_eq!(table.embedding(&Tensor::scalar(1i64), options).to_vec(), [3.0, 4.0]);
        assert_eq!(table.embedding(&Tensor::zeros([2, 0]), options).shape(), &[2, 0, 2]);
        let sentence =
            |index: i64, options| table.try_embedding(&Tensor::scalar(index), options).unwrap_err().sentence();
        assert_eq!(sentence(2, options), "index out of range in self");
        let index = Tensor::from([0, 1, 7]);
        let text = table.try_embedding(&index, options).unwrap_err().to_string();
        assert!(
            text.ends_with("hint: element 2 of the index, in row-major order, is 7; dimension 0 has size 2"),
            "{text}"
        );
        assert_eq!(sentence(-1, options), "index out of range in self");
        let options = EmbeddingOptions { padding_idx: Some(2), ..options };
        assert_eq!(sentence(0, options), "Padding_idx must be within num_embeddings");
    }
}
