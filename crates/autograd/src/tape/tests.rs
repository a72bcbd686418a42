//! Tests of recording, and of values and derivatives of recorded variables.

use wengert_tensor::prelude::*;

use crate::{BlendWeight, Buffer, Error, Parameter, Tape, Var};

#[test]
fn a_broadcast_is_recorded_as_an_expansion() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2, 3]));
    let b = tape.var(&Tensor::from([1.0, 2.0, 3.0]));
    let listing = {
        let _ = x + b;
        tape.graph().to_string()
    };
    let names: Vec<&str> = listing.lines().map(|line| line.split(['=', '(']).nth(1).unwrap().trim()).collect();
    assert_eq!(names, ["variable", "variable", "expand", "add"]);
}

#[test]
fn the_gradient_of_a_broadcast_operand_has_its_shape() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]));
    let column = tape.var(&Tensor::from([[10.0], [20.0]]));
    let [dx, dc] = (x * column).sum(..).grad([x, column]);
    assert_eq!(dx.value(), Tensor::from([[10.0, 10.0, 10.0], [20.0, 20.0, 20.0]]));
    assert_eq!(dc.value(), Tensor::from([[6.0], [15.0]]));
}

#[test]
fn an_operand_used_twice_gets_both_gradients() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([3.0]));
    let [dx] = (x * x * x).sum(..).grad([x]);
    let [ddx] = dx.sum(..).grad([x]);
    let [dddx] = ddx.sum(..).grad([x]);
    assert_eq!((dx.item(), ddx.item(), dddx.item()), (27.0, 18.0, 6.0));
}

#[test]
fn forward_mode_agrees_with_reverse() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([0.5, -0.25]));
    let v = tape.constant(Tensor::from([1.0, 2.0]));
    let y = (x.tanh() * x).sum(..);
    let [dx] = y.grad([x]);
    let forward = y.jvp(&[(x, v)]).item();
    assert!((forward - (dx * v).sum(..).item()).abs() < 1e-15);
}

#[test]
fn zero_derivatives_reach_an_input_and_unrelated_inputs_are_not_reached() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.var(&Tensor::from([1.5])), tape.var(&Tensor::from([2.0])));
    let z = (x.floor() + 1.0).sum(..);
    assert_eq!(z.grad([x])[0].value().to_vec(), [0.0]);
    assert!(matches!(z.try_grad([y]), Err(Error::Unreached { .. })));
    assert!(matches!(x.detach().sum(..).try_grad([x]), Err(Error::Unreached { .. })));
}

#[test]
fn two_tapes_do_not_mix() {
    let (first, second) = (Tape::<f64>::new(), Tape::<f64>::new());
    let (x, y) = (first.var(&Tensor::ones([2])), second.var(&Tensor::ones([2])));
    let error = x.try_add(y).unwrap_err();
    assert!(matches!(error, Error::OtherTape { .. }), "{error}");
    assert!(error.to_string().contains("tests.rs"), "{error}");
}

#[test]
fn gradients_outlive_the_tape_and_are_found_by_parameter() {
    let (used, unused) = (Parameter::new(Tensor::from([2.0])), Parameter::new(Tensor::from([1.0])));
    let gradients = {
        let tape = Tape::<f64>::new();
        let (w, _) = (tape.parameter(&used), tape.parameter(&unused));
        assert_eq!(tape.parameter(&used).index, w.index);
        (w * w).sum(..).backward()
    };
    assert_eq!(gradients.of(&used).to_vec(), [4.0]);
    assert!(gradients.get(&unused).is_none());
    assert!(gradients.try_of(&unused).unwrap_err().to_string().contains("the parameter of shape [1] made at"));
    assert_eq!(gradients.of_or_zeros(&unused).to_vec(), [0.0]);
    let hint = gradients.try_of(&unused).unwrap_err().to_string();
    assert!(hint.contains("ask for `of_or_zeros`"), "{hint}");
}

#[test]
fn a_gradient_of_several_numbers_needs_a_seed() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2]));
    let error = x.exp().try_backward().unwrap_err();
    assert_eq!(error.sentence(), "grad can be implicitly created only for scalar outputs");
}

#[test]
fn an_operation_without_a_derivative_names_its_line() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2]));
    let y = x.floor_divide(2.0).sum(..);
    let error = y.try_grad([x]).unwrap_err();
    assert!(matches!(error, Error::NotDifferentiable { operation: "floor_divide", .. }), "{error}");
}

