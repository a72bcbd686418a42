//! Reductions of lines: each line of adjacent elements becomes one total.
//!
//! [`reduce`] folds a line of floating-point numbers in several independent chains. Chain `i` of `N` combines the elements `i`, `i + N` and
//! so on, up to the last whole chunk of `N` elements. Each chain is one element of a local array, which the compiler keeps in vector
//! registers. If the chains are fields of a struct, they stay in memory and take ten times as long.
//!
//! The loops use indices and are inlined. An iterator's `fold` may remain a separate function, compiled without the target
//! features of its caller.
#![allow(clippy::needless_range_loop, clippy::eq_op)] // Only a NaN is not equal to itself.

use crate::scalar::cpu::{self, dispatched};
use crate::scalar::element::Semiring;
use crate::scalar::reduction::{Fold, Sum};

/// The length in elements below which a line is short, so that [`reduce_short`] can reduce it.
pub(super) const SHORT_LEN: usize = 16;

/// The length of lines, in elements, below which a sum or product is folded in eight chains (independent totals). Other sums and products
/// are folded in 64 chains.
const MIN_LINE_OF_64_CHAINS: usize = 64;

/// The length of lines, in elements, below which a maximum or minimum is folded in eight chains (independent totals) if [`may_have_nan`]
/// finds no NaN.
const MIN_EXTREME_LINE_OF_64_CHAINS: usize = 128;

/// The number of lines that [`reduce_interleaved`] reads in turns. Intel's processors read memory faster in several streams than in one.
const INTERLEAVED_LINES: usize = 8;

/// The number of elements that [`reduce_interleaved`] reads from one line before it reads from the next.
const INTERLEAVED_RUN: usize = 256;

/// A call with at least this many elements is assumed to read memory and not a cache.
const MIN_INTERLEAVED_ELEMENTS: usize = 1 << 16;

/// Returns whether `lines` lines of `len` elements are reduced faster if they are read in turns by [`reduce_interleaved`].
fn is_interleaved(len: usize, lines: usize) -> bool {
    len * lines >= MIN_INTERLEAVED_ELEMENTS && len >= 2 * INTERLEAVED_RUN && !cpu::is_amd()
}

/// Computes `out[i] = total of x[i * stride .. i * stride + len]`.
pub(super) fn reduce<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
    // Each way to reduce is a separate function. In a common function, the loop over short lines had too few registers for its counters,
    // and took a quarter longer.
    if T::ROUNDS {
        if is_interleaved(len, out.len()) {
            reduce_interleaved::<T, F>(x, len, stride, out);
        } else {
            reduce_lines::<T, F>(x, len, stride, out);
        }
    } else {
        // Integers and truth values are not rounded, so all orders give the same bits.
        reduce_in_order::<T, F>(x, len, stride, out);
    }
}

/// Computes [`reduce`] in another order, for lines of 1 to 15 elements. Combines a line's elements in the order in which
/// [`accumulate_rows`](super::rows::accumulate_rows) combines rows: eight in a tree, and the rest in sequence. So a sum has the same bits
/// whether its elements are adjacent or a row apart.
pub(super) fn reduce_short<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
    if T::ROUNDS && len >= 8 {
        reduce_in_tree::<T, F>(x, len, stride, out);
    } else {
        reduce_in_order::<T, F>(x, len, stride, out);
    }
}

