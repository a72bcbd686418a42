//! The compile errors of frequent mistakes say what to do, in the compiler's message or on the page `docs/guide/errors.md`.
//!
//! rustc checks each program with the newest library beside this test that a correct program compiles with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::sources::text;

/// A program with one mistake.
struct Mistake {
    name: &'static str,
    /// The items of the program before `main`.
    items: &'static str,
    /// The statements of `main`.
    body: &'static str,
    /// Parts of the compiler's message that help to find the remedy.
    says: &'static [&'static str],
    /// A part of the compiler's message that says nothing about the remedy. The page quotes it and has the remedy. Empty if the message
    /// suffices.
    explained: &'static str,
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "a forgotten reference",
        items: "",
        body: "let a = Tensor::<f32>::ones([2]); let b = a + 1.0; println!(\"{a} {b}\");",
        says: &["a.clone() + 1.0"],
        explained: "borrow of moved value",
    },
    Mistake {
        name: "a loss of tensors",
        items: "",
        body: "let layer: Linear = Linear::new(2, 1, &mut Generator::new(0)); let x = Tensor::ones([3, 2]); \
               let _ = Tape::new().value_and_gradients(|tape| layer.forward(&x).square().mean(..));",
        says: &[],
        explained: "expected `Var<'_, _>`, found `Tensor`",
    },
    Mistake {
        name: "a list of a variable and a tensor",
        items: "",
        body: "let tape = Tape::<f32>::new(); let a = Tensor::<f32>::ones([2]); let _ = cat(&[tape.var(&a), a], 0);",
        says: &[],
        explained: "expected `Var<'_>`, found `Tensor`",
    },
    Mistake {
        name: "class numbers with a fraction",
        items: "",
        body: "let _ = cross_entropy(&Tensor::<f32>::ones([3, 4]), &Tensor::<f32>::zeros([3]));",
        says: &[],
        explained: "expected `&Tensor<i64>`, found `&Tensor`",
    },
    Mistake {
        name: "integers of 32 bits",
        items: "",
        body: "let _ = Tensor::from_vec(vec![0i32, 1, 2], [3]);",
        says: &["a tensor cannot have elements of type `i32`", "`0i64` for a literal, `n as i64` for a number"],
        explained: "",
    },
    Mistake {
        name: "a mean of integers",
        items: "",
        body: "let _ = Tensor::from([1, 2, 3]).mean(..);",
        says: &["elements of type `i64` are not floating-point numbers", "convert a tensor with `x.cast::<f32>()`"],
        explained: "",
    },
    Mistake {
        name: "a comparison of a variable by an operator",
        items: "",
        body: "let tape = Tape::<f32>::new(); let loss = tape.constant(1.0); let _ = loss < 0.1;",
        says: &[],
        explained: "binary operation `<` cannot be applied to type `Var<'_>`",
    },
    Mistake {
        name: "a count beside -1 in an array",
        items: "",
        body: "let n = 2usize; let _ = Tensor::<f32>::ones([2, 3]).reshape([n, -1]);",
        says: &[],
        explained: "cannot apply unary operator `-` to type `usize`",
    },
    Mistake {
        name: "a shape in several arguments",
        items: "",
        body: "let _ = Tensor::<f32>::zeros(2, 3);",
        says: &[],
        explained: "unexpected argument #2 of type `{integer}`",
    },
    Mistake {
        name: "a model with two outputs in Fit",
        items: "#[derive(Module)] struct Two(Linear, Linear); \
                impl Two { fn forward<'t>(&self, x: Var<'t>) -> [Var<'t>; 2] { [self.0.forward(x), self.1.forward(x)] } } \
                fn f(model: &mut Two, train: &DataLoader<(Tensor, Tensor)>, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).run(model, &mut Adam::new(0.1), train, generator, \
                |model, tape, x| model.forward(tape.constant(x)), |[mean, _], y| mse_loss(mean, y)); }",
        body: "",
        says: &[],
        explained: "expected `Var<'_>`, found `[Var<'_>; 2]`",
    },
    Mistake {
        name: "a tuple of two outputs in Fit",
        items: "fn f(model: &mut Linear, train: &DataLoader<(Tensor, Tensor)>, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).run_heads(model, &mut Adam::new(0.1), train, generator, \
                |model, tape, x| { let x = tape.constant(x); (model.forward(x), x) }, |[mean, _], y| mse_loss(mean, y)); }",
        body: "",
        says: &[],
        explained: "expected `[Var<'_>; _]`, found `(Var<'_>, Var<'_>)`",
    },
    Mistake {
        name: "a tuple of references as inputs",
        items: "",
        body: "let (a, b) = (Tensor::<f32>::ones([2]), Tensor::<f32>::ones([2])); \
               let _ = Samples::new((&a, &b), a.clone());",
        says: &["`&wengert::Tensor` is no data set", "write `x.clone()` instead of `&x`, which copies no elements"],
        explained: "",
    },
    Mistake {
        name: "a list as a data set",
        items: "",
        body: "let _ = DataLoader::new(vec![1.0f32, 2.0], 2);",
        says: &["`Vec<f32>` is no data set", "with the type `Batch` and the functions `len`, `batch` and `subset`"],
        explained: "",
    },
    Mistake {
        name: "a median over all dimensions",
        items: "",
        body: "let _ = Tensor::from([1.0, 2.0]).median(..);",
        says: &["is neither a dimension, nor an index, nor a length", "over all elements there are `median_all`"],
        explained: "",
    },
    Mistake {
        name: "a variable in a file of NumPy",
        items: "",
        body: "let tape = Tape::<f32>::new(); let x = tape.var(&Tensor::ones([2])); \
               let _ = wengert::nn::write_npy(\"x.npy\", &x);",
        says: &["is no tensor, so it cannot be written for NumPy", "`x.value()` is the tensor of a variable"],
        explained: "",
    },
    Mistake {
        name: "five inputs",
        items: "",
        body: "let a = || Tensor::<f32>::ones([2]); let _ = Samples::new((a(), a(), a(), a(), a()), a());",
        says: &["is no data set", "for more of them, make a tuple of tuples"],
        explained: "",
    },
    Mistake {
        name: "two inputs of a model with one",
        items: "fn f(model: &mut Linear, train: &DataLoader<((Tensor, Tensor), Tensor)>, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).run(model, &mut Adam::new(0.1), train, generator, \
                |model, tape, x| model.forward(tape.constant(x)), |y, t| mse_loss(y, t)); }",
        body: "",
        says: &["is no constant of a tape of", "put each tensor of a tuple on the tape"],
        explained: "",
    },
    Mistake {
        name: "a metric of one output for a model with several",
        items: "fn f(model: &mut Linear, train: &DataLoader<(Tensor, (Tensor<i64>, Tensor))>, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).metric(\"accuracy\", wengert::nn::metrics::Accuracy::new()) \
                .run_heads(model, &mut Adam::new(0.1), train, generator, \
                |model, tape, x| [model.forward(tape.constant(x)); 2], |[a, b], (c, d)| cross_entropy(&a, c) + mse_loss(b, d)); }",
        body: "",
        says: &[],
        explained: "no method named `run_heads` found for struct `Fit<",
    },
    Mistake {
        name: "a metric of a head that the targets lack",
        items: "fn f(model: &mut Linear, train: &DataLoader<(Tensor, Tensor<i64>)>, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).metric(\"accuracy\", wengert::nn::metrics::Accuracy::new().head::<0>()) \
                .run_heads(model, &mut Adam::new(0.1), train, generator, \
                |model, tape, x| [model.forward(tape.constant(x)); 2], |[a, _], c| cross_entropy(&a, c)); }",
        body: "",
        says: &["the metric of a head needs targets that are a tuple with a part for this head"],
        explained: "",
    },
    Mistake {
        name: "a closure kept in a variable",
        items: "",
        body: "let f = |x: Var<'_, f64>| x.sin().sum(..);",
        says: &[],
        explained: "lifetime may not live long enough",
    },
    Mistake {
        name: "a closure kept in a variable and passed on",
        items: "",
        body: "let f = |x: Var<'_, f64>| x.sin().sum(..); let _ = grad(f, &Tensor::<f64>::ones([2]));",
        says: &[],
        explained: "expected `Var<'_, f64>`, found `&Tensor<f64>`",
    },
    Mistake {
        name: "a closure kept in a variable for infer",
        items: "",
        body: "let tape = Tape::<f64>::new(); let own = tape.constant(1.0); \
               let f = |x| { let _ = (x, own); own }; let _ = infer(f, &Tensor::<f64>::ones([2]));",
        says: &[],
        explained: "implementation of `Objective` is not general enough",
    },
    Mistake {
        name: "an input without a reference",
        items: "",
        body: "let x = Tensor::<f64>::ones([2]); let _ = grad(|x| x.sum(..), x);",
        says: &[
            "`wengert::Tensor<f64>` is no input of a derivative",
            "write `&x` for one tensor, `[&x, &y]` for several",
        ],
        explained: "",
    },
    Mistake {
        name: "tensors of two element types",
        items: "",
        body: "let _ = &Tensor::<f32>::ones([2]) + &Tensor::<f64>::ones([2]);",
        says: &["cannot stand beside a tensor of `f32`", "x.cast::<f32>()"],
        explained: "",
    },
    Mistake {
        name: "a constant of another element type",
        items: "",
        body: "let tape = Tape::<f32>::new(); let _ = tape.constant(&Tensor::<f64>::ones([2]));",
        says: &["is no constant of a tape of `f32`", "x.cast::<f32>()"],
        explained: "",
    },
    Mistake {
        name: "a parameter beside a variable",
        items: "",
        body: "let w = Parameter::new(Tensor::<f32>::ones([2])); let tape = Tape::new(); let x = tape.var(&w.value); \
               let _ = x * &w;",
        says: &["is no operand beside", "tape.parameter(&p)"],
        explained: "",
    },
    Mistake {
        name: "a matrix product of two element types",
        items: "",
        body: "let _ = Tensor::<f32>::ones([2, 2]).matmul(&Tensor::<f64>::ones([2, 2]));",
        says: &["is no right operand of a matrix product after", "x.cast::<f32>()"],
        explained: "",
    },
    Mistake {
        name: "a mask of numbers",
        items: "",
        body: "let x = Tensor::<f32>::ones([2]); let _ = x.masked_fill(&x, 0.0);",
        says: &["is no mask for", "`x.gt(0.0)`"],
        explained: "",
    },
    Mistake {
        name: "a bias by value in an option",
        items: "",
        body: "let tape = Tape::<f32>::new(); let x = tape.var(&Tensor::ones([2, 2])); let _ = x.linear(x, Some(x));",
        says: &["is no optional array beside", "write `None`, `&b` or `Some(&b)`"],
        explained: "",
    },
    Mistake {
        name: "a forgotten derive",
        items: "struct Net { layer: Linear }",
        body: "let net = Net { layer: Linear::new(2, 1, &mut Generator::new(0)) }; let _ = parameters(&net);",
        says: &["`Net` is no module with elements of `f32`", "write `#[derive(Module)]` above the struct"],
        explained: "",
    },
    Mistake {
        name: "a field that is no module",
        items: "struct Options; #[derive(Module)] struct Net { layer: Linear, options: Options }",
        body: "",
        says: &["`Options` is no module with elements of `f32`", "`#[module(skip)]` above a field"],
        explained: "",
    },
    Mistake {
        name: "structs of f64 in a struct",
        items: "#[derive(Module)] struct Block { weight: Parameter<f64> } #[derive(Module)] struct Net { block: Block }",
        body: "",
        says: &[
            "`Block` is no module with elements of `f32`",
            "`#[module(f64)]` above a struct whose fields are structs of f64",
        ],
        explained: "",
    },
    Mistake {
        name: "square brackets",
        items: "",
        body: "let x = Tensor::<f32>::ones([2, 2]); let _ = &x[0];",
        says: &["a tensor is not indexed by `[]`", "`x.index(&index_items![1, .., 2])`"],
        explained: "",
    },
    Mistake {
        name: "a guessed name",
        items: "",
        body: "let _ = Tensor::<f32>::ones([2]).powf(2.0);",
        says: &["`pow`"],
        explained: "",
    },
    Mistake {
        name: "a check of derivatives with an input by value",
        items: "",
        body: "let _ = wengert::autograd::gradcheck(|x| x.tanh(), Tensor::<f64>::ones([2]));",
        says: &[
            "`wengert::Tensor<f64>` is no input of a gradient check",
            "write `&x` for one tensor, `[&x, &y]` for several",
        ],
        explained: "",
    },
    Mistake {
        name: "one lifetime for a variable and for a tensor",
        items: "fn loss<'a>(x: Var<'a>, y: &'a Tensor<i64>) -> Var<'a> { cross_entropy(&x, y) } \
                fn f(model: &mut Linear, train: &DataLoader, generator: &mut Generator) { \
                let _ = wengert::nn::Fit::new(1).run(model, &mut Adam::new(0.1), train, generator, \
                |model: &Linear, tape, x| model.forward(tape.constant(x)), loss); }",
        body: "",
        says: &[],
        explained: "implementation of `Fn` is not general enough",
    },
    Mistake {
        name: "a parameter as a number",
        items: "",
        body: "let p = Parameter::new(Tensor::<f32>::ones([2])); let _ = 1.0 / &p;",
        says: &[],
        explained: "cannot divide `{float}` by `",
    },
    Mistake {
        name: "a model with its own forward called with a tensor",
        items: "struct Net(Linear); impl Net { fn forward<'t>(&self, x: Var<'t>) -> Var<'t> { self.0.forward(x) } }",
        body: "let net = Net(Linear::new(2, 1, &mut Generator::new(0))); let _ = net.forward(&Tensor::ones([3, 2]));",
        says: &[],
        explained: "expected `Var<'_>`, found `&Tensor<_>`",
    },
    Mistake {
        name: "a closure over a layer kept in a variable",
        items: "",
        body: "let layer: Linear = Linear::new(2, 1, &mut Generator::new(0)); let f = |x| layer.forward(x).relu(); \
               let _ = infer(f, &Tensor::ones([3, 2]));",
        says: &[],
        explained: "type annotations needed",
    },
    Mistake {
        name: "a layer called with a tensor of another type",
        items: "",
        body: "let layer: Linear = Linear::new(2, 1, &mut Generator::new(0)); let _ = layer.forward(&Tensor::<f64>::ones([3, 2]));",
        says: &[
            "`&wengert::Tensor<f64>` is no input of a layer with elements of `f32`",
            "in a training step, the input is a variable: `model.forward(tape.constant(&x))`",
            "for a prediction, the input is a tensor: `model.forward(&x)`",
        ],
        explained: "",
    },
    Mistake {
        name: "a layer called with a parameter",
        items: "",
        body: "let layer: Linear = Linear::new(2, 1, &mut Generator::new(0)); \
               let _ = layer.forward(&Parameter::new(Tensor::<f32>::ones([3, 2])));",
        says: &["is no input of a layer with elements of `f32`", "`model.forward(tape.constant(&x))`"],
        explained: "",
    },
    Mistake {
        name: "a reduction without its dimensions",
        items: "",
        body: "let _ = Tensor::<f32>::ones([2]).sum();",
        says: &["fn try_sum(&self, dims: impl Into<Dims>) -> Result"],
        explained: "",
    },
    Mistake {
        name: "an f32 on the left of a variable",
        items: "",
        body: "let tape = Tape::<f32>::new(); let scale = 2.0f32; let _ = scale * tape.constant(1.0);",
        says: &["a number of type `f32` cannot stand on the left of `Var<'_>`", "write the number on the right"],
        explained: "",
    },
    Mistake {
        name: "a count on the left of a variable",
        items: "fn f<'t, T: Float>(x: &Var<'t, T>, count: usize) -> Var<'t, T> { count - x }",
        body: "",
        says: &[
            "a number of type `usize` cannot stand on the left of `wengert::Var<'_, T>`",
            "write the number on the right",
        ],
        explained: "",
    },
    Mistake {
        name: "an f64 on the left of a tensor of f32",
        items: "",
        body: "let scale = 2.0f64; let _ = scale * &Tensor::<f32>::ones([2]);",
        says: &[
            "a number of type `f64` cannot stand on the left of `wengert::Tensor`",
            "a number has the element type",
        ],
        explained: "",
    },
    Mistake {
        name: "a count on the left of a tensor",
        items: "",
        body: "let count = 2usize; let _ = count - Tensor::<f64>::ones([2]);",
        says: &["a number of type `usize` cannot stand on the left of `wengert::Tensor<f64>`", "`-x + a`"],
        explained: "",
    },
    Mistake {
        name: "a literal on the left of integers without a type",
        items: "",
        body: "let _ = 2 * &Tensor::from([1, 2]);",
        says: &["a number of type `i32` cannot stand on the left of `wengert::Tensor<i64>`"],
        explained: "",
    },
    Mistake {
        name: "a trait that is not imported",
        items: "fn f(d: &wengert::nn::metrics::By<wengert::nn::metrics::Accuracy>) -> f64 { d.value() }",
        body: "",
        says: &["use wengert::nn::metrics::Metric;"],
        explained: "",
    },
    Mistake {
        name: "a loop over a loader",
        items: "",
        body: "for batch in &DataLoader::new(Tensor::<f32>::ones([4]), 2) {}",
        says: &[],
        explained: "is not an iterator",
    },
    Mistake {
        name: "a batch without its result",
        items: "fn f(loader: &DataLoader) { for (x, y) in loader.epoch(0) {} }",
        body: "",
        says: &["wengert::nn::Error>"],
        explained: "this is an iterator with items of type `Result<",
    },
    Mistake {
        name: "a loss with another variable",
        items: "",
        body: "let layer: Linear = Linear::new(2, 1, &mut Generator::new(0)); let x = Tensor::ones([3, 2]); \
               let (_, _) = Tape::new().value_and_gradients(|tape| { let y = layer.forward(tape.constant(&x)); (y.sum(..), y) });",
        says: &[],
        explained: "expected `Var<'_>`, found `(Var<'_>, Var<'_>)`",
    },
    Mistake {
        name: "a loss as a method without its options",
        items: "",
        body: "let x = Tensor::<f32>::ones([2]); let _ = x.smooth_l1_loss(&x);",
        says: &[],
        explained: "two arguments of type `f64` and `LossReduction` are missing",
    },
    Mistake {
        name: "a layer that defines forward",
        items: "#[derive(Module)] struct Net(Linear); \
                impl Layer for Net { fn forward<'t>(&self, x: Var<'t>) -> Var<'t> { self.0.forward(x) } }",
        body: "",
        says: &["missing `try_forward` in implementation"],
        explained: "method `forward` has 0 type parameters but its trait declaration has 1 type parameter",
    },
    Mistake {
        name: "a variable that is printed",
        items: "",
        body: "let tape = Tape::<f32>::new(); println!(\"{}\", tape.constant(1.0));",
        says: &[],
        explained: "doesn't implement `std::fmt::Display`",
    },
    Mistake {
        name: "tensors without an element type",
        items: "",
        body: "let x = Tensor::ones([3, 1]); println!(\"{}\", &x * &x);",
        says: &[],
        explained: "type annotations needed for `wengert::Tensor<_>`",
    },
    Mistake {
        name: "a shape without dimensions",
        items: "",
        body: "let _ = Tensor::<f32>::zeros([]);",
        says: &[],
        explained: "cannot infer type for array `[_; 0]`",
    },
    Mistake {
        name: "a slice with a start and an end",
        items: "",
        body: "let _ = Tensor::<f32>::ones([4]).slice(0, 1, 3);",
        says: &[],
        explained: "the trait `From<{integer}>` is not implemented for `Span`",
    },
    Mistake {
        name: "a layer without an element type",
        items: "",
        body: "let _layer = Linear::new(2, 1, &mut Generator::new(0));",
        says: &[],
        explained: "type annotations needed for `wengert::nn::Linear<_>`",
    },
];

