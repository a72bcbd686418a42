//! Draws lines, points and regions in the plane as SVG.

use std::collections::HashMap;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Result;

/// The colours of a chart. The argument `colour` of the methods that draw is an index into this list.
const COLOURS: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 20),
    RGBColor(44, 140, 60),
    RGBColor(190, 40, 60),
    RGBColor(120, 90, 170),
    RGBColor(130, 90, 70),
    RGBColor(215, 110, 180),
    RGBColor(110, 110, 110),
    RGBColor(160, 160, 30),
    RGBColor(20, 160, 180),
];
const INK: RGBColor = RGBColor(60, 60, 60);
const PALE: RGBColor = RGBColor(232, 232, 232);
/// The width and height of a chart in pixels: alone, beside another, and in a longer row. A row of three is readable on a page that is
/// 850 pixels wide.
const SIZES: [(u32, u32); 3] = [(560, 420), (440, 340), (320, 300)];
/// The average width of a letter of a title, as a fraction of the font size.
const LETTER: f64 = 0.55;
/// The number of drawing units per pixel of the picture. plotters rounds each coordinate to a whole unit.
const UNITS: u32 = 10;
/// The length of a dash, and the length of the gap after it, in drawing units.
const DASH: (u32, u32) = (6 * UNITS, 4 * UNITS);

/// A chart: layers, such as lines and points, over two axes. The layers are drawn in the order in which they were added.
pub struct Chart {
    title: String,
    axes: [&'static str; 2],
    ranges: Option<[Range<f64>; 2]>,
    layers: Vec<Layer>,
}

struct Layer {
    name: String,
    points: Vec<(f64, f64)>,
    colour: RGBColor,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Line,
    /// A wide pale line, on which another line is visible.
    Band,
    Dashes,
    Points,
    Crosses,
    /// A thin gray line.
    Contour,
    /// A rectangle between two opposite corners.
    Rectangle,
}

impl Chart {
    /// Makes a chart with a title and the names of its axes.
    pub fn new(title: impl Into<String>, x: &'static str, y: &'static str) -> Self {
        Chart { title: title.into(), axes: [x, y], ranges: None, layers: Vec::new() }
    }

    /// Sets the ranges of the axes. The default shows all layers.
    #[must_use]
    pub fn ranges(mut self, x: Range<f64>, y: Range<f64>) -> Self {
        self.ranges = Some([x, y]);
        self
    }

    /// Adds a line through `points`. `colour` is the index of its colour.
    #[must_use]
    pub fn line(self, name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.layer(name, colour, Kind::Line, points)
    }

    /// Adds a wide pale line through `points`, for a second line on top of it.
    #[must_use]
    pub fn band(self, name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.layer(name, colour, Kind::Band, points)
    }

    /// Adds a dashed line through `points`.
    #[must_use]
    pub fn dashes(self, name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.layer(name, colour, Kind::Dashes, points)
    }

    /// Adds points without a line.
    #[must_use]
    pub fn points(self, name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.layer(name, colour, Kind::Points, points)
    }

    /// Adds crosses, which are visible among points.
    #[must_use]
    pub fn crosses(self, name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.layer(name, colour, Kind::Crosses, points)
    }

    /// Colours the plane in 120 x 120 cells. `colour` gets the middles of the cells, and returns the index of each
    /// cell's colour. The colours are paler than points and lines.
    ///
    /// # Panics
    ///
    /// If [`ranges`](Self::ranges) was not called.
    #[must_use]
    pub fn regions(mut self, colour: impl FnOnce(&[(f64, f64)]) -> Vec<usize>) -> Self {
        const CELLS: usize = 120;
        let [x, y] = self.ranges.clone().expect("regions need ranges");
        let at = |column: f64, row: f64| {
            let share = |range: &Range<f64>, k: f64| range.start + (range.end - range.start) * k / CELLS as f64;
            (share(&x, column), share(&y, row))
        };
        let middles: Vec<_> =
            (0..CELLS * CELLS).map(|cell| at((cell % CELLS) as f64 + 0.5, (cell / CELLS) as f64 + 0.5)).collect();
        for (row, colours) in colour(&middles).chunks(CELLS).enumerate() {
            let mut column = 0;
            for run in colours.chunk_by(|a, b| a == b) {
                let corners = [at(column as f64, row as f64), at((column + run.len()) as f64, row as f64 + 1.0)];
                self = self.layer("", run[0], Kind::Rectangle, corners);
                column += run.len();
            }
        }
        self
    }

