//! Linear algebra: factors, solutions, inverses and determinants of matrices. PyTorch: `torch.linalg`.
//!
//! The last two dimensions of an array are a matrix, and the dimensions before them are a batch. Each operation is a method of tensors and
//! of recorded variables, except for the function [`multi_dot`]. The derivatives consist of recorded operations, so they have derivatives
//! too.
//!
//! ```
//! # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
//! use wengert::linalg::prelude::*;
//! use wengert::prelude::*;
//!
//! let a = Tensor::from([[4.0, 2.0], [2.0, 3.0]]);
//! let b = Tensor::from([8.0, 8.0]);
//! assert!((a.solve(&b) - Tensor::from([1.0, 2.0])).abs().amax(..).item() < 1e-15);
//!
//! // The derivative of log |A| is the inverse of A, transposed.
//! let tape = Tape::<f64>::new();
//! let x = tape.var(&a);
//! let [dx] = x.slogdet()[1].grad([x]);
//! assert!((dx.value() - a.inv().t()).abs().amax(..).item() < 1e-15);
//! ```
//!
//! | subject | methods |
//! |---|---|
//! | systems of equations | [`solve`](Solving::solve), [`solve_triangular`](Solving::solve_triangular), [`cholesky_solve`](Solving::cholesky_solve), [`lu_solve`](Solving::lu_solve), [`tensorsolve`](TensorEquations::tensorsolve) |
//! | factors | [`cholesky`](Factoring::cholesky), [`lu`](Factoring::lu), [`lu_factor`](Factoring::lu_factor) |
//! | inverses and powers | [`inv`](Inverting::inv), [`matrix_power`](Inverting::matrix_power), [`tensorinv`](TensorEquations::tensorinv) |
//! | QR, eigenvalues, singular values, the exponential | [`Decompositions`] |
//! | least squares, the pseudoinverse, the rank | [`LeastSquaresProblems`] |
//! | norms and condition numbers of matrices | [`MatrixNorms`] |
//! | products of several matrices | [`multi_dot`] |
//! | determinants | [`det`](Determinants::det), [`slogdet`](Determinants::slogdet), [`logdet`](Determinants::logdet) |
//!
//! The crate has three folders. `operations` has the public methods and checks their arguments. `kernels` has the primitives, which compute
//! batches with tensors and have derivative rules. `numerics` computes with matrices in slices.

mod array;
mod batches;
mod kernel;
mod kernels;
mod matrices;
mod numerics;
mod operations;
mod simd;
mod triangle;

pub use array::Array;
pub use operations::decompositions::{Decompositions, QrMode};
pub use operations::determinants::Determinants;
pub use operations::factoring::Factoring;
pub use operations::inverting::Inverting;
pub use operations::least_squares::{LeastSquares, LeastSquaresProblems, Tolerance};
pub use operations::matrix_norms::{MatrixNorms, MatrixOrder};
pub use operations::multi_dot::{multi_dot, try_multi_dot};
pub use operations::solving::Solving;
pub use operations::tensor_equations::TensorEquations;
pub use triangle::{Triangle, TriangularSystem};

/// The traits of all operations, imported without their names, and the types of their arguments.
pub mod prelude {
    pub use crate::{Decompositions as _, LeastSquaresProblems as _, MatrixNorms as _};
    pub use crate::{Determinants as _, Factoring as _, Inverting as _, Solving as _, TensorEquations as _};
    pub use crate::{MatrixOrder, QrMode, Tolerance, Triangle};
}

/// Panics with the full text of `error`. Functions that return no `Result` call this function. The panic names the line that calls `raise`,
/// or the next caller outside of functions with `#[track_caller]`.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
