//! The linear maps of neural networks: a product with a weight, plus a bias that expands.

use wengert_macros::twins;

use crate::ops::linalg::blas::{check_matrices, expand_term};
use crate::ops::primitive::pair::{broadcast_operand_shapes, check_in_place_shape, expand};
use crate::ops::{ArrayOperand, Compose, OptionalOperand, Result, TensorLike, product};
use crate::{Binary, Error, Number, Shape, Site, ensure};

/// `linear` and `bilinear`.
#[twins(blanket)]
pub trait LinearMaps: TensorLike<Elem: Number> {
    /// Returns x Wᵀ + b: `self` is `[…, k]`, `weight` is `[n, k]` (or `[k]`, which gives `[…]`), and `bias` expands to the
    /// result `[…, n]`. The bias is `None`, `&b` or `Some(&b)`. PyTorch: `nn.functional.linear`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let (weight, bias) = (Tensor::from([[1.0, 1.0]]), Tensor::from([0.5]));
    /// assert_eq!(x.linear(&weight, Some(&bias)), Tensor::from([[3.5], [7.5]]));
    /// ```
    fn try_linear(&self, weight: impl ArrayOperand<Self>, bias: impl OptionalOperand<Self>) -> Result<Self> {
        linear(self, &weight.into_array(self)?, bias.into_option(self)?.as_ref(), Site::here("linear"))
    }

    /// Returns x₁ᵀ Wₒ x₂ + bₒ for each output o. x₁ is a vector of `self`, `[…, j]`, and x₂ is a vector of `other`, `[…, k]`, with the same
    /// other dimensions. W is `weight`, `[n, j, k]`, and b is `bias`, `[n]` or any shape that expands to the result `[…, n]`. PyTorch:
    /// `nn.functional.bilinear`.
    fn try_bilinear(
        &self,
        other: impl ArrayOperand<Self>,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
    ) -> Result<Self> {
        let bias = bias.into_option(self)?;
        bilinear(self, &other.into_array(self)?, &weight.into_array(self)?, bias.as_ref(), Site::here("bilinear"))
    }
}

fn linear<A: TensorLike>(x: &A, weight: &A, bias: Option<&A>, at: Site) -> Result<A> {
    let (rank, weight_rank) = (x.shape().rank(), weight.shape().rank());
    ensure!(
        rank > 0 && weight_rank > 0,
        at,
        MatmulShape,
        "both arguments to linear need to be at least 1D, but they are {rank}D and {weight_rank}D"
    );
    ensure!(weight_rank <= 2, at, "t() expects a tensor with <= 2 dimensions, but self is {weight_rank}D");
    let weight = if weight_rank == 1 { weight.clone() } else { weight.permute_to(&[1, 0], at)? };
    if weight_rank == 2 && x.shape()[rank - 1] != weight.shape()[0] {
        let operation = if rank == 2 && bias.is_some() { "addmm" } else { "mm" };
        return Err(width_mismatch(operation, &x.shape(), &weight.shape(), at).into());
    }
    let Some(bias) = bias else { return product(x, &weight, at) };
    if rank == 2 {
        check_matrices("addmm", "mat1", x, &weight, at)?;
    }
    let z = product(x, &weight, at)?;
    let shape = z.shape();
    // Checks the bias with PyTorch's error messages. PyTorch uses `addmm` if the result is a matrix, or if the result is a batch of
    // matrices and the bias is a vector. In other cases, PyTorch adds the bias in place, which has another error message.
    match shape.rank() {
        2 => expand_term(bias, &shape, at).map(drop)?,
        3 if bias.shape().rank() == 1 => {
            expand_term(bias, &Shape::from([Shape::from(&shape[..2]).numel(), shape[2]]), at).map(drop)?
        }
        _ => {
            let own = bias.shape();
            check_in_place_shape(&shape, &own, &broadcast_operand_shapes(&[&shape, &own], at)?, at)?;
        }
    }
    z.apply_binary(Binary::Add, &expand(bias, &shape, at)?, at)
}

/// Returns PyTorch's error for an input `[…, k]` and a transposed weight `[features, n]` if k and `features` differ. `operation` is the name
/// in the error message.
fn width_mismatch(operation: &str, x: &Shape, weight: &Shape, at: Site) -> Error {
    let (last, features, n) = (x.rank() - 1, weight[0], weight[1]);
    let (rows, k) = (Shape::from(&x[..last]).numel(), x[last]);
    let message = format!("{operation}: mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {features}x{n})");
    let hint = if x.rank() > 2 && Shape::from(&x[1..]).numel() == features {
        format!("`x.flatten(1, -1)` makes a row of {features} features from each sample")
    } else if x.rank() == 2 && x[0] == features {
        format!("the samples are dimension 0: `x.t()` has {features} features")
    } else {
        format!("the weight is made for {features} features, but the last dimension of the input has {k}")
    };
    Error::MatmulShape { message, at }.with_hint(hint)
}

