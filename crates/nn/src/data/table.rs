//! Tables: comma-separated text, gzipped or not, as numbers alone ([`read_table`]) or with named columns ([`Table`]).
//!
//! How a line is divided into fields is known to the crate `csv-core`; here, memory is bounded, and lines are counted.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use csv_core::{ReadRecordResult, ReaderBuilder};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Tensor};

use crate::data::source::{open, unreadable};
use crate::error::Place;
use crate::{Error, Result};

/// The most bytes of a row, which bounds the memory for one: a gzipped line can be a thousand times its size in the file.
const LONGEST_LINE: usize = 16 << 20;

/// A table of numbers, `[rows, columns]`, from a file of comma-separated values; gzipped files are recognised by their
/// first two bytes. There is no header row; for one see [`Table`]. Blank lines and spaces around numbers do not matter. Numbers are
/// rounded to `T`; those too small for it become 0. NumPy: `loadtxt(path, delimiter=",", ndmin=2)`.
///
/// ```
/// use wengert_nn::read_table;
/// use wengert_tensor::prelude::*;
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, "1, 2.5\n3, -4e2\n")?;
/// assert_eq!(read_table::<f64>(&file)?, Tensor::from([[1.0, 2.5], [3.0, -400.0]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - The file is missing, unreadable or no regular file (a folder, a device or a pipe, which may never end): [`Error::Read`].
/// - It holds no rows: [`Error::Table`]. A line is not UTF-8, or a quote is never closed: [`Error::Malformed`].
/// - A row has more or fewer columns than the first: [`Error::RowWidth`].
/// - A field is not a finite number (`inf` and `nan` are refused too): [`Error::NotANumber`].
/// - A number is too large for `T`, as `1e39` is for `f32`: [`Error::NumberTooLarge`].
/// - A row is longer than 16 MiB: [`Error::LineTooLong`].
///
/// Errors in a line name it, counted from 1, and the column where there is one.
pub fn read_table<T: Float>(path: impl AsRef<Path>) -> Result<Tensor<T>> {
    let mut values = Vec::new();
    let (rows, columns) = for_each_row::<T>(path.as_ref(), |_, row| {
        values.extend(row.iter().map(|&value| T::from_f64(value)));
        Ok(())
    })?;
    Ok(Tensor::try_from_vec(values, [rows, columns])?)
}

/// Calls `take` with the line of each row, counted from 1, and its values, all finite in `T`. Gives the numbers of rows and columns,
/// both at least 1.
pub(crate) fn for_each_row<T: Float>(
    path: &Path,
    mut take: impl FnMut(u64, &[f64]) -> Result<()>,
) -> Result<(usize, usize)> {
    let (mut row, mut rows, mut columns) = (Vec::new(), 0, None);
    for_each_record(path, b',', |line, fields| {
        row.clear();
        for (column, field) in (1..).zip(fields) {
            row.push(number::<T>(path, line, column, field)?);
        }
        check_width(path, line, *columns.get_or_insert(row.len()), row.len())?;
        rows += 1;
        take(line, &row)
    })?;
    match columns {
        Some(columns) => Ok((rows, columns)),
        None => Err(Error::Table { path: path.to_owned(), problem: "holds no rows" }),
    }
}

fn check_width(path: &Path, line: u64, expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::RowWidth { path: path.to_owned(), line, expected, found }) }
}

/// A field as a number that is finite in `T`.
fn number<T: Float>(path: &Path, line: u64, column: usize, field: &str) -> Result<f64> {
    let parsed = field.parse::<f64>();
    if let Ok(value) = parsed
        && T::from_f64(value).is_finite()
    {
        return Ok(value);
    }
    let (path, shown) = (path.to_owned(), field.chars().take(40).collect());
    // `inf` and `nan` are spelled in letters alone.
    Err(if parsed.is_ok() && field.contains(|c: char| c.is_ascii_digit()) {
        Error::NumberTooLarge { path, line, column, field: shown, dtype: T::DTYPE }
    } else {
        Error::NotANumber { path, line, column, field: shown }
    })
}

