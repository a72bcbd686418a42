//! Line charts: the ranges of the axes, the legend and the drawing.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::SeriesLabelPosition::{LowerRight, UpperRight};
use plotters::prelude::*;

use super::style::{GRID, INK, UNITS, colour, in_pixels, on_axis, significant, text};
use crate::history::{Epoch, History, Scores};
use crate::{Error, Result};

/// The width and height of a chart in pixels.
const SIZE: (u32, u32) = (800, 500);

/// The vertical axis is logarithmic if the largest value is more than this factor times the smallest one, and the smallest one is above
/// 10⁻¹². The factor is 100 for charts whose linear axis would begin at 0, because small values would be hard to read.
const LOGARITHMIC: f64 = 1e4;

/// The colour of the line for random guesses.
const CHANCE: RGBColor = RGBColor(170, 170, 170);

/// A chart: its title, the names of its axes, its lines with their names, and its settings.
pub(super) struct Chart<'c> {
    pub(super) title: &'c str,
    pub(super) x: &'c str,
    pub(super) y: &'c str,
    pub(super) lines: Vec<(String, Vec<(f64, f64)>)>,
    /// True if points have markers, which make a single point visible.
    pub(super) markers: bool,
    /// True if the vertical axis begins at 0 or below. If all values are above 10⁻¹² and span more than a factor of 100, the axis is
    /// logarithmic and does not begin at 0.
    pub(super) from_zero: bool,
    /// True if both axes go from 0 to 1.
    pub(super) rates: bool,
    /// The corner of the legend. `None` selects a corner on the right, away from the ends of the lines.
    pub(super) corner: Option<SeriesLabelPosition>,
}

impl Default for Chart<'_> {
    fn default() -> Self {
        Chart {
            title: "",
            x: "epoch",
            y: "",
            lines: Vec::new(),
            markers: true,
            from_zero: true,
            rates: false,
            corner: None,
        }
    }
}

