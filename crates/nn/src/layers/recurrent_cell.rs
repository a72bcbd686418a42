//! One step of a recurrent network: the cells, and what they hand on from step to step.
//!
//! The formulas are the operations `lstm_gates` and `gru_gates` of the tensor crate. Sequences are in
//! [`recurrent`](super::recurrent).

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, Functions as _, LinearMaps as _, Products as _, Recurrent as _, Views as _, try_stack, try_where_,
};
use wengert_tensor::{Error as TensorError, Float, Shape, Site, Tensor};

use crate::layers::layer::{in_layer, optional};
use crate::layers::linear::initial;
use crate::module::Module;
use crate::{Generator, Result};

/// A cell of tanh or ReLU, `[n, in]` to `[n, hidden]`. PyTorch: `torch.nn.RNNCell`.
pub type RNNCell<T = f32> = RecurrentCell<Simple, T>;

/// A cell of a long short-term memory, `[n, in]` to `[n, hidden]`; its state is a pair `(h, c)`. PyTorch: `torch.nn.LSTMCell`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, LSTMCell};
///
/// let cell = LSTMCell::<f32>::new(3, 8, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([5, 3]));
/// let state = cell.forward(x, None);
/// let (h, c) = cell.forward(x, Some(state));
/// assert_eq!((h.shape(), c.shape()), ([5, 8].into(), [5, 8].into()));
/// ```
pub type LSTMCell<T = f32> = RecurrentCell<LongShortTerm, T>;

/// A cell of gated recurrent units, `[n, in]` to `[n, hidden]`. PyTorch: `torch.nn.GRUCell`.
pub type GRUCell<T = f32> = RecurrentCell<Gated, T>;

/// The variables that a recurrent layer hands on from step to step: one, or in an LSTM the pair `(h, c)` of output and cell.
pub trait RecurrentState<'t, T: Float>: Copy {
    /// What the layer gives out.
    fn output(self) -> Var<'t, T>;

    /// The shape of each variable.
    fn shapes(self) -> Vec<Shape>;

    /// Zeros of the shapes of output and cell.
    #[track_caller]
    fn zeros(tape: &'t Tape<T>, shapes: &[Shape; 2]) -> Self;

    /// These values where `mask` is 1, those of `other` where it is 0.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast.
    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError>;

    /// The state of number `position` along the first dimension.
    ///
    /// # Errors
    ///
    /// If there is none.
    #[track_caller]
    fn try_part(self, position: usize) -> Result<Self, TapeError>;

    /// The same values in other shapes of output and cell.
    ///
    /// # Errors
    ///
    /// If one has not as many elements.
    #[track_caller]
    fn try_reshaped(self, shapes: &[Shape; 2]) -> Result<Self, TapeError>;

    /// States of one shape along a new first dimension.
    ///
    /// # Errors
    ///
    /// If there are none, or the shapes differ.
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
    fn zeros(tape: &'t Tape<T>, [shape, _]: &[Shape; 2]) -> Self {
        tape.constant(&Tensor::zeros(shape))
    }

    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError> {
        try_where_(mask, &self, other)
    }

    #[track_caller]
    fn try_part(self, position: usize) -> Result<Self, TapeError> {
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
    fn zeros(tape: &'t Tape<T>, [output, cell]: &[Shape; 2]) -> Self {
        let zeros = tape.constant(&Tensor::zeros(output));
        (zeros, if cell == output { zeros } else { tape.constant(&Tensor::zeros(cell)) })
    }

    #[track_caller]
    fn try_where(self, mask: &Var<'t, T>, other: Self) -> Result<Self, TapeError> {
        Ok((self.0.try_where(mask, other.0)?, self.1.try_where(mask, other.1)?))
    }

    #[track_caller]
    fn try_part(self, position: usize) -> Result<Self, TapeError> {
        Ok((RecurrentState::try_part(self.0, position)?, RecurrentState::try_part(self.1, position)?))
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

/// The variables of a cell's parameters, ready for many steps.
#[derive(Clone, Copy, Debug)]
pub struct CellVariables<'t, T: Float> {
    /// `[g · hidden, in]`.
    pub(crate) input: Var<'t, T>,
    /// What is added once to the products of the inputs, `[g · hidden]`.
    pub(crate) bias: Option<Var<'t, T>>,
    /// `[hidden, g · hidden]`.
    pub(crate) hidden: Var<'t, T>,
    /// What is added at each step to the product of the state, `[g · hidden]`.
    pub(crate) hidden_bias: Option<Var<'t, T>>,
    /// What an LSTM's output is multiplied by, `[hidden, proj]`.
    pub(crate) projection: Option<Var<'t, T>>,
}

/// How a cell computes: [`Simple`], [`LongShortTerm`] or [`Gated`].
pub trait RecurrentKind<T: Float>: Copy + 'static {
    /// The name of the layer, as PyTorch's.
    const NAME: &'static str;
    /// How many gates there are.
    const GATES: usize;
    /// Whether the bias of the hidden product must stay apart from that of the input.
    const APART: bool;
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
    const APART: bool = false;
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
    const APART: bool = false;
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
    const APART: bool = true;
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

/// A cell: [`RNNCell`], [`LSTMCell`] or [`GRUCell`]; the parameters of one direction of one layer in [`RNN`](crate::RNN),
/// [`LSTM`](crate::LSTM) and [`GRU`](crate::GRU). Layout and initial distribution are PyTorch's: everything is drawn from
/// U(-1/√hidden, 1/√hidden).
#[derive(Clone, Debug, Module)]
pub struct RecurrentCell<K, T: Float = f32> {
    /// From the input, `[g · hidden, in]` with `g` gates.
    pub weight_ih: Parameter<T>,
    /// From the state, `[g · hidden, hidden]`; `[g · hidden, proj]` in an LSTM with a projection.
    pub weight_hh: Parameter<T>,
    /// `[g · hidden]`.
    pub bias_ih: Option<Parameter<T>>,
    /// `[g · hidden]`.
    pub bias_hh: Option<Parameter<T>>,
    /// The projection of an LSTM's output, `[proj, hidden]`; see [`RecurrentBuilder::proj_size`](crate::RecurrentBuilder::proj_size).
    pub weight_hr: Option<Parameter<T>>,
    /// How it computes.
    #[module(skip)]
    pub kind: K,
}

#[twins]
impl<K: RecurrentKind<T> + Default, T: Float> RecurrentCell<K, T> {
    /// A cell from `input_size` to `hidden_size` numbers.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(input_size: usize, hidden_size: usize, generator: &mut Generator) -> Self {
        RecurrentCell::of(K::default(), [input_size, hidden_size, 0], true, generator)
    }

    /// [`new`](Self::new) without biases. PyTorch: `bias=False`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn without_bias(input_size: usize, hidden_size: usize, generator: &mut Generator) -> Self {
        RecurrentCell::of(K::default(), [input_size, hidden_size, 0], false, generator)
    }
}

