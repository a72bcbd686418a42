//! Programs whose last dimension is short: decides when to run them lane by lane, and how to read their operands.
//!
//! `((x.unsqueeze(1) - y).square()).sum(2)` over `[r, c, d]` has rows of `d` elements, too few for an efficient loop over each row. The
//! other dimensions `[r, c]` are long, so a block is a range of `[r, c]`. For each position of the last dimension there is a *lane*, which
//! has the elements of that range. Instructions run along lanes. A reduction of rows combines lanes with each other. If an operand is
//! constant over the block at each position, each of its lanes is one number. If the program reduces rows of several dimensions, the row
//! takes the place of the last dimension.
//!
//! Operands that are constant along the last dimension have the same lane at all positions. These operands, and operands whose lanes are
//! single numbers, need no copy. Any other operand is first copied into an order in which the last dimension comes first, so that its lanes
//! are contiguous. The copy may have at most half as many elements as the program's shape.

use smallvec::SmallVec;

use crate::engine::access::{self, Access};
use crate::engine::program::{Output, Program};
use crate::engine::tiling::Tiling;
use crate::kernel::reduce::accumulator::Accumulator;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::short_axis::{LANE_BLOCK, LONG_DIMENSION, MAX_LANES, MIN_LANE, REDUCED_LANE_BLOCK};
use crate::{Axes, Layout, Reduction, Shape};

/// The way in which an operand is read. A lane has the elements of a block at one position of the short last dimension.
#[derive(Debug)]
pub(crate) enum LaneAccess {
    /// The operand is a number, or all lanes have the same elements.
    Same(Access),
    /// Within a block (a group of rows), all elements of a lane are the same number. The number of the next lane is `step` elements later.
    Numbers { space: IterationSpace<1>, step: isize },
    /// Each lane begins `step` elements after the previous lane, in a copy of the operand. The copy has the elements of the layout
    /// `arrangement` in row-major order.
    Copied { arrangement: Layout, space: IterationSpace<1>, step: usize },
}

/// The totals of one output, if the output is the reduction of a value.
#[derive(Debug)]
pub(crate) struct LaneTotals {
    /// The index of the value that is reduced.
    pub(crate) value: usize,
    /// The index of the output in the program's list of outputs.
    pub(crate) output: usize,
    /// The accumulator of one lane (one position of the short last dimension).
    pub(crate) accumulator: Accumulator,
    /// True if all lanes are first reduced to one lane, because the reduction covers the last dimension.
    pub(crate) reduces_lanes: bool,
    /// The layout of the output's elements, with the output's shape, in the array of totals. The totals are stored lane by lane.
    pub(crate) arrangement: Layout,
}

/// The way in which a program with a short last dimension runs lane by lane.
#[derive(Debug)]
pub(crate) struct ShortAxis {
    pub(crate) lane_count: usize,
    pub(crate) inputs: SmallVec<[LaneAccess; 4]>,
    /// The division of each lane (position of the short last dimension) into blocks.
    pub(crate) tiling: Tiling,
    pub(crate) reduced: SmallVec<[LaneTotals; 2]>,
}

impl ShortAxis {
    /// Returns the plan for inputs with the given layouts, and the layouts of the outputs. Returns `None` if the program cannot run lane by
    /// lane, or if it runs faster block by block.
    pub(crate) fn new(
        program: &Program,
        layouts: &[Option<Layout>],
        shape: &Shape,
    ) -> Option<(Self, SmallVec<[Layout; 2]>)> {
        let first = program.row_axis().unwrap_or(shape.rank().checked_sub(1)?);
        let lane_count: usize = shape[first..].iter().product();
        let length: usize = shape[..first].iter().product();
        let written =
            program.outputs().iter().any(|output| matches!(output, Output::Whole(_) | Output::Concatenated(..)));
        if written || !(2..=MAX_LANES).contains(&lane_count) || length < MIN_LANE {
            return None;
        }
        let order = iteration_order(&shape[..first]);
        let mut inputs = SmallVec::new();
        let mut run = length;
        for layout in layouts {
            let access = match layout {
                None => LaneAccess::Same(Access::Number),
                Some(layout) => LaneAccess::new(layout, shape, first, &order)?,
            };
            run = run.min(match &access {
                LaneAccess::Same(access) => access.run_length(),
                LaneAccess::Numbers { space, .. } | LaneAccess::Copied { space, .. } => space.run_length(),
            });
            inputs.push(access);
        }
        let mut reduced = SmallVec::new();
        let mut outputs = SmallVec::new();
        for (number, output) in program.outputs().iter().enumerate() {
            let layout = match *output {
                Output::Reduced(op, value, axes) => {
                    let totals = LaneTotals::new((op, value as usize, number), axes, shape, first, &order)?;
                    run = run.min(totals.accumulator.space.run_length());
                    reduced.push(totals);
                    Layout::contiguous(program.shape_of(output, shape))
                }
                _ => output_layout(&order, shape, first),
            };
            outputs.push(layout);
        }
        let cost: usize = program.instructions().iter().map(crate::scalar::instruction::Instruction::cost).sum();
        let block = if reduced.is_empty() { LANE_BLOCK } else { REDUCED_LANE_BLOCK };
        let longest = (block / lane_count).max(2 * MIN_LANE);
        let is_worth_it = run >= MIN_LANE && inputs.iter().any(|input| !matches!(input, LaneAccess::Same(_)));
        if !is_worth_it {
            return None;
        }
        let tiling = Tiling::of_lanes(length, run, longest, lane_count * (cost + 1));
        Some((ShortAxis { lane_count, inputs, tiling, reduced }, outputs))
    }
}

