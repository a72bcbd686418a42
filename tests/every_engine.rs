//! Tests the engine with every setting: each instruction set of the processor, several numbers of threads, with and without simplification,
//! with and without the pool. The number of threads and the pool change no bit. The other settings change only rounding.

use wengert::autograd::set_simplification;
use wengert::nn::cross_entropy;
use wengert::prelude::*;
use wengert::tensor::{
    InstructionSet, instruction_set, pool_statistics, set_instruction_set, set_num_threads, set_pool_capacity,
};
use wengert_tests::alone;

fn numbers<T: Float>(shape: &[usize], seed: usize) -> Tensor<T> {
    Tensor::from_fn(shape, |index| {
        let place = index.iter().fold(seed, |sum, &i| sum * 131 + i * 7919);
        T::from_f64((place % 10_007) as f64 / 2500.0 - 2.0)
    })
}

/// Returns the inputs of [`programs`].
fn inputs<T: Float>() -> [Tensor<T>; 9] {
    let shapes: [&[usize]; 9] =
        [&[300, 517], &[517], &[300, 1], &[517, 64], &[64, 10], &[160, 40], &[6 * 24, 160], &[300, 1, 5], &[400, 5]];
    std::array::from_fn(|number| numbers(shapes[number], number + 1))
}

/// Returns the results of programs with many kinds of steps, large enough for several threads.
fn programs<T: Float>(inputs: &[Tensor<T>; 9]) -> Vec<Tensor<T>> {
    let [x, row, column, first, second, recurrent, sequence, points, centres] = inputs;
    let mut results = Vec::new();
    // A layer norm, which reduces rows within a pass, and columns for its gradient.
    let tape = Tape::new();
    let (a, b) = (tape.var(x), tape.var(row));
    let d = a - a.mean_keepdim(1);
    let y = d / (d.square().mean_keepdim(1) + 1e-5).sqrt() * b + b;
    let [da, db] = (y * y * y).sum(..).grad([a, b]);
    results.extend([y.value(), da.value(), db.value()]);
    // A program that reduces columns and reads the result again, with functions and transposed operands.
    let tape = Tape::new();
    let (a, c) = (tape.var(x), tape.var(column));
    let centred = a - a.mean_keepdim(0);
    let y = (centred.tanh() * c.sigmoid() + (a * 0.3).exp()).log_softmax(-1) + a.t().gelu().t();
    let [da, dc] = y.square().mean(..).grad([a, c]);
    results.extend([y.value(), da.value(), dc.value()]);
    // Matrix products: a network with its loss.
    let tape = Tape::new();
    let (w, v) = (tape.var(first), tape.var(second));
    let targets = Tensor::from_fn([300], |index| index[0] as i64 % 10);
    let logits = (tape.constant(x).matmul(&w) * 0.01).relu().matmul(&v);
    let loss = cross_entropy(&logits, &targets);
    let [dw, dv] = loss.grad([w, v]);
    results.extend([loss.value(), dw.value(), dv.value()]);
    // A recurrent network, which uses one weight at every step, cuts gates into slices and joins states.
    let tape = Tape::new();
    let (w, inputs) = (tape.var(recurrent), tape.var(sequence));
    let (mut state, mut cell) = (tape.constant(Tensor::zeros([24, 40])), tape.constant(Tensor::zeros([24, 40])));
    let mut states = Vec::new();
    for step in 0..6 {
        let gates = inputs.narrow(0, 24 * step, 24) + state.matmul(w.t()) * 0.1;
        (state, cell) = gates.lstm_gates(cell);
        states.push(state);
    }
    let y = cat(&states, 0);
    let [dw, dx] = y.square().sum(..).grad([w, inputs]);
    results.extend([y.value(), dw.value(), dx.value()]);
    // Distances, which have expanded operands with short rows.
    let tape = Tape::new();
    let (a, b) = (tape.var(points), tape.var(centres));
    let k = ((a - b).square().sum(2) * -0.5).exp();
    let [da, db] = k.sum(..).grad([a, b]);
    results.extend([k.value(), da.value(), db.value()]);
    // Operations on tensors without a tape.
    results.extend([x.softmax(1), x + row, x.amax(0), x.sum(..), x.matmul(&x.t()), x.t() + x.t()]);
    results
}

