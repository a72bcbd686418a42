//! Tests the evaluation of tapes: fusion, the values that are kept, and the results. The results are compared with code that evaluates one
//! node at a time.

use proptest::prelude::*;
use wengert_tensor::ops::{Evaluate, LossReduction, TensorLike};
use wengert_tensor::prelude::*;

use wengert_tensor::plan::{NodeIndex, Step, Work, plan};
use wengert_tensor::program::Output;

use crate::{Error, Tape, Var};

mod stencils;

/// Evaluates the tape one node at a time, without a plan, and returns the values of `roots`.
fn one_at_a_time<T: Float>(tape: &Tape<T>, roots: &[NodeIndex]) -> Result<Vec<Tensor<T>>, Error> {
    let record = tape.record.borrow();
    let mut values: Vec<Tensor<T>> = Vec::new();
    for index in 0..=roots.iter().copied().max().unwrap_or_default() {
        let operands: Vec<_> = record.operands(index).iter().map(|&input| values[input as usize].clone()).collect();
        values.push(match record.leaf(index) {
            Some(data) => data,
            None => record.compute(index, &operands)?,
        });
    }
    Ok(roots.iter().map(|&root| values[root as usize].clone()).collect())
}

/// Returns the number of instructions in each step of the plan for `roots`, or 0 for a step that is not a fused program.
fn steps(tape: &Tape<f64>, roots: &[Var<'_, f64>]) -> Vec<usize> {
    let record = tape.record.borrow();
    let roots: Vec<NodeIndex> = roots.iter().map(|root| root.index).collect();
    let plan = plan(&record, &roots, DType::F64, true);
    let instructions = |step: &Step| match &step.work {
        Work::Fused(program) => program.borrow().program().instructions().len(),
        _ => 0,
    };
    plan.steps.iter().map(instructions).collect()
}

#[test]
fn a_chain_of_one_shape_is_one_step() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([3, 4]));
    let y = ((x * x).tanh() + x).exp() - x;
    assert_eq!(steps(&tape, &[y]), [5]);
}

#[test]
fn softmax_is_one_pass() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([3, 40]));
    let e = (x - x.amax_keepdim(1)).exp();
    assert_eq!(steps(&tape, &[e / e.sum_keepdim(1)]), [5]);
}

#[test]
fn a_sum_over_columns_is_finished_before_it_is_read() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::ones([30, 40]));
    // The plan computes x - mean twice, which is cheaper than storing it.
    let centred = x - x.mean_keepdim(0);
    let y = centred / centred.square().mean_keepdim(0).sqrt();
    assert_eq!(steps(&tape, &[y]), [0, 1, 2, 2, 2]);
}

/// Checks that the derivative of a sigmoid reads the sigmoid, which is expensive, and which is stored anyway for a matrix product. Cheap
/// values that are computed from the sigmoid must not be stored too.
#[test]
fn the_derivative_of_a_sigmoid_is_computed_from_the_sigmoid() {
    let tape = Tape::<f64>::new();
    let (x, w) = (tape.var(&Tensor::ones([8, 8])), tape.var(&Tensor::ones([8, 8])));
    let [dx] = x.sigmoid().matmul(w).sigmoid().sum(..).grad([x]);
    let record = tape.record.borrow();
    let plan = plan(&record, &[dx.index], DType::F64, true);
    let stored = |step: &Step| match &step.work {
        Work::Fused(program) => Some(program.borrow().program().outputs().len()),
        _ => None,
    };
    assert_eq!(plan.steps.iter().filter_map(stored).collect::<Vec<_>>(), [1, 1, 1]);
}

/// Checks that programs compute a cheap value again if few of them read it, and that it is stored if many do.
#[test]
fn a_value_that_many_programs_read_is_stored() {
    let reads = |count: usize| {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([30, 40]));
        // Each maximum over dimension 0 ends a program, because the next program reads the whole maximum.
        let y = x * 2.0;
        let mut state = tape.var(&Tensor::ones([40]));
        for _ in 0..count {
            state = (y + state).amax(0);
        }
        let all = steps(&tape, &[state]);
        // Counts the programs that compute `y` again: their two instructions multiply by 2 and add. Reductions are not instructions.
        all.iter().filter(|&&instructions| instructions == 2).count()
    };
    assert_eq!((reads(20), reads(60)), (20, 1));
}

/// Checks that a transposed matrix is copied if several products with few rows read it. It is not copied for a single product, or for many
/// rows.
#[test]
fn a_matrix_that_small_products_share_is_rearranged_once() {
    let copies = |rows: usize, products: usize| {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&Tensor::ones([rows, 9])), tape.var(&Tensor::ones([9, 9])));
        let y = (0..products).fold(x, |x, _| x.matmul(w.t()).tanh());
        let record = tape.record.borrow();
        let plan = plan(&record, &[y.index], DType::F64, true);
        plan.steps.iter().filter(|step| matches!(step.work, Work::Copy(..))).count()
    };
    assert_eq!([copies(4, 3), copies(4, 1), copies(400, 3)], [1, 0, 0]);
}

