//! The names that were not loaded from a checkpoint.

use std::fmt;

use crate::KeyMismatch;
use crate::error::key_differences;

/// The names that [`Saved::load_model`](crate::Saved::load_model) did not load. The report is empty unless the load was
/// [`partial`](crate::Saved::partial). A count `num_batches_tracked` that the file lacks is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The names that the model has and the file does not have.
    pub missing: Vec<String>,
    /// The names that the file has, after renaming, and the model does not have. Names that begin with `@` are not listed.
    pub unexpected: Vec<String>,
    /// The first 10 missing names, each with the most similar unexpected name of the same shape. Names without a similar name are
    /// left out.
    pub renamed: Vec<(String, String)>,
    /// The names that both the file and the model have, but with different shapes, or with different element types that are not converted.
    pub mismatched: Vec<KeyMismatch>,
}

impl LoadReport {
    /// Returns true if no name is missing, unexpected or mismatched.
    pub fn is_complete(&self) -> bool {
        *self == LoadReport::default()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complete() {
            return f.write_str("everything was loaded");
        }
        write!(f, "not loaded:{}", key_differences(&self.missing, &self.unexpected, &self.renamed, &self.mismatched))
    }
}
