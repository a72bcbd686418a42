//! With PyTorch's parameters, recurrent networks, attention and transformer layers have PyTorch's outputs and its gradients of every input
//! and parameter. PyTorch has no layers for positional encodings. They are compared with the formulas of the papers.

use wengert::nn::{
    AttentionMasks, GRU, GRUCell, LSTM, LSTMCell, MultiheadAttention, RNN, RNNCell, RecurrentBuilder, RecurrentCell,
    RecurrentKind, RecurrentLayer, RotaryPairs, Transformer, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer, TransformerOptions, rotary, sinusoidal_positions,
};
use wengert::nn::{LeafMut, Module};
use wengert::prelude::*;
use wengert_tensor::ops::AttentionMask;

use crate::fixtures::{Fixture, cases, fixture};

type Variable<'t> = Var<'t, f64>;

/// Returns the model with the parameters of the case, which have the same paths in the same order.
#[track_caller]
fn loaded<M: Module<f64>>(mut model: M, case: &Fixture) -> M {
    let paths: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, names(case, "parameters"), "{}", case.name);
    for (path, leaf) in model.leaves_mut() {
        if let LeafMut::Parameter(parameter) = leaf {
            let value = case.get(&path);
            assert_eq!(parameter.value.shape(), value.shape(), "{}: {path}", case.name);
            parameter.value = value;
        }
    }
    model
}

