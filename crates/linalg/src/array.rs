//! The arrays of this crate: tensors compute a kernel at once, variables record it.

use wengert_autograd::{Error, Function, FunctionCall, Var};
use wengert_tensor::ops::TensorLike;
use wengert_tensor::{self as tensor, Float, Shape, Site, Tensor};

/// A function of matrices with several results, and its derivative. The leading dimensions of its inputs are equal.
pub trait Kernel<T: Float>: 'static {
    /// Returns the name for errors and graphs.
    fn name(&self) -> &'static str;

    /// Returns the shapes of the results, or a sentence that says why the inputs are refused.
    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String>;

    /// Computes the results.
    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, tensor::Error>;

    /// Returns the gradients with respect to the inputs, as recorded operations.
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>>;
}

/// A tensor or a recorded variable of floating-point numbers. Sealed.
pub trait Array: TensorLike<Elem: Float> {
    /// Computes or records a kernel.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the inputs.
    #[doc(hidden)]
    fn apply_kernel(
        kernel: impl Kernel<Self::Elem>,
        inputs: &[Self],
        at: Site,
    ) -> Result<Vec<Self>, <Self as TensorLike>::Error>;
}

impl<T: Float> Array for Tensor<T> {
    fn apply_kernel(kernel: impl Kernel<T>, inputs: &[Self], at: Site) -> Result<Vec<Self>, tensor::Error> {
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape().clone()).collect();
        kernel.shapes(&shapes).map_err(|message| tensor::Error::Argument { message, at })?;
        kernel.run(inputs, at)
    }
}

impl<'t, T: Float> Array for Var<'t, T> {
    fn apply_kernel(kernel: impl Kernel<T>, inputs: &[Self], at: Site) -> Result<Vec<Self>, Error> {
        // The error of refused shapes names the caller's line, so they are checked here too.
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape()).collect();
        kernel.shapes(&shapes).map_err(|message| tensor::Error::Argument { message, at })?;
        let Some(first) = inputs.first() else { return Ok(Vec::new()) };
        first.tape().try_apply_function(Recorded { kernel, at }, inputs)
    }
}

/// A recorded kernel.
struct Recorded<K> {
    kernel: K,
    at: Site,
}

impl<T: Float, K: Kernel<T>> Function<T> for Recorded<K> {
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        self.kernel.shapes(inputs)
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error> {
        Ok(self.kernel.run(inputs, self.at)?)
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        self.kernel.vjp(call, gradients)
    }
}
