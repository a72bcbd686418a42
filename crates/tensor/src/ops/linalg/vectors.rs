//! Products of vectors, along one dimension or of every pair of elements.

use wengert_macros::twins;

use crate::ops::linalg::blas::outer;
use crate::ops::primitive::pair::broadcast_two;
use crate::ops::reduce::reductions::reduce_dims;
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::shape::broadcast::size_at;
use crate::shape::dims;
use crate::{Binary, Dims, Error, Number, Position, Reduction, Scalar, Shape, Site, View, ensure};

/// `outer`, `inner`, `vecdot`, `cross`, `kron`, and the trace of a matrix.
#[twins(blanket)]
pub trait Vectors: TensorLike<Elem: Number> {
    /// Returns the outer product of two vectors: element `(i, j)` of the result `[m, n]` is `self[i] * other[j]`. PyTorch: `outer`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([1.0, 2.0]);
    /// assert_eq!(x.outer(&Tensor::from([3.0, 4.0])), Tensor::from([[3.0, 4.0], [6.0, 8.0]]));
    /// ```
    #[doc(alias("ger"))]
    fn try_outer(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        outer(self, &other.into_array(self)?, ["self", "vec2"], Site::here("outer"))
    }

    /// Returns the sums of products along the last dimension, for every pair of the other indices: `[…, k]` and `[…', k]` give `[…, …']`.
    /// If an operand has rank 0, multiplies by it. PyTorch: `inner`.
    fn try_inner(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("inner");
        let (left, right) = (self.shape(), other.shape());
        let (Some(&first), Some(&second)) = (left.last(), right.last()) else {
            let (x, y) = broadcast_two(self, other, at)?;
            return x.apply_binary(Binary::Mul, &y, at);
        };
        ensure!(
            first == second,
            at,
            MatmulShape,
            "inner() the last dimension must match on both input tensors but got shapes {left} and {right}"
        );
        let rows = |x: &Self, lead: &[usize]| x.reshape_to([Shape::from(lead).numel(), first], at);
        let (lead, other_lead) = (&left[..left.rank() - 1], &right[..right.rank() - 1]);
        let product = rows(self, lead)?.apply_matmul(&rows(other, other_lead)?.permute_to(&[1, 0], at)?, at)?;
        product.reshape_to(lead.iter().chain(other_lead).copied().collect::<Shape>(), at)
    }

    /// Returns the sum of products along `dim`. The shapes broadcast. PyTorch: `linalg.vecdot`.
    fn try_vecdot(&self, other: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        let at = Site::here("vecdot");
        let (x, y) = broadcast_two(self, &other.into_array(self)?, at)?;
        reduce_dims(&x.apply_binary(Binary::Mul, &y, at)?, Reduction::Sum, &Dims::from(dim.position()), false, at)
    }

    /// Returns the vector product along `dim`, which has size 3 in both operands. The operands have the same rank, and the other sizes
    /// broadcast. PyTorch: `linalg.cross`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (x, y) = (Tensor::from([1.0, 0.0, 0.0]), Tensor::from([0.0, 1.0, 0.0]));
    /// assert_eq!(x.cross(&y, -1).to_vec(), [0.0, 0.0, 1.0]);
    /// ```
    fn try_cross(&self, other: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        cross(self, &other.into_array(self)?, dim.position(), Site::here("cross"))
    }

    /// Returns the Kronecker product: each element of `self` times the whole `other`. Each size of the result is the product of the
    /// operands' sizes. The operand of lower rank gets leading dimensions of size 1. PyTorch: `kron`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([1.0, 10.0]);
    /// assert_eq!(x.kron(&Tensor::from([1.0, 2.0])).to_vec(), [1.0, 2.0, 10.0, 20.0]);
    /// ```
    fn try_kron(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("kron");
        let (left, right) = (self.shape(), other.shape());
        let rank = left.rank().max(right.rank());
        let size = |shape: &Shape, axis: usize| size_at(shape, rank, axis);
        let interleave = |sizes: &dyn Fn(usize) -> [usize; 2]| (0..rank).flat_map(sizes).collect::<Shape>();
        let x = self.reshape_to(interleave(&|axis| [size(&left, axis), 1]), at)?;
        let y = other.reshape_to(interleave(&|axis| [1, size(&right, axis)]), at)?;
        let product = x.times(&y, at)?;
        let whole = product.shape();
        let shape: Option<Shape> = (0..rank).map(|axis| size(&left, axis).checked_mul(size(&right, axis))).collect();
        let shape = shape.ok_or_else(|| Error::TooLarge { shape: whole, dtype: Self::Elem::DTYPE, at })?;
        product.reshape_to(shape, at)
    }

