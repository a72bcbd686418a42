//! Executes plans step by step. A plan is the list of steps that computes an expression. Each buffer is released after its last use.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::engine::access::ProgramArgument;
use crate::engine::elementwise;
use crate::engine::plan::{
    ConcatBuffers, Expression, Location, NodeIndex, Offset, Op, OperandRef, Plan, Region, Step, Work,
};
use crate::engine::program::AxisSet;
use crate::kernel::source::Source;
use crate::memory::storage::{ConcatMemory, Storage};
use crate::ops::TensorLike;
use crate::{Axes, Compare, Error, Float, Layout, Shape, Site, Tensor, View};

/// The owner of an expression. It has the data of the expression's leaves, and runs the operations that the engine does not know.
#[doc(hidden)]
pub trait Evaluate<T: Float> {
    /// The error of a failed evaluation.
    type Error: From<Error>;

    /// Returns the expression whose nodes are evaluated.
    fn expression(&self) -> &Expression;

    /// Returns the value of a node if the node is data, or if its value was computed before. The value can be smaller than the node's
    /// shape: large expanded data is returned before its expansion.
    fn known(&self, node: NodeIndex) -> Option<&Tensor<T>>;

    /// Returns the name of the operation of a node and the line of code that recorded it, for errors.
    fn site(&self, node: NodeIndex) -> Site;

    /// Runs the operation of a node that is an [`Op::Other`]. Returns an error if the operation refuses these operands, or if memory cannot
    /// hold its result.
    fn run_other(&self, node: NodeIndex, operands: &[Tensor<T>]) -> Result<Tensor<T>, Self::Error>;

    /// Returns true if the data of a node is not in memory. [`fetch`](Self::fetch) then loads the data for each step that reads the node.
    fn is_remote(&self, _node: NodeIndex) -> bool {
        false
    }

    /// Returns the data of a node that is [not in memory](Self::is_remote). The caller drops the data after the step that reads it.
    /// Returns an error if the data cannot be loaded.
    fn fetch(&self, node: NodeIndex) -> Result<Tensor<T>, Self::Error> {
        unreachable!("the data of node %{node} is here")
    }

    /// Runs the steps of a plan of the expression, and returns the values of the plan's roots (the requested nodes). Returns an error if
    /// memory cannot hold a value, if an operation refuses its operands, or if data cannot be loaded.
    fn run(&self, plan: &Plan, at: Site) -> Result<Vec<Tensor<T>>, Self::Error> {
        plan.threads.run(|| run_steps(self, plan, at))
    }

    /// Does the same as [`run`](Self::run), but calls `ready` for each root as soon as its value is computed. The arguments are the root's
    /// position in the plan's list of roots, and the value. Values that no later step reads are released. Returns the errors of `run` and
    /// of `ready`.
    fn run_each(
        &self,
        plan: &Plan,
        at: Site,
        ready: &mut dyn FnMut(usize, Tensor<T>) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error> {
        let mut buffers = Buffers::new(self, plan);
        let (mut root_positions, mut last_use) =
            (vec![SmallVec::<[usize; 1]>::new(); plan.buffers], vec![0; plan.buffers]);
        for (position, (source, shape)) in plan.roots.iter().enumerate() {
            match source {
                OperandRef::Buffer(buffer) => root_positions[*buffer as usize].push(position),
                source => {
                    buffers.fetched.clear();
                    buffers.fetch(source)?;
                    ready(position, buffers.value_of_shape(source, shape, at)?.into_owned())?;
                }
            }
        }
        for (number, step) in plan.steps.iter().enumerate() {
            buffers_of(step).for_each(|buffer| last_use[buffer as usize] = number);
        }
        for (number, step) in plan.steps.iter().enumerate() {
            if buffers.postpone(step, &root_positions) {
                continue;
            }
            buffers.run_step(step)?;
            for &position in step.writes.iter().flat_map(|&buffer| &root_positions[buffer as usize]) {
                let (source, shape) = &plan.roots[position];
                ready(position, buffers.value_of_shape(source, shape, at)?.into_owned())?;
            }
            for buffer in buffers_of(step).filter(|&buffer| last_use[buffer as usize] == number) {
                buffers.values[buffer as usize] = None;
            }
        }
        Ok(())
    }

    /// Computes the value of one node from the values of its inputs. Plans call this method for nodes that the engine cannot run
    /// (`Work::Node`). Callers without a plan call it for every node that is not data. Returns an error if memory cannot hold the value, or
    /// if the operation refuses its operands.
    fn compute(&self, node: NodeIndex, operands: &[Tensor<T>]) -> Result<Tensor<T>, Self::Error> {
        let (expression, at) = (self.expression(), self.site(node));
        let shape = expression.shape(node);
        Ok(match (expression.op(node), operands) {
            (Op::Alias(_), [x]) => x.clone(),
            (Op::Unary(op), [x]) => x.apply_unary(op, at)?,
            (Op::Binary(op), [x, y]) => x.apply_binary(op, y, at)?,
            (Op::Compare(op), [x, y]) => x.apply_compare(op, y, at)?.try_cast()?,
            (Op::Select, [mask, x, y]) => {
                let zero = Tensor::scalar(T::ZERO).apply_view(View::Expand(shape.clone()), at)?;
                Tensor::apply_select(&mask.apply_compare(Compare::Ne, &zero, at)?, x, y, at)?
            }
            (Op::Expand, [x]) => x.apply_view(View::Expand(shape.clone()), at)?,
            (Op::Reshape, [x]) => x.apply_view(View::Reshape(shape.clone()), at)?,
            (Op::Reduce(op), [x]) => {
                let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| shape[axis] != x.shape()[axis]).collect();
                x.apply_reduce(op, &axes, at)?
            }
            (Op::Matmul, [x, y]) => x.apply_matmul(y, at)?,
            (Op::View(number), [x]) => x.apply_view(expression.view(number).clone(), at)?,
            (Op::Embed(number), [x]) => x.apply_embed(expression.view(number).clone(), shape, at)?,
            (Op::Cat(axis), parts) => Tensor::apply_cat(parts, axis as usize, at)?,
            (Op::Other(_), operands) => self.run_other(node, operands)?,
            (Op::Number(number), []) => Tensor::scalar(T::from_f64(expression.number(number))),
            (op, operands) => unreachable!("{op:?} of {} operands", operands.len()),
        })
    }
}

