//! Formats the summary of a model as text.

use std::fmt::Write as _;

/// Returns a text with a line of aligned columns for each row. A last line has the number of elements of all parameters and of the frozen ones.
pub(super) fn write_table(rows: &[[String; 4]], parameters: usize, frozen: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [path, kind, shape] = [width(0), width(1), width(2)];
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{:path$}  {:kind$}  {:shape$}  {}", row[0], row[1], row[2], row[3]);
    }
    let _ = writeln!(text, "{parameters} parameters, {frozen} of them frozen");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let row = |name: &str| [name, "Linear", "[2]", "2"].map(str::to_owned);
        let text = write_table(&[row("größe"), row("length")], 4, 0);
        assert_eq!(text.lines().next(), Some("größe   Linear  [2]  2"));
    }
}
