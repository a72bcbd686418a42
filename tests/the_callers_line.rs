//! Every recorded operation, error and panic names a line of the calling program, never a line of the library.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use wengert::autograd::transforms::{self, Vmap, infer, infer_in_batches, vmap};
use wengert::autograd::{BlendWeight, Call, Error, Function, FunctionCall, GradCheck, Operation};
use wengert::nn::init::{self, Fan, Nonlinearity};
use wengert::nn::metrics::ConfusionMatrix;
use wengert::nn::schedule::{CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR, ReduceLROnPlateau};
use wengert::nn::*;
use wengert::prelude::*;
use wengert::tensor::Generator;
use wengert::tensor::Unary;
use wengert::tensor::ops::{self, IndexItem, broadcast_tensors, try_where_};

use crate::sources::{text, that_panic};

/// Returns the lines of the tape's listing that name a file other than this one.
fn foreign_lines(tape: &Tape<f64>) -> Vec<String> {
    tape.graph().to_string().lines().filter(|line| !line.contains("the_callers_line.rs:")).map(str::to_owned).collect()
}

#[test]
fn every_operation_is_recorded_with_its_callers_line() {
    let tape = Tape::<f64>::new();
    let parameter = Parameter::new(Tensor::from([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]]));
    let (w, b) = (tape.parameter(&parameter), tape.constant(Tensor::from([1.0, 2.0, 3.0])));
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
    assert_eq!(foreign_lines(&tape), [""; 0]);

    let z = (w * w).sum(..) * w.amin(..) + (w.softmax(1) * w.copysign(b).atan2(w)).sum(..);
    let [dw] = z.grad([w]);
    let [ddw] = (dw * dw).sum(..).grad([w]);
    let _ = ddw.jvp(&[(w, tape.constant(&parameter.value))]);
    let _ = z.grad_or_zeros([w, b]);
    let _ = z.backward();
    let _ = tape.vjp(&[(dw, w)], &[w, b]);
    assert_eq!(foreign_lines(&tape), [""; 0]);
    let _ = y;
}

thread_local! {
    /// The location of the last panic of this thread.
    static PANICKED: Cell<Option<(String, u32)>> = const { Cell::new(None) };
    /// True while the test expects a panic.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// The location and the text of a panic.
struct Blame {
    file: String,
    line: u32,
    text: String,
}

impl Blame {
    /// Runs `action` and returns its panic. If `action` does not panic, the file name is empty.
    fn of_panic(action: impl FnOnce()) -> Self {
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
        let payload = catch_unwind(AssertUnwindSafe(action));
        EXPECTED.set(false);
        let (file, line) = PANICKED.take().unwrap_or_default();
        let text = match payload {
            Ok(()) => "no panic".to_owned(),
            Err(payload) => match payload.downcast::<String>() {
                Ok(text) => *text,
                Err(payload) => payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).unwrap_or_default(),
            },
        };
        Blame { file, line, text }
    }

    fn is_at(&self, line: u32) -> bool {
        self.file == file!() && self.line == line
    }

    /// Returns true if the panic is at this line, and its text names the line too.
    fn points_at(&self, line: u32) -> bool {
        self.is_at(line) && self.text.contains(&format!("--> {}:{line}:", self.file))
    }
}

/// Returns the line of a panic, after checking that the text of the panic names it too.
fn blamed(action: impl FnOnce()) -> u32 {
    let blame = Blame::of_panic(action);
    assert!(blame.points_at(blame.line), "the panic is not at the caller's line: {}", blame.text);
    blame.line
}

#[track_caller]
fn at_this_line(line: u32) {
    assert_eq!(line, Location::caller().line());
}

#[test]
fn every_panicking_method_names_its_callers_line() {
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
    at_this_line(blamed(|| ignore(x.sum(..).backward().of_or_zeros(y))));
    at_this_line(blamed(|| ignore(x.sum(..).backward().of(&Parameter::new(Tensor::scalar(1.0))))));
    at_this_line(blamed(|| ignore(transforms::grad(|[x]| x, [&Tensor::<f64>::ones([2])]))));
    at_this_line(blamed(|| ignore(transforms::value_and_grad(|[x]| x, [&Tensor::<f64>::ones([2])]))));
    at_this_line(blamed(|| ignore(transforms::hessian(|x| x, &Tensor::<f64>::ones([2])))));
    at_this_line(blamed(|| ignore(transforms::hvp(|x| x, &Tensor::<f64>::ones([2]), &Tensor::ones([2])))));
    at_this_line(blamed(|| ignore(transforms::jacobian(|x| x.floor_divide(2.0), &Tensor::<f64>::ones([2])))));
}

