//! From requested values to tensors: step by step, each buffer released after its last use.
//!
//! What nobody asked for is not computed and not kept: an evaluation visits the ancestors of what was asked for, and keeps
//! the values of just that. Which steps there are is [`plan`](crate::plan)'s business.

use std::ops::Deref;

use smallvec::SmallVec;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::program::{Argument, AxisSet};
use wengert_tensor::{Float, Shape, Site, Tensor, View};

use crate::error::{or_raise, raise};
use crate::plan::{Plan, Source, Step, Work, planned};
use crate::record::{Index, Op};
use crate::tape::Record;
use crate::{Error, Tape, Var};

impl<T: Float> Tape<T> {
    /// The values of `roots`, in order.
    pub(crate) fn evaluate(&self, roots: &[Index], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let values = {
            let record = self.record.borrow();
            if let Some(known) = roots.iter().map(|&root| known(&record, root)).collect() {
                return Ok(known);
            }
            planned(&record, roots, |plan| run(&record, plan, at))?
        };
        let mut record = self.record.borrow_mut();
        for (&root, value) in roots.iter().zip(&values) {
            if record.leaf(root).is_none() {
                record.values.insert(root, value.clone());
            }
        }
        Ok(values)
    }
}

impl<T: Float> Var<'_, T> {
    /// The value, computed now if it was not before.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it, or a custom operation fails; see [`try_value`](Self::try_value).
    #[track_caller]
    pub fn value(self) -> Tensor<T> {
        or_raise(self.try_value())
    }

    /// [`value`](Self::value), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold it, or a custom operation fails.
    #[track_caller]
    pub fn try_value(self) -> Result<Tensor<T>, Error> {
        let mut values = self.tape.evaluate(&[self.index], Site::here("value"))?;
        Ok(values.swap_remove(0))
    }

    /// The value of a variable that has exactly one element. PyTorch: `item`.
    ///
    /// # Panics
    ///
    /// Where there are fewer or more elements than one, or [`value`](Self::value) panics.
    #[track_caller]
    pub fn item(self) -> T {
        let at = Site::here("item");
        let shape = self.shape();
        if shape.numel() != 1 {
            raise(Error::NotOneNumber { shape, at });
        }
        match self.tape.evaluate(&[self.index], at) {
            Ok(values) => values[0].item(),
            Err(error) => raise(error),
        }
    }
}

/// The value of a node that was computed before or holds data.
fn known<T: Float>(record: &Record<T>, index: Index) -> Option<Tensor<T>> {
    record.leaf(index).or_else(|| record.values.get(&index).cloned())
}

/// What a run has computed and not yet dropped.
struct Slots<'a, T: Float> {
    record: &'a Record<T>,
    values: Vec<Option<Tensor<T>>>,
}

impl<T: Float> Slots<'_, T> {
    fn tensor(&self, source: &Source<T>) -> Option<&Tensor<T>> {
        match *source {
            Source::Slot(slot) => self.values[slot as usize].as_ref(),
            Source::Known(index) => match self.record.node(index).op {
                Op::Constant(number) | Op::Variable(number) => Some(self.record.leaf_data(number)),
                _ => self.record.values.get(&index),
            },
            Source::Number(_) => None,
        }
    }

    /// The value over `shape`: a view, nothing is copied.
    fn over(&self, source: &Source<T>, shape: &Shape, at: Site) -> Result<Seen<'_, T>, Error> {
        let value = match (source, self.tensor(source)) {
            (Source::Number(value), _) => Seen::Made(Tensor::scalar(*value)),
            (_, Some(value)) => Seen::Held(value),
            (source, None) => unreachable!("{source:?} is read before it is computed or after it was dropped"),
        };
        if value.shape() == shape {
            return Ok(value);
        }
        // Values are kept over the dimensions along which they vary; sizes of 1 come and go.
        let (own, rank) = (value.shape(), shape.rank());
        let value = match own.rank().checked_sub(rank) {
            Some(extra @ 1..) => Seen::Made(value.apply_view(View::Reshape(Shape::from(&own[extra..])), at)?),
            _ => value,
        };
        Ok(Seen::Made(value.apply_view(View::Expand(shape.clone()), at)?))
    }
}

