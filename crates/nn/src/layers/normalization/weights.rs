//! Normalized weights: a weight whose lengths and directions are separate parameters, and a weight that is divided by its largest singular value.
//!
//! [`WeightNorm`] is from Salimans and Kingma, "Weight normalization" (2016). [`SpectralNorm`] is from Miyato et al., "Spectral normalization
//! for generative adversarial networks" (2018).

use wengert_autograd::{BlendWeight, Buffer, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Blas as _, Norms as _, Products as _, TensorLike, Views as _};
use wengert_tensor::{Float, Generator, Site, Tensor};

use crate::Result;
use crate::module::Module;

/// The smallest norm by which the power iteration divides a vector. PyTorch: `eps`.
const EPS: f64 = 1e-12;

/// A weight w = g v / ‖v‖ whose parameters are the length g and the direction v. The norm ‖v‖ is over all dimensions except one, by default
/// the first. So each output of a linear layer or a convolution has its own length. Where the norm of v is 0, the weight is NaN. PyTorch:
/// `torch.nn.utils.parametrizations.weight_norm`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Linear, WeightNorm};
///
/// let linear = Linear::new(3, 2, &mut Generator::new(0));
/// let normed = WeightNorm::new(&linear.weight.value);
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::<f32>::ones([5, 3]));
/// let y = x.linear(normed.weight(&tape), None);
/// assert_eq!(y.shape(), [5, 2]);
/// let error = (normed.weight(&tape).value() - &linear.weight.value).abs().amax(..).item();
/// assert!(error < 1e-6); // at first, the weight is the same
/// ```
#[derive(Clone, Debug, Module)]
pub struct WeightNorm<T: Float = f32> {
    /// The lengths g, in the shape of the weight, but with size 1 in all dimensions except `dim`. A single number if `dim` is `None`.
    pub original0: Parameter<T>,
    /// The directions v, in the shape of the weight.
    pub original1: Parameter<T>,
    dim: Option<usize>,
}

#[twins]
impl<T: Float> WeightNorm<T> {
    /// Returns `weight` split into lengths and directions, with one length for each index of dimension 0. A weight without dimensions gets
    /// a single length.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_new(weight: &Tensor<T>) -> Result<Self> {
        let axis = wengert_tensor::axis(0, weight.rank(), Site::here("new"))?;
        WeightNorm::decompose(weight, Some(axis).filter(|_| weight.rank() > 0))
    }

    /// Returns `weight` split into lengths and directions. There is one length for each index of dimension `dim`, or a single length if `dim` is
    /// `None`.
    ///
    /// # Errors
    ///
    /// If the weight does not have the dimension `dim`, or there is not enough memory.
    pub fn try_with_dim(weight: &Tensor<T>, dim: impl Into<Option<isize>>) -> Result<Self> {
        let at = Site::here("with_dim");
        let axis = dim.into().map(|dim| wengert_tensor::axis(dim, weight.rank(), at)).transpose()?;
        WeightNorm::decompose(weight, axis.filter(|_| weight.rank() > 0))
    }

    /// Returns the normalized weight, as a variable on `tape`.
    ///
    /// # Errors
    ///
    /// If the lengths and the directions do not broadcast, because the caller has changed their shapes. Also returns the errors of
    /// [`parameter`](Tape::parameter).
    pub fn try_weight<'t>(&self, tape: &'t Tape<T>) -> Result<Var<'t, T>> {
        let (g, v) = (tape.try_parameter(&self.original0)?, tape.try_parameter(&self.original1)?);
        Ok(g.try_mul(v.try_div(norm_except_dim(&v, self.dim)?)?)?)
    }

    /// Splits `weight` into lengths and directions. Its norms become the lengths, and `weight` itself becomes the directions.
    #[track_caller]
    fn decompose(weight: &Tensor<T>, dim: Option<usize>) -> Result<Self> {
        let norm = norm_except_dim(weight, dim)?;
        Ok(WeightNorm { original0: Parameter::new(norm), original1: Parameter::new(weight.clone()), dim })
    }
}

/// Returns the norm of `v` over all dimensions except `dim`. The result keeps these dimensions with size 1. If `dim` is `None`, returns the norm over all
/// dimensions, a single number.
#[track_caller]
fn norm_except_dim<A: TensorLike<Elem: Float>>(v: &A, dim: Option<usize>) -> Result<A, A::Error> {
    let Some(dim) = dim else { return v.try_vector_norm(2, ..) };
    let others: Vec<usize> = (0..v.shape().rank()).filter(|&axis| axis != dim).collect();
    if others.is_empty() { v.try_abs() } else { v.try_vector_norm_keepdim(2, others) }
}

