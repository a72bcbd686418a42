//! Chooses the translation of each step of a program.

use rustc_hash::FxHashMap;
use wengert_autograd::{Custom, Program, Step};
use wengert_tensor::ops::Views as _;
use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Tensor};

use super::lowering::Lowering;
use super::views::integer_attribute;
use crate::error::Result;
use crate::graph::{ElementKind, Graph, Origin, Source, ValueId};

/// Translates the steps of `program` that compute the steps `outputs`. The steps `inputs` are the first inputs of the
/// graph. Returns an error if an operation has no form in ONNX.
pub(crate) fn lower<T: Float>(program: &Program<T>, inputs: &[usize], outputs: &[usize]) -> Result<Graph<T>> {
    let Some(first) = program.steps.first() else { return Ok(Graph::new()) };
    let mut lowering = Lowering {
        graph: Graph::new(),
        values: vec![None; program.steps.len()],
        bool_of_mask: FxHashMap::default(),
        origin: Origin { operation: first.name, recorded: first.recorded },
    };
    for &input in inputs {
        let step = &program.steps[input];
        let origin = Origin { operation: step.name, recorded: step.recorded };
        let value = lowering.graph.add_value(Source::Input, ElementKind::Float, step.shape.clone(), origin);
        lowering.graph.inputs.push(value);
        lowering.values[input] = Some(value);
    }
    let parameters: FxHashMap<usize, u64> = program.parameters.iter().map(|&(id, step)| (step, id)).collect();
    for (position, is_needed) in is_needed(program, outputs).into_iter().enumerate() {
        if is_needed && lowering.values[position].is_none() {
            let step = &program.steps[position];
            lowering.origin = Origin { operation: step.name, recorded: step.recorded };
            let value = lowering.step(step)?;
            lowering.values[position] = Some(value);
            if let Some(&id) = parameters.get(&position) {
                let data = lowering.before_expansion(value);
                lowering.graph.values[data].parameter = Some(id);
            }
        }
    }
    lowering.graph.outputs = outputs.iter().filter_map(|&output| lowering.values[output]).collect();
    Ok(lowering.graph.prune())
}

/// Returns a flag for each step: true if the translation of the outputs needs the step.
fn is_needed<T: Float>(program: &Program<T>, outputs: &[usize]) -> Vec<bool> {
    let mut is_needed = vec![false; program.steps.len()];
    outputs.iter().for_each(|&output| is_needed[output] = true);
    for position in (0..is_needed.len()).rev() {
        if is_needed[position] {
            let step = &program.steps[position];
            let read = match step.custom {
                Some(Custom::Same | Custom::MaxPooling { is_adjoint: false, .. }) => &step.inputs[..1],
                Some(Custom::Softmax { .. }) if step.shape.rank() > 0 => &step.inputs[1..],
                _ => &step.inputs[..],
            };
            read.iter().for_each(|&input| is_needed[input] = true);
        }
    }
    is_needed
}

impl<T: Float> Lowering<T> {
    /// Translates one step, whose inputs are already translated. Returns an error if the operation has no form in ONNX.
    /// The functions below return the same error.
    fn step(&mut self, step: &Step<T>) -> Result<ValueId> {
        let shape = &step.shape;
        Ok(match step.op {
            Op::Constant(_) | Op::Variable(_) | Op::Number(_) => match &step.data {
                Some(data) => self.constant(data)?,
                None => return Err(self.unsupported()),
            },
            Op::Alias(_) => self.input(step, 0)?,
            Op::Unary(op) => {
                let x = self.input(step, 0)?;
                // The function is computed before the expansion, on fewer elements.
                let unexpanded = self.unary(op, self.before_expansion(x))?;
                self.expand(unexpanded, shape)
            }
            Op::Binary(op) => {
                let operands = [self.input(step, 0)?, self.input(step, 1)?];
                let [x, y] = self.operands_before_expansion(operands, shape);
                self.binary(op, x, y)?
            }
            Op::Compare(op) => {
                let operands = [self.input(step, 0)?, self.input(step, 1)?];
                let [x, y] = self.operands_before_expansion(operands, shape);
                self.compare(op, x, y)?
            }
            Op::Select => {
                let operands = [self.input(step, 0)?, self.input(step, 1)?, self.input(step, 2)?];
                if operands[1] == operands[2] {
                    return Ok(operands[1]);
                }
                let [mask, x, y] = self.operands_before_expansion(operands, shape);
                self.select(mask, x, y)
            }
            Op::Expand => {
                let x = self.input(step, 0)?;
                self.expand(x, shape)
            }
            Op::Reshape => {
                let x = self.input(step, 0)?;
                self.reshape(x, shape)
            }
            Op::Reduce(op) => {
                let x = self.input(step, 0)?;
                self.reduction(op, x, shape)?
            }
            Op::Matmul => {
                let factors = [self.input(step, 0)?, self.input(step, 1)?];
                self.matmul(factors[0], factors[1], shape)
            }
            Op::View(_) | Op::Embed(_) => self.recorded_view(step)?,
            Op::Cat(axis) => {
                let parts = self.inputs(step)?;
                self.cat(&parts, axis as usize, shape)
            }
            Op::Other(_) => self.custom(step)?,
        })
    }

