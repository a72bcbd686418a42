//! The derivatives of the elementwise functions: the formulas that a textbook prints, over recorded variables.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI, PI};

use wengert_autograd::prelude::*;
use wengert_autograd::{Call, Error as RuleError};
use wengert_tensor::{Error, Site};

use crate::array::Elementwise;
use crate::function::Function;
use crate::numeric::jet::Jet;
use crate::ops::Special;

impl Elementwise for Function {
    fn name(&self) -> &'static str {
        Function::name(*self)
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], _at: Site) -> Result<Tensor<T>, Error> {
        self.values(inputs)
    }

    fn slope<'t, T: Float>(&self, call: &Call<'t, T>, input: usize) -> Option<Var<'t, T>> {
        call.value_of(slope(*self, call.inputs(), call.output(), input))
    }

    /// Returns false if the derivative with respect to a shape parameter needs a [`Jet`] with too many coefficients.
    fn is_differentiable(&self) -> bool {
        match *self {
            Function::Gammainc { order, .. } => Jet::fits([order + 1, 0]),
            Function::Betainc { orders: [a, b], .. } => Jet::fits([a + 1, b]) && Jet::fits([a, b + 1]),
            _ => true,
        }
    }
}

/// A variable that a rule records, or the error of the recording.
type RuleResult<'t, T> = Result<Var<'t, T>, RuleError>;

/// Records the application of `function` to `inputs`.
fn record<'t, T: Float>(function: Function, inputs: &[Var<'t, T>]) -> RuleResult<'t, T> {
    <Var<'t, T> as crate::Array>::apply_elementwise(function, inputs, Site::here(function.name()))
}

/// Returns the derivative of z = `function`(`inputs`) with respect to the input with index `input`.
fn slope<'t, T: Float>(function: Function, inputs: &[Var<'t, T>], z: Var<'t, T>, input: usize) -> RuleResult<'t, T> {
    let x = inputs[0];
    Ok(match function {
        Function::LogNdtr => {
            // The derivative is φ(x) / Φ(x), with the density φ and the distribution function Φ of the normal distribution. Below 0, where
            // both underflow, Φ(x) is computed as exp(-x²/2) erfcx(-x / √2) / 2.
            let above = (x.square() * -0.5 - z).exp() * (0.5 * FRAC_2_PI.sqrt());
            let below = (x.masked_fill(x.gt(0.0), 0.0) * -FRAC_1_SQRT_2).erfcx().reciprocal() * FRAC_2_PI.sqrt();
            where_(x.gt(0.0), above, below)
        }
        Function::Ndtri => (z.square() * 0.5).exp() * (2.0 * PI).sqrt(),
        Function::Erfcx => x * z * 2.0 - FRAC_2_SQRT_PI,
        Function::Log1mexp => -(-x).expm1().reciprocal(),
        Function::Bessel { order, scaled } => slope_of_bessel(order, scaled, x)?,
        Function::BesselStep { order } => slope_of_bessel_step(order, x, z)?,
        Function::BesselJ { order } => slope_of_bessel_j(order, x)?,
        Function::BesselY { order } => slope_of_bessel_y(order, x)?,
        Function::Polynomial { family, n, order } => {
            record(Function::Polynomial { family, n, order: order + 1 }, &[x])?
        }
        Function::Betaln => inputs[input].digamma() - (x + inputs[1]).digamma(),
        Function::GammaDensity if input == 0 => times_log_slope(z, gamma_log_slope(inputs)),
        Function::GammaDensity => slope_of_gamma_density(x, inputs[1], z),
        Function::Gammainc { order, upper } if input == 0 => {
            record(Function::Gammainc { order: order + 1, upper }, inputs)?
        }
        Function::Gammainc { order, upper } => {
            let density = Density { inputs, function: Function::GammaDensity }.derivative([order, 0])?;
            if upper { -density } else { density }
        }
        Function::BetaDensity if input < 2 => times_log_slope(z, beta_log_slope(inputs, input)),
        Function::BetaDensity => slope_of_beta_density([x, inputs[1]], inputs[2], z),
        Function::Betainc { orders: [a, b], upper } => match input {
            0 => record(Function::Betainc { orders: [a + 1, b], upper }, inputs)?,
            1 => record(Function::Betainc { orders: [a, b + 1], upper }, inputs)?,
            _ => {
                let density = Density { inputs, function: Function::BetaDensity }.derivative([a, b])?;
                if upper { -density } else { density }
            }
        },
        Function::GammaincInv { upper } => {
            let solution = [x, z];
            let density = record(Function::GammaDensity, &solution)?;
            let density = if upper { -density } else { density };
            match input {
                0 => -record(Function::Gammainc { order: 1, upper }, &solution)? / density,
                _ => density.reciprocal(),
            }
        }
        Function::BetaincInv => {
            let solution = [x, inputs[1], z];
            let density = record(Function::BetaDensity, &solution)?;
            match input {
                0 => -record(Function::Betainc { orders: [1, 0], upper: false }, &solution)? / density,
                1 => -record(Function::Betainc { orders: [0, 1], upper: false }, &solution)? / density,
                _ => density.reciprocal(),
            }
        }
    })
}

