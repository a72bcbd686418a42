//! Joining several tensors, along an existing or a new dimension.

use wengert_macros::twins;

use crate::memory::reserve::addressable;
use crate::ops::shape::views::{raise_rank, unsqueeze};
use crate::ops::{Compose, IntoArray, Result, TensorLike, arrays};
use crate::shape::dims;
use crate::{Error, Position, Shape, Site, Tensor, View, ensure};

/// Joins tensors along an existing dimension. All other sizes must be equal. Skips tensors of shape `[0]`. Refuses an empty list, rank 0,
/// and different ranks. PyTorch: `cat`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[3.0, 4.0]]));
/// assert_eq!(cat(&[&x, &y], 0), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// ```
#[twins]
#[doc(alias("concat", "concatenate"))]
pub fn try_cat<I: IntoArray + Clone>(tensors: &[I], dim: impl Position) -> Result<I::Array> {
    join(&arrays(tensors), dim.position(), Site::here("cat"))
}

/// Joins tensors like [`cat`], with its errors. `at` is the operation that the errors name.
pub fn join<A: TensorLike>(tensors: &[A], dim: isize, at: Site) -> Result<A> {
    let shapes: Vec<Shape> = tensors.iter().map(A::shape).collect();
    for (position, shape) in shapes.iter().enumerate() {
        ensure!(shape.rank() > 0, at, "zero-dimensional tensor (at position {position}) cannot be concatenated");
    }
    // As in PyTorch, tensors of shape [0] are skipped, whatever the rank of the other tensors.
    let is_legacy_empty = |shape: &Shape| shape.sizes() == [0];
    let Some(first) = shapes.iter().find(|shape| !is_legacy_empty(shape)).or(shapes.first()) else {
        return Err(Error::argument(at, "cat(): expected a non-empty list of Tensors").into());
    };
    let axis = dims::axis(dim, first.rank(), at)?;
    let mut parts = Vec::with_capacity(tensors.len());
    let mut skipped = Vec::new();
    for (position, (tensor, shape)) in tensors.iter().zip(&shapes).enumerate() {
        if is_legacy_empty(shape) && first.rank() != 1 {
            skipped.push(tensor);
            continue;
        }
        ensure!(
            shape.rank() == first.rank(),
            at,
            MatmulShape,
            "Tensors must have same number of dimensions: got {} and {}",
            first.rank(),
            shape.rank()
        );
        for (other, (expected, got)) in first.iter().zip(shape.iter()).enumerate() {
            ensure!(
                other == axis || expected == got,
                at,
                MatmulShape,
                "Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size {got} for \
                 tensor number {position} in the list."
            );
        }
        parts.push(tensor.clone());
    }
    let joined = if parts.len() == 1 { parts.swap_remove(0) } else { A::apply_cat(&parts, axis, at)? };
    // A skipped tensor gets a gradient of its own shape `[0]`, instead of no gradient.
    if skipped.is_empty() { Ok(joined) } else { joined.with_zero_gradients(&skipped, at) }
}

/// Joins tensors of the same shape along a new dimension. Refuses an empty list, and different shapes. PyTorch: `stack`.
#[twins]
pub fn try_stack<I: IntoArray + Clone>(tensors: &[I], dim: impl Position) -> Result<I::Array> {
    let (tensors, at) = (arrays(tensors), Site::here("stack"));
    let Some(first) = tensors.first().map(TensorLike::shape) else {
        return Err(Error::argument(at, "stack expects a non-empty TensorList").into());
    };
    let axis = dims::axis(dim, first.rank() + 1, at)?;
    for (position, tensor) in tensors.iter().enumerate() {
        let shape = tensor.shape();
        ensure!(
            shape == first,
            at,
            "stack expects each tensor to be equal size, but got {first} at entry 0 and {shape} at entry {position}"
        );
    }
    let mut parts = Vec::with_capacity(tensors.len());
    for tensor in &tensors {
        parts.push(unsqueeze(tensor, axis, at)?);
    }
    join(&parts, axis as isize, at)
}

/// Joins tensors along dimension 1, or along dimension 0 if the first tensor is a vector. A tensor of rank 0 counts as a vector of one
/// element. Refuses an empty list, and shapes that do not fit together. PyTorch: `hstack`.
#[twins]
pub fn try_hstack<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let at = Site::here("hstack");
    let parts = raise_ranks(&arrays(tensors), 1, at)?;
    let flat = parts.first().is_none_or(|part| part.shape().rank() == 1);
    join(&parts, if flat { 0 } else { 1 }, at)
}

