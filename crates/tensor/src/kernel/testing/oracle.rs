//! The specification of the kernels, and the oracle of their tests: slow and obvious code. Its loops over indices find each element through
//! [`Layout::position`](crate::Layout::position).
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

/// Returns the elements in row-major order.
pub(crate) fn elements<T: Copy>(x: Source<T>) -> Vec<T> {
    let mut elements = Vec::new();
    for_indices(x.layout.shape(), |index| elements.push(at(x, index)));
    elements
}

/// Returns, for each result of a reduction over `axes`, the elements that it combines. The results are in row-major order.
pub(crate) fn columns<T: Copy>(x: Source<T>, axes: &[usize]) -> Vec<Vec<T>> {
    let shape = x.layout.shape();
    let kept: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
    let line: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { shape[axis] } else { 1 }).collect();
    let (mut columns, mut index) = (Vec::new(), vec![0; shape.rank()]);
    for_indices(&kept, |outer| {
        let mut column = Vec::new();
        for_indices(&line, |inner| {
            for (axis, place) in index.iter_mut().enumerate() {
                *place = outer[axis] + inner[axis];
            }
            column.push(at(x, &index));
        });
        columns.push(column);
    });
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

/// Visits the elements of `x` in row-major order. For each element, sets the element of `out` at the same index of `window` to `f(old, x)`.
pub(crate) fn update<T: Element>(out: &mut [T], window: &Layout, x: Source<T>, f: impl Fn(T, T) -> T) {
    for_indices(window.shape(), |index| {
        let place = &mut out[window.position(index).expect("an index of the shape")];
        *place = f(*place, at(x, index));
    });
}
