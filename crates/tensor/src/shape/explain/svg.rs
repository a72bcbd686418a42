//! An explanation as an SVG picture. It only has presentation attributes (no style sheets, scripts or external references). So a README, a
//! browser and a converter show it alike, apart from fonts. Sizes are in pixels. The width of text is estimated from the number of its
//! characters.

use std::fmt::{Display, Write};

use crate::Explanation;
use crate::shape::explain::Cell;

const MONOSPACE: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const SANS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

const MARGIN: usize = 24;
const CELL_HEIGHT: usize = 40;
/// The distance between the tops of neighbouring rows of operands' cells, in pixels.
const ROW_HEIGHT: usize = 52;
/// The gap between cells, in pixels.
const CELL_GAP: usize = 8;
/// The width of a monospaced character, in pixels, rounded up.
const CHARACTER_WIDTH: usize = 10;

/// The fill colours of cells. White text on a cell, and a cell on a white or nearly black page, have a contrast of at least 3:1.
const KEPT_COLOUR: &str = "#2f6feb";
const STRETCHED_COLOUR: &str = "#c2570c";
const NEW_COLOUR: &str = "#9265ea";
const FAILING_COLOUR: &str = "#d1242f";
const RESULT_COLOUR: &str = "#636c76";
/// The colour of text beside the cells. This text is legible on light and dark backgrounds.
const TEXT_COLOUR: &str = "#768390";

impl Explanation {
    /// Returns the picture as a self-contained SVG document, legible on light and dark backgrounds. The picture has a row of cells for each
    /// operand, and below them a row for the result. Each kind of cell has its own colour.
    pub fn to_svg(&self) -> String {
        Picture::new(self).draw()
    }
}

struct PictureCell {
    label: String,
    colour: &'static str,
    /// True for a cell that is drawn as an outline: a missing dimension, or a result whose operands disagree.
    is_hollow: bool,
}

impl PictureCell {
    fn filled(label: impl Display, colour: &'static str) -> Self {
        PictureCell { label: label.to_string(), colour, is_hollow: false }
    }

    fn hollow(label: impl Display, colour: &'static str) -> Self {
        PictureCell { label: label.to_string(), colour, is_hollow: true }
    }

    /// Returns the SVG attributes that paint the rectangle of this cell.
    fn paint(&self) -> String {
        let colour = self.colour;
        match self.is_hollow {
            true => format!(
                "fill=\"{colour}\" fill-opacity=\"0.08\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\""
            ),
            false => format!("fill=\"{colour}\""),
        }
    }
}

struct Picture<'a> {
    explanation: &'a Explanation,
    /// The names and cells of the operands, and at the end the name and the cells of the result.
    rows: Vec<(&'a str, Vec<PictureCell>)>,
    /// The position of the left edge of the cells, in pixels.
    cells_left: usize,
    cell_width: usize,
}

impl<'a> Picture<'a> {
    fn new(explanation: &'a Explanation) -> Self {
        let mut rows: Vec<(&str, Vec<PictureCell>)> = Vec::new();
        for (operand, (name, _)) in explanation.operands().enumerate() {
            let cells = explanation.cells(operand).into_iter().zip(explanation.sizes());
            rows.push((name, cells.map(|(cell, &result)| operand_cell(cell, result)).collect()));
        }
        let mut result: Vec<PictureCell> = explanation.sizes().iter().map(|&size| result_cell(size)).collect();
        if result.is_empty() {
            // A result without dimensions has no cell of its own. It is drawn as one cell with the text `[]`.
            rows.iter_mut().for_each(|(_, cells)| cells.push(PictureCell::filled("[]", KEPT_COLOUR)));
            result.push(PictureCell::filled("[]", RESULT_COLOUR));
        }
        rows.push(("result", result));
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let names = longest(&mut rows.iter().map(|(name, _)| *name)) * CHARACTER_WIDTH;
        let labels = longest(&mut rows.iter().flat_map(|(_, cells)| cells).map(|cell| cell.label.as_str()));
        Picture {
            explanation,
            rows,
            cells_left: MARGIN + names + 16,
            cell_width: (labels * CHARACTER_WIDTH + 24).max(56),
        }
    }

