//! Determinants, their logarithms, and cofactors.

use wengert_autograd::{Error as RuleError, FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::inverse::Inverse;
use super::lu::SingularPolicy;
use super::{apply_kernel, transposed};
use crate::batches::{ELEMENT_MOVE_COST, cost, for_each_range};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, contiguous, elements, matrix_size, zeros};
use crate::numerics::cofactors::{cofactors, product};
use crate::numerics::failure::RangeFailure;
use crate::numerics::ranges::lu_diagonals_all;

/// Factors each matrix of `a` as P L U (a permutation, a lower and an upper triangle), and writes its results. `from_diagonal` computes the
/// results from the diagonal of U and the sign of the row exchanges.
fn write_from_factors<T: Float, const N: usize>(
    a: &Tensor<T>,
    results: [&mut [T]; N],
    from_diagonal: impl Fn(&[T], T) -> [T; N] + Sync,
) -> Result<(), RangeFailure> {
    let (a, (n, _)) = (contiguous(a)?, matrix_size(a.shape()));
    let (a, count) = (elements(&a), results.first().map_or(0, |results| results.len()));
    for_each_range(count, cost(&[n, n, n / 3 + ELEMENT_MOVE_COST]), results, |first, count, mut results| {
        lu_diagonals_all(&a[first * n * n..][..count * n * n], count, n, &mut |matrix, diagonal, sign| {
            for (results, value) in results.iter_mut().zip(from_diagonal(diagonal, sign)) {
                results[matrix] = value;
            }
        })
    })
}

/// Returns the error of an operation on tensors. Determinants and cofactors fail for no other reason, because singular matrices have
/// results. So no message about a matrix is needed.
fn tensor_error(failure: RangeFailure, at: Site) -> Error {
    failure.error(&[], at, |_, _| String::new())
}

/// The kernel that computes the determinant |A|.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Determinant;

impl Kernel for Determinant {
    const NAME: &'static str = "det";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![batch_shape(&inputs[0], 2)]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let product = |diagonal: &[T], sign: T| [sign * product(diagonal.iter().copied())];
        let batch = batch_shape(inputs[0].shape(), 2);
        let filled = Tensor::from_fill(batch, at, |values| write_from_factors(inputs[0], [values], product));
        let (values, ()) = filled.map_err(|failure| tensor_error(failure, at))?;
        Ok(vec![values])
    }

    /// The gradient is the matrix of cofactors times G, the gradient with respect to the determinant.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let cofactors = apply_kernel(Cofactors, &[call.inputs[0]])?;
        Ok(vec![Some(cofactors * as_matrices(gradients[0]))])
    }
}

/// Appends two dimensions of size 1, so that each number of a batch broadcasts with a matrix of the batch.
fn as_matrices<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    x.unsqueeze(-1).unsqueeze(-1)
}

/// Returns the transposed inverses A⁻ᵀ. The results for singular matrices have infinite elements or NaN.
fn transposed_inverse<'t, T: Float>(a: Var<'t, T>) -> Result<Var<'t, T>, RuleError> {
    Ok(transposed(apply_kernel(Inverse(SingularPolicy::Accepted), &[a])?))
}

/// The kernel that computes the matrix of cofactors, also of singular matrices. For a nonsingular A, this is C = |A| A⁻ᵀ.
#[derive(Clone, Copy, Debug)]
struct Cofactors;

impl Kernel for Cofactors {
    const NAME: &'static str = "cofactors";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (a, mut result) = (inputs[0].try_contiguous()?, zeros::<T>(inputs[0].shape())?);
        let (n, _) = matrix_size(a.shape());
        if let Some(a) = a.as_slice().filter(|a| !a.is_empty()) {
            let filled =
                for_each_range(a.len() / (n * n), cost(&[n, n, n]), [result.make_mut()], |first, _, [result]| {
                    for (matrix, result) in (first..).zip(result.chunks_exact_mut(n * n)) {
                        cofactors(&a[matrix * n * n..][..n * n], result, n)?;
                    }
                    Ok(())
                });
            filled.map_err(|failure| tensor_error(failure, at))?;
        }
        Ok(vec![result])
    }

    /// The differential of C = |A| A⁻ᵀ is dC = tr(A⁻¹ dA) C - A⁻ᵀ dAᵀ C. So the gradient is ⟨G, C⟩ A⁻ᵀ - C Gᵀ A⁻ᵀ, where G is the gradient
    /// with respect to C. It is not finite for a singular A.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (c, g, inverse) = (call.outputs[0], gradients[0], transposed_inverse(call.inputs[0])?);
        let product = as_matrices((g * c).sum([-2, -1]));
        Ok(vec![Some(inverse * product - c.matmul(transposed(g)).matmul(inverse))])
    }
}

/// The kernel that computes the sign and the logarithm of the magnitude of |A|.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignAndLogarithm;

impl Kernel for SignAndLogarithm {
    const NAME: &'static str = "slogdet";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![batch_shape(&inputs[0], 2); 2]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let sign_and_logarithm = |diagonal: &[T], sign: T| {
            let (mut sign, mut logarithm) = (sign, 0.0);
            for &x in diagonal {
                let x = x.to_f64();
                logarithm += x.abs().ln();
                let factor = if x.is_nan() {
                    x
                } else if x == 0.0 {
                    0.0
                } else {
                    x.signum()
                };
                sign = sign * T::from_f64(factor);
            }
            [sign, T::from_f64(logarithm)]
        };
        let batch = batch_shape(inputs[0].shape(), 2);
        let filled = Tensor::from_fill(batch.clone(), at, |signs| {
            Tensor::from_fill(batch, at, |logarithms| {
                write_from_factors(inputs[0], [signs, logarithms], sign_and_logarithm)
            })
        });
        let (signs, (logarithms, ())) = filled.map_err(|failure| tensor_error(failure, at))?;
        Ok(vec![signs, logarithms])
    }

    /// The gradient is A⁻ᵀ times the gradient with respect to the logarithm. The sign has no derivative.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        Ok(vec![Some(transposed_inverse(call.inputs[0])? * as_matrices(gradients[1]))])
    }
}
