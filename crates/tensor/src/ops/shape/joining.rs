//! Several tensors made one, along a dimension that exists or a new one.

use wengert_macros::twins;

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::shape::dims;
use crate::{Error, Position, Shape, Site, View};

/// Tensors joined along an existing dimension; all other sizes are equal. PyTorch: `cat`.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0]]));
/// assert_eq!(cat(&[x, y], 0), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// ```
///
/// # Errors
///
/// Where there are none, or sizes differ.
#[twins]
pub fn try_cat<A: TensorLike>(tensors: &[A], dim: impl Position) -> Result<A, A::Error> {
    join(tensors, dim.position(), Site::here("cat"))
}

pub(crate) fn join<A: TensorLike>(tensors: &[A], dim: isize, at: Site) -> Result<A, A::Error> {
    let shapes: Vec<Shape> = tensors.iter().map(A::shape).collect();
    if let Some(position) = shapes.iter().position(|shape| shape.rank() == 0) {
        let message = format!("zero-dimensional tensor (at position {position}) cannot be concatenated");
        return Err(Error::argument(at, message).into());
    }
    // As in PyTorch, tensors of shape [0] are left out whatever the rank of the others.
    let is_legacy_empty = |shape: &Shape| shape.sizes() == [0];
    let Some(first) = shapes.iter().find(|shape| !is_legacy_empty(shape)).or(shapes.first()) else {
        return Err(Error::argument(at, "cat(): expected a non-empty list of Tensors").into());
    };
    let axis = dims::axis(dim, first.rank(), at)?;
    let mut parts = Vec::with_capacity(tensors.len());
    for (position, (tensor, shape)) in tensors.iter().zip(&shapes).enumerate() {
        if is_legacy_empty(shape) && first.rank() != 1 {
            continue;
        }
        if shape.rank() != first.rank() {
            let message =
                format!("Tensors must have same number of dimensions: got {} and {}", first.rank(), shape.rank());
            return Err(Error::MatmulShape { message, at }.into());
        }
        if let Some(other) = (0..shape.rank()).find(|&other| other != axis && shape[other] != first[other]) {
            let message = format!(
                "Sizes of tensors must match except in dimension {axis}. Expected size {} but got size {} for tensor number \
                 {position} in the list.",
                first[other], shape[other]
            );
            return Err(Error::MatmulShape { message, at }.into());
        }
        parts.push(tensor.clone());
    }
    if parts.len() == 1 {
        return Ok(parts.swap_remove(0));
    }
    A::apply_cat(&parts, axis, at)
}

/// Tensors of one shape joined along a new dimension. PyTorch: `stack`.
///
/// # Errors
///
/// Where there are none, or shapes differ.
#[twins]
pub fn try_stack<A: TensorLike>(tensors: &[A], dim: impl Position) -> Result<A, A::Error> {
    let at = Site::here("stack");
    let Some(first) = tensors.first().map(A::shape) else {
        return Err(Error::argument(at, "stack expects a non-empty TensorList").into());
    };
    let axis = dims::axis(dim.position(), first.rank() + 1, at)?;
    for (position, tensor) in tensors.iter().enumerate() {
        let shape = tensor.shape();
        if shape != first {
            let message = format!(
                "stack expects each tensor to be equal size, but got {first} at entry 0 and {shape} at entry {position}"
            );
            return Err(Error::argument(at, message).into());
        }
    }
    let mut part = first;
    part.insert(axis, 1);
    let parts: Result<Vec<A>, A::Error> =
        tensors.iter().map(|tensor| tensor.apply_view(View::Reshape(part.clone()), at)).collect();
    join(&parts?, axis as isize, at)
}

/// Tensors side by side: joined along dimension 1, or 0 where they are vectors; numbers count as vectors of one. PyTorch:
/// `hstack`.
///
/// # Errors
///
/// Where there are none, or sizes differ.
#[twins]
pub fn try_hstack<A: TensorLike>(tensors: &[A]) -> Result<A, A::Error> {
    let at = Site::here("hstack");
    let parts = at_least(tensors, 1, at)?;
    let flat = parts.first().is_none_or(|part| part.shape().rank() == 1);
    join(&parts, if flat { 0 } else { 1 }, at)
}