#[test]
fn neither_mode_passes_through_operations_without_a_derivative() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2]));
    // The quotient itself has the derivative zero, but `floor_divide` marks its result as not differentiable. So a derivative is an error.
    let error = tape.try_jvp(&[x.floor_divide(2.0)], &[(x, x)]).unwrap_err();
    assert!(matches!(error, Error::NotDifferentiable { operation: "floor_divide", .. }), "{error}");
    // A node without a derivative is no error if the output does not depend on it.
    let _ = x.floor_divide(2.0);
    assert_eq!(tape.jvp(&[x * 3.0], &[(x, x)])[0].value().to_vec(), [3.0, 3.0]);
}

#[test]
fn masks_of_masks_are_masks() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.var(&Tensor::from([0.0, 0.0, 2.0, f64::NAN])), tape.var(&Tensor::from([0.0, -1.0, 0.0, 3.0])));
    assert_eq!(x.logical_and(y).value().to_vec(), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(x.logical_or(y).value().to_vec(), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(x.logical_xor(y).value().to_vec(), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(x.logical_not().value().to_vec(), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn derivatives_of_numbers_are_taken_under_strict_rules_too() {
    let _rules = wengert_tensor::compat::Rules::strict().scope();
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([2.0, 3.0]));
    let y = (2.0 * x.square().sum(..).sqrt()).exp();
    let expected = 2.0 * 2.0 / 13f64.sqrt() * (2.0 * 13f64.sqrt()).exp();
    let [dx] = y.grad([x]);
    assert!((dx.value().to_vec()[0] / expected - 1.0).abs() < 1e-14);
    assert_eq!(y.jvp(&[(x, tape.constant(Tensor::from([1.0, 0.0])))]).item(), dx.value().to_vec()[0]);
    // Tensors without dimensions were allowed only while the derivative was recorded.
    assert!(y.try_mul(y).is_err());
}

/// The operation x². Its derivative rule takes a derivative itself.
struct Nested;

impl crate::Operation<f64> for Nested {
    fn name(&self) -> &'static str {
        "nested"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
        Ok(inputs[0].try_square()?)
    }

    fn vjp<'t>(
        &self,
        call: &crate::Call<'t, f64>,
        _input: usize,
        g: crate::Var<'t, f64>,
    ) -> Option<crate::Var<'t, f64>> {
        let x = call.input(0);
        let inner = x.tape().vjp(&[(x.square(), g)], &[x])[0];
        inner.map(|inner| inner * 1.0)
    }

    fn jvp<'t>(
        &self,
        call: &crate::Call<'t, f64>,
        _input: usize,
        v: crate::Var<'t, f64>,
    ) -> Option<crate::Var<'t, f64>> {
        Some(call.input(0) * v * 2.0)
    }
}

#[test]
fn a_rule_may_take_derivatives() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([1.5, -2.0]));
    let line = line!() + 1;
    let y = tape.apply(Nested, &[x * 1.0]).sum(..);
    let before = tape.len();
    let [dx] = y.grad([x]);
    assert_eq!(dx.value().to_vec(), [3.0, -4.0]);
    // All nodes of the operation's derivative have the operation's line of code. This includes the nodes that were recorded after the rule
    // took its own derivative.
    let lines: Vec<String> = tape.graph().to_string().lines().skip(before + 2).map(str::to_owned).collect();
    assert!(lines.len() > 5 && lines.iter().all(|row| row.ends_with(&format!("tests.rs:{line}"))), "{lines:#?}");
    crate::assert_gradcheck!(|x| x.tape().apply(Nested, &[x]), &Tensor::from([0.5, 1.5]));
}

#[test]
fn several_outputs_share_their_inputs() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([2.0, 3.0]));
    let (y, z) = (x * x, x.sum(..));
    let (g, h) = (tape.constant(Tensor::from([1.0, 10.0])), tape.constant(Tensor::scalar(0.5)));
    let [Some(dx)] = tape.vjp(&[(y, g), (z, h), (y, g)], &[x])[..] else { unreachable!() };
    // The pair (y, g) occurs twice, so the gradient is 2 · 2x g + h.
    assert_eq!(dx.value().to_vec(), [8.5, 120.5]);
    // The inputs are the output itself, a leaf, and a node that was recorded later.
    let later = y.exp();
    let [Some(dy), Some(dx), None] = tape.vjp(&[(y, g)], &[y, x, later])[..] else { panic!() };
    assert_eq!((dy.value().to_vec(), dx.value().to_vec()), (vec![1.0, 10.0], vec![4.0, 60.0]));
    assert!(tape.vjp(&[], &[x])[0].is_none());
    assert!(tape.vjp(&[(y, g)], &[]).is_empty());
}

