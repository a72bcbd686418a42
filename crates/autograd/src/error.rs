//! Errors of tapes, as values.

use std::fmt;
use std::panic::Location;

use wengert_tensor::{self as tensor, Shape, Site};

/// An error of recording, evaluating or differentiating. `Debug` writes the same text as `Display`, so that `main() -> Result` and `unwrap`
/// show this text.
///
/// The field `at` of a variant is the operation that returned the error, and the line of code that called it.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a tensor operation. For example, its operands do not fit, or there is not enough memory.
    #[error(transparent)]
    Tensor(#[from] tensor::Error),

    /// An operation, a derivative rule or a method of a tape got a variable of another tape.
    #[error(
        "the operands belong to two tapes\n  {at}\n  hint: record both on one tape, or pass a value from one to \
         the other with `tape.constant(&x.value())`"
    )]
    OtherTape {
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A gradient was requested for an output that is not a single number, without a seed (the incoming gradient of the output).
    #[error(
        "grad can be implicitly created only for scalar outputs\n  {at}\n  the output has shape {shape}\n  hint: \
         reduce it to one number first (`.sum(..)`), or give the upstream gradient (`tape.vjp`)"
    )]
    NotScalar {
        /// The shape of the output.
        shape: Shape,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// `item` was called for a value that does not have exactly one element.
    #[error(
        "a Tensor with {} elements cannot be converted to Scalar\n  {at}\n  its shape is {shape}\n  hint: `.value()` returns \
         all elements; `.sum(..)` and `.mean(..)` reduce them to one", shape.numel()
    )]
    NotOneNumber {
        /// The shape of the value.
        shape: Shape,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A seed has another shape than its output, or a tangent has another shape than its input.
    #[error(
        "Mismatch in shape: {}[{position}] has a shape of {got} and {}[{position}] has a shape of {expected}.\n  {at}\n  \
         hint: `expand`, `reshape` or `sum_to` gives it this shape",
        if is_tangent(at) { "tangent" } else { "grad_output" }, if is_tangent(at) { "input" } else { "output" }
    )]
    SeedShape {
        /// The position of the output (or input).
        position: usize,
        /// The shape of the output (or input).
        expected: Box<Shape>,
        /// The shape of the seed (or tangent).
        got: Box<Shape>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A derivative was requested through an operation that has no derivative.
    #[error(
        "the derivative of '{operation}' is not implemented: it has none\n  {at}\n  '{operation}' was recorded at \
         {recorded}\n  hint: if it counts as a constant, apply it to `x.detach()`"
    )]
    NotDifferentiable {
        /// The operation's name.
        operation: &'static str,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
        /// The operation that requested the derivative, and the line of code that called it.
        at: Site,
    },

    /// A gradient was requested with respect to a variable or parameter on which the output does not depend.
    #[error(
        "the output does not depend on {what}\n  {at}\n  hint: was it recorded before the output was, and not \
         detached? Where a zero gradient is meant, ask for `{}`",
        if at.operation == "of" { "of_or_zeros" } else { "grad_or_zeros" }
    )]
    Unreached {
        /// A description of the parameter or variable, with the line of code that made it.
        what: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// [`Gradients`](crate::Gradients) have no gradient with respect to a variable or parameter, although the loss may depend on it.
    #[error("{what} has no gradient here: {}\n  {at}\n  hint: {}", reason.clause(), reason.remedy())]
    NoGradient {
        /// A description of the parameter or variable, with the line of code that made it.
        what: String,
        /// The reason.
        reason: MissingGradient,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// The loss depends on no variable and no parameter.
    #[error(
        "the loss depends on no variable and no parameter of its tape: there is nothing to differentiate\n  {at}\n  \
         hint: were all of them recorded with `tape.constant`, frozen, or detached?"
    )]
    NothingReached {
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A gradient was requested for a variable of another tape.
    #[error(
        "the gradients are of a loss on another tape than {what}\n  {at}\n  hint: `gradients.of(&parameter)` finds the \
         gradient of a parameter; a variable has one only among the gradients of its own tape"
    )]
    OtherTapesGradients {
        /// A description of the variable.
        what: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// The tensor of a parameter was changed or replaced after its tape recorded it.
    #[error(
        "the parameter made at {created_at} has changed since this tape recorded it\n  {at}\n  hint: a tape is for one \
         step; make a new one after each step of the optimiser (`Tape::new()` or `Tape::training(..)` inside of the loop)"
    )]
    ParameterChanged {
        /// The line of code that made the parameter.
        created_at: &'static Location<'static>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A derivative rule returned a result with the wrong shape.
    #[error(
        "the {rule} rule of '{operation}' gave shape {got} for input {input}, expected {expected}\n  '{operation}' was \
         recorded at {recorded}\n  hint: a vjp has the shape of its input, a jvp the shape of the result; `sum_to` undoes an `expand`"
    )]
    RuleShape {
        /// The kind of the rule: `vjp` or `jvp`.
        rule: &'static str,
        /// The operation's name.
        operation: &'static str,
        /// The position of the input for which the rule was called.
        input: usize,
        /// The shape of the rule's result.
        got: Box<Shape>,
        /// The shape that the rule's result must have.
        expected: Box<Shape>,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
    },

    /// The result of a batching rule has the wrong shape.
    #[error(
        "the batching rule of '{operation}' gave shape {got}, expected {expected}: the batch dimension first\n  '{operation}' was \
         recorded at {recorded}"
    )]
    BatchShape {
        /// The operation's name.
        operation: &'static str,
        /// The shape of the rule's result.
        got: Box<Shape>,
        /// The shape that the rule's result must have.
        expected: Box<Shape>,
        /// The line of code that recorded the operation.
        recorded: &'static Location<'static>,
    },

    /// Batched inputs have different numbers of examples.
    #[error(
        "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes:?} for the mapped \
         dimension\n  {at}\n  hint: an input that is the same for all examples has `None` among the `in_dims`"
    )]
    BatchSizes {
        /// The size of each batched input along its batch dimension.
        sizes: Vec<usize>,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A batch dimension is out of range for an input or an output.
    #[error(
        "vmap: Got {which}={dim} for {} {position}, which has {} dimensions: its shape is {shape}\n  {at}{}",
        if *which == "in_dim" { "input" } else { "output" }, shape.rank(),
        if *which == "in_dim" {
            "\n  hint: an input that is the same for all examples has `None` among the `in_dims`"
        } else {
            ""
        }
    )]
    BatchDim {
        /// The name of the argument that has the batch dimension: `in_dim` or `out_dim`.
        which: &'static str,
        /// The position of the input or output, from 0.
        position: usize,
        /// The batch dimension that was requested.
        dim: isize,
        /// The shape of the input, or of the output for one example.
        shape: Shape,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// The tape is full: it has 2³² - 1 nodes, or its concatenations and its [`Operation`](crate::Operation)s have 2³² inputs in total.
    /// The rules for derivatives and batches return this error earlier, if fewer than 65,536 nodes are free.
    #[error(
        "the tape is full: it cannot number more than 4,294,967,295 operations\n  {at}\n  hint: a tape is for one step; make \
         a new one (`Tape::new()`) for each step of a loop"
    )]
    TapeFull {
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },

    /// A custom operation, a transform, or a method of a tape or of gradients refuses its arguments or a result. The message says why.
    #[error("{message}\n  {at}")]
    Refused {
        /// The reason. If a custom operation refuses the shapes of its inputs, this is its own message.
        message: String,
        /// The operation that returned the error, and the line of code that called it.
        at: Site,
    },
}