/// Returns the derivative at x of a modified Bessel function of the first kind, or of exp(-|x|) times this function if `scaled` is true.
fn slope_of_bessel<T: Float>(order: usize, scaled: bool, x: Var<'_, T>) -> RuleResult<'_, T> {
    if scaled {
        // `BesselStep` computes differences of Bessel functions that lose no digits for large x. A function of odd order is odd, and its
        // derivative is even.
        let step = |order| record(Function::BesselStep { order }, &[x]);
        let slope = if order == 0 { step(0)? } else { (step(order)? - step(order - 1)?) * 0.5 };
        if order > 0 {
            return Ok(if order.is_multiple_of(2) { x.sign() * slope } else { slope });
        }
        // At 0, both branches are 0. The first one has the derivative 1/2 there, PyTorch's second derivative of the function of order 0.
        return Ok(where_(x.eq(0.0), x * 0.5, x.sign() * slope));
    }
    let bessel = |order| record(Function::Bessel { order, scaled: false }, &[x]);
    if order == 0 { bessel(1) } else { Ok((bessel(order - 1)? + bessel(order + 1)?) * 0.5) }
}

/// Returns the derivative of a Bessel function of the first kind at x.
fn slope_of_bessel_j<T: Float>(order: usize, x: Var<'_, T>) -> RuleResult<'_, T> {
    let bessel = |order| record(Function::BesselJ { order }, &[x]);
    Ok(if order == 0 { -bessel(1)? } else { (bessel(order - 1)? - bessel(order + 1)?) * 0.5 })
}

/// Returns the derivative of a Bessel function of the second kind at x. Near the pole at 0, the function of the next order is -∞, and the
/// function of the order before is evaluated at 1 instead. Otherwise their difference would be NaN.
fn slope_of_bessel_y<T: Float>(order: usize, x: Var<'_, T>) -> RuleResult<'_, T> {
    let next = record(Function::BesselY { order: order + 1 }, &[x])?;
    if order == 0 {
        return Ok(-next);
    }
    let off_pole = x.masked_fill(next.eq(f64::NEG_INFINITY), 1.0);
    Ok((record(Function::BesselY { order: order - 1 }, &[off_pole])? - next) * 0.5)
}

/// Returns the derivative of z, the difference of two scaled Bessel functions at x.
fn slope_of_bessel_step<'t, T: Float>(order: usize, x: Var<'t, T>, z: Var<'t, T>) -> RuleResult<'t, T> {
    let step = |order| record(Function::BesselStep { order }, &[x]);
    let previous = if order == 0 { -z } else { step(order - 1)? };
    Ok(x.sign() * (step(order + 1)? - z * 2.0 + previous) * 0.5)
}

/// Returns the derivative of the gamma density z = f(a, x) with respect to x.
fn slope_of_gamma_density<'t, T: Float>(a: Var<'t, T>, x: Var<'t, T>, z: Var<'t, T>) -> Var<'t, T> {
    let at_zero = x.eq(0.0);
    let [x, z] = [x.masked_fill(&at_zero, 1.0), z.masked_fill(&at_zero, 0.0)];
    let one = a.masked_fill(a.eq(a), 1.0);
    where_(&at_zero, slope_at_end(a, -one, one), z * ((a - 1.0) / x - 1.0))
}

/// Returns the derivative of the beta density z = f(a, b, x) with respect to x.
fn slope_of_beta_density<'t, T: Float>([a, b]: [Var<'t, T>; 2], x: Var<'t, T>, z: Var<'t, T>) -> Var<'t, T> {
    let (at_zero, at_one) = (x.eq(0.0), x.eq(1.0));
    let ends = at_zero.logical_or(at_one);
    let [x, z] = [x.masked_fill(&ends, 0.5), z.masked_fill(&ends, 0.0)];
    let slope = |a: Var<'t, T>, b: Var<'t, T>| slope_at_end(a, b * (1.0 - b), b * (b + 1.0));
    let inside = where_(&at_one, -slope(b, a), z * ((a - 1.0) / x + (b - 1.0) / (x - 1.0)));
    where_(&at_zero, slope(a, b), inside)
}

