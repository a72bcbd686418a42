//! Activations as layers, for [`Sequential`](crate::Sequential): plain code calls the operation of the same name. Formulas,
//! values at kinks and infinities are those of the operations.

use std::panic::Location;

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::{
    Activations as _, Arithmetic as _, Comparison as _, Functions as _, Softmax as _, try_where_,
};
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::layers::layer::{Layer, output_of};
use crate::module::Module;

/// Layers without settings: documentation, name, operation.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl<T: Float> Module<T> for $name {}

        impl<T: Float> Layer<T> for $name {
            #[track_caller]
            fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
                Ok(x.$operation()?)
            }
        }
    )*};
}

/// Layers with settings, the arguments of their operation: documentation, name, settings with types, operation, and PyTorch's
/// defaults where it has some.
macro_rules! functions_with_settings {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $setting:ident: $type:ty),* } = $operation:ident
        $(, default($($default:expr),*))?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$about])* $setting: $type,)*
            made: &'static Location<'static>,
        }

        impl $name {
            /// A layer with these settings.
            #[track_caller]
            pub fn new($($setting: $type),*) -> Self {
                $name { $($setting,)* made: Location::caller() }
            }
        }

        $(impl Default for $name {
            /// The layer with PyTorch's defaults.
            #[track_caller]
            fn default() -> Self {
                $name::new($($default),*)
            }
        })?

        impl<T: Float> Module<T> for $name {}

        impl<T: Float> Layer<T> for $name {
            #[track_caller]
            fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
                output_of(self, x.$operation($(self.$setting),*), self.made, || {
                    let settings = [$(format!(concat!(stringify!($setting), "={}"), self.$setting)),*].join(", ");
                    format!("{}({settings}) on an input of shape {}", stringify!($name), x.shape())
                })
            }
        }
    )*};
}

pub(crate) use functions_with_settings;

functions! {
    /// The larger of x and 0. PyTorch: `torch.nn.ReLU`.
    ReLU = try_relu;
    /// x, but at least 0 and at most 6. PyTorch: `torch.nn.ReLU6`.
    ReLU6 = try_relu6;
    /// 1 / (1 + e⁻ˣ). PyTorch: `torch.nn.Sigmoid`.
    Sigmoid = try_sigmoid;
    /// ln(1 / (1 + e⁻ˣ)). PyTorch: `torch.nn.LogSigmoid`.
    LogSigmoid = try_logsigmoid;
    /// The hyperbolic tangent. PyTorch: `torch.nn.Tanh`.
    Tanh = try_tanh;
    /// x - tanh x. PyTorch: `torch.nn.Tanhshrink`.
    Tanhshrink = try_tanhshrink;
    /// The self-normalizing ELU. PyTorch: `torch.nn.SELU`.
    SELU = try_selu;
    /// x Φ(x), Φ the normal distribution function. PyTorch: `torch.nn.GELU`.
    GELU = try_gelu;
    /// The approximation of [`GELU`] with a tanh. PyTorch: `torch.nn.GELU(approximate='tanh')`.
    GELUTanh = try_gelu_tanh;
    /// x σ(x), σ the sigmoid. PyTorch: `torch.nn.SiLU`.
    SiLU = try_silu;
    /// x tanh(ln(1 + eˣ)). PyTorch: `torch.nn.Mish`.
    Mish = try_mish;
    /// x / (1 + |x|). PyTorch: `torch.nn.Softsign`.
    Softsign = try_softsign;
    /// x · min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardswish`.
    Hardswish = try_hardswish;
    /// min(max(x + 3, 0), 6) / 6. PyTorch: `torch.nn.Hardsigmoid`.
    Hardsigmoid = try_hardsigmoid;
}

