//! The front pages of `tensor`, `autograd` and `nn` list every public item, and each layer, loss, optimiser and schedule in the table of
//! its kind. The facade documents every item of the crates that it lists.

use std::collections::BTreeSet;

use crate::sources::text;

/// Returns the documentation at the beginning of a file.
fn front_page(source: &str) -> String {
    source.lines().map_while(|line| line.strip_prefix("//!")).collect::<Vec<_>>().join("\n")
}

/// Returns the names in the `pub use` lines at the margin whose path begins with one of `paths`. If `paths` is empty, all lines
/// count. Leaves out the items under `#[doc(hidden)]` or `#[doc(no_inline)]`, and `try_` twins.
fn exports(source: &str, paths: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in source.split_inclusive(';') {
        let Some(start) = statement.find("\npub use ") else {
            continue;
        };
        let before = statement[..start].trim_end();
        let hidden = before.ends_with("#[doc(hidden)]") || before.ends_with("#[doc(no_inline)]");
        let path = statement[start + 9..].trim_end_matches(';').trim();
        if hidden || !paths.is_empty() && !paths.iter().any(|prefix| path.starts_with(prefix)) {
            continue;
        }
        let list = match path.split_once('{') {
            Some((_, list)) => list.trim_end_matches('}'),
            None => path.rsplit("::").next().unwrap_or_default(),
        };
        let items = list.split(',').map(|item| item.trim().rsplit("::").next().unwrap_or_default());
        names.extend(items.filter(|item| !item.is_empty() && !item.starts_with("try_")).map(str::to_owned));
    }
    names
}

/// Returns the section of a page with this heading.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let start = page.find(&format!("\n # {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let rest = &page[start + 4 + heading.len()..];
    rest.split("\n # ").next().unwrap_or_default()
}

/// Returns the names that are not linked in `page`. A mention is enough for the items of [`FEATURES`].
fn missing(names: &BTreeSet<String>, page: &str) -> Vec<String> {
    let linked = |name: &&String| {
        page.contains(&format!("[`{name}`]"))
            || page.contains(&format!("`{name}`")) && FEATURES.contains(&name.as_str())
    };
    names.iter().filter(|name| !linked(name)).cloned().collect()
}

/// Items of optional features, which have no link because a link needs the feature.
const FEATURES: [&str; 5] = ["ImageFolder", "ImageReader", "read_npz", "write_npz", "plots"];

#[test]
fn every_item_of_nn_is_in_the_table_of_its_kind() {
    let source = text("crates/nn/src/lib.rs");
    let page = front_page(&source);
    for (heading, paths, least) in [
        ("Layers", &["layers::"][..], 90),
        ("Losses", &["loss::"][..], 20),
        ("Optimisers", &["optim::"][..], 15),
        ("Data", &["data::", "normalize::"][..], 15),
        ("Training and files", &["fit::", "history::", "metrics::", "checkpoint::", "file::"][..], 10),
        ("Models and their parts", &["module::", "error::", "gradcheck::", "per_sample::"][..], 10),
    ] {
        let mut names = exports(&source, paths);
        if heading == "Layers" {
            names.remove("Layer"); // It is the trait, listed with `Module`.
        }
        assert!(names.len() >= least, "{heading}: only {names:?} were found");
        assert_eq!(
            missing(&names, section(&page, heading)),
            [""; 0],
            "the section {heading} of crates/nn/src/lib.rs lacks these"
        );
    }
    assert_eq!(missing(&exports(&source, &[]), &page), [""; 0], "crates/nn/src/lib.rs lacks these");
    let schedules = exports(&text("crates/nn/src/schedule/mod.rs"), &[]);
    assert!(schedules.len() > 10, "only {schedules:?} were found");
    assert_eq!(
        missing(&schedules, section(&page, "Learning rates")),
        [""; 0],
        "the section of learning rates lacks these"
    );
}

#[test]
fn the_front_pages_of_tensor_and_autograd_list_their_items() {
    for (name, least) in [("tensor", 30), ("autograd", 20)] {
        let source = text(&format!("crates/{name}/src/lib.rs"));
        let names = exports(&source, &[]);
        assert!(names.len() >= least, "{name}: only {names:?} were found");
        assert_eq!(
            missing(&names, &front_page(&source)),
            [""; 0],
            "the front page of crates/{name}/src/lib.rs lacks these"
        );
    }
}

/// rustdoc documents the items in the list of the facade, and hides its glob.
#[test]
fn the_facade_documents_every_item_of_the_crates_with_a_list() {
    let facade = text("src/lib.rs");
    for name in ["tensor", "autograd", "fft", "linalg", "special"] {
        let source = text(&format!("crates/{name}/src/lib.rs"));
        let module = facade.split(&format!("pub mod {name} {{")).nth(1).expect("the facade has this module");
        let list = module.split(&format!("pub use wengert_{name}::{{")).nth(1).and_then(|rest| rest.split('}').next());
        let listed: BTreeSet<&str> = list.expect("the module has a list").split(',').map(str::trim).collect();
        let modules = source.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let expected: BTreeSet<String> = exports(&source, &[]).into_iter().chain(modules.map(str::to_owned)).collect();
        let absent: Vec<&String> = expected.iter().filter(|item| !listed.contains(item.as_str())).collect();
        assert!(
            absent.is_empty(),
            "add these items of crates/{name}/src/lib.rs to the list of `{name}` in src/lib.rs: {absent:?}"
        );
    }
}

#[test]
fn the_readers_of_these_tests_find_items_and_gaps() {
    let source =
        "//! [`A`], `plots`\n\nmod x;\n\npub use x::{A, B, try_b};\n#[doc(hidden)]\npub use x::C;\npub use y::D;\n";
    let found = exports(source, &[]);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["A", "B", "D"]);
    assert_eq!(exports(source, &["y::"]).len(), 1);
    assert_eq!(missing(&found, &front_page(source)), ["B", "D"]);
}
