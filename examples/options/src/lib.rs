//! Command-line options: `--seed`, `--out` and `--help` for every example, and the options of each example.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::panic;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::str::FromStr;

use lexopt::prelude::*;

/// The result of an example; `?` passes any error on.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The options of an example.
pub struct Options {
    name: &'static str,
    about: &'static str,
    added: Vec<OwnOption>,
    seed: u64,
    out: PathBuf,
}

struct OwnOption {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    value: String,
}

/// The values that an option accepts.
#[derive(Clone, Copy)]
enum Kind {
    /// A whole number between two bounds.
    Count([usize; 2]),
    /// A finite number of at least 0.
    Number,
    /// A finite number above 0 that f32 does not round to 0.
    Positive,
    /// Any text. The help does not show its default.
    Text,
    /// An option without a value.
    Flag,
}

impl Kind {
    fn accepts(self, value: &str) -> bool {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        match self {
            Kind::Count([least, most]) => value.parse().is_ok_and(|count: usize| (least..=most).contains(&count)),
            Kind::Number => number.is_some_and(|number| number >= 0.0),
            Kind::Positive => number.is_some_and(|number| number > 0.0 && number as f32 > 0.0),
            Kind::Text | Kind::Flag => true,
        }
    }

    /// Returns the word that stands for the option's value in the help.
    fn word(self) -> &'static str {
        match self {
            Kind::Count(_) => " <COUNT>",
            Kind::Number | Kind::Positive => " <NUMBER>",
            Kind::Text => " <TEXT>",
            Kind::Flag => "",
        }
    }
}

/// Writes a description such as `a count of 1 or more`, for the error about a value of another kind.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Count([0, usize::MAX]) => write!(f, "a count"),
            Kind::Count([least, usize::MAX]) => write!(f, "a count of {least} or more"),
            Kind::Count([least, most]) => write!(f, "a count from {least} to {most}"),
            Kind::Number => write!(f, "a number of 0 or more"),
            Kind::Positive => write!(f, "a number above 0"),
            Kind::Text | Kind::Flag => write!(f, "a text"),
        }
    }
}

/// The width of the help, in characters.
const WIDTH: usize = 78;
/// The column at which the explanations of the help begin.
const COLUMN: usize = 30;

impl Options {
    /// Makes the options `--seed` and `--out` of the example `name`; `about` describes the example.
    pub fn new(name: &'static str, about: &'static str) -> Self {
        Options { name, about, added: Vec::new(), seed: 0, out: ["out", name].iter().collect() }
    }

    /// Adds an option whose value is a count of 1 or more.
    #[must_use]
    pub fn count(self, name: &'static str, default: usize, help: &'static str) -> Self {
        self.count_in(name, default, [1, usize::MAX], help)
    }

    /// Adds an option whose value is a count between two bounds.
    #[must_use]
    pub fn count_in(self, name: &'static str, default: usize, bounds: [usize; 2], help: &'static str) -> Self {
        self.option(name, Kind::Count(bounds), default, help)
    }

    /// Adds an option whose value is a number of 0 or more.
    #[must_use]
    pub fn number(self, name: &'static str, default: f64, help: &'static str) -> Self {
        self.option(name, Kind::Number, default, help)
    }

    /// Adds an option whose value is a number above 0.
    #[must_use]
    pub fn positive(self, name: &'static str, default: f64, help: &'static str) -> Self {
        self.option(name, Kind::Positive, default, help)
    }

    /// Adds an option whose value is a text, such as a path. `help` says what the default is.
    #[must_use]
    pub fn text(self, name: &'static str, default: &str, help: &'static str) -> Self {
        self.option(name, Kind::Text, default, help)
    }

    /// Adds an option without a value, such as `--resume`.
    #[must_use]
    pub fn flag(self, name: &'static str, help: &'static str) -> Self {
        self.option(name, Kind::Flag, false, help)
    }

    fn option(mut self, name: &'static str, kind: Kind, default: impl ToString, help: &'static str) -> Self {
        self.added.push(OwnOption { name, help, kind, value: default.to_string() });
        self
    }

    /// Returns the seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the folder of the example's files, `out/NAME` or the value of `--out`, and makes it.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub fn folder(&self) -> Result<PathBuf> {
        fs::create_dir_all(&self.out).map_err(|error| format!("{}: {error}", self.out.display()))?;
        Ok(self.out.clone())
    }

    /// Returns the path of a file in the folder of the example, and makes the folder.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        Ok(self.folder()?.join(name))
    }

    /// Writes a file into the folder of the example and prints its path.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made, or the file cannot be written.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result {
        let path = self.file(name)?;
        fs::write(&path, contents).map_err(|error| format!("{}: {error}", path.display()))?;
        // `println` would panic if the output is closed, as by `| head -1`.
        let _ = writeln!(io::stdout(), "wrote {}", path.display());
        Ok(())
    }

    /// Returns the value of an option of the example.
    ///
    /// # Panics
    ///
    /// If the example has no option of this name and type. The command line cannot cause this, because its values are
    /// checked when they are read.
    pub fn get<V: FromStr>(&self, name: &str) -> V {
        let option = self.added.iter().find(|option| option.name == name);
        option.and_then(|option| option.value.parse().ok()).unwrap_or_else(|| panic!("no option --{name} of this type"))
    }

    fn usage(&self) -> String {
        let mut text = wrapped(0, self.about) + &format!("\nUsage: {} [OPTIONS]\n\nOptions:\n", self.name);
        let mut line = |option: &str, help: &str| {
            text.push_str(&format!("{option:<0$}", COLUMN - 1));
            text.push_str(&wrapped(COLUMN, &format!(" {help}")).as_str()[COLUMN - 1..]);
        };
        for OwnOption { name, help, kind, value } in &self.added {
            let shows_default = matches!(kind, Kind::Count(_) | Kind::Number | Kind::Positive);
            let default = if shows_default { format!(" [default: {value}]") } else { String::new() };
            line(&format!("      --{name}{}", kind.word()), &format!("{help}{default}"));
        }
        line("      --seed <COUNT>", "Seed of all random numbers [default: 0]");
        line("      --out <FOLDER>", &format!("Folder of the files that it writes [default: out/{}]", self.name));
        line("  -h, --help", "Print help");
        text
    }

    /// Reads the command line. Returns false if the command line asks for help, and an error for an unknown option or a
    /// wrong value.
    fn read(&mut self, mut parser: lexopt::Parser) -> std::result::Result<bool, lexopt::Error> {
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(false),
                Long("seed") => self.seed = number(&parser.value()?.string()?)?,
                Long("out") => self.out = parser.value()?.into(),
                Long(name) => match self.added.iter_mut().find(|option| option.name == name) {
                    Some(OwnOption { kind: Kind::Flag, value, .. }) => *value = true.to_string(),
                    Some(OwnOption { name, kind, value, .. }) => {
                        *value = parser.value()?.string()?;
                        if !kind.accepts(value) {
                            return Err(format!("--{name} expects {kind}, got `{value}`").into());
                        }
                    }
                    None => return Err(argument.unexpected()),
                },
                other => return Err(other.unexpected()),
            }
        }
        Ok(true)
    }
}

