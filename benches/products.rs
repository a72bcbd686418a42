//! Times matrix products. The speed is in flops: each multiplication and each addition counts as one.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::prelude::*;
use wengert_benches::{against_peak, peak_flops};

fn products(c: &mut Criterion) {
    let mut group = c.benchmark_group("matmul");
    for n in [64, 256, 512] {
        let (x, y) = (Tensor::<f32>::ones([n, n]), Tensor::<f32>::ones([n, n]));
        group.throughput(Throughput::Elements(2 * (n * n * n) as u64));
        group.bench_function(format!("{n}"), |b| b.iter(|| black_box(&x).matmul(black_box(&y))));
    }
    group.finish();
}

fn limits(_: &mut Criterion) {
    let peak = peak_flops();
    for n in [64, 256, 1024] {
        let (x, y) = (Tensor::<f32>::ones([n, n]), Tensor::<f32>::ones([n, n]));
        against_peak(&format!("matmul {n}"), 2.0 * (n as f64).powi(3), peak, || drop(black_box(x.matmul(&y))));
    }
}

criterion_group!(benches, limits, products);
criterion_main!(benches);
