//! Normalization over groups of channels.

use std::panic::Location;

use wengert_autograd::{Parameter, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::Normalization as _;

use crate::Result;
use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::layers::normalization::affine::set_affine;
use crate::module::Module;

/// Group normalization of `[n, c, …]` (n examples, c channels). It shifts and scales each group of channels of each example to mean 0 and
/// variance 1. Then it multiplies each channel by the channel's weight and adds the channel's bias. A single example whose groups have one
/// element is an error of the forward pass, as in PyTorch. PyTorch: `torch.nn.GroupNorm`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{GroupNorm, Layer};
///
/// let norm = GroupNorm::<f32>::new(2, 6);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::ones([4, 6, 8, 8])));
/// assert_eq!(y.value(), Tensor::zeros([4, 6, 8, 8]));
/// ```
#[derive(Clone, Debug, Module)]
pub struct GroupNorm<T: Float = f32> {
    /// The weight of each of c channels, `[c]`; initially 1.
    pub weight: Option<Parameter<T>>,
    /// The bias of each of c channels, `[c]`; initially 0.
    pub bias: Option<Parameter<T>>,
    #[module(skip)]
    num_groups: usize,
    #[module(skip)]
    num_channels: usize,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<T: Float> GroupNorm<T> {
    /// Returns a layer for `num_channels` channels in `num_groups` groups of equal size, with an [`eps`](Self::eps) of 1e-5. If `num_groups`
    /// does not divide `num_channels`, each forward pass returns an error.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(num_groups: usize, num_channels: usize) -> Self {
        let created_at = Location::caller();
        GroupNorm { weight: None, bias: None, num_groups, num_channels, eps: 1e-5, created_at }.affine(true)
    }

    /// Sets the number that is added to the variance before its root is taken; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        GroupNorm { eps, ..self }
    }

    /// Adds a weight and a bias if `affine` is true and there is no weight, and removes both if it is false; true by default.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[must_use]
    #[track_caller]
    pub fn affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut self.bias, &[self.num_channels].into(), affine);
        self
    }

    /// Removes the bias of the layer. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        GroupNorm { bias: None, ..self }
    }
}

impl<T: Float> Layer<T> for GroupNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let (weight, bias) =
            (optional_parameter(x.tape(), self.weight.as_ref())?, optional_parameter(x.tape(), self.bias.as_ref())?);
        output_of(
            self,
            x.try_group_norm(self.num_groups, weight.as_ref(), bias.as_ref(), self.eps),
            self.created_at,
            || format!("GroupNorm({}, {}) on an input of shape {}", self.num_groups, self.num_channels, x.shape()),
        )
    }
}
