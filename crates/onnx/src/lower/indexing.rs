//! Translates the operations that read elements at indices or add to them.

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Shape, Tensor};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::{Attribute, ValueId};

impl<T: Float> Lowering<T> {
    /// Returns the elements of `x` at row-major positions.
    pub(super) fn take(&mut self, x: ValueId, positions: &Tensor<i64>) -> ValueId {
        let flat = Shape::from([self.shape(x).numel()]);
        let (flat, positions) = (self.reshape(x, &flat), self.index(positions.clone()));
        self.gather(flat, positions, 0)
    }

    /// Returns zeros of shape `shape`, to which the slices of each input are added at its indices along `axis`.
    pub(super) fn index_add(
        &mut self,
        inputs: &[ValueId],
        indices: &[Tensor<i64>],
        axis: usize,
        shape: &Shape,
    ) -> Result<ValueId, Error> {
        // `ScatterND` adds along the first dimension. So `axis` is moved to the front, and back after the additions.
        let rank = shape.rank();
        let order: Vec<usize> = std::iter::once(axis).chain((0..rank).filter(|&other| other != axis)).collect();
        let moved: Shape = order.iter().map(|&axis| shape[axis]).collect();
        let mut sum = self.zeros(&moved);
        for (&x, index) in inputs.iter().zip(indices) {
            let count = index.numel();
            let slices = self.reshape(x, &shape.replaced(axis..axis + 1, &[count]));
            let slices = self.transpose(slices, &order);
            let index = self.index(index.try_reshape([count, 1])?);
            let attributes = vec![("reduction", Attribute::Text("add"))];
            sum = self.node_with("ScatterND", &[sum, index, slices], attributes, moved.clone());
        }
        let mut inverse_order = vec![0; rank];
        order.iter().enumerate().for_each(|(place, &axis)| inverse_order[axis] = place);
        Ok(self.transpose(sum, &inverse_order))
    }
}
