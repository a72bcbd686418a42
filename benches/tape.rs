//! Recording, differentiating and evaluating: what a step costs beside its arithmetic, and matrix products in flops.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::prelude::*;

fn recording(c: &mut Criterion) {
    let mut group = c.benchmark_group("tape");
    let x = Tensor::<f32>::ones([4]);
    group.throughput(Throughput::Elements(100));
    group.bench_function("record 100 additions", |b| {
        b.iter(|| {
            let tape = Tape::new();
            let mut y = tape.var(&x);
            let z = y;
            for _ in 0..100 {
                y += z;
            }
            black_box(y);
            tape.len()
        });
    });
    group.bench_function("gradient of 100 additions", |b| {
        b.iter(|| {
            let tape = Tape::new();
            let mut y = tape.var(&x);
            let z = y;
            for _ in 0..100 {
                y += z;
            }
            y.sum(.., false).backward()
        });
    });
    group.finish();
}

fn products(c: &mut Criterion) {
    let mut group = c.benchmark_group("matmul");
    for n in [64, 256, 512] {
        let (x, y) = (Tensor::<f32>::ones([n, n]), Tensor::<f32>::ones([n, n]));
        // Two flops for each of n³ multiplications and additions.
        group.throughput(Throughput::Elements(2 * (n * n * n) as u64));
        group.bench_function(format!("{n}"), |b| b.iter(|| black_box(&x).matmul(black_box(&y))));
    }
    group.finish();
}

criterion_group!(benches, recording, products);
criterion_main!(benches);