/// Joins tensors along dimension 0. Vectors and tensors of rank 0 count as matrices of one row. Refuses an empty list, and shapes that do
/// not fit together. PyTorch: `vstack`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::vstack;
/// use wengert::prelude::*;
///
/// let table = vstack(&[Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0])]);
/// assert_eq!(table, Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
/// ```
#[twins]
#[doc(alias("row_stack"))]
pub fn try_vstack<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let at = Site::here("vstack");
    join(&raise_ranks(&arrays(tensors), 2, at)?, 0, at)
}

/// Joins tensors along dimension 2. A matrix `[m, n]` counts as `[m, n, 1]`, a vector as `[1, n, 1]`, and a tensor of rank 0 as
/// `[1, 1, 1]`. Refuses an empty list, and different sizes. PyTorch: `dstack`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::dstack;
/// use wengert::prelude::*;
///
/// let pairs = dstack(&[Tensor::from([1i64, 2]), Tensor::from([3i64, 4])]);
/// assert_eq!(pairs, Tensor::from([[[1i64, 3], [2, 4]]]));
/// ```
#[twins]
pub fn try_dstack<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let at = Site::here("dstack");
    ensure!(!tensors.is_empty(), at, "dstack expects a non-empty TensorList");
    join(&raise_ranks(&arrays(tensors), 3, at)?, 2, at)
}

/// Joins tensors along dimension 1. A vector counts as one column `[n, 1]`, and a tensor of rank 0 as `[1, 1]`. Refuses an empty list, and
/// different sizes. PyTorch: `column_stack`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::column_stack;
/// use wengert::prelude::*;
///
/// let table = column_stack(&[Tensor::from([1i64, 2]), Tensor::from([[3i64, 4], [5, 6]])]);
/// assert_eq!(table, Tensor::from([[1i64, 3, 4], [2, 5, 6]]));
/// ```
#[twins]
pub fn try_column_stack<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let (mut columns, at) = (arrays(tensors), Site::here("column_stack"));
    ensure!(!tensors.is_empty(), at, "column_stack expects a non-empty TensorList");
    for column in &mut columns {
        if column.shape().rank() < 2 {
            *column = column.reshape_to([column.shape().numel(), 1], at)?;
        }
    }
    join(&columns, 1, at)
}

/// Inserts dimensions of size 1 into tensors with fewer than `rank` dimensions, like [`raise_rank`].
fn raise_ranks<A: TensorLike>(tensors: &[A], rank: usize, at: Site) -> Result<Vec<A>, A::Error> {
    tensors.iter().map(|tensor| raise_rank(tensor, rank, at)).collect()
}

/// Returns the matrix with the given matrices as blocks along its diagonal, and 0 elsewhere. A vector counts as a matrix of one row, and a
/// tensor of rank 0 as a matrix of one element. Refuses an empty list, and tensors of more than two dimensions. PyTorch: `block_diag`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::block_diag;
/// use wengert::prelude::*;
///
/// let blocks = block_diag(&[Tensor::from([[1i64, 2], [3, 4]]), Tensor::from([5i64, 6])]);
/// assert_eq!(blocks, Tensor::from([[1i64, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6]]));
/// ```
#[twins]
pub fn try_block_diag<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let (tensors, at) = (arrays(tensors), Site::here("block_diag"));
    ensure!(!tensors.is_empty(), at, "block_diag expects a non-empty TensorList");
    for (position, rank) in tensors.iter().map(|tensor| tensor.shape().rank()).enumerate() {
        ensure!(
            rank <= 2,
            at,
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {rank} dimensions"
        );
    }
    let blocks = raise_ranks(&tensors, 2, at)?;
    let columns = blocks.iter().fold(0usize, |columns, block| columns.saturating_add(block.shape()[1]));
    if tensors[0].is_plain() {
        return plain_block_diag(&blocks, columns, at);
    }
    let (mut rows, mut start) = (Vec::with_capacity(blocks.len()), 0);
    for block in &blocks {
        let shape = block.shape();
        let target = shape.with_size(1, columns);
        addressable::<<I::Array as TensorLike>::Elem>(&target, at)?;
        rows.push(block.apply_embed(View::Slice { axis: 1, start, len: shape[1], step: 1 }, &target, at)?);
        start += shape[1];
    }
    join(&rows, 0, at)
}

