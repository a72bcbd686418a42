//! Functions of tensors: their values, their derivatives, and their results for batches. Each transform of tensors creates and drops the
//! tape itself.
//!
//! | here | JAX | `torch.func` | how |
//! |---|---|---|---|
//! | [`infer`] | a call | a call | one evaluation |
//! | [`grad`] | `jax.grad` | `grad` | one `vjp` |
//! | [`value_and_grad`] | `jax.value_and_grad` | `grad_and_value` | one `vjp` |
//! | [`vmap`], [`Vmap`] | `jax.vmap` | `vmap` | the function recorded for one example, then for all |
//! | [`jacobian`] | `jax.jacrev`, `jax.jacfwd` | `jacrev`, `jacfwd` | `vmap` of one `vjp`, or of one `jvp` per small input |
//! | [`jvp`] | `jax.jvp` | `jvp` | one `jvp` |
//! | [`hvp`] | `jvp` of `grad` | `jvp` of `grad` | one `vjp`, one `jvp` of it |
//! | [`hessian`] | `jax.hessian` | `hessian` | one `vjp`, `vmap` of one `jvp` of it |
//!
//! All transforms except `infer_in_batches` and [`Vmap`] take a function and its [`Inputs`]. The function's variables and the derivatives
//! have the form of the inputs. Only the results of `jvp`, `vmap` and `infer` have the form of the function's result. For example,
//! `grad(|x| …, &x)` returns one gradient, `grad(|[x, w]| …, [&x, &w])` returns two, and lists and the parameters of a model give a `Vec`.
//! Tensors that the function captures are constants. To keep a closure in a variable, make it with [`formula!`](crate::formula).
//!
//! Each call records the function on its own tape, and evaluates all results together. It calls the function once. But `infer_in_batches`
//! calls it for each batch, and `vmap` for each example if the function reads values that depend on the example. If the inputs are
//! variables, the function is recorded on their tape and the results are variables too, so transforms nest:
//!
//! ```
//! # mod wengert { pub use wengert_autograd as autograd; }
//! use wengert::autograd::{prelude::*, transforms::grad};
//!
//! let x = Tensor::from([1.0, 2.0]);
//! let second = grad(|x| grad(|x| x.pow(3.0).sum(..), x).sum(..), &x);
//! assert_eq!(second.to_vec(), [6.0, 12.0]); // 6x
//! ```
//!
//! [`ravel`] turns a structure of tensors into one vector, for a gradient or a Hessian with respect to all its elements.
//!
//! For other combinations, record on a [`Tape`] and use [`vjp`](Tape::vjp), [`jvp`](Tape::jvp) and [`Vmap::record`].

mod formula;
mod inputs;
mod jacobians;
mod ravel;
mod vmap;

#[doc(hidden)]
pub use formula::{of_array, of_one, of_three, of_two};
pub use inputs::{Inputs, MappedFunction, Objective};
pub use ravel::{Tree, TreeForm, TreeLayout, ravel, try_ravel};
pub use vmap::Vmap;

use inputs::Derive;
use wengert_macros::twins;
use wengert_tensor::ops::{TensorLike, join};
use wengert_tensor::{Float, Site, Tensor, View};

use crate::{Error, Tape, Var};

/// Returns the value of a function of variables at its [`Inputs`], such as a model's prediction. Layers are in evaluation mode: dropout drops
/// nothing. If the inputs are variables, their tape decides the mode. PyTorch: a call under `torch.inference_mode()` after `model.eval()`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::infer};
///
/// let w = Parameter::new(Tensor::from([[1.0f32], [10.0]]));
/// let y = infer(|x| x.matmul(&x.tape().parameter(&w)), &Tensor::from([[1.0, 2.0]]));
/// assert_eq!(y.to_vec(), [21.0]);
///
/// let (a, b) = (Tensor::from([3.0, 4.0]), Tensor::scalar(10.0));
/// assert_eq!(infer(|[a, b]| a * b, [&a, &b]).to_vec(), [30.0, 40.0]);
/// ```
///
/// # Errors
///
/// If the result belongs to another tape, there is not enough memory, a custom operation fails, or an operation refuses its operands'
/// values.
#[twins]
pub fn try_infer<I: Inputs, F: for<'s> Objective<'s, I>>(f: F, inputs: I) -> Result<I::Array, Error> {
    let derive: Derive<I::Elem> = |recorded, _| Ok(vec![recorded.output]);
    let mut results = inputs.derive(None, f, derive, Site::here("infer"))?;
    Ok(results.pop().unwrap_or_else(|| unreachable!("one result")))
}

/// Returns the value of `f` at `input`. Records `f` on a new tape.
fn evaluate_at<T: Float>(
    f: impl for<'t> FnOnce(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
    at: Site,
) -> Result<Tensor<T>, Error> {
    let tape = Tape::new();
    let result = {
        let result = f(tape.constant_at(input, at));
        tape.check_owns([result], at)?;
        result.index
    };
    Ok(tape.into_values(&[result], at)?.swap_remove(0))
}

