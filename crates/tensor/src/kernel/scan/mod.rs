//! Operations on whole lanes, which are lines of elements along one dimension: cumulative sums, sorting.

pub(crate) mod lanes;
mod select;
