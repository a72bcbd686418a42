//! Compares statements of the pages with the sources: links, file names, variables, features, examples, and the
//! messages that the pages show. Some tests check rules that the pages state about the sources.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sources::{files, operations, root, text};
use wengert::compat;
use wengert::prelude::*;

/// The pages outside of `docs/` whose statements are tested.
const PAGES: [&str; 7] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benches/README.md",
    "examples/README.md",
    "examples/data/README.md",
    "tests/fixtures/README.md",
];

/// Returns the pages of [`PAGES`] and the pages under `docs/`, with their texts.
fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> = PAGES.map(str::to_owned).into();
    for folder in ["docs", "docs/guide", "docs/guide/course"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder exists");
        let found =
            entries.map(|entry| entry.expect("the folder can be listed").file_name().to_string_lossy().into_owned());
        names.extend(found.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    names.into_iter().map(|name| (name.clone(), text(&name))).collect()
}

/// Returns the parts of a page in single backticks, outside of code blocks.
fn code_spans(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

/// Returns the code block of a page that begins with `start`.
fn block<'p>(page: &'p str, start: &str) -> &'p str {
    let blocks: Vec<&str> =
        page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).map(|(_, text)| text).collect();
    blocks.iter().find(|block| block.starts_with(start)).unwrap_or_else(|| panic!("no block begins with {start}"))
}

/// Returns the names of all files and folders of the workspace that a page may name, as written and without `crates/` and `src/`.
fn known_files() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut open = vec![root()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            let name =
                path.strip_prefix(root()).expect("it lies in the workspace").to_string_lossy().replace('\\', "/");
            if name.split('/').any(|part| ["target", "out", ".git"].contains(&part)) {
                continue;
            }
            let is_folder = path.is_dir();
            let name = if is_folder { format!("{name}/") } else { name };
            known.insert(name.trim_start_matches("crates/").replacen("/src/", "/", 1));
            known.insert(name);
            if is_folder {
                open.push(path);
            }
        }
    }
    known
}

#[test]
fn every_link_leads_to_a_file() {
    let mut count = 0;
    for (name, page) in pages() {
        let folder = Path::new(&name).parent().expect("a page lies in a folder").to_path_buf();
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            count += 1;
            assert!(root().join(&folder).join(target).exists(), "{name}: the link to {link} leads nowhere");
        }
    }
    assert!(count > 60, "only {count} links were found");
}

#[test]
fn every_named_source_file_exists() {
    let known = known_files();
    let mut count = 0;
    for (name, page) in pages() {
        for span in code_spans(&page) {
            let path = span.split(' ').next().unwrap_or_default();
            // `src/main.rs` is a file of the reader's own project.
            let is_ours = !path.contains('…') && path != "src/main.rs";
            let is_path = [".rs", ".py"].iter().any(|end| path.ends_with(end)) && is_ours;
            if !is_path {
                continue;
            }
            count += 1;
            let is_there = known.iter().any(|file| file == path || file.ends_with(&format!("/{path}")));
            assert!(is_there, "{name} names `{path}`, which does not exist");
        }
    }
    assert!(count > 40, "only {count} files were found in the pages");
}

#[test]
fn every_named_variable_is_read_by_the_sources() {
    let sources: Vec<(String, String)> = ["crates", "tests"].into_iter().flat_map(files).collect();
    let mut found = BTreeSet::new();
    for (name, page) in pages() {
        for variable in page.split("WENGERT_").skip(1) {
            let end = variable.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(variable.len());
            let variable = format!("\"WENGERT_{}", variable[..end].trim_end_matches('_'));
            assert!(
                sources.iter().any(|(_, source)| source.contains(&variable)),
                "{name} names {}, which no source reads",
                &variable[1..]
            );
            found.insert(variable);
        }
    }
    assert!(found.len() > 4, "only {found:?} were found");
}

