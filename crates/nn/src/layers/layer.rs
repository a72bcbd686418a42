//! What maps one variable to another.

use std::panic::Location;

use wengert_autograd::{Parameter, Tape, Var};
use wengert_tensor::ops::Dropout as _;
use wengert_tensor::{Float, Generator, Shape, Site};

use crate::error::raise;
use crate::module::Module;
use crate::{Error, Result, trace};

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

/// An error of an operation with the layer that it happened in: `about` says its kind and sizes.
pub(crate) fn in_layer<V>(
    result: std::result::Result<V, wengert_autograd::Error>,
    made: &'static Location<'static>,
    about: impl FnOnce() -> String,
) -> Result<V> {
    result.map_err(|source| Error::Layer { layer: about(), made, source: Box::new(source) })
}

/// What a layer gives: one variable of elements `T`, or one with others beside it.
pub(crate) trait Output<T> {
    /// The shape of the variable.
    fn output_shape(&self) -> Shape;
}

impl<T: Float> Output<T> for Var<'_, T> {
    fn output_shape(&self) -> Shape {
        self.shape()
    }
}

impl<T: Float, S> Output<T> for (Var<'_, T>, S) {
    fn output_shape(&self) -> Shape {
        self.0.shape()
    }
}

/// The output of `layer`, whose shape is noted for [`Module::summary_with`]; an error as by [`in_layer`].
pub(crate) fn output_of<T: Float, V: Output<T>>(
    layer: &(impl Module<T> + ?Sized),
    output: std::result::Result<V, wengert_autograd::Error>,
    made: &'static Location<'static>,
    about: impl FnOnce() -> String,
) -> Result<V> {
    let output = in_layer(output, made, about)?;
    trace::note(|| trace::place(layer, layer.kind()), || output.output_shape());
    Ok(output)
}

/// What a layer itself refuses, before there is an operation.
#[track_caller]
pub(crate) fn refused(layer: &'static str, message: String) -> wengert_autograd::Error {
    wengert_tensor::Error::Argument { message, at: Site::here(layer) }.into()
}

/// The number of dimensions of `x`, one of those that the layer takes.
#[track_caller]
pub(crate) fn expect_rank<T: Float>(
    layer: &'static str,
    x: Var<'_, T>,
    [low, high]: [usize; 2],
) -> std::result::Result<usize, wengert_autograd::Error> {
    let rank = x.shape().rank();
    if rank == low || rank == high {
        return Ok(rank);
    }
    let expected = if low == high { format!("{low}D") } else { format!("{low}D or {high}D") };
    Err(refused(layer, format!("expected {expected} input (got {rank}D input)")))
}

/// The variable of a parameter that a layer may not have.
#[track_caller]
pub(crate) fn optional<'t, T: Float>(
    tape: &'t Tape<T>,
    parameter: Option<&Parameter<T>>,
) -> std::result::Result<Option<Var<'t, T>>, wengert_autograd::Error> {
    match parameter {
        Some(parameter) => Ok(Some(tape.try_parameter(parameter)?)),
        None => Ok(None),
    }
}

/// Dropout of the probability `p` on a tape that trains; `x` itself on any other.
#[track_caller]
pub(crate) fn dropout<'t, T: Float>(x: Var<'t, T>, p: f64) -> std::result::Result<Var<'t, T>, wengert_autograd::Error> {
    match x.tape().draw(Generator::fork) {
        Some(mut generator) if p != 0.0 => x.try_dropout(p, true, &mut generator),
        _ => Ok(x),
    }
}
