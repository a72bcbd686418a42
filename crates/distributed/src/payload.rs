//! The typed elements of a message between ranks.

use std::any::Any;

use wengert_tensor::{DType, Element, Float};

/// The elements of one message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Payload {
    Bytes(Vec<u8>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
}

impl Payload {
    /// Returns the elements of a tensor as a payload. Elements of one byte (`u8`, `bool`) are sent as bytes.
    pub(crate) fn from_elements<E: Element>(elements: Vec<E>) -> Payload {
        match E::DTYPE {
            DType::F32 => Payload::F32(downcast_or_empty(elements)),
            DType::F64 => Payload::F64(downcast_or_empty(elements)),
            DType::I64 => Payload::I64(downcast_or_empty(elements)),
            _ => Payload::Bytes(elements.into_iter().map(|element| element.to_i64() as u8).collect()),
        }
    }

    /// Returns the elements of the payload, or no elements if they have another type than `E`. Bytes are converted to any `E`.
    pub(crate) fn into_elements<E: Element>(self) -> Vec<E> {
        match self {
            Payload::F32(elements) => downcast_or_empty(elements),
            Payload::F64(elements) => downcast_or_empty(elements),
            Payload::I64(elements) => downcast_or_empty(elements),
            Payload::Bytes(bytes) => bytes.into_iter().map(|byte| E::from_i64(byte.into())).collect(),
        }
    }

    /// Returns a payload of zeros, into which `count` elements of type `E` are received.
    pub(crate) fn zeros<E: Element>(count: usize) -> Payload {
        match E::DTYPE {
            DType::F32 => Payload::F32(vec![0.0; count]),
            DType::F64 => Payload::F64(vec![0.0; count]),
            DType::I64 => Payload::I64(vec![0; count]),
            _ => Payload::Bytes(vec![0; count]),
        }
    }

    /// Returns floating-point numbers as a payload. Only payloads of floating-point numbers can be summed.
    pub(crate) fn from_floats<T: Float>(numbers: Vec<T>) -> Payload {
        Payload::from_elements(numbers)
    }

    /// Returns the bytes of the payload, or no bytes if the payload has elements of another type.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Payload::Bytes(bytes) => bytes,
            _ => Vec::new(),
        }
    }

    /// Returns the size of the payload in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::F32(numbers) => 4 * numbers.len(),
            Payload::F64(numbers) => 8 * numbers.len(),
            Payload::I64(numbers) => 8 * numbers.len(),
        }
    }
}

/// Returns `elements` as type `B` if it is the same type as `A`, otherwise an empty vector.
fn downcast_or_empty<A: 'static, B: 'static>(elements: Vec<A>) -> Vec<B> {
    let mut elements = Some(elements);
    let elements: &mut dyn Any = &mut elements;
    elements.downcast_mut::<Option<Vec<B>>>().and_then(Option::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_as_they_were() {
        assert_eq!(Payload::from_elements(vec![1.5f32, -0.0]).into_elements::<f32>(), [1.5, -0.0]);
        assert_eq!(Payload::from_elements(vec![f64::MAX]).into_elements::<f64>(), [f64::MAX]);
        assert_eq!(Payload::from_elements(vec![i64::MIN]).into_elements::<i64>(), [i64::MIN]);
        assert_eq!(Payload::from_elements(vec![true, false]).into_elements::<bool>(), [true, false]);
        assert_eq!(Payload::from_elements(vec![7u8, 255]).into_elements::<u8>(), [7, 255]);
        assert_eq!(Payload::zeros::<i64>(3).size(), 24);
    }
}
