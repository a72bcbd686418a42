//! Special functions of tensors and recorded variables, with the names of `torch.special` or `scipy.special` where they exist there.
//!
//! Each function is a method of the trait [`Special`] or, for orthogonal polynomials, [`Polynomials`]. Its derivative is a formula of recorded
//! functions, so derivatives of every order, both modes and `vmap` work. The incomplete gamma and beta functions also have derivatives with
//! respect to their shape parameters. For the gamma functions, these exist up to order 15, and for the beta functions up to a total order of 6.
//!
//! ```
//! # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
//! use wengert::{prelude::*, special::prelude::*};
//!
//! let tape = Tape::<f64>::new();
//! let (a, x) = (tape.var(&Tensor::from([0.5, 2.0])), tape.var(&Tensor::from([1.0, 3.0])));
//! let share = a.gammainc(x);
//! let [slope] = share.sum(..).grad([a]); // a larger shape moves the mass to the right
//! assert!(slope.value().iter().all(|slope| slope < 0.0));
//! ```
//!
//! | functions | maximum error in f64 in the tests |
//! |---|---|
//! | [`ndtr`](Special::ndtr), [`log_ndtr`](Special::log_ndtr), [`ndtri`](Special::ndtri), [`erfcx`](Special::erfcx), [`log1mexp`](Special::log1mexp), [`entr`](Special::entr) | relative 3e-15 |
//! | [`i0`](Special::i0), [`i0e`](Special::i0e), [`i1`](Special::i1), [`i1e`](Special::i1e) | relative 3e-15 |
//! | [`bessel_j0`](Special::bessel_j0), [`bessel_j1`](Special::bessel_j1), [`bessel_y0`](Special::bessel_y0), [`bessel_y1`](Special::bessel_y1) | 3e-15 times the larger of 0.1 and the value's magnitude |
//! | the orthogonal polynomials of [`Polynomials`], up to degree 30 | 3e-14 times the larger of 1 and the value's magnitude |
//! | [`gammaln`](Special::gammaln), [`betaln`](Special::betaln), [`polygamma`](Special::polygamma), [`multigammaln`](Special::multigammaln) | 2e-14 times the larger of 1 and the value's magnitude |
//! | [`gammainc`](Special::gammainc), [`gammaincc`](Special::gammaincc), [`betainc`](Special::betainc), [`betaincc`](Special::betaincc) | relative 3e-13; more for parameters of `betainc` below 1e-3 or above 1e7 |
//! | derivatives of `gammainc` and `betainc` with respect to the shape parameters | relative 1e-10; for order 2, 1e-15 if this is larger |
//! | [`gammaincinv`](Special::gammaincinv), [`gammainccinv`](Special::gammainccinv), [`betaincinv`](Special::betaincinv) | relative 1e-11, in the value of the inverted function |
//!
//! In f32 the results are the f64 results, rounded to f32. Exceptions are `ndtr`, `entr`, `gammaln`, `multigammaln` and `polygamma`, which
//! consist of functions of tensors.

mod array;
mod function;
mod numeric;
mod ops;
mod polynomials;
mod rules;

pub use array::{Array, Elementwise};
pub use ops::Special;
pub use polynomials::Polynomials;

/// Special functions of single numbers, for the crate of probability distributions.
#[doc(hidden)]
pub mod numbers {
    /// Returns the regularised upper incomplete gamma function of `a` at `x`.
    pub fn gammaincc(a: f64, x: f64) -> f64 {
        crate::numeric::gamma::gammainc(a, x, true, 0)
    }

    /// Returns the regularised upper incomplete beta function of `a` and `b` at `x`.
    pub fn betaincc(a: f64, b: f64, x: f64) -> f64 {
        crate::numeric::beta::betainc(b, a, [1.0 - x, x], [0, 0])
    }

    pub use crate::numeric::beta::student_cdf;
    pub use crate::numeric::inverse::student_icdf;
}

/// The traits [`Special`] and [`Polynomials`], imported without their names.
pub mod prelude {
    pub use crate::{Polynomials as _, Special as _};
}

/// Panics with the full text of `error`, at the caller's line.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