    /// Translates a view or the adjoint of one, or returns an error if the view has no form in ONNX.
    fn recorded_view(&mut self, step: &Step<T>) -> Result<ValueId> {
        let (x, Some(view)) = (self.input(step, 0)?, &step.view) else { return Err(self.unsupported()) };
        match step.op {
            Op::View(_) => self.view(view, x, &step.shape),
            _ => self.embed(view, x, &step.shape),
        }
    }

    /// Translates an operation that has arguments of its own, or returns an error if the operation has no form in ONNX.
    fn custom(&mut self, step: &Step<T>) -> Result<ValueId> {
        let Some(custom) = &step.custom else { return Err(self.unsupported()) };
        if let &Custom::Softmax { axis, log } = custom {
            // The operator needs a dimension. For a tensor of rank 0, returns the first input of the step, which is the
            // same softmax computed by other operations.
            if step.shape.rank() == 0 {
                return self.input(step, 0);
            }
            let x = self.input(step, 1)?;
            let operator = if log { "LogSoftmax" } else { "Softmax" };
            return Ok(self.node_with(operator, &[x], vec![("axis", integer_attribute(axis))], step.shape.clone()));
        }
        let x = self.input(step, 0)?;
        Ok(match custom {
            Custom::Same => x,
            Custom::Take { positions } => self.take(x, positions),
            Custom::ScatterAdd { positions } => self.scatter_add(x, positions, &step.shape)?,
            Custom::IndexSelect { axis, index } => {
                let index = self.index(index.clone());
                self.gather(x, index, *axis)
            }
            Custom::IndexAdd { axis, indices, .. } => {
                let inputs = self.inputs(step)?;
                self.index_add(&inputs, indices, *axis, &step.shape)?
            }
            &Custom::CumSum { axis } => self.cumulative_sum(x, axis),
            Custom::Variance { axes, correction } => self.variance(x, axes, *correction),
            Custom::Norm { ord, axes } => self.norm(x, *ord, axes),
            Custom::Convolution { form, slot } => {
                let second = self.input(step, 1)?;
                self.convolution(form, *slot, [x, second])?
            }
            Custom::MaxPooling { form, is_adjoint: false } if step.inputs[0] == step.inputs[1] => {
                self.max_pooling(form, x)
            }
            Custom::MeanPooling { form, is_adjoint } => self.mean_pooling(form, *is_adjoint, x)?,
            _ => return Err(self.unsupported()),
        })
    }

    /// Returns the values of all inputs of a step.
    fn inputs(&self, step: &Step<T>) -> Result<Vec<ValueId>> {
        (0..step.inputs.len()).map(|position| self.input(step, position)).collect()
    }

    /// Returns a constant. If `data` is expanded, the graph stores its distinct elements and expands them.
    fn constant(&mut self, data: &Tensor<T>) -> Result<ValueId> {
        let mut distinct = data.clone();
        for (axis, &stride) in data.strides().iter().enumerate() {
            if stride == 0 && data.shape()[axis] > 1 {
                distinct = distinct.try_narrow(axis as isize, 0, 1)?;
            }
        }
        let constant = self.floats(distinct);
        Ok(self.expand(constant, data.shape()))
    }
}
