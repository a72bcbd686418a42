//! The history of a training run, epoch by epoch.

use std::fmt::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::data::read_plain_text;
use crate::error::Place;
use crate::file::write_atomically;
use crate::{Error, Result};

/// The scores on a data set: the mean loss and the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The mean loss over the samples.
    pub loss: f64,
    /// The name and value of each metric, in the order in which the training computes them. [`History::read`] sorts them by name.
    pub metrics: Vec<(String, f64)>,
}

impl Scores {
    /// Returns the loss if `name` is `loss`, or the metric with this name, or `None` if there is no such metric.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::Scores;
    ///
    /// let scores = Scores { loss: 0.5, metrics: vec![("accuracy".to_owned(), 0.75)] };
    /// assert_eq!((scores.get("loss"), scores.get("accuracy"), scores.get("f1")), (Some(0.5), Some(0.75), None));
    /// ```
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "loss" => Some(self.loss),
            _ => self.metrics.iter().find(|(other, _)| other == name).map(|(_, value)| *value),
        }
    }

    /// Returns the scores as a JSON object that has the loss and each metric by name.
    fn to_json(&self) -> Value {
        let metrics = self.metrics.iter().map(|(name, value)| (name.clone(), json!(value)));
        // The last of equal names counts, so that a metric named "loss" does not replace the loss.
        Value::Object(metrics.chain([("loss".to_owned(), json!(self.loss))]).collect())
    }

    /// Reads scores from a JSON object of a saved history, or returns a description of the problem. `object_name` is the name of
    /// the object in this description.
    fn from_json(object: &Map<String, Value>, object_name: &str) -> std::result::Result<Self, String> {
        let number = |name: &str| {
            number_field(object, name).ok_or_else(|| expected_number(&format!("{name}' in '{object_name}")))
        };
        let metrics = object.keys().filter(|name| *name != "loss");
        let metrics =
            metrics.map(|name| Ok((name.clone(), number(name)?))).collect::<std::result::Result<_, String>>()?;
        Ok(Scores { loss: number("loss")?, metrics })
    }
}

/// Returns the number `name` of a saved history, or `None` if it is missing or not a number. A number that was not finite is `null` in JSON and
/// becomes NaN.
fn number_field(object: &Map<String, Value>, name: &str) -> Option<f64> {
    match object.get(name)? {
        Value::Null => Some(f64::NAN),
        value => value.as_f64(),
    }
}

/// Returns the description of the problem that `name` is missing or not a number.
fn expected_number(name: &str) -> String {
    format!("expected a number or null as '{name}'")
}

/// The results of one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// The learning rate at the end of the epoch.
    pub lr: f64,
    /// The scores on the training samples.
    pub train: Scores,
    /// The scores on the validation samples, or `None` if the epoch had no validation.
    pub validation: Option<Scores>,
}

/// Writes each score as a pair of the training value and the validation value: `loss 0.1234 / 0.2345  accuracy 0.9876 / 0.9765`. Without
/// validation it writes the training values: `loss 0.1234  accuracy 0.9876`. A value whose absolute value is below 10 has four decimals.
/// Larger values have fewer decimals, and from 100,000 on an exponent.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.train.metrics.iter().map(|(name, _)| &name[..]);
        for (position, name) in ["loss"].into_iter().chain(names).enumerate() {
            let gap = if position == 0 { "" } else { "  " };
            write!(f, "{gap}{name} {}", format_score(self.train.get(name).unwrap_or(f64::NAN)))?;
            if let Some(value) = self.validation.as_ref().and_then(|scores| scores.get(name)) {
                write!(f, " / {}", format_score(value))?;
            }
        }
        Ok(())
    }
}

/// Returns a value as text, rounded to five significant digits, but at most four decimals: `0.1235`, `12.346`, `1.2346e7`.
fn format_score(value: f64) -> String {
    let size = value.abs();
    if size >= 1e5 {
        return format!("{value:.4e}");
    }
    let decimals = [1e4, 1e3, 1e2, 10.0].iter().filter(|&&limit| size < limit).count();
    format!("{value:.decimals$}")
}

