//! Negative controls: deliberately wrong derivatives, which the check must catch, and edge cases, which it must report.

use std::cell::Cell;

use wengert_tensor::prelude::*;

use super::*;
use crate::{Call, Operation, assert_gradcheck};

/// The operation z = x³, with one deliberate mistake unless it is `Right`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cube {
    Right,
    /// In reverse mode, the derivative is 2x² instead of 3x².
    Vjp,
    /// In reverse mode, the derivative is 3x² + 1e-4, which is a small error.
    Slightly,
    /// In forward mode, the derivative has the wrong sign.
    Jvp,
    /// In reverse mode, the first derivative is right, but it is recorded as independent of x. So the second derivative is wrong.
    DetachedVjp,
    DetachedJvp,
    /// In reverse mode, the rule returns `None`, which means that the gradient is zero.
    Zero,
}

impl<T: Float> Operation<T> for Cube {
    fn name(&self) -> &'static str {
        "cube"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].try_mul(&inputs[0])?.try_mul(&inputs[0])?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let x = call.input(0);
        match self {
            Cube::Vjp => Some(g * x * x * 2.0),
            Cube::Slightly => Some(g * (x * x * 3.0 + 1e-4)),
            Cube::DetachedVjp => Some(g * (x * x * 3.0).detach()),
            Cube::Zero => None,
            _ => Some(g * x * x * 3.0),
        }
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let x = call.input(0);
        match self {
            Cube::Jvp => Some(v * x * x * -3.0),
            Cube::DetachedJvp => Some(v * (x * x * 3.0).detach()),
            _ => Some(v * x * x * 3.0),
        }
    }
}

fn mismatch(failure: Failure) -> Mismatch {
    match failure {
        Failure::Mismatch(mismatch) => *mismatch,
        other => panic!("{other}"),
    }
}

#[test]
fn every_wrong_derivative_is_caught_in_its_mode() {
    let x = Tensor::from([[0.5, -1.25], [2.0, 0.75]]);
    let check = |cube: Cube| gradcheck(|[x]| x.tape().apply(cube, &[x.sin()]) * 2.0, [&x]);
    assert!(check(Cube::Right).is_ok());
    let cases = [
        (Cube::Vjp, Mode::Reverse),
        (Cube::Slightly, Mode::Reverse),
        (Cube::Zero, Mode::Reverse),
        (Cube::Jvp, Mode::Forward),
        (Cube::DetachedVjp, Mode::ReverseOverReverse),
        (Cube::DetachedJvp, Mode::ReverseOverForward),
    ];
    for (cube, mode) in cases {
        let mismatch = mismatch(check(cube).unwrap_err());
        assert_eq!(mismatch.worst.mode, mode, "{cube:?}");
        let culprit = mismatch.culprit.unwrap_or_else(|| panic!("{cube:?} has no culprit"));
        assert_eq!((culprit.operation, culprit.recorded.file()), ("cube", file!()), "{cube:?}");
    }
}

#[test]
fn errors_of_order_2_pass_at_order_1() {
    let x = Tensor::from([0.5, 2.0]);
    assert!(GradCheck::new().order(1).check(f_detached, [&x]).is_ok());
    assert!(gradcheck(f_detached, [&x]).is_err());
    assert!(GradCheck::new().order(1).skip_reverse().check(f_jvp, [&x]).is_err());
    assert!(GradCheck::new().skip_forward().check(f_jvp, [&x]).is_ok());
}

fn f_detached<'t>([x]: [Var<'t, f64>; 1]) -> Var<'t, f64> {
    x.tape().apply(Cube::DetachedVjp, &[x])
}

fn f_jvp<'t>([x]: [Var<'t, f64>; 1]) -> Var<'t, f64> {
    x.tape().apply(Cube::Jvp, &[x])
}

