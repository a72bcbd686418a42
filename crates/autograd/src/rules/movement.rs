//! Derivatives of linear operations that move elements: views and their adjoints, gather and scatter-add, slices at indices, concatenation.
//! In forward mode, the operation is applied to the tangent. In reverse mode, its adjoint is applied to the gradient.

use std::any::Any;
use std::rc::Rc;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::Op;
use wengert_tensor::{Axes, Float, Shape, Site, Tensor, View};

use super::shared::{JacobianProduct, site};
use crate::{BatchedCall, Call, Error, Operation, Var};

/// Records the derivative of a view of `x`, applied to `v`. The view is a permutation, a flip, a slice, a diagonal or windows. The adjoint
/// is another view, or an array of zeros to which the elements of `v` are added.
pub(super) fn derivative<'t, T: Float>(
    view: View,
    x: Var<'t, T>,
    v: Var<'t, T>,
    product: JacobianProduct,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let at = Site { operation: view.name(), ..at };
    match (product, view) {
        (JacobianProduct::Vjp, View::Permute(order)) => {
            let mut inverse = Axes::from_elem(0, order.len());
            for (position, &axis) in order.iter().enumerate() {
                inverse[axis] = position;
            }
            v.apply_view(View::Permute(inverse), at)
        }
        (JacobianProduct::Jvp, view) | (_, view @ View::Flip(_)) => v.apply_view(view, at),
        (JacobianProduct::Vjp, view) => v.apply_embed(view, &x.shape(), at),
    }
}

/// Returns true if a view transposes the last two dimensions and nothing else.
pub(super) fn is_transpose(view: &View) -> bool {
    let View::Permute(order) = view else { return false };
    let Some(rows) = order.len().checked_sub(2) else { return false };
    let transposed = |position: usize| if position < rows { position } else { 2 * rows + 1 - position };
    order.iter().enumerate().all(|(position, &axis)| axis == transposed(position))
}

/// Records the derivative of the adjoint of a view, applied to `v`. In reverse mode this is the view of `v`, and in forward mode the
/// adjoint.
pub(super) fn embed_derivative<'t, T: Float>(
    view: View,
    z: Var<'t, T>,
    v: Var<'t, T>,
    product: JacobianProduct,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    match product {
        JacobianProduct::Vjp => v.apply_view(view, at),
        JacobianProduct::Jvp => v.apply_embed(view, &z.shape(), at),
    }
}

