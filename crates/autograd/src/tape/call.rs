//! The calls of an operation as its rules see them: for one example, and for a batch.

use wengert_macros::precompiled;
use wengert_tensor::{Float, Shape};

use crate::Var;
use crate::tape::{BatchedCall, Call};

#[precompiled]
impl<'t, T: Float> Call<'t, T> {
    /// Input number `position`.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position]
    }

    /// All inputs.
    #[inline]
    pub fn inputs(&self) -> &[Var<'t, T>] {
        &self.inputs
    }

    /// The result.
    #[inline]
    pub fn output(&self) -> Var<'t, T> {
        self.output
    }
}

impl<'t, T: Float> BatchedCall<'t, T> {
    /// Number of examples.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of inputs.
    pub fn arity(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input number `position` has a batch dimension; if not, it is the same for all examples.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn is_batched(&self, position: usize) -> bool {
        self.inputs[position].1
    }

    /// Input number `position`, with or without a batch dimension.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position].0
    }

    /// Input number `position` with the batch dimension first: expanded, which copies nothing, if it is the same for all examples.
    ///
    /// # Panics
    ///
    /// If the operation was given fewer inputs.
    #[track_caller]
    pub fn batched(&self, position: usize) -> Var<'t, T> {
        let (var, is_batched) = self.inputs[position];
        if is_batched { var } else { var.repeated(self.size, self.at) }
    }

    /// The result's shape, the batch dimension included.
    pub fn shape(&self) -> Shape {
        self.with_batch(&self.shape)
    }

    /// `shape` with the batch dimension first.
    pub(crate) fn with_batch(&self, shape: &[usize]) -> Shape {
        std::iter::once(self.size).chain(shape.iter().copied()).collect()
    }
}