fn bits<T: Float>(results: &[Tensor<T>]) -> Vec<Vec<u64>> {
    results.iter().map(|result| result.iter().map(|x| x.to_f64().to_bits()).collect()).collect()
}

/// Returns the largest difference of corresponding elements, relative to the largest magnitude in `y`. The result is
/// NaN if a difference is NaN.
fn distance<T: Float>(x: &Tensor<T>, y: &Tensor<T>) -> f64 {
    assert_eq!(x.shape(), y.shape());
    let scale = y.iter().fold(1e-30, |most: f64, y| most.max(y.to_f64().abs()));
    assert!(scale.is_finite(), "the expected values have no infinity");
    // `f64::max` would ignore NaN. `total_cmp` puts a NaN without a sign above all numbers.
    let differences = x.iter().zip(y.iter()).map(|(x, y)| ((x.to_f64() - y.to_f64()) / scale).abs());
    differences.max_by(f64::total_cmp).unwrap_or(0.0)
}

fn compare_settings<T: Float>(tolerance: f64) {
    let _alone = alone();
    let best = instruction_set();
    set_num_threads(2);
    let inputs = inputs::<T>();
    let expected = programs(&inputs);
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_supported()) {
        set_instruction_set(set);
        assert_eq!(instruction_set(), set);
        for simplify in [true, false] {
            set_simplification(simplify);
            set_num_threads(1);
            let alone = programs(&inputs);
            for (number, (got, expected)) in alone.iter().zip(&expected).enumerate() {
                let off = distance(got, expected);
                assert!(off < tolerance, "result {number} with {set}, simplification {simplify}: {off:e}");
            }
            let alone = bits(&alone);
            for threads in [2, 7] {
                set_num_threads(threads);
                let is_same = bits(&programs(&inputs)) == alone;
                assert!(is_same, "{threads} threads with {set}, simplification {simplify}");
            }
        }
    }
    set_instruction_set(best);
    set_simplification(true);
}

#[test]
fn a_value_that_is_not_a_number_is_far_from_every_number() {
    let expected = Tensor::from([1.0, -4.0, 2.0]);
    assert_eq!(distance(&Tensor::from([1.0, -3.0, 2.0]), &expected), 0.25);
    for wrong in [f64::NAN, -f64::NAN] {
        assert!(distance(&Tensor::from([wrong, -4.0, 2.0]), &expected).is_nan());
    }
    assert_eq!(distance(&Tensor::from([1.0, f64::NEG_INFINITY, 2.0]), &expected), f64::INFINITY);
}

#[test]
fn single_precision() {
    compare_settings::<f32>(2e-4);
}

#[test]
fn double_precision() {
    compare_settings::<f64>(1e-12);
}

#[test]
fn the_pool_changes_nothing_and_can_be_emptied() {
    let _alone = alone();
    let inputs = inputs::<f32>();
    let with = bits(&programs(&inputs));
    assert!(pool_statistics().held_bytes > 0);
    let capacity = pool_statistics().capacity;
    assert_eq!(capacity, 1 << 30, "README.md states the default");
    set_pool_capacity(0);
    assert_eq!(pool_statistics().held_buffers, 0);
    let reused = pool_statistics().reused;
    assert!(bits(&programs(&inputs)) == with);
    assert_eq!((pool_statistics().reused, pool_statistics().held_bytes), (reused, 0));
    set_pool_capacity(capacity);
}

#[test]
fn from_many_threads_at_once() {
    let _alone = alone();
    set_num_threads(3);
    let inputs = inputs::<f32>();
    let expected = bits(&programs(&inputs));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(bits(&programs(&inputs)) == expected));
        }
    });
}
