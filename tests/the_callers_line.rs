//! Whatever is recorded, refused or found is blamed on a line of the program that called, never on one of ours.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use wengert::autograd::transforms;
use wengert::autograd::{Error, GradCheck};
use wengert::prelude::*;
use wengert::tensor::Generator;
use wengert::tensor::ops::{self, broadcast_tensors, try_where_};

/// Lines of the listing that are not of this file.
fn strangers(tape: &Tape<f64>) -> Vec<String> {
    tape.graph().to_string().lines().filter(|line| !line.contains("the_callers_line.rs:")).map(str::to_owned).collect()
}

#[test]
fn every_operation_is_recorded_under_the_line_that_asked_for_it() {
    let tape = Tape::<f64>::new();
    let parameter = Parameter::new(Tensor::from([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]]));
    let (w, b) = (tape.parameter(&parameter), tape.constant(&Tensor::from([1.0, 2.0, 3.0])));
    let mut x = w * b + 2.0;
    x += 1.0;
    x /= &Tensor::scalar(3.0);
    x = 1.0 - x / (2.0 * x + b.pow(2.0));
    x = &Tensor::from([1.0, 2.0, 3.0]) * x % 0.7;
    x = x.softmax(-1) + x.log_softmax(0) + x.logsumexp_keepdim([0, 1]) + x.mean_keepdim(1) + x.prod(0);
    x = where_(&x.gt(0.0).logical_and(x.lt(2.0).logical_or(x.isnan()).logical_not()), &x, 0.25) * x.isfinite();
    x = try_where_(&x.isinf().logical_xor(b), &x, b).unwrap().maximum(-1.0).fmax(b).rsqrt() - x.amax(0);
    x = cat(&[x, stack(&[x, x], 0).select(0, 1)], 0).narrow(0, 0, 2).transpose(0, 1).flip(0).t().detach() + x;
    x = x.gather(1, &Tensor::from([[0i64, 1, 1], [2, 0, 0]])).index_select(0, &Tensor::from([1i64, 0]));
    x = x.matmul(&w.t()).unsqueeze(0).squeeze(..).flatten(0, 1).unfold(0, 2, 1).diagonal(0, 0, 1).unflatten(0, [1, -1]);
    let [mut x, _] = broadcast_tensors(&[x, b.sum(..)])[..] else { unreachable!() };
    x = x.clamp(-1e9, b.sum(..)).nan_to_num(0.0, None, None).elu(1.0).logaddexp(0.5);
    x.leaky_relu_(0.1);
    x.lerp_(&x.clone(), 0.5);
    x.clamp_(-1e9, 1e9);
    x.ldexp_(1.0);
    x.logical_or_(b.sum(..));
    let y = x.expand([4, 1, 2]).sum_to([2]).floor_divide(1e9).sum(..) + x.hypot(2.0).sum(..);
    assert_eq!(strangers(&tape), [""; 0]);

    let z = (w * w).sum(..) * w.amin(..) + (w.softmax(1) * w.copysign(b).atan2(w)).sum(..);
    let [dw] = z.grad([w]);
    let [ddw] = (dw * dw).sum(..).grad([w]);
    let _ = ddw.jvp(&[(w, tape.constant(&parameter.value))]);
    let _ = z.grad_or_zeros(&[w, b]).unwrap();
    let _ = z.backward();
    let _ = tape.vjp(&[(dw, w)], &[w, b]);
    assert_eq!(strangers(&tape), [""; 0]);
    let _ = y;
}

thread_local! {
    /// Where the last panic of this thread was, as the standard library has it.
    static PANICKED: Cell<Option<(String, u32)>> = const { Cell::new(None) };
    /// Whether a panic is what the test waits for.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// The line that a panic names, which its text points at too.
fn blamed(action: impl FnOnce()) -> u32 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.set(info.location().map(|location| (location.file().to_owned(), location.line())));
            if !EXPECTED.get() {
                shown(info);
            }
        }));
    });
    EXPECTED.set(true);
    let payload = catch_unwind(AssertUnwindSafe(action)).unwrap_err();
    EXPECTED.set(false);
    let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    let (file, line) = PANICKED.take().unwrap_or_default();
    assert_eq!(file, file!(), "the panic is not at the line that called: {text}");
    assert!(text.contains(&format!("--> {file}:{line}:")), "{text}");
    line
}

