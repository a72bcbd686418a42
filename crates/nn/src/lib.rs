//! Layers, losses, optimisers, data and checkpoints on the tape.
//!
//! Layers are plain data: a model is a struct of layers, a layer a struct of [`Parameter`]s. Nothing is registered
//! anywhere; a model says what it trains by listing it ([`Module`]). This crate knows shapes and recorded variables; it
//! does not know how elements lie in memory.
//!
//! A mistake in a program (a wrong shape, a class that does not exist) panics at the caller's line, and each method
//! that does so has a twin that begins with `try_`. What the outside world may refuse (a file) is always a `Result`.
//!
//! ```
//! use wengert_autograd::{Parameter, Tape, Var, prelude::*};
//! use wengert_nn::{Generator, Linear, Module, Sgd, cross_entropy};
//!
//! /// Two layers with a ReLU between them.
//! struct Mlp {
//!     fc1: Linear<f32>,
//!     fc2: Linear<f32>,
//! }
//!
//! impl Mlp {
//!     fn forward<'t>(&self, x: Var<'t, f32>) -> Var<'t, f32> {
//!         self.fc2.forward(self.fc1.forward(x).relu())
//!     }
//! }
//!
//! impl Module<f32> for Mlp {
//!     fn parameters(&self) -> Vec<&Parameter<f32>> {
//!         [self.fc1.parameters(), self.fc2.parameters()].concat()
//!     }
//!
//!     fn parameters_mut(&mut self) -> Vec<&mut Parameter<f32>> {
//!         [self.fc1.parameters_mut(), self.fc2.parameters_mut()].into_iter().flatten().collect()
//!     }
//! }
//!
//! let mut generator = Generator::new(0);
//! let (fc1, fc2) = (Linear::new("fc1", 2, 8, &mut generator), Linear::new("fc2", 8, 2, &mut generator));
//! let mut model = Mlp { fc1, fc2 };
//! let inputs = Tensor::from([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
//! let targets = Tensor::from([0, 1, 1, 0]); // exclusive or
//! let mut sgd = Sgd::new(0.5).momentum(0.9);
//! let mut last = f32::INFINITY;
//! for _ in 0..100 {
//!     let tape = Tape::new();
//!     let loss = cross_entropy(&model.forward(tape.constant(&inputs)), &targets);
//!     let gradients = loss.backward();
//!     last = loss.item();
//!     drop(tape);
//!     sgd.step(model.parameters_mut(), &gradients);
//! }
//! assert!(last < 0.05);
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `module`, `linear`, `convolution` | what lists parameters; the affine layer; the layer over images |
//! | `loss` | [`cross_entropy`], [`accuracy`] |
//! | `sgd`, `adam` | stochastic gradient descent with momentum; Adam and AdamW |
//! | `table`, `data`, `normalize` | tables of numbers from files; splits and batches; inputs of one scale |
//! | `checkpoint`, `file` | parameters in files that PyTorch reads; files written whole or not at all, regular files read |
//! | `report` | loss and accuracy per epoch, as numbers and as a curve |
//! | `error` | what can go wrong, as values |

mod adam;
mod checkpoint;
mod convolution;
mod data;
mod error;
mod file;
mod linear;
mod loss;
mod module;
mod normalize;
mod report;
mod sgd;
mod table;

pub use adam::Adam;
pub use checkpoint::{load, save};
pub use convolution::Conv2d;
pub use data::{Batches, Dataset};
pub use error::{Error, KeyMismatch, Result};
pub use file::write_atomically;
pub use linear::Linear;
pub use loss::{CrossEntropyLoss, LossReduction, accuracy, cross_entropy, try_accuracy, try_cross_entropy};
pub use module::Module;
pub use normalize::Normalize;
pub use report::{Epoch, History};
pub use sgd::Sgd;
pub use table::read_table;

pub use wengert_autograd::Parameter;
pub use wengert_tensor::Generator;
