//! Softmax and related operations. The largest element is subtracted first, so that no exponential overflows.

use wengert_macros::twins;

use crate::kernel::softmax::of_columns;
use crate::ops::primitive::pair::expand_number;
use crate::ops::random::draw_each;
use crate::ops::reduce::lane_array::LaneArray;
use crate::ops::reduce::reductions::drop_reduced;
use crate::ops::{Compose, Composite, Result, TensorLike};
use crate::shape::dims;
use crate::thresholds::softmax::{MAX_ROWS, MIN_COLUMNS};
use crate::{
    Axes, Binary, Compare, Dims, Float, Generator, Position, Reduction, Scalar, Shape, Site, Tensor, Unary, View,
};

/// `softmax` and related operations.
#[twins(blanket)]
pub trait Softmax: TensorLike<Elem: Float> {
    /// Returns eˣ / Σ eˣ along `dim`. If all elements along `dim` are -∞, or one is ∞, the result is NaN. PyTorch: `softmax`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([1000.0f64, 1000.0]);
    /// assert_eq!(x.softmax(0).to_vec(), [0.5, 0.5]);
    /// ```
    fn try_softmax(&self, dim: impl Position) -> Result<Self> {
        softmax(self, dim.position(), false, Site::here("softmax"))
    }

    /// Returns the [`softmax`](Self::softmax) of -x, which gives the smallest element the largest weight. PyTorch:
    /// `nn.functional.softmin`.
    fn try_softmin(&self, dim: impl Position) -> Result<Self> {
        let at = Site::here("softmin");
        let negative = self.apply_unary(Unary::Neg, at)?;
        Self::apply_composite([&negative], &SoftmaxComposite { dim: dim.position(), log: false }, at)
    }

    /// Returns x - ln Σ eˣ along `dim`: the logarithm of [`softmax`](Self::softmax), accurate even if the softmax is near 0.
    /// PyTorch: `log_softmax`.
    fn try_log_softmax(&self, dim: impl Position) -> Result<Self> {
        softmax(self, dim.position(), true, Site::here("log_softmax"))
    }

    /// Returns the [`softmax`](Self::softmax) of (x + noise) / `tau` along `dim`, a differentiable draw of one class. The elements x of
    /// `self` are the logarithms of the classes' probabilities, not necessarily normalized. The noise has the standard Gumbel distribution;
    /// each element takes one 64-bit word of `generator`, in row-major order. If `hard` is true, the values are the one-hot vector of the
    /// largest element, with the derivative of the softmax (Jang et al. 2017, "Categorical reparameterization with Gumbel-softmax"). If the
    /// elements along `dim` include a NaN, their results are NaN. Refuses a `dim` of size 0 if `hard` is true. PyTorch:
    /// `nn.functional.gumbel_softmax`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let logits = Tensor::from([0.1f64, 0.3, 0.6]).log().expand([1000, 3]);
    /// let drawn = logits.gumbel_softmax(1.0, true, 1, &mut Generator::new(0));
    /// let shares = drawn.mean(0);
    /// assert!((0.55..0.65).contains(&shares.get(&[2]).unwrap()));
    /// ```
    fn try_gumbel_softmax(&self, tau: f64, hard: bool, dim: impl Position, generator: &mut Generator) -> Result<Self> {
        let (dim, at) = (dim.position(), Site::here("gumbel_softmax"));
        let axis = dims::axis(dim, self.shape().rank(), at)?;
        let noise = Tensor::build(&self.shape(), at, |out| {
            draw_each(out, generator, |generator| Self::Elem::from_f64(generator.gumbel()));
        })?;
        let noisy = self.plus(&self.try_constant(&noise)?, at)?.divide_by(tau, at)?;
        let soft = Self::apply_composite([&noisy], &SoftmaxComposite { dim, log: false }, at)?;
        if hard { soft.with_value(&one_hot_of_largest(&soft.apply_detach(at)?, axis, at)?, at) } else { Ok(soft) }
    }

