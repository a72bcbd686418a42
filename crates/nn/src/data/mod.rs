//! Data: from files to batches.
//!
//! | file | duty |
//! |---|---|
//! | `dataset`, `samples`, `sequences` | what a data set is; inputs with targets; sequences of different lengths |
//! | `split` | which samples are for training |
//! | `loader` | batches, in the order of an epoch |
//! | `augment` | images and inputs changed at random |
//! | `source`, `table`, `idx` | files that are read in bounded memory; tables, IDX |

pub mod augment;
mod dataset;
mod idx;
mod loader;
mod samples;
mod sequences;
mod source;
pub mod split;
mod table;

pub use dataset::Dataset;
pub use idx::read_idx;
pub use loader::{Batches, DataLoader};
pub use samples::Samples;
pub use sequences::{Padded, Sequences, pad_sequence};
pub use table::{Classes, Table, read_table};
