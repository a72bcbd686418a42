//! Reduces rows of a few elements, such as logits.
//!
//! Each row is reduced separately. Elements are added in the order of [`fold_rows`](crate::kernel::reduce::fold::fold_rows): eight in a
//! tree, and the rest in sequence. So a sum has the same bits whether its elements are adjacent or are in successive rows.
#![allow(clippy::needless_range_loop)]

use crate::Reduction;
use crate::kernel::reduce::fold::has_nan;
use crate::scalar::cpu::dispatched;
use crate::scalar::math::{FloatMath, larger, larger_number, smaller, smaller_number};

/// The length of rows, in elements, below which this file reduces them.
pub(crate) const SHORT: usize = 16;

/// Reduces each row. The reduction starts with `start`. If `start` is `None`, it starts with the first element of the row, which is then
/// combined twice.
#[inline(always)]
fn each<T: Copy>(x: &[T], len: usize, stride: usize, out: &mut [T], start: Option<T>, f: impl Fn(T, T) -> T + Copy) {
    // Constant lengths let the compiler vectorize the loop over adjacent rows.
    match (len, stride) {
        (2, 2) => each_of(x, 2, 2, out, start, f),
        (3, 3) => each_of(x, 3, 3, out, start, f),
        (4, 4) => each_of(x, 4, 4, out, start, f),
        (..8, _) => each_of(x, len, stride, out, start, f),
        _ => {
            for (number, out) in out.iter_mut().enumerate() {
                let [a, b, c, d, e, g, h, k, rest @ ..] = &x[number * stride..][..len] else { return };
                let eight = f(f(f(*a, *b), f(*c, *d)), f(f(*e, *g), f(*h, *k)));
                let mut total = f(start.unwrap_or(*a), eight);
                for i in 0..rest.len() {
                    total = f(total, rest[i]);
                }
                *out = total;
            }
        }
    }
}

/// Does the same as [`each`], for rows of fewer than eight elements.
#[inline(always)]
fn each_of<T: Copy>(x: &[T], len: usize, stride: usize, out: &mut [T], start: Option<T>, f: impl Fn(T, T) -> T) {
    let x = &x[..(out.len() - 1) * stride + len];
    for number in 0..out.len() {
        let line = &x[number * stride..][..len];
        let mut total = start.unwrap_or(line[0]);
        for i in 0..len {
            total = f(total, line[i]);
        }
        out[number] = total;
    }
}

/// For each i, sets `out[i]` to the reduction of the row `x[i * stride .. i * stride + len]`. `len` is from 1 to 15.
pub(crate) fn reduce<T: FloatMath>(op: Reduction, x: &[T], len: usize, stride: usize, out: &mut [T]) {
    assert!((1..SHORT).contains(&len));
    if !out.is_empty() {
        reduce_each(op, x, len, stride, out);
    }
}

dispatched! {
    fn reduce_each<T: FloatMath>(op: Reduction, x: &[T], len: usize, stride: usize, out: &mut [T]) {
        let ordered = || !has_nan(x, len, stride, out.len());
        match op {
            Reduction::Sum => each(x, len, stride, out, Some(T::ZERO), |total, x| total + x),
            Reduction::Prod => each(x, len, stride, out, Some(T::ONE), |total, x| total * x),
            Reduction::Amax | Reduction::Max if ordered() => {
                each(x, len, stride, out, None, |total, x| larger_number(total, x));
            }
            Reduction::Amin | Reduction::Min if ordered() => {
                each(x, len, stride, out, None, |total, x| smaller_number(total, x));
            }
            Reduction::Amax | Reduction::Max => each(x, len, stride, out, None, |total, x| larger(total, x)),
            Reduction::Amin | Reduction::Min => each(x, len, stride, out, None, |total, x| smaller(total, x)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::elementwise::block::BlockKernels;

    /// Checks that reducing rows gives the same bits as accumulating the rows of the transpose.
    fn check_against_accumulated_rows<T: BlockKernels>(number: impl Fn(usize) -> T, bits: impl Fn(T) -> u64) {
        for op in [Reduction::Sum, Reduction::Prod, Reduction::Amax, Reduction::Amin, Reduction::Max, Reduction::Min] {
            for (len, more, lines) in (1..SHORT).flat_map(|len| [0, 1, 90].map(|more| (len, more, 37))) {
                let stride = len + more;
                let x: Vec<T> = (0..lines * stride).map(&number).collect();
                let mut got = vec![number(0); lines];
                assert!(T::reduce_short(op, &x, len, stride, &mut got));
                let across: Vec<T> = (0..len * lines).map(|i| x[i % lines * stride + i / lines]).collect();
                let mut expected = match T::identity(op) {
                    Some(identity) => vec![identity; lines],
                    None => across[..lines].to_vec(),
                };
                T::accumulate_rows(op, &mut expected, &across, lines, len);
                for (got, expected) in got.into_iter().zip(expected) {
                    assert_eq!(bits(got), bits(expected), "{op:?} {len} {stride}");
                }
            }
        }
    }

    #[test]
    fn lines_equal_rows_bit_by_bit() {
        let mixed = |i: usize| ((i * 7919 % 1009) as f64 * 0.37).sin();
        let zeros = |i: usize| if i * 31 % 7 < 3 { -0.0 } else { 0.0 };
        // The NaNs among these elements have several bit patterns.
        let broken = |i: usize| match i % 17 {
            3 | 4 => f64::from_bits(f64::NAN.to_bits() + ((i as u64) << 32)),
            _ => ((i * 7919 % 1009) as f64 * 0.37).sin(),
        };
        for number in [mixed as fn(usize) -> f64, zeros, broken] {
            check_against_accumulated_rows(number, f64::to_bits);
            check_against_accumulated_rows(|i| number(i) as f32, |x: f32| u64::from(x.to_bits()));
        }
    }
}