/// Calls `take` with the line where each row begins, counted from 1, and its fields without the spaces around them. Blank lines are no
/// rows. A field in quotes may have delimiters, quotes (doubled) and line ends.
fn for_each_record(path: &Path, delimiter: u8, mut take: impl FnMut(u64, &[&str]) -> Result<()>) -> Result<()> {
    let malformed = |line, problem: &str| Error::Malformed {
        path: path.to_owned(),
        place: Place::Line(line),
        problem: problem.to_owned(),
    };
    let mut file = open(path)?;
    let mut parser = ReaderBuilder::new().delimiter(delimiter).build();
    let (mut bytes, mut output, mut ends) = (Vec::new(), vec![0; 1024], vec![0; 64]);
    // How far the row is read, and the line it begins in: it goes on in the next one where that is in quotes.
    let (mut written, mut ended, mut begun, mut size) = (0, 0, None, 0);
    for line in 1.. {
        bytes.clear();
        let most = (LONGEST_LINE - size) as u64 + 1;
        let read = file.by_ref().take(most).read_until(b'\n', &mut bytes).map_err(|source| unreadable(path, source))?;
        size += read;
        if size > LONGEST_LINE {
            return Err(Error::LineTooLong { path: path.to_owned(), line: begun.unwrap_or(line), limit: LONGEST_LINE });
        }
        if read == 0 {
            return begun.map_or(Ok(()), |line| Err(malformed(line, "the quote that begins there is never closed")));
        }
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        // Some programs begin a file with a byte order mark.
        let mut rest = if line == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes) } else { &bytes };
        while begun.is_some() || !rest.trim_ascii().is_empty() {
            let (result, used, more, fields) = parser.read_record(rest, &mut output[written..], &mut ends[ended..]);
            (rest, written, ended) = (&rest[used..], written + more, ended + fields);
            match result {
                ReadRecordResult::OutputFull => output.resize(2 * output.len(), 0),
                ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {
                    begun.get_or_insert(line);
                    break;
                }
                ReadRecordResult::Record => {
                    let line = begun.take().unwrap_or(line);
                    let text =
                        str::from_utf8(&output[..written]).map_err(|_| malformed(line, "it is not text in UTF-8"))?;
                    let starts = [0].into_iter().chain(ends[..ended].iter().copied());
                    let field = |(start, &end)| text.get(start..end).map(str::trim);
                    let fields: Option<Vec<&str>> = starts.zip(&ends[..ended]).map(field).collect();
                    take(line, &fields.ok_or_else(|| malformed(line, "it is not text in UTF-8"))?)?;
                    (written, ended) = (0, 0);
                }
            }
        }
        if begun.is_none() {
            size = 0;
        }
    }
    Ok(())
}

/// A table with named columns, in memory as text: columns are read as numbers or classes when they are asked for. pandas:
/// `read_csv`.
///
/// ```
/// use wengert_nn::{Samples, Table};
/// use wengert_tensor::prelude::*;
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
/// A field is missing where it is empty or one of `NA`, `N/A`, `NaN`, `nan`, `null`, `NULL`, `None`, `?`. A column of numbers must not
/// have any: [`drop_missing`](Self::drop_missing) removes their rows, [`numbers_or`](Self::numbers_or) puts a number in their place.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    /// All fields, one after the other.
    text: String,
    /// Where each field ends, row by row.
    ends: Vec<usize>,
    /// The line of each row of the table.
    lines: Vec<u64>,
    /// The numbers of the rows, of `lines` and `ends`, that are in the table.
    rows: Vec<usize>,
}

/// A column of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// The class of each row, a position in `names`.
    pub indices: Tensor<i64>,
    /// The classes, in ascending order: by number where all are numbers, otherwise by their characters.
    pub names: Vec<String>,
}

