//! Tests of sums of neighbours (stencils): the planner rewrites slices of their gradients.

use super::*;

/// Returns the weighted sum of neighbours of `x`, which is padded with zeros. Also returns the gradient of half the sum of its squares, and a
/// gradient that is computed from this gradient. Each entry of `shifts` has the start of a slice in both dimensions, and a weight. Neighbours
/// with equal weights have the same gradient.
fn stencil<'t>(x: Var<'t, f64>, pads: &[isize; 4], shifts: &[([usize; 2], f64)]) -> [Var<'t, f64>; 3] {
    let sizes = x.shape().sizes().to_vec();
    let padded = x.pad(pads, PadMode::Constant(0.0));
    let room = |axis: usize| padded.shape()[axis] as isize - sizes[axis] as isize;
    let start = |axis: usize, shift: usize| (shift as isize).min(room(axis)).max(0) as usize;
    let len = |axis: usize| sizes[axis].min(padded.shape()[axis]);
    let neighbours = shifts.iter().map(|&([rows, columns], weight)| {
        padded.narrow(0, start(0, rows), len(0)).narrow(1, start(1, columns), len(1)) * weight
    });
    let sum = neighbours.reduce(|sum, neighbour| sum + neighbour).unwrap();
    let [first] = (sum.square() * 0.5).sum(..).grad([x]);
    let [second] = (first.square() * x).sum(..).grad([x]);
    [sum, first, second]
}

/// Checks that slices of sums of adjoints, and sums of shifts of one value, are rewritten without changing a result. All numbers are
/// integers, so the order of a sum does not matter.
#[test]
fn rewritten_stencils_equal_the_separate_steps() {
    let equal: &[([usize; 2], f64)] =
        &[([0, 1], 1.0), ([2, 1], 1.0), ([1, 0], 1.0), ([1, 2], 1.0), ([1, 1], -4.0), ([0, 0], 2.0), ([2, 2], 2.0)];
    let different: &[([usize; 2], f64)] = &[([0, 1], 3.0), ([2, 1], -1.0), ([1, 0], 2.0), ([1, 2], 5.0)];
    let pads = [[1, 1, 1, 1], [2, 0, 0, 2], [0, 2, 1, 0], [-1, 2, 2, -1], [0, 0, 3, 3], [4, 4, 0, 1], [0, 0, 0, 0]];
    let wide = Tensor::from_fn([9, 7], |i| ((i[0] * 5 + i[1] * 3) % 7) as f64 - 3.0);
    let row = wide.narrow(0, 0, 1);
    let inputs = [wide.clone(), wide.t(), row.clone(), row.expand([4, 7]), wide.narrow(1, 0, 1), wide.flip([1])];
    for (x, pads, shifts) in
        inputs.iter().flat_map(|x| pads.iter().flat_map(move |p| [(x, p, equal), (x, p, different)]))
    {
        let tape = Tape::new();
        let roots = stencil(tape.var(x), pads, shifts).map(|root| root.index);
        let record = tape.record.borrow();
        let expected = one_at_a_time(&tape, &roots).unwrap();
        let steps = plan(&record, &roots, DType::F64, true);
        for _ in 0..3 {
            let values = record.run(&steps, wengert_tensor::Site::here("test")).unwrap();
            assert_eq!(values, expected, "{pads:?} {shifts:?} {x}");
        }
    }
}

/// Checks the plan for the gradient of a sum of neighbours. In each dimension, the plan makes only one copy of `x` and one of the gradient
/// with zeros around them.
#[test]
fn shifts_of_a_gradient_are_slices_of_one_copy() {
    let tape = Tape::new();
    let x = tape.var(&Tensor::<f64>::ones([6, 5]));
    let shifts = [([0, 1], 1.0), ([2, 1], 1.0), ([1, 0], 1.0), ([1, 2], 1.0), ([1, 1], -4.0)];
    let [_, first, _] = stencil(x, &[1; 4], &shifts);
    let steps = plan(&tape.record.borrow(), &[first.index], DType::F64, true).steps;
    let count = |is: fn(&Work) -> bool| steps.iter().filter(|step| is(&step.work)).count();
    // Two adjoints pad `x`, and two pad the gradient.
    assert_eq!(count(|work| matches!(work, Work::Embed(..))), 4, "{steps:?}");
    assert_eq!(count(|work| matches!(work, Work::Cat { .. } | Work::Node(..))), 0, "{steps:?}");
}

/// Checks that slices of expanded adjoints and of zeros keep their shapes.
#[test]
fn slices_of_expanded_adjoints_keep_their_shapes() {
    let tape = Tape::new();
    let (x, y) = (tape.var(&Tensor::<f64>::ones([3, 5])), tape.var(&Tensor::<f64>::ones([7])));
    let [padded_x, padded_y] = [x, y].map(|x| x.pad(&[1, 1], PadMode::Constant(0.0)));
    let [dx, dy] = (padded_x.narrow(1, 1, 5).sum(..) + padded_y.narrow(0, 1, 7).sum(..)).grad([x, y]);
    assert_eq!((dx.sum(..).value().item(), dx.sum(1).value().to_vec()), (15.0, vec![5.0; 3]));
    assert_eq!((dx.square().sum(..) + dy.square().sum(..)).value().item(), 22.0);
    assert_eq!(x.pad(&[0, 0, 2, 2], PadMode::Constant(0.0)).narrow(0, 0, 2).sum(1).value().to_vec(), [0.0, 0.0]);
    // Two slices of a row, expanded and then shifted in different directions.
    let row = tape.var(&Tensor::from([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]));
    let shifted =
        |start: usize, pads: [isize; 2]| row.narrow(1, start, 6).expand([4, 6]).pad(&pads, PadMode::Constant(0.0));
    let sum = shifted(0, [1, 0]) + shifted(1, [0, 1]);
    assert_eq!(sum.value(), Tensor::from([[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 6.0]]).expand([4, 7]));
    assert_eq!(sum.sum(0).value().to_vec(), [8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 24.0]);
}

/// Checks that planning takes few steps if sums of neighbours are on top of each other, without factors between them.
#[test]
fn repeated_sums_of_neighbours_are_planned_quickly() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from_fn([5, 6], |i| (i[0] * 2 + i[1]) as f64));
    let mut y = x;
    for round in 0..30 {
        let padded = y.pad(&[1, 0, 0, 1], PadMode::Constant(0.0));
        let part = |rows, columns| padded.narrow(0, rows, 5).narrow(1, columns, 6);
        y = if round % 2 == 0 { part(0, 0) + part(1, 1) } else { part(0, 1) + part(1, 0) + part(1, 1) };
    }
    let [dx] = y.sum(..).grad([x]);
    let roots = [y.index, dx.index];
    let record = tape.record.borrow();
    let expected = one_at_a_time(&tape, &roots).unwrap();
    let steps = plan(&record, &roots, DType::F64, true);
    assert!(steps.steps.len() < 3000, "{}", steps.steps.len());
    assert_eq!(record.run(&steps, wengert_tensor::Site::here("test")).unwrap(), expected);
}
