//! The computation of one step of a recurrent cell: a plain recurrence, an LSTM or a GRU.
//!
//! The operations `lstm_gates` and `gru_gates` of the tensor crate compute the formulas of LSTM and GRU.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{Arithmetic as _, Functions as _, Products as _, Recurrent as _};

use crate::layers::recurrent::state::RecurrentState;

/// The parameters of a cell as variables of one tape, prepared once for all steps: the weights of the state and of the projection are transposed.
///
/// In the shapes, `g` is the number of gates. `in`, `hidden` and `proj` are the numbers of features of the input, the state and the projected
/// output.
#[derive(Clone, Copy, Debug)]
pub struct CellVariables<'t, T: Float> {
    /// The weight of the input, `[g · hidden, in]` for `g` gates, `in` input features and `hidden` features of the state. It is not
    /// transposed.
    pub(super) input_weight: Var<'t, T>,
    /// The bias that is added to the product of the input and its weight, `[g · hidden]` for `g` gates. Except for a GRU, it includes the
    /// bias of the state. `None` for a cell without biases.
    pub(super) bias: Option<Var<'t, T>>,
    /// The transposed weight of the state, `[hidden, g · hidden]` for `g` gates and `hidden` features of the state. With a projection,
    /// `[proj, g · hidden]`.
    pub(super) hidden_weight: Var<'t, T>,
    /// The bias that is added to the product of the state and its weight, `[g · hidden]` for `g` gates; see
    /// [`RecurrentKind::SEPARATE_HIDDEN_BIAS`].
    pub(super) hidden_bias: Option<Var<'t, T>>,
    /// The transposed weight of the projection of an LSTM's output to `proj` features, `[hidden, proj]`, if there is a projection.
    pub(super) projection: Option<Var<'t, T>>,
}

/// The computation of one step of a cell: [`Simple`], [`LongShortTerm`] or [`Gated`].
pub trait RecurrentKind<T: Float>: Copy + 'static {
    /// PyTorch's name of the layer, for errors and tables.
    const NAME: &'static str;
    /// The number of gates of the cell.
    const GATES: usize;
    /// True if a step needs the bias of the state alone. If false, this bias is added to the bias of the input once for all steps.
    const SEPARATE_HIDDEN_BIAS: bool;
    /// The state that is passed from step to step.
    type State<'t>: RecurrentState<'t, T>;

    /// Returns the next state. `x` is the product of the input and its weight, plus the bias. It has the shape `[n, g · hidden]`, for n
    /// sequences, `g` gates and `hidden` features of the state, or `[g · hidden]` for a cell with an input without a batch.
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

/// A plain recurrence with tanh (by default) or ReLU (Elman 1990). PyTorch: `nonlinearity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simple {
    /// The step uses tanh.
    #[default]
    Tanh,
    /// The step uses ReLU, max(x, 0).
    Relu,
}

/// A long short-term memory with four gates: input, forget, cell, output (Hochreiter and Schmidhuber 1997; Gers,
/// Schmidhuber and Cummins 2000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongShortTerm;

/// A gated recurrent unit with three gates: reset, update, new (Cho et al. 2014). As in cuDNN, the reset gate multiplies the product of the
/// state and its weight, plus the bias, and not the state itself.
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
        let sum = x.try_add(state.try_matmul(&variables.hidden_weight)?)?;
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
        let (output, cell) = x.try_add(state.try_matmul(&variables.hidden_weight)?)?.try_lstm_gates(&cell)?;
        match &variables.projection {
            Some(projection) => Ok((output.try_matmul(projection)?, cell)),
            None => Ok((output, cell)),
        }
    }
}

impl<T: Float> RecurrentKind<T> for Gated {
    const NAME: &'static str = "GRU";
    const GATES: usize = 3;
    // The reset gate multiplies U h + c, where h is the state, U its weight and c its bias. So c cannot be added to the bias of the input.
    const SEPARATE_HIDDEN_BIAS: bool = true;
    type State<'t> = Var<'t, T>;

    #[track_caller]
    fn try_step<'t>(
        self,
        x: Var<'t, T>,
        state: Var<'t, T>,
        variables: &CellVariables<'t, T>,
    ) -> Result<Var<'t, T>, TapeError> {
        let mut hidden = state.try_matmul(&variables.hidden_weight)?;
        if let Some(bias) = &variables.hidden_bias {
            hidden = hidden.try_add(bias)?;
        }
        x.try_gru_gates(&hidden, &state)
    }
}
