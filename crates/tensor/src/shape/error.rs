//! What can go wrong, as values: the data is in the error, the sentence is made from it.
//!
//! The first line of [`Error`]'s text is PyTorch's sentence where PyTorch has one, because people search for it. How the
//! lines below it are laid out is in [`diagnostic`](crate::shape::diagnostic).

use std::fmt;

pub use crate::shape::broadcast::ExpandMismatch;
use crate::shape::broadcast::Mismatch;
use crate::shape::diagnostic;
pub use crate::shape::site::Site;
use crate::{DType, Shape};

/// Everything that tensor operations refuse.
///
/// `Display` gives the whole diagnostic, several lines; [`sentence`](Error::sentence) its first line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not broadcast.
    #[error("{}", diagnostic::broadcast(.0, .1))]
    Broadcast(Box<Mismatch>, Site),

    /// Shapes given to `broadcast_shapes` that do not broadcast. PyTorch words this one differently.
    #[error("{}", diagnostic::broadcast_shapes(.0, .1))]
    BroadcastShapes(Box<Mismatch>, Site),

    /// Sizes that do not broadcast, in an operation that PyTorch gives a sentence of its own: index tensors, assigned values.
    #[error("{}", diagnostic::with_site(message, at))]
    ShapeMismatch {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// An in-place operation whose result would not have the left side's shape.
    #[error("{}", diagnostic::in_place(output, broadcast, &source.shape, at))]
    InPlaceShape {
        /// The shape that is written to.
        output: Box<Shape>,
        /// The shape that the operands give together.
        broadcast: Box<Shape>,
        /// The older sentence: the right side, whose shape it has, does not expand to the left.
        source: Box<ExpandMismatch>,
        /// Where.
        at: Site,
    },

    /// A tensor that does not expand to the shape asked for.
    #[error("{}", diagnostic::expand(.0, .1))]
    Expand(Box<ExpandMismatch>, Site),

    /// Fewer sizes than dimensions given to `expand`, or negative ones that have no meaning.
    #[error("{}", diagnostic::expand_sizes(dtype, shape, sizes, at))]
    ExpandSizes {
        /// Element type of the tensor.
        dtype: DType,
        /// Its shape.
        shape: Shape,
        /// The sizes asked for.
        sizes: Vec<isize>,
        /// Where.
        at: Site,
    },

    /// A shape that `sum_to` cannot reach: the tensor is no expansion of it.
    #[error("{}", diagnostic::with_site(format_args!("size {{{target}}} is not expandable to size {{{shape}}}."), at))]
    SumTo {
        /// The tensor's shape.
        shape: Shape,
        /// The shape asked for.
        target: Box<Shape>,
        /// Where.
        at: Site,
    },

    /// A 0-dim tensor under [`compat::Rules::strict`](crate::shape::compat::Rules::strict).
    #[error("{}", diagnostic::zero_dim(*operand, shapes, at))]
    ZeroDim {
        /// Position of the first operand without a dimension.
        operand: usize,
        /// The shapes of all operands.
        shapes: Vec<Shape>,
        /// Where.
        at: Site,
    },

    /// A broadcast that [`compat`](crate::shape::compat) was told to deny.
    #[error("{}", diagnostic::denied(message, shapes, at))]
    Denied {
        /// The warning's text, two lines.
        message: String,
        /// The operands' shapes.
        shapes: Box<(Shape, Shape)>,
        /// Where.
        at: Site,
    },

    /// A dimension that the tensor does not have.
    #[error("{}", diagnostic::dim_range(*dim, *rank, at))]
    DimRange {
        /// The dimension asked for.
        dim: isize,
        /// The number of dimensions to choose from.
        rank: usize,
        /// Where.
        at: Site,
    },

    /// Sizes that do not fit the number of elements, or a view that strides do not allow.
    #[error("{}", diagnostic::with_site(message, at))]
    Reshape {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// An in-place operation on memory where several elements share a place, or that a source overlaps partly.
    #[error("{}", diagnostic::overlap(*internal, at))]
    Overlap {
        /// Whether the written tensor overlaps itself (else: it overlaps the source).
        internal: bool,
        /// Where.
        at: Site,
    },

    /// Shapes that a product or a concatenation refuses.
    #[error("{}", diagnostic::with_site(message, at))]
    MatmulShape {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// An index outside its dimension.
    #[error("{}", diagnostic::with_site(message, at))]
    IndexRange {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// A reduction over nothing, by an operation without an identity.
    #[error("{}", diagnostic::with_site(message, at))]
    EmptyReduction {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// Any other argument that the operation refuses.
    #[error("{}", diagnostic::with_site(message, at))]
    Argument {
        /// The sentence.
        message: String,
        /// Where.
        at: Site,
    },

    /// An operation that this element type does not have.
    #[error("{}", diagnostic::with_site(format_args!("{} is not defined for elements of type {dtype}", at.operation), at))]
    ElementType {
        /// The element type.
        dtype: DType,
        /// Where.
        at: Site,
    },

    /// A shape whose elements cannot be counted or addressed.
    #[error("{}", diagnostic::too_large(shape, *dtype, at))]
    TooLarge {
        /// The shape.
        shape: Shape,
        /// Element type.
        dtype: DType,
        /// Where.
        at: Site,
    },

    /// A result that memory cannot hold.
    #[error("{}", diagnostic::out_of_memory(shape, *dtype, at))]
    OutOfMemory {
        /// The shape.
        shape: Shape,
        /// Element type.
        dtype: DType,
        /// Where.
        at: Site,
    },
}

impl Error {
    /// The first line of the diagnostic: PyTorch's sentence where it has one.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let error = Tensor::<f32>::ones([5, 2, 4, 1]).try_add(&Tensor::ones([3, 1, 1])).unwrap_err();
    /// assert_eq!(
    ///     error.sentence(),
    ///     "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
    /// );
    /// ```
    pub fn sentence(&self) -> String {
        let text = self.to_string();
        match self {
            // The sentence of this one has two lines itself.
            Error::Denied { message, .. } => message.clone(),
            _ => text.split("\n  --> ").next().unwrap_or_default().to_owned(),
        }
    }

    /// The operation that failed and the line that asked for it.
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

    pub(crate) fn argument(at: Site, message: impl fmt::Display) -> Self {
        Error::Argument { message: message.to_string(), at }
    }
}

/// What plain methods do with an error: panic at the caller's line with the whole diagnostic.
///
/// The diagnostic goes to the panic message as it is; `unwrap` would print it escaped.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}
