use wengert_autograd::prelude::*;

use super::*;
use crate::layers::layer::Layer;
use crate::layers::testing::{input, layer_gradients};

fn trained(layer: &impl Layer<f64>, x: &Tensor<f64>) -> Tensor<f64> {
    layer.forward(Tape::training(&mut Generator::new(3)).constant(x)).value()
}

#[test]
fn evaluation_is_the_identity() {
    let x = input([2, 3, 4]);
    let layers: [&dyn Layer<f64>; 4] =
        [&Dropout::new(0.5), &Dropout1d::new(0.5), &AlphaDropout::new(0.5), &FeatureAlphaDropout::new(0.5)];
    for layer in layers {
        assert_eq!(layer.try_forward(Tape::new().constant(&x)).unwrap().value(), x);
    }
}

#[test]
fn channels_are_dropped_together() {
    let ones = Tensor::ones([20, 10, 3]);
    let y = trained(&Dropout1d::new(0.75), &ones);
    assert_eq!(y, y.select(2, 0).unsqueeze(-1).expand([20, 10, 3]));
    assert!(y.iter().all(|y| y == 0.0 || y == 4.0));
    // The number of kept channels is 50 on average, with a standard deviation of √(200 · 0.25 · 0.75) = 6.1. The bound is four standard
    // deviations.
    let kept = y.iter().filter(|&y| y > 0.0).count() / 3;
    assert!(kept.abs_diff(50) < 25, "{kept}");
    let without_batch = trained(&Dropout2d::new(0.5), &Tensor::ones([10, 3, 2]));
    assert_eq!(without_batch, without_batch.select(2, 0).select(1, 0).reshape([10, 1, 1]).expand([10, 3, 2]));
    let y = trained(&FeatureAlphaDropout::new(0.5), &ones);
    assert_eq!(y, y.select(2, 0).unsqueeze(-1).expand([20, 10, 3]));
    assert_eq!(trained(&Dropout1d::new(0.0), &ones), ones);
}

#[test]
fn alpha_dropout_keeps_mean_and_variance() {
    let x = Tensor::<f64>::randn([20_000], &mut Generator::new(5));
    for p in [0.1, 0.5, 0.9] {
        let y = trained(&AlphaDropout::new(p), &x);
        // The bounds are four standard deviations: 4 / √20000 = 0.028 for the mean, and at most 2.5 times this number
        // for the variance.
        assert!(y.mean(..).item().abs() < 0.03 && (y.var(.., 1.0).item() - 1.0).abs() < 0.08, "{p}");
    }
    assert_eq!(trained(&AlphaDropout::new(1.0), &x), Tensor::zeros([20_000]));
}

#[test]
fn each_layer_and_each_step_drops_other_elements() {
    let x = Tensor::<f64>::ones([100]);
    let layer = Dropout::new(0.5);
    let generator = &mut Generator::new(0);
    let tape = Tape::training(generator);
    let first = layer.forward(tape.constant(&x)).value();
    assert_ne!(first, layer.forward(tape.constant(&x)).value());
    assert_ne!(first, layer.forward(Tape::training(generator).constant(&x)).value());
    assert_eq!(first, layer.forward(Tape::training(&mut Generator::new(0)).constant(&x)).value());
}

#[test]
fn gradients_agree_with_central_differences() {
    layer_gradients(Dropout::new(0.5), &input([5]));
    layer_gradients(Dropout3d::new(0.5), &input([2, 3, 1, 2, 1]));
    layer_gradients(AlphaDropout::new(0.3), &input([5]));
    layer_gradients(FeatureAlphaDropout::new(0.3), &input([2, 3, 2]));
}

#[test]
fn wrong_probabilities_and_shapes_are_errors() {
    let text = Dropout::try_new(1.5).unwrap_err().to_string();
    assert_eq!(text, "Invalid p value: 1.5; expected a probability from 0 to 1");
    assert!(AlphaDropout::try_new(f64::NAN).is_err());
    let tape = Tape::<f64>::new();
    let error = Dropout2d::new(0.5).try_forward(tape.constant(Tensor::ones([3]))).unwrap_err().to_string();
    assert!(error.contains("expected 3D or 4D input (got 1D input)"), "{error}");
}

