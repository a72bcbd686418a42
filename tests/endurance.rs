//! A million small steps of training with shapes that never repeat, on two threads at once. The memory stays flat, and a program
//! gives the same bits afterwards as in a fresh process. `tools/endurance.py` runs this test.

#![cfg(target_os = "linux")]

use std::ops::Range;
use std::process::Command;
use std::{env, thread};

use wengert::prelude::*;
use wengert::tensor::pool_statistics;
use wengert_tests::{alone, memory};

/// The environment variable that makes [`child`] print its bits.
const FRESH: &str = "WENGERT_TEST_FRESH";

/// The environment variable with the number of steps.
const STEPS: &str = "WENGERT_TEST_STEPS";

/// Bytes by which the largest resident memory of the second half may exceed the largest of the first half. The pool keeps buffers of every
/// size class, as many as both threads have needed at the same time, and the largest buffers have 4 MiB. In a run of a million steps, a leak
/// of 17 bytes a step exceeds this limit.
const SLACK: usize = 8 << 20;

/// The number of times at which each half of the steps measures the resident memory.
const SAMPLES: usize = 50;

/// Returns the shape of a step: ten sizes from 1 to 4. The first 4¹⁰ steps have different shapes. They come in no order, so that the first
/// half of the steps has shapes as large as the second.
fn shape(step: usize) -> Vec<usize> {
    // A product with an odd number is a permutation of the numbers below 4¹⁰.
    let shuffled = step.wrapping_mul(0x9_E377) % (1 << 20);
    (0..10).map(|digit| 1 + (shuffled >> (2 * digit)) % 4).collect()
}

/// Returns the largest shapes of the steps: all sizes are 4, except for at most one.
fn largest_shapes() -> impl Iterator<Item = Vec<usize>> {
    (0..40).map(|number| (0..10).map(|axis| if axis == number / 4 { 1 + number % 4 } else { 4 }).collect())
}

/// Computes the gradient of a loss over tensors of the given shape.
fn train(shape: Vec<usize>) {
    let tape = Tape::<f32>::new();
    let x = tape.constant(Tensor::full(&shape[..], 0.5));
    let w = tape.var(&Tensor::full([shape[9]], 0.25));
    let loss = (x * w + 0.1).tanh().square().mean(..);
    let gradients = loss.backward();
    assert_eq!(gradients.of(w).numel(), shape[9]);
}

/// Returns the bits of the results of a few small and large programs.
fn bits() -> Vec<u32> {
    let shapes = [[3usize, 4], [700, 300], [40_000, 3]];
    let program = |shape| {
        let tape = Tape::<f32>::new();
        let x = tape.var(&Tensor::from_fn(shape, |at| ((at[0] * 31 + at[1] * 17) % 101) as f32 * 0.01));
        let loss = (x.tanh() - x.mean_keepdim(0)).square().sum(..);
        let gradient = loss.backward().of(x).exp().sum(..).item();
        [loss.item().to_bits(), gradient.to_bits()]
    };
    shapes.into_iter().flat_map(program).collect()
}

#[test]
fn child() {
    if env::var_os(FRESH).is_some() {
        println!("\nbits {:?}", bits());
    }
}

#[test]
#[ignore = "takes minutes; tools/endurance.py runs it"]
fn a_million_steps() {
    let _alone = alone();
    let steps: usize = env::var(STEPS).ok().and_then(|steps| steps.parse().ok()).unwrap_or(1_000_000);
    let train_all = |from: usize, to: usize| {
        thread::scope(|scope| {
            for number in 0..2 {
                scope.spawn(move || (from + number..to).step_by(2).for_each(|step| train(shape(step))));
            }
        });
    };
    // Both threads need the largest buffers at the same time, which seldom happens in a short run.
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| largest_shapes().for_each(train));
        }
    });
    let part = |number: usize| number * steps / (2 * SAMPLES);
    let largest_of = |samples: Range<usize>| {
        let measure = |number| {
            train_all(part(number), part(number + 1));
            memory("VmRSS")
        };
        samples.map(measure).max().expect("there are samples")
    };
    let (before, after) = (largest_of(0..SAMPLES), largest_of(SAMPLES..2 * SAMPLES));
    println!("{steps} steps: at most {before} bytes in the first half, {after} in the second; {:?}", pool_statistics());
    assert!(after <= before + SLACK, "at most {before} bytes in the first half, {after} in the second");

    let mut fresh = Command::new(env::current_exe().expect("this program has a path"));
    let fresh = fresh.args(["--exact", "endurance::child", "--nocapture"]).env(FRESH, "1").output();
    let printed = String::from_utf8(fresh.expect("the child starts").stdout).expect("text");
    let line = printed.lines().find_map(|line| line.strip_prefix("bits ")).expect("the child prints its bits");
    assert_eq!(format!("{:?}", bits()), line, "the bits differ from a fresh process's");
}