#[test]
fn the_worst_element_is_named() {
    let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    let y = Tensor::from([1.0, 1.0]);
    // This function detaches y[1] in the second row. So on the tape, the derivative of the output [1, 1] with respect to y[1] is 0.
    let mask = Tensor::from([[1.0, 1.0], [1.0, 0.0]]);
    let failure = gradcheck(|[x, y]| x * (y * &mask + y.detach() * &mask.map(|m| 1.0 - m)), [&x, &y]).unwrap_err();
    let Mismatch { worst, failed, compared, culprit } = mismatch(failure);
    assert_eq!((failed, compared, culprit), (1, 4 * 6, None));
    assert_eq!(worst.output, Place::Element { tensor: 0, index: vec![1, 1] });
    assert_eq!(worst.input, Place::Element { tensor: 1, index: vec![1] });
    // The true slope is x[1, 1] = 4.
    assert!((worst.expected - 4.0).abs() <= worst.tolerance && worst.tolerance < 1e-8);
    assert_eq!((worst.mode, worst.got), (Mode::Reverse, 0.0));
}

/// The operation x + bias, with a mistake: the gradient of the bias is not summed over the rows.
struct Unsummed;

impl<T: Float> Operation<T> for Unsummed {
    fn name(&self) -> &'static str {
        "bias"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].try_add(&inputs[1])?)
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        Some(g)
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        Some(v.expand(call.output().shape()))
    }
}

#[test]
fn a_gradient_that_is_not_summed_over_a_broadcast_dimension_has_the_wrong_shape() {
    let (x, bias) = (Tensor::<f64>::ones([2, 3]), Tensor::ones([3]));
    let failure = gradcheck(|[x, b]| x.tape().apply(Unsummed, &[x, b]), [&x, &bias]).unwrap_err();
    let Failure::Refused { mode: Mode::Reverse, error: Error::RuleShape { rule, input, got, expected, .. } } = failure
    else {
        panic!("{failure}");
    };
    assert_eq!((rule, input, *got, *expected), ("vjp", 1, Shape::from([2, 3]), Shape::from([3])));
}

#[test]
fn an_operation_without_a_derivative_is_refused_by_name() {
    let x = Tensor::from([1.5, 2.5]);
    let failure = gradcheck(|[x]| x.floor_divide(2.0), [&x]).unwrap_err();
    let error = Error::NotDifferentiable {
        operation: "floor_divide",
        recorded: std::panic::Location::caller(),
        at: Site::here("gradcheck"),
    };
    let Failure::Refused { mode: Mode::Reverse, error: got } = failure else { panic!("{failure}") };
    assert_eq!(got.sentence(), error.sentence());
    assert!(got.to_string().contains(file!()), "{got}");
}

#[test]
fn an_unused_input_is_reported() {
    let (x, y) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0, 5.0]));
    let report = gradcheck(|[x, _]| x * x, [&x, &y]).unwrap();
    assert_eq!(report.independent_inputs, [1]);
    assert!(report.to_string().contains("does not depend on input 1"), "{report}");
    // The derivative of a step function is zero too, but on the tape the function depends on its input.
    assert_eq!(gradcheck(|[x]| x.floor() + 0.5, [&Tensor::from([1.5, 2.5])]).unwrap().independent_inputs, [0usize; 0]);
    // On the tape, the result of a comparison (zeros and ones) depends on no variable.
    assert_eq!(gradcheck(|[x]| x.gt(0.0), [&x]).unwrap().independent_inputs, [0]);
}

#[test]
fn there_may_be_nothing_to_compare() {
    for shape in [[0, 3], [3, 0]] {
        let x = Tensor::<f64>::zeros(shape);
        let report = gradcheck(|[x]| (x * x).exp(), [&x]).unwrap();
        assert_eq!((report.compared, report.worst.is_none()), (0, true));
        assert!(report.to_string().contains("there are no elements to compare"));
        // The next function has one output and no input elements. In the last function, only one of two inputs has elements.
        assert_eq!(gradcheck(|[x]| x.sum(..), [&x]).unwrap().compared, 0);
        let y = Tensor::from([1.0, 2.0, 3.0]);
        assert!(gradcheck(|[x, y]| x.sum(0).expand([3]) * y, [&Tensor::zeros([0, 3]), &y]).is_ok());
    }
    // The derivative rules run even without elements.
    let x = Tensor::<f64>::zeros([0]);
    assert!(matches!(gradcheck(|[x]| x.floor_divide(2.0), [&x]), Err(Failure::Refused { .. })));
}

