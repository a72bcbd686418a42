//! Matrix products: batches of `[m, k] x [k, n]`, each operand with any strides.
//!
//! Floating-point products are `gemm`'s, called single-threaded on pieces of some rows or some matrices, in a way that any
//! number of threads gives the same bits.
#![allow(unsafe_code)]

use gemm_common::Parallelism;
use smallvec::SmallVec;

use crate::kernel::conv::direct;
use crate::kernel::conv::direct::Task;
use crate::kernel::conv::vector;
use crate::kernel::conv::vector::Kernels;
use crate::kernel::strided::Source;
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::scalar::instruction::Reduction;
use crate::shape::iteration_space::Nest;
use crate::{Element, Float, Layout, Shape};

/// A product of fewer multiplications is not worth a second thread.
const PARALLEL: usize = 1 << 18;

/// A product of so few multiplications is made by the definition: `gemm` takes longer to begin.
const SMALL: usize = 64;

/// A product of so few multiplications, or of so few columns, is made by [`compact`].
const COMPACT: usize = 1 << 13;
const FEW_COLUMNS: usize = 16;

/// A product by the definition, a row at a time.
fn small<T: Products + Copy>(Sizes { m, n, k, add }: Sizes, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
    for (i, out) in out.chunks_exact_mut(n).enumerate().take(m) {
        for l in 0..k {
            let factor = x.at(i, l);
            let fresh = l == 0 && !add;
            let onto = |out: &mut T, value: T| {
                let term = factor.times(value);
                *out = if fresh { term } else { out.plus(term) };
            };
            if y.column_stride == 1 {
                let row = &y.data[(y.offset as isize + l as isize * y.row_stride) as usize..][..n];
                out.iter_mut().zip(row).for_each(|(out, &value)| onto(out, value));
            } else {
                out.iter_mut().enumerate().for_each(|(j, out)| onto(out, y.at(l, j)));
            }
        }
    }
}

/// A product whose right side is read row by row, some columns of it at once, and nothing is rearranged but columns that do
/// not fill a vector: for little work, and where there are few columns.
fn compact<T: Element>(kernels: &Kernels<T>, Sizes { m, n, k, add }: Sizes, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
    assert!(out.len() == m * n && x.within(m, k) && y.within(k, n), "a product's operands are checked before");
    let width = n.next_multiple_of(kernels.lanes);
    let whole = width == n && y.column_stride == 1;
    let mut packed = Scratch::new(if whole { 0 } else { k * width });
    let (rows, row) = if whole {
        (&y.data[y.offset..], y.row_stride)
    } else {
        for (l, packed) in packed.0.chunks_exact_mut(width).enumerate() {
            let (own, rest) = packed.split_at_mut(n);
            own.iter_mut().enumerate().for_each(|(j, own)| *own = y.at(l, j));
            rest.fill(T::ZERO);
        }
        (&packed.0[..], width as isize)
    };
    // Rows of a result that does not fill its vectors are computed here first.
    let mut wide = [T::ZERO; 4 * 4 * 16];
    let (vectors, data) = (width / kernels.lanes, x.data.as_ptr());
    let mut i = 0;
    while i < m {
        let height = if m - i >= 4 { 4 } else { 1 };
        let mut vector = 0;
        while vector < vectors {
            let some = [4, 2, 1].into_iter().find(|&some| some <= vectors - vector).unwrap_or(1);
            let (from, columns) = (vector * kernels.lanes, some * kernels.lanes);
            let direct = from + columns <= n;
            // SAFETY: rows `i .. i + height` of `x` are read, which lie inside (asserted above); columns `from .. from +
            // columns` of `rows`, which is a whole right side or as wide as `width`; and as many are written, of rows of
            // `out` that have them, or of `wide`, which has room for 4 rows of 4 vectors of at most 16 elements.
            unsafe {
                let left = (data.offset(x.offset as isize + i as isize * x.row_stride), x.row_stride, x.column_stride);
                let target = match direct {
                    true => (out.as_mut_ptr().add(i * n + from), n),
                    false => (wide.as_mut_ptr(), columns),
                };
                (kernels.product)((height, some), k, (left, (rows.as_ptr().add(from), row), target), add && direct);
            }
            if !direct {
                for r in 0..height {
                    let (from, out) = (&wide[r * columns..][..n - from], &mut out[(i + r) * n + from..][..n - from]);
                    let onto = |(out, &value): (&mut T, &T)| *out = if add { out.plus(value) } else { value };
                    out.iter_mut().zip(from).for_each(onto);
                }
            }
            vector += some;
        }
        i += height;
    }
}

