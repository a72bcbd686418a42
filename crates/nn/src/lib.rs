//! Layers and losses that are recorded on the tape, and optimisers, data sets and checkpoints.
//!
//! Layers are plain data: a model is a struct of layers, and a layer is a struct of [`Parameter`]s. There is no
//! registry. The parameters of a model are the parameters of its fields (see [`Module`]). This crate works with shapes
//! and recorded variables, not with the layout of elements in memory.
//!
//! A mistake in a program, such as a wrong shape, panics at the caller's line. Each method that panics has a twin with
//! the prefix `try_` that returns an error. Functions that read or write files always return a `Result`.
//!
//! ```
//! use wengert_autograd::prelude::*;
//! use wengert_nn::{Generator, Layer, Linear, Module, Optimizer, Sgd, cross_entropy};
//!
//! /// Two layers with a ReLU between them.
//! #[derive(Module)]
//! struct Mlp {
//!     fc1: Linear,
//!     fc2: Linear,
//! }
//!
//! impl Mlp {
//!     fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
//!         self.fc2.forward(self.fc1.forward(x).relu())
//!     }
//! }
//!
//! let generator = &mut Generator::new(0);
//! let mut model = Mlp { fc1: Linear::new(2, 8, generator), fc2: Linear::new(8, 2, generator) };
//! let inputs = Tensor::from([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
//! let targets = Tensor::from([0, 1, 1, 0]); // the exclusive or of both inputs
//! let mut sgd = Sgd::new(0.5).momentum(0.9);
//! let mut last = f32::INFINITY;
//! for _ in 0..100 {
//!     let (loss, gradients) = Tape::training(generator).value_and_gradients(|tape| {
//!         cross_entropy(&model.forward(tape.constant(&inputs)), &targets)
//!     });
//!     sgd.step(&mut model, &gradients);
//!     last = loss;
//! }
//! assert!(last < 0.05);
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`Module`] | parameters and buffers by path; derived for structs |
//! | [`Layer`] and `layers` | layers, with PyTorch's names, layouts and initial distributions |
//! | [`Optimizer`] and `optim` | optimisers |
//! | `loss` | [`CrossEntropyLoss`], [`cross_entropy`] and other losses; [`accuracy`] |
//! | [`init`], [`schedule`] | initial values of parameters; schedules of the learning rate |
//! | [`Dataset`], [`DataLoader`] and `data`, [`Normalize`] | tables and other files; splits, batches, augmentation; normalization of inputs |
//! | [`per_sample_gradients`], [`check_model`] | the gradients of each sample; a comparison of a model's derivatives with finite differences |
//! | [`metrics`] | accuracy, confusion matrix, curves and errors over all batches of an epoch |
//! | [`Checkpoint`], `file`, `bytes` | models and the state of a training in files that PyTorch reads; atomic writing of files |
//! | [`Fit`], [`History`] | a training loop; its results, epoch by epoch |
//! | `plots` | pictures of a training and its results, with the feature `plots` |
//! | `error` | the error type |

mod bytes;
mod checkpoint;
mod data;
mod error;
mod file;
mod fit;
mod gradcheck;
mod history;
pub mod init;
mod layers;
mod loss;
pub mod metrics;
mod module;
mod normalize;
mod optim;
mod per_sample;
#[cfg(feature = "plots")]
pub mod plots;
pub mod schedule;
mod trace;

