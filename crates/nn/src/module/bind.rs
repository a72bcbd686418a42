//! Makes the output of a model a function of one vector with the elements of all parameters of the model.

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::Views as _;

use crate::module::module::Module;

/// Replaces the parameters of `model` by parts of `vector` on the tape of `vector`, in the order of [`to_vector`](Module::to_vector). On this
/// tape, the output of the model is then a function of `vector`, for example for a Hessian. The parameters themselves do not change. PyTorch:
/// `torch.func.functional_call`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd as autograd; pub use wengert_autograd::prelude; }
/// use wengert::autograd::transforms::hessian;
/// use wengert::nn::{Generator, Layer, Linear, Module, bind_vector};
/// use wengert::prelude::*;
///
/// let model = Linear::<f64>::new(2, 1, &mut Generator::new(0));
/// let x = Tensor::from([[1.0, 2.0], [3.0, 5.0]]);
/// let loss = formula!(|theta| {
///     bind_vector(&model, theta);
///     model.forward(theta.tape().constant(&x)).square().sum(..)
/// });
/// assert_eq!(hessian(loss, &model.to_vector()).shape(), &[3, 3]);
/// ```
///
/// # Errors
///
/// If the shape of `vector` is not `[n]`, where n is [`num_parameters`](Module::num_parameters).
#[twins]
pub fn try_bind_vector<T: Float>(model: &(impl Module<T> + ?Sized), vector: Var<'_, T>) -> crate::Result<()> {
    let (found, expected) = (vector.shape(), model.num_parameters());
    if found.sizes() != [expected] {
        return Err(crate::Error::VectorLength { found, expected });
    }
    let mut start = 0;
    for parameter in model.parameters() {
        let shape = parameter.value.shape();
        let part = vector.try_narrow(0, start, shape.numel())?.try_reshape(shape)?;
        vector.tape().try_bind(parameter, part)?;
        start += shape.numel();
    }
    Ok(())
}
