//! Roots and fixed points.
//!
//! | file | contents |
//! |---|---|
//! | `newton` | systems of equations: Newton's method |
//! | `bracket` | one equation in an interval: Brent's method |
//! | `anderson` | fixed points: Anderson acceleration |

mod anderson;
mod bracket;
mod newton;

pub use anderson::{FixedPoint, FixedPointResult, fixed_point, try_fixed_point};
pub use bracket::{Brentq, BrentqResult, brentq, try_brentq};
pub use newton::{Root, RootResult, root, try_root};
