//! Recurrent cells: the parameters of one layer in one direction, and the computation of one step.

use wengert_autograd::{Error as TapeError, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, LinearMaps as _, Views as _};
use wengert_tensor::{Float, Generator};

use crate::Result;
use crate::layers::forward::{add_layer_context, optional_parameter};
use crate::layers::linear::initial_parameter;
use crate::layers::recurrent::kind::{CellVariables, Gated, LongShortTerm, RecurrentKind, Simple};
use crate::layers::recurrent::state::{RecurrentState as _, expect_shapes};
use crate::module::Module;

/// A plain recurrent cell, from `[n, in]` to `[n, hidden]`, for n sequences with `in` input and `hidden` output features. PyTorch:
/// `torch.nn.RNNCell`.
pub type RNNCell<T = f32> = RecurrentCell<Simple, T>;

/// A cell of a long short-term memory, from `[n, in]` to `[n, hidden]`, for n sequences with `in` input and `hidden` output features. Its state
/// is a pair `(h, c)` of the output h and the cell state c. PyTorch: `torch.nn.LSTMCell`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, LSTMCell};
///
/// let cell = LSTMCell::<f32>::new(3, 8, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([5, 3]));
/// let state = cell.forward(x, None);
/// let (h, c) = cell.forward(x, Some(state));
/// assert_eq!((h.shape(), c.shape()), ([5, 8].into(), [5, 8].into()));
/// ```
pub type LSTMCell<T = f32> = RecurrentCell<LongShortTerm, T>;

/// A cell of gated recurrent units, from `[n, in]` to `[n, hidden]`, for n sequences with `in` input and `hidden` output features. PyTorch:
/// `torch.nn.GRUCell`.
pub type GRUCell<T = f32> = RecurrentCell<Gated, T>;

/// A recurrent cell: [`RNNCell`], [`LSTMCell`] or [`GRUCell`]. The networks [`RNN`](crate::RNN), [`LSTM`](crate::LSTM) and
/// [`GRU`](crate::GRU) have one cell for each layer and direction.
///
/// The layout of the parameters is PyTorch's. As in PyTorch, all parameters are drawn uniformly from -1/√hidden to 1/√hidden, where hidden is
/// the number of features of the state.
#[derive(Clone, Debug, Module)]
pub struct RecurrentCell<K, T: Float = f32> {
    /// The weight of the input, `[g · hidden, in]`. The number of gates `g` is 1 for plain cells, 4 for an LSTM and 3 for a GRU.
    pub weight_ih: Parameter<T>,
    /// The weight of the state, `[g · hidden, hidden]` with `g` gates. In an LSTM with a projection to `proj` features, `[g · hidden, proj]`.
    pub weight_hh: Parameter<T>,
    /// The bias that is added to the product of the input and its weight, `[g · hidden]` with `g` gates.
    pub bias_ih: Option<Parameter<T>>,
    /// The bias that is added to the product of the state and its weight, `[g · hidden]` with `g` gates.
    pub bias_hh: Option<Parameter<T>>,
    /// The weight of the projection of an LSTM's output, `[proj, hidden]`; see
    /// [`RecurrentBuilder::proj_size`](crate::RecurrentBuilder::proj_size).
    pub weight_hr: Option<Parameter<T>>,
    /// The formula of a step: plain, LSTM or GRU.
    #[module(skip)]
    pub kind: K,
}

#[twins]
impl<K: RecurrentKind<T> + Default, T: Float> RecurrentCell<K, T> {
    /// Returns a cell from `input_size` features of the input to `hidden_size` features of the state.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(input_size: usize, hidden_size: usize, generator: &mut Generator) -> Self {
        RecurrentCell::with_sizes(K::default(), [input_size, hidden_size, 0], true, generator)
    }

    /// Returns the same cell as [`new`](Self::new), but without biases. PyTorch: `bias=False`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn without_bias(input_size: usize, hidden_size: usize, generator: &mut Generator) -> Self {
        RecurrentCell::with_sizes(K::default(), [input_size, hidden_size, 0], false, generator)
    }
}

#[twins]
impl<K: RecurrentKind<T>, T: Float> RecurrentCell<K, T> {
    /// Returns a cell from `inputs` to `hidden` features. If `projected` is not 0, the output of the cell is projected to `projected` features.
    #[track_caller]
    pub(super) fn with_sizes(
        kind: K,
        [inputs, hidden, projected]: [usize; 3],
        bias: bool,
        generator: &mut Generator,
    ) -> Self {
        let (gates, outputs) = (K::GATES * hidden, if projected > 0 { projected } else { hidden });
        let weight_ih = Parameter::new(initial_parameter([gates, inputs], hidden, generator));
        let weight_hh = Parameter::new(initial_parameter([gates, outputs], hidden, generator));
        let [mut bias_ih, mut bias_hh, mut weight_hr] = [None, None, None];
        if bias {
            bias_ih = Some(Parameter::new(initial_parameter([gates], hidden, generator)));
            bias_hh = Some(Parameter::new(initial_parameter([gates], hidden, generator)));
        }
        if projected > 0 {
            weight_hr = Some(Parameter::new(initial_parameter([projected, hidden], hidden, generator)));
        }
        RecurrentCell { weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, kind }
    }

