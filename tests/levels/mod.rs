//! Imports go down only, and folders do not import what `docs/levels.md` refuses them.
//!
//! The page lists the folders of each crate, lowest first. These tests read every import of the crates. They fail if an
//! import points up, if files import each other in a circle, or if a row of the page refuses an import. The message has the file, the line and
//! the import.
//!
//! An import is a path in a `use` line, or a path in the code that begins with `crate`, `super`, `self`, a child module or an imported
//! name. A re-export is not an import; it is followed to the file that has the item. Test code does not count. The tests read text, so they
//! do not see items that macros of other crates make, or the single items of a glob import.

mod imports;
mod lexer;
mod paths;
mod scopes;

use std::collections::BTreeSet;

use self::imports::{Crate, Import};
use self::lexer::{tokens, without_comments_and_literals};
use crate::sources::{files, text};

/// The upper limit of `unsafe` blocks under `crates/`.
const UNSAFE_BLOCKS: usize = 51;

/// Returns the lines of the page's code block of levels, which has the language `levels`.
fn block(page: &str) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| *line != "```levels").skip(1);
    lines.take_while(|line| *line != "```").collect()
}

/// Returns the crates and their levels, lowest first, from lines like `tensor: shape < scalar`. A line that begins with a space
/// continues the line before it.
fn levels() -> Vec<(String, Vec<String>)> {
    let page = text("docs/levels.md");
    let whole = block(&page).join("\n").replace("\n ", " ");
    whole
        .lines()
        .map(|line| {
            let (name, levels) = line.split_once(':').unwrap_or_else(|| panic!("docs/levels.md: {line}"));
            (name.trim().to_owned(), levels.split('<').map(|level| level.trim().to_owned()).collect())
        })
        .collect()
}

/// Returns the Rust files of a crate: paths from its `src`, and texts.
fn sources_of(name: &str) -> Vec<(String, String)> {
    let folder = format!("crates/{name}/src/");
    let relative = |(path, text): (String, String)| (path[folder.len()..].to_owned(), text);
    files(&folder).into_iter().map(relative).collect()
}

#[test]
fn no_import_points_up_or_makes_a_circle() {
    let (mut wrong, mut count) = (String::new(), 0);
    for (name, levels) in levels() {
        let read = Crate::read(&sources_of(&name));
        count += read.imports.len();
        let folders: BTreeSet<&str> =
            read.files.keys().filter_map(|module| module.first()).map(String::as_str).collect();
        let listed: BTreeSet<&str> = levels.iter().map(String::as_str).collect();
        assert_eq!(listed, folders, "docs/levels.md and crates/{name}/src");
        for import in read.upward(&levels) {
            wrong += &format!("\npoints up: crates/{name}/src/{import}");
        }
        for circle in read.circles() {
            wrong += &format!("\ncircle in crates/{name}/src:");
            circle.iter().for_each(|import| wrong += &format!("\n    {import}"));
        }
    }
    assert!(count > 500, "only {count} imports were found");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_crate_is_listed() {
    let listed: BTreeSet<String> = levels().into_iter().map(|(name, _)| name).collect();
    let crates: BTreeSet<String> =
        files("crates/").iter().filter_map(|(path, _)| path.split('/').nth(1)).map(str::to_owned).collect();
    assert_eq!(listed, crates, "docs/levels.md and the folders of crates/");
}

/// A row of the table of folders: the crate, the folder in its `src`, and the paths that the folder must not import.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    folder: String,
    refused: Vec<String>,
}

/// Returns the rows of the table of folders, whose last column lists the refused paths.
fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let [folders, _, refused] = cells[..] else { panic!("docs/levels.md: three cells expected in {line}") };
        for place in quoted(folders) {
            let (name, folder) = place.split_once('/').unwrap_or((&place, ""));
            rows.push(Row { name: name.to_owned(), folder: folder.to_owned(), refused: quoted(refused) });
        }
    }
    rows
}

/// Returns true if a refused path exists: a module of the crate, an item in the `lib.rs` of another crate, or any path
/// of `std`.
fn exists(read: &Crate, path: &str) -> bool {
    if path.starts_with("std::") {
        return true;
    }
    let Some(outside) = path.strip_prefix("wengert_") else {
        return read.files.keys().any(|module| module.join("::") == path);
    };
    let (name, item) = outside.split_once("::").unwrap_or((outside, ""));
    let lib = text(&format!("crates/{name}/src/lib.rs"));
    item.is_empty() || tokens(&without_comments_and_literals(&lib)).iter().any(|token| token.text == item)
}