/// A product of few columns, each sum of which is taken along the rows of `x`, that lie in one piece each.
fn thin<T: Element>(kernels: &Kernels<T>, Sizes { m, n, k, add }: Sizes, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
    assert!(out.len() == m * n && x.within(m, k) && y.within(k, n), "a product's operands are checked before");
    assert!(x.column_stride == 1 && (m == 1 || x.row_stride >= 0), "rows lie in one piece, one after the other");
    if !add {
        out.fill(T::ZERO);
    }
    let whole = k / kernels.lanes * kernels.lanes;
    let mut columns = Scratch::new(n * whole);
    for (j, column) in columns.0.chunks_exact_mut(whole.max(1)).enumerate() {
        column.iter_mut().enumerate().for_each(|(l, to)| *to = y.at(l, j));
    }
    let runs: SmallVec<[usize; FEW_COLUMNS]> = (0..n).map(|j| j * whole).collect();
    let row = if m == 1 { 0 } else { x.row_stride as usize };
    for from in (0..whole).step_by(SEGMENT) {
        let count = SEGMENT.min(whole - from);
        let mut i = 0;
        while i < m {
            let rows = if n == 1 && m - i >= 8 { 8 } else { (kernels.dot_rows)(m - i) };
            // SAFETY: `rows` rows of `x` from `i` on are read, which lie inside (asserted above), and as many columns as there
            // are runs, each of `whole` elements; `count` is a multiple of a vector's elements, as `whole` and `SEGMENT` are.
            unsafe {
                let left = x.data.as_ptr().add(x.offset + i * row + from);
                let right = columns.0.as_ptr().add(from);
                (kernels.dots)(rows, (left, row), right, &runs, count, &mut out[i * n..][..rows * n]);
            }
            i += rows;
        }
    }
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        for l in whole..k {
            let factor = x.at(i, l);
            out.iter_mut().enumerate().for_each(|(j, out)| *out = out.plus(factor.times(y.at(l, j))));
        }
    }
}

/// Elements of columns that are gone through before the next ones are.
const SEGMENT: usize = 1024;

/// Elements of a row that sums are made of at once.
const STRIP: usize = 4096;

dispatched! {
    /// `out` (+)= Σ x[l] row l of `y`, whose rows lie in one piece each: it is read once, in order, four rows at a time.
    fn row_times_matrix<T: Float>(add: bool, k: usize, x: Matrix<T>, y: Matrix<T>, out: &mut [T]) {
        if !add {
            out.fill(T::ZERO);
        }
        for (strip, out) in out.chunks_mut(STRIP).enumerate() {
            let width = out.len();
            let row = |l: usize| {
                let from = (y.offset as isize + l as isize * y.row_stride) as usize + strip * STRIP;
                &y.data[from..][..width]
            };
            let mut l = 0;
            while l + 4 <= k {
                let (f, g, h, e) = (x.at(0, l), x.at(0, l + 1), x.at(0, l + 2), x.at(0, l + 3));
                let (a, b, c, d) = (row(l), row(l + 1), row(l + 2), row(l + 3));
                for i in 0..width {
                    out[i] = out[i] + ((f * a[i] + g * b[i]) + (h * c[i] + e * d[i]));
                }
                l += 4;
            }
            while l < k {
                let (factor, values) = (x.at(0, l), row(l));
                out.iter_mut().zip(values).for_each(|(sum, &value)| *sum = *sum + factor * value);
                l += 1;
            }
        }
    }
}

/// One matrix of a product: where it starts and how it strides.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) offset: usize,
    pub(crate) row_stride: isize,
    pub(crate) column_stride: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row-major in `data` from `offset` on, `row_stride` elements from one row to the next.
    pub(crate) fn rows(data: &'a [T], offset: usize, row_stride: usize) -> Self {
        Matrix { data, offset, row_stride: row_stride as isize, column_stride: 1 }
    }

    /// Rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Matrix { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }
}

impl<T: Copy> Matrix<'_, T> {
    fn at(&self, row: usize, column: usize) -> T {
        let moved = row as isize * self.row_stride + column as isize * self.column_stride;
        self.data[(self.offset as isize + moved) as usize]
    }

    /// The lowest and highest position read, for a matrix of `rows` x `columns`.
    fn within(&self, rows: usize, columns: usize) -> bool {
        let reach = |size: usize, stride: isize| (size as isize - 1) * stride;
        let (down, right) = (reach(rows, self.row_stride), reach(columns, self.column_stride));
        let first = self.offset as isize + down.min(0) + right.min(0);
        let last = self.offset as isize + down.max(0) + right.max(0);
        first >= 0 && (last as usize) < self.data.len()
    }
}

/// The sizes of a product of `[m, k]` and `[k, n]`, and whether it is added to what is there.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) add: bool,
}

