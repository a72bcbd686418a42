//! Derivatives of the solution of an equation, by the implicit function theorem.
//!
//! If F(x(a), a) = 0, the derivative of x with respect to the arguments a is -(∂F/∂x)⁻¹ ∂F/∂a. The rule is recorded at the solution, so it
//! has derivatives of every order in both modes. It does not depend on the iterations that found the solution.

use std::rc::Rc;

use wengert_autograd::transforms::{grad, jacobian};
use wengert_autograd::{Error as TapeError, Function, FunctionCall, Var};
use wengert_linalg::prelude::*;
use wengert_tensor::ops::{Reductions as _, Views as _};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::Result;
use crate::evaluate::MapWith;

/// A function that finds a solution from a start and arguments.
pub(crate) type Search<T> = dyn Fn(&Tensor<T>, &[Tensor<T>]) -> Result<Tensor<T>>;

/// The solution of an equation as an operation. The inputs are the start and the arguments. The start has no derivative.
pub(crate) struct Implicit<T: Float> {
    pub(crate) name: &'static str,
    /// Finds the solution.
    pub(crate) search: Box<Search<T>>,
    /// The equation: a function that is 0 at the solution, with as many elements as the solution.
    pub(crate) equation: Rc<MapWith<T>>,
}

impl<T: Float> Implicit<T> {
    /// Records the solution.
    pub(crate) fn record<'t>(self, start: Var<'t, T>, args: &[Var<'t, T>], at: Site) -> Result<Var<'t, T>> {
        let inputs: Vec<Var<'t, T>> = std::iter::once(start).chain(args.iter().copied()).collect();
        Ok(start.tape().record_function(self, &inputs, at)?[0])
    }
}

impl<T: Float> Function<T> for Implicit<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        Ok(vec![inputs[0].clone()])
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, TapeError> {
        Ok(vec![(self.search)(&inputs[0], &inputs[1..])?])
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (x, args) = (call.outputs[0], &call.inputs[1..]);
        let n = x.numel();
        let slopes = jacobian(|x| (self.equation)(x, args), x).reshape([n, n]);
        let weights = slopes.t().solve(gradients[0].reshape([n]));
        let mut results = vec![None];
        results.extend(argument_gradients(&*self.equation, x, args, -weights).into_iter().map(Some));
        results
    }
}

/// Records the gradients of the sum of `f(x, args)` times `weights` with respect to the arguments, at constant `x`.
pub(crate) fn argument_gradients<'t, T: Float>(
    f: &MapWith<T>,
    x: Var<'t, T>,
    args: &[Var<'t, T>],
    weights: Var<'t, T>,
) -> Vec<Var<'t, T>> {
    if args.is_empty() {
        return Vec::new();
    }
    // `grad` differentiates with respect to new variables, so the solution counts as independent of the arguments.
    let weighted = |args: Vec<Var<'t, T>>| {
        let y = f(x, &args);
        (y * weights.reshape(y.shape())).sum(..)
    };
    grad(weighted, args.to_vec())
}