impl Chart<'_> {
    /// Returns a chart without lines and names, with the settings for two rates: both axes go from 0 to 1.
    pub(super) fn of_rates() -> Self {
        Chart { markers: false, rates: true, corner: Some(LowerRight), ..Chart::default() }
    }

    /// Draws a loss or a metric of the training and validation samples against the epoch, as [`draw`](Self::draw) does.
    pub(super) fn draw_history(mut self, history: &History, name: &str) -> Result<String> {
        for part in ["train", "validation"] {
            if history.epochs.iter().any(|epoch| scores(epoch, part).is_some()) {
                let value = |epoch: &Epoch| scores(epoch, part).and_then(|scores| scores.get(name)).unwrap_or(f64::NAN);
                let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(history.epochs.iter().map(value)).collect();
                let last = points.last().map_or(f64::NAN, |point| point.1);
                self.lines.push((format!("{part}: {} at last", significant(last)), points));
            }
        }
        self.draw()
    }

    /// Removes points that are too large, chooses the ranges of the axes, and returns the chart as an SVG image.
    /// Returns an error if the drawing library fails.
    pub(super) fn draw(mut self) -> Result<String> {
        self.remove_huge();
        let drawn = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_drawn(point));
        let range = |value: fn(&(f64, f64)) -> f64| {
            drawn().map(value).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)))
        };
        let (left, right) = match range(|point| point.0) {
            (low, high) if low < high => (low, high),
            (low, _) if low.is_finite() => (low, low + 1.0),
            _ => (1.0, 2.0),
        };
        let (low, high) = range(|point| point.1);
        let (least, margin) = (if self.from_zero { low.min(0.0) } else { low }, 0.05);
        let mut svg = String::new();
        let outcome = if self.rates {
            self.draw_on(&mut svg, 0.0..1.0, -0.01..1.01)
        } else if low > 1e-12 && high > low * if self.from_zero { 1e2 } else { LOGARITHMIC } {
            self.draw_on(&mut svg, left..right, (0.8 * low..1.25 * high).log_scale())
        } else if high > least {
            let below = if self.from_zero { least } else { least - margin * (high - least) };
            self.draw_on(&mut svg, left..right, below..high + margin * (high - least))
        } else {
            let least = if least.is_finite() { least } else { 0.0 };
            self.draw_on(&mut svg, left..right, least..least + 1.0)
        };
        outcome.map_err(|error| Error::Plot(error.to_string()))?;
        Ok(in_pixels(&svg, SIZE))
    }

    /// Removes points that are too large to be drawn, such as the losses of a training run that diverges. A logarithmic axis can show almost every
    /// number. On a linear axis, a single huge number would make all other points look like 0.
    fn remove_huge(&mut self) {
        let points = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_drawn(point));
        let largest = if points().all(|point| point.1 > 1e-12) { 1e300 } else { 1e12 };
        for point in self.lines.iter_mut().flat_map(|(_, points)| points) {
            if point.0.abs() > 1e12 || point.1.abs() > largest {
                *point = (f64::NAN, f64::NAN);
            }
        }
    }

    /// Returns the corner of the chart for the legend, away from the ends of the lines.
    fn legend(&self) -> SeriesLabelPosition {
        let points = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_drawn(point));
        let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| (p.1.min(l), p.1.max(h)));
        let last = |points: &[(f64, f64)]| points.iter().rfind(|point| is_drawn(point)).map(|point| point.1);
        let ends: Vec<f64> = self.lines.iter().filter_map(|(_, points)| last(points)).collect();
        let above = ends.iter().filter(|&&end| end > (low + high) / 2.0).count();
        let free = if 2 * above > ends.len() { LowerRight } else { UpperRight };
        self.corner.clone().unwrap_or(free)
    }

    /// Returns the number of tick marks on the horizontal axis: one for each epoch if there are few epochs.
    fn marks(&self, across: &Range<f64>) -> usize {
        if self.x == "epoch" { (across.end - across.start + 1.0).clamp(2.0, 12.0) as usize } else { 11 }
    }

    /// Returns the largest absolute coordinates of the drawn points: horizontal and vertical.
    fn largest(&self) -> [f64; 2] {
        let points = self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_drawn(point));
        points.fold([0.0, 0.0], |[x, y], point| [x.max(point.0.abs()), y.max(point.1.abs())])
    }

    /// Draws the chart into `svg`. `across` and `up` are the ranges of the horizontal and the vertical axis.
    fn draw_on<Y>(
        &self,
        svg: &mut String,
        across: Range<f64>,
        up: Y,
    ) -> std::result::Result<(), Box<dyn std::error::Error + '_>>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let marks = self.marks(&across);
        let [largest_x, largest_y] = self.largest();
        let area = SVGBackend::with_string(svg, (SIZE.0 * UNITS, SIZE.1 * UNITS)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, text(24))
            .margin(20 * UNITS)
            .x_label_area_size(50 * UNITS)
            .y_label_area_size(70 * UNITS)
            .build_cartesian_2d(across, up)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .axis_style(INK.stroke_width(UNITS))
            .set_all_tick_mark_size(5 * UNITS)
            .bold_line_style(GRID.stroke_width(UNITS))
            .light_line_style(TRANSPARENT)
            .label_style(text(15))
            .axis_desc_style(text(17))
            .x_labels(marks)
            .x_label_formatter(&|&x| on_axis(x, largest_x))
            .y_label_formatter(&|&y| on_axis(y, largest_y))
            .draw()?;
        self.draw_lines(&mut chart)?;
        if self.lines.iter().any(|(name, _)| !name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.legend())
                .background_style(WHITE)
                .border_style(GRID.stroke_width(UNITS))
                .label_font(text(15))
                .legend_area_size(30 * UNITS)
                .margin(12 * UNITS)
                .draw()?;
        }
        area.present()?;
        Ok(())
    }

    /// Draws the lines and markers. Registers an entry of the legend for each line; the caller draws the legend.
    fn draw_lines<'s, V: Ranged<ValueType = f64>>(
        &self,
        chart: &mut ChartContext<'s, SVGBackend<'s>, Cartesian2d<RangedCoordf64, V>>,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let colour = if self.rates && number > 0 { CHANCE } else { colour(number) };
            // A point that is not drawn interrupts the line.
            for run in points.split(|point| !is_drawn(point)) {
                chart.draw_series(LineSeries::new(run.iter().copied(), colour.stroke_width(2 * UNITS)))?;
            }
            // The markers, and not the line, get the entry of the legend, because a single point has a marker and no line.
            let markers = points.iter().filter(|point| self.markers && is_drawn(point));
            let (width, radius) = (2 * UNITS, if self.markers { 5 * UNITS / 2 } else { 0 });
            chart.draw_series(markers.map(|&point| Circle::new(point, radius, colour.filled())))?.label(name).legend(
                move |(x, y)| {
                    let (end, middle) = (x + (22 * UNITS) as i32, x + (11 * UNITS) as i32);
                    EmptyElement::at((0, 0))
                        + PathElement::new([(x, y), (end, y)], colour.stroke_width(width))
                        + Circle::new((middle, y), radius, colour.filled())
                },
            );
        }
        Ok(())
    }
}

/// Returns the scores of an epoch on the training samples if `part` is `train`, otherwise on the validation samples, or `None` without
/// any.
fn scores<'e>(epoch: &'e Epoch, part: &str) -> Option<&'e Scores> {
    if part == "train" { Some(&epoch.train) } else { epoch.validation.as_ref() }
}

/// Returns true if a point is drawn: its coordinates are finite.
fn is_drawn((x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite()
}