/// Checks that a product is accumulated into the other operand of an addition, if only this addition reads the product. This is not done
/// for a product that is read twice or scaled first.
#[test]
fn added_products_accumulate_into_the_other_operand() {
    let close = |x: &Tensor<f64>, y: &Tensor<f64>| {
        x.shape() == y.shape() && x.iter().zip(y.iter()).all(|(x, y)| (x - y).abs() <= 1e-12 * (1.0 + y.abs()))
    };
    let check = |accumulated: usize, f: &dyn for<'t> Fn([Var<'t, f64>; 4]) -> Var<'t, f64>| {
        for [m, k, n] in [[3, 4, 5], [3, 0, 5], [1, 300, 200], [70, 65, 130], [16, 1100, 24]] {
            let tape = Tape::<f64>::new();
            let of = |sizes: [usize; 2]| Tensor::from_fn(sizes, |i| ((i[0] * 7 + i[1] * 3) % 11) as f64 - 5.0);
            let [x, w] = [of([m, k]), of([k, n])].map(|value| tape.var(&value));
            let (row, more) = (tape.var(&of([1, n])), tape.var(&of([m, 2 * n])).slice(1, n..));
            let y = f([x, w, row, more]);
            let expected = &one_at_a_time(&tape, &[y.index]).unwrap()[0];
            let record = tape.record.borrow();
            let plan = plan(&record, &[y.index], DType::F64, true);
            let products = plan.steps.iter().filter(|step| matches!(step.work, Work::AddedProduct(_))).count();
            assert_eq!(products, accumulated, "[{m}, {k}] x [{k}, {n}]");
            let value = &record.run(&plan, wengert_tensor::Site::here("test")).unwrap()[0];
            assert!(close(value, expected), "[{m}, {k}] x [{k}, {n}]");
        }
    };
    check(1, &|[x, w, row, _]| x.matmul(w) + row);
    check(1, &|[x, w, _, more]| more + x.matmul(w));
    check(2, &|[x, w, _, more]| (x * 2.0).matmul(w) + more + (x + 1.0).matmul(w));
    check(2, &|[x, w, ..]| x.matmul(w) + x.sin().matmul(w) + x.matmul(w.cos()));
    check(0, &|[x, w, row, _]| x.matmul(w) * 2.0 + row);
    check(0, &|[x, w, row, _]| {
        let product = x.matmul(w);
        (product + row).matmul(product.t())
    });
}

/// Tests an addition whose other operand is also a factor of the product. The memory of this operand must not be overwritten while the
/// product reads it.
#[test]
fn a_product_may_be_added_to_its_own_factor() {
    let tape = Tape::<f64>::new();
    let (x, w) = (tape.var(&Tensor::from([[0.5, 1.0], [0.0, 2.0]])), tape.var(&Tensor::from([[1.0, 2.0], [3.0, 4.0]])));
    let [first, second, third] = [x.exp(), x.exp() * 2.0, x.exp() + 1.0];
    for y in [first + first.matmul(w), w.matmul(second) + second, third + third.t().matmul(third)] {
        assert_eq!(y.value(), one_at_a_time(&tape, &[y.index]).unwrap()[0]);
    }
}

