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
//! | [`LinearMaps`] | `linear`, `bilinear` |
//! | [`Activations`] | `leaky_relu`, `gelu`, `softplus`, … |
//! | [`Clamp`], [`Bounded`] | `clamp`, `nan_to_num`, `logit`, … |
//! | [`IncompleteGamma`] | `igamma`, `igammac` |
//! | [`Mixed`], [`Masking`] | `lerp`, `addcmul`, `logaddexp`, `masked_fill`, … |
//! | [`Indexing`] | `gather`, `index_select`, `masked_select`, … |
//! | [`ItemIndexing`] | `x[1, :, index]`: a list of integers, slices, index tensors, masks |
//! | [`Scatter`], [`ScatterInPlace`] | `scatter_add`, `index_put`, … : writing by index |
//! | [`Nonzero`] | from masks to indices |
//! | [`Splitting`], [`Repetition`] | `chunk`, `unbind`, …; `repeat`, `roll`, … |
//! | [`Diagonals`], [`Padding`] | `tril`, `diag_embed`, …; `pad` |
//! | [`Convolution`], [`Columns`] | `conv2d`, `conv_transpose2d`, …; `im2col` |
//! | [`Pooling`], [`AdaptivePooling`], [`Interpolation`] | `max_pool2d`, `adaptive_avg_pool2d`, …; `interpolate` |
//! | [`Normalization`], [`Dropout`], [`Embedding`] | `layer_norm`, `batch_norm`, …; `dropout`; `embedding` |
//! | [`Attention`], [`Recurrent`] | `scaled_dot_product_attention`; `lstm_cell`, … |
//! | [`RegressionLosses`], [`LikelihoodLosses`], [`ClassLosses`], [`MarginLosses`] | `mse_loss`, `cross_entropy`, … |
//! | [`InPlace`] | `add_` and its kind |
//! | [`FunctionsInPlace`], [`ViewsInPlace`] | `floor_` and its kind; `t_`, `squeeze_`, … |
//! | [`Overwrite`] | the in-place forms of what is made of several operations |

mod activations;
mod along;
mod arithmetic;
mod attention;
mod blas;
mod clamp;
mod columns;
mod comparison;
mod contraction;
mod convolution;
mod cumulative;
mod diagonals;
mod dropout;
mod eager;
mod embedding;
mod equation;
mod extremes;
mod formula;
mod functions;
mod functions_in_place;
mod in_place;
mod incomplete_gamma;
mod index;
mod indexing;
mod interpolation;
mod joining;
mod linear;
mod losses;
mod mixed;
mod nonzero;
mod normalization;
mod norms;
mod operators;
mod overwrite;
mod padding;
mod pair;
mod pooling;
mod positions;
mod primitive;
mod products;
mod recurrent;
mod reductions;
mod repetition;
mod replace;
mod scatter;
mod scatter_in_place;
mod softmax;
mod sorting;
mod splitting;
mod statistics;
mod vectors;
mod views;
mod windowed;
mod windows;

pub use activations::Activations;
pub use arithmetic::Arithmetic;
pub use attention::{Attention, AttentionMask};
pub use blas::{Blas, BlasInPlace};
pub use clamp::{Bounded, Clamp};
pub use columns::Columns;
pub use comparison::{Comparison, try_where_, where_};
pub use contraction::{Contracted, Contractions, einsum, try_einsum};
pub use convolution::{ConvOptions, Convolution};
pub use cumulative::Cumulative;
pub use diagonals::Diagonals;
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingOptions};
pub use extremes::Extremes;
pub use functions::Functions;
pub use functions_in_place::{FunctionsInPlace, ViewsInPlace};
pub use in_place::InPlace;
pub use incomplete_gamma::IncompleteGamma;
pub use index::{IndexItem, ItemIndexing};
pub use indexing::Indexing;
pub use interpolation::{InterpolateMode, Interpolation};
pub use joining::{
    Indexing2d, cat, hstack, meshgrid, stack, try_cat, try_hstack, try_meshgrid, try_stack, try_vstack, vstack,
};
pub use linear::LinearMaps;
pub use losses::{
    ClassLosses, ClassOptions, Classes, LikelihoodLosses, LossReduction, MarginLosses, RegressionLosses, TripletOptions,
};
pub use mixed::{Masking, Mixed};
pub use nonzero::{Nonzero, one_hot, try_one_hot};
pub use normalization::{BatchNormed, Normalization};
pub use norms::Norms;
pub use overwrite::Overwrite;
pub use padding::{PadMode, Padding};
pub use pair::{Argument, Operand};
pub use pooling::{AdaptivePooling, PoolOptions, Pooling};
pub use primitive::TensorLike;
pub use products::Products;
pub use recurrent::{CellWeights, Recurrent};
pub use reductions::Reductions;
pub use repetition::Repetition;
pub use scatter::Scatter;
pub use scatter_in_place::ScatterInPlace;
pub use softmax::Softmax;
pub use sorting::Sorting;
pub use splitting::Splitting;
pub use statistics::Statistics;
pub use vectors::Vectors;
pub use views::{Views, broadcast_shapes, broadcast_tensors, try_broadcast_shapes, try_broadcast_tensors};
pub use windowed::{ConvolutionForm, MeanForm, PoolingForm, Slot, Windowed};

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
