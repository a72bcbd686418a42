//! Layers. A layer that exists in PyTorch has PyTorch's name, with three exceptions: [`Pad`] replaces all padding layers, [`Softmax`] also
//! replaces `Softmax2d`, and [`Upsample`] also replaces `UpsamplingNearest2d` and `UpsamplingBilinear2d`. The parameters have PyTorch's
//! layout and initial distributions.

mod activation;
mod attention;
mod convolution;
mod distance;
mod embedding;
mod forward;
mod layer;
mod linear;
mod normalization;
mod operation_layer;
mod pooling;
mod recurrent;
mod regularization;
mod sequential;
mod shape;
#[cfg(test)]
mod testing;
mod transformer;

pub use activation::{
    CELU, ELU, GELU, GELUTanh, GLU, LeakyReLU, LogSigmoid, Mish, PReLU, RReLU, ReLU, ReLU6, SELU, SiLU,
};
pub use activation::{Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSoftmax, Sigmoid, Softmax, Softmin, Softplus};
pub use activation::{Softshrink, Softsign, Tanh, Tanhshrink, Threshold};
pub use attention::{AttentionBuilder, AttentionCache, AttentionMasks, MultiheadAttention};
pub use convolution::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder};
pub use convolution::{ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use distance::{CosineSimilarity, PairwiseDistance};
pub use embedding::{BagMode, Embedding, EmbeddingBag, EmbeddingBagBuilder, EmbeddingBuilder, RowLimit};
pub use embedding::{
    LearnedPositions, RotaryPairs, rotary, sinusoidal_positions, try_rotary, try_sinusoidal_positions,
};
pub use layer::{Layer, LayerInput};
pub use linear::{Bilinear, Linear};
pub use normalization::{
    BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm,
};
pub use normalization::{InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, SpectralNorm, WeightNorm};
pub use pooling::{AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d};
pub use pooling::{AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d};
pub use pooling::{AvgPool, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d};
pub use pooling::{LPPool, LPPool1d, LPPool2d, LPPool3d};
pub use pooling::{MaxUnpool, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d};
pub use recurrent::{
    CellVariables, GRU, GRUCell, Gated, LSTM, LSTMCell, LongShortTerm, RNN, RNNCell, RecurrentBuilder, RecurrentCell,
    RecurrentKind, RecurrentLayer, RecurrentState, Simple,
};
pub use regularization::{
    AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, DropoutChannels, FeatureAlphaDropout,
};
pub use sequential::Sequential;
pub use shape::{
    ChannelShuffle, Flatten, Fold, Identity, Pad, PixelShuffle, PixelUnshuffle, Unflatten, Unfold, Upsample,
};
pub use transformer::{
    DecoderCache, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer, TransformerOptions,
};
