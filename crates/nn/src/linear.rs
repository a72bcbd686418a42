//! The affine layer.

use wengert_autograd::{Error, Parameter, Var};
use wengert_tensor::ops::LinearMaps as _;
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::{Generator, Module};

/// y = x Wᵀ + b. PyTorch: `torch.nn.Linear`, with the same layout of the weight and the same initial distribution.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, Linear};
///
/// let layer = Linear::<f32>::new("fc1", 64, 10, &mut Generator::new(0));
/// let tape = Tape::new();
/// let y = layer.forward(tape.constant(&Tensor::zeros([32, 64])));
/// assert_eq!(y.shape(), [32, 10]);
/// assert_eq!(y.value().select(0, 0), layer.bias.as_ref().unwrap().value);
/// ```
#[derive(Clone, Debug)]
pub struct Linear<T: Float> {
    /// W, `[out, in]`, named `{name}.weight`.
    pub weight: Parameter<T>,
    /// b, `[out]`, named `{name}.bias`.
    pub bias: Option<Parameter<T>>,
}

impl<T: Float> Linear<T> {
    /// A layer from `in_features` to `out_features` numbers. Weight and bias are drawn from U(-1/√in, 1/√in), as in
    /// PyTorch (zeros where there are no inputs). `name` is the layer's path in its model: `fc1`, `encoder.0`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the parameters.
    pub fn new(name: &str, in_features: usize, out_features: usize, generator: &mut Generator) -> Self {
        let mut layer = Linear::without_bias(name, in_features, out_features, generator);
        let bias = initial([out_features], in_features, generator);
        layer.bias = Some(Parameter::new(format!("{name}.bias"), bias));
        layer
    }

    /// [`new`](Self::new) without b. PyTorch: `bias=False`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the parameters.
    pub fn without_bias(name: &str, in_features: usize, out_features: usize, generator: &mut Generator) -> Self {
        let weight = initial([out_features, in_features], in_features, generator);
        Linear { weight: Parameter::new(format!("{name}.weight"), weight), bias: None }
    }

    /// `[…, in]` to `[…, out]`, or `[in]` to `[out]`.
    ///
    /// # Panics
    ///
    /// Where the last size of `x` is not that of the weight; see [`try_forward`](Self::try_forward).
    #[track_caller]
    pub fn forward<'t>(&self, x: Var<'t, T>) -> Var<'t, T> {
        match self.try_forward(x) {
            Ok(y) => y,
            Err(error) => raise(error),
        }
    }

    /// [`forward`](Self::forward), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where the last size of `x` is not that of the weight.
    #[track_caller]
    pub fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (tape, bias) = (x.tape(), self.bias.as_ref());
        x.try_linear(&tape.parameter(&self.weight), bias.map(|bias| tape.parameter(bias)).as_ref())
    }
}

impl<T: Float> Module<T> for Linear<T> {
    fn parameters(&self) -> Vec<&Parameter<T>> {
        [&self.weight].into_iter().chain(&self.bias).collect()
    }

    fn parameters_mut(&mut self) -> Vec<&mut Parameter<T>> {
        [&mut self.weight].into_iter().chain(&mut self.bias).collect()
    }
}

/// From U(-1/√in, 1/√in).
fn initial<T: Float, const R: usize>(shape: [usize; R], in_features: usize, generator: &mut Generator) -> Tensor<T> {
    let bound = if in_features == 0 { 0.0 } else { 1.0 / (in_features as f64).sqrt() };
    Tensor::uniform(-bound, bound, shape, generator)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    /// W = [[1, 2, 3], [4, 5, 6]], b = [10, 20].
    fn layer() -> Linear<f64> {
        Linear {
            weight: Parameter::new("fc.weight", Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])),
            bias: Some(Parameter::new("fc.bias", Tensor::from([10.0, 20.0]))),
        }
    }

    #[test]
    fn values_over_any_leading_dimensions() {
        let (layer, tape) = (layer(), Tape::new());
        let x = tape.constant(&Tensor::from([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]));
        let expected = Tensor::from([[8.0, 18.0], [14.0, 30.0]]);
        assert_eq!(layer.forward(x).value(), expected);
        assert_eq!(layer.forward(x.reshape([2, 1, 3])).value(), expected.reshape([2, 1, 2]));
        assert_eq!(layer.forward(x.select(0, 0)).value().to_vec(), [8.0, 18.0]);
        assert_eq!(layer.forward(tape.constant(&Tensor::zeros([0, 3]))).value().shape(), &[0, 2]);
    }

    #[test]
    fn gradients_are_those_of_the_formula() {
        let (layer, tape) = (layer(), Tape::new());
        let x = tape.var(&Tensor::from([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]));
        let upstream = Tensor::from([[1.0, 10.0], [100.0, 1000.0]]);
        let gradients = (layer.forward(x) * &upstream).sum(..).backward();
        // dW = gᵀ x, db = Σ g, dx = g W.
        assert_eq!(gradients.of(&layer.weight), &Tensor::from([[1.0, 200.0, -1.0], [10.0, 2000.0, -10.0]]));
        assert_eq!(gradients.of(layer.bias.as_ref().unwrap()).to_vec(), [101.0, 1010.0]);
        assert_eq!(gradients.of(x), &Tensor::from([[41.0, 52.0, 63.0], [4100.0, 5200.0, 6300.0]]));
    }

    #[test]
    fn names_bounds_and_reproducibility() {
        let layer = Linear::<f32>::new("encoder.0", 16, 4, &mut Generator::new(1));
        let names: Vec<&str> = layer.parameters().iter().map(|parameter| parameter.name()).collect();
        assert_eq!(names, ["encoder.0.weight", "encoder.0.bias"]);
        let values = || layer.weight.value.iter().chain(layer.bias.as_ref().unwrap().value.iter());
        assert!(values().all(|w| w.abs() <= 0.25) && values().any(|w| w < -0.2) && values().any(|w| w > 0.2));
        let again = Linear::<f32>::new("encoder.0", 16, 4, &mut Generator::new(1));
        assert_eq!(again.weight.value, layer.weight.value);
        assert_eq!(Linear::<f32>::without_bias("fc", 0, 3, &mut Generator::new(1)).weight.value.shape(), &[3, 0]);
    }

    #[test]
    fn a_wrong_width_is_pytorchs_sentence() {
        let tape = Tape::new();
        let error = layer().try_forward(tape.constant(&Tensor::ones([5, 4]))).unwrap_err();
        assert!(error.sentence().ends_with("mat1 and mat2 shapes cannot be multiplied (5x4 and 3x2)"), "{error}");
        assert!(error.to_string().contains("linear.rs"), "{error}");
    }
}
