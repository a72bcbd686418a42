//! An explanation as a picture: presentation attributes only, without style sheets, scripts or external references, so that it
//! looks the same in a README, a browser and a converter. Sizes are in pixels; the width of text is estimated from its number of
//! characters.

use std::fmt::{Display, Write};

use crate::Explanation;
use crate::shape::explain::Cell;

const MONOSPACE: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const SANS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

const MARGIN: usize = 24;
const CELL_HEIGHT: usize = 40;
const ROW: usize = 52;
const GAP: usize = 8;
/// Advance width of a monospaced character at the size used, rounded up.
const CHARACTER: usize = 10;

/// Cell colours: white text on them, and the cells on white or near black, have a contrast of at least 3:1.
const KEPT: &str = "#2f6feb";
const STRETCHED: &str = "#c2570c";
const NEW: &str = "#9265ea";
const FAILING: &str = "#d1242f";
const RESULT: &str = "#636c76";
/// Colour of text beside the cells, between light and dark.
const TEXT: &str = "#768390";

impl Explanation {
    /// The picture as a self-contained SVG document, legible on light and dark backgrounds: a row of cells per operand, coloured by
    /// how each dimension is broadcast, and the result below.
    pub fn to_svg(&self) -> String {
        Picture::new(self).draw()
    }
}

/// A cell as drawn.
struct Drawn {
    label: String,
    colour: &'static str,
    /// Whether the cell is an outline: a missing dimension.
    hollow: bool,
}

struct Picture<'a> {
    explanation: &'a Explanation,
    rows: Vec<(&'a str, Vec<Drawn>)>,
    names: usize,
    cell: usize,
}

impl<'a> Picture<'a> {
    fn new(explanation: &'a Explanation) -> Self {
        let mut rows: Vec<(&str, Vec<Drawn>)> = Vec::new();
        for (operand, (name, _)) in explanation.operands().enumerate() {
            let cells = explanation.cells(operand).into_iter().zip(explanation.sizes());
            rows.push((name, cells.map(|(cell, &result)| of_operand(cell, result)).collect()));
        }
        let mut result: Vec<Drawn> = explanation.sizes().iter().map(|&size| of_result(size)).collect();
        if result.is_empty() {
            // Rank 0: one visible cell for the single number.
            for (_, cells) in &mut rows {
                cells.push(Drawn { label: "[]".into(), colour: KEPT, hollow: false });
            }
            result.push(Drawn { label: "[]".into(), colour: RESULT, hollow: false });
        }
        rows.push(("result", result));
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let names = longest(&mut rows.iter().map(|(name, _)| *name)) * CHARACTER;
        let labels = longest(&mut rows.iter().flat_map(|(_, cells)| cells).map(|cell| cell.label.as_str()));
        Picture { explanation, rows, names, cell: (labels * CHARACTER + 24).max(56) }
    }

