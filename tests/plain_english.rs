//! Comments and pages avoid the phrases of a list, because each phrase has made a comment of this repository hard to understand.
//!
//! The list has no phrase that a clear sentence needs. It cannot prove that a text is clear.

use crate::sources::{files, root, text};

/// The phrases, in lower case. They are searched within each line, as whole words.
const PHRASES: &[&str] = &[
    "so many",
    "again and again",
    "of which",
    "leaves no trace",
    "need be",
    "as it lies",
    "as they lie",
    "one by one",
    "by turns",
    "that of",
    "those of",
    "told apart",
    "for want of",
    "of ours",
];

/// The folders whose comments are checked.
const FOLDERS: [&str; 5] = ["crates", "src", "tests", "benches", "examples"];

/// The pages that are checked, besides the chapters of the course.
const PAGES: [&str; 16] = [
    "README.md",
    "CONTRIBUTING.md",
    "benches/README.md",
    "examples/README.md",
    "docs/comparison.md",
    "docs/levels.md",
    "docs/operations.md",
    "docs/performance.md",
    "docs/guide/introduction.md",
    "docs/guide/broadcasting.md",
    "docs/guide/gradients.md",
    "docs/guide/training.md",
    "docs/guide/second-order.md",
    "docs/guide/speed.md",
    "docs/guide/errors.md",
    "docs/guide/extending.md",
];

/// Returns the phrases that occur in a text as whole words.
fn phrases(text: &str) -> Vec<&'static str> {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_end_matches([',', '.', ':', ';', ')']).trim_start_matches('(').to_lowercase())
        .collect();
    let line = format!(" {} ", words.join(" "));
    PHRASES.iter().copied().filter(|phrase| line.contains(&format!(" {phrase} "))).collect()
}

/// Returns the text of a comment line without code, or `None` for a line without a comment at its beginning.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "//"].iter().find_map(|marker| line.strip_prefix(marker))
}

#[test]
fn no_comment_has_a_phrase_of_the_list() {
    let (mut found, mut count) = (String::new(), 0);
    for (path, source) in FOLDERS.into_iter().flat_map(files) {
        for (number, text) in source.lines().enumerate().filter_map(|(number, line)| Some((number, comment(line)?))) {
            count += 1;
            for phrase in phrases(text) {
                found += &format!("\n{path}:{}: \"{phrase}\": {}", number + 1, text.trim());
            }
        }
    }
    assert!(count > 500, "only {count} comment lines were found");
    assert!(found.is_empty(), "{found}");
}

#[test]
fn no_page_has_a_phrase_of_the_list() {
    let mut found = String::new();
    let entries = std::fs::read_dir(root().join("docs/guide/course")).expect("the folder can be listed");
    let names =
        entries.map(|entry| entry.expect("the folder can be listed").file_name().to_string_lossy().into_owned());
    let chapters = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/guide/course/{name}"));
    for page in PAGES.into_iter().map(str::to_owned).chain(chapters) {
        let page_text = text(&page);
        // Only text outside of code blocks is checked. The blocks are every second part.
        for block in page_text.split("```").step_by(2) {
            for line in block.lines() {
                for phrase in phrases(line) {
                    found += &format!("\n{page}: \"{phrase}\": {line}");
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn phrases_are_found_as_whole_words() {
    assert_eq!(phrases("the first, So many, come"), ["so many"]);
    assert_eq!(phrases("also manyfold (of which)"), ["of which"]);
    assert_eq!(phrases("is nothing, what island"), [""; 0]);
    assert_eq!(comment("    /// text"), Some(" text"));
    assert_eq!(comment("let x = 1; // text"), None);
}
