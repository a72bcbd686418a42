//! Views and their adjoints, gather and scatter-add, concatenation: linear operations that move elements. The derivative in forward
//! mode is the operation itself; in reverse mode its adjoint.

use wengert_tensor::ops::TensorLike;
use wengert_tensor::{Axes, Float, Shape, Site, Tensor, View};

use super::mode::{Mode, recorded, site};
use crate::{BatchedCall, Call, Error, Operation, Var};

/// The derivative of a permutation, a flip, a slice, a diagonal or windows of `x`. The adjoint is another view, or an [`Embed`].
pub(super) fn derivative<'t, T: Float>(
    view: View,
    x: Var<'t, T>,
    v: Var<'t, T>,
    mode: Mode,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let at = Site { operation: view.name(), ..at };
    match (mode, view) {
        (Mode::Vjp, View::Permute(order)) => {
            let mut inverse = Axes::from_elem(0, order.len());
            for (position, &axis) in order.iter().enumerate() {
                inverse[axis] = position;
            }
            v.apply_view(View::Permute(inverse), at)
        }
        (Mode::Jvp, view) | (_, view @ View::Flip(_)) => v.apply_view(view, at),
        (Mode::Vjp, view) => v.apply_embed(view, &x.shape(), at),
    }
}

/// Whether a view transposes the last two dimensions and nothing else.
pub(super) fn is_transpose(view: &View) -> bool {
    let View::Permute(order) = view else { return false };
    let Some(rows) = order.len().checked_sub(2) else { return false };
    let transposed = |position: usize| if position < rows { position } else { 2 * rows + 1 - position };
    order.iter().enumerate().all(|(position, &axis)| axis == transposed(position))
}

/// The adjoint of a view: zeros, to which elements are added at the positions that the view reads.
pub(crate) struct Embed {
    pub(crate) view: View,
    pub(crate) shape: Shape,
}

impl<T: Float> Operation<T> for Embed {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(self.shape.clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_embed(self.view.clone(), &self.shape, site("embed"))?)
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(g.apply_view(self.view.clone(), site("embed")))
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_embed(self.view.clone(), &self.shape, site("embed")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        recorded(call.batched(0).apply_embed(self.view.batched(call.size), &call.shape(), call.at))
    }
}

/// Reads elements at positions. Its adjoint is [`ScatterAdd`].
pub(crate) struct Take(pub(crate) Tensor<i64>);

impl<T: Float> Operation<T> for Take {
    fn name(&self) -> &'static str {
        "take"
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(self.0.shape().clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_take(&self.0, site("take"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(g.apply_put(&self.0, &call.input(0).shape(), site("take")))
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_take(&self.0, site("take")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let x = call.batched(0);
        // The same elements of every example: a row of them each.
        let rows = call.with_batch(&[x.shape()[1..].iter().product()]);
        let rows = recorded(x.apply_view(View::Reshape(rows), call.at))?;
        recorded(rows.apply_index_select(1, &self.0, call.at))
    }
}

/// Adds elements to zeros at positions. Its adjoint is [`Take`].
pub(crate) struct ScatterAdd {
    pub(crate) positions: Tensor<i64>,
    pub(crate) shape: Shape,
}

impl<T: Float> Operation<T> for ScatterAdd {
    fn name(&self) -> &'static str {
        "put"
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(self.shape.clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_put(&self.positions, &self.shape, site("put"))?)
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(g.apply_take(&self.positions, site("put")))
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_put(&self.positions, &self.shape, site("put")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let rows = recorded(call.batched(0).apply_index_add(1, &self.positions, self.shape.numel(), call.at))?;
        recorded(rows.apply_view(View::Reshape(call.shape()), call.at))
    }
}

/// Copies slices along dimension `axis` by number. Its adjoint is [`IndexAdd`].
pub(crate) struct IndexSelect {
    pub(crate) axis: usize,
    pub(crate) index: Tensor<i64>,
}

impl<T: Float> Operation<T> for IndexSelect {
    fn name(&self) -> &'static str {
        "index_select"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].replaced(self.axis..self.axis + 1, self.index.shape()))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_index_select(self.axis, &self.index, site("index_select"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let size = call.input(0).shape()[self.axis];
        recorded(g.apply_index_add(self.axis, &self.index, size, site("index_select")))
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_index_select(self.axis, &self.index, site("index_select")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        recorded(call.batched(0).apply_index_select(self.axis + 1, &self.index, call.at))
    }
}

/// Adds slices along dimension `axis` to `size` zeros by number. Its adjoint is [`IndexSelect`].
pub(crate) struct IndexAdd {
    pub(crate) axis: usize,
    pub(crate) index: Tensor<i64>,
    pub(crate) size: usize,
}

impl<T: Float> Operation<T> for IndexAdd {
    fn name(&self) -> &'static str {
        "index_add"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].replaced(self.axis..self.axis + self.index.rank(), &[self.size]))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_index_add(self.axis, &self.index, self.size, site("index_add"))?)
    }

    fn vjp<'t>(&self, _call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(g.apply_index_select(self.axis, &self.index, site("index_add")))
    }

    fn jvp<'t>(&self, _call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_index_add(self.axis, &self.index, self.size, site("index_add")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        recorded(call.batched(0).apply_index_add(self.axis + 1, &self.index, self.size, call.at))
    }
}

/// Concatenation along a dimension. Its adjoint for one part is a slice.
pub(crate) struct Cat {
    pub(crate) axis: usize,
}

impl Cat {
    /// The view of part number `input` in the result.
    fn window<T: Float>(&self, call: &Call<'_, T>, input: usize) -> View {
        let size = |part: &Var<'_, T>| part.shape()[self.axis];
        let start = call.inputs()[..input].iter().map(size).sum();
        View::Slice { axis: self.axis, start, len: size(&call.inputs()[input]), step: 1 }
    }
}

impl<T: Float> Operation<T> for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        let mut shape = inputs[0].clone();
        shape[self.axis] = inputs.iter().map(|input| input[self.axis]).sum();
        Ok(shape)
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(TensorLike::apply_cat(inputs, self.axis, site("cat"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(g.apply_view(self.window(call, input), site("cat")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        recorded(v.apply_embed(self.window(call, input), &call.output().shape(), site("cat")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let parts: Vec<Var<'t, T>> = (0..call.arity()).map(|position| call.batched(position)).collect();
        recorded(Var::apply_cat(&parts, self.axis + 1, call.at))
    }
}
