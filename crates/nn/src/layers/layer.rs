//! The trait of modules that map one variable to another.

use wengert_autograd::{Tape, Var};
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::layers::forward::pass_output;
use crate::module::Module;
use crate::{Result, trace};

/// A module that maps one variable to another, for example a layer or a block of layers. PyTorch: `torch.nn.Module.forward`.
///
/// The tape of the input decides whether a layer trains or evaluates, which matters, for example, for dropout and batch normalization:
/// [`Tape::training`](wengert_autograd::Tape::training) or [`Tape::new`](wengert_autograd::Tape::new). If the input is a tensor and not a
/// variable, [`forward`](Self::forward) returns a tensor, the prediction of the evaluated layer.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Linear, Module, Result, Sequential};
///
/// /// x + f(x).
/// #[derive(Module)]
/// struct Residual {
///     inner: Linear,
/// }
///
/// impl Layer for Residual {
///     fn try_forward<'t>(&self, x: Var<'t>) -> Result<Var<'t>> {
///         Ok(x + self.inner.try_forward(x)?.relu())
///     }
/// }
///
/// let generator = &mut Generator::new(0);
/// let inner = Linear::new(8, 8, generator);
/// let model = Sequential::new().add(Residual { inner }).add(Linear::new(8, 2, generator));
/// let (x, tape) = (Tensor::zeros([5, 8]), Tape::new());
/// let y = model.forward(tape.constant(&x)); // a variable
/// let prediction = model.forward(&x); // a tensor
/// assert_eq!(y.value(), prediction);
/// ```
pub trait Layer<T: Float = f32>: Module<T> {
    /// Returns the output for the input `x`.
    ///
    /// # Errors
    ///
    /// If the layer cannot compute the output, for example because the shape of `x` does not fit. Most layers of this crate with parameters
    /// or settings name themselves in the error.
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>>;

    /// Returns the output for the input `x`. The output is a variable if `x` is a variable, and a tensor if `x` is a tensor.
    ///
    /// If `x` is a tensor, the layer evaluates and does not train, as on [`Tape::new`](wengert_autograd::Tape::new): dropout is inactive, and
    /// there are no gradients. In a training step, pass a variable, for example `tape.constant(&x)`. PyTorch: a call under
    /// `torch.inference_mode()` after `model.eval()`.
    ///
    /// A `dyn Layer` has only [`try_forward`](Self::try_forward). A `Box<dyn Layer>` has both methods.
    ///
    /// # Panics
    ///
    /// If [`try_forward`](Self::try_forward) returns an error, or memory cannot hold the output. The message has the caller's line.
    #[track_caller]
    fn forward<I: LayerInput<T>>(&self, x: I) -> I::Output
    where
        Self: Sized,
    {
        match x.forward_through(self) {
            Ok(y) => y,
            Err(error) => raise(error),
        }
    }
}

/// The input of [`Layer::forward`]: a variable on a tape, or a tensor by reference or by value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a layer with elements of `{T}`",
    label = "neither a variable nor a tensor of `{T}`",
    note = "in a training step, the input is a variable: `model.forward(tape.constant(&x))`",
    note = "for a prediction, the input is a tensor: `model.forward(&x)`; convert other elements with `x.cast::<{T}>()`"
)]
pub trait LayerInput<T: Float> {
    /// The type of the layer's output: a variable if the input is a variable, and a tensor if the input is a tensor.
    type Output;

    /// Returns the output of `layer` for this input, or the error of the layer.
    #[doc(hidden)]
    #[track_caller]
    fn forward_through(self, layer: &impl Layer<T>) -> Result<Self::Output>;
}

impl<'t, T: Float> LayerInput<T> for Var<'t, T> {
    type Output = Var<'t, T>;

    #[track_caller]
    fn forward_through(self, layer: &impl Layer<T>) -> Result<Var<'t, T>> {
        forward_and_trace(layer, self)
    }
}

impl<T: Float> LayerInput<T> for &Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn forward_through(self, layer: &impl Layer<T>) -> Result<Tensor<T>> {
        let tape = Tape::new();
        let y = forward_and_trace(layer, tape.try_constant(self)?)?;
        Ok(y.try_value()?)
    }
}

