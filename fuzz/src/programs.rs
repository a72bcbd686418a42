//! Random programs on small tensors, computed in several ways: at once, recorded, without simplification, and in batches. The derivatives in
//! reverse and forward mode must be adjoint.

use wengert::autograd::transforms::Vmap;
use wengert::prelude::*;
use wengert::tensor::ops::{PadMode, ScatterReduction, TensorLike, try_cat};
use wengert::tensor::plan::set_simplification;

/// The largest number of elements of a value.
const MOST: usize = 1 << 12;

/// The largest number of operations.
const LONGEST: usize = 24;

/// The relative error of rounding that is allowed. The programs have few operations, and their condition numbers are moderate.
const TOLERANCE: f64 = 1e-8;

/// The number of examples in a batch.
const BATCH: usize = 3;

/// An operation: its kind, the indices of its two operands, and a parameter.
struct Step([usize; 4]);

/// Returns the inputs and the operations, or `None` for fewer than three bytes. An input is a shape, and true if its
/// data is expanded.
fn parsed(data: &[u8]) -> Option<(Vec<(Vec<usize>, bool)>, Vec<Step>)> {
    const SHAPES: [&[usize]; 8] = [&[2, 3], &[3], &[1, 3], &[2, 1], &[], &[3, 2], &[4, 2, 3], &[3, 3]];
    let (first, rest) = data.split_first_chunk::<3>()?;
    let inputs = first.iter().map(|&byte| (SHAPES[usize::from(byte) % 8].to_vec(), byte & 8 != 0)).collect();
    let steps = rest.as_chunks::<4>().0.iter().take(LONGEST).map(|bytes| Step(bytes.map(usize::from))).collect();
    Some((inputs, steps))
}

/// The number of kinds of operations.
const KINDS: usize = 40;

/// The kinds of operations whose derivative jumps: maxima, and norms at 0. Where operands are equal, rounding decides about the derivative.
const JUMPS: [usize; 6] = [3, 11, 25, 31, 32, 33];

/// Returns the result of a step, or `None` if the operation refuses the operands or the result is too large.
fn result<A: TensorLike<Elem = f64>>(step: &Step, values: &[A]) -> Option<A> {
    let Step([kind, x, y, parameter]) = *step;
    let (x, y) = (&values[x % values.len()], &values[y % values.len()]);
    let result = match kind % KINDS {
        24.. => indexed(kind % KINDS, x, y, parameter),
        kind => plain(kind, x, y, parameter),
    };
    result.filter(|result| result.shape().numel() <= MOST)
}

/// Returns the result of an elementwise operation, a reduction, a view or a product.
fn plain<A: TensorLike<Elem = f64>>(kind: usize, x: &A, y: &A, parameter: usize) -> Option<A> {
    let dim = (parameter % 3) as isize;
    let shape = x.shape();
    let result = match kind {
        0 => x.try_add(y),
        1 => x.try_sub(y),
        2 => x.try_mul(y),
        3 => x.try_maximum(y),
        4 => x.try_sin(),
        5 => x.try_tanh(),
        6 => x.try_neg(),
        7 => x.try_sigmoid(),
        8 => x.try_sum(dim),
        9 => x.try_sum_keepdim(dim),
        10 => x.try_mean_keepdim(dim),
        11 => x.try_amax_keepdim(dim),
        12 => x.try_transpose(-1, -2),
        13 => x.try_flip(dim),
        14 => x.try_narrow(dim, parameter / 3 % 2, 1 + parameter / 6 % 2),
        15 => x.try_reshape(-1),
        16 => x.try_unsqueeze(0),
        17 if shape.rank() < 5 => x.try_expand([&[1 + parameter % 3], &shape[..]].concat()),
        18 => x.try_matmul(y),
        19 => try_cat(&[x.clone(), y.clone(), x.clone()], dim),
        20 => x.try_cumsum(dim),
        21 => x.try_softmax(-1),
        22 => x.try_sum(..),
        23 => y.try_square().and_then(|square| x.try_div(&square.try_add(1.0)?)),
        _ => return None,
    };
    result.ok()
}

