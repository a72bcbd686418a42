//! Recording, differentiating and evaluating: what a step costs beside its arithmetic, by node of the tape.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::autograd::transforms::grad;
use wengert::prelude::*;

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
    y.sum(.., false)
}

fn layer_norm<'t>([a, b]: [Var<'t, f32>; 2]) -> Var<'t, f32> {
    let d = a - a.mean(1, true);
    let y = d / (d.square().mean(1, true) + 1e-5).sqrt() * b + b;
    (y * y).sum(.., false)
}

fn gradients(c: &mut Criterion) {
    let mut group = c.benchmark_group("gradient");
    let (x, row) = (Tensor::<f32>::linspace(-1.0, 1.0, 1 << 19).reshape([1024, 512]), Tensor::<f32>::ones([512]));
    // Read twice, forward and backward, and one gradient written.
    group.throughput(Throughput::Bytes(3 * 4 * x.numel() as u64));
    group.bench_function("layer norm", |b| {
        b.iter(|| black_box(grad(layer_norm, [&x, &row])));
    });
    group.bench_function("gelu", |b| {
        b.iter(|| black_box(grad(|[a, b]| (a * b).gelu().sum(.., false), [&x, &row])));
    });
    group.finish();
}

criterion_group!(benches, recording, gradients);
criterion_main!(benches);
