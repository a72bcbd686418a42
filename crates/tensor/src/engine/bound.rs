//! Programs as they are run: bound to a shape, and to the layouts of their inputs as these come.

use smallvec::SmallVec;

use crate::engine::access::Argument;
use crate::engine::bind::Binding;
use crate::engine::program::Program;
use crate::engine::run;
use crate::memory::storage::Storage;
use crate::{Error, Float, Layout, Shape, Site};

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

    /// What `make` makes of each output's elements and their layout. Inputs that lie as those of the run before are not looked
    /// at again.
    pub(crate) fn outputs<T: Float, R>(
        &mut self,
        inputs: &[Argument<'_, T>],
        at: Site,
        make: impl Fn(Storage<T>, Layout) -> R,
    ) -> Result<SmallVec<[R; 1]>, Error> {
        match &mut self.binding {
            Some(binding) if binding.serves(inputs) => outputs(&self.program, binding, inputs, &self.shape, at, make),
            binding => {
                let new = Binding::new(&self.program, inputs, &self.shape, at)?;
                outputs(&self.program, binding.insert(Box::new(new)), inputs, &self.shape, at, make)
            }
        }
    }
}

impl Program {
    /// What `make` makes of each output's elements and their layout.
    pub(crate) fn outputs_over<T: Float, R>(
        &self,
        inputs: &[Argument<'_, T>],
        shape: &Shape,
        at: Site,
        make: impl Fn(Storage<T>, Layout) -> R,
    ) -> Result<SmallVec<[R; 1]>, Error> {
        outputs(self, &Binding::new(self, inputs, shape, at)?, inputs, shape, at, make)
    }
}

/// The outputs of `program` over `shape`, for which `binding` was made.
fn outputs<T: Float, R>(
    program: &Program,
    binding: &Binding,
    inputs: &[Argument<'_, T>],
    shape: &Shape,
    at: Site,
    make: impl Fn(Storage<T>, Layout) -> R,
) -> Result<SmallVec<[R; 1]>, Error> {
    let mut buffers: SmallVec<[Storage<T>; 2]> = SmallVec::new();
    let refused = |shape: &Shape| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
    for layout in &binding.outputs {
        buffers.push(Storage::scratch(layout.numel()).map_err(|_| refused(layout.shape()))?);
    }
    let mut results: SmallVec<[&mut [T]; 4]> = SmallVec::new();
    for storage in &mut buffers {
        match storage.get_mut() {
            Some(data) => results.push(data),
            None => unreachable!("a fresh buffer has one holder"),
        }
    }
    run::run(program, binding, inputs, results).map_err(|_| refused(shape))?;
    Ok(buffers.into_iter().zip(&binding.outputs).map(|(storage, layout)| make(storage, layout.clone())).collect())
}
