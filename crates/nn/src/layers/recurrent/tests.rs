use wengert_autograd::prelude::*;

use super::*;
use crate::layers::layer::Layer as _;
use crate::module::Module as _;

fn wave(shape: &[usize], scale: f64) -> Tensor<f64> {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|n| (n as f64).cos() * scale).collect(), shape)
}

/// Returns a network of two layers in both directions whose parameters are sin(0)/2, sin(1)/2, …
fn network<K: RecurrentKind<f64>>(builder: RecurrentBuilder<K>) -> RecurrentLayer<K, f64> {
    let mut network = builder.num_layers(2).bidirectional().build::<f64>(&mut Generator::new(0));
    let sines = (0..network.num_parameters()).map(|n| (n as f64).sin() * 0.5).collect();
    network.set_from_vector(&Tensor::from_vec(sines, [network.num_parameters()]));
    network
}

/// Returns Σ cos(i) gᵢ over all elements gᵢ of the parameters' gradients.
fn score<K: RecurrentKind<f64>>(network: &RecurrentLayer<K, f64>, gradients: &Gradients<f64>) -> f64 {
    let all: Vec<f64> = network.parameters().iter().flat_map(|p| gradients.of(*p).to_vec()).collect();
    all.iter().enumerate().map(|(n, gradient)| gradient * (n as f64).cos()).sum()
}

fn assert_close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        // The bound allows for rounding in sums of at most a few hundred terms of size 1.
        assert!((got - want).abs() < 1e-13, "{got} is not {want}");
    }
}

/// A state of a network in the tests: `of` makes it from one variable, `total` returns a weighted sum of its elements, and `last` returns its last
/// variable.
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

/// The results of PyTorch 2.15 for the same parameters and inputs, which [`check`] compares.
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
fn paths_order_and_initial_bounds_are_pytorchs() {
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
fn a_padded_batch_gives_the_same_as_each_sequence_alone() {
    let network = network(GRU::builder(2, 2));
    let lengths = [3, 1, 5, 0];
    let mut x = wave(&[5, 4, 2], 1.0).to_vec();
    for (position, value) in x.iter_mut().enumerate() {
        if position / 8 >= lengths[position / 2 % 4] {
            *value = f64::NAN; // This element is after the end of its sequence and must not be read.
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
            let (expected, state) = network.forward_from(alone, Some(tape.constant(own(&h))));
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
fn batch_first_only_changes_the_order_of_dimensions() {
    let generator = &mut Generator::new(3);
    let network: LSTM<f64> = LSTM::builder(2, 3).bidirectional().build(generator);
    let other = RecurrentLayer { batch_first: true, ..network.clone() };
    let tape = Tape::new();
    let x = tape.constant(wave(&[4, 5, 2], 1.0));
    let (y, (h, c)) = network.forward_from(x, None);
    let (transposed, state) = other.forward_from(x.transpose(0, 1), Some((h * 0.0, c * 0.0)));
    assert_eq!(transposed.transpose(0, 1).value(), y.value());
    assert_eq!(state.1.value(), c.value());
    let (alone, (h, _)) = network.forward_from(x.select(1, 2), Some((h.select(1, 2) * 0.0, c.select(1, 2) * 0.0)));
    assert_close(&alone.value().to_vec(), &y.select(1, 2).value().to_vec());
    assert_eq!((alone.shape(), h.shape()), ([4, 6].into(), [2, 3].into()));
}

#[test]
fn dropout_acts_between_layers_and_in_training_only() {
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
        network.forward(tape.constant(Tensor::zeros([steps, 2, 3])));
        tape.len()
    };
    // One more step records 16 nodes. Three are a slice of the product of input and weight, the product of state and weight, and their sum.
    // The four gates take eight nodes, and the new state takes five.
    assert_eq!(recorded(9) - recorded(8), 16);
}

#[test]
fn wrong_shapes_and_lengths_are_errors() {
    let network: GRU = GRU::builder(3, 4).num_layers(2).build(&mut Generator::new(0));
    let tape = Tape::new();
    let sentence = |shape: &[usize], lengths: Option<&[usize]>, state: Option<[usize; 3]>| {
        let (x, state) = (tape.constant(Tensor::zeros(shape)), state.map(|s| tape.constant(Tensor::zeros(s))));
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
        assert!(text.contains(expected) && text.contains("recurrent/tests.rs"), "{text}");
    }
}

#[test]
#[should_panic(expected = "Invalid p value: -0.5; expected a probability from 0 to 1")]
fn a_negative_probability_is_refused_when_the_network_is_built() {
    let _: GRU = GRU::builder(2, 8).dropout(-0.5).build(&mut Generator::new(0));
}

#[test]
fn more_sequences_than_memory_holds_are_an_error() {
    let (cell, network) =
        (LSTMCell::<f64>::new(2, 3, &mut Generator::new(0)), GRU::builder(2, 3).build(&mut Generator::new(0)));
    let tape = Tape::new();
    let x = tape.constant(Tensor::scalar(1.0).expand([1, 1usize << 50, 2]));
    assert!(cell.try_forward(x.select(0, 0), None).is_err());
    assert!(network.try_forward(x).is_err());
}