#[test]
fn the_gradient_of_an_intermediate_result_is_not_kept_and_says_so() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([2.0, 3.0]));
    let y = x * x;
    let error = y.sum(..).backward().try_of(y).unwrap_err();
    assert!(error.to_string().contains("`grad` returns gradients of intermediate results"), "{error}");
}

#[test]
fn a_product_with_zeros_has_an_exact_gradient() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([2.0, 0.0, 5.0]));
    let [dx] = x.prod(..).grad([x]);
    assert_eq!(dx.value().to_vec(), [0.0, 10.0, 0.0]);
}

#[test]
fn a_long_tape_needs_no_stack() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([1.0]));
    let mut y = x;
    for _ in 0..200_000 {
        y += 0.0;
    }
    assert_eq!(y.sum(..).grad([x])[0].item(), 1.0);
}

#[test]
fn in_place_on_a_variable_keeps_its_shape() {
    let tape = Tape::<f64>::new();
    let mut x = tape.var(&Tensor::zeros([5, 3, 4, 1]));
    x += tape.var(&Tensor::ones([3, 1, 1]));
    assert_eq!(x.shape(), [5, 3, 4, 1]);
    let mut y = tape.var(&Tensor::zeros([1, 3, 1]));
    let error = y.try_add_(tape.var(&Tensor::ones([3, 1, 7]))).unwrap_err();
    assert_eq!(error.sentence(), "output with shape [1, 3, 1] doesn't match the broadcast shape [3, 3, 7]");
}

#[test]
fn a_changed_parameter_is_an_error() {
    let mut w = Parameter::new(Tensor::from([2.0]));
    let tape = Tape::new();
    let first = tape.parameter(&w);
    assert_eq!(tape.parameter(&w).index, first.index);
    w.value += 1.0;
    let line = line!() + 1;
    let error = tape.try_parameter(&w).unwrap_err();
    let Error::ParameterChanged { at, .. } = &error else { panic!("{error}") };
    assert_eq!(at.location.line(), line);
}

#[test]
fn a_loss_of_constants_is_an_error() {
    let tape = Tape::<f64>::new();
    let error = tape.constant(Tensor::from([2.0])).sum(..).try_backward().unwrap_err();
    assert!(matches!(error, Error::NothingReached { .. }), "{error}");
}

#[test]
fn a_variable_of_another_tape_is_an_error_that_says_so() {
    let (tape, other) = (Tape::<f64>::new(), Tape::new());
    let gradients = tape.var(&Tensor::from([2.0])).sum(..).backward();
    let error = gradients.try_of(other.var(&Tensor::from([2.0]))).unwrap_err();
    assert!(matches!(error, Error::OtherTapesGradients { .. }), "{error}");
}

#[test]
fn norms_and_clipping_are_over_all_gradients() {
    let (a, b) = (Parameter::new(Tensor::from([3.0])), Parameter::new(Tensor::from([4.0, 0.0])));
    let tape = Tape::<f64>::new();
    let loss = (tape.parameter(&a).square().sum(..) + tape.parameter(&b).square().sum(..)) * 0.5;
    let mut gradients = loss.backward();
    assert_eq!(gradients.norm(), 5.0);
    assert_eq!(gradients.clip_norm(10.0), 5.0);
    assert_eq!(gradients.of(&a).to_vec(), [3.0]);
    gradients.scale(2.0);
    gradients.clip_value(7.0);
    assert_eq!((gradients.of(&a).to_vec(), gradients.of(&b).to_vec()), (vec![6.0], vec![7.0, 0.0]));
    assert!(gradients.is_finite());
    gradients.scale(f64::NAN);
    assert!(!gradients.is_finite());
    assert!(gradients.clip_norm(1.0).is_nan());
}

