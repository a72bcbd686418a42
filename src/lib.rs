//! Autograd for small models: PyTorch's broadcasting, exact gradients of any order, fast on a CPU.
//!
//! ```
//! use wengert::prelude::*;
//!
//! let x = Tensor::from([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]); // [3, 2], of f32
//! let y = Tensor::from([[3.0], [8.0], [13.0]]);
//!
//! // In each training step, a tape records the loss and returns it with its gradients.
//! let generator = &mut Generator::new(0);
//! let mut model: Linear = Linear::new(2, 1, generator);
//! let mut adam = Adam::new(0.3);
//! for _ in 0..200 {
//!     let (_, gradients) = Tape::training(generator)
//!         .value_and_gradients(|tape| mse_loss(model.forward(tape.constant(&x)), &y));
//!     adam.step(&mut model, &gradients);
//! }
//!
//! let prediction = wengert::autograd::transforms::infer(|x| model.forward(x), &x);
//! assert!((prediction - y).abs().amax(..).item() < 0.1);
//! ```
//!
//! Most programs begin with `use wengert::prelude::*`. It imports tensors and variables with their operations, the tape, and the
//! common layers, losses and optimisers.
//!
//! # The map
//!
//! | subject | place |
//! |---|---|
//! | a tensor, and every operation in one table | [`Tensor`] |
//! | a recorded variable with derivatives | [`Var`], made by [`Tape::var`], [`Tape::constant`] and [`Tape::parameter`] |
//! | how shapes broadcast | [`tensor::broadcast`], drawn by [`tensor::explain`](mod@tensor::explain); warnings and rules in [`compat`] |
//! | gradients of a variable or a model | [`Var::grad`], [`Var::backward`], [`Tape::value_and_gradients`] |
//! | gradients, Jacobians, Hessians of a function | [`autograd::transforms`] |
//! | the check of a derivative | [`autograd::gradcheck`](mod@autograd::gradcheck) |
//! | an operation of your own | [`autograd::Function`], [`autograd::Operation`] |
//! | layers and models | [`nn::Layer`], [`nn::Module`] (derived), [`nn::Sequential`] |
//! | losses | [`mse_loss`](tensor::ops::mse_loss), [`nn::cross_entropy`], [`nn::CrossEntropyLoss`] and the other losses of [`nn`] |
//! | optimisers, learning rates | [`nn::Optimizer`], [`nn::schedule`] |
//! | data | [`nn::Samples`], [`nn::Table`], [`nn::DataLoader`], [`nn::augment`]; `nn::ImageFolder`, with the feature `images` |
//! | checkpoints | [`nn::save`], [`nn::load`], [`nn::Checkpoint`] |
//! | a training loop, metrics, pictures | [`nn::Fit`], [`nn::metrics`]; `nn::plots`, with the feature `plots` |
//! | random numbers | [`nn::Generator`] |
//!
//! # What to read next
//!
//! - The course, numbered examples with visible results: `examples/README.md` in the repository, and
//!   `cargo run --release --example 02_broadcasting`.
//! - The guide, in short chapters: `docs/guide` in the repository.
//! - [`Tensor`], whose page has a table of all operations, and [`Tape`].
//!
//! # Rules that hold everywhere
//!
//! - A mistake in a program (shapes that do not fit) panics at the line that made it. Each operation and each layer has a twin whose name begins with
//!   `try_` and that returns the error. Functions that read or write files return a `Result`.
//! - The same program gives the same bits on any number of threads. All random numbers come from a [`nn::Generator`].
//! - Tensors copy on write: an in-place operation changes no other tensor.

#[doc(inline)]
pub use wengert_autograd as autograd;
#[doc(inline)]
pub use wengert_nn as nn;
#[doc(inline)]
pub use wengert_tensor as tensor;

#[doc(inline)]
pub use wengert_autograd::{Gradients, Parameter, Tape, Var};
#[doc(inline)]
pub use wengert_tensor::{Shape, Tensor, compat};

/// The imports of most programs: tensors and their operations, the tape, the common layers, losses and optimisers.
pub mod prelude {
    pub use wengert_autograd::prelude::*;
    pub use wengert_nn::prelude::*;
}

/// The chapters of the guide. Their code blocks are tests.
#[cfg(doctest)]
mod guide {
    macro_rules! chapters {
        ($($name:ident $file:literal)*) => {
            $(#[doc = include_str!(concat!("../docs/guide/", $file))] struct $name;)*
        };
    }

    chapters! {
        Introduction "introduction.md"
        Broadcasting "broadcasting.md"
        Gradients "gradients.md"
        Training "training.md"
        SecondOrder "second-order.md"
        Speed "speed.md"
        Reproducibility "reproducibility.md"
        Errors "errors.md"
        Extending "extending.md"
        FromPyTorch "from-pytorch.md"
        FromCandleAndBurn "from-candle-and-burn.md"
    }

    #[doc = include_str!("../README.md")]
    struct Readme;
}
