//! The operations.
//!
//! [`TensorLike`] has the primitives, which a [`Tensor`](crate::Tensor) computes immediately and a recorded variable records. Users call
//! the methods of the families in this table, and a few functions. Each method is written once over the primitives, so tensors and
//! variables have the same operations, with the same names, checks and error messages.
//!
//! | family | operations |
//! |---|---|
//! | [`Arithmetic`] | `add`, `mul`, `pow`, `maximum`, …: two operands, which broadcast |
//! | [`Functions`] | `exp`, `tanh`, `sqrt`, …: one operand |
//! | [`Comparison`] | `eq`, `lt`, `where_`, …: masks, and selection by a mask |
//! | [`Reductions`] | `sum`, `mean`, `amax`, …: over some dimensions |
//! | [`Extremes`] | `max`, `min`, `cummax`, …: most with positions |
//! | [`Sorting`] | `sort`, `topk`, `median`, … |
//! | [`Cumulative`] | `cumsum`, `cumprod`, `diff`, … |
//! | [`Statistics`], [`Quantiles`], [`Covariances`] | `var`, `std`, `nansum`, …; `quantile`; `cov`, `corrcoef` |
//! | [`Search`], [`bincount`] | `searchsorted`, `bucketize`, `histc` |
//! | [`Uniqueness`] | `unique`, `unique_consecutive`, `isin`, … |
//! | [`Integrals`] | `trapezoid`, … |
//! | [`Norms`] | `vector_norm`, `cdist`, `normalize`, … |
//! | [`Softmax`] | `softmax`, `log_softmax`, `logsumexp` |
//! | [`Views`] | `expand`, `reshape`, `permute`, …: without arithmetic, except `sum_to` |
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
//! | [`ItemIndexing`] | `index`, Python's `x[1, :, index]`: integers, slices, index tensors, masks |
//! | [`Scatter`], [`ScatterReduce`], [`ScatterInPlace`] | `scatter_add`, `scatter_reduce`, …: writing by index |
//! | [`ViewScatter`] | `select_scatter`, …: writing into a view |
//! | [`Nonzero`] | `nonzero`, …: from masks to indices |
//! | [`Splitting`], [`Repetition`], [`Shuffling`] | `chunk`, `unbind`, …; `repeat`, `roll`, …; `pixel_shuffle`, … |
//! | [`cat`], [`stack`], [`meshgrid`], … | functions that join, pair or broadcast several arrays |
//! | [`Diagonals`], [`Padding`] | `tril`, `diag_embed`, …; `pad` |
//! | [`Convolution`], [`Columns`] | `conv2d`, `conv_transpose2d`, …; `im2col`, `col2im` |
//! | [`Pooling`], [`AdaptivePooling`] | `max_pool2d`, `adaptive_avg_pool2d`, … |
//! | [`Interpolation`], [`GridSampling`] | `interpolate`; `grid_sample`, `affine_grid` |
//! | [`Normalization`], [`Dropout`], [`Embedding`] | `layer_norm`, `batch_norm`, …; `dropout`; `embedding` |
//! | [`Attention`], [`Recurrent`] | `scaled_dot_product_attention`; `lstm_cell`, … |
//! | [`RegressionLosses`], [`LikelihoodLosses`], [`ClassLosses`], [`MarginLosses`] | `mse_loss`, `cross_entropy`, … |
//! | [`MseLoss`], [`HuberLoss`], … | losses as types with options, and as functions with defaults: `mse_loss(&x, &y)` |
//! | [`InPlace`] | `copy_`, `fill_`, `masked_fill_`, … |
//! | [`ViewsInPlace`] | `t_`, `squeeze_`, … |

pub(crate) mod elementwise;
pub(crate) mod in_place;
pub(crate) mod index;
pub(crate) mod linalg;
pub(crate) mod network;
pub(crate) mod operators;
pub(crate) mod primitive;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod window;

