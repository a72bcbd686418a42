//! Functions for steps that many layers share in their forward pass: reading parameters, checking the rank of an input, and naming the layer in
//! an error.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_tensor::{Float, Generator, Site};

use crate::module::Module;
use crate::trace::{self, LayerOutput};
use crate::{Error, Result};

/// Adds the description of a layer to the error of an operation, if `result` is an error. `describe` describes the layer's kind and sizes and
/// its input's shape. `created_at` is the line of code that made the layer.
pub(crate) fn add_layer_context<V>(
    result: std::result::Result<V, TapeError>,
    created_at: &'static Location<'static>,
    describe: impl FnOnce() -> String,
) -> Result<V> {
    result.map_err(|source| Error::Layer { layer: describe(), created_at, source: Box::new(source) })
}

/// Passes `output`, the output of `layer`, to the hooks of the layer, and returns the output that the hooks return. Records the shape of
/// this output for [`Module::summary_with`]. If `output` is an error, adds the layer's description to it, as [`add_layer_context`] does.
pub(crate) fn output_of<T: Float, V: LayerOutput<T>>(
    layer: &(impl Module<T> + ?Sized),
    output: std::result::Result<V, TapeError>,
    created_at: &'static Location<'static>,
    describe: impl FnOnce() -> String,
) -> Result<V> {
    Ok(pass_output(layer, add_layer_context(output, created_at, describe)?))
}

/// Passes `output`, the output of `layer`, to the hooks of the layer, and returns the output that the hooks return. Records the shape of
/// this output for [`Module::summary_with`].
pub(crate) fn pass_output<T: Float, V: LayerOutput<T>>(layer: &(impl Module<T> + ?Sized), output: V) -> V {
    trace::run_hooks(|| trace::module_key(layer, layer.type_name()), output)
}

/// Returns a generator for one forward pass of a random layer, forked from the generator of `tape`. Returns `None` if `tape` is not a training tape.
/// The tape then notes that a layer of the kind `layer` was evaluated. If `is_random` is false, the layer computes the same in training as in
/// evaluation, and the tape notes nothing.
pub(crate) fn fork_generator<T: Float>(tape: &Tape<T>, layer: &'static str, is_random: bool) -> Option<Generator> {
    let generator = tape.draw(Generator::fork);
    if generator.is_none() && is_random {
        tape.note_evaluation(layer);
    }
    generator
}

/// Returns the error of a layer that rejects its input before any operation is recorded. `layer` is the layer's name in the error.
#[track_caller]
pub(crate) fn layer_error(layer: &'static str, message: String) -> TapeError {
    wengert_tensor::Error::Argument { message, at: Site::here(layer) }.into()
}

/// Returns the number of dimensions of `x`, or an error if it is neither `low` nor `high`.
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
    let hint = if rank + 1 == low { "\na batch of one sample is `x.unsqueeze(0)`" } else { "" };
    Err(layer_error(layer, format!("expected {expected} input (got {rank}D input){hint}")))
}

/// Returns the variable of `parameter` on `tape`, or `None` if the layer does not have this parameter.
#[track_caller]
pub(crate) fn optional_parameter<'t, T: Float>(
    tape: &'t Tape<T>,
    parameter: Option<&Parameter<T>>,
) -> std::result::Result<Option<Var<'t, T>>, TapeError> {
    match parameter {
        Some(parameter) => Ok(Some(tape.try_parameter(parameter)?)),
        None => Ok(None),
    }
}