#[test]
fn views_and_numbers_are_inputs_like_any_other() {
    let x = Tensor::from([[0.5, 1.5, -1.0], [2.0, 0.25, 1.0]]);
    let transposed = x.t();
    let expanded = Tensor::from([0.5, -1.5]).expand([3, 2]);
    assert_gradcheck!(|x, y| (x * y).tanh() / (x * x + 1.0), &transposed, &expanded);
    assert_gradcheck!(|x, y| x.matmul(&y.t()), &transposed, &expanded);
    assert_gradcheck!(|x| x * x.exp() * x, &Tensor::scalar(0.75));
    assert_gradcheck!(|x| (x * x).sum(..) * x, &x.flip([0, 1]));
}

#[test]
fn kinks_and_edges_are_reported() {
    let kink = gradcheck(|[x]| x.relu(), [&Tensor::from([0.0, 1.0])]).unwrap_err();
    assert!(kink.to_string().contains("0.000000 on one side and 1.000000 on the other"), "{kink}");
    let at_the_edge = gradcheck(|[x]| x.log(), [&Tensor::from([1e-9])]).unwrap_err();
    assert!(matches!(&at_the_edge, Failure::NonFinite { moved: Some((_, step)), .. } if *step < 0.0), "{at_the_edge}");
    assert!(GradCheck::new().step(1e-13).check(|[x]| x.log(), [&Tensor::from([1e-9])]).is_ok());
    let beyond = gradcheck(|[x]| x.log(), [&Tensor::from([1.0, -1.0])]).unwrap_err();
    let Failure::NonFinite { mode, output, value, moved: None } = beyond else { panic!("{beyond}") };
    assert_eq!((mode, output), (Mode::Reverse, Place::Element { tensor: 0, index: vec![1] }));
    assert!(value.is_nan());
    // The formula of this derivative is not finite at 0. The report must not be an error of recording or evaluation.
    let steep = GradCheck::new().check(|[x]| (x * x).sqrt() + x, [&Tensor::from([0.0])]).unwrap_err();
    assert!(!matches!(steep, Failure::Refused { .. }), "{steep}");
}

#[test]
fn a_wrong_derivative_at_a_minimum_is_no_kink() {
    // The function has the values of x², which is smooth. The recorded derivative is 2x - 1.
    let failure = gradcheck(|[x]| x * x - x + x.detach(), [&Tensor::from([0.0])]).unwrap_err();
    let Failure::Mismatch(mismatch) = &failure else { panic!("{failure}") };
    assert!(!mismatch.worst.is_kink && !failure.to_string().contains("no smooth point"), "{failure}");
    // The slope of the absolute value is -1 on the left and 1 on the right.
    let kink = gradcheck(|[x]| x.abs() + x * 20.0 - x.detach() * 20.0, [&Tensor::from([0.0])]).unwrap_err();
    assert!(matches!(&kink, Failure::Mismatch(_)) && kink.to_string().contains("no smooth point"), "{kink}");
}

#[test]
fn errors_hidden_by_rounding_are_undecided() {
    let failure = gradcheck(|[x]| x + 1e12, [&Tensor::from([1.0])]).unwrap_err();
    assert!(matches!(failure, Failure::Undecided(_)), "{failure}");
}

#[test]
fn a_function_that_is_not_repeatable_is_refused() {
    let count = Cell::new(0.0);
    let noisy = |x: f64| {
        count.set(count.get() + 1.0);
        x + count.get()
    };
    let failure = gradcheck(|[x]| x * noisy(1.0), [&Tensor::from([1.0])]).unwrap_err();
    assert_eq!(
        failure,
        Failure::NotRepeatable { output: Place::Element { tensor: 0, index: vec![0] }, first: 2.0, second: 3.0 }
    );
}

