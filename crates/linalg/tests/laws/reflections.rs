//! Tests of `householder_product`: the product of single reflections, its derivative, and the errors.

use wengert_autograd::{Generator, gradcheck};
use wengert_linalg::prelude::*;
use wengert_tensor::prelude::*;

#[test]
fn the_product_equals_the_single_reflections() {
    let generator = &mut Generator::new(3);
    for (batch, rows, columns, count) in
        [(&[][..], 5, 3, 3), (&[], 4, 4, 2), (&[2, 3], 6, 2, 2), (&[2], 3, 3, 0), (&[], 0, 0, 0), (&[0], 3, 2, 1)]
    {
        let shape_of = |core: &[usize]| batch.iter().chain(core).copied().collect::<Vec<usize>>();
        let a = Tensor::<f64>::randn(&shape_of(&[rows, columns])[..], generator);
        let mut tau = Tensor::<f64>::randn(&shape_of(&[count])[..], generator);
        if tau.numel() > 1 {
            tau = tau.masked_fill(tau.gt(0.9), 0.0); // a reflection with the factor 0 is the identity
        }
        let identity = Tensor::from_fn([rows, columns], |i| f64::from(i[0] == i[1]));
        let mut expected = identity.expand(&shape_of(&[rows, columns])[..]).contiguous();
        for i in (0..count).rev() {
            let head = cat(&[Tensor::zeros([i, 1]), Tensor::ones([1, 1])], 0).expand(&shape_of(&[i + 1, 1])[..]);
            let v = cat(&[head, a.narrow(-2, i + 1, rows - i - 1).narrow(-1, i, 1)], -2);
            let change = v.matmul(v.transpose(-2, -1).matmul(&expected)) * tau.narrow(-1, i, 1).unsqueeze(-1);
            expected -= change;
        }
        let q = a.householder_product(&tau);
        assert_eq!(q.shape(), expected.shape());
        assert!(q.numel() == 0 || (q - expected).abs().amax(..).item() < 1e-12, "{batch:?} {rows} {columns} {count}");
    }
}

#[test]
fn the_product_has_derivatives() {
    let generator = &mut Generator::new(5);
    let (a, tau) = (Tensor::<f64>::randn([2, 4, 3], generator), Tensor::<f64>::rand([2, 2], generator));
    gradcheck(|[a, tau]| a.householder_product(tau).sin().sum(..), [&a, &tau]).unwrap();
}

/// The error messages equal the messages of PyTorch 2.15 for the same calls.
#[test]
fn reflections_that_do_not_fit_are_errors() {
    let sentence = |a: &[usize], tau: &[usize]| {
        let error = Tensor::<f64>::ones(a).try_householder_product(Tensor::ones(tau)).unwrap_err();
        error.sentence().replace("torch.linalg.householder_product: ", "")
    };
    for (a, tau, expected) in [
        (&[3][..], &[3][..], "input must have at least 2 dimensions."),
        (&[2, 3], &[2], "input.shape[-2] must be greater than or equal to input.shape[-1]"),
        (&[3, 2], &[], "Dimension specified as -1 but tensor has no dimensions"),
        (&[3, 2], &[3], "input.shape[-1] must be greater than or equal to tau.shape[-1]"),
        (&[4, 3, 2], &[5, 2], "Expected batch dimensions of tau to be equal to input.shape[:-2], but got [5]"),
        (
            &[4, 3, 2],
            &[2],
            "Expected tau to have one dimension less than input, but got tau.ndim equal to 1 and input.ndim is equal to 3",
        ),
    ] {
        assert_eq!(sentence(a, tau), expected);
    }
}
