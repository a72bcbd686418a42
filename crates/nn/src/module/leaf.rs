//! The leaves of a module's tree: parameters and buffers.

use std::any::Any;

use wengert_autograd::{Buffer, Gradients, Parameter};
use wengert_tensor::{DType, Element, Float, Shape};

use crate::{Result, bytes};

/// A reference to a leaf of a module's tree: a parameter or a buffer.
pub enum Leaf<'m, T: Float = f32> {
    /// The leaf is a parameter.
    Parameter(&'m Parameter<T>),
    /// The leaf is a buffer. Its element type may differ from `T`.
    Buffer(&'m dyn AnyBuffer),
}

impl<'m, T: Float> Leaf<'m, T> {
    /// Returns the parameter of this leaf, or `None` if the leaf is a buffer.
    pub fn parameter(self) -> Option<&'m Parameter<T>> {
        match self {
            Leaf::Parameter(parameter) => Some(parameter),
            Leaf::Buffer(_) => None,
        }
    }
}

/// A mutable reference to a leaf of a module's tree: a parameter or a buffer.
pub enum LeafMut<'m, T: Float = f32> {
    /// The leaf is a parameter.
    Parameter(&'m mut Parameter<T>),
    /// The leaf is a buffer. Its element type may differ from `T`.
    Buffer(&'m mut dyn AnyBuffer),
}

impl<'m, T: Float> LeafMut<'m, T> {
    /// Returns the parameter of this leaf, or `None` if the leaf is a buffer.
    pub fn parameter(self) -> Option<&'m mut Parameter<T>> {
        match self {
            LeafMut::Parameter(parameter) => Some(parameter),
            LeafMut::Buffer(_) => None,
        }
    }
}

/// A [`Buffer`] of any element type. If the element type is known, for example `i64`, `as_any().downcast_ref::<Buffer<i64>>()` returns the
/// buffer.
pub trait AnyBuffer: Any {
    /// Returns the element type of the buffer.
    fn dtype(&self) -> DType;
    /// Returns the shape of the buffer.
    fn shape(&self) -> &Shape;
    /// Returns the elements of the buffer as bytes, row-major and little-endian.
    fn to_bytes(&self) -> Vec<u8>;
    /// Decodes elements from bytes, row-major and little-endian. Returns a function that sets the buffer to these elements, so that several
    /// buffers can be decoded before the first one changes.
    ///
    /// # Errors
    ///
    /// If the number of bytes does not fit the shape of the buffer, or there is not enough memory.
    fn decode(&mut self, bytes: &[u8]) -> Result<Box<dyn FnOnce() + '_>>;
    /// Sets the elements of the buffer from bytes, row-major and little-endian.
    ///
    /// # Errors
    ///
    /// As for [`decode`](Self::decode). The buffer is then unchanged.
    fn set_from_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.decode(bytes)?();
        Ok(())
    }
    /// Returns the buffer as `Any`, so that it can be downcast.
    fn as_any(&self) -> &dyn Any;
    /// Returns the buffer as `Any`, so that it can be downcast and changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

#[wengert_macros::precompiled]
impl<E: Element> AnyBuffer for Buffer<E> {
    fn dtype(&self) -> DType {
        E::DTYPE
    }

    fn shape(&self) -> &Shape {
        self.value.shape()
    }

    fn to_bytes(&self) -> Vec<u8> {
        bytes::to_bytes(&self.value)
    }

    #[inline]
    fn decode(&mut self, bytes: &[u8]) -> Result<Box<dyn FnOnce() + '_>> {
        let value = bytes::from_bytes(bytes, self.value.shape())?;
        Ok(Box::new(move || self.value = value))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Applies to `buffer` the changes that the tape of `gradients` recorded for it. Only buffers of the elements `T` and `i64` have recorded
/// changes.
pub(crate) fn update_buffer<T: Float>(buffer: &mut dyn AnyBuffer, gradients: &Gradients<T>) -> Result<()> {
    let buffer = buffer.as_any_mut();
    if let Some(statistic) = buffer.downcast_mut::<Buffer<T>>() {
        gradients.try_update_statistic(statistic)?;
    } else if let Some(count) = buffer.downcast_mut::<Buffer<i64>>() {
        gradients.try_update_count(count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::*;

    #[test]
    fn another_number_of_bytes_is_an_error_and_changes_nothing() {
        fn check<E: Element>(size: usize) {
            let mut buffer = Buffer::new(Tensor::full([3], E::from_i64(1)));
            let buffer: &mut dyn AnyBuffer = &mut buffer;
            let old = buffer.to_bytes();
            for count in (0..=4 * size).filter(|&count| count != 3 * size) {
                let error = buffer.set_from_bytes(&vec![0; count]).unwrap_err().to_string();
                let expected =
                    format!("a tensor [3] of {size} bytes per element has {} bytes, but got {count}", 3 * size);
                assert!(error.contains(&expected), "{error}");
            }
            assert_eq!(buffer.to_bytes(), old);
            buffer.set_from_bytes(&vec![0; 3 * size]).unwrap();
            assert_eq!(buffer.to_bytes(), vec![0; 3 * size]);
        }
        check::<f32>(4);
        check::<f64>(8);
        check::<i64>(8);
        check::<u8>(1);
        check::<bool>(1);
    }
}
