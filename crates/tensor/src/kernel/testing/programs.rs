//! Tests random programs. The engine runs each program by itself and as a [`BoundProgram`]. The expected results come from running single
//! instructions on single elements.
//!
//! `WENGERT_RANDOM_PROGRAMS` sets the number of programs (3000 by default), and `WENGERT_RANDOM_SEED` the first seed. With a sanitizer, run
//! many:
//!
//! ```text
//! WENGERT_RANDOM_PROGRAMS=10000000 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
//!     cargo test --release --target x86_64-unknown-linux-gnu -p wengert-tensor --lib random_programs
//! ```

use rand::Rng;
use rand_pcg::Pcg64;

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::source::Source;
use crate::kernel::testing::layouts::{AxisRecipe, Recipe, Sample, generator};
use crate::kernel::testing::numbers::{Expected, Oracle, combine, compare};
use crate::kernel::testing::oracle::elements;
use crate::kernel::testing::support::site;
use crate::program::{BoundProgram, Instruction, Output, Program, ProgramArgument};
use crate::{Binary, Compare, Element, Float, Reduction, Shape, Tensor, Unary};

fn below(rng: &mut Pcg64, limit: usize) -> usize {
    rng.next_u32() as usize % limit
}

fn chance(rng: &mut Pcg64, one_in: usize) -> bool {
    below(rng, one_in) == 0
}

fn pick<T: Copy>(rng: &mut Pcg64, from: &[T]) -> T {
    from[below(rng, from.len())]
}

/// The precision with which the test knows a value: all bits, all bits except the signs of zeros, or nothing. A sum with rounding errors
/// depends on the order of its additions, which is unspecified. So does the sign of a zero that a reduction gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Bits,
    ButZeros,
    Nothing,
}

/// The expected elements of a value, and how precisely they are known.
#[derive(Clone)]
struct Reference<T> {
    elements: Vec<T>,
    known: Known,
    /// True if all elements in a row of the value are equal.
    per_row: bool,
}

/// Returns a random shape with at most 5,000 elements. Most shapes have few elements, and some have none.
fn shape(rng: &mut Pcg64) -> Shape {
    let large = if chance(rng, 16) { 5000 } else { 40 };
    let limit = pick(rng, &[1, 8, 32, 64, 64, 200, 200, large]);
    let mut left = limit;
    let mut sizes = Vec::new();
    for _ in 0..below(rng, 5) {
        let longest = left.min(if chance(rng, 3) { limit } else { 7 });
        let size = if chance(rng, 80) { 0 } else { 1 + below(rng, longest) };
        left /= size.max(1);
        sizes.push(size);
    }
    Shape::from(sizes)
}

/// Returns a random shape with many short rows.
fn lanes(rng: &mut Pcg64) -> Shape {
    let (outer, most) = (if chance(rng, 8) { 9 } else { 2 }, if chance(rng, 8) { 31 } else { 7 });
    let mut sizes = [1 + below(rng, outer), 32 + below(rng, 30), 2 + below(rng, most)];
    if chance(rng, 3) {
        sizes.swap(0, 1);
    }
    Shape::from(sizes)
}

/// Returns a random layout.
fn recipe(rng: &mut Pcg64) -> Recipe {
    let mut recipe = Recipe::contiguous();
    if chance(rng, 3) {
        return recipe;
    }
    for axis in &mut recipe.axes {
        *axis = AxisRecipe {
            around: (below(rng, 2), below(rng, 2)),
            step: 1 + below(rng, 2),
            flip: chance(rng, 4),
            stretch: chance(rng, 6),
        };
    }
    for last in (1..recipe.order.len()).rev() {
        if chance(rng, 2) {
            recipe.order.swap(last, below(rng, last + 1));
        }
    }
    recipe
}

/// Returns a random tensor that expands to `shape`. Each dimension has size 1 with probability 1 / `stretched`. If `whole` is true, the
/// elements are small integers.
fn input<T: Float + Sample>(rng: &mut Pcg64, shape: &Shape, whole: bool, stretched: usize) -> Tensor<T> {
    let skipped = if chance(rng, 4) { below(rng, shape.rank() + 1) } else { 0 };
    let own: Shape = shape[skipped..].iter().map(|&size| if chance(rng, stretched) { 1 } else { size }).collect();
    let recipe = recipe(rng);
    recipe.tensor(&own, || if whole { T::from_i64(below(rng, 5) as i64 - 2) } else { T::any(rng) })
}