/// Checks that each call panics at its own line, and that the panic's text names the line. Each call must be on one line, and the first
/// call on the line below the macro's name.
macro_rules! each_is_blamed {
    ($($call:expr;)*) => { each_at_its_line!(Blame::points_at; $($call;)*) };
}

/// Checks that each call panics at its own line. The text need not name the line.
macro_rules! each_panics_here {
    ($($call:expr;)*) => { each_at_its_line!(Blame::is_at; $($call;)*) };
}

macro_rules! each_at_its_line {
    ($is_right:expr; $($call:expr;)*) => {
        let calls = [$((stringify!($call), Blame::of_panic(|| ignore($call)))),*];
        let mut wrong = Vec::new();
        for (line, (call, blame)) in (line!() + 1..).zip(calls) {
            if !$is_right(&blame, line) {
                wrong.push(format!("{call}, line {line}: at {}:{}: {}", blame.file, blame.line, blame.text));
            }
        }
        assert!(wrong.is_empty(), "not at their lines:\n{}", wrong.join("\n"));
    };
}

#[test]
fn every_refused_call_names_its_callers_line() {
    let x = || Tensor::<f64>::ones([2, 3]);
    let (two, four) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([4]));
    let (far, mask) = (Tensor::from([9]), Tensor::full([4], true));
    let (mut target, mut rng) = (x(), Generator::new(1));
    let weights = ops::CellWeights { input: &four, hidden: &four, input_bias: None, hidden_bias: None };
    each_is_blamed! {
        cat(&[x(), x().t()], 0);
        stack(&[x(), x().t()], 0);
        ops::hstack(&[x(), x().t()]);
        ops::vstack(&[x(), two.clone()]);
        ops::dstack(&[x(), two.clone()]);
        ops::column_stack(&[x(), four.clone()]);
        ops::block_diag(&[x().unsqueeze(0)]);
        ops::cartesian_prod(&[x()]);
        ops::unravel_index(&far, [0]);
        x().combinations(2, false);
        x().rot90(1, [0, 0]);
        x().pixel_shuffle(2);
        x().pixel_unshuffle(2);
        x().channel_shuffle(2);
        x().select_scatter(&four, 0, 0);
        x().slice_scatter(&four, 0, ..);
        x().diagonal_scatter(&four, 0, 0, 1);
        x().col2im(3, 2, 1, 0, 1);
        x().affine_grid([1, 1, 2, 2], false);
        x().local_response_norm(2, 1.0, 1.0, 1.0);
        x().gumbel_softmax(1.0, false, 7, &mut rng);
        x().nanmedian(7);
        x().unique_dim(7);
        x().unique_consecutive(Some(7));
        two.pdist(2);
        ops::meshgrid(&[x()], ops::Indexing2d::Matrix);
        einsum("ij,jk", &[x(), x()]);
        where_(&mask, &two, 0.0);
        broadcast_tensors(&[two.clone(), four.clone()]);
        ops::broadcast_shapes([[2], [4]]);
        one_hot(&far, Some(3));
        ops::bincount(&Tensor::from([-1]), 0);
        x().quantile(2.0, None, ops::QuantileInterpolation::Linear);
        x().nanquantile([2.0], None, ops::QuantileInterpolation::Linear);
        x().searchsorted(&two, false);
        two.bucketize(&x(), false);
        two.histc(0, 0.0, 1.0);
        x().unsqueeze(0).cov(1, None, None);
        x().unsqueeze(0).corrcoef();
        two.trapezoid(1.0, 1);
        two.gradient(1.0, 1, 1);
        two.gradient_over(&four, 0, 1);
        two.renorm(2, 0, 1.0);
        two.max_unpool1d(&far, 2, &Default::default(), None);
        two.max_unpool2d(&far, 2, &Default::default(), None);
        two.max_unpool3d(&far, 2, &Default::default(), None);
        two.trapezoid_over(&four, 0);
        two.cumulative_trapezoid(1.0, 1);
        two.cumulative_trapezoid_over(&four, 0);
        two.scatter_reduce(0, &far, Tensor::ones([1]), ops::ScatterReduction::Sum, true);
        x().grid_sample(&two, ops::GridMode::Bilinear, ops::GridPadding::Zeros, false);
        transforms::ravel(&Vec::<Tensor<f64>>::new());
        transforms::ravel(&two).1.unravel(&four);
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
        x().roll([1, 2], 0);
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
        x().bernoulli_(&four, &mut rng);
        two.tril(0);
        two.triu(0);
        Tensor::scalar(1.0).diag(0);
        two.diag_embed(0, 0, 0);
        x().repeat(2);
        x().repeat_interleave(2, Some(7));
        x().repeat_interleave_each(&Tensor::from([1, 2, 3]), Some(0));
        x().split_sizes(&[9], 0);
        x().chunk(0, 0);
        x().tensor_split(0, 0);
        x().tensor_split_at(&[1], 7);
        x().hsplit(0);
        two.vsplit(1);
        two.dsplit(1);
        x().unbind(7);
        x().broadcast_to([4, 4]);
        x().expand_as(&four);
        x().permute([0]);
        x().movedim(7, 0);
        x().slice(7, ..);
        x().transpose(0, 7);
        x().unsqueeze(7);
        x().unflatten(0, [7]);
        x().flatten(0, 7);
        x().flip(7);
        x().unfold(7, 1, 1);
        x().view([4]);
        x().sum_to([7]);
        Tensor::from_strided(vec![1.0], [3], &[1], 0);
        Tensor::<f64>::ones([2, 2, 2]).t();
        Tensor::<f64>::ones([2, 2, 2]).t_();
        x().transpose_(0, 7);
        x().unsqueeze_(7);
        x().fill_(&two);
        x().floor_divide_(&four);
        x().logical_or_(&four);
        x().index(&[IndexItem::from(7)]);
        x().index_put(&[IndexItem::from(7)], &two, false);
        x().index_put_(&[IndexItem::from(7)], &two, false);
        x().index_set(&[IndexItem::from(7)], 1.0);
        x().index_set_(&[IndexItem::from(7)], 1.0);
        x().take_along_dim(&far, Some(0));
        x().scatter(0, &far, &two);
        x().scatter_value(0, &far, 1.0);
        x().index_add(0, &far, &two, 1.0);
        x().index_copy(0, &far, &two);
        x().index_fill(0, &far, 1.0);
        x().masked_scatter(&mask, &two);
        x().masked_scatter_(&mask, &two);
        x().copy_(&four);
        x().im2col(2, 1, 0, 1);
        x().interpolate(3, ops::InterpolateMode::Nearest);
        x().conv1d(x(), None, &Default::default());
        x().conv3d(x(), None, &Default::default());
        x().conv_transpose1d(x(), None, &Default::default());
        x().conv_transpose2d(x(), None, &Default::default());
        x().conv_transpose3d(x(), None, &Default::default());
        two.adaptive_avg_pool1d(1);
        two.adaptive_avg_pool2d(1);
        two.adaptive_avg_pool3d(1);
        two.adaptive_max_pool1d(1);
        two.adaptive_max_pool2d(1);
        two.adaptive_max_pool3d(1);
        two.max_pool1d(2, &Default::default());
        two.max_pool2d(2, &Default::default());
        two.max_pool3d(2, &Default::default());
        two.max_pool1d_with_indices(2, &Default::default());
        two.max_pool2d_with_indices(2, &Default::default());
        two.max_pool3d_with_indices(2, &Default::default());
        two.avg_pool1d(2, &Default::default());
        two.avg_pool3d(2, &Default::default());
        x().bmm(x());
        x().addmm(x(), x(), 1, 1);
        x().addmv(x(), &two, 1, 1);
        x().baddbmm(x(), x(), 1, 1);
        x().addbmm(x(), x(), 1, 1);
        x().addr(&four, &four, 1, 1);
        x().bilinear(x(), x(), None);
        two.cross(&two, 0);
        two.trace();
        two.scaled_dot_product_attention(&two, &two, ops::AttentionMask::None, None);
        two.attention_weights(&two, ops::AttentionMask::None, None);
        two.grouped_query_attention(&two, &two, ops::AttentionMask::None, None);
        two.rnn_tanh_cell(&two, weights);
        two.rnn_relu_cell(&two, weights);
        two.lstm_cell(&two, &two, weights);
        two.gru_cell(&two, weights);
        two.lstm_gates(&two);
        two.gru_gates(&two, &two);
        x().l1_loss(&four, None, Default::default());
        x().smooth_l1_loss(&four, 1.0, Default::default());
        x().kl_div(&four, false, Default::default());
        x().poisson_nll_loss(&four, true, false, 1e-8, Default::default());
        x().gaussian_nll_loss(&four, x(), false, 1e-6, Default::default());
        x().binary_cross_entropy(&four, None, Default::default());
        x().binary_cross_entropy_with_logits(&four, None, None, Default::default());
        x().margin_ranking_loss(&four, x(), 0.0, Default::default());
        x().hinge_embedding_loss(&four, 1.0, Default::default());
        x().soft_margin_loss(&four, Default::default());
        x().triplet_margin_loss(&four, x(), Default::default(), Default::default());
        x().mean(7);
        x().prod(7);
        x().any(7);
        x().all(7);
        x().count_nonzero(7);
        x().amax(7);
        x().amin(7);
        x().aminmax(7);
        x().argmax(7);
        x().argmin(7);
        x().min(7);
        x().mode(7);
        x().kthvalue(9, 0);
        x().cumprod(7);
        x().logcumsumexp(7);
        x().cummax(7);
        x().cummin(7);
        x().diff(1, 7);
        x().argsort(7, false);
        x().std(7, 1);
        x().var_mean(7, 1);
        x().std_mean(7, 1);
        x().nansum(7);
        x().nanmean(7);
        x().softmin(7);
        x().log_softmax(7);
        x().glu(7);
        x().normalize(2, 7, 1e-12);
        two.cdist(&four, 2);
        Tensor::<f64>::zeros([0]).max_all();
        Tensor::<f64>::zeros([0]).min_all();
        Tensor::<f64>::zeros([0]).argmax_all();
        Tensor::<f64>::zeros([0]).argmin_all();
        x().rms_norm([2], None, None);
        x().group_norm(2, None, None, 1e-5);
        x().instance_norm(None, None, 1e-5);
        x().batch_norm(&two, &two, None, None, 1e-5);
        two.batch_norm_training(None, None, 1e-5);
        x().dropout(2.0, true, &mut rng);
    }
}

