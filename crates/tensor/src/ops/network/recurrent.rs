//! One step of a recurrent network. In methods of whole cells, `self` is the input, `[n, i]` or `[i]`, and the state is `[n, h]` or `[h]`.
//! Here n is the batch size, i the width of the input, and h the width of the state. The layout of weights and the order of gates are
//! PyTorch's, so that its checkpoints fit.

use wengert_macros::twins;

use crate::ops::{ArrayOperand, Compose, Result, TensorLike, product};
use crate::{Float, Site, Unary, ensure};

/// The weights of a cell with `g` gates, for an input of width i and a state of width h. A plain cell has 1 gate, an LSTM has 4 (input,
/// forget, cell, output), and a GRU has 3 (reset, update, new).
#[derive(Debug)]
pub struct CellWeights<'w, A> {
    /// The weights W of the input, `[g · h, i]`.
    pub input: &'w A,
    /// The weights U of the state, `[g · h, h]`.
    pub hidden: &'w A,
    /// The bias b of the input, `[g · h]`.
    pub input_bias: Option<&'w A>,
    /// The bias c of the state, `[g · h]`.
    pub hidden_bias: Option<&'w A>,
}

impl<A> Clone for CellWeights<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for CellWeights<'_, A> {}

/// Recurrent cells.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::prelude::*;
/// use wengert::tensor::ops::CellWeights;
///
/// let (x, state) = (Tensor::<f64>::zeros([1, 2]), Tensor::from([[0.5, -0.5, 1.0]]));
/// let (input, hidden) = (Tensor::zeros([9, 2]), Tensor::zeros([9, 3]));
/// let weights = CellWeights { input: &input, hidden: &hidden, input_bias: None, hidden_bias: None };
/// // If all weights are 0, the update gate is a half and the new value is 0.
/// assert_eq!(x.gru_cell(&state, weights), &state * 0.5);
/// ```
#[twins(blanket)]
pub trait Recurrent: TensorLike<Elem: Float> {
    /// Returns tanh(W x + b + U s + c) for the input x (`self`), the state s, and the [`CellWeights`] W, b, U, c. PyTorch: `rnn_tanh_cell`.
    fn try_rnn_tanh_cell(&self, state: &Self, weights: CellWeights<'_, Self>) -> Result<Self> {
        let at = Site::here("rnn_tanh_cell");
        let (x, h) = linear_parts(self, state, &weights, 1, at)?;
        x.plus(&h, at)?.apply_unary(Unary::Tanh, at)
    }

    /// Returns relu(W x + b + U s + c) for the input x (`self`), the state s, and the [`CellWeights`] W, b, U, c. PyTorch: `rnn_relu_cell`.
    fn try_rnn_relu_cell(&self, state: &Self, weights: CellWeights<'_, Self>) -> Result<Self> {
        let at = Site::here("rnn_relu_cell");
        let (x, h) = linear_parts(self, state, &weights, 1, at)?;
        x.plus(&h, at)?.apply_unary(Unary::Relu, at)
    }

    /// Returns the next state and the next cell state of a long short-term memory (Hochreiter and Schmidhuber 1997) with the forget gate of
    /// Gers, Schmidhuber and Cummins (2000). PyTorch: `lstm_cell`.
    fn try_lstm_cell(
        &self,
        state: &Self,
        cell: &Self,
        weights: CellWeights<'_, Self>,
    ) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("lstm_cell");
        let (x, h) = linear_parts(self, state, &weights, 4, at)?;
        let (got, expected) = (cell.shape(), state.shape());
        ensure!(
            got == expected,
            at,
            "cell of shape {got} does not fit a state of shape {expected}: expected {expected}"
        );
        update_lstm(&x.plus(&h, at)?, cell, at)
    }

    /// Returns the next state and the next cell state like [`lstm_cell`](Self::lstm_cell), from the sum of its matrix products. `self` is
    /// W x + b + U s + c for the four gates. W, b, U, c are the [`CellWeights`], and s is the state. `self` has the shape of `cell`, with 4
    /// times the last size. For a sequence, the caller computes W x + b of all steps as one product. PyTorch: `_thnn_fused_lstm_cell`.
    fn try_lstm_gates(&self, cell: impl ArrayOperand<Self>) -> Result<(Self, Self), Self::Error> {
        let (at, cell) = (Site::here("lstm_gates"), &cell.into_array(self)?);
        check_width(self, cell, 4, at)?;
        update_lstm(self, cell, at)
    }

    /// Returns the next state of a gated recurrent unit (Cho et al. 2014; the reset gate multiplies the product of weights and state
    /// instead of the state, as in cuDNN). PyTorch: `gru_cell`.
    fn try_gru_cell(&self, state: &Self, weights: CellWeights<'_, Self>) -> Result<Self> {
        let at = Site::here("gru_cell");
        let (x, h) = linear_parts(self, state, &weights, 3, at)?;
        update_gru(&x, &h, state, at)
    }

    /// Returns the next state like [`gru_cell`](Self::gru_cell), from the results of its matrix products. `self` is W x + b for the three
    /// gates, and `hidden` is U s + c. W, b, U, c are the [`CellWeights`], and s is `state`. `self` and `hidden` have the shape of `state`,
    /// with 3 times the last size. For a sequence, the caller computes W x + b of all steps as one product. PyTorch:
    /// `_thnn_fused_gru_cell`.
    fn try_gru_gates(&self, hidden: impl ArrayOperand<Self>, state: impl ArrayOperand<Self>) -> Result<Self> {
        let (at, hidden, state) = (Site::here("gru_gates"), &hidden.into_array(self)?, &state.into_array(self)?);
        check_width(self, state, 3, at)?;
        check_width(hidden, state, 3, at)?;
        update_gru(self, hidden, state, at)
    }
}

