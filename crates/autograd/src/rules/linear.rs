//! The matrix product z = x y: ∂x = g yᵀ, ∂y = xᵀ g (Petersen and Pedersen, "The Matrix Cookbook", 2.4).

use wengert_tensor::ops::{TensorLike, Views};
use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Site};

use super::mode::Mode;
use super::movement;
use crate::{Error, Var};

pub(super) fn derivative<'t, T: Float>(
    input: usize,
    x: Var<'t, T>,
    y: Var<'t, T>,
    v: Var<'t, T>,
    mode: Mode,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    match (mode, input) {
        (Mode::Vjp, 0) => v.apply_matmul(&y.transpose(-2, -1), at),
        // For a transposed matrix, (gᵀ x)ᵀ gives the gradient the strides of the matrix.
        (Mode::Vjp, _) if is_transposed(y) => {
            let transposed = v.transpose(-2, -1).apply_matmul(&x, at)?;
            Ok(transposed.transpose(-2, -1))
        }
        (Mode::Vjp, _) => x.transpose(-2, -1).apply_matmul(&v, at),
        (Mode::Jvp, 0) => v.apply_matmul(&y, at),
        (Mode::Jvp, _) => x.apply_matmul(&v, at),
    }
}

fn is_transposed<T: Float>(y: Var<'_, T>) -> bool {
    let record = y.tape.record.borrow();
    matches!(record.node(y.index).op, Op::View(number) if movement::is_transpose(record.view(number)))
}