/// Tests operations on two operands whose shapes do not broadcast.
#[test]
fn every_function_of_two_operands_names_its_callers_line() {
    let (two, four) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([4]));
    let (pair, many) = (Tensor::from([1, 2]), Tensor::from([1, 2, 3, 4]));
    each_is_blamed! {
        two.add(&four);
        two.sub(&four);
        two.rsub(&four);
        two.mul(&four);
        two.div(&four);
        two.div_trunc(&four);
        two.div_floor(&four);
        two.floor_divide(&four);
        two.fmod(&four);
        two.remainder(&four);
        two.minimum(&four);
        two.fmax(&four);
        two.fmin(&four);
        two.nextafter(&four);
        two.zeta(&four);
        two.igamma(&four);
        two.igammac(&four);
        two.ldexp(&four);
        two.logaddexp2(&four);
        two.xlogy(&four);
        two.xlog1py(&four);
        two.heaviside(&four);
        two.eq(&four);
        two.ne(&four);
        two.lt(&four);
        two.le(&four);
        two.ge(&four);
        two.clamp_min(&four);
        two.clamp_max(&four);
        two.copysign(&four);
        two.atan2(&four);
        two.hypot(&four);
        two.pow(&four);
        two.logical_and(&four);
        two.logical_or(&four);
        two.logical_xor(&four);
        pair.bitwise_and(&many);
        pair.bitwise_or(&many);
        pair.bitwise_xor(&many);
        pair.bitwise_left_shift(&many);
        pair.bitwise_right_shift(&many);
        pair.gcd(&many);
        pair.lcm(&many);
        two.isclose(&four, 1e-5, 1e-8, false);
        two.allclose(&four, 1e-5, 1e-8, false);
        two.addcmul(&four, &two, 1.0);
        two.addcdiv(&four, &two, 1.0);
        two.clamp_within(Some((&four).into_argument(&two).unwrap()), None);
        two.masked_fill(many.gt(1), 0.0);
        two.prelu(&four);
        two.dist(&four, 2);
        two.pairwise_distance(&four, 2, 1e-6);
        two.cosine_similarity(&four, 0, 1e-8);
        two.vecdot(&four, 0);
        two.inner(&four);
    }
}

