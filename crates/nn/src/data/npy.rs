//! Reads NumPy's files: `.npy`, and `.npz` archives with the feature `npz`. The format is described at
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::io::Read;
use std::path::Path;

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Element, Shape, Tensor};

use crate::Result;
use crate::bytes::{f16_to_f64, first_bytes};
use crate::data::numbers::{Decode, Header, Number, ReadError, read_numbers, read_up_to};
use crate::data::source::{file_error, open};

/// The largest accepted length of a header, in bytes. NumPy writes headers of about 100 bytes.
const MAX_HEADER_BYTES: u32 = 1 << 16;

/// Reads an array from a file of `numpy.save`, as a tensor with elements of type `E`. NumPy: `numpy.load`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::read_npy;
/// use wengert::prelude::*;
///
/// let header = b"\x93NUMPY\x01\0\x3a\0{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }\n";
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, [&header[..], &[1, 0, 2, 0, 3, 0]].concat())?;
/// assert_eq!(read_npy::<i64>(&file)?, Tensor::from([1, 2, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - The file is missing, unreadable or not a regular file, or decompresses to more than 16 MiB and more than 100 times
///   its size, or there is not enough memory: [`Error::Read`](crate::Error::Read).
/// - The file is not a file of NumPy, has complex numbers, texts or objects, ends too early, continues after its last
///   number, or has a number that `E` cannot represent (a fraction for integers, 300 for `u8`):
///   [`Error::Malformed`](crate::Error::Malformed), with the byte. Floating-point types round.
pub fn read_npy<E: Element>(path: impl AsRef<Path>) -> Result<Tensor<E>> {
    let path = path.as_ref();
    read(&mut open(path)?).map_err(|error| file_error(path, error))
}

/// Reads the array `name` from an archive of `numpy.savez` or `numpy.savez_compressed`. NumPy:
/// `numpy.load(path)[name]`.
///
/// # Errors
///
/// As for [`read_npy`]. Also [`Error::Malformed`](crate::Error::Malformed) if the file is not a zip archive, the
/// archive has no array `name`, or the array cannot be unpacked. If there is no such array, the error lists the first
/// 20 arrays of the archive.
#[cfg(feature = "npz")]
pub fn read_npz<E: Element>(path: impl AsRef<Path>, name: &str) -> Result<Tensor<E>> {
    use crate::Error;
    use crate::data::source::{SizeLimitedReader, unreadable};
    use crate::error::Place;
    use crate::file::open_regular;

    let path = path.as_ref();
    let (file, size) = open_regular(path)?;
    let malformed = |place, problem| Error::Malformed { path: path.to_owned(), place, problem };
    let mut archive = zip::ZipArchive::new(file)
        .map_err(|error| malformed(Place::Byte(0), format!("expected a zip archive: {error}")))?;
    let place = || Place::Entry(name.to_owned());
    let index = archive.index_for_name(&format!("{name}.npy"));
    let Some(index) = index.or_else(|| archive.index_for_name(name)) else {
        let names = archive.file_names().flatten().take(20).map(|name| name.trim_end_matches(".npy").to_owned());
        let names: Vec<String> = names.collect();
        return Err(malformed(place(), format!("there is no such array; the archive has {}", names.join(", "))));
    };
    let entry = archive.by_index(index).map_err(|error| malformed(place(), error.to_string()))?;
    read(&mut SizeLimitedReader::new(entry, size, "`unzip`")).map_err(|error| match error {
        ReadError::Unreadable(source) => unreadable(path, source),
        ReadError::Malformed(byte, problem) => malformed(place(), format!("byte {byte}: {problem}")),
    })
}

/// Reads the header and the elements of a `.npy` file, or returns an error if the file cannot be read, or `E` cannot
/// represent its contents.
fn read<E: Element>(reader: &mut impl Read) -> std::result::Result<Tensor<E>, ReadError> {
    let (mut header, is_fortran_order) = read_header(reader)?;
    if !is_fortran_order {
        return read_numbers(reader, header);
    }
    header.shape = header.shape.iter().rev().copied().collect();
    let tensor: Tensor<E> = read_numbers(reader, header)?;
    let dims: Vec<isize> = (0..tensor.rank() as isize).rev().collect();
    tensor.try_permute(dims).map_err(|error| ReadError::Malformed(0, error.to_string()))
}

