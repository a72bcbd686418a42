//! Elementwise operations that draw from distributions whose quantile functions are slow or have no derivative.
//!
//! A draw is a function of its parameters and of the state of a generator. So a tape may compute a draw late or twice, and gets the same
//! values. The derivative of a gamma or beta draw x with respect to a parameter θ is implicit: -∂F(x; θ)/∂θ / p(x; θ). Here F is the
//! distribution function and p the density (M. Figurnov, S. Mohamed and A. Mnih, "Implicit reparameterization gradients", 2018).

use wengert_autograd::Call;
use wengert_autograd::prelude::*;
use wengert_special::{Array, Elementwise, Special};
use wengert_tensor::ops::Result;
use wengert_tensor::{Error, Site};

/// The operation that draws from a distribution, starting at the stored state of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    sampler: Sampler,
    generator: Generator,
}

/// The distributions that can be drawn from, with the meaning of their parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sampler {
    /// The gamma distribution with rate 1. The parameter is its shape parameter a.
    Gamma,
    /// The logarithm of a number from the gamma distribution with rate 1. The parameter is its shape parameter a.
    LogGamma,
    /// The beta distribution. The parameters are its shape parameters a and b.
    Beta,
    /// The Poisson distribution. The parameter is the rate.
    Poisson,
    /// The binomial distribution. The parameters are the number of trials and the probability of a success.
    Binomial,
}

/// Draws one number for each element of `parameters`, whose shapes are equal. Takes one word from `generator`, which seeds the generator of
/// the draws.
#[track_caller]
pub(crate) fn draw<A: Array>(sampler: Sampler, parameters: &[A], generator: &mut Generator, at: Site) -> Result<A> {
    A::apply_elementwise(Draw { sampler, generator: generator.fork() }, parameters, at)
}

impl Elementwise for Draw {
    fn name(&self) -> &'static str {
        match self.sampler {
            Sampler::Gamma => "standard_gamma",
            Sampler::LogGamma => "log_gamma",
            Sampler::Beta => "beta",
            Sampler::Poisson => "poisson",
            Sampler::Binomial => "binomial",
        }
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], _at: Site) -> std::result::Result<Tensor<T>, Error> {
        let mut generator = self.generator.clone();
        let mut out = inputs[0].try_mul(1.0)?.try_contiguous()?;
        let second = inputs.get(1).unwrap_or(&inputs[0]).clone();
        let (min_value, max_value) = (f64::MIN_POSITIVE.max(smallest_normal::<T>()), 1.0 - T::EPSILON.to_f64() / 2.0);
        for (out, second) in out.make_mut().iter_mut().zip(second.iter()) {
            let (x, y) = (out.to_f64(), second.to_f64());
            let drawn = match self.sampler {
                Sampler::Gamma => libm::exp(standard_gamma(x, &mut generator)).clamp(min_value, f64::INFINITY),
                Sampler::LogGamma => standard_gamma(x, &mut generator),
                Sampler::Beta => beta(x, y, &mut generator).clamp(min_value, max_value),
                Sampler::Poisson => poisson(x, &mut generator),
                Sampler::Binomial => binomial(x, y, &mut generator),
            };
            *out = T::from_f64(drawn);
        }
        Ok(out)
    }

    fn slope<'t, T: Float>(&self, call: &Call<'t, T>, input: usize) -> Option<Var<'t, T>> {
        match self.sampler {
            Sampler::Gamma => Some(call.input(0).gamma_draw_slope(call.output())),
            Sampler::LogGamma => Some(slope_of_log_gamma(call.input(0), call.output())),
            Sampler::Beta => Some(call.input(0).beta_draw_slope(call.input(1), call.output(), input)),
            Sampler::Poisson | Sampler::Binomial => None,
        }
    }
}

/// Returns the derivative of the logarithm u of a gamma draw with respect to its shape a. For x = eᵘ near 0, the distribution function is
/// xᵃ / Γ(a + 1), whose logarithm is a u - ln Γ(a + 1).
fn slope_of_log_gamma<'t, T: Float>(a: Var<'t, T>, u: Var<'t, T>) -> Var<'t, T> {
    let is_small = u.lt(-40.0);
    let x = u.masked_fill(is_small, 0.0).exp();
    where_(is_small, ((a + 1.0).digamma() - u) / a, a.gamma_draw_slope(x) / x)
}

