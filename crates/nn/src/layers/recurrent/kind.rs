//! The computation of one step: a plain recurrence, an LSTM or a GRU.
//!
//! The formulas are the operations `lstm_gates` and `gru_gates` of the tensor crate.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{Arithmetic as _, Functions as _, Products as _, Recurrent as _};

use crate::layers::recurrent::state::RecurrentState;

/// The variables of a cell's parameters, ready for many steps.
#[derive(Clone, Copy, Debug)]
pub struct CellVariables<'t, T: Float> {
    /// `[g · hidden, in]`.
    pub(super) input: Var<'t, T>,
    /// What is added once to the products of the inputs, `[g · hidden]`.
    pub(super) bias: Option<Var<'t, T>>,
    /// `[hidden, g · hidden]`.
    pub(super) hidden: Var<'t, T>,
    /// What is added at each step to the product of the state, `[g · hidden]`.
    pub(super) hidden_bias: Option<Var<'t, T>>,
    /// What an LSTM's output is multiplied by, `[hidden, proj]`.
    pub(super) projection: Option<Var<'t, T>>,
}

/// How a cell computes: [`Simple`], [`LongShortTerm`] or [`Gated`].
pub trait RecurrentKind<T: Float>: Copy + 'static {
    /// The name of the layer, as PyTorch's.
    const NAME: &'static str;
    /// How many gates there are.
    const GATES: usize;
    /// Whether the bias of the hidden product must stay apart from that of the input.
    const SEPARATE_HIDDEN_BIAS: bool;
    /// What is handed on.
    type State<'t>: RecurrentState<'t, T>;

    /// The next state from what comes of the input, `[n, g · hidden]`.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit.
    #[track_caller]
    fn try_step<'t>(
        self,
        x: Var<'t, T>,
        state: Self::State<'t>,
        variables: &CellVariables<'t, T>,
    ) -> Result<Self::State<'t>, TapeError>;
}

/// One gate with tanh (by default) or ReLU: Elman's network (1990). PyTorch: `nonlinearity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simple {
    /// tanh.
    #[default]
    Tanh,
    /// The larger of x and 0.
    Relu,
}

/// Four gates: input, forget, cell, output (Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongShortTerm;

/// Three gates: reset, update, new (Cho et al. 2014; the reset gate after the product, as in cuDNN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gated;

impl<T: Float> RecurrentKind<T> for Simple {
    const NAME: &'static str = "RNN";
    const GATES: usize = 1;
    const SEPARATE_HIDDEN_BIAS: bool = false;
    type State<'t> = Var<'t, T>;

    #[track_caller]
    fn try_step<'t>(
        self,
        x: Var<'t, T>,
        state: Var<'t, T>,
        variables: &CellVariables<'t, T>,
    ) -> Result<Var<'t, T>, TapeError> {
        let sum = x.try_add(state.try_matmul(&variables.hidden)?)?;
        match self {
            Simple::Tanh => sum.try_tanh(),
            Simple::Relu => sum.try_relu(),
        }
    }
}

impl<T: Float> RecurrentKind<T> for LongShortTerm {
    const NAME: &'static str = "LSTM";
    const GATES: usize = 4;
    const SEPARATE_HIDDEN_BIAS: bool = false;
    type State<'t> = (Var<'t, T>, Var<'t, T>);

    #[track_caller]
    fn try_step<'t>(
        self,
        x: Var<'t, T>,
        (state, cell): (Var<'t, T>, Var<'t, T>),
        variables: &CellVariables<'t, T>,
    ) -> Result<(Var<'t, T>, Var<'t, T>), TapeError> {
        let (output, cell) = x.try_add(state.try_matmul(&variables.hidden)?)?.try_lstm_gates(&cell)?;
        match &variables.projection {
            Some(projection) => Ok((output.try_matmul(projection)?, cell)),
            None => Ok((output, cell)),
        }
    }
}

impl<T: Float> RecurrentKind<T> for Gated {
    const NAME: &'static str = "GRU";
    const GATES: usize = 3;
    // The reset gate multiplies the product with its bias.
    const SEPARATE_HIDDEN_BIAS: bool = true;
    type State<'t> = Var<'t, T>;

    #[track_caller]
    fn try_step<'t>(
        self,
        x: Var<'t, T>,
        state: Var<'t, T>,
        variables: &CellVariables<'t, T>,
    ) -> Result<Var<'t, T>, TapeError> {
        let mut hidden = state.try_matmul(&variables.hidden)?;
        if let Some(bias) = &variables.hidden_bias {
            hidden = hidden.try_add(bias)?;
        }
        x.try_gru_gates(&hidden, &state)
    }
}
