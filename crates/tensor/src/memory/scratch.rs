//! Buffers for the time of one operation.

use std::ops::{Deref, DerefMut};

use crate::memory::pool::{self, Block};
use crate::memory::reserve;
use crate::scalar::element::Scalar;

/// Memory for a moment: its elements are anything.
pub(crate) struct Scratch<T: Scalar>(pub(crate) Temporary<T>);

/// A buffer of the pool, or a vector where the pool does not serve it.
pub(crate) enum Temporary<T> {
    Pooled(Block<T>),
    Own(Vec<T>),
}

impl<T: Scalar> Scratch<T> {
    pub(crate) fn new(len: usize) -> Self {
        let pooled = if pool::serves::<T>(len) { reserve::scratch(len).ok() } else { None };
        Scratch(pooled.map_or_else(|| Temporary::Own(vec![T::ZERO; len]), Temporary::Pooled))
    }
}

impl<T> Deref for Temporary<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Temporary::Pooled(block) => block,
            Temporary::Own(data) => data,
        }
    }
}

impl<T> DerefMut for Temporary<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Temporary::Pooled(block) => block,
            Temporary::Own(data) => data,
        }
    }
}
