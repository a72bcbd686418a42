//! The cases of whole models, most of them with a dynamic batch.

use wengert_autograd::prelude::*;
use wengert_nn::{
    AttentionMasks, AvgPool2d, BatchNorm1d, BatchNorm2d, Buffer, Conv2d, ConvTranspose2d, Dropout, Embedding, Flatten,
    GELU, GRU, GroupNorm, InstanceNorm2d, LSTM, Layer, LayerNorm, LearnedPositions, Linear, MaxPool2d, Mish, Module,
    PixelShuffle, RMSNorm, ReLU, Sequential, SiLU, Softplus, Tanh, TransformerEncoder, TransformerOptions,
};
use wengert_onnx::Export;

use super::{Case, between, case};

const SIZES: &[usize] = &[1, 2, 4, 7];

pub fn cases<T: Float>() -> Vec<Case<T>> {
    let mut cases = vec![mlp(), cnn(), decoder(), lstm(), gru(), bidirectional(), language_model(), burgers()];
    cases.extend([layers_of_images(), layers_of_vectors(), computed_sizes(), transposed_buffer()]);
    cases
}

#[derive(Module)]
struct Mlp<T: Float> {
    fc1: Linear<T>,
    norm: LayerNorm<T>,
    fc2: Linear<T>,
}

fn mlp<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(1);
    let model =
        Mlp { fc1: Linear::new(6, 16, generator), norm: LayerNorm::new(16), fc2: Linear::new(16, 3, generator) };
    let x = between(-1.0, 1.0, &[3, 6]);
    let export = Export::new().model(&model).batch("batch");
    case(
        "mlp",
        export,
        [("x", x)],
        [],
        ["probabilities"],
        |_, [x], []| [model.fc2.forward(model.norm.forward(model.fc1.forward(x)).gelu()).softmax(1)],
        SIZES,
    )
}

fn cnn<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(2);
    let mut norm = BatchNorm2d::<T>::new(4);
    norm.running_mean = Some(Buffer::new(between(-0.5, 0.5, &[4])));
    norm.running_var = Some(Buffer::new(between(0.5, 1.5, &[4])));
    let model = Sequential::new()
        .add(Conv2d::<T>::new(1, 4, 3, generator))
        .add(norm)
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Conv2d::new(4, 6, 3, generator))
        .add(GroupNorm::new(2, 6))
        .add(ReLU)
        .add(AvgPool2d::new(2))
        .add(Flatten::default())
        .add(Linear::new(6 * 2 * 2, 5, generator));
    let x = between(-1.0, 1.0, &[2, 1, 14, 14]);
    let export = Export::new().model(&model).batch("batch");
    case("cnn", export, [("image", x)], [], ["scores"], |_, [x], []| [model.forward(x)], SIZES)
}

fn decoder<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(3);
    let model = Sequential::new()
        .add(ConvTranspose2d::<T>::new(3, 4, 3, generator))
        .add(GELU)
        .add(Conv2d::new(4, 1, 1, generator))
        .add(Tanh);
    let x = between(-1.0, 1.0, &[2, 3, 4, 4]);
    let export = Export::new().model(&model).batch("batch");
    case("decoder", export, [("code", x)], [], ["image"], |_, [x], []| [model.forward(x)], SIZES)
}

fn lstm<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(4);
    let model: LSTM<T> = LSTM::builder(3, 5).batch_first().num_layers(2).build(generator);
    let x = between(-1.0, 1.0, &[2, 6, 3]);
    let export = Export::new().model(&model).batch("batch");
    case("lstm", export, [("x", x)], [], ["y"], |_, [x], []| [model.forward(x)], SIZES)
}

fn gru<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(5);
    let model: GRU<T> = GRU::builder(3, 5).batch_first().build(generator);
    let x = between(-1.0, 1.0, &[2, 6, 3]);
    let export = Export::new().model(&model).batch("batch");
    case(
        "gru",
        export,
        [("x", x)],
        [],
        ["y", "last"],
        |_, [x], []| {
            let (y, last) = model.forward_from(x, None);
            [y, last]
        },
        SIZES,
    )
}

fn bidirectional<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(6);
    let model: LSTM<T> = LSTM::builder(3, 4).batch_first().bidirectional().build(generator);
    let x = between(-1.0, 1.0, &[2, 5, 3]);
    let export = Export::new().model(&model);
    case("bidirectional_lstm", export, [("x", x)], [], ["y"], |_, [x], []| [model.forward(x)], &[])
}

#[derive(Module)]
struct LanguageModel<T: Float> {
    tokens: Embedding<T>,
    positions: LearnedPositions<T>,
    blocks: TransformerEncoder<T>,
    norm: LayerNorm<T>,
    head: Linear<T>,
}

