//! Tables of numbers: comma-separated text, gzipped or not.
//!
//! No header, no quotes, no missing values: whatever is not a finite number is an error that names its line.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use wengert_tensor::{Float, Tensor};

use crate::{Error, Result};

/// A table of numbers, `[rows, columns]`, from a file of comma-separated values; gzipped files are recognised by their
/// first two bytes. There is no header row. Blank lines and spaces around numbers do not matter.
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
/// Where the file is missing, unreadable or empty, a row has not as many columns as the first, or a field is not a
/// finite number: with the line, counted from 1.
pub fn read_table<T: Float>(path: impl AsRef<Path>) -> Result<Tensor<T>> {
    let mut values = Vec::new();
    let (rows, columns) = for_each_row(path.as_ref(), |_, row| {
        values.extend(row.iter().map(|&value| T::from_f64(value)));
        Ok(())
    })?;
    Ok(Tensor::try_from_vec(values, [rows, columns])?)
}

/// Calls `take` with each row and its line, counted from 1. Gives the numbers of rows and columns, both at least 1.
pub(crate) fn for_each_row(path: &Path, mut take: impl FnMut(u64, &[f64]) -> Result<()>) -> Result<(usize, usize)> {
    let unreadable = |source: io::Error| Error::Read { path: path.to_owned(), source };
    let file = open(path).map_err(unreadable)?;
    let mut row = Vec::new();
    let (mut rows, mut columns) = (0, None);
    for (line, text) in (1..).zip(file.split(b'\n')) {
        let text = String::from_utf8(text.map_err(unreadable)?)
            .map_err(|_| Error::Table { path: path.to_owned(), problem: "is not text" })?;
        // Some programs begin a file with a byte order mark.
        let content = text.trim_start_matches('\u{feff}').trim();
        if content.is_empty() {
            continue;
        }
        row.clear();
        for (column, field) in content.split(',').map(str::trim).enumerate() {
            match field.parse::<f64>() {
                Ok(value) if value.is_finite() => row.push(value),
                _ => {
                    let field = field.chars().take(40).collect();
                    return Err(Error::NotANumber { path: path.to_owned(), line, column: column + 1, field });
                }
            }
        }
        let expected = *columns.get_or_insert(row.len());
        if row.len() != expected {
            return Err(Error::RowWidth { path: path.to_owned(), line, expected, found: row.len() });
        }
        take(line, &row)?;
        rows += 1;
    }
    match columns {
        Some(columns) => Ok((rows, columns)),
        None => Err(Error::Table { path: path.to_owned(), problem: "holds no rows" }),
    }
}

/// The file's text, decompressed where it is gzipped.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut file = BufReader::new(file);
    let gzipped = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if gzipped { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn error(contents: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        fs::write(&path, contents).unwrap();
        let text = read_table::<f64>(&path).unwrap_err().to_string();
        text.replace(path.to_str().unwrap(), "table.csv")
    }

    fn gzipped(contents: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(contents).unwrap();
        encoder.finish().unwrap()
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
            (b"1,\xff\xfe\n", "'table.csv' is not text"),
        ] {
            assert_eq!(error(contents), expected);
        }
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
}
