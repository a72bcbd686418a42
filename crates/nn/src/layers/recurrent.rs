//! Recurrent networks over sequences.
//!
//! The products of all inputs of a sequence are one product; at each step there is only that of the state. What a cell computes
//! is in [`recurrent_cell`](super::recurrent_cell).

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{LinearMaps as _, TensorLike as _, Views as _, try_cat, try_where_};
use wengert_tensor::{Error as TensorError, Float, Shape, Site, Tensor};

use crate::layers::layer::{Layer, dropout, output_of};
use crate::layers::recurrent_cell::{
    Gated, LongShortTerm, RecurrentCell, RecurrentKind, RecurrentState, Simple, checked_or_zeros,
};
use crate::module::Module;
use crate::{Generator, Result};

/// A network of tanh or ReLU over sequences. PyTorch: `torch.nn.RNN`. Its builder is that of [`RecurrentLayer`], with
/// [`relu`](RecurrentBuilder::relu).
pub type RNN<T = f32> = RecurrentLayer<Simple, T>;

/// A long short-term memory over sequences, `[t, n, in]` to `[t, n, hidden]`; its state is a pair `(h, c)`. PyTorch:
/// `torch.nn.LSTM`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, LSTM, Layer, Module};
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

/// Gated recurrent units over sequences, `[t, n, in]` to `[t, n, hidden]`. PyTorch: `torch.nn.GRU`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{GRU, Generator};
///
/// let gru = GRU::<f32>::new(3, 8, &mut Generator::new(0));
/// let tape = Tape::new();
/// // Two sequences in one batch: the second ends after two steps.
/// let x = tape.constant(&Tensor::ones([4, 2, 3]));
/// let (y, last) = gru.forward_padded(x, &[4, 2], None);
/// assert_eq!(y.select(0, 3).select(0, 1).value(), Tensor::zeros([8]));
/// assert_eq!(last.select(0, 0).select(0, 1).value(), y.select(0, 1).select(0, 1).value());
/// ```
pub type GRU<T = f32> = RecurrentLayer<Gated, T>;

/// A recurrent network over sequences: [`RNN`], [`LSTM`] or [`GRU`]. PyTorch: `torch.nn.RNNBase`.
///
/// Inputs are `[t, n, in]`, or `[n, t, in]` with [`batch_first`](RecurrentBuilder::batch_first), or `[t, in]`; outputs have
/// `hidden` numbers in the last dimension, with two directions twice as many: those of the forward direction, then those of the
/// other. States are `[layers · directions, n, hidden]` (without a batch `[layers · directions, hidden]`) whatever the order of
/// the inputs' dimensions. Parameters have PyTorch's names, `weight_ih_l0`, …, `bias_hh_l1_reverse`, layout and initial
/// distribution.
#[derive(Clone, Debug)]
pub struct RecurrentLayer<K, T: Float = f32> {
    /// Of each layer the cell of the forward direction and, with two directions, that of the other.
    pub cells: Vec<RecurrentCell<K, T>>,
    bidirectional: bool,
    batch_first: bool,
    dropout: f64,
}

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

/// The parameters of each cell, with the number of its layer, and `_reverse`, after their names.
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

/// What stands after the names of the parameters of a cell.
fn suffix(position: usize, bidirectional: bool) -> String {
    match (bidirectional, position % 2) {
        (false, _) => format!("_l{position}"),
        (true, 0) => format!("_l{}", position / 2),
        (true, _) => format!("_l{}_reverse", position / 2),
    }
}

/// The outputs, from a state of zeros.
impl<K: RecurrentKind<T>, T: Float> Layer<T> for RecurrentLayer<K, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(self.try_forward_from(x, None)?.0)
    }
}

