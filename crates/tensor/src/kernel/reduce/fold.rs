//! Loops over slices, for reductions and for operations on rows.
//!
//! The loops use indices and are inlined. An iterator's `fold` may remain a separate function, compiled without the target
//! features of its caller.
#![allow(clippy::needless_range_loop)]

use crate::scalar::cpu;

/// Folds each row of `row` elements in order, and combines the result with the row's total.
#[inline(always)]
pub(crate) fn fold_short_rows<T: Copy>(x: &[T], row: usize, totals: &mut [T], f: impl Fn(T, T) -> T + Copy) {
    // Constant lengths let the compiler vectorize the loop over rows.
    match row {
        2 => fold_rows_of(x, 2, totals, f),
        3 => fold_rows_of(x, 3, totals, f),
        4 => fold_rows_of(x, 4, totals, f),
        _ => fold_rows_of(x, row, totals, f),
    }
}

#[inline(always)]
fn fold_rows_of<T: Copy>(x: &[T], row: usize, totals: &mut [T], f: impl Fn(T, T) -> T) {
    let x = &x[..totals.len() * row];
    for i in 0..totals.len() {
        let x = &x[i * row..][..row];
        let mut total = x[0];
        for j in 1..row {
            total = f(total, x[j]);
        }
        totals[i] = f(totals[i], total);
    }
}

/// Sets each total to `f(total, x)`.
#[inline(always)]
pub(crate) fn fold_each<T: Copy>(total: &mut [T], x: &[T], f: impl Fn(T, T) -> T) {
    let len = total.len().min(x.len());
    let (total, x) = (&mut total[..len], &x[..len]);
    for i in 0..len {
        total[i] = f(total[i], x[i]);
    }
}

/// Sets each total to `f(total, x)` for the elements of each row of `x`. Eight rows are processed at a time, so that totals are read and
/// written once for eight rows.
#[inline(always)]
pub(crate) fn fold_rows<T: Copy>(total: &mut [T], x: &[T], stride: usize, rows: usize, f: impl Fn(T, T) -> T + Copy) {
    let len = total.len();
    let total = &mut total[..len];
    let mut row = 0;
    while rows - row >= 8 {
        let at = |k: usize| &x[(row + k) * stride..][..len];
        let (a, b, c, d) = (at(0), at(1), at(2), at(3));
        let (e, g, h, k) = (at(4), at(5), at(6), at(7));
        for i in 0..len {
            let (left, right) = (f(f(a[i], b[i]), f(c[i], d[i])), f(f(e[i], g[i]), f(h[i], k[i])));
            total[i] = f(total[i], f(left, right));
        }
        row += 8;
    }
    for row in row..rows {
        fold_each(total, &x[row * stride..][..len], f);
    }
}

/// The number of lines that are reduced in turns. A *line* is a contiguous slice that is reduced to one result. Intel's processors read
/// memory faster in several streams than in one. The next constant is the length of a turn, in elements.
const STREAMS: usize = 8;
const TURN: usize = 256;

/// A call with at least this many elements is assumed to read memory and not a cache.
const LARGE: usize = 1 << 16;

/// Returns true if [`chains_in_turns`] should reduce `lines` lines of `len` elements.
pub(crate) fn in_turns(len: usize, lines: usize) -> bool {
    len * lines >= LARGE && len >= 2 * TURN && !cpu::is_amd()
}

/// Folds each line of `len` elements by [`in_chains`]. The lines are `stride` apart.
#[inline(always)]
pub(crate) fn each_in_chains<T: Copy>(
    x: &[T],
    len: usize,
    stride: usize,
    out: &mut [T],
    start: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    // The decision is made once for all lines. A decision for each line made short lines slower by a sixth.
    if len < LINE_OF_CHAINS {
        for i in 0..out.len() {
            out[i] = chains::<8, T>(&x[i * stride..][..len], start, f);
        }
    } else {
        for i in 0..out.len() {
            out[i] = chains::<64, T>(&x[i * stride..][..len], start, f);
        }
    }
}

/// Does the same as [`each_in_chains`], for long lines of a large array. Reads a piece of each of several lines in turn.
#[inline(always)]
pub(crate) fn chains_in_turns<T: Copy>(
    x: &[T],
    len: usize,
    stride: usize,
    out: &mut [T],
    start: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    let whole = len / 64 * 64;
    for (group, out) in out.chunks_mut(STREAMS).enumerate() {
        let (first, mut totals) = (group * STREAMS, [[start; 64]; STREAMS]);
        for from in (0..whole).step_by(TURN) {
            let to = whole.min(from + TURN);
            for line in 0..out.len() {
                let mut own = totals[line];
                for chunk in x[(first + line) * stride..][from..to].as_chunks::<64>().0 {
                    for i in 0..64 {
                        own[i] = f(own[i], chunk[i]);
                    }
                }
                totals[line] = own;
            }
        }
        for line in 0..out.len() {
            out[line] = ended(totals[line], &x[(first + line) * stride..][whole..len], start, f);
        }
    }
}