#[test]
fn the_readme_lists_the_features_and_the_version_of_rust() {
    let (readme, manifest) = (text("README.md"), text("Cargo.toml"));
    let features =
        manifest.split("\n[features]\n").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
    let declared: BTreeSet<&str> =
        features.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let table = readme.split("| feature |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let listed: BTreeSet<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(listed, declared, "the features of README.md and Cargo.toml");
    let version =
        manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    assert!(readme.contains(&format!("Rust {version} or later")), "README.md: the version of Rust is {version}");
}

#[test]
fn the_page_of_the_examples_lists_them_all() {
    let page = text("examples/README.md");
    let examples: Vec<String> = files("examples").into_iter().map(|(path, _)| path).collect();
    for path in examples.iter().filter(|path| !["/src/", "/tests/"].iter().any(|folder| path.contains(folder))) {
        let link = path.trim_start_matches("examples/");
        assert!(page.contains(&format!("({link})")), "examples/README.md does not list {link}");
    }
}

/// Returns the line of an example that a message on a page names, by `FILE:LINE`.
fn named_line(place: &str) -> String {
    let (file, line) = place.split_once(':').expect("a place is FILE:LINE");
    let number: usize = line.parse().expect("a line is a number");
    text(file).lines().nth(number - 1).unwrap_or_default().to_owned()
}

#[test]
fn the_pages_show_the_error_of_the_example() {
    let error = Tensor::<f32>::zeros([4, 32, 14, 14]).try_add(Tensor::<f32>::ones([32])).unwrap_err().to_string();
    let lines = |text: &str| {
        let shown = text.trim_end().lines();
        // In the guide, a second column explains each line.
        shown.map(|line| line.split("     ").next().unwrap_or_default().trim_end().to_owned()).collect::<Vec<_>>()
    };
    for name in ["README.md", "docs/guide/errors.md"] {
        let page = text(name);
        let shown = block(&page, "The size of tensor a (14)");
        let place = shown.split("--> ").nth(1).and_then(|rest| rest.split(", in").next()).expect("it names a line");
        assert!(
            named_line(place.rsplit_once(':').expect("it has a column").0).contains(".try_add("),
            "{name}: {place}"
        );
        for (got, expected) in lines(shown).iter().zip(error.lines()) {
            if !expected.contains("-->") && !expected.contains("against") && !expected.contains("[32]") {
                assert_eq!(got, expected.trim_end(), "{name}");
            }
        }
        assert_eq!(lines(shown).len(), error.lines().count(), "{name}");
    }
}

#[test]
fn the_readme_shows_the_warning_of_the_example() {
    let warnings = compat::collect();
    let _ = Tensor::<f32>::zeros([8, 1]) - Tensor::<f32>::zeros([8]);
    let details = warnings.warnings()[0].details();
    let page = text("README.md");
    let shown = block(&page, "examples/broadcast_warning.rs:").trim_end();
    let (place, message) = shown.split_once(": UserWarning").expect("it names a line");
    assert!(named_line(place).contains("predictions - targets"), "{place}");
    assert_eq!(Some(message), details.split_once(": UserWarning").map(|(_, message)| message));
}

#[test]
fn the_rules_of_elementwise_operations_contain_no_broadcasting() {
    for file in ["unary.rs", "binary.rs", "linear.rs"] {
        let source = text(&format!("crates/autograd/src/rules/{file}"));
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for word in ["expand", "sum_to", "broadcast", "View::Expand"] {
                assert!(!line.contains(word), "rules/{file} names {word}: {}", line.trim());
            }
        }
    }
}

#[test]
fn operations_are_written_once() {
    let mut operations = operations();
    // The operation `var` is the variance, but `Tape::var` records a variable.
    operations.remove("var");
    for (path, source) in files("crates/autograd/src") {
        for name in source.split("fn try_").skip(1).filter_map(|rest| rest.split(['<', '(']).next()) {
            assert!(
                !operations.contains(name),
                "{path} writes the operation {name} again; crates/tensor/src/ops has it"
            );
        }
    }
}