/// Tensors one above the other: joined along dimension 0; vectors count as matrices of one row. PyTorch: `vstack`.
///
/// ```
/// use wengert_tensor::ops::vstack;
/// use wengert_tensor::prelude::*;
///
/// let table = vstack(&[Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0])]);
/// assert_eq!(table, Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// ```
///
/// # Errors
///
/// Where there are none, or sizes differ.
#[twins]
pub fn try_vstack<A: TensorLike>(tensors: &[A]) -> Result<A, A::Error> {
    let at = Site::here("vstack");
    join(&at_least(tensors, 2, at)?, 0, at)
}

/// Dimensions of size 1 put first where there are fewer than `rank`.
fn at_least<A: TensorLike>(tensors: &[A], rank: usize, at: Site) -> Result<Vec<A>, A::Error> {
    let mut parts = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let mut shape = tensor.shape();
        while shape.rank() < rank {
            shape.insert(0, 1);
        }
        parts.push(tensor.reshaped(shape, at)?);
    }
    Ok(parts)
}

/// Whether the first two grids of [`meshgrid`] are indexed by row and column, or the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing2d {
    /// Dimension `k` runs along tensor `k`, as in a matrix. PyTorch: `indexing='ij'`.
    #[default]
    Matrix,
    /// The first tensor runs along the columns, the second along the rows, as x and y in a plot. PyTorch: `indexing='xy'`.
    Cartesian,
}

/// A grid from the coordinates along each axis: every vector (or number) expanded along all the others. No element is
/// copied. PyTorch: `meshgrid`.
///
/// ```
/// use wengert_tensor::ops::{Indexing2d, meshgrid};
/// use wengert_tensor::prelude::*;
///
/// let (x, y) = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from([10.0, 20.0]));
/// let grids = meshgrid(&[x, y], Indexing2d::Cartesian);
/// assert_eq!(grids[0], Tensor::from([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]));
/// assert_eq!(grids[1], Tensor::from([[10.0, 10.0, 10.0], [20.0, 20.0, 20.0]]));
/// ```
///
/// # Errors
///
/// Where there are none, or one has two dimensions or more.
#[twins]
pub fn try_meshgrid<A: TensorLike>(tensors: &[A], indexing: Indexing2d) -> Result<Vec<A>, A::Error> {
    let at = Site::here("meshgrid");
    if tensors.is_empty() {
        return Err(Error::argument(at, "meshgrid expects a non-empty TensorList").into());
    }
    if let Some(tensor) = tensors.iter().find(|tensor| tensor.shape().rank() > 1) {
        let message =
            format!("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}", tensor.shape());
        return Err(Error::argument(at, message).into());
    }
    let swapped = indexing == Indexing2d::Cartesian && tensors.len() > 1;
    let place = |position: usize| if swapped && position < 2 { 1 - position } else { position };
    let mut grid = Shape::ones(tensors.len());
    for (position, tensor) in tensors.iter().enumerate() {
        grid[place(position)] = tensor.shape().numel();
    }
    let mut grids = Vec::with_capacity(tensors.len());
    for (position, tensor) in tensors.iter().enumerate() {
        let mut line = Shape::ones(tensors.len());
        line[place(position)] = tensor.shape().numel();
        grids.push(tensor.reshaped(line, at)?.over(&grid, at)?);
    }
    Ok(grids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn numbers_and_vectors_stack() {
        let (x, y) = (Tensor::scalar(1.0), Tensor::from([2.0, 3.0]));
        assert_eq!(hstack(&[x.clone(), y.clone()]).to_vec(), [1.0, 2.0, 3.0]);
        assert_eq!(vstack(&[x.clone(), x]), Tensor::from([[1.0], [1.0]]));
        assert_eq!(hstack(&[Tensor::from([[1.0]]), Tensor::from([[2.0]])]), Tensor::from([[1.0, 2.0]]));
        assert!(try_hstack::<Tensor<f64>>(&[]).is_err());
        assert!(try_vstack(&[y, Tensor::from([1.0])]).is_err());
    }

    #[test]
    fn a_grid_is_a_view() {
        let x = Tensor::from([1.0, 2.0]);
        let grids = meshgrid(&[x.clone(), Tensor::scalar(5.0), Tensor::<f64>::zeros([3])], Indexing2d::Matrix);
        assert_eq!(grids[0].shape(), &[2, 1, 3]);
        assert!(grids[0].shares_storage(&x));
        assert_eq!(grids[1].to_vec(), [5.0; 6]);
    }
}