/// Returns three numbers for the plan of `roots`: concatenations that copy, concatenations in place, and fused programs that write all
/// parts of a concatenation. Also runs the plan twice, and checks the values.
fn concatenations(tape: &Tape<f64>, roots: &[Var<'_, f64>]) -> (usize, usize, usize) {
    let record = tape.record.borrow();
    let indices: Vec<NodeIndex> = roots.iter().map(|root| root.index).collect();
    let expected = one_at_a_time(tape, &indices).unwrap();
    let plan = plan(&record, &indices, DType::F64, true);
    let copies = |step: &&Step| matches!(step.work, Work::Cat { in_place: None, .. });
    let joins = |step: &&Step| matches!(step.work, Work::Cat { in_place: Some(_), .. });
    let side_by_side = |step: &&Step| match &step.work {
        Work::Fused(program) => {
            program.borrow().program().outputs().iter().any(|output| matches!(output, Output::Concatenated(..)))
        }
        _ => false,
    };
    // Runs the plan twice, because the first run must not consume anything that the second run needs.
    for _ in 0..2 {
        let values = record.run(&plan, wengert_tensor::Site::here("test")).unwrap();
        for (value, expected) in values.iter().zip(&expected) {
            assert_eq!(value.shape(), expected.shape());
            assert!(value.iter().zip(expected.iter()).all(|(x, y)| (x - y).abs() < 1e-13 * (1.0 + y.abs())));
        }
    }
    let count = |is: &dyn Fn(&&Step) -> bool| plan.steps.iter().filter(is).count();
    (count(&copies), count(&joins), count(&side_by_side))
}

#[test]
fn parts_are_written_into_their_concatenation() {
    use wengert_tensor::ops::{cat, stack};
    let tape = Tape::<f64>::new();
    let wave = |shape: &[usize]| {
        tape.var(&Tensor::from_fn(shape, |i| i.iter().fold(0.3, |sum, &k| 1.7 * sum + k as f64).sin()))
    };
    let (x, w) = (wave(&[32, 40]), wave(&[40, 40]));
    // In the first three cases, one program writes all parts of a concatenation. In the first case, nothing else reads the parts. In the
    // second case, two concatenations and a product read the part `a`. In the third case, `a` occurs twice. The last case, a stack along a
    // new last dimension, copies its parts.
    let [a, b, c] = [x.sin(), x.tanh() * 2.0, x + 1.0];
    assert_eq!(concatenations(&tape, &[cat(&[a, b, c], 1).matmul(wave(&[120, 3]))]), (0, 0, 1));
    assert_eq!(concatenations(&tape, &[cat(&[a, b], 1), cat(&[a, c], 1), a.matmul(w)]), (0, 0, 1));
    assert_eq!(concatenations(&tape, &[cat(&[a, b, a], 1)]), (0, 0, 1));
    assert_eq!(concatenations(&tape, &[stack(&[a, b], 2)]), (1, 0, 0));
    // The program that writes both parts also reduces the rows.
    let rows = x - x.mean_keepdim(1);
    assert_eq!(concatenations(&tape, &[cat(&[rows.exp(), rows.square()], 1)]), (0, 0, 1));
    // Here several steps write the parts in place. The first state is data, which no step writes.
    let states: Vec<Var<'_, f64>> = std::iter::successors(Some(x), |x| Some(x.matmul(w).tanh())).take(6).collect();
    assert_eq!(concatenations(&tape, &[cat(&states[1..], 0)]), (0, 1, 0));
    assert_eq!(concatenations(&tape, &[cat(&states[..5], 0), cat(&states[1..], 0)]), (0, 2, 0));
    assert_eq!(concatenations(&tape, &[stack(&states, 0).sum(0), cat(&states[2..4], 0)]), (0, 2, 0));
    // A requested part has its own memory and is copied into the concatenation. A concatenation with a repeated part copies all its parts,
    // and so does a second concatenation of the same parts in another order.
    assert_eq!(concatenations(&tape, &[cat(&states[1..], 0), states[3]]), (0, 1, 0));
    let [.., d, e] = states[..] else { unreachable!() };
    assert_eq!(concatenations(&tape, &[cat(&[d, e, d], 0)]), (1, 0, 0));
    assert_eq!(concatenations(&tape, &[cat(&[d, e], 0), cat(&[e, d], 0)]), (1, 1, 0));
    // Only a fused program writes a part in place. So products are copied. An expanded value is copied too, because it has fewer elements
    // than its part of the result.
    assert_eq!(concatenations(&tape, &[cat(&[x.matmul(w), x.matmul(w.t())], 0)]), (1, 0, 0));
    let row = x.sum(0).exp().expand([32, 40]);
    assert_eq!(concatenations(&tape, &[cat(&[row, d, e], 0)]), (0, 1, 0));
}

/// Returns the sizes `[m, k, n]` of the products of `[m, k]` and `[k, n]` in the plan of `roots`. Also runs the plan, and checks the values.
fn products(tape: &Tape<f64>, roots: &[Var<'_, f64>]) -> Vec<[usize; 3]> {
    concatenations(tape, roots);
    let indices: Vec<NodeIndex> = roots.iter().map(|root| root.index).collect();
    let plan = plan(&tape.record.borrow(), &indices, DType::F64, true);
    let sizes = |step: &Step| match &step.work {
        Work::Product([left, right]) | Work::AddedProduct([left, right, _]) => Some([left[0], left[1], right[1]]),
        _ => None,
    };
    plan.steps.iter().filter_map(sizes).collect()
}

/// Returns the sizes of the products of 5 rows and 5 columns that compute the gradient of `matrix`. Five steps multiply the matrix by one
/// state after the other.
fn gradient_products<'t>(
    tape: &'t Tape<f64>,
    matrix: Var<'t, f64>,
    state: Var<'t, f64>,
    step: impl Fn(Var<'t, f64>) -> Var<'t, f64>,
) -> Vec<[usize; 3]> {
    let last = std::iter::successors(Some(state), |state| Some(step(*state))).nth(5).unwrap();
    let [gradient] = last.sum(..).grad([matrix]);
    products(tape, &[gradient]).into_iter().filter(|&[m, _, n]| m == 5 && n == 5).collect()
}

#[test]
fn the_gradient_of_a_matrix_in_several_products_is_one_product() {
    let tape = Tape::<f64>::new();
    let wave = |shape: &[usize]| {
        tape.var(&Tensor::from_fn(shape, |i| i.iter().fold(0.3, |sum, &k| 1.7 * sum + k as f64).sin()))
    };
    let matrix = wave(&[5, 5]);
    let [row, column, vector, rows] = [&[1, 5][..], &[5, 1], &[5], &[3, 5]].map(wave);
    assert_eq!(gradient_products(&tape, matrix, rows, |x| x.matmul(matrix).sin()), [[5, 15, 5]]);
    assert_eq!(gradient_products(&tape, matrix, row, |x| x.matmul(matrix).sin()), [[5, 5, 5]]);
    assert_eq!(gradient_products(&tape, matrix, vector, |x| x.matmul(matrix).sin()), [[5, 5, 5]]);
    assert_eq!(gradient_products(&tape, matrix, vector, |x| matrix.matmul(x).sin()), [[5, 5, 5]]);
    assert_eq!(gradient_products(&tape, matrix, column, |x| matrix.matmul(x).sin()), [[5, 5, 5]]);
    // One product for the matrix, and one for its transpose.
    assert_eq!(
        gradient_products(&tape, matrix, vector, |x| matrix.t().matmul(matrix.matmul(x)).sin()),
        [[5, 5, 5], [5, 5, 5]]
    );
}

#[test]
fn operands_are_computed_before_they_are_expanded() {
    let tape = Tape::<f64>::new();
    let row = tape.var(&Tensor::ones([40]));
    let y = row.expand([30, 40]).exp() * 2.0;
    assert_eq!(y.value().strides(), [0, 1]);
    let [d] = y.sum(..).grad([row]);
    // The bound covers the rounding of an exponential and of a product.
    assert!((d.value().to_vec()[0] / (60.0 * 1f64.exp()) - 1.0).abs() <= 2.0 * f64::EPSILON);
}

#[test]
fn equal_programs_share_a_plan_and_different_programs_do_not() {
    let run = |numbers: [f64; 2], size: usize, known: bool| {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::full([size], numbers[0]));
        let y = x.exp() * numbers[1];
        if known {
            y.value();
        }
        (y + x).sum(..).item()
    };
    for _ in 0..3 {
        for known in [false, true] {
            assert_eq!(run([0.0, 2.0], 4, known), 8.0);
            assert_eq!(run([0.0, 3.0], 4, known), 12.0);
            assert_eq!(run([0.0, 2.0], 5, known), 10.0);
        }
    }
}

/// A step of a random program. Numbers of type `u8` select the form of the step, and the other numbers select operands or dimensions.
#[derive(Clone, Debug)]
enum Move {
    Unary(u8, usize),
    Binary(u8, usize, usize),
    Select(usize, usize, usize),
    Sum(usize, usize),
    Amax(usize, usize),
    Transpose(usize),
    Slice(usize),
    View(u8, usize),
    Cumsum(usize),
    Product(usize, usize),
    Cat(usize, usize, u8),
    Detach(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let pick = 0usize..1000;
    let one = prop_oneof![
        4 => (0u8..6, pick.clone()).prop_map(|(op, x)| Move::Unary(op, x)),
        8 => (0u8..6, pick.clone(), pick.clone()).prop_map(|(op, x, y)| Move::Binary(op, x, y)),
        2 => (pick.clone(), pick.clone(), pick.clone()).prop_map(|(m, x, y)| Move::Select(m, x, y)),
        2 => (pick.clone(), 0usize..3).prop_map(|(x, d)| Move::Sum(x, d)),
        1 => (pick.clone(), 0usize..3).prop_map(|(x, d)| Move::Amax(x, d)),
        1 => pick.clone().prop_map(Move::Transpose),
        1 => pick.clone().prop_map(Move::Slice),
        3 => (0u8..5, pick.clone()).prop_map(|(form, x)| Move::View(form, x)),
        1 => pick.clone().prop_map(Move::Cumsum),
        2 => (pick.clone(), pick.clone()).prop_map(|(x, y)| Move::Product(x, y)),
        2 => (pick.clone(), pick.clone(), 0u8..4).prop_map(|(x, y, form)| Move::Cat(x, y, form)),
        1 => pick.prop_map(Move::Detach),
    ];
    proptest::collection::vec(one, 1..60)
}

/// Records the steps of a random program. Skips steps whose shapes do not fit, and sums and products whose sums have more than `most`
/// terms. Leaves out results of 3,000 elements or more.
fn play<'t>(tape: &'t Tape<f64>, shapes: &[Vec<usize>], moves: &[Move], most: usize) -> Vec<Var<'t, f64>> {
    let leaf = |shape: &Vec<usize>| {
        let seed = shape.len() as f64 + 1.0;
        tape.var(&Tensor::from_fn(&shape[..], |i| {
            let place = i.iter().fold(seed, |sum, &k| 1.7 * sum + k as f64);
            (place * 12.9898).sin()
        }))
    };
    let mut values: Vec<Var<'t, f64>> = shapes.iter().map(leaf).collect();
    for step in moves {
        let at = |k: &usize| values[k % values.len()];
        let result = match step {
            Move::Unary(op, x) => {
                let x = at(x);
                Some(match op {
                    0 => x.exp(),
                    1 => x.tanh(),
                    2 => -x,
                    3 => x.abs(),
                    4 => x.sigmoid(),
                    _ => x * 0.5,
                })
            }
            Move::Binary(op, x, y) => {
                let (x, y) = (at(x), at(y));
                match op {
                    0 => x.try_add(y).ok(),
                    1 => x.try_mul(y).ok(),
                    2 => x.try_sub(y).ok(),
                    3 => x.try_maximum(y).ok(),
                    4 => x.try_lt(y).ok(),
                    _ => x.try_hypot(y).ok(),
                }
            }
            Move::Select(mask, x, y) => try_where_(&at(mask).gt(0.0), &at(x), at(y)).ok(),
            Move::Sum(x, dim) if at(x).shape().get(*dim).is_some_and(|&terms| terms > most) => None,
            Move::Sum(x, dim) => at(x).try_sum_keepdim(*dim as isize).ok(),
            Move::Amax(x, dim) => at(x).try_amax_keepdim(*dim as isize).ok(),
            Move::Transpose(x) => at(x).try_transpose(0, -1).ok(),
            Move::Slice(x) => at(x).try_slice(0, (1.., 2)).ok(),
            Move::View(form, x) => {
                let x = at(x);
                match form {
                    0 => x.try_flip([0]).ok(),
                    1 => x.try_flatten(0, -1).ok(),
                    // Repeats the value twice along a new first dimension, so that matrix products of the result are batched.
                    2 => x
                        .unsqueeze(0)
                        .try_expand(Shape::from([2]).iter().chain(x.shape().iter()).copied().collect::<Shape>())
                        .ok(),
                    3 => x.try_unfold(-1, 2, 1).ok(),
                    _ => x.try_select(0, -1).ok(),
                }
            }
            Move::Cumsum(x) if at(x).shape().first().is_some_and(|&terms| terms > most) => None,
            Move::Cumsum(x) => at(x).try_cumsum(0).ok(),
            Move::Product(x, _) if at(x).shape().last().is_some_and(|&terms| terms > most) => None,
            Move::Product(x, y) => at(x).try_matmul(at(y)).ok(),
            // Concatenates two or four parts, along the first or the last dimension.
            Move::Cat(x, y, form) => {
                let (x, y, dim) = (at(x), at(y), if form % 2 == 0 { 0 } else { -1 });
                if *form < 2 { try_cat(&[x, y], dim).ok() } else { try_cat(&[x * 2.0, x.tanh(), y, x.sin()], dim).ok() }
            }
            Move::Detach(x) => Some(at(x).detach()),
        };
        values.extend(result.filter(|value| value.shape().numel() < 3_000));
    }
    values
}

