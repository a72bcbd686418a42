//! Tables with named columns.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Tensor};

use crate::data::csv::for_each_record;
use crate::data::rows::{check_width, parse_number};
use crate::error::Place;
use crate::{Error, Result};

/// A table with named columns. It is kept in memory as text, and methods convert columns to numbers or classes. pandas: `read_csv`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Samples, Table};
/// use wengert::prelude::*;
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, "height,species,width\n5.1,\"iris, blue\",3.5\n,iris,3.0\n4.7,iris,3.2\n")?;
/// let table = Table::read_csv(&file)?.drop_missing(&["height", "width"])?;
/// let classes = table.classes("species")?;
/// assert_eq!(classes.names, ["iris", "iris, blue"]);
/// let flowers = Samples::new(table.numbers::<f32>(&["height", "width"])?, classes.indices)?;
/// assert_eq!(flowers.inputs(), &Tensor::from([[5.1, 3.5], [4.7, 3.2]]));
/// assert_eq!(flowers.targets(), &Tensor::from([1, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A field is missing if it is empty or one of `NA`, `N/A`, `NaN`, `nan`, `null`, `NULL`, `None`, `?`. A column of
/// numbers must not have missing fields: [`drop_missing`](Self::drop_missing) removes their rows,
/// [`numbers_or`](Self::numbers_or) replaces them by a number.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    /// The concatenated text of all fields.
    text: String,
    /// The end of each field in `text`, in row-major order.
    field_ends: Vec<usize>,
    /// For each row, its line in the file.
    pub(super) lines: Vec<u64>,
    /// The indices of the rows that the table still has. They are indices into `lines`, the rows of the file.
    rows: Vec<usize>,
}

/// A column of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// The class of each row, as an index into `names`.
    pub indices: Tensor<i64>,
    /// The names of the classes in ascending order: by value if all are numbers, otherwise by their characters.
    pub names: Vec<String>,
}

impl Table {
    /// Reads a file of comma-separated values whose first row names the columns. The file may be gzipped, which is recognized by its first
    /// two bytes.
    ///
    /// # Errors
    ///
    /// - The file is missing, unreadable or not a regular file, or decompresses to more than 16 MiB and more than 100
    ///   times its size: [`Error::Read`].
    /// - The file has no rows after the first: [`Error::Table`].
    /// - Two columns have the same name, a line is not UTF-8, or a quote is not closed: [`Error::Malformed`].
    /// - A row has more or fewer fields than the first: [`Error::RowWidth`].
    /// - A row is longer than 16 MiB: [`Error::LineTooLong`].
    pub fn read_csv(path: impl AsRef<Path>) -> Result<Self> {
        Table::read_separated(path, b',')
    }

    /// Reads a file as [`read_csv`](Self::read_csv) does, with another delimiter, such as `b';'` or `b'\t'`.
    ///
    /// # Errors
    ///
    /// As for `read_csv`. Also if the delimiter is a double quote, a line end, or not ASCII: [`Error::Dataset`].
    pub fn read_separated(path: impl AsRef<Path>, delimiter: u8) -> Result<Self> {
        if !delimiter.is_ascii() || b"\"\n\r".contains(&delimiter) {
            return Err(Error::Dataset(format!(
                "read_separated: expected a delimiter that is ASCII and neither a double quote nor a line end, but got \
                 '{}'",
                char::from(delimiter).escape_default()
            )));
        }
        Table::from_file(path.as_ref(), delimiter)
    }