/// Returns the list of names that the case has under `list` in `nn.json`.
fn names(case: &Fixture, list: &str) -> Vec<String> {
    case.about[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Compares the outputs and the gradients. Each input and output is given with its name in the fixtures.
#[track_caller]
fn compare<'t>(
    case: &Fixture,
    model: &impl Module<f64>,
    inputs: &[(&str, Variable<'t>)],
    outputs: &[(&str, Variable<'t>)],
) {
    let mut loss = None;
    for &(name, output) in outputs {
        case.check(name, &output.value());
        let upstream = name.replace("output", "upstream");
        if case.has(&upstream) {
            let term = (output * &case.get(&upstream)).sum(..);
            loss = Some(loss.map_or(term, |loss: Variable<'t>| loss + term));
        }
    }
    let gradients = loss.unwrap().backward();
    for &(name, input) in inputs {
        if case.has(&format!("grad.{name}")) {
            case.check(&format!("grad.{name}"), gradients.of(input));
        }
    }
    for (path, parameter) in model.named_parameters() {
        if case.has(&format!("grad.{path}")) {
            case.check(&format!("grad.{path}"), &gradients.of_or_zeros(parameter));
        }
    }
}

/// A recurrent state that can be built from variables and split into them.
trait RecurrentState<'t> {
    fn from_parts(variables: &[Variable<'t>]) -> Self;
    fn parts(self) -> Vec<Variable<'t>>;
}

impl<'t> RecurrentState<'t> for Variable<'t> {
    fn from_parts(variables: &[Variable<'t>]) -> Self {
        variables[0]
    }

    fn parts(self) -> Vec<Variable<'t>> {
        vec![self]
    }
}

impl<'t> RecurrentState<'t> for (Variable<'t>, Variable<'t>) {
    fn from_parts(variables: &[Variable<'t>]) -> Self {
        (variables[0], variables[1])
    }

    fn parts(self) -> Vec<Variable<'t>> {
        vec![self.0, self.1]
    }
}

/// Compares the cases of a recurrent network. `builder` takes the sizes of the input, the state and the projection, which is 0 for none.
fn recurrent<K: RecurrentKind<f64>>(prefix: &str, builder: impl Fn(usize, usize, usize) -> RecurrentBuilder<K>)
where
    for<'t> K::State<'t>: RecurrentState<'t>,
{
    let cases = cases(prefix);
    assert!(cases.len() >= 11, "{prefix}");
    for case in &cases {
        let parameters = names(case, "parameters");
        let has = |name: &str| parameters.iter().any(|parameter| parameter == name);
        let width = |name: &str| case.get(name).shape()[1];
        let projection = if has("weight_hr_l0") { Some(case.get("weight_hr_l0").shape().to_vec()) } else { None };
        let [projected, hidden] = projection.map_or([0, width("weight_hh_l0")], |sizes| [sizes[0], sizes[1]]);
        let mut builder = builder(width("weight_ih_l0"), hidden, projected).bias(has("bias_ih_l0"));
        if has("weight_ih_l1") {
            builder = builder.num_layers(2);
        }
        if has("weight_ih_l0_reverse") {
            builder = builder.bidirectional();
        }
        if case.about["options"]["batch_first"] == true {
            builder = builder.batch_first();
        }
        let network: RecurrentLayer<K, f64> = loaded(builder.build(&mut Generator::new(0)), case);
        let tape = Tape::new();
        let names: Vec<String> = names(case, "inputs").into_iter().filter(|name| name != "lengths").collect();
        let inputs: Vec<(&str, Variable<'_>)> =
            names.iter().map(|name| (&name[..], tape.var(&case.get(name)))).collect();
        let variables: Vec<Variable<'_>> = inputs[1..].iter().map(|&(_, variable)| variable).collect();
        let state = if variables.is_empty() { None } else { Some(RecurrentState::from_parts(&variables)) };
        let (y, last) = if case.has("lengths") {
            let lengths: Vec<usize> = case.integers("lengths").iter().map(|length| length as usize).collect();
            network.forward_padded(inputs[0].1, &lengths, state)
        } else {
            network.forward_from(inputs[0].1, state)
        };
        let mut outputs = vec![("output.0", y)];
        outputs.extend(["output.1", "output.2"].into_iter().zip(last.parts()));
        compare(case, &network, &inputs, &outputs);
    }
}

#[test]
fn recurrent_networks() {
    recurrent("rnn_tanh/", |inputs, hidden, _| RNN::builder(inputs, hidden));
    recurrent("rnn_relu/", |inputs, hidden, _| RNN::builder(inputs, hidden).relu());
    recurrent("gru/", |inputs, hidden, _| GRU::builder(inputs, hidden));
    recurrent("lstm/", |inputs, hidden, projected| LSTM::builder(inputs, hidden).proj_size(projected));
}

fn cell<K: RecurrentKind<f64>>(name: &str, cell: RecurrentCell<K, f64>, outputs: &[&str])
where
    for<'t> K::State<'t>: RecurrentState<'t>,
{
    let (case, tape) = (fixture(name), Tape::new());
    let cell = loaded(cell, &case);
    let names = names(&case, "inputs");
    let inputs: Vec<(&str, Variable<'_>)> = names.iter().map(|name| (&name[..], tape.var(&case.get(name)))).collect();
    let state: Vec<Variable<'_>> = inputs[1..].iter().map(|&(_, variable)| variable).collect();
    let next = cell.forward(inputs[0].1, Some(RecurrentState::from_parts(&state))).parts();
    compare(&case, &cell, &inputs, &outputs.iter().copied().zip(next).collect::<Vec<_>>());
}

#[test]
fn cells() {
    let generator = &mut Generator::new(0);
    let sizes = |name: &str| {
        let case = fixture(name);
        (case.get("weight_ih").shape()[1], case.get("weight_hh").shape()[1])
    };
    let (inputs, hidden) = sizes("lstm_cell/plain");
    let lstm = LSTMCell::new(inputs, hidden, generator);
    cell("lstm_cell/plain", lstm, &["output.0", "output.1"]);
    let (inputs, hidden) = sizes("gru_cell/plain");
    cell("gru_cell/plain", GRUCell::new(inputs, hidden, generator), &["output"]);
    let (inputs, hidden) = sizes("rnn_cell/plain");
    cell("rnn_cell/plain", RNNCell::new(inputs, hidden, generator), &["output"]);
}

/// The masks of an attention case.
struct Masks<'t> {
    keep: Option<Tensor<bool>>,
    bias: Option<Variable<'t>>,
    padding: Option<Tensor<bool>>,
}

impl<'t> Masks<'t> {
    /// Reads the masks of a case. PyTorch's boolean masks are true at ignored keys, so `mask` is inverted. The padding mask stays.
    fn from_case(case: &Fixture, tape: &'t Tape<f64>, mask: &str, padding: &str) -> Self {
        let is_float = case.name.ends_with("float_mask");
        Masks {
            keep: (case.has(mask) && !is_float).then(|| case.mask(mask).logical_not()),
            bias: (case.has(mask) && is_float).then(|| tape.var(&case.get(mask))),
            padding: case.has(padding).then(|| case.mask(padding)),
        }
    }

    fn masks(&self) -> AttentionMasks<'_, 't, f64> {
        let mut masks = AttentionMasks::new();
        if let Some(keep) = &self.keep {
            masks = masks.mask(AttentionMask::Keep(keep));
        }
        if let Some(bias) = &self.bias {
            masks = masks.mask(AttentionMask::Add(bias));
        }
        match &self.padding {
            Some(padding) => masks.key_padding_mask(padding),
            None => masks,
        }
    }
}

#[test]
fn attention() {
    let mut compared = 0;
    // The library does not have the options whose cases are left out here.
    for case in cases("multihead_attention/").iter().filter(|case| !case.name.contains("/add_")) {
        let size = |name: &str| case.about["options"][name].as_u64().map(|size| size as usize);
        let mut builder = MultiheadAttention::builder(8, 2).batch_first();
        builder = builder.kdim(size("kdim").unwrap_or(8)).vdim(size("vdim").unwrap_or(8));
        builder = builder.bias(case.about["options"]["bias"] != false);
        let layer: MultiheadAttention<f64> = loaded(builder.build(&mut Generator::new(0)), case);
        let tape = Tape::new();
        let masks = Masks::from_case(case, &tape, "attn_mask", "key_padding_mask");
        let query = tape.var(&case.get("query"));
        let mut inputs = vec![("query", query)];
        inputs.extend(masks.bias.map(|bias| ("attn_mask", bias)));
        let (y, weights) = if case.has("key") {
            let (key, value) = (tape.var(&case.get("key")), tape.var(&case.get("value")));
            inputs.extend([("key", key), ("value", value)]);
            layer.attend_with_weights(query, key, value, masks.masks())
        } else {
            layer.self_attend_with_weights(query, masks.masks())
        };
        let weights = if case.name.ends_with("by_head") && !case.name.ends_with("mask_by_head") {
            weights
        } else {
            weights.mean(1)
        };
        compare(case, &layer, &inputs, &[("output.0", y), ("output.1", weights)]);
        compared += 1;
    }
    assert_eq!(compared, 10);
}

fn options(case: &Fixture) -> TransformerOptions {
    let is = |name: &str, value: &str| {
        let option = case.about["options"][name].to_string();
        option == value
    };
    let mut options = TransformerOptions::new(8, 2).dim_feedforward(12).dropout(0.0).batch_first();
    if is("norm_first", "true") {
        options = options.norm_first();
    }
    if is("activation", "\"gelu\"") {
        options = options.gelu();
    }
    options
}

#[test]
fn transformer_layers() {
    let generator = &mut Generator::new(0);
    for case in &cases("transformer_encoder_layer/") {
        let layer = loaded(TransformerEncoderLayer::new(&options(case), generator), case);
        let tape = Tape::new();
        let masks = Masks::from_case(case, &tape, "src_mask", "src_key_padding_mask");
        let x = tape.var(&case.get("src"));
        compare(case, &layer, &[("src", x)], &[("output", layer.forward_masked(x, masks.masks()))]);
    }
    for case in &cases("transformer_decoder_layer/") {
        let layer = loaded(TransformerDecoderLayer::new(&options(case), generator), case);
        let tape = Tape::new();
        let masks = Masks::from_case(case, &tape, "tgt_mask", "tgt_key_padding_mask");
        let memory_masks = Masks::from_case(case, &tape, "memory_mask", "memory_key_padding_mask");
        let (x, memory) = (tape.var(&case.get("tgt")), tape.var(&case.get("memory")));
        let y = layer.forward(x, memory, masks.masks(), memory_masks.masks());
        compare(case, &layer, &[("tgt", x), ("memory", memory)], &[("output", y)]);
    }
    for case in &cases("transformer/") {
        let model = loaded(Transformer::new(&options(case), 1, 2, generator), case);
        let tape = Tape::new();
        let masks = Masks::from_case(case, &tape, "tgt_mask", "tgt_key_padding_mask");
        let memory_masks = Masks::from_case(case, &tape, "memory_mask", "memory_key_padding_mask");
        let (src, tgt) = (tape.var(&case.get("src")), tape.var(&case.get("tgt")));
        let y = model.forward(src, tgt, AttentionMasks::new(), masks.masks(), memory_masks.masks());
        compare(case, &model, &[("src", src), ("tgt", tgt)], &[("output", y)]);
    }
    let case = fixture("transformer_encoder/2_layers");
    let stack = loaded(TransformerEncoder::new(&options(&case).final_norm(), 2, generator), &case);
    let tape = Tape::new();
    let masks = Masks::from_case(&case, &tape, "mask", "src_key_padding_mask");
    let x = tape.var(&case.get("src"));
    compare(&case, &stack, &[("src", x)], &[("output", stack.forward_masked(x, masks.masks()))]);
}

#[test]
fn positions() {
    let case = fixture("positional/sine");
    case.check("output", &sinusoidal_positions(case.number("length") as usize, case.number("dim") as usize));
    for (name, pairs) in [("interleaved", RotaryPairs::Interleaved), ("halves", RotaryPairs::Halves)] {
        let (case, tape) = (fixture(&format!("rotary/{name}")), Tape::new());
        let x = tape.var(&case.get("input"));
        let none: Vec<wengert::nn::Linear<f64>> = Vec::new();
        compare(&case, &none, &[("input", x)], &[("output", rotary(&x, 0, pairs))]);
    }
}