#[test]
fn large_functions_are_checked_along_random_directions() {
    let x = Tensor::from_fn([40, 40], |i| ((i[0] * 40 + i[1]) as f64).sin());
    let report = gradcheck(|[x]| x.matmul(&x).tanh(), [&x]).unwrap();
    assert_eq!(report.compared, 6 * 6 * 6);
    let one_wrong = Tensor::from_fn([40, 40], |i| if i == [7, 11] { 0.0 } else { 1.0 });
    let failure = gradcheck(|[x]| x * &one_wrong + (x * &one_wrong.map(|m| 1.0 - m)).detach(), [&x]).unwrap_err();
    assert!(failure.to_string().contains("along random direction"), "{failure}");
}

#[test]
fn single_precision_is_checked_with_the_digits_it_has() {
    let x = Tensor::from([0.5f32, -1.5, 2.0]);
    let report = GradCheck::new().check(|[x]| (x * x).sin() * x, [&x]).unwrap();
    let worst = report.worst.unwrap();
    assert!(worst.tolerance < 1e-2 * 20.0, "{worst:?}");
    assert!(gradcheck(|[x]| x.tape().apply(Cube::Vjp, &[x]), [&x]).is_err());
}

#[test]
fn a_report_reads_as_a_sentence_and_a_table() {
    let x = Tensor::from([[0.5, -1.25]]);
    let failure = GradCheck::new().check(|[x]| x.tape().apply(Cube::Vjp, &[x]), [&x]).unwrap_err().to_string();
    let lines: Vec<&str> = failure.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "gradient check failed: 2 of 4 first derivatives (reverse) disagree with central differences; the worst:",
            "  d output[0, 1] / d input 0[0, 1], reverse",
        ]
    );
    assert!(lines[2].starts_with("    expected            4.687") && lines[2].ends_with("  (central differences)"));
    assert_eq!(lines[3], "    got                 3.125000000000");
    assert!(lines[5].starts_with("    got/expected        0.66666666"), "{failure}");
    assert!(
        lines[6].starts_with("  the derivative of 'cube' is wrong by itself; it was recorded at crates/"),
        "{failure}"
    );
}

#[test]
fn the_macro_panics_with_the_report() {
    let payload = std::panic::catch_unwind(|| {
        assert_gradcheck!(GradCheck::new().order(1), |x| x.detach() * x, &Tensor::from([1.0]));
    })
    .unwrap_err();
    let text = payload.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("gradient check failed: 1 of 1 first derivatives"), "{text}");
    assert!(text.contains("is something detached"), "{text}");
}

#[test]
fn a_check_without_modes_does_not_pass() {
    let failure =
        GradCheck::new().skip_forward().skip_reverse().check(|[x]| x * 2.0, [&Tensor::from([1.0])]).unwrap_err();
    assert!(failure.to_string().contains("both modes are skipped"), "{failure}");
}

#[test]
fn a_function_that_changes_its_shape_is_refused() {
    let x = Tensor::from([2.0, 3.0]);
    // The shape depends on whether the first element is above 2. Central differences move this element to both sides of 2.
    let failure = gradcheck(|[x]| x.narrow(0, 0, if x.value().to_vec()[0] > 2.0 { 2 } else { 1 }), [&x]).unwrap_err();
    assert!(failure.to_string().contains("shape [1] and then of shape [2]"), "{failure}");
    // The shape changes from call to call.
    let count = Cell::new(0);
    let growing = || {
        count.set(count.get() + 1);
        count.get()
    };
    let failure = gradcheck(|[x]| x.narrow(0, 0, if growing() > 1 { 2 } else { 1 }), [&x]).unwrap_err();
    assert!(failure.to_string().contains("shape [1] and then of shape [2]"), "{failure}");
}