/// Returns the layout of an output with one element for each row of `shape`. A row consists of dimension `first` and all later dimensions.
/// In memory, the elements are in the order in which they are computed: the dimensions before `first` are iterated in `order`.
fn output_layout(order: &[usize], shape: &Shape, first: usize) -> Layout {
    let ones = std::iter::repeat_n(1, shape.rank() - first);
    let computed = Layout::contiguous(order.iter().map(|&axis| shape[axis]).chain(ones).collect());
    let all: Axes = order.iter().copied().chain(first..shape.rank()).collect();
    computed.unpermute(&all)
}

/// Returns the order in which the dimensions before a row are iterated; `sizes` has their sizes. If the last of these dimensions is short,
/// the longest one is moved to the end of the order.
fn iteration_order(sizes: &[usize]) -> Axes {
    let mut order: Axes = (0..sizes.len()).collect();
    // Of several longest dimensions, this is the last one, which stays at the end.
    let longest = (0..sizes.len()).max_by_key(|&axis| sizes[axis]);
    if let (Some(longest), Some(&last)) = (longest, sizes.last())
        && last < LONG_DIMENSION
    {
        order.remove(longest);
        order.push(longest);
    }
    order
}

impl LaneAccess {
    /// Returns the way to read an input of a program over `shape`. A row consists of dimension `first` and all later dimensions. The other
    /// dimensions are iterated in `order`. A lane has the elements at one position in the rows. Returns `None` if lanes are not regularly
    /// spaced, or if the copy of the operand would have more than half as many elements as `shape`.
    fn new(layout: &Layout, shape: &Shape, first: usize, order: &[usize]) -> Option<Self> {
        let whole = access::expand(layout, shape)?;
        let row = whole.keep_axes(|axis| axis >= first);
        let row = IterationSpace::new(row.shape(), [&row]);
        let kept = whole.keep_axes(|axis| axis < first).permute(order);
        let (1, (_, [step])) = (row.depth(), row.loop_of(0)) else { return None };
        if step == 0 {
            return Some(LaneAccess::Same(Access::new(&kept)));
        }
        let space = IterationSpace::new(kept.shape(), [&kept]);
        let (_, [inner]) = space.loop_of(space.depth() - 1);
        if inner == 0 {
            return Some(LaneAccess::Numbers { space, step });
        }
        // In the copy, the dimensions inside a row (from `first` on) come first, then the other dimensions. An expanded dimension outside
        // of the row keeps only one element.
        let axes: Axes = (first..shape.rank()).chain(order.iter().copied()).collect();
        let mut copied = whole.permute(&axes);
        let lanes = shape.rank() - first;
        for axis in lanes..shape.rank() {
            if copied.strides()[axis] == 0 {
                copied = copied.slice(axis, 0, 1, 1);
            }
        }
        if copied.numel() > shape.numel() / 2 {
            return None;
        }
        let single = Layout::contiguous(Shape::from(&copied.shape()[lanes..]));
        let step = single.numel();
        let space = IterationSpace::new(kept.shape(), [&single.expand(kept.shape())?]);
        Some(LaneAccess::Copied { arrangement: copied, space, step })
    }
}

