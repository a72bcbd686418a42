//! Tables of numbers without names of columns.

use std::path::Path;

use wengert_tensor::{Float, Tensor};

use crate::data::csv::for_each_record;
use crate::{Error, Result};

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
pub(super) fn for_each_row<T: Float>(
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

pub(super) fn check_width(path: &Path, line: u64, expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::RowWidth { path: path.to_owned(), line, expected, found }) }
}

/// A field as a number that is finite in `T`.
pub(super) fn number<T: Float>(path: &Path, line: u64, column: usize, field: &str) -> Result<f64> {
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