/// A weight that is divided by its largest singular value σ. To compute σ, the weight is treated as a matrix W whose rows are dimension 0
/// and whose columns are all other dimensions. A linear layer with the weight divided by the exact σ enlarges no distance between inputs.
/// PyTorch: `torch.nn.utils.parametrizations.spectral_norm`.
///
/// σ is estimated by uᵀ W v, where u and v are estimates of its singular vectors. Each use on a training tape improves u and v by one power
/// iteration, or by the number that [`iterations`](Self::iterations) sets. The optimiser's step stores the result. No gradient flows
/// through the iteration.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, SpectralNorm};
///
/// let generator = &mut Generator::new(0);
/// let normed = SpectralNorm::new(&Tensor::from([[3.0f64, 0.0], [0.0, 1.0]]), generator);
/// let tape = Tape::new();
/// let weight = normed.weight(&tape).value(); // the largest singular value is 3
/// assert!((weight.get(&[0, 0]).unwrap() - 1.0).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, Module)]
pub struct SpectralNorm<T: Float = f32> {
    /// The weight before the division by σ.
    pub original: Parameter<T>,
    /// The estimated left singular vector of the largest singular value σ. PyTorch: `_u`.
    pub u: Buffer<T>,
    /// The estimated right singular vector of the largest singular value σ. PyTorch: `_v`.
    pub v: Buffer<T>,
    iterations: usize,
}

#[twins]
impl<T: Float> SpectralNorm<T> {
    /// Returns the normalization of `weight`. As in PyTorch, the singular vectors u and v begin at random and are improved by 15 power
    /// iterations.
    ///
    /// # Errors
    ///
    /// If the weight has fewer than two dimensions, or there is not enough memory.
    pub fn try_new(weight: &Tensor<T>, generator: &mut Generator) -> Result<Self> {
        let matrix = weight.try_flatten(1, -1)?;
        let &[rows, columns] = &matrix.shape()[..] else { unreachable!("dimension 1 exists") };
        let vector = |size: usize, generator: &mut Generator| -> Result<Tensor<T>> {
            Ok(Tensor::try_randn([size], generator)?.try_normalize(2, 0, EPS)?)
        };
        let (mut u, mut v) = (vector(rows, generator)?, vector(columns, generator)?);
        for _ in 0..15 {
            u = matrix.try_matmul(&v)?.try_normalize(2, 0, EPS)?;
            v = u.try_matmul(&matrix)?.try_normalize(2, 0, EPS)?;
        }
        let (u, v) = (Buffer::new(u), Buffer::new(v));
        Ok(SpectralNorm { original: Parameter::new(weight.clone()), u, v, iterations: 1 })
    }

    /// Sets the number of power iterations in each use on a training tape; 1 by default. PyTorch: `n_power_iterations`.
    #[must_use]
    pub fn iterations(self, iterations: usize) -> Self {
        SpectralNorm { iterations, ..self }
    }

