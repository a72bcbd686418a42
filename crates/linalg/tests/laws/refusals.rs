//! Errors for shapes and matrices that do not fit an operation: PyTorch's messages, and the caller's line.

use wengert_autograd::{Tape, Var};
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

/// Checks that an operation returns an error with the message `sentence` and a line of this file: on tensors, and on variables when it is
/// recorded or evaluated.
macro_rules! assert_refused {
    ($(|$($x:ident),+| $call:expr, [$($input:expr),+] => $sentence:expr;)*) => {$({
        let eager = (|$($x: &Tensor<f64>),+| $call.map(drop).unwrap_err())($(&$input),+);
        assert_eq!(eager.sentence(), $sentence);
        assert!(eager.to_string().contains(file!()), "{eager}");
        let tape = Tape::<f64>::new();
        let recorded = (|$($x: wengert_autograd::Var<'_, f64>),+| match $call {
            Ok(result) => result.try_value().map(drop).unwrap_err(),
            Err(error) => error,
        })($(tape.var(&$input)),+);
        assert_eq!(recorded.sentence(), $sentence);
        assert!(recorded.to_string().contains(file!()), "{recorded}");
    })*};
}

fn ones(shape: &[usize]) -> Tensor<f64> {
    Tensor::ones(shape)
}

fn indefinite() -> Tensor<f64> {
    Tensor::from([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
}

/// Checks error messages. PyTorch 2.15 gives the same messages for the same calls.
#[test]
fn messages_of_each_operation_name_the_callers_file() {
    let pair = wengert_tensor::ops::stack(&[Tensor::eye(3), indefinite()], 0);
    let singular = wengert_tensor::ops::stack(&[Tensor::eye(3), ones(&[3, 3])], 0);
    let square = "A must be batches of square matrices, but they are 3 by 2 matrices";
    let rank = "The input tensor A must have at least 2 dimensions.";
    let minor = "The factorization could not be completed because the input is not positive-definite (the leading minor of order";
    let zero = "is zero, the inversion could not be completed because the input matrix is singular.";
    assert_refused! {
        |a| a.try_cholesky(), [ones(&[3])] => format!("linalg.cholesky: {rank}");
        |a| a.try_cholesky(), [ones(&[3, 2])] => format!("linalg.cholesky: {square}");
        |a| a.try_cholesky(), [indefinite()] => format!("linalg.cholesky: {minor} 2 is not positive-definite).");
        |a| a.transpose(-2, -1).try_cholesky(), [pair] => format!("linalg.cholesky: (Batch element 1): {minor} 2 is not positive-definite).");
        |a| a.transpose(-2, -1).try_cholesky(), [Tensor::full([2, 2], f64::NAN)] => format!("linalg.cholesky: {minor} 1 is not positive-definite).");
        |a, b| a.try_solve(b), [ones(&[3]), ones(&[3])] => format!("linalg.solve: {rank}");
        |a, b| a.try_solve(b), [ones(&[3, 2]), ones(&[3])] => format!("linalg.solve: {square}");
        |a, b| a.try_solve(b), [Tensor::eye(3), ones(&[])] => "linalg.solve: The input tensor B must have at least 2 dimensions.";
        |a, b| a.try_solve(b), [Tensor::eye(3), ones(&[2, 3])]
            => "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x3)";
        |a, b| a.try_solve(b), [Tensor::eye(3), ones(&[2])]
            => "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x1)";
        |a, b| a.try_solve(b), [Tensor::eye(3).expand([2, 3, 3]), ones(&[1, 3])]
            => "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 1x3)";
        |a, b| a.try_solve(b), [Tensor::eye(3).expand([2, 3, 3]), ones(&[4, 3, 3])]
            => "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 0";
        |a, b| a.try_solve(b), [ones(&[3, 3]), ones(&[3])]
            => "torch.linalg.solve: The solver failed because the input matrix is singular.";
        |a, b| a.try_solve(b), [singular, ones(&[3, 2])]
            => "torch.linalg.solve: (Batch element 1): The solver failed because the input matrix is singular.";
        |a| a.try_inv(), [ones(&[3])] => format!("linalg.inv: {rank}");
        |a| a.try_inv(), [ones(&[3, 2])] => format!("linalg.inv: {square}");
        |a| a.try_inv(), [ones(&[3, 3])] => format!("linalg.inv: The diagonal element 2 {zero}");
        |a| a.try_inv(), [singular] => format!("linalg.inv: (Batch element 1): The diagonal element 2 {zero}");
        |a| a.try_matrix_power(2), [ones(&[3, 2])] => format!("linalg.matrix_power: {square}");
        |a| a.try_matrix_power(-2), [ones(&[3, 3])] => format!("linalg.inv: The diagonal element 2 {zero}");
        |a| a.try_det(), [ones(&[3])] => format!("linalg.det: {rank}");
        |a| a.try_det(), [ones(&[3, 2])] => format!("linalg.det: {square}");
        |a| a.try_slogdet().map(|[sign, _]| sign), [ones(&[3, 2])] => format!("linalg.slogdet: {square}");
        |a| a.try_lu().map(|[p, _, _]| p), [ones(&[3])] => "linalg.lu: Expected tensor with 2 or more dimensions. Got size: [3] instead";
        |a| a.try_lu_factor().map(|[lu, _]| lu), [ones(&[2, 3, 3])] => "torch.linalg.lu_factor: (Batch element 0): U[2,2] is zero and \
            using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling \
            linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)";
        |a, p, b| a.try_lu_solve(p, b), [ones(&[3, 3]), ones(&[3]), ones(&[2, 2])]
            => "linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x2)";
        |a, p, b| a.try_lu_solve(p, b), [ones(&[3, 3]), ones(&[2]), ones(&[3, 1])]
            => "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix";
        |a, b| a.try_solve_triangular(b, Triangle::Upper), [ones(&[3, 3]), ones(&[3])]
            => "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.";
        |a, b| a.try_solve_triangular(b, Triangle::Upper), [ones(&[3, 2]), ones(&[3, 1])] => format!("linalg.solve_triangular: {square}");
        |a, b| a.try_solve_triangular(b, Triangle::Upper.right()), [ones(&[3, 3]), ones(&[3, 1])]
            => "linalg.solve_triangular: Incompatible shapes of A and B for the equation XA = B (3x3 and 3x1)";
        |b, l| b.try_cholesky_solve(l, Triangle::Lower), [ones(&[3]), ones(&[3, 3])] => "b should have at least 2 dimensions, but has 1 dimensions instead";
        |b, l| b.try_cholesky_solve(l, Triangle::Lower), [ones(&[3, 2]), ones(&[3])] => "u should have at least 2 dimensions, but has 1 dimensions instead";
        |b, l| b.try_cholesky_solve(l, Triangle::Lower), [ones(&[3, 2]), ones(&[3, 2])] => square;
        |b, l| b.try_cholesky_solve(l, Triangle::Lower), [ones(&[3, 2]), ones(&[2, 2])]
            => "Incompatible matrix sizes for cholesky_solve: each A matrix is 2 by 2 but each b matrix is 3 by 2";
    }
}

/// Calls the operation that `tools/linalg_cases.py` names `name`. Returns its error.
fn error_of(name: &str, x: &[Tensor<f64>]) -> Option<wengert_tensor::Error> {
    match name {
        "cholesky" => x[0].try_cholesky().err(),
        "solve" => x[0].try_solve(&x[1]).err(),
        "inv" => x[0].try_inv().err(),
        "det" => x[0].try_det().err(),
        "slogdet" => x[0].try_slogdet().err(),
        "matrix_power" => x[0].try_matrix_power(2).err(),
        "matrix_exp" => x[0].try_matrix_exp().err(),
        "qr" => x[0].try_qr(QrMode::Reduced).err(),
        "eigh" => x[0].try_eigh(Triangle::Lower).err(),
        "eigvalsh" => x[0].try_eigvalsh(Triangle::Lower).err(),
        "svd" => x[0].try_svd(true).err(),
        "svdvals" => x[0].try_svdvals().err(),
        "pinv" => x[0].try_pinv(Tolerance::new()).err(),
        "pinv_hermitian" => x[0].try_pinv(Tolerance::new().hermitian()).err(),
        "lstsq" => x[0].try_lstsq(&x[1], None).err(),
        "matrix_rank" => x[0].try_matrix_rank(Tolerance::new()).err(),
        "matrix_rank_hermitian" => x[0].try_matrix_rank(Tolerance::new().hermitian()).err(),
        "solve_triangular" => x[0].try_solve_triangular(&x[1], Triangle::Upper).err(),
        "cholesky_solve" => x[0].try_cholesky_solve(&x[1], Triangle::Lower).err(),
        "lu" => x[0].try_lu().err(),
        "lu_factor" => x[0].try_lu_factor().err(),
        "lu_solve" => x[0].try_lu_solve(&x[1], &x[2]).err(),
        "multi_dot" => wengert_linalg::try_multi_dot(x).err(),
        "cond_1" => x[0].try_cond(1).err(),
        "cond_7" => x[0].try_cond(7).err(),
        "matrix_norm_3" => x[0].try_matrix_norm(3, [-2, -1]).err(),
        "vander_0" => x[0].try_vander(0).err(),
        other => panic!("the case {other} has no operation"),
    }
}

/// Compares error messages with the messages of PyTorch that `tools/linalg_cases.py` wrote.
#[test]
fn sentences_are_pytorchs() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("refusals.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let shape = |list: &serde_json::Value| -> Vec<usize> {
            list.as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect()
        };
        let inputs: Vec<_> = case["shapes"].as_array().unwrap().iter().map(|list| ones(&shape(list))).collect();
        let error = error_of(case["name"].as_str().unwrap(), &inputs);
        assert_eq!(error.map(|error| error.sentence()).as_deref(), case["sentence"].as_str(), "{case}");
    }
}

