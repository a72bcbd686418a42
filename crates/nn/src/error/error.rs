//! The error of this crate.

use std::fmt;
use std::io;
use std::panic::Location;
use std::path::PathBuf;

use wengert_tensor::{DType, Shape};

use crate::error::mismatch::{KeyMismatch, Place, key_differences};
use crate::error::text::{display_path, escape, hint_for, list_names, shorten};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of layers, optimisers, data and files.
///
/// The text of the error escapes control characters in names and other texts from files, and shortens long names and fields, but not paths.
/// The fields have the complete text, unless their comment says otherwise. `Debug` shows the same text as `Display`, so that
/// `main() -> Result` and `unwrap` print a sentence. Losses do not return this error: as operations on variables or tensors, they return
/// the errors of `wengert-autograd` or `wengert-tensor`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a tensor operation.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// An error of a recorded operation.
    #[error(transparent)]
    Autograd(#[from] wengert_autograd::Error),

    /// An error of an operation that a layer called, for example because the layer's input has a wrong shape.
    #[error("{source}\n  in the layer {layer}, made at {created_at}")]
    Layer {
        /// The kind and the sizes of the layer, and the shape of the input.
        layer: String,
        /// The line that made the layer.
        created_at: &'static Location<'static>,
        /// The error of the operation that the layer called.
        source: Box<wengert_autograd::Error>,
    },

    /// A path without a parameter at or below it.
    #[error("no parameter is at or below the path '{}'; the model has {}", shorten(path), list_names(known))]
    NoSuchPath {
        /// The path that was given.
        path: String,
        /// The paths of all parameters.
        known: Vec<String>,
    },

    /// A hook whose layer was not found, was not called, or cannot be distinguished from another one.
    #[error("the hook at '{}': {problem}", shorten(path))]
    Hook {
        /// The path of the layer.
        path: String,
        /// The problem, in words.
        problem: String,
    },

    /// A vector whose length is not the number of elements of the model, or a tensor that is not a vector.
    #[error(
        "expected a vector of shape [{expected}], with an element for each number in the parameters of the model, but got \
         shape {found}"
    )]
    VectorLength {
        /// The shape of the vector.
        found: Shape,
        /// The number of elements of all parameters.
        expected: usize,
    },

    /// A number of bytes that is not the size of a tensor.
    #[error("a tensor {shape} of {size} bytes per element has {expected} bytes, but got {found}")]
    ByteCount {
        /// The shape of the tensor.
        shape: Shape,
        /// The number of bytes of an element.
        size: usize,
        /// The number of bytes of all elements.
        expected: usize,
        /// The number of bytes that were given.
        found: usize,
    },

    /// A file or folder that cannot be opened or read.
    #[error("cannot read '{}': {source}", display_path(path))]
    Read {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason: an error of the system, or a problem that this crate found.
        source: io::Error,
    },

    /// A file or folder that cannot be written. An existing file keeps its old contents.
    #[error("cannot write '{}': {source}", display_path(path))]
    Write {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason: an error of the system, or a problem that this crate found.
        source: io::Error,
    },

    /// A row of a table with more or fewer columns than the first row.
    #[error("'{}', line {line}: expected {expected} columns as in the first row, found {found}", display_path(path))]
    RowWidth {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: u64,
        /// The number of columns of the first row.
        expected: usize,
        /// The number of columns of this row.
        found: usize,
    },

    /// A field of a table that is not a finite number.
    #[error("'{}', line {line}, column {column}: '{}' is not a finite number", display_path(path), shorten(field))]
    NotANumber {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: u64,
        /// The number of the column, counted from 1.
        column: usize,
        /// The beginning of the text in the field.
        field: String,
    },

    /// A number of a table that is too large for the element type of the tensor into which it is read.
    #[error("'{}', line {line}, column {column}: '{}' is too large for {dtype}", display_path(path), shorten(field))]
    NumberTooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: u64,
        /// The number of the column, counted from 1.
        column: usize,
        /// The beginning of the text in the field.
        field: String,
        /// The element type of the tensor.
        dtype: DType,
    },

    /// A row of a table that is longer than the limit.
    #[error("'{}', line {line} is longer than {limit} bytes", display_path(path))]
    LineTooLong {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: u64,
        /// The maximum length of a row, in bytes.
        limit: usize,
    },

    /// A class of a table that is not an integer from 0 to `classes` - 1.
    #[error(
        "'{}', line {line}: expected a class from 0 to {} in the last column, found {found}",
        display_path(path), classes.saturating_sub(1)
    )]
    Class {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: u64,
        /// The number of classes.
        classes: usize,
        /// The value in the file.
        found: f64,
    },

    /// The name of a column that a table does not have.
    #[error("'{}' has no column '{}'; it has {}", display_path(path), shorten(name), list_names(known))]
    NoSuchColumn {
        /// The path of the file.
        path: PathBuf,
        /// The name that does not exist.
        name: String,
        /// The names of the table's columns.
        known: Vec<String>,
    },

    /// A file whose contents do not follow their format.
    #[error("'{}', {place}: {}", display_path(path), escape(problem))]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// The place in the file.
        place: Place,
        /// A description of the problem, for example the expected and the found contents.
        problem: String,
    },

    /// A table without rows or with too few columns.
    #[error("'{}' {problem}", display_path(path))]
    Table {
        /// The path of the file.
        path: PathBuf,
        /// The problem, for example `has no rows`.
        problem: &'static str,
    },

    /// A problem of data, or of an argument that concerns data. Examples are different numbers of inputs and targets, a wrong shape, a wrong share of
    /// the samples, and too few samples.
    #[error("{0}")]
    Dataset(String),

    /// A wrong argument, or a call at the wrong time, that does not concern data. Examples are an unknown measure, two objects with the same name in
    /// a checkpoint, and a [`WeightAverage`](crate::WeightAverage) of a model with other parameters.
    #[error("{0}")]
    Argument(String),

    /// A setting that is outside its range or does not fit the other settings.
    #[error("Invalid {name} value: {value}; expected {expected}")]
    Setting {
        /// The name of the setting, as in PyTorch's errors if PyTorch has the setting.
        name: &'static str,
        /// The value of the setting.
        value: f64,
        /// A description of the allowed values.
        expected: &'static str,
    },

    /// A tensor that was passed to a step of an optimiser, and whose shape differs from the shape of its gradient or of its states.
    #[error(
        "tensor {position} of the step has shape {shape}, but its gradient or state has shape {other}; nothing was changed"
    )]
    StepShape {
        /// The position of the tensor among the tensors of the step.
        position: usize,
        /// The shape of the tensor.
        shape: Shape,
        /// The shape of its gradient, or of its states from earlier steps.
        other: Shape,
    },

    /// Parameters that are not frozen and on which the loss does not depend. Nothing was changed.
    #[error(
        "the loss does not depend on {}, so there is no gradient for a step. Use it in the forward pass, or freeze it by \
         `model.freeze(path)` if it is not to be trained",
        list_names(names)
    )]
    Unreached {
        /// The paths of the parameters.
        names: Vec<String>,
    },

    /// A name that two tensors of a model or of a file share. In a file, these tensors could not be distinguished.
    #[error("two {kind} have the name '{}'", shorten(name))]
    DuplicateName {
        /// The kind of the tensors, for example `parameters of the model`.
        kind: &'static str,
        /// The name that both tensors have.
        name: String,
    },

    /// A name that the format of checkpoints reserves.
    #[error(
        "a parameter cannot be named '{}' in a checkpoint: the format reserves that name, and names that begin with '@'; rename the field",
        shorten(name)
    )]
    ReservedName {
        /// The reserved name.
        name: String,
    },

    /// A file that is not a checkpoint, or is damaged.
    #[error("'{}' is not a safetensors checkpoint, or is damaged: {}", display_path(path), shorten(reason))]
    Checkpoint {
        /// The path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },

    /// A checkpoint that does not fit the model or object that reads it, or lacks a requested tensor or number. Nothing was loaded.
    #[error(
        "'{}' does not fit the model:{}",
        display_path(path),
        key_differences(missing, unexpected, renamed, mismatched)
    )]
    Keys {
        /// The path of the file.
        path: PathBuf,
        /// The names that the model or object has and the file does not have.
        missing: Vec<String>,
        /// The names that the file has and the model or object does not have.
        unexpected: Vec<String>,
        /// Pairs of a missing name and a similar unexpected name of the same shape. Only the first 10 missing names are compared, so there
        /// are at most 10 pairs.
        renamed: Vec<(String, String)>,
        /// The tensors that have another shape or element type in the file than in the model or object.
        mismatched: Vec<KeyMismatch>,
    },

    /// A loss or a gradient that is NaN or infinite.
    #[error(
        "epoch {epoch}, batch {batch}: {what}{}\n  hint: {}",
        origin.as_ref().map_or(String::new(), |origin| format!("\n{origin}")),
        hint_for(origin.as_deref())
    )]
    NonFinite {
        /// The number of the epoch, counted from 1.
        epoch: u64,
        /// The number of the batch, counted from 1.
        batch: u64,
        /// A description of the value that is not finite.
        what: String,
        /// The operation or leaf that [`Tape::first_non_finite`](wengert_autograd::Tape::first_non_finite) found, with its line of code. `None`
        /// if it found nothing.
        origin: Option<Box<wengert_autograd::NonFinite>>,
    },

    /// A curve or another chart that could not be drawn.
    #[error("cannot draw the curve: {0}")]
    Plot(String),
}

/// Writes the same text as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Panics at the caller's line with the whole text of an error, as methods without `try_` do.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_is_the_sentence() {
        let error = Error::DuplicateName { kind: "parameters of the model", name: "w".to_owned() };
        assert_eq!(format!("{error:?}"), "two parameters of the model have the name 'w'");
        assert_eq!(format!("{:?}", Err::<(), _>(error)), "Err(two parameters of the model have the name 'w')");
    }
}
