//! Rectifiers (activation functions with two linear pieces) whose slope below 0 is trained or random.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Parameter, Var};
use wengert_tensor::ops::{Activations as _, Arithmetic as _, Comparison as _, try_where_};
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::layers::forward::{fork_generator, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;

/// The layer that returns an element x of the input where x is above 0, and x times a trained slope elsewhere. PyTorch: `torch.nn.PReLU`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, PReLU};
///
/// let tape = Tape::new();
/// let y = PReLU::<f64>::new(1).forward(tape.constant(&Tensor::from([-2.0, 3.0])));
/// assert_eq!(y.value().to_vec(), [-0.5, 3.0]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct PReLU<T: Float = f32> {
    /// The slopes: one for all elements `[1]`, or one for each of c channels `[c]`.
    pub weight: Parameter<T>,
}

impl<T: Float> PReLU<T> {
    /// Returns a layer with `num_parameters` slopes: one for all elements, or one for each channel (dimension 1). The initial slopes are 0.25.
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
        output_of(self, x.try_prelu(x.tape().try_parameter(&self.weight)?), self.weight.created_at(), || {
            format!("PReLU({}) on an input of shape {}", self.weight.value.numel(), x.shape())
        })
    }
}

/// A [`LeakyReLU`](crate::LeakyReLU) with random slopes. On a training tape, the slope of each element below 0 is drawn uniformly from
/// `lower` to `upper`. On any other tape the slope is the mean of both bounds. PyTorch: `torch.nn.RReLU`, whose defaults are 1/8 and 1/3.
#[derive(Clone, Copy, Debug)]
pub struct RReLU {
    lower: f64,
    upper: f64,
    created_at: &'static Location<'static>,
}

impl RReLU {
    /// Returns a layer whose random slopes are from `lower` to `upper`. If `lower` is above `upper`, each forward pass on a training tape
    /// returns an error.
    #[track_caller]
    pub fn new(lower: f64, upper: f64) -> Self {
        RReLU { lower, upper, created_at: Location::caller() }
    }

    /// Multiplies the elements of `x` below 0 by random slopes on a training tape, and by the mean of both bounds on any other tape.
    #[track_caller]
    fn rectify<'t, T: Float>(&self, x: Var<'t, T>) -> std::result::Result<Var<'t, T>, TapeError> {
        let Some(mut generator) = fork_generator(x.tape(), "RReLU", self.lower != self.upper) else {
            return x.try_leaky_relu((self.lower + self.upper) / 2.0);
        };
        let slopes = Tensor::try_uniform(self.lower, self.upper, x.shape(), &mut generator)?;
        try_where_(&x.try_gt(0.0)?, &x, x.try_mul(&slopes)?)
    }
}

impl<T: Float> Module<T> for RReLU {}

impl<T: Float> Layer<T> for RReLU {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.rectify(x), self.created_at, || {
            format!("RReLU({}, {}) on an input of shape {}", self.lower, self.upper, x.shape())
        })
    }
}
