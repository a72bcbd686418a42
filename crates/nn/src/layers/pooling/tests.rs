use wengert_autograd::prelude::*;

use super::*;
use crate::layers::layer::Layer;
use crate::layers::testing::{close, input, layer_gradients};

/// Returns a tensor `[1, 2, 3, 4]` of the values 0 to 23 in a mixed order.
fn volume() -> Tensor<f64> {
    Tensor::from_fn([1, 2, 3, 4], |i| ((i[1] * 12 + i[2] * 4 + i[3]) * 7 % 24) as f64)
}

/// The expected values come from PyTorch 2.15.
#[test]
fn pooled_volumes_are_pytorchs() {
    let tape = Tape::new();
    let x = tape.constant(volume());
    let max = MaxPool3d::new([2, 2, 3]).stride([1, 2, 2]).padding([0, 1, 1]);
    close(&max.forward(x).value(), &[19.0, 21.0, 23.0, 23.0], 0.0);
    close(&max.clone().ceil_mode(true).forward(x.unsqueeze(0)).value(), &[19.0, 21.0, 21.0, 23.0, 23.0, 17.0], 0.0);
    let mean = AvgPool3d::new(2).stride([1, 2, 2]).padding([1, 0, 1]);
    close(&mean.forward(x).value(), &[0.5, 6.25, 2.75, 4.0, 12.5, 5.5, 3.5, 6.25, 2.75], 1e-14);
    close(
        &mean.clone().count_include_pad(false).forward(x).value(),
        &[2.0, 12.5, 11.0, 8.0, 12.5, 11.0, 14.0, 12.5, 11.0],
        1e-14,
    );
    close(&mean.divisor_override(5).forward(x).value(), &[0.8, 10.0, 4.4, 6.4, 20.0, 8.8, 5.6, 10.0, 4.4], 1e-14);
}

#[test]
fn pooled_sequences_and_images() {
    let tape = Tape::new();
    let x = tape.constant(Tensor::from([[1.0, 5.0, 2.0, 4.0]]));
    assert_eq!(MaxPool1d::new(2).forward(x).value().to_vec(), [5.0, 4.0]);
    assert_eq!(MaxPool1d::new(2).stride(1).dilation(2).forward(x).value().to_vec(), [2.0, 5.0]);
    assert_eq!(AvgPool1d::new(2).stride(1).forward(x).value().to_vec(), [3.0, 3.5, 3.0]);
    assert_eq!(MaxPool2d::new([1, 2]).forward(x.unsqueeze(0)).value().to_vec(), [5.0, 4.0]);
}

#[test]
fn gradients_agree_with_central_differences() {
    layer_gradients(MaxPool2d::new(2).stride(1), &input([1, 2, 3, 3]));
    layer_gradients(MaxPool3d::new(2).stride(1), &input([2, 3, 2, 3]));
    layer_gradients(AvgPool1d::new(3).padding(1), &input([1, 2, 5]));
    layer_gradients(AvgPool3d::new(2).padding(1).count_include_pad(false), &input([1, 1, 3, 2, 3]));
    // All elements of the window are equal, so the gradient goes to the first element.
    let tape = Tape::new();
    let x = tape.var(&Tensor::<f64>::ones([1, 2, 2, 2]));
    let gradient = MaxPool3d::new(2).forward(x).sum(..).backward().of(x).to_vec();
    assert_eq!(gradient, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn errors_name_the_layer() {
    let tape = Tape::new();
    let text = |layer: &dyn Layer<f64>, x: Tensor<f64>| layer.try_forward(tape.constant(&x)).unwrap_err().to_string();
    let small = text(&MaxPool2d::new(4), Tensor::ones([1, 2, 2]));
    assert!(small.contains("Output size is too small"), "{small}");
    assert!(small.contains("in the layer MaxPool2d([4]) on an input of shape [1, 2, 2], made at"), "{small}");
    assert!(
        text(&AvgPool3d::new(2), Tensor::ones([2, 2]))
            .contains("non-empty 4D or 5D (batch mode) tensor expected for input")
    );
    let sizes = text(&AvgPool3d::new([2, 2]), Tensor::ones([1, 2, 2, 2]));
    assert!(sizes.contains("expected kernel_size to be a single integer value or a list of 3 values"), "{sizes}");
}