/// The results of a training run, epoch by epoch.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Epoch, History, Scores};
///
/// let mut history = History::default();
/// for k in 1..=20 {
///     let train = Scores { loss: 1.0 / f64::from(k), metrics: Vec::new() };
///     history.push(Epoch { lr: 0.1, train, validation: None });
/// }
/// assert_eq!(history.last().unwrap().train.loss, 0.05);
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.jsonl");
/// history.save(&path)?;
/// assert_eq!(History::read(&path)?, history);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The cargo feature `plots` adds the methods `loss_curve`, `save_loss_curve` and `curve`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub(crate) epochs: Vec<Epoch>,
}

impl History {
    /// Adds an epoch at the end.
    pub fn push(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
    }

    /// Returns all epochs, in order.
    pub fn epochs(&self) -> &[Epoch] {
        &self.epochs
    }

    /// Returns the last epoch, or `None` if the history is empty.
    pub fn last(&self) -> Option<&Epoch> {
        self.epochs.last()
    }

    /// Keeps the first `count` epochs, and removes the epochs after them.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.epochs.truncate(count);
    }

    /// Returns the history with the metrics of each epoch sorted into the order of `names`.
    pub(crate) fn with_metric_order(mut self, names: &[&str]) -> Self {
        for epoch in &mut self.epochs {
            for scores in [Some(&mut epoch.train), epoch.validation.as_mut()].into_iter().flatten() {
                scores.metrics.sort_by_key(|(name, _)| names.iter().position(|other| other == name));
            }
        }
        self
    }

    /// Writes a line of JSON for each epoch: `{"epoch":1,"lr":0.1,"train":{"loss":0.5},"validation":{"loss":0.6}}`. A value that is not
    /// finite becomes `null`. The file is written completely or not at all (see [`write_atomically`]).
    ///
    /// # Errors
    ///
    /// If the file cannot be written: [`Error::Write`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, self.to_lines().as_bytes())
    }

    /// Returns the text that [`save`](Self::save) writes to the file.
    fn to_lines(&self) -> String {
        let mut text = String::new();
        for (number, Epoch { lr, train, validation }) in (1..).zip(&self.epochs) {
            let number: u64 = number;
            let mut line = json!({ "epoch": number, "lr": lr, "train": train.to_json() });
            if let Some(validation) = validation {
                line["validation"] = validation.to_json();
            }
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Reads a file that [`save`](Self::save) wrote. Finite values keep their bits. Metrics are in alphabetical order. The memory that reading
    /// needs is proportional to the size of the file.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] if the file cannot be read. [`Error::Malformed`] if it is not text in UTF-8, or if line n does not describe epoch n.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        History::from_file(path.as_ref())
    }

    fn from_file(path: &Path) -> Result<Self> {
        let mut history = History::default();
        for (number, line) in (1..).zip(read_plain_text(path)?.lines()) {
            let malformed =
                |problem: String| Error::Malformed { path: path.to_owned(), place: Place::Line(number), problem };
            let line: Value =
                serde_json::from_str(line).map_err(|error| malformed(format!("expected JSON: {error}")))?;
            history.push(parse_epoch(&line, number).map_err(malformed)?);
        }
        Ok(history)
    }
}