/// Returns the matrix with `columns` columns whose diagonal blocks are the tensors `blocks`.
fn plain_block_diag<A: TensorLike>(blocks: &[A], columns: usize, at: Site) -> Result<A> {
    let height = blocks.iter().fold(0usize, |rows, block| rows.saturating_add(block.shape()[0]));
    let plain: Vec<Tensor<A::Elem>> = blocks.iter().map(|block| block.to_tensor(at)).collect::<Result<_, _>>()?;
    let ordered: Vec<_> = plain.iter().map(|block| block.row_major_elements(at)).collect::<Result<_, _>>()?;
    let result = Tensor::build_on_zeros(&Shape::from([height, columns]), at, |out: &mut [A::Elem]| {
        let (mut rows, mut left) = (out.chunks_exact_mut(columns.max(1)), 0);
        for (block, elements) in plain.iter().zip(&ordered) {
            let (height, width) = (block.shape()[0], block.shape()[1]);
            for (k, row) in rows.by_ref().take(height).enumerate() {
                row[left..left + width].copy_from_slice(&elements[k * width..][..width]);
            }
            left += width;
        }
    })?;
    blocks[0].try_constant(&result)
}

/// The order of the first two dimensions of the grids of [`meshgrid`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing2d {
    /// Dimension `k` belongs to tensor `k`, as in a matrix. PyTorch: `indexing='ij'`.
    #[default]
    Matrix,
    /// Dimension 1 belongs to the first tensor and dimension 0 to the second, as x and y in a plot. PyTorch: `indexing='xy'`.
    Cartesian,
}

/// Returns a grid for each vector of coordinates along an axis. Each vector (or tensor of rank 0) is expanded along the dimensions of the
/// other vectors, without a copy. Refuses an empty list, and tensors of two or more dimensions. PyTorch: `meshgrid`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::{Indexing2d, meshgrid};
/// use wengert::prelude::*;
///
/// let (x, y) = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from([10.0, 20.0]));
/// let grids = meshgrid(&[x, y], Indexing2d::Cartesian);
/// assert_eq!(grids[0], Tensor::from([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]));
/// assert_eq!(grids[1], Tensor::from([[10.0, 10.0, 10.0], [20.0, 20.0, 20.0]]));
/// ```
#[twins]
pub fn try_meshgrid<I: IntoArray<Array = A> + Clone, A: TensorLike>(
    tensors: &[I],
    indexing: Indexing2d,
) -> Result<Vec<A>, A::Error> {
    grids(&arrays(tensors), indexing, Site::here("meshgrid"))
}

