//! A lazy tape over tensors, and derivatives of any order on it.
//!
//! A [`Tape`] records operations on [`Var`]s and computes nothing until a value is requested. A gradient is appended to the program
//! on the same tape: [`Var::grad`] returns variables, so a second derivative is `grad` once more. [`Var::backward`] returns owned
//! [`Gradients`] that outlive the tape.
//!
//! ```
//! # use wengert_autograd as wengert;
//! use wengert::prelude::*;
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
//! | subject | items |
//! |---|---|
//! | a recorded program, its variables, its constants | [`Tape`], [`Var`], [`Constant`] |
//! | tensors of a model: trained, or updated by statistics | [`Parameter`]; [`Buffer`], [`BufferChange`], [`BlendWeight`] |
//! | gradients that outlive the tape | [`Gradients`], [`Key`], [`LossWith`] |
//! | gradients, each handed over as soon as it is computed | [`RecordedGradients`], [`GradientSink`] |
//! | `grad`, `vmap`, `jacobian`, `hessian`, `jvp`, `hvp` of functions of tensors; functions kept in a `let` | [`transforms`]; [`formula`] |
//! | derivatives compared with central differences | [`gradcheck`](mod@gradcheck), [`assert_gradcheck`], [`GradCheck`] |
//! | an operation of your own, by its derivative | [`Function`], [`FunctionCall`] |
//! | the interface of custom operations, and of built-in ones that store arguments | [`Operation`], [`Call`], [`BatchedCall`] |
//! | the recorded program as text and as a picture | [`Graph`] |
//! | the origin of the first NaN or infinity | [`NonFinite`], [`NonFiniteOperand`] |
//! | the simplification of recorded programs | [`set_simplification`], [`simplification`] |
//! | random numbers | [`Generator`] |
//! | errors | [`Error`], [`MissingGradient`] |
//!
//! `docs/levels.md` in the repository lists the folders of the sources, lowest first.

// rustdoc shows `impl` blocks in the order of the modules. These three modules come first, so that the pages of `Tape` and `Var` begin with
// variables, values and gradients.
mod tape;

mod evaluate;

mod derive;

mod error;
pub mod gradcheck;
mod inspect;
mod parameter;
mod record;
mod rules;
pub mod transforms;
mod variable;

pub use derive::{GradientSink, Gradients, Key, LossWith, RecordedGradients};
pub(crate) use error::raise;
pub use error::{Error, MissingGradient};
pub use gradcheck::{GradCheck, gradcheck};
#[doc(hidden)]
pub use inspect::{Custom, Program, Step};
pub use inspect::{Graph, NonFinite, NonFiniteOperand};
pub use parameter::{BlendWeight, Buffer, BufferChange, Parameter};
pub use tape::{BatchedCall, Call, Constant, Operation, Tape, Var};
pub use variable::{Function, FunctionCall};
pub use wengert_tensor::plan::{set_simplification, simplification};

#[doc(no_inline)]
pub use wengert_tensor as tensor;
pub use wengert_tensor::Generator;

/// The imports of most programs: the tape, its variables, parameters and gradients, tensors and their operations, `infer` and `formula!`.
pub mod prelude {
    pub use crate::transforms::infer;
    pub use crate::{Gradients, Parameter, Tape, Var, formula};
    // The prelude imports traits without names. Without `no_inline`, rustdoc would copy the pages of these traits, and the copies would
    // hide the original pages.
    #[doc(no_inline)]
    pub use wengert_tensor::prelude::*;
}
