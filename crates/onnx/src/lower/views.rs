//! Translates views, their adjoints, and concatenations.

use wengert_tensor::broadcast::join;
use wengert_tensor::ops::{TensorLike as _, Views as _};
use wengert_tensor::{Float, Shape, Site, Tensor, View};

use super::lowering::Lowering;
use crate::error::Error;
use crate::graph::{Attribute, ElementKind, Source, ValueId};

impl<T: Float> Lowering<T> {
    /// Translates a view of `x`. The result has the shape `shape`. Returns an error if the view has no form in ONNX, or
    /// memory cannot hold its positions.
    pub(super) fn view(&mut self, view: &View, x: ValueId, shape: &Shape) -> Result<ValueId, Error> {
        let x_shape = self.shape(x);
        Ok(match view {
            View::Expand(_) => self.expand(x, shape),
            View::Reshape(_) => self.reshape(x, shape),
            View::Permute(order) => self.transpose(x, order),
            View::Flip(axes) => {
                let reversed = |&axis: &usize| [-1, i64::MIN, axis as i64, -1];
                self.slice(x, axes.iter().map(reversed).collect(), shape)
            }
            &View::Slice { axis, start, len, step } => {
                let (start, step) = (start as i64, step as i64);
                let end = match (len as i64, step) {
                    (0, _) => start,
                    (len, step) => start + (len - 1) * step + step.signum(),
                };
                // In ONNX, an end of -1 is the last element, and the lowest number is the position before the first element.
                let end = if end < 0 { i64::MIN } else { end };
                self.slice(x, vec![[start, end, axis as i64, step]], shape)
            }
            &View::Diagonal { offset, first, second } => {
                let (rows, columns) = (x_shape[first], x_shape[second]);
                let mut order: Vec<usize> =
                    (0..x_shape.rank()).filter(|&axis| axis != first && axis != second).collect();
                let outer: Shape = order.iter().map(|&axis| x_shape[axis]).collect();
                let rank = outer.rank();
                order.extend([first, second]);
                let last = self.transpose(x, &order);
                let flat = self.reshape(last, &outer.replaced(rank..rank, &[rows * columns]));
                let start = if offset < 0 { offset.unsigned_abs() * columns } else { offset as usize };
                let positions = (0..shape[rank]).map(|k| (start + k * (columns + 1)) as i64).collect();
                let positions = self.index(Tensor::try_from_vec(positions, [shape[rank]])?);
                self.gather(flat, positions, rank)
            }
            &View::Unfold { axis, size, step } => {
                let count = shape[axis];
                let windows = Tensor::try_from_fn([count, size], |at| (at[0] * step + at[1]) as i64)?;
                let windows = self.index(windows);
                let gathered = self.gather(x, windows, axis);
                // The dimension `axis` has the windows, and the next dimension has the elements of a window. The latter
                // becomes the last dimension.
                let mut order: Vec<usize> = (0..=x_shape.rank()).filter(|&other| other != axis + 1).collect();
                order.push(axis + 1);
                self.transpose(gathered, &order)
            }
            _ => return Err(self.unsupported()),
        })
    }

    /// Returns slices along several dimensions. Each has the start, the end, the dimension and the step.
    pub(super) fn slice(&mut self, x: ValueId, slices: Vec<[i64; 4]>, shape: &Shape) -> ValueId {
        if slices.is_empty() {
            return x;
        }
        let [starts, ends, axes, steps] =
            [0, 1, 2, 3].map(|field| self.integers(slices.iter().map(|slice| slice[field]).collect::<Vec<_>>()));
        self.node("Slice", &[x, starts, ends, axes, steps], shape.clone())
    }

    /// Translates the adjoint of a view: zeros of shape `shape`, to which `x` is added at the positions that the view
    /// reads. Returns an error if memory cannot hold the positions.
    pub(super) fn embed(&mut self, view: &View, x: ValueId, shape: &Shape) -> Result<ValueId, Error> {
        if let &View::Slice { axis, start, len, step: 1 } = view {
            let mut pads = vec![0; 2 * shape.rank()];
            (pads[axis], pads[shape.rank() + axis]) = (start as i64, (shape[axis] - start - len) as i64);
            let pads = self.integers(pads);
            return Ok(self.node("Pad", &[x, pads], shape.clone()));
        }
        let all = Tensor::try_arange(shape.numel() as i64)?.try_reshape(shape)?;
        let positions = all.apply_view(view.clone(), Site::here("export"))?;
        self.scatter_add(x, &positions, shape)
    }

    /// Returns zeros of shape `shape`, to which the elements of `x` are added at row-major positions.
    pub(super) fn scatter_add(&mut self, x: ValueId, positions: &Tensor<i64>, shape: &Shape) -> Result<ValueId, Error> {
        let flat = Shape::from([self.shape(x).numel()]);
        let updates = self.reshape(x, &flat);
        let positions = self.index(positions.try_reshape(&flat)?);
        let zeros = self.zeros(&Shape::from([shape.numel()]));
        let attributes = vec![("axis", Attribute::Integer(0)), ("reduction", Attribute::Text("add"))];
        let sum = self.shape(zeros);
        let sum = self.node_with("ScatterElements", &[zeros, positions, updates], attributes, sum);
        Ok(self.reshape(sum, shape))
    }

    /// Returns zeros of the given shape.
    pub(super) fn zeros(&mut self, shape: &Shape) -> ValueId {
        let zero = self.number(0.0);
        self.expand(zero, shape)
    }

    /// Appends a constant with the indices `index`.
    pub(super) fn index(&mut self, index: Tensor<i64>) -> ValueId {
        let shape = index.shape().clone();
        self.graph.add_value(Source::Indices(index), ElementKind::Integer, shape, self.origin)
    }

    /// Returns the slices of `x` with the indices `index` along `axis`.
    pub(super) fn gather(&mut self, x: ValueId, index: ValueId, axis: usize) -> ValueId {
        let shape = self.shape(x).replaced(axis..axis + 1, &self.shape(index));
        self.node_with("Gather", &[x, index], vec![("axis", integer_attribute(axis))], shape)
    }

    /// Returns the concatenation of `parts` along `axis`.
    pub(super) fn cat(&mut self, parts: &[ValueId], axis: usize, shape: &Shape) -> ValueId {
        self.node_with("Concat", parts, vec![("axis", integer_attribute(axis))], shape.clone())
    }

    /// Returns the matrix product. Its operator broadcasts the dimensions of the batch.
    pub(super) fn matmul(&mut self, x: ValueId, y: ValueId, shape: &Shape) -> ValueId {
        let matrix_size = |shape: &Shape| shape[shape.rank() - 2..].to_vec();
        let [mut left, right] = [x, y].map(|factor| {
            let (before, expanded_shape) = (self.before_expansion(factor), self.shape(factor));
            let shape_before = self.shape(before);
            // `MatMul` does not broadcast the last two dimensions, so an expansion of these dimensions is kept.
            if shape_before.rank() >= 2 && matrix_size(&shape_before) == matrix_size(&expanded_shape) {
                before
            } else {
                factor
            }
        });
        let batch = |value: ValueId| {
            let shape = self.shape(value);
            Shape::from(&shape[..shape.rank() - 2])
        };
        let expected = Shape::from(&shape[..shape.rank() - 2]);
        if !join(&[&batch(left), &batch(right)]).is_ok_and(|joint| joint == expected) {
            left = x;
        }
        self.node("MatMul", &[left, right], shape.clone())
    }
}

/// Returns an attribute with one size.
pub(super) fn integer_attribute(size: usize) -> Attribute {
    Attribute::Integer(size as i64)
}
