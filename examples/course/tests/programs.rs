//! Every example explains itself, and refuses wrong arguments with a sentence.
//!
//! `cargo test -p wengert-course -p wengert-science` builds the examples first. `--test programs` alone does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The widest line of an example's help, in letters. A terminal often has 80 columns.
const WIDTH: usize = 78;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names of all examples of the course, including the examples of the package `wengert-science`.
fn names() -> Vec<String> {
    let entries = fs::read_dir(here()).expect("the folder can be listed");
    let files = entries.map(|entry| entry.expect("the folder can be listed").file_name().into_string());
    let mut names: Vec<String> =
        files.flatten().filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
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
    output.unwrap_or_else(|error| panic!("{}: {error}; run `cargo test -p wengert-course`", built.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_example_has_help() {
    assert!(names().len() > 20, "only {:?} were found", names());
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
