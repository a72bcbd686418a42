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
//! let prediction = model.forward(&x);
//! assert!((prediction - y).abs().amax(..).item() < 0.1);
//! ```
//!
//! Most programs begin with `use wengert::prelude::*`. It imports tensors and variables with their operations, the tape, and the
//! common layers, losses and optimisers. An example without a `use` line has this import too.
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
//! | Fourier transforms | `wengert::fft`, with the feature `fft` |
//! | an operation of your own | [`autograd::Function`], [`autograd::Operation`] |
//! | layers and models | [`nn::Layer`], [`nn::Module`] (derived), [`nn::Sequential`] |
//! | losses | [`mse_loss`](tensor::ops::mse_loss), [`nn::cross_entropy`], [`nn::CrossEntropyLoss`] and the other losses of [`nn`] |
//! | optimisers, learning rates | [`nn::Optimizer`], [`nn::schedule`] |
//! | data | [`nn::Samples`], [`nn::Table`], [`nn::DataLoader`], [`nn::augment`]; `nn::ImageFolder`, with the feature `images` |
//! | checkpoints | [`nn::save`], [`nn::load`], [`nn::Checkpoint`] |
//! | a training loop, metrics, pictures | [`nn::Fit`], [`nn::metrics`]; `nn::plots`, with the feature `plots` |
//! | random numbers | [`nn::Generator`] |
//! | models as ONNX files, for other runtimes | `onnx`, with the feature `onnx` |
//! | factors, solutions and determinants of matrices | `linalg`, with the feature `linalg` |
//! | differential equations, roots, fits, minima, integrals | `wengert::solvers`, with the feature `solvers` |
//! | probability distributions, special functions | `distributions` and `special`, with the features of these names |
//!
//! # What to read next
//!
//! - The course, numbered examples with a chapter each: `docs/guide/course` in the repository, and
//!   `cargo run --release --example 01_first_network`.
//! - The guide, in short chapters: `docs/guide` in the repository.
//! - [`Tensor`], whose page has a table of all operations, and [`Tape`].
//!
//! # Rules that hold everywhere
//!
//! - A mistake in a program, such as shapes that do not fit, panics at the line that made it. Each operation and each layer has a twin
//!   whose name begins with `try_`. The twin returns the error instead. Functions that read or write files return a `Result`.
//! - The same program gives the same bits on any number of threads. All random numbers come from a [`nn::Generator`].
//! - Tensors copy on write: an in-place operation changes no other tensor.

pub mod tensor {
    //! Tensors with PyTorch's broadcasting: the crate `wengert-tensor`.
    //!
    //! | subject | place |
    //! |---|---|
    //! | a tensor, and every operation in one table | [`Tensor`], [`ops`] |
    //! | shapes and arguments | [`Shape`], [`Sizes`], [`Dims`], [`Axes`], [`Position`], [`Span`], [`Progression`], [`axis`], [`index_items`] |
    //! | the broadcasting rule | [`broadcast`], [`explain`](mod@explain), [`explain_named`], [`Explanation`], [`compat`] |
    //! | element types | [`DType`], [`Scalar`], [`Element`], [`Number`], [`Float`], [`Integer`] |
    //! | random numbers | [`Generator`] |
    //! | errors | [`Error`], [`ExpandMismatch`], [`Site`] |
    //! | threads, instructions, memory | [`set_num_threads`], [`set_instruction_set`], [`set_pool_capacity`] |
    //! | names of primitives, views | [`Unary`], [`Binary`], [`Compare`], [`Reduction`]; [`View`], [`Layout`], [`Strides`] |
    //!
    //! ```
    //! use wengert::prelude::*;
    //!
    //! let maps = Tensor::<f32>::ones([4, 32, 14, 14]);
    //! let bias = Tensor::<f32>::full([32, 1, 1], 0.5);
    //! assert_eq!((maps + bias).shape(), &[4, 32, 14, 14]);
    //! ```