/// The product of one pair of matrices, into a row-major `out` of `m x n`; sums as products have them. Sealed like
/// [`BlockKernels`](crate::kernel::elementwise::block::BlockKernels).
#[doc(hidden)]
pub trait Products: Sized {
    fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]);

    fn plus(self, other: Self) -> Self;

    fn times(self, other: Self) -> Self;

    /// Whether [`convolve`](Self::convolve) is to be had.
    const CONVOLVES: bool = false;

    /// Whether none is infinite or NaN.
    fn are_finite(_x: &[Self]) -> bool {
        true
    }

    /// A convolution without columns. Compiled here, once for each type, and not where a program asks for it.
    fn convolve(_task: Task<Self>) {
        unreachable!("only floating-point numbers have it")
    }
}

macro_rules! floats {
    ($($type:ident $gemm:path, $kernels:path;)*) => {$(
        impl Products for $type {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            const CONVOLVES: bool = true;

            fn are_finite(x: &[Self]) -> bool {
                // Without a branch for each element.
                x.chunks(1024).all(|x| !x.iter().fold(false, |bad, x| bad | !x.is_finite()))
            }

            fn convolve(task: Task<Self>) {
                direct::run($kernels(), task);
            }

            fn product(Sizes { m, n, k, add }: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) {
                assert!(out.len() == m * n && x.within(m, k) && y.within(k, n), "a product's operands are checked before");
                if m * n * k <= SMALL {
                    return small(Sizes { m, n, k, add }, x, y, out);
                }
                if m == 1 && y.column_stride == 1 {
                    return row_times_matrix(add, k, x, y, out);
                }
                if m == 1 && n > 1 && y.row_stride == 1 {
                    // Of the transposes, it is a product of one column.
                    return Self::product(Sizes { m: n, n: 1, k, add }, y.transposed(), x.transposed(), out);
                }
                // Of one column that is not little work, `gemm` has a kernel.
                let few = if n == 1 { k >= 32 && m * k <= 4 * COMPACT } else { n <= FEW_COLUMNS && k >= 64 };
                if few && x.column_stride == 1 && (x.row_stride >= 0 || m == 1) {
                    return thin($kernels(), Sizes { m, n, k, add }, x, y, out);
                }
                if m * n * k <= COMPACT && n >= 8 {
                    return compact($kernels(), Sizes { m, n, k, add }, x, y, out);
                }
                // SAFETY: `x` and `y` are read at positions within their slices (asserted above, m, n, k > 0) and `out` is
                // written as m rows of n elements, all of it; no two of them overlap, since `out` is borrowed mutably.
                unsafe {
                    // Of the transposes, in reverse order: `gemm` is made for results whose columns lie in one piece, and up
                    // to seven times slower where the rows do.
                    $gemm()(
                        n, m, k,
                        out.as_mut_ptr(), n as isize, 1,
                        add,
                        y.data.as_ptr().add(y.offset), y.row_stride, y.column_stride,
                        x.data.as_ptr().add(x.offset), x.row_stride, x.column_stride,
                        1.0, 1.0,
                        false, false, false,
                        Parallelism::None,
                    );
                }
            }
        }
    )*};
}

floats!(
    f32 gemm_f32::gemm::f32::get_gemm_fn, vector::f32_kernels;
    f64 gemm_f64::gemm::f64::get_gemm_fn, vector::f64_kernels;
);

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Products for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) {
                small(sizes, x, y, out);
            }
        }
    )*};
}

integers!(i64, u8);

impl Products for bool {
    fn plus(self, other: Self) -> Self {
        self | other
    }

    fn times(self, other: Self) -> Self {
        self & other
    }

    fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) {
        small(sizes, x, y, out);
    }
}

