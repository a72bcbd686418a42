//! Reads the tables of `docs/`, which are compared with the operations.

use std::collections::BTreeSet;

use crate::sources::{self, text};
use wengert::tensor::{Binary, Compare, Reduction, Unary};

/// A line of a table in `docs/operations.md`, which describes one operation.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub broadcasts: String,
    /// The name of the in-place form, or an empty text.
    pub in_place: String,
    /// Three flags: the operation has a derivative in reverse mode, in forward mode, and a second derivative.
    pub derivatives: [bool; 3],
    pub accuracy: String,
}

/// Returns the lines of all tables in `docs/operations.md`.
pub fn operations() -> Vec<Line> {
    text("docs/operations.md").lines().filter_map(line).collect()
}

/// Returns the table at the beginning of a type's page: the families of `docs/operations.md`, with a link from each operation
/// to its documentation. `module` is the path of the module `ops` in the links.
pub fn table(module: &str) -> String {
    let homes = sources::homes();
    let link = |name: &str| {
        let home = homes.get(name).unwrap_or_else(|| panic!("docs/operations.md: {name} is not found in the sources"));
        let family = home.as_ref().map_or(String::new(), |family| format!("::{family}"));
        format!("[`{name}`]({module}{family}::{name})")
    };
    let page = text("docs/operations.md");
    let mut rows = Vec::new();
    let mut in_place = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let title = section.lines().next().unwrap_or_default();
        let lines: Vec<Line> = section.lines().filter_map(line).collect();
        if lines.is_empty() {
            continue;
        }
        in_place.extend(lines.iter().filter(|line| line.in_place.ends_with('_')).map(|line| link(&line.in_place)));
        let mut names: Vec<String> = lines.iter().map(|line| link(&line.name)).collect();
        if title == "Only in place" {
            in_place.append(&mut names);
        } else {
            rows.push(format!("| {title} | {} |", names.join(" ")));
        }
    }
    rows.push(format!("| In place | {} |", in_place.join(" ")));
    format!("| family | operations |\n|---|---|\n{}\n", rows.join("\n"))
}

/// Checks the tables on the pages of `Tensor` and `Var`. `WENGERT_WRITE_DOCS=1 cargo test -p wengert-tests --test laws
/// the_pages_of_tensors` writes them.
#[test]
fn the_pages_of_tensors_and_variables_list_every_operation() {
    for (path, module) in [
        ("crates/tensor/src/tensor/operations.md", "crate::ops"),
        ("crates/autograd/src/tape/operations.md", "wengert_tensor::ops"),
    ] {
        let expected = table(module);
        if std::env::var_os("WENGERT_WRITE_DOCS").is_some() {
            sources::write(path, &expected);
        }
        assert!(
            text(path) == expected,
            "{path} is not the table of docs/operations.md; the test's documentation says how to write it"
        );
    }
}

/// Reads a line of eight columns whose first column is a name in backticks. Returns `None` for other lines.
fn line(text: &str) -> Option<Line> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let [_, name, broadcasts, in_place, reverse, forward, second, _, accuracy, _] = cells[..] else { return None };
    let name = name.strip_prefix('`')?.strip_suffix('`')?;
    let yes = |cell: &str| match cell {
        "yes" => true,
        "no" => false,
        other => panic!("docs/operations.md, {name}: neither yes nor no: {other}"),
    };
    Some(Line {
        name: name.to_owned(),
        broadcasts: broadcasts.to_owned(),
        in_place: in_place.trim_matches('`').to_owned(),
        derivatives: [yes(reverse), yes(forward), yes(second)],
        accuracy: accuracy.to_owned(),
    })
}

/// Returns the names of all primitives. Elementwise primitives and reductions have lists of their names. Five names are written here. The
/// names of the views are read from `view.rs`. The other names are read from the rules: all texts in the bodies of the methods
/// `name`, and of `operation` where `name` calls it.
fn primitives() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["where", "expand", "matmul", "cat", "embed"].map(str::to_owned).into();
    names.extend(Unary::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Binary::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Compare::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Reduction::ALL.iter().map(|op| op.name().to_owned()));
    let views = text("crates/tensor/src/shape/view.rs");
    names.extend(views.lines().filter(|line| line.trim_start().starts_with("View::")).filter_map(quoted));
    for rules in sources::texts("crates/autograd/src/rules") {
        for method in ["name", "operation"] {
            let start = format!("    fn {method}(&self) -> &'static str {{\n");
            let bodies = rules.split(&start).skip(1).map(|rest| rest.split("\n    }\n").next().unwrap_or_default());
            names.extend(bodies.flat_map(|body| body.split('"').skip(1).step_by(2)).map(str::to_owned));
        }
    }
    names
}

fn quoted(line: &str) -> Option<String> {
    line.split('"').nth(1).map(str::to_owned)
}

#[test]
fn the_page_of_derivatives_has_every_primitive() {
    let primitives = primitives();
    for name in ["slice", "unfold", "cumsum", "vector_norm", "with_derivative", "max_unpool", "conv_weight", "conv"] {
        assert!(primitives.contains(name), "{name} is not found in the sources");
    }
    let page = text("docs/derivatives.md");
    let first_cells = page.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    // The page lists comparisons in a sentence, not in a table.
    let sentence = page.lines().filter(|line| line.starts_with("No gradient flows through"));
    let named: BTreeSet<&str> =
        first_cells.chain(sentence).flat_map(|text| text.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<_> = primitives.iter().filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/derivatives.md lacks {missing:?}");
    let gone: Vec<_> = named.iter().filter(|name| !primitives.contains(**name)).collect();
    assert!(gone.is_empty(), "docs/derivatives.md has {gone:?}, which are not primitives");
}
