//! Quantiles along a dimension.
//!
//! The quantile at fraction q of n sorted elements has the rank q (n - 1), counted from 0. If the rank is not a whole number,
//! [`QuantileInterpolation`] chooses the rule for the value. The positions of the elements have no derivative. The gradient flows to the
//! elements at these positions.

use wengert_macros::twins;

use crate::kernel::scan::lanes;
use crate::ops::reduce::lane_array::LaneArray;
use crate::ops::{Compose, Result, TensorLike};
use crate::scalar::math::is_nan;
use crate::{Axes, Compare, Error, Float, Position, Scalar, Shape, Site, Tensor, Unary, ensure};

/// The rule for the value of a quantile whose rank is between the ranks of two elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantileInterpolation {
    /// A weighted mean of both elements. PyTorch: `linear`.
    #[default]
    Linear,
    /// The smaller element. PyTorch: `lower`.
    Lower,
    /// The larger element. PyTorch: `higher`.
    Higher,
    /// The mean of both elements. PyTorch: `midpoint`.
    Midpoint,
    /// The element whose rank is nearest. If two ranks are equally near, the element with the even rank. PyTorch: `nearest`.
    Nearest,
}

/// The fractions of [`quantile`](Quantiles::quantile): a number, or a list of numbers, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Fractions {
    values: Vec<f64>,
    is_number: bool,
}

impl From<f64> for Fractions {
    fn from(value: f64) -> Self {
        Fractions { values: vec![value], is_number: true }
    }
}

impl From<&[f64]> for Fractions {
    fn from(values: &[f64]) -> Self {
        Fractions { values: values.to_vec(), is_number: false }
    }
}

impl<const N: usize> From<[f64; N]> for Fractions {
    fn from(values: [f64; N]) -> Self {
        Fractions::from(&values[..])
    }
}

/// Quantiles. With a list of fractions, the result has a new first dimension. Without a dimension (`None`), the quantiles are over all
/// elements. The reduced dimension is removed, unless the method's name ends in `_keepdim`: then it stays with size 1.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::QuantileInterpolation;
/// use wengert::prelude::*;
///
/// let x = Tensor::from([[0.0, 10.0, 20.0], [3.0, 1.0, 2.0]]);
/// assert_eq!(x.quantile(0.75, Some(1), QuantileInterpolation::Linear).to_vec(), [15.0, 2.5]);
/// let both = x.quantile([0.0, 0.4], None, QuantileInterpolation::Lower);
/// assert_eq!(both.to_vec(), [0.0, 2.0]);
/// ```
#[twins(blanket)]
pub trait Quantiles: TensorLike<Elem: Float> {
    /// Returns the quantiles at the fractions `q` along `dim`. If the elements along `dim` include a NaN, their quantiles are NaN. The ranks
    /// are rounded to the element type. A weighted mean of an infinity and a number, or of two equal infinities, is this infinity. A weighted
    /// mean of -∞ and ∞ is NaN. Refuses an empty tensor, and fractions outside [0, 1]. PyTorch: `quantile`, which gives NaN for some of these
    /// means.
    #[doc(alias("percentile"))]
    #[keepdim]
    fn try_quantile(
        &self,
        q: impl Into<Fractions>,
        dim: Option<isize>,
        interpolation: QuantileInterpolation,
    ) -> Result<Self> {
        quantiles(self, &q.into(), dim, interpolation, false, keepdim, Site::here("quantile"))
    }

    /// Returns the quantiles of the elements that are not NaN; NaN if there are none. Refuses an empty tensor, and fractions outside
    /// [0, 1]. PyTorch: `nanquantile`.
    #[keepdim]
    fn try_nanquantile(
        &self,
        q: impl Into<Fractions>,
        dim: Option<isize>,
        interpolation: QuantileInterpolation,
    ) -> Result<Self> {
        quantiles(self, &q.into(), dim, interpolation, true, keepdim, Site::here("nanquantile"))
    }
}

fn quantiles<A: TensorLike<Elem: Float>>(
    x: &A,
    q: &Fractions,
    dim: Option<isize>,
    interpolation: QuantileInterpolation,
    skips_nan: bool,
    keepdim: bool,
    at: Site,
) -> Result<A> {
    let rank = x.shape().rank();
    ensure!(x.shape().numel() > 0, at, "quantile() input tensor must be non-empty");
    if let Some(&wrong) = q.values.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        ensure!(!q.is_number, at, "quantile() q must be in the range [0, 1] but got {}", python_text(wrong));
        return Err(Error::argument(at, "quantile() q values must be in the range [0, 1]").into());
    }
    let array = match dim {
        Some(dim) => LaneArray::new(x, dim.position(), at)?,
        None => LaneArray::new(&x.reshape_to([x.shape().numel()], at)?, 0, at)?,
    };
    let found = interpolate_lanes(&array, q, interpolation, skips_nan, at)?;
    // The quantiles of each lane (a line of elements along the dimension) are along dimension `axis`. The permutation moves this
    // dimension to the front.
    let axis = array.axis;
    let order: Axes = std::iter::once(axis).chain((0..array.shape.rank()).filter(|&other| other != axis)).collect();
    let found = found.permute_to(&order, at)?;
    let lanes = match dim {
        None if keepdim => Shape::ones(rank),
        None => Shape::scalar(),
        Some(_) if rank == 0 => Shape::scalar(),
        Some(_) if keepdim => array.shape.with_size(axis, 1),
        Some(_) => array.shape.without(&[axis]),
    };
    let counts = q.values.len();
    let shape = if q.is_number { lanes } else { std::iter::once(counts).chain(lanes.iter().copied()).collect() };
    found.reshape_to(shape, at)
}

