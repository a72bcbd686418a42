//! The settings of a recurrent network.

use wengert_tensor::{Float, Generator};

use crate::layers::recurrent::cell::RecurrentCell;
use crate::layers::recurrent::kind::{LongShortTerm, RecurrentKind, Simple};
use crate::layers::recurrent::network::RecurrentLayer;
use crate::layers::regularization::expect_probability;

/// The settings of a [`RecurrentLayer`] before it is built.
#[derive(Clone, Debug)]
pub struct RecurrentBuilder<K> {
    kind: K,
    input_size: usize,
    hidden_size: usize,
    proj_size: usize,
    num_layers: usize,
    bias: bool,
    bidirectional: bool,
    batch_first: bool,
    dropout: f64,
}

impl<K: RecurrentKind<T> + Default, T: Float> RecurrentLayer<K, T> {
    /// Returns a network of one layer in one direction, from `input_size` to `hidden_size` features, with biases. The input is
    /// `[t, n, in]`, for t steps of n sequences with `in` features, or `[t, in]` for a single sequence.
    /// [`builder`](RecurrentLayer::builder) gives a builder for other settings.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(input_size: usize, hidden_size: usize, generator: &mut Generator) -> Self {
        RecurrentBuilder::new(input_size, hidden_size).build(generator)
    }
}

impl<K: RecurrentKind<f32> + Default> RecurrentLayer<K, f32> {
    /// Returns the settings of a network from `input_size` to `hidden_size` features. [`RecurrentBuilder::build`] chooses the element type.
    pub fn builder(input_size: usize, hidden_size: usize) -> RecurrentBuilder<K> {
        RecurrentBuilder::new(input_size, hidden_size)
    }
}

impl RecurrentBuilder<Simple> {
    /// Uses ReLU instead of tanh as the function of each step. PyTorch: `nonlinearity='relu'`.
    #[must_use]
    pub fn relu(self) -> Self {
        RecurrentBuilder { kind: Simple::Relu, ..self }
    }
}

impl RecurrentBuilder<LongShortTerm> {
    /// Projects the output h of each step to `proj_size` features, fewer than `hidden_size`, by a trained matrix (`weight_hr_l0` in layer 0;
    /// Sak, Senior and Beaufays 2014). The state is then a pair `(h, c)`, where h has `proj_size` and the cell state c has `hidden_size`
    /// features. The default 0 means no projection. PyTorch: `proj_size`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Generator, LSTM};
    ///
    /// let lstm: LSTM = LSTM::builder(3, 8).proj_size(2).build(&mut Generator::new(0));
    /// let tape = Tape::new();
    /// let (y, (h, c)) = lstm.forward_from(tape.constant(&Tensor::ones([7, 5, 3])), None);
    /// assert_eq!((y.shape(), h.shape(), c.shape()), ([7, 5, 2].into(), [1, 5, 2].into(), [1, 5, 8].into()));
    /// ```
    #[must_use]
    pub fn proj_size(self, proj_size: usize) -> Self {
        RecurrentBuilder { proj_size, ..self }
    }
}

impl<K> RecurrentBuilder<K> {
    /// Returns the default settings of a network from `input_size` to `hidden_size` features.
    fn new(input_size: usize, hidden_size: usize) -> Self
    where
        K: Default,
    {
        RecurrentBuilder {
            kind: K::default(),
            input_size,
            hidden_size,
            proj_size: 0,
            num_layers: 1,
            bias: true,
            bidirectional: false,
            batch_first: false,
            dropout: 0.0,
        }
    }

    /// Sets the number of layers; 1 by default. The inputs of a layer are the outputs of the layer before it.
    #[must_use]
    pub fn num_layers(self, num_layers: usize) -> Self {
        RecurrentBuilder { num_layers, ..self }
    }

    /// Runs each layer in both directions over the sequence. The outputs then have twice as many features.
    #[must_use]
    pub fn bidirectional(self) -> Self {
        RecurrentBuilder { bidirectional: true, ..self }
    }

    /// Makes the network take inputs `[n, t, in]` instead of `[t, n, in]`, for n sequences of t steps with `in` features.
    #[must_use]
    pub fn batch_first(self) -> Self {
        RecurrentBuilder { batch_first: true, ..self }
    }

    /// Chooses whether the cells have biases; true by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        RecurrentBuilder { bias, ..self }
    }

    /// Sets the probability, from 0 to 1, of dropout on the outputs of every layer except the last; 0 by default. Dropout happens on training
    /// tapes only. With one layer it has no effect (PyTorch warns). [`build`](Self::build) checks the range.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        RecurrentBuilder { dropout: p, ..self }
    }

    /// Builds the network.
    ///
    /// # Panics
    ///
    /// If the number of layers is 0, or `proj_size` is not less than `hidden_size`. Also if the probability of [`dropout`](Self::dropout) is not
    /// from 0 to 1, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> RecurrentLayer<K, T>
    where
        K: RecurrentKind<T>,
    {
        assert!(self.num_layers > 0, "num_layers must be greater than zero");
        expect_probability(self.dropout);
        let (hidden, projected) = (self.hidden_size, self.proj_size);
        assert!(projected == 0 || projected < hidden, "proj_size has to be smaller than hidden_size");
        let (directions, outputs) =
            (if self.bidirectional { 2 } else { 1 }, if projected > 0 { projected } else { hidden });
        let mut cells = Vec::with_capacity(self.num_layers * directions);
        for layer in 0..self.num_layers {
            let inputs = if layer == 0 { self.input_size } else { directions * outputs };
            for _ in 0..directions {
                cells.push(RecurrentCell::with_sizes(self.kind, [inputs, hidden, projected], self.bias, generator));
            }
        }
        let RecurrentBuilder { bidirectional, batch_first, dropout, .. } = self;
        RecurrentLayer { cells, bidirectional, batch_first, dropout }
    }
}
