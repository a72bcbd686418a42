//! A lazy tape over tensors, and derivatives of any order on it.
//!
//! A [`Tape`] records operations on [`Var`]s and computes nothing until a value is asked for. A gradient is more program on
//! the same tape: [`Var::grad`] gives variables again, so a second derivative is `grad` once more. [`Var::backward`] gives
//! owned [`Gradients`] that outlive the tape.
//!
//! ```
//! use wengert_autograd::prelude::*;
//!
//! let tape = Tape::<f64>::new();
//! let x = tape.var(&Tensor::from([1.0, 2.0, 3.0]));
//! let y = (x * x * x).sum(.., false); // Σ x³
//! let [dx] = y.grad([x]); // 3x²
//! let [ddx] = dx.sum(.., false).grad([x]); // 6x
//! assert_eq!(dx.value().to_vec(), [3.0, 12.0, 27.0]);
//! assert_eq!(ddx.value().to_vec(), [6.0, 12.0, 18.0]);
//! ```
//!
//! | module | duty |
//! |---|---|
//! | [`Tape`], [`Var`] | the arena of nodes; a `Copy` handle to one |
//! | [`Operation`] | what an operation must say: shape, value, `vjp`, `jvp` |
//! | `rules` | the derivative of every primitive, a line each |
//! | `backward`, `forward` | reverse and forward mode: both only append nodes |
//! | [`gradcheck`](mod@gradcheck) | derivatives against central differences |
//! | [`transforms`] | `grad`, `jacobian`, `hessian`, `hvp` of functions of tensors |
//! | [`Graph`], [`NonFinite`] | the recorded program, shown; where its first NaN was made |
//! | `plan` | from requested values to steps: what has one shape fused into one pass, plans kept |
//! | `evaluate` | from steps to tensors, each buffer released after its last use |

mod backward;
mod error;
mod evaluate;
mod forward;
pub mod gradcheck;
mod gradients;
mod graph;
mod non_finite;
mod operation;
mod operators;
mod parameter;
mod plan;
mod record;
mod rules;
mod tape;
pub mod transforms;
mod var;

pub use error::Error;
pub use gradcheck::{GradCheck, gradcheck};
pub use gradients::{Gradients, Key};
pub use graph::Graph;
pub use non_finite::{NonFinite, NonFiniteOperand};
pub use operation::{Call, Operation};
pub use parameter::Parameter;
pub use plan::{set_simplification, simplification};
pub use tape::Tape;
pub use var::Var;

pub use wengert_tensor as tensor;

/// What most programs want: the tape, its variables, tensors and their operations.
pub mod prelude {
    pub use crate::{Gradients, Parameter, Tape, Var};
    pub use wengert_tensor::prelude::*;
}
