//! The random numbers of `numpy.random.RandomState`, so that a port and the original program compute with the same data.
//!
//! The generator is the Mersenne Twister MT19937 (M. Matsumoto and T. Nishimura, 1998). Normal numbers come from the polar method
//! (G. Marsaglia and T. A. Bray, 1964). NumPy keeps both unchanged in this class.

use wengert::prelude::*;

/// The number of 32-bit words of the generator's state.
const WORDS: usize = 624;
/// The distance in the state between the words that `renew` mixes.
const DISTANCE: usize = 397;

/// A generator that gives the same numbers as NumPy's class of this name.
///
/// ```
/// let numbers = wengert_ports::RandomState::new(0).randn([2]);
/// assert_eq!(numbers.to_vec(), [1.764052345967664, 0.4001572083672233]);
/// ```
#[derive(Clone, Debug)]
pub struct RandomState {
    words: [u32; WORDS],
    /// The index of the next word.
    next: usize,
    /// The second number of a pair, if it was not returned yet. The polar method makes two numbers at once.
    spare: Option<f64>,
}

impl RandomState {
    /// Returns the generator of a seed.
    pub fn new(seed: u32) -> Self {
        let mut words = [seed; WORDS];
        for k in 1..WORDS {
            let before = words[k - 1];
            words[k] = (before ^ before >> 30).wrapping_mul(1_812_433_253).wrapping_add(k as u32);
        }
        RandomState { words, next: WORDS, spare: None }
    }

    /// Draws numbers from the standard normal distribution. NumPy: `randn`.
    pub fn randn(&mut self, shape: impl Into<Shape>) -> Tensor<f64> {
        let shape = shape.into();
        let numbers: Vec<f64> = (0..shape.numel()).map(|_| self.normal()).collect();
        Tensor::from(numbers).reshape(shape)
    }

    /// Draws the next number from the standard normal distribution.
    fn normal(&mut self) -> f64 {
        if let Some(number) = self.spare.take() {
            return number;
        }
        loop {
            let [x, y] = [self.uniform() * 2.0 - 1.0, self.uniform() * 2.0 - 1.0];
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(factor * x);
                return factor * y;
            }
        }
    }

    /// Returns the next number in [0, 1), with 53 random bits.
    fn uniform(&mut self) -> f64 {
        let [high, low] = [self.word() >> 5, self.word() >> 6];
        (f64::from(high) * f64::from(1u32 << 26) + f64::from(low)) / (1u64 << 53) as f64
    }

    /// Returns the next 32 random bits.
    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.renew();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    /// Computes all words of the state anew from the old words.
    fn renew(&mut self) {
        for k in 0..WORDS {
            let joined = self.words[k] & 0x8000_0000 | self.words[(k + 1) % WORDS] & 0x7fff_ffff;
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[k] = self.words[(k + DISTANCE) % WORDS] ^ joined >> 1 ^ odd;
        }
        self.next = 0;
    }
}
