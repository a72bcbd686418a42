//! Treats all parameters of a model that are not frozen as one vector.

use wengert_autograd::Gradients;
use wengert_tensor::{Float, Tensor};

use crate::module::Module;
use crate::{Error, Result};

/// Calls `evaluate` on the model. Returns the loss, and the gradients of all parameters that are not frozen, joined
/// into one vector. A parameter without a gradient is an error.
pub(super) fn loss_and_gradient<T: Float, M: Module<T>>(
    model: &M,
    evaluate: &mut impl FnMut(&M) -> Result<(T, Gradients<T>)>,
) -> Result<(f64, Tensor<T>)> {
    let (loss, gradients) = evaluate(model)?;
    let (mut elements, mut names) = (Vec::new(), Vec::new());
    for (path, parameter) in model.named_parameters().into_iter().filter(|(_, parameter)| !parameter.is_frozen()) {
        match gradients.get(parameter) {
            Some(gradient) => elements.extend(gradient.iter()),
            None => names.push(path),
        }
    }
    if !names.is_empty() {
        return Err(Error::Unreached { names });
    }
    let count = elements.len();
    Ok((loss.to_f64(), Tensor::try_from_vec(elements, [count])?))
}

/// Returns the values of all parameters that are not frozen, joined into one vector.
pub(super) fn trainable_to_vector<T: Float>(model: &impl Module<T>) -> Result<Tensor<T>> {
    let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
    let elements: Vec<T> = trained.flat_map(|parameter| parameter.value.iter()).collect();
    let count = elements.len();
    Ok(Tensor::try_from_vec(elements, [count])?)
}

/// Sets all parameters that are not frozen to the elements of `vector`, in the order of [`trainable_to_vector`].
pub(super) fn set_trainable_from_vector<T: Float>(model: &mut impl Module<T>, vector: &Tensor<T>) -> Result<()> {
    let elements = vector.try_to_vec()?;
    let mut rest = &elements[..];
    for parameter in model.parameters_mut().into_iter().filter(|parameter| !parameter.is_frozen()) {
        let (values, others) = rest.split_at(parameter.value.numel());
        parameter.value.try_make_mut()?.copy_from_slice(values);
        rest = others;
    }
    Ok(())
}

/// Returns the largest absolute value of an element of `vector`, or NaN if an element is NaN.
pub(super) fn max_abs<T: Float>(vector: &Tensor<T>) -> f64 {
    vector.iter().fold(0.0, |largest: f64, x| {
        let size = x.to_f64().abs();
        if size > largest || size.is_nan() { size } else { largest }
    })
}
