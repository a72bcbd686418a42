//! Batches of matrices: the checks of their shapes, and the work on each matrix of a batch.

use std::thread;

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Error, Float, Shape, Site, Tensor, broadcast, num_threads};

use crate::array::Array;
use crate::factors::Failure;

/// The least number of multiplications per thread. Starting a thread takes about 20 µs, in which a core multiplies a few 10,000 times.
const LEAST_WORK: usize = 400_000;

/// Returns the error with the sentence `message`.
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

/// Returns the dimensions before the last `core` ones.
pub(crate) fn batch_of(shape: &Shape, core: usize) -> Shape {
    shape[..shape.rank() - core].into()
}

/// Returns `batch` followed by `core`.
pub(crate) fn with_core(batch: &[usize], core: &[usize]) -> Shape {
    batch.iter().chain(core).copied().collect()
}

/// Expands arrays to their joint batch dimensions. Each comes with the number of dimensions that are not part of its batch.
pub(crate) fn joined<A: Array, const N: usize>(arrays: [(&A, usize); N], at: Site) -> Result<[A; N], A::Error> {
    let batches = arrays.map(|(array, core)| batch_of(&array.shape(), core));
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

/// Returns zeros in memory of their own.
pub(crate) fn zeros<T: Float>(shape: &Shape) -> Result<Tensor<T>, Error> {
    Tensor::try_full(shape, T::ZERO)
}

/// Returns a contiguous copy in memory of its own.
pub(crate) fn copy_of<T: Float>(x: &Tensor<T>) -> Result<Tensor<T>, Error> {
    let mut copy = zeros(x.shape())?;
    let data = x.try_contiguous()?;
    if let Some(data) = data.as_slice() {
        copy.make_mut().copy_from_slice(data);
    }
    Ok(copy)
}

/// Runs `work` on all of `count` matrices, on several threads if `cost`, the number of multiplications per matrix, is large enough.
///
/// Each element of `outputs` has `count` equal parts. `work` gets the index of its first matrix, the number of its matrices, and their
/// parts of the outputs. If it fails for several ranges, the first failure is returned.
pub(crate) fn for_each_range<T: Float, const N: usize>(
    count: usize,
    cost: usize,
    outputs: [&mut [T]; N],
    work: impl Fn(usize, usize, [&mut [T]; N]) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let ranges = num_threads().min(count).min(count.saturating_mul(cost) / LEAST_WORK).max(1);
    if ranges == 1 {
        return work(0, count, outputs);
    }
    let sizes: [usize; N] = std::array::from_fn(|position| outputs[position].len() / count);
    let (work, mut rest) = (&work, outputs);
    let results = thread::scope(|scope| {
        let mut tasks = Vec::with_capacity(ranges);
        for range in 0..ranges {
            let (start, end) = (range * count / ranges, (range + 1) * count / ranges);
            let mut parts = std::array::from_fn(|_| Default::default());
            for ((part, rest), size) in parts.iter_mut().zip(&mut rest).zip(sizes) {
                *part = rest.split_off_mut(..(end - start) * size).unwrap_or_default();
            }
            tasks.push(scope.spawn(move || work(start, end - start, parts)));
        }
        let join = |task: thread::ScopedJoinHandle<'_, _>| {
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        tasks.into_iter().map(join).collect::<Vec<_>>()
    });
    results.into_iter().collect()
}
