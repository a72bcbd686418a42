//! Derivatives of functions of tensors, returned as tensors. The tape is created and dropped inside.
//!
//! | here | JAX | `torch.func` | how |
//! |---|---|---|---|
//! | [`infer`] | a call | a call | one evaluation |
//! | [`grad`] | `jax.grad` | `grad` | one `vjp` |
//! | [`value_and_grad`] | `jax.value_and_grad` | `grad_and_value` | one `vjp` |
//! | [`vmap`], [`Vmap`] | `jax.vmap` | `vmap` | the function recorded for one example, then for all |
//! | [`jacobian`], [`jacobians`] | `jax.jacrev`, `jax.jacfwd` | `jacrev`, `jacfwd` | `vmap` of one `vjp`, or `jvp` if inputs are fewer |
//! | [`hvp`], [`hvps`] | `jvp` of `grad` | `jvp` of `grad` | one `vjp`, one `jvp` of it |
//! | [`hessian`], [`hessians`] | `jax.hessian` | `hessian` | one `vjp`, `vmap` of one `jvp` of it |
//!
//! Each call records the function once, on its own tape, and evaluates all results together. A function of several inputs takes an array of
//! variables, so that its closure can name them: `|[x, w]| …`. Tensors that it captures are constants. If a closure is stored in a variable
//! before the call, wrap it in [`objective`].
//!
//! For other combinations, record on a [`Tape`] and use [`vjp`](Tape::vjp), [`jvp`](Tape::jvp) and [`Vmap::record`].

mod jacobians;
mod vmap;

pub use vmap::{Vmap, try_vmap, vmap};

use wengert_macros::twins;
use wengert_tensor::ops::{Splitting as _, try_cat};
use wengert_tensor::plan::Index;
use wengert_tensor::{Float, Site, Tensor};

use crate::{Error, Tape, Var};

/// Returns the value of a function of variables at `input`, such as a model's prediction. Layers are in evaluation mode: dropout drops nothing.
/// PyTorch: a call under `torch.inference_mode()` after `model.eval()`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::infer};
///
/// let w = Parameter::new(Tensor::from([[1.0f32], [10.0]]));
/// let y = infer(|x| x.matmul(&x.tape().parameter(&w)), &Tensor::from([[1.0, 2.0]]));
/// assert_eq!(y.to_vec(), [21.0]);
/// ```
///
/// # Errors
///
/// If there is not enough memory, or a custom operation fails.
#[twins]
pub fn try_infer<T: Float>(
    f: impl for<'t> FnOnce(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("infer");
    let tape = Tape::new();
    let result = f(tape.constant(input)).index;
    Ok(tape.last_values(&[result], at)?.swap_remove(0))
}

/// Applies [`infer`] to `size` rows of dimension 0 at a time, and joins the results along dimension 0. The memory for intermediate values
/// is the same for any number of rows.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::infer_in_batches};
///
/// let x = Tensor::<f32>::arange(10).reshape([5, 2]);
/// assert_eq!(infer_in_batches(|x| x.square(), &x, 2), x.square());
/// ```
///
/// # Errors
///
/// As for [`infer`], if `size` is 0, or `input` has no dimensions.
#[twins]
pub fn try_infer_in_batches<T: Float>(
    f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
    size: usize,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("infer_in_batches");
    let mut results = Vec::new();
    for batch in input.try_split(size, 0)? {
        let tape = Tape::new();
        let result = f(tape.constant(&batch)).index;
        results.push(tape.last_values(&[result], at)?.swap_remove(0));
    }
    Ok(try_cat(&results, 0)?)
}

/// Returns the function unchanged. Wrap a closure in it that is stored before it is passed to [`grad`]. The signature gives the closure the
/// lifetimes that the compiler infers only for a closure written in the call.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::{grad, objective}};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([10.0, 100.0]));
/// let f = objective(|[x, w]| (x * w).sum(..));
/// let [dx, dw] = grad(f, [&x, &w]);
/// assert_eq!((dx, dw), (w, x));
/// ```
pub fn objective<T: Float, const N: usize, F>(f: F) -> F
where
    F: for<'t> Fn([Var<'t, T>; N]) -> Var<'t, T>,
{
    f
}

/// Returns a function of one variable unchanged. Wrap a closure in it that is stored before it is passed on: see [`objective`].
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::{hessian, hvp, objective_of_one}};
///
/// let f = objective_of_one(|x| x.pow(3.0).sum(..));
/// let x = Tensor::from([1.0, 2.0]);
/// assert_eq!(hessian(f, &x), Tensor::from([[6.0, 0.0], [0.0, 12.0]]));
/// assert_eq!(hvp(f, &x, &Tensor::ones([2])).to_vec(), [6.0, 12.0]);
/// ```
pub fn objective_of_one<T: Float, F>(f: F) -> F
where
    F: for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
{
    f
}

