//! Speed, by family of operations.
