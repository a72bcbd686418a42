//! Initial value problems of ordinary differential equations.
//!
//! | file | contents |
//! |---|---|
//! | `field` | evaluates the right-hand side |
//! | `tableau`, `explicit` | explicit Runge-Kutta methods |
//! | `rosenbrock` | a method for stiff problems |
//! | `integrate` | the loop over steps, and the step control |
//! | `adjoint` | the problem as an operation of a tape |
//! | `odeint` | the options, and the ways to call the solver |

mod adjoint;
mod explicit;
mod field;
mod integrate;
mod odeint;
mod rosenbrock;
mod tableau;

pub use integrate::Method;
pub use odeint::{Odeint, Trajectory, odeint, try_odeint};
