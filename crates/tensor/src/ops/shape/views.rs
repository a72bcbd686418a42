//! Views: the same elements with another shape or order. Nothing is computed, except by `sum_to`. Only reshapes (also `flatten` and
//! `unflatten`) may have to copy.

use wengert_macros::twins;

use crate::ops::primitive::pair::{broadcast_operand_shapes, expand};
use crate::ops::{IntoArray, Result, TensorLike, arrays};
use crate::shape::broadcast;
use crate::shape::broadcast::Expansion;
use crate::shape::diagnostic::sizes_text;
use crate::shape::dims::{self, UNREPRESENTABLE};
use crate::{Axes, Dims, Error, Position, Reduction, Scalar, Shape, Site, Sizes, Span, View, ensure};

/// Views, and [`sum_to`](Self::sum_to), the adjoint of [`expand`](Self::expand). A negative dimension counts from the end.
#[twins(blanket)]
pub trait Views: TensorLike {
    /// Expands to `sizes` without a copy: new and stretched dimensions get stride 0. -1 keeps the size of an existing dimension. Refuses
    /// `sizes` to which the shape does not expand. PyTorch: `expand`, `broadcast_to`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let bias = Tensor::<f32>::ones([32, 1, 1]);
    /// let expanded = bias.expand([4, -1, 14, 14]);
    /// assert_eq!(expanded.shape(), &[4, 32, 14, 14]);
    /// assert_eq!(expanded.strides(), &[0, 1, 0, 0]);
    /// assert!(expanded.shares_storage(&bias));
    /// ```
    #[doc(alias("broadcast_to"))]
    fn try_expand(&self, sizes: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("expand");
        let shape = self.shape();
        let target = sizes.into().resolve_expand(Self::Elem::DTYPE, &shape, at)?;
        expand(self, &target, at)
    }

    /// Expands to `sizes`: [`expand`](Self::expand) under its NumPy name.
    fn try_broadcast_to(&self, sizes: impl Into<Sizes>) -> Result<Self> {
        self.try_expand(sizes)
    }

    /// Returns the values of `self` as a constant, through which no gradient flows. PyTorch: `detach`.
    #[doc(alias("stop_gradient", "no_grad"))]
    fn try_detach(&self) -> Result<Self> {
        self.apply_detach(Site::here("detach"))
    }

    /// Expands to the shape of `other`. PyTorch: `expand_as`.
    fn try_expand_as(&self, other: &Self) -> Result<Self> {
        self.try_expand(other.shape())
    }

    /// Sums to the shape `sizes`: the adjoint of [`expand`](Self::expand). Sums over the dimensions that expanding from `sizes` would add or
    /// stretch. Refuses `sizes` that do not expand to the shape of `self`. PyTorch: `sum_to_size`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let g = Tensor::<f64>::ones([4, 32, 14, 14]);
    /// assert_eq!(g.sum_to([32, 1, 1]), Tensor::full([32, 1, 1], 4.0 * 14.0 * 14.0));
    /// ```
    fn try_sum_to(&self, sizes: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("sum_to");
        let shape = self.shape();
        let target = sizes.into().resolve_plain(at)?;
        let Some(expansion) = Expansion::new(&target, &shape) else {
            return Err(Error::SumTo { shape, target: Box::new(target), at }.into());
        };
        let reduced = expansion.reduced();
        let sum = if reduced.is_empty() { self.clone() } else { self.apply_reduce(Reduction::Sum, &reduced, at)? };
        if sum.shape() == target { Ok(sum) } else { sum.apply_view(View::Reshape(target), at) }
    }

