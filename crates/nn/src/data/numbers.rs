//! Reads the numbers of a binary file whose header states their count and type.

use std::io::{self, Read};

use wengert_tensor::{Element, Shape, Tensor};

/// The number of bytes that are read and converted at a time. It is a multiple of the width of every type. A larger block
/// needs more memory and is not faster.
const BLOCK_BYTES: usize = 1 << 16;

/// A number in a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i64),
    /// An unsigned integer that is too large for i64.
    Large(u64),
    Float(f64),
}

/// A function that decodes the bytes of one number.
pub(super) type Decode = fn(&[u8]) -> Number;

/// The contents of the header of a binary file of numbers.
#[derive(Debug)]
pub(super) struct Header {
    /// The length of the header in bytes. The numbers begin after it.
    pub(super) header_bytes: u64,
    pub(super) shape: Shape,
    /// The size of a number, in bytes.
    pub(super) element_bytes: usize,
    pub(super) decode: Decode,
}

/// The reason why a file cannot be read: the system's error, or a byte position and the problem there.
pub(super) enum ReadError {
    Unreadable(io::Error),
    Malformed(u64, String),
}

impl From<io::Error> for ReadError {
    fn from(source: io::Error) -> Self {
        ReadError::Unreadable(source)
    }
}

impl Number {
    /// Converts the number to an element. Floating-point types round the number. If an integer type cannot represent it
    /// exactly, returns the text of an error.
    fn as_element<E: Element>(self) -> std::result::Result<E, String> {
        let (value, exact) = match self {
            Number::Integer(integer) => {
                let value = E::from_i64(integer);
                (value, value.to_i64() == integer)
            }
            Number::Large(integer) => (E::from_f64(integer as f64), false),
            Number::Float(float) => {
                let value = E::from_f64(float);
                // If E is i64, the number 2⁶³ is clamped to the largest i64, 2⁶³ - 1, which converts back to 2⁶³ as f64. So 2⁶³ would seem to
                // be exact without the second condition.
                (value, value.to_f64() == float && float < 2f64.powi(63))
            }
        };
        if exact || E::DTYPE.is_float() {
            return Ok(value);
        }
        let number = match self {
            Number::Integer(integer) => integer.to_string(),
            Number::Large(integer) => integer.to_string(),
            Number::Float(float) => float.to_string(),
        };
        Err(format!("{number} is not a number of the type {}", E::DTYPE))
    }
}

/// Reads `count` bytes, or fewer if the file ends before. Allocates memory only for bytes that exist, because `count`
/// comes from the file and may be wrong.
pub(super) fn read_up_to(reader: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the numbers after a header, to the end of the file. Allocates memory only for numbers that the file really
/// has. Returns an error if the file has more or fewer numbers than the header says, or a number that `E` cannot
/// represent.
pub(super) fn read_numbers<E: Element>(
    reader: &mut impl Read,
    header: Header,
) -> std::result::Result<Tensor<E>, ReadError> {
    let Header { header_bytes, shape, element_bytes, decode } = header;
    let count = shape
        .checked_numel()
        .and_then(|count| count.checked_mul(element_bytes))
        .filter(|&count| count < isize::MAX as usize);
    let Some(expected) = count else {
        return Err(ReadError::Malformed(
            0,
            format!("the header has the shape {shape}, which is too large for any file"),
        ));
    };
    let wrong_size = |found: usize, more: &str| {
        let problem = format!("expected {expected} bytes of numbers for the shape {shape}, found {more}");
        ReadError::Malformed(header_bytes + found as u64, problem)
    };
    let mut values: Vec<E> = Vec::new();
    for start in (0..expected).step_by(BLOCK_BYTES) {
        let bytes = read_up_to(reader, BLOCK_BYTES.min(expected - start) as u64)?;
        values.try_reserve(bytes.len() / element_bytes).map_err(io::Error::from)?;
        for (position, number) in bytes.chunks_exact(element_bytes).enumerate() {
            match decode(number).as_element() {
                Ok(value) => values.push(value),
                Err(problem) => {
                    return Err(ReadError::Malformed(
                        header_bytes + (start + position * element_bytes) as u64,
                        problem,
                    ));
                }
            }
        }
        if bytes.len() < BLOCK_BYTES.min(expected - start) {
            return Err(wrong_size(start + bytes.len(), "fewer"));
        }
    }
    if !read_up_to(reader, 1)?.is_empty() {
        return Err(wrong_size(expected, "more"));
    }
    let tensor = Tensor::try_from_vec(values, shape);
    tensor.map_err(|error| ReadError::Unreadable(io::Error::new(io::ErrorKind::OutOfMemory, error.to_string())))
}