    /// Returns the next state, computed from the input `x`, `[n, in]` or `[in]`, and the current state, `[n, hidden]` or `[hidden]`. If `state`
    /// is `None`, the current state is zeros. The output of the cell is the new state; for an LSTM, it is the first variable of the new state.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or the variables belong to different tapes.
    pub fn try_forward<'t>(&self, x: Var<'t, T>, state: Option<K::State<'t>>) -> Result<K::State<'t>> {
        add_layer_context(self.step(x, state), self.weight_ih.created_at(), || {
            let sizes = self.weight_ih.value.shape();
            format!("{}Cell({}, {}) on an input of shape {}", K::NAME, sizes[1], self.hidden_size(), x.shape())
        })
    }

    /// Returns the number of features of the state. For an LSTM with a projection, this is the number of features of the cell state `c`.
    pub fn hidden_size(&self) -> usize {
        self.weight_hh.value.shape()[0] / K::GATES
    }

    /// Returns the number of features of the output, and the number of features of an LSTM's cell state `c`.
    pub(super) fn state_sizes(&self) -> [usize; 2] {
        [self.weight_hh.value.shape()[1], self.hidden_size()]
    }

    /// Records the operations of one step; see [`try_forward`](Self::try_forward).
    #[track_caller]
    fn step<'t>(&self, x: Var<'t, T>, state: Option<K::State<'t>>) -> Result<K::State<'t>, TapeError> {
        let shapes = self.state_sizes().map(|size| {
            let mut shape = x.shape();
            if let Some(last) = shape.last_mut() {
                *last = size;
            }
            shape
        });
        let state = match state {
            Some(state) => expect_shapes(state, &shapes, "cell")?,
            None => K::State::try_zeros(x.tape(), &shapes)?,
        };
        let variables = self.variables(x.tape())?;
        let gates = x.try_linear(&variables.input_weight, variables.bias.as_ref())?;
        self.kind.try_step(gates, state, &variables)
    }

    /// Returns the parameters as variables of `tape`, prepared for all steps as described at [`CellVariables`].
    #[track_caller]
    pub(super) fn variables<'t>(&self, tape: &'t Tape<T>) -> Result<CellVariables<'t, T>, TapeError> {
        let input_weight = tape.try_parameter(&self.weight_ih)?;
        let hidden_weight = tape.try_parameter(&self.weight_hh)?.try_t()?;
        let biases =
            [optional_parameter(tape, self.bias_ih.as_ref())?, optional_parameter(tape, self.bias_hh.as_ref())?];
        let [bias, hidden_bias] = match biases {
            _ if K::SEPARATE_HIDDEN_BIAS => biases,
            [Some(bias_ih), Some(bias_hh)] => [Some(bias_ih.try_add(bias_hh)?), None],
            [bias_ih, bias_hh] => [bias_ih.or(bias_hh), None],
        };
        let projection = match optional_parameter(tape, self.weight_hr.as_ref())? {
            Some(weight) => Some(weight.try_t()?),
            None => None,
        };
        Ok(CellVariables { input_weight, bias, hidden_weight, hidden_bias, projection })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::gradcheck;
    use wengert_autograd::prelude::*;

    use super::*;

    /// Returns a cell whose parameters are sin(0)/2, sin(1)/2, …, an input for it, and a state.
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
    fn a_cell_without_bias_maps_zeros_to_zeros() {
        let cell = RecurrentCell::<Gated, f64>::without_bias(2, 3, &mut Generator::new(0));
        assert_eq!(cell.parameters().len(), 2);
        let tape = Tape::new();
        let y = cell.forward(tape.constant(Tensor::zeros([1, 2])), None);
        assert_eq!(y.value(), Tensor::zeros([1, 3]));
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
    fn derivatives_pass_the_gradient_check() {
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
    fn without_a_state_a_cell_starts_from_zeros_and_a_wrong_state_is_an_error() {
        let (cell, x, _) = example::<Gated>();
        let tape = Tape::new();
        let (x, zeros) = (tape.constant(&x), tape.constant(Tensor::zeros([2, 2])));
        assert_eq!(cell.forward(x, None).value(), cell.forward(x, Some(zeros)).value());
        assert_eq!(cell.forward(x.select(0, 1), None).shape(), [2]);
        let error = cell.try_forward(x, Some(zeros.narrow(0, 0, 1))).unwrap_err().to_string();
        assert!(error.contains("Expected hidden size [2, 2], got [1, 2]"), "{error}");
        assert!(error.contains("in the layer GRUCell(2, 2)"), "{error}");
        let paths: Vec<String> = cell.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
    }

    #[test]
    fn each_bias_counts_on_its_own() {
        fn check<K: RecurrentKind<f64> + Default>() {
            let (whole, x, h) = example::<K>();
            let zeros = || Some(Parameter::new(Tensor::zeros([2 * K::GATES])));
            let tape = Tape::new();
            let (x, h) = (tape.constant(&x), tape.constant(&h));
            let second_state = |cell: &RecurrentCell<K, f64>| {
                let state = cell.forward(x, None);
                cell.forward(x * 0.5 + h, Some(state)).output().value()
            };
            let [mut without_hh, mut zero_hh, mut without_ih, mut zero_ih] = [(); 4].map(|()| whole.clone());
            (without_hh.bias_hh, zero_hh.bias_hh, without_ih.bias_ih, zero_ih.bias_ih) = (None, zeros(), None, zeros());
            assert_eq!(second_state(&without_hh), second_state(&zero_hh), "{}", K::NAME);
            assert_eq!(second_state(&without_ih), second_state(&zero_ih), "{}", K::NAME);
        }
        check::<LongShortTerm>();
        check::<Gated>();
        check::<Simple>();
    }
}