/// Programs whose statements name no element type. The layers of a struct, an argument or literals make the numbers of a function `f32` or
/// `f64`. Each program has a name, items before `main`, and the statements of `main`.
const UNTYPED: &[(&str, &str, &str)] = &[
    (
        "a struct of layers, drawn data, a loop",
        "#[derive(Module)] struct Net { conv: Conv2d, fc: Linear }
         impl Net { fn forward<'t>(&self, x: Var<'t>) -> Var<'t> { self.fc.forward(self.conv.forward(x).relu().flatten(1, -1)) } }",
        "let generator = &mut Generator::new(0);
         let (x, y) = (Tensor::rand([16, 1, 8, 8], generator), Tensor::randint(0, 3, [16], generator));
         let mut model = Net { conv: Conv2d::new(1, 4, 3, generator), fc: Linear::new(144, 3, generator) };
         let mut adam = AdamW::new(0.01);
         let tape = Tape::training(generator);
         let loss = cross_entropy(&model.forward(tape.constant(&x)), &y);
         let gradients = loss.backward();
         println!(\"{}\", loss.item());
         drop(tape);
         adam.step(&mut model, &gradients);
         println!(\"{}\", accuracy(&infer(|x| model.forward(x), &x), &y));",
    ),
    (
        "a struct of layers with literals as data",
        "#[derive(Module)] struct Net { fc1: Linear, fc2: Linear }
         impl Net { fn forward<'t>(&self, x: Var<'t>) -> Var<'t> { self.fc2.forward(self.fc1.forward(x).tanh()) } }",
        "let generator = &mut Generator::new(0);
         let x = Tensor::from([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
         let y = Tensor::from_vec(vec![0.0, 1.0, 1.0, 0.0], [4, 1]);
         let mut model = Net { fc1: Linear::new(2, 8, generator), fc2: Linear::new(8, 1, generator) };
         let mut adam = Adam::new(0.05);
         let (loss, gradients) = Tape::new().value_and_gradients(|tape| mse_loss(model.forward(tape.constant(&x)), &y));
         adam.step(&mut model, &gradients);
         println!(\"{loss} {}\", infer(|x| model.forward(x), &x));",
    ),
    (
        "a sequence of layers with literals as data",
        "",
        "let generator = &mut Generator::new(0);
         let x = Tensor::from([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
         let y = Tensor::from([[0.0], [1.0], [1.0], [0.0]]);
         let mut model = Sequential::mlp(&[2, 8, 1], Tanh, generator);
         let mut sgd = Sgd::new(0.05).momentum(0.9);
         let (loss, gradients) =
             Tape::training(generator).value_and_gradients(|tape| mse_loss(model.forward(tape.constant(&x)), &y));
         sgd.step(&mut model, &gradients);
         println!(\"{loss} {}\", model.forward(&x));",
    ),
    (
        "data of a file, in batches",
        "fn train(digits: Samples) {
             let generator = &mut Generator::new(0);
             let mut model = Sequential::new().add(Linear::new(64, 32, generator)).add(ReLU).add(Linear::new(32, 10, generator));
             let mut adam = AdamW::new(0.01);
             for batch in DataLoader::new(digits, 64).shuffle().epoch(0) {
                 let (x, y) = batch.unwrap();
                 let (_, gradients) = Tape::training(generator)
                     .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
                 adam.step(&mut model, &gradients);
             }
         }",
        "train(Samples::read_csv(\"digits.csv\", 10).unwrap());",
    ),
    (
        "a function of tensors in f64",
        "fn fit(x: &Tensor<f64>, y: &Tensor<f64>) -> Tensor<f64> {
             let generator = &mut Generator::new(0);
             let mut model = (Linear::new(1, 4, generator), Linear::new(4, 1, generator));
             let mut adam = Adam::new(0.01);
             let (_, gradients) = Tape::training(generator)
                 .value_and_gradients(|tape| mse_loss(model.1.forward(model.0.forward(tape.constant(x)).tanh()), y));
             adam.step(&mut model, &gradients);
             model.1.forward(model.0.forward(x).tanh())
         }",
        "let x = Tensor::linspace(0.0, 1.0, 20).unsqueeze(1); println!(\"{}\", fit(&x, &x.sin()));",
    ),
    (
        "a derivative at a point of literals",
        "",
        "let tape = Tape::new(); let x = tape.var(&Tensor::from([1.0, 2.0])); let [dx] = (x * x).sum(..).grad([x]);
         println!(\"{} {}\", dx.value(), grad(|x| x.sin().sum(..), &Tensor::from([0.5, 1.0])));",
    ),
];

/// The imports of each program, and a function whose argument is a module.
pub const OPENING: &str = "#![allow(unused)]\nuse wengert::autograd::transforms::*;\nuse wengert::prelude::*;\n\
                       fn parameters<M: Module>(model: &M) -> usize { model.num_parameters() }\n";

/// A runner of rustc for programs that use the library.
pub struct Compiler {
    folder: tempfile::TempDir,
    library: PathBuf,
}

impl Compiler {
    /// Returns a compiler with the newest built library that a correct program compiles with.
    pub fn new() -> Self {
        let program = std::env::current_exe().expect("the test has a path");
        let built = program.parent().expect("the test lies in a folder");
        let mut libraries: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(built)
            .expect("the folder can be listed")
            .filter_map(|entry| entry.ok())
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("libwengert-") && name.ends_with(".rlib")
            })
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        libraries.sort();
        let mut compiler =
            Compiler { folder: tempfile::tempdir().expect("a temporary folder"), library: PathBuf::new() };
        let mut message = format!("no libwengert-*.rlib in {}", built.display());
        for (_, library) in libraries.into_iter().rev() {
            compiler.library = library;
            match compiler.message("", "let x = Tensor::<f32>::ones([2]); let _ = grad(|x| x.sum(..), &x);") {
                None => return compiler,
                Some(error) => message = error,
            }
        }
        panic!("no correct program compiles: {message}");
    }

    /// Returns the compiler's message for a program, or `None` if it compiles.
    pub fn message(&self, items: &str, body: &str) -> Option<String> {
        let path = self.folder.path().join("program.rs");
        std::fs::write(&path, format!("{OPENING}{items}\nfn main() {{ {body} }}\n")).expect("the folder is writable");
        let argument = |name: &str, value: &Path| {
            let mut argument = OsString::from(name);
            argument.push(value);
            argument
        };
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        // The paths in the library are relative to the workspace. From there, the notes show the lines of the library.
        let output = Command::new(rustc)
            .current_dir(crate::sources::root())
            .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--color=never"])
            .arg(argument("--extern=wengert=", &self.library))
            .arg(argument("-Ldependency=", self.library.parent().expect("the library lies in a folder")))
            .arg(argument("--out-dir=", self.folder.path()))
            .arg(&path)
            .output()
            .expect("rustc runs");
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn frequent_mistakes_are_explained() {
    let compiler = Compiler::new();
    let page = text("docs/guide/errors.md");
    let mut failures = Vec::new();
    for Mistake { name, items, body, says, explained } in MISTAKES {
        let Some(message) = compiler.message(items, body) else {
            failures.push(format!("{name}: compiles"));
            continue;
        };
        for part in says.iter().chain([explained]) {
            if !message.contains(part) {
                failures.push(format!("{name}: the message lacks `{part}`:\n{message}"));
            }
        }
        if !page.contains(explained) {
            failures.push(format!("{name}: docs/guide/errors.md lacks `{explained}`"));
        }
        if says.is_empty() && explained.is_empty() {
            failures.push(format!("{name}: nothing is expected"));
        }
    }
    // Each row of the page quotes a message that a program above gets.
    let table = page.split("## Errors of the compiler").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| message |"));
    let quotes =
        |row: &str| MISTAKES.iter().any(|mistake| !mistake.explained.is_empty() && row.contains(mistake.explained));
    failures.extend(rows.filter(|row| !quotes(row)).map(|row| format!("no program gets the message of the row {row}")));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn common_programs_need_no_element_type() {
    let compiler = Compiler::new();
    let failures: Vec<String> = UNTYPED
        .iter()
        .filter_map(|(name, items, body)| Some(format!("{name}:\n{}", compiler.message(items, body)?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Checks that the remedies in the messages and on the page compile.
#[test]
fn the_remedies_compile() {
    let compiler = Compiler::new();
    let items = "#[derive(Module)] struct Block { weight: Parameter<f64> } #[derive(Module)] #[module(f64)] struct Net { block: Block }
                 struct Options; #[derive(Module)] struct Other { layer: Linear, width: usize, #[module(skip)] options: Options }
                 #[derive(Module)] struct Twice(Linear);
                 impl Layer for Twice { fn try_forward<'t>(&self, x: Var<'t>) -> wengert::nn::Result<Var<'t>> { Ok(self.0.try_forward(x)? * 2.0) } }
                 fn sine<'t>(x: Var<'t, f64>) -> Var<'t, f64> { x.sin().sum(..) }";
    let body = "let x = Tensor::<f64>::ones([2]);
                let f = formula!(|x| x.sin().sum(..));
                let (_, _) = (grad(f, &x), grad(sine, &x));
                let layer: Linear = Linear::new(2, 1, &mut Generator::new(0));
                let other = Linear::<f64>::new(2, 1, &mut Generator::new(0));
                let data = Tensor::<f32>::ones([3, 2]);
                let (prediction, _, _) = (infer(|x| layer.forward(x), &data), layer.forward(&data), x.slice(0, 1..));
                let through = formula!(|x| layer.forward(x).relu());
                let _ = infer(through, &data);
                let tape = Tape::new();
                let (scale, y) = (2.0f32, layer.forward(tape.constant(&data)));
                let _ = (&data * 2.0f64, 2 * &data, 2.0 * &x, 2i64 * &Tensor::from([1, 2]), &Tensor::from([1, 2]) * 2);
                let _ = (y * scale, 2.0 * y, 2 * y, y.linear(y, &y), y.masked_fill(&prediction.gt(0.0), 0.0));
                let _ = (-y + 2usize, (1.0 - y).square(), formula!(|x| (1.0 - x).square())(y));
                println!(\"{} {}\", y.sum(..).item(), y.value());
                let (_, _, [_]) = Tape::training(&mut Generator::new(0)).value_and_gradients_with(|tape| {
                    let y = layer.forward(tape.constant(&data));
                    (smooth_l1_loss(y, &y), [y])
                });
                let _ = wengert::nn::SmoothL1Loss::new().beta(0.5).of(&data, &data);
                for batch in DataLoader::new(Samples::new(data.clone(), Tensor::from([0, 1, 0])).unwrap(), 2).epoch(0) {
                    let (_, _): (Tensor, Tensor<i64>) = batch.unwrap();
                }
                let _ = (&data + 1.0, data.clone() + 1.0, cat(&[y, tape.constant(&prediction)], 0), data.lt(0.1), data.cast::<i64>());
                let _ = (data.reshape((3usize, -1)), Tensor::<f32>::zeros([2, 3]), Tensor::from(vec![0i64, 2, 1]));
                let _ = (wengert::autograd::gradcheck(|x| x.tanh(), &x), x.softplus(1.0, 20.0), x.leaky_relu(0.01), x.std(0, 1));
                let metric = wengert::nn::metrics::Accuracy::new().head::<0>();
                let _ = |model: &mut Linear, train: &DataLoader<(Tensor, (Tensor<i64>, Tensor))>, generator: &mut Generator| {
                    wengert::nn::Fit::new(1).metric(stringify!(accuracy), metric).run_heads(model, &mut Adam::new(0.1), train, generator,
                        |model, tape, x| { let (a, b) = (model.forward(tape.constant(x)), tape.constant(x)); [a, b] },
                        |[a, b], (c, d)| cross_entropy(&a, c) + mse_loss(b, d))
                };
                let _ = y.sum(..).item() < 0.1;
                let first: Tensor = Tensor::ones([3, 1]);
                let _ = (&first * &first, Tensor::<f32>::zeros(()), data.slice(0, 1..3), data.index(&index_items![0, ..]));
                let _ = (&data + &x.sum(..).cast::<f32>(), tape.parameter(&layer.weight) * 2);";
    assert_eq!(compiler.message(items, body), None);
}
