//! The derivative of every primitive.
//!
//! Letters: `x`, `y` inputs, `z` output, `g` incoming gradient, `v` a tangent. A rule is a formula over recorded variables,
//! so it serves every order of derivative. No rule mentions broadcasting: by the time an operation is recorded, `expand`
//! has been recorded before it, and its adjoint is a sum.
//!
//! An elementwise operation has a diagonal derivative: the same formula, ∂z/∂x · v, serves the incoming gradient in reverse
//! mode and the tangent in forward mode. The others have one formula for each.
//!
//! | file | primitives |
//! |---|---|
//! | [`unary`] | functions of one operand |
//! | [`binary`] | functions of two, and selection |
//! | [`power`] | powers, by an array of exponents or a number |
//! | [`reduction`] | sum, amax, amin; prod as a tree of products |
//! | [`norm`] | p-norms |
//! | [`variance`] | variances |
//! | [`cumulative`] | cumulative sums |
//! | [`movement`] | views and their adjoints; gather, scatter-add, concatenation |
//! | [`linear`] | matrix products |
//! | [`windows`] | convolutions; maximum and mean pooling |
//! | [`meta`] | operations that change no value: another derivative, a condition |
//!
//! The second rule of every primitive is how it works on a batch: in [`batching`] those of the primitives without parameters, in the
//! method `batch` the others.
//!
//! `docs/derivatives.md` lists all the formulas and says why each primitive is one. A test fails if it lacks one.

mod batching;
mod binary;
mod cumulative;
mod derivative;
mod linear;
mod meta;
mod mode;
mod movement;
mod norm;
mod power;
mod reduction;
mod unary;
mod variance;
mod windows;

pub(crate) use batching::{batched, example_of};
pub(crate) use cumulative::CumSum;
pub(crate) use derivative::{Primitive, Tangent, accumulate, flows, flows_from};
pub(crate) use meta::{Guard, Slopes, Softmax, WithDerivative};
pub(crate) use movement::{IndexAdd, IndexSelect, ScatterAdd, Take};
pub(crate) use norm::Norm;
pub(crate) use power::Root;
pub(crate) use reduction::product_over;
pub(crate) use variance::Variance;
