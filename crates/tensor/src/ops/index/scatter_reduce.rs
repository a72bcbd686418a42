//! Reductions by index: an index tensor gives each element (a source) its target, an element of the result. The sources of one target are
//! reduced together.
//!
//! The reduction of tensors combines each source with its target. The recorded sums and means add each source at its target. Recorded
//! products and extremes read the sources sorted by target: a scan combines the n sources of each target in log n steps (W. D. Hillis and
//! G. L. Steele, "Data parallel algorithms", 1986). The order of the sources depends on the index alone, and every step is recorded.

use wengert_macros::{precompiled, twins};

use crate::ops::index::replace::{WritePositions, add_at, target_positions, write_nothing};
use crate::ops::index::scatter::{check_targets, leading_part};
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::{Binary, Compare, Error, Float, Position, Reduction, Shape, Site, Tensor};

/// The kind of reduction that [`scatter_reduce`](ScatterReduce::scatter_reduce) applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterReduction {
    /// The sum. PyTorch: `sum`.
    Sum,
    /// The product. PyTorch: `prod`.
    Prod,
    /// The mean. PyTorch: `mean`.
    Mean,
    /// The largest element. PyTorch: `amax`.
    Amax,
    /// The smallest element. PyTorch: `amin`.
    Amin,
}

/// Reductions of the elements that an index tensor sends to the same element of the result.
#[twins(blanket)]
pub trait ScatterReduce: TensorLike<Elem: Float> {
    /// Returns `self` with the reduction of `source` at the positions `index` along dimension `dim`. All elements of `source` (the sources)
    /// with one target are reduced together, with the element of `self` if `include_self` is true. Elements without sources stay unchanged.
    /// `index` and `source` have the same meaning as in [`scatter`](crate::ops::Scatter::scatter). A NaN makes its reduction NaN. Equal
    /// largest or smallest elements share the gradient evenly. PyTorch: `scatter_reduce`. (With `include_self=False`, PyTorch also counts
    /// equal elements of `self` as ties, although they get no gradient.)
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::ScatterReduction::{Amax, Mean};
    /// use wengert::prelude::*;
    ///
    /// let (points, team) = (Tensor::from([1.0, 2.0, 4.0]), Tensor::from([0, 1, 0]));
    /// let own = Tensor::from([3.0, 3.0, 3.0]);
    /// assert_eq!(own.scatter_reduce(0, &team, &points, Amax, true).to_vec(), [4.0, 3.0, 3.0]);
    /// assert_eq!(own.scatter_reduce(0, &team, &points, Mean, false).to_vec(), [2.5, 2.0, 3.0]);
    /// ```
    fn try_scatter_reduce(
        &self,
        dim: impl Position,
        index: &Tensor<i64>,
        source: impl ArrayOperand<Self>,
        reduction: ScatterReduction,
        include_self: bool,
    ) -> Result<Self> {
        let source = &source.into_array(self)?;
        let at = Site::here("scatter_reduce");
        let Some(axis) = check_targets(self, dim, index, Some(&source.shape()), at)? else {
            return write_nothing(self, source, at);
        };
        let source = leading_part(source, index.shape(), at)?;
        if self.is_plain() {
            let (x, source) = (self.to_tensor(at)?, source.to_tensor(at)?);
            return self.try_constant(&x.scatter_reduce_tensor(axis, index, &source, reduction, include_self, at)?);
        }
        let positions = target_positions(&self.shape(), axis, index, at)?;
        let count = source.shape().numel();
        let source = source.reshape_to([count], at)?;
        let targets = &ScatterTargets::new(&positions.elements(at)?, self.shape(), at)?;
        let recorded = RecordedReduction { x: self, source: &source, targets, include_self, at };
        match reduction {
            ScatterReduction::Sum => recorded.sums(),
            ScatterReduction::Mean => recorded.means(),
            ScatterReduction::Prod => recorded.products(),
            ScatterReduction::Amax => recorded.extremes(Binary::Maximum),
            ScatterReduction::Amin => recorded.extremes(Binary::Minimum),
        }
    }
}