#[track_caller]
fn at_this_line(line: u32) {
    assert_eq!(line, Location::caller().line());
}

#[test]
fn every_method_that_panics_names_the_line_that_called_it() {
    let (tape, other) = (Tape::<f64>::new(), Tape::<f64>::new());
    let (x, y) = (tape.var(&Tensor::ones([2])), other.var(&Tensor::ones([2])));
    let three = tape.var(&Tensor::ones([3]));
    at_this_line(blamed(|| ignore(x + three)));
    at_this_line(blamed(|| ignore(x + y)));
    at_this_line(blamed(|| ignore(x * &Tensor::ones([3]))));
    at_this_line(blamed(|| ignore(&Tensor::ones([3]) * x)));
    at_this_line(blamed(|| ignore(x.item())));
    at_this_line(blamed(|| ignore(x.backward())));
    at_this_line(blamed(|| ignore(x.grad([x]))));
    at_this_line(blamed(|| ignore(x.sum(..).grad([three]))));
    at_this_line(blamed(|| ignore(x.jvp(&[(x, three)]))));
    at_this_line(blamed(|| ignore(tape.jvp(&[x], &[(x, three)]))));
    at_this_line(blamed(|| ignore(tape.vjp(&[(x, three)], &[x]))));
    at_this_line(blamed(|| ignore(tape.vjp(&[(x, y)], &[x]))));
    at_this_line(blamed(|| ignore(tape.vjp(&[(x, x)], &[y]))));
    at_this_line(blamed(|| ignore(x.sum(..).backward().of(three))));
    at_this_line(blamed(|| ignore(x.sum(..).backward().of(&Parameter::new(Tensor::scalar(1.0))))));
    at_this_line(blamed(|| ignore(transforms::grad(|[x]| x, [&Tensor::<f64>::ones([2])]))));
    at_this_line(blamed(|| ignore(transforms::value_and_grad(|[x]| x, [&Tensor::<f64>::ones([2])]))));
    at_this_line(blamed(|| ignore(transforms::hessian(|x| x, &Tensor::<f64>::ones([2])))));
    at_this_line(blamed(|| ignore(transforms::hvp(|x| x, &Tensor::<f64>::ones([2]), &Tensor::ones([2])))));
    at_this_line(blamed(|| ignore(transforms::jacobian(|x| x.floor_divide(2.0), &Tensor::<f64>::ones([2])))));
}

/// Checks that each of these panics at its own line: every call has one line, from that below the macro's name on.
macro_rules! each_is_blamed {
    ($($call:expr;)*) => {
        let calls = [$((stringify!($call), blamed(|| ignore($call)))),*];
        for (place, (call, line)) in (line!() + 1..).zip(calls) {
            assert_eq!(line, place, "{call}");
        }
    };
}

