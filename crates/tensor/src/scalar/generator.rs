//! Random numbers from a seed.
//!
//! The generator is SplitMix64: a counter advances by a constant (2⁶⁴ divided by the golden ratio), and each word is the counter with mixed
//! bits (G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators", 2014; D. Stafford's mixture 13, as in Java
//! and in S. Vigna's splitmix64.c). Word n of a seed depends only on n and the seed, so any thread can compute any word. The generator
//! passes the tests of BigCrush, and a word takes about a nanosecond. The state is a seed and a count, so a checkpoint can store it. The
//! methods of [`Generator`] compute numbers from these words with IEEE 754 arithmetic, and with `log` and `erfc` of the crate `libm`. So a
//! seed gives the same numbers on every platform, as long as these two functions stay the same. The generator is not for cryptography.
//!
//! All seeds share one sequence of 2⁶⁴ words, and each seed starts at a different position. If two seeds differ by less than 1000, their
//! positions are more than 7 · 10¹⁵ words apart. The position of a [`fork`](Generator::fork) is random.

use std::f64::consts::FRAC_1_SQRT_2;

use crate::scalar::cpu::dispatched;
use crate::scalar::special::{QUANTILES, normal_quantile, normal_quantiles};

/// A random number generator: a seed, and the number of 64-bit words drawn from it. PyTorch: `torch.Generator` with `manual_seed`.
///
/// Equal seeds and counts give equal numbers. Each number that a method of this type draws takes one word. Only [`below`](Self::below), and
/// methods that call it, may take more words. With a probability of less than n / 2⁶⁴, `below` rejects a word, so that all results are
/// equally likely.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let mut generator = Generator::new(42);
/// let x = Tensor::<f32>::randn([2, 3], &mut generator);
/// assert_eq!(generator.state(), (42, 6));
/// assert_eq!(x.get(&[1, 2]), Some(Generator::from_state(42, 5).normal() as f32));
///
/// let mut order = [0, 1, 2, 3, 4];
/// generator.shuffle(&mut order);
/// assert_eq!(order, [0, 2, 4, 3, 1]); // on every platform
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Generator {
    seed: u64,
    count: u64,
}

impl Generator {
    /// Returns a generator that starts at the first word of `seed`. PyTorch: `manual_seed`.
    #[doc(alias("manual_seed"))]
    pub fn new(seed: u64) -> Self {
        Generator { seed, count: 0 }
    }

    /// Returns a generator that has drawn `count` words of `seed`. This restores a [`state`](Self::state). PyTorch: `set_state`.
    pub fn from_state(seed: u64, count: u64) -> Self {
        Generator { seed, count }
    }

    /// Returns the seed and the count. PyTorch: `get_state`.
    pub fn state(&self) -> (u64, u64) {
        (self.seed, self.count)
    }

    /// Returns the seed. PyTorch: `initial_seed`.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of words that were drawn.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a generator whose seed is the next word of this one. Its numbers are independent of the numbers that this generator draws
    /// later. Use a fork for a part of a program whose random numbers must not depend on the draws of other parts.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// let (mut a, mut b) = (generator.fork(), generator.fork());
    /// assert_ne!(a.next_u64(), b.next_u64());
    /// assert_eq!(Generator::new(1).fork(), Generator::from_state(a.seed(), 0));
    /// ```
    #[must_use = "a fork draws its own numbers"]
    pub fn fork(&mut self) -> Self {
        Generator::new(self.next_u64())
    }

