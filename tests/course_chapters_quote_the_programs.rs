//! The chapters of the course quote the programs as they are: each piece of code marked `rust,ignore` is in the program of its
//! chapter. Each program has a chapter that the summary lists.

use crate::sources::{files, root, text};

/// Returns the numbered programs: the path, the chapter, and the source.
fn programs() -> Vec<(String, String, String)> {
    let numbered = files("examples/course").into_iter().filter(|(path, _)| path.as_bytes()[16].is_ascii_digit());
    let with_chapter = numbered.map(|(path, source)| {
        let name = path.trim_start_matches("examples/course/").trim_end_matches(".rs").replace('_', "-");
        (path, format!("docs/guide/course/{name}.md"), source)
    });
    with_chapter.collect()
}

/// Returns the code blocks of a page that begin with this marker.
fn blocks<'p>(page: &'p str, marker: &str) -> Vec<&'p str> {
    let of_page = page.split("\n```").skip(1).step_by(2);
    of_page
        .filter_map(|block| block.split_once('\n'))
        .filter(|(first, _)| *first == marker)
        .map(|(_, code)| code)
        .collect()
}

/// Returns the lines of a text without indentation and without empty lines.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Returns true if the lines of a piece follow each other in a program.
fn contains(program: &[&str], piece: &[&str]) -> bool {
    program.windows(piece.len()).any(|window| window == piece)
}

#[test]
fn the_programs_are_numbered_without_gaps_and_each_has_a_chapter() {
    let summary = text("docs/guide/SUMMARY.md");
    for (number, (path, chapter, _)) in (1..).zip(programs()) {
        assert!(path.starts_with(&format!("examples/course/{number:02}_")), "{path} should have the number {number}");
        assert!(root().join(&chapter).exists(), "{chapter} is missing");
        let link = chapter.trim_start_matches("docs/guide/");
        assert!(summary.contains(&format!("({link})")), "docs/guide/SUMMARY.md does not list {link}");
    }
}

#[test]
fn each_quoted_piece_is_in_its_program() {
    let mut count = 0;
    for (path, chapter, source) in programs() {
        let program = lines(&source);
        let page = text(&chapter);
        for piece in blocks(&page, "rust,ignore") {
            count += 1;
            assert!(contains(&program, &lines(piece)), "{chapter} quotes lines that are not in {path}:\n{piece}");
        }
        let name = path.trim_start_matches("examples/course/").trim_end_matches(".rs");
        assert!(page.contains(&format!("--example {name}")), "{chapter} does not say how to run {name}");
        for heading in ["## The idea", "## The code", "## The output", "## Try this", "## Questions"] {
            assert!(page.contains(heading), "{chapter} has no section \"{heading}\"");
        }
    }
    assert!(count > 40, "only {count} pieces were found");
}

#[test]
fn a_piece_that_differs_is_found() {
    let program = lines("fn main() {\n    let x = 1;\n\n    let y = 2;\n}");
    assert!(contains(&program, &lines("let x = 1;\nlet y = 2;")));
    assert!(!contains(&program, &lines("let x = 1;\nlet y = 3;")));
    assert!(!contains(&program, &lines("let y = 2;\nlet x = 1;")));
    assert_eq!(blocks("a\n```rust,ignore\nb\n```\nc\n```rust\nd\n```\n", "rust,ignore"), ["b"]);
}