    /// Returns the sum of the diagonal of a matrix. PyTorch: `trace`.
    fn try_trace(&self) -> Result<Self> {
        let at = Site::here("trace");
        let rank = self.shape().rank();
        ensure!(rank == 2, at, "trace: expected a matrix, but got tensor with dim {rank}");
        let diagonal = self.apply_view(View::Diagonal { offset: 0, first: 0, second: 1 }, at)?;
        reduce_dims(&diagonal, Reduction::Sum, &Dims::from(0), false, at)
    }
}

/// Computes (x × y)ᵢ = xᵢ₊₁ yᵢ₊₂ - xᵢ₊₂ yᵢ₊₁, with indices modulo 3.
fn cross<A: TensorLike>(x: &A, y: &A, dim: isize, at: Site) -> Result<A> {
    let (left, right) = (x.shape(), y.shape());
    ensure!(left.rank() == right.rank(), at, "linalg.cross: inputs must have the same number of dimensions.");
    let axis = dims::axis(dim, left.rank(), at)?;
    let size = |shape: &Shape| shape.get(axis).copied().unwrap_or(1);
    let (size, other) = (size(&left), size(&right));
    ensure!(
        size == 3 && other == 3,
        at,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {size} and {other}"
    );
    let (x, y) = broadcast_two(x, y, at)?;
    let product = |i: usize, j: usize| x.slice_axis(axis, i, 1, at)?.times(&y.slice_axis(axis, j, 1, at)?, at);
    let component = |i: usize| product((i + 1) % 3, (i + 2) % 3)?.minus(&product((i + 2) % 3, (i + 1) % 3)?, at);
    A::apply_cat(&[component(0)?, component(1)?, component(2)?], axis, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn pairs_of_elements() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(x.inner(Tensor::from([1.0, 10.0])).to_vec(), [21.0, 43.0]);
        assert_eq!(x.inner(&x), Tensor::from([[5.0, 11.0], [11.0, 25.0]]));
        assert_eq!(x.inner(Tensor::scalar(2.0)), Tensor::from([[2.0, 4.0], [6.0, 8.0]]));
        let y = Tensor::from([1.0, 10.0]);
        assert_eq!(x.kron(&y), Tensor::from([[1.0, 10.0, 2.0, 20.0], [3.0, 30.0, 4.0, 40.0]]));
        assert_eq!(y.kron(&x), Tensor::from([[1.0, 2.0, 10.0, 20.0], [3.0, 4.0, 30.0, 40.0]]));
        assert_eq!(Tensor::<f64>::zeros([0]).outer(&y).shape(), &[0, 2]);
        assert_eq!(
            x.try_inner(Tensor::ones([3])).unwrap_err().sentence(),
            "inner() the last dimension must match on both input tensors but got shapes [2, 2] and [3]"
        );
        assert!(x.try_outer(&y).is_err());
    }

    #[test]
    fn along_a_dimension() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let y = Tensor::from([[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]]);
        assert_eq!(x.cross(&y, 1), Tensor::from([[-3.0, 6.0, -3.0], [0.0, 0.0, 0.0]]));
        assert_eq!(x.t().cross(y.t(), 0), x.cross(&y, -1).t());
        assert_eq!(x.vecdot(&y, -1).to_vec(), [32.0, 14.0]);
        assert_eq!(
            x.try_cross(&y, 0).unwrap_err().sentence(),
            "linalg.cross: inputs dimension 0 must have length 3. Got 1 and 2"
        );
    }

    #[test]
    fn the_trace() {
        assert_eq!(Tensor::from([[1, 2, 3], [4, 5, 6i64]]).trace().item(), 6);
        assert_eq!(
            Tensor::from([1.0]).try_trace().unwrap_err().sentence(),
            "trace: expected a matrix, but got tensor with dim 1"
        );
    }
}
