//! Operations on a whole lane along one dimension: cumulative sums, sorting.

pub(crate) mod lanes;