/// Returns true if an error of the requested derivative `at` is about a tangent, and false if it is about a seed.
fn is_tangent(at: &Site) -> bool {
    ["jvp", "hvp"].contains(&at.operation)
}

/// The reason why [`Gradients`](crate::Gradients) have no gradient with respect to a variable or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingGradient {
    /// The variable is a constant.
    Constant,
    /// The variable is the result of an operation.
    Intermediate,
    /// The parameter is frozen.
    Frozen,
    /// The gradients are a sum or a mean of gradients of several tapes, or come from [`Gradients::with_parts`](crate::Gradients::with_parts).
    /// Such gradients contain no gradients of variables.
    SeveralTapes,
}

impl MissingGradient {
    /// Returns a clause that explains the reason.
    fn clause(self) -> &'static str {
        match self {
            MissingGradient::Constant => "it is a constant",
            MissingGradient::Intermediate => "it is an intermediate result",
            MissingGradient::Frozen => "it is frozen",
            MissingGradient::SeveralTapes => {
                "a sum or mean of gradients of several tapes has gradients of parameters only"
            }
        }
    }

    /// Returns a clause that proposes a remedy.
    fn remedy(self) -> &'static str {
        match self {
            MissingGradient::Constant => {
                "`tape.var` records a variable; a frozen parameter is a constant until `set_frozen(false)`"
            }
            MissingGradient::Intermediate => "`grad` returns gradients of intermediate results; `backward` keeps none",
            MissingGradient::Frozen => "call `set_frozen(false)` before the tape records the parameter",
            MissingGradient::SeveralTapes => "read the gradient of the variable before `+=` or `average`",
        }
    }
}

/// Writes the same text as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Returns the first line of the error's text: PyTorch's error message, if PyTorch has one for this error.
    pub fn sentence(&self) -> String {
        match self {
            Error::Tensor(error) => error.sentence(),
            other => other.to_string().split("\n  ").next().unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the value of `result`, or panics at the line that calls this function. If the calling function has `#[track_caller]`, the panic
/// is at the line that called it. With `unwrap_or_else` and a closure, the panic would be at a line of this crate.
#[track_caller]
pub(crate) fn or_raise<V>(result: Result<V, Error>) -> V {
    match result {
        Ok(value) => value,
        Err(error) => raise(error),
    }
}

/// Panics with the whole text of `error`, at the line that calls this function. If the calling function has `#[track_caller]`, the panic is
/// at the line that called it.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}

#[cfg(test)]
mod tests {
    use crate::Tape;
    use wengert_tensor::prelude::*;

    #[test]
    fn debug_shows_the_diagnostic() {
        let (x, y) = (Tensor::<f32>::ones([3, 4]), Tensor::ones([5]));
        let tape = Tape::new();
        let recorded = tape.constant(&x).try_add(tape.constant(&y)).unwrap_err();
        let eager = x.try_add(&y).unwrap_err();
        assert!(
            format!("{eager:?}").starts_with("The size of tensor a (4) must match the size of tensor b (5)"),
            "{eager:?}"
        );
        assert_eq!((format!("{recorded:?}"), format!("{eager:?}")), (recorded.to_string(), eager.to_string()));
    }
}
