//! The settings of an attention layer, and the initial values of its parameters.

use wengert_autograd::Parameter;
use wengert_tensor::{Float, Generator, Tensor};

use crate::init;
use crate::layers::attention::multihead::MultiheadAttention;
use crate::layers::linear::Linear;
use crate::layers::regularization::expect_probability;

/// The settings of a [`MultiheadAttention`] before it is built.
#[derive(Clone, Debug)]
pub struct AttentionBuilder {
    embed_dim: usize,
    num_heads: usize,
    dropout: f64,
    bias: bool,
    kdim: usize,
    vdim: usize,
    batch_first: bool,
}

impl<T: Float> MultiheadAttention<T> {
    /// Returns a layer of `num_heads` heads over vectors of `embed_dim` elements. [`builder`](MultiheadAttention::builder) gives a builder for
    /// other settings.
    ///
    /// Initial values are drawn as in PyTorch: the weights of queries, keys and values from Xavier's uniform distribution, and the weight of the
    /// output layer uniformly from -1/√e to 1/√e. Here e is `embed_dim`. The biases are 0.
    ///
    /// # Panics
    ///
    /// If `num_heads` does not divide `embed_dim`, or there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(embed_dim: usize, num_heads: usize, generator: &mut Generator) -> Self {
        MultiheadAttention::builder(embed_dim, num_heads).build(generator)
    }
}

impl MultiheadAttention<f32> {
    /// Returns the settings of a layer of `num_heads` heads over vectors of `embed_dim` elements. [`AttentionBuilder::build`] chooses the
    /// element type.
    pub fn builder(embed_dim: usize, num_heads: usize) -> AttentionBuilder {
        let (kdim, vdim) = (embed_dim, embed_dim);
        AttentionBuilder { embed_dim, num_heads, dropout: 0.0, bias: true, kdim, vdim, batch_first: false }
    }
}

impl AttentionBuilder {
    /// Sets the probability, from 0 to 1, with which dropout sets an attention weight to 0; 0 by default. Dropout happens on training tapes
    /// only. [`build`](Self::build) checks the range.
    #[must_use]
    pub fn dropout(self, p: f64) -> Self {
        AttentionBuilder { dropout: p, ..self }
    }

    /// Chooses whether the layer has biases; true by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        AttentionBuilder { bias, ..self }
    }

    /// Sets the number of features of the input `key`; by default `embed_dim`.
    #[must_use]
    pub fn kdim(self, kdim: usize) -> Self {
        AttentionBuilder { kdim, ..self }
    }

    /// Sets the number of features of the input `value`; by default `embed_dim`.
    #[must_use]
    pub fn vdim(self, vdim: usize) -> Self {
        AttentionBuilder { vdim, ..self }
    }

    /// Makes the layer take inputs `[n, l, e]` instead of `[l, n, e]`, for n sequences of length l with e features.
    #[must_use]
    pub fn batch_first(self) -> Self {
        AttentionBuilder { batch_first: true, ..self }
    }

    /// Builds the layer.
    ///
    /// # Panics
    ///
    /// If `num_heads` does not divide `embed_dim`, the probability of [`dropout`](Self::dropout) is not from 0 to 1, or there is not enough
    /// memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> MultiheadAttention<T> {
        let AttentionBuilder { embed_dim: e, num_heads, dropout, bias, kdim, vdim, batch_first } = self;
        assert!(
            num_heads > 0 && e.is_multiple_of(num_heads),
            "embed_dim must be divisible by num_heads, but they are {e} and {num_heads}"
        );
        expect_probability(dropout);
        let [mut joint, mut q_proj_weight, mut k_proj_weight, mut v_proj_weight] = [None, None, None, None];
        if [kdim, vdim] == [e, e] {
            joint = Some(Parameter::new(init::xavier_uniform([3 * e, e], 1.0, generator)));
        } else {
            q_proj_weight = Some(Parameter::new(init::xavier_uniform([e, e], 1.0, generator)));
            k_proj_weight = Some(Parameter::new(init::xavier_uniform([e, kdim], 1.0, generator)));
            v_proj_weight = Some(Parameter::new(init::xavier_uniform([e, vdim], 1.0, generator)));
        }
        let mut out_proj = Linear::without_bias(e, e, generator);
        let mut in_proj_bias = None;
        if bias {
            in_proj_bias = Some(Parameter::new(Tensor::zeros([3 * e])));
            out_proj.bias = Some(Parameter::new(Tensor::zeros([e])));
        }
        MultiheadAttention {
            in_proj_weight: joint,
            q_proj_weight,
            k_proj_weight,
            v_proj_weight,
            in_proj_bias,
            out_proj,
            num_heads,
            dropout,
            batch_first,
        }
    }
}
