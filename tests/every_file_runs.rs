//! A test file without a `mod` line would not run, and nobody would notice. This test fails and names the file.

use std::collections::BTreeSet;
use std::fs;

use crate::sources::{files, root, text};

/// The roots of the programs and of the library of this package: the paths in `Cargo.toml`.
const ROOTS: [&str; 4] = ["tests/lib.rs", "tests/main.rs", "tests/alone.rs", "tests/conformance/main.rs"];

/// Returns the files in `all` that no `mod` line reaches from one of the `roots`. Each entry of `all` is a path and a text.
fn unreached<'f>(all: &'f [(String, String)], roots: &[&str]) -> Vec<&'f str> {
    let mut open: Vec<&str> = roots.to_vec();
    let mut reached = BTreeSet::new();
    while let Some(file) = open.pop() {
        let Some((path, text)) = all.iter().find(|(path, _)| path == file).filter(|_| reached.insert(file.to_owned()))
        else {
            continue;
        };
        // The modules of `a/mod.rs` and of the roots are in the same folder. The modules of `a.rs` are in the folder `a/`.
        let modules_in_same_folder = path.ends_with("/mod.rs") || roots.contains(&file);
        let folder = if modules_in_same_folder {
            path.rsplit_once('/').map_or("", |(folder, _)| folder)
        } else {
            &path[..path.len() - 3]
        };
        for line in text.lines() {
            let line = line.trim_start_matches("pub ");
            let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else { continue };
            let places = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            open.extend(
                all.iter().map(|(path, _)| path.as_str()).filter(|path| places.iter().any(|place| place == path)),
            );
        }
    }
    all.iter().map(|(path, _)| path.as_str()).filter(|path| !reached.contains(*path)).collect()
}

#[test]
fn every_file_under_tests_is_compiled() {
    let all = files("tests/");
    let left_out = unreached(&all, &ROOTS);
    assert!(
        left_out.is_empty(),
        "{left_out:?} would not run: a file directly under tests/ needs a `mod` line in tests/main.rs, or in tests/alone.rs \
         where it changes what the whole process shares; another one needs it in the `mod.rs` beside it"
    );
}

/// Returns the files that have unit tests.
fn with_unit_tests(all: &[(String, String)]) -> Vec<&str> {
    let has_tests = |text: &str| text.contains("#[test]") || text.contains("cfg(test)") || text.contains("proptest!");
    all.iter().filter(|(_, text)| has_tests(text)).map(|(path, _)| path.as_str()).collect()
}

#[test]
fn libraries_without_a_test_program_have_no_unit_tests() {
    let mut packages = vec![String::new()];
    for folder in ["crates", "examples"] {
        for entry in fs::read_dir(root().join(folder)).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            if path.join("Cargo.toml").exists() {
                packages
                    .push(format!("{folder}/{}/", path.file_name().expect("an entry has a name").to_string_lossy()));
            }
        }
    }
    packages.retain(|package| text(&format!("{package}Cargo.toml")).contains("[lib]\ntest = false\n"));
    assert!(packages.len() > 3, "only {packages:?} were found");
    for package in packages {
        let all = files(&format!("{package}src/"));
        let left_out = with_unit_tests(&all);
        assert!(left_out.is_empty(), "{left_out:?} would not run: remove `test = false` from {package}Cargo.toml");
    }
    let named: Vec<(String, String)> = ["#[test] fn one() {}", "fn one() {}", "#[cfg(test)] mod tests;"]
        .iter()
        .zip(["a.rs", "b.rs", "c.rs"])
        .map(|(text, path)| (path.to_owned(), (*text).to_owned()))
        .collect();
    assert_eq!(with_unit_tests(&named), ["a.rs", "c.rs"]);
}

#[test]
fn a_file_without_a_mod_line_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let all = [
        file("tests/forgotten.rs", "#[test] fn never() {}"),
        file("tests/main.rs", "mod laws;\npub mod one;\n// mod forgotten;"),
        file("tests/laws/mod.rs", "mod first;"),
        file("tests/laws/first.rs", ""),
        file("tests/laws/second.rs", ""),
        file("tests/one.rs", "mod inside;"),
        file("tests/one/inside.rs", ""),
        file("tests/inside.rs", ""),
    ];
    assert_eq!(unreached(&all, &["tests/main.rs"]), ["tests/forgotten.rs", "tests/laws/second.rs", "tests/inside.rs"]);
}