#[test]
fn bound_values_and_statistics_must_fit_in_shape_and_tape() {
    let (w, mean) = (Parameter::new(Tensor::from([1.0, 2.0])), Buffer::new(Tensor::from([0.0, 0.0])));
    let (tape, other) = (Tape::<f64>::training(&mut Generator::new(0)), Tape::new());
    let (scalar, foreign) = (tape.constant(Tensor::scalar(1.0)), other.constant(Tensor::from([1.0, 1.0])));
    assert!(matches!(tape.try_bind(&w, scalar), Err(Error::Refused { .. })));
    assert!(matches!(tape.try_bind(&w, foreign), Err(Error::OtherTape { .. })));
    assert!(matches!(tape.try_blend(&mean, scalar, BlendWeight::Fixed(0.1)), Err(Error::Refused { .. })));
    assert!(matches!(tape.try_blend(&mean, foreign, BlendWeight::Fixed(0.1)), Err(Error::OtherTape { .. })));
    assert!(tape.changes().is_empty());
}

/// Checks that a parameter counts as changed if its tensor is replaced by another view of the same memory.
#[test]
fn a_parameter_with_another_layout_is_an_error() {
    let value = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    for view in [value.t(), value.reshape([4]), value.narrow(0, 0, 1)] {
        let mut w = Parameter::new(value.clone());
        let tape = Tape::new();
        tape.parameter(&w);
        w.value = view;
        let error = tape.try_parameter(&w).unwrap_err();
        assert!(matches!(error, Error::ParameterChanged { .. }), "{error}");
    }
}

/// Checks that a result on another tape is refused, even if the right tape has a node with the same index.
#[test]
fn results_of_another_tape_are_refused() {
    use crate::gradcheck::Failure;
    use crate::transforms::{try_infer, try_infer_in_batches};

    let leaked: &'static Tape<f64> = Box::leak(Box::default());
    let other = leaked.var(&Tensor::from([5.0]));
    let x = Tensor::from([1.0, 2.0]);
    assert!(matches!(try_infer(|_| other, &x), Err(Error::OtherTape { .. })));
    assert!(matches!(try_infer_in_batches(|_| other, &x, 1), Err(Error::OtherTape { .. })));
    let own = Tape::new();
    let loss = own.var(&x).sum(..);
    assert!(matches!(loss.try_backward_with([loss, other]), Err(Error::OtherTape { .. })));
    let (gradients, [value]) = loss.try_backward_with([loss]).unwrap();
    assert_eq!((value.item(), gradients.len()), (3.0, 1));
    let failure = crate::gradcheck(|[_]| other, [&x]).unwrap_err();
    assert!(matches!(failure, Failure::Refused { error: Error::OtherTape { .. }, .. }), "{failure}");
}

/// Checks that every node of a derivative has a line of the caller's file, also nodes of inputs, directions and zeros.
#[test]
fn transforms_record_at_the_callers_line() {
    use crate::transforms::{grad, hvp, jacobian, vmap};

    let tape = Tape::<f64>::new();
    let (x, y) = (tape.var(&Tensor::from([1.0, 2.0])), tape.var(&Tensor::from([3.0])));
    grad(|[x, _]| x.square().sum(..), [x, y]);
    jacobian(|[x, _]| x.square(), [x, y]);
    hvp(|[x, _]| x.square().sum(..), [x, y], [x, y]);
    vmap(|x| x.square(), x);
    let record = tape.record.borrow();
    for index in 0..record.len() as u32 {
        assert_eq!(record.location(index).file(), file!(), "{} at {}", record.name(index), record.location(index));
    }
}

/// At equal points, the distance of `x` and `y` has no derivative. As in PyTorch, this distance then contributes 0 to the gradient, and
/// only the distance to the third point counts.
#[test]
fn the_triplet_loss_has_a_gradient_at_equal_points() {
    use wengert_tensor::ops::{LossReduction, MarginLosses, TripletOptions};

    let tape = Tape::<f64>::new();
    let (x, y) = (tape.var(&Tensor::from([[1.0, 2.0]])), Tensor::from([[1.0, 2.0]]));
    for p in [1.0, 2.0, 3.0, f64::INFINITY] {
        let options = TripletOptions { margin: 10.0, p, eps: 0.0, swap: false };
        let loss = x.triplet_margin_loss(&y, Tensor::from([[1.0, 5.0]]), options, LossReduction::Sum);
        assert_eq!((loss.item(), loss.grad([x])[0].value().to_vec()), (7.0, vec![0.0, 1.0]), "{p}");
    }
}

#[test]
fn remainders_can_be_assigned() {
    let tape = Tape::<f64>::new();
    let mut x = tape.var(&Tensor::from([5.0, -5.0]));
    x %= 3.0;
    assert_eq!(x.value().to_vec(), [2.0, 1.0]);
}