fn bilinear<A: TensorLike>(x: &A, y: &A, weight: &A, bias: Option<&A>, at: Site) -> Result<A> {
    let (left, right, form) = (x.shape(), y.shape(), weight.shape());
    let (rank, other_rank, form_rank) = (left.rank(), right.rank(), form.rank());
    ensure!(
        rank == other_rank && rank > 0,
        at,
        "bilinear(): input dimensions do not match: got {rank} and {other_rank}"
    );
    let last = rank - 1;
    for (axis, (size, other)) in left[..last].iter().zip(&right[..last]).enumerate() {
        ensure!(
            size == other,
            at,
            "bilinear(): input batch dimensions do not match at dim {axis}: got {size} and {other}"
        );
    }
    ensure!(form_rank == 3, at, "bilinear(): weight must have 3 dimensions, but has {form_rank}");
    let (n, j, k) = (form[0], form[1], form[2]);
    for (name, got, expected) in [("input1", left[last], j), ("input2", right[last], k)] {
        ensure!(
            got == expected,
            at,
            "bilinear(): {name} size does not match weight size: got {got} but expected {expected}"
        );
    }
    let count = Shape::from(&left[..last]).numel();
    // Multiplies x, `[count, j]`, by the weight, `[j, n · k]`. Then multiplies each result, `[n, k]`, by the row of y, `[1, k]`, and sums
    // over k.
    let weight = weight.permute_to(&[1, 0, 2], at)?.reshape_to([j, Shape::from([n, k]).numel()], at)?;
    let half = x.reshape_to([count, j], at)?.apply_matmul(&weight, at)?.reshape_to([count, n, k], at)?;
    let sum = half.times(&y.reshape_to([count, 1, k], at)?, at)?.sum_over(&[2], at)?;
    let shape = left.with_size(last, n);
    let z = sum.reshape_to(shape.clone(), at)?;
    match bias {
        None => Ok(z),
        Some(bias) => z.apply_binary(Binary::Add, &expand_term(bias, &shape, at)?, at),
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn inputs_of_any_rank() {
        let weight = Tensor::from([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]]);
        let bias = Tensor::from([0.0, 10.0, 20.0]);
        let x = Tensor::from([1.0, 2.0]);
        assert_eq!(x.linear(&weight, Some(&bias)).to_vec(), [5.0, 12.0, 21.0]);
        assert_eq!(x.linear(&weight, &bias).to_vec(), [5.0, 12.0, 21.0]);
        assert_eq!(x.expand([4, 5, 6, 2]).linear(&weight, None).shape(), &[4, 5, 6, 3]);
        assert_eq!(x.expand([4, 5, 2]).linear(&weight, Some(&bias)).get(&[3, 4, 1]), Some(12.0));
        assert_eq!(x.expand([4, 2]).linear(&x, None).to_vec(), [5.0; 4]);
        assert_eq!(Tensor::zeros([0, 2]).linear(&weight, Some(&bias)).shape(), &[0, 3]);
    }

    #[test]
    fn refusals() {
        let weight = Tensor::<f64>::ones([4, 3]);
        let sentence =
            |x: [usize; 2], bias: &Tensor<f64>| Tensor::ones(x).try_linear(&weight, Some(bias)).unwrap_err().sentence();
        assert_eq!(
            sentence([2, 3], &Tensor::ones([5])),
            "The expanded size of the tensor (4) must match the existing size (5) at non-singleton dimension 1.  \
             Target sizes: [2, 4].  Tensor sizes: [5]"
        );
        assert_eq!(
            sentence([2, 5], &Tensor::ones([4])),
            "addmm: mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)"
        );
        assert!(Tensor::scalar(1.0).try_linear(&weight, None).is_err());
    }

    #[test]
    fn an_input_of_a_wrong_width_gets_a_hint() {
        let weight = Tensor::<f64>::ones([2, 12]);
        let text = |x: &[usize]| Tensor::ones(x).try_linear(&weight, None).unwrap_err().to_string();
        assert!(text(&[5, 3, 2, 2]).ends_with("hint: `x.flatten(1, -1)` makes a row of 12 features from each sample"));
        assert!(text(&[12, 5]).ends_with("hint: the samples are dimension 0: `x.t()` has 12 features"));
        let other = "hint: the weight is made for 12 features, but the last dimension of the input has 5";
        assert!(text(&[7, 5]).ends_with(other) && text(&[5]).ends_with(other));
        assert!(text(&[7, 3, 5]).starts_with("mm: mat1 and mat2 shapes cannot be multiplied (21x5 and 12x2)\n"));
    }

    #[test]
    fn a_bilinear_form_for_every_output() {
        let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0, 5.0]]));
        let weight = Tensor::from([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]]);
        let bias = Tensor::from([0.5, 0.0]);
        assert_eq!(x.bilinear(&y, &weight, Some(&bias)), Tensor::from([[3.5, 18.0]]));
        assert!(x.try_bilinear(&x, &weight, None).is_err());
    }
}
