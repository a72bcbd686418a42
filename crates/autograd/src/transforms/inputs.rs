//! The inputs of a transform: tensors, parameters or variables, as a single input, an array, a list or a map.

use std::collections::BTreeMap;

use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Site, Tensor};

use super::vmap::{Vmap, array};
use crate::error::or_raise;
use crate::{Error, Parameter, Tape, Var};

/// The inputs of a transform such as [`grad`](super::grad). The transformed function gets its variables in the form of the inputs, and
/// gradients have this form too.
///
/// | inputs | the function | the gradient |
/// |---|---|---|
/// | `&x`, a tensor | `\|x\| …` | `Tensor` |
/// | `[&x, &w]` | `\|[x, w]\| …` | `[Tensor; 2]` |
/// | `&tensors[..]`, `&vec`, a `Vec<&Tensor>` | `\|list\| …`, a `Vec` of variables | `Vec<Tensor>` |
/// | `model.parameters()`, a `Vec<&Parameter>` | the same | `Vec<Tensor>` |
/// | `&p`, `[&p, &q]`, parameters | as for tensors | `Tensor`, `[Tensor; 2]` |
/// | `&map`, a `BTreeMap<K, Tensor>`; a `BTreeMap<K, &Tensor>` or `<K, &Parameter>` | `\|map\| …`, a map of variables with the same keys | `BTreeMap<K, Tensor>` |
/// | `x`, `[x, w]`, a `Vec` or a `BTreeMap` of variables | the same forms | variables on the same tape |
///
/// With variables, a transform is part of a larger program, so transforms nest. Each parameter becomes a variable on the function's tape,
/// and a model that the function calls uses this variable. A frozen parameter that is an input is differentiated like the others.
/// [`ravel`](super::ravel()) makes one input of a tuple, or of nested lists and maps of tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of a derivative",
    label = "write `&x` for one tensor, `[&x, &y]` for several",
    note = "inputs are references to tensors (`&x`, `[&x, &y]`, `&list[..]`, `&map`), variables (`x`, `[x, y]`), or `model.parameters()`",
    note = "the function gets its variables in the same form: `|x|`, `|[x, y]|`, `|list|`"
)]
pub trait Inputs: Sized {
    /// The element type of the inputs.
    type Elem: Float;
    /// A value, or a derivative with respect to one input: a tensor, or a variable if the inputs are variables.
    type Array;
    /// The value of the function: a number, or a variable if the inputs are variables.
    type Number;
    /// The structure of the inputs (a single input, an array, a `Vec` or a map), with a `V` in the place of each input.
    type Each<V>;
    /// The variables that the function gets.
    type Vars<'s>;
    /// The variable that the function returns.
    type Output<'s>;
    /// The names of the inputs: the keys, if the inputs are in a map, and `()` otherwise.
    #[doc(hidden)]
    type Keys: Clone + PartialEq;

    /// Records the output of `f` for these inputs, and calls `derive` with the output. Returns the results of `derive`, or their values if
    /// the inputs are not variables. `directions` has a direction for each input. Tensors among the directions are recorded as constants.
    #[doc(hidden)]
    fn derive<F: for<'s> Objective<'s, Self>>(
        self,
        directions: Option<Self>,
        f: F,
        derive: Derive<Self::Elem>,
        at: Site,
    ) -> Result<Vec<Self::Array>, Error>;

    /// Returns the results of `f`, a function of one example, for all examples of the inputs.
    #[doc(hidden)]
    fn map<F: for<'s> MappedFunction<'s, Self>>(self, f: F, at: Site) -> Result<Self::Array, Error>;

    /// Returns the names of the inputs.
    #[doc(hidden)]
    fn keys_of_inputs(&self) -> Self::Keys;

    /// Converts a list with one element for each input to the structure of the inputs. `keys` has the names of the inputs.
    #[doc(hidden)]
    fn arrange<V>(keys: &Self::Keys, list: Vec<V>) -> Self::Each<V>;

    /// Returns the only element of an array of one element. Returns a variable unchanged.
    #[doc(hidden)]
    fn number(array: Self::Array) -> Result<Self::Number, Error>;

    /// Returns the array with its elements in row-major order in memory. Returns a variable unchanged.
    #[doc(hidden)]
    fn into_contiguous(array: Self::Array) -> Result<Self::Array, Error>;

    /// Returns the number of inputs.
    #[doc(hidden)]
    fn count(&self) -> usize;
}

/// A function of the variables of [`Inputs`], which is called once: a closure or a `fn`. To keep a closure in a variable, make it with
/// [`formula!`](crate::formula).
#[diagnostic::on_unimplemented(
    message = "this is no function of the variables of `{I}`",
    label = "its arguments must have the form of the inputs, and its result must be a variable",
    note = "`grad(|x| .., &x)`, `grad(|[x, y]| .., [&x, &y])`, `grad(|list| .., &list[..])`",
    note = "a closure that is kept in a variable is written `let f = formula!(|x| ..);`"
)]
pub trait Objective<'s, I: Inputs>: FnOnce(I::Vars<'s>) -> I::Output<'s> {}