#[precompiled]
impl<T: Float> Tensor<T> {
    /// Returns [`scatter_reduce`](ScatterReduce::scatter_reduce) of tensors. `source` has the shape of `index`.
    fn scatter_reduce_tensor(
        &self,
        axis: usize,
        index: &Tensor<i64>,
        source: &Self,
        reduction: ScatterReduction,
        include_self: bool,
        at: Site,
    ) -> Result<Self, Error> {
        let targets = WritePositions::Gather { axis, index };
        let op = match reduction {
            ScatterReduction::Sum | ScatterReduction::Mean => Reduction::Sum,
            ScatterReduction::Prod => Reduction::Prod,
            ScatterReduction::Amax => Reduction::Amax,
            ScatterReduction::Amin => Reduction::Amin,
        };
        let mut result = self.contiguous_copy(at)?;
        if !include_self {
            result.scatter_to(targets, &Tensor::scalar(T::start(op)).expand_to(index.shape(), at)?, None, at)?;
        }
        result.scatter_to(targets, source, Some(op), at)?;
        if reduction != ScatterReduction::Mean {
            return Ok(result);
        }
        let mut counts = Tensor::splat(1i64, self.shape(), at)?;
        if !include_self {
            counts.scatter_to(targets, &Tensor::scalar(0).expand_to(index.shape(), at)?, None, at)?;
        }
        let one = Tensor::scalar(1).expand_to(index.shape(), at)?;
        counts.scatter_to(targets, &one, Some(Reduction::Sum), at)?;
        result.apply_binary(Binary::Div, &counts.cast_to(at)?, at)
    }
}

/// The targets of the sources, and the sources sorted by target. A source is an element that is reduced. Its target is the element of the
/// result that it contributes to.
struct ScatterTargets {
    /// The target of each source, as a row-major position in the result.
    positions: Tensor<i64>,
    /// The number of sources of each element of the result, in the shape of the result.
    counts: Tensor<i64>,
    /// The indices of the sources, sorted by target.
    order: Tensor<i64>,
    /// For each position in `order`, the number of earlier sources with the same target.
    ranks: Tensor<i64>,
    /// For each element of the result, the position of its last source in `order`; 0 if the element has no source.
    last_sources: Tensor<i64>,
    /// The largest number of sources of one element.
    max_count: usize,
}

impl ScatterTargets {
    fn new(positions: &[i64], shape: Shape, at: Site) -> Result<Self, Error> {
        let mut counts = Tensor::splat(0i64, &shape, at)?;
        let mut last_sources = Tensor::splat(0i64, &shape, at)?;
        let (own, write_positions) = (counts.elements_mut(at)?, last_sources.elements_mut(at)?);
        positions.iter().for_each(|&target| own[target as usize] += 1);
        // A counting sort. During the sort, `write_positions` has the position in `order` to which the next source of each target is
        // written.
        let mut sum = 0;
        for (position, count) in write_positions.iter_mut().zip(&*own) {
            *position = sum;
            sum += count;
        }
        let (mut order, mut ranks) = (vec![0; positions.len()], vec![0; positions.len()]);
        own.fill(0);
        for (source, &target) in positions.iter().enumerate() {
            let (count, position) = (&mut own[target as usize], &mut write_positions[target as usize]);
            order[*position as usize] = source as i64;
            ranks[*position as usize] = *count;
            *count += 1;
            *position += 1;
        }
        write_positions
            .iter_mut()
            .zip(&*own)
            .for_each(|(position, &count)| *position = if count > 0 { *position - 1 } else { 0 });
        let max_count = ranks.iter().max().map_or(0, |&rank| rank as usize + 1);
        let positions = Tensor::from(positions.to_vec());
        Ok(ScatterTargets {
            positions,
            counts,
            order: Tensor::from(order),
            ranks: Tensor::from(ranks),
            last_sources,
            max_count,
        })
    }

