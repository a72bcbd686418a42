//! Reads texts, and converts them to tokens: characters, bytes or words.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::io::Read;
use std::path::Path;

use wengert_tensor::Tensor;
use wengert_tensor::ops::Views as _;

use crate::data::dataset::Dataset as _;
use crate::data::samples::Samples;
use crate::data::source::{open, unreadable};
use crate::error::Place;
use crate::file::open_regular;
use crate::{Error, Result};

/// Reads the text of a file, gzipped or not.
///
/// # Errors
///
/// - The file is missing, unreadable or not a regular file, or decompresses to more than 16 MiB and more than 100 times
///   its size: [`Error::Read`].
/// - The text is not UTF-8: [`Error::Malformed`], with the position of the first byte that is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    read_utf8(path, &mut open(path)?)
}

/// Reads the text of a file that is not gzipped.
///
/// # Errors
///
/// As for [`read_text`], except for decompression.
pub(crate) fn read_plain_text(path: &Path) -> Result<String> {
    read_utf8(path, &mut open_regular(path)?.0)
}

/// Reads the text of an open file, or returns an error if the file cannot be read or is not UTF-8. Errors show `path`.
fn read_utf8(path: &Path, reader: &mut dyn Read) -> Result<String> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|source| unreadable(path, source))?;
    String::from_utf8(bytes).map_err(|error| {
        let place = Place::Byte(error.utf8_error().valid_up_to() as u64);
        Error::Malformed { path: path.to_owned(), place, problem: "it is not text in UTF-8".to_owned() }
    })
}

/// A vocabulary: a numbering of tokens, which are characters, bytes or words.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Vocabulary, next_tokens};
/// use wengert::prelude::*;
///
/// let text = "abracadabra";
/// let vocabulary = Vocabulary::characters(text);
/// let tokens = vocabulary.encode(text)?;
/// assert_eq!((vocabulary.len(), tokens.narrow(0, 0, 3)), (5, Tensor::from([0, 1, 4])));
/// assert_eq!(vocabulary.decode(&tokens), text);
///
/// // Training data of a language model: after "abra" comes "c".
/// let data = next_tokens(&tokens, 4)?;
/// assert_eq!(vocabulary.decode(&data.inputs().select(0, 1)), "brac");
/// assert_eq!(vocabulary.decode(&data.targets().select(0, 1)), "raca");
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Tokens,
}

/// The tokens of a vocabulary, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tokens {
    Bytes,
    /// In ascending order.
    Characters(Vec<char>),
    /// In ascending order.
    Words(Vec<String>),
}

impl Vocabulary {
    /// Returns the vocabulary of the characters of `text`, in ascending order.
    pub fn characters(text: &str) -> Self {
        // One flag for each possible character takes 1.1 MB, however long the text is.
        let mut occurs = vec![false; char::MAX as usize + 1];
        text.chars().for_each(|c| occurs[c as usize] = true);
        Vocabulary { tokens: Tokens::Characters(('\0'..=char::MAX).filter(|&c| occurs[c as usize]).collect()) }
    }

    /// Returns the vocabulary of the 256 bytes. It encodes any text.
    pub fn bytes() -> Self {
        Vocabulary { tokens: Tokens::Bytes }
    }

    /// Returns the vocabulary of the words of `text`, in ascending order. White space separates the words and has no tokens of its own:
    /// replace line breaks by a word, such as `<eos>`, if the model should predict them.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Vocabulary;
    /// use wengert::prelude::*;
    ///
    /// let text = "to be , or not\nto be :\n".replace('\n', " <eos> ");
    /// let vocabulary = Vocabulary::words(&text);
    /// assert_eq!(vocabulary.encode("to be <eos>")?, Tensor::from([6, 3, 2]));
    /// assert_eq!(vocabulary.decode(&Tensor::from([4, 6, 3])), "not to be");
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    pub fn words(text: &str) -> Self {
        let words: BTreeSet<&str> = text.split_whitespace().collect();
        Vocabulary { tokens: Tokens::Words(words.into_iter().map(str::to_owned).collect()) }
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        match &self.tokens {
            Tokens::Bytes => 256,
            Tokens::Characters(characters) => characters.len(),
            Tokens::Words(words) => words.len(),
        }
    }

    /// Returns true if there are no tokens, as for the characters of an empty text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tokens of `text`, `[length]`.
    ///
    /// # Errors
    ///
    /// If `text` has a character or a word that is not in the vocabulary.
    pub fn encode(&self, text: &str) -> Result<Tensor<i64>> {
        match &self.tokens {
            Tokens::Bytes => Ok(Tensor::from(text.bytes().map(i64::from).collect::<Vec<_>>())),
            Tokens::Characters(characters) => encode_parts("character", characters.iter().copied(), text.chars()),
            Tokens::Words(words) => encode_parts("word", words.iter().map(String::as_str), text.split_whitespace()),
        }
    }

