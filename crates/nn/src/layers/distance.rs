//! Layers that compare two inputs: the cosine of their angle, and their distance.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::Norms as _;

use crate::Result;
use crate::layers::forward::output_of;
use crate::module::Module;

/// The cosine of the angle between two inputs, along a dimension. The shapes of the inputs broadcast, and the result lacks the dimension. A
/// norm of an input below `eps` counts as `eps`. PyTorch: `torch.nn.CosineSimilarity`.
///
/// For tensors without a tape see [`cosine_similarity`](wengert_tensor::ops::Norms::cosine_similarity).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::CosineSimilarity;
///
/// let tape = Tape::new();
/// let a = tape.constant(Tensor::from([[1.0, 0.0], [1.0, 1.0]]));
/// let b = tape.constant(Tensor::from([[5.0, 0.0], [-2.0, 2.0]]));
/// assert_eq!(CosineSimilarity::new(1).forward(a, b).value().to_vec(), [1.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct CosineSimilarity {
    dim: isize,
    eps: f64,
    created_at: &'static Location<'static>,
}

impl Default for CosineSimilarity {
    /// Returns the layer over dimension 1, PyTorch's default.
    #[track_caller]
    fn default() -> Self {
        CosineSimilarity::new(1)
    }
}

impl CosineSimilarity {
    /// Returns a layer over the dimension `dim`; negative values count from the end.
    #[track_caller]
    pub fn new(dim: isize) -> Self {
        CosineSimilarity { dim, eps: 1e-8, created_at: Location::caller() }
    }

    /// Sets the smallest norm by which the layer divides; 1e-8 by default. It must not be negative.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        CosineSimilarity { eps, ..self }
    }
}

#[twins]
impl CosineSimilarity {
    /// Returns the cosine of the angle between `x1` and `x2`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast or lack the dimension, `eps` is negative or NaN, or the inputs belong to different tapes. The error names
    /// the layer.
    pub fn try_forward<'t, T: Float>(&self, x1: Var<'t, T>, x2: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of::<T, _>(self, x1.try_cosine_similarity(x2, self.dim, self.eps), self.created_at, || {
            let CosineSimilarity { dim, eps, .. } = self;
            format!("CosineSimilarity(dim={dim}, eps={eps}) on inputs of shapes {} and {}", x1.shape(), x2.shape())
        })
    }
}

impl<T: Float> Module<T> for CosineSimilarity {}

/// The distance between two inputs: the p-norm of x₁ - x₂ + `eps` over the last dimension. The shapes of the inputs broadcast. PyTorch:
/// `torch.nn.PairwiseDistance`.
///
/// For tensors without a tape see [`pairwise_distance`](wengert_tensor::ops::Norms::pairwise_distance).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::PairwiseDistance;
///
/// let tape = Tape::new();
/// let a = tape.constant(Tensor::from([[1.0, 0.0], [1.0, 1.0]]));
/// let b = tape.constant(Tensor::from([[4.0, 4.0], [1.0, 3.0]]));
/// assert_eq!(PairwiseDistance::new(2).eps(0.0).forward(a, b).value().to_vec(), [5.0, 2.0]);
/// ```
#[derive(Clone, Debug)]
pub struct PairwiseDistance {
    p: f64,
    eps: f64,
    keepdim: bool,
    created_at: &'static Location<'static>,
}

impl Default for PairwiseDistance {
    /// Returns the Euclidean distance, PyTorch's default.
    #[track_caller]
    fn default() -> Self {
        PairwiseDistance::new(2)
    }
}

impl PairwiseDistance {
    /// Returns a layer with the `p`-norm.
    #[track_caller]
    pub fn new(p: impl Into<f64>) -> Self {
        PairwiseDistance { p: p.into(), eps: 1e-6, keepdim: false, created_at: Location::caller() }
    }

    /// Sets the number that the layer adds to each difference; 1e-6 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        PairwiseDistance { eps, ..self }
    }

    /// Keeps the last dimension of the result, with size 1.
    #[must_use]
    pub fn keepdim(self) -> Self {
        PairwiseDistance { keepdim: true, ..self }
    }
}

#[twins]
impl PairwiseDistance {
    /// Returns the distance between `x1` and `x2`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast or have no dimensions, or the inputs belong to different tapes. The error names the layer.
    pub fn try_forward<'t, T: Float>(&self, x1: Var<'t, T>, x2: Var<'t, T>) -> Result<Var<'t, T>> {
        let distance = match self.keepdim {
            true => x1.try_pairwise_distance_keepdim(x2, self.p, self.eps),
            false => x1.try_pairwise_distance(x2, self.p, self.eps),
        };
        output_of::<T, _>(self, distance, self.created_at, || {
            let PairwiseDistance { p, eps, .. } = self;
            format!("PairwiseDistance(p={p}, eps={eps}) on inputs of shapes {} and {}", x1.shape(), x2.shape())
        })
    }
}

impl<T: Float> Module<T> for PairwiseDistance {}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{gradients, input};

    #[test]
    fn gradients_agree_with_differences() {
        let mut inputs = (Parameter::new(input([3, 4])), Parameter::new(Tensor::from([[0.5, -1.0, 2.0, 0.25]])));
        gradients(&mut inputs, |(a, b), tape| {
            CosineSimilarity::default().forward(tape.parameter(a), tape.parameter(b))
        });
        gradients(&mut inputs, |(a, b), tape| {
            PairwiseDistance::new(3).keepdim().forward(tape.parameter(a), tape.parameter(b))
        });
    }

    #[test]
    fn errors_name_the_layer() {
        let tape = Tape::new();
        let (a, b) = (tape.constant(Tensor::<f64>::ones([2, 3])), tape.constant(Tensor::ones([2, 4])));
        let text = CosineSimilarity::new(1).try_forward(a, b).unwrap_err().to_string();
        assert!(
            text.contains("in the layer CosineSimilarity(dim=1, eps=0.00000001) on inputs of shapes [2, 3] and [2, 4]"),
            "{text}"
        );
        assert!(CosineSimilarity::new(2).try_forward(a, a).is_err());
        let text = CosineSimilarity::new(1).eps(-1.0).try_forward(a, a).unwrap_err().to_string();
        assert!(text.contains("eps must be non-negative, got: -1"), "{text}");
        let text = PairwiseDistance::default().try_forward(a, b).unwrap_err().to_string();
        assert!(text.contains("in the layer PairwiseDistance(p=2, eps=0.000001) on inputs of shapes"), "{text}");
    }
}
