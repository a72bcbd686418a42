//! Data sets, readers of files, and batches.
//!
//! | file | contents |
//! |---|---|
//! | `dataset`, `samples`, `sequences`, `concat` | the trait of data sets; inputs with targets; sequences of different lengths; joined data sets |
//! | `split` | splits into samples for training and for validation |
//! | `loader`, `batches` | the batches of an epoch |
//! | `augment` | random changes of images and other inputs |
//! | `source`, `numbers` | reading files in bounded memory; the numbers of binary files |
//! | `csv`, `rows`, `table`, `idx`, `npy`, `text`, `images` | readers |
//! | `write_npy` | a writer of NumPy's files |

pub mod augment;
mod batches;
mod concat;
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
mod write_npy;

pub use batches::Batches;
pub use concat::{ConcatDataset, JoinBatches};
pub use dataset::Dataset;
pub use idx::read_idx;
#[cfg(feature = "images")]
pub use images::{ImageFolder, ImageReader};
pub use loader::DataLoader;
pub use npy::read_npy;
#[cfg(feature = "npz")]
pub use npy::read_npz;
pub use rows::read_table;
pub use samples::Samples;
pub use sequences::{Padded, Sequences, pad_sequence};
pub use table::{Classes, Table};
pub(crate) use text::read_plain_text;
pub use text::{Vocabulary, next_tokens, read_text};
#[cfg(feature = "npz")]
pub use write_npy::write_npz;
pub use write_npy::{NumpyArray, write_npy};
