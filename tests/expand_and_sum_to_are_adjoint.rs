//! Tests the law behind every gradient of a broadcast: `<expand x, g> = <x, sum_to g>` for every x and g.
//!
//! The data are small integers in f64. So both sides are exact, and equal in any order of additions.

use proptest::prelude::*;
use wengert::tensor::prelude::*;
use wengert_tests::{integers, recipes, shapes, thinnings};

/// Returns the inner product of two tensors of equal shapes.
fn inner(x: &Tensor<f64>, y: &Tensor<f64>) -> f64 {
    assert_eq!(x.shape(), y.shape());
    x.iter().zip(y.iter()).map(|(x, y)| x * y).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expand_and_sum_to(
        shape in shapes(), thinning in thinnings(), a in recipes(), b in recipes(), seed in any::<u64>(),
    ) {
        let mut draw = integers(seed);
        let x = a.tensor(&thinning.of(&shape), &mut draw);
        let g = b.tensor(&shape, &mut draw);
        let (expanded, summed) = (x.expand(&shape[..]), g.sum_to(x.shape()));
        prop_assert_eq!(expanded.shape(), g.shape());
        prop_assert_eq!(summed.shape(), x.shape());
        prop_assert_eq!(inner(&expanded, &g), inner(&x, &summed));
        // The law also holds if `expand` and `sum_to` are exchanged, which second derivatives need.
        prop_assert_eq!(inner(&summed.expand(&shape[..]), &expanded), inner(&summed, &expanded.sum_to(x.shape())));
    }
}

#[test]
fn the_law_by_hand() {
    let x = Tensor::from([[1.0], [2.0]]);
    let g = Tensor::from([[[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]]);
    assert_eq!(g.sum_to([2, 1]), Tensor::from([[111.0], [222.0]]));
    assert_eq!(inner(&x.expand([1, 2, 3]), &g), 555.0);
    assert_eq!(inner(&x, &g.sum_to([2, 1])), 555.0);
}

#[test]
fn the_sum_over_no_elements_is_zero() {
    let g = Tensor::<f64>::ones([0, 3]);
    assert_eq!(g.sum_to([1, 3]), Tensor::zeros([1, 3]));
    assert_eq!(g.sum_to([0, 3]).shape(), &[0, 3]);
}

#[test]
fn a_wrong_adjoint_is_found() {
    // This wrong adjoint keeps the first of the expanded elements instead of summing them.
    let (x, g) = (Tensor::from([3.0]), Tensor::from([1.0, 2.0]));
    assert_ne!(inner(&x.expand([2]), &g), inner(&x, &g.narrow(0, 0, 1)));
}
