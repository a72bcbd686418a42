//! Reading by index, and joining.

use super::{TensorLike, twin};
use crate::dims;
use crate::error::{Error, Site, raise};
use crate::view::View;
use crate::{Shape, Tensor};

/// Reading by index tensors. Indices are plain data; no gradient flows to them. Where one position is read several times,
/// its gradients add up.
pub trait Indexing: TensorLike {
    twin! { trait
        /// Along dimension `dim`, the elements at the positions `index`, a vector; negative ones are refused. PyTorch:
        /// `index_select`.
        fn index_select | try_index_select(&self, dim: isize, index: &Tensor<i64>) -> Self = at {
            let shape = self.shape();
            let axis = dims::axis(dim, shape.rank(), at)?;
            if index.rank() > 1 {
                return Err(Error::argument(at, "index_select(): Index is supposed to be a vector").into());
            }
            let whole = if shape.rank() == 0 { Shape::from([1]) } else { shape.clone() };
            let mut target = whole.clone();
            target[axis] = index.numel();
            let line = index.elements(at)?;
            if let Some(id) = line.iter().find(|&&id| id < 0 || id as usize >= whole[axis]) {
                let message = format!("INDICES element is out of DATA bounds, id={id} axis_dim={}", whole[axis]);
                return Err(Error::IndexRange { message, at }.into());
            }
            let positions = positions(&whole, &target, at, |place, own| own[axis] = line[place[axis]] as usize)?;
            let taken = self.apply_take(&positions, at)?;
            if shape.rank() == 0 { taken.apply_view(View::Reshape(shape), at) } else { Ok(taken) }
        }

        /// Along dimension `dim`, the element at the position that `index` gives, for every place of `index`, whose other
        /// sizes are at most those of `self`. PyTorch: `gather`.
        fn gather | try_gather(&self, dim: isize, index: &Tensor<i64>) -> Self = at {
            let shape = self.shape();
            let axis = dims::axis(dim, shape.rank(), at)?;
            if index.numel() == 0 {
                return self.apply_take(index, at);
            }
            let (from, place) = (one_dim(&shape), one_dim(index.shape()));
            if from.rank() != place.rank() {
                let message = "Index tensor must have the same number of dimensions as input tensor";
                return Err(Error::argument(at, message).into());
            }
            if (0..from.rank()).any(|other| other != axis && place[other] > from[other]) {
                let message = format!(
                    "Size does not match at dimension {axis} expected index {place} to be no larger than self {from} apart \
                     from dimension {axis}"
                );
                return Err(Error::argument(at, message).into());
            }
            let line = index.elements(at)?;
            check_range(&line, from[axis], axis, at)?;
            let mut next = line.iter();
            let positions = positions(&from, index.shape(), at, |_, own| {
                own[axis] = next.next().map_or(0, |&position| position as usize);
            })?;
            self.apply_take(&positions, at)
        }
    }
}

impl<A: TensorLike> Indexing for A {}

fn one_dim(shape: &Shape) -> Shape {
    if shape.rank() == 0 { Shape::from([1]) } else { shape.clone() }
}

fn check_range(index: &[i64], size: usize, axis: usize, at: Site) -> Result<(), Error> {
    match index.iter().find(|&&position| position < 0 || position as usize >= size) {
        None => Ok(()),
        Some(position) => {
            let message = format!("index {position} is out of bounds for dimension {axis} with size {size}");
            Err(Error::IndexRange { message, at })
        }
    }
}

/// For every place of `target`, the row-major position in `from` of the index that `choose` makes of it.
fn positions(
    from: &Shape,
    target: &Shape,
    at: Site,
    mut choose: impl FnMut(&[usize], &mut [usize]),
) -> Result<Tensor<i64>, Error> {
    let strides = from.row_major_strides();
    Tensor::build(target, at, |out| {
        let mut place = vec![0; target.rank()];
        let mut own = vec![0; from.rank()];
        for out in out {
            own.fill(0);
            own[..place.len().min(from.rank())].copy_from_slice(&place[..place.len().min(from.rank())]);
            choose(&place, &mut own);
            *out = own.iter().zip(&strides).map(|(&i, &stride)| i as i64 * stride as i64).sum();
            for axis in (0..target.rank()).rev() {
                place[axis] += 1;
                if place[axis] < target[axis] {
                    break;
                }
                place[axis] = 0;
            }
        }
    })
}

/// Tensors joined along an existing dimension; all other sizes are equal. PyTorch: `cat`.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0]]));
/// assert_eq!(cat(&[x, y], 0), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// ```
///
/// # Panics
///
/// Where there are none, or sizes differ.
#[track_caller]
pub fn cat<A: TensorLike>(tensors: &[A], dim: isize) -> A {
    try_cat(tensors, dim).unwrap_or_else(|error| raise(error))
}

/// [`cat`], with the error as a value.
///
/// # Errors
///
/// Where there are none, or sizes differ.
#[track_caller]
pub fn try_cat<A: TensorLike>(tensors: &[A], dim: isize) -> Result<A, A::Error> {
    let at = Site::here("cat");
    join(tensors, dim, at)
}

fn join<A: TensorLike>(tensors: &[A], dim: isize, at: Site) -> Result<A, A::Error> {
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
/// # Panics
///
/// Where there are none, or shapes differ.
#[track_caller]
pub fn stack<A: TensorLike>(tensors: &[A], dim: isize) -> A {
    try_stack(tensors, dim).unwrap_or_else(|error| raise(error))
}

/// [`stack`], with the error as a value.
///
/// # Errors
///
/// Where there are none, or shapes differ.
#[track_caller]
pub fn try_stack<A: TensorLike>(tensors: &[A], dim: isize) -> Result<A, A::Error> {
    let at = Site::here("stack");
    let Some(first) = tensors.first().map(A::shape) else {
        return Err(Error::argument(at, "stack expects a non-empty TensorList").into());
    };
    let axis = dims::axis(dim, first.rank() + 1, at)?;
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
