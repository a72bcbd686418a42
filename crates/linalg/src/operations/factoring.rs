//! Factors of matrices: the Cholesky factor, and the factors P L U.

use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Diagonals as _, Views as _};
use wengert_tensor::{Error, Scalar as _, Shape, Site, Tensor};

use crate::array::{Array, apply};
use crate::kernels::cholesky::Cholesky;
use crate::kernels::lu::{SingularPolicy, lu_factor, permutation};
use crate::matrices::{argument_error, check_square, matrix_size};

/// Factors of matrices. The last two dimensions are the matrix, and all others are a batch.
#[twins(blanket)]
pub trait Factoring: Array {
    /// Returns the Cholesky factor of symmetric positive-definite matrices `[…, n, n]`: the lower triangular L with A = L Lᵀ. Reads only
    /// the lower triangle of A. PyTorch: `linalg.cholesky`.
    ///
    /// The upper triangular U with A = Uᵀ U is the transpose of L (PyTorch: `upper=True`). If only the upper triangle of A is filled,
    /// transpose A first.
    ///
    /// The gradient is symmetric, as in PyTorch. Its formula is in I. Murray, "Differentiation of the Cholesky decomposition" (2016).
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[4.0, 2.0], [2.0, 10.0]]);
    /// assert_eq!(a.cholesky(), Tensor::from([[2.0, 0.0], [1.0, 3.0]]));
    ///
    /// let error = Tensor::from([[1.0, 2.0], [2.0, 1.0]]).try_cholesky().unwrap_err();
    /// assert_eq!(
    ///     error.sentence(),
    ///     "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading \
    ///      minor of order 2 is not positive-definite)."
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, a matrix is not positive-definite, or there is not enough memory. A matrix with
    /// a NaN in its lower triangle is not positive-definite. For a variable, the error of a matrix that is not
    /// positive-definite occurs when the variable's value is computed.
    fn try_cholesky(&self) -> Result<Self, Self::Error> {
        let at = Site::here("cholesky");
        check_square("linalg.cholesky", &self.shape(), at)?;
        apply(Cholesky, &[self], at)
    }

    /// Returns the factors `[P, L, U]` of matrices `[…, m, n]` with A = P L U. With k = min(m, n), P is a permutation matrix `[…, m, m]`,
    /// L `[…, m, k]` is lower triangular with ones on its diagonal, and U `[…, k, n]` is upper triangular. Singular matrices have these
    /// factors too. PyTorch: `linalg.lu`.
    ///
    /// The derivatives of L and U are not finite for singular matrices. P has no derivative.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[1.0, 2.0], [4.0, 4.0]]);
    /// let [p, l, u] = a.lu();
    /// assert_eq!(p, Tensor::from([[0.0, 1.0], [1.0, 0.0]]));
    /// assert_eq!(l, Tensor::from([[1.0, 0.0], [0.25, 1.0]]));
    /// assert_eq!(u, Tensor::from([[4.0, 4.0], [0.0, 1.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the array has fewer than two dimensions, or there is not enough memory.
    fn try_lu(&self) -> Result<[Self; 3], Self::Error> {
        let at = Site::here("lu");
        check_matrix("linalg.lu", &self.shape(), at)?;
        let (rows, columns) = matrix_size(&self.shape());
        let k = rows.min(columns);
        let [lu, pivots] = lu_factor(self, SingularPolicy::Accepted, at)?;
        let one = |index: &[usize]| if index[0] == index[1] { Self::Elem::ONE } else { Self::Elem::ZERO };
        let eye = Tensor::try_from_fn([rows, k], one)?;
        let l = lu.try_narrow(-1, 0, k)?.try_tril(-1)?.try_add(&self.try_constant(&eye)?)?;
        Ok([permutation(&pivots, rows, at)?, l, lu.try_narrow(-2, 0, k)?.try_triu(0)?])
    }

    /// Returns L and U of matrices `[…, m, n]` in one matrix `[…, m, n]`, and the row exchanges `[…, min(m, n)]`. The part below the
    /// diagonal is L, without its diagonal of ones. The rest is U. Element i of the exchanges is the number of the row with which row i was
    /// exchanged. Both count from 1, as in LAPACK. PyTorch: `linalg.lu_factor`, whose row exchanges are integers.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[1.0, 2.0], [4.0, 4.0]]);
    /// let [lu, pivots] = a.lu_factor();
    /// assert_eq!(lu, Tensor::from([[4.0, 4.0], [0.25, 1.0]]));
    /// assert_eq!(pivots.to_vec(), [2.0, 2.0]);
    /// assert_eq!(lu.lu_solve(&pivots, Tensor::from([[3.0], [8.0]])), Tensor::from([[1.0], [1.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the array has fewer than two dimensions, U has a zero on its diagonal, or there is not enough memory. For a
    /// variable, the error of a zero occurs when the variable's value is computed.
    fn try_lu_factor(&self) -> Result<[Self; 2], Self::Error> {
        let at = Site::here("lu_factor");
        check_matrix("torch.lu_factor", &self.shape(), at)?;
        lu_factor(self, SingularPolicy::LuFactor, at)
    }
}

fn check_matrix(operation: &str, shape: &Shape, at: Site) -> Result<(), Error> {
    if shape.rank() >= 2 {
        return Ok(());
    }
    let message = "Expected tensor with 2 or more dimensions. Got size:";
    Err(argument_error(at, format!("{operation}: {message} {shape} instead")))
}