impl Table {
    /// The table of a file of comma-separated values, whose first row names the columns; gzipped files are recognised by their first
    /// two bytes.
    ///
    /// # Errors
    ///
    /// - The file is missing, unreadable or no regular file, or it decompresses to far more than its size: [`Error::Read`].
    /// - It holds no rows after the first: [`Error::Table`].
    /// - Two columns have one name, a line is not UTF-8, or a quote is never closed: [`Error::Malformed`].
    /// - A row has more or fewer fields than the first: [`Error::RowWidth`]; it is longer than 16 MiB: [`Error::LineTooLong`].
    pub fn read_csv(path: impl AsRef<Path>) -> Result<Self> {
        Table::read_separated(path, b',')
    }

    /// [`read_csv`](Self::read_csv) of fields that are separated by another character, such as `b';'` or `b'\t'`.
    ///
    /// # Errors
    ///
    /// As for `read_csv`.
    pub fn read_separated(path: impl AsRef<Path>, delimiter: u8) -> Result<Self> {
        let path = path.as_ref();
        let (names, text, ends, lines, rows) = (Vec::new(), String::new(), Vec::new(), Vec::new(), Vec::new());
        let mut table = Table { path: path.to_owned(), names, text, ends, lines, rows };
        for_each_record(path, delimiter, |line, fields| {
            if table.names.is_empty() {
                table.names = fields.iter().map(|&name| name.to_owned()).collect();
                return check_unique(path, line, fields);
            }
            check_width(path, line, table.names.len(), fields.len())?;
            for field in fields {
                table.text.push_str(field);
                table.ends.push(table.text.len());
            }
            table.lines.push(line);
            Ok(())
        })?;
        if table.lines.is_empty() {
            return Err(Error::Table { path: path.to_owned(), problem: "holds no rows" });
        }
        table.rows = (0..table.lines.len()).collect();
        Ok(table)
    }

    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The names of all columns but `others`: the features, where `others` are targets.
    ///
    /// # Errors
    ///
    /// If there is no such column: [`Error::NoSuchColumn`].
    pub fn names_except(&self, others: &[&str]) -> Result<Vec<&str>> {
        others.iter().try_for_each(|name| self.position(name).map(drop))?;
        Ok(self.names.iter().map(|name| &name[..]).filter(|name| !others.contains(name)).collect())
    }

    /// Number of rows, without the names.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none, which [`drop_missing`](Self::drop_missing) may come to.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The fields of a column, without spaces around them.
    ///
    /// # Errors
    ///
    /// If there is no such column: [`Error::NoSuchColumn`].
    pub fn texts(&self, name: &str) -> Result<Vec<&str>> {
        let column = self.position(name)?;
        Ok(self.rows.iter().map(|&row| self.field(row, column)).collect())
    }

    /// Columns as numbers, `[rows, names.len()]`.
    ///
    /// # Errors
    ///
    /// If there is no such column ([`Error::NoSuchColumn`]), or a field is missing, no finite number ([`Error::NotANumber`]), or too
    /// large for `T` ([`Error::NumberTooLarge`]); the line is named.
    pub fn numbers<T: Float>(&self, names: &[&str]) -> Result<Tensor<T>> {
        self.read(names, None)
    }

    /// [`numbers`](Self::numbers) with `value`, which may be NaN, where a field is missing. pandas: `fillna`.
    ///
    /// # Errors
    ///
    /// As for `numbers`, missing fields aside.
    pub fn numbers_or<T: Float>(&self, names: &[&str], value: f64) -> Result<Tensor<T>> {
        self.read(names, Some(value))
    }

    /// A column as numbers, `[rows]`: the targets of a regression.
    ///
    /// # Errors
    ///
    /// As for [`numbers`](Self::numbers).
    pub fn column<T: Float>(&self, name: &str) -> Result<Tensor<T>> {
        Ok(self.numbers(&[name])?.try_flatten(0, -1)?)
    }

