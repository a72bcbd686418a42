//! The mode of equal bits (`WENGERT_SIMD=portable`): short training runs, and every elementwise function of floating-point numbers, have the
//! same bits on every platform and processor. The expected hashes were computed on x86-64 with AVX-512. They change only with the library.
//! On x86-64 Linux, a second test runs the first on emulated processors if qemu is installed.

use wengert::nn::{GRU, LayerNorm, Tanh, TransformerEncoderLayer, TransformerOptions};
use wengert::prelude::*;
use wengert::tensor::ops::TensorLike;
use wengert::tensor::{
    Binary, InstructionSet, Site, Unary, instruction_set, num_threads, set_instruction_set, set_num_threads,
};
use wengert_tests::alone;

/// The hashes of [`results`].
const EXPECTED: [(&str, u64); 8] = [
    ("functions of f32", 0x5731_5c9a_b868_95eb),
    ("functions of f64", 0x2fee_f1fe_8e84_2853),
    ("functions of two f32", 0xe678_49de_580a_0b99),
    ("functions of two f64", 0xaed2_84cd_6230_d6bb),
    ("products", 0x2016_d326_4a7e_b2fa),
    ("convolutional network", 0x93d7_7f5f_da1f_eaa4),
    ("recurrent network", 0x4713_5b0e_600b_5c01),
    ("transformer", 0x4dd2_aa1d_4c8a_c649),
];

/// Computes the 64-bit hash FNV-1a of the elements as f64 in little-endian order (G. Fowler, L. C. Noll, K.-P. Vo). All NaNs are equal.
fn hash<T: Float>(tensors: &[Tensor<T>]) -> u64 {
    let numbers = tensors.iter().flat_map(|tensor| tensor.to_vec()).map(T::to_f64);
    let words = numbers.map(|x| if x.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { x.to_bits() });
    words
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns special values, moderate numbers of both signs, and positive numbers of every magnitude.
fn sample<T: Float>() -> Vec<T> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, 0.5, 1e-300, 1e300, 7.0, -7.0];
    let sizes = (-40..=40).map(|k: i32| f64::from(k) * 0.37).chain((0..600).map(|k| f64::from(k) * 0.0531 - 15.9));
    let exponents = (0..180).map(|k: u32| f64::from_bits(u64::from(k * 11 + 3) << 52 | 0x000a_5a5a_5a5a_5a5a));
    let all = special.into_iter().chain(sizes).chain(exponents);
    all.map(T::from_f64).collect()
}

/// Returns the hash of all elementwise functions of one floating-point number. The number of elements is no multiple of the length of a
/// processor's vector.
fn functions<T: Float>() -> u64 {
    let x = Tensor::from(sample::<T>());
    let results = Unary::ALL.iter().filter(|&&op| op != Unary::Not).map(|&op| x.apply_unary(op, Site::here("test")));
    hash(&results.collect::<Result<Vec<_>, _>>().unwrap())
}

/// Returns the hash of all elementwise functions of two floating-point numbers.
fn functions_of_two<T: Float>() -> u64 {
    use Binary::{And, Gcd, Lcm, Or, ShiftLeft, ShiftRight, Xor};
    let x: Vec<T> = sample();
    let y: Vec<T> = x.iter().enumerate().map(|(i, _)| x[(i * 37 + 11) % x.len()]).collect();
    let (x, y) = (Tensor::from(x), Tensor::from(y));
    let ops = Binary::ALL.iter().filter(|op| !matches!(op, And | Gcd | Lcm | Or | ShiftLeft | ShiftRight | Xor));
    // Hurwitz' zeta function is NaN or infinite at most negative arguments, so it gets absolute values.
    let results = ops.map(|&op| match op {
        Binary::Zeta => x.abs().apply_binary(op, &y.abs(), Site::here("test")),
        _ => x.apply_binary(op, &y, Site::here("test")),
    });
    hash(&results.collect::<Result<Vec<_>, _>>().unwrap())
}

/// Returns the hash of matrix products, sums, norms and softmaxes. The shapes of the products select several
/// algorithms: the definition, registers, panels, a single row, few columns, few terms.
fn products() -> u64 {
    let mut generator = Generator::new(5);
    let mut results = Vec::new();
    for [m, n, k] in
        [[3, 4, 5], [40, 30, 20], [70, 65, 600], [1, 300, 700], [500, 1, 90], [400, 1, 180], [20, 9, 300], [300, 24, 2]]
    {
        let (x, y) = (Tensor::<f32>::randn([m, k], &mut generator), Tensor::randn([k, n], &mut generator));
        results.extend([x.matmul(&y), x.t().contiguous().t().matmul(y.t().contiguous().t())]);
        results.extend([
            x.sum(0),
            x.sum(1),
            x.sum(..),
            x.softmax(1),
            x.cumsum(0),
            x.logsumexp(1),
            x.vector_norm(3.0, 1),
        ]);
    }
    hash(&results)
}

/// Trains for some steps and returns the hash of all parameters.
fn trained<M: Module>(mut model: M, steps: usize, loss: impl for<'t> Fn(&M, &'t Tape, usize) -> Var<'t>) -> u64 {
    let mut optimizer = AdamW::new(3e-3);
    let generator = &mut Generator::new(9);
    for step in 0..steps {
        let (_, mut gradients) = Tape::training(generator).value_and_gradients(|tape| loss(&model, tape, step));
        gradients.clip_norm(1.0);
        optimizer.step(&mut model, &gradients);
    }
    hash(&model.parameters().into_iter().map(|parameter| parameter.value.clone()).collect::<Vec<_>>())
}