#[twins]
impl<K: RecurrentKind<T>, T: Float> RecurrentLayer<K, T> {
    /// The outputs and the last state, from a first state, or from zeros.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, there are no steps, or the variables belong to two tapes.
    pub fn try_forward_from<'t>(
        &self,
        x: Var<'t, T>,
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>)> {
        output_of(self, self.run(x, None, state), self.made(), || self.describe(x))
    }

    /// The same of sequences of different lengths in one batch: sequence `i` has `lengths[i]` steps (possibly none), and what
    /// comes after them in `x` is not read. Outputs after a sequence's end are 0, its last state is that at its end, and the
    /// other direction begins there. PyTorch: `pack_padded_sequence`, the network, and `pad_packed_sequence`.
    ///
    /// # Errors
    ///
    /// As [`try_forward_from`](Self::try_forward_from), and if there are not as many lengths as sequences, or one is larger than
    /// the number of steps.
    pub fn try_forward_padded<'t>(
        &self,
        x: Var<'t, T>,
        lengths: &[usize],
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>)> {
        output_of(self, self.run(x, Some(lengths), state), self.made(), || self.describe(x))
    }

    fn made(&self) -> &'static std::panic::Location<'static> {
        self.cells[0].weight_ih.made()
    }

    fn describe(&self, x: Var<'_, T>) -> String {
        let (inputs, hidden) = (self.cells[0].weight_ih.value.shape()[1], self.cells[0].hidden_size());
        let layers = self.cells.len() / self.directions();
        let directions = if self.bidirectional { " in both directions" } else { "" };
        format!("{}({inputs}, {hidden}) of {layers} layers{directions} on an input of shape {}", K::NAME, x.shape())
    }

    fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    #[track_caller]
    fn run<'t>(
        &self,
        x: Var<'t, T>,
        lengths: Option<&[usize]>,
        state: Option<K::State<'t>>,
    ) -> Result<(Var<'t, T>, K::State<'t>), TapeError> {
        let (given, at) = (x.shape(), Site::here(K::NAME));
        let refuse = |message: String| Err(TensorError::Argument { message, at }.into());
        let (steps, batch) = match *given.sizes() {
            [steps, _] => (steps, 1),
            [batch, steps, _] if self.batch_first => (steps, batch),
            [steps, batch, _] => (steps, batch),
            _ => return refuse(format!("Expected input to be 2D or 3D, got {}D instead", given.rank())),
        };
        if steps == 0 {
            return refuse("Expected sequence length to be larger than 0 in RNN".to_owned());
        }
        let padding = match lengths {
            Some(lengths) if lengths.len() != batch => {
                return refuse(format!("{} lengths for a batch of {batch} sequences", lengths.len()));
            }
            Some(lengths) => match lengths.iter().find(|&&length| length > steps) {
                Some(length) => return refuse(format!("a length of {length} in a batch of {steps} steps")),
                None => Padding::of(x, lengths, steps)?,
            },
            None => None,
        };
        let (sizes, number) = (self.cells[0].state_sizes(), self.cells.len());
        let has_batch = given.rank() == 3;
        let whole = sizes.map(|size| Shape::from([number, batch, size]));
        let alone = sizes.map(|size| Shape::from([number, size]));
        let state = match state {
            Some(state) => {
                let expected = if has_batch { &whole } else { &alone };
                Some(checked_or_zeros::<K, T>(x, Some(state), expected, K::NAME)?.try_reshaped(&whole)?)
            }
            None => None,
        };
        let zeros = K::State::zeros(x.tape(), &sizes.map(|size| Shape::from([batch, size])));

        let sequence_first = if has_batch && self.batch_first { x.try_transpose(0, 1)? } else { x };
        let width = given[given.rank() - 1];
        let mut rows = sequence_first.try_reshape([steps * batch, width])?;
        if let Some(padding) = &padding {
            rows = try_where_(&padding.rows, &rows, 0.0)?;
        }
        let mut last = Vec::with_capacity(number);
        for (layer, cells) in self.cells.chunks(self.directions()).enumerate() {
            if layer > 0 {
                rows = dropout(rows, self.dropout)?;
            }
            let mut outputs = Vec::with_capacity(2);
            for (direction, cell) in cells.iter().enumerate() {
                let first = match state {
                    Some(state) => RecurrentState::try_part(state, last.len())?,
                    None => zeros,
                };
                let (output, state) = cell.over(rows, [steps, batch], first, padding.as_ref(), direction == 1)?;
                outputs.push(output);
                last.push(state);
            }
            rows = try_cat(&outputs, 1)?;
        }
        if let Some(padding) = &padding {
            rows = try_where_(&padding.rows, &rows, 0.0)?;
        }
        let width = self.directions() * sizes[0];
        let mut state = K::State::try_stack(&last)?;
        if !has_batch {
            state = state.try_reshaped(&alone)?;
            return Ok((rows.try_reshape([steps, width])?, state));
        }
        let y = rows.try_reshape([steps, batch, width])?;
        Ok((if self.batch_first { y.try_transpose(0, 1)? } else { y }, state))
    }
}

