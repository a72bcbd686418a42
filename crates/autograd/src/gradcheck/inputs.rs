//! The inputs of a gradient check: one tensor, an array or a list.

use wengert_tensor::{Float, Tensor};

use crate::Var;

/// The inputs of [`gradcheck`](fn@crate::gradcheck). The checked function gets its variables in the same form.
///
/// | inputs | the function |
/// |---|---|
/// | `&x`, a tensor | `\|x\| …` |
/// | `[&x, &w]` | `\|[x, w]\| …` |
/// | `&tensors[..]`, `&vec`, a `Vec<&Tensor>` | `\|list\| …`, a `Vec` of variables |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a gradient check",
    label = "write `&x` for one tensor, `[&x, &y]` for several",
    note = "inputs are references to tensors of `f64` or `f32`: `&x`, `[&x, &y]`, `&list[..]`; integers are captured by the function",
    note = "the function gets its variables in the same form: `|x|`, `|[x, y]|`, `|list|`"
)]
pub trait CheckInputs: Sized {
    /// The element type of the inputs.
    type Elem: Float;
    /// The variables that the function gets.
    type Vars<'t>;
    /// The variable that the function returns.
    type Output<'t>;

    /// Returns the tensors, in their order.
    #[doc(hidden)]
    fn tensors(&self) -> Vec<&Tensor<Self::Elem>>;

    /// Returns the result of `f` for the variables in the form of the inputs. `vars` has one variable for each tensor.
    #[doc(hidden)]
    fn call<'t, F: CheckedFunction<'t, Self>>(f: &F, vars: &[Var<'t, Self::Elem>]) -> Var<'t, Self::Elem>;
}

/// A function of the variables of [`CheckInputs`]: a closure or a `fn`. To keep a closure in a variable, make it with
/// [`formula!`](crate::formula).
#[diagnostic::on_unimplemented(
    message = "this is no function of the variables of `{I}`",
    label = "its arguments must have the form of the inputs, and its result must be a variable",
    note = "`gradcheck(|x| .., &x)`, `gradcheck(|[x, y]| .., [&x, &y])`, `gradcheck(|list| .., &list[..])`",
    note = "a closure that is kept in a variable is written `let f = formula!(|x| ..);`"
)]
pub trait CheckedFunction<'t, I: CheckInputs>: Fn(I::Vars<'t>) -> I::Output<'t> {}

/// Implements the traits of this file for a form of inputs: the type of the inputs, the type of the variables, the tensors of `inputs`, and the
/// variables from the slice `vars`.
macro_rules! form {
    ($([$($generics:tt)*] $form:ty, $vars:ty, |$inputs:ident| $tensors:expr, |$slice:ident| $arranged:expr;)*) => {$(
        impl<T: Float, $($generics)*> CheckInputs for $form {
            type Elem = T;
            type Vars<'t> = $vars;
            type Output<'t> = Var<'t, T>;

            fn tensors(&self) -> Vec<&Tensor<T>> {
                let $inputs = self;
                $tensors
            }

            fn call<'t, F: CheckedFunction<'t, Self>>(f: &F, $slice: &[Var<'t, T>]) -> Var<'t, T> {
                f($arranged)
            }
        }

        impl<'t, T: Float, $($generics)* F: Fn($vars) -> Var<'t, T>> CheckedFunction<'t, $form> for F {}
    )*};
}

form! {
    [] &Tensor<T>, Var<'t, T>, |input| vec![input], |vars| vars[0];
    [const N: usize,] [&Tensor<T>; N], [Var<'t, T>; N], |inputs| inputs.to_vec(), |vars| std::array::from_fn(|i| vars[i]);
    [] &[Tensor<T>], Vec<Var<'t, T>>, |inputs| inputs.iter().collect(), |vars| vars.to_vec();
    [] &Vec<Tensor<T>>, Vec<Var<'t, T>>, |inputs| inputs.iter().collect(), |vars| vars.to_vec();
    [] Vec<&Tensor<T>>, Vec<Var<'t, T>>, |inputs| inputs.clone(), |vars| vars.to_vec();
}
