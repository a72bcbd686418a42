//! From requested values to tensors: step by step, each buffer released after its last use.
//!
//! What nobody asked for is not computed and not kept: an evaluation visits the ancestors of what was asked for, and keeps
//! the values of just that.

use std::collections::HashMap;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::{Float, Site, Tensor, View};

use crate::record::{Index, Op, Record};
use crate::schedule::{Step, schedule};
use crate::{Error, Tape};

impl<T: Float> Tape<T> {
    /// The values of `roots`, in order.
    pub(crate) fn evaluate(&self, roots: &[Index], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let computed = {
            let record = self.record.borrow();
            let mut order = ancestors(&record, roots);
            order.sort_unstable();
            let steps = schedule(&record, roots, &order);
            run(&record, roots, &steps, at)?
        };
        let mut record = self.record.borrow_mut();
        record.values.extend(computed);
        Ok(roots.iter().map(|root| leaf_or_kept(&record, *root)).collect())
    }
}

/// The value of a node that was computed before or holds data.
fn leaf_or_kept<T: Float>(record: &Record<T>, index: Index) -> Tensor<T> {
    match record.node(index).op {
        Op::Constant(number) | Op::Variable(number) => record.leaf_data(number).clone(),
        _ => record.values[&index].clone(),
    }
}

fn is_known<T: Float>(record: &Record<T>, index: Index) -> bool {
    matches!(record.node(index).op, Op::Constant(_) | Op::Variable(_)) || record.values.contains_key(&index)
}

/// The nodes that must be computed for `roots`, in no order.
fn ancestors<T: Float>(record: &Record<T>, roots: &[Index]) -> Vec<Index> {
    let mut seen = vec![false; roots.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut order = Vec::new();
    let mut open: Vec<Index> = roots.to_vec();
    while let Some(index) = open.pop() {
        if !seen[index as usize] && !is_known(record, index) {
            seen[index as usize] = true;
            order.push(index);
            open.extend(record.inputs(index));
        }
    }
    order
}

/// How many steps still read each value; what was asked for is read once more, at the end.
struct Uses(HashMap<Index, usize>);

impl Uses {
    fn count(steps: &[Step], record: &Record<impl Float>, roots: &[Index]) -> Self {
        let mut uses = HashMap::new();
        for step in steps {
            for input in step.reads(record) {
                *uses.entry(input).or_default() += 1;
            }
        }
        for &root in roots {
            *uses.entry(root).or_default() += 1;
        }
        Uses(uses)
    }

    /// One step less; whether it was the last.
    fn release(&mut self, index: Index) -> bool {
        match self.0.get_mut(&index) {
            Some(left) => {
                *left -= 1;
                *left == 0
            }
            None => false,
        }
    }
}

/// Runs the steps; returns the values of `roots` that they computed.
fn run<T: Float>(
    record: &Record<T>,
    roots: &[Index],
    steps: &[Step],
    at: Site,
) -> Result<HashMap<Index, Tensor<T>>, Error> {
    let mut uses = Uses::count(steps, record, roots);
    let mut live: HashMap<Index, Tensor<T>> = HashMap::new();
    for step in steps {
        let reads = step.reads(record);
        let operands: Vec<Tensor<T>> = reads
            .iter()
            .map(|input| {
                let value = live.get(input).cloned().unwrap_or_else(|| leaf_or_kept(record, *input));
                if uses.release(*input) {
                    live.remove(input);
                }
                value
            })
            .collect();
        match step {
            Step::Single(index) => {
                live.insert(*index, compute(record, *index, operands, at)?);
            }
            Step::Fused(kernel) => {
                let last = kernel.nodes[kernel.nodes.len() - 1];
                let at = Site { operation: record.name(last), location: record.location(last) };
                let results = kernel.program.run(&operands, record.shape(last), at)?;
                live.extend(kernel.outputs.iter().copied().zip(results));
            }
        }
    }
    live.retain(|index, _| roots.contains(index));
    Ok(live)
}

/// The value of one node from its inputs' values.
pub(crate) fn compute<T: Float>(
    record: &Record<T>,
    index: Index,
    operands: Vec<Tensor<T>>,
    asked: Site,
) -> Result<Tensor<T>, Error> {
    let node = record.node(index);
    // A failure (memory) is the fault of the line that recorded the operation.
    let at = Site { operation: record.name(index), location: record.location(index) };
    let shape = record.shape(index);
    let value = match (node.op, &operands[..]) {
        (Op::Detach | Op::Opaque(_), [x]) => x.clone(),
        (Op::Unary(op), [x]) => x.apply_unary(op, at)?,
        (Op::Binary(op), [x, y]) => x.apply_binary(op, y, at)?,
        (Op::Compare(op), [x, y]) => x.apply_compare(op, y, at)?.try_cast()?,
        (Op::Select, [mask, x, y]) => {
            let zero = Tensor::scalar(T::ZERO).apply_view(View::Expand(shape.clone()), at)?;
            let mask = mask.apply_compare(wengert_tensor::Compare::Ne, &zero, at)?;
            Tensor::apply_select(&mask, x, y, at)?
        }
        (Op::Expand, [x]) => x.apply_view(View::Expand(shape.clone()), at)?,
        (Op::Reshape, [x]) => x.apply_view(View::Reshape(shape.clone()), at)?,
        (Op::Reduce(op), [x]) => {
            let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| shape[axis] != x.shape()[axis]).collect();
            x.apply_reduce(op, &axes, at)?
        }
        (Op::Matmul, [x, y]) => x.apply_matmul(y, at)?,
        (Op::Other(number), operands) => record.operation(number).run(operands)?,
        (op, operands) => unreachable!("{op:?} of {} operands, asked at {}", operands.len(), asked.location),
    };
    if value.shape() != shape {
        let message = format!("'{}' gave a result of shape {}, but said {shape}", record.name(index), value.shape());
        return Err(Error::Refused { message, at });
    }
    Ok(value)
}

/// The oracle of the tests: the same values, one node at a time.
#[cfg(test)]
pub(crate) fn one_at_a_time<T: Float>(tape: &Tape<T>, roots: &[Index]) -> Result<Vec<Tensor<T>>, Error> {
    let record = tape.record.borrow();
    let at = Site::here("oracle");
    let mut values: Vec<Tensor<T>> = Vec::new();
    for index in 0..=roots.iter().copied().max().unwrap_or_default() {
        let operands = record.inputs(index).iter().map(|&input| values[input as usize].clone()).collect();
        values.push(match record.node(index).op {
            Op::Constant(number) | Op::Variable(number) => record.leaf_data(number).clone(),
            _ => compute(&record, index, operands, at)?,
        });
    }
    Ok(roots.iter().map(|&root| values[root as usize].clone()).collect())
}
