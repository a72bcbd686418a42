//! Tests that every example prints its help, and refuses wrong arguments with an error message.
//!
//! Each package of examples compiles this file and tests its own programs. `cargo test -p wengert-course` builds the programs first.
//! `--test programs` alone does not.

use std::fs;
use std::io::pipe;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The largest permitted width of a line of an example's help, in characters. A terminal often has 80 columns.
const WIDTH: usize = 78;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names of the programs of the package in `folder`: those in its manifest, and the files in its folder `examples`. The runners
/// of benchmarks do not count, because they have other options.
fn programs(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("the folder has a manifest");
    let tables =
        manifest.split("\n[[").skip(1).filter(|table| table.starts_with("example") || table.starts_with("bin"));
    let programs = tables.filter(|table| !table.contains("benches/"));
    let names = programs.map(|table| table.split('"').nth(1).expect("the first line is the name").to_owned());
    names.chain(rust_files(&folder.join("examples"))).collect()
}

/// Returns the names of the files in `folder` that end with `.rs`, without this end. A missing folder has none.
fn rust_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let files = entries.filter_map(|entry| entry.expect("the folder can be listed").file_name().into_string().ok());
    files.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect()
}

/// Returns the names of the programs of this package.
fn names() -> Vec<String> {
    programs(here())
}

/// Returns the path of a built program, an example or a binary.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its program");
    let folder = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let [example, binary] = ["examples", ""].map(|kind| folder.join(kind).join(name));
    let found = [example, binary].into_iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built; run `cargo test -p {}`", env!("CARGO_PKG_NAME")))
}

/// Runs a program in an empty folder.
fn run(name: &str, arguments: &[&str]) -> Output {
    in_an_empty_folder(name, |command| command.args(arguments).output().expect("the program runs"))
}

/// Calls `run` with the command of a program, whose working directory is an empty folder.
fn in_an_empty_folder<T>(name: &str, run: impl FnOnce(&mut Command) -> T) -> T {
    // Tests run at the same time, and each has a folder of its own.
    let folder =
        std::env::temp_dir().join(format!("wengert-{name}-{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let result = run(Command::new(built(name)).current_dir(&folder));
    fs::remove_dir_all(&folder).expect("a temporary folder can be removed");
    result
}

/// Runs a program whose output nobody reads. Returns its exit code, and the text that it wrote to standard error.
fn run_without_reader(name: &str, arguments: &[&str]) -> (Option<i32>, String) {
    in_an_empty_folder(name, |command| {
        let (reader, writer) = pipe().expect("a pipe can be made");
        drop(reader);
        let output = command.args(arguments).stdout(writer).output().expect("the program runs");
        (output.status.code(), text(&output.stderr))
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The course is divided among two packages, which both compile this file. Only the package `wengert-course` compares the files of the course
/// with the examples of both packages.
#[test]
fn every_file_of_the_course_is_an_example_of_one_package() {
    if env!("CARGO_PKG_NAME") == "wengert-course" {
        let mut files = rust_files(here());
        files.sort();
        let mut built: Vec<String> =
            ["../course", "../science"].iter().flat_map(|folder| programs(&here().join(folder))).collect();
        built.sort();
        assert_eq!(files, built);
    }
}

#[test]
fn every_example_has_help() {
    assert!(!names().is_empty(), "the package has no program");
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
        // The word `abc` is no count and no number, so an option with such a value refuses it.
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

/// Tests a closed output, as after `| head -1`. The test asks for the help, because every program can write it without other work.
#[test]
fn a_closed_output_ends_an_example_quietly() {
    for name in names() {
        assert_eq!(run_without_reader(&name, &["--help"]), (Some(0), String::new()), "{name}");
    }
}