fn instruction(rng: &mut Pcg64, values: usize, row: Option<usize>) -> Instruction {
    let [x, y, z] = [(); 3].map(|()| below(rng, values) as u32);
    match below(rng, 10) {
        0..3 => Instruction::Unary(pick(rng, Unary::ALL), x),
        3..6 => Instruction::Binary(pick(rng, Binary::ALL), x, y),
        6 => Instruction::Compare(pick(rng, Compare::ALL), x, y),
        7 => Instruction::Select(x, y, z),
        8 if row.is_some() => Instruction::Reduce(pick(rng, Reduction::ALL), x),
        _ => Instruction::Binary(pick(rng, &[Binary::Add, Binary::Sub, Binary::Mul, Binary::Maximum]), x, y),
    }
}

/// Returns the result of `instruction` for the single elements `x`, `y` and `z`, or `None` if the element type does not have the operation.
/// Functions of one or two operands use their block kernel. If the operation is exact, checks the result against the oracle, the simple
/// code of the tests.
fn number<T: Float + Oracle>(instruction: Instruction, [x, y, z]: [T; 3]) -> Option<T> {
    let mut out = [T::ZERO];
    let (x1, y1) = ([x], [y]);
    let expected = match instruction {
        Instruction::Unary(op, _) if !T::supports_unary(op) => return None,
        Instruction::Binary(op, ..) if !T::supports_binary(op) => return None,
        Instruction::Unary(op, _) => {
            T::unary(op, Operand::Slice(&x1), &mut out);
            T::of_one(op, x)
        }
        Instruction::Binary(op, ..) => {
            T::binary(op, Operand::Slice(&x1), Operand::Slice(&y1), &mut out);
            if op == Binary::Zeta { None } else { T::of_two(op, x, y) }
        }
        Instruction::Compare(op, ..) => return Some(if compare(op, x, y) { T::ONE } else { T::ZERO }),
        Instruction::Select(..) => return Some(if x == T::ZERO { z } else { y }),
        Instruction::Reduce(..) => unreachable!("of rows"),
    };
    if let Some(Expected::Exact(exact)) = expected {
        assert_eq!(out[0].bits(), exact.bits(), "{instruction:?} of {x:?}, {y:?}");
    }
    Some(out[0])
}

/// Returns the reduction of `values` by `op`, and how precisely the test knows it. `known` is the precision of `values`.
fn reduced<T: Float + Oracle>(op: Reduction, values: impl Iterator<Item = T>, known: Known) -> (T, Known) {
    let (mut total, mut size, mut whole) = (T::start(op), if op == Reduction::Prod { 1.0 } else { 0.0 }, true);
    for x in values {
        whole &= x.is_finite() && x.to_f64().fract() == 0.0;
        let magnitude = x.to_f64().abs();
        match op {
            Reduction::Sum => size += magnitude,
            Reduction::Prod => size *= magnitude.max(1.0),
            _ => {}
        }
        total = combine(op, total, x);
    }
    let exact = whole && size < 8e6 || !matches!(op, Reduction::Sum | Reduction::Prod);
    match known {
        Known::Bits if exact && total != T::ZERO => (total, Known::Bits),
        Known::Bits | Known::ButZeros if exact => (total, Known::ButZeros),
        _ => (total, Known::Nothing),
    }
}

/// Reduces every row of `row` elements by `op`. The result repeats each row's reduction along the row.
fn rows<T: Float + Oracle>(op: Reduction, x: &Reference<T>, row: usize) -> Reference<T> {
    let mut known = x.known;
    let mut elements = Vec::with_capacity(x.elements.len());
    for row in x.elements.chunks(row) {
        let (total, one) = reduced(op, row.iter().copied(), x.known);
        known = known.max(one);
        elements.resize(elements.len() + row.len(), total);
    }
    Reference { elements, known, per_row: true }
}

/// For a reduction over `axes`, returns the index of the result to which each element belongs, and the number of results.
fn places(shape: &Shape, axes: u64) -> (Vec<usize>, usize) {
    let kept = |axis: usize| axes >> axis & 1 == 0;
    let count = (0..shape.rank()).filter(|&axis| kept(axis)).map(|axis| shape[axis]).product();
    let place = |mut position: usize| {
        let (mut place, mut stride) = (0, 1);
        for axis in (0..shape.rank()).rev() {
            if kept(axis) {
                place += position % shape[axis] * stride;
                stride *= shape[axis];
            }
            position /= shape[axis];
        }
        place
    };
    ((0..shape.numel()).map(place).collect(), count)
}

