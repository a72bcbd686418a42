//! Prepares texts from outside, such as names in files, for errors: escapes and shortens them.

use std::path::Path;

use wengert_autograd::NonFinite;

/// The largest number of names that an error lists. For the other names, it only states how many there are.
pub(super) const MAX_LISTED_NAMES: usize = 10;

/// The largest number of characters that an error shows of a name, a field or the reason of a damaged checkpoint. Paths are shown in full.
pub(super) const MAX_SHOWN_CHARS: usize = 200;

/// Returns the beginning of `text`, at most [`MAX_SHOWN_CHARS`] characters before escaping, with escaped control characters. An ellipsis marks a
/// shortened text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => escape(&text[..end]) + "…",
        None => escape(text),
    }
}

/// Returns a path with escaped control characters.
pub(super) fn display_path(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Returns `text` with escapes (`\u{1b}`) for the characters that would change how a terminal shows the rest, or that are invisible. These
/// are control characters, line ends, and Unicode's format characters (category `Cf`: direction marks, soft hyphens, joiners, tags). The
/// visible format characters, which are signs around Arabic, Syriac and Kaithi numbers and words, stay.
pub(super) fn escape(text: &str) -> String {
    let changes_display = |c: char| {
        let is_invisible = matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
        );
        c.is_control() || is_invisible
    };
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if changes_display(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

/// Returns the first names and the number of the others: `'fc1.weight', 'fc1.bias' and 5 more`.
pub(super) fn list_names(names: &[String]) -> String {
    let first: Vec<String> = names.iter().take(MAX_LISTED_NAMES).map(|name| format!("'{}'", shorten(name))).collect();
    match names.len().saturating_sub(MAX_LISTED_NAMES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns the advice for a loss or gradient that is not finite. `origin` is the operation or leaf that
/// [`Tape::first_non_finite`](wengert_autograd::Tape::first_non_finite) found, or `None` if it found nothing.
pub(super) fn hint_for(origin: Option<&NonFinite>) -> &'static str {
    match origin {
        Some(origin) if origin.operation == "constant" => {
            "the data has NaN: replace it (`nan_to_num`) or leave out these samples"
        }
        _ => "a smaller learning rate or gradients of a limited norm (`clip_norm`) may help",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_change_the_display_are_escaped() {
        for c in [
            '\u{1b}',
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200f}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{fffa}',
            '\u{e0041}',
        ] {
            assert_eq!(escape(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        assert_eq!(escape("é 'ß' 漢字 ع 🙂"), "é 'ß' 漢字 ع 🙂");
    }
}
