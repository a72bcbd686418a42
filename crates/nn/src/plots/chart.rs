//! Line charts: the ranges of the axes, the legend and the drawing.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::SeriesLabelPosition::{LowerRight, UpperRight};
use plotters::prelude::*;

use super::style::{GRID, INK, UNITS_PER_PIXEL, colour, format_significant, format_tick, scale_to_pixels, text_style};
use crate::history::{Epoch, History, Scores};
use crate::{Error, Result};

/// The width and height of a chart in pixels.
const SIZE: (u32, u32) = (800, 500);

/// The vertical axis is logarithmic if the largest value is more than this factor times the smallest one, and the smallest one is above
/// 10⁻¹². The factor is 100 for charts whose linear axis would begin at 0, because small values would be hard to read.
const MIN_LOGARITHMIC_RATIO: f64 = 1e4;

/// The colour of the line for random guesses.
const CHANCE_COLOUR: RGBColor = RGBColor(170, 170, 170);

/// A chart: its title, the names of its axes, its lines with their names, and its settings.
pub(super) struct Chart<'c> {
    pub(super) title: &'c str,
    pub(super) x_label: &'c str,
    pub(super) y_label: &'c str,
    pub(super) lines: Vec<(String, Vec<(f64, f64)>)>,
    /// True if points have markers, which make a single point visible.
    pub(super) has_markers: bool,
    /// True if the vertical axis begins at 0 or below. If all values are above 10⁻¹² and span more than a factor of 100, the axis is
    /// logarithmic and does not begin at 0.
    pub(super) begins_at_zero: bool,
    /// True if both axes go from 0 to 1.
    pub(super) is_of_rates: bool,
    /// The corner of the legend. `None` selects a corner on the right, away from the ends of the lines.
    pub(super) legend_position: Option<SeriesLabelPosition>,
}

impl Default for Chart<'_> {
    fn default() -> Self {
        Chart {
            title: "",
            x_label: "epoch",
            y_label: "",
            lines: Vec::new(),
            has_markers: true,
            begins_at_zero: true,
            is_of_rates: false,
            legend_position: None,
        }
    }
}