    // The glob imports everything, also items that the documentation hides. The list below it is the documented part. If the glob were
    // documented, rustdoc would also copy the pages of `prelude`, whose traits have no names.
    #[doc(hidden)]
    pub use wengert_tensor::*;
    #[doc(inline)]
    pub use wengert_tensor::{
        Axes, Binary, Compare, DType, Dims, Element, Error, ExpandMismatch, Explanation, Float, Generator,
        InstructionSet, Integer, Layout, Number, PoolStatistics, Position, Progression, Reduction, Scalar, Shape, Site,
        Sizes, Span, Strides, Tensor, Unary, View, axis, broadcast, clear_pool, compat, explain, explain_named,
        index_items, instruction_set, num_threads, ops, pool_statistics, program, set_instruction_set, set_num_threads,
        set_pool_capacity,
    };
}

pub mod autograd {
    //! A tape, and derivatives of any order: the crate `wengert-autograd`.
    //!
    //! | subject | place |
    //! |---|---|
    //! | a recorded program, its variables, its constants | [`Tape`], [`Var`], [`Constant`] |
    //! | tensors of a model | [`Parameter`], [`Buffer`], [`BufferChange`], [`BlendWeight`] |
    //! | gradients | [`Gradients`], [`Key`], [`RecordedGradients`], [`GradientSink`], [`LossWith`] |
    //! | derivatives of functions of tensors; functions kept in a `let` | [`transforms`]; [`formula`] |
    //! | the check of a derivative | [`gradcheck`](mod@gradcheck), [`assert_gradcheck`], [`GradCheck`] |
    //! | an operation of your own | [`Function`], [`FunctionCall`]; [`Operation`], [`Call`], [`BatchedCall`] |
    //! | a picture of a program, the origin of a NaN | [`Graph`], [`NonFinite`], [`NonFiniteOperand`] |
    //! | errors | [`Error`], [`MissingGradient`] |
    //! | simplification of recorded programs | [`set_simplification`], [`simplification`] |
    //!
    //! ```
    //! use wengert::prelude::*;
    //!
    //! let tape = Tape::<f64>::new();
    //! let x = tape.var(&Tensor::from([1.0, 2.0, 3.0]));
    //! let [dx] = (x * x * x).sum(..).grad([x]); // 3x²
    //! assert_eq!(dx.value().to_vec(), [3.0, 12.0, 27.0]);
    //! ```

    // The comment in `tensor` explains the two imports.
    #[doc(hidden)]
    pub use wengert_autograd::*;
    #[doc(inline)]
    pub use wengert_autograd::{
        BatchedCall, BlendWeight, Buffer, BufferChange, Call, Constant, Error, Function, FunctionCall, Generator,
        GradCheck, GradientSink, Gradients, Graph, Key, LossWith, MissingGradient, NonFinite, NonFiniteOperand,
        Operation, Parameter, RecordedGradients, Tape, Var, assert_gradcheck, formula, gradcheck, set_simplification,
        simplification, transforms,
    };
}

#[cfg(feature = "fft")]
pub mod fft {
    //! Fourier transforms of tensors and variables: the crate [`wengert-fft`](wengert_fft). Its page explains the shapes, the norms and
    //! the derivatives.
    //!
    //! | subject | place |
    //! |---|---|
    //! | one dimension | [`Transforms`]: `fft`, `ifft`, `rfft`, `irfft`, `hfft`, `ihfft` |
    //! | several dimensions | [`TransformsOfMany`]: `fft2`, `fftn`, `rfft2`, `irfftn`, `hfftn`, … |
    //! | the scale | [`Norm`] |
    //! | frequencies, and their order | [`fftfreq`], [`rfftfreq`]; [`Shifts`]: `fftshift`, `ifftshift` |
    //! | spectra of frames of a signal | [`ShortTime`]: `stft`, `istft`; [`Stft`]; [`hann_window`], [`hamming_window`], [`blackman_window`], [`bartlett_window`], [`kaiser_window`] |
    //! | convolution of long signals | [`Convolves`]: `fft_convolve`; [`ConvolveMode`] |
    //! | arithmetic of complex numbers | [`complex`]; [`ComplexNumbers`]: `real`, `imag`, `conj`, `complex_mul`, `complex_abs` |
    //! | the arrays that have transforms | [`Array`] |
    //! | the imports of most programs | `wengert::fft::prelude`: these traits without their names |
    //!
    //! ```
    //! use wengert::fft::{Norm, prelude::*};
    //! use wengert::prelude::*;
    //!
    //! // A wave of frequency 3 among 16 samples: its spectrum has one peak.
    //! let t = Tensor::<f64>::arange(16) * (std::f64::consts::TAU / 16.0);
    //! let spectrum = (t * 3.0).cos().rfft(None, -1, Norm::Backward); // [9, 2]
    //! assert_eq!(spectrum.square().sum(-1).argmax(0), Tensor::scalar(3));
    //! ```