/// Reads the header of a `.npy` file. Returns the header, and true if the elements are in Fortran's order (column by column). Returns an
/// error if the file cannot be read, the header is not valid, or the elements are not numbers.
fn read_header(reader: &mut impl Read) -> std::result::Result<(Header, bool), ReadError> {
    let malformed = |byte, problem: &str| Err(ReadError::Malformed(byte, problem.to_owned()));
    let start = read_up_to(reader, 8)?;
    if start.len() < 8 || !start.starts_with(b"\x93NUMPY") {
        return malformed(0, "expected the start of a file of NumPy: \\x93NUMPY and a version");
    }
    let length_bytes = if start[6] == 1 { 2 } else { 4 };
    let size = read_up_to(reader, length_bytes)?;
    if size.len() < length_bytes as usize {
        return malformed(8, "expected the length of the header, but the file ends");
    }
    let size = if length_bytes == 2 {
        u16::from_le_bytes(first_bytes(&size)).into()
    } else {
        u32::from_le_bytes(first_bytes(&size))
    };
    if size > MAX_HEADER_BYTES {
        return Err(ReadError::Malformed(
            8,
            format!("a header of {size} bytes, but at most {MAX_HEADER_BYTES} are allowed"),
        ));
    }
    let header_start = 8 + length_bytes;
    let text = read_up_to(reader, size.into())?;
    if text.len() < size as usize {
        return Err(ReadError::Malformed(
            header_start,
            format!("expected a header of {size} bytes, but the file ends"),
        ));
    }
    let text = String::from_utf8_lossy(&text);
    let Some((descr, is_fortran_order, sizes)) = parse_header(&text) else {
        return malformed(header_start, "expected a header {'descr': …, 'fortran_order': …, 'shape': …}");
    };
    let Some((element_bytes, decode)) = decoder(descr) else {
        let problem =
            format!("numbers of the type '{descr}', but only bool, integers and floats of up to 8 bytes are supported");
        return Err(ReadError::Malformed(header_start, problem));
    };
    let Some(shape) = sizes.iter().map(|size| size.parse().ok()).collect::<Option<Shape>>() else {
        return Err(ReadError::Malformed(
            header_start,
            format!("expected sizes in the shape, found ({})", sizes.join(", ")),
        ));
    };
    Ok((Header { header_bytes: header_start + u64::from(size), shape, element_bytes, decode }, is_fortran_order))
}

/// Parses a header, a Python dictionary of one line. Returns the element type, true for Fortran's order, and the sizes,
/// or `None` if one of them is missing or malformed.
fn parse_header(text: &str) -> Option<(&str, bool, Vec<&str>)> {
    let after = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}'"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
    let order = after("fortran_order")?;
    let is_fortran_order = order.starts_with("True");
    if !is_fortran_order && !order.starts_with("False") {
        return None;
    }
    let sizes = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    Some((descr, is_fortran_order, sizes.split(',').map(str::trim).filter(|size| !size.is_empty()).collect()))
}

