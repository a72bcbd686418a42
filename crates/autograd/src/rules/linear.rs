//! The matrix product z = x y: ∂x = g yᵀ, ∂y = xᵀ g (Petersen and Pedersen, "The Matrix Cookbook", 2.4).

use wengert_tensor::ops::{TensorLike, Views};
use wengert_tensor::{Float, Site};

use super::Mode;
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
        (Mode::Vjp, _) => x.transpose(-2, -1).apply_matmul(&v, at),
        (Mode::Jvp, 0) => v.apply_matmul(&y, at),
        (Mode::Jvp, _) => x.apply_matmul(&v, at),
    }
}
