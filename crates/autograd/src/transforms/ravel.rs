//! Converts structures of arrays to one vector, and back.
//!
//! Methods of optimisation and of linear algebra work on one vector, but a model has several arrays. The vector contains the elements of
//! the arrays one after the other, in row-major order, in the order of the fields.

use std::collections::BTreeMap;

use wengert_macros::twins;
use wengert_tensor::ops::{Result, TensorLike};
use wengert_tensor::{Element, Error, Float, Shape, Site, Tensor, View};

use crate::Var;

/// A structure of arrays: a tensor, a variable, or a tuple of up to six structures, an array, a `Vec` or a `BTreeMap` of structures.
/// Also a reference to a structure. The structures of a map have the order of its keys.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use std::collections::BTreeMap;
/// use wengert::autograd::{prelude::*, transforms::{grad, ravel}};
///
/// let parameters = BTreeMap::from([("w", Tensor::from([2.0, -1.0])), ("b", Tensor::scalar(0.5))]);
/// let (theta, layout) = ravel(&parameters);
/// assert_eq!(theta.to_vec(), [0.5, 2.0, -1.0]);
///
/// let gradient = grad(|theta| {
///     let p = layout.unravel(&theta);
///     p["w"].square().sum(..) * p["b"]
/// }, &theta);
/// assert_eq!(layout.unravel(&gradient)["w"], Tensor::from([2.0, -1.0]));
/// ```
///
/// For a struct with `#[derive(Module)]`, see `Module::to_vector` and `bind_vector` of `wengert::nn`.
pub trait Tree {
    /// The type of the arrays in the structure.
    type Leaf: TensorLike;
    /// The type of the structure's form, which has a shape in place of each array.
    type Form: TreeForm;

    /// Returns the structure's form, with the shape of each array.
    fn form(&self) -> Self::Form;

    /// Appends the arrays to `leaves`, in the order of the fields.
    fn leaves(&self, leaves: &mut Vec<Self::Leaf>);
}

/// The form of a [`Tree`]: the structure with a shape in place of each array.
pub trait TreeForm: Clone {
    /// The type of the structure with arrays of type `L`.
    type Of<L>;

    /// Returns the structure with arrays. `next` returns the array for each shape, in order.
    ///
    /// # Errors
    ///
    /// The first error of `next`.
    fn build<L, E>(&self, next: &mut dyn FnMut(&Shape) -> Result<L, E>) -> Result<Self::Of<L>, E>
    where
        Self: Sized;
}

/// The layout of a structure that [`ravel`] converted to a vector: the shape of each array, in order. [`unravel`](Self::unravel) converts
/// vectors back to structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLayout<F> {
    form: F,
    len: usize,
}

/// Returns the elements of all arrays of a structure as one vector `[n]`, and the layout that converts vectors back to structures. If the
/// arrays are variables, derivatives flow through both conversions. JAX: `ravel_pytree`; PyTorch: `parameters_to_vector` and
/// `vector_to_parameters`.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::{grad, hessian, ravel}};
///
/// let (slope, offset) = (Tensor::from([2.0, -1.0]), Tensor::scalar(0.5));
/// let (theta, layout) = ravel(&(&slope, &offset));
/// assert_eq!(theta.to_vec(), [2.0, -1.0, 0.5]);
///
/// // A loss of the structure is a function of one vector.
/// let loss = formula!(|theta| {
///     let (slope, offset) = layout.unravel(&theta);
///     slope.square().sum(..) * offset
/// });
/// let gradient = grad(&loss, &theta);
/// assert_eq!(gradient.to_vec(), [2.0, -1.0, 5.0]);
/// assert_eq!(layout.unravel(&gradient), (Tensor::from([2.0, -1.0]), Tensor::scalar(5.0)));
/// assert_eq!(hessian(&loss, &theta).shape(), &[3, 3]);
/// ```
///
/// # Errors
///
/// If there is no array, the variables belong to different tapes, memory cannot hold the vector, or the tape is full.
#[twins]
#[allow(clippy::type_complexity)]
pub fn try_ravel<S: Tree>(tree: &S) -> Result<(S::Leaf, TreeLayout<S::Form>), <S::Leaf as TensorLike>::Error> {
    let at = Site::here("ravel");
    let mut leaves = Vec::new();
    tree.leaves(&mut leaves);
    if leaves.is_empty() {
        return Err(Error::Argument { message: "ravel(): expected at least one array".into(), at }.into());
    }
    let line = |leaf: &S::Leaf| leaf.apply_view(View::Reshape([leaf.shape().numel()].into()), at);
    let lines = leaves.iter().map(line).collect::<Result<Vec<_>, _>>()?;
    let len = lines.iter().map(|line| line.shape().numel()).sum();
    Ok((TensorLike::apply_cat(&lines, 0, at)?, TreeLayout { form: tree.form(), len }))
}

