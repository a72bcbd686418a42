//! The linear layer.

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::LinearMaps as _;
use wengert_tensor::{Float, Tensor};

use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;
use crate::{Generator, Result};

/// The layer with the output y = x Wᵀ + b for the input x, from `[…, in]` to `[…, out]`. The layout of the weight and the distribution of the
/// initial parameters are PyTorch's. PyTorch: `torch.nn.Linear`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Linear};
///
/// let layer = Linear::<f32>::new(64, 10, &mut Generator::new(0));
/// let tape = Tape::new();
/// let y = layer.forward(tape.constant(&Tensor::zeros([32, 64])));
/// assert_eq!(y.shape(), [32, 10]);
/// assert_eq!(y.value().select(0, 0), layer.bias.as_ref().unwrap().value);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Linear<T: Float = f32> {
    /// The weight W, `[out, in]`.
    pub weight: Parameter<T>,
    /// The bias b, `[out]`. `None` if the layer has no bias.
    pub bias: Option<Parameter<T>>,
}

impl<T: Float> Linear<T> {
    /// Returns a layer from `in_features` to `out_features` features. As in PyTorch, weight and bias are drawn uniformly from -1/√in to 1/√in,
    /// where in is `in_features`. If `in_features` is 0, weight and bias are 0.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(in_features: usize, out_features: usize, generator: &mut Generator) -> Self {
        let weight = initial_parameter([out_features, in_features], in_features, generator);
        let bias = initial_parameter([out_features], in_features, generator);
        Linear { weight: Parameter::new(weight), bias: Some(Parameter::new(bias)) }
    }

    /// Returns the same layer as [`new`](Self::new), but without a bias. PyTorch: `bias=False`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn without_bias(in_features: usize, out_features: usize, generator: &mut Generator) -> Self {
        let weight = initial_parameter([out_features, in_features], in_features, generator);
        Linear { weight: Parameter::new(weight), bias: None }
    }
}

impl<T: Float> Layer<T> for Linear<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        let weight = tape.try_parameter(&self.weight)?;
        let bias = optional_parameter(tape, self.bias.as_ref())?;
        output_of(self, x.try_linear(&weight, bias.as_ref()), self.weight.created_at(), || {
            let sizes = self.weight.value.shape();
            format!("Linear({}, {}) on an input of shape {}", sizes[1], sizes[0], x.shape())
        })
    }
}

/// Returns a tensor of `shape` with numbers drawn uniformly from -1/√inputs to 1/√inputs, or with zeros if `inputs` is 0.
#[track_caller]
pub(crate) fn initial_parameter<T: Float, const R: usize>(
    shape: [usize; R],
    inputs: usize,
    generator: &mut Generator,
) -> Tensor<T> {
    let bound = if inputs == 0 { 0.0 } else { 1.0 / (inputs as f64).sqrt() };
    Tensor::uniform(-bound, bound, shape, generator)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    /// Returns a layer with W = [[1, 2, 3], [4, 5, 6]] and b = [10, 20].
    fn layer() -> Linear<f64> {
        Linear {
            weight: Parameter::new(Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])),
            bias: Some(Parameter::new(Tensor::from([10.0, 20.0]))),
        }
    }

    #[test]
    fn any_number_of_leading_dimensions_works() {
        let (layer, tape) = (layer(), Tape::new());
        let x = tape.constant(Tensor::from([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]));
        let expected = Tensor::from([[8.0, 18.0], [14.0, 30.0]]);
        assert_eq!(layer.forward(x).value(), expected);
        assert_eq!(layer.forward(x.reshape([2, 1, 3])).value(), expected.reshape([2, 1, 2]));
        assert_eq!(layer.forward(x.select(0, 0)).value().to_vec(), [8.0, 18.0]);
        assert_eq!(layer.forward(tape.constant(Tensor::zeros([0, 3]))).value().shape(), &[0, 2]);
    }

    #[test]
    fn gradients_follow_the_formula() {
        let (layer, tape) = (layer(), Tape::new());
        let x = tape.var(&Tensor::from([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]));
        let upstream = Tensor::from([[1.0, 10.0], [100.0, 1000.0]]);
        let gradients = (layer.forward(x) * &upstream).sum(..).backward();
        // With the gradient g of the output, the gradient of W is gᵀ x, and the gradient of x is g W. The gradient of b is the sum of the
        // rows of g.
        assert_eq!(gradients.of(&layer.weight), &Tensor::from([[1.0, 200.0, -1.0], [10.0, 2000.0, -10.0]]));
        assert_eq!(gradients.of(layer.bias.as_ref().unwrap()).to_vec(), [101.0, 1010.0]);
        assert_eq!(gradients.of(x), &Tensor::from([[41.0, 52.0, 63.0], [4100.0, 5200.0, 6300.0]]));
    }

    #[test]
    fn names_bounds_and_reproducibility() {
        let layer = Linear::<f32>::new(16, 4, &mut Generator::new(1));
        let paths: Vec<String> = layer.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight", "bias"]);
        let values = || layer.weight.value.iter().chain(layer.bias.as_ref().unwrap().value.iter());
        assert!(values().all(|w| w.abs() <= 0.25) && values().any(|w| w < -0.2) && values().any(|w| w > 0.2));
        let again = Linear::<f32>::new(16, 4, &mut Generator::new(1));
        assert_eq!(again.weight.value, layer.weight.value);
        assert_eq!(Linear::<f32>::without_bias(0, 3, &mut Generator::new(1)).weight.value.shape(), &[3, 0]);
    }

    #[test]
    fn the_error_for_a_wrong_width_is_pytorchs() {
        let tape = Tape::new();
        let error = layer().try_forward(tape.constant(Tensor::ones([5, 4]))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("mat1 and mat2 shapes cannot be multiplied (5x4 and 3x2)"), "{text}");
        assert!(text.contains("in the layer Linear(3, 2) on an input of shape [5, 4], made at"), "{text}");
        assert!(text.contains("linear.rs"), "{text}");
    }
}
