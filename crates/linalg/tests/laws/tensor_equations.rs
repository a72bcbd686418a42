//! Tests of `tensorinv` and `tensorsolve`: their equations, derivatives and errors.

use wengert_autograd::{Tape, gradcheck};
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

/// Returns the well-conditioned `n` by `n` matrix 4 I + R as an array of the shape `shape`. All elements of R differ.
fn coefficients(shape: &[usize], n: usize) -> Tensor<f64> {
    let noise = Tensor::from_vec((0..n * n).map(|i| ((i * 7919 % 101) as f64).sin()).collect(), [n, n]);
    (Tensor::eye(n) * 4.0 + noise).reshape(shape)
}

#[test]
fn the_product_with_the_inverse_is_the_identity() {
    for (shape, ind) in [(&[2, 3, 6][..], 2), (&[4, 2, 2], 1), (&[6, 2, 3], 1), (&[2, 2, 2, 2], 2), (&[1], 1)] {
        let n: usize = shape[..ind].iter().product();
        let a = coefficients(shape, n);
        let inverse = a.tensorinv(ind);
        let expected: Vec<usize> = shape[ind..].iter().chain(&shape[..ind]).copied().collect();
        assert_eq!(inverse.shape()[..], expected[..]);
        let product = a.reshape([n, n]).matmul(inverse.reshape([n, n]));
        assert!((product - Tensor::eye(n)).abs().amax(..).item() < 1e-13, "{shape:?}");
    }
    assert_eq!(Tensor::<f64>::zeros([0, 0]).tensorinv(1).shape(), &[0, 0]);
}

#[test]
fn the_solution_fulfils_the_equation() {
    for (shape, b) in [(&[2, 3, 6][..], &[2, 3][..]), (&[4, 2, 2], &[4]), (&[2, 2, 2, 2], &[2, 2]), (&[1], &[])] {
        let n: usize = b.iter().product();
        let (a, b) = (coefficients(shape, n), Tensor::<f64>::randn(b, &mut Generator::new(1)));
        let x = a.tensorsolve(&b);
        assert_eq!(x.shape()[..], shape[b.rank()..]);
        let back = a.reshape([n, n]).matmul(x.reshape([n]));
        assert!((back - b.reshape([n])).abs().amax(..).item() < 1e-13, "{shape:?}");
    }
}

#[test]
fn derivatives_agree_with_differences() {
    let (a, b) = (coefficients(&[2, 2, 4], 4), Tensor::from([[1.0, -2.0], [0.5, 3.0]]));
    gradcheck(|[a, b]| a.tensorsolve(b).square().sum(..), [&a, &b]).unwrap();
    gradcheck(|[a]| a.tensorinv(2).square().sum(..), [&a]).unwrap();
}

/// The error messages equal the messages of PyTorch 2.15 for the same calls.
#[test]
fn sizes_that_do_not_fit_are_errors() {
    let ones = |shape: &[usize]| Tensor::<f64>::ones(shape);
    let inverse = |shape: &[usize], ind| ones(shape).try_tensorinv(ind).unwrap_err().sentence();
    assert_eq!(inverse(&[2, 3, 6], 0), "Expected a strictly positive integer for 'ind', but got 0");
    assert_eq!(inverse(&[2, 3, 6], 5), "ArrayRef: invalid slice, N = 5; size = 3");
    let expected = "Expected self to satisfy the requirement";
    assert_eq!(
        inverse(&[2, 3, 5], 2),
        format!("{expected} prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 5 != 6")
    );
    let solution = |a: &[usize], b: &[usize]| ones(a).try_tensorsolve(ones(b)).unwrap_err().sentence();
    let expected = format!("{expected} prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got");
    assert_eq!(solution(&[2, 3, 6], &[2]), format!("{expected} 18 != 2"));
    assert_eq!(solution(&[2, 2], &[2, 2, 2]), format!("{expected} 1 != 4"));
    // PyTorch names the sizes of `self` in this error too, which hides that `other` has the wrong number of elements.
    let expected = "tensorsolve(): Expected other to satisfy the requirement prod(other.shape) == prod(self.shape[:other.ndim]), but got";
    assert_eq!(solution(&[2, 3, 6], &[2, 2]), format!("{expected} 4 != 6"));
    assert_eq!(solution(&[6, 6], &[5]), format!("{expected} 5 != 6"));
    let singular = "torch.linalg.solve: The solver failed because the input matrix is singular.";
    assert_eq!(solution(&[2, 2], &[2]), singular);
    let tape = Tape::<f64>::new();
    assert_eq!(tape.var(&ones(&[2, 2])).tensorsolve(ones(&[2])).try_value().unwrap_err().sentence(), singular);
    // The sizes of an empty array may have a product that is larger than any number.
    let huge = Tensor::<f64>::zeros([0usize, 1 << 40, 1 << 40]);
    assert!(huge.try_tensorinv(1).is_err() && huge.try_tensorsolve(ones(&[1])).is_err());
}