/// Checks that `len` counts the gradients of parameters and variables, and `parameters` only the gradients of parameters.
#[test]
fn gradients_of_parameters_and_variables_are_counted_apart() {
    let w = Parameter::new(Tensor::from([2.0]));
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from([3.0]));
    let gradients = (tape.parameter(&w) * x).sum(..).backward();
    assert_eq!((gradients.len(), gradients.parameters().len()), (2, 1));
    assert_eq!(gradients.parameters().next(), Some((w.id(), &Tensor::from([3.0]))));
}

/// Operands that are no variables are recorded as constants, which fails on a full tape like every operation.
#[test]
fn a_full_tape_is_an_error_of_every_operand() {
    let (tensor, mask) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([[true, false], [false, true]]));
    let tape = Tape::<f64>::new();
    let x = tape.var(&tensor);
    let loss = x.floor().sum(..);
    type Attempt<'a, 't> = (&'static str, Box<dyn Fn() -> Result<Var<'t, f64>, Error> + 'a>);
    let attempts: Vec<Attempt<'_, '_>> = vec![
        ("var", Box::new(|| tape.try_var(&tensor))),
        ("constant", Box::new(|| tape.try_constant(&tensor))),
        ("number", Box::new(|| tape.try_constant(1.0))),
        ("add a number", Box::new(|| x.try_add(2.0))),
        ("add a tensor", Box::new(|| x.try_add(&tensor))),
        ("product", Box::new(|| x.try_matmul(&tensor))),
        ("product of a tensor", Box::new(|| tensor.try_matmul(x))),
        ("clamp", Box::new(|| x.try_clamp(0.0, &tensor))),
        ("linear", Box::new(|| x.try_linear(&tensor, &tensor.select(0, 0)))),
        ("where", Box::new(|| wengert_tensor::ops::try_where_(&mask, x, 0.0))),
        ("mse_loss", Box::new(|| x.try_mse_loss(&tensor, None, Default::default()))),
        ("zeta", Box::new(|| x.try_zeta(&tensor))),
        ("a gradient of zeros", Box::new(|| Ok(loss.try_grad([x])?[0]))),
        ("a tangent of zeros", Box::new(|| tape.try_jvp(&[loss], &[]).map(|tangents| tangents[0]))),
    ];
    for (name, attempt) in attempts {
        tape.record.borrow().max_nodes.set(tape.len());
        let result = attempt();
        assert!(matches!(result, Err(Error::TapeFull { .. })), "{name}: {result:?}");
        tape.record.borrow().max_nodes.set(usize::MAX);
        assert!(attempt().is_ok(), "{name}");
    }
}

/// Derivative rules use operators, which would panic on a full tape. So a rule starts only if its nodes fit.
#[test]
fn derivatives_on_an_almost_full_tape_are_errors() {
    type Recorded = for<'t> fn(Var<'t, f64>) -> Var<'t, f64>;
    let functions: [(&str, Recorded); 12] = [
        ("abs", |x| x.abs()),
        ("sinc", |x| x.sinc()),
        ("logit", |x| x.logit(None)),
        ("pow", |x| x.pow(x)),
        ("atan2", |x| x.atan2(x * 2.0)),
        ("copysign", |x| x.copysign(x * 2.0)),
        ("amax", |x| x.amax(..)),
        ("prod", |x| x.prod(..)),
        ("var", |x| x.var(.., 1)),
        ("norm", |x| x.vector_norm(3.0, ..)),
        ("softmax", |x| x.softmax(0)),
        ("matmul", |x| x.matmul(x)),
    ];
    for (name, f) in functions {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([0.3, 0.6]));
        let (z, v) = (f(x), tape.constant(Tensor::from([1.0, 2.0])));
        let loss = z.sum(..);
        for free in 0..40 {
            let attempts: [&dyn Fn() -> Result<(), Error>; 2] =
                [&|| loss.try_grad([x]).map(drop), &|| tape.try_jvp(&[loss], &[(x, v)]).map(drop)];
            for attempt in attempts {
                tape.record.borrow().max_nodes.set(tape.len() + free);
                let result = attempt();
                assert!(matches!(result, Err(Error::TapeFull { .. })), "{name}, {free}: {result:?}");
            }
        }
        tape.record.borrow().max_nodes.set(usize::MAX);
        assert!(loss.try_grad([x]).is_ok(), "{name}");
    }
}
