//! The trait of modules that map one variable to another.

use wengert_autograd::Var;
use wengert_tensor::Float;

use crate::error::raise;
use crate::module::Module;
use crate::{Result, trace};

/// A module that maps one variable to another, such as a layer or a block of layers. PyTorch:
/// `torch.nn.Module.forward`.
///
/// The tape of the input decides whether a layer trains or evaluates, which matters for dropout and batch
/// normalization: [`Tape::training`](wengert_autograd::Tape::training) or [`Tape::new`](wengert_autograd::Tape::new).
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
/// let y = model.forward(Tape::new().constant(&Tensor::zeros([5, 8])));
/// ```
pub trait Layer<T: Float = f32>: Module<T> {
    /// Returns the output for the input `x`.
    ///
    /// # Errors
    ///
    /// If the shape of `x` does not fit. The error names the layer.
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>>;

    /// Returns the output for the input `x`.
    ///
    /// # Panics
    ///
    /// If [`try_forward`](Self::try_forward) returns an error. The message has the caller's line.
    #[track_caller]
    fn forward<'t>(&self, x: Var<'t, T>) -> Var<'t, T> {
        match forward_and_trace(self, x) {
            Ok(y) => y,
            Err(error) => raise(error),
        }
    }
}

impl<T: Float, L: Layer<T> + ?Sized> Layer<T> for Box<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let y = (**self).try_forward(x)?;
        // The path of this part in a model leads to the box and not to the layer inside. So the shape is recorded for the box.
        trace::record(|| trace::key(self, self.kind()), || y.shape());
        Ok(y)
    }
}

/// Applies the layers one after the other.
impl<T: Float, L: Layer<T>> Layer<T> for Vec<L> {
    #[track_caller]
    fn try_forward<'t>(&self, mut x: Var<'t, T>) -> Result<Var<'t, T>> {
        for layer in self {
            x = forward_and_trace(layer, x)?;
        }
        Ok(x)
    }
}

/// Applies the layer if there is one. Otherwise returns the input.
impl<T: Float, L: Layer<T>> Layer<T> for Option<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        match self {
            Some(layer) => forward_and_trace(layer, x),
            None => Ok(x),
        }
    }
}

/// Applies the layer and records the shape of its output for [`Module::summary_with`].
#[track_caller]
fn forward_and_trace<'t, T: Float>(layer: &(impl Layer<T> + ?Sized), x: Var<'t, T>) -> Result<Var<'t, T>> {
    let y = layer.try_forward(x)?;
    trace::record(|| trace::key(layer, layer.kind()), || y.shape());
    Ok(y)
}
