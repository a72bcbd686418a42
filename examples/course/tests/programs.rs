//! Every example explains itself, and refuses wrong arguments with a sentence.
//!
//! Two packages compile this file: `wengert-course` and `wengert-science`. Each tests its own examples. `cargo test -p wengert-course` builds
//! the examples first. `--test programs` alone does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The widest line of an example's help, in letters. A terminal often has 80 columns.
const WIDTH: usize = 78;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names of the examples in the manifest of the package in `folder`.
fn examples(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("the folder has a manifest");
    let tables = manifest.split("[[example]]").skip(1);
    tables.map(|table| table.split('"').nth(1).expect("the first line is the name").to_owned()).collect()
}

/// Returns the names of the examples of this package.
fn names() -> Vec<String> {
    examples(here())
}

/// Runs an example in an empty folder.
fn run(name: &str, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a test knows its program");
    let built: PathBuf =
        test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps").join("examples").join(name);
    // Tests run at the same time, and each has a folder of its own.
    let folder =
        std::env::temp_dir().join(format!("wengert-{name}-{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let output = Command::new(&built).args(arguments).current_dir(&folder).output();
    fs::remove_dir_all(&folder).expect("a temporary folder can be removed");
    output
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo test -p {}`", built.display(), env!("CARGO_PKG_NAME")))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_file_of_the_course_is_an_example_of_one_package() {
    let entries = fs::read_dir(here().join("../course")).expect("the folder can be listed");
    let files = entries.map(|entry| entry.expect("the folder can be listed").file_name().into_string());
    let mut files: Vec<String> =
        files.flatten().filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
    files.sort();
    let mut built: Vec<String> =
        ["../course", "../science"].iter().flat_map(|folder| examples(&here().join(folder))).collect();
    built.sort();
    assert_eq!(files, built);
}

#[test]
fn every_example_has_help() {
    assert!(names().len() > 2, "only {:?} were found", names());
    for name in names() {
        let output = run(&name, &["--help"]);
        let help = text(&output.stdout);
        assert!(output.status.success() && help.contains("Usage: ") && help.contains(&format!("out/{name}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{name}: {help}");
    }
}

#[test]
fn wrong_arguments_are_a_sentence() {
    for name in names() {
        for (arguments, message) in [
            (&["--seed", "abc"][..], "error: --seed expects a count, got `abc`"),
            (&["--nothing"], "error: invalid option '--nothing'"),
            (&["word"], "error: unexpected argument \"word\""),
        ] {
            let output = run(&name, arguments);
            let error = text(&output.stderr);
            assert_eq!((output.status.code(), error.lines().next()), (Some(2), Some(message)), "{name}");
        }
        // Whatever an option is for, a word is no count and no number.
        let help = text(&run(&name, &["--help"]).stdout);
        for option in help.split("--").skip(1).filter_map(|rest| rest.split_once(' ')) {
            let (option, kind) = option;
            if kind.starts_with("<COUNT>") || kind.starts_with("<NUMBER>") {
                let output = run(&name, &[&format!("--{option}"), "abc"]);
                let error = text(&output.stderr);
                assert!(error.starts_with(&format!("error: --{option} expects a ")), "{name}: {error}");
                assert_eq!(output.status.code(), Some(2), "{name} --{option}");
            }
        }
    }
}
