//! Operations along one dimension: sorting, extremes, cumulative operations. A *lane* is a line of elements along that dimension. Sorting
//! and extremes compute positions from plain data, lane by lane, and take the elements at these positions. So the gradient flows to the
//! chosen elements. Running sums and products use only the conversion of rank 0 to rank 1.

use crate::kernel::scan::lanes::{self, LaneFn};
use crate::ops::index::replace::gather_along;
use crate::ops::reduce::reductions::{check_lanes, drop_reduced};
use crate::ops::{Result, TensorLike};
use crate::shape::dims;
use crate::{Shape, Site, Tensor, View};

/// An array, divided into lanes along one of its dimensions. An array of rank 0 counts as one lane of one element.
pub(crate) struct LaneArray<A: TensorLike> {
    x: A,
    /// The shape of the array. An array of rank 0 has the shape `[1]` here.
    pub(crate) shape: Shape,
    pub(crate) axis: usize,
    is_scalar: bool,
}

impl<A: TensorLike> LaneArray<A> {
    pub(crate) fn new(x: &A, dim: isize, at: Site) -> Result<Self, A::Error> {
        let shape = x.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        if shape.rank() > 0 {
            return Ok(LaneArray { x: x.clone(), shape, axis, is_scalar: false });
        }
        let shape = Shape::from([1]);
        Ok(LaneArray { x: x.apply_view(View::Reshape(shape.clone()), at)?, shape, axis, is_scalar: true })
    }

    /// Divides an array into lanes, the lines of elements along dimension `dim`, like [`new`](Self::new). Refuses lanes without elements.
    pub(crate) fn nonempty(x: &A, dim: isize, at: Site) -> Result<Self, A::Error> {
        let array = LaneArray::new(x, dim, at)?;
        check_lanes(array.len(), array.axis as isize, at)?;
        Ok(array)
    }

    /// Returns the number of elements of a lane, which is the size of dimension `axis`.
    pub(crate) fn len(&self) -> usize {
        self.shape[self.axis]
    }

    /// Calls `f` with the values of each lane, which is a line of elements along dimension `axis`. `f` writes `len` positions for the lane.
    /// Returns all positions.
    pub(crate) fn positions(&self, len: usize, at: Site, f: &LaneFn<A::Elem, i64>) -> Result<Tensor<i64>, A::Error> {
        let x = self.x.to_tensor(at)?;
        let shape = self.shape.with_size(self.axis, len);
        Ok(Tensor::build(&shape, at, |out| lanes::each(x.source(), self.axis, len, out, f))?)
    }

    /// Returns the elements at `positions`. A position counts along a lane, which is a line of elements along dimension `axis`. The result
    /// has the shape of `positions`.
    pub(crate) fn take(&self, positions: &Tensor<i64>, at: Site) -> Result<A> {
        gather_along(&self.x, &self.shape, self.axis, positions, at)
    }

    /// Returns the elements at `positions`, and the positions. Both have size 1 along dimension `axis`. This dimension is removed if
    /// `keepdim` is false or the array had rank 0.
    pub(crate) fn take_reduced(
        &self,
        positions: Tensor<i64>,
        keepdim: bool,
        at: Site,
    ) -> Result<(A, Tensor<i64>), A::Error> {
        let (taken, keepdim) = (self.take(&positions, at)?, keepdim && !self.is_scalar);
        let axes = [self.axis];
        Ok((drop_reduced(taken, &axes, keepdim, at)?, drop_reduced(positions, &axes, keepdim, at)?))
    }

    /// Returns the elements at `positions`, and the positions. Both have rank 0 if the array had rank 0.
    pub(crate) fn take_all(&self, positions: Tensor<i64>, at: Site) -> Result<(A, Tensor<i64>), A::Error> {
        Ok((self.restore_rank(self.take(&positions, at)?, at)?, self.restore_rank(positions, at)?))
    }

    /// Returns `z` with rank 0 if the array had rank 0, otherwise unchanged.
    pub(crate) fn restore_rank<B: TensorLike>(&self, z: B, at: Site) -> Result<B> {
        drop_reduced(z, &[self.axis], !self.is_scalar, at)
    }

    /// Returns the array. An array that had rank 0 has rank 1 here.
    pub(crate) fn values(&self) -> &A {
        &self.x
    }
}
