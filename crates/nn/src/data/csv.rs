//! The records of a file of comma-separated values, gzipped or not.
//!
//! The crate `csv-core` divides a line into fields. This file bounds the memory for a record and counts the lines.

use std::io::{BufRead as _, Read as _};
use std::path::Path;

use csv_core::{ReadRecordResult, ReaderBuilder};

use crate::data::source::{open, unreadable};
use crate::error::Place;
use crate::{Error, Result};

/// The most bytes of a row, which bounds the memory for one: a gzipped line can be a thousand times its size in the file.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// Calls `take` with the line where each row begins, counted from 1, and its fields without the spaces around them. Blank lines are no
/// rows. A field in quotes may have delimiters, quotes (doubled) and line ends.
pub(super) fn for_each_record(
    path: &Path,
    delimiter: u8,
    mut take: impl FnMut(u64, &[&str]) -> Result<()>,
) -> Result<()> {
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