#[test]
fn no_crate_draws_random_numbers_from_another_crate() {
    for name in ["tensor", "autograd", "nn", "distributed"] {
        let manifest = text(&format!("crates/{name}/Cargo.toml"));
        let section =
            manifest.split("\n[dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
        assert!(section.contains("wengert-"), "the dependencies of {name} are not found");
        let random = section.lines().find(|line| line.starts_with("rand") || line.starts_with("getrandom"));
        assert_eq!(random, None, "{name}: all random numbers come from a `Generator`");
    }
}

#[test]
fn the_pages_are_found() {
    let found = pages();
    assert!(found.len() > 20, "only {} pages were found", found.len());
    assert_eq!(code_spans("a `b` c\n```\n`d`\n```\n`e`"), ["b", "e"]);
}

/// rustdoc hides lines of code that begin with `#`. GitHub and editors show them.
#[test]
fn no_block_of_code_has_hidden_lines() {
    let mut count = 0;
    for (name, page) in pages() {
        for block in page.split("```").skip(1).step_by(2).filter(|block| block.starts_with("rust")) {
            count += 1;
            let hidden = block.lines().map(str::trim).find(|line| *line == "#" || line.starts_with("# "));
            assert_eq!(hidden, None, "{name}: this line is hidden in rustdoc and shown elsewhere");
        }
    }
    assert!(count > 20, "only {count} blocks were found");
}

/// Returns the lines of the code blocks of a page that are wider than the book. `levels` is a list for a test, not a text for readers.
fn wide_lines(page: &str) -> Vec<&str> {
    let blocks = page.split("```").skip(1).step_by(2).filter(|block| !block.starts_with("levels"));
    blocks.flat_map(str::lines).filter(|line| line.chars().count() > 118).collect()
}

/// The book shows 118 letters of a line of code, and scrolls for more.
#[test]
fn no_line_of_code_in_the_docs_is_wider_than_the_book() {
    for (name, page) in pages().into_iter().filter(|(name, _)| name.starts_with("docs/")) {
        assert_eq!(wide_lines(&page), [""; 0], "{name}: these lines have more than 118 letters");
    }
    let (fits, wide) = ("é".repeat(118), "é".repeat(119));
    let page = format!("{wide}\n```text\n{fits}\n{wide}\n```\n```levels\n{wide}\n```\n");
    assert_eq!(wide_lines(&page), [wide.as_str()]);
}

/// A registry shows one page without the other files of the repository.
#[test]
fn the_page_of_the_registry_links_to_no_file() {
    let manifest = text("Cargo.toml");
    let name = manifest.split("\nreadme = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a readme");
    let page = text(name);
    let mut count = 0;
    for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        count += 1;
        assert!(link.starts_with("https://"), "{name}: {link} leads nowhere on a registry");
    }
    assert!(count > 0 && !page.contains("<img"), "{name} has no link, or a picture");
    assert!(manifest.contains(&format!("\"{name}\"")), "Cargo.toml does not include {name} in the package");
}

/// Returns the lines of the code blocks in the documentation comments of a Rust source that rustdoc shows.
fn shown_lines(source: &str) -> Vec<&str> {
    let (mut shown, mut inside) = (Vec::new(), false);
    for line in source.lines().map(str::trim) {
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim) else {
            inside = false;
            continue;
        };
        if line.starts_with("```") {
            inside = !inside;
        } else if inside && line != "#" && !line.starts_with("# ") {
            shown.push(line);
        }
    }
    shown
}

/// Returns true if a line of code has a path into a crate that users import from the facade `wengert`.
fn names_an_inner_crate(line: &str) -> bool {
    line.split("wengert_").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest[end..].starts_with("::") && &rest[..end] != "distributed"
    })
}

/// A user depends on `wengert`. Only `wengert-distributed` is a separate dependency.
#[test]
fn the_examples_of_the_documentation_import_the_facade() {
    let mut count = 0;
    for (path, source) in ["src", "crates"].into_iter().flat_map(files).filter(|(path, _)| !path.contains("/tests/")) {
        for line in shown_lines(&source) {
            count += 1;
            assert!(!names_an_inner_crate(line), "{path}: an example names an inner crate: {line}");
        }
    }
    assert!(count > 2000, "only {count} lines were found");
}

#[test]
fn an_example_that_names_an_inner_crate_is_found() {
    let source = "/// ```\n/// # use wengert_nn::Layer;\n/// use wengert_fft::prelude::*;\n/// ```\n/// `wengert_nn::x`\nuse wengert_nn::y;";
    assert_eq!(shown_lines(source), ["use wengert_fft::prelude::*;"]);
    assert!(names_an_inner_crate("use wengert_fft::prelude::*;"));
    assert!(!names_an_inner_crate("use wengert_distributed::Group;") && !names_an_inner_crate("let wengert_x = 1;"));
}
