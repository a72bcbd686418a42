//! Reductions over some dimensions.

use wengert_macros::twins;

use crate::kernel::reduce::arg;
use crate::ops::{Compose, Result, TensorLike};
use crate::shape::dims;
use crate::{
    DType, Dims, Element, Error, Float, Number, Position, Reduction, Scalar, Shape, Site, Tensor, View, ensure,
};

/// Reductions. `dims` is one dimension, several, or all (`..`, or an empty list as in PyTorch). The reduced dimensions are removed,
/// unless the method's name ends in `_keepdim`: then the result keeps them with size 1.
#[twins(blanket)]
pub trait Reductions: TensorLike {
    /// Returns the sum over `dims`, added pairwise; 0 if there are no elements. Sums of `i64` wrap. Refuses `u8`, whose sums would soon
    /// overflow: cast the tensor first. [`count_nonzero`](Self::count_nonzero) counts the `true` elements of a mask. PyTorch: `sum`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.sum(0).to_vec(), [4.0, 6.0]);
    /// assert_eq!(x.sum(..).item(), 10.0);
    /// assert_eq!(x.sum_keepdim(-1).shape(), &[2, 1]);
    /// ```
    #[keepdim]
    fn try_sum(&self, dims: impl Into<Dims>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("sum");
        if Self::Elem::DTYPE == DType::U8 {
            return Err(Error::ElementType { dtype: Self::Elem::DTYPE, at }.into());
        }
        reduce_dims(self, Reduction::Sum, &dims.into(), keepdim, at)
    }

    /// Returns the mean over `dims`; NaN if there are no elements. PyTorch: `mean`.
    #[doc(alias("average"))]
    #[keepdim]
    fn try_mean(&self, dims: impl Into<Dims>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        mean(self, &dims.into(), keepdim, Site::here("mean"))
    }

    /// Returns the product over `dims`; 1 if there are no elements. Products of integers wrap, in the element type. PyTorch: `prod`.
    #[doc(alias("product"))]
    #[keepdim]
    fn try_prod(&self, dims: impl Into<Dims>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        reduce_dims(self, Reduction::Prod, &dims.into(), keepdim, Site::here("prod"))
    }

    /// Returns the largest element over `dims`; NaN if any element is NaN. Equal elements share the gradient evenly. Refuses empty
    /// dimensions. PyTorch: `amax`.
    #[doc(alias("max"))]
    #[keepdim]
    fn try_amax(&self, dims: impl Into<Dims>) -> Result<Self> {
        extreme_values(self, Reduction::Amax, &dims.into(), keepdim, Site::here("amax"))
    }

    /// Returns the smallest element over `dims`; NaN if any element is NaN. Equal elements share the gradient evenly. Refuses empty
    /// dimensions. PyTorch: `amin`.
    #[doc(alias("min"))]
    #[keepdim]
    fn try_amin(&self, dims: impl Into<Dims>) -> Result<Self> {
        extreme_values(self, Reduction::Amin, &dims.into(), keepdim, Site::here("amin"))
    }

    /// Returns a mask that is true where any element over `dims` is nonzero (or `true`); `false` if there are no elements. An empty list of
    /// dimensions reduces no dimension. PyTorch: `any`.
    #[keepdim]
    fn try_any(&self, dims: impl Into<Dims>) -> Result<Tensor<bool>, Self::Error> {
        reduced_mask(self, Reduction::Sum, &dims.into(), keepdim, Site::here("any"))
    }

    /// Returns a mask that is true where all elements over `dims` are nonzero (or `true`); `true` if there are no elements. An empty list of
    /// dimensions reduces no dimension. PyTorch: `all`.
    #[keepdim]
    fn try_all(&self, dims: impl Into<Dims>) -> Result<Tensor<bool>, Self::Error> {
        reduced_mask(self, Reduction::Prod, &dims.into(), keepdim, Site::here("all"))
    }

    /// Returns the number of nonzero (or `true`) elements over `dims`. PyTorch: `count_nonzero`. This method also replaces PyTorch's `sum`
    /// of a mask, which does not compile here.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1, 0], [2, 3]]);
    /// assert_eq!(x.gt(1).count_nonzero(1).to_vec(), [0, 2]);
    /// ```
    ///
    /// ```compile_fail
    /// # use wengert_tensor::prelude::*;
    /// let _ = Tensor::from([true, false]).sum(..);
    /// ```
    fn try_count_nonzero(&self, dims: impl Into<Dims>) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("count_nonzero");
        let counted = nonzero_mask(self, at)?.try_cast::<i64>()?;
        Ok(reduce_dims(&counted, Reduction::Sum, &dims.into(), false, at)?)
    }

    /// Returns the position of the largest element along `dim`: the first of several equal elements, or the first NaN. Refuses an empty
    /// dimension. PyTorch: `argmax`.
    #[keepdim]
    fn try_argmax(&self, dim: impl Position) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("argmax");
        Ok(arg_extreme(&self.to_tensor(at)?, true, dim.position(), keepdim, at)?)
    }

    /// Returns the position of the smallest element along `dim`: the first of several equal elements, or the first NaN. Refuses an empty
    /// dimension. PyTorch: `argmin`.
    #[keepdim]
    fn try_argmin(&self, dim: impl Position) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("argmin");
        Ok(arg_extreme(&self.to_tensor(at)?, false, dim.position(), keepdim, at)?)
    }
}

