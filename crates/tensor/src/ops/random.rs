//! Random tensors from a generator that the caller seeds.
//!
//! Elements are drawn in row-major order, each from one 64-bit word of the [`Generator`]. `randint` may reject words and draw more, and
//! `randperm` shuffles with [`Generator::shuffle`]. So one seed gives the same tensors on every platform and with any number of threads.
//! There is no global generator.

use wengert_macros::twins;

use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::ops::InPlace;
use crate::ops::primitive::pair::{broadcast_operand_shapes, expand};
use crate::scalar::special::QUANTILES;
use crate::{DType, Element, Error, Float, Generator, Shape, Site, Sizes, Tensor, ensure};

#[twins]
impl<T: Float> Tensor<T> {
    /// Draws numbers uniformly from [0, 1): multiples of 2⁻²⁴ (`f32`) or 2⁻⁵³ (`f64`). PyTorch: `rand`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let x = Tensor::<f32>::rand([2, 3], &mut generator);
    /// assert!(x.iter().all(|x| (0.0..1.0).contains(&x)));
    /// ```
    #[doc(alias("uniform"))]
    pub fn try_rand(shape: impl Into<Sizes>, generator: &mut Generator) -> Result<Self, Error> {
        Tensor::draw_tensor(shape.into(), Site::here("rand"), generator, draw_unit::<T>)
    }

    /// Draws numbers uniformly from [`low`, `high`); all numbers are `low` if both bounds are equal. Refuses a `low` above `high`, and
    /// bounds that are infinite or NaN, or whose distance is infinite, in the element type. PyTorch: `uniform_`.
    pub fn try_uniform(low: f64, high: f64, shape: impl Into<Sizes>, generator: &mut Generator) -> Result<Self, Error> {
        let at = Site::here("uniform");
        let [low, high] = [low, high].map(|bound| T::from_f64(bound).to_f64());
        let is_reversed = low > high; // False if a bound is NaN, which has an error of its own.
        ensure!(!is_reversed, at, "uniform expects to return a [from, to) range, but found from={low} > to={high}");
        ensure!(
            T::from_f64(high - low).is_finite() && low.is_finite(),
            at,
            "uniform expects to-from to be finite, but found from={low} and to={high}"
        );
        // Rounding may give the upper bound, which is excluded. The largest number below the bound then replaces it.
        let last = match T::DTYPE {
            DType::F32 => f64::from((high as f32).next_down()),
            _ => high.next_down(),
        };
        let bound = last.max(low);
        Tensor::draw_tensor(shape.into(), at, generator, |generator| {
            let x = T::from_f64(low + (high - low) * draw_unit::<T>(generator).to_f64());
            T::from_f64(x.to_f64().min(bound))
        })
    }

    /// Draws numbers from the normal distribution with mean 0 and standard deviation 1. PyTorch: `randn`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let x = Tensor::<f64>::randn([100, 100], &mut generator);
    /// assert!(x.mean(..).item().abs() < 0.05);
    /// ```
    pub fn try_randn(shape: impl Into<Sizes>, generator: &mut Generator) -> Result<Self, Error> {
        let at = Site::here("randn");
        let shape = shape.into().resolve_plain(at)?;
        Tensor::build(&shape, at, |out| draw_normals(out, generator))
    }

