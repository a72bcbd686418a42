//! Translates a recorded program into a graph of ONNX operators.
//!
//! Each recorded operation becomes one operator or a few. An expansion usually disappears if only elementwise
//! operations and products read its result, because the operators of ONNX broadcast. No file here knows dynamic
//! dimensions: shapes become constants of the graph, and `unify` compares the graphs of several recordings.

mod elementwise;
mod functions;
mod indexing;
mod lowering;
mod reduction;
mod steps;
mod views;
mod windows;

pub(crate) use steps::lower;
