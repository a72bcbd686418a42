//! The state that a recurrent layer passes from step to step.

use wengert_autograd::{Error as TapeError, Tape, Var};
use wengert_tensor::ops::{Views as _, try_stack, try_where_};
use wengert_tensor::{Float, Shape, Tensor};

use crate::layers::forward::layer_error;

/// The state that a recurrent layer passes from step to step. It is one variable, or for an LSTM the pair `(h, c)` of the output h and the
/// cell state c.
pub trait RecurrentState<'t, T: Float>: Copy {
    /// Returns the variable that is the output of a step.
    fn output(self) -> Var<'t, T>;

    /// Returns the shape of each variable of the state.
    fn shapes(self) -> Vec<Shape>;

    /// Returns a state of zeros. `shapes` are the shapes of the output and of an LSTM's cell state.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the zeros.
    #[track_caller]
    fn try_zeros(tape: &'t Tape<T>, shapes: &[Shape; 2]) -> Result<Self, TapeError>;

    /// Returns a state with the elements of `self` where `mask` is 1, and the elements of `other` where `mask` is 0.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast.
    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError>;

    /// Returns the state of one cell: the part of each variable at index `position` of the first dimension.
    ///
    /// # Errors
    ///
    /// If the index is out of range.
    #[track_caller]
    fn try_select_cell(self, position: usize) -> Result<Self, TapeError>;

    /// Returns the same state with its variables reshaped to `shapes`, the shapes of the output and of an LSTM's cell state.
    ///
    /// # Errors
    ///
    /// If the numbers of elements differ.
    #[track_caller]
    fn try_reshaped(self, shapes: &[Shape; 2]) -> Result<Self, TapeError>;

    /// Stacks states of equal shapes along a new first dimension.
    ///
    /// # Errors
    ///
    /// If there are no states, or the shapes differ.
    #[track_caller]
    fn try_stack(states: &[Self]) -> Result<Self, TapeError>;
}

impl<'t, T: Float> RecurrentState<'t, T> for Var<'t, T> {
    fn output(self) -> Var<'t, T> {
        self
    }

    fn shapes(self) -> Vec<Shape> {
        vec![self.shape()]
    }

    #[track_caller]
    fn try_zeros(tape: &'t Tape<T>, [shape, _]: &[Shape; 2]) -> Result<Self, TapeError> {
        tape.try_constant(Tensor::try_zeros(shape)?)
    }

    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError> {
        try_where_(mask, &self, other)
    }

    #[track_caller]
    fn try_select_cell(self, position: usize) -> Result<Self, TapeError> {
        self.try_select(0, position)
    }

    #[track_caller]
    fn try_reshaped(self, [shape, _]: &[Shape; 2]) -> Result<Self, TapeError> {
        self.try_reshape(shape)
    }

    #[track_caller]
    fn try_stack(states: &[Self]) -> Result<Self, TapeError> {
        try_stack(states, 0)
    }
}

impl<'t, T: Float> RecurrentState<'t, T> for (Var<'t, T>, Var<'t, T>) {
    fn output(self) -> Var<'t, T> {
        self.0
    }

    fn shapes(self) -> Vec<Shape> {
        vec![self.0.shape(), self.1.shape()]
    }

    #[track_caller]
    fn try_zeros(tape: &'t Tape<T>, [output, cell]: &[Shape; 2]) -> Result<Self, TapeError> {
        let zeros = tape.try_constant(Tensor::try_zeros(output)?)?;
        Ok((zeros, if cell == output { zeros } else { tape.try_constant(Tensor::try_zeros(cell)?)? }))
    }

    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError> {
        Ok((self.0.try_where(mask, other.0)?, self.1.try_where(mask, other.1)?))
    }

    #[track_caller]
    fn try_select_cell(self, position: usize) -> Result<Self, TapeError> {
        Ok((RecurrentState::try_select_cell(self.0, position)?, RecurrentState::try_select_cell(self.1, position)?))
    }

    #[track_caller]
    fn try_reshaped(self, [output, cell]: &[Shape; 2]) -> Result<Self, TapeError> {
        Ok((self.0.try_reshape(output)?, self.1.try_reshape(cell)?))
    }

    #[track_caller]
    fn try_stack(states: &[Self]) -> Result<Self, TapeError> {
        let (outputs, cells): (Vec<_>, Vec<_>) = states.iter().copied().unzip();
        Ok((try_stack(&outputs, 0)?, try_stack(&cells, 0)?))
    }
}

/// Checks that the variables of `state` have the `expected` shapes of the output and of an LSTM's cell state. Returns `state`.
#[track_caller]
pub(super) fn expect_shapes<'t, S: RecurrentState<'t, T>, T: Float>(
    state: S,
    expected: &[Shape; 2],
    operation: &'static str,
) -> Result<S, TapeError> {
    match state.shapes().into_iter().zip(expected).find(|(found, expected)| found != *expected) {
        None => Ok(state),
        Some((found, expected)) => Err(layer_error(operation, format!("Expected hidden size {expected}, got {found}"))),
    }
}
