//! Activations as layers, for [`Sequential`](crate::Sequential): plain code calls the operation of the same name.

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::Arithmetic as _;

use crate::Result;
use crate::layers::layer::Layer;
use crate::module::Module;

/// The larger of x and 0. PyTorch: `torch.nn.ReLU`.
#[derive(Clone, Copy, Debug)]
pub struct ReLU;

impl<T: Float> Module<T> for ReLU {}

impl<T: Float> Layer<T> for ReLU {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(x.try_relu()?)
    }
}
