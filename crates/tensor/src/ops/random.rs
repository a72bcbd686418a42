//! Random tensors from a generator that the caller seeds.
//!
//! Elements are drawn one after the other in row-major order, from the generator's bits by arithmetic that IEEE 754
//! fixes and the logarithm of `libm`: one seed gives the same tensors on every platform. (The distributions of other
//! crates promise less: they call the platform's mathematics, and may change the order of their draws.) There is no
//! global generator.

use rand::Rng;
use wengert_macros::twins;

use crate::ops::InPlace;
use crate::ops::pair::{expanded, join_all};
use crate::{DType, Element, Error, Float, Shape, Site, Sizes, Tensor};

#[twins]
impl<T: Float> Tensor<T> {
    /// Numbers evenly distributed over [0, 1): multiples of 2⁻²⁴ (`f32`) or 2⁻⁵³ (`f64`). PyTorch: `rand`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let x = Tensor::<f32>::rand([2, 3], &mut rng);
    /// assert!(x.iter().all(|x| (0.0..1.0).contains(&x)));
    /// ```
    ///
    /// # Errors
    ///
    /// Where memory cannot hold them.
    pub fn try_rand<R: Rng + ?Sized>(shape: impl Into<Sizes>, rng: &mut R) -> Result<Self, Error> {
        Tensor::drawn(shape.into(), Site::here("rand"), || unit::<T, R>(rng))
    }

    /// Numbers evenly distributed over [`low`, `high`), or all `low` where both are equal. PyTorch: `uniform_`.
    ///
    /// # Errors
    ///
    /// Where `low` is above `high`, either is infinite or NaN as an element, their distance is, or memory cannot hold
    /// them.
    pub fn try_uniform<R: Rng + ?Sized>(
        low: f64,
        high: f64,
        shape: impl Into<Sizes>,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let at = Site::here("uniform");
        let [low, high] = [low, high].map(|bound| T::from_f64(bound).to_f64());
        if low > high {
            let message = format!("uniform expects to return a [from, to) range, but found from={low} > to={high}");
            return Err(Error::argument(at, message));
        }
        if !T::from_f64(high - low).is_finite() || !low.is_finite() {
            let message = format!("uniform expects to-from to be finite, but found from={low} and to={high}");
            return Err(Error::argument(at, message));
        }
        // Rounding may reach the upper bound, which is excluded.
        let last = match T::DTYPE {
            DType::F32 => f64::from((high as f32).next_down()),
            _ => high.next_down(),
        };
        let bound = last.max(low);
        Tensor::drawn(shape.into(), at, || {
            let x = T::from_f64(low + (high - low) * unit::<T, R>(rng).to_f64());
            T::from_f64(x.to_f64().min(bound))
        })
    }

    /// Numbers from the normal distribution of mean 0 and standard deviation 1. PyTorch: `randn`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let x = Tensor::<f64>::randn([100, 100], &mut rng);
    /// assert!(x.mean(..).item().abs() < 0.05);
    /// ```
    ///
    /// # Errors
    ///
    /// Where memory cannot hold them.
    pub fn try_randn<R: Rng + ?Sized>(shape: impl Into<Sizes>, rng: &mut R) -> Result<Self, Error> {
        let mut normal = Normal::default();
        Tensor::drawn(shape.into(), Site::here("randn"), || T::from_f64(normal.draw(rng)))
    }

    /// Numbers from normal distributions, each with its own mean and standard deviation; both broadcast. PyTorch:
    /// `normal`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let mean = Tensor::from([[0.0], [100.0]]);
    /// let x = Tensor::normal(&mean, &Tensor::from([0.0, 1.0, 2.0]), &mut rng);
    /// assert_eq!(x.shape(), &[2, 3]);
    /// assert_eq!(x.get(&[1, 0]), Some(100.0));
    /// ```
    ///
    /// # Errors
    ///
    /// Where the shapes do not broadcast, a standard deviation is negative or NaN, or memory cannot hold the result.
    pub fn try_normal<R: Rng + ?Sized>(mean: &Self, std: &Self, rng: &mut R) -> Result<Self, Error> {
        let at = Site::here("normal");
        let shape = join_all(&[mean.shape(), std.shape()], at)?;
        if !std.distinct().iter().all(|std| std >= T::ZERO) {
            return Err(Error::argument(at, "normal expects all elements of std >= 0.0"));
        }
        let (mean, std) = (expanded(mean, &shape, at)?, expanded(std, &shape, at)?);
        let mut normal = Normal::default();
        Tensor::build(&shape, at, |out| {
            for ((out, mean), std) in out.iter_mut().zip(mean.iter()).zip(std.iter()) {
                *out = T::from_f64(mean.to_f64() + std.to_f64() * normal.draw(rng));
            }
        })
    }