/// Returns the text of a number for an error message. NaN is written in lower case, as in Python.
pub(crate) fn python_text(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { number.to_string() }
}

/// Returns the quantiles of each lane (a line of elements of `array` along its dimension `axis`). The result has the quantiles of a lane
/// instead of its elements.
fn interpolate_lanes<A: TensorLike<Elem: Float>>(
    array: &LaneArray<A>,
    q: &Fractions,
    interpolation: QuantileInterpolation,
    skips_nan: bool,
    at: Site,
) -> Result<A> {
    let (count, axis) = (q.values.len(), array.axis);
    let rounded = |number: f64| A::Elem::from_f64(number).to_f64();
    let rank = |q: f64, last: i64| rounded(q) * last as f64;
    // For each lane (a line of elements): the positions of the elements below and above each quantile, the rank of the largest element, and
    // a flag for each quantile. The flag is 0 if the quantile is the element below for every interpolation weight, and otherwise 1. If the
    // lane has a NaN that is not skipped, all positions are the position of a NaN, and the rank is 0 because it does not matter.
    let positions = array.positions(3 * count + 1, at, &|lane, out| {
        let mut order = vec![0; lane.len()];
        lanes::order(false, lane, &mut order);
        let known = order.iter().take_while(|&&position| !is_nan(lane[position as usize])).count();
        let last = if skips_nan { known.saturating_sub(1) } else { lane.len() - 1 };
        let has_nan = !skips_nan && known < lane.len();
        for (k, &q) in q.values.iter().enumerate() {
            let rank = if has_nan { last as f64 } else { rounded(rank(q, last as i64)) };
            let (below, above) = match interpolation {
                QuantileInterpolation::Lower => (rank.floor(), rank.floor()),
                QuantileInterpolation::Higher => (rank.ceil(), rank.ceil()),
                QuantileInterpolation::Nearest => (rank.round_ties_even(), rank.round_ties_even()),
                QuantileInterpolation::Linear | QuantileInterpolation::Midpoint => (rank.floor(), rank.ceil()),
            };
            let [below, above] = [below, above].map(|rank| order[(rank as usize).min(last)]);
            let [x, y] = [below, above].map(|position| lane[position as usize].to_f64());
            (out[k], out[count + k]) = (below, above);
            out[2 * count + 1 + k] = i64::from(x != y && (x > f64::NEG_INFINITY || y == f64::INFINITY));
        }
        out[2 * count] = if has_nan { 0 } else { last as i64 };
    })?;
    let below = array.take(&positions.slice_axis(axis, 0, count, at)?, at)?;
    if !matches!(interpolation, QuantileInterpolation::Linear | QuantileInterpolation::Midpoint) {
        return Ok(below);
    }
    let above = array.take(&positions.slice_axis(axis, count, count, at)?, at)?;
    // The rank of each quantile is computed in f64 and then rounded to the element type, as for the positions above. In f32, the rank of
    // the largest of more than 2²⁴ elements would not be exact.
    let last = positions.slice_axis(axis, 2 * count, 1, at)?.try_cast::<f64>()?;
    let line = Shape::ones(array.shape.rank()).with_size(axis, count);
    let values = q.values.iter().map(|&q| rounded(q)).collect();
    let ranks = last.times(&Tensor::try_from_vec(values, line)?, at)?.try_cast::<A::Elem>()?;
    let mut weights = ranks.minus(&ranks.apply_unary(Unary::Floor, at)?, at)?;
    if interpolation == QuantileInterpolation::Midpoint {
        let between = weights.compare(Compare::Ne, 0.0, at)?;
        weights = weights.fill_shape(0.5, weights.shape(), at)?.choose(&between, 0.0, at)?;
    }
    // The step is 0 if both elements are equal, because the difference of two infinities would be NaN. It is also 0 from -∞ to a number. Its
    // derivative is the derivative of the difference.
    let has_step = positions.slice_axis(axis, 2 * count + 1, count, at)?.compare(Compare::Ne, 0.0, at)?;
    let difference = above.minus(&below, at)?;
    let step = difference.apply_detach(at)?.choose(&below.constant_mask(&has_step, at)?, 0.0, at)?;
    let step = difference.with_value(&step, at)?;
    below.plus(&step.times(&below.try_constant(&weights)?, at)?, at)
}

