//! From requested values to steps: elementwise operations over one shape are fused into one program, everything else is a
//! step of its own.
//!
//! Each node has a level. An elementwise operation is of the level of its operands of the same shape, so that whole chains
//! fall into one kernel; a value that must be finished before it is read (a sum, a product, an operand of another shape)
//! raises the level. Operations of one level and one shape cannot wait for one another but through the fused program itself,
//! so they are one kernel. The steps run level by level.
//!
//! It looks at operations and shapes, never at values.

use std::collections::HashMap;

use wengert_tensor::Float;
use wengert_tensor::program::{Instruction, Program};

use crate::record::{Index, Inputs, Op, Record};

/// What is run at once.
#[derive(Debug)]
pub(crate) enum Step {
    /// One operation: a reduction, a product, a view, a custom one.
    Single(Index),
    /// Several elementwise operations over one shape.
    Fused(Kernel),
}

/// A fused program and the nodes it stands for.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) program: Program,
    /// The nodes it computes, ascending.
    pub(crate) nodes: Vec<Index>,
    /// What it reads, in the order of the program's inputs.
    inputs: Vec<Index>,
    /// What it is read for, in the order of the program's outputs.
    pub(crate) outputs: Vec<Index>,
}

impl Step {
    /// The values it reads, each once for a fused program, as often as it is an operand otherwise.
    pub(crate) fn reads<T: Float>(&self, record: &Record<T>) -> Inputs {
        match self {
            Step::Single(index) => record.inputs(*index),
            Step::Fused(kernel) => Inputs::from_slice(&kernel.inputs),
        }
    }
}

fn is_elementwise(op: Op) -> bool {
    matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select)
}

/// The level of a node, and from which level on others can read it.
#[derive(Clone, Copy, Default)]
struct Level {
    own: u32,
    ready: u32,
}

/// The steps that compute the nodes in `order` (ascending, complete), so that `roots` are among the results.
pub(crate) fn schedule<T: Float>(record: &Record<T>, roots: &[Index], order: &[Index]) -> Vec<Step> {
    let Some(&last) = order.last() else {
        return Vec::new();
    };
    // Leaves, and what is known already, are ready at level 0; they are not in `order`.
    let mut levels = vec![Level::default(); last as usize + 1];
    let mut computed = vec![false; last as usize + 1];
    let mut kernels: HashMap<(u32, u32), Vec<Index>> = HashMap::new();
    // Level, whether it is fused (those come after the single steps of their level), and its first node.
    let mut queue: Vec<(u32, bool, Index, u32)> = Vec::new();
    for &index in order {
        let node = record.node(index);
        let fused = is_elementwise(node.op);
        let own = record
            .inputs(index)
            .iter()
            .map(|&input| {
                let below = record.node(input);
                let joins = fused && computed[input as usize] && is_elementwise(below.op) && below.shape == node.shape;
                let level = levels[input as usize];
                if joins { level.own } else { level.ready }
            })
            .max()
            .unwrap_or(0);
        computed[index as usize] = true;
        levels[index as usize] = Level { own, ready: if fused { own + 1 } else { own } };
        if fused {
            let nodes = kernels.entry((own, node.shape)).or_default();
            if nodes.is_empty() {
                queue.push((own, true, index, node.shape));
            }
            nodes.push(index);
        } else {
            queue.push((own, false, index, node.shape));
        }
    }
    queue.sort_unstable();
    let outside = read_outside(record, roots, order, &levels);
    queue
        .into_iter()
        .map(|(level, fused, index, shape)| match kernels.remove(&(level, shape)) {
            Some(nodes) if fused => Step::Fused(kernel(record, nodes, &outside)),
            other => {
                // Not its turn yet: a single step of the same level and shape.
                if let Some(nodes) = other {
                    kernels.insert((level, shape), nodes);
                }
                Step::Single(index)
            }
        })
        .collect()
}

/// Which nodes are read by another step than their own, or asked for.
fn read_outside<T: Float>(record: &Record<T>, roots: &[Index], order: &[Index], levels: &[Level]) -> Vec<bool> {
    let mut outside = vec![false; levels.len()];
    for &root in roots {
        if let Some(slot) = outside.get_mut(root as usize) {
            *slot = true;
        }
    }
    for &index in order {
        let node = record.node(index);
        for input in record.inputs(index) {
            let below = record.node(input);
            let same = is_elementwise(node.op)
                && is_elementwise(below.op)
                && below.shape == node.shape
                && levels[input as usize].own == levels[index as usize].own;
            if !same {
                outside[input as usize] = true;
            }
        }
    }
    outside
}

