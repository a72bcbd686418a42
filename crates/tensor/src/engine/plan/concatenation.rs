//! Concatenations whose parts are written where they belong, so that nothing is copied.
//!
//! Parts that one fused program computes become one output of it, in which they lie side by side: the gates' gradients of a cell.
//! Parts that follow each other in memory, made by different steps, are ranges of one piece of memory from the start: the
//! states of a recurrent network. Several concatenations may have parts in common, as long as these come in the same order: the states,
//! and the states before each.

use std::collections::HashMap;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::steps::{Chains, Source, Step, Work};
use crate::engine::program::{Output, Program};
use crate::{Float, Shape, View};

/// Elements of a concatenation, at least: fewer are copied sooner than they are looked at.
const SHORTEST: usize = 1 << 10;

/// Elements of a row in which parts lie side by side, at most: what a program has in all its registers for a row stays in the
/// second-level cache.
const LONGEST_ROW: usize = 1 << 12;

/// A concatenation among the steps, where the sizes before its dimension are `shape[..axis]`.
fn concatenation<T>(step: &Step<T>) -> Option<(&[Shape], usize)> {
    let Work::Cat(axis, shapes) = &step.work else { return None };
    (numel(shapes) >= SHORTEST).then_some((shapes, *axis))
}

/// Returns the number of elements of all parts.
fn numel(shapes: &[Shape]) -> usize {
    shapes.iter().map(|shape| shape.numel()).sum()
}

/// Which dimension of `space` is dimension `axis` of `shape`, where leading sizes of 1 are all that they differ in.
fn same_axis(space: &Shape, shape: &Shape, axis: usize) -> Option<usize> {
    let extra = shape.rank().checked_sub(space.rank())?;
    (shape[extra..] == space[..] && shape[..extra].iter().all(|&size| size == 1)).then(|| axis.checked_sub(extra))?
}

/// The buffer that is read, if it is one.
fn buffer<T>(source: &Source<T>) -> Option<u32> {
    if let Source::Buffer(buffer) = source { Some(*buffer) } else { None }
}

/// Makes one output of values of one program that are joined, not along the first dimension. Those that nothing else reads are no
/// longer written by themselves.
pub(super) fn side_by_side<T: Float>(steps: &mut Vec<Step<T>>, roots: &[(Source<T>, Shape)], buffers: u32) {
    let mut readers = vec![0u32; buffers as usize];
    let read = steps.iter().flat_map(|step| &step.reads).chain(roots.iter().map(|(source, _)| source));
    read.filter_map(buffer).for_each(|buffer| readers[buffer as usize] += 1);
    // Of each buffer the fused program that writes it, among the steps that stay.
    let mut made: Vec<Option<usize>> = vec![None; buffers as usize];
    let mut done: Vec<Step<T>> = Vec::with_capacity(steps.len());
    for step in steps.drain(..) {
        let producer = |source: &Source<T>| buffer(source).and_then(|buffer| made[buffer as usize]);
        let first = step.reads.first().and_then(producer);
        let place = first.filter(|_| step.reads.iter().all(|source| producer(source) == first));
        if let (Some(place), Some((shapes, axis))) = (place, concatenation(&step))
            && let Some(output) = joined(&done[place], &step, shapes, axis)
        {
            step.reads.iter().filter_map(buffer).for_each(|buffer| readers[buffer as usize] -= 1);
            write(&mut done[place], output, step.writes[0], &readers);
            continue;
        }
        if let Work::Fused(_) = step.work {
            step.writes.iter().for_each(|&buffer| made[buffer as usize] = Some(done.len()));
        }
        done.push(step);
    }
    *steps = done;
}

/// The operands of `reader` as one output of the program of `writer`, which computes them.
fn joined<T: Float>(writer: &Step<T>, reader: &Step<T>, shapes: &[Shape], axis: usize) -> Option<Output> {
    let Work::Fused(bound) = &writer.work else { return None };
    let bound = bound.borrow();
    let space = bound.shape();
    let axis = same_axis(space, &shapes[0], axis)?;
    let row = Shape::from(&space[axis..]).numel();
    if shapes.iter().any(|shape| *shape != shapes[0]) || row == space.numel() || row > LONGEST_ROW {
        return None;
    }
    let value = |read: &Source<T>| {
        let position = writer.writes.iter().position(|&written| buffer(read) == Some(written))?;
        if let Output::Whole(value) = bound.program().outputs()[position] { Some(value) } else { None }
    };
    let values: Option<Box<[u32]>> = reader.reads.iter().map(value).collect();
    Some(Output::Joined(values?, axis))
}

/// Gives the program of a step one more output, and takes those away that nothing reads.
fn write<T: Float>(step: &mut Step<T>, output: Output, buffer: u32, readers: &[u32]) {
    let Work::Fused(bound) = &step.work else { return };
    let (program, space) = (bound.borrow().program().clone(), bound.borrow().shape().clone());
    let outputs = program.outputs().iter().cloned().zip(step.writes.iter().copied());
    let read = outputs.filter(|&(_, buffer)| readers[buffer as usize] > 0);
    let (outputs, writes): (Vec<Output>, Vec<u32>) = read.chain([(output, buffer)]).unzip();
    let program = Program::new(program.inputs(), program.instructions().to_vec(), outputs, program.row());
    (step.writes, step.work) = (writes.into(), Work::Fused(BoundProgram::new(program, space).into()));
}

