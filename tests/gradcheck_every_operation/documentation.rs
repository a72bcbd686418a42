//! What the tables of `docs/` say of each operation, read so that it can be compared with what is so.

use wengert_tests::sources::text;

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
