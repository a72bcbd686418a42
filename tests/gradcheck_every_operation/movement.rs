//! Operations that move elements: views, joining, splitting, repetition, indexed reads and writes, padding.

use wengert::prelude::*;
use wengert::tensor::index_items;
use wengert::tensor::ops::ScatterReduction::{Amax, Amin, Mean, Prod, Sum};
use wengert::tensor::ops::{
    Diagonals, IndexItem, Indexing, Indexing2d, ItemIndexing, PadMode, Padding, Repetition, Scatter, ScatterInPlace,
    ScatterReduce, Shuffling, Splitting, ViewScatter, block_diag, broadcast_tensors, cartesian_prod, column_stack,
    dstack, hstack, meshgrid, vstack,
};

use super::grid::{REAL, UNEQUAL};
use super::row::{Row, V, in_place, of, one, two};

/// Applies a different function to each part and joins the results, so that a test notices if two parts are exchanged.
fn distinguished<'t>(parts: &[V<'t>]) -> V<'t> {
    let flat: Vec<V<'t>> = (1..).zip(parts).map(|(k, part)| part.flatten(0, -1).pow(f64::from(k))).collect();
    cat(&flat, 0)
}

/// Operations on one operand of any shape.
pub const ANY: &[Row] = one! {
    flatten: REAL => |x| x.exp().flatten(0, -1);
    reshape "to a column": REAL => |x| (x * x).reshape([x.shape().numel(), 1]);
    unsqueeze: REAL => |x| x.unsqueeze(-1) * x.exp().unsqueeze(0).unsqueeze(-1);
    squeeze: REAL => |x| x.exp().squeeze(..);
    expand_as: REAL => |x| x.exp().unsqueeze(0).expand_as(&stack(&[x, x], 0));
    sum_to: REAL => |x| x.square().sum_to(&vec![1isize; x.shape().rank()][..]);
    stack: REAL => |x| stack(&[x, x.exp(), x * x], -1);
    hstack: REAL => |x| hstack(&[x, x.exp()]);
    vstack: REAL => |x| vstack(&[x, x.exp()]);
    dstack: REAL => |x| dstack(&[x, x.exp()]);
    column_stack: REAL => |x| column_stack(&[x, x.exp()]);
    atleast_1d: REAL => |x| x.exp().atleast_1d();
    atleast_2d: REAL => |x| x.exp().atleast_2d();
    atleast_3d: REAL => |x| x.exp().atleast_3d();
    t: REAL => |x| if x.shape().rank() > 2 { x } else { x.exp().t() };
    transpose: REAL => |x| x.exp().transpose(0, -1);
    flip: REAL => |x| x * x.flip(..);
    repeat: REAL => |x| x.exp().repeat(vec![2; x.shape().rank() + 1]);
    tile: REAL => |x| x.exp().tile(2);
    repeat_interleave: REAL => |x| x.exp().repeat_interleave(2, None);
    roll: REAL => |x| x * x.roll(1, ..);
    meshgrid: REAL => |x| distinguished(&meshgrid(&[x.flatten(0, -1), x.exp().flatten(0, -1)], Indexing2d::Matrix));
};

/// Operations on two operands that broadcast.
pub const PAIRS: &[Row] = two! {
    broadcast_tensors: REAL, REAL, true => |x, y| distinguished(&broadcast_tensors(&[x, y]));
};

