//! The matrix exponential.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::ops::try_cat;
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{apply_kernel, transposed};
use crate::batches::{Batch, cost};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, matrix_size};
use crate::numerics::exponential::exponential;

const OPERATION: &str = "linalg.matrix_exp";

/// The kernel that computes the matrix exponential exp(A).
#[derive(Clone, Copy)]
pub(crate) struct MatrixExp;

impl Kernel for MatrixExp {
    const NAME: &'static str = "matrix_exp";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, order) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()).0);
        let matrices = Batch { shape: &batch, cost: cost(&[8, order, order, order]), name: OPERATION, reason: "", at };
        matrices.compute([inputs[0]], &[inputs[0].shape().clone()], |[a], [out]| exponential(a, order, out))
    }

    /// The gradient is the Fréchet derivative of exp at Aᵀ in the direction g, where g is the gradient with respect to exp(A). It is the
    /// upper right block of exp([[Aᵀ, g], [0, Aᵀ]]) (Higham, "Functions of Matrices", theorem 3.6). The largest element of g is scaled to 1,
    /// because the exponential of a block with a large norm is less accurate.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (a, g) = (transposed(call.inputs[0]), gradients[0]);
        let shape = a.shape();
        let order = shape[shape.rank() - 1];
        if order == 0 {
            return Ok(vec![Some(g)]);
        }
        let scale = g.detach().abs().amax_keepdim([-2, -1]);
        let scale = scale + scale.eq(0.0);
        let g = g / scale;
        let zeros = g.tape().try_constant(0.0)?.try_expand(&shape)?;
        let block = try_cat(&[try_cat(&[a, g], -1)?, try_cat(&[zeros, a], -1)?], -2)?;
        Ok(vec![Some(apply_kernel(*self, &[block])?.narrow(-2, 0, order).narrow(-1, order, order) * scale)])
    }
}