    /// Returns ln Σ eˣ over `dims`; -∞ if there are no elements or all elements are -∞. PyTorch: `logsumexp`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// // The exponentials of 1000 would be infinite.
    /// let x = Tensor::from([[0.0, 0.0], [1000.0, 0.0]]);
    /// assert_eq!(x.logsumexp(1).to_vec(), [2f64.ln(), 1000.0]);
    /// ```
    #[keepdim]
    fn try_logsumexp(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("logsumexp");
        let axes = dims.into().resolve_or_all(self.shape().rank(), at)?;
        drop_reduced(Self::apply_composite([self], &LogSumExp { axes: &axes }, at)?, &axes, keepdim, at)
    }
}

/// Returns eˣ / Σ eˣ along `dim`, or its logarithm if `log` is true.
fn softmax<A: TensorLike<Elem: Float>>(x: &A, dim: isize, log: bool, at: Site) -> Result<A> {
    let shape = x.shape();
    let axis = dims::axis(dim, shape.rank(), at)?;
    let columns = Shape::from(shape.get(axis + 1..).unwrap_or_default()).numel();
    if x.is_plain() && columns >= MIN_COLUMNS && (1..=MAX_ROWS).contains(&shape[axis]) && shape.numel() > 0 {
        let plain = x.to_tensor(at)?;
        if let Some(elements) = plain.as_slice() {
            let sizes = (shape[axis], columns);
            let result = Tensor::build(&shape, at, |out| of_columns(elements, sizes, log, out))?;
            return Ok(x.constant(&result));
        }
    }
    A::apply_composite([x], &SoftmaxComposite { dim, log }, at)
}

/// Returns 1 at the first largest element of each line along `axis`, 0 at the other elements, and NaN at NaN.
fn one_hot_of_largest<A: TensorLike<Elem: Float>>(x: &A, axis: usize, at: Site) -> Result<A> {
    let (line, at_nan) = (LaneArray::nonempty(x, axis as isize, at)?, x.compare(Compare::Ne, x, at)?);
    let lines = line.values();
    let largest = lines.apply_reduce(Reduction::Amax, &[axis], at)?.expand_to(&line.shape, at)?;
    let zero = lines.fill_shape(0.0, &line.shape, at)?;
    let ties = zero.replace_where(&lines.apply_compare(Compare::Eq, &largest, at)?, 1.0, at)?;
    // Only at the first tie, the running count of ties is 1 and the element is a tie.
    let rank = ties.apply_cumsum(axis, at)?.times(&ties, at)?;
    let first = zero.replace_where(&rank.compare(Compare::Eq, 1.0, at)?, 1.0, at)?;
    A::apply_select(&at_nan, x, &line.restore_rank(first, at)?, at)
}

/// A composite operation: eˣ / Σ eˣ along a dimension, or its logarithm.
struct SoftmaxComposite {
    dim: isize,
    log: bool,
}

impl Composite for SoftmaxComposite {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        let Some(terms) = softmax_terms(x, self.dim, at)? else { return Ok(x.clone()) };
        let SoftmaxTerms { shifted, exponentials, total } = terms;
        let value = match self.log {
            false => exponentials.apply_binary(Binary::Div, &total, at)?,
            true => shifted.apply_binary(Binary::Sub, &total.apply_unary(Unary::Log, at)?, at)?,
        };
        match x.shape().rank() {
            0 => Ok(value),
            rank => value.as_softmax(x, dims::axis(self.dim, rank, at)?, self.log, at),
        }
    }
}

/// A composite operation: ln Σ eˣ over `axes`, which the result keeps with size 1.
struct LogSumExp<'a> {
    axes: &'a [usize],
}

