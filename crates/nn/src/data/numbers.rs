//! Numbers of a binary file, whose header says how many they are and of which type.

use std::io::{self, Read};

use wengert_tensor::{DType, Element, Shape, Tensor};

/// A number of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i64),
    /// One that i64 does not have, as only u64 has.
    Large(u64),
    Float(f64),
}

/// How the bytes of one number are read.
pub(super) type Decode = fn(&[u8]) -> Number;

/// What a header says.
#[derive(Debug)]
pub(super) struct Header {
    /// Its length in bytes, and so where the numbers begin.
    pub(super) length: u64,
    pub(super) shape: Shape,
    /// Bytes of a number.
    pub(super) width: usize,
    pub(super) decode: Decode,
}

/// Why a file is refused: the system's reason, or the byte and what was expected there.
pub(super) enum Refusal {
    Unreadable(io::Error),
    Malformed(u64, String),
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Refusal::Unreadable(source)
    }
}

impl Number {
    /// The number as an element, rounded to floating-point types, unchanged in integer types.
    fn as_element<E: Element>(self) -> std::result::Result<E, String> {
        let rounds = matches!(E::DTYPE, DType::F32 | DType::F64);
        let (value, kept, number) = match self {
            Number::Integer(integer) => {
                let value = E::from_i64(integer);
                (value, value.to_i64() == integer, integer.to_string())
            }
            Number::Large(integer) => (E::from_f64(integer as f64), false, integer.to_string()),
            Number::Float(float) => {
                let value = E::from_f64(float);
                (value, value.to_f64() == float, float.to_string())
            }
        };
        if rounds || kept { Ok(value) } else { Err(format!("{number} is no number of the type {}", E::DTYPE)) }
    }
}

/// Up to `count` bytes: memory grows with what is there, not with what was asked for.
pub(super) fn take(reader: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The numbers after a header, all that is left of the file.
pub(super) fn read_numbers<E: Element>(
    reader: &mut impl Read,
    header: Header,
) -> std::result::Result<Tensor<E>, Refusal> {
    let Header { length, shape, width, decode } = header;
    let count =
        shape.checked_numel().and_then(|count| count.checked_mul(width)).filter(|&count| count < isize::MAX as usize);
    let Some(expected) = count else {
        return Err(Refusal::Malformed(
            0,
            format!("the header says a tensor of shape {shape}, which no file can hold"),
        ));
    };
    let bytes = take(reader, expected as u64 + 1)?;
    if bytes.len() != expected {
        let more = if bytes.len() > expected { "more" } else { "fewer" };
        let problem = format!("expected {expected} bytes of numbers for the shape {shape}, found {more}");
        return Err(Refusal::Malformed(length + bytes.len().min(expected) as u64, problem));
    }
    let mut values = Vec::with_capacity(bytes.len() / width);
    for (position, number) in bytes.chunks_exact(width).enumerate() {
        match decode(number).as_element() {
            Ok(value) => values.push(value),
            Err(problem) => return Err(Refusal::Malformed(length + (position * width) as u64, problem)),
        }
    }
    let made = Tensor::try_from_vec(values, shape);
    made.map_err(|error| Refusal::Unreadable(io::Error::new(io::ErrorKind::OutOfMemory, error.to_string())))
}

/// The first bytes of a number, of which there are as many as its width says.
pub(super) fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().unwrap_or(&[0; N])
}