/// Applies [`infer`] to `size` rows of dimension 0 at a time, and joins the results along dimension 0. The memory for intermediate values
/// is limited by `size`, whatever the number of rows.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::infer_in_batches};
///
/// let x = Tensor::<f32>::arange(10).reshape([5, 2]);
/// assert_eq!(infer_in_batches(|x| x.square(), &x, 2), x.square());
/// ```
///
/// # Errors
///
/// The errors of [`infer`]. Also if `size` is 0, or `input` or a result has no dimensions. Also if the results cannot be joined, because two
/// of them differ in another dimension than dimension 0.
#[twins]
pub fn try_infer_in_batches<T: Float>(
    f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
    size: usize,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("infer_in_batches");
    let refuse = |message: &str| Err(Error::Refused { message: message.to_owned(), at });
    let Some(&rows) = input.shape().first() else {
        return refuse("infer_in_batches: the input has no dimensions, so it has no rows");
    };
    if size == 0 {
        return refuse("infer_in_batches: the number of rows of a batch must be at least 1");
    }
    let mut results = Vec::new();
    // An input without rows is evaluated as one empty batch, which gives the shape of the result.
    for start in (0..rows.max(1)).step_by(size) {
        let batch = input.apply_view(View::Slice { axis: 0, start, len: size.min(rows - start), step: 1 }, at)?;
        results.push(evaluate_at(&f, &batch, at)?);
    }
    Ok(join(&results, 0, at)?)
}

/// Returns the gradients of a function whose result is one number, with respect to each of its [`Inputs`]. A gradient has the shape of its
/// input. If the function does not depend on an input, the gradient is zeros. JAX: `jax.grad`; PyTorch: `torch.func.grad`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::grad};
///
/// let (x, w) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([10.0, 100.0]));
/// assert_eq!(grad(|x| x.square().sum(..), &x), &x * 2.0);
///
/// let [dx, dw] = grad(|[x, w]| (x * w).sum(..), [&x, &w]);
/// assert_eq!(dx, Tensor::from([[10.0, 100.0], [10.0, 100.0]]));
/// assert_eq!(dw, Tensor::from([4.0, 6.0]));
/// ```
///
/// The inputs may be parameters, such as `model.parameters()`. A model that the function calls then uses the variables of these parameters:
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::grad};
///
/// let (weight, bias) = (Parameter::new(Tensor::from([2.0, 3.0])), Parameter::new(Tensor::scalar(1.0)));
/// let gradients = grad(|list| (list[0] * 5.0 + list[0].tape().parameter(&bias)).sum(..), vec![&weight, &bias]);
/// assert_eq!(gradients, [Tensor::from([5.0, 5.0]), Tensor::scalar(2.0)]);
/// ```
///
/// A map of tensors has a map of gradients:
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use std::collections::BTreeMap;
/// use wengert::autograd::{prelude::*, transforms::grad};
///
/// let parameters = BTreeMap::from([("w", Tensor::from([2.0, -1.0])), ("b", Tensor::scalar(0.5))]);
/// let gradients = grad(|p| p["w"].square().sum(..) * p["b"], &parameters);
/// assert_eq!(gradients["w"], Tensor::from([2.0, -1.0]));
/// assert_eq!(gradients["b"], Tensor::scalar(5.0));
/// ```
///
/// # Errors
///
/// If the function's result is not one number or belongs to another tape, or an operation in it has no derivative. Also if a derivative
/// rule returns an error, or the tape is full. Also returns the errors of [`value`](Var::value).
#[twins]
pub fn try_grad<I: Inputs, F: for<'s> Objective<'s, I>>(f: F, inputs: I) -> Result<I::Each<I::Array>, Error> {
    let at = Site::here("grad");
    let derive: Derive<I::Elem> =
        |recorded, at| recorded.output.tape.gradients_of(recorded.output, &recorded.inputs, at);
    let keys = inputs.keys_of_inputs();
    Ok(I::arrange(&keys, inputs.derive(None, f, derive, at)?))
}

