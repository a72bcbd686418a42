//! The singular value decomposition.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{apply_kernel_all, differences, inverse_or_zero, transposed};
use crate::batches::{self, Batch};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, matrix_size, with_core};
use crate::numerics::singular::{Vectors, svd};

pub(crate) const OPERATION: &str = "linalg.svd";
pub(crate) const REASON: &str = "the input matrix is ill-conditioned or has too many repeated singular values";

/// The kernel that computes the singular value decomposition A = U S Vᵀ. The outputs are the left singular vectors as the columns of U, the
/// singular values in descending order, and the right singular vectors as the rows of Vᵀ.
#[derive(Clone, Copy)]
pub(crate) struct Svd {
    /// True if U and V are square. False if they have as many columns as A has singular values.
    pub(crate) full: bool,
}

impl Svd {
    /// Returns the shapes of U, the singular values and Vᵀ for a batch of matrices of shape `shape`.
    fn result_shapes(self, shape: &Shape) -> [Shape; 3] {
        let (batch, (rows, columns)) = (batch_shape(shape, 2), matrix_size(shape));
        let count = rows.min(columns);
        let [left, right] = if self.full { [rows, columns] } else { [count; 2] };
        [with_core(&batch, &[rows, left]), with_core(&batch, &[count]), with_core(&batch, &[right, columns])]
    }
}

/// The kernel that computes the singular values without the vectors.
#[derive(Clone, Copy)]
pub(crate) struct Svdvals;

/// Returns the approximate number of multiplications for the decomposition of one matrix.
pub(super) fn cost([rows, columns]: [usize; 2]) -> usize {
    batches::cost(&[4, rows, columns, rows.min(columns)])
}

impl Kernel for Svd {
    const NAME: &'static str = "svd";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        self.result_shapes(&inputs[0]).into()
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, (rows, columns)) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()));
        let matrices = Batch { shape: &batch, cost: cost([rows, columns]), name: OPERATION, reason: REASON, at };
        matrices.compute([inputs[0]], &self.result_shapes(inputs[0].shape()), |[a], [u, values, vh]| {
            svd(a, [rows, columns], values, Some(Vectors { u, vh, full: self.full }))
        })
    }

    /// The gradient is U (skew(Uᵀ g_U) / E S + S skew(Vᵀ g_V) / E + diag g_S) Vᵀ + (I - U Uᵀ) g_U S⁻¹ Vᵀ + U S⁻¹ g_Vᵀ (I - V Vᵀ). Here g_U,
    /// g_S and g_V are the gradients with respect to U, S and V. Further, skew(X) = X - Xᵀ, and Eᵢⱼ = σⱼ² - σᵢ² for the singular values σ.
    /// The source is Townsend, "Differentiating the singular value decomposition", 2016. Quotients by 0 are set to 0.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (values, shape) = (call.outputs[1], call.inputs[0].shape());
        let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let count = rows.min(columns);
        // The additional columns of a square U or V complete the singular vectors to an orthonormal basis. Their choice is arbitrary, so
        // they have no derivative.
        let leading = |x: Var<'t, T>, dim: isize| x.narrow(dim, 0, count);
        let (u, gu) = (leading(call.outputs[0], -1), leading(gradients[0], -1));
        let (v, gv) = (transposed(leading(call.outputs[2], -2)), transposed(leading(gradients[2], -2)));
        let (sigma_j, sigma_i) = (values.unsqueeze(-2), values.unsqueeze(-1));
        // σⱼ / (σⱼ² - σᵢ²) is computed as σⱼ / (σⱼ + σᵢ) / (σⱼ - σᵢ), because the squares may overflow or underflow.
        let quotients = inverse_or_zero(differences(values));
        let sums = sigma_j + sigma_i;
        let sums = sums + sums.eq(0.0);
        let (left, right) = (transposed(u).matmul(gu), transposed(v).matmul(gv));
        let inner = (left - transposed(left)) * (quotients * (sigma_j / sums))
            + (right - transposed(right)) * (quotients * (sigma_i / sums))
            + gradients[1].try_diag_embed(0, -2, -1)?;
        let mut left_factor = u.matmul(inner);
        let inverse = inverse_or_zero(sigma_j);
        if rows > count {
            left_factor += (gu - u.matmul(left)) * inverse;
        }
        let mut gradient = left_factor.matmul(transposed(v));
        if columns > count {
            gradient += u.matmul(transposed((gv - v.matmul(right)) * inverse));
        }
        Ok(vec![Some(gradient)])
    }
}

impl Kernel for Svdvals {
    const NAME: &'static str = "svdvals";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, (rows, columns)) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]));
        vec![with_core(&batch, &[rows.min(columns)])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, (rows, columns)) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()));
        let shapes = [with_core(&batch, &[rows.min(columns)])];
        Batch { shape: &batch, cost: cost([rows, columns]), name: OPERATION, reason: REASON, at }.compute(
            [inputs[0]],
            &shapes,
            |[a], [values]| svd(a, [rows, columns], values, None),
        )
    }

    /// The gradient is U diag(g_S) Vᵀ, where g_S is the gradient with respect to the singular values.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let [u, _, vh] = apply_kernel_all(Svd { full: false }, &[call.inputs[0]])?;
        Ok(vec![Some((u * gradients[0].unsqueeze(-2)).matmul(vh))])
    }
}