    /// Returns, for each element of the result, the reduction of its sources. The value of an element without sources is not specified.
    /// `identity` is the identity element of `op`.
    fn reduce<A: TensorLike>(&self, source: &A, op: Binary, identity: f64, at: Site) -> Result<A> {
        let mut z = source.apply_take(&self.order, at)?;
        let (size, mut reach) = (self.order.numel(), 1);
        // At this point, each element of `z` combines at most `reach` sources of one target: its own source and the sources before it.
        while reach < self.max_count {
            let part = |start: usize| z.slice_axis(0, start, size - reach, at);
            let is_foreign =
                self.ranks.slice_axis(0, reach, size - reach, at)?.compare(Compare::Lt, reach as i64, at)?;
            // A source of another target becomes the identity before the combination, so that its gradient is 0 and not 0 times infinity.
            let earlier = part(0)?.replace_where(&z.constant_mask(&is_foreign, at)?, identity, at)?;
            let later = earlier.apply_binary(op, &part(reach)?, at)?;
            z = A::apply_cat(&[z.slice_axis(0, 0, reach, at)?, later], 0, at)?;
            reach = reach.saturating_mul(2);
        }
        z.apply_take(&self.last_sources, at)
    }
}

/// A reduction by index of a recorded variable.
struct RecordedReduction<'a, A> {
    x: &'a A,
    /// The elements that are reduced, as a vector.
    source: &'a A,
    targets: &'a ScatterTargets,
    include_self: bool,
    at: Site,
}

impl<A: TensorLike<Elem: Float>> RecordedReduction<'_, A> {
    /// Returns a mask that is true at the elements of the result that have sources.
    fn targeted(&self) -> Result<A::Mask> {
        self.x.constant_mask(&self.targets.counts.compare(Compare::Gt, 0, self.at)?, self.at)
    }

    /// Returns the mask of the elements whose own value does not count: the elements with sources, if `include_self` is false.
    fn replaced(&self) -> Result<Option<A::Mask>, A::Error> {
        if self.include_self { Ok(None) } else { self.targeted().map(Some) }
    }

    /// Returns `values`, an array of the shape of `x`, with 0 where `replaced` is true, and with `terms`, one for each source, added to the
    /// targets of their sources.
    fn sums_of(&self, values: &A, terms: &A, replaced: Option<&A::Mask>) -> Result<A> {
        let mut sums = match replaced {
            Some(mask) => values.replace_where(mask, 0.0, self.at)?,
            None => values.clone(),
        };
        add_at(&mut sums, &self.targets.positions, terms, self.at)?;
        Ok(sums)
    }

    fn sums(&self) -> Result<A> {
        self.sums_of(self.x, self.source, self.replaced()?.as_ref())
    }

    fn means(&self) -> Result<A> {
        let own = i64::from(self.include_self);
        let counts = self.targets.counts.plus(own, self.at)?.combine(Binary::Maximum, 1, self.at)?;
        self.sums()?.divide_by(&self.x.try_constant(&counts.try_cast()?)?, self.at)
    }

    fn products(&self) -> Result<A> {
        let factor = self.targets.reduce(self.source, Binary::Mul, 1.0, self.at)?;
        if self.include_self {
            return self.x.times(&factor.choose(&self.targeted()?, 1.0, self.at)?, self.at);
        }
        A::apply_select(&self.targeted()?, &factor, self.x, self.at)
    }

    fn extremes(&self, op: Binary) -> Result<A> {
        let &RecordedReduction { x, source, targets, include_self, at } = self;
        let own = x.apply_detach(at)?;
        let identity = if op == Binary::Maximum { f64::NEG_INFINITY } else { f64::INFINITY };
        let mut extreme = targets.reduce(&source.apply_detach(at)?, op, identity, at)?;
        if include_self {
            extreme = extreme.apply_binary(op, &own, at)?;
        }
        let targeted = self.targeted()?;
        let value = A::apply_select(&targeted, &extreme, &own, at)?;
        // The derivative of each element of the result is the derivative of a mean: the mean of the sources that equal the largest or
        // smallest one. If `include_self` is true, the element of `x` counts as a source. An element without sources is its own mean. No
        // source equals a result that is NaN, so the count is 0. The gradient is multiplied by 0 or 1 and not selected by a mask, so that 0
        // · 1/0 makes it NaN in this case.
        let ties = |x: &A, extreme: &A| -> Result<(A, A), A::Error> {
            let others = x.apply_compare(Compare::Ne, extreme, at)?;
            let ones = x.fill_shape(1.0, &x.shape(), at)?.replace_where(&others, 0.0, at)?;
            let terms = x.replace_where(&others, 0.0, at)?;
            Ok((terms.with_derivative(|| Ok(vec![(x.clone(), Some(ones.clone()))]), at)?, ones))
        };
        let (terms, count) = ties(source, &value.apply_take(&targets.positions, at)?)?;
        let (own_terms, own_count) = ties(x, &value)?;
        let replaced = if include_self { None } else { Some(&targeted) };
        let total = self.sums_of(&own_terms, &terms, replaced)?;
        let count = self.sums_of(&own_count, &count, replaced)?;
        total.apply_binary(Binary::Div, &count, at)?.with_value(&value, at)
    }
}