/// Returns the reduction over `dims`, which the result keeps with size 1 or removes.
pub(crate) fn reduce_dims<A: TensorLike>(x: &A, op: Reduction, dims: &Dims, keepdim: bool, at: Site) -> Result<A> {
    let shape = x.shape();
    let axes = dims.resolve_or_all(shape.rank(), at)?;
    match (axes.is_empty(), keepdim) {
        (true, _) => Ok(x.clone()),
        (_, true) => x.apply_reduce(op, &axes, at),
        (_, false) => x.apply_reduce_away(op, &axes, at),
    }
}

/// Returns the reduction of the mask of nonzero elements over `dims`. An empty list reduces no dimension.
fn reduced_mask<A: TensorLike>(
    x: &A,
    op: Reduction,
    dims: &Dims,
    keepdim: bool,
    at: Site,
) -> Result<Tensor<bool>, A::Error> {
    let mask = nonzero_mask(x, at)?;
    let none = !dims.is_all() && dims.as_slice().is_empty();
    if none { Ok(mask) } else { Ok(reduce_dims(&mask, op, dims, keepdim, at)?) }
}

/// Returns the mean over `dims`, which the result keeps with size 1 or removes.
pub(crate) fn mean<A: TensorLike>(x: &A, dims: &Dims, keepdim: bool, at: Site) -> Result<A> {
    let shape = x.shape();
    let count = shape.numel_over(&dims.resolve_or_all(shape.rank(), at)?);
    let sum = reduce_dims(x, Reduction::Sum, dims, keepdim, at)?;
    sum.divide_by_count(count, at)
}

/// Returns the largest or smallest elements over `dims`, which the result keeps with size 1 or removes. Refuses empty dimensions.
pub(crate) fn extreme_values<A: TensorLike>(x: &A, op: Reduction, dims: &Dims, keepdim: bool, at: Site) -> Result<A> {
    let shape = x.shape();
    if shape.contains(&0) {
        let named = if dims.is_all() { &[] } else { dims.as_slice() };
        ensure!(
            !named.is_empty(),
            at,
            EmptyReduction,
            "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' \
             argument.",
            at.operation
        );
        for &dim in named {
            check_lanes(shape[dims::axis(dim, shape.rank(), at)?], dim, at)?;
        }
    }
    if shape.is_empty() && !x.is_plain() && matches!(op, Reduction::Amax | Reduction::Amin) {
        // The extreme of a single element is the element itself. But in PyTorch, the gradient at a NaN is NaN, so the reduction of a variable
        // is recorded.
        dims.resolve_or_all(0, at)?;
        let line = x.apply_view(View::Reshape(Shape::from([1])), at)?;
        return line.apply_reduce_away(op, &[0], at);
    }
    reduce_dims(x, op, dims, keepdim, at)
}

/// Returns an error if `size`, the size of dimension `dim`, is 0. Operations that have no result without elements call this function.
pub(crate) fn check_lanes(size: usize, dim: isize, at: Site) -> Result<(), Error> {
    let name = at.operation;
    ensure!(size > 0, at, EmptyReduction, "{name}(): Expected reduction dim {dim} to have non-zero size.");
    Ok(())
}

/// Returns `z`, which has size 1 along `axes`. These dimensions are removed if `keepdim` is false.
pub(crate) fn drop_reduced<A: TensorLike>(z: A, axes: &[usize], keepdim: bool, at: Site) -> Result<A> {
    if keepdim || axes.is_empty() {
        return Ok(z);
    }
    let shape = z.shape().without(axes);
    z.apply_view(View::Reshape(shape), at)
}

/// Returns a mask that is true at the nonzero (or `true`) elements of `x`. A recorded variable is evaluated first.
pub(crate) fn nonzero_mask<A: TensorLike>(x: &A, at: Site) -> Result<Tensor<bool>, A::Error> {
    Ok(x.to_tensor(at)?.apply_nonzero(at)?)
}

