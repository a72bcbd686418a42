//! The derivatives of the matrix product z = x y. With the incoming gradient g, they are ∂x = g yᵀ and ∂y = xᵀ g (Petersen and Pedersen,
//! "The Matrix Cookbook", 2.4).

use wengert_tensor::ops::{TensorLike, Views};
use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Site, View};

use super::movement;
use super::shared::JacobianProduct;
use crate::tape::BatchedCall;
use crate::{Error, Var};

/// Records the derivative with respect to the input with index `input`, applied to `v`. Depending on `product`, `v` is an incoming gradient
/// or the tangent of this input.
pub(super) fn derivative<'t, T: Float>(
    input: usize,
    x: Var<'t, T>,
    y: Var<'t, T>,
    v: Var<'t, T>,
    product: JacobianProduct,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    match (product, input) {
        (JacobianProduct::Vjp, 0) => v.apply_matmul(&y.transpose(-2, -1), at),
        // If y is a transposed view, its gradient xᵀ g is computed as (gᵀ x)ᵀ, so that the gradient is a transposed view too.
        (JacobianProduct::Vjp, _) if is_transposed(y) => {
            let transposed = v.transpose(-2, -1).apply_matmul(&x, at)?;
            Ok(transposed.transpose(-2, -1))
        }
        (JacobianProduct::Vjp, _) => x.transpose(-2, -1).apply_matmul(&v, at),
        (JacobianProduct::Jvp, 0) => v.apply_matmul(&y, at),
        (JacobianProduct::Jvp, _) => x.apply_matmul(&v, at),
    }
}

/// Records the matrix products of all examples. If all examples share the right matrix, a single product suffices. The same holds for a
/// shared left matrix, if the right matrices have one column each. If the stacked factors of all examples are an identity matrix, as in the
/// computation of a Jacobian, no product is needed.
pub(super) fn record_batched<'t, T: Float>(call: &BatchedCall<'t, T>) -> Result<Var<'t, T>, Error> {
    let (x, y, at) = (call.input(0), call.input(1), call.at);
    let (left, right) = (x.shape(), y.shape());
    let merge_rows = |z: Var<'t, T>, sizes: [usize; 2]| z.apply_view(View::Reshape(sizes.into()), at);
    let result = |z: Var<'t, T>| z.apply_view(View::Reshape(call.shape()), at);
    match (&left[..], &right[..]) {
        (&[size, m, k], &[_, _]) if is_identity(x, [size * m, k]) => result(y),
        (&[size, m, k], &[_, _]) => result(merge_rows(x, [size * m, k])?.apply_matmul(&y, at)?),
        (&[_, k], &[size, _, 1]) => {
            let permuted = x.apply_view(View::Permute([1, 0].into_iter().collect()), at)?;
            result(if is_identity(y, [size, k]) {
                permuted
            } else {
                merge_rows(y, [size, k])?.apply_matmul(&permuted, at)?
            })
        }
        _ => call.try_batched(0)?.apply_matmul(&call.try_batched(1)?, at),
    }
}

/// Returns true if `x`, reshaped to these numbers of rows and columns, was recorded as an identity matrix.
fn is_identity<T: Float>(x: Var<'_, T>, [rows, columns]: [usize; 2]) -> bool {
    let record = x.tape.record.borrow();
    let mut node = x.index;
    while record.op(node) == Op::Reshape {
        node = record.operands(node)[0];
    }
    rows == columns && record.identity_matrices.contains(&node)
}

fn is_transposed<T: Float>(y: Var<'_, T>) -> bool {
    let record = y.tape.record.borrow();
    matches!(record.node(y.index).op, Op::View(number) if movement::is_transpose(record.view(number)))
}