/// Returns the classes `[count]` of the samples of the step with the number `step`.
fn classes(count: usize, step: usize) -> Tensor<i64> {
    Tensor::from_fn([count], |i| ((i[0] * 7 + step * 3) % 10) as i64)
}

fn convolutional() -> u64 {
    let generator = &mut Generator::new(1);
    let model: Sequential = Sequential::new()
        .add(Conv2d::builder(1, 8, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Conv2d::builder(8, 12, 3).padding(1).build(generator))
        .add(Tanh)
        .add(Dropout::new(0.1))
        .add(Flatten::default())
        .add(Linear::new(12 * 4 * 4, 10, generator));
    let images = Tensor::randn([4, 24, 1, 8, 8], generator);
    trained(model, 8, |model, tape, step| {
        let x = images.select(0, (step % 4) as isize);
        cross_entropy(&model.forward(tape.constant(&x)), &classes(24, step % 4))
    })
}

#[derive(Module)]
struct Recurrent {
    gru: GRU,
    head: Linear,
}

fn recurrent() -> u64 {
    let generator = &mut Generator::new(2);
    let model =
        Recurrent { gru: GRU::builder(10, 24).batch_first().build(generator), head: Linear::new(24, 10, generator) };
    let inputs = Tensor::randn([12, 9, 10], generator);
    trained(model, 6, |model, tape, step| {
        let (outputs, _) = model.gru.forward_from(tape.constant(&inputs), None);
        cross_entropy(&model.head.forward(outputs.select(1, -1)), &classes(12, step % 2))
    })
}

#[derive(Module)]
struct Attentive {
    block: TransformerEncoderLayer,
    norm: LayerNorm,
    head: Linear,
}

fn transformer() -> u64 {
    let generator = &mut Generator::new(3);
    let options = TransformerOptions::new(32, 4).dim_feedforward(64).batch_first().gelu();
    let model = Attentive {
        block: TransformerEncoderLayer::new(&options, generator),
        norm: LayerNorm::new(32),
        head: Linear::new(32, 10, generator),
    };
    let inputs = Tensor::randn([6, 12, 32], generator);
    trained(model, 6, |model, tape, step| {
        let scores = model.head.forward(model.norm.forward(model.block.forward(tape.constant(&inputs))));
        cross_entropy(&scores.select(1, 0), &classes(6, step % 2))
    })
}

fn results() -> [(&'static str, u64); 8] {
    [
        ("functions of f32", functions::<f32>()),
        ("functions of f64", functions::<f64>()),
        ("functions of two f32", functions_of_two::<f32>()),
        ("functions of two f64", functions_of_two::<f64>()),
        ("products", products()),
        ("convolutional network", convolutional()),
        ("recurrent network", recurrent()),
        ("transformer", transformer()),
    ]
}

#[test]
fn the_portable_set_has_the_pinned_bits() {
    let _alone = alone();
    let (set, threads) = (instruction_set(), num_threads());
    set_instruction_set(InstructionSet::Portable);
    // Some emulators stand still with several threads. The number of threads changes no bit, which another test checks.
    set_num_threads(1);
    let results = results();
    set_instruction_set(set);
    set_num_threads(threads);
    assert!(results == EXPECTED, "the bits differ from the pinned ones: {results:#018x?}");
}

/// Runs the test above on two emulated processors of x86-64: one with AVX2 and fused multiply-add, and one that has neither.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn emulated_processors_have_the_pinned_bits() {
    let _alone = alone();
    let qemu = "qemu-x86_64";
    if std::process::Command::new(qemu).arg("--version").output().is_err() {
        println!("NOT RUN: equal bits on emulated processors ({qemu} is not installed; Debian's package is qemu-user)");
        return;
    }
    let program = std::env::current_exe().unwrap();
    // Each emulator runs on a single thread, so both run at the same time.
    let emulators = ["Haswell", "Nehalem"].map(|processor| {
        let emulator = std::process::Command::new(qemu)
            .args(["-cpu", processor])
            .arg(&program)
            .args(["--exact", "equal_bits::the_portable_set_has_the_pinned_bits", "--test-threads=1"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        (processor, emulator)
    });
    for (processor, emulator) in emulators {
        let output = emulator.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{processor}: {text}");
    }
}

/// Checks that a cached plan serves only one instruction set. Functions of constants are computed when a plan is made, with the instruction
/// set in use.
#[test]
fn cached_plans_have_the_bits_of_the_instruction_set() {
    let _alone = alone();
    let set = instruction_set();
    for number in (0..2000).map(|k| 0.0137 + k as f32 * 0.001) {
        let exp = || {
            let tape = Tape::<f32>::new();
            (tape.var(&Tensor::zeros([1])) + tape.constant(number).exp()).item()
        };
        exp();
        set_instruction_set(InstructionSet::Portable);
        let (found, expected) = (exp(), Tensor::scalar(number).exp().item());
        set_instruction_set(set);
        assert_eq!(found.to_bits(), expected.to_bits(), "exp({number})");
    }
}
