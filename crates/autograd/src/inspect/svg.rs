//! Draws a recorded program as SVG, without Graphviz.
//!
//! Each node is one row below the lowest of its operands. The nodes of a row are ordered by the mean positions of their operands (K.
//! Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system structures", 1981), in one pass from top to
//! bottom.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::graph::{Graph, Kind, Row};

const HEIGHT: usize = 40;
const ROW: usize = 78;
const GAP: usize = 18;
/// The width of a typical node, in pixels. A line that bends around nodes moves aside by a multiple of it.
const AROUND: f64 = 130.0;
/// The width of a letter of a monospaced font of 12 pixels, in pixels.
const LETTER: f64 = 7.3;

/// A node with its position.
struct Placed<'g> {
    row: &'g Row,
    middle: f64,
    width: f64,
    top: usize,
}

/// A line from the bottom of an operand to the top of a result: a cubic Bézier curve.
struct Edge {
    from: (f64, usize),
    to: (f64, usize),
    /// The distance of the inner control points to the right of the ends. A line over several rows bends around the nodes in between.
    around: f64,
}

impl Edge {
    /// Returns the line between two nodes.
    fn new(from: &Placed<'_>, to: &Placed<'_>) -> Self {
        let (start, end) = (from.top + HEIGHT, to.top);
        let bends = end > start + ROW && (from.middle - to.middle).abs() < AROUND;
        Edge { from: (from.middle, start), to: (to.middle, end), around: if bends { 1.3 * AROUND } else { 0.0 } }
    }

    /// Returns an upper bound of the line's x coordinates. If the inner control points move by `around`, the point at parameter t moves by
    /// 3 t (1 - t) `around`. This is at most 0.75 `around`.
    fn right(&self) -> f64 {
        self.from.0.max(self.to.0) + 0.75 * self.around
    }
}

impl Graph {
    /// Returns the graph as an SVG image. Variables are filled boxes, constants boxes, and operations rounded boxes. Each node shows its
    /// index, shape and line of code. Lines lead from operands down to results.
    ///
    /// ```
    /// # use wengert_autograd as wengert;
    /// use wengert::prelude::*;
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let y = (x.exp() * x).sum(..);
    /// let svg = y.graph().to_svg();
    /// assert!(svg.starts_with("<svg") && svg.contains("exp"));
    /// ```
    pub fn to_svg(&self) -> String {
        let places = place(&self.rows);
        let by_index: HashMap<_, &Placed<'_>> = places.iter().map(|node| (node.row.index, node)).collect();
        let mut edges = Vec::new();
        for node in &places {
            edges.extend(
                node.row.inputs.iter().filter_map(|input| by_index.get(input)).map(|from| Edge::new(from, node)),
            );
        }
        let nodes = places.iter().map(|node| node.middle + node.width / 2.0);
        let width = nodes.chain(edges.iter().map(Edge::right)).fold(0.0, f64::max) + GAP as f64;
        let height = places.iter().map(|node| node.top + HEIGHT).max().unwrap_or(0) + GAP;
        let mut svg = format!(
            "<svg width=\"{width:.0}\" height=\"{height}\" viewBox=\"0 0 {width:.0} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"monospace\" font-size=\"12\" fill=\"#3c3c3c\" text-anchor=\"middle\">\n<rect width=\"100%\" \
             height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for Edge { from: (x, start), to: (to, end), around } in edges {
            let middle = (start + end) / 2;
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {start} C{:.1} {middle} {:.1} {middle} {to:.1} {end}\" fill=\"none\" stroke=\"#a0a0a0\"/>",
                x + around,
                to + around,
            );
        }
        for Placed { row, middle, width, top } in &places {
            let [first, second] = labels(row);
            let (fill, round) = match row.kind {
                Kind::Variable => ("#cfe2ff", 2),
                Kind::Constant => ("#f2f2f2", 2),
                Kind::Operation => ("#ffffff", HEIGHT / 2),
            };
            let _ = writeln!(
                svg,
                "<g><title>{}:{}</title><rect x=\"{:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"{round}\" \
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

fn place(rows: &[Row]) -> Vec<Placed<'_>> {
    let (mut depths, mut levels): (HashMap<_, usize>, Vec<Vec<&Row>>) = (HashMap::new(), Vec::new());
    for row in rows {
        let depth = row.inputs.iter().filter_map(|input| depths.get(input)).max().map_or(0, |depth| depth + 1);
        depths.insert(row.index, depth);
        levels.resize_with(levels.len().max(depth + 1), Vec::new);
        levels[depth].push(row);
    }
    let (mut middles, mut places): (HashMap<_, f64>, Vec<Placed<'_>>) = (HashMap::new(), Vec::new());
    for (depth, level) in levels.into_iter().enumerate() {
        let mean = |row: &Row| {
            let of_inputs: Vec<f64> = row.inputs.iter().filter_map(|input| middles.get(input).copied()).collect();
            if of_inputs.is_empty() { 0.0 } else { of_inputs.iter().sum::<f64>() / of_inputs.len() as f64 }
        };
        let mut wanted: Vec<(f64, &Row)> = level.into_iter().map(|row| (mean(row), row)).collect();
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.index.cmp(&b.1.index)));
        let mut right = 0.0;
        for (wanted, row) in wanted {
            let letters = labels(row).iter().map(|label| label.chars().count()).max().unwrap_or(0);
            let width = LETTER * letters as f64 + 20.0;
            let middle = wanted.max(right + GAP as f64 + width / 2.0);
            right = middle + width / 2.0;
            middles.insert(row.index, middle);
            places.push(Placed { row, middle, width, top: GAP + depth * ROW });
        }
    }
    places
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
        let lines: usize = graph.rows.iter().map(|row| row.inputs.len()).sum();
        assert_eq!((svg.matches("<g>").count(), svg.matches("<path").count()), (graph.rows.len(), lines));
        let places = place(&graph.rows);
        for (position, a) in places.iter().enumerate() {
            for b in &places[position + 1..] {
                assert!(a.top != b.top || (a.middle - b.middle).abs() >= (a.width + b.width) / 2.0);
            }
        }
        assert!(Tape::<f64>::new().graph().to_svg().ends_with("</svg>\n"));
    }

    /// This test computes points of each curve from the text of the picture.
    #[test]
    fn no_line_leaves_the_picture() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([3]));
        // The line from `x` to the last product passes several rows, so it bends around the nodes between, to their right.
        let y = x.exp().sin().cos() * x;
        let svg = y.graph().to_svg();
        let numbers = |text: &str| -> Vec<f64> {
            text.split([' ', '"', 'M', 'C']).filter_map(|number| number.parse().ok()).collect()
        };
        let width = numbers(svg.split("viewBox=").nth(1).unwrap())[2];
        let mut bends = 0;
        for path in svg.split("<path d=").skip(1) {
            let [x0, _, x1, _, x2, _, x3, _] = numbers(path.split(" fill").next().unwrap())[..] else {
                panic!("{path}")
            };
            for t in (0..=100).map(|k| f64::from(k) / 100.0) {
                let s = 1.0 - t;
                let at = s * s * s * x0 + 3.0 * s * s * t * x1 + 3.0 * s * t * t * x2 + t * t * t * x3;
                assert!((0.0..=width).contains(&at), "{at} of {width}: {path}");
            }
            bends += usize::from(x1 > x0);
        }
        assert!(bends > 0, "no line bends, so the test shows nothing");
    }
}
