//! The weight and the bias that follow a normalization.

use wengert_autograd::Parameter;
use wengert_tensor::{Float, Shape, Tensor};

/// If `affine` is true, adds a weight of ones and a bias of zeros, unless there is a weight. Otherwise removes both.
#[track_caller]
pub(super) fn set_affine<T: Float>(
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
