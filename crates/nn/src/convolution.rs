//! The convolutional layer.

use wengert_autograd::{Error, Parameter, Var};
use wengert_tensor::ops::{ConvOptions, Convolution as _};
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::{Generator, Module};

/// Convolution over images. PyTorch: `torch.nn.Conv2d`, with the same layout of the weight and the same initial distribution.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Conv2d, Generator};
///
/// let layer = Conv2d::<f32>::new("conv1", 1, 8, 5, &mut Generator::new(0));
/// let tape = Tape::new();
/// let maps = layer.forward(tape.constant(&Tensor::zeros([64, 1, 28, 28])));
/// assert_eq!(maps.shape(), [64, 8, 24, 24]);
/// ```
#[derive(Clone, Debug)]
pub struct Conv2d<T: Float> {
    /// `[out, in / groups, kh, kw]`, named `{name}.weight`.
    pub weight: Parameter<T>,
    /// `[out]`, named `{name}.bias`.
    pub bias: Option<Parameter<T>>,
    /// Stride, padding, dilation and groups.
    pub options: ConvOptions,
}

impl<T: Float> Conv2d<T> {
    /// A layer from `in_channels` to `out_channels` by windows of `kernel` x `kernel`, with stride 1, no padding and one
    /// group; see [`with_options`](Self::with_options).
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the parameters.
    pub fn new(name: &str, in_channels: usize, out_channels: usize, kernel: usize, generator: &mut Generator) -> Self {
        let channels = [in_channels, out_channels];
        Conv2d::with_options(name, channels, [kernel, kernel], 1, ConvOptions::default(), generator)
    }

    /// A layer from `in_channels` to `out_channels` by windows of `[kh, kw]`, which move as `options` say, in `groups` groups
    /// (whatever the options say of them). Weight and bias are drawn from U(-1/√n, 1/√n) for n = in / groups · kh · kw, as in
    /// PyTorch (zeros where that is 0). `name` is the layer's path in its model: `conv1`, `features.0`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the parameters.
    pub fn with_options(
        name: &str,
        [in_channels, out_channels]: [usize; 2],
        [kh, kw]: [usize; 2],
        groups: usize,
        options: ConvOptions,
        generator: &mut Generator,
    ) -> Self {
        let shape = [out_channels, in_channels / groups.max(1), kh, kw];
        let inputs = shape[1] * kh * kw;
        let bound = if inputs == 0 { 0.0 } else { 1.0 / (inputs as f64).sqrt() };
        let weight = Tensor::uniform(-bound, bound, shape, generator);
        let bias = Tensor::uniform(-bound, bound, [out_channels], generator);
        Conv2d {
            weight: Parameter::new(format!("{name}.weight"), weight),
            bias: Some(Parameter::new(format!("{name}.bias"), bias)),
            options: options.groups(groups),
        }
    }

    /// This layer without its bias. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Conv2d { bias: None, ..self }
    }

    /// `[n, in, h, w]` to `[n, out, h', w']`, or without `n`.
    ///
    /// # Panics
    ///
    /// Where the channels of `x` are not those of the weight, or no window fits; see [`try_forward`](Self::try_forward).
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
    /// Where the channels of `x` are not those of the weight, or no window fits.
    #[track_caller]
    pub fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (tape, bias) = (x.tape(), self.bias.as_ref());
        x.try_conv2d(&tape.parameter(&self.weight), bias.map(|bias| tape.parameter(bias)).as_ref(), &self.options)
    }
}

impl<T: Float> Module<T> for Conv2d<T> {
    fn parameters(&self) -> Vec<&Parameter<T>> {
        [&self.weight].into_iter().chain(&self.bias).collect()
    }

    fn parameters_mut(&mut self) -> Vec<&mut Parameter<T>> {
        [&mut self.weight].into_iter().chain(&mut self.bias).collect()
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

    #[test]
    fn values_and_gradients_are_those_of_the_definition() {
        let layer = Conv2d::<f64> {
            weight: Parameter::new("conv.weight", Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]])),
            bias: Some(Parameter::new("conv.bias", Tensor::from([10.0]))),
            options: ConvOptions::default().stride(2).padding(1),
        };
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([[[1.0, 2.0], [3.0, 5.0]]]));
        let y = layer.forward(x);
        assert_eq!(y.value(), Tensor::from([[[14.0, 16.0], [16.0, 15.0]]]));
        let gradients = (y * &Tensor::from([[[1.0, 10.0], [100.0, 1000.0]]])).sum(..).backward();
        // Each corner of the image lies under one tap of one window.
        assert_eq!(gradients.of(x), &Tensor::from([[[4.0, 30.0], [200.0, 1000.0]]]));
        assert_eq!(gradients.of(&layer.weight).to_vec(), [5000.0, 300.0, 20.0, 1.0]);
        assert_eq!(gradients.of(layer.bias.as_ref().unwrap()).to_vec(), [1111.0]);
    }

    #[test]
    fn names_shapes_and_bounds() {
        let options = ConvOptions::default().dilation(2);
        let generator = &mut Generator::new(1);
        let layer = Conv2d::<f32>::with_options("features.0", [4, 6], [3, 5], 2, options, generator);
        let names: Vec<&str> = layer.parameters().iter().map(|parameter| parameter.name()).collect();
        assert_eq!(names, ["features.0.weight", "features.0.bias"]);
        assert_eq!(layer.weight.value.shape(), &[6, 2, 3, 5]);
        // Two channels of 15 taps.
        let bound = 1.0 / 30f32.sqrt();
        let values = || layer.weight.value.iter().chain(layer.bias.as_ref().unwrap().value.iter());
        assert!(
            values().all(|w| w.abs() <= bound)
                && values().any(|w| w < -0.8 * bound)
                && values().any(|w| w > 0.8 * bound)
        );
        let tape = Tape::new();
        assert_eq!(layer.forward(tape.constant(&Tensor::zeros([4, 9, 9]))).shape(), [6, 5, 1]);
        assert_eq!(layer.without_bias().parameters().len(), 1);
    }
}