    /// Draws a 64-bit word. Each value has the same probability.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        word_at(self.seed, self.count)
    }

    /// Returns a copy of this generator that is `words` words ahead.
    pub(crate) fn copy_ahead(&self, words: usize) -> Self {
        Generator { seed: self.seed, count: self.count.wrapping_add(words as u64) }
    }

    /// Draws from the uniform distribution over [0, 1). The result is a multiple of 2⁻⁵³, from the upper bits of a word.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from the uniform distribution over [0, 1). The result is a multiple of 2⁻²⁴, from the upper bits of a word.
    #[inline]
    pub fn uniform_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Draws from the normal distribution of mean 0 and standard deviation 1. The result is the quantile at the middle of one of 2⁵² equal
    /// parts of (0, 1), so it is between -8.21 and 8.21.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.open_uniform())
    }

    /// Draws the same numbers as [`QUANTILES`] calls of [`normal`](Self::normal), in loops that can be vectorized.
    pub(crate) fn normals(&mut self) -> [f64; QUANTILES] {
        let (mut p, mut z) = ([0.0; QUANTILES], [0.0; QUANTILES]);
        midpoints(self.seed, self.count, &mut p);
        self.count = self.count.wrapping_add(QUANTILES as u64);
        normal_quantiles(&p, &mut z);
        z
    }

    /// Draws from the normal distribution of mean 0 and standard deviation 1, truncated to [`low`, `high`]. The result is the quantile of a
    /// probability drawn uniformly between the probabilities of the bounds. If both bounds are positive, the result is the negative of a
    /// draw from [-`high`, -`low`]. The reason is that probabilities near 1 round to 1, but probabilities near 0 stay distinct. If both
    /// bounds are above 38.5 or both are below -38.5, the result is the bound nearer to 0.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut generator = Generator::new(1);
    /// assert!((0..100).all(|_| (-2.0..=1.0).contains(&generator.truncated_normal(-2.0, 1.0))));
    /// assert!((9.0..9.5).contains(&generator.truncated_normal(9.0, f64::INFINITY)));
    /// ```
    ///
    /// # Panics
    ///
    /// If `low` is not below `high`, or one of them is NaN.
    #[track_caller]
    pub fn truncated_normal(&mut self, low: f64, high: f64) -> f64 {
        assert!(low < high, "truncated_normal(): expected low < high, but got low={low} and high={high}");
        if low > 0.0 {
            return -self.truncated_normal(-high, -low);
        }
        truncated_normal_quantile(self.open_uniform(), low, high)
    }

    /// Draws from the Gumbel distribution with location 0 and scale 1. The result is the quantile at the middle of one of 2⁵² equal parts of
    /// (0, 1), so it is between -3.61 and 36.74.
    #[inline]
    pub(crate) fn gumbel(&mut self) -> f64 {
        -libm::log(-libm::log(self.open_uniform()))
    }

    /// Draws the middle of one of the 2⁵² equal parts of (0, 1).
    #[inline]
    fn open_uniform(&mut self) -> f64 {
        midpoint(self.next_u64())
    }

    /// Returns `true` with probability `p`: never if `p` is NaN or at most 0, always if it is at least 1.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Draws a number from 0 to `n` - 1, each with the same probability (D. Lemire, "Fast random integer generation in an interval", 2019).
    ///
    /// # Panics
    ///
    /// If `n` is 0.
    #[track_caller]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "below(): there is no number from 0 to -1");
        let uneven = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(n);
            if wide as u64 >= uneven {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Puts `items` in random order. All orders have the same probability (R. Durstenfeld's shuffle, 1964; D. E. Knuth, The Art of Computer
    /// Programming 2, 3.4.2, algorithm P). Draws one word for each item except one, and rarely more ([`below`](Self::below)).
    pub fn shuffle<I>(&mut self, items: &mut [I]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Returns the integers 0 to `n` - 1 in random order. [`Tensor::randperm`](crate::Tensor::randperm) returns them as a tensor.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }
}

/// Returns the word with the index `count` in the sequence of a seed. The first index is 1.
#[inline]
fn word_at(seed: u64, count: u64) -> u64 {
    mix_bits(seed.wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Returns the quantile at `p` of the normal distribution of mean 0 and standard deviation 1, truncated to [`low`, `high`]. `p` is between 0
/// and 1, without these bounds, and `low` is at most 0.
fn truncated_normal_quantile(p: f64, low: f64, high: f64) -> f64 {
    let [below, above] = [low, high].map(|z| 0.5 * libm::erfc(-z * FRAC_1_SQRT_2));
    // The sum can round to 1, whose quantile is infinite.
    let p = (below + p * (above - below)).min(1.0 - 0.5 * f64::EPSILON);
    if p > 0.0 { normal_quantile(p).clamp(low, high) } else { high }
}

/// Divides (0, 1) into 2⁵² equal parts. Returns the middle of the part whose index is in the upper 52 bits of `word`.
#[inline]
fn midpoint(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

dispatched! {
    /// Writes the [`midpoint`] of each word to `out`, for the words that follow the first `count` words of a seed.
    fn midpoints(seed: u64, count: u64, out: &mut [f64; QUANTILES]) {
        for (number, out) in (1..).zip(out) {
            *out = midpoint(word_at(seed, count.wrapping_add(number)));
        }
    }
}

/// Returns a word in which each bit depends on all bits of `z`.
#[inline]
fn mix_bits(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the first five numbers of splitmix64.c for the seed 1234567, which other implementations also test.
    #[test]
    fn the_words_are_those_of_the_reference() {
        let mut generator = Generator::new(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(generator.next_u64(), expected);
        }
    }

    /// The expected values were computed in Python, by the formulas of this file.
    #[test]
    fn every_draw_is_pinned() {
        let mut generator = Generator::new(1);
        let drawn: Vec<u64> = (0..3).map(|_| generator.next_u64()).collect();
        assert_eq!(drawn, [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67, 0xf893_a2ee_fb32_555e]);
        let draw = |draw: fn(&mut Generator) -> f64| -> [f64; 3] {
            let mut generator = Generator::new(1);
            [(); 3].map(|()| draw(&mut generator))
        };
        assert_eq!(draw(Generator::uniform), [0.5665615751722809, 0.7457817572627011, 0.9710027535867962]);
        assert_eq!(
            draw(|generator| f64::from(generator.uniform_f32())),
            [0.5665615200996399, 0.7457817196846008, 0.9710026979446411]
        );
        assert_eq!(draw(Generator::normal), [0.1676268464091555, 0.6612741976640489, 1.8957395496870117]);
        assert_eq!(draw(|generator| generator.below(1000) as f64), [566.0, 745.0, 971.0]);
        assert_eq!(draw(|generator| generator.bernoulli(0.5).into()), [0.0, 0.0, 0.0]);
        assert_eq!(Generator::new(1).permutation(10), [9, 0, 1, 4, 8, 2, 3, 7, 6, 5]);
        assert_eq!(Generator::new(1).fork().next_u64(), 0x5e41_ab08_7439_611e);
    }

    #[test]
    fn the_state_is_a_seed_and_a_count() {
        let mut generator = Generator::new(7);
        let drawn: Vec<u64> = (0..4).map(|_| generator.next_u64()).collect();
        assert_eq!((generator.state(), generator.seed(), generator.count()), ((7, 4), 7, 4));
        let mut later = Generator::from_state(7, 2);
        assert_eq!([later.next_u64(), later.next_u64()], drawn[2..]);
        assert_eq!(later, generator);
        assert_ne!(Generator::new(8).next_u64(), drawn[0]);
        assert!((0..4).all(|i| (0..i).all(|j| drawn[i] != drawn[j])));
        let mut last = Generator::from_state(7, u64::MAX);
        last.next_u64();
        assert_eq!(last, Generator::new(7));
    }

    #[test]
    fn forks_have_numbers_of_their_own() {
        let mut generator = Generator::new(7);
        let forks: Vec<Generator> = (0..3).map(|_| generator.fork()).collect();
        assert_eq!(generator.count(), 3);
        let mut words: Vec<u64> = forks
            .into_iter()
            .chain([generator])
            .flat_map(|mut generator| [(); 1000].map(|()| generator.next_u64()))
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 4000);
    }

    #[test]
    fn probabilities_at_the_ends() {
        let mut generator = Generator::new(3);
        assert!((0..1000).all(|_| generator.bernoulli(1.0) && !generator.bernoulli(0.0)));
        assert!(!generator.bernoulli(f64::NAN));
    }

    #[test]
    fn truncated_normals_have_the_moments_of_their_interval() {
        const N: usize = 10_000;
        let inf = f64::INFINITY;
        // The expected mean and variance were computed by quadrature in Python.
        for (low, high, mean, variance) in [
            (-2.0, 2.0, 0.000000000000, 0.773741303550),
            (-1.0, 3.0, 0.282786110727, 0.616141735358),
            (-inf, 0.5, -0.509160433837, 0.486175435696),
            (9.0, 9.5, 9.103881436762, 0.009208233636),
            (9.0, inf, 9.108523105003, 0.011514790655),
            (-30.0, -20.0, -20.049750964098, 0.002463822399),
        ] {
            let mut generator = Generator::new(11);
            let drawn: Vec<f64> = (0..N).map(|_| generator.truncated_normal(low, high)).collect();
            assert!(drawn.iter().all(|x| (low..=high).contains(x)));
            assert_eq!(generator.count(), N as u64);
            let average = drawn.iter().sum::<f64>() / N as f64;
            assert!((average - mean).abs() < 5.0 * (variance / N as f64).sqrt(), "{low} {high}: {average}");
            let spread = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / N as f64;
            // The bound assumes a fourth central moment of 9 times the squared variance. The exponential distribution, which a far tail
            // approaches, has this moment.
            assert!((spread - variance).abs() < 5.0 * variance * (8.0 / N as f64).sqrt(), "{low} {high}: {spread}");
        }
        assert_eq!(Generator::new(0).truncated_normal(-inf, -50.0), -50.0);
        assert_eq!(Generator::new(0).truncated_normal(50.0, 60.0), 50.0);
    }

    #[test]
    fn a_probability_that_rounds_to_1_gives_a_finite_quantile() {
        let largest = midpoint(u64::MAX);
        for low in [-0.871_491_128_889_832_5, -0.179_366_850_430_240_03, f64::NEG_INFINITY] {
            let z = truncated_normal_quantile(largest, low, f64::INFINITY);
            assert!((8.0..9.0).contains(&z), "{low}: {z}");
        }
    }

    /// Tests an `n` for which `below` rejects a quarter of all words. The remaining words must give each number with the same probability.
    #[test]
    fn below_is_fair_for_large_numbers() {
        let n = 3u64 << 62;
        let mut generator = Generator::new(5);
        let drawn: Vec<u64> = (0..3000).map(|_| generator.below(n)).collect();
        // Each third of [0, n) has probability 1/3, so the standard deviation of a count is √(3000 · 2/9) ≈ 26.
        for third in 0..3 {
            let count = drawn.iter().filter(|&&x| x >> 62 == third).count();
            assert!(count.abs_diff(1000) < 5 * 26, "{count}");
        }
        // A word is accepted with probability 3/4, so 3000 numbers take about 4000 words.
        assert!(generator.count().abs_diff(4000) < 5 * 37, "{}", generator.count());
    }

    #[test]
    #[should_panic(expected = "below(): there is no number from 0 to -1")]
    fn below_nothing() {
        Generator::new(0).below(0);
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut generator = Generator::new(1);
        // The first two numbers give an order its place. Places 0, 4 and 8 stand for equal numbers and stay empty.
        let mut counts = [0i32; 9];
        for _ in 0..6000 {
            let order = generator.permutation(3);
            counts[3 * order[0] + order[1]] += 1;
        }
        // Each of the 6 orders has probability 1/6, so the standard deviation of a count is √(6000 · 5/36) ≈ 29.
        for (place, &count) in counts.iter().enumerate() {
            let fair = if place % 4 == 0 { count == 0 } else { (count - 1000).abs() < 5 * 29 };
            assert!(fair, "{counts:?}");
        }
        let mut none: [u8; 0] = [];
        generator.shuffle(&mut none);
    }
}