impl<K: RecurrentKind<T>, T: Float> RecurrentCell<K, T> {
    /// All steps over `[steps · batch, in]`: the outputs, `[steps · batch, hidden]` or as wide as a projection, and the last state.
    #[track_caller]
    fn over<'t>(
        &self,
        x: Var<'t, T>,
        [steps, batch]: [usize; 2],
        mut state: K::State<'t>,
        padding: Option<&Padding<'t, T>>,
        reverse: bool,
    ) -> Result<(Var<'t, T>, K::State<'t>), TapeError> {
        let variables = self.variables(x.tape())?;
        let gates = x.try_linear(&variables.input, variables.bias.as_ref())?;
        let mut outputs = Vec::with_capacity(steps);
        for number in 0..steps {
            let step = if reverse { steps - 1 - number } else { number };
            let x = gates.try_narrow(0, step * batch, batch)?;
            let next = self.kind.try_step(x, state, &variables)?;
            state = match padding.and_then(|padding| padding.steps[step].as_ref()) {
                Some(mask) => next.try_where(mask, state)?,
                None => next,
            };
            outputs.push(next.output());
        }
        if reverse {
            outputs.reverse();
        }
        Ok((try_cat(&outputs, 0)?, state))
    }
}

/// Which steps belong to their sequences: 1 for those that do.
struct Padding<'t, T: Float> {
    /// Of all steps, `[steps · batch, 1]`.
    rows: Var<'t, T>,
    /// Of each step, `[batch, 1]`; `None` where all do.
    steps: Vec<Option<Var<'t, T>>>,
}

