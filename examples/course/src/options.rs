//! Command-line options: `--seed` and `--out` for every example, and the options of each example.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use lexopt::prelude::*;

use crate::Result;

/// The options of an example.
pub struct Options {
    name: &'static str,
    about: &'static str,
    own: Vec<OwnOption>,
    seed: u64,
    out: PathBuf,
}

struct OwnOption {
    name: &'static str,
    help: &'static str,
    value: String,
}

impl Options {
    /// Makes the options `--seed` and `--out` of the example `name`; `about` describes the example.
    pub fn new(name: &'static str, about: &'static str) -> Self {
        Options { name, about, own: Vec::new(), seed: 0, out: ["out", name].iter().collect() }
    }

    /// Adds an option with its default.
    #[must_use]
    pub fn option(mut self, name: &'static str, default: impl ToString, help: &'static str) -> Self {
        self.own.push(OwnOption { name, help, value: default.to_string() });
        self
    }

    /// Returns the seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the path of an output file and makes its folder.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        fs::create_dir_all(&self.out).map_err(|error| format!("{}: {error}", self.out.display()))?;
        Ok(self.out.join(name))
    }

    /// Writes a file into the folder of the example and prints its path.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result {
        let path = self.file(name)?;
        fs::write(&path, contents).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
        Ok(())
    }

    /// Returns the value of an option of the example.
    ///
    /// # Errors
    ///
    /// If it cannot be read as a `V`.
    pub fn get<V: FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<V> {
        let option = self.own.iter().find(|option| option.name == name).ok_or_else(|| format!("no option --{name}"))?;
        option.value.parse().map_err(|error| format!("--{name} {}: {error}", option.value).into())
    }

    /// Returns the option `epochs`.
    ///
    /// # Errors
    ///
    /// If it is not a number or is 0.
    pub fn epochs(&self) -> Result<u32> {
        match self.get("epochs")? {
            0 => Err("--epochs 0: expected 1 or more".into()),
            epochs => Ok(epochs),
        }
    }

    fn usage(&self) -> String {
        let mut lines = format!("{}\n\nUsage: {} [OPTIONS]\n\nOptions:\n", self.about, self.name);
        let mut line = |option: &str, help: &str| lines.push_str(&format!("      {option:<24} {help}\n"));
        for OwnOption { name, help, value } in &self.own {
            let default = if value.is_empty() { String::new() } else { format!(" [default: {value}]") };
            line(&format!("--{name} <VALUE>"), &format!("{help}{default}"));
        }
        line("--seed <SEED>", "Seed of all random numbers [default: 0]");
        line("--out <DIR>", &format!("Folder for the output [default: {}]", self.out.display()));
        lines + "  -h, --help                   Print help"
    }

    /// Reads the command line. Returns false if it asks for help.
    fn read(&mut self) -> std::result::Result<bool, lexopt::Error> {
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(false),
                Long("seed") => self.seed = parser.value()?.parse()?,
                Long("out") => self.out = parser.value()?.into(),
                Long(name) => match self.own.iter_mut().find(|option| option.name == name) {
                    Some(option) => option.value = parser.value()?.string()?,
                    None => return Err(argument.unexpected()),
                },
                other => return Err(other.unexpected()),
            }
        }
        Ok(true)
    }
}

/// Reads the options and runs the example. The exit code is 1 if the example fails, and 2 if the command line is wrong.
pub fn run(mut options: Options, example: impl FnOnce(&Options) -> Result) -> ExitCode {
    let usage = options.usage();
    match options.read() {
        Ok(true) => match example(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Ok(false) => {
            println!("{usage}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{usage}");
            ExitCode::from(2)
        }
    }
}
