//! Draws a recorded program as SVG, without Graphviz.
//!
//! Each node is one row below the lowest of its operands. A line that passes through rows has a place of its own in each of them, so that
//! it crosses no node. The nodes and lines of a row are ordered by the mean positions of their operands (K. Sugiyama, S. Tagawa and M.
//! Toda, "Methods for visual understanding of hierarchical system structures", 1981), in one pass from top to bottom.

use std::collections::HashMap;
use std::fmt::Write as _;

use wengert_tensor::plan::NodeIndex;

use super::graph::{Graph, Kind, Row};

/// The height of a box, in pixels.
const BOX_HEIGHT: usize = 40;
/// The distance between the upper edges of neighbouring rows, in pixels.
const ROW_DISTANCE: usize = 78;
/// The width of the margins and the smallest distance between items of a row, in pixels.
const ITEM_GAP: usize = 18;
/// The width of a letter of a monospaced font of 12 pixels, in pixels.
const LETTER_WIDTH: f64 = 7.3;

/// An item of a row of the picture: a node, or a place at which lines pass through the row.
#[derive(Clone, Copy)]
enum Item<'g> {
    Node(&'g Row),
    /// The place at which the lines from the node with this index pass through the row.
    PassingLine(NodeIndex),
}

/// An item of a row with its position: its horizontal middle, its width and its upper edge, in pixels.
struct PlacedItem<'g> {
    item: Item<'g>,
    middle: f64,
    width: f64,
    top: usize,
    /// The horizontal middles of the items in the row above to which this item is connected. For a passing line, this is the middle of one
    /// item: the node at which the line starts, or its place in the row above.
    line_starts: Vec<f64>,
}

impl Graph {
    /// Returns the graph as an SVG image. Variables are blue boxes, constants grey boxes, and operations white rounded boxes. Each node
    /// shows its index, name, shape and line of code. Lines lead from operands down to results.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let y = (x.exp() * x).sum(..);
    /// let svg = y.graph().to_svg();
    /// assert!(svg.starts_with("<svg") && svg.contains("exp"));
    /// ```
    pub fn to_svg(&self) -> String {
        let places = place(&self.rows);
        let width = places.iter().map(|place| place.middle + place.width / 2.0).fold(0.0, f64::max) + ITEM_GAP as f64;
        let height = places.iter().map(|place| place.top + BOX_HEIGHT).max().unwrap_or(0) + ITEM_GAP;
        let mut svg = format!(
            "<svg width=\"{width:.0}\" height=\"{height}\" viewBox=\"0 0 {width:.0} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"monospace\" font-size=\"12\" fill=\"#3c3c3c\" text-anchor=\"middle\">\n<rect width=\"100%\" \
             height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for PlacedItem { item, middle, top, line_starts, .. } in &places {
            let (start, bend) =
                (top.saturating_sub(ROW_DISTANCE - BOX_HEIGHT), top.saturating_sub((ROW_DISTANCE - BOX_HEIGHT) / 2));
            let down = if let Item::PassingLine(_) = item { format!(" V{}", top + BOX_HEIGHT) } else { String::new() };
            for x in line_starts {
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x:.1} {start} C{x:.1} {bend} {middle:.1} {bend} {middle:.1} {top}{down}\" fill=\"none\" \
                     stroke=\"#a0a0a0\"/>"
                );
            }
        }
        for PlacedItem { item, middle, width, top, .. } in &places {
            let Item::Node(row) = item else { continue };
            let [first, second] = labels(row);
            let (fill, round) = match row.kind {
                Kind::Variable => ("#cfe2ff", 2),
                Kind::Constant => ("#f2f2f2", 2),
                Kind::Operation => ("#ffffff", BOX_HEIGHT / 2),
            };
            let _ = writeln!(
                svg,
                "<g><title>{}:{}</title><rect x=\"{:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{round}\" \
                 fill=\"{fill}\" stroke=\"#7a7a7a\"/><text x=\"{middle:.1}\" y=\"{}\">{}</text><text x=\"{middle:.1}\" y=\"{}\" \
                 fill=\"#7a7a7a\">{}</text></g>",
                escape(row.file),
                row.line,
                middle - width / 2.0,
                top + 16,
                escape(&first),
                top + 32,
                escape(&second),
            );
        }
        svg + "</svg>\n"
    }
}

/// Returns the nodes of the picture and the places at which lines pass through rows, with their positions.
fn place(rows: &[Row]) -> Vec<PlacedItem<'_>> {
    // The horizontal middle of each node in its row, and of each line in the rows that it passes through. A key is the index of the node
    // (or of the node that the line comes from) and the row.
    let mut middles: HashMap<(NodeIndex, usize), f64> = HashMap::new();
    let mut places = Vec::new();
    for (depth, level) in levels(rows).into_iter().enumerate() {
        let operands = |item: Item<'_>| -> Vec<f64> {
            let above = |index: NodeIndex| depth.checked_sub(1).and_then(|row| middles.get(&(index, row)).copied());
            match item {
                Item::Node(row) => row.inputs.iter().filter_map(|&input| above(input)).collect(),
                Item::PassingLine(index) => above(index).into_iter().collect(),
            }
        };
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len().max(1) as f64;
        let mut wanted: Vec<(Vec<f64>, Item<'_>)> = level.into_iter().map(|item| (operands(item), item)).collect();
        wanted.sort_by(|a, b| mean(&a.0).total_cmp(&mean(&b.0)).then(index(a.1).cmp(&index(b.1))));
        let mut right = 0.0;
        for (line_starts, item) in wanted {
            let width = match item {
                Item::Node(row) => {
                    let letters = labels(row).iter().map(|label| label.chars().count()).max().unwrap_or(0);
                    LETTER_WIDTH * letters as f64 + 20.0
                }
                Item::PassingLine(_) => 0.0,
            };
            let middle = mean(&line_starts).max(right + ITEM_GAP as f64 + width / 2.0);
            right = middle + width / 2.0;
            middles.insert((index(item), depth), middle);
            places.push(PlacedItem { item, middle, width, top: ITEM_GAP + depth * ROW_DISTANCE, line_starts });
        }
    }
    places
}

