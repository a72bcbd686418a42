//! Conformance with PyTorch.
fn main() {}
