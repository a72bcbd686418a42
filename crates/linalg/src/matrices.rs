//! Batches of matrices: checks of their shapes, expansion of several arrays to a common batch, and copies.

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Error, Float, Shape, Site, Tensor, broadcast};

use crate::array::Array;

/// Returns the error with the text `message`.
pub(crate) fn refusal(at: Site, message: impl Into<String>) -> Error {
    Error::Argument { message: message.into(), at }
}

/// Returns an error if the array has less than two dimensions. `name` is the operand's name in PyTorch.
pub(crate) fn check_rank(operation: &str, name: &str, shape: &Shape, at: Site) -> Result<(), Error> {
    match shape.rank() {
        2.. => Ok(()),
        _ => Err(refusal(at, format!("{operation}: The input tensor {name} must have at least 2 dimensions."))),
    }
}

/// Returns an error unless the array is a batch of square matrices.
pub(crate) fn check_square(operation: &str, shape: &Shape, at: Site) -> Result<(), Error> {
    check_rank(operation, "A", shape, at)?;
    let (rows, columns) = sizes(shape);
    if rows == columns {
        return Ok(());
    }
    let message = "A must be batches of square matrices, but they are";
    Err(refusal(at, format!("{operation}: {message} {rows} by {columns} matrices")))
}

/// Returns an error unless the sizes of the matrices fit the equation A X = B, or X A = B if `left` is false.
pub(crate) fn check_equation(operation: &str, a: &Shape, b: &Shape, left: bool, at: Site) -> Result<(), Error> {
    let ((n, columns), (rows, width)) = (sizes(a), sizes(b));
    if n == if left { rows } else { width } {
        return Ok(());
    }
    let equation = if left { "AX = B" } else { "XA = B" };
    let message = format!("Incompatible shapes of A and B for the equation {equation}");
    Err(refusal(at, format!("{operation}: {message} ({n}x{columns} and {rows}x{width})")))
}

/// Returns the numbers of rows and columns of the matrices.
pub(crate) fn sizes(shape: &[usize]) -> (usize, usize) {
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// Returns the shape without the last `core` dimensions.
pub(crate) fn batch_of(shape: &Shape, core: usize) -> Shape {
    shape[..shape.rank() - core].into()
}

/// Returns `batch` followed by `core`.
pub(crate) fn with_core(batch: &[usize], core: &[usize]) -> Shape {
    batch.iter().chain(core).copied().collect()
}

/// Expands arrays to the batch dimensions to which their batch dimensions broadcast. The number beside each array is the number of its last
/// dimensions that do not belong to the batch.
pub(crate) fn joined<A: Array, const N: usize>(arrays: [(&A, usize); N], at: Site) -> Result<[A; N], A::Error> {
    let batches = arrays.map(|(array, core)| batch_of(&array.shape(), core));
    if batches.iter().all(|batch| *batch == batches[0]) {
        return Ok(arrays.map(|(array, _)| array.clone()));
    }
    let references: Vec<&Shape> = batches.iter().rev().collect();
    let joint = broadcast::join(&references).map_err(|mismatch| Error::Broadcast(mismatch, at))?;
    let mut expanded = arrays.map(|(array, _)| array.clone());
    for (array, (batch, (_, core))) in expanded.iter_mut().zip(batches.iter().zip(arrays)) {
        if *batch != joint {
            let shape = array.shape();
            *array = array.try_broadcast_to(with_core(&joint, &shape[shape.rank() - core..]))?;
        }
    }
    Ok(expanded)
}

/// Returns the matrices with rows and columns exchanged. Nothing is copied.
pub(crate) fn transposed<A: Array>(x: &A) -> Result<A, A::Error> {
    x.try_transpose(-2, -1)
}

/// Returns a new tensor of zeros.
pub(crate) fn zeros<T: Float>(shape: &Shape) -> Result<Tensor<T>, Error> {
    Tensor::try_full(shape, T::ZERO)
}

/// Returns a contiguous copy that shares no memory with `x`.
pub(crate) fn copy_of<T: Float>(x: &Tensor<T>) -> Result<Tensor<T>, Error> {
    let Some(data) = x.as_slice() else { return x.try_contiguous() };
    let mut copy = zeros(x.shape())?;
    copy.make_mut().copy_from_slice(data);
    Ok(copy)
}