    /// For each element, read as a probability, 1 with that probability and 0 otherwise. PyTorch: `bernoulli`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let drawn = Tensor::from([0.0, 0.5, 1.0]).expand([1000, 3]).bernoulli(&mut rng);
    /// let share = drawn.mean(0).to_vec();
    /// assert!(share[0] == 0.0 && (0.4..0.6).contains(&share[1]) && share[2] == 1.0);
    /// ```
    ///
    /// # Errors
    ///
    /// Where an element is not in [0, 1], or memory cannot hold the result.
    pub fn try_bernoulli<R: Rng + ?Sized>(&self, rng: &mut R) -> Result<Self, Error> {
        trials(self, self.shape(), rng, Site::here("bernoulli"))
    }
}

#[twins]
impl<T: Element> Tensor<T> {
    /// Every element made 1 (`true`) with the probability that `p` has there, 0 (`false`) otherwise; `p` expands to the
    /// shape of `self`. PyTorch: `bernoulli_`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let mut mask = Tensor::<bool>::zeros([4, 3]);
    /// mask.bernoulli_(&Tensor::from([0.0, 1.0, 0.5]), &mut rng);
    /// assert_eq!(mask.narrow(1, 0, 2), Tensor::from([false, true]).expand([4, 2]));
    /// ```
    ///
    /// # Errors
    ///
    /// Where `p` does not expand to the shape of `self`, an element of `p` is not in [0, 1], `self` is expanded, or
    /// memory cannot hold the result.
    pub fn try_bernoulli_<P: Float, R: Rng + ?Sized>(&mut self, p: &Tensor<P>, rng: &mut R) -> Result<(), Error> {
        let at = Site::here("bernoulli_");
        self.check_write(None, at)?;
        let shape = Sizes::from(self.shape()).resolve_expand(P::DTYPE, p.shape(), at)?;
        *self = trials(p, &shape, rng, at)?;
        Ok(())
    }

    fn drawn(shape: Sizes, at: Site, mut draw: impl FnMut() -> T) -> Result<Self, Error> {
        let shape = shape.resolve_plain(at)?;
        Tensor::build(&shape, at, |out| out.iter_mut().for_each(|out| *out = draw()))
    }
}

#[twins]
impl Tensor<i64> {
    /// The numbers 0 to `n` - 1 in random order, every order with the same probability. PyTorch: `randperm`.
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    /// let mut order = Tensor::randperm(5, &mut rng).to_vec();
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// ```
    ///
    /// # Errors
    ///
    /// Where memory cannot hold them.
    pub fn try_randperm<R: Rng + ?Sized>(n: usize, rng: &mut R) -> Result<Self, Error> {
        shuffled(n, rng, Site::here("randperm"))
    }
}

/// Evenly over [0, 1), as fine as the significand of `T` is at 1/2.
fn unit<T: Float, R: Rng + ?Sized>(rng: &mut R) -> T {
    T::from_f64(match T::DTYPE {
        DType::F32 => f64::from(rng.next_u32() >> 8) / f64::from(1 << 24),
        _ => fine(rng),
    })
}

pub(crate) fn fine<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The normal distribution by the polar method (G. Marsaglia and T. A. Bray, "A convenient method for generating normal
/// variables", 1964), which draws two numbers at a time.
#[derive(Default)]
struct Normal {
    second: Option<f64>,
}

impl Normal {
    fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        loop {
            let (u, v) = (2.0 * fine(rng) - 1.0, 2.0 * fine(rng) - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * libm::log(s) / s).sqrt();
                self.second = Some(v * scale);
                return u * scale;
            }
        }
    }
}

/// One trial for each element of `p` expanded to `shape`.
fn trials<T: Element, P: Float, R: Rng + ?Sized>(
    p: &Tensor<P>,
    shape: &Shape,
    rng: &mut R,
    at: Site,
) -> Result<Tensor<T>, Error> {
    if !p.distinct().iter().all(|p| p >= P::ZERO && p <= P::ONE) {
        return Err(Error::argument(at, "Expected p_in >= 0 && p_in <= 1 to be true, but got false."));
    }
    let p = expanded(p, shape, at)?;
    Tensor::build(shape, at, |out| {
        for (out, p) in out.iter_mut().zip(p.iter()) {
            *out = if fine(rng) < p.to_f64() { T::ONE } else { T::ZERO };
        }
    })
}

