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
//! | `record` | an expression, and beside it data, operations with parameters and lines of code |
//! | [`Tape`], [`Var`], [`Operation`] | where is recorded; a `Copy` handle to a node; what an operation must say of itself |
//! | `evaluate` | values, computed by the engine of the tensor crate from the tape's expression |
//! | `rules` | the derivative of every primitive, a line each |
//! | `variable` | every operation of tensors, recorded; the operators |
//! | `derive` | reverse and forward mode: both only append nodes; [`Gradients`] |
//! | [`transforms`] | `grad`, `jacobian`, `hessian`, `hvp` of functions of tensors |
//! | [`gradcheck`](mod@gradcheck) | derivatives against central differences |
//! | [`Graph`], [`NonFinite`] | the recorded program, shown; where its first NaN was made |
//!
//! A module uses those above it in this table, and none below.

mod derive;
mod error;
mod evaluate;
pub mod gradcheck;
mod inspect;
mod parameter;
mod record;
mod rules;
mod tape;
pub mod transforms;
mod variable;

pub use derive::{Gradients, Key};
pub use error::Error;
pub(crate) use error::raise;
pub use gradcheck::{GradCheck, gradcheck};
pub use inspect::{Graph, NonFinite, NonFiniteOperand};
pub use parameter::Parameter;
pub use tape::{Call, Operation, Tape, Var};
pub use wengert_tensor::plan::{set_simplification, simplification};

pub use wengert_tensor as tensor;

/// What most programs want: the tape, its variables, tensors and their operations.
pub mod prelude {
    pub use crate::{Gradients, Parameter, Tape, Var};
    pub use wengert_tensor::prelude::*;
}