    /// Returns the same elements in row-major order with another shape. One size may be -1, which is inferred. The result is a view if the
    /// strides allow it, otherwise a copy. Sizes of different types, such as `usize` and `i32`, can be given as a tuple. PyTorch:
    /// `reshape`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (x, rows) = (Tensor::<f32>::zeros([4, 6]), 8usize);
    /// assert_eq!(x.reshape([-1, 2]).shape(), &[12, 2]);
    /// assert_eq!(x.reshape((rows, -1)).shape(), &[8, 3]);
    /// ```
    #[doc(alias("view", "view_as"))]
    fn try_reshape(&self, sizes: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("reshape");
        let shape = self.shape();
        let target = sizes.into().resolve_reshape(&shape, at)?;
        if target == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(target), at) }
    }

    /// Merges dimensions `start` to `end`, both included, into one. A tensor of rank 0 becomes a vector of one element. PyTorch: `flatten`.
    #[doc(alias("ravel"))]
    fn try_flatten(&self, start: impl Position, end: impl Position) -> Result<Self> {
        let at = Site::here("flatten");
        let shape = self.shape();
        let (start, end) = (dims::axis(start, shape.rank(), at)?, dims::axis(end, shape.rank(), at)?);
        ensure!(start <= end, at, "flatten() has invalid args: start_dim cannot come after end_dim");
        if shape.rank() == 0 {
            return self.apply_view(View::Reshape(Shape::from([1])), at);
        }
        if start == end {
            return Ok(self.clone());
        }
        // If a dimension that is not merged has size 0, the product of the merged sizes may overflow.
        let Some(merged) = Shape::from(&shape[start..=end]).checked_numel() else {
            return Err(Error::TooLarge { shape, dtype: Self::Elem::DTYPE, at }.into());
        };
        self.apply_view(View::Reshape(shape.replaced(start..end + 1, &[merged])), at)
    }

    /// Splits dimension `dim` into dimensions of `sizes`. One size may be -1, which is inferred. PyTorch: `unflatten`.
    fn try_unflatten(&self, dim: impl Position, sizes: impl Into<Sizes>) -> Result<Self> {
        let at = Site::here("unflatten");
        let shape = self.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        let sizes = sizes.into();
        ensure!(!sizes.as_slice().is_empty(), at, "unflatten: sizes must be non-empty");
        let size = shape.get(axis).copied().unwrap_or(1);
        let parts = sizes.resolve_reshape(&Shape::from([size]), at).map_err(|_| {
            let sizes = sizes_text(sizes.as_slice());
            let message = format!(
                "unflatten: Provided sizes {sizes} don't multiply up to the size of dim {axis} ({size}) in the input tensor"
            );
            Error::argument(at, message)
        })?;
        let target = shape[..axis].iter().chain(parts.iter()).chain(shape.iter().skip(axis + 1)).copied().collect();
        self.apply_view(View::Reshape(target), at)
    }

    /// Reorders the dimensions. `dims` names each dimension once. PyTorch: `permute`.
    #[doc(alias("transpose", "moveaxis"))]
    fn try_permute(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("permute");
        let rank = self.shape().rank();
        let order = dims.into().resolve(rank, at)?;
        ensure!(
            order.len() == rank,
            at,
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
                 ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
            order.len()
        );
        self.apply_view(View::Permute(order), at)
    }

    /// Swaps dimensions `first` and `second`. PyTorch: `transpose`, `swapaxes`.
    #[doc(alias("swapaxes", "swapdims"))]
    fn try_transpose(&self, first: impl Position, second: impl Position) -> Result<Self> {
        let at = Site::here("transpose");
        let rank = self.shape().rank();
        let (first, second) = (dims::axis(first, rank, at)?, dims::axis(second, rank, at)?);
        if rank == 0 { Ok(self.clone()) } else { swap(self, first, second, at) }
    }

    /// Transposes a matrix. A tensor of rank 0 or 1 stays unchanged. PyTorch: `t`.
    fn try_t(&self) -> Result<Self> {
        let at = Site::here("t");
        let rank = self.shape().rank();
        ensure!(rank <= 2, at, "t() expects a tensor with <= 2 dimensions, but self is {rank}D");
        if rank < 2 { Ok(self.clone()) } else { self.apply_view(View::Permute(Axes::from_slice(&[1, 0])), at) }
    }

    /// Moves dimensions `source` to the positions `destination`. The other dimensions keep their order. PyTorch: `movedim`.
    #[doc(alias("moveaxis"))]
    fn try_movedim(&self, source: impl Into<Dims>, destination: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("movedim");
        let rank = self.shape().rank();
        let (source, destination) = (source.into().resolve(rank, at)?, destination.into().resolve(rank, at)?);
        ensure!(
            source.len() == destination.len(),
            at,
            "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of \
                 dims as destination ({destination:?} dims)"
        );
        let mut rest = (0..rank).filter(|axis| !source.contains(axis));
        let order = (0..rank)
            .filter_map(|axis| match destination.iter().position(|&to| to == axis) {
                Some(k) => Some(source[k]),
                None => rest.next(),
            })
            .collect();
        self.apply_view(View::Permute(order), at)
    }

    /// Inserts a dimension of size 1 before position `dim`, which is from `-rank - 1` to `rank`. PyTorch: `unsqueeze`.
    #[doc(alias("expand_dims", "newaxis"))]
    fn try_unsqueeze(&self, dim: impl Position) -> Result<Self> {
        let at = Site::here("unsqueeze");
        unsqueeze(self, dims::axis(dim, self.shape().rank() + 1, at)?, at)
    }

    /// Removes the dimensions of size 1 among `dims` (`..` means all dimensions). PyTorch: `squeeze`.
    fn try_squeeze(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("squeeze");
        let shape = self.shape();
        let axes = dims.into().resolve(shape.rank(), at)?;
        let kept: Shape = (0..shape.rank())
            .filter(|axis| shape[*axis] != 1 || !axes.contains(axis))
            .map(|axis| shape[axis])
            .collect();
        if kept == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(kept), at) }
    }

    /// Reverses the order of the elements along `dims`. Unlike PyTorch's `flip`, this is a view.
    #[doc(alias("fliplr", "flipud", "reverse"))]
    fn try_flip(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("flip");
        let shape = self.shape();
        let axes = dims.into().resolve(shape.rank(), at)?;
        self.apply_view(View::Flip(axes), at)
    }

    /// Rotates by `k` quarter turns in the plane of `dims`, from the first of these dimensions towards the second. A negative `k` rotates
    /// the other way. Unlike PyTorch's `rot90`, this is a view. Refuses fewer than two dimensions, and `dims` that are equal or do not
    /// exist.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1i64, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.rot90(1, [0, 1]), Tensor::from([[3i64, 6], [2, 5], [1, 4]]));
    /// assert_eq!(x.rot90(2, [0, 1]), x.flip(..));
    /// ```
    fn try_rot90(&self, k: isize, dims: [isize; 2]) -> Result<Self> {
        let at = Site::here("rot90");
        let rank = self.shape().rank();
        ensure!(rank >= 2, at, "expected total dims >= 2, but got total dims = {rank}");
        let (first, second) = (dims::axis(dims[0], rank, at)?, dims::axis(dims[1], rank, at)?);
        let [dim0, dim1] = dims;
        ensure!(first != second, at, "expected rotation dims to be different, but got dim0 = {dim0} and dim1 = {dim1}");
        let flipped = match k.rem_euclid(4) {
            0 => Axes::new(),
            1 => Axes::from_slice(&[second]),
            2 => Axes::from_slice(&[first, second]),
            _ => Axes::from_slice(&[first]),
        };
        let x = self.apply_view(View::Flip(flipped), at)?;
        if k % 2 == 0 { Ok(x) } else { swap(&x, first, second, at) }
    }

    /// Returns a tensor of rank 0 as a vector of one element, and every other tensor unchanged. PyTorch: `atleast_1d`.
    fn try_atleast_1d(&self) -> Result<Self> {
        raise_rank(self, 1, Site::here("atleast_1d"))
    }

    /// Returns a vector of n elements as a matrix `[1, n]`, a tensor of rank 0 as `[1, 1]`, and every other tensor unchanged. PyTorch:
    /// `atleast_2d`.
    fn try_atleast_2d(&self) -> Result<Self> {
        raise_rank(self, 2, Site::here("atleast_2d"))
    }

    /// Returns a matrix `[m, n]` as `[m, n, 1]`, a vector of n elements as `[1, n, 1]`, and a tensor of rank 0 as `[1, 1, 1]`. Every other
    /// tensor stays unchanged. PyTorch: `atleast_3d`.
    fn try_atleast_3d(&self) -> Result<Self> {
        raise_rank(self, 3, Site::here("atleast_3d"))
    }

    /// Returns `len` elements of dimension `dim`, starting at `start` (negative: from the end). Refuses elements beyond the dimension.
    /// PyTorch: `narrow`.
    fn try_narrow(&self, dim: impl Position, start: impl Position, len: impl Position) -> Result<Self> {
        let (start, len) = (start.position(), len.position());
        let at = Site::here("narrow");
        let shape = self.shape();
        ensure!(shape.rank() > 0, at, "narrow() cannot be applied to a 0-dim tensor.");
        let Ok(len) = usize::try_from(len) else {
            return Err(Error::argument(at, "narrow(): length must be non-negative.").into());
        };
        let axis = dims::axis(dim, shape.rank(), at)?;
        let size = shape[axis] as isize;
        ensure!(
            (-size..=size).contains(&start),
            at,
            IndexRange,
            "start out of range (expected to be in range of [{}, {size}], but got {start})",
            -size
        );
        let (size, start) = (shape[axis], if start < 0 { start + size } else { start } as usize);
        ensure!(len <= size - start, at, "start ({start}) + length ({len}) exceeds dimension size ({size}).");
        self.apply_view(View::Slice { axis, start, len, step: 1 }, at)
    }

    /// Returns the positions `span` of dimension `dim`: a range such as `1..`, or a range with a step, `(1.., 2)`. As in Python, negative
    /// ends count from the end, and ends beyond the dimension are clamped. The step is positive; use [`flip`](Self::flip) to go
    /// backwards. [`Span`] has all forms. PyTorch: indexing with a slice, `x[1::2]`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.slice(1, 1..), Tensor::from([[2.0, 3.0], [5.0, 6.0]]));
    /// assert_eq!(x.slice(-1, (.., 2)), Tensor::from([[1.0, 3.0], [4.0, 6.0]]));
    /// assert_eq!(x.slice(0, ..-1).to_vec(), [1.0, 2.0, 3.0]);
    /// ```
    fn try_slice(&self, dim: impl Position, span: impl Into<Span>) -> Result<Self> {
        let at = Site::here("slice");
        self.apply_view(slice_view(&self.shape(), dim.position(), span.into(), at)?, at)
    }

    /// Returns the elements at position `index` (negative: from the end) of dimension `dim`, without that dimension. Refuses an index out of
    /// range. PyTorch: `select`.
    fn try_select(&self, dim: impl Position, index: impl Position) -> Result<Self> {
        let at = Site::here("select");
        let (view, axis) = select_view(&self.shape(), dim.position(), index.position(), at)?;
        squeeze(&self.apply_view(view, at)?, axis, at)
    }

    /// Returns the diagonal of dimensions `first` and `second` as the last dimension. `offset` counts from the main diagonal upwards
    /// (negative: downwards). Refuses equal dimensions. PyTorch: `diagonal`.
    fn try_diagonal(&self, offset: isize, first: impl Position, second: impl Position) -> Result<Self> {
        let at = Site::here("diagonal");
        self.apply_view(diagonal_view(self.shape().rank(), offset, first.position(), second.position(), at)?, at)
    }

    /// Returns a window of `size` elements every `step` elements along `dim`. The elements of a window become the last dimension. Elements
    /// at the end that do not fill a window are left out. Refuses a `size` above the size of the dimension, and step 0. PyTorch: `unfold`.
    fn try_unfold(&self, dim: impl Position, size: usize, step: usize) -> Result<Self> {
        let at = Site::here("unfold");
        let shape = self.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        let whole = shape.get(axis).copied().unwrap_or(1);
        ensure!(size <= whole, at, "maximum size for tensor at dimension {axis} is {whole} but size is {size}");
        ensure!(step > 0, at, "step is 0 but must be > 0");
        if shape.rank() == 0 {
            // The tensor counts as a vector of one element, and the only window has 0 or 1 elements.
            let line = self.apply_view(View::Reshape(Shape::from([1])), at)?;
            return if size == 1 {
                Ok(line)
            } else {
                line.apply_view(View::Slice { axis: 0, start: 0, len: 0, step: 1 }, at)
            };
        }
        self.apply_view(View::Unfold { axis, size, step }, at)
    }
}