#[cfg(test)]
mod tests {
    use super::QuantileInterpolation::{Higher, Linear, Lower, Midpoint, Nearest};
    use crate::ops::Quantiles;
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn every_interpolation() {
        let x = Tensor::from([4.0, 1.0, 3.0, 2.0]);
        let table = [
            (Linear, [1.0, 2.2, 2.5, 4.0]),
            (Lower, [1.0, 2.0, 2.0, 4.0]),
            (Higher, [1.0, 3.0, 3.0, 4.0]),
            (Midpoint, [1.0, 2.5, 2.5, 4.0]),
            (Nearest, [1.0, 2.0, 3.0, 4.0]),
        ];
        for (mode, expected) in table {
            let got: Vec<f64> = x.quantile([0.0, 0.4, 0.5, 1.0], Some(0), mode).to_vec();
            assert!(
                got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-15),
                "{mode:?}: {got:?}"
            );
        }
    }

    #[test]
    fn shapes() {
        let x = Tensor::<f64>::ones([2, 3, 4]);
        assert_eq!(x.quantile(0.5, Some(1), Linear).shape(), &[2, 4]);
        assert_eq!(x.quantile_keepdim([0.5, 0.1], Some(1), Linear).shape(), &[2, 2, 1, 4]);
        assert_eq!(x.quantile([0.5], None, Linear).shape(), &[1]);
        assert_eq!(x.quantile_keepdim(0.5, None, Linear).shape(), &[1, 1, 1]);
        assert_eq!(x.quantile([0.0; 0], Some(0), Linear).shape(), &[0, 3, 4]);
        assert_eq!(Tensor::scalar(3.0).quantile(0.5, Some(-1), Linear), Tensor::scalar(3.0));
    }

    #[test]
    fn nan_and_infinity() {
        let x = Tensor::from([NAN, 1.0, 2.0, 4.0]);
        assert!(x.quantile(0.0, None, Linear).item().is_nan());
        assert_eq!(x.nanquantile([0.5, 0.0], None, Linear).to_vec(), [2.0, 1.0]);
        assert!(Tensor::from([NAN]).nanquantile(0.5, None, Lower).item().is_nan());
    }

    /// f32 cannot represent the rank of the largest element, 2²⁴ + 1. The quantile lies between the last element 1 and the first element ∞,
    /// so that it is ∞. A rounded largest rank would give 1.
    #[test]
    fn the_ranks_of_many_elements_are_rounded_once() {
        let (count, below) = ((1 << 24) + 2, 6_291_456);
        let x = Tensor::<f32>::from_fn(count, |i| if i[0] > below { f32::INFINITY } else { 1.0 });
        assert_eq!(x.quantile(0.375, None, Linear).item(), f32::INFINITY);
    }

    #[test]
    fn between_infinities() {
        let inf = f64::INFINITY;
        for mode in [Linear, Midpoint] {
            let at = |x: [f64; 2]| Tensor::from(x).quantile([0.0, 0.25, 0.75, 1.0], None, mode).to_vec();
            assert_eq!(at([1.0, inf]), [1.0, inf, inf, inf]);
            assert_eq!(at([-inf, 1.0]), [-inf, -inf, -inf, 1.0]);
            assert_eq!((at([inf, inf]), at([-inf, -inf])), (vec![inf; 4], vec![-inf; 4]));
            let middle = at([-inf, inf]);
            assert!((middle[0], middle[3]) == (-inf, inf) && middle[1..3].iter().all(|x| x.is_nan()));
        }
        let near = |x: [f64; 2], mode| Tensor::from(x).quantile([0.25, 0.75], None, mode).to_vec();
        assert_eq!((near([-inf, 1.0], Lower), near([-inf, 1.0], Higher)), (vec![-inf; 2], vec![1.0; 2]));
        assert_eq!(near([-inf, inf], Nearest), [-inf, inf]);
        assert_eq!(Tensor::from([NAN, 1.0, -inf]).nanquantile(0.5, None, Linear).item(), -inf);
    }

    #[test]
    fn fractions_out_of_range_are_refused() {
        let x = Tensor::from([1.0, 2.0]);
        let sentence = |error: crate::Error| error.sentence();
        assert_eq!(
            sentence(x.try_quantile(1.5, None, Linear).unwrap_err()),
            "quantile() q must be in the range [0, 1] but got 1.5"
        );
        assert_eq!(
            sentence(x.try_quantile([NAN], None, Linear).unwrap_err()),
            "quantile() q values must be in the range [0, 1]"
        );
        let empty = Tensor::<f64>::zeros([2, 0]).try_quantile(0.5, Some(0), Linear).unwrap_err();
        assert_eq!(sentence(empty), "quantile() input tensor must be non-empty");
        assert!(x.try_quantile(0.5, Some(1), Linear).is_err());
    }
}
