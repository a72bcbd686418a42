//! The trait of modules that map one variable to another.

use wengert_autograd::Var;
use wengert_tensor::Float;

use crate::error::raise;
use crate::module::Module;
use crate::{Result, trace};

/// A module that maps one variable to another: most layers, and blocks of them. PyTorch: `torch.nn.Module.forward`.
///
/// Whether a layer trains or evaluates (dropout, batch normalisation) is said by the tape of its input:
/// [`Tape::training`](wengert_autograd::Tape::training) or [`Tape::new`](wengert_autograd::Tape::new).
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, Layer, Linear, Module, Result, Sequential};
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
    /// The layer's result.
    ///
    /// # Errors
    ///
    /// If the layer refuses the shape of `x`; the error names the layer.
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>>;

    /// [`try_forward`](Self::try_forward), which panics at the caller's line where that returns an error.
    #[track_caller]
    fn forward<'t>(&self, x: Var<'t, T>) -> Var<'t, T> {
        match noted(self, x) {
            Ok(y) => y,
            Err(error) => raise(error),
        }
    }
}

impl<T: Float, L: Layer<T> + ?Sized> Layer<T> for Box<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let y = (**self).try_forward(x)?;
        // The module that a model names is the box.
        trace::note(|| trace::place(self, self.kind()), || y.shape());
        Ok(y)
    }
}

/// One after the other.
impl<T: Float, L: Layer<T>> Layer<T> for Vec<L> {
    #[track_caller]
    fn try_forward<'t>(&self, mut x: Var<'t, T>) -> Result<Var<'t, T>> {
        for layer in self {
            x = noted(layer, x)?;
        }
        Ok(x)
    }
}

/// The layer, or the identity.
impl<T: Float, L: Layer<T>> Layer<T> for Option<L> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        match self {
            Some(layer) => noted(layer, x),
            None => Ok(x),
        }
    }
}

/// [`Layer::try_forward`], whose output's shape is noted for [`Module::summary_with`].
#[track_caller]
fn noted<'t, T: Float>(layer: &(impl Layer<T> + ?Sized), x: Var<'t, T>) -> Result<Var<'t, T>> {
    let y = layer.try_forward(x)?;
    trace::note(|| trace::place(layer, layer.kind()), || y.shape());
    Ok(y)
}