/// Does the same as [`each_in_chains`] for a function `f` that selects one of two numbers and is undefined for NaN. If a line contains a
/// NaN, its result is NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // Only a NaN is not equal to itself.
pub(crate) fn each_extreme<T: Copy + PartialEq>(
    x: &[T],
    len: usize,
    stride: usize,
    out: &mut [T],
    start: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    if len < SHORT_LINE && !has_nan(x, len, stride, out.len()) {
        for i in 0..out.len() {
            out[i] = chains::<8, T>(&x[i * stride..][..len], start, f);
        }
        return;
    }
    // Comparing numbers and finding NaNs separately takes two instructions. Finding out for each pair which operand is NaN takes four.
    let not_number = |kept: T, x: T| if x != x { x } else { kept };
    for row in 0..out.len() {
        let (chunks, rest) = x[row * stride..][..len].as_chunks::<64>();
        let mut total = chains::<8, T>(rest, start, f);
        let mut bad = false;
        for i in 0..rest.len() {
            bad |= rest[i] != rest[i];
        }
        if !chunks.is_empty() {
            let (mut totals, mut kept) = ([start; 64], [start; 64]);
            for chunk in chunks {
                for i in 0..64 {
                    totals[i] = f(totals[i], chunk[i]);
                    kept[i] = not_number(kept[i], chunk[i]);
                }
            }
            let mut eight = [start; 8];
            for i in 0..8 {
                let left = f(f(totals[i], totals[i + 32]), f(totals[i + 16], totals[i + 48]));
                eight[i] = f(left, f(f(totals[i + 8], totals[i + 40]), f(totals[i + 24], totals[i + 56])));
            }
            total = f(total, halved(eight, f));
            for i in 0..64 {
                bad |= kept[i] != kept[i];
            }
        }
        if bad {
            total = x[row * stride..][..len].iter().copied().find(|x| x != x).unwrap_or(total);
        }
        out[row] = total;
    }
}

/// The length of lines, in elements, below which a line is folded in eight chains. Longer lines are folded in 64 chains.
const LINE_OF_CHAINS: usize = 64;

/// In [`each_extreme`], the length of lines, in elements, below which a line is folded in eight chains if [`has_nan`] finds no NaN.
const SHORT_LINE: usize = 128;

/// Returns true if `lines` lines of `len` elements, `stride` apart, may contain a NaN. The gaps between the lines are searched too. If the
/// gaps are large, returns true without a search. Without NaNs, a maximum takes only one instruction.
#[inline(always)]
#[allow(clippy::eq_op)]
pub(crate) fn has_nan<T: Copy + PartialEq>(x: &[T], len: usize, stride: usize, lines: usize) -> bool {
    let mut bad = stride > 4 * len;
    for &x in &x[..if bad || lines == 0 { 0 } else { (lines - 1) * stride + len }] {
        bad |= x != x;
    }
    bad
}

/// Does the same as [`each_extreme`], for long lines of a large array. Reads a piece of each of several lines in turn.
/// [`each_extreme`] keeps the chains of one line in registers, which is twice as fast for a single line.
#[inline(always)]
#[allow(clippy::eq_op)]
pub(crate) fn extremes_in_turns<T: Copy + PartialEq>(
    x: &[T],
    len: usize,
    stride: usize,
    out: &mut [T],
    start: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    let not_number = |kept: T, x: T| if x != x { x } else { kept };
    let whole = len / 64 * 64;
    for (group, out) in out.chunks_mut(STREAMS).enumerate() {
        let first = group * STREAMS;
        let (mut totals, mut kept) = ([[start; 64]; STREAMS], [[start; 64]; STREAMS]);
        for from in (0..whole).step_by(TURN) {
            let to = whole.min(from + TURN);
            for line in 0..out.len() {
                let (mut own, mut own_kept) = (totals[line], kept[line]);
                for chunk in x[(first + line) * stride..][from..to].as_chunks::<64>().0 {
                    for i in 0..64 {
                        own[i] = f(own[i], chunk[i]);
                        own_kept[i] = not_number(own_kept[i], chunk[i]);
                    }
                }
                (totals[line], kept[line]) = (own, own_kept);
            }
        }
        for line in 0..out.len() {
            let x = &x[(first + line) * stride..][..len];
            let (rest, mut bad) = (&x[whole..], false);
            for i in 0..rest.len() {
                bad |= rest[i] != rest[i];
            }
            for i in 0..64 {
                bad |= kept[line][i] != kept[line][i];
            }
            out[line] = f(chains::<8, T>(rest, start, f), halved(totals[line], f));
            if bad {
                out[line] = x.iter().copied().find(|x| x != x).unwrap_or(out[line]);
            }
        }
    }
}

