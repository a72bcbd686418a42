//! Loops over the matrices of a batch, on several threads.

use wengert_tensor::{DType, Error, Float, Shape, Site, Tensor, each_part, num_threads};

use crate::numerics::failure::Failure;

/// The minimum number of multiplications in a range of average size. A range of matrices is a task of one thread. A larger minimum leaves
/// fewer ranges for the threads. With a smaller minimum, the start of a task is noticeable: it takes about 2 µs, and 100 000
/// multiplications take 20 to 100 µs.
const MIN_WORK: usize = 100_000;

/// The time in which a kernel reads and writes one element of a small matrix, in multiplications. Measured with matrices of 4 and 8 rows.
pub(crate) const ELEMENT_MOVE_COST: usize = 4;

/// The maximum number of ranges per thread, on average. A thread that has finished its ranges takes over ranges of slower threads.
const RANGES_PER_THREAD: usize = 4;

/// A contiguous range of the matrices of a batch, with its parts of the results. Each range is one task of the thread pool.
struct BatchRange<'a, T, E, const N: usize> {
    start: usize,
    count: usize,
    outputs: [&'a mut [T]; N],
    result: &'a mut Result<(), E>,
}

/// Returns the number of matrices of `rows` times `columns` elements in an array of `elements` elements. Returns 0 if the array is empty,
/// also for matrices whose number of elements would overflow.
pub(crate) fn count_matrices(elements: usize, rows: usize, columns: usize) -> usize {
    if elements == 0 { 0 } else { elements / (rows * columns) }
}

/// Returns the product of the numbers of iterations of nested loops, or the largest number if the product overflows. Only the matrices of
/// an empty batch can be that large.
pub(crate) fn cost(loops: &[usize]) -> usize {
    loops.iter().fold(1, |cost, &count| cost.saturating_mul(count))
}

/// Splits `count` matrices into ranges and calls `work` for each range. Several threads work if `count` times `cost`, the number of
/// multiplications per matrix, is large enough.
///
/// Each array of `outputs` has `count` parts of equal size, one for each matrix. `work` gets the index of the first matrix of a range, the
/// number of its matrices, and their parts of the outputs.
///
/// # Errors
///
/// If `work` fails. If it fails for several ranges, the error of the first range is returned.
pub(crate) fn for_each_range<T: Float, E: Send, const N: usize>(
    count: usize,
    cost: usize,
    outputs: [&mut [T]; N],
    work: impl Fn(usize, usize, [&mut [T]; N]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if count == 0 {
        return Ok(());
    }
    let threads = match count.saturating_mul(cost) / MIN_WORK {
        0 | 1 => 1,
        _ => num_threads(),
    };
    if threads == 1 {
        return work(0, count, outputs);
    }
    let ranges = (count.saturating_mul(cost) / MIN_WORK).min(threads * RANGES_PER_THREAD).min(count);
    let sizes: [usize; N] = std::array::from_fn(|position| outputs[position].len() / count);
    let mut results: Vec<Result<(), E>> = (0..ranges).map(|_| Ok(())).collect();
    let (mut tasks, mut rest) = (Vec::with_capacity(ranges), outputs);
    for (range, result) in results.iter_mut().enumerate() {
        let (start, end) = (range * count / ranges, (range + 1) * count / ranges);
        let mut parts = std::array::from_fn(|_| Default::default());
        for ((part, rest), size) in parts.iter_mut().zip(&mut rest).zip(sizes) {
            *part = rest.split_off_mut(..(end - start) * size).unwrap_or_default();
        }
        tasks.push(BatchRange { start, count: end - start, outputs: parts, result });
    }
    each_part(tasks, true, |_, range| *range.result = work(range.start, range.count, range.outputs));
    results.into_iter().collect()
}

/// A batch of matrices for which decompositions or functions are computed, with the texts for errors.
pub(crate) struct Batch<'a> {
    /// The shape of the batch dimensions.
    pub(crate) shape: &'a Shape,
    /// The number of multiplications for each matrix.
    pub(crate) cost: usize,
    /// The name of the operation in error messages.
    pub(crate) name: &'static str,
    /// The end of the error message for an iteration that does not converge.
    pub(crate) reason: &'static str,
    pub(crate) at: Site,
}

impl Batch<'_> {
    /// Computes the results of each matrix of the batch. All inputs and results have the batch dimensions first. `compute_matrix` gets the
    /// elements of one matrix from each input, and the memory for one matrix from each result.
    ///
    /// # Errors
    ///
    /// If `compute_matrix` fails for a matrix, or there is not enough memory. The error of a failed iteration or of a non-finite element
    /// names the first such matrix, unless there are no batch dimensions.
    pub(crate) fn compute<T: Float, const M: usize, const N: usize>(
        &self,
        inputs: [&Tensor<T>; M],
        shapes: &[Shape; N],
        compute_matrix: impl Fn([&[T]; M], [&mut [T]; N]) -> Result<(), Failure> + Sync,
    ) -> Result<Vec<Tensor<T>>, Error> {
        let mut outputs = shapes.iter().map(|shape| Tensor::try_full(shape, T::ZERO)).collect::<Result<Vec<_>, _>>()?;
        // A batch of any number of matrices without elements needs no computation.
        let count = if outputs.iter().all(|output| output.numel() == 0) { 0 } else { self.shape.numel() };
        let inputs = inputs.iter().map(|input| input.try_contiguous()).collect::<Result<Vec<_>, _>>()?;
        let sources: [&[T]; M] = std::array::from_fn(|input| inputs[input].as_slice().unwrap_or_default());
        let mut rest = outputs.iter_mut().map(Tensor::make_mut);
        let data: [&mut [T]; N] = std::array::from_fn(|_| rest.next().unwrap_or_default());
        for_each_range(count, self.cost, data, |first, count_in_range, mut data| {
            let lengths: [usize; N] = std::array::from_fn(|output| data[output].len() / count_in_range);
            for index in first..first + count_in_range {
                let matrices = sources.map(|source| &source[index * (source.len() / count)..][..source.len() / count]);
                let mut results = std::array::from_fn(|_| Default::default());
                for ((result, data), length) in results.iter_mut().zip(&mut data).zip(lengths) {
                    *result = data.split_off_mut(..length).unwrap_or_default();
                }
                compute_matrix(matrices, results).map_err(|failure| (index, failure))?;
            }
            Ok(())
        })
        .map_err(|(index, failure)| self.error(index, failure, T::DTYPE, shapes.first()))?;
        Ok(outputs)
    }

    /// Returns the error for the matrix with index `index` in the batch.
    fn error(&self, index: usize, failure: Failure, dtype: DType, shape: Option<&Shape>) -> Error {
        let reason = match failure {
            Failure::NonFinite => "the input matrix contained non-finite values",
            Failure::NoConvergence => self.reason,
            Failure::Memory => {
                let shape = shape.cloned().unwrap_or_else(Shape::scalar);
                return Error::OutOfMemory { shape, dtype, at: self.at };
            }
        };
        let element = if self.shape.rank() == 0 { String::new() } else { format!("(Batch element {index}): ") };
        let message = format!("{}: {element}The algorithm failed to converge because {reason}.", self.name);
        Error::Argument { message, at: self.at }
    }
}