#[twins]
impl<K: RecurrentKind<T>, T: Float> RecurrentCell<K, T> {
    /// A cell from `inputs` to `hidden` numbers, of which it gives out `projected`; all where that is 0.
    #[track_caller]
    pub(crate) fn of(kind: K, [inputs, hidden, projected]: [usize; 3], bias: bool, generator: &mut Generator) -> Self {
        let (gates, outputs) = (K::GATES * hidden, if projected > 0 { projected } else { hidden });
        let weight_ih = Parameter::new(initial([gates, inputs], hidden, generator));
        let weight_hh = Parameter::new(initial([gates, outputs], hidden, generator));
        let [mut bias_ih, mut bias_hh, mut weight_hr] = [None, None, None];
        if bias {
            bias_ih = Some(Parameter::new(initial([gates], hidden, generator)));
            bias_hh = Some(Parameter::new(initial([gates], hidden, generator)));
        }
        if projected > 0 {
            weight_hr = Some(Parameter::new(initial([projected, hidden], hidden, generator)));
        }
        RecurrentCell { weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, kind }
    }

    /// The next state from the input `[n, in]` (or `[in]`) and the state `[n, hidden]` (or `[hidden]`); zeros where there is none.
    /// What the cell gives out is the state, of an LSTM its first variable.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or the variables belong to two tapes.
    pub fn try_forward<'t>(&self, x: Var<'t, T>, state: Option<K::State<'t>>) -> Result<K::State<'t>> {
        in_layer(self.step(x, state), self.weight_ih.made(), || {
            let sizes = self.weight_ih.value.shape();
            format!("{}Cell({}, {}) on an input of shape {}", K::NAME, sizes[1], self.hidden_size(), x.shape())
        })
    }

    /// How many numbers the state has; in an LSTM with a projection, the cell.
    pub fn hidden_size(&self) -> usize {
        self.weight_hh.value.shape()[0] / K::GATES
    }

    /// How many numbers the output and the cell have.
    pub(crate) fn state_sizes(&self) -> [usize; 2] {
        [self.weight_hh.value.shape()[1], self.hidden_size()]
    }

    #[track_caller]
    fn step<'t>(&self, x: Var<'t, T>, state: Option<K::State<'t>>) -> Result<K::State<'t>, TapeError> {
        let shapes = self.state_sizes().map(|size| {
            let mut shape = x.shape();
            if let Some(last) = shape.last_mut() {
                *last = size;
            }
            shape
        });
        let state = checked_or_zeros::<K, T>(x, state, &shapes, "cell")?;
        let variables = self.variables(x.tape())?;
        let gates = x.try_linear(&variables.input, variables.bias.as_ref())?;
        self.kind.try_step(gates, state, &variables)
    }