/// Returns the expected elements of a program's output, or `None` if the test does not know them.
fn output<T: Float + Oracle>(output: &Output, values: &[Reference<T>], shape: &Shape, row: usize) -> Option<Vec<T>> {
    if output.values().iter().any(|&value| values[value as usize].known == Known::Nothing) {
        return None;
    }
    let x = &values[output.values()[0] as usize];
    match *output {
        Output::Concatenated(ref joined, axis) => {
            let row: usize = shape[axis..].iter().product();
            let at =
                |start: usize| joined.iter().flat_map(move |&x| values[x as usize].elements[start..start + row].iter());
            Some((0..x.elements.len()).step_by(row.max(1)).flat_map(at).copied().collect())
        }
        Output::Whole(_) => Some(x.elements.clone()),
        Output::PerRow(_) => Some(x.elements.iter().copied().step_by(row).collect()),
        Output::Reduced(op, _, axes) => {
            let (places, count) = places(shape, axes);
            let mut columns = vec![Vec::new(); count];
            places.iter().zip(&x.elements).for_each(|(&place, &x)| columns[place].push(x));
            let total = |column: Vec<T>| match reduced(op, column.into_iter(), x.known) {
                (_, Known::Nothing) => None,
                (total, _) => Some(total),
            };
            columns.into_iter().map(total).collect()
        }
    }
}

/// The operands of a random program, and the row that its reductions use.
struct Operands<T: Element> {
    shape: Shape,
    /// True if the shape has many short rows. The engine may then run a program lane by lane (see `ShortAxis`).
    by_lanes: bool,
    /// The first dimension of a row (`None` if the program reduces no rows), and the number of elements of a row.
    row: (Option<usize>, usize),
    /// The tensors. `None` stands for the operand `number`.
    tensors: Vec<Option<Tensor<T>>>,
    number: T,
}

impl<T: Float + Oracle> Operands<T> {
    fn random(rng: &mut Pcg64) -> Self {
        let by_lanes = chance(rng, 4);
        let (shape, stretched) = if by_lanes { (lanes(rng), 2) } else { (shape(rng), 5) };
        let row = (shape.numel() > 0 && shape.rank() > 0 && chance(rng, 2)).then(|| below(rng, shape.rank()));
        let row = (row, row.map_or(1, |axis| shape[axis..].iter().product()));
        let (whole, count) = (chance(rng, 2), 1 + below(rng, 3));
        let tensors = (0..count)
            .map(|_| if chance(rng, 5) { None } else { Some(input(rng, &shape, whole, stretched)) })
            .collect();
        let number = if whole { T::ONE + T::ONE } else { T::any(rng) };
        Operands { shape, by_lanes, row, tensors, number }
    }

    /// Returns the elements of an operand, and whether each row repeats one element. The shape of the operand before its expansion decides
    /// this, not its values.
    fn reference(&self, tensor: Option<&Tensor<T>>) -> Reference<T> {
        let elements = match tensor {
            None => vec![self.number; self.shape.numel()],
            Some(tensor) => {
                let layout = &tensor.layout().expand(&self.shape).expect("an input expands");
                elements(Source { data: tensor.source().data, layout })
            }
        };
        let own_row = |tensor: &Tensor<T>| {
            let rank = tensor.shape().rank();
            let last = self.shape.rank() - self.row.0.unwrap_or(0);
            tensor.shape()[rank - last.min(rank)..].iter().all(|&size| size == 1)
        };
        Reference { elements, known: Known::Bits, per_row: tensor.is_none_or(own_row) }
    }
}

/// Returns the result of an elementwise instruction, or `None` if the element type does not have the operation.
fn elementwise<T: Float + Oracle>(
    instruction: Instruction,
    operands: &[&Reference<T>],
    count: usize,
) -> Option<Reference<T>> {
    number(instruction, [T::ONE; 3])?;
    let at = |k: usize, i: usize| operands.get(k).map_or(T::ZERO, |x| x.elements[i]);
    let elements =
        (0..count).map(|i| number(instruction, [at(0, i), at(1, i), at(2, i)])).collect::<Option<Vec<T>>>()?;
    // The sign of a NaN is unspecified. So a result with a sign that is copied from a NaN is not compared.
    let signed = matches!(instruction, Instruction::Binary(Binary::Copysign, ..))
        && operands[1].elements.iter().any(|x| x.is_nan());
    let known = operands.iter().all(|x| x.known == Known::Bits) && !signed;
    let known = if known { Known::Bits } else { Known::Nothing };
    Some(Reference { elements, known, per_row: operands.iter().all(|x| x.per_row) })
}