/// Reads the value of `--seed` as a number, or returns an error that shows the value.
fn number(value: &str) -> std::result::Result<u64, lexopt::Error> {
    value.parse().map_err(|_| format!("--seed expects {}, got `{value}`", Kind::Count([0, usize::MAX])).into())
}

/// Wraps a text into lines that begin at `column` and end before column [`WIDTH`]. A word that is too long gets a longer line.
fn wrapped(column: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && column + last + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else if let Some(line) = lines.last_mut() {
            line.push_str(if last > 0 { " " } else { "" });
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{}{line}\n", " ".repeat(column))).collect()
}

/// Sets a panic hook: when `println` or `print` panics because the output is closed, as by `| head -1`, it ends the program without a
/// message.
fn end_with_the_output() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>();
        let prints = text.is_some_and(|text| text.starts_with("failed printing to stdout"));
        if prints && writeln!(io::stdout()).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            process::exit(0);
        }
        report(info);
    }));
}

/// Reads the options and runs the example. The exit code is 1 if the example fails, and 2 if the command line is wrong. The program ends at
/// its next line if nobody reads its output any more.
pub fn run(mut options: Options, example: impl FnOnce(&Options) -> Result) -> ExitCode {
    end_with_the_output();
    match options.read(lexopt::Parser::from_env()) {
        Ok(true) => match example(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Ok(false) => {
            print!("{}", options.usage());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\n\n`{} --help` lists the options.", options.name);
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let options =
            Options::new("name", "An example of a text that is so long that it needs two lines of the help, not one");
        let options = options.count("steps", 100, "Number of steps").count_in("clusters", 5, [1, 10], "Clusters");
        let options = options.positive("lr", 0.3, "Size of a step").number("noise", 0.6, "Noise");
        options
            .text("data", "a/path", "Table of pixels, the class last, or a folder of other files [default: the digits]")
            .flag("resume", "Go on")
    }

    fn read(arguments: &[&str]) -> std::result::Result<Options, String> {
        let mut options = options();
        options.read(lexopt::Parser::from_args(arguments)).map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn values_are_read() {
        let read = read(&["--steps", "7", "--lr=0.5", "--data", "x y", "--resume", "--seed", "3"]).unwrap();
        assert_eq!((read.get::<usize>("steps"), read.get::<f64>("lr"), read.seed()), (7, 0.5, 3));
        assert_eq!((read.get::<String>("data"), read.get::<bool>("resume")), ("x y".to_owned(), true));
        assert!(!options().get::<bool>("resume"));
    }

    #[test]
    fn a_wrong_value_has_a_message_with_the_option_and_the_value() {
        for (arguments, message) in [
            (["--steps", "abc"], "--steps expects a count of 1 or more, got `abc`"),
            (["--steps", "0"], "--steps expects a count of 1 or more, got `0`"),
            (["--steps", "99999999999999999999"], "--steps expects a count of 1 or more, got `99999999999999999999`"),
            (["--clusters", "11"], "--clusters expects a count from 1 to 10, got `11`"),
            (["--lr", "0"], "--lr expects a number above 0, got `0`"),
            (["--lr", "1e-60"], "--lr expects a number above 0, got `1e-60`"),
            (["--lr", "inf"], "--lr expects a number above 0, got `inf`"),
            (["--noise", "-1"], "--noise expects a number of 0 or more, got `-1`"),
            (["--seed", "x"], "--seed expects a count, got `x`"),
            (["--resume", "now"], "unexpected argument \"now\""),
            (["--nothing", "1"], "invalid option '--nothing'"),
        ] {
            assert_eq!(read(&arguments).err().as_deref(), Some(message));
        }
        assert_eq!(read(&["--steps"]).err().as_deref(), Some("missing argument for option '--steps'"));
    }

    #[test]
    fn the_help_lists_every_option_in_short_lines() {
        let usage = options().usage();
        for text in ["--steps <COUNT> ", "Number of steps [default: 100]", "--resume", "--seed", "--out", "--help"] {
            assert!(usage.contains(text), "{usage}");
        }
        assert!(!usage.contains("a/path"));
        assert!(usage.lines().all(|line| line.chars().count() <= WIDTH), "{usage}");
    }
}
