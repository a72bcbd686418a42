//! Displays the progress of a training run.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Instant;

use crate::history::Epoch;

/// The display of the progress of [`Fit`](crate::Fit). If the output is closed or its disk is full, the training continues without a
/// display.
///
/// A line has the scores and the remaining time, `epoch 12/30  loss 0.3819 / 0.3581  accuracy 0.9896 / 0.9911  4.3 s left`. The first value of
/// a pair is the score on the training samples, and the second the score on the validation samples. A line above the first epoch explains the pairs.
/// Without validation, there are no pairs. The line of the last epoch has the time since the training run started or resumed. If a callback of
/// [`on_epoch`](crate::Fit::on_epoch) ends the run, this time is on a line of its own: `stopped by a callback after epoch 12: 2.9 s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Prints a line on the standard output for each epoch. With the feature `progress`, and if the standard error is a terminal, it also
    /// shows a bar for the batches of the epoch.
    #[default]
    Bar,
    /// Prints a line on the standard output for each epoch.
    Lines,
    /// Prints nothing.
    Quiet,
}

/// The line above the first epoch of a training run with validation.
const HEADER: &str = "values: training data / validation data";

/// The display of one training run.
pub(super) struct Reporter {
    progress: Progress,
    epochs: u64,
    /// The time at which the training run started or resumed. `None` on WebAssembly, which has no clock; the lines then show no times.
    start_time: Option<Instant>,
    n_epochs_done: u64,
    /// True after the output could not be written.
    has_failed: bool,
    #[cfg(feature = "progress")]
    bar: Option<indicatif::ProgressBar>,
}

impl Reporter {
    /// Returns a display for a training run of `epochs` epochs.
    pub(super) fn new(progress: Progress, epochs: u64) -> Self {
        Reporter {
            progress,
            epochs,
            start_time: (!cfg!(target_family = "wasm")).then(Instant::now),
            n_epochs_done: 0,
            has_failed: false,
            #[cfg(feature = "progress")]
            bar: None,
        }
    }

    /// Shows a bar for the epoch with the number `epoch`, which has `batches` batches, if the display is
    /// [`Progress::Bar`].
    #[cfg(feature = "progress")]
    pub(super) fn start_epoch(&mut self, epoch: u64, batches: usize) {
        if self.progress == Progress::Bar {
            let style = "epoch {prefix} {wide_bar} {pos}/{len}  {msg}  {eta} left";
            let style = indicatif::ProgressStyle::with_template(style);
            let bar = indicatif::ProgressBar::new(batches as u64).with_prefix(format!("{epoch}/{}", self.epochs));
            self.bar = Some(bar.with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar())));
        }
    }

    #[cfg(not(feature = "progress"))]
    pub(super) fn start_epoch(&mut self, _: u64, _: usize) {}

    /// Advances the bar by one batch, if there is a bar. `loss` is the mean loss so far.
    #[cfg(feature = "progress")]
    pub(super) fn finish_batch(&self, loss: f64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("loss {loss:.4}"));
            bar.inc(1);
        }
    }

    #[cfg(not(feature = "progress"))]
    pub(super) fn finish_batch(&self, _: f64) {}

    /// Removes the bar, and prints the line of the completed epoch, except with [`Progress::Quiet`]. Prints the header before the
    /// first line, if there is validation. `is_last` is true if the training ends after this epoch.
    pub(super) fn finish_epoch(&mut self, number: u64, epoch: &Epoch, is_last: bool) {
        #[cfg(feature = "progress")]
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.n_epochs_done += 1;
        if self.progress != Progress::Quiet {
            self.print_line(&self.epoch_text(number, epoch, self.seconds(), is_last));
        }
    }

    /// Prints that a callback ended the training after the epoch `number`, except with [`Progress::Quiet`].
    pub(super) fn print_stop(&mut self, number: u64) {
        if self.progress != Progress::Quiet {
            self.print_line(&stop_line(number, self.seconds()));
        }
    }

    /// Returns the seconds since the training run started or resumed, or `None` without a clock.
    fn seconds(&self) -> Option<f64> {
        self.start_time.map(|start_time| start_time.elapsed().as_secs_f64())
    }

    /// Writes a text and a line break to the standard output.
    fn print_line(&mut self, text: &str) {
        self.print(text, &mut io::stdout().lock(), &mut io::stderr().lock());
    }

    /// Writes a text and a line break to `output`. After the first failure it writes nothing more. The failure is reported to `errors`,
    /// unless the reader of `output` has closed it, as `head` does.
    fn print(&mut self, text: &str, output: &mut dyn Write, errors: &mut dyn Write) {
        if self.has_failed {
            return;
        }
        if let Err(error) = writeln!(output, "{text}").and_then(|()| output.flush()) {
            self.has_failed = true;
            if error.kind() != io::ErrorKind::BrokenPipe {
                let _ = writeln!(errors, "the training continues, but its progress cannot be written: {error}");
            }
        }
    }

    /// Returns the line of an epoch. With validation, the header is above the line of the first epoch that this process trains.
    fn epoch_text(&self, number: u64, epoch: &Epoch, seconds: Option<f64>, is_last: bool) -> String {
        let line = self.epoch_line(number, epoch, seconds, is_last);
        if self.n_epochs_done == 1 && epoch.validation.is_some() { format!("{HEADER}\n{line}") } else { line }
    }

    /// Returns the line of an epoch: `epoch  3/20  loss 0.5000 / 0.5100  15 s left`. The line of the last epoch has the time since the training run
    /// started or resumed, instead of the remaining time. Without a clock, the time is missing.
    fn epoch_line(&self, number: u64, epoch: &Epoch, seconds: Option<f64>, is_last: bool) -> String {
        let width = self.epochs.to_string().len();
        let mut line = format!("epoch {number:width$}/{}  {epoch}", self.epochs);
        let _ = match seconds {
            None => Ok(()),
            Some(seconds) if is_last => write!(line, "  {}", format_duration(seconds)),
            Some(seconds) => {
                let left = seconds / self.n_epochs_done as f64 * (self.epochs - number) as f64;
                write!(line, "  {} left", format_duration(left))
            }
        };
        line
    }
}

