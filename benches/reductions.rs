//! Times reductions. The speed is in bytes of the operand, which a reduction must read once. For softmax, the result counts too.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::prelude::*;
use wengert_benches::against_traffic;

fn sums(c: &mut Criterion) {
    let mut group = c.benchmark_group("sum");
    let x = Tensor::<f32>::ones([1024, 1024]);
    group.throughput(Throughput::Bytes(4 * x.numel() as u64));
    group.bench_function("axis 0", |b| b.iter(|| black_box(&x).sum(0)));
    group.bench_function("axis 1", |b| b.iter(|| black_box(&x).sum(1)));
    group.bench_function("all", |b| b.iter(|| black_box(&x).sum(..)));
    group.finish();
    let mut group = c.benchmark_group("rows");
    group.throughput(Throughput::Bytes(8 * x.numel() as u64));
    group.bench_function("softmax", |b| b.iter(|| black_box(&x).softmax(1)));
    group.bench_function("log_softmax", |b| b.iter(|| black_box(&x).log_softmax(1)));
    group.finish();
}

fn limits(_: &mut Criterion) {
    const SIDE: usize = 4096;
    let x = Tensor::<f32>::ones([SIDE, SIDE]);
    let len = SIDE * SIDE;
    against_traffic("sum of all, 4096x4096", len, 1, false, || drop(black_box(x.sum(..))));
    against_traffic("sum over axis 0, 4096x4096", len, 1, false, || drop(black_box(x.sum(0))));
    against_traffic("sum over axis 1, 4096x4096", len, 1, false, || drop(black_box(x.sum(1))));
    against_traffic("amax over axis 1, 4096x4096", len, 1, false, || drop(black_box(x.amax(1))));
}

criterion_group!(benches, limits, sums);
criterion_main!(benches);
