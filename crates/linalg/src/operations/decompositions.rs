//! QR, eigenvalues, singular values and the exponential.

use wengert_macros::twins;
use wengert_tensor::ops::{Result, try_cat};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Site};

use crate::array::{Array, apply, apply_several};
use crate::kernels::eigh::{Eigh, Eigvalsh};
use crate::kernels::exponential::MatrixExp;
use crate::kernels::qr::Qr;
use crate::kernels::svd::{Svd, Svdvals};
use crate::matrices::{check_rank, check_square};
use crate::triangle::Triangle;

/// The shapes of Q and R. PyTorch: the argument `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QrMode {
    /// For a matrix `[m, n]` and k = min(m, n): Q `[m, k]` and R `[k, n]`.
    #[default]
    Reduced,
    /// A square Q `[m, m]`, and R `[m, n]`.
    Complete,
    /// R `[k, n]`, and an empty Q `[0]`.
    R,
}

/// Decompositions of matrices, and functions of matrices.
///
/// The last two dimensions are the matrices, the dimensions before are a batch. The product of the computed factors differs from the matrix
/// by at most 10 n ε times the matrix's largest element. Here n is the larger size, and ε is the distance from 1 to the next number. The
/// inner products of computed vectors differ from 0 or 1 by at most 10 n ε. The tests check these bounds.
///
/// Eigenvalue and singular value problems return an error for elements that are NaN or infinite, or if the iteration does not converge. For
/// a variable, these errors occur when the variable's value is computed. (PyTorch's `eigh` returns numbers for some of these matrices.)
#[twins]
pub trait Decompositions: Array {
    /// Returns Q with orthonormal columns and the upper triangle R, with Q R = A.
    ///
    /// The signs on the diagonal of R are LAPACK's. Each diagonal element has the opposite sign of the first element of its column before
    /// the column's Householder reflection. If the elements below are zeros, it equals this first element. The shapes follow from the
    /// [`QrMode`]. A NaN in a column of A gives NaN in the same column of R.
    ///
    /// The derivative exists if the first min(m, n) columns of A are linearly independent. [`QrMode::Complete`] has no derivative for
    /// matrices with more rows than columns, and their gradient panics. [`QrMode::R`] has a derivative, unlike in PyTorch. PyTorch:
    /// `torch.linalg.qr`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[3.0, 1.0], [4.0, 2.0]]);
    /// let (q, r) = a.qr(QrMode::Reduced);
    /// assert!((r.get(&[0, 0]).unwrap() + 5.0f64).abs() < 1e-14);
    /// assert!((q.matmul(&r) - &a).abs().amax(..).item() < 1e-14);
    /// ```
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, or there is not enough memory.
    fn try_qr(&self, mode: QrMode) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("qr");
        check_rank("linalg.qr", "A", &self.shape(), at)?;
        let [q, r] = apply_several(Qr { complete: mode == QrMode::Complete }, &[self], at)?;
        if mode == QrMode::R {
            return Ok((self.constant(&Tensor::zeros([0])), r));
        }
        Ok((q, r))
    }

    /// Returns the eigenvalues `[…, n]` of symmetric matrices `[…, n, n]` in ascending order, and orthonormal eigenvectors `[…, n, n]` as
    /// columns: A = V diag(λ) Vᵀ. Only the triangle `triangle` of A is read.
    ///
    /// The sign of each eigenvector is arbitrary. The eigenvectors of equal eigenvalues are an arbitrary orthonormal basis. So only
    /// functions of the vectors that do not depend on these choices have a derivative. If eigenvalues are exactly equal, the rule leaves
    /// out the infinite terms. Then gradients through the values are right, but gradients through the vectors lack terms. PyTorch gives
    /// infinities or NaN in this case. As in PyTorch, the gradient assumes that A stays symmetric when it changes. PyTorch:
    /// `torch.linalg.eigh`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[2.0, 1.0], [1.0, 2.0]]);
    /// let (values, vectors) = a.eigh(Triangle::Lower);
    /// assert!((&values - Tensor::from([1.0, 3.0])).abs().amax(..).item() < 1e-14);
    /// let back = (&vectors * values.unsqueeze(-2)).matmul(vectors.t());
    /// assert!((back - &a).abs().amax(..).item() < 1e-14);
    /// ```
    ///
    /// # Errors
    ///
    /// If A is not square, an element of the triangle is NaN or infinite, the iteration does not converge, or there is not
    /// enough memory.
    fn try_eigh(&self, triangle: Triangle) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("eigh");
        check_square("linalg.eigh", &self.shape(), at)?;
        let [values, vectors] = apply_several(Eigh { upper: triangle == Triangle::Upper }, &[self], at)?;
        Ok((values, vectors))
    }

    /// Returns the eigenvalues `[…, n]` of symmetric matrices in ascending order, without eigenvectors. The first derivative exists even if
    /// eigenvalues are equal. PyTorch: `torch.linalg.eigvalsh`.
    ///
    /// # Errors
    ///
    /// If A is not square, an element of the triangle is NaN or infinite, the iteration does not converge, or there is not
    /// enough memory.
    fn try_eigvalsh(&self, triangle: Triangle) -> Result<Self> {
        let at = Site::here("eigvalsh");
        check_square("linalg.eigh", &self.shape(), at)?;
        apply(Eigvalsh(Eigh { upper: triangle == Triangle::Upper }), &[self], at)
    }

    /// Returns U, the singular values σ in descending order, and Vᵀ, with A = U diag(σ) Vᵀ. For matrices `[…, m, n]` and k = min(m, n),
    /// these have the shapes `[…, m, k]`, `[…, k]` and `[…, k, n]`. With `full_matrices`, U is `[…, m, m]` and Vᵀ is `[…, n, n]`.
    ///
    /// The common sign of a left singular vector and its right singular vector is arbitrary. The vectors of equal singular values are an
    /// arbitrary orthonormal basis. So only functions that do not depend on these choices have a derivative. The rule leaves out quotients
    /// by singular values of 0 and by differences of equal values. Then gradients through the values are right, but gradients through the
    /// vectors lack terms. PyTorch gives infinities or NaN in this case. PyTorch: `torch.linalg.svd`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]]);
    /// let (u, s, vh) = a.svd(false);
    /// assert_eq!((u.shape(), s.to_vec(), vh.shape()), (&[3, 2].into(), vec![4.0, 3.0], &[2, 2].into()));
    /// ```
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, an element is NaN or infinite, the iteration does not converge, or there is not
    /// enough memory.
    fn try_svd(&self, full_matrices: bool) -> Result<(Self, Self, Self), Self::Error> {
        let at = Site::here("svd");
        check_rank("linalg.svd", "A", &self.shape(), at)?;
        let [u, values, vh] = apply_several(Svd { full: full_matrices }, &[self], at)?;
        Ok((u, values, vh))
    }

    /// Returns the singular values `[…, k]` of matrices `[…, m, n]` in descending order, without singular vectors; k = min(m, n). The first
    /// derivative exists even if values are equal. PyTorch: `torch.linalg.svdvals`.
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, an element is NaN or infinite, the iteration does not converge, or there is not
    /// enough memory.
    fn try_svdvals(&self) -> Result<Self> {
        let at = Site::here("svdvals");
        check_rank("linalg.svd", "A", &self.shape(), at)?;
        apply(Svdvals, &[self], at)
    }

    /// Returns the matrix exponential I + A + A² / 2 + A³ / 6 + … of square matrices.
    ///
    /// The algorithm is scaling and squaring. Relative to the norm of the result, the error is a few ε times the norm of A. All elements of
    /// the result are NaN if an element of the matrix is NaN or infinite. The same holds if the sum of the magnitudes in a column
    /// overflows. PyTorch: `torch.linalg.matrix_exp`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[0.0, 1.0], [0.0, 0.0]]);
    /// assert_eq!(a.matrix_exp(), Tensor::from([[1.0, 1.0], [0.0, 1.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If A is not square, or there is not enough memory.
    fn try_matrix_exp(&self) -> Result<Self> {
        let at = Site::here("matrix_exp");
        check_square("linalg.matrix_exp", &self.shape(), at)?;
        apply(MatrixExp, &[self], at)
    }

    /// Returns the Vandermonde matrices of vectors: vectors `[…, n]` give matrices `[…, n, count]`. Column k has the elements of the vector
    /// to the power k, for k from 0 to `count` - 1. The default of `count` is n. PyTorch: `torch.linalg.vander`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::from([2.0, 3.0]);
    /// assert_eq!(x.vander(3), Tensor::from([[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If `count` is below 2, `self` has no dimension, or there is not enough memory. (PyTorch treats an array without
    /// dimensions as a vector with one element.)
    fn try_vander(&self, count: impl Into<Option<usize>>) -> Result<Self> {
        let at = Site::here("vander");
        let shape = self.shape();
        let count = count.into().or(shape.last().copied()).unwrap_or(1);
        if count < 2 || shape.rank() == 0 {
            return Err(Error::Argument { message: "N must be greater than 1.".into(), at }.into());
        }
        let one = self.constant(&Tensor::scalar(Self::Elem::ONE)).try_expand(&shape)?.try_unsqueeze(-1)?;
        let mut wide = shape.clone();
        wide.push(count - 1);
        let powers = self.try_unsqueeze(-1)?.try_expand(&wide)?.try_cumprod(-1)?;
        try_cat(&[one, powers], -1)
    }
}

impl<A: Array> Decompositions for A {}