    /// Draws each number from a normal distribution with its own mean and standard deviation. `mean` and `std` broadcast. Refuses negative
    /// and NaN standard deviations. PyTorch: `normal`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let mean = Tensor::from([[0.0], [100.0]]);
    /// let x = Tensor::normal(&mean, &Tensor::from([0.0, 1.0, 2.0]), &mut generator);
    /// assert_eq!(x.shape(), &[2, 3]);
    /// assert_eq!(x.get(&[1, 0]), Some(100.0));
    /// ```
    pub fn try_normal(mean: &Self, std: &Self, generator: &mut Generator) -> Result<Self, Error> {
        let at = Site::here("normal");
        let shape = broadcast_operand_shapes(&[mean.shape(), std.shape()], at)?;
        ensure!(std.distinct().iter().all(|std| std >= T::ZERO), at, "normal expects all elements of std >= 0.0");
        let (mean, std) = (expand(mean, &shape, at)?, expand(std, &shape, at)?);
        Tensor::build(&shape, at, |out: &mut [T]| {
            let mut parameters = mean.iter().zip(std.iter());
            let (blocks, rest) = out.as_chunks_mut::<QUANTILES>();
            for block in blocks {
                // The parameters are the last operand, because a zip that ends at its first operand takes no element of the second.
                for ((out, z), (mean, std)) in block.iter_mut().zip(generator.normals()).zip(&mut parameters) {
                    *out = T::from_f64(mean.to_f64() + std.to_f64() * z);
                }
            }
            for (out, (mean, std)) in rest.iter_mut().zip(parameters) {
                *out = T::from_f64(mean.to_f64() + std.to_f64() * generator.normal());
            }
        })
    }

    /// Draws a 1 or a 0 for each element. The element is the probability of a 1. Refuses elements outside [0, 1], and NaN. PyTorch:
    /// `bernoulli`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let drawn = Tensor::from([0.0, 0.5, 1.0]).expand([1000, 3]).bernoulli(&mut generator);
    /// let share = drawn.mean(0).to_vec();
    /// assert!(share[0] == 0.0 && (0.4..0.6).contains(&share[1]) && share[2] == 1.0);
    /// ```
    pub fn try_bernoulli(&self, generator: &mut Generator) -> Result<Self, Error> {
        draw_bernoulli(self, self.shape(), generator, Site::here("bernoulli"))
    }

    /// Draws `count` positions with probabilities proportional to the elements: `[count]` from weights `[n]`, or `[m, count]` from
    /// the rows of `[m, n]`. Without `replacement` no position is drawn twice. Refuses other ranks, weights that are negative, infinite or
    /// NaN, and rows without a weight above 0; without `replacement`, also rows with fewer than `count` weights above 0. PyTorch:
    /// `multinomial`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let weights = Tensor::from([1.0, 0.0, 3.0]);
    /// let drawn = weights.multinomial(1000, true, &mut generator);
    /// let shares = [0, 1, 2].map(|class| drawn.eq(class).count_nonzero(..).item());
    /// assert!(shares[1] == 0 && (200..300).contains(&shares[0]));
    /// assert_eq!(weights.multinomial(2, false, &mut generator).sum(..).item(), 2);
    /// ```
    pub fn try_multinomial(
        &self,
        count: usize,
        replacement: bool,
        generator: &mut Generator,
    ) -> Result<Tensor<i64>, Error> {
        let at = Site::here("multinomial");
        let Some((&classes, rows)) = self.shape().split_last().filter(|(_, rows)| rows.len() < 2) else {
            return Err(Error::argument(at, "prob_dist must be 1 or 2 dim"));
        };
        let weights = self.row_major_elements(at)?;
        ensure!(
            weights.iter().fold(true, |all, &weight| all & (weight >= T::ZERO) & (weight <= T::MAX)),
            at,
            "probability tensor contains either `inf`, `nan` or element < 0"
        );
        let rows: Vec<&[T]> = (0..rows.iter().product()).map(|row| &weights[row * classes..][..classes]).collect();
        for row in &rows {
            let positive = row.iter().map(|&weight| usize::from(weight > T::ZERO)).sum::<usize>();
            ensure!(positive > 0, at, "invalid multinomial distribution (sum of probabilities <= 0)");
            if !replacement && positive < count {
                let refused = "cannot sample n_sample > prob_dist.size(-1) samples without replacement";
                let hint = format!("{count} positions are drawn, {positive} of them have a weight above 0");
                return Err(Error::argument(at, refused).with_hint(hint));
            }
        }
        let mut shape = self.shape().clone();
        shape[self.rank() - 1] = count;
        Tensor::build(&shape, at, |out| {
            let mut scratch = Scratch::new(classes)?;
            for (out, row) in out.chunks_mut(count.max(1)).zip(&rows) {
                draw_positions(row, &mut scratch, replacement, generator, out);
            }
            Ok(())
        })
    }
}

