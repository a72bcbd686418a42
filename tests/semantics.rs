//! The statements of the broadcasting notes on eager tensors: shapes, values and exact messages.
//!
//! The order is the order of the notes: the general rule, in place, compatibility, and uses (images and tables).

use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use wengert::compat::{self, Condition, Rules, Warning};
use wengert::prelude::*;
use wengert::tensor::{Error, ops};

const BROADCASTABLE: &str = "self and other do not have the same shape, but are broadcastable, and have the same \
                             number of elements.\nChanging behavior in a backwards incompatible manner to broadcasting \
                             rather than viewing as 1-dimensional.";
const FALLING_BACK: &str = "self and other not broadcastable, but have the same number of elements.  \
                            Falling back to deprecated pointwise behavior.";

fn ones(shape: &[usize]) -> Tensor<f64> {
    Tensor::ones(shape)
}

/// Returns `0, 1, 2, …` in row-major order, so all elements differ.
fn counting(shape: &[usize]) -> Tensor<f64> {
    let count = shape.iter().product();
    Tensor::from_vec((0..count).map(|value: usize| value as f64).collect(), shape)
}

/// Checks a sum element by element. Each element of the sum reads the operands at its own index, counted from the last
/// dimension, or at 0 if the operand has size 1.
#[track_caller]
fn assert_adds(left: &[usize], right: &[usize], expected: &[usize]) {
    let (x, y) = (counting(left), counting(right).mul(100.0));
    let sum = x.add(&y);
    assert_eq!(sum.shape(), expected, "{left:?} {right:?}");
    let element = |tensor: &Tensor<f64>, index: &[usize]| {
        let added_rank = index.len() - tensor.rank();
        let operand_index: Vec<usize> = index[added_rank..]
            .iter()
            .zip(tensor.shape().iter())
            .map(|(&i, &size)| if size == 1 { 0 } else { i })
            .collect();
        tensor.get(&operand_index).unwrap()
    };
    assert_eq!(sum, Tensor::from_fn(expected, |index| element(&x, index) + element(&y, index)), "{left:?} {right:?}");
}

#[track_caller]
fn assert_refuses(left: &[usize], right: &[usize], sentence: &str) {
    let error = ones(left).try_add(ones(right)).unwrap_err();
    assert!(matches!(error, Error::Broadcast(..)), "{error}");
    assert_eq!(error.sentence(), sentence);
}

mod general_rule {
    use super::*;

    #[test]
    fn same_shapes_always_broadcast() {
        assert_adds(&[5, 7, 3], &[5, 7, 3], &[5, 7, 3]);
    }

    #[test]
    fn size_zero_does_not_fit_a_larger_size() {
        assert_refuses(
            &[0],
            &[2, 2],
            "The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 1",
        );
    }

    #[test]
    fn a_tensor_without_a_dimension_is_a_number() {
        assert_adds(&[], &[2, 2], &[2, 2]);
        assert_adds(&[2, 2], &[], &[2, 2]);
        assert_adds(&[], &[], &[]);
    }

    #[test]
    fn the_strict_rule_requires_one_dimension() {
        let _rules = Rules::strict().scope();
        for (left, right, name) in [(&[][..], &[2, 2][..], 'a'), (&[2, 2], &[], 'b'), (&[], &[], 'a')] {
            let error = ones(left).try_add(ones(right)).unwrap_err();
            assert_eq!(
                error.sentence(),
                format!("tensor {name} has no dimension, and under the strict rule each tensor has at least one")
            );
        }
        let mut x = ones(&[2, 2]);
        assert!(matches!(x.try_add_(ones(&[])), Err(Error::ZeroDim { operand: 1, .. })));
        let mask = Tensor::<bool>::ones([2, 2]);
        assert!(matches!(ops::try_where_(&mask, &x, ones(&[])), Err(Error::ZeroDim { operand: 2, .. })));
        // The rule for tensors without dimensions does not apply to a plain number.
        assert_eq!(x.add(1.0), Tensor::full([2, 2], 2.0));
        assert_eq!(ones(&[]).add(1.0).item(), 2.0);
        assert_adds(&[1], &[2, 2], &[2, 2]);
    }

    #[test]
    fn sizes_are_compared_from_the_last_dimension() {
        assert_adds(&[5, 3, 4, 1], &[3, 1, 1], &[5, 3, 4, 1]);
    }

    #[test]
    fn both_may_be_stretched() {
        assert_adds(&[5, 1, 4, 1], &[3, 1, 1], &[5, 3, 4, 1]);
        assert_adds(&[3, 1, 1], &[5, 1, 4, 1], &[5, 3, 4, 1]);
    }

    #[test]
    fn missing_dimensions_are_added_in_front() {
        assert_adds(&[1], &[3, 1, 7], &[3, 1, 7]);
    }