    /// Adds thin gray lines along which `height` has the values `levels`. The plane is cut into 160 x 160 cells, and each
    /// line is straight within a cell.
    ///
    /// # Panics
    ///
    /// If [`ranges`](Self::ranges) was not called.
    #[must_use]
    pub fn contours(mut self, levels: &[f64], height: impl Fn(f64, f64) -> f64) -> Self {
        const CELLS: usize = 160;
        let [x, y] = self.ranges.clone().expect("contours need ranges");
        let at = |column: usize, row: usize| {
            let share =
                |range: &Range<f64>, k: usize| range.start + (range.end - range.start) * k as f64 / CELLS as f64;
            let (x, y) = (share(&x, column), share(&y, row));
            (x, y, height(x, y))
        };
        // The numbers of a cell's sides, in the order of its corners. Neighbours have the same number for their common side.
        let sides = |column: usize, row: usize| {
            let below = |column: usize, row: usize| 2 * (row * (CELLS + 1) + column);
            [below(column, row), below(column + 1, row) + 1, below(column, row + 1), below(column, row) + 1]
        };
        for level in levels {
            let mut pieces = Vec::new();
            for cell in 0..CELLS * CELLS {
                let (column, row) = (cell % CELLS, cell / CELLS);
                let corners = [at(column, row), at(column + 1, row), at(column + 1, row + 1), at(column, row + 1)];
                // The points of the cell's sides at which the height is the level.
                let crossings: Vec<Crossing> = (0..4)
                    .map(|side| (sides(column, row)[side], corners[side], corners[(side + 1) % 4]))
                    .filter(|(_, a, b)| (a.2 < *level) != (b.2 < *level))
                    .map(|(side, a, b)| {
                        let share = (level - a.2) / (b.2 - a.2);
                        Crossing { side, point: (a.0 + share * (b.0 - a.0), a.1 + share * (b.1 - a.1)) }
                    })
                    .collect();
                pieces.extend(crossings.chunks_exact(2).map(|ends| [ends[0], ends[1]]));
            }
            for line in joined(&pieces) {
                self = self.layer("", 7, Kind::Contour, line);
            }
        }
        self
    }

    fn layer(
        mut self,
        name: impl Into<String>,
        colour: usize,
        kind: Kind,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let (points, colour) = (points.into_iter().collect(), COLOURS[colour % COLOURS.len()]);
        self.layers.push(Layer { name: name.into(), points, colour, kind });
        self
    }

    /// Returns the chart as SVG.
    ///
    /// # Errors
    ///
    /// If the drawing library fails.
    pub fn to_svg(&self) -> Result<String> {
        row_svg(std::slice::from_ref(self))
    }

    /// Returns the ranges of the axes: the given ones, or ranges that contain all points with a margin.
    fn shown(&self) -> [Range<f64>; 2] {
        if let Some(ranges) = &self.ranges {
            return ranges.clone();
        }
        let range_of = |coordinate: fn(&(f64, f64)) -> f64| {
            let values =
                self.layers.iter().flat_map(|layer| &layer.points).map(coordinate).filter(|value| value.is_finite());
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (value.min(low), value.max(high)));
            let room = if high > low { 0.04 * (high - low) } else { 1.0 };
            if low <= high { low - room..high + room } else { 0.0..1.0 }
        };
        [range_of(|point| point.0), range_of(|point| point.1)]
    }

