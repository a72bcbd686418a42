//! Sums with products: a product that is read only to be added to something is accumulated onto it, C + A B in one step, and never
//! written by itself.

use smallvec::{SmallVec, smallvec};

use crate::engine::plan::expression::{Expression, Op};
use crate::engine::plan::steps::{Source, Step, Work};
use crate::engine::program::{Output, Program};
use crate::scalar::instruction::Instruction;
use crate::{Binary, Float, Shape};

/// Replaces steps that only add products, to each other or to one other value, by products that accumulate.
pub(super) fn accumulate<T: Float>(
    expression: &Expression<T>,
    steps: Vec<Step<T>>,
    roots: &[(Source<T>, Shape)],
    buffers: u32,
) -> Vec<Step<T>> {
    let mut readers = vec![0u32; buffers as usize];
    let read = steps.iter().flat_map(|step| &step.reads).chain(roots.iter().map(|(source, _)| source));
    for source in read {
        if let Source::Buffer(buffer) = source {
            readers[*buffer as usize] += 1;
        }
    }
    // Of each buffer the product that is written there and read once.
    let mut products = vec![None; buffers as usize];
    let mut done: Vec<Option<Step<T>>> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Work::Node(node, _) = step.work
            && expression.op(node) == Op::Matmul
            && readers[step.writes[0] as usize] == 1
        {
            products[step.writes[0] as usize] = Some((done.len(), node));
        }
        let Some(shape) = sum_over(&step) else {
            done.push(Some(step));
            continue;
        };
        let product_of = |source: &Source<T>| match *source {
            // Values are kept without leading sizes of 1.
            Source::Buffer(buffer) => products[buffer as usize].filter(|&(_, node)| {
                let own = expression.shape(node);
                own.ends_with(&shape) && own.numel() == shape.numel()
            }),
            Source::Known(_) | Source::Number(_) => None,
        };
        let mut terms: SmallVec<[usize; 4]> =
            step.reads.iter().filter_map(product_of).map(|(position, _)| position).collect();
        let others: SmallVec<[Source<T>; 4]> =
            step.reads.iter().filter(|source| product_of(source).is_none()).copied().collect();
        if terms.is_empty() || others.len() > 1 {
            done.push(Some(step));
            continue;
        }
        // Without another value, the first product is what the others are accumulated onto.
        terms.sort_unstable();
        let mut sum = match others.first() {
            Some(&other) => other,
            None => done[terms.remove(0)].as_ref().map_or_else(|| unreachable!("it is read once"), result),
        };
        let last = terms.len().saturating_sub(1);
        for (number, &position) in terms.iter().enumerate() {
            let product = done[position].take();
            let Some(Step { work: Work::Node(_, shapes), mut reads, writes, node, .. }) = product else {
                unreachable!("a product is read once")
            };
            reads.push(sum);
            let work = Work::AddedProduct([shapes[0].clone(), shapes[1].clone(), expression.shape(node).clone()]);
            let writes = if number == last { step.writes.clone() } else { writes };
            let added = Step { work, reads, writes, drops: smallvec![], node };
            sum = result(&added);
            done.push(Some(added));
        }
    }
    done.into_iter().flatten().collect()
}

/// Where the result of a step with one result is.
fn result<T>(step: &Step<T>) -> Source<T> {
    Source::Buffer(step.writes[0])
}

/// The shape of a step that adds all its operands, each once, and does nothing else.
fn sum_over<T>(step: &Step<T>) -> Option<Shape> {
    let Work::Fused(bound) = &step.work else { return None };
    let bound = bound.borrow();
    let program = bound.program();
    is_sum(program).then(|| bound.shape().clone())
}

/// Whether the only result is the sum of all inputs, each taken once.
fn is_sum(program: &Program) -> bool {
    let (inputs, instructions) = (program.inputs() as usize, program.instructions());
    let [Output::Whole(result)] = program.outputs() else { return false };
    if inputs != instructions.len() + 1 || *result as usize != inputs + instructions.len() - 1 {
        return false;
    }
    let mut taken = vec![false; inputs + instructions.len()];
    instructions.iter().all(|instruction| match *instruction {
        Instruction::Binary(Binary::Add, x, y) => {
            !std::mem::replace(&mut taken[x as usize], true) && !std::mem::replace(&mut taken[y as usize], true)
        }
        _ => false,
    })
}
