//! What the tables of `docs/` say of each operation, read so that it can be compared with what is so.

use std::collections::BTreeSet;

use crate::sources::{self, text};
use wengert::tensor::{Binary, Compare, Reduction, Unary};

/// One line of `docs/operations.md`.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub broadcasts: String,
    /// The name of the form that changes its operand; empty where there is none.
    pub in_place: String,
    /// Whether it has a derivative in reverse mode, in forward mode, and a second one.
    pub derivatives: [bool; 3],
    pub accuracy: String,
}

/// The lines of all tables of operations in `docs/operations.md`.
pub fn operations() -> Vec<Line> {
    text("docs/operations.md").lines().filter_map(line).collect()
}

/// A line of eight columns that begins with a name in code.
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

/// Every primitive's name: of the elementwise ones and reductions from their lists, of views and of the operations that have
/// a rule of their own from the lines that name them.
fn primitives() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["where", "expand", "matmul"].map(str::to_owned).into();
    names.extend(Unary::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Binary::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Compare::ALL.iter().map(|op| op.name().to_owned()));
    names.extend(Reduction::ALL.iter().map(|op| op.name().to_owned()));
    let views = text("crates/tensor/src/shape/view.rs");
    names.extend(views.lines().filter(|line| line.trim_start().starts_with("View::")).filter_map(quoted));
    for rules in sources::texts("crates/autograd/src/rules") {
        let mut lines = rules.lines();
        while let Some(line) = lines.next() {
            if line.contains("fn name(&self) -> &'static str") {
                names.extend(lines.next().and_then(quoted));
            }
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
    for name in ["slice", "unfold", "cumsum", "vector_norm", "with_derivative"] {
        assert!(primitives.contains(name), "{name} is not found in the sources");
    }
    let page = text("docs/derivatives.md");
    let first_cells = page.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    // Comparisons have a sentence instead of lines.
    let sentence = page.lines().filter(|line| line.starts_with("Nothing flows through"));
    let named: BTreeSet<&str> =
        first_cells.chain(sentence).flat_map(|text| text.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<_> = primitives.iter().filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/derivatives.md lacks {missing:?}");
    let gone: Vec<_> = named.iter().filter(|name| !primitives.contains(**name)).collect();
    assert!(gone.is_empty(), "docs/derivatives.md has {gone:?}, which are not primitives");
}
