//! What kernels are tested against: the same, slow and obvious, and tensors of every layout to try them on.

pub(crate) mod accuracy;
pub(crate) mod layouts;
pub(crate) mod oracle;