/// Tests operations whose result, or a copy of the operand, does not fit into memory.
#[test]
fn every_function_of_one_operand_names_its_callers_line() {
    let (huge, two) = (Tensor::<f64>::ones([1]).expand([1isize << 59]), Tensor::<f64>::ones([2]));
    let (tape, mut rng) = (Tape::new(), Generator::new(1));
    each_is_blamed! {
        huge.relu6();
        huge.selu();
        huge.gelu();
        huge.gelu_tanh();
        huge.silu();
        huge.mish();
        huge.softsign();
        huge.tanhshrink();
        huge.hardswish();
        huge.hardsigmoid();
        huge.logsigmoid();
        huge.neg();
        huge.unique();
        huge.abs();
        huge.sign();
        huge.square();
        huge.floor();
        huge.ceil();
        huge.round();
        huge.trunc();
        huge.relu();
        huge.sinc();
        huge.frac();
        huge.deg2rad();
        huge.rad2deg();
        huge.reciprocal();
        huge.sqrt();
        huge.exp();
        huge.exp2();
        huge.expm1();
        huge.log();
        huge.log2();
        huge.log10();
        huge.log1p();
        huge.sin();
        huge.cos();
        huge.tan();
        huge.asin();
        huge.acos();
        huge.atan();
        huge.sinh();
        huge.cosh();
        huge.tanh();
        huge.asinh();
        huge.acosh();
        huge.atanh();
        huge.sigmoid();
        huge.erf();
        huge.erfc();
        huge.erfinv();
        huge.lgamma();
        huge.digamma();
        huge.trigamma();
        huge.isposinf();
        huge.isneginf();
        huge.signbit();
        huge.isnan();
        huge.isinf();
        huge.isfinite();
        huge.logical_not();
        huge.rsqrt();
        huge.hardtanh(0.0, 1.0);
        huge.leaky_relu(0.1);
        huge.elu(1.0);
        huge.celu(1.0);
        huge.softplus(1.0, 20.0);
        huge.hardshrink(0.5);
        huge.softshrink(0.5);
        huge.threshold(0.5, 0.0);
        huge.logit(None);
        huge.round_to(2);
        huge.nan_to_num(0.0, None, None);
        huge.to_vec();
        huge.median_all();
        huge.nanmedian_all();
        huge.isin(1.0);
        huge.frexp();
        huge.diagflat(0);
        Tensor::tril_indices(1 << 59, 1 << 59, 0);
        Tensor::triu_indices(1 << 59, 1 << 59, 0);
        Tensor::<f64>::logspace(0.0, 1.0, 1 << 59, 10.0);
        huge.contiguous();
        huge.cast::<f32>();
        huge.tile(2).contiguous();
        huge.kron(&two);
        huge.clone().zero_();
        huge.clone().fill_(1.0);
        huge.clone().apply_(Unary::Exp);
        huge.clone().make_mut();
        Tensor::<i64>::randperm(1 << 59, &mut rng);
        tape.var(&huge).cumsum(0).value();
        infer(|x| x.cumsum(0), &huge);
    }
}