impl Chart<'_> {
    /// Returns a chart without lines and names, with the settings for two rates: both axes go from 0 to 1.
    pub(super) fn of_rates() -> Self {
        Chart { has_markers: false, is_of_rates: true, legend_position: Some(LowerRight), ..Chart::default() }
    }

    /// Draws a loss or a metric of the training and validation samples against the epoch, as [`draw`](Self::draw) does.
    pub(super) fn draw_history(mut self, history: &History, name: &str) -> Result<String> {
        for data_set in ["train", "validation"] {
            if history.epochs.iter().any(|epoch| scores(epoch, data_set).is_some()) {
                let value =
                    |epoch: &Epoch| scores(epoch, data_set).and_then(|scores| scores.get(name)).unwrap_or(f64::NAN);
                let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(history.epochs.iter().map(value)).collect();
                let last = points.last().map_or(f64::NAN, |point| point.1);
                self.lines.push((format!("{data_set}: {} at last", format_significant(last)), points));
            }
        }
        self.draw()
    }

    /// Removes points that are too large, chooses the ranges of the axes, and returns the chart as an SVG image.
    /// Returns an error if the drawing library fails.
    pub(super) fn draw(mut self) -> Result<String> {
        self.remove_huge_points();
        let drawn = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_finite_point(point));
        let range = |value: fn(&(f64, f64)) -> f64| {
            drawn().map(value).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)))
        };
        let (left, right) = match range(|point| point.0) {
            (low, high) if low < high => (low, high),
            (low, _) if low.is_finite() => (low, low + 1.0),
            _ => (1.0, 2.0),
        };
        let (low, high) = range(|point| point.1);
        let (least, margin) = (if self.begins_at_zero { low.min(0.0) } else { low }, 0.05);
        let mut svg = String::new();
        let outcome = if self.is_of_rates {
            self.draw_on(&mut svg, 0.0..1.0, -0.01..1.01)
        } else if low > 1e-12 && high > low * if self.begins_at_zero { 1e2 } else { MIN_LOGARITHMIC_RATIO } {
            self.draw_on(&mut svg, left..right, (0.8 * low..1.25 * high).log_scale())
        } else if high > least {
            let below = if self.begins_at_zero { least } else { least - margin * (high - least) };
            self.draw_on(&mut svg, left..right, below..high + margin * (high - least))
        } else {
            let least = if least.is_finite() { least } else { 0.0 };
            self.draw_on(&mut svg, left..right, least..least + 1.0)
        };
        outcome.map_err(|error| Error::Plot(error.to_string()))?;
        Ok(scale_to_pixels(&svg, SIZE))
    }

    /// Removes points that are too large to be drawn, such as the losses of a training run that diverges. A logarithmic axis can show almost every
    /// number. On a linear axis, a single huge number would make all other points look like 0.
    fn remove_huge_points(&mut self) {
        let points = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_finite_point(point));
        let largest = if points().all(|point| point.1 > 1e-12) { 1e300 } else { 1e12 };
        for point in self.lines.iter_mut().flat_map(|(_, points)| points) {
            if point.0.abs() > 1e12 || point.1.abs() > largest {
                *point = (f64::NAN, f64::NAN);
            }
        }
    }

    /// Returns the corner of the chart for the legend, away from the ends of the lines.
    fn legend_corner(&self) -> SeriesLabelPosition {
        let points = || self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_finite_point(point));
        let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| (p.1.min(l), p.1.max(h)));
        let last = |points: &[(f64, f64)]| points.iter().rfind(|point| is_finite_point(point)).map(|point| point.1);
        let ends: Vec<f64> = self.lines.iter().filter_map(|(_, points)| last(points)).collect();
        let above = ends.iter().filter(|&&end| end > (low + high) / 2.0).count();
        let free = if 2 * above > ends.len() { LowerRight } else { UpperRight };
        self.legend_position.clone().unwrap_or(free)
    }

    /// Returns the number of tick marks on the horizontal axis: one for each epoch if there are few epochs.
    fn tick_count(&self, x_range: &Range<f64>) -> usize {
        if self.x_label == "epoch" { (x_range.end - x_range.start + 1.0).clamp(2.0, 12.0) as usize } else { 11 }
    }

    /// Returns the largest absolute coordinates of the drawn points: horizontal and vertical.
    fn max_abs_coordinates(&self) -> [f64; 2] {
        let points = self.lines.iter().flat_map(|(_, points)| points).filter(|point| is_finite_point(point));
        points.fold([0.0, 0.0], |[x, y], point| [x.max(point.0.abs()), y.max(point.1.abs())])
    }

    /// Draws the chart into `svg`. `x_range` and `y_range` are the ranges of the horizontal and the vertical axis.
    fn draw_on<Y>(
        &self,
        svg: &mut String,
        x_range: Range<f64>,
        y_range: Y,
    ) -> std::result::Result<(), Box<dyn std::error::Error + '_>>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let tick_count = self.tick_count(&x_range);
        let [largest_x, largest_y] = self.max_abs_coordinates();
        let area =
            SVGBackend::with_string(svg, (SIZE.0 * UNITS_PER_PIXEL, SIZE.1 * UNITS_PER_PIXEL)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, text_style(24))
            .margin(20 * UNITS_PER_PIXEL)
            .x_label_area_size(50 * UNITS_PER_PIXEL)
            .y_label_area_size(70 * UNITS_PER_PIXEL)
            .build_cartesian_2d(x_range, y_range)?;
        chart
            .configure_mesh()
            .x_desc(self.x_label)
            .y_desc(self.y_label)
            .axis_style(INK.stroke_width(UNITS_PER_PIXEL))
            .set_all_tick_mark_size(5 * UNITS_PER_PIXEL)
            .bold_line_style(GRID.stroke_width(UNITS_PER_PIXEL))
            .light_line_style(TRANSPARENT)
            .label_style(text_style(15))
            .axis_desc_style(text_style(17))
            .x_labels(tick_count)
            .x_label_formatter(&|&x| format_tick(x, largest_x))
            .y_label_formatter(&|&y| format_tick(y, largest_y))
            .draw()?;
        self.draw_lines(&mut chart)?;
        if self.lines.iter().any(|(name, _)| !name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.legend_corner())
                .background_style(WHITE)
                .border_style(GRID.stroke_width(UNITS_PER_PIXEL))
                .label_font(text_style(15))
                .legend_area_size(30 * UNITS_PER_PIXEL)
                .margin(12 * UNITS_PER_PIXEL)
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
            let colour = if self.is_of_rates && number > 0 { CHANCE_COLOUR } else { colour(number) };
            // A point that is not drawn interrupts the line.
            for run in points.split(|point| !is_finite_point(point)) {
                chart.draw_series(LineSeries::new(run.iter().copied(), colour.stroke_width(2 * UNITS_PER_PIXEL)))?;
            }
            // The markers, and not the line, get the entry of the legend, because a single point has a marker and no line.
            let has_markers = points.iter().filter(|point| self.has_markers && is_finite_point(point));
            let (width, radius) = (2 * UNITS_PER_PIXEL, if self.has_markers { 5 * UNITS_PER_PIXEL / 2 } else { 0 });
            chart
                .draw_series(has_markers.map(|&point| Circle::new(point, radius, colour.filled())))?
                .label(name)
                .legend(move |(x, y)| {
                    let (end, middle) = (x + (22 * UNITS_PER_PIXEL) as i32, x + (11 * UNITS_PER_PIXEL) as i32);
                    EmptyElement::at((0, 0))
                        + PathElement::new([(x, y), (end, y)], colour.stroke_width(width))
                        + Circle::new((middle, y), radius, colour.filled())
                });
        }
        Ok(())
    }
}

/// Returns the scores of an epoch on the training samples if `data_set` is `train`, otherwise on the validation samples, or `None` without
/// any.
fn scores<'e>(epoch: &'e Epoch, data_set: &str) -> Option<&'e Scores> {
    if data_set == "train" { Some(&epoch.train) } else { epoch.validation.as_ref() }
}

/// Returns true if a point is drawn: its coordinates are finite.
fn is_finite_point((x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite()
}