/// Returns the smallest positive normal number of the type `T`.
pub(crate) fn smallest_normal<T: Float>() -> f64 {
    if T::EPSILON.to_f64() > 1e-10 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE }
}

/// Draws the logarithm of a gamma number x with the density xᵃ⁻¹ e⁻ˣ / Γ(a) (G. Marsaglia and W. W. Tsang, "A simple method for generating
/// gamma variables", 2000). NaN unless `a` is above 0 and finite.
fn standard_gamma(a: f64, generator: &mut Generator) -> f64 {
    if a.is_nan() || a <= 0.0 || a.is_infinite() {
        return f64::NAN;
    }
    if a < 1.0 {
        let uniform = 1.0 - generator.uniform();
        return standard_gamma(a + 1.0, generator) + libm::log(uniform) / a;
    }
    let d = a - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let z = generator.normal();
        let root = 1.0 + c * z;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let uniform = 1.0 - generator.uniform();
        if libm::log(uniform) < 0.5 * z * z + d - d * v + d * libm::log(v) {
            return libm::log(d * v);
        }
    }
}

/// Draws from the beta distribution: eˣ / (eˣ + eʸ). Here `x` and `y` are the logarithms of gamma draws with the parameters `a` and `b`.
fn beta(a: f64, b: f64, generator: &mut Generator) -> f64 {
    let (x, y) = (standard_gamma(a, generator), standard_gamma(b, generator));
    1.0 / (1.0 + libm::exp(y - x))
}

/// Draws from the binomial distribution: the count of the numbers below `p` among `trials` uniform numbers. At most 24 of these numbers are
/// drawn. While more remain, the middle one of the sorted numbers has a beta distribution, and a draw of it halves the numbers that remain
/// (L. Devroye, "Non-Uniform Random Variate Generation", 1986, X.4.4). NaN unless `trials` is a whole number in [0, 1e15) and `p` is in
/// [0, 1].
fn binomial(trials: f64, p: f64, generator: &mut Generator) -> f64 {
    if !(0.0..=1.0).contains(&p) || !(0.0..1e15).contains(&trials) || trials.fract() != 0.0 {
        return f64::NAN;
    }
    let (mut remaining, mut p, mut count) = (trials, p, 0.0);
    while remaining > 24.0 && p > 0.0 && p < 1.0 {
        let middle = ((remaining + 1.0) / 2.0).floor();
        let value = beta(middle, remaining + 1.0 - middle, generator);
        if value <= p {
            count += middle;
            remaining -= middle;
            p = ((p - value) / (1.0 - value)).clamp(0.0, 1.0);
        } else {
            remaining = middle - 1.0;
            p = (p / value).min(1.0);
        }
    }
    if p >= 1.0 {
        return count + remaining;
    }
    count + (0..remaining as usize).filter(|_| generator.uniform() < p).count() as f64
}

/// Draws from the Poisson distribution: the number of events of a Poisson process of rate 1 in the time `rate`. The time of event number n
/// has a gamma distribution. With a draw of this time for a large n, n events are counted at once, and only the time after event n remains.
/// If event n comes after the end, a binomial draw counts the events before the end (J. H. Ahrens and U. Dieter, "Computer methods for
/// sampling from gamma, beta, Poisson and binomial distributions", 1974). NaN unless `rate` is in [0, 1e15).
fn poisson(rate: f64, generator: &mut Generator) -> f64 {
    if !(0.0..1e15).contains(&rate) {
        return f64::NAN;
    }
    let (mut time, mut count) = (rate, 0.0);
    while time > 16.0 {
        let event_number = (0.875 * time).floor();
        let event_time = libm::exp(standard_gamma(event_number, generator));
        if event_time > time {
            return count + binomial(event_number - 1.0, time / event_time, generator);
        }
        count += event_number;
        time -= event_time;
    }
    let (floor, mut product) = (libm::exp(-time), 1.0 - generator.uniform());
    while product > floor {
        count += 1.0;
        product *= 1.0 - generator.uniform();
    }
    count
}
