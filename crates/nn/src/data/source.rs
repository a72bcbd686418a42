//! Files that are read in bounded memory: regular files alone, and gzipped ones only up to a multiple of their size.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::data::numbers::Refusal;
use crate::error::Place;
use crate::file::open_regular;
use crate::{Error, Result};

/// How many times its size in the file a gzipped file may be. Text comes to some 20 times, pictures of one colour to 300; what was made
/// to fill a memory to 1000, the most that the format allows.
const EXPANSION: u64 = 400;

/// What any gzipped file may be decompressed to.
const ALWAYS: u64 = 256 << 20;

/// The contents of a file, decompressed where its first two bytes say that it is gzipped.
///
/// # Errors
///
/// If it is missing, unreadable or no regular file: [`Error::Read`]. Reading ends in an error where too much comes out.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let (file, size) = open_regular(path)?;
    let mut file = BufReader::new(file);
    let start = file.fill_buf().map_err(|source| unreadable(path, source))?;
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(file));
    }
    Ok(Box::new(BufReader::new(Limited::new(MultiGzDecoder::new(file), size))))
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

/// The error of a binary file.
pub(super) fn refused(path: &Path, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unreadable(source) => unreadable(path, source),
        Refusal::Malformed(byte, problem) => {
            Error::Malformed { path: path.to_owned(), place: Place::Byte(byte), problem }
        }
    }
}

/// A reader of decompressed bytes that fails where more come out than the size of the compressed file makes likely.
pub(super) struct Limited<R> {
    inner: R,
    left: u64,
    limit: u64,
}

impl<R> Limited<R> {
    pub(super) fn new(inner: R, size: u64) -> Self {
        let limit = size.saturating_mul(EXPANSION).max(ALWAYS);
        Limited { inner, left: limit, limit }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                let limit = self.limit;
                return Err(io::Error::other(format!(
                    "it decompresses to more than {limit} bytes, too much for a file of its size"
                )));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    pub(in crate::data) fn gzipped(contents: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(contents).unwrap();
        encoder.finish().unwrap()
    }

    /// What a reader says of a file `f` with such contents.
    pub(in crate::data) fn refusal<V>(contents: &[u8], read: impl FnOnce(&Path) -> Result<V>) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, contents).unwrap();
        let error = read(file.path()).err().expect("it is refused");
        error.to_string().replace(file.path().to_str().unwrap(), "f")
    }

    #[test]
    fn a_bomb_ends_in_an_error() {
        let mebibyte = gzipped(&vec![b'\n'; 1 << 20]);
        let bomb = mebibyte.repeat(1 + (ALWAYS >> 20) as usize); // members of one file
        assert!(bomb.len() < 1 << 20);
        let mut taken = 0;
        let text = refusal(&bomb, |path| {
            let mut reader = open(path)?;
            loop {
                let count = reader.fill_buf().map_err(|source| unreadable(path, source))?.len();
                if count == 0 {
                    return Ok(());
                }
                taken += count as u64;
                reader.consume(count);
            }
        });
        assert_eq!(
            text,
            "cannot read 'f': it decompresses to more than 268435456 bytes, too much for a file of its size"
        );
        assert!(taken <= ALWAYS);
    }
}
