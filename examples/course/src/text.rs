//! A text as numbers, one for each character.

use std::fs;
use std::path::Path;

use wengert::nn::Generator;
use wengert::prelude::*;

use crate::Result;

/// Part of a play, found from whatever folder the example is run in.
pub const PLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/coriolanus.txt");

/// A text: nine tenths to train on, and the last tenth held out.
pub struct Text {
    /// The characters that occur, sorted; a character's number is its place.
    pub characters: Vec<char>,
    /// The numbers of what is trained on, `[n]`.
    pub train: Tensor<i64>,
    /// The numbers of what is held out.
    pub test: Tensor<i64>,
}

impl Text {
    /// Reads a file in UTF-8.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is shorter than `least` characters.
    pub fn read(path: impl AsRef<Path>, least: usize) -> Result<Self> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut characters: Vec<char> = text.chars().collect();
        let n = characters.len();
        if n < least {
            return Err(format!("{}: {n} characters are too few, {least} are needed", path.display()).into());
        }
        characters.sort_unstable();
        characters.dedup();
        let mut read = Text { characters, train: Tensor::from([0i64; 0]), test: Tensor::from([0i64; 0]) };
        let all = read.encode(&text)?;
        let held_out = n.div_ceil(10);
        read.train = all.narrow(0, 0, (n - held_out) as isize);
        read.test = all.narrow(0, (n - held_out) as isize, held_out as isize);
        Ok(read)
    }

    /// The numbers of characters, `[n]`.
    ///
    /// # Errors
    ///
    /// If a character does not occur in the text.
    pub fn encode(&self, text: &str) -> Result<Tensor<i64>> {
        let number = |c| match self.characters.binary_search(&c) {
            Ok(number) => Ok(number as i64),
            Err(_) => Err(format!("the character {c:?} does not occur in the text")),
        };
        Ok(Tensor::from(text.chars().map(number).collect::<std::result::Result<Vec<_>, _>>()?))
    }

    /// The characters of numbers.
    pub fn decode(&self, numbers: impl IntoIterator<Item = i64>) -> String {
        numbers.into_iter().map(|number| self.characters[number as usize]).collect()
    }

    /// `rows` random pieces of `length` characters, and the same pieces one character later: what is to be predicted. Both are
    /// `[rows, length]`.
    pub fn batch(&self, rows: usize, length: usize, generator: &mut Generator) -> [Tensor<i64>; 2] {
        let last = self.train.numel() - length;
        let starts = Tensor::randint(0, last as i64, [rows, 1], generator);
        let places = starts + Tensor::<i64>::arange(length); // [rows, 1] + [length]
        [self.train.take(&places), self.train.take(&(places + 1))]
    }

    /// The held-out part as rows of `length`, with what is to be predicted.
    pub fn held_out(&self, length: usize) -> [Tensor<i64>; 2] {
        let rows = (self.test.numel() - 1) / length;
        let from = |start: isize| self.test.narrow(0, start, (rows * length) as isize).reshape([rows, length]);
        [from(0), from(1)]
    }
}

/// A class drawn from scores `[classes]`. A temperature below 1 prefers the likely ones, above 1 the others.
pub fn draw(scores: &Tensor, temperature: f64, generator: &mut Generator) -> i64 {
    let probabilities = (scores / temperature as f32).softmax(-1);
    probabilities.multinomial(1, false, generator).item()
}
