//! Decompositions of matrices, and the functions that need them.
//!
//! Each operation works on the last two dimensions, and the dimensions before are a batch. Tensors compute it at once, variables record
//! it. All operations have derivatives of every order in both modes, unless their page says otherwise.
//!
//! ```
//! # use wengert_linalg as linalg;
//! # mod wengert { pub use wengert_tensor::prelude; }
//! use linalg::prelude::*;
//! use wengert::prelude::*;
//!
//! let a = Tensor::from([[2.0, 1.0], [1.0, 2.0]]);
//! let (values, vectors) = a.eigh(Uplo::Lower);
//! assert!((values.to_vec()[0] - 1.0f64).abs() < 1e-15);
//! let back = (&vectors * values.unsqueeze(-2)).matmul(vectors.t());
//! assert!((back - &a).abs().amax(..).item() < 1e-15);
//! ```
//!
//! | subject | items |
//! |---|---|
//! | QR, eigenvalues, singular values, the exponential | [`Decompositions`] |
//! | least squares, the pseudoinverse, the rank | [`LeastSquaresProblems`] |
//! | norms and condition numbers of matrices | [`MatrixNorms`] |

mod array;
mod kernels;
mod matrices;
mod numerics;
mod operations;

pub use array::Array;
pub use operations::decompositions::{Decompositions, QrMode, Uplo};
pub use operations::least_squares::{LeastSquares, LeastSquaresProblems, Tolerance};
pub use operations::matrix_norms::{MatrixNorms, MatrixOrder};

/// The traits of the operations, and the types of their arguments.
pub mod prelude {
    pub use crate::{Decompositions as _, LeastSquaresProblems as _, MatrixNorms as _};
    pub use crate::{MatrixOrder, QrMode, Tolerance, Uplo};
}

/// Panics with the error.
#[track_caller]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
