//! Loops over the matrices of a batch, on several threads.

use rayon::prelude::*;
use wengert_tensor::{DType, Error, Float, Shape, Site, Tensor};

use crate::numerics::arithmetic::Failure;

/// The number of elements from which the matrices of a batch are shared among threads.
const MIN_PARALLEL: usize = 1 << 12;

/// The numbers of a batch's matrices and of the elements of each.
pub(crate) struct Batch<'a> {
    /// The shape of the leading dimensions.
    pub(crate) shape: &'a Shape,
    /// The name for errors.
    pub(crate) name: &'static str,
    /// The reason of an iteration that does not converge.
    pub(crate) reason: &'static str,
    pub(crate) at: Site,
}

impl Batch<'_> {
    /// Computes the results of each element of the batch. The inputs and results have the leading dimensions of the batch, and `each` gets
    /// the elements of one matrix of each.
    ///
    /// # Errors
    ///
    /// If one computation fails. The error names the first such element of the batch.
    pub(crate) fn compute<T: Float>(
        &self,
        inputs: &[&Tensor<T>],
        shapes: &[Shape],
        each: impl Fn(&[&[T]], &mut [&mut [T]]) -> Result<(), Failure> + Sync,
    ) -> Result<Vec<Tensor<T>>, Error> {
        let count = self.shape.numel();
        let inputs = inputs.iter().map(|input| input.try_contiguous()).collect::<Result<Vec<_>, _>>()?;
        let sources: Vec<&[T]> = inputs.iter().filter_map(Tensor::as_slice).collect();
        let mut outputs = shapes.iter().map(|shape| Tensor::try_full(shape, T::ZERO)).collect::<Result<Vec<_>, _>>()?;
        let mut work = 0;
        {
            let mut parts: Vec<Vec<&mut [T]>> = (0..count).map(|_| Vec::with_capacity(shapes.len())).collect();
            for output in &mut outputs {
                let mut rest = output.make_mut();
                let len = rest.len() / count.max(1);
                work += rest.len();
                for part in &mut parts {
                    let (first, after) = rest.split_at_mut(len);
                    part.push(first);
                    rest = after;
                }
            }
            let compute = |(index, part): (usize, &mut Vec<&mut [T]>)| {
                let source = |source: &&'_ [T]| {
                    let len = source.len() / count;
                    (index * len, len)
                };
                let matrices: Vec<&[T]> =
                    sources.iter().map(source).zip(&sources).map(|((at, len), x)| &x[at..at + len]).collect();
                each(&matrices, part).err().map(|failure| (index, failure))
            };
            // A thread takes several matrices if these are small.
            let least = (MIN_PARALLEL * count / work.max(1) / 4).max(1);
            let failed = if work < MIN_PARALLEL || count == 1 || wengert_tensor::num_threads() == 1 {
                parts.iter_mut().enumerate().find_map(compute)
            } else {
                parts.par_iter_mut().enumerate().with_min_len(least).find_map_first(compute)
            };
            if let Some((index, failure)) = failed {
                return Err(self.error(index, failure, T::DTYPE, shapes.first()));
            }
        }
        Ok(outputs)
    }

    /// Returns the error of one element of the batch.
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