/// Returns the value of a function and its gradients as in [`grad`], from one evaluation. The value must be one number. JAX:
/// `jax.value_and_grad`; PyTorch: `torch.func.grad_and_value`, which returns them in the other order.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::value_and_grad};
///
/// let (value, dx) = value_and_grad(|x| x.square().sum(..), &Tensor::from([3.0, 4.0]));
/// assert_eq!((value, dx.to_vec()), (25.0, vec![6.0, 8.0]));
/// ```
///
/// # Errors
///
/// If the function's result is not one number or belongs to another tape, or an operation in it has no derivative. Also if a derivative
/// rule returns an error, or the tape is full. Also returns the errors of [`value`](Var::value).
#[twins]
#[allow(clippy::type_complexity)]
pub fn try_value_and_grad<I: Inputs, F: for<'s> Objective<'s, I>>(
    f: F,
    inputs: I,
) -> Result<(I::Number, I::Each<I::Array>), Error> {
    let at = Site::here("value_and_grad");
    let derive: Derive<I::Elem> = |recorded, at| {
        let mut results = recorded.output.tape.gradients_of(recorded.output, &recorded.inputs, at)?;
        results.push(recorded.output);
        Ok(results)
    };
    let keys = inputs.keys_of_inputs();
    let mut results = inputs.derive(None, f, derive, at)?;
    let value = results.pop().unwrap_or_else(|| unreachable!("the last result is the value"));
    Ok((I::number(value)?, I::arrange(&keys, results)))
}

/// Returns all first derivatives of a function with respect to each of its [`Inputs`]. For an input of shape `[d…]` and a result of shape
/// `[e…]`, these are a tensor of shape `[e…, d…]`. Element `(i, j)` is the derivative of output `i` with respect to input element `j`. It
/// is zero if the output does not depend on the input. JAX: `jax.jacrev`, `jax.jacfwd`; PyTorch: `torch.func.jacrev`, `jacfwd`.
///
/// Forward mode is used for an input that has at most as many elements as the result, and reverse mode for other inputs. The derivative for
/// one direction is batched over all directions, as by [`vmap`]. The number of elements of a Jacobian is the number of elements of the
/// function's result, times the number of elements of the input. Every intermediate value needs memory once for each direction.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::jacobian};
///
/// let matrix = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// let x = Tensor::from([0.5, -1.0, 2.0]);
/// // The Jacobian of a linear map is its matrix.
/// assert_eq!(jacobian(|x| (x * &matrix).sum(1), &x), matrix);
///
/// let (x, y) = (Tensor::from([2.0, 3.0]), Tensor::scalar(10.0));
/// let [by_x, by_y] = jacobian(|[x, y]| x * y, [&x, &y]);
/// assert_eq!(by_x, Tensor::from([[10.0, 0.0], [0.0, 10.0]]));
/// assert_eq!(by_y, x);
/// ```
///
/// # Errors
///
/// If the function's result belongs to another tape, or an operation in the function has no derivative. Also if a derivative rule or a
/// batching rule returns an error, or the tape is full. Also returns the errors of [`value`](Var::value).
#[doc(alias("jacfwd", "jacrev"))]
#[twins]
pub fn try_jacobian<I: Inputs, F: for<'s> Objective<'s, I>>(f: F, inputs: I) -> Result<I::Each<I::Array>, Error> {
    let at = Site::here("jacobian");
    let derive: Derive<I::Elem> =
        |recorded, at| recorded.output.tape.record_jacobians(recorded.output, &recorded.inputs, at);
    let keys = inputs.keys_of_inputs();
    let jacobians = inputs.derive(None, f, derive, at)?.into_iter().map(I::into_contiguous);
    Ok(I::arrange(&keys, jacobians.collect::<Result<_, _>>()?))
}

/// Returns the second derivatives of a function whose result is one number, for all pairs of input elements. They have the shape `[d…, d…]`
/// for an input `[d…]`, and are symmetric if the function is smooth. With several [`Inputs`], block `[i][j]` has the shape of input i
/// followed by the shape of input j. JAX: `jax.hessian`; PyTorch: `torch.func.hessian`.
///
/// The Hessian is computed by forward over reverse mode, as in JAX and PyTorch. For products with vectors see [`hvp`], which does not store
/// the whole Hessian.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::hessian};
///
/// // f = x² y: second derivatives 2y, 2x; 2x, 0.
/// let point = Tensor::from([3.0, 5.0]);
/// let h = hessian(|p| p.select(0, 0).square() * p.select(0, 1), &point);
/// assert_eq!(h, Tensor::from([[10.0, 6.0], [6.0, 0.0]]));
///
/// let (x, y) = (Tensor::scalar(3.0), Tensor::scalar(5.0));
/// let [[xx, xy], [_, yy]] = hessian(|[x, y]| x.square() * y, [&x, &y]);
/// assert_eq!((xx.item(), xy.item(), yy.item()), (10.0, 6.0, 0.0));
/// ```
///
/// # Errors
///
/// If the function's result is not one number or belongs to another tape, or an operation in it has no first or second derivative. Also if a
/// derivative rule or a batching rule returns an error, or the tape is full. Also returns the errors of [`value`](Var::value).
#[twins]
#[allow(clippy::type_complexity)]
pub fn try_hessian<I: Inputs, F: for<'s> Objective<'s, I>>(
    f: F,
    inputs: I,
) -> Result<I::Each<I::Each<I::Array>>, Error> {
    let at = Site::here("hessian");
    let derive: Derive<I::Elem> =
        |recorded, at| recorded.output.tape.record_hessians(recorded.output, &recorded.inputs, at);
    let (count, keys) = (inputs.count(), inputs.keys_of_inputs());
    let mut blocks = inputs.derive(None, f, derive, at)?.into_iter().map(I::into_contiguous);
    let rows =
        (0..count).map(|_| Ok(I::arrange(&keys, blocks.by_ref().take(count).collect::<Result<Vec<_>, Error>>()?)));
    Ok(I::arrange(&keys, rows.collect::<Result<Vec<_>, Error>>()?))
}

