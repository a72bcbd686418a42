//! Layers and losses that are recorded on the tape, with optimisers, schedules, data sets, metrics, training loops and checkpoints.
//!
//! Layers are plain data: a model is a struct of layers, and a layer is a struct of [`Parameter`]s, [`Buffer`]s and settings. There is no
//! registry. The parameters of a model are the parameters of its fields (see [`Module`]). The code of this crate depends only on the shapes
//! of tensors and variables, so their elements may have any layout in memory.
//!
//! A mistake in a program, such as a wrong shape, panics at the caller's line. Most methods that can panic have a twin with the prefix
//! `try_` that returns an error. Most constructors and a few other methods have no twin; their documentation says when they panic.
//! Functions that read or write files always return a `Result`.
//!
//! ```
//! # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
//! use wengert::prelude::*;
//! use wengert::nn::{Generator, Layer, Linear, Module, Optimizer, Sgd, cross_entropy};
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
//! # Layers
//!
//! Layers that exist in PyTorch have PyTorch's names (except for the padding layers; see [`Pad`]), layouts and initial distributions. In
//! shapes, `n` is the number of examples in a batch, `c` the number of channels, `t` the number of time steps, and `l`, `h`, `w`, `d` are
//! lengths.
//!
//! | layer | value |
//! |---|---|
//! | [`Linear`] | `x Wᵀ + b`, from `[…, in]` to `[…, out]` |
//! | [`Bilinear`] | `x₁ᵀ W x₂ + b`, from two inputs to `[…, out]` |
//! | [`CosineSimilarity`], [`PairwiseDistance`] | the cosine of the angle of two inputs; their distance |
//! | [`Embedding`] | the row of a trained table for each index |
//! | [`EmbeddingBag`] | the sum, mean or maximum of rows for each bag of indices ([`BagMode`]) |
//! | [`Sequential`] | layers that are applied one after the other |
//! | [`Identity`] | its input |
//!
//! | convolution or pooling | value |
//! |---|---|
//! | [`Conv1d`], [`Conv2d`], [`Conv3d`] | a convolution of sequences, images, volumes; all three are a [`Conv`] |
//! | [`ConvTranspose1d`], [`ConvTranspose2d`], [`ConvTranspose3d`] | the adjoint of a convolution, which enlarges ([`ConvTranspose`]) |
//! | [`MaxPool1d`], [`MaxPool2d`], [`MaxPool3d`] | the maximum of each window ([`MaxPool`]) |
//! | [`MaxUnpool1d`], [`MaxUnpool2d`], [`MaxUnpool3d`] | zeros with the maxima at their positions ([`MaxUnpool`]) |
//! | [`AvgPool1d`], [`AvgPool2d`], [`AvgPool3d`] | the mean of each window ([`AvgPool`]) |
//! | [`LPPool1d`], [`LPPool2d`], [`LPPool3d`] | the p-norm of each window ([`LPPool`]) |
//! | [`AdaptiveAvgPool1d`], [`AdaptiveAvgPool2d`], [`AdaptiveAvgPool3d`] | means, for an output of a given size ([`AdaptiveAvgPool`]) |
//! | [`AdaptiveMaxPool1d`], [`AdaptiveMaxPool2d`], [`AdaptiveMaxPool3d`] | maxima, for an output of a given size ([`AdaptiveMaxPool`]) |
//!
//! | normalization or dropout | value |
//! |---|---|
//! | [`BatchNorm1d`], [`BatchNorm2d`], [`BatchNorm3d`] | each channel with mean 0 and variance 1 over the batch (in evaluation: by running statistics), then scaled and shifted ([`BatchNorm`]) |
//! | [`LayerNorm`] | the same over the last dimensions of each example |
//! | [`RMSNorm`] | the last dimensions, divided by their root mean square |
//! | [`GroupNorm`] | mean 0 and variance 1 in each group of channels of each example |
//! | [`LocalResponseNorm`] | each element, divided by (k + alpha · m)^beta, where m is the mean square over neighbouring channels |
//! | [`InstanceNorm1d`], [`InstanceNorm2d`], [`InstanceNorm3d`] | mean 0 and variance 1 in each channel of each example ([`InstanceNorm`]) |
//! | [`WeightNorm`], [`SpectralNorm`] | a weight with its lengths as parameters; a weight divided by its largest singular value |
//! | [`Dropout`] | in training, 0 with probability `p`; the other elements are divided by 1 - `p` |
//! | [`Dropout1d`], [`Dropout2d`], [`Dropout3d`] | dropout of whole channels ([`DropoutChannels`]) |
//! | [`AlphaDropout`], [`FeatureAlphaDropout`] | dropout for use after [`SELU`], of elements and of channels |
//!
//! | activation | value |
//! |---|---|
//! | [`ReLU`], [`ReLU6`], [`LeakyReLU`], [`PReLU`], [`RReLU`] | `max(x, 0)`; bounded by 6; with a fixed, trained or random slope below 0 |
//! | [`ELU`], [`CELU`], [`SELU`] | `x` (or a multiple) above 0, and an exponential below |
//! | [`GELU`], [`GELUTanh`], [`SiLU`], [`Mish`] | `x` times a smooth step |
//! | [`Sigmoid`], [`Tanh`], [`Softplus`], [`Softsign`], [`LogSigmoid`] | functions of one number without kinks |
//! | [`Hardtanh`], [`Hardsigmoid`], [`Hardswish`], [`Threshold`] | functions made of linear or quadratic pieces |
//! | [`Softshrink`], [`Hardshrink`], [`Tanhshrink`] | functions that map numbers near 0 to 0 or close to 0 |
//! | [`Softmax`], [`LogSoftmax`], [`Softmin`] | positive numbers with sum 1 along a dimension, or their logarithms |
//! | [`GLU`] | one half of a dimension, times the sigmoid of the other half |
//!
//! | sequences and attention | value |
//! |---|---|
//! | [`RNN`], [`LSTM`], [`GRU`] | a recurrent network over `[t, n, in]`; all three are a [`RecurrentLayer`] |
//! | [`RNNCell`], [`LSTMCell`], [`GRUCell`] | one step of a recurrent network ([`RecurrentCell`]) |
//! | [`MultiheadAttention`] | attention with several heads |
//! | [`TransformerEncoder`], [`TransformerEncoderLayer`] | self-attention and linear layers, stacked |
//! | [`TransformerDecoder`], [`TransformerDecoderLayer`] | the same, with attention to a second sequence |
//! | [`Transformer`] | an encoder and a decoder, from one sequence to another |
//! | [`LearnedPositions`], [`sinusoidal_positions`], [`rotary`] | encodings of positions ([`RotaryPairs`]) |
//!
//! | shape | value |
//! |---|---|
//! | [`Flatten`], [`Unflatten`] | merged dimensions; a divided dimension |
//! | [`Unfold`], [`Fold`] | the sliding windows of images as columns; columns added to images |
//! | [`Pad`] | padding around the last dimensions ([`PadMode`]) |
//! | [`PixelShuffle`], [`PixelUnshuffle`], [`ChannelShuffle`] | channels moved into pixels, pixels into channels, and channels between groups |
//! | [`Upsample`] | resampled sequences, images or volumes ([`InterpolateMode`]) |
//!
//! The types of the settings, inputs and states of these layers: [`LayerInput`], [`ConvBuilder`], [`EmbeddingBuilder`], [`EmbeddingBagBuilder`],
//! [`RowLimit`], [`RecurrentBuilder`], [`RecurrentKind`], [`RecurrentState`], [`CellVariables`], [`Simple`], [`Gated`], [`LongShortTerm`],
//! [`AttentionBuilder`], [`AttentionMasks`], [`AttentionCache`], [`DecoderCache`], [`TransformerOptions`].
//!
//! # Losses
//!
//! Each loss is a type with options, such as [`CrossEntropyLoss`], and a function with the default options, such as [`cross_entropy`].
//! Functions that the table does not list, such as `mse_loss`, are in the tensor crate.
//!
//! | loss | compares |
//! |---|---|
//! | [`CrossEntropyLoss`], [`cross_entropy`] | logits with class indices or probabilities |
//! | [`NllLoss`], [`nll_loss`] | log-probabilities with class indices |
//! | [`BceLoss`], [`BceWithLogitsLoss`] | probabilities or logits of two classes with 0 and 1 |
//! | [`MseLoss`], [`L1Loss`], [`SmoothL1Loss`], [`HuberLoss`] | numbers with numbers |
//! | [`GaussianNllLoss`], [`gaussian_nll_loss`] | predicted means and variances with numbers |
//! | [`PoissonNllLoss`] | predicted rates with counts |
//! | [`KlDivLoss`] | log-probabilities with probabilities |
//! | [`CtcLoss`], [`ctc_loss`] | log-probabilities of steps with a shorter sequence of classes |
//! | [`MultiMarginLoss`], [`multi_margin_loss`] | scores with class indices, by a margin |
//! | [`MultilabelMarginLoss`], [`multilabel_margin_loss`] | scores with several labels, by a margin |
//! | [`MultilabelSoftMarginLoss`], [`multilabel_soft_margin_loss`], [`SoftMarginLoss`] | scores with several labels, or with 1 and -1, by a logarithm |
//! | [`MarginRankingLoss`], [`margin_ranking_loss`] | the order of two scores |
//! | [`CosineEmbeddingLoss`], [`cosine_embedding_loss`], [`HingeEmbeddingLoss`] | pairs that should be similar or different |
//! | [`TripletMarginLoss`], [`triplet_margin_loss`] | the distances of an anchor to a positive and a negative example |
//!
//! Parts of these losses: [`LossReduction`], [`WeightedLoss`], [`CrossEntropy`], [`NegativeLogLikelihood`], [`MultiMargin`],
//! [`LossOfThree`], [`FormulaOfThree`], [`CosineEmbedding`], [`GaussianNll`], [`MarginRanking`], [`MultilabelSoftMargin`].
//!
//! # Optimisers
//!
//! An [`Optimizer`] changes the parameters of a model by their gradients. Its settings may differ between groups of parameters.
//!
//! | optimiser | a step |
//! |---|---|
//! | [`Sgd`] | the gradient, optionally with momentum |
//! | [`Adam`], [`AdamW`] | the mean gradient, divided by the root of the mean squared gradient; `AdamW` decouples the weight decay |
//! | [`Adamax`], [`NAdam`], [`RAdam`] | variants of Adam: with a running maximum; with Nesterov's momentum; with plain momentum in the first steps |
//! | [`Lion`] | the sign of a mix of momentum and gradient |
//! | [`Adafactor`] | the gradient, divided by the root of an estimated mean square, which is stored only by the rows and columns of a matrix to save memory |
//! | [`Muon`] | the momentum of a matrix, with nearly equal singular values |
//! | [`RMSprop`], [`Adagrad`], [`Adadelta`] | the gradient, divided by the root of its mean or total square |
//! | [`Asgd`] | the gradient; also keeps the mean of each parameter over the steps |
//! | [`Rprop`] | the sign of the gradient, with a length for each element; for whole data sets |
//! | [`Lbfgs`] | quasi-Newton moves, with or without a line search; for whole data sets |
//! | [`WeightAverage`] | no step: a running average of a model's parameters |
//!
//! Parts of optimisers: [`Common`], [`Setting`], [`Range`], [`States`], [`Archive`], [`Resume`], [`PenalizedGradient`],
//! [`DecayedParameter`].
//!
//! # Learning rates
//!
//! A [`Schedule`] gives the learning rate of each step.
//!
//! | schedule | rate |
//! |---|---|
//! | [`ConstantLR`](schedule::ConstantLR), [`LinearLR`](schedule::LinearLR) | a constant or linear start, then a constant rate |
//! | [`StepLR`](schedule::StepLR), [`MultiStepLR`](schedule::MultiStepLR) | a factor at regular or given steps |
//! | [`ExponentialLR`](schedule::ExponentialLR), [`PolynomialLR`](schedule::PolynomialLR) | an exponential or polynomial decay |
//! | [`MultiplicativeLR`](schedule::MultiplicativeLR) | a factor for each step, by a function of the step |
//! | [`CosineAnnealingLR`](schedule::CosineAnnealingLR), [`CosineAnnealingWarmRestarts`](schedule::CosineAnnealingWarmRestarts) | half a cosine: down and up in turn, or down and then anew from the start |
//! | [`OneCycleLR`](schedule::OneCycleLR), [`CyclicLR`](schedule::CyclicLR) | one rise and fall, or many ([`Anneal`](schedule::Anneal), [`Cycle`](schedule::Cycle)) |
//! | [`ReduceLROnPlateau`](schedule::ReduceLROnPlateau) | a factor when a measure no longer improves ([`Plateau`](schedule::Plateau)) |
//! | [`Warmup`](schedule::Warmup), [`SequentialLR`](schedule::SequentialLR), [`ChainedLR`](schedule::ChainedLR) | combinations of schedules |
//!
//! # Data
//!
//! | item | contents |
//! |---|---|
//! | [`Dataset`], [`Samples`], [`Sequences`], [`Padded`], [`ConcatDataset`], [`JoinBatches`] | samples by index: tensors, inputs with targets, sequences of different lengths, joined data sets |
//! | [`DataLoader`], [`Batches`] | the batches of an epoch, in an order that a seed determines |
//! | [`augment`], [`split`](mod@split) | random changes of samples; training and held-out samples |
//! | [`Normalize`] | a shift and a scale for inputs |
//! | [`Table`], [`Classes`], [`read_table`] | tables with named columns; a column of classes; a table of numbers |
//! | [`read_npy`], [`read_idx`] | arrays of NumPy, files of MNIST; `read_npz` with the feature `npz` |
//! | [`write_npy`], [`NumpyArray`] | files for NumPy; `write_npz` with the feature `npz` |
//! | [`read_text`], [`Vocabulary`], [`next_tokens`], [`pad_sequence`] | texts as sequences of tokens |
//! | `ImageFolder`, `ImageReader` | folders of images, with the feature `images` |
//!
//! # Training and files
//!
//! | item | contents |
//! |---|---|
//! | [`Fit`], [`evaluate`], [`evaluate_heads`], [`EarlyStopping`], [`Progress`] | a training loop |
//! | [`predict`], [`predict_heads`] | the outputs of a model for all batches of a loader |
//! | [`History`], [`Epoch`], [`Scores`] | the results of a training run, epoch by epoch |
//! | [`accuracy`] | the share of correct predictions in one batch |
//! | [`metrics`] | accuracy, confusion matrix, curves and errors over all batches of an epoch |
//! | [`save`], [`load`], [`Saved`], [`LoadReport`] | models in files that PyTorch reads |
//! | [`to_bytes`], [`from_bytes`] | models as bytes in memory, in the same format |
//! | [`Checkpoint`] | the whole state of a training run in one file |
//! | [`write_atomically`] | a file, written completely or not at all |
//! | `plots` | pictures of a training run and its results, with the feature `plots` |
//!
//! # Models and their parts
//!
//! | item | contents |
//! |---|---|
//! | [`Hooks`] | functions that see or change the outputs of layers, and the gradients of these outputs |
//! | [`Module`], [`Leaf`], [`LeafMut`], [`AnyBuffer`], [`update_buffers`] | parameters and buffers by path; derived for structs |
//! | [`Layer`] | a map of one variable to another |
//! | [`Parameter`], [`Buffer`] | a trained tensor; a tensor that no gradient changes |
//! | [`init`], [`Generator`] | initial values of parameters; random numbers |
//! | [`per_sample_gradients`] | the gradients of each sample |
//! | [`bind_vector`] | a model as a function of one vector |
//! | [`check_model`], [`ModelFailure`] | a model's derivatives compared with finite differences |
//! | [`Error`], [`Result`], [`KeyMismatch`], [`Place`] | errors |

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