    /// Returns the text of `tokens`. Words are separated by spaces. An unknown token, or bytes that are not UTF-8, become `\u{fffd}`.
    pub fn decode(&self, tokens: &Tensor<i64>) -> String {
        match &self.tokens {
            Tokens::Bytes => {
                // An unknown token becomes the byte 0xff, which does not occur in UTF-8. The conversion then replaces it by U+FFFD.
                let bytes: Vec<u8> = tokens.iter().map(|token| u8::try_from(token).unwrap_or(0xff)).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Tokens::Characters(characters) => tokens
                .iter()
                .map(|token| token_at(characters, token).copied().unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
            Tokens::Words(words) => {
                let words = tokens.iter().map(|token| token_at(words, token).map_or("\u{fffd}", String::as_str));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// Returns the tokens of the `parts` of a text, which are its characters or words. The token of a part is the part's position in `vocabulary`.
///
/// # Errors
///
/// If a part is not in `vocabulary`. `kind` is the word for a part in the error, for example `character`.
fn encode_parts<K: Copy + Eq + Hash + Debug>(
    kind: &str,
    vocabulary: impl Iterator<Item = K>,
    parts: impl Iterator<Item = K>,
) -> Result<Tensor<i64>> {
    let numbers: HashMap<K, i64> = vocabulary.zip(0..).collect();
    let number = |(position, part): (usize, K)| {
        let unknown = || Error::Dataset(format!("{kind} {position}, {part:?}, is not in the vocabulary"));
        numbers.get(&part).copied().ok_or_else(unknown)
    };
    Ok(Tensor::from(parts.enumerate().map(number).collect::<Result<Vec<_>>>()?))
}

/// Returns the entry of `vocabulary` with the number `token`, or `None` if there is no such entry.
fn token_at<K>(vocabulary: &[K], token: i64) -> Option<&K> {
    vocabulary.get(usize::try_from(token).ok()?)
}

/// Returns every window of `length` consecutive tokens as an input. The target of an input is the window that starts one token later. For `n` tokens,
/// the inputs and the targets are views of `tokens` of the shape `[n - length, length]`.
///
/// # Errors
///
/// If `tokens` is not a vector, `length` is 0, or there are not more than `length` tokens.
pub fn next_tokens(tokens: &Tensor<i64>, length: usize) -> Result<Samples<Tensor<i64>, Tensor<i64>>> {
    if tokens.rank() != 1 || length == 0 || tokens.len() <= length {
        let shape = tokens.shape();
        return Err(Error::Dataset(format!(
            "parts of {length} tokens need a vector of more than {length} tokens and a length above 0, but got tokens of shape {shape}"
        )));
    }
    let parts = tokens.try_unfold(0, length + 1, 1)?;
    let length = length as isize;
    Samples::new(parts.try_narrow(1, 0, length)?, parts.try_narrow(1, 1, length)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataLoader;
    use crate::data::source::tests::{gzipped, read_error_text};

    #[test]
    fn texts_become_tokens_and_back() {
        let text = "größe 1\n";
        for vocabulary in [Vocabulary::characters(text), Vocabulary::bytes()] {
            assert_eq!(vocabulary.decode(&vocabulary.encode(text).unwrap()), text);
        }
        let characters = Vocabulary::characters("ba");
        assert_eq!(characters.decode(&Tensor::from([1, 0, 2, -1])), "ba\u{fffd}\u{fffd}");
        assert_eq!(Vocabulary::bytes().decode(&Tensor::from([97, 300])), "a\u{fffd}");
        let text = characters.encode("abc").unwrap_err().to_string();
        assert_eq!(text, "character 2, 'c', is not in the vocabulary");
        assert!(Vocabulary::characters("").is_empty());
    }

    #[test]
    fn words_become_tokens_and_back() {
        let words = Vocabulary::words("b  c\na b\t");
        assert_eq!(words.len(), 3);
        assert_eq!(words.encode("c a\n\nb c").unwrap(), Tensor::from([2, 0, 1, 2]));
        assert_eq!(words.decode(&Tensor::from([2, 0, 3, -1])), "c a \u{fffd} \u{fffd}");
        assert_eq!(words.encode("a d").unwrap_err().to_string(), "word 1, \"d\", is not in the vocabulary");
        assert_eq!(words.encode("").unwrap().shape(), &[0]);
        assert!(Vocabulary::words(" \n").is_empty());
    }

    #[test]
    fn parts_of_a_text_are_views_of_its_tokens() {
        let tokens = Tensor::arange(100);
        let data = next_tokens(&tokens, 10).unwrap();
        assert!(data.len() == 90 && data.inputs().shares_storage(&tokens));
        for batch in DataLoader::new(data, 8).shuffle().epoch(0) {
            let (inputs, targets) = batch.unwrap();
            assert!(inputs.iter().zip(targets.iter()).all(|(input, target)| input + 1 == target));
        }
        assert!(next_tokens(&Tensor::arange(5), 5).is_err());
        assert!(next_tokens(&Tensor::arange(5), 0).is_err());
        assert_eq!(next_tokens(&Tensor::arange(5), 4).unwrap().targets(), &Tensor::from([[1, 2, 3, 4]]));
    }

    #[test]
    fn errors_name_the_byte() {
        assert_eq!(read_error_text(b"abc\xff", |path| read_text(path)), "'f', byte 3: it is not text in UTF-8");
        assert!(read_error_text(&gzipped(b"abc")[..9], |path| read_text(path)).starts_with("cannot read 'f': "));
        assert!(read_text("/dev/zero").unwrap_err().to_string().ends_with("it is not a regular file"));
    }
}