/// Operations on operands of certain shapes.
pub const SHAPED: &[Row] = of! {
    expand "new and stretched": REAL [3, 1] => |x| x.exp().expand([2, -1, 4]);
    expand "to nothing": REAL [1, 2] => |x| x.exp().expand([0, 2]);
    broadcast_to: REAL [3] => |x| x.exp().broadcast_to([2, 3]);
    sum_to "two dimensions": REAL [2, 3, 2] => |x| x.square().sum_to([3, 1]);
    permute: REAL [2, 3, 1] => |x| x.exp().permute([2, 0, 1]);
    movedim: REAL [2, 3, 2] => |x| x.exp().movedim([0], [2]);
    narrow: REAL [4, 2] => |x| x.exp().narrow(0, 1, 2);
    slice: REAL [5, 2] => |x| x.exp().slice(0, (-4.., 2));
    select: REAL [3, 2] => |x| x.exp().select(0, -1) * x.select(1, 0).sum(0);
    diagonal: REAL [3, 4] => |x| x.exp().diagonal(1, 0, 1);
    unfold "windows that overlap": REAL [5] => |x| x.exp().unfold(0, 3, 1);
    unfold "windows with gaps": REAL [2, 5] => |x| x.exp().unfold(1, 1, 2);
    unflatten: REAL [6] => |x| x.exp().unflatten(0, [2, -1]);
    tril: REAL [3, 4] => |x| x.exp().tril(1);
    triu: REAL [3, 4] => |x| x.exp().triu(-1);
    diag "of a matrix": REAL [3, 4] => |x| x.exp().diag(1);
    diag "to a matrix": REAL [3] => |x| x.exp().diag(-1);
    diag_embed: REAL [2, 2] => |x| x.exp().diag_embed(1, 0, -1);
    diagflat: REAL [2, 2] => |x| x.exp().diagflat(-1);
    rot90: REAL [2, 3, 2] => |x| x.exp().rot90(1, [0, -1]) * x.rot90(-1, [0, 2]);
    block_diag: REAL [2, 3] [2] [] => |x, y, z| block_diag(&[x.exp(), y, z.exp(), x]);
    cartesian_prod: REAL [2] [3] => |x, y| cartesian_prod(&[x.exp(), y, x]);
    combinations: REAL [4] => |x| x.exp().combinations(2, false);
    combinations "with replacement": REAL [3] => |x| x.exp().combinations(3, true);
    pixel_shuffle: REAL [4, 1, 2] => |x| x.exp().pixel_shuffle(2);
    pixel_unshuffle: REAL [1, 2, 4] => |x| x.exp().pixel_unshuffle(2);
    channel_shuffle: REAL [2, 6, 1] => |x| x.exp().channel_shuffle(3);
    select_scatter: REAL [3, 2] [3] => |x, y| x.exp().select_scatter(y.exp(), 1, -1);
    slice_scatter: REAL [4, 2] [2, 2] => |x, y| x.exp().slice_scatter(y.exp(), 0, (.., 2));
    diagonal_scatter: REAL [3, 4] [3] => |x, y| x.exp().diagonal_scatter(y.exp(), 1, 0, 1);
    cat: REAL [1, 2] [2, 2] [0, 2] => |x, y, z| cat(&[x.exp(), y, x * x, z], 0);
    cat "along the last": REAL [2, 1] [2, 3] => |x, y| cat(&[y.exp(), x, y], -1);
    hstack "matrices": REAL [2, 1] [2, 3] => |x, y| hstack(&[x.exp(), y.square()]);
    vstack "a line and a matrix": REAL [2] [3, 2] => |x, y| vstack(&[x.exp(), y.square()]);
    meshgrid "columns first": REAL [2] [3] => |x, y| distinguished(&meshgrid(&[x, y], Indexing2d::Cartesian));
    split: REAL [5, 2] => |x| distinguished(&x.split(2, 0));
    split_sizes: REAL [5] => |x| distinguished(&x.split_sizes(&[1, 0, 4], 0));
    chunk: REAL [2, 5] => |x| distinguished(&x.chunk(3, 1));
    chunk_into: REAL [2, 4] => |x| distinguished(&x.chunk_into::<2>(1));
    split_into: REAL [5] => |x| distinguished(&x.split_into([1, 0, 4], 0));
    tensor_split: REAL [5] => |x| distinguished(&x.tensor_split(2, 0));
    tensor_split_at: REAL [5] => |x| distinguished(&x.tensor_split_at(&[1, -1], 0));
    hsplit: REAL [2, 4] => |x| distinguished(&x.hsplit(2));
    vsplit: REAL [4, 2] => |x| distinguished(&x.vsplit(2));
    dsplit: REAL [1, 2, 4] => |x| distinguished(&x.dsplit(2));
    unbind: REAL [3, 2] => |x| distinguished(&x.unbind(0));
    repeat_interleave "along a dimension": REAL [2, 2] => |x| x.exp().repeat_interleave(3, Some(1));
    repeat_interleave_each: REAL [3, 2] => |x| {
        x.exp().repeat_interleave_each(&Tensor::from([2i64, 0, 1]), Some(0))
    };
    roll "two dimensions": REAL [3, 2] => |x| x * x.roll([1, -1], [0, 1]);
    index: REAL [3, 4] => |x| {
        let rows = Tensor::from([2i64, 0, 2]);
        x.exp().index(&index_items![&rows, 1..]) * x.index(&index_items![IndexItem::NewAxis, 1, 1..])
    };
    index_select: REAL [3, 2] => |x| x.exp().index_select(0, &Tensor::from([2i64, 0, 2]));
    gather: REAL [3, 2] => |x| x.exp().gather(0, &Tensor::from([[2i64, 0], [2, 1]]));
    take_along_dim: REAL [2, 3] => |x| x.exp().take_along_dim(&Tensor::from([[2i64, 2, 0]]), Some(1));
    take: REAL [2, 3] => |x| x.exp().take(&Tensor::from([[5i64, 0], [-1, 2]]));
    masked_select: REAL [2, 3] => |x| x.exp().masked_select(&Tensor::from([true, false, true]));
    scatter: REAL [3, 2] [2, 2] => |x, y| x.exp().scatter(0, &Tensor::from([[2i64, 0], [1, 1]]), y.exp());
    scatter "index of rank 0": REAL [3] [2] => |x, y| x.exp().scatter(0, &Tensor::scalar(1), y.exp());
    scatter_add "index of rank 0": REAL [3] [2] => |x, y| x.exp().scatter_add(0, &Tensor::scalar(1), y.exp());
    scatter_reduce "index of rank 0": REAL [3] [2] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::scalar(1), y.exp(), Prod, true)
    };
    scatter_value: REAL [3, 2] => |x| x.exp().scatter_value(0, &Tensor::from([[2i64, 0]]), 1.5);
    scatter_add: REAL [3, 2] [2, 2] => |x, y| x.exp().scatter_add(0, &Tensor::from([[2i64, 0], [2, 1]]), &y.exp());
    scatter_reduce "sum": REAL [3] [4] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::from([2i64, 0, 2, 2]), &y.exp(), Sum, false)
    };
    scatter_reduce "product": REAL [3] [5] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::from([2i64, 0, 2, 2, 0]), &y, Prod, true)
    };
    scatter_reduce "product with a zero": REAL [3, 1] [2] => |x, y| {
        let factors = cat(&[y, y * 0.0, y], 0).unsqueeze(1);
        x.scatter_reduce(0, &Tensor::from([[2i64], [0], [2], [2], [0], [1]]), &factors, Prod, false)
    };
    scatter_reduce "mean": REAL [3, 2] [2, 2] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::from([[2i64, 0], [2, 1]]), &y.exp(), Mean, true)
    };
    scatter_reduce "largest": UNEQUAL [3] [4] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::from([2i64, 0, 2, 2]), &y.exp(), Amax, true)
    };
    scatter_reduce "smallest": UNEQUAL [3] [4] => |x, y| {
        x.exp().scatter_reduce(0, &Tensor::from([2i64, 0, 2, 2]), &y.exp(), Amin, false)
    };
    index_add: REAL [3, 2] [3, 2] => |x, y| x.exp().index_add(0, &Tensor::from([2i64, 0, 2]), &y.exp(), 1.5);
    index_copy: REAL [3, 2] [2, 2] => |x, y| x.exp().index_copy(0, &Tensor::from([2i64, 0]), y.exp());
    index_fill: REAL [3, 2] [] => |x, y| x.exp().index_fill(0, &Tensor::from([2i64, 0]), y.exp());
    index_fill "by a number": REAL [3, 2] => |x| x.exp().index_fill(1, &Tensor::from([-1i64]), 0.5);
    index_put "written": REAL [3, 2] [2] => |x, y| {
        x.exp().index_put(&index_items![&Tensor::from([2i64, 0])], &y.exp(), false)
    };
    index_put "added": REAL [3, 2] [2] => |x, y| {
        x.exp().index_put(&index_items![&Tensor::from([2i64, 0, 2])], &y.exp(), true)
    };
    index_set: REAL [3, 4] [1, 2] => |x, y| x.exp().index_set(&index_items![1.., 1..3], y.exp());
    masked_scatter: REAL [2, 3] [5] => |x, y| x.exp().masked_scatter(&Tensor::from([true, false, true]), y.exp());
    pad "by a number": REAL [2, 3] => |x| x.exp().pad(&[1, 2, 0, 1], PadMode::Constant(0.5));
    pad "cropping": REAL [2, 4] => |x| x.exp().pad(&[-1, 1], PadMode::Constant(0.0));
    pad "reflect": REAL [1, 3, 4] => |x| x.exp().pad(&[2, 1, 1, 2], PadMode::Reflect);
    pad "replicate": REAL [1, 2, 3] => |x| x.exp().pad(&[2, 1, 0, 2], PadMode::Replicate);
    pad "circular": REAL [1, 2, 3] => |x| x.exp().pad(&[2, 1, 0, 2], PadMode::Circular);
};

