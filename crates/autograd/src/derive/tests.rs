//! Tests how the planner rewrites sums of gradients.

use wengert_tensor::plan::{NodeIndex, Step, Work, plan};
use wengert_tensor::program::Output;

use crate::prelude::*;

fn wave(shape: impl Into<Shape>, seed: f64) -> Tensor<f64> {
    let shape = shape.into();
    let count = shape.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|n| (n as f64 * 0.7 + seed).sin()).collect(), shape)
}

/// Returns two numbers for the plan that computes `roots`: how many matrix products it has, and how many concatenations and copies into
/// zeros.
fn count<const N: usize>(tape: &Tape<f64>, roots: [Var<'_, f64>; N]) -> (usize, usize) {
    let record = tape.record.borrow();
    let roots: Vec<NodeIndex> = roots.iter().map(|root| root.index).collect();
    let steps = plan(&record, &roots, DType::F64, true).steps;
    let is_product = |step: &&Step| matches!(step.work, Work::Product(_) | Work::AddedProduct(_));
    let is_concatenation = |step: &&Step| match &step.work {
        Work::Cat { .. } | Work::Embed(..) => true,
        Work::Fused(bound) => {
            bound.borrow().program().outputs().iter().any(|output| matches!(output, Output::Concatenated(..)))
        }
        _ => false,
    };
    (steps.iter().filter(is_product).count(), steps.iter().filter(is_concatenation).count())
}

fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
    assert_eq!(got.shape(), want.shape());
    for (got, want) in got.iter().zip(want.iter()) {
        assert!((got - want).abs() < 1e-12, "{got} is not {want}");
    }
}

/// Checks the number of products for a sequence of steps that use the same weight. The backward pass has one product for the gradient of
/// the weight, and one per step for the gradient of the step's input.
#[test]
fn a_weight_used_many_times_has_one_product() {
    for transposed in [false, true] {
        let tape = Tape::<f64>::new();
        let own = if transposed { wave([3, 4], 0.3).t().contiguous() } else { wave([3, 4], 0.3) };
        let (x, w) = (tape.var(&wave([10, 3], 0.1)), tape.var(&own));
        let weight = if transposed { w.t() } else { w };
        let step = |number: isize| x.narrow(0, 2 * number, 2).matmul(weight).sin().sum(..);
        let loss = (1..5).fold(step(0), |sum, number| sum + step(number));
        let [dx, dw] = loss.grad([x, w]);
        // There is one product per step in the forward pass, one per step for the inputs' gradients, and one for the weight's gradient.
        assert_eq!(count(&tape, [dx, dw]).0, 5 + 5 + 1);
        let whole = x.matmul(weight).sin().sum(..).grad([x, w]);
        assert_close(&dx.value(), &whole[0].value());
        assert_close(&dw.value(), &whole[1].value());
        // Compares the second derivatives too.
        let again = (dw.square().sum(..) + dx.square().sum(..)).grad([x, w]);
        let expected = (whole[1].square().sum(..) + whole[0].square().sum(..)).grad([x, w]);
        assert_close(&again[0].value(), &expected[0].value());
        assert_close(&again[1].value(), &expected[1].value());
    }
}

/// Checks that the gradients of a sequence are joined by one concatenation. The gradient of `x` concatenates the gradients of the steps in
/// order. The gradient of the weight `u` is a sum over the steps in reverse order, and uses the same concatenation.
#[test]
fn the_gradients_of_a_sequence_are_joined_once() {
    let last = crate::formula!(|[x, u, h]| {
        (0..5).fold(h, |h, step| (x.narrow(0, 2 * step, 2) + h.matmul(u)).tanh()).sum(..)
    });
    let (x, u, h) = (wave([10, 4], 0.1), wave([4, 4], 0.2), wave([2, 4], 0.3));
    for weight_first in [false, true] {
        let tape = Tape::<f64>::new();
        let (first, second) = if weight_first { (&u, &x) } else { (&x, &u) };
        let [first, second] = [tape.var(first), tape.var(second)];
        let [x, u] = if weight_first { [second, first] } else { [first, second] };
        let gradients = last([x, u, tape.constant(&h)]).grad([x, u]);
        // One of the two concatenations joins the gradients of the steps. The other one joins the states `h` of the steps.
        assert_eq!(count(&tape, gradients).1, 2);
    }
    crate::gradcheck(last, [&x, &u, &h]).unwrap();
}

