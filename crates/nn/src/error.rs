//! What can go wrong with models, data and files, as values.

use std::fmt;
use std::io;
use std::path::PathBuf;

use wengert_tensor::Shape;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that optimisers, data and files refuse. The texts are one line each, but for [`Error::Keys`].
///
/// What layers and losses refuse are errors of the tape or of tensors, as with every other operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor operation refuses its operands.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// A file that cannot be opened or read.
    #[error("cannot read '{}': {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A file that cannot be written. What was there before is still there.
    #[error("cannot write '{}': {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A row of a table with more or fewer columns than the first.
    #[error("'{}', line {line}: expected {expected} columns as in the first row, found {found}", path.display())]
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
    #[error("'{}', line {line}, column {column}: '{field}' is not a finite number", path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: usize,
        /// What is written there, the beginning of it.
        field: String,
    },

    /// A class of a table that is not an integer from 0 to the number of classes less one.
    #[error(
        "'{}', line {line}: the last column is to be a class from 0 to {}, found {found}",
        path.display(), classes.saturating_sub(1)
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

    /// A table that cannot be what it is taken for.
    #[error("'{}' {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it: `holds no rows`.
        problem: &'static str,
    },

    /// Inputs and targets of different numbers, or a share that is none.
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

    /// Parameters given to an optimiser that the loss does not depend on. Nothing was changed.
    #[error(
        "the loss does not depend on {}: no gradient to step along (was it used in this step's forward pass? Parameters \
         that are meant to stay as they are need not be given to the optimiser)",
        list(names)
    )]
    Unreached {
        /// The parameters' names.
        names: Vec<String>,
    },

    /// A model two of whose parameters have the same name, which a checkpoint cannot tell apart.
    #[error("two parameters of the model are named '{name}'")]
    DuplicateName {
        /// The name.
        name: String,
    },

    /// A file that is no checkpoint, or a damaged one.
    #[error("'{}' is not a safetensors checkpoint, or a damaged one: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What the format's reader says.
        reason: String,
    },

    /// A checkpoint of another model. Nothing was loaded.
    #[error("'{}' does not fit the model:{}", path.display(), keys(missing, unexpected, mismatched))]
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

    /// A curve that could not be drawn.
    #[error("cannot draw the curve: {0}")]
    Plot(String),
}

/// A tensor of a checkpoint that is not what the model has under that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMismatch {
    /// The name of both.
    pub name: String,
    /// Shape and element type in the file.
    pub found: (Shape, String),
    /// Shape and element type in the model.
    pub expected: (Shape, String),
}

impl fmt::Display for KeyMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyMismatch { name, found, expected } = self;
        write!(f, "'{name}' is {} {} in the file, {} {} in the model", found.1, found.0, expected.1, expected.0)
    }
}

/// `'fc1.weight', 'fc1.bias'`.
fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn keys(missing: &[String], unexpected: &[String], mismatched: &[KeyMismatch]) -> String {
    let mut text = String::new();
    if !missing.is_empty() {
        text += &format!("\n  missing in the file: {}", list(missing));
    }
    if !unexpected.is_empty() {
        text += &format!("\n  unexpected in the file: {}", list(unexpected));
    }
    for mismatch in mismatched {
        text += &format!("\n  mismatch: {mismatch}");
    }
    text
}

/// What plain methods do with an error: panic at the caller's line with the whole text.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}