/// Returns the next state and the next cell state of an LSTM. `gates` is the sum W x + b + U s + c. W, b, U, c are the [`CellWeights`], x is
/// the input, and s is the state. The last dimension of `gates` has the values of the four gates, one gate after the other.
fn update_lstm<A: TensorLike<Elem: Float>>(gates: &A, cell: &A, at: Site) -> Result<(A, A), A::Error> {
    let sigmoid = |number: usize| gate(gates, number, 4, at)?.apply_unary(Unary::Sigmoid, at);
    let (input_gate, forget_gate, output_gate) = (sigmoid(0)?, sigmoid(1)?, sigmoid(3)?);
    let candidate = gate(gates, 2, 4, at)?.apply_unary(Unary::Tanh, at)?;
    let cell = forget_gate.times(cell, at)?.plus(&input_gate.times(&candidate, at)?, at)?;
    Ok((output_gate.times(&cell.apply_unary(Unary::Tanh, at)?, at)?, cell))
}

/// Returns the next state of a GRU. `x` is W times the input plus b, and `h` is U times the state plus c. W, b, U and c are the
/// [`CellWeights`]. The last dimension of `x` and of `h` has the values of the three gates, one gate after the other.
fn update_gru<A: TensorLike<Elem: Float>>(x: &A, h: &A, state: &A, at: Site) -> Result<A> {
    let gate_sum = |number: usize| gate(x, number, 3, at)?.plus(&gate(h, number, 3, at)?, at);
    let (reset, update) =
        (gate_sum(0)?.apply_unary(Unary::Sigmoid, at)?, gate_sum(1)?.apply_unary(Unary::Sigmoid, at)?);
    let candidate =
        gate(x, 2, 3, at)?.plus(&reset.times(&gate(h, 2, 3, at)?, at)?, at)?.apply_unary(Unary::Tanh, at)?;
    state.minus(&candidate, at)?.times(&update, at)?.plus(&candidate, at)
}

/// Returns an error unless the shape of `gates` is the shape of `state` with the last size multiplied by `count`. Refuses rank 0.
fn check_width<A: TensorLike>(gates: &A, state: &A, count: usize, at: Site) -> Result<(), A::Error> {
    let (wide, mut expected) = (gates.shape(), state.shape());
    if let Some(width) = expected.last_mut() {
        *width = width.saturating_mul(count);
    }
    ensure!(
        wide.rank() > 0 && wide == expected,
        at,
        "gates of shape {wide} do not fit a state of shape {}: expected {expected}",
        state.shape()
    );
    Ok(())
}

/// Returns W x + b and U s + c for the input x, the state s, and the [`CellWeights`] W, b, U, c. For g gates and a state of width h, both
/// results are `[n, g · h]`, or `[g · h]` if the inputs have rank 1.
fn linear_parts<A: TensorLike<Elem: Float>>(
    x: &A,
    state: &A,
    weights: &CellWeights<'_, A>,
    gates: usize,
    at: Site,
) -> Result<(A, A), A::Error> {
    let (own, hidden) = (x.shape(), state.shape());
    ensure!(
        (1..=2).contains(&own.rank()) && own.rank() == hidden.rank() && (own.rank() == 1 || own[0] == hidden[0]),
        at,
        "Input batch size of {own} doesn't match hidden batch size of {hidden}"
    );
    let width = hidden[hidden.rank() - 1];
    let rows = width.saturating_mul(gates);
    ensure!(
        weights.input.shape() == [rows, own[own.rank() - 1]],
        at,
        "input of shape {own} and state of shape {hidden} do not fit input weights of shape {}",
        weights.input.shape()
    );
    ensure!(
        weights.hidden.shape() == [rows, width],
        at,
        "state of shape {hidden} does not fit hidden weights of shape {}",
        weights.hidden.shape()
    );
    for (name, bias) in [("input_bias", weights.input_bias), ("hidden_bias", weights.hidden_bias)] {
        let Some(got) = bias.map(A::shape) else { continue };
        ensure!(got == [rows], at, "{name} of shape {got} does not fit a state of shape {hidden}: expected [{rows}]");
    }
    let linear = |x: &A, weight: &A, bias: Option<&A>| {
        let z = product(x, &weight.permute_to(&[1, 0], at)?, at)?;
        bias.map_or(Ok(z.clone()), |bias| z.plus(bias, at))
    };
    Ok((linear(x, weights.input, weights.input_bias)?, linear(state, weights.hidden, weights.hidden_bias)?))
}