#[test]
fn a_step_with_gradients_of_an_evaluating_tape_is_reported() {
    use crate::{
        BatchNorm1d, BatchNorm2d, GRU, InstanceNorm1d, Linear, Module, MultiheadAttention, Optimizer as _, RReLU, Sgd,
        SpectralNorm, TransformerEncoderLayer, TransformerOptions,
    };
    /// Makes a step of the parameters of `model` and of a scalar that multiplies a random input of shape `x`. Returns the layers that
    /// the step's warnings name.
    fn warned<M: Module<f64>>(
        model: M,
        x: &[usize],
        training: bool,
        forward: impl for<'t> Fn(&M, Var<'t, f64>) -> Var<'t, f64>,
    ) -> Vec<&'static str> {
        let warnings = wengert_tensor::compat::collect();
        let mut model = (model, Parameter::new(Tensor::scalar(1.5)));
        let tape = if training { Tape::training(&mut Generator::new(0)) } else { Tape::new() };
        let (_, gradients) = tape.value_and_gradients(|tape| {
            let input = tape.constant(Tensor::randn(x, &mut Generator::new(1)));
            forward(&model.0, input * tape.parameter(&model.1)).square().sum(..)
        });
        Sgd::new(0.1).step(&mut model, &gradients);
        let layer = |warning: &compat::Warning| match warning {
            compat::Warning::Evaluating { layer, .. } => *layer,
            other => panic!("{other}"),
        };
        warnings.warnings().iter().map(layer).collect()
    }
    use wengert_tensor::compat;
    let generator = &mut Generator::new(2);
    let weight = Tensor::randn([3, 4], generator);
    let spectral = || SpectralNorm::<f64>::new(&weight, &mut Generator::new(3));
    fn by_spectral<'t>(norm: &SpectralNorm<f64>, x: Var<'t, f64>) -> Var<'t, f64> {
        x.linear(norm.weight(x.tape()), None)
    }
    let attention =
        |p| -> MultiheadAttention<f64> { MultiheadAttention::builder(4, 2).dropout(p).build(&mut Generator::new(3)) };
    let gru = |p| -> GRU<f64> { GRU::builder(4, 3).num_layers(2).dropout(p).build(&mut Generator::new(3)) };
    let encoder = |p| -> TransformerEncoderLayer<f64> {
        TransformerEncoderLayer::new(&TransformerOptions::new(4, 2).dropout(p), &mut Generator::new(3))
    };
    for (training, expected) in [(false, 1), (true, 0)] {
        let layers = [
            warned(Dropout::new(0.5), &[5], training, |layer, x| layer.forward(x)),
            warned(Dropout1d::new(0.5), &[2, 3, 4], training, |layer, x| layer.forward(x)),
            warned(AlphaDropout::new(0.5), &[5], training, |layer, x| layer.forward(x)),
            warned(FeatureAlphaDropout::new(0.5), &[2, 3], training, |layer, x| layer.forward(x)),
            warned(RReLU::new(0.1, 0.3), &[5], training, |layer, x| layer.forward(x)),
            warned(spectral(), &[2, 4], training, by_spectral),
            warned(InstanceNorm1d::new(3).track_running_stats(true), &[2, 3, 4], training, |layer, x| layer.forward(x)),
            warned(BatchNorm1d::new(3), &[2, 3], training, |layer, x| layer.forward(x)),
            warned(BatchNorm2d::new(3).affine(false), &[2, 3, 2, 2], training, |layer, x| layer.forward(x)),
            warned(attention(0.5), &[3, 2, 4], training, |layer, x| layer.forward(x)),
            warned(gru(0.5), &[3, 2, 4], training, |layer, x| layer.forward(x)),
            warned(encoder(0.5), &[3, 2, 4], training, |layer, x| layer.forward(x)),
        ];
        assert!(layers.iter().all(|warnings| warnings.len() == expected), "{layers:?}");
        if !training {
            let names = ["Dropout", "Dropout", "AlphaDropout", "AlphaDropout", "RReLU", "SpectralNorm", "InstanceNorm"];
            assert_eq!(layers[..7].concat(), names);
            assert_eq!(layers[7..9].concat(), ["BatchNorm", "BatchNorm"]);
        }
    }
    // These layers behave equally in training and evaluation, or are frozen, so there is no warning.
    let mut frozen = spectral();
    frozen.freeze("");
    let silent = [
        warned(Dropout::new(0.0), &[5], false, |layer, x| layer.forward(x)),
        warned(AlphaDropout::new(0.0), &[5], false, |layer, x| layer.forward(x)),
        warned(Dropout1d::new(0.0), &[2, 3, 4], false, |layer, x| layer.forward(x)),
        warned(attention(0.0), &[3, 2, 4], false, |layer, x| layer.forward(x)),
        warned(gru(0.0), &[3, 2, 4], false, |layer, x| layer.forward(x)),
        warned(encoder(0.0), &[3, 2, 4], false, |layer, x| layer.forward(x)),
        warned(frozen, &[2, 4], false, by_spectral),
        warned(Linear::new(4, 2, generator), &[2, 4], false, |layer, x| layer.forward(x)),
    ];
    assert!(silent.iter().all(Vec::is_empty), "{silent:?}");
}

#[test]
fn errors_name_the_layer_and_the_line_that_made_it() {
    let tape = Tape::<f64>::new();
    let x = tape.constant(Tensor::ones([3]));
    let line = line!() + 1;
    let layer = Dropout2d::new(0.5);
    let text = layer.try_forward(x).unwrap_err().to_string();
    assert!(text.contains("expected 3D or 4D input (got 1D input)"), "{text}");
    let created_at = format!("in the layer Dropout2d(p=0.5) on an input of shape [3], made at {}:{line}:", file!());
    assert!(text.contains(&created_at), "{text}");
}

#[test]
fn dropout_with_probability_0_records_nothing() {
    let tape = Tape::<f64>::training(&mut Generator::new(0));
    let x = tape.constant(Tensor::ones([2, 3, 4]));
    let recorded = tape.len();
    for y in
        [Dropout1d::new(0.0).forward(x), AlphaDropout::new(0.0).forward(x), FeatureAlphaDropout::new(0.0).forward(x)]
    {
        assert_eq!(y.value(), Tensor::ones([2, 3, 4]));
    }
    assert_eq!(tape.len(), recorded);
}