/// The state of a running plan. Each value that a step has computed is kept until its last use.
struct Buffers<'a, T: Float, E: ?Sized> {
    host: &'a E,
    values: Vec<Option<Tensor<T>>>,
    /// The data that was fetched for the current step, and views of that data.
    fetched: SmallVec<[(OperandRef, Tensor<T>); 2]>,
    /// Some data is not in memory, but is loaded for each step that reads it. For each buffer that is a view of such data, this list has
    /// the step that makes the view. This step runs again for each step that reads the view.
    postponed_views: Vec<Option<&'a Step>>,
    concatenations: Concatenations<'a, T>,
}

/// Runs the steps of a plan one after the other, and returns the values of the plan's roots.
fn run_steps<T: Float, E: Evaluate<T> + ?Sized>(host: &E, plan: &Plan, at: Site) -> Result<Vec<Tensor<T>>, E::Error> {
    let mut buffers = Buffers::new(host, plan);
    let mut regions = plan.regions.iter().peekable();
    let mut number = 0;
    while let Some(step) = plan.steps.get(number) {
        let mut end = number + 1;
        match regions.next_if(|region| region.steps.start == number) {
            Some(region) if buffers.run_region(region, &plan.steps)? => end = region.steps.end,
            _ => buffers.run_step(step)?,
        }
        for &buffer in plan.steps[number..end].iter().flat_map(|step| &step.drops) {
            buffers.values[buffer as usize] = None;
        }
        number = end;
    }
    let mut value_of = |(source, shape): &(OperandRef, Shape)| {
        buffers.fetched.clear();
        buffers.fetch(source)?;
        Ok(buffers.value_of_shape(source, shape, at)?.into_owned())
    };
    plan.roots.iter().map(&mut value_of).collect()
}

/// Returns the indices of the buffers that a step reads and writes.
fn buffers_of(step: &Step) -> impl Iterator<Item = u32> {
    step.reads.iter().filter_map(OperandRef::buffer).chain(step.writes.iter().copied())
}

impl<'a, T: Float, E: Evaluate<T> + ?Sized> Buffers<'a, T, E> {
    fn new(host: &'a E, plan: &'a Plan) -> Self {
        let memory = plan.concat_buffers.lengths.iter().map(|_| None).collect();
        let concatenations = Concatenations { plan: &plan.concat_buffers, memory };
        Buffers {
            host,
            values: vec![None; plan.buffers],
            fetched: SmallVec::new(),
            postponed_views: Vec::new(),
            concatenations,
        }
    }

