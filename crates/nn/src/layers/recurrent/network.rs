//! Recurrent networks over sequences.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::try_cat;
use wengert_tensor::{Float, Shape};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::layers::recurrent::cell::RecurrentCell;
use crate::layers::recurrent::kind::{Gated, LongShortTerm, RecurrentKind, Simple};
use crate::layers::recurrent::sequence::{Padding, SequenceLayout};
use crate::layers::recurrent::state::{RecurrentState, expect_shapes};
use crate::layers::regularization::dropout;
use crate::module::Module;

/// A plain recurrent network over n sequences of t steps, from `[t, n, in]` to `[t, n, hidden]`. A step uses tanh, or ReLU if
/// [`RecurrentBuilder::relu`](crate::RecurrentBuilder::relu) chose it. PyTorch: `torch.nn.RNN`.
pub type RNN<T = f32> = RecurrentLayer<Simple, T>;

/// A long short-term memory over n sequences of t steps, from `[t, n, in]` to `[t, n, hidden]`. Its state is a pair `(h, c)` of the output h and
/// the cell state c. PyTorch: `torch.nn.LSTM`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, LSTM, Layer, Module};
///
/// let generator = &mut Generator::new(0);
/// let lstm: LSTM = LSTM::builder(3, 8).num_layers(2).bidirectional().batch_first().build(generator);
/// assert_eq!(lstm.named_parameters()[4].0, "weight_ih_l0_reverse");
///
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([5, 7, 3])); // five sequences of seven steps
/// assert_eq!(lstm.forward(x).shape(), [5, 7, 16]);
/// let (y, (h, c)) = lstm.forward_from(x, None);
/// assert_eq!((h.shape(), c.shape()), ([4, 5, 8].into(), [4, 5, 8].into()));
/// ```
pub type LSTM<T = f32> = RecurrentLayer<LongShortTerm, T>;

/// Gated recurrent units over n sequences of t steps, from `[t, n, in]` to `[t, n, hidden]`. PyTorch: `torch.nn.GRU`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{GRU, Generator};
///
/// let gru = GRU::<f32>::new(3, 8, &mut Generator::new(0));
/// let tape = Tape::new();
/// // Two sequences in one batch. The second one ends after two steps.
/// let x = tape.constant(&Tensor::ones([4, 2, 3]));
/// let (y, last) = gru.forward_padded(x, &[4, 2], None);
/// assert_eq!(y.select(0, 3).select(0, 1).value(), Tensor::zeros([8]));
/// assert_eq!(last.select(0, 0).select(0, 1).value(), y.select(0, 1).select(0, 1).value());
/// ```
pub type GRU<T = f32> = RecurrentLayer<Gated, T>;

/// A recurrent network over sequences: [`RNN`], [`LSTM`] or [`GRU`]. PyTorch: `torch.nn.RNNBase`.
///
/// Inputs are `[t, n, in]`, or `[n, t, in]` with [`batch_first`](crate::RecurrentBuilder::batch_first), or `[t, in]` without a batch. Here t is
/// the number of steps, n the number of sequences, and `in` the number of features.
///
/// Outputs have `hidden` features in the last dimension, or `proj` features for an LSTM with a projection. With two directions, the last
/// dimension is twice as long: first the features of the forward direction, then the features of the backward direction.
///
/// The state of n sequences is `[layers · directions, n, hidden]`, also with `batch_first`. Without a batch it is
/// `[layers · directions, hidden]`. The h of an LSTM with a projection has `proj` features.
///
/// Parameters have PyTorch's names (`weight_ih_l0` to `bias_hh_l1_reverse` for two layers in both directions), layouts and distribution of
/// initial values.
#[derive(Clone, Debug)]
pub struct RecurrentLayer<K, T: Float = f32> {
    /// The cells of all layers in order. With two directions, each layer has first the cell of the forward direction, then the cell of the
    /// backward direction.
    pub cells: Vec<RecurrentCell<K, T>>,
    pub(super) bidirectional: bool,
    pub(super) batch_first: bool,
    pub(super) dropout: f64,
}

/// The children are the parameters of all cells. Each name has a suffix: the index of the layer, and `_reverse` for the backward direction.
impl<K: RecurrentKind<T>, T: Float> Module<T> for RecurrentLayer<K, T> {
    fn kind(&self) -> &'static str {
        K::NAME
    }

    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        for (position, cell) in self.cells.iter().enumerate() {
            let suffix = suffix(position, self.bidirectional);
            cell.children(&mut |name, child| each(&format!("{name}{suffix}"), child));
        }
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        for (position, cell) in self.cells.iter_mut().enumerate() {
            let suffix = suffix(position, self.bidirectional);
            cell.children_mut(&mut |name, child| each(&format!("{name}{suffix}"), child));
        }
    }
}

/// Returns the suffix that the names of the parameters of the cell at index `position` get.
fn suffix(position: usize, bidirectional: bool) -> String {
    match (bidirectional, position % 2) {
        (false, _) => format!("_l{position}"),
        (true, 0) => format!("_l{}", position / 2),
        (true, _) => format!("_l{}_reverse", position / 2),
    }
}

