//! Reads files in bounded memory: only regular files. A gzipped file is decompressed up to 16 MiB, or up to 100 times its size if that is more.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::data::numbers::ReadError;
use crate::error::Place;
use crate::file::open_regular;
use crate::{Error, Result};

/// The largest ratio of decompressed to compressed bytes of a gzipped file. Tables and images have ratios of 3 to 20. A
/// file made to exhaust memory has a ratio of about 1000, the largest that gzip allows. A larger limit would need more
/// memory for such a file.
const MAX_EXPANSION: u64 = 100;

/// The number of decompressed bytes that is allowed for any file, whatever its size: 16 MiB. A table needs up to 20 times
/// its text in memory while it is read, so that a small file needs at most 320 MiB.
const MIN_LIMIT_BYTES: u64 = 16 << 20;

/// Opens a file for reading, and decompresses it if its first two bytes are the gzip signature.
///
/// # Errors
///
/// If the file is missing, unreadable or not a regular file: [`Error::Read`]. The reader fails if the file decompresses
/// to more than 16 MiB and more than 100 times its size. A file without compression has no limit.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let (file, size) = open_regular(path)?;
    let mut file = BufReader::new(file);
    let start = file.fill_buf().map_err(|source| unreadable(path, source))?;
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(file));
    }
    Ok(Box::new(BufReader::new(SizeLimitedReader::new(MultiGzDecoder::new(file), size, "`gunzip`"))))
}

/// Returns the error of a file that cannot be read.
pub(super) fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

/// Returns the error for a binary file that was refused for the reason `error`.
pub(super) fn file_error(path: &Path, error: ReadError) -> Error {
    match error {
        ReadError::Unreadable(source) => unreadable(path, source),
        ReadError::Malformed(byte, problem) => {
            Error::Malformed { path: path.to_owned(), place: Place::Byte(byte), problem }
        }
    }
}

/// A reader of decompressed bytes. It fails if there are more bytes than is plausible for the size of the compressed file.
pub(super) struct SizeLimitedReader<R> {
    inner: R,
    remaining: u64,
    limit: u64,
    /// The name of a program that decompresses the file without a limit. The error suggests this program.
    unpack_command: &'static str,
}

impl<R> SizeLimitedReader<R> {
    /// Returns a reader for a compressed file of `size` bytes. Its error proposes the program `unpack_command`.
    pub(super) fn new(inner: R, size: u64, unpack_command: &'static str) -> Self {
        let limit = size.saturating_mul(MAX_EXPANSION).max(MIN_LIMIT_BYTES);
        SizeLimitedReader { inner, remaining: limit, limit, unpack_command }
    }
}

impl<R: Read> Read for SizeLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.remaining.checked_sub(count as u64) {
            Some(remaining) => self.remaining = remaining,
            None => {
                let SizeLimitedReader { limit, unpack_command, .. } = self;
                return Err(io::Error::other(format!(
                    "it decompresses to more than {limit} bytes, which is too much for a file of its size; if you trust \
                     it, decompress it with {unpack_command} and read the result, which has no limit"
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

    /// Returns gzipped bytes.
    pub(in crate::data) fn gzipped(contents: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(contents).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns the text of the error that `read` returns for a file with these contents. The text shows the path of the file as `f`.
    pub(in crate::data) fn read_error_text<V>(contents: &[u8], read: impl FnOnce(&Path) -> Result<V>) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, contents).unwrap();
        let error = read(file.path()).err().expect("an error");
        error.to_string().replace(file.path().to_str().unwrap(), "f")
    }

    #[test]
    fn a_file_that_expands_too_much_is_an_error() {
        let mebibyte = gzipped(&vec![b'\n'; 1 << 20]);
        let bomb = mebibyte.repeat(1 + (MIN_LIMIT_BYTES >> 20) as usize); // gzip allows several members in one file
        assert!(bomb.len() < 1 << 17);
        let mut taken = 0;
        let text = read_error_text(&bomb, |path| {
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
            "cannot read 'f': it decompresses to more than 16777216 bytes, which is too much for a file of its size; if \
             you trust it, decompress it with `gunzip` and read the result, which has no limit"
        );
        assert!(taken <= MIN_LIMIT_BYTES);
    }
}