/// Returns the value of a function, and its directional derivative as the [`Inputs`] move along the directions `v`. The inputs and the
/// directions have the same shapes, and so have the value and the derivative. Forward mode needs one evaluation for any size of the result.
/// The derivative is zeros if the function does not depend on the inputs. JAX: `jax.jvp`; PyTorch: `torch.func.jvp`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::jvp};
///
/// let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 0.5]));
/// let (value, slope) = jvp(|x| x.square(), &x, &v);
/// assert_eq!((value.to_vec(), slope.to_vec()), (vec![1.0, 4.0], vec![2.0, 2.0])); // 2x v
///
/// // The second derivative of x³ along v: a `jvp` of a `jvp`.
/// let (_, second) = jvp(|x| jvp(|x| x.pow(3.0), x, x.tape().constant(&v)).1, &x, &v);
/// assert_eq!(second.to_vec(), [6.0, 3.0]); // 6x v²
///
/// let (x, y) = (Tensor::scalar(3.0), Tensor::scalar(5.0));
/// let (_, slope) = jvp(|[x, y]| x * y, [&x, &y], [&Tensor::scalar(1.0), &Tensor::scalar(10.0)]);
/// assert_eq!(slope.item(), 35.0);
/// ```
///
/// # Errors
///
/// If the function's result belongs to another tape, an operation in it has no derivative, a derivative rule returns an error, or the tape
/// is full. If the shapes of an input and its direction differ, the lists of inputs and directions have different lengths, or their maps
/// have different keys. Also returns the errors of [`value`](Var::value).
#[twins]
pub fn try_jvp<I: Inputs, F: for<'s> Objective<'s, I>>(f: F, inputs: I, v: I) -> Result<(I::Array, I::Array), Error> {
    let at = Site::here("jvp");
    check_directions(&inputs, &v, at)?;
    let derive: Derive<I::Elem> = |recorded, at| {
        let tangents: Vec<_> = recorded.inputs.into_iter().zip(recorded.directions).collect();
        let mut results = recorded.output.tape.forward(&[recorded.output], &tangents, at)?;
        results.insert(0, recorded.output);
        Ok(results)
    };
    let mut results = inputs.derive(Some(v), f, derive, at)?.into_iter();
    let mut next = || results.next().unwrap_or_else(|| unreachable!("the value and its derivative"));
    Ok((next(), next()))
}

/// Returns the product of the Hessian and `v`, for a function whose result is one number. The [`Inputs`] and the directions `v` have the
/// same shapes. The product is the change of the gradient as the input moves along `v`. It costs a few evaluations of the function for any
/// size of the input. JAX: `jax.jvp(jax.grad(f), (x,), (v,))[1]`; PyTorch: `torch.func.jvp(torch.func.grad(f), (x,), (v,))[1]`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::hvp};
///
/// // f = Σ x³: the Hessian is diagonal, 6x.
/// let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 0.5]));
/// assert_eq!(hvp(|x| x.pow(3.0).sum(..), &x, &v).to_vec(), [6.0, 6.0]);
///
/// // f = x y: the gradient (y, x) changes by the other direction.
/// let (x, y) = (Tensor::scalar(3.0), Tensor::scalar(5.0));
/// let [dx, dy] = hvp(|[x, y]| x * y, [&x, &y], [&Tensor::scalar(1.0), &Tensor::scalar(10.0)]);
/// assert_eq!((dx.item(), dy.item()), (10.0, 1.0));
/// ```
///
/// # Errors
///
/// If the function's result is not one number or belongs to another tape, or an operation in it has no first or second derivative. If the
/// shapes of an input and its direction differ, the lists of inputs and directions have different lengths, or their maps have different
/// keys. Also if a derivative rule returns an error, or the tape is full. Also returns the errors of [`value`](Var::value).
#[twins]
pub fn try_hvp<I: Inputs, F: for<'s> Objective<'s, I>>(f: F, inputs: I, v: I) -> Result<I::Each<I::Array>, Error> {
    let at = Site::here("hvp");
    let keys = check_directions(&inputs, &v, at)?;
    let derive: Derive<I::Elem> = |recorded, at| {
        let gradients = recorded.output.tape.gradients_of(recorded.output, &recorded.inputs, at)?;
        let tangents: Vec<_> = recorded.inputs.into_iter().zip(recorded.directions).collect();
        recorded.output.tape.forward(&gradients, &tangents, at)
    };
    Ok(I::arrange(&keys, inputs.derive(Some(v), f, derive, at)?))
}

