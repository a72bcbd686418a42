//! Writes the operands of concatenations directly into the result where possible. Then the concatenation copies only the other operands.
//!
//! There are two cases. If one fused program computes all operands, the program writes them side by side into one output. The gradients of
//! an LSTM cell's gates are an example. If different steps compute operands that are concatenated along the first dimension, each fused
//! program writes its operand at an offset of one buffer. Operands of other steps are copied. The states of a recurrent network are an
//! example. Several concatenations may share operands in the same order. For example, one concatenation has all states, and another one has
//! all states except the last.
//!
//! If different steps compute the operands, the memory is not always used. A concatenation that is a step of a region is written to the region's memory, and
//! all its operands are copied. Outside of regions, all operands are copied to a new tensor if no step has written an operand into the
//! planned memory.

use rustc_hash::FxHashMap;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::steps::{ConcatBuffers, Offset, OperandRef, Step, Work, count_reads};
use crate::engine::program::{Output, Program};
use crate::thresholds::plan::{MAX_CONCATENATED_ROW, MIN_CONCATENATION};
use crate::{Shape, View};

/// Returns the operands' shapes and the dimension, if the step is a concatenation that is large enough to be planned. Otherwise returns
/// `None`.
fn planned_concatenation(step: &Step) -> Option<(&[Shape], usize)> {
    let Work::Cat { axis, shapes, .. } = &step.work else { return None };
    (numel(shapes) >= MIN_CONCATENATION).then_some((shapes, *axis))
}

/// Returns the total number of elements of all operands.
fn numel(shapes: &[Shape]) -> usize {
    shapes.iter().map(|shape| shape.numel()).sum()
}

/// Returns the dimension of `space` that corresponds to dimension `axis` of `shape`. `shape` may have additional dimensions of size 1 in
/// front. Returns `None` if the shapes differ in any other way, or if `axis` is an additional dimension.
fn corresponding_axis(space: &Shape, shape: &Shape, axis: usize) -> Option<usize> {
    let extra = shape.rank().checked_sub(space.rank())?;
    let is_same = shape[extra..] == space[..] && shape[..extra].iter().all(|&size| size == 1);
    if is_same { axis.checked_sub(extra) } else { None }
}

/// Removes each concatenation that is not small, whose operands are all computed by one fused program, and for which [`concatenated_output`]
/// returns an output. The program gets this output, which is the concatenated result. The program no longer writes the operands that neither
/// another step nor a root reads.
pub(super) fn fuse_concatenations(steps: &mut Vec<Step>, roots: &[(OperandRef, Shape)], buffer_count: u32) {
    let mut readers = count_reads(steps, roots, buffer_count);
    // For each buffer, the position in `done` of the program that writes it.
    let mut producers: Vec<Option<usize>> = vec![None; buffer_count as usize];
    let mut done: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps.drain(..) {
        let producer = |source: &OperandRef| source.buffer().and_then(|buffer| producers[buffer as usize]);
        let first = step.reads.first().and_then(producer);
        let producer_index = first.filter(|_| step.reads.iter().all(|source| producer(source) == first));
        if let (Some(producer_index), Some((shapes, axis))) = (producer_index, planned_concatenation(&step))
            && let Some(output) = concatenated_output(&done[producer_index], &step, shapes, axis)
        {
            step.reads.iter().filter_map(OperandRef::buffer).for_each(|buffer| readers[buffer as usize] -= 1);
            add_output(&mut done[producer_index], output, step.writes[0], &readers);
            continue;
        }
        if let Work::Fused(_) = step.work {
            step.writes.iter().for_each(|&buffer| producers[buffer as usize] = Some(done.len()));
        }
        done.push(step);
    }
    *steps = done;
}

/// Returns the operands of the concatenation `reader` as one output of the program of the step `writer`. Returns `None` if that program
/// does not write each operand as a whole, if their shapes differ, or if their rows are too long. Also returns `None` if the operands are
/// concatenated along their first dimension.
fn concatenated_output(writer: &Step, reader: &Step, shapes: &[Shape], axis: usize) -> Option<Output> {
    let Work::Fused(bound) = &writer.work else { return None };
    let bound = bound.borrow();
    let space = bound.shape();
    let axis = corresponding_axis(space, &shapes[0], axis)?;
    let row = Shape::from(&space[axis..]).numel();
    if shapes.iter().any(|shape| *shape != shapes[0]) || row == space.numel() || row > MAX_CONCATENATED_ROW {
        return None;
    }
    let value = |read: &OperandRef| {
        let position = writer.writes.iter().position(|&written| read.buffer() == Some(written))?;
        if let Output::Whole(value) = bound.program().outputs()[position] { Some(value) } else { None }
    };
    let values: Option<Box<[u32]>> = reader.reads.iter().map(value).collect();
    Some(Output::Concatenated(values?, axis))
}

/// Adds `output`, which is written to `buffer`, to the program of a step. Removes the outputs of this program that are no longer read.
fn add_output(step: &mut Step, output: Output, buffer: u32, readers: &[u32]) {
    let Work::Fused(bound) = &step.work else { return };
    let (program, space) = (bound.borrow().program().clone(), bound.borrow().shape().clone());
    let outputs = program.outputs().iter().cloned().zip(step.writes.iter().copied());
    let read = outputs.filter(|&(_, buffer)| readers[buffer as usize] > 0);
    let (outputs, writes): (Vec<Output>, Vec<u32>) = read.chain([(output, buffer)]).unzip();
    let program = Program::new(program.inputs(), program.instructions().to_vec(), outputs, program.row_axis());
    (step.writes, step.work) = (writes.into(), Work::Fused(BoundProgram::new(program, space).into()));
}

