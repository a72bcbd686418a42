//! Attention with several heads.

mod attend;
mod builder;
mod decoding;
mod masks;
mod multihead;
#[cfg(test)]
mod tests;

pub use builder::AttentionBuilder;
pub use decoding::AttentionCache;
pub use masks::AttentionMasks;
pub use multihead::MultiheadAttention;
