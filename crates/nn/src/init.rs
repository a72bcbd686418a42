//! Random streams, seeded and counted.
//!
//! The same seed gives the same numbers on every platform and with any number of threads: each thing that needs
//! randomness (a layer, one shuffling) takes a stream of its own, numbered in the order of asking.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

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
    /// Stream number n is seeded by the n-th number of the generator that the seed gives: neighbouring seeds and
    /// neighbouring streams have nothing in common. Draw from it as in `Tensor::uniform(…, &mut generator.stream())`.
    pub fn stream(&mut self) -> Pcg64 {
        let mut keys = Pcg64::seed_from_u64(self.seed);
        keys.advance(u128::from(self.count));
        self.count += 1;
        Pcg64::seed_from_u64(keys.next_u64())
    }

    /// Puts `items` in random order, every order as likely as any other. Takes one stream.
    pub fn shuffle<I>(&mut self, items: &mut [I]) {
        items.shuffle(&mut self.stream());
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::*;

    #[test]
    fn seed_and_number_determine_a_stream() {
        let mut generator = Generator::new(7);
        let drawn: Vec<u64> = (0..4).map(|_| generator.stream().next_u64()).collect();
        assert_eq!(generator.count(), 4);
        assert_eq!(Generator::at(7, 2).stream().next_u64(), drawn[2]);
        assert_ne!(Generator::new(8).stream().next_u64(), drawn[0]);
        assert!((0..4).all(|i| (0..i).all(|j| drawn[i] != drawn[j])));
    }

    #[test]
    fn the_numbers_are_pinned() {
        let drawn = Tensor::<f64>::uniform(-1.0, 1.0, [3], &mut Generator::new(0).stream());
        assert_eq!(drawn.to_vec(), [0.2516150185870829, 0.816582198454322, -0.8394655097647539]);
    }
}
