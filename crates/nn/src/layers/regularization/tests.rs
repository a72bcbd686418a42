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
