//! Tables of vectors: rows that are read by index, bags of rows that are reduced to one row, and vectors that encode positions.

mod bags;
#[allow(clippy::module_inception)]
mod embedding;
mod embedding_bag;
#[cfg(test)]
mod position_tests;
mod positions;
mod rotary;
mod row_limit;

pub use embedding::{Embedding, EmbeddingBuilder};
pub use embedding_bag::{BagMode, EmbeddingBag, EmbeddingBagBuilder};
pub use positions::{LearnedPositions, sinusoidal_positions, try_sinusoidal_positions};
pub use rotary::{RotaryPairs, rotary, try_rotary};
pub use row_limit::RowLimit;
