//! The derivative of every primitive.
//!
//! The letters in all rules: `x` and `y` are inputs, `z` is the output, and `g` is the incoming gradient. `v` is a tangent, or in rules for
//! both modes an incoming gradient or a tangent. A rule is a formula over recorded variables, so derivatives of every order use it. The
//! rules of elementwise operations contain no broadcasting: `expand` is a separate operation, recorded before the operation that needs it.
//! The adjoint of `expand` is a sum.
//!
//! An elementwise operation has a diagonal derivative. So both modes use the same formula, ∂z/∂x · v. Here v is the incoming gradient in
//! reverse mode, and the tangent in forward mode. Most other operations have one formula for each mode.
//!
//! | file | primitives |
//! |---|---|
//! | [`unary`] | functions of one operand |
//! | [`binary`] | functions of two, and selection |
//! | [`power`] | powers, by an array of exponents or a number |
//! | [`reduction`] | sum, amax, amin, max, min; prod as a tree of products |
//! | [`norm`] | p-norms |
//! | [`variance`] | variances |
//! | [`cumulative`] | cumulative sums |
//! | [`movement`] | views and their adjoints; gather, scatter-add; slices at indices; concatenation |
//! | [`linear`] | matrix products |
//! | [`windows`] | convolutions; maximum and mean pooling |
//! | [`meta`] | operations that change no value: they replace a derivative or check a condition |
//! | [`derivative`] | `expand` and `reshape`; the choice of the rule |
//!
//! Every primitive also has a batching rule. [`batching`] has the rules of the primitives that the engine knows. A primitive that is a type
//! of its own has its rule in its method `batch`. [`shared`] has the types and functions that several of these files use.
//!
//! `docs/derivatives.md` lists all formulas, with the reason for each primitive. A test fails if a primitive is missing there.

mod batching;
mod binary;
mod cumulative;
mod derivative;
mod linear;
mod meta;
mod movement;
mod norm;
mod power;
mod reduction;
mod shared;
mod unary;
mod variance;
mod windows;

pub(crate) use batching::{EXAMPLE_BYTES, example_of, record_batched};
pub(crate) use binary::LinearFactor;
pub(crate) use cumulative::CumSum;
pub(crate) use derivative::{
    Primitive, accumulate, first_differentiable_input, is_constant_in, is_differentiable_in, refuses_derivative,
};
pub(crate) use meta::{Guard, WithDerivative};
pub(crate) use movement::{IndexAdd, IndexSelect, ScatterAdd, Take};
pub(crate) use norm::Norm;
pub(crate) use reduction::{Factors, product_over};
pub(crate) use shared::RuleResult;
pub(crate) use variance::Variance;
pub(crate) use windows::{Convolution, MaxPooling, MeanPooling};