#[test]
fn operations_beside_the_path_are_no_culprits() {
    let x = Tensor::from([0.5, 2.0]);
    let failure = gradcheck(
        |[x]| {
            // No derivative passes through these results.
            let first = x.detach().floor_divide(2.0);
            let second = x.tape().constant(Tensor::from([3.0, 4.0])).floor_divide(2.0);
            x.tape().apply(Cube::Vjp, &[x]) + first + second
        },
        [&x],
    );
    assert_eq!(mismatch(failure.unwrap_err()).culprit.unwrap().operation, "cube");
    // An operation with a wrong derivative is no culprit if no derivative passes through it. Here the mistake is `detach`.
    let failure = gradcheck(|[x]| x * x.detach() + x.tape().apply(Cube::Vjp, &[x.detach()]), [&x]).unwrap_err();
    assert_eq!(mismatch(failure).culprit, None);
    let failure = gradcheck(
        |[x]| {
            let unread = x.floor_divide(2.0);
            assert_eq!(unread.shape(), [2]);
            x * x.detach()
        },
        [&x],
    );
    assert_eq!(mismatch(failure.unwrap_err()).culprit, None);
}

#[test]
fn operations_with_another_derivative_than_their_values_are_no_culprits() {
    let x = Tensor::from([0.5, 2.0]);
    let failure = gradcheck(|[x]| x.tape().apply(Cube::Vjp, &[x.softmax(0)]), [&x]).unwrap_err();
    assert_eq!(mismatch(failure).culprit.unwrap().operation, "cube");
    let at = Site::here("straight");
    let failure = gradcheck(|[x]| x.with_value(&x.square().floor_divide(2.0), at).unwrap(), [&x]).unwrap_err();
    assert!(failure.to_string().contains("recorded with another derivative (`with_derivative`"), "{failure}");
}

#[test]
fn a_kink_with_equal_derivatives_is_undecided() {
    for check in [GradCheck::new().order(1), GradCheck::new(), GradCheck::new().order(1).skip_reverse()] {
        let failure = check.check(|[x]| x.abs(), [&Tensor::from([0.0, 1.0])]).unwrap_err();
        let Failure::Undecided(derivative) = &failure else { panic!("{failure}") };
        assert!(derivative.is_kink && derivative.expected == derivative.got, "{failure}");
        assert!(failure.to_string().contains("-1.000000 on one side and 1.000000 on the other"), "{failure}");
    }
    // The central differences of a constant function and of a linear function are exact. A wide tolerance does not matter for a constant
    // function.
    assert!(gradcheck(|[x]| x.floor() + 1e12, [&Tensor::from([1.5])]).is_ok());
    assert!(gradcheck(|[x]| x * 0.0 + 1e12, [&Tensor::from([1.5])]).is_ok());
    assert!(gradcheck(|[x]| x * 3.0, [&Tensor::from([0.0, 1.5])]).is_ok());
    // A derivative of 0 at a smooth point does not count as a kink.
    assert!(gradcheck(|[x]| x.square(), [&Tensor::from([0.0])]).is_ok());
}

#[test]
fn one_tensor_an_array_and_a_list_are_checked_alike() {
    let (x, y) = (Tensor::from([0.5, -1.0]), Tensor::from([[1.5], [0.25], [2.0]]));
    let check = GradCheck::new().order(1);
    assert_eq!(check.check(|x| x.exp(), &x), check.check(|[x]| x.exp(), [&x]));
    let expected = check.check(|[x, y]| x * y, [&x, &y]);
    assert_eq!(expected.as_ref().unwrap().compared, 2 * 6 * 5);
    let list = vec![x.clone(), y.clone()];
    assert_eq!(check.check(|list| list[0] * list[1], &list), expected);
    assert_eq!(check.check(|list| list[0] * list[1], &list[..]), expected);
    assert_eq!(check.check(|list| list[0] * list[1], vec![&x, &y]), expected);
    let wrong = check.check(|x| x.tape().apply(Cube::Vjp, &[x]), &x);
    assert!(matches!(wrong, Err(Failure::Mismatch(_))), "{wrong:?}");
}
