//! The tests of the Fourier transforms: identities, values and errors of PyTorch, private functions.

mod identities;
mod private;
mod pytorch;
