//! The recorded solution of an initial value problem, with the continuous adjoint as its derivative.
//!
//! For a loss L of the solution, the adjoint a(t) = ∂L/∂y(t) satisfies a' = -aᵀ ∂f/∂y, backward in time. At each requested time, the gradient
//! of the state at this time is added. The gradients of the arguments are the integrals of aᵀ ∂f/∂args (Pontryagin et al., 1962; R. T. Q.
//! Chen et al., "Neural ordinary differential equations", 2018). The state is integrated backward too, and starts from the stored state in
//! each interval. The backward problem is again a recorded initial value problem, so there are derivatives of every order.

use std::rc::Rc;

use wengert_autograd::transforms::grad;
use wengert_autograd::{Error as TapeError, Function, FunctionCall, Var};
use wengert_tensor::ops::{Reductions as _, Views as _, cat, stack};
use wengert_tensor::{Float, Shape, Site, Tensor};

use super::field::Field;
use super::integrate::{Settings, check_times, integrate};
use crate::error::Error;
use crate::evaluate::normalize_by_max;

/// The right-hand side f(t, y, arguments) of a recorded initial value problem. The recorded operation stores it to compute values and
/// derivatives later.
pub(super) type SharedDynamics<T> = Rc<dyn for<'t> Fn(Var<'t, T>, Var<'t, T>, &[Var<'t, T>]) -> Var<'t, T>>;

/// An initial value problem as an operation. The inputs are the initial state, the times and the arguments.
pub(super) struct Problem<T: Float> {
    pub(super) settings: Settings,
    pub(super) f: SharedDynamics<T>,
    /// True for the backward problem, whose initial state contains the incoming gradient.
    pub(super) is_adjoint: bool,
    pub(super) at: Site,
}

impl<T: Float> Function<T> for Problem<T> {
    fn name(&self) -> &'static str {
        "odeint"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        match &inputs[1][..] {
            [count] if *count > 0 => Ok(vec![inputs[0].replaced(0..0, &[*count])]),
            _ => Err(format!("odeint: the times must be a vector with at least one time, got {}", inputs[1])),
        }
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, TapeError> {
        let times = check_times(&inputs[1], self.at)?;
        let start = inputs[0].try_to_vec()?;
        if self.is_adjoint && !start.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite { at_what: "a gradient of the solution".into(), at: self.at }.into());
        }
        let shape = inputs[0].shape().clone();
        let rows = shape.replaced(0..0, &[times.len()]);
        let mut field = Field { f: &*self.f, args: &inputs[2..], shape, evaluations: 0, at: self.at };
        let (values, _) = integrate(&self.settings, &mut field, &start, &times)?;
        Ok(vec![Tensor::try_from_vec(values, &rows)?])
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (states, times, args) = (call.outputs[0], call.inputs[1], &call.inputs[2..]);
        // The adjoint is proportional to the gradient, whose size is arbitrary. For a small gradient, the absolute tolerance of the solver
        // would be too coarse, so the gradient is scaled first.
        let (g, scale) = normalize_by_max(gradients[0]);
        let (count, size) = (times.numel(), call.inputs[0].numel());
        let tape = times.tape();
        let sizes: Vec<usize> = args.iter().map(|arg| arg.numel()).collect();
        let total: usize = sizes.iter().sum();
        let backward = adjoint(&self.f, call.inputs[0].shape(), args.iter().map(|arg| arg.shape()).collect());
        let row = |of: Var<'t, T>, i: usize| of.select(0, i).reshape([size]);
        let mut a = row(g, count - 1);
        let mut by_args = tape.constant(0.0).expand([total]);
        let slope = |i: usize| (self.f)(times.select(0, i), states.select(0, i), args).reshape([size]);
        let (mut by_times, mut before) = (vec![None; count], None);
        for i in (1..count).rev() {
            by_times[i] = Some((slope(i) * row(g, i)).sum(..));
            let start = cat(&[row(states, i), a, by_args], 0);
            let interval = stack(&[times.select(0, i), times.select(0, i - 1)], 0);
            let inputs: Vec<Var<'t, T>> = [start, interval].into_iter().chain(args.iter().copied()).collect();
            let problem = Problem { settings: self.settings, f: Rc::clone(&backward), is_adjoint: true, at: self.at };
            let recorded = tape.record_function(problem, &inputs, self.at);
            let Some(solved) = call.value_of(recorded) else { return vec![None; call.inputs.len()] };
            let end = solved[0].select(0, 1);
            let known = end.narrow(0, size, size);
            before = Some(known);
            a = known + row(g, i - 1);
            by_args = end.narrow(0, 2 * size, total);
        }
        // The first state does not depend on the first time, but the other states move along the solution if this time changes.
        by_times[0] = Some(before.map_or_else(|| tape.constant(0.0), |a| -(a * slope(0)).sum(..)));
        let by_times: Vec<Var<'t, T>> = by_times.into_iter().flatten().collect();
        let mut results = vec![Some(a.reshape(call.inputs[0].shape())), Some(stack(&by_times, 0))];
        let mut start = 0;
        for (arg, &size) in args.iter().zip(&sizes) {
            results.push(Some(by_args.narrow(0, start, size).reshape(arg.shape())));
            start += size;
        }
        results.into_iter().map(|result| result.map(|result| result * scale)).collect()
    }
}

/// Returns the right-hand side of the backward problem. The state of this problem is one vector, which joins the state y, the adjoint a and
/// the gradients of the arguments.
fn adjoint<T: Float>(f: &SharedDynamics<T>, shape: Shape, arg_shapes: Vec<Shape>) -> SharedDynamics<T> {
    let (f, size) = (Rc::clone(f), shape.numel());
    let sizes: Vec<usize> = arg_shapes.iter().map(|shape| shape.numel()).collect();
    Rc::new(move |t, joint, args| {
        let (y, a) = (joint.narrow(0, 0, size).reshape(&shape), joint.narrow(0, size, size).reshape(&shape));
        let slope = f(t, y, args);
        // `grad` differentiates with respect to new variables, so the state counts as independent of the arguments.
        let inputs: Vec<_> = std::iter::once(y).chain(args.iter().copied()).collect();
        let gradients = grad(|inputs: Vec<_>| (f(t, inputs[0], &inputs[1..]) * a).sum(..), inputs);
        let mut parts = vec![slope.reshape([size])];
        parts.extend(
            gradients.iter().zip(std::iter::once(&size).chain(&sizes)).map(|(part, &size)| -part.reshape([size])),
        );
        cat(&parts, 0)
    })
}
