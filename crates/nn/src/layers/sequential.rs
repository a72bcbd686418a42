//! A list of layers that are applied one after the other.

use wengert_autograd::Var;
use wengert_tensor::Float;

use crate::layers::forward::pass_output;
use crate::layers::layer::Layer;
use crate::layers::linear::Linear;
use crate::module::Module;
use crate::{Generator, Result};

/// Layers that are applied one after the other. The path of a layer's parameters begins with the index of the layer. PyTorch:
/// `torch.nn.Sequential`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Linear, Module, ReLU, Sequential};
///
/// let generator = &mut Generator::new(0);
/// let model: Sequential =
///     Sequential::new().add(Linear::new(64, 32, generator)).add(ReLU).add(Linear::new(32, 10, generator));
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// let y = model.forward(Tape::new().constant(&Tensor::zeros([5, 64])));
/// ```
#[derive(Module)]
pub struct Sequential<T: Float = f32>(Vec<Box<dyn Layer<T>>>);

impl<T: Float> Sequential<T> {
    /// Returns a model without layers, whose output is its input.
    pub fn new() -> Self {
        Sequential(Vec::new())
    }

    /// Returns a multi-layer perceptron: linear layers with `activation` between them. `features` has the number of inputs, of units of each
    /// hidden layer, and of outputs. PyTorch: `torchvision.ops.MLP`, but without dropout and norms.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Generator, Layer, Module, ReLU, Sequential};
    ///
    /// let model: Sequential = Sequential::mlp(&[64, 32, 16, 10], ReLU, &mut Generator::new(0));
    /// assert_eq!(model.layers().len(), 5); // three linear layers and two ReLU
    /// assert_eq!(model.forward(Tape::new().constant(&Tensor::zeros([5, 64]))).shape(), [5, 10]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `features` has fewer than two sizes, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn mlp(features: &[usize], activation: impl Layer<T> + Clone + 'static, generator: &mut Generator) -> Self {
        assert!(features.len() > 1, "an mlp needs the numbers of its inputs and outputs, but got {features:?}");
        let mut layers = Sequential(vec![boxed(Linear::new(features[0], features[1], generator))]);
        for pair in features[1..].windows(2) {
            layers = layers.add(activation.clone());
            layers.0.push(boxed(Linear::new(pair[0], pair[1], generator)));
        }
        layers
    }

    /// Adds `layer` after the other layers.
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn add(mut self, layer: impl Layer<T> + 'static) -> Self {
        self.0.push(Box::new(layer));
        self
    }

    /// Returns the layers in the order in which they are applied.
    pub fn layers(&self) -> &[Box<dyn Layer<T>>] {
        &self.0
    }
}

/// Returns a linear layer in a box. This is a function of its own, so that the layer's methods are compiled in this crate and not in the
/// caller's crate.
#[wengert_macros::precompiled]
fn boxed<T: Float>(layer: Linear<T>) -> Box<dyn Layer<T>> {
    Box::new(layer)
}

impl<T: Float> Default for Sequential<T> {
    fn default() -> Self {
        Sequential::new()
    }
}

impl<T: Float> Layer<T> for Sequential<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(pass_output(self, self.0.try_forward(x)?))
    }
}
