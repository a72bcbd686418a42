//! Kernels: loops over elements with given layouts. Callers have checked shapes and allocated the results.

pub(crate) mod conv;
pub(crate) mod distance;
pub(crate) mod element;
pub(crate) mod elementwise;
pub(crate) mod fill;
pub(crate) mod gather;
pub(crate) mod matmul;
pub(crate) mod normalize;
pub(crate) mod pad;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod resample;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod source;
pub(crate) mod step;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod transpose;
