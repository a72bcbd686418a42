//! Attention with several heads (Vaswani et al. 2017, "Attention Is All You Need", 3.2.2): the parameters of the layer, and the projections
//! between the layer's inputs and its heads.
//!
//! Each head computes the formula of the operation `scaled_dot_product_attention` of the tensor crate. PyTorch's options `add_bias_kv` and
//! `add_zero_attn` do not exist.

use wengert_autograd::{Error as TapeError, Parameter, Var};
use wengert_tensor::ops::{LinearMaps as _, TensorLike, Views as _};
use wengert_tensor::{Error as TensorError, Float, Shape, Site};

use crate::layers::forward::optional_parameter;
use crate::layers::linear::Linear;
use crate::module::Module;

/// Attention with several heads. The layout of the weights and the distributions of the initial parameters are PyTorch's. PyTorch:
/// `torch.nn.MultiheadAttention`.
///
/// Inputs are `[l, n, e]`, or `[n, l, e]` with [`batch_first`](crate::AttentionBuilder::batch_first), or `[l, e]`. Here
/// `l` is the length of the sequences, `n` their number, and `e` the number of features.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AttentionMasks, Generator, MultiheadAttention};
///
/// let generator = &mut Generator::new(0);
/// let attention: MultiheadAttention = MultiheadAttention::builder(16, 4).batch_first().build(generator);
/// let tape = Tape::new();
/// let (x, memory) = (tape.constant(&Tensor::ones([2, 5, 16])), tape.constant(&Tensor::ones([2, 7, 16])));
/// let y = attention.self_attend(x, AttentionMasks::causal());
/// let z = attention.attend(y, memory, memory, AttentionMasks::new());
/// assert_eq!(z.shape(), [2, 5, 16]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct MultiheadAttention<T: Float = f32> {
    /// The weights of queries, keys and values in one tensor, `[3 e, e]`, for inputs with `e` features. `None` if the inputs `key` or `value`
    /// have another number of features.
    pub in_proj_weight: Option<Parameter<T>>,
    /// The weight of queries, `[e, e]` for `e` features. `None` if `in_proj_weight` has the weights.
    pub q_proj_weight: Option<Parameter<T>>,
    /// The weight of keys, `[e, kdim]`, where `kdim` is the number of features of the input `key`. `None` if `in_proj_weight` has the
    /// weights.
    pub k_proj_weight: Option<Parameter<T>>,
    /// The weight of values, `[e, vdim]`, where `vdim` is the number of features of the input `value`. `None` if `in_proj_weight` has the
    /// weights.
    pub v_proj_weight: Option<Parameter<T>>,
    /// The biases of queries, keys and values, `[3 e]`, for outputs with `e` features. `None` if the layer has no biases.
    pub in_proj_bias: Option<Parameter<T>>,
    /// The linear layer that is applied to the joined outputs of the heads.
    pub out_proj: Linear<T>,
    #[module(skip)]
    pub(super) num_heads: usize,
    #[module(skip)]
    pub(super) dropout: f64,
    #[module(skip)]
    pub(super) batch_first: bool,
}

impl<T: Float> MultiheadAttention<T> {
    /// Returns the description of the layer and its inputs for an error.
    pub(super) fn describe(&self, inputs: &[Var<'_, T>]) -> String {
        let shapes: Vec<String> = inputs.iter().map(|x| x.shape().to_string()).collect();
        format!(
            "MultiheadAttention({}, {}) on inputs of shapes {}",
            self.embed_dim(),
            self.num_heads,
            shapes.join(", ")
        )
    }

    /// Returns the number of features of the output, `e`.
    pub(super) fn embed_dim(&self) -> usize {
        self.out_proj.weight.value.shape()[0]
    }

    /// Computes queries, keys and values of one input `x`, by a single matrix product if the layer has a joint weight.
    #[track_caller]
    pub(super) fn self_attention_heads<'t>(&self, x: Var<'t, T>) -> Result<[Var<'t, T>; 3], TapeError> {
        let Some(weight) = &self.in_proj_weight else { return self.attention_heads([x, x, x]) };
        let weight = x.tape().try_parameter(weight)?;
        let bias = optional_parameter(x.tape(), self.in_proj_bias.as_ref())?;
        let all = x.try_linear(&weight, bias.as_ref())?;
        self.split_in_three(&all)
    }

    /// Splits `all`, the joint projection `[…, 3 e]`, into queries, keys and values. Each has the shape `[n, heads, l, e / heads]`, for n
    /// sequences of length l with e features.
    #[track_caller]
    pub(super) fn split_in_three<A: TensorLike>(&self, all: &A) -> Result<[A; 3], A::Error> {
        let (last, width) = (all.shape().rank() as isize - 1, self.embed_dim() as isize);
        Ok([
            self.split_heads(&all.try_narrow(last, 0, width)?)?,
            self.split_heads(&all.try_narrow(last, width, width)?)?,
            self.split_heads(&all.try_narrow(last, 2 * width, width)?)?,
        ])
    }

