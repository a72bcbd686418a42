//! The code paths of `a + b` are exactly the paths of the table in `docs/levels.md`.
//!
//! A path begins where the engine or an operation calls a kernel that can add two operands. The test finds these calls in the sources.

use std::collections::BTreeSet;

use super::lexer::{tokens, without_comments_and_literals, without_tests};
use crate::sources::{files, text};

/// The kernel functions that can add two operands, methods of the element type.
const KERNELS: [&str; 4] = ["binary", "rows", "update", "arithmetic"];

/// The largest number of paths that an addition may take.
const MOST: usize = 5;

/// The file that folds constants when a program is planned. It adds numbers, and never the elements of tensors.
const CONSTANTS: &str = "engine/plan/identities.rs";

/// Returns the tokens of a file without comments, literals and tests.
fn code(text: &str) -> Vec<String> {
    let text = without_comments_and_literals(text);
    without_tests(&tokens(&text)).0.iter().map(|token| token.text.to_owned()).collect()
}

/// Returns the kernel functions that a file calls with an operation that may be an addition.
fn calls(text: &str) -> BTreeSet<String> {
    let tokens = code(text);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let called = |window: &[&str]| match window {
        ["T", "::", name, "(", first, _, variant] => {
            let may_add = *first != "Binary" || *variant == "Add";
            (KERNELS.contains(name) && may_add).then(|| (*name).to_owned())
        }
        _ => None,
    };
    tokens.windows(7).filter_map(called).collect()
}

/// Returns the rows of the table of paths: the file and the kernels of each.
fn rows(page: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines = page.lines().skip_while(|line| !line.starts_with("| path of `a + b` |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let [_, _, file, kernels] = cells[..] else { panic!("docs/levels.md: four cells expected in {line}") };
        (quoted(file).join(""), quoted(kernels).into_iter().collect())
    };
    lines.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn an_addition_takes_the_paths_of_the_table() {
    let mut found = BTreeSet::new();
    let folder = "crates/tensor/src/";
    for (path, text) in files(folder) {
        let path = &path[folder.len()..];
        if !path.starts_with("kernel/") && !path.starts_with("scalar/") && path != CONSTANTS {
            found.extend(calls(&text).into_iter().map(|kernel| (path.to_owned(), kernel)));
        }
    }
    let rows = rows(&text("docs/levels.md"));
    assert!((1..=MOST).contains(&rows.len()), "docs/levels.md lists {} paths of an addition", rows.len());
    let listed: BTreeSet<(String, String)> = rows
        .iter()
        .flat_map(|(file, kernels)| kernels.iter().map(move |kernel| (file.clone(), kernel.clone())))
        .collect();
    assert_eq!(
        listed.len(),
        rows.iter().map(|(_, kernels)| kernels.len()).sum::<usize>(),
        "a call belongs to two paths"
    );
    assert_eq!(found, listed, "the calls of additions in the sources, and those in docs/levels.md");
}

#[test]
fn the_sum_of_two_floats_is_written_once() {
    let file = code(&text("crates/tensor/src/kernel/elementwise/float.rs")).join(" ");
    assert_eq!(file.matches("x + y").count(), 1);
}

#[test]
fn one_function_joins_the_shapes_of_two_operands() {
    let mut callers = BTreeSet::new();
    for (path, text) in files("crates/") {
        if code(&text).join(" ").contains("join_two (") {
            callers.insert(path);
        }
    }
    let expected = ["crates/tensor/src/shape/broadcast.rs", "crates/tensor/src/shape/compat/resolve.rs"];
    assert!(callers.iter().map(String::as_str).eq(expected), "{callers:?}");
}

#[test]
fn the_test_sees_an_addition() {
    let engine = "fn f() { T::binary(op, x, y, out); T::rows(Binary::Mul, rows); T::update(Binary::Add, x, y) }";
    assert!(calls(engine).iter().eq(["binary", "update"]));
    assert!(calls("#[cfg(test)]\nmod tests { fn f() { T::binary(op, x, y, out) } }").is_empty());
}
