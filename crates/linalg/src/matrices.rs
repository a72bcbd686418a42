//! Batches of matrices: checks of their shapes, expansion of several arrays to a common batch, and copies.

use std::borrow::Cow;

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Error, Float, Shape, Site, Tensor, broadcast};

use crate::array::Array;

/// Returns the error with the text `message`.
pub(crate) fn argument_error(at: Site, message: impl Into<String>) -> Error {
    Error::Argument { message: message.into(), at }
}

/// Returns an error if the array has fewer than two dimensions. `name` is the operand's name in PyTorch.
pub(crate) fn check_rank(operation: &str, name: &str, shape: &Shape, at: Site) -> Result<(), Error> {
    match shape.rank() {
        2.. => Ok(()),
        _ => Err(argument_error(at, format!("{operation}: The input tensor {name} must have at least 2 dimensions."))),
    }
}

/// Returns an error unless the array is a batch of square matrices.
pub(crate) fn check_square(operation: &str, shape: &Shape, at: Site) -> Result<(), Error> {
    check_rank(operation, "A", shape, at)?;
    let (rows, columns) = matrix_size(shape);
    if rows == columns {
        return Ok(());
    }
    let message = "A must be batches of square matrices, but they are";
    Err(argument_error(at, format!("{operation}: {message} {rows} by {columns} matrices")))
}

/// Returns an error unless the sizes of the matrices fit the equation A X = B, or X A = B if `left` is false.
pub(crate) fn check_equation(operation: &str, a: &Shape, b: &Shape, left: bool, at: Site) -> Result<(), Error> {
    let ((n, columns), (rows, width)) = (matrix_size(a), matrix_size(b));
    if n == if left { rows } else { width } {
        return Ok(());
    }
    let equation = if left { "AX = B" } else { "XA = B" };
    let message = format!("Incompatible shapes of A and B for the equation {equation}");
    Err(argument_error(at, format!("{operation}: {message} ({n}x{columns} and {rows}x{width})")))
}

/// Returns the numbers of rows and columns of the matrices in a batch of shape `shape`.
pub(crate) fn matrix_size(shape: &[usize]) -> (usize, usize) {
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// Returns the batch dimensions of `shape`: all dimensions except the last `core` ones.
pub(crate) fn batch_shape(shape: &Shape, core: usize) -> Shape {
    shape[..shape.rank() - core].into()
}

/// Returns the shape with the batch dimensions `batch` and the last dimensions `core`.
pub(crate) fn with_core(batch: &[usize], core: &[usize]) -> Shape {
    batch.iter().chain(core).copied().collect()
}

/// Expands arrays to common batch dimensions, to which the batch dimensions of all of them broadcast. Each array comes with the number of
/// its last dimensions that do not belong to the batch. Returns an error if the batch dimensions do not broadcast.
pub(crate) fn broadcast_batches<'a, A: Array, const N: usize>(
    arrays: [(&'a A, usize); N],
    at: Site,
) -> Result<[Cow<'a, A>; N], A::Error> {
    let shapes = arrays.map(|(array, core)| (array.shape(), core));
    if shapes.iter().all(|(shape, core)| shape.rank() == *core) {
        return Ok(arrays.map(|(array, _)| Cow::Borrowed(array)));
    }
    let batch = |index: usize| &shapes[index].0[..shapes[index].0.rank() - shapes[index].1];
    let mut expanded = arrays.map(|(array, _)| Cow::Borrowed(array));
    if (1..N).all(|index| batch(index) == batch(0)) {
        return Ok(expanded);
    }
    let common = broadcast_batch_shape((0..N).map(batch), at)?;
    for (index, array) in expanded.iter_mut().enumerate() {
        if batch(index) != &common[..] {
            let (shape, core) = &shapes[index];
            *array = Cow::Owned(array.try_broadcast_to(with_core(&common, &shape[shape.rank() - core..]))?);
        }
    }
    Ok(expanded)
}

/// Returns the batch dimensions to which several batch dimensions broadcast, or an error if they do not broadcast.
pub(crate) fn broadcast_batch_shape<'a>(
    batches: impl DoubleEndedIterator<Item = &'a [usize]>,
    at: Site,
) -> Result<Shape, Error> {
    let batches: Vec<Shape> = batches.rev().map(Shape::from).collect();
    broadcast::join(&batches.iter().collect::<Vec<_>>()).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Returns the transposed matrices of a batch. Nothing is copied.
pub(crate) fn transposed<A: Array>(x: &A) -> Result<A, A::Error> {
    x.try_transpose(-2, -1)
}

/// Returns a new tensor of zeros.
pub(crate) fn zeros<T: Float>(shape: &Shape) -> Result<Tensor<T>, Error> {
    Tensor::try_full(shape, T::ZERO)
}

/// Returns a contiguous tensor with the elements of `x`. Copies them only if `x` is not contiguous.
pub(crate) fn contiguous<T: Float>(x: &Tensor<T>) -> Result<Cow<'_, Tensor<T>>, Error> {
    Ok(if x.as_slice().is_some() { Cow::Borrowed(x) } else { Cow::Owned(x.try_contiguous()?) })
}

/// Returns the elements of a contiguous tensor.
pub(crate) fn elements<T: Float>(x: &Tensor<T>) -> &[T] {
    x.as_slice().unwrap_or_default()
}