#[cfg(test)]
mod tests {
    use super::ScatterReduction::{Amax, Amin, Mean, Prod, Sum};
    use crate::ops::ScatterReduce;
    use crate::prelude::*;

    /// Compares scatters and their reductions along each dimension with loops over single elements.
    #[test]
    fn scatters_equal_loops() {
        for shape in [[3, 4, 5], [2, 1, 2000], [1500, 2, 1], [30, 20, 40]] {
            let of = |seed: usize| {
                Tensor::<f64>::from_fn(shape, |i| ((i[0] * 31 + i[1] * 7 + i[2] * 3 + seed) % 13) as f64 - 6.0)
            };
            let (x, source) = (of(0), of(5));
            for axis in 0..3 {
                let size = shape[axis] / 2 + 1;
                let index = Tensor::<i64>::from_fn(shape, |i| ((i[0] * 5 + i[1] * 3 + i[2] * 11) % size) as i64);
                let part = index.narrow(2, 0, shape[2].div_ceil(2) as isize);
                for (index, source) in [
                    (&index, &source),
                    (&part, &source),
                    (&index, &Tensor::scalar(2.0).expand(shape.map(|size| size as isize))),
                ] {
                    let dim = axis as isize;
                    let places: Vec<(Vec<usize>, f64)> = (0..index.numel())
                        .map(|number| {
                            let columns = index.shape()[2];
                            let mut place =
                                vec![number / columns / shape[1], number / columns % shape[1], number % columns];
                            let value = source.get(&place).unwrap();
                            place[axis] = index.get(&place).unwrap() as usize;
                            (place, value)
                        })
                        .collect();
                    let flat = |place: &[usize]| (place[0] * shape[1] + place[1]) * shape[2] + place[2];
                    let fold = |start: Option<f64>, f: &dyn Fn(f64, f64) -> f64| {
                        let mut out = x.to_vec();
                        if let Some(start) = start {
                            places.iter().for_each(|(place, _)| out[flat(place)] = start);
                        }
                        places.iter().for_each(|(place, value)| out[flat(place)] = f(out[flat(place)], *value));
                        out
                    };
                    assert_eq!(x.scatter(dim, index, source).to_vec(), fold(None, &|_, value| value));
                    assert_eq!(x.scatter_value(dim, index, 9.0).to_vec(), fold(None, &|_, _| 9.0));
                    assert_eq!(x.scatter_add(dim, index, source).to_vec(), fold(None, &|own, value| own + value));
                    let reduced = |reduction, own| x.scatter_reduce(dim, index, source, reduction, own).to_vec();
                    for own in [true, false] {
                        let of = |start: f64, f: &dyn Fn(f64, f64) -> f64| fold((!own).then_some(start), f);
                        assert_eq!(reduced(Sum, own), of(0.0, &|own, value| own + value));
                        assert_eq!(reduced(Prod, own), of(1.0, &|own, value| own * value));
                        assert_eq!(reduced(Amax, own), of(f64::NEG_INFINITY, &f64::max));
                        assert_eq!(reduced(Amin, own), of(f64::INFINITY, &f64::min));
                    }
                    let picked: Vec<f64> = places.iter().map(|(place, _)| x.get(place).unwrap()).collect();
                    assert_eq!(x.gather(dim, index).to_vec(), picked);
                    assert_eq!(x.transpose(0, 2).contiguous().transpose(0, 2).gather(dim, index).to_vec(), picked);
                }
            }
        }
    }

