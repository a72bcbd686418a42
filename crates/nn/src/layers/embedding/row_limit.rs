//! An upper bound on the norm of the rows of a table.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::ops::{
    Arithmetic as _, Comparison as _, Embedding as _, EmbeddingOptions, Norms as _, Scatter as _, try_where_,
};
use wengert_tensor::{Float, Tensor};

use crate::layers::forward::layer_error;

/// An upper bound on the norm of a row of a table. Rows with a larger norm are scaled down when they are read. PyTorch: `max_norm` and
/// `norm_type`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowLimit {
    /// The largest norm that a row may have. Reading rows is an error if it is negative or NaN.
    pub max_norm: f64,
    /// The order p of the p-norm; 2 is the Euclidean norm. Reading rows is an error if it is NaN.
    pub norm_type: f64,
}

impl RowLimit {
    /// Returns `rows`, `[…, width]`, where each row whose norm is larger than `max_norm` is multiplied by max_norm /
    /// (norm + 1e-7), as in PyTorch. Returns an error if `max_norm` is negative or NaN, or `norm_type` is NaN.
    #[track_caller]
    fn scale_rows<T: Float>(self, rows: &Tensor<T>) -> Result<Tensor<T>, TapeError> {
        let RowLimit { max_norm, norm_type } = self;
        if max_norm.is_nan() || max_norm < 0.0 {
            return Err(layer_error("embedding", format!("max_norm must be 0 or more, but got {max_norm}")));
        }
        if norm_type.is_nan() {
            return Err(layer_error("embedding", format!("norm_type must be a number, but got {norm_type}")));
        }
        let norms = rows.try_vector_norm_keepdim(self.norm_type, -1)?;
        let factors = Tensor::scalar(T::from_f64(self.max_norm)).try_div(&norms.try_add(1e-7)?)?;
        Ok(rows.try_mul(&try_where_(&norms.try_gt(self.max_norm)?, &factors, 1.0)?)?)
    }

    /// Returns `rows`, which were read from a table, scaled down to the limit. The gradient passes through as if there were no scaling. This is
    /// the same in PyTorch, which scales the table before it reads the rows.
    #[track_caller]
    pub(crate) fn limit_rows<'t, T: Float>(self, rows: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let own = rows.try_value()?;
        rows.try_sub(&own)?.try_add(&self.scale_rows(&own)?)
    }

    /// Returns `table` with the rows at `indices` scaled down to the limit. The other rows stay as they are.
    #[track_caller]
    pub(crate) fn renormalize_rows<T: Float>(
        self,
        table: &Tensor<T>,
        indices: &Tensor<i64>,
    ) -> Result<Tensor<T>, TapeError> {
        let mut rows = indices.try_to_vec()?;
        rows.sort_unstable();
        rows.dedup();
        let rows = Tensor::from(&rows[..]);
        let scaled = self.scale_rows(&table.try_embedding(&rows, EmbeddingOptions::default())?)?;
        Ok(table.try_index_copy(0, &rows, &scaled)?)
    }
}
