//! The quantile functions of distributions over counts, and the functions of Student's t-distribution, as elementwise operations.

use wengert_autograd::Call;
use wengert_autograd::prelude::*;
use wengert_special::{Array, Elementwise, numbers};
use wengert_tensor::ops::Result;
use wengert_tensor::{Error, Shape, Site, View};

use crate::support::broadcast_shape;

/// A distribution over counts, with the parameters that [`count_quantile`] expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CountFamily {
    /// The first parameter is the rate.
    Poisson,
    /// The first parameter is the number of trials, the second is the probability of a success.
    Binomial,
    /// The first parameter is the number of failures, the second is the probability of a success.
    NegativeBinomial,
    /// The first parameter is the logarithm of the probability of a failure.
    Geometric,
}

/// Returns the smallest count k for which the probability of counts up to k is at least `p`; NaN if `p` is NaN or a parameter is out of
/// range. For `p` = 1, returns the number of trials of a binomial distribution, and ∞ for the other families. Parameters are expanded to
/// the shape of `p`. The derivative is 0.
///
/// Because the distribution function is rounded, a `p` below 1 is first multiplied by 1 - 8 ε. ε is the epsilon of the element type.
pub(crate) fn count_quantile<A: Array>(counts: CountFamily, parameters: &[&A], p: &A, at: Site) -> Result<A> {
    let shape = p.shape();
    let mut inputs = vec![p.clone()];
    for &parameter in parameters {
        inputs.push(expand(parameter, &shape, at)?);
    }
    A::apply_elementwise(counts, &inputs, at)
}

/// Returns `x`, expanded to `shape`.
fn expand<A: Array>(x: &A, shape: &Shape, at: Site) -> Result<A> {
    if x.shape() == *shape { Ok(x.clone()) } else { x.apply_view(View::Expand(shape.clone()), at) }
}

impl Elementwise for CountFamily {
    fn name(&self) -> &'static str {
        match self {
            CountFamily::Poisson => "poisson_icdf",
            CountFamily::Binomial => "binomial_icdf",
            CountFamily::NegativeBinomial => "negative_binomial_icdf",
            CountFamily::Geometric => "geometric_icdf",
        }
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], _at: Site) -> std::result::Result<Tensor<T>, Error> {
        let mut out = inputs[0].clone();
        let [first, second] = [&inputs[1], inputs.last().unwrap_or(&inputs[1])];
        out.try_update_with(first, [&mut second.clone()], |p, x, [y]| {
            let p = if p < T::ONE { p.to_f64() * (1.0 - 8.0 * T::EPSILON.to_f64()) } else { p.to_f64() };
            (T::from_f64(self.smallest_count(p, [x.to_f64(), y.to_f64()])), [y])
        })?;
        Ok(out)
    }

    fn slope<'t, T: Float>(&self, _call: &Call<'t, T>, _input: usize) -> Option<Var<'t, T>> {
        None
    }
}

impl CountFamily {
    /// Returns the probability of counts up to `k` for the first parameter `x` and the second parameter `y`.
    fn probability_up_to(self, k: f64, [x, y]: [f64; 2]) -> f64 {
        match self {
            CountFamily::Poisson => numbers::gammaincc(k + 1.0, x),
            CountFamily::Binomial if k >= x => 1.0,
            CountFamily::Binomial => numbers::betaincc(k + 1.0, x - k, y),
            CountFamily::NegativeBinomial => numbers::betaincc(k + 1.0, x, y),
            CountFamily::Geometric => -((k + 1.0) * x).exp_m1(),
        }
    }

    /// Returns the first count and the first step of the search in [`smallest_count`](Self::smallest_count): numbers near the
    /// distribution's mean and standard deviation. The first number is NaN if a parameter is out of range.
    fn search_start(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let is_share = (0.0..=1.0).contains(&y);
        let (mean, variance) = match self {
            CountFamily::Poisson if x >= 0.0 => (x, x),
            CountFamily::Binomial if is_share && x >= 0.0 && x.fract() == 0.0 => (x * y, x * y * (1.0 - y)),
            CountFamily::NegativeBinomial if is_share && x >= 0.0 => {
                (x * y / (1.0 - y), x * y / ((1.0 - y) * (1.0 - y)))
            }
            CountFamily::Geometric if x < 0.0 => (-1.0 / x, 1.0 / (x * x)),
            _ => (f64::NAN, f64::NAN),
        };
        [mean, variance.sqrt()]
    }

    /// Returns the smallest count k for which the probability of counts up to k is at least `p`. Steps from the mean find an interval, and
    /// bisection finds the count in it. For `p` = 1, returns the number of trials of a binomial distribution, and ∞ for the other families.
    /// NaN if `p` is NaN or a parameter is out of range.
    fn smallest_count(self, p: f64, parameters: [f64; 2]) -> f64 {
        let [mean, deviation] = self.search_start(parameters);
        if p.is_nan() || mean.is_nan() {
            return f64::NAN;
        }
        let max_count = if self == CountFamily::Binomial { parameters[0] } else { f64::INFINITY };
        if p >= 1.0 {
            return max_count;
        }
        // The search ends at 2^53, because f64 does not represent every whole number above.
        let limit = max_count.min((1u64 << 53) as f64);
        let is_reached = |k: f64| self.probability_up_to(k, parameters) >= p;
        let (mut lower, mut upper, mut step) = (-1.0, mean.min(limit).floor(), deviation.ceil().max(1.0));
        while !is_reached(upper) {
            if upper >= limit {
                return max_count;
            }
            (lower, upper, step) = (upper, (upper + step).min(limit), step * 2.0);
        }
        while upper - lower > 1.0 {
            let middle = ((lower + upper) / 2.0).floor();
            if is_reached(middle) {
                upper = middle;
            } else {
                lower = middle;
            }
        }
        upper
    }
}

/// Functions of Student's t-distribution with df degrees of freedom. Each is computed in f64, and has no derivative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StudentFunction {
    /// The distribution function.
    Cdf,
    /// The quantile function.
    Icdf,
}

impl StudentFunction {
    /// Returns the function of `df` and `x`, or an error if their shapes do not broadcast.
    pub(crate) fn apply<A: Array>(self, df: &A, x: &A, at: Site) -> Result<A> {
        let shape = broadcast_shape::<A::Error>(&[df.shape(), x.shape()], at)?;
        let inputs = [expand(&df.try_detach()?, &shape, at)?, expand(&x.try_detach()?, &shape, at)?];
        A::apply_elementwise(self, &inputs, at)
    }
}

impl Elementwise for StudentFunction {
    fn name(&self) -> &'static str {
        match self {
            StudentFunction::Cdf => "student_cdf",
            StudentFunction::Icdf => "student_icdf",
        }
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], _at: Site) -> std::result::Result<Tensor<T>, Error> {
        let function = match self {
            StudentFunction::Cdf => numbers::student_cdf,
            StudentFunction::Icdf => numbers::student_icdf,
        };
        let mut out = inputs[0].clone();
        out.try_update_with(&inputs[1], [], |df, x, []| (T::from_f64(function(df.to_f64(), x.to_f64())), []))?;
        Ok(out)
    }

    fn slope<'t, T: Float>(&self, _call: &Call<'t, T>, _input: usize) -> Option<Var<'t, T>> {
        None
    }
}