#[twins]
impl<T: Element> Tensor<T> {
    /// Sets each element to 1 (`true`) or 0 (`false`). The matching element of `p` is the probability of 1. `p` expands to the shape of
    /// `self`. PyTorch: `bernoulli_`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let mut mask = Tensor::<bool>::zeros([4, 3]);
    /// mask.bernoulli_(&Tensor::from([0.0, 1.0, 0.5]), &mut generator);
    /// assert_eq!(mask.narrow(1, 0, 2), Tensor::from([false, true]).expand([4, 2]));
    /// ```
    ///
    /// # Errors
    ///
    /// If `p` does not expand to the shape of `self`, or an element of `p` is not in [0, 1]. If several elements of `self` share one
    /// position in memory, or memory cannot hold the result.
    pub fn try_bernoulli_<P: Float>(&mut self, p: &Tensor<P>, generator: &mut Generator) -> Result<(), Error> {
        let at = Site::here("bernoulli_");
        self.check_write(None, at)?;
        let shape = Sizes::from(self.shape()).resolve_expand(P::DTYPE, p.shape(), at)?;
        *self = draw_bernoulli(p, &shape, generator, at)?;
        Ok(())
    }

    fn draw_tensor(
        shape: Sizes,
        at: Site,
        generator: &mut Generator,
        draw: impl Fn(&mut Generator) -> T + Sync,
    ) -> Result<Self, Error> {
        let shape = shape.resolve_plain(at)?;
        Tensor::build(&shape, at, |out| draw_each(out, generator, &draw))
    }
}

#[twins]
impl Tensor<i64> {
    /// Returns the numbers 0 to `n` - 1 in random order. Every order has the same probability. PyTorch: `randperm`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let mut order = Tensor::randperm(5, &mut generator).to_vec();
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// ```
    pub fn try_randperm(n: usize, generator: &mut Generator) -> Result<Self, Error> {
        let at = Site::here("randperm");
        Tensor::build(&Shape::from([n]), at, |out| {
            for (out, i) in out.iter_mut().zip(0..) {
                *out = i;
            }
            generator.shuffle(out);
        })
    }

    /// Draws integers uniformly from `low` up to, but not including, `high`. Refuses a `low` that is not below `high`. PyTorch: `randint`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let dice = Tensor::randint(1, 7, [100], &mut generator);
    /// assert!(dice.iter().all(|face| (1..=6).contains(&face)));
    /// ```
    pub fn try_randint(low: i64, high: i64, shape: impl Into<Sizes>, generator: &mut Generator) -> Result<Self, Error> {
        let at = Site::here("randint");
        ensure!(low < high, at, "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}");
        // Wrapping arithmetic gives the right distance and the right sums, even if the distance does not fit into an i64.
        let distance = high.wrapping_sub(low) as u64;
        Tensor::build(&shape.into().resolve_plain(at)?, at, |out| {
            out.iter_mut().for_each(|out| *out = low.wrapping_add(generator.below(distance) as i64));
        })
    }
}

/// Draws each element by `draw`, which must take one word of the generator. Large tensors use several threads.
pub(crate) fn draw_each<T: Send>(out: &mut [T], generator: &mut Generator, draw: impl Fn(&mut Generator) -> T + Sync) {
    draw_chunks(out, generator, |generator, out| out.iter_mut().for_each(|out| *out = draw(generator)));
}

/// Draws each element from the normal distribution with mean 0 and standard deviation 1.
fn draw_normals<T: Float>(out: &mut [T], generator: &mut Generator) {
    draw_chunks(out, generator, |generator, out| {
        let (blocks, rest) = out.as_chunks_mut();
        blocks.iter_mut().for_each(|out| *out = generator.normals().map(T::from_f64));
        rest.iter_mut().for_each(|out| *out = T::from_f64(generator.normal()));
    });
}