/// The program of `nodes`, ascending, all of one shape and level.
fn kernel<T: Float>(record: &Record<T>, nodes: Vec<Index>, outside: &[bool]) -> Kernel {
    let mut inputs: Vec<Index> = Vec::new();
    let mut number: HashMap<Index, u32> = nodes.iter().enumerate().map(|(k, &node)| (node, k as u32)).collect();
    // Two passes: the inputs are numbered first, and how many there are is known only then.
    for &node in &nodes {
        for input in record.inputs(node) {
            if !number.contains_key(&input) {
                number.insert(input, inputs.len() as u32);
                inputs.push(input);
            }
        }
    }
    let count = inputs.len() as u32;
    for &node in &nodes {
        if let Some(value) = number.get_mut(&node) {
            *value += count;
        }
    }
    let instructions = nodes
        .iter()
        .map(|&node| {
            let operands = record.inputs(node);
            let value = |position: usize| number[&operands[position]];
            match record.node(node).op {
                Op::Unary(op) => Instruction::Unary(op, value(0)),
                Op::Binary(op) => Instruction::Binary(op, value(0), value(1)),
                Op::Compare(op) => Instruction::Compare(op, value(0), value(1)),
                Op::Select => Instruction::Select(value(0), value(1), value(2)),
                op => unreachable!("{op:?} is not elementwise"),
            }
        })
        .collect();
    let outputs: Vec<Index> = nodes.iter().copied().filter(|&node| outside[node as usize]).collect();
    let program = Program::new(count, instructions, outputs.iter().map(|node| number[node]).collect());
    Kernel { program, nodes, inputs, outputs }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wengert_tensor::ops::TensorLike;
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::evaluate::one_at_a_time;
    use crate::{Tape, Var};

    fn steps(tape: &Tape<f64>, roots: &[Var<'_, f64>]) -> Vec<usize> {
        let record = tape.record.borrow();
        let roots: Vec<Index> = roots.iter().map(|root| root.index).collect();
        let order: Vec<Index> = (0..record.len() as Index).filter(|&i| !record.inputs(i).is_empty()).collect();
        schedule(&record, &roots, &order)
            .iter()
            .map(|step| if let Step::Fused(kernel) = step { kernel.nodes.len() } else { 1 })
            .collect()
    }

    #[test]
    fn a_chain_of_one_shape_is_one_step() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([3, 4]));
        let y = ((x * x).tanh() + x).exp() - x;
        assert_eq!(steps(&tape, &[y]), [5]);
    }

    #[test]
    fn a_sum_in_between_makes_two_kernels() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([3, 4]));
        let e = x.exp();
        let y = e / e.sum(1, true);
        // exp; sum; expand; div.
        assert_eq!(steps(&tape, &[y]), [1, 1, 1, 1]);
    }

    /// What a random program does next; numbers choose among the values that are there.
    #[derive(Clone, Debug)]
    enum Move {
        Unary(u8, usize),
        Binary(u8, usize, usize),
        Select(usize, usize, usize),
        Sum(usize, usize),
        Amax(usize, usize),
        Transpose(usize),
        Slice(usize),
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
            1 => pick.prop_map(Move::Detach),
        ];
        proptest::collection::vec(one, 1..60)
    }

    /// Plays the moves; those that shapes do not allow are left out.
    fn play<'t>(tape: &'t Tape<f64>, shapes: &[Vec<usize>], moves: &[Move]) -> Vec<Var<'t, f64>> {
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
                        _ => x.try_div(y).ok(),
                    }
                }
                Move::Select(mask, x, y) => try_where_(&at(mask).gt(0.0), &at(x), at(y)).ok(),
                Move::Sum(x, dim) => at(x).try_sum(*dim as isize, true).ok(),
                Move::Amax(x, dim) => at(x).try_amax(*dim as isize, true).ok(),
                Move::Transpose(x) => at(x).try_transpose(0, -1).ok(),
                Move::Slice(x) => at(x).try_slice(0, Some(1), None, 2).ok(),
                Move::Detach(x) => Some(TensorLike::detach(&at(x))),
            };
            values.extend(result.filter(|value| value.shape().numel() < 100_000));
        }
        values
    }

    use wengert_tensor::ops::try_where_;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn fused_equals_one_at_a_time(
            shapes in proptest::collection::vec(proptest::collection::vec(0usize..4, 0..4), 1..4),
            moves in moves(),
            several in any::<bool>(),
        ) {
            let tape = Tape::new();
            let values = play(&tape, &shapes, &moves);
            let roots: Vec<Index> = match several {
                true => values.iter().step_by(3).map(|value| value.index).collect(),
                false => vec![values[values.len() - 1].index],
            };
            let expected = one_at_a_time(&tape, &roots).unwrap();
            let got = tape.evaluate(&roots, wengert_tensor::Site::here("test")).unwrap();
            for (got, expected) in got.iter().zip(&expected) {
                prop_assert_eq!(got.shape(), expected.shape());
                for (x, y) in got.iter().zip(expected.iter()) {
                    prop_assert_eq!(x.to_bits(), y.to_bits());
                }
            }
        }
    }
}
