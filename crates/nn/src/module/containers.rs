//! Implementations of [`Module`] for parameters, buffers, vectors, maps, arrays, options, pointers and tuples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wengert_autograd::{Buffer, Parameter};
use wengert_tensor::{Element, Float};

use crate::module::leaf::{Leaf, LeafMut};
use crate::module::module::Module;

impl<T: Float> Module<T> for Parameter<T> {
    fn leaf(&self) -> Option<Leaf<'_, T>> {
        Some(Leaf::Parameter(self))
    }

    fn leaf_mut(&mut self) -> Option<LeafMut<'_, T>> {
        Some(LeafMut::Parameter(self))
    }
}

impl<T: Float, E: Element> Module<T> for Buffer<E> {
    fn leaf(&self) -> Option<Leaf<'_, T>> {
        Some(Leaf::Buffer(self))
    }

    fn leaf_mut(&mut self) -> Option<LeafMut<'_, T>> {
        Some(LeafMut::Buffer(self))
    }
}

/// Calls `each` with the index of each child as text, and the child. One buffer is reused for all texts.
fn for_each_numbered<C>(children: impl Iterator<Item = C>, each: &mut dyn FnMut(&str, C)) {
    let mut name = String::new();
    for (position, child) in children.enumerate() {
        name.clear();
        let _ = write!(name, "{position}");
        each(&name, child);
    }
}

/// The children are the elements of the vector. Their names are their indices. PyTorch: `ModuleList`.
impl<T: Float, M: Module<T>> Module<T> for Vec<M> {
    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        for_each_numbered(self.iter(), &mut |name, child| each(name, child));
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        for_each_numbered(self.iter_mut(), &mut |name, child| each(name, child));
    }
}

/// The children are the values of the map, sorted by key. Their names are the keys. PyTorch: `ModuleDict`, which keeps the order of insertion.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use std::collections::BTreeMap;
/// use wengert::nn::{Generator, Linear, Module};
///
/// let generator = &mut Generator::new(0);
/// let heads: BTreeMap<&str, Linear> = BTreeMap::from([("age", Linear::new(8, 1, generator)), ("name", Linear::new(8, 20, generator))]);
/// assert_eq!(heads.named_parameters()[0].0, "age.weight");
/// ```
impl<T: Float, K: AsRef<str> + Ord, M: Module<T>> Module<T> for BTreeMap<K, M> {
    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        for (name, module) in self {
            each(name.as_ref(), module);
        }
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        for (name, module) in self {
            each(name.as_ref(), module);
        }
    }
}

/// The children are the elements of the array. Their names are their indices.
impl<T: Float, M: Module<T>, const N: usize> Module<T> for [M; N] {
    fn kind(&self) -> &'static str {
        "Array"
    }

    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        for_each_numbered(self.iter(), &mut |name, child| each(name, child));
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        for_each_numbered(self.iter_mut(), &mut |name, child| each(name, child));
    }
}

/// `Some` behaves like the module that it contains, and adds nothing to the path. `None` has no children.
impl<T: Float, M: Module<T>> Module<T> for Option<M> {
    fn kind(&self) -> &'static str {
        self.as_ref().map_or("None", M::kind)
    }

    fn type_name(&self) -> &'static str {
        self.as_ref().map_or_else(std::any::type_name::<Self>, M::type_name)
    }

    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        if let Some(module) = self {
            module.children(each);
        }
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        if let Some(module) = self {
            module.children_mut(each);
        }
    }

    fn leaf(&self) -> Option<Leaf<'_, T>> {
        self.as_ref()?.leaf()
    }

    fn leaf_mut(&mut self) -> Option<LeafMut<'_, T>> {
        self.as_mut()?.leaf_mut()
    }
}

/// Implements [`Module`] for types of pointers to modules.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        /// A pointer behaves like the module to which it points.
        impl<T: Float, M: Module<T> + ?Sized> Module<T> for $pointer {
            fn kind(&self) -> &'static str {
                (**self).kind()
            }

            fn type_name(&self) -> &'static str {
                (**self).type_name()
            }

            fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
                (**self).children(each);
            }

            fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
                (**self).children_mut(each);
            }

            fn leaf(&self) -> Option<Leaf<'_, T>> {
                (**self).leaf()
            }

            fn leaf_mut(&mut self) -> Option<LeafMut<'_, T>> {
                (**self).leaf_mut()
            }
        }
    )*};
}

pointers!(Box<M>, &mut M);

/// Implements [`Module`] for tuples of modules. Each line of the macro's input gives one length of tuples: the type parameter and the index of each
/// element.
macro_rules! tuples {
    ($($($module:ident $position:tt),+;)*) => {$(
        /// The children are the elements of the tuple. Their names are their indices.
        impl<T: Float, $($module: Module<T>),+> Module<T> for ($($module,)+) {
            fn kind(&self) -> &'static str {
                "Tuple"
            }

            fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
                $(each(stringify!($position), &self.$position);)+
            }

            fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
                $(each(stringify!($position), &mut self.$position);)+
            }
        }
    )*};
}

tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
