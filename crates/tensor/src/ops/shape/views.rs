//! Views: the same elements under another shape or order. Nothing is computed and, but for some reshapes, nothing copied.

use wengert_macros::twins;

use crate::ops::TensorLike;
use crate::ops::pair::{expanded, join_all};
use crate::shape::broadcast;
use crate::shape::broadcast::Expansion;
use crate::shape::diagnostic::sizes_text;
use crate::shape::dims;
use crate::{Axes, Dims, Error, Position, Reduction, Scalar, Shape, Site, Sizes, View};

/// Views and their adjoints. Dimensions count from 0, or from the end where negative.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let x = Tensor::<i64>::arange(6);
/// let table = x.reshape([2, 3]);
/// assert_eq!(table.t(), Tensor::from([[0, 3], [1, 4], [2, 5]]));
/// let many = table.unsqueeze(0).expand([1000, 2, 3]);
/// assert!(many.shares_storage(&x)); // nothing was copied
/// ```
#[twins]
pub trait Views: TensorLike {
    /// Expanded to `sizes` without a copy: new and stretched dimensions get stride 0. -1 keeps an existing dimension.
    /// PyTorch: `expand`, `broadcast_to`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let bias = Tensor::<f32>::ones([32, 1, 1]);
    /// let seen = bias.expand([4, -1, 14, 14]);
    /// assert_eq!(seen.shape(), &[4, 32, 14, 14]);
    /// assert_eq!(seen.strides(), &[0, 1, 0, 0]);
    /// assert!(seen.shares_storage(&bias));
    /// ```
    fn try_expand(&self, sizes: impl Into<Sizes>) -> Result<Self, Self::Error> {
        let at = Site::here("expand");
        let shape = self.shape();
        let target = sizes.into().resolve_expand(Self::Elem::DTYPE, &shape, at)?;
        expanded(self, &target, at)
    }

    /// [`expand`](Self::expand), by NumPy's name.
    fn try_broadcast_to(&self, sizes: impl Into<Sizes>) -> Result<Self, Self::Error> {
        self.try_expand(sizes)
    }

    /// The same values, through which no gradient flows. PyTorch: `detach`.
    fn try_detach(&self) -> Result<Self, Self::Error> {
        self.apply_detach(Site::here("detach"))
    }

    /// Expanded to the shape of `other`. PyTorch: `expand_as`.
    fn try_expand_as(&self, other: &Self) -> Result<Self, Self::Error> {
        self.try_expand(other.shape())
    }