    // The comment in `tensor` explains the two imports.
    #[doc(hidden)]
    pub use wengert_fft::*;
    #[doc(inline)]
    pub use wengert_fft::{
        Array, ComplexNumbers, ConvolveMode, Convolves, Norm, Shifts, ShortTime, Stft, Transforms, TransformsOfMany,
        bartlett_window, blackman_window, complex, fftfreq, hamming_window, hann_window, kaiser_window, rfftfreq,
        try_bartlett_window, try_blackman_window, try_complex, try_fftfreq, try_hamming_window, try_hann_window,
        try_kaiser_window, try_rfftfreq,
    };
}

#[cfg(feature = "linalg")]
pub mod linalg {
    //! Linear algebra: the crate [`wengert-linalg`](wengert_linalg). Its page explains batches, errors and
    //! derivatives. PyTorch: `torch.linalg`.
    //!
    //! | subject | place |
    //! |---|---|
    //! | systems of equations | [`Solving`]: `solve`, `solve_triangular`, `cholesky_solve`, `lu_solve`; [`Triangle`], [`TriangularSystem`] |
    //! | equations of arrays of any number of dimensions | [`TensorEquations`]: `tensorsolve`, `tensorinv` |
    //! | factors | [`Factoring`]: `cholesky`, `lu`, `lu_factor` |
    //! | inverses and powers | [`Inverting`]: `inv`, `matrix_power` |
    //! | QR, eigenvalues, singular values, the exponential | [`Decompositions`]; [`QrMode`] |
    //! | least squares, the pseudoinverse, the rank | [`LeastSquaresProblems`]; [`LeastSquares`], [`Tolerance`] |
    //! | norms and condition numbers of matrices | [`MatrixNorms`]; [`MatrixOrder`] |
    //! | products of several matrices | [`multi_dot`] |
    //! | determinants | [`Determinants`]: `det`, `slogdet`, `logdet` |
    //! | the arrays that have these operations | [`Array`] |
    //! | the imports of most programs | `wengert::linalg::prelude`: the traits without their names, and the types of their arguments |
    //!
    //! ```
    //! use wengert::linalg::prelude::*;
    //! use wengert::prelude::*;
    //!
    //! let a = Tensor::from([[4.0, 2.0], [2.0, 3.0]]);
    //! let x = a.solve(&Tensor::from([8.0, 8.0]));
    //! assert!((x - Tensor::from([1.0, 2.0])).abs().amax(..).item() < 1e-15);
    //! ```

    // The comment in `tensor` explains the two imports.
    #[doc(hidden)]
    pub use wengert_linalg::*;
    #[doc(inline)]
    pub use wengert_linalg::{
        Array, Decompositions, Determinants, Factoring, Inverting, LeastSquares, LeastSquaresProblems, MatrixNorms,
        MatrixOrder, QrMode, Solving, TensorEquations, Tolerance, Triangle, TriangularSystem, multi_dot, try_multi_dot,
    };
}

#[cfg(feature = "special")]
pub mod special {
    //! Special functions of tensors and variables: the crate [`wengert-special`](wengert_special), whose page has the errors of each function.
    //!
    //! | subject | place |
    //! |---|---|
    //! | the functions | [`Special`]: `ndtr`, `erfcx`, `i0`, `gammaln`, `gammainc`, `betainc`, … |
    //! | orthogonal polynomials | [`Polynomials`]: `legendre_polynomial_p`, `chebyshev_polynomial_t`, … |
    //! | the arrays that have these functions | [`Array`], [`Elementwise`] |
    //! | the imports of most programs | `wengert::special::prelude`: the traits without their names |
    //!
    //! ```
    //! use wengert::{prelude::*, special::prelude::*};
    //!
    //! assert_eq!(Tensor::from([0.0f64, f64::INFINITY]).ndtr().to_vec(), [0.5, 1.0]); // the normal distribution
    //! ```