/// Returns the epoch with this number from its line of a saved history, or a description of the problem.
fn parse_epoch(line: &Value, number: u64) -> std::result::Result<Epoch, String> {
    let (Some(object), Some(train)) = (line.as_object(), line["train"].as_object()) else {
        return Err("expected an epoch, {\"epoch\":…,\"lr\":…,\"train\":{…}}".to_owned());
    };
    if line["epoch"].as_u64() != Some(number) {
        return Err(format!("expected epoch {number}, found epoch {}", line["epoch"]));
    }
    let validation = match &line["validation"] {
        Value::Null => None,
        Value::Object(scores) => Some(Scores::from_json(scores, "validation")?),
        _ => return Err("expected an object of scores as 'validation'".to_owned()),
    };
    let lr = number_field(object, "lr").ok_or_else(|| expected_number("lr"))?;
    Ok(Epoch { lr, train: Scores::from_json(train, "train")?, validation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_history_is_read_back_and_wrong_lines_are_errors() {
        let scores = |loss| Scores { loss, metrics: vec![("accuracy".to_owned(), 1.0 / 11.0)] };
        let epoch = Epoch { lr: 0.1, train: scores(1.0 / 3.0), validation: Some(scores(1e-300)) };
        assert_eq!(epoch.to_string(), "loss 0.3333 / 0.0000  accuracy 0.0909 / 0.0909");
        assert_eq!(Epoch { validation: None, ..epoch.clone() }.to_string(), "loss 0.3333  accuracy 0.0909");
        let mut history = History { epochs: vec![epoch.clone(), epoch] };
        let file = tempfile::NamedTempFile::new().unwrap();
        history.save(&file).unwrap();
        assert_eq!(History::read(&file).unwrap(), history);
        // A program can push scores of any name. A metric named "loss" does not replace the loss in the file.
        let mut named = history.clone();
        named.epochs[0].train.metrics = vec![("loss".to_owned(), 7.0)];
        named.save(&file).unwrap();
        assert_eq!(History::read(&file).unwrap().epochs()[0].train, Scores { loss: 1.0 / 3.0, metrics: vec![] });
        history.epochs[1].train.loss = f64::INFINITY;
        history.save(&file).unwrap();
        assert!(History::read(&file).unwrap().last().unwrap().train.loss.is_nan());
        // `read` does not decompress a file. So the memory that it needs is limited by the size of the file.
        std::fs::write(&file, [0x1f, 0x8b, 8, 0]).unwrap();
        let text = History::read(&file).unwrap_err().to_string();
        assert!(text.ends_with("byte 1: it is not text in UTF-8"), "{text}");
        for (line, expected) in [("{", "line 2: expected JSON: "), ("[1]", "line 2: expected an epoch, ")] {
            std::fs::write(&file, format!("{{\"epoch\":1,\"lr\":1,\"train\":{{\"loss\":1}}}}\n{line}\n")).unwrap();
            let text = History::read(&file).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_value_of_any_size_is_short() {
        for (value, expected) in [
            (0.0, "0.0000"),
            (-0.25, "-0.2500"),
            (9.876_54, "9.8765"),
            (12.345_67, "12.346"),
            (123.456_7, "123.46"),
            (1234.567, "1234.6"),
            (99_999.4, "99999"),
            (123_456.7, "1.2346e5"),
            (-1e300, "-1.0000e300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(format_score(value), expected);
        }
        assert_eq!(format_score(f64::NAN), "NaN");
    }

    #[test]
    fn lines_that_are_no_epochs_are_errors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let good = r#"{"epoch":1,"lr":0.1,"train":{"accuracy":null,"loss":null},"validation":{"loss":2}}"#;
        for (line, problem) in [
            (r#"{"epoch":2,"lr":0.1,"train":{}}"#, "'loss' in 'train'"),
            (r#"{"epoch":2,"lr":0.1,"train":{"loss":"x"}}"#, "'loss' in 'train'"),
            (r#"{"epoch":2,"lr":0.1,"train":{"loss":1,"accuracy":[]}}"#, "'accuracy' in 'train'"),
            (r#"{"epoch":2,"lr":"x","train":{"loss":1}}"#, "'lr'"),
            (r#"{"epoch":2,"train":{"loss":1}}"#, "'lr'"),
            (r#"{"epoch":2,"lr":0.1,"train":{"loss":1},"validation":5}"#, "'validation'"),
            (r#"{"epoch":2,"lr":0.1,"train":{"loss":1},"validation":{}}"#, "'loss' in 'validation'"),
            (r#"{"epoch":3,"lr":0.1,"train":{"loss":1}}"#, "epoch 2"),
            (r#"{"lr":0.1,"train":{"loss":1}}"#, "epoch 2"),
            ("5", "an epoch"),
        ] {
            std::fs::write(&file, format!("{good}\n{line}\n")).unwrap();
            let text = History::read(&file).map(|_| ()).unwrap_err().to_string();
            assert!(text.contains("line 2: expected ") && text.contains(problem), "{line}: {text}");
        }
        std::fs::write(&file, good).unwrap();
        let history = History::read(&file).unwrap();
        assert!(history.epochs()[0].train.loss.is_nan() && history.epochs()[0].train.get("accuracy").unwrap().is_nan());
    }
}