/// Returns the nodes and passing lines of each row of the picture, from top to bottom.
fn levels(rows: &[Row]) -> Vec<Vec<Item<'_>>> {
    let (mut depths, mut levels): (HashMap<NodeIndex, usize>, Vec<Vec<Item<'_>>>) = (HashMap::new(), Vec::new());
    // For each node, the lowest row with a node that reads it.
    let mut ends: HashMap<NodeIndex, usize> = HashMap::new();
    for row in rows {
        let depth = row.inputs.iter().filter_map(|input| depths.get(input)).max().map_or(0, |depth| depth + 1);
        depths.insert(row.index, depth);
        levels.resize_with(levels.len().max(depth + 1), Vec::new);
        levels[depth].push(Item::Node(row));
        for &input in &row.inputs {
            let end = ends.entry(input).or_default();
            *end = depth.max(*end);
        }
    }
    for row in rows {
        let end = ends.get(&row.index).copied().unwrap_or(0);
        for level in levels.iter_mut().take(end).skip(depths[&row.index] + 1) {
            level.push(Item::PassingLine(row.index));
        }
    }
    levels
}

/// Returns the index of a node, or of the node that a passing line comes from.
fn index(item: Item<'_>) -> NodeIndex {
    match item {
        Item::Node(row) => row.index,
        Item::PassingLine(index) => index,
    }
}

/// Returns the two lines of text of a node, such as `%2 exp [2, 3]` and `model.rs:12`.
fn labels(row: &Row) -> [String; 2] {
    let Row { index, name, shape, file, line, .. } = row;
    let short = file.rsplit(['/', '\\']).next().unwrap_or_default();
    [format!("%{index} {name} {shape}"), format!("{short}:{line}")]
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::Tape;

    #[test]
    fn every_node_has_a_box_and_no_two_meet() {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&Tensor::ones([4, 3])), tape.var(&Tensor::ones([3, 2])));
        let y = (x.matmul(&w).exp() * 2.0 + x.sum(..)).mean(..);
        let graph = y.graph();
        let svg = graph.to_svg();
        let lines: usize = place(&graph.rows).iter().map(|place| place.line_starts.len()).sum();
        assert_eq!((svg.matches("<g>").count(), svg.matches("<path").count()), (graph.rows.len(), lines));
        let places = place(&graph.rows);
        for (position, a) in places.iter().enumerate() {
            for b in &places[position + 1..] {
                assert!(a.top != b.top || (a.middle - b.middle).abs() >= (a.width + b.width) / 2.0);
            }
        }
        assert!(Tape::<f64>::new().graph().to_svg().ends_with("</svg>\n"));
    }

    /// Reads the boxes and lines from the text of a picture. Checks that no line crosses a box or leaves the picture to the left or right.
    #[test]
    fn no_line_crosses_a_node_or_leaves_the_picture() {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&Tensor::ones([3])), tape.var(&Tensor::ones([3])));
        // The last product reads `x`, whose line passes through the rows between them. `w` is read in two rows.
        let y = (x.exp() * w).sin().cos() * x + w;
        let svg = y.graph().to_svg();
        let numbers = |text: &str| -> Vec<f64> {
            text.split([' ', '"', 'M', 'C', 'V']).filter_map(|number| number.parse().ok()).collect()
        };
        let width = numbers(svg.split("viewBox=").nth(1).unwrap())[2];
        let boxes: Vec<[f64; 4]> = svg
            .split("</title><rect ")
            .skip(1)
            .map(|text| {
                let [x, y, width, height, ..] = numbers(text)[..] else { panic!("{text}") };
                [x, y, x + width, y + height]
            })
            .collect();
        assert_eq!(boxes.len(), y.graph().rows.len());
        let mut vertical = 0;
        for path in svg.split("<path d=").skip(1) {
            let numbers = numbers(path.split(" fill").next().unwrap());
            let [x0, y0, x1, y1, x2, y2, x3, y3] = numbers[..8] else { panic!("{path}") };
            let mut points = Vec::new();
            for t in (0..=100).map(|k| f64::from(k) / 100.0) {
                let s = 1.0 - t;
                let at = |p0, p1, p2, p3| s * s * s * p0 + 3.0 * s * s * t * p1 + 3.0 * s * t * t * p2 + t * t * t * p3;
                points.push((at(x0, x1, x2, x3), at(y0, y1, y2, y3)));
            }
            if let Some(end) = numbers.get(8) {
                points.extend((0..=10).map(|k| (x3, y3 + (end - y3) * f64::from(k) / 10.0)));
                vertical += 1;
            }
            for (x, y) in points {
                assert!((0.0..=width).contains(&x), "{x} of {width}: {path}");
                let inside = |[left, top, right, bottom]: &[f64; 4]| *left < x && x < *right && *top < y && y < *bottom;
                assert!(!boxes.iter().any(inside), "({x}, {y}): {path}");
            }
        }
        assert!(vertical >= 4, "{vertical} lines pass a row, so the test shows little");
    }
}