/// Folds `x` in 64 independent chains, or in eight if it has few elements. The compiler keeps the chains in vector registers. The results
/// of the chains are combined pairwise.
#[inline(always)]
pub(crate) fn in_chains<T: Copy>(x: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    if x.len() < LINE_OF_CHAINS { chains::<8, T>(x, start, f) } else { chains::<64, T>(x, start, f) }
}

#[inline(always)]
pub(crate) fn chains<const N: usize, T: Copy>(x: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    let (chunks, rest) = x.as_chunks::<N>();
    let mut totals = [start; N];
    for chunk in chunks {
        for i in 0..N {
            totals[i] = f(totals[i], chunk[i]);
        }
    }
    ended(totals, rest, start, f)
}

/// Combines the results of the chains with the remaining elements, which are fewer than `N`.
#[inline(always)]
fn ended<const N: usize, T: Copy>(totals: [T; N], rest: &[T], start: T, f: impl Fn(T, T) -> T + Copy) -> T {
    // The remaining elements get chains of their own. Adding them to `totals` would move `totals` out of the registers.
    let (eights, rest) = rest.as_chunks::<8>();
    let mut few = [start; 8];
    for eight in eights {
        for i in 0..8 {
            few[i] = f(few[i], eight[i]);
        }
    }
    let mut last = start;
    for &x in rest {
        last = f(last, x);
    }
    f(f(halved(totals, f), halved(few, f)), last)
}

/// Combines all totals pairwise.
#[inline(always)]
pub(crate) fn halved<const N: usize, T: Copy>(mut totals: [T; N], f: impl Fn(T, T) -> T) -> T {
    let mut width = N / 2;
    while width > 0 {
        for i in 0..width {
            totals[i] = f(totals[i], totals[i + width]);
        }
        width /= 2;
    }
    totals[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that lines that are reduced in turns have the same bits as lines that are reduced alone.
    #[test]
    fn turns_give_the_same_bits() {
        let (stride, count) = (1500, 133);
        let mut x: Vec<f32> = (0..stride * count).map(|i| (i as f32 * 0.37).sin() * 100.0).collect();
        for line in [0, 7, 8, 50, 132] {
            x[line * stride + line * 11 % 512] = f32::NAN;
        }
        for len in [512, 513, 640, 1000, 1500] {
            let larger = |total: f32, x: f32| if x > total { x } else { total };
            let (mut sums, mut most) = (vec![0.0; count], vec![0.0; count]);
            chains_in_turns(&x, len, stride, &mut sums, 0.0, |x, y| x + y);
            extremes_in_turns(&x, len, stride, &mut most, f32::NEG_INFINITY, larger);
            for i in 0..count {
                let (line, mut alone) = (&x[i * stride..][..len], [0.0]);
                assert_eq!(sums[i].to_bits(), in_chains(line, 0.0, |x, y| x + y).to_bits(), "line {i} of {len}");
                each_extreme(line, len, len, &mut alone, f32::NEG_INFINITY, larger);
                assert_eq!(most[i].to_bits(), alone[0].to_bits(), "line {i} of {len}");
                assert_eq!(alone[0].is_nan(), line.iter().any(|x| x.is_nan()));
            }
        }
    }

    /// Checks that a NaN changes only the result of its own line, on every code path.
    #[test]
    fn a_nan_belongs_to_one_line() {
        let larger = |total: f32, x: f32| if x > total { x } else { total };
        for (len, gap) in [1, 16, 40, 100, 127, 128, 300].into_iter().flat_map(|len| [(len, 0), (len, 3)]) {
            let (stride, lines) = (len + gap, 9);
            let mut x: Vec<f32> = (0..stride * lines).map(|i| (i as f32 * 0.37).sin()).collect();
            for broken in [None, Some(0), Some(4), Some(8)] {
                if let Some(line) = broken {
                    x[line * stride + len - 1] = f32::NAN;
                }
                let mut most = [0.0; 9];
                each_extreme(&x, len, stride, &mut most, f32::NEG_INFINITY, larger);
                for (line, &most) in most.iter().enumerate() {
                    let own = &x[line * stride..][..len];
                    match own.iter().any(|x| x.is_nan()) {
                        true => assert!(most.is_nan(), "line {line} of {len}"),
                        false => assert_eq!(most, own.iter().copied().fold(f32::NEG_INFINITY, larger)),
                    }
                }
            }
        }
    }
}
