//! Minima of functions without constraints.
//!
//! | file | contents |
//! |---|---|
//! | `wolfe` | the search along a direction |
//! | `objective` | the function with its gradient |
//! | `bfgs`, `newton_cg` | the directions |
//! | `solver` | the options, the iteration and the result |

mod bfgs;
mod newton_cg;
mod objective;
mod solver;
mod wolfe;

pub use solver::{Minimize, MinimizeEnd, MinimizeMethod, MinimizeResult, minimize, try_minimize};