dispatched! {
    /// Computes [`reduce`] in another order: combines the elements of a line one after the other. The compiler may choose the order for
    /// integers and truth values.
    pub(super) fn reduce_in_order<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
        match !F::SELECTS || !may_have_nan(x, len, stride, out.len()) {
            true => fold_each_in_order(x, len, stride, out, F::START, F::combine_numbers),
            false => fold_each_in_order(x, len, stride, out, F::START, F::combine),
        }
    }

    /// Computes [`reduce_short`] for lines of 8 to 15 elements.
    fn reduce_in_tree<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
        match !F::SELECTS || !may_have_nan(x, len, stride, out.len()) {
            true => fold_each_in_tree(x, len, stride, out, F::START, F::combine_numbers),
            false => fold_each_in_tree(x, len, stride, out, F::START, F::combine),
        }
    }

    fn reduce_lines<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
        // The number of chains is chosen once for all lines. A choice for each line made short lines slower by a sixth.
        let few = if F::SELECTS { len < MIN_EXTREME_LINE_OF_64_CHAINS && !may_have_nan(x, len, stride, out.len()) } else { len < MIN_LINE_OF_64_CHAINS };
        if few {
            for i in 0..out.len() {
                out[i] = fold_line::<T, F, 8>(&x[i * stride..][..len]);
            }
        } else {
            for i in 0..out.len() {
                out[i] = fold_long_line::<T, F>(&x[i * stride..][..len]);
            }
        }
    }

    /// Sums the products `x[i] * y[i]` of lines of `len` elements. The sums have the bits that [`reduce`] gives for these products, which
    /// are rounded before they are added. The products are not stored, so large arrays are read as fast as the memory allows.
    pub(super) fn sums_of_products<T: Semiring>(x: &[T], y: &[T], len: usize, out: &mut [T]) {
        for i in 0..out.len() {
            out[i] = sum_of_products(&x[i * len..][..len], &y[i * len..][..len]);
        }
    }

    /// Computes [`reduce`] for long lines of a large array. Several lines are read in turns.
    pub(super) fn reduce_interleaved<T: Semiring, F: Fold<T>>(x: &[T], len: usize, stride: usize, out: &mut [T]) {
        let whole = len / 64 * 64;
        for (group, out) in out.chunks_mut(INTERLEAVED_LINES).enumerate() {
            let x = &x[group * INTERLEAVED_LINES * stride..];
            let mut chains = [([F::START; 64], [F::START; 64]); INTERLEAVED_LINES];
            for from in (0..whole).step_by(INTERLEAVED_RUN) {
                for line in 0..out.len() {
                    let (mut totals, mut nans) = chains[line];
                    for chunk in x[line * stride..][from..whole.min(from + INTERLEAVED_RUN)].as_chunks::<64>().0 {
                        fold_chunk::<T, F>(&mut totals, &mut nans, chunk);
                    }
                    chains[line] = (totals, nans);
                }
            }
            for line in 0..out.len() {
                let ((totals, nans), x) = (chains[line], &x[line * stride..][..len]);
                let rest = &x[whole..];
                out[line] = if F::SELECTS {
                    extreme_or_nan::<T, F>(fold_line::<T, F, 8>(rest), any_nan(rest), totals, nans, x)
                } else {
                    combine_with_rest::<T, F, 64>(totals, rest)
                };
            }
        }
    }
}

/// Folds each line in order by the function `f`, beginning with `start`.
#[inline(always)]
fn fold_each_in_order<T: Copy>(x: &[T], len: usize, stride: usize, out: &mut [T], start: T, f: impl Fn(T, T) -> T) {
    // Constant lengths let the compiler vectorize over adjacent lines.
    match (len, stride) {
        (2, 2) => fold_each(x, 2, 2, out, start, f),
        (3, 3) => fold_each(x, 3, 3, out, start, f),
        (4, 4) => fold_each(x, 4, 4, out, start, f),
        _ => fold_each(x, len, stride, out, start, f),
    }
}

#[inline(always)]
fn fold_each<T: Copy>(x: &[T], len: usize, stride: usize, out: &mut [T], start: T, f: impl Fn(T, T) -> T) {
    let x = &x[..if out.is_empty() { 0 } else { (out.len() - 1) * stride + len }];
    for i in 0..out.len() {
        let (line, mut total) = (&x[i * stride..][..len], start);
        for j in 0..len {
            total = f(total, line[j]);
        }
        out[i] = total;
    }
}

/// Folds each line of eight elements or more: the first eight in a tree, and the rest in sequence.
#[inline(always)]
fn fold_each_in_tree<T: Copy>(x: &[T], len: usize, stride: usize, out: &mut [T], start: T, f: impl Fn(T, T) -> T) {
    for (number, out) in out.iter_mut().enumerate() {
        let [a, b, c, d, e, g, h, k, rest @ ..] = &x[number * stride..][..len] else { return };
        let mut total = f(start, f(f(f(*a, *b), f(*c, *d)), f(f(*e, *g), f(*h, *k))));
        for i in 0..rest.len() {
            total = f(total, rest[i]);
        }
        *out = total;
    }
}

/// Folds a line in 64 chains. Chain `i` combines the elements `i`, `i + 64` and so on. The elements after the last whole chunk of 64 are
/// folded in eight chains. A line of fewer than 64 elements has only these elements.
#[inline(always)]
fn fold_long_line<T: Semiring, F: Fold<T>>(x: &[T]) -> T {
    if !F::SELECTS {
        return fold_line::<T, F, 64>(x);
    }
    // The elements after the last whole chunk are folded first. If they were folded last, the compiler would keep `totals` and `nans` in
    // memory and not in registers.
    let (chunks, rest) = x.as_chunks::<64>();
    let (total, has_nan) = (fold_line::<T, F, 8>(rest), any_nan(rest));
    let (mut totals, mut nans) = ([F::START; 64], [F::START; 64]);
    for chunk in chunks {
        fold_chunk::<T, F>(&mut totals, &mut nans, chunk);
    }
    extreme_or_nan::<T, F>(total, has_nan, totals, nans, x)
}

