//! The loops over a block of elements, for functions of one, two and three operands.
//!
//! The loops use indices and are inlined. An iterator's `fold` or a closure may remain a separate function, which is compiled without the
//! target features of its caller. For this reason, long closures and closures that call functions need `#[inline(always)]`.
#![allow(clippy::needless_range_loop)]

use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::scalar::cpu;
use crate::scalar::math::is_nan;
use crate::thresholds::rows::MAX_VECTOR_ROW;
use crate::{Compare, DType, Scalar};

/// Computes `out = f(x)`.
#[inline(always)]
pub(crate) fn map_unary<T: Copy, U: Copy>(x: Operand<T>, out: &mut [U], f: impl Fn(T) -> U) {
    match x {
        Operand::Slice(x) => {
            let x = &x[..out.len()];
            for i in 0..out.len() {
                out[i] = f(x[i]);
            }
        }
        Operand::Splat(x) => {
            if !out.is_empty() {
                out.fill(f(x));
            }
        }
    }
}

/// Copies the operand to `out`.
pub(crate) fn copy<T: Copy>(x: Operand<T>, out: &mut [T]) {
    match x {
        Operand::Slice(x) => cpu::copy(&x[..out.len()], out),
        Operand::Splat(x) => fill(x, out),
    }
}

cpu::dispatched! {
    /// Sets all elements of `out` to `value`.
    pub(crate) fn fill<T: Copy>(value: T, out: &mut [T]) {
        for i in 0..out.len() {
            out[i] = value;
        }
    }

    /// Converts the elements of `x` as [`Tensor::cast`](crate::Tensor::cast) describes.
    pub(crate) fn convert<T: Scalar, U: Scalar>(x: Operand<'_, T>, out: &mut [U]) {
        match (T::DTYPE, U::DTYPE) {
            (DType::F32 | DType::F64, DType::I64) => map_unary_guarded(
                x,
                out,
                #[inline(always)]
                |x| x.to_f64().abs() < MAX_SHIFTED,
                #[inline(always)]
                |x| U::from_i64(to_integer(x.to_f64())),
                |x| U::from_f64(x.to_f64()),
            ),
            (DType::F32 | DType::F64, DType::U8) => map_unary(
                x,
                out,
                #[inline(always)]
                |x| {
                    // The comparison is false for NaN, so NaN becomes 0.
                    let above = if x.to_f64() > 0.0 { x.to_f64() } else { 0.0 };
                    U::from_i64(to_integer(if above < 255.0 { above } else { 255.0 }))
                },
            ),
            (DType::F32 | DType::F64, _) => map_unary(x, out, |x| U::from_f64(x.to_f64())),
            // Integers are converted as `i64`, because integers beyond 2⁵³ would lose digits as f64.
            _ => map_unary(x, out, |x| U::from_i64(x.to_i64())),
        }
    }
}

/// The number 2⁵¹. [`to_integer`] converts only numbers whose magnitude is less than this.
const MAX_SHIFTED: f64 = (1u64 << 51) as f64;

/// The number 2⁵² + 2⁵¹. The difference between an f64 near this number and this number is an integer, which is in the last bits of the
/// f64.
const SHIFT: f64 = 3.0 * MAX_SHIFTED;