    /// Returns the corner in which the legend hides the fewest points.
    fn free_corner(&self, [x, y]: &[Range<f64>; 2]) -> SeriesLabelPosition {
        let share = |value: f64, range: &Range<f64>| (value - range.start) / (range.end - range.start);
        let shares = |layer: &Layer| {
            let along = layer.points.windows(2).flat_map(|ends| {
                [0.0, 0.25, 0.5, 0.75]
                    .map(|k| (ends[0].0 + k * (ends[1].0 - ends[0].0), ends[0].1 + k * (ends[1].1 - ends[0].1)))
            });
            let points: Vec<(f64, f64)> = match layer.kind {
                Kind::Line | Kind::Band | Kind::Dashes => along.collect(),
                Kind::Points | Kind::Crosses => layer.points.clone(),
                Kind::Contour | Kind::Rectangle => Vec::new(),
            };
            points.into_iter().map(|point| (share(point.0, x), share(point.1, y))).collect::<Vec<_>>()
        };
        let points: Vec<(f64, f64)> = self.layers.iter().flat_map(shares).collect();
        // The approximate width and height of the legend, as shares of the area: 0.015 per letter and 0.055 per line, and its margins.
        let names = self.layers.iter().filter(|layer| !layer.name.is_empty());
        let wide = names.clone().map(|layer| layer.name.len()).max().unwrap_or(0) as f64 * 0.015 + 0.1;
        let high = names.count() as f64 * 0.055 + 0.05;
        let corners = [
            (SeriesLabelPosition::UpperRight, 1.0 - wide..1.0, 1.0 - high..1.0),
            (SeriesLabelPosition::LowerRight, 1.0 - wide..1.0, 0.0..high),
            (SeriesLabelPosition::UpperLeft, 0.0..wide, 1.0 - high..1.0),
            (SeriesLabelPosition::LowerLeft, 0.0..wide, 0.0..high),
        ];
        let inside = |(_, x, y): &(_, Range<f64>, Range<f64>)| {
            points.iter().filter(|p| x.contains(&p.0) && y.contains(&p.1)).count()
        };
        corners.into_iter().min_by_key(inside).map_or(SeriesLabelPosition::UpperRight, |corner| corner.0)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let text = |size: u32| ("sans-serif", size * UNITS).into_font().color(&INK);
        let [x, y] = self.shown();
        let width = area.dim_in_pixel().0 / UNITS;
        let marks = if width < SIZES[1].0 { 5 } else { 7 };
        let letters = self.title.chars().count().max(1) as f64;
        let title = (f64::from(width) / (LETTER * letters)).clamp(10.0, 18.0) as u32;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, text(title))
            .margin(14 * UNITS)
            .margin_right(22 * UNITS)
            .x_label_area_size(42 * UNITS)
            .y_label_area_size(if self.axes[1].is_empty() { 40 } else { 58 } * UNITS)
            .build_cartesian_2d(x, y)
            .map_err(owned)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(self.axes[0])
            .y_desc(self.axes[1])
            .axis_style(INK.stroke_width(UNITS))
            .set_all_tick_mark_size(5 * UNITS)
            .bold_line_style(PALE.stroke_width(UNITS))
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&short)
            .y_label_formatter(&short);
        mesh.label_style(text(13)).axis_desc_style(text(14)).x_labels(marks).y_labels(marks).draw().map_err(owned)?;
        for layer in &self.layers {
            let (name, colour, points) = (&layer.name, layer.colour, layer.points.iter().copied());
            let line = colour.stroke_width(2 * UNITS);
            let drawn = match layer.kind {
                Kind::Line => chart.draw_series(LineSeries::new(points, line)),
                Kind::Band => chart.draw_series(LineSeries::new(points, band(colour))),
                Kind::Dashes => chart.draw_series(DashedLineSeries::new(points, DASH.0, DASH.1, line)),
                Kind::Points => {
                    chart.draw_series(points.map(|point| Circle::new(point, 3 * UNITS, colour.mix(0.7).filled())))
                }
                Kind::Crosses => chart.draw_series(points.map(|point| cross(point, colour))),
                Kind::Contour => chart.draw_series(LineSeries::new(points, colour.mix(0.5).stroke_width(UNITS))),
                Kind::Rectangle => {
                    chart.draw_series([Rectangle::new([layer.points[0], layer.points[1]], colour.mix(0.18).filled())])
                }
            };
            let series = drawn.map_err(owned)?;
            if !name.is_empty() {
                let kind = layer.kind;
                series.label(name).legend(move |place| {
                    let ([first, second, third], radius) = sample(kind, colour, place);
                    let circle =
                        Circle::new((place.0 + (12 * UNITS) as i32, place.1), radius, colour.mix(0.7).filled());
                    EmptyElement::at((0, 0)) + first + second + third + circle
                });
            }
        }
        if self.layers.iter().any(|layer| !layer.name.is_empty()) {
            let mut labels = chart.configure_series_labels();
            labels.position(self.free_corner(&self.shown())).background_style(WHITE.mix(0.85));
            labels.border_style(PALE.stroke_width(UNITS)).legend_area_size(30 * UNITS);
            labels.label_font(text(13)).margin(8 * UNITS).draw().map_err(owned)?;
        }
        Ok(())
    }
}

/// A point at which a contour leaves a cell.
#[derive(Clone, Copy)]
struct Crossing {
    /// The number of the cell's side at which the contour leaves the cell.
    side: usize,
    point: (f64, f64),
}

/// Joins the straight pieces of a contour to long lines. Neighbouring pieces share their ends.
fn joined(pieces: &[[Crossing; 2]]) -> Vec<Vec<(f64, f64)>> {
    let mut by_side: HashMap<usize, Vec<usize>> = HashMap::new();
    for (piece, ends) in pieces.iter().enumerate() {
        ends.iter().for_each(|end| by_side.entry(end.side).or_default().push(piece));
    }
    let mut is_taken = vec![false; pieces.len()];
    // Returns the points of a line that begins at a side of a cell: follows the pieces that are not taken yet, each from its end on the side
    // that the piece before has reached.
    let follow = |mut side: usize, is_taken: &mut [bool]| {
        let mut points = Vec::new();
        while let Some(&piece) = by_side[&side].iter().find(|&&piece| !is_taken[piece]) {
            is_taken[piece] = true;
            let [first, second] = pieces[piece];
            let end = if first.side == side { second } else { first };
            points.push(end.point);
            side = end.side;
        }
        points
    };
    let mut lines = Vec::new();
    for (piece, [first, second]) in pieces.iter().enumerate() {
        if is_taken[piece] {
            continue;
        }
        is_taken[piece] = true;
        let mut line = follow(first.side, &mut is_taken);
        line.reverse();
        line.extend([first.point, second.point]);
        line.extend(follow(second.side, &mut is_taken));
        lines.push(line);
    }
    lines
}

