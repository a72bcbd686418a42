//! Evaluates functions of variables at tensors. Each evaluation has a tape of its own. Evaluations that record equal operations share an
//! execution plan.

use wengert_autograd::transforms::{try_infer, try_jacobian};
use wengert_autograd::{Tape, Var};
use wengert_tensor::ops::{Arithmetic as _, Reductions as _, Views as _};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::{Result, argument_error};

/// A function of one variable.
pub(crate) type Map<'f, T> = dyn for<'t> Fn(Var<'t, T>) -> Var<'t, T> + 'f;

/// A function of a variable and additional arguments, in the form in which recorded solvers store it.
pub(crate) type MapWith<T> = dyn for<'t> Fn(Var<'t, T>, &[Var<'t, T>]) -> Var<'t, T>;

/// Returns the value of `f` at `x`.
pub(crate) fn evaluate<T: Float>(f: &Map<'_, T>, x: &Tensor<T>) -> Result<Tensor<T>> {
    Ok(try_infer(f, x)?)
}

/// Returns the values of the variables that `record` returns for a variable with the value `x`.
pub(crate) fn evaluate_recorded<T: Float>(
    x: &Tensor<T>,
    record: impl for<'t> FnOnce(Var<'t, T>) -> Result<Vec<Var<'t, T>>>,
) -> Result<Vec<Tensor<T>>> {
    let tape = Tape::new();
    let results = record(tape.var(x))?;
    Ok(tape.try_values_slice(&results)?)
}

/// Returns the result of `f` at `x` as a vector `[m]`, and the Jacobian `[m, n]`, from one evaluation.
pub(crate) fn value_and_jacobian<T: Float>(f: &Map<'_, T>, x: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T>)> {
    let mut results = evaluate_recorded(x, |x| {
        let y = f(x);
        let (m, n) = (y.numel(), x.numel());
        let jacobian = try_jacobian(f, x)?;
        Ok(vec![y.try_reshape([m])?, jacobian.try_reshape([m, n])?])
    })?;
    let jacobian = results.swap_remove(1);
    Ok((results.swap_remove(0), jacobian))
}

/// Returns a function of one variable that calls `f` with constants in place of the arguments.
pub(crate) fn with_constants<'f, T: Float>(
    f: &'f MapWith<T>,
    args: &'f [Tensor<T>],
) -> impl for<'t> Fn(Var<'t, T>) -> Var<'t, T> + 'f {
    fn typed<T: Float, F: for<'t> Fn(Var<'t, T>) -> Var<'t, T>>(f: F) -> F {
        f
    }
    typed(move |x| {
        let args: Vec<Var<'_, T>> = args.iter().map(|arg| x.tape().constant(arg)).collect();
        f(x, &args)
    })
}

/// Returns the elements of a tensor as numbers.
pub(crate) fn to_f64_vec<T: Float>(x: &Tensor<T>) -> Vec<f64> {
    x.iter().map(T::to_f64).collect()
}

/// Returns a tensor with the elements `numbers`, rounded to the element type.
pub(crate) fn to_tensor<T: Float>(numbers: &[f64], shape: &Shape) -> Result<Tensor<T>> {
    Ok(Tensor::try_from_vec(numbers.iter().map(|&number| T::from_f64(number)).collect(), shape)?)
}

/// Rounds numbers to the nearest numbers of the type `T`.
pub(crate) fn round_to_type<T: Float>(numbers: &mut [f64]) {
    numbers.iter_mut().for_each(|number| *number = T::from_f64(*number).to_f64());
}

/// Returns the largest absolute value, or NaN if a number is NaN. Returns 0 for no numbers.
pub(crate) fn max_abs(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |max: f64, x| if x.is_nan() || x.abs() > max { x.abs() } else { max })
}

/// Returns the Euclidean norm. The numbers are divided by the largest magnitude, so that no square overflows, and the largest square is not
/// rounded to 0.
pub(crate) fn norm(numbers: &[f64]) -> f64 {
    let size = max_abs(numbers);
    if size == 0.0 || !size.is_finite() {
        return size;
    }
    size * numbers.iter().map(|x| (x / size).powi(2)).sum::<f64>().sqrt()
}

/// Returns the dot product of `x` and `y`.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Returns an error unless the result of a function has the shape that a solver needs. `what` names the result.
pub(crate) fn check_shape(what: &str, got: &Shape, expected: &Shape, at: Site) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(argument_error(format!("{what} must have the shape {expected}, got {got}"), at))
}

/// Returns `g` divided by its largest magnitude, and this magnitude, which counts as a constant. If all elements are 0, the magnitude is
/// replaced by 1. The product of both results has the value and the derivatives of `g`.
pub(crate) fn normalize_by_max<'t, T: Float>(g: Var<'t, T>) -> (Var<'t, T>, Var<'t, T>) {
    if g.numel() == 0 {
        return (g, g.tape().constant(1.0));
    }
    let size = g.detach().abs().amax(..);
    let size = size + size.eq(0.0);
    (g / size, size)
}
