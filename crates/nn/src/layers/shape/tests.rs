use wengert_autograd::prelude::*;
use wengert_tensor::ops::{InterpolateMode, PadMode};

use super::*;
use crate::layers::layer::Layer;
use crate::layers::testing::{input, layer_gradients};

#[test]
fn output_shapes() {
    let tape = Tape::new();
    let x = tape.constant(input([2, 3, 4, 5]));
    let shape = |layer: &dyn Layer<f64>| layer.try_forward(x).unwrap().shape().to_vec();
    assert_eq!(shape(&Identity), [2, 3, 4, 5]);
    assert_eq!(shape(&Flatten::default()), [2, 60]);
    assert_eq!(shape(&Flatten::new(0, 1)), [6, 4, 5]);
    assert_eq!(shape(&Unflatten::new(2, [2, -1])), [2, 3, 2, 2, 5]);
    assert_eq!(shape(&Pad::new(&[1, 0, 0, -2], PadMode::Constant(0.0))), [2, 3, 2, 6]);
    assert_eq!(shape(&Upsample::to_size([8, 3], InterpolateMode::Nearest)), [2, 3, 8, 3]);
    assert_eq!(shape(&Upsample::by(3, InterpolateMode::Linear { align_corners: false })), [2, 3, 12, 15]);
    assert_eq!(shape(&PixelUnshuffle::new(1)), [2, 3, 4, 5]);
    assert_eq!(shape(&ChannelShuffle::new(3)), [2, 3, 4, 5]);
    assert_eq!(PixelShuffle::new(2).forward(x.reshape([2, 12, 1, 5])).shape(), [2, 3, 2, 10]);
}

#[test]
fn gradients_agree_with_central_differences() {
    layer_gradients(PixelShuffle::new(2), &input([4, 1, 2]));
    layer_gradients(PixelUnshuffle::new(2), &input([1, 2, 4]));
    layer_gradients(ChannelShuffle::new(2), &input([1, 4, 2]));
    layer_gradients(Upsample::by(2, InterpolateMode::Linear { align_corners: false }), &input([1, 1, 2, 3]));
    layer_gradients(Pad::new(&[1, 2], PadMode::Circular), &input([1, 1, 3]));
}

#[test]
fn errors_name_the_layer() {
    let tape = Tape::new();
    let x = tape.constant(input([2, 3]));
    let text = |layer: &dyn Layer<f64>| layer.try_forward(x).unwrap_err().to_string();
    assert!(text(&Flatten::new(1, 2)).contains("Flatten(start_dim=1, end_dim=2) on an input of shape [2, 3], made at"));
    assert!(text(&Unflatten::new(1, [2, 2])).contains("in the layer Unflatten(1, [2, 2])"));
    assert!(text(&Pad::new(&[1], PadMode::Replicate)).contains("in the layer Pad([1], Replicate)"));
    assert!(text(&Upsample::by(2, InterpolateMode::Nearest)).contains("in the layer Upsample(Multiple(2), Nearest)"));
    assert!(text(&PixelShuffle::new(2)).contains("pixel_shuffle expects input to have at least 3 dimensions"));
    assert!(
        text(&PixelUnshuffle::new(2))
            .contains("in the layer PixelUnshuffle(downscale_factor=2) on an input of shape [2, 3]")
    );
    assert!(text(&ChannelShuffle::new(2)).contains("channel_shuffle expects input with > 2 dims"));
}
