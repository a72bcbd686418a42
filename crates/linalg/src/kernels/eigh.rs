//! The eigenvalues and eigenvectors of symmetric matrices.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{differences, inverse_or_zero, transposed};
use crate::array::{Array as _, Kernel};
use crate::matrices::{Batch, joined, square};
use crate::numerics::eigen::symmetric;

const NAME: &str = "linalg.eigh";

/// The eigenvalues in ascending order, and the eigenvectors as columns.
#[derive(Clone, Copy)]
pub(crate) struct Eigh {
    /// True if the upper triangle is read, not the lower one.
    pub(crate) upper: bool,
}

/// The eigenvalues alone.
pub(crate) struct Eigvalsh(pub(crate) Eigh);

/// Computes the eigenvalues, and the vectors if `shapes` has a shape for them.
fn run<T: Float>(eigh: Eigh, input: &Tensor<T>, shapes: &[Shape], at: Site) -> Result<Vec<Tensor<T>>, Error> {
    let batch = Shape::from(&input.shape()[..input.rank() - 2]);
    let reason = "the input matrix is ill-conditioned or has too many repeated eigenvalues";
    Batch { shape: &batch, name: NAME, reason, at }.compute(&[input], shapes, |input, out| {
        let (values, vectors) = out.split_at_mut(1);
        symmetric(input[0], eigh.upper, values[0], vectors.first_mut().map(|vectors| &mut **vectors))
    })
}

impl<T: Float> Kernel<T> for Eigh {
    fn name(&self) -> &'static str {
        "eigh"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        let (batch, order) = square(&inputs[0], NAME)?;
        Ok(vec![joined(&batch, &[order]), joined(&batch, &[order, order])])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, order) = square(inputs[0].shape(), NAME).map_err(|message| Error::Argument { message, at })?;
        run(*self, &inputs[0], &[joined(&batch, &[order]), joined(&batch, &[order, order])], at)
    }

    /// V (diag g_λ + (Vᵀ g_V) / E) Vᵀ with Eᵢⱼ = λⱼ - λᵢ, and without the quotients where λⱼ = λᵢ (Giles, "An extended collection of matrix
    /// derivative results", 2008, section 3.1).
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (values, vectors) = (call.outputs[0], call.outputs[1]);
        let quotients = transposed(vectors).matmul(gradients[1]) * inverse_or_zero(differences(values));
        let inner = gradients[0].diag_embed(0, -2, -1) + quotients;
        vec![Some(vectors.matmul(inner).matmul(transposed(vectors)))]
    }
}

impl<T: Float> Kernel<T> for Eigvalsh {
    fn name(&self) -> &'static str {
        "eigvalsh"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        let (batch, order) = square(&inputs[0], NAME)?;
        Ok(vec![joined(&batch, &[order])])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shapes = Kernel::<T>::shapes(self, &[inputs[0].shape().clone()]);
        run(self.0, &inputs[0], &shapes.map_err(|message| Error::Argument { message, at })?, at)
    }

    /// V diag(g_λ) Vᵀ.
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let results = Var::apply_kernel(self.0, &call.inputs, Site::here("eigvalsh"));
        let vectors = results.unwrap_or_else(|error| crate::raise(error))[1];
        vec![Some((vectors * gradients[0].unsqueeze(-2)).matmul(transposed(vectors)))]
    }
}