/// A value as one of its readers sees it.
enum Seen<'a, T: Float> {
    /// As it is kept.
    Held(&'a Tensor<T>),
    /// Expanded to a shape.
    Made(Tensor<T>),
}

impl<T: Float> Deref for Seen<'_, T> {
    type Target = Tensor<T>;

    fn deref(&self) -> &Tensor<T> {
        match self {
            Seen::Held(value) => value,
            Seen::Made(value) => value,
        }
    }
}

/// Runs the steps; returns the values of the plan's roots.
pub(crate) fn run<T: Float>(record: &Record<T>, plan: &Plan<T>, at: Site) -> Result<Vec<Tensor<T>>, Error> {
    let mut slots = Slots { record, values: vec![None; plan.slots] };
    for step in &plan.steps {
        // A failure (memory) is the fault of the line that recorded the operation.
        match &step.work {
            Work::Fused(program) => {
                let argument = |source: &Source<T>| match (source, slots.tensor(source)) {
                    (Source::Number(value), _) => Argument::Number(*value),
                    (_, Some(tensor)) => Argument::from(tensor),
                    (source, None) => unreachable!("{source:?} is read before it is computed or after it was dropped"),
                };
                let arguments: SmallVec<[Argument<'_, T>; 8]> = step.reads.iter().map(argument).collect();
                let at = Site { operation: record.name(step.node), location: record.location(step.node) };
                let results = program.borrow_mut().run(&arguments, at)?;
                drop(arguments);
                for (&slot, result) in step.writes.iter().zip(results) {
                    slots.values[slot as usize] = Some(result);
                }
            }
            work => {
                let result = single(&slots, step, work, at)?;
                slots.values[step.writes[0] as usize] = Some(result);
            }
        }
        for &slot in &step.drops {
            slots.values[slot as usize] = None;
        }
    }
    plan.roots.iter().map(|(source, shape)| Ok(slots.over(source, shape, at)?.clone())).collect()
}

fn single<T: Float>(slots: &Slots<'_, T>, step: &Step<T>, work: &Work, at: Site) -> Result<Tensor<T>, Error> {
    let record = slots.record;
    match work {
        Work::Reduce(op, axes, shape) => {
            let at = Site { operation: record.name(step.node), location: record.location(step.node) };
            let x = slots.over(&step.reads[0], shape, at)?;
            Ok(x.apply_reduce(*op, &axes_of(*axes), at)?)
        }
        Work::View(view, shape) => {
            let at = Site { operation: record.name(step.node), location: record.location(step.node) };
            Ok(slots.over(&step.reads[0], shape, at)?.apply_view(view.clone(), at)?)
        }
        Work::Node(node, shapes) if record.op(*node) == Op::Matmul => {
            let at = Site { operation: record.name(step.node), location: record.location(step.node) };
            let over = |position: usize| slots.over(&step.reads[position], &shapes[position], at);
            let (x, y) = (over(0)?, over(1)?);
            Ok(x.apply_matmul(&y, at)?)
        }
        Work::Node(node, shapes) => {
            let over = |(read, shape)| slots.over(read, shape, at).map(|seen| seen.clone());
            let operands = step.reads.iter().zip(shapes).map(over).collect::<Result<_, _>>()?;
            compute(record, *node, operands, at)
        }
        Work::Fused(..) => unreachable!("a fused program has steps of its own"),
    }
}

fn axes_of(set: AxisSet) -> SmallVec<[usize; 6]> {
    (0..AxisSet::BITS as usize).filter(|&axis| set >> axis & 1 == 1).collect()
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
        (Op::View(number), [x]) => x.apply_view(record.view(number).clone(), at)?,
        (Op::Other(number), operands) => record.operation(number).run(operands)?,
        (Op::Number(number), []) => Tensor::scalar(record.number(number)),
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
        values.push(match record.leaf(index) {
            Some(data) => data,
            None => compute(&record, index, operands, at)?,
        });
    }
    Ok(roots.iter().map(|&root| values[root as usize].clone()).collect())
}