/// Returns the view `start:end:step`, as in Python, of dimension `axis`. `step` is positive.
pub(crate) fn slice(axis: usize, size: usize, start: Option<isize>, end: Option<isize>, step: isize) -> View {
    let size = size as isize;
    let clamp = |position: isize| (if position < 0 { position.saturating_add(size) } else { position }).clamp(0, size);
    let start = clamp(start.unwrap_or(0));
    let end = clamp(end.unwrap_or(size)).max(start);
    View::Slice { axis, start: start as usize, len: ((end - start) as usize).div_ceil(step as usize), step }
}

/// Returns the view of the positions `span` of dimension `dim`; see [`Views::try_slice`].
pub(crate) fn slice_view(shape: &Shape, dim: isize, span: Span, at: Site) -> Result<View, Error> {
    ensure!(shape.rank() > 0, at, "slice() cannot be applied to a 0-dim tensor.");
    let axis = dims::axis(dim, shape.rank(), at)?;
    ensure!(span.step > 0, at, "slice step must be positive");
    Ok(slice(axis, shape[axis], span.start, span.end, span.step))
}

/// Returns the view of position `index` of dimension `dim`, which stays with size 1, and the position of this dimension; see
/// [`Views::try_select`].
pub(crate) fn select_view(shape: &Shape, dim: isize, index: isize, at: Site) -> Result<(View, usize), Error> {
    ensure!(shape.rank() > 0, at, "select() cannot be applied to a 0-dim tensor.");
    let axis = dims::axis(dim, shape.rank(), at)?;
    let size = shape[axis] as isize;
    ensure!(
        (-size..size).contains(&index),
        at,
        IndexRange,
        "select(): index {index} out of range for tensor of size {shape} at dimension {axis}"
    );
    let start = if index < 0 { index + size } else { index } as usize;
    Ok((View::Slice { axis, start, len: 1, step: 1 }, axis))
}