    #[test]
    fn sizes_that_differ_and_are_not_1_are_refused() {
        assert_refuses(
            &[5, 2, 4, 1],
            &[3, 1, 1],
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1",
        );
    }

    #[test]
    fn plain_methods_panic_with_the_whole_diagnostic_at_the_callers_line() {
        let (x, y) = (ones(&[5, 2, 4, 1]), ones(&[3, 1, 1]));
        let line = line!() + 1;
        let panic = catch_unwind(AssertUnwindSafe(|| x.add(&y))).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        let (sentence, rest) = text.split_once("\n  --> ").unwrap();
        assert_eq!(
            sentence,
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
        );
        let (at, shapes) = rest.split_once(", in add\n").unwrap();
        assert!(at.starts_with(&format!("{}:{line}:", file!())), "{at}");
        assert_eq!(shapes, "   a: [5, 2, 4, 1]\n   b:    [3, 1, 1]\n          ^ 2 against 3");
    }

    #[test]
    fn expansion_copies_nothing() {
        let bias = counting(&[3, 1, 1]);
        let seen = bias.expand([5, 3, 4, 1]);
        assert_eq!(seen.shape(), &[5, 3, 4, 1]);
        assert_eq!(seen.strides(), [0, 1, 0, 1]);
        assert!(seen.shares_storage(&bias));

        let seen = ops::broadcast_tensors(&[counting(&[5, 1, 4, 1]), bias.clone()]);
        assert_eq!(seen[0].strides(), [4, 0, 1, 1]);
        assert_eq!(seen[1].strides(), [0, 1, 0, 1]);
        assert!(seen[1].shares_storage(&bias));
    }

    #[test]
    fn an_impossible_expansion_is_refused() {
        let error = ones(&[2, 3]).try_expand([2, 4]).unwrap_err();
        assert_eq!(
            error.sentence(),
            "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  \
             Target sizes: [2, 4].  Tensor sizes: [2, 3]"
        );
    }
}

mod in_place {
    use super::*;

    #[test]
    fn the_right_side_is_expanded_to_the_left() {
        let mut x = counting(&[5, 3, 4, 1]);
        x.add_(Tensor::from([100.0, 200.0, 300.0]).reshape([3, 1, 1]));
        let expected =
            Tensor::from_fn([5, 3, 4, 1], |i| (i[0] * 12 + i[1] * 4 + i[2]) as f64 + 100.0 * (i[1] + 1) as f64);
        assert_eq!(x, expected);
    }

    #[test]
    fn the_left_side_keeps_its_shape() {
        let mut x = counting(&[1, 3, 1]);
        let error = x.try_add_(ones(&[3, 1, 7])).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [1, 3, 1] doesn't match the broadcast shape [3, 3, 7]");
        assert_eq!(
            error.source().unwrap().to_string(),
            "The expanded size of the tensor (1) must match the existing size (7) at non-singleton dimension 2."
        );
        assert_eq!(x, counting(&[1, 3, 1]));
    }

    #[test]
    fn shapes_that_do_not_fit_give_the_message_of_the_rule() {
        let error = ones(&[5, 2, 4, 1]).try_add_(ones(&[3, 1, 1])).unwrap_err();
        assert_eq!(
            error.sentence(),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
        );
        assert!(error.source().is_none());
    }

    #[test]
    fn an_expanded_left_side_is_refused() {
        let mut x = ones(&[1, 3]).expand([2, 3]);
        assert_eq!(
            x.try_add_(1.0).unwrap_err().sentence(),
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
             Please clone() the tensor before performing the operation."
        );
    }
}

mod compatibility {
    use super::*;

    /// Returns the texts of the warnings so far.
    fn texts(warnings: &compat::Collector) -> Vec<String> {
        warnings.warnings().iter().map(Warning::to_string).collect()
    }

    #[test]
    fn a_column_and_a_row_of_numbers_give_a_matrix_and_a_warning() {
        for condition in [Condition::Suspicious, Condition::Backward] {
            let _rules = Rules::default().when(condition).scope();
            let warnings = compat::collect();
            let line = line!() + 1;
            let sum = ones(&[4, 1]).add(counting(&[4]));
            assert_eq!(sum, Tensor::from_fn([4, 4], |index| 1.0 + index[1] as f64));
            assert_eq!(texts(&warnings), [format!("{}:{line}: UserWarning: {BROADCASTABLE}", file!())]);
        }
    }

    #[test]
    fn operators_name_the_callers_line_too() {
        let _rules = Rules::default().scope();
        let warnings = compat::collect();
        let line = line!() + 1;
        let sum = ones(&[4, 1]) + ones(&[4]);
        assert_eq!(sum, Tensor::full([4, 4], 2.0));
        assert_eq!(texts(&warnings), [format!("{}:{line}: UserWarning: {BROADCASTABLE}", file!())]);
    }