/// Returns a cross of two thick lines.
fn cross<C>(place: C, colour: RGBColor) -> Cross<C, u32> {
    Cross::new(place, 6 * UNITS, colour.stroke_width(3 * UNITS))
}

/// Returns the style of a wide pale line.
fn band(colour: RGBColor) -> ShapeStyle {
    colour.mix(0.4).stroke_width(6 * UNITS)
}

/// Returns the shapes that stand for a layer in the legend: three paths (some of them empty), and the radius of a circle. `(x, y)` is
/// the left end of the shapes.
fn sample(kind: Kind, colour: RGBColor, (x, y): (i32, i32)) -> ([PathElement<(i32, i32)>; 3], u32) {
    let units = UNITS as i32;
    let (length, half, arm) = (24 * units, 12 * units, 6 * units);
    let line = colour.stroke_width(2 * UNITS);
    let path = |points: &[(i32, i32)], style: ShapeStyle| PathElement::new(points, style);
    let none = || path(&[], line);
    let dash = |index: i32| {
        let start = x + index * (DASH.0 + DASH.1) as i32;
        path(&[(start, y), ((start + DASH.0 as i32).min(x + length), y)], line)
    };
    let thick = colour.stroke_width(3 * UNITS);
    let stroke = |up: i32| path(&[(x + half - arm, y + up * arm), (x + half + arm, y - up * arm)], thick);
    match kind {
        Kind::Line | Kind::Contour => ([path(&[(x, y), (x + length, y)], line), none(), none()], 0),
        Kind::Band => ([path(&[(x, y), (x + length, y)], band(colour)), none(), none()], 0),
        Kind::Dashes => ([dash(0), dash(1), dash(2)], 0),
        Kind::Points => ([none(), none(), none()], 3 * UNITS),
        Kind::Crosses => ([stroke(1), stroke(-1), none()], 0),
        Kind::Rectangle => {
            ([path(&[(x, y), (x + length, y)], colour.mix(0.18).stroke_width(8 * UNITS)), none(), none()], 0)
        }
    }
}

/// Formats a number beside an axis: `2` and `0.5`, not `2.0`.
fn short(value: &f64) -> String {
    ((value * 1e6).round() / 1e6 + 0.0).to_string() // + 0.0 makes -0 a 0
}

/// Returns one SVG with charts side by side.
///
/// # Errors
///
/// If the drawing library fails.
pub fn row_svg(charts: &[Chart]) -> Result<String> {
    let (width, height) = SIZES[charts.len().clamp(1, SIZES.len()) - 1];
    let (width, mut svg) = (width * charts.len() as u32, String::new());
    {
        let area = SVGBackend::with_string(&mut svg, (width * UNITS, height * UNITS)).into_drawing_area();
        area.fill(&WHITE).map_err(owned)?;
        for (chart, part) in charts.iter().zip(area.split_evenly((1, charts.len()))) {
            chart.draw(&part)?;
        }
        area.present().map_err(owned)?;
    }
    // The `viewBox` stays in drawing units, and the picture gets its size in pixels.
    let header = |units: u32| format!("width=\"{}\" height=\"{}\"", width * units, height * units);
    Ok(svg.replacen(&header(UNITS), &header(1), 1))
}

/// Converts an error of the drawing library to one without borrowed data.
fn owned(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_one_contour() {
        let chart = Chart::new("", "x", "y").ranges(-2.0..2.0, -2.0..2.0);
        let chart = chart.contours(&[1.0, 9.0], |x, y| x * x + y * y);
        // The second circle lies outside of the ranges.
        let [circle] = &chart.layers[..] else { panic!("{} contours", chart.layers.len()) };
        assert!(circle.points.len() > 160);
        assert_eq!(circle.points.first(), circle.points.last());
        assert!(circle.points.iter().all(|(x, y)| (x.hypot(*y) - 1.0).abs() < 1e-3));
    }

    #[test]
    fn a_contour_ends_at_the_border() {
        let chart = Chart::new("", "x", "y").ranges(0.0..1.0, 0.0..1.0).contours(&[0.5], |x, _| x);
        let [line] = &chart.layers[..] else { panic!("{} contours", chart.layers.len()) };
        let mut ends = [line.points[0].1, line.points[line.points.len() - 1].1];
        ends.sort_unstable_by(f64::total_cmp);
        assert_eq!((ends, line.points.len()), ([0.0, 1.0], 161));
    }
}
