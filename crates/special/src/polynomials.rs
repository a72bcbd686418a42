//! Orthogonal polynomials as methods of tensors and variables.

use wengert_macros::twins;
use wengert_tensor::Site;
use wengert_tensor::ops::Result;

use crate::array::Array;
use crate::function::Function;
use crate::numeric::orthogonal::Family;

/// Orthogonal polynomials of degree `n`, computed for each element x of `self`. They have derivatives of every order, which PyTorch's do
/// not have.
///
/// The time grows with `n`. The polynomial of degree 0 is 1, also for NaN. Degrees from 3 on are NaN at ±∞, as in PyTorch, because the
/// terms of the recurrence cancel. Values that overflow are infinite or NaN. PyTorch's Hermite polynomials are NaN
/// for some large degrees. In PyTorch the degree may be a tensor; call the method for each degree instead.
///
/// ```
/// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
/// use wengert::{prelude::*, special::prelude::*};
///
/// let x = Tensor::<f64>::from([0.0, 0.5, 1.0]);
/// assert_eq!(x.legendre_polynomial_p(2).to_vec(), [-0.5, -0.125, 1.0]); // (3x² - 1) / 2
/// let tape = Tape::<f64>::new();
/// let x = tape.var(&x);
/// let [slope] = x.chebyshev_polynomial_t(3).sum(..).grad([x]);
/// assert_eq!(slope.value().to_vec(), [-3.0, 0.0, 9.0]); // 12x² - 3
/// ```
///
/// # Errors
///
/// All methods return an error if memory cannot hold the result.
#[twins(blanket)]
pub trait Polynomials: Array {
    /// Returns the Chebyshev polynomial of the first kind: cos(n arccos x) for x in [-1, 1]. PyTorch: `special.chebyshev_polynomial_t`.
    fn try_chebyshev_polynomial_t(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::ChebyshevT, n, Site::here("chebyshev_polynomial_t"))
    }

    /// Returns the Chebyshev polynomial of the second kind: sin((n + 1) θ) / sin θ with θ = arccos x for x in (-1, 1). PyTorch:
    /// `special.chebyshev_polynomial_u`.
    fn try_chebyshev_polynomial_u(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::ChebyshevU, n, Site::here("chebyshev_polynomial_u"))
    }

    /// Returns the Chebyshev polynomial of the third kind: cos((n + ½) θ) / cos(θ/2) with θ = arccos x for x in (-1, 1]. PyTorch:
    /// `special.chebyshev_polynomial_v`.
    fn try_chebyshev_polynomial_v(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::ChebyshevV, n, Site::here("chebyshev_polynomial_v"))
    }

    /// Returns the Chebyshev polynomial of the fourth kind: sin((n + ½) θ) / sin(θ/2) with θ = arccos x for x in [-1, 1). PyTorch:
    /// `special.chebyshev_polynomial_w`.
    fn try_chebyshev_polynomial_w(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::ChebyshevW, n, Site::here("chebyshev_polynomial_w"))
    }

    /// Returns the Hermite polynomial of physics, which is orthogonal with the weight exp(-x²): 2x for n = 1. PyTorch:
    /// `special.hermite_polynomial_h`.
    fn try_hermite_polynomial_h(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::HermiteH, n, Site::here("hermite_polynomial_h"))
    }

    /// Returns the Hermite polynomial of probability theory, which is orthogonal with the weight exp(-x²/2): x for n = 1. PyTorch:
    /// `special.hermite_polynomial_he`.
    fn try_hermite_polynomial_he(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::HermiteHe, n, Site::here("hermite_polynomial_he"))
    }

    /// Returns the Laguerre polynomial, which is orthogonal on [0, ∞) with the weight exp(-x): 1 - x for n = 1. PyTorch:
    /// `special.laguerre_polynomial_l`.
    fn try_laguerre_polynomial_l(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::LaguerreL, n, Site::here("laguerre_polynomial_l"))
    }

    /// Returns the Legendre polynomial, which is orthogonal on [-1, 1] with equal weights: x for n = 1. PyTorch:
    /// `special.legendre_polynomial_p`.
    fn try_legendre_polynomial_p(&self, n: usize) -> Result<Self> {
        polynomial(self, Family::LegendreP, n, Site::here("legendre_polynomial_p"))
    }
}

/// Computes or records the polynomial of degree `n` of a family at each element of `x`.
#[track_caller]
fn polynomial<A: Array>(x: &A, family: Family, n: usize, at: Site) -> Result<A> {
    A::apply_elementwise(Function::Polynomial { family, n, order: 0 }, std::slice::from_ref(x), at)
}