    #[test]
    fn a_line_warns_once() {
        let _rules = Rules::default().scope();
        let warnings = compat::collect();
        for _ in 0..3 {
            let _ = ones(&[4, 1]).add(ones(&[4]));
        }
        let _ = ones(&[4, 1]).add(ones(&[4]));
        assert_eq!(warnings.warnings().len(), 2);
    }

    #[test]
    fn only_the_trap_warns_by_default() {
        let (column, row) = (ones(&[4, 1]), ones(&[1, 4]));
        let warnings = compat::collect();
        {
            let _rules = Rules::default().scope();
            let _ = column.add(&row);
            let _ = row.add(ones(&[4]));
            assert_eq!(warnings.warnings(), []);
        }
        {
            let _rules = Rules::default().when(Condition::Backward).scope();
            let _ = column.add(&row);
            let _ = row.add(ones(&[4]));
            assert_eq!(warnings.warnings().len(), 2);
        }
    }

    #[test]
    fn off_equals_todays_pytorch() {
        let _rules = Rules::pytorch().scope();
        let warnings = compat::collect();
        assert_eq!(ones(&[4, 1]).add(ones(&[4])), Tensor::full([4, 4], 2.0));
        assert_refuses(
            &[4, 2],
            &[8],
            "The size of tensor a (2) must match the size of tensor b (8) at non-singleton dimension 1",
        );
        assert_eq!(warnings.warnings(), []);
    }

    #[test]
    fn deny_makes_the_warning_an_error() {
        let _rules = Rules::default().deny().scope();
        let line = line!() + 1;
        let error = ones(&[4, 1]).try_add(ones(&[4])).unwrap_err();
        assert_eq!(error.sentence(), BROADCASTABLE);
        assert_eq!((error.site().location.file(), error.site().location.line()), (file!(), line));
        assert!(error.to_string().ends_with("to mean [4, 4]: other.expand([4, 4])"), "{error}");
        // The changes that the hint proposes are accepted.
        assert_eq!(ones(&[4, 1]).add(ones(&[4]).unsqueeze(1)), Tensor::full([4, 1], 2.0));
        assert_eq!(ones(&[4, 1]).add(ones(&[4]).expand([4, 4])), Tensor::full([4, 4], 2.0));
    }

    #[test]
    fn without_the_legacy_mode_equal_element_counts_are_refused() {
        let _rules = Rules::default().scope();
        assert!(matches!(ones(&[4, 2]).try_add(ones(&[8])), Err(Error::Broadcast(..))));
    }

    #[test]
    fn the_legacy_mode_views_both_as_one_dimensional() {
        // The fallback to one dimension warns even if broadcasting does not warn.
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let warnings = compat::collect();
        let line = line!() + 1;
        let sum = counting(&[4, 2]).add(counting(&[8]));
        assert_eq!(sum, counting(&[4, 2]).mul(2.0));
        let other_way = counting(&[8]).add(counting(&[4, 2]));
        assert_eq!(other_way, counting(&[8]).mul(2.0));
        assert_eq!(texts(&warnings)[0], format!("{}:{line}: UserWarning: {FALLING_BACK}", file!()));
        assert_eq!(warnings.warnings().len(), 2);
        // Operands whose shapes broadcast are broadcast. Operands with different numbers of elements are refused.
        assert_eq!(ones(&[4, 1]).add(ones(&[4])), Tensor::full([4, 4], 2.0));
        assert!(ones(&[4, 2]).try_add(ones(&[7])).is_err());
    }

    #[test]
    fn the_legacy_mode_reads_any_strides_in_row_major_order() {
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let _warnings = compat::collect();
        let transposed = counting(&[2, 4]).t();
        assert_eq!(transposed.sub(counting(&[8])).to_vec(), [0.0, 3.0, -1.0, 2.0, -2.0, 1.0, -3.0, 0.0]);
        assert_eq!(counting(&[8]).sub(&transposed).to_vec(), [0.0, -3.0, 1.0, -2.0, 2.0, -1.0, 3.0, 0.0]);
    }

    #[test]
    fn the_legacy_mode_in_place() {
        let mut x = counting(&[4, 1]);
        assert!(matches!(x.try_add_(counting(&[4])), Err(Error::InPlaceShape { .. })));
        let _rules = Rules::pytorch().legacy_pointwise(true).scope();
        let warnings = compat::collect();
        x.add_(counting(&[4]));
        assert_eq!(x, counting(&[4, 1]).mul(2.0));
        let expected = "other is not broadcastable to self, but they have the same number of elements.  \
                        Falling back to deprecated pointwise behavior.";
        assert_eq!(warnings.warnings()[0].message(), expected);
    }

