//! Times the recording, differentiation and evaluation of tapes: the cost of a step besides its arithmetic, per node of the tape. Gradients
//! of large operands are timed by their bytes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::autograd::transforms::grad;
use wengert::nn::{Generator, Layer, Linear, Module, Optimizer, Sgd};
use wengert::prelude::*;
use wengert::tensor::ops::LossReduction;

fn recording(c: &mut Criterion) {
    let mut group = c.benchmark_group("tape");
    let x = Tensor::<f32>::ones([4]);
    group.throughput(Throughput::Elements(1000));
    group.bench_function("record 1000 operations", |b| {
        b.iter(|| {
            let tape = Tape::new();
            let z = tape.var(&x);
            let mut y = z;
            for _ in 0..500 {
                y = y * z + z;
            }
            black_box(y);
            tape.len()
        });
    });
    group.throughput(Throughput::Elements(298));
    group.bench_function("record, derive and run 100 operations", |b| {
        b.iter(|| black_box(grad(chain, [&x, &x])));
    });
    group.finish();
}

fn chain<'t>([a, b]: [Var<'t, f32>; 2]) -> Var<'t, f32> {
    let mut y = a;
    for _ in 0..50 {
        y = y * b + a;
    }
    y.sum(..)
}

fn layer_norm<'t>([a, b]: [Var<'t, f32>; 2]) -> Var<'t, f32> {
    let d = a - a.mean_keepdim(1);
    let y = d / (d.square().mean_keepdim(1) + 1e-5).sqrt() * b + b;
    (y * y).sum(..)
}

fn gradients(c: &mut Criterion) {
    let mut group = c.benchmark_group("gradient");
    let (x, row) = (Tensor::<f32>::linspace(-1.0, 1.0, 1 << 19).reshape([1024, 512]), Tensor::<f32>::ones([512]));
    // The bytes that the benchmark moves for `x`: it reads `x` in the forward and in the backward pass, and writes the gradient.
    group.throughput(Throughput::Bytes(3 * 4 * x.numel() as u64));
    group.bench_function("layer norm", |b| {
        b.iter(|| black_box(grad(layer_norm, [&x, &row])));
    });
    group.bench_function("gelu", |b| {
        b.iter(|| black_box(grad(|[a, b]| (a * b).gelu().sum(..), [&x, &row])));
    });
    group.finish();
}

/// Times a step of linear regression, [32, 4] to [32, 1], with a cached plan. Each benchmark adds a part to the previous one: the
/// recording, the derivatives, and the run with the update of the parameters. The throughput counts nodes, including the nodes of
/// derivatives.
fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    let mut model = Linear::new(4, 1, &mut Generator::new(0));
    let mut sgd = Sgd::new(0.01);
    let (x, y) = (Tensor::<f32>::linspace(-1.0, 1.0, 128).reshape([32, 4]), Tensor::<f32>::ones([32, 1]));
    let nodes = {
        let tape = Tape::new();
        loss(&model, &tape, &x, &y).backward();
        tape.len() as u64
    };
    group.throughput(Throughput::Elements(nodes));
    group.bench_function("record", |b| {
        b.iter(|| {
            let tape = Tape::new();
            loss(&model, &tape, &x, &y);
            tape.len()
        });
    });
    group.bench_function("record and derive", |b| {
        b.iter(|| {
            let tape = Tape::new();
            let parameters: Vec<Var<'_, f32>> = model.parameters().iter().map(|p| tape.parameter(p)).collect();
            let loss = loss(&model, &tape, &x, &y);
            loss.try_grad_slice(&parameters).map(|gradients| gradients.len())
        });
    });
    group.bench_function("record, derive, run and update", |b| {
        b.iter(|| {
            let (_, gradients) = Tape::new().value_and_gradients(|tape| loss(&model, tape, &x, &y));
            sgd.step(&mut model, &gradients);
        });
    });
    group.finish();
}

fn loss<'t>(model: &Linear<f32>, tape: &'t Tape<f32>, x: &Tensor<f32>, y: &Tensor<f32>) -> Var<'t, f32> {
    model.forward(tape.constant(x)).mse_loss(&tape.constant(y), None, LossReduction::Mean)
}

criterion_group!(benches, recording, gradients, step);
criterion_main!(benches);
