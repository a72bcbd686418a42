//! The trait of operations on batches of matrices, which compute with tensors and have a derivative rule.

use wengert_autograd::{BatchedCall, Error, Function, FunctionCall, Var};
use wengert_tensor::{self as tensor, Float, Shape, Site, Tensor};

/// The result of a derivative rule: the gradient of each input, or an error. `None` means that no gradient passes to the input. A rule fails,
/// for example, if no memory can hold a matrix that it needs.
pub type Gradients<'t, T> = Result<Vec<Option<Var<'t, T>>>, Error>;

/// An operation on batches of matrices. The batch dimensions of the inputs are equal, because the caller expands them first.
///
/// `vmap` adds a batch dimension at the front. So the same kernel computes a batch of calls.
pub trait Kernel: Clone + 'static {
    /// The name that drawings of the tape show.
    const NAME: &'static str;

    /// Returns the shapes of the results. The caller has already checked the shapes of the inputs.
    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape>;

    /// Computes the results for a batch of matrices.
    ///
    /// # Errors
    ///
    /// If the kernel has no result for a matrix (for example, the inverse of a singular matrix), or there is not enough memory.
    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, tensor::Error>;

    /// Returns the gradient with respect to each input. `gradients` has the gradients with respect to the results.
    ///
    /// # Errors
    ///
    /// If the kernel has no derivative, no memory can hold a matrix that the rule needs, or the tape is full.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T>;
}

/// A computation with tensors that gives the result of several kernels. Variables record the kernels instead of this computation.
pub trait Computation {
    /// Computes the result for a batch of matrices.
    ///
    /// # Errors
    ///
    /// If a matrix has no result (for example, because it is singular), or there is not enough memory.
    fn compute<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Tensor<T>, tensor::Error>;
}

/// A kernel on a tape, with the source line that called the operation.
pub(crate) struct Recorded<K> {
    pub(crate) kernel: K,
    pub(crate) at: Site,
}

impl<T: Float, K: Kernel> Function<T> for Recorded<K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        Ok(self.kernel.shapes(inputs))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error> {
        let inputs: Vec<&Tensor<T>> = inputs.iter().collect();
        Ok(self.kernel.run(&inputs, self.at)?)
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        call.value_of(self.kernel.vjp(call, gradients)).unwrap_or_else(|| vec![None; call.inputs.len()])
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Vec<Var<'t, T>>> {
        let inputs = call.value_of(call.try_all_batched())?;
        let again = Recorded { kernel: self.kernel.clone(), at: self.at };
        call.value_of(inputs.first()?.tape().record_function(again, &inputs, self.at))
    }
}
