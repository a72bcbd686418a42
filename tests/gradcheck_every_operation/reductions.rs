//! Reductions, statistics, norms, running sums, softmax, sorting.

use wengert::prelude::*;
use wengert::tensor::ops::QuantileInterpolation::{Linear, Lower, Midpoint};
use wengert::tensor::ops::{
    Covariances, Cumulative, Extremes, Integrals, Norms, Quantiles, Reductions, Softmax, Sorting, Statistics,
};

use super::grid::{REAL, UNEQUAL};
use super::row::{Row, in_place, of, one, two};

fn is_empty(x: super::row::V<'_>) -> bool {
    x.shape().contains(&0)
}

/// Operations on one operand of any shape. If an operation is not defined without elements, its row returns an empty
/// operand unchanged.
pub const ANY: &[Row] = one! {
    sum: REAL => |x| x.square().sum(..);
    sum "kept": REAL => |x| x.sum_keepdim(-1) * x;
    mean: REAL => |x| if is_empty(x) { x } else { x.square().mean(0) };
    prod: REAL => |x| x.prod(..);
    prod "along a dimension": REAL => |x| x.prod_keepdim(-1) * x;
    amax: UNEQUAL => |x| if is_empty(x) { x } else { x.amax(..) };
    amin "kept": UNEQUAL => |x| if is_empty(x) { x } else { x * x.amin_keepdim(-1) };
    max: UNEQUAL => |x| if is_empty(x) { x } else { x.square().max_keepdim(-1).0 * x };
    min: UNEQUAL => |x| if is_empty(x) { x } else { x.min(0).0.square() };
    max_all: UNEQUAL => |x| if is_empty(x) { x } else { x.max_all().square() };
    min_all: UNEQUAL => |x| if is_empty(x) { x } else { x.min_all().square() };
    aminmax: UNEQUAL => |x| if is_empty(x) { x } else {
        let (low, high) = x.aminmax(..);
        low.square() * high
    };
    softmax: REAL => |x| x.softmax(-1);
    softmax "along the first": REAL => |x| x.softmax(0);
    softmin: REAL => |x| x.softmin(-1);
    gumbel_softmax: REAL => |x| x.gumbel_softmax(0.7, false, -1, &mut Generator::new(7));
    log_softmax: REAL => |x| x.log_softmax(-1);
    logsumexp: REAL => |x| if is_empty(x) { x } else { x.logsumexp(..) };
    logsumexp "kept": REAL => |x| x - x.logsumexp_keepdim(-1);
    var: REAL => |x| if is_empty(x) { x } else { x.var(.., 0) };
    std: REAL => |x| if x.shape().numel() < 2 { x } else { x.std_keepdim(.., 0.5) };
    nansum: REAL => |x| x.square().nansum(..);
    nanmean: REAL => |x| if is_empty(x) { x } else { x.square().nanmean_keepdim(-1) * x };
    vector_norm: REAL => |x| x.vector_norm(2, ..);
    norm: REAL => |x| x.norm(3);
    normalize: REAL => |x| x.normalize(2, -1, 1e-12);
    cumsum: REAL => |x| x.square().cumsum(-1);
    cumprod: REAL => |x| x.cumprod(0);
    logcumsumexp: REAL => |x| x.logcumsumexp(-1);
    quantile: UNEQUAL => |x| if is_empty(x) { x } else { x.square().quantile([0.3, 0.6], Some(-1), Linear) };
    quantile "lower, of all": UNEQUAL => |x| if is_empty(x) { x } else { x.square().quantile(0.4, None, Lower) * x };
    nanquantile: UNEQUAL => |x| if is_empty(x) { x } else { x.square().nanquantile_keepdim(0.7, Some(0), Midpoint) * x };
    sort: UNEQUAL => |x| x.square().sort(-1, false).0 * x;
};

/// Operations on two operands that broadcast.
pub const PAIRS: &[Row] = two! {
    softmax "of a sum": REAL, REAL, true => |x, y| (x + y).softmax(0);
    dist: REAL, REAL, false => |x, y| x.dist(&y, 2);
};