/// One function at least of every file whose functions panic, and all that are not methods.
#[test]
fn every_function_that_is_refused_names_the_line_that_called_it() {
    let x = || Tensor::<f64>::ones([2, 3]);
    let (two, four) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([4]));
    let (far, mask) = (Tensor::from([9]), Tensor::full([4], true));
    let (mut target, mut rng) = (x(), Generator::new(1));
    each_is_blamed! {
        cat(&[x(), x().t()], 0);
        stack(&[x(), x().t()], 0);
        ops::hstack(&[x(), x().t()]);
        ops::vstack(&[x(), two.clone()]);
        ops::meshgrid(&[x()], ops::Indexing2d::Matrix);
        einsum("ij,jk", &[x(), x()]);
        where_(&mask, &two, 0.0);
        broadcast_tensors(&[two.clone(), four.clone()]);
        ops::broadcast_shapes([[2], [4]]);
        one_hot(&far, Some(3));
        Tensor::from_vec(vec![1.0, 2.0], [3]);
        Tensor::<f64>::from_fn([-1], |_| 0.0);
        Tensor::<f64>::zeros([-1]);
        Tensor::<f64>::ones([-1]);
        Tensor::full([-1], 1.0);
        Tensor::<f64>::rand([-1], &mut rng);
        Tensor::<f64>::randn([-1], &mut rng);
        Tensor::<f64>::uniform(1.0, 0.0, [2], &mut rng);
        Tensor::normal(&two, &four, &mut rng);
        Tensor::randint(1, 1, [2], &mut rng);
        Tensor::from([2.0]).bernoulli(&mut rng);
        Tensor::scalar(1.0).multinomial(1, true, &mut rng);
        x().item();
        &two + &four;
        &two - four.clone();
        two.clone() * &four;
        two.clone() / four.clone();
        { let mut y = two.clone(); y += &four };
        { let mut y = two.clone(); y -= &four };
        { let mut y = two.clone(); y *= four.clone() };
        target.update_with(&two, [], |x, _, _| (x, []));
        target.add_(&four);
        target.copy_(&four);
        target.lerp_(&four, 0.5);
        target.addmm_(&two, &four, 1, 1);
        target.scatter_(0, &far, &two);
        target.masked_fill_(&mask, 1.0);
        target.squeeze_(7);
        two.maximum(&four);
        two.gt(&four);
        two.lerp(&four, 0.5);
        two.clamp(&four, 1.0);
        two.logaddexp(&four);
        x().sum(7);
        x().sum_keepdim(7);
        x().max(7);
        x().median(7);
        x().sort(7, false);
        x().topk(7, 0, true);
        x().cumsum(7);
        x().var(7, 1);
        x().vector_norm(2, 7);
        x().softmax(7);
        x().logsumexp(7);
        x().layer_norm([2], None, None, 1e-5);
        x().matmul(x());
        x().mm(&two);
        x().mv(&two);
        x().dot(&two);
        x().outer(&two);
        x().tensordot(x(), 1);
        x().linear(x().t(), None);
        x().expand([4, 4]);
        x().reshape([4]);
        x().select(0, 9);
        x().narrow(0, 0, 9);
        x().squeeze(7);
        x().split(0, 0);
        x().chunk_into::<2>(1);
        x().split_into([1, 1], 1);
        x().roll(&[1, 2], &[0]);
        x().diagonal(0, 0, 0);
        x().pad(&[1], ops::PadMode::Constant(0.0));
        x().index_select(0, &far);
        x().gather(0, &far);
        x().take(&far);
        x().embedding(&far, Default::default());
        x().scatter_add(0, &far, &two);
        x().masked_select(&mask);
        x().mse_loss(&four, None, Default::default());
        x().huber_loss(x(), 0.0, None, Default::default());
        x().nll_loss(&far, Default::default());
        x().cross_entropy(ops::Classes::Indices(&far), Default::default());
        x().conv2d(x(), None, &Default::default());
        x().avg_pool2d(2, &Default::default());
    }
}

#[test]
fn an_error_of_a_derivative_names_both_lines() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2]));
    let line = line!() + 1;
    let y = x.floor_divide(2.0).sum(..);
    let errors = [
        y.try_grad(&[x]).unwrap_err(),
        y.try_backward().unwrap_err(),
        tape.try_vjp(&[(y, y)], &[x]).unwrap_err(),
        tape.try_jvp(&[y], &[(x, x)]).unwrap_err(),
    ];
    for (k, error) in (0..).zip(errors) {
        let Error::NotDifferentiable { operation, recorded, at } = error else { panic!("{error}") };
        assert_eq!((operation, recorded.file(), recorded.line()), ("floor_divide", file!(), line));
        assert_eq!((at.location.file(), at.location.line()), (file!(), line + 2 + k));
    }
    let failure = GradCheck::new().check(|[x]| x.bitwise_not(), [&Tensor::from([1.5])]).unwrap_err();
    assert!(failure.to_string().contains(&format!("the_callers_line.rs:{}", line!() - 1)), "{failure}");
}

/// Its argument is computed, and that is all.
fn ignore<T>(_: T) {}
