//! Covariances and correlations. The rows of an array are the variables of the statistics, and its columns are the observations.

use wengert_macros::twins;

use crate::ops::{Compose, Result, TensorLike};
use crate::{Axes, Binary, Float, Scalar, Shape, Site, Tensor, Unary, View, ensure};

/// Covariances and correlations.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]); // two variables, three observations
/// assert_eq!(x.cov(1, None, None), Tensor::from([[1.0, -1.0], [-1.0, 1.0]]));
/// assert_eq!(x.corrcoef(), Tensor::from([[1.0, -1.0], [-1.0, 1.0]]));
/// ```
#[twins(blanket)]
pub trait Covariances: TensorLike<Elem: Float> {
    /// Returns the covariances `[v, v]` of v variables `[v, n]` with n observations. The sums of products of deviations are divided by n -
    /// `correction`. The result for a single variable (a vector, a number or one row) is one variance. `fweights` has the number of times
    /// that each observation counts, and `aweights` has the weight of each observation. Both have the shape `[n]`. Let w be the product of
    /// the given weights. With `fweights` alone, the divisor is Σ w - `correction`. With `aweights`, the divisor is Σ w - c Σ w a / Σ w for
    /// the weights a and the `correction` c. If the divisor is not positive, the result is NaN or infinite. Refuses more than two dimensions,
    /// and a number of weights other than n. Also refuses negative and NaN weights, and weights w whose sum is 0. PyTorch: `cov`.
    fn try_cov(
        &self,
        correction: i64,
        fweights: Option<&Tensor<i64>>,
        aweights: Option<&Tensor<Self::Elem>>,
    ) -> Result<Self> {
        covariances(self, "cov", correction, fweights, aweights, Site::here("cov"))
    }

    /// Returns the correlations `[v, v]` of v variables `[v, n]`: the covariance of two variables, divided by the standard deviations of
    /// both. The correlations are within [-1, 1], and NaN if a variance is 0. The result for a single variable is one number. Refuses more
    /// than two dimensions. PyTorch: `corrcoef`.
    fn try_corrcoef(&self) -> Result<Self> {
        let at = Site::here("corrcoef");
        let c = covariances(self, "corrcoef", 1, None, None, at)?;
        if c.shape().rank() == 0 {
            return c.apply_binary(Binary::Div, &c, at);
        }
        let shape = c.shape();
        let transpose = |x: &Self| x.apply_view(View::Permute(Axes::from_slice(&[1, 0])), at);
        if self.shape()[1] == 0 {
            // Without observations, all correlations are NaN. NaN is added to zeros, so that the second derivative is 0, as in PyTorch.
            return self.apply_matmul(&transpose(self)?, at)?.plus(f64::NAN, at);
        }
        let deviation =
            c.apply_view(View::Diagonal { offset: 0, first: 0, second: 1 }, at)?.apply_unary(Unary::Sqrt, at)?;
        let column = deviation.reshape_to([shape[0], 1], at)?;
        let ratio = c.divide_by(&column, at)?.divide_by(&deviation, at)?;
        // Rounding can give a correlation beyond ±1. Bounding the value does not change the derivative.
        let value = ratio.apply_detach(at)?;
        let bound = value.combine(Binary::Minimum, 1.0, at)?.combine(Binary::Maximum, -1.0, at)?;
        ratio.with_value(&bound, at)
    }
}

