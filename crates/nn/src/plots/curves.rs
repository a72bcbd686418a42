//! Draws the curves of a training run: losses and metrics, ROC and precision-recall curves.

use std::path::Path;

use plotters::prelude::SeriesLabelPosition::LowerLeft;

use super::chart::Chart;
use super::style::format_significant;
use crate::Result;
use crate::file::write_atomically;
use crate::history::History;
use crate::metrics::BinaryScores;

impl History {
    /// Draws the losses against the epoch, as an SVG image of 800 x 500 pixels. The axis of the losses is logarithmic if all are above
    /// 10⁻¹² and they span more than a factor of 100. A loss that is infinite, NaN or too large for the axis leaves a gap. The largest loss
    /// in the curve is 10³⁰⁰, or 10¹² if a loss is at most 10⁻¹².
    ///
    /// # Errors
    ///
    /// [`Error::Plot`](crate::Error::Plot) if the drawing library fails. No value of a loss makes it fail.
    pub fn loss_curve(&self) -> Result<String> {
        Chart { title: "Loss per epoch", y_label: "mean loss", ..Chart::default() }.draw_history(self, "loss")
    }

    /// Draws a metric against the epoch. Epochs without the metric leave a gap, as do values that are infinite, NaN or too large (see
    /// [`loss_curve`](Self::loss_curve)). The axis of the metric is logarithmic if all values are above 10⁻¹² and they span more than a
    /// factor of 10,000.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`](crate::Error::Plot) if the drawing library fails.
    pub fn curve(&self, metric: &str) -> Result<String> {
        Chart { title: &format!("{metric} per epoch"), y_label: metric, begins_at_zero: false, ..Chart::default() }
            .draw_history(self, metric)
    }

    /// Writes [`loss_curve`](Self::loss_curve) to a file, completely or not at all.
    ///
    /// # Errors
    ///
    /// If the curve cannot be drawn ([`Error::Plot`](crate::Error::Plot)), or the file cannot be written ([`Error::Write`](crate::Error::Write)).
    pub fn save_loss_curve(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, self.loss_curve()?.as_bytes())
    }
}

/// Draws lines through points, as an SVG image of 800 x 500 pixels, with a legend. A point leaves a gap if it is not finite, if |x| is
/// above 10¹², or if |y| is above 10³⁰⁰. The limit for |y| is 10¹² if a y is at most 10⁻¹². The vertical axis is logarithmic if all y are
/// above 10⁻¹² and they span more than a factor of 10,000.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::plots::lines;
///
/// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 10.0).collect();
/// let sine: Vec<(f64, f64)> = x.iter().map(|&x| (x, x.sin())).collect();
/// let cosine: Vec<(f64, f64)> = x.iter().map(|&x| (x, x.cos())).collect();
/// let svg = lines("Waves", ["time", "height"], &[("sine", &sine), ("cosine", &cosine)])?;
/// assert!(svg.starts_with("<svg") && svg.contains("cosine"));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Plot`](crate::Error::Plot) if the drawing library fails. No value of a point makes it fail.
pub fn lines(title: &str, [x_label, y_label]: [&str; 2], lines: &[(&str, &[(f64, f64)])]) -> Result<String> {
    let lines = lines.iter().map(|&(name, points)| (name.to_owned(), points.to_vec())).collect();
    Chart { title, x_label, y_label, lines, has_markers: false, begins_at_zero: false, ..Chart::default() }.draw()
}

/// Draws the true positive rate against the false positive rate, with the area under the curve, as an SVG image.
///
/// # Errors
///
/// [`Error::Plot`](crate::Error::Plot) if the drawing library fails.
pub fn roc(scores: &BinaryScores) -> Result<String> {
    let lines = vec![
        (format!("area {}", format_significant(scores.roc_auc())), scores.roc().points),
        ("chance: area 0.5".to_owned(), vec![(0.0, 0.0), (1.0, 1.0)]),
    ];
    let (title, x_label, y_label) = ("ROC curve", "false positive rate", "true positive rate");
    Chart { title, x_label, y_label, lines, ..Chart::of_rates() }.draw()
}

