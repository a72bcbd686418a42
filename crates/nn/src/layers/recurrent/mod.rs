//! Recurrent layers: cells, and networks of cells over sequences.

mod builder;
mod cell;
mod kind;
mod network;
mod sequence;
mod state;
#[cfg(test)]
mod tests;

pub use builder::RecurrentBuilder;
pub use cell::{GRUCell, LSTMCell, RNNCell, RecurrentCell};
pub use kind::{CellVariables, Gated, LongShortTerm, RecurrentKind, Simple};
pub use network::{GRU, LSTM, RNN, RecurrentLayer};
pub use state::RecurrentState;
