//! The weight and the bias that follow a normalization.

use wengert_autograd::Parameter;
use wengert_tensor::{Float, Shape, Tensor};

/// Adds a weight of ones and a bias of zeros where there is no weight, or takes both away.
#[track_caller]
pub(crate) fn set_affine<T: Float>(
    weight: &mut Option<Parameter<T>>,
    bias: &mut Option<Parameter<T>>,
    shape: &Shape,
    affine: bool,
) {
    if !affine {
        (*weight, *bias) = (None, None);
    } else if weight.is_none() {
        *weight = Some(Parameter::new(Tensor::ones(shape)));
        *bias = Some(Parameter::new(Tensor::zeros(shape)));
    }
}
