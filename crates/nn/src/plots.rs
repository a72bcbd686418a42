//! How training went, as a curve.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::file::write_atomically;
use crate::report::{Epoch, History};
use crate::{Error, Result};

const SIZE: (u32, u32) = (800, 500);
const TRAIN: RGBColor = RGBColor(31, 119, 180);
const TEST: RGBColor = RGBColor(214, 96, 20);
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(232, 232, 232);

impl History {
    /// Both losses against the epoch, as an SVG image of 800 x 500 pixels. The axis of the losses is logarithmic where
    /// they span more than a factor of 100 and all are positive. A loss that is infinite, NaN or beyond 10¹² leaves a
    /// gap.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`], where the drawing library fails; no loss makes it fail.
    pub fn loss_curve(&self) -> Result<String> {
        let losses = self.epochs.iter().flat_map(|epoch| [epoch.train_loss, epoch.test_loss]).filter(is_drawn);
        let (low, high) = losses.fold((f64::INFINITY, 0.0), |(low, high), loss| (loss.min(low), loss.max(high)));
        let mut svg = String::new();
        let drawn = if low > 1e-12 && high > 100.0 * low {
            self.draw(&mut svg, (0.8 * low..1.25 * high).log_scale())
        } else {
            let low = low.min(0.0);
            self.draw(&mut svg, low..if high > low { high + 0.05 * (high - low) } else { low + 1.0 })
        };
        drawn.map_err(|error| Error::Plot(error.to_string()))?;
        Ok(svg)
    }

    /// [`loss_curve`](Self::loss_curve) into a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// Where the curve cannot be drawn or the file not written ([`Error::Write`]).
    pub fn save_loss_curve(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, self.loss_curve()?.as_bytes())
    }

    fn draw<Y>(&self, svg: &mut String, losses: Y) -> std::result::Result<(), Box<dyn std::error::Error + '_>>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let text = |size: u32| ("sans-serif", size).into_font().color(&INK);
        let last = self.epochs.len().max(2) as f64;
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Loss per epoch", text(24))
            .margin(20)
            .x_label_area_size(50)
            .y_label_area_size(70)
            .build_cartesian_2d(1.0..last, losses)?;
        chart
            .configure_mesh()
            .x_desc("epoch")
            .y_desc("mean loss")
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(text(15))
            .axis_desc_style(text(17))
            .x_labels(self.epochs.len().clamp(2, 12))
            .x_label_formatter(&|epoch| format!("{epoch}"))
            .y_label_formatter(&|&loss| significant(loss))
            .draw()?;
        for (name, colour, of) in [
            ("train", TRAIN, (|epoch| epoch.train_loss) as fn(&Epoch) -> f64),
            ("test (held out)", TEST, |epoch| epoch.test_loss),
        ] {
            let points = self.epochs.iter().enumerate().map(|(k, epoch)| ((k + 1) as f64, of(epoch)));
            let points: Vec<(f64, f64)> = points.collect();
            // The line is interrupted at a gap.
            for run in points.split(|(_, loss)| !is_drawn(loss)) {
                chart.draw_series(LineSeries::new(run.iter().copied(), colour.stroke_width(2)))?;
            }
            let name = match self.last() {
                Some(epoch) => format!("{name}: {} at last", significant(of(epoch))),
                None => name.to_owned(),
            };
            // The markers carry the legend: they show a single epoch too.
            let markers = points.iter().filter(|(_, loss)| is_drawn(loss));
            chart
                .draw_series(markers.map(|&point| Circle::new(point, 2, colour.filled())))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .border_style(GRID)
            .label_font(text(15))
            .margin(12)
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// Whether a loss is drawn. Larger ones come from training that diverged, and would flatten the rest of the curve.
fn is_drawn(loss: &f64) -> bool {
    loss.abs() <= 1e12
}

/// Three significant digits without trailing zeros: `0.0123`, `2`, `150`, `2.5e-7`.
fn significant(x: f64) -> String {
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match x.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e6).contains(&size) => {
            let digits = (2 - size.log10().floor() as i32).max(0) as usize;
            trimmed(&format!("{x:.digits$}"))
        }
        _ => match format!("{x:.2e}").split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits)),
            None => format!("{x}"), // infinite or NaN
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(losses: &[f64]) -> History {
        let epoch =
            |&loss: &f64| Epoch { train_loss: loss, test_loss: 2.0 * loss, train_accuracy: 1.0, test_accuracy: 0.5 };
        History { epochs: losses.iter().map(epoch).collect() }
    }

    #[test]
    fn numbers_have_three_digits() {
        for (x, expected) in [
            (0.012345, "0.0123"),
            (2.0, "2"),
            (150.4, "150"),
            (0.5, "0.5"),
            (0.0, "0"),
            (2.5e-7, "2.5e-7"),
            (1e20, "1e20"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(significant(x), expected);
        }
    }

    #[test]
    fn every_history_has_a_curve() {
        let nan = f64::NAN;
        for losses in [
            &[][..],
            &[1.0],
            &[0.0, 0.0],
            &[nan],
            &[1.0, nan, 0.001],
            &[-1.0, 3.0],
            &[f64::INFINITY, 1.0],
            &[1e300, 1e-300],
        ] {
            let svg = history(losses).loss_curve().unwrap();
            assert!(svg.trim_end().ends_with("</svg>") && svg.contains("mean loss"), "{losses:?}");
        }
    }

    #[test]
    fn both_curves_and_their_last_values_are_there() {
        let svg = history(&[1.0, 0.5, 0.25]).loss_curve().unwrap();
        for part in ["train: 0.25 at last", "test (held out): 0.5 at last", "epoch", "#1F77B4", "#D66014"] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg, history(&[1.0, 0.5, 0.25]).loss_curve().unwrap());
    }
}
