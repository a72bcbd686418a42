//! The operations.
//!
//! [`TensorLike`] has the primitives: what a [`Tensor`](crate::Tensor) computes at once and a recorded variable writes down.
//! Everything a user calls is a method of one of the families here, written once over those primitives, so that tensors and
//! variables have the same operations, with the same names, checks and error sentences.
//!
//! | family | what |
//! |---|---|
//! | [`Arithmetic`] | `add`, `mul`, `pow`, `maximum`, … : two operands that broadcast |
//! | [`Functions`] | `exp`, `tanh`, `sqrt`, … : one operand |
//! | [`Comparison`] | `eq`, `lt`, `where_`, … : masks and choices |
//! | [`Reductions`] | `sum`, `mean`, `amax`, … : over some dimensions |
//! | [`Extremes`] | `max`, `min`, `cummax`, … : with positions |
//! | [`Sorting`] | `sort`, `topk`, `median`, … |
//! | [`Cumulative`] | `cumsum`, `cumprod`, `diff`, … |
//! | [`Statistics`] | `var`, `std`, `nansum`, … |
//! | [`Norms`] | `vector_norm`, `cdist`, `normalize`, … |
//! | [`Softmax`] | `softmax`, `log_softmax`, `logsumexp` |
//! | [`Views`] | `expand`, `reshape`, `permute`, … : no element is computed |
//! | [`Products`] | `matmul` |
//! | [`Blas`] | `mm`, `bmm`, `dot`, `addmm`, … |
//! | [`Vectors`] | `outer`, `inner`, `cross`, `kron`, … |
//! | [`Contractions`] | `tensordot`, and the function [`einsum`] |
//! | [`Linear`] | `linear`, `bilinear` |
//! | [`Indexing`] | `gather`, `index_select`, `cat`, … |
//! | [`Activations`] | `leaky_relu`, `gelu`, `softplus`, … |
//! | [`Clamp`], [`Bounded`] | `clamp`, `nan_to_num`, `logit`, … |
//! | [`Mixed`], [`Masking`] | `lerp`, `addcmul`, `logaddexp`, `masked_fill`, … |
//! | [`InPlace`] | `add_` and its kind |
//! | [`Overwrite`] | the in-place forms of what is made of several operations |

mod activations;
mod along;
mod arithmetic;
mod blas;
mod clamp;
mod comparison;
mod contraction;
mod cumulative;
mod eager;
mod equation;
mod extremes;
mod functions;
mod in_place;
mod indexing;
mod linear;
mod mixed;
mod norms;
mod operators;
mod overwrite;
mod pair;
mod primitive;
mod products;
mod reductions;
mod softmax;
mod sorting;
mod statistics;
mod vectors;
mod views;

pub use activations::Activations;
pub use arithmetic::Arithmetic;
pub use blas::{Blas, BlasInPlace};
pub use clamp::{Bounded, Clamp};
pub use comparison::{Comparison, try_where_, where_};
pub use contraction::{Contracted, Contractions, einsum, try_einsum};
pub use cumulative::Cumulative;
pub use extremes::Extremes;
pub use functions::Functions;
pub use in_place::InPlace;
pub use indexing::{Indexing, cat, stack, try_cat, try_stack};
pub use linear::Linear;
pub use mixed::{Masking, Mixed};
pub use norms::Norms;
pub use overwrite::Overwrite;
pub use pair::{Argument, Operand};
pub use primitive::TensorLike;
pub use products::Products;
pub use reductions::Reductions;
pub use softmax::Softmax;
pub use sorting::Sorting;
pub use statistics::Statistics;
pub use vectors::Vectors;
pub use views::{Views, broadcast_shapes, broadcast_tensors, try_broadcast_shapes, try_broadcast_tensors};

/// Writes methods in pairs: `name`, which panics at the caller's line, and `try_name`, which returns the error.
///
/// ```text
/// /// Documentation of both.
/// fn add | try_add(&self, other: impl Operand<Self>) -> Self, Self::Error [Self::Elem: Number] = at { body of try_add }
/// ```
///
/// `at` names the [`Site`](crate::Site) of the call inside the body.
macro_rules! twin {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $(<$g:ident : $bound:path>)? | $try_name:ident(&$this:ident $(, $arg:ident: $ty:ty)* $(,)?)
            -> $out:ty, $error:ty $([$($clause:tt)*])? = $at:ident $body:block
    )*) => {$(
        $crate::ops::twin! { @visible pub
            $(#[$doc])*
            fn $name $(<$g: $bound>)? | $try_name(&$this $(, $arg: $ty)*) -> $out, $error $([$($clause)*])? = $at $body
        }
    )*};
    (trait $(
        $(#[$doc:meta])*
        fn $name:ident $(<$g:ident : $bound:path>)? | $try_name:ident(&$this:ident $(, $arg:ident: $ty:ty)* $(,)?)
            -> $out:ty $([$($clause:tt)*])? = $at:ident $body:block
    )*) => {$(
        $crate::ops::twin! { @visible
            $(#[$doc])*
            fn $name $(<$g: $bound>)? | $try_name(&$this $(, $arg: $ty)*) -> $out, Self::Error $([$($clause)*])? = $at $body
        }
    )*};
    (@visible $($visible:ident)?
        $(#[$doc:meta])*
        fn $name:ident $(<$g:ident : $bound:path>)? | $try_name:ident(&$this:ident $(, $arg:ident: $ty:ty)*)
            -> $out:ty, $error:ty $([$($clause:tt)*])? = $at:ident $body:block
    ) => {
        $(#[$doc])*
        ///
        /// Panics at the caller's line where the twin that begins with `try_` returns an error.
        #[track_caller]
        $($visible)? fn $name $(<$g: $bound>)? (&$this $(, $arg: $ty)*) -> $out $(where $($clause)*)? {
            match $this.$try_name $(::<$g>)? ($($arg),*) {
                Ok(result) => result,
                Err(error) => $crate::error::raise(error),
            }
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), "), with the error as a value.")]
        ///
        /// # Errors
        ///
        /// What the other one panics with.
        #[track_caller]
        $($visible)? fn $try_name $(<$g: $bound>)? (&$this $(, $arg: $ty)*) -> Result<$out, $error> $(where $($clause)*)? {
            #[allow(unused_variables)]
            let $at = $crate::error::Site::here(stringify!($name));
            $body
        }
    };
}

#[cfg(test)]
pub(crate) use eager::split;
pub(crate) use pair::{expanded, join_all};
pub(crate) use twin;
