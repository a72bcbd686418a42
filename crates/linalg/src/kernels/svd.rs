//! The singular value decomposition.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{differences, inverse_or_zero, transposed};
use crate::array::{Array as _, Kernel};
use crate::matrices::{Batch, joined, split};
use crate::numerics::singular::{Vectors, singular};

pub(crate) const NAME: &str = "linalg.svd";
pub(crate) const REASON: &str = "the input matrix is ill-conditioned or has too many repeated singular values";

/// The left vectors U as columns, the singular values in descending order, and the right vectors Vᵀ as rows.
#[derive(Clone, Copy)]
pub(crate) struct Svd {
    /// True if U and V are square.
    pub(crate) full: bool,
}

/// The singular values alone.
pub(crate) struct Svdvals;

impl<T: Float> Kernel<T> for Svd {
    fn name(&self) -> &'static str {
        "svd"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        let (batch, rows, columns) = split(&inputs[0], NAME)?;
        let count = rows.min(columns);
        let [left, right] = if self.full { [rows, columns] } else { [count; 2] };
        Ok(vec![joined(&batch, &[rows, left]), joined(&batch, &[count]), joined(&batch, &[right, columns])])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let refused = |message| Error::Argument { message, at };
        let (batch, rows, columns) = split(inputs[0].shape(), NAME).map_err(refused)?;
        let shapes = Kernel::<T>::shapes(self, &[inputs[0].shape().clone()]).map_err(refused)?;
        Batch { shape: &batch, name: NAME, reason: REASON, at }.compute(&[&inputs[0]], &shapes, |input, out| {
            let [u, values, vh] = out else { return Ok(()) };
            singular(input[0], [rows, columns], values, Some(Vectors { u, vh, full: self.full }))
        })
    }

    /// U (skew(Uᵀ g_U) / E S + S skew(Vᵀ g_V) / E + diag g_S) Vᵀ + (I - U Uᵀ) g_U S⁻¹ Vᵀ + U S⁻¹ g_Vᵀ (I - V Vᵀ), with skew(X) = X - Xᵀ and
    /// Eᵢⱼ = σⱼ² - σᵢ² (Townsend, "Differentiating the singular value decomposition", 2016). Quotients by zeros are left out.
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (values, shape) = (call.outputs[1], call.inputs[0].shape());
        let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let count = rows.min(columns);
        // The further columns of square U and V are any orthonormal completion, which has no derivative.
        let first = |x: Var<'t, T>, dim: isize| x.narrow(dim, 0, count);
        let (u, gu) = (first(call.outputs[0], -1), first(gradients[0], -1));
        let (v, gv) = (transposed(first(call.outputs[2], -2)), transposed(first(gradients[2], -2)));
        let across = values.unsqueeze(-2);
        let quotients = inverse_or_zero(differences(values.square()));
        let (left, right) = (transposed(u).matmul(gu), transposed(v).matmul(gv));
        let inner = (left - transposed(left)) * quotients * across
            + (right - transposed(right)) * quotients * values.unsqueeze(-1)
            + gradients[1].diag_embed(0, -2, -1);
        let mut left_factor = u.matmul(inner);
        let inverse = inverse_or_zero(across);
        if rows > count {
            left_factor = left_factor + (gu - u.matmul(left)) * inverse;
        }
        let mut gradient = left_factor.matmul(transposed(v));
        if columns > count {
            gradient = gradient + u.matmul(transposed((gv - v.matmul(right)) * inverse));
        }
        vec![Some(gradient)]
    }
}

impl<T: Float> Kernel<T> for Svdvals {
    fn name(&self) -> &'static str {
        "svdvals"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        let (batch, rows, columns) = split(&inputs[0], NAME)?;
        Ok(vec![joined(&batch, &[rows.min(columns)])])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let refused = |message| Error::Argument { message, at };
        let (batch, rows, columns) = split(inputs[0].shape(), NAME).map_err(refused)?;
        let shapes = [joined(&batch, &[rows.min(columns)])];
        Batch { shape: &batch, name: NAME, reason: REASON, at }
            .compute(&[&inputs[0]], &shapes, |input, out| singular(input[0], [rows, columns], out[0], None))
    }

    /// U diag(g_S) Vᵀ.
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let results = Var::apply_kernel(Svd { full: false }, &call.inputs, Site::here("svdvals"));
        let [u, _, vh] = results.unwrap_or_else(|error| crate::raise(error))[..] else { return vec![None] };
        vec![Some((u * gradients[0].unsqueeze(-2)).matmul(vh))]
    }
}
