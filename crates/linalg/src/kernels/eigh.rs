//! The eigenvalues and eigenvectors of symmetric matrices.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{apply_kernel_all, differences, inverse_or_zero, transposed};
use crate::batches::{Batch, cost};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, matrix_size, with_core};
use crate::numerics::eigen::eigh;

const OPERATION: &str = "linalg.eigh";

/// The kernel that computes the eigenvalues of symmetric matrices in ascending order, and the eigenvectors as columns.
#[derive(Clone, Copy)]
pub(crate) struct Eigh {
    /// True if the upper triangle of each matrix is read. False if the lower triangle is read.
    pub(crate) upper: bool,
}

/// The kernel that computes the eigenvalues without the eigenvectors.
#[derive(Clone, Copy)]
pub(crate) struct Eigvalsh(pub(crate) Eigh);

/// Describes a batch of symmetric matrices, with the batch dimensions `shape` and matrices of `order` rows.
fn describe_batch(shape: &Shape, order: usize, at: Site) -> Batch<'_> {
    let reason = "the input matrix is ill-conditioned or has too many repeated eigenvalues";
    Batch { shape, cost: cost(&[4, order, order, order]), name: OPERATION, reason, at }
}

impl Kernel for Eigh {
    const NAME: &'static str = "eigh";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, order) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]).0);
        vec![with_core(&batch, &[order]), with_core(&batch, &[order, order])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, order) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()).0);
        let shapes = [with_core(&batch, &[order]), with_core(&batch, &[order, order])];
        describe_batch(&batch, order, at)
            .compute([inputs[0]], &shapes, |[a], [values, vectors]| eigh(a, self.upper, values, Some(vectors)))
    }

    /// The gradient is V (diag g_λ + skew(Vᵀ g_V) / E) Vᵀ with skew(X) = (X - Xᵀ) / 2 and Eᵢⱼ = λⱼ - λᵢ. Here λ are the eigenvalues, the
    /// columns of V are the eigenvectors, and g_λ and g_V are their gradients. The source is Giles, "An extended collection of matrix
    /// derivative results", 2008, section 3.1. Quotients with λⱼ = λᵢ are set to 0.
    ///
    /// Giles divides Vᵀ g_V itself. That gradient has the same symmetric part, but its other part grows without bound as two eigenvalues
    /// approach each other.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (values, vectors) = (call.outputs[0], call.outputs[1]);
        let inner = transposed(vectors).matmul(gradients[1]);
        let quotients = (inner - transposed(inner)) * 0.5 * inverse_or_zero(differences(values));
        let inner = gradients[0].try_diag_embed(0, -2, -1)? + quotients;
        Ok(vec![Some(vectors.matmul(inner).matmul(transposed(vectors)))])
    }
}

impl Kernel for Eigvalsh {
    const NAME: &'static str = "eigvalsh";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, order) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]).0);
        vec![with_core(&batch, &[order])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, order) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()).0);
        describe_batch(&batch, order, at)
            .compute([inputs[0]], &[with_core(&batch, &[order])], |[a], [values]| eigh(a, self.0.upper, values, None))
    }

    /// The gradient is V diag(g_λ) Vᵀ, where the columns of V are the eigenvectors, and g_λ is the gradient with respect to the
    /// eigenvalues.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let [_, vectors] = apply_kernel_all(self.0, &[call.inputs[0]])?;
        Ok(vec![Some((vectors * gradients[0].unsqueeze(-2)).matmul(transposed(vectors)))])
    }
}
