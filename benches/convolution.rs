//! Times convolutions and poolings with their gradients. The speed of a convolution is in flops: a multiplication and
//! an addition of its definition count as two. The speed of a pooling is in bytes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wengert::autograd::transforms::grad;
use wengert::prelude::*;
use wengert::tensor::ops::{ConvOptions, PoolOptions};
use wengert_benches::{against_peak, peak_flops};

type Step<'a> = Box<dyn Fn() + 'a>;

/// A convolution of the images `x` `[n, c, size, size]` with the kernels `w`. `z` is the result. With stride 1, the padding keeps the size.
struct Case {
    name: &'static str,
    x: Tensor<f32>,
    w: Tensor<f32>,
    z: Tensor<f32>,
    options: ConvOptions,
}

impl Case {
    fn new(
        name: &'static str,
        [n, c, size]: [usize; 3],
        [out, kernel]: [usize; 2],
        stride: isize,
        groups: usize,
    ) -> Self {
        let (x, w) = (Tensor::ones([n, c, size, size]), Tensor::ones([out, c / groups, kernel, kernel]));
        let options = ConvOptions::default().stride(stride).padding((kernel / 2) as isize).groups(groups);
        let z = x.conv2d(&w, None, &options);
        Case { name, x, w, z, options }
    }

    fn flops(&self) -> f64 {
        2.0 * self.z.numel() as f64 * (self.w.numel() / self.w.shape()[0]) as f64
    }

    fn forward(&self) {
        black_box(self.x.conv2d(&self.w, None, &self.options));
    }

    /// Computes the gradient with respect to the images. The forward result is recorded but not requested, so it is not
    /// computed.
    fn input_gradient(&self) {
        black_box(grad(
            |[x]| (x.conv2d(&x.tape().constant(&self.w), None, &self.options) * &self.z).sum(..),
            [&self.x],
        ));
    }

    fn weight_gradient(&self) {
        black_box(grad(
            |[w]| (w.tape().constant(&self.x).conv2d(&w, None, &self.options) * &self.z).sum(..),
            [&self.w],
        ));
    }

    fn steps(&self) -> [(&'static str, Step<'_>); 3] {
        [
            ("forward", Box::new(|| self.forward())),
            ("input gradient", Box::new(|| self.input_gradient())),
            ("weight gradient", Box::new(|| self.weight_gradient())),
        ]
    }
}

fn cases() -> [Case; 6] {
    [
        Case::new("3x3, 16 to 32", [16, 16, 28], [32, 3], 1, 1),
        Case::new("3x3, 64 to 64", [8, 64, 28], [64, 3], 1, 1),
        Case::new("3x3 by 2, 64 to 128", [8, 64, 28], [128, 3], 2, 1),
        Case::new("7x7 by 2, 3 to 64", [1, 3, 224], [64, 7], 2, 1),
        Case::new("1x1, 256 to 256", [8, 256, 14], [256, 1], 1, 1),
        Case::new("3x3 of each of 32", [4, 32, 56], [32, 3], 1, 32),
    ]
}

fn limits(_: &mut Criterion) {
    let peak = peak_flops();
    for case in cases() {
        for (way, step) in case.steps() {
            against_peak(&format!("conv2d {}, {way}", case.name), case.flops(), peak, step);
        }
    }
}

fn convolutions(c: &mut Criterion) {
    let mut group = c.benchmark_group("conv2d");
    for case in cases() {
        group.throughput(Throughput::Elements(case.flops() as u64));
        for (way, step) in case.steps() {
            group.bench_function(format!("{}/{way}", case.name), |b| b.iter(&step));
        }
    }
    group.finish();
}

fn poolings(c: &mut Criterion) {
    let mut group = c.benchmark_group("pooling");
    let x = Tensor::<f32>::ones([8, 64, 56, 56]);
    for (name, kernel, options) in [
        ("2x2", 2, PoolOptions::default()),
        ("3x3 by 2", 3, PoolOptions::default().stride(2).padding(1)),
        ("3x3 by 1", 3, PoolOptions::default().stride(1).padding(1)),
    ] {
        group.throughput(Throughput::Bytes(4 * (x.numel() + x.avg_pool2d(kernel, &options).numel()) as u64));
        group.bench_function(format!("max {name}"), |b| b.iter(|| x.max_pool2d(kernel, &options)));
        group.bench_function(format!("mean {name}"), |b| b.iter(|| x.avg_pool2d(kernel, &options)));
        group.bench_function(format!("max {name}/gradient"), |b| {
            b.iter(|| grad(|[x]| x.max_pool2d(kernel, &options).sum(..), [&x]));
        });
        group.bench_function(format!("mean {name}/gradient"), |b| {
            b.iter(|| grad(|[x]| x.avg_pool2d(kernel, &options).sum(..), [&x]));
        });
    }
    group.finish();
}

criterion_group!(benches, limits, convolutions, poolings);
criterion_main!(benches);
