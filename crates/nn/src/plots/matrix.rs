//! Draws confusion matrices.

use std::fmt::Write as _;

use super::style::escape_markup;
use crate::metrics::ConfusionMatrix;

/// The width and height of a cell in pixels.
const CELL: usize = 46;

/// Draws a confusion matrix as an SVG image: a row for each true class, a column for each predicted class. A cell is darker if it has a larger share
/// of the samples of its row. A class without a name is shown by its index.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::ConfusionMatrix;
/// use wengert::nn::plots::confusion_matrix;
/// use wengert::prelude::*;
///
/// let mut confusion = ConfusionMatrix::new(2);
/// confusion.update(&Tensor::from([[0.1, 0.9], [0.8, 0.2]]), &Tensor::from([1, 0]))?;
/// assert!(confusion_matrix(&confusion, &["cat", "dog"]).contains("dog"));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
pub fn confusion_matrix(confusion: &ConfusionMatrix, names: &[&str]) -> String {
    let counts = confusion.counts();
    let classes = counts.shape()[0];
    let name = |class: usize| names.get(class).map_or_else(|| class.to_string(), |name| escape_markup(name));
    // The space for the names is an estimate: it assumes letters of about 8 pixels.
    let longest = (0..classes).map(|class| name(class).chars().count()).max().unwrap_or(0);
    let (side, long) = (60 + 8 * longest, longest > 5);
    let top = if long { 70 + 6 * longest } else { 90 };
    let (width, height) = (side + CELL * classes + 20, top + CELL * classes + 20);
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" font-size=\"14\" fill=\"#3c3c3c\">\n<rect width=\"{width}\" height=\"{height}\" \
         fill=\"#ffffff\"/>\n<text x=\"{}\" y=\"28\" text-anchor=\"middle\" font-size=\"17\">prediction</text>\n<text x=\"24\" \
         y=\"{}\" text-anchor=\"middle\" font-size=\"17\" transform=\"rotate(-90 24 {1})\">class</text>\n",
        side + CELL * classes / 2,
        top + CELL * classes / 2,
    );
    for row in 0..classes {
        let (middle, base) = (row * CELL + CELL / 2, top + row * CELL + CELL / 2 + 5);
        let total: i64 = (0..classes).filter_map(|column| counts.get(&[row, column])).sum();
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>", side - 10, name(row));
        let (x, y) = (side + middle, top - 12);
        let placement = if long {
            format!("text-anchor=\"start\" transform=\"rotate(-45 {x} {y})\"")
        } else {
            "text-anchor=\"middle\"".to_owned()
        };
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" {placement}>{}</text>", name(row));
        for column in 0..classes {
            let count = counts.get(&[row, column]).unwrap_or(0);
            let share = if total == 0 { 0.0 } else { count as f64 / total as f64 };
            let [r, g, b] = [31.0, 119.0, 180.0].map(|full: f64| (255.0 + share * (full - 255.0)).round());
            let (x, y) = (side + column * CELL, top + row * CELL);
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"rgb({r},{g},{b})\" stroke=\"#e8e8e8\"/>"
            );
            if count > 0 {
                let ink = if share > 0.5 { "#ffffff" } else { "#3c3c3c" };
                let x = x + CELL / 2;
                let _ =
                    writeln!(svg, "<text x=\"{x}\" y=\"{base}\" text-anchor=\"middle\" fill=\"{ink}\">{count}</text>");
            }
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::*;

    #[test]
    fn every_count_has_a_cell() {
        let mut confusion = ConfusionMatrix::new(3);
        let logits = Tensor::from([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
        confusion.update(&logits, &Tensor::from([0, 1, 2])).unwrap();
        let svg = confusion_matrix(&confusion, &["<cat>", "dog"]);
        assert_eq!((svg.matches("<rect x").count(), svg.matches(">1</text>").count()), (9, 3));
        assert!(svg.contains("&lt;cat&gt;") && svg.contains(">2</text>") && svg.ends_with("</svg>\n"));
        assert!(confusion_matrix(&ConfusionMatrix::new(0), &[]).ends_with("</svg>\n"));
    }
}