use wengert_tensor::ops::{try_cat, try_where_};

fn roots_of(values: &[Var<'_, f64>], several: bool) -> Vec<NodeIndex> {
    match several {
        true => values.iter().step_by(3).map(|value| value.index).collect(),
        false => vec![values[values.len() - 1].index],
    }
}

fn evaluated(tape: &Tape<f64>, roots: &[NodeIndex], simplify: bool) -> Vec<Tensor<f64>> {
    let record = tape.record.borrow();
    let plan = plan(&record, roots, DType::F64, simplify);
    let run = || record.run(&plan, wengert_tensor::Site::here("test")).unwrap();
    let first = run();
    // The second run compiles the regions (consecutive small steps). Every run computes the same bits, and results with the same layouts.
    for again in [run(), run()] {
        for (x, y) in first.iter().zip(&again) {
            assert_eq!((x.shape(), x.strides(), bits(x)), (y.shape(), y.strides(), bits(y)));
        }
    }
    first
}

fn bits(x: &Tensor<f64>) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Records a recurrence of small matrices. Its plan has all kinds of steps that may be in a region (consecutive small steps). Returns the
/// loss and its gradient. Each `factor` gives another plan.
fn filter<'t>(x: Var<'t, f64>, factor: f64) -> [Var<'t, f64>; 2] {
    let mut p = x.tape().constant(Tensor::eye(2));
    let mut loss = x.tape().constant(0.0);
    for _ in 0..4 {
        p = x.matmul(p).matmul(x.t()).tanh() + p;
        let (row, turned) = (p.slice(0, ..1), p.flip([0]).t());
        p -= row.t().matmul(row) * factor;
        // Batches of products. In the second one, both matrices of the batch are multiplied by the same matrix.
        let pair = try_cat(&[p, turned], 0).unwrap().reshape([2, 2, 2]);
        p += (pair.matmul(pair.transpose(1, 2)) + pair.matmul(p)).tanh().sum(0) * 0.25;
        // A difference of copies shifted along one dimension, and a product of copies shifted along the other. The gradients of a slice and
        // of a diagonal are 0 outside of it.
        let q = p.pad(&[1, 1, 1, 1], PadMode::Constant(0.0)) * factor;
        p += (q.slice(0, ..2) - q.slice(0, 2..)).slice(1, 1..3) + (q.slice(1, ..2) * q.slice(1, 2..)).slice(0, 1..3);
        loss += p.diagonal(0, 0, 1).exp().sum(..) + p.pad(&[1, 0, 0, 1], PadMode::Constant(0.0)).sum(..);
        loss += try_cat(&[turned.reshape([4]), row.reshape([2])], 0).unwrap().square().sum(..);
    }
    let [dx] = loss.grad([x]);
    [loss, dx]
}

