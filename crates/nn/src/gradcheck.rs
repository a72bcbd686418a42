//! Checks the gradients of a whole model against central differences.

use std::fmt;

use wengert_autograd::gradcheck::{Failure, Place, Report};
use wengert_autograd::{GradCheck, Parameter, Tape, Var};
use wengert_tensor::{Float, Tensor};

use crate::module::Module;

/// A failed gradient check, and the path of the parameter whose gradient is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFailure {
    /// The path of the parameter with the largest difference. `None` if the check ran in random directions and not for single elements, or if it
    /// failed for another reason than a difference.
    pub path: Option<String>,
    /// The failure of the check. The inputs that it names by number are the parameters that are not frozen, in the model's order.
    pub failure: Box<Failure>,
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "at the parameter '{path}': {}", self.failure),
            None => self.failure.fmt(f),
        }
    }
}

impl std::error::Error for ModelFailure {}

/// Checks the derivatives of `compute`, a function that runs `model` on a tape, with respect to all parameters that are not frozen. PyTorch:
/// `gradcheck` of a `functional_call`.
///
/// The derivatives of reverse and forward mode are compared with central differences, with the settings of `check`. Use f64 and a small model,
/// because each element is perturbed; a model with more than [`GradCheck::full_up_to`] elements is checked in random directions. A model whose
/// parameters are all frozen passes.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{GradCheck, prelude::*};
/// use wengert::nn::{Generator, Layer, Linear, check_model};
///
/// let layer = Linear::<f64>::new(3, 2, &mut Generator::new(0));
/// let x = Tensor::from([[0.5, -1.0, 2.0]]);
/// check_model(&GradCheck::new(), &layer, |tape| layer.forward(tape.constant(&x)).tanh())?;
/// # Ok::<(), wengert_nn::ModelFailure>(())
/// ```
///
/// # Errors
///
/// If a derivative disagrees with the differences, cannot be computed, or cannot be checked at the current parameters. If a derivative
/// disagrees, the error names the parameter, provided that each of its elements was checked separately.
#[track_caller]
pub fn check_model<T: Float>(
    check: &GradCheck,
    model: &(impl Module<T> + ?Sized),
    compute: impl for<'t> Fn(&'t Tape<T>) -> Var<'t, T>,
) -> Result<Report, ModelFailure> {
    let parameters: Vec<(String, &Parameter<T>)> =
        model.named_parameters().into_iter().filter(|(_, parameter)| !parameter.is_frozen()).collect();
    if parameters.is_empty() {
        return Ok(Report::default());
    }
    let values: Vec<&Tensor<T>> = parameters.iter().map(|(_, parameter)| &parameter.value).collect();
    let result = check.check_slice(
        |vars| {
            let tape = vars[0].tape();
            for ((_, parameter), &var) in parameters.iter().zip(vars) {
                tape.bind(parameter, var);
            }
            compute(tape)
        },
        &values,
    );
    result.map_err(|failure| {
        let path = match &failure {
            Failure::Mismatch(mismatch) => match &mismatch.worst.input {
                Place::Element { tensor, .. } => parameters.get(*tensor).map(|(path, _)| path.clone()),
                _ => None,
            },
            _ => None,
        };
        ModelFailure { path, failure: Box::new(failure) }
    })
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Activations as _, Functions as _, Views as _};

    use super::*;
    use crate::{Generator, Layer as _, Linear};

    #[derive(Module)]
    struct Mlp {
        fc1: Linear<f64>,
        fc2: Linear<f64>,
    }

    fn model() -> Mlp {
        let generator = &mut Generator::new(2);
        Mlp { fc1: Linear::new(3, 4, generator), fc2: Linear::new(4, 2, generator) }
    }

    #[test]
    fn a_correct_model_passes_and_frozen_parameters_are_not_checked() {
        let (mut model, x) = (model(), Tensor::from([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]]));
        let check = |model: &Mlp| {
            check_model(&GradCheck::new().order(1), model, |tape| {
                model.fc2.forward(model.fc1.forward(tape.constant(&x)).silu())
            })
        };
        assert_eq!(check(&model).unwrap().compared, 2 * 4 * (12 + 4 + 8 + 2));
        model.freeze("fc1");
        assert_eq!(check(&model).unwrap().compared, 2 * 4 * (8 + 2));
    }

    #[test]
    fn a_wrong_derivative_is_reported_with_its_path() {
        let (model, x) = (model(), Tensor::from([[0.5, -1.0, 2.0]]));
        let failure = check_model(&GradCheck::new().order(1), &model, |tape| {
            // The bias of the second layer is used twice. `detach` hides the second use from the derivative, so the derivative is wrong.
            let bias = tape.parameter(model.fc2.bias.as_ref().unwrap());
            model.fc2.forward(model.fc1.forward(tape.constant(&x)).tanh()) + bias.detach()
        });
        let failure = failure.unwrap_err();
        assert_eq!(failure.path.as_deref(), Some("fc2.bias"), "{failure}");
        assert!(failure.to_string().starts_with("at the parameter 'fc2.bias'"), "{failure}");
    }
}
