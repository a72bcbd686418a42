//! QR, eigenvalues, singular values and the exponential.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, Result, try_cat};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site};

use crate::array::{Array, apply, apply_several};
use crate::kernels::eig::{Eig, Eigvals};
use crate::kernels::eigh::{Eigh, Eigvalsh};
use crate::kernels::exponential::MatrixExp;
use crate::kernels::qr::Qr;
use crate::kernels::svd::{Svd, Svdvals};
use crate::matrices::{argument_error, check_rank, check_square, matrix_size, transposed};
use crate::operations::solving::Solving as _;
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
#[twins(blanket)]
pub trait Decompositions: Array {
    /// Returns Q with orthonormal columns and the upper triangle R, with Q R = A.
    ///
    /// The signs on the diagonal of R are LAPACK's. Each diagonal element has the opposite sign of the element at its place before the
    /// column's Householder reflection. If all elements below are zeros, it keeps this element. The shapes follow from the [`QrMode`]. A
    /// NaN in a column of A gives NaN in the same column of R.
    ///
    /// The derivative exists if the first min(m, n) columns of A are linearly independent. [`QrMode::Complete`] has no derivative for
    /// matrices with more rows than columns, so computing their gradient is an error. [`QrMode::R`] has a derivative, unlike in PyTorch.
    /// PyTorch: `torch.linalg.qr`.
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
            return Ok((self.try_constant(&Tensor::zeros([0]))?, r));
        }
        Ok((q, r))
    }

    /// Returns the first n columns `[…, m, n]` of the product H₀ H₁ … of k Householder reflections, where k ≤ n ≤ m. `self` is `[…, m, n]`,
    /// and `tau` is `[…, k]`. The reflection Hᵢ is I - τᵢ v vᵀ. The vector v has i zeros and a one, followed by the elements of column i of
    /// `self` below its diagonal. The other elements of `self` are not read. PyTorch: `torch.linalg.householder_product`; LAPACK: `orgqr`.
    ///
    /// The product is I - V T Vᵀ with a triangular matrix T (Joffrain et al., "Accumulating Householder transformations, revisited", 2006).
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// // The reflection that exchanges the axes has the vector (1, -1).
    /// let vectors = Tensor::from([[0.0, 0.0], [-1.0, 0.0]]);
    /// let q = vectors.householder_product(Tensor::from([1.0]));
    /// assert_eq!(q, Tensor::from([[0.0, 1.0], [1.0, 0.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the sizes do not fit, the batch dimensions of `self` and `tau` differ, or there is not enough memory.
    fn try_householder_product(&self, tau: impl ArrayOperand<Self>) -> Result<Self> {
        let (tau, at) = (&tau.into_array(self)?, Site::here("householder_product"));
        let (shape, count) = (self.shape(), check_reflections(&self.shape(), &tau.shape(), at)?);
        let (rows, columns) = matrix_size(&shape);
        let unit = self.try_constant(&identity(rows, count)?)?;
        let v = self.try_narrow(-1, 0, count)?.try_tril(-1)?.try_add(&unit)?;
        let scales = tau.try_unsqueeze(-1)?;
        let inner_products = transposed(&v)?.try_matmul(&v)?.try_triu(1)?;
        let diagonal = self.try_constant(&Tensor::try_eye(count)?)?.try_mul(&scales)?;
        let t = scales.try_mul(&inner_products)?.try_solve_triangular(&diagonal, Triangle::Upper.unitriangular())?;
        let top = transposed(&v.try_narrow(-2, 0, columns)?)?;
        self.try_constant(&identity(rows, columns)?)?.try_sub(&v.try_matmul(&t)?.try_matmul(&top)?)
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

    /// Returns the eigenvalues `[…, n]` of symmetric matrices A `[…, n, n]` in ascending order, without eigenvectors. Only the triangle
    /// `triangle` of A is read. The gradient is finite even if eigenvalues are equal. It then depends on an arbitrary choice of eigenvectors,
    /// unless the loss is symmetric in the equal eigenvalues. PyTorch: `torch.linalg.eigvalsh`.
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

    /// Returns the eigenvalues `[…, n, 2]` of square matrices `[…, n, n]`, and the eigenvectors `[…, n, n, 2]` as columns: A V = V diag(λ).
    /// Both are complex numbers: pairs of a real and an imaginary part, as in `torch.view_as_real`. The methods of the crate `wengert-fft` for
    /// complex numbers compute with them.
    ///
    /// The eigenvalues have no particular order, except that the two values of a conjugate pair are adjacent, with the positive imaginary
    /// part first. An eigenvector has the length 1, and its sign is arbitrary; the largest element of a complex one is real. Functions of
    /// the vectors have a derivative only if they do not depend on these choices. If eigenvalues are exactly equal, the rule leaves out the
    /// infinite terms, so gradients through the vectors lack terms. The gradient needs the inverse of V, so it is an error if V is singular
    /// (a matrix without a basis of eigenvectors). PyTorch: `torch.linalg.eig`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let rotation = Tensor::from([[0.0, -1.0], [1.0, 0.0]]); // its eigenvalues are i and -i
    /// let (values, vectors) = rotation.eig();
    /// assert!((values - Tensor::from([[0.0, 1.0], [0.0, -1.0]])).abs().amax(..).item() < 1e-15);
    /// assert_eq!(vectors.shape(), &[2, 2, 2]);
    /// ```
    ///
    /// # Errors
    ///
    /// If A is not square, an element is NaN or infinite, the iteration does not converge, or there is not enough memory.
    fn try_eig(&self) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("eig");
        check_square("linalg.eig", &self.shape(), at)?;
        let [values, vectors] = apply_several(Eig, &[self], at)?;
        Ok((values, vectors))
    }

    /// Returns the eigenvalues `[…, n, 2]` of square matrices `[…, n, n]` as complex numbers, without eigenvectors; see [`eig`](Self::eig).
    /// The largest magnitude is the spectral radius. PyTorch: `torch.linalg.eigvals`.
    ///
    /// # Errors
    ///
    /// If A is not square, an element is NaN or infinite, the iteration does not converge, or there is not enough memory.
    fn try_eigvals(&self) -> Result<Self> {
        let at = Site::here("eigvals");
        check_square("linalg.eigvals", &self.shape(), at)?;
        apply(Eigvals, &[self], at)
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

    /// Returns the singular values `[…, k]` of matrices `[…, m, n]` in descending order, without singular vectors; k = min(m, n). The
    /// gradient is finite even if values are equal. It then depends on an arbitrary choice of singular vectors, unless the loss is symmetric
    /// in the equal values. PyTorch: `torch.linalg.svdvals`.
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
    /// If `count` or its default n is below 2, `self` has no dimension, or there is not enough memory. (PyTorch treats an array without
    /// dimensions as a vector with one element.)
    fn try_vander(&self, count: impl Into<Option<usize>>) -> Result<Self> {
        let at = Site::here("vander");
        let shape = self.shape();
        let count = count.into().or(shape.last().copied()).unwrap_or(1);
        if count < 2 || shape.rank() == 0 {
            return Err(Error::Argument { message: "N must be greater than 1.".into(), at }.into());
        }
        let one = self.try_constant(&Tensor::scalar(Self::Elem::ONE))?.try_expand(&shape)?.try_unsqueeze(-1)?;
        let mut powers_shape = shape.clone();
        powers_shape.push(count - 1);
        let powers = self.try_unsqueeze(-1)?.try_expand(&powers_shape)?.try_cumprod(-1)?;
        try_cat(&[one, powers], -1)
    }
}