pub use checkpoint::{Checkpoint, LoadReport, Saved, from_bytes, load, save, to_bytes};
pub use data::{
    Batches, Classes, ConcatDataset, DataLoader, Dataset, JoinBatches, Padded, Samples, Sequences, Table, Vocabulary,
};
#[cfg(feature = "images")]
pub use data::{ImageFolder, ImageReader};
pub use data::{NumpyArray, write_npy};
pub use data::{augment, next_tokens, pad_sequence, read_idx, read_npy, read_table, read_text, split};
#[cfg(feature = "npz")]
pub use data::{read_npz, write_npz};
pub use error::{Error, KeyMismatch, Place, Result};
pub use file::write_atomically;
pub use fit::{EarlyStopping, Fit, Progress, evaluate, evaluate_heads, predict, predict_heads};
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
pub use layers::{ChannelShuffle, Flatten, Fold, Identity, Pad, PixelShuffle, PixelUnshuffle};
pub use layers::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder, Layer, LayerInput, Linear, Sequential};
pub use layers::{ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use layers::{CosineSimilarity, PairwiseDistance};
pub use layers::{
    DecoderCache, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer, TransformerOptions,
};
pub use layers::{
    GroupNorm, InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm, LocalResponseNorm, RMSNorm,
};
pub use layers::{Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSoftmax, Sigmoid, Softmax, Softmin, Softplus};
pub use layers::{LPPool, LPPool1d, LPPool2d, LPPool3d};
pub use layers::{LearnedPositions, RotaryPairs, rotary, sinusoidal_positions, try_rotary, try_sinusoidal_positions};
pub use layers::{MaxUnpool, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, Unflatten, Unfold, Upsample};
pub use layers::{Softshrink, Softsign, Tanh, Tanhshrink, Threshold};
pub use layers::{SpectralNorm, WeightNorm};
pub use loss::{
    CosineEmbedding, CrossEntropy, FormulaOfThree, GaussianNll, LossOfThree, MarginRanking, MultiMargin,
    MultilabelSoftMargin, NegativeLogLikelihood, WeightedLoss,
};
pub use loss::{
    CosineEmbeddingLoss, CrossEntropyLoss, CtcLoss, GaussianNllLoss, MarginRankingLoss, MultiMarginLoss,
    MultilabelMarginLoss, MultilabelSoftMarginLoss, NllLoss, TripletMarginLoss, cosine_embedding_loss, cross_entropy,
    ctc_loss, gaussian_nll_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss, nll_loss, triplet_margin_loss, try_cosine_embedding_loss, try_cross_entropy,
    try_ctc_loss, try_gaussian_nll_loss, try_margin_ranking_loss, try_multi_margin_loss, try_multilabel_margin_loss,
    try_multilabel_soft_margin_loss, try_nll_loss, try_triplet_margin_loss,
};
pub use metrics::{accuracy, try_accuracy};
pub use module::{
    AnyBuffer, Hooks, Leaf, LeafMut, Module, bind_vector, try_bind_vector, try_update_buffers, update_buffers,
};
pub use normalize::Normalize;
pub use optim::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Archive, Asgd, Common, DecayedParameter, Lbfgs, Lion, Muon,
    NAdam, Optimizer, PenalizedGradient, RAdam, RMSprop, Range, Resume, Rprop, Setting, Sgd, States, WeightAverage,
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
    pub use crate::{Adam, AdamW, Layer, Linear, Module, Optimizer, Schedule, Sequential, Sgd};
    pub use crate::{
        BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, GRU, LSTM, LayerNorm, MaxPool2d,
    };
    pub use crate::{CrossEntropyLoss, DataLoader, Dataset, Samples, accuracy, cross_entropy, load, nll_loss, save};
    pub use crate::{GELU, ReLU, Sigmoid, Tanh};
}
