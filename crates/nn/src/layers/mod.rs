//! Layers, with PyTorch's names, layouts and initial distributions.

mod activation;
mod adaptive_pooling;
mod attention;
mod attention_masks;
mod batch_norm;
mod bilinear;
#[cfg(test)]
mod check;
mod convolution;
mod dropout;
mod embedding;
mod embedding_bag;
mod instance_norm;
mod layer;
mod linear;
mod lp_pooling;
mod normalization;
mod pooling;
mod position;
mod recurrent;
mod recurrent_cell;
mod reshape;
mod sequential;
mod transformer;

pub use activation::{
    CELU, ELU, GELU, GELUTanh, GLU, LeakyReLU, LogSigmoid, Mish, PReLU, RReLU, ReLU, ReLU6, SELU, SiLU,
};
pub use activation::{Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSoftmax, Sigmoid, Softmax, Softmin, Softplus};
pub use activation::{Softshrink, Softsign, Tanh, Tanhshrink, Threshold};
pub use adaptive_pooling::{AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d};
pub use adaptive_pooling::{AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d};
pub use attention::{AttentionBuilder, AttentionCache, MultiheadAttention};
pub use attention_masks::AttentionMasks;
pub use batch_norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d};
pub use bilinear::Bilinear;
pub use convolution::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder};
pub use convolution::{ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use dropout::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, DropoutChannels, FeatureAlphaDropout};
pub use embedding::{Embedding, EmbeddingBuilder, RowLimit};
pub use embedding_bag::{BagMode, EmbeddingBag, EmbeddingBagBuilder};
pub use instance_norm::{InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use layer::Layer;
pub use linear::Linear;
pub use lp_pooling::{LPPool, LPPool1d, LPPool2d, LPPool3d};
pub use normalization::{GroupNorm, LayerNorm, RMSNorm};
pub use pooling::{AvgPool, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d};
pub use position::{LearnedPositions, RotaryPairs, rotary, sinusoidal_positions, try_rotary, try_sinusoidal_positions};
pub use recurrent::{GRU, LSTM, RNN, RecurrentBuilder, RecurrentLayer};
pub use recurrent_cell::{
    CellVariables, GRUCell, Gated, LSTMCell, LongShortTerm, RNNCell, RecurrentCell, RecurrentKind, RecurrentState,
    Simple,
};
pub use reshape::{Flatten, Identity, Pad, PixelShuffle, Unflatten, Upsample};
pub use sequential::Sequential;
pub use transformer::{
    DecoderCache, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer,
    TransformerOptions,
};
