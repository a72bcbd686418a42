//! Layers have the initial values, results, gradients and running statistics of their PyTorch counterparts. `sequences_are_pytorchs.rs`
//! compares recurrent networks, attention and transformers.

use serde_json::Value;
use wengert::nn::{
    AdaptiveAvgPool, AdaptiveMaxPool, AvgPool, BagMode, BatchNorm, Bilinear, CELU, Conv, ConvBuilder, ConvTranspose,
    CosineSimilarity, ELU, Embedding, EmbeddingBag, Flatten, Fold, GELU, GELUTanh, GLU, GroupNorm, Hardshrink,
    Hardsigmoid, Hardswish, Hardtanh, Identity, InstanceNorm, InterpolateMode, LPPool, Layer, LayerNorm, LeafMut,
    LeakyReLU, Linear, LogSigmoid, LogSoftmax, MaxPool, MaxUnpool, Mish, Module, PReLU, PadMode, PairwiseDistance,
    PixelShuffle, RMSNorm, ReLU, ReLU6, SELU, SiLU, Sigmoid, Softmax, Softmin, Softplus, Softshrink, Softsign, Tanh,
    Tanhshrink, Threshold, Unflatten, Unfold, Upsample, update_buffers,
};
use wengert::prelude::*;

use crate::fixtures::{Fixture, cases, fixture, initial};

/// The entries of `nn.json` that are not layers here, or that other tests compare.
const LEFT_OUT: [&str; 12] = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "LocalResponseNorm",
    "MultiheadAttention",
    "RNN",
    "RNNCell",
    "Transformer",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
];

fn try_option(case: &Fixture, name: &str) -> Option<&'static Value> {
    case.about["options"].get(name)
}

/// Returns an option of the case that is a boolean, or `default` if the case does not have it.
fn flag(case: &Fixture, name: &str, default: bool) -> bool {
    try_option(case, name).map_or(default, |value| value.as_bool().unwrap())
}

/// Returns an option of the case that is one size or several sizes, or `default` if the case does not have it.
fn sizes(case: &Fixture, name: &str, default: isize) -> Vec<isize> {
    match try_option(case, name) {
        None => vec![default],
        Some(Value::Array(all)) => all.iter().map(|size| size.as_i64().unwrap() as isize).collect(),
        Some(one) => vec![one.as_i64().unwrap() as isize],
    }
}

fn size(case: &Fixture, name: &str) -> isize {
    case.number(name) as isize
}

/// Returns the sizes of the dimensions that a layer normalizes over: the option, or the last size of the input.
fn normalized_shape(case: &Fixture) -> Vec<isize> {
    let input = case.get("input").shape().to_vec();
    sizes(case, "normalized_shape", input[input.len() - 1] as isize)
}

/// Returns the size, the dilation, the padding and the stride of sliding windows.
fn windows(case: &Fixture) -> [Vec<isize>; 4] {
    [("kernel_size", 0), ("dilation", 1), ("padding", 0), ("stride", 1)]
        .map(|(name, default)| sizes(case, name, default))
}

fn generator() -> Generator {
    Generator::new(1)
}

/// Applies the case's settings that convolutions and transposed convolutions share to `builder`.
fn convolution<const D: usize, const TRANSPOSED: bool>(
    case: &Fixture,
    builder: ConvBuilder<D, TRANSPOSED>,
) -> ConvBuilder<D, TRANSPOSED> {
    let kernel = case.get("weight").shape()[2..].to_vec();
    let builder = builder.kernel(kernel.try_into().unwrap()).groups(sizes(case, "groups", 1)[0] as usize);
    let builder = builder.stride(sizes(case, "stride", 1)).dilation(sizes(case, "dilation", 1));
    builder.bias(flag(case, "bias", true))
}