    // The comment in `tensor` explains the two imports.
    #[doc(hidden)]
    pub use wengert_special::*;
    #[doc(inline)]
    pub use wengert_special::{Array, Elementwise, Polynomials, Special};
}

// The crates below are modules and not `pub use wengert_nn as nn`. With the latter, the compiler proposes to import traits from a path that does
// not exist, `wengert::wengert_nn::Metric`, and shows types with this path.
pub mod nn {
    //! Layers, losses, optimisers, data and checkpoints: the crate [`wengert-nn`](wengert_nn), whose page has tables of all items.
    //!
    //! | subject | place |
    //! |---|---|
    //! | layers and models | [`Layer`], [`Module`] (derived), [`Sequential`], [`Linear`], [`Conv2d`], [`LSTM`], [`TransformerEncoder`], … |
    //! | initial values | [`init`] |
    //! | losses | [`CrossEntropyLoss`], [`NllLoss`], [`BceLoss`], [`MseLoss`], …; [`LossReduction`] |
    //! | optimisers, learning rates | [`Optimizer`], [`Sgd`], [`AdamW`], [`Lbfgs`], …; [`Schedule`], [`schedule`] |
    //! | data | [`Dataset`], [`Samples`], [`DataLoader`], [`Table`], [`Vocabulary`], [`augment`], [`split`](mod@split) |
    //! | a training loop, metrics | [`Fit`], [`evaluate`], [`metrics`]; `plots`, with the feature `plots` |
    //! | files | [`save`], [`load`], [`Checkpoint`] |
    //! | random numbers | [`Generator`] |
    //! | errors | [`Error`], [`Result`] |
    //!
    //! ```
    //! use wengert::nn::{LossReduction, NllLoss};
    //! use wengert::prelude::*;
    //!
    //! let scores = Tensor::from([[0.0, 0.0], [0.0, 0.0]]).log_softmax(1);
    //! let loss = NllLoss::new().reduction(LossReduction::Sum).of(&scores, &Tensor::from([0, 1]));
    //! assert_eq!(loss.item(), 2.0 * 2f64.ln());
    //! ```

    #[doc(inline)]
    pub use wengert_nn::*;
}

#[cfg(feature = "distributions")]
pub mod distributions {
    //! Probability distributions: the crate [`wengert-distributions`](wengert_distributions), whose page has the conventions and a table of all
    //! items. PyTorch: `torch.distributions`.
    //!
    //! ```
    //! use wengert::distributions::prelude::*;
    //! use wengert::prelude::*;
    //!
    //! assert_eq!(Normal::new(&Tensor::from([0.0, 10.0]), 2.0).mean().to_vec(), [0.0, 10.0]);
    //! ```

    #[doc(inline)]
    pub use wengert_distributions::*;
}

#[cfg(feature = "onnx")]
pub mod onnx {
    //! Models as ONNX files: the crate [`wengert-onnx`](wengert_onnx). [`Export`] writes them.

    #[doc(inline)]
    pub use wengert_onnx::*;
}

#[cfg(feature = "solvers")]
pub mod solvers {
    //! Solvers whose solutions have derivatives: the crate [`wengert-solvers`](wengert_solvers), whose page has a table of all problems. SciPy:
    //! `scipy.integrate`, `scipy.optimize`.
    //!
    //! ```
    //! use wengert::prelude::*;
    //! use wengert::solvers::root;
    //!
    //! let x = root(|x| x.square() - 2.0, &Tensor::from([1.0]));
    //! assert!((x.item() - 2f64.sqrt()).abs() < 1e-12);
    //! ```

    #[doc(inline)]
    pub use wengert_solvers::*;
}

#[doc(inline)]
pub use wengert_autograd::{Gradients, Parameter, Tape, Var};
#[doc(inline)]
pub use wengert_tensor::{Shape, Tensor, compat};

