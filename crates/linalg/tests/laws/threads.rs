//! Any number of threads gives the same bits, and the same error. The number of threads is a setting of the whole process, so it changes for
//! the other tests too. Their results do not depend on it.

use wengert_autograd::Generator;
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;
use wengert_tensor::set_num_threads;

/// Returns the results of operations that use several threads. Each batch, and the single large matrix, has enough work for several
/// threads.
fn results() -> Vec<Tensor<f64>> {
    let mut results = Vec::new();
    for (count, n) in [(3000, 5), (60, 24)] {
        let a = Tensor::<f64>::randn([count, n, n], &mut Generator::new(1));
        let definite = a.matmul(a.transpose(-2, -1)) + Tensor::eye(n);
        let b = Tensor::randn([count, n, 9], &mut Generator::new(2));
        let [lu, pivots] = a.lu_factor();
        let ((q, r), (values, vectors), (u, s, vh)) =
            (a.qr(QrMode::Reduced), definite.eigh(Triangle::Lower), a.svd(false));
        let other = [definite.cholesky(), a.solve(&b), a.inv(), a.det(), a.solve_triangular(&b, Triangle::Lower)];
        results.extend([lu, pivots, q, r, values, vectors, u, s, vh]);
        results.extend(other);
        results.extend([a.pinv(Tolerance::new()), a.matrix_exp(), a.lstsq(&b, None).solution]);
    }
    // Several threads share the rows of one large matrix. Above, they share the matrices of a batch.
    let large = Tensor::<f64>::randn([300, 300], &mut Generator::new(3));
    let ((u, s, vh), (values, vectors)) = (large.svd(false), large.eigh(Triangle::Lower));
    results.extend([u, s, vh, values, vectors, large.svdvals()]);
    results
}

/// Returns the error of `inv` for a batch of matrices, in which the matrices with the indices `singular` are singular.
fn refusal(singular: &[usize]) -> String {
    let is_one = |index: &[usize]| index[1] == index[2] && !singular.contains(&index[0]);
    Tensor::from_fn([20_000, 4, 4], |index| f64::from(is_one(index))).try_inv().unwrap_err().sentence()
}

#[test]
fn any_number_of_threads_gives_the_same_results() {
    set_num_threads(1);
    let (alone, refused) = (results(), refusal(&[19_000, 9000]));
    assert!(refused.contains("(Batch element 9000): "), "{refused}");
    for threads in [2, 7] {
        set_num_threads(threads);
        for (index, (x, y)) in alone.iter().zip(&results()).enumerate() {
            assert_eq!(x, y, "result {index} with {threads} threads");
        }
        assert_eq!(refusal(&[19_000, 9000]), refused);
    }
}