#[test]
fn no_folder_imports_what_the_page_refuses() {
    let (mut wrong, mut count) = (String::new(), 0);
    let all = rows(&text("docs/levels.md"));
    for (name, _) in levels() {
        let read = Crate::read(&sources_of(&name));
        for Row { folder, refused, .. } in all.iter().filter(|row| row.name == name) {
            let is_there = |file: &String| {
                let rest = file.trim_end_matches(".rs").strip_prefix(folder.as_str());
                rest.is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
            };
            assert!(read.files.values().any(is_there), "docs/levels.md lists `{name}/{folder}`, which does not exist");
            for path in refused {
                count += 1;
                assert!(
                    exists(&read, path),
                    "docs/levels.md refuses `{path}` to `{name}/{folder}`, and it does not exist"
                );
                for import in read.imports_of(folder, path) {
                    wrong += &format!("\n`{name}/{folder}` must not import `{path}`: crates/{name}/src/{import}");
                }
            }
        }
    }
    assert!(count >= 40, "only {count} refused paths were found in docs/levels.md");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_folder_has_a_row() {
    let all = rows(&text("docs/levels.md"));
    for (name, levels) in levels() {
        let folders = levels.iter().filter(|level| std::path::Path::new(&folder_of(&name, level)).is_dir());
        let without: Vec<&String> = folders
            .filter(|level| !all.iter().any(|row| row.name == name && row.folder.split('/').next() == Some(level)))
            .collect();
        assert!(without.is_empty(), "docs/levels.md has no row for the folders {without:?} of {name}");
    }
}

/// Returns the absolute path of a folder in the sources of a crate.
fn folder_of(name: &str, folder: &str) -> String {
    format!("{}/../crates/{name}/src/{folder}", env!("CARGO_MANIFEST_DIR"))
}

/// The beginning of the line that lists the places where `unsafe` is allowed.
const WHERE: &str = "`unsafe` is allowed in ";

/// Returns the places where `unsafe` is allowed: files, and folders, which end in `/`.
fn where_unsafe_may_be() -> Vec<String> {
    let page = text("docs/levels.md");
    let line = page.lines().find(|line| line.starts_with(WHERE)).expect("docs/levels.md lists the places of `unsafe`");
    line[WHERE.len()..].split('`').skip(1).step_by(2).map(|path| format!("crates/{path}")).collect()
}

#[test]
fn unsafe_code_is_rare_and_in_the_listed_places() {
    let allowed = where_unsafe_may_be();
    let mut blocks = 0;
    for (path, text) in files("crates/") {
        let code = without_comments_and_literals(&text);
        let tokens = tokens(&code);
        for pair in tokens.windows(2).filter(|pair| pair[0].text == "unsafe") {
            assert!(
                allowed.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place))),
                "{path}:{}: `unsafe` is allowed only in {allowed:?}",
                pair[0].line
            );
            blocks += usize::from(pair[1].text == "{");
        }
    }
    assert!(blocks > 0, "the search finds no `unsafe` block, although there are some");
    assert!(blocks <= UNSAFE_BLOCKS, "{blocks} `unsafe` blocks; the limit is {UNSAFE_BLOCKS}");
}

#[test]
fn every_page_shows_the_same_levels_and_places_of_unsafe_code() {
    let levels = text("docs/levels.md");
    let said =
        levels.lines().find(|line| line.starts_with(WHERE)).expect("docs/levels.md lists the places of `unsafe`");
    for page in ["README.md", "CONTRIBUTING.md"] {
        let shown = text(page);
        assert_eq!(block(&shown), block(&levels), "{page} and docs/levels.md");
        let places: Vec<&str> = shown.lines().filter(|line| line.contains(WHERE)).collect();
        assert_eq!(places, [said], "{page} and docs/levels.md: the places of `unsafe`");
    }
}

/// Returns a crate of a few files, to test the search for imports.
fn synthetic(files: &[(&str, &str)]) -> Crate {
    Crate::read(&files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect::<Vec<_>>())
}

/// Returns all imports between the files of a crate as texts.
fn all(read: &Crate) -> Vec<String> {
    read.imports.iter().map(Import::to_string).collect()
}

