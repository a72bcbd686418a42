//! The error of an export.

use std::fmt;
use std::panic::Location;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an export. After an error, no new file exists, and an old file is unchanged.
///
/// `Debug` shows the same text as `Display`, so that `main() -> Result` and `unwrap` print a sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A recorded operation that has no form in ONNX.
    #[error("'{operation}' has no form in ONNX\n  --> {recorded}")]
    Unsupported {
        /// The operation's name.
        operation: &'static str,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
    },

    /// Data that differs between two recordings of the model, although it is no input. A file with the data of one recording would compute
    /// wrong values for other inputs.
    #[error(
        "the data of '{operation}' depends on the values of an input{}, outside of the recorded program\n  --> {recorded}\n  \
         hint: compute it with operations on the variables of the inputs; an integer input is read by 'embedding' and \
         'index_select', also after 'select' and 'reshape'",
        or_on_size(dynamic)
    )]
    Varies {
        /// The operation that recorded the data, or that has it as an argument.
        operation: &'static str,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
        /// The name of the dynamic dimension, if there is one. The data may depend on its size.
        dynamic: Option<String>,
    },

    /// A model that records different operations for different inputs.
    #[error(
        "the model records other operations for other values of an input{}; the first is '{operation}'\n  --> {recorded}",
        or_on_size(dynamic)
    )]
    Structure {
        /// The first operation that differs.
        operation: &'static str,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
        /// The name of the dynamic dimension, if there is one. The operations may depend on its size.
        dynamic: Option<String>,
    },

    /// An index that equals several integer inputs, or several slices of them, in all recordings. The export cannot tell which one the model
    /// reads.
    #[error(
        "the index of '{operation}' is ambiguous: two integer inputs, or two slices of one, have the same examples\n  \
         --> {recorded}\n  hint: give examples whose slices differ"
    )]
    Ambiguous {
        /// The operation that has the index as an argument.
        operation: &'static str,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
    },

    /// An empty name, or a name of an input or output that another input, another output or a tensor of the model has.
    #[error("'{name}' is no valid name: {}", if name.is_empty() { "it is empty" } else { "another value has it" })]
    Name {
        /// The name.
        name: String,
    },

    /// A dynamic dimension that does not exist, or has size 0 in the example. Also a dynamic dimension of an input that does not exist.
    #[error("the input '{input}' has no dimension {axis} that can be dynamic")]
    NoDimension {
        /// The name of the input.
        input: String,
        /// The dimension.
        axis: usize,
    },

    /// An example of an integer input from which no second example can be made.
    #[error(
        "the example of the integer input '{input}' has no elements, or a single value that is not above 0\n  hint: give an \
         example with other valid values, so that the export can compare the programs of two different inputs"
    )]
    Example {
        /// The name of the input.
        input: String,
    },

    /// An output that is a variable of another tape.
    #[error("the output '{output}' is a variable of another tape; record it on the tape that the function gets")]
    OtherTape {
        /// The name of the output.
        output: String,
    },

    /// A file that would be larger than 2 GiB, the limit of Protocol Buffers.
    #[error("the file would have at least {bytes} bytes; an ONNX file has at most 2147483647")]
    TooLarge {
        /// A lower bound of the size of the file: the size of the part at which the limit was exceeded. The part is a tensor, several
        /// tensors, the graph or the file.
        bytes: usize,
    },

    /// A file that memory cannot hold.
    #[error("memory cannot hold {bytes} bytes of the file")]
    OutOfMemory {
        /// The number of bytes that were requested.
        bytes: usize,
    },

    /// An error of a tensor operation, such as a lack of memory.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] wengert_nn::Error),
}

/// Returns the part of a sentence that names the dynamic dimension, or an empty text without one.
fn or_on_size(dynamic: &Option<String>) -> String {
    dynamic.as_ref().map_or_else(String::new, |name| format!(", or on the size of the dimension '{name}'"))
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
