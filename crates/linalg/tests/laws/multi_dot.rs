//! Tests of products of several matrices: the values, and the sentences of errors.

use wengert_linalg::{multi_dot, try_multi_dot};
use wengert_tensor::prelude::*;

#[test]
fn the_product_in_every_order() {
    let x = Tensor::<f64>::from_fn([2, 3], |i| (i[0] * 3 + i[1]) as f64);
    let y = Tensor::from_fn([3, 1], |i| i[0] as f64 - 1.0);
    let z = Tensor::from_fn([1, 4], |i| i[1] as f64);
    let v = Tensor::from([1.0, 2.0, 0.0, -1.0]);
    // The elements are small whole numbers, so the products are exact in every order of multiplication.
    assert_eq!(multi_dot(&[x.clone(), y.clone(), z.clone()]), x.matmul(&y).matmul(&z));
    assert_eq!(multi_dot(&[x.clone(), y.clone(), z.clone(), v.clone()]), x.matmul(&y).matmul(&z).matmul(&v));
    assert_eq!(multi_dot(&[v.clone(), z.t(), y.t()]).shape(), &[3]);
    assert_eq!(multi_dot(&[v.clone(), v.clone()]).item(), 6.0);
}

#[test]
fn sentences_are_pytorchs() {
    let ones = |shape: &[usize]| Tensor::<f64>::ones(shape);
    let table: [(&[Tensor<f64>], &str); 4] = [
        (&[ones(&[2, 3])], "multi_dot(): expected at least 2 tensors but got 1"),
        (
            &[ones(&[2, 3]), ones(&[2, 3])],
            "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
        ),
        (&[ones(&[2, 3]), ones(&[3, 3, 3])], "multi_dot(): the last tensor must be 1D or 2D but got 3D"),
        (&[ones(&[2, 3]), ones(&[3, 3, 3]), ones(&[3])], "multi_dot(): tensor 1 must be 2D but got 3D"),
    ];
    for (arrays, sentence) in table {
        assert_eq!(try_multi_dot(arrays).unwrap_err().sentence(), sentence);
    }
}