/// An operation that reads the elements of its input at the given row-major positions. Its adjoint is [`ScatterAdd`].
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
        call.value_of(g.apply_scatter_add(&self.0, &call.input(0).shape(), call.site("take")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(v.apply_take(&self.0, call.site("take")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let x = call.batched(0);
        // Each example becomes a row, and the same columns of each row are read.
        let rows = call.with_batch(&[Shape::from(&x.shape()[1..]).numel()]);
        let rows = call.value_of(x.apply_view(View::Reshape(rows), call.at))?;
        call.value_of(rows.apply_index_select(1, &self.0, call.at))
    }
}

/// An operation that adds the elements of its input to an array of zeros, at the given row-major positions. Its adjoint is [`Take`].
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
        Ok(inputs[0].apply_scatter_add(&self.positions, &self.shape, site("put"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(g.apply_take(&self.positions, call.site("put")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(v.apply_scatter_add(&self.positions, &self.shape, call.site("put")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let rows = call.value_of(Var::apply_index_add(
            &[(&call.batched(0), &self.positions)],
            1,
            self.shape.numel(),
            call.at,
        ))?;
        call.value_of(rows.apply_view(View::Reshape(call.shape()), call.at))
    }
}

/// An operation that copies the slices of its input with the indices `index` along dimension `axis`. Its adjoint is [`IndexAdd`].
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
        call.value_of(Var::apply_index_add(&[(&g, &self.index)], self.axis, size, call.site("index_select")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(v.apply_index_select(self.axis, &self.index, call.site("index_select")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(call.batched(0).apply_index_select(self.axis + 1, &self.index, call.at))
    }
}

/// An operation that adds slices to an array of zeros, whose size along dimension `axis` is `size`. The slices of each input are added at
/// its `indices`. The adjoint for one input is [`IndexSelect`].
pub(crate) struct IndexAdd {
    pub(crate) axis: usize,
    /// For each input, the indices in the result at which its slices are added.
    pub(crate) indices: Vec<Tensor<i64>>,
    pub(crate) size: usize,
}

impl IndexAdd {
    /// Returns each input with the indices in the result at which its slices are added.
    fn terms<'i, A>(&'i self, inputs: &'i [A]) -> Vec<(&'i A, &'i Tensor<i64>)> {
        inputs.iter().zip(&self.indices).collect()
    }
}

impl<T: Float> Operation<T> for IndexAdd {
    fn name(&self) -> &'static str {
        "index_add"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].replaced(self.axis..self.axis + self.indices[0].rank(), &[self.size]))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(TensorLike::apply_index_add(&self.terms(inputs), self.axis, self.size, site("index_add"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(g.apply_index_select(self.axis, &self.indices[input], call.site("index_add")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(Var::apply_index_add(&[(&v, &self.indices[input])], self.axis, self.size, call.site("index_add")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let batched = call.value_of(call.try_all_batched())?;
        call.value_of(Var::apply_index_add(&self.terms(&batched), self.axis + 1, self.size, call.at))
    }
}

/// The maximum number of inputs of an [`IndexAdd`] that replaces a sum of several [`IndexAdd`]s. Each addition records an [`IndexAdd`] with
/// all inputs so far. So the cost of recording a sum grows with the square of this number.
const MAX_TERMS: usize = 16;

/// Records the sum of two [`IndexAdd`]s as a single one. So the gradient of an embedding is filled with zeros only once for up to
/// [`MAX_TERMS`] lookups. Returns `None` if `x` or `y` is not an [`IndexAdd`], if their axes or shapes differ, or if the sum would have too
/// many inputs.
pub(super) fn add_index_adds<'t, T: Float>(
    x: Var<'t, T>,
    y: Var<'t, T>,
    at: Site,
) -> Option<Result<Var<'t, T>, Error>> {
    let record = x.tape.record.borrow();
    let sum_of = |var: Var<'t, T>| match record.op(var.index) {
        Op::Other(number) => {
            let operation: &dyn Any = &**record.operation(number);
            Some((operation.downcast_ref::<IndexAdd>()?, record.operands(var.index)))
        }
        _ => None,
    };
    let ((first, of_first), (second, of_second)) = (sum_of(x)?, sum_of(y)?);
    let many = first.indices.len() + second.indices.len() > MAX_TERMS;
    if many || (first.axis, first.size) != (second.axis, second.size) || !x.same_shape(&y) {
        return None;
    }
    let indices = first.indices.iter().chain(&second.indices).cloned().collect();
    let inputs: Vec<Var<'t, T>> = of_first.iter().chain(of_second).map(|&input| x.tape.var_of(input)).collect();
    let operation = IndexAdd { axis: first.axis, indices, size: first.size };
    drop(record);
    Some(x.tape.record_operation(Rc::new(operation), &inputs, at))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Checks that the gradient of a tensor that is looked up several times adds all slices to one array of zeros. Also
    /// compares the second derivative with central differences.
    #[test]
    fn an_array_that_is_looked_up_several_times_has_one_gradient() {
        let indices = [vec![1, 3, 1, 1], vec![4, 1], vec![0]].map(Tensor::from);
        let gradients = |data: &Tensor<f64>, parts: &[usize]| {
            let tape = Tape::<f64>::new();
            let x = tape.var(data);
            let loss = parts.iter().fold(x.sin().sum(..), |sum, &part| {
                sum + (x.index_select(0, &indices[part]) * (part + 1) as f64).sin().sum(..)
            });
            let [dx] = loss.grad([x]);
            let [again] = dx.square().sum(..).grad([x]);
            let record = tape.record.borrow();
            let joined = (0..record.len() as u32)
                .filter(|&node| record.name(node) == "index_add" && record.operands(node).len() == parts.len());
            let joined = joined.count();
            drop(record);
            (dx.value(), again.value(), joined)
        };
        let data = Tensor::from_fn([5, 3], |at| (at[0] * 3 + at[1]) as f64 * 0.37);
        let (own, ..) = gradients(&data, &[]);
        let apart = [0, 1, 2].map(|part| gradients(&data, &[part]).0 - &own);
        let (all, again, joined) = gradients(&data, &[0, 1, 2]);
        assert!(joined >= 1);
        let sum = apart.iter().fold(own.clone(), |sum, part| sum + part);
        assert!((&all - sum).abs().amax(..).item() < 1e-14);
        for (k, second) in again.iter().enumerate() {
            let step = Tensor::from_fn([5, 3], |at| if at[0] * 3 + at[1] == k { 1e-5 } else { 0.0 });
            let [above, below] =
                [&data + &step, &data - &step].map(|data| gradients(&data, &[0, 1, 2]).0.square().sum(..).item());
            assert!(((above - below) / 2e-5 - second).abs() < 1e-6, "{k}");
        }
    }

    /// As in PyTorch, values that are not written have a gradient of zeros. So a step with an empty index updates the same parameters as
    /// every other step.
    #[test]
    fn values_that_an_empty_index_does_not_write_have_zeros_as_gradient() {
        use wengert_tensor::index_items;
        use wengert_tensor::ops::ScatterReduction;

        let (line, matrix) = (Tensor::from(Vec::<i64>::new()), Tensor::<i64>::zeros([0, 2]));
        let nothing = Tensor::full([3, 2], false);
        let x = Tensor::from([[0.0, -0.0], [1.0, 2.0], [3.0, f64::INFINITY]]);
        type Write<'t> = Box<dyn Fn(Var<'t, f64>, Var<'t, f64>) -> Var<'t, f64> + 't>;
        let tape = Tape::<f64>::new();
        let writes: [(&str, Write<'_>); 9] = [
            ("index_add", Box::new(|x, v| x.index_add(0, &line, v.narrow(0, 0, 0), 2.0))),
            ("index_copy", Box::new(|x, v| x.index_copy(0, &line, v.narrow(0, 0, 0)))),
            ("scatter", Box::new(|x, v| x.scatter(0, &matrix, v))),
            ("scatter_add", Box::new(|x, v| x.scatter_add(0, &matrix, v))),
            ("scatter_reduce", Box::new(|x, v| x.scatter_reduce(0, &matrix, v, ScatterReduction::Mean, true))),
            ("index_put", Box::new(|x, v| x.index_put(&index_items![&line], v.narrow(0, 0, 0), true))),
            ("index_put", Box::new(|x, v| x.index_put(&index_items![&line], v.narrow(0, 0, 1), false))),
            ("index_set", Box::new(|x, v| x.index_set(&index_items![&line], v.narrow(0, 0, 1)))),
            ("masked_scatter", Box::new(|x, v| x.masked_scatter(&nothing, v))),
        ];
        for (name, write) in &writes {
            let values = Tensor::from([[f64::NAN, 1.0], [f64::INFINITY, 2.0]]);
            let (own, values) = (tape.var(&x), tape.var(&values));
            let y = write(own, values);
            let bits = |x: &Tensor<f64>| x.iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&y.value()), bits(&x), "{name}");
            let seed = tape.constant(Tensor::full([3, 2], 5.0));
            let gradients = tape.vjp(&[(y, seed)], &[own, values]);
            assert_eq!(gradients[0].unwrap().value(), Tensor::full([3, 2], 5.0), "{name}");
            assert_eq!(gradients[1].map(Var::value), Some(Tensor::zeros([2, 2])), "{name}");
            let ones = tape.constant(Tensor::ones([2, 2]));
            assert_eq!(y.jvp(&[(values, ones)]).value(), Tensor::zeros([3, 2]), "{name}");
            // The loss depends on `values` even if no other input is a variable. So `values` has a gradient.
            let step = write(tape.constant(&x), values).sum(..).backward();
            assert_eq!(*step.of(values), Tensor::zeros([2, 2]), "{name}");
        }
    }
}
