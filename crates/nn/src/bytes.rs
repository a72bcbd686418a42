//! Converts tensors to and from bytes: row-major and little-endian, as in the safetensors format.

use safetensors::Dtype as FileDtype;
use wengert_macros::precompiled;
use wengert_tensor::{DType, Element, Shape, Site, Tensor};

use crate::{Error, Result};

/// Returns the elements of a tensor as bytes. An f64 NaN keeps its bits. An f32 NaN is converted to f64 and back, which may change its
/// bits.
#[precompiled]
pub(crate) fn to_bytes<E: Element>(tensor: &Tensor<E>) -> Vec<u8> {
    match E::DTYPE {
        DType::F32 => encode_all(tensor, |value| (value.to_f64() as f32).to_le_bytes()),
        DType::F64 => encode_all(tensor, |value| value.to_f64().to_le_bytes()),
        DType::I64 => encode_all(tensor, |value| value.to_i64().to_le_bytes()),
        _ => encode_all(tensor, |value| [value.to_i64() as u8]),
    }
}

/// Returns the bytes of all elements, each encoded by `encode`. If `encode` keeps the processor's byte order, the compiler turns the loop into a
/// plain copy.
fn encode_all<E: Element, const N: usize>(tensor: &Tensor<E>, encode: impl Fn(E) -> [u8; N]) -> Vec<u8> {
    let values = tensor.to_vec();
    let mut bytes = vec![0; N * values.len()];
    for (to, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
        *to = encode(value);
    }
    bytes
}

/// Returns a tensor of `shape` from the bytes of elements that have the tensor's own type.
///
/// # Errors
///
/// If there is not enough memory, or the number of bytes does not fit the shape.
#[precompiled]
pub(crate) fn from_bytes<E: Element>(bytes: &[u8], shape: &Shape) -> Result<Tensor<E>> {
    match E::DTYPE {
        DType::F32 => decode_all(bytes, shape, |bytes| E::from_f64(f32::from_le_bytes(bytes).into())),
        DType::F64 => decode_all(bytes, shape, |bytes| E::from_f64(f64::from_le_bytes(bytes))),
        DType::I64 => decode_all(bytes, shape, |bytes| E::from_i64(i64::from_le_bytes(bytes))),
        _ => decode_all(bytes, shape, |[byte]| E::from_i64(byte.into())),
    }
}

/// Converts floating-point numbers from the type `from` to the type `to`, and rounds each number to nearest. Numbers that already have the
/// type `to` keep their bytes.
///
/// # Errors
///
/// If memory cannot hold the converted numbers. If the types differ, also if the number of bytes does not fit a tensor of `shape`.
pub(crate) fn convert_floats(bytes: Vec<u8>, from: FileDtype, to: DType, shape: &Shape) -> Result<Vec<u8>> {
    let decode: fn(&[u8]) -> f64 = match from {
        _ if from == file_dtype(to) => return Ok(bytes),
        FileDtype::F16 => |bytes| f16_to_f64(u16::from_le_bytes(first_bytes(bytes))),
        FileDtype::BF16 => |bytes| bf16_to_f64(u16::from_le_bytes(first_bytes(bytes))),
        FileDtype::F32 => |bytes| f32::from_le_bytes(first_bytes(bytes)).into(),
        _ => |bytes| f64::from_le_bytes(first_bytes(bytes)),
    };
    let [size, converted_size] = [from, file_dtype(to)].map(|dtype| dtype.bitsize() / 8);
    check_byte_count(&bytes, size, shape)?;
    let mut converted = Vec::new();
    converted.try_reserve_exact(bytes.len() / size * converted_size).map_err(|_| out_of_memory(shape, to))?;
    for number in bytes.chunks_exact(size).map(decode) {
        match to {
            DType::F32 => converted.extend((number as f32).to_le_bytes()),
            _ => converted.extend(number.to_le_bytes()),
        }
    }
    Ok(converted)
}

/// Returns a tensor of `shape` whose elements are decoded by `decode`, each from N bytes. Returns an error if the number of bytes does not fit
/// the shape, or memory cannot hold the elements.
fn decode_all<E: Element, const N: usize>(
    bytes: &[u8],
    shape: &Shape,
    decode: impl Fn([u8; N]) -> E,
) -> Result<Tensor<E>> {
    check_byte_count(bytes, N, shape)?;
    let mut elements = Vec::new();
    elements.try_reserve_exact(bytes.len() / N).map_err(|_| out_of_memory(shape, E::DTYPE))?;
    elements.extend(bytes.as_chunks().0.iter().map(|&bytes| decode(bytes)));
    Ok(Tensor::try_from_vec(elements, shape)?)
}

/// Returns an error unless `bytes` are the elements of a tensor of `shape`, each of `size` bytes.
fn check_byte_count(bytes: &[u8], size: usize, shape: &Shape) -> Result<()> {
    let (expected, found) = (size.saturating_mul(shape.numel()), bytes.len());
    if expected == found { Ok(()) } else { Err(Error::ByteCount { shape: shape.clone(), size, expected, found }) }
}

fn out_of_memory(shape: &Shape, dtype: DType) -> Error {
    wengert_tensor::Error::OutOfMemory { shape: shape.clone(), dtype, at: Site::here("from_vec") }.into()
}

/// Returns the first `N` bytes of `bytes` as an array, or zeros if there are fewer.
pub(crate) fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().unwrap_or(&[0; N])
}

/// Returns the element type as the type of the crate `safetensors`.
pub(crate) fn file_dtype(dtype: DType) -> FileDtype {
    match dtype {
        DType::F32 => FileDtype::F32,
        DType::F64 => FileDtype::F64,
        DType::I64 => FileDtype::I64,
        DType::U8 => FileDtype::U8,
        _ => FileDtype::BOOL,
    }
}

/// Returns true for the floating-point types that [`convert_floats`] can read.
pub(crate) fn is_float(dtype: FileDtype) -> bool {
    matches!(dtype, FileDtype::F16 | FileDtype::BF16 | FileDtype::F32 | FileDtype::F64)
}

/// Returns the number that `bits` encode in IEEE 754's binary16. The tests compare this function with the crate `half`. The library itself does
/// not depend on `half`, to keep its compile time short.
pub(crate) fn f16_to_f64(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// Returns the number that `bits` encode in bfloat16. A bfloat16 number is the upper half of the bits of an f32.
fn bf16_to_f64(bits: u16) -> f64 {
    f32::from_bits(u32::from(bits) << 16).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_number_agrees_with_the_crate_half() {
        for bits in 0..=u16::MAX {
            let [f16, bf16] = [half::f16::from_bits(bits).to_f64(), half::bf16::from_bits(bits).to_f64()];
            for (got, expected) in [(f16_to_f64(bits), f16), (bf16_to_f64(bits), bf16)] {
                assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}: {got}");
            }
        }
    }

    #[test]
    fn another_number_of_bytes_is_an_error() {
        for (dtype, size) in [(FileDtype::F16, 2), (FileDtype::BF16, 2), (FileDtype::F32, 4), (FileDtype::F64, 8)] {
            for count in 0..=4 * size {
                let shape = Shape::from([3]);
                let bytes = convert_floats(vec![0; count], dtype, DType::F64, &shape);
                let tensor = bytes.and_then(|bytes| from_bytes::<f64>(&bytes, &shape));
                assert_eq!(tensor.is_ok(), count == 3 * size, "{dtype:?} {count}");
            }
        }
    }
}