/// Draws the elements of each chunk of `out` by `draw`, which must take one word of the generator for each element.
fn draw_chunks<T: Send>(out: &mut [T], generator: &mut Generator, draw: impl Fn(&mut Generator, &mut [T]) + Sync) {
    const CHUNK: usize = 1 << 13;
    let (first, count) = (generator.clone(), out.len());
    partition::chunks(out, CHUNK, Schedule::parallel_from(2 * CHUNK, count), |number, out| {
        draw(&mut first.copy_ahead(number * CHUNK), out);
    });
    *generator = first.copy_ahead(count);
}

/// Draws a number uniformly from [0, 1). Its resolution is the distance between neighbouring numbers of type `T` in [1/2, 1).
fn draw_unit<T: Float>(generator: &mut Generator) -> T {
    match T::DTYPE {
        DType::F32 => T::from_f64(f64::from(generator.uniform_f32())),
        _ => T::from_f64(generator.uniform()),
    }
}

/// Draws positions with probabilities proportional to `row`. Without replacement, the weight of a drawn position becomes 0. `weights` is
/// scratch memory for one number per position.
fn draw_positions<T: Float>(
    row: &[T],
    weights: &mut [f64],
    replacement: bool,
    generator: &mut Generator,
    out: &mut [i64],
) {
    if replacement {
        return draw_with_replacement(row, weights, generator, out);
    }
    weights.iter_mut().zip(row).for_each(|(weight, &x)| *weight = x.to_f64());
    if weights.iter().sum::<f64>().is_infinite() {
        let scale = scale_of_large(weights.len());
        weights.iter_mut().for_each(|weight| *weight *= scale);
    }
    for out in out {
        let threshold = generator.uniform() * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        // `threshold` is not below the sum of all weights if this sum is so small that `threshold` is rounded to the sum. Then the last
        // position with a weight above 0 is drawn.
        let mut drawn = 0;
        for (position, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            drawn = position;
            sum += weight;
            if threshold < sum {
                break;
            }
        }
        *out = drawn as i64;
        weights[drawn] = 0.0;
    }
}

/// Draws like [`draw_positions`] with replacement. The running sums of the weights do not change, so each draw is a binary search. `sums` is
/// scratch memory for one number per position.
fn draw_with_replacement<T: Float>(row: &[T], sums: &mut [f64], generator: &mut Generator, out: &mut [i64]) {
    let mut total = add_up(row, 1.0, sums);
    if total.is_infinite() {
        total = add_up(row, scale_of_large(row.len()), sums);
    }
    // A weight of 0 leaves the sum as it is, so the search never finds its position. The threshold may be rounded up to the total.
    let last = row.iter().rposition(|&weight| weight > T::ZERO).unwrap_or(0);
    for out in out {
        let threshold = generator.uniform() * total;
        *out = sums.partition_point(|&sum| sum <= threshold).min(last) as i64;
    }
}

/// Writes the running sums of the elements of `row`, multiplied by `scale`, to `sums`. Returns the last sum, or 0 if there is none.
fn add_up<T: Float>(row: &[T], scale: f64, sums: &mut [f64]) -> f64 {
    let mut total = 0.0;
    for (sum, weight) in sums.iter_mut().zip(row) {
        total += weight.to_f64() * scale;
        *sum = total;
    }
    total
}

/// Returns a factor for `count` weights whose sum is infinite. The sum of the scaled weights is finite.
fn scale_of_large(count: usize) -> f64 {
    0.5 / count as f64
}

