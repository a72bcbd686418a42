//! Parameters: named tensors that belong to a model and are trained.

use std::sync::atomic::{AtomicU64, Ordering};

use wengert_tensor::{Float, Tensor};

/// A trained tensor. It belongs to the model, not to a tape: [`Tape::parameter`](crate::Tape::parameter) makes it a variable for
/// one step, and it is the key of its gradient in the step's [`Gradients`](crate::Gradients).
///
/// A clone is a separate parameter with the same name and values.
#[derive(Debug)]
pub struct Parameter<T: Float> {
    id: u64,
    name: String,
    /// The current values.
    pub value: Tensor<T>,
}

impl<T: Float> Parameter<T> {
    /// A parameter named `name`, which is its name in checkpoints (`fc1.weight`).
    pub fn new(name: impl Into<String>, value: Tensor<T>) -> Self {
        Parameter { id: next_id(), name: name.into(), value }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameter's unique number in this process.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<T: Float> Clone for Parameter<T> {
    fn clone(&self) -> Self {
        Parameter::new(self.name.clone(), self.value.clone())
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
