//! The regularized incomplete gamma functions. Their values are computed immediately, even for recorded variables; only the derivative is
//! recorded.

use wengert_macros::twins;

use crate::ops::primitive::pair::broadcast_two;
use crate::ops::{Arithmetic, Functions, Operand, Result, TensorLike};
use crate::scalar::special;
use crate::{Float, Scalar, Site, Tensor};

/// The two parts of the integral Γ(a) = ∫ tᵃ⁻¹ e⁻ᵗ dt from 0 to ∞, where a is `self`. The integral is split at t = `other`, and both parts
/// are divided by Γ(a). NaN where an operand is negative or NaN, and where both operands are 0 or both are ∞. A gradient with respect to
/// `self` is an error.
#[twins(blanket)]
pub trait IncompleteGamma: TensorLike<Elem: Float> {
    /// Returns the integral of tᵃ⁻¹ e⁻ᵗ dt from 0 to `other`, divided by Γ(a), where a is `self`. PyTorch: `igamma`, `special.gammainc`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let share = Tensor::from([1.0]).igamma(2.0).item();
    /// assert!((share - (1.0 - (-2f64).exp())).abs() < 1e-15);
    /// ```
    #[in_place]
    fn try_igamma(&self, other: impl Operand<Self>) -> Result<Self> {
        regularized(self, other, false, Site::here("igamma"))
    }

    /// Returns the integral of tᵃ⁻¹ e⁻ᵗ dt from `other` to ∞, divided by Γ(a), where a is `self`. Accurate also where the result is small,
    /// up to an absolute error of about 1e-16 for a from 0.001 on and `other` below a + 1. PyTorch: `igammac`, `special.gammaincc`.
    #[in_place]
    fn try_igammac(&self, other: impl Operand<Self>) -> Result<Self> {
        regularized(self, other, true, Site::here("igammac"))
    }
}

#[track_caller]
fn regularized<A: TensorLike<Elem: Float>>(a: &A, other: impl Operand<A>, is_upper: bool, at: Site) -> Result<A> {
    let (a, x) = broadcast_two(a, other, at)?;
    let (orders, bounds) = (a.to_tensor(at)?, x.to_tensor(at)?);
    let values = Tensor::build(orders.shape(), at, |out| {
        for (out, (a, x)) in out.iter_mut().zip(orders.iter().zip(bounds.iter())) {
            *out = A::Elem::from_f64(special::incomplete_gamma(a.to_f64(), x.to_f64(), is_upper));
        }
    })?;
    a.try_constant(&values)?.with_derivative(
        || {
            // The derivative with respect to x (`other`) is xᵃ⁻¹ e⁻ˣ / Γ(a), with a minus sign for the integral from x to ∞. The derivative
            // is computed from its logarithm.
            let a = a.refuse_gradients(at)?;
            let logarithm = a.try_sub(1.0)?.try_mul(&x.try_log()?)?.try_sub(&x)?.try_sub(&a.try_lgamma()?)?;
            let density = logarithm.try_exp()?;
            let slope = if is_upper { density.try_neg()? } else { density };
            let unknown = slope.try_mul(0.0)?;
            Ok(vec![(x.clone(), Some(slope)), (a, Some(unknown))])
        },
        at,
    )
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// The reference values were computed by mpmath with 60 digits.
    #[test]
    fn known_values() {
        for (a, x, lower, upper) in [
            (0.5, 0.25, 0.5204998778130465, 0.4795001221869535),
            (0.5, 4.0, 0.9953222650189527, 0.004677734981047266),
            (1.0, 30.0, 0.9999999999999064, 9.357622968840175e-14),
            (3.5, 0.001, 2.7165516671667906e-12, 0.9999999999972834),
            (3.5, 3.0, 0.46025064960444256, 0.5397493503955574),
            (10.0, 25.0, 0.9997785233617512, 0.00022147663824878357),
            (30.0, 28.0, 0.3773896943143976, 0.6226103056856024),
            (100.0, 120.0, 0.9721362601094793, 0.027863739890520663),
            (1000.0, 990.0, 0.3795213785379639, 0.620478621462036),
            (100000.0, 100300.0, 0.8286363112512076, 0.17136368874879235),
            (0.001, 0.5, 0.9994399333435292, 0.0005600666564707498),
            (1e-08, 2.0, 0.9999999995109948, 4.89005114719234e-10),
            (1e-05, 1e-08, 0.9998215811853934, 0.0001784188146066355),
            (0.0009, 1.0005, 0.9998025382209737, 0.00019746177902633774),
            (1e-10, 1e-05, 0.9999999989064281, 1.0935719794146443e-9),
            (1e-20, 1e-300, 1.0, 6.9019831223331213e-18),
            (1e-310, 0.5, 1.0, 5.5977359477617e-311),
            (20.0, 1.0, 1.5875276010732629e-19, 1.0),
            (200.0, 201.0, 0.5375075509172329, 0.4624924490827671),
        ] {
            let (a, x) = (Tensor::scalar(a), Tensor::scalar(x));
            let near = |got: f64, want: f64| (got - want).abs() <= 2e-13 * want;
            let (got, got_upper) = (a.igamma(&x).item(), a.igammac(&x).item());
            assert!(near(got, lower) && near(got_upper, upper), "{a} {x}: {got:e} {lower:e} {got_upper:e} {upper:e}");
        }
    }

    #[test]
    fn edges() {
        let inf = f64::INFINITY;
        let a = Tensor::from([0.0, 0.0, 2.0, inf, inf, 2.0, -1.0]);
        let x = Tensor::from([1.0, 0.0, 0.0, 1.0, inf, inf, 1.0]);
        let text = |x: Tensor<f64>| format!("{:?}", x.to_vec());
        assert_eq!(text(a.igamma(&x)), "[1.0, NaN, 0.0, 0.0, NaN, 1.0, NaN]");
        assert_eq!(text(a.igammac(&x)), "[0.0, NaN, 1.0, 1.0, NaN, 0.0, NaN]");
    }
}
