//! The affine maps of neural networks: a weight, and a bias that expands.

use wengert_macros::twins;

use crate::ops::linalg::blas::{grown, matrices};

use crate::ops::linalg::products::product;
use crate::ops::pair::{expanded, join_all, same_shape};
use crate::ops::{ArrayOperand, TensorLike};
use crate::{Binary, Error, Number, Reduction, Shape, Site, View};

/// `linear` and `bilinear`.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let x = Tensor::from([[1.0, 2.0]]); // [n, in]
/// let weight = Tensor::from([[1.0, 1.0], [0.0, 3.0], [2.0, 0.0]]); // [out, in]
/// assert_eq!(x.linear(&weight, None), Tensor::from([[3.0, 6.0, 2.0]]));
/// ```
#[twins]
pub trait LinearMaps: TensorLike<Elem: Number> {
    /// x Wᵀ + b: `self` is `[…, k]`, `weight` `[n, k]` (or `[k]`, which gives `[…]`), `bias` expands to the result,
    /// `[…, n]`. PyTorch: `nn.functional.linear`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let (weight, bias) = (Tensor::from([[1.0, 1.0]]), Tensor::from([0.5]));
    /// assert_eq!(x.linear(&weight, Some(&bias)), Tensor::from([[3.5], [7.5]]));
    /// ```
    fn try_linear(&self, weight: impl ArrayOperand<Self>, bias: Option<&Self>) -> Result<Self, Self::Error> {
        let weight = &weight.into_array(self);
        linear(self, weight, bias, Site::here("linear"))
    }

    /// x₁ᵀ Wₒ x₂ + b for every o: `self` is `[…, j]`, `other` `[…, k]` over the same other dimensions, `weight`
    /// `[n, j, k]`, `bias` `[n]`; the result is `[…, n]`. PyTorch: `nn.functional.bilinear`.
    fn try_bilinear(
        &self,
        other: impl ArrayOperand<Self>,
        weight: impl ArrayOperand<Self>,
        bias: Option<&Self>,
    ) -> Result<Self, Self::Error> {
        let (other, weight) = (&other.into_array(self), &weight.into_array(self));
        bilinear(self, other, weight, bias, Site::here("bilinear"))
    }
}

impl<A: TensorLike<Elem: Number>> LinearMaps for A {}

fn linear<A: TensorLike>(x: &A, weight: &A, bias: Option<&A>, at: Site) -> Result<A, A::Error> {
    let (from, form) = (x.shape(), weight.shape());
    if from.rank() == 0 || form.rank() == 0 {
        let message = format!(
            "both arguments to linear need to be at least 1D, but they are {}D and {}D",
            from.rank(),
            form.rank()
        );
        return Err(Error::MatmulShape { message, at }.into());
    }
    let weight = match form.rank() {
        1 => weight.clone(),
        2 => weight.apply_view(View::Permute([1, 0].into_iter().collect()), at)?,
        rank => {
            let message = format!("t() expects a tensor with <= 2 dimensions, but self is {rank}D");
            return Err(Error::argument(at, message).into());
        }
    };
    let Some(bias) = bias else { return product(x, &weight, at) };
    if from.rank() == 2 {
        matrices("addmm", "mat1", x, &weight, at)?;
    }
    let z = product(x, &weight, at)?;
    let shape = z.shape();
    // PyTorch adds a vector to a batch of rows as to one matrix, and otherwise in place; the error sentences differ.
    match shape.rank() {
        2 => grown(bias, &shape, at).map(drop)?,
        3 if bias.shape().rank() == 1 => {
            grown(bias, &Shape::from([Shape::from(&shape[..2]).numel(), shape[2]]), at).map(drop)?
        }
        _ => {
            let own = bias.shape();
            same_shape(&shape, &own, &join_all(&[&shape, &own], at)?, at)?;
        }
    }
    z.apply_binary(Binary::Add, &expanded(bias, &shape, at)?, at)
}

fn bilinear<A: TensorLike>(x: &A, y: &A, weight: &A, bias: Option<&A>, at: Site) -> Result<A, A::Error> {
    let (left, right, form) = (x.shape(), y.shape(), weight.shape());
    let refuse = |message: String| Err(A::Error::from(Error::argument(at, message)));
    if left.rank() != right.rank() || left.rank() == 0 {
        return refuse(format!("bilinear(): input dimensions do not match: got {} and {}", left.rank(), right.rank()));
    }
    let last = left.rank() - 1;
    if let Some(axis) = (0..last).find(|&axis| left[axis] != right[axis]) {
        return refuse(format!(
            "bilinear(): input batch dimensions do not match at dim {axis}: got {} and {}",
            left[axis], right[axis]
        ));
    }
    if form.rank() != 3 {
        return refuse(format!("bilinear(): weight must have 3 dimensions, but has {}", form.rank()));
    }
    let (n, j, k) = (form[0], form[1], form[2]);
    for (name, got, expected) in [("input1", left[last], j), ("input2", right[last], k)] {
        if got != expected {
            return refuse(format!(
                "bilinear(): {name} size does not match weight size: got {got} but expected {expected}"
            ));
        }
    }
    let count = Shape::from(&left[..last]).numel();
    let shaped = |x: &A, sizes: &[usize]| x.apply_view(View::Reshape(Shape::from(sizes)), at);
    // [count, j] x [j, n k], then the sum over k of products with [count, 1, k].
    let by_input = weight.apply_view(View::Permute([1, 0, 2].into_iter().collect()), at)?;
    let half = shaped(
        &shaped(x, &[count, j])?.apply_matmul(&shaped(&by_input, &[j, Shape::from([n, k]).numel()])?, at)?,
        &[count, n, k],
    )?;
    let y = expanded(&shaped(y, &[count, 1, k])?, &Shape::from([count, n, k]), at)?;
    let sum = half.apply_binary(Binary::Mul, &y, at)?.apply_reduce(Reduction::Sum, &[2], at)?;
    let mut shape = Shape::from(&left[..last]);
    shape.push(n);
    let z = sum.apply_view(View::Reshape(shape.clone()), at)?;
    match bias {
        None => Ok(z),
        Some(bias) => z.apply_binary(Binary::Add, &grown(bias, &shape, at)?, at),
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
    fn a_bilinear_form_for_every_output() {
        let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0, 5.0]]));
        let weight = Tensor::from([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]]);
        let bias = Tensor::from([0.5, 0.0]);
        assert_eq!(x.bilinear(&y, &weight, Some(&bias)), Tensor::from([[3.5, 18.0]]));
        assert!(x.try_bilinear(&x, &weight, None).is_err());
    }
}
