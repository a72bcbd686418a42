//! Operations on whole lanes, which are lines of elements along one dimension: cumulative sums, sorting, selection.
//! `lanes` has the operations. `select` has sorting and selection algorithms of the GNU C++ library, for any list and order of its items.

pub(crate) mod lanes;
mod select;