/// A function of the variables of [`Inputs`], which may be called several times.
#[diagnostic::on_unimplemented(
    message = "this is no function of the variables of `{I}`",
    label = "its arguments must have the form of the inputs, and its result must be a variable",
    note = "`vmap(|x| .., &x)`, `gradcheck(|[x, y]| .., [&x, &y])`, `gradcheck(|list| .., &list[..])`",
    note = "a closure that is kept in a variable is written `let f = formula!(|x| ..);`"
)]
pub trait MappedFunction<'s, I: Inputs>: Fn(I::Vars<'s>) -> I::Output<'s> {}

/// A function of a recorded output that returns other variables, such as gradients.
pub type Derive<T> = for<'s> fn(RecordedOutput<'s, T>, Site) -> Result<Vec<Var<'s, T>>, Error>;

/// The output of a function, and its inputs, recorded on a tape.
pub struct RecordedOutput<'s, T: Float> {
    pub(super) output: Var<'s, T>,
    pub(super) inputs: Vec<Var<'s, T>>,
    /// The direction along which each input moves, for `jvp` and `hvp`. The list is empty for other transforms.
    pub(super) directions: Vec<Var<'s, T>>,
}

/// Implements the methods of [`Inputs`] that depend only on the form of the inputs: a single input, an array, a list or a map.
macro_rules! form {
    ($each:ident) => {
        fn keys_of_inputs(&self) -> Self::Keys {
            $each!(@names self)
        }

        fn arrange<V>(_keys: &Self::Keys, list: Vec<V>) -> $each!(V) {
            $each!(@form list, _keys)
        }

        fn count(&self) -> usize {
            $each!(@list self).count()
        }
    };
}

/// Implements the traits of this file for inputs that are tensors or parameters. `$leaf` is the function that records one input as a
/// variable. `$direction` records the direction of one input, for a directional derivative, as a constant.
macro_rules! data {
    ($([$($generics:tt)*] $inputs:ty, $each:ident, $leaf:expr, $direction:expr;)*) => {$(
        impl<$($generics)*> Inputs for $inputs {
            type Elem = T;
            type Array = Tensor<T>;
            type Number = T;
            type Each<V> = $each!(V);
            type Vars<'s> = $each!(Var<'s, T>);
            type Output<'s> = Var<'s, T>;
            type Keys = $each!(@keys);

            fn derive<F: for<'s> Objective<'s, Self>>(
                self,
                directions: Option<Self>,
                f: F,
                derive: Derive<T>,
                at: Site,
            ) -> Result<Vec<Tensor<T>>, Error> {
                let tape = Tape::new();
                let results: Vec<NodeIndex> = {
                    let inputs: Vec<Var<'_, T>> = $each!(@list &self).map(|input| $leaf(&tape, input, at)).collect();
                    let output = f(Self::arrange(&self.keys_of_inputs(), inputs.clone()));
                    tape.check_owns([output], at)?;
                    let directions = directions.iter().flat_map(|list| $each!(@list list)).map(|x| $direction(&tape, x, at)).collect();
                    derive(RecordedOutput { output, inputs, directions }, at)?.iter().map(|result| result.index).collect()
                };
                tape.into_values(&results, at)
            }

            fn map<F: for<'s> MappedFunction<'s, Self>>(self, f: F, at: Site) -> Result<Tensor<T>, Error> {
                let (tape, keys) = (Tape::new(), self.keys_of_inputs());
                let result = {
                    let inputs: Vec<Var<'_, T>> = $each!(@list &self).map(|input| $leaf(&tape, input, at)).collect();
                    Vmap::new().variables(&|inputs| vec![f(Self::arrange(&keys, inputs.to_vec()))], &inputs, at)?[0].index
                };
                Ok(tape.into_values(&[result], at)?.swap_remove(0))
            }

            fn number(array: Tensor<T>) -> Result<T, Error> {
                Ok(array.try_item()?)
            }

            fn into_contiguous(array: Tensor<T>) -> Result<Tensor<T>, Error> {
                Ok(array.try_contiguous()?)
            }

            form!($each);
        }

        functions!([$($generics)*] $inputs, $each!(Var<'s, T>), Var<'s, T>);
    )*};
}

