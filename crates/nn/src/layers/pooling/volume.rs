//! Pooling over three dimensions, in two steps of two dimensions each: first over height and width, then along the
//! depth.

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Sizes};

use crate::layers::forward::refused;

/// Returns the sizes of three dimensions from one value for all or three values. `what` names the sizes in the error for any other number of
/// values.
#[track_caller]
pub(super) fn three(sizes: &Sizes, what: &str) -> Result<[isize; 3], Error> {
    match *sizes.as_slice() {
        [size] => Ok([size; 3]),
        [d, h, w] => Ok([d, h, w]),
        ref other => Err(refused("pool3d", format!("{what} must be one number or three, but got {other:?}"))),
    }
}

/// Merges the depth d of volumes into their c channels: `[…, c, d, h, w]` becomes `[…, c·d, h, w]`.
#[track_caller]
pub(super) fn to_planes<'t, T: Float>(x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    x.try_flatten(-4, -3)
}

/// Returns `planes`, the volumes `x` after the pooling over height and width, in the shape `[…, c, d, h·w]`. The next step can then pool along
/// the depth d.
#[track_caller]
pub(super) fn to_columns<'t, T: Float>(planes: Var<'t, T>, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    let [channels, depth] = [4, 3].map(|from_last| x.shape()[x.shape().rank() - from_last]);
    planes.try_flatten(-2, -1)?.try_unflatten(-2, [channels, depth])
}

/// Splits the last dimension of `columns`, which has the shape `[…, c, d, h·w]`, into the height h and the width w of `planes`.
#[track_caller]
pub(super) fn to_volumes<'t, T: Float>(columns: Var<'t, T>, planes: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    let shape = planes.shape();
    columns.try_unflatten(-1, &shape[shape.rank() - 2..])
}