/// Returns the view of a diagonal; see [`Views::try_diagonal`].
pub(crate) fn diagonal_view(rank: usize, offset: isize, first: isize, second: isize, at: Site) -> Result<View, Error> {
    let [first, second] = diagonal_axes(rank, first, second, at)?;
    Ok(View::Diagonal { offset, first, second })
}

/// Returns the positions of the two dimensions of a diagonal, in an array of rank `rank`. Refuses equal dimensions.
pub(crate) fn diagonal_axes(rank: usize, first: isize, second: isize, at: Site) -> Result<[usize; 2], Error> {
    let axes = [dims::axis(first, rank, at)?, dims::axis(second, rank, at)?];
    ensure!(axes[0] != axes[1], at, "diagonal dimensions cannot be identical {first}, {second}");
    Ok(axes)
}

pub(crate) fn swap<A: TensorLike>(x: &A, first: usize, second: usize, at: Site) -> Result<A> {
    let mut order: Axes = (0..x.shape().rank()).collect();
    order.swap(first, second);
    x.apply_view(View::Permute(order), at)
}

/// Inserts dimensions of size 1 until there are `rank` dimensions, 1 to 3. Inserts them before the existing dimensions until there are two
/// dimensions. Appends a third dimension at the end.
pub(crate) fn raise_rank<A: TensorLike>(x: &A, rank: usize, at: Site) -> Result<A> {
    let mut shape = x.shape();
    if shape.rank() >= rank {
        return Ok(x.clone());
    }
    while shape.rank() < rank.min(2) {
        shape.insert(0, 1);
    }
    if rank == 3 {
        shape.push(1);
    }
    x.apply_view(View::Reshape(shape), at)
}

