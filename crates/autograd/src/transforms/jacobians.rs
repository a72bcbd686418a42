//! Jacobians and Hessians of recorded variables. The derivative for one direction is recorded once and batched over all directions.

use wengert_macros::twins;
use wengert_tensor::ops::TensorLike as _;
use wengert_tensor::plan::NodeIndex;
use wengert_tensor::{Float, Shape, Site, Tensor, View};

use crate::{Error, Tape, Var};

#[twins]
impl<'t, T: Float> Tape<T> {
    /// Returns the [`jacobian`](super::jacobian) of a recorded variable with respect to each of `inputs`, for example of a model's output
    /// with respect to its parameters.
    ///
    /// # Errors
    ///
    /// As for [`jacobian`](super::jacobian), and if a variable belongs to another tape.
    pub fn try_jacobian(&'t self, output: Var<'t, T>, inputs: &[Var<'t, T>]) -> Result<Vec<Tensor<T>>, Error> {
        let jacobians = self.record_jacobians(output, inputs, Site::here("jacobian"))?;
        self.values_in_order(&jacobians, Site::here("jacobian"))
    }

    /// Returns the second derivatives (see [`hessian`](super::hessian)) of a recorded number with respect to `inputs`. The shape of block
    /// `[i][j]` is the shape of input i followed by the shape of input j.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let (w, b) = (Parameter::new(Tensor::from([2.0f64, 3.0])), Parameter::new(Tensor::scalar(1.0)));
    /// let tape = Tape::new();
    /// let parameters = [tape.parameter(&w), tape.parameter(&b)];
    /// let loss = (parameters[0] * parameters[1]).square().sum(..);
    /// let blocks = tape.hessian(loss, &parameters);
    /// assert_eq!(blocks[0][0], Tensor::from([[2.0, 0.0], [0.0, 2.0]])); // 2 b²
    /// assert_eq!(blocks[1][1].item(), 2.0 * (4.0 + 9.0)); // 2 Σ w²
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`hessian`](super::hessian), and if a variable belongs to another tape.
    pub fn try_hessian(&'t self, output: Var<'t, T>, inputs: &[Var<'t, T>]) -> Result<Vec<Vec<Tensor<T>>>, Error> {
        let blocks = self.record_hessians(output, inputs, Site::here("hessian"))?;
        let mut blocks = self.values_in_order(&blocks, Site::here("hessian"))?.into_iter();
        Ok(inputs.iter().map(|_| blocks.by_ref().take(inputs.len()).collect()).collect())
    }

    /// Records the Jacobian of `output` with respect to each input, and returns the Jacobians as variables.
    pub(super) fn record_jacobians(
        &'t self,
        output: Var<'t, T>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let outputs = output.shape().numel();
        let (narrow, wide): (Vec<_>, Vec<_>) = inputs.iter().partition(|input| input.shape().numel() <= outputs);
        // One batch of gradients gives the rows of the Jacobians for all inputs. But a batch of tangents gives the columns for only one
        // input.
        let mut by_rows = self.jacobian_rows(output, &wide, at)?.into_iter();
        let mut by_columns = Vec::with_capacity(narrow.len());
        for input in narrow {
            by_columns.extend(self.jacobian_columns(&[output], input, at)?);
        }
        let mut by_columns = by_columns.into_iter();
        let jacobian = |input: &Var<'t, T>| {
            let next = if input.shape().numel() <= outputs { by_columns.next() } else { by_rows.next() };
            next.unwrap_or_else(|| unreachable!("one for each input"))
        };
        Ok(inputs.iter().map(jacobian).collect())
    }

    /// Records the blocks of the Hessian of `output`, and returns them as variables, row by row.
    pub(super) fn record_hessians(
        &'t self,
        output: Var<'t, T>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let gradients = self.gradients_of(output, inputs, at)?;
        let mut blocks = vec![output; inputs.len() * inputs.len()];
        for (column, &input) in inputs.iter().enumerate() {
            for (row, block) in self.jacobian_columns(&gradients, input, at)?.into_iter().enumerate() {
                blocks[row * inputs.len() + column] = block;
            }
        }
        Ok(blocks)
    }

    /// Returns the values of variables, each with its elements in row-major order.
    fn values_in_order(&self, variables: &[Var<'t, T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let roots: Vec<NodeIndex> = variables.iter().map(|variable| variable.index).collect();
        self.evaluate(&roots, at)?.iter().map(|tensor| Ok(tensor.try_contiguous()?)).collect()
    }

    /// Records the gradients of the number `y`, and returns them as variables.
    pub(super) fn gradients_of(
        &'t self,
        y: Var<'t, T>,
        vars: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.reverse_or_zeros(&[(y, y.unit_seed(at)?)], vars, at)
    }

    /// Records the Jacobians of `y` by reverse mode. Each Jacobian has the shape of `y` followed by the input's shape. The derivative for
    /// one incoming gradient is recorded, and batched over the rows of the identity.
    fn jacobian_rows(&'t self, y: Var<'t, T>, inputs: &[Var<'t, T>], at: Site) -> Result<Vec<Var<'t, T>>, Error> {
        let to = y.shape();
        let seed = y.try_zeros_like_at(at)?;
        let gradients = self.reverse_or_zeros(&[(y, seed)], inputs, at)?;
        let rows = self.batch(&gradients, &[(seed, self.identity(&to, at)?)], to.numel(), at)?;
        let reshaped =
            rows.iter().zip(inputs).map(|(row, x)| row.apply_view(View::Reshape(join_shapes(&to, &x.shape())), at));
        reshaped.collect()
    }

    /// Records the Jacobian of each output by forward mode. A Jacobian has the output's shape followed by the shape of `x`. The derivative
    /// along one tangent is recorded, and batched over the rows of the identity.
    fn jacobian_columns(&'t self, outputs: &[Var<'t, T>], x: Var<'t, T>, at: Site) -> Result<Vec<Var<'t, T>>, Error> {
        let from = x.shape();
        let tangent = x.try_zeros_like_at(at)?;
        let derivatives = self.forward(outputs, &[(x, tangent)], at)?;
        let columns = self.batch(&derivatives, &[(tangent, self.identity(&from, at)?)], from.numel(), at)?;
        let reshaped = columns.iter().zip(outputs).map(|(column, y)| {
            let to = y.shape();
            let permuted = column.apply_view(View::Permute((1..=to.rank()).chain([0]).collect()), at)?;
            permuted.apply_view(View::Reshape(join_shapes(&to, &from)), at)
        });
        reshaped.collect()
    }

    /// Returns the identity: for each element of a tensor of shape `shape`, a tensor that is 1 at this element and 0 elsewhere. These
    /// tensors are stacked in row-major order along a new first dimension.
    fn identity(&'t self, shape: &Shape, at: Site) -> Result<Var<'t, T>, Error> {
        let count = shape.numel();
        let ones = self.try_number(T::ONE, Some(at))?.apply_view(View::Expand(count.into()), at)?;
        let diagonal = View::Diagonal { offset: 0, first: 0, second: 1 };
        let identity = ones.apply_embed(diagonal, &[count, count].into(), at)?;
        self.record.borrow_mut().identity_matrices.push(identity.index);
        identity.apply_view(View::Reshape(join_shapes(&count.into(), shape)), at)
    }
}

fn join_shapes(first: &Shape, second: &Shape) -> Shape {
    first.iter().chain(second.iter()).copied().collect()
}
