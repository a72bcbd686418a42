//! The QR decomposition.

use wengert_autograd::{Error as RuleError, FunctionCall, Var};
use wengert_tensor::ops::try_cat;
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::substitution::record_solution;
use super::transposed;
use crate::batches::{Batch, cost};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, matrix_size, with_core};
use crate::numerics::qr::qr;
use crate::numerics::triangular::TriangularPart;

const OPERATION: &str = "linalg.qr";

/// The kernel that computes Q with orthonormal columns, and the upper triangular R.
#[derive(Clone, Copy)]
pub(crate) struct Qr {
    /// True if Q is square. False if Q has min(m, n) columns for a matrix `[m, n]`.
    pub(crate) complete: bool,
}

impl Kernel for Qr {
    const NAME: &'static str = "qr";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (batch, (rows, columns)) = (batch_shape(&inputs[0], 2), matrix_size(&inputs[0]));
        let width = if self.complete { rows } else { rows.min(columns) };
        vec![with_core(&batch, &[rows, width]), with_core(&batch, &[width, columns])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (batch, (rows, columns)) = (batch_shape(inputs[0].shape(), 2), matrix_size(inputs[0].shape()));
        let width = if self.complete { rows } else { rows.min(columns) };
        let shapes = [with_core(&batch, &[rows, width]), with_core(&batch, &[width, columns])];
        let cost = cost(&[2, rows, columns, width]);
        Batch { shape: &batch, cost, name: OPERATION, reason: "", at }
            .compute([inputs[0]], &shapes, |[a], [q, r]| qr(a, [rows, columns, width], q, r))
    }

    /// The derivative is an error if Q is complete and A has more rows than columns.
    ///
    /// For A with at least as many rows as columns, the gradient is (g_Q + Q copyltu(M)) R⁻ᵀ with M = R g_Rᵀ - g_Qᵀ Q. Here g_Q and g_R are
    /// the gradients with respect to Q and R. The function copyltu copies the lower triangle to the upper one (Seeger et al.,
    /// "Auto-differentiating linear algebra", 2017). A wide matrix is [X, Y] = Q [U, W] with a triangular U. The rule applies to X = Q U.
    /// The other part is W = Qᵀ Y.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (a, q, r) = (call.inputs[0], call.outputs[0], call.outputs[1]);
        let shape = a.shape();
        let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        if self.complete && rows > columns {
            let message = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.";
            let error = Error::Argument { message: message.into(), at: Site::here("qr") };
            return Err(error.into());
        }
        if rows >= columns {
            return Ok(vec![Some(tall_gradient(q, r, gradients[0], gradients[1])?)]);
        }
        let parts = |x: Var<'t, T>| (x.narrow(-1, 0, rows), x.narrow(-1, rows, columns - rows));
        let ((_, y), (u, _), (gu, gw)) = (parts(a), parts(r), parts(gradients[1]));
        let gx = tall_gradient(q, u, gradients[0] + y.matmul(transposed(gw)), gu)?;
        Ok(vec![Some(try_cat(&[gx, q.matmul(gw)], -1)?)])
    }
}

/// Returns the gradient with respect to A = Q R, if A has at least as many rows as columns. `gq` and `gr` are the gradients with respect to
/// Q and R.
fn tall_gradient<'t, T: Float>(
    q: Var<'t, T>,
    r: Var<'t, T>,
    gq: Var<'t, T>,
    gr: Var<'t, T>,
) -> Result<Var<'t, T>, RuleError> {
    let m = r.matmul(transposed(gr)) - transposed(gq).matmul(q);
    let mirrored = m.try_tril(0)? + transposed(m.try_tril(-1)?);
    let sum = gq + q.matmul(mirrored);
    Ok(transposed(record_solution(TriangularPart::UPPER, r, transposed(sum))?))
}