/// Checks that products with many rows and a small weight are not joined. Concatenating their operands would cost more than a single
/// product saves.
#[test]
fn products_of_many_rows_stay_apart() {
    let tape = Tape::<f64>::new();
    let (x, w) = (tape.var(&wave([40, 2], 0.1)), tape.var(&wave([2, 2], 0.2)));
    let gradients = (x.matmul(w).matmul(w).matmul(w).sum(..)).grad([w]);
    // The three terms are the products of the forward pass, of the gradients of its intermediate values, and of the gradient of `w`. The
    // forward pass computes only two products, because the gradient does not need the third.
    assert_eq!(count(&tape, gradients).0, 2 + 2 + 3);
}

/// Checks that causal attention has the gradients of attention with an explicit mask. A block of queries reads all keys up to the block's
/// end. So the gradient of the keys is a sum of slices that start at 0.
#[test]
fn causal_attention_has_the_gradients_of_its_mask() {
    use wengert_tensor::ops::AttentionMask;
    let keep = Tensor::from_fn([200, 200], |at| at[1] <= at[0]);
    let gradients = |keep: Option<&Tensor<bool>>| {
        let tape = Tape::<f64>::new();
        let [q, k, v] = [0.1, 0.2, 0.3].map(|seed| tape.var(&wave([2, 1, 200, 3], seed)));
        let mask = keep.map_or(AttentionMask::Causal, AttentionMask::Keep);
        let loss = q.scaled_dot_product_attention(k, v, mask, None).square().sum(..);
        let first = loss.grad([q, k, v]);
        let again = first[1].square().sum(..).grad([q, k, v]);
        [first, again].map(|gradients| gradients.map(|gradient| gradient.value()))
    };
    let (got, want) = (gradients(None), gradients(Some(&keep)));
    for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
        assert_close(got, want);
    }
}

/// Checks gradients of sums over slices that are in order, have gaps, overlap, are along two dimensions, are empty, or
/// have a step above 1.
#[test]
fn slices_are_joined_where_they_do_not_overlap() {
    let x = wave([3, 12], 0.5);
    let check = |slices: &[(isize, isize, isize, isize)], others: usize| {
        let tape = Tape::<f64>::new();
        let x = tape.var(&x);
        let mut loss = x.square().sum(..);
        for &(axis, start, end, step) in slices {
            loss += x.slice(axis, (start..end, step)).sin().sum(..);
        }
        let times = Tensor::from_fn(x.shape(), |at| {
            let has = |&&(axis, start, end, step): &&(isize, isize, isize, isize)| {
                let i = at[axis as usize] as isize;
                (start..end).contains(&i) && (i - start) % step == 0
            };
            slices.iter().filter(has).count() as f64
        });
        let expected = x.value() * 2.0 + x.value().cos() * times;
        let [dx] = loss.grad([x]);
        assert_eq!(count(&tape, [dx]).1, others, "{slices:?}");
        assert_close(&dx.value(), &expected);
    };
    check(&[(1, 0, 4, 1), (1, 4, 8, 1), (1, 8, 12, 1)], 1);
    check(&[(1, 8, 12, 1), (1, 0, 4, 1), (1, 4, 8, 1)], 1);
    check(&[(1, 1, 3, 1), (1, 9, 11, 1), (1, 5, 6, 1)], 1);
    check(&[(1, 2, 5, 1)], 1);
    // Overlapping slices are cut at all starts and ends, and the parts are added.
    check(&[(1, 0, 7, 1), (1, 5, 12, 1)], 1);
    check(&[(1, 0, 3, 1), (1, 0, 7, 1), (1, 0, 12, 1)], 1);
    check(&[(1, 2, 9, 1), (1, 0, 2, 1), (1, 2, 5, 1), (1, 2, 9, 1), (1, 10, 11, 1)], 1);
    check(&[(1, 2, 9, 1), (1, 2, 5, 1), (1, 0, 3, 1)], 1);
    // All slices have the same gradient, so it is computed once.
    check(&[(1, 0, 12, 1); 40], 1);
    // All slices start at 0. Each slice is cut where another slice ends. The parts at one position are summed, and one concatenation joins
    // these sums.
    check(&std::array::from_fn::<_, 11, _>(|n| (1, 0, n as isize + 1, 1)), 1);
    check(&[(1, 0, 6, 1), (1, 6, 12, 1), (0, 0, 1, 1), (0, 1, 3, 1)], 2);
    check(&[(1, 0, 6, 1), (1, 3, 3, 1), (1, 6, 12, 1), (1, 0, 12, 2)], 3);
}
