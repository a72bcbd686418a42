//! The tests of the Fourier transforms: identities, values and errors of PyTorch, short-time transforms, private functions.

mod identities;
mod private;
mod pytorch;
mod short_time;
