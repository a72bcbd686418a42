//! A test file without a `mod` line would not run, and nobody would notice. This test fails and names the file.

use std::collections::BTreeSet;

use crate::sources::files;

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
        let beside = path.ends_with("/mod.rs") || roots.contains(&file);
        let folder =
            if beside { path.rsplit_once('/').map_or("", |(folder, _)| folder) } else { &path[..path.len() - 3] };
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