impl<T: Float> LayerInput<T> for Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn forward_through(self, layer: &impl Layer<T>) -> Result<Tensor<T>> {
        (&self).forward_through(layer)
    }
}

impl<T: Float, L: Layer<T> + ?Sized> Layer<T> for Box<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let y = (**self).try_forward(x)?;
        // A hook or a summary finds the box under its path, and not the layer in it. So the box also passes the output to its hooks, and records its
        // shape.
        Ok(pass_output(self, y))
    }
}

/// Applies the layers of the vector one after the other.
impl<T: Float, L: Layer<T>> Layer<T> for Vec<L> {
    #[track_caller]
    fn try_forward<'t>(&self, mut x: Var<'t, T>) -> Result<Var<'t, T>> {
        for layer in self {
            x = forward_and_trace(layer, x)?;
        }
        Ok(pass_output(self, x))
    }
}

/// Applies the layer if the option has one. Otherwise returns the input.
impl<T: Float, L: Layer<T>> Layer<T> for Option<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        match self {
            Some(layer) => {
                let y = forward_and_trace(layer, x)?;
                // A hook or a summary finds the option under its path, and not the layer in it. So the option also passes the output to `trace`,
                // unless both have the same key (address and type), under which the layer has passed it already.
                let is_passed =
                    trace::module_key(self, self.type_name()) == trace::module_key(layer, layer.type_name());
                Ok(if is_passed { y } else { pass_output(self, y) })
            }
            None => Ok(x),
        }
    }
}

/// Applies `layer`. If hooks are installed, also applies the layer's hooks. While [`Module::summary_with`] runs, also records the shape of
/// the layer's output.
#[track_caller]
fn forward_and_trace<'t, T: Float>(layer: &(impl Layer<T> + ?Sized), x: Var<'t, T>) -> Result<Var<'t, T>> {
    if !trace::is_active() {
        return layer.try_forward(x);
    }
    let key = || trace::module_key(layer, layer.type_name());
    let calls_before = trace::hook_call_count(key);
    let y = layer.try_forward(x)?;
    // Most layers of this crate pass their outputs to `trace` in `try_forward`. For any other layer, this function passes the output.
    let is_passed = trace::hook_call_count(key) > calls_before;
    Ok(if is_passed { y } else { trace::run_hooks(key, y) })
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::{BatchNorm1d, Dropout, Generator, Linear, Sequential};

    #[test]
    fn a_tensor_is_evaluated_and_a_variable_is_recorded() {
        let generator = &mut Generator::new(0);
        let model = Sequential::new().add(Linear::new(3, 4, generator)).add(BatchNorm1d::new(4)).add(Dropout::new(0.5));
        let x = Tensor::<f64>::randn([5, 3], generator);
        let tape = Tape::new();
        let expected = model.forward(tape.constant(&x)).value();
        assert_eq!(model.forward(&x), expected);
        assert_eq!(model.forward(x.clone()), expected);
        assert_eq!(model.layers()[0].forward(&x).shape(), &[5, 4], "boxed");
        // On a training tape, dropout sets elements to 0. The outputs in `expected` have no 0, so they come from an evaluation.
        let trained = model.forward(Tape::training(generator).constant(&x)).value();
        assert!(trained.iter().any(|y| y == 0.0) && expected.iter().all(|y| y != 0.0));
    }

    #[test]
    fn a_layer_of_an_unknown_type_takes_it_from_the_tensor() {
        let layer = Linear::new(2, 1, &mut Generator::new(0));
        assert_eq!(layer.forward(&Tensor::<f64>::zeros([3, 2])).shape(), &[3, 1]);
    }

    #[test]
    fn the_error_has_the_callers_line() {
        let layer = Linear::<f64>::new(2, 1, &mut Generator::new(0));
        let line = line!() + 1;
        let call = std::panic::AssertUnwindSafe(|| layer.forward(&Tensor::zeros([3, 3])).numel());
        let panic = std::panic::catch_unwind(call).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("mat1 and mat2 shapes cannot be multiplied (3x3 and 2x1)"), "{text}");
        assert!(text.contains(&format!("layer.rs:{line}:")), "{text}");
    }
}
