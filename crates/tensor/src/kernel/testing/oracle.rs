//! The specification of the kernels, and the oracle of their tests: slow and obvious code. Its loops over indices find elements through
//! [`Layout::position`](crate::Layout::position), or by adding strides.
//!
//! The expected results for single elements are in [`numbers`](crate::kernel::testing::numbers).

use crate::kernel::source::Source;
use crate::kernel::testing::numbers::{Oracle, combine};
use crate::{Element, Layout, Reduction};

/// Calls `visit` with every index of `shape`, in row-major order.
pub(crate) fn for_indices(shape: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; shape.len()];
    for _ in 0..shape.iter().product() {
        visit(&index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

pub(crate) fn at<T: Copy>(x: Source<T>, index: &[usize]) -> T {
    x.data[x.layout.position(index).expect("an index of the shape")]
}

/// Calls `visit` for each element of a tensor, in row-major order, with the element's position in the buffer.
fn for_positions(layout: &Layout, mut visit: impl FnMut(usize)) {
    let shape = layout.shape();
    let (outer, len, stride) = match (&shape[..], layout.strides()) {
        ([outer @ .., len], [.., stride]) => (outer, *len, *stride),
        _ => (&[][..], 1, 0),
    };
    let mut first = vec![0; shape.rank()];
    if len == 0 {
        return;
    }
    for_indices(outer, |index| {
        first[..outer.len()].copy_from_slice(index);
        let mut position = layout.position(&first).expect("an index of the shape");
        for _ in 0..len {
            visit(position);
            position = position.wrapping_add_signed(stride);
        }
    });
}

/// Returns the elements in row-major order.
pub(crate) fn elements<T: Copy>(x: Source<T>) -> Vec<T> {
    let mut elements = Vec::with_capacity(x.layout.numel());
    for_positions(x.layout, |position| elements.push(x.data[position]));
    elements
}

/// Returns the position of the first element of each column, and the distance of each element of a column from the first one. A column has
/// the elements that one result of a reduction over `axes` combines. The results are in row-major order.
fn column_positions(layout: &Layout, axes: &[usize]) -> (Vec<isize>, Vec<isize>) {
    let shape = layout.shape();
    let kept: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
    let line: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { shape[axis] } else { 1 }).collect();
    // The index of an element is the sum of an index among the results and an index within the column. So its distance from the first element
    // of the buffer is the sum of two distances.
    let distances = |start: usize, sizes: &[usize]| {
        let mut distances = vec![start as isize];
        for (&size, &stride) in sizes.iter().zip(layout.strides()) {
            let size = size as isize;
            distances = distances.iter().flat_map(|&first| (0..size).map(move |i| first + i * stride)).collect();
        }
        distances
    };
    (distances(layout.offset(), &kept), distances(0, &line))
}

/// Returns, for each result of a reduction over `axes`, the elements that it combines. The results are in row-major order.
pub(crate) fn columns<T: Copy>(x: Source<T>, axes: &[usize]) -> Vec<Vec<T>> {
    let (results, within) = column_positions(x.layout, axes);
    let mut columns = Vec::with_capacity(results.len());
    for result in results {
        let mut column = Vec::with_capacity(within.len());
        for distance in &within {
            column.push(x.data[(result + distance) as usize]);
        }
        columns.push(column);
    }
    columns
}

pub(crate) fn reduce<T: Oracle>(op: Reduction, column: &[T]) -> T {
    column.iter().fold(T::start(op), |total, &x| combine(op, total, x))
}

/// Returns the position of the largest (or smallest) element. If several elements are equal, returns the position of the first. If there is
/// a NaN, returns the position of the first NaN.
pub(crate) fn arg<T: Element>(largest: bool, column: &[T]) -> i64 {
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    if let Some(position) = column.iter().position(|&x| is_nan(x)) {
        return position as i64;
    }
    let beats = |x: T, y: T| if largest { x > y } else { x < y };
    column.iter().position(|&x| !column.iter().any(|&y| beats(y, x))).expect("a column has elements") as i64
}

/// Returns the elements of the matrix products of two batches, in row-major order. Both batches have the same batch dimensions. The terms
/// of each sum are added in order.
pub(crate) fn products<T: Oracle>(x: Source<T>, y: Source<T>) -> Vec<T> {
    let (&[.., m, k], &[.., n]) = (&x.layout.shape()[..], &y.layout.shape()[..]) else {
        panic!("matrices have two dimensions");
    };
    let batch: usize = x.layout.shape().iter().rev().skip(2).product();
    let (x, y) = (elements(x), elements(y));
    let mut products = Vec::new();
    for_indices(&[batch, m, n], |index| {
        let (matrix, row, column) = (index[0], index[1], index[2]);
        let product = |l| combine(Reduction::Prod, x[(matrix * m + row) * k + l], y[(matrix * k + l) * n + column]);
        products.push((0..k).map(product).fold(T::ZERO, |sum, product| combine(Reduction::Sum, sum, product)));
    });
    products
}

/// Returns the element of `x` with index `position` in row-major order.
pub(crate) fn nth<T: Copy>(x: Source<T>, position: usize) -> T {
    let mut index = vec![0; x.layout.shape().rank()];
    let mut rest = position;
    for axis in (0..index.len()).rev() {
        index[axis] = rest % x.layout.shape()[axis];
        rest /= x.layout.shape()[axis];
    }
    at(x, &index)
}

/// Replaces elements of `out` by `f(old, x)`, for each element `x` in row-major order. `window` is a layout over `out` with the shape of
/// `x`, and gives the position of the old element.
pub(crate) fn update<T: Element>(out: &mut [T], window: &Layout, x: Source<T>, f: impl Fn(T, T) -> T) {
    let mut elements = elements(x).into_iter();
    for_positions(window, |position| {
        let element = elements.next().expect("both have the same shape");
        out[position] = f(out[position], element);
    });
}