/// Draws the precision against the recall, with the average precision, as an SVG image.
///
/// # Errors
///
/// [`Error::Plot`](crate::Error::Plot) if the drawing library fails.
pub fn precision_recall(scores: &BinaryScores) -> Result<String> {
    let name = format!("average precision {}", format_significant(scores.average_precision()));
    let (title, x_label, y_label) = ("Precision and recall", "recall", "precision");
    Chart {
        title,
        x_label,
        y_label,
        lines: vec![(name, scores.precision_recall().points)],
        legend_position: Some(LowerLeft),
        ..Chart::of_rates()
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::*;
    use crate::{Epoch, Scores};

    fn history(losses: &[f64]) -> History {
        let scores = |loss| Scores { loss, metrics: vec![("accuracy".to_owned(), 0.5)] };
        let epoch = |&loss: &f64| Epoch { lr: 0.1, train: scores(loss), validation: Some(scores(2.0 * loss)) };
        History { epochs: losses.iter().map(epoch).collect() }
    }

    #[test]
    fn any_history_can_be_drawn() {
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
            assert!(history(losses).curve("accuracy").unwrap().contains("accuracy per epoch"));
            assert!(history(losses).curve("nothing").unwrap().ends_with("</svg>\n"));
        }
        for points in [&[][..], &[(0.0, 0.0)], &[(nan, 1.0)], &[(1.0, 5.0), (2.0, 5.0)]] {
            assert!(lines("t", ["x", "y"], &[("a", points)]).unwrap().trim_end().ends_with("</svg>"));
        }
    }

    #[test]
    fn curves_have_their_last_values() {
        let svg = history(&[1.0, 0.5, 0.25]).loss_curve().unwrap();
        for part in ["train: 0.25 at last", "validation: 0.5 at last", "epoch", "#1F77B4", "#D66014"] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg, history(&[1.0, 0.5, 0.25]).loss_curve().unwrap());
        let mut alone = history(&[1.0]);
        alone.epochs[0].validation = None;
        assert!(!alone.loss_curve().unwrap().contains("validation"));
    }

    /// The drawing library plotters rounds coordinates to whole units, and a pixel has ten units. The heights of neighbouring points in
    /// this test differ by about a third of a pixel.
    #[test]
    fn a_curve_is_drawn_in_tenths_of_a_pixel() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), f64::from(i))).collect();
        let svg = lines("t", ["x", "y"], &[("a", &points)]).unwrap();
        assert!(svg.starts_with("<svg width=\"800\" height=\"500\" viewBox=\"0 0 8000 5000\""), "{}", &svg[..80]);
        let path = svg.split("<polyline").max_by_key(|path| path.len()).unwrap();
        let heights: std::collections::BTreeSet<&str> =
            path.split([' ', '"']).filter_map(|pair| Some(pair.split_once(',')?.1)).collect();
        assert!(heights.len() > 900, "1,000 points have only {} heights", heights.len());
    }

    /// The curve of a training run that diverges is readable: the axis becomes logarithmic, so each epoch has another height.
    #[test]
    fn a_diverging_loss_is_no_flat_line() {
        let losses: Vec<f64> = (0..40).map(|epoch| 10f64.powi(epoch)).collect();
        for svg in [history(&losses).loss_curve().unwrap(), {
            let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(losses).collect();
            lines("t", ["x", "y"], &[("a", &points)]).unwrap()
        }] {
            let path = svg.split("<polyline").find(|path| path.contains("#1F77B4")).unwrap();
            let heights: std::collections::BTreeSet<&str> =
                path.split([' ', '"']).filter_map(|pair| Some(pair.split_once(',')?.1)).collect();
            assert_eq!(heights.len(), 40);
        }
    }

    #[test]
    fn curves_of_scores_have_their_area() {
        let mut scores = BinaryScores::new();
        assert!(roc(&scores).unwrap().contains("area NaN"));
        scores.update(&Tensor::from([0.1, 0.4, 0.35, 0.8]), &Tensor::from([0, 0, 1, 1])).unwrap();
        assert!(roc(&scores).unwrap().contains("area 0.75"));
        assert!(precision_recall(&scores).unwrap().contains("average precision 0.833"));
    }
}
