//! A macro for closures that take variables of a tape and are kept in a `let`.

use wengert_tensor::Float;

use crate::Var;

/// Makes a closure over variables that can be kept in a `let` and passed on: `formula!(|x| …)`, `formula!(|x, y| …)` with up to three
/// variables, or `formula!(|[x, w]| …)` with an array of them.
///
/// A closure that is written in a call, as in `grad(|x| …, &x)`, needs no macro: the compiler reads its lifetimes from the call. For a
/// closure in a `let`, the compiler infers one lifetime for each variable. The error is then "lifetime may not live long enough" or "type
/// annotations needed". A function does the same as this macro: `fn f<'t>(x: Var<'t, f64>) -> Var<'t, f64>`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::{grad, hessian}};
///
/// let f = formula!(|x| x.pow(3.0).sum(..));
/// let x = Tensor::from([1.0, 2.0]);
/// assert_eq!(grad(f, &x).to_vec(), [3.0, 12.0]);
/// assert_eq!(hessian(f, &x), Tensor::from([[6.0, 0.0], [0.0, 12.0]]));
///
/// let product = formula!(|[x, w]| (x * w).sum(..));
/// let [dx, dw] = grad(product, [&x, &Tensor::from([10.0, 100.0])]);
/// assert_eq!((dx.to_vec(), dw), (vec![10.0, 100.0], x));
///
/// let distance = formula!(|x, y| (x - y).square().sum(..));
/// let tape = Tape::<f64>::new();
/// let (a, b) = (tape.var(&Tensor::from([1.0, 2.0])), tape.var(&Tensor::from([4.0, 6.0])));
/// assert_eq!(distance(a, b).item(), 25.0);
/// // With `move`, the closure owns the values that it captures.
/// let offset = 1.0;
/// let moved = formula!(move |x, y, z| (x - y + z + offset).sum(..));
/// assert_eq!(moved(a, b, a).item(), -2.0);
/// ```
#[macro_export]
macro_rules! formula {
    // `$move` is the keyword `move`, if the closure has it.
    ($($move:ident)? |[$($x:pat_param),* $(,)?]| $body:expr) => {
        $crate::transforms::of_array($($move)? |[$($x),*]| $body)
    };
    ($($move:ident)? |$x:pat_param| $body:expr) => {
        $crate::transforms::of_one($($move)? |$x| $body)
    };
    ($($move:ident)? |$x:pat_param, $y:pat_param| $body:expr) => {
        $crate::transforms::of_two($($move)? |$x, $y| $body)
    };
    ($($move:ident)? |$x:pat_param, $y:pat_param, $z:pat_param| $body:expr) => {
        $crate::transforms::of_three($($move)? |$x, $y, $z| $body)
    };
}

/// Returns a function of one variable unchanged. The bound `for<'t>` makes the compiler infer that a closure accepts variables of any
/// lifetime.
pub fn of_one<T: Float, F>(f: F) -> F
where
    F: for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
{
    f
}

/// Returns a function of two variables unchanged, as [`of_one`] does.
pub fn of_two<T: Float, F>(f: F) -> F
where
    F: for<'t> Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
{
    f
}

/// Returns a function of three variables unchanged, as [`of_one`] does.
pub fn of_three<T: Float, F>(f: F) -> F
where
    F: for<'t> Fn(Var<'t, T>, Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
{
    f
}

/// Returns a function of an array of variables unchanged, as [`of_one`] does.
pub fn of_array<T: Float, const N: usize, F>(f: F) -> F
where
    F: for<'t> Fn([Var<'t, T>; N]) -> Var<'t, T>,
{
    f
}
