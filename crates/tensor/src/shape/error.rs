//! Errors as values. An error holds data, and its text is made from the data.
//!
//! The first line of the text, called the sentence, is PyTorch's error message, if PyTorch has one for this error. People search for this
//! message. [`diagnostic`] makes the text.

use std::fmt;

pub use crate::shape::broadcast::ExpandMismatch;
use crate::shape::broadcast::Mismatch;
use crate::shape::diagnostic;
pub use crate::shape::site::Site;
use crate::{DType, Shape};

/// An error of a tensor operation.
///
/// `Display` writes the whole diagnostic, which has several lines. `Debug` writes the same text, so that `main() -> Result` and `unwrap`
/// show it. [`sentence`](Error::sentence) returns the first line.
///
/// The [`Site`] of a variant, such as its field `at`, is the operation that failed and the line of code that called it.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not broadcast.
    #[error("{}", diagnostic::broadcast(.0, .1))]
    Broadcast(Box<Mismatch>, Site),

    /// Shapes given to `broadcast_shapes` that do not broadcast. PyTorch has a separate error message for this function.
    #[error("{}", diagnostic::broadcast_shapes(.0, .1))]
    BroadcastShapes(Box<Mismatch>, Site),

    /// Sizes that do not broadcast, or are negative, in an operation for which PyTorch has a separate error message. Examples are indexing
    /// by tensors and assignment.
    #[error("{}", diagnostic::with_site(message, at))]
    ShapeMismatch {
        /// The error message.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An operation in place whose result does not have the shape of the tensor on the left side.
    #[error("{}", diagnostic::in_place(output, broadcast, &source.shape, at))]
    InPlaceShape {
        /// The shape of the left side.
        output: Box<Shape>,
        /// The broadcast shape of the operands.
        broadcast: Box<Shape>,
        /// The mismatch that occurs when the right side is expanded to the shape of the left side. Its text is the error message of older
        /// versions of PyTorch.
        source: Box<ExpandMismatch>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A tensor that does not expand to the requested shape.
    #[error("{}", diagnostic::expand(.0, .1))]
    Expand(Box<ExpandMismatch>, Site),

    /// Sizes given to `expand` that are too few, too large, or negative. The size -1 is allowed where the tensor has a dimension.
    #[error("{}", diagnostic::expand_sizes(dtype, shape, sizes, at))]
    ExpandSizes {
        /// The element type of the tensor.
        dtype: DType,
        /// The tensor's shape.
        shape: Shape,
        /// The requested sizes.
        sizes: Vec<isize>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A shape that `sum_to` cannot produce, because it does not expand to the shape of the tensor.
    #[error("{}", diagnostic::with_site(format_args!("size {{{target}}} is not expandable to size {{{shape}}}."), at))]
    SumTo {
        /// The tensor's shape.
        shape: Shape,
        /// The requested shape.
        target: Box<Shape>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An operand without dimensions, which rules such as [`compat::Rules::strict`](crate::shape::compat::Rules::strict) refuse.
    #[error("{}", diagnostic::zero_dim(*operand, shapes, at))]
    ZeroDim {
        /// The position of the first operand without dimensions.
        operand: usize,
        /// The shapes of all operands.
        shapes: Vec<Shape>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A broadcast that [`compat`](crate::shape::compat) rules deny.
    #[error("{}", diagnostic::denied(message, shapes, at))]
    Denied {
        /// The text of the warning, which has two lines.
        message: String,
        /// The operands' shapes.
        shapes: Box<(Shape, Shape)>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A dimension that the tensor does not have.
    #[error("{}", diagnostic::dim_range(*dim, *rank, at))]
    DimRange {
        /// The requested dimension.
        dim: isize,
        /// The number of dimensions of the tensor.
        rank: usize,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A reshape to sizes that do not match the number of elements, or a view that the strides do not allow.
    #[error("{}", diagnostic::with_site(message, at))]
    Reshape {
        /// The error message.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An in-place operation on a tensor whose elements share memory with each other, or that partly overlaps another operand.
    #[error("{}", diagnostic::overlap(*internal, at))]
    Overlap {
        /// True if elements of the written tensor share memory with each other. False if the written tensor partly overlaps another
        /// operand.
        internal: bool,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// Shapes of operands that a product, another operation of linear algebra or a concatenation refuses.
    #[error("{}", diagnostic::with_hint(message, at))]
    MatmulShape {
        /// The error message, and a hint on a second line if there is one.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An index outside its dimension.
    #[error("{}", diagnostic::with_hint(message, at))]
    IndexRange {
        /// The error message, and a hint on a second line if there is one.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A reduction of zero elements by an operation that has no result for them, such as a maximum.
    #[error("{}", diagnostic::with_site(message, at))]
    EmptyReduction {
        /// The error message.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An invalid argument that no other variant describes.
    #[error("{}", diagnostic::with_hint(message, at))]
    Argument {
        /// The error message, and a hint on a second line if there is one.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// An operation that the element type does not support.
    #[error("{}", diagnostic::with_site(format_args!("{} is not defined for elements of type {dtype}", at.operation), at))]
    ElementType {
        /// The element type.
        dtype: DType,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A shape that is too large: its number of elements, its size in bytes, or the size of one dimension exceeds `isize::MAX`.
    #[error("{}", diagnostic::too_large(shape, *dtype, at))]
    TooLarge {
        /// The shape that is too large.
        shape: Shape,
        /// The element type.
        dtype: DType,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A result, or memory needed to compute it, that does not fit into memory.
    #[error("{}", diagnostic::out_of_memory(shape, *dtype, at))]
    OutOfMemory {
        /// The shape of the result, or of the memory.
        shape: Shape,
        /// The element type.
        dtype: DType,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },
}

/// Writes the same text as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Returns the first line of the diagnostic (the first two lines of [`Denied`](Error::Denied)). This text is PyTorch's error message,
    /// if PyTorch has one for this error.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let error = Tensor::<f32>::ones([5, 2, 4, 1]).try_add(&Tensor::ones([3, 1, 1])).unwrap_err();
    /// assert_eq!(
    ///     error.sentence(),
    ///     "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
    /// );
    /// ```
    pub fn sentence(&self) -> String {
        let text = self.to_string();
        match self {
            // The first part of this error's text, the sentence, has two lines.
            Error::Denied { message, .. } => message.clone(),
            _ => text.split("\n  --> ").next().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the operation that failed and the line of code that called it.
    pub fn site(&self) -> Site {
        match self {
            Error::Broadcast(_, at) | Error::BroadcastShapes(_, at) | Error::Expand(_, at) => *at,
            Error::ShapeMismatch { at, .. }
            | Error::InPlaceShape { at, .. }
            | Error::ExpandSizes { at, .. }
            | Error::SumTo { at, .. }
            | Error::ZeroDim { at, .. }
            | Error::Denied { at, .. }
            | Error::DimRange { at, .. }
            | Error::Reshape { at, .. }
            | Error::Overlap { at, .. }
            | Error::MatmulShape { at, .. }
            | Error::IndexRange { at, .. }
            | Error::EmptyReduction { at, .. }
            | Error::Argument { at, .. }
            | Error::ElementType { at, .. }
            | Error::TooLarge { at, .. }
            | Error::OutOfMemory { at, .. } => *at,
        }
    }

    #[cold]
    pub(crate) fn argument(at: Site, message: impl fmt::Display) -> Self {
        Error::Argument { message: message.to_string(), at }
    }

    /// Returns the error for a result of shape `shape` that does not fit into memory.
    #[cold]
    pub(crate) fn out_of_memory(shape: impl Into<Shape>, dtype: DType, at: Site) -> Self {
        Error::OutOfMemory { shape: shape.into(), dtype, at }
    }

    /// Adds a hint to the error's text, below the line of code. Does nothing for variants other than `MatmulShape`, `IndexRange` and
    /// `Argument`.
    pub(crate) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        if let Error::MatmulShape { message, .. }
        | Error::IndexRange { message, .. }
        | Error::Argument { message, .. } = &mut self
        {
            *message = format!("{message}\n{hint}");
        }
        self
    }

    /// Adds a hint as [`with_hint`](Self::with_hint) does, if there is one.
    pub(crate) fn with_hint_if_any(self, text: Option<impl fmt::Display>) -> Self {
        text.into_iter().fold(self, Self::with_hint)
    }
}

/// Makes the surrounding function return an error with the formatted message if the condition is false. The error is an
/// [`Error::Argument`], or another variant if its name stands before the message: `ensure!(index < size, at, IndexRange, "…")`.
macro_rules! ensure {
    ($holds:expr, $at:expr, $variant:ident, $($message:tt)+) => {{
        let holds: bool = $holds;
        if !holds {
            return Err($crate::Error::$variant { message: format!($($message)+), at: $at }.into());
        }
    }};
    ($holds:expr, $at:expr, $($message:tt)+) => {{
        let holds: bool = $holds;
        if !holds {
            return Err($crate::Error::argument($at, format_args!($($message)+)).into());
        }
    }};
}
pub(crate) use ensure;

/// Panics with the whole text of `error`. Functions that return no `Result` call this function, and the panic names the line that called
/// them.
///
/// The panic message is only the diagnostic. `unwrap` would write a text before it.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}