/// Returns the gradients of a function whose result is one number, with respect to each input, in the inputs' shapes. A gradient is zeros
/// if the function does not depend on the input. JAX: `jax.grad`; PyTorch: `torch.func.grad`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::grad};
///
/// let (x, w) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([10.0, 100.0]));
/// let [dx, dw] = grad(|[x, w]| (x * w).sum(..), [&x, &w]);
/// assert_eq!(dx, Tensor::from([[10.0, 100.0], [10.0, 100.0]]));
/// assert_eq!(dw, Tensor::from([4.0, 6.0]));
/// ```
///
/// # Errors
///
/// If the function's result is not one number, or an operation in it has no derivative.
#[twins]
pub fn try_grad<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
) -> Result<[Tensor<T>; N], Error> {
    value_and_gradients(f, inputs, false, Site::here("grad")).map(|(_, gradients)| gradients)
}

/// Returns the value of a function, which must be one number, and its gradients as in [`grad`], from one evaluation. JAX:
/// `jax.value_and_grad`; PyTorch: `torch.func.grad_and_value`, in the other order.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::value_and_grad};
///
/// let (value, [dx]) = value_and_grad(|[x]| x.square().sum(..), [&Tensor::from([3.0, 4.0])]);
/// assert_eq!((value, dx.to_vec()), (25.0, vec![6.0, 8.0]));
/// ```
///
/// # Errors
///
/// If the function's result is not one number, or an operation in it has no derivative.
#[twins]
pub fn try_value_and_grad<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
) -> Result<(T, [Tensor<T>; N]), Error> {
    value_and_gradients(f, inputs, true, Site::here("value_and_grad")).map(|(value, gradients)| match value {
        Some(value) => (value, gradients),
        None => unreachable!("the value was asked for"),
    })
}

/// Returns all first derivatives of a function at `input`. For an input of shape `[d…]` and a result of shape `[e…]` they are a tensor
/// of shape `[e…, d…]`: element `(i, j)` is ∂ output `i` / ∂ input `j`. It is zero if the output does not depend on the input. JAX:
/// `jax.jacrev`, `jax.jacfwd`; PyTorch: `torch.func.jacrev`, `jacfwd`.
///
/// Forward mode is used if there are at least as many outputs as inputs, otherwise reverse mode. One derivative is batched over all
/// directions as by [`vmap`]. The result has as many elements as the product of the two element counts. The computation needs memory for
/// every intermediate value times the number of directions.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::jacobian};
///
/// let matrix = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// let x = Tensor::from([0.5, -1.0, 2.0]);
/// // The Jacobian of a linear map is its matrix.
/// assert_eq!(jacobian(|x| (x * &matrix).sum(1), &x), matrix);
/// ```
///
/// # Errors
///
/// If an operation in the function has no derivative, or there is not enough memory for the result.
#[twins]
pub fn try_jacobian<T: Float>(
    f: impl for<'t> FnOnce(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
) -> Result<Tensor<T>, Error> {
    let [jacobian] = jacobians_at(|[x]| f(x), [input], Site::here("jacobian"))?;
    Ok(jacobian)
}

/// Returns the [`jacobian`] of a function of several inputs with respect to each input.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::jacobians};
///
/// let (x, y) = (Tensor::from([2.0, 3.0]), Tensor::scalar(10.0));
/// let [by_x, by_y] = jacobians(|[x, y]| x * y, [&x, &y]);
/// assert_eq!(by_x, Tensor::from([[10.0, 0.0], [0.0, 10.0]]));
/// assert_eq!(by_y, x);
/// ```
///
/// # Errors
///
/// As for [`jacobian`].
#[twins]
pub fn try_jacobians<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
) -> Result<[Tensor<T>; N], Error> {
    jacobians_at(f, inputs, Site::here("jacobians"))
}

/// Returns the second derivatives of a function whose result is one number, for all pairs of elements. They have the shape `[d…, d…]`
/// for an input `[d…]`, and are symmetric if the function is smooth. JAX: `jax.hessian`; PyTorch: `torch.func.hessian`.
///
/// It is computed by forward over reverse mode, as in JAX and PyTorch. For products with vectors see [`hvp`], which needs no `[d…, d…]`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::hessian};
///
/// // f = x² y: second derivatives 2y, 2x; 2x, 0.
/// let point = Tensor::from([3.0, 5.0]);
/// let h = hessian(|p| p.select(0, 0).square() * p.select(0, 1), &point);
/// assert_eq!(h, Tensor::from([[10.0, 6.0], [6.0, 0.0]]));
/// ```
///
/// # Errors
///
/// If the function's result is not one number, or an operation in it has no second derivative.
#[twins]
pub fn try_hessian<T: Float>(
    f: impl for<'t> FnOnce(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
) -> Result<Tensor<T>, Error> {
    let [[hessian]] = hessians_at(|[x]| f(x), [input], Site::here("hessian"))?;
    Ok(hessian)
}

