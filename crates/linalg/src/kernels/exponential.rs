//! The matrix exponential.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::transposed;
use crate::array::{Array as _, Kernel};
use crate::matrices::{Batch, square};
use crate::numerics::exponential::exponential;

const NAME: &str = "linalg.matrix_exp";

/// exp(A).
#[derive(Clone, Copy)]
pub(crate) struct MatrixExp;

impl<T: Float> Kernel<T> for MatrixExp {
    fn name(&self) -> &'static str {
        "matrix_exp"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        square(&inputs[0], NAME)?;
        Ok(vec![inputs[0].clone()])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, order) = square(inputs[0].shape(), NAME).map_err(|message| Error::Argument { message, at })?;
        let computed = Batch { shape: &batch, name: NAME, reason: "", at };
        computed.compute(&[&inputs[0]], &[inputs[0].shape().clone()], |a, out| exponential(a[0], order, out[0]))
    }

    /// The Fréchet derivative at Aᵀ in the direction g. It is the upper right block of exp([[Aᵀ, g], [0, Aᵀ]]) (Higham, "Functions of Matrices",
    /// theorem 3.6).
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (a, g) = (transposed(call.inputs[0]), gradients[0]);
        let shape = a.shape();
        let order = shape[shape.rank() - 1];
        let zeros = g.tape().constant(&Tensor::zeros(&shape));
        let block = cat(&[cat(&[a, g], -1), cat(&[zeros, a], -1)], -2);
        let result = Var::apply_kernel(*self, &[block], Site::here("matrix_exp"));
        let result = result.unwrap_or_else(|error| crate::raise(error))[0];
        vec![Some(result.narrow(-2, 0, order).narrow(-1, order, order))]
    }
}
