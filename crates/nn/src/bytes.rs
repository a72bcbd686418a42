//! Converts tensors to and from bytes: row-major and little-endian, as in the safetensors format.

use safetensors::Dtype;
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

/// Returns a tensor of `shape` from the bytes of elements that have the floating-point type `from`. Rounds each element to nearest if the
/// tensor's type has fewer digits.
///
/// # Errors
///
/// If there is not enough memory, or the number of bytes does not fit the shape.
#[precompiled]
pub(crate) fn from_floats<E: Element>(bytes: &[u8], from: Dtype, shape: &Shape) -> Result<Tensor<E>> {
    let number = E::from_f64;
    match from {
        Dtype::F16 => decode_all(bytes, shape, |bytes| number(f16_to_f64(u16::from_le_bytes(bytes)))),
        Dtype::BF16 => decode_all(bytes, shape, |bytes| number(bf16_to_f64(u16::from_le_bytes(bytes)))),
        Dtype::F32 => decode_all(bytes, shape, |bytes| number(f32::from_le_bytes(bytes).into())),
        _ => decode_all(bytes, shape, |bytes| number(f64::from_le_bytes(bytes))),
    }
}

/// Returns a tensor of `shape` whose elements are decoded by `decode`, each from N bytes. Returns an error if the number of bytes does not fit
/// the shape, or memory cannot hold the elements.
fn decode_all<E: Element, const N: usize>(
    bytes: &[u8],
    shape: &Shape,
    decode: impl Fn([u8; N]) -> E,
) -> Result<Tensor<E>> {
    let (elements, rest) = bytes.as_chunks();
    if elements.len() != shape.numel() || !rest.is_empty() {
        let (expected, found) = (N.saturating_mul(shape.numel()), bytes.len());
        return Err(Error::ByteCount { shape: shape.clone(), size: N, expected, found });
    }
    let mut list = Vec::new();
    if list.try_reserve_exact(elements.len()).is_err() {
        let at = Site::here("from_vec");
        return Err(wengert_tensor::Error::OutOfMemory { shape: shape.clone(), dtype: E::DTYPE, at }.into());
    }
    list.extend(elements.iter().map(|&bytes| decode(bytes)));
    Ok(Tensor::try_from_vec(list, shape)?)
}

/// Returns the number that `bits` encode in IEEE 754's binary16. The tests compare this function with the crate `half`. The library itself does
/// not depend on `half`, which would make up a sixth of its compile time.
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
        for (dtype, size) in [(Dtype::F16, 2), (Dtype::BF16, 2), (Dtype::F32, 4), (Dtype::F64, 8)] {
            for count in 0..=4 * size {
                let tensor = from_floats::<f64>(&vec![0; count], dtype, &Shape::from([3]));
                assert_eq!(tensor.is_ok(), count == 3 * size, "{dtype:?} {count}");
            }
        }
    }
}