/// Returns the names of the inputs. Refuses directions that do not have the form of the inputs.
fn check_directions<I: Inputs>(inputs: &I, directions: &I, at: Site) -> Result<I::Keys, Error> {
    let (expected, got) = (inputs.count(), directions.count());
    if expected != got {
        let message = format!(
            "expected a direction for each of the {expected} inputs, got {got}\n  hint: the directions have the form of the \
             inputs: `&v` beside `&x`, `[&v, &w]` beside `[&x, &y]`"
        );
        return Err(Error::Refused { message, at });
    }
    let keys = inputs.keys_of_inputs();
    if keys != directions.keys_of_inputs() {
        let message =
            "the inputs and the directions have different keys\n  hint: give each input a direction with its key";
        return Err(Error::Refused { message: message.to_owned(), at });
    }
    Ok(keys)
}

/// Computes a function of one example for all examples of a batch. The examples lie along the first dimension of the inputs and the
/// results. `f` sees each of the [`Inputs`] without this dimension. [`Vmap`] has options for other dimensions, for inputs that are the same
/// for all examples, and for several results. JAX: `jax.vmap`; PyTorch: `torch.vmap`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::vmap};
///
/// let (x, y) = (Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), Tensor::from([[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]]));
/// // One product for each of the three pairs of vectors.
/// assert_eq!(vmap(|[x, y]| x.dot(y), [&x, &y]).to_vec(), [3.0, 4.0, 10.0]);
/// ```
///
/// # Errors
///
/// As for [`Vmap::call`].
#[twins]
pub fn try_vmap<I: Inputs, F: for<'s> MappedFunction<'s, I>>(f: F, inputs: I) -> Result<I::Array, Error> {
    inputs.map(f, Site::here("vmap"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wengert_tensor::Shape;
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::{Parameter, formula};

    /// Asserts that two tensors are equal up to 32 roundings of values of size `scale`.
    fn close(got: &Tensor<f64>, expected: &Tensor<f64>, scale: f64) {
        assert_eq!(got.shape(), expected.shape());
        for (x, y) in got.iter().zip(expected.iter()) {
            assert!((x - y).abs() <= 32.0 * f64::EPSILON * scale, "{x} against {y}");
        }
    }

    fn point() -> Tensor<f64> {
        Tensor::from([0.5, -1.25, 2.0, 0.75])
    }

    #[test]
    fn the_gradient_of_a_quadratic_form() {
        // For f = xᵀ A x / 2 + bᵀ x: ∇f = (A + Aᵀ) x / 2 + b and ∇²f = (A + Aᵀ) / 2 (Petersen and Pedersen, 2.4.2).
        let a = Tensor::from_fn([4, 4], |i| (3 * i[0] + i[1] * i[1]) as f64 - 4.0);
        let b = Tensor::from([1.0, -2.0, 0.5, 3.0]);
        let (x, v) = (point(), Tensor::from([1.0, 2.0, -1.0, 0.5]));
        let symmetric = (&a + &a.t()) * 0.5;
        let expected_value = (&x * &a.matmul(&x)).sum(..).item() * 0.5 + (&x * &b).sum(..).item();
        let quadratic = QuadraticForm { a: &a, b: &b };
        let (value, [gradient]) = value_and_grad(|[x]| quadratic.at(x), [&x]);
        assert!((value - expected_value).abs() <= 32.0 * f64::EPSILON * expected_value.abs());
        close(&gradient, &(&symmetric.matmul(&x) + &b), 30.0);
        assert_eq!(grad(|[x]| quadratic.at(x), [&x]), [gradient]);
        close(&hessian(|x| quadratic.at(x), &x), &symmetric, 10.0);
        close(&hvp(|x| quadratic.at(x), &x, &v), &symmetric.matmul(&v), 30.0);
    }

    struct QuadraticForm<'a> {
        a: &'a Tensor<f64>,
        b: &'a Tensor<f64>,
    }

    impl QuadraticForm<'_> {
        fn at<'t>(&self, x: Var<'t, f64>) -> Var<'t, f64> {
            (x * x.tape().constant(self.a).matmul(&x)).sum(..) * 0.5 + (x * self.b).sum(..)
        }
    }

    #[test]
    fn the_jacobian_of_softmax_in_both_modes() {
        // The derivative of s = softmax(x) is ∂sᵢ/∂xⱼ = sᵢ (δᵢⱼ - sⱼ), where δᵢⱼ is 1 for i = j and 0 otherwise.
        let x = point();
        let s = x.softmax(0);
        let expected = Tensor::from_fn([4, 4], |i| {
            let (row, column) = (s.get(&[i[0]]).unwrap(), s.get(&[i[1]]).unwrap());
            row * (f64::from(u8::from(i[0] == i[1])) - column)
        });
        close(&jacobian(|x| x.softmax(0), &x), &expected, 1.0);
        // With fewer outputs than inputs, reverse mode is used.
        let reverse = jacobian(|x| x.softmax(0).narrow(0, 0, 3), &x);
        close(&reverse, &expected.narrow(0, 0, 3), 1.0);
        // With twice as many outputs as inputs, forward mode is used.
        let forward = jacobian(|x| cat(&[x.softmax(0), x], 0), &x);
        close(&forward.narrow(0, 0, 4), &expected, 1.0);
        assert_eq!(forward.narrow(0, 4, 4), Tensor::eye(4));
    }

    #[test]
    fn the_derivative_along_a_direction_is_the_jacobian_times_the_direction() {
        let (x, v) = (point(), Tensor::from([1.0, 2.0, -1.0, 0.5]));
        let (value, slope) = jvp(|x| x.softmax(0), &x, &v);
        close(&value, &x.softmax(0), 1.0);
        close(&slope, &jacobian(|x| x.softmax(0), &x).matmul(&v), 4.0);
        assert_eq!(jvp(|x| x.detach(), &x, &v), (x.clone(), Tensor::zeros([4])));
        let error = try_jvp(|list| list[0].sum(..), vec![&x], vec![&x, &v]).unwrap_err().to_string();
        assert!(error.contains("expected a direction for each of the 1 inputs, got 2"), "{error}");
        assert!(try_jvp(|x| x.sum(..), &x, &Tensor::ones([3])).is_err());
        let named = |key| std::collections::BTreeMap::from([(key, x.clone())]);
        assert!(try_jvp(|map| map["x"].sum(..), &named("x"), &named("y")).is_err());
    }

    #[test]
    fn rows_and_columns_of_a_linear_map_stay_apart() {
        // A multiplication by the rows of the identity would spread the infinity (0 · ∞ = NaN), so it must not happen.
        let w = Tensor::from([[1.0, 2.0], [f64::INFINITY, 3.0], [4.0, 5.0]]);
        for tall in [w.clone(), w.t().contiguous()] {
            assert_eq!(jacobian(|x| x.matmul(&tall.t()), &Tensor::ones([tall.shape()[1]])), tall);
            assert_eq!(jacobian(|x| x.tape().constant(&tall).matmul(x), &Tensor::ones([tall.shape()[1]])), tall);
        }
    }

    #[test]
    fn jacobians_have_the_shapes_of_output_and_input() {
        let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let by_row = jacobian(|x| x.sum(1), &x);
        assert_eq!(by_row, Tensor::from([[[1.0, 1.0, 1.0], [0.0; 3]], [[0.0; 3], [1.0, 1.0, 1.0]]]));
        assert_eq!(jacobian(|x| x.sum(..), &x).shape(), &[2, 3]);
        assert_eq!(hessian(|x| x.exp().sum(..), &x).shape(), &[2, 3, 2, 3]);
        assert_eq!(jacobian(|x| x * x, &Tensor::scalar(3.0)).item(), 6.0);
        assert_eq!(jacobian(|x| x * x, &Tensor::<f64>::zeros([0])).shape(), &[0, 0]);
        assert_eq!(jacobian(|x| x.sum(..).unsqueeze(0), &Tensor::<f64>::zeros([0])).shape(), &[1, 0]);
    }

    #[test]
    fn unused_inputs_have_zeros() {
        let (x, y) = (point(), Tensor::from([[1.0, 2.0]]));
        let [dx, dy] = grad(|[x, _]| x.sum(..), [&x, &y]);
        assert_eq!((dx, dy), (Tensor::ones([4]), Tensor::zeros([1, 2])));
        assert_eq!(jacobian(|x| x.detach(), &x), Tensor::zeros([4, 4]));
        assert_eq!(hessian(|x| x.sum(..), &x), Tensor::zeros([4, 4]));
        assert_eq!(hvp(|x| x.sum(..), &x, &x), Tensor::zeros([4]));
    }

    #[test]
    fn errors_name_the_transform_and_the_line_that_called_it() {
        let x = point();
        let line = line!() + 1;
        let error = try_grad(|[x]| x.exp(), [&x]).unwrap_err();
        let Error::NotScalar { shape, at } = &error else { panic!("{error}") };
        assert_eq!((shape, at.operation, at.location.line()), (&Shape::from([4]), "grad", line));
        let line = line!() + 1;
        let error = try_hvp(|x| x.sum(..), &x, &Tensor::ones([3])).unwrap_err();
        let Error::SeedShape { expected, got, at, .. } = &error else { panic!("{error}") };
        assert_eq!((&expected[..], &got[..], at.operation, at.location.line()), (&[4][..], &[3][..], "hvp", line));
        for (name, error) in [
            ("jacobian", try_jacobian(|x| x.floor_divide(2.0), &x).unwrap_err()),
            ("hessian", try_hessian(|x| x.floor_divide(2.0).sum(..), &x).unwrap_err()),
        ] {
            let Error::NotDifferentiable { at, recorded, .. } = &error else { panic!("{error}") };
            assert_eq!((at.operation, at.location.file(), recorded.file()), (name, file!(), file!()));
        }
    }

    #[test]
    fn one_input_gives_one_result_and_a_list_gives_a_list() {
        let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([10.0, 100.0]));
        let product = formula!(|[x, w]| (x * w).sum(..));
        assert_eq!(grad(|x| x.square().sum(..), &x), &x * 2.0);
        assert_eq!(grad(product, [&x, &w]), [w.clone(), x.clone()]);
        let list = [x.clone(), w.clone()];
        assert_eq!(grad(|list| (list[0] * list[1]).sum(..), &list[..]), [w.clone(), x.clone()]);
        assert_eq!(grad(|list| (list[0] * list[1]).sum(..), &list.to_vec()), [w.clone(), x.clone()]);
        assert_eq!(hvp(product, [&x, &w], [&w, &x]), [x.clone(), w.clone()]);
        let [[xx, xw], _] = hessian(product, [&x, &w]);
        assert_eq!((xx, xw), (Tensor::zeros([2, 2]), Tensor::eye(2)));
        assert_eq!(vmap(|x| x.square(), &x), x.square());
        let error = try_hvp(|list| list[0].sum(..), vec![&x], vec![&x, &w]).unwrap_err().to_string();
        assert!(error.contains("a direction for each of the 1 inputs, got 2"), "{error}");
    }

    #[test]
    fn a_map_gives_a_map() {
        let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([10.0, 100.0]));
        let owned = BTreeMap::from([("x".to_owned(), x.clone()), ("w".to_owned(), w.clone())]);
        let gradients = grad(|map| (map["x"] * map["w"]).sum(..), &owned);
        assert_eq!(gradients, BTreeMap::from([("x".to_owned(), w.clone()), ("w".to_owned(), x.clone())]));

        // Tests maps of references, of parameters and of variables. Their entries are not given in the order of the keys.
        let map = BTreeMap::from([(2, &x), (1, &w)]);
        fn of<F: for<'t> Fn(BTreeMap<i32, Var<'t, f64>>) -> Var<'t, f64>>(f: F) -> F {
            f
        }
        let product = &of(|map| (map[&2].square() * map[&1]).sum(..));
        let (value, gradients) = value_and_grad(product, map.clone());
        assert_eq!((value, &gradients[&1]), (410.0, &x.square()));
        let blocks = hessian(product, map.clone());
        assert_eq!(blocks[&2][&1], Tensor::from([[2.0, 0.0], [0.0, 4.0]]));
        assert_eq!(blocks[&1][&1], Tensor::zeros([2, 2]));
        let along = hvp(product, map.clone(), BTreeMap::from([(1, &x), (2, &w)]));
        assert_eq!(along[&1], &x * &w * 2.0);
        assert_eq!(jacobian(|map| map[&1] * 3.0, map.clone())[&1], Tensor::eye(2) * 3.0);
        assert_eq!(vmap(|map| map[&1] + map[&2], map.clone()), &x + &w);
        let [p, q] = [&x, &w].map(|tensor| Parameter::new(tensor.clone()));
        assert_eq!(grad(product, BTreeMap::from([(2, &p), (1, &q)])), gradients);
        let tape = Tape::new();
        let variables = BTreeMap::from([(2, tape.var(&x)), (1, tape.var(&w))]);
        assert_eq!(grad(product, variables)[&1].value(), gradients[&1]);

        let error = try_hvp(product, map, BTreeMap::from([(2, &x), (3, &w)])).unwrap_err().to_string();
        assert!(error.contains("the inputs and the directions have different keys"), "{error}");
    }

    #[test]
    fn with_respect_to_parameters_that_the_function_uses() {
        let (w, mut b) = (Parameter::new(Tensor::from([2.0, 3.0])), Parameter::new(Tensor::scalar(1.0)));
        b.set_frozen(true);
        fn of<F: for<'t> Fn(Vec<Var<'t, f64>>) -> Var<'t, f64>>(f: F) -> F {
            f
        }
        let loss = of(|list| {
            let tape = list[0].tape();
            (tape.parameter(&w) * tape.parameter(&b)).square().sum(..)
        });
        let (value, gradients) = value_and_grad(&loss, vec![&w, &b]);
        assert_eq!((value, gradients), (13.0, vec![Tensor::from([4.0, 6.0]), Tensor::scalar(26.0)]));
        assert_eq!(hessian(&loss, vec![&w])[0][0], Tensor::from([[2.0, 0.0], [0.0, 2.0]]));
    }

    #[test]
    fn transforms_of_transforms() {
        let x = point();
        let cubed = formula!(|x| x.pow(3.0).sum(..));
        assert_eq!(grad(|x| grad(cubed, x).sum(..), &x), &x * 6.0);
        assert_eq!(hessian(|x| grad(cubed, x).sum(..), &x), Tensor::eye(4) * 6.0);
        assert_eq!(jacobian(|x| grad(cubed, x), &x), hessian(cubed, &x));
        assert_eq!(grad(|x| hvp(cubed, x, x.detach()).sum(..), &x), &x * 6.0);
        assert_eq!(grad(|x| hessian(cubed, x).sum(..), &x), Tensor::full([4], 6.0));
        let each = vmap(|x| grad(|x| x.square(), x), &x);
        assert_eq!(each, &x * 2.0);
    }

    /// Checks that a variable of the outer function is a constant in an inner derivative. This must hold even if both functions are called
    /// with the same variable (Siskind and Pearlmutter 2005).
    #[test]
    fn nested_derivatives_of_one_variable_are_not_confused() {
        let x = Tensor::scalar(1.0);
        // d/dx [x d/dy (x + y)] = 1, also where y takes the value of x.
        assert_eq!(grad(|x| x * grad(|y| x + y, x), &x).item(), 1.0);
        // d/dy (x y) = x at y = x.
        assert_eq!(grad(|x| grad(|y| x * y, x), &x).item(), 1.0);
    }

    #[test]
    fn inference_takes_every_form_of_inputs() {
        let (x, y) = (Tensor::from([1.0, 2.0]), Tensor::scalar(10.0));
        let expected = Tensor::from([10.0, 20.0]);
        assert_eq!(infer(|x| x * 10.0, &x), expected);
        assert_eq!(infer(|[x, y]| x * y, [&x, &y]), expected);
        let list = [x.clone(), y.clone()];
        assert_eq!(infer(|list| list[0] * list[1], &list[..]), expected);
        let (a, b) = (Parameter::new(x.clone()), Parameter::new(y.clone()));
        assert_eq!(infer(|list| list[0] * list[1].tape().parameter(&b), vec![&a, &b]), expected);
        let tape = Tape::new();
        let recorded = infer(|[x, y]| x * y, [tape.var(&x), tape.var(&y)]);
        assert_eq!(recorded.value(), expected);
        let other: &'static Tape<f64> = Box::leak(Box::new(Tape::new()));
        let list: [Tensor<f64>; 0] = [];
        assert!(matches!(try_infer(|_| other.var(&x), &list[..]), Err(Error::OtherTape { .. })));
    }

    #[test]
    fn inference_in_batches_equals_inference() {
        for (rows, size) in [(5, 2), (4, 2), (1, 7), (0, 3)] {
            let x = Tensor::<f64>::arange(2 * rows).reshape([rows, 2]);
            assert_eq!(infer_in_batches(|x| x.square().sum(1), &x, size), x.square().sum(1), "{rows} {size}");
        }
        for (input, size, text) in [(Tensor::ones([2]), 0, "at least 1"), (Tensor::scalar(1.0), 1, "no dimensions")] {
            let Err(Error::Refused { message, at }) = try_infer_in_batches(|x: Var<'_, f64>| x, &input, size) else {
                panic!("{size}");
            };
            assert_eq!((at.operation, at.location.file()), ("infer_in_batches", file!()));
            assert!(message.contains(text), "{message}");
        }
    }

    #[test]
    fn results_of_batches_that_do_not_fit_are_errors() {
        let x = Tensor::<f64>::arange(10).reshape([5, 2]);
        let sentence = |result: Result<Tensor<f64>, Error>| {
            let error = result.unwrap_err();
            let Error::Tensor(error) = &error else { panic!("{error}") };
            assert_eq!((error.site().operation, error.site().location.file()), ("infer_in_batches", file!()));
            error.sentence()
        };
        for size in [2, 5] {
            let text = sentence(try_infer_in_batches(|x| x.sum(..), &x, size));
            assert_eq!(text, "zero-dimensional tensor (at position 0) cannot be concatenated");
        }
        let text = sentence(try_infer_in_batches(|x| x.matmul(x.t()), &x, 2));
        let expected =
            "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 1 for tensor number 2";
        assert!(text.starts_with(expected), "{text}");
        let text = sentence(try_infer_in_batches(|x| if x.shape()[0] == 2 { x } else { x.unsqueeze(0) }, &x, 2));
        assert_eq!(text, "Tensors must have same number of dimensions: got 2 and 3");
    }
}