/// An operation that returns an error for inputs of every shape.
struct Refusing;

impl Operation<f64> for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn shape(&self, _: &[Shape]) -> Result<Shape, String> {
        Err("it takes none".to_owned())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, _: &Call<'t, f64>, _: usize, _: Var<'t, f64>) -> Option<Var<'t, f64>> {
        None
    }
}

impl Function<f64> for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn shapes(&self, _: &[Shape]) -> Result<Vec<Shape>, String> {
        Err("it takes none".to_owned())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
        Ok(inputs.to_vec())
    }

    fn vjp<'t>(&self, _: &FunctionCall<'t, f64>, _: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
        Vec::new()
    }
}

#[test]
fn every_method_of_a_tape_names_its_callers_line() {
    let (tape, other) = (Tape::<f64>::new(), Tape::<f64>::new());
    let (x, y) = (tape.var(&Tensor::ones([2])), other.var(&Tensor::ones([2])));
    let (one, two) = (Tensor::<f64>::ones([1]), Tensor::<f64>::ones([2]));
    let parameter = Parameter::new(one.clone());
    each_is_blamed! {
        tape.values([y]);
        tape.values_slice(&[y]);
        infer_in_batches(|x| x, &two, 0);
        Vmap::new().record(|[x]| [x], [x.sum(..)]);
        Vmap::new().record_slice(|x| x.to_vec(), &[x.sum(..)]);
        Vmap::new().call(|[x]| [x], [&Tensor::scalar(1.0)]);
        vmap(|[x]| x, [&Tensor::scalar(1.0)]);
        tape.apply(Refusing, &[x]);
        tape.apply_function(Refusing, &[x]);
        tape.blend(&Buffer::new(one.clone()), x, BlendWeight::Fixed(0.1));
        tape.bind(&parameter, x);
        x.backward_with([y]);
        x.record_backward();
        x.grad_slice(&[x]);
        x.grad_or_zeros_slice(&[x]);
        Tape::<f64>::new().value_and_gradients(|tape| tape.constant(&two));
        Tape::<f64>::new().value_and_gradients_with(|tape| (tape.constant(&two), []));
        transforms::hessian(|[x]| x, [&two]);
        transforms::hvp(|[x]| x, [&two], [&two]);
        transforms::jacobian(|[x]| x.floor_divide(2.0), [&two]);
        tape.hessian(x, &[x]);
        tape.jacobian(y, &[x]);
    }
}

