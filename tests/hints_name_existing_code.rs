//! The hints of errors, warnings and compile errors name functions and macros that exist.

use std::collections::BTreeSet;

use crate::sources::files;

const FOLDERS: [&str; 5] =
    ["crates/tensor/src", "crates/autograd/src", "crates/nn/src", "crates/macros/src", "crates/distributed/src"];

/// Functions and macros of Rust and of PyTorch that hints name.
const FOREIGN: [&str; 5] = ["stringify!", "fold", "save_file", "state_dict", "default"];

/// Returns the part of a source before its tests, without the lines that are comments.
fn code(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns the names of all functions of a source, and of its macros with `!`.
fn defined(source: &str) -> Vec<String> {
    let length = |rest: &str| rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let after = |word: &'static str| source.split(word).skip(1).map(|rest| &rest[..length(rest)]);
    after("fn ").map(str::to_owned).chain(after("macro_rules! ").map(|name| format!("{name}!"))).collect()
}

/// Returns the names that are called in the code spans of a text: `name(` and `name!(`.
fn called(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for span in text.split('`').skip(1).step_by(2) {
        for (position, _) in span.match_indices('(') {
            let (before, mark) = match span[..position].strip_suffix('!') {
                Some(before) => (before, "!"),
                None => (&span[..position], ""),
            };
            let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |start| start + 1);
            let name = &before[start..];
            if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                names.push(format!("{name}{mark}"));
            }
        }
    }
    names
}

/// Returns the texts of hints in a source: the text after a word of `begins`, up to the end of the string.
fn hints(source: &str) -> Vec<&str> {
    let begins = ["hint: ", "let hint = ", "with_hint(", "note = ", "label = "];
    let starts = begins.iter().flat_map(|word| source.match_indices(word).map(|(start, word)| start + word.len()));
    starts
        .map(|start| {
            let rest = &source[start..];
            let end =
                ["\";", "\",\n", "\"\n", "\")"].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
            &rest[..end]
        })
        .collect()
}

#[test]
fn the_code_in_hints_exists() {
    let sources: Vec<(String, String)> =
        FOLDERS.iter().flat_map(|folder| files(folder)).map(|(file, source)| (file, code(&source))).collect();
    let mut known: BTreeSet<String> = FOREIGN.map(str::to_owned).into();
    for (_, source) in &sources {
        for name in defined(source) {
            known.insert(name.clone());
            // The attribute `twins` generates functions with these names.
            if let Some(plain) = name.strip_prefix("try_") {
                known.extend([plain.to_owned(), format!("{plain}_keepdim"), format!("{plain}_")]);
            }
        }
    }
    let (mut count, mut unknown) = (0, Vec::new());
    for (file, source) in &sources {
        for name in hints(source).into_iter().flat_map(called) {
            count += 1;
            if !known.contains(&name) {
                unknown.push(format!("{file}: `{name}`"));
            }
        }
    }
    assert!(unknown.is_empty(), "hints name functions that do not exist:\n{}", unknown.join("\n"));
    assert!(count >= 15, "only {count} names were found");
}

#[test]
fn a_wrong_name_in_a_hint_is_found() {
    let source =
        "fn real() {}\nmacro_rules! some {}\nlet text = \"refused\\n  hint: `x.unreal(1)`, `some!(1)`, `real()`\";";
    let names: Vec<String> = hints(source).into_iter().flat_map(called).collect();
    assert_eq!(names, ["unreal", "some!", "real"]);
    assert_eq!(defined(source), ["real", "some!"]);
}
