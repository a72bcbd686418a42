//! Tensors with PyTorch's broadcasting semantics.
//!
//! A broadcast is a view: stride 0, no copy. Start at [`Tensor`] and the operations in [`ops`]; the rule itself is
//! [`broadcast::join`].
//!
//! ```
//! use wengert_tensor::prelude::*;
//!
//! let maps = Tensor::<f32>::ones([4, 32, 14, 14]);
//! let bias = Tensor::<f32>::full([32], 0.5);
//! assert!(maps.try_add(&bias).is_err()); // 14 against 32
//! let sum = &maps + &bias.unsqueeze(-1).unsqueeze(-1);
//! assert_eq!(sum.shape(), &[4, 32, 14, 14]);
//! ```

mod approximate;
pub mod broadcast;
pub mod compat;
mod diagnostic;
mod dims;
mod display;
mod element;
mod error;
pub mod explain;
mod interop;
mod kernel;
mod layout;
mod memory;
mod nest;
pub mod ops;
mod pool;
pub mod program;
mod random;
mod shape;
mod storage;
mod tensor;
mod threads;
mod view;

pub use dims::{Axes, Dims, Sizes, axis};
pub use element::{DType, Element, Float, Integer, Number};
pub use error::{Error, ExpandMismatch, Site};
pub use explain::{Explanation, explain, explain_named};
pub use kernel::instruction::{Binary, Compare, Reduction, Unary};
pub use kernel::simd::{InstructionSet, instruction_set, set_instruction_set};
pub use layout::{Layout, Strides};
pub use pool::{PoolStatistics, clear_pool, pool_statistics, set_pool_capacity};
pub use shape::Shape;
pub use tensor::Tensor;
#[doc(hidden)]
pub use tensor::addressable;
pub use threads::{num_threads, set_num_threads};
pub use view::View;

/// What most programs want: the tensor type and the operations.
pub mod prelude {
    pub use crate::ops::{Activations, Bounded, Clamp, Masking, Mixed, Overwrite};
    pub use crate::ops::{
        AdaptivePooling, Arithmetic, Attention, Blas, BlasInPlace, ClassLosses, Columns, Comparison, Contractions,
        Convolution, Cumulative, Diagonals, Dropout, Embedding, Extremes, Functions, FunctionsInPlace, InPlace,
        IncompleteGamma, Indexing, Interpolation, ItemIndexing, LikelihoodLosses, LinearMaps, MarginLosses, Nonzero,
        Normalization, Norms, Operand, Padding, Pooling, Products, Recurrent, Reductions, RegressionLosses, Repetition,
        Scatter, ScatterInPlace, Softmax, Sorting, Splitting, Statistics, TensorLike, Vectors, Views, ViewsInPlace,
    };
    pub use crate::ops::{cat, einsum, stack, try_einsum, where_};
    pub use crate::{DType, Element, Float, Number, Shape, Tensor};
}