/// Returns the outputs of all steps, starting from a state of zeros.
impl<K: RecurrentKind<T>, T: Float> Layer<T> for RecurrentLayer<K, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(self.try_forward_from(x, None)?.0)
    }
}

#[twins]
impl<K: RecurrentKind<T>, T: Float> RecurrentLayer<K, T> {
    /// Returns the outputs of all steps and the state after the last step. If `state` is `None`, the network starts from a state of zeros.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, `x` has no steps, or the variables belong to different tapes.
    pub fn try_forward_from<'t>(
        &self,
        x: Var<'t, T>,
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>)> {
        output_of(self, self.run(x, None, state), self.created_at(), || self.describe(x))
    }

    /// Returns the outputs and the last state for sequences of different lengths in one batch. PyTorch: `pack_padded_sequence`, then the
    /// network, then `pad_packed_sequence`.
    ///
    /// Sequence `i` has `lengths[i]` steps, possibly none. The steps of `x` after them are not read, and their outputs are 0. The last state of
    /// a sequence is its state after its own last step. The backward direction of a sequence begins at its own last step.
    ///
    /// # Errors
    ///
    /// As for [`try_forward_from`](Self::try_forward_from). Also if the number of lengths is not the number of sequences, or a length is
    /// larger than the number of steps.
    pub fn try_forward_padded<'t>(
        &self,
        x: Var<'t, T>,
        lengths: &[usize],
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>)> {
        output_of(self, self.run(x, Some(lengths), state), self.created_at(), || self.describe(x))
    }

    /// Returns the line of code that made the network.
    fn created_at(&self) -> &'static std::panic::Location<'static> {
        self.cells[0].weight_ih.created_at()
    }

    /// Returns the description of the network and its input for an error.
    fn describe(&self, x: Var<'_, T>) -> String {
        let (inputs, hidden) = (self.cells[0].weight_ih.value.shape()[1], self.cells[0].hidden_size());
        let layers = self.cells.len() / self.directions();
        let directions = if self.bidirectional { " in both directions" } else { "" };
        format!("{}({inputs}, {hidden}) of {layers} layers{directions} on an input of shape {}", K::NAME, x.shape())
    }

    /// Returns the number of directions in which the network runs, 1 or 2.
    fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// Runs the network over `x`, whose sequences have these `lengths`, or all steps if `lengths` is `None`. Returns the outputs and the last
    /// state.
    #[track_caller]
    fn run<'t>(
        &self,
        x: Var<'t, T>,
        lengths: Option<&[usize]>,
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>), TapeError> {
        let layout = SequenceLayout::new::<T>(&x.shape(), self.batch_first, K::NAME)?;
        let padding = match lengths {
            Some(lengths) => layout.padding(x, lengths, K::NAME)?,
            None => None,
        };
        let (cells, sizes) = (self.cells.len(), self.cells[0].state_sizes());
        let outer = layout.outer_state_shapes(cells, sizes);
        let state = match state {
            Some(state) => {
                Some(expect_shapes(state, &outer, K::NAME)?.try_reshaped(&layout.batched_state_shapes(cells, sizes))?)
            }
            None => None,
        };
        let mut rows = layout.flatten_rows(x)?;
        if let Some(padding) = &padding {
            rows = padding.zero_padding(rows)?;
        }
        let (mut rows, last_states) = self.run_layers(rows, layout, state, padding.as_ref())?;
        if let Some(padding) = &padding {
            rows = padding.zero_padding(rows)?;
        }
        let state = K::State::try_stack(&last_states)?;
        let state = if x.shape().rank() == 2 { state.try_reshaped(&outer)? } else { state };
        Ok((layout.restore_order(rows, self.directions() * sizes[0])?, state))
    }

    /// Runs all layers over `rows`, the input as rows `[t · n, in]` for t steps of n sequences. Returns the outputs of the last layer and the
    /// last state of each cell.
    #[track_caller]
    fn run_layers<'t>(
        &self,
        mut rows: Var<'t, T>,
        layout: SequenceLayout,
        state: Option<K::State<'t>>,
        padding: Option<&Padding<'t, T>>,
    ) -> Result<(Var<'t, T>, Vec<K::State<'t>>), TapeError> {
        let sizes = self.cells[0].state_sizes();
        let zeros = K::State::try_zeros(rows.tape(), &sizes.map(|size| Shape::from([layout.batch, size])))?;
        let mut last_states = Vec::with_capacity(self.cells.len());
        for (layer, cells) in self.cells.chunks(self.directions()).enumerate() {
            if layer > 0 {
                rows = dropout(rows, self.dropout)?;
            }
            let mut outputs = Vec::with_capacity(2);
            for (direction, cell) in cells.iter().enumerate() {
                let initial_state = match state {
                    Some(state) => RecurrentState::try_select_cell(state, last_states.len())?,
                    None => zeros,
                };
                let (output, state) = cell.run_sequence(rows, layout, initial_state, padding, direction == 1)?;
                outputs.push(output);
                last_states.push(state);
            }
            rows = try_cat(&outputs, 1)?;
        }
        Ok((rows, last_states))
    }
}
