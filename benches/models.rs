//! Times whole steps of what people train and differentiate, beside PyTorch and jax, by the protocol of `runner.rs`. A row of the table
//! is `[kind, numbers]`; what the numbers are stands with each kind.
//!
//! ```text
//! echo 'gpt/tiny' | WORKLOADS=models.json cargo run --release --example models
//! ```
//!
//! Every model is written as a user would write it.

mod runner;

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use wengert::autograd::transforms::{grad, hessian, hvp, jacobian, objective};
use wengert::nn::*;
use wengert::prelude::*;
use wengert::tensor::ops::AttentionMask;

use crate::runner::{Step, answer, numbers};

fn main() -> Result<(), Box<dyn Error>> {
    let build = |kind: &str, row: &[serde_json::Value]| {
        let numbers = numbers(row.first().ok_or("a row is a kind and a list of numbers")?)?;
        step(kind, &numbers.iter().map(|&number| number as usize).collect::<Vec<_>>())
    };
    answer(build, Duration::from_millis(700))
}

/// A step of training: loss, gradients, update.
fn training<M: Module + 'static>(
    mut model: M,
    mut optimizer: impl Optimizer + 'static,
    loss: impl for<'t> Fn(&M, &'t Tape) -> Var<'t> + 'static,
) -> Step {
    let mut generator = Generator::new(1);
    Box::new(move || {
        let (value, gradients) = Tape::training(&mut generator).value_and_gradients(|tape| loss(&model, tape));
        optimizer.step(&mut model, &gradients);
        black_box(value);
    })
}

/// Whatever `f` computes.
fn computing<V>(f: impl Fn() -> V + 'static) -> Step {
    Box::new(move || {
        black_box(f());
    })
}

/// Linear layers of these sizes with a ReLU between them.
fn perceptron(sizes: &[usize], g: &mut Generator) -> Sequential {
    let mut model = Sequential::new();
    for (number, pair) in sizes.windows(2).enumerate() {
        if number > 0 {
            model = model.add(ReLU);
        }
        model = model.add(Linear::new(pair[0], pair[1], g));
    }
    model
}

#[derive(Module)]
struct Tanhs(Vec<Linear>);

impl Tanhs {
    fn forward<'t>(&self, x: Var<'t>, t: Var<'t>) -> Var<'t> {
        let (last, hidden) = self.0.split_last().expect("one layer at least");
        last.forward(hidden.iter().fold(cat(&[x, t], 1), |y, layer| layer.forward(y).tanh()))
    }
}

#[derive(Module)]
struct ResidualMlp {
    norms: Vec<LayerNorm>,
    ups: Vec<Linear>,
    downs: Vec<Linear>,
}

impl ResidualMlp {
    fn forward<'t>(&self, mut z: Var<'t>) -> Var<'t> {
        for ((norm, up), down) in self.norms.iter().zip(&self.ups).zip(&self.downs) {
            z = z + down.forward(up.forward(norm.forward(z)).silu());
        }
        z
    }
}