/// Returns the last line of a training run that a callback ended: `stopped by a callback after epoch 12: 2.9 s`. Without a clock, the time is
/// missing.
fn stop_line(number: u64, seconds: Option<f64>) -> String {
    let time = seconds.map_or_else(String::new, |seconds| format!(": {}", format_duration(seconds)));
    format!("stopped by a callback after epoch {number}{time}")
}

/// Returns a duration as text: `0.5 s`, `42 s`, `3 min 10 s`, `2 h 5 min`.
fn format_duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Scores;

    /// An output whose writes fail with this kind of error, as if the disk were full or the output were closed.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(self.0))
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::from(self.0))
        }
    }

    #[test]
    fn an_output_that_fails_is_reported_once_and_never_a_panic() {
        for (kind, expected) in [
            (
                io::ErrorKind::StorageFull,
                "the training continues, but its progress cannot be written: no storage space\n",
            ),
            (io::ErrorKind::BrokenPipe, ""),
        ] {
            let (mut reporter, mut errors) = (Reporter::new(Progress::Lines, 20), Vec::new());
            for _ in 0..2 {
                reporter.print("epoch", &mut Failing(kind), &mut errors);
            }
            assert_eq!(String::from_utf8(errors).unwrap(), expected);
            // The output and the output for errors may both fail. The program then continues without a display.
            Reporter::new(Progress::Lines, 1).print("epoch", &mut Failing(kind), &mut Failing(kind));
        }
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        Reporter::new(Progress::Lines, 1).print("epoch", &mut output, &mut errors);
        assert_eq!((&output[..], &errors[..]), (&b"epoch\n"[..], &b""[..]));
    }

    #[test]
    fn lines_estimate_the_remaining_time() {
        let mut reporter = Reporter::new(Progress::Lines, 20);
        reporter.n_epochs_done = 2;
        let train = Scores { loss: 0.5, metrics: Vec::new() };
        let epoch = Epoch { lr: 0.1, train, validation: None };
        assert_eq!(reporter.epoch_line(2, &epoch, Some(10.0), false), "epoch  2/20  loss 0.5000  1 min 30 s left");
        assert_eq!(reporter.epoch_line(2, &epoch, None, false), "epoch  2/20  loss 0.5000");
        assert_eq!(reporter.epoch_line(20, &epoch, Some(7530.0), true), "epoch 20/20  loss 0.5000  2 h 5 min");
        // The training stops early.
        assert_eq!(reporter.epoch_line(9, &epoch, Some(12.0), true), "epoch  9/20  loss 0.5000  12 s");
        // A callback ends the training.
        assert_eq!(stop_line(9, Some(12.0)), "stopped by a callback after epoch 9: 12 s");
        assert_eq!(stop_line(9, None), "stopped by a callback after epoch 9");
        assert_eq!(
            [format_duration(0.04), format_duration(9.4), format_duration(59.7)],
            ["0.0 s", "9.4 s", "1 min 0 s"]
        );
    }

    /// Returns an epoch with validation and with these metrics.
    fn epoch(metrics: &[&str]) -> Epoch {
        let scores =
            |loss, value| Scores { loss, metrics: metrics.iter().map(|&name| (name.to_owned(), value)).collect() };
        Epoch { lr: 0.1, train: scores(0.381_92, 0.989_61), validation: Some(scores(0.358_14, 0.991_1)) }
    }

    #[test]
    fn a_line_with_one_metric_fits_into_80_columns() {
        let line = |epochs, number, epoch: &Epoch, seconds| {
            let reporter = Reporter { n_epochs_done: 1, ..Reporter::new(Progress::Lines, epochs) };
            reporter.epoch_line(number, epoch, Some(seconds), false)
        };
        let usual = line(30, 12, &epoch(&["accuracy"]), 0.25);
        assert_eq!(usual, "epoch 12/30  loss 0.3819 / 0.3581  accuracy 0.9896 / 0.9911  4.5 s left");
        // A line has at most 80 characters, also with the longest times, many epochs, a metric with a longer name, or a huge loss.
        let huge = Scores { loss: 1.25e9, metrics: Vec::new() };
        let huge = Epoch { lr: 0.1, train: huge.clone(), validation: Some(huge) };
        for line in [
            usual,
            line(300, 12, &epoch(&["accuracy"]), 2.6),
            line(300, 12, &epoch(&["accuracy"]), 240.0),
            line(100_000, 99_990, &epoch(&["accuracy"]), 1.0),
            line(30, 12, &epoch(&["accuracy of 5"]), 1.0),
            line(1_000_000_000, 1, &huge, 1.0),
        ] {
            assert!(line.chars().count() <= 80, "{line}");
        }
        // The scores of two metrics with short names fit into 80 characters, but not together with the time.
        let two = line(30, 12, &epoch(&["accuracy", "f1"]), 0.25);
        let scores = two.strip_suffix("  4.5 s left").unwrap();
        assert_eq!(scores.chars().count(), 79, "{two}");
    }

    #[test]
    fn the_first_line_of_a_training_with_validation_has_a_header() {
        let text = |n_epochs_done, epoch: &Epoch| {
            Reporter { n_epochs_done, ..Reporter::new(Progress::Lines, 9) }.epoch_text(
                n_epochs_done,
                epoch,
                None,
                false,
            )
        };
        let (with, without) = (epoch(&[]), Epoch { validation: None, ..epoch(&[]) });
        assert_eq!(text(1, &with), "values: training data / validation data\nepoch 1/9  loss 0.3819 / 0.3581");
        assert_eq!(text(2, &with), "epoch 2/9  loss 0.3819 / 0.3581");
        assert_eq!(text(1, &without), "epoch 1/9  loss 0.3819");
    }

    /// A terminal of this width that holds its lines and the position of the cursor.
    #[cfg(feature = "progress")]
    #[derive(Clone, Debug)]
    struct Screen {
        width: u16,
        lines: std::sync::Arc<std::sync::Mutex<(Vec<String>, usize)>>,
    }

    #[cfg(feature = "progress")]
    impl Screen {
        fn new(width: u16) -> Self {
            Screen { width, lines: std::sync::Arc::new(std::sync::Mutex::new((vec![String::new()], 0))) }
        }

        /// Writes text at the end of the cursor's line. Text beyond the width goes to the next line.
        fn write(&self, text: &str, line_break: bool) {
            let (lines, row) = &mut *self.lines.lock().unwrap();
            for letter in text.chars() {
                if lines[*row].chars().count() == usize::from(self.width) {
                    *row += 1;
                }
                lines.resize_with(lines.len().max(*row + 1), String::new);
                lines[*row].push(letter);
            }
            *row += usize::from(line_break);
            lines.resize_with(lines.len().max(*row + 1), String::new);
        }

        /// Returns the text on the screen, without the padding at the ends of lines.
        fn text(&self) -> String {
            let lines: Vec<String> =
                self.lines.lock().unwrap().0.iter().map(|line| line.trim_end().to_owned()).collect();
            lines.join("\n").trim_end().to_owned()
        }
    }

    #[cfg(feature = "progress")]
    impl indicatif::TermLike for Screen {
        fn width(&self) -> u16 {
            self.width
        }

        // `indicatif` shows no line beyond the height.
        fn height(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, n: usize) -> io::Result<()> {
            self.lines.lock().unwrap().1 -= n;
            Ok(())
        }

        fn move_cursor_down(&self, n: usize) -> io::Result<()> {
            self.lines.lock().unwrap().1 += n;
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write(text, true);
            Ok(())
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.write(text, false);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            let (lines, row) = &mut *self.lines.lock().unwrap();
            lines[*row].clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[cfg(feature = "progress")]
    #[test]
    fn the_bar_is_drawn_and_removed_on_terminals_of_any_width() {
        for width in [1, 20, 41, 80, 200] {
            let mut reporter = Reporter::new(Progress::Bar, 30);
            reporter.start_epoch(12, 9);
            let screen = Screen::new(width);
            let bar = reporter.bar.as_ref().unwrap();
            bar.set_draw_target(indicatif::ProgressDrawTarget::term_like(Box::new(screen.clone())));
            for _ in 0..4 {
                reporter.finish_batch(0.5);
            }
            // A narrow terminal breaks the line, but shows all of its text.
            let text = screen.text().replace('\n', "");
            for part in ["epoch12/30", "4/9", "loss0.5000", "left"] {
                assert!(text.replace(' ', "").contains(part), "{width}: {text}");
            }
            if width >= 80 {
                assert!(!screen.text().contains('\n'), "{width}: {}", screen.text());
            }
            reporter.bar.take().unwrap().finish_and_clear();
            assert_eq!(screen.text(), "", "{width}");
        }
    }
}
