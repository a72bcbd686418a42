//! What looks at a whole lane along one dimension: running sums, order.

pub(crate) mod lanes;