functions_with_settings! {
    /// x above 0, `negative_slope`·x elsewhere. PyTorch: `torch.nn.LeakyReLU`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Layer, LeakyReLU};
    ///
    /// let tape = Tape::new();
    /// let y = LeakyReLU::new(0.1).forward(tape.constant(&Tensor::from([-2.0, 3.0])));
    /// assert_eq!(y.value().to_vec(), [-0.2, 3.0]);
    /// ```
    LeakyReLU {
        /// The slope below 0.
        negative_slope: f64
    } = try_leaky_relu, default(0.01);
    /// x above 0, α(eˣ - 1) elsewhere. PyTorch: `torch.nn.ELU`.
    ELU {
        /// α.
        alpha: f64
    } = try_elu, default(1.0);
    /// x above 0, α(e^(x/α) - 1) elsewhere. PyTorch: `torch.nn.CELU`.
    CELU {
        /// α, not 0.
        alpha: f64
    } = try_celu, default(1.0);
    /// ln(1 + e^(βx)) / β, and x itself where βx is above `threshold`. PyTorch: `torch.nn.Softplus`.
    Softplus {
        /// β.
        beta: f64,
        /// Where the function becomes x.
        threshold: f64
    } = try_softplus, default(1.0, 20.0);
    /// x, but at least `min_val` and at most `max_val`. PyTorch: `torch.nn.Hardtanh`.
    Hardtanh {
        /// The least value.
        min_val: f64,
        /// The largest value.
        max_val: f64
    } = try_hardtanh, default(-1.0, 1.0);
    /// x, and 0 from -λ to λ. PyTorch: `torch.nn.Hardshrink`.
    Hardshrink {
        /// λ.
        lambd: f64
    } = try_hardshrink, default(0.5);
    /// x moved towards 0 by λ, and 0 from -λ to λ. PyTorch: `torch.nn.Softshrink`.
    Softshrink {
        /// λ, not negative.
        lambd: f64
    } = try_softshrink, default(0.5);
    /// x above `threshold`, `value` elsewhere. PyTorch: `torch.nn.Threshold`.
    Threshold {
        /// What x has to be above.
        threshold: f64,
        /// What stands in its place otherwise.
        value: f64
    } = try_threshold;
    /// eˣ divided by its sum along `dim`. PyTorch: `torch.nn.Softmax`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Layer, Softmax};
    ///
    /// let tape = Tape::new();
    /// let y = Softmax::new(-1).forward(tape.constant(&Tensor::from([[5.0, 5.0]])));
    /// assert_eq!(y.value().to_vec(), [0.5, 0.5]);
    /// ```
    Softmax {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_softmax;
    /// e⁻ˣ divided by its sum along `dim`. PyTorch: `torch.nn.Softmin`.
    Softmin {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_softmin;
    /// The logarithm of [`Softmax`]. PyTorch: `torch.nn.LogSoftmax`.
    LogSoftmax {
        /// The dimension; negative numbers count from the end.
        dim: isize
    } = try_log_softmax;
    /// The first half along `dim` times the sigmoid of the second. PyTorch: `torch.nn.GLU`.
    GLU {
        /// The dimension, of even size; negative numbers count from the end.
        dim: isize
    } = try_glu, default(-1);
}

/// x above 0, a trained slope times x elsewhere. PyTorch: `torch.nn.PReLU`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, PReLU};
///
/// let tape = Tape::new();
/// let y = PReLU::<f64>::new(1).forward(tape.constant(&Tensor::from([-2.0, 3.0])));
/// assert_eq!(y.value().to_vec(), [-0.5, 3.0]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct PReLU<T: Float = f32> {
    /// The slopes, `[1]` or `[c]`.
    pub weight: Parameter<T>,
}

impl<T: Float> PReLU<T> {
    /// A layer with one slope, or with one for each channel (dimension 1), of 0.25 to begin with.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameter.
    #[track_caller]
    pub fn new(num_parameters: usize) -> Self {
        PReLU { weight: Parameter::new(Tensor::full([num_parameters], T::from_f64(0.25))) }
    }
}

impl<T: Float> Layer<T> for PReLU<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, x.try_prelu(x.tape().try_parameter(&self.weight)?), self.weight.made(), || {
            format!("PReLU({}) on an input of shape {}", self.weight.value.numel(), x.shape())
        })
    }
}

/// [`LeakyReLU`] with a slope that is drawn for each element from U(`lower`, `upper`) on a training tape, and their mean on any
/// other. PyTorch: `torch.nn.RReLU`, with 1/8 and 1/3 unless told otherwise.
#[derive(Clone, Copy, Debug)]
pub struct RReLU {
    lower: f64,
    upper: f64,
}

impl RReLU {
    /// A layer with slopes between these bounds.
    pub fn new(lower: f64, upper: f64) -> Self {
        RReLU { lower, upper }
    }
}

impl<T: Float> Module<T> for RReLU {}