    /// A column as classes: each text that is there is one. scikit-learn: `LabelEncoder`.
    ///
    /// # Errors
    ///
    /// If there is no such column ([`Error::NoSuchColumn`]), or a field is missing ([`Error::Malformed`], with the line).
    pub fn classes(&self, name: &str) -> Result<Classes> {
        let (column, texts) = (self.position(name)?, self.texts(name)?);
        if let Some(row) = texts.iter().position(|text| is_missing(text)) {
            let (place, problem) =
                (Place::Line(self.lines[self.rows[row]]), format!("column {}: no class there", column + 1));
            return Err(Error::Malformed { path: self.path.clone(), place, problem });
        }
        let distinct: HashSet<&str> = texts.iter().copied().collect();
        let mut names: Vec<&str> = distinct.into_iter().collect();
        let value = |text: &str| text.parse::<f64>().ok();
        if names.iter().all(|name| value(name).is_some()) {
            names.sort_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(a.cmp(b)).then(a.cmp(b)));
        } else {
            names.sort_unstable();
        }
        let index: HashMap<&str, i64> = names.iter().copied().zip(0..).collect();
        let indices: Vec<i64> = texts.iter().map(|text| index[text]).collect();
        Ok(Classes { indices: Tensor::from(indices), names: names.into_iter().map(str::to_owned).collect() })
    }

    /// The rows in which no field of these columns is missing. pandas: `dropna(subset=names)`.
    ///
    /// # Errors
    ///
    /// If there is no such column: [`Error::NoSuchColumn`].
    pub fn drop_missing(mut self, names: &[&str]) -> Result<Self> {
        let columns: Vec<usize> = names.iter().map(|name| self.position(name)).collect::<Result<_>>()?;
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|&row| columns.iter().all(|&column| !is_missing(self.field(row, column))));
        Ok(Table { rows, ..self })
    }

    fn read<T: Float>(&self, names: &[&str], missing: Option<f64>) -> Result<Tensor<T>> {
        let columns: Vec<usize> = names.iter().map(|name| self.position(name)).collect::<Result<_>>()?;
        let mut values = Vec::with_capacity(self.len() * columns.len());
        for &row in &self.rows {
            for &column in &columns {
                let field = self.field(row, column);
                values.push(T::from_f64(match missing {
                    Some(value) if is_missing(field) => value,
                    _ => number::<T>(&self.path, self.lines[row], column + 1, field)?,
                }));
            }
        }
        Ok(Tensor::try_from_vec(values, [self.len(), columns.len()])?)
    }

    fn position(&self, name: &str) -> Result<usize> {
        let found = self.names.iter().position(|other| other == name);
        found.ok_or_else(|| Error::NoSuchColumn {
            path: self.path.clone(),
            name: name.to_owned(),
            known: self.names.clone(),
        })
    }

    fn field(&self, row: usize, column: usize) -> &str {
        let place = row * self.names.len() + column;
        let range: Range<usize> = place.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[place];
        &self.text[range]
    }
}

fn check_unique(path: &Path, line: u64, names: &[&str]) -> Result<()> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("two columns are named '{}'", name.escape_debug());
            Err(Error::Malformed { path: path.to_owned(), place: Place::Line(line), problem })
        }
    }
}

fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None" | "?")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::source::tests::{gzipped, refusal};

    fn error(contents: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        fs::write(&path, contents).unwrap();
        let text = read_table::<f64>(&path).unwrap_err().to_string();
        text.replace(path.to_str().unwrap(), "table.csv")
    }

    #[test]
    fn gzip_is_recognised_by_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, gzipped(b"\xef\xbb\xbf1,2\r\n\n3,4")).unwrap();
        assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (contents, expected) in [
            (&b"1,2\n3,4\n5\n"[..], "'table.csv', line 3: expected 2 columns as in the first row, found 1"),
            (b"1,2\n\n3,x\n", "'table.csv', line 3, column 2: 'x' is not a finite number"),
            (b"1,2\n3,nan\n", "'table.csv', line 2, column 2: 'nan' is not a finite number"),
            (b"1,2\n3,\n", "'table.csv', line 2, column 2: '' is not a finite number"),
            (b"", "'table.csv' holds no rows"),
            (b"\n\n", "'table.csv' holds no rows"),
            (b"1,2\n1,\xff\xfe\n", "'table.csv', line 2: it is not text in UTF-8"),
            (b"1,2\n\"3,4\n5,6\n", "'table.csv', line 2: the quote that begins there is never closed"),
        ] {
            assert_eq!(error(contents), expected);
        }
    }

    #[test]
    fn a_number_too_large_for_the_type_is_an_error_and_one_too_small_is_0() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let end = |error: Error| error.to_string().rsplit_once("', ").unwrap().1.to_owned();
        fs::write(&file, "1,2\n3,1e39\n").unwrap();
        assert_eq!(end(read_table::<f32>(&file).unwrap_err()), "line 2, column 2: '1e39' is too large for f32");
        assert_eq!(read_table::<f64>(&file).unwrap(), Tensor::from([[1.0, 2.0], [3.0, 1e39]]));
        // Half a unit in the last place above the largest f32 rounds up, and anything below it down.
        fs::write(&file, "3.4028235677973366e38").unwrap();
        assert!(matches!(read_table::<f32>(&file), Err(Error::NumberTooLarge { line: 1, column: 1, .. })));
        fs::write(&file, "-3.4028235677973362e38, 1e-60").unwrap();
        assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[-f32::MAX, 0.0]]));
        fs::write(&file, "-1e400").unwrap();
        assert_eq!(end(read_table::<f64>(&file).unwrap_err()), "line 1, column 1: '-1e400' is too large for f64");
        fs::write(&file, "inf").unwrap();
        assert_eq!(end(read_table::<f32>(&file).unwrap_err()), "line 1, column 1: 'inf' is not a finite number");
    }

    #[test]
    fn lines_are_bounded() {
        let line = "1,".repeat(LONGEST_LINE / 2);
        let expected = "'table.csv', line 2 is longer than 16777216 bytes";
        assert_eq!(error(&gzipped(format!("1,2\n{line}1\n").as_bytes())), expected);
        let longest = " ".repeat(LONGEST_LINE - 2) + "1\n";
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, gzipped(longest.as_bytes())).unwrap();
        assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[1.0]]));
    }

    #[cfg(unix)]
    #[test]
    fn what_may_never_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [Path::new("/dev/zero"), &pipe] {
            let error = read_table::<f32>(path).unwrap_err().to_string();
            assert_eq!(error, format!("cannot read '{}': it is not a regular file", path.display()));
        }
    }

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        assert_eq!(
            error(b"1,\x1b[31mred\x07\n"),
            r"'table.csv', line 1, column 2: '\u{1b}[31mred\u{7}' is not a finite number"
        );
        let missing = read_table::<f64>("no/\u{1b}[2J\u{202e}.csv").unwrap_err().to_string();
        assert!(missing.starts_with(r"cannot read 'no/\u{1b}[2J\u{202e}.csv': No such file"), "{missing}");
    }

    #[test]
    fn damaged_archives_and_missing_files_are_errors() {
        let whole = gzipped(b"1,2\n3,4\n5,6\n7,8\n");
        for end in [2, 9, whole.len() - 9, whole.len() - 1] {
            assert!(error(&whole[..end]).starts_with("cannot read 'table.csv': "), "{}", error(&whole[..end]));
        }
        let missing = read_table::<f64>("no/such/table.csv").unwrap_err().to_string();
        assert!(missing.starts_with("cannot read 'no/such/table.csv': No such file"), "{missing}");
        assert!(read_table::<f64>(std::env::temp_dir()).unwrap_err().to_string().contains("directory"));
    }

    fn table(contents: &str) -> Table {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, contents).unwrap();
        Table::read_csv(&file).unwrap()
    }

    #[test]
    fn quotes_hold_what_would_end_a_field_or_a_line() {
        let table = table("\u{feff}name, note ,x\r\n\"a \"\"b\"\"\",\"two\nlines, one field\", 1 \r\n\r\nc,,2");
        assert_eq!(table.names(), ["name", "note", "x"]);
        assert_eq!(table.texts("name").unwrap(), ["a \"b\"", "c"]);
        assert_eq!(table.texts("note").unwrap(), ["two\nlines, one field", ""]);
        assert_eq!(table.column::<f32>("x").unwrap(), Tensor::from([1.0, 2.0]));
        assert_eq!(table.names_except(&["note"]).unwrap(), ["name", "x"]);
        assert_eq!(table.lines, [2, 5]);
    }

    #[test]
    fn missing_fields_are_dropped_filled_or_refused() {
        let table = table("a,b\n1,?\n2,3\nNA,4\n");
        let text = table.numbers::<f32>(&["b", "a"]).unwrap_err().to_string();
        assert!(text.ends_with(", line 2, column 2: '?' is not a finite number"), "{text}");
        assert_eq!(table.numbers_or::<f64>(&["b"], -1.0).unwrap(), Tensor::from([[-1.0], [3.0], [4.0]]));
        let kept = table.clone().drop_missing(&["a"]).unwrap();
        assert_eq!((kept.len(), kept.column::<f64>("a").unwrap()), (2, Tensor::from([1.0, 2.0])));
        assert!(table.clone().drop_missing(&["a", "b"]).unwrap().texts("b").unwrap().eq(&["3"]));
        assert_eq!(table.numbers::<f32>(&[]).unwrap().shape().sizes(), [3, 0]);
        let text = table.classes("a").unwrap_err().to_string();
        assert!(text.ends_with(", line 4: column 1: no class there"), "{text}");
        let text = table.column::<f32>("c").unwrap_err().to_string();
        assert!(text.ends_with(" has no column 'c'; it has 'a', 'b'"), "{text}");
    }

    #[test]
    fn classes_are_in_the_order_of_numbers_or_characters() {
        let of = |contents| table(contents).classes("y").unwrap();
        assert_eq!(
            of("y\n10\n9\n10\n"),
            Classes { indices: Tensor::from([1, 0, 1]), names: vec!["9".into(), "10".into()] }
        );
        assert_eq!(of("y\nx10\nx9\n").names, ["x10", "x9"]);
    }

    #[test]
    fn bad_tables_say_in_which_line() {
        for (contents, expected) in [
            (&b""[..], "'f' holds no rows"),
            (b"a,b\n", "'f' holds no rows"),
            (b"a,a\n1,2\n", "'f', line 1: two columns are named 'a'"),
            (b"a,b\n1,2\n\n3\n", "'f', line 4: expected 2 columns as in the first row, found 1"),
            (b"a,b\n1,2,3\n", "'f', line 2: expected 2 columns as in the first row, found 3"),
            (b"a,b\n\"1\n2\",\xff\n", "'f', line 2: it is not text in UTF-8"),
            (b"a,b\n1,\"2\n", "'f', line 2: the quote that begins there is never closed"),
        ] {
            assert_eq!(refusal(contents, |path| Table::read_csv(path)), expected);
        }
        let open_quote = [&b"a\n\""[..], &[b'x'; LONGEST_LINE]].concat();
        assert_eq!(
            refusal(&gzipped(&open_quote), |path| Table::read_csv(path)),
            "'f', line 2 is longer than 16777216 bytes"
        );
        assert!(Table::read_csv("/dev/zero").unwrap_err().to_string().ends_with("it is not a regular file"));
    }
}
