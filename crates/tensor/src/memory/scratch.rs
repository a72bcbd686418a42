//! Temporary buffers for one operation.

use std::ops::{Deref, DerefMut};

use crate::Scalar;
use crate::memory::available::AllocationError;
use crate::memory::pool::{self, PooledBuffer};
use crate::memory::reserve;

/// A temporary buffer: a buffer from the pool with unspecified elements, or a vector of zeros if the pool is off or does not serve the size.
pub(crate) enum Scratch<T> {
    Pooled(PooledBuffer<T>),
    Own(Vec<T>),
}

impl<T: Scalar> Scratch<T> {
    /// Returns a buffer of `len` elements with unspecified values. The caller must write each element that it reads.
    pub(crate) fn new(len: usize) -> Result<Self, AllocationError> {
        if pool::handles_len::<T>(len) {
            return reserve::scratch(len).map(Scratch::Pooled);
        }
        reserve::zeroed(len).map(Scratch::Own)
    }

    pub(crate) fn zeroed(len: usize) -> Result<Self, AllocationError> {
        let mut scratch = Self::new(len)?;
        scratch.fill(T::ZERO);
        Ok(scratch)
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Scratch::Pooled(block) => block,
            Scratch::Own(data) => data,
        }
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Scratch::Pooled(block) => block,
            Scratch::Own(data) => data,
        }
    }
}