/// Returns the result of an operation that computes tensors by a kernel of its own, and is recorded as several operations: padding,
/// distances, indexing, norms and others.
fn indexed<A: TensorLike<Elem = f64>>(kind: usize, x: &A, y: &A, parameter: usize) -> Option<A> {
    let axis = parameter % 3;
    let dim = axis as isize;
    let (shape, more) = (x.shape(), parameter / 3);
    let size = shape.get(axis).copied().unwrap_or(1);
    let order = [1.0, 2.0, f64::INFINITY, 3.0][more % 4];
    // An index in the range of the dimension, with repetitions, for each element of a shape.
    let numbers = |sizes: &[usize]| {
        (size > 0).then(|| {
            Tensor::<i64>::from_fn(sizes, |at| {
                let position = at.iter().fold(more, |sum, &i| 3 * sum + i);
                (position * 7 % 11 % size) as i64
            })
        })
    };
    let line = || numbers(&[1 + more % 4]);
    let table = || {
        let mut sizes = shape.to_vec();
        *sizes.get_mut(axis)? = 1 + more % 5;
        numbers(&sizes)
    };
    let reduction = [
        ScatterReduction::Sum,
        ScatterReduction::Prod,
        ScatterReduction::Mean,
        ScatterReduction::Amax,
        ScatterReduction::Amin,
    ][more % 5];
    let result = match kind {
        24 => {
            let [left, right] = [parameter % 4, parameter / 4 % 4].map(|size| size as isize - 1);
            let mode = [PadMode::Constant(0.5), PadMode::Reflect, PadMode::Replicate, PadMode::Circular];
            let sizes = [left, right, right, left];
            x.try_pad(&sizes[..2 + parameter / 64 % 2 * 2], mode[parameter / 16 % 4])
        }
        25 => x.try_cdist(y, order),
        26 => x.try_index_select(dim, &line()?),
        27 => x.try_gather(dim, &table()?),
        28 => x.try_scatter(dim, &table()?, y),
        29 => x.try_scatter_add(dim, &table()?, y),
        30 => x.try_index_add(dim, &numbers(&[y.shape().get(axis).copied()?])?, y, 0.5),
        31 => x.try_scatter_reduce(dim, &table()?, y, reduction, more / 5 % 2 == 0),
        32 => x.try_pdist(order),
        33 => x.try_vector_norm_keepdim(order, dim),
        34 => x.try_var_keepdim(dim, 0.0),
        35 => x.try_layer_norm([*shape.last()?], None, None, 0.1),
        36 => x.try_roll(more as isize, dim),
        37 => x.try_lerp(y, 0.25),
        38 => x.try_addcmul(y, y, 0.5),
        _ => x.try_cumprod(dim),
    };
    result.ok()
}

/// Returns the inputs followed by the results of the steps. A step without a result is left out.
fn run<A: TensorLike<Elem = f64>>(steps: &[Step], inputs: &[A]) -> Vec<A> {
    let mut values = inputs.to_vec();
    for step in steps {
        values.extend(result(step, &values));
    }
    values
}

fn largest<'t>(values: impl IntoIterator<Item = &'t Tensor<f64>>) -> f64 {
    values.into_iter().flat_map(|value| value.to_vec()).fold(1.0, |most, x| x.abs().max(most))
}

/// Asserts that the values are equal except for rounding, or that both are NaN. `scale` is the magnitude of the intermediate values.
fn assert_close(way: &str, got: &Tensor<f64>, expected: &Tensor<f64>, scale: f64) {
    assert_eq!(got.shape(), expected.shape(), "{way}");
    for (x, y) in got.iter().zip(expected.iter()) {
        assert!((x - y).abs() <= TOLERANCE * scale || x == y || x.is_nan() && y.is_nan(), "{way}: {x}, {y}");
    }
}

/// Returns input number `number` for an example of a batch.
fn input(number: usize, (shape, is_expanded): &(Vec<usize>, bool), example: usize) -> Tensor<f64> {
    let element = |index: &[usize]| {
        let position = index.iter().fold(3 * number + 7 * example, |sum, &i| 5 * sum + i);
        (position as f64 * 0.37).sin() + 0.1
    };
    let whole = Tensor::from_fn(shape.clone(), |index| element(index));
    match shape.len() {
        1.. if *is_expanded => whole.narrow(0, 0, 1).expand(shape.clone()),
        _ => whole,
    }
}