    /// Returns the normalized weight, as a variable on `tape`. A training tape also records the singular vectors u and v that
    /// the power iterations improve.
    ///
    /// # Errors
    ///
    /// If u and v do not fit the weight, because the caller has changed its shape.
    pub fn try_weight<'t>(&self, tape: &'t Tape<T>) -> Result<Var<'t, T>> {
        let weight = tape.try_parameter(&self.original)?;
        let matrix = weight.try_flatten(1, -1)?;
        let (mut u, mut v) = (tape.try_constant(&self.u.value)?, tape.try_constant(&self.v.value)?);
        if tape.is_training() {
            let detached = matrix.try_detach()?;
            for _ in 0..self.iterations {
                u = detached.try_matmul(v)?.try_normalize(2, 0, EPS)?;
                v = u.try_matmul(detached)?.try_normalize(2, 0, EPS)?;
            }
            tape.try_blend(&self.u, u, BlendWeight::Fixed(1.0))?;
            tape.try_blend(&self.v, v, BlendWeight::Fixed(1.0))?;
        } else if !self.original.is_frozen() {
            tape.note_evaluation("SpectralNorm");
        }
        let sigma = u.try_dot(matrix.try_matmul(v)?)?;
        Ok(weight.try_div(sigma)?)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::module::update_buffers;

    fn weight() -> Tensor<f64> {
        Tensor::from([[1.0, 2.0, 2.0], [0.5, -1.0, 0.25]])
    }

    #[track_caller]
    fn assert_close(found: &Tensor<f64>, expected: &[f64]) {
        let error = found.iter().zip(expected).map(|(x, y)| (x - y).abs()).max_by(f64::total_cmp).unwrap_or(0.0);
        assert!(found.numel() == expected.len() && error < 1e-14, "{found} {expected:?}");
    }

    /// The expected values were computed by `parametrizations.weight_norm` of PyTorch 2.15, in float64.
    #[test]
    fn lengths_and_directions_are_pytorchs() {
        let mut normed = WeightNorm::new(&weight());
        assert_eq!(normed.original0.value.shape(), &[2, 1]);
        assert_close(&normed.original0.value, &[3.0, 1.14564392373896]);
        let columns = WeightNorm::with_dim(&weight(), 1).original0.value;
        assert_close(&columns, &[1.118033988749895, 2.23606797749979, 2.0155644370746373]);
        assert_close(&WeightNorm::with_dim(&weight(), None).original0.value, &[3.2113081446662823]);
        normed.original0.value = Tensor::from([[2.0], [0.5]]);
        normed.original1.value = Tensor::from([[3.0, 0.0, 4.0], [1.0, 1.0, -1.0]]);
        let tape = Tape::new();
        let y = tape.constant(Tensor::from([[1.0, -2.0, 0.5]])).linear(normed.weight(&tape), None);
        assert_close(&y.value(), &[2.0, -0.4330127018922194]);
        let gradients = y.square().sum(..).backward();
        assert_close(gradients.of(&normed.original0), &[4.0, 0.75]);
        assert_close(gradients.of(&normed.original1), &[0.64, -3.2, -0.48, -0.375, 0.375, 0.0]);
    }

    #[test]
    fn weights_of_every_rank_are_themselves_at_first() {
        let mut generator = Generator::new(0);
        for shape in [&[4][..], &[3, 2], &[2, 3, 2, 2]] {
            let weight = Tensor::<f64>::randn(shape, &mut generator);
            for dim in [None, Some(0), Some(-1)] {
                let normed = WeightNorm::with_dim(&weight, dim);
                let paths: Vec<_> = normed.named_parameters().into_iter().map(|(path, _)| path).collect();
                assert_eq!(paths, ["original0", "original1"]);
                assert_close(&normed.weight(&Tape::new()).value(), &weight.to_vec());
            }
        }
        assert!(WeightNorm::try_with_dim(&Tensor::<f64>::ones([2]), 1).is_err());
    }

    /// The expected values were computed by `parametrizations.spectral_norm` of PyTorch 2.15, in float64.
    #[test]
    fn a_training_step_and_an_evaluation_are_pytorchs() {
        let generator = &mut Generator::new(0);
        let mut normed = SpectralNorm::new(&weight(), generator);
        normed.u.value = Tensor::from([0.6, 0.8]);
        normed.v.value = Tensor::from([1.0, 0.0, 0.0]);
        let x = Tensor::from([[1.0, -2.0, 0.5]]);
        let expected = [-0.7748388442260596, 1.0169759830467033];
        let tape = Tape::training(generator);
        let y = tape.constant(&x).linear(normed.weight(&tape), None);
        assert_close(&y.value(), &expected);
        let gradients = y.square().sum(..).backward();
        let slopes = [
            -1.0910665319670947,
            0.6119209121085294,
            -1.1343628229181697,
            0.5426468465868092,
            -1.8703997690864482,
            -0.023091355173906647,
        ];
        assert_close(gradients.of(&normed.original), &slopes);
        update_buffers(&mut normed, &gradients);
        assert_close(&normed.u.value, &[0.8944271909999159, 0.4472135954999579]);
        assert_close(&normed.v.value, &[0.43314808182421, 0.519777698189052, 0.7363517391011569]);
        let tape = Tape::new();
        assert_close(&tape.constant(&x).linear(normed.weight(&tape), None).value(), &expected);
    }

    #[test]
    fn the_estimate_converges_to_the_largest_singular_value() {
        let normed = SpectralNorm::new(&weight(), &mut Generator::new(1));
        let scale = weight() / normed.weight(&Tape::new()).value();
        // The singular values 3.0212500158534694 and 1.09 are from `torch.linalg.svdvals`. `new` makes 15 power iterations. Each of them divides the
        // error by (3.02 / 1.09)² = 7.7, and 7.7⁻¹⁵ < 1e-13.
        assert!(scale.iter().all(|sigma| (sigma - 3.0212500158534694).abs() < 1e-10), "{scale}");
        let kernel = Tensor::<f64>::randn([4, 3, 2, 2], &mut Generator::new(2));
        let normed = SpectralNorm::new(&kernel, &mut Generator::new(1)).iterations(2);
        assert_eq!((normed.u.value.shape(), normed.v.value.shape()), (&[4][..].into(), &[12][..].into()));
        assert_eq!(normed.weight(&Tape::training(&mut Generator::new(0))).shape(), [4, 3, 2, 2]);
        assert!(SpectralNorm::try_new(&Tensor::<f64>::ones([3]), &mut Generator::new(0)).is_err());
    }

    #[test]
    fn more_rows_than_memory_holds_are_an_error() {
        let weight = Tensor::<f64>::zeros([1usize << 50, 0]);
        assert!(SpectralNorm::try_new(&weight, &mut Generator::new(0)).is_err());
    }
}