    /// A program that the next test runs in its own process.
    #[test]
    #[ignore = "wants an environment of its own"]
    fn child_of_the_environment() {
        println!("rules {:?}", Rules::current());
        let result = ones(&[4, 1]).try_add(ones(&[4])).map(|sum| sum.shape().clone());
        println!("result {:?}", result.map_err(|error| error.sentence()));
    }

    #[test]
    fn the_environment_variable_sets_the_process() {
        let run = |value: &str| {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "semantics::compatibility::child_of_the_environment", "--ignored", "--nocapture"])
                .env("WENGERT_BROADCAST_WARNING", value)
                .output()
                .unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (text(output.stdout), text(output.stderr))
        };
        let warned = format!("UserWarning: {BROADCASTABLE}");

        let (stdout, stderr) = run("off");
        assert!(stdout.contains("result Ok([4, 4])") && !stderr.contains("UserWarning"), "{stdout}{stderr}");

        let (stdout, stderr) = run("");
        assert!(stdout.contains("result Ok([4, 4])") && stderr.contains(&warned), "{stdout}{stderr}");

        let (stdout, stderr) = run("warn:backward");
        assert!(stdout.contains("when: Backward") && stderr.contains(&warned), "{stdout}{stderr}");

        let (stdout, stderr) = run("deny");
        assert!(stdout.contains("result Err(\"self and other do not have") && stderr.is_empty(), "{stdout}{stderr}");

        let (stdout, stderr) = run("loud");
        assert!(stdout.contains("result Ok([4, 4])") && stderr.contains(&warned), "{stdout}{stderr}");
        let complaint = "UserWarning: WENGERT_BROADCAST_WARNING=loud is ignored: it must be off, warn or deny, alone \
                         or followed by :backward or :suspicious.";
        assert_eq!(stderr.matches(complaint).count(), 1, "{stderr}");
    }
}

mod images_and_tables {
    use super::*;

    #[test]
    fn a_bias_per_channel_needs_trailing_dimensions() {
        assert_refuses(
            &[4, 32, 14, 14],
            &[32],
            "The size of tensor a (14) must match the size of tensor b (32) at non-singleton dimension 3",
        );
        let (maps, bias) = (counting(&[4, 32, 14, 14]), counting(&[32]));
        let hinted = maps.try_add(&bias).unwrap_err().to_string();
        assert!(hinted.contains("hint: b.reshape([32, 1, 1]), or unsqueeze(-1) twice"), "{hinted}");
        let sum = maps.add(bias.unsqueeze(-1).unsqueeze(-1));
        assert_eq!(sum.get(&[3, 31, 13, 13]), Some(25087.0 + 31.0));
        assert_adds(&[4, 32, 14, 14], &[32, 1, 1], &[4, 32, 14, 14]);
        assert_adds(&[4, 32, 14, 14], &[1, 32, 1, 1], &[4, 32, 14, 14]);
    }

    #[test]
    fn one_image_for_every_channel_of_every_sample() {
        assert_adds(&[4, 32, 14, 14], &[14, 14], &[4, 32, 14, 14]);
        assert_adds(&[4, 3, 32, 32], &[32, 32], &[4, 3, 32, 32]);
    }

    #[test]
    fn half_a_batch_is_not_repeated() {
        assert_refuses(
            &[4, 32, 14, 14],
            &[2, 32, 14, 14],
            "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 0",
        );
        assert_adds(&[4, 32, 14, 14], &[32, 14, 14], &[4, 32, 14, 14]);
    }

    #[test]
    fn points_for_all_students() {
        let scores = counting(&[8, 32, 8]);
        assert_eq!(scores.add(Tensor::from([5.0])), scores.add(5.0));
    }

    #[test]
    fn points_in_one_course_for_all_students() {
        let scores = counting(&[8, 32, 8]);
        let raised = scores.add(Tensor::from([0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
        let points = raised.sub(&scores);
        assert_eq!(points, Tensor::from_fn([8, 32, 8], |index| if index[2] == 2 { 5.0 } else { 0.0 }));
    }

    #[test]
    fn points_for_one_student_over_all_courses() {
        let scores = counting(&[8, 32, 8]);
        let extra = Tensor::from_fn([32, 1], |index| if index[0] == 7 { 5.0 } else { 0.0 });
        let points = scores.add(&extra).sub(&scores);
        assert_eq!(points, Tensor::from_fn([8, 32, 8], |index| if index[1] == 7 { 5.0 } else { 0.0 }));
    }

    #[test]
    fn an_amount_per_colour_and_an_amount_everywhere() {
        assert_adds(&[4, 3, 32, 32], &[3, 1, 1], &[4, 3, 32, 32]);
        assert_adds(&[4, 3, 32, 32], &[1, 1, 1, 1], &[4, 3, 32, 32]);
        assert_adds(&[4, 3, 32, 32], &[1], &[4, 3, 32, 32]);
    }
}
