//! Data: from files to batches.
//!
//! | file | duty |
//! |---|---|
//! | `dataset`, `samples`, `sequences` | what a data set is; inputs with targets; sequences of different lengths |
//! | `split` | which samples are for training |
//! | `loader` | batches, in the order of an epoch |
//! | `augment` | images and inputs changed at random |
//! | `source`, `numbers` | files that are read in bounded memory; numbers after a header |
//! | `csv`, `rows`, `table`, `idx`, `npy`, `text`, `images` | readers |

pub mod augment;
mod csv;
mod dataset;
mod idx;
#[cfg(feature = "images")]
mod images;
mod loader;
mod npy;
mod numbers;
mod rows;
mod samples;
mod sequences;
mod source;
pub mod split;
mod table;
#[cfg(test)]
mod table_tests;
mod text;

pub use dataset::Dataset;
pub use idx::read_idx;
#[cfg(feature = "images")]
pub use images::{ImageFolder, ImageReader};
pub use loader::{Batches, DataLoader};
pub use npy::read_npy;
#[cfg(feature = "npz")]
pub use npy::read_npz;
pub use rows::read_table;
pub use samples::Samples;
pub use sequences::{Padded, Sequences, pad_sequence};
pub use table::{Classes, Table};
pub use text::{Vocabulary, next_tokens, read_text};