/// Indexed operations in place. Each makes its own matrix, whose shape fits the indices.
pub const BY_INDEX_IN_PLACE: &[Row] = in_place! {
    scatter_: REAL => |x| {
        let mut z = matrix(x);
        z.scatter_(0, &Tensor::from([[2i64, 0], [1, 1]]), source(x));
        x = z
    };
    scatter_value_: REAL => |x| {
        let mut z = matrix(x);
        z.scatter_value_(0, &Tensor::from([[2i64, 0]]), 1.5);
        x = z
    };
    scatter_add_: REAL => |x| {
        let mut z = matrix(x);
        z.scatter_add_(0, &Tensor::from([[2i64, 0], [2, 1]]), &source(x));
        x = z
    };
    index_add_: REAL => |x| {
        let mut z = matrix(x);
        z.index_add_(0, &Tensor::from([2i64, 0]), &source(x), 1.5);
        x = z
    };
    index_copy_: REAL => |x| {
        let mut z = matrix(x);
        z.index_copy_(0, &Tensor::from([2i64, 0]), source(x));
        x = z
    };
    index_fill_: REAL => |x| {
        let mut z = matrix(x);
        z.index_fill_(0, &Tensor::from([2i64, 0]), x.exp().sum(..));
        x = z
    };
    index_put_: REAL => |x| {
        let mut z = matrix(x);
        z.index_put_(&index_items![&Tensor::from([2i64, 0])], &source(x), true);
        x = z
    };
    index_set_: REAL => |x| {
        let mut z = matrix(x);
        z.index_set_(&index_items![1..], source(x));
        x = z
    };
    masked_scatter_: REAL => |x| {
        let mut z = matrix(x);
        z.masked_scatter_(&Tensor::from([[true, false], [false, true], [false, false]]), source(x));
        x = z
    };
};

/// Returns a `[3, 2]` matrix that depends on every element of an operand of any shape.
fn matrix(x: V<'_>) -> V<'_> {
    x.exp().sum(..) * x.tape().constant(Tensor::from([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]))
}

/// Returns a `[2, 2]` matrix that depends on every element of an operand of any shape.
fn source(x: V<'_>) -> V<'_> {
    (x.sin().sum(..) * x.tape().constant(Tensor::from([[1.0, 2.0], [3.0, 4.0]]))).exp()
}

/// Views and triangles in place.
pub const IN_PLACE: &[Row] = in_place! {
    t_: REAL => |x| if x.shape().rank() < 3 { x.t_() };
    transpose_: REAL => |x| x.transpose_(0, -1);
    unsqueeze_: REAL => |x| x.unsqueeze_(-1);
    squeeze_: REAL => |x| x.squeeze_(..);
    tril_: REAL => |x| if x.shape().rank() >= 2 { x.tril_(0) };
    triu_: REAL => |x| if x.shape().rank() >= 2 { x.triu_(0) };
};
