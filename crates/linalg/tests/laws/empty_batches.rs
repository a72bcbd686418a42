//! Batches without elements, whose matrices or batch dimensions have huge sizes. The operations tested here return at once: arrays, or an
//! error if the shape does not fit the operation, or memory cannot hold a result.

use wengert_autograd::Tape;
use wengert_linalg::prelude::*;
use wengert_linalg::{QrMode, Tolerance};
use wengert_tensor::Error;
use wengert_tensor::prelude::*;

use super::triangular_system;

type Operation = (&'static str, fn(&Tensor<f64>) -> Result<(), Error>);

const HUGE: usize = 1 << 40;

/// The operations, each on a batch of matrices and, if it has a second operand, on the same batch again.
const OPERATIONS: [Operation; 23] = [
    ("cholesky", |a| a.try_cholesky().map(drop)),
    ("lu", |a| a.try_lu().map(drop)),
    ("lu_factor", |a| a.try_lu_factor().map(drop)),
    ("lu_solve", |a| a.try_lu_solve(Tensor::zeros(&a.shape()[..2]), a).map(drop)),
    ("qr", |a| a.try_qr(QrMode::Reduced).map(drop)),
    ("complete qr", |a| a.try_qr(QrMode::Complete).map(drop)),
    ("eigh", |a| a.try_eigh(wengert_linalg::Triangle::Lower).map(drop)),
    ("eigvalsh", |a| a.try_eigvalsh(wengert_linalg::Triangle::Lower).map(drop)),
    ("eig", |a| a.try_eig().map(drop)),
    ("eigvals", |a| a.try_eigvals().map(drop)),
    ("svd", |a| a.try_svd(false).map(drop)),
    ("full svd", |a| a.try_svd(true).map(drop)),
    ("svdvals", |a| a.try_svdvals().map(drop)),
    ("matrix_exp", |a| a.try_matrix_exp().map(drop)),
    ("det", |a| a.try_det().map(drop)),
    ("slogdet", |a| a.try_slogdet().map(drop)),
    ("inv", |a| a.try_inv().map(drop)),
    ("matrix_power", |a| a.try_matrix_power(-3).map(drop)),
    ("lstsq", |a| a.try_lstsq(a, None).map(drop)),
    ("pinv", |a| a.try_pinv(Tolerance::new()).map(drop)),
    ("matrix_rank", |a| a.try_matrix_rank(Tolerance::new()).map(drop)),
    ("solve", |a| a.try_solve(a).map(drop)),
    ("solve_triangular", |a| a.try_solve_triangular(a, triangular_system(true, true, false)).map(drop)),
];

#[test]
fn no_huge_matrix_overflows() {
    for (name, operation) in OPERATIONS {
        for shape in [[0, HUGE, HUGE], [0, HUGE, 3], [0, 3, HUGE]] {
            let result = operation(&Tensor::zeros(shape));
            let is_possible = matches!(
                result,
                Ok(()) | Err(Error::OutOfMemory { .. } | Error::TooLarge { .. } | Error::Argument { .. })
            );
            assert!(is_possible, "{name}: {result:?}");
        }
    }
    assert_eq!(Tensor::<f64>::zeros([0, HUGE, HUGE]).cholesky().shape(), &[0, HUGE, HUGE]);
}

#[test]
fn many_matrices_without_elements_need_no_computation() {
    for (name, operation) in OPERATIONS {
        let result = operation(&Tensor::zeros([HUGE, 0, 0]));
        assert!(matches!(result, Ok(()) | Err(Error::OutOfMemory { .. })), "{name}: {result:?}");
    }
}

#[test]
fn derivatives_of_no_matrix_are_empty() {
    let tape = Tape::<f64>::new();
    let a = tape.var(&Tensor::zeros([0, HUGE, HUGE]));
    for y in [a.cholesky(), a.inv(), a.solve(a), a.matrix_exp(), a.svd(false).1, a.qr(QrMode::Reduced).1] {
        assert_eq!(y.sum(..).backward().of(a).shape(), &[0, HUGE, HUGE]);
    }
}
