//! The encoder-decoder transformer.

use wengert_autograd::{Parameter, Var};
use wengert_macros::twins;
use wengert_tensor::Float;

use crate::init::xavier_uniform;
use crate::layers::attention::AttentionMasks;
use crate::layers::forward::pass_output;
use crate::layers::transformer::decoder::TransformerDecoder;
use crate::layers::transformer::encoder::TransformerEncoder;
use crate::layers::transformer::options::TransformerOptions;
use crate::module::Module;
use crate::{Generator, Result};

/// A transformer from one sequence to another: an encoder of the source, and a decoder of the target, which attends to the encoded source. The
/// encoder and the decoder each end with a normalization. The embedding of the sequences and the output layer are not part of it. PyTorch:
/// `torch.nn.Transformer`.
///
/// In training, the target is the expected sequence without its last element, and the expected outputs are the sequence without its first
/// element (teacher forcing). To generate a sequence element by element, call [`decode`](TransformerDecoder::decode) of the decoder.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AttentionMasks, Generator, Transformer, TransformerOptions};
///
/// let options = TransformerOptions::new(16, 4).dim_feedforward(32).batch_first();
/// let model = Transformer::<f32>::new(&options, 2, 2, &mut Generator::new(0));
/// let tape = Tape::new();
/// let (source, target) = (tape.constant(Tensor::ones([2, 7, 16])), tape.constant(Tensor::ones([2, 5, 16])));
/// let y = model.forward(source, target, AttentionMasks::new(), AttentionMasks::causal(), AttentionMasks::new());
/// assert_eq!(y.shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Transformer<T: Float = f32> {
    /// The encoder of the source.
    pub encoder: TransformerEncoder<T>,
    /// The decoder of the target.
    pub decoder: TransformerDecoder<T>,
}

#[twins]
impl<T: Float> Transformer<T> {
    /// Returns a transformer with the settings `options` and the given numbers of layers. Both stacks end with a normalization, also if `options`
    /// has no [`final_norm`](TransformerOptions::final_norm). As in PyTorch, the matrices are drawn from Xavier's uniform distribution.
    ///
    /// # Panics
    ///
    /// If `nhead` of `options` does not divide `d_model`, the probability of dropout is not from 0 to 1, or there is not enough memory for the
    /// parameters.
    #[track_caller]
    pub fn new(
        options: &TransformerOptions,
        num_encoder_layers: usize,
        num_decoder_layers: usize,
        generator: &mut Generator,
    ) -> Self {
        let options = options.clone().final_norm();
        let mut encoder = TransformerEncoder::new(&options, num_encoder_layers, generator);
        let mut decoder = TransformerDecoder::new(&options, num_decoder_layers, generator);
        for parameter in encoder.parameters_mut().into_iter().chain(decoder.parameters_mut()) {
            draw_matrix(parameter, generator);
        }
        Transformer { encoder, decoder }
    }

    /// Returns the decoder's output for the target `tgt` and the encoded source `src`. The masks hide positions: `src_masks` for the self-attention
    /// of the source, `tgt_masks` for the self-attention of the target, and `memory_masks` for the attention of the target to the encoded source. The
    /// target usually has [`AttentionMasks::causal`].
    ///
    /// # Errors
    ///
    /// If shapes do not fit, or variables belong to different tapes.
    pub fn try_forward<'t>(
        &self,
        src: Var<'t, T>,
        tgt: Var<'t, T>,
        src_masks: AttentionMasks<'_, 't, T>,
        tgt_masks: AttentionMasks<'_, 't, T>,
        memory_masks: AttentionMasks<'_, 't, T>,
    ) -> Result<Var<'t, T>> {
        let memory = self.encoder.try_forward_masked(src, src_masks)?;
        Ok(pass_output(self, self.decoder.try_forward(tgt, memory, tgt_masks, memory_masks)?))
    }
}

/// Draws a parameter from Xavier's uniform distribution if it has two dimensions or more. Leaves vectors unchanged.
#[track_caller]
fn draw_matrix<T: Float>(parameter: &mut Parameter<T>, generator: &mut Generator) {
    if parameter.value.rank() > 1 {
        parameter.value = xavier_uniform(parameter.value.shape(), 1.0, generator);
    }
}
