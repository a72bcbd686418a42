//! The kernels of reductions for each element type. Each call selects the code for its reduction once, outside the loops.

use crate::kernel::reduce::{lines, rows};
use crate::scalar::reduction::{Fold, with_fold, with_fold_of_bool};
use crate::{Reduction, Scalar};

/// Reductions of blocks of elements. Sealed: implemented for the five element types.
#[doc(hidden)]
pub trait ReductionKernels: Scalar {
    /// Returns the initial value of a total, which is the reduction of no elements.
    fn start(op: Reduction) -> Self;
    /// Combines each total with the element of `x` at the same position.
    fn accumulate(op: Reduction, totals: &mut [Self], x: &[Self]);
    /// Combines `totals[positions[i]]` with `x[i]` for every `i`, one after the other.
    fn accumulate_at(op: Reduction, totals: &mut [Self], positions: &[i64], x: &[Self]);
    /// Combines each total with the elements in its column of `x`. `x` has `rows` rows, which begin `stride` elements apart. Eight rows are
    /// combined with each other first, so that each total is updated at most `rows` / 8 + 7 times.
    fn accumulate_rows(op: Reduction, totals: &mut [Self], x: &[Self], stride: usize, rows: usize);
    /// Reduces lines of `len` elements of `x`, which begin `stride` elements apart. There is one line for each element of `out`.
    fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]);
    /// Does the same as [`reduce_each`](Self::reduce_each), but combines the elements of a line one after the other.
    fn reduce_in_order(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]);
    /// Does the same as [`reduce_each`](Self::reduce_each), for lines of 1 to 15 elements. Combines the elements of a line in the same order in
    /// which [`accumulate_rows`](Self::accumulate_rows) combines rows.
    fn reduce_short(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]);
    /// Sums the products `x[i] * y[i]` of lines of `len` elements, with the bits of [`reduce_each`](Self::reduce_each) for these products.
    fn sums_of_products(x: &[Self], y: &[Self], len: usize, out: &mut [Self]);
}

/// Implements the trait by generic functions. Default methods would be compiled again in every dependent crate.
macro_rules! kernels {
    ($($type:ident by $with_fold:ident),*) => {$(
        impl ReductionKernels for $type {
            fn start(op: Reduction) -> Self {
                $with_fold!(op, F => <F as Fold<Self>>::START)
            }

            fn accumulate(op: Reduction, totals: &mut [Self], x: &[Self]) {
                $with_fold!(op, F => rows::accumulate::<Self, F>(totals, x));
            }

            fn accumulate_at(op: Reduction, totals: &mut [Self], positions: &[i64], x: &[Self]) {
                $with_fold!(op, F => rows::accumulate_at::<Self, F>(totals, positions, x));
            }

            fn accumulate_rows(op: Reduction, totals: &mut [Self], x: &[Self], stride: usize, rows: usize) {
                $with_fold!(op, F => rows::accumulate_rows::<Self, F>(totals, x, stride, rows));
            }

            fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
                $with_fold!(op, F => lines::reduce::<Self, F>(x, len, stride, out));
            }

            fn reduce_in_order(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
                $with_fold!(op, F => lines::reduce_in_order::<Self, F>(x, len, stride, out));
            }

            fn reduce_short(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
                $with_fold!(op, F => lines::reduce_short::<Self, F>(x, len, stride, out));
            }

            fn sums_of_products(x: &[Self], y: &[Self], len: usize, out: &mut [Self]) {
                lines::sums_of_products(x, y, len, out);
            }
        }
    )*};
}

