//! The bilinear layer.

use wengert_autograd::{Parameter, Var};
use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::LinearMaps as _;

use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::linear::initial_parameter;
use crate::module::Module;
use crate::{Generator, Result};

/// The layer whose output with index o is yₒ = x₁ᵀ Wₒ x₂ + bₒ. It maps the inputs x₁, `[…, in1]`, and x₂, `[…, in2]`, to `[…, out]`. The
/// layout of the weight and the distribution of the initial parameters are PyTorch's. PyTorch: `torch.nn.Bilinear`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Bilinear, Generator};
///
/// let layer = Bilinear::<f32>::new(4, 5, 3, &mut Generator::new(0));
/// let tape = Tape::new();
/// let (x1, x2) = (tape.constant(&Tensor::ones([8, 4])), tape.constant(&Tensor::ones([8, 5])));
/// assert_eq!(layer.forward(x1, x2).shape(), [8, 3]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Bilinear<T: Float = f32> {
    /// The weight W, `[out, in1, in2]`.
    pub weight: Parameter<T>,
    /// The bias b, `[out]`. `None` if the layer has no bias.
    pub bias: Option<Parameter<T>>,
}

impl<T: Float> Bilinear<T> {
    /// Returns a layer from `in1_features` and `in2_features` to `out_features` features. As in PyTorch, weight and bias are drawn uniformly
    /// from -1/√in1 to 1/√in1, where in1 is `in1_features`. If `in1_features` is 0, weight and bias are 0.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(in1_features: usize, in2_features: usize, out_features: usize, generator: &mut Generator) -> Self {
        let mut layer = Bilinear::without_bias(in1_features, in2_features, out_features, generator);
        layer.bias = Some(Parameter::new(initial_parameter([out_features], in1_features, generator)));
        layer
    }

    /// Returns the same layer as [`new`](Self::new), but without a bias. PyTorch: `bias=False`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn without_bias(
        in1_features: usize,
        in2_features: usize,
        out_features: usize,
        generator: &mut Generator,
    ) -> Self {
        let weight = initial_parameter([out_features, in1_features, in2_features], in1_features, generator);
        Bilinear { weight: Parameter::new(weight), bias: None }
    }
}

#[twins]
impl<T: Float> Bilinear<T> {
    /// Returns the output for the inputs `x1` and `x2`. Their shapes must be equal except for the last size.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or the inputs belong to different tapes. The error names the layer.
    pub fn try_forward<'t>(&self, x1: Var<'t, T>, x2: Var<'t, T>) -> Result<Var<'t, T>> {
        let weight = x1.tape().try_parameter(&self.weight)?;
        let bias = optional_parameter(x1.tape(), self.bias.as_ref())?;
        output_of(self, x1.try_bilinear(x2, weight, bias.as_ref()), self.weight.created_at(), || {
            let sizes = self.weight.value.shape();
            let inputs = format!("{} and {}", x1.shape(), x2.shape());
            format!("Bilinear({}, {}, {}) on inputs of shapes {inputs}", sizes[1], sizes[2], sizes[0])
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{gradients, input};

    #[test]
    fn values_bounds_and_gradients() {
        let mut layer = Bilinear::<f64>::new(2, 3, 1, &mut Generator::new(1));
        let bound = 1.0 / 2f64.sqrt();
        assert!(layer.to_vector().iter().all(|w| w.abs() <= bound));
        assert!(layer.to_vector().iter().any(|w| w.abs() > bound / 2.0));
        layer.weight.value = Tensor::from([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]);
        layer.bias.as_mut().unwrap().value = Tensor::from([0.5]);
        let tape = Tape::new();
        let (x1, x2) = (tape.constant(Tensor::from([1.0, 10.0])), tape.constant(Tensor::from([1.0, 0.0, 1.0])));
        assert_eq!(layer.forward(x1, x2).value().to_vec(), [104.5]);
        let layer = Bilinear::new(2, 3, 2, &mut Generator::new(1));
        let inputs = (Parameter::new(input([4, 2])), Parameter::new(input([4, 3])));
        gradients(&mut (layer, inputs), |(layer, (x1, x2)), tape| {
            layer.forward(tape.parameter(x1), tape.parameter(x2))
        });
        assert_eq!(Bilinear::<f64>::without_bias(2, 3, 4, &mut Generator::new(1)).num_parameters(), 24);
    }

    #[test]
    fn errors_name_the_layer() {
        let layer = Bilinear::<f64>::new(2, 3, 1, &mut Generator::new(1));
        let tape = Tape::new();
        let x = tape.constant(Tensor::ones([4, 2]));
        let text = layer.try_forward(x, x).unwrap_err().to_string();
        assert!(
            text.contains("in the layer Bilinear(2, 3, 1) on inputs of shapes [4, 2] and [4, 2], made at"),
            "{text}"
        );
    }
}