/// Returns the width in bytes and the decoder of an element type such as `<f4`, or `None` for a type that cannot be
/// read.
fn decoder(descr: &str) -> Option<(usize, Decode)> {
    /// Converts an unsigned integer to a [`Number`].
    fn unsigned(value: u64) -> Number {
        i64::try_from(value).map_or(Number::Large(value), Number::Integer)
    }
    let (order, kind) = descr.split_at_checked(1)?;
    if !matches!(order, "<" | ">" | "|" | "=") {
        return None;
    }
    Some(match (order, kind) {
        (_, "b1" | "u1") => (1, |bytes| Number::Integer(bytes[0].into())),
        (_, "i1") => (1, |bytes| Number::Integer((bytes[0] as i8).into())),
        (">", "i2") => (2, |bytes| Number::Integer(i16::from_be_bytes(first_bytes(bytes)).into())),
        (">", "i4") => (4, |bytes| Number::Integer(i32::from_be_bytes(first_bytes(bytes)).into())),
        (">", "i8") => (8, |bytes| Number::Integer(i64::from_be_bytes(first_bytes(bytes)))),
        (">", "u2") => (2, |bytes| Number::Integer(u16::from_be_bytes(first_bytes(bytes)).into())),
        (">", "u4") => (4, |bytes| Number::Integer(u32::from_be_bytes(first_bytes(bytes)).into())),
        (">", "u8") => (8, |bytes| unsigned(u64::from_be_bytes(first_bytes(bytes)))),
        (">", "f2") => (2, |bytes| Number::Float(f16_to_f64(u16::from_be_bytes(first_bytes(bytes))))),
        (">", "f4") => (4, |bytes| Number::Float(f32::from_be_bytes(first_bytes(bytes)).into())),
        (">", "f8") => (8, |bytes| Number::Float(f64::from_be_bytes(first_bytes(bytes)))),
        (_, "i2") => (2, |bytes| Number::Integer(i16::from_le_bytes(first_bytes(bytes)).into())),
        (_, "i4") => (4, |bytes| Number::Integer(i32::from_le_bytes(first_bytes(bytes)).into())),
        (_, "i8") => (8, |bytes| Number::Integer(i64::from_le_bytes(first_bytes(bytes)))),
        (_, "u2") => (2, |bytes| Number::Integer(u16::from_le_bytes(first_bytes(bytes)).into())),
        (_, "u4") => (4, |bytes| Number::Integer(u32::from_le_bytes(first_bytes(bytes)).into())),
        (_, "u8") => (8, |bytes| unsigned(u64::from_le_bytes(first_bytes(bytes)))),
        (_, "f2") => (2, |bytes| Number::Float(f16_to_f64(u16::from_le_bytes(first_bytes(bytes))))),
        (_, "f4") => (4, |bytes| Number::Float(f32::from_le_bytes(first_bytes(bytes)).into())),
        (_, "f8") => (8, |bytes| Number::Float(f64::from_le_bytes(first_bytes(bytes)))),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::source::tests::read_error_text;

    fn npy(header: &str, numbers: &[u8]) -> Vec<u8> {
        [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
    }

    fn header(descr: &str, order: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n")
    }

    fn read<E: Element>(descr: &str, shape: &str, numbers: &[u8]) -> Tensor<E> {
        super::read(&mut &npy(&header(descr, "False", shape), numbers)[..]).ok().unwrap()
    }

    #[test]
    fn every_type_is_read() {
        assert_eq!(read::<bool>("|b1", "(2,)", &[0, 1]), Tensor::from([false, true]));
        assert_eq!(read::<i64>("|i1", "()", &[255]), Tensor::scalar(-1));
        assert_eq!(read::<i64>("<i8", "(1, 1)", &(-5i64).to_le_bytes()), Tensor::from([[-5]]));
        assert_eq!(read::<i64>(">i4", "(1,)", &7i32.to_be_bytes()), Tensor::from([7]));
        assert_eq!(read::<f32>("<u8", "(1,)", &u64::MAX.to_le_bytes()), Tensor::from([u64::MAX as f32]));
        assert_eq!(read::<f64>("<f2", "(1,)", &[0, 0x3e]), Tensor::from([1.5]));
        assert_eq!(read::<f32>(">f8", "(1,)", &0.1f64.to_be_bytes()), Tensor::from([0.1]));
        assert_eq!(read::<f32>("<f4", "(0, 3)", &[]).shape().sizes(), [0, 3]);
        // In Fortran's order, the elements of a column are adjacent.
        let fortran = npy(&header("|u1", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
        assert_eq!(super::read::<i64>(&mut &fortran[..]).ok().unwrap(), Tensor::from([[1, 2, 3], [4, 5, 6]]));
    }

    #[test]
    fn errors_name_the_byte() {
        let start = "'f', byte 0: expected the start of a file of NumPy: \\x93NUMPY and a version";
        let good = header("<f4", "False", "(2,)");
        for (contents, expected) in [
            (vec![], start.to_owned()),
            (b"1,2\n3,4\n".to_vec(), start.to_owned()),
            (npy(&good, &[])[..9].to_vec(), "'f', byte 8: expected the length of the header, but the file ends".to_owned()),
            (npy(&good, &[])[..30].to_vec(), format!("'f', byte 10: expected a header of {} bytes, but the file ends", good.len())),
            (
                npy("{'shape': 3}", &[]),
                "'f', byte 10: expected a header {'descr': …, 'fortran_order': …, 'shape': …}".to_owned(),
            ),
            (
                npy(&header("|O", "False", "(2,)"), &[]),
                "'f', byte 10: numbers of the type '|O', but only bool, integers and floats of up to 8 bytes are supported".to_owned(),
            ),
            (
                npy(&header("<f4", "False", "(-1, 2)"), &[]),
                "'f', byte 10: expected sizes in the shape, found (-1, 2)".to_owned(),
            ),
            (
                npy(&good, &[0; 7]),
                format!("'f', byte {}: expected 8 bytes of numbers for the shape [2], found fewer", 17 + good.len()),
            ),
            (
                npy(&good, &[0; 9]),
                format!("'f', byte {}: expected 8 bytes of numbers for the shape [2], found more", 18 + good.len()),
            ),
            (
                npy(&header("|u1", "False", "(999999999999999, 2)"), &[]),
                "'f', byte 84: expected 1999999999999998 bytes of numbers for the shape [999999999999999, 2], found fewer".to_owned(),
            ),
            (
                [b"\x93NUMPY\x02\0", &u32::MAX.to_le_bytes()[..]].concat(),
                "'f', byte 8: a header of 4294967295 bytes, but at most 65536 are allowed".to_owned(),
            ),
        ] {
            assert_eq!(read_error_text(&contents, |path| read_npy::<f32>(path)), expected);
        }
        let half = npy(&header("<f4", "False", "(1,)"), &0.5f32.to_le_bytes());
        assert!(read_error_text(&half, |path| read_npy::<i64>(path)).ends_with("0.5 is not a number of the type i64"));
        // 2⁶³ is above the largest i64. The largest f64 below 2⁶³ and the number -2⁶³ fit i64.
        let file = |value: f64| npy(&header("<f8", "False", "(1,)"), &value.to_le_bytes());
        for value in [2f64.powi(63), -2f64.powi(63).next_up(), f64::MAX, f64::INFINITY, f64::NAN] {
            let text = read_error_text(&file(value), |path| read_npy::<i64>(path));
            assert!(text.ends_with("is not a number of the type i64"), "{text}");
        }
        for value in [2f64.powi(63).next_down(), -2f64.powi(63)] {
            assert_eq!(super::read::<i64>(&mut &file(value)[..]).ok().unwrap(), Tensor::from([value as i64]));
        }
        for value in [256.0, -1.0] {
            assert!(
                read_error_text(&file(value), |path| read_npy::<u8>(path)).ends_with("is not a number of the type u8")
            );
            assert!(
                read_error_text(&file(value), |path| read_npy::<bool>(path))
                    .ends_with("is not a number of the type bool")
            );
        }
    }

    #[cfg(feature = "npz")]
    #[test]
    fn arrays_of_an_archive_are_read_by_name_and_limited_in_size() {
        use std::io::Write;

        use zip::write::SimpleFileOptions;

        let zipped = |name: &str, parts: &[&[u8]]| {
            let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            parts.iter().for_each(|part| writer.write_all(part).unwrap());
            writer.finish().unwrap().into_inner()
        };
        let array = npy(&header("<f4", "False", "(1,)"), &1.5f32.to_le_bytes());
        let good = zipped("x.npy", &[&array]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, &good).unwrap();
        assert_eq!(read_npz::<f64>(&file, "x").unwrap(), Tensor::from([1.5]));
        let read = |contents: &[u8], name| read_error_text(contents, |path| read_npz::<f32>(path, name));
        assert_eq!(read(&good, "y"), "'f', entry 'y': there is no such array; the archive has x");
        assert!(read(&good[..good.len() / 2], "x").starts_with("'f', byte 0: expected a zip archive: "));
        assert!(read(b"", "x").starts_with("'f', byte 0: expected a zip archive: "));
        let short = zipped("x.npy", &[&array[..array.len() - 1]]);
        assert!(read(&short, "x").contains("entry 'x': byte 71: expected 4 bytes"), "{}", read(&short, "x"));
        let bomb = npy(&header("|u1", "False", "(1073741824,)"), &[]);
        let zeros = vec![0; 1 << 20];
        let bomb = zipped("x.npy", &[&[&bomb[..]], &vec![&zeros[..]; 20][..]].concat());
        assert!(read(&bomb, "x").contains("it decompresses to more than 16777216 bytes"), "{}", read(&bomb, "x"));
    }
}