/// `out[b] = x[b] y[b]` for every index `b` of the batch dimensions, which both operands have with the same sizes.
pub(crate) fn matmul<T: Element>(x: Source<T>, y: Source<T>, out: &mut [T]) {
    let rank = x.layout.shape().rank();
    let (m, k) = (x.layout.shape()[rank - 2], x.layout.shape()[rank - 1]);
    let n = y.layout.shape()[rank - 1];
    if out.is_empty() {
        return;
    }
    if k == 0 {
        out.fill(T::ZERO);
        return;
    }
    let batch = Shape::from(&x.layout.shape()[..rank - 2]);
    let outer = |layout: &Layout| layout.of_axes(|axis| axis < rank - 2);
    let (outer_x, outer_y) = (outer(x.layout), outer(y.layout));
    let nest = Nest::new(outer_x.shape(), [&outer_x, &outer_y]);
    let matrix = |source: Source<'_, T>, k: usize, b: usize| -> (usize, isize, isize) {
        let strides = source.layout.strides();
        (nest.position(k, b), strides[rank - 2], strides[rank - 1])
    };
    let product = |b: usize, first_row: usize, out: &mut [T]| {
        let (x_at, x_row, x_column) = matrix(x, 0, b);
        let (y_at, y_row, y_column) = matrix(y, 1, b);
        let moved = (x_at as isize + first_row as isize * x_row) as usize;
        let left = Matrix { data: x.data, offset: moved, row_stride: x_row, column_stride: x_column };
        let right = Matrix { data: y.data, offset: y_at, row_stride: y_row, column_stride: y_column };
        T::product(Sizes { m: out.len() / n, n, k, add: false }, left, right, out);
    };
    let count = batch.numel();
    if [m, n, k].iter().fold(count, |work, &size| work.saturating_mul(size)) < PARALLEL {
        out.chunks_mut(m * n).enumerate().for_each(|(b, out)| product(b, 0, out));
    } else if count > 1 {
        let together = (PARALLEL / 4 / (m * n * k)).max(1);
        partition::chunks(out, together * m * n, Schedule::Parallel, |part, out| {
            out.chunks_mut(m * n).enumerate().for_each(|(b, out)| product(part * together + b, 0, out));
        });
    } else if m == 1 {
        // Of one row, each part takes some of the terms of all sums.
        let (each, parts) = (k.div_ceil(4), k.div_ceil(k.div_ceil(4)));
        let mut sums = Scratch::new(parts * n);
        partition::chunks(&mut sums.0, n, Schedule::Parallel, |part, out| {
            let (x_at, _, x_column) = matrix(x, 0, 0);
            let (y_at, y_row, y_column) = matrix(y, 1, 0);
            let moved = |at: usize, stride: isize| (at as isize + (part * each) as isize * stride) as usize;
            let left = Matrix { data: x.data, offset: moved(x_at, x_column), row_stride: 0, column_stride: x_column };
            let right = Matrix { data: y.data, offset: moved(y_at, y_row), row_stride: y_row, column_stride: y_column };
            T::product(Sizes { m, n, k: each.min(k - part * each), add: false }, left, right, out);
        });
        let (first, others) = sums.0.split_at(n);
        out.copy_from_slice(first);
        others.chunks_exact(n).for_each(|other| {
            T::accumulate(Reduction::Sum, out, other);
        });
    } else {
        let rows = rows_of_a_piece(m, n, k);
        partition::chunks(out, rows * n, Schedule::Parallel, |part, out| product(0, part * rows, out));
    }
}

/// Rows of each of the pieces that one product is cut into, of which the last may have fewer: one piece for each thread,
/// since each goes through the whole right side.
///
/// Of how many pieces a row's neighbours are in does not change its bits, as long as no piece of a product is one that `gemm`
/// has a way of its own for when the product is not: at most 64 x 64, at most 256 elements, little work.
fn rows_of_a_piece(m: usize, n: usize, k: usize) -> usize {
    let least = if m > 64 && n <= 64 { 65 } else { 16 }.max(256 / n + 1);
    let work = m.saturating_mul(n).saturating_mul(k);
    let most = threads::num_threads().min(m / least).min(2 * work / PARALLEL);
    let fits = |&pieces: &usize| m.checked_sub((pieces - 1) * m.div_ceil(pieces)).is_some_and(|last| last >= least);
    let pieces = (2..=most).rev().find(fits).unwrap_or(1);
    m.div_ceil(pieces)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{num_threads, set_num_threads};

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let before = num_threads();
        // Around the sizes at which another way is taken: of `gemm`'s, and of ours.
        let sizes: [[usize; 3]; 17] = [
            [128, 128, 64],
            [130, 64, 700],
            [131, 64, 1100],
            [65, 65, 1300],
            [65, 64, 1300],
            [64, 64, 1300],
            [300, 33, 600],
            [4096, 8, 32],
            [4097, 5, 48],
            [2000, 17, 40],
            [900, 16, 300],
            [3000, 1, 200],
            [2100, 2, 160],
            [520, 300, 2],
            [1000, 300, 1],
            [257, 511, 513],
            [1, 1200, 900],
        ];
        for [m, n, k] in sizes {
            let element =
                |seed: usize| move |i: &[usize]| ((i[0] * 7919 + i[1] * 104_729 + seed) % 1009) as f32 / 1009.0;
            let (x, y) = (Tensor::from_fn([m, k], element(1)), Tensor::from_fn([k, n], element(2)));
            let turned = (x.t().contiguous().t(), y.t().contiguous().t());
            for (x, y) in [(&x, &y), (&turned.0, &y), (&x, &turned.1), (&turned.0, &turned.1)] {
                let product = |threads: usize| {
                    set_num_threads(threads);
                    (x.matmul(y), x.cast::<f64>().matmul(&y.cast::<f64>()))
                };
                let expected = product(1);
                for threads in [2, 3, 7, 16] {
                    assert_eq!(product(threads), expected, "[{m}, {k}] x [{k}, {n}] with {threads} threads");
                }
            }
        }
        set_num_threads(before);
    }
}
