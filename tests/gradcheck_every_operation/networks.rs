//! Convolution, pooling, normalization, attention, recurrent cells, losses.

use wengert::prelude::*;
use wengert::tensor::ops::{
    AdaptivePooling, Attention, AttentionMask, CellWeights, ClassLosses, ClassOptions, Classes, Columns, ConvOptions,
    Convolution, Dropout, Embedding, EmbeddingOptions, GridMode, GridPadding, GridSampling, InterpolateMode,
    Interpolation, LikelihoodLosses, LossReduction, MarginLosses, Normalization, PoolOptions, Pooling, Recurrent,
    RegressionLosses, Softmax, TripletOptions,
};

use super::grid::{PROBABILITY, REAL, UNEQUAL};
use super::row::{Row, V, of, one, two};

/// Operations on one operand of any shape.
pub const ANY: &[Row] = one! {
    dropout: REAL => |x| x.exp().dropout(0.5, true, &mut Generator::new(7));
    dropout "of everything": REAL => |x| x.exp().dropout(1.0, true, &mut Generator::new(7));
    soft_margin_loss: REAL => |x| x.soft_margin_loss(&signs(x), LossReduction::None);
    hinge_embedding_loss: REAL => |x| (x * 2.0).hinge_embedding_loss(&signs(x), 1.0, LossReduction::Sum);
};

/// Operations on two operands that broadcast.
pub const PAIRS: &[Row] = two! {
    mse_loss: REAL, REAL, true => |x, y| x.mse_loss(&y, None, LossReduction::None);
    l1_loss: REAL, REAL, false => |x, y| x.square().l1_loss(&(y - 2.0), None, LossReduction::Sum);
    smooth_l1_loss: REAL, REAL, false => |x, y| x.smooth_l1_loss(&y, 0.4, LossReduction::Sum);
    huber_loss: REAL, REAL, false => |x, y| x.huber_loss(&y, 0.4, None, LossReduction::Sum);
    kl_div: REAL, PROBABILITY, false => |x, y| x.kl_div(&y, false, LossReduction::Sum);
    poisson_nll_loss: REAL, REAL, false => |x, y| {
        x.poisson_nll_loss(&y.exp(), true, false, 1e-8, LossReduction::Sum)
    };
};

