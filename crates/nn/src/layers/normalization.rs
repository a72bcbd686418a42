//! Normalization of each example by itself: the same in training and in evaluation.

use std::panic::Location;

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::Normalization as _;
use wengert_tensor::{Float, Shape, Sizes, Tensor};

use crate::Result;
use crate::layers::layer::{Layer, optional, output_of};
use crate::module::Module;

/// Normalization over the last dimensions, then a weight and a bias. PyTorch: `torch.nn.LayerNorm`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, LayerNorm};
///
/// let norm = LayerNorm::<f64>::new([2]).eps(0.0);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::from([[1.0, 3.0], [10.0, 30.0]])));
/// assert_eq!(y.value(), Tensor::from([[-1.0, 1.0], [-1.0, 1.0]]));
/// ```
#[derive(Clone, Debug, Module)]
pub struct LayerNorm<T: Float = f32> {
    /// Scale of each element, of the shape that is normalized over; ones to begin with.
    pub weight: Option<Parameter<T>>,
    /// Shift of each element, of the same shape; zeros to begin with.
    pub bias: Option<Parameter<T>>,
    #[module(skip)]
    normalized_shape: Shape,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    made: &'static Location<'static>,
}

impl<T: Float> LayerNorm<T> {
    /// A layer for inputs whose last dimensions have the sizes `normalized_shape`, with an eps of 1e-5.
    ///
    /// # Panics
    ///
    /// If a size is negative, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Sizes>) -> Self {
        let weight = Parameter::new(Tensor::ones(normalized_shape));
        let normalized_shape = weight.value.shape().clone();
        let bias = Parameter::new(Tensor::zeros(&normalized_shape));
        LayerNorm { weight: Some(weight), bias: Some(bias), normalized_shape, eps: 1e-5, made: Location::caller() }
    }

    /// With another number that is added to the variance.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        LayerNorm { eps, ..self }
    }

    /// With or without weight and bias; with by default.
    #[must_use]
    #[track_caller]
    pub fn elementwise_affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut self.bias, &self.normalized_shape, affine);
        self
    }

    /// Without a bias. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        LayerNorm { bias: None, ..self }
    }
}

impl<T: Float> Layer<T> for LayerNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let (weight, bias) = (optional(x.tape(), self.weight.as_ref())?, optional(x.tape(), self.bias.as_ref())?);
        let y = x.try_layer_norm(&self.normalized_shape, weight.as_ref(), bias.as_ref(), self.eps);
        output_of(self, y, self.made, || {
            format!("LayerNorm({}) on an input of shape {}", self.normalized_shape, x.shape())
        })
    }
}

/// Division by the root of the mean square over the last dimensions, then a weight. PyTorch: `torch.nn.RMSNorm`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, RMSNorm};
///
/// let norm = RMSNorm::<f64>::new([2]).eps(0.0);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::from([3.0, 4.0])));
/// assert_eq!(y.value().to_vec(), [3.0, 4.0].map(|x| x / 12.5f64.sqrt()));
/// ```
#[derive(Clone, Debug, Module)]
pub struct RMSNorm<T: Float = f32> {
    /// Scale of each element, of the shape that is normalized over; ones to begin with.
    pub weight: Option<Parameter<T>>,
    #[module(skip)]
    normalized_shape: Shape,
    #[module(skip)]
    eps: Option<f64>,
    #[module(skip)]
    made: &'static Location<'static>,
}

impl<T: Float> RMSNorm<T> {
    /// A layer for inputs whose last dimensions have the sizes `normalized_shape`. The machine epsilon of the element type is
    /// added to the mean square.
    ///
    /// # Panics
    ///
    /// If a size is negative, or there is not enough memory for the parameter.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<Sizes>) -> Self {
        let weight = Parameter::new(Tensor::ones(normalized_shape));
        let normalized_shape = weight.value.shape().clone();
        RMSNorm { weight: Some(weight), normalized_shape, eps: None, made: Location::caller() }
    }

    /// With another number that is added to the mean square.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        RMSNorm { eps: Some(eps), ..self }
    }

    /// With or without a weight; with by default.
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
        let weight = optional(x.tape(), self.weight.as_ref())?;
        let y = x.try_rms_norm(&self.normalized_shape, weight.as_ref(), self.eps);
        output_of(self, y, self.made, || {
            format!("RMSNorm({}) on an input of shape {}", self.normalized_shape, x.shape())
        })
    }
}