/// Operations on operands of certain shapes.
pub const SHAPED: &[Row] = of! {
    sum "over two dimensions": REAL [2, 3, 2] => |x| x.square().sum([0, 2]);
    mean "over two dimensions": REAL [2, 3, 2] => |x| x.square().mean_keepdim([1, -1]);
    prod "with a zero": REAL [2] [2] => |x, y| cat(&[x, y * 0.0, x], 0).prod(..) + y.prod(0);
    var "over two dimensions": REAL [2, 3, 2] => |x| x.var_keepdim([0, -1], 1);
    std "along a dimension": REAL [3, 2] => |x| x.std(0, 1);
    cov: REAL [2, 4] => |x| x.exp().cov(1, None, None);
    cov "weighted": REAL [2, 3] => |x| {
        x.exp().cov(1, Some(&Tensor::from([1i64, 2, 1])), Some(&Tensor::from([0.5, 1.0, 2.0])))
    };
    corrcoef: REAL [3, 4] => |x| x.exp().corrcoef();
    trapezoid: REAL [2, 3] => |x| x.square().trapezoid(0.5, -1);
    trapezoid_over: REAL [2, 3] [3] => |y, x| y.trapezoid_over(x.exp(), 1);
    trapezoid_over "of each line": REAL [3, 2] [3, 1] => |y, x| y.trapezoid_over(x.exp(), 0);
    cumulative_trapezoid: REAL [3, 2] => |x| x.square().cumulative_trapezoid(2.0, 0);
    cumulative_trapezoid_over: REAL [2, 3] [3] => |y, x| y.cumulative_trapezoid_over(x.exp(), 1);
    gradient: REAL [4, 2] => |x| x.exp().gradient(0.5, 0, 2);
    gradient_over: REAL [2, 4] [4] => |y, x| y.gradient_over(x.exp().cumsum(0), 1, 1);
    gradient_over "with parabolas at the ends": REAL [4, 2] [4] => |y, x| y.gradient_over(x.exp().cumsum(0), 0, 2);
    renorm: REAL [3, 2] => |x| (x + 2.0).renorm(2, 0, 1.0);
    renorm "3, along the last": REAL [2, 3] => |x| (x + 2.0).renorm(3, -1, 0.5);
    var_mean: REAL [2, 3] => |x| {
        let (variance, mean) = x.var_mean(-1, 1);
        variance * mean.exp()
    };
    std_mean: REAL [2, 3] => |x| {
        let (deviation, mean) = x.std_mean(-1, 1);
        deviation * mean.exp()
    };
    vector_norm "1, along a dimension": REAL [2, 3] => |x| x.vector_norm(1, 0).square();
    vector_norm "2, kept": REAL [2, 3] => |x| x / x.vector_norm_keepdim(2, -1);
    vector_norm "3": REAL [2, 3] => |x| x.vector_norm(3, ..);
    vector_norm "1.5": REAL [2, 3] => |x| x.vector_norm(1.5, -1);
    vector_norm "0.5": REAL [2, 3] => |x| x.vector_norm(0.5, -1);
    vector_norm "0": REAL [2, 3] => |x| x.vector_norm(0, -1);
    vector_norm "infinity": REAL [2, 3] => |x| x.vector_norm(f64::INFINITY, -1).square();
    vector_norm "minus infinity": REAL [2, 3] => |x| x.vector_norm(f64::NEG_INFINITY, 0).square();
    dist "3": REAL [2, 3] [3] => |x, y| x.dist(&y, 3);
    cdist "2": REAL [3, 2] [2, 2] => |x, y| x.cdist(&y, 2);
    cdist "1, batches that broadcast": REAL [2, 1, 2] [3, 2] => |x, y| x.cdist(&y, 1).square();
    cdist "3": REAL [3, 2] [2, 2] => |x, y| x.cdist(&y, 3);
    pairwise_distance: REAL [2, 3] [3] => |x, y| x.pairwise_distance(&y, 2, 1e-6);
    normalize "3, along the first": REAL [3, 2] => |x| x.normalize(3, 0, 1e-12);
    cosine_similarity: REAL [2, 3] [1, 3] => |x, y| x.cosine_similarity(&y, -1, 1e-8);
    cumsum "along the first": REAL [3, 2] => |x| x.square().cumsum(0);
    cumprod "with a zero": REAL [2] [1] => |x, y| cat(&[x, y * 0.0, x.exp(), y * 0.0, x], 0).cumprod(0);
    cummax: UNEQUAL [5] => |x| x.cummax(0).0.square();
    cummin: UNEQUAL [3, 2] => |x| x.cummin(0).0.square();
    diff: REAL [5, 2] => |x| x.exp().diff(2, 0);
    topk: UNEQUAL [2, 5] => |x| x.topk(3, -1, true).0.square();
    kthvalue: UNEQUAL [2, 5] => |x| x.kthvalue(2, 1).0.square();
    median: UNEQUAL [4, 2] => |x| x.median_keepdim(0).0.square();
    mode: UNEQUAL [2, 3] => |x| x.mode(-1).0.square();
    median_all: UNEQUAL [2, 3] => |x| x.median_all().square();
    nanmedian: UNEQUAL [4, 2] => |x| x.nanmedian_keepdim(0).0.square();
    nanmedian_all: UNEQUAL [2, 3] => |x| x.nanmedian_all().square();
    pdist: REAL [4, 3] => |x| x.pdist(2);
    pdist "third order": REAL [3, 2] => |x| x.exp().pdist(3);
};

/// Operations in place.
pub const IN_PLACE: &[Row] = in_place! {
    cumsum_: REAL => |x| x.cumsum_(-1);
    cumprod_: REAL => |x| x.cumprod_(0);
};
