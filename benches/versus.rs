//! Times the workloads that are also timed with PyTorch, jax and other peers, with the protocol of `runner.rs`. A row of the
//! table is `[kind, shape, numbers]`. The kind determines the meaning of the numbers, for example a shape, axes or sizes of layers.
//!
//! ```text
//! echo 'add/row' | WORKLOADS=table.json cargo run --release --example versus
//! ```
//!
//! Every computation is written as a user would write it. Each training step records on a new tape.

mod runner;

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use wengert::autograd::transforms::grad;
use wengert::nn::{Adam, Conv2d, Generator, Layer, Linear, Module, Optimizer, Result, Sgd, cross_entropy};
use wengert::prelude::*;
use wengert::tensor::ops::{ConvOptions, LossReduction, PoolOptions};

use crate::runner::{Step, answer, numbers};

fn main() -> Result<(), Box<dyn Error>> {
    answer(
        |kind, row| match row {
            [first, second] => step(kind, &numbers(first)?, &numbers(second)?),
            _ => Err("a row is a kind and two lists".to_owned()),
        },
        Duration::from_millis(350),
    )
}

fn step(kind: &str, first: &[isize], second: &[isize]) -> Result<Step, String> {
    let mut generator = Generator::new(0);
    let sizes = |shape: &[isize]| shape.iter().map(|&size| size as usize).collect::<Vec<_>>();
    let mut uniform = |shape: &[isize]| Tensor::<f32>::rand(shape, &mut generator);
    let a = uniform(first);
    let axis = || second.first().copied().ok_or("an axis is missing");
    Ok(match kind {
        "add" => binary(a, uniform(second) + 0.5, |a, b| a + b),
        "mul" => binary(a, uniform(second) + 0.5, |a, b| a * b),
        "div" => binary(a, uniform(second) + 0.5, |a, b| a / b),
        "add_t" | "add_tt" => binary(a.t(), uniform(second), |a, b| a + b),
        "add_" => {
            let (mut a, b) = (a, uniform(second) * 1e-9);
            Box::new(move || {
                a.add_(&b);
                black_box(&a);
            })
        }
        "where" => {
            let mask = a.gt(0.5);
            binary(a, uniform(second), move |a, b| where_(&mask, a, b))
        }
        "exp" => unary(a, |a| a.exp()),
        "tanh" => unary(a, |a| a.tanh()),
        "sigmoid" => unary(a, |a| a.sigmoid()),
        "log" => unary(a, |a| a.log()),
        "relu" => unary(a, |a| a.relu()),
        "sqrt" => unary(a, |a| a.sqrt()),
        "gelu" => unary(a, |a| a.gelu()),
        "sum" => {
            let axes = second.to_vec();
            unary(a, move |a| a.sum(&axes[..]))
        }
        "amax" => {
            let axes = second.to_vec();
            unary(a, move |a| a.amax(&axes[..]))
        }
        "norm" => {
            let axes = second.to_vec();
            unary(a, move |a| a.vector_norm(2, &axes[..]))
        }
        "var" => {
            let axes = second.to_vec();
            unary(a, move |a| a.var(&axes[..], 1))
        }
        "logsumexp" => {
            let axes = second.to_vec();
            unary(a, move |a| a.logsumexp(&axes[..]))
        }
        // This operand consists of every second element of the last dimension.
        "sum_step" => {
            let axes = second.to_vec();
            unary(a.slice(-1, (.., 2)), move |a| a.sum(&axes[..]))
        }
        "softmax" => {
            let axis = axis()?;
            unary(a, move |a| a.softmax(axis))
        }
        "conv_fwd" | "conv_dx" | "conv_dw" => {
            let &[out, height, width, stride, dilation, padding, groups] = second else {
                return Err("a convolution has a kernel, stride, dilation, padding and groups".to_owned());
            };
            let options = ConvOptions::default().groups(groups as usize).stride([stride as usize; 2]);
            // A kernel of height 1 stands for a one-dimensional convolution, whose images have height 1. They are padded only along the
            // width.
            let padding = [if height == 1 { 0 } else { padding as usize }, padding as usize];
            let options = options.dilation([dilation as usize; 2]).padding(padding);
            let w = uniform(&[out, first[1] / groups, height, width]);
            let z = a.conv2d(&w, None, &options);
            convolution(kind, [a, w, z], options)
        }
        "pool_max_fwd" | "pool_max_bwd" | "pool_avg_fwd" | "pool_avg_bwd" => {
            let &[kernel, stride, padding] = second else {
                return Err("a pooling has a kernel, stride and padding".to_owned());
            };
            let options = PoolOptions::default().stride([stride as usize; 2]).padding([padding as usize; 2]);
            let kernel = [kernel as usize; 2];
            match kind {
                "pool_max_fwd" => unary(a, move |a| a.max_pool2d(kernel, &options)),
                "pool_avg_fwd" => unary(a, move |a| a.avg_pool2d(kernel, &options)),
                "pool_max_bwd" => Box::new(move || {
                    black_box(grad(|[x]| x.max_pool2d(kernel, &options).sum(..), [&a]));
                }),
                _ => Box::new(move || {
                    black_box(grad(|[x]| x.avg_pool2d(kernel, &options).sum(..), [&a]));
                }),
            }
        }
        "matmul" => binary(a, uniform(second), |a, b| a.matmul(b)),
        "grad_add" => gradient(a, uniform(second), |a, b| (a + b).sum(..)),
        "grad_mul" => gradient(a, uniform(second), |a, b| (a * b).sum(..)),
        "grad_gelu" => gradient(a, uniform(second), |a, b| (a * b).gelu().sum(..)),
        "grad_normalize" => gradient(a, uniform(second), |a, b| {
            let mean = a.mean_keepdim(0);
            let variance = (a - mean).square().mean_keepdim(0);
            ((a - mean) / (variance + 1e-5).sqrt() * b + b).sum(..)
        }),
        "grad_layernorm" => gradient(a, uniform(second), |a, b| {
            let d = a - a.mean_keepdim(1);
            let y = d / (d.square().mean_keepdim(1) + 1e-5).sqrt() * b + b;
            (y * y).sum(..)
        }),
        "grad_chain" => gradient(a, uniform(second), |a, b| {
            let mut y = a;
            for _ in 0..50 {
                y = y * b + a;
            }
            y.sum(..)
        }),
        "train_linear" => {
            let (&[features, outputs], Some(&rows)) = (second, first.first()) else {
                return Err("a linear model is from one size to another".to_owned());
            };
            let y = uniform(&[rows, 1]);
            let mut model = Linear::new(features as usize, outputs as usize, &mut generator);
            let mut sgd = Sgd::new(0.01);
            Box::new(move || {
                let (_, gradients) = Tape::new().value_and_gradients(|tape| {
                    model.forward(tape.constant(&a)).mse_loss(&tape.constant(&y), None, LossReduction::Mean)
                });
                sgd.step(black_box(&mut model), &gradients);
            })
        }
        "train_mlp" | "train_mlp_adam" | "infer_mlp" => {
            let (Some(&rows), Some(&classes)) = (first.first(), second.last()) else {
                return Err("a network has sizes".to_owned());
            };
            let targets = (uniform(&[rows]) * classes as f32).cast::<i64>();
            let model = Mlp::new(&sizes(second), &mut generator);
            if kind == "infer_mlp" {
                return Ok(Box::new(move || {
                    let tape = Tape::new();
                    black_box(model.forward(tape.constant(&a)).value());
                }));
            }
            if kind == "train_mlp" {
                training(model, Sgd::new(0.01), a, targets)
            } else {
                training(model, Adam::new(1e-3), a, targets)
            }
        }
        "train_cnn" => {
            let Some(&rows) = first.first() else { return Err("images have sizes".to_owned()) };
            let targets = (uniform(&[rows]) * 10.0).cast::<i64>();
            training(Cnn::new(&mut generator), Sgd::new(0.01), a, targets)
        }
        _ => return Err(format!("unknown kind '{kind}'")),
    })
}

