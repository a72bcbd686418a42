//! Reductions of rows: the elements of each row are accumulated into a row of totals.
#![allow(clippy::needless_range_loop)] // The file `lines.rs` says why its loops use indices.

use crate::scalar::cpu::dispatched;
use crate::scalar::element::Semiring;
use crate::scalar::reduction::Fold;

/// Combines `totals[positions[i]]` with `x[i]` for every `i`, one after the other.
pub(super) fn accumulate_at<T: Semiring, F: Fold<T>>(totals: &mut [T], positions: &[i64], x: &[T]) {
    for (&position, &x) in positions.iter().zip(x) {
        let total = &mut totals[position as usize];
        *total = F::combine(*total, x);
    }
}

dispatched! {
    /// Combines each total with the element of `x` at the same position.
    pub(super) fn accumulate<T: Semiring, F: Fold<T>>(totals: &mut [T], x: &[T]) {
        accumulate_row::<T, F>(totals, x);
    }

    /// Accumulates `rows` rows of `x`, which begin `stride` elements apart, into `totals`. Eight rows are processed at a time, so that each
    /// total is read and written only once per eight rows.
    pub(super) fn accumulate_rows<T: Semiring, F: Fold<T>>(totals: &mut [T], x: &[T], stride: usize, rows: usize) {
        let len = totals.len();
        let totals = &mut totals[..len];
        let mut row = 0;
        while rows - row >= 8 {
            let at = |k: usize| &x[(row + k) * stride..][..len];
            let (a, b, c, d) = (at(0), at(1), at(2), at(3));
            let (e, g, h, k) = (at(4), at(5), at(6), at(7));
            for i in 0..len {
                let left = F::combine(F::combine(a[i], b[i]), F::combine(c[i], d[i]));
                let right = F::combine(F::combine(e[i], g[i]), F::combine(h[i], k[i]));
                totals[i] = F::combine(totals[i], F::combine(left, right));
            }
            row += 8;
        }
        for row in row..rows {
            accumulate_row::<T, F>(totals, &x[row * stride..][..len]);
        }
    }
}

#[inline(always)]
fn accumulate_row<T: Semiring, F: Fold<T>>(totals: &mut [T], x: &[T]) {
    let len = totals.len().min(x.len());
    let (totals, x) = (&mut totals[..len], &x[..len]);
    for i in 0..len {
        totals[i] = F::combine(totals[i], x[i]);
    }
}
