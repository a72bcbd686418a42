//! A text to learn from.

use std::path::Path;

use wengert::nn::{DataLoader, Dataset, Generator, Vocabulary, next_tokens, read_text};
use wengert::prelude::*;

use crate::Result;

/// The path of a part of a play; it does not depend on the working directory.
pub const PLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/coriolanus.txt");

/// Batches of pieces of a text, `[rows, length]`. The targets are the same pieces, one character later.
pub type Texts = DataLoader<(Tensor<i64>, Tensor<i64>)>;

/// Returns the characters of the text in a file, and its pieces of `length` characters. The pieces of the first nine
/// tenths are for training: at most 100 batches of 16 in an epoch. The pieces of the last tenth are held out.
///
/// # Errors
///
/// If the file cannot be read, or the text is too short.
pub fn text(path: impl AsRef<Path>, length: usize, seed: u64) -> Result<(Vocabulary, Texts, Texts)> {
    let text = read_text(path)?;
    let vocabulary = Vocabulary::characters(&text);
    let tokens = vocabulary.encode(&text)?;
    println!("{} characters, {} different ones", tokens.numel(), vocabulary.len());
    let test = tokens.numel() / 10;
    let [train, test] = tokens.split_into([tokens.numel() - test, test], 0).map(|part| next_tokens(&part, length));
    let (train, test) = (train?, test?);
    let end_to_end: Vec<usize> = (0..test.len()).step_by(length).collect();
    let train = DataLoader::new(train, 16).shuffle().seed(seed).limit(1600);
    Ok((vocabulary, train, DataLoader::new(test.subset(&end_to_end)?, 256)))
}

/// Draws a character from scores `[characters]`. A temperature below 1 raises the probability of the likely characters. A
/// temperature above 1 raises the probability of the unlikely ones.
pub fn draw(scores: &Tensor, temperature: f64, generator: &mut Generator) -> i64 {
    let probabilities = (scores / temperature as f32).softmax(-1);
    probabilities.multinomial(1, false, generator).item()
}