impl Composite for LogSumExp<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        let (shape, axes) = (x.shape(), self.axes);
        if axes.iter().any(|&axis| shape[axis] == 0) {
            // The sum of no elements is 0. Instead of taking its logarithm, ∞ is subtracted: the logarithm has an infinite slope at 0, so
            // the second derivative would be NaN.
            let sum = x.apply_reduce(Reduction::Sum, axes, at)?;
            return sum.apply_binary(Binary::Sub, &expand_number(&sum, A::Elem::INFINITY, &sum.shape(), at)?, at);
        }
        let largest = x.apply_detach(at)?.apply_reduce(Reduction::Amax, axes, at)?;
        // Subtracting an infinite maximum would give NaN, because ∞ - ∞ is NaN. So the shift is finite. An ∞ among the elements stays ∞,
        // and elements that are all -∞ stay -∞.
        let filled = |value: A::Elem| expand_number(&largest, value, &largest.shape(), at);
        let below = largest.apply_binary(Binary::Minimum, &filled(A::Elem::MAX)?, at)?;
        let shift = below.apply_binary(Binary::Maximum, &filled(-A::Elem::MAX)?, at)?;
        let shifted = x.apply_binary(Binary::Sub, &shift.apply_view(View::Expand(shape), at)?, at)?;
        let sum = shifted.apply_unary(Unary::Exp, at)?.apply_reduce(Reduction::Sum, axes, at)?;
        sum.apply_unary(Unary::Log, at)?.apply_binary(Binary::Add, &shift, at)
    }
}

/// The terms of a softmax of x, all in the shape of x.
struct SoftmaxTerms<A> {
    /// x - max.
    shifted: A,
    /// e^(x - max).
    exponentials: A,
    /// The sum of `exponentials`.
    total: A,
}