    /// The adjoint of [`expand`](Self::expand): summed to `sizes`, over the dimensions that expanding from there would
    /// add or stretch. PyTorch: `sum_to_size`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let g = Tensor::<f64>::ones([4, 32, 14, 14]);
    /// assert_eq!(g.sum_to([32, 1, 1]), Tensor::full([32, 1, 1], 4.0 * 14.0 * 14.0));
    /// ```
    fn try_sum_to(&self, sizes: impl Into<Sizes>) -> Result<Self, Self::Error> {
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

    /// The same elements in row-major order under another shape; one size may be -1. A view where strides allow it, a
    /// copy otherwise. PyTorch: `reshape`.
    fn try_reshape(&self, sizes: impl Into<Sizes>) -> Result<Self, Self::Error> {
        let at = Site::here("reshape");
        let shape = self.shape();
        let target = sizes.into().resolve_reshape(&shape, at)?;
        if target == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(target), at) }
    }

    /// Dimensions `start` to `end`, both included, made one. PyTorch: `flatten`.
    fn try_flatten(&self, start: impl Position, end: impl Position) -> Result<Self, Self::Error> {
        let (start, end) = (start.position(), end.position());
        let at = Site::here("flatten");
        let shape = self.shape();
        let (start, end) = (dims::axis(start, shape.rank(), at)?, dims::axis(end, shape.rank(), at)?);
        if start > end {
            return Err(Error::argument(at, "flatten() has invalid args: start_dim cannot come after end_dim").into());
        }
        if shape.rank() == 0 {
            return self.apply_view(View::Reshape(Shape::from([1])), at);
        }
        if start == end {
            return Ok(self.clone());
        }
        let mut target = Shape::from(&shape[..start]);
        // A zero elsewhere may have let these be too large to multiply.
        let Some(merged) = Shape::from(&shape[start..=end]).checked_numel() else {
            return Err(Error::TooLarge { shape, dtype: Self::Elem::DTYPE, at }.into());
        };
        target.push(merged);
        for &size in &shape[end + 1..] {
            target.push(size);
        }
        self.apply_view(View::Reshape(target), at)
    }

    /// Dimension `dim` made several of `sizes`, one of which may be -1. PyTorch: `unflatten`.
    fn try_unflatten(&self, dim: impl Position, sizes: impl Into<Sizes>) -> Result<Self, Self::Error> {
        let dim = dim.position();
        let at = Site::here("unflatten");
        let shape = self.shape();
        let axis = dims::axis(dim, shape.rank(), at)?;
        let sizes = sizes.into();
        if sizes.as_slice().is_empty() {
            return Err(Error::argument(at, "unflatten: sizes must be non-empty").into());
        }
        let size = shape.get(axis).copied().unwrap_or(1);
        let parts = sizes.resolve_reshape(&Shape::from([size]), at).map_err(|_| {
            let sizes = sizes_text(sizes.as_slice());
            let message = format!(
                "unflatten: Provided sizes {sizes} don't multiply up to the size of dim {axis} ({size}) in the input tensor"
            );
            Error::argument(at, message)
        })?;
        let mut target = Shape::from(&shape[..axis]);
        for &size in parts.iter().chain(shape.iter().skip(axis + 1)) {
            target.push(size);
        }
        self.apply_view(View::Reshape(target), at)
    }

    /// Dimensions in the order `dims`, which names each once. PyTorch: `permute`.
    fn try_permute(&self, dims: impl Into<Dims>) -> Result<Self, Self::Error> {
        let at = Site::here("permute");
        let rank = self.shape().rank();
        let order = dims.into().resolve(rank, at)?;
        if order.len() != rank {
            let message = format!(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
                 ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
                order.len()
            );
            return Err(Error::argument(at, message).into());
        }
        self.apply_view(View::Permute(order), at)
    }

    /// Dimensions `first` and `second` swapped. PyTorch: `transpose`, `swapaxes`.
    fn try_transpose(&self, first: impl Position, second: impl Position) -> Result<Self, Self::Error> {
        let (first, second) = (first.position(), second.position());
        let at = Site::here("transpose");
        let rank = self.shape().rank();
        let (first, second) = (dims::axis(first, rank, at)?, dims::axis(second, rank, at)?);
        if rank == 0 {
            return Ok(self.clone());
        }
        let mut order: Axes = (0..rank).collect();
        order.swap(first, second);
        self.apply_view(View::Permute(order), at)
    }

    /// The transpose of a matrix; a vector or a number stays as it is. PyTorch: `t`.
    fn try_t(&self) -> Result<Self, Self::Error> {
        let at = Site::here("t");
        let rank = self.shape().rank();
        if rank > 2 {
            let message = format!("t() expects a tensor with <= 2 dimensions, but self is {rank}D");
            return Err(Error::argument(at, message).into());
        }
        if rank < 2 { Ok(self.clone()) } else { self.apply_view(View::Permute(Axes::from_slice(&[1, 0])), at) }
    }

    /// Dimensions `source` moved to the positions `destination`; the others keep their order. PyTorch: `movedim`.
    fn try_movedim(&self, source: impl Into<Dims>, destination: impl Into<Dims>) -> Result<Self, Self::Error> {
        let at = Site::here("movedim");
        let rank = self.shape().rank();
        let (source, destination) = (source.into().resolve(rank, at)?, destination.into().resolve(rank, at)?);
        if source.len() != destination.len() {
            let message = format!(
                "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of \
                 dims as destination ({destination:?} dims)"
            );
            return Err(Error::argument(at, message).into());
        }
        let mut rest = (0..rank).filter(|axis| !source.contains(axis));
        let order = (0..rank)
            .filter_map(|axis| match destination.iter().position(|&to| to == axis) {
                Some(k) => Some(source[k]),
                None => rest.next(),
            })
            .collect();
        self.apply_view(View::Permute(order), at)
    }

    /// A dimension of size 1 inserted before position `dim` (from `-rank - 1` to `rank`). PyTorch: `unsqueeze`.
    fn try_unsqueeze(&self, dim: impl Position) -> Result<Self, Self::Error> {
        let at = Site::here("unsqueeze");
        let mut shape = self.shape();
        let axis = dims::axis(dim.position(), shape.rank() + 1, at)?;
        shape.insert(axis, 1);
        self.apply_view(View::Reshape(shape), at)
    }

    /// Dimensions of size 1 among `dims` removed (`..`: all of them); others stay. PyTorch: `squeeze`.
    fn try_squeeze(&self, dims: impl Into<Dims>) -> Result<Self, Self::Error> {
        let at = Site::here("squeeze");
        let shape = self.shape();
        let axes = dims.into().resolve(shape.rank(), at)?;
        let kept: Shape = (0..shape.rank())
            .filter(|axis| shape[*axis] != 1 || !axes.contains(axis))
            .map(|axis| shape[axis])
            .collect();
        if kept == shape { Ok(self.clone()) } else { self.apply_view(View::Reshape(kept), at) }
    }

    /// The order of elements reversed along `dims`. A view here; PyTorch's `flip` copies.
    fn try_flip(&self, dims: impl Into<Dims>) -> Result<Self, Self::Error> {
        let at = Site::here("flip");
        let shape = self.shape();
        let axes = dims.into().resolve(shape.rank(), at)?;
        self.apply_view(View::Flip(axes), at)
    }

    /// `len` elements of dimension `dim` from `start` (negative: from the end). PyTorch: `narrow`.
    fn try_narrow(&self, dim: impl Position, start: impl Position, len: impl Position) -> Result<Self, Self::Error> {
        let (dim, start, len) = (dim.position(), start.position(), len.position());
        let at = Site::here("narrow");
        let shape = self.shape();
        if shape.rank() == 0 {
            return Err(Error::argument(at, "narrow() cannot be applied to a 0-dim tensor.").into());
        }
        let Ok(len) = usize::try_from(len) else {
            return Err(Error::argument(at, "narrow(): length must be non-negative.").into());
        };
        let axis = dims::axis(dim, shape.rank(), at)?;
        let size = shape[axis];
        if start < -(size as isize) || start > size as isize {
            let message = format!(
                "start out of range (expected to be in range of [{}, {size}], but got {start})",
                -(size as isize)
            );
            return Err(Error::IndexRange { message, at }.into());
        }
        let start = if start < 0 { start + size as isize } else { start } as usize;
        if len > size - start {
            let message = format!("start ({start}) + length ({len}) exceeds dimension size ({size}).");
            return Err(Error::argument(at, message).into());
        }
        self.apply_view(View::Slice { axis, start, len, step: 1 }, at)
    }

    /// Elements of dimension `dim` from `start` up to but not including `end`, every `step`-th, as Python's
    /// `start:end:step` (positions beyond the ends are clamped, `None` is the end of the range). PyTorch: indexing with a
    /// slice. `step` is positive; see [`flip`](Self::flip) to go backwards.
    fn try_slice(
        &self,
        dim: impl Position,
        start: Option<isize>,
        end: Option<isize>,
        step: isize,
    ) -> Result<Self, Self::Error> {
        let dim = dim.position();
        let at = Site::here("slice");
        let shape = self.shape();
        if shape.rank() == 0 {
            return Err(Error::argument(at, "slice() cannot be applied to a 0-dim tensor.").into());
        }
        let axis = dims::axis(dim, shape.rank(), at)?;
        if step <= 0 {
            return Err(Error::argument(at, "slice step must be positive").into());
        }
        let size = shape[axis] as isize;
        let place =
            |position: isize| (if position < 0 { position.saturating_add(size) } else { position }).clamp(0, size);
        let start = place(start.unwrap_or(0));
        let end = place(end.unwrap_or(size)).max(start);
        let len = (end - start) as usize;
        let view = View::Slice { axis, start: start as usize, len: len.div_ceil(step as usize), step };
        self.apply_view(view, at)
    }

    /// Dimension `dim` removed, at position `index` of it (negative: from the end). PyTorch: `select`.
    fn try_select(&self, dim: impl Position, index: impl Position) -> Result<Self, Self::Error> {
        let (dim, index) = (dim.position(), index.position());
        let at = Site::here("select");
        let mut shape = self.shape();
        if shape.rank() == 0 {
            return Err(Error::argument(at, "select() cannot be applied to a 0-dim tensor.").into());
        }
        let axis = dims::axis(dim, shape.rank(), at)?;
        let size = shape[axis] as isize;
        if index < -size || index >= size {
            let message =
                format!("select(): index {index} out of range for tensor of size {shape} at dimension {axis}");
            return Err(Error::IndexRange { message, at }.into());
        }
        let start = if index < 0 { index + size } else { index } as usize;
        let narrowed = self.apply_view(View::Slice { axis, start, len: 1, step: 1 }, at)?;
        shape.remove(axis);
        narrowed.apply_view(View::Reshape(shape), at)
    }

    /// The diagonal of dimensions `first` and `second`, `offset` above the main one (below where negative), as a last
    /// dimension. PyTorch: `diagonal`.
    fn try_diagonal(&self, offset: isize, first: impl Position, second: impl Position) -> Result<Self, Self::Error> {
        let (first, second) = (first.position(), second.position());
        let at = Site::here("diagonal");
        let rank = self.shape().rank();
        let (first_axis, second_axis) = (dims::axis(first, rank, at)?, dims::axis(second, rank, at)?);
        if first_axis == second_axis {
            let message = format!("diagonal dimensions cannot be identical {first}, {second}");
            return Err(Error::argument(at, message).into());
        }
        self.apply_view(View::Diagonal { offset, first: first_axis, second: second_axis }, at)
    }

    /// Windows of `size` elements every `step` along `dim`; the window becomes a last dimension. PyTorch: `unfold`.
    fn try_unfold(&self, dim: impl Position, size: usize, step: usize) -> Result<Self, Self::Error> {
        let at = Site::here("unfold");
        let shape = self.shape();
        let axis = dims::axis(dim.position(), shape.rank(), at)?;
        let whole = shape.get(axis).copied().unwrap_or(1);
        if size > whole {
            let message = format!("maximum size for tensor at dimension {axis} is {whole} but size is {size}");
            return Err(Error::argument(at, message).into());
        }
        if step == 0 {
            return Err(Error::argument(at, "step is 0 but must be > 0").into());
        }
        if shape.rank() == 0 {
            return self.apply_view(View::Reshape(Shape::from([size])), at);
        }
        self.apply_view(View::Unfold { axis, size, step }, at)
    }
}