/// Draws a 1 or a 0 for each element of `p`, expanded to `shape`. The element is the probability of a 1.
fn draw_bernoulli<T: Element, P: Float>(
    p: &Tensor<P>,
    shape: &Shape,
    generator: &mut Generator,
    at: Site,
) -> Result<Tensor<T>, Error> {
    ensure!(
        p.distinct().iter().all(|p| p >= P::ZERO && p <= P::ONE),
        at,
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
    );
    let p = expand(p, shape, at)?;
    Tensor::build(shape, at, |out| {
        for (out, p) in out.iter_mut().zip(p.iter()) {
            *out = if generator.bernoulli(p.to_f64()) { T::ONE } else { T::ZERO };
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Arithmetic, Dropout, Reductions, Views};

    fn generator() -> Generator {
        Generator::new(1)
    }

    /// Compares tensors, which are drawn block by block, with single draws.
    #[test]
    fn normal_numbers_equal_single_draws() {
        for count in [1, 63, 64, 200, 20_000] {
            let (mut one, mut other) = (Generator::from_state(9, 3), Generator::from_state(9, 3));
            let drawn = Tensor::<f64>::randn([count], &mut one).to_vec();
            assert!(drawn.iter().all(|x| x.to_bits() == other.normal().to_bits()), "{count}");
            assert_eq!(one, other);
        }
    }

    /// Compares numbers with their own means and standard deviations, which are drawn block by block, with single draws.
    #[test]
    fn scaled_normal_numbers_equal_single_draws() {
        for count in [1usize, 63, 64, 65, 200] {
            let mean = Tensor::<f32>::linspace(-1.0, 1.0, count);
            let std = Tensor::<f32>::linspace(0.0, 3.0, 2 * count).slice(0, (.., 2));
            let (mut blocks, mut single) = (Generator::from_state(9, 3), Generator::from_state(9, 3));
            let drawn = Tensor::normal(&mean, &std, &mut blocks);
            for ((x, mean), std) in drawn.iter().zip(mean.iter()).zip(std.iter()) {
                assert_eq!(x, (f64::from(mean) + f64::from(std) * single.normal()) as f32, "{count}");
            }
            assert_eq!(blocks, single);
        }
    }

    /// Compares numbers z that are drawn in blocks with single draws, and their probabilities Φ(z) with the random words. The upper 52 bits
    /// of a word select one of 2⁵² equal intervals of (0, 1), and Φ(z) is the middle of this interval.
    #[test]
    fn normal_numbers_of_f32_are_quantiles_of_words() {
        for count in [1, 63, 64, 65, 200, 20_000] {
            let (mut blocks, mut single) = (Generator::from_state(9, 3), Generator::from_state(9, 3));
            let drawn = Tensor::<f32>::randn([count], &mut blocks).to_vec();
            for z in drawn {
                let p = ((single.clone().next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
                assert_eq!(z.to_bits(), (single.normal() as f32).to_bits(), "{count}");
                let z = f64::from(z);
                let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                // The bound covers the rounding of z to f32, half a unit in the last place, and the rounding errors of f64.
                let bound = density * z.abs() * 2f64.powi(-24) * 1.01 + 1e-15;
                let found = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
                assert!((found - p).abs() <= bound, "{z}: {found} {p}");
            }
            assert_eq!(blocks, single);
        }
    }

    /// The bounds are five standard errors of the means. A power of even order 2k has the mean (2k - 1)!!, and a power of odd order 0.
    #[test]
    fn normal_numbers_of_f32_have_the_moments_of_the_distribution() {
        let n = 200_000;
        let z = Tensor::<f32>::randn([n], &mut generator()).cast::<f64>();
        let moment = |order: i32| if order % 2 == 1 { 0.0 } else { (1..order).step_by(2).map(f64::from).product() };
        for order in 1..=6 {
            let found = z.pow(f64::from(order)).mean(..).item();
            let deviation = (moment(2 * order) - moment(order) * moment(order)).sqrt();
            assert!((found - moment(order)).abs() < 5.0 * deviation / (n as f64).sqrt(), "{order}: {found}");
        }
        // Neighbours are independent: their products have the mean 0 and the standard deviation 1.
        let product = (z.slice(0, 1..) * z.slice(0, ..-1)).mean(..).item();
        assert!(product.abs() < 5.0 / (n as f64).sqrt(), "{product}");
    }

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        // The reference values come from a Python program with the formulas of `Generator`.
        assert_eq!(Tensor::<f32>::rand([3], &mut generator()).to_vec(), [0.566_561_5, 0.745_781_7, 0.971_002_7]);
        let unit = [0.5665615751722809, 0.7457817572627011, 0.9710027535867962];
        assert_eq!(Tensor::<f64>::rand([3], &mut generator()).to_vec(), unit);
        assert_eq!(Tensor::<f64>::uniform(-2.0, 3.0, [3], &mut generator()).to_vec(), unit.map(|u| -2.0 + 5.0 * u));
        let normal = [0.1676268464091555, 0.6612741976640489, 1.8957395496870117];
        assert_eq!(Tensor::<f64>::randn([3], &mut generator()).to_vec(), normal);
        assert_eq!(Tensor::<f32>::randn([3], &mut generator()).to_vec(), normal.map(|z| z as f32));
        assert_eq!(Tensor::randperm(8, &mut generator()).to_vec(), [0, 3, 7, 1, 2, 6, 5, 4]);
        let halves = Tensor::<f32>::full([8], 0.5);
        assert_eq!(halves.bernoulli(&mut generator()).to_vec(), [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    }

    /// Compares with a search through the running sums from the first to the last weight.
    #[test]
    fn positions_with_replacement_are_found_in_the_running_sums() {
        let weights = [0.0, 2.0, 1e-17, 0.0, 3.0, 0.5, 1e-300, 0.0];
        let drawn = Tensor::from(weights).multinomial(2000, true, &mut generator());
        let mut single = generator();
        for drawn in drawn.iter() {
            let threshold = single.uniform() * weights.iter().sum::<f64>();
            let sum_to = |position: usize| weights[..=position].iter().sum::<f64>();
            assert_eq!(Some(drawn as usize), (0..weights.len()).find(|&position| threshold < sum_to(position)));
        }
        let mut after = generator();
        for _ in 0..2000 {
            after.uniform();
        }
        assert_eq!(single, after);
        // The sum is so small that each threshold is rounded to 0 or to the sum.
        let drawn = Tensor::from([0.0, 5e-324, 0.0]).multinomial(100, true, &mut generator());
        assert!(drawn.iter().all(|position| position == 1));
    }

    #[test]
    fn integers_and_positions_are_drawn_with_their_probabilities() {
        let x = Tensor::randint(-3, 5, [80_000], &mut generator());
        for value in -3..5 {
            // `count` has a binomial distribution with the standard deviation √8750. The bound is a little more than five standard
            // deviations.
            let count = x.iter().filter(|&x| x == value).count() as f64;
            assert!((count - 10_000.0).abs() < 5.0 * 10_000f64.sqrt(), "{value}: {count}");
        }
        assert!(x.iter().all(|x| (-3..5).contains(&x)));
        assert_eq!(Tensor::randint(i64::MIN, i64::MAX, [2, 3], &mut generator()).shape(), &[2, 3]);
        assert!(Tensor::try_randint(1, 1, [2], &mut generator()).is_err());

        let weights = Tensor::from([[0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 0.0, 2.0]]);
        let drawn = weights.multinomial(40_000, true, &mut generator());
        let count = |row, class| drawn.select(0, row).iter().filter(|&drawn| drawn == class).count() as f64;
        let near = |count: f64, expected: f64| (count - expected).abs() < 5.0 * expected.sqrt();
        assert!(near(count(0, 1), 10_000.0) && count(0, 1) + count(0, 2) == 40_000.0);
        assert!(near(count(1, 0), 20_000.0) && count(1, 0) + count(1, 3) == 40_000.0);
        // Without replacement, each position with a weight above 0 is drawn once.
        let mut both = weights.multinomial(2, false, &mut generator()).to_vec();
        both[..2].sort();
        both[2..].sort();
        assert_eq!(both, [1, 2, 0, 3]);
        assert!(weights.try_multinomial(3, false, &mut generator()).is_err());
        for refused in
            [Tensor::from([0.0, 0.0]), Tensor::from([1.0, -1.0]), Tensor::from([f64::NAN]), Tensor::scalar(1.0)]
        {
            assert!(refused.try_multinomial(1, true, &mut generator()).is_err(), "{refused}");
        }
        // The sum of these weights is infinite.
        let large = Tensor::from([f64::MAX, f64::MAX]).multinomial(1000, true, &mut generator());
        assert!((400..600).contains(&large.sum(..).item()));
        assert_eq!(Tensor::<f64>::zeros([0, 3]).multinomial(2, true, &mut generator()).shape(), &[0, 2]);
    }

    #[test]
    fn the_order_of_draws_is_that_of_the_elements() {
        let row = Tensor::<f64>::randn([12], &mut generator());
        assert_eq!(Tensor::randn([3, 4], &mut generator()), row.reshape([3, 4]));
        let spread = Tensor::from([[1.0], [2.0], [3.0]]);
        let drawn = Tensor::normal(&Tensor::from([10.0, 20.0, 30.0, 40.0]), &spread, &mut generator());
        assert_eq!(drawn, row.reshape([3, 4]) * &spread + &Tensor::from([10.0, 20.0, 30.0, 40.0]));
    }

    #[test]
    fn several_threads_draw_what_one_would() {
        let (mut one, mut several) = (generator(), generator());
        let drawn = Tensor::<f64>::rand([3, 12_345], &mut several);
        assert!(drawn.iter().all(|x| x == one.uniform()));
        assert_eq!(one, several);
        let dropped = Tensor::<f32>::ones([40_000]).dropout(0.5, true, &mut several);
        assert!(dropped.iter().all(|x| (x == 0.0) == one.bernoulli(0.5)));
        assert_eq!(one, several);
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        const N: usize = 1 << 16;
        // The mean and the variance of the sample must be within five standard deviations of the exact values. The fourth central moment
        // gives the standard deviation of the sample's variance.
        let check = |x: Tensor<f64>, mean: f64, variance: f64, fourth: f64| {
            let n = N as f64;
            let average = x.mean(..).item();
            assert!((average - mean).abs() < 5.0 * (variance / n).sqrt(), "{average}");
            let d = x - mean;
            let spread = (&d * &d).mean(..).item();
            assert!((spread - variance).abs() <= 5.0 * ((fourth - variance * variance) / n).sqrt() + 1e-12, "{spread}");
        };
        check(Tensor::rand([N], &mut generator()), 0.5, 1.0 / 12.0, 1.0 / 80.0);
        check(Tensor::<f32>::rand([N], &mut generator()).cast(), 0.5, 1.0 / 12.0, 1.0 / 80.0);
        check(Tensor::uniform(-1.0, 3.0, [N], &mut generator()), 1.0, 16.0 / 12.0, 256.0 / 80.0);
        check(Tensor::randn([N], &mut generator()), 0.0, 1.0, 3.0);
        check(Tensor::<f32>::randn([N], &mut generator()).cast(), 0.0, 1.0, 3.0);
        // The fourth central moment of a number that is 1 with probability p, and 0 otherwise, is p(1-p)⁴ + (1-p)p⁴. Here p is 1/4.
        let fourth = 0.25 * 0.75f64.powi(4) + 0.75 * 0.25f64.powi(4);
        check(Tensor::scalar(0.25).expand([N as isize]).bernoulli(&mut generator()), 0.25, 0.1875, fourth);
        // Each share is the probability that the magnitude of a normally distributed number is below the bound.
        let x = Tensor::<f64>::randn([N], &mut generator());
        for (bound, share) in [(1.0, 0.682_689_492_137), (2.0, 0.954_499_736_104)] {
            let within = x.iter().filter(|x| x.abs() < bound).count() as f64 / N as f64;
            assert!((within - share).abs() < 5.0 * (share * (1.0 - share) / N as f64).sqrt(), "{within}");
        }
    }

    #[test]
    fn the_upper_bound_is_excluded() {
        // `high` is the second f32 above 1. Rounding could give three numbers: 1, the f32 above 1, and `high`, which is excluded.
        let high = 1.0 + 2.0 * f64::from(f32::EPSILON);
        let x = Tensor::<f32>::uniform(1.0, high, [1000], &mut generator());
        assert!(x.iter().all(|x| x == 1.0 || x == 1.0 + f32::EPSILON));
        assert_eq!(Tensor::<f64>::uniform(2.0, 2.0, [2], &mut generator()).to_vec(), [2.0, 2.0]);
        assert_eq!(Tensor::<f64>::uniform(-1.0, 0.0, [3, 0], &mut generator()).numel(), 0);
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut generator = generator();
        // The first two numbers give an order its place. Places 0, 4 and 8 stand for equal numbers and stay empty.
        let mut counts = [0i32; 9];
        for _ in 0..6000 {
            let order = Tensor::randperm(3, &mut generator).to_vec();
            counts[(3 * order[0] + order[1]) as usize] += 1;
        }
        // Each of the 6 orders has probability 1/6, so the standard deviation of a count is √(6000 · 5/36) ≈ 29.
        for (place, &count) in counts.iter().enumerate() {
            let fair = if place % 4 == 0 { count == 0 } else { (count - 1000).abs() < 5 * 29 };
            assert!(fair, "{counts:?}");
        }
        assert_eq!(
            (Tensor::randperm(0, &mut generator).numel(), Tensor::randperm(1, &mut generator).to_vec()),
            (0, vec![0])
        );
    }

    #[test]
    fn what_is_refused() {
        let generator = &mut generator();
        let sentence = |result: Result<Tensor<f64>, Error>| result.unwrap_err().sentence();
        let (two, three) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([3]));
        let table = [
            (
                sentence(Tensor::try_uniform(2.0, 1.0, [2], generator)),
                "uniform expects to return a [from, to) range, but found from=2 > to=1",
            ),
            (
                sentence(Tensor::try_uniform(f64::NAN, 1.0, [2], generator)),
                "uniform expects to-from to be finite, but found from=NaN and to=1",
            ),
            (
                sentence(Tensor::try_normal(&two, &three, generator)),
                "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
            ),
            (sentence(Tensor::try_normal(&two, &(-&two), generator)), "normal expects all elements of std >= 0.0"),
            (
                sentence(Tensor::try_normal(&two, &Tensor::from([f64::NAN]), generator)),
                "normal expects all elements of std >= 0.0",
            ),
            (
                sentence(Tensor::from([0.5, 1.5]).try_bernoulli(generator)),
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
            ),
            (sentence(Tensor::try_rand([-1], generator)), "a size must not be negative, but got -1"),
        ];
        for (sentence, expected) in table {
            assert_eq!(sentence, expected);
        }
        let huge = [1usize << 40, 1 << 20];
        assert!(matches!(Tensor::<f32>::try_rand(huge, generator), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::<f32>::try_randn(huge, generator), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::try_randperm(1 << 50, generator), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::try_randperm(usize::MAX, generator), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn probabilities_expand_to_what_they_fill() {
        let generator = &mut generator();
        let half = Tensor::<f64>::full([3, 1, 7], 0.5);
        let mut x = Tensor::<f32>::full([1, 3, 1], 9.0);
        let held = x.clone();
        assert_eq!(
            x.try_bernoulli_(&half, generator).unwrap_err().sentence(),
            "The expanded size of the tensor (1) must match the existing size (7) at non-singleton dimension 2.  \
             Target sizes: [1, 3, 1].  Tensor sizes: [3, 1, 7]"
        );
        assert!(matches!(
            Tensor::<i64>::zeros([2]).expand([3, 2]).try_bernoulli_(&half, generator),
            Err(Error::Overlap { internal: true, .. })
        ));
        assert!(matches!(Tensor::<i64>::zeros([7]).try_bernoulli_(&half, generator), Err(Error::ExpandSizes { .. })));
        assert_eq!(x, held);
        x.bernoulli_(&Tensor::from([[0.0f32], [1.0], [0.0]]), generator);
        assert_eq!((x.to_vec(), held.to_vec()), (vec![0.0, 1.0, 0.0], vec![9.0; 3]));
        x.bernoulli_(&Tensor::scalar(1.0), generator);
        assert_eq!(x.to_vec(), [1.0; 3]);
    }
}
