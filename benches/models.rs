//! Times whole training steps and derivatives beside PyTorch and jax, with the protocol of `runner.rs`. A row of the table of
//! workloads is `[kind, numbers]`. The meaning of the numbers depends on the kind.
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

use wengert::autograd::transforms::{grad, hessian, hvp, jacobian};
use wengert::nn::*;
use wengert::prelude::*;
use wengert::tensor::ops::{AttentionMask, ClassLosses, ClassOptions, Classes, one_hot};

use crate::runner::{Step, answer, numbers};

fn main() -> Result<(), Box<dyn Error>> {
    let build = |kind: &str, row: &[serde_json::Value]| {
        let numbers = numbers(row.first().ok_or("a row is a kind and a list of numbers")?)?;
        step(kind, &numbers.iter().map(|&number| number as usize).collect::<Vec<_>>())
    };
    answer(build, Duration::from_millis(700))
}

/// Returns a training step: it computes the loss and its gradients, and updates the model.
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

/// Returns a step that computes `f`.
fn computing<V>(f: impl Fn() -> V + 'static) -> Step {
    Box::new(move || {
        black_box(f());
    })
}

/// A block of a transformer: causal attention, and then two linear layers with a GELU between them. Both read
/// normalised values, and both results are added to the values before the normalisation.
#[derive(Module)]
struct Block {
    ln1: LayerNorm,
    ln2: LayerNorm,
    qkv: Linear,
    proj: Linear,
    fc: Linear,
    out: Linear,
    #[module(skip)]
    heads: usize,
}

impl Block {
    fn new(d: usize, heads: usize, g: &mut Generator) -> Self {
        let (qkv, proj) = (Linear::new(d, 3 * d, g), Linear::new(d, d, g));
        let (fc, out) = (Linear::new(d, 4 * d, g), Linear::new(4 * d, d, g));
        Block { ln1: LayerNorm::new(d), ln2: LayerNorm::new(d), qkv, proj, fc, out, heads }
    }

    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        let [b, t, d] = *x.shape().sizes() else { panic!("[batch, time, width] is wanted") };
        let heads = |y: Var<'t>| y.reshape([b, t, self.heads, d / self.heads]).transpose(1, 2);
        let [q, k, v] = self.qkv.forward(self.ln1.forward(x)).chunk_into(-1).map(heads);
        let a = q.scaled_dot_product_attention(k, v, AttentionMask::Causal, None);
        let x = x + self.proj.forward(a.transpose(1, 2).reshape([b, t, d]));
        x + self.out.forward(self.fc.forward(self.ln2.forward(x)).gelu())
    }
}

/// A transformer that maps characters `[batch, time]` to scores of the next characters.
#[derive(Module)]
struct Gpt {
    tok: Embedding,
    pos: Embedding,
    blocks: Vec<Block>,
    ln: LayerNorm,
    head: Linear,
}

impl Gpt {
    fn forward<'t>(&self, tape: &'t Tape, i: &Tensor<i64>) -> Var<'t> {
        let x = self.tok.forward(tape, i) + tape.parameter(&self.pos.weight);
        self.head.forward(self.ln.forward(self.blocks.iter().fold(x, |x, block| block.forward(x))))
    }
}