/// Checks that a compiled region (consecutive small steps) computes the same bits as its separate steps, for inputs of several layouts.
/// First each layout has its own plan, and then all layouts share one plan.
#[test]
fn a_region_computes_the_bits_of_its_steps() {
    let wide = Tensor::from_fn([6, 5], |i| ((i[0] * 5 + i[1]) as f64).sin());
    let part = |row: usize| wide.slice(0, row as isize..row as isize + 2).slice(1, 1..3);
    let inputs =
        [part(0), part(0).contiguous(), part(1), part(2).t(), part(3).flip([0]), part(4).slice(1, ..1).expand([2, 2])];
    let plans = (0..2 * inputs.len()).map(|number| number as f64 * 0.125 * f64::from(number < inputs.len()));
    for (number, factor) in plans.enumerate() {
        for x in [&inputs[number % inputs.len()]; 3] {
            let tape = Tape::new();
            let roots = filter(tape.var(x), factor).map(|root| root.index);
            let record = tape.record.borrow();
            let steps = plan(&record, &roots, DType::F64, true);
            let by_steps = record.run(&steps, wengert_tensor::Site::here("test")).unwrap();
            assert!(!steps.regions.iter().any(|region| region.is_compiled()), "a plan's first run goes step by step");
            drop(record);
            let values = tape.into_values(&roots, wengert_tensor::Site::here("test")).unwrap();
            assert_eq!(
                values.iter().map(bits).collect::<Vec<_>>(),
                by_steps.iter().map(bits).collect::<Vec<_>>(),
                "{number}"
            );
        }
    }
}

/// Checks a region (consecutive small steps) whose first step computes its output in another order than the row-major one.
#[test]
fn a_region_reads_values_in_the_order_in_which_they_were_computed() {
    let x = Tensor::from_fn([40, 3], |i| ((i[0] * 3 + i[1]) as f64).sin());
    let c = Tensor::from([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]);
    let w = Tensor::from([[1.0, 2.0], [-1.0, 0.5]]);
    let run = || {
        let tape = Tape::new();
        let (x, w) = (tape.var(&x), tape.var(&w));
        let distances = (x.unsqueeze(1) - &c).square().sum(2);
        let y = distances.matmul(w).tanh().matmul(w).tanh();
        let [dx, dw] = y.sum(..).grad([x, w]);
        [y, dx, dw].map(|value| bits(&value.value()))
    };
    let first = run();
    for _ in 0..3 {
        assert_eq!(run(), first);
    }
}

