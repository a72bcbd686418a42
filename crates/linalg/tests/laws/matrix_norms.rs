//! Tests of condition numbers, and of norms over any two dimensions.

use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

#[test]
fn condition_numbers_of_singular_matrices_are_infinite() {
    let a = Tensor::from([[[1.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]]);
    for ord in [1.0, -1.0, f64::INFINITY, 2.0] {
        assert_eq!(a.cond(ord).to_vec()[0], f64::INFINITY, "{ord}");
    }
    assert_eq!(a.cond(1).to_vec()[1], 2.0);
    assert_eq!(a.cond(MatrixOrder::Nuclear).to_vec(), [f64::INFINITY, 4.5]);
    assert_eq!(a.cond(-2).to_vec(), [0.0, 0.5]);
    assert_eq!(Tensor::<f64>::zeros([2, 0, 0]).cond(1).to_vec(), [0.0, 0.0]);
}

#[test]
fn norms_over_other_dimensions() {
    let a = Tensor::<f64>::from_fn([2, 3, 4], |i| (i[0] * 12 + i[1] * 4 + i[2]) as f64 - 7.0);
    for ord in [1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 2.0, -2.0] {
        let expected = a.permute([1, 2, 0]).matrix_norm(ord, [-2, -1]);
        let norm = a.matrix_norm(ord, [2, 0]);
        assert!((norm - &expected).abs().amax(..).item() < 1e-12, "{ord}");
        assert_eq!(a.matrix_norm_keepdim(ord, [2, 0]).shape(), &[1, 3, 1]);
    }
    let refused = |dims, ord: f64| a.try_matrix_norm(ord, dims).unwrap_err().sentence();
    assert_eq!(refused([0, -3], 1.0), "linalg.matrix_norm: dims must be different. Got (0, -3)");
    assert_eq!(refused([0, 1], 3.0), "linalg.matrix_norm: Order 3 not supported.");
    assert!(refused([0, 3], 1.0).starts_with("Dimension out of range (expected to be in range of [-3, 2], but got 3)"));
    assert_eq!(a.try_cond(3).unwrap_err().sentence(), "linalg.cond got an invalid norm type: 3");
}
