//! Tables of numbers: comma-separated text, gzipped or not.
//!
//! No header, no quotes, no missing values: whatever is not a finite number is an error that names its line.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use wengert_tensor::{Float, Tensor};

use crate::file::open_regular;
use crate::{Error, Result};

/// The longest line in bytes, which bounds the memory for one: a gzipped line can be a thousand times its size in the file.
const LONGEST_LINE: usize = 16 << 20;

/// A table of numbers, `[rows, columns]`, from a file of comma-separated values; gzipped files are recognised by their
/// first two bytes. There is no header row. Blank lines and spaces around numbers do not matter. Numbers are rounded to
/// `T`; those too small for it become 0. NumPy: `loadtxt(path, delimiter=",", ndmin=2)`.
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
/// - It holds no rows, or is not UTF-8: [`Error::Table`].
/// - A row has more or fewer columns than the first: [`Error::RowWidth`].
/// - A field is not a finite number (`inf` and `nan` are refused too): [`Error::NotANumber`].
/// - A number is too large for `T`, as `1e39` is for `f32`: [`Error::NumberTooLarge`].
/// - A line is longer than 16 MiB: [`Error::LineTooLong`].
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

/// Calls `take` with the number of each line that is not blank, counted from 1, and its values, all finite in `T`. Gives
/// the numbers of rows and columns, both at least 1.
pub(crate) fn for_each_row<T: Float>(
    path: &Path,
    mut take: impl FnMut(u64, &[f64]) -> Result<()>,
) -> Result<(usize, usize)> {
    let unreadable = |source: io::Error| Error::Read { path: path.to_owned(), source };
    let mut file = open(path)?;
    let (mut bytes, mut row) = (Vec::new(), Vec::new());
    let (mut rows, mut columns) = (0, None);
    for line in 1.. {
        bytes.clear();
        let read = file.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut bytes).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        if read > LONGEST_LINE {
            return Err(Error::LineTooLong { path: path.to_owned(), line, limit: LONGEST_LINE });
        }
        let text =
            str::from_utf8(&bytes).map_err(|_| Error::Table { path: path.to_owned(), problem: "is not text" })?;
        // Some programs begin a file with a byte order mark.
        let content = text.trim_start_matches('\u{feff}').trim();
        if content.is_empty() {
            continue;
        }
        row.clear();
        for (column, field) in (1..).zip(content.split(',').map(str::trim)) {
            match field.parse::<f64>() {
                Ok(value) if T::from_f64(value).is_finite() => row.push(value),
                parsed => {
                    let (path, shown) = (path.to_owned(), field.chars().take(40).collect());
                    // `inf` and `nan` are spelled in letters alone.
                    return Err(if parsed.is_ok() && field.contains(|c: char| c.is_ascii_digit()) {
                        Error::NumberTooLarge { path, line, column, field: shown, dtype: T::DTYPE }
                    } else {
                        Error::NotANumber { path, line, column, field: shown }
                    });
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
fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(open_regular(path)?.0);
    let start = file.fill_buf().map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let gzipped = start.starts_with(&[0x1f, 0x8b]);
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
}