/// Checks that consecutive steps form a compiled region if their values have few elements, also on flipped data. A step whose value has
/// many elements is in no region.
#[test]
fn small_steps_form_a_region() {
    let compiled = |x: &Tensor<f64>, scale: usize| {
        let tape = Tape::<f64>::new();
        let [loss, dx] = filter(tape.var(x), 0.5);
        let large = tape.var(&Tensor::ones([scale, 300])).exp().matmul(tape.var(&Tensor::ones([300, 2]))) * loss;
        let roots = [loss, dx, large.tanh().sum(..)].map(|root| root.index);
        let record = tape.record.borrow();
        let plan = plan(&record, &roots, DType::F64, true);
        for _ in 0..2 {
            record.run(&plan, wengert_tensor::Site::here("test")).unwrap();
        }
        let steps = plan.regions.iter().filter(|region| region.is_compiled()).map(|region| region.len()).sum::<usize>();
        (steps, plan.steps.len())
    };
    let x = Tensor::from([[0.5, -0.25], [0.125, 0.75]]);
    let (inside, all) = compiled(&x, 300);
    assert!(inside > 160 && inside < all, "{inside} of {all}");
    assert_eq!(compiled(&x.flip([0]), 300), (inside, all));
}

/// Checks concatenations of the states of a recurrence, whose steps form a region (a sequence of small steps). The concatenation is a step of
/// the region only if it is small, and if all its operands are computed in regions.
#[test]
fn a_region_writes_parts_of_a_concatenation_or_all_of_it() {
    // The columns: the number of states, the size of a further operand, and whether the concatenation is in a region.
    for (count, more, is_regional) in [(40, 0, true), (110, 0, false), (110, 600, false), (40, 600, false)] {
        let tape = Tape::<f64>::new();
        let mut parts = Vec::new();
        // The number of elements is above the limit for operands that a region writes, so this operand is computed outside.
        let large = tape.var(&Tensor::from_fn([more / 30, 30], |i| (i[0] + 2 * i[1]) as f64)).sin().exp();
        let weights = tape.var(&Tensor::from_fn([40, 40], |i| (i[0] as f64 * 0.7 + i[1] as f64).cos()));
        let mut state = tape.var(&Tensor::from_fn([40], |i| (i[0] as f64).sin()));
        for _ in 0..count {
            state = (state.unsqueeze(1) + weights).amax(0).tanh();
            parts.push(state);
        }
        if more > 0 {
            parts.push(large.reshape([more]));
        }
        let root = wengert_tensor::ops::cat(&parts, 0).index;
        let record = tape.record.borrow();
        let plan = plan(&record, &[root], DType::F64, true);
        let is_in_place = |step: &Step| matches!(step.work, Work::Cat { in_place: Some(_), .. });
        let concatenation = plan.steps.iter().position(is_in_place).unwrap();
        let found = plan.regions.iter().any(|region| region.contains(concatenation));
        assert_eq!(found, is_regional, "{count} states and {more} elements");
        let expected = bits(&one_at_a_time(&tape, &[root]).unwrap()[0]);
        for _ in 0..3 {
            assert_eq!(bits(&record.run(&plan, wengert_tensor::Site::here("test")).unwrap()[0]), expected);
        }
        let inside: usize = plan.regions.iter().filter(|region| region.is_compiled()).map(|region| region.len()).sum();
        assert!(inside > 2 * count, "{inside} of {}", plan.steps.len());
    }
}

