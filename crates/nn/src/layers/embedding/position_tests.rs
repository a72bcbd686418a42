use wengert_autograd::gradcheck;
use wengert_autograd::prelude::*;

use super::*;
use crate::layers::layer::Layer as _;

#[test]
fn products_of_rotated_vectors_depend_on_the_distance() {
    let (q, k) = (Tensor::<f64>::from([[0.3, -1.0, 0.7, 2.0]]), Tensor::from([[1.5, 0.2, -0.4, 0.9]]));
    for pairs in [RotaryPairs::Interleaved, RotaryPairs::Halves] {
        let product = |i: usize, j: usize| -> f64 { (rotary(&q, i, pairs) * rotary(&k, j, pairs)).sum(..).item() };
        assert!((product(3, 10) - product(20, 27)).abs() < 1e-13);
        assert!((product(3, 10) - product(3, 11)).abs() > 1e-3);
        let norm = |x: &Tensor<f64>| x.vector_norm(2.0, ..).item();
        assert!((norm(&rotary(&q, 9, pairs)) - norm(&q)).abs() < 1e-14);
    }
}

#[test]
fn an_offset_continues_the_sequence() {
    let x = Tensor::<f64>::rand([2, 3, 6, 4], &mut Generator::new(0));
    for pairs in [RotaryPairs::Interleaved, RotaryPairs::Halves] {
        let whole = rotary(&x, 0, pairs);
        assert_eq!(rotary(&x.narrow(2, 4, 2), 4, pairs), whole.narrow(2, 4, 2));
        gradcheck(|[x]| rotary(&x, 2, pairs), [&x.select(0, 0).narrow(0, 0, 1)]).unwrap();
    }
    let learned = LearnedPositions::<f64>::new(6, 4, &mut Generator::new(1));
    let tape = Tape::new();
    let x = tape.constant(&x);
    let whole = learned.forward(x).value();
    assert_eq!(learned.forward_at(x.narrow(2, 4, 2), 4).value(), whole.narrow(2, 4, 2));
}

#[test]
fn positions_outside_of_the_table_and_odd_widths_are_errors() {
    let learned = LearnedPositions::<f64>::new(6, 4, &mut Generator::new(1));
    let tape = Tape::new();
    let error = learned.try_forward_at(tape.constant(Tensor::zeros([3, 4])), 4).unwrap_err().to_string();
    assert!(error.contains("start (4) + length (3) exceeds dimension size (6)"), "{error}");
    assert!(error.contains("in the layer LearnedPositions(6, 4)") && error.contains("position_tests.rs"), "{error}");
    let error = try_rotary(&Tensor::<f64>::zeros([2, 3]), 0, RotaryPairs::Halves).unwrap_err().to_string();
    assert!(error.contains("an even d, but got [2, 3]"), "{error}");
    assert_eq!(sinusoidal_positions::<f32>(2, 3).shape(), &[2, 3]);
}

#[test]
fn learned_positions_refuse_inputs_of_another_width() {
    let learned = LearnedPositions::<f64>::new(8, 16, &mut Generator::new(1));
    let tape = Tape::new();
    for shape in [&[2usize, 7, 1][..], &[2, 7, 15], &[2, 7, 0], &[7, 1], &[16], &[1], &[]] {
        let error = learned.try_forward(tape.constant(Tensor::zeros(shape))).unwrap_err().to_string();
        assert!(error.contains("expected an input […, t, 16]"), "{error}");
        assert!(error.contains("in the layer LearnedPositions(8, 16)"), "{error}");
    }
    for shape in [&[7usize, 16][..], &[0, 16], &[0, 7, 16], &[2, 3, 1, 16]] {
        assert_eq!(learned.forward(tape.constant(Tensor::zeros(shape))).value().shape(), shape);
    }
}

#[test]
fn rotary_angles_do_not_depend_on_the_c_library() {
    let x = Tensor::from_fn([4000, 2], |i| f64::from(i[1] == 0));
    let y = rotary(&x, 0, RotaryPairs::Interleaved).to_vec();
    for (position, pair) in y.as_chunks::<2>().0.iter().enumerate() {
        let angle = position as f64;
        assert_eq!(*pair, [libm::cos(angle), libm::sin(angle)], "{position}");
    }
}

#[test]
fn offsets_near_the_largest_number_do_not_overflow() {
    let x = Tensor::<f64>::ones([3, 2]);
    // All three positions round to the same f64.
    let (sin, cos) = (libm::sin(usize::MAX as f64), libm::cos(usize::MAX as f64));
    let expected = Tensor::from([[cos - sin, sin + cos]; 3]);
    for pairs in [RotaryPairs::Interleaved, RotaryPairs::Halves] {
        assert_eq!(rotary(&x, usize::MAX - 1, pairs), expected);
    }
}

#[test]
fn more_positions_than_memory_holds_are_an_error() {
    let x = Tensor::scalar(1.0f64).expand([1usize << 50, 2]);
    assert!(try_rotary(&x, 0, RotaryPairs::Interleaved).is_err());
}