kernels!(f32 by with_fold, f64 by with_fold, i64 by with_fold, u8 by with_fold, bool by with_fold_of_bool);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::element::Semiring;

    /// Checks that [`ReductionKernels::reduce_short`] gives the bits that [`ReductionKernels::accumulate_rows`] gives for the transposed
    /// elements.
    fn check_against_accumulated_rows<T: ReductionKernels>(number: impl Fn(usize) -> T, bits: impl Fn(T) -> u64) {
        for &op in Reduction::ALL {
            for (len, gap) in (1..lines::SHORT_LEN).flat_map(|len| [0, 1, 90].map(|gap| (len, gap))) {
                let (stride, lines) = (len + gap, 37);
                let x: Vec<T> = (0..lines * stride).map(&number).collect();
                let mut got = vec![number(0); lines];
                T::reduce_short(op, &x, len, stride, &mut got);
                let across: Vec<T> = (0..len * lines).map(|i| x[i % lines * stride + i / lines]).collect();
                let mut expected = vec![T::start(op); lines];
                T::accumulate_rows(op, &mut expected, &across, lines, len);
                let bits = |totals: Vec<T>| totals.into_iter().map(&bits).collect::<Vec<_>>();
                assert_eq!(bits(got), bits(expected), "{op:?} {len} {stride}");
            }
        }
    }

    #[test]
    fn short_lines_equal_rows_bit_by_bit() {
        let mixed = |i: usize| ((i * 7919 % 1009) as f64 * 0.37).sin();
        let zeros = |i: usize| if i * 31 % 7 < 3 { -0.0 } else { 0.0 };
        // The NaNs among these numbers have several bit patterns.
        let broken = |i: usize| match i % 17 {
            3 | 4 => f64::from_bits(f64::NAN.to_bits() + ((i as u64) << 32)),
            _ => ((i * 7919 % 1009) as f64 * 0.37).sin(),
        };
        for number in [mixed as fn(usize) -> f64, zeros, broken] {
            check_against_accumulated_rows(number, f64::to_bits);
            check_against_accumulated_rows(|i| number(i) as f32, |x: f32| u64::from(x.to_bits()));
        }
    }

    #[test]
    fn a_sum_of_products_equals_the_sum_of_stored_products() {
        fn check<T: ReductionKernels + Semiring>(number: impl Fn(usize) -> T, bits: impl Fn(T) -> u64) {
            for len in [0, 1, 7, 8, 30, 63, 64, 65, 127, 128, 200, 1000, 4096] {
                let [x, y]: [Vec<T>; 2] = [0, 50_000].map(|from| (from..from + 3 * len).map(&number).collect());
                let products: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| x.times(y)).collect();
                let [mut got, mut expected] = [[number(1); 3]; 2];
                T::reduce_each(Reduction::Sum, &products, len, len, &mut expected);
                T::sums_of_products(&x, &y, len, &mut got);
                assert_eq!(got.map(&bits), expected.map(&bits), "{len}");
            }
        }
        let number = |i: usize| ((i * 7919 % 1009) as f64 * 0.37).sin();
        check(number, f64::to_bits);
        check(|i| number(i) as f32, |x| u64::from(x.to_bits()));
        check(|i| if i % 90 == 0 { f32::INFINITY } else { -0.0 }, |x| u64::from(x.to_bits()));
        check(|i| i as i64 * 7919, |x| x as u64);
        check(|i| i as u8, u64::from);
    }

    /// Checks that reading several lines in turns gives the same bits as reducing one line after the other.
    #[test]
    fn turns_give_the_same_bits() {
        let (stride, count) = (1500, 133);
        let mut x: Vec<f32> = (0..stride * count).map(|i| (i as f32 * 0.37).sin() * 100.0).collect();
        for line in [0, 7, 8, 50, 132] {
            x[line * stride + line * 11 % 512] = f32::NAN;
        }
        for (len, &op) in
            [512, 513, 640, 1000, 1500].into_iter().flat_map(|len| Reduction::ALL.iter().map(move |op| (len, op)))
        {
            let mut totals = vec![0.0; count];
            with_fold!(op, F => lines::reduce_interleaved::<f32, F>(&x, len, stride, &mut totals));
            for (i, total) in totals.into_iter().enumerate() {
                let (line, mut alone) = (&x[i * stride..][..len], [0.0]);
                f32::reduce_each(op, line, len, len, &mut alone);
                assert_eq!(total.to_bits(), alone[0].to_bits(), "{op:?} of line {i} of {len}");
                let wins = with_fold!(op, F => <F as Fold<f32>>::combine(1.0, f32::NAN).is_nan());
                assert_eq!(total.is_nan(), wins && line.iter().any(|x| x.is_nan()));
            }
        }
    }

    /// Checks that a NaN changes only the result of its own line, for lines of several lengths and distances.
    #[test]
    fn a_nan_belongs_to_one_line() {
        for (len, gap) in [1, 16, 40, 100, 127, 128, 300].into_iter().flat_map(|len| [(len, 0), (len, 3)]) {
            let (stride, lines) = (len + gap, 9);
            let mut x: Vec<f32> = (0..stride * lines).map(|i| (i as f32 * 0.37).sin()).collect();
            for broken in [None, Some(0), Some(4), Some(8)] {
                if let Some(line) = broken {
                    x[line * stride + len - 1] = f32::NAN;
                }
                let mut most = [0.0; 9];
                f32::reduce_each(Reduction::Amax, &x, len, stride, &mut most);
                for (line, &most) in most.iter().enumerate() {
                    let own = &x[line * stride..][..len];
                    match own.iter().any(|x| x.is_nan()) {
                        true => assert!(most.is_nan(), "line {line} of {len}"),
                        false => assert_eq!(most, own.iter().copied().fold(f32::NEG_INFINITY, f32::max)),
                    }
                }
            }
        }
    }
}