/// Returns the terms of the softmax of `x` along `dim`, or `None` if there are no elements.
fn softmax_terms<A: TensorLike<Elem: Float>>(x: &A, dim: isize, at: Site) -> Result<Option<SoftmaxTerms<A>>, A::Error> {
    let shape = x.shape();
    let axis = dims::axis(dim, shape.rank(), at)?;
    if shape.numel() == 0 {
        return Ok(None);
    }
    let axes: Axes = if shape.rank() == 0 { Axes::new() } else { Axes::from_slice(&[axis]) };
    // The result does not depend on the subtracted value, so no gradient needs to flow to it.
    let largest = x.apply_detach(at)?.apply_reduce(Reduction::Amax, &axes, at)?;
    let shifted = x.apply_binary(Binary::Sub, &largest.apply_view(View::Expand(shape.clone()), at)?, at)?;
    let exponentials = shifted.apply_unary(Unary::Exp, at)?;
    let total = exponentials.apply_reduce(Reduction::Sum, &axes, at)?;
    Ok(Some(SoftmaxTerms { shifted, exponentials, total: total.apply_view(View::Expand(shape), at)? }))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn large_sums_of_exponentials_equal_the_formula() {
        let inf = f64::INFINITY;
        for (shape, dim) in [([300, 70], 1), ([300, 70], 0), ([2, 40_000], 1)] {
            let mut x = Tensor::<f64>::from_fn(shape, |i| ((i[0] * 31 + i[1] * 17) % 101) as f64 * 0.1 - 5.0);
            let largest = x.amax_keepdim(dim);
            let expected = (&x - &largest).exp().sum_keepdim(dim).log() + &largest;
            // The error bound allows for values of at most 14, and for a few hundred roundings in each sum.
            let error = (x.logsumexp_keepdim(dim) - expected).abs().amax(..).item();
            assert!(error < 14.0 * 200.0 * f64::EPSILON, "{shape:?}: {error}");
            for (value, expected) in [(-inf, -inf), (inf, inf), (f64::MAX, f64::MAX), (f64::MIN, f64::MIN)] {
                x.fill_(value);
                assert_eq!(x.logsumexp(dim).to_vec()[1], expected, "{shape:?}");
            }
            x.fill_(f64::NAN);
            assert!(x.logsumexp(dim).to_vec()[1].is_nan());
        }
    }

    /// Compares the kernel for dimensions before the last one with the softmax of transposed data, along the last dimension.
    #[test]
    fn along_every_dimension() {
        for shape in [[2, 3, 70], [3, 16, 1500], [1, 128, 64], [2, 1, 65], [5, 129, 64]] {
            let x = Tensor::<f64>::from_fn(shape, |i| match i[2] {
                3 => f64::NEG_INFINITY,
                5 => f64::INFINITY,
                k => ((i[0] * 31 + i[1] * 17 + k * 7) % 101) as f64 - 50.0,
            });
            for dim in [0, 1, -2] {
                let last = x.transpose(dim, 2).contiguous();
                let pairs = [(x.softmax(dim), last.softmax(2)), (x.log_softmax(dim), last.log_softmax(2))];
                for (got, expected) in pairs {
                    let same = |(x, y): (f64, f64)| x == y || x.is_nan() && y.is_nan() || (x - y).abs() < 1e-12;
                    assert!(got.iter().zip(expected.transpose(dim, 2).iter()).all(same), "{shape:?} {dim}");
                }
            }
        }
        assert!(Tensor::<f64>::zeros([2, 3, 70]).try_softmax(3).is_err());
    }

    #[test]
    fn extremes() {
        let inf = f64::INFINITY;
        assert_eq!(Tensor::from([-inf, -inf]).logsumexp(0).item(), -inf);
        assert_eq!(Tensor::from([1.0, inf]).logsumexp(0).item(), inf);
        assert_eq!(Tensor::<f64>::zeros([2, 0]).logsumexp(1).to_vec(), [-inf, -inf]);
        assert_eq!(Tensor::from([1e308, 1e308]).logsumexp(0).item(), 1e308);
        assert!(Tensor::from([-inf, -inf]).softmax(0).to_vec()[0].is_nan());
        assert_eq!(Tensor::scalar(3.0).softmax(0).item(), 1.0);
        assert_eq!(Tensor::from([0.0, -1e308]).log_softmax(-1).to_vec(), [0.0, -1e308]);
        assert_eq!(Tensor::<f32>::zeros([0, 3]).softmax(1).shape(), &[0, 3]);
    }

    #[test]
    fn gumbel_softmax_draws_classes() {
        let (x, generator) = (Tensor::from([[0.0, 1.0], [2.0, f64::NAN]]), &mut Generator::new(3));
        let soft = x.gumbel_softmax(0.5, false, -1, &mut generator.clone());
        let hard = x.gumbel_softmax(0.5, true, -1, generator);
        assert!((soft.select(0, 0).sum(..).item() - 1.0).abs() < 1e-15);
        assert_eq!(hard.select(0, 0), soft.select(0, 0).round());
        assert!(hard.select(0, 1).iter().all(f64::is_nan));
        assert_eq!(generator.clone(), Generator::from_state(3, 4));
        // A temperature of ∞ makes all elements equal, and the first one is chosen.
        let ties = Tensor::<f64>::zeros([3]).gumbel_softmax(f64::INFINITY, true, 0, generator);
        assert_eq!(ties.to_vec(), [1.0, 0.0, 0.0]);
        assert_eq!(Tensor::scalar(1.0f32).gumbel_softmax(1.0, true, 0, generator).item(), 1.0);
        assert_eq!(Tensor::<f64>::zeros([0, 2]).gumbel_softmax(1.0, true, 1, generator).shape(), &[0, 2]);
        assert!(Tensor::<f64>::zeros([2, 0]).try_gumbel_softmax(1.0, true, 1, generator).is_err());
        assert_eq!(Tensor::<f64>::zeros([2, 0]).gumbel_softmax(1.0, false, 1, generator).shape(), &[2, 0]);
    }
}