impl LaneTotals {
    /// Describes the reduction `op` of the value with index `value` over `axes`. Its result is the output with index `output`. Returns
    /// `None` if the reduction covers only a part of a row.
    fn new(
        (op, value, output): (Reduction, usize, usize),
        axes: u64,
        shape: &Shape,
        first: usize,
        order: &[usize],
    ) -> Option<Self> {
        let reduced = |axis: usize| axes >> axis & 1 == 1;
        let size = |axis: usize| if reduced(axis) { 1 } else { shape[axis] };
        let reduces_lanes = (first..shape.rank()).all(|axis| reduced(axis) || shape[axis] == 1);
        if !reduces_lanes && (first..shape.rank()).any(|axis| reduced(axis) && shape[axis] > 1) {
            return None;
        }
        let kept: Shape = order.iter().map(|&axis| shape[axis]).collect();
        let totals = Layout::contiguous(order.iter().map(|&axis| size(axis)).collect());
        let accumulator = Accumulator::new(op, &kept, &totals);
        let all: Axes = (first..shape.rank()).chain(order.iter().copied()).collect();
        let arrangement = Layout::contiguous(all.iter().map(|&axis| size(axis)).collect()).unpermute(&all);
        Some(LaneTotals { value, output, accumulator, reduces_lanes, arrangement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use crate::engine::access::ProgramArgument;
    use crate::prelude::*;
    use crate::scalar::instruction::Instruction;
    use crate::{Binary, Compare, Unary};

    fn wave(shape: &[usize], seed: f64) -> Tensor<f64> {
        Tensor::from_fn(shape, |i| (i.iter().fold(seed, |sum, &k| 1.7 * sum + k as f64) * 12.9898).sin())
    }

    /// Returns true if the tensors differ only by rounding errors: by at most 10⁻¹² of the expected value, or 10⁻⁹ if this is more.
    fn close(got: &Tensor<f64>, expected: &Tensor<f64>) -> bool {
        let near = |(x, y): (f64, f64)| (x - y).abs() <= 1e-12 * y.abs().max(1000.0);
        got.shape() == expected.shape() && got.iter().zip(expected.iter()).all(near)
    }

    fn by_lanes(program: &Program, inputs: &[&Tensor<f64>], shape: &Shape) -> bool {
        let layouts: Vec<Option<Layout>> = inputs.iter().map(|x| Some(x.layout().clone())).collect();
        ShortAxis::new(program, &layouts, shape).is_some()
    }

    /// Tests the exponential of the sum of (x - y)² over the last dimension, and the maximum of (x - y)² over the first dimension. Also tests
    /// sums of g · (x - y) over several sets of dimensions. They occur in the gradients of a sum of (x - y)².
    #[test]
    fn distances_and_their_gradients() {
        for [rows, others, dims] in
            [[70, 90, 3], [5, 300, 16], [300, 5, 2], [2, 40, 32], [3, 4100, 7], [33, 200, 31], [20, 70, 128]]
        {
            let (x, y) = (wave(&[rows, 1, dims], 1.0), wave(&[others, dims], 2.0));
            let g = wave(&[rows, others, 1], 3.0);
            let (shape, at) = (Shape::from([rows, others, dims]), Site::here("test"));
            let code = vec![
                Instruction::Binary(Binary::Sub, 0, 1),
                Instruction::Unary(Unary::Square, 2),
                Instruction::Reduce(Reduction::Sum, 3),
                Instruction::Unary(Unary::Exp, 4),
            ];
            let program =
                Program::new(2, code, vec![Output::PerRow(5), Output::Reduced(Reduction::Amax, 3, 1)], Some(2));
            assert!(by_lanes(&program, &[&x, &y], &shape), "{shape}");
            let results = program.run(&[ProgramArgument::from(&x), ProgramArgument::from(&y)], &shape, at).unwrap();
            let squares = (&x - &y).square();
            assert!(close(&results[0], &squares.sum_keepdim(2).exp()), "{shape}");
            assert_eq!(results[1], squares.amax_keepdim(0));

            let code = vec![Instruction::Binary(Binary::Sub, 0, 1), Instruction::Binary(Binary::Mul, 3, 2)];
            let over = |axes: u64| Output::Reduced(Reduction::Sum, 4, axes);
            let program = Program::new(3, code, vec![over(1), over(2), over(3), over(4), over(7)], None);
            assert!(by_lanes(&program, &[&x, &y, &g], &shape), "{shape}");
            let inputs = [ProgramArgument::from(&x), ProgramArgument::from(&y), ProgramArgument::from(&g)];
            let results = program.run(&inputs, &shape, at).unwrap();
            let terms = (&x - &y) * &g;
            let expected = [
                terms.sum_keepdim(0),
                terms.sum_keepdim(1),
                terms.sum_keepdim(0).sum_keepdim(1),
                terms.sum_keepdim(2),
                terms.sum(..).reshape([1, 1, 1]),
            ];
            for (got, expected) in results.iter().zip(&expected) {
                assert!(close(got, expected), "{shape}");
            }
        }
    }

    /// Tests programs that do not run lane by lane. They have an output of the whole shape, an operand with as many elements as the shape,
    /// long rows, or few rows.
    #[test]
    fn other_programs_run_block_by_block() {
        let (x, y, whole) = (wave(&[70, 1, 5], 1.0), wave(&[90, 5], 2.0), wave(&[70, 90, 5], 3.0));
        let shape = Shape::from([70, 90, 5]);
        let program = |output| Program::new(2, vec![Instruction::Binary(Binary::Mul, 0, 1)], vec![output], None);
        let sum = |axes| Output::Reduced(Reduction::Sum, 2, axes);
        assert!(by_lanes(&program(sum(1)), &[&x, &y], &shape));
        assert!(!by_lanes(&program(Output::Whole(2)), &[&x, &y], &shape));
        assert!(!by_lanes(&program(sum(1)), &[&x, &whole], &shape));
        let long = (wave(&[70, 1, 129], 1.0), wave(&[90, 129], 2.0));
        assert!(!by_lanes(&program(sum(1)), &[&long.0, &long.1], &Shape::from([70, 90, 129])));
        let few = (wave(&[3, 1, 5], 1.0), wave(&[4, 5], 2.0));
        assert!(!by_lanes(&program(sum(1)), &[&few.0, &few.1], &Shape::from([3, 4, 5])));
        let same = wave(&[70, 90, 1], 4.0);
        assert!(!by_lanes(&program(sum(1)), &[&same, &same], &shape));
        for (length, expected) in [(31, false), (32, true)] {
            let (x, y) = (wave(&[length, 1], 1.0), wave(&[3], 2.0));
            assert_eq!(by_lanes(&program(sum(1)), &[&x, &y], &Shape::from([length, 3])), expected);
        }
    }

    /// Returns the results of `program`, which must run lane by lane.
    fn results(program: &Program, inputs: &[&Tensor<f64>], shape: &Shape) -> Vec<Tensor<f64>> {
        assert!(by_lanes(program, inputs, shape), "{shape}");
        let arguments: Vec<_> = inputs.iter().map(|&input| ProgramArgument::from(input)).collect();
        program.run(&arguments, shape, Site::here("test")).unwrap().into_vec()
    }

    /// Tests rows of several dimensions, with sums over whole rows, over other dimensions and over a dimension of size 1.
    #[test]
    fn rows_of_several_dimensions() {
        let (x, y) = (wave(&[40, 1, 2, 3, 1], 1.0), wave(&[50, 2, 3, 1], 2.0));
        let shape = Shape::from([40, 50, 2, 3, 1]);
        let over = |axes: u64| Output::Reduced(Reduction::Sum, 2, axes);
        let program = |outputs| {
            let code = vec![Instruction::Binary(Binary::Sub, 0, 1), Instruction::Reduce(Reduction::Sum, 2)];
            Program::new(2, code, outputs, Some(2))
        };
        let got = results(&program(vec![Output::PerRow(3), over(1), over(28), over(17)]), &[&x, &y], &shape);
        let terms = &x - &y;
        let over_rows = terms.sum_keepdim([2, 3, 4]);
        let expected = [&over_rows, &terms.sum_keepdim(0), &over_rows, &terms.sum_keepdim(0)];
        assert!(got.iter().zip(expected).all(|(got, expected)| close(got, expected)));
        // A program that sums over only a part of each row does not run lane by lane.
        assert!(!by_lanes(&program(vec![over(8)]), &[&x, &y], &shape));
    }

    /// Tests instructions that are computed for one lane at a time, such as `Exp`. Their operands have every form: lanes with different
    /// elements, lanes with equal elements, and one number for each lane. One operand is transposed.
    #[test]
    fn instructions_that_run_lane_by_lane() {
        let (x, y, g) = (wave(&[5, 70], 1.0).t().unsqueeze(1), wave(&[90, 5], 2.0), wave(&[70, 90, 1], 3.0));
        let code = vec![
            Instruction::Unary(Unary::Exp, 1),
            Instruction::Compare(Compare::Lt, 2, 0),
            Instruction::Select(4, 3, 2),
            Instruction::Select(4, 0, 5),
        ];
        let outputs = [3, 5, 6].map(|value| Output::Reduced(Reduction::Sum, value, 2)).to_vec();
        let got = results(&Program::new(3, code, outputs, None), &[&x, &y, &g], &Shape::from([70, 90, 5]));
        let (exp, mask) = (y.exp().expand([70, 90, 5]), g.lt(&x));
        let chosen = where_(&mask, &exp, &g);
        let expected = [exp, chosen.clone(), where_(&mask, &x, &chosen)].map(|terms| terms.sum_keepdim(1));
        assert!(got.iter().zip(&expected).all(|(got, expected)| close(got, expected)));
    }

    /// Tests programs that reduce an input itself: programs without instructions, and programs whose only instruction is a product.
    #[test]
    fn reductions_of_inputs() {
        let (x, y, g) = (wave(&[70, 1, 5], 1.0), wave(&[90, 5], 2.0), wave(&[70, 90, 1], 3.0));
        let shape = Shape::from([70, 90, 5]);
        let sum = |value, axes| Output::Reduced(Reduction::Sum, value, axes);
        let whole = x.expand([70, 90, 5]);
        let check = |got: &[Tensor<f64>], expected: &[Tensor<f64>]| {
            assert!(got.iter().zip(expected).all(|(got, expected)| close(got, expected)));
        };
        let sums = [whole.sum_keepdim(1), whole.sum_keepdim(0), whole.sum_keepdim(2)];
        check(&results(&Program::new(1, vec![], vec![sum(0, 2), sum(0, 1), sum(0, 4)], None), &[&x], &shape), &sums);
        let product = vec![Instruction::Binary(Binary::Mul, 0, 1)];
        let program = Program::new(2, product.clone(), vec![sum(2, 2), sum(1, 2), sum(1, 1)], None);
        let expected = [(&y * &x).sum_keepdim(1), sums[0].clone(), sums[1].clone()];
        check(&results(&program, &[&y, &x], &shape), &expected);
        let program = Program::new(3, product, vec![sum(3, 2), sum(2, 2), sum(2, 1)], None);
        let expected = [(&g * &y).sum_keepdim(1), sums[0].clone(), sums[1].clone()];
        check(&results(&program, &[&g, &y, &x], &shape), &expected);
    }

    #[test]
    fn the_longest_dimension_is_the_inner_loop_beside_a_short_one() {
        let table: [(&[usize], &[usize]); 6] = [
            (&[300, 128], &[0, 1]),
            (&[300, 127], &[1, 0]),
            (&[5, 200, 7], &[0, 2, 1]),
            (&[7, 3, 7], &[0, 1, 2]),
            (&[4], &[0]),
            (&[], &[]),
        ];
        for (sizes, expected) in table {
            assert_eq!(&iteration_order(sizes)[..], expected);
        }
    }

    /// Compares the length of a block and the number of tasks with numbers computed by hand. Both determine the order in which elements are
    /// added, so other numbers would change the bits of sums.
    #[test]
    fn lengths_of_blocks_and_tasks() {
        // For each number of lanes (the size of the last dimension): `[length of a block, number of tasks]` of two programs. The first only
        // reduces rows, and the second reduces another dimension.
        for (lanes, rows, reduces_lanes) in
            [(2, [900, 1], [900, 1]), (16, [128, 12], [512, 14]), (128, [64, 53], [64, 53])]
        {
            let (x, y) = (wave(&[7, 1, lanes], 1.0), wave(&[900, lanes], 2.0));
            let layouts = [Some(x.layout().clone()), Some(y.layout().clone())];
            let shape = Shape::from([7, 900, lanes]);
            for (output, expected) in
                [(Output::PerRow(3), rows), (Output::Reduced(Reduction::Sum, 2, 1), reduces_lanes)]
            {
                let code = vec![Instruction::Binary(Binary::Mul, 0, 1), Instruction::Reduce(Reduction::Sum, 2)];
                let program = Program::new(2, code, vec![output], Some(2));
                let (plan, _) = ShortAxis::new(&program, &layouts, &shape).unwrap();
                assert_eq!([plan.tiling.block_len, plan.tiling.task_count()], expected, "{lanes}");
            }
        }
    }

    /// Adds 2⁵³ and then 2,047 ones to each total. The sum of 2⁵³ and 1 is rounded to 2⁵³, so the first stage loses its 15 ones. The sums
    /// of later stages are even numbers, which are added exactly. A stage has 16 rows, because a row has two blocks.
    #[test]
    fn a_stage_has_16_rows_of_totals() {
        let x = Tensor::from_fn([2048, 1, 128], |i| if i[0] == 0 { 2f64.powi(53) } else { 1.0 });
        let y = Tensor::ones([128, 128]);
        let product = vec![Instruction::Binary(Binary::Mul, 0, 1)];
        let program = Program::new(2, product, vec![Output::Reduced(Reduction::Sum, 2, 1)], None);
        let got = results(&program, &[&x, &y], &Shape::from([2048, 128, 128]));
        assert!(got[0].iter().all(|total| total == 2f64.powi(53) + 2032.0));
    }
}