fn language_model<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(7);
    let options = TransformerOptions::new(8, 2).dim_feedforward(16).gelu().norm_first().batch_first();
    let model = LanguageModel::<T> {
        tokens: Embedding::<f32>::builder(11, 8).padding_idx(0).build(generator),
        positions: LearnedPositions::new(6, 8, generator),
        blocks: TransformerEncoder::new(&options, 2, generator),
        norm: LayerNorm::new(8),
        head: Linear::new(8, 11, generator),
    };
    let tokens = Tensor::from([[1i64, 5, 0, 10, 2], [3, 3, 9, 4, 0]]);
    let export = Export::new().model(&model).batch("batch");
    case(
        "language_model",
        export,
        [],
        [("tokens", tokens)],
        ["logits"],
        |tape, [], [tokens]| {
            let x = model.positions.forward(model.tokens.forward(tape, tokens));
            let x = model.blocks.forward_masked(x, AttentionMasks::causal());
            [model.head.forward(model.norm.forward(x))]
        },
        SIZES,
    )
}

fn burgers<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(8);
    let layers: Vec<Linear<T>> =
        [2, 12, 12, 1].windows(2).map(|pair| Linear::new(pair[0], pair[1], generator)).collect();
    let (x, t) = (between(-1.0, 1.0, &[4, 1]), between(0.0, 1.0, &[4, 1]));
    let export = Export::new().model(&layers).batch("points");
    // The outputs are the solution and the residual of the equation, which contains second derivatives.
    case(
        "burgers",
        export,
        [("x", x), ("t", t)],
        [],
        ["u", "residual"],
        |_, [x, t], []| {
            let (last, hidden) = layers.split_last().unwrap();
            let inner = last.forward(hidden.iter().fold(cat(&[x, t], 1), |y, layer| layer.forward(y).tanh()));
            let u = t * (1.0 - x.square()) * inner - (x * std::f64::consts::PI).sin();
            let [ux, ut] = u.sum(..).grad([x, t]);
            let [uxx] = ux.sum(..).grad([x]);
            [u, ut + u * ux - uxx * 0.02]
        },
        SIZES,
    )
}

#[derive(Module)]
struct Rotation<T: Float> {
    matrix: Buffer<T>,
}

/// Returns a case of a model that reads a buffer and the buffer's transposed view. They have the same shape, so the export must not take one for the
/// other.
fn transposed_buffer<T: Float>() -> Case<T> {
    let model = Rotation { matrix: Buffer::new(between(-1.0, 1.0, &[2, 2])) };
    let export = Export::new().model(&model);
    let x = between(-1.0, 1.0, &[3, 2]);
    case(
        "transposed_buffer",
        export,
        [("x", x)],
        [],
        ["y"],
        |tape, [x], []| {
            let (matrix, back) = (tape.constant(&model.matrix.value), tape.constant(model.matrix.value.t()));
            [x.matmul(matrix) - x.matmul(back)]
        },
        &[],
    )
}

fn layers_of_images<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(9);
    let model = Sequential::new()
        .add(Conv2d::<T>::new(2, 8, 3, generator))
        .add(InstanceNorm2d::new(8))
        .add(SiLU)
        .add(PixelShuffle::new(2))
        .add(Dropout::new(0.5));
    let x = between(-1.0, 1.0, &[2, 2, 5, 5]);
    let export = Export::new().model(&model).batch("batch");
    case("layers_of_images", export, [("x", x)], [], ["y"], |_, [x], []| [model.forward(x)], SIZES)
}

fn layers_of_vectors<T: Float>() -> Case<T> {
    let generator = &mut Generator::new(10);
    let model = Sequential::new()
        .add(Linear::<T>::new(3, 8, generator))
        .add(RMSNorm::new([8]))
        .add(Mish)
        .add(Linear::new(8, 8, generator))
        .add(Softplus::default())
        .add(BatchNorm1d::new(8));
    let x = between(-1.0, 1.0, &[2, 3]);
    let export = Export::new().model(&model).batch("batch");
    case("layers_of_vectors", export, [("x", x)], [], ["y"], |_, [x], []| [model.forward(x)], SIZES)
}

/// Returns a case whose program has a size of 2n + 1 for a batch of n rows.
fn computed_sizes<T: Float>() -> Case<T> {
    let x = between(-1.0, 1.0, &[3, 2]);
    case(
        "computed_sizes",
        Export::new().batch("n"),
        [("x", x)],
        [],
        ["y", "z"],
        |tape, [x], []| {
            let n = x.shape()[0];
            let token = tape.constant(Tensor::from([[T::from_f64(0.5), T::from_f64(2.0)]]));
            let y = cat(&[token, x.expand([2, n, 2]).reshape([2 * n, 2])], 0); // [2n + 1, 2]
            let zeros = tape.constant(Tensor::zeros([n, 2]));
            [y.slice(0, 1..1 + 2 * n).flip(0), cat(&[zeros, x.slice(0, 1..n), x.slice(0, 0..1)], 0)]
        },
        SIZES,
    )
}
