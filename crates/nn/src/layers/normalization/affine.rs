//! The weight and the bias that a layer applies after its normalization.

use wengert_autograd::Parameter;
use wengert_tensor::{Float, Shape, Tensor};

/// Adds a weight of ones and a bias of zeros, both of the given `shape`, if `affine` is true and there is no weight yet. If `affine` is false,
/// removes both.
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