#[wengert_macros::precompiled]
fn arg_extreme<T: Element>(
    x: &Tensor<T>,
    largest: bool,
    dim: isize,
    keepdim: bool,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let shape = x.shape();
    let axis = dims::axis(dim, shape.rank(), at)?;
    if shape.rank() == 0 {
        return Ok(Tensor::scalar(0));
    }
    check_lanes(shape[axis], axis as isize, at)?;
    drop_reduced(extreme_positions(x, largest, axis, at)?, &[axis], keepdim, at)
}

/// Returns the positions of the largest (or smallest) elements along dimension `axis`, which is not empty and stays with size 1.
/// The position is the first of several equal elements, or the first NaN.
#[wengert_macros::precompiled]
pub(crate) fn extreme_positions<T: Element>(
    x: &Tensor<T>,
    largest: bool,
    axis: usize,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let (kept, line) = x.layout().split(&[axis]);
    Tensor::build(&x.shape().with_size(axis, 1), at, |out| arg::arg(largest, x.source().data, &kept, &line, out))
}

#[cfg(test)]
mod tests {
    use crate::Dims;
    use crate::prelude::*;

    /// PyTorch's `any` and `all` reduce no dimension for an empty list, and all dimensions without a list. Other reductions reduce all
    /// dimensions for an empty list too.
    #[test]
    fn an_empty_list_of_dimensions_reduces_no_mask() {
        let (x, none) = (Tensor::from([[1.0, 0.0], [0.0, 0.0]]), || Dims::from(&[] as &[isize]));
        let mask = Tensor::from([[true, false], [false, false]]);
        assert_eq!([x.any(none()), x.all(none()), x.any_keepdim(none())], [mask.clone(), mask.clone(), mask]);
        assert_eq!((x.any(..).item(), x.all(..).item(), x.sum(none()).item()), (true, false, 1.0));
    }

    /// The error of `amax` names the dimension as the caller wrote it. The error of `argmax` names the position of the dimension.
    #[test]
    fn an_extreme_of_no_elements_names_the_dimension() {
        let (vector, matrix) = (Tensor::<f64>::zeros([0]), Tensor::<f64>::zeros([2, 0]));
        let sentence = |error: crate::Error| error.sentence();
        assert_eq!(
            sentence(vector.try_amax(0).unwrap_err()),
            "amax(): Expected reduction dim 0 to have non-zero size."
        );
        assert_eq!(
            sentence(matrix.try_amin(-1).unwrap_err()),
            "amin(): Expected reduction dim -1 to have non-zero size."
        );
        assert_eq!(
            sentence(vector.try_argmax(-1).unwrap_err()),
            "argmax(): Expected reduction dim 0 to have non-zero size."
        );
        let all = sentence(vector.try_amax(..).unwrap_err());
        assert!(all.starts_with("amax(): Expected reduction dim to be specified for input.numel() == 0."), "{all}");
        assert_eq!(matrix.amax(0).shape(), &[0]);
    }

    /// Tests the error of a sum against an error bound. Let u be the unit roundoff. If no element takes part in more than m additions, the
    /// error is at most m u Σ|x|, up to terms in u² (N. J. Higham, "The Accuracy of Floating Point Summation", 1993). For a pairwise sum of
    /// n elements that adds runs of 64 elements in order, m is at most 64 + log₂ n. For a sum in order, m is n - 1.
    #[test]
    fn ten_million_numbers_are_summed_pairwise() {
        let count = 10_000_000;
        let mut state = 1u32;
        let data: Vec<f32> = (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32
            })
            .collect();
        let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
        let in_order: f32 = data.iter().sum();
        let x = Tensor::from(data);
        let error = |got: f32| (f64::from(got) - exact).abs() / exact;
        let unit = f64::from(f32::EPSILON) / 2.0;
        let additions = 64.0 + f64::from(count).log2();
        assert!(error(x.sum(..).item()) <= additions * unit, "{}", error(x.sum(..).item()));
        assert!(error(in_order) > additions * unit, "{}", error(in_order));
        // Rounding errors of both signs nearly cancel, so the actual error is only a few roundings, far below the bound.
        assert!(error(x.sum(..).item()) <= 4.0 * unit);
        // Tests sums along either dimension of a matrix, and along a dimension with a stride.
        for (x, dim) in [(x.reshape([2, -1]), 1), (x.reshape([-1, 2]), 0), (x.reshape([-1, 2]).t(), 1)] {
            let sums = x.sum(dim).cast::<f64>();
            assert!((sums.sum(..).item() - exact).abs() / exact <= 8.0 * unit, "{sums:?}");
        }
    }
}
