//! Displays the progress of a training.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Instant;

use crate::history::Epoch;

/// The display of the progress of [`Fit`](crate::Fit). If the output is closed or its disk is full, the training continues without a
/// display.
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

/// The display of one training.
pub(super) struct Reporter {
    progress: Progress,
    epochs: u64,
    /// The start of the training. WebAssembly has no clock, so lines show no time there.
    started: Option<Instant>,
    done: u64,
    /// True after the output could not be written.
    failed: bool,
    #[cfg(feature = "progress")]
    bar: Option<indicatif::ProgressBar>,
}

impl Reporter {
    /// Returns a display for a training of `epochs` epochs.
    pub(super) fn new(progress: Progress, epochs: u64) -> Self {
        Reporter {
            progress,
            epochs,
            started: (!cfg!(target_family = "wasm")).then(Instant::now),
            done: 0,
            failed: false,
            #[cfg(feature = "progress")]
            bar: None,
        }
    }

    /// Shows a bar for the epoch with the number `epoch`, which has `batches` batches, if the display is
    /// [`Progress::Bar`].
    #[cfg(feature = "progress")]
    pub(super) fn begin(&mut self, epoch: u64, batches: usize) {
        if self.progress == Progress::Bar {
            let style = "epoch {prefix} {wide_bar} {pos}/{len}  {msg}  {eta} left";
            let style = indicatif::ProgressStyle::with_template(style);
            let bar = indicatif::ProgressBar::new(batches as u64).with_prefix(format!("{epoch}/{}", self.epochs));
            self.bar = Some(bar.with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar())));
        }
    }

    #[cfg(not(feature = "progress"))]
    pub(super) fn begin(&mut self, _: u64, _: usize) {}

    /// Moves the bar, if there is one, because a batch is complete. `loss` is the mean loss so far.
    #[cfg(feature = "progress")]
    pub(super) fn batch(&self, loss: f64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("loss {loss:.4}"));
            bar.inc(1);
        }
    }

    #[cfg(not(feature = "progress"))]
    pub(super) fn batch(&self, _: f64) {}

    /// Removes the bar, and prints the line of the completed epoch, except with [`Progress::Quiet`].
    pub(super) fn epoch(&mut self, number: u64, epoch: &Epoch) {
        #[cfg(feature = "progress")]
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.done += 1;
        if self.progress != Progress::Quiet {
            let line = self.line(number, epoch, self.started.map(|started| started.elapsed().as_secs_f64()));
            self.show(&line, &mut io::stdout().lock(), &mut io::stderr().lock());
        }
    }

    /// Writes a line to `output`. After the first failure it writes nothing more. The failure is reported to `errors`,
    /// unless the reader of `output` has closed it, as `head` does.
    fn show(&mut self, line: &str, output: &mut dyn Write, errors: &mut dyn Write) {
        if self.failed {
            return;
        }
        if let Err(error) = writeln!(output, "{line}").and_then(|()| output.flush()) {
            self.failed = true;
            if error.kind() != io::ErrorKind::BrokenPipe {
                let _ = writeln!(errors, "the training continues, but its progress cannot be written: {error}");
            }
        }
    }

    /// Returns the line of an epoch: `epoch  3/20   loss: train …   2.6 s, 15 s left`. Without a clock, the times are missing.
    fn line(&self, number: u64, epoch: &Epoch, seconds: Option<f64>) -> String {
        let width = self.epochs.to_string().len();
        let mut line = format!("epoch {number:width$}/{}   {epoch}", self.epochs);
        let Some(seconds) = seconds else { return line };
        let left = seconds / self.done as f64 * (self.epochs - number) as f64;
        let _ = write!(line, "   {}", duration(seconds));
        if number < self.epochs {
            let _ = write!(line, ", {} left", duration(left));
        }
        line
    }
}

/// Returns a duration as text: `0.5 s`, `42 s`, `3 min 10 s`, `2 h 5 min`.
fn duration(seconds: f64) -> String {
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
                reporter.show("epoch", &mut Failing(kind), &mut errors);
            }
            assert_eq!(String::from_utf8(errors).unwrap(), expected);
            // The output and the output for errors may both fail. The program then continues without a display.
            Reporter::new(Progress::Lines, 1).show("epoch", &mut Failing(kind), &mut Failing(kind));
        }
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        Reporter::new(Progress::Lines, 1).show("epoch", &mut output, &mut errors);
        assert_eq!((&output[..], &errors[..]), (&b"epoch\n"[..], &b""[..]));
    }

    #[test]
    fn lines_estimate_the_remaining_time() {
        let mut reporter = Reporter::new(Progress::Lines, 20);
        reporter.done = 2;
        let train = Scores { loss: 0.5, metrics: Vec::new() };
        let epoch = Epoch { lr: 0.1, train, validation: None };
        assert_eq!(reporter.line(2, &epoch, Some(10.0)), "epoch  2/20   loss: train 0.5000   10 s, 1 min 30 s left");
        assert_eq!(reporter.line(2, &epoch, None), "epoch  2/20   loss: train 0.5000");
        assert_eq!(reporter.line(20, &epoch, Some(7530.0)), "epoch 20/20   loss: train 0.5000   2 h 5 min");
        assert_eq!([duration(0.04), duration(9.4), duration(59.7)], ["0.0 s", "9.4 s", "1 min 0 s"]);
    }
}