fn over_dimensions<const D: usize>(case: &Fixture, kind: &str) -> Option<Box<dyn Layer<f64>>> {
    let channels = |axis: usize| case.get("weight").shape()[axis];
    let groups = || sizes(case, "groups", 1)[0] as usize;
    let same = || try_option(case, "padding") == Some(&Value::from("same"));
    Some(match kind {
        "Conv" if same() => {
            let builder = Conv::<D, f32>::builder(channels(1) * groups(), channels(0), 1);
            Box::new(convolution(case, builder).same().build(&mut generator()))
        }
        "Conv" => {
            let builder = Conv::<D, f32>::builder(channels(1) * groups(), channels(0), 1);
            let builder = convolution(case, builder).padding(sizes(case, "padding", 0));
            let builder = match try_option(case, "padding_mode").map(|mode| mode.as_str().unwrap()) {
                None => builder,
                Some("reflect") => builder.padding_mode(PadMode::Reflect),
                Some("replicate") => builder.padding_mode(PadMode::Replicate),
                Some("circular") => builder.padding_mode(PadMode::Circular),
                Some(other) => panic!("{}: a padding {other}", case.name),
            };
            Box::new(builder.build(&mut generator()))
        }
        "ConvTranspose" => {
            let builder = ConvTranspose::<D, f32>::builder(channels(0), channels(1) * groups(), 1);
            let builder = builder.padding(sizes(case, "padding", 0)).output_padding(sizes(case, "output_padding", 0));
            Box::new(convolution(case, builder).build(&mut generator()))
        }
        "MaxPool" => {
            let mut pool = MaxPool::<D>::new(sizes(case, "kernel_size", 0)).padding(sizes(case, "padding", 0));
            pool = pool.dilation(sizes(case, "dilation", 1)).ceil_mode(flag(case, "ceil_mode", false));
            Box::new(match try_option(case, "stride") {
                Some(_) => pool.stride(sizes(case, "stride", 0)),
                None => pool,
            })
        }
        "AvgPool" => {
            let mut pool = AvgPool::<D>::new(sizes(case, "kernel_size", 0)).padding(sizes(case, "padding", 0));
            pool = pool.ceil_mode(flag(case, "ceil_mode", false));
            pool = pool.count_include_pad(flag(case, "count_include_pad", true));
            Box::new(match try_option(case, "stride") {
                Some(_) => pool.stride(sizes(case, "stride", 0)),
                None => pool,
            })
        }
        "LPPool" => Box::new(LPPool::<D>::new(case.number("norm_type"), sizes(case, "kernel_size", 0))),
        "AdaptiveAvgPool" => Box::new(AdaptiveAvgPool::<D>::new(sizes(case, "output_size", 0))),
        "AdaptiveMaxPool" => Box::new(AdaptiveMaxPool::<D>::new(sizes(case, "output_size", 0))),
        "InstanceNorm" => {
            let norm = InstanceNorm::<D, f64>::new(case.get("input").shape()[1]).affine(flag(case, "affine", false));
            Box::new(match try_option(case, "eps") {
                Some(_) => norm.eps(case.number("eps")),
                None => norm,
            })
        }
        _ => return None,
    })
}

