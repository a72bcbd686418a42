//! Operations on whole lanes, which are lines of elements along one dimension: cumulative sums, sorting, selection.
//! `lanes` has the operations. `select` has algorithms of the GNU C++ library, which know only a list and an order.

pub(crate) mod lanes;
mod select;