/// Implements the traits of this file for inputs that are variables: a single one, an array, a list or a map.
macro_rules! variables {
    ($([$($generics:tt)*] $inputs:ty, $each:ident;)*) => {$(
        impl<'t, $($generics)*> Inputs for $inputs {
            type Elem = T;
            type Array = Var<'t, T>;
            type Number = Var<'t, T>;
            type Each<V> = $each!(V);
            type Vars<'s> = $each!(Var<'t, T>);
            type Output<'s> = Var<'t, T>;
            type Keys = $each!(@keys);

            fn derive<F: for<'s> Objective<'s, Self>>(
                self,
                directions: Option<Self>,
                f: F,
                derive: Derive<T>,
                at: Site,
            ) -> Result<Vec<Var<'t, T>>, Error> {
                // Each input gets a new node. If `f` also captures the variable that is the input, the captured variable is a constant of
                // the derivative.
                let own = |input: &Var<'t, T>| input.record_over(Op::Reshape, &input.shape(), at);
                let inputs = $each!(@list &self).map(own).collect::<Result<Vec<_>, _>>()?;
                let output = f(Self::arrange(&self.keys_of_inputs(), inputs.clone()));
                let directions = directions.iter().flat_map(|list| $each!(@list list)).copied().collect();
                derive(RecordedOutput { output, inputs, directions }, at)
            }

            fn map<F: for<'s> MappedFunction<'s, Self>>(self, f: F, at: Site) -> Result<Var<'t, T>, Error> {
                let keys = self.keys_of_inputs();
                let inputs: Vec<Var<'t, T>> = $each!(@list &self).copied().collect();
                Ok(Vmap::new().variables(&|inputs| vec![f(Self::arrange(&keys, inputs.to_vec()))], &inputs, at)?[0])
            }

            fn number(array: Var<'t, T>) -> Result<Var<'t, T>, Error> {
                Ok(array)
            }

            fn into_contiguous(array: Var<'t, T>) -> Result<Var<'t, T>, Error> {
                Ok(array)
            }

            form!($each);
        }

        functions!(['t, $($generics)*] $inputs, $each!(Var<'t, T>), Var<'t, T>);
    )*};
}

macro_rules! functions {
    ([$($generics:tt)*] $inputs:ty, $vars:ty, $output:ty) => {
        impl<'s, $($generics)*, F: FnOnce($vars) -> $output> Objective<'s, $inputs> for F {}
        impl<'s, $($generics)*, F: Fn($vars) -> $output> MappedFunction<'s, $inputs> for F {}
    };
}

/// The code for inputs that consist of a single input. `@list` iterates over the inputs. `@names` gives their names, and `@keys` the type of
/// the names. `@form` converts a list with one element for each input to the structure of the inputs. The last rule gives the type of this
/// structure.
macro_rules! one {
    (@keys) => {
        ()
    };
    (@names $inputs:expr) => {
        ()
    };
    (@list $inputs:expr) => {
        std::iter::once($inputs)
    };
    (@form $list:expr, $keys:expr) => {{
        let mut list = $list;
        list.pop().unwrap_or_else(|| unreachable!("one for the input"))
    }};
    ($value:ty) => {
        $value
    };
}

/// The code for inputs in an array, with the same rules as [`one`].
macro_rules! several {
    (@keys) => {
        ()
    };
    (@names $inputs:expr) => {
        ()
    };
    (@list $inputs:expr) => {
        $inputs.iter()
    };
    (@form $list:expr, $keys:expr) => {
        array($list)
    };
    ($value:ty) => {
        [$value; N]
    };
}

/// The code for inputs in a list, with the same rules as [`one`].
macro_rules! list {
    (@keys) => { () };
    (@names $inputs:expr) => { () };
    (@list $inputs:expr) => { $inputs.iter() };
    (@form $list:expr, $keys:expr) => { $list };
    ($value:ty) => { Vec<$value> };
}

/// The code for inputs in a map, with the same rules as [`one`]. A list of the inputs is in the order of the keys.
macro_rules! map {
    (@keys) => { Vec<K> };
    (@names $inputs:expr) => { $inputs.keys().cloned().collect() };
    (@list $inputs:expr) => { $inputs.values() };
    (@form $list:expr, $keys:expr) => { $keys.iter().cloned().zip($list).collect() };
    ($value:ty) => { BTreeMap<K, $value> };
}

data! {
    ['a, T: Float] &'a Tensor<T>, one, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float, const N: usize] [&'a Tensor<T>; N], several, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float] Vec<&'a Tensor<T>>, list, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float] &'a [Tensor<T>], list, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float] &'a Vec<Tensor<T>>, list, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float] &'a Parameter<T>, one, record_parameter, record_constant;
    ['a, T: Float, const N: usize] [&'a Parameter<T>; N], several, record_parameter, record_constant;
    ['a, T: Float] Vec<&'a Parameter<T>>, list, record_parameter, record_constant;
    ['a, T: Float, K: Ord + Clone] &'a BTreeMap<K, Tensor<T>>, map, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float, K: Ord + Clone] BTreeMap<K, &'a Tensor<T>>, map, Tape::leaf_at, Tape::constant_at;
    ['a, T: Float, K: Ord + Clone] BTreeMap<K, &'a Parameter<T>>, map, record_parameter, record_constant;
}

variables! {
    [T: Float] Var<'t, T>, one;
    [T: Float, const N: usize] [Var<'t, T>; N], several;
    [T: Float] Vec<Var<'t, T>>, list;
    [T: Float, K: Ord + Clone] BTreeMap<K, Var<'t, T>>, map;
}

fn record_parameter<'s, T: Float>(tape: &'s Tape<T>, parameter: &Parameter<T>, at: Site) -> Var<'s, T> {
    or_raise(tape.parameter_at(parameter, at))
}

fn record_constant<'s, T: Float>(tape: &'s Tape<T>, parameter: &Parameter<T>, at: Site) -> Var<'s, T> {
    tape.constant_at(&parameter.value, at)
}