/// An operand of a concatenation: its buffer, and the number of its elements. The buffer is `None` if the operand cannot be written
/// directly into the result and must be copied.
type ConcatOperand = (Option<u32>, usize);

/// Plans the memory of concatenations along the first dimension. Plans a concatenation only if it is not small and at least half of its
/// elements can be written directly into the result.
pub(super) fn plan_in_place(steps: &mut [Step], roots: &[(OperandRef, Shape)], buffer_count: u32) -> ConcatBuffers {
    let origins = Origins::new(steps, roots, buffer_count);
    let mut planned: Vec<(usize, Vec<ConcatOperand>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some((shapes, axis)) = planned_concatenation(step) else { continue };
        let parts: Vec<ConcatOperand> =
            step.reads.iter().zip(shapes).map(|(read, shape)| origins.operand(read, shape.numel())).collect();
        let written: usize = parts.iter().filter(|(buffer, _)| buffer.is_some()).map(|&(_, count)| count).sum();
        let is_first = shapes.iter().all(|shape| shape[..axis].iter().all(|&size| size == 1));
        if is_first && 2 * written >= numel(shapes) {
            planned.push((number, parts));
        }
    }
    // Sorts the concatenations by the lowest index among the buffers of their operands. If two concatenations share operands, the memory of
    // the first one can then be extended at its end for the second one.
    planned.sort_unstable_by_key(|(number, parts)| {
        (parts.iter().filter_map(|&(buffer, _)| buffer).min(), parts[0].0, *number)
    });
    let mut concat_buffers = ConcatBuffers::default();
    for (number, parts) in planned {
        if let (Some(offset), Work::Cat { in_place, .. }) = (concat_buffers.add(&parts), &mut steps[number].work) {
            *in_place = Some(offset);
        }
    }
    concat_buffers
}

/// The origins of the elements of a plan's buffers. An origin is the fused program that writes the buffer, or the buffer whose elements a
/// reshaped view reads. Buffers that other steps write have no origin.
struct Origins {
    /// For each buffer that a fused program writes and that is no result of the plan, the number of its elements.
    fused_numels: Vec<Option<usize>>,
    /// For each buffer that is a reshaped view, the buffer that has the elements.
    viewed_buffers: Vec<Option<u32>>,
}

impl Origins {
    /// Finds the origins of all buffers of `steps` except the buffers of roots (the results of the plan). If a root were a part of a
    /// concatenation's memory, it would keep the whole memory allocated.
    fn new(steps: &[Step], roots: &[(OperandRef, Shape)], buffer_count: u32) -> Self {
        let mut origins = Origins {
            fused_numels: vec![None; buffer_count as usize],
            viewed_buffers: vec![None; buffer_count as usize],
        };
        for step in steps {
            match (&step.work, &step.reads[..]) {
                (Work::Fused(bound), _) => {
                    let bound = bound.borrow();
                    for (output, &buffer) in bound.program().outputs().iter().zip(&step.writes) {
                        let count = bound.program().shape_of(output, bound.shape()).numel();
                        origins.fused_numels[buffer as usize] = Some(count);
                    }
                }
                (Work::View(View::Reshape(_), _), &[OperandRef::Buffer(of)]) => {
                    origins.viewed_buffers[step.writes[0] as usize] =
                        Some(origins.viewed_buffers[of as usize].unwrap_or(of));
                }
                _ => {}
            }
        }
        for root in roots.iter().filter_map(|(source, _)| source.buffer()) {
            let root = origins.viewed_buffers[root as usize].unwrap_or(root);
            origins.fused_numels[root as usize] = None;
        }
        origins
    }

    /// Returns the part of a concatenation that the operand `source` fills. The operand has `count` elements.
    fn operand(&self, source: &OperandRef, count: usize) -> ConcatOperand {
        let origin = source.buffer().map(|buffer| self.viewed_buffers[buffer as usize].unwrap_or(buffer));
        (origin.filter(|&origin| self.fused_numels[origin as usize] == Some(count)), count)
    }
}

impl ConcatBuffers {
    /// Finds offsets for parts that are adjacent in a concatenation: in a new buffer, or in an existing buffer that can grow at its end.
    /// Returns the offset of the first part. Returns `None` if a part already has another offset or occurs twice. Also returns `None` if a
    /// part would have to lie before or over the parts of an existing buffer.
    fn add(&mut self, parts: &[ConcatOperand]) -> Option<Offset> {
        let known =
            |buffer: Option<u32>| buffer.and_then(|buffer| self.offsets.get(&buffer).map(|&(offset, _)| offset));
        let mut total = 0;
        let start = |&(_, count): &ConcatOperand| {
            total += count;
            total - count
        };
        let starts: Vec<usize> = parts.iter().map(start).collect();
        let anchor = parts.iter().zip(&starts).find_map(|(part, start)| Some((known(part.0)?, start)));
        let (buffer, first) = match anchor {
            None => (self.lengths.len(), 0),
            Some((offset, start)) => (offset.buffer, offset.start.checked_sub(*start)?),
        };
        let len = self.lengths.get(buffer).copied().unwrap_or(0);
        let mut new = FxHashMap::default();
        for (&(part, count), start) in parts.iter().zip(starts) {
            let own = Offset { buffer, start: first + start };
            let fits = match own.start < len {
                true => known(part) == Some(own),
                false => known(part).is_none() && part.is_none_or(|part| new.insert(part, (own, count)).is_none()),
            };
            if !fits {
                return None;
            }
        }
        self.lengths.resize(self.lengths.len().max(buffer + 1), 0);
        self.lengths[buffer] = len.max(first + total);
        self.offsets.extend(new);
        Some(Offset { buffer, start: first })
    }
}
