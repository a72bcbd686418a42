//! Tensors as bytes: row-major and little-endian, as the safetensors format has them.

use wengert_tensor::{DType, Element, Shape, Tensor};

use crate::Result;

/// The elements of a tensor. NaN keeps its bits.
pub(crate) fn to_bytes<E: Element>(tensor: &Tensor<E>) -> Vec<u8> {
    let values = tensor.iter();
    match E::DTYPE {
        DType::F32 => values.flat_map(|value| (value.to_f64() as f32).to_le_bytes()).collect(),
        DType::F64 => values.flat_map(|value| value.to_f64().to_le_bytes()).collect(),
        DType::I64 => values.flat_map(|value| value.to_i64().to_le_bytes()).collect(),
        _ => values.map(|value| value.to_i64() as u8).collect(),
    }
}

/// A tensor of `shape` from bytes of its own element type.
///
/// # Errors
///
/// If there is not enough memory, or the bytes are not as many as the shape needs.
pub(crate) fn from_bytes<E: Element>(bytes: &[u8], shape: &Shape) -> Result<Tensor<E>> {
    let values: Vec<E> = match E::DTYPE {
        DType::F32 => bytes.as_chunks().0.iter().map(|&b| E::from_f64(f32::from_le_bytes(b).into())).collect(),
        DType::F64 => bytes.as_chunks().0.iter().map(|&b| E::from_f64(f64::from_le_bytes(b))).collect(),
        DType::I64 => bytes.as_chunks().0.iter().map(|&b| E::from_i64(i64::from_le_bytes(b))).collect(),
        _ => bytes.iter().map(|&b| E::from_i64(b.into())).collect(),
    };
    Ok(Tensor::try_from_vec(values, shape)?)
}
