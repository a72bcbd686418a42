//! Elementwise operations, with the bytes that each must move: operands read once, the result written once.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::prelude::*;

fn broadcasting_add(c: &mut Criterion) {
    let mut group = c.benchmark_group("add");
    let cases: &[(&str, &[usize], &[usize])] = &[
        ("same", &[512, 512], &[512, 512]),
        ("row", &[1024, 1024], &[1024]),
        ("column", &[1024, 1024], &[1024, 1]),
        ("bias", &[4, 32, 14, 14], &[32, 1, 1]),
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
    group.bench_function("tanh", |b| b.iter(|| black_box(&x).tanh()));
    group.bench_function("sqrt", |b| b.iter(|| black_box(&x).sqrt()));
    group.finish();
}

fn reductions(c: &mut Criterion) {
    let mut group = c.benchmark_group("sum");
    let x = Tensor::<f32>::ones([1024, 1024]);
    group.throughput(Throughput::Bytes(4 * x.numel() as u64));
    group.bench_function("rows", |b| b.iter(|| black_box(&x).sum(0, false)));
    group.bench_function("columns", |b| b.iter(|| black_box(&x).sum(1, false)));
    group.bench_function("all", |b| b.iter(|| black_box(&x).sum(.., false)));
    group.finish();
}

criterion_group!(benches, broadcasting_add, functions, reductions);
criterion_main!(benches);