    /// Postpones `step` if it makes a view of data that is not in memory, unless the view is a root of the plan. Records a postponed step
    /// in `postponed_views`, so that it runs for each step that reads the view. Returns true if the step is postponed.
    fn postpone(&mut self, step: &'a Step, root_positions: &[SmallVec<[usize; 1]>]) -> bool {
        let (Work::View(..) | Work::Copy(..), &[buffer]) = (&step.work, &step.writes[..]) else {
            return false;
        };
        let is_view_of_remote = match step.reads[0] {
            OperandRef::Known(node) => self.host.is_remote(node),
            OperandRef::Buffer(buffer) => self.postponed_views.get(buffer as usize).is_some_and(Option::is_some),
            OperandRef::Number(_) => false,
        };
        if is_view_of_remote && root_positions[buffer as usize].is_empty() {
            self.postponed_views.resize(self.values.len(), None);
            self.postponed_views[buffer as usize] = Some(step);
            return true;
        }
        false
    }

    /// Loads an operand whose data is not in memory, and adds it to `fetched`. Does nothing for other operands.
    #[inline]
    fn fetch(&mut self, source: &OperandRef) -> Result<(), E::Error> {
        match *source {
            OperandRef::Known(node) if self.host.is_remote(node) => {
                let value = self.host.fetch(node)?;
                self.fetched.push((*source, value));
            }
            OperandRef::Buffer(buffer) => {
                if let Some(&Some(view)) = self.postponed_views.get(buffer as usize) {
                    self.fetch(&view.reads[0])?;
                    let value = self.run_single(view, &view.work)?;
                    self.fetched.push((*source, value));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs a step, and stores the values that it computes.
    fn run_step(&mut self, step: &Step) -> Result<(), E::Error> {
        self.fetched.clear();
        for source in &step.reads {
            self.fetch(source)?;
        }
        match &step.work {
            Work::Fused(program) => {
                let mut outputs: SmallVec<[Option<Storage<T>>; 4]> = SmallVec::new();
                if !self.concatenations.memory.is_empty() {
                    outputs.extend(step.writes.iter().map(|&buffer| self.concatenations.output(buffer)));
                }
                let argument = |source: &OperandRef| match source {
                    OperandRef::Number(value) => ProgramArgument::Number(T::from_f64(*value)),
                    source => ProgramArgument::from(self.tensor(source)),
                };
                let arguments: SmallVec<[ProgramArgument<'_, T>; 8]> = step.reads.iter().map(argument).collect();
                let site = self.host.site(step.node);
                let results = program.borrow_mut().run(&arguments, site, &mut outputs, Tensor::from_parts)?;
                drop(arguments);
                for (&buffer, result) in step.writes.iter().zip(results) {
                    self.values[buffer as usize] = Some(result);
                }
            }
            Work::AddedProduct(shapes) => {
                let result = self.run_added_product(step, shapes)?;
                self.values[step.writes[0] as usize] = Some(result);
            }
            Work::Cat { axis, shapes, in_place } => {
                let result = self.concatenate(step, *axis, shapes, *in_place)?;
                self.values[step.writes[0] as usize] = Some(result);
            }
            work => {
                let result = self.run_single(step, work)?;
                self.values[step.writes[0] as usize] = Some(result);
            }
        }
        Ok(())
    }

    /// Runs the steps of a region (steps over few elements that share one block of memory), and stores the values that later steps read.
    /// Returns false if the steps must run separately.
    fn run_region(&mut self, region: &Region, steps: &[Step]) -> Result<bool, E::Error> {
        let is_remote = |source: &OperandRef| matches!(*source, OperandRef::Known(node) if self.host.is_remote(node));
        if region.inputs.iter().any(is_remote) {
            return Ok(false);
        }
        let inputs: SmallVec<[&Tensor<T>; 16]> = region.inputs.iter().map(|source| self.tensor(source)).collect();
        let sources: SmallVec<[Source<'_, T>; 16]> = inputs.iter().map(|input| input.source()).collect();
        let mut results: SmallVec<[(u32, Tensor<T>); 4]> = SmallVec::new();
        let mut shape = Shape::scalar();
        let done = region.run(steps, &sources, |buffer, Location { input, layout }, memory| {
            shape = layout.shape().clone();
            let result = match *input {
                Some(number) => {
                    let lowest = inputs[number].layout().extent().0;
                    inputs[number].with_layout(layout.with_offset(lowest + layout.offset()))
                }
                None => {
                    let (first, last) = layout.extent();
                    let elements = &memory[first..=last];
                    let storage = Storage::build(elements.len(), |out: &mut [T]| out.copy_from_slice(elements))?;
                    Tensor::from_parts(storage, layout.with_offset(layout.offset() - first))
                }
            };
            results.push((buffer, result));
            Ok(())
        });
        let first = &steps[region.steps.start];
        let done = done.map_err(|_| Error::out_of_memory(shape, T::DTYPE, self.host.site(first.node)))?;
        drop((sources, inputs));
        for (buffer, result) in results {
            self.values[buffer as usize] = Some(result);
        }
        Ok(done)
    }

    /// Returns the tensor that an operand other than a number refers to.
    fn tensor(&self, source: &OperandRef) -> &Tensor<T> {
        let fetched = || self.fetched.iter().find(|(known, _)| known == source).map(|(_, value)| value);
        let tensor = match *source {
            OperandRef::Buffer(buffer) => self.values[buffer as usize].as_ref().or_else(fetched),
            OperandRef::Known(node) => fetched().or_else(|| self.host.known(node)),
            OperandRef::Number(_) => None,
        };
        tensor.unwrap_or_else(|| unreachable!("{source:?} is read before it is computed or after it was dropped"))
    }

    /// Returns the value of an operand as a view of shape `shape`.
    fn value_of_shape(&self, source: &OperandRef, shape: &Shape, at: Site) -> Result<Cow<'_, Tensor<T>>, E::Error> {
        let value = match source {
            OperandRef::Number(value) => Cow::Owned(Tensor::scalar(T::from_f64(*value))),
            source => Cow::Borrowed(self.tensor(source)),
        };
        if value.shape() == shape {
            return Ok(value);
        }
        // A value is stored without the repetitions along the dimensions in which it is constant. So it may lack leading dimensions of
        // `shape`, or have size 1 in other dimensions. It may also have additional leading dimensions of size 1, which are removed here.
        let (own, rank) = (value.shape(), shape.rank());
        let value = match own.rank().checked_sub(rank) {
            Some(extra @ 1..) => Cow::Owned(value.apply_view(View::Reshape(Shape::from(&own[extra..])), at)?),
            _ => value,
        };
        Ok(Cow::Owned(value.apply_view(View::Expand(shape.clone()), at)?))
    }

    /// Runs a step that consists of one operation.
    fn run_single(&self, step: &Step, work: &Work) -> Result<Tensor<T>, E::Error> {
        let at = self.host.site(step.node);
        match work {
            Work::Reduce(op, axes, shape) => {
                let x = self.value_of_shape(&step.reads[0], shape, at)?;
                Ok(x.apply_reduce(*op, &axes_of(*axes), at)?)
            }
            Work::View(view, shape) => {
                Ok(self.value_of_shape(&step.reads[0], shape, at)?.apply_view(view.clone(), at)?)
            }
            Work::Copy(view, shape) => {
                Ok(self.value_of_shape(&step.reads[0], shape, at)?.apply_view(view.clone(), at)?.contiguous_copy(at)?)
            }
            Work::Product([left, right]) => {
                let (x, y) =
                    (self.value_of_shape(&step.reads[0], left, at)?, self.value_of_shape(&step.reads[1], right, at)?);
                Ok(x.apply_matmul(&y, at)?)
            }
            Work::Embed(view, [from, to]) => {
                Ok(self.value_of_shape(&step.reads[0], from, at)?.apply_embed(view.clone(), to, at)?)
            }
            Work::Node(node, shapes) => {
                let operands = self.operands(step, shapes, at)?;
                self.host.compute(*node, &operands)
            }
            Work::Fused(_) | Work::AddedProduct(_) | Work::Cat { .. } => {
                unreachable!("they are more than one operation")
            }
        }
    }

    /// Runs a concatenation. If a step has written an operand into the planned memory, operands that are already at their offsets stay
    /// there. The other operands are then copied to their offsets. If no step has done so, or if the
    /// memory cannot be used, all operands are copied to a new tensor: see [`join_in_place`](Self::join_in_place).
    fn concatenate(
        &mut self,
        step: &Step,
        axis: usize,
        shapes: &[Shape],
        in_place: Option<Offset>,
    ) -> Result<Tensor<T>, E::Error> {
        let at = self.host.site(step.node);
        let operands = self.operands(step, shapes, at)?;
        // If no step has taken a part of the memory, one copy of all operands takes less time than a copy to each part.
        let in_place = in_place.filter(|offset| self.concatenations.memory[offset.buffer].is_some());
        if let Some(all) = in_place.and_then(|offset| self.join_in_place(&operands, offset)) {
            let mut shape = shapes[0].clone();
            shape[axis] = shapes.iter().map(|part| part[axis]).sum();
            return Ok(Tensor::from_parts(all, Layout::contiguous(shape)));
        }
        Ok(Tensor::apply_cat(&operands, axis, at)?)
    }

    /// Returns the result of a concatenation: one buffer that holds all operands in order. This buffer starts at element `start` of the
    /// memory of the concatenation with the number `buffer`. Returns `None` if an operand is not in its part of this memory and cannot be
    /// copied there.
    fn join_in_place(&mut self, operands: &[Tensor<T>], Offset { buffer, mut start }: Offset) -> Option<Storage<T>> {
        let mut parts: Vec<Storage<T>> = Vec::with_capacity(operands.len());
        for operand in operands {
            let (own, layout) = operand.parts();
            // A step that writes its result directly into the operand's part of the memory has taken this part. If the part is still free,
            // the operand is elsewhere and is copied to this part.
            parts.push(match self.concatenations.take(Offset { buffer, start }, layout.numel()) {
                Some(mut part) => {
                    elementwise::copy(operand.source(), part.get_mut()?);
                    part
                }
                None if layout.is_contiguous() && layout.numel() == own.len() => own.clone(),
                None => return None,
            });
            start += layout.numel();
        }
        Storage::join_ranges(parts)
    }

    /// Returns the operands of a step, each as a tensor of its shape in `shapes`.
    fn operands(&self, step: &Step, shapes: &[Shape], at: Site) -> Result<Vec<Tensor<T>>, E::Error> {
        let operand = |(read, shape)| self.value_of_shape(read, shape, at).map(Cow::into_owned);
        step.reads.iter().zip(shapes).map(operand).collect()
    }

    /// Computes the matrix product of the first two operands of a step, plus the third operand. If the third operand is contiguous, has the
    /// result's shape, and is not read again, the result may be written to its memory.
    fn run_added_product(&mut self, step: &Step, [left, right, shape]: &[Shape; 3]) -> Result<Tensor<T>, E::Error> {
        let at = self.host.site(step.node);
        let is_writable = |value: &mut Tensor<T>| value.shape() == shape && value.is_contiguous();
        let is_buffer =
            |source: &OperandRef, buffer: u32| matches!(source, OperandRef::Buffer(other) if *other == buffer);
        let addend = match step.reads[2] {
            OperandRef::Buffer(buffer)
                if step.drops.contains(&buffer) && !step.reads[..2].iter().any(|read| is_buffer(read, buffer)) =>
            {
                self.values[buffer as usize].take_if(is_writable)
            }
            _ => None,
        };
        let (x, y) = (self.value_of_shape(&step.reads[0], left, at)?, self.value_of_shape(&step.reads[1], right, at)?);
        Ok(match addend {
            Some(sum) => sum.add_product(&x, &y, at)?,
            None => self.value_of_shape(&step.reads[2], shape, at)?.into_owned().add_product(&x, &y, at)?,
        })
    }
}

/// The memory of the concatenations in a plan.
struct Concatenations<'a, T: Float> {
    plan: &'a ConcatBuffers,
    /// The memory of each concatenation. The outer `None` means that no step has taken memory of the concatenation yet. The inner `None`
    /// means that there was too little memory for the whole concatenation.
    memory: Vec<Option<Option<ConcatMemory<T>>>>,
}

impl<T: Float> Concatenations<'_, T> {
    /// Returns the memory for a buffer that is an operand of a concatenation. Returns `None` for other buffers, or if there was too little
    /// memory.
    fn output(&mut self, buffer: u32) -> Option<Storage<T>> {
        let &(offset, len) = self.plan.offsets.get(&buffer)?;
        self.take(offset, len)
    }

    /// Returns `len` elements of the memory of the concatenation with the number `buffer`, from element `start` on. Returns `None` if one
    /// of these elements was handed out before, or if there was too little memory for the concatenation.
    fn take(&mut self, Offset { buffer, start }: Offset, len: usize) -> Option<Storage<T>> {
        let allocate = || ConcatMemory::new(self.plan.lengths[buffer]).ok();
        self.memory[buffer].get_or_insert_with(allocate).as_mut()?.take(start..start + len)
    }
}

/// Returns the dimensions whose bits are 1 in `set`.
fn axes_of(set: AxisSet) -> Axes {
    (0..AxisSet::BITS as usize).filter(|&axis| set >> axis & 1 == 1).collect()
}