    #[track_caller]
    pub(crate) fn variables<'t>(&self, tape: &'t Tape<T>) -> Result<CellVariables<'t, T>, TapeError> {
        let input = tape.try_parameter(&self.weight_ih)?;
        let hidden = tape.try_parameter(&self.weight_hh)?.try_t()?;
        let [mut bias, mut hidden_bias] = [None, None];
        if let (Some(bias_ih), Some(bias_hh)) = (&self.bias_ih, &self.bias_hh) {
            let [bias_ih, bias_hh] = [tape.try_parameter(bias_ih)?, tape.try_parameter(bias_hh)?];
            (bias, hidden_bias) =
                if K::APART { (Some(bias_ih), Some(bias_hh)) } else { (Some(bias_ih.try_add(bias_hh)?), None) };
        }
        let projection = match optional(tape, self.weight_hr.as_ref())? {
            Some(weight) => Some(weight.try_t()?),
            None => None,
        };
        Ok(CellVariables { input, bias, hidden, hidden_bias, projection })
    }
}

/// The state, if its variables have these shapes of output and cell; zeros where there is none.
#[track_caller]
pub(crate) fn checked_or_zeros<'t, K: RecurrentKind<T>, T: Float>(
    x: Var<'t, T>,
    state: Option<K::State<'t>>,
    shapes: &[Shape; 2],
    operation: &'static str,
) -> Result<K::State<'t>, TapeError> {
    let Some(state) = state else { return Ok(K::State::zeros(x.tape(), shapes)) };
    match state.shapes().into_iter().zip(shapes).find(|(found, shape)| found != *shape) {
        None => Ok(state),
        Some((found, shape)) => {
            let message = format!("Expected hidden size {shape}, got {found}");
            Err(TensorError::Argument { message, at: Site::here(operation) }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::gradcheck;
    use wengert_autograd::prelude::*;

    use super::*;

    /// A cell with the sines of 0, 1, 2, … in its parameters, halved; an input, and a state.
    fn example<K: RecurrentKind<f64> + Default>() -> (RecurrentCell<K, f64>, Tensor<f64>, Tensor<f64>) {
        let mut cell = RecurrentCell::<K, f64>::new(2, 2, &mut Generator::new(0));
        let sines = (0..cell.num_parameters()).map(|n| (n as f64).sin() * 0.5).collect();
        cell.set_from_vector(&Tensor::from_vec(sines, [cell.num_parameters()]));
        let x = Tensor::from([[1.0, 1f64.cos()], [2f64.cos(), 3f64.cos()]]);
        (cell, x.clone(), x * 0.5)
    }

    fn assert_close(got: Var<'_, f64>, want: [f64; 4]) {
        let got = got.value().to_vec();
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-15), "{got:?} is not {want:?}");
    }

    #[test]
    fn one_step_is_pytorchs() {
        let tape = Tape::new();
        let (cell, x, h) = example::<LongShortTerm>();
        let (x, h) = (tape.constant(&x), tape.constant(&h));
        let (y, c) = cell.forward(x, Some((h, h * 2.0)));
        assert_close(y, [0.17450395821352496, 0.06980486540394125, -0.3629058347259148, -0.06852062751725344]);
        assert_close(c, [0.2973525240186983, 0.09813036965552137, -0.6248438373360341, -0.124229330628298]);
        let y = example::<Gated>().0.forward(x, Some(h));
        assert_close(y, [0.6256964812909703, -0.04909057791076288, -0.21964156118369585, -0.25041363057290966]);
        let y = example::<Simple>().0.forward(x, Some(h));
        assert_close(y, [0.1305162903255541, 0.2143491779487753, 0.12160597514816375, -0.5957442123274287]);
    }

    #[test]
    fn derivatives_are_those_of_the_values() {
        let (cell, x, h) = example::<LongShortTerm>();
        let (gru, ..) = example::<Gated>();
        gradcheck(
            |[x, h]| {
                let (y, c) = cell.forward(x, Some((h, h)));
                y * c + gru.forward(x, Some(h))
            },
            [&x, &h],
        )
        .unwrap();
    }

    #[test]
    fn a_state_is_zeros_where_there_is_none_and_fits_where_there_is() {
        let (cell, x, _) = example::<Gated>();
        let tape = Tape::new();
        let (x, zeros) = (tape.constant(&x), tape.constant(&Tensor::zeros([2, 2])));
        assert_eq!(cell.forward(x, None).value(), cell.forward(x, Some(zeros)).value());
        assert_eq!(cell.forward(x.select(0, 1), None).shape(), [2]);
        let error = cell.try_forward(x, Some(zeros.narrow(0, 0, 1))).unwrap_err().to_string();
        assert!(error.contains("Expected hidden size [2, 2], got [1, 2]"), "{error}");
        assert!(error.contains("in the layer GRUCell(2, 2)"), "{error}");
        let paths: Vec<String> = cell.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
    }
}
