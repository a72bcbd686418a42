//! The memory of a training loop does not grow with the number of steps: small steps, large steps, shapes that never repeat, and
//! numbers that never repeat.

#![cfg(target_os = "linux")]

use wengert::nn::{Generator, Layer, Linear, Optimizer, Sgd, cross_entropy};
use wengert::prelude::*;
use wengert_tests::{alone, memory};

/// Calls `step` `steps` times. After the first tenth, the memory must not grow by more than `slack` bytes.
fn flat(steps: usize, slack: usize, mut step: impl FnMut(usize)) {
    let _alone = alone();
    (0..steps / 10).for_each(&mut step);
    let before = memory("VmRSS");
    (steps / 10..steps).for_each(&mut step);
    let after = memory("VmRSS");
    assert!(after <= before + slack, "from {before} to {after} bytes");
}

#[test]
fn fifty_thousand_small_steps() {
    let mut generator = Generator::new(1);
    let mut model = Linear::<f32>::new(4, 1, &mut generator);
    let mut sgd = Sgd::new(0.01);
    let (x, y) = (Tensor::from_fn([8, 4], |i| (i[0] + 2 * i[1]) as f32 * 0.1), Tensor::ones([8, 1]));
    flat(50_000, 2 << 20, |_| {
        let gradients = {
            let tape = Tape::new();
            let error = model.forward(tape.constant(&x)) - &y;
            error.square().mean(..).backward()
        };
        sgd.step(&mut model, &gradients);
    });
}

#[test]
fn three_hundred_large_steps() {
    let mut generator = Generator::new(1);
    let mut model = Linear::<f32>::new(256, 10, &mut generator);
    let mut sgd = Sgd::new(0.01);
    let x = Tensor::from_fn([1024, 256], |i| ((i[0] * 31 + i[1] * 17) % 101) as f32 * 0.01);
    let targets = Tensor::from_fn([1024], |i| (i[0] % 10) as i64);
    flat(300, 16 << 20, |_| {
        let gradients = {
            let tape = Tape::new();
            cross_entropy(&model.forward(tape.constant(&x).tanh()), &targets).backward()
        };
        sgd.step(&mut model, &gradients);
    });
}

#[test]
fn shapes_that_never_repeat() {
    flat(4_000, 8 << 20, |step| {
        let tape = Tape::new();
        let x = tape.var(&Tensor::<f32>::ones([1 + step % 97, 2 + step / 7]));
        let row = tape.var(&Tensor::ones([2 + step / 7]));
        let gradients = (x * row).tanh().sum(..).backward();
        assert_eq!(gradients.of(row).numel(), 2 + step / 7);
    });
}

#[test]
fn numbers_that_never_repeat() {
    flat(10_000, 2 << 20, |step| {
        let tape = Tape::new();
        let x = tape.var(&Tensor::<f64>::ones([3]));
        let gradients = (x * step as f64).sum(..).backward();
        assert_eq!(gradients.of(x).to_vec(), [step as f64; 3]);
    });
}
