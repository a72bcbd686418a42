//! What has parameters: layers, and models made of them.
//!
//! A module lists its parameters and does nothing else. How it computes is a method of its own (`forward`, by custom),
//! with whatever arguments it needs; there is no registry, and no mode to switch between training and evaluation.

use wengert_autograd::Parameter;
use wengert_tensor::Float;

/// Something with parameters. PyTorch: `torch.nn.Module`.
///
/// A model of several layers concatenates their lists; see the [crate's example](crate).
pub trait Module<T: Float> {
    /// The parameters, always in the same order. Their names are dotted paths, as in PyTorch's `state_dict`:
    /// `fc1.weight`.
    fn parameters(&self) -> Vec<&Parameter<T>>;

    /// The same parameters in the same order, to be changed: by an optimiser, or by [`load`](crate::load).
    fn parameters_mut(&mut self) -> Vec<&mut Parameter<T>>;

    /// How many numbers are trained.
    ///
    /// ```
    /// use wengert_nn::{Generator, Linear, Module};
    ///
    /// let layer = Linear::<f32>::new("fc", 64, 10, &mut Generator::new(0));
    /// assert_eq!(layer.num_parameters(), 64 * 10 + 10);
    /// ```
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|parameter| parameter.value.numel()).sum()
    }
}