/// Returns the layer that a case describes, or `None` if this function does not make layers of this kind.
fn layer(case: &Fixture) -> Option<Box<dyn Layer<f64>>> {
    let kind = case.about["layer"].as_str().unwrap();
    if let Some((kind, dimensions)) = ["1d", "2d", "3d"].iter().find_map(|d| Some((kind.strip_suffix(d)?, *d))) {
        let layer = match dimensions {
            "1d" => over_dimensions::<1>(case, kind),
            "2d" => over_dimensions::<2>(case, kind),
            _ => over_dimensions::<3>(case, kind),
        };
        if layer.is_some() {
            return layer;
        }
    }
    let number = |name: &str| case.number(name);
    Some(match kind {
        "Linear" => {
            let [outputs, inputs] = *case.get("weight").shape().sizes() else { panic!("a matrix") };
            match flag(case, "bias", true) {
                true => Box::new(Linear::new(inputs, outputs, &mut generator())),
                false => Box::new(Linear::without_bias(inputs, outputs, &mut generator())),
            }
        }
        "LayerNorm" => {
            let norm =
                LayerNorm::new(normalized_shape(case)).eps(try_option(case, "eps").map_or(1e-5, |_| number("eps")));
            let norm = norm.elementwise_affine(flag(case, "elementwise_affine", true));
            Box::new(if flag(case, "bias", true) { norm } else { norm.without_bias() })
        }
        "RMSNorm" => {
            let norm = RMSNorm::new(normalized_shape(case));
            Box::new(if try_option(case, "eps").is_some() { norm.eps(number("eps")) } else { norm })
        }
        "GroupNorm" => {
            let norm = GroupNorm::new(number("num_groups") as usize, case.get("input").shape()[1]);
            Box::new(norm.affine(flag(case, "affine", true)))
        }
        "PReLU" => Box::new(PReLU::new(number("num_parameters") as usize)),
        "ReLU" => Box::new(ReLU),
        "ReLU6" => Box::new(ReLU6),
        "Sigmoid" => Box::new(Sigmoid),
        "LogSigmoid" => Box::new(LogSigmoid),
        "Tanh" => Box::new(Tanh),
        "Tanhshrink" => Box::new(Tanhshrink),
        "SELU" => Box::new(SELU),
        "GELU" if try_option(case, "approximate").is_some() => Box::new(GELUTanh),
        "GELU" => Box::new(GELU),
        "SiLU" => Box::new(SiLU),
        "Mish" => Box::new(Mish),
        "Softsign" => Box::new(Softsign),
        "Hardswish" => Box::new(Hardswish),
        "Hardsigmoid" => Box::new(Hardsigmoid),
        "LeakyReLU" => Box::new(LeakyReLU::new(number("negative_slope"))),
        "ELU" => Box::new(ELU::new(number("alpha"))),
        "CELU" => Box::new(CELU::new(number("alpha"))),
        "Softplus" => Box::new(Softplus::new(number("beta"), number("threshold"))),
        "Hardtanh" => Box::new(Hardtanh::new(number("min_val"), number("max_val"))),
        "Hardshrink" => Box::new(Hardshrink::new(number("lambd"))),
        "Softshrink" => Box::new(Softshrink::new(number("lambd"))),
        "Threshold" => Box::new(Threshold::new(number("threshold"), number("value"))),
        "Softmax" => Box::new(Softmax::new(size(case, "dim"))),
        "Softmax2d" => Box::new(Softmax::new(-3)),
        "Softmin" => Box::new(Softmin::new(size(case, "dim"))),
        "LogSoftmax" => Box::new(LogSoftmax::new(size(case, "dim"))),
        "GLU" => Box::new(GLU::new(size(case, "dim"))),
        "Flatten" => Box::new(Flatten::new(size(case, "start_dim"), size(case, "end_dim"))),
        "Unflatten" => Box::new(Unflatten::new(size(case, "dim"), sizes(case, "unflattened_size", 0))),
        "Unfold" => {
            let [kernel, dilation, padding, stride] = windows(case);
            Box::new(Unfold::new(kernel).dilation(dilation).padding(padding).stride(stride))
        }
        "Fold" => {
            let [kernel, dilation, padding, stride] = windows(case);
            Box::new(
                Fold::new(sizes(case, "output_size", 0), kernel).dilation(dilation).padding(padding).stride(stride),
            )
        }
        "PixelShuffle" => Box::new(PixelShuffle::new(number("upscale_factor") as usize)),
        "Upsample" if case.name.ends_with("/nearest") => {
            Box::new(Upsample::by(number("scale_factor") as usize, InterpolateMode::Nearest))
        }
        "Upsample" => {
            let mode = InterpolateMode::Linear { align_corners: false };
            Box::new(Upsample::to_size(sizes(case, "size", 0), mode))
        }
        _ => return None,
    })
}

/// Sets the parameters of the model to the values of the case, and checks that their names are the names in the case.
fn load(case: &Fixture, model: &mut (impl Module<f64> + ?Sized)) {
    let names: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
    let expected = case.about["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(names, expected.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>(), "{}", case.name);
    for (path, leaf) in model.leaves_mut() {
        if let LeafMut::Parameter(parameter) = leaf {
            let value = case.get(&path);
            assert_eq!(parameter.value.shape(), value.shape(), "{}/{path}", case.name);
            parameter.value = value;
        }
    }
}

/// Compares the output, and the gradients of the inputs and the parameters, with the case.
fn check(case: &Fixture, model: &(impl Module<f64> + ?Sized), output: Var<'_, f64>, inputs: &[(&str, Var<'_, f64>)]) {
    case.check("output", &output.value());
    let gradients = (output * case.get("upstream")).sum(..).backward();
    for (name, input) in inputs {
        let (name, gradient) = (format!("grad.{name}"), gradients.of(*input));
        if case.name == "activation/celu" {
            // PyTorch's derivative rounds 1/α to f32 (`1.0/alpha.toFloat()` in its derivatives.yaml), so the bound is larger.
            let off = gradient - case.get(&name);
            assert!(off.iter().all(|off| off.abs() < 1e-7), "{}/{name}", case.name);
        } else {
            case.check(&name, gradient);
        }
    }
    for (path, parameter) in model.named_parameters() {
        case.check(&format!("grad.{path}"), gradients.of(parameter));
    }
}