/// Returns the grids of [`meshgrid`].
fn grids<A: TensorLike>(tensors: &[A], indexing: Indexing2d, at: Site) -> Result<Vec<A>, A::Error> {
    ensure!(!tensors.is_empty(), at, "meshgrid expects a non-empty TensorList");
    for shape in tensors.iter().map(A::shape) {
        ensure!(shape.rank() <= 1, at, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {shape}");
    }
    let swapped = indexing == Indexing2d::Cartesian && tensors.len() > 1;
    let axis = |position: usize| if swapped && position < 2 { 1 - position } else { position };
    let mut grid = Shape::ones(tensors.len());
    for (position, tensor) in tensors.iter().enumerate() {
        grid[axis(position)] = tensor.shape().numel();
    }
    let mut grids = Vec::with_capacity(tensors.len());
    for (position, tensor) in tensors.iter().enumerate() {
        let line = Shape::ones(tensors.len()).with_size(axis(position), tensor.shape().numel());
        grids.push(tensor.reshape_to(line, at)?.expand_to(&grid, at)?);
    }
    Ok(grids)
}

/// Returns all tuples of one element from each vector, as rows `[count, vectors]`. The last vector varies fastest. A single vector is
/// returned unchanged. Refuses an empty list, and operands that are not vectors. PyTorch: `cartesian_prod`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::cartesian_prod;
/// use wengert::prelude::*;
///
/// let pairs = cartesian_prod(&[Tensor::from([1i64, 2]), Tensor::from([4i64, 5])]);
/// assert_eq!(pairs, Tensor::from([[1i64, 4], [1, 5], [2, 4], [2, 5]]));
/// ```
#[twins]
pub fn try_cartesian_prod<I: IntoArray + Clone>(tensors: &[I]) -> Result<I::Array> {
    let (tensors, at) = (arrays(tensors), Site::here("cartesian_prod"));
    for shape in tensors.iter().map(TensorLike::shape) {
        ensure!(shape.rank() == 1, at, "Expect a 1D vector, but got shape {shape}");
    }
    if let [tensor] = &tensors[..] {
        return Ok(tensor.clone());
    }
    let grids = grids(&tensors, Indexing2d::Matrix, at)?;
    let count = grids[0].shape();
    addressable::<<I::Array as TensorLike>::Elem>(&count, at)?;
    let columns = grids.iter().map(|grid| grid.reshape_to([count.numel(), 1], at));
    join(&columns.collect::<Result<Vec<_>, _>>()?, 1, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn numbers_and_vectors_stack() {
        let (x, y) = (Tensor::scalar(1.0), Tensor::from([2.0, 3.0]));
        assert_eq!(hstack(&[x.clone(), y.clone()]).to_vec(), [1.0, 2.0, 3.0]);
        assert_eq!(vstack(&[x.clone(), x]), Tensor::from([[1.0], [1.0]]));
        assert_eq!(hstack(&[Tensor::from([[1.0]]), Tensor::from([[2.0]])]), Tensor::from([[1.0, 2.0]]));
        assert!(try_hstack::<Tensor<f64>>(&[]).is_err());
        assert!(try_vstack(&[y, Tensor::from([1.0])]).is_err());
    }

    #[test]
    fn columns_and_layers_stack() {
        let (x, y) = (Tensor::from([1i64, 2]), Tensor::from([[3i64, 4], [5, 6]]));
        assert_eq!(column_stack(&[&x, &y]), Tensor::from([[1i64, 3, 4], [2, 5, 6]]));
        assert_eq!(column_stack(&[Tensor::scalar(1i64), Tensor::scalar(2i64)]), Tensor::from([[1i64, 2]]));
        assert_eq!(column_stack(&[Tensor::<f64>::zeros([2, 3, 4]), Tensor::zeros([2, 1, 4])]).shape(), &[2, 4, 4]);
        assert_eq!(dstack(&[Tensor::scalar(1i64), Tensor::scalar(2i64)]), Tensor::from([[[1i64, 2]]]));
        assert_eq!(dstack(&[&y, &y]).shape(), &[2, 2, 2]);
        let sentence = |result: Result<Tensor<i64>, Error>| result.unwrap_err().sentence();
        assert_eq!(sentence(try_dstack::<Tensor<i64>>(&[])), "dstack expects a non-empty TensorList");
        assert_eq!(sentence(try_column_stack::<Tensor<i64>>(&[])), "column_stack expects a non-empty TensorList");
        assert!(try_column_stack(&[x, Tensor::from([1i64])]).is_err());
    }

    #[test]
    fn blocks_of_every_rank() {
        let blocks =
            [Tensor::from([[1.0, f64::NAN]]), Tensor::scalar(3.0), Tensor::from([4.0, -0.0]), Tensor::zeros([0])];
        let all = block_diag(&blocks);
        assert_eq!(all.shape(), &[4, 5]);
        assert_eq!(
            all.nan_to_num(9.0, None, None),
            Tensor::from([
                [1.0, 9.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 3.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 4.0, 0.0],
                [0.0, 0.0, 0.0, 0.0, 0.0]
            ])
        );
        let wide = block_diag(&[Tensor::<i64>::ones([2, 0]), Tensor::ones([1, 2])]);
        assert_eq!(wide, Tensor::from([[0i64, 0], [0, 0], [1, 1]]));
        assert_eq!(block_diag(&[Tensor::from([true])]), Tensor::from([[true]]));
        assert_eq!(
            try_block_diag(&[Tensor::from([1.0]), Tensor::ones([1, 1, 1])]).unwrap_err().sentence(),
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 1 has 3 dimensions"
        );
        assert!(try_block_diag::<Tensor<f64>>(&[]).is_err());
    }

    #[test]
    fn tuples_of_vectors() {
        let x = Tensor::from([1i64, 2]);
        assert_eq!(cartesian_prod(&[&x]), x);
        assert_eq!(cartesian_prod(&[x.clone(), Tensor::zeros([0]), x.clone()]).shape(), &[0, 3]);
        let three = cartesian_prod(&[x.clone(), Tensor::from([3i64]), x.clone()]);
        assert_eq!(three, Tensor::from([[1i64, 3, 1], [1, 3, 2], [2, 3, 1], [2, 3, 2]]));
        let sentence = |tensors: &[Tensor<i64>]| try_cartesian_prod(tensors).unwrap_err().sentence();
        assert_eq!(sentence(&[Tensor::scalar(1i64), x]), "Expect a 1D vector, but got shape []");
        assert_eq!(sentence(&[]), "meshgrid expects a non-empty TensorList");
    }

    #[test]
    fn a_grid_is_a_view() {
        let x = Tensor::from([1.0, 2.0]);
        let grids = meshgrid(&[x.clone(), Tensor::scalar(5.0), Tensor::<f64>::zeros([3])], Indexing2d::Matrix);
        assert_eq!(grids[0].shape(), &[2, 1, 3]);
        assert!(grids[0].shares_storage(&x));
        assert_eq!(grids[1].to_vec(), [5.0; 6]);
    }
}
