//! An HTML page about a training run: a single file that loads nothing from the network.

use std::fmt::Write as _;
use std::path::Path;

use wengert_tensor::{Float, Tensor};

use super::images::image_grid;
use super::matrix::confusion_matrix;
use super::style::escape_markup;
use crate::Result;
use crate::file::write_atomically;
use crate::history::History;
use crate::metrics::{ConfusionMatrix, Mistake};

/// An HTML page about a training run. Methods add its parts; [`save`](Self::save) writes it.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::plots::Page;
/// use wengert::nn::{Epoch, History, Scores};
///
/// let mut history = History::default();
/// let scores = |loss| Scores { loss, metrics: vec![("accuracy".to_owned(), 1.0 - loss)] };
/// for k in 1..=20 {
///     let loss = 1.0 / f64::from(k);
///     history.push(Epoch { lr: 0.1, train: scores(loss), validation: Some(scores(1.1 * loss)) });
/// }
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.html");
/// Page::new("Digits")
///     .settings(&[("model", "64, 128, 10".to_owned()), ("seed", 7.to_string())])
///     .history(&history)?
///     .save(&path)?;
/// assert!(std::fs::read_to_string(&path)?.contains("Loss per epoch"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a page is written by `save`"]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Returns a page with a title.
    pub fn new(title: &str) -> Self {
        Page { title: title.to_owned(), body: String::new() }
    }

    /// Adds a table of the settings of the training: a name and a value in each row.
    pub fn settings(mut self, settings: &[(&str, String)]) -> Self {
        self.body += "<h2>Settings</h2>\n<table>\n";
        for (name, value) in settings {
            let _ = writeln!(self.body, "<tr><th>{}</th><td>{}</td></tr>", escape_markup(name), escape_markup(value));
        }
        self.body += "</table>\n";
        self
    }

    /// Adds a table of the last epoch, and curves of the loss and of each metric. Adds nothing for an empty history.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`](crate::Error::Plot) if the drawing library fails.
    pub fn history(mut self, history: &History) -> Result<Self> {
        let Some(last) = history.last() else { return Ok(self) };
        let names: Vec<&str> =
            ["loss"].into_iter().chain(last.train.metrics.iter().map(|(name, _)| &name[..])).collect();
        let epochs = history.epochs().len();
        let _ = writeln!(self.body, "<h2>After {epochs} epoch{}</h2>\n<table>", if epochs == 1 { "" } else { "s" });
        self.body += "<tr><th></th><th>train</th><th>validation</th></tr>\n";
        for name in &names {
            let shown = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
            let validation = last.validation.as_ref().and_then(|scores| scores.get(name));
            let (train, validation) = (shown(last.train.get(name)), shown(validation));
            let _ =
                writeln!(self.body, "<tr><th>{}</th><td>{train}</td><td>{validation}</td></tr>", escape_markup(name));
        }
        self.body += "</table>\n";
        for (position, name) in names.into_iter().enumerate() {
            self.body += &if position == 0 { history.loss_curve()? } else { history.curve(name)? };
        }
        Ok(self)
    }

    /// Adds a confusion matrix and the scores of each class. A class without a name is shown by its index.
    pub fn confusion(mut self, confusion: &ConfusionMatrix, names: &[&str]) -> Self {
        let _ = writeln!(self.body, "<h2>Confusion matrix</h2>\n{}<table>", confusion_matrix(confusion, names));
        self.body += "<tr><th>class</th><th>precision</th><th>recall</th><th>F1</th><th>samples</th></tr>\n";
        for (class, scores) in confusion.by_class().iter().enumerate() {
            let name = escape_markup(&class_name(names, class));
            let numbers = [scores.precision, scores.recall, scores.f1].map(|x| format!("<td>{x:.3}</td>")).concat();
            let _ = writeln!(self.body, "<tr><th>{name}</th>{numbers}<td>{}</td></tr>", scores.support);
        }
        self.body += "</table>\n";
        self
    }

    /// Adds the images of mistakes, `[mistakes, c, h, w]`, in the order of `mistakes`, each with its class and its prediction below. A
    /// class without a name is shown by its index. If there are no mistakes, nothing is added.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::metrics::worst_mistakes;
    /// use wengert::nn::plots::Page;
    /// use wengert::prelude::*;
    ///
    /// let images = Tensor::from_fn([3, 1, 8, 8], |i| (i[0] + i[2] * i[3]) as f32);
    /// let logits = Tensor::from([[2.0, 1.0], [1.0, 5.0], [0.0, 3.0]]);
    /// let mistakes = worst_mistakes(&logits, &Tensor::from([1, 0, 1]), 10)?;
    /// let samples: Vec<i64> = mistakes.iter().map(|mistake| mistake.sample as i64).collect();
    /// let images = images.index_select(0, &Tensor::from(samples));
    /// let page = Page::new("Pets").mistakes(&images, &mistakes, &["cat", "dog"])?;
    /// assert!(page.to_html().contains("cat as dog"));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the images are not `[n, 1, h, w]` or `[n, 3, h, w]`, or there is not enough memory.
    pub fn mistakes<T: Float>(self, images: &Tensor<T>, mistakes: &[Mistake], names: &[&str]) -> Result<Self> {
        if mistakes.is_empty() {
            return Ok(self);
        }
        let name = |class| class_name(names, class);
        let captions =
            mistakes.iter().map(|mistake| format!("{} as {}", name(mistake.target), name(mistake.prediction)));
        let captions: Vec<String> = captions.collect();
        let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
        self.images("Worst mistakes", images, &captions)
    }

    /// Adds images and their captions below a heading, as [`image_grid`](super::image_grid()) draws them.
    ///
    /// # Errors
    ///
    /// If the images are not `[n, 1, h, w]` or `[n, 3, h, w]`, or there is not enough memory.
    pub fn images<T: Float>(self, heading: &str, images: &Tensor<T>, captions: &[&str]) -> Result<Self> {
        Ok(self.picture(heading, &image_grid(images, captions, 8)?))
    }

    /// Adds an SVG image below a heading.
    pub fn picture(mut self, heading: &str, svg: &str) -> Self {
        let _ = writeln!(self.body, "<h2>{}</h2>\n{svg}", escape_markup(heading));
        self
    }

    /// Returns the page as HTML.
    pub fn to_html(&self) -> String {
        let Page { title, body } = self;
        let title = escape_markup(title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n{body}</body>\n</html>\n"
        )
    }

    /// Writes the page to a file, completely or not at all (see [`write_atomically`]).
    ///
    /// # Errors
    ///
    /// If the file cannot be written: [`Error::Write`](crate::Error::Write).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, self.to_html().as_bytes())
    }
}