pub use checkpoint::{Checkpoint, LoadReport, Saved, load, save};
#[cfg(feature = "npz")]
pub use data::read_npz;
pub use data::{Batches, Classes, DataLoader, Dataset, Padded, Samples, Sequences, Table, Vocabulary};
#[cfg(feature = "images")]
pub use data::{ImageFolder, ImageReader};
pub use data::{augment, next_tokens, pad_sequence, read_idx, read_npy, read_table, read_text, split};
pub use error::{Error, KeyMismatch, Place, Result};
pub use file::write_atomically;
pub use fit::{EarlyStopping, Fit, Progress, evaluate};
pub use gradcheck::{ModelFailure, check_model};
pub use history::{Epoch, History, Scores};
pub use layers::{AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d};
pub use layers::{AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d};
pub use layers::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, DropoutChannels, FeatureAlphaDropout};
pub use layers::{AttentionBuilder, AttentionCache, AttentionMasks, MultiheadAttention};
pub use layers::{AvgPool, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d};
pub use layers::{BagMode, Embedding, EmbeddingBag, EmbeddingBagBuilder, EmbeddingBuilder, RowLimit};
pub use layers::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, Bilinear};
pub use layers::{CELU, ELU, GELU, GELUTanh, GLU, LeakyReLU, LogSigmoid, Mish, PReLU, RReLU, ReLU, ReLU6, SELU, SiLU};
pub use layers::{
    CellVariables, GRU, GRUCell, Gated, LSTM, LSTMCell, LongShortTerm, RNN, RNNCell, RecurrentBuilder, RecurrentCell,
    RecurrentKind, RecurrentLayer, RecurrentState, Simple,
};
pub use layers::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder, Layer, Linear, Sequential};
pub use layers::{ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use layers::{
    DecoderCache, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer,
    TransformerOptions,
};
pub use layers::{Flatten, Identity, Pad, PixelShuffle, Unflatten, Upsample};
pub use layers::{GroupNorm, InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm, RMSNorm};
pub use layers::{Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSoftmax, Sigmoid, Softmax, Softmin, Softplus};
pub use layers::{LPPool, LPPool1d, LPPool2d, LPPool3d};
pub use layers::{LearnedPositions, RotaryPairs, rotary, sinusoidal_positions, try_rotary, try_sinusoidal_positions};
pub use layers::{Softshrink, Softsign, Tanh, Tanhshrink, Threshold};
pub use loss::{
    CosineEmbedding, CrossEntropy, FormulaOfThree, GaussianNll, LossOfThree, MarginRanking, MultiMargin,
    MultilabelSoftMargin, NegativeLogLikelihood, WeightedLoss,
};
pub use loss::{
    CosineEmbeddingLoss, CrossEntropyLoss, CtcLoss, GaussianNllLoss, MarginRankingLoss, MultiMarginLoss,
    MultilabelMarginLoss, MultilabelSoftMarginLoss, NllLoss, TripletMarginLoss, accuracy, cosine_embedding_loss,
    cross_entropy, ctc_loss, gaussian_nll_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss, nll_loss, triplet_margin_loss, try_accuracy, try_cosine_embedding_loss,
    try_cross_entropy, try_ctc_loss, try_gaussian_nll_loss, try_margin_ranking_loss, try_multi_margin_loss,
    try_multilabel_margin_loss, try_multilabel_soft_margin_loss, try_nll_loss, try_triplet_margin_loss,
};
pub use module::{AnyBuffer, Leaf, LeafMut, Module, update_buffers};
pub use normalize::Normalize;
pub use optim::{
    Adadelta, Adagrad, Adam, AdamW, Adamax, Archive, Asgd, Common, DecayedParameter, Lbfgs, Lion, NAdam, Optimizer,
    PenalizedGradient, RAdam, RMSprop, Range, Resume, Rprop, Setting, Sgd, States, WeightAverage,
};
pub use per_sample::{per_sample_gradients, try_per_sample_gradients};
pub use schedule::Schedule;

pub(crate) use error::raise;
pub use wengert_autograd::{Buffer, Parameter};
pub use wengert_tensor::Generator;
pub use wengert_tensor::ops::{
    BceLoss, BceWithLogitsLoss, HingeEmbeddingLoss, HuberLoss, KlDivLoss, L1Loss, LossReduction, MseLoss,
    PoissonNllLoss, SmoothL1Loss, SoftMarginLoss,
};
pub use wengert_tensor::ops::{InterpolateMode, PadMode};

/// The items that most models and training loops need.
pub mod prelude {
    pub use crate::{Adam, AdamW, Layer, Linear, Module, Optimizer, ReLU, Sequential, Sgd};
    pub use crate::{
        BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, GRU, LSTM, LayerNorm, MaxPool2d,
    };
    pub use crate::{CrossEntropyLoss, DataLoader, Dataset, Samples, accuracy, cross_entropy, load, save};
}
