//! The eigenvalues and eigenvectors of square matrices, as complex numbers: pairs of real numbers in a last dimension of size 2.

use wengert_autograd::{Error as RuleError, FunctionCall, Var};
use wengert_tensor::ops::try_cat;
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::lu::{LuFactor, SingularPolicy, SolveWithFactors};
use super::{apply_kernel, apply_kernel_all, differences, inverse_or_zero, transposed};
use crate::batches::{Batch, cost};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{argument_error, batch_shape, elements, matrix_size, with_core};
use crate::numerics::general::eig;

/// The kernel that computes the eigenvalues, and the eigenvectors as columns.
#[derive(Clone, Copy)]
pub(crate) struct Eig;

/// The kernel that computes the eigenvalues without the eigenvectors.
#[derive(Clone, Copy)]
pub(crate) struct Eigvals;

/// Describes a batch of matrices, with the batch dimensions `shape` and matrices of `order` rows.
fn describe_batch(shape: &Shape, order: usize, at: Site) -> Batch<'_> {
    let reason = "the input matrix is ill-conditioned or has too many repeated eigenvalues";
    Batch { shape, cost: cost(&[25, order, order, order]), name: "linalg.eig", reason, at }
}

/// Returns PyTorch's error if an element of `x` is NaN or infinite.
fn check_finite<T: Float>(x: &Tensor<T>, at: Site) -> Result<(), Error> {
    let x = x.try_contiguous()?;
    if elements(&x).iter().all(|x| x.to_f64().is_finite()) {
        return Ok(());
    }
    Err(argument_error(at, "torch.linalg.eig: input tensor should not contain infs or NaNs."))
}

impl Kernel for Eig {
    const NAME: &'static str = "eig";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, order) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]).0);
        vec![with_core(&batch, &[order, 2]), with_core(&batch, &[order, order, 2])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        check_finite(inputs[0], at)?;
        let (batch, order) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()).0);
        let shapes = [with_core(&batch, &[order, 2]), with_core(&batch, &[order, order, 2])];
        describe_batch(&batch, order, at)
            .compute([inputs[0]], &shapes, |[a], [values, vectors]| eig(a, values, Some(vectors)))
    }

    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        Ok(vec![Some(gradient([call.outputs[0], call.outputs[1]], gradients[0], Some(gradients[1]))?)])
    }
}

impl Kernel for Eigvals {
    const NAME: &'static str = "eigvals";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, order) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]).0);
        vec![with_core(&batch, &[order, 2])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        check_finite(inputs[0], at)?;
        let (batch, order) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()).0);
        let shapes = [with_core(&batch, &[order, 2])];
        describe_batch(&batch, order, at).compute([inputs[0]], &shapes, |[a], [values]| eig(a, values, None))
    }

    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        Ok(vec![Some(gradient(apply_kernel_all(Eig, &[call.inputs[0]])?, gradients[0], None)?)])
    }
}

/// Returns the gradient with respect to A = V diag(λ) V⁻¹: the real part of V⁻ᴴ (diag g_λ + (Vᴴ g_V - Vᴴ V diag(Re Vᴴ g_V)) / Ē) Vᴴ with
/// Eᵢⱼ = λⱼ - λᵢ. Here g_λ is the gradient of the eigenvalues λ, and g_V the gradient of the eigenvectors of length 1, the columns of V.
/// Quotients with λⱼ = λᵢ are set to 0. Source: Boeddeker and others, "On the computation of complex-valued gradients", 2017, section 4.18.
fn gradient<'t, T: Float>(
    eigenpairs: [Var<'t, T>; 2],
    values: Var<'t, T>,
    vectors: Option<Var<'t, T>>,
) -> Result<Var<'t, T>, RuleError> {
    let [eigenvalues, v] = eigenpairs;
    let n = matrix_size(&values.shape()).0;
    let adjoint = transposed(real_form(parts(v))?);
    let [re, im] = parts(values);
    let (mut re, mut im) = (re.try_diag_embed(0, -2, -1)?, im.try_diag_embed(0, -2, -1)?);
    if let Some(vectors) = vectors {
        let product = adjoint.matmul(stack_parts(parts(vectors))?);
        let lengths = product.narrow(-2, 0, n).diagonal(0, -2, -1).unsqueeze(-2);
        let rest = product - adjoint.matmul(stack_parts(parts(v))?) * lengths;
        let [x, y] = [0, n].map(|first| rest.narrow(-2, first, n));
        let [real_gaps, imaginary_gaps] = parts(eigenvalues).map(differences);
        let factor = inverse_or_zero(real_gaps * real_gaps + imaginary_gaps * imaginary_gaps);
        let (real_gaps, imaginary_gaps) = (real_gaps * factor, imaginary_gaps * factor);
        re += x * real_gaps - y * imaginary_gaps;
        im += x * imaginary_gaps + y * real_gaps;
    }
    let inner = real_form([re, im])?.matmul(adjoint.narrow(-1, 0, n));
    let [lu, pivots] = apply_kernel_all(LuFactor(SingularPolicy::Solve), &[adjoint])?;
    Ok(apply_kernel(SolveWithFactors { adjoint: false }, &[adjoint, lu, pivots, inner])?.narrow(-2, 0, n))
}

/// Returns the real parts and the imaginary parts of complex numbers.
fn parts<'t, T: Float>(z: Var<'t, T>) -> [Var<'t, T>; 2] {
    [z.select(-1, 0), z.select(-1, 1)]
}

/// Returns the real matrices `[…, 2n, n]` with the real parts above the imaginary parts.
fn stack_parts<'t, T: Float>(z: [Var<'t, T>; 2]) -> Result<Var<'t, T>, RuleError> {
    try_cat(&z, -2)
}

/// Returns the real matrices `[…, 2n, 2n]` that multiply [`stack_parts`] matrices like the complex matrices with the parts `re` and `im`. The
/// transpose of the real matrix belongs to the conjugate transpose of the complex one.
fn real_form<'t, T: Float>([re, im]: [Var<'t, T>; 2]) -> Result<Var<'t, T>, RuleError> {
    try_cat(&[stack_parts([re, im])?, stack_parts([-im, re])?], -1)
}