impl<'t, T: Float> Padding<'t, T> {
    /// `None` if all sequences have all steps.
    #[track_caller]
    fn of(x: Var<'t, T>, lengths: &[usize], steps: usize) -> Result<Option<Self>, TapeError> {
        let shortest = lengths.iter().copied().min().unwrap_or(steps);
        if shortest == steps {
            return Ok(None);
        }
        let batch = lengths.len();
        let belongs = (0..steps).flat_map(|step| lengths.iter().map(move |&length| step < length));
        let rows = x.mask(&Tensor::try_from_vec(belongs.collect(), [steps * batch, 1])?);
        let mut by_step = vec![None; shortest];
        for step in shortest..steps {
            by_step.push(Some(rows.try_narrow(0, step * batch, batch)?));
        }
        Ok(Some(Padding { rows, steps: by_step }))
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    fn wave(shape: &[usize], scale: f64) -> Tensor<f64> {
        let count = shape.iter().product::<usize>();
        Tensor::from_vec((0..count).map(|n| (n as f64).cos() * scale).collect(), shape)
    }

    /// A network of two layers in both directions, with the sines of 0, 1, 2, … in its parameters, halved.
    fn network<K: RecurrentKind<f64>>(builder: RecurrentBuilder<K>) -> RecurrentLayer<K, f64> {
        let mut network = builder.num_layers(2).bidirectional().build::<f64>(&mut Generator::new(0));
        let sines = (0..network.num_parameters()).map(|n| (n as f64).sin() * 0.5).collect();
        network.set_from_vector(&Tensor::from_vec(sines, [network.num_parameters()]));
        network
    }

    /// Σ cos(i) · gradient i over all parameters.
    fn score<K: RecurrentKind<f64>>(network: &RecurrentLayer<K, f64>, gradients: &Gradients<f64>) -> f64 {
        let all: Vec<f64> = network.parameters().iter().flat_map(|p| gradients.of(*p).to_vec()).collect();
        all.iter().enumerate().map(|(n, gradient)| gradient * (n as f64).cos()).sum()
    }

    fn assert_close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            // Sums of at most a few hundred terms of size 1.
            assert!((got - want).abs() < 1e-13, "{got} is not {want}");
        }
    }

    /// States that tests make and read.
    trait Probe<'t>: RecurrentState<'t, f64> {
        fn of(h: Var<'t, f64>) -> Self;
        fn total(self) -> Var<'t, f64>;
        fn last(self) -> Var<'t, f64>;
    }

    impl<'t> Probe<'t> for Var<'t, f64> {
        fn of(h: Var<'t, f64>) -> Self {
            h
        }
        fn total(self) -> Var<'t, f64> {
            self.sum(..)
        }
        fn last(self) -> Var<'t, f64> {
            self
        }
    }

    impl<'t> Probe<'t> for (Var<'t, f64>, Var<'t, f64>) {
        fn of(h: Var<'t, f64>) -> Self {
            (h, h * 2.0)
        }
        fn total(self) -> Var<'t, f64> {
            self.0.sum(..) * 2.0 + self.1.sum(..)
        }
        fn last(self) -> Var<'t, f64> {
            self.1
        }
    }

    /// What PyTorch 2.15 gives for the same numbers.
    struct Expected {
        last_output: [f64; 8],
        first_dx: [f64; 4],
        dh: [f64; 4],
        loss_and_score: [f64; 2],
        padded: [f64; 3],
    }

    fn check<K: RecurrentKind<f64>>(network: &RecurrentLayer<K, f64>, expected: &Expected)
    where
        for<'t> K::State<'t>: Probe<'t>,
    {
        let tape = Tape::new();
        let (x, h) = (tape.var(&wave(&[3, 2, 2], 1.0)), tape.var(&wave(&[4, 2, 2], 0.5)));
        let (y, last) = network.forward_from(x, Some(Probe::of(h)));
        assert_close(&y.select(0, 2).value().to_vec(), &expected.last_output);
        let loss = (y * &wave(&[3, 2, 4], 1.0)).sum(..) + last.total();
        let gradients = loss.backward();
        assert_close(&gradients.of(x).select(0, 0).to_vec(), &expected.first_dx);
        assert_close(&gradients.of(h).to_vec()[..4], &expected.dh);
        assert_close(&[loss.value().item(), score(network, &gradients)], &expected.loss_and_score);

        let (y, last) = network.forward_padded(x, &[2, 3], Some(Probe::of(h)));
        let loss = (y * &wave(&[3, 2, 4], 1.0)).sum(..) + (last.last() * &wave(&[4, 2, 2], 1.0)).sum(..);
        let gradients = loss.backward();
        let dx = (gradients.of(x) * &wave(&[3, 2, 2], 1.0)).sum(..).item();
        assert_close(&[loss.value().item(), score(network, &gradients), dx], &expected.padded);
    }

    #[test]
    fn values_and_gradients_are_pytorchs() {
        check(
            &network(LSTM::builder(2, 2)),
            &Expected {
                last_output: [
                    -0.17333508143647794,
                    -0.44322209181057215,
                    0.06468270081536512,
                    0.2811391055984867,
                    -0.17043167008232213,
                    -0.4190457014993531,
                    -0.1186099140208903,
                    -0.10920498297656296,
                ],
                first_dx: [0.4714360909763674, 0.5014519244900982, 0.017830218762588293, 0.07823319116056587],
                dh: [0.12075039183839063, 0.31480612662718355, 0.024775953770525813, 0.5181073942715372],
                loss_and_score: [-7.571549012794339, 6.737212359429843],
                padded: [0.827664457142999, -2.9385869799962485, 0.022254462664808527],
            },
        );
        check(
            &network(GRU::builder(2, 2)),
            &Expected {
                last_output: [
                    -0.4065560683765703,
                    -0.18424732766733976,
                    0.3509602107721102,
                    0.17197763628305984,
                    -0.5149240520301689,
                    0.1346848301934295,
                    0.14885811790509249,
                    -0.44120791485592425,
                ],
                first_dx: [0.20169245588808166, 0.2959889482808213, 0.1988431267627402, 0.23997560395600398],
                dh: [0.16042167605890695, 0.3059455827833785, -0.12838352540566927, -0.021985090663962016],
                loss_and_score: [1.9207486846846133, 0.5433838961444546],
                padded: [2.408863981288959, -1.2741378041348046, -0.34100716453161123],
            },
        );
        check(
            &network(RNN::builder(2, 2)),
            &Expected {
                last_output: [
                    -0.4008893311767067,
                    0.13698826081745427,
                    -0.14815296134826447,
                    -0.3167308919500857,
                    -0.5446004545745651,
                    0.27966544106490493,
                    0.41746083698578385,
                    -0.5109021731158288,
                ],
                first_dx: [0.3211303537237696, 0.5711001603449759, -0.006206146730809929, 0.5871018179181133],
                dh: [-0.19881221057265874, -0.16817794638014427, -0.34485167319043075, -0.39763373301123206],
                loss_and_score: [-2.506605487193088, 0.40887167101561905],
                padded: [0.9644548258278429, -0.9392616331682457, -0.6033262468659424],
            },
        );
        check(
            &network(RNN::builder(2, 2).relu()),
            &Expected {
                last_output: [0.0, 0.022526587740029358, 0.0, 0.0, 0.0, 0.0, 0.17276114703194617, 0.0],
                first_dx: [0.2270172188472177, 0.5352274384918789, 0.010302939838395048, 0.315350409650301],
                dh: [0.0, 0.0, -0.2908759805565128, -0.3685612037505146],
                loss_and_score: [0.9962748247353321, -1.7875193256647788],
                padded: [0.32019130590831163, -2.080984561517914, -0.20306441941220466],
            },
        );
    }

    #[test]
    fn paths_bounds_and_their_order_are_pytorchs() {
        let network: LSTM = LSTM::builder(3, 4).num_layers(2).bidirectional().build(&mut Generator::new(1));
        let mut expected = Vec::new();
        for suffix in ["l0", "l0_reverse", "l1", "l1_reverse"] {
            expected.extend(["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|name| format!("{name}_{suffix}")));
        }
        let paths: Vec<String> = network.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, expected);
        assert_eq!(network.cells[2].weight_ih.value.shape(), &[16, 8]);
        let all = network.to_vector();
        assert!(all.iter().all(|w| w.abs() <= 0.5) && all.iter().any(|w| w < -0.45) && all.iter().any(|w| w > 0.45));
        let without: GRU = GRU::builder(3, 4).num_layers(2).bias(false).build(&mut Generator::new(1));
        let paths: Vec<String> = without.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight_ih_l0", "weight_hh_l0", "weight_ih_l1", "weight_hh_l1"]);
        assert!(without.summary().contains("GRU"), "{}", without.summary());
    }

    #[test]
    fn a_padded_batch_is_each_sequence_alone() {
        let network = network(GRU::builder(2, 2));
        let lengths = [3, 1, 5, 0];
        let mut x = wave(&[5, 4, 2], 1.0).to_vec();
        for (position, value) in x.iter_mut().enumerate() {
            if position / 8 >= lengths[position / 2 % 4] {
                *value = f64::NAN; // must not be read
            }
        }
        let (x, h) = (Tensor::from_vec(x, [5, 4, 2]), wave(&[4, 4, 2], 1.0));
        let tape = Tape::new();
        let input = tape.var(&x);
        let (y, last) = network.forward_padded(input, &lengths, Some(tape.constant(&h)));
        let gradients = (y.square().sum(..) + last.square().sum(..)).backward();
        for (number, &length) in lengths.iter().enumerate() {
            let own = |of: &Tensor<f64>| of.select(1, number);
            if length > 0 {
                let alone = tape.var(&own(&x).narrow(0, 0, length));
                let (expected, state) = network.forward_from(alone, Some(tape.constant(&own(&h))));
                assert_close(&own(&y.value()).narrow(0, 0, length).to_vec(), &expected.value().to_vec());
                assert_close(&own(&last.value()).to_vec(), &state.value().to_vec());
                let dx = (expected.square().sum(..) + state.square().sum(..)).backward();
                let found = own(gradients.of(input)).narrow(0, 0, length);
                assert_close(&found.to_vec(), &dx.of(alone).to_vec());
            } else {
                assert_eq!(own(&last.value()), own(&h));
            }
            let rest = |of: &Tensor<f64>| own(of).narrow(0, length, 5 - length);
            assert!(rest(&y.value()).iter().all(|y| y == 0.0));
            assert!(rest(gradients.of(input)).iter().all(|dx| dx == 0.0));
        }
        assert!(gradients.is_finite());
    }

    #[test]
    fn the_order_of_dimensions_changes_nothing_else() {
        let generator = &mut Generator::new(3);
        let network: LSTM<f64> = LSTM::builder(2, 3).bidirectional().build(generator);
        let other = RecurrentLayer { batch_first: true, ..network.clone() };
        let tape = Tape::new();
        let x = tape.constant(&wave(&[4, 5, 2], 1.0));
        let (y, (h, c)) = network.forward_from(x, None);
        let (transposed, state) = other.forward_from(x.transpose(0, 1), Some((h * 0.0, c * 0.0)));
        assert_eq!(transposed.transpose(0, 1).value(), y.value());
        assert_eq!(state.1.value(), c.value());
        let (alone, (h, _)) = network.forward_from(x.select(1, 2), Some((h.select(1, 2) * 0.0, c.select(1, 2) * 0.0)));
        assert_close(&alone.value().to_vec(), &y.select(1, 2).value().to_vec());
        assert_eq!((alone.shape(), h.shape()), ([4, 6].into(), [2, 3].into()));
    }

    #[test]
    fn dropout_is_between_layers_and_only_in_training() {
        let generator = &mut Generator::new(3);
        let network: GRU = GRU::builder(2, 8).num_layers(2).dropout(0.5).build(generator);
        let x = Tensor::ones([3, 1, 2]);
        let evaluated = |tape: Tape| network.forward(tape.constant(&x)).value();
        assert_eq!(evaluated(Tape::new()), evaluated(Tape::new()));
        assert_ne!(evaluated(Tape::training(generator)), evaluated(Tape::new()));
        let single: GRU = GRU::builder(2, 8).dropout(0.5).build(generator);
        let evaluated = |tape: Tape| single.forward(tape.constant(&x)).value();
        assert_eq!(evaluated(Tape::training(generator)), evaluated(Tape::new()));
    }

    #[test]
    fn a_step_records_few_nodes() {
        let network = LSTM::<f32>::new(3, 4, &mut Generator::new(0));
        let recorded = |steps: usize| {
            let tape = Tape::new();
            network.forward(tape.constant(&Tensor::zeros([steps, 2, 3])));
            tape.len()
        };
        // The input's slice, the product, its sum, four gates of two nodes and five for what is handed on.
        assert_eq!(recorded(9) - recorded(8), 16);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let network: GRU = GRU::builder(3, 4).num_layers(2).build(&mut Generator::new(0));
        let tape = Tape::new();
        let sentence = |shape: &[usize], lengths: Option<&[usize]>, state: Option<[usize; 3]>| {
            let (x, state) = (tape.constant(&Tensor::zeros(shape)), state.map(|s| tape.constant(&Tensor::zeros(s))));
            let result = match lengths {
                Some(lengths) => network.try_forward_padded(x, lengths, state),
                None => network.try_forward_from(x, state),
            };
            result.err().map_or_else(String::new, |error| error.to_string())
        };
        for (shape, lengths, state, expected) in [
            (&[5, 2, 4][..], None, None, "mat1 and mat2 shapes cannot be multiplied (10x4 and 3x12)"),
            (&[5, 2, 4], None, None, "in the layer GRU(3, 4) of 2 layers on an input of shape [5, 2, 4]"),
            (&[5], None, None, "Expected input to be 2D or 3D, got 1D instead"),
            (&[0, 2, 3], None, None, "Expected sequence length to be larger than 0"),
            (&[5, 2, 3], None, Some([2, 1, 4]), "Expected hidden size [2, 2, 4], got [2, 1, 4]"),
            (&[5, 2, 3], Some(&[1][..]), None, "1 lengths for a batch of 2 sequences"),
            (&[5, 2, 3], Some(&[1, 6]), None, "a length of 6 in a batch of 5 steps"),
        ] {
            let text = sentence(shape, lengths, state);
            assert!(text.contains(expected) && text.contains("recurrent.rs"), "{text}");
        }
    }
}