fn step(kind: &str, n: &[usize]) -> Result<Step, String> {
    let g = &mut Generator::new(0);
    let classes = |n: usize, sizes: &[usize], g: &mut Generator| Tensor::randint(0, n as i64, sizes, g);
    Ok(match (kind, n) {
        ("gpt", &[b, t, d, h, l, v]) => {
            let model = Gpt {
                tok: Embedding::new(v, d, g),
                pos: Embedding::new(t, d, g),
                blocks: (0..l).map(|_| Block::new(d, h, g)).collect(),
                ln: LayerNorm::new(d),
                head: Linear::new(d, v, g),
            };
            let (i, y) = (classes(v, &[b, t], g), classes(v, &[b, t], g));
            training(model, AdamW::new(1e-3), move |model, tape| {
                cross_entropy(&model.forward(tape, &i).flatten(0, 1), &y.flatten(0, 1))
            })
        }
        ("lstm" | "gru", &[b, t, h, v]) => {
            let cell: Box<dyn Layer> = match kind {
                "lstm" => Box::new(LSTM::builder(h, h).batch_first().build::<f32>(g)),
                _ => Box::new(GRU::builder(h, h).batch_first().build::<f32>(g)),
            };
            let model = (Embedding::new(v, h, g), cell, Linear::new(h, v, g));
            let (i, y) = (classes(v, &[b, t], g), classes(v, &[b, t], g));
            training(model, Adam::new(1e-3), move |(embedding, cell, head), tape| {
                let logits = head.forward(cell.forward(embedding.forward(tape, &i)));
                cross_entropy(&logits.flatten(0, 1), &y.flatten(0, 1))
            })
        }
        ("cnn_bn", &[rows, size, c]) => {
            let conv = |i, o, g: &mut Generator| Conv2d::builder(i, o, 3).padding(1).bias(false).build(g);
            let model = Sequential::new()
                .add(conv(3, c, g))
                .add(BatchNorm2d::new(c))
                .add(ReLU)
                .add(MaxPool2d::new(2))
                .add(conv(c, 2 * c, g))
                .add(BatchNorm2d::new(2 * c))
                .add(ReLU)
                .add(MaxPool2d::new(2))
                .add(conv(2 * c, 4 * c, g))
                .add(BatchNorm2d::new(4 * c))
                .add(ReLU)
                .add(AdaptiveAvgPool2d::new(1))
                .add(Flatten::default())
                .add(Linear::new(4 * c, 10, g));
            let (x, y) = (Tensor::rand([rows, 3, size, size], g), classes(10, &[rows], g));
            training(model, Sgd::new(1e-3).momentum(0.9), move |model, tape| {
                cross_entropy(&model.forward(tape.constant(&x)), &y)
            })
        }
        ("word2vec", &[rows, v, d, negatives]) => {
            let model = (Embedding::new(v, d, g), Embedding::new(v, d, g));
            let [i, o, k] = [vec![rows], vec![rows], vec![rows, negatives]].map(|sizes| classes(v, &sizes, g));
            training(model, Sgd::new(1e-3), move |(a, b), tape| {
                let e = a.forward(tape, &i);
                let positive = (e * b.forward(tape, &o)).sum(1);
                let negative = (e.unsqueeze(1) * b.forward(tape, &k)).sum(2);
                -(positive.logsigmoid().mean(..) + (-negative).logsigmoid().sum(1).mean(..))
            })
        }
        ("per_sample", &[rows, i, h, o]) => {
            let model: Sequential = Sequential::mlp(&[i, h, o], Tanh, g);
            let (x, y) = (Tensor::rand([rows, i], g), classes(o, &[rows], g));
            computing(move || {
                let classes = one_hot(&y, Some(o)).cast();
                per_sample_gradients(&model, [&x, &classes], |[x, class]| {
                    model.forward(x).cross_entropy(Classes::Probabilities(&class), ClassOptions::default())
                })
            })
        }
        ("pinn", &[rows, width, depth]) => {
            let sizes = [vec![2], vec![width; depth], vec![1]].concat();
            let (x, t) = (Tensor::rand([rows, 1], g), Tensor::rand([rows, 1], g));
            training(Sequential::mlp(&sizes, Tanh, g), Adam::new(1e-3), move |model, tape| {
                let (x, t) = (tape.var(&x), tape.var(&t));
                let w = model.forward(cat(&[x, t], 1));
                let [ux, ut] = w.sum(..).grad([x, t]);
                let [uxx] = ux.sum(..).grad([x]);
                (ut + w * ux - 0.01 * uxx).square().mean(..)
            })
        }
        ("hessian" | "jacobian", &[i, h, o]) => {
            let (w1, w2) =
                (Tensor::<f32>::randn([i, h], g) / (i as f32).sqrt(), Tensor::randn([h, o], g) / (h as f32).sqrt());
            let x = Tensor::rand([i], g);
            match kind {
                "jacobian" => computing(move || jacobian(|x| x.matmul(&w1).tanh().matmul(&w2), &x)),
                _ => computing(move || hessian(|x| x.matmul(&w1).tanh().matmul(&w2).square().sum(..), &x)),
            }
        }
        ("hvp", &[rows, d]) => {
            let (a, y) = (Tensor::rand([rows, d], g), classes(2, &[rows], g).cast::<f32>());
            let (w, v) = (Tensor::rand([d], g), Tensor::rand([d], g));
            computing(move || hvp(|w| binary_cross_entropy_with_logits(w.tape().constant(&a).matmul(w), &y), &w, &v))
        }
        ("autoencoder", &[rows, ref sizes @ ..]) => {
            let x = Tensor::rand([rows, sizes[0]], g);
            training(Sequential::mlp(sizes, ReLU, g), Adam::new(1e-3), move |model, tape| {
                binary_cross_entropy_with_logits(model.forward(tape.constant(&x)), &x)
            })
        }
        ("pairwise", &[r, s, d]) => {
            let (x, y) = (Tensor::<f32>::rand([r, d], g), Tensor::rand([s, d], g));
            let kernel = formula!(|[x, y]| ((x.unsqueeze(1) - y.unsqueeze(0)).square().sum(2) * -0.5).exp().sum(..));
            computing(move || grad(kernel, [&x, &y]))
        }
        ("kmeans", &[r, k, d]) => {
            let (x, c) = (Tensor::<f32>::rand([r, d], g), Tensor::rand([k, d], g));
            // The tape computes the distances in one pass. Operations on tensors would write `[r, k, d]` to memory.
            computing(move || (Tape::new().constant(&x).unsqueeze(1) - &c).square().sum(2).argmin(1))
        }
        ("logreg", &[r, d, c]) => {
            let (x, y) = (Tensor::rand([r, d], g), classes(c, &[r], g));
            training(Linear::new(d, c, g), Sgd::new(1e-3), move |model, tape| {
                cross_entropy(&model.forward(tape.constant(&x)), &y)
                    + tape.parameter(&model.weight).square().sum(..) * 1e-3
            })
        }
        ("attention", &[b, h, t, d]) => {
            let [q, k, v] = [(); 3].map(|()| Tensor::<f32>::rand([b, h, t, d], g));
            let scale = 1.0 / (d as f64).sqrt();
            let f = formula!(move |[q, k, v]| (q.matmul(k.transpose(-1, -2)) * scale).softmax(-1).matmul(v).sum(..));
            computing(move || grad(f, [&q, &k, &v]))
        }
        ("sdpa", &[b, h, t, d]) => {
            let [q, k, v] = [(); 3].map(|()| Tensor::<f32>::rand([b, h, t, d], g));
            let f = formula!(|[q, k, v]| q.scaled_dot_product_attention(k, v, AttentionMask::Causal, None).sum(..));
            computing(move || grad(f, [&q, &k, &v]))
        }
        ("mlp_big", &[rows, ref sizes @ ..]) => {
            let (x, y) = (Tensor::rand([rows, sizes[0]], g), classes(sizes[sizes.len() - 1], &[rows], g));
            training(Sequential::mlp(sizes, ReLU, g), AdamW::new(1e-3), move |model, tape| {
                cross_entropy(&model.forward(tape.constant(&x)), &y)
            })
        }
        ("resmlp", &[rows, d, l]) => {
            let (x, y) = (Tensor::rand([rows, d], g), Tensor::rand([rows, d], g));
            let mut block = || (LayerNorm::new(d), Linear::new(d, 2 * d, g), Linear::new(2 * d, d, g));
            let blocks: Vec<_> = (0..l).map(|_| block()).collect();
            training(blocks, AdamW::new(1e-3), move |blocks, tape| {
                let z = blocks.iter().fold(tape.constant(&x), |z, (norm, up, down): &(LayerNorm, Linear, Linear)| {
                    z + down.forward(up.forward(norm.forward(z)).silu())
                });
                mse_loss(z, &y)
            })
        }
        // The likelihood of a hidden Markov model, by the forward algorithm.
        ("hmm", &[states, steps]) => {
            let (transitions, scores) = (Tensor::<f32>::rand([states, states], g), Tensor::rand([steps, states], g));
            let likelihood = formula!(move |[transitions, scores]| {
                let transitions = transitions.log_softmax(1);
                let mut forward = scores.select(0, 0);
                for step in 1..steps {
                    forward = (forward.unsqueeze(1) + transitions).logsumexp(0) + scores.select(0, step);
                }
                forward.logsumexp(0)
            });
            computing(move || grad(likelihood, [&transitions, &scores]))
        }
        _ => return Err(format!("unknown kind '{kind}', or not its numbers: {n:?}")),
    })
}