/// Returns the sum of the products of two lines, in the order of [`combine_with_rest`] with 64 chains. For fewer than 64 elements, all
/// chains are empty, and the order is the one of [`fold_line`] with eight chains.
#[inline(always)]
fn sum_of_products<T: Semiring>(x: &[T], y: &[T]) -> T {
    let ((chunks, x), (others, y)) = (x.as_chunks::<64>(), y.as_chunks::<64>());
    let mut totals = [T::ZERO; 64];
    for (chunk, other) in chunks.iter().zip(others) {
        for i in 0..64 {
            totals[i] = totals[i].plus(chunk[i].times(other[i]));
        }
    }
    let ((chunks, x), (others, y)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    let mut few = [T::ZERO; 8];
    for (chunk, other) in chunks.iter().zip(others) {
        for i in 0..8 {
            few[i] = few[i].plus(chunk[i].times(other[i]));
        }
    }
    let mut last = T::ZERO;
    for i in 0..x.len().min(y.len()) {
        last = last.plus(x[i].times(y[i]));
    }
    combine_pairwise::<T, Sum, 64>(totals).plus(combine_pairwise::<T, Sum, 8>(few)).plus(last)
}

/// Folds a line in `N` chains (independent totals), and combines the totals pairwise. For a maximum or minimum, the result is valid only if
/// the line has no NaN.
#[inline(always)]
fn fold_line<T: Semiring, F: Fold<T>, const N: usize>(x: &[T]) -> T {
    let (chunks, rest) = x.as_chunks::<N>();
    let mut totals = [F::START; N];
    for chunk in chunks {
        for i in 0..N {
            totals[i] = F::combine_numbers(totals[i], chunk[i]);
        }
    }
    combine_with_rest::<T, F, N>(totals, rest)
}

/// Combines the `N` totals of a line's chains with the elements `rest` after the last whole chunk, which are fewer than `N`.
#[inline(always)]
fn combine_with_rest<T: Semiring, F: Fold<T>, const N: usize>(totals: [T; N], rest: &[T]) -> T {
    // The remaining elements are combined in chains of their own. Adding them to `totals` would make the compiler keep `totals` in memory
    // and not in registers.
    let (eights, rest) = rest.as_chunks::<8>();
    let mut few = [F::START; 8];
    for eight in eights {
        for i in 0..8 {
            few[i] = F::combine_numbers(few[i], eight[i]);
        }
    }
    let mut last = F::START;
    for i in 0..rest.len() {
        last = F::combine_numbers(last, rest[i]);
    }
    F::combine_numbers(F::combine_numbers(combine_pairwise::<T, F, N>(totals), combine_pairwise::<T, F, 8>(few)), last)
}

/// Combines a chunk of 64 elements with the totals of 64 chains. For a maximum or minimum, sets `nans` to a NaN in each chain that has one.
/// Comparing numbers and tracking NaNs separately takes fewer instructions than deciding for each pair which operand is NaN.
#[inline(always)]
fn fold_chunk<T: Semiring, F: Fold<T>>(totals: &mut [T; 64], nans: &mut [T; 64], chunk: &[T; 64]) {
    for i in 0..64 {
        totals[i] = F::combine_numbers(totals[i], chunk[i]);
        if F::SELECTS {
            nans[i] = nan_or(chunk[i], nans[i]);
        }
    }
}

/// Returns `x` if it is NaN, otherwise `y`. Without this function, which reads `x` once, the loop of [`fold_chunk`] is not vectorized.
#[inline(always)]
fn nan_or<T: Copy + PartialEq>(x: T, y: T) -> T {
    if x != x { x } else { y }
}

/// Returns the maximum or minimum of the line `x`: the first NaN, or else the best number. `totals` and `nans` belong to the whole chunks of
/// 64 elements. `total` and `has_nan` belong to the elements after them.
#[inline(always)]
fn extreme_or_nan<T: Semiring, F: Fold<T>>(total: T, has_nan: bool, totals: [T; 64], nans: [T; 64], x: &[T]) -> T {
    let total = F::combine_numbers(total, combine_pairwise::<T, F, 64>(totals));
    let bad = has_nan | any_nan(&nans);
    if bad { x.iter().copied().find(|x| x != x).unwrap_or(total) } else { total }
}

/// Combines the totals pairwise, the second half with the first half, until one total is left. Returns this total.
#[inline(always)]
fn combine_pairwise<T: Semiring, F: Fold<T>, const N: usize>(mut totals: [T; N]) -> T {
    let mut width = N / 2;
    while width > 0 {
        for i in 0..width {
            totals[i] = F::combine_numbers(totals[i], totals[i + width]);
        }
        width /= 2;
    }
    totals[0]
}

/// Returns whether `lines` lines of `len` elements, `stride` apart, may contain a NaN. The elements between the lines are searched too. If
/// there are many elements between the lines, returns true without a search. If the result is false, a faster loop can compute a maximum.
#[inline(always)]
fn may_have_nan<T: Copy + PartialEq>(x: &[T], len: usize, stride: usize, lines: usize) -> bool {
    stride > 4 * len || any_nan(&x[..if lines == 0 { 0 } else { (lines - 1) * stride + len }])
}

#[inline(always)]
fn any_nan<T: Copy + PartialEq>(x: &[T]) -> bool {
    let mut any = false;
    for i in 0..x.len() {
        any |= x[i] != x[i];
    }
    any
}
