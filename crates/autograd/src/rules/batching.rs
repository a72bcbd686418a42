//! The batching rule of every primitive (elementary operation). A batched input has the batch dimension first, and so does the result for
//! all examples.
//!
//! An input that is the same for all examples is expanded, except where a matrix product or a convolution can share it. An elementwise
//! operation needs no other change, because its operands have equal shapes when it is recorded. Views and concatenations add 1 to the
//! position of each dimension, because the batch dimension comes first. Reshapes, expansions and reductions use the result's shape with the
//! batch dimension. A type that implements [`Operation`](crate::Operation) has its rule in [`Operation::batch`](crate::Operation::batch).
//! Without a rule, the operation is recorded once for each example.

use std::rc::Rc;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{self as tensor, Float, Shape, View};

use super::linear;
use super::shared::ensure_room;
use crate::tape::BatchedCall;
use crate::{Error, Operation, Tape, Var};

/// Records the operation `op` of node `index` for all examples. At least one input is batched.
pub(crate) fn record_batched<'t, T: Float>(
    tape: &'t Tape<T>,
    index: NodeIndex,
    op: Op,
    call: &BatchedCall<'t, T>,
) -> Result<Var<'t, T>, Error> {
    let (at, shape) = (call.at, call.shape());
    ensure_room(tape, at)?;
    tensor::addressable::<T>(&shape, at)?;
    let x = || call.try_batched(0);
    match op {
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) => unreachable!("node %{index} has no inputs"),
        Op::Alias(_) | Op::Unary(_) => x()?.record(op, at),
        Op::Binary(op) => x()?.apply_binary(op, &call.try_batched(1)?, at),
        Op::Compare(op) => x()?.apply_compare(op, &call.try_batched(1)?, at),
        Op::Select => TensorLike::apply_select(&x()?, &call.try_batched(1)?, &call.try_batched(2)?, at),
        Op::Expand => {
            let x = x()?;
            // Inserts dimensions of size 1 after the batch dimension, so that the input has the rank of the result.
            let aligned = x.shape().replaced(1..1, &vec![1; shape.rank() - x.shape().rank()]);
            let aligned = if aligned == x.shape() { x } else { x.apply_view(View::Reshape(aligned), at)? };
            aligned.apply_view(View::Expand(shape), at)
        }
        Op::Reshape => x()?.apply_view(View::Reshape(shape), at),
        Op::Reduce(_) => x()?.record_over(op, &shape, at),
        Op::Matmul => linear::record_batched(call),
        Op::View(number) => {
            let x = x()?;
            let view = tape.record.borrow().view(number).batched(&x.shape());
            x.apply_view(view, at)
        }
        Op::Embed(number) => {
            let x = x()?;
            let view = tape.record.borrow().view(number).batched(&x.shape());
            x.apply_embed(view, &shape, at)
        }
        Op::Cat(axis) => Var::apply_cat(&call.try_all_batched()?, axis as usize + 1, at),
        Op::Other(number) => {
            let operation = tape.record.borrow().operation(number).clone();
            let result = operation.batch(call);
            call.failure.take()?;
            let Some(result) = result else { return record_examples(tape, &operation, call) };
            tape.check_owns([result], at)?;
            if result.shape() != shape {
                let (got, expected) = (Box::new(result.shape()), Box::new(shape));
                let record = tape.record.borrow();
                let (operation, recorded) = (record.name(index), record.location(index));
                return Err(Error::BatchShape { operation, got, expected, recorded });
            }
            Ok(result)
        }
    }
}

/// The least memory, in bytes, that a tape needs for one example of a batch: a node for the example, and a node for its result.
pub(crate) const EXAMPLE_BYTES: usize = 64;

/// Records the operation for each example, and stacks the results.
fn record_examples<'t, T: Float>(
    tape: &'t Tape<T>,
    operation: &Rc<dyn Operation<T>>,
    call: &BatchedCall<'t, T>,
) -> Result<Var<'t, T>, Error> {
    let at = call.at;
    if call.size == 0 {
        // Without examples, a batched input is empty, and so is the result. The input is reshaped to the result's shape.
        let position = (0..call.arity()).find(|&position| call.is_batched(position)).unwrap_or_default();
        return call.input(position).apply_view(View::Reshape(call.shape()), at);
    }
    wengert_tensor::check_list::<[u8; EXAMPLE_BYTES]>(call.size, at)?;
    let row = call.with_batch(&call.shape).replaced(0..1, &[1]);
    let result = |example: usize| {
        let inputs: Vec<Var<'t, T>> = (0..call.arity())
            .map(|position| match call.is_batched(position) {
                true => example_of(call.input(position), example, at),
                false => Ok(call.input(position)),
            })
            .collect::<Result<_, _>>()?;
        let result = tape.record_operation(Rc::clone(operation), &inputs, at)?;
        result.apply_view(View::Reshape(row.clone()), at)
    };
    let results: Vec<Var<'t, T>> = (0..call.size).map(result).collect::<Result<_, _>>()?;
    Var::apply_cat(&results, 0, at)
}

/// Returns the slice with index `example` along the first dimension, without that dimension.
pub(crate) fn example_of<'t, T: Float>(x: Var<'t, T>, example: usize, at: tensor::Site) -> Result<Var<'t, T>, Error> {
    let slice = x.apply_view(View::Slice { axis: 0, start: example, len: 1, step: 1 }, at)?;
    let shape: Shape = x.shape()[1..].into();
    slice.apply_view(View::Reshape(shape), at)
}
