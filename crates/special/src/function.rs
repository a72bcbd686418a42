//! The elementwise functions: their names, and their values at f64 numbers.

use wengert_tensor::{Error, Float, Tensor};

use crate::numeric::orthogonal::{self, Family};
use crate::numeric::{bessel, beta, gamma, inverse, normal};

/// An elementwise function of one to three arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    /// ln Φ(x), where Φ is the distribution function of the standard normal distribution.
    LogNdtr,
    /// The inverse of Φ, the distribution function of the standard normal distribution.
    Ndtri,
    /// exp(x²) erfc x, the scaled complementary error function.
    Erfcx,
    /// ln(1 - eˣ).
    Log1mexp,
    /// The modified Bessel function of the first kind of x, of order `order`. It is multiplied by exp(-|x|) if `scaled` is true.
    Bessel { order: usize, scaled: bool },
    /// exp(-|x|) times the difference of the modified Bessel functions of |x| of the orders `order` + 1 and `order`.
    BesselStep { order: usize },
    /// The Bessel function of the first kind of x, of order `order`.
    BesselJ { order: usize },
    /// The Bessel function of the second kind of x, of order `order`.
    BesselY { order: usize },
    /// The derivative of order `order` of the orthogonal polynomial of degree `n` of a family.
    Polynomial { family: Family, n: usize, order: usize },
    /// ln B(a, b), the logarithm of the beta function.
    Betaln,
    /// xᵃ⁻¹ e⁻ˣ / Γ(a) of (a, x), the density of the gamma distribution.
    GammaDensity,
    /// The derivative of order `order` with respect to a of the regularised incomplete gamma function of (a, x). The gamma function is the
    /// upper one if `upper` is true, else the lower one.
    Gammainc { order: usize, upper: bool },
    /// xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) of (a, b, x), the density of the beta distribution.
    BetaDensity,
    /// The derivative of the regularised incomplete beta function of (a, b, x), of order `orders[0]` with respect to a and `orders[1]` with
    /// respect to b. The beta function is the upper one if `upper` is true, else the lower one.
    Betainc { orders: [usize; 2], upper: bool },
    /// The x at which the regularised incomplete gamma function of (a, x) has a given value: the upper one if `upper` is true, else the
    /// lower one.
    GammaincInv { upper: bool },
    /// The x at which the regularised incomplete beta function of (a, b, x) has a given value.
    BetaincInv,
}

impl Function {
    /// Returns the function's name for errors and for drawings of the tape.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::LogNdtr => "log_ndtr",
            Function::Ndtri => "ndtri",
            Function::Erfcx => "erfcx",
            Function::Log1mexp => "log1mexp",
            Function::Bessel { order: 0, scaled: false } => "i0",
            Function::Bessel { order: 0, scaled: true } => "i0e",
            Function::Bessel { order: 1, scaled: false } => "i1",
            Function::Bessel { order: 1, scaled: true } => "i1e",
            Function::Bessel { scaled: false, .. } => "bessel_i",
            Function::Bessel { scaled: true, .. } => "bessel_ie",
            Function::BesselStep { .. } => "bessel_step",
            Function::BesselJ { order: 0 } => "bessel_j0",
            Function::BesselJ { order: 1 } => "bessel_j1",
            Function::BesselJ { .. } => "bessel_j",
            Function::BesselY { order: 0 } => "bessel_y0",
            Function::BesselY { order: 1 } => "bessel_y1",
            Function::BesselY { .. } => "bessel_y",
            Function::Polynomial { family, .. } => family.name(),
            Function::Betaln => "betaln",
            Function::GammaDensity => "gamma_density",
            Function::Gammainc { upper: false, .. } => "gammainc",
            Function::Gammainc { upper: true, .. } => "gammaincc",
            Function::BetaDensity => "beta_density",
            Function::Betainc { upper: false, .. } => "betainc",
            Function::Betainc { upper: true, .. } => "betaincc",
            Function::GammaincInv { upper: false } => "gammaincinv",
            Function::GammaincInv { upper: true } => "gammainccinv",
            Function::BetaincInv => "betaincinv",
        }
    }

    /// Computes the value of the function. A function of one or two arguments ignores the rest of the numbers.
    fn value(self, [x, y, z]: [f64; 3]) -> f64 {
        match self {
            Function::LogNdtr => normal::log_ndtr(x),
            Function::Ndtri => normal::ndtri(x),
            Function::Erfcx => normal::erfcx(x),
            Function::Log1mexp => normal::log1mexp(x),
            Function::Bessel { order, scaled } => bessel::bessel_i(order, x, scaled),
            Function::BesselStep { order } => bessel::bessel_step(order, x),
            Function::BesselJ { order } => bessel::bessel_j(order, x),
            Function::BesselY { order } => bessel::bessel_y(order, x),
            Function::Polynomial { family, n, order } => orthogonal::derivative(family, n, order, x),
            Function::Betaln => gamma::betaln(x, y),
            Function::GammaDensity => gamma::gamma_density(x, y),
            Function::Gammainc { order, upper } => gamma::gammainc(x, y, upper, order),
            Function::BetaDensity => beta::beta_density(x, y, z),
            Function::Betainc { orders, upper: false } => beta::betainc(x, y, [z, 1.0 - z], orders),
            Function::Betainc { orders: [i, j], upper: true } => beta::betainc(y, x, [1.0 - z, z], [j, i]),
            Function::GammaincInv { upper } => inverse::gammaincinv(x, y, upper),
            Function::BetaincInv => inverse::betaincinv(x, y, z),
        }
    }

    /// Computes the function for each element, on several threads for large arrays. The inputs have equal shapes.
    pub(crate) fn values<T: Float>(self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        let mut out = inputs[0].clone();
        let value = |elements: [T; 3]| T::from_f64(self.value(elements.map(T::to_f64)));
        match inputs {
            [x] => out.try_update_with(x, [], |x, _, []| (value([x, T::ZERO, T::ZERO]), []))?,
            [_, y] => out.try_update_with(y, [], |x, y, []| (value([x, y, T::ZERO]), []))?,
            [_, y, z] => {
                out.try_update_with(y, [&mut z.clone()], |x, y, [z]| (value([x, y, z]), [z]))?;
            }
            _ => unreachable!("a function has one to three inputs"),
        }
        Ok(out)
    }
}
