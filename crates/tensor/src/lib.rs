//! Tensors with PyTorch's broadcasting semantics.
//!
//! A broadcast is a view with stride 0 and copies nothing. Start with [`Tensor`] and the operations in [`ops`]. The broadcasting
//! rule is [`broadcast::join`].
//!
//! ```
//! # use wengert_tensor as wengert;
//! use wengert::prelude::*;
//!
//! let maps = Tensor::<f32>::ones([4, 32, 14, 14]);
//! let bias = Tensor::<f32>::full([32], 0.5);
//! assert!(maps.try_add(&bias).is_err()); // 14 against 32
//! let sum = &maps + &bias.unsqueeze(-1).unsqueeze(-1);
//! assert_eq!(sum.shape(), &[4, 32, 14, 14]);
//! ```
//!
//! | subject | items |
//! |---|---|
//! | a tensor, and every operation in one table | [`Tensor`], [`ops`] |
//! | shapes and arguments | [`Shape`], [`Sizes`], [`Dims`], [`Axes`], [`Position`], [`Span`], [`Progression`], [`axis`], [`index_items`] |
//! | the broadcasting rule, explained in words and pictures | [`broadcast`], [`explain`](mod@explain), [`explain_named`], [`Explanation`] |
//! | warnings, and PyTorch's rules before broadcasting | [`compat`] |
//! | element types | [`DType`], [`Scalar`], [`Element`], [`Number`], [`Float`], [`Integer`] |
//! | random numbers | [`Generator`] |
//! | errors, and the caller's line | [`Error`], [`ExpandMismatch`], [`Site`] |
//! | threads | [`num_threads`], [`set_num_threads`] |
//! | vector instructions | [`InstructionSet`], [`instruction_set`], [`set_instruction_set`] |
//! | the pool of released memory | [`PoolStatistics`], [`pool_statistics`], [`set_pool_capacity`], [`clear_pool`] |
//! | names of primitives | [`Unary`], [`Binary`], [`Compare`], [`Reduction`] |
//! | views, and the places of elements in memory | [`View`], [`Layout`], [`Strides`] |
//! | fused programs over tensors | [`program`] |

// The attribute `precompiled` writes paths that begin with `::wengert_tensor`, also in this crate.
extern crate self as wengert_tensor;

mod engine;
mod kernel;
mod memory;
pub mod ops;
mod scalar;
mod shape;
mod tensor;
mod thresholds;

#[doc(hidden)]
pub use engine::plan;
#[doc(hidden)]
pub use kernel::element::instances;
pub use kernel::element::{Element, Float, Integer, Number};
pub use memory::pool::{PoolStatistics, clear_pool, pool_statistics, set_pool_capacity};
#[doc(hidden)]
pub use memory::reserve::{addressable, check_list};
#[doc(hidden)]
pub use memory::threads::each_part;
pub use memory::threads::{num_threads, set_num_threads};
pub use scalar::cpu::{InstructionSet, instruction_set, set_instruction_set};
pub use scalar::element::Scalar;
pub use scalar::functions::{Binary, Compare, Unary};
pub use scalar::generator::Generator;
pub use scalar::reduction::Reduction;
pub use shape::dims::{Axes, Dims, Position, Sizes, axis};
pub use shape::dtype::DType;
pub use shape::error::{Error, ExpandMismatch, Site};
pub(crate) use shape::error::{ensure, raise};
pub use shape::explain::{Explanation, explain, explain_named};
pub use shape::layout::{Layout, Strides};
pub use shape::ranges::{Progression, Span};
pub use shape::shape::Shape;
pub use shape::view::View;
pub use shape::{broadcast, compat, explain};
pub use tensor::program;
pub use tensor::tensor::Tensor;

/// The tensor type and the operations that most programs use. The traits of the operations are imported without names. So a layer may have
/// the same name as a trait, such as `Dropout`. Generic code imports the traits from [`ops`].
pub mod prelude {
    pub use crate::ops::Operand;
    pub use crate::ops::{
        Activations as _, AdaptivePooling as _, Arithmetic as _, Attention as _, Blas as _, Bounded as _, Clamp as _,
        ClassLosses as _, Columns as _, Comparison as _, Contractions as _, Convolution as _, Covariances as _,
        Cumulative as _, Diagonals as _, Dropout as _, Embedding as _, Extremes as _, Functions as _,
        GridSampling as _, InPlace as _, IncompleteGamma as _, Indexing as _, Integrals as _, Interpolation as _,
        ItemIndexing as _, LikelihoodLosses as _, LinearMaps as _, MarginLosses as _, Masking as _, Mixed as _,
        Nonzero as _, Normalization as _, Norms as _, Padding as _, Pooling as _, Products as _, Quantiles as _,
        Recurrent as _, Reductions as _, RegressionLosses as _, Repetition as _, Scatter as _, ScatterInPlace as _,
        ScatterReduce as _, Search as _, Shuffling as _, Softmax as _, Sorting as _, Splitting as _, Statistics as _,
        Uniqueness as _, Vectors as _, ViewScatter as _, Views as _, ViewsInPlace as _,
    };
    pub use crate::ops::{ConvOptions, InterpolateMode, PadMode, PoolOptions};
    pub use crate::ops::{
        binary_cross_entropy, binary_cross_entropy_with_logits, huber_loss, l1_loss, mse_loss, smooth_l1_loss,
        try_binary_cross_entropy, try_binary_cross_entropy_with_logits, try_huber_loss, try_l1_loss, try_mse_loss,
        try_smooth_l1_loss,
    };
    pub use crate::ops::{cat, einsum, one_hot, stack, try_einsum, where_};
    pub use crate::{DType, Element, Float, Generator, Number, Scalar, Shape, Tensor, index_items};
}
