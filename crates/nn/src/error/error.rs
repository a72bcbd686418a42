//! The error of this crate.

use std::fmt;
use std::io;
use std::panic::Location;
use std::path::PathBuf;

use wengert_tensor::{DType, Shape};

use crate::error::mismatch::{KeyMismatch, Place, keys};
use crate::error::text::{at, escaped, list, shown};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that optimisers, data and files refuse. The texts are one line each, but for [`Error::Keys`]. Names and what
/// else comes from files are shown with control characters escaped, and shortened where they are long; the fields hold
/// all of it.
///
/// What layers and losses refuse are errors of the tape or of tensors, as with every other operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor operation refuses its operands.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// A tape refuses an operation.
    #[error(transparent)]
    Autograd(#[from] wengert_autograd::Error),

    /// A layer refuses its input.
    #[error("{source}\n  in the layer {layer}, made at {made}")]
    Layer {
        /// Its kind and sizes, and the shape of the input.
        layer: String,
        /// The line that made it.
        made: &'static Location<'static>,
        /// What the operation refused.
        source: Box<wengert_autograd::Error>,
    },

    /// A path that no parameter is at or below.
    #[error("no parameter is at or below the path '{}'; the model has {}", shown(path), list(known))]
    NoSuchPath {
        /// The path.
        path: String,
        /// The paths of all parameters.
        known: Vec<String>,
    },

    /// A vector that does not have as many elements as the model has.
    #[error("a vector of {found} elements for a model of {expected} parameters")]
    VectorLength {
        /// Elements of the vector.
        found: usize,
        /// Numbers of the model.
        expected: usize,
    },

    /// A file that cannot be opened or read.
    #[error("cannot read '{}': {source}", at(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A file that cannot be written. What was there before is still there.
    #[error("cannot write '{}': {source}", at(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A row of a table with more or fewer columns than the first.
    #[error("'{}', line {line}: expected {expected} columns as in the first row, found {found}", at(path))]
    RowWidth {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// Columns of the first row.
        expected: usize,
        /// Columns of this one.
        found: usize,
    },

    /// A field of a table that is not a finite number.
    #[error("'{}', line {line}, column {column}: '{}' is not a finite number", at(path), shown(field))]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: usize,
        /// The beginning of what is written there.
        field: String,
    },

    /// A number of a table that is too large for the type of the elements.
    #[error("'{}', line {line}, column {column}: '{}' is too large for {dtype}", at(path), shown(field))]
    NumberTooLarge {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: usize,
        /// The beginning of what is written there.
        field: String,
        /// The type of the elements.
        dtype: DType,
    },

    /// A line of a table that is longer than lines may be.
    #[error("'{}', line {line} is longer than {limit} bytes", at(path))]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// How many bytes a line may have.
        limit: usize,
    },

    /// A class of a table that is not an integer from 0 to the number of classes less one.
    #[error(
        "'{}', line {line}: the last column is to be a class from 0 to {}, found {found}",
        at(path), classes.saturating_sub(1)
    )]
    Class {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// How many classes there are.
        classes: usize,
        /// What is written there.
        found: f64,
    },

    /// A table without a column that was asked for.
    #[error("'{}' has no column '{}'; it has {}", at(path), shown(name), list(known))]
    NoSuchColumn {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// The names of its columns.
        known: Vec<String>,
    },

    /// A file that is not what it is meant to be.
    #[error("'{}', {place}: {}", at(path), escaped(problem))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What was expected there, and what was found.
        problem: String,
    },

    /// A table without rows or with too few columns.
    #[error("'{}' {problem}", at(path))]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it: `holds no rows`.
        problem: &'static str,
    },

    /// Inputs and targets that differ in number, a share outside its range, or too few samples.
    #[error("{0}")]
    Dataset(String),

    /// A setting of an optimiser outside its range.
    #[error("Invalid {name} value: {value}; expected {expected}")]
    Setting {
        /// Its name, as in PyTorch.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range.
        expected: &'static str,
    },

    /// A tensor of a step whose shape is not that of its gradient or of its states.
    #[error(
        "tensor {position} of the step is of shape {shape}, its gradient or its state of {other}; nothing was changed"
    )]
    StepShape {
        /// Its position.
        position: usize,
        /// Its shape.
        shape: Shape,
        /// The shape of its gradient, or that of its states from earlier steps.
        other: Shape,
    },

    /// Parameters of a step's model that the loss does not depend on, and that are not frozen. Nothing was changed.
    #[error(
        "the loss does not depend on {}: no gradient to step along (was it used in this step's forward pass? Freeze what is \
         meant to stay as it is: `model.freeze(path)`)",
        list(names)
    )]
    Unreached {
        /// The parameters' paths.
        names: Vec<String>,
    },

    /// A model two of whose parameters have the same name, which a checkpoint cannot tell apart.
    #[error("two parameters of the model are named '{}'", shown(name))]
    DuplicateName {
        /// The name.
        name: String,
    },

    /// A parameter whose name the checkpoints' format keeps for itself.
    #[error(
        "a parameter cannot be named '{}' in a checkpoint: the format keeps that name for itself, and names that begin with '@' are for what is no model",
        shown(name)
    )]
    ReservedName {
        /// The name.
        name: String,
    },

    /// A file that is no checkpoint, or a damaged one.
    #[error("'{}' is not a safetensors checkpoint, or a damaged one: {}", at(path), shown(reason))]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A checkpoint of another model. Nothing was loaded.
    #[error("'{}' does not fit the model:{}", at(path), keys(missing, unexpected, mismatched))]
    Keys {
        /// The file.
        path: PathBuf,
        /// Names that the model has and the file has not.
        missing: Vec<String>,
        /// Names that the file has and the model has not.
        unexpected: Vec<String>,
        /// Names that both have, with different shapes or element types.
        mismatched: Vec<KeyMismatch>,
    },

    /// A loss or a gradient that is NaN or infinite.
    #[error(
        "epoch {epoch}, batch {batch}: {what}{}\n  hint: a smaller learning rate or gradients of a limited norm (`clip_norm`) may help",
        origin.as_ref().map_or(String::new(), |origin| format!("\n{origin}"))
    )]
    NonFinite {
        /// Counted from 1.
        epoch: u64,
        /// Counted from 1.
        batch: u64,
        /// What is not finite.
        what: String,
        /// The operation that made it, with its line.
        origin: Option<Box<wengert_autograd::NonFinite>>,
    },

    /// A training that came to nothing, and what to try.
    #[error("{0}")]
    Diverged(String),

    /// A curve that could not be drawn.
    #[error("cannot draw the curve: {0}")]
    Plot(String),
}

/// What plain methods do with an error: panic at the caller's line with the whole text.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}
