use wengert_autograd::prelude::*;

use super::*;
use crate::layers::layer::Layer;
use crate::layers::testing::{input, layer_gradients};
use crate::module::Module as _;

#[test]
fn gradients_agree_with_central_differences() {
    layer_gradients(LayerNorm::new([2, 3]), &input([2, 2, 3]));
    layer_gradients(LayerNorm::new([3]).without_bias(), &input([2, 3]));
    layer_gradients(RMSNorm::new([3]), &input([2, 3]));
    layer_gradients(GroupNorm::new(2, 4), &input([2, 4, 3]));
    layer_gradients(LocalResponseNorm::new(3, 0.5, 0.7, 1.5), &input([2, 4, 3]));
}

#[test]
fn weight_and_bias_are_applied_after_the_normalization() {
    let tape = Tape::new();
    let x = tape.constant(Tensor::from([[1.0, 3.0, 10.0, 30.0]]));
    let mut groups = GroupNorm::<f64>::new(2, 4).eps(0.0);
    groups.weight.as_mut().unwrap().value = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    groups.bias.as_mut().unwrap().value = Tensor::from([0.5, 0.0, 0.0, 0.0]);
    assert_eq!(groups.forward(x).value().to_vec(), [-0.5, 2.0, -3.0, 4.0]);
    let plain = groups.clone().affine(false);
    assert_eq!(plain.forward(x).value().to_vec(), [-1.0, 1.0, -1.0, 1.0]);
    assert_eq!((groups.num_parameters(), plain.num_parameters(), groups.without_bias().num_parameters()), (8, 0, 4));
    let mut layer = LayerNorm::<f64>::new([2]).eps(0.0);
    layer.bias.as_mut().unwrap().value = Tensor::from([0.5, 0.0]);
    assert_eq!(layer.forward(x.reshape([2, 2])).value().to_vec(), [-0.5, 1.0, -0.5, 1.0]);
    assert_eq!(layer.elementwise_affine(false).num_parameters(), 0);
    assert_eq!(RMSNorm::<f64>::new([2]).elementwise_affine(false).num_parameters(), 0);
}

#[test]
fn errors_name_the_layer() {
    let tape = Tape::new();
    let x = tape.constant(Tensor::<f64>::ones([2, 4]));
    let text = LayerNorm::new([3]).try_forward(x).unwrap_err().to_string();
    assert!(text.contains("Given normalized_shape=[3], expected input with shape [*, 3]"), "{text}");
    assert!(text.contains("in the layer LayerNorm([3]) on an input of shape [2, 4], made at"), "{text}");
    let text = LocalResponseNorm::new(3, 1.0, 1.0, 1.0).try_forward(x).unwrap_err().to_string();
    assert!(text.contains("in the layer LocalResponseNorm(size=3, alpha=1, beta=1, k=1) on an input of"), "{text}");
    assert!(RMSNorm::new([3]).try_forward(x).unwrap_err().to_string().contains("RMSNorm([3])"));
    let text = GroupNorm::new(3, 4).try_forward(x).unwrap_err().to_string();
    assert!(text.contains("divisible by num_groups") && text.contains("GroupNorm(3, 4)"), "{text}");
}