/// Returns true for the steps that the test of long sums uses in its programs. Exponentials, maxima of two operands, comparisons, `hypot`
/// and selections are left out: some of them amplify small differences, or jump.
fn is_smooth(step: &Move) -> bool {
    match step {
        Move::Unary(op, _) => *op != 0,
        Move::Binary(op, ..) => *op < 3,
        Move::Select(..) => false,
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Checks that fused evaluation gives the same bits as the evaluation of one node at a time. The reductions and products of the
    /// programs sum at most two terms, so that the order of the terms does not change the bits.
    #[test]
    fn fused_equals_one_at_a_time(
        shapes in prop_oneof![
            proptest::collection::vec(proptest::collection::vec(0usize..3, 0..4), 1..4),
            // These shapes broadcast. They have up to 128 elements, which fill more than a few vector registers.
            proptest::collection::vec(proptest::collection::vec(1usize..3, 6..8), 1..4),
        ],
        moves in moves(),
        several in any::<bool>(),
        simplify in any::<bool>(),
    ) {
        let tape = Tape::new();
        let values = play(&tape, &shapes, &moves, 2);
        let roots = roots_of(&values, several);
        let expected = one_at_a_time(&tape, &roots).unwrap();
        for (got, expected) in evaluated(&tape, &roots, simplify).iter().zip(&expected) {
            prop_assert_eq!(got.shape(), expected.shape());
            for (x, y) in got.iter().zip(expected.iter()) {
                // The sign of a zero may differ, because the engine may start a sum from 0: -0 + 0 is 0.
                let same = x.to_bits() == y.to_bits() || x == 0.0 && y == 0.0 || x.is_nan() && y.is_nan();
                prop_assert!(same, "{} for {}", x, y);
            }
        }
    }

    #[test]
    fn fused_is_close_to_one_at_a_time_where_sums_are_long(
        sizes in proptest::collection::vec(1usize..40, 3),
        which in proptest::collection::vec(proptest::collection::vec(0usize..3, 1..4), 1..4),
        moves in moves(),
        several in any::<bool>(),
        simplify in any::<bool>(),
    ) {
        // Shapes of the same rank broadcast: each size is 1, or a length that depends only on the position of the dimension.
        let shapes: Vec<Vec<usize>> = which
            .iter()
            .map(|which| which.iter().enumerate().map(|(k, &w)| if w == k { 1 } else { sizes[k] }).collect())
            .collect();
        let tape = Tape::new();
        let moves: Vec<Move> = moves.into_iter().filter(is_smooth).collect();
        let values = play(&tape, &shapes, &moves, usize::MAX);
        let roots = roots_of(&values, several);
        let expected = one_at_a_time(&tape, &roots).unwrap();
        for (got, expected) in evaluated(&tape, &roots, simplify).iter().zip(&expected) {
            prop_assert_eq!(got.shape(), expected.shape());
            let scale = expected.iter().filter(|x| x.is_finite()).fold(1e-3f64, |most, x| most.max(x.abs()));
            for (x, y) in got.iter().zip(expected.iter()) {
                let close = (x - y).abs() <= 1e-7 * scale || x == y || x.is_nan() && y.is_nan();
                // Results with values above 1e100 are not compared, because repeated products overflow.
                prop_assert!(close || scale > 1e100, "{} for {}", x, y);
            }
        }
    }
}

#[test]
fn any_number_of_dimensions() {
    for rank in [63, 64, 65, 70] {
        let mut shape = vec![1; rank];
        (shape[0], shape[rank - 1]) = (80, 60);
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones(shape.clone()));
        let rows = (x * 2.0).sum_keepdim(0);
        let [dx] = rows.square().sum(..).grad([x]);
        assert_eq!(rows.value().to_vec(), [160.0; 60]);
        assert_eq!(dx.value().to_vec(), vec![640.0; 4800]);
        assert_eq!(Tensor::<f64>::ones(shape).sum(0).to_vec(), [80.0; 60]);
    }
}

/// Returns the number of nodes that the evaluations after the first one compute, while a chain of `length` steps is recorded. `step`
/// records a step and may read values.
fn work(length: usize, mut step: impl for<'t> FnMut(Var<'t, f64>) -> Var<'t, f64>) -> usize {
    let tape = Tape::new();
    let mut x = tape.var(&Tensor::from([0.5, 1.0, 1.5]));
    for _ in 0..length {
        x = step(x);
    }
    tape.record.borrow().n_recomputed.get()
}

#[test]
fn reading_while_recording_computes_only_new_nodes() {
    // Here the test reads values that are computed from the variables of the chain, but not the values of these variables themselves.
    let beside = |x: Var<'_, f64>| (x * 0.5).value().numel();
    let step = |length| {
        work(length, |x| {
            beside(x);
            x.sin().roll(1, 0) + x
        })
    };
    let (short, long) = (step(50), step(200));
    assert!(long <= 5 * short && long < 12 * 200, "{short} and {long} nodes");
    // Here the test reads the values of the chain's variables themselves.
    let step = |length| {
        work(length, |x| {
            let x = x.sin();
            x.value();
            x
        })
    };
    assert_eq!(step(200), 199);
}

#[test]
fn large_frontiers_are_kept_after_repeated_evaluations() {
    let tape = Tape::<f64>::new();
    let mut state: Vec<Var<'_, f64>> = (0..20).map(|i| tape.var(&Tensor::scalar(f64::from(i)))).collect();
    for _ in 0..100 {
        state[0].exp().value();
        state.rotate_left(1);
        state.iter_mut().for_each(|x| *x = x.sin());
    }
    let total: f64 = state.iter().map(|x| x.item()).sum();
    assert!(total.is_finite());
    let work = tape.record.borrow().n_recomputed.get();
    assert!(work < 10 * tape.len(), "{work} nodes computed of {}", tape.len());
}

/// Requests the values of all nodes of a large group, which are evaluated together. A search of the group for each node would take minutes.
#[test]
fn all_members_of_a_large_group_are_requested_at_once() {
    let tape = Tape::<f64>::new();
    let inputs: Vec<Var<'_, f64>> = (0..6000).map(|k| tape.var(&Tensor::scalar(f64::from(k)))).collect();
    let loss = inputs.iter().fold(tape.constant(0.0), |sum, &x| sum + x * x);
    let gradients = loss.grad_slice(&inputs);
    let values = tape.values_slice(&gradients);
    assert!(values.iter().enumerate().all(|(k, value)| value.item() == 2.0 * k as f64));
}

