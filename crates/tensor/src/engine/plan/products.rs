//! Fuses sums with matrix products. If a product is only added to another value, the sum C + A B becomes one step, and A B is not stored.
//! Terms are added in the order of the sum, but intermediate results may be rounded differently. So the last bits may differ.

use smallvec::{SmallVec, smallvec};

use crate::engine::plan::steps::{OperandRef, Step, Work, count_reads};
use crate::engine::program::{Output, Program};
use crate::scalar::instruction::Instruction;
use crate::{Binary, Shape};

/// Finds steps that add products to each other or to one other value. Replaces these steps by steps that compute C + A B, where A and B are
/// matrices and C is a value. The order of the terms stays the same.
pub(super) fn fuse_additions(steps: Vec<Step>, roots: &[(OperandRef, Shape)], buffer_count: u32) -> Vec<Step> {
    let reads = count_reads(&steps, roots, buffer_count);
    // For each buffer that holds a product and is read exactly once: the position of the product's step, and the product's shape.
    let mut products = vec![None; buffer_count as usize];
    let mut done: Vec<Option<Step>> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Work::Product(shapes) = &step.work
            && reads[step.writes[0] as usize] == 1
        {
            products[step.writes[0] as usize] = Some((done.len(), Shape::of_product(&shapes[0], &shapes[1])));
        }
        let Some((shape, terms)) = sum_of(&step) else {
            done.push(Some(step));
            continue;
        };
        let product_of = |source: &OperandRef| match *source {
            // Buffers store values without leading dimensions of size 1, so the product's shape may be shorter than the sum's shape.
            OperandRef::Buffer(buffer) => products[buffer as usize]
                .as_ref()
                .filter(|(_, own)| own.ends_with(&shape) && own.numel() == shape.numel())
                .map(|&(position, _)| position),
            OperandRef::Known(_) | OperandRef::Number(_) => None,
        };
        // The sum starts with its first term that is not a product, or with the first product if all terms are products.
        let mut terms: SmallVec<[OperandRef; 4]> = terms.iter().map(|&term| step.reads[term as usize]).collect();
        let other = terms.iter().position(|term| product_of(term).is_none());
        let mut sum = terms.remove(other.unwrap_or(0));
        let positions: Option<SmallVec<[usize; 4]>> = terms.iter().map(product_of).collect();
        let Some(positions) = positions.filter(|_| other.is_none_or(|other| other < 2)) else {
            done.push(Some(step));
            continue;
        };
        for (number, &position) in positions.iter().enumerate() {
            let product = done[position].take();
            let Some(Step { work: Work::Product(shapes), mut reads, writes, node, .. }) = product else {
                unreachable!("a product is read once")
            };
            reads.push(sum);
            let result = Shape::of_product(&shapes[0], &shapes[1]);
            let [left, right] = shapes;
            let work = Work::AddedProduct([left, right, result]);
            let writes = if number + 1 == positions.len() { step.writes.clone() } else { writes };
            let added = Step { work, reads, writes, drops: smallvec![], node };
            sum = OperandRef::Buffer(added.writes[0]);
            done.push(Some(added));
        }
    }
    done.into_iter().flatten().collect()
}

/// Returns the shape and the operands of a step that only adds its operands one after the other, in this order. Returns `None` for other
/// steps.
fn sum_of(step: &Step) -> Option<(Shape, SmallVec<[u32; 4]>)> {
    let Work::Fused(bound) = &step.work else { return None };
    let bound = bound.borrow();
    let terms = terms_of(bound.program())?;
    Some((bound.shape().clone(), terms))
}

/// Returns the inputs of a program that only adds its inputs one after the other, each once, in this order. Returns `None` for other
/// programs.
fn terms_of(program: &Program) -> Option<SmallVec<[u32; 4]>> {
    let (inputs, instructions) = (program.inputs(), program.instructions());
    let last = inputs + instructions.len() as u32 - 1;
    if program.outputs() != [Output::Whole(last)] || instructions.len() as u32 + 1 != inputs {
        return None;
    }
    let mut terms: SmallVec<[u32; 4]> = SmallVec::new();
    for (position, instruction) in instructions.iter().enumerate() {
        let &Instruction::Binary(Binary::Add, x, y) = instruction else { return None };
        let before = (position > 0).then(|| inputs + position as u32 - 1);
        let new = [x, y].into_iter().filter(|&value| Some(value) != before);
        terms.extend(new);
    }
    let mut seen = vec![false; inputs as usize];
    let each_once = terms.iter().all(|&term| term < inputs && !std::mem::replace(&mut seen[term as usize], true));
    (each_once && terms.len() == inputs as usize).then_some(terms)
}