/// Returns the number of reflections, the last size of `tau`. Returns an error unless there are at most as many reflections as columns, at
/// most as many columns as rows, and equal batch dimensions.
fn check_reflections(matrices: &Shape, tau: &Shape, at: Site) -> std::result::Result<usize, Error> {
    let refuse = |message: String| Err(argument_error(at, format!("torch.linalg.householder_product: {message}")));
    if matrices.rank() < 2 {
        return refuse("input must have at least 2 dimensions.".into());
    }
    let (rows, columns) = matrix_size(matrices);
    if rows < columns {
        return refuse("input.shape[-2] must be greater than or equal to input.shape[-1]".into());
    }
    let Some(&count) = tau.last() else {
        return Err(argument_error(at, "Dimension specified as -1 but tensor has no dimensions"));
    };
    if count > columns {
        return refuse("input.shape[-1] must be greater than or equal to tau.shape[-1]".into());
    }
    let (rank, tau_rank) = (matrices.rank(), tau.rank());
    if tau_rank + 1 != rank {
        let message = "Expected tau to have one dimension less than input, but got tau.ndim equal to";
        return refuse(format!("{message} {tau_rank} and input.ndim is equal to {rank}"));
    }
    let batch = &tau[..tau_rank - 1];
    if *batch != matrices[..rank - 2] {
        let message = "Expected batch dimensions of tau to be equal to input.shape[:-2], but got";
        return refuse(format!("{message} {batch:?}"));
    }
    Ok(count)
}

/// Returns a matrix `[rows, columns]` with ones on the diagonal and zeros elsewhere. It has at least as many rows as columns.
fn identity<T: Float>(rows: usize, columns: usize) -> std::result::Result<Tensor<T>, Error> {
    try_cat(&[Tensor::try_eye(columns)?, Tensor::try_zeros([rows - columns, columns])?], 0)
}
