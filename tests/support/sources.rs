//! The list of all operations, read from where they are written: what a test compares with it cannot forget one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of every public operation under `crates/tensor/src/ops`.
///
/// Each has a twin that returns the error: written out as `pub fn try_name` or, in a trait, `fn try_name`, or named to one
/// of the macros that write both, as `name | try_name`. Tests at the end of a file do not count.
///
/// # Panics
///
/// Where the sources cannot be read.
pub fn operations() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in texts("crates/tensor/src/ops") {
        collect(&source, &mut names);
    }
    names
}

/// The texts of all Rust files under a folder of the workspace.
///
/// # Panics
///
/// Where they cannot be read.
pub fn texts(folder: &str) -> Vec<String> {
    rust_files(&root().join(folder)).iter().map(|file| read(file)).collect()
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace").to_path_buf()
}

/// The text of a file of the workspace, by its path in it.
///
/// # Panics
///
/// Where there is none.
pub fn text(path: &str) -> String {
    read(&root().join(path))
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn collect(source: &str, names: &mut BTreeSet<String>) {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    for line in code.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        for before in ["| try_", "pub fn try_", "fn try_"] {
            let Some((left, rest)) = line.split_once(before) else { continue };
            // A function of the file's own, neither public nor a method, is not an operation.
            if before == "fn try_" && !left.is_empty() {
                continue;
            }
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            names.insert(rest[..end].to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_way_of_writing_one() {
        let source = "
            /// Not this | try_comment.
            fn sum | try_sum(&self) -> Self = at {
            neg | try_neg [Self::Elem: Number] = Neg;
            pub fn try_cat<A: TensorLike>(tensors: &[A], dim: isize) -> Result<A, A::Error> {
            fn try_copy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
            fn $name | $try_name(&self) -> Self { self.try_neg() }
            #[cfg(test)]
            fn inside | try_inside(&self)";
        let mut names = BTreeSet::new();
        collect(source, &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cat", "copy_", "neg", "sum"]);
    }

    #[test]
    fn finds_those_of_every_kind_of_file() {
        let found = operations();
        for name in ["add", "add_", "cat", "conv2d", "exp", "exp_", "index_put_", "one_hot", "scatter_", "where_"] {
            assert!(found.contains(name), "{name} is not found");
        }
    }
}
