//! Times elementwise operations. The speed is in bytes: each operand is read once, and the result is written once.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::prelude::*;
use wengert_benches::against_traffic;

fn broadcasting_add(c: &mut Criterion) {
    let mut group = c.benchmark_group("add");
    let cases: &[(&str, &[usize], &[usize])] = &[
        ("same", &[512, 512], &[512, 512]),
        ("row", &[1024, 1024], &[1024]),
        ("column", &[1024, 1024], &[1024, 1]),
        ("bias", &[4, 32, 14, 14], &[32, 1, 1]),
        ("short rows", &[64, 64, 7, 7], &[64, 1, 7]),
        ("tiny", &[8], &[8]),
    ];
    for (name, left, right) in cases {
        let (x, y) = (Tensor::<f32>::ones(*left), Tensor::<f32>::ones(*right));
        let bytes = 4 * (2 * x.numel() + y.numel()) as u64;
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function(*name, |b| b.iter(|| black_box(&x) + black_box(&y)));
    }
    group.finish();
}

fn functions(c: &mut Criterion) {
    let mut group = c.benchmark_group("functions");
    let x = Tensor::<f32>::linspace(0.1, 2.0, 1 << 18);
    group.throughput(Throughput::Bytes(8 * x.numel() as u64));
    group.bench_function("exp", |b| b.iter(|| black_box(&x).exp()));
    group.bench_function("log", |b| b.iter(|| black_box(&x).log()));
    group.bench_function("tanh", |b| b.iter(|| black_box(&x).tanh()));
    group.bench_function("sigmoid", |b| b.iter(|| black_box(&x).sigmoid()));
    group.bench_function("gelu", |b| b.iter(|| black_box(&x).gelu()));
    group.bench_function("sqrt", |b| b.iter(|| black_box(&x).sqrt()));
    group.finish();
}

fn limits(_: &mut Criterion) {
    const SIDE: usize = 4096;
    let (x, y) = (Tensor::<f32>::ones([SIDE, SIDE]), Tensor::<f32>::ones([SIDE, SIDE]));
    let row = Tensor::<f32>::ones([SIDE]);
    let len = SIDE * SIDE;
    against_traffic("add, 4096x4096 and a row", len, 1, true, || drop(black_box(&x + &row)));
    against_traffic("add, two of 4096x4096", len, 2, true, || drop(black_box(&x + &y)));
    against_traffic("exp, 4096x4096", len, 1, true, || drop(black_box(x.exp())));
}

criterion_group!(benches, limits, broadcasting_add, functions);
criterion_main!(benches);