impl<A: TensorLike> Views for A {}

/// The broadcast shape of `shapes`. PyTorch: `broadcast_shapes`, with its own wording of the error.
///
/// ```
/// use wengert_tensor::{Shape, ops::broadcast_shapes};
///
/// assert_eq!(broadcast_shapes([&Shape::from([5, 1, 4, 1]), &Shape::from([3, 1, 1])]), [5, 3, 4, 1]);
/// ```
///
/// # Errors
///
/// Where they do not broadcast.
#[twins]
pub fn try_broadcast_shapes<S: Into<Sizes>>(shapes: impl IntoIterator<Item = S>) -> Result<Shape, Error> {
    let at = Site::here("broadcast_shapes");
    let negative = |_| {
        let message = "Attempting to broadcast a dimension with negative length!".into();
        Error::ShapeMismatch { message, at }
    };
    let shapes: Vec<Shape> =
        shapes.into_iter().map(|sizes| sizes.into().resolve_plain(at).map_err(negative)).collect::<Result<_, _>>()?;
    broadcast::join(&shapes.iter().collect::<Vec<_>>()).map_err(|mut mismatch| {
        // PyTorch's sentence has the merged shape in the rank of the final result.
        let rank = shapes.iter().map(Shape::rank).max().unwrap_or_default();
        mismatch.axis += rank - mismatch.merged.rank().max(mismatch.shape.rank());
        while mismatch.merged.rank() < rank {
            mismatch.merged.insert(0, 1);
        }
        Error::BroadcastShapes(mismatch, at)
    })
}

/// All of `tensors` expanded to the shape that they have together. PyTorch: `broadcast_tensors`.
///
/// # Errors
///
/// Where they do not broadcast.
#[twins]
pub fn try_broadcast_tensors<A: TensorLike>(tensors: &[A]) -> Result<Vec<A>, A::Error> {
    let at = Site::here("broadcast_tensors");
    let shapes: Vec<Shape> = tensors.iter().map(A::shape).collect();
    let joined = join_all(&shapes.iter().collect::<Vec<_>>(), at)?;
    tensors.iter().map(|tensor| expanded(tensor, &joined, at)).collect()
}
