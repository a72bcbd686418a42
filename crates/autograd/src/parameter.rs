//! Parameters: tensors with a name that live in a model and are trained.

use std::sync::atomic::{AtomicU64, Ordering};

use wengert_tensor::{Float, Tensor};

/// A trained tensor. It lives in the model, not on a tape: [`Tape::parameter`](crate::Tape::parameter) makes it a variable
/// for one step, and the step's [`Gradients`](crate::Gradients) are looked up by it.
///
/// A clone is a parameter of its own, with the same name and values.
#[derive(Debug)]
pub struct Parameter<T: Float> {
    id: u64,
    name: String,
    /// The present values.
    pub value: Tensor<T>,
}

impl<T: Float> Parameter<T> {
    /// A parameter named `name`, as checkpoints will know it (`fc1.weight`).
    pub fn new(name: impl Into<String>, value: Tensor<T>) -> Self {
        Parameter { id: next_id(), name: name.into(), value }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells this parameter from every other one in the process.
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