#[test]
fn gradients_read_one_by_one_are_computed_together() {
    for or_zeros in [false, true] {
        let tape = Tape::<f64>::new();
        let inputs: [Var<'_, f64>; 8] = std::array::from_fn(|i| tape.var(&Tensor::scalar(1.0 + i as f64)));
        let y = inputs.iter().fold(inputs[0], |y, &x| (y * x).sin());
        y.value();
        let gradients = if or_zeros { y.grad_or_zeros(inputs) } else { y.grad(inputs) };
        gradients[3].value();
        let work = tape.record.borrow().n_recomputed.get();
        let read: Vec<f64> = gradients.iter().map(|gradient| gradient.item()).collect();
        assert_eq!(tape.record.borrow().n_recomputed.get(), work, "nothing was computed again");
        let tape = Tape::<f64>::new();
        let again: [Var<'_, f64>; 8] = std::array::from_fn(|i| tape.var(&Tensor::scalar(1.0 + i as f64)));
        let y = again.iter().fold(again[0], |y, &x| (y * x).sin());
        let expected = tape.values(y.grad(again));
        assert_eq!(read, expected.map(|gradient| gradient.item()));
    }
}

#[test]
fn values_read_at_any_time_equal_one_evaluation() {
    // The program has views, a product, a reduction and a cumulative sum. If `read` is true, values are read in each
    // iteration. Otherwise all values are read at the end.
    let program = |tape: &Tape<f64>, read: bool| {
        let mut x = tape.var(&Tensor::from([[0.5, -1.0], [2.0, 0.25]]));
        let mut values = Vec::new();
        for _ in 0..6 {
            let a = x.t().matmul(x);
            let b = (a.cumsum(0) + x.sum_keepdim(1)).tanh();
            x = b.roll(1, 1) * 0.5 + a.select(0, 0);
            for value in [a + x, b.exp(), x] {
                values.push(value);
                if read {
                    value.value();
                }
            }
        }
        tape.values_slice(&values)
    };
    let (at_once, in_turn) = (program(&Tape::new(), false), program(&Tape::new(), true));
    assert_eq!(at_once, in_turn);
}

/// Checks that large data with stride 0 is treated as an expansion of smaller data. The data is a leaf, or a value that was computed
/// before.
#[test]
fn expanded_data_is_computed_before_the_expansion() {
    let huge = 1 << 40;
    let tape = Tape::<f64>::new();
    let data = Tensor::from([[0.5], [2.0]]).expand([2, huge]);
    let x = tape.var(&data);
    let total = |terms: [f64; 2]| (terms[0] + terms[1]) * huge as f64;
    let y = x * 2.0 + 1.0;
    assert_eq!(y.exp().sum(..).item(), total([2f64.exp(), 5f64.exp()]));
    let [dx] = y.square().sum(..).grad([x]);
    assert_eq!((dx.value().shape(), dx.value().strides()), (data.shape(), &[1, 0][..]));
    assert_eq!(dx.value().get(&[1, huge - 1]), Some(20.0));
    // Returns a transposed, sliced and flipped view. Below, its argument is `y`, whose value is known, or an equal variable whose value is
    // not known yet.
    fn turned(x: Var<'_, f64>) -> Var<'_, f64> {
        x.t().slice(0, 5..105).flip(1).unsqueeze(0)
    }
    let expected = Tensor::from([5.0, 2.0]).expand([1, 100, 2]);
    assert_eq!(y.value().strides(), [1, 0]);
    assert_eq!((y.t() * 1.0).reshape([1 << 20, 1 << 20, 2]).flip([0, 2]).amax(..).item(), 5.0);
    assert_eq!(turned(y).value(), expected);
    assert_eq!(turned(x * 2.0 + 1.0).value(), expected);
    assert_eq!(y.exp().sum(..).item(), total([2f64.exp(), 5f64.exp()]));
    // A product sums over a dimension in which both operands are expanded.
    assert_eq!(x.matmul(x.t()).value(), Tensor::from([[0.25, 1.0], [1.0, 4.0]]) * huge as f64);
    // The loss checks that each probability is between 0 and 1. The check reads only the elements before the expansion.
    let (p, target) = (tape.var(&Tensor::from([0.5]).expand([huge])), Tensor::from([1.0]).expand([huge]));
    let loss = p.binary_cross_entropy(target, None, LossReduction::Sum);
    assert!((loss.item() / huge as f64 - 2f64.ln()).abs() < 1e-15);
    let refused = (p + 1.0).try_binary_cross_entropy(p, None, LossReduction::Sum).and_then(Var::try_value);
    assert!(refused.unwrap_err().to_string().contains("between 0 and 1"));
}

/// Checks that a plan is used only for data that is expanded in the same way.
#[test]
fn a_plan_does_not_serve_data_with_another_expansion() {
    let size = 1 << 12;
    let line = Tensor::from_fn([size, 1], |index| index[0] as f64 / size as f64);
    let sum = |x: &Tensor<f64>| x.iter().map(|x| x.exp() * x).sum::<f64>();
    for (small, copies) in [(&line, size), (&line.t(), size), (&Tensor::ones([1]), size * size), (&line, size)] {
        let tape = Tape::<f64>::new();
        let data = small.expand([size, size]);
        let x = tape.var(&data);
        let (y, expected) = (x.exp() * x, sum(small) * copies as f64);
        assert!((y.sum(..).item() - expected).abs() < 1e-12 * expected);
        assert_eq!(x.value().strides(), data.strides());
    }
}
/// Checks that an evaluation refuses a reshape that joins an expanded dimension with another one. The reshape needs a copy of all elements,
/// even if one number in memory stands for them, and memory cannot hold 2⁴² elements. Without the copy, the sum would read each of these
/// elements.
#[test]
fn a_reshape_that_needs_a_copy_of_an_expansion_is_refused() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::scalar(0.5).expand([4, 1]));
    let huge = 1usize << 40;
    let joined = x.expand([4, huge]).reshape([2, 2 * huge]);
    let refused = joined.exp().sum(..).try_value().unwrap_err();
    assert!(refused.to_string().contains("memory cannot hold a tensor of shape [2, 2199023255552]"), "{refused}");
}