fn step(kind: &str, n: &[usize]) -> Result<Step, String> {
    let g = &mut Generator::new(0);
    let classes = |n: usize, sizes: &[usize], g: &mut Generator| Tensor::randint(0, n as i64, sizes, g);
    Ok(match (kind, n) {
        ("pinn", &[rows, width, depth]) => {
            let sizes: Vec<usize> = [2].into_iter().chain(vec![width; depth]).chain([1]).collect();
            let model = Tanhs(sizes.windows(2).map(|pair| Linear::new(pair[0], pair[1], g)).collect());
            let (x, t) = (Tensor::rand([rows, 1], g), Tensor::rand([rows, 1], g));
            training(model, Adam::new(1e-3), move |model, tape| {
                let (x, t) = (tape.var(&x), tape.var(&t));
                let w = model.forward(x, t);
                let [ux, ut] = w.sum(..).grad([x, t]);
                let [uxx] = ux.sum(..).grad([x]);
                (ut + w * ux - 0.01 * uxx).square().mean(..)
            })
        }
        ("hessian" | "jacobian", &[i, h, o]) => {
            let w1 = Tensor::randn([i, h], g) / (i as f32).sqrt();
            let w2 = Tensor::randn([h, o], g) / (h as f32).sqrt();
            let x = Tensor::rand([i], g);
            if kind == "jacobian" {
                return Ok(computing(move || jacobian(|x| x.matmul(&w1).tanh().matmul(&w2), &x)));
            }
            computing(move || hessian(|x| x.matmul(&w1).tanh().matmul(&w2).square().sum(..), &x))
        }
        ("hvp", &[rows, d]) => {
            let (a, y) = (Tensor::rand([rows, d], g), classes(2, &[rows], g).cast::<f32>());
            let (w, v) = (Tensor::rand([d], g), Tensor::rand([d], g));
            computing(move || hvp(|w| binary_cross_entropy_with_logits(w.tape().constant(&a).matmul(w), &y), &w, &v))
        }
        ("autoencoder", &[rows, ref sizes @ ..]) => {
            let x = Tensor::rand([rows, sizes[0]], g);
            training(perceptron(sizes, g), Adam::new(1e-3), move |model, tape| {
                binary_cross_entropy_with_logits(model.forward(tape.constant(&x)), &x)
            })
        }
        ("pairwise", &[r, s, d]) => {
            let (x, y) = (Tensor::<f32>::rand([r, d], g), Tensor::rand([s, d], g));
            let kernel = objective(|[x, y]| ((x.unsqueeze(1) - y.unsqueeze(0)).square().sum(2) * -0.5).exp().sum(..));
            computing(move || grad(kernel, [&x, &y]))
        }
        ("kmeans", &[r, k, d]) => {
            let (x, c) = (Tensor::<f32>::rand([r, d], g), Tensor::rand([k, d], g));
            computing(move || (&x.unsqueeze(1) - &c).square().sum(2).argmin(1))
        }
        ("logreg", &[r, d, c]) => {
            let (x, y) = (Tensor::rand([r, d], g), classes(c, &[r], g));
            training(Linear::new(d, c, g), Sgd::new(1e-3), move |model, tape| {
                cross_entropy(&model.forward(tape.constant(&x)), &y)
                    + tape.parameter(&model.weight).square().sum(..) * 1e-3
            })
        }
        ("attention" | "sdpa", &[b, h, t, d]) => {
            let [q, k, v] = [(); 3].map(|()| Tensor::<f32>::rand([b, h, t, d], g));
            if kind == "attention" {
                return Ok(computing(move || {
                    let scale = 1.0 / (d as f64).sqrt();
                    grad(
                        |[q, k, v]| ((q.matmul(k.transpose(-1, -2)) * scale).softmax(-1)).matmul(v).sum(..),
                        [&q, &k, &v],
                    )
                }));
            }
            computing(move || {
                grad(
                    |[q, k, v]| q.scaled_dot_product_attention(k, v, AttentionMask::Causal, None).sum(..),
                    [&q, &k, &v],
                )
            })
        }
        ("mlp_big", &[rows, ref sizes @ ..]) => {
            let (x, y) = (Tensor::rand([rows, sizes[0]], g), classes(sizes[sizes.len() - 1], &[rows], g));
            training(perceptron(sizes, g), AdamW::new(1e-3), move |model, tape| {
                cross_entropy(&model.forward(tape.constant(&x)), &y)
            })
        }
        ("resmlp", &[rows, d, l]) => {
            let (x, y) = (Tensor::rand([rows, d], g), Tensor::rand([rows, d], g));
            let model = ResidualMlp {
                norms: (0..l).map(|_| LayerNorm::new(d)).collect(),
                ups: (0..l).map(|_| Linear::new(d, 2 * d, g)).collect(),
                downs: (0..l).map(|_| Linear::new(2 * d, d, g)).collect(),
            };
            training(model, AdamW::new(1e-3), move |model, tape| mse_loss(model.forward(tape.constant(&x)), &y))
        }
        _ => return Err(format!("unknown kind '{kind}', or not its numbers: {n:?}")),
    })
}