/// A part of a chain: the buffer that is written there, if that can be, and the number of elements.
type Part = (Option<u32>, usize);

/// Finds memory for parts that follow each other, and turns the concatenations into steps that expect them there.
pub(super) fn chains<T: Float>(steps: &mut [Step<T>], roots: &[(Source<T>, Shape)], buffers: u32) -> Chains {
    let origins = Origins::new(steps, roots, buffers);
    let mut lists: Vec<(usize, Vec<Part>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some((shapes, axis)) = concatenation(step) else { continue };
        let parts: Vec<Part> =
            step.reads.iter().zip(shapes).map(|(read, shape)| origins.part(read, shape.numel())).collect();
        let in_place: usize = parts.iter().filter(|(buffer, _)| buffer.is_some()).map(|&(_, count)| count).sum();
        let in_order = shapes.iter().all(|shape| shape[..axis].iter().all(|&size| size == 1));
        if in_order && 2 * in_place >= numel(shapes) {
            lists.push((number, parts));
        }
    }
    // Then what two have in common is the end of the first and the start of the second.
    lists.sort_by_key(|(number, parts)| (parts.iter().filter_map(|&(buffer, _)| buffer).min(), parts[0].0, *number));
    let mut found = Chains::default();
    for (number, parts) in lists {
        let Some((chain, first)) = found.add(&parts) else { continue };
        let step = &mut steps[number];
        if let Work::Cat(axis, shapes) = &mut step.work {
            step.work = Work::Join { axis: *axis, shapes: std::mem::take(shapes), chain, first };
        }
    }
    found
}

/// Where buffers come from.
struct Origins {
    /// Elements of each buffer that a fused program writes.
    written: Vec<Option<usize>>,
    /// The buffer that another shows in another shape.
    shown: Vec<Option<u32>>,
}

impl Origins {
    /// What is asked for is no part: it would keep the others' memory.
    fn new<T: Float>(steps: &[Step<T>], roots: &[(Source<T>, Shape)], buffers: u32) -> Self {
        let mut origins = Origins { written: vec![None; buffers as usize], shown: vec![None; buffers as usize] };
        for step in steps {
            match (&step.work, &step.reads[..]) {
                (Work::Fused(bound), _) => {
                    let bound = bound.borrow();
                    for (output, &buffer) in bound.program().outputs().iter().zip(&step.writes) {
                        let count = bound.program().shape_of(output, bound.shape()).numel();
                        origins.written[buffer as usize] = Some(count);
                    }
                }
                (Work::View(View::Reshape(_), _), &[Source::Buffer(of)]) => {
                    origins.shown[step.writes[0] as usize] = Some(origins.shown[of as usize].unwrap_or(of));
                }
                _ => {}
            }
        }
        for root in roots.iter().filter_map(|(source, _)| buffer(source)) {
            let root = origins.shown[root as usize].unwrap_or(root);
            origins.written[root as usize] = None;
        }
        origins
    }

    /// `count` elements of `source`, as a part.
    fn part<T>(&self, source: &Source<T>, count: usize) -> Part {
        let origin = buffer(source).map(|buffer| self.shown[buffer as usize].unwrap_or(buffer));
        (origin.filter(|&origin| self.written[origin as usize] == Some(count)), count)
    }
}

impl Chains {
    /// The chain and the place of the first of these parts: in a new chain, or in one that may grow at its end; `None` where some are
    /// elsewhere already, or twice.
    fn add(&mut self, parts: &[Part]) -> Option<(usize, usize)> {
        let place = |buffer: Option<u32>| buffer.and_then(|buffer| self.places.get(&buffer).copied());
        let (chain, first) = match parts.iter().position(|&(buffer, _)| place(buffer).is_some()) {
            None => (self.lengths.len(), 0),
            Some(position) => {
                let (chain, own) = place(parts[position].0)?;
                (chain, own.checked_sub(position)?)
            }
        };
        let len = self.lengths.get(chain).map_or(0, Vec::len);
        let mut new = HashMap::new();
        for (position, &(buffer, _)) in parts.iter().enumerate() {
            let (own, before) = ((chain, first + position), place(buffer));
            let fits = match own.1 < len {
                true => before == Some(own),
                false => before.is_none() && buffer.is_none_or(|buffer| new.insert(buffer, own).is_none()),
            };
            if !fits {
                return None;
            }
        }
        self.lengths.resize(self.lengths.len().max(chain + 1), Vec::new());
        self.lengths[chain].extend(parts.iter().skip(len - first).map(|&(_, count)| count));
        self.places.extend(new);
        Some((chain, first))
    }
}