/// Returns `x`, rounded toward 0, as an integer. |x| must be less than [`MAX_SHIFTED`]. Unlike `as`, this has a vector form for every
/// instruction set, because the addition of [`SHIFT`] moves the integer to the last bits.
#[inline(always)]
pub(super) fn to_integer(x: f64) -> i64 {
    (x.trunc() + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i64
}

/// Returns an integer whose magnitude is below [`MAX_SHIFTED`] as a floating-point number. This is the inverse of [`to_integer`].
#[inline(always)]
pub(super) fn to_float(x: i64) -> f64 {
    f64::from_bits(SHIFT.to_bits().wrapping_add(x as u64)) - SHIFT
}

/// Calls `body` with the operand as a slice, and with the output. If the operand is one number for all elements, `body` gets slices of one
/// element, and its result is repeated. So `body` is compiled only once.
#[inline(always)]
pub(crate) fn by_slices<T: Copy, U: Copy>(x: Operand<T>, out: &mut [U], body: impl FnOnce(&[T], &mut [U])) {
    let number;
    let (from, splat) = match x {
        Operand::Slice(x) => (x, false),
        Operand::Splat(x) => {
            number = [x];
            (&number[..], true)
        }
    };
    let len = if splat { out.len().min(1) } else { out.len() };
    body(&from[..len], &mut out[..len]);
    if splat && len == 1 {
        let result = out[0];
        out.fill(result);
    }
}

/// Does the same as [`map_unary`], for a function `f` that is large. `f` is compiled only once, for operands of both kinds.
#[inline(always)]
pub(crate) fn map_unary_large_fn<T: Copy>(x: Operand<T>, out: &mut [T], f: impl Fn(T) -> T) {
    by_slices(
        x,
        out,
        #[inline(always)]
        |from, to| {
            for i in 0..to.len() {
                to[i] = f(from[i]);
            }
        },
    );
}

/// Does the same as [`map_unary_large_fn`]. Uses `fast` for each chunk of 64 elements in which `ordinary` returns true for every element.
/// Uses `f` for all other elements. Both functions must give the same bits for ordinary elements.
#[inline(always)]
pub(crate) fn map_unary_guarded<T: Copy, U: Copy>(
    x: Operand<T>,
    out: &mut [U],
    ordinary: impl Fn(T) -> bool,
    fast: impl Fn(T) -> U,
    f: impl Fn(T) -> U,
) {
    by_slices(
        x,
        out,
        #[inline(always)]
        |from, to| {
            let (chunks, rest) = from.as_chunks::<64>();
            let (to_chunks, to_rest) = to.as_chunks_mut::<64>();
            for (chunk, to) in chunks.iter().zip(to_chunks) {
                let mut all = true;
                for i in 0..64 {
                    all &= ordinary(chunk[i]);
                }
                if all {
                    for i in 0..64 {
                        to[i] = fast(chunk[i]);
                    }
                } else {
                    for i in 0..64 {
                        to[i] = f(chunk[i]);
                    }
                }
            }
            for i in 0..rest.len() {
                to_rest[i] = f(rest[i]);
            }
        },
    );
}

/// Does the same as [`map_unary_large_fn`] with the function `fast`. Then calls `library` for the elements for which `ordinary` returns
/// false, and overwrites their results.
#[inline(always)]
pub(crate) fn map_unary_corrected<T: Copy>(
    x: Operand<T>,
    out: &mut [T],
    ordinary: impl Fn(T) -> bool,
    fast: impl Fn(T) -> T,
    library: fn(T) -> T,
) {
    by_slices(
        x,
        out,
        #[inline(always)]
        |from, to| {
            let mut all = true;
            for i in 0..to.len() {
                all &= ordinary(from[i]);
                to[i] = fast(from[i]);
            }
            if !all {
                for i in 0..to.len() {
                    if !ordinary(from[i]) {
                        to[i] = library(from[i]);
                    }
                }
            }
        },
    );
}

/// Computes `out = f(x, y)`.
#[inline(always)]
pub(crate) fn map_binary<T: Copy, S: Copy, U: Copy>(
    x: Operand<T>,
    y: Operand<S>,
    out: &mut [U],
    f: impl Fn(T, S) -> U,
) {
    use Operand::{Slice, Splat};
    let len = out.len();
    match (x, y) {
        (Slice(x), Slice(y)) => {
            let (x, y) = (&x[..len], &y[..len]);
            for i in 0..len {
                out[i] = f(x[i], y[i]);
            }
        }
        (Slice(x), Splat(y)) => {
            let x = &x[..len];
            for i in 0..len {
                out[i] = f(x[i], y);
            }
        }
        (Splat(x), Slice(y)) => {
            let y = &y[..len];
            for i in 0..len {
                out[i] = f(x, y[i]);
            }
        }
        (Splat(x), Splat(y)) => {
            if len > 0 {
                out.fill(f(x, y));
            }
        }
    }
}

/// Does the same as [`map_binary`]. Uses `fast` for each group of 16 pairs in which `ordinary` returns true for every pair. Uses `f` for all
/// other pairs. Both functions must give the same bits for ordinary pairs.
#[inline(always)]
pub(crate) fn map_binary_guarded<T: Scalar>(
    x: Operand<T>,
    y: Operand<T>,
    out: &mut [T],
    ordinary: impl Fn(T, T) -> bool,
    fast: impl Fn(T, T) -> T,
    f: impl Fn(T, T) -> T,
) {
    let (groups, rest) = out.as_chunks_mut::<16>();
    let last = 16 * groups.len();
    for (number, out) in groups.iter_mut().enumerate() {
        let (x, y, mut all) = (x.load_16(16 * number), y.load_16(16 * number), true);
        for i in 0..16 {
            all &= ordinary(x[i], y[i]);
        }
        match all {
            true => map_binary_arrays(&x, &y, out, &fast),
            false => map_binary_arrays(&x, &y, out, &f),
        }
    }
    for (i, out) in rest.iter_mut().enumerate() {
        *out = f(x.element(last + i), y.element(last + i));
    }
}

/// Does the same as [`map_binary`] with the function `fast`. Then calls `library` for the pairs for which `fast` returns NaN.
#[inline(always)]
pub(crate) fn map_binary_corrected<T: Scalar>(
    x: Operand<T>,
    y: Operand<T>,
    out: &mut [T],
    fast: impl Fn(T, T) -> T,
    library: fn(T, T) -> T,
) {
    map_binary(x, y, out, fast);
    let mut any = false;
    for i in 0..out.len() {
        any |= is_nan(out[i]);
    }
    if any {
        for i in 0..out.len() {
            if is_nan(out[i]) {
                out[i] = library(x.element(i), y.element(i));
            }
        }
    }
}

/// Does the same as [`map_binary`]. On x86-64, the stores bypass the caches. Exceptions are the elements before the first cache line boundary
/// and after the last whole group of 16 elements.
#[inline(always)]
pub(crate) fn map_binary_streamed<T: Scalar>(x: Operand<T>, y: Operand<T>, out: &mut [T], f: impl Fn(T, T) -> T) {
    let len = out.len();
    let (head, rest) = out.split_at_mut(out.as_ptr().align_offset(64).min(len));
    let (first, (lines, tail)) = (head.len(), rest.as_chunks_mut::<16>());
    let last = first + lines.len() * 16;
    map_binary(x.part(0, first), y.part(0, first), head, &f);
    map_binary(x.part(last, len), y.part(last, len), tail, &f);
    for (i, line) in lines.iter_mut().enumerate() {
        let (x, y, mut results) = (x.load_16(first + 16 * i), y.load_16(first + 16 * i), [T::ZERO; 16]);
        map_binary_arrays(&x, &y, &mut results, &f);
        cpu::stream_line(&results, line);
    }
}

/// Computes `out = f(x, y)` over rows and columns. At most one operand has one value for each row. If `x` is `None`, `out` is also the
/// first operand.
#[inline(always)]
pub(crate) fn rows<T: Copy>(rows: RowBroadcast, x: Option<&[T]>, y: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    match (x, rows.x_has_columns, rows.y_has_columns) {
        (Some(x), true, true) => map_binary_rows::<T, true, true>(rows, x, y, out, f),
        (Some(x), true, false) => map_binary_rows::<T, true, false>(rows, x, y, out, f),
        (Some(x), false, _) => map_binary_rows::<T, false, true>(rows, x, y, out, f),
        (None, _, y_has_columns) => {
            for row in 0..rows.rows {
                let out = &mut out[row * rows.columns..][..rows.columns];
                match Operand::row(y, row * rows.y_row_stride, y_has_columns, rows.columns) {
                    Operand::Slice(y) => {
                        for i in 0..out.len() {
                            out[i] = f(out[i], y[i]);
                        }
                    }
                    Operand::Splat(y) => {
                        for i in 0..out.len() {
                            out[i] = f(out[i], y);
                        }
                    }
                }
            }
        }
    }
}

/// Computes [`rows`] for constant kinds of operands. An operand has an element for each column or one value for each row. A common loop for
/// all kinds would keep track of more positions than each kind needs.
#[inline(always)]
fn map_binary_rows<T: Copy, const X_HAS_COLUMNS: bool, const Y_HAS_COLUMNS: bool>(
    rows: RowBroadcast,
    x: &[T],
    y: &[T],
    out: &mut [T],
    f: impl Fn(T, T) -> T,
) {
    let RowBroadcast { rows, columns, x_row_stride, y_row_stride, .. } = rows;
    for row in 0..rows {
        let out = &mut out[row * columns..][..columns];
        let x = Operand::row(x, row * x_row_stride, X_HAS_COLUMNS, columns);
        map_binary_short(x, Operand::row(y, row * y_row_stride, Y_HAS_COLUMNS, columns), out, &f);
    }
}

/// Computes [`map_binary`] for one row. A row of 16 to [`MAX_VECTOR_ROW`] elements is computed in vectors of 16 elements. The last vector
/// overlaps the vector before it, unless the length of the row is a multiple of 16.
#[inline(always)]
fn map_binary_short<T: Copy>(x: Operand<T>, y: Operand<T>, out: &mut [T], f: impl Fn(T, T) -> T) {
    if !(16..=MAX_VECTOR_ROW).contains(&out.len()) {
        return map_binary(x, y, out, f);
    }
    let (mut start, last) = (0, out.len() - 16);
    while let Some(vector) = out[start..].first_chunk_mut() {
        map_binary_arrays(&x.load_16(start), &y.load_16(start), vector, &f);
        if start == last {
            break;
        }
        start = last.min(start + 16);
    }
}

/// Computes `out = f(x, y, z)`.
#[inline(always)]
pub(crate) fn map_ternary<M: Copy, T: Copy>(
    x: Operand<M>,
    y: Operand<T>,
    z: Operand<T>,
    out: &mut [T],
    f: impl Fn(M, T, T) -> T,
) {
    use Operand::{Slice, Splat};
    match (x, y, z) {
        (Splat(x), y, z) => map_binary(y, z, out, |y, z| f(x, y, z)),
        (x, Splat(y), z) => map_binary(x, z, out, |x, z| f(x, y, z)),
        (x, y, Splat(z)) => map_binary(x, y, out, |x, y| f(x, y, z)),
        (Slice(x), Slice(y), Slice(z)) => {
            let (x, y, z) = (&x[..out.len()], &y[..out.len()], &z[..out.len()]);
            for i in 0..out.len() {
                out[i] = f(x[i], y[i], z[i]);
            }
        }
    }
}

/// Computes `out = truth(x op y)`. The function `truth` converts a truth value to a number or another type.
#[inline(always)]
pub(crate) fn compare<T: Copy + PartialOrd, U: Copy>(
    op: Compare,
    x: Operand<T>,
    y: Operand<T>,
    out: &mut [U],
    truth: impl Fn(bool) -> U,
) {
    match op {
        Compare::Eq => map_binary(x, y, out, |x, y| truth(x == y)),
        Compare::Ne => map_binary(x, y, out, |x, y| truth(x != y)),
        Compare::Lt => map_binary(x, y, out, |x, y| truth(x < y)),
        Compare::Le => map_binary(x, y, out, |x, y| truth(x <= y)),
        Compare::Gt => map_binary(x, y, out, |x, y| truth(x > y)),
        Compare::Ge => map_binary(x, y, out, |x, y| truth(x >= y)),
    }
}

/// Does the same as [`map_unary`], for arrays of `N` elements.
#[inline(always)]
pub(crate) fn map_unary_array<T: Copy, const N: usize>(x: &[T; N], out: &mut [T; N], f: impl Fn(T) -> T) {
    let mut result = *x;
    for i in 0..N {
        result[i] = f(x[i]);
    }
    *out = result;
}

/// Does the same as [`map_binary`], for arrays of `N` elements.
#[inline(always)]
pub(crate) fn map_binary_arrays<T: Copy, const N: usize>(
    x: &[T; N],
    y: &[T; N],
    out: &mut [T; N],
    f: impl Fn(T, T) -> T,
) {
    let mut result = *x;
    for i in 0..N {
        result[i] = f(x[i], y[i]);
    }
    *out = result;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_as() {
        let edges = [0.0, -0.0, 0.5, -0.99, 1.0, -1.5, 254.9, 255.0, 256.0, 1e10, -1e10, MAX_SHIFTED, -MAX_SHIFTED];
        let large = [9.3e18, -9.3e18, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, MAX_SHIFTED - 0.5, -3e9];
        for shift in 0..edges.len() {
            // The first three chunks of 64 elements have only numbers of `edges`. The others also have numbers of `large`.
            let x: Vec<f64> = (0..200).map(|i| edges[(i + shift) % edges.len()]).collect();
            let with_large = (0..100).map(|i| if i % 9 == 4 { large[(i + shift) % large.len()] } else { 3.7 });
            let x: Vec<f64> = x.into_iter().chain(with_large).collect();
            let singles: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let (mut integers, mut bytes, mut truths) = (vec![7i64; 300], vec![7u8; 300], vec![false; 300]);
            convert(Operand::Slice(&x), &mut integers);
            convert(Operand::Slice(&x), &mut bytes);
            convert(Operand::Slice(&x), &mut truths);
            for (i, &x) in x.iter().enumerate() {
                assert_eq!((integers[i], bytes[i], truths[i]), (x as i64, x as u8, x != 0.0), "{x}");
            }
            convert(Operand::Slice(&singles), &mut integers);
            convert(Operand::Slice(&singles), &mut bytes);
            for (i, &x) in singles.iter().enumerate() {
                assert_eq!((integers[i], bytes[i]), (x as i64, x as u8), "{x}");
            }
            let mut doubles = vec![0.0f64; 300];
            convert(Operand::Slice(&bytes), &mut doubles);
            convert(Operand::Slice(&truths), &mut integers);
            assert!((0..300).all(|i| doubles[i] == f64::from(bytes[i]) && integers[i] == i64::from(truths[i])));
            convert(Operand::Slice(&[i64::MAX, -1, 256]), &mut bytes[..3]);
            assert_eq!(bytes[..3], [255, 255, 0]);
        }
    }

    #[test]
    fn streamed_results_are_the_same_at_every_alignment() {
        let (x, y): (Vec<f32>, Vec<f32>) = (0..600).map(|i| (i as f32 * 0.37, i as f32 * -1.9 + 3.0)).unzip();
        for offset in 0..20 {
            for len in [0, 1, 15, 16, 17, 63, 64, 500] {
                let (x, y) = (Operand::Slice(&x[3..3 + len]), Operand::Slice(&y[offset..offset + len]));
                for (x, y) in [
                    (x, y),
                    (x, Operand::Splat(2.5)),
                    (Operand::Splat(0.1), y),
                    (Operand::Splat(1.0), Operand::Splat(2.0)),
                ] {
                    let (mut expected, mut got) = (vec![-7.0f32; 600], vec![-7.0f32; 600]);
                    map_binary(x, y, &mut expected[offset..offset + len], |x, y| x / y);
                    map_binary_streamed(x, y, &mut got[offset..offset + len], |x, y| x / y);
                    cpu::fence_streams();
                    assert!(got.iter().zip(&expected).all(|(x, y)| x.to_bits() == y.to_bits()), "{len} from {offset}");
                }
            }
        }
    }
}
