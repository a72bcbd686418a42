//! Reads tables of numbers without column names.

use std::path::Path;

use wengert_tensor::{Float, Tensor};

use crate::data::csv::for_each_record;
use crate::{Error, Result};

/// Reads a table of numbers, `[rows, columns]`, from a file of comma-separated values without a header row. For a
/// header see [`Table`](crate::Table). NumPy: `loadtxt(path, delimiter=",", ndmin=2)`.
///
/// The file may be gzipped, which is recognized by its first two bytes. Blank lines and spaces around numbers do not matter. Numbers are
/// rounded to `T`; numbers that are too small become 0.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::read_table;
/// use wengert::prelude::*;
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, "1, 2.5\n3, -4e2\n")?;
/// assert_eq!(read_table::<f64>(&file)?, Tensor::from([[1.0, 2.5], [3.0, -400.0]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - The file is missing, unreadable or not a regular file, or decompresses to more than 16 MiB and more than 100 times
///   its size: [`Error::Read`]. A device or a pipe is refused, because it may never end.
/// - The file has no rows: [`Error::Table`]. A line is not UTF-8, or a quote is not closed: [`Error::Malformed`].
/// - A row has more or fewer columns than the first: [`Error::RowWidth`].
/// - A field is not a finite number: [`Error::NotANumber`]. `inf` and `nan` are not allowed.
/// - A number is too large for `T`, such as `1e39` for `f32`: [`Error::NumberTooLarge`].
/// - A row is longer than 16 MiB: [`Error::LineTooLong`].
///
/// An error in a row names the line, and an error in a field also the column, both counted from 1.
pub fn read_table<T: Float>(path: impl AsRef<Path>) -> Result<Tensor<T>> {
    read_rows(path.as_ref())
}

/// Reads a table, as [`read_table`] documents.
#[wengert_macros::precompiled]
fn read_rows<T: Float>(path: &Path) -> Result<Tensor<T>> {
    let mut values = Vec::new();
    let (rows, columns) = for_each_row::<T>(path, &mut |_, row| {
        values.extend(row.iter().map(|&value| T::from_f64(value)));
        Ok(())
    })?;
    Ok(Tensor::try_from_vec(values, [rows, columns])?)
}

/// Calls `on_row` for each row with its line, counted from 1, and its values, which are finite in `T`. Returns the
/// numbers of rows and columns, both at least 1. A table without rows is an error.
#[wengert_macros::precompiled]
pub(super) fn for_each_row<T: Float>(
    path: &Path,
    on_row: &mut dyn FnMut(u64, &[f64]) -> Result<()>,
) -> Result<(usize, usize)> {
    let (mut row, mut rows, mut columns) = (Vec::new(), 0, None);
    for_each_record(path, b',', &mut |line, fields| {
        row.clear();
        for (column, field) in (1..).zip(fields) {
            row.push(parse_number::<T>(path, line, column, field)?);
        }
        check_width(path, line, *columns.get_or_insert(row.len()), row.len())?;
        rows += 1;
        on_row(line, &row)
    })?;
    match columns {
        Some(columns) => Ok((rows, columns)),
        None => Err(Error::Table { path: path.to_owned(), problem: "has no rows" }),
    }
}

/// Returns an error if a row does not have the expected number of columns.
pub(super) fn check_width(path: &Path, line: u64, expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::RowWidth { path: path.to_owned(), line, expected, found }) }
}

/// Parses a field as a number that is finite in `T`, or returns an error with the line and the column.
pub(super) fn parse_number<T: Float>(path: &Path, line: u64, column: usize, field: &str) -> Result<f64> {
    let parsed = field.parse::<f64>();
    if let Ok(value) = parsed
        && T::from_f64(value).is_finite()
    {
        return Ok(value);
    }
    let (path, shortened) = (path.to_owned(), field.chars().take(40).collect());
    // A field that can be parsed and has a digit is a number that is too large. `inf` and `nan` have no digits.
    Err(if parsed.is_ok() && field.contains(|c: char| c.is_ascii_digit()) {
        Error::NumberTooLarge { path, line, column, field: shortened, dtype: T::DTYPE }
    } else {
        Error::NotANumber { path, line, column, field: shortened }
    })
}
