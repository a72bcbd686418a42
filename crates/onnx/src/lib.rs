//! Writes models as ONNX files, which onnxruntime and other runtimes read.
//!
//! A tape records the program of a model, and [`Export`] translates it to ONNX's operators. The file has the names of the inputs and
//! outputs, and the parameters with their paths in the model. An operation without a form in ONNX is an error with the line of code that
//! recorded it. No incomplete file is written.
//!
//! | subject | items |
//! |---|---|
//! | a model with inputs of numbers | [`Export`]: [`write`](Export::write), [`to_bytes`](Export::to_bytes) |
//! | a model with inputs of integers, such as tokens | [`Export::indices`], [`IndexExport`] |
//! | a dimension whose size is not known | [`Export::batch`], [`Export::dynamic`] |
//! | errors | [`Error`] |
//!
//! ```
//! # mod wengert { pub use wengert_onnx as onnx; pub mod prelude {
//! # pub use wengert_autograd::prelude::*; pub use wengert_nn::prelude::*; } }
//! use wengert::onnx::Export;
//! use wengert::prelude::*;
//!
//! let model: Linear = Linear::new(3, 2, &mut Generator::new(0));
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("model.onnx");
//! let example = Tensor::zeros([1, 3]);
//! Export::new().model(&model).batch("n").write(&path, [("x", &example)], ["y"], |_, [x]| [model.forward(x)])?;
//!
//! // An operation without a form in ONNX.
//! let error = Export::new().write(&path, [("x", &example)], ["y"], |_, [x]| [x.lgamma()]).unwrap_err();
//! assert!(error.to_string().starts_with("'lgamma' has no form in ONNX"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod error;
mod example;
mod export;
mod graph;
mod lower;
mod names;
mod protobuf;
mod unify;

pub use error::{Error, Result};
pub use export::{Export, IndexExport};
