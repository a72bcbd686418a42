//! Random streams, seeded and counted, and the initial values that are drawn from them.
//!
//! The same seed gives the same numbers on every platform and with any number of threads: each thing that needs randomness
//! (a layer, one shuffling) takes a stream of its own, numbered in the order of asking.

use rand::distr::{Distribution, Uniform};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use wengert_tensor::{Float, Shape, Tensor};

/// A seed, and how many streams were taken from it. PyTorch: `torch.Generator` with `manual_seed`.
///
/// ```
/// use wengert_nn::Generator;
///
/// let mut generator = Generator::new(42);
/// let mut order: Vec<usize> = (0..5).collect();
/// generator.shuffle(&mut order);
/// assert_eq!(order, [3, 2, 4, 1, 0]); // on every platform
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    seed: u64,
    count: u64,
}

impl Generator {
    /// The streams of `seed`, from the first.
    pub fn new(seed: u64) -> Self {
        Generator { seed, count: 0 }
    }

    /// The streams of `seed` from number `count` on: where training resumes after `count` streams were taken.
    pub fn at(seed: u64, count: u64) -> Self {
        Generator { seed, count }
    }

    /// How many streams were taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next stream.
    ///
    /// Stream number n is seeded by the n-th number of the generator that the seed gives: neighbouring seeds and neighbouring
    /// streams have nothing in common.
    pub fn stream(&mut self) -> Pcg64 {
        let mut keys = Pcg64::seed_from_u64(self.seed);
        keys.advance(u128::from(self.count));
        self.count += 1;
        Pcg64::seed_from_u64(keys.next_u64())
    }

    /// Puts `items` in random order, every order as likely as any other. Takes one stream.
    pub fn shuffle<I>(&mut self, items: &mut [I]) {
        use rand::seq::SliceRandom;
        items.shuffle(&mut self.stream());
    }
}

/// Numbers uniformly distributed from `-bound` to `bound`. Takes one stream. A bound of 0 gives zeros. PyTorch:
/// `torch.nn.init.uniform_`.
///
/// ```
/// use wengert_nn::{Generator, uniform};
///
/// let weight = uniform::<f32>([10, 64], 0.125, &mut Generator::new(0));
/// assert!(weight.iter().all(|w| w.abs() <= 0.125));
/// ```
///
/// # Panics
///
/// Where `bound` is negative or not finite, or memory cannot hold the tensor.
#[track_caller]
pub fn uniform<T: Float>(shape: impl Into<Shape>, bound: f64, generator: &mut Generator) -> Tensor<T> {
    let mut stream = generator.stream();
    let Ok(distribution) = Uniform::new_inclusive(-bound, bound) else {
        panic!("uniform(): expected a bound that is finite and not negative, got {bound}");
    };
    Tensor::from_fn(shape.into(), |_| T::from_f64(distribution.sample(&mut stream)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_told_by_seed_and_number() {
        let mut generator = Generator::new(7);
        let drawn: Vec<u64> = (0..4).map(|_| generator.stream().next_u64()).collect();
        assert_eq!(generator.count(), 4);
        assert_eq!(Generator::at(7, 2).stream().next_u64(), drawn[2]);
        assert_ne!(Generator::new(8).stream().next_u64(), drawn[0]);
        assert!((0..4).all(|i| (0..i).all(|j| drawn[i] != drawn[j])));
    }

    #[test]
    fn the_numbers_are_pinned() {
        let drawn = uniform::<f64>([3], 1.0, &mut Generator::new(0));
        assert_eq!(drawn.to_vec(), [0.2516150185870829, 0.8165821984543222, -0.8394655097647541]);
    }

    #[test]
    fn uniform_numbers_have_the_moments_of_their_distribution() {
        let n = 10_000;
        let drawn = uniform::<f64>([n], 0.5, &mut Generator::new(3)).to_vec();
        let mean = drawn.iter().sum::<f64>() / n as f64;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / n as f64;
        // Of n numbers from U(-1/2, 1/2) the mean has the deviation √(1/12n), the mean square √(1/180n); five of each.
        assert!(mean.abs() < 5.0 * (1.0 / (12.0 * n as f64)).sqrt(), "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 5.0 * (1.0 / (180.0 * n as f64)).sqrt(), "{variance}");
    }
}
