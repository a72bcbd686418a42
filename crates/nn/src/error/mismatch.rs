//! The differences between a checkpoint and a model, and the type of positions in files, which errors name.

use std::fmt;

use wengert_tensor::Shape;

use crate::error::text::{MAX_LISTED_NAMES, MAX_SHOWN_CHARS, list_names, shorten};

/// A position in a file or an archive, at which an error occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The number of a line, counted from 1.
    Line(u64),
    /// The index of a byte, counted from 0.
    Byte(u64),
    /// The name of a file in an archive.
    Entry(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
            Place::Entry(name) => write!(f, "entry '{}'", shorten(name)),
        }
    }
}

/// A tensor of a checkpoint whose shape or element type differs from the tensor of the same name in the model or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMismatch {
    /// The name that both tensors have.
    pub name: String,
    /// The shape and the element type of the tensor in the file.
    pub found: (Shape, String),
    /// The shape and the element type of the tensor in the model.
    pub expected: (Shape, String),
    /// True if the tensor would fit after [`Saved::convert`](crate::Saved::convert).
    pub convertible: bool,
}

impl fmt::Display for KeyMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let describe = |(shape, dtype): &(Shape, String)| format!("{} {}", shorten(dtype), shorten(&shape.to_string()));
        let (name, found, expected) = (shorten(&self.name), describe(&self.found), describe(&self.expected));
        write!(f, "'{name}' is {found} in the file, {expected} in the model")
    }
}

/// Returns the part of an error's text about names that a file or a model lacks, with similar names as hints, and about mismatched tensors.
pub(crate) fn key_differences(
    missing: &[String],
    unexpected: &[String],
    renamed: &[(String, String)],
    mismatched: &[KeyMismatch],
) -> String {
    let mut text = String::new();
    if !missing.is_empty() {
        text += &format!("\n  missing in the file: {}", list_names(missing));
    }
    if !unexpected.is_empty() {
        text += &format!("\n  unexpected in the file: {}", list_names(unexpected));
    }
    for (name, stored_name) in renamed.iter().take(MAX_LISTED_NAMES) {
        text += &format!("\n  '{}' may be '{}' in the file (`Saved::rename`)", shorten(name), shorten(stored_name));
    }
    for mismatch in mismatched.iter().take(MAX_LISTED_NAMES) {
        text += &format!("\n  mismatch: {mismatch}");
    }
    if mismatched.iter().any(|mismatch| mismatch.convertible) {
        text += "\n  `Saved::convert` converts between floating-point types";
    }
    if mismatched.len() > MAX_LISTED_NAMES {
        text += &format!("\n  mismatch: {} more", mismatched.len() - MAX_LISTED_NAMES);
    }
    text
}

/// Pairs each missing name with the most similar unexpected name whose tensor has the same shape. Names are similar if one of them ends with a dot
/// followed by the other, as `layer.weight` and `weight`, or if at most half of the characters differ. Names of more than
/// [`MAX_SHOWN_CHARS`] bytes are never similar. Compares only the first missing names, because errors list only these.
pub(crate) fn similar_names(missing: &[(String, Shape)], unexpected: &[(String, Shape)]) -> Vec<(String, String)> {
    let similarity = |name: &str, other: &str| match () {
        () if other.len() > MAX_SHOWN_CHARS || name.len() > MAX_SHOWN_CHARS => 0.0,
        () if other.ends_with(&format!(".{name}")) || name.ends_with(&format!(".{other}")) => 1.0,
        () => strsim::normalized_levenshtein(name, other),
    };
    let nearest = |(name, shape): &(String, Shape)| {
        let fitting = unexpected.iter().filter(|(_, other)| other == shape);
        let rated = fitting.map(|(other, _)| (other, similarity(name, other)));
        let (other, rating) = rated.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (rating >= 0.5).then(|| (name.clone(), other.clone()))
    };
    missing.iter().take(MAX_LISTED_NAMES).filter_map(nearest).collect()
}
