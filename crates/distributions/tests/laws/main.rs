//! The tests of the distributions: results of PyTorch and SciPy, derivatives, edges of supports, samples.

mod edges;
mod figures;
mod gradients;
mod pytorch;
mod samples;