/// Runs the program that the bytes describe in all ways, and compares the results.
pub fn programs(data: &[u8]) {
    let Some((inputs, steps)) = parsed(data) else { return };
    let example = |example| -> Vec<Tensor<f64>> {
        inputs.iter().enumerate().map(|(number, of)| input(number, of, example)).collect()
    };
    let first_example = example(0);
    let eager = run(&steps, &first_example);
    let scale = largest(&eager);
    if eager.len() == first_example.len() || scale > 1e30 {
        return;
    }
    for simplify in [true, false] {
        set_simplification(simplify);
        check_recorded(&steps, &first_example, &eager, scale);
    }
    set_simplification(true);
    check_batched(&steps, &(0..BATCH).map(example).collect::<Vec<_>>());
}

/// Compares the values of a tape with the eager ones: first the last value, then each value. Checks the derivatives of the last value if
/// the program has no operation of [`JUMPS`].
fn check_recorded(steps: &[Step], inputs: &[Tensor<f64>], eager: &[Tensor<f64>], scale: f64) {
    let tape = Tape::<f64>::new();
    let leaves: Vec<Var<'_, f64>> = inputs.iter().map(|x| tape.var(x)).collect();
    let values = run(steps, &leaves);
    assert_eq!(values.len(), eager.len(), "a recorded operation refuses other operands than an eager one");
    let last = values[values.len() - 1];
    assert_close("recorded", &last.value(), &eager[eager.len() - 1], scale);
    for (value, expected) in values.iter().zip(eager) {
        assert_close("read one by one", &value.value(), expected, scale);
    }
    if steps.iter().any(|Step([kind, ..])| JUMPS.contains(&(kind % KINDS))) {
        return;
    }
    let tape = Tape::<f64>::new();
    let leaves: Vec<Var<'_, f64>> = inputs.iter().map(|x| tape.var(x)).collect();
    let values = run(steps, &leaves);
    let total = values[values.len() - 1].sum(..);
    let direction = |x: &Tensor<f64>| tape.constant(x.cos() * 0.5);
    let pairs: Vec<_> = leaves.iter().zip(inputs).map(|(&leaf, x)| (leaf, direction(x))).collect();
    let forward = total.jvp(&pairs).item();
    let gradients: Vec<Tensor<f64>> = {
        let gradients = total.try_grad_or_zeros_slice(&leaves).expect("every operation has a derivative");
        tape.try_values_slice(&gradients).expect("gradients of small values")
    };
    let terms: Vec<f64> = gradients.iter().zip(inputs).map(|(g, x)| (g * x.cos() * 0.5).sum(..).item()).collect();
    let scale = scale * largest(&gradients) * MOST as f64;
    assert!(
        (terms.iter().sum::<f64>() - forward).abs() <= TOLERANCE * scale || scale > 1e100 || !forward.is_finite(),
        "reverse {terms:?}, forward {forward}"
    );
}

/// Compares the program on a batch with the program on each example.
fn check_batched(steps: &[Step], examples: &[Vec<Tensor<f64>>]) {
    let tape = Tape::<f64>::new();
    let stacked: Vec<Var<'_, f64>> = (0..examples[0].len())
        .map(|number| {
            let parts: Vec<Tensor<f64>> = examples.iter().map(|example| example[number].clone()).collect();
            tape.var(&stack(&parts, 0))
        })
        .collect();
    let mapped = tape.values_slice(&Vmap::new().record_slice(|inputs| run(steps, inputs), &stacked));
    for (example, inputs) in examples.iter().enumerate() {
        let expected = run(steps, inputs);
        let scale = largest(&expected);
        if scale > 1e30 {
            return;
        }
        assert_eq!(mapped.len(), expected.len());
        for (value, expected) in mapped.iter().zip(&expected) {
            assert_close("in a batch", &value.select(0, example as isize), expected, scale);
        }
    }
}