/// Normalization over each group of channels of `[n, c, …]` and all positions, then a weight and a bias for each channel. PyTorch:
/// `torch.nn.GroupNorm`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{GroupNorm, Layer};
///
/// let norm = GroupNorm::<f32>::new(2, 6);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::ones([4, 6, 8, 8])));
/// assert_eq!(y.value(), Tensor::zeros([4, 6, 8, 8]));
/// ```
#[derive(Clone, Debug, Module)]
pub struct GroupNorm<T: Float = f32> {
    /// Scale of each channel, `[c]`; ones to begin with.
    pub weight: Option<Parameter<T>>,
    /// Shift of each channel, `[c]`; zeros to begin with.
    pub bias: Option<Parameter<T>>,
    #[module(skip)]
    num_groups: usize,
    #[module(skip)]
    num_channels: usize,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    made: &'static Location<'static>,
}

impl<T: Float> GroupNorm<T> {
    /// A layer for `num_channels` channels in `num_groups` groups of equal size, with an eps of 1e-5. If the groups do not come
    /// out even, the first forward pass is an error.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(num_groups: usize, num_channels: usize) -> Self {
        let made = Location::caller();
        GroupNorm { weight: None, bias: None, num_groups, num_channels, eps: 1e-5, made }.affine(true)
    }

    /// With another number that is added to the variance.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        GroupNorm { eps, ..self }
    }

    /// With or without weight and bias; with by default.
    #[must_use]
    #[track_caller]
    pub fn affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut self.bias, &[self.num_channels].into(), affine);
        self
    }

    /// Without a bias. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        GroupNorm { bias: None, ..self }
    }
}

impl<T: Float> Layer<T> for GroupNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let (weight, bias) = (optional(x.tape(), self.weight.as_ref())?, optional(x.tape(), self.bias.as_ref())?);
        output_of(self, x.try_group_norm(self.num_groups, weight.as_ref(), bias.as_ref(), self.eps), self.made, || {
            format!("GroupNorm({}, {}) on an input of shape {}", self.num_groups, self.num_channels, x.shape())
        })
    }
}

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

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::check::{input, layer_gradients};

    #[test]
    fn gradients_are_those_of_central_differences() {
        layer_gradients(LayerNorm::new([2, 3]), &input([2, 2, 3]));
        layer_gradients(LayerNorm::new([3]).without_bias(), &input([2, 3]));
        layer_gradients(RMSNorm::new([3]), &input([2, 3]));
        layer_gradients(GroupNorm::new(2, 4), &input([2, 4, 3]));
    }

    #[test]
    fn weight_and_bias_follow() {
        let tape = Tape::new();
        let x = tape.constant(&Tensor::from([[1.0, 3.0, 10.0, 30.0]]));
        let mut groups = GroupNorm::<f64>::new(2, 4).eps(0.0);
        groups.weight.as_mut().unwrap().value = Tensor::from([1.0, 2.0, 3.0, 4.0]);
        groups.bias.as_mut().unwrap().value = Tensor::from([0.5, 0.0, 0.0, 0.0]);
        assert_eq!(groups.forward(x).value().to_vec(), [-0.5, 2.0, -3.0, 4.0]);
        let plain = groups.clone().affine(false);
        assert_eq!(plain.forward(x).value().to_vec(), [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(
            (groups.num_parameters(), plain.num_parameters(), groups.without_bias().num_parameters()),
            (8, 0, 4)
        );
        let mut layer = LayerNorm::<f64>::new([2]).eps(0.0);
        layer.bias.as_mut().unwrap().value = Tensor::from([0.5, 0.0]);
        assert_eq!(layer.forward(x.reshape([2, 2])).value().to_vec(), [-0.5, 1.0, -0.5, 1.0]);
        assert_eq!(layer.elementwise_affine(false).num_parameters(), 0);
        assert_eq!(RMSNorm::<f64>::new([2]).elementwise_affine(false).num_parameters(), 0);
    }

    #[test]
    fn errors_name_the_layer() {
        let tape = Tape::new();
        let x = tape.constant(&Tensor::<f64>::ones([2, 4]));
        let text = LayerNorm::new([3]).try_forward(x).unwrap_err().to_string();
        assert!(text.contains("Given normalized_shape=[3], expected input with shape [*, 3]"), "{text}");
        assert!(text.contains("in the layer LayerNorm([3]) on an input of shape [2, 4], made at"), "{text}");
        assert!(RMSNorm::new([3]).try_forward(x).unwrap_err().to_string().contains("RMSNorm([3])"));
        let text = GroupNorm::new(3, 4).try_forward(x).unwrap_err().to_string();
        assert!(text.contains("divisible by num_groups") && text.contains("GroupNorm(3, 4)"), "{text}");
    }
}
