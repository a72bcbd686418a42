//! Steps that many layers share in their forward pass: reading parameters, checking the rank of an input, and naming the layer
//! in an error.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_tensor::{Float, Shape, Site};

use crate::module::Module;
use crate::{Error, Result, trace};

/// An error of an operation with the layer that it happened in: `about` says its kind and sizes.
pub(crate) fn in_layer<V>(
    result: std::result::Result<V, TapeError>,
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
    output: std::result::Result<V, TapeError>,
    made: &'static Location<'static>,
    about: impl FnOnce() -> String,
) -> Result<V> {
    let output = in_layer(output, made, about)?;
    trace::note(|| trace::place(layer, layer.kind()), || output.output_shape());
    Ok(output)
}

/// What a layer itself refuses, before there is an operation.
#[track_caller]
pub(crate) fn refused(layer: &'static str, message: String) -> TapeError {
    wengert_tensor::Error::Argument { message, at: Site::here(layer) }.into()
}

/// The number of dimensions of `x`, one of those that the layer takes.
#[track_caller]
pub(crate) fn expect_rank<T: Float>(
    layer: &'static str,
    x: Var<'_, T>,
    [low, high]: [usize; 2],
) -> std::result::Result<usize, TapeError> {
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
) -> std::result::Result<Option<Var<'t, T>>, TapeError> {
    match parameter {
        Some(parameter) => Ok(Some(tape.try_parameter(parameter)?)),
        None => Ok(None),
    }
}