/// Returns a training step of a classifier.
fn training(
    mut model: impl Layer + 'static,
    mut optimizer: impl Optimizer + 'static,
    inputs: Tensor<f32>,
    targets: Tensor<i64>,
) -> Step {
    Box::new(move || {
        let (_, gradients) =
            Tape::new().value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&inputs)), &targets));
        optimizer.step(black_box(&mut model), &gradients);
    })
}

/// Returns a convolution or one of its two derivatives.
fn convolution(kind: &str, [x, w, z]: [Tensor<f32>; 3], options: ConvOptions) -> Step {
    match kind {
        "conv_fwd" => binary(x, w, move |x, w| x.conv2d(w, None, &options)),
        "conv_dx" => Box::new(move || {
            black_box(grad(|[x]| (x.conv2d(&x.tape().constant(&w), None, &options) * &z).sum(..), [&x]));
        }),
        _ => Box::new(move || {
            black_box(grad(|[w]| (w.tape().constant(&x).conv2d(&w, None, &options) * &z).sum(..), [&w]));
        }),
    }
}

fn unary(a: Tensor<f32>, f: impl Fn(&Tensor<f32>) -> Tensor<f32> + 'static) -> Step {
    Box::new(move || {
        black_box(f(&a));
    })
}

fn binary(a: Tensor<f32>, b: Tensor<f32>, f: impl Fn(&Tensor<f32>, &Tensor<f32>) -> Tensor<f32> + 'static) -> Step {
    Box::new(move || {
        black_box(f(&a, &b));
    })
}