/// Returns random instructions, and adds their results to `values`. At first, `values` has the program's operands.
fn instructions<T: Float + Oracle>(
    rng: &mut Pcg64,
    values: &mut Vec<Reference<T>>,
    (row, row_len): (Option<usize>, usize),
    count: usize,
) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    for _ in 0..below(rng, 9) {
        let instruction = instruction(rng, values.len(), row);
        let operands: Vec<&Reference<T>> = instruction.operands().map(|x| &values[x as usize]).collect();
        let value = match instruction {
            Instruction::Reduce(op, _) => Some(rows(op, operands[0], row_len)),
            _ => elementwise(instruction, &operands, count),
        };
        // Instructions are skipped if the element type does not have their operation.
        if let Some(value) = value {
            instructions.push(instruction);
            values.push(value);
        }
    }
    instructions
}

/// Returns random outputs of a program. `values` has the operands and the results of its instructions.
fn outputs<T: Float + Oracle>(rng: &mut Pcg64, values: &[Reference<T>], operands: &Operands<T>) -> Vec<Output> {
    let rank = operands.shape.rank();
    let mut outputs = Vec::new();
    for _ in 0..1 + below(rng, 3) {
        let value = below(rng, values.len()) as u32;
        outputs.push(match below(rng, 4) {
            0 if operands.row.0.is_some() && values[value as usize].per_row => Output::PerRow(value),
            kind if kind == 1 || operands.by_lanes => {
                Output::Reduced(pick(rng, Reduction::ALL), value, rng.next_u64() & ((1 << rank) - 1))
            }
            2 if rank > 0 => {
                let others: Vec<u32> = (0..below(rng, 4)).map(|_| below(rng, values.len()) as u32).collect();
                Output::Concatenated([&[value], &others[..]].concat().into(), below(rng, rank))
            }
            _ => Output::Whole(value),
        });
    }
    outputs
}

/// Compares a random program with the reference. Runs it once by itself, and twice as a [`BoundProgram`].
fn check<T: Float + Oracle>(rng: &mut Pcg64) {
    let operands = Operands::<T>::random(rng);
    let (shape, tensors, scalar) = (&operands.shape, &operands.tensors, operands.number);
    let arguments: Vec<ProgramArgument<'_, T>> = tensors
        .iter()
        .map(|tensor| tensor.as_ref().map_or(ProgramArgument::Number(scalar), ProgramArgument::from))
        .collect();
    let mut values: Vec<Reference<T>> = tensors.iter().map(|tensor| operands.reference(tensor.as_ref())).collect();
    let instructions = instructions(rng, &mut values, operands.row, shape.numel());
    let program = Program::new(tensors.len() as u32, instructions, outputs(rng, &values, &operands), operands.row.0);
    let expected: Vec<Option<Vec<T>>> =
        program.outputs().iter().map(|it| output(it, &values, shape, operands.row.1)).collect();
    let mut bound = BoundProgram::new(program.clone(), shape.clone());
    let mut again = || bound.run(&arguments, site(), &mut [], Tensor::from_parts).unwrap();
    for results in [program.run(&arguments, shape, site()).unwrap(), again(), again()] {
        for ((got, expected), output) in results.iter().zip(&expected).zip(program.outputs()) {
            let got = got.to_vec();
            let Some(expected) = expected else { continue };
            assert_eq!(got.len(), expected.len(), "{output:?} of {program:?} over {shape}");
            for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
                let same = got.bits() == expected.bits() || *got == T::ZERO && *expected == T::ZERO;
                assert!(
                    same,
                    "{output:?} at {i}: {got:?}, not {expected:?}, of {program:?} over {shape}: {tensors:?}, {scalar:?}"
                );
            }
        }
    }
}

#[test]
fn random_programs() {
    let from =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, seed) = (from("WENGERT_RANDOM_PROGRAMS", 3000), from("WENGERT_RANDOM_SEED", 0));
    for number in seed..seed + count {
        let rng = &mut generator(number);
        if number % 2 == 0 { check::<f32>(rng) } else { check::<f64>(rng) }
    }
}