/// The imports of most programs.
///
/// | subject | items |
/// |---|---|
/// | tensors | [`Tensor`], [`Shape`], [`DType`](tensor::DType), [`Generator`](tensor::Generator), and the traits of all operations |
/// | element types | [`Float`](tensor::Float), [`Number`](tensor::Number), [`Scalar`](tensor::Scalar), [`Element`](tensor::Element) |
/// | functions of tensors and variables | [`cat`](tensor::ops::cat), [`stack`](tensor::ops::stack), [`where_`](tensor::ops::where_), [`einsum`](tensor::ops::einsum), [`one_hot`](tensor::ops::one_hot), [`index_items`](tensor::index_items), [`mse_loss`](tensor::ops::mse_loss) and other losses |
/// | arguments of operations | [`Operand`](tensor::ops::Operand), [`ConvOptions`](tensor::ops::ConvOptions), [`PoolOptions`](tensor::ops::PoolOptions), [`PadMode`](tensor::ops::PadMode), [`InterpolateMode`](tensor::ops::InterpolateMode) |
/// | derivatives | [`Tape`], [`Var`], [`Parameter`], [`Gradients`], [`formula`](autograd::formula) |
/// | predictions | [`infer`](autograd::transforms::infer) |
/// | layers | [`Linear`](nn::Linear), [`Conv2d`](nn::Conv2d), [`BatchNorm2d`](nn::BatchNorm2d), [`Dropout`](nn::Dropout), [`Embedding`](nn::Embedding), [`LSTM`](nn::LSTM), [`Sequential`](nn::Sequential) and others; the traits [`Module`](nn::Module) and [`Layer`](nn::Layer) |
/// | training | [`Optimizer`](nn::Optimizer), [`Sgd`](nn::Sgd), [`Adam`](nn::Adam), [`AdamW`](nn::AdamW), [`Schedule`](nn::Schedule), [`cross_entropy`](nn::cross_entropy), [`nll_loss`](nn::nll_loss), [`CrossEntropyLoss`](nn::CrossEntropyLoss), [`accuracy`](nn::accuracy()) |
/// | data and files | [`Dataset`](nn::Dataset), [`Samples`](nn::Samples), [`DataLoader`](nn::DataLoader), [`save`](nn::save), [`load`](nn::load) |
pub mod prelude {
    #[doc(no_inline)]
    pub use wengert_autograd::prelude::*;
    #[doc(no_inline)]
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
        Browser "browser.md"
        Errors "errors.md"
        Extending "extending.md"
        FromPyTorch "from-pytorch.md"
        FromCandleAndBurn "from-candle-and-burn.md"
        Registry "../registry.md"
        CourseIntroduction "course/introduction.md"
        Course01 "course/01-first-network.md"
        Course02 "course/02-broadcasting.md"
        Course03 "course/03-gradients.md"
        Course04 "course/04-tape.md"
        Course05 "course/05-line.md"
        Course06 "course/06-classes.md"
        Course07 "course/07-layers.md"
        Course08 "course/08-digits-mlp.md"
        Course09 "course/09-overfitting.md"
        Course10 "course/10-learning-rate.md"
        Course11 "course/11-resume.md"
        Course12 "course/12-digits-cnn.md"
        Course13 "course/13-mistakes.md"
        Course14 "course/14-nan.md"
        Course15 "course/15-profile.md"
        Course16 "course/16-second-order.md"
        Course17 "course/17-own-operation.md"
        Course18 "course/18-burgers.md"
        Course19 "course/19-autoencoder.md"
        Course20 "course/20-variational.md"
        Course21 "course/21-gru-text.md"
        Course22 "course/22-transformer-text.md"
        Course23 "course/23-clusters.md"
        Course24 "course/24-kernels.md"
        Course25 "course/25-fine-tuning.md"
        Course26 "course/26-private-step.md"
        Course27 "course/27-pole.md"
        Course28 "course/28-tool.md"
        Course29 "course/29-spectrum.md"
        Course30 "course/30-gaussian-process.md"
        Course31 "course/31-mixture-newton.md"
        Course32 "course/32-augmentation.md"
        Course33 "course/33-batch-norm.md"
        Course34 "course/34-label-smoothing.md"
        CourseProject "course/project.md"
    }

    #[cfg(feature = "linalg")]
    chapters! {
        LinearAlgebra "linear-algebra.md"
    }
    #[cfg(feature = "onnx")]
    chapters! {
        Exporting "exporting.md"
    }
    #[cfg(feature = "distributions")]
    chapters! {
        Distributions "distributions.md"
    }
    #[cfg(feature = "solvers")]
    chapters! {
        Solvers "solvers.md"
    }

    #[doc = include_str!("../README.md")]
    struct Readme;
}