impl<F> TreeLayout<F> {
    /// Returns the number of elements of the vector to which the structure is converted.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the vector has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[twins]
impl<F: TreeForm> TreeLayout<F> {
    /// Returns the structure with the elements of a vector: a tensor gives tensors, and a variable gives variables.
    ///
    /// # Errors
    ///
    /// If the vector does not have the shape `[n]` of the raveled vector, or a view of it cannot be recorded.
    pub fn try_unravel<L: TensorLike>(&self, vector: &L) -> Result<F::Of<L>, L::Error> {
        let (shape, at) = (vector.shape(), Site::here("unravel"));
        if *shape != [self.len] {
            let message = format!("unravel(): expected a vector of shape [{}], but got {shape}", self.len);
            return Err(Error::Argument { message, at }.into());
        }
        let mut start = 0;
        self.form.build(&mut |shape| {
            let len = shape.numel();
            let part = vector.apply_view(View::Slice { axis: 0, start, len, step: 1 }, at)?;
            start += len;
            part.apply_view(View::Reshape(shape.clone()), at)
        })
    }
}

impl TreeForm for Shape {
    type Of<L> = L;

    fn build<L, E>(&self, next: &mut dyn FnMut(&Shape) -> Result<L, E>) -> Result<L, E> {
        next(self)
    }
}

impl<F: TreeForm> TreeForm for Vec<F> {
    type Of<L> = Vec<F::Of<L>>;

    fn build<L, E>(&self, next: &mut dyn FnMut(&Shape) -> Result<L, E>) -> Result<Self::Of<L>, E> {
        self.iter().map(|form| form.build(next)).collect()
    }
}

impl<K: Ord + Clone, F: TreeForm> TreeForm for BTreeMap<K, F> {
    type Of<L> = BTreeMap<K, F::Of<L>>;

    fn build<L, E>(&self, next: &mut dyn FnMut(&Shape) -> Result<L, E>) -> Result<Self::Of<L>, E> {
        self.iter().map(|(key, form)| Ok((key.clone(), form.build(next)?))).collect()
    }
}

impl<F: TreeForm, const N: usize> TreeForm for [F; N] {
    type Of<L> = [F::Of<L>; N];

    fn build<L, E>(&self, next: &mut dyn FnMut(&Shape) -> Result<L, E>) -> Result<Self::Of<L>, E> {
        let list = self.iter().map(|form| form.build(next)).collect::<Result<Vec<_>, E>>()?;
        Ok(list.try_into().unwrap_or_else(|_| unreachable!("one for each element")))
    }
}

impl<T: Element> Tree for Tensor<T> {
    type Leaf = Tensor<T>;
    type Form = Shape;

    fn form(&self) -> Shape {
        self.shape().clone()
    }

    fn leaves(&self, leaves: &mut Vec<Tensor<T>>) {
        leaves.push(self.clone());
    }
}

impl<'t, T: Float> Tree for Var<'t, T> {
    type Leaf = Var<'t, T>;
    type Form = Shape;

    fn form(&self) -> Shape {
        TensorLike::shape(self)
    }

    fn leaves(&self, leaves: &mut Vec<Var<'t, T>>) {
        leaves.push(*self);
    }
}

impl<S: Tree> Tree for &S {
    type Leaf = S::Leaf;
    type Form = S::Form;

    fn form(&self) -> S::Form {
        (**self).form()
    }

    fn leaves(&self, leaves: &mut Vec<S::Leaf>) {
        (**self).leaves(leaves);
    }
}

impl<S: Tree> Tree for Vec<S> {
    type Leaf = S::Leaf;
    type Form = Vec<S::Form>;

    fn form(&self) -> Self::Form {
        self.iter().map(S::form).collect()
    }

    fn leaves(&self, leaves: &mut Vec<S::Leaf>) {
        self.iter().for_each(|tree| tree.leaves(leaves));
    }
}

impl<K: Ord + Clone, S: Tree> Tree for BTreeMap<K, S> {
    type Leaf = S::Leaf;
    type Form = BTreeMap<K, S::Form>;

    fn form(&self) -> Self::Form {
        self.iter().map(|(key, tree)| (key.clone(), tree.form())).collect()
    }

    fn leaves(&self, leaves: &mut Vec<S::Leaf>) {
        self.values().for_each(|tree| tree.leaves(leaves));
    }
}

impl<S: Tree, const N: usize> Tree for [S; N] {
    type Leaf = S::Leaf;
    type Form = [S::Form; N];

    fn form(&self) -> Self::Form {
        self.each_ref().map(S::form)
    }

