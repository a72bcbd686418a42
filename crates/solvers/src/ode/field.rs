//! The right-hand side of a differential equation, evaluated at numbers.

use wengert_autograd::transforms::{try_infer, try_jacobian};
use wengert_autograd::{Tape, Var};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::{Result, argument_error};
use crate::evaluate::check_shape;

/// A function of the time, the state and the arguments, which returns the slope of the state.
pub(super) type Dynamics<'f, T> = dyn for<'t> Fn(Var<'t, T>, Var<'t, T>, &[Var<'t, T>]) -> Var<'t, T> + 'f;

/// The right-hand side of a differential equation with fixed arguments.
pub(super) struct Field<'f, T: Float> {
    pub(super) f: &'f Dynamics<'f, T>,
    pub(super) args: &'f [Tensor<T>],
    /// The shape of the state.
    pub(super) shape: Shape,
    /// The number of evaluations of the slope so far.
    pub(super) evaluations: usize,
    pub(super) at: Site,
}

impl<T: Float> Field<'_, T> {
    /// Writes the slope of the state `y` at time `t` to `slope`.
    pub(super) fn slope(&mut self, t: f64, y: &[T], slope: &mut Vec<T>) -> Result<()> {
        self.evaluations += 1;
        // The time is a tensor and not a number, because programs share an execution plan only if their numbers are equal.
        let time = Tensor::scalar(T::from_f64(t));
        let state = Tensor::try_from_vec(y.to_vec(), &self.shape)?;
        let value = try_infer(
            |y| {
                let tape = y.tape();
                let args: Vec<Var<'_, T>> = self.args.iter().map(|arg| tape.constant(arg)).collect();
                (self.f)(tape.constant(&time), y, &args)
            },
            &state,
        )?;
        check_shape("the slope", value.shape(), &self.shape, self.at)?;
        slope.clear();
        match value.as_slice() {
            Some(elements) => slope.extend_from_slice(elements),
            None => slope.extend(value.iter()),
        }
        Ok(())
    }

    /// Returns the Jacobian `[n, n]` of the slope with respect to the state, and the derivative `[n]` of the slope with respect to the time.
    pub(super) fn jacobians(&self, t: f64, y: &[T]) -> Result<(Vec<f64>, Vec<f64>)> {
        let (time, state) = (Tensor::scalar(T::from_f64(t)), Tensor::try_from_vec(y.to_vec(), &self.shape)?);
        let n = y.len();
        let tape = Tape::new();
        let args: Vec<Var<'_, T>> = self.args.iter().map(|arg| tape.constant(arg)).collect();
        let [by_state, by_time] = try_jacobian(|[y, t]| (self.f)(t, y, &args), [tape.var(&state), tape.var(&time)])?;
        if by_time.numel() != n || by_state.numel() != n * n {
            return Err(argument_error("odeint: the slope must have the state's shape", self.at));
        }
        let [by_state, by_time] = tape.try_values([by_state.try_reshape([n, n])?, by_time.try_reshape([n])?])?;
        Ok((by_state.iter().map(T::to_f64).collect(), by_time.iter().map(T::to_f64).collect()))
    }
}