    fn from_file(path: &Path, delimiter: u8) -> Result<Self> {
        let (names, text, field_ends, lines, rows) = (Vec::new(), String::new(), Vec::new(), Vec::new(), Vec::new());
        let mut table = Table { path: path.to_owned(), names, text, field_ends, lines, rows };
        for_each_record(path, delimiter, &mut |line, fields| {
            if table.names.is_empty() {
                table.names = fields.iter().map(|&name| name.to_owned()).collect();
                return check_unique(path, line, fields);
            }
            check_width(path, line, table.names.len(), fields.len())?;
            for field in fields {
                table.text.push_str(field);
                table.field_ends.push(table.text.len());
            }
            table.lines.push(line);
            Ok(())
        })?;
        if table.lines.is_empty() {
            return Err(Error::Table { path: path.to_owned(), problem: "has no rows" });
        }
        table.rows = (0..table.lines.len()).collect();
        Ok(table)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the names of all columns except `others`: the features, if `others` are the targets.
    ///
    /// # Errors
    ///
    /// If a column in `others` does not exist: [`Error::NoSuchColumn`].
    pub fn names_except(&self, others: &[&str]) -> Result<Vec<&str>> {
        others.iter().try_for_each(|name| self.column_index(name).map(drop))?;
        Ok(self.names.iter().map(|name| &name[..]).filter(|name| !others.contains(name)).collect())
    }

    /// Returns the number of rows, without the row of names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no rows, which can happen after [`drop_missing`](Self::drop_missing).
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the fields of a column, without the white space around them.
    ///
    /// # Errors
    ///
    /// If a column does not exist: [`Error::NoSuchColumn`].
    pub fn texts(&self, name: &str) -> Result<Vec<&str>> {
        let column = self.column_index(name)?;
        Ok(self.rows.iter().map(|&row| self.field(row, column)).collect())
    }

    /// Returns columns as numbers, `[rows, names.len()]`.
    ///
    /// # Errors
    ///
    /// If a column does not exist ([`Error::NoSuchColumn`]), a field is missing or not a finite number
    /// ([`Error::NotANumber`]), or a number is too large for `T` ([`Error::NumberTooLarge`]). The error names the line.
    pub fn numbers<T: Float>(&self, names: &[&str]) -> Result<Tensor<T>> {
        self.read_columns(names, None)
    }

    /// Returns columns as [`numbers`](Self::numbers) does, and replaces missing fields by `value`, which may be NaN. pandas: `fillna`.
    ///
    /// # Errors
    ///
    /// As for `numbers`, except for missing fields. Also if `value` is finite, but too large for `T`: [`Error::Dataset`].
    pub fn numbers_or<T: Float>(&self, names: &[&str], value: f64) -> Result<Tensor<T>> {
        if value.is_finite() && !T::from_f64(value).is_finite() {
            return Err(Error::Dataset(format!("numbers_or: {value:?} is too large for {}", T::DTYPE)));
        }
        self.read_columns(names, Some(value))
    }

    /// Returns one column as numbers, `[rows]`, for example the targets of a regression.
    ///
    /// # Errors
    ///
    /// As for [`numbers`](Self::numbers).
    pub fn column<T: Float>(&self, name: &str) -> Result<Tensor<T>> {
        Ok(self.numbers(&[name])?.try_flatten(0, -1)?)
    }

    /// Returns a column as classes. Each distinct text is a class. scikit-learn: `LabelEncoder`.
    ///
    /// # Errors
    ///
    /// If the column does not exist ([`Error::NoSuchColumn`]), or a field is missing ([`Error::Malformed`], with the
    /// line).
    pub fn classes(&self, name: &str) -> Result<Classes> {
        let (column, texts) = (self.column_index(name)?, self.texts(name)?);
        if let Some(row) = texts.iter().position(|text| is_missing(text)) {
            let (place, problem) = (
                Place::Line(self.lines[self.rows[row]]),
                format!("column {}: expected a class, but the field is missing", column + 1),
            );
            return Err(Error::Malformed { path: self.path.clone(), place, problem });
        }
        let distinct: HashSet<&str> = texts.iter().copied().collect();
        let mut names: Vec<&str> = distinct.into_iter().collect();
        let value = |text: &str| text.parse::<f64>().ok();
        if names.iter().all(|name| value(name).is_some()) {
            let value = |text: &str| value(text).unwrap_or(f64::NAN);
            names.sort_by(|a, b| value(a).total_cmp(&value(b)).then(a.cmp(b)));
        } else {
            names.sort_unstable();
        }
        let index: HashMap<&str, i64> = names.iter().copied().zip(0..).collect();
        let indices: Vec<i64> = texts.iter().map(|text| index[text]).collect();
        Ok(Classes { indices: Tensor::from(indices), names: names.into_iter().map(str::to_owned).collect() })
    }

    /// Returns the table with only the rows in which no field of these columns is missing. pandas: `dropna(subset=names)`.
    ///
    /// # Errors
    ///
    /// If a column does not exist: [`Error::NoSuchColumn`].
    pub fn drop_missing(mut self, names: &[&str]) -> Result<Self> {
        let columns: Vec<usize> = names.iter().map(|name| self.column_index(name)).collect::<Result<_>>()?;
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|&row| columns.iter().all(|&column| !is_missing(self.field(row, column))));
        Ok(Table { rows, ..self })
    }

    /// Returns columns as numbers. `missing`, if given, replaces missing fields. Unknown names and fields that are no
    /// numbers are errors.
    fn read_columns<T: Float>(&self, names: &[&str], missing: Option<f64>) -> Result<Tensor<T>> {
        let columns: Vec<usize> = names.iter().map(|name| self.column_index(name)).collect::<Result<_>>()?;
        let mut values = Vec::with_capacity(self.len() * columns.len());
        for &row in &self.rows {
            for &column in &columns {
                let field = self.field(row, column);
                values.push(T::from_f64(match missing {
                    Some(value) if is_missing(field) => value,
                    _ => parse_number::<T>(&self.path, self.lines[row], column + 1, field)?,
                }));
            }
        }
        Ok(Tensor::try_from_vec(values, [self.len(), columns.len()])?)
    }

    /// Returns the index of the column `name`, or an error if the table has no such column.
    fn column_index(&self, name: &str) -> Result<usize> {
        let found = self.names.iter().position(|other| other == name);
        found.ok_or_else(|| Error::NoSuchColumn {
            path: self.path.clone(),
            name: name.to_owned(),
            known: self.names.clone(),
        })
    }

    /// Returns the field of the row with index `row` in the file and the column with index `column`.
    fn field(&self, row: usize, column: usize) -> &str {
        let index = row * self.names.len() + column;
        let range: Range<usize> =
            index.checked_sub(1).map_or(0, |previous| self.field_ends[previous])..self.field_ends[index];
        &self.text[range]
    }
}

/// Returns an error if two columns have the same name.
fn check_unique(path: &Path, line: u64, names: &[&str]) -> Result<()> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("two columns have the name '{}'", name.escape_debug());
            Err(Error::Malformed { path: path.to_owned(), place: Place::Line(line), problem })
        }
    }
}

/// Returns true if a field counts as missing.
fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None" | "?")
}
