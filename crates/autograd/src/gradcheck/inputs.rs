//! The inputs of a gradient check: one tensor, an array or a list.

use wengert_tensor::{Float, Tensor};

use crate::Var;
use crate::transforms::{Inputs, MappedFunction};

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
pub trait CheckInputs: Inputs {
    /// Returns the tensors, in their order.
    #[doc(hidden)]
    fn tensors(&self) -> Vec<&Tensor<Self::Elem>>;

    /// Returns the result of `f` for `vars`, which has one variable for each tensor. `f` gets one variable, an array or a list, like the
    /// inputs.
    #[doc(hidden)]
    fn call<'t, F: MappedFunction<'t, Self>>(&self, f: &F, vars: &[Var<'t, Self::Elem>]) -> Var<'t, Self::Elem>;
}

/// Implements [`CheckInputs`] for types of inputs. `$tensors` is an expression that lists the tensors of the inputs `$value`.
macro_rules! inputs {
    ($([$($generics:tt)*] $inputs:ty, |$value:ident| $tensors:expr;)*) => {$(
        impl<T: Float, $($generics)*> CheckInputs for $inputs {
            fn tensors(&self) -> Vec<&Tensor<T>> {
                let $value = self;
                $tensors
            }

            fn call<'t, F: MappedFunction<'t, Self>>(&self, f: &F, vars: &[Var<'t, T>]) -> Var<'t, T> {
                f(Self::arrange(&self.keys_of_inputs(), vars.to_vec()))
            }
        }
    )*};
}

inputs! {
    [] &Tensor<T>, |input| vec![input];
    [const N: usize] [&Tensor<T>; N], |inputs| inputs.to_vec();
    [] &[Tensor<T>], |inputs| inputs.iter().collect();
    [] &Vec<Tensor<T>>, |inputs| inputs.iter().collect();
    [] Vec<&Tensor<T>>, |inputs| inputs.clone();
}