pub use elementwise::activations::Activations;
pub use elementwise::arithmetic::Arithmetic;
pub use elementwise::clamp::{Bounded, Clamp};
pub use elementwise::comparison::{Comparison, try_where_, where_};
pub use elementwise::dropout::Dropout;
pub use elementwise::functions::Functions;
pub use elementwise::incomplete_gamma::IncompleteGamma;
pub use elementwise::mixed::{Masking, Mixed};
pub use in_place::assign::InPlace;
pub(crate) use in_place::assign::{array, check_in_place, put_same_shape};
pub use in_place::scatter_in_place::ScatterInPlace;
pub use in_place::views_in_place::ViewsInPlace;
pub use index::embedding::{Embedding, EmbeddingOptions};
pub use index::indexing::Indexing;
pub use index::items::{IndexItem, ItemIndexing};
pub use index::nonzero::{Nonzero, one_hot, try_one_hot, try_unravel_index, unravel_index};
pub use index::scatter::Scatter;
pub use index::scatter_reduce::{ScatterReduce, ScatterReduction};
pub use index::view_scatter::ViewScatter;
pub use linalg::blas::Blas;
pub use linalg::contraction::{Contracted, Contractions, einsum, try_einsum};
pub use linalg::linear::LinearMaps;
#[doc(hidden)]
pub use linalg::products::product;
pub use linalg::products::{ProductOperand, Products};
pub use linalg::vectors::Vectors;
pub use network::attention::{Attention, AttentionMask};
pub use network::losses::*;
pub use network::recurrent::{CellWeights, Recurrent};
// The operators of variables use this trait. It exists for the compiler's error message.
#[doc(hidden)]
pub use operators::LeftNumber;
pub use operators::OperatorOperand;
pub(crate) use primitive::compose::Compose;
// The tape uses this trait. The types in its methods belong to the engine, which is not documented.
#[doc(hidden)]
pub use primitive::evaluate::Evaluate;
pub(crate) use primitive::pair::Converted;
#[doc(hidden)]
pub use primitive::pair::binary;
pub use primitive::pair::{Argument, ArrayOperand, Operand, OptionalOperand};
#[doc(hidden)]
pub use primitive::tensor_like::Composite;
#[doc(hidden)]
pub use primitive::tensor_like::arrays;
pub use primitive::tensor_like::{IntoArray, MaskOperand, Result, TensorLike};
pub use reduce::covariance::Covariances;
pub use reduce::cumulative::Cumulative;
pub use reduce::distinct::Uniqueness;
pub use reduce::extremes::Extremes;
pub use reduce::integrals::Integrals;
pub use reduce::normalization::{BatchNormed, Normalization};
pub use reduce::norms::Norms;
pub use reduce::quantiles::{Fractions, QuantileInterpolation, Quantiles};
pub use reduce::reductions::Reductions;
pub use reduce::search::{Search, bincount, try_bincount};
pub use reduce::softmax::Softmax;
pub use reduce::sorting::Sorting;
pub use reduce::statistics::Statistics;
pub use shape::diagonals::Diagonals;
#[doc(hidden)]
pub use shape::joining::join;
pub use shape::joining::{
    Indexing2d, block_diag, cartesian_prod, cat, column_stack, dstack, hstack, meshgrid, stack, try_block_diag,
    try_cartesian_prod, try_cat, try_column_stack, try_dstack, try_hstack, try_meshgrid, try_stack, try_vstack, vstack,
};
pub use shape::padding::{PadMode, Padding};
pub use shape::repetition::Repetition;
pub use shape::shuffles::Shuffling;
pub use shape::splitting::Splitting;
pub use shape::views::{Views, broadcast_shapes, broadcast_tensors, try_broadcast_shapes, try_broadcast_tensors};
pub use window::columns::Columns;
pub use window::convolution::{ConvOptions, Convolution};
#[doc(hidden)]
pub use window::description::{MeanWindow, WindowAxis};
pub use window::grid::{GridMode, GridPadding, GridSampling};
pub use window::interpolation::{InterpolateMode, Interpolation};
pub use window::pooling::{AdaptivePooling, PoolOptions, Pooling};
pub use window::windowed::{ConvolutionForm, MaxPoolForm, MeanPoolForm, Slot, Windowed};