    #[test]
    fn every_reduction() {
        let (x, index) = (Tensor::from([1.0, 2.0, 3.0, 4.0]), Tensor::from([0i64, 1, 0]));
        let source = Tensor::from([5.0, 2.0, 7.0]);
        let table = [
            (Sum, [13.0, 4.0, 3.0, 4.0], [12.0, 2.0, 3.0, 4.0]),
            (Prod, [35.0, 4.0, 3.0, 4.0], [35.0, 2.0, 3.0, 4.0]),
            (Mean, [13.0 / 3.0, 2.0, 3.0, 4.0], [6.0, 2.0, 3.0, 4.0]),
            (Amax, [7.0, 2.0, 3.0, 4.0], [7.0, 2.0, 3.0, 4.0]),
            (Amin, [1.0, 2.0, 3.0, 4.0], [5.0, 2.0, 3.0, 4.0]),
        ];
        for (reduction, with, without) in table {
            assert_eq!(x.scatter_reduce(0, &index, &source, reduction, true).to_vec(), with, "{reduction:?}");
            assert_eq!(x.scatter_reduce(0, &index, &source, reduction, false).to_vec(), without, "{reduction:?}");
        }
    }

    /// Tests a reduction in which one target gets all sources.
    #[test]
    fn many_sources_of_one_target() {
        for n in [1, 2, 3, 4, 5, 31, 32, 33, 100] {
            let source = Tensor::<f64>::from_fn([n], |i| ((i[0] * 7) % 13) as f64 - 6.5);
            let x = Tensor::<f64>::ones([2]);
            let index = Tensor::zeros([n]);
            let got = x.scatter_reduce(0, &index, &source, Prod, false).get(&[0]).unwrap();
            let expected: f64 = source.iter().product();
            assert!((got / expected - 1.0).abs() < 1e-13, "{n}");
            let largest = source.iter().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(x.scatter_reduce(0, &index, &source, Amax, false).to_vec(), [largest, 1.0]);
        }
    }

    #[test]
    fn edges() {
        let x = Tensor::<f64>::ones([3]);
        assert_eq!(x.scatter_reduce(0, &Tensor::zeros([0]), Tensor::zeros([0]), Amax, false), x);
        let nan = x.scatter_reduce(0, &Tensor::from([0i64, 0]), Tensor::from([f64::NAN, 3.0]), Amin, true).to_vec();
        assert!(nan[0].is_nan() && nan[1..] == [1.0, 1.0]);
        let error = x.try_scatter_reduce(0, &Tensor::from([5i64]), Tensor::ones([1]), Sum, true).unwrap_err();
        assert_eq!(error.sentence().lines().next(), Some("index 5 is out of bounds for dimension 0 with size 3"));
        assert_eq!(
            Tensor::scalar(2.0).scatter_reduce(0, &Tensor::scalar(0), Tensor::scalar(3.0), Prod, true).item(),
            6.0
        );
    }
}
