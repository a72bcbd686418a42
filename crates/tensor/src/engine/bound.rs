//! Programs as they are run: bound to a shape, and to the layouts of their inputs as these come.

use smallvec::SmallVec;

use crate::engine::access::Argument;
use crate::engine::bind::Binding;
use crate::engine::program::Program;
use crate::engine::run;
use crate::memory::available::AllocationError;
use crate::memory::storage::Storage;
use crate::shape::error::{Error, Site};
use crate::{Float, Layout, Shape};

/// Elements of outputs, and where they lie.
pub(crate) type Parts<T> = SmallVec<[(Storage<T>, Layout); 1]>;

/// A program with the shape it runs over, which remembers how inputs of the last layouts are read.
#[derive(Debug)]
pub struct BoundProgram {
    program: Program,
    shape: Shape,
    binding: Option<Box<Binding>>,
}

impl BoundProgram {
    /// `program` over `shape`.
    pub fn new(program: Program, shape: Shape) -> Self {
        BoundProgram { program, shape, binding: None }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The shape to which every input expands.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The outputs' elements, in order. Inputs that lie as those of the run before are not looked at again.
    pub(crate) fn run_parts<T: Float>(&mut self, inputs: &[Argument<'_, T>], at: Site) -> Result<Parts<T>, Error> {
        match &mut self.binding {
            Some(binding) if binding.serves(inputs) => outputs(&self.program, binding, inputs, at),
            binding => {
                let new = Binding::new(&self.program, inputs, &self.shape, at)?;
                outputs(&self.program, binding.insert(Box::new(new)), inputs, at)
            }
        }
    }
}

impl Program {
    /// The outputs' elements, in order.
    pub(crate) fn run_parts<T: Float>(
        &self,
        inputs: &[Argument<'_, T>],
        shape: &Shape,
        at: Site,
    ) -> Result<Parts<T>, Error> {
        outputs(self, &Binding::new(self, inputs, shape, at)?, inputs, at)
    }
}

/// The outputs of `program`, for which `binding` was made.
fn outputs<T: Float>(
    program: &Program,
    binding: &Binding,
    inputs: &[Argument<'_, T>],
    at: Site,
) -> Result<Parts<T>, Error> {
    let mut buffers: Parts<T> = SmallVec::new();
    for layout in &binding.outputs {
        let refused = |_: AllocationError| Error::OutOfMemory { shape: layout.shape().clone(), dtype: T::DTYPE, at };
        buffers.push((Storage::scratch(layout.numel()).map_err(refused)?, layout.clone()));
    }
    let mut results: SmallVec<[&mut [T]; 4]> = SmallVec::new();
    for (storage, _) in &mut buffers {
        match storage.get_mut() {
            Some(data) => results.push(data),
            None => unreachable!("a fresh buffer has one holder"),
        }
    }
    run::run(program, binding, inputs, results);
    Ok(buffers)
}
