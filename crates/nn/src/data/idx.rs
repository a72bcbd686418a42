//! Reads IDX files, the format of MNIST: <http://yann.lecun.com/exdb/mnist/>.

use std::io::Read;
use std::path::Path;

use wengert_tensor::{Element, Shape, Tensor};

use crate::Result;
use crate::bytes::first_bytes;
use crate::data::numbers::{Decode, Header, Number, ReadError, read_numbers, read_up_to};
use crate::data::source::{file_error, open};

/// Reads an IDX file, which may be gzipped, as a tensor with elements of type `E`. The images of MNIST become a tensor `[60000, 28, 28]` of
/// values from 0 to 255, and its labels `[60000]`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::read_idx;
/// use wengert::prelude::*;
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60])?; // bytes, [2, 3]
/// let images = read_idx::<f32>(&file)?;
/// assert_eq!(images, Tensor::from([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - The file is missing, unreadable or not a regular file, or decompresses to more than 16 MiB and more than 100 times
///   its size, or there is not enough memory: [`Error::Read`](crate::Error::Read).
/// - The file is not an IDX file, ends too early, continues after its last number, or has a number that `E` cannot
///   represent (a fraction for integers, 300 for `u8`): [`Error::Malformed`](crate::Error::Malformed), with the byte.
///   Floating-point types round.
pub fn read_idx<E: Element>(path: impl AsRef<Path>) -> Result<Tensor<E>> {
    let path = path.as_ref();
    let mut reader = open(path)?;
    let read = read_header(&mut reader).and_then(|header| read_numbers(&mut reader, header));
    read.map_err(|error| file_error(path, error))
}

/// Reads the header of an IDX file, or returns an error if the file cannot be read or has another format.
fn read_header(reader: &mut impl Read) -> std::result::Result<Header, ReadError> {
    let start = read_up_to(reader, 4)?;
    let [0, 0, kind, rank] = start[..] else {
        let problem = "expected the start of an IDX file: two bytes of 0, the element type and the rank";
        return Err(ReadError::Malformed(0, problem.to_owned()));
    };
    let Some((element_bytes, decode)) = decoder(kind) else {
        let problem = format!("expected the number of an element type (8, 9, 11, 12, 13, 14), found {kind}");
        return Err(ReadError::Malformed(2, problem));
    };
    let sizes = read_up_to(reader, 4 * u64::from(rank))?;
    if sizes.len() < 4 * usize::from(rank) {
        let problem = format!("expected {rank} sizes of 4 bytes, but the file ends");
        return Err(ReadError::Malformed(4 + sizes.len() as u64, problem));
    }
    let header_bytes = 4 + sizes.len() as u64;
    let sizes: Vec<usize> = sizes.as_chunks().0.iter().map(|&size| u32::from_be_bytes(size) as usize).collect();
    Ok(Header { header_bytes, shape: Shape::from(&sizes[..]), element_bytes, decode })
}

/// Returns the width in bytes and the decoder of the element type with the code `kind`, or `None` if there is no such
/// type.
fn decoder(kind: u8) -> Option<(usize, Decode)> {
    Some(match kind {
        0x08 => (1, |bytes| Number::Integer(bytes[0].into())),
        0x09 => (1, |bytes| Number::Integer((bytes[0] as i8).into())),
        0x0b => (2, |bytes| Number::Integer(i16::from_be_bytes(first_bytes(bytes)).into())),
        0x0c => (4, |bytes| Number::Integer(i32::from_be_bytes(first_bytes(bytes)).into())),
        0x0d => (4, |bytes| Number::Float(f32::from_be_bytes(first_bytes(bytes)).into())),
        0x0e => (8, |bytes| Number::Float(f64::from_be_bytes(first_bytes(bytes)))),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::source::tests::{gzipped, read_error_text};

    fn idx(kind: u8, sizes: &[u32], numbers: &[u8]) -> Vec<u8> {
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
        [&[0, 0, kind, (sizes.len() / 4) as u8], &sizes[..], numbers].concat()
    }

    fn read<E: Element>(contents: &[u8]) -> Tensor<E> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, contents).unwrap();
        read_idx(&file).unwrap()
    }

    #[test]
    fn every_type_is_read() {
        assert_eq!(read::<i64>(&idx(0x08, &[2], &[0, 255])), Tensor::from([0, 255]));
        assert_eq!(read::<i64>(&idx(0x09, &[1], &[255])), Tensor::from([-1]));
        assert_eq!(read::<f64>(&idx(0x0b, &[1], &[255, 254])), Tensor::from([-2.0]));
        assert_eq!(read::<i64>(&gzipped(&idx(0x0c, &[1, 1], &[1, 0, 0, 2]))), Tensor::from([[16_777_218]]));
        assert_eq!(read::<f32>(&idx(0x0d, &[1], &1.5f32.to_be_bytes())), Tensor::from([1.5]));
        assert_eq!(read::<f32>(&idx(0x0e, &[], &0.1f64.to_be_bytes())), Tensor::scalar(0.1));
        assert_eq!(read::<u8>(&idx(0x08, &[0, 28], &[])).shape().sizes(), [0, 28]);
    }

    #[test]
    fn errors_name_the_byte() {
        let start = "expected the start of an IDX file: two bytes of 0, the element type and the rank";
        for (contents, expected) in [
            (vec![], format!("'f', byte 0: {start}")),
            (vec![0, 0, 8], format!("'f', byte 0: {start}")),
            (b"pixel,label\n".to_vec(), format!("'f', byte 0: {start}")),
            (
                vec![0, 0, 7, 1],
                "'f', byte 2: expected the number of an element type (8, 9, 11, 12, 13, 14), found 7".to_owned(),
            ),
            (
                vec![0, 0, 8, 2, 0, 0, 0, 1],
                "'f', byte 8: expected 2 sizes of 4 bytes, but the file ends".to_owned(),
            ),
            (
                idx(8, &[2, 3], &[1, 2, 3, 4]),
                "'f', byte 16: expected 6 bytes of numbers for the shape [2, 3], found fewer".to_owned(),
            ),
            (idx(8, &[1], &[1, 2]), "'f', byte 9: expected 1 bytes of numbers for the shape [1], found more".to_owned()),
            (
                idx(8, &[u32::MAX, u32::MAX, u32::MAX], &[1]),
                "'f', byte 0: the header has the shape [4294967295, 4294967295, 4294967295], which is too large for any file"
                    .to_owned(),
            ),
            (
                idx(8, &[1 << 31, 1 << 20], &[1]), // The reader must not reserve 2 PiB for this file.
                "'f', byte 13: expected 2251799813685248 bytes of numbers for the shape [2147483648, 1048576], found fewer"
                    .to_owned(),
            ),
            (idx(0x0b, &[2], &[0, 1, 1, 44]), "'f', byte 10: 300 is not a number of the type u8".to_owned()),
            (idx(0x0d, &[1], &0.5f32.to_be_bytes()), "'f', byte 8: 0.5 is not a number of the type u8".to_owned()),
        ] {
            assert_eq!(read_error_text(&contents, |path| read_idx::<u8>(path)), expected);
            let zipped = read_error_text(&gzipped(&contents), |path| read_idx::<u8>(path));
            assert_eq!(zipped, expected);
        }
        let cut = gzipped(&idx(8, &[4], &[1, 2, 3, 4]));
        assert!(read_error_text(&cut[..cut.len() - 9], |path| read_idx::<u8>(path)).starts_with("cannot read 'f': "));
        assert!(read_idx::<u8>("/dev/zero").unwrap_err().to_string().ends_with("it is not a regular file"));
    }
}