/// Returns the name of a class, or its index if there is no name.
fn class_name(names: &[&str], class: usize) -> String {
    names.get(class).map_or_else(|| class.to_string(), |name| (*name).to_owned())
}

/// The style sheet of the page.
const STYLE: &str = "\
body { font-family: sans-serif; color: #3c3c3c; max-width: 860px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.7em; }
h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #e8e8e8; padding-bottom: 0.3em; }
svg { display: block; max-width: 100%; height: auto; margin: 1em 0; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { text-align: left; padding: 0.25em 1.2em 0.25em 0; border-bottom: 1px solid #e8e8e8; font-size: 0.95em; }
th { font-weight: 600; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_page_is_escaped_and_nothing_is_loaded() {
        let html = Page::new("<run> & more")
            .settings(&[("lr", "0.1".to_owned()), ("note", "<script>".to_owned())])
            .history(&History::default())
            .unwrap()
            .confusion(&ConfusionMatrix::new(2), &["a", "b"])
            .images("Mistakes", &Tensor::<f32>::zeros([2, 1, 4, 4]), &["!3 for 5", "x"])
            .unwrap()
            .to_html();
        assert!(html.contains("<title>&lt;run&gt; &amp; more</title>") && !html.contains("<script>"));
        assert!(html.contains("<h2>Mistakes</h2>") && html.contains(">3 for 5</text>"));
        let mistake = |target, prediction| Mistake { sample: 0, target, prediction, loss: 1.0 };
        let page =
            Page::new("").mistakes(&Tensor::<f32>::zeros([2, 3, 4, 4]), &[mistake(0, 1), mistake(2, 0)], &["<a>", "b"]);
        let page = page.unwrap().to_html();
        assert!(page.contains(">&lt;a&gt; as b</text>") && page.contains(">2 as &lt;a&gt;</text>"), "{page}");
        assert_eq!(
            Page::new("").mistakes(&Tensor::<f32>::zeros([0]), &[], &[]).unwrap().to_html(),
            Page::new("").to_html()
        );
        // The page contains no address except the name of the SVG format, which browsers do not load.
        assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
    }
}