/// Fisher and Yates's shuffle (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P).
fn shuffled<R: Rng + ?Sized>(n: usize, rng: &mut R, at: Site) -> Result<Tensor<i64>, Error> {
    Tensor::build(&Sizes::from([n]).resolve_plain(at)?, at, |out| {
        for (out, i) in out.iter_mut().zip(0..) {
            *out = i;
        }
        for last in (1..n).rev() {
            out.swap(last, below(last as u64 + 1, rng) as usize);
        }
    })
}

/// A number below `n`, each with the same probability (D. Lemire, "Fast random integer generation in an interval",
/// 2019).
fn below<R: Rng + ?Sized>(n: u64, rng: &mut R) -> u64 {
    let uneven = n.wrapping_neg() % n;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        if wide as u64 >= uneven {
            return (wide >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::*;
    use crate::ops::{Reductions, Views};

    fn rng() -> Pcg64 {
        Pcg64::seed_from_u64(1)
    }

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        // From the generator's integers by the same formulas in another language.
        assert_eq!(Tensor::<f32>::rand([3], &mut rng()).to_vec(), [0.14071923, 0.54191107, 0.2853654]);
        let unit = [0.8398736585259249, 0.017298675035571365, 0.11390171020416662];
        assert_eq!(Tensor::<f64>::rand([3], &mut rng()).to_vec(), unit);
        assert_eq!(Tensor::<f64>::uniform(-2.0, 3.0, [3], &mut rng()).to_vec(), unit.map(|u| -2.0 + 5.0 * u));
        let normal = [0.9993794221891118, -0.062139970925751915, -1.207218487888311];
        assert_eq!(Tensor::<f64>::randn([3], &mut rng()).to_vec(), normal);
        assert_eq!(Tensor::<f32>::randn([3], &mut rng()).to_vec(), normal.map(|z| z as f32));
        assert_eq!(Tensor::randperm(8, &mut rng()).to_vec(), [2, 5, 1, 3, 4, 7, 0, 6]);
        let halves = Tensor::<f32>::full([8], 0.5);
        assert_eq!(halves.bernoulli(&mut rng()).to_vec(), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_order_of_draws_is_that_of_the_elements() {
        let row = Tensor::<f64>::randn([12], &mut rng());
        assert_eq!(Tensor::randn([3, 4], &mut rng()), row.reshape([3, 4]));
        let spread = Tensor::from([[1.0], [2.0], [3.0]]);
        let drawn = Tensor::normal(&Tensor::from([10.0, 20.0, 30.0, 40.0]), &spread, &mut rng());
        assert_eq!(drawn, row.reshape([3, 4]) * &spread + &Tensor::from([10.0, 20.0, 30.0, 40.0]));
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        const N: usize = 1 << 16;
        // Mean and variance, each within five of its own standard deviations; the fourth central moment gives the
        // second.
        let check = |x: Tensor<f64>, mean: f64, variance: f64, fourth: f64| {
            let n = N as f64;
            let average = x.mean(..).item();
            assert!((average - mean).abs() < 5.0 * (variance / n).sqrt(), "{average}");
            let d = x - mean;
            let spread = (&d * &d).mean(..).item();
            assert!((spread - variance).abs() <= 5.0 * ((fourth - variance * variance) / n).sqrt() + 1e-12, "{spread}");
        };
        check(Tensor::rand([N], &mut rng()), 0.5, 1.0 / 12.0, 1.0 / 80.0);
        check(Tensor::<f32>::rand([N], &mut rng()).cast(), 0.5, 1.0 / 12.0, 1.0 / 80.0);
        check(Tensor::uniform(-1.0, 3.0, [N], &mut rng()), 1.0, 16.0 / 12.0, 256.0 / 80.0);
        check(Tensor::randn([N], &mut rng()), 0.0, 1.0, 3.0);
        check(Tensor::<f32>::randn([N], &mut rng()).cast(), 0.0, 1.0, 3.0);
        // (p(1-p)⁴ + (1-p)p⁴) for p = 1/4
        let fourth = 0.25 * 0.75f64.powi(4) + 0.75 * 0.25f64.powi(4);
        check(Tensor::scalar(0.25).expand([N as isize]).bernoulli(&mut rng()), 0.25, 0.1875, fourth);
        // Shares of the normal distribution within 1 and 2.
        let x = Tensor::<f64>::randn([N], &mut rng());
        for (bound, share) in [(1.0, 0.682_689_492_137), (2.0, 0.954_499_736_104)] {
            let within = x.iter().filter(|x| x.abs() < bound).count() as f64 / N as f64;
            assert!((within - share).abs() < 5.0 * (share * (1.0 - share) / N as f64).sqrt(), "{within}");
        }
    }

    #[test]
    fn the_upper_bound_is_excluded() {
        // Between 1 and the next number but one there are two numbers to draw, and three to round to.
        let high = 1.0 + 2.0 * f64::from(f32::EPSILON);
        let x = Tensor::<f32>::uniform(1.0, high, [1000], &mut rng());
        assert!(x.iter().all(|x| x == 1.0 || x == 1.0 + f32::EPSILON));
        assert_eq!(Tensor::<f64>::uniform(2.0, 2.0, [2], &mut rng()).to_vec(), [2.0, 2.0]);
        assert_eq!(Tensor::<f64>::uniform(-1.0, 0.0, [3, 0], &mut rng()).numel(), 0);
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut rng = rng();
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(Tensor::randperm(3, &mut rng).to_vec()).or_insert(0) += 1;
        }
        // 6 orders of probability 1/6: standard deviation √(6000 · 5/36) ≈ 29.
        assert!(counts.len() == 6 && counts.values().all(|&count: &i32| (count - 1000).abs() < 5 * 29), "{counts:?}");
        assert_eq!((Tensor::randperm(0, &mut rng).numel(), Tensor::randperm(1, &mut rng).to_vec()), (0, vec![0]));
    }

    #[test]
    fn what_is_refused() {
        let rng = &mut rng();
        let sentence = |result: Result<Tensor<f64>, Error>| result.unwrap_err().sentence();
        let (two, three) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([3]));
        let table = [
            (
                sentence(Tensor::try_uniform(2.0, 1.0, [2], rng)),
                "uniform expects to return a [from, to) range, but found from=2 > to=1",
            ),
            (
                sentence(Tensor::try_uniform(f64::NAN, 1.0, [2], rng)),
                "uniform expects to-from to be finite, but found from=NaN and to=1",
            ),
            (
                sentence(Tensor::try_normal(&two, &three, rng)),
                "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
            ),
            (sentence(Tensor::try_normal(&two, &(-&two), rng)), "normal expects all elements of std >= 0.0"),
            (
                sentence(Tensor::try_normal(&two, &Tensor::from([f64::NAN]), rng)),
                "normal expects all elements of std >= 0.0",
            ),
            (
                sentence(Tensor::from([0.5, 1.5]).try_bernoulli(rng)),
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
            ),
            (sentence(Tensor::try_rand([-1], rng)), "a size must not be negative, but got -1"),
        ];
        for (sentence, expected) in table {
            assert_eq!(sentence, expected);
        }
        let huge = [1usize << 40, 1 << 20];
        assert!(matches!(Tensor::<f32>::try_rand(huge, rng), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::<f32>::try_randn(huge, rng), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::try_randperm(1 << 50, rng), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Tensor::try_randperm(usize::MAX, rng), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn probabilities_expand_to_what_they_fill() {
        let rng = &mut rng();
        let half = Tensor::<f64>::full([3, 1, 7], 0.5);
        let mut x = Tensor::<f32>::full([1, 3, 1], 9.0);
        let held = x.clone();
        assert_eq!(
            x.try_bernoulli_(&half, rng).unwrap_err().sentence(),
            "The expanded size of the tensor (1) must match the existing size (7) at non-singleton dimension 2.  \
             Target sizes: [1, 3, 1].  Tensor sizes: [3, 1, 7]"
        );
        assert!(matches!(
            Tensor::<i64>::zeros([2]).expand([3, 2]).try_bernoulli_(&half, rng),
            Err(Error::Overlap { internal: true, .. })
        ));
        assert!(matches!(Tensor::<i64>::zeros([7]).try_bernoulli_(&half, rng), Err(Error::ExpandSizes { .. })));
        assert_eq!(x, held);
        x.bernoulli_(&Tensor::from([[0.0f32], [1.0], [0.0]]), rng);
        assert_eq!((x.to_vec(), held.to_vec()), (vec![0.0, 1.0, 0.0], vec![9.0; 3]));
        x.bernoulli_(&Tensor::scalar(1.0), rng);
        assert_eq!(x.to_vec(), [1.0; 3]);
    }
}
