//! The primitives from which the operations are built. Tensors compute them immediately. Expressions record them and run them as a plan.
//!
//! | file | contents |
//! |---|---|
//! | `tensor_like` | the trait with the primitives |
//! | `pair` | operands, and their expansion to one shape |
//! | `compose` | short methods for operations of several primitives |
//! | `eager` | the primitives on tensors, computed immediately |
//! | `evaluate` | the execution of a plan |
//! | `traced` | operations of several primitives on tensors, planned as one expression |

pub(crate) mod compose;
pub(crate) mod eager;
pub(crate) mod evaluate;
pub(crate) mod pair;
pub(crate) mod tensor_like;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod traced;