/// Returns the [`hessian`] of a function of several inputs. The shape of block `[i][j]` is the shape of input i followed by the shape of
/// input j.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::hessians};
///
/// let (x, y) = (Tensor::scalar(3.0), Tensor::scalar(5.0));
/// let [[xx, xy], [_, yy]] = hessians(|[x, y]| x.square() * y, [&x, &y]);
/// assert_eq!((xx.item(), xy.item(), yy.item()), (10.0, 6.0, 0.0));
/// ```
///
/// # Errors
///
/// As for [`hessian`].
#[twins]
pub fn try_hessians<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
) -> Result<[[Tensor<T>; N]; N], Error> {
    hessians_at(f, inputs, Site::here("hessians"))
}

/// Returns the Hessian times `v` without computing the Hessian. The function's result must be one number, and `v` is a direction of the
/// shape of the input. The product is the change of the gradient as the input moves along `v`. It costs a few evaluations of the function
/// for any size of the input. JAX: `jax.jvp(jax.grad(f), (x,), (v,))[1]`; PyTorch: `torch.func.jvp(torch.func.grad(f), (x,), (v,))[1]`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::hvp};
///
/// // f = Σ x³: the Hessian is diagonal, 6x.
/// let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 0.5]));
/// assert_eq!(hvp(|x| x.pow(3.0).sum(..), &x, &v).to_vec(), [6.0, 6.0]);
/// ```
///
/// # Errors
///
/// If the function's result is not one number, the shapes of input and direction differ, or an operation in the function has no
/// second derivative.
#[twins]
pub fn try_hvp<T: Float>(
    f: impl for<'t> FnOnce(Var<'t, T>) -> Var<'t, T>,
    input: &Tensor<T>,
    v: &Tensor<T>,
) -> Result<Tensor<T>, Error> {
    let [product] = hvps_at(|[x]| f(x), [input], [v], Site::here("hvp"))?;
    Ok(product)
}

/// Returns the [`hvp`] of a function of several inputs, each with its direction.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::hvps};
///
/// // f = x y: the gradient (y, x) changes by the other direction.
/// let (x, y) = (Tensor::scalar(3.0), Tensor::scalar(5.0));
/// let [dx, dy] = hvps(|[x, y]| x * y, [&x, &y], [&Tensor::scalar(1.0), &Tensor::scalar(10.0)]);
/// assert_eq!((dx.item(), dy.item()), (10.0, 1.0));
/// ```
///
/// # Errors
///
/// As for [`hvp`].
#[twins]
pub fn try_hvps<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
    v: [&Tensor<T>; N],
) -> Result<[Tensor<T>; N], Error> {
    hvps_at(f, inputs, v, Site::here("hvps"))
}

fn jacobians_at<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
    at: Site,
) -> Result<[Tensor<T>; N], Error> {
    let tape = Tape::new();
    let vars = inputs.map(|input| tape.leaf_at(input, at));
    Ok(array(tape.jacobians_of(f(vars), &vars, at)?))
}

fn hessians_at<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
    at: Site,
) -> Result<[[Tensor<T>; N]; N], Error> {
    let tape = Tape::new();
    let vars = inputs.map(|input| tape.leaf_at(input, at));
    let blocks = tape.hessians_of(f(vars), &vars, at)?;
    Ok(array(blocks.into_iter().map(array).collect()))
}

fn hvps_at<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
    v: [&Tensor<T>; N],
    at: Site,
) -> Result<[Tensor<T>; N], Error> {
    let tape = Tape::new();
    let vars = inputs.map(|input| tape.leaf_at(input, at));
    let gradients = tape.gradients_of(f(vars), &vars, at)?;
    let tangents: Vec<_> = vars.into_iter().zip(v).map(|(x, v)| (x, tape.constant(v))).collect();
    let products = tape.forward(&gradients, &tangents, at)?;
    let roots: Vec<Index> = products.iter().map(|product| product.index).collect();
    Ok(array(tape.last_values(&roots, at)?))
}

/// Converts a list of `N` elements to an array.
fn array<V, const N: usize>(values: Vec<V>) -> [V; N] {
    let mut values = values.into_iter();
    std::array::from_fn(|_| values.next().unwrap_or_else(|| unreachable!("one for each input")))
}

fn value_and_gradients<T: Float, const N: usize>(
    f: impl for<'t> FnOnce([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
    with_value: bool,
    at: Site,
) -> Result<(Option<T>, [Tensor<T>; N]), Error> {
    let tape = Tape::new();
    let vars = inputs.map(|input| tape.leaf_at(input, at));
    let y = f(vars);
    let mut roots: Vec<Index> = tape.gradients_of(y, &vars, at)?.iter().map(|gradient| gradient.index).collect();
    // The value of the function is computed only if it was requested.
    roots.extend(with_value.then_some(y.index));
    let mut values = tape.last_values(&roots, at)?;
    let value = if with_value { values.pop().map(|value| value.try_item()).transpose()? } else { None };
    Ok((value, array(values)))
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Shape;
    use wengert_tensor::prelude::*;

    use super::*;

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
        // The derivative of softmax is ∂sᵢ/∂xⱼ = sᵢ (δᵢⱼ - sⱼ).
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
}
