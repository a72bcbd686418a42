//! Solvers whose solutions have derivatives: differential equations, roots, fixed points, least squares, minima and integrals.
//!
//! A problem is a function of recorded variables, so Jacobians, gradients and products of the Hessian are exact. Each solver has three
//! forms. A function has the usual settings ([`odeint`]). Options have the method `call`, whose result counts the work ([`Odeint::call`]).
//! They also have the method `record`, whose result is a variable with derivatives ([`Root::record`]).
//!
//! | problem | solver | SciPy | derivatives of the solution |
//! |---|---|---|---|
//! | y' = f(t, y), y(t₀) = y₀ | [`odeint`], [`Odeint`], [`Method`] | `solve_ivp` | of the recorded steps, or by the continuous adjoint |
//! | f(x) = 0 | [`root`], [`Root`] | `root` | implicit function theorem |
//! | f(x) = 0 in an interval | [`brentq`], [`Brentq`] | `brentq` | implicit function theorem |
//! | x = g(x) | [`fixed_point`], [`FixedPoint`] | `fixed_point` | implicit function theorem, without a Jacobian |
//! | smallest sum of squares | [`least_squares`], [`LeastSquares`] | `least_squares` | implicit function theorem |
//! | smallest value | [`minimize`], [`Minimize`] | `minimize` | implicit function theorem |
//! | ∫ f(x) dx | [`quad`], [`Quad`] | `quad`, `quad_vec` | integrals of the derivatives |
//!
//! All derivatives are of every order, in reverse and forward mode. A recorded function gets its parameters as arguments, because the
//! solver calls it on tapes of its own. Only [`Odeint::record`] calls its function on the caller's tape. Failures are values of [`Error`]; a
//! failure of a recorded solver is the error of the evaluation.
//!
//! ```
//! # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
//! use wengert::prelude::*;
//! use wengert::solvers::Odeint;
//!
//! // The derivative of a solution with respect to a parameter of the equation.
//! let tape = Tape::<f64>::new();
//! let (rate, y0) = (tape.var(&Tensor::scalar(0.5)), tape.constant(Tensor::scalar(2.0)));
//! let times = tape.constant(Tensor::from([0.0, 1.0, 2.0]));
//! let y = Odeint::new().rtol(1e-8).record_adjoint(|_, y, args| -(y * args[0]), y0, times, &[rate]);
//! let [slope] = y.select(0, 2).grad([rate]); // of 2 exp(-2 rate)
//! assert!((slope.item() + 4.0 * (-1.0f64).exp()).abs() < 1e-6);
//! ```

mod dense;
mod error;
mod evaluate;
mod implicit;
mod least_squares;
mod minimize;
mod ode;
mod quad;
mod root;

pub use error::{Error, Result};
pub use least_squares::{FitEnd, LeastSquares, LeastSquaresResult, least_squares, try_least_squares};
pub use minimize::{Minimize, MinimizeEnd, MinimizeMethod, MinimizeResult, minimize, try_minimize};
pub use ode::{Method, Odeint, Trajectory, odeint, try_odeint};
pub use quad::{Limit, Quad, QuadResult, quad, try_quad};
pub use root::{
    Brentq, BrentqResult, FixedPoint, FixedPointResult, Root, RootResult, brentq, fixed_point, root, try_brentq,
    try_fixed_point, try_root,
};

/// Panics with the full text of `error`. Functions that return no `Result` call this function. The panic names the line that calls `raise`,
/// or the next caller outside of functions with `#[track_caller]`.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
