//! Reads the records of a file of values that a delimiter separates, usually a comma. The file may be gzipped.
//!
//! The crate `csv-core` divides a line into fields. This file bounds the memory for a record and counts the lines.

use std::io::{BufRead as _, Read as _};
use std::path::Path;

use csv_core::{ReadRecordResult, ReaderBuilder};

use crate::data::source::{open, unreadable};
use crate::error::Place;
use crate::{Error, Result};

/// The largest length of a row, in bytes. It limits the memory: a file without line ends is a single row, and a gzipped
/// file can grow to 100 times its size.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// Calls `on_record` for each row with the line where it begins, counted from 1, and with its fields. White space at both
/// ends of a field is removed, also inside quotes. Blank lines are not rows. A line is blank if it consists of ASCII
/// white space other than the delimiter. A field in quotes may contain delimiters, line ends and doubled quotes. Stops
/// at the first error of the file or of `on_record`, and returns this error.
pub(super) fn for_each_record(
    path: &Path,
    delimiter: u8,
    on_record: &mut dyn FnMut(u64, &[&str]) -> Result<()>,
) -> Result<()> {
    let malformed = |line, problem: &str| Error::Malformed {
        path: path.to_owned(),
        place: Place::Line(line),
        problem: problem.to_owned(),
    };
    let mut file = open(path)?;
    let mut parser = ReaderBuilder::new().delimiter(delimiter).build();
    let (mut bytes, mut output, mut ends) = (Vec::new(), vec![0; 1024], vec![0; 64]);
    // The state of the current row: the counts of its bytes and fields so far, its first line, and its size. If a line ends inside quotes,
    // the row continues in the next line.
    let (mut n_bytes, mut n_fields, mut first_line, mut size) = (0, 0, None, 0);
    for line in 1.. {
        bytes.clear();
        let max_bytes = (LONGEST_LINE - size) as u64 + 1;
        let read =
            file.by_ref().take(max_bytes).read_until(b'\n', &mut bytes).map_err(|source| unreadable(path, source))?;
        size += read;
        if size > LONGEST_LINE {
            return Err(Error::LineTooLong {
                path: path.to_owned(),
                line: first_line.unwrap_or(line),
                limit: LONGEST_LINE,
            });
        }
        if read == 0 {
            return first_line.map_or(Ok(()), |line| Err(malformed(line, "the quote that begins there is not closed")));
        }
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        // Some programs write a byte order mark at the beginning of a file. It is not part of the first field.
        let mut rest = if line == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes) } else { &bytes };
        while first_line.is_some() || !is_blank(rest, delimiter) {
            let (result, used, more, fields) = parser.read_record(rest, &mut output[n_bytes..], &mut ends[n_fields..]);
            (rest, n_bytes, n_fields) = (&rest[used..], n_bytes + more, n_fields + fields);
            match result {
                ReadRecordResult::OutputFull => output.resize(2 * output.len(), 0),
                ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {
                    first_line.get_or_insert(line);
                    break;
                }
                ReadRecordResult::Record => {
                    let line = first_line.take().unwrap_or(line);
                    let fields = split_fields(&output[..n_bytes], &ends[..n_fields]);
                    on_record(line, &fields.ok_or_else(|| malformed(line, "it is not text in UTF-8"))?)?;
                    (n_bytes, n_fields) = (0, 0);
                }
            }
        }
        if first_line.is_none() {
            size = 0;
        }
    }
    Ok(())
}

/// Returns true if a line consists of ASCII white space other than the delimiter.
fn is_blank(line: &[u8], delimiter: u8) -> bool {
    line.iter().all(|&byte| byte.is_ascii_whitespace() && byte != delimiter)
}

/// Returns the fields of `record`, each without white space at both ends. Returns `None` if a field is not UTF-8. `ends`
/// has the end of each field.
fn split_fields<'o>(record: &'o [u8], ends: &[usize]) -> Option<Vec<&'o str>> {
    let text = str::from_utf8(record).ok()?;
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| text.get(start..end).map(str::trim)).collect()
}
