//! The list of all operations, read from the sources. A test that compares with it cannot forget an operation. Also
//! functions that read and write files of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the names of all public operations under `crates/tensor/src/ops`.
///
/// Each operation has a form that returns the error: `fn try_name` in a trait, or `pub fn try_name` elsewhere. Tests at the end
/// of a file do not count.
///
/// # Panics
///
/// If the sources cannot be read.
pub fn operations() -> BTreeSet<String> {
    homes().into_keys().collect()
}

/// Returns all public operations with their traits; `None` marks a free function. Leaves out the methods of `TensorLike`, which users do not
/// call.
///
/// # Panics
///
/// If the sources cannot be read.
pub fn homes() -> BTreeMap<String, Option<String>> {
    let mut homes = BTreeMap::new();
    for source in texts("crates/tensor/src/ops") {
        collect(&source, &mut homes);
    }
    homes.retain(|_, home| home.as_deref() != Some("TensorLike"));
    homes
}

/// Returns every public function of `tensor`, `autograd` and `nn` that panics at its caller's line, with a file that has it. These are
/// functions with a `try_` twin under `#[twins]`, and functions whose documentation has a section `Panics`. Functions of one name count
/// once.
///
/// # Panics
///
/// If the sources cannot be read.
pub fn that_panic() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in ["crates/tensor/src", "crates/autograd/src", "crates/nn/src"] {
        for (file, source) in files(folder) {
            for name in panicking(&source) {
                found.entry(name).or_insert_with(|| file.clone());
            }
        }
    }
    found
}

/// Returns the names of the functions of one file that [`that_panic`] lists.
fn panicking(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    // `twins` and `in_trait` describe the current item at the margin. `panics` and `twin` describe the function below the current doc
    // comment and attributes.
    let (mut twins, mut in_trait, mut panics, mut twin) = (false, false, false, false);
    for line in source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines() {
        twins = ["#[twins]", "#[twins(blanket)]"].contains(&line) || twins && !line.starts_with('}');
        in_trait = line.starts_with("pub trait ") || in_trait && !line.starts_with('}');
        let code = line.trim_start();
        if code.starts_with("///") {
            panics |= code == "/// # Panics";
        } else if code.starts_with("#[") {
            twin |= code == "#[twins]";
        } else {
            let public = code.strip_prefix("pub ").or_else(|| line.strip_prefix("    ").filter(|_| in_trait));
            let function = public.map(|code| code.strip_prefix("const ").unwrap_or(code));
            if let Some(name) = function.and_then(|code| code.strip_prefix("fn ")).map(identifier) {
                match name.strip_prefix("try_") {
                    Some(plain) if twins || twin => names.push(plain.to_owned()),
                    None if panics => names.push(name.to_owned()),
                    _ => {}
                }
            }
            (panics, twin) = (false, false);
        }
    }
    names
}

/// Returns the texts of all Rust files under a folder of the workspace.
///
/// # Panics
///
/// If a file cannot be read.
pub fn texts(folder: &str) -> Vec<String> {
    files(folder).into_iter().map(|(_, text)| text).collect()
}

/// Returns all Rust files under a folder of the workspace: their paths in the workspace, in alphabetical order, and their
/// texts.
///
/// # Panics
///
/// If a file cannot be read.
pub fn files(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut files = rust_files(&root.join(folder));
    files.sort();
    let named = |file: &PathBuf| {
        let path =
            file.strip_prefix(&root).expect("the file lies in the workspace").to_string_lossy().replace('\\', "/");
        (path, read(file))
    };
    files.iter().map(named).collect()
}

/// Returns the path of the folder of the workspace.
///
/// # Panics
///
/// If the package of the tests has no parent folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace").to_path_buf()
}

/// Returns the text of a file of the workspace.
///
/// # Panics
///
/// If the file cannot be read.
pub fn text(path: &str) -> String {
    read(&root().join(path))
}

/// Writes a file of the workspace.
///
/// # Panics
///
/// If the file cannot be written.
pub fn write(path: &str, text: &str) {
    fs::write(root().join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        if path.is_dir() {
            // A package outside the workspace has a folder of build results of its own.
            if path.file_name().is_some_and(|name| name != "target") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn collect(source: &str, homes: &mut BTreeMap<String, Option<String>>) {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    // A private free function is not an operation. Methods of a trait are indented, which distinguishes them.
    let (mut in_place, mut family) = (false, None);
    for line in code.lines() {
        if let Some(name) = line.strip_prefix("pub trait ") {
            family = Some(identifier(name));
        }
        in_place |= line.starts_with("    #[in_place");
        let (rest, home) = match (line.strip_prefix("    fn try_"), line.strip_prefix("pub fn try_")) {
            (Some(rest), _) => (rest, family),
            (None, Some(rest)) => (rest, None),
            (None, None) => continue,
        };
        let (name, home) = (identifier(rest).to_owned(), home.map(str::to_owned));
        if std::mem::take(&mut in_place) {
            homes.insert(format!("{name}_"), home.clone());
        }
        // If a function and a method have the same name, the method counts.
        if home.is_some() || !homes.contains_key(&name) {
            homes.insert(name, home);
        }
    }
}

/// Returns the name at the beginning of a text.
fn identifier(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_in_every_notation() {
        let source = "
/// Not this: fn try_comment.
fn try_own(x: &Tensor<f64>) -> Result<Tensor<f64>, Error> {
pub fn try_cat<A: TensorLike>(tensors: &[A], dim: isize) -> Result<A, A::Error> {
pub trait Family: TensorLike {
    #[in_place]
    fn try_neg(&self) -> Result<Self, Self::Error>
    #[in_place(Binary::Add)]
    fn try_add(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    fn try_copy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
#[cfg(test)]
    fn try_inside(&self)";
        let mut homes = BTreeMap::new();
        collect(source, &mut homes);
        assert_eq!(homes["cat"], None);
        assert!(homes.iter().all(|(name, home)| name == "cat" || home.as_deref() == Some("Family")));
        assert_eq!(homes.into_keys().collect::<Vec<_>>(), ["add", "add_", "cat", "copy_", "neg", "neg_"]);
    }

    #[test]
    fn functions_that_panic_are_found() {
        let source = "
/// # Panics
///
/// Where it is full.
#[track_caller]
pub fn push() {}
pub fn quiet() {}
#[twins]
impl Own {
    pub fn try_method(&self) -> Result<(), Error> {
    fn try_private(&self) -> Result<(), Error> {
    pub(crate) fn try_inside(&self) -> Result<(), Error> {
}
impl Other {
    #[twins]
    pub fn try_one(&self) -> Result<(), Error> {
    pub fn try_alone(&self) -> Result<(), Error> {
}
#[twins(blanket)]
pub trait Family {
    fn try_default(&self) -> Result<(), Error> {
}
#[twins]
pub fn try_free() -> Result<(), Error> {
#[cfg(test)]
mod tests {
    /// # Panics
    pub fn check() {}";
        assert_eq!(panicking(source), ["push", "method", "one", "default", "free"]);
        let found = that_panic();
        for name in ["add", "below", "cat", "forward", "freeze", "grad", "step", "value"] {
            assert!(found.contains_key(name), "{name} is not found");
        }
    }

    #[test]
    fn operations_of_every_kind_are_found() {
        let found = operations();
        for name in ["add", "add_", "cat", "conv2d", "exp", "exp_", "index_put_", "one_hot", "scatter_", "where_"] {
            assert!(found.contains(name), "{name} is not found");
        }
    }
}