impl<T: Float> Layer<T> for RReLU {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let Some(mut generator) = x.tape().draw(wengert_tensor::Generator::fork) else {
            return Ok(x.try_leaky_relu((self.lower + self.upper) / 2.0)?);
        };
        let slopes = Tensor::try_uniform(self.lower, self.upper, x.shape(), &mut generator)?;
        Ok(try_where_(&x.try_gt(0.0)?, &x, x.try_mul(&slopes)?)?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::Sequential;
    use crate::layers::activation::Softmax;
    use crate::layers::check::{close, input, layer_gradients};

    /// The values are PyTorch 2.15's at -2, -0.25, 0.5, 2.
    #[test]
    fn values_are_pytorchs() {
        let x = Tensor::from([[-2.0, -0.25, 0.5, 2.0]]);
        let cases: &[(&dyn Layer<f64>, [f64; 4])] = &[
            (&ReLU, [0.0, 0.0, 0.5, 2.0]),
            (&ReLU6, [0.0, 0.0, 0.5, 2.0]),
            (&Sigmoid, [0.119202922022, 0.437823499114, 0.622459331202, 0.880797077978]),
            (&LogSigmoid, [-2.126928011043, -0.825939419879, -0.47407698418, -0.126928011043]),
            (&Tanh, [-0.964027580076, -0.244918662404, 0.46211715726, 0.964027580076]),
            (&Tanhshrink, [-1.035972419924, -0.005081337596, 0.03788284274, 1.035972419924]),
            (&SELU, [-1.520166468596, -0.388890197478, 0.525350493678, 2.101401974711]),
            (&GELU, [-0.045500263896, -0.100323418579, 0.345731230637, 1.954499736104]),
            (&GELUTanh, [-0.045402305912, -0.100324649298, 0.345714009825, 1.954597694088]),
            (&SiLU, [-0.238405844044, -0.109455874779, 0.311229665601, 1.761594155956]),
            (&Mish, [-0.252501482696, -0.129926963679, 0.375245211305, 1.943958959534]),
            (&Softsign, [-0.666666666667, -0.2, 0.333333333333, 0.666666666667]),
            (&Hardswish, [-0.333333333333, -0.114583333333, 0.291666666667, 1.666666666667]),
            (&Hardsigmoid, [0.166666666667, 0.458333333333, 0.583333333333, 0.833333333333]),
            (&LeakyReLU::new(0.2), [-0.4, -0.05, 0.5, 2.0]),
            (&ELU::new(0.5), [-0.432332358382, -0.110599608464, 0.5, 2.0]),
            (&CELU::new(0.5), [-0.490842180556, -0.196734670144, 0.5, 2.0]),
            (&Softplus::new(2.0, 3.0), [0.009074963959, 0.23703849209, 0.656630843759, 2.0]),
            (&Hardtanh::new(-1.0, 0.25), [-1.0, -0.25, 0.25, 0.25]),
            (&Hardshrink::new(0.5), [-2.0, 0.0, 0.0, 2.0]),
            (&Softshrink::new(0.25), [-1.75, 0.0, 0.25, 1.75]),
            (&Threshold::new(0.0, 7.0), [7.0, 7.0, 0.5, 2.0]),
            (&Softmax::new(1), [0.013598920862, 0.078256386381, 0.165668771268, 0.742475921489]),
            (&Softmin::new(1), [0.784821809304, 0.136381580709, 0.064422097137, 0.014374512851]),
            (&LogSoftmax::new(-1), [-4.297764837802, -2.547764837802, -1.797764837802, -0.297764837802]),
            (&RReLU::new(0.25, 0.75), [-1.0, -0.125, 0.5, 2.0]),
        ];
        for (position, (layer, expected)) in cases.iter().enumerate() {
            let got = layer.forward(Tape::new().constant(&x)).value().to_vec();
            // 1/6 in Hardsigmoid is an f32.
            let near = got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-8);
            assert!(near, "case {position}: {got:?}, expected {expected:?}");
        }
        close(
            &GLU::new(-1).forward(Tape::new().constant(&x)).value(),
            &[-1.2449186624037092, -0.22019926949447058],
            1e-15,
        );
    }

    #[test]
    fn slopes_are_trained() {
        layer_gradients(PReLU::new(1), &input([2, 3]));
        layer_gradients(PReLU::new(3), &input([2, 3, 2]));
        assert_eq!(PReLU::<f32>::new(3).to_vector().to_vec(), [0.25; 3]);
    }

    #[test]
    fn random_slopes_lie_between_the_bounds_and_are_their_mean_in_evaluation() {
        let layer = RReLU::new(0.25, 0.75);
        let x = Tensor::<f64>::full([1000], -1.0);
        assert_eq!(layer.forward(Tape::new().constant(&x)).value(), Tensor::full([1000], -0.5));
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(&x)).value().to_vec();
        assert!(y.iter().all(|y| (-0.75..=-0.25).contains(y)));
        assert!(y.iter().any(|&y| y < -0.7) && y.iter().any(|&y| y > -0.3));
        layer_gradients(layer, &input([5]));
    }

    #[test]
    fn errors_name_the_layer_and_its_settings() {
        let tape = Tape::new();
        let x = tape.constant(&Tensor::<f64>::ones([2, 3]));
        let text = Softmax::new(2).try_forward(x).unwrap_err().to_string();
        assert!(text.contains("in the layer Softmax(dim=2) on an input of shape [2, 3], made at"), "{text}");
        assert!(text.contains("activation.rs"), "{text}");
        assert!(GLU::default().try_forward(x).unwrap_err().to_string().contains("GLU(dim=-1)"));
        assert!(PReLU::new(2).try_forward(x).unwrap_err().to_string().contains("PReLU(2) on an input"));
        let model: Sequential<f64> = Sequential::new().add(Tanh).add(Softshrink::new(-1.0));
        assert!(model.try_forward(x).unwrap_err().to_string().contains("Softshrink(lambd=-1)"));
    }
}
