//! The package of the chapters of the course that need linear algebra or Fourier transforms. Their programs are in `examples/course`.
