//! From a plan to tensors: step by step, each buffer released after its last use.

use std::ops::Deref;

use smallvec::SmallVec;

use crate::engine::access::Argument;
use crate::engine::plan::{Expression, Index, Op, Plan, Source, Step, Work};
use crate::engine::program::AxisSet;
use crate::ops::TensorLike;
use crate::{Compare, Error, Float, Shape, Site, Tensor, View};

/// An expression with what evaluation needs beside it.
pub trait Evaluate<T: Float> {
    /// The error of a failed evaluation.
    type Error: From<Error>;

    /// The expression.
    fn expression(&self) -> &Expression<T>;

    /// The value of a node that is data, or was computed before.
    fn known(&self, node: Index) -> Option<&Tensor<T>>;

    /// The line that recorded a node; the error names it where memory cannot hold the node's value.
    fn site(&self, node: Index) -> Site;

    /// The value of a node that is an [`Op::Other`].
    ///
    /// # Errors
    ///
    /// Where the operation refuses these operands.
    fn run_other(&self, node: Index, operands: &[Tensor<T>]) -> Result<Tensor<T>, Self::Error>;

    /// Runs the steps of a plan of the expression; gives the values of its roots.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold a value, or an operation refuses its operands.
    fn run(&self, plan: &Plan<T>, at: Site) -> Result<Vec<Tensor<T>>, Self::Error> {
        let mut buffers = Buffers { maker: self, values: vec![None; plan.buffers] };
        for step in &plan.steps {
            match &step.work {
                Work::Fused(program) => {
                    let argument = |source: &Source<T>| match (source, buffers.tensor(source)) {
                        (Source::Number(value), _) => Argument::Number(*value),
                        (_, Some(tensor)) => Argument::from(tensor),
                        (source, None) => {
                            unreachable!("{source:?} is read before it is computed or after it was dropped")
                        }
                    };
                    let arguments: SmallVec<[Argument<'_, T>; 8]> = step.reads.iter().map(argument).collect();
                    let results = program.borrow_mut().run(&arguments, self.site(step.node))?;
                    drop(arguments);
                    for (&buffer, result) in step.writes.iter().zip(results) {
                        buffers.values[buffer as usize] = Some(result);
                    }
                }
                work => {
                    let result = buffers.single(step, work)?;
                    buffers.values[step.writes[0] as usize] = Some(result);
                }
            }
            for &buffer in &step.drops {
                buffers.values[buffer as usize] = None;
            }
        }
        plan.roots.iter().map(|(source, shape)| Ok(buffers.over(source, shape, at)?.clone())).collect()
    }

    /// The value of one node from its inputs' values: what a plan does not fuse, and the specification of what it does.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold the value, or the operation refuses its operands.
    fn compute(&self, node: Index, operands: &[Tensor<T>]) -> Result<Tensor<T>, Self::Error> {
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
            (Op::Other(_), operands) => self.run_other(node, operands)?,
            (Op::Number(number), []) => Tensor::scalar(expression.number(number)),
            (op, operands) => unreachable!("{op:?} of {} operands", operands.len()),
        })
    }
}

/// The values of the steps that have run, as long as they are read.
struct Buffers<'a, T: Float, E: ?Sized> {
    maker: &'a E,
    values: Vec<Option<Tensor<T>>>,
}

impl<T: Float, E: Evaluate<T> + ?Sized> Buffers<'_, T, E> {
    fn tensor(&self, source: &Source<T>) -> Option<&Tensor<T>> {
        match *source {
            Source::Buffer(buffer) => self.values[buffer as usize].as_ref(),
            Source::Known(node) => self.maker.known(node),
            Source::Number(_) => None,
        }
    }

    /// The value over `shape`: a view, nothing is copied.
    fn over(&self, source: &Source<T>, shape: &Shape, at: Site) -> Result<Operand<'_, T>, E::Error> {
        let value = match (source, self.tensor(source)) {
            (Source::Number(value), _) => Operand::New(Tensor::scalar(*value)),
            (_, Some(value)) => Operand::Borrowed(value),
            (source, None) => unreachable!("{source:?} is read before it is computed or after it was dropped"),
        };
        if value.shape() == shape {
            return Ok(value);
        }
        // Values are kept over the dimensions along which they vary; leading sizes of 1 come and go.
        let (own, rank) = (value.shape(), shape.rank());
        let value = match own.rank().checked_sub(rank) {
            Some(extra @ 1..) => Operand::New(value.apply_view(View::Reshape(Shape::from(&own[extra..])), at)?),
            _ => value,
        };
        Ok(Operand::New(value.apply_view(View::Expand(shape.clone()), at)?))
    }

    /// Runs a step that is one operation.
    fn single(&self, step: &Step<T>, work: &Work) -> Result<Tensor<T>, E::Error> {
        let at = self.maker.site(step.node);
        match work {
            Work::Reduce(op, axes, shape) => {
                let x = self.over(&step.reads[0], shape, at)?;
                Ok(x.apply_reduce(*op, &axes_of(*axes), at)?)
            }
            Work::View(view, shape) => Ok(self.over(&step.reads[0], shape, at)?.apply_view(view.clone(), at)?),
            Work::Copy(view, shape) => {
                Ok(self.over(&step.reads[0], shape, at)?.apply_view(view.clone(), at)?.copied(at)?)
            }
            Work::Node(node, shapes) if self.maker.expression().op(*node) == Op::Matmul => {
                let over = |position: usize| self.over(&step.reads[position], &shapes[position], at);
                let (x, y) = (over(0)?, over(1)?);
                Ok(x.apply_matmul(&y, at)?)
            }
            Work::Node(node, shapes) => {
                let over = |(read, shape)| self.over(read, shape, at).map(|operand| operand.clone());
                let operands: Vec<_> = step.reads.iter().zip(shapes).map(over).collect::<Result<_, _>>()?;
                self.maker.compute(*node, &operands)
            }
            Work::Fused(_) => unreachable!("a fused program is more than one operation"),
        }
    }
}

/// A value as one of its readers sees it.
enum Operand<'a, T: Float> {
    /// As it is kept.
    Borrowed(&'a Tensor<T>),
    /// Expanded to a shape.
    New(Tensor<T>),
}

impl<T: Float> Deref for Operand<'_, T> {
    type Target = Tensor<T>;

    fn deref(&self) -> &Tensor<T> {
        match self {
            Operand::Borrowed(value) => value,
            Operand::New(value) => value,
        }
    }
}

fn axes_of(set: AxisSet) -> SmallVec<[usize; 6]> {
    (0..AxisSet::BITS as usize).filter(|&axis| set >> axis & 1 == 1).collect()
}
