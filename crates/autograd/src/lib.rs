//! A lazy tape over tensors, and derivatives of any order on it.
//!
//! A [`Tape`] records operations on [`Var`]s and computes nothing until a value is requested. A gradient is appended to the program
//! on the same tape: [`Var::grad`] returns variables, so a second derivative is `grad` once more. [`Var::backward`] returns owned
//! [`Gradients`] that outlive the tape.
//!
//! ```
//! use wengert_autograd::prelude::*;
//!
//! let tape = Tape::<f64>::new();
//! let x = tape.var(&Tensor::from([1.0, 2.0, 3.0]));
//! let y = (x * x * x).sum(..); // Σ x³
//! let [dx] = y.grad([x]); // 3x²
//! let [ddx] = dx.sum(..).grad([x]); // 6x
//! assert_eq!(dx.value().to_vec(), [3.0, 12.0, 27.0]);
//! assert_eq!(ddx.value().to_vec(), [6.0, 12.0, 18.0]);
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `record` | an expression, with its data, its operations with parameters, and the lines of code that recorded it |
//! | [`Tape`], [`Var`], [`Operation`] | the record; a `Copy` handle to a node; the interface of operations |
//! | `evaluate` | values, computed by the engine of the tensor crate from the tape's expression |
//! | `rules` | the derivative of every primitive, one line each, and how it works on a batch |
//! | `variable` | recording of every tensor operation; the operators |
//! | `derive` | reverse mode, forward mode and batching: all three only append nodes; [`Gradients`] |
//! | [`transforms`] | `grad`, `vmap`, `jacobian`, `hessian`, `hvp` of functions of tensors |
//! | [`gradcheck`](mod@gradcheck) | derivatives against central differences |
//! | [`Graph`], [`NonFinite`] | the recorded program as a graph; the origin of its first NaN |
//!
//! A module uses only the modules above it in this table.

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

pub use derive::{GradientSink, Gradients, Key, LossWith, RecordedGradients};
pub use error::Error;
pub(crate) use error::raise;
pub use gradcheck::{GradCheck, gradcheck};
pub use inspect::{Graph, NonFinite, NonFiniteOperand};
pub use parameter::{Buffer, Change, Parameter, Share};
pub use tape::{BatchedCall, Call, Operation, Tape, Var};
pub use variable::{Function, FunctionCall};
pub use wengert_tensor::plan::{set_simplification, simplification};

pub use wengert_tensor as tensor;
pub use wengert_tensor::Generator;

/// The imports of most programs: the tape, its variables, tensors and their operations.
pub mod prelude {
    pub use crate::{Gradients, Parameter, Tape, Var};
    pub use wengert_tensor::prelude::*;
}