/// Checks that a batch which no memory can hold gives an error and does not end the process.
#[test]
fn huge_batches_are_errors() {
    let many = Tensor::<f64>::eye(3).expand([1usize << 50, 3, 3]);
    assert!(many.try_inv().is_err());
    assert!(many.try_det().is_err());
    assert!(many.try_solve(Tensor::ones([3, 1])).is_err());
}

#[test]
#[should_panic(
    expected = "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices\n  --> crates/linalg/tests/laws/refusals.rs"
)]
fn a_panic_names_the_callers_line() {
    let _ = Tensor::<f32>::ones([2, 3]).inv();
}

/// Checks that identity matrices which no memory can hold give an error.
#[test]
fn huge_identities_are_errors() {
    assert!(Tensor::<f64>::zeros([1usize << 50, 0]).try_lu().is_err());
    assert!(Tensor::scalar(1.0f64).expand([1usize << 25, 1 << 25]).try_matrix_power(0).is_err());
}

/// Checks that `try_vjp` returns an error, and does not panic, if a derivative rule needs a matrix that no memory can hold.
#[test]
fn rules_with_huge_matrices_return_errors() {
    type Rule = for<'t> fn(Var<'t, f64>) -> Var<'t, f64>;
    let rules: &[(&str, Rule, [usize; 2])] = &[
        ("the identity of lu_factor", |a| a.lu_factor()[0], [1 << 25, 1 << 25]),
        ("the permutation of lu_factor", |a| a.lu_factor()[0], [1 << 32, 1]),
        ("the blocks of matrix_exp", |a| a.matrix_exp(), [1 << 29, 1 << 29]),
        ("the products of pinv", |a| a.pinv(Tolerance::default()), [1 << 32, 1]),
        ("the real form of eig", |a| a.eig().1, [1 << 29, 1 << 29]),
    ];
    for (name, f, shape) in rules {
        let tape = Tape::new();
        let a = tape.var(&Tensor::scalar(1.0).expand(&shape[..]));
        let result = f(a);
        let seed = tape.constant(1.0).expand(result.shape());
        let error = tape.try_vjp(&[(result, seed)], &[a]).map(drop).unwrap_err().to_string();
        let is_about_size =
            ["memory cannot hold", "no memory can hold", "can be addressed"].iter().any(|part| error.contains(part));
        assert!(is_about_size, "{name}: {error}");
    }
}