/// Returns alternately +1 and -1, in the shape of `x`.
fn signs(x: V<'_>) -> V<'_> {
    let mut sign = -1.0;
    let signs = Tensor::from_fn(x.shape(), |_| {
        sign = -sign;
        sign
    });
    x.tape().constant(&signs)
}

fn conv() -> ConvOptions {
    ConvOptions::default()
}

fn pool() -> PoolOptions {
    PoolOptions::default()
}

fn cell<'w, 't>(input: &'w V<'t>, hidden: &'w V<'t>, bias: Option<&'w V<'t>>) -> CellWeights<'w, V<'t>> {
    CellWeights { input, hidden, input_bias: bias, hidden_bias: bias }
}

/// Operations on operands of certain shapes.
pub const SHAPED: &[Row] = of! {
    conv1d: REAL [2, 2, 4] [2, 2, 3] [2] => |x, w, b| x.conv1d(&w, Some(&b), &conv().padding(1).stride(2));
    conv2d: REAL [1, 2, 3, 3] [2, 2, 2, 2] [2] => |x, w, b| x.conv2d(&w, Some(&b), &conv());
    conv2d "dilated, padded": REAL [1, 1, 4, 3] [1, 1, 2, 2] => |x, w| x.conv2d(&w, None, &conv().dilation(2).padding(1));
    conv2d "in groups, of one size": REAL [1, 2, 3, 2] [2, 1, 3, 3] => |x, w| x.conv2d(&w, None, &conv().groups(2).same());
    conv3d: REAL [1, 1, 2, 3, 2] [2, 1, 2, 2, 1] [2] => |x, w, b| x.conv3d(&w, Some(&b), &conv());
    conv_transpose1d: REAL [1, 2, 3] [2, 2, 2] [2] => |x, w, b| {
        x.conv_transpose1d(&w, Some(&b), &conv().stride(2).output_padding(1))
    };
    conv_transpose2d: REAL [1, 2, 2, 2] [2, 1, 3, 2] [2] => |x, w, b| {
        x.conv_transpose2d(&w, Some(&b), &conv().groups(2).padding(1))
    };
    conv_transpose3d: REAL [1, 1, 1, 2, 2] [1, 2, 2, 1, 2] [2] => |x, w, b| x.conv_transpose3d(&w, Some(&b), &conv());
    im2col: REAL [1, 2, 3, 3] => |x| x.exp().im2col([2, 2], 1, 1, 2);
    max_pool1d: UNEQUAL [2, 5] => |x| x.max_pool1d(2, &pool().padding(1)).square();
    max_pool2d: UNEQUAL [1, 1, 4, 4] => |x| x.max_pool2d([2, 3], &pool().stride(1)).square();
    max_pool3d: UNEQUAL [1, 2, 3, 2] => |x| x.max_pool3d([2, 2, 1], &pool().stride(1).padding([1, 0, 0])).square();
    max_pool1d_with_indices: UNEQUAL [2, 5] => |x| x.max_pool1d_with_indices(3, &pool().stride(2)).0.square();
    max_pool2d_with_indices: UNEQUAL [1, 4, 4] => |x| x.max_pool2d_with_indices(2, &pool()).0.square();
    max_pool3d_with_indices: UNEQUAL [1, 2, 2, 3] => |x| x.max_pool3d_with_indices(2, &pool().stride(1)).0.square();
    avg_pool1d: REAL [2, 5] => |x| x.exp().avg_pool1d(2, &pool().padding(1).ceil_mode(true));
    avg_pool2d: REAL [1, 1, 4, 3] => |x| x.exp().avg_pool2d(2, &pool().stride(1).count_include_pad(false).padding(1));
    avg_pool3d: REAL [1, 1, 2, 3, 2] => |x| x.exp().avg_pool3d([1, 2, 2], &pool().stride(1).padding([0, 1, 0]));
    adaptive_avg_pool1d: REAL [2, 5] => |x| x.exp().adaptive_avg_pool1d(3);
    adaptive_avg_pool2d: REAL [1, 3, 4] => |x| x.exp().adaptive_avg_pool2d([2, 3]);
    adaptive_avg_pool3d: REAL [1, 2, 3, 2] => |x| x.exp().adaptive_avg_pool3d([1, 2, 2]);
    max_unpool1d: REAL [2, 2] => |x| x.exp().max_unpool1d(&Tensor::from([[1i64, 2], [0, 3]]), 2, &pool(), None);
    max_unpool2d: REAL [1, 2, 2] => |x| {
        x.exp().max_unpool2d(&Tensor::from([[[0i64, 7], [3, 4]]]), 2, &pool().stride(1), Some(&[3, 3]))
    };
    max_unpool3d: REAL [1, 1, 2, 2] => |x| {
        x.exp().max_unpool3d(&Tensor::from([[[[0i64, 7], [3, 4]]]]), 2, &pool().stride(1), None)
    };
    adaptive_max_pool1d: UNEQUAL [2, 5] => |x| x.adaptive_max_pool1d(3).square();
    adaptive_max_pool2d: UNEQUAL [1, 3, 4] => |x| x.adaptive_max_pool2d([2, 3]).square();
    adaptive_max_pool3d: UNEQUAL [1, 2, 3, 2] => |x| x.adaptive_max_pool3d([2, 2, 1]).square();
    grid_sample: REAL [1, 2, 3, 4] [1, 2, 2, 2] => |x, y| {
        x.exp().grid_sample(&y, GridMode::Bilinear, GridPadding::Zeros, false)
    };
    grid_sample "border": REAL [2, 1, 3, 2] [2, 1, 2, 2] => |x, y| {
        x.exp().grid_sample(&y, GridMode::Bilinear, GridPadding::Border, true)
    };
    grid_sample "reflection": REAL [1, 1, 3, 4] [1, 2, 3, 2] => |x, y| {
        x.exp().grid_sample(&(y * 2.0), GridMode::Bilinear, GridPadding::Reflection, false)
    };
    grid_sample "nearest": REAL [1, 1, 3, 4] [1, 2, 2, 2] => |x, y| {
        x.exp().grid_sample(&y, GridMode::Nearest, GridPadding::Reflection, true)
    };
    affine_grid: REAL [2, 2, 3] => |x| x.exp().affine_grid([2, 1, 2, 3], false);
    affine_grid "of volumes": REAL [1, 3, 4] => |x| x.exp().affine_grid([1, 1, 2, 1, 2], true);
    col2im: REAL [2, 4, 4] => |x| x.exp().col2im([3, 3], 2, 1, 0, 1);
    col2im "padded, dilated, without a batch": REAL [4, 2] => |x| x.exp().col2im([3, 4], 2, 2, [1, 0], [3, 1]);
    interpolate "nearest": REAL [1, 1, 3] => |x| x.exp().interpolate([5], InterpolateMode::Nearest);
    interpolate "nearest centre": REAL [1, 1, 5] => |x| x.exp().interpolate([3], InterpolateMode::NearestExact);
    interpolate "linear": REAL [1, 1, 2, 3] => |x| {
        x.exp().interpolate([3, 2], InterpolateMode::Linear { align_corners: false })
    };
    interpolate "cubic": REAL [1, 1, 3, 2] => |x| {
        x.exp().interpolate([4, 3], InterpolateMode::Cubic { align_corners: true })
    };
    local_response_norm: REAL [1, 4, 2] => |x| x.local_response_norm(3, 0.5, 0.7, 1.5);
    layer_norm: REAL [2, 3] [3] [3] => |x, w, b| x.layer_norm([3], Some(&w), Some(&b), 1e-5);
    rms_norm: REAL [2, 3] [3] => |x, w| x.rms_norm([3], Some(&w), None);
    group_norm: REAL [2, 4, 2] [4] [4] => |x, w, b| x.group_norm(2, Some(&w), Some(&b), 1e-5);
    instance_norm: REAL [2, 2, 3] [2] [2] => |x, w, b| x.instance_norm(Some(&w), Some(&b), 1e-5);
    batch_norm: REAL [2, 2, 2] [2] [2] [2] [2] => |x, m, v, w, b| x.batch_norm(&m, &v.exp(), Some(&w), Some(&b), 1e-5);
    batch_norm_training: REAL [3, 2] [2] [2] => |x, w, b| {
        let normed = x.batch_norm_training(Some(&w), Some(&b), 1e-5);
        normed.output * normed.mean + normed.variance
    };
    scaled_dot_product_attention: REAL [2, 3, 2] [2, 2, 2] [2, 2, 2] => |q, k, v| {
        q.scaled_dot_product_attention(&k, &v, AttentionMask::None, None)
    };
    scaled_dot_product_attention "causal": REAL [3, 2] [3, 2] [3, 1] => |q, k, v| {
        q.scaled_dot_product_attention(&k, &v, AttentionMask::Causal, Some(0.7))
    };
    scaled_dot_product_attention "a row that sees nothing": REAL [2, 2] [2, 2] [2, 1] => |q, k, v| {
        let mask = Tensor::from([[true, false], [false, false]]);
        q.scaled_dot_product_attention(&k, &v, AttentionMask::Keep(&mask), None)
    };
    scaled_dot_product_attention "a mask that is added": REAL [2, 2] [3, 2] [3, 1] [2, 3] => |q, k, v, m| {
        q.scaled_dot_product_attention(&k, &v, AttentionMask::Add(&m), None)
    };
    attention_weights: REAL [2, 2] [3, 2] => |q, k| q.attention_weights(&k, AttentionMask::None, None);
    grouped_query_attention: REAL [4, 2, 2] [2, 2, 2] [2, 2, 1] => |q, k, v| {
        q.grouped_query_attention(&k, &v, AttentionMask::None, None)
    };
    rnn_tanh_cell: REAL [2, 3] [2, 2] [2, 3] [2, 2] [2] => |x, h, w, u, b| x.rnn_tanh_cell(&h, cell(&w, &u, Some(&b)));
    rnn_relu_cell: REAL [2, 3] [2, 2] [2, 3] [2, 2] [2] => |x, h, w, u, b| x.rnn_relu_cell(&h, cell(&w, &u, Some(&b)));
    lstm_cell: REAL [1, 2] [1, 2] [1, 2] [8, 2] [8, 2] [8] => |x, h, c, w, u, b| {
        let (state, cell) = x.lstm_cell(&h, &c, cell(&w, &u, Some(&b)));
        state * cell.exp()
    };
    lstm_gates: REAL [2, 8] [2, 2] => |gates, c| {
        let (state, cell) = gates.lstm_gates(&c);
        state * cell.exp()
    };
    gru_gates: REAL [2, 6] [2, 6] [2, 2] => |x, hidden, h| x.gru_gates(&hidden, &h);
    gru_cell: REAL [1, 2] [1, 2] [6, 2] [6, 2] => |x, h, w, u| x.gru_cell(&h, cell(&w, &u, None));
    embedding: REAL [3, 2] => |x| {
        x.embedding(&Tensor::from([[2i64, 0], [2, 1]]), EmbeddingOptions::default()).square()
    };
    glu: REAL [4, 2] => |x| x.glu(0);
    prelu "a weight per channel": REAL [2, 3] [3] => |x, w| x.prelu(&w);
    mse_loss "weighted": REAL [2, 3] [2, 3] => |x, y| x.mse_loss(&y, Some(&signs(x).exp()), LossReduction::Mean);
    l1_loss "weighted": REAL [2, 3] [2, 3] => |x, y| x.l1_loss(&y, Some(&signs(x).exp()), LossReduction::Mean);
    huber_loss "weighted": REAL [2, 3] [2, 3] => |x, y| x.huber_loss(&y, 0.5, Some(&signs(x).exp()), LossReduction::Mean);
    kl_div "of logarithms": REAL [2, 3] [2, 3] => |x, y| x.log_softmax(-1).kl_div(&y.log_softmax(-1), true, LossReduction::Sum);
    poisson_nll_loss "full": REAL [2, 3] [2, 3] => |x, y| {
        x.exp().poisson_nll_loss(&(y.exp() + 1.5), false, true, 1e-8, LossReduction::Mean)
    };
    gaussian_nll_loss: REAL [2, 3] [2, 3] [2, 1] => |x, y, v| {
        x.gaussian_nll_loss(&y, &v.exp(), true, 1e-6, LossReduction::Mean)
    };
    binary_cross_entropy: PROBABILITY [2, 3] [2, 3] => |x, y| x.binary_cross_entropy(&y, None, LossReduction::Mean);
    binary_cross_entropy_with_logits: REAL [2, 3] [2, 3] => |x, y| {
        x.binary_cross_entropy_with_logits(&y.sigmoid(), None, Some(&signs(x).exp()), LossReduction::Mean)
    };
    nll_loss: REAL [3, 4] => |x| {
        x.log_softmax(1).nll_loss(&Tensor::from([3i64, 0, 3]), ClassOptions::default())
    };
    cross_entropy: REAL [3, 4] => |x| {
        let target = Tensor::from([3i64, -100, 1]);
        let options = ClassOptions { label_smoothing: 0.1, ..ClassOptions::default() };
        x.cross_entropy(Classes::Indices(&target), options)
    };
    cross_entropy "probabilities": REAL [2, 3] [2, 3] => |x, y| {
        x.cross_entropy(Classes::Probabilities(&y.softmax(-1)), ClassOptions::default())
    };
    margin_ranking_loss: REAL [3] [3] => |x, y| x.margin_ranking_loss(&y, &signs(x), 0.3, LossReduction::Sum);
    triplet_margin_loss: REAL [2, 3] [2, 3] [2, 3] => |x, y, z| {
        x.triplet_margin_loss(&y, &z, TripletOptions { margin: 3.0, ..TripletOptions::default() }, LossReduction::Sum)
    };
};