    fn leaves(&self, leaves: &mut Vec<S::Leaf>) {
        self.iter().for_each(|tree| tree.leaves(leaves));
    }
}

macro_rules! tuples {
    ($(($first:ident $($rest:ident)*))*) => {$(
        impl<$first: TreeForm, $($rest: TreeForm),*> TreeForm for ($first, $($rest,)*) {
            type Of<Leaf> = ($first::Of<Leaf>, $($rest::Of<Leaf>,)*);

            #[allow(non_snake_case)]
            fn build<Leaf, Failure>(
                &self,
                next: &mut dyn FnMut(&Shape) -> Result<Leaf, Failure>,
            ) -> Result<Self::Of<Leaf>, Failure> {
                let ($first, $($rest,)*) = self;
                Ok(($first.build(next)?, $($rest.build(next)?,)*))
            }
        }

        impl<$first: Tree, $($rest: Tree<Leaf = $first::Leaf>),*> Tree for ($first, $($rest,)*) {
            type Leaf = $first::Leaf;
            type Form = ($first::Form, $($rest::Form,)*);

            #[allow(non_snake_case)]
            fn form(&self) -> Self::Form {
                let ($first, $($rest,)*) = self;
                ($first.form(), $($rest.form(),)*)
            }

            #[allow(non_snake_case)]
            fn leaves(&self, leaves: &mut Vec<Self::Leaf>) {
                let ($first, $($rest,)*) = self;
                $first.leaves(leaves);
                $($rest.leaves(leaves);)*
            }
        }
    )*};
}

tuples!((A)(A B)(A B C)(A B C D)(A B C D E2)(A B C D E2 F));

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wengert_tensor::prelude::*;

    use super::{ravel, try_ravel};
    use crate::{Tape, gradcheck};

    #[test]
    fn structures_return_from_their_vector() {
        let (a, b) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::scalar(5.0));
        let tree = ((&a, b.clone()), vec![[&b, &b], [&b, &b]], [Tensor::<f64>::zeros([0, 3])]);
        let (vector, layout) = ravel(&tree);
        assert_eq!(vector.to_vec(), [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0]);
        assert_eq!((layout.len(), layout.is_empty()), (9, false));
        let ((first, second), list, [empty]) = layout.unravel(&(&vector * 2.0));
        assert_eq!((first, second.item()), (&a * 2.0, 10.0));
        assert_eq!((list.len(), list[1][1].item(), empty.shape().sizes()), (2, 10.0, &[0, 3][..]));
        let transposed = a.t();
        assert_eq!(ravel(&transposed).0.to_vec(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn maps_return_from_their_vector_in_the_order_of_their_keys() {
        let [a, b] = [Tensor::from([[1.0, 2.0]]), Tensor::scalar(3.0)];
        let map = BTreeMap::from([("w".to_owned(), vec![&a, &b]), ("b".to_owned(), vec![&b])]);
        let (vector, layout) = ravel(&map);
        assert_eq!(vector.to_vec(), [3.0, 1.0, 2.0, 3.0]);
        let back = layout.unravel(&(&vector * 2.0));
        assert_eq!(back.keys().collect::<Vec<_>>(), ["b", "w"]);
        assert_eq!((&back["b"][..], &back["w"][..]), (&[&b * 2.0][..], &[&a * 2.0, &b * 2.0][..]));

        // A map of variables.
        let tape = Tape::<f64>::new();
        let vars = BTreeMap::from([(2, tape.var(&a)), (1, tape.var(&b).unsqueeze(0))]);
        let (vector, layout) = ravel(&vars);
        let [gradient] = layout.unravel(&(vector * vector))[&2].sum(..).grad([vars[&2]]);
        assert_eq!(gradient.value(), &a * 2.0);
        assert!(try_ravel(&BTreeMap::<String, Tensor<f64>>::new()).is_err());
    }

    #[test]
    fn derivatives_flow_through_both_directions() {
        let (a, b) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([5.0, 6.0]));
        let check = gradcheck(
            |[a, b]| {
                let (vector, layout) = ravel(&[a.square(), b.exp().unsqueeze(0)]);
                let [a, b] = layout.unravel(&(vector * vector));
                a.matmul(&b.t())
            },
            [&a, &(b * 0.1)],
        );
        check.unwrap();
    }

    #[test]
    fn mistakes_are_errors() {
        let nothing: Vec<Tensor<f64>> = Vec::new();
        assert_eq!(try_ravel(&nothing).unwrap_err().sentence(), "ravel(): expected at least one array");
        let (vector, layout) = ravel(&(Tensor::from([1.0, 2.0]), Tensor::scalar(3.0)));
        for wrong in [vector.narrow(0, 0, 2), vector.unsqueeze(0)] {
            assert!(layout.try_unravel(&wrong).is_err());
        }
        let tapes = [Tape::<f64>::new(), Tape::new()];
        let vars = tapes.each_ref().map(|tape| tape.var(&vector));
        assert!(try_ravel(&vars).is_err());
    }
}