    fn draw(&self) -> String {
        let columns = self.rows.last().map_or(0, |(_, cells)| cells.len());
        let (left, top, operands) = (self.cells_left, MARGIN + 24, self.rows.len() - 1);
        let result = top + operands * ROW_HEIGHT + if operands > 0 { 14 } else { 0 };
        let legend = self.legend();
        let legend_width: usize = legend.iter().map(|entry| legend_advance(&entry.label)).sum();
        let failure = self.explanation.failure();
        let below = result + CELL_HEIGHT + 28;
        let legend_top = if failure.is_some() { below + 28 } else { below };
        let caption = failure.as_ref().map_or(0, |text| (text.len() + 22) * 8);
        let cells_width = columns * (self.cell_width + CELL_GAP) - CELL_GAP;
        let width = left + cells_width.max(caption).max(legend_width) + MARGIN;
        let height = if legend.is_empty() { legend_top } else { legend_top + 18 + MARGIN };

        let mut svg = Canvas(String::new());
        svg.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">"
        ));
        svg.line(format_args!("  <title>{}</title>", escape(&self.title())));
        svg.line(format_args!("  <desc>{}</desc>", escape(&self.explanation.to_string())));
        self.draw_dimensions(&mut svg, top - 12);
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            self.draw_row(&mut svg, if row < operands { top + row * ROW_HEIGHT } else { result }, name, cells);
        }
        if operands > 0 {
            let (y, right) = (result - 13, left + cells_width);
            svg.line(format_args!(
                "  <path d=\"M{left} {y}H{right}\" stroke=\"{TEXT_COLOUR}\" stroke-opacity=\"0.6\" stroke-width=\"1.5\"/>"
            ));
        }
        if let Some(failure) = failure {
            svg.line(format_args!(
                "  <text x=\"{left}\" y=\"{below}\" fill=\"{FAILING_COLOUR}\" font-family=\"{SANS}\" font-size=\"14\" \
                 font-weight=\"600\">does not broadcast: {failure}</text>"
            ));
        }
        self.draw_legend(&mut svg, &legend, legend_top);
        svg.line("</svg>");
        svg.0
    }

    /// Draws the index of each dimension above its column of cells.
    fn draw_dimensions(&self, svg: &mut Canvas, y: usize) {
        svg.line(format_args!(
            "  <g fill=\"{TEXT_COLOUR}\" font-family=\"{SANS}\" font-size=\"12\" text-anchor=\"middle\">"
        ));
        for axis in 0..self.explanation.rank() {
            let middle = self.cells_left + axis * (self.cell_width + CELL_GAP) + self.cell_width / 2;
            svg.line(format_args!("    <text x=\"{middle}\" y=\"{y}\">dim {axis}</text>"));
        }
        svg.line("  </g>");
    }

    fn draw_row(&self, svg: &mut Canvas, y: usize, name: &str, cells: &[PictureCell]) {
        let (right, baseline, width) = (self.cells_left - 16, y + CELL_HEIGHT / 2 + 6, self.cell_width);
        svg.line(format_args!(
            "  <text x=\"{right}\" y=\"{baseline}\" fill=\"{TEXT_COLOUR}\" font-family=\"{MONOSPACE}\" font-size=\"16\" \
             text-anchor=\"end\">{}</text>",
            escape(name)
        ));
        svg.line(format_args!(
            "  <g font-family=\"{MONOSPACE}\" font-size=\"16\" font-weight=\"600\" text-anchor=\"middle\">"
        ));
        for (column, cell) in cells.iter().enumerate() {
            let x = self.cells_left + column * (self.cell_width + CELL_GAP);
            let (middle, paint, label) = (x + width / 2, cell.paint(), &cell.label);
            let ink = if cell.is_hollow { cell.colour } else { "#ffffff" };
            svg.line(format_args!(
                "    <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{CELL_HEIGHT}\" rx=\"8\" {paint}/>"
            ));
            svg.line(format_args!("    <text x=\"{middle}\" y=\"{baseline}\" fill=\"{ink}\">{label}</text>"));
        }
        svg.line("  </g>");
    }

    /// Returns the legend: a cell of each kind that the operands have in the picture. The label of the cell is the meaning of its colour.
    fn legend(&self) -> Vec<PictureCell> {
        let operands = self.explanation.operands().len();
        let cells: Vec<Cell> = (0..operands).flat_map(|operand| self.explanation.cells(operand)).collect();
        let occurs = |kind: fn(&Cell) -> bool| cells.iter().any(kind);
        let entries = [
            (occurs(|cell| matches!(cell, Cell::Kept(_))), PictureCell::filled("kept", KEPT_COLOUR)),
            (occurs(|cell| *cell == Cell::Stretched), PictureCell::filled("stretched from 1", STRETCHED_COLOUR)),
            (occurs(|cell| *cell == Cell::New), PictureCell::hollow("new dimension", NEW_COLOUR)),
            (
                occurs(|cell| matches!(cell, Cell::Failing(_))),
                PictureCell::filled("sizes that disagree", FAILING_COLOUR),
            ),
        ];
        entries.into_iter().filter_map(|(occurs, entry)| occurs.then_some(entry)).collect()
    }

    fn draw_legend(&self, svg: &mut Canvas, legend: &[PictureCell], top: usize) {
        svg.line(format_args!("  <g fill=\"{TEXT_COLOUR}\" font-family=\"{SANS}\" font-size=\"12\">"));
        let mut x = self.cells_left;
        for sample in legend {
            let (paint, text) = (sample.paint(), &sample.label);
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

fn operand_cell(cell: Cell, result: Option<usize>) -> PictureCell {
    match (cell, result) {
        (Cell::Kept(size), _) => PictureCell::filled(size, KEPT_COLOUR),
        (Cell::Stretched, Some(result)) => PictureCell::filled(format_args!("1 → {result}"), STRETCHED_COLOUR),
        (Cell::Stretched, None) => PictureCell::filled(1, STRETCHED_COLOUR),
        (Cell::New, Some(result)) => PictureCell::hollow(format_args!("→ {result}"), NEW_COLOUR),
        (Cell::New, None) => PictureCell::hollow("", NEW_COLOUR),
        (Cell::Failing(size), _) => PictureCell::filled(size, FAILING_COLOUR),
    }
}

fn result_cell(size: Option<usize>) -> PictureCell {
    size.map_or_else(|| PictureCell::hollow("✕", FAILING_COLOUR), |size| PictureCell::filled(size, RESULT_COLOUR))
}

/// Returns the distance in pixels from one entry of the legend to the next: the widths of the sample, the text and a gap. A character of
/// the small proportional font is six and a half pixels wide on average.
fn legend_advance(text: &str) -> usize {
    20 + text.len() * 13 / 2 + 20
}

/// Returns the text with XML's special characters escaped.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The text of the SVG document.
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
    fn a_picture_has_a_cell_per_dimension_and_a_legend() {
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
    fn a_picture_names_the_failure() {
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
    fn rank_zero_and_no_shapes_are_drawn() {
        assert_eq!(crate::explain(&[&Shape::scalar(), &Shape::scalar()]).to_svg().matches(">[]</text>").count(), 3);
        assert_eq!(crate::explain(&[]).to_svg().matches(">[]</text>").count(), 1);
    }
}