/// Returns a step that computes the gradients of the number f(`a`, `b`) with respect to `a` and `b`. The step records `f` again in
/// each iteration.
fn gradient(
    a: Tensor<f32>,
    b: Tensor<f32>,
    f: impl for<'t> Fn(Var<'t, f32>, Var<'t, f32>) -> Var<'t, f32> + 'static,
) -> Step {
    Box::new(move || {
        black_box(grad(|[a, b]| f(a, b), [&a, &b]));
    })
}

/// Linear layers with a ReLU between them.
#[derive(Module)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(sizes: &[usize], generator: &mut Generator) -> Self {
        Mlp { layers: sizes.windows(2).map(|pair| Linear::new(pair[0], pair[1], generator)).collect() }
    }
}

impl Layer for Mlp {
    /// Maps `[n, in]` to `[n, out]`.
    fn try_forward<'t>(&self, mut x: Var<'t>) -> Result<Var<'t>> {
        for (number, layer) in self.layers.iter().enumerate() {
            x = layer.try_forward(if number == 0 { x } else { x.relu() })?;
        }
        Ok(x)
    }
}

/// Two convolutions, each with a ReLU and a pooling, and a linear layer.
#[derive(Module)]
struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    fc: Linear,
}

impl Cnn {
    fn new(generator: &mut Generator) -> Self {
        Cnn {
            conv1: Conv2d::new(1, 8, 5, generator),
            conv2: Conv2d::new(8, 16, 5, generator),
            fc: Linear::new(256, 10, generator),
        }
    }
}

impl Layer for Cnn {
    /// Maps `[n, 1, 28, 28]` to logits `[n, 10]`.
    fn try_forward<'t>(&self, x: Var<'t>) -> Result<Var<'t>> {
        let halved = PoolOptions::default();
        let x = self.conv1.try_forward(x)?.relu().max_pool2d(2, &halved);
        let x = self.conv2.try_forward(x)?.relu().max_pool2d(2, &halved);
        self.fc.try_forward(x.flatten(1, -1))
    }
}