/// Returns true if one of the functions below compares the case.
fn has_its_own_test(case: &Fixture) -> bool {
    let prefixes = [
        "batch_norm",
        "bilinear/",
        "cosine_similarity/",
        "embedding",
        "instance_norm2d/statistics",
        "max_unpool",
        "pairwise_distance/",
    ];
    prefixes.iter().any(|prefix| case.name.starts_with(prefix))
}

#[test]
fn layers_with_one_input() {
    let mut compared = 0;
    for case in cases("").into_iter().filter(|case| !has_its_own_test(case)) {
        let Some(kind) = case.about["layer"].as_str() else { continue };
        let Some(mut layer) = layer(&case) else {
            assert!(LEFT_OUT.contains(&kind), "{}: nothing compares {kind}", case.name);
            continue;
        };
        load(&case, &mut layer);
        let tape = Tape::new();
        let input = tape.var(&case.get("input"));
        check(&case, &layer, layer.forward(input), &[("input", input)]);
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn bilinear() {
    for case in cases("bilinear/") {
        let [outputs, in1, in2] = *case.get("weight").shape().sizes() else { panic!("three dimensions") };
        let mut layer = Bilinear::new(in1, in2, outputs, &mut generator());
        if !case.has("bias") {
            layer.bias = None;
        }
        load(&case, &mut layer);
        let tape = Tape::new();
        let [x1, x2] = ["input1", "input2"].map(|name| tape.var(&case.get(name)));
        check(&case, &layer, layer.forward(x1, x2), &[("input1", x1), ("input2", x2)]);
    }
}

#[test]
fn distances() {
    for case in cases("cosine_similarity/").iter().chain(&cases("pairwise_distance/")) {
        let tape = Tape::new();
        let inputs @ [x1, x2] = ["x1", "x2"].map(|name| tape.var(&case.get(name)));
        let eps = |default| try_option(case, "eps").map_or(default, |eps| eps.as_f64().unwrap());
        let y = if case.about["layer"] == "CosineSimilarity" {
            CosineSimilarity::new(size(case, "dim")).eps(eps(1e-8)).forward(x1, x2)
        } else {
            let distance = PairwiseDistance::new(case.number("p")).eps(eps(1e-6));
            if flag(case, "keepdim", false) { distance.keepdim() } else { distance }.forward(x1, x2)
        };
        check(case, &Identity, y, &[("x1", inputs[0]), ("x2", inputs[1])]);
    }
}

fn max_unpool<const D: usize>() {
    for case in cases(&format!("max_unpool{D}d/")) {
        let layer = MaxUnpool::<D>::new(sizes(&case, "kernel_size", 0));
        let layer = match case.option("stride").is_null() {
            true => layer,
            false => layer.stride(sizes(&case, "stride", 0)),
        };
        let tape = Tape::new();
        let x = tape.var(&case.get("input"));
        let size: Vec<usize> = sizes(&case, "output_size", 0).iter().map(|&size| size as usize).collect();
        check(&case, &layer, layer.forward(x, &case.integers("indices"), Some(&size)), &[("input", x)]);
    }
}

#[test]
fn max_unpools() {
    max_unpool::<1>();
    max_unpool::<2>();
    max_unpool::<3>();
}

#[test]
fn embeddings() {
    for case in cases("embedding/") {
        let [rows, width] = *case.get("weight").shape().sizes() else { panic!("a matrix") };
        let mut builder = Embedding::builder(rows, width);
        if try_option(&case, "padding_idx").is_some() {
            builder = builder.padding_idx(case.number("padding_idx") as usize);
        }
        let mut layer = builder.build(&mut generator());
        load(&case, &mut layer);
        let tape = Tape::new();
        check(&case, &layer, layer.forward(&tape, &case.integers("input")), &[]);
    }
}

#[test]
fn embedding_bags() {
    for case in cases("embedding_bag/") {
        let [rows, width] = *case.get("weight").shape().sizes() else { panic!("a matrix") };
        let mode = match case.option("mode").as_str().unwrap() {
            "sum" => BagMode::Sum,
            "mean" => BagMode::Mean,
            _ => BagMode::Max,
        };
        let mut builder = EmbeddingBag::builder(rows, width).mode(mode);
        builder = builder.include_last_offset(flag(&case, "include_last_offset", false));
        if try_option(&case, "padding_idx").is_some() {
            builder = builder.padding_idx(case.number("padding_idx") as usize);
        }
        let mut layer = builder.build(&mut generator());
        load(&case, &mut layer);
        let tape = Tape::new();
        let offsets = case.has("offsets").then(|| case.integers("offsets"));
        let weights = case.has("per_sample_weights").then(|| tape.var(&case.get("per_sample_weights")));
        let inputs: Vec<_> = weights.iter().map(|&weights| ("per_sample_weights", weights)).collect();
        check(&case, &layer, layer.forward(&tape, &case.integers("input"), offsets.as_ref(), weights), &inputs);
    }
}

/// Compares three training batches and the gradients that the case has, then the statistics, then one batch in
/// evaluation.
fn running_statistics(case: &Fixture, mut layer: impl Layer<f64>) {
    load(case, &mut layer);
    for step in 0..3 {
        let tape = Tape::training(&mut generator());
        let x = tape.var(&case.get(&format!("input.{step}")));
        let y = layer.forward(x);
        case.check(&format!("output.{step}"), &y.value());
        let upstream = format!("upstream.{step}");
        let upstream = if case.has(&upstream) { case.get(&upstream) } else { Tensor::ones(y.shape()) };
        let gradients = (y * upstream).sum(..).backward();
        if case.has(&format!("grad.input.{step}")) {
            case.check(&format!("grad.input.{step}"), gradients.of(x));
            for (path, parameter) in layer.named_parameters() {
                case.check(&format!("grad.{path}.{step}"), gradients.of(parameter));
            }
        }
        update_buffers(&mut layer, &gradients);
    }
    for (path, buffer) in layer.named_buffers() {
        let after = format!("after.{path}");
        match buffer.as_any().downcast_ref::<wengert::nn::Buffer<f64>>() {
            Some(statistic) => case.check(&after, &statistic.value),
            None => assert_eq!(buffer.to_bytes(), case.integers(&after).item().to_le_bytes(), "{}/{after}", case.name),
        }
    }
    let tape = Tape::new();
    let y = layer.forward(tape.constant(case.get("input.eval")));
    case.check("output.eval", &y.value());
}

fn batch_norm<const D: usize>() {
    for case in cases(&format!("batch_norm{D}d/")) {
        let mut norm = BatchNorm::<D, f64>::new(case.number("num_features") as usize);
        if let Some(momentum) = try_option(&case, "momentum") {
            norm = norm.momentum(momentum.as_f64());
        }
        if try_option(&case, "eps").is_some() {
            norm = norm.eps(case.number("eps"));
        }
        norm = norm.affine(flag(&case, "affine", true));
        running_statistics(&case, norm.track_running_stats(flag(&case, "track_running_stats", true)));
    }
}

#[test]
fn batch_norms() {
    batch_norm::<1>();
    batch_norm::<2>();
    batch_norm::<3>();
}

#[test]
fn instance_norm_with_statistics() {
    running_statistics(
        &fixture("instance_norm2d/statistics"),
        InstanceNorm::<2, f64>::new(3).track_running_stats(true),
    );
}

/// The layers whose initial values are compared with the entry `initial` of `nn.json`. The entry also describes recurrent networks and
/// attention, whose bounds are tested beside their code.
const INITIALIZED: [&str; 18] = [
    "Linear",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "PReLU",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LayerNorm",
    "GroupNorm",
    "InstanceNorm2d",
    "RMSNorm",
];

/// Returns a new layer of this kind, with the options that its entry of `initial` has.
fn new_layer(kind: &str, generator: &mut Generator) -> Box<dyn Module<f64>> {
    match kind {
        "Linear" => Box::new(Linear::new(16, 8, generator)),
        "Bilinear" => Box::new(Bilinear::new(16, 4, 8, generator)),
        "Conv1d" => Box::new(Conv::<1>::builder(4, 6, 3).groups(2).build(generator)),
        "Conv2d" => Box::new(Conv::<2, f64>::new(4, 6, 3, generator)),
        "Conv3d" => Box::new(Conv::<3, f64>::new(4, 6, 3, generator)),
        "ConvTranspose1d" => Box::new(ConvTranspose::<1>::builder(4, 6, 3).groups(2).build(generator)),
        "ConvTranspose2d" => Box::new(ConvTranspose::<2, f64>::new(4, 6, 3, generator)),
        "ConvTranspose3d" => Box::new(ConvTranspose::<3, f64>::new(4, 6, 3, generator)),
        "Embedding" => Box::new(Embedding::builder(20, 4).padding_idx(3).build(generator)),
        "EmbeddingBag" => Box::new(EmbeddingBag::new(20, 4, generator)),
        "PReLU" => Box::new(PReLU::new(3)),
        "BatchNorm1d" => Box::new(BatchNorm::<1, f64>::new(4)),
        "BatchNorm2d" => Box::new(BatchNorm::<2, f64>::new(4)),
        "BatchNorm3d" => Box::new(BatchNorm::<3, f64>::new(4)),
        "LayerNorm" => Box::new(LayerNorm::new([4])),
        "GroupNorm" => Box::new(GroupNorm::new(2, 4)),
        "InstanceNorm2d" => Box::new(InstanceNorm::<2, f64>::new(4).affine(true)),
        _ => Box::new(RMSNorm::new([4])),
    }
}

/// Checks the parameters of 300 layers. Constants must be equal, and uniform values must be within their bound. A random parameter has n
/// values (at least 1800) in total. Their variance must be within 6 standard deviations of the expected variance. For a normal distribution
/// this standard deviation is √(2 / n) times the variance, and for a uniform one it is smaller. The mean must be within 6 · σ / √n of the
/// expected mean.
#[test]
fn initial_values() {
    for kind in INITIALIZED {
        let (about, generator) = (initial(kind), &mut generator());
        for (name, law) in about["parameters"].as_object().unwrap() {
            let mut values = Vec::new();
            for _ in 0..300 {
                let model = new_layer(kind, generator);
                let parameters = model.named_parameters();
                let (_, parameter) = parameters.iter().find(|(path, _)| path == name).unwrap();
                // The padding row of an embedding is left out, because it is checked separately.
                let rows = parameter.value.to_vec();
                let padding = if kind == "Embedding" { 3 * 4..4 * 4 } else { 0..0 };
                assert!(rows[padding.clone()].iter().all(|&value| value == 0.0), "{kind}.{name}");
                values.extend([&rows[..padding.start], &rows[padding.end..]].concat());
            }
            let number = |name: &str| law[name].as_f64().unwrap();
            let (mean, variance) = match law["distribution"].as_str().unwrap() {
                "constant" => {
                    assert!(values.iter().all(|&value| value == number("value")), "{kind}.{name}");
                    continue;
                }
                "uniform" => {
                    assert!(values.iter().all(|value| value.abs() <= number("bound")), "{kind}.{name}");
                    (0.0, number("bound").powi(2) / 3.0)
                }
                _ => (number("mean"), number("std").powi(2)),
            };
            let n = values.len() as f64;
            let found = values.iter().sum::<f64>() / n;
            let spread = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / n;
            assert!((found - mean).abs() <= 6.0 * (variance / n).sqrt(), "{kind}.{name}: mean {found}");
            assert!((spread / variance - 1.0).abs() <= 6.0 * (2.0 / n).sqrt(), "{kind}.{name}: variance {spread}");
        }
    }
}