/// Inserts a dimension of size 1 before `axis`.
pub(crate) fn unsqueeze<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A> {
    let mut shape = x.shape();
    shape.insert(axis, 1);
    x.apply_view(View::Reshape(shape), at)
}

/// Removes dimension `axis`, which has size 1.
pub(crate) fn squeeze<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A> {
    let mut shape = x.shape();
    shape.remove(axis);
    x.apply_view(View::Reshape(shape), at)
}

/// Returns the broadcast shape of `shapes`. The error has PyTorch's message. PyTorch: `broadcast_shapes`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::{Shape, ops::broadcast_shapes};
///
/// assert_eq!(broadcast_shapes([&Shape::from([5, 1, 4, 1]), &Shape::from([3, 1, 1])]), [5, 3, 4, 1]);
/// ```
///
/// # Errors
///
/// If the shapes do not broadcast, or a size is negative or above `isize::MAX`.
#[twins]
pub fn try_broadcast_shapes<S: Into<Sizes>>(shapes: impl IntoIterator<Item = S>) -> Result<Shape, Error> {
    let at = Site::here("broadcast_shapes");
    let resolved = |sizes: Sizes| {
        sizes.resolve_plain(at).map_err(|error| {
            if sizes.as_slice().contains(&UNREPRESENTABLE) {
                return error;
            }
            let message = "Attempting to broadcast a dimension with negative length!".into();
            Error::ShapeMismatch { message, at }
        })
    };
    let shapes: Vec<Shape> = shapes.into_iter().map(|sizes| resolved(sizes.into())).collect::<Result<_, _>>()?;
    broadcast::join(&shapes.iter().collect::<Vec<_>>()).map_err(|mut mismatch| {
        // PyTorch's error message shows the joined shape with the rank of the final result.
        let rank = shapes.iter().map(Shape::rank).max().unwrap_or_default();
        mismatch.axis += rank - mismatch.merged.rank().max(mismatch.shape.rank());
        while mismatch.merged.rank() < rank {
            mismatch.merged.insert(0, 1);
        }
        Error::BroadcastShapes(mismatch, at)
    })
}