/// Returns the values of gate `number` of `count` gates, which are stored one after the other along the last dimension.
fn gate<A: TensorLike>(gates: &A, number: usize, count: usize, at: Site) -> Result<A> {
    let shape = gates.shape();
    let axis = shape.rank() - 1;
    let width = shape[axis] / count;
    gates.slice_axis(axis, number * width, width, at)
}

#[cfg(test)]
mod tests {
    use crate::ops::network::recurrent::{CellWeights, Recurrent};
    use crate::prelude::*;

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() < 1e-15
    }

    #[test]
    fn one_unit_equals_its_formula() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (x, h, c) = (Tensor::from([[0.5]]), Tensor::from([[0.25]]), Tensor::from([[2.0]]));
        let (input, hidden) = (Tensor::from([[1.0], [2.0], [3.0], [4.0]]), Tensor::<f64>::zeros([4, 1]));
        let bias = Tensor::from([0.1, 0.2, 0.3, 0.4]);
        let weights = CellWeights { input: &input, hidden: &hidden, input_bias: Some(&bias), hidden_bias: None };
        let (next, cell) = x.lstm_cell(&h, &c, weights);
        let want = sigmoid(1.2) * 2.0 + sigmoid(0.6) * 1.8f64.tanh();
        assert!(close(cell.item(), want));
        assert!(close(next.item(), sigmoid(2.4) * want.tanh()));

        let (input, hidden) = (input.narrow(0, 0, 3), Tensor::ones([3, 1]));
        let weights = CellWeights { input: &input, hidden: &hidden, input_bias: None, hidden_bias: None };
        let (r, z) = (sigmoid(0.75), sigmoid(1.25));
        let n = (1.5 + r * 0.25).tanh();
        assert!(close(x.gru_cell(&h, weights).item(), (0.25 - n) * z + n));

        let (input, hidden) = (Tensor::from([[-2.0]]), Tensor::ones([1, 1]));
        let weights = CellWeights { input: &input, hidden: &hidden, input_bias: None, hidden_bias: None };
        assert!(close(x.rnn_tanh_cell(&h, weights).item(), (-0.75f64).tanh()));
        assert_eq!(x.rnn_relu_cell(&h, weights).item(), 0.0);
        assert!(x.try_lstm_cell(&h, &c, weights).is_err());
    }

    #[test]
    fn gates_of_another_width_are_refused() {
        let (state, gates) = (Tensor::<f64>::zeros([2, 3]), |width: usize| Tensor::<f64>::zeros([2, width]));
        assert!(gates(12).try_lstm_gates(&state).is_ok() && gates(9).try_gru_gates(gates(9), &state).is_ok());
        let error = gates(13).try_lstm_gates(&state).unwrap_err();
        assert!(error.sentence().contains("expected [2, 12]"), "{error}");
        assert!(gates(9).try_gru_gates(gates(8), &state).is_err());
        assert!(Tensor::scalar(0.0).try_lstm_gates(Tensor::scalar(0.0)).is_err());
        // Four times this width overflows.
        let (x, huge) = (Tensor::<f64>::zeros([0, 3]), Tensor::<f64>::zeros([0, 1usize << 62]));
        assert!(x.try_lstm_gates(&huge).is_err());
        let weights = CellWeights { input: &x, hidden: &x, input_bias: None, hidden_bias: None };
        assert!(x.try_gru_cell(&huge, weights).is_err());
    }

    #[test]
    fn cells_and_biases_of_other_shapes_are_refused() {
        let (x, h) = (Tensor::<f64>::ones([2, 2]), Tensor::ones([2, 3]));
        let (input, hidden) = (Tensor::ones([12, 2]), Tensor::ones([12, 3]));
        let plain = CellWeights { input: &input, hidden: &hidden, input_bias: None, hidden_bias: None };
        assert!(x.try_lstm_cell(&h, &h, plain).is_ok());
        for shape in [&[3usize][..], &[1, 3], &[2, 1], &[1, 2, 3], &[]] {
            let error = x.try_lstm_cell(&h, &Tensor::ones(shape), plain).unwrap_err().sentence();
            assert!(error.starts_with("cell of shape"), "{error}");
        }
        for shape in [&[1usize][..], &[2, 12], &[1, 12], &[3], &[]] {
            let bias = Tensor::ones(shape);
            let weights =
                [CellWeights { input_bias: Some(&bias), ..plain }, CellWeights { hidden_bias: Some(&bias), ..plain }];
            for (weights, name) in weights.into_iter().zip(["input_bias", "hidden_bias"]) {
                let error = x.try_lstm_cell(&h, &h, weights).unwrap_err().sentence();
                assert!(error.starts_with(name) && error.ends_with("expected [12]"), "{error}");
            }
        }
    }
}