#[test]
fn an_upward_import_is_found_in_every_notation() {
    let levels = ["low", "high"].map(str::to_owned);
    for import in [
        "use crate::high::run::Run;",
        "pub(crate) fn f() {}\nuse crate::{high::{run::{self as r, Run}}};",
        "fn f() { crate::high::run::go() }",
        "fn f() { super::super::high::run::go() }",
        "use crate::Run;",
        "use crate::high;\nfn f() { high::run::go() }",
        "macro_rules! m { () => { $crate::high::run::go() } }",
        "mod inner { use super::super::super::high::run::Run; }",
    ] {
        let read = synthetic(&[
            ("lib.rs", "mod low; mod high; pub use high::run::Run;"),
            ("low/mod.rs", "pub mod data;"),
            ("low/data.rs", import),
            ("high/mod.rs", "pub mod run; pub use run::Run;"),
            ("high/run.rs", "use crate::low::data; pub struct Run; pub fn go() {}"),
        ]);
        let found = read.upward(&levels);
        assert!(found.iter().any(|found| found.ends_with("(in high/run.rs)")), "{import}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with("low/data.rs:")), "{import}: {found:?}");
        assert_eq!(read.circles().len(), 1, "{import}");
    }
}

#[test]
fn comments_literals_and_tests_are_not_imports() {
    let read = synthetic(&[
        ("lib.rs", "mod low; mod high;"),
        ("low/mod.rs", "pub mod data; pub use data::Data; pub(crate) use data::other; #[cfg(test)] mod checks;"),
        (
            "low/data.rs",
            "// crate::high::a
             /* use crate::high::run::Run; /* crate::high::b */ */
             /// [`Run`](crate::high::run::Run)
             #[cfg(test)]
             use crate::high::run::Run;
             const TEXT: &str = \"crate::high::run\";
             const RAW: &str = r#\"crate::high::\"run\"#;
             fn f<'a>(c: char) -> bool { c == '\"' || c == 'a' }
             #[cfg(test)]
             #[allow(unused)]
             mod tests { use crate::high::run::Run; fn f() { crate::high::run::go() } }
             fn g() { std::mem::take(&mut x); T::high::run() }",
        ),
        ("low/checks.rs", "use crate::high::run::Run;"),
        ("high/mod.rs", "pub mod run;"),
        ("high/run.rs", "use super::super::low::Data;"),
    ]);
    assert_eq!(all(&read), ["high/run.rs:1: super::super::low::Data (in low/data.rs)"]);
    assert!(read.circles().is_empty());
}

#[test]
fn a_circle_of_files_in_one_folder_is_found() {
    let read = synthetic(&[
        ("lib.rs", "mod low;"),
        ("low/mod.rs", "mod a; mod b; mod c; mod d;"),
        ("low/a.rs", "use super::b::B;"),
        ("low/b.rs", "\nuse crate::low::c::C;"),
        ("low/c.rs", "\n\nfn f() { super::a::go() }"),
        ("low/d.rs", "use super::a::A;"),
    ]);
    let circles = read.circles();
    assert_eq!(circles.len(), 1);
    let circle: Vec<String> = circles[0].iter().map(|import| import.to_string()).collect();
    assert_eq!(
        circle,
        [
            "low/a.rs:1: super::b::B (in low/b.rs)",
            "low/b.rs:2: crate::low::c::C (in low/c.rs)",
            "low/c.rs:3: super::a::go (in low/a.rs)"
        ]
    );
    assert!(read.upward(&["low".to_owned()]).is_empty());
}

#[test]
fn a_refused_import_is_found_in_every_notation() {
    for (import, path) in [
        ("use crate::low::data::Data;", "low"),
        ("fn f() { crate::low::data::go() }", "low::data"),
        ("use outside::Strides;", "outside::Strides"),
        ("use outside::{Shape, layout::{self, Strides}};", "outside::layout"),
        ("use outside as other;\nfn f() { other::layout::go() }", "outside::layout"),
        ("use outside::layout as l;\nfn f() { l::go() }", "outside::layout::go"),
        ("use crate::other::layout::go;", "outside::layout"),
        ("fn f() { outside::layout::go() }", "outside"),
    ] {
        let read = synthetic(&[
            ("lib.rs", "mod low; mod high; pub use outside as other;"),
            ("low/mod.rs", "pub mod data;"),
            ("low/data.rs", "pub struct Data; pub fn go() {}"),
            ("high/mod.rs", "pub mod run;"),
            ("high/run.rs", import),
        ]);
        assert!(!read.imports_of("high", path).is_empty(), "{import}: {path} is not found");
        assert!(!read.imports_of("", path).is_empty(), "{import}: {path} is not found in the crate");
        assert!(read.imports_of("low", path).is_empty(), "{import}: {path} is found in the wrong folder");
        assert!(read.imports_of("high", "outside::lay").is_empty(), "{import}: part of a name is found");
    }
}

#[test]
fn rows_are_read_from_the_table() {
    let page =
        "| folder | contents | must not import |\n|---|---|---|\n| `a/b`, `c` | has `x` | `d::e`, `f` |\n| `g` | | |";
    let row = |name: &str, folder: &str, refused: &[&str]| Row {
        name: name.to_owned(),
        folder: folder.to_owned(),
        refused: refused.iter().map(|path| (*path).to_owned()).collect(),
    };
    assert_eq!(rows(page), [row("a", "b", &["d::e", "f"]), row("c", "", &["d::e", "f"]), row("g", "", &[])]);
}