    /// Computes queries, keys and values from three inputs. Each result has the shape `[n, heads, l, e / heads]`, for n
    /// sequences of length l with e features. Returns an error if the shapes of the inputs do not fit.
    #[track_caller]
    pub(super) fn attention_heads<'t>(&self, inputs: [Var<'t, T>; 3]) -> Result<[Var<'t, T>; 3], TapeError> {
        let [query, key, value] = inputs;
        let shapes = inputs.map(Var::shape);
        let batch = |shape: &Shape| match **shape {
            [_, _] => Some(1),
            [n, _, _] if self.batch_first => Some(n),
            [_, n, _] => Some(n),
            _ => None,
        };
        let lengths = [&shapes[1], &shapes[2]].map(|shape| Shape::from(&shape[..shape.rank().saturating_sub(1)]));
        let ranks = shapes.each_ref().map(|shape| shape.rank());
        if ranks != [ranks[0]; 3] || batch(&shapes[0]) != batch(&shapes[1]) || lengths[0] != lengths[1] {
            let message = format!(
                "query, key and value have the shapes {}, {} and {}: expected equal numbers of examples, and as many values as keys",
                shapes[0], shapes[1], shapes[2]
            );
            return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
        }
        Ok([
            self.split_heads(&self.project(query, 0, 1)?)?,
            self.split_heads(&self.project(key, 1, 1)?)?,
            self.split_heads(&self.project(value, 2, 1)?)?,
        ])
    }

    /// Applies `count` of the three projections to `x`, beginning with the projection `first`: 0 for queries, 1 for
    /// keys, 2 for values. A layer with separate weights can apply only one projection at a time.
    #[track_caller]
    pub(super) fn project<'t>(&self, x: Var<'t, T>, first: usize, count: usize) -> Result<Var<'t, T>, TapeError> {
        let (tape, width) = (x.tape(), self.embed_dim());
        let (start, length) = ((first * width) as isize, (count * width) as isize);
        let separate = [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight][first].as_ref();
        let weight = match (separate, &self.in_proj_weight) {
            (Some(separate), _) => tape.try_parameter(separate)?,
            (None, Some(joint)) => tape.try_parameter(joint)?.try_narrow(0, start, length)?,
            (None, None) => {
                let message =
                    "the layer has neither in_proj_weight nor a weight for this input: set `in_proj_weight`".to_owned();
                return Err(TensorError::Argument { message, at: Site::here("attend") }.into());
            }
        };
        let bias = match &self.in_proj_bias {
            Some(bias) => Some(tape.try_parameter(bias)?.try_narrow(0, start, length)?),
            None => None,
        };
        x.try_linear(&weight, bias.as_ref())
    }

    /// Splits the e features of `x`, n sequences of length l, into heads. `x` is `[l, n, e]` or another shape that the layer takes; the
    /// result is `[n, heads, l, e / heads]`.
    #[track_caller]
    pub(super) fn split_heads<A: TensorLike>(&self, x: &A) -> Result<A, A::Error> {
        let shape = x.shape();
        let (heads, width) = (self.num_heads, self.embed_dim() / self.num_heads);
        match *shape {
            [l, _] => x.try_reshape([l, 1, heads, width])?.try_permute([1, 2, 0, 3]),
            [n, l, _] if self.batch_first => x.try_reshape([n, l, heads, width])?.try_permute([0, 2, 1, 3]),
            [l, n, _] => x.try_reshape([l, n, heads, width])?.try_permute([1, 2, 0, 3]),
            _ => {
                let message = format!("Expected inputs of 2 or 3 dimensions, got one of shape {shape}");
                Err(TensorError::Argument { message, at: Site::here("attend") }.into())
            }
        }
    }

    /// Joins the outputs of the heads, `[n, heads, l, e / heads]` for n sequences of length l, to e features. The result has the order of
    /// dimensions that the layer's inputs have. `rank` is the number of dimensions of the inputs. This is the inverse of `split_heads`.
    #[track_caller]
    pub(super) fn join_heads<A: TensorLike>(&self, heads: &A, rank: usize) -> Result<A, A::Error> {
        let shape = heads.shape();
        let (n, l, width) = (shape[0], shape[2], self.embed_dim());
        match rank {
            2 => heads.try_permute([2, 0, 1, 3])?.try_reshape([l, width]),
            _ if self.batch_first => heads.try_permute([0, 2, 1, 3])?.try_reshape([n, l, width]),
            _ => heads.try_permute([2, 0, 1, 3])?.try_reshape([l, n, width]),
        }
    }

    /// Applies the output layer to `y`, the joined outputs of the heads.
    #[track_caller]
    pub(super) fn project_output<'t>(&self, y: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let weight = y.tape().try_parameter(&self.out_proj.weight)?;
        let bias = optional_parameter(y.tape(), self.out_proj.bias.as_ref())?;
        y.try_linear(&weight, bias.as_ref())
    }
}