#[test]
fn an_error_of_a_derivative_names_both_lines() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([2]));
    let line = line!() + 1;
    let y = x.floor_divide(2.0).sum(..);
    let errors = [
        y.try_grad([x]).unwrap_err(),
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

#[test]
fn every_layer_names_its_callers_line() {
    let (g, tape) = (&mut Generator::new(1), Tape::<f64>::new());
    let (x, flat, far) = (tape.var(&Tensor::ones([2, 3])), tape.var(&Tensor::ones([3])), Tensor::from([[9]]));
    let (tall, four) = (tape.var(&Tensor::ones([3, 3])), Tensor::<f64>::ones([4]));
    let mut words: Embedding<f64> = Embedding::builder(2, 2).max_norm(1.0).build(g);
    let mut bag: EmbeddingBag<f64> = EmbeddingBag::builder(2, 2).max_norm(1.0).build(g);
    let attention = MultiheadAttention::<f64>::new(4, 2, g);
    let (lstm, cell) = (LSTM::<f64>::new(4, 2, g), LSTMCell::<f64>::new(4, 2, g));
    let (positions, options) = (LearnedPositions::<f64>::new(2, 3, g), TransformerOptions::new(4, 2));
    let encoder = TransformerEncoder::<f64>::new(&options, 1, g);
    let decoder = TransformerDecoder::<f64>::new(&options, 1, g);
    let transformer = Transformer::<f64>::new(&options, 1, 1, g);
    let (masks, two) = (AttentionMasks::new, Tensor::<f64>::ones([2]));
    let sequential = || Sequential::<f64>::new().add(Linear::new(4, 1, &mut Generator::new(1)));
    each_panics_here! {
        Linear::<f64>::new(4, 1, g).forward(x);
        Linear::<f64>::without_bias(1 << 59, 4, g);
        sequential().forward(x);
        Sequential::<f64>::mlp(&[1], ReLU, g);
        Hooks::<f64>::new().output("9", |y| y).run(&sequential(), || ());
        Bilinear::<f64>::new(4, 4, 1, g).forward(x, x);
        CosineSimilarity::new(4).forward(x, x);
        PairwiseDistance::new(2).forward(x, tall);
        Conv1d::<f64>::new(4, 1, 2, g).forward(x);
        ConvTranspose1d::<f64>::new(4, 1, 2, g).forward(x);
        MaxPool2d::new(4).forward(x);
        MaxPool2d::new(4).forward_with_indices(x);
        MaxUnpool2d::new(4).forward(x, &far, None);
        AvgPool2d::new(4).forward(x);
        LPPool2d::new(2.0, 4).forward(x);
        AdaptiveAvgPool2d::new(4).forward(flat);
        AdaptiveMaxPool2d::new(4).forward(flat);
        BatchNorm1d::new(4).forward(x);
        BatchNorm1d::<f64>::new(1 << 59);
        InstanceNorm1d::<f64>::new(1 << 59).affine(true);
        InstanceNorm1d::<f64>::new(1 << 59).track_running_stats(true);
        InstanceNorm1d::new(4).forward(flat);
        LayerNorm::new(4).forward(x);
        RMSNorm::new(4).forward(x);
        GroupNorm::new(2, 4).forward(x);
        LayerNorm::<f64>::new(1isize << 59);
        Softmax::new(7).forward(x);
        GLU::new(1).forward(x);
        PReLU::new(4).forward(x);
        Dropout2d::new(0.5).forward(flat);
        Flatten::new(0, 7).forward(x);
        Unflatten::new(0, [7]).forward(x);
        Pad::new(&[1], PadMode::Reflect).forward(x);
        Unfold::new(4).forward(x);
        Fold::new(4, 4).forward(flat);
        Upsample::by(2, InterpolateMode::Nearest).forward(x);
        PixelShuffle::new(2).forward(x);
        PixelUnshuffle::new(2).forward(x);
        ChannelShuffle::new(3).forward(x);
        LocalResponseNorm::new(2, 1.0, 1.0, 1.0).forward(flat);
        words.forward(&tape, &far);
        words.renormalize(&far);
        Embedding::builder(2, 2).padding_idx(7).build::<f64>(g);
        Embedding::from_pretrained(four.clone());
        bag.forward(&tape, &far, None, None);
        bag.renormalize(&far);
        MultiheadAttention::<f64>::new(4, 3, g);
        attention.forward(x);
        attention.self_attend(x, masks());
        attention.self_attend_with_weights(x, masks());
        attention.attend(x, x, x, masks());
        attention.attend_with_weights(x, x, x, masks());
        attention.decode(x, &mut AttentionCache::new());
        attention.memory(x);
        attention.attend_cached(x, &AttentionCache::new(), None);
        lstm.forward(x);
        lstm.forward_from(x, None);
        lstm.forward_padded(x, &[1], None);
        LSTM::builder(4, 2).proj_size(2).build::<f64>(g);
        cell.forward(x, None);
        positions.forward(tall);
        positions.forward_at(x, 1);
        sinusoidal_positions::<f64>(1 << 59, 2);
        rotary(&two, 0, RotaryPairs::Halves);
        encoder.forward(x);
        encoder.forward_masked(x, masks());
        encoder.decode(x, &mut encoder.caches());
        decoder.forward(x, x, masks(), masks());
        transformer.forward(x, x, masks(), masks(), masks());
        decoder.caches(x, None);
        decoder.layers[0].cache(x, None);
        decoder.decode(x, &mut []);
        sequential().freeze("nowhere");
        sequential().unfreeze("nowhere");
        sequential().set_frozen("nowhere", true);
        sequential().set_from_vector(&two);
        bind_vector(&sequential(), Tape::new().var(&two));
        per_sample_gradients(&sequential(), [&two, &four], |[x, _]| x);
    }
}

#[test]
fn every_loss_optimizer_and_initializer_names_its_callers_line() {
    let g = &mut Generator::new(1);
    let (two, four) = (Tensor::<f64>::ones([2]), Tensor::<f64>::ones([4]));
    let (scores, classes) = (Tensor::<f64>::ones([2, 3]), Tensor::from([0, 1, 2, 0]));
    let mut model = Linear::<f64>::new(4, 1, g);
    let other = Linear::<f64>::new(2, 1, g);
    let elsewhere = Parameter::new(two.clone());
    let (_, nothing) = Tape::<f64>::new().value_and_gradients(|tape| tape.parameter(&elsewhere).sum(..));
    let mut average = WeightAverage::ema(0.5);
    average.update(&other);
    let mut confusion = ConfusionMatrix::new(2);
    let states = || States { steps: 0, tensors: vec![two.clone()] };
    let (tape, samples) = (Tape::<f64>::new(), Samples::new(four.clone(), classes.clone()).unwrap());
    let (mut lengths, mut spectral) = (WeightNorm::new(&scores), SpectralNorm::new(&scores, g));
    (lengths.original0.value, spectral.v.value) = (four.clone(), four.clone());
    each_panics_here! {
        lengths.weight(&tape);
        spectral.weight(&tape);
        WeightNorm::with_dim(&two, 1);
        SpectralNorm::new(&two, g);
        DataLoader::new(samples, 2).weighted([1.0], 4);
        Fit::<f64>::new(1).accumulate(0);
        Muon::new(0.1).step_tensors([&mut two.clone()], std::array::from_ref(&two));
        accuracy(&scores, &classes);
        cross_entropy(&scores, &classes);
        CrossEntropyLoss::new().of(&scores, &classes);
        CrossEntropyLoss::new().of_probabilities(&scores, &two);
        nll_loss(&scores, &classes);
        multi_margin_loss(&scores, &classes);
        multilabel_margin_loss(&scores, &classes);
        multilabel_soft_margin_loss(&scores, &two);
        margin_ranking_loss(&two, &four, &two);
        cosine_embedding_loss(&two, &four, &two);
        triplet_margin_loss(&two, &four, &two);
        TripletMarginLoss::new().by_distance(&two, &four, &two, |x, _| x.clone());
        gaussian_nll_loss(&two, &four, &two);
        ctc_loss(&scores, &classes, &[1], &[1]);
        init::fans(&Shape::from([2]));
        init::uniform::<f64>([-1], 0.0, 1.0, g);
        init::normal::<f64>([2], 0.0, -1.0, g);
        init::truncated_normal::<f64>([2], 0.0, 1.0, 1.0, 0.0, g);
        init::xavier_uniform::<f64>([2], 1.0, g);
        init::xavier_normal::<f64>([2], 1.0, g);
        init::kaiming_uniform::<f64>([2], Fan::In, Nonlinearity::Relu, g);
        init::kaiming_normal::<f64>([2], Fan::In, Nonlinearity::Relu, g);
        init::orthogonal::<f64>([2], 1.0, g);
        init::dirac::<f64>([2], 1);
        init::sparse::<f64>([2], 0.5, 1.0, g);
        g.truncated_normal(1.0, 0.0);
        g.below(0);
        Sgd::new(0.1).step(&mut model, &nothing);
        Sgd::new(0.1).step_tensors([&mut two.clone()], std::array::from_ref(&four));
        Lbfgs::new(-1.0).step(&mut model, |_| (0.0, nothing.clone()));
        Lbfgs::new(-1.0).minimize(|x| x.sum(..), &two);
        average.update(&model);
        average.swap(&mut model);
        average.apply_to(&mut model);
        states().tensors_mut::<2>(&two);
        confusion.merge(&ConfusionMatrix::new(3));
        CosineAnnealingWarmRestarts::new(0.1, 1).t_mult(0);
        OneCycleLR::new(0.1, 10).pct_start(7.0);
        CyclicLR::new(0.1, 0.2).step_sizes(0, 0);
        ReduceLROnPlateau::new(0.1).factor(2.0);
        Tensor::<f64>::eye(1 << 40);
        Tensor::<f64>::arange(1usize << 59);
        Tensor::<f64>::linspace(0.0, 1.0, 1 << 59);
    }
}

/// The functions that the lists above cannot contain, with the reasons.
const ELSEWHERE: [(&str, &str); 28] = [
    ("norm", "fails only without memory, after reading every element"),
    ("clip_norm", "fails only without memory, after reading every element"),
    ("clip_value", "fails only without memory, after reading every element"),
    ("scale", "fails only without memory"),
    ("update_statistic", "fails only for a buffer that was changed by hand; tested in derive/gradients.rs"),
    ("update_count", "fails only without memory"),
    ("evaluate", "fails only without memory, or if a sink or an operation refuses a value"),
    ("update_buffers", "fails only as `update_statistic` does"),
    ("first_non_finite", "fails only without memory, after reading every element"),
    ("nonzero", "fails only without memory, after reading every element"),
    ("where_nonzero", "fails only without memory, after reading every element"),
    ("from_ndarray", "tested beside ndarray, in tensor/interop.rs"),
    ("from_static", "tested beside ndarray, in tensor/interop.rs"),
    ("as_ndarray", "tested beside ndarray, in tensor/interop.rs"),
    ("to_ndarray", "tested beside ndarray, in tensor/interop.rs"),
    ("into_ndarray", "tested beside ndarray, in tensor/interop.rs"),
    ("resize", "needs the feature `images`; tested in data/images.rs"),
    ("input", "called within an operation's derivative"),
    ("batched", "called within an operation's batching rule"),
    ("is_batched", "called within an operation's batching rule"),
    ("index_of", "called by the tape"),
    ("each_part", "hands on the panic of a task; tested in memory/threads/mod.rs"),
    ("elementwise_affine", "fails only without memory, and the layer of this size cannot be made"),
    ("map_gradient", "fails only if the tape is full"),
    ("number", "fails only if the tape is full"),
    ("atleast_1d", "fails only if the tape is full"),
    ("atleast_2d", "fails only if the tape is full"),
    ("atleast_3d", "fails only if the tape is full"),
];

/// Checks that the lists are complete: they have the name of every function that [`that_panic`] finds in the sources.
/// Each entry of [`ELSEWHERE`] must still be needed.
#[test]
fn every_function_that_panics_is_in_a_list() {
    let source = text("tests/the_callers_line.rs");
    let is_called = |name: &str| {
        source.match_indices(name).any(|(at, _)| {
            let (before, after) = (&source[..at], &source[at + name.len()..]);
            let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !before.ends_with("fn ");
            is_whole && (after.starts_with('(') || after.starts_with("::<"))
        })
    };
    let elsewhere: BTreeMap<&str, &str> = ELSEWHERE.into();
    let all = that_panic();
    let missing: Vec<String> = all
        .iter()
        .filter(|(name, _)| !is_called(name) && !elsewhere.contains_key(&name[..]))
        .map(|(name, file)| format!("{name} ({file})"))
        .collect();
    assert!(missing.is_empty(), "these functions panic, and no list here has them: {missing:#?}");
    let gone: Vec<&str> = elsewhere.into_keys().filter(|name| !all.contains_key(*name) || is_called(name)).collect();
    assert!(gone.is_empty(), "these functions no longer need a reason: {gone:?}");
}

/// Drops the result of a call.
fn ignore<T>(_: T) {}