/// Expands all of `tensors` to their broadcast shape. PyTorch: `broadcast_tensors`.
///
/// # Errors
///
/// If the shapes do not broadcast, or a tensor of their broadcast shape would be too large.
#[twins]
pub fn try_broadcast_tensors<I: IntoArray<Array = A> + Clone, A: TensorLike>(
    tensors: &[I],
) -> Result<Vec<A>, A::Error> {
    let (tensors, at) = (arrays(tensors), Site::here("broadcast_tensors"));
    let shapes: Vec<Shape> = tensors.iter().map(A::shape).collect();
    let joined = broadcast_operand_shapes(&shapes.iter().collect::<Vec<_>>(), at)?;
    tensors.iter().map(|tensor| expand(tensor, &joined, at)).collect()
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn sizes_out_of_range_are_refused() {
        let error = |size: isize| crate::ops::try_broadcast_shapes([[size]]).unwrap_err().sentence();
        assert_eq!(error(-1), "Attempting to broadcast a dimension with negative length!");
        let huge = crate::ops::try_broadcast_shapes([[usize::MAX]]).unwrap_err().sentence();
        assert_eq!(huge, format!("a size must be at most {}", isize::MAX));
    }

    #[test]
    fn quarter_turns() {
        let x = Tensor::from([[1i64, 2, 3], [4, 5, 6]]);
        let (left, right) = (Tensor::from([[3i64, 6], [2, 5], [1, 4]]), Tensor::from([[4i64, 1], [5, 2], [6, 3]]));
        let half = Tensor::from([[6i64, 5, 4], [3, 2, 1]]);
        for (k, dims, expected) in [
            (-1, [0, 1], &right),
            (0, [0, 1], &x),
            (1, [0, 1], &left),
            (2, [0, 1], &half),
            (3, [0, 1], &right),
            (4, [0, 1], &x),
            (isize::MIN, [0, 1], &x),
            (1, [1, 0], &right),
            (1, [-1, -2], &right),
        ] {
            assert_eq!(&x.rot90(k, dims), expected, "{k} {dims:?}");
        }
        let sentence = |x: Tensor<i64>, dims| x.try_rot90(1, dims).unwrap_err().sentence();
        assert_eq!(
            sentence(x.clone(), [1, -1]),
            "expected rotation dims to be different, but got dim0 = 1 and dim1 = -1"
        );
        assert_eq!(sentence(Tensor::from([1i64, 2]), [0, 1]), "expected total dims >= 2, but got total dims = 1");
        assert_eq!(sentence(x, [0, 2]), "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    }

    #[test]
    fn dimensions_are_added() {
        let sizes = [&[][..], &[2], &[2, 3], &[2, 3, 4], &[2, 3, 4, 5]];
        let all = sizes.map(Tensor::<f64>::zeros);
        let shapes = |raise: fn(&Tensor<f64>) -> Tensor<f64>| all.each_ref().map(|x| raise(x).shape().to_vec());
        assert_eq!(shapes(Tensor::atleast_1d)[..2], [[1], [2]]);
        assert_eq!(shapes(Tensor::atleast_2d)[..3], [[1, 1], [1, 2], [2, 3]]);
        assert_eq!(shapes(Tensor::atleast_3d)[..4], [[1, 1, 1], [1, 2, 1], [2, 3, 1], [2, 3, 4]]);
        assert_eq!(shapes(Tensor::atleast_3d)[4], [2, 3, 4, 5]);
    }

    /// PyTorch gives the same for `torch.tensor(3.).unfold(0, size, 1)`.
    #[test]
    fn windows_of_a_number() {
        let x = Tensor::scalar(3.0);
        assert_eq!(x.unfold(0, 1, 1), Tensor::from([3.0]));
        assert_eq!(x.unfold(0, 0, 1), Tensor::zeros([0]));
        assert!(x.try_unfold(0, 2, 1).is_err());
    }
}
