use wengert_autograd::prelude::*;
use wengert_tensor::ops::{ConvOptions, PadMode};

use super::*;
use crate::layers::layer::Layer;
use crate::layers::testing::{input, layer_gradients};
use crate::module::Module;

#[test]
fn values_and_gradients_follow_the_definition() {
    let layer = Conv2d::<f64> {
        weight: Parameter::new(Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]])),
        bias: Some(Parameter::new(Tensor::from([10.0]))),
        options: ConvOptions::default().stride(2).padding(1),
    };
    let tape = Tape::new();
    let x = tape.var(&Tensor::from([[[1.0, 2.0], [3.0, 5.0]]]));
    let y = layer.forward(x);
    assert_eq!(y.value(), Tensor::from([[[14.0, 16.0], [16.0, 15.0]]]));
    let gradients = (y * &Tensor::from([[[1.0, 10.0], [100.0, 1000.0]]])).sum(..).backward();
    // Each pixel belongs to exactly one window. So its gradient is one weight, times the gradient of the output of that window.
    assert_eq!(gradients.of(x), &Tensor::from([[[4.0, 30.0], [200.0, 1000.0]]]));
    assert_eq!(gradients.of(&layer.weight).to_vec(), [5000.0, 300.0, 20.0, 1.0]);
    assert_eq!(gradients.of(layer.bias.as_ref().unwrap()).to_vec(), [1111.0]);
}

#[test]
fn names_shapes_and_bounds() {
    let builder = Conv2d::builder(4, 6, 3).kernel([3, 5]).groups(2).dilation(2);
    let layer: Conv2d = builder.clone().build(&mut Generator::new(1));
    let paths: Vec<String> = layer.named_parameters().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["weight", "bias"]);
    assert_eq!(layer.weight.value.shape(), &[6, 2, 3, 5]);
    // The bound of the initial values is 1 / √n, where n is 2 channels per group times a window of 15 elements.
    let bound = 1.0 / 30f32.sqrt();
    let values = || layer.weight.value.iter().chain(layer.bias.as_ref().unwrap().value.iter());
    assert!(
        values().all(|w| w.abs() <= bound) && values().any(|w| w < -0.8 * bound) && values().any(|w| w > 0.8 * bound)
    );
    let tape = Tape::new();
    assert_eq!(layer.forward(tape.constant(Tensor::zeros([4, 9, 9]))).shape(), [6, 5, 1]);
    let without: Conv2d = builder.bias(false).build(&mut Generator::new(1));
    assert_eq!(without.parameters().len(), 1);
}

#[test]
fn a_transposed_convolution_spreads_each_element_over_a_window() {
    let mut layer: ConvTranspose1d<f64> = ConvTranspose1d::builder(1, 1, 3).stride(2).build(&mut Generator::new(1));
    layer.weight.value = Tensor::from([[[1.0, 10.0, 100.0]]]);
    layer.bias.as_mut().unwrap().value = Tensor::from([0.5]);
    let y = layer.forward(Tape::new().constant(Tensor::from([[1.0, 2.0]]))).value();
    assert_eq!(y.to_vec(), [1.5, 10.5, 102.5, 20.5, 200.5]);
}

#[test]
#[should_panic(expected = "out_channels must be divisible by groups")]
fn groups_that_do_not_divide_the_channels_are_refused_when_the_layer_is_built() {
    let _: ConvTranspose2d = ConvTranspose2d::builder(4, 3, 2).groups(2).bias(false).build(&mut Generator::new(0));
}

#[test]
#[should_panic(expected = "in_channels must be divisible by groups")]
fn groups_that_do_not_divide_the_input_channels_are_refused() {
    let _: Conv1d = Conv1d::builder(3, 4, 2).groups(2).build(&mut Generator::new(0));
}

#[test]
fn shapes_bounds_and_gradients_of_transposed_convolutions() {
    let builder = ConvTranspose2d::builder(4, 6, 3).groups(2).stride(2).padding(1).output_padding([1, 0]);
    let layer: ConvTranspose2d<f64> = builder.clone().build(&mut Generator::new(1));
    assert_eq!(layer.weight.value.shape(), &[4, 3, 3, 3]);
    // The bound of the initial values is 1 / √n, where n is 3 channels per group times a window of 9 elements.
    let bound = 1.0 / 27f64.sqrt();
    let values = layer.to_vector();
    assert!(values.iter().all(|w| w.abs() <= bound));
    assert!(values.iter().any(|w| w < -0.8 * bound) && values.iter().any(|w| w > 0.8 * bound));
    let tape = Tape::new();
    let y = layer.forward(tape.constant(input([4, 2, 3])));
    assert_eq!(y.shape(), [6, 4, 5]);
    assert_eq!(builder.bias(false).build::<f32>(&mut Generator::new(1)).parameters().len(), 1);
    let generator = &mut Generator::new(1);
    layer_gradients(ConvTranspose2d::builder(2, 2, 2).groups(2).build(generator), &input([1, 2, 2, 3]));
    layer_gradients(ConvTranspose3d::new(2, 1, 2, generator), &input([2, 2, 1, 2]));
    for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
        layer_gradients(Conv2d::builder(2, 1, 3).padding(1).padding_mode(mode).build(generator), &input([2, 2, 3]));
    }
}

#[test]
fn errors_name_the_transposed_layer() {
    let layer = ConvTranspose1d::<f64>::new(2, 3, 2, &mut Generator::new(1));
    let text = layer.try_forward(Tape::new().constant(Tensor::ones([1, 3, 4]))).unwrap_err().to_string();
    let named = "in the layer ConvTranspose1d with a weight of shape [2, 3, 2] on an input of shape [1, 3, 4], made at";
    assert!(text.contains(named), "{text}");
}
