//! A data set of row indices, which gives the order of the rows that the ranks read.

use wengert_nn::Dataset;

/// A data set whose samples are row indices. A [`DataLoader`](wengert_nn::DataLoader) over it gives the order of the rows in an epoch.
/// Ranks that use the same seed get the same order. Each rank reads only the rows of its [shards](crate::Shard), which are parts of a
/// batch. If the number of rows is not a multiple of the batch size, the last batch is smaller. Its shards may then differ in size by one
/// row, or there may be fewer shards. `drop_last` leaves this batch out. PyTorch: `DistributedSampler`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert_distributed::Rows;
/// use wengert::nn::DataLoader;
///
/// let loader = DataLoader::new(Rows::new(10), 4).shuffle().seed(7);
/// let mut rows: Vec<usize> = loader.epoch(0).flat_map(|batch| batch.unwrap()).collect();
/// rows.sort_unstable();
/// assert_eq!(rows, Vec::from_iter(0..10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    numbers: Vec<usize>,
}

impl Rows {
    /// Returns a data set of the row indices 0 to `count` - 1.
    pub fn new(count: usize) -> Self {
        Rows { numbers: (0..count).collect() }
    }
}

impl Dataset for Rows {
    type Batch = Vec<usize>;

    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn batch(&self, indices: &[usize]) -> wengert_nn::Result<Vec<usize>> {
        let count = self.numbers.len();
        let missing = |index| wengert_nn::Error::Dataset(format!("there is no row {index} among {count}"));
        indices.iter().map(|&index| self.numbers.get(index).copied().ok_or_else(|| missing(index))).collect()
    }

    fn subset(&self, indices: &[usize]) -> wengert_nn::Result<Self> {
        Ok(Rows { numbers: self.batch(indices)? })
    }
}
