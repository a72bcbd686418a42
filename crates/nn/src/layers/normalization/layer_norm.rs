//! Normalization over the last dimensions.

use std::panic::Location;

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::Normalization as _;
use wengert_tensor::{Float, Shape, Sizes, Tensor};

use crate::Result;
use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::layers::normalization::affine::set_affine;
use crate::module::Module;

/// Layer normalization: shifts and scales the elements over the last dimensions to mean 0 and variance 1, then multiplies them by a weight and
/// adds a bias. PyTorch: `torch.nn.LayerNorm`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, LayerNorm};
///
/// let norm = LayerNorm::<f64>::new([2]).eps(0.0);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::from([[1.0, 3.0], [10.0, 30.0]])));
/// assert_eq!(y.value(), Tensor::from([[-1.0, 1.0], [-1.0, 1.0]]));
/// ```
#[derive(Clone, Debug, Module)]
pub struct LayerNorm<T: Float = f32> {
    /// The weight of each element of the normalized dimensions, in their shape; initially 1.
    pub weight: Option<Parameter<T>>,
    /// The bias of each element of the normalized dimensions, in their shape; initially 0.
    pub bias: Option<Parameter<T>>,
    #[module(skip)]
    normalized_shape: Shape,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<T: Float> LayerNorm<T> {
    /// Returns a layer for inputs whose last dimensions, which are normalized, have the sizes `normalized_shape`. [`eps`](Self::eps) is 1e-5.
    ///
    /// # Panics
    ///
    /// If a size is negative, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Sizes>) -> Self {
        let weight = Parameter::new(Tensor::ones(normalized_shape));
        let normalized_shape = weight.value.shape().clone();
        let bias = Parameter::new(Tensor::zeros(&normalized_shape));
        LayerNorm {
            weight: Some(weight),
            bias: Some(bias),
            normalized_shape,
            eps: 1e-5,
            created_at: Location::caller(),
        }
    }

    /// Sets the number that is added to the variance before its root is taken; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        LayerNorm { eps, ..self }
    }

    /// Adds a weight and a bias if `affine` is true and there is no weight, and removes both if it is false; true by default.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[must_use]
    #[track_caller]
    pub fn elementwise_affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut self.bias, &self.normalized_shape, affine);
        self
    }

    /// Removes the bias of the layer. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        LayerNorm { bias: None, ..self }
    }
}

impl<T: Float> Layer<T> for LayerNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let (weight, bias) =
            (optional_parameter(x.tape(), self.weight.as_ref())?, optional_parameter(x.tape(), self.bias.as_ref())?);
        let y = x.try_layer_norm(&self.normalized_shape, weight.as_ref(), bias.as_ref(), self.eps);
        output_of(self, y, self.created_at, || {
            format!("LayerNorm({}) on an input of shape {}", self.normalized_shape, x.shape())
        })
    }
}

/// RMS normalization: divides the elements by the root of their mean square over the last dimensions, then multiplies them by a weight. PyTorch:
/// `torch.nn.RMSNorm`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, RMSNorm};
///
/// let norm = RMSNorm::<f64>::new([2]).eps(0.0);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::from([3.0, 4.0])));
/// assert_eq!(y.value().to_vec(), [3.0, 4.0].map(|x| x / 12.5f64.sqrt()));
/// ```
#[derive(Clone, Debug, Module)]
pub struct RMSNorm<T: Float = f32> {
    /// The weight of each element of the normalized dimensions, in their shape; initially 1.
    pub weight: Option<Parameter<T>>,
    #[module(skip)]
    normalized_shape: Shape,
    #[module(skip)]
    eps: Option<f64>,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<T: Float> RMSNorm<T> {
    /// Returns a layer for inputs whose last dimensions have the sizes `normalized_shape`. These dimensions are normalized. The machine epsilon
    /// of the element type is added to the mean square.
    ///
    /// # Panics
    ///
    /// If a size is negative, or there is not enough memory for the parameter.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Sizes>) -> Self {
        let weight = Parameter::new(Tensor::ones(normalized_shape));
        let normalized_shape = weight.value.shape().clone();
        RMSNorm { weight: Some(weight), normalized_shape, eps: None, created_at: Location::caller() }
    }

    /// Sets the number that is added to the mean square before its root is taken; by default the machine epsilon of the element type.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        RMSNorm { eps: Some(eps), ..self }
    }

    /// Adds a weight if `affine` is true and there is none, and removes it if `affine` is false; true by default.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameter.
    #[must_use]
    #[track_caller]
    pub fn elementwise_affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut None, &self.normalized_shape, affine);
        self
    }
}

impl<T: Float> Layer<T> for RMSNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let weight = optional_parameter(x.tape(), self.weight.as_ref())?;
        let y = x.try_rms_norm(&self.normalized_shape, weight.as_ref(), self.eps);
        output_of(self, y, self.created_at, || {
            format!("RMSNorm({}) on an input of shape {}", self.normalized_shape, x.shape())
        })
    }
}
