//! The pseudoinverse and least squares. Both derivative rules are products with the pseudoinverse. So they are finite for equal singular
//! values too.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{apply_kernel, svd, transposed};
use crate::batches::Batch;
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, with_core};
use crate::numerics::pseudoinverse::{Cutoff, least_squares, pseudoinverse, symmetric_pseudoinverse};

/// The kernel that computes the pseudoinverse.
#[derive(Clone, Copy)]
pub(crate) struct Pinv {
    pub(crate) cutoff: Cutoff,
    /// True if the matrices are declared symmetric. Then only their lower triangles are read.
    pub(crate) hermitian: bool,
}

impl Kernel for Pinv {
    const NAME: &'static str = "pinv";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let mut shape = inputs[0].clone();
        let rank = shape.rank();
        shape.swap(rank - 2, rank - 1);
        vec![shape]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shape = inputs[0].shape();
        let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let batch = batch_shape(shape, 2);
        let name = if self.hermitian { "linalg.eigh" } else { svd::OPERATION };
        let matrices = Batch { shape: &batch, cost: svd::cost([rows, columns]), name, reason: svd::REASON, at };
        matrices.compute([inputs[0]], &[with_core(&batch, &[columns, rows])], |[a], [out]| {
            if self.hermitian {
                symmetric_pseudoinverse(a, rows, self.cutoff, out)
            } else {
                pseudoinverse(a, [rows, columns], self.cutoff, out).map(drop)
            }
        })
    }

    /// The gradient is -Pᵀ g Pᵀ + (I - A P) gᵀ P Pᵀ + Pᵀ P gᵀ (I - P A). Here P is the pseudoinverse of A, and g is the gradient with
    /// respect to P (Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    /// separate", 1973).
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let (a, p, g) = (call.inputs[0], call.outputs[0], gradients[0]);
        let (pt, gt) = (transposed(p), transposed(g));
        // These products may need more memory than A, so their errors are returned.
        let second = gt.try_matmul(p)?.try_matmul(pt)?;
        let third = pt.try_matmul(p)?.try_matmul(gt)?;
        let sum = second - a.try_matmul(p.try_matmul(second)?)? + third - third.try_matmul(p)?.try_matmul(a)?;
        Ok(vec![Some(sum - pt.try_matmul(g)?.try_matmul(pt)?)])
    }
}

/// The kernel that computes the X that minimizes |A X - B|, and the rank of A. If several X minimize it, the kernel computes the one with
/// the smallest norm.
#[derive(Clone, Copy)]
pub(crate) struct Lstsq {
    pub(crate) cutoff: Cutoff,
}

impl Kernel for Lstsq {
    const NAME: &'static str = "lstsq";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (a, b) = (&inputs[0], &inputs[1]);
        let batch = batch_shape(a, 2);
        vec![with_core(&batch, &[a[a.rank() - 1], b[b.rank() - 1]]), batch]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (a, b) = (inputs[0].shape(), inputs[1].shape());
        let sizes = [a[a.rank() - 2], a[a.rank() - 1], b[b.rank() - 1]];
        let batch = batch_shape(a, 2);
        let cost = svd::cost([sizes[0], sizes[1]]);
        let matrices = Batch { shape: &batch, cost, name: "linalg.lstsq", reason: svd::REASON, at };
        let shapes = [with_core(&batch, &sizes[1..]), batch.clone()];
        matrices.compute([inputs[0], inputs[1]], &shapes, |[a, b], [x, rank]| {
            rank[0] = T::from_f64(least_squares(a, b, sizes, self.cutoff, x)? as f64);
            Ok(())
        })
    }

    /// With the pseudoinverse P of A, X is P B. With the gradient g with respect to X, the gradients are g_B = Pᵀ g for B, and g_A = -Pᵀ g
    /// Xᵀ + (B - A X) gᵀ P Pᵀ + Pᵀ X gᵀ (I - P A) for A. This follows from the derivative rule of P. The rank has no derivative.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let ([a, b], x, g) = ([call.inputs[0], call.inputs[1]], call.outputs[0], gradients[0]);
        let p = apply_kernel(Pinv { cutoff: self.cutoff, hermitian: false }, &[a])?;
        let (pt, gt) = (transposed(p), transposed(g));
        let gb = pt.matmul(g);
        let residual = (b - a.try_matmul(x)?).try_matmul(gt.try_matmul(p)?.try_matmul(pt)?)?;
        let projected = pt.try_matmul(x.try_matmul(gt)?)?;
        let ga = residual + projected - projected.try_matmul(p)?.try_matmul(a)? - gb.try_matmul(transposed(x))?;
        Ok(vec![Some(ga), Some(gb)])
    }
}
