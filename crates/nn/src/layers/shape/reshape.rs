//! Layers that change the shape of their input but not its elements.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::{output_of, pass_output};
use crate::layers::layer::Layer;
use crate::layers::operation_layer::functions_with_settings;
use crate::module::Module;

/// The layer that returns its input. PyTorch: `torch.nn.Identity`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl<T: Float> Module<T> for Identity {}

impl<T: Float> Layer<T> for Identity {
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(pass_output(self, x))
    }
}

functions_with_settings! {
    /// The layer that merges the dimensions from `start_dim` to `end_dim`, both included, into one. By default it merges all dimensions except
    /// the batch dimension. PyTorch: `torch.nn.Flatten`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Flatten, Layer};
    ///
    /// let maps = Tensor::<f32>::zeros([32, 16, 5, 5]);
    /// assert_eq!(Flatten::default().forward(Tape::new().constant(&maps)).shape(), [32, 400]);
    /// ```
    Flatten {
        /// The first merged dimension; negative values count from the end.
        start_dim: isize,
        /// The last merged dimension; negative values count from the end.
        end_dim: isize
    } = try_flatten, default(1, -1);
}

/// The layer that splits one dimension into several. PyTorch: `torch.nn.Unflatten`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, Unflatten};
///
/// let x = Tensor::<f32>::zeros([32, 400]);
/// assert_eq!(Unflatten::new(1, [16, 5, 5]).forward(Tape::new().constant(&x)).shape(), [32, 16, 5, 5]);
/// ```
#[derive(Clone, Debug)]
pub struct Unflatten {
    dim: isize,
    sizes: Sizes,
    created_at: &'static Location<'static>,
}

impl Unflatten {
    /// Returns a layer that splits dimension `dim` into `sizes`. One size may be -1; it is computed from the other sizes.
    #[track_caller]
    pub fn new(dim: isize, sizes: impl Into<Sizes>) -> Self {
        Unflatten { dim, sizes: sizes.into(), created_at: Location::caller() }
    }
}

impl<T: Float> Module<T> for Unflatten {}

impl<T: Float> Layer<T> for Unflatten {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, x.try_unflatten(self.dim, self.sizes.clone()), self.created_at, || {
            format!("Unflatten({}, {:?}) on an input of shape {}", self.dim, self.sizes.as_slice(), x.shape())
        })
    }
}
