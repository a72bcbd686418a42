//! The settings of a recurrent network.

use wengert_tensor::{Float, Generator};

use crate::layers::recurrent::cell::RecurrentCell;
use crate::layers::recurrent::kind::{LongShortTerm, RecurrentKind, Simple};
use crate::layers::recurrent::network::RecurrentLayer;

/// The settings of a recurrent network before it is built.
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
    /// One layer in one direction from `input_size` to `hidden_size` numbers, with biases, over `[t, n, in]`;
    /// [`builder`](RecurrentLayer::builder) has the rest.
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
    /// The settings of a network from `input_size` to `hidden_size` numbers, of any element type:
    /// [`RecurrentBuilder::build`] decides.
    pub fn builder(input_size: usize, hidden_size: usize) -> RecurrentBuilder<K> {
        RecurrentBuilder::new(input_size, hidden_size)
    }
}

impl RecurrentBuilder<Simple> {
    /// With ReLU instead of tanh. PyTorch: `nonlinearity='relu'`.
    #[must_use]
    pub fn relu(self) -> Self {
        RecurrentBuilder { kind: Simple::Relu, ..self }
    }
}

impl RecurrentBuilder<LongShortTerm> {
    /// With outputs of `proj_size` numbers, fewer than the cell has: at each step the output is multiplied by a trained matrix,
    /// `weight_hr_l0`, before it goes on (Sak, Senior and Beaufays 2014). The state is a pair `(h, c)` of `proj_size` and
    /// `hidden_size` numbers. PyTorch: `proj_size`, where 0, as here, is no projection.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Generator, LSTM};
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

    /// With this many layers, each over the outputs of the one before; 1 by default.
    #[must_use]
    pub fn num_layers(self, num_layers: usize) -> Self {
        RecurrentBuilder { num_layers, ..self }
    }

    /// In both directions.
    #[must_use]
    pub fn bidirectional(self) -> Self {
        RecurrentBuilder { bidirectional: true, ..self }
    }

    /// Over `[n, t, in]` instead of `[t, n, in]`.
    #[must_use]
    pub fn batch_first(self) -> Self {
        RecurrentBuilder { batch_first: true, ..self }
    }

    /// With or without biases; with by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        RecurrentBuilder { bias, ..self }
    }

    /// With dropout of this probability, 0 to 1, on the outputs of each layer but the last; 0 by default. Only on tapes that
    /// train.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        RecurrentBuilder { dropout: p, ..self }
    }

    /// The network.
    ///
    /// # Panics
    ///
    /// If there are no layers, a projection is not smaller than the cell, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> RecurrentLayer<K, T>
    where
        K: RecurrentKind<T>,
    {
        assert!(self.num_layers > 0, "num_layers must be greater than zero");
        let (hidden, projected) = (self.hidden_size, self.proj_size);
        assert!(projected == 0 || projected < hidden, "proj_size has to be smaller than hidden_size");
        let (directions, outputs) =
            (if self.bidirectional { 2 } else { 1 }, if projected > 0 { projected } else { hidden });
        let mut cells = Vec::with_capacity(self.num_layers * directions);
        for layer in 0..self.num_layers {
            let inputs = if layer == 0 { self.input_size } else { directions * outputs };
            for _ in 0..directions {
                cells.push(RecurrentCell::of(self.kind, [inputs, hidden, projected], self.bias, generator));
            }
        }
        let RecurrentBuilder { bidirectional, batch_first, dropout, .. } = self;
        RecurrentLayer { cells, bidirectional, batch_first, dropout }
    }
}