/// Records the product of a density and the derivative of its logarithm. The product is 0 where the density is 0, because the derivative of
/// the logarithm may be infinite there.
fn times_log_slope<'t, T: Float>(density: Var<'t, T>, log_slope: Var<'t, T>) -> Var<'t, T> {
    (density * log_slope).masked_fill(density.eq(0.0), 0.0)
}

/// Records the derivative, at an end of the support, of a density that is proportional to the power a - 1 of the distance from this end. It
/// is `first` for a = 1, and `second` for a = 2.
fn slope_at_end<'t, T: Float>(a: Var<'t, T>, first: Var<'t, T>, second: Var<'t, T>) -> Var<'t, T> {
    let zero_above_two = second.masked_fill(a.gt(2.0), 0.0);
    let below_two = zero_above_two.masked_fill(a.lt(2.0), f64::INFINITY);
    where_(&a.eq(1.0), first, below_two).masked_fill(a.lt(1.0), f64::NEG_INFINITY)
}

/// Returns the derivative of ln(xᵃ⁻¹ e⁻ˣ / Γ(a)) with respect to a.
fn gamma_log_slope<'t, T: Float>(inputs: &[Var<'t, T>]) -> Var<'t, T> {
    inputs[1].log() - inputs[0].digamma()
}

/// Returns the derivative of ln(xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b)) with respect to a or b (`input` 0 or 1).
fn beta_log_slope<'t, T: Float>(inputs: &[Var<'t, T>], input: usize) -> Var<'t, T> {
    let (a, b, x) = (inputs[0], inputs[1], inputs[2]);
    match input {
        0 => x.log() - a.digamma() + (a + b).digamma(),
        _ => (-x).log1p() - b.digamma() + (a + b).digamma(),
    }
}

/// A density, whose derivatives with respect to its shape parameters can be recorded.
struct Density<'v, 't, T: Float> {
    inputs: &'v [Var<'t, T>],
    function: Function,
}

impl<'t, T: Float> Density<'_, 't, T> {
    /// Records the derivative of the density whose orders with respect to the two shape parameters are `orders`. The first derivative of a
    /// density p is p times the derivative l of its logarithm. Leibniz's rule gives the higher derivatives of this product.
    fn derivative(&self, orders: [usize; 2]) -> RuleResult<'t, T> {
        let [i, j] = orders;
        if orders == [0, 0] {
            return record(self.function, self.inputs);
        }
        // The product of the density and the derivative of its logarithm is differentiated `a_order` times with respect to a and `b_order`
        // times with respect to b.
        let (input, a_order, b_order) = if i > 0 { (0, i - 1, j) } else { (1, 0, j - 1) };
        let mut sum: Option<Var<'t, T>> = None;
        for p in 0..=a_order {
            for q in 0..=b_order {
                let weight = binomial(a_order, p) * binomial(b_order, q);
                let log_derivative = self.log_derivative(input, [a_order - p, b_order - q]);
                let term = times_log_slope(self.derivative([p, q])?, log_derivative) * weight;
                sum = Some(sum.map_or(term, |sum| sum + term));
            }
        }
        sum.map_or_else(|| unreachable!("the sum has a term"), Ok)
    }

    /// Records a derivative of the logarithm of the density. It is taken once with respect to the shape parameter `input`, then with
    /// respect to each shape parameter as often as `orders` says.
    fn log_derivative(&self, input: usize, orders: [usize; 2]) -> Var<'t, T> {
        let order = orders[0] + orders[1];
        match self.function {
            _ if order == 0 && self.function == Function::GammaDensity => gamma_log_slope(self.inputs),
            _ if order == 0 => beta_log_slope(self.inputs, input),
            Function::GammaDensity => -self.inputs[0].polygamma(order),
            _ => {
                let total = (self.inputs[0] + self.inputs[1]).polygamma(order);
                if orders[1 - input] > 0 { total } else { total - self.inputs[input].polygamma(order) }
            }
        }
    }
}

/// Returns the binomial coefficient n! / (k! (n - k)!).
fn binomial(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n - k + i) as f64 / i as f64)
}