    fn draw(&self) -> String {
        let columns = self.rows.last().map_or(0, |(_, cells)| cells.len());
        let left = MARGIN + self.names + 16;
        let top = MARGIN + 24;
        let operands = self.rows.len() - 1;
        let result = top + operands * ROW + if operands > 0 { 14 } else { 0 };
        let legend = self.legend();
        let legend_width: usize = legend.iter().map(|(_, text)| legend_advance(text)).sum();
        let failure = self.explanation.failure();
        let below = result + CELL_HEIGHT + 28;
        let legend_top = if failure.is_some() { below + 28 } else { below };
        let caption = failure.as_ref().map_or(0, |text| (text.len() + 22) * 8);
        let cells_width = columns * (self.cell + GAP) - GAP;
        let width = left + cells_width.max(caption).max(legend_width) + MARGIN;
        let height = if legend.is_empty() { legend_top } else { legend_top + 18 + MARGIN };

        let mut svg = Canvas(String::new());
        svg.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">"
        ));
        svg.line(format_args!("  <title>{}</title>", escaped(&self.title())));
        svg.line(format_args!("  <desc>{}</desc>", escaped(&self.explanation.to_string())));

        svg.line(format_args!("  <g fill=\"{TEXT}\" font-family=\"{SANS}\" font-size=\"12\" text-anchor=\"middle\">"));
        for axis in 0..self.explanation.rank() {
            let middle = left + axis * (self.cell + GAP) + self.cell / 2;
            svg.line(format_args!("    <text x=\"{middle}\" y=\"{}\">dim {axis}</text>", top - 12));
        }
        svg.line("  </g>");

        for (row, (name, cells)) in self.rows.iter().enumerate() {
            let y = if row < operands { top + row * ROW } else { result };
            svg.line(format_args!(
                "  <text x=\"{}\" y=\"{}\" fill=\"{TEXT}\" font-family=\"{MONOSPACE}\" font-size=\"16\" \
                 text-anchor=\"end\">{}</text>",
                left - 16,
                y + CELL_HEIGHT / 2 + 6,
                escaped(name)
            ));
            svg.line(format_args!(
                "  <g font-family=\"{MONOSPACE}\" font-size=\"16\" font-weight=\"600\" text-anchor=\"middle\">"
            ));
            for (column, cell) in cells.iter().enumerate() {
                self.cell(&mut svg, left + column * (self.cell + GAP), y, cell);
            }
            svg.line("  </g>");
        }
        if operands > 0 {
            let y = result - 13;
            let right = left + cells_width;
            svg.line(format_args!(
                "  <path d=\"M{left} {y}H{right}\" stroke=\"{TEXT}\" stroke-opacity=\"0.6\" stroke-width=\"1.5\"/>"
            ));
        }
        if let Some(failure) = failure {
            svg.line(format_args!(
                "  <text x=\"{left}\" y=\"{below}\" fill=\"{FAILING}\" font-family=\"{SANS}\" font-size=\"14\" \
                 font-weight=\"600\">does not broadcast: {failure}</text>"
            ));
        }
        self.draw_legend(&mut svg, &legend, left, legend_top);
        svg.line("</svg>");
        svg.0
    }

    fn cell(&self, svg: &mut Canvas, x: usize, y: usize, cell: &Drawn) {
        let &Drawn { ref label, colour, hollow } = cell;
        let paint = if hollow { outline(colour) } else { format!("fill=\"{colour}\"") };
        let ink = if hollow { colour } else { "#ffffff" };
        svg.line(format_args!(
            "    <rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{CELL_HEIGHT}\" rx=\"8\" {paint}/>",
            self.cell
        ));
        svg.line(format_args!(
            "    <text x=\"{}\" y=\"{}\" fill=\"{ink}\">{label}</text>",
            x + self.cell / 2,
            y + CELL_HEIGHT / 2 + 6
        ));
    }

    /// A sample of each kind of cell that occurs, and its meaning.
    fn legend(&self) -> Vec<(Drawn, &'static str)> {
        let operands = self.explanation.operands().len();
        let cells: Vec<Cell> = (0..operands).flat_map(|operand| self.explanation.cells(operand)).collect();
        let entry = |colour, hollow, text| (Drawn { label: String::new(), colour, hollow }, text);
        let mut legend = Vec::new();
        if cells.iter().any(|cell| matches!(cell, Cell::Kept(_))) {
            legend.push(entry(KEPT, false, "kept"));
        }
        if cells.contains(&Cell::Stretched) {
            legend.push(entry(STRETCHED, false, "stretched from 1"));
        }
        if cells.contains(&Cell::New) {
            legend.push(entry(NEW, true, "new dimension"));
        }
        if cells.iter().any(|cell| matches!(cell, Cell::Failing(_))) {
            legend.push(entry(FAILING, false, "sizes that disagree"));
        }
        legend
    }

    fn draw_legend(&self, svg: &mut Canvas, legend: &[(Drawn, &str)], left: usize, top: usize) {
        svg.line(format_args!("  <g fill=\"{TEXT}\" font-family=\"{SANS}\" font-size=\"12\">"));
        let mut x = left;
        for (sample, text) in legend {
            let &Drawn { colour, hollow, .. } = sample;
            let paint = if hollow { outline(colour) } else { format!("fill=\"{colour}\"") };
            svg.line(format_args!("    <rect x=\"{x}\" y=\"{top}\" width=\"14\" height=\"14\" rx=\"4\" {paint}/>"));
            svg.line(format_args!("    <text x=\"{}\" y=\"{}\">{text}</text>", x + 20, top + 11));
            x += legend_advance(text);
        }
        svg.line("  </g>");
    }

    fn title(&self) -> String {
        let names: Vec<String> = self.explanation.operands().map(|(name, shape)| format!("{name} {shape}")).collect();
        match self.explanation.joined() {
            Ok(joined) => format!("{} give {joined}", names.join(", ")),
            Err(_) => format!("{} do not broadcast", names.join(", ")),
        }
    }
}

