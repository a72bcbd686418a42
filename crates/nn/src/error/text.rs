//! Texts from outside, such as names in files, as errors show them: escaped and shortened.

use std::path::Path;

/// How many names a text lists; of the others it gives the number.
pub(super) const LISTED: usize = 10;

/// How many characters of a name, or of what else a file may say at any length, a text shows.
pub(super) const SHOWN: usize = 200;

/// The beginning of `text` with its control characters escaped.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => escaped(&text[..end]) + "…",
        None => escaped(text),
    }
}

/// A file's name with its control characters escaped.
pub(super) fn at(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}

/// `text` with escapes (`\u{1b}`) for what a terminal acts on, or what cannot be seen and changes how the rest is shown:
/// control characters, and Unicode's marks of direction and line ends.
pub(super) fn escaped(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

/// `'fc1.weight', 'fc1.bias' and 5 more`: the first few names, and how many follow.
pub(super) fn list(names: &[String]) -> String {
    let first: Vec<String> = names.iter().take(LISTED).map(|name| format!("'{}'", shown(name))).collect();
    match names.len().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