fn covariances<A: TensorLike<Elem: Float>>(
    x: &A,
    name: &str,
    correction: i64,
    fweights: Option<&Tensor<i64>>,
    aweights: Option<&Tensor<A::Elem>>,
    at: Site,
) -> Result<A> {
    let shape = x.shape();
    let rank = shape.rank();
    ensure!(
        rank <= 2,
        at,
        "{name}(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
    );
    let rows = if rank < 2 { x.reshape_to([1, shape.numel()], at)? } else { x.clone() };
    let (v, n) = (rows.shape()[0], rows.shape()[1]);
    let fweights = fweights.map(|weights| weights.try_cast::<A::Elem>()).transpose()?;
    for (kind, weights) in [("fweights", &fweights), ("aweights", &aweights.cloned())] {
        if let Some(weights) = weights {
            check_weights(kind, weights, n, at)?;
        }
    }
    let line = |weights: &Tensor<A::Elem>| weights.reshape_to([n], at);
    let weights = match (&fweights, aweights) {
        (None, None) => None,
        (Some(f), None) => Some(line(f)?),
        (None, Some(a)) => Some(line(a)?),
        (Some(f), Some(a)) => Some(line(f)?.times(&line(a)?, at)?),
    };
    let sum = |weights: &Tensor<A::Elem>| weights.iter().map(Scalar::to_f64).sum::<f64>();
    let total = weights.as_ref().map_or(n as f64, sum);
    ensure!(weights.is_none() || total != 0.0, at, "cov(): weights sum to zero, can't be normalized");
    let divisor = match (&weights, aweights) {
        (Some(weights), Some(a)) => total - correction as f64 * sum(&weights.times(&line(a)?, at)?) / total,
        _ => total - correction as f64,
    };
    let weigh = |x: &A| match &weights {
        Some(weights) => x.times(&x.try_constant(weights)?, at),
        None => Ok(x.clone()),
    };
    let mean = weigh(&rows)?.sum_over(&[1], at)?.divide_by(total, at)?;
    let distance = rows.minus(&mean, at)?;
    let transposed = distance.apply_view(View::Permute(Axes::from_slice(&[1, 0])), at)?;
    let products = weigh(&distance)?.apply_matmul(&transposed, at)?;
    let result = products.divide_by(divisor.max(0.0), at)?;
    if rank < 2 || v == 1 { result.reshape_to(Shape::scalar(), at) } else { Ok(result) }
}

fn check_weights<T: Float>(kind: &str, weights: &Tensor<T>, n: usize, at: Site) -> Result<(), crate::Error> {
    let (rank, count) = (weights.rank(), weights.numel());
    ensure!(
        rank <= 1,
        at,
        "cov(): expected {kind} to have one or fewer dimensions but got {kind} with {rank} dimensions"
    );
    ensure!(
        count == n,
        at,
        "cov(): expected {kind} to have the same numel as there are observations in the input but got {count} != {n}"
    );
    ensure!(weights.iter().all(|weight| weight >= T::ZERO), at, "cov(): {kind} cannot be negative");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn weights_repeat_observations() {
        let x = Tensor::from([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]]);
        let repeated = Tensor::from([[1.0, 2.0, 2.0, 4.0], [0.0, 3.0, 3.0, 1.0]]);
        let f = Tensor::from([1i64, 2, 1]);
        let difference = x.cov(1, Some(&f), None) - repeated.cov(1, None, None);
        assert!(difference.abs().amax(..).item() < 1e-14);
        let a = Tensor::from([1.0, 2.0, 1.0]);
        let difference = x.cov(0, None, Some(&a)) - repeated.cov(0, None, None);
        assert!(difference.abs().amax(..).item() < 1e-14);
    }

    #[test]
    fn shapes_and_edges() {
        assert_eq!(Tensor::from([1.0, 2.0, 3.0]).cov(1, None, None), Tensor::scalar(1.0));
        assert!(Tensor::scalar(3.0).cov(1, None, None).item().is_nan());
        assert_eq!(Tensor::<f64>::zeros([0, 3]).cov(1, None, None).shape(), &[0, 0]);
        let x = Tensor::from([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]);
        let r = x.corrcoef().to_vec();
        assert!(r[0].is_nan() && r[1].is_nan() && r[3] == 1.0);
    }

    #[test]
    fn mistakes_have_pytorchs_sentences() {
        let x = Tensor::<f64>::ones([2, 3]);
        let f = |weights: &Tensor<i64>| x.try_cov(1, Some(weights), None).unwrap_err().sentence();
        assert_eq!(
            f(&Tensor::from([1i64, 2])),
            "cov(): expected fweights to have the same numel as there are observations in the input but got 2 != 3"
        );
        assert_eq!(f(&Tensor::from([1i64, 2, -1])), "cov(): fweights cannot be negative");
        let error = x.try_cov(1, None, Some(&Tensor::from([1.0, f64::NAN, 1.0]))).unwrap_err();
        assert_eq!(error.sentence(), "cov(): aweights cannot be negative");
        assert_eq!(f(&Tensor::from([0i64, 0, 0])), "cov(): weights sum to zero, can't be normalized");
        assert_eq!(
            Tensor::<f64>::ones([2, 2, 2]).try_corrcoef().unwrap_err().sentence(),
            "corrcoef(): expected input to have two or fewer dimensions but got an input with 3 dimensions"
        );
    }
}