fn of_operand(cell: Cell, result: Option<usize>) -> Drawn {
    let (label, colour, hollow) = match (cell, result) {
        (Cell::Kept(size), _) => (size.to_string(), KEPT, false),
        (Cell::Stretched, Some(result)) => (format!("1 → {result}"), STRETCHED, false),
        (Cell::Stretched, None) => ("1".to_owned(), STRETCHED, false),
        (Cell::New, Some(result)) => (format!("→ {result}"), NEW, true),
        (Cell::New, None) => (String::new(), NEW, true),
        (Cell::Failing(size), _) => (size.to_string(), FAILING, false),
    };
    Drawn { label, colour, hollow }
}

fn of_result(size: Option<usize>) -> Drawn {
    match size {
        Some(size) => Drawn { label: size.to_string(), colour: RESULT, hollow: false },
        None => Drawn { label: "✕".to_owned(), colour: FAILING, hollow: true },
    }
}

fn outline(colour: &str) -> String {
    format!("fill=\"{colour}\" fill-opacity=\"0.08\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"")
}

/// Distance between entries of the legend: sample, text, gap. A character of the small proportional face is six and a half pixels
/// wide on average.
fn legend_advance(text: &str) -> usize {
    20 + text.len() * 13 / 2 + 20
}

/// The text with XML's special characters escaped.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Canvas(String);

impl Canvas {
    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use crate::{Shape, explain_named};

    #[test]
    fn a_picture_has_a_cell_per_dimension_and_a_legend_of_what_occurs() {
        let svg =
            explain_named(&[("maps", &Shape::from([4, 32, 14, 14])), ("bias", &Shape::from([32, 1, 1]))]).to_svg();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("height=\"40\"").count(), 12);
        assert_eq!(svg.matches(">1 → 14</text>").count(), 2);
        assert_eq!(svg.matches(">→ 4</text>").count(), 1);
        assert!(svg.contains(">stretched from 1</text>") && svg.contains(">new dimension</text>"));
        assert!(!svg.contains("disagree"));
    }

    #[test]
    fn a_failure_is_said_in_the_picture() {
        let svg = crate::explain(&[&Shape::from([5, 2, 4, 1]), &Shape::from([3, 1, 1])]).to_svg();
        assert!(svg.contains(">does not broadcast: 2 against 3 at dimension 1</text>"));
        assert_eq!(svg.matches(">✕</text>").count(), 1);
    }

    #[test]
    fn names_are_escaped() {
        let svg = explain_named(&[("<b> & co", &Shape::from([2]))]).to_svg();
        assert!(svg.contains(">&lt;b&gt; &amp; co</text>"));
        assert!(!svg.contains("<b>"));
    }

    #[test]
    fn shapes_without_dimensions_and_no_shapes_are_drawn_too() {
        assert_eq!(crate::explain(&[&Shape::scalar(), &Shape::scalar()]).to_svg().matches(">[]</text>").count(), 3);
        assert_eq!(crate::explain(&[]).to_svg().matches(">[]</text>").count(), 1);
    }
}
